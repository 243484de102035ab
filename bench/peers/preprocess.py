#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""preprocess.py --tokmap FILE --megatron FOLDER - JSON lines to Megatron's .bin and .idx, by tokmap and by the two tools of
Megatron-LM, whose checkout FOLDER is. Runs in a Python that has what these need: torch, transformers, gigatoken, awkward.

The texts are those of shared/, several times over; the slow tool gets 36 to 39 MB, in one round. The tokenizer is
GPT-2's. In each round all take turns, the order changes from round to round, and each also packs a file of ten lines:
that is its start, mostly imports. Each is a whole process with as many workers as there are processors. Its files are
compared with tokmap's of the same input: if they differ it is WRONG, and has no figures. `tokmap is` is the median of
the ratios of tokmap's and the other's figures of the same round. CPU is of all processes together, without that of the
start. The slow tool has no figure for the whole run, of which its start would be a large part."""

import argparse
import filecmp
import functools
import importlib.metadata
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))
from result_file import as_text, machine  # noqa: E402

SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))
TEXTS = {"novels": (8, 1), "tldr": (24, 4)}  # how many times over, and how many for the slow tool
TOKMAP, FAST, SLOW = "tokmap preprocess", "preprocess_data_fast.py", "preprocess_data.py"
SPEED, CPU = "MB/s", "MB per CPU second"
COLUMNS = {"whole run": SPEED, "CPU": CPU, "start": "s", "memory": "MiB"}


def make(page, data):
    """The inputs, by name, and a folder of transformers."""
    lines = subprocess.check_output(["zstd", "-dc", SHARED / f"text/{page}.jsonl.zst"])
    for name, content in (("long", lines * TEXTS[page][0]), ("short", lines * TEXTS[page][1]),
                          ("start", b"".join(lines.splitlines(True)[:10]))):
        (data / f"{name}.jsonl").write_bytes(content)
    (data / "gpt2").mkdir()
    (data / "gpt2/tokenizer.json").write_bytes((SHARED / "vocab/gpt2.tokenizer.json").read_bytes())
    (data / "gpt2/tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}))


def run(system, name, data, options):
    """(seconds, CPU seconds, MiB) of a process that makes data/system-name."""
    tool = [sys.executable, "-m", "tokmap", "preprocess"] if system == TOKMAP else [
        sys.executable, str(options.megatron / "tools" / system)]
    more = ["--use-gigatoken"] if system == FAST else ["--workers", str(os.cpu_count())]
    path = str(ROOT / "python") if system == TOKMAP else str(options.megatron)
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*tool, "--input", data / f"{name}.jsonl", "--output-prefix", data / f"{system}-{name}", "--tokenizer-type",
         "HuggingFaceTokenizer", "--tokenizer-model", data / "gpt2", "--append-eod", *more], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"})
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"preprocess.py: {system} ended with {process.returncode}")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def are_equal(system, name, data):
    return all(filecmp.cmp(data / f"{TOKMAP}-{name}_text_document.{suffix}", data / f"{system}-{name}_text_document.{suffix}",
                           shallow=False) for suffix in ("bin", "idx"))


def measure(system, data, options):
    name = "short" if system == SLOW else "long"
    start, start_cpu, _ = run(system, "start", data, options)
    seconds, cpu, memory = run(system, name, data, options)
    mb = (data / f"{name}.jsonl").stat().st_size / 1e6
    speed = {"whole run": mb / seconds} if name == "long" else {}
    return {**speed, "CPU": mb / (cpu - start_cpu), "start": start, "memory": memory}


def measure_page(page, data, options):
    make(page, data)
    values, wrong, systems = {}, {}, [TOKMAP, FAST, SLOW]
    run(TOKMAP, "short", data, options)
    for number in range(options.rounds):
        for system in (systems[:2] if number % 2 else systems[1::-1] + systems[2:] * (number == 0)):
            print(f"preprocess.py: {page}: round {number + 1}: {system}", file=sys.stderr, flush=True)
            values.setdefault(system, []).append(measure(system, data, options))
        for system in systems[1:] if number == 0 else []:
            if not are_equal(system, "short" if system == SLOW else "long", data):
                wrong[system] = "WRONG: its files differ from tokmap's"
    for system in systems:
        head = {"page": page, "line": system, "system": system}
        if system in wrong:
            yield {**head, "name": system, "left_out": wrong[system]}
            continue
        for column, unit in [item for item in COLUMNS.items() if item[0] in values[system][0]]:
            row = functools.partial(dict, **head, version=options.versions[system])
            some = [one[column] for one in values[system]]
            yield row(name=f"{system}, {column}", column=column, unit=unit, **figures(some))
            if system != TOKMAP and unit in (SPEED, CPU):
                ratios = [own[column] / other for own, other in zip(values[TOKMAP], some)]
                yield row(name=f"{system}, tokmap is, {column}", column=f"tokmap is, {column}", unit="x", **figures(ratios))


def figures(values):
    values = [float("%.4g" % value) for value in values]
    return {"median": statistics.median(values), "values": values}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tokmap", type=pathlib.Path, required=True, help="the program; libtokmap.so is beside it")
    add("--megatron", type=pathlib.Path, required=True, help="a checkout of Megatron-LM")
    add("--commit", required=True, help="its commit")
    add("--texts", nargs="+", choices=list(TEXTS), default=list(TEXTS))
    add("--rounds", type=int, default=5)
    add("--dir", help="where data are made and removed again: 3 GB [$TMPDIR or /tmp]")
    add("--out", type=pathlib.Path, required=True, help="write all figures to this file, as JSON")
    options = parser.parse_args()
    os.environ["TOKMAP_LIBRARY"] = str(options.tokmap.absolute().parent / "libtokmap.so")
    megatron, engines = f"Megatron-LM {options.commit[:9]}", {FAST: "gigatoken", SLOW: "tokenizers"}
    options.versions = {TOKMAP: subprocess.check_output([options.tokmap, "--version"], text=True).split()[1],
                        **{tool: f"{megatron}, {name} {importlib.metadata.version(name)}" for tool, name in engines.items()}}
    result = {"schema": 1, "command": f"preprocess.py --rounds {options.rounds}", "machine": machine(), "rows": []}
    for page in options.texts:
        with tempfile.TemporaryDirectory(dir=options.dir) as data:
            result["rows"] += measure_page(page, pathlib.Path(data), options)
    options.out.write_text(as_text(result))


if __name__ == "__main__":
    main()

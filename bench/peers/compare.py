#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare.py --tokbench FILE - tokmap's tokenizers beside those that people use, on one core.

For each tokenizer and text: first every peer's ids are compared with tokmap's, and a peer whose
ids differ is not timed. Then rounds in which all take turns, each in a process of its own: a cold
pass with a tokenizer just loaded, and a warm one. Figures are medians over rounds; ratios are taken
within each round.

The texts and vocabularies are in ../shared (TOKMAP_SHARED); without it a tokenizer is trained
on this repository's documents, as the results then say. Loading and reading are not timed.

tokmap runs as `tokbench tokenize --tokenizer F [--pattern N] --text T --rounds 1 --json J`, whose
rows "cold" and "warm" are taken, and with `--ids I`, which writes all ids as u32, little-endian."""

import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

import engines

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from report_table import Table, value_range  # noqa: E402
from result_file import as_text, machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))
ENGINES = pathlib.Path(engines.__file__)
OURS = "tokmap"
PASSES = ("cold", "warm")
# What is a special token for one of them. Some peers always match these, and tokmap does not here:
# a document that has one says nothing about speed and is left out for all.
SPECIAL = re.compile(r"</?(s|unk|pad|mask|extra_id_\d+)>|<\|[^|]*\|>|\[/?INST\]")

# name: kind, file in ../shared/vocab, pattern (for tokmap where the file does not say), NFC
TOKENIZERS = {
    "gpt2": ("byte_level", "gpt2.tokenizer.json", "gpt2", False),
    "cl100k": ("tiktoken", "cl100k_base.tiktoken", "cl100k", False),
    "o200k": ("tiktoken", "o200k_base.tiktoken", "o200k", False),
    "llama3": ("tiktoken", "llama3.tokenizer.model", "llama3", False),
    "qwen3": ("tiktoken", "qwen3.derived.tiktoken", "qwen2", True),
    "mistral_v1": ("sentencepiece_bpe", "mistral_v1.model", None, False),
    "mistral_v3": ("sentencepiece_bpe", "mistral_v3.model", None, False),
    "phi3": ("sentencepiece_json", "phi3-mini.tokenizer.json", None, False),
    "unigram_en": ("sentencepiece_unigram", "spm_test_unigram_en.model", None, False),
    "t5": ("unigram_json", "t5-small.tokenizer.json", None, False),
}
TEXTS = {"novels": "text/novels.jsonl.zst", "tldr": "text/tldr.jsonl.zst"}


class Failure(Exception):
    """An error as one line."""


# ---- Texts and vocabularies ----


def unzstd(path):
    try:
        return subprocess.run(["zstd", "-dcq", path], check=True, stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError):
        pass
    try:
        import zstandard
    except ImportError:
        raise Failure(
            "neither a program zstd nor the package zstandard to unpack %s" % path
        ) from None
    with open(path, "rb") as f:
        return zstandard.ZstdDecompressor().stream_reader(f).read()


def own_documents():
    paths = [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted(ROOT.glob("src/**/*.c")),
    ]
    return [path.read_text("utf-8") for path in paths]


def write_texts(folder, names, limit_bytes):
    """{name: (path of JSON lines with only the text, bytes of text)}, and the number of documents
    left out."""
    found, n_left_out = {}, 0
    for name in names:
        if SHARED.is_dir():
            lines = unzstd(SHARED / TEXTS[name]).split(b"\n")[:-1]
            documents = [json.loads(line)["text"] for line in lines]
        else:
            documents = own_documents() * 100
        n_documents = len(documents)
        documents = [text for text in documents if not SPECIAL.search(text)]
        n_left_out += n_documents - len(documents)
        if limit_bytes:
            total, kept = 0, []
            for text in documents:
                if total >= limit_bytes:
                    break
                kept.append(text)
                total += len(text.encode())
            documents = kept
        path = folder / (name + ".jsonl")
        with open(path, "w", encoding="utf-8") as out:
            for text in documents:
                out.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
        found[name] = (path, sum(len(text.encode()) for text in documents))
    return found, n_left_out


def trained(folder):
    """A byte-level tokenizer.json from this repository's documents, where there is no ../shared."""
    try:
        import tokenizers
    except ImportError:
        raise Failure(
            "without %s a vocabulary is trained, by the package tokenizers" % SHARED
        ) from None
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=20000,
        show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(own_documents(), trainer)
    path = str(folder / "trained.json")
    tokenizer.save(path)
    return {"kind": "byte_level", "path": path, "json": path, "pattern": "gpt2", "nfc": False}


def tokenizer_entries(folder, names):
    if not SHARED.is_dir():
        return {"trained here": trained(folder)}
    entries = {}
    for name in names:
        kind, file, pattern, nfc = TOKENIZERS[name]
        path = str(SHARED / "vocab" / file)
        as_json = path if file.endswith(".json") else None
        if kind == "tiktoken":
            as_json = str(folder / (name + ".json"))
            document = engines.tokenizer_json(engines.read_tiktoken(path), pattern, nfc)
            pathlib.Path(as_json).write_text(json.dumps(document))
        entries[name] = {
            "kind": kind,
            "path": path,
            "json": as_json,
            "pattern": pattern,
            "nfc": nfc,
        }
    return entries


# ---- One system, one process ----


class System:
    """tokmap or a peer, with one tokenizer and one text."""

    def __init__(self, name, options, entry, text, folder):
        self.name, self.options, self.entry, self.folder = name, options, entry, folder
        self.text, self.n_bytes = text
        self.job = folder / "job.json"
        self.ids = folder / (name + ".ids")
        self.values = {kind: {} for kind in PASSES}  # round: MB/s
        self.left_out = self.note = self.version = None

    def run(self, *command):
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as e:
            raise Failure("%s: %s" % (command[0], e.strerror)) from None
        if done.returncode != 0:
            last = (done.stderr.strip().split("\n") or [""])[-1]
            raise Failure("%s: exit status %d: %s" % (self.name, done.returncode, last))
        return done.stdout

    def peer(self, *more):
        self.job.write_text(
            json.dumps({"tokenizer": self.entry, "text": str(self.text), "ids": str(self.ids)})
        )
        return json.loads(self.run(sys.executable, ENGINES, self.name, self.job, *more))

    def tokbench(self, *more):
        pattern = ["--pattern", self.entry["pattern"]] if self.entry["kind"] == "tiktoken" else []
        self.run(
            self.options.tokbench,
            "tokenize",
            "--tokenizer",
            self.entry["path"],
            *pattern,
            "--text",
            self.text,
            "--rounds",
            "1",
            *more,
        )

    def write_ids(self):
        if self.name == OURS:
            self.tokbench("--ids", self.ids)
            return
        try:
            said = self.peer("--ids")
        except Failure as e:
            said = {"left_out": "failed: %s" % e}
        self.left_out = said.get("left_out")
        self.version, self.note = said.get("version"), said.get("note")

    def measure(self, round_number):
        if self.name == OURS:
            path = self.folder / "tokbench.json"
            self.tokbench("--json", path)
            speeds = tokbench_speeds(json.loads(path.read_text()))
        else:
            seconds = self.peer()
            speeds = {kind: self.n_bytes / 1e6 / seconds[kind] for kind in PASSES}
        for kind in PASSES:
            self.values[kind][round_number] = speeds[kind]

    def is_slow(self):
        return any(
            self.n_bytes / 1e6 / speed > self.options.slow_seconds
            for speed in self.values["cold"].values()
        )


def tokbench_speeds(result):
    speeds = {}
    for row in result["rows"]:
        for kind in PASSES:
            if row["unit"] == "MB/s" and row["name"].split(",")[0].split()[0] == kind:
                speeds.setdefault(kind, row["median"])
    if len(speeds) != len(PASSES):
        raise Failure("tokbench tokenize gave no rows 'cold' and 'warm' in MB/s")
    return speeds


# ---- Ids ----


def compare_ids(ours, peer):
    """None if they are equal, else the place of the first difference."""
    a, b = ours.read_bytes(), peer.read_bytes()
    if a == b:
        return None
    at = next(
        (i for i in range(0, min(len(a), len(b)), 4) if a[i : i + 4] != b[i : i + 4]),
        min(len(a), len(b)),
    )

    def ids(data):
        return [
            int.from_bytes(data[i : i + 4], "little") for i in range(max(0, at - 8), at + 16, 4)
        ]

    return "ids differ from number %d on: %s, tokmap %s; %d ids, tokmap %d" % (
        at // 4,
        ids(b),
        ids(a),
        len(b) // 4,
        len(a) // 4,
    )


def check_ids(systems):
    """Leaves out peers whose ids differ. Returns the number of ids, and whether a reference
    implementation agrees: gigatoken does not count as one."""
    ours = systems[0]
    ours.write_ids()
    agrees = False
    for peer in systems[1:]:
        peer.write_ids()
        if not peer.left_out:
            peer.left_out = compare_ids(ours.ids, peer.ids)
            agrees |= peer.left_out is None and not peer.name.startswith("gigatoken")
        peer.ids.unlink(missing_ok=True)
    n_ids = ours.ids.stat().st_size // 4
    ours.ids.unlink()
    return n_ids, agrees


# ---- Measuring ----


def take_turns(systems, options):
    timed = [system for system in systems if not system.left_out]
    for number in range(options.rounds):
        for system in timed[number % len(timed) :] + timed[: number % len(timed)]:
            if number < options.slow_rounds or not system.is_slow():
                system.measure(number)


def rows_of(systems, name, text, n_ids):
    ours = systems[0]
    rows = []
    for system in systems:
        row = {
            "tokenizer": name,
            "text": text,
            "text_bytes": ours.n_bytes,
            "ids": n_ids,
            "system": system.name,
        }
        if system.version:
            row["version"] = system.version
        if system.note:
            row["note"] = system.note
        if system.left_out:
            row["left_out"] = system.left_out
        for kind in PASSES if not system.left_out else ():
            values = system.values[kind]
            row[kind] = figures("MB/s", list(values.values()))
            if system is not ours:
                row[kind + "_ratio"] = figures(
                    "x",
                    [
                        ours.values[kind][number] / value
                        for number, value in values.items()
                        if number in ours.values[kind]
                    ],
                )
        rows.append(row)
    return rows


def figures(unit, values):
    return {
        "unit": unit,
        "median": round(statistics.median(values), 4),
        "values": [round(value, 4) for value in values],
    }


def compare(options, folder):
    texts, n_left_out = write_texts(
        folder, options.texts if SHARED.is_dir() else ["own documents"], int(options.limit_mb * 1e6)
    )
    rows, wrong = [], []
    for name, entry in tokenizer_entries(folder, options.tokenizers).items():
        for text, place in texts.items():
            print("compare.py: %s, %s ..." % (name, text), file=sys.stderr, flush=True)
            systems = [
                System(system, options, entry, place, folder) for system in [OURS, *options.peers]
            ]
            n_ids, agrees = check_ids(systems)
            differs = [system.name for system in systems if "ids differ" in (system.left_out or "")]
            if differs and not agrees:
                wrong.append(
                    "%s, %s: ids differ from %s, and no reference agrees"
                    % (name, text, ", ".join(differs))
                )
            take_turns(systems, options)
            rows += rows_of(systems, name, text, n_ids)
    return rows, wrong, n_left_out


# ---- Showing ----


def spread(figure):
    return "%.4g" % figure["median"], value_range(min(figure["values"]), max(figure["values"]))


def table(rows):
    columns = [(head, "") for head in ("tokenizer", "text", "system")]
    for head in ("cold MB/s", "min .. max", "warm MB/s", "min .. max", "tokmap is, cold", "warm"):
        columns.append((head, "number"))
    lines = []
    for row in rows:
        line = [row["tokenizer"], row["text"], row["system"]]
        if "left_out" in row:
            if row["left_out"].startswith("ids differ"):
                lines.append([*line, "", "ids differ", "", "", "", ""])
            continue
        for kind in PASSES:
            line += spread(row[kind])
        line += [
            "%.2f x" % row[kind + "_ratio"]["median"] if kind + "_ratio" in row else ""
            for kind in PASSES
        ]
        lines.append(line)
    return Table("", columns, lines)


def print_left_out(rows, out):
    """Each reason once, without peers that have no such tokenizer."""
    places = {}
    for row in rows:
        for why in (row.get("left_out"), row.get("note")):
            if why and not why.startswith("no ") and not why.endswith(" only"):
                places.setdefault((row["system"], why), []).append(
                    "%s/%s" % (row["tokenizer"], row["text"])
                )
    for (system, why), found in sorted(places.items()):
        where = "" if why.startswith("not installed") else " (%s)" % ", ".join(found)
        out.write("%s: %s%s\n" % (system, why, where))


def show(result, options):
    rows = result["rows"]
    if options.markdown:
        print(table(rows).markdown(), end="")
    else:
        print(table(rows).terminal())
        print_left_out(rows, sys.stdout)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0].split(" - ")[1])
    parser.add_argument("--tokbench", help="the program; needed to measure")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--slow-seconds", type=float, default=4, help="a peer whose pass takes longer is slow ..."
    )
    parser.add_argument("--slow-rounds", type=int, default=2, help="... and runs so many rounds")
    parser.add_argument("--tokenizers", nargs="+", choices=TOKENIZERS, default=list(TOKENIZERS))
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=list(TEXTS))
    parser.add_argument("--peers", nargs="*", choices=engines.PEERS, default=list(engines.PEERS))
    parser.add_argument(
        "--limit-mb", type=float, default=0, help="only the first documents of each text"
    )
    parser.add_argument("--core", type=int, help="the processor to run on [the last one allowed]")
    parser.add_argument("--out", help="write all figures to this file, as JSON")
    parser.add_argument("--markdown", action="store_true", help="the table as Markdown")
    parser.add_argument("--from", dest="source", help="show this file and measure nothing")
    options = parser.parse_args()
    if not options.source and not options.tokbench:
        parser.error("--tokbench or --from is needed")
    return options


def command_line():
    """Without paths, which depend on the machine."""
    words = [os.path.basename(word) if "/" in word else word for word in sys.argv[1:]]
    return " ".join(["compare.py", *words])


def main():
    options = parse_arguments()
    if options.source:
        show(json.loads(pathlib.Path(options.source).read_text()), options)
        return 0
    core = options.core if options.core is not None else max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})  # whatever is started from here on runs there too
    try:
        with tempfile.TemporaryDirectory(prefix="tokmap-peers-") as folder:
            rows, wrong, n_left_out = compare(options, pathlib.Path(folder))
    except Failure as e:
        print("compare.py: %s" % e, file=sys.stderr)
        return 1
    result = {
        "schema": 1,
        "command": command_line(),
        "machine": {**machine(), "python": platform.python_version()},
        "shared_texts": SHARED.is_dir(),
        "limit_mb": options.limit_mb,
        "documents_left_out": n_left_out,
        "rows": rows,
    }
    if options.out:
        pathlib.Path(options.out).write_text(as_text(result))
    show(result, options)
    for text in wrong:
        print("compare.py: %s" % text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

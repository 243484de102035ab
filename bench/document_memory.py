#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""document_memory.py --vocab FOLDER --text FILE --dir FOLDER - the memory that `tokmap pack -j 1` takes for one document of
--mib MiB, by its format and tokenizer, as a multiple of its size; and its time. `word` is one letter, again and again."""

import argparse
import json
import multiprocessing
import os
import pathlib
import subprocess
import time

from result_file import as_text, machine

HERE = pathlib.Path(__file__).resolve().parent
TOKENIZERS = {"bytes": "", "GPT-2 BPE": "gpt2.tokenizer.json", "o200k": "o200k_base.tiktoken --pattern o200k",
              "Mistral": "mistral_v1.model", "T5 Unigram": "t5-small.tokenizer.json"}
FORMS = ("text", "JSON lines", "Parquet", "parts", "word")
OPTIONS = {"Parquet": ["--memory", "4G"], "parts": ["--parts", "parts"]}


def make_files(folder, text, n_bytes):
    import pyarrow
    import pyarrow.parquet
    document = (text * (n_bytes // len(text) + 1))[:n_bytes].decode(errors="ignore")
    half = len(document) // 2
    parts = [{"text": document[:half], "train": False}, {"text": document[half:], "train": True}]
    (folder / "text").write_text(document)
    (folder / "JSON lines").write_text(json.dumps({"text": document}, ensure_ascii=False) + "\n")
    (folder / "parts").write_text(json.dumps({"parts": parts}, ensure_ascii=False) + "\n")
    (folder / "word").write_text("a" * n_bytes)
    pyarrow.parquet.write_table(pyarrow.table({"text": [document]}), folder / "Parquet", compression="zstd")


def run(words):
    """The most memory in bytes, and seconds; None: refused."""
    start = time.perf_counter()
    child = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    return None if status else (usage.ru_maxrss * 1024, time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("vocab", "text", "dir"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--tokmap", default=str(HERE.parent / "build/tokmap"))
    parser.add_argument("--mib", type=int, default=128)
    parser.add_argument("--only", help="one of the formats")
    parser.add_argument("--out", type=pathlib.Path, help="a result file")
    o = parser.parse_args()
    rows = []
    # In a process of its own: the memory of a child counts from what its parent has.
    maker = multiprocessing.Process(target=make_files, args=(o.dir, o.text.read_bytes(), o.mib << 20))
    maker.start()
    maker.join()
    for form in FORMS:
        for name, words in TOKENIZERS.items() if o.only in (None, form) else ():
            tokenizer = ["--tokenizer", str(o.vocab / words.split()[0]), *words.split()[1:]] if words else []
            found = run([o.tokmap, "pack", "-qf", o.dir / form, "-o", o.dir / "packed", "-j", "1", *OPTIONS.get(form, ()), *tokenizer])
            for column, unit, value in zip(("memory", "time"), ("x", "s"), found or ()):
                value = value / (o.mib << 20) if unit == "x" else value
                line = "%s of %.0f MB" % (form, (o.mib << 20) / 1e6)
                rows.append({"page": "document_" + column, "line": line, "name": "%s, %s, %s" % (line, name, column),
                             "column": name, "unit": unit, "median": value, "values": [value]})
                print("%-12s %-10s %-7s %6.2f %s" % (form, name, column, value, unit), flush=True)
        (o.dir / form).unlink()
    if o.out:
        command = "document_memory.py --mib %d" % o.mib
        o.out.write_text(as_text({"schema": 1, "command": command, "machine": machine(), "rows": rows}))


if __name__ == "__main__":
    main()

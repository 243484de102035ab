#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""parquet.py --tokmap FILE --tokbench FILE --tokenizer FILE --parquet FILE... - packing a column of Parquet, beside
gigatoken's Parquet source, and decoding it, beside pyarrow.

For each file: first all ids are compared, and a peer whose ids differ is not timed. Then rounds in which all take
turns. Packing: `tokmap pack` is a whole process that loads the tokenizer and writes the dataset to the folder of
--dir; gigatoken is one call of encode_files, with its tokenizer loaded, that keeps the ids in memory. Both use the
same number of threads. Decoding: one thread each. MB/s are of UTF-8 text."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from result_file import machine  # noqa: E402

THREADS = "RAYON_NUM_THREADS"


def seconds_of(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


class File:
    def __init__(self, path, arguments, folder):
        import gigatoken

        self.path, self.arguments, self.out = path, arguments, str(folder / "out")
        self.tokenizer = gigatoken.Tokenizer(str(arguments.tokenizer))
        self.source = gigatoken.ParquetFileSource([str(path)], column="text")

    def pack(self):
        a = self.arguments
        subprocess.run([a.tokmap, "pack", "-q", "-f", "--eod", "none", "-j", str(a.jobs), "--tokenizer", a.tokenizer,
                        self.path, "-o", self.out], check=True)

    def encode(self):
        return self.tokenizer.encode_files(self.source, parallel=self.arguments.jobs > 1)

    def same_ids(self):
        import awkward
        import numpy

        self.pack()
        ids = numpy.asarray(awkward.flatten(self.encode()))
        ours = numpy.fromfile(self.out + ".bin", "<u2" if os.path.getsize(self.out + ".bin") == 2 * len(ids) else "<u4")
        return bool(len(ours) == len(ids) and (ours == ids).all())

    def decode_with_pyarrow(self):
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.path, columns=["text"], use_threads=False, pre_buffer=False)

    def decode(self):
        """Reads from tokbench's page `pack` the speed of decoding the column, in MB/s."""
        a = self.arguments
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            subprocess.run([a.tokbench, "pack", "--tokenizer", a.tokenizer, "--text", self.path, "--rounds", "1",
                            "--dir", a.dir, "--json", out.name], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            rows = json.load(open(out.name, encoding="utf-8"))["rows"]
        return next(row["values"][0] for row in rows if row["name"] == "taking documents out of the file alone")


def measure(file, rounds):
    import pyarrow.compute

    column = file.decode_with_pyarrow()["text"]
    megabytes = pyarrow.compute.sum(pyarrow.compute.binary_length(column)).as_py() / 1e6
    del column
    same = file.same_ids()
    values = {"tokmap pack": [], "gigatoken": [], "tokmap decodes": [], "pyarrow decodes": []}
    for _ in range(rounds):
        values["tokmap pack"].append(megabytes / seconds_of(file.pack)[0])
        if same:
            values["gigatoken"].append(megabytes / seconds_of(file.encode)[0])
        values["tokmap decodes"].append(file.decode())
        values["pyarrow decodes"].append(megabytes / seconds_of(file.decode_with_pyarrow)[0])
    page = file.path.stem
    rows = [{"page": page, "name": name, "unit": "MB/s", "median": round(statistics.median(v), 1),
             "values": [round(x, 1) for x in v]} for name, v in values.items() if v]
    print("%s: %.0f MB of text, %s" % (page, megabytes, "equal ids" if same else "gigatoken's IDS DIFFER"))
    for row in rows:
        print("  %-16s %8.1f MB/s  %s" % (row["name"], row["median"], row["values"]))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokmap", type=pathlib.Path, required=True)
    parser.add_argument("--tokbench", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--parquet", type=pathlib.Path, nargs="+", required=True)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default="/dev/shm")
    parser.add_argument("--out", type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ[THREADS] = str(arguments.jobs)  # before gigatoken is imported
    result = {"schema": 1, "command": "parquet.py --jobs %d --rounds %d" % (arguments.jobs, arguments.rounds),
              "machine": machine(), "rows": []}
    with tempfile.TemporaryDirectory(dir=arguments.dir) as folder:
        for path in arguments.parquet:
            result["rows"] += measure(File(path, arguments, pathlib.Path(folder)), arguments.rounds)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

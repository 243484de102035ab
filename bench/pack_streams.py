#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pack_streams.py [--tokmap FILE] [--tokenizer FILE] [-o RESULT] - how many slow inputs one `tokmap pack` reads at the same time.

Each input is a pipe that gives 2 MB/s of JSON lines while it is read, and nothing while it is not: time that a reader does not
use is lost. Inputs that are read one after the other make 1.0 stream at a time; all of 8 at the same time would make 8. What
is ahead of its turn needs memory, or room in the file without a name beside the output; "without the file" is the same
with TOKMAP_TEST_SPILL=0."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from result_file import as_text, machine  # noqa: E402

RATE, STEP = 2_000_000, 0.02  # bytes a second; seconds between two writes


def drip(path, data):
    step = int(RATE * STEP)
    with open(path, "wb", buffering=0) as pipe:
        for at in range(0, len(data), step):
            pipe.write(data[at:at + step])
            time.sleep(STEP)


def run(options, n_pipes, memory, with_file):
    """Streams at a time, and what the report says was in the file."""
    line = json.dumps({"text": "the quick brown fox jumps over the lazy dog " * 30}).encode() + b"\n"
    data = line * int(RATE * options.seconds / len(line))
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = pathlib.Path(name)
        pipes = [folder / ("%02d.jsonl" % i) for i in range(n_pipes)]
        for pipe in pipes:
            os.mkfifo(pipe)
        threads = [threading.Thread(target=drip, args=(pipe, data), daemon=True) for pipe in pipes]
        for thread in threads:
            thread.start()
        environment = dict(os.environ) if with_file else dict(os.environ, TOKMAP_TEST_SPILL="0")
        start = time.perf_counter()
        subprocess.run([options.tokmap, "pack", *pipes, "--format", "jsonl", "-j", "2", "--memory", memory, "-q",
                        "--tokenizer", options.tokenizer, "--report", folder / "report.json", "-o", folder / "out"], env=environment, check=True)
        seconds = time.perf_counter() - start
        spilled = json.loads((folder / "report.json").read_text())["spilled_bytes"]
    slept = len(data) / int(RATE * STEP) * STEP  # the least time of one pipe
    return n_pipes * slept / seconds, spilled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokmap", default=str(HERE.parent / "build/tokmap"))
    parser.add_argument("--tokenizer", default="bytes", help="[bytes, whose tokens take twice the memory of the text]")
    parser.add_argument("--dir", default=None, help="where the output goes [the folder for temporary files]")
    parser.add_argument("--seconds", type=float, default=8, help="of each pipe")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args()
    rows, command = [], "bench/pack_streams.py --tokenizer %s --seconds %g --rounds %d" % (
        pathlib.Path(options.tokenizer).name, options.seconds, options.rounds)
    for n_pipes, memory in ((8, "32M"), (32, "128M")):
        for with_file in (True, False):
            found = [run(options, n_pipes, memory, with_file) for _ in range(options.rounds)]
            values = [round(streams, 2) for streams, _ in found]
            name = "%d pipes, --memory %s%s" % (n_pipes, memory, "" if with_file else ", without the file")
            rows.append({"page": "pack_streams", "name": name, "unit": "streams at a time", "values": values,
                         "median": sorted(values)[len(values) // 2], "spilled_bytes": found[-1][1]})
            print("%-46s %5.2f at a time, %d bytes in the file" % (name, rows[-1]["median"], found[-1][1]), flush=True)
    if options.output:
        version = subprocess.run([options.tokmap, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[1]
        options.output.write_text(as_text({"schema": 1, "tokmap": version, "command": command, "machine": machine(),
                                           "rows": rows}))


if __name__ == "__main__":
    main()

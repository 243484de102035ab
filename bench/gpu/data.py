#!/usr/bin/env python3
"""data.py P - a dataset of random 16-bit tokens, P.bin and P.tmi, for the measurements."""

import argparse
import os
import subprocess

MIB = 512


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows")  # of other scripts
    parser.add_argument("--seconds", type=float)
    parser.add_argument("data")
    options = parser.parse_args()
    block = os.urandom(16 << 20)
    with open(options.data + ".bin", "wb") as out:
        for i in range(MIB // 16):  # each block begins elsewhere, so that rows differ
            at = i * 4099 * 2
            out.write(block[at:] + block[:at])
    tokmap = os.path.join(os.environ["TOKMAP_BUILD"], "tokmap")
    subprocess.run([tokmap, "index", options.data + ".bin", "--dtype", "u16", "--eod", "none"],
                   check=True)


if __name__ == "__main__":
    main()

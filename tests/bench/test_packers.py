#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers/packers.py: a packer whose rows are wrong is found; tokmap's are right, and its result is one. Without any
peer. Not how fast anything is."""

import json
import os
import pathlib
import subprocess
import sys

from ref_protocol import Skip, expect, expect_equal, need, program, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench/peers"))
LENGTHS, ROOM = [5, 3, 12], 8
PIECES = [(0, 0, 5), (0, 5, 3), (1, 8, 8), (2, 16, 4)]  # row, first token, tokens


def planted(packers, numpy, pieces, figures, overlap=0):
    class Planted(packers.Packer):
        def __init__(self):
            self.lengths, self.ends, self.room, self.overlap = numpy.array(LENGTHS), numpy.cumsum(LENGTHS), ROOM, overlap

        def run(self):
            self.n_rows = 3

        def figures(self):
            return figures

        def pieces(self):
            return numpy.array(pieces).T

    return Planted()


def rows_that_are_wrong_are_found(folder):
    numpy = need("numpy")
    import packers

    def why(pieces, n_labels=16, overlap=0):
        try:
            packers.check(planted(packers, numpy, pieces, (20, n_labels), overlap))
        except AssertionError as e:
            return str(e)

    expect_equal(why(PIECES), None, "right rows")
    expect_equal(why(PIECES[::-1]), None, "right rows in another order")
    expect_equal(why([*PIECES[:3], (2, 15, 5)], 17, overlap=1), None, "pieces that share a token")
    expect_equal(why(PIECES, 15), "other figures", "a label too much")
    for row, what in (((2, 16, 3), "a token less"), ((2, 15, 5), "a token twice"), ((2, 17, 3), "a gap")):
        expect_equal(why([*PIECES[:3], row], 13 + row[2] - 1), "a token is in no row, or twice", what)
    expect_equal(why([(0, 0, 5), (0, 5, 3), (2, 8, 8), (2, 16, 4)]), "other figures", "a row without a piece")
    expect_equal(why([(0, 0, 5), (1, 5, 3), (2, 8, 8), (2, 16, 4)]), "a row has too much", "a full row")
    expect_equal(why([(0, 0, 8), *PIECES[2:]], 17), "a piece is of two documents", "a document's end is passed")


def tokmap_is_right(folder):
    need("numpy")
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a sanitized library cannot be loaded into Python")
    out = folder / "packers.json"
    done = subprocess.run([sys.executable, ROOT / "bench/peers/packers.py", "--tokmap", program("tokmap"), "--pages", "web",
                           "--packers", "tokmap rows", "tokmap Loader", "--documents", "3000", "--lengths", "64", "2048",
                           "--rounds", "2", "--dir", folder, "--out", out], capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    rows = json.loads(out.read_text())["rows"]
    expect_equal([row["system"] for row in rows if "left_out" in row], ["Megatron-core"], "left out")
    found = {(row["line"], row["column"]): row["values"] for row in rows if "left_out" not in row}
    expect_equal(len(found), 2 * 2 * 6, "figures")
    for line in ("64: tokmap rows", "64: tokmap Loader", "2,048: tokmap rows"):
        expect(found[line, "labels lost"] == [0] and 0 < found[line, "padding"][0] < 1, str(found))
        expect(len(found[line, "packing"]) == 2 and min(found[line, "packing"]) > 0, str(found))


sys.exit(run_in_folders("packers_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers: the comparison of ids, the ratios and the tables, without any peer.
Not how fast anything is."""

import io
import json
import pathlib
import sys

from ref_protocol import expect, expect_equal, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench/peers"
sys.path.append(str(PEERS))

import compare  # noqa: E402
import engines  # noqa: E402


class System(compare.System):
    """One whose figures are known."""

    def __init__(self, name, cold, warm=None):
        self.name, self.n_bytes = name, 1000000
        self.values = {"cold": cold, "warm": warm or cold}
        self.left_out = self.note = self.version = None


def unequal_ids_are_found(folder):
    a, b = folder / "a", folder / "b"
    ids = list(range(100000))
    a.write_bytes(engines.flat([ids]))
    b.write_bytes(engines.flat([ids[:5], ids[5:]]))
    expect_equal(compare.compare_ids(a, b), None, "equal ids")
    changed = ids[:70000] + [0] + ids[70001:]
    for other, at in ((ids[:-1], 99999), (ids + [1], 100000), (changed, 70000), ([], 0)):
        b.write_bytes(engines.flat([other]))
        why = compare.compare_ids(a, b)
        expect(why and "from number %d on" % at in why, "difference at %d: %s" % (at, why))


def ratios_are_taken_within_a_round(folder):
    ours = System("tokmap", {0: 100.0, 1: 300.0, 2: 200.0})
    peer = System("peer", {0: 50.0, 2: 10.0})
    rows = compare.rows_of([ours, peer], "t", "x", 5)
    expect_equal(rows[1]["cold_ratio"]["values"], [2.0, 20.0], "ratios")
    expect_equal((rows[0]["cold"]["median"], rows[1]["cold"]["median"]), (200.0, 30.0), "medians")
    expect("cold_ratio" not in rows[0], "tokmap has a ratio to itself")


def what_differs_is_shown_and_not_timed(folder):
    ours, peer, absent = (System(name, {0: 1.0}) for name in ("tokmap", "peer", "absent"))
    peer.left_out, absent.left_out = "ids differ from number 3 on: ...", "not installed: no wheel"
    rows = compare.rows_of([ours, peer, absent], "t", "x", 5)
    expect("cold" not in rows[1], "timed though ids differ")
    out = io.StringIO()
    out.write(compare.table(rows).terminal())
    expect("ids differ" in out.getvalue() and "absent" not in out.getvalue(), out.getvalue())
    out = io.StringIO()
    compare.print_left_out(rows, out)
    expect("absent: not installed: no wheel\n" in out.getvalue(), out.getvalue())


def results_survive_json(folder):
    rows = compare.rows_of([System("tokmap", {0: 1.0}), System("peer", {0: 2.0})], "t", "x", 5)
    result = {"schema": 1, "machine": {"cpu": "x"}, "rows": rows}
    expect_equal(json.loads(compare.as_text(result)), result, "results")


def ranks_become_merges(folder):
    ranks = {bytes([b]): b for b in range(256)}
    ranks.update({b"ab": 256, b"abc": 257, b"bc": 258, b"xyz": 259})
    model = engines.tokenizer_json(ranks, "cl100k", False)["model"]
    expect_equal(model["merges"], [["a", "b"], ["a", "bc"], ["ab", "c"], ["b", "c"]], "merges")
    expect_equal(len(model["vocab"]), 260, "vocabulary")


sys.exit(run_in_folders("peers_"))

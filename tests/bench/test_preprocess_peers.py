#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers/preprocess.py: files of a tool that differ from tokmap's are found, and it then has no figures. Without any
tool; not how fast anything is."""

import pathlib
import sys
import types

from ref_protocol import expect_equal, run_in_folders

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench/peers"))


def files_that_differ_are_found(folder):
    import preprocess

    def run(system, name, data, options):
        for suffix in "bin", "idx":
            wrong = system == preprocess.FAST and suffix == "idx" and name == "long"
            (data / f"{system}-{name}_text_document.{suffix}").write_text("other" if wrong else "files")
        return (1, 1, 1) if name == "start" else (3, 2, 1)

    def make(page, data):
        for name in ("long", "short", "start"):
            (data / f"{name}.jsonl").write_bytes(bytes(10**6))

    preprocess.run, preprocess.make = run, make
    options = types.SimpleNamespace(rounds=2, versions=dict.fromkeys((preprocess.TOKMAP, preprocess.FAST, preprocess.SLOW), ""))
    rows = list(preprocess.measure_page("novels", folder, options))
    expect_equal([row["system"] for row in rows if "left_out" in row], [preprocess.FAST], "left out")
    found = {row["name"]: row["values"] for row in rows if "left_out" not in row}
    expect_equal(found["tokmap preprocess, CPU"], [1.0, 1.0], "rounds")
    expect_equal(found["preprocess_data.py, tokmap is, CPU"], [1.0], "ratios of the rounds that both have")


sys.exit(run_in_folders("preprocess_peers_"))

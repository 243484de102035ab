#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Loader says of waiting, on a file system whose reads take a while: also with io="map", where the wait is a page
fault."""

import os
import sys

import package  # noqa: F401 - finds tokmap
import mounts
from grouped import grouped
from ref_protocol import run_in_folders

import tokmap

LATENCY = 0.02  # of each read
LENGTH, ROWS, STEPS = 4096, 2, 6


def waits_in_page_faults_are_counted(folder):
    mounts.enter_namespace()
    (folder / "data").mkdir()
    (folder / "place").mkdir()
    with tokmap.Writer(folder / "data" / "a", 60000) as w:
        for i in range(256):
            w.document([i] * 8192)
    with mounts.fuse(folder / "data", folder / "place", latency=LATENCY):
        for options in ({}, {"windows": "best_fit"}, {"outputs": ["labels"], "dtype": "int32"}, {"contiguous": False}):
            with open(folder / "place" / "a.bin") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            with tokmap.Loader(folder / "place" / "a", LENGTH, ROWS, **grouped(io="map", **options)) as loader:
                assert loader.stats["io"] == "map" and loader.stats["n_waits"] == 0
                for _ in range(STEPS):
                    next(loader)
                found = loader.stats
                # The first step at least, whose pages were dropped.
                assert 0 < found["n_waits"] <= STEPS and found["waited_ns"] >= LATENCY * 1e9, found
                assert found["waited_ns"] >= found["wait_max_ns"] == found["wait_p999_ns"] >= LATENCY * 1e9, found
                assert loader.metrics()["n_waits"] == found["n_waits"]
            with tokmap.Loader(folder / "place" / "a", LENGTH, ROWS, reading=tokmap.Reading(io="map"), outputs=[]) as loader:
                next(loader)
                assert loader.stats["n_waits"] == 0  # nothing was copied


sys.exit(run_in_folders("python_waits_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The package continues training runs of every release: the states of tests/release/ give the rows that they gave."""

import os
import pathlib
import re
import shutil
import sys

from grouped import grouped
from package import ROOT
from ref_protocol import expect, expect_equal, run_in_folders

import tokmap

RELEASES = ROOT / "tests/release"
sys.path.append(str(RELEASES))
import make  # noqa: E402

SHUFFLES, WINDOWS = ("full", "none", "block"), ("concat", "within_document", "best_fit")
NAMES = {"rows": "batch_rows", "ranks": "n_ranks"}


def copy_releases(folder):
    for path in RELEASES.glob("*/contents.txt"):
        shutil.copytree(path.parent, folder / path.parent.name)


def arguments_of(folder, words):
    """Of the Loader that a line of contents.txt describes."""
    sources, phases, skips, given = [], {}, [], {}
    for key, _, value in (word.partition("=") for word in words):
        if key == "source":
            names, weight, epochs, masked = value.split(":")
            sources.append({"paths": [folder / name for name in names.split("+")], "weight": float(weight),
                            "max_epochs": int(epochs) or None, "masked": masked == "1"})
        elif key == "list":
            n, step, keeps_rest = map(int, value.split(":"))
            paths = sources[-1]["paths"]
            documents = [i * step % len(tokmap.open(paths[-1])) for i in range(n)]
            sources[-1]["document_list"] = [None] * (len(paths) - 1) + [tokmap.DocumentList(documents, keeps_rest=bool(keeps_rest))]
        elif key == "order":
            n, step, below = map(int, value.split(":"))
            sources[-1]["window_list"] = [i * step % below for i in range(n)]
        elif key == "phase":
            first, _, weights = value.partition(":")
            phases[int(first)] = [float(w) for w in weights.split(",")]
        elif key == "skip":
            skips.append(tuple(map(int, value.split("-"))))
        else:
            given[NAMES.get(key, key)] = int(value)
    sources = [tokmap.Source(one.pop("paths"), one.pop("weight"), **one) for one in sources]
    if len(sources) == 1:
        sources[0].weight = sources[0].weight or 1.0  # in C a single source may have 0, which counts as 1
    given["shuffle"], given["windows"] = SHUFFLES[given.get("shuffle", 0)], WINDOWS[given.get("windows", 0)]
    if "whole_documents" in given:
        given["whole_documents"] = ("split", "drop", "truncate")[given["whole_documents"]]
    given["random_offset"] = bool(given.get("random_offset", 0))
    parts = ("cu_seqlens", "position_ids", "document_ids", "loss_mask") if given.pop("parts", 0) else ()
    return dict(given, sources=sources, phases=phases, skip=skips, outputs=("inputs", "labels", *parts))


def rows_of(loader):
    for _, batch in zip(range(3), loader):
        for sample, row in zip(batch.sample_ids, batch.rows):
            yield "row %d: source %d dataset %d epoch %d window %d first %d, %d tokens" % (
                sample, row.source, row.dataset, row.epoch, row.window, row.first_token, len(row.tokens))


def states_of_releases_give_the_same_rows(folder):
    n = 0
    for release in folder.iterdir():
        expected = (release / "expected.txt").read_text()
        for name, *words in re.findall(r"^loader (\S+) (.*)$", (release / "contents.txt").read_text(), re.MULTILINE):
            arguments = arguments_of(release, words[0].split())
            first, length = arguments.pop("next"), arguments.pop("length")
            state = (release / "states" / name).read_bytes()
            lines = expected.partition("\nloader %s\n" % name)[2].partition("\nloader ")[0]
            wanted = re.findall(r"row .* tokens(?=, xxh3)", lines)
            got = []
            for rank in range(arguments["n_ranks"]):
                loader = tokmap.Loader(**grouped(**arguments, sequence_length=length, rank=rank))
                loader.load_state_dict({"state": state.hex(), "sample": first})
                expect_equal((loader.sample, loader.state()), (first, state), "where it continues")
                got += rows_of(loader)
            expect_equal(got, wanted, name)
            n += len(got)
    expect(n > 150, "only %d rows" % n)
    return "%d rows" % n


def chats_have_the_roles_and_lanes_that_they_had(folder):
    os.chdir(folder / "0.2.0")
    expect_equal(make.rows_of_chats(tokmap), pathlib.Path("chats.txt").read_text(), "rows of chats")
    tokmap.open("chats").verify()


sys.exit(run_in_folders("", prepare=copy_releases))

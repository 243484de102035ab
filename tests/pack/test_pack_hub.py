#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack of a dataset in the local cache of the Hugging Face Hub: the files of one snapshot, under its names."""

import json
import os
import pathlib
import sys

import pack_corpus
from ref_protocol import expect, run_in_folders

ROOT = pathlib.Path("hub/datasets--org--name")
BAD_INPUT = 3


def make_cache(folder):
    """As huggingface_hub lays it out: two revisions, which share a blob; cards, and what was asked for in vain."""
    root = folder / ROOT
    for place in ("blobs", "refs", ".no_exist/new"):
        (root / place).mkdir(parents=True)
    blobs = {name: "".join(json.dumps({"text": f"{name} {i}"}) + "\n" for i in range(50)) for name in ("a", "b", "c")}
    blobs.update(card="# name\n", infos="{}", attributes="*.parquet filter=lfs\n")
    for name, text in blobs.items():
        (root / "blobs" / name).write_text(text)
    cards = {"README.md": "card", "dataset_infos.json": "infos", ".gitattributes": "attributes"}
    for revision, files in (("old", {"data/train-0.jsonl": "a"}), ("new", {
            "data/train-0.jsonl": "a", "data/train-1.jsonl": "b", "en/train-0.jsonl": "c"})):
        for name, blob in {**files, **cards}.items():
            path = root / "snapshots" / revision / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(os.path.relpath(root / "blobs" / blob, path.parent))
    (root / "refs/main").write_text("new")
    (folder / "v.json").write_text(pack_corpus.small_vocabulary())
    return pack_corpus.Packing(folder)


def the_snapshot_of_refs_main_is_taken(folder):
    packing = make_cache(folder)
    options = ("--tokenizer", "v.json")
    said = packing.pack("truth", str(ROOT / "snapshots/new"), *options)
    expect("takes" not in said, said)
    truth = packing.outputs("truth")
    for k, name in enumerate((ROOT, f"{ROOT}/", ROOT / "snapshots", f"{ROOT}/snapshots/", "hub", f"{folder}/hub/datasets--*")):
        said = packing.pack(f"p{k}", str(name), *options)
        expect(f"{ROOT}/snapshots/new" in said and "old" not in said, said)
        found = packing.outputs(f"p{k}")
        expect(found[".bin"] == truth[".bin"], f"{name}: {said}")
        expect(f"{ROOT}/snapshots/new/en/train-0.jsonl".encode() in found[".tmi"], f"{name}: the names of its inputs")
        expect(found == truth or str(name).startswith("/"), name)
    (folder / ROOT / "refs/main").write_text("old\n")
    packing.pack("old", str(ROOT), *options)
    expect(b"train-1" not in packing.outputs("old")[".tmi"], "the old revision")


def which_snapshot_must_be_clear(folder):
    packing = make_cache(folder)
    options = ("--tokenizer", "v.json")

    def refused(says, name=ROOT):
        said = packing.pack("p", str(name), *options, code=BAD_INPUT)
        expect(says in said and not packing.outputs("p"), said)

    main = folder / ROOT / "refs/main"
    main.write_text("gone")
    refused("snapshots/gone: No such file")
    main.write_text("")
    refused("contains no files")
    main.unlink()
    main.write_text("0" * 200)
    refused("refs/main: does not name a snapshot")
    main.unlink()
    refused(f"has 2 snapshots, and no refs/main names one: give the folder of one, such as {ROOT}/snapshots/new")
    refused("has 2 snapshots, and no refs/main names one", ROOT / "snapshots")
    for path in sorted((folder / ROOT / "snapshots/old").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder / ROOT / "snapshots/old").rmdir()
    said = packing.pack("p", str(ROOT), *options)
    expect(f"takes {ROOT}/snapshots/new" in said, said)


def other_folders_with_these_names_are_folders(folder):
    packing = make_cache(folder)
    for place in ("x/snapshots/a", "y/blobs", "y/refs"):
        (folder / place).mkdir(parents=True)
        (folder / place / "t.jsonl").write_text('{"text": "x"}\n')
    (folder / "y/snapshots").write_text('{"text": "y"}\n')
    for k, (name, n) in enumerate((("x", 1), ("x/snapshots", 1), ("y", 3))):
        said = packing.pack(f"q{k}", name, "--tokenizer", "v.json")
        expect("takes" not in said and f"{n} document" in said, said)


if __name__ == "__main__":
    sys.exit(run_in_folders("pack_hub_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make.py FOLDER - makes the files of a release that every later version must read, with the programs in TOKMAP_BUILD:
run it once for a release, with its own programs. The inputs are fixed, so the same version makes the same bytes.

contents.txt lists the datasets and loaders, expected.txt has what tool_release must print for it, run.txt has the
documents of each row of the run of run.ledger; lists.ledger is of another run; chats.txt has the labels and lanes of rows of
the dataset chats, which has roles; and SHA256SUMS the checksum of each file. huge.bin, 8 GiB of zeros without blocks on the disk, is not kept: test_release.py makes it."""

import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

BUILD = pathlib.Path(os.environ["TOKMAP_BUILD"]).resolve()
WORK = pathlib.Path("/tmp/tokmap-release")  # its path is in the plan
HUGE_LENGTHS = [1, 0, 2**32 + 1] + [2] * 100
LOADERS = """\
loader full next=24 seed=1 length=16 rows=4 ranks=2 source=lines:1:0:0
loader none next=12 seed=2 length=16 rows=3 ranks=1 shuffle=1 source=texts:0:2:0
loader block next=120 seed=3 length=8 rows=5 ranks=2 shuffle=2 block_windows=7 group_blocks=3 source=lines:1:0:0
loader default_blocks next=64 seed=4 length=64 rows=2 ranks=2 parts=15 shuffle=2 source=long:1:0:0 source=wide:1:0:0
loader within next=297 seed=5 length=8 rows=3 ranks=3 parts=15 windows=1 source=lines:1:2:0
loader offsets next=50 seed=6 length=10 rows=5 ranks=1 parts=15 random_offset=1 source=wide:1:0:0
loader mixture next=150 seed=18446744073709551615 length=12 rows=5 ranks=2 parts=15 source=lines:0.7:0:0 \
source=wide:0.2:0:1 source=lines+texts:0.1:9:0 phase=50:0.2,0.3,0.5 phase=125:1,0,0.33333
loader skipping next=30 seed=9 length=12 rows=3 ranks=2 source=lines:1:2:0 skip=24-30 skip=33-34 skip=40-200
loader packed next=24 seed=10 length=24 rows=4 ranks=2 parts=15 windows=2 align=4 max_documents=3 \
source=lines:2:0:0 source=joined+texts:1:0:1
loader packed_blocks next=8 seed=11 length=64 rows=2 ranks=2 parts=15 windows=2 whole_documents=2 shuffle=2 \
group_blocks=3 source=lines:1:9:0
loader joined next=90 seed=8 length=32 rows=3 ranks=2 parts=15 source=joined:1:0:0
loader listed next=48 seed=12 length=16 rows=4 ranks=2 parts=15 source=lines:1:0:0 list=700:611:1 \
source=long+joined:1:0:0 list=90:7:0 order=300:37:101
loader ordered next=24 seed=13 length=24 rows=4 ranks=1 parts=15 windows=2 align=4 source=lines:1:0:0 order=500:77:200
""".replace("\\\n", "")


def run(name, *arguments, stdin=""):
    done = subprocess.run([BUILD / name, *arguments], input=stdin, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def write(name, data):
    (WORK / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    os.utime(WORK / name, ns=(10**18, 10**18))


def words(n, seed):
    """n words, without a random module that may change."""
    for _ in range(n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        yield ("tokmap", "reads", "every", "file", "of", "each", "release", "Größe", "七転び", "\U0001F40D")[(seed >> 33) % 10]


def sentences(n, seed):
    every = list(words(16 * n, seed))
    return [" ".join(every[16 * i:16 * i + 2 + i * 7 % 5]) for i in range(n)]


def make_inputs():
    write("a.txt", "\n".join(sentences(30, 1)))
    write("empty.txt", "")
    write("ü b.txt", "one more\n")
    write("lines.txt", "".join(line + "\n" for line in sentences(1500, 2)))
    write("lines2.txt", "".join(line + "\n" for line in sentences(200, 3)))
    rows = []
    for i, line in enumerate(sentences(700, 4)):
        rows.append({"text": line if i % 50 else "", "score": None if i % 9 == 4 else i / 8 - 3, "year": 2026 - i * 10**15,
                     "lang": ("en", "de", None)[i % 3], "page": "page %d of ü" % (i % 300), "url": "https://%d" % i,
                     "some": i if i % 2 else None, "none": None})
    write("meta.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    head = b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<u2', 'fortran_order': False, 'shape': (300,), }".ljust(117) + b"\n"
    write("array.npy", head + struct.pack("<300H", *((i * i) % 1009 if i % 13 else 7 for i in range(300))))
    write("borderless.u4", struct.pack("<50I", *(i * 90001 % 2**24 for i in range(50))))


def make_datasets():
    run("tokmap", "pack", "-q", "a.txt", "empty.txt", "ü b.txt", "-o", "texts")
    run("tokmap", "pack", "-q", "--lines", "lines.txt", "-o", "lines")
    run("tokmap", "pack", "-q", "--lines", "empty.txt", "-o", "nothing")
    run("tokmap", "pack", "-q", "meta.jsonl", "--meta", "score,year,lang,page,url,some,none", "-o", "values")
    run("tokmap", "index", "-q", "array.npy", "--eod", "7")
    run("tokmap", "index", "-q", "borderless.u4", "--dtype", "u32", "--eod", "none")
    run("tool_make_dataset", stdin="write 70000 69999 wide\nend\nend\nids 69999 0 1\nend\nvaried 150 20\ninput 5 77 x61\n"
        "documents 3 0\ndocuments 1 400\ninput 0 0 xc3bc\nmetadata {\"of\":\"tool\"}\n")
    run("tool_make_dataset", stdin="write 300 none long\ndocuments 1 20000\ndocuments 2 100\n")
    run("tokmap", "plan", "-q", "--lines", "lines2.txt", "a.txt", "--split", "held=0.2", "--cell-size", "2500",
        "--cells", "cells", "-o", "run.plan")
    run("tokmap", "pack", "-q", "--plan", "run.plan")
    run("tokmap", "join", "-q", "run.plan", "-o", "joined")
    run("tokmap", "merge", "-q", "joined", "texts", "-o", "merged")
    with open(WORK / "huge.bin", "wb") as f:
        f.truncate(2 * sum(HUGE_LENGTHS))
    run("tool_make_dataset", stdin="adopt 2 0 %d 10 none huge.bin\n" % sum(HUGE_LENGTHS) +
        "".join("documents 1 %d\n" % n for n in HUGE_LENGTHS))


def make_states(contents):
    (WORK / "states").mkdir()
    run("tool_release", stdin=contents.replace("\nloader ", "\nsave ").replace("loader ", "save ", 1))


def start(tokmap, *weights, **options):
    return tokmap.Loader(list(zip(("lines", "texts"), weights)), 16, 4, seed=1, shuffle="block",
                         order=tokmap.Order(block_windows=3),
                         ledger="run.ledger", **options)


def second_start(tokmap):
    """The run of run.ledger, after its third step."""
    loader = start(tokmap, 0.5, 0.5, resume=tokmap.Resume(on_mismatch="amend", amend_from="run.ledger"))
    loader.restore(pathlib.Path("states/of_ledger").read_bytes())
    return loader


def start_listed(tokmap):
    """The run of lists.ledger."""
    listed = tokmap.DocumentList([i * 611 % 1500 for i in range(700)], keeps_rest=True)
    source = tokmap.Source("lines", document_list=listed, window_list=[i * 37 % 101 for i in range(300)])
    return tokmap.Loader(source, 16, 4, seed=1, ledger="lists.ledger")


def rows_of_run(tokmap):
    """The run of run.ledger, as text."""
    run = tokmap.Run("run.ledger")
    return "".join("%d %d %s\n" % (step, row.sample, " ".join(str(one.number) for one in run.documents(row)))
                   for step in range(5) for row in run.step(step))


def make_ledger():
    """Of a run that was stopped, and went on with other weights."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    import package  # noqa: F401
    import tokmap
    with start(tokmap, 0.75, 0.25) as loader:
        for _ in range(3):
            next(loader)
        write("states/of_ledger", loader.state())
    with second_start(tokmap) as loader:
        for _ in range(2):
            next(loader)
    write("run.txt", rows_of_run(tokmap))
    with start_listed(tokmap) as loader:
        for _ in range(3):
            next(loader)
        write("states/of_lists", loader.state())


def make_chats():
    """A dataset with roles, and lanes of its tokens."""
    import numpy as np
    import tokmap
    rows = []
    for i, line in enumerate(sentences(120, 5)):
        rows.append({"p": [{"text": line, "train": False}, {"text": " think " * (i % 4), "train": True, "role": "think"},
                           {"text": " answer %d" % i, "train": True, "role": "assistant"}, {"text": "call", "train": False, "role": "tool"}]})
    write("chats.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    run("tokmap", "pack", "-q", "chats.jsonl", "--parts", "p", "--roles", "assistant,think,tool", "-o", "chats")
    ds = tokmap.open("chats")
    at = np.arange(ds.n_tokens)
    ds.add_lane("weight", (at % 8 / 8).astype("f2"), about={"attention": "within documents", "by": "make.py"})
    ds.add_lane("topk", (at[:, None] * 7 + np.arange(3)).astype("u4"), goes_with="input")


def rows_of_chats(tokmap):
    """Labels and lanes of rows, as text."""
    found = []
    for windows in ("concat", "best_fit"):
        for roles in (None, ("think",), ("assistant", "tool")):
            loader = tokmap.Loader("chats", 24, 2, seed=3, windows=windows, outputs=["labels", "loss_weight", "lane:topk"],
                                   rows=tokmap.Rows(train_roles=roles, loss_weight="weight"))
            found.append("%s %s %s" % (windows, roles, loader.state().hex()))
            for _ in range(4):
                batch = next(loader)
                for labels, weights, topk in zip(*(one.tolist() for one in batch)):
                    found += [" ".join("%d:%g:%d,%d,%d" % (label, weight, *three) for label, weight, three in zip(labels, weights, topk))]
    return "\n".join(found) + "\n"


def main(folder):
    WORK.mkdir()
    os.chdir(WORK)
    make_inputs()
    make_datasets()
    make_states(LOADERS)
    make_ledger()
    make_chats()
    import tokmap
    write("chats.txt", rows_of_chats(tokmap))
    names = sorted(path.stem for path in WORK.glob("*.tmi"))
    contents = "".join("dataset %s\n" % name for name in names) + LOADERS
    write("contents.txt", contents)
    write("expected.txt", run("tool_release", stdin=contents))
    for path in [*WORK.glob("*.txt"), *WORK.glob("*.jsonl"), WORK / "huge.bin", *WORK.glob("cells/*.lock")]:
        if path.name not in ("contents.txt", "expected.txt", "run.txt", "chats.txt"):
            path.unlink()
    files = sorted(path for path in WORK.rglob("*") if path.is_file())
    write("SHA256SUMS", "".join("%s  %s\n" % (hashlib.sha256(path.read_bytes()).hexdigest(), path.relative_to(WORK))
                                for path in files))
    shutil.move(WORK, folder)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve())

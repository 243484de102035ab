# SPDX-License-Identifier: Apache-2.0
"""A corpus with a plan that an engine is to pack, what packing it without a plan gives, and kills at random."""

import base64
import functools
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/pack"))

from marked import environment_of, send  # noqa: E402
from pack_corpus import has_pyarrow, has_zstd, small_vocabulary  # noqa: E402
from ref_reader import KIND_DOCUMENTS, KIND_METADATA, section_of  # noqa: E402
from ref_protocol import BUILD, Skip, expect, expect_equal, program, run_in_folders, tests_of_script  # noqa: E402

# make test-engines: all checks pack the same corpus, and say what the result is.
IS_ENGINES = "TOKMAP_ENGINES" in os.environ
EVERYTHING = ("jsonl", "zst", "parquet")


def texts(rng, n_bytes):
    """Texts whose words occur once, so that packing takes its time: half a kilobyte on average, some long."""
    while n_bytes > 0:
        size = rng.choice([0, 30, 200, 400, 800, 1500])
        if rng.random() < 0.001:
            size *= 100
        n_bytes -= size + 1
        yield base64.b64encode(rng.randbytes(size * 3 // 4)).decode().replace("+", " ")


def write_corpus(folder, megabytes, kinds):
    """Of the kinds in equal parts: two files of JSON lines, three with zstd, a Parquet file of many pages."""
    rng, n_bytes = random.Random(17), int(megabytes * 1e6 / len(kinds))
    folder.mkdir()
    if "jsonl" in kinds:
        for name, share in (("a.jsonl", 0.8), ("b.jsonl", 0.2)):
            with open(folder / name, "w") as out:
                for text in texts(rng, share * n_bytes):
                    out.write(json.dumps({"text": text}) + "\n")
    if "zst" in kinds:
        import pyarrow
        for name in ("c.jsonl.zst", "d.jsonl.zst", "e.jsonl.zst"):
            lines = "".join(json.dumps({"text": text}) + "\n" for text in texts(rng, n_bytes / 3))
            (folder / name).write_bytes(pyarrow.compress(lines.encode(), "zstd", asbytes=True))
    if "parquet" in kinds:
        import pyarrow
        import pyarrow.parquet
        table = pyarrow.table({"text": list(texts(rng, n_bytes))})
        pyarrow.parquet.write_table(table, folder / "f.parquet", data_page_size=100_000, row_group_size=20_000,
                                    compression="zstd", use_dictionary=False, write_batch_size=64)


def possible_kinds():
    """Those that this build and this Python can do; plain JSON lines always."""
    return EVERYTHING if has_pyarrow() and has_zstd() else ("jsonl",)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Planned:
    """`folder` has the corpus, the plan, and copies of all recipes. Commands run in `marked`, a Marked."""

    def __init__(self, folder, marked, megabytes=80, n_cells=40, kinds=None):
        self.folder, self.marked = folder, marked
        if IS_ENGINES:
            megabytes = 80
        program("tokmap")
        marked.environment["PATH"] = os.pathsep.join([os.path.abspath(BUILD), marked.environment["PATH"]])
        for path in (ROOT / "docs/recipes").iterdir():
            shutil.copy(path, folder / path.name)
        (folder / "tokenizer.json").write_text(small_vocabulary())
        write_corpus(folder / "corpus", megabytes, kinds or EVERYTHING)
        stored = sum(path.stat().st_size for path in (folder / "corpus").iterdir())
        self.options = ["corpus/", "--tokenizer", "tokenizer.json"]
        self.cut = ["--cell-size", str(stored // n_cells)]
        self.tokmap("pack", "-q", *self.options, "-o", "plain")
        self.wanted = digest(folder / "plain.bin")
        self.identity = self.id_of("plain")
        self.tokmap("plan", *self.options, *self.cut, "--cells", "cells", "-o", "run.plan")
        self.tokmap("plan", *self.options, *self.cut, "--cells", "cells-of-one", "-o", "one.plan")
        self.tokmap("pack", "-q", "--plan", "one.plan", "--task", "0/1")
        self.cells = self.digests("cells-of-one")
        expect(n_cells / 2 <= len(self.cells) <= 2 * n_cells, "%d cells" % len(self.cells))

    def tokmap(self, *arguments, check=True):
        return self.marked.call("tokmap", *arguments, cwd=self.folder, seconds=300, check=check)

    def id_of(self, name):
        return json.loads(self.tokmap("info", "--json", name)[1])["dataset_id"]

    def digests(self, cells):
        """{name of a token file of a cell: digest}"""
        return {path.name: digest(path) for path in sorted((self.folder / cells).glob("*.bin"))}

    def check(self, name="train"):
        """What the engine has packed and joined is what was wanted. Returns a text that says so."""
        expect_equal(self.id_of(name), self.identity, "dataset id")
        expect_equal(self.digests("cells"), self.cells, "digests of the cells' token files")
        self.tokmap("verify", "-q", name)
        self.tokmap("merge", "-q", name, "-o", "flat")
        self.tokmap("verify", "-q", "flat")
        expect_equal(digest(self.folder / "flat.bin"), self.wanted, "digest of the tokens")
        for kind in (KIND_DOCUMENTS, KIND_METADATA):
            wanted = section_of((self.folder / "plain.tmi").read_bytes(), kind)
            for path in (name + ".tmi", "flat.tmi"):
                expect(section_of((self.folder / path).read_bytes(), kind) == wanted, "section %d of %s differs" % (kind, path))
        return "%d cells, dataset %s" % (len(self.cells), self.identity)


class Killer(threading.Thread):
    """`with Killer(marked, seed, n) as killer:` - kills so many processes that pack, at random moments."""

    def __init__(self, marked, seed, n_kills):
        super().__init__(daemon=True)
        self.marked, self.rng, self.left, self.n_kills = marked, random.Random(seed), n_kills, 0
        self.ended = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()

    def run(self):
        while self.left > 0 and not self.ended.is_set():
            time.sleep(self.rng.random() * 0.3)
            pids = [pid for pid in self.marked.pids("tokmap pack") if is_program(pid)]
            if pids and self.rng.random() < 0.6:
                send(self.rng.choice(pids), self.rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
                self.left, self.n_kills = self.left - 1, self.n_kills + 1


def is_program(pid):
    """tokmap itself, not a shell or an engine that has it in its command line."""
    try:
        return pathlib.Path("/proc/%d/comm" % pid).read_text().strip() == "tokmap"
    except OSError:
        return False


def has_variable(pid, text):
    return text.encode() in environment_of(pid)


def need_programs(*names):
    for name in names:
        if not shutil.which(name):
            raise Skip("%s is not installed" % name)


def run_checks(prefix):
    """Runs the tests of the script in folders of their own. Returns the exit status."""
    def shown(test):
        @functools.wraps(test)
        def run(folder):
            note = test(folder)
            if note and IS_ENGINES:
                print("note %s%s: %s" % (prefix, test.__name__, note), flush=True)
            return note

        return run

    return run_in_folders(prefix, [shown(test) for test in tests_of_script(None)])

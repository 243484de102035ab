#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap plan and tokmap pack --plan: the cells of a plan are the same for any number of tasks, in any order, with
tasks that are killed, and together they are what a plain pack writes."""

import fcntl
import gzip
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pack_corpus
import ref_plan
import ref_protocol
import ref_reader
from ref_protocol import NO_LEAK_SEARCH, Skip, expect, expect_equal, tokmap

SANITIZED = bool(os.environ.get("TOKMAP_SANITIZED"))
LONG = os.environ.get("TOKMAP_LONG") == "all"
NUMBERS = (7,) if SANITIZED else (1, 2, 7, 64) if LONG else (1, 7)
for variable in [name for name in os.environ if name.startswith(("SLURM_", "OMPI_", "PMI_", "PMIX_"))]:
    del os.environ[variable]
os.environ["TOKMAP_CHECKPOINT_MS"] = "1"


def dataset_id(folder, prefix):
    return json.loads(tokmap(folder, "info", "--json", prefix))["dataset_id"]


def cell_files(folder, cells="cells"):
    return {path.name: path.read_bytes() for path in (folder / cells).iterdir() if path.suffix != ".lock"}


def metadata_text(index):
    """The metadata in the bytes of an index."""
    return ref_reader.section_of(index, ref_reader.KIND_METADATA).decode()


def joined_metadata(texts, plan):
    """The metadata of a plain pack, from those of the cells in order."""
    sums, heads = {}, set()
    for i, text in enumerate(texts):
        whole = json.loads(text)
        stored = whole.pop("plan")
        expect_equal(stored, {"hash": ref_plan.cell_hash(plan, i), "cell": i, "origin": plan["origin"]}, "the plan in the metadata")
        for name, value in whole.pop("counts").items():
            sums[name] = sums.get(name, 0) + value
        heads.add(text[:text.index(', "counts": {')])
    expect_equal(len(heads), 1, "different metadata of cells")
    return '%s, "counts": %s}' % (heads.pop(), json.dumps(sums))


class Work:
    """A plan, and what a plain pack of the same inputs writes."""

    def __init__(self, folder, inputs, options, cell_bytes):
        self.folder, self.rng = folder, random.Random(17)
        tokmap(folder, "pack", *inputs, *options, "-o", "flat")
        self.arguments = [*inputs, *options, "--cells", "cells", "-o", "run.plan", "--cell-size", str(cell_bytes)]
        tokmap(folder, "plan", *self.arguments)
        self.plan = ref_plan.read_plan((folder / "run.plan").read_bytes())
        self.n_cells = len(self.plan["cells"])
        self.splits = [""] + ["-" + value.decode().split("=")[0] for name, value in self.plan["options"] if name == b"split"]

    def start(self, task, n):
        return subprocess.Popen(
            [ref_protocol.program("tokmap"), "pack", "--plan", str(self.folder / "run.plan"), "--task",
             "%d/%d" % (task, n), "-q", "-j", "2"], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, env={**os.environ, **NO_LEAK_SEARCH})

    def pack(self, n, n_kills):
        """All tasks in random order, two at a time, until each has succeeded; the first ones are killed."""
        todo = self.rng.sample(range(n), n)
        while todo:
            runs = [(task, self.start(task, n)) for task in todo[:2]]
            todo = todo[2:]
            for task, run in runs:
                if n_kills > 0:
                    time.sleep(self.rng.uniform(0.005, 0.25))
                    run.kill()
                    n_kills -= run.wait() == -signal.SIGKILL
                said = run.communicate(timeout=300)[1]
                expect(run.returncode in (0, 75, -signal.SIGKILL), "exit %d: %s" % (run.returncode, said))
                if run.returncode != 0 or self.rng.random() < 0.1:
                    todo.insert(self.rng.randrange(len(todo) + 1), task)

    def check_whole(self):
        """The cells together are the plain pack."""
        files = cell_files(self.folder)
        tokmap(self.folder, "join", "run.plan", "-q", "-o", "joined", "--force")
        for split in self.splits:
            names = ["%06d%s" % (i, split) for i in range(self.n_cells)]
            tokmap(self.folder, "merge", *("cells/%s.tmi" % name for name in names), "-q", "-o", "merged" + split, "--force")
            flat, merged = "flat" + split, "merged" + split
            for name in (merged, "joined" + split):
                expect_equal(dataset_id(self.folder, name), dataset_id(self.folder, flat), "dataset id of " + name)
            expect((self.folder / (merged + ".bin")).read_bytes() == (self.folder / (flat + ".bin")).read_bytes(), flat)
            if b"meta" in dict(self.plan["options"]):
                expect_equal(tokmap(self.folder, "cat", merged, "--meta"), tokmap(self.folder, "cat", flat, "--meta"), "values")
            texts = [metadata_text(files[name + ".tmi"]) for name in names]
            wanted = metadata_text((self.folder / (flat + ".tmi")).read_bytes())
            expect_equal(joined_metadata(texts, self.plan), wanted, "metadata of the cells")
            joined = (self.folder / ("joined%s.tmi" % split)).read_bytes()
            expect_equal(metadata_text(joined), wanted, "metadata of the joined dataset")

    def check_numbers(self, n_kills=4):
        wanted = None
        for n in NUMBERS:
            shutil.rmtree(self.folder / "cells", ignore_errors=True)
            self.pack(n, n_kills)
            files = cell_files(self.folder)
            expect(not any("partial" in name or "replaced" in name for name in files), "left: %s" % sorted(files))
            if wanted is None:
                self.check_whole()
                wanted = files
            expect(files == wanted, "with %d tasks, cells differ: %s" % (
                n, sorted(name for name in {**files, **wanted} if files.get(name) != wanted.get(name))))
        return "%d cells" % self.n_cells


def write_corpus(folder, scale=2, **text_files):
    return pack_corpus.write_inputs(folder, random.Random(5), scale, **text_files)


# ---- The same for any number of tasks ----


def a_mixed_folder_is_the_same_for_any_number_of_tasks(folder):
    options = ["--on-error", "skip", "--split", "v=0.1", "--split", "t=0.3", "--tokenizer", "vocabulary.json"]
    work = Work(folder, write_corpus(folder), options, 60000)
    expect(work.n_cells >= 15, "%d cells" % work.n_cells)
    return work.check_numbers()


def texts_are_the_same_for_any_number_of_tasks(folder):
    options = ["--split", "v=0.5", "--tokenizer", "vocabulary.json"]
    return Work(folder, write_corpus(folder, text_files=True), options, 1000).check_numbers()


def fields_are_the_same_for_any_number_of_tasks(folder):
    names = pack_corpus.with_fields(write_corpus(folder))
    options = ["--on-error", "skip", "--meta", "id", "--where", "id >= 20 or id < 5", "--split", "v=0.5"]
    return Work(folder, names, options, 60000).check_numbers()


def rows_are_the_same_for_any_number_of_tasks(folder):
    names = pack_corpus.with_fields(write_corpus(folder))
    work = Work(folder, names, ["--on-error", "skip", "--meta", "@row,id", "--where", "@row > 3"], 40000)
    cut = {name for (which, offset, _) in work.plan["cells"] if offset for name in [work.plan["inputs"][which][2]]}
    expect(cut <= {b"parquet"}, "@row is wanted, but these were cut: %s" % cut)
    return work.check_numbers()


def compressed_lines_are_the_same_for_any_number_of_tasks(folder):
    if not (shutil.which("zstd") and pack_corpus.has_zstd()):
        raise Skip("zstd is not installed")
    (folder / "in").mkdir()
    (folder / "in/deep").mkdir()
    rng = random.Random(8)
    for i in range(12):
        name = "in/%s%d.jsonl" % ("deep/" if i % 2 else "", i)
        lines = [json.dumps({"text": "word " * rng.randrange(300)}) for _ in range(rng.randrange(60))]
        (folder / name).write_text("\n".join(lines))
        if i % 3:
            subprocess.run(["zstd", "-q", "--rm", name], cwd=folder, check=True)
    return Work(folder, ["in"], ["--split", "v=0.2"], 9000).check_numbers()


def odd_lines_are_the_same_in_cells(folder):
    """Byte order marks, carriage returns, blank lines and bytes that are not UTF-8 at the beginnings of cells."""
    rng = random.Random(10)
    odd = [b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2, b"\n", b"\r\n", b" \n\t\n", b" ", b"\xff"]
    ends = [b"\n", b"\r\n", b"\n\n", b" \n"]
    for name, make in (("a.txt", lambda: b"x" * rng.randrange(60)),
                       ("b.jsonl", lambda: b'{"text": "%s"}' % (b"y" * rng.randrange(60)))):
        lines = b"".join(rng.choice(odd) + make() + rng.choice(ends) for _ in range(300))
        (folder / name).write_bytes(b'{"text": ""}\n' + lines)
        for path in [*folder.glob("flat*"), *folder.glob("joined*")]:
            path.unlink()
        shutil.rmtree(folder / "cells", ignore_errors=True)
        options = ["--lines"] if name == "a.txt" else ["--format", "jsonl"]
        work = Work(folder, [name], [*options, "--on-error", "skip"], 250)
        pack_all(folder, "-q")
        work.check_whole()
        (folder / "run.plan").unlink()


# ---- The plan ----


def expected_cells(inputs, cell_bytes):
    """The rule again: inputs are (size, the offsets where it may be cut)."""
    cells, used = [(0, 0)], 0
    for i, (size, cuts) in enumerate(inputs):
        if used + size > cell_bytes and used > 0 and not (cuts and used < cell_bytes):
            cells.append((i, 0))
            used = 0
        begin = 0
        while cuts and size - begin > cell_bytes - used:
            place = next((cut for cut in cuts if cut >= begin + cell_bytes - used and cut > begin), None)
            if place is None:
                break
            cells.append((i, place))
            begin, used = place, 0
        used += size - begin
    return cells


def cells_are_filled_in_order(folder):
    rng = random.Random(9)
    for trial in range(12):
        inputs, names = [], []
        for i in range(rng.randrange(1, 9)):
            name = "%d-%d" % (trial, i)
            if rng.random() < 0.3 and pack_corpus.has_zlib():
                text = rng.randbytes(rng.choice((1, 300, 3000))).hex()
                data = gzip.compress(b'{"text": "%s"}' % text.encode(), mtime=0)
                inputs.append((len(data), []))
            else:
                lines = [b'{"text": "%s"}\n' % (b"y" * rng.choice((0, 3, 100, 1500))) for _ in range(rng.randrange(60))]
                data = b"".join(lines)
                ends = [sum(map(len, lines[:k + 1])) for k in range(len(lines))]
                inputs.append((len(data), [end for end in ends if end < len(data)] or [0][:len(data) == 0]))
            (folder / name).write_bytes(data)
            names.append(name)
        size = rng.choice((100, 1000, 3000))
        tokmap(folder, "plan", "-q", *names, "--cells", "c", "-o", "plan", "-f", "--cell-size", str(size))
        plan = ref_plan.read_plan((folder / "plan").read_bytes())
        sizes = [(size, [] if form == b"auto" else cuts) for (_, _, form, _), (size, cuts) in zip(plan["inputs"], inputs)]
        expect_equal([cell[:2] for cell in plan["cells"]], expected_cells(sizes, size), "cells of trial %d" % trial)


def the_order_of_the_file_system_makes_no_difference(folder):
    texts = []
    for name, order in (("one", range(20)), ("two", range(19, -1, -1))):
        (folder / name / "in").mkdir(parents=True)
        for i in order:
            path = folder / name / "in" / ("%d.txt" % i)
            path.write_text("text " * i)
            os.utime(path, ns=(10**18, 10**18))
        for _ in range(2):  # the second one must not find the files of the first
            tokmap(folder / name, "plan", "in", "--cells", "in/cells", "-o", "in/plan", "--cell-size", "100", "--force")
            tokmap(folder / name, "pack", "--plan", "in/plan", "--task", "0/2", "-q")
        texts.append((folder / name / "in/plan").read_text().split("\n"))
    different = [(a, b) for a, b in zip(*texts) if a != b]
    expect_equal([a.split(" ")[0] for a, _ in different], ["folder", "checksum"], "lines that differ")


def what_cannot_be_planned_is_refused(folder):
    (folder / "a.txt").write_text("text")
    os.mkfifo(folder / "pipe")
    for arguments, said in [(["-"], "can be read by several processes"), (["pipe"], "can be read by several processes"),
                            (["a.txt", "--limit-documents", "3"], "no limit"), (["a.txt", "--limit-tokens", "3"], "no limit"),
                            (["a.txt", "--cells", "."], "must not be"),
                            (["a.txt", "--field", "\\" * 20000], "longer than")]:
        got = tokmap(folder, "plan", "--cells", "cells", "-o", "plan", *arguments, code=2)
        expect(said in got, "%s: it said %s" % (arguments, got))
    expect_equal(sorted(path.name for path in folder.iterdir()), ["a.txt", "pipe"], "files")
    tokmap(folder, "plan", "a.txt", "--cells", "cells", "-o", "a.txt", "--force", code=2)
    tokmap(folder, "plan", "a.txt", "--cells", "cells", "-o", "plan")
    tokmap(folder, "plan", "a.txt", "--cells", "cells", "-o", "plan", code=5)
    (folder / "b.jsonl").write_text('{"text": "a"}\n')
    said = tokmap(folder, "plan", "a.txt", "b.jsonl", "--cells", "cells", "-o", "mixed", code=3)
    expect("a.txt: is text, but b.jsonl has records" in said and not (folder / "mixed").exists(), said)
    for arguments in (["a.txt"], ["-o", "x"], ["--field", "x"], ["--split", "v=0.5"], ["--dry-run"], ["--task", "1/1"],
                      ["--task", "0/0"], ["--task", "x"], ["--task", "-1/2"], ["--task", "0/4294967297"], ["--max-document", "9M"]):
        tokmap(folder, "pack", "--plan", "plan", *arguments, code=2)
    tokmap(folder, "pack", "a.txt", "-o", "x", "--task", "0/1", code=2)
    tokmap(folder, "pack", "--plan", "plan", "--memory", "64M")


def large_inputs_that_stay_in_one_cell_are_named(folder):
    line = '{"text": "%s"}\n' % ("x" * 1989)
    pack_corpus.write_tar(folder / "a.tar", lambda n, bad: [line], lambda n: line, 1)
    compressed = gzip.compress(random.Random(1).randbytes(2002).hex().encode())
    for name, data, options, why in [("a.jsonl", line[1:], ["--lines"], None), ("a.jsonl", line, [], "there is no place to cut it"),
                                     ("a.jsonl", line, ["--meta", "@row"], "@row is wanted, so its lines must be counted"),
                                     ("a.txt", line, ["--format", "text"], "its format is text"),
                                     ("a.gz", compressed, [], "it is compressed with gzip"), ("a.tar", None, [], "it is a tar archive")]:
        if data:
            (folder / name).write_bytes(data if name == "a.gz" else data.encode())
        if name != "a.gz" or pack_corpus.has_zlib():
            said = tokmap(folder, "plan", name, *options, "--cells", "cells", "-o", "plan", "-f", "--cell-size", "1000")
            expect("stay in one cell: %s" % why in said if why else "one cell" not in said, "%s %s: %s" % (name, options, said))


# ---- Tasks ----


def small_work(folder, cell_bytes=2000, options=()):
    for i in range(6):
        (folder / ("%d.jsonl" % i)).write_text("".join('{"text": "%d %s"}\n' % (k, "word " * (k % 40)) for k in range(30)))
    return Work(folder, ["*.jsonl"], ["--split", "v=0.3", *options], cell_bytes)


def pack_all(folder, *arguments, **keywords):
    return tokmap(folder, "pack", "--plan", "run.plan", *arguments, **keywords)


def changes_are_named_before_anything_is_written(folder):
    (folder / "vocabulary.json").write_text(pack_corpus.small_vocabulary())
    small_work(folder, options=["--tokenizer", "vocabulary.json"])
    changes = {"3.jsonl: has changed": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
               "3.jsonl: was modified": lambda path: os.utime(path, (1, 1)),
               "3.jsonl: No such file": lambda path: path.unlink()}
    path = folder / "3.jsonl"
    data, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
    for said, change in changes.items():
        change(path)
        got = pack_all(folder, code=3 if "No such" in said else 4)
        expect(said in got, got)
        expect(not (folder / "cells").exists(), "something was written")
        path.write_bytes(data)
        os.utime(path, ns=times)
    times_of = {name: (folder / name).stat().st_mtime_ns for name in ("2.jsonl", "3.jsonl", "4.jsonl")}
    for name in times_of:
        os.utime(folder / name, (1, 1))
    got = pack_all(folder, code=4)
    expect_equal([got.count(name + ": was modified") for name in times_of], [1, 1, 1], "all at once; it said " + got)
    for name, time_ns in times_of.items():
        os.utime(folder / name, ns=(time_ns, time_ns))
    vocabulary = (folder / "vocabulary.json").read_text()
    (folder / "vocabulary.json").write_text(vocabulary.replace('"12"', '"zz"').replace('"1", "2"', '"z", "z"') + " ")
    got = pack_all(folder, code=4)
    expect("checksum of the tokenizer was" in got and not (folder / "cells").exists(), got)
    (folder / "vocabulary.json").write_text(vocabulary)
    text = (folder / "run.plan").read_text()
    (folder / "run.plan").write_text(text.replace("cell-size 2000", "cell-size 2001"))
    expect("run.plan:%d: wrong checksum" % text.count("\n") in pack_all(folder, code=3), "an edited plan")
    none = "".join(line for line in text.splitlines(True)[:-1] if not line.startswith("fact "))
    (folder / "run.plan").write_bytes(ref_plan.signed(none.encode()))
    expect("not what the plan was made with" in pack_all(folder, code=4), "a plan without facts")
    (folder / "run.plan").write_text(text)
    pack_all(folder)
    path.unlink()
    pack_all(folder)  # tasks that need not read it do not mind


def cells_that_are_not_of_the_plan_are_named(folder):
    work = small_work(folder)
    pack_all(folder, "-q")
    wanted = cell_files(folder)
    tokmap(folder, "plan", "*.jsonl", "--split", "v=0.3", "--bos", "7", "--cells", "other", "-o", "other.plan", "--cell-size", "2000")
    tokmap(folder, "pack", "--plan", "other.plan", "-q")
    other, cells = folder / "other", folder / "cells"
    damages = {
        "000002.tmi: was packed for another plan": lambda: copy_cell(other, "000002", cells, "000002"),
        "000002.tmi: is cell 000001 of a plan": lambda: copy_cell(cells, "000001", cells, "000002"),
        "000002-v.tmi: is cell 000001 of a plan": lambda: copy_cell(cells, "000001-v", cells, "000002-v"),
        "000002.tmi: is the dataset of another split": lambda: copy_cell(cells, "000002-v", cells, "000002"),
        "000002-v.tmi: is the dataset of another split": lambda: copy_cell(cells, "000002", cells, "000002-v"),
        "000002.tmi: was not packed for a plan": lambda: tokmap(folder, "pack", "1.jsonl", "-o", "cells/000002", "-qf"),
        "000002.bin": lambda: (cells / "000002.bin").unlink(),
        "000002-v.tmi": lambda: (cells / "000002-v.tmi").unlink(),
        "000002.tmi": lambda: (cells / "000002.tmi").write_bytes(wanted["000002.tmi"][:-1]),
    }
    for said, damage in damages.items():
        damage()
        got = pack_all(folder, code=4)
        expect(said in got, "%s: it said %s" % (said, got))
        status = json.loads(tokmap(folder, "status", "--json", "run.plan", code=4))
        expect_equal([failure["cell"] for failure in status["failures"]], [2], "failures")
        expect(said in status["failures"][0]["why"], status["failures"][0]["why"])
        pack_all(folder, "--force", "-q")
        expect(cell_files(folder) == wanted, "%s: the files after --force" % said)
    expect_equal(work.n_cells, len([name for name in wanted if re.fullmatch(r"\d+\.tmi", name)]), "cells")


def copy_cell(source, a, target, b):
    for suffix in (".bin", ".tmi"):
        shutil.copy(source / (a + suffix), target / (b + suffix))


def kill_in_the_first_cell(folder, plan):
    for _ in range(40):
        run = subprocess.Popen([ref_protocol.program("tokmap"), "pack", "-q", "--plan", plan], cwd=folder,
                               env={**os.environ, **NO_LEAK_SEARCH, "TOKMAP_CHECKPOINT_MS": "0"})
        pack_corpus.wait_for(run, lambda: pack_corpus.n_bytes(folder / "cells/000000.tmj.partial") > 2000)
        run.kill()
        if run.wait() == -signal.SIGKILL and not (folder / "cells/000000.tmi").exists():
            return
        shutil.rmtree(folder / "cells")
    raise Skip("too fast to be killed")


def unfinished_cells_of_another_plan_are_named(folder):
    small_work(folder, 10**6)
    tokmap(folder, "plan", "*.jsonl", "--split", "v=0.3", "--bos", "7", "--cells", "cells", "-o", "other.plan")
    kill_in_the_first_cell(folder, "other.plan")
    expect("an unfinished run of another plan" in pack_all(folder, code=4), "refused")
    expect_equal(json.loads(tokmap(folder, "status", "--json", "run.plan", code=4))["failed"]["n_cells"], 1, "failed")
    expect_equal(json.loads(tokmap(folder, "status", "--json", "other.plan"))["unfinished"]["n_cells"], 1, "unfinished")
    pack_all(folder, "--force", "-q")
    expect_equal(dataset_id(folder, "cells/000000"), dataset_id(folder, "flat"), "dataset id")


def a_cell_that_another_process_packs_is_left_to_it(folder):
    work = small_work(folder)
    (folder / "cells").mkdir()
    with open(folder / "cells/000001.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        got = pack_all(folder, code=75)
        expect("cell 000001: being packed by another process" in got, got)
        status = json.loads(tokmap(folder, "status", "--json", "run.plan"))
        expect_equal((status["done"]["n_cells"], status["left"]["n_cells"]), (work.n_cells - 1, 1), "done and left")
    expect("1 cell packed, %d done before" % (work.n_cells - 1) in pack_all(folder), "the second time")
    work.check_whole()
    expect(not list((folder / "cells").glob("*.lock")), "a lock is left")


def a_task_reports_what_its_cells_left_out(folder):
    """The report of a task has the places by cell, in files of which only a part is a cell; status has the counts."""
    bad = ["bad", "worse", "wrong", "neither", "nor"]
    lines = ['{"text": "a"}', *(line for one in bad for line in (one, '{"text": "b"}'))]
    (folder / "a.jsonl").write_text("\n".join(lines) + "\n")
    work = Work(folder, ["a.jsonl"], ["--on-error", "skip", "--format", "jsonl"], 15)
    found, counts = [], []
    for task in range(2):
        tokmap(folder, "pack", "--plan", "run.plan", "--task", "%d/2" % task, "-q", "--report", "r%d" % task)
        for cell in json.loads((folder / ("r%d" % task)).read_text())["cells"]:
            found += [(bad["file"], bad["offset"], bad["n_bytes"]) for bad in cell["skipped"]]
            number = int(os.path.basename(cell["datasets"][0]["token_file"]).split(".")[0])
            counts += [{"cell": number, "n_documents": len(cell["skipped"])}] if cell["skipped"] else []
    status = json.loads(tokmap(folder, "status", "--json", "run.plan"))
    expect_equal(status["bad_documents"], sorted(counts, key=lambda one: one["cell"]), "status")
    expect("5 bad documents in %d cells" % len(counts) in tokmap(folder, "status", "run.plan"), "status as text")
    data = (folder / "a.jsonl").read_bytes()
    said = ref_protocol.run_program("tokmap", "join", "run.plan", "-o", "j", cwd=folder).stderr.decode()
    expect(len(counts) > 3, "only %d cells left something out" % len(counts))
    cells = ", ".join("%d in cell %d" % (one["n_documents"], one["cell"]) for one in status["bad_documents"][:3])
    expect_equal(said, "tokmap join: the cells have left out 5 bad documents: %s, ...; tokmap status --json has the "
                 "counts of all cells\n" % cells, "join")
    wanted = [("a.jsonl", data.index(line.encode() + b"\n"), len(line)) for line in bad]
    expect_equal(sorted(found), wanted, "what was left out")
    work.check_whole()


def damaged_cells_are_found_by_verify_and_packed_again(folder):
    work = small_work(folder, options=["--on-error", "skip"])
    with open(folder / "2.jsonl", "a") as out:
        out.write("bad\n")
    tokmap(folder, "plan", "-f", *work.arguments)
    pack_all(folder, "-q")
    wanted, cells = cell_files(folder), folder / "cells"
    head = wanted["000001.tmi"].index(b"created_by")

    def flip(name, at):
        data = bytearray(wanted[name])
        data[at] ^= 1
        (cells / name).write_bytes(data)

    def remove(*names):
        for name in names:
            (cells / name).unlink()

    unseen = {"000001.bin": lambda: flip("000001.bin", 100), "000001.tmi": lambda: flip("000001.tmi", head),
              "000001-v.bin": lambda: flip("000001-v.bin", 9)}
    seen = {"000001.tmi": lambda: remove("000001.tmi", "000001.bin"), "000001.bin: has": lambda: remove("000001.tmi"),
            "000001.bin: No": lambda: remove("000001.bin"),
            "01.tmi: ": lambda: flip("000001.tmi", wanted["000001.tmi"].index(b'"plan"') + 1),
            "000001-v.tmi": lambda: remove("000001-v.tmi")}
    for said, damage, is_seen in [(*one, False) for one in unseen.items()] + [(*one, True) for one in seen.items()]:
        for way in ("--verify", "--force"):
            damage()
            tokmap(folder, "status", "run.plan", code=4 if is_seen else 0)
            got = tokmap(folder, "status", "--verify", "run.plan", code=4)
            expect(said in got and "tokmap pack --plan run.plan --verify" in got, "%s: it said %s" % (said, got))
            got = pack_all(folder, code=4 if is_seen else 0)
            expect(not is_seen or (said in got and "--verify" in got), got)
            expect("1 cell packed, %d done before" % (work.n_cells - 1) in pack_all(folder, way), way)
            expect(cell_files(folder) == wanted, "%s: the files after %s" % (said, way))
    expect("0 cells packed" in pack_all(folder, "--verify"), "sound cells")
    flip("000001.tmi", head)
    said = tokmap(folder, "join", "run.plan", "-o", "joined", code=4)
    expect("tokmap pack --plan run.plan --verify, and --force for cells that are not of this plan" in said, said)


# ---- Updates ----


def cut_off(data):
    return data[:len(data) * 2 // 3]


def overwrite(data):
    """In a Parquet file the text of a page, else what no format has."""
    at = len(data) * 6 // 10
    if data.startswith(b"PAR1"):
        return data.replace(b"row 1201 ", b"row 12__ ")
    return data[:at] + b"\xff" * 600 + data[at + 600:]


def update(folder, code=0):
    said = tokmap(folder, "plan", "--update", "run.plan", "--json", code=code)
    return json.loads(said) if code == 0 else said


def touched_cells(was, now):
    return [i for i in range(len(was["cells"])) if ref_plan.cell_hash(was, i) != ref_plan.cell_hash(now, i)]


def a_repaired_input_changes_only_the_cells_that_read_it(folder):
    pa, pq = ref_protocol.need_parquet()
    names = write_corpus(folder)
    rows = pa.table({"text": ["row %d " % i * (i % 60) for i in range(2000)]})  # a dictionary would be read by plan
    pq.write_table(rows, folder / "h.parquet", data_page_size=2000, use_dictionary=False, compression="snappy",
                   write_batch_size=10, write_page_checksum=True)
    options = ["--on-error", "skip", "--split", "v=0.2", "--tokenizer", "vocabulary.json"]
    good = {name: (folder / name).read_bytes() for name in names}
    work = Work(folder, names, options, 60000)
    for name in names:
        shutil.rmtree(folder / "cells", ignore_errors=True)
        damaged = (overwrite if name.endswith((".arrow", ".parquet", ".tar")) else cut_off)(good[name])
        (folder / name).write_bytes(damaged)
        tokmap(folder, "plan", "-qf", *work.arguments)
        plan = ref_plan.read_plan((folder / "run.plan").read_bytes())
        first = pack_all(folder, "-q", code=0 if name.endswith(".jsonl") else 3)  # a line that was cut is left out
        expect((name in first) != name.endswith(".jsonl"), first)
        before = cell_files(folder)
        (folder / name).write_bytes(good[name])
        expect("tokmap plan --update" in pack_all(folder, code=4), "not updated yet")
        done = update(folder)
        updated = ref_plan.read_plan((folder / "run.plan").read_bytes())
        touched = touched_cells(plan, updated)
        expect_equal((done["n_changed_inputs"], done["n_changed_cells"], updated["origin"]), (1, len(touched), plan["hash"]), name)
        expect(0 < len(touched) < len(updated["cells"]) == len(plan["cells"]), "cells: %s" % touched)
        outdated = any("%06d.tmi" % i in before for i in touched)  # else they are missing
        tokmap(folder, "join", "run.plan", "-o", "joined", "-f", code=4 if outdated else 3)
        status = json.loads(tokmap(folder, "status", "--json", "run.plan"))
        expect_equal((status["left"]["n_cells"], status["failed"]["n_cells"]), (len(touched), 0), name + ": left and failed")
        said = pack_all(folder)
        expect("%d cells packed, %d done before" % (len(touched), len(plan["cells"]) - len(touched)) in
               said.replace("1 cell packed", "1 cells packed"), said)
        after = cell_files(folder)
        kept = [file for file in before if int(file[:6]) not in touched and "partial" not in file]
        expect(kept and all(after[file] == before[file] for file in kept), "cells that were not touched")
        expect_equal(update(folder)["n_changed_inputs"], 0, "a second update")
        expect_equal(ref_plan.read_plan((folder / "run.plan").read_bytes()), updated, "it is left alone")
        tokmap(folder, "join", "run.plan", "-q", "-o", "joined", "--force")
        for split in work.splits:
            tokmap(folder, "merge", "joined" + split, "-q", "-o", "one" + split, "--force")
            wanted = (folder / ("flat%s.tmi" % split)).read_bytes()
            expect_equal(dataset_id(folder, "joined" + split), dataset_id(folder, "flat" + split), "dataset id")
            expect_equal(metadata_text((folder / ("joined%s.tmi" % split)).read_bytes()), metadata_text(wanted), "metadata")
            expect((folder / ("one%s.bin" % split)).read_bytes() == (folder / ("flat%s.bin" % split)).read_bytes(), "tokens")


def an_updated_plan_takes_cells_of_its_earlier_ones(folder):
    work = small_work(folder)
    shutil.copy(folder / "run.plan", folder / "old.plan")
    path, times = folder / "5.jsonl", []
    for _ in range(300 if LONG else 100):  # as many updates as you like
        times.append(path.stat().st_mtime_ns)
        path.write_text(path.read_text() + '{"text": "more"}\n')
        os.utime(path, ns=(times[-1] + 10**9,) * 2)
        update(folder)
    plan = ref_plan.read_plan((folder / "run.plan").read_bytes())
    touched = touched_cells(work.plan, plan)
    expect(touched and plan["origin"] == work.plan["hash"], str(plan["origin"]))
    expect_equal(tokmap(folder, "pack", "--plan", "old.plan", "--task", "0/%d" % work.n_cells, "-q"), "", "with the old plan")
    tokmap(folder, "pack", "--plan", "old.plan", code=4)  # an input has changed
    pack_all(folder, "-q")
    for i in range(work.n_cells):
        stored = json.loads(metadata_text((folder / ("cells/%06d.tmi" % i)).read_bytes()))["plan"]["hash"]
        expect_equal(stored, ref_plan.cell_hash(plan, i), "hash of cell %d" % i)
    tokmap(folder, "pack", "*.jsonl", "--split", "v=0.3", "-o", "flat", "-qf")
    tokmap(folder, "join", "run.plan", "-q", "-o", "joined")
    expect_equal(dataset_id(folder, "joined"), dataset_id(folder, "flat"), "dataset id")
    left = json.loads(tokmap(folder, "status", "--json", "old.plan"))["left"]["n_cells"]
    expect_equal(left, len(touched), "cells that the old plan does not have")
    tokmap(folder, "pack", "--plan", "old.plan", code=4)  # and cannot pack
    expect("0 cells packed" in pack_all(folder), "the cells")


def a_cell_that_was_being_replaced_is_packed_by_the_same_command(folder):
    """Outdated, or damaged with --verify, and killed at each call that names or removes a file, without a checkpoint."""
    lines = ['{"text": "text %d"}\n' % i for i in range(500)]
    (folder / "0.jsonl").write_text(lines[0])
    tokmap(folder, "plan", "0.jsonl", "--cells", "cells", "-qo", "run.plan")
    pack_all(folder, "-q")
    cell, n_kills = folder / "cells/000000.bin", 0

    def write_more():
        (folder / "0.jsonl").write_text("".join(lines[:2 + n_kills]))
        update(folder)

    def damage():
        data = cell.read_bytes()
        cell.write_bytes(bytes([data[0] ^ 1]) + data[1:])

    for prepare, options in ((write_more, []), (damage, ["--verify"])):
        for place in ref_protocol.kills(prepare, "pack", "--plan", "run.plan", "-q", *options, cwd=folder,
                                        env={**os.environ, "TOKMAP_CHECKPOINT_MS": "100000"}):
            pack_all(folder, "-q", *options)
            n_kills += 1
        tokmap(folder, "join", "-qf", "run.plan", "-o", "joined")
        tokmap(folder, "verify", "-q", "joined")
    expect(n_kills > 20, n_kills)
    return f"{n_kills} kills"


def a_new_plan_takes_the_cells_that_are_the_same(folder):
    work = small_work(folder)
    pack_all(folder, "-q")
    path = folder / "5.jsonl"
    path.write_text(path.read_text() + '{"text": "more"}\n')
    tokmap(folder, "plan", "-qf", *work.arguments)
    plan = ref_plan.read_plan((folder / "run.plan").read_bytes())
    status = json.loads(tokmap(folder, "status", "--json", "run.plan", code=4))
    expect_equal((status["failed"]["n_cells"], status["done"]["n_cells"]),
                 (len(touched_cells(work.plan, plan)), work.n_cells - len(touched_cells(work.plan, plan))), "cells")


def inputs_that_are_left_out_change_only_the_cells_that_read_them(folder):
    for name in ("a", "b", "a b"):
        (folder / name).mkdir()
    rng, names = random.Random(3), []
    for i in range(9):
        names.append("%s/%d.jsonl" % (rng.choice(("a", "b", "a b")), i))
        lines = ['{"text": "%d %s"}\n' % (k, "word " * rng.randrange(60)) for k in range(rng.choice((3, 30, 80)))]
        (folder / names[-1]).write_text("".join(lines) + ("bad\n" if i % 2 else ""))
    options = ["--on-error", "skip", "--split", "v=0.3"]
    kept_count = 0
    for trial in range(8 if LONG else 2):
        for path in [*folder.glob("flat*"), *folder.glob("joined*"), *folder.glob("one*"), folder / "run.plan"]:
            path.unlink(missing_ok=True)
        shutil.rmtree(folder / "cells", ignore_errors=True)
        work = Work(folder, names, options, rng.choice((300, 2000, 7000)))
        if rng.random() < 0.3:
            pack_all(folder, "--task", "1/3", "-q")
        else:
            pack_all(folder, "-q")
        before = cell_files(folder)
        skipped = rng.sample(names, rng.choice((1, 1, 2, 4)))
        if trial == 0:
            skipped = names[:3]
        elif trial == 1:
            skipped = names[-2:]
        contents = {name: (folder / name).read_bytes() for name in names}
        for name in skipped[::2]:
            (folder / name).unlink()
        arguments = [argument for name in skipped for argument in ("--skip-input", rng.choice(
            (name, "./" + name, "a/../" + name, str((folder / name).resolve()))))]
        if rng.random() < 0.5:  # and one that is shorter now
            name = rng.choice([name for name in names if name not in skipped])
            (folder / name).write_bytes(contents[name][:contents[name].index(b"\n") + 1])
        for name in skipped[1::2]:
            (folder / name).write_text("no JSON" * 100)
        done = json.loads(tokmap(folder, "plan", "--json", "--update", "run.plan", *arguments))
        plan = ref_plan.read_plan((folder / "run.plan").read_bytes())
        rest = [name for name in names if name not in skipped]
        touched = touched_cells(work.plan, plan)
        expect_equal((done["n_skipped_inputs"], done["n_changed_cells"]), (len(skipped), len(touched)), "counts")
        expect_equal([name for *_, name in plan["inputs"]], [os.fsencode(name) for name in rest], "inputs")
        expect_equal(len(plan["cells"]), work.n_cells, "cells")
        pack_all(folder, "-q")
        after = cell_files(folder)
        kept = [name for name in before if int(name[:6]) not in touched]
        expect(all(after[name] == before[name] for name in kept), "cells that were not touched")
        kept_count += len(kept)
        tokmap(folder, "pack", *rest, *options, "-qf", "-o", "flat")
        work.plan = plan
        work.check_whole()
        tokmap(folder, "join", "run.plan", "-q", "-o", "joined", "--force")
        for split in work.splits:
            tokmap(folder, "merge", "joined" + split, "-q", "-o", "one" + split, "--force")
            expect((folder / ("one%s.bin" % split)).read_bytes() == (folder / ("flat%s.bin" % split)).read_bytes(), "tokens")
            infos = [json.loads(tokmap(folder, "info", "--json", "--inputs", name + split)) for name in ("one", "flat")]
            expect_equal([[one["name"] for one in info["inputs"]] for info in infos][0],
                         [one["name"] for one in infos[1]["inputs"]], "inputs")
        for name, data in contents.items():
            (folder / name).write_bytes(data)
    expect(kept_count > 20, "%d files of cells were kept" % kept_count)
    return "%d files of cells were kept" % kept_count


def whole_inputs_that_are_left_out_leave_the_bytes_of_a_plain_pack(folder):
    """No input is in two cells, so that the joined index has all that the plain one has."""
    if not pack_corpus.has_zlib():
        raise Skip("tokmap has no zlib")
    names = ["%d.jsonl.gz" % i for i in range(7)]
    for i, name in enumerate(names):
        lines = b"".join(b'{"text": "%d %d"}\n' % (i, k) for k in range(200))
        (folder / name).write_bytes(gzip.compress(lines, mtime=0))
    work = Work(folder, names, ["--split", "v=0.3"], 1)
    pack_all(folder, "-q")
    (folder / names[3]).unlink()
    tokmap(folder, "plan", "--update", "run.plan", "--skip-input", names[0], "--skip-input", names[3])
    pack_all(folder, "-q")
    tokmap(folder, "join", "run.plan", "-q", "-o", "joined")
    for split in ("", "-v"):
        tokmap(folder, "merge", "joined" + split, "-q", "-o", "one" + split)
    tokmap(folder, "pack", "-qf", *names[1:3], *names[4:], "--split", "v=0.3", "-o", "flat")
    for name in ("%s.bin", "%s.tmi", "%s-v.bin", "%s-v.tmi"):
        expect((folder / (name % "one")).read_bytes() == (folder / (name % "flat")).read_bytes(), name)
    expect_equal(work.n_cells, 7, "cells")


def unfinished_work_of_an_earlier_plan_is_discarded(folder):
    work = small_work(folder, 10**6)
    path = folder / "3.jsonl"
    kill_in_the_first_cell(folder, "run.plan")
    path.write_text('{"text": "short"}\n')
    expect_equal(update(folder)["n_changed_cells"], work.n_cells, "cells")
    pack_all(folder, "-q")
    tokmap(folder, "pack", "*.jsonl", "--split", "v=0.3", "-o", "flat", "-qf")
    expect_equal(dataset_id(folder, "cells/000000"), dataset_id(folder, "flat"), "dataset id")


def updates_that_cannot_be_made_are_refused(folder):
    small_work(folder, 300)
    before = (folder / "run.plan").read_bytes()
    for name in ("2.jsonl", "4.jsonl"):
        (folder / name).unlink()
    (folder / "3.jsonl").write_bytes(b"\x89PNG\r\n\x1a\n" * 9)
    said = update(folder, code=3)
    for words in ("2.jsonl: No such file", "3.jsonl: ", "4.jsonl: No such file", "3 inputs",
                  "tokmap plan --update run.plan --skip-input INPUT"):
        expect(words in said, said)
    expect((folder / "run.plan").read_bytes() == before, said)
    for arguments in (["0.jsonl"], ["--cells", "x"], ["--field", "x"], ["-o", "x"], ["--skip-input", "x/0.jsonl"],
                      ["--skip-input", "7.jsonl"], ["--skip-input", "0.jsonl", "--skip-input", "0.jsonl"]):
        tokmap(folder, "plan", "--update", "run.plan", *arguments, code=2)
    all_names = [argument for i in range(6) for argument in ("--skip-input", "%d.jsonl" % i)]
    said = tokmap(folder, "plan", "--update", "run.plan", *all_names, code=3)
    expect("no input is left" in said and (folder / "run.plan").read_bytes() == before, said)
    for arguments in (["-o", "x", "0.jsonl"], ["--cells", "x", "0.jsonl"], ["-o", "x", "--cells", "x"]):
        tokmap(folder, "plan", *arguments, code=2)


def an_update_does_not_bring_text_beside_records(folder):
    """Whichever of them has changed, also in an archive; a change of all is taken."""
    records, text = '[{"text": "a"}, {"text": "b"}]', "<html>403 Forbidden</html>\n"

    def write(name, content):
        if name.endswith(".tar"):
            member = tarfile.TarInfo("a.json" if content == records else "a.txt")
            data = (records[1:14] if content == records else text).encode()
            member.size = len(data)
            with tarfile.open(folder / name, "w") as archive:
                archive.addfile(member, io.BytesIO(data))
        else:
            (folder / name).write_text(content)

    for changed, other in (("a.json", "b.json"), ("part.0001", "b.tar"), ("a.tar", "b.json"), ("a.tar", "b.tar")):
        for was, now in ((records, text), ("", text), (text, records)):
            if "part" in changed and records in (was, now):
                continue
            if not was and "tar" in changed:
                continue
            write(changed, was)
            write(other, was or records)
            tokmap(folder, "plan", "-qf", changed, other, "--cells", "cells", "-o", "run.plan")
            before = (folder / "run.plan").read_bytes()
            write(changed, now)
            said = update(folder, code=3)
            expect("is text, but" in said and "has records" in said and "--skip-input" in said, said)
            expect_equal((folder / "run.plan").read_bytes(), before, "the plan")
            write(other, now)
            update(folder)
            tokmap(folder, "plan", "-qf", changed, other, "--cells", "cells", "-o", "again.plan")
            formats = [re.findall(rb"^input \d+ \d+ (\w+)", (folder / name).read_bytes(), re.M) for name in ("run.plan", "again.plan")]
            expect(formats[0] == formats[1] and formats[0], formats)


def names_of_the_plan_work_from_any_folder(folder):
    small_work(folder)
    (folder / "else").mkdir()
    for name in ("3.jsonl", str((folder / "2.jsonl").resolve())):
        tokmap(folder / "else", "plan", "--update", "../run.plan", "--skip-input", name)
    plan = ref_plan.read_plan((folder / "run.plan").read_bytes())
    expect_equal([name for *_, name in plan["inputs"]], [b"0.jsonl", b"1.jsonl", b"4.jsonl", b"5.jsonl"], "inputs")


def inputs_that_changed_after_they_were_packed_are_named(folder):
    work, path = small_work(folder), folder / "3.jsonl"
    pack_all(folder, "-q")
    tokmap(folder, "status", "--verify", "run.plan")
    (folder / "1.jsonl").unlink()
    pack_all(folder)  # what is gone cannot be compared
    tokmap(folder, "status", "--verify", "run.plan")
    said = tokmap(folder, "join", "run.plan", "-o", "joined")
    expect("1 input of the plan cannot be compared" in said and "3.jsonl" not in said, said)
    path.write_text(path.read_text() + '{"text": "more"}\n')
    for arguments in (["pack", "--plan", "run.plan"], ["pack", "-q", "--plan", "run.plan", "--verify"],
                      ["status", "--verify", "run.plan"]):
        said = tokmap(folder, *arguments, code=4)
        expect("3.jsonl: has changed since the plan was made" in said and "tokmap plan --update" in said, said)
    failed = json.loads(tokmap(folder, "status", "--verify", "--json", "run.plan", code=4))["failed"]["n_cells"]
    n_readers = sum(3 in ref_plan.cell_ends(work.plan, i)[0] for i in range(work.n_cells))
    expect_equal(failed, n_readers, "cells that read it")
    tokmap(folder, "status", "run.plan")  # reads only the cells
    said = tokmap(folder, "join", "run.plan", "-o", "joined", "-f")
    expect("3.jsonl: has changed" in said and "has what was packed before" in said, said)
    expect("3.jsonl" not in tokmap(folder, "join", "-q", "run.plan", "-o", "joined", "-f"), "--quiet")
    expect_equal(dataset_id(folder, "joined"), dataset_id(folder, "flat"), "dataset id")
    tokmap(folder, "plan", "--update", "run.plan", "--skip-input", "1.jsonl")  # as the messages say
    pack_all(folder, "-q")
    tokmap(folder, "pack", "-qf", "[02345].jsonl", "--split", "v=0.3", "-o", "flat")
    said = tokmap(folder, "join", "run.plan", "-o", "joined", "-f")
    expect_equal(dataset_id(folder, "joined"), dataset_id(folder, "flat"), "dataset id; it said " + said)


def no_advice_for_a_plan_is_refused(folder):
    small_work(folder)
    path = folder / "3.jsonl"
    good = path.read_bytes()
    path.write_bytes(good + b"bad\n")
    update(folder)
    said = pack_all(folder, code=3)
    expect("3.jsonl: byte" in said and "--on-error" not in said and "--restart" not in said, said)
    advice = re.findall(r"'tokmap (plan --update PLAN[^']*)'", said)
    expect_equal(advice, ["plan --update PLAN", "plan --update PLAN --skip-input INPUT"], "advice")
    path.write_bytes(good)
    tokmap(folder, *advice[0].replace("PLAN", "run.plan").split())
    pack_all(folder, "-q")
    path.write_bytes(good + b"bad\n")
    update(folder)
    pack_all(folder, code=3)
    tokmap(folder, *advice[1].replace("PLAN", "run.plan").replace("INPUT", "3.jsonl").split())
    pack_all(folder, "-q")
    tokmap(folder, "join", "-q", "run.plan", "-o", "joined")


def exchanged_splits_of_one_cell_are_named(folder):
    small_work(folder, 10**6)
    pack_all(folder, "-q")
    wanted, cells = cell_files(folder), folder / "cells"
    for suffix in (".bin", ".tmi"):
        (cells / ("000000" + suffix)).write_bytes(wanted["000000-v" + suffix])
        (cells / ("000000-v" + suffix)).write_bytes(wanted["000000" + suffix])
    for arguments in (["join", "run.plan", "-o", "joined"], ["status", "run.plan"], ["pack", "--plan", "run.plan"]):
        said = tokmap(folder, *arguments, code=4)
        expect("000000.tmi: is the dataset of another split" in said and "--force" in said, said)
    tokmap(folder, "pack", "-q", "--plan", "run.plan", "--force")  # as all three say
    expect(cell_files(folder) == wanted, "the files")


def what_a_killed_task_left_beside_a_cell_is_removed(folder):
    small_work(folder)
    pack_all(folder, "-q")
    wanted, cells = cell_files(folder), folder / "cells"
    os.link(cells / "000001.bin", cells / "000001.bin.partial")
    os.link(cells / "000001.tmi", cells / "000001.tmi.partial")
    os.link(cells / "000000-v.tmi", cells / "000000-v.tmi.partial")
    (cells / "000002.lock").write_text("")
    pack_all(folder, "-q")
    expect(cell_files(folder) == wanted and not list(cells.glob("*.lock")), "files")


def done_cells_in_a_folder_that_cannot_be_written_need_no_work(folder):
    pack_corpus.needs_mount()
    work = small_work(folder)
    pack_all(folder, "-q")
    (folder / "cells/000002.lock").write_text("")
    mount = "mount --bind cells cells && mount -o remount,ro,bind cells && exec \"$@\""
    done = subprocess.run(["unshare", "-rm", "sh", "-c", mount, "sh", ref_protocol.program("tokmap"), "pack", "--plan",
                           "run.plan"], cwd=folder, capture_output=True, text=True)
    expect_equal(done.returncode, 0, "exit status; it said " + done.stderr)
    expect("0 cells packed, %d done before" % work.n_cells in done.stderr, done.stderr)


def an_input_that_changes_during_a_task_is_named(folder):
    work, path = small_work(folder, cell_bytes=300), folder / "5.jsonl"
    planned_ns = path.stat().st_mtime_ns
    for _ in range(50):
        run = work.start(0, 1)
        pack_corpus.wait_for(run, (folder / "cells/000000.tmi").exists)
        run.send_signal(signal.SIGSTOP)
        os.utime(path, (1, 1))
        run.send_signal(signal.SIGCONT)
        said = run.communicate(timeout=300)[1]
        if run.returncode != 0:  # else it was faster
            break
        shutil.rmtree(folder / "cells")
        os.utime(path, ns=(planned_ns, planned_ns))
    expect_equal(run.returncode, 4, "exit status; it said " + said)
    expect("5.jsonl: has changed: it was modified" in said and "tokmap plan --update" in said, said)
    expect("touch it first" in said, said)
    expect("--restart" not in said, said)


def tasks_that_are_repeated_at_once_do_no_harm(folder):
    work = small_work(folder)
    for i in range(10 if LONG else 4):
        if i == 1:  # many cells of which one process looks at files that another is naming
            (folder / "tiny").write_text("".join('{"text": "%d"}\n' % k for k in range(60)))
            tokmap(folder, "plan", "-qf", "tiny", "--cells", "cells", "-o", "run.plan", "--cell-size", "20", "--split", "v=0.3")
        runs = [work.start(0, 1) for _ in range(6)]
        said = [run.communicate(timeout=300)[1] for run in runs]
        expect({run.returncode for run in runs} <= {0, 75}, "it said %s" % said)
        pack_all(folder, "-q")
        if i == 0:
            work.check_whole()
        shutil.rmtree(folder / "cells")


def a_signal_ends_a_task_that_then_goes_on(folder):
    write_corpus(folder, 4)
    work = Work(folder, ["a.jsonl", "d.jsonl"], ["--on-error", "skip", "--tokenizer", "vocabulary.json"], 300000)
    for _ in range(20 if LONG else 7):
        run = work.start(0, 1)
        time.sleep(work.rng.uniform(0.01, 0.1))
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=300)[1]
        expect(run.returncode in (0, 75, -signal.SIGTERM), "exit %d: %s" % (run.returncode, said))
    pack_all(folder, "-q")
    work.check_whole()


def automatic_tasks_follow_the_engine(folder):
    small_work(folder)
    array = {"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "4"}
    slurm, mpi = {"SLURM_PROCID": "1", "SLURM_NTASKS": "8"}, {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "5"}
    for variables, task in [(array, "2/4"), (slurm, "1/8"), (mpi, "3/5"), ({"PMI_RANK": "0", "PMI_SIZE": "2"}, "0/2"),
                            ({**slurm, **mpi}, "3/5"), ({**slurm, **array}, "2/4"),
                            ({**array, "SLURM_ARRAY_TASK_STEP": "2"}, "1/4")]:
        expect("task %s:" % task in pack_all(folder, "--task", "auto", **variables), str(variables))
    for variables in ({}, {"SLURM_PROCID": "1"}, {**array, "SLURM_ARRAY_TASK_ID": "2"}, {**array, "SLURM_ARRAY_TASK_ID": "9"},
                      {**slurm, "SLURM_PROCID": "8"}, {**slurm, "SLURM_PROCID": "1k"}, {**slurm, "SLURM_NTASKS": "0"}):
        expect("--task auto" in pack_all(folder, "--task", "auto", code=2, **variables), str(variables))
    whole = {**array, "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_MAX": "9"}
    expect("task 1/4:" in pack_all(folder, "--task", "auto", **whole), str(whole))
    for index in ("3", "5"):
        some = {**array, "SLURM_ARRAY_TASK_ID": index, "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MAX": "5"}
        said = pack_all(folder, "--task", "auto", code=2, **some)
        expect("only some of its tasks: submit the whole array again" in said, said)
    said = pack_all(folder, "--task", "auto", code=2, PMIX_RANK="0")
    expect("--task $PMIX_RANK/N" in said, said)


def a_plan_says_what_comes_next_and_warns_of_other_cells(folder):
    small_work(folder)
    plan = ["plan", "0.jsonl", "1.jsonl", "--cells", "cells", "-f", "-o", "run.plan", "--cell-size"]
    said = tokmap(folder, *plan, "1G")
    expect("Next:\n  tokmap pack --plan run.plan --task I/N  (for each I below N)\n  tokmap join run.plan -o P\n"
           "One cell is work for one task; a smaller --cell-size makes more." in said, said)
    expect("will end there" not in said, said)
    pack_all(folder)
    expect("will end there" not in tokmap(folder, *plan, "1G"), "the same plan again")
    said = tokmap(folder, *plan, "300")
    expect("cells/000000.tmi: was packed for another plan" in said and "use another folder for --cells" in said, said)
    expect("One cell" not in said, said)
    pack_all(folder, code=4)


def a_task_without_a_cell_says_so(folder):
    small_work(folder, cell_bytes=10**9)
    said = [pack_all(folder, "--task", "%d/3" % i) for i in range(3)]
    expect_equal(["no cell: the plan has 1 cell;" in text for text in said], [True, True, False], "tasks")


def reports_have_all_cells(folder):
    work = small_work(folder)
    reports = []
    for i in range(3):
        pack_all(folder, "--task", "%d/3" % i, "--report", "report%d" % i, "-q")
        reports.append(json.loads((folder / ("report%d" % i)).read_text()))
    flat = json.loads(tokmap(folder, "info", "--json", "flat")), json.loads(tokmap(folder, "info", "--json", "flat-v"))
    cells = [cell for report in reports for cell in report["cells"]]
    expect_equal(len(cells), work.n_cells, "cells")
    for name in ("n_documents", "n_tokens"):
        expect_equal(sum(cell[name] for cell in cells), sum(one[name] for one in flat), name)
    expect_equal({report["plan_hash"] for report in reports}, {work.plan["hash"]}, "plan")
    expect_equal([report["task"] for report in reports], [0, 1, 2], "tasks")


def the_status_says_how_far_the_work_is(folder):
    work = small_work(folder)
    status = json.loads(tokmap(folder, "status", "--json", "run.plan"))
    total = sum(size for size, *_ in work.plan["inputs"])
    nothing = {"n_cells": 0, "input_bytes": 0}
    expect_equal((status["all"], status["left"], status["done"]),
                 ({"n_cells": work.n_cells, "input_bytes": total},) * 2 + (nothing,), "before")
    expect_equal((status["bytes_per_second"], status["seconds_left"]), (None, None), "rate before")
    expect_equal((status["schema_version"], status["plan_hash"]), (1, work.plan["hash"]), "which plan")
    again = json.loads(tokmap(folder, "plan", "--json", "-f", *work.arguments))
    expect_equal((again["schema_version"], again["plan"], again["plan_hash"]), (1, "run.plan", work.plan["hash"]), "plan --json")
    pack_all(folder, "--task", "0/2", "-q")
    done = sorted((folder / "cells").glob("??????.tmi"))
    for i, path in enumerate(done):
        os.utime(path, (1000 + 10 * i, 1000 + 10 * i))
    status = json.loads(tokmap(folder, "status", "--json", "run.plan"))
    expect_equal(status["done"]["n_cells"], len(done), "done")
    expect_equal(status["done"]["input_bytes"] + status["left"]["input_bytes"], total, "bytes")
    expect(0.7 < status["bytes_per_second"] / 200 < 1.4, "2,000 bytes in 10 s, but %s" % status["bytes_per_second"])
    expect(0.7 < status["seconds_left"] * 200 / status["left"]["input_bytes"] < 1.4, "%s" % status["seconds_left"])
    pack_all(folder, "-q")
    status = json.loads(tokmap(folder, "status", "--json", "run.plan"))
    flat = json.loads(tokmap(folder, "info", "--json", "flat")), json.loads(tokmap(folder, "info", "--json", "flat-v"))
    expect_equal(status["n_tokens"], sum(one["n_tokens"] for one in flat), "tokens")
    expect_equal(status["seconds_left"], None, "time left at the end")
    tokmap(folder, "status", "missing.plan", code=3)
    tokmap(folder, "status", "0.jsonl", code=3)


if __name__ == "__main__":
    sys.exit(ref_protocol.run_in_folders(""))

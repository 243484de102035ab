#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack and inputs that are bad: all of them are named before the work, and one that is found in the middle is
repaired, replaced or removed without losing what was packed. The result is what a run over the final inputs writes."""

import collections
import gzip
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time

import pack_corpus
import ref_protocol
from ref_protocol import Skip, expect, expect_equal, run_program, tokmap


def call(folder, *arguments, **named):
    return tokmap(folder, *arguments, TOKMAP_CHECKPOINT_MS="0", **named)


def files(folder, prefix="out"):
    return pack_corpus.Packing(folder).outputs(prefix)


def write_gzip(path, text):
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write(text.encode())


# ---- Before the work ----


def all_bad_inputs_are_named_before_anything_is_written(folder):
    names = pack_corpus.write_inputs(folder, random.Random(3), 1)
    bad = {"g.arrow": lambda data: data[:-9], "h.parquet": lambda data: data[:-9], "d.jsonl": lambda data: b'{"x": 1}\n',
           "f.tar": lambda data: b"PK\x03\x04" + data, "c.gz": lambda data: b"\x1f\x8b\x08\x04" + data[:20],
           "i.csv": lambda data: data.replace(b"id,", b"text,", 1)}
    bad = {name: change for name, change in bad.items() if name in names}
    for name, change in bad.items():
        (folder / name).write_bytes(change((folder / name).read_bytes()))
    for arguments in (["-o", "out"], ["-o", "out", "--dry-run"], ["--cells", "cells", "-o", "out.plan"]):
        command = "plan" if "--cells" in arguments else "pack"
        said = call(folder, command, *names, *arguments, code=3)
        for name in names:
            named = name + ": " in said or name + ", needs a change: " in said or name + ", unsuitable: " in said
            expect_equal(named, name in bad, "%s: whether %s is named; it said %s" % (arguments, name, said))
        expect(re.search("%d (of %d )?inputs cannot be packed" % (len(bad), len(names)), said), said)
        expect_equal(files(folder), {}, "files")
    said = call(folder, "pack", "no1", "a.jsonl", "no2", "-o", "out", code=3)
    expect("no1: No such file" in said and "no2: No such file" in said, said)


# ---- Found in the middle ----


def overwrite(data):
    """With what no format has."""
    at = len(data) * 6 // 10
    return data[:at] + b"\xff" * 600 + data[at + 600:]


# Format: how the file is damaged where only reading it shows that.
DAMAGES = {"c.gz": lambda data: data[:len(data) * 2 // 3], "d.jsonl": lambda data: data[:-40],
           "d.jsonl.zst": overwrite,
           "f.tar": overwrite, "g.arrow": overwrite, "h.parquet": overwrite,
           "i.csv": lambda data: data[:len(data) * 6 // 10] + b'\n1,"'}
SPLITS = ["--split", "v=0.2", "--memory", "8M", "-j", "2", "--tokenizer", "vocabulary.json"]


class Night:
    """Inputs in a folder, of which one is damaged, and a run that met it."""

    def __init__(self, folder, name):
        rng = random.Random(11)
        self.folder, self.path, self.name = folder, folder / "in" / name, name
        (folder / "in").mkdir(exist_ok=True)
        for path in [*folder.glob("in/*"), *folder.glob("out[.-]*")]:
            path.unlink()
        pack_corpus.write_inputs(folder / "in", rng, 2)
        if name.endswith(".zst"):
            subprocess.run(["zstd", "-q", "--rm", "d.jsonl"], cwd=folder / "in", check=True)
        (folder / "in/vocabulary.json").rename(folder / "vocabulary.json")
        good = "".join('{"text": "first %d %s"}\n' % (i, "word " * rng.randrange(60)) for i in range(2000))
        (folder / "in/A.jsonl").write_text(good)
        (folder / "in/z.jsonl").write_text(good[:20000].rpartition("\n")[0])
        for path in folder.glob("in/*"):  # bad documents are not the matter here
            if path.name not in ("A.jsonl", "z.jsonl", name):
                path.unlink()
        if name.endswith((".gz", ".jsonl", ".zst", ".tar")):
            text = "".join('{"text": "%d %s"}\n' % (i, "word " * rng.randrange(60)) for i in range(6000))
            if name.endswith(".gz"):
                write_gzip(self.path, text)
            elif name.endswith(".tar"):
                pack_corpus.write_tar(self.path, lambda n, bad: text.split("\n")[:n], lambda n: "text " * n, 2)
            else:
                (folder / "in/d.jsonl").write_text(text)
            if name.endswith(".zst"):
                subprocess.run(["zstd", "-qf", "--rm", "d.jsonl"], cwd=folder / "in", check=True)
        if name.endswith(".parquet"):  # without a dictionary, which is read before the run
            pa, pq = ref_protocol.need_parquet()
            table = pa.table({"text": ["row %d " % i * rng.randrange(60) for i in range(3000)]})
            pq.write_table(table, self.path, data_page_size=2000, use_dictionary=False, compression="snappy",
                           write_batch_size=10, write_page_checksum=True)
        if name.endswith(".csv"):
            pack_corpus.write_csv(self.path, ["row %d " % i * rng.randrange(60) for i in range(3000)], bad=0)
        self.good = self.path.read_bytes()
        self.path.write_bytes(DAMAGES[name](self.good))

    def run(self, *arguments, out="out", **keywords):
        return call(self.folder, "pack", "in", *SPLITS, *arguments, "-o", out, **keywords)

    def fail(self):
        said = self.run(code=3)
        expect(self.name in said and "Progress is saved: repair" in said, said)

    def check(self, said, *arguments):
        """It went on after the inputs before, and the result is that of a run over the inputs as they are now."""
        n_before = re.search(r"resuming after ([\d,]+) document", said)
        expect(n_before and int(n_before[1].replace(",", "")) > 0 and "what was packed before it is kept" in said, said)
        self.run(*arguments, "-f", out="calm")
        got, wanted = files(self.folder), files(self.folder, "calm")
        expect_equal(sorted(got), sorted(wanted), "files")
        for suffix, data in wanted.items():
            expect(got[suffix] == data, "%s: %s differs" % (self.name, suffix))


def each_damage(folder, end, names=tuple(DAMAGES)):
    for name in names:
        if (".zst" in name and not (shutil.which("zstd") and pack_corpus.has_zstd())):
            continue
        if (name == "c.gz" and not pack_corpus.has_zlib()) or (name in ("g.arrow", "h.parquet") and not pack_corpus.has_pyarrow()):
            continue
        night = Night(folder, name)
        night.fail()
        end(night)


def a_repaired_input_loses_nothing(folder):
    def repair(night):
        night.path.write_bytes(night.good)
        night.check(night.run())
    each_damage(folder, repair)


def a_replaced_or_removed_input_loses_nothing(folder):
    def replace(night):
        night.path.unlink()
        (night.folder / "in/m.jsonl").write_text('{"text": "in its place"}\n' * 30)
        night.check(night.run())
    each_damage(folder, replace, ["d.jsonl", "h.parquet"])

    def remove(night):
        night.path.unlink()
        night.check(night.run())
    each_damage(folder, remove, ["d.jsonl", "c.gz"])


def a_skipped_input_loses_nothing_and_is_recorded(folder):
    def skip(night):
        option = ["--skip-input", "in/" + night.name]
        said = night.run(*option)
        expect("--skip-input: left out 1 file that it names" in said, said)
        night.check(said, *option)
        recorded = json.loads(call(folder, "info", "--json", "out"))["metadata"]["options"]["skip_input"]
        expect_equal(recorded, ["in/" + night.name], "what is recorded")
    each_damage(folder, skip, ["d.jsonl", "f.tar"])


def a_skipped_input_may_be_spelled_in_any_way_but_must_be_one(folder):
    (folder / "in").mkdir()
    for name in ("a", "b"):
        (folder / "in" / (name + ".txt")).write_text(name)
    for spelled in ("in/b.txt", "./in/b.txt", "in//b.txt", "in/../in/b.txt", str(folder / "in/b.txt")):
        call(folder, "pack", "in", "--skip-input", spelled, "-o", "out", "-f")
        expect_equal(call(folder, "cat", "out", "--text").split(), ["a"], "what is packed without " + spelled)
    call(folder, "pack", "in/a.txt", "gone.txt", "--skip-input", "./gone.txt", "--separator", "x", "-o", "out", "-f")
    (folder / "list").write_text("in/a.txt\nin/gone.txt\n")
    (folder / "in/gone.txt").symlink_to("nowhere")
    for argument in ("in", "in/*", "@list"):
        call(folder, "pack", argument, "--skip-input", "./in/gone.txt", "-o", "out", "-f")
    (folder / "in/gone.txt").unlink()
    call(folder, "pack", "@list", "--skip-input", "./in/gone.txt", "-o", "out", "-f")
    for other in ("in/c.txt", "b.txt", "in/b"):
        said = call(folder, "pack", "-q", "in", "--skip-input", "in/a.txt", "--skip-input", other, "-o", "no", code=2)
        expect("--skip-input %s: is not one of the inputs" % other in said, said)


def what_was_packed_may_not_change(folder):
    night = Night(folder, "d.jsonl")
    night.fail()
    left, first = files(folder), folder / "in/A.jsonl"
    times = (first.stat().st_atime_ns, first.stat().st_mtime_ns)
    night.path.write_bytes(night.good)
    os.utime(first, (1, 1))
    said = night.run(code=5)
    expect("in/A.jsonl has changed" in said and "--restart" in said, said)
    os.utime(first, ns=times)
    (folder / "in/0.jsonl").write_text('{"text": "before all others"}\n')
    expect("in/A.jsonl is now in/0.jsonl" in night.run(code=5), "an input before those that were packed")
    (folder / "in/0.jsonl").unlink()
    expect_equal(files(folder), left, "files")
    night.check(night.run())


def a_repaired_input_without_a_checkpoint_before_it_starts_over(folder):
    lines = ['{"text": "%d %s"}\n' % (i, "word " * 2000) for i in range(300)]
    (folder / "a.jsonl").write_text("".join(lines) + "{broken\n")
    command = ["pack", "a.jsonl", "-o", "out"]
    expect("Progress is saved" in call(folder, *command, code=3), "no checkpoint was made")
    left = files(folder)
    (folder / "a.jsonl").write_text("".join(lines))
    said = call(folder, *command, code=5)
    expect("a.jsonl has changed, and there is no checkpoint before it\nUse --restart" in said, said)
    expect_equal(files(folder), left, "files")
    call(folder, *command, "--restart")


def kills_and_changes_in_any_order_end_with_the_bytes_of_the_last_inputs(folder):
    rng = random.Random(int(os.environ.get("SEED", "4")))
    (folder / "in").mkdir()
    (folder / "vocabulary.json").write_text(pack_corpus.small_vocabulary())
    names = ["%d.jsonl%s" % (i, ".gz" * (i % 2 and pack_corpus.has_zlib())) for i in range(6)]
    command = [ref_protocol.program("tokmap"), "pack", "in", *SPLITS, "-q"]

    def write(name):
        text = "".join('{"text": "%d %s"}\n' % (i, "word " * rng.randrange(90)) for i in range(rng.randrange(3000)))
        if name.endswith(".gz"):
            write_gzip(folder / "in" / name, text)
        else:
            (folder / "in" / name).write_text(text)

    counts = collections.Counter()
    for _ in range(25 if os.environ.get("TOKMAP_LONG") == "all" else 6):
        for name in names:
            write(name)
        restart, restarted = [], False
        for attempt in range(40):
            run = subprocess.Popen([*command, "-o", "out", *restart], cwd=folder, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **ref_protocol.NO_LEAK_SEARCH, "TOKMAP_CHECKPOINT_MS": "0"})
            if attempt < 30:
                time.sleep(rng.random() * 0.15)
                run.kill()
            said = run.communicate(timeout=300)[1]
            counts[run.returncode] += 1
            if (folder / "out.tmi").exists():
                break
            expect(run.returncode in (-9, 5) or (run.returncode == 4 and restarted), "exit %d: %s" % (run.returncode, said))
            restart = ["--restart", "--force"] if run.returncode > 0 else []  # something of what has changed was packed
            restarted = bool(restart) or (restarted and run.returncode == -9)
            changed = rng.choice(names[1:])
            if rng.random() < 0.3:
                (folder / "in" / changed).unlink(missing_ok=True)
            elif rng.random() < 0.5:
                write(changed)
        subprocess.run([*command, "-o", "calm", "-f"], cwd=folder, check=True)
        got = {name: data for name, data in files(folder).items() if not name.endswith(".partial")}
        wanted = files(folder, "calm")
        differ = sorted(name for name in {**got, **wanted} if got.get(name) != wanted.get(name))
        expect(not differ, "other bytes: %s; it said %s" % (differ, said))
        for path in folder.glob("out[.-]*"):
            path.unlink()
    expect(counts[-9] > 3 and counts[0] > 0, "hardly ever killed: %s" % counts)
    return "%d kills, %d refused" % (counts[-9], counts[5])


# ---- At the end ----


def a_run_that_stopped_between_the_names_of_its_outputs_is_not_complete(folder):
    pack = ["pack", "--lines", "in.txt", "-o", "out", "--eod", "none"]
    split = [*pack, "--split", "v=0.3"]
    (folder / "in.txt").write_text("".join(chr(33 + i % 90) + "\n" for i in range(30000)))
    call(folder, *split)
    wanted = files(folder)
    limit = len(wanted[".tmi"]) - 1  # the end of this index does not fit, and all else does

    def stop():
        for path in folder.glob("out*"):
            path.unlink()
        done = run_program("tokmap", *split, cwd=folder, text=True, restore_signals=False,
                           env={**os.environ, "TOKMAP_CHECKPOINT_MS": "0"},
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        expect("Progress is saved" in done.stderr, done.stderr)
        expect((folder / "out-v.tmi").exists() and not (folder / "out.tmi").exists(), "stopped elsewhere")

    stop()
    for way, advice in ((split, "replace it with --force"), (pack, "remove it"), ([*pack, "-f"], "remove it")):
        said = call(folder, *way, "--restart", code=5)
        expect("out-v.tmi: was written by the run that --restart discards; " + advice in said, said)
    said = call(folder, *pack, code=5)
    expect(re.search("v=0.3\\b", said) and "0.29" not in said, said)
    call(folder, *split)
    expect(files(folder) == wanted, "other bytes")
    stop()
    (folder / "out-v.tmi").unlink()
    expect("use --restart and --force to start over" in call(folder, *split, code=3), "no advice")
    call(folder, *pack, "--restart")


def the_old_dataset_that_cannot_be_renamed_is_no_fault_of_the_input(folder):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("it needs a second user")
    program = folder / "tokmap"
    shutil.copy(ref_protocol.program("tokmap"), program)
    (folder / "in.txt").write_text("a\n" * 1000)
    call(folder, "pack", "in.txt", "-o", "out")
    folder.chmod(0o1777)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "pack", "in.txt",
                           "-o", "out", "-f"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "TOKMAP_CHECKPOINT_MS": "0"})
    if done.returncode != 3:
        raise Skip("exit %d: %s" % (done.returncode, done.stderr))
    expect("cannot rename the old dataset" in done.stderr and "Progress is saved: run the same" in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(ref_protocol.run_in_folders(""))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack that is interrupted, or runs out of disk, and then goes on: the files are those of a run that nothing
happened to. Corpora of several formats, compressions and splits, with bad documents. chaos.py kills."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import chaos
import pack_corpus
import ref_protocol
import terminal
from pack_corpus import n_bytes, wait_for
from ref_protocol import Skip, expect, expect_equal

LONG = bool(os.environ.get("TOKMAP_LONG"))
SANITIZED = bool(os.environ.get("TOKMAP_SANITIZED"))
SCALE = 2 if SANITIZED else 7
SPLITS = ["--split", "v=0.1", "--split", "t=0.3"]


class Corpus(pack_corpus.Packing):
    """Inputs in a folder, and what packing them gives."""

    def __init__(self, folder):
        super().__init__(folder)
        self.inputs = pack_corpus.write_inputs(folder, random.Random(7), SCALE)
        if shutil.which("zstd") and pack_corpus.has_zstd():
            subprocess.run(["zstd", "-q", "--rm", "d.jsonl"], cwd=folder, check=True)
            self.inputs[self.inputs.index("d.jsonl")] = "d.jsonl.zst"
        self.pack("wanted", "-j", "1", "--memory", "8M")
        self.wanted = self.outputs("wanted")

    def command(self, out, *arguments):
        return [self.program, "pack", *self.inputs, "-o", out, *SPLITS, "--on-error", "skip",
                "--tokenizer", "vocabulary.json", *arguments]

    def check(self, out):
        got = self.outputs(out)
        expect_equal(sorted(got), sorted(self.wanted), "files")
        for name, wanted in self.wanted.items():
            expect(got[name] == wanted, "%s differs" % name)


# ---- Signals ----


def interrupted_it_says_how_to_go_on(corpus):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for _ in range(50):
            run = corpus.start("out", "-j", "2", "--memory", "8M")
            wait_for(run, lambda: n_bytes(corpus.folder / "out.tmj.partial") > 8000)
            run.send_signal(number)
            out, said = run.communicate(timeout=60)
            if run.returncode != 0:  # else it was faster
                break
            corpus.remove("out")
        expect_equal(run.returncode, 75, "exit status; it said " + said)
        expect("interrupted" in said and "Progress is saved" in said, said)
        expect_equal(out, "", "result")
        expect("resuming after" in corpus.pack("out", "-j", "1", "--memory", "8M"), "it did not go on")
        corpus.check("out")
        corpus.remove("out")


def a_short_run_that_is_interrupted_leaves_nothing(corpus):
    for _ in range(50):
        run = corpus.start("out", "--memory", "8M", pause_ms="100000")
        wait_for(run, lambda: (corpus.folder / "out.bin.partial").exists())
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=60)[1]
        if run.returncode != 0:  # else it was faster
            break
        corpus.remove("out")
    expect_equal(run.returncode, 75, "exit status; it said " + said)
    expect_equal(corpus.outputs("out"), {}, "files")


def the_last_line_of_progress_has_the_bytes_of_this_run(corpus):
    """A limit ends it in the input in which it resumed, when the next one was begun."""
    (corpus.folder / "many.txt").write_text("word word word\n" * 200000)
    (corpus.folder / "next.txt").write_text("next\n" * 1000)
    limited = pack_corpus.Packing(corpus.folder)
    options = ["--lines", "many.txt", "next.txt", "--memory", "8M", "--limit-documents", "199999"]
    found = None
    for _ in range(20):
        limited.leave_unfinished("limited", *options)
        session = terminal.Session(limited.command("limited", *options), cwd=corpus.folder)
        while b"resuming after" not in session.text and session.read():
            pass
        session.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)  # then the line is due
        session.process.send_signal(signal.SIGCONT)
        found = re.search(rb"\rpack: ([0-9.]+ [KM]iB) in ", session.end()[1])
        if b"\rpack: " in session.text:
            break
    expect(found, session.text)
    limited.remove("limited")


# ---- Refusals ----


def another_call_is_refused_and_changes_nothing(corpus):
    left = corpus.leave_unfinished("out", "--memory", "8M")
    other = {
        "--eod was 261 and is now none": ["--eod", "none"],
        "--utf8 was replace and is now raw": ["--utf8", "raw"],
        "--specials was text and is now match": ["--specials", "match"],
        "--split was v=0.1": ["--split", "w=0.01"],
        "--separator was none and is now \\x6eone": ["--separator", "none"],
        "--tokenizer was vocabulary.json and is now bytes": ["--tokenizer", "bytes"],
        "--limit-documents was none and is now 7": ["--limit-documents", "7"],
        "--also was none and is now megatron": ["--also", "megatron"],
    }
    for why, arguments in other.items():
        said = corpus.pack("out", "--memory", "8M", *arguments, code=5)
        expect(why in said and "--restart" in said, "%s: %s" % (arguments, said))
    said = corpus.pack("out", "--memory", "8M", "--on-error", "fail", code=5)
    expect("--on-error was skip, and" in said, said)
    first = corpus.folder / "a.jsonl"
    times = (first.stat().st_atime_ns, first.stat().st_mtime_ns)
    os.utime(first, ns=(0, 12345))
    said = corpus.pack("out", "--memory", "8M", code=5)
    expect("a.jsonl has changed" in said, said)
    os.utime(first, ns=times)
    expect_equal(corpus.outputs("out"), left, "files")
    corpus.remove("out")


def restart_begins_anew(corpus):
    corpus.leave_unfinished("out", "--memory", "8M", "--eod", "none")
    said = corpus.pack("out", "--restart")
    expect("going on" not in said, said)
    corpus.check("out")
    corpus.remove("out")


def a_damaged_journal_is_refused_and_restart_helps(corpus):
    corpus.leave_unfinished("out", "--memory", "8M")
    journal = corpus.folder / "out.tmj.partial"
    data = bytearray(journal.read_bytes())
    data[3] ^= 1
    journal.write_bytes(data)
    said = corpus.pack("out", code=4)
    expect("--restart" in said, said)
    corpus.pack("out", "--restart")
    corpus.check("out")
    corpus.remove("out")


def skipping_may_begin_at_the_first_bad_document(corpus):
    """A run that a bad document stopped resumes without it."""
    good = '{"text": "%s"}\n' % ("good " * 100)
    (corpus.folder / "bad-late.jsonl").write_text(good * 3000 + "bad\n" + good * 100)
    late = pack_corpus.Packing(corpus.folder)
    said = late.pack("late", "bad-late.jsonl", "--memory", "8M", code=3)
    expect("bad-late.jsonl:3001" in said and "Progress is saved" in said, said)
    expect("resuming after" in late.pack("late", "bad-late.jsonl", "--memory", "8M", "--on-error", "skip"), "it started over")
    late.pack("whole", "bad-late.jsonl", "--memory", "8M", "--on-error", "skip")
    expect_equal(late.outputs("late"), late.outputs("whole"), "files")


def a_longer_max_document_resumes_what_a_shorter_one_stopped(corpus):
    """As long as no document was left out because of it."""
    good = "good " * 100 + "\n"
    (corpus.folder / "long-late.txt").write_text(good * 3000 + "long " * 40000 + "\n" + good * 100)
    late = pack_corpus.Packing(corpus.folder)
    options = ["--lines", "long-late.txt", "--memory", "8M"]
    said = late.pack("longer", *options, "--max-document", "100k", code=3)
    expect("long-late.txt:3001: byte 1503000: longer than --max-document" in said and "--separator" in said, said)
    said = late.pack("longer", *options, "--max-document", "600", "--on-error", "skip", code=5)
    expect("--max-document was 100,000 and is now 600; it may only grow" in said, said)
    expect("resuming after" in late.pack("longer", *options), "it started over")
    late.pack("at_once", *options)
    expect_equal(late.outputs("longer"), late.outputs("at_once"), "files")
    late.remove("longer")
    late.leave_unfinished("longer", *options, "--max-document", "400", "--on-error", "skip", journal_bytes=0)
    said = late.pack("longer", *options, "--on-error", "skip", code=5)
    expect("--max-document was 400, and" in said and "longer documents already left out" in said, said)
    late.remove("longer")


def a_run_that_failed_at_its_end_resumes_there(corpus):
    """All inputs were read when a write failed: its last one, and others before it."""
    if not chaos.CAN_FAIL:
        raise Skip("libfailures.so is missing, or this is a build with a sanitizer")
    (corpus.folder / "short.txt").write_text("word\n" * 100)
    command = pack_corpus.Packing(corpus.folder).command("ended", "--lines", "short.txt", "-j", "1")
    said = []
    for number in range(1, 200):
        failing = {"LD_PRELOAD": chaos.LIBRARY, "FAIL": "write:%d+" % number, "TOKMAP_CHECKPOINT_MS": "0"}
        if subprocess.run(command, cwd=corpus.folder, capture_output=True, env={**os.environ, **failing}).returncode == 0:
            break
        said.append(subprocess.run(command, cwd=corpus.folder, capture_output=True, text=True).stderr)
        corpus.remove("ended")
    expect("resuming after 100 documents, at the end of the inputs\n" in said[-1], said)
    corpus.remove("ended")


def the_report_of_a_resumed_run_has_all_that_was_left_out(corpus):
    """Also what an earlier process left out, which made no report; and the recipe takes it out of the inputs."""
    import gzip

    lines = {name: [b'{"text": "good %d"}' % i if (i + 1) % 7 else b'{"bad": %d' % i for i in range(60000)] for name in ("x.jsonl", "y.jsonl.gz")}
    for name, some in lines.items():
        (corpus.folder / name).write_bytes((gzip.compress if name.endswith(".gz") else bytes)(b"\n".join(some)))
    most = pack_corpus.Packing(corpus.folder)
    names = list(lines)[:2 if pack_corpus.has_zlib() else 1]
    most.leave_unfinished("most", *names, "--on-error", "skip", "--memory", "8M")
    expect("resuming after" in most.pack("most", *names, "--on-error", "skip", "--report", "report.json"), "it started over")
    expect_equal(sorted(most.outputs("most")), [".bin", ".tmi"], "files")
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/recipes.md").read_text()
    recipe = re.search(r"## Documents that were left out.*?```python\n(.*?)```", text, re.DOTALL).group(1)
    subprocess.run([sys.executable, "-c", recipe], cwd=corpus.folder, check=True)
    wanted = [line for name in names for line in lines[name] if b"bad" in line]
    expect_equal((corpus.folder / "left_out.jsonl").read_bytes().splitlines(), wanted, "what was left out")


def bytes_of_bad_documents_are_those_of_the_report(corpus):
    """Left out by the reader and by the encoders, which print the first ten of each input."""
    names = ["s1.jsonl", "s2.jsonl"]
    for name in names:
        lines = ['{"text": "good"}', *('{"text": "<|endoftext|> %d"}' % i for i in range(15)), '{"bad'] * 2
        (corpus.folder / name).write_text("\n".join(lines))
    some = pack_corpus.Packing(corpus.folder)
    (corpus.folder / "special.json").write_text(pack_corpus.small_vocabulary())
    said = some.pack("some", *names, "--tokenizer", "special.json", "--specials", "error", "--on-error", "skip", "--report", "some.json")
    report = json.loads((corpus.folder / "some.json").read_text())
    expect_equal((len(report["skipped"]), report["bad_documents"]), (64, 64), "documents")
    expect_equal(report["bad_bytes"], sum(one["n_bytes"] for one in report["skipped"]), "bytes")
    expect_equal([said.count(name + ": document") for name in names], [10, 10], said)

# ---- A full disk ----


FULL_DISK = """
mount -t tmpfs -o size=$1 none mnt && shift
TOKMAP_CHECKPOINT_MS=0 "$@" >.out 2>.err
code=$?
mount -o remount,size=1g mnt
"$@" >>.out 2>>.err2 || exit 1
cp mnt/* . && exit $code
"""


def a_full_disk_ends_with_75_and_it_goes_on_with_more_space(corpus):
    pack_corpus.needs_mount()
    (corpus.folder / "mnt").mkdir()
    size = sum(len(data) for data in corpus.wanted.values())
    for share in (0.2, 0.5, 0.9):
        full = ["unshare", "-rm", "sh", "-c", FULL_DISK, "sh", str(int(size * share) // 4096 * 4096)]
        run = subprocess.run([*full, *corpus.command("mnt/out", "--memory", "8M")], cwd=corpus.folder)
        said = (corpus.folder / ".err").read_text()
        expect_equal(run.returncode, 75, "exit status; it said " + said)
        expect("No space left" in said and "Free some disk space" in said, said)
        expect("Progress is saved" in said, said)
        expect("resuming after" in (corpus.folder / ".err2").read_text(), "it started over")
        corpus.check("out")
        corpus.remove("out")
        (corpus.folder / ".err2").unlink()


# ---- Memory ----


def one_document_of_300_mb_is_packed_and_one_of_more_than_a_gib_is_refused(corpus):
    """From a pipe, which cannot be read again."""
    if not LONG or SANITIZED:
        raise Skip("takes gigabytes; make test does it")
    words = ["".join(random.Random(i).choices("abcdefghijklmnopqrstuvwxyz", k=1 + i % 11)) for i in range(30000)]
    rng = random.Random(5)
    with tempfile.TemporaryDirectory() as name:  # on a disk
        disk = pack_corpus.Packing(pathlib.Path(name))
        (disk.folder / "part.txt").write_text(" ".join(rng.choices([*words, "don't", "é", "語", "1234", "\n"], k=1500000)))
        script = "while cat part.txt; do :; done 2>/dev/null | head -c \"$0\" | exec \"$@\""
        for size, code in ((3 * 10**8, 0), (2**30 + 1, 3)):
            done = subprocess.run(["bash", "-c", script, str(size), *disk.command(
                "huge", "-q", "-j", "2", "-", "--format", "text", *byte_level_tokenizers(corpus.folder)[0])],
                                  cwd=disk.folder, capture_output=True, text=True)
            expect_equal(done.returncode, code, done.stderr)
            if code:
                expect("-:1: byte 0: longer than --max-document allows" in done.stderr, done.stderr)
                continue
            information = json.loads(ref_protocol.call("tokmap", "info", "--json", disk.folder / "huge")[1])
            expect_equal(information["n_documents"], 1, "documents")
            expect(information["n_tokens"] > size / 10, "%d tokens" % information["n_tokens"])
            expect_equal(ref_protocol.call("tokmap", "verify", "-q", disk.folder / "huge")[0], 0, "verify")
            disk.remove("huge")


def byte_level_tokenizers(folder):
    """With vocabularies of 50,000 and 200,000 tokens if they are available."""
    shared = pathlib.Path(os.environ.get("TOKMAP_SHARED", "../shared")) / "vocab"
    found = [[*pattern, "--tokenizer", str((shared / name).resolve())]
             for name, pattern in (("gpt2.tokenizer.json", []), ("o200k_base.tiktoken", ["--pattern", "o200k"]))
             if (shared / name).exists()]
    return found or [["--tokenizer", str(folder / "vocabulary.json")]]


def main():
    # Checkpoints wait for the disk; what a kill leaves is the same where there is none to wait for.
    with tempfile.TemporaryDirectory(dir=chaos.fast_folder()) as name:
        return ref_protocol.run_with(corpus=Corpus(pathlib.Path(name)))


sys.exit(main())

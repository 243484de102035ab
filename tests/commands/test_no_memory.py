#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of the system: whichever allocation or write fails, a command ends with 75 and says so, or with what it
gives otherwise; small stacks, a limit of file sizes, a named pipe without a writer and signals."""

import gzip
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

from ref_protocol import BUILD, Skip, expect, expect_equal, program, run_in_folders, run_program

LONG = os.environ.get("TOKMAP_LONG") == "all"
SANITIZED = bool(os.environ.get("TOKMAP_SANITIZED"))
MOST = 200 if LONG else 14
SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared" / "vocab"
PARQUET = pathlib.Path(__file__).resolve().parents[1] / "formats" / "parquet"
ARROW = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "arrow"
LINES = b'{"text": "one \\u00e4 two"}\n{"text": "three"}\n' * 20


def limited(stack=None, file_bytes=None, address=None):
    def apply():
        for limit, value in ((resource.RLIMIT_STACK, stack), (resource.RLIMIT_FSIZE, file_bytes),
                             (resource.RLIMIT_AS, address)):
            if value is not None:
                resource.setrlimit(limit, (value, value))

    return apply


def tokmap(folder, *arguments, **how):
    return run_program("tokmap", *arguments, cwd=folder, **how)


def fill(folder):
    (folder / "a.jsonl").write_bytes(LINES)
    (folder / "list").write_text("a.jsonl\na.gz\n")
    (folder / "a.gz").write_bytes(gzip.compress(LINES))
    for name in ("ds", "ds2"):
        expect_equal(tokmap(folder, "pack", "-q", "a.jsonl", "-o", name).returncode, 0, "pack")


def published(place):
    return {p.name: p.read_bytes() for p in sorted(place.glob("out*")) if p.suffix in (".bin", ".tmi", ".json")}


def clean(place):
    for path in place.glob("out*"):
        path.unlink()


def failures():
    """The library that lets calls fail, to be preloaded."""
    library = os.path.join(BUILD or "", "libfailures.so")
    if SANITIZED or not os.path.exists(library):
        raise Skip("no allocator can be put in front of the sanitizer's" if SANITIZED else "libfailures.so is missing")
    return library


def sweep(folder, *arguments):
    """Allocations fail, each alone and with all later ones. Returns what the command says to each."""
    library = failures()

    def run(**variables):
        clean(folder)
        return tokmap(folder, *arguments, env={**os.environ, "LD_PRELOAD": library, **variables})

    wanted = run(FAIL_COUNTS=str(folder / "count"))
    expect_equal(wanted.returncode, 0, " ".join(arguments) + ": " + wanted.stderr.decode())
    files = published(folder)
    n = int((folder / "count").read_text().split()[1])
    said = []
    for i in range(1, n + 1, n // MOST + 1):
        for more in ("", "+"):
            done = run(FAIL="memory:%d%s" % (i, more))
            what = "%s, allocation %d%s: %s" % (" ".join(arguments), i, " and later" if more else "",
                                                done.stderr.decode())
            expect(done.returncode in (0, 75), "%s exit %d" % (what, done.returncode))
            if done.returncode == 0:
                expect_equal((done.stdout, published(folder)), (wanted.stdout, files), what)
            else:
                expect("memory" in what or "thread" in what, what)
                said.append(done.stderr.decode())
    clean(folder)
    return said


def without_memory_a_pack_ends_with_75_or_is_whole(folder):
    if b"zlib    not" in tokmap(folder, "--version").stdout:
        (folder / "list").write_text("a.jsonl\n")
    said = sweep(folder, "pack", "-q", "-j", "1", "@list", "-o", "out")
    expect(any("use fewer threads (-j), or --max-document to refuse large documents" in text for text in said), str(said))
    sweep(folder, "pack", "-q", "-j", "2", "--on-error", "skip", "--split", "v=0.5", "--format", "jsonl", "a.jsonl",
          "-o", "out")
    sweep(folder, "pack", "--dry-run", "a.jsonl", "-o", "out")


def without_memory_a_pack_of_parquet_ends_with_75_or_is_whole(folder):
    for name in ("text_dictionary_gzip", "text_delta_bytes", "text_mixed_v2", "text_delta_length_zstd"):
        sweep(folder, "pack", "-q", "-j", "1", str(PARQUET / (name + ".parquet")), "-o", "out")
    sweep(folder, "pack", "-q", "-j", "2", "--field", "meta.name", "--meta", "score,real", "--where", "meta.n != 7",
          str(PARQUET / "numbers_packed.parquet"), "-o", "out")


def without_memory_a_pack_of_arrow_ends_with_75_or_is_whole(folder):
    (folder / "a.arrow").write_bytes((ARROW / "file").read_bytes()[4:])
    sweep(folder, "pack", "-q", "-j", "1", "--meta", "id", "a.arrow", "-o", "out")


def without_memory_a_join_ends_with_75_or_is_whole(folder):
    for arguments in (["plan", "-q", "a.jsonl", "--cells", "cells", "--cell-size", "300", "-o", "run.plan"],
                      ["pack", "-q", "--plan", "run.plan", "--task", "0/1"]):
        done = tokmap(folder, *arguments)
        expect_equal(done.returncode, 0, done.stderr.decode())
    sweep(folder, "join", "-q", "run.plan", "-o", "out")


def without_memory_other_commands_do_too(folder):
    for arguments in (["info", "ds"], ["info", "--json", "ds"], ["verify", "ds"], ["cat", "ds"], ["cat", "--text", "ds"],
                      ["merge", "ds", "ds2", "-o", "out"], ["export", "--to", "raw", "ds", "-o", "out"],
                      ["encode", "--tokenizer", "bytes", "a.jsonl"]):
        sweep(folder, *arguments)


def without_memory_a_vocabulary_is_not_called_wrong(folder):
    names = ["gpt2.tokenizer.json", "mistral_v1.model", "spm_test_unigram_en.model", "t5-small.tokenizer.json"]
    if not SHARED.exists():
        raise Skip("no shared vocabularies")
    for name in names:
        sweep(folder, "encode", "--tokenizer", str(SHARED / name), "a.jsonl")


def little_address_space_is_75(folder):
    if SANITIZED:
        raise Skip("sanitizers need address space")
    for mib in range(4, 200, 7):
        clean(folder)
        done = tokmap(folder, "pack", "-q", "-j", "4", "a.jsonl", "-o", "out", preexec_fn=limited(address=mib << 20))
        if b"shared librar" in done.stderr or done.returncode < 0 and mib < 20:
            continue  # not a command yet
        expect(done.returncode in (0, 75), "%d MiB: exit %d: %s" % (mib, done.returncode, done.stderr.decode()))
    expect_equal(done.returncode, 0, "with enough")


def a_stack_of_64_KiB_is_enough(folder):
    if SANITIZED:
        raise Skip("frames of sanitizers are larger")
    commands = [["pack", "-q", "-f", "-j", "2", "@list", "-o", "out"], ["pack", "--dry-run", "a.jsonl", "-o", "out"],
                ["info", "ds"], ["verify", "-j", "2", "ds"], ["cat", "--text", "ds"], ["merge", "ds", "ds2", "-o", "out2"],
                ["export", "--to", "raw", "ds", "-o", "out3"], ["export", "--to", "megatron", "ds", "-o", "out4"],
                ["index", "-f", "--dtype", "u16", "--eod", "256", "raw.bin"], ["encode", "--tokenizer", "bytes", "a.jsonl"]]
    (folder / "raw.bin").write_bytes((folder / "ds.bin").read_bytes())
    if SHARED.exists():
        commands += [["pack", "-q", "-f", "a.jsonl", "--tokenizer", str(path), "-o", "out"]
                     for path in sorted(SHARED.glob("*tokenizer.json")) + sorted(SHARED.glob("*.model"))
                     if "llama3" not in path.name]
    for arguments in commands:
        done = tokmap(folder, *arguments, preexec_fn=limited(stack=65536))
        expect_equal(done.returncode, 0, " ".join(arguments) + ": " + done.stderr.decode())


def a_limit_of_file_sizes_is_an_error_with_75(folder):
    (folder / "big.txt").write_bytes(b"some text\n" * 200000)
    done = tokmap(folder, "pack", "-q", "big.txt", "-o", "out", preexec_fn=limited(file_bytes=100000))
    expect_equal(done.returncode, 75, done.stderr.decode())
    expect(b"File too large" in done.stderr, done.stderr.decode())
    with open(folder / "stdout", "wb") as out:
        tokmap(folder, "pack", "-q", "-f", "--restart", "big.txt", "-o", "out")
        done = run_program("tokmap", "cat", folder / "out", stdout=out,
                           preexec_fn=limited(file_bytes=100000))
    expect_equal(done.returncode, 75, done.stderr.decode())


def a_pipe_without_a_writer_can_be_ended_by_signals(folder):
    os.mkfifo(folder / "pipe")
    for arguments in (["pack", "pipe", "-o", "out"], ["pack", "a.jsonl", "--tokenizer", "pipe", "-o", "out"],
                      ["pack", "@pipe", "-o", "out"], ["encode", "--tokenizer", "bytes", "pipe"],
                      ["encode", "--tokenizer", "pipe", "a.jsonl"], ["decode", "--tokenizer", "bytes", "pipe"]):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = subprocess.Popen([program("tokmap"), *arguments], cwd=folder)
            time.sleep(0.1)
            expect_equal(process.poll(), None, "ended before")
            process.send_signal(number)
            _, message = process.communicate(timeout=60)
            expect(process.returncode in (75, -number), "%s: %d %s" % (arguments, process.returncode, message))


def a_pipe_whose_writer_comes_late_is_read(folder):
    os.mkfifo(folder / "late")
    process = subprocess.Popen([program("tokmap"), "pack", "-q", "--lines", "late", "-o", "out"], cwd=folder)
    time.sleep(0.1)
    with open(folder / "late", "wb") as pipe:
        pipe.write(b"one\ntwo")
        pipe.flush()
        time.sleep(0.05)
        pipe.write(b" more\n")
    expect_equal(process.wait(timeout=60), 0, "exit code")
    expect_equal(tokmap(folder, "cat", "--text", "out").stdout, b"one\ntwo more\n", "documents")



def a_pipe_that_is_named_twice_is_refused(folder):
    for names in (["/dev/stdin", "/dev/stdin"], ["/dev/fd/0", "-"]):
        done = tokmap(folder, "pack", "-q", "--lines", *names, "-o", "out", input=b"one\ntwo\n")
        expect_equal(done.returncode, 2, done.stderr.decode())
        expect(b"can be read only once" in done.stderr, done.stderr.decode())

def whichever_write_fails_the_next_run_goes_on(folder):
    """With documents that are left out, whose list is a file of its own."""
    library = failures()
    lines = [b"bad %d" % i if i % 7 == 3 else b'{"text": "%s"}' % (b"word " * (i * 37 % 300)) for i in range(2000)]
    (folder / "some.jsonl").write_bytes(b"\n".join(lines))
    pack = ["pack", "-q", "some.jsonl", "-o", "out", "-j", "1", "--memory", "8M", "--on-error", "skip", "--split", "v=0.3",
            "--report", "out.report"]
    fault = {**os.environ, "LD_PRELOAD": library, "TOKMAP_CHECKPOINT_MS": "0"}
    undisturbed = tokmap(folder, *pack, env={**fault, "FAIL_COUNTS": str(folder / "count")})
    expect_equal(undisturbed.returncode, 0, undisturbed.stderr.decode())
    n = int((folder / "count").read_text().split()[-1])
    wanted, n_lists = json.loads((folder / "out.report").read_text())["skipped"], 0
    for i, k in [*((i, 0) for i in range(1, n + 1, 3)), *((i, k) for i in range(n - 3, n + 1) for k in (3, 4, 5))]:
        clean(folder)
        done = tokmap(folder, *pack, env={**fault, "FAIL": "write:%d" % i})
        if k > 0:  # and one of the run that gives the last names
            tokmap(folder, *pack, env={**fault, "FAIL": "write:%d" % k})
        (folder / "out.report").unlink(missing_ok=True)
        again = tokmap(folder, *pack)
        expect(again.returncode in (0, 5), "write %d, %d: %s; then %s" % (i, k, done.stderr.decode(), again.stderr.decode()))
        if again.returncode == 5:  # only the report was missing
            expect("out.tmi: already exists" in again.stderr.decode(), again.stderr.decode())
            continue
        expect_equal(json.loads((folder / "out.report").read_text())["skipped"], wanted, "what was left out, write %d" % i)
        n_lists += b"out.skipped.partial" in done.stderr
    expect(n_lists > 1, "only %d writes to the list failed" % n_lists)


def a_disk_that_is_full_from_some_write_on_ends_with_75_and_says_what_to_do(folder):
    """From the first write on, from the second, and so on, until the command makes no write that fails."""
    library = failures()
    lines = ['{"text": "one two three %d", "id": %d}' % (i, i) if i % 7 != 3 else "bad" for i in range(100)]
    (folder / "some.jsonl").write_text("\n".join(lines))
    (folder / "score.jsonl").write_text("".join('{"id": %d, "score": 1}\n' % i for i in range(100) if i % 7 != 3))
    plan = ["plan", "-q", "a.jsonl", "--cells", "cells", "-o", "out.plan"]
    for arguments in (["pack", "-q", "some.jsonl", "--on-error", "skip", "--meta", "id", "-o", "values"],
                      ["plan", "-q", "a.jsonl", "--cells", "task", "-o", "task.plan"],
                      [*plan[:-1], "made.plan"], ["pack", "-q", "--plan", "made.plan", "--task", "0/1"],
                      ["export", "--to", "megatron", "ds", "-o", "foreign"]):
        done = tokmap(folder, *arguments)
        expect_equal(done.returncode, 0, "%s: %s" % (arguments, done.stderr.decode()))
    commands = [["pack", "-q", "-j", "1", "some.jsonl", "--on-error", "skip", "--meta", "id", "--split", "v=0.3",
                 "--also", "megatron", "--report", "out.json", "-o", "out"],
                ["pack", "-q", "-j", "1", "some.jsonl", "--on-error", "skip", "--report", "out.json", "-o", "out"],
                plan, ["pack", "-q", "--plan", "task.plan", "--task", "0/1"],
                ["join", "-q", "made.plan", "-o", "out"], ["merge", "ds", "ds2", "-o", "out"],
                ["redact", "--documents", "1:3", "ds", "-o", "out"],
                ["export", "--to", "megatron", "ds", "-o", "out"], ["export", "--to", "llmc", "ds", "-o", "out"],
                ["index", "-f", "foreign.bin"], ["columns", "add", "-f", "values", "--key", "id", "score.jsonl"],
                ["view", "values", "--where", "id >= 3", "-o", "out.tmw"], ["rows", "-l", "16", "ds", "-o", "out.tmr"],
                ["scan", "--duplicates", "--name", "same", "values"]]
    for arguments in commands:
        for number in range(1, 200):
            clean(folder)
            shutil.rmtree(folder / "task", ignore_errors=True)  # a cell that is packed is not packed again
            often = {"TOKMAP_CHECKPOINT_MS": "0"} if "--split" in arguments else {}
            done = tokmap(folder, *arguments, env={**os.environ, "LD_PRELOAD": library, "FAIL": "write:%d+" % number, **often})
            if done.returncode != 75:
                break
            said = done.stderr.decode()
            expect(said.count("Free some disk space and run the command again.") == 1, "%s, write %d: %s" % (arguments, number, said))
            is_complete = arguments[0] == "pack" and (folder / "out.tmi").exists()
            expect_equal("only the report is missing" in said, is_complete and "out.json" in said, said)
            expect(not is_complete or "out.json" in said or ".idx" in said, "%s, write %d: %s" % (arguments, number, said))
        expect(done.returncode == 0 and number > 1, "%s, write %d: %d, %s" % (arguments, number, done.returncode, done.stderr.decode()))


def long_documents_do_not_stay_in_memory(folder):
    """What is in memory is a few of them, however many there were and however many threads."""
    if SANITIZED:
        raise Skip("a sanitizer keeps what was freed")
    n_bytes = 16 << 20
    for i in range(8):
        (folder / ("long%d.txt" % i)).write_bytes(b"%d some words. " % i * (n_bytes // 14))
    names = sorted(path.name for path in folder.glob("long*.txt"))
    done = tokmap(folder, "pack", "-q", *names, "-o", "long", "-j", "8", "--memory", "8M")
    expect_equal(done.returncode, 0, done.stderr.decode())
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    expect(used < 16 * n_bytes, "%d bytes for documents of %d" % (used, n_bytes))


sys.exit(run_in_folders("", prepare=fill))

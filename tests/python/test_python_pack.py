#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.pack: every option of the command is an argument, the files are those of the command, and interrupts keep what was
done."""

import errno
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import package  # noqa: F401 - finds tokmap
from ref_protocol import expect, expect_equal, run_in_folders

import numpy as np
import tokmap
from tokmap._c.find import find_program
from tokmap._data import pack as module

# What a call has in another way, or does not have.
ELSEWHERE = {"plan", "task", "verify", "json", "quiet", "lines", "resume", "help", "tokenizer", "output"}


def lines_of(folder, n, name="texts.jsonl"):
    path = os.path.join(folder, name)
    with open(path, "w") as out:
        for i in range(n):
            print(json.dumps({"text": f"text {i}\n\n", "n": i, "lang": "en"}), file=out)
    return path


def raises(kind, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{arguments} {options}: no {kind.__name__}")


def every_option_of_the_command_is_an_argument(folder):
    help_text = subprocess.run([find_program("tokmap"), "pack", "--help"], capture_output=True, text=True, check=True).stdout
    options = set(re.findall(r"^ {2,}(?:-\w, )?--([a-z0-9-]+)", help_text, re.M)) - ELSEWHERE
    arguments = set(inspect.signature(tokmap.pack).parameters) - {"inputs", "tokenizer", "output", "progress"}
    expect_equal(arguments, {"replace" if one == "force" else one.replace("-", "_") for one in options}, "the arguments")
    for kind in ("Format", "Utf8", "OnError", "Specials", "Also"):
        name = {"OnError": "on-error"}.get(kind, kind.lower())
        after = help_text.split(f"--{name} ")[1]
        for word in getattr(module, kind).__args__:
            expect(re.search(rf"^ +{word}  ", after, re.M), f"{word} is no word of --{name}")


def files_are_those_of_the_command(folder):
    file, ours, theirs = lines_of(folder, 300), os.path.join(folder, "ours"), os.path.join(folder, "theirs")
    report = tokmap.pack(file, "bytes", ours, split={"valid": 0.125}, meta=["n", "lang"], where="n < 200", eod=256, threads=np.int64(2), include=[],
                         memory="64M", max_document=1000, format="jsonl")
    subprocess.run([find_program("tokmap"), "pack", file, "-o", theirs, "--split=valid=0.125", "--meta=n,lang", "-q",
                    "--where=n < 200", "--eod=256", "--max-document=1000", "--format=jsonl"], check=True)
    for end in (".bin", ".tmi", "-valid.bin", "-valid.tmi"):
        with open(ours + end, "rb") as a, open(theirs + end, "rb") as b:
            expect(a.read() == b.read(), f"{end} differs")
    expect_equal((report.datasets, report.n_documents, report.n_bad_documents), ([ours, ours + "-valid"], 200, 0), "the report")
    expect_equal(report.open().n_tokens + tokmap.open(ours + "-valid").n_tokens, report.n_tokens, "its tokens")
    expect(f"{ours}: 200 documents" in repr(report), repr(report))


def values_are_what_the_command_takes(folder):
    path = os.path.join(folder, "a text.txt")
    with open(path, "w") as out:
        out.write("one\\two\n--\nthree")
    report = tokmap.pack([path], "bytes", os.path.join(folder, "P"), separator="\n--\n", eod="none", report=path + ".json")
    expect_equal([bytes(report.open()[i].astype("u1")) for i in range(2)], [b"one\\two", b"three"], "the documents")
    with open(path + ".json") as written:
        expect_equal(json.load(written), report.values, "the report of the user")
    seen = tokmap.pack(path, "bytes", dry_run=True)
    expect_equal((seen.datasets, seen.estimated_tokens, len(seen.values["inputs"])), ([], 17, 1), "a dry run")
    expect_equal(sorted(os.listdir(folder)), ["P.bin", "P.tmi", "a text.txt", "a text.txt.json"], "the folder")
    with open(os.path.join(folder, "x.pdf"), "wb") as out:
        out.write(b"%PDF-1.4\n")
    seen = tokmap.pack([path, os.path.join(folder, "x.pdf")], "bytes", dry_run=True)
    expect("a dry run" in str(raises(ValueError, seen.open)), "open")
    expect_equal(list(seen.refused), [os.path.join(folder, "x.pdf")], "what cannot be packed")
    expect('use format="text"' in seen.refused[os.path.join(folder, "x.pdf")] and "is a PDF document" in repr(seen), repr(seen))


def the_memory_of_the_report_is_not_that_of_python(folder):
    (folder / "a.txt").write_text("text")
    ballast = b"x" * (400 << 20)
    peak = tokmap.pack(folder / "a.txt", "bytes", folder / "P").values["peak_memory_bytes"]
    expect(0 < peak < len(ballast) / 2, f"{peak:,} bytes")


def tables_have_columns(folder):
    path = folder / "a.csv"
    path.write_text('one,1,x\ntwo,2,y\n')
    report = tokmap.pack(path, "bytes", folder / "P", columns=["text", "n, \"quoted\"", "n"], meta="n", meta_text=["n"])
    expect_equal(report.values["formats"], {"csv": 1}, "the formats")
    expect_equal((report.open()[0].tolist(), len(report.open())), ([*b"one", 256], 2), "the documents")


def wrong_arguments_name_what_was_meant(folder):
    file, P = lines_of(folder, 3), os.path.join(folder, "P")
    for given, kind, text in (
            ({"tokeniser": 1}, TypeError, "did you mean tokenizer?"), ({"force": True}, TypeError, "did you mean replace=True?"),
            ({"n_threads": 2}, TypeError, "did you mean threads?"), ({"nonsense": 2}, TypeError, "help(tokmap.pack) lists them"),
            ({"plan": "x"}, TypeError, "tokmap pack --plan"), ({"format": "xml"}, ValueError, "must be one of 'auto', 'text'"),
            ({"split": "a=0.1"}, TypeError, "must be a dict"), ({"replace": "no"}, TypeError, "True or False"),
            ({"include": 3}, TypeError, "a list of them"), ({"threads": 0}, ValueError, "threads"),
            ({"where": "n <"}, ValueError, "where: character"), ({"limit_tokens": "x"}, ValueError, "limit_tokens=x: must be"),
            ({"specials_file": "x"}, ValueError, "specials_file works only with"), ({"progress": "x"}, TypeError, "progress"),
            ({"eod": True}, TypeError, "eod is True"), ({"meta": ["n,lang"]}, ValueError, "a name with a comma"), ({"field": "a\0b"}, ValueError, "zero byte")):
        error = raises(kind, tokmap.pack, file, "bytes", P, **given)
        expect(text in str(error), f"{given}: {error}")
    for arguments in (([], "bytes", P), ("-", "bytes", P), (file, None, P), (file, "bytes")):
        raises(ValueError, tokmap.pack, *arguments)
    expect_equal(os.listdir(folder), ["texts.jsonl"], "the folder")


def errors_are_those_of_the_package(folder):
    file, P = lines_of(folder, 3), os.path.join(folder, "P")
    error = raises(FileNotFoundError, tokmap.pack, [file, file + ".no"], "bytes", P)
    expect(file + ".no" in str(error), str(error))
    expect_equal((error.filename, error.errno), (file + ".no", errno.ENOENT), "an input that does not exist")
    error = raises(FileNotFoundError, tokmap.pack, f"@{file}.list", "bytes", P)
    expect_equal(error.filename, file + ".list", "a list that does not exist")
    error = raises(NotADirectoryError, tokmap.pack, file, "bytes", os.path.join(file, "P"))
    expect_equal(error.filename, os.path.join(file, "P.tmi.partial"), "an output below a file")
    error = raises(tokmap.ArgumentError, tokmap.pack, file, "bytes", P, field="txt")
    expect("use field= with one of text, lang" in str(error), str(error))
    tokmap.pack(file, "bytes", P)
    error = raises(tokmap.ExistsError, tokmap.pack, file, "bytes", P)
    if sys.version_info >= (3, 11):
        expect("Use replace=True to replace it" in error.__notes__[0], error.__notes__)
    expect_equal(tokmap.pack(file, "bytes", P, replace=True).n_documents, 3, "documents")


def notes_and_progress_are_shown(folder):
    code = ("import sys, tokmap\n"
            "seen = []\n"
            "tokmap.pack(sys.argv[1], 'bytes', sys.argv[2], on_error='skip', progress=seen.append)\n"
            "assert seen[-1].n_bytes == seen[-1].total_bytes > 0 and seen[-1].seconds >= 0, seen\n"
            "assert seen[-1].text.startswith('pack: '), seen\n"
            "tokmap.pack(sys.argv[1], 'bytes', sys.argv[2], on_error='skip', replace=True)\n")
    file = lines_of(folder, 3)
    with open(file, "a") as out:
        out.write("{broken\n")
    done = subprocess.run([sys.executable, "-c", code, file, os.path.join(folder, "P")], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    expect_equal((done.returncode, done.stdout), (0, ""), done.stderr)
    expect_equal(done.stderr.count("1 bad document left out"), 2, done.stderr)
    expect("progress" not in done.stderr and "\r" not in done.stderr, done.stderr)


def an_interrupt_keeps_what_was_done(folder):
    """As often as it takes until the run was interrupted after it had kept something, with more text each time."""
    os.environ["TOKMAP_CHECKPOINT_MS"] = "0"
    P, n = os.path.join(folder, "P"), 100_000
    for _ in range(6):
        file, n, is_over = lines_of(folder, n), 2 * n, threading.Event()

        def interrupt():
            while not is_over.is_set():
                journal = [name for name in os.listdir(folder) if name.startswith("P.") and "tmi" in name]
                if any(os.path.getsize(os.path.join(folder, name)) > 8192 for name in journal):
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                time.sleep(0.001)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            tokmap.pack(file, "bytes", P, replace=True)
        except KeyboardInterrupt:
            break
        finally:
            is_over.set()
            thread.join()
    else:
        raise AssertionError("six runs ended before they could be interrupted")
    expect(not os.path.exists(P + ".tmi"), "a dataset")
    report = tokmap.pack(file, "bytes", P)
    expect_equal((report.values["resumed"], report.n_documents), (True, n // 2), "the run after it")
    expect_equal(tokmap.pack(file, "bytes", os.path.join(folder, "Q")).n_tokens, report.n_tokens, "the tokens")


def an_exception_of_the_function_ends_the_command(folder):
    class Stop(Exception):
        pass

    def stop(progress):
        raise Stop(progress.text)

    expect("pack: " in str(raises(Stop, tokmap.pack, lines_of(folder, 3), "bytes", os.path.join(folder, "P"), progress=stop)),
           "the exception")


sys.exit(run_in_folders("pack_"))

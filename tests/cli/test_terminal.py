#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tokmap shows on a terminal, seen through a pseudo-terminal: no name of a file and no text makes the terminal do
anything; what is handed on to files and pipes is as it is stored."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import terminal
from ref_protocol import Skip, expect, expect_equal, program, run_in_folders, run_program

ENVIRONMENT = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
HOSTILE = [b"a\x1b[31m", b"a\xc2\x9b31m", b"a\x9b31m", b"a\xe2\x80\xaetxt.exe", b"a\xe2\x81\xa6b", b"a\nb",
           b"a\xff\xfe", b"a\xe2\x80\x8f", b"a\xed\xa0\x80", b"a\x7f\x08\r"]
PLAIN = "é 語 \u200d\U0001f600".encode()


def on_terminal(folder, *arguments, **options):
    return terminal.run([program("tokmap"), *arguments], cwd=folder, env=ENVIRONMENT, **options)


def piped(folder, *arguments):
    done = run_program("tokmap", *arguments, cwd=folder, env=ENVIRONMENT)
    return done.returncode, done.stdout, done.stderr


def harmless(printed, what):
    text = printed.decode()  # which is UTF-8
    text = re.sub("\r\033\\[\\?7l|\033\\[\\?7h|\r?\033\\[K", "", text)  # of a progress line
    text = re.sub("\r((pack|verify|merge|export|index): )", r"\1", text)
    found = OBEYED.search(text)
    expect(not found, "%s: %r" % (what, found and text[max(0, found.start() - 30):found.end() + 30]))


def names_of_files_are_escaped(folder):
    for i, name in enumerate(HOSTILE + [PLAIN]):
        with open(os.path.join(os.fsencode(folder), name), "wb") as f:
            f.write(b"text \x1b[31m\n")
        at = b"%d/%s" % (i, name)
        for arguments in ([b"pack", name, b"-o", at], [b"pack", b"--dry-run", name, b"-o", at],
                          [b"pack", b"--json", name, b"-o", at + b".j"], [b"pack", name, b"-o", at],
                          [b"pack", b"--tokenizer", name, name, b"-o", b"p"],
                          [b"pack", b"--format", b"jsonl", name, b"-o", b"p"],
                          [b"pack", b"@" + name, b"-o", b"p"], [b"pack", b"--" + name],
                          [b"info", b"--inputs", at, at + b".j"], [b"info", b"--json", at], [b"info", at + b"x"],
                          [b"verify", at, at + b"x"], [b"verify", b"--json", at, at + b"x"],
                          [b"cat", at], [b"cat", b"--text", at], [b"cat", b"--text", at + b"x"],
                          [b"merge", at, at, b"-o", at + b".m"], [b"merge", b"--json", at, at, b"-o", at + b".n"],
                          [b"export", b"--to", b"raw", at, b"-o", at + b".e"],
                          [b"export", b"--to", b"raw", b"--json", at, b"-o", at + b".f"],
                          [b"index", name], [b"index", at + b".e.bin", b"--dtype", b"u16", b"--eod", b"256"],
                          [b"encode", b"--tokenizer", b"bytes", name], [b"decode", b"--tokenizer", b"bytes", name],
                          [name]):
            status, printed = on_terminal(folder, *arguments)
            harmless(printed, arguments)
            harmless(piped(folder, *arguments)[2], arguments)
            if name == PLAIN and status == 0 and arguments[0] == b"pack":
                expect(PLAIN in printed, (arguments, printed))
    status, out, _ = piped(folder, b"info", b"--json", b"1/" + HOSTILE[1])
    expect_equal(json.loads(out)["token_file"], "1/a\x9b31m.bin", "the name in JSON")


def text_is_escaped_on_a_terminal_and_as_it_is_in_a_pipe(folder):
    document = b"".join(HOSTILE) + b"\ttab, " + PLAIN
    document += b"x" * (4095 - len(document)) + "語".encode() * 3000 + b"\xe8\xaa"  # characters across pieces
    (folder / "text").write_bytes(document)
    status, _, err = piped(folder, "pack", "--format", "text", "--utf8", "raw", "text", "-o", "P")
    expect_equal(status, 0, err)
    expect_equal(piped(folder, "cat", "--text", "P"), (0, document + b"\n", b""), "in a pipe")
    status, printed = on_terminal(folder, "cat", "--text", "P")
    harmless(printed, "cat --text")
    wanted = document.decode("utf-8", "surrogateescape")
    wanted = re.sub("[\ud800-\udfff]", lambda m: "\\x%02x" % (ord(m.group()) - 0xdc00), wanted)
    wanted = OBEYED.sub(lambda m: "".join("\\x%02x" % b for b in m.group().encode()), wanted)
    expect_equal((status, printed.decode()), (0, wanted + "\n"), "on a terminal")
    status, printed = on_terminal(folder, "cat", "--raw", "P")
    expect_equal((status, b"--raw does not print to a terminal" in printed), (2, True), printed)


def texts_in_json_are_escaped_everywhere(folder):
    text = "\x1b\x9b\u202e\u2066é\x7f"
    ids = json.dumps(list(text.encode())).encode()
    (folder / "ids").write_bytes(ids + b"\n")
    status, out, _ = piped(folder, "decode", "--tokenizer", "bytes", "ids")
    harmless(out, "decode")
    expect_equal(json.loads(out), text, "decoded")


def pack_from_a_pipe(place, *more):
    """A run that has shown progress, and waits for input."""
    session = terminal.Session([program("tokmap"), "pack", "--lines", "-", *more, "-o", "P"], cwd=place,
                               stdin=subprocess.PIPE, env=ENVIRONMENT)
    session.process.stdin.write(b"some words\n" * 100000)
    session.process.stdin.flush()
    while b"pack: " not in session.text:
        expect(session.read(), session.text)
    return session


def the_last_line_of_progress_has_time_and_rate(folder):
    session = pack_from_a_pipe(folder)
    session.process.stdin.close()
    status, printed = session.end()
    shown = printed.decode().split("\n")
    expect(re.fullmatch(r".*\rpack: 1\.0 MiB in \d+\.\d s, \d+\.\d MB/s of text, \d+\.\d\d M tokens/s, \d\.\d\d bytes a token\x1b\[K", shown[-4]),
           shown)
    expect(shown[-3].startswith("P: 100,000 documents, 1,100,000 tokens (u16), "), shown)
    expect_equal((status, shown[-1]), (0, ""), "the end")


def a_line_of_progress_does_not_wrap_and_has_no_share_of_what_is_not_known(folder):
    session = pack_from_a_pipe(folder, __file__)
    while b"\033[K" not in session.text:
        expect(session.read(), session.text)
    session.process.send_signal(signal.SIGINT)
    session.end()
    session.process.stdin.close()
    expect(re.match(rb"\r\033\[\?7lpack: [^\033%]*\033\[\?7h\033\[K", session.text), session.text)


def progress_of_a_task_shows_its_cell_and_the_time_of_all(folder):
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("some words\n" * 100000)
    run_program("tokmap", "plan", "a.txt", "b.txt", "--cell-size", "1100000", "--cells", "cells", "-o", "run.plan", cwd=folder)
    slow = ["strace", "-f", "-qq", "-o", os.devnull, "-P", "a.txt", "-P", "b.txt", "-e", "trace=read",
            "-e", "inject=read:delay_enter=100000"]  # so that a line is due; it is in microseconds
    status, printed = terminal.run([*slow, program("tokmap"), "pack", "--plan", "run.plan"], cwd=folder, env=ENVIRONMENT)
    if b"pack: task 0/1: 2 cells packed" not in printed:
        raise Skip("strace cannot delay: %r" % printed[-200:])
    expect(re.search(rb"cell 1/2: [^\r]* of 1\.0 MiB ", printed) and re.search(rb"cell 2/2: [^\r]* s left for the task", printed)
           and b"\rcell 2/2: 1.0 MiB in " in printed, printed)


def an_early_interruption_says_that_nothing_was_kept(folder):
    session = pack_from_a_pipe(folder)
    session.process.send_signal(signal.SIGINT)
    status, printed = session.end()
    session.process.stdin.close()
    expect(printed.endswith(b"tokmap pack: interrupted\nNothing was saved: the next run starts over.\n"), printed)
    expect_equal(status, 75, "exit status")
    expect_equal(os.listdir(folder), [], "files")


sys.exit(run_in_folders(""))

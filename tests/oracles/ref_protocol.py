# SPDX-License-Identifier: Apache-2.0
"""What the tests in Python share: the protocol of tests/run.sh, the built programs."""

import atexit
import functools
import gc
import importlib
import inspect
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

BUILD = os.environ.get("TOKMAP_BUILD")
# For the environment of a process that a test stops or kills: LeakSanitizer looks at the process from another one,
# and waits for ever if one of them is stopped or killed.
NO_LEAK_SEARCH = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason."""


def need(name, version=None):
    """A Python package or module, without which the test is skipped, as without this version or Unicode version."""
    try:
        found = importlib.import_module(name)
    except ImportError:
        raise Skip("there is no Python package %s" % name) from None
    has = getattr(found, "unidata_version", None) or getattr(found, "__version__", None)
    if version not in (None, has):
        raise Skip("%s %s is installed, not %s" % (name, has, version))
    return found


def need_parquet():
    """pyarrow and its module for Parquet."""
    return need("pyarrow"), need("pyarrow.parquet")


def expect(condition, why):
    if not condition:
        raise AssertionError(why)


def expect_equal(got, wanted, what):
    if got != wanted:
        raise AssertionError("%s: got %.300r, expected %.300r" % (what, got, wanted))


def _explain(error):
    """The error, the line of the script that failed, the frames below it, and the error before it, in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    of_script = [frame for frame in frames if frame.filename == sys.modules["__main__"].__file__] or frames
    below = frames[frames.index(of_script[-1]) + 1:]
    places = ["%s:%d: %s" % (os.path.basename(f.filename), f.lineno, f.line) for f in [of_script[-1], *below] if f.filename != __file__]
    text = "".join(traceback.format_exception_only(type(error), error)).strip().replace("\n", " | ")
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " | ".join([text.replace("AssertionError: ", "", 1), *places, *(["after " + _explain(before)] if before else [])])


def run_tests(tests):
    """Runs (name, function) pairs, of which $ONLY may be a part of the name; a function may return text to show.
    Returns the exit status."""
    n_failed = n_ok = 0
    only = os.environ.get("ONLY", "")
    chosen = [test for test in tests if only in test[0]]
    if only and not chosen:
        print("skip %s: no test has %s in its name" % (os.path.basename(sys.argv[0]), only), flush=True)
    for name, function in chosen:
        try:
            note = function()
        except Skip as e:
            print("skip %s: %s" % (name, e), flush=True)
            continue
        except Exception as e:
            n_failed += 1
            print("FAIL %s: %s" % (name, _explain(e)), flush=True)
            continue
        n_ok += 1
        print("ok %s%s" % (name, " (%s)" % note if note else ""), flush=True)
    if n_failed > 0:
        return 1
    return 0 if n_ok > 0 else 77


def tests_of_script(prepare=None, parameter="folder"):
    """The functions of the running script whose only parameter has this name, in their order, but not `prepare`."""
    found = vars(sys.modules["__main__"]).values()
    return [test for test in found if inspect.isfunction(test) and test.__module__ == "__main__"
            and test is not prepare and list(inspect.signature(test).parameters) == [parameter]]


def run_in_folders(prefix, tests=None, prepare=lambda folder: None):
    """Runs each test, those of the script if none are given, in a folder of its own, which `prepare` may fill; if it
    returns something, the test gets that. Returns the exit status."""

    def run(test):
        with tempfile.TemporaryDirectory() as name:
            note = test(prepare(pathlib.Path(name)) or pathlib.Path(name))
        gc.collect()
        return note

    return run_tests([(prefix + test.__name__, functools.partial(run, test))
                      for test in tests or tests_of_script(prepare)])


def run_with(**shared):
    """`run_with(case=x)` runs each function of the script whose only parameter is `case` with x. Returns the exit
    status."""
    (parameter, value), = shared.items()
    return run_tests([(test.__name__, functools.partial(test, value))
                      for test in tests_of_script(parameter=parameter)])


def program(name):
    if BUILD is None:
        raise Skip("TOKMAP_BUILD is not set")
    path = os.path.join(BUILD, name)
    if not os.access(path, os.X_OK):
        raise Skip("%s is not built: make build/%s" % (name, name))
    return path


@functools.lru_cache(None)
def _program_without_python():
    """A folder with a copy of the program, and a script that prints what it gets in place of running a command."""
    folder = tempfile.mkdtemp(prefix="handed_over_")
    atexit.register(shutil.rmtree, folder)
    shutil.copy(program("tokmap"), folder)
    script = pathlib.Path(folder, "tokmap-python")
    script.write_text("#!/bin/sh\nshift 3\nprintf '%s\\0' \"$@\"\n")
    script.chmod(0o755)
    return folder


def hand_over(*arguments):
    """The end of the program for a command in Python, and the arguments that the Python package gets, to be run here."""
    folder = _program_without_python()
    done = subprocess.run([os.path.join(folder, "tokmap"), *map(str, arguments)], capture_output=True, encoding="utf-8",
                          errors="surrogateescape", env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
    return done, done.stdout.split("\0")[:-1]


NAMING_CALLS = ("link", "linkat", "rename", "renameat", "renameat2", "unlink", "unlinkat")


def kills(prepare, *arguments, calls=NAMING_CALLS, **options):
    """Runs tokmap again and again: killed at the first use of a call, at the second and so on, as strace counts each call
    apart; `prepare` runs before each. Yields after each kill."""
    if not shutil.which("strace"):
        raise Skip("there is no strace")
    for call in calls:
        for n in itertools.count(1):
            prepare()
            done = subprocess.run(["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=?" + call, "-e",
                                   "inject=?%s:signal=KILL:when=%d" % (call, n), program("tokmap"), *map(str, arguments)],
                                  capture_output=True, text=True, **options)
            if done.returncode == 0:
                break
            if done.returncode not in (-9, 137):
                raise Skip("strace cannot kill: " + done.stderr[-200:])
            yield "%s %d" % (call, n)


def split_texts(data):
    """What put_bytes of pipes.h wrote: texts, each after its length."""
    texts, at = [], 0
    while at < len(data):
        n = int.from_bytes(data[at:at + 4], "little")
        texts.append(data[at + 4:at + 4 + n])
        at += 4 + n
    return texts


def run_program(name, *arguments, **options):
    """Runs a built program with options of subprocess.run, and returns what that does."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    words = [word if isinstance(word, bytes) else str(word) for word in arguments]
    return subprocess.run([program(name), *words],
                          **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 900, **options})


def call(name, *arguments, stdin=b"", check=True):
    """Runs a built program. Returns (exit status, stdout bytes)."""
    done = run_program(name, *arguments, input=stdin)
    if check and done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace")
        raise AssertionError("%s %s: exit %d: %s" % (name, arguments, done.returncode, message))
    return done.returncode, done.stdout


def tokmap(folder, *arguments, code=0, command=None, **environment):
    """Runs tokmap in a folder; it ends with this status. Returns what it says."""
    done = run_program(command or "tokmap", *arguments, cwd=folder, text=True, errors="replace",
                       env={**os.environ, **environment})
    expect_equal(done.returncode, code, "exit status of %s; it said %s" % (arguments, done.stdout + done.stderr))
    return done.stdout + done.stderr


@functools.lru_cache
def reads(library):
    """Whether this build decompresses with zlib or zstd."""
    return not re.search("^%s +not in this build" % library, call("tokmap", "--version")[1].decode(), re.MULTILINE)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Encoding and decoding take time that grows with the length of a run, not with its square: with each tokenizer of
test_oracles.py, 2 MB take at most 24 times the CPU time of 250 kB. Each tokenizer with a trained vocabulary gets
some of the kinds of runs, with TOKMAP_LONG=all each tokenizer all of them. test_split_time.c has the splits alone.

Environment: ORACLE_FAMILIES."""

import contextlib
import ctypes
import os
import pathlib
import random
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from package import BUILD  # noqa: F401

import oracle_sections
import tokmap
from oracle_reference import package
from ref_protocol import run_tests

LONG = os.environ.get("TOKMAP_LONG") == "all"
# The ids of the large text are in another cache than those of the small one, so that 8 times the text took up to 13.1 times as
# long. What grows with the square alone takes 64 times as long.
SMALL, TIMES, MOST_TIMES, TRIES = 250000, 8, 24, 15
CERTAIN_SECONDS = 5  # for the large text: no other load of the machine explains it
RUNS = [" ", "\n", "\t", "\r\n", " \n", "\n ", "\u00a0", "\u3000", "\u2003\n", "\u2581", "a", "A", "aA", "\u00e9", "\u0430", "\u4e00",
        "\u3042", "\uac00", "\u0e01", "\u02b0", "\u0301", "a\u0301", "\u0315\u0300", "a\u0315\u0300", "\u4e00A", "\u200d", "\ufdfa",
        "\U0001f600", "\U0001d400", "1", "\u0967", "\u00b2", " 1", "1,", "1a", "'", "'s", "a'", "!", "!\n", "/", "/\n", ".a", "_", "\x01",
        "ab", "the cat ", "ab 123 cd ", "x   y  \n", "\u4e00\u4e8c12\u3002", "``", "''"]


def seconds(tokenizer, text):
    began = time.process_time()
    ids = tokenizer.encode(text, specials="match")
    with contextlib.suppress(tokmap.UnsupportedError):
        tokenizer.decode(ids)
    return time.process_time() - began


def check_run(tokenizer, run):
    small = run * (SMALL // len(run.encode()) + 1)
    large = small * TIMES
    least = TIMES * seconds(tokenizer, small)
    most = seconds(tokenizer, large)
    for k in range(TRIES):
        if TIMES * most <= MOST_TIMES * least or most > CERTAIN_SECONDS:
            break
        # What else the machine does changes what is in the caches, so equal amounts of work are compared, and it may take
        # seconds until it ends.
        time.sleep(k / 20)
        again = sum(seconds(tokenizer, small) for _ in range(TIMES))
        least = min(least, again) if k else again
        most = min(most, seconds(tokenizer, large))
    assert TIMES * most <= MOST_TIMES * least, "a run of %s: %.4f s for %d bytes, %.4f s for %d times %d" % (
        ascii(run), most, len(large.encode()), least, TIMES, len(small.encode()))


def check_family(oracle):
    with tempfile.TemporaryDirectory() as folder:
        path, options, reference = oracle.make(1, pathlib.Path(folder))
        options = dict(zip(options[::2], options[1::2]))
        tokenizer = tokmap.Tokenizer(path, pattern=options.get("--pattern"), specials_file=options.get("--specials-file"))
    rng = random.Random(oracle.name)
    runs = RUNS + [mark for mark in reference.marks if mark][:8]
    for run in runs if LONG else rng.sample(runs, 2):
        check_run(tokenizer, run)


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def keep_memory():
    """New pages would cost the long texts more than the short ones."""
    for parameter in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
        ctypes.CDLL(None).mallopt(parameter, 32 << 20)


def main():
    if os.environ.get("TOKMAP_SANITIZED"):
        print("skip linear_time: a sanitizer changes what takes time")
        return 77
    keep_memory()
    sections = {"tokenizers": oracle_sections.hf_section, "tiktoken": oracle_sections.tiktoken_section,
                "sentencepiece": oracle_sections.spm_section}
    found = [oracle for kind, section in sections.items() if package(kind) for oracle in section()
             if not oracle.refused and (LONG or not oracle.name.endswith(("_wild", "_zoo")))]
    return run_tests([(oracle.name, lambda oracle=oracle: check_family(oracle)) for oracle in found])


if __name__ == "__main__":
    sys.exit(main())

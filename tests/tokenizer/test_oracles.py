#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tokmap encode` and `tokmap decode` against the packages that define the ids: tokenizers,
tiktoken, sentencepiece. Tokenizers of every family are made on the spot (oracle_sections), texts
are random and nasty (oracle_texts), and what differs is shrunk before it is shown.

Packages that are not there are skipped. Environment: ORACLE_SECONDS (how long; without it the number of texts is fixed),
ORACLE_SEED, ORACLE_ONLY (a part of the names), ORACLE_KEEP (a folder for tokenizers that differ), ORACLE_FAMILIES (for
make test-tokenizers: all published pipelines, and packed corpora).
"""

import functools
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

import oracle_sections
import oracle_texts
from oracle_reference import PLAIN, first_difference, package, shrink, tokmap
from ref_protocol import Skip, call, expect, expect_equal, program, run_tests

LONG = os.environ.get("TOKMAP_LONG") == "all"
SECONDS = float(os.environ.get("ORACLE_SECONDS", 0))
N_SEEDS, N_BATCHES = (3, 4) if LONG else (1, 1)  # without ORACLE_SECONDS
SEED = int(os.environ.get("ORACLE_SEED", 1))
BATCH = 250 if SECONDS > 60 else 120 if LONG or SECONDS else 60
MAX_REFUSALS = 3


class Refused(Exception):
    """tokmap does not take this tokenizer, and says so."""


# ---- tokmap ----


class Tokmap:
    def __init__(self, tokenizer, options):
        self.tokenizer, self.options = tokenizer, options

    def run(self, command, lines, *options):
        rows, why = tokmap(command, self.tokenizer, lines, *self.options, *options)
        if rows is None and tokmap("encode", self.tokenizer, [], *self.options)[0] is None:  # and not an input
            expect(why.startswith("exit 3: "), why)
            raise Refused(why)
        expect_equal(why, None, "tokmap %s %s %s" % (command, self.tokenizer, " ".join([*self.options, *options])))
        return rows

    def encode(self, texts, specials="text"):
        return self.run("encode", texts, "--specials", specials)

    def decode(self, rows):
        return self.run("decode", rows)

    def pack(self, path, *options):
        """The ids of each document."""
        out = str(path) + ".packed"
        call("tokmap", "pack", "-q", "-f", "--eod", "none", "--tokenizer", str(self.tokenizer), *self.options, *options,
             str(path), "-o", out)
        return [[*map(int, ids.split())] for ids in call("tokmap", "cat", out)[1].decode().split("\n")[:-1]]


# ---- Comparing ----


def shown(text):
    """In ASCII, and so that each blank can be counted."""
    return ascii(text).replace(" ", "\\x20")


@functools.lru_cache
def corpus():
    """Documents that are longer than what tokmap encodes at once: real text, and parts of it with what is hard."""
    rng, slices = random.Random("corpus"), []
    while sum(map(len, slices)) < 700000:
        text = rng.choice(PLAIN)
        at = rng.randrange(len(text))
        slices.append(text[at : at + rng.choice((30, 300, 3000, 30000))])
        if rng.random() < 0.3:
            slices.append(rng.choice(oracle_texts.CODE + oracle_texts.COMPOSED + oracle_texts.EXTRA) * rng.choice((1, 1, 20)))
    return [max(PLAIN, key=len), "".join(slices)]


class Comparison:
    """A tokenizer in tokmap and in its reference."""

    def __init__(self, what, tokmap, reference):
        self.what, self.tokmap, self.reference = what, tokmap, reference

    def wanted(self, texts, specials):
        if specials != "drop":
            return self.reference.encode[specials](texts)
        rows = self.reference.encode["match"](texts)
        return [[i for i in ids if i not in self.reference.special_ids] for ids in rows]

    def encode(self, texts, specials):
        """The ids, once they are equal."""

        def differs(some):
            return first_difference(some, self.tokmap.encode(some, specials),
                                    self.wanted(some, specials))

        got = self.tokmap.encode(texts, specials)
        text = first_difference(texts, got, self.wanted(texts, specials))
        if text is not None:
            text = shrink(text, differs)
            self.fail("specials %s, text %s" % (specials, shown(text)),
                      self.tokmap.encode([text], specials)[0], self.wanted([text], specials)[0])
        return got

    def decode(self, rows):
        def differs(some):
            # Where bytes are no text the reference puts U+FFFD, each its own way.
            pairs = zip(some, self.reference.decode(some))
            pairs = [(ids, text) for ids, text in pairs if "\ufffd" not in text]
            some = [ids for ids, _ in pairs]
            return first_difference(some, self.tokmap.decode(some), [text for _, text in pairs])

        ids = differs(rows)
        if ids is not None:
            ids = shrink(ids, differs)
            self.fail("decode %r" % (ids,), shown(self.tokmap.decode([ids])[0]),
                      shown(self.reference.decode([ids])[0]))

    def batch(self, seed):
        """Returns the number of texts compared."""
        texts = oracle_texts.Texts(seed, self.reference.marks, PLAIN).many(BATCH)
        for specials in self.reference.encode:
            got = self.encode(texts, specials)
            if self.reference.decode:
                self.decode(got)
        if self.reference.special_ids:
            self.encode(self.droppable(texts), "drop")
        return BATCH * len(self.reference.encode)

    def packed(self, folder, memories):
        wanted = self.reference.encode["text"](corpus())
        path = folder / "corpus.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in corpus()))
        for memory in memories:
            got = self.tokmap.pack(path, "--memory", memory)
            expect_equal(len(got), len(wanted), "documents")
            for i, (ids, right) in enumerate(zip(got, wanted)):
                if ids != right:
                    at = next((k for k, pair in enumerate(zip(ids, right)) if pair[0] != pair[1]), 0)
                    self.fail("document %d of the corpus, --memory %s, from id %d on" % (i, memory, at), ids[at:], right[at:])

    def droppable(self, texts):
        """Those in which an id of a special comes from a special, and not from the unknown."""
        rows = self.reference.encode["text"](texts)
        return [text for text, ids in zip(texts, rows) if not self.reference.special_ids & set(ids)]

    def fail(self, where, got, wanted):
        kept = keep(self.what, self.tokmap.tokenizer)
        raise AssertionError("%s: %s: tokmap %.300s, reference %.300s%s"
                             % (self.what, where, got, wanted, kept))


def keep(what, tokenizer):
    folder = os.environ.get("ORACLE_KEEP")
    if not folder:
        return ""
    os.makedirs(folder, exist_ok=True)
    name = "".join(c if c.isalnum() else "_" for c in what)
    path = os.path.join(folder, name + pathlib.Path(tokenizer).suffix)
    shutil.copy(tokenizer, path)
    return " (kept: %s)" % path


# ---- Running ----


class Run:
    """An oracle: N_SEEDS tokenizers, or with ORACLE_SECONDS as many as its share of the time allows, one at least."""

    def __init__(self, oracle, seconds):
        self.oracle, self.seconds = oracle, seconds
        self.n_texts = self.n_made = 0
        self.refusals = []

    def __call__(self):
        self.deadline = time.monotonic() + self.seconds
        seed = SEED
        while self.n_made == 0 or self.goes_on():
            with tempfile.TemporaryDirectory() as folder:
                self.one_seed(seed, pathlib.Path(folder))
            seed += 1
        if self.n_texts == 0:
            raise Skip("refused: " + self.refusals[0])
        refused = self.refusals and ", %d refused: %s" % (len(self.refusals), self.refusals[0])
        return "%d texts, %d tokenizers%s" % (self.n_texts, self.n_made, refused or "")

    def goes_on(self):
        is_wanted = time.monotonic() < self.deadline if SECONDS else self.n_made < N_SEEDS
        return is_wanted and len(self.refusals) < MAX_REFUSALS and not self.oracle.texts

    def one_seed(self, seed, folder):
        path, options, reference = self.oracle.make(seed, folder)
        what = "%s, seed %d" % (self.oracle.name, seed)
        comparison = Comparison(what, Tokmap(path, options), reference)
        self.n_made += 1
        try:
            self.compare(comparison, seed)
            if self.oracle.memories and self.n_made == 1:
                comparison.packed(folder, self.oracle.memories)
            expect(not self.oracle.refused, "%s: taken, but it should say %s" % (what, self.oracle.refused))
        except Refused as e:
            says = " ".join(str(e).split()).replace(str(folder) + "/", "")
            if self.oracle.refused:
                expect(self.oracle.refused in says, says)
                self.n_texts += 1
            elif self.oracle.must:
                why = "%s: must work%s, but: %s" % (what, keep(what, path), says)
                raise AssertionError(why) from None
            else:
                self.refusals.append(says)

    def compare(self, comparison, seed):
        texts = self.oracle.texts
        if texts:
            for first in range(0, len(texts), 20000):
                comparison.encode(texts[first : first + 20000], "text")
            self.n_texts += len(texts)
            return
        # Several tokenizers rather than many texts for one.
        part = time.monotonic() + max(0.5, (self.deadline - time.monotonic()) / 4)
        batch = 0
        while batch == 0 or (time.monotonic() < min(part, self.deadline) if SECONDS else batch < N_BATCHES):
            self.n_texts += comparison.batch("%s %d %d" % (self.oracle.name, seed, batch))
            batch += 1


def skipped(why):
    def test():
        raise Skip(why)

    return test


def all_tests():
    found, tests = [], []
    sections = {"tokenizers": oracle_sections.hf_section,
                "tiktoken": oracle_sections.tiktoken_section,
                "sentencepiece": oracle_sections.spm_section}
    for name, section in sections.items():
        if package(name):
            found += section()
        else:
            tests.append((name, skipped("no Python package %s" % name)))
    found += oracle_sections.sweep_section(SEED, 1 if SECONDS >= 600 else 4 if LONG else 48)
    found = [oracle for oracle in found if os.environ.get("ORACLE_ONLY", "") in oracle.name]
    return tests + [(oracle.name, Run(oracle, SECONDS / len(found))) for oracle in found]


def main():
    try:
        program("tokmap")
    except Skip as e:
        print("skip oracles: %s" % e)
        return 77
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    versions = ["%s %s" % (name, package(name).__version__)
                for name in ("tokenizers", "tiktoken", "sentencepiece") if package(name)]
    if versions:
        print("note against %s; seed %d" % (", ".join(versions), SEED))
    return run_tests(all_tests())


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares tokmap with the reference package `tokenizers` on random tokenizers (oracle_pipelines.py).

usage: check_pipelines.py [N] [TEXTS] [SEED]   N tokenizers (200), TEXTS texts each (200): ids, with special
                                               tokens as text and matched, and decoded ids; of
                                               one in ten also a packed document, which is cut
       check_pipelines.py --one SEED I [TEXTS] tokenizer I of a seed; leaves it in the folder $KEEP
What tokmap refuses is counted by reason; what the reference cannot load has to be refused. Fails if one
differs. Environment: TOKMAP_BUILD; KEEP, a folder for the tokenizers that differ.
"""
import os

os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RUST_BACKTRACE"] = "0"
import collections
import json
import pathlib
import random
import re
import shutil
import sys
import tempfile
import time

import tokenizers

import oracle_pipelines
from oracle_reference import PLAIN, first_difference, shrink, tokmap
from oracle_texts import Texts, sweep
from ref_protocol import run_program

KEEP = os.environ.get("KEEP")


class Reference:
    def __init__(self, content):
        """Raises if it cannot be loaded; PanicException is no Exception."""
        self.tokenizer = tokenizers.Tokenizer.from_str(json.dumps(content))
        self.marks = [a.content for a in self.tokenizer.get_added_tokens_decoder().values()]

    def encode(self, texts, policy):
        self.tokenizer.encode_special_tokens = policy == "text"
        return self.each(texts, lambda some: [e.ids for e in self.tokenizer.encode_batch_fast(
            some, add_special_tokens=False)])

    def decode(self, rows):
        return self.each(rows, lambda some: self.tokenizer.decode_batch(some, skip_special_tokens=False))

    def each(self, some, do):
        """None for what it fails on."""
        try:
            return do(some)
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            if len(some) == 1:
                return [None]
            return [one for part in some for one in self.each([part], do)]


class Case:
    """A tokenizer in both."""

    def __init__(self, folder, name, content):
        self.name, self.content = name, content
        self.file = folder / "tokenizer.json"
        self.file.write_text(json.dumps(content, ensure_ascii=False), "utf-8")
        self.found = []  # what differs
        self.n_failed = 0  # texts and rows that the reference fails on

    def say(self, text):
        self.found.append("%s: %s" % (self.name, text))

    def tokmap(self, command, rows, *options):
        got, why = tokmap(command, self.file, rows, *options)
        if got is None and not why.startswith("exit 3"):
            self.say("tokmap %s: %s" % (command, why))
        return got, why

    def compare(self, what, some, tokmap, reference):
        """A text or a row that the reference fails on has no right answer; tokmap need not know."""
        got, why = tokmap(some)
        if got is None:
            return why
        wanted = reference(some)
        self.n_failed += sum(right is None for right in wanted)
        wrong = [i for i in range(len(some)) if wanted[i] is not None and got[i] != wanted[i]]
        if wrong:
            one = shrink(some[wrong[0]], lambda shorter: first_difference(shorter, tokmap(shorter)[0], reference(shorter)))
            self.say("%s: %d of %d differ: %a: tokmap %a, reference %a"
                     % (what, len(wrong), len(some), one, tokmap([one])[0][0], reference([one])[0]))
        return None

    def run(self, rng, n_texts):
        """Why tokmap refused to encode or decode, or None for each."""
        try:
            reference = Reference(self.content)
        except BaseException as e:
            got, why = self.tokmap("encode", [])
            if got is not None:
                self.say("taken, but the reference cannot load it: %s" % e)
            return "not for the reference either", None
        texts = texts_for(rng, n_texts, reference.marks)
        for policy in ("text", "match"):
            why = self.compare("specials " + policy, texts,
                               lambda some: self.tokmap("encode", some, "--specials", policy),
                               lambda some: reference.encode(some, policy))
            if why:
                return why, None
        rows = [ids for ids in reference.encode(texts, "match") if ids]
        ids = sorted({i for row in rows for i in row} | set(reference.tokenizer.get_added_tokens_decoder()))
        rows += [rng.choices(ids, k=rng.randint(1, 6)) for _ in range(n_texts // 4)] if ids else []
        if rng.random() < 0.1:
            self.compare_packed(rng, texts, reference)
        return None, self.compare("decode", rows, lambda some: self.tokmap("decode", some), reference.decode)

    def compare_packed(self, rng, texts, reference):
        """A document that is cut, because it is longer than what is encoded at once."""
        folder = self.file.parent
        document = " ".join(rng.choices(texts, k=16 * len(texts)))
        document *= 1 + 300000 // len(document.encode())
        (folder / "c.jsonl").write_text(json.dumps({"text": document}) + "\n")
        done = run_program("tokmap", "pack", "-q", "-j", "2", "--eod", "none", "--memory", "8M", "--tokenizer",
                           str(self.file), folder / "c.jsonl", "-o", folder / "c")
        if b"cannot be cut" in done.stderr:
            return
        ids = run_program("tokmap", "cat", folder / "c").stdout
        wanted = reference.encode([document], "text")[0]
        if wanted is not None and list(map(int, ids.split())) != wanted:
            self.say("packed with cuts: %s" % (done.stderr.decode() or "differs"))


def texts_for(rng, n, marks):
    makers = Texts(rng.random(), marks, PLAIN)
    texts = ["", " ", "\n", "In 2024", "  a", "a  "] + sweep(rng, n // 10) + makers.many(n)
    return [text.encode("utf-8", "replace").decode() for text in texts[:n]]


def reason(why):
    """Without what is different in each file."""
    why = why.rsplit("tokenizer.json: ", 1)[-1]
    why = re.sub(r"the regex .* is not", "the regex ... is not", why, flags=re.S)
    why = re.sub(r'"[^"]*"|\d+|0x[0-9A-F]+', "...", why)
    return why[:110]


def keep(case, name):
    if KEEP:
        os.makedirs(KEEP, exist_ok=True)
        shutil.copy(case.file, os.path.join(KEEP, name + ".json"))


def one(seed, i, n_texts):
    """The case, and why it was not encoded and not decoded."""
    rng = random.Random("%s %s" % (seed, i))
    with tempfile.TemporaryDirectory() as folder:
        content = oracle_pipelines.Maker(rng.random()).make()
        case = Case(pathlib.Path(folder), "%s %s" % (seed, i), content)
        refused = case.run(rng, n_texts)
        if case.found:
            keep(case, "%s-%s" % (seed, i))
    return case, refused


def main():
    words = sys.argv[1:]
    single = words[:1] == ["--one"]
    if single:
        seed, i, n_texts = words[1], int(words[2]), int((words + [200] * 4)[3])
        print("\n".join(one(seed, i, n_texts)[0].found))
        return
    n, n_texts, seed = int((words + ["200"])[0]), int((words + ["200"] * 2)[1]), (words + ["1"] * 3)[2]
    not_encoded, not_decoded = collections.Counter(), collections.Counter()
    n_wrong, n_failed, began = 0, 0, time.monotonic()
    for i in range(n):
        case, (encoding, decoding) = one(seed, i, n_texts)
        not_encoded.update([reason(encoding)] if encoding else [])
        not_decoded.update([reason(decoding)] if decoding else [])
        n_wrong += bool(case.found)
        n_failed += case.n_failed
        for line in case.found:
            print(line, flush=True)
        if (i + 1) % 100 == 0:
            print("%d of %d, %d differ, %.0f s" % (i + 1, n, n_wrong, time.monotonic() - began), flush=True)
    for what, refused in (("taken", not_encoded), ("decoded", not_decoded)):
        print("Not %s:" % what)
        for why, count in refused.most_common():
            print("%6d  %s" % (count, why))
    print("The reference fails on %d texts of tokenizers that tokmap takes, or rows of ids." % n_failed)
    n_taken = n - sum(not_encoded.values())
    print("seed %s: %d tokenizers, %d taken, %d of them decode, %d texts each, %d differ"
          % (seed, n, n_taken, n_taken - sum(not_decoded.values()), n_texts, n_wrong))
    sys.exit(1 if n_wrong else 0)


if __name__ == "__main__":
    main()

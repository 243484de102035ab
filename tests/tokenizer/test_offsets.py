#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Offsets of tokens (`Tokenizer.encode(..., offsets=True)`) against those of tokenizers, tiktoken and sentencepiece, with
the tokenizers and texts of test_oracles.py. What differs is shrunk before it is shown.

Environment: ORACLE_SECONDS (how long; without it the number of texts is fixed), ORACLE_SEED, ORACLE_ONLY, ORACLE_FAMILIES."""

import os
import pathlib
import re
import sys
import tempfile
import time
import unicodedata

sys.path.append(str(pathlib.Path(__file__).parents[1] / "python"))
from package import BUILD  # noqa: F401

import numpy as np
import oracle_sections
import oracle_texts
import tokmap
from oracle_reference import PLAIN, package, shrink
from ref_protocol import run_tests

LONG = os.environ.get("TOKMAP_LONG") == "all"
SECONDS = float(os.environ.get("ORACLE_SECONDS", 0))
N_SEEDS, N_BATCHES = (3, 4) if LONG else (1, 1)  # without ORACLE_SECONDS
SEED = int(os.environ.get("ORACLE_SEED", 1))
# Some texts have no offsets: those that are not in NFC; those with unknown characters, with added tokens that share
# blanks or are found with a U+2581 before them, with what a Replace changes, or where Unigram finds the name of a byte.
CHANGED = re.compile("neox|qwen|nfc|command_r|exaone_moe")
PARTLY = re.compile("zoo|unknown|missing|falcon|legacy|chatglm|unigram_bytes|sarashina|helium|single_word")
# Tokenizers without offsets: their tokens do not spell the text. Others have them with any seed.
NONE = re.compile("prefix_split|prefix_digits|suffix|word(piece|level)|whitespace|t5|xlm|unigram_plain|spm_(?!real_m)|clip|bert|_gpt$|"
                  "nllb|bpe_(no_decoder|plain)|(phi3|gemma|sarvam|chatglm|legacy)_zoo|nfkc|nfd|lowercase|nougat|albert|xlnet|rembert|bge|bigbird")


def in_characters(kind, text, offsets, is_fused):
    """Bytes of UTF-8 as the reference counts them. Where a token ends inside a character, tokenizers gives it all of it,
    and in Unigram the bytes in a row all of their characters; tiktoken counts it as one that begins there; sentencepiece
    gives the character to its last byte. A blank before the text has the place of what follows it in tokenizers, and else
    none."""
    data = np.frombuffer(text.encode() + b"a", np.uint8)
    begins = (data & 0xC0) != 0x80
    character = np.cumsum(begins) - 1
    first, last, empty = character[offsets[:, 0]], character[offsets[:, 1] - 1] + 1, offsets[:, 0] == offsets[:, 1]
    if kind == "tiktoken":
        return first.tolist()
    if kind == "sentencepiece":
        last = np.where(empty | ~begins[offsets[:, 1]], first, last)
    else:
        last = np.where(empty, first + 1, last)
        joined = np.flatnonzero(is_fused[1:] & is_fused[:-1] & (offsets[1:, 0] == offsets[:-1, 1]))
        for k in joined:
            first[k + 1] = first[k]
        for k in joined[::-1]:
            last[k] = last[k + 1]
    return list(zip(first.tolist(), last.tolist()))


class Comparison:
    def __init__(self, name, kind, path, options, reference):
        self.name, self.kind, self.reference = name, kind, reference
        options = dict(zip(options[::2], options[1::2]))
        self.tokenizer = tokmap.Tokenizer(path, pattern=options.get("--pattern"), specials_file=options.get("--specials-file"))
        self.fused_ids = np.array([*reference.fused_ids], np.uint32)
        self.n_refused = 0

    def found(self, text, policy):
        """(ids, places in characters), or None: tokmap has no offsets for this text, which it may only say of some."""
        try:
            ids, offsets = self.tokenizer.encode(text, specials=policy, offsets=True)
        except tokmap.UnsupportedError as e:
            if not PARTLY.search(self.name):  # the advice that it gives is right
                composed = unicodedata.normalize("NFC", text)
                assert "not in NFC" in str(e) and composed != text and self.found(composed, policy), ascii(text)
            return None
        assert (np.diff(offsets.ravel()) >= 0).all(), offsets.tolist()
        return ids.tolist(), in_characters(self.kind, text, offsets, np.isin(ids, self.fused_ids))

    def wanted(self, texts, policy):
        rows = self.reference.offsets("match" if policy == "drop" else policy, texts)
        if policy == "drop":
            kept = [[k for k, i in enumerate(ids) if i not in self.reference.special_ids] for ids, _ in rows]
            rows = [([ids[k] for k in some], [places[k] for k in some]) for some, (ids, places) in zip(kept, rows)]
        return rows

    def first_difference(self, texts, policy):
        for text, (ids, places) in zip(texts, self.wanted(texts, policy)):
            found = self.found(text, policy)
            assert found or PARTLY.search(self.name) or CHANGED.search(self.name), ascii(text)
            self.n_refused += found is None
            if found is not None and found != (list(ids), list(places)):
                return text
        return None

    def compare(self, texts, policy):
        text = self.first_difference(texts, policy)
        if text is not None:
            text = shrink(text, lambda some: self.first_difference(some, policy))
            raise AssertionError("specials %s, text %s: tokmap %.300s, reference %.300s"
                                 % (policy, ascii(text), self.found(text, policy), self.wanted([text], policy)[0]))


class Run:
    """An oracle: N_SEEDS tokenizers, or with ORACLE_SECONDS as many as its share of the time allows, one at least."""

    def __init__(self, kind, oracle, seconds):
        self.kind, self.oracle, self.seconds = kind, oracle, seconds
        self.n_texts = self.n_refused = 0

    def __call__(self):
        deadline, seed, why = time.monotonic() + self.seconds, SEED, None
        while seed == SEED or (self.n_texts and (time.monotonic() < deadline if SECONDS else seed < SEED + N_SEEDS)):
            with tempfile.TemporaryDirectory() as folder:
                path, options, reference = self.oracle.make(seed, pathlib.Path(folder))
                try:
                    comparison = Comparison(self.oracle.name, self.kind, path, options, reference)
                    comparison.tokenizer.encode("", offsets=True)
                except tokmap.UnsupportedError as e:
                    why = str(e).split(": ", 1)[1]
                else:
                    self.compare(comparison, seed, min(deadline, time.monotonic() + self.seconds / 3))
            seed += 1
        if self.n_texts == 0:
            assert NONE.search(self.oracle.name), why
            return "no offsets: " + why
        return "%d texts, %d of them without offsets" % (self.n_texts, self.n_refused)

    def compare(self, comparison, seed, deadline):
        batch, marks = 0, comparison.reference.marks
        # sentencepiece gives all of a user-defined piece that is written in the text one place, even if ids divide it.
        skipped = marks if self.kind == "sentencepiece" and re.search("wild|unused|symbols", self.oracle.name) else ()
        policies = [*comparison.reference.encode] + ["drop"] * bool(comparison.reference.special_ids)
        while batch == 0 or (time.monotonic() < deadline if SECONDS else batch < N_BATCHES):
            texts = oracle_texts.Texts("%s %d %d" % (self.oracle.name, seed, batch), marks, PLAIN).many(120 if LONG or SECONDS else 60)
            texts = [text for text in texts if not any(mark in text for mark in skipped)]
            for policy in policies:
                comparison.compare(texts, policy)
                self.n_texts += len(texts)
            batch += 1
        self.n_refused += comparison.n_refused
        assert self.n_refused < self.n_texts, "no text has offsets"


def main():
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    sections = {"tokenizers": oracle_sections.hf_section, "tiktoken": oracle_sections.tiktoken_section,
                "sentencepiece": oracle_sections.spm_section}
    found = [(kind, oracle) for kind, section in sections.items() if package(kind) for oracle in section()
             if os.environ.get("ORACLE_ONLY", "") in oracle.name and not oracle.refused]
    return run_tests([(oracle.name, Run(kind, oracle, SECONDS / len(found))) for kind, oracle in found])


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines that no published tokenizer has: every known stage after every other, split as by the
reference package, or refused. A few cases have the reference's answer here, for machines without
the package. `make test-pipelines` compares whole random tokenizers."""

import itertools
import json
import os
import pathlib
import random
import sys
import tempfile

import oracle_pipelines as pipelines
from oracle_hf import byte_level, split
from oracle_patterns import GPT2
from ref_protocol import Skip, expect, expect_equal, run_tests
from test_splitter import ALPHABET, random_text

LONG = "TOKMAP_LONG" in os.environ
CHARACTERS = sorted(set("".join(ALPHABET) + "In"))


def compare_steps(folder, steps, texts, wanted=None):
    """wanted: words; None: as the package splits them. Returns whether tokmap takes the steps."""
    content = pipelines.words_document(steps, CHARACTERS)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(content))
    got, why = pipelines.tokmap("encode", file, texts)
    if got is None:
        expect(why.startswith("exit 3"), why)
        return False
    if wanted is None:
        import tokenizers
        reference = tokenizers.Tokenizer.from_str(json.dumps(content))
        wanted = [e.ids for e in reference.encode_batch_fast(texts, add_special_tokens=False)]
    else:
        wanted = [pipelines.words_ids(content, words) for words in wanted]
    for text, ids, right in zip(texts, got, wanted):
        expect_equal(ids, right, "%s of %a" % (json.dumps(steps), text))
    return True


# What tokenizers 0.23 gives.
DIGITS = {"type": "Digits", "individual_digits": False}
TEXT = "In 2024 \u00b2\u00e9!"
GOLDEN = [
    ([split(GPT2), byte_level()], "In|\u01202024|\u0120\u00c2\u00b2|\u00c3\u00a9|!"),
    ([split(GPT2), byte_level(True)], "In|\u01202024|\u0120\u00c2\u00b2|\u00c3\u00a9|!"),
    ([split(GPT2), DIGITS], "In| |2024| |\u00b2|\u00e9|!"),
    ([split(GPT2), split(r"\p{N}{1,3}")], "In| |202|4| |\u00b2|\u00e9|!"),
    ([split(GPT2), DIGITS, byte_level(False)],
     "In|\u0120|2024|\u0120|\u00c2\u00b2|\u00c3\u00a9|!"),
    ([byte_level(True), DIGITS], "In|\u0120|2024|\u0120\u00c2|\u00b2|\u00c3\u00a9|!"),
    ([byte_level(True), split("[0-9][0-9][0-9]")],
     "In|\u0120|202|4|\u0120\u00c2\u00b2|\u00c3\u00a9|!"),
]


def test_golden():
    with tempfile.TemporaryDirectory() as name:
        for steps, words in GOLDEN:
            expect(compare_steps(pathlib.Path(name), steps, [TEXT], [words.split("|")]), steps)


def pairs():
    """Over characters and over bytes."""
    stages = pipelines.stages()
    for a, b in itertools.product(stages, stages):
        yield [a, b]
        if not pipelines.is_byte_level(a) and not pipelines.is_byte_level(b):
            yield [a, b, byte_level(False)]


def test_pairs():
    try:
        import tokenizers  # noqa: F401
    except ImportError:
        raise Skip("Python package tokenizers not found")
    rng = random.Random("pairs")
    chosen = [steps for steps in pairs() if LONG or split(GPT2) in steps or rng.random() < 0.05]
    n_taken = 0
    with tempfile.TemporaryDirectory() as name:
        for steps in chosen:
            texts = ["In 2024", *(random_text(rng) for _ in range(50))]
            n_taken += compare_steps(pathlib.Path(name), steps, texts)
    expect(n_taken > len(chosen) / 2, "only %d of %d pairs are taken" % (n_taken, len(chosen)))
    return "%d of %d pairs are taken" % (n_taken, len(chosen))


def main():
    return run_tests([("words_of_several_stages_are_those_of_the_reference", test_golden),
                      ("stages_in_pairs_split_as_the_reference", test_pairs)])


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The normalizers of a tokenizer.json (tool_normalizer) against the package tokenizers: every code
point alone and between letters, and random texts with marks in any order."""

import itertools
import json
import random
import sys
import unicodedata

from ref_protocol import call, expect, expect_equal, need, run_in_folders

SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def bare(name):
    return {"type": name}


def replace(kind, pattern, content):
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def bert(clean, ideographs, accents, lowercase):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": ideographs,
            "strip_accents": accents, "lowercase": lowercase}


def normalizers():
    singles = ("NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase", "Nmt")
    yield from ([bare(name)] for name in singles)
    yield from ([bert(*flags)] for flags in itertools.product(
        (False, True), (False, True), (None, False, True), (False, True)))
    yield [replace("Regex", r"\s+", " ")]
    yield [replace("Regex", r"\s{2,}|[\n\r\t]", "<>")]
    yield [replace("Regex", " {2,}", "_")]
    yield [replace("Regex", " ", "_")]
    yield [bare("NFD"), bare("Lowercase"), bare("StripAccents")]
    yield [bare("NFKC"), bare("Lowercase")]
    yield [bare("Lowercase"), bare("NFD"), bare("NFKC"), bare("StripAccents"), bare("NFKD")]
    yield [bare("Nmt"), bare("NFKC"), replace("Regex", " {2,}", " ")]
    yield [bare("NFC"), replace("Regex", r"\s+", " "), bare("Lowercase")]
    yield [replace("String", "``", '"'), bare("NFKD"), bare("StripAccents"), bare("Lowercase")]
    yield [bert(True, True, None, True), bare("NFD"), bare("StripAccents"), bare("NFC"),
           {"type": "Strip", "strip_left": True, "strip_right": True}]


def random_texts(n_texts, seed):
    r = random.Random(seed)
    marks = [c for c in SCALARS if unicodedata.category(chr(c))[0] == "M"]
    changing = [c for c in SCALARS if unicodedata.decomposition(chr(c)) or chr(c).lower() != chr(c)]
    blanks = [9, 10, 13, 0x20, 0x20, 0x85, 0xA0, 0x2003, 0x3000, 0x200B, 0xFEFF, 0xFFFD, 0, 0xAD]
    pools = [marks, marks, changing, blanks, range(0x20, 0x7F), range(0x1100, 0x1200),
             range(0xAC00, 0xD7A4), range(0x4DF0, 0x4E40), range(0x2B700, 0x2B940), SCALARS]
    for _ in range(n_texts):
        kinds = r.choices(pools, k=r.randrange(1, 4))
        yield "".join(chr(r.choice(r.choice(kinds))) for _ in range(r.randrange(1, 60)))


def same_as_tokenizers(folder, texts):
    found = need("tokenizers", "0.23.3")
    lines = b"".join(text.encode().hex().encode() + b"\n" for text in texts)
    n_steps = 0
    path = str(folder / "tokenizer.json")
    for steps in normalizers():
        document = {"version": "1.0", "added_tokens": [], "pre_tokenizer": None,
                    "post_processor": None, "decoder": None,
                    "normalizer": {"type": "Sequence", "normalizers": steps},
                    "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}
        with open(path, "w") as file:
            json.dump(document, file)
        answers = call("tool_normalizer", path, stdin=lines)[1].split(b"\n")[:-1]
        expect_equal(len(answers), len(texts), "number of answers")
        normalizer = found.Tokenizer.from_file(path).normalizer
        for text, answer in zip(texts, answers):
            got, wanted = bytes.fromhex(answer.decode()).decode(), normalizer.normalize_str(text)
            expect(got == wanted, "%s of %s: %s, not %s"
                   % (json.dumps(steps), ascii(text), ascii(got), ascii(wanted)))
        n_steps += 1
    return "%d texts, %d normalizers" % (len(texts), n_steps)


def every_code_point_becomes_what_tokenizers_makes_of_it(folder):
    """Many in one text, each between letters and before a mark."""
    return same_as_tokenizers(folder, ["".join("xa%c\u0323" % c for c in SCALARS[i:i + 256])
                                       for i in range(0, len(SCALARS), 256) if 0x30000 > SCALARS[i]
                                       or 0xE0000 <= SCALARS[i] < 0xE1000])


def random_texts_become_what_tokenizers_makes_of_them(folder):
    return same_as_tokenizers(folder, list(random_texts(1000, 1)))


sys.exit(run_in_folders(""))

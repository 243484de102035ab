#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classes, UTF-8 repair and NFC (tool_unicode) against Python itself and, where they are installed,
against the packages tokenizers and unicodedata2: the first is what we have to equal, the second is
where the tables come from."""

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
import unicodedata

from ref_protocol import call, expect, expect_equal, need, run_in_folders

TOKENIZER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tokenize_tools",
                         "tokenizer", "unicode")
# All code points that text may hold.
LONG = os.environ.get("TOKMAP_LONG") == "all"
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def version_of(define):
    with open(os.path.join(TOKENIZER, "unicode.h")) as f:
        return re.search(r'#define %s "(.*)"' % define, f.read()).group(1)


def filtered(mode, texts):
    lines = b"".join(text.hex().encode() + b"\n" for text in texts)
    answers = call("tool_unicode", mode, stdin=lines)[1].split(b"\n")[:-1]
    expect_equal(len(answers), len(texts), "number of answers")
    return [bytes.fromhex(answer.decode()) for answer in answers]


def code_points(mode):
    digits = call("tool_unicode", mode)[1]
    expect_equal(len(digits), 0x110000, "number of code points")
    return digits


# ---- UTF-8 ----


def repairs_as_python(texts):
    for text, repaired in zip(texts, filtered("repair", texts)):
        wanted = text.decode("utf-8", "replace").encode()
        expect(repaired == wanted, "%s is repaired to %s, not %s"
               % (text.hex(), repaired.hex(), wanted.hex()))
    return "%d texts" % len(texts)


def repair_of_all_short_texts_is_pythons(folder):
    edges = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED,
             0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF]
    texts = [bytes(p) for n in (1, 2, 3) for p in itertools.product(edges, repeat=n)]
    texts += [bytes(p) for p in itertools.product(edges[5:], [0x80, 0x90, 0xA0, 0xBF, 0xF1],
                                                  [0x41, 0x80, 0xBF, 0xE1], [0x41, 0x80, 0xF0])]
    return repairs_as_python(texts)


def repair_of_random_texts_is_pythons(folder):
    r = random.Random(1)
    texts = []
    for _ in range(20000 if LONG else 7000):
        text = bytearray("".join(r.choice("aé世😀\u07ff\ud7ff\uffff") for _ in range(r.randrange(60)))
                         .encode())
        for _ in range(r.randrange(4)):
            if text:
                text[r.randrange(len(text))] = r.randrange(256)
        texts.append(bytes(text[r.randrange(4):]))
    return repairs_as_python(texts)


# ---- NFC ----


def normalizes_as(texts, normalize):
    for text, answer in zip(texts, filtered("nfc", [text.encode() for text in texts])):
        wanted = normalize(text).encode()
        if answer != wanted:
            raise AssertionError("NFC of %a is %a, not %a" % (text, answer.decode(), wanted.decode()))
    return "%d texts" % len(texts)


def interesting(may_use):
    """Lists of code points that do something in NFC."""
    marks = [c for c in may_use if unicodedata.combining(chr(c))]
    whole = [c for c in may_use if unicodedata.decomposition(chr(c))[:1] not in ("", "<")]
    parts = sorted({ord(part) for c in whole for part in unicodedata.normalize("NFD", chr(c))})
    return [marks, whole, parts, list(range(0x1100, 0x1200)), list(range(0xAC00, 0xAC40)),
            list(range(0x41, 0x7B))]


def random_texts(pools, n_texts, seed):
    r = random.Random(seed)
    return ["".join(chr(r.choice(r.choice(pools))) for _ in range(r.randrange(1, 12)))
            for _ in range(n_texts)]


def python_has_the_same_nfc_for_old_characters(folder):
    """For what Unicode 3.2 knew: that never changes."""
    old = [c for c in SCALARS if unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"]
    texts = [chr(c) for c in old] + random_texts(interesting(old), 100000 if LONG else 34000, 2)
    return normalizes_as(texts, lambda text: unicodedata.normalize("NFC", text))


def tokenizers_has_the_same_nfc(folder):
    nfc = need("tokenizers", "0.23.3").normalizers.NFC().normalize_str
    pools = interesting(SCALARS)
    # an unassigned and a young mark among them, and all pairs that compose or did at some time
    texts = [chr(c) for c in SCALARS]
    texts += ["a%s\u0301" % chr(c) for c in SCALARS] + ["a\u0323%s" % chr(c) for c in SCALARS]
    texts += [unicodedata.normalize("NFD", chr(c)) for c in SCALARS]
    texts += ["q%s%s%s" % (chr(c), mark, "\u0323") for c in pools[0]
              for mark in "\u0334\u0327\u0316\u0301\u0315\u0345\u3099\u094d"]
    return normalizes_as(texts + random_texts(pools, 300000 if LONG else 100000, 3), nfc)


# ---- Tables ----


def set_is(name, got, wanted):
    different = sorted(got ^ wanted)
    expect(not different, "%s: different for %d code points: %s"
           % (name, len(different), ", ".join("U+%04X" % c for c in different[:10])))


def tokenizers_has_the_same_numbers_punctuation_and_blanks(folder):
    split = need("tokenizers", "0.23.3").pre_tokenizers
    steps = [("numeric", b"1", split.Digits(individual_digits=True)),
             ("punctuation", b"1", split.Punctuation("isolated")),
             ("classes", b"6", split.WhitespaceSplit())]
    for mode, digit, step in steps:
        digits = code_points(mode)
        ours = {c for c in SCALARS if digits[c] == digit[0]}
        theirs = {c for c in SCALARS if len(step.pre_tokenize_str("a%sa" % chr(c))) > 1}
        set_is(mode, ours, theirs)


def classes_are_those_of_unicodedata2(folder):
    category = need("unicodedata2", version_of("UNICODE_VERSION")).category
    digits = code_points("classes")
    for digit, names in ((b"1", ("Lu", "Lt")), (b"2", ("Ll",)), (b"3", ("Lm", "Lo")),
                         (b"4", ("Mn", "Mc", "Me")), (b"5", ("Nd", "Nl", "No")),
                         (b"7", ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po")),
                         (b"8", ("Sm", "Sc", "Sk", "So"))):
        set_is("/".join(names), {c for c in range(0x110000) if digits[c] == digit[0]},
               {c for c in range(0x110000) if category(chr(c)) in names})


def generator_writes_the_tables_of_the_tree(folder):
    version = version_of("UNICODE_VERSION")
    need("unicodedata2", version)
    script = shutil.copy(os.path.join(TOKENIZER, "make_unicode_tables.py"), folder)
    subprocess.run([sys.executable, script], check=True)
    for name in ("unicode_tables.c", "hf_tables.c", "word_tables.c", "nfc_tables.c", "compatibility_tables.c"):
        with open(os.path.join(TOKENIZER, name)) as ours:
            expect(ours.read() == (folder / name).read_text(), "%s is not what the generator writes" % name)


sys.exit(run_in_folders(""))

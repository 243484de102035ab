#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words as HuggingFace tokenizers makes them, for every pattern: code points in several contexts,
and random strings over an alphabet of what patterns stumble on. With TOKMAP_LONG=all every code
point of the planes that are in use, else those whose neighbours are of another kind. test_splitter.c
compares the engines with each other, and with the regular expressions themselves."""

import array
import functools
import itertools
import os
import random
import re
import struct
import sys
import unicodedata

from oracle_patterns import LINES, LISTS
from ref_protocol import Skip, call, expect_equal, need, run_tests

LONG = os.environ.get("TOKMAP_LONG") == "all"
# These remove blanks.
REMOVING = {"whitespace": "Whitespace", "whitespace_split": "WhitespaceSplit",
            "bert": "BertPreTokenizer"}
BLANK = re.compile(r"^[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")
PATTERNS = ["gpt2", *LISTS, "starcoder", "falcon", *REMOVING]


def reference(name):
    """Last in every row: bytes become characters, so that lengths are bytes."""
    tokenizers = need("tokenizers")
    if [int(part) for part in tokenizers.__version__.split(".")[:2]] < [0, 23]:
        raise Skip("tokenizers %s has older Unicode tables; 0.23 needed" % tokenizers.__version__)
    pre, Regex = tokenizers.pre_tokenizers, tokenizers.Regex
    if name in REMOVING:
        return getattr(pre, REMOVING[name])()
    bytes_only = pre.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre.ByteLevel(add_prefix_space=False, use_regex=True)
    if name == "falcon":
        return pre.Sequence([pre.Punctuation("contiguous"), gpt2, pre.Digits(False),
                             pre.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    if name == "starcoder":
        return pre.Sequence([pre.Digits(individual_digits=True), gpt2])
    splits = [pre.Digits(part) if isinstance(part, bool) else
              pre.Split(Regex(part), "merged_with_next" if part == LINES else "isolated")
              for part in LISTS.get(name, [])]
    return pre.Sequence([*splits, bytes_only]) if splits else gpt2


def compare(name, texts):
    """Returns the number of words."""
    splitter = reference(name)
    encoded = [text.encode() for text in texts]
    stdin = b"".join(struct.pack("<I", len(text)) + text for text in encoded)
    answer = array.array("I")
    answer.frombytes(call("tool_split", name, "best", stdin=stdin)[1])
    if sys.byteorder == "big":
        answer.byteswap()
    at = 0
    for text in texts:
        ends = answer[at + 1:at + 1 + answer[at]].tolist()
        at += 1 + len(ends)
        if name in REMOVING:
            expect_equal(without_blanks(cut(text, ends)),
                         [word for word, where in splitter.pre_tokenize_str(text)], name)
            continue
        wanted = [len(word) for word, where in splitter.pre_tokenize_str(text)]
        if ends != list(itertools.accumulate(wanted)):
            tell_difference(name, splitter, text, ends)
    expect_equal(at, len(answer), "numbers that tool_split printed")
    return at - len(texts)


def without_blanks(words):
    return [word for word in (BLANK.sub("", word) for word in words) if word]


def cut(text, ends):
    data = text.encode()
    return [data[a:b].decode(errors="backslashreplace") for a, b in zip([0, *ends], ends)]


def tell_difference(name, splitter, text, ends):
    lengths = [len(word) for word, where in splitter.pre_tokenize_str(text)]
    wanted = cut(text, itertools.accumulate(lengths))
    got = cut(text, ends)
    k = next(k for k in itertools.count() if got[k:k + 1] != wanted[k:k + 1])
    expect_equal(ascii(got[max(k - 2, 0):k + 3]), ascii(wanted[max(k - 2, 0):k + 3]), name)


# ---- Every code point ----

CONTEXTS = "a{0}a {0}1{0}1'{0}s!{0}B\n{0} {0}\n{0}/ \u4e00{0}Ba\u0301{0}{0}x'{0}e!!{0}/"


@functools.lru_cache(maxsize=None)
def code_points():
    everything = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    if LONG:
        return [c for c in everything if c < 0x33480 or 0xE0000 <= c < 0xE0200 or c % 257 == 0]
    kinds = ["%s%s" % (unicodedata.category(chr(c)), chr(c).isspace()) for c in everything]
    return [c for k, c in enumerate(everything)
            if c < 0x180 or kinds[k - 1:k] != kinds[k:k + 1] or c % 509 == 0]


def test_code_points(name):
    reference(name)
    cps = code_points()
    n_words = 0
    for first in range(0, len(cps), 1 << 15):
        chars = [chr(c) for c in cps[first:first + (1 << 15)]]
        # 16 at a time, and alone where the ends of the text matter.
        texts = ["".join(CONTEXTS.format(c) for c in chars[k:k + 16])
                 for k in range(0, len(chars), 16)]
        texts += chars[::8]
        n_words += compare(name, texts)
    return "%d code points, %d words" % (len(cps), n_words)


# ---- Random strings ----

# What patterns stumble on, in groups that are drawn equally often.
ALPHABET = [
    "aBcDéÉßẞ", "sStTdDmMlLrRvVeEſ\u212a", "'''’ʼ", "'s't'm'd're've'll'S'LL'ſ",
    "ǅǈΩωЖжԱա", "ªº一龥龦鿿字中あぁアー・゛゠\u3099\u3040", "ʰˇـאבกข",
    "\u0301\u0300\ufe0f\u0903\u20dd", "0123456789", "²³½Ⅷ٣४๓𝟗〇\U00011de0\U00016ff5",
    "    \t\t\n\n\r\r\r\n", "\x0b\x0c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000",
    "!?.,-\"()/////", "$+<=>^`|~€©\u00a6", "“”—…«»、。¿\u166d", "😀👍🏽\u200d🎉🏴",
    "\x00\x01\x1c\x1f\x7f\u200b\ufeff\ufffd\ue000\U000e0041\u0378",
]


def random_text(random_):
    groups = random_.sample(ALPHABET, random_.randint(1, 5))
    n = random_.choice((1, 2, 3, 6, 12, 24, 70))
    out = []
    while len(out) < n:
        c = random_.choice(random_.choice(groups))
        out.extend(c * random_.choice((1, 1, 1, 1, 2, 3, 7)))
    return "".join(out)


def test_random(name):
    reference(name)
    random_ = random.Random("splitter " + name)
    n_texts, n_words = 112000 if LONG else 700, 0
    for first in range(0, n_texts, 2000):
        n_words += compare(name, [random_text(random_) for k in range(min(2000, n_texts - first))])
    return "%d strings, %d words" % (n_texts, n_words)


def main():
    tests = [("code_points_split_as_the_reference_%s" % name, lambda name=name:
              test_code_points(name)) for name in PATTERNS]
    tests += [("random_strings_split_as_the_reference_%s" % name, lambda name=name:
               test_random(name)) for name in PATTERNS]
    return run_tests(tests)


if __name__ == "__main__":
    sys.exit(main())

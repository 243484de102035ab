#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words as HuggingFace tokenizers makes them, for every pattern: code points in several contexts,
and random strings over an alphabet of what patterns stumble on. With TOKMAP_LONG=all every code
point of the planes that are in use, else those whose neighbours are of another kind. test_splitter.c
compares the engines with each other, and with the regular expressions themselves."""

import array
import itertools
import os
import random
import re
import struct
import sys
import unicodedata

from ref_protocol import Skip, call, expect_equal, run_tests

LONG = os.environ.get("TOKMAP_LONG") == "all"
LETTERS = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BLANKS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"


def like_cl100k(letter, digits, other):
    return "%s|%s%s+|%s| ?%s+[\\r\\n]*%s" % (CONTRACTION, LETTERS, letter, digits, other, BLANKS)


def like_o200k(contraction, digits):
    first = "%s%s*%s+%s" % (LETTERS, UPPER, LOWER, contraction)
    second = "%s%s+%s*%s" % (LETTERS, UPPER, LOWER, contraction)
    return "%s|%s|%s| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*%s" % (first, second, digits, BLANKS)


REGEXES = {
    "cl100k": [like_cl100k(r"\p{L}", r"\p{N}{1,3}", r"[^\s\p{L}\p{N}]")],
    "qwen2": [like_cl100k(r"\p{L}", r"\p{N}", r"[^\s\p{L}\p{N}]")],
    "qwen35": [like_cl100k(r"[\p{L}\p{M}]", r"\p{N}", r"[^\s\p{L}\p{M}\p{N}]")],
    "o200k": [like_o200k(CONTRACTION + "?", r"\p{N}{1,3}")],
    "tekken": [like_o200k("", r"\p{N}")],
    "deepseek3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
                  r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
                  r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + BLANKS],
}
# Of public files: pre-tokenizers in sequence. True and False are Digits, individual or not.
LISTS = {
    "nanochat": [
        "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,2}| ?[^\\s\\p{L}\\p{N}"
        "]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"],
    "cl100k_08": [
        "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{"
        "N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"],
    "seed": [
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{"
        "N}\r\n]+|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"],
    "k2_horizon": [
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)"
        "+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "jais2": [
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}"
        "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{"
        "64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)"
        "|\\s{1}"],
    "k_exaone": [
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*"
        ")+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"],
    "kimi": [
        "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*"
        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p"
        "{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}"
        "\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+"
        "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "bloom": [
        " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"],
    "clip": [
        "<\\|startoftext\\|>|<\\|endoftext\\|>|"
        "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"],
    "clip_old": [
        "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"],
    "minicpm5": [
        "\\p{N}{1,3}",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| ?[^\\s\\p{L}\\p{"
        "N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "ax_k2": [
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N"
        "}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "tiny_aya": [
        "\\d{1,3}(?=(?:\\d{3})*\\b)",
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p"
        "{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{L"
        "o}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?"
        "[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "youtu_llm": [
        "[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a"
        "\uff1b\uff0c\u3001-\u303f\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-"
        "\u309f\u30a0-\u30ff]+",
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p"
        "{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{L"
        "o}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}| ?[^\\s"
        "\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "spark_x2": [
        "\\p{N}{1,3}",
        "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p"
        "{L}\\p{M}]+| ?[\\p{P}\\p{S}]+|[\r\n]|\\s+(?!\\S)|\\s+",
        True],
    "laguna": [
        "(?:\\r?\\n)+(?!\\r?\\n)",
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N"
        "}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
    "viking": [
        " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
        True],
    "superbpe_1": [
        False,
        "(?=(\\d{3})+(?!\\d))| ?\\p{L}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"],
    "superbpe_2": [
        False,
        "(?=(\\d{3})+(?!\\d))"],
    "deepseek_llm": [
        "[\r\n]",
        "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"
        "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c"
        "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0"
        "-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-"
        "\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b"
        "\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-"
        "\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113"
        "\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f"
        "\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"
        "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00"
        "-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-"
        "\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-"
        "\U000118df\U0001e900-\U0001e943]+",
        "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
        "\\s+$",
        "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
        True],
    "deepseek_coder": [
        "[\r\n]",
        "\\s?\\p{L}+",
        "\\s?\\p{P}+",
        "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
        True],
}
# These remove blanks.
REMOVING = {"whitespace": "Whitespace", "whitespace_split": "WhitespaceSplit",
            "bert": "BertPreTokenizer"}
BLANK = re.compile(r"^[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*")
PATTERNS = ["gpt2", *REGEXES, *LISTS, "starcoder", "falcon", *REMOVING]


def reference(name):
    """Last in every row: bytes become characters, so that lengths are bytes."""
    try:
        from tokenizers import Regex, __version__, pre_tokenizers as pre
    except ImportError:
        raise Skip("Python package tokenizers not found")
    if [int(part) for part in __version__.split(".")[:2]] < [0, 23]:
        raise Skip("tokenizers %s has older Unicode tables; 0.23 needed" % __version__)
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
              pre.Split(Regex(part), "merged_with_next" if name == "laguna" and k == 0 else
                        "isolated")
              for k, part in enumerate(REGEXES.get(name) or LISTS.get(name, []))]
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


def code_points(name):
    everything = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    if LONG:
        return [c for c in everything if c < 0x33480 or 0xE0000 <= c < 0xE0200 or c % 257 == 0]
    kinds = ["%s%s" % (unicodedata.category(chr(c)), chr(c).isspace()) for c in everything]
    return [c for k, c in enumerate(everything)
            if c < 0x180 or kinds[k - 1:k] != kinds[k:k + 1] or c % 509 == 0]


def test_code_points(name):
    reference(name)
    cps = code_points(name)
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
    n_texts, n_words = 112000 if LONG else 2000, 0
    for first in range(0, n_texts, 2000):
        n_words += compare(name, [random_text(random_) for k in range(2000)])
    return "%d strings, %d words" % (n_texts, n_words)


def main():
    tests = [("code_points_split_as_the_reference_%s" % name, lambda name=name:
              test_code_points(name)) for name in PATTERNS]
    tests += [("random_strings_split_as_the_reference_%s" % name, lambda name=name:
               test_random(name)) for name in PATTERNS]
    return run_tests(tests)


if __name__ == "__main__":
    sys.exit(main())

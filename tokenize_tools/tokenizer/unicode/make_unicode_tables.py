#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_unicode_tables.py [VERSION] - writes unicode_tables.c, word_tables.c, deepseek_tables.c, hf_tables.c,
nfc_tables.c and compatibility_tables.c beside itself.

The classes are those of Unicode VERSION, 16.0.0 unless given (UNICODE_VERSION in unicode.h has to
say the same), from the package of that version:

    pip install unicodedata2==16.0.0

The reference tokenizers carry older and newer tables for single steps. Those come out the same
for every VERSION from 14.0.0 on: what is younger is known below by its code points, from
DerivedAge.txt of Unicode 17."""

import pathlib
import sys

import unicodedata2

N_CODE_POINTS = 0x110000
PAGE = 128
MAX_COLUMNS = 100
FOLDER = pathlib.Path(__file__).resolve().parent

# \\s of the reference engines, which is the property White_Space: no package gives it.
SPACES = {*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
          0x205F, 0x3000}
CLASSES = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 3, "Lo": 3, "M": 4, "N": 5, "P": 7, "S": 8}
CLASS_SPACE = 6

# Hugging Face's Digits: the numbers of Unicode 17. These came after 14.
NUMBERS_AFTER_14 = (
    (0x10D40, 0x10D49), (0x116D0, 0x116E3), (0x11BF0, 0x11BF9), (0x11DE0, 0x11DE9),
    (0x11F50, 0x11F59), (0x16130, 0x16139), (0x16D70, 0x16D79), (0x16FF4, 0x16FF6),
    (0x1CCF0, 0x1CCF9), (0x1D2C0, 0x1D2D3), (0x1E4F0, 0x1E4F9), (0x1E5F1, 0x1E5FA),
)
# Hugging Face's Punctuation: ASCII's, and the punctuation of Unicode 8. Not yet assigned then, as
# far as it is punctuation now; and two that have stopped being punctuation.
PUNCTUATION_AFTER_8 = (
    (0x61D, 0x61D), (0x9FD, 0x9FD), (0xA76, 0xA76), (0xC77, 0xC77), (0xC84, 0xC84),
    (0x1B4E, 0x1B4F), (0x1B7D, 0x1B7F), (0x2E43, 0x2E5D), (0x10D6E, 0x10D6E), (0x10EAD, 0x10F89),
    (0x113D4, 0x1145D), (0x11660, 0x1166C), (0x116B9, 0x116B9), (0x1183B, 0x1183B),
    (0x11944, 0x11AA2), (0x11B00, 0x11FFF), (0x12FF1, 0x12FF2), (0x16D6D, 0x16E9A),
    (0x16FE2, 0x16FE2), (0x1E5FF, 0x1E5FF), (0x1E95E, 0x1E95F),
)
PUNCTUATION_ONCE = {0x166D, 0x111C9}
# StripAccents removes the marks of Unicode 9, BertNormalizer the nonspacing ones of Unicode 8. Not
# yet assigned then, as far as they are such marks now; and those that have stopped being one.
MARKS_AFTER_9 = (
    (0x5C8, 0x5C9), (0x7FD, 0x7FD), (0x897, 0x8D3), (0x9FE, 0x9FE), (0xAFA, 0xAFF), (0xB53, 0xB55),
    (0xC04, 0xC3C), (0xCF3, 0xD00), (0xD3B, 0xD3C), (0xD81, 0xD81), (0xEBA, 0xEBA), (0xECE, 0xECE),
    (0x1715, 0x1715), (0x180F, 0x180F), (0x1ABF, 0x1AF0), (0x1CF7, 0x1CF7), (0x1DF6, 0x1DFA),
    (0xA82C, 0xA82C), (0xA8FF, 0xA8FF), (0x10D24, 0x10F85), (0x11070, 0x11074), (0x110C2, 0x110C2),
    (0x11145, 0x11146), (0x111C9, 0x111C9), (0x111CE, 0x111CF), (0x11241, 0x11241),
    (0x1133B, 0x1133B), (0x113B8, 0x113E2), (0x1145E, 0x1145E), (0x1182C, 0x11B67),
    (0x11D31, 0x1612F), (0x16F4F, 0x16F4F), (0x16F7F, 0x16F87), (0x16FE4, 0x16FF1),
    (0x1CF00, 0x1D128), (0x1D250, 0x1D281), (0x1E08F, 0x1E6F5),
)
MARKS_ONCE = {0x1CF2, 0x1CF3}
NONSPACING_AFTER_8 = (
    (0x5C8, 0x5C9), (0x7FD, 0x7FD), (0x897, 0x8E1), (0x9FE, 0x9FE), (0xAFA, 0xAFF), (0xB53, 0xB55),
    (0xC04, 0xC3C), (0xD00, 0xD00), (0xD3B, 0xD3C), (0xD81, 0xD81), (0xEBA, 0xEBA), (0xECE, 0xECE),
    (0x180F, 0x1886), (0x1ABF, 0x1AF0), (0x1DF6, 0x1DFB), (0xA82C, 0xA82C), (0xA8C5, 0xA8C5),
    (0xA8FF, 0xA8FF), (0xA9BD, 0xA9BD), (0x10D24, 0x10F85), (0x11070, 0x11074), (0x110C2, 0x110C2),
    (0x111C9, 0x111C9), (0x111CF, 0x111CF), (0x1123E, 0x11241), (0x1133B, 0x1133B),
    (0x113BB, 0x1145E), (0x1182F, 0x1612F), (0x16F4F, 0x16F4F), (0x16FE4, 0x16FE4),
    (0x1CF00, 0x1D128), (0x1D25B, 0x1D25C), (0x1E000, 0x1E6F5), (0x1E944, 0x1E94A),
)
NONSPACING_ONCE = {0x1734, 0x1171E}
# BertNormalizer's controls: Cc, Cf and Co of Unicode 8, and two more; without three blanks.
FORMATS_AFTER_8 = ((0x890, 0x8E2), (0x110CD, 0x1343F))
CONTROL_BLANKS = {0x09, 0x0A, 0x0D}
# Lowercase: Unicode 17. (first, last, lower case of the first); these came after 14.
LOWER_AFTER_14 = (
    (0x1C89, 0x1C89, 0x1C8A), (0xA7CB, 0xA7CB, 0x264), (0xA7CC, 0xA7CC, 0xA7CD),
    (0xA7CE, 0xA7CE, 0xA7CF), (0xA7D2, 0xA7D2, 0xA7D3), (0xA7D4, 0xA7D4, 0xA7D5),
    (0xA7DA, 0xA7DA, 0xA7DB), (0xA7DC, 0xA7DC, 0x19B), (0x10D50, 0x10D65, 0x10D70),
    (0x16EA0, 0x16EB8, 0x16EBB),
)
LAST_LOWER = 0x1E921  # of Unicode 17
ASCII_PUNCTUATION = {ord(c) for c in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"}

# Rust's \w besides L, M, Nd, Nl and Pc: joiners, and the symbols that are Alphabetic.
WORD_SYMBOLS = (
    (0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189),
)
# As in unicode.h.
WORD_OTHER, WORD_LETTER, WORD_CONNECTOR, WORD_DECIMAL, WORD_SPACE, WORD_PUNCTUATION = 0, 3, 4, 5, 6, 7

# DeepSeek-LLM's expressions name their characters one by one: letters, and marks, which are the
# rest of ASCII's visible characters, ASCII's letters too, and U+3000, which is a blank.
DEEPSEEK_LETTERS = (
    (0x41, 0x5A), (0x61, 0x7A), (0xB5, 0xB5), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x1BA),
    (0x1BC, 0x1BF), (0x1C4, 0x293), (0x295, 0x2AF), (0x370, 0x373), (0x376, 0x377), (0x37B, 0x37D),
    (0x37F, 0x37F), (0x386, 0x386), (0x388, 0x38A), (0x38C, 0x38C), (0x38E, 0x3A1), (0x3A3, 0x3F5),
    (0x3F7, 0x481), (0x48A, 0x52F), (0x531, 0x556), (0x10A0, 0x10C5), (0x13A0, 0x13F5),
    (0x13F8, 0x13FD), (0x1C90, 0x1CBA), (0x1CBD, 0x1CBF), (0x1D00, 0x1D2B), (0x1D6B, 0x1D77),
    (0x1D79, 0x1D9A), (0x1E00, 0x1F15), (0x1F18, 0x1F1D), (0x1F20, 0x1F45), (0x1F48, 0x1F4D),
    (0x1F50, 0x1F57), (0x1F59, 0x1F59), (0x1F5B, 0x1F5B), (0x1F5D, 0x1F5D), (0x1F5F, 0x1F7D),
    (0x1F80, 0x1FB4), (0x1FB6, 0x1FBC), (0x1FBE, 0x1FBE), (0x1FC2, 0x1FC4), (0x1FC6, 0x1FCC),
    (0x1FD0, 0x1FD3), (0x1FD6, 0x1FDB), (0x1FE0, 0x1FEC), (0x1FF2, 0x1FF4), (0x1FF6, 0x1FFC),
    (0x2102, 0x2102), (0x2107, 0x2107), (0x210A, 0x2113), (0x2115, 0x2115), (0x2119, 0x211D),
    (0x2124, 0x2124), (0x2126, 0x2126), (0x2128, 0x2128), (0x212A, 0x212D), (0x212F, 0x2134),
    (0x2139, 0x2139), (0x213C, 0x213F), (0x2145, 0x2149), (0x214E, 0x214E), (0x2183, 0x2184),
    (0x2C00, 0x2C7B), (0x2C7E, 0x2CE4), (0x2CEB, 0x2CEE), (0x2CF2, 0x2CF3), (0xA640, 0xA66D),
    (0xA680, 0xA69B), (0xA722, 0xA76F), (0xA771, 0xA787), (0xA78B, 0xA78E), (0xAB70, 0xABBF),
    (0xFB00, 0xFB06), (0xFB13, 0xFB17), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0x10400, 0x1044F),
    (0x104B0, 0x104D3), (0x104D8, 0x104FB), (0x10C80, 0x10CB2), (0x10CC0, 0x10CF2),
    (0x118A0, 0x118DF), (0x1E900, 0x1E943),
)
DEEPSEEK_MARKS = (
    (0x21, 0x2F), (0x3A, 0x7E), (0x2018, 0x201F), (0x3000, 0x3002), (0xFF01, 0xFF0F),
    (0xFF1A, 0xFF5E),
)
# As in unicode.h.
DEEPSEEK_BOTH, DEEPSEEK_LETTER, DEEPSEEK_BLANK_MARK, DEEPSEEK_NUMBER, DEEPSEEK_MARK = 1, 3, 4, 5, 7

# Hugging Face's NFC: Unicode 9. Not yet assigned then, as far as it has a combining class or a
# decomposition now. What was assigned keeps both for ever: the stability policy says so.
NFC_VERSION = "9.0.0"
NFC_AFTER_9 = (
    (0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C),
    (0xD3B, 0xD3C), (0xEBA, 0xEBA), (0x1715, 0x1715), (0x1ABF, 0x1AEB), (0x1DF6, 0x1DFA),
    (0xA82C, 0xA82C), (0x105C9, 0x105E4), (0x10D24, 0x10D6D), (0x10EAB, 0x10F85),
    (0x11070, 0x11070), (0x1133B, 0x1133B), (0x11383, 0x113D0), (0x1145E, 0x1145E),
    (0x11839, 0x1183A), (0x11938, 0x11A99), (0x11D42, 0x11F42), (0x16121, 0x1612F),
    (0x16D68, 0x16D6A), (0x16FF0, 0x16FF1), (0x1E08F, 0x1E6F5),
)

# Its NFKC and NFKD: the same, for decompositions that are not canonical.
COMPATIBILITY_AFTER_9 = (
    (0x32FF, 0x32FF), (0xA7F1, 0xA7F4), (0xAB69, 0xAB69), (0x10781, 0x1CCF9), (0x1E030, 0x1E06D),
    (0x1F16C, 0x1F16C), (0x1FBF0, 0x1FBF9),
)

# The algorithm's own part of the Unicode standard, chapter 3.12.
HANGUL = range(0xAC00, 0xD7A4)
HANGUL_VOWELS = range(0x1161, 0x1176)
HANGUL_TRAILERS = range(0x11A8, 0x11C3)

# As in nfc_tables.h.
KIND_DOUBTFUL, KIND_BOUNDARY, KIND_DECOMPOSES, KIND_SECOND = 1, 2, 4, 8
N_PLAIN_KINDS = 2
HASH_A, HASH_B, HASH_SHIFT, N_SLOTS = 0x9E3779B1, 0x85EBCA6B, 21, 2048

HEAD = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* %s - generated by make_unicode_tables.py for Unicode %s; do not edit. */
#include "tokenizer/unicode/%s"
#include "tokenizer/unicode/table_runs.h"

/* clang-format off */
"""
DECOMPOSITION_MACROS = """
#define D(code_point, first, second) {0x##code_point, 0x##first, 0x##second}
#define S(code_point, first) {0x##code_point, 0x##first, 0}
"""


def within(ranges, code_point):
    return any(first <= code_point <= last for first, last in ranges)


# ---- C ----


def pages_of(values):
    """(page number for each PAGE values, the different pages in the order of their first use)"""
    numbers = {}
    index = [numbers.setdefault(tuple(values[i:i + PAGE]), len(numbers))
             for i in range(0, len(values), PAGE)]
    return index, list(numbers)


def words_of(values):
    """The values as C, long runs by the macros of table_runs.h; each word ends with a comma."""
    i = 0
    while i < len(values):
        same = rise = 1
        while i + same < len(values) and values[i + same] == values[i]:
            same += 1
        while i + rise < len(values) and values[i + rise] == values[i] + rise:
            rise += 1
        macro, run, most = ("R", same, 11) if same > 1 else ("I", rise, 5)
        size = next((1 << k for k in range(most, 1, -1) if 1 << k <= run), 1)
        yield f"{macro}{size}({values[i]})," if size > 1 else f"{values[i]},"
        i += size


def rows_of(words):
    row = "    "
    for word in words:
        if len(row) + len(word) > MAX_COLUMNS:
            yield row
            row = "    "
        row += word
    yield row


def array(declaration, words):
    return "\n".join(["", f"const {declaration} = {{", *rows_of(words), "};", ""])


def paged(name, values, page_type="uint8_t", words=words_of, n_words=PAGE):
    """An index and its pages; a page begins a row."""
    index, pages = pages_of(values)
    index_type = "uint8_t" if len(pages) <= 256 else "uint16_t"
    rows = [row for page in pages for row in rows_of(["{", *words(page), "},"])]
    first = array(f"{index_type} {name}_index[{N_CODE_POINTS // PAGE}]", words_of(index))
    return first + "\n".join(
        ["", f"const {page_type} {name}_pages[{len(pages)}][{n_words}] = {{", *rows, "};", ""])


# ---- Classes ----


def class_of(code_point):
    if code_point in SPACES:
        return CLASS_SPACE
    category = unicodedata2.category(chr(code_point))
    return CLASSES.get(category, CLASSES.get(category[0], 0))


def class_tables():
    classes = [class_of(c) for c in range(N_CODE_POINTS)]
    return paged("unicode_class", classes).replace("uint8_t unicode_class_index",
                                                   "uint16_t unicode_class_index")


# ---- Hugging Face's classes and lower case ----


def hf_of(code_point):
    """Bits, in the order of enum hf_class in unicode.c."""
    exact = unicodedata2.category(chr(code_point))
    category = exact[0]
    number = category == "N" or within(NUMBERS_AFTER_14, code_point)
    punctuation = (code_point in ASCII_PUNCTUATION or code_point in PUNCTUATION_ONCE
                   or category == "P" and not within(PUNCTUATION_AFTER_8, code_point))
    mark = (code_point in MARKS_ONCE
            or category == "M" and not within(MARKS_AFTER_9, code_point))
    nonspacing = (code_point in NONSPACING_ONCE
                  or exact == "Mn" and not within(NONSPACING_AFTER_8, code_point))
    control = (code_point in (0, 0xFFFD) or exact in ("Cc", "Co") or exact == "Cf"
               and not within(FORMATS_AFTER_8, code_point)) and code_point not in CONTROL_BLANKS
    return number + 2 * punctuation + 4 * mark + 8 * nonspacing + 16 * control


def hf_words(page):
    """Two words of 64 bits for each class."""
    for bit in (1, 2, 4, 8, 16):
        for start in (0, 64):
            bits = sum(1 << i for i in range(64) if page[start + i] & bit)
            yield f"0x{bits:X}," if bits else "0,"


def lower_of(code_point):
    """The lower case, if it is one other code point."""
    for first, last, lower in LOWER_AFTER_14:
        if first <= code_point <= last:
            return lower + code_point - first
    lower = chr(code_point).lower()
    return ord(lower) if len(lower) == 1 and lower != chr(code_point) else None


def lower_rows():
    """Runs of letters one or two code points apart, whose lower case is equally far away."""
    runs = []
    for c in range(LAST_LOWER + 1):
        lower = lower_of(c)
        if lower is None:
            continue
        first, last, far, step = runs[-1] if runs else (0, 0, 0, 0)
        if runs and far == lower - c and step in (0, c - last) and c - last in (1, 2):
            runs[-1] = (first, c, far, c - last)
        else:
            runs.append((c, c, lower - c, 0))
    return ("{0x%X,0x%X,%d,%d}," % (first, last, step or 1, far) for first, last, far, step in runs)


def hf_tables():
    hf = [hf_of(c) for c in range(N_CODE_POINTS)]
    rows = list(lower_rows())
    return (paged("unicode_hf", hf, "uint64_t", hf_words, 10)
            + array("lower_run lower_runs[LOWER_N_RUNS]", rows))


def word_class_of(code_point):
    category = unicodedata2.category(chr(code_point))
    word = (category[0] in "LM" or category in ("Nl", "Pc")
            or within(WORD_SYMBOLS, code_point))
    punctuation = hf_of(code_point) & 2
    if category == "Nd":
        return WORD_DECIMAL
    if word:
        return WORD_CONNECTOR if punctuation else WORD_LETTER
    if punctuation:
        return WORD_PUNCTUATION
    return WORD_SPACE if code_point in SPACES else WORD_OTHER


def word_tables():
    text = paged("unicode_word", [word_class_of(c) for c in range(N_CODE_POINTS)])
    return text.replace("uint8_t unicode_word_index", "uint16_t unicode_word_index")


def deepseek_class_of(code_point):
    letter, mark = within(DEEPSEEK_LETTERS, code_point), within(DEEPSEEK_MARKS, code_point)
    if code_point in SPACES:
        return DEEPSEEK_BLANK_MARK if mark else CLASS_SPACE
    if mark:
        return DEEPSEEK_BOTH if letter else DEEPSEEK_MARK
    return DEEPSEEK_LETTER if letter else DEEPSEEK_NUMBER * (hf_of(code_point) & 1)


def deepseek_tables():
    text = paged("unicode_deepseek", [deepseek_class_of(c) for c in range(N_CODE_POINTS)])
    return text.replace("uint8_t unicode_deepseek_index", "uint16_t unicode_deepseek_index")


# ---- NFC ----


class Nfc:
    """combining: {code point: class}; decomposition: {code point: (first, second or 0)}, one step
    of it; composites: those that NFC makes; seconds: characters that may combine with those before."""

    def __init__(self):
        self.combining, self.decomposition, self.composites = {}, {}, []
        for c in range(N_CODE_POINTS):
            if not within(NFC_AFTER_9, c) and not 0xD800 <= c <= 0xDFFF:
                self.add(c, chr(c))
        self.seconds = {self.decomposition[c][1] for c in self.composites}
        self.seconds |= {*HANGUL_VOWELS, *HANGUL_TRAILERS}

    def add(self, c, text):
        if unicodedata2.combining(text):
            self.combining[c] = unicodedata2.combining(text)
        parts = unicodedata2.decomposition(text)
        if not parts or parts.startswith("<"):
            return
        self.decomposition[c] = (*(int(part, 16) for part in parts.split()), 0)[:2]
        if unicodedata2.normalize("NFC", text) == text:
            self.composites.append(c)

    def kind_of(self, c):
        """(combining class, flags)"""
        first = c
        while first in self.decomposition:
            first = self.decomposition[first][0]
        flags = KIND_SECOND * (c in self.seconds)
        if c in self.seconds or c in self.decomposition and c not in self.composites:
            flags |= KIND_DOUBTFUL
        if c in self.decomposition or c in HANGUL:
            flags |= KIND_DECOMPOSES
        if first not in self.combining and first not in self.seconds:
            flags |= KIND_BOUNDARY
        return self.combining.get(c, 0), flags


def slots_of(nfc, codes):
    """A hash table with open addressing: 1 + the index in codes of the composite of a pair."""
    slots = [0] * N_SLOTS
    for i, c in enumerate(codes):
        if c in nfc.composites:
            first, second = nfc.decomposition[c]
            slot = ((first * HASH_A ^ second * HASH_B) & 0xFFFFFFFF) >> HASH_SHIFT
            while slots[slot]:
                slot = (slot + 1) % N_SLOTS
            slots[slot] = i + 1
    return slots


def lead_rows_of(kinds):
    """nfc_lead_rows: the pairs of first and second byte of characters that are not plain."""
    rows = [0] * 32
    for c, kind in enumerate(kinds):
        if kind >= N_PLAIN_KINDS:
            lead, second = chr(c).encode()[:2]
            high, low = lead >> 4, lead & 15
            rows[(high >= 0xE) * 16 + low] |= 1 << (high % 2 * 4 + (second >> 4) - 8)
    return rows


def nfc_tables():
    nfc = Nfc()
    nfc.composites = set(nfc.composites)
    plain = [(0, KIND_BOUNDARY), (0, KIND_BOUNDARY | KIND_DECOMPOSES)]
    by_code_point = [nfc.kind_of(c) for c in range(N_CODE_POINTS)]
    kinds = plain + sorted(set(by_code_point) - set(plain))
    number = {kind: i for i, kind in enumerate(kinds)}
    by_code_point = [number[kind] for kind in by_code_point]
    codes = sorted(nfc.decomposition)
    rows = ("D(%X,%X,%X)," % (c, *nfc.decomposition[c]) if nfc.decomposition[c][1] else
            "S(%X,%X)," % (c, nfc.decomposition[c][0]) for c in codes)
    return "".join([
        array(f"nfc_kind nfc_kinds[{len(kinds)}]", (f"{{{ccc},{flags}}}," for ccc, flags in kinds)),
        paged("nfc_kind", by_code_point),
        array("uint8_t nfc_lead_rows[32]", words_of(lead_rows_of(by_code_point))),
        DECOMPOSITION_MACROS,
        array("nfc_decomposition nfc_decompositions[NFC_N_DECOMPOSITIONS]", rows),
        array("uint16_t nfc_slots[NFC_N_SLOTS]", words_of(slots_of(nfc, codes))),
    ])


# ---- Compatibility ----


def compatible(nfc, text):
    """The full decomposition for compatibility, of Unicode 9."""
    parts = []
    for c in map(ord, text):
        fields = unicodedata2.decomposition(chr(c)).split()
        if c in nfc.decomposition:
            parts += compatible(nfc, "".join(chr(p) for p in nfc.decomposition[c] if p))
        elif fields and fields[0][0] == "<" and not within(COMPATIBILITY_AFTER_9, c):
            parts += compatible(nfc, "".join(chr(int(p, 16)) for p in fields[1:]))
        else:
            parts.append(c)
    return parts


def canonical(nfc, c):
    parts = [p for p in nfc.decomposition.get(c, ()) if p]
    return [q for p in parts for q in canonical(nfc, p)] if parts else [c]


def compatibility_tables():
    """Runs of code points whose decompositions are equally long."""
    nfc, runs, pool = Nfc(), [], []
    for c in range(N_CODE_POINTS):
        if 0xD800 <= c <= 0xDFFF:
            continue
        parts = compatible(nfc, chr(c))
        if parts == canonical(nfc, c):
            continue
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == len(parts):
            runs[-1][1] = c
        else:
            runs.append([c, c, len(parts), len(pool)])
        pool += parts
    return (array("compatibility_run compatibility_runs[COMPATIBILITY_N_RUNS]",
                  ("{0x%X,0x%X,%d,%d}," % tuple(run) for run in runs))
            + array("uint32_t compatibility_parts[%d]" % len(pool), words_of(pool)))


def main():
    version = sys.argv[1] if len(sys.argv) > 1 else "16.0.0"
    if unicodedata2.unidata_version != version:
        sys.exit(f"unicodedata2 {version} is needed, not {unicodedata2.unidata_version}")
    for name, its_version, header, text in (
        ("unicode_tables.c", version, "unicode.h", class_tables()),
        ("word_tables.c", version, "unicode.h", word_tables()),
        ("deepseek_tables.c", version, "unicode.h", deepseek_tables()),
        ("hf_tables.c", "8 to 17", "hf_tables.h", hf_tables()),
        ("nfc_tables.c", NFC_VERSION, "nfc_tables.h", nfc_tables()),
        ("compatibility_tables.c", NFC_VERSION, "nfc_tables.h", compatibility_tables()),
    ):
        (FOLDER / name).write_text(HEAD % (name, its_version, header) + text)


if __name__ == "__main__":
    main()

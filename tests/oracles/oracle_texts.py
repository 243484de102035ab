# SPDX-License-Identifier: Apache-2.0
"""Random texts that are hard on tokenizers; the same seed gives the same texts.

What is hard: blanks of every kind and where runs of them end, line ends, contractions, digits and
letters of all classes, marks, characters that normalization joins or takes apart, long runs,
special tokens and what is almost one. Slices of real text stand beside them.
"""

import json
import os
import pathlib
import random
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))

BLANKS = [chr(c) for c in (*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028,
                           0x2029, 0x202F, 0x205F, 0x3000)]
# Not blanks for a regular expression, but for some implementations.
NEAR_BLANKS = [chr(c) for c in (0x1C, 0x1D, 0x1E, 0x1F, 0x180E, 0x200B, 0x200C, 0x200D, 0x2060,
                                0x2581, 0x2800, 0xFEFF, 0xAD)]
ENDS = ["\n", "\r", "\r\n", "\n\n", "\n\r", "\r\r\n", " \n", "\n ", "\t\n\t", "\n\n  ", "\u2028\n"]
SUFFIXES = ["s", "t", "re", "ve", "m", "ll", "d", "\u017f", "S", "T", "rE", "VE", "M", "lL", "Re",
            "D", "l", "v", "r", "st", "\u017ft", "\u212a"]
APOSTROPHES = ["'"] * 6 + ["\u2019", "''", "\u02bc", "`", "' "]
WORDS = ["the", "The", "THE", "theTHE", "theThe", "THEthe", "iPhone", "don", "We", "I", "a", "A",
         "hello", "wor", "ld", "tokenization", "x1", "1x", "foo_bar", "camelCaseHTTPServer",
         "na\u00efve", "Stra\u00dfe", "\u00c9t\u00e9", "\u0130stanbul"]
SCRIPTS = [
    (0x41, 0x5A), (0x61, 0x7A), (0xC0, 0x24F), (0x1C4, 0x1CC), (0x2B0, 0x2FF), (0x300, 0x36F),
    (0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xB80, 0xBFF),
    (0xE00, 0xE7F), (0x1100, 0x11FF), (0x10A0, 0x10FF), (0x13A0, 0x13FF), (0x1C80, 0x1C8F),
    (0x1E00, 0x1FFF), (0x3040, 0x30FF), (0x3130, 0x318F), (0x4E00, 0x4E50), (0x9F90, 0x9FFF),
    (0xAC00, 0xAD00), (0xF900, 0xFA6F), (0xFB00, 0xFB4F), (0xFF00, 0xFFEF), (0x10400, 0x1044F),
    (0x1D400, 0x1D7FF), (0x20000, 0x20020), (0x2F800, 0x2FA1F), (0x1E900, 0x1E95F),
    (0xA640, 0xA69F), (0xA720, 0xA7FF), (0x2100, 0x218F),
]
DIGITS = "0123456789" * 3 + (
    "\u0660\u0669\u06f5\u0967\u0e53\uff11\u00b2\u00bd\u2153\u2167\u216b\u3007\u4e00"
    "\u5341\U0001d7ce\U0001f101\u09f4\u0bf0\u3192\u3220\u32ff\u2460\U00010107\u19da\uf96b")
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" * 2 + (
    "\u00a1\u00ab\u00b7\u2013\u2014\u2018\u201c\u2026\u2030\u20ac\u2122\u3001"
    "\u3002\uff01\uff0c\u00a6\u00a9\u00ac\u2190\u2211\u2500\u061b\u0964")
ODD = ["\x00", "\x01", "\x7f", "\x80", "\x9f", "\ufffd", "\ufeff", "\ufffe", "\uffff", "\ue000",
       "\U0010ffff", "\U000e0001", "\U000e0041", "\u0378", "\U0003fffe", "\u034f", "\u115f",
       "\u202e", "\u2066"]
EMOJI = ["\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466",
         "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "1\ufe0f\u20e3",
         "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001fae8", "\u00a9\ufe0f"]
# Joined, taken apart or put in order by NFC and NFKC.
COMPOSED = ["e\u0301", "\u1e9b\u0323", "a\u0323\u0302", "a\u0302\u0323", "\u0344", "\u212b",
            "\u2126", "\u0958", "\u0915\u093c", "\u1112\u1161\u11ab", "\uac00\u11a8",
            "\u1100\u1161",
            "\u0dd9\u0dca", "\u0dd9\u0dcf\u0dca", "\u0b47\u0b57", "\U000110a5\U000110ba",
            "\ufb01", "\u3392", "\u33a5", "\uff76\uff9e", "\u304b\u3099", "\ufdfa", "\u01c4",
            "\u0340", "\u0374", "\u037e", "\u1fef", "\u2000\u0301", "\U0001d15e", "\u0f73\u0f71",
            "\u0cca\u0cd5", "\U00011131\U00011127", "\u2adc", "\U000105d2\u0307",
            "\u0061\u0315\u0300\u05ae\u0062", "\U000113c2\U000113b8"]
CODE = ["if (x == 0) {\n        return;\n    }\n", "def f(x):\n\treturn x**2\n\n\n",
        "</div>\n  <p>",
        "https://example.org/a/b?c=d&e=%20f#g", "C:\\dir\\n", "0x7fFF", "3.14159e-10", "a+=b;//c",
        "{{tag}}", "--option=value", "$HOME/.x", "/*\r\n */", "====", "....", "\\u0041",
        "1,234,567"]

HAN = [0x2E80, 0x2E99, 0x2F00, 0x3005, 0x3007, 0x3021, 0x3029, 0x3038, 0x303B, 0x3400, 0x4DBF, 0x4E00, 0x9FA5, 0x9FA6,
       0x9FFF, 0xF900, 0xFA6D, 0xFA70, 0xFAD9, 0x16FE2, 0x16FE3, 0x16FF0, 0x20000, 0x2A6DF, 0x2A6E0, 0x2A700, 0x2B739,
       0x2B73F, 0x2B740, 0x2B81D, 0x2B820, 0x2B91F, 0x2B920, 0x2CEA1, 0x2CEB0, 0x2EBE0, 0x2EBF0, 0x2F800, 0x2FA1D, 0x30000,
       0x3134A, 0x31350, 0x323AF, 0x3006, 0x30FB, 0x30FC, 0x3099, 0x3031, 0xAC00, 0xD7A3, 0xD7A4, 0xD7FE, 0x0800, 0x3130, 0x318E]
BLOOM = list("(|.,!?…。，、।۔،[])") + [" "]
EXTRA = ["``", "''", "##", "##a", "[UNK]", "</w>", "<unk>", "<!dummy-prefix!>", "SPL1T-TH1S-Pl3A5E", "IMGIMGABZ", "<sentinel:12>",
         "\u0130", "\u0131", "\u03a3", "\u03c3", "\u03c2", "ΟΔΟΣ", "ΣΑΣ", "ß", "\u1e9e", "ŉ", "ǰ", "ﬀ", "ﬃ", "\u1f88", "\u2160",
         "\u24b6", "\u10a0", "\u13a0", "\uab70", "\u1c90", "\u10d0", "e\u0301", "é", "\u00c5", "\u212b", "\u0345", "\u0390", "\ufb1d", "\u05d0\u05b7",
         "\u0e33", "\u0eb3", "\u1100\u1161\u11a8", "\uac01", "\u3131", "\uffa1", "_", "a_b", "\u203f", "\u2040", "\uff3f",
         "\u200c", "\u200d", "क\u094d\u200dष", "\u0cb0\u0ccd\u200c", "\u00ad", "\u0600", "\u06dd", "\u180e", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c",
         "\u00b2", "\u00bd", "\u2460", "\u3007", "\u4e00", "\u0661\u0662\u0663\u0664", "\U0001d7ce\U0001d7cf", "\u0bf0", "\u3021", "\u2488",
         "1234567", "12345678", "1,234,567.89", "a123456b", "123456\u0661", "1234\u0301", "12_345", "\u00b2345678", "2024-01-02",
         "\u24b6\u24d0", "\u0345a", "\u2071", "\u2c7c", "\U0001f130", "\u1cd0", "\u20dd", "\u0488", "\ufe0f", "\U000e0101",
         "i\u0307", "\u1e9b\u0323", "\u2581", "\u2581\u2581", " \u2581", "a\u2581b", "n't", " n't", " do not", " 's", " ' ", " .", " ?", "' re"]


def plain_texts(limit_bytes=1 << 22):
    """Real text, for slices and to train on: of ../shared, else of this repository."""
    folder = SHARED / "text"
    texts = []
    if folder.is_dir():
        for path in sorted(folder.glob("*.txt")):
            texts.append(path.read_bytes()[:limit_bytes].decode("utf-8", "ignore"))
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_bytes().split(b"\n")[:-1]:
                texts.append(json.loads(line)["text"])
    if not texts:
        for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.*"))]:
            if path.is_file():
                texts.append(path.read_text("utf-8", "ignore"))
    return [text for text in texts if text]


def by_category():
    found = {}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            found.setdefault(unicodedata.category(chr(code)), []).append(code)
    return found


class Texts:
    """`marks`: strings that mean something to the tokenizer, special tokens mostly."""

    categories = None

    def __init__(self, seed, marks=(), plain=None):
        self.rng = random.Random(seed)
        self.marks = list(marks)
        self.plain = plain if plain is not None else plain_texts()
        if Texts.categories is None:
            Texts.categories = by_category()
        self.makers = [
            (6, self.blanks), (5, self.words), (4, self.contraction), (4, self.letters),
            (3, self.digits), (3, self.punctuation), (2, self.line_ends), (2, self.any_category),
            (1, self.odd), (1, self.emoji), (2, self.composed), (1, self.code), (1, self.any_code),
            (3, self.slice), (1, self.mutated), (1, self.run), (4 if self.marks else 0, self.mark),
            (2, self.han), (2, self.extra), (1, self.number), (1, self.bloom), (1, self.cased), (1, self.long_word),
        ]
        self.weights = [weight for weight, _ in self.makers]

    def many(self, n):
        return [self.one() for _ in range(n)]

    def one(self):
        kind = self.rng.random()
        if kind < 0.02:
            return self.rng.choice(self.plain_part(2000))
        if kind < 0.04:
            return self.long_run()
        n = self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 12, 20))
        makers = self.rng.choices(self.makers, self.weights, k=n)
        if kind < 0.25:  # few kinds, so that like meets like
            makers = self.rng.choices(makers, k=n)
        return "".join(make() for _, make in makers)

    # ---- Makers ----

    def blanks(self):
        rng = self.rng
        if rng.random() < 0.5:
            return " " * rng.choice((1, 1, 1, 1, 2, 3, 4, 7, 8, 24, 31, 33))
        pool = BLANKS + NEAR_BLANKS[:4] if rng.random() < 0.8 else NEAR_BLANKS
        return "".join(rng.choice((" ", " ", "\t", "\n", "\r", rng.choice(pool)))
                       for _ in range(rng.choice((1, 2, 3, 5, 9))))

    def line_ends(self):
        return "".join(self.rng.choice(ENDS) for _ in range(self.rng.choice((1, 1, 2, 3))))

    def words(self):
        rng = self.rng
        word = rng.choice(WORDS)
        return rng.choice(("", " ", " ", " ", "  ", "\u2581")) + rng.choice(
            (word, word, word, word.upper(), word.lower(), word.title()))

    def contraction(self):
        rng = self.rng
        return (rng.choice(("", " ", "a", "I", "1", "\u00e9", "\u4e00", "\n", "!", "\u0301", " B"))
                + rng.choice(APOSTROPHES) + rng.choice(SUFFIXES)
                + rng.choice(("", "", "x", "X", " ", "1", "'", "\u0301")))

    def letters(self):
        rng = self.rng
        if rng.random() < 0.4:
            first, last = rng.choice(SCRIPTS)
            return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 7)))
        kinds = rng.choices(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc"), k=rng.randint(1, 6))
        return "".join(chr(rng.choice(self.categories[kind])) for kind in kinds)

    def digits(self):
        rng = self.rng
        if rng.random() < 0.6:
            return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 8)))
        return "".join(rng.choice(DIGITS) for _ in range(rng.randint(1, 6)))

    def punctuation(self):
        n = self.rng.choice((1, 1, 2, 3, 5))
        return "".join(self.rng.choice(PUNCTUATION) for _ in range(n))

    def any_category(self):
        kinds = self.rng.choices(list(self.categories), k=self.rng.randint(1, 4))
        return "".join(chr(self.rng.choice(self.categories[kind])) for kind in kinds)

    def any_code(self):
        code = self.rng.randrange(0x110000 - 0x800)
        return chr(code if code < 0xD800 else code + 0x800)

    def odd(self):
        return self.rng.choice(ODD)

    def emoji(self):
        return self.rng.choice(EMOJI)

    def composed(self):
        rng = self.rng
        text = "".join(rng.choice(COMPOSED) for _ in range(rng.randint(1, 3)))
        if rng.random() < 0.3:
            n = rng.choice((1, 2, 3, 40))
            text += "".join(chr(rng.randint(0x300, 0x36F)) for _ in range(n))
        if rng.random() < 0.2:
            text = unicodedata.normalize(rng.choice(("NFD", "NFKD")), text)
        return text

    def code(self):
        return self.rng.choice(CODE)

    def mark(self):
        rng = self.rng
        mark = rng.choice(self.marks)
        kind = rng.random()
        if kind < 0.5:
            before = rng.choice(("", "", " ", "x", "\n", "_", "\u00e9", "1", "'"))
            return before + mark + rng.choice(
                ("", "", " ", "  ", "x", "\n", "\t\u3000", "_", "1", "'"))
        if kind < 0.7:  # almost: one character less, or changed
            at = rng.randrange(len(mark))
            return mark[:at] + rng.choice(("", " ", "x", mark[at].swapcase())) + mark[at + 1 :]
        if kind < 0.85:
            return mark[: rng.randint(1, len(mark))] + mark
        return mark + rng.choice(self.marks)

    def plain_part(self, n_longest):
        text = self.rng.choice(self.plain)
        at = self.rng.randrange(len(text))
        return [text[at : at + self.rng.randint(1, n_longest)]]

    def slice(self):
        return self.plain_part(60)[0]

    def mutated(self):
        text = list(self.plain_part(60)[0])
        for _ in range(self.rng.randint(1, 4)):
            at = self.rng.randrange(len(text) + 1)
            end = at + self.rng.randint(0, 2)
            text[at:end] = [self.rng.choice((" ", "\n", "'", "\u0301", "\r"))]
        return "".join(text)

    def run(self):
        return self.unit() * self.rng.choice((2, 3, 4, 5, 9, 17, 64, 65))

    def long_run(self):
        n = self.rng.choice((100, 127, 128, 129, 300, 1000, 2500))
        return self.slice() + self.unit() * n + self.slice()

    def unit(self):
        rng = self.rng
        return rng.choice((" ", "a", "A", "=", "-", ".", "0", "\n", "\r\n", "\t", "\u00a0",
                           "\u3042", "\u4e00", "\U0001f600", "aB", "'s", " a", "ab", "\u0301",
                           "\u2581", "\x00", "\ufffd", "  \n",
                           chr(rng.choice(self.categories["Lo"]))))

    def han(self):
        return "".join(chr(self.rng.choice(HAN) + self.rng.choice((0, 0, 1))) for _ in range(self.rng.randint(1, 5)))

    def extra(self):
        return self.rng.choice(EXTRA)

    def number(self):
        rng = self.rng
        n = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 14)))
        return rng.choice(("", " ", "a", "_", "$", "-", "é", "\u4e00", ".")) + n + rng.choice(("", " ", "a", "_", "\u0301", "\u0661", "\u00b2", ".", "\u2460", "\n", "%"))

    def bloom(self):
        return "".join(self.rng.choice(BLOOM) for _ in range(self.rng.randint(1, 4)))

    def cased(self):
        word = self.rng.choice(WORDS + EXTRA)
        return self.rng.choice((word.upper(), word.lower(), word.title(), word.swapcase()))

    def long_word(self):
        n = self.rng.choice((98, 99, 100, 101, 102, 150))
        return "".join(self.rng.choice("abcé\u0301\u4e00") for _ in range(n)) if self.rng.random() < .5 else self.rng.choice("aé\u0301x") * n


def sweep(rng, n):
    """Code points of every category among neighbours of every kind."""
    out = []
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    low = codes[:0x32400 - 0x800]
    for c in rng.sample(low, min(n, len(low))) + rng.sample(codes, n // 10):
        c = chr(c)
        out.append(rng.choice((f"a{c}b 1{c}2\n{c} {c}{c}'{c}s  {c}\r\n.{c}A{c}", f"{c}e\u0301{c}!{c}{c}_{c} {c}1{c} \u4e00{c}\u4e00",
                               f"A{c}a{c}A 12{c}345 {c}\t{c}", c, c + c, " " + c, c + " ")))
    return out

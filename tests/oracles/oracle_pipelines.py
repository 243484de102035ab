# SPDX-License-Identifier: Apache-2.0
"""Pipelines of tokenizer.json that nobody published: the parts that tokmap knows, in any order.

Needs the Python package `tokenizers` only where a reference encodes."""

import base64
import copy
import random

from oracle_hf import (SPACE, ZOO, bpe_model, byte_level, decoders, document, metaspace, replace, sequence,
                       split)
from oracle_patterns import GPT2, LINES, LISTS, byte_letters
from oracle_reference import PLAIN
from oracle_sections import charsmap

SUFFIX = "</w>"
# Every expression that is known, but that which is known with MergedWithNext.
EXPRESSIONS = sorted({GPT2, "[0-9][0-9][0-9]", *(
    part for parts in LISTS.values() for part in parts if isinstance(part, str) and part != LINES)})


def stages():
    """Each pre-tokenizer that splits."""
    found = [split(regex) for regex in EXPRESSIONS] + [split(LINES, "MergedWithNext")]
    found += [{"type": "Digits", "individual_digits": each} for each in (False, True)]
    found += [{"type": "Punctuation", "behavior": b} for b in BEHAVIORS]
    found += [{"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "FixedLength", "length": 3}]
    found += [split(text, b, kind="String") for b in BEHAVIORS for text in (" ", "I", "n.")]
    found += [{"type": name} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")]
    found += [metaspace(prepend_scheme=scheme, split=each, add_prefix_space=scheme != "never")
              for scheme in ("always", "first", "never") for each in (False, True)]
    return found + [byte_level(use, prefix) for use in (None, True, False)
                    for prefix in (False, True)]


def is_byte_level(stage):
    return stage["type"] == "ByteLevel"


def words_document(steps, characters):
    """A tokenizer whose ids show where its words end: no merges, and another id at the end."""
    if any(map(is_byte_level, steps)):
        characters = [*byte_letters(), SPACE]
    tokens = ["<unk>"] + [c + end for end in ("", SUFFIX) for c in characters]
    model = bpe_model({token: i for i, token in enumerate(tokens)}, [], unk_token="<unk>",
                      end_of_word_suffix=SUFFIX)
    return document({"pre_tokenizer": sequence(*steps)}, model, [])


def words_ids(content, words):
    """The ids of words_document; words of bytes are written in ByteLevel's characters."""
    ids = content["model"]["vocab"]
    return [ids[c] for word in words for c in (*word[:-1], word[-1] + SUFFIX)]


# ---- Random tokenizers ----

BLANK_SPLITS = ["\u2581", " ", "a", "\n", "<!dummy-prefix!>", "ab", "\u00e9"]
BEHAVIORS = ["Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
OTHER_EXPRESSIONS = [r"\s+", r"\w+|[^\w\s]+", r"\d", "[ab]", r"(\p{L})\1", "", " ", "  "]
REPLACED = [" ", "\u2581", "a", "ab", "``", "e\u0301", "\n", "\u00e9", "  ", "", "<"]
REPLACEMENTS = ["\u2581", " ", "", "A", "\"", "x\u0301", "\u00e9", "  ", "ab", "\ufffd"]
REPLACED_EXPRESSIONS = [" ", " {2,}", r"\s+", r"\s{2,}|[\n\r\t]", r"[\n\r\t]", "a+"]
WORDS = ("the a of and to in is hello world tokenization don't I'm 12 2024 345 x y z caf\u00e9 na\u00efve "
         "e\u0301 \u4e00 \u4e2d\u6587 \u3042 \u0645 \U0001f600 foo_bar HTTP Server ... !! - .5 "
         "\u00df \u0130 \u03a3\u03b1\u03c2 \u1e9b\u0323 \ufb01").split(" ")


# Of no account here, as specials are not added.
ENDS = {"sep": ["a", 0], "cls": ["b", 1]}
POST_PROCESSORS = [
    None, byte_level(True), {"type": "BertProcessing", **ENDS},
    {"type": "RobertaProcessing", **ENDS, "trim_offsets": True, "add_prefix_space": False},
    {"type": "TemplateProcessing", "pair": [], "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}},
     "single": [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]


class Maker:
    """Makes tokenizers; the same seed makes the same ones."""

    def __init__(self, seed):
        self.rng = random.Random("pipelines %s" % seed)
        blob = charsmap()
        self.blob = base64.b64encode(blob).decode() if blob else ""

    def chance(self, share):
        return self.rng.random() < share

    def flag(self):
        return self.chance(0.5)

    def sequence(self, key, parts):
        """One part alone, none, or a Sequence, which may have another in it."""
        if len(parts) < 2 and self.chance(0.7):
            return parts[0] if parts else None
        if len(parts) > 1 and self.chance(0.1):
            at = self.rng.randrange(len(parts))
            parts = [*parts[:at], {"type": "Sequence", key: parts[at:]}]
        return {"type": "Sequence", key: parts}

    # ---- Normalizers ----

    def normalizer(self):
        rng = self.rng
        kind = rng.choice((["ByteLevel"] if self.wild else []) + ["NFC", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase", "Nmt",
                           "BertNormalizer", "Prepend", "Prepend", "Replace", "Replace", "Replace", "Strip",
                           "Precompiled"])
        step = {"type": kind}
        if kind == "BertNormalizer":
            step.update(clean_text=self.flag(), handle_chinese_chars=self.flag(), lowercase=self.flag(),
                        strip_accents=rng.choice((None, True, False)))
        if kind == "Prepend":
            step["prepend"] = rng.choice([SPACE, SPACE, SPACE, " ", "", "a", "ab", "\u0301"])
        if kind == "Replace":
            regex = self.chance(0.25)
            known = REPLACED_EXPRESSIONS if self.wild else REPLACED_EXPRESSIONS[:4]
            step["pattern"] = ({"Regex": rng.choice(known)} if regex else
                               {"String": rng.choice([" ", " ", *REPLACED])})
            step["content"] = rng.choice([SPACE, SPACE, *REPLACEMENTS])
        if kind == "Strip":
            step.update(strip_left=self.flag(), strip_right=self.flag())
        if kind == "Precompiled":
            step["precompiled_charsmap"] = self.blob
        return step

    def normalizers(self):
        n = self.rng.choice((0, 0, 0, 1, 1, 1, 2, 2, 3, 4))
        return self.sequence("normalizers", [self.normalizer() for _ in range(n)])

    # ---- Pre-tokenizers ----

    def splitting(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.75 or not self.wild:
            return rng.choice([*stages(), *(split(GPT2) for _ in range(6))])
        regex = rng.choice(EXPRESSIONS if kind < 0.9 else OTHER_EXPRESSIONS)
        pattern = {"String": rng.choice(BLANK_SPLITS)} if self.chance(0.3) else {"Regex": regex}
        if kind < 0.97:
            return {"type": "Split", "pattern": pattern, "behavior": rng.choice(BEHAVIORS),
                    "invert": self.flag()}
        return rng.choice([{"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "UnicodeScripts"},
                           {"type": "FixedLength", "length": 3},
                           {"type": "Punctuation", "behavior": rng.choice(BEHAVIORS)}])

    def metaspace(self):
        scheme = self.rng.choice(("always", "first", "never"))
        return metaspace(prepend_scheme=scheme, split=self.flag(), add_prefix_space=scheme != "never")

    def pre_tokenizers(self, kind, of_bytes):
        rng = self.rng
        parts = [self.splitting() for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 2, 3)))]
        if kind == "unigram" and not self.wild and self.flag():
            parts = rng.choice(([], [], [{"type": "WhitespaceSplit"}],
                                [{"type": "Punctuation", "behavior": "Isolated"}]))
        if self.chance(0.9):
            parts = [part for part in parts if not is_byte_level(part)]
        if of_bytes:
            at = len(parts) if self.chance(0.8) else rng.randint(0, len(parts))
            parts.insert(at, byte_level(rng.choice((None, True, False, False)), self.chance(0.2)))
        elif self.chance(0.8 if kind == "unigram" else 0.3) and (kind in ("bpe", "unigram") or self.wild):
            parts.append(self.metaspace())
        return self.sequence("pretokenizers", parts)

    # ---- Models ----

    def words(self):
        """Of real and made text."""
        rng = self.rng
        text = rng.choice(PLAIN)
        at = rng.randrange(len(text))
        found = text[at : at + 1500].split() + WORDS
        return rng.sample(found, min(len(found), 120))

    def characters(self):
        found = set("".join(self.words()) + "abcdefghijklmnopqrstuvwxyz0123456789 \n.,!'" + SPACE)
        return sorted(c for c in found if self.chance(0.95))

    def affix(self, usual, share):
        return usual if self.chance(share) else None

    def bpe(self, of_bytes):
        rng = self.rng
        base = byte_letters() if of_bytes else self.characters()
        if of_bytes:
            words = ["".join(base[byte] for byte in (" " * self.flag() + word).encode())
                     for word in self.words()]
            base = [c for c in base if self.chance(0.995)] if self.chance(0.3) else base
        else:
            words = [SPACE * self.flag() + word for word in self.words()]
        fallback = self.chance(0.4)
        suffix = self.affix(rng.choice(("</w>", "@", "")), 0.15)
        tokens, merges = grow(base, words, suffix, rng)
        if fallback and self.chance(0.9):
            tokens += ["<0x%02X>" % b for b in range(256) if not self.wild and self.chance(0.001)]
        unknown = rng.choice((None, "<unk>", "<unk>", "<unk>", "[UNK]", *["absent"] * self.wild))
        if unknown != "absent" and (unknown or self.flag()):
            tokens.insert(rng.randint(0, len(tokens)), unknown or "<unk>")
        tokens = list(dict.fromkeys(tokens))
        if self.chance(0.3):
            rng.shuffle(tokens)
        fields = {"unk_token": unknown, "fuse_unk": self.flag(), "byte_fallback": fallback,
                  "ignore_merges": self.chance(0.25), "end_of_word_suffix": suffix,
                  "continuing_subword_prefix": self.affix(rng.choice(("", "##")), 0.05)}
        if self.chance(0.3):
            merges = [" ".join(pair) if not any(" " in part for part in pair) else pair for pair in merges]
            if any(not isinstance(pair, str) for pair in merges):
                merges = [pair for pair in merges if isinstance(pair, str)]
        return bpe_model({t: i for i, t in enumerate(tokens)}, merges, **fields)

    def unigram(self):
        rng = self.rng
        pieces = {c: -rng.choice((9.0, 10.5, rng.random() * 12)) for c in self.characters()}
        for word in self.words():
            word = SPACE * self.flag() + word
            for _ in range(3):
                a, b = sorted(rng.choices(range(len(word) + 1), k=2))
                pieces[word[a:b]] = -rng.choice((1.0, 2.0, 2.5, rng.random() * 12))
        pieces.pop("", None)
        rows = [["<unk>", 0.0]]
        if self.chance(0.4):
            rows += [["<0x%02X>" % b, -rng.random()] for b in range(256) if not self.wild or self.chance(0.999)]
        rows += sorted(pieces.items(), key=lambda row: rng.random())
        return {"type": "Unigram", "unk_id": rng.choice((0, 0, 3, None)) if self.wild else 0, "vocab": [list(row) for row in rows],
                "byte_fallback": len(rows[1][0]) == 6 or self.wild and self.chance(0.1)}

    def word_pieces(self):
        rng = self.rng
        prefix = rng.choice(("##", "##", "##", "", "_"))
        tokens = ["[UNK]", "[CLS]"] + self.characters()
        for word in self.words():
            cut = rng.randint(0, len(word))
            tokens += [word, word[:cut], prefix + word[cut:]]
        tokens += [prefix + c for c in self.characters()]
        tokens = [t for t in dict.fromkeys(tokens) if t]
        if self.chance(0.3):
            rng.shuffle(tokens)
        return {"type": "WordPiece", "unk_token": "absent" if self.wild and self.chance(0.2) else "[UNK]",
                "continuing_subword_prefix": prefix,
                "max_input_chars_per_word": rng.choice((100, 12, 3)), "vocab": {t: i for i, t in enumerate(tokens)}}

    def word_level(self):
        tokens = list(dict.fromkeys(["[UNK]", *self.words(), *self.characters()]))
        return {"type": "WordLevel", "unk_token": "absent" if self.wild and self.chance(0.2) else "[UNK]",
                "vocab": {t: i for i, t in enumerate(tokens)}}

    # ---- Decoders ----

    def decoder(self, model, of_bytes):
        rng = self.rng
        strip = {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        fuse, fallback = {"type": "Fuse"}, {"type": "ByteFallback"}
        choices = [None, byte_level(True), metaspace(prepend_scheme=rng.choice(("always", "first"))),
                   metaspace(prepend_scheme="never", add_prefix_space=False), decoders(replace(SPACE, " "), fuse), decoders(replace(SPACE, " "), fuse, strip),
                   decoders(replace(SPACE, " "), fallback, fuse, strip),
                   decoders(replace(SPACE, " "), fallback, fuse), decoders(fallback, metaspace(prepend_scheme="always")),
                   {"type": "WordPiece", "prefix": rng.choice(("##", "##", "", "_")), "cleanup": self.flag()},
                   {"type": "BPEDecoder", "suffix": rng.choice(("</w>", "</w>", "@", ""))},
                   decoders(), fuse, {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
                   decoders(replace("a", "b"), fuse), decoders(replace(SPACE, " "), {**strip, "start": 2})]
        if of_bytes and self.chance(0.9):
            return byte_level(True)
        if model.get("byte_fallback") and self.chance(0.8):
            return rng.choice(choices[6:9])
        return rng.choice(choices if self.wild else choices[:6] + choices[9:11])

    # ---- Added tokens ----

    def added(self, model):
        rng = self.rng
        vocab = model["vocab"]
        known = list(vocab) if isinstance(vocab, dict) else [row[0] for row in vocab]
        tokens = []
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3, 5, 8))):
            content = rng.choice((rng.choice(known), rng.choice(self.words()), rng.choice(ZOO)["content"],
                                  rng.choice(("<s>", "</s>", "<mask>", "[R]", "<|endoftext|>", "", "  ", " a", "a ",
                                              "\n", "<0x41>", "<0x0a>", "E\u0301", "\u00c9", "the", "THE", "A"))))
            special = self.flag()
            usual = self.chance(0.5)
            tokens.append({"content": content, "special": special, **{
                flag: (not usual and self.chance(0.3)) for flag in ("single_word", "lstrip", "rstrip")},
                "normalized": not special if usual else self.flag()})
        if self.chance(0.97):
            tokens = list({token["content"]: token for token in tokens}.values())
        return tokens

    # ---- The whole ----

    def make(self):
        rng = self.rng
        self.wild = self.chance(0.25)  # with parts that tokmap does not know
        kind = rng.choice(("bytes",) * 5 + ("bpe",) * 4 + ("unigram",) * 3 + ("pieces",) * 2 + ("words",))
        of_bytes = kind == "bytes" or self.chance(0.01)
        model = {"bytes": lambda: self.bpe(True), "bpe": lambda: self.bpe(False), "unigram": self.unigram,
                 "pieces": self.word_pieces, "words": self.word_level}[kind]()
        family = {"normalizer": self.normalizers(), "pre_tokenizer": self.pre_tokenizers(kind, of_bytes),
                  "decoder": self.decoder(model, of_bytes),
                  "post_processor": copy.deepcopy(rng.choice(POST_PROCESSORS))}
        content = document(family, model, self.added(model))
        return self.broken(content) if self.chance(0.06) else content

    def broken(self, content):
        """With one thing changed or gone, mostly so that it cannot be loaded."""
        rng = self.rng
        places = [(parent, key) for parent, key in walk(content)
                  if not (isinstance(parent, dict) and parent is content["model"].get("vocab"))]
        parent, key = rng.choice(places)
        if isinstance(parent, dict) and self.flag():
            del parent[key]
        else:
            parent[key] = rng.choice((None, "x", "", 1, -1, 1.5, True, [], {}, {"type": "Nope"}, ["a"]))
        return content


def walk(value, depth=0):
    """All places in a JSON value, of long lists and large objects the first ones."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value)
                 if isinstance(value, list) else ())
    for key, part in items[:12]:
        yield value, key
        yield from walk(part, depth + 1)


def grow(base, words, suffix, rng):
    """Tokens and merges over the characters of the base: parts of words, in any order."""
    known, tokens, merges = set(base), list(base), []
    if suffix:
        tokens += [c + suffix for c in base]
    for word in words:
        parts = [c for c in word if c in known]
        if suffix and parts:
            parts[-1] += suffix
        while len(parts) > 1 and rng.random() < 0.9:
            at = rng.randrange(len(parts) - 1)
            pair = [parts[at], parts[at + 1]]
            parts[at : at + 2] = ["".join(pair)]
            tokens.append("".join(pair))
            if pair not in merges and rng.random() < 0.97:
                merges.append(pair)
    if rng.random() < 0.5:
        rng.shuffle(merges)
    return tokens, merges

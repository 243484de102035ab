#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines that no published tokenizer has: every known stage after every other, split as by the
reference package. A few cases have the reference's answer here, for machines without the package. `make
test-pipelines` compares whole random tokenizers."""

import base64
import itertools
import json
import os
import random
import sys

import oracle_pipelines as pipelines
import ref_protocol
from oracle_hf import added, byte_level, decoders, metaspace, normalizers, replace, split
from oracle_patterns import GPT2, byte_letters
from oracle_reference import tokmap
from ref_protocol import expect, expect_equal, need, run_in_folders
from test_splitter import ALPHABET, random_text

LONG = os.environ.get("TOKMAP_LONG") == "all"
CHARACTERS = sorted(set("".join(ALPHABET) + "In\u2581"))


def compare_steps(folder, steps, texts, wanted=None):
    """wanted: words; None: as the package splits them. Returns whether tokmap takes the steps."""
    content = pipelines.words_document(steps, CHARACTERS)
    file = folder / "tokenizer.json"
    file.write_text(json.dumps(content))
    got, why = tokmap("encode", file, texts)
    if got is None:
        expect(why.startswith("exit 3"), why)
        return False
    if wanted is None:
        reference = need("tokenizers").Tokenizer.from_str(json.dumps(content))
        wanted = [e.ids for e in reference.encode_batch_fast(texts, add_special_tokens=False)]
    else:
        wanted = [pipelines.words_ids(content, words) for words in wanted]
    for text, ids, right in zip(texts, got, wanted):
        expect_equal(ids, right, "%s of %a" % (json.dumps(steps), text))
    return True


# What tokenizers 0.23 gives.
DIGITS = {"type": "Digits", "individual_digits": False}
FIRST, WHITE = metaspace(prepend_scheme="first"), {"type": "WhitespaceSplit"}
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
    ([split("[a-z]"), byte_level(False)], "I|n|\u01202024\u0120\u00c2\u00b2\u00c3\u00a9!"),
    ([DIGITS, FIRST], "\u2581In|\u2581|2024|\u2581|\u00b2|\u00e9!"),
    ([split("I", "Removed", kind="String"), FIRST], "n|\u25812024|\u2581\u00b2\u00e9!"),
    ([WHITE, {**FIRST, "split": False}], "\u2581In|2024|\u00b2\u00e9!"),
    ([metaspace(), DIGITS], "\u2581In|\u2581|2024|\u2581|\u00b2|\u00e9!"),
    ([byte_level(False, True), DIGITS], "\u0120In\u0120|2024|\u0120\u00c2|\u00b2|\u00c3\u00a9!"),
    ([byte_level(True, True), byte_level(False, True)],
     "\u0120\u00c4\u0142In|\u0120\u00c4\u01422024|\u0120\u00c4\u0142\u00c3\u0124\u00c2\u00b2|"
     "\u0120\u00c3\u0125\u00c2\u00a9|\u0120!"),
    ([DIGITS, byte_level(False, True), metaspace(split=False), DIGITS],
     "\u2581\u0120In\u0120|\u2581\u0120|2024|\u2581\u0120|\u2581\u0120\u00c2|\u00b2|\u2581\u0120\u00c3\u00a9!"),
]


def words_of_several_stages_are_those_of_the_reference(folder):
    for steps, words in GOLDEN:
        expect(compare_steps(folder, steps, [TEXT], [words.split("|")]), steps)


def every_model_takes_the_words_of_any_stages(folder):
    file = folder / "tokenizer.json"
    for steps, words in GOLDEN:
        tokens = ["[UNK]", *dict.fromkeys(words.split("|"))]
        ids = {token: i for i, token in enumerate(tokens)}
        piece = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
        for model in ({"type": "WordLevel", "unk_token": "[UNK]", "vocab": ids},
                      {"type": "WordPiece", "vocab": ids, **piece},
                      {"type": "Unigram", "unk_id": 0, "vocab": [[token, -1.0] for token in tokens]}):
            content = pipelines.document({"pre_tokenizer": pipelines.sequence(*steps)}, model, [])
            file.write_text(json.dumps(content))
            got, why = tokmap("encode", file, [TEXT])
            expect_equal(got, [[ids[word] for word in words.split("|")]], "%s %s: %s" % (model["type"], steps, why))


# Expressions that no known stage has, and what makes tokmap refuse some.
EXPRESSIONS = [
    r"\d+", r"[^\W\d_]+|\d", r"\w+|[^\w\s]+", r"(?i:in|ab)+?", r"\s?[a-z&&[^c-e]]+", r"[[:alpha:]]+",
    r"\p{Lu}+(?=\p{Ll})|\p{L}", r"(?:ab|a)(?:c|bcd)?", r"a{2,3}+b?", r"[0-9]{1,3}?", r"\d{2}?", r"x*", r"x*?y",
    r"\s+$|\S+?(?=\s|$)", r"[a\-z.]", r"\h+", r"(a|b)\1", r"(?<=a)b", r"(?>a+)b", r"\p{Greek}", r"[\p{L}--a]",
    r"(?i:s(?:s))", r"(?i:s\x73)", r"(?i:[a-z&&[^X]]+)", r"(?i:[^\s\p{L}]+)", r"[^[^\P{L}\P{N}]]+", r"[ -&&[-]]x",
    r"\w+(?: \w+)*\.|\w| ", r"(?:ab)+c|[ab]", r"a[ab]*x|b[ab]*y|[ab]", "|" * 100000,
    r"\p{N}{,2}", r"\x41|\u00e9", r"(?i)K|s", r"[^\r\n]+", r"\P{L}+", r".", r"a|", r"(?!a)\w+?", "'(?i:s|t)|\\p{M}+"]
REFUSED = {r"[[:alpha:]]+", r"x*", r"(a|b)\1", r"(?<=a)b", r"(?>a+)b", r"\p{Greek}", "a|",
           r"\d{2}?", r"[\p{L}--a]", r"\p{N}{,2}", r"(?i:s(?:s))", r"(?i:s\x73)", r"(?i:[a-z&&[^X]]+)",
           r"(?i:[^\s\p{L}]+)", r"[^[^\P{L}\P{N}]]+", r"\w+(?: \w+)*\.|\w| ", r"(?:ab)+c|[ab]",
           r"a[ab]*x|b[ab]*y|[ab]", "|" * 100000}
BEHAVIORS = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


def any_expression_splits_as_in_the_reference(folder):
    rng = random.Random("expressions")
    texts = [random_text(rng) for _ in range(2000 if LONG else 70)]
    texts += ["".join(rng.choices("abcdxyKsin019 \n\r.\u00e9\u017f\u212aABIN-&_'", k=rng.randrange(30)))
              for _ in range(len(texts))]
    for regex in EXPRESSIONS:
        for behavior, invert in itertools.product(BEHAVIORS, (False, True)):
            steps = [{**split(regex), "behavior": behavior, "invert": invert}]
            around = [([], []), ([], [byte_level()]), ([byte_level(False)], [])]
            for before, after in around if behavior == "Isolated" else around[:1]:
                taken = compare_steps(folder, before + steps + after, texts)
                expect_equal(taken, regex not in REFUSED, regex)


# --pattern of a file of ranks, which tiktoken has as pat_str; False: tokmap refuses it.
PATTERNS = {
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s": True,
    r"(?i:s|t)+| ?\w+|\d{1,2}+|(?s:.)": True, r"[a-z&&[^c-e]]+|(?is)K.?|[^\W\d_]+?(?=\s|$)|[\s\S]": True,
    r"\p{Han}+|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*\p{Ll}+|\S|\s+(?!\S)|\s": True, r"(?:ab|a)(?:c|bcd)?|\s{2,}|(?s:.)": True,
    r"\w+|\s+": False, r"(?:ab)*c|(?:a|b)": False, ".": False, "[a": False, r"(?<=a)b|(?s:.)": False, "gpt9": False,
    # fancy-regex keeps a flag after a capturing group and a look-ahead, up to the end of a group with ?: around them
    r"((?i)a)b|\s|\S": False, r"((?s)a).|\s|\S": False, r"(x|(?i)a)b|\s|\S": False, r"(?=(?i)a)ab|\s|\S": False,
    r"(?:((?i)a)|b)c|\s|\S": False, r"((?:(?i)I)n)|\s|\S": True, r"(?:(?i)I)n|((?i:w)e)|\s|\S": True, r"(?i)(I)n|\s|\S": True}


def patterns_of_ranks_split_as_in_tiktoken(folder):
    rng = random.Random("patterns")
    texts = ["In 2024 we're", *(random_text(rng) for _ in range(20000 if LONG else 2000))]
    pairs_of_bytes = {t.encode()[i:i + 2] for t in texts for i in range(len(t.encode()) - 1)}
    ranks = {token: i for i, token in enumerate([*(bytes([b]) for b in range(256)), *sorted(pairs_of_bytes)])}
    file = folder / "ranks.tiktoken"
    file.write_bytes(b"".join(base64.b64encode(t) + b" %d\n" % i for t, i in ranks.items()))
    for pattern, taken in PATTERNS.items():
        got, why = tokmap("encode", file, texts, "--pattern", pattern)
        expect_equal(got is not None, taken, "%s: %s" % (pattern, why))
        words = {r"(?i:s|t)+| ?\w+|\d{1,2}+|(?s:.)": [b"In", b" 2", b"02", b"4", b" w", b"e", b"'", b"re"]}.get(pattern)
        if words:
            expect_equal(got[0], [ranks[word] for word in words], pattern)
    try:
        import tiktoken
    except ImportError:
        return "not compared: Python package tiktoken not found"
    for pattern in filter(PATTERNS.get, PATTERNS):
        reference = tiktoken.Encoding("ranks", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        for text, ids in zip(texts, tokmap("encode", file, texts, "--pattern", pattern)[0]):
            expect_equal(ids, reference.encode_ordinary(text), "%s of %a" % (pattern, text))


def long_texts_are_not_cut_inside_a_match(folder):
    """Longer than what is split at once, so it is cut; a match of the first stage may be at each place."""
    text = "abbaI inabba bba " * 6000
    for first, after in itertools.product((".{1,10}", "(?:a b)+", "[a-z ]{7}"), (byte_level(True), split(r"\s\w+|."))):
        for steps in ([split(first), after], [byte_level(False), split(first)]):
            expect(compare_steps(folder, steps, [text]), "%s is refused" % first)


def small(tokens=(), vocab="abcd \u2581", **family):
    """BPE over the characters of vocab, and added tokens after them."""
    model = pipelines.bpe_model({c: i for i, c in enumerate(dict.fromkeys(vocab))}, [])
    return pipelines.document(family, model, tokens)


def of_bytes(*tokens, **family):
    return small(tokens, byte_letters(), pre_tokenizer=byte_level(), decoder=byte_level(), **family)


def fallback(token):
    """With all bytes."""
    content = small([token], decoder=decoders(replace("\u2581", " "), {"type": "ByteFallback"}, {"type": "Fuse"}))
    content["model"]["byte_fallback"] = True
    content["model"]["vocab"].update({"<0x%02X>" % byte: 6 + byte for byte in range(256)})
    content["added_tokens"][0]["id"] = 262
    return content


def unknown_characters_vanish_and_those_beside_them_merge(folder):
    """With neither unk_token nor byte_fallback."""
    rng = random.Random("vanish")
    file = folder / "tokenizer.json"
    all_steps = [{"pre_tokenizer": {**metaspace(), "split": False}}, {"pre_tokenizer": metaspace()}, {"pre_tokenizer": split(" ")},
                 {"normalizer": replace(" ", "\u2581")}, {}]
    n = 0
    for seed in range(300 if LONG else 20):
        vocab = {"\u2581": 0, "\u2581\u2581": 1}
        merges = [["\u2581", "\u2581"]]
        for _ in range(rng.randrange(6) if seed else 0):
            pair = rng.choices([*vocab, "a", "b", " "], k=2)
            for token in (*pair, "".join(pair)):
                vocab.setdefault(token, len(vocab))
            merges.append(pair)
        content = pipelines.document(all_steps[seed % len(all_steps)], pipelines.bpe_model(vocab, merges), ())
        content["model"].update(unk_token=None, byte_fallback=False)
        file.write_text(json.dumps(content))
        texts = ["x ", *("".join(rng.choices("ab x\u00e9\u2581", k=rng.randrange(20))) for _ in range(50)), "ab x b" * 20000]
        got, why = tokmap("encode", file, texts)
        expect(got, why)
        expect_equal(got[0], [1] if seed == 0 else got[0], "x and a blank")
        try:
            import tokenizers
        except ImportError:
            continue
        reference = tokenizers.Tokenizer.from_file(str(file))
        for text, ids in zip(texts, got):
            expect_equal(ids, reference.encode(text, add_special_tokens=False).ids, "%s of %a" % (json.dumps(content), text[:100]))
            n += 1
    return "%d texts" % n


def a_text_that_grows_too_much_is_refused(folder):
    """By one Replace after another, over words and over characters."""
    file = folder / "tokenizer.json"
    grows = normalizers(*(replace("a", "a" * 1000) for _ in range(3)), replace("a" * 1000, "b"))
    why_not = "the normalizer of the tokenizer makes more than 64 bytes of each byte of it, and 1 MiB"
    for content in (small(normalizer=grows), small(normalizer=grows, pre_tokenizer=split(" "))):
        file.write_text(json.dumps(content))
        got, why = tokmap("encode", file, ["a"])
        expect(got is None and why.startswith("exit 3") and why_not in why, why)
        expect_equal(tokmap("encode", file, ["bcd"])[0], [[1, 2, 3]], "a text that does not grow")
        (folder / "a.txt").write_text("a")
        done = ref_protocol.run_program("tokmap", "pack", folder / "a.txt", "--tokenizer", file, "-o", folder / "o", "--force",
                                        "--eod", "none")
        expect(done.returncode == 3 and why_not.encode() in done.stderr, done.stderr)
    # Up to the limit of a step: 64 bytes of each byte, and 1 MiB.
    for n, taken in ((64 + (1 << 20), True), (65 + (1 << 20), False)):
        file.write_text(json.dumps(small(normalizer=replace("a", "b" * n))))
        expect_equal(tokmap("encode", file, ["a"])[0], [[1] * n] if taken else None, "%d bytes" % n)
    file.write_text(json.dumps(small([added("a")], normalizer=grows)))
    got, why = tokmap("encode", file, ["b"])
    expect(got is None and "an added token is too long when normalized" in why, why)


LOWER, NFD = {"type": "Lowercase"}, {"type": "NFD"}
LEFT = {"type": "Strip", "strip_left": True, "strip_right": False}
# Pre-tokenizers, a normalizer, and texts with what their ids stand for.
PREFIXED = [
    ([FIRST], None, {"ab": "_ab", "xab": "xab", "abx": "_abx"}),
    ([FIRST], LEFT, {"ab": "_ab", " ab": "ab"}),
    ([FIRST], replace("ab", "c"), {"ab": "c", "ba": "_ba"}),
    ([FIRST], replace(r"\s+", "c", "Regex"), {" ab": "_cab", "  ab": "cab"}),
    ([FIRST, DIGITS], {"type": "NFC"}, {"ab2": "_ab2"}),
    ([FIRST], normalizers(NFD, {"type": "StripAccents"}), {"\u00e1b": "_ab", "\u0301b": "b"}),
    ([WHITE, FIRST], None, {"ab a": "_aba", " ab a": "aba", "xab": "xab", "ab a " * 40000: "_aba" + "aba" * 39999}),
    ([DIGITS, FIRST], normalizers({"type": "Prepend", "prepend": "2"}), {"ab": "_2_ab"}),
    ([split("a", "Removed", kind="String"), FIRST], None, {"ab": "b", "ba": "_b"}),
    ([DIGITS, {**FIRST, "split": False}, WHITE], None, {"a 2": "_a_2"}),
]


def only_what_begins_where_the_text_begins_gets_a_prefix(folder):
    file, names = folder / "tokenizer.json", "abc2_x"
    for steps, normalizer, texts in PREFIXED:
        content = small([added("x", True)], "abc2\u2581", normalizer=normalizer, pre_tokenizer=pipelines.sequence(*steps))
        file.write_text(json.dumps(content))
        got, why = tokmap("encode", file, list(texts), "--specials", "match")
        expect(got, why)
        expect_equal(["".join(names[i] for i in ids) for ids in got], list(texts.values()), "%s %s" % (steps, normalizer))


def blanks_and_their_mark_are_one_to_added_tokens(folder):
    """Where a normalizer replaces blanks, and added tokens are searched for in what it made."""
    content = small([added("c b")], "abc\u2581", normalizer=replace(" ", "\u2581"))
    file, names = folder / "tokenizer.json", ["a", "b", "c", "_", "[c b]"]
    file.write_text(json.dumps(content))
    texts = {"a b": "a_b", "a\u2581b": "a_b", "\u2581": "_", "ac\u2581b": "a[c b]", "ac b\u2581 c\u2581\u2581b": "a[c b]__c__b"}
    got, why = tokmap("encode", file, list(texts))
    expect(got, why)
    expect_equal(["".join(names[i] for i in ids) for ids in got], list(texts.values()), "texts with U+2581")
    try:
        import tokenizers
    except ImportError:
        return
    reference = tokenizers.Tokenizer.from_file(str(file))
    for text, ids in zip(texts, got):
        expect_equal(ids, reference.encode(text, add_special_tokens=False).ids, ascii(text))


# A tokenizer, and of rows of ids the text; None: it is refused.
DECODED = {
    "a normalized added token": (small([added("AB")], normalizer=LOWER), {(0, 6): "a ab"}),
    "one that is not": (small([added("AB", True)], normalizer=LOWER), {(0, 6): "a AB"}),
    "one that gets a prefix": (small([added("ab")], normalizer=normalizers(
        {"type": "Prepend", "prepend": "\u2581"}), decoder=metaspace()), {(0, 6, 6): "a ab ab"}),
    "one of bytes that is in their alphabet": (of_bytes(added("i\u00e7a")), {(256, 33): "i\ufffda!"}),
    "one of bytes that is not": (of_bytes(added("\u4e2d ")), {(256, 33): "\u4e2d !"}),
    "one of bytes that is normalized": (of_bytes(added("x\u00e7"), normalizer=NFD), {(256,): "xc\u0327"}),
    "one that is named as a byte": (fallback(added("<0x0a>")), {(0, 262): "a\n", (1, 11): "b\x05"}),
    "two that are one when normalized": (small([added("AB"), added("ab")], normalizer=LOWER), None),
    "an empty prefix": (small(normalizer={"type": "Prepend", "prepend": ""}), None),
    "a decoder that is not complete": (small(decoder={"type": "WordPiece", "prefix": "##"}), None),
    "a post-processor that is not complete": (small(post_processor={"type": "ByteLevel"}), None),
    "a flag that is null": (small([{**added("x"), "lstrip": None}]), None),
}


def added_tokens_decode_as_in_the_reference(folder):
    for name, (content, rows) in DECODED.items():
        file = folder / "tokenizer.json"
        file.write_text(json.dumps(content))
        got, why = tokmap("decode", file, list(rows or ()))
        expect_equal(got, rows and list(rows.values()), "%s (%s)" % (name, why))
        try:
            import tokenizers
        except ImportError:
            continue
        for ids, text in (rows or {}).items():
            reference = tokenizers.Tokenizer.from_file(str(file))
            expect_equal(reference.decode(ids, skip_special_tokens=False), text, name)


def pairs():
    """Over characters and over bytes."""
    stages = pipelines.stages()
    for a, b in itertools.product(stages, stages):
        yield [a, b]
        if not pipelines.is_byte_level(a) and not pipelines.is_byte_level(b):
            yield [a, b, byte_level(False)]


def stages_in_pairs_split_as_the_reference(folder):
    need("tokenizers")
    rng = random.Random("pairs")
    chosen = [steps for steps in pairs() if LONG or split(GPT2) in steps or rng.random() < 0.03]
    for steps in chosen:
        texts = ["In 2024", *(random_text(rng) for _ in range(50))]
        expect(compare_steps(folder, steps, texts), "%s is refused" % steps)
    return "%d pairs" % len(chosen)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))

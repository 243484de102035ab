# SPDX-License-Identifier: Apache-2.0
"""Tokenizers in HuggingFace's tokenizer.json, made on the spot: the pipelines of the public
families, field by field as their files have them, around small vocabularies that are trained here;
and vocabularies that nobody would train, where the order of merges and of ids means nothing.

What trains a vocabulary needs the Python package `tokenizers`.
"""

import base64
import json
import random
import unicodedata

from oracle_patterns import (CL100K, DEEPSEEK3, DEEPSEEK3_ESCAPED, GPT2, O200K, QWEN2, QWEN35,
                             TEKKEN)
from oracle_reference import package

tokenizers = package("tokenizers")

SPACE = "\u2581"
NFC = {"type": "NFC"}


def byte_level(use_regex=None, prefix=False, trim=True):
    step = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim}
    return step if use_regex is None else {**step, "use_regex": use_regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def splits_then_bytes(*regexes, **how):
    return sequence(*(split(regex, **how) for regex in regexes), byte_level(False))


def normalizers(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


def replace(old, new, kind="String"):
    return {"type": "Replace", "pattern": {kind: old}, "content": new}


def metaspace(**fields):
    return {"type": "Metaspace", "replacement": SPACE, **fields}


def decoders(*steps):
    return {"type": "Sequence", "decoders": list(steps)}


LLAMA_DECODER = decoders(replace(SPACE, " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                         {"type": "Strip", "content": " ", "start": 1, "stop": 0})
GEMMA_DECODER = decoders(replace(SPACE, " "), {"type": "ByteFallback"}, {"type": "Fuse"})
FALCON = sequence({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True),
                  {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]"))
STARCODER = sequence({"type": "Digits", "individual_digits": True}, byte_level(True))
GEMMA_SPLIT = split(" ", "MergedWithPrevious", kind="String")
LLAMA2_NORMALIZER = normalizers({"type": "Prepend", "prepend": SPACE}, replace(" ", SPACE))
WHITESPACE_METASPACE = sequence({"type": "WhitespaceSplit"},
                                metaspace(str_rep=SPACE, add_prefix_space=True))


# ---- Added tokens ----


def added(content, special=False, **flags):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": not special, "special": special, **flags}


END = added("<|endoftext|>", True)
BLANK_RUNS = [added(" " * n) for n in range(24, 1, -1)]
CHAT = [added("<|im_start|>", True), added("<|im_end|>", True),
        added("<tool_call>", normalized=False), added("</tool_call>", normalized=False),
        added("<think>", normalized=False)]
LLAMA2_ADDED = [added("<unk>", True, normalized=True), added("<s>", True),
                added("</s>", True, normalized=True)]
PHI3_ADDED = [added("<unk>", True), added("<s>", True),
              added("</s>", rstrip=True, normalized=False),
              *(added(t, True, rstrip=True) for t in ("<|user|>", "<|end|>", "<|assistant|>"))]
GEMMA_ADDED = [*(added(t, True) for t in ("<pad>", "<eos>", "<bos>", "<unk>")),
               *(added("\n" * n, normalized=False) for n in range(2, 9)),
               *(added(SPACE * n, normalized=False) for n in range(2, 9)),
               added("<table>", normalized=False), added("</table>", normalized=False)]
T5_ADDED = [added("<pad>", True), added("</s>", True), added("<unk>", True),
            *(added("<extra_id_%d>" % n, True) for n in range(12))]
# Overlaps, prefixes of each other, blanks inside and around, forms that a normalizer changes.
ZOO = [
    added("<|endoftext|>", True), added("<|end", normalized=False), added("endof"),
    added("<a>", True), added("<a><b>"), added("<b>", normalized=False),
    added("<mask>", True, lstrip=True), added("<cut>", True, lstrip=True, rstrip=True),
    added("[R]", rstrip=True), added("[L]", lstrip=True, normalized=False),
    added("word", single_word=True), added("wor", single_word=True, normalized=False),
    added("caf\u00e9"), added("cafe\u0301", True), added("\u00e9", normalized=False),
    added("\u0301x", normalized=False), added("\u212b"), added("   "),
    added("  ", normalized=False), added("\n\n", normalized=False), added("\t\t"), added("a b"),
    added("a b", True, normalized=True), added(" lead"), added("trail ", normalized=False),
    added("\u2581\u2581"), added("\u2581x"),
    added("<\uff5cUser\uff5c>", True), added("12", single_word=True), added("'s"),
    added("\u4f60\u597d"), added("\U0001f600", True, normalized=True),
    added("\x00", normalized=False),
    added("S P", True, single_word=True), added("<s>", True, rstrip=True, normalized=True),
]


def some_added(rng):
    """Mostly without those that tokmap may refuse, or nothing else would be seen."""
    animals = ZOO
    if rng.random() < 0.8:
        animals = [token for token in animals if not token["normalized"]
                   or token["content"] == unicodedata.normalize("NFC", token["content"])]
    chosen = rng.sample(animals, rng.randint(3, len(animals)))
    return list({token["content"]: token for token in chosen}.values())


# ---- Vocabularies ----


def document(family, model, tokens):
    """The whole of a tokenizer.json. Ids of added tokens: their own in the vocabulary, else the
    next ones."""
    vocab = model["vocab"]
    known = vocab if isinstance(vocab, dict) else {t: i for i, (t, _) in enumerate(vocab)}
    next_id = max(known.values()) + 1
    rows = []
    for token in tokens:
        if token["content"] not in known:
            known = {**known, token["content"]: next_id}
            next_id += 1
        rows.append({"id": known[token["content"]], **token})
    rows.sort(key=lambda row: row["id"])
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": rows,
            "normalizer": family.get("normalizer"), "pre_tokenizer": family.get("pre_tokenizer"),
            "post_processor": family.get("post_processor"), "decoder": family.get("decoder"),
            "model": model}


def bpe_model(vocab, merges, **fields):
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False, "vocab": vocab, "merges": merges, **fields}


def trained(family, texts, trainer):
    empty = bpe_model({}, []) if isinstance(trainer, tokenizers.trainers.BpeTrainer) else {
        "type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0]]}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(document(family, empty, []))
                                              if empty["vocab"] else blank_document(family, empty))
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]


def blank_document(family, model):
    return json.dumps({**document(family, {"vocab": {"": 0}}, []), "model": model})


def short_pieces(texts, rng, n_chars):
    pieces, total = [], 0
    while total < n_chars:
        text = rng.choice(texts)
        at = rng.randrange(len(text))
        pieces.append(text[at : at + rng.choice((30, 200, 800))])
        total += len(pieces[-1])
    return pieces


def train_bytes(family, texts, rng):
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=rng.choice((600, 1500, 4000)), show_progress=False,
                                  initial_alphabet=sorted(alphabet))
    model = trained(family, short_pieces(texts, rng, 200000), trainer)
    return model["vocab"], model["merges"]


def train_characters(texts, rng):
    """With U+2581 for spaces, some characters left to byte fallback."""
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=rng.choice((900, 2500)), limit_alphabet=rng.choice((120, 400)),
        show_progress=False,
        special_tokens=["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)])
    family = {"pre_tokenizer": metaspace(prepend_scheme="always", split=rng.random() < 0.6)}
    model = trained(family, short_pieces(texts, rng, 60000), trainer)
    return model["vocab"], model["merges"]


def wild_merges(base, rng, n, longest=8):
    """Merges of anything with anything, in any order, several ways to the same token, and tokens
    that no merge makes. base: the symbols, all in the vocabulary."""
    symbols = rng.sample(base, min(len(base), 14))
    known, pairs = set(symbols), {}
    pool = list(symbols)
    for _ in range(n):
        a, b = rng.choice(pool), rng.choice(pool[-40:] if rng.random() < 0.5 else pool)
        if len(a + b) <= longest:
            pairs[a, b] = True
            if a + b not in known:
                known.add(a + b)
                pool.append(a + b)
    for token in rng.sample(pool, len(pool) // 4):  # other ways to the same token
        for cut in range(1, len(token)):
            if token[:cut] in known and token[cut:] in known:
                pairs[token[:cut], token[cut:]] = True
    merges = [list(pair) for pair in pairs]
    rng.shuffle(merges)
    lonely = {"".join(rng.choices(symbols, k=rng.randint(2, 6))) for _ in range(n // 8)}
    tokens = sorted(known | lonely | set(base))
    rng.shuffle(tokens)
    return {token: i for i, token in enumerate(tokens)}, merges


def wild_bytes(rng):
    base = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab, merges = wild_merges(base, rng, 400)
    for dense in ("\u0120ab", "\u0120'sted\u010a", "\u010a\u010d\u0120 1", "eE\u00cc\u0123"):
        more, pairs = wild_merges([c for c in dense if c in base], rng, 60)
        for token in more:
            vocab.setdefault(token, len(vocab))
        merges += [pair for pair in pairs if pair not in merges]
    rng.shuffle(merges)
    return vocab, merges


def without_some_bytes(vocab, merges, rng):
    gone = set(rng.sample("\u0120ab1.\u00e9\u00c3\u010a\u0101\u013a\u00cc\u0123", 4))
    kept = [pair for pair in merges if not gone & set("".join(pair))]
    tokens = [token for token in sorted(vocab, key=vocab.get) if not gone & set(token)]
    return {token: i for i, token in enumerate(tokens)}, kept


def with_suffix(vocab, merges, suffix, rng):
    """Each byte, and a part of the merges, also at the end of a word, before other merges."""
    symbols = [token for token in vocab if len(token) == 1]
    ends = [[a, b + suffix] for a, b in merges if rng.random() < 0.6]
    tokens = {**vocab, **{token: 0 for token in [s + suffix for s in symbols]}}
    tokens.update({side: 0 for _, side in ends})
    tokens.update({a + b: 0 for a, b in ends})
    merged = []
    for pair in merges:
        merged += [[pair[0], pair[1] + suffix]] if [pair[0], pair[1] + suffix] in ends else []
        merged.append(pair)
    return {token: i for i, token in enumerate(tokens)}, merged


def wild_characters(rng):
    """A word may end inside a piece: spaces stand anywhere in it."""
    base = [SPACE] + list("abdeghilmnorst.,'\n10") + ["\u00e9", "\u4e00", "\u3042", "\U0001f600"]
    vocab, merges = wild_merges(base, rng, 500)
    more, pairs = wild_merges([SPACE, "a", "b", "s"], rng, 80)
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    tokens += sorted(set(vocab) | set(more), key=lambda _: rng.random())
    merges += [pair for pair in pairs if pair not in merges]
    rng.shuffle(merges)
    return {token: i for i, token in enumerate(tokens)}, merges


def unigram_model(pieces, rng, unknown=2):
    """Scores with few bits, so that different ways come out equal or almost so."""
    rows = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", 0.0]]
    grain = rng.choice((None, 0.5, 0.25))
    for piece, score in pieces:
        rows.append([piece, score if grain is None else round(score / grain) * grain])
    return {"type": "Unigram", "unk_id": unknown, "vocab": rows}


def train_unigram(texts, rng):
    trainer = tokenizers.trainers.UnigramTrainer(vocab_size=rng.choice((400, 1000)), show_progress=False,
                                      unk_token="<unk>", special_tokens=["<unk>"])
    family = {"pre_tokenizer": metaspace(prepend_scheme="always", split=True)}
    model = trained(family, short_pieces(texts, rng, 40000), trainer)
    return [row for row in model["vocab"] if row[0] != "<unk>"]


def wild_unigram(rng):
    symbols = [SPACE] + list("abcdest.1") + ["\u00e9", "\u3042"]
    pieces = {"".join(rng.choices(symbols, k=rng.randint(1, 6))) for _ in range(300)}
    return [[piece, -rng.choice((1.0, 2.0, 2.5, 3.0, rng.random() * 12))]
            for piece in sorted(pieces | set(symbols[:6]))]


# ---- Families ----

LLAMA_MODEL = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
BYTE_FAMILIES = {
    # name: (pre-tokenizer, added tokens, other fields of the document and of the model)
    "gpt2": (byte_level(), [added("<|endoftext|>", True, normalized=True)], {"old": True}),
    "gpt2_split": (sequence(split(GPT2), byte_level(False)), [END], {}),
    "roberta": (byte_level(), [added("<s>", True), added("<mask>", True, lstrip=True)],
                {"old": True}),
    "prefix_space": (byte_level(prefix=True), [END], {}),
    "prefix_whole": (byte_level(False, prefix=True), [END], {}),
    "prefix_split": (sequence(split(CL100K), byte_level(False, prefix=True)), [END], {}),
    "prefix_digits": (sequence({"type": "Digits", "individual_digits": True},
                               byte_level(True, prefix=True)), [END], {}),
    "prefix_then_digits": (sequence(byte_level(True, prefix=True),
                                    {"type": "Digits", "individual_digits": False}), [END], {}),
    "gpt_neox": (byte_level(), [END, *BLANK_RUNS], {"normalizer": NFC, "old": True}),
    "phi2": (byte_level(True), [END, *BLANK_RUNS], {"old": True}),
    "olmo2": (splits_then_bytes(CL100K, behavior="Removed", invert=True), [END], {}),
    "phi4": (splits_then_bytes(CL100K), [END, *CHAT[:2]], {}),
    "llama3": (splits_then_bytes(CL100K), [added("<|begin_of_text|>", True)],
               {"ignore_merges": True}),
    "llama4": (splits_then_bytes(O200K), [added("<|eot|>", True)], {"ignore_merges": True}),
    "gpt_oss": (splits_then_bytes(O200K), [END, added("<|channel|>", True)], {}),
    "gpt_4o": (splits_then_bytes(O200K, behavior="Removed", invert=True), [END], {}),
    "qwen2": (sequence(split(QWEN2), byte_level(False, trim=False)), [END, *CHAT],
              {"normalizer": NFC, "continuing_subword_prefix": "", "end_of_word_suffix": ""}),
    "qwen35": (splits_then_bytes(QWEN35), [END, *CHAT], {"normalizer": NFC}),
    "deepseek3": (splits_then_bytes(*DEEPSEEK3), [added("<\uff5cUser\uff5c>"), *CHAT[2:]],
                  {"normalizer": normalizers()}),
    "deepseek3_escaped": (splits_then_bytes(*DEEPSEEK3_ESCAPED), [END], {}),
    "mistral_nemo": (splits_then_bytes(TEKKEN), [added("[INST]", True)], {"ignore_merges": True}),
    "starcoder": (STARCODER, [END, added("<fim_prefix>", True)], {}),
    "smollm": (STARCODER, [END, *CHAT[:2]], {"old": True}),
    "falcon": (FALCON, [END, added(">>TITLE<<", True)], {"old": True}),
    "missing_bytes": (FALCON, [END], {}),  # Falcon again, which has no tokens for some bytes
    "unknown_bytes": (byte_level(), [added("<unk>", True), END], {"unk_token": "<unk>"}),
    "byte_suffix": (byte_level(), [END], {"end_of_word_suffix": "</w>"}),
    "unknown_bytes_fused": (splits_then_bytes(CL100K), [END],
                            {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}),
}
CHARACTER_FAMILIES = {
    # name: (normalizer, pre-tokenizer, added tokens, decoder)
    "llama2_legacy": (LLAMA2_NORMALIZER, None, LLAMA2_ADDED, LLAMA_DECODER),
    "phi3": (LLAMA2_NORMALIZER, None, PHI3_ADDED, LLAMA_DECODER),
    "llama2_new": (None, metaspace(prepend_scheme="first", split=False), LLAMA2_ADDED,
                   LLAMA_DECODER),
    "mistral_v3": (None, metaspace(prepend_scheme="first", split=False),
                   [added(t, True) for t in ("<unk>", "<s>", "</s>", "[INST]", "[/INST]")],
                   LLAMA_DECODER),
    "metaspace_always": (None, metaspace(prepend_scheme="always", split=False), LLAMA2_ADDED,
                         LLAMA_DECODER),
    "gemma": (replace(" ", SPACE), GEMMA_SPLIT, GEMMA_ADDED, GEMMA_DECODER),
    "sarvam": (replace(" ", SPACE), split(" ", "MergedWithPrevious"), LLAMA2_ADDED[1:2],
               GEMMA_DECODER),
    "chatglm": (normalizers(replace("<!dummy-prefix!>", SPACE), replace(" ", SPACE)),
                split("<!dummy-prefix!>", "MergedWithNext", kind="String"),
                [added(t, True) for t in ("<unk>", "<s>", "</s>", "[gMASK]", "<!sop!>")],
                decoders({"type": "ByteFallback"}, metaspace(prepend_scheme="always"))),
}
WORDPIECE = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 12, "vocab": {"[UNK]": 0}}
WORDLEVEL = {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0}}
WORD_DECODER = {"type": "WordPiece", "prefix": "##", "cleanup": True}
WORD_FAMILIES = {
    # name: (model, pre-tokenizer, decoder)
    "wordpiece": (WORDPIECE, "BertPreTokenizer", WORD_DECODER),
    "wordpiece_whitespace": (WORDPIECE, "Whitespace", {**WORD_DECODER, "cleanup": False}),
    "wordlevel": (WORDLEVEL, "WhitespaceSplit", None),
    "bpe_whitespace": ({"unk_token": "[UNK]"}, "Whitespace", None),
    "bpe_suffix": ({"unk_token": "[UNK]", "end_of_word_suffix": "</w>"}, "BertPreTokenizer",
                   {"type": "BPEDecoder", "suffix": "</w>"}),
}
UNIGRAM_WITH_BYTES = ("unigram_bytes", "sarashina")
# Refused by name or exact: both are right, since no family that must work has them.
MAY_BE_REFUSED = {"gpt2_split", "prefix_space", "metaspace_always", "unigram_plain",
                  "xlm_roberta_new"}


def make_byte_family(name, texts, rng, kind):
    """kind: "trained", "wild" or "zoo" (trained, with all sorts of added tokens)."""
    pre_tokenizer, tokens, fields = BYTE_FAMILIES[name]
    fields = dict(fields)
    old = fields.pop("old", False)
    family = {"pre_tokenizer": pre_tokenizer, "decoder": byte_level(True, prefix=True),
              "post_processor": byte_level(True), "normalizer": fields.pop("normalizer", None)}
    vocab, merges = wild_bytes(rng) if kind == "wild" else train_bytes(family, texts, rng)
    if name == "missing_bytes" or name.startswith("unknown_bytes"):
        vocab, merges = without_some_bytes(vocab, merges, rng)
    if name.startswith("unknown_bytes"):
        vocab["<unk>"] = len(vocab)
    if fields.get("end_of_word_suffix"):
        vocab, merges = with_suffix(vocab, merges, fields["end_of_word_suffix"], rng)
    if name == "roberta":
        ids = list(vocab.values())
        rng.shuffle(ids)
        vocab = dict(zip(vocab, ids))
    if fields.get("ignore_merges"):  # tokens that merges do not make
        for word in ("hello", "\u0120world", "\u010a\u010a", "123", "the'", "\u0120\u0120\u0120x"):
            vocab.setdefault(word, len(vocab))
    model = bpe_model(vocab, merges, **fields)
    if old and rng.random() < 0.8:  # a pair is "a b", and what came later is missing
        model["merges"] = [" ".join(pair) for pair in merges]
        for field in ("type", "ignore_merges", "byte_fallback"):
            del model[field]
    return document(family, model, some_added(rng) if kind == "zoo" else tokens)


def make_character_family(name, texts, rng, kind):
    normalizer, pre_tokenizer, tokens, decoder = CHARACTER_FAMILIES[name]
    vocab, merges = wild_characters(rng) if kind == "wild" else train_characters(texts, rng)
    family = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}
    model = bpe_model(vocab, merges, **LLAMA_MODEL)
    if kind == "zoo":
        tokens = [added(t, True) for t in ("<unk>", "<s>", "</s>")]
        tokens += [t for t in some_added(rng) if t["content"] != "<s>"]
    return document(family, model, tokens)


def make_word_family(name, texts, rng):
    """Trained, with pieces of the rare characters left out of the vocabulary."""
    model, pre_tokenizer, decoder = WORD_FAMILIES[name]
    options = {"vocab_size": rng.choice((300, 1500)), "show_progress": False,
               "special_tokens": ["[UNK]", "[CLS]", "[SEP]"]}
    if "type" not in model:
        model = bpe_model({"[UNK]": 0}, [], **model)
        trainer = tokenizers.trainers.BpeTrainer(end_of_word_suffix=model["end_of_word_suffix"] or "",
                                      limit_alphabet=rng.choice((60, 300)), **options)
    elif model["type"] == "WordPiece":
        trainer = tokenizers.trainers.WordPieceTrainer(limit_alphabet=rng.choice((60, 300)), **options)
    else:
        trainer = tokenizers.trainers.WordLevelTrainer(**options)
    family = {"pre_tokenizer": {"type": pre_tokenizer}, "decoder": decoder}
    blank = json.dumps(document(family, model, []))
    tokenizer = tokenizers.Tokenizer.from_str(blank)
    tokenizer.train_from_iterator(short_pieces(texts, rng, 60000), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return document(family, model, [added("[CLS]", True), added("[SEP]", True)])


def precompiled_step(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


def make_unigram_family(name, texts, rng, charsmap):
    pieces = wild_unigram(rng) if rng.random() < 0.4 else train_unigram(texts, rng)
    precompiled = precompiled_step(charsmap)
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    always = metaspace(prepend_scheme="always", split=True)
    shapes = {
        "t5": (precompiled, WHITESPACE_METASPACE),
        "t5_new": (normalizers(precompiled, strip, replace(" {2,}", SPACE, "Regex")), always),
        "xlm_roberta": (precompiled, WHITESPACE_METASPACE),
        "xlm_roberta_new": (normalizers(precompiled, replace(" {2,}", " ", "Regex")), always),
        "unigram_plain": (None, always),
        "unigram_bytes": (replace(" ", SPACE), None),
        "sarashina": (None, metaspace(prepend_scheme="never", split=False)),
    }
    normalizer, pre_tokenizer = shapes[name]
    family = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": always}
    if name not in UNIGRAM_WITH_BYTES:
        return document(family, unigram_model(pieces, rng), T5_ADDED)
    model = unigram_model(pieces + [["<0x%02X>" % b, 0.0] for b in range(256)], rng)
    return document({**family, "decoder": LLAMA_DECODER}, {**model, "byte_fallback": True}, T5_ADDED)


def with_duplicate_merges(texts, rng):
    tokenizer = make_byte_family("phi4", texts, rng, "trained")
    merges = tokenizer["model"]["merges"]
    for _ in range(20):
        merges.insert(rng.randrange(len(merges)), rng.choice(merges))
    return tokenizer


# A pipeline each of those that look at classes of characters.
SWEPT = ["gpt2", "gpt_neox", "phi4", "gpt_oss", "qwen2", "qwen35", "deepseek3", "mistral_nemo",
         "starcoder", "falcon", "t5"]


def make_for_sweep(name, charsmap, codes):
    """A vocabulary that gives every other boundary between words other ids: all pairs of bytes, in no
    order; for T5 all characters."""
    rng = random.Random(name)
    if name == "t5":
        pieces = [[SPACE, -2.0]]
        pieces += [[chr(c), -rng.random() * 9 - 1] for c in codes if c and chr(c) != SPACE]
        family = {"normalizer": precompiled_step(charsmap), "pre_tokenizer": WHITESPACE_METASPACE}
        return document(family, unigram_model(pieces, rng), T5_ADDED)
    pre_tokenizer, tokens, fields = BYTE_FAMILIES[name]
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [[a, b] for a in letters for b in letters]
    rng.shuffle(merges)
    vocab = {token: i for i, token in enumerate(letters + ["".join(pair) for pair in merges])}
    family = {"pre_tokenizer": pre_tokenizer, "normalizer": fields.get("normalizer")}
    return document(family, bpe_model(vocab, merges), tokens)


def names():
    """(name, must work) of everything that make() knows."""
    listed = []
    for name in [*BYTE_FAMILIES, *CHARACTER_FAMILIES]:
        listed += [(name, name not in MAY_BE_REFUSED), (name + "_wild", name not in MAY_BE_REFUSED),
                   (name + "_zoo", False)]
    listed += [(name, name not in MAY_BE_REFUSED)
               for name in ("t5", "t5_new", "xlm_roberta", "xlm_roberta_new", "unigram_plain",
                            *UNIGRAM_WITH_BYTES)]
    listed += [(name, True) for name in WORD_FAMILIES]
    return listed + [("duplicate_merges", False)]


def make(name, seed, texts, charsmap):
    """The tokenizer.json as a dict, or None: what it is made of is not there."""
    rng = random.Random("%s %s" % (name, seed))
    base, _, kind = name.rpartition("_")
    if kind not in ("wild", "zoo"):
        base, kind = name, "trained"
    if base in BYTE_FAMILIES:
        return make_byte_family(base, texts, rng, kind)
    if base in CHARACTER_FAMILIES:
        return make_character_family(base, texts, rng, kind)
    if name in WORD_FAMILIES:
        return make_word_family(name, texts, rng)
    if name == "duplicate_merges":
        return with_duplicate_merges(texts, rng)
    return None if charsmap is None else make_unigram_family(name, texts, rng, charsmap)

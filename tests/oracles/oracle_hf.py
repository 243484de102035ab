# SPDX-License-Identifier: Apache-2.0
"""What tokenizers in HuggingFace's tokenizer.json are made of: parts of pipelines, added tokens, small vocabularies that
are trained here, and vocabularies that nobody would train, where the order of merges and of ids means nothing.

What trains a vocabulary needs the Python package `tokenizers`.
"""

import base64
import json
import unicodedata

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


def precompiled_step(charsmap):
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


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


def train_words(family, model, texts, rng):
    """WordPiece, WordLevel, or BPE if the model has no type; with pieces of the rare characters left out."""
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
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(document(family, model, [])))
    tokenizer.train_from_iterator(short_pieces(texts, rng, 60000), trainer)
    return json.loads(tokenizer.to_str())["model"]


# ---- Vocabularies in which every other boundary between words gives other ids ----


def swept_codes():
    """Unassigned planes are all alike; what Unicode will assign next is among these."""
    planes = (*range(0x32400), *range(0xE0000, 0xE0200), *range(0x10FF00, 0x110000))
    return [c for c in planes if not 0xD800 <= c < 0xE000]


def pairs_of_bytes(rng):
    """All of them, in no order."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [[a, b] for a in letters for b in letters]
    rng.shuffle(merges)
    return {token: i for i, token in enumerate(letters + ["".join(pair) for pair in merges])}, merges


def all_pieces(rng):
    """For WordPiece: all characters, at the beginning of a word and in it."""
    pieces = [prefix + chr(c) for prefix in ("", "##") for c in swept_codes()]
    rng.shuffle(pieces)
    return {piece: i for i, piece in enumerate(["[UNK]", "[CLS]", "[SEP]", *pieces])}


def all_characters(rng):
    """For Unigram, with scores."""
    return [[SPACE, -2.0]] + [[chr(c), -rng.random() * 9 - 1] for c in swept_codes() if c and chr(c) != SPACE]

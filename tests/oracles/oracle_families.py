# SPDX-License-Identifier: Apache-2.0
"""The published pipelines of families of tokenizers, field by field as their files have them, around small
vocabularies that are made on the spot (oracle_hf)."""

import random

from oracle_hf import (BLANK_RUNS, CHAT, END, FALCON, GEMMA_ADDED, GEMMA_DECODER, GEMMA_SPLIT, LLAMA2_ADDED,
                       LLAMA2_NORMALIZER, LLAMA_DECODER, NFC, PHI3_ADDED, SPACE, STARCODER, T5_ADDED, WHITESPACE_METASPACE,
                       added, all_characters, all_pieces, bpe_model, byte_level, decoders, document, metaspace, normalizers,
                       pairs_of_bytes, precompiled_step, replace, sequence, some_added, split, splits_then_bytes,
                       train_bytes, train_characters, train_unigram, train_words, unigram_model, wild_bytes,
                       wild_characters, wild_unigram, with_suffix, without_some_bytes)
from oracle_patterns import (BLOOM, CL100K, CL100K_08, CLIP, CLIP_OLD, DEEPSEEK3, DEEPSEEK3_ESCAPED, EXAONE_MOE, GPT2,
                             GPT2_08, INDIC, JAIS2, KIMI, LINES, LING, LISTS, NANOCHAT, NOUGAT, O200K, QWEN2, QWEN35,
                             SEED, TEKKEN, YOUTU)


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def bare(kind):
    return {"type": kind}


def strip(left, right):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def stages(name):
    """A list of oracle_patterns, and then bytes."""
    return sequence(*(digits(part) if isinstance(part, bool) else split(part) for part in LISTS[name]), byte_level(False))


def bert_normalizer(**flags):
    return {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
            "lowercase": True, **flags}


NFD, NFKC, NFKD, LOWER, STRIP_ACCENTS = map(bare, ("NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"))
ISOLATED = {"type": "Punctuation", "behavior": "Isolated"}
NOUGAT_WORD = split("SPL1T-TH1S-Pl3A5E", "Removed", kind="String")
UNK = added("<unk>", True)
SINGLE = [END, added("word", single_word=True), added("wor", single_word=True, normalized=False),
          added("12", single_word=True), added("é", single_word=True), added("<s>", True, single_word=True),
          added(" x", single_word=True), added("foo", single_word=True, lstrip=True, rstrip=True),
          added("fo", normalized=False)]


def clip(pattern):
    return (sequence(split(pattern, "Removed", True), byte_level(True)),
            [added(t, True, normalized=True) for t in ("<|startoftext|>", "<|endoftext|>")],
            {"normalizer": normalizers(NFC, replace(r"\s+", " ", "Regex"), LOWER), "unk_token": "<|endoftext|>",
             "continuing_subword_prefix": "", "end_of_word_suffix": "</w>"})


# The families of each table with MORE in its name are compared by make test-tokenizers only.
BYTE_FAMILIES = {
    # name: (pre-tokenizer, added tokens, other fields of the document and of the model); lose: it has no tokens for
    # some bytes
    "gpt2": (byte_level(), [added("<|endoftext|>", True, normalized=True)], {"old": True}),
    "gpt2_split": (sequence(split(GPT2), byte_level(False)), [END], {}),
    "roberta": (byte_level(), [added("<s>", True), added("<mask>", True, lstrip=True)],
                {"old": True, "shuffled": True}),
    "prefix_space": (byte_level(prefix=True), [END], {}),
    "prefix_whole": (byte_level(False, prefix=True), [END], {}),
    "prefix_split": (sequence(split(CL100K), byte_level(False, prefix=True)), [END], {}),
    "prefix_digits": (sequence(digits(True), byte_level(True, prefix=True)), [END], {}),
    "prefix_then_digits": (sequence(byte_level(True, prefix=True), digits(False)), [END], {}),
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
    "missing_bytes": (FALCON, [END], {"lose": True}),
    "unknown_bytes": (byte_level(), [UNK, END], {"unk_token": "<unk>", "lose": True}),
    "byte_suffix": (byte_level(), [END], {"end_of_word_suffix": "</w>"}),
    "unknown_bytes_fused": (splits_then_bytes(CL100K), [END],
                            {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True, "lose": True}),
}
MORE_BYTE_FAMILIES = {
    "nanochat": (splits_then_bytes(NANOCHAT), [added("<|bos|>", True)], {"byte_fallback": True}),
    "cl100k_08": (splits_then_bytes(CL100K_08), [END], {}),
    "gpt2_08": (splits_then_bytes(GPT2_08), [END], {}),
    "deepseek_llm": (stages("deepseek_llm"), [END], {"normalizer": normalizers()}),
    "deepseek_coder": (stages("deepseek_coder"), [added("<|EOT|>", True)], {"normalizer": normalizers()}),
    "kimi_k2": (splits_then_bytes(KIMI), [added("[BOS]", True), added("[EOS]", True)], {"ignore_merges": True}),
    "bloom": (splits_then_bytes(BLOOM), [added("</s>", True)], {}),
    "viking": (stages("viking"), [added("</s>", True)], {}),
    "tiny_aya": (splits_then_bytes(*LISTS["tiny_aya"]), [added("<EOS_TOKEN>", True)], {}),
    "superbpe_1": (stages("superbpe_1"), [END], {}),
    "superbpe_2": (stages("superbpe_2"), [END], {}),
    "minicpm5": (splits_then_bytes(*LISTS["minicpm5"]), [END, *CHAT], {}),
    "laguna": (sequence(split(LINES, "MergedWithNext"), split(QWEN2), byte_level(False)), [END], {}),
    "ling": (splits_then_bytes(LING), [END], {}),
    "spark": (stages("spark_x2"), [END], {}),
    "seed_coder": (splits_then_bytes(SEED), [END], {}),
    "ax_k2": (splits_then_bytes(*LISTS["ax_k2"]), [END], {}),
    "jais2": (splits_then_bytes(JAIS2), [END], {}),
    "youtu": (splits_then_bytes(*YOUTU), [END], {}),
    "exaone_moe": (splits_then_bytes(EXAONE_MOE), [END], {"normalizer": NFC}),
    "indic_joiners": (splits_then_bytes(INDIC), [END], {}),
    "command_r": (STARCODER, [added("<|END_OF_TURN_TOKEN|>", True)], {"normalizer": NFC}),
    "claude_nfkc": (byte_level(True), [END, added("<EOT>", True)], {"normalizer": NFKC}),
    "nfd_digits": (sequence(digits(True), ISOLATED, byte_level(True)), [END], {"normalizer": NFD}),
    "lowercase_bytes": (byte_level(True), [END], {"normalizer": normalizers(NFD, LOWER, STRIP_ACCENTS)}),
    "nougat": (sequence(NOUGAT_WORD, digits(True), split(NOUGAT, kind="String"), split("\n", kind="String"), byte_level(True)),
               [added("</s>", True)], {"normalizer": NFKC}),
    "nougat_regex": (sequence(NOUGAT_WORD, digits(True), split(NOUGAT), split("\n", kind="String"), byte_level(True)),
                     [added("</s>", True)], {"normalizer": NFKC}),
    "unknown_bytes_fuse_only": (byte_level(True), [END, UNK], {"unk_token": "<unk>", "fuse_unk": True, "lose": True}),
    "unknown_bytes_fallback": (byte_level(True), [END, UNK], {"unk_token": "<unk>", "byte_fallback": True, "lose": True}),
    "single_word": (byte_level(True), SINGLE, {}),
    "single_word_nfc": (splits_then_bytes(CL100K), SINGLE, {"normalizer": NFC}),
    "whitespace_bytes": (sequence(bare("Whitespace"), byte_level(False)), [END], {}),
    "chameleon": (sequence(split("<sentinel:[0-9]+>"), split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
                           split("([\\t\\n]|    |  )"), digits(True), ISOLATED, byte_level(True)), [added("</s>", True)], {}),
    "clip": clip(CLIP),
    "clip_old": clip(CLIP_OLD),
}
RUNS = replace(" {2,}", " ", "Regex")
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
SEAMLESS = normalizers(replace(r"[\n\r\t]", " ", "Regex"), NFKC, strip(False, True), replace(" +" + SPACE, SPACE, "Regex"),
                       replace("^" + SPACE + "+$", "", "Regex"), replace(" {2,}", SPACE, "Regex"))


def more_character_families(precompiled):
    always = metaspace(prepend_scheme="always", split=True)
    return {
        "bpe_no_decoder": (None, always, LLAMA2_ADDED, None),
        # A Split at a blank that does cut: nothing replaces the blanks before it.
        "gemma_cuts": (None, GEMMA_SPLIT, LLAMA2_ADDED, GEMMA_DECODER),
        "nllb": (normalizers(precompiled, RUNS), always, LLAMA2_ADDED, always),
        "seamless": (SEAMLESS, metaspace(prepend_scheme="first", split=True), LLAMA2_ADDED, always),
    }


WORDPIECE = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 12, "vocab": {"[UNK]": 0}}
WORDLEVEL = {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0}}
WORD_DECODER = {"type": "WordPiece", "prefix": "##", "cleanup": True}
SUFFIX_DECODER = {"type": "BPEDecoder", "suffix": "</w>"}
BERT_WORDS, WHITESPACE = bare("BertPreTokenizer"), bare("Whitespace")
WORD_FAMILIES = {
    # name: (model, normalizer, pre-tokenizer, decoder)
    "wordpiece": (WORDPIECE, None, BERT_WORDS, WORD_DECODER),
    "wordpiece_whitespace": (WORDPIECE, None, WHITESPACE, {**WORD_DECODER, "cleanup": False}),
    "wordlevel": (WORDLEVEL, None, bare("WhitespaceSplit"), None),
    "bpe_whitespace": ({"unk_token": "[UNK]"}, None, WHITESPACE, None),
    "bpe_suffix": ({"unk_token": "[UNK]", "end_of_word_suffix": "</w>"}, None, BERT_WORDS, SUFFIX_DECODER),
}
MORE_WORD_FAMILIES = {
    "bert_uncased": (WORDPIECE, bert_normalizer(), BERT_WORDS, WORD_DECODER),
    "bert_cased": (WORDPIECE, bert_normalizer(lowercase=False), BERT_WORDS, WORD_DECODER),
    "bert_cased_accents": (WORDPIECE, bert_normalizer(lowercase=False, strip_accents=False), BERT_WORDS, WORD_DECODER),
    "bert_lower_accents": (WORDPIECE, bert_normalizer(strip_accents=False), BERT_WORDS, WORD_DECODER),
    "bert_no_chinese": (WORDPIECE, bert_normalizer(handle_chinese_chars=False, clean_text=False), BERT_WORDS, WORD_DECODER),
    "wordpiece_split": (WORDPIECE, normalizers(NFD, LOWER, STRIP_ACCENTS), bare("WhitespaceSplit"), WORD_DECODER),
    "wordpiece_punct": (WORDPIECE, normalizers(NFKC, LOWER), sequence(WHITESPACE, ISOLATED, digits(True)), WORD_DECODER),
    "wordpiece_split_punct": (WORDPIECE, None, sequence(bare("WhitespaceSplit"), ISOLATED), WORD_DECODER),
    "wordlevel_whitespace": (WORDLEVEL, None, WHITESPACE, None),
    "openai_gpt": ({"unk_token": "[UNK]", "end_of_word_suffix": "</w>"}, bert_normalizer(), BERT_WORDS, SUFFIX_DECODER),
    "herbert": ({"unk_token": "[UNK]", "end_of_word_suffix": "</w>"}, bert_normalizer(lowercase=False, strip_accents=False),
                BERT_WORDS, SUFFIX_DECODER),
    "bpe_whitespace_fused": ({"unk_token": "[UNK]", "fuse_unk": True}, normalizers(NFD, STRIP_ACCENTS, LOWER),
                             sequence(WHITESPACE, digits(True)), None),
    "bpe_plain": ({"unk_token": "[UNK]"}, None, None, None),
}


def unigram_families(precompiled):
    """name: (normalizer, pre-tokenizer, decoder)"""
    always = metaspace(prepend_scheme="always", split=True)
    return {
        "t5": (precompiled, WHITESPACE_METASPACE, always),
        "t5_new": (normalizers(precompiled, strip(False, True), replace(" {2,}", SPACE, "Regex")), always, always),
        "xlm_roberta": (precompiled, WHITESPACE_METASPACE, always),
        "xlm_roberta_new": (normalizers(precompiled, RUNS), always, always),
        "unigram_plain": (None, always, always),
        "unigram_bytes": (replace(" ", SPACE), None, LLAMA_DECODER),
        "sarashina": (None, metaspace(prepend_scheme="never", split=False), LLAMA_DECODER),
    }


def more_unigram_families(precompiled):
    always, words = metaspace(prepend_scheme="always", split=True), WHITESPACE_METASPACE
    quotes = [replace("``", '"'), replace("''", '"')]
    albert = [*quotes, NFKD, STRIP_ACCENTS, LOWER, precompiled]
    xlnet = [*quotes, NFKD, STRIP_ACCENTS, precompiled]
    return {
        "albert": (normalizers(*albert, RUNS), words, always),
        "albert_v4": (normalizers(*albert, RUNS), always, always),
        "albert_v5": (normalizers(*albert), words, always),
        "xlnet": (normalizers(*xlnet, RUNS), words, always),
        "xlnet_v5": (normalizers(*xlnet), words, always),
        "rembert": (normalizers(*quotes, RUNS, NFKD, STRIP_ACCENTS, precompiled), always, always),
        "deberta_v3": (normalizers(strip(True, True), precompiled, RUNS), sequence(always), always),
        "deberta_v2_punct": (normalizers(LOWER, strip(True, True), precompiled, RUNS), sequence(ISOLATED, always), always),
        "deberta_v2_v5": (normalizers(replace(r"\s{2,}|[\n\r\t]", " ", "Regex"), NFC, strip(False, True)), sequence(always), always),
        "bge_m3": (normalizers(precompiled, strip(False, True), replace(" {2,}", SPACE, "Regex")), always, always),
        "bigbird_v5": (normalizers(strip(False, False), replace(" {2,}", SPACE, "Regex")), always, always),
        "lower_t5": (normalizers(LOWER, precompiled), words, always),
        "nmt_nfkc": (normalizers(bare("Nmt"), NFKC, RUNS), always, always),  # SentencePieceUnigramTokenizer of the package
        "helium": (normalizers({"type": "Prepend", "prepend": " "}, replace(" ", SPACE)),
                   sequence(split("\n", "Contiguous", kind="String")), LLAMA_DECODER),
    }


# Refused by name or exact: both are right, since no family that must work has them.
MAY_BE_REFUSED = {"gpt2_split", "prefix_space", "metaspace_always", "unigram_plain",
                  "xlm_roberta_new"}
# What tokmap refuses, and which part of the file its message names.
REFUSED = {
    "nougat_regex": "Split: a back-reference at byte 57 in the regex [\\(\\)\\[",
    "seamless": "Replace: the regex [\\n\\r\\t] is not supported",
}
# Those whose documents have no place to cut, or few.
UNCUT = ("prefix_digits", "prefix_whole", "prefix_space", "prefix_then_digits", "single_word", "single_word_nfc",
         "superbpe_2", "nougat", "chameleon", "gemma_cuts")


def make_byte_family(row, texts, rng, kind):
    """kind: "trained", "wild", "zoo" (trained, with all sorts of added tokens) or "pairs"."""
    pre_tokenizer, tokens, fields = row
    fields = dict(fields)
    old, lose, shuffled = (fields.pop(name, False) for name in ("old", "lose", "shuffled"))
    family = {"pre_tokenizer": pre_tokenizer, "decoder": byte_level(True, prefix=True),
              "post_processor": byte_level(True), "normalizer": fields.pop("normalizer", None)}
    if kind in ("wild", "pairs"):
        vocab, merges = (wild_bytes if kind == "wild" else pairs_of_bytes)(rng)
    else:
        vocab, merges = train_bytes(family, texts, rng)
    if lose:
        vocab, merges = without_some_bytes(vocab, merges, rng)
    if fields.get("end_of_word_suffix"):
        vocab, merges = with_suffix(vocab, merges, fields["end_of_word_suffix"], rng)
    if fields.get("unk_token"):
        vocab[fields["unk_token"]] = len(vocab)
    if shuffled:
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


def has_bytes(decoder):
    return "ByteFallback" in str(decoder)


def make_character_family(row, texts, rng, kind):
    normalizer, pre_tokenizer, tokens, decoder = row
    vocab, merges = wild_characters(rng) if kind == "wild" else train_characters(texts, rng)
    family = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}
    model = bpe_model(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=has_bytes(decoder))
    if kind == "zoo":
        tokens = [added(t, True) for t in ("<unk>", "<s>", "</s>")]
        tokens += [t for t in some_added(rng) if t["content"] != "<s>"]
    return document(family, model, tokens)


def make_word_family(row, texts, rng, kind):
    model, normalizer, pre_tokenizer, decoder = row
    family = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}
    model = {**model, "vocab": all_pieces(rng)} if kind == "pairs" else train_words(family, model, texts, rng)
    return document(family, model, [added("[CLS]", True), added("[SEP]", True)])


def make_unigram_family(row, texts, rng, kind):
    normalizer, pre_tokenizer, decoder = row
    family = {"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}
    if kind == "pairs":
        pieces = all_characters(rng)
    else:
        pieces = wild_unigram(rng) if rng.random() < 0.4 else train_unigram(texts, rng)
    if not has_bytes(decoder):
        return document(family, unigram_model(pieces, rng), T5_ADDED)
    model = unigram_model(pieces + [["<0x%02X>" % b, 0.0] for b in range(256)], rng)
    return document(family, {**model, "byte_fallback": True}, [*T5_ADDED, added("\n", normalized=False)])


def with_duplicate_merges(texts, rng):
    tokenizer = make_byte_family(BYTE_FAMILIES["phi4"], texts, rng, "trained")
    merges = tokenizer["model"]["merges"]
    for _ in range(20):
        merges.insert(rng.randrange(len(merges)), rng.choice(merges))
    return tokenizer


# A pipeline each of those that look at classes of characters.
SWEPT = ["gpt2", "gpt_neox", "phi4", "gpt_oss", "qwen2", "qwen35", "deepseek3", "mistral_nemo",
         "starcoder", "falcon", "t5"]


def tables(more, precompiled=None):
    """[(families, what makes one)]; `more`: all of them."""
    return [({**BYTE_FAMILIES, **(MORE_BYTE_FAMILIES if more else {})}, make_byte_family),
            ({**CHARACTER_FAMILIES, **(more_character_families(precompiled) if more else {})}, make_character_family),
            ({**WORD_FAMILIES, **(MORE_WORD_FAMILIES if more else {})}, make_word_family),
            ({**unigram_families(precompiled), **(more_unigram_families(precompiled) if more else {})}, make_unigram_family)]


def names(more):
    """(name, must work) of everything that make() knows but "pairs"."""
    for families, how in tables(more):
        for name in families:
            must = name not in MAY_BE_REFUSED
            yield name, must
            if how in (make_byte_family, make_character_family) and name not in REFUSED:
                yield from ((name + "_wild", must), (name + "_zoo", False))
    yield "duplicate_merges", False


def swept(more):
    """Families of which make() knows "pairs": a vocabulary that gives every other boundary between words other ids."""
    of_bytes, _, of_words, of_pieces = (families for families, _ in tables(True))
    every = [name for name, row in of_bytes.items() if not row[2].get("end_of_word_suffix")]
    every += [name for name, row in of_words.items() if row[0] is WORDPIECE] + list(of_pieces)
    return [name for name in every if name not in REFUSED] if more else SWEPT


def make(name, seed, texts, charsmap):
    """The tokenizer.json as a dict, or None: what it is made of is not there."""
    rng = random.Random("%s %s" % (name, seed))
    if name == "duplicate_merges":
        return with_duplicate_merges(texts, rng)
    base, _, kind = name.rpartition("_")
    if kind not in ("wild", "zoo", "pairs"):
        base, kind = name, "trained"
    (row, how), = [(families[base], how) for families, how in tables(True, precompiled_step(charsmap or b"")) if base in families]
    if charsmap is None and "Precompiled" in str(row):
        return None
    return how(row, texts, rng, kind)

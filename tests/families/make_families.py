#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes small tokenizers with the published pipelines of families of tokenizers.

usage: make_families.py [NAME...]      (without a name: all that are missing or older than this program)
Writes FAMILIES/NAME/: tokenizer.json (or x.tiktoken / x.model), tokenizer_config.json,
generation_config.json where the family has them, and family.json: how to run it and what to expect.
NAME has a small trained vocabulary. NAME.pairs is the same pipeline with a vocabulary in which every
wrong word boundary changes the ids: all pairs of bytes, or all characters, in random order.
Environment: FAMILIES, the folder to write to; TOKMAP_SHARED, the folder with text and vocab to train on.
"""
import os

os.environ.setdefault("RAYON_NUM_THREADS", "1")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import base64
import json
import pathlib
import random
import shutil
import sys
import unicodedata

import oracle_hf
import tokenizers
from oracle_hf import (LLAMA_DECODER, SPACE, added, bpe_model as bpe, byte_level, decoders as dec, normalizers as norm,
                       replace, sequence as pre, split, splits_then_bytes as splits)
from oracle_patterns import (BLOOM, CL100K, CL100K_08, CLIP, CLIP_OLD, DEEPSEEK3, EXAONE_MOE, GPT2_08, INDIC, JAIS2, KIMI,
                             LINES, LING, LISTS, NANOCHAT, O200K, QWEN2, QWEN35, SEED, YOUTU, byte_letters)
from tokenizers import Tokenizer, trainers

SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", pathlib.Path(__file__).parents[3] / "shared"))
FILES = pathlib.Path(os.environ["FAMILIES"])
ALPHABET = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())

# ---- Text to train on ----

CJK = ("的一是不了在人有我他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从")
KANA = "のにはをたがでてとしれさあるいるもすなこよりからまおきくけそちつひふへほみむめやゆらわんアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワンー"
HANGUL = "이다는가을를에의하고도한지로서사아나기자시대리어보라마정인수해일주원부전상장구비"
OTHER = ["สวัสดีครับประเทศไทยภาษา", "नमस्ते दुनिया हिन्दी में क्या है", "مرحبا بالعالم اللغة العربية",
         "שלום עולם עברית", "ಕನ್ನಡ ಭಾಷೆ", "தமிழ் மொழி", "বাংলা ভাষা", "ქართული ენა", "Հայերեն լեզու"]


def plain_texts():
    texts = []
    for path in sorted((SHARED / "text").glob("*.txt")):
        texts.append(path.read_bytes()[:200000].decode("utf-8", "ignore"))
    for line in (SHARED / "text/dclm_sample.jsonl").read_text("utf-8").splitlines():
        texts.append(json.loads(line)["text"])
    import subprocess
    tldr = subprocess.run("zstdcat %s | head -c 400000" % (SHARED / "text/tldr.jsonl.zst"),
                          shell=True, capture_output=True).stdout
    for line in tldr.split(b"\n")[:-1]:
        texts.append(json.loads(line)["text"])
    rng = random.Random("cjk")
    for letters, blank in ((CJK, ""), (KANA, ""), (HANGUL, " ")):
        words = ["".join(rng.choices(letters, k=rng.randint(1, 4))) for _ in range(400)]
        for _ in range(30):
            chosen = [words[min(int(rng.paretovariate(0.6)) - 1, 399)] for _ in range(200)]
            texts.append("".join(w + rng.choice((blank, blank, "，", "。", "、", blank + "2024年", "\n", blank))
                                 for w in chosen))
    for text in OTHER:
        words = text.split()
        texts.append(" ".join(rng.choice(words) for _ in range(600)))
    return texts


PLAIN = plain_texts()


def pieces(name, n_chars):
    rng, out, total = random.Random(name), [], 0
    weights = [min(len(t), 40000) for t in PLAIN]
    while total < n_chars:
        text = rng.choices(PLAIN, weights)[0]
        at = rng.randrange(len(text))
        out.append(text[at: at + rng.choice((60, 300, 1500))])
        total += len(out[-1])
    return out


# ---- Parts of a tokenizer.json ----

def metaspace(scheme="always", split=True):
    return oracle_hf.metaspace(prepend_scheme=scheme, split=split)


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def bare(kind):
    return {"type": kind}


def strip(left, right):
    return {"type": "Strip", "strip_left": left, "strip_right": right}


def stages(parts):
    """A list of oracle_patterns, and then bytes."""
    return pre(*(digits(part) if isinstance(part, bool) else split(part) for part in parts), byte_level(False))


def charsmap():
    document = json.loads((SHARED / "vocab/t5-small.tokenizer.json").read_bytes())
    return {"type": "Precompiled",
            "precompiled_charsmap": document["normalizer"]["precompiled_charsmap"]}


NFC, NFKC, NFKD, NFD = (bare(n) for n in ("NFC", "NFKC", "NFKD", "NFD"))
LOWER, STRIP_ACCENTS = bare("Lowercase"), bare("StripAccents")


def bert_normalizer(**flags):
    return {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
            "strip_accents": None, "lowercase": True, **flags}


def template(before=(), after=()):
    """Names; ids are filled in by document()."""
    return {"before": before, "after": after}


NOUGAT = r"[\(\)\[\]\{\}]|([!\"#\$%\&'\*\+,\-\./:;<=>\?\\\^_`\|\~])\1*"

END = added("<|endoftext|>", True)
CHAT = [added("<|im_start|>", True), added("<|im_end|>", True), added("<think>", normalized=False)]
NANO = [added(t, True) for t in ("<|bos|>", "<|user_start|>", "<|user_end|>", "<|assistant_start|>",
                                 "<|assistant_end|>", "<|python_start|>", "<|python_end|>",
                                 "<|output_start|>", "<|output_end|>")]
DEEPSEEK = [added("<\uff5cbegin\u2581of\u2581sentence\uff5c>", True), added("<\uff5cend\u2581of\u2581sentence\uff5c>", True)]
BERT = [added(t, True) for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")]
SINGLE = [END, added("word", single_word=True), added("wor", single_word=True, normalized=False),
          added("12", single_word=True), added("é", single_word=True), added("<s>", True, single_word=True),
          added(" x", single_word=True), added("foo", single_word=True, lstrip=True, rstrip=True),
          added("fo", normalized=False)]

# name: (normalizer, pre_tokenizer, added tokens, model fields, config)
BYTES = {
    "nanochat": (None, splits(NANOCHAT), NANO, {"byte_fallback": True}, {"eos": None, "bos": "<|bos|>"}),
    "cl100k_08": (None, splits(CL100K_08), [END], {}, {"eos": "<|endoftext|>"}),
    "gpt2_08": (None, splits(GPT2_08), [END], {}, {"eos": "<|endoftext|>"}),
    "deepseek_llm": (norm(), stages(LISTS["deepseek_llm"]), DEEPSEEK, {}, {"eos": DEEPSEEK[1]["content"], "bos": DEEPSEEK[0]["content"]}),
    "deepseek_coder": (norm(), stages(LISTS["deepseek_coder"]), DEEPSEEK + [added("<|EOT|>", True)], {},
                       {"eos": DEEPSEEK[1]["content"], "bos": DEEPSEEK[0]["content"]}),
    "deepseek3": (norm(), splits(*DEEPSEEK3), DEEPSEEK, {}, {"eos": DEEPSEEK[1]["content"], "bos": DEEPSEEK[0]["content"]}),
    "kimi_k2": (None, splits(KIMI), [added("[BOS]", True), added("[EOS]", True), added("<|im_end|>", True)],
                {"ignore_merges": True}, {"eos": "[EOS]", "bos": "[BOS]"}),
    "bloom": (None, splits(BLOOM), [added(t, True) for t in ("<unk>", "<s>", "</s>", "<pad>")], {},
              {"eos": "</s>", "bos": "<s>"}),
    "viking": (None, stages(LISTS["viking"]), [added("</s>", True)], {}, {"eos": "</s>"}),
    "qwen35": (NFC, splits(QWEN35), [END, *CHAT], {}, {"eos": "<|im_end|>", "generation": ["<|im_end|>", "<|endoftext|>"]}),  # two ends: --eod auto must ask
    "tiny_aya": (None, splits(*LISTS["tiny_aya"]), [added("<BOS_TOKEN>", True), added("<EOS_TOKEN>", True)], {},
                 {"eos": "<EOS_TOKEN>", "bos": "<BOS_TOKEN>"}),
    "superbpe_1": (None, stages(LISTS["superbpe_1"]), [END], {}, {"eos": "<|endoftext|>"}),
    "superbpe_2": (None, stages(LISTS["superbpe_2"]), [END], {}, {"eos": "<|endoftext|>"}),
    "minicpm5": (None, splits(*LISTS["minicpm5"]), [END, *CHAT], {}, {"eos": "<|im_end|>"}),
    "laguna": (None, pre(split(LINES, "MergedWithNext"), split(QWEN2), byte_level(False)), [END], {}, {"eos": "<|endoftext|>"}),
    "ling": (None, splits(LING), [END], {}, {"eos": "<|endoftext|>"}),
    "spark": (None, stages(LISTS["spark_x2"]), [END], {}, {"eos": "<|endoftext|>"}),
    "seed_coder": (None, splits(SEED), [END], {}, {"eos": "<|endoftext|>"}),
    "ax_k2": (None, splits(*LISTS["ax_k2"]), [END], {}, {"eos": "<|endoftext|>"}),
    "jais2": (None, splits(JAIS2), [END], {}, {"eos": "<|endoftext|>"}),
    "youtu": (None, splits(*YOUTU), [END], {}, {"eos": "<|endoftext|>"}),
    "exaone_moe": (NFC, splits(EXAONE_MOE), [END], {}, {"eos": "<|endoftext|>"}),
    "indic_joiners": (None, splits(INDIC), [END], {}, {"eos": "<|endoftext|>"}),
    "command_r": (NFC, pre(digits(True), byte_level(True)), [added("<BOS_TOKEN>", True), added("<|END_OF_TURN_TOKEN|>", True)],
                  {}, {"eos": "<|END_OF_TURN_TOKEN|>", "bos": "<BOS_TOKEN>"}),
    "o200k": (None, splits(O200K), [END], {"ignore_merges": True}, {"eos": "<|endoftext|>"}),
    "claude_nfkc": (NFKC, byte_level(True), [END, added("<EOT>", True)], {}, {"eos": "<EOT>"}),
    "nfd_digits": (NFD, pre(digits(True), {"type": "Punctuation", "behavior": "Isolated"}, byte_level(True)), [END], {}, {"eos": "<|endoftext|>"}),
    "lowercase_bytes": (norm(NFD, LOWER, STRIP_ACCENTS), byte_level(True), [END], {}, {"eos": "<|endoftext|>"}),
    "nougat": (NFKC, pre(split("SPL1T-TH1S-Pl3A5E", "Removed", kind="String"), digits(True),
                         split(NOUGAT, kind="String"), split("\n", kind="String"), byte_level(True)),
               [added("</s>", True)], {}, {"eos": "</s>"}),
    "nougat_regex": (NFKC, pre(split("SPL1T-TH1S-Pl3A5E", "Removed", kind="String"), digits(True),
                               split(NOUGAT), split("\n", kind="String"), byte_level(True)), [added("</s>", True)], {}, {"eos": "</s>"}),
    "prefix_split": (None, pre(split(CL100K), byte_level(False, prefix=True)), [END], {}, {"eos": "<|endoftext|>"}),
    "prefix_digits": (None, pre(digits(True), byte_level(True, prefix=True)), [END], {}, {"eos": "<|endoftext|>"}),
    "prefix_whole": (None, byte_level(False, prefix=True), [END], {}, {"eos": "<|endoftext|>"}),
    "byte_unk": (None, byte_level(True), [END, added("<unk>", True)], {"unk_token": "<unk>", "lose": True}, {"eos": "<|endoftext|>"}),
    "byte_unk_fused": (None, byte_level(True), [END, added("<unk>", True)],
                       {"unk_token": "<unk>", "fuse_unk": True, "lose": True}, {"eos": "<|endoftext|>"}),
    "byte_unk_fallback": (None, byte_level(True), [END, added("<unk>", True)],
                          {"unk_token": "<unk>", "byte_fallback": True, "lose": True}, {"eos": "<|endoftext|>"}),
    "single_word": (None, byte_level(True), SINGLE, {}, {"eos": "<|endoftext|>"}),
    "single_word_nfc": (NFC, splits(CL100K), SINGLE, {}, {"eos": "<|endoftext|>"}),
    "whitespace_bytes": (None, pre(bare("Whitespace"), byte_level(False)), [END], {}, {"eos": "<|endoftext|>"}),
    "chameleon": (None, pre(split("<sentinel:[0-9]+>"), split("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
                            split("([\\t\\n]|    |  )"), digits(True), {"type": "Punctuation", "behavior": "Isolated"},
                            byte_level(True)), [added("</s>", True)], {}, {"eos": "</s>"}),
}


def document(normalizer, pre_tokenizer, tokens, model, decoder=None, post=None):
    made = oracle_hf.document({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder}, model, tokens)
    if post:
        ids = {row["content"]: row["id"] for row in made["added_tokens"]}

        def piece(name):
            return {"SpecialToken": {"id": name, "type_id": 0}}
        names = [*post["before"], *post["after"]]
        single = [*map(piece, post["before"]), {"Sequence": {"id": "A", "type_id": 0}}, *map(piece, post["after"])]
        made["post_processor"] = {
            "type": "TemplateProcessing", "single": single, "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {n: {"id": n, "ids": [ids[n]], "tokens": [n]} for n in names}}
    return made


def train(name, normalizer, pre_tokenizer, model, trainer, n_chars=900000):
    """Once: the trainers' hash tables have random seeds, and ties come out in another order each time.
    What was trained is kept in trained/, so that the same files are made again from it."""
    kept = FILES / "trained" / (name + ".json")
    if kept.exists():
        return json.loads(kept.read_text("utf-8"))
    t = Tokenizer.from_str(oracle_hf.blank_document({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer}, model))
    t.train_from_iterator(pieces(name, n_chars), trainer)
    trained = json.loads(t.to_str())["model"]
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(trained, ensure_ascii=False), "utf-8")
    return trained


def write(name, doc, config=None, **family):
    folder = FILES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = config or {}
    known = {}
    if isinstance(doc, dict):
        Tokenizer.from_str(json.dumps(doc))  # the reference takes it
        (folder / "tokenizer.json").write_text(json.dumps(doc, ensure_ascii=False), "utf-8")
        family.setdefault("file", "tokenizer.json")
        known = {row["content"]: row["id"] for row in doc["added_tokens"]}
    else:
        (folder / family["file"]).write_bytes(doc)
    expected = {"eod": None if config.get("generation") else known.get(config.get("eos")), "bos": known.get(config.get("bos"))}
    stated = {"tokenizer_class": "PreTrainedTokenizerFast"}
    for role in ("eos", "bos", "unk", "pad", "cls", "sep", "mask"):
        if role in config:
            stated[role + "_token"] = config[role]
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(stated, indent=1))
    if config.get("generation"):
        (folder / "generation_config.json").write_text(json.dumps(
            {"eos_token_id": [known[t] for t in config["generation"]]}))
    (folder / "family.json").write_text(json.dumps({"expected": expected, **family}, indent=1))
    print("made", name, flush=True)


def without_bytes(vocab, merges):
    """Common ones and rare ones."""
    gone = set("\u0120zQ7\u010a\u00e9\u00c3\u0101\u00f0")
    merges = [m for m in merges if not gone & set("".join(m))]
    tokens = [t for t in sorted(vocab, key=vocab.get) if not gone & set(t)]
    return {t: i for i, t in enumerate(tokens)}, merges


def make_bytes(name, want):
    normalizer, pre_tokenizer, tokens, fields, config = BYTES[name]
    fields = dict(fields)
    lose = fields.pop("lose", False)

    def finish(suffix, vocab, merges):
        if lose:
            vocab, merges = without_bytes(vocab, merges)
        if fields.get("unk_token"):
            vocab = {**vocab, fields["unk_token"]: max(vocab.values()) + 1}
        doc = document(normalizer, pre_tokenizer, tokens, bpe(vocab, merges, **fields),
                       byte_level(True, prefix=True), None)
        write(name + suffix, doc, config, reference="hf", shape="byte")

    if name in want:
        model = train(name, normalizer, pre_tokenizer, bpe({}, []),
                      trainers.BpeTrainer(vocab_size=5000, show_progress=False, initial_alphabet=ALPHABET))
        vocab, merges = model["vocab"], model["merges"]
        if fields.get("ignore_merges"):
            for word in ("hello", "\u0120world", "\u010a\u010a", "123", "\u0120\u0120\u0120x"):
                vocab.setdefault(word, len(vocab))
        finish("", vocab, merges)
    if name + ".pairs" in want:
        rng = random.Random("pairs " + name)
        merges = [[a, b] for a in ALPHABET for b in ALPHABET]
        rng.shuffle(merges)
        vocab = {t: i for i, t in enumerate(ALPHABET + ["".join(m) for m in merges])}
        finish(".pairs", vocab, merges)


# ---- WordPiece, WordLevel, BPE of words ----

WP_DECODER = {"type": "WordPiece", "prefix": "##", "cleanup": True}
BERT_POST = template(["[CLS]"], ["[SEP]"])
BERT_CONFIG = {"unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}
# name: (normalizer, pre_tokenizer)
WORDPIECE = {
    "bert_uncased": (bert_normalizer(), bare("BertPreTokenizer")),
    "bert_cased": (bert_normalizer(lowercase=False), bare("BertPreTokenizer")),
    "bert_cased_accents": (bert_normalizer(lowercase=False, strip_accents=False), bare("BertPreTokenizer")),
    "bert_lower_accents": (bert_normalizer(strip_accents=False), bare("BertPreTokenizer")),
    "bert_no_chinese": (bert_normalizer(handle_chinese_chars=False, clean_text=False), bare("BertPreTokenizer")),
    "wordpiece_whitespace": (None, bare("Whitespace")),
    "wordpiece_split": (norm(NFD, LOWER, STRIP_ACCENTS), bare("WhitespaceSplit")),
    "wordpiece_punct": (norm(NFKC, LOWER), pre(bare("Whitespace"), {"type": "Punctuation", "behavior": "Isolated"}, digits(True))),
    "wordpiece_split_punct": (None, pre(bare("WhitespaceSplit"), {"type": "Punctuation", "behavior": "Isolated"})),
}
SWEPT = [c for c in (*range(0x32400), *range(0xE0000, 0xE0200)) if not 0xD800 <= c < 0xE000]


def wordpiece_model(vocab, **fields):
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocab, **fields}


def make_wordpiece(name, want):
    normalizer, pre_tokenizer = WORDPIECE[name]

    def finish(suffix, vocab):
        doc = document(normalizer, pre_tokenizer, BERT, wordpiece_model(vocab), WP_DECODER, BERT_POST)
        write(name + suffix, doc, {**BERT_CONFIG}, reference="hf", shape="word")
        path = FILES / (name + suffix) / "family.json"
        family = json.loads(path.read_text())
        family["expected"] = {"eod": vocab["[SEP]"], "bos": vocab["[CLS]"]}
        path.write_text(json.dumps(family, indent=1))

    if name in want:
        trainer = trainers.WordPieceTrainer(vocab_size=6000, show_progress=False, limit_alphabet=900,
                                            special_tokens=[t["content"] for t in BERT])
        model = train(name, normalizer, pre_tokenizer, wordpiece_model({"[UNK]": 0}), trainer)
        vocab = model["vocab"]
        if len(set(vocab.values())) != len(vocab):  # holes or doubles: number anew
            vocab = {t: i for i, t in enumerate(sorted(vocab, key=vocab.get))}
        finish("", vocab)
    if name + ".pairs" in want:
        letters = [chr(c) for c in SWEPT if unicodedata.category(chr(c)) not in ("Cs",)]
        tokens = letters + ["##" + c for c in letters]
        random.Random(name).shuffle(tokens)
        tokens = [t["content"] for t in BERT] + tokens
        finish(".pairs", {t: i for i, t in enumerate(dict.fromkeys(tokens))})


def word_bpe(name, normalizer, pre_tokenizer, unk, suffix=None, decoder=None, specials=(), fuse=False, post=None, config=None):
    trainer = trainers.BpeTrainer(vocab_size=5000, show_progress=False, limit_alphabet=700,
                                  special_tokens=list(specials), **({"end_of_word_suffix": suffix} if suffix else {}))
    model = train(name, normalizer, pre_tokenizer, bpe({}, [], unk_token=unk), trainer)
    model = bpe(model["vocab"], model["merges"], unk_token=unk, end_of_word_suffix=suffix, fuse_unk=fuse)
    doc = document(normalizer, pre_tokenizer, [added(s, True) for s in specials], model, decoder, post)
    write(name, doc, config or {}, reference="hf", shape="word")


def wordlevel(name):
    trainer = trainers.WordLevelTrainer(vocab_size=6000, show_progress=False, special_tokens=["[UNK]", "[PAD]"])
    model = train(name, None, bare("Whitespace"), {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}, trainer)
    write(name, document(None, bare("Whitespace"), [added("[UNK]", True), added("[PAD]", True)], model), {},
          reference="hf", shape="word")


def clip(name, pattern):
    normalizer = norm(NFC, replace(r"\s+", " ", "Regex"), LOWER)
    pre_tokenizer = pre(split(pattern, "Removed", True), byte_level(True))
    trainer = trainers.BpeTrainer(vocab_size=5000, show_progress=False, initial_alphabet=ALPHABET, end_of_word_suffix="</w>")
    model = train(name, normalizer, pre_tokenizer, bpe({}, []), trainer)
    # As the published file: 256 bytes, 256 bytes with the suffix, merges, specials.
    tokens = ALPHABET + [c + "</w>" for c in ALPHABET]
    tokens += [t for t in sorted(model["vocab"], key=model["vocab"].get) if t not in set(tokens)]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocab = {t: i for i, t in enumerate(tokens)}
    decoder = byte_level(True, prefix=True)
    specials = [added("<|startoftext|>", True, normalized=True), added("<|endoftext|>", True)]
    doc = document(normalizer, pre_tokenizer, specials,
                   bpe(vocab, model["merges"], unk_token="<|endoftext|>", continuing_subword_prefix="", end_of_word_suffix="</w>"), decoder)
    doc["post_processor"] = {"type": "RobertaProcessing", "sep": ["<|endoftext|>", vocab["<|endoftext|>"]],
                             "cls": ["<|startoftext|>", vocab["<|startoftext|>"]], "trim_offsets": False, "add_prefix_space": False}
    write(name, doc, {"eos": "<|endoftext|>", "bos": "<|startoftext|>", "unk": "<|endoftext|>"}, reference="hf", shape="byte")


# ---- Unigram and character BPE behind other normalizers ----

def unigram_doc(name, normalizer, pre_tokenizer, specials, unk, byte_fallback=False, post=None, config=None,
                decoder=None, tokens=None, want=()):
    rows = [[s, 0.0] for s in specials]
    extra = [["<0x%02X>" % b, -20.0 - b / 256] for b in range(256)] if byte_fallback else []
    always = metaspace("always", True)
    decoder = decoder or always

    def finish(name, learned):
        doc = document(normalizer, pre_tokenizer, tokens or [added(s, True) for s in specials],
                       {"type": "Unigram", "unk_id": specials.index(unk), "vocab": rows + extra + learned,
                        "byte_fallback": byte_fallback}, decoder, post)
        write(name, doc, config, reference="hf", shape="char")

    if name in want:
        trainer = trainers.UnigramTrainer(vocab_size=3000, show_progress=False, unk_token=unk, special_tokens=[unk])
        train_pre = pre_tokenizer if pre_tokenizer and "Metaspace" in json.dumps(pre_tokenizer) and '"split": false' not in json.dumps(pre_tokenizer) else always
        model = train(name, normalizer, train_pre, {"type": "Unigram", "unk_id": 0, "vocab": [[unk, 0.0]]}, trainer, 400000)
        finish(name, [row for row in model["vocab"] if row[0] not in specials])
    if name + ".pairs" in want:
        rng = random.Random(name)
        finish(name + ".pairs", [[SPACE, -2.0]] + [[chr(c), -rng.random() * 9 - 1] for c in SWEPT if c and chr(c) != SPACE])


QUOTES = [replace("``", '"'), replace("''", '"')]
ALBERT_SPECIALS = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]
ALBERT_CONFIG = {"bos": "[CLS]", "eos": "[SEP]", "unk": "<unk>"}
XLNET_SPECIALS = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]
XLNET_CONFIG = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
ROBERTA_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
ROBERTA_CONFIG = {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}
WS_META = pre(bare("WhitespaceSplit"), metaspace())
RUNS = replace(" {2,}", " ", "Regex")
HELIUM_TOKENS = [added("<unk>", True, single_word=True), added("<s>", True, single_word=True),
                 added("</s>", True, single_word=True), added("<pad>", True, single_word=True),
                 added("\n", normalized=False)]


def unigrams():
    cls = template(["[CLS]"], ["[SEP]"])
    rob = template(["<s>"], ["</s>"])
    yield "albert", (norm(*QUOTES, NFKD, STRIP_ACCENTS, LOWER, charsmap(), RUNS), WS_META, ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "albert_v4", (norm(*QUOTES, NFKD, STRIP_ACCENTS, LOWER, charsmap(), RUNS), metaspace(), ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "albert_v5", (norm(*QUOTES, NFKD, STRIP_ACCENTS, LOWER, charsmap()), WS_META, ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "xlnet", (norm(*QUOTES, NFKD, STRIP_ACCENTS, charsmap(), RUNS), WS_META, XLNET_SPECIALS, "<unk>"), dict(post=template([], ["<sep>", "<cls>"]), config=XLNET_CONFIG)
    yield "xlnet_v5", (norm(*QUOTES, NFKD, STRIP_ACCENTS, charsmap()), WS_META, XLNET_SPECIALS, "<unk>"), dict(post=template([], ["<sep>", "<cls>"]), config=XLNET_CONFIG)
    yield "rembert", (norm(*QUOTES, RUNS, NFKD, STRIP_ACCENTS, charsmap()), metaspace(), ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "deberta_v3", (norm(strip(True, True), charsmap(), RUNS), pre(metaspace()), ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "deberta_v2_punct", (norm(LOWER, strip(True, True), charsmap(), RUNS), pre({"type": "Punctuation", "behavior": "Isolated"}, metaspace()), ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "deberta_v2_v5", (norm(replace(r"\s{2,}|[\n\r\t]", " ", "Regex"), NFC, strip(False, True)), pre(metaspace()), ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "xlm_roberta", (charsmap(), WS_META, ROBERTA_SPECIALS, "<unk>"), dict(post=rob, config=ROBERTA_CONFIG)
    yield "bge_m3", (norm(charsmap(), strip(False, True), replace(" {2,}", SPACE, "Regex")), metaspace(), ROBERTA_SPECIALS, "<unk>"), dict(post=rob, config=ROBERTA_CONFIG)
    yield "bigbird_v5", (norm(strip(False, False), replace(" {2,}", SPACE, "Regex")), metaspace(), ALBERT_SPECIALS, "<unk>"), dict(post=cls, config=ALBERT_CONFIG)
    yield "lower_t5", (norm(LOWER, charsmap()), WS_META, ROBERTA_SPECIALS, "<unk>"), dict(config=ROBERTA_CONFIG)
    yield "nmt_nfkc", (norm(bare("Nmt"), NFKC, RUNS), metaspace(), ROBERTA_SPECIALS, "<unk>"), dict(config=ROBERTA_CONFIG)  # SentencePieceUnigramTokenizer of the package
    yield "helium", (norm({"type": "Prepend", "prepend": " "}, replace(" ", SPACE)), pre(split("\n", "Contiguous", kind="String")),
                     ["<unk>", "<s>", "</s>", "<pad>"], "<unk>"), dict(byte_fallback=True, post=template(["<s>"], []), decoder=LLAMA_DECODER, tokens=HELIUM_TOKENS, config={"bos": "<s>", "eos": "</s>"})
    yield "sarashina", (None, metaspace("never", False), ["<unk>", "<s>", "</s>"], "<unk>"), dict(byte_fallback=True, decoder=LLAMA_DECODER, config={"bos": "<s>", "eos": "</s>"})
    yield "unigram_fallback", (replace(" ", SPACE), None, ["<unk>", "<s>", "</s>"], "<unk>"), dict(byte_fallback=True, decoder=LLAMA_DECODER, config={"bos": "<s>", "eos": "</s>"})


UNIGRAMS = {name: (args, kw) for name, args, kw in unigrams()}


def char_bpe(name, normalizer, pre_tokenizer, tokens, decoder, post=None, config=None, fallback=True, fuse=True, specials=("<unk>", "<s>", "</s>")):
    trainer = trainers.BpeTrainer(vocab_size=4000, limit_alphabet=500, show_progress=False,
                                  special_tokens=list(specials) + (["<0x%02X>" % b for b in range(256)] if fallback else []))
    model = train(name, None, metaspace("always", True), bpe({}, []), trainer, 400000)
    model = bpe(model["vocab"], model["merges"], unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback)
    doc = document(normalizer, pre_tokenizer, tokens, model, decoder, post)
    if not decoder:
        del doc["decoder"]
    write(name, doc, config, reference="hf", shape="char")


# ---- sentencepiece ----

def spm(name, **options):
    import io
    import sentencepiece
    out = io.BytesIO()
    lines = [line for text in pieces(name, 500000) for line in text.split("\n") if line.strip()]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, num_threads=1,
                                             minloglevel=2, character_coverage=0.995, hard_vocab_limit=False, **options)
    write(name, out.getvalue(), {}, file="x.model", reference="spm", shape="char", expected={"eod": 2, "bos": 1})


# ---- tiktoken ----

def tiktoken_file(name, pattern, option, nfc=False):
    """Trained; NAME.pairs has the ranks of all pairs of bytes, in no order."""
    if name.endswith(".pairs"):
        pairs = [bytes((a, b)) for a in range(256) for b in range(256)]
        random.Random("pairs " + name).shuffle(pairs)
        tokens = [bytes([b]) for b in range(256)] + pairs
    else:
        vocab = train(name, None, splits(pattern), bpe({}, []), trainers.BpeTrainer(
            vocab_size=5000, show_progress=False, initial_alphabet=ALPHABET))["vocab"]
        table = {letter: byte for byte, letter in enumerate(byte_letters())}
        tokens = [bytes(table[c] for c in t) for t in sorted(vocab, key=vocab.get)]
    data = b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(tokens))
    write(name, data, {}, file="x.tiktoken", reference="tiktoken", shape="byte", regex=pattern, nfc=nfc,
          options=["--pattern", option])


# ---- One by one ----

PLAIN_SPECIALS = [added(t, True) for t in ("<unk>", "<s>", "</s>")]
BLANKS_BACK = dec(replace(SPACE, " "), bare("ByteFallback"), bare("Fuse"))
BPE_DECODER = {"type": "BPEDecoder", "suffix": "</w>"}
GLM_TOKENS = [added(t, True) for t in ("<unk>", "<s>", "</s>", "[MASK]", "[gMASK]", "[sMASK]", "<!sop!>", "<!eop!>", "<|system|>", "<|user|>")]
ENDS = {"eos": "</s>", "bos": "<s>"}
TIKTOKEN = {"kimi": (KIMI, "kimi:any"), "nanochat": (NANOCHAT, "nanochat:any"), "cl100k_08": (CL100K_08, "cl100k_08:any"),
            "qwen35": (QWEN35, "qwen3.5:any", True), "gpt2_08": (GPT2_08, "gpt2:any"), "o200k": (O200K, "o200k:any")}
SINGLES = {
    "openai_gpt": lambda name: word_bpe(name, bert_normalizer(), bare("BertPreTokenizer"), "<unk>", "</w>", BPE_DECODER, ["<unk>"],
                                        config={"unk": "<unk>"}),
    "herbert": lambda name: word_bpe(name, bert_normalizer(lowercase=False, strip_accents=False), bare("BertPreTokenizer"), "<unk>", "</w>",
                                     BPE_DECODER, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], post=template(["<s>"], ["</s>"]),
                                     config={"unk": "<unk>", "bos": "<s>", "eos": "</s>"}),
    "bpe_whitespace": lambda name: word_bpe(name, None, bare("Whitespace"), "[UNK]", None, None, ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]),
    "bpe_whitespace_fused": lambda name: word_bpe(name, norm(NFD, STRIP_ACCENTS, LOWER), pre(bare("Whitespace"), digits(True)), "[UNK]",
                                                  None, None, ["[UNK]", "[PAD]"], fuse=True),
    "bpe_plain": lambda name: word_bpe(name, None, None, "[UNK]", None, None, ["[UNK]"]),
    "wordlevel": wordlevel,
    "clip": lambda name: clip(name, CLIP),
    "clip_old": lambda name: clip(name, CLIP_OLD),
    "bpe_no_decoder": lambda name: char_bpe(name, None, metaspace(), PLAIN_SPECIALS, None, None, {"eos": "</s>"}, fallback=False),
    "chatglm3": lambda name: char_bpe(name, norm(replace("<!dummy-prefix!>", SPACE), replace(" ", SPACE)),
                                      split("<!dummy-prefix!>", "MergedWithNext", kind="String"), GLM_TOKENS,
                                      dec(bare("ByteFallback"), {"type": "Metaspace", "replacement": SPACE, "add_prefix_space": True, "prepend_scheme": "always"}),
                                      template(["[gMASK]", "<!sop!>"], []), {"eos": "</s>", "unk": "<unk>"}),
    "sarvam": lambda name: char_bpe(name, replace(" ", SPACE), split(" ", "MergedWithPrevious"), PLAIN_SPECIALS, BLANKS_BACK, None, ENDS),
    "gemma": lambda name: char_bpe(name, replace(" ", SPACE), split(" ", "MergedWithPrevious", kind="String"), PLAIN_SPECIALS, BLANKS_BACK,
                                   template(["<s>"], []), ENDS),
    # A Split at a blank that does cut: nothing replaces the blanks before it.
    "gemma_cuts": lambda name: char_bpe(name, None, split(" ", "MergedWithPrevious", kind="String"), PLAIN_SPECIALS, BLANKS_BACK, None, ENDS),
    "nllb": lambda name: char_bpe(name, norm(charsmap(), RUNS), metaspace(), PLAIN_SPECIALS, metaspace(), template([], ["</s>"]), ENDS, fallback=False),
    "seamless": lambda name: char_bpe(name, norm(replace(r"[\n\r\t]", " ", "Regex"), NFKC, strip(False, True), replace(" +" + SPACE, SPACE, "Regex"),
                                                 replace("^" + SPACE + "+$", "", "Regex"), replace(" {2,}", SPACE, "Regex")),
                                      metaspace("first"), PLAIN_SPECIALS, metaspace("first"), None, ENDS, fallback=False),
    "spm_char": lambda name: spm(name, model_type="char", vocab_size=700),
    "spm_char_fallback": lambda name: spm(name, model_type="char", vocab_size=900, byte_fallback=True),
    "spm_char_identity": lambda name: spm(name, model_type="char", vocab_size=700, normalization_rule_name="identity", add_dummy_prefix=False,
                                          remove_extra_whitespaces=False, user_defined_symbols=["<sep>", "ab"]),
    "spm_word": lambda name: spm(name, model_type="word", vocab_size=4000),
    "spm_word_flags": lambda name: spm(name, model_type="word", vocab_size=4000, normalization_rule_name="identity",
                                       remove_extra_whitespaces=False, user_defined_symbols=["<sep>", "ab"]),
    "spm_word_suffix": lambda name: spm(name, model_type="word", vocab_size=4000, treat_whitespace_as_suffix=True),
    "spm_word_fallback": lambda name: spm(name, model_type="word", vocab_size=4000, byte_fallback=True),
    "spm_unigram": lambda name: spm(name, model_type="unigram", vocab_size=3000, byte_fallback=True),
    "spm_bpe": lambda name: spm(name, model_type="bpe", vocab_size=3000, byte_fallback=True),
    **{"%s_tiktoken%s" % (name, kind): lambda name, how=how: tiktoken_file(name, *how)
       for name, how in TIKTOKEN.items() for kind in (["", ".pairs"] if name not in ("gpt2_08", "o200k") else [".pairs"])},
}


def names():
    out = []
    for name in [*BYTES, *WORDPIECE, *UNIGRAMS]:
        out += [name, name + ".pairs"]
    return out + list(SINGLES)


def is_made(name):
    path = FILES / name / "family.json"
    return path.exists() and path.stat().st_mtime > pathlib.Path(__file__).stat().st_mtime


def main():
    want = set(sys.argv[1:]) or {name for name in names() if not is_made(name)}
    unknown = want - set(names())
    if unknown:
        sys.exit("unknown: %s" % sorted(unknown))
    for name in BYTES:
        make_bytes(name, want)
    for name in WORDPIECE:
        make_wordpiece(name, want)
    for name, (args, kw) in UNIGRAMS.items():
        unigram_doc(name, *args, want=want, **kw)
    for name, make in SINGLES.items():
        if name in want:
            make(name)


if __name__ == "__main__":
    main()

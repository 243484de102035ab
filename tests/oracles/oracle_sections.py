# SPDX-License-Identifier: Apache-2.0
"""All oracles, by package. A section whose package is not there must not be asked."""

import base64
import functools
import json
import random

import oracle_families
import oracle_patterns
import oracle_spm
import oracle_tiktoken
from oracle_hf import swept_codes
from oracle_reference import EVERY_FAMILY, PLAIN, Oracle, Reference, package
from oracle_texts import SHARED
from ref_protocol import Skip


def real_vocabulary(name):
    path = SHARED / "vocab" / name
    if not path.exists():
        raise Skip("%s is not there" % path)
    return path


def made_once(build):
    """A make() of what is the same for every seed. build() gives what make() gives, or a function
    of the folder in the place of the first."""
    place = []

    def make(_, folder):
        if not place:
            place.append(build())
        path, options, reference = place[0]
        return path(folder) if callable(path) else path, options, reference

    return make


# ---- HuggingFace tokenizers ----


def hf_reference(reference):
    import tokenizers

    reference.no_truncation()
    reference.no_padding()

    def encode(match):
        def rows(texts):
            reference.encode_special_tokens = not match
            return [e.ids for e in reference.encode_batch_fast(texts, add_special_tokens=False)]

        return rows

    def decode(rows):
        """BPEDecoder panics on an empty row."""
        some = iter(reference.decode_batch([row for row in rows if row], skip_special_tokens=False))
        return [next(some) if row else "" for row in rows]

    @functools.lru_cache(maxsize=None)
    def untrimmed():
        document = json.loads(reference.to_str())
        return tokenizers.Tokenizer.from_str(json.dumps({**document, "post_processor": None}))

    def offsets(policy, texts):
        untrimmed().encode_special_tokens = policy == "text"
        return [(e.ids, e.offsets) for e in untrimmed().encode_batch(texts, add_special_tokens=False)]

    added = reference.get_added_tokens_decoder()
    marks = [token.content for token in added.values()]
    special_ids = [i for i, token in added.items() if token.special]
    fused_ids = []
    if isinstance(reference.model, tokenizers.models.Unigram):
        fused_ids = [i for token, i in reference.get_vocab(False).items() if len(token) == 6 and token[:3] == "<0x"]
    return Reference({"text": encode(False), "match": encode(True)}, decode, marks, special_ids, offsets, fused_ids)


def hf_file(path):
    import tokenizers

    return path, [], hf_reference(tokenizers.Tokenizer.from_file(str(path)))


def charsmap():
    """T5's, copied from ../shared at run time; else one that sentencepiece makes; else None."""
    path = SHARED / "vocab/t5-small.tokenizer.json"
    if path.exists():
        return base64.b64decode(json.loads(path.read_bytes())["normalizer"]["precompiled_charsmap"])
    if package("sentencepiece"):
        model = oracle_spm.train(PLAIN, random.Random(1), "bpe", normalization_rule_name="nmt_nfkc")
        return model.normalizer(oracle_spm.CHARSMAP)
    return None


def hf_made(name, blob):
    def make(seed, folder):
        document = oracle_families.make(name, seed, PLAIN, blob)
        if document is None:
            raise Skip("no charsmap: neither ../shared nor sentencepiece")
        path = folder / "tokenizer.json"
        indent = 2 if seed % 3 == 0 else None
        path.write_text(json.dumps(document, ensure_ascii=seed % 2 == 0, indent=indent), "utf-8")
        return hf_file(path)

    return make


def vocab_and_merges(seed, folder):
    import tokenizers

    document = oracle_families.make("roberta" if seed % 2 else "gpt2_wild", seed, PLAIN, None)
    document["added_tokens"] = []
    merges = [pair if isinstance(pair, str) else " ".join(pair)
              for pair in document["model"]["merges"]]
    head = "#version: 0.2\n" if seed % 3 else ""
    (folder / "vocab.json").write_text(json.dumps(document["model"]["vocab"]))
    (folder / "merges.txt").write_text(head + "".join(merge + "\n" for merge in merges), "utf-8")
    reference = hf_reference(tokenizers.Tokenizer.from_str(json.dumps(document)))
    del reference.encode["match"]  # these files have no specials
    return folder / "vocab.json", ["--pattern", "gpt2:any"], reference


def hf_section():
    blob = charsmap()
    for name, must in oracle_families.names(EVERY_FAMILY):
        memories = ()
        if EVERY_FAMILY and must and not name.endswith("_wild"):  # the usual one, and so little that documents are cut often
            memories = ("64M",) if name in oracle_families.UNCUT else ("64M", "8M")
        yield Oracle("hf_" + name, must, hf_made(name, blob), memories=memories, refused=oracle_families.REFUSED.get(name))
    for path in sorted((SHARED / "vocab").glob("*.tokenizer.json")):
        name = "hf_real_" + path.name.split(".")[0]
        yield Oracle(name, True, made_once(lambda path=path: hf_file(path)))
    yield Oracle("vocab_and_merges", True, vocab_and_merges)


# ---- tiktoken ----


def tiktoken_reference(encoding, normalize=None, match=()):
    """match: contents of the specials that the policy `match` finds."""

    def prepared(texts):
        return [normalize(text) for text in texts] if normalize else texts

    def plain(texts):
        return encoding.encode_ordinary_batch(prepared(texts), num_threads=1)

    def matched(texts):
        return encoding.encode_batch(prepared(texts), num_threads=1, allowed_special=set(match))

    def decode(rows):
        return encoding.decode_batch(rows, num_threads=1)

    def offsets(policy, texts):
        rows = ways[policy](texts)
        return [(ids, encoding.decode_with_offsets(ids)[1]) for ids in rows]

    ways = {"text": plain, "match": matched} if match else {"text": plain}
    ids = [encoding.encode_single_token(content) for content in match]
    return Reference(ways, decode if hasattr(encoding, "decode_batch") else None, match, ids, offsets)


def nfc():
    if not package("tokenizers"):
        raise Skip("no Python package tokenizers to normalize with")
    import tokenizers

    return tokenizers.normalizers.NFC().normalize_str


def in_pieces(ranks, regexes):
    if not package("tokenizers"):
        raise Skip("no Python package tokenizers to split with")
    return oracle_tiktoken.InPieces(ranks, regexes, {})


def public_file(vocab, name, pattern, match):
    """A vocabulary with the expression and the specials that the package itself has for it."""
    def build():
        path = real_vocabulary(vocab)
        encoding = oracle_tiktoken.public_encoding(name, oracle_tiktoken.read_ranks(path))
        return path, ["--pattern", pattern], tiktoken_reference(encoding, match=match)

    return made_once(build)


def public_ranks(name, ranks):
    """The same for ranks that are written to a file here."""
    def build():
        real_vocabulary("gpt2.tokenizer.json")
        found = ranks()
        encoding = oracle_tiktoken.public_encoding(name, found)
        return (lambda folder: oracle_tiktoken.write_ranks(folder / "x.tiktoken", found),
                ["--pattern", "gpt2"], tiktoken_reference(encoding, match=["<|endoftext|>"]))

    return made_once(build)


def harmony(_, folder):
    path = real_vocabulary("o200k_base.tiktoken")
    encoding = oracle_tiktoken.public_encoding("o200k_harmony", oracle_tiktoken.read_ranks(path))
    names = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|endoftext|>"]
    specials = folder / "specials.json"
    specials.write_text(json.dumps({name: encoding.encode_single_token(name) for name in names}))
    options = ["--pattern", "o200k", "--specials-file", str(specials)]
    return path, options, tiktoken_reference(encoding, match=names)


def family_file(vocab, pattern, specials, needs_nfc=False):
    """A vocabulary with its family's own expression."""
    def build():
        path = real_vocabulary(vocab)
        encoding = oracle_tiktoken.encoding(vocab, oracle_tiktoken.PATTERNS[pattern],
                                            oracle_tiktoken.read_ranks(path), specials)
        reference = tiktoken_reference(encoding, nfc() if needs_nfc else None, list(specials))
        return path, ["--pattern", pattern], reference

    return made_once(build)


def pieces_file(vocab, pattern, regexes):
    def build():
        path = real_vocabulary(vocab)
        encoding = in_pieces(oracle_tiktoken.read_ranks(path), regexes)
        return path, ["--pattern", pattern], tiktoken_reference(encoding)

    return made_once(build)


def wild_ranks(pattern, regexes):
    def make(seed, folder):
        ranks = oracle_tiktoken.wild_ranks(random.Random("%s %d" % (pattern, seed)), True)
        path = oracle_tiktoken.write_ranks(folder / "wild.tiktoken", ranks)
        encoding = (oracle_tiktoken.encoding("wild", regexes, ranks, {})
                    if isinstance(regexes, str) else in_pieces(ranks, regexes))
        reference = tiktoken_reference(encoding, nfc() if pattern.startswith("qwen") else None)
        return path, ["--pattern", pattern + ":any"], reference

    return make


def tekken_json(seed, folder):
    rng = random.Random("tekken %d" % seed)
    order = sorted(oracle_tiktoken.wild_ranks(rng), key=lambda t: (len(t) > 1, rng.random()))
    n_specials = rng.choice((4, 20, 1000))
    path = oracle_tiktoken.write_tekken(folder / "tekken.json", order, n_specials)
    ranks = {token: i + n_specials for i, token in enumerate(order)}
    encoding = oracle_tiktoken.encoding("tekken", oracle_patterns.TEKKEN, ranks, {})
    return path, [], tiktoken_reference(encoding)


def tiktoken_section():
    fim = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|endofprompt|>"]
    found = {
        "gpt2": public_ranks("gpt2", oracle_tiktoken.gpt2_ranks),
        "p50k": public_ranks("p50k_base", oracle_tiktoken.p50k_ranks),
        "cl100k": public_file("cl100k_base.tiktoken", "cl100k_base", "cl100k", fim),
        "o200k": public_file("o200k_base.tiktoken", "o200k_base", "o200k",
                             ["<|endoftext|>", "<|endofprompt|>"]),
        "harmony": harmony,
        "llama3": family_file("llama3.tokenizer.model", "llama3", oracle_tiktoken.LLAMA3_SPECIALS),
        "qwen3": family_file("qwen3.derived.tiktoken", "qwen2", oracle_tiktoken.QWEN2_SPECIALS, True),
        "deepseek3": pieces_file("deepseek_v3.derived.tiktoken", "deepseek3",
                                 oracle_patterns.DEEPSEEK3),
        "tekken": pieces_file("tekken.derived.tiktoken", "tekken", [oracle_patterns.TEKKEN]),
    }
    for name, make in found.items():
        yield Oracle("tiktoken_" + name, True, make)
    for pattern, regexes in {**oracle_tiktoken.PATTERNS, "deepseek3": oracle_patterns.DEEPSEEK3}.items():
        yield Oracle("tiktoken_wild_" + pattern, True, wild_ranks(pattern, regexes))
    for pattern, regexes in oracle_tiktoken.MORE_PATTERNS.items() if EVERY_FAMILY else ():
        yield Oracle("tiktoken_wild_" + pattern, True, wild_ranks(pattern, regexes))
    yield Oracle("tekken_json", True, tekken_json)


# ---- sentencepiece ----


def spm_reference(data, marks):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=data)

    def offsets(_, texts):
        return [(row["ids"], row["offsets"]) for row in processor.encode(texts, return_type="offset_mapping")]

    return Reference({"text": lambda texts: processor.encode(texts, num_threads=1)},
                     lambda rows: processor.decode(rows, num_threads=1), marks, offsets=offsets)


def spm_made(base, changes, trained):
    """trained: what was trained before, since that takes its time."""
    def make(seed, folder):
        key = (base, seed // 8)
        if key not in trained:
            kind, options = oracle_spm.BASES[base]
            trained[key] = oracle_spm.train(PLAIN, random.Random("%s %d" % key), kind, **options)
        model = oracle_spm.Model(trained[key].to_bytes())
        rng = random.Random("%s %s %d" % (base, [c.__name__ for c in changes], seed))
        for change in changes:
            change(model, rng)
        path = folder / "x.model"
        path.write_bytes(model.to_bytes())
        marks = [text for text, _, kind in model.pieces
                 if kind in (oracle_spm.CONTROL, oracle_spm.USER_DEFINED, oracle_spm.UNKNOWN)]
        return path, [], spm_reference(model.to_bytes(), marks)

    return make


def spm_section():
    trained = {}
    changes = {"": [], "_flags": [oracle_spm.flags_of_normalizer], "_order": [oracle_spm.wild_order],
               "_wild": [oracle_spm.flags_of_normalizer, oracle_spm.wild_pieces],
               "_unused": [oracle_spm.wild_pieces, oracle_spm.some_unused]}
    for base in oracle_spm.BASES:
        for suffix, steps in changes.items():
            must = suffix != "_unused"
            yield Oracle("spm_" + base + suffix, must, spm_made(base, steps, trained))
    marks = ["<s>", "</s>", "<unk>", "[INST]", "<0x0A>"]
    for path in sorted((SHARED / "vocab").glob("*.model")):
        data = path.read_bytes()
        if not data[:1].isalnum():  # base64 is Llama 3's
            yield Oracle("spm_real_" + path.stem, True, made_once(
                lambda path=path, data=data: (path, [], spm_reference(data, marks))))


# ---- Every code point ----


def in_contexts(c):
    return f"a{c}b 1{c}2\n{c} {c}{c}'{c}s  {c}\r\n.{c}A{c} e{c}\u0301{c}\u0323!{c}\n\t{c}"


def sweep_section(first, step):
    """Among neighbours of every kind, each step-th code point from the first one on."""
    codes = swept_codes()
    texts = [in_contexts(chr(c)) for c in codes[first % step :: step]]

    def hf(name):
        def make(seed, folder):
            path, options, reference = hf_made(name + "_pairs", blob)(seed, folder)
            return path, options, Reference({"text": reference.encode["text"]})

        return make

    def spm(rule):
        def make(_, folder):
            data = oracle_spm.train(PLAIN, random.Random(1), "bpe", byte_fallback=True,
                                    normalization_rule_name=rule).to_bytes()
            path = folder / "sweep.model"
            path.write_bytes(data)
            return path, [], Reference({"text": spm_reference(data, ()).encode["text"]})

        return make

    if package("tokenizers"):
        blob = charsmap()
        for name in oracle_families.swept(EVERY_FAMILY):
            yield Oracle("sweep_hf_" + name, True, hf(name), texts)
    if package("sentencepiece"):
        for rule in ("nmt_nfkc", "nfkc_cf"):
            yield Oracle("sweep_spm_" + rule, True, spm(rule), texts)

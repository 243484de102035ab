# SPDX-License-Identifier: Apache-2.0
"""tiktoken encodings over the vocabularies of ../shared and over small ones made here, where ranks
mean nothing to a human; with the expressions and specials of the package itself, or of the
families' own code where it does not know them.

What encodes needs the Python package `tiktoken`.
"""

import base64
import json

import oracle_texts
from oracle_patterns import CL100K, CL100K_08, GPT2, KIMI, NANOCHAT, O200K, QWEN2, QWEN35, TEKKEN, byte_letters
from oracle_reference import package
from oracle_texts import SHARED

tiktoken, public = package("tiktoken"), package("tiktoken_ext.openai_public")

PATTERNS = {"gpt2": GPT2, "cl100k": CL100K, "o200k": O200K, "llama3": CL100K, "qwen2": QWEN2}
MORE_PATTERNS = {"kimi": KIMI, "nanochat": NANOCHAT, "cl100k_08": CL100K_08, "qwen3.5": QWEN35}

LLAMA3_SPECIALS = {"<|begin_of_text|>": 128000, "<|end_of_text|>": 128001,
                   "<|start_header_id|>": 128006, "<|end_header_id|>": 128007,
                   "<|eot_id|>": 128009}
QWEN2_SPECIALS = {"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645}


def read_ranks(path):
    ranks = {}
    for line in path.read_bytes().split(b"\n"):
        if line:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    return ranks


def write_ranks(path, ranks):
    with open(path, "wb") as out:
        for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
            out.write(base64.b64encode(token) + b" %d\n" % rank)
    return path


def gpt2_ranks():
    vocab = json.loads((SHARED / "vocab/gpt2.tokenizer.json").read_bytes())["model"]["vocab"]
    letters = {letter: byte for byte, letter in enumerate(byte_letters())}
    return {bytes(letters[c] for c in token): i for token, i in vocab.items()
            if token != "<|endoftext|>"}


def p50k_ranks():
    """r50k and runs of 2 to 25 spaces behind its <|endoftext|>."""
    ranks = gpt2_ranks()
    for n in range(2, 26):
        ranks.setdefault(b" " * n, 50255 + n)
    return ranks


def public_encoding(name, ranks):
    """As the package defines it, except for the source of the ranks."""
    before = public.load_tiktoken_bpe, public.data_gym_to_mergeable_bpe_ranks
    public.load_tiktoken_bpe = public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: ranks
    try:
        fields = public.ENCODING_CONSTRUCTORS[name]()
    finally:
        public.load_tiktoken_bpe, public.data_gym_to_mergeable_bpe_ranks = before
    return tiktoken.Encoding(fields["name"], pat_str=fields["pat_str"],
                             mergeable_ranks=fields["mergeable_ranks"],
                             special_tokens=fields["special_tokens"])


def encoding(name, pattern, ranks, specials):
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)


class InPieces:
    """Splits by HuggingFace's steps, merges by tiktoken: for what is no single expression."""

    def __init__(self, ranks, regexes, specials):
        from tokenizers import Regex, pre_tokenizers

        self.split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r), "isolated")
                                              for r in regexes])
        self.whole = encoding("pieces", r"[\s\S]+", ranks, specials)

    def encode_ordinary(self, text):
        ids = []
        for piece, _ in self.split.pre_tokenize_str(text):
            ids += self.whole.encode_ordinary(piece)
        return ids

    def decode_with_offsets(self, ids):
        return self.whole.decode_with_offsets(ids)

    def encode_ordinary_batch(self, texts, num_threads=1):
        return [self.encode_ordinary(text) for text in texts]


def wild_ranks(rng, may_have_gaps=False):
    """All bytes, and strings that need not be made of others; ranks in no order."""
    plain = "".join(rng.choice(oracle_texts.plain_texts())[:400] for _ in range(5)).encode()
    tokens = {bytes([b]) for b in range(256)}
    for _ in range(1500):
        at, n = rng.randrange(len(plain) - 8), rng.randint(2, 8)
        tokens.add(plain[at : at + n])
    for alphabet in (b" a", b" \n\r\t", b"'stdSTD", b"0123", b" \xc2\xa0\xe2\x80\x83\n",
                     b"ab \xcc\x81"):
        for _ in range(120):
            tokens.add(bytes(rng.choices(alphabet, k=rng.randint(2, 6))))
    tokens = sorted(tokens)
    rng.shuffle(tokens)
    if rng.random() < 0.5:  # long ones last, as in real files
        tokens.sort(key=len)
    gaps = may_have_gaps and rng.random() < 0.3
    ranks, rank = {}, 0
    for token in tokens:
        ranks[token] = rank
        rank += rng.choice((1, 1, 1, 2)) if gaps else 1
    return ranks


def write_tekken(path, order, n_specials):
    """order: tokens, the bytes first. n_specials ids come before them."""
    named = ["<unk>", "<s>", "</s>", "[INST]"][:n_specials]
    named += ["<SPECIAL_%d>" % i for i in range(len(named), n_specials)]
    specials = [{"rank": i, "token_str": text, "is_control": True} for i, text in enumerate(named)]
    beyond = [b"never", b"taken", b" of these"]  # more than the model has
    rows = []
    for rank, token in enumerate(order + beyond):
        try:
            text = token.decode()
        except UnicodeDecodeError:
            text = None
        rows.append({"rank": rank, "token_bytes": base64.b64encode(token).decode(),
                     "token_str": text})
    config = {"pattern": TEKKEN, "num_vocab_tokens": len(rows), "version": "v11",
              "default_vocab_size": len(order) + n_specials,
              "default_num_special_tokens": n_specials}
    path.write_text(json.dumps({"config": config, "vocab": rows, "special_tokens": specials}))
    return path

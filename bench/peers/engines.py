#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One interface to the peers, and one process for each measurement.

    engines.py PEER JOB         a cold pass and a warm one: JSON with seconds on stdout
    engines.py PEER JOB --ids   writes all ids to the job's file "ids", as u32, little-endian

JOB is a JSON file that compare.py writes: {"tokenizer": what compare.tokenizer_entries gives,
"text": path of JSON lines}. Cold: the first documents that a new tokenizer sees, right after it was
loaded; what Python imports on the first call has been imported by then. Warm: the same documents
once more. Each peer is called as its users call it for many documents, on one thread; what it
returns holds all ids."""

import array
import base64
import gc
import importlib.metadata
import itertools
import json
import os
import sys
import time
import unicodedata

CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SHORT, WORD = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"[^\r\n\p{L}\p{N}]?"
O200K = (
    f"{WORD}{UPPER}*{LOWER}+{SHORT}|{WORD}{UPPER}+{LOWER}*{SHORT}|"
    r"\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
HF_PATTERNS = {"cl100k": CL100K, "o200k": O200K, "llama3": CL100K, "qwen2": QWEN2}
# The package tiktoken writes these in its own way: the same words, found faster.
TIKTOKEN_NAMES = {"gpt2": "r50k_base", "cl100k": "cl100k_base", "o200k": "o200k_base"}
GIGATOKEN_PATTERNS = {"cl100k": "cl100k", "o200k": "o200k", "qwen2": "qwen2"}


class NotSupported(Exception):
    """The peer has no such tokenizer."""


def nfc(documents):
    return [unicodedata.normalize("NFC", text) for text in documents]


def flat(rows):
    return array.array("I", itertools.chain.from_iterable(rows)).tobytes()


# ---- Vocabularies ----


def read_tiktoken(path):
    ranks = {}
    with open(path, "rb") as f:
        for line in f:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    return ranks


def letters_of_bytes():
    """GPT-2's character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in plain}
    for i, b in enumerate(b for b in range(256) if b not in plain):
        letters[b] = chr(256 + i)
    return letters


def read_byte_level(path):
    """Ranks from a tokenizer.json whose ids are ranks."""
    letters = {letter: b for b, letter in letters_of_bytes().items()}
    with open(path, "rb") as f:
        document = json.load(f)
    added = {token["content"] for token in document["added_tokens"]}
    return {
        bytes(letters[c] for c in token): i
        for token, i in document["model"]["vocab"].items()
        if token not in added
    }


def tokenizer_json(ranks, pattern, nfc):
    """The way the families' own converters do it: every way to build a token is a merge, in the
    order of ranks; a word that is a token becomes that token."""
    letters = letters_of_bytes()
    spelled = {token: "".join(letters[b] for b in token) for token in ranks}
    merges = []
    for token in sorted(ranks, key=ranks.get):
        ways = [
            (token[:at], token[at:])
            for at in range(1, len(token))
            if token[:at] in ranks and token[at:] in ranks
        ]
        ways.sort(key=lambda way: (ranks[way[0]], ranks[way[1]]))
        merges += [[spelled[left], spelled[right]] for left, right in ways]
    split = {
        "type": "Split",
        "pattern": {"Regex": HF_PATTERNS[pattern]},
        "behavior": "Isolated",
        "invert": False,
    }
    bytes_step = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "NFC"} if nfc else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes_step]},
        "post_processor": None,
        "decoder": bytes_step,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {spelled[t]: i for t, i in ranks.items()},
            "merges": merges,
        },
    }


# ---- Peers ----


class Tiktoken:
    package = "tiktoken"
    few = ["a"]

    def __init__(self, job):
        import tiktoken
        from tiktoken_ext import openai_public

        kind, path, pattern = job["kind"], job["path"], job["pattern"]
        if kind not in ("tiktoken", "byte_level"):
            raise NotSupported("byte-level BPE only")
        ranks = read_tiktoken(path) if kind == "tiktoken" else read_byte_level(path)
        if pattern in TIKTOKEN_NAMES:
            openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
            regex = openai_public.ENCODING_CONSTRUCTORS[TIKTOKEN_NAMES[pattern]]()["pat_str"]
        else:
            regex = HF_PATTERNS[pattern]
        self.encoding = tiktoken.Encoding(
            "peer", pat_str=regex, mergeable_ranks=ranks, special_tokens={}
        )
        self.note = "text in NFC before" if job["nfc"] else None

    def prepare(self, documents, job):
        return nfc(documents) if job["nfc"] else documents

    def encode(self, documents):
        one = self.encoding.encode_ordinary
        return [one(text) for text in documents]

    ids = staticmethod(flat)


class Tokenizers:
    package = "tokenizers"
    few = ["a"]

    def __init__(self, job):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import tokenizers

        if job["json"] is None:
            raise NotSupported("no tokenizer.json")
        self.tokenizer = tokenizers.Tokenizer.from_file(job["json"])
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.tokenizer.encode_special_tokens = True
        self.note = "a tokenizer.json made of the ranks" if job["kind"] == "tiktoken" else None

    def prepare(self, documents, job):
        return documents

    def encode(self, documents):
        return self.tokenizer.encode_batch_fast(documents, add_special_tokens=False)

    @staticmethod
    def ids(rows):
        return flat(row.ids for row in rows)


class Gigatoken:
    package = "gigatoken"
    few = [b"a"]

    def __init__(self, job):
        import gigatoken

        kind, path, pattern = job["kind"], job["path"], job["pattern"]
        self.note = None
        if kind == "tiktoken" and pattern in GIGATOKEN_PATTERNS:
            self.tokenizer = gigatoken.Tokenizer.from_tiktoken(path, GIGATOKEN_PATTERNS[pattern])
        elif kind == "sentencepiece_bpe":
            self.tokenizer = gigatoken.Tokenizer.from_sentencepiece(path)
        elif job["json"] is None or "unigram" in kind:
            raise NotSupported("no Unigram")
        else:
            self.tokenizer = gigatoken.Tokenizer(job["json"])
            self.note = "a tokenizer.json made of the ranks" if kind == "tiktoken" else None

    def prepare(self, documents, job):
        if job["nfc"]:
            documents = nfc(documents)  # a file of ranks says nothing of it
            self.note = "text in NFC before"
        return [text.encode() for text in documents]

    def encode(self, documents):
        return self.tokenizer.encode_batch(documents, parallel=False)

    @staticmethod
    def ids(rows):
        import awkward
        import numpy

        return numpy.asarray(awkward.flatten(rows), dtype="<u4").tobytes()


class GigatokenSetUp(Gigatoken):
    """After its first call, which makes the tables that other peers make while loading."""

    def __init__(self, job):
        super().__init__(job)
        self.encode(self.few)


class SentencePiece:
    package = "sentencepiece"
    few = ["a"]

    def __init__(self, job):
        import sentencepiece

        if not job["path"].endswith(".model") or job["kind"] == "tiktoken":
            raise NotSupported("no .model")
        self.processor = sentencepiece.SentencePieceProcessor(model_file=job["path"])
        self.note = None

    def prepare(self, documents, job):
        return documents

    def encode(self, documents):
        return self.processor.encode(documents, num_threads=1)

    ids = staticmethod(flat)


PEERS = {
    "gigatoken": Gigatoken,
    "gigatoken-set-up": GigatokenSetUp,
    "tiktoken": Tiktoken,
    "tokenizers": Tokenizers,
    "sentencepiece": SentencePiece,
}


def read_documents(path):
    with open(path, "rb") as f:
        return [json.loads(line)["text"] for line in f]


def seconds_of(function, argument):
    before = time.perf_counter()
    result = function(argument)
    return time.perf_counter() - before, result


def why_not_installed(name, error):
    """The version that install.py found, else the version of Python."""
    try:
        with open(os.path.join(sys.prefix, "not-installed.json")) as f:
            return json.load(f)[PEERS[name].package]
    except (OSError, ValueError, KeyError):
        return str(error)


def main():
    name, job_path = sys.argv[1:3]
    with open(job_path, "rb") as f:
        job = json.load(f)
    try:
        PEERS[name](job["tokenizer"]).encode(PEERS[name].few)  # whatever else is imported, now
        peer = PEERS[name](job["tokenizer"])
    except ImportError as e:
        print(json.dumps({"left_out": "not installed: %s" % why_not_installed(name, e)}))
        return 0
    except NotSupported as e:
        print(json.dumps({"left_out": str(e)}))
        return 0
    documents = peer.prepare(read_documents(job["text"]), job["tokenizer"])
    if sys.argv[3:] == ["--ids"]:
        with open(job["ids"], "wb") as out:
            out.write(peer.ids(peer.encode(documents)))
        print(json.dumps({"version": importlib.metadata.version(peer.package), "note": peer.note}))
        return 0
    gc.collect()
    gc.disable()
    cold, result = seconds_of(peer.encode, documents)
    del result
    warm, result = seconds_of(peer.encode, documents)
    print(json.dumps({"cold": cold, "warm": warm}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the tests that run tokmap pack share: a small tokenizer, and what this build can read."""

import functools
import json

import ref_protocol


def small_vocabulary():
    """A tokenizer.json of GPT-2's kind: 256 bytes, a few merges, and what ends a document."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {b: chr(b) for b in printable}
    for b in range(256):
        letters.setdefault(b, chr(256 + len(letters) - len(printable)))
    vocab = {letters[b]: b for b in range(256)}
    merges = [("o", "r"), ("w", "or"), ("wor", "d"), (letters[32], "word"), ("1", "2")]
    vocab.update({left + right: 256 + i for i, (left, right) in enumerate(merges)})
    end = {"id": 256 + len(merges), "content": "<|endoftext|>", "special": True, "single_word": False, "lstrip": False,
           "rstrip": False, "normalized": False}
    return json.dumps({
        "added_tokens": [end], "normalizer": None, "post_processor": None, "decoder": {"type": "ByteLevel"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges}})


@functools.lru_cache
def version():
    return ref_protocol.call("tokmap", "--version")[1].decode()


def has_zlib():
    return "zlib    not" not in version()


def has_zstd():
    return "zstd    not" not in version()

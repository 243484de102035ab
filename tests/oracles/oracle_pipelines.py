# SPDX-License-Identifier: Apache-2.0
"""Pipelines of tokenizer.json that nobody published: the parts that tokmap knows, in any order.

Needs the Python package `tokenizers` only where a reference encodes."""

import json
import subprocess
import tempfile

import test_splitter
from oracle_hf import bpe_model, byte_level, document, sequence, split
from oracle_patterns import GPT2
from ref_protocol import program

SUFFIX = "</w>"
# Every expression that is known, and `(?:\r?\n)+(?!\r?\n)`, which is known with MergedWithNext.
LINES = test_splitter.LISTS["laguna"][0]
EXPRESSIONS = sorted({GPT2, "[0-9][0-9][0-9]", *(
    part for parts in [*test_splitter.REGEXES.values(), *test_splitter.LISTS.values()]
    for part in parts if isinstance(part, str) and part != LINES)})


def stages():
    """Each pre-tokenizer that splits."""
    found = [split(regex) for regex in EXPRESSIONS] + [split(LINES, "MergedWithNext")]
    found += [{"type": "Digits", "individual_digits": each} for each in (False, True)]
    found += [{"type": "Punctuation", "behavior": b} for b in ("Isolated", "Contiguous")]
    found += [{"type": name} for name in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer")]
    return found + [byte_level(use, prefix) for use in (None, True, False)
                    for prefix in (False, True)]


def is_byte_level(stage):
    return stage["type"] == "ByteLevel"


def alphabet():
    """ByteLevel's characters, by byte."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in kept]
    return [chr(b) if b in kept else chr(0x100 + moved.index(b)) for b in range(256)]


def words_document(steps, characters):
    """A tokenizer whose ids show where its words end: no merges, and another id at the end."""
    if any(map(is_byte_level, steps)):
        characters = alphabet()
    tokens = ["<unk>"] + [c + end for end in ("", SUFFIX) for c in characters]
    model = bpe_model({token: i for i, token in enumerate(tokens)}, [], unk_token="<unk>",
                      end_of_word_suffix=SUFFIX)
    return document({"pre_tokenizer": sequence(*steps)}, model, [])


def words_ids(content, words):
    """The ids of words_document; words of bytes are written in ByteLevel's characters."""
    ids = content["model"]["vocab"]
    return [ids[c] for word in words for c in (*word[:-1], word[-1] + SUFFIX)]


def tokmap(command, file, lines, *options):
    """(rows, None), or (None, why it refused)."""
    with tempfile.TemporaryFile() as f:
        for line in lines:
            f.write(json.dumps(line).encode() + b"\n")
        f.seek(0)
        done = subprocess.run([program("tokmap"), command, "--tokenizer", str(file), *options],
                              stdin=f, capture_output=True)
    if done.returncode:
        return None, "exit %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace").strip())
    rows = done.stdout.decode().split("\n")[:-1]
    assert len(rows) == len(lines), (len(rows), len(lines))
    return [json.loads(row) for row in rows], None

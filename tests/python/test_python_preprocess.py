#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap preprocess with the tokenizers that need no package. tests/frameworks/check_preprocess.py compares it
with Megatron's own tool."""

import json
import os
import random
import re
import subprocess
import sys

from package import ROOT
from ref_protocol import expect, expect_equal, need, run_in_folders

import tokmap

SYMBOLS = [chr(one) for one in (*range(33, 127), *range(161, 173), *range(174, 256))]  # of the bytes that have one of their own
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 hello", "< |", "| >", "e n", "d o", "\u0120 a", "1 2"]
END = "<|endoftext|>"
LEGACY = "--legacy-tokenizer"


def byte_symbols():
    found, others = {ord(one): one for one in SYMBOLS}, 256
    for byte in range(256):
        if byte not in found:
            found[byte] = chr(others)
            others += 1
    return found


def write_gpt2(folder, vocab=(), merges="#version: 0.2\n" + "\n".join(MERGES) + "\n"):
    """Returns the arguments that name its files."""
    tokens = [*byte_symbols().values(), *(one.replace(" ", "") for one in MERGES), END]
    (folder / "v.json").write_text(json.dumps(vocab or {token: i for i, token in enumerate(tokens)}))
    (folder / "m.txt").write_text(merges)
    return ("--tokenizer-type", "GPT2BPETokenizer", "--append-eod", "--vocab-file", folder / "v.json", "--merge-file",
            folder / "m.txt")


def encode_gpt2(text, vocab):
    """The old class of Megatron-LM, for texts in ASCII: the merge with the lowest rank everywhere, until there is none."""
    symbols, ids = byte_symbols(), []
    ranks = {tuple(merge.split()): i for i, merge in enumerate(MERGES)}
    pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+"
    for word in re.findall(pattern, text):
        parts = [symbols[byte] for byte in word.encode()]
        while True:
            best = min(zip(parts, parts[1:]), key=lambda pair: ranks.get(pair, 99), default=None)
            if best not in ranks:
                break
            at, joined = 0, []
            while at < len(parts):
                n = 2 if tuple(parts[at:at + 2]) == best else 1
                joined.append("".join(parts[at:at + n]))
                at += n
            parts = joined
        ids += [vocab[part] for part in parts]
    return ids


def preprocess(folder, path, *arguments, status=0):
    """Its stderr."""
    done = subprocess.run([sys.executable, "-m", "tokmap", "preprocess", "--input", path, "--output-prefix", folder / "out",
                           *arguments], env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    expect_equal(done.returncode, status, "%s: %s" % (arguments, done.stderr))
    return done.stderr


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def documents(folder, key="text"):
    return [one.tolist() for one in tokmap.open(folder / ("out_%s_document" % key))]


def two_asterisks_are_refused(folder):
    """Megatron's glob reads ** as *."""
    good = write_gpt2(folder)
    for name in ("x", "a/x", "a/b/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        write_lines(folder / name, [{"text": "ab"}])
    for arguments in ((), ("--partitions", "2", "--keep-sequential-samples")):
        said = preprocess(folder, folder / "**/x", *good, *arguments, status=2)
        expect("/**/x: Megatron reads ** as *, the files of one level: write * for each level" in said, said)
    expect(not list(folder.glob("out*")), "files were written")


def the_old_class_of_gpt2_knows_no_special_token(folder):
    good, rng = write_gpt2(folder), random.Random(1)
    vocab = json.loads((folder / "v.json").read_text())
    pieces = [" hello", "hell", END, "\n", "  ", "12", "'s", " a", "x", "<|", "<|>"]
    texts = ["", END, *("".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(300))]
    path = write_lines(folder / "a", [{"text": text} for text in texts])
    preprocess(folder, path, *good, LEGACY)
    expect_equal(documents(folder), [encode_gpt2(text, vocab) + [vocab[END]] * (text != "") for text in texts], LEGACY)
    preprocess(folder, path, *good)
    expect_equal(documents(folder)[1], [vocab[END]] * 2, "the special token without " + LEGACY)
    text = (folder / "m.txt").read_text()
    vocab.pop("!")
    for changed, why in (({"vocab": vocab}, "v.json: has no token for some bytes"), ({"merges": text[:-1]}, "m.txt: has no "),
                         ({"merges": text.partition("\n")[2]}, "m.txt: has no "), ({"merges": text + "h e\n"}, "m.txt: has no ")):
        said = preprocess(folder, path, *write_gpt2(folder, **changed), LEGACY, status=3)
        expect(why in said, said)


def the_old_class_of_llama_2_begins_documents_with_bos(folder):
    sentencepiece = need("sentencepiece")
    texts = ["", "hello", "a <s> b</s>", " hello  there\n", "\u00e9\u4e2d"]
    path = write_lines(folder / "a", [{"text": text} for text in texts])
    write_lines(folder / "corpus", [{"text": "hello there, a b c %d" % i} for i in range(400)])
    for name, ids in (("usual", {}), ("other", {"bos_id": 3, "eos_id": 1, "unk_id": 0}), ("none", {"bos_id": -1})):
        sentencepiece.SentencePieceTrainer.train(input=str(folder / "corpus"), model_prefix=str(folder / name), vocab_size=60,
                                                 model_type="bpe", byte_fallback=False, minloglevel=2, hard_vocab_limit=False,
                                                 **ids)
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / (name + ".model")))
        arguments = ("--tokenizer-model", folder / (name + ".model"), "--append-eod", "--tokenizer-type")
        for kind, begin in (("Llama2Tokenizer", [model.bos_id()]), ("GPTSentencePieceTokenizer", [])):
            if begin == [-1]:
                said = preprocess(folder, path, *arguments, kind, LEGACY, status=3)
                expect("none.model: has no BOS token" in said, said)
                continue
            preprocess(folder, path, *arguments, kind, LEGACY)
            wanted = [begin + model.encode(text) for text in texts]
            expect_equal(documents(folder), [ids + [model.eos_id()] * bool(ids) for ids in wanted], kind)
            preprocess(folder, path, *arguments, kind)
            wanted = [model.encode(text) for text in texts]
            expect_equal(documents(folder), [ids + [model.eos_id()] * bool(ids) for ids in wanted], kind)
    said = preprocess(folder, path, *arguments, "SentencePieceTokenizer", LEGACY, status=3)
    expect("SentencePieceTokenizer: with --legacy-tokenizer" in said, said)


def the_old_class_of_transformers_makes_no_token_special(folder):
    transformers, tokenizers = need("transformers"), need("tokenizers")
    write_gpt2(folder)
    made = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(folder / "v.json"), str(folder / "m.txt")))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, sep_token="a").save_pretrained(folder / "sep")
    transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="hello").save_pretrained(folder / "eos")
    texts = ["", "hello a hello", "banana", "hellohello"]
    path = write_lines(folder / "a", [{"text": text} for text in texts])
    for name in ("eos", "sep"):
        old = transformers.AutoTokenizer.from_pretrained(folder / name)
        arguments = ("--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder / name, LEGACY)
        end = ["--append-eod"] * (name == "eos")
        preprocess(folder, path, *arguments, *end)
        wanted = [old(text).input_ids for text in texts]
        expect_equal(documents(folder), [ids + [old.eos_token_id] * len(end) * bool(ids) for ids in wanted], name)
    expect("names no end token" in preprocess(folder, path, *arguments, "--append-eod", status=3), "an alias")
    said = preprocess(folder, path, *arguments, "--tokenizer-hf-no-include-special-tokens", status=2)
    expect("--tokenizer-hf-no-include-special-tokens does not work with --legacy-tokenizer" in said, said)
    both = ["--tokenizer-hf-no-include-special-tokens", "--tokenizer-hf-include-special-tokens"]
    expect("use only one of" in preprocess(folder, path, *arguments[:4], *both, status=2), "both")


def datasets_of_several_keys_have_one_length(folder):
    good = write_gpt2(folder)
    for rows, key in (([{"text": "a", "title": None}], "title"), ([{"text": None, "title": "a"}] * 2, "text")):
        path = write_lines(folder / "a", [{"text": "b", "title": "b"}, *rows])
        said = preprocess(folder, path, *good, "--json-keys", "text", "title", status=3)
        expect("%r is null in %d line" % (key, len(rows)) in said and "write \"\" for null, or give one key" in said, said)
        expect(not list(folder.glob("out_%s_document*" % key)), said)
        preprocess(folder, path, *good, "--json-keys", key)
        expect_equal(len(documents(folder, key)), 1, "documents of one key")
        for one in folder.glob("out*"):
            one.unlink()
    write_lines(folder / "a", [{"text": "", "title": "x"}, {"text": "x", "title": ""}])
    preprocess(folder, path, "--json-keys", "text", "title", *good)
    expect_equal([len(one) for one in documents(folder) + documents(folder, "title")], [0, 2, 2, 0], "tokens")


def what_a_message_advises_is_an_argument(folder):
    good, path = write_gpt2(folder), folder / "a"
    for text in ('{"text": 1}', '{"text": "\\ud800"}', "{", '{"title": "x"}', "[]"):
        path.write_text('{"text": "x"}\n%s\n' % text)
        said = preprocess(folder, path, *good, status=3)
        expect("a:2: " in said, said)
        for advised in re.findall("--[a-z-]+", said):
            expect(advised in ("--memory", "--restart"), said)
    path.write_text('{"text": "x"}\n')
    preprocess(folder, path, *good, "--memory", "64M", "--restart")


if __name__ == "__main__":
    sys.exit(run_in_folders("preprocess_"))

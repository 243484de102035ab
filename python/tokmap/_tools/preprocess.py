# SPDX-License-Identifier: Apache-2.0
"""tokmap preprocess: the arguments of Megatron-LM's tools/preprocess_data.py, and its .bin and .idx, by
`tokmap pack --also megatron`."""

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any, List, NamedTuple

from .._c import find as _native
from .importers import _load_tokenizer
from .options import Parser, Refused, ends_as_program
from .._data.tokenizer import Tokenizer

_PIECES = ("SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer")
_SYMBOLS = {chr(one) for one in (*range(33, 127), *range(161, 173), *range(174, 324))}  # of the bytes, for GPT-2


class _Encoding(NamedTuple):
    """What pack needs to give the ids of Megatron's tokenizer."""

    file: str
    bos: str
    end: str  # of each document without --append-eod
    eod: str  # with it
    specials: str


def _link(path: str, folder: str, name: str) -> str:
    """Under a name that pack knows, and where no file beside it names another end."""
    os.stat(path)  # whose error names the file that the user gave
    os.symlink(os.path.abspath(path), os.path.join(folder, name))
    return os.path.join(folder, name)


def _hugging_face(o: argparse.Namespace, folder: str) -> _Encoding:
    """As Megatron's class of this name: it makes special tokens of those that transformers names, and --tokenizer-model
    may be a class that differs from its tokenizer.json. So what counts is the tokenizer that transformers has made."""
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # else transformers loads it, for seconds
    t = _load_tokenizer(o.tokenizer_model)
    if not t.is_fast:
        raise Refused(f"{o.tokenizer_model}: is a tokenizer without a tokenizer.json, written in Python")
    aliases = [("eos_token", "sep_token"), ("sep_token", "eos_token"), ("bos_token", "cls_token"), ("cls_token", "bos_token")]
    if o.legacy_tokenizer:
        aliases = []
    t.add_special_tokens({to: getattr(t, of) for of, to in aliases if getattr(t, of) and getattr(t, to) is None})
    made = t.backend_tokenizer
    made.no_truncation()
    made.no_padding()
    text, file = made.to_str(), os.path.join(o.tokenizer_model, "tokenizer.json")
    if not os.path.exists(file) or type(made).from_file(file).to_str() != text:
        file = os.path.join(folder, "tokenizer.json")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
    around = made.encode("a", add_special_tokens=not o.tokenizer_hf_no_include_special_tokens)
    inside = [i for i, special in enumerate(around.special_tokens_mask) if not special]
    before, after = around.ids[:inside[0]], around.ids[inside[-1] + 1:]
    if len(before) > 1 or len(after) > 1 or after and (o.append_eod or not before):
        raise Refused(f"{o.tokenizer_model}: its template puts {before} before each text and {after} after it: at most one "
                       "before it, and then, without --append-eod, one after it are supported; "
                       "--tokenizer-hf-no-include-special-tokens leaves out both")
    ids = t.get_vocab().values()
    if (len(t) < 65500) != (max(ids) < 65499):
        raise Refused(f"{o.tokenizer_model}: has {len(t)} ids up to {max(ids)}: Megatron stores them in 16 bits")
    return _Encoding(file, str(*before) or "none", str(*after) or "none",
                     "none" if t.eos_token is None else str(t.convert_tokens_to_ids(t.eos_token)), "match")


def _gpt2(o: argparse.Namespace, folder: str) -> _Encoding:
    eod = "<|endoftext|>"
    with open(o.vocab_file, encoding="utf-8") as file:
        vocab = json.load(file)
    if eod not in vocab:
        raise Refused(f"{o.vocab_file}: has no {eod}")
    if o.legacy_tokenizer:  # that class has no errors, only other ids
        with open(o.merge_file, encoding="utf-8") as file:
            first, *merges, last = file.read().split("\n")
        if not _SYMBOLS <= vocab.keys():
            raise Refused(f"{o.vocab_file}: has no token for some bytes, which --legacy-tokenizer makes the id 0: tokmap "
                           "does not do this")
        if not first.startswith("#version") or last or len(set(merges)) < len(merges):
            raise Refused(f"{o.merge_file}: has no #version in its first line, no newline at its end or a merge twice, so "
                           "--legacy-tokenizer reads other merges: tokmap does not do this")
    _link(o.merge_file, folder, "merges.txt")
    return _Encoding(_link(o.vocab_file, folder, "vocab.json"), "none", "none", eod, "text" if o.legacy_tokenizer else "match")


def _pieces(o: argparse.Namespace, folder: str) -> _Encoding:
    if o.legacy_tokenizer and o.tokenizer_type == "SentencePieceTokenizer":
        raise Refused("SentencePieceTokenizer: with --legacy-tokenizer it has special tokens of its own, such as <EOD>: tokmap "
                       "does not do this; GPTSentencePieceTokenizer has none")
    bos = "auto" if o.legacy_tokenizer and o.tokenizer_type == "Llama2Tokenizer" else "none"
    if bos == "auto" and Tokenizer(o.tokenizer_model).bos_id is None:
        raise Refused(f"{o.tokenizer_model}: has no BOS token, which --legacy-tokenizer makes the id -1")
    return _Encoding(_link(o.tokenizer_model, folder, os.path.basename(o.tokenizer_model)), bos, "none", "auto", "text")


def _parse(arguments: List[str]) -> argparse.Namespace:
    parser = Parser("preprocess", main.__doc__)
    parser.allow_abbrev = False
    add: Any = parser.add_argument
    add("--input", required=True, metavar="FILE", help="JSON lines, also as .gz or .zst; with --partitions a pattern")
    add("--json-keys", nargs="+", default=["text"], metavar="KEY", help="the fields; a dataset is made of each [text]")
    add("--output-prefix", required=True, metavar="PREFIX", help="how the names of the files begin")
    add("--append-eod", action="store_true", help="end each document that has tokens with the end token of the tokenizer")
    add("--tokenizer-type", required=True, choices=["HuggingFaceTokenizer", "GPT2BPETokenizer", *_PIECES],
        metavar="NAME", help="Megatron's class of the tokenizer")
    add("--tokenizer-model", metavar="NAME", help="the folder of a tokenizer of transformers, the name of one that was "
        "downloaded before, or a model of sentencepiece")
    add("--vocab-file", metavar="FILE", help="the vocabulary of GPT2BPETokenizer")
    add("--merge-file", metavar="FILE", help="the merges of GPT2BPETokenizer")
    template = parser.add_mutually_exclusive_group()
    template.add_argument("--tokenizer-hf-no-include-special-tokens", action="store_true",
                          help="leave out the template of the tokenizer")
    template.add_argument("--tokenizer-hf-include-special-tokens", action="store_true", help="apply it [default]")
    add("--legacy-tokenizer", action="store_true", help="do as Megatron-LM before megatron-core 0.15, and 0.16 with "
        "this argument: Llama2Tokenizer begins each document with BOS, GPT2BPETokenizer encodes <|endoftext|> in a text as "
        "plain text, and HuggingFaceTokenizer takes no eos_token for a missing sep_token, nor the like")
    add("--workers", type=int, metavar="N", help="the number of threads [one per processor]")
    add("--memory", metavar="SIZE", help="as for 'tokmap pack'")
    add("--restart", action="store_true", help="discard what a killed run has done")
    add("--partitions", type=int, default=1, metavar="N", help="more than 1 only with --keep-sequential-samples, because "
        "otherwise Megatron changes the order of documents; files are then packed in the order of their names")
    add("--keep-sequential-samples", action="store_true", help="keep the order of documents, which tokmap always does")
    for name in ("--log-interval", "--lang", "--max-documents"):
        add(name, metavar="VALUE", help="no effect")
    add("--use-gigatoken", action="store_true", help="no effect")
    if unknown := parser.find_unknown(arguments):
        parser.error(f"{unknown}: tokmap does not do this: use Megatron's own tool for it")
    o, others = parser.parse_known_args(arguments)
    needed = ("vocab_file", "merge_file") if o.tokenizer_type == "GPT2BPETokenizer" else ("tokenizer_model",)
    others += [name for name in o.json_keys if "." in name]
    missing = [f"--{name.replace('_', '-')}" for name in needed if getattr(o, name) is None]
    if o.partitions > 1 and not o.keep_sequential_samples:
        missing.append("--keep-sequential-samples, because --partitions changes the order of documents without it,")
    if o.legacy_tokenizer and o.tokenizer_hf_no_include_special_tokens:
        parser.error("--tokenizer-hf-no-include-special-tokens does not work with --legacy-tokenizer")
    if missing:
        parser.error(f"{missing[0]} is needed")
    if "**" in o.input.split("/"):
        parser.error(f"--input {o.input}: Megatron reads ** as *, the files of one level: write * for each level")
    if others:
        parser.error(f"{others[0]}: tokmap does not do this: use Megatron's own tool for it")
    return o


def _run(command: List[str]) -> int:
    """Its exit status. A terminal interrupts both processes, and the program ends in its own way."""
    with subprocess.Popen(command) as running:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: running.terminate())
        code = running.wait()
    return code if code >= 0 else 128 - code


def _preprocess(o: argparse.Namespace, folder: str) -> None:
    inputs = sorted(glob.glob(o.input)) if o.partitions > 1 else [o.input]
    make = {"HuggingFaceTokenizer": _hugging_face, "GPT2BPETokenizer": _gpt2}.get(o.tokenizer_type, _pieces)
    program, encoding = _native.find_program("tokmap"), make(o, folder)
    if o.append_eod and encoding.eod == "none":
        raise Refused(f"{o.tokenizer_model}: names no end token for --append-eod: set eos_token in its tokenizer_config.json")
    report = os.path.join(folder, "report")
    for key in o.json_keys:
        prefix = f"{o.output_prefix}_{key}_document"
        code = _run([
            program, "pack", *inputs, "--format", "jsonl", "--field", key, "--utf8", "error", "--on-error", "fail",
            "--force", "--report", report,
            "--tokenizer", encoding.file, "--specials", encoding.specials, "--bos", encoding.bos,
            "--eod", encoding.eod if o.append_eod else encoding.end, "--also", "megatron",
            *(["--threads", str(o.workers)] if o.workers else []), *(["--memory", o.memory] if o.memory else []),
            *(["--restart"] if o.restart else []), "-o", prefix])
        if code:
            sys.exit(code)
        with open(report, encoding="utf-8") as file:
            n_null = json.load(file)["null_documents"]
        if n_null and len(o.json_keys) > 1:
            for suffix in "tmi", "idx", "bin":
                os.unlink(f"{prefix}.{suffix}")
            raise Refused(f"{o.input}: {key!r} is null in {n_null} line{'s' * (n_null > 1)}, so datasets of several --json-keys "
                           f"would differ in length; {prefix} was removed: write \"\" for null, or give one key")


def main(arguments: List[str]) -> None:
    """tokmap preprocess OPTION...

    Takes the arguments of Megatron-LM's tools/preprocess_data.py, and writes the same PREFIX_KEY_document.bin and .idx,
    and a .tmi for tokmap. Like it, it replaces them. A run that was killed is resumed by the same command. Other
    arguments of that tool are refused. Nothing is loaded from the network.

    The files are those of Megatron-LM with megatron-core 0.17. Versions 0.15 and 0.16 make the same, but a
    HuggingFaceTokenizer leaves out the template, such as BOS: give --tokenizer-hf-no-include-special-tokens, unless
    0.16 had --tokenizer-hf-include-special-tokens. --legacy-tokenizer makes the files of 0.14 and before.

    Examples:
      tokmap preprocess --input corpus.jsonl --output-prefix data/web \\
          --append-eod --tokenizer-type HuggingFaceTokenizer \\
          --tokenizer-model models/llama"""
    with ends_as_program("preprocess"), tempfile.TemporaryDirectory() as folder:
        _preprocess(_parse(arguments), folder)

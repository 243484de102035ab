# SPDX-License-Identifier: Apache-2.0
"""tokmap preprocess: the arguments of Megatron-LM's tools/preprocess_data.py, and its .bin and .idx, by
`tokmap pack --also megatron`."""

import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import List, NamedTuple

from .._c import find as _native
from .importers import _load_tokenizer
from .terminal import Given, Refused, WrongUse, ends_as_program
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


def _hugging_face(o: Given, folder: str) -> _Encoding:
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


def _gpt2(o: Given, folder: str) -> _Encoding:
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


def _pieces(o: Given, folder: str) -> _Encoding:
    if o.legacy_tokenizer and o.tokenizer_type == "SentencePieceTokenizer":
        raise Refused("SentencePieceTokenizer: with --legacy-tokenizer it has special tokens of its own, such as <EOD>: tokmap "
                       "does not do this; GPTSentencePieceTokenizer has none")
    bos = "auto" if o.legacy_tokenizer and o.tokenizer_type == "Llama2Tokenizer" else "none"
    if bos == "auto" and Tokenizer(o.tokenizer_model).bos_id is None:
        raise Refused(f"{o.tokenizer_model}: has no BOS token, which --legacy-tokenizer makes the id -1")
    return _Encoding(_link(o.tokenizer_model, folder, os.path.basename(o.tokenizer_model)), bos, "none", "auto", "text")


def _check(o: Given) -> None:
    needed = ("vocab_file", "merge_file") if o.tokenizer_type == "GPT2BPETokenizer" else ("tokenizer_model",)
    for name in needed:
        if getattr(o, name) is None:
            raise WrongUse(f"{o.tokenizer_type} needs --{name.replace('_', '-')}")
    if (o.partitions or 1) > 1 and not o.keep_sequential_samples:
        raise WrongUse("--partitions changes the order of documents without --keep-sequential-samples")
    if o.legacy_tokenizer and o.tokenizer_hf_no_include_special_tokens:
        raise WrongUse("--tokenizer-hf-no-include-special-tokens does not work with --legacy-tokenizer")
    if "**" in o.input.split("/"):
        raise WrongUse(f"--input {o.input}: Megatron reads ** as *, the files of one level: write * for each level")
    for name in (*o.operands, *(key for key in o.json_keys or () if "." in key)):
        raise WrongUse(f"{name}: tokmap does not do this: use Megatron's own tool for it")


def _run(command: List[str]) -> int:
    """Its exit status. A terminal interrupts both processes, and the program ends in its own way."""
    with subprocess.Popen(command) as running:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: running.terminate())
        code = running.wait()
    return code if code >= 0 else 128 - code


def _preprocess(o: Given, folder: str) -> None:
    inputs = sorted(glob.glob(o.input)) if (o.partitions or 1) > 1 else [o.input]
    make = {"HuggingFaceTokenizer": _hugging_face, "GPT2BPETokenizer": _gpt2}.get(o.tokenizer_type, _pieces)
    program, encoding = _native.find_program("tokmap"), make(o, folder)
    if o.append_eod and encoding.eod == "none":
        raise Refused(f"{o.tokenizer_model}: names no end token for --append-eod: set eos_token in its tokenizer_config.json")
    report = os.path.join(folder, "report")
    keys = o.json_keys or ["text"]
    for key in keys:
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
        if n_null and len(keys) > 1:
            for suffix in "tmi", "idx", "bin":
                os.unlink(f"{prefix}.{suffix}")
            raise Refused(f"{o.input}: {key!r} is null in {n_null} line{'s' * (n_null > 1)}, so datasets of several --json-keys "
                           f"would differ in length; {prefix} was removed: write \"\" for null, or give one key")


def main(arguments: List[str]) -> None:
    with ends_as_program("preprocess", as_json=False), tempfile.TemporaryDirectory() as folder:
        o = Given(arguments)
        _check(o)
        _preprocess(o, folder)

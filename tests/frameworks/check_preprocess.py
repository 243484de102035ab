#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap preprocess: the .bin and .idx of Megatron's preprocess_data.py. What that does with a line is 15
lines here, over the classes of the wheel of megatron-core; TOKMAP_MEGATRON_LM, a folder of Megatron-LM, makes it that
script itself."""

import json
import logging
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import warnings

from frameworks import need, run_checks

if __name__ == "__main__":
    need("preprocess", "numpy", "transformers", "megatron.core")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import transformers  # noqa: E402
from megatron.core.datasets import indexed_dataset  # noqa: E402
from megatron.core.tokenizers.text.libraries import HuggingFaceTokenizer, SentencePieceTokenizer  # noqa: E402

import tokmap  # noqa: E402
from documents import environment  # noqa: E402
from oracle_families import make  # noqa: E402
from oracle_texts import SHARED, Texts, plain_texts  # noqa: E402
from ref_protocol import Skip  # noqa: E402
from ref_protocol import need as need_module  # noqa: E402

MEGATRON_LM = os.environ.get("TOKMAP_MEGATRON_LM")
# name: what its template puts before and after a text
FAMILIES = {"gpt2": "$A", "llama3": "<bos> $A", "qwen2": "$A", "gemma": "<bos> $A", "phi3": "<bos> $A", "deepseek3": "<bos> $A",
            "mistral_nemo": "<bos> $A", "bert_uncased": "<bos> $A <eos>"}
HUGGING_FACE = ("--tokenizer-type", "HuggingFaceTokenizer")


def make_tokenizer(folder, family):
    """A folder of transformers."""
    content = make(family, 1, plain_texts(1 << 17), b"")
    (folder / "plain.json").write_text(json.dumps(content))
    t = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "plain.json"), bos_token="<bos>", eos_token="<eos>")
    if FAMILIES[family] != "$A":
        from tokenizers.processors import TemplateProcessing

        t.backend_tokenizer.post_processor = TemplateProcessing(
            single=FAMILIES[family], special_tokens=[("<bos>", t.bos_token_id), ("<eos>", t.eos_token_id)])
    t.save_pretrained(folder / family)
    return folder / family


def write_lines(path, n=400):
    texts, rng = Texts(3, ["<bos>", "<eos>", "<|endoftext|>"]), random.Random(3)
    with open(path, "w") as out:
        for i in range(n):
            row = {"id": i, "text": rng.choice(["", " ", texts.one(), texts.slice(), texts.slice() + "<eos>"]),
                   "title": texts.one()}
            row = {key: value.encode("utf-8", "replace").decode() if key != "id" else value for key, value in row.items()}
            out.write(json.dumps(row, ensure_ascii=rng.random() < 0.5) + "\n")
    return path


def preprocess(path, prefix, *arguments, status=0):
    """Its stderr."""
    done = subprocess.run([sys.executable, "-m", "tokmap", "preprocess", "--input", path, "--output-prefix", prefix,
                           "--workers", "2", *arguments], env=environment(), capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stderr


def megatron(path, prefix, tokenizer, arguments, keys=("text",)):
    """preprocess_data.py."""
    if MEGATRON_LM:
        done = subprocess.run([sys.executable, os.path.join(MEGATRON_LM, "tools/preprocess_data.py"), "--input", path,
                               "--output-prefix", prefix, "--workers", "2", *arguments], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": MEGATRON_LM})
        assert done.returncode == 0, done.stderr
        return
    for key in keys:
        dtype = indexed_dataset.DType.optimal_dtype(tokenizer.vocab_size)
        builder = indexed_dataset.IndexedDatasetBuilder(f"{prefix}_{key}_document.bin", dtype=dtype)
        for line in open(path, encoding="utf-8"):
            ids, lengths = tokenizer.text_to_ids(json.loads(line)[key]), []
            if ids:
                ids = ids + [tokenizer.eod] * ("--append-eod" in arguments)
                lengths = [len(ids)]
            builder.add_document(ids, lengths)
        builder.finalize(f"{prefix}_{key}_document.idx")


def compare(folder, path, tokenizer, *arguments, keys=("text",)):
    preprocess(path, folder / "mine", *arguments)
    megatron(path, folder / "theirs", tokenizer, arguments, keys)
    for key in keys:
        for suffix in "bin", "idx":
            mine, theirs = ((folder / f"{who}_{key}_document.{suffix}").read_bytes() for who in ("mine", "theirs"))
            assert mine == theirs, (arguments, key, suffix)
        ds = indexed_dataset.IndexedDataset(str(folder / f"mine_{key}_document"))
        own = tokmap.open(folder / f"mine_{key}_document")
        assert [list(one) for one in ds] == [list(one) for one in own if len(one)], "the .tmi says something else"


def files_are_those_of_megatron_for_tokenizers_of_transformers(folder):
    path = write_lines(folder / "a.jsonl")
    for family, template in FAMILIES.items():
        model = make_tokenizer(folder, family)
        for flags in (["--append-eod"], [], ["--append-eod", "--tokenizer-hf-no-include-special-tokens"]):
            tokenizer = HuggingFaceTokenizer(str(model), include_special_tokens=len(flags) < 2)
            if len(flags) == 1 and "<eos>" in template:
                assert "its template puts [" in preprocess(path, folder / "mine", *HUGGING_FACE, "--tokenizer-model", model,
                                                           *flags, status=3)
                continue
            compare(folder, path, tokenizer, *HUGGING_FACE, "--tokenizer-model", model, *flags)
    return f"{len(FAMILIES)} tokenizers" + (", by Megatron-LM's own script" if MEGATRON_LM else "")


def files_are_those_of_megatron_for_models_of_sentencepiece(folder):
    need_module("sentencepiece")
    models = [model for model in sorted(SHARED.glob("vocab/*.model")) if not model.name.startswith("llama3")]  # is tiktoken's
    if not models:
        raise Skip("no ../shared/vocab")
    path = write_lines(folder / "a.jsonl")
    for model in models:
        for flags in (["--append-eod"], []):
            compare(folder, path, SentencePieceTokenizer(str(model)), "--tokenizer-type", "Llama2Tokenizer",
                    "--tokenizer-model", model, *flags)
    return f"{len(models)} models"


def several_keys_partitions_and_files_of_gpt2(folder):
    path, model = write_lines(folder / "a.jsonl"), make_tokenizer(folder, "gpt2")
    wanted = HuggingFaceTokenizer(str(model))
    compare(folder, path, wanted, *HUGGING_FACE, "--tokenizer-model", model, "--append-eod", "--json-keys", "text", "title",
            keys=("text", "title"))
    one = (folder / "mine_text_document.idx").read_bytes()
    parts = path.read_text().splitlines(True)
    for i, part in enumerate((parts[:100], parts[100:])):
        (folder / f"part{i}.jsonl").write_text("".join(part))
    preprocess(folder / "part*.jsonl", folder / "mine", *HUGGING_FACE, "--tokenizer-model", model, "--append-eod",
               "--partitions", "2", "--keep-sequential-samples", "--log-interval", "5", "--use-gigatoken")
    assert (folder / "mine_text_document.idx").read_bytes() == one
    content = json.loads((model / "tokenizer.json").read_text())["model"]
    vocab = {**content["vocab"], "<|endoftext|>": len(content["vocab"]) + 9}
    (folder / "v.json").write_text(json.dumps(vocab))
    (folder / "m.txt").write_text("\n".join(["#version: 0.2", *(" ".join(merge) for merge in content["merges"])]) + "\n")
    preprocess(path, folder / "mine", "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", folder / "v.json",
               "--merge-file", folder / "m.txt", "--append-eod")
    (folder / "bpe").mkdir()
    transformers.GPT2TokenizerFast(vocab=str(folder / "v.json"), merges=str(folder / "m.txt")).save_pretrained(folder / "bpe")
    compare_to = HuggingFaceTokenizer(str(folder / "bpe"))
    megatron(path, folder / "theirs", compare_to, [*HUGGING_FACE, "--tokenizer-model", folder / "bpe", "--append-eod"])
    for suffix in "bin", "idx":
        mine, theirs = ((folder / f"{who}_text_document.{suffix}").read_bytes() for who in ("mine", "theirs"))
        assert mine == theirs, suffix


def a_run_that_is_stopped_is_resumed(folder):
    path, model = write_lines(folder / "a.jsonl"), make_tokenizer(folder, "gpt2")
    path.write_text(path.read_text() * 300)
    arguments = [*HUGGING_FACE, "--tokenizer-model", model]
    preprocess(path, folder / "wanted", *arguments)
    command = [sys.executable, "-m", "tokmap", "preprocess", "--input", path, "--output-prefix", folder / "mine", *arguments]
    said, deadline = "", time.monotonic() + 120
    while "Progress is saved" not in said and time.monotonic() < deadline:
        with subprocess.Popen(command, env={**environment(), "TOKMAP_CHECKPOINT_MS": "0"}, stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True) as run:
            journal = folder / "mine_text_document.tmj.partial"
            while run.poll() is None and not (journal.exists() and journal.stat().st_size > 2000):
                time.sleep(0.001)
            run.send_signal(signal.SIGTERM)
            said = run.communicate()[1]
    assert "Progress is saved" in said and run.returncode == 75, (run.returncode, said)
    assert "resuming after" in preprocess(path, folder / "mine", *arguments)
    for suffix in "bin", "idx", "tmi":
        assert (folder / f"mine_text_document.{suffix}").read_bytes() == \
            (folder / f"wanted_text_document.{suffix}").read_bytes(), suffix


def what_it_cannot_do_is_refused_by_name(folder):
    path, model = write_lines(folder / "a.jsonl", 3), make_tokenizer(folder, "gpt2")
    good = [*HUGGING_FACE, "--tokenizer-model", model]
    for arguments in (["--split-sentences"], ["--find-optimal-num-workers"], ["--trust-remote-code"], ["--json-keys", "a.b"],
                      ["--tokenizer-special-tokens", "<x>"], ["--partitions", "2"]):
        said = preprocess(path, folder / "mine", *good, *arguments, status=2)
        assert arguments[-1 if arguments[0] == "--json-keys" else 0] in said, said
    assert "--vocab-file" in preprocess(path, folder / "mine", "--tokenizer-type", "GPT2BPETokenizer", status=2)
    assert "--tokenizer-type NullTokenizer: must be" in preprocess(path, folder / "mine", "--tokenizer-type", "NullTokenizer", status=2)
    said = preprocess(path, folder / "mine", *HUGGING_FACE, "--tokenizer-model", folder / "absent", status=3)
    assert "absent: transformers cannot load" in said and "there is no such folder" in said, said
    path.write_text('{"text": ["a", "b"]}\n')
    assert "a.jsonl:1" in preprocess(path, folder / "mine", *good, status=3)
    assert not list(pathlib.Path(folder).glob("mine*"))


if __name__ == "__main__":
    sys.exit(run_checks("preprocess_"))

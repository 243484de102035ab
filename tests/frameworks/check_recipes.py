#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each block of docs/recipes.md and docs/frameworks.md, and counts the lines that its user writes."""

import importlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
import pathlib

from frameworks import EOD, ROOT, loss_of, make_gpt, need, write_text

if __name__ == "__main__":
    need("recipes", "numpy")
import numpy as np  # noqa: E402
from documents import N_BATCHES, Enough, blocks, changed_folder, run  # noqa: E402
from pack_corpus import small_vocabulary  # noqa: E402
from ref_protocol import Skip, run_tests  # noqa: E402


def make_names():
    """What the recipes take for granted."""
    import torch

    model, optimizer = make_gpt()
    seen = []

    def train(inputs, labels):
        inputs, labels = (torch.tensor(np.asarray(array)).long() for array in (inputs, labels))
        assert tuple(inputs.shape) == tuple(labels.shape) and inputs.shape[-1] == 64
        ends = labels[..., 1:] == -100  # of a row: its last label may be no input
        assert ((inputs[..., 1:] == labels[..., :-1]) | (labels[..., :-1] == -100) | ends).all()
        loss_of(model, inputs, labels).backward()
        seen.append(inputs)
        if len(seen) == N_BATCHES:
            raise Enough

    return {"model": model, "optimizer": optimizer, "train": train, "__name__": "recipe"}


def make_module():
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.gpt, self.optimizer = make_gpt()

        def training_step(self, batch):
            return loss_of(self.gpt, batch["inputs"], batch["labels"])

        def validation_step(self, batch):
            return loss_of(self.gpt, batch["inputs"], batch["labels"])

        def configure_optimizers(self):
            return self.optimizer

    return {"module": Module()}


def make_llama():
    import transformers

    return {"llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=257, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2))}


def make_provider():
    """What pretrain_gpt.py has beside its provider."""
    import functools

    from megatron.core.datasets.gpt_dataset import GPTDatasetConfig

    class Tokenizer:
        vocab_size, eod, unique_identifiers = 257, EOD, {"class": "none"}

    config = GPTDatasetConfig(random_seed=1, sequence_length=64, blend=(["data/train"], None), split="8,1,1", tokenizer=Tokenizer(),
                              reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=True)
    return {"functools": functools, "get_args": dict, "core_gpt_dataset_config_from_args": lambda args: config,
            "is_dataset_built_on_rank": lambda vp_stage: vp_stage is None}


def call_provider(names):
    provider = names["train_valid_test_datasets_provider"]
    assert [len(data) for data in provider((5000, 20, 10))] == [5000, 20, 10] and provider((5, 5, 0), 1) == [None] * 3
    for sample in provider((N_BATCHES, 0, 0))[0]:
        names["train"](sample["tokens"][None], sample["labels"][None])


def make_train_module():
    from olmo_core.nn.transformer import TransformerConfig
    from olmo_core.optim import AdamWConfig
    from olmo_core.train import TrainerConfig
    from olmo_core.train.train_module import TransformerTrainModuleConfig

    module = TransformerTrainModuleConfig(rank_microbatch_size=64, max_sequence_length=64, optim=AdamWConfig())
    return {"train_module": module.build(TransformerConfig.olmo2_1M(vocab_size=257).build()),
            "trainer_config": TrainerConfig(save_folder="run")}


def make_rows():
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"input_ids": [[1, 2, EOD], [3, EOD]]}), "rows.parquet")
    return {}


def make_corpora():
    """fineweb/ with a README, dclm/ compressed, shards/ with texts and what belongs to them."""
    import pyarrow
    import pyarrow.parquet

    texts = ["This is text %d. " % i * 5 for i in range(60)]
    for folder in ("fineweb", "dclm", "shards"):
        os.mkdir(folder)
    pathlib.Path("tokenizer.json").write_text(small_vocabulary())
    pathlib.Path("fineweb/README.md").write_text("not data")
    pyarrow.parquet.write_table(pyarrow.table({
        "text": texts, "url": ["https://example.org/%d" % i for i in range(60)], "language": ["en", "de"] * 30,
        "language_score": [i / 60 for i in range(60)]}), "fineweb/000.parquet")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts).encode()
    pathlib.Path("dclm/0.jsonl.zst").write_bytes(pyarrow.compress(lines, "zstd", asbytes=True))
    with tarfile.open("shards/0.tar", "w") as archive:
        for i, text in enumerate(texts):
            for name, data in (("%d.jpg" % i, b"\xff\xd8"), ("%d.txt" % i, text.encode())):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return {}


def make_scored():
    """data/train with an id for each document, data/scored with two scores, and files that are looked up in them."""
    if not os.path.exists("data/scored.tmi"):
        texts = ["document %d of some words " % i * 9 for i in range(400)]
        write_lines("train.jsonl", [{"text": text, "id": "d%d" % i} for i, text in enumerate(texts)])
        write_lines("scored.jsonl", [{"text": text, "quality": i % 6, "dup": i % 5 == 0} for i, text in enumerate(texts)])
        write_lines("topics.jsonl", [{"id": "d%d" % i, "topic": "t%d" % (i % 7)} for i in reversed(range(400))])
        write_lines("mmlu.jsonl", [{"question": texts[3]}, {"question": "Which question is found in no document at all? " * 3}])
        for name, meta in (("train", "id"), ("scored", "quality,dup")):
            run(["tokmap", "pack", "-q", "--force", name + ".jsonl", "--meta", meta, "-o", "data/" + name], ".")
    return {}


def write_lines(name, records):
    pathlib.Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))


def make_corpus():
    """corpus.jsonl and a tokenizer."""
    import check_preprocess

    if not os.path.exists("models"):
        os.mkdir("models")
        check_preprocess.make_tokenizer(pathlib.Path("models"), "gpt2").rename("models/llama")
        pathlib.Path("corpus.jsonl").write_text('{"text": "a word"}\n{"text": ""}\n')
    return {}


def make_compressed_corpus():
    """corpus/ and a tokenizer."""
    import pyarrow

    os.mkdir("corpus")
    pathlib.Path("tokenizer.json").write_text(small_vocabulary())
    for i in range(3):
        pathlib.Path(f"corpus/{i}.jsonl.zst").write_bytes(pyarrow.compress(b'{"text": "a word"}\n' * 50, "zstd", asbytes=True))
    return {}


def make_bad_corpus():
    """corpus.jsonl, whose second line is not JSON."""
    pathlib.Path("corpus.jsonl").write_text('{"text": "a word"}\n{"text": \n{"text": "another"}\n')
    return {}


def make_chats():
    """chats.jsonl, a tokenizer and a template; and the tokenizer and a model for it."""
    import check_render
    import transformers

    if not os.path.exists("models"):
        os.mkdir("models")
        check_render.make_tokenizer(pathlib.Path("models"), "llama3").rename("models/chat")
        shutil.copy(check_render.template("llama3"), "training.jinja")
        check_render.write_lines(pathlib.Path("chats.jsonl"), check_render.some_chats(1, 300, True, False))
    tokenizer = transformers.AutoTokenizer.from_pretrained("models/chat", pad_token="<eos>")
    return {"tokenizer": tokenizer, "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2))}


MORE_NAMES = {"Public corpora": make_corpora, "Choose documents after packing": make_scored, "One machine with many processors": make_compressed_corpus,
              "Documents that were left out": make_bad_corpus, "Packing for Megatron-LM": make_corpus,
              "Lightning": make_module, "HF Trainer": make_llama,
              "SFT with TRL and with plain PyTorch": make_chats,
              "Megatron-core": make_provider, "OLMo-core": make_train_module, "Files of other libraries": make_rows,
              "nanoGPT": lambda: {"block_size": 64, "batch_size": 8, "device": "cpu"}}

CALLS = {"Megatron-core": call_provider}  # of functions that a recipe defines


def written_lines(text):
    """Statements: no imports, comments, blank lines, and a statement of several lines is one."""
    import ast

    def count(body):
        return sum(1 + sum(count(getattr(node, part, [])) for part in ("body", "orelse", "finalbody"))
                   for node in body if not isinstance(node, (ast.Import, ast.ImportFrom)))

    return count(ast.parse(text).body)


def run_block(title, language, text, folder):
    try:
        names = {**make_names(), **MORE_NAMES.get(title, dict)()}
        for package in re.findall(r"^(?:import|from) ([\w.]+)", text, re.MULTILINE):
            importlib.import_module(package)
    except ImportError as error:
        raise Skip(str(error)) from None
    if language == "sh":
        run(["bash", "-ec", text], folder)
        return len(text.strip().splitlines())
    try:
        exec(compile(text, title, "exec"), names)
        CALLS.get(title, lambda names: None)(names)
    except Enough:
        pass
    return written_lines(text)


def read_table():
    """{anchor of a section: (name and version of its package, lines)} of the table of the document."""
    text = (ROOT / "docs/frameworks.md").read_text()
    return {anchor: (version, lines) for anchor, version, lines in
            re.findall(r"^\| \[[^]]*\]\(#([\w-]+)\) \| ([^|]*)\| (\d+) \|", text, re.MULTILINE)}


def the_table_has_the_versions_of_the_requirements():
    wanted = (ROOT / "tests/frameworks/requirements.txt").read_text()
    versions = [version.strip().replace(" ", "==") for version, _ in read_table().values()]
    assert len(versions) > 10 and all(version in wanted for version in versions), versions


def run_section(title, parts):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "data").mkdir()
        write_text(folder / "data")
        with changed_folder(folder):
            counts = [run_block(title, language, text, folder) for language, text in parts]
    print(f"note {title}: {' + '.join(map(str, counts))} lines")
    anchor = re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
    assert anchor not in (table := read_table()) or int(table[anchor][1]) in counts, (title, table[anchor])


if __name__ == "__main__":
    sections = {}
    for title, language, text in blocks("recipes.md") + blocks("frameworks.md"):
        if language:  # else it is what a command prints
            sections.setdefault(title, []).append((language, text))
    chosen = {title: parts for title, parts in sections.items() if title in sys.argv[1:] or not sys.argv[1:]}
    sys.exit(run_tests([("recipes: versions", the_table_has_the_versions_of_the_requirements)] + [
                       (f"recipe: {title}", lambda title=title, parts=parts: run_section(title, parts))
                        for title, parts in chosen.items()]))

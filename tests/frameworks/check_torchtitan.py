#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.torchtitan in the Trainer of torchtitan, on the CPU: a run that was killed has the losses of one that was not,
and its checkpoint continues with another data-parallel degree.

torchtitan looks for a GPU. Here it gets the CPU in its place, and an attention that computes its mask in full, because
FlexAttention has no backward on the CPU; all else is torchtitan's.

TORCHTITAN_MAIN is a checkout of its main branch. All of this runs a second time with it, as `torchtitan_main_...`."""

import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import types

from documents import blocks
from frameworks import EOD, need, run_checks, take

if __name__ == "__main__":
    need("torchtitan", "torch", "torchtitan", "tyro", "spmd_types", "torch_checkpointing", "tensorboard")
import torch  # noqa: E402
import torchtitan.tools.utils  # noqa: E402
from torch.distributed.fsdp import FSDPModule  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, create_mask  # noqa: E402

NOTHING = types.SimpleNamespace(total_memory=2**33)
torchtitan.tools.utils.device_type = "cpu"
torchtitan.tools.utils.device_module = types.SimpleNamespace(**{
    **vars(torch.cpu), "current_device": lambda: 0, "get_device_name": lambda _: "CPU", "memory_stats": lambda _: {},
    "get_device_properties": lambda _: NOTHING, "reset_peak_memory_stats": lambda: None, "empty_cache": lambda: None})
import torchtitan.models.common.attention as attention  # noqa: E402
from torchtitan.components.tokenizer import BaseTokenizer  # noqa: E402
from torchtitan.config import ConfigManager  # noqa: E402
from torchtitan.models.llama3 import config_registry  # noqa: E402

import tokmap  # noqa: E402
import tokmap.torchtitan  # noqa: E402

LENGTH, N_ROWS, SEED = 32, 8, 3  # N_ROWS: of a step of all ranks
IS_MAIN = importlib.util.find_spec("torchtitan.components.dataloader") is None


def attend(q, k, v, *, score_mod, block_mask, scale, enable_gqa, **_):
    mask = create_mask(block_mask.mask_mod, len(q), 1, q.shape[2], q.shape[2], device="cpu")
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=enable_gqa), None


attention.FlexAttention._compiled_flex_attn = attend
attention._compiled_create_block_mask = create_block_mask


class NoTokenizer(BaseTokenizer):
    @dataclasses.dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass

    def __init__(self, config, tokenizer_path):
        super().__init__()

    encode = decode = get_vocab_size = None


# ---- Runs of the Trainer ----

def run_rank(folder, name, n_steps, kill_at, dataloader=tokmap.torchtitan.DataLoader):
    """Trains, and writes a line of loss, norm and rows for each step."""
    rank, n_ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    config = config_registry.llama3_debugmodel()
    config.model_spec.model.layers = config.model_spec.model.layers[:1]
    config.tokenizer, config.dump_folder = NoTokenizer.Config(), str(folder / name)
    config.dataloader = dataloader.Config(dataset_path=str(folder / "train"), seed=SEED)
    values = {"seq_len": LENGTH, "local_batch_size": 2, "global_batch_size": N_ROWS}
    if IS_MAIN:
        values = {"max_context_length": LENGTH, "num_tokens_per_microbatch_per_dp_rank": 2 * LENGTH,
                  "num_tokens_per_train_step": N_ROWS * LENGTH}
    for field, value in {**values, "steps": n_steps, "disable_cuda_graphs": True}.items():
        setattr(config.training, field, value)
    config.debug.seed = 1
    config.training.mixed_precision_param = "float32"
    config.lr_scheduler.min_lr_factor, config.lr_scheduler.warmup_steps = 1.0, 0  # it depends on the number of steps
    config.checkpoint.enable, config.checkpoint.interval = True, 4
    trainer = config.build()
    for module in trainer.model_parts[0].modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)  # what Gloo can do
    rows, batches = [], trainer.batch_generator

    def noted(iterable):
        for found, labels in batches(iterable):
            rows.append([array.view(-1, LENGTH).tolist() for array in (found["input"], found["positions"], labels)])
            yield found, labels

    def log(step, loss, max_loss, norm, extra_metrics=None):
        with open(folder / f"{name}.{n_ranks}.{rank}", "a") as lines:
            lines.write(json.dumps([step, float(loss), norm, rows]) + "\n")
        rows.clear()
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    trainer.batch_generator, trainer.metrics_processor.log = noted, log
    trainer.train()
    trainer.close()  # as torchtitan.train does: Python 3.13 would wait at its end for the thread that removes old checkpoints


def train(folder, name, n_ranks, n_steps=10, kill_at=None, script=__file__, more=()):
    """{step: (loss, norm)}, and {step: its rows in their order, each as inputs, positions, labels}. The script calls
    run_rank with what it is given."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={n_ranks}", "--log-dir",
               folder / "log", script, json.dumps([str(folder), name, n_steps, kill_at, *more])]
    for rank in range(n_ranks):
        (folder / f"{name}.{n_ranks}.{rank}").unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (done.returncode == 0) == (kill_at is None), done.stderr[-3000:]
    ranks = [[json.loads(line) for line in (folder / f"{name}.{n_ranks}.{rank}").read_text().splitlines()]
             for rank in range(n_ranks)]
    losses, rows = {}, {}
    for entries in zip(*ranks):
        step = entries[0][0]
        losses[step] = entries[0][1:3]
        rows[step] = [list(row) for parts in zip(*[entry[3] for entry in entries]) for part in parts for row in zip(*part)]
    return losses, rows


def truth_of(folder, n_steps, first=0):
    """The rows of steps after the first ones, one after another."""
    loader = tokmap.Loader(folder / "train", LENGTH, 1, seed=SEED, rows=tokmap.Rows(mask_labels=True),
                           outputs=("inputs", "position_ids", "labels"))
    loader.seek(first * N_ROWS)
    return [[array[0].tolist() for array in batch] for batch in take(n_steps * N_ROWS, loader)]


def a_run_that_was_killed_continues(folder):
    losses, rows = train(folder, "whole", 2)
    assert len(losses) == 10 and sum(rows.values(), []) == truth_of(folder, 10)
    before, _ = train(folder, "killed", 2, kill_at=7)
    assert max(before) == 7 and (folder / "killed/checkpoint/step-4").exists()
    again, rows = train(folder, "killed", 2)
    assert min(again) == 5 and {**before, **again} == losses and all(before[step] == again[step] for step in (5, 6, 7))
    assert sum(rows.values(), []) == truth_of(folder, 6, 4)


def a_checkpoint_continues_with_another_degree(folder):
    losses, _ = train(folder, "two", 2, 17)
    train(folder, "run", 2, 10)
    more, first = train(folder, "run", 1, 13)
    last, rows = train(folder, "run", 4, 17)
    torch.testing.assert_close([*more.values(), *last.values()], [losses[step] for step in range(11, 18)],
                               rtol=1e-3, atol=1e-3)
    assert sum([*first.values(), *rows.values()], []) == truth_of(folder, 7, 10)


# ---- The data alone ----

def build(config, length, n_rows):
    """As a Trainer and a Validator do."""
    sizes = ({"max_context_length": length, "num_tokens_per_batch": n_rows * length} if IS_MAIN else
             {"seq_len": length, "local_batch_size": n_rows, "snapshot_every_n_steps": 1})
    return config.build(dp_world_size=1, dp_rank=0, tokenizer=None, **sizes)


def batches_of(folder, n_rows=4, **fields):
    config = tokmap.torchtitan.DataLoader.Config(**{"dataset_path": str(folder / "short"), "seed": SEED, **fields})
    return build(config, LENGTH, n_rows)


def write_short(folder, name="short"):
    with tokmap.Writer(folder / name, vocab_size=257) as w:
        for n in range(1, 300):
            w.document([n % 5] * (n % 50) + [EOD])


def masks_are_those_of_the_documents(folder):
    write_short(folder)
    config = config_registry.llama3_debugmodel().model_spec.model
    config.layers = config.layers[:1]
    model = config.build()
    for n_rows, windows, align in ((1, "concat", 1), (4, "concat", 1), (1, "best_fit", 1), (4, "best_fit", 1),
                                   (4, "best_fit", 4), (4, "within_document", 1)):
        options = {"windows": windows, "max_epochs": 1, "rows": tokmap.Rows(align=align)}
        loader = tokmap.Loader(folder / "short", LENGTH, n_rows, seed=SEED, framework="torch", windows=windows, max_epochs=1,
                               rows=tokmap.Rows(align=align, mask_labels=True),
                               outputs=("inputs", "document_ids", "labels", "cu_seqlens"))
        n = 0
        for (found, labels), wanted in zip(batches_of(folder, n_rows, options=options), loader, strict=True):
            assert list(found) == ["input", "positions"] and (found["input"].ndim == 1) == IS_MAIN
            assert torch.equal(found["input"].view(n_rows, LENGTH), wanted.inputs)
            assert torch.equal(labels.view(n_rows, LENGTH), wanted.labels) and labels.shape == found["positions"].shape
            ids = wanted.document_ids
            if IS_MAIN:  # one row after another
                ids = (ids + LENGTH * torch.arange(n_rows)[:, None]).view(1, -1)
            n_masks, length = ids.shape
            masks = model.get_attention_masks(found["positions"])
            got = create_mask(masks.mask_mod, n_masks, 1, length, length, device="cpu")[:, 0]
            assert torch.equal(got, torch.ones(length, length, dtype=torch.bool).tril() & (ids[:, None] == ids[:, :, None]))
            lengths = attention.create_varlen_metadata_for_document(found["positions"])
            assert torch.equal(lengths.cu_seq_q, wanted.cu_seqlens) and lengths.max_q == wanted.max_seqlen
            n += 1
        assert n > 20
    whole, plain = batches_of(folder, documents=False), tokmap.Loader(folder / "short", LENGTH, 4, seed=SEED)
    for (found, labels), batch in zip(take(9, whole), plain):
        assert labels.view(4, -1).tolist() == batch.labels.tolist()
        assert (found["positions"].view(4, -1) == torch.arange(LENGTH)).all()


def the_command_line_changes_the_recipe(folder):
    text = next(text for title, _, text in blocks("frameworks.md") if title == "torchtitan")
    (folder / "runs.py").write_text(text)
    write_short(folder)
    sys.path.insert(0, str(folder))
    name = re.search(r"def (\w+)", text)[1]
    config = ConfigManager().parse_args(["--module=runs", f"--config={name}", "--dataloader.no-documents",
                                         f"--dataloader.dataset_path={folder / 'short'}"])
    assert config.dataloader.seed == 1 and json.dumps(config.to_dict()["dataloader"]) and not config.dataloader.documents
    assert isinstance(build(config.dataloader, 64, 2), tokmap.torchtitan.DataLoader)


def what_does_not_fit_is_refused(folder):
    write_short(folder)
    wrong_ones = [{"dataset_path": None}, {"sources": "x"}, {"options": {"ranks": tokmap.Ranks(cp_size=2)}},
                  {"options": {"rows": tokmap.Rows(ignore_index=-1)}}] + [{"dataset": "c4"}] * (not IS_MAIN)
    for wrong in wrong_ones:
        try:
            batches_of(folder, **wrong)
        except ValueError:
            continue
        raise AssertionError(wrong)
    for name in ("infinite", "repeat"):  # a Validator sets one of them
        ends = batches_of(folder, first_sample=20, **{name: False})
        n = len(list(ends))
        assert n == tokmap.Loader(folder / "short", LENGTH, 1, max_epochs=1).n_samples // 4 - 5 and not list(ends)
    ends.close()
    for n_tokens in (LENGTH - 1, 2 * LENGTH + 1):
        try:
            tokmap.torchtitan.DataLoader.Config(dataset_path=str(folder / "short")).build(
                dp_world_size=1, dp_rank=0, tokenizer=None, max_context_length=LENGTH, num_tokens_per_batch=n_tokens)
        except ValueError as error:
            assert f"num_tokens_per_batch is {n_tokens}: must be a multiple of max_context_length, {LENGTH}" in str(error)
            continue
        raise AssertionError(n_tokens)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        place, *arguments = json.loads(sys.argv[1])
        run_rank(pathlib.Path(place), *arguments)
        sys.exit()
    status, checkout = run_checks("torchtitan_main_" if IS_MAIN else "torchtitan_"), os.environ.get("TORCHTITAN_MAIN")
    if checkout and not IS_MAIN:
        path = os.pathsep.join([checkout, os.environ.get("PYTHONPATH", "")])
        status = subprocess.run([sys.executable, *sys.argv], env={**os.environ, "PYTHONPATH": path}).returncode or status
    sys.exit(status)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_three_paths.py [--out FILE] - one run through three data paths: Megatron-core, torchtitan, and a loop over a
Loader. A state moves from one to the next, with other ranks and rows of a step. All rows are those of one Loader that was
not interrupted, and so are the losses of torchtitan's Trainer, on the CPU.

With --out, 1,000,000 rows and 100 steps, and a result file for bench/results.

Megatron-core's wheel has no sampler, so its arithmetic is here: ranks take consecutive parts of a step, and begin after the
samples that were consumed."""

import argparse
import json
import logging
import pathlib
import sys
import warnings
from dataclasses import dataclass

import check_torchtitan
from frameworks import EOD, ROOT, need, run_checks

if __name__ == "__main__":
    need("three_paths", "torchtitan", "megatron.core")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import numpy as np  # noqa: E402
import torch  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDatasetConfig  # noqa: E402
from torchtitan.components.dataloader import BaseDataLoader  # noqa: E402

import tokmap  # noqa: E402
import tokmap.megatron  # noqa: E402
import tokmap.torchtitan  # noqa: E402

SEED = check_torchtitan.SEED
OUTPUTS = ("inputs", "position_ids", "labels")


class Tokenizer:
    vocab_size, eod = 257, EOD
    unique_identifiers = {"class": "none"}


# ---- The three paths: batches of inputs, positions and labels of a rank, from a sample on ----

def megatron_batches(sources, length, n_rows, rank, n_ranks, consumed):
    config = GPTDatasetConfig(random_seed=SEED, sequence_length=length, blend=None, split="1", tokenizer=Tokenizer(),
                              reset_position_ids=True, reset_attention_mask=False, eod_mask_loss=True,
                              create_attention_mask=False)
    dataset = tokmap.megatron.GPTDataset(sources, config, max_epochs=1000)
    while True:
        first = consumed + rank * n_rows
        rows = [dataset[i] for i in range(first, first + n_rows)]
        consumed += n_rows * n_ranks
        inputs, positions, labels, counts = (torch.stack([row[key] for row in rows])
                                             for key in ("tokens", "position_ids", "labels", "loss_mask"))
        yield inputs, positions, labels.masked_fill(counts == 0, -100)


def titan_batches(sources, length, n_rows, rank, n_ranks, consumed):
    config = tokmap.torchtitan.DataLoader.Config(sources=sources, seed=SEED, first_sample=consumed)
    loader = config.build(dp_world_size=n_ranks, dp_rank=rank, seq_len=length, local_batch_size=n_rows, tokenizer=None)
    for found, labels in loader:
        yield found["input"], found["positions"], labels, loader.state_dict()


def make_loader(sources, length, n_rows, rank=0, n_ranks=1):
    return tokmap.Loader(sources, length, n_rows, seed=SEED, rows=tokmap.Rows(mask_labels=True), outputs=OUTPUTS,
                         framework="torch",
                         ranks=tokmap.Ranks(rank=rank, n_ranks=n_ranks))


def loop_batches(sources, length, n_rows, rank, n_ranks, state):
    loader = make_loader(sources, length, n_rows, rank, n_ranks)
    loader.load_state_dict(state)
    return map(tuple, loader)


def state_at(sources, length, sample):
    """What consumed samples are as a state."""
    loader = make_loader(sources, length, 1)
    loader.seek(sample)
    return loader.state_dict()


# ---- Rows ----

def steps_of(ranks, n_steps):
    """The rows of each step, of all ranks."""
    for _ in range(n_steps):
        parts = [next(rank) for rank in ranks]
        yield [torch.cat([part[i] for part in parts]) for i in range(3)], parts[0][3:]


def compare_rows(folder, n_rows):
    """[(path, ranks, rows, rows that differ)] for a multiple of 16 rows."""
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        with tokmap.Writer(folder / name, vocab_size=257, eod_id=EOD) as w:
            for _ in range(6000):
                w.document([*rng.integers(0, 256, rng.integers(0, 2000)), EOD])
    sources, length, third = [(folder / "a", 0.7), (folder / "b", 0.3)], 64, n_rows // 3 // 96 * 96
    truth, found = make_loader(sources, length, 1), []

    def run(path, ranks, n_steps):
        n, n_wrong, more = 0, 0, ()
        for step, more in steps_of(ranks, n_steps):
            wanted = [torch.cat(parts) for parts in zip(*(next(truth) for _ in range(len(step[0]))))]
            n += len(step[0])
            n_wrong += int(sum((a != b).any(1) for a, b in zip(step, wanted)).bool().sum())
        found.append((path, len(ranks), n, n_wrong))
        return more

    run("Megatron-core", [megatron_batches(sources, length, 8, rank, 4, 0) for rank in range(4)], third // 32)
    (state,) = run("torchtitan", [titan_batches(sources, length, 16, rank, 3, third) for rank in range(3)], third // 48)
    state = json.loads(json.dumps(state))
    run("a loop", [loop_batches(sources, length, 8, rank, 2, state) for rank in range(2)], (n_rows - 2 * third) // 16)
    return found


# ---- Steps of torchtitan's Trainer ----

class OtherPath(BaseDataLoader):
    """Megatron-core's path or that of a loop in torchtitan's Trainer."""

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        seed: int = 0

    def __init__(self, config, *, dp_world_size, dp_rank, seq_len, local_batch_size, **_):
        self.place = config.dataset_path, seq_len, local_batch_size, dp_rank, dp_world_size
        self.sample = 0

    def __iter__(self):
        for inputs, positions, labels in self.batches():
            self.sample += self.place[2] * self.place[4]
            yield {"input": inputs, "positions": positions.long()}, labels

    def state_dict(self):
        return state_at(*self.place[:2], self.sample)

    def load_state_dict(self, state):
        self.sample = state["sample"]


class MegatronPath(OtherPath):
    @dataclass(kw_only=True, slots=True)
    class Config(OtherPath.Config):
        pass

    def batches(self):
        return megatron_batches(*self.place, self.sample)


class LoopPath(OtherPath):
    @dataclass(kw_only=True, slots=True)
    class Config(OtherPath.Config):
        pass

    def batches(self):
        return loop_batches(*self.place, state_at(*self.place[:2], self.sample))


PATHS = {"Megatron-core": MegatronPath, "torchtitan": tokmap.torchtitan.DataLoader, "a loop": LoopPath}


def compare_losses(folder, n_steps):
    """[(path, steps, steps whose loss or norm of gradients differs in a bit)]"""
    def train(name, n, path):
        return check_torchtitan.train(folder, name, 2, n, script=__file__, more=[path])[0]

    truth, found = train("whole", n_steps, "torchtitan"), []
    ends = (n_steps // 3, n_steps * 2 // 3, n_steps)
    for path, first, end in zip(PATHS, (0, *ends), ends):
        losses = train("moved", end, path)
        assert list(losses) == [*range(first + 1, end + 1)]
        found.append((path, len(losses), sum(losses[step] != truth[step] for step in losses)))
    return found


def all_rows_are_those_of_one_loader(folder):
    found = compare_rows(folder, 9600)
    assert sum(row[2] for row in found) == 9600 and not any(row[3] for row in found), found


def losses_are_those_of_one_path(folder):
    found = compare_losses(folder, 9)
    assert [row[1:] for row in found] == [(3, 0)] * 3, found


def write_result(folder, out):
    sys.path.append(str(ROOT / "bench/scale"))
    from frameworks import write_text
    from rows import finish, row

    write_text(folder)
    found = []
    for path, n_ranks, n, n_wrong in compare_rows(folder, 1000000):
        found += [row("paths", name, "number", [value], path) for name, value in (
            ("ranks", n_ranks), ("rows", n), ("rows that differ", n_wrong))]
    for path, n, n_wrong in compare_losses(folder, 100):
        found += [row("paths", "training steps", "number", [n], path),
                  row("paths", "losses or gradients that differ", "number", [n_wrong], path)]
    finish(found, "check_three_paths.py", out)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1].startswith("["):
        place, *arguments, path = json.loads(sys.argv[1])
        check_torchtitan.run_rank(pathlib.Path(place), *arguments, PATHS[path])
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out")
    if parser.parse_args().out:
        import tempfile

        with tempfile.TemporaryDirectory() as name:
            write_result(pathlib.Path(name), parser.parse_args().out)
        sys.exit()
    sys.exit(run_checks("three_paths_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards and places of the stream for the Trainer, with stand-ins for datasets, torch and transformers.
tests/frameworks/check_huggingface.py tries the real ones."""

import sys
import types

from package import raises
from ref_protocol import run_in_folders

import tokmap


class Stream:
    """datasets.IterableDataset."""

    def __init__(self, ex_iterable):
        self._ex_iterable = ex_iterable
        self._prepare_ex_iterable_for_iteration()

    def _prepare_ex_iterable_for_iteration(self):
        self._state_dict = {"examples_iterable": self._ex_iterable._init_state_dict()}

    def __iter__(self):
        return (row for _, row in self._ex_iterable)


def add_module(name, **names):
    module = sys.modules[name] = types.ModuleType(name)
    vars(module).update(names)
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)


WORKER = [None]
add_module("datasets", IterableDataset=Stream)
add_module("datasets.iterable_dataset", _BaseExamplesIterable=object)
add_module("torch")
add_module("torch.utils")
add_module("torch.utils.data", get_worker_info=lambda: WORKER[0])
add_module("torch.distributed", is_available=lambda: False)
add_module("transformers", TrainerCallback=object)
from tokmap._frameworks import hf_stream  # noqa: E402


def prepare(folder):
    with tokmap.Writer(folder / "p", 1000) as writer:
        for i in range(60):
            writer.document([i] * (8 + (i == 59)))  # a row has 8 ids, and the label after them


def firsts(stream, n):
    """The numbers of the first n samples; row i of the data has only the id i."""
    return [row["input_ids"][0] for row, _ in zip(stream, range(n))]


def stream_of(folder, **options):
    return hf_stream.IterableDataset(folder / "p", 9, shuffle="none", max_epochs=1, **options)


def shards_take_turns(folder):
    whole = firsts(stream_of(folder), 60)
    assert whole == list(range(60))
    for n in (1, 2, 3, 4):
        shards = [stream_of(folder).shard(n, i) for i in range(n)]
        assert [firsts(one, 10) for one in shards] == [whole[i::n][:10] for i in range(n)]
    for outer in range(2):  # a shard of a shard, as of nodes and processes
        inner = [stream_of(folder).shard(2, outer).shard(3, i) for i in range(3)]
        assert [firsts(one, 5) for one in inner] == [whole[outer::2][i::3][:5] for i in range(3)]
    WORKER[0] = object()
    try:
        rows = stream_of(folder)._ex_iterable
        assert rows.shard_data_sources(1, 0).options.ranks.n_ranks == 1
        assert "num_workers" in str(raises(ValueError, rows.shard_data_sources, 2, 0))
    finally:
        WORKER[0] = None


def a_checkpoint_says_where_the_data_go_on(folder):
    data = stream_of(folder).shard(2, 0)
    callback = hf_stream.Callback(data)
    loader = types.SimpleNamespace(dataset=data, batch_size=3, collate_fn=lambda rows: rows[0])
    arguments = types.SimpleNamespace(gradient_accumulation_steps=2)
    state = types.SimpleNamespace(stateful_callbacks={}, global_step=0, max_steps=5)
    callback.on_train_begin(arguments, state, None, train_dataloader=loader)
    for step in (1, 2, 3):
        callback.on_step_end(arguments, state, None)
        found = state.stateful_callbacks["tokmap"]
        assert found["sample"] == 12 * step, found  # 2 ranks, 3 rows, 2 batches a step
        again = stream_of(folder)
        again.load_state_dict(found)
        assert firsts(again, 4) == list(range(12 * step, 12 * step + 4))
    state.max_steps, state.stateful_callbacks = 6, {}
    assert "60" in str(raises(ValueError, callback.on_train_begin, arguments, state, None, train_dataloader=loader))


sys.exit(run_in_folders("hf_stream_", prepare=prepare))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Samples as a source of Grain: the order is that of the loader, and get_state is exact."""

import sys

from frameworks import need, run_checks, take

if __name__ == "__main__":
    need("grain", "grain")
import grain  # noqa: E402
from absl import flags  # noqa: E402

import tokmap  # noqa: E402

N_ROWS = 8


def truth_of(folder, n):
    loader = tokmap.Loader(folder / "train", 64, N_ROWS, seed=3)
    return [batch.inputs.tolist() for batch in take(n, loader)]


def lists(batches):
    return [batch["inputs"].tolist() for batch in batches]


def run_and_resume(make):
    """12 batches, and the same with a resume after 5 of them, when others had been read ahead."""
    whole = lists(take(12, iter(make())))
    iterator = iter(make())
    before = lists(take(5, iterator))
    state = iterator.get_state()
    take(3, iterator)
    again = iter(make())
    again.set_state(state)
    return whole, before + lists(take(7, again))


def a_map_dataset_has_the_order_of_the_loader(folder):
    samples = tokmap.Samples(folder / "train", 64, seed=3)
    assert isinstance(samples, grain.sources.RandomAccessDataSource)
    truth = truth_of(folder, 12)
    batches = grain.MapDataset.source(samples).batch(N_ROWS)
    threads = grain.ReadOptions(num_threads=8, prefetch_buffer_size=64)
    workers = grain.MultiprocessingOptions(num_workers=2)
    assert run_and_resume(lambda: batches.to_iter_dataset(threads)) == (truth, truth)
    assert run_and_resume(lambda: batches.to_iter_dataset().mp_prefetch(workers)) == (truth, truth)
    ranks = [lists(take(6, grain.MapDataset.source(samples)[rank::2].batch(N_ROWS // 2))) for rank in range(2)]
    assert [row for pair in zip(*ranks) for rows in zip(*pair) for row in rows] == \
        [row for batch in truth[:6] for row in batch]


def a_data_loader_resumes(folder):
    samples = tokmap.Samples(folder / "train", 64, seed=3)
    for n_workers in (0, 2):
        whole, resumed = run_and_resume(lambda: grain.DataLoader(
            data_source=samples, worker_count=n_workers, operations=[grain.transforms.Batch(N_ROWS)],
            sampler=grain.samplers.SequentialSampler(len(samples))))
        assert whole == resumed and (n_workers > 0 or whole == truth_of(folder, 12))


if __name__ == "__main__":
    flags.FLAGS(sys.argv[:1])  # which absl wants before Grain starts processes
    sys.exit(run_checks("grain_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps whose number of rows changes, with samples that are skipped, on ranks and by workers that take turns: compared
with a list of all steps, made one after the other."""

import os
import pickle
import random
import sys

from grouped import grouped
from package import raises
from ref_order import Skips
from ref_protocol import run_in_folders

import tokmap
from tokmap._loader.batch import save_at

N_SAMPLES = 400
N_RUNS = 3600 if os.environ.get("TOKMAP_LONG") == "all" else 100


def prepare(folder):
    with tokmap.Writer(folder / "a", vocab_size=65536) as w:
        w.document(range(N_SAMPLES * 4 + 1))


def loader_of(folder, batch_rows=4, **options):
    return tokmap.Loader(folder / "a", 4, batch_rows, **grouped(**{"max_epochs": 1, "outputs": ["inputs"], "io": "map",
                                                                   **options}))


def steps_of(samples, batch_rows, schedule, n_ranks):
    """The samples of each step of all ranks; the last one may be incomplete."""
    steps = []
    while samples:
        n_rows = [n for g, n in schedule if g <= samples[0]][-1:] or [batch_rows * n_ranks]
        steps.append((samples[:n_rows[0]], n_rows[0]))
        samples = samples[n_rows[0]:]
    return steps


def wanted_batches(steps, rank, n_ranks, drop_last):
    """The samples of each of this rank's batches, and the sample that the next step begins at."""
    for (samples, n_rows), after in zip(steps, [*steps[1:], ([N_SAMPLES], 0)]):
        share = n_rows // n_ranks
        own = samples[rank * share:(rank + 1) * share]
        if own and (len(samples) == n_rows or not drop_last):
            yield own, after[0][0]


def in_turns(loaders):
    """Until one has no batch; with drop_last it says so in every worker."""
    while True:
        for loader in loaders:
            batch = next(loader, None)
            if batch is None:
                return
            yield batch


def any_run(rng):
    n_ranks = rng.randint(1, 3)
    places = sorted(rng.sample(range(N_SAMPLES + 1), 2 * rng.randint(0, 3)))
    skip = list(zip(places[::2], places[1::2]))
    starts = sorted(rng.sample(range(1, N_SAMPLES), rng.randint(0, 4)))
    schedule = [(g, n_ranks * rng.randint(1, 12)) for g in starts]
    return n_ranks, {"batch_rows": rng.randint(1, 9), "skip": skip, "batch_schedule": schedule, "n_ranks": n_ranks,
                     "drop_last": rng.random() < 0.5}


def any_schedule_is_followed(folder):
    n_batches = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        n_ranks, options = any_run(rng)
        samples = list(Skips(options["skip"], N_SAMPLES).samples(0))
        steps = steps_of(samples, options["batch_rows"], options["batch_schedule"], n_ranks)
        if not steps or options["drop_last"] and len(steps[0][0]) < steps[0][1]:
            continue
        n_workers = rng.randint(1, 4)
        for rank in range(n_ranks):
            wanted = list(wanted_batches(steps, rank, n_ranks, options["drop_last"]))
            workers = [loader_of(folder, rank=rank, **options) for _ in range(n_workers)]
            for worker, loader in enumerate(workers if n_workers > 1 else []):
                loader._take_turns(worker, n_workers)
            found = list(in_turns(workers))
            assert [(batch.sample_ids.tolist(), batch.next_sample) for batch in found] == wanted, seed
            assert len(workers[0]) == len(wanted), seed
            plain = loader_of(folder, n_ranks=1, rank=0)
            for batch in found:
                for g, row in zip(batch.sample_ids.tolist(), batch.inputs.tolist()):
                    assert row[0] == plain.locate(g).first_token
            if found:  # from a state, without workers
                later = loader_of(folder, rank=rank, **options)
                k = rng.randrange(len(found))
                later.restore(found[k].state)
                for own, after in wanted[k + 1:]:
                    assert next(later).sample_ids.tolist() == own and later.sample == after, seed
                assert next(later, None) is None
                if options["drop_last"] and not options["batch_schedule"]:
                    with tokmap.Stage(loader_of(folder, rank=rank, **options), "host") as stage:
                        for (own, after), batch in zip(wanted, stage):
                            assert batch.first_sample == own[0] and stage.sample == after, seed
            n_batches += len(found)
    return "%d batches" % n_batches


def a_batch_of_a_gap_is_pickled(folder):
    batch = next(loader_of(folder, skip=[(2, 50), (51, 60)]))
    again = pickle.loads(pickle.dumps(batch))
    assert again.sample_ids.tolist() == batch.sample_ids.tolist() == [0, 1, 50, 60] and again.next_sample == 61
    assert "samples 0 to 60" in repr(again) and again.source_ids.tolist() == [0] * 4


def a_state_says_what_is_to_be_skipped(folder):
    plain, skipping = loader_of(folder), loader_of(folder, skip=[(10, 20), (30, 35)])
    assert save_at(skipping._own_handle, 10) == save_at(skipping._own_handle, 19) == save_at(skipping._own_handle, 20)
    for at in (9, 10, 15, 20, 34):
        plain.seek(at)
        assert "to be skipped" in str(raises(tokmap.MismatchError, skipping.restore, plain.state()))
        wanted = {10: 20, 15: 20, 34: 35}.get(at, at)
        amended = loader_of(folder, skip=[(10, 20), (30, 35)], amend=plain.state())
        assert amended.sample == wanted and next(amended).sample_ids[0] == wanted
        old = {"weights": [1], "max_epochs": 1, "skip": [(10, 20), (30, 35)]}
        skipping.seek(at)
        if at < 34:
            raises(tokmap.MismatchError, plain.restore, skipping.state())
            raises(tokmap.MismatchError, loader_of, folder, amend=skipping.state(), amend_from={**old, "skip": []})
            raises(tokmap.MismatchError, loader_of, folder, skip=[(40, 41)], amend=skipping.state())
        assert loader_of(folder, amend=skipping.state(), amend_from=old).sample == wanted
    skipping.seek(35)
    plain.restore(skipping.state())  # nothing is left of them


def what_makes_no_sense_is_refused(folder):
    for wrong, given in ((TypeError, 5), (TypeError, [5]), (TypeError, [(1, 2, 3)]), (TypeError, [(1, "2")]),
                         (tokmap.ArgumentError, [(-1, 4)]), (tokmap.ArgumentError, [(3, 0)]),
                         (tokmap.ArgumentError, [(9, 4), (9, 8)]), (tokmap.ArgumentError, [(9, 5)])):
        raises(wrong, loader_of, folder, n_ranks=2, rank=0, batch_schedule=given)
    for wrong, given in ((TypeError, 5), (TypeError, [(1,)]), (tokmap.ArgumentError, [(5, 5)]),
                         (tokmap.ArgumentError, [(1, 9), (8, 12)]), (tokmap.ArgumentError, [(390, N_SAMPLES + 1)])):
        raises(wrong, loader_of, folder, skip=given)
    raises(ValueError, tokmap.Stage, loader_of(folder, batch_schedule=[(10, 8)]), "host")
    raises(ValueError, tokmap.Samples, loader_of(folder, skip=[(1, 2)]))
    assert len(tokmap.Samples(loader_of(folder, batch_schedule=[(10, 8)]))) == N_SAMPLES


sys.exit(run_in_folders("python_steps_", prepare=prepare))

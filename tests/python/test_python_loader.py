#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Loader: each window once, in the order of the C library, on any number of ranks; the arrays of batches,
the state after each, what happens at the end, and what is refused."""

import copy
import ctypes
import gc
import logging
import os
import pickle
import subprocess
import sys
import types
import unittest.mock
import warnings
import weakref

from grouped import grouped
from package import ROOT, outputs_of, raises
import ref_writer
from ref_protocol import need, program, run_in_folders

import numpy as np
import tokmap
from tokmap._c import references as _references
from tokmap._loader import gather as _gather
from tokmap._loader import loader as _loader
from tokmap._loader import ranks as _ranks

ALL = ("inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")
WITH_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
WAYS = ("map", "direct", "populate", "read", "copy")


def write_numbers(prefix, first, n_tokens, document):
    with tokmap.Writer(prefix, vocab_size=65536) as w:
        for i in range(0, n_tokens, document):
            w.document(range(first + i, first + min(i + document, n_tokens)))


def prepare(folder):
    write_numbers(folder / "a", 0, 1001, 37)
    write_numbers(folder / "b", 5000, 501, 50)


def loader_of(folder, batch_rows=3, **options):
    return tokmap.Loader([folder / "a", folder / "b"], 10, batch_rows, **grouped(**{"seed": 7, **options}))


def each_window_comes_once_and_a_state_resumes(folder):
    with loader_of(folder, outputs=ALL) as loader:
        seen, samples = set(), []
        for _ in range(50):
            batch = next(loader)
            for row in batch.rows:
                first = (0, 5000)[row.dataset] + row.first_token
                assert list(row.tokens) == list(range(first, first + 11))
                assert row.cu_seqlens[0] == 0 and row.cu_seqlens[row.n_documents] == 10
                seen.add((row.epoch, row.window))
            samples += list(batch.sample_ids)
            assert batch.state == loader.state() and loader.sample == batch.next_sample
        assert seen == {(0, w) for w in range(150)} and samples == list(range(150))
        assert loader.epochs == [1] and next(loader).rows[0].epoch == 1
        state = batch.state
        loader.restore(state)
        assert loader.sample == 150 and loader.locate(151).window == next(loader).rows[1].window
    wanted = [loader_of(folder).locate(150 + i).window for i in range(12)]
    got = []
    for rank in range(2):
        again = loader_of(folder, batch_rows=6, rank=rank, n_ranks=2)
        again.load_state_dict({"state": state.hex(), "sample": 150})
        assert "tokmap.torch.data_loader" in str(raises(TypeError, lambda: again[0]))
        assert "which restore() takes" in str(raises(TypeError, again.load_state_dict, state))
        assert "which load_state_dict() takes" in str(raises(TypeError, again.restore, again.state_dict()))
        got += [row.window for row in next(again).rows]
        assert again.sample == 162 and again.state_dict()["sample"] == 162
    assert got == wanted
    raises(tokmap.MismatchError, loader_of(folder, seed=8).restore, state)
    raises(ValueError, again.restore, state[:-1])
    raises(tokmap.DamagedError, again.restore, state[:-1] + bytes([state[-1] ^ 1]))
    for io in WAYS:
        other = loader_of(folder, batch_rows=12, io=io, look_ahead=2)
        other.restore(state)
        rows = next(other).rows
        assert [row.window for row in rows] == wanted
        assert rows[5].tokens[0] == (0, 5000)[rows[5].dataset] + rows[5].first_token
        assert other.stats["io"] in (io, "populate")
    for name in ("empty", "nothing"):  # shards that have nothing
        write_numbers(folder / name, 0, 0, 1)
    paths = [folder / "empty", folder / "a", folder / "nothing", folder / "b"]
    rows = [batch.rows[0] for _, batch in zip(range(150), tokmap.Loader(paths, 10))]
    assert {row.dataset for row in rows} == {1, 3} and {len(row.tokens) for row in rows} == {11}


def expect_arrays(batch, length, pad_id, mask_labels):
    """The arrays of a batch against its rows."""
    said, longest = outputs_of(batch.rows, length, pad_id, mask_labels=mask_labels)
    said["cu_seqlens"].append(batch.n_rows * length)
    assert {name: array.ravel().tolist() for name, array in dict(batch).items()} == said and batch.max_seqlen == longest
    assert dict(batch).keys() == set(ALL) and list(batch)[0] is batch.inputs is batch["inputs"] is batch[0]


def arrays_hold_what_the_rows_say(folder):
    for windows in ("concat", "within_document"):
        for mask_labels in (False, True):
            for dtype in ("int64", "int32", np.int32, np.dtype("int64")):
                sources = [tokmap.Source(folder / "a", 0.5), tokmap.Source(folder / "b", 0.5, masked=True)]
                loader = tokmap.Loader(sources, 10, 7, outputs=ALL, dtype=dtype, windows=windows,
                                       rows=tokmap.Rows(pad_id=77, mask_labels=mask_labels))
                kept = []
                for _, batch in zip(range(30), loader):
                    assert batch.inputs.dtype == batch.labels.dtype == np.dtype(dtype)
                    assert batch.inputs.flags.c_contiguous and batch.labels.flags.c_contiguous
                    assert all(array.flags.writeable for array in batch)
                    expect_arrays(batch, 10, 77, mask_labels)
                    kept.append((batch, [array.copy() for array in batch]))
                for batch, arrays in kept:  # none was written again
                    assert all((a == b).all() for a, b in zip(batch, arrays))


def memory_is_used_again_only_when_nothing_refers_to_it(folder):
    def places(loader):
        return {array.__array_interface__["data"][0] for batch in loader for array in batch}

    for options in ({}, {"outputs": ["inputs"]}, {"dtype": "uint16", "contiguous": False}, {"outputs": ALL[:-1]}):
        found = places(loader_of(folder, max_epochs=1, **options))
        outputs = options.get("outputs", ["inputs", "labels"])
        most = sum(3 if name in ALL[2:5] else 2 for name in outputs)
        assert not WITH_GIL or len(found) <= most, (options, found)
    loader, truth = loader_of(folder, outputs=ALL), loader_of(folder, outputs=ALL)
    ways = (lambda a: a, lambda a: a[1:], lambda a: a.reshape(-1)[::2], memoryview, lambda a: a.base, lambda a: iter(a),
            lambda a: a.__array_struct__, lambda a: ctypes.c_char.from_buffer(a), lambda a: np.asarray(memoryview(a)),
            lambda a: a.data.cast("B"))
    held = []
    for i, batch, wanted in zip(range(200), loader, truth):
        name = ALL[i % len(ALL)]
        array = getattr(batch, name)
        assert all((a == b).all() for a, b in zip(batch, wanted)), i
        held.append((ways[i // len(ALL) % len(ways)](array), array.__array_interface__["data"][0], array.tobytes()))
        if i % 3:
            held.pop(0)
        del array, batch, wanted
        for _, address, data in held:
            assert ctypes.string_at(address, len(data)) == data, i
    assert len(held) > 60
    seen = weakref.ref(next(loader).inputs)
    assert seen() is None and seen() is not next(loader).inputs


# argv: where the package is, a dataset, and until when a tool keeps the frames that it sees. Prints what of held batches changed.
KEEPING_FRAMES = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
kept = []

def keep(frame, event, argument):
    kept.append(frame)
    return keep

sys.setprofile(keep) or sys.settrace(keep)
import tokmap
if sys.argv[3] == "import":
    sys.setprofile(None) or sys.settrace(None)
    kept.clear()
outputs = ["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
for chosen, more in ((outputs, {}), (outputs[:1], {}), (outputs[:2], {"rows": tokmap.Rows(contiguous=False)})):
    loader = tokmap.Loader(sys.argv[2], 16, 2, seed=1, outputs=chosen, **more)
    held = [next(loader) for _ in range(3)]
    wanted = [[array.copy() for array in batch] for batch in held]
    for _ in range(6):
        next(loader)
    print([name for batch, arrays in zip(held, wanted) for name, a in zip(chosen, arrays) if not np.array_equal(batch[name], a)])
"""


def a_tool_that_keeps_frames_changes_no_batch(folder):
    for until in ("import", "end"):
        said = subprocess.run([sys.executable, "-c", KEEPING_FRAMES, ROOT / "python", folder / "a", until], capture_output=True,
                              text=True, check=True).stdout
        assert said == "[]\n" * 3, (until, said)


def memory_is_not_used_again_where_counts_are_no_proof(folder):
    count = sys.getrefcount
    for wrong in (lambda of: 2, lambda of: 2**31, lambda of: 2 * count(of)):
        with unittest.mock.patch.object(_references, "count_references", wrong):
            assert _references.count_alone() == -1
    arrays = [np.empty(1), np.empty(1)], (np.empty(1),)
    second = arrays[0][1]
    alone = [count(array[i]) == _references.count_alone() for array, i in ((arrays[0], 0), (arrays[0], 1), (arrays[1], 0))]
    assert alone == [WITH_GIL, False, WITH_GIL] and second is not None


def other_layouts_hold_the_same(folder):
    for dtype in ("int32", "int64", "uint16"):
        views, truth = loader_of(folder, contiguous=False, dtype=dtype), loader_of(folder)
        for _, batch, wanted in zip(range(60), views, truth):
            assert (batch.inputs == wanted.inputs).all() and (batch.labels == wanted.labels).all()
            assert np.shares_memory(batch.inputs, batch.labels) and batch.inputs.dtype == dtype
            assert batch.inputs.shape == batch.labels.shape == (3, 10)
    for _, a, wanted in zip(range(60), loader_of(folder, outputs=["labels"]), loader_of(folder)):
        assert (a.labels == wanted.labels).all() and a.inputs is None
    bare = next(loader_of(folder, outputs=()))
    assert list(bare) == [] and len(bare.rows) == 3
    masked = tokmap.Loader(tokmap.Source(folder / "a", masked=True), 10, 2, rows=tokmap.Rows(mask_labels=True, ignore_index=-7))
    assert (next(masked).labels == -7).all()


def more_inputs_than_cu_seqlens_can_count_are_refused(folder):
    loader = loader_of(folder, outputs=ALL)
    loader._gatherer._row_length = 2**30
    assert "use fewer batch_rows" in str(raises(ValueError, lambda: next(loader)))


def what_came_earlier_never_changes(folder):
    for io in WAYS:
        with tokmap.open(folder / "a") as a:
            loader = tokmap.Loader(a, 10, 4, reading=tokmap.Reading(io=io, look_ahead=1),
                                   order=tokmap.Order(random_offset=True), outputs=ALL)
        kept = []
        for _ in range(40):  # the dataset is closed, the loader keeps it
            batch = next(loader)
            row = batch.rows[1]
            parts = [getattr(batch, name).tolist() for name in ALL[2:5]]
            assert parts[0][1] == row.position_ids.tolist()
            kept.append((batch, row, row.tokens.tolist(), parts, batch.state))
        late = next(loader)
        next(loader)
        assert "before the next batch" in str(raises(ValueError, lambda: late.rows))
        unasked = next(loader)
        loader.close()
        raises(ValueError, lambda: unasked.rows)
        end = unasked.state
        del loader
        gc.collect()
        for batch, row, tokens, parts, state in kept:
            assert [getattr(batch, name).tolist() for name in ALL[2:5]] == parts
            assert row.tokens.tolist() == tokens == [(row.first_token + i) % 1001 for i in range(11)], io
            assert row.position_ids.tolist() == parts[0][1] and batch.rows[1] is row and batch.state == state
        other = tokmap.Loader(folder / "a", 10, 4, order=tokmap.Order(random_offset=True))
        other.restore(end)
        assert other.sample == unasked.next_sample


def the_end_is_what_was_asked_for(folder):
    truth = [row for batch in tokmap.Loader([folder / "a", folder / "b"], 10, 1, max_epochs=1, seed=3)
             for row in batch.inputs.tolist()]
    assert len(truth) == 150
    for n_ranks in (1, 2, 3):
        for rows in (1, 4, 7, 64):
            for drop_last in (True, False):
                got, ends = {}, set()
                for rank in range(n_ranks):
                    loader = tokmap.Loader([folder / "a", folder / "b"], 10, rows, max_epochs=1, seed=3, ranks=tokmap.Ranks(rank=rank, n_ranks=n_ranks), order=tokmap.Order(drop_last=drop_last))
                    batches = list(loader)
                    assert len(batches) == len(loader), (n_ranks, rows, drop_last)
                    for batch in batches:
                        assert len(batch.rows if batch is batches[-1] and batch.n_rows < rows else batch.inputs) == \
                            batch.n_rows
                        got.update(zip(batch.sample_ids.tolist(), batch.inputs.tolist()))
                    ends.add(loader.state())
                    raises(StopIteration, next, loader)
                    if batches and batches[-1].next_sample == loader.sample:
                        assert batches[-1].state == loader.state()
                    loader.seek(0)
                    assert not batches or (next(loader).inputs == batches[0].inputs).all()
                n = 150 if not drop_last else 150 // (rows * n_ranks) * rows * n_ranks
                assert got == dict(enumerate(truth[:n])), (n_ranks, rows, drop_last)
                assert len(ends) == 1
    endless = loader_of(folder)
    assert endless.n_samples is None
    said = str(raises(TypeError, len, endless))
    assert "max_epochs" in said and "use tokmap.torch.IterableDataset" in said  # which asks for the length first


def an_error_in_the_last_step_loses_nothing(folder):
    """The end of the file cannot be read for a while."""
    options = {"shuffle": "none", "max_epochs": 1, "drop_last": False, "io": "read", "look_ahead": 1}
    truth = list(tokmap.Loader(folder / "a", 10, 9, **grouped(**options)))
    loader = tokmap.Loader(folder / "a", 10, 9, **grouped(**options))
    data = (folder / "a.bin").read_bytes()
    for batch in truth[:-1]:
        assert (next(loader).inputs == batch.inputs).all()
    state = loader.state()
    with open(folder / "a.bin", "r+b") as f:
        f.truncate(len(data) - 4)
    for _ in range(3):
        raises(tokmap.FileError, next, loader)
        assert loader.state() == state
    with open(folder / "a.bin", "r+b") as f:
        f.write(data)
    last = next(loader)
    assert (last.inputs == truth[-1].inputs).all() and last.n_rows == truth[-1].n_rows == 1
    assert last.state == truth[-1].state == loader.state()
    raises(StopIteration, next, loader)


def a_mixture_has_phases_and_ends_with_a_source(folder):
    sources = [tokmap.Source(folder / "a", 0.5, max_epochs=1), tokmap.Source([folder / "b"], 0.5)]
    loader = tokmap.Loader(sources, 10, order=tokmap.Order(phases={8: [0.25, 0.75]}))
    rows = [batch.rows[0].source for batch in loader]
    assert rows.count(0) == 100 and len(rows) == loader.n_samples
    assert rows[:8].count(0) == 4 and rows[8:28].count(0) == 5 and loader.epochs == [1, (len(rows) - 100) // 50]
    pairs = tokmap.Loader([(folder / "a", 0.5), (str(folder / "b"), 0.5)], 10, max_epochs=1)
    assert pairs.locate(5) == tokmap.Loader(sources, 10).locate(5)
    weights = [0.25, 0.75]
    loader = tokmap.Loader(sources, 10, order=tokmap.Order(phases={8: weights}))
    state, sources[0].weight, weights[0] = loader.state(), 5.0, 9.0
    assert pickle.loads(pickle.dumps(loader)).state() == state  # what the loader was made of was copied


def a_pickled_loader_continues_elsewhere(folder):
    loader = loader_of(folder, outputs=ALL, rank=1, n_ranks=2)
    next(loader)
    for other in (pickle.loads(pickle.dumps(loader)), copy.copy(loader)):
        loader.seek(6)
        for _ in range(5):
            mine, its = next(loader), next(other)
            back = pickle.loads(pickle.dumps(its))
            assert mine.state == its.state == back.state and mine.first_sample == back.first_sample
            assert all((a == b).all() and (a == c).all() for a, b, c in zip(mine, its, back))
            raises(ValueError, lambda: back.rows)
    kept = pickle.dumps(loader)
    for suffix in (".tmi", ".bin"):
        (folder / ("b" + suffix)).unlink()
    write_numbers(folder / "b", 7000, 501, 50)
    raises(tokmap.MismatchError, pickle.loads, kept)  # the data were replaced


RANKS = """
import sys
sys.path.insert(0, {python!r})
import logging
logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
import tokmap
for _ in range(2):
    loader = tokmap.Loader({path!r}, 10)
print(loader.rank, loader.n_ranks, tokmap.Loader({path!r}, 10, ranks=tokmap.Ranks(rank=4, n_ranks=5)).rank)
"""


def ranks_are_found(folder):
    assert _ranks.find_rank(tokmap.Ranks(rank=3, n_ranks=7)) == tokmap.Ranks(rank=3, n_ranks=7)
    raises(ValueError, _ranks.find_rank, tokmap.Ranks(rank=3))
    raises(tokmap.ArgumentError, loader_of, folder, rank=3, n_ranks=3)
    names = {name for _, *pair in _ranks._LAUNCHERS for name in pair} | {"SLURM_NTASKS"}
    clean = {name: value for name, value in os.environ.items() if name not in names}
    for found, expected in (({"RANK": "2", "WORLD_SIZE": "4"}, "2 4 4"), ({}, "0 1 4"),
                            ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"}, "1 3 4"),
                            ({"SLURM_PROCID": "0", "SLURM_NTASKS": "3"}, "0 1 4"),  # a batch script
                            ({"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "6"}, "5 6 4"),
                            ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "1 2 4"),
                            ({"RANK": "0", "WORLD_SIZE": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "3"},
                             "0 2 4"),
                            ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "SLURM_PROCID": "0",
                              "SLURM_STEP_NUM_TASKS": "1"}, "3 4 4")):  # mpirun within a step
        script = RANKS.format(python=str(ROOT / "python"), path=str(folder / "a"))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                              env={**clean, **found})
        assert done.stdout.strip() == expected, (found, done.stdout)
        lines = done.stderr.splitlines()
        assert len(lines) == (expected != "0 1 4"), lines  # said once
        assert not lines or lines[0].startswith("tokmap rank "), lines


def an_environment_that_says_no_rank_is_refused(folder):
    for wrong in ({"RANK": "2", "WORLD_SIZE": "2"}, {"RANK": "1"}, {"WORLD_SIZE": "2"}, {"RANK": "x", "WORLD_SIZE": "2"},
                  {"RANK": "-1", "WORLD_SIZE": "2"}, {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "2"},
                  {"SLURM_PROCID": "3"}, {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "two hundred", "RANK": "1"}):
        with unittest.mock.patch.dict(os.environ, wrong, clear=True):
            text = str(raises(tokmap.ArgumentError, loader_of, folder))
            assert "rank and n_ranks of Ranks" in text and any(f"{k}={v!r}" in text for k, v in wrong.items()), text
            assert loader_of(folder, rank=0, n_ranks=1).n_ranks == 1 and len(tokmap.Samples(folder / "a", 10)) > 0
    for alone in ({"RANK": "gold"}, {"RANK": "0"}, {"WORLD_SIZE": "1"}, {"RANK": "", "WORLD_SIZE": ""}):
        with unittest.mock.patch.dict(os.environ, alone, clear=True):
            assert _ranks.find_rank(tokmap.Ranks()) == tokmap.Ranks(rank=0, n_ranks=1), alone


def a_rank_that_was_found_too_early_is_refused(folder):
    world = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False, get_rank=lambda: 1,
                                  get_world_size=lambda: 4)
    found, given, device = loader_of(folder), loader_of(folder, rank=0, n_ranks=1), loader_of(folder, device="host")
    staged = tokmap.Stage(loader_of(folder), "host")
    elsewhere, begun = pickle.loads(pickle.dumps(found)), loader_of(folder)
    next(begun)
    with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(distributed=world)):
        early = loader_of(folder)
        world.is_initialized = lambda: True
        for call in (found, elsewhere, device, early, staged):
            text = str(raises(RuntimeError, next, call))
            assert "rank 0 of 1" in text and "rank 1 of 4" in text and "init_process_group" in text, text
        raises(RuntimeError, staged.fill)
        raises(RuntimeError, pickle.dumps, found)
        assert next(given).first_sample == 0 and next(loader_of(folder)).first_sample == 3 and next(begun).first_sample == 3
        world.get_rank, world.get_world_size = lambda: 0, lambda: 1
        assert next(found).first_sample == 0
    with unittest.mock.patch.dict(os.environ, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}):
        node = loader_of(folder)  # one process of a node, which starts others
        world.get_rank, world.get_world_size = lambda: 3, lambda: 8
        with unittest.mock.patch.dict(sys.modules, torch=types.SimpleNamespace(distributed=world)):
            assert "rank 0 of 2" in str(raises(RuntimeError, next, node))


def too_few_samples_for_a_step_are_named(folder):
    def warned(**options):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("default")
            for _ in range(2):
                batches = list(loader_of(folder, max_epochs=1, **options))
        return len(batches), [str(one.message) for one in found]

    for options, n_rows in (({"batch_rows": 151}, 151), ({"batch_rows": 51, "rank": 1, "n_ranks": 3}, 153)):
        n_batches, (text,) = warned(**options)  # once
        assert n_batches == 0 and "150 samples" in text and str(n_rows) in text and "drop_last=False" in text, text
        assert warned(**options, drop_last=False) == (1, [])
    assert warned(batch_rows=150) == (1, []) and warned(batch_rows=50, rank=2, n_ranks=3) == (1, [])


PROCESSES = """
import multiprocessing, sys
sys.path.insert(0, {python!r})
import tokmap

def take(loader, n, queue):
    queue.put([int(next(loader).inputs.sum()) for _ in range(n)])

def read(ds, queue):
    queue.put(int(ds[3].sum()))

if __name__ == "__main__":
    ds, loader = tokmap.open({path!r}), tokmap.Loader({path!r}, 10, 4)
    wanted = [int(next(loader).inputs.sum()) for _ in range(5)]
    loader.seek(0)
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        calls = [(read, (ds, queue), int(ds[3].sum()))]
        calls += [(take, (loader, 5, queue), wanted)] * (method != "fork")  # it cannot cross a fork
        for function, arguments, expected in calls:
            process = context.Process(target=function, args=arguments)
            process.start()
            assert queue.get() == expected
            process.join()
"""


def other_processes_continue(folder):
    script = folder / "processes.py"
    script.write_text(PROCESSES.format(python=str(ROOT / "python"), path=str(folder / "a")))
    done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr


ENDS = {
    "everything": "ds = tokmap.open(P); view = ds[1]; l = tokmap.Loader(P, 10); b = next(l); r = b.rows",
    "an unfinished writer": "w = tokmap.Writer(P + '-x', 100); w.document([1])",
    "a circle": "l = tokmap.Loader(P, 10); l.circle = [l, next(l)]",
    "kept by modules": "l = tokmap.Loader(P, 10); sys.keep = next(l); os.keep = tokmap.open(P)[0]; del l",
    "a reading thread": "l = tokmap.Loader(P, 10, reading=tokmap.Reading(io='read')); b = next(l)",
}


def an_interpreter_ends_silently(folder):
    for name, text in ENDS.items():
        for first in ("import tokmap, os, sys", "import numpy, tokmap, os, sys"):
            script = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\n{first}\nP = {str(folder / 'a')!r}\n{text}"
            done = subprocess.run([sys.executable, "-X", "dev", "-W", "error", "-c", script], capture_output=True,
                                  text=True)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (name, done.stderr)
    assert not list(folder.glob("a-x*"))


def torch_gets_tensors(folder):
    torch = need("torch")
    for options in ({}, {"dtype": torch.int32}, {"device": "cpu"}, {"device": torch.device("cpu")},
                    {"contiguous": False}):
        loader, truth = loader_of(folder, framework="torch", **options), loader_of(folder)
        for _, batch, wanted in zip(range(60), loader, truth):
            assert all(isinstance(x, torch.Tensor) for x in batch) and batch.state == wanted.state
            assert batch.inputs.dtype == batch.labels.dtype == options.get("dtype", torch.int64)
            assert batch.inputs.tolist() == wanted.inputs.tolist()
            assert batch.labels.tolist() == wanted.labels.tolist()
    for device in (None, "cpu"):
        names = [name for name in ALL if name != "loss_mask" or device is None]
        options = {"outputs": names, "windows": "within_document", "mask_labels": True}
        loader, truth = loader_of(folder, framework="torch", device=device, **options), loader_of(folder, **options)
        for _, batch, wanted in zip(range(60), loader, truth):
            assert {n: batch[n].tolist() for n in names} == {n: wanted[n].tolist() for n in names}
            assert batch.max_seqlen == wanted.max_seqlen and batch.first_sample == wanted.first_sample
        assert loader.sample == truth.sample and loader.state() == truth.state()
        loader.seek(0)
        assert next(loader).first_sample == 0
        loader.close()
    for way in (lambda t: t, lambda t: t[1:].view(-1)[::2], lambda t: t.detach().untyped_storage(), lambda t: t.numpy()):
        held = []
        for batch, wanted in zip(loader_of(folder, framework="torch", max_epochs=1), loader_of(folder, max_epochs=1)):
            held.append((way(batch.inputs), batch.inputs.data_ptr(), wanted.inputs.tobytes()))
            del batch, wanted
        assert all(ctypes.string_at(address, len(data)) == data for _, address, data in held)


def a_batch_after_one_of_inference_mode_can_be_trained_on(folder):
    torch = need("torch")
    empty = torch.empty
    for can_pin in (False, True):
        with unittest.mock.patch.object(_gather, "_can_pin", lambda torch: can_pin), \
                unittest.mock.patch.object(torch, "empty", lambda *shape, pin_memory, **options: empty(*shape, **options)):
            loader = loader_of(folder, framework="torch", outputs=ALL)
            with torch.inference_mode():
                next(loader)
            for batch in (next(loader), next(loader)):
                assert not any(array.is_inference() for array in batch)
                weights = torch.ones(10, requires_grad=True)
                (weights * batch.loss_mask * batch.position_ids).sum().backward()


def what_a_loader_cannot_take_is_refused(folder):
    a = folder / "a"
    for call in (lambda: loader_of(folder).seek(2**64 + 5), lambda: loader_of(folder).locate(2**64),
                 lambda: tokmap.Loader(a, 10, dtype="int16"), lambda: tokmap.Loader(a, 10, dtype=float),
                 lambda: tokmap.Loader(a, 10, dtype="uint16"),
                 lambda: next(tokmap.Loader(a, 10, dtype="uint32", rows=tokmap.Rows(contiguous=False))),
                 lambda: tokmap.Loader(a, 10, dtype="int32", rows=tokmap.Rows(ignore_index=2**31)),
                 lambda: tokmap.Loader(a, 10, framework="jax"),
                 lambda: tokmap.Loader(a, 10, rows=tokmap.Rows(contiguous=False, mask_labels=True)),
                 lambda: tokmap.Loader(a, 10, rows=tokmap.Rows(contiguous=False), windows="within_document"),
                 lambda: tokmap.Loader(a, 10, shuffle="x"), lambda: tokmap.Loader(a, 10, windows="x"),
                 lambda: tokmap.Loader(a, 10, reading=tokmap.Reading(io="x")), lambda: tokmap.Loader(a, 10, reading=tokmap.Reading(io=True)),
                 lambda: tokmap.Loader(a, 10, outputs=["x"]), lambda: tokmap.Loader([], 10),
                 lambda: tokmap.Loader(tokmap.Source(a, max_epochs=2**64), 10),
                 lambda: tokmap.Loader(tokmap.Source(a, masked=True), 10),
                 lambda: tokmap.Loader(a, 10, order=tokmap.Order(phases={8: [1, 2]})), lambda: tokmap.Loader(a, 2000),
                 lambda: tokmap.Loader(a, 10, device="host", order=tokmap.Order(drop_last=False))):
        raises(ValueError, call)
    assert "'full', 'none', 'block'" in str(raises(ValueError, tokmap.Loader, a, 10, shuffle="x"))
    raises(FileNotFoundError, tokmap.Loader, folder / "none", 10)
    for bad in (5, [5], [(a, 1.0), a], None, [None]):
        raises(TypeError, tokmap.Loader, bad, 10)
    raises(TypeError, lambda: tokmap.Loader(a, 10, order=tokmap.Order(phases=[(100, [1.0])])))
    raises(TypeError, lambda: tokmap.Loader(a, 10, outputs="loss_mask"))
    reading = tokmap.Loader(a, 10, 4, reading=tokmap.Reading(io="read", look_ahead=1))
    with open(folder / "a.bin", "r+b") as f:
        f.truncate(0)
    error = raises(OSError, lambda: [next(reading) for _ in range(9)])  # a few were read before
    assert isinstance(error, tokmap.FileError) and error.file == str(folder / "a.bin")
    reading.close()
    raises(ValueError, next, reading)
    assert "closed" in repr(reading)


def write_joined(place):
    """The same tokens, flat and in files of 1 to 300 tokens."""
    tokens, lengths, segments = list(range(3000)), [60] * 50, []
    for n in (300, 1, 2, 47, 300) * 4 + (5,) * 80:
        segments.append((f"cells/{len(segments)}.bin".encode(), n, b"header!!" * (len(segments) % 3)))
    ref_writer.write(str(place / "flat"), tokens, lengths, vocab=3000)
    ref_writer.write(str(place / "joined"), tokens, lengths, vocab=3000, segments=segments)


def a_joined_dataset_gives_the_rows_of_a_flat_one(folder):
    write_joined(folder)
    for io in WAYS:
        for options in ({}, {"random_offset": True}, {"windows": "within_document"}, {"shuffle": "block"}):
            options = {"outputs": ALL, "seed": 3, "io": io, **options}
            flat = tokmap.Loader(folder / "flat", 16, 5, **grouped(**options))
            joined = tokmap.Loader(folder / "joined", 16, 5, **grouped(**options))
            rows = []
            for _ in range(80):
                a, b = next(flat), next(joined)
                assert a.state == b.state and all((x == y).all() for x, y in zip(a, b))
                for one, other in zip(a.rows, b.rows):
                    assert list(one.tokens) == list(other.tokens) and one.first_token == other.first_token
                    assert list(one.cu_seqlens) == list(other.cu_seqlens) and not other.tokens.flags.writeable
                rows.append((b.rows[0], b.rows[0].tokens.tolist()))
            flat.seek(7)
            joined.restore(flat.state())
            assert (next(flat).inputs == next(joined).inputs).all()
            again = pickle.loads(pickle.dumps(joined))
            assert (next(again).inputs == next(joined).inputs).all()
            joined.close()
            del a, b, again, joined
            gc.collect()
            assert all(row.tokens.tolist() == tokens for row, tokens in rows)  # they stay valid
    os.rename(folder / "cells" / "4.bin", folder / "cells" / "away")
    joined = tokmap.Loader(folder / "joined", 16, 5, shuffle="none", max_epochs=1)
    error = raises(tokmap.FileError, list, joined)
    assert error.filename == str(folder / "cells" / "4.bin") and isinstance(error, FileNotFoundError)
    os.rename(folder / "cells" / "away", folder / "cells" / "4.bin")
    assert len(list(joined)) > 0  # it continues


def write_with(prefix, tokenizer):
    with tokmap.Writer(prefix, vocab_size=50257) as w:
        w.document(range(100))
        if tokenizer:
            w.set_metadata({"created_by": "tokmap", "tokenizer": tokenizer})


def tokenizers_are_mixed_only_if_asked(folder):
    write_with(folder / "x-gpt2", {"name": "gpt2.json", "file_xxh3": "0123456789abcdef", "unicode": "16"})
    write_with(folder / "x-bytes", {"name": "bytes"})
    write_with(folder / "gpt2", {"name": "moved.json", "file_xxh3": "0123456789abcdef", "unicode": "15"})
    write_with(folder / "adopted", None)
    a, b, same, adopted = (folder / name for name in ("x-gpt2", "x-bytes", "gpt2", "adopted"))
    for wrong in ([a, b], [adopted, a, same, b], folder / "x-*"):
        for door in (tokmap.open, tokmap.Dataset, lambda data, **options: tokmap.Loader(data, 9, **grouped(**options)),
                     lambda data, **options: tokmap.Loader([(data, 1), (same, 1)], 9, **grouped(**options)),
                     lambda data, **options: tokmap.Loader([tokmap.Source(data)], 9, **grouped(**options)),
                     lambda data, **options: tokmap.Samples(data, 9, **grouped(**options))):
            error = raises(tokmap.MismatchError, door, wrong)
            assert all(text in str(error) for text in ("x-gpt2.tmi", "x-bytes.tmi", "gpt2.json", "mixed_tokenizers")), error
            door(wrong, mixed_tokenizers=True)
    raises(tokmap.MismatchError, tokmap.Loader, [(a, 1), (b, 1)], 9)
    assert len(tokmap.open([a, same, adopted])) == 3
    tokmap.Loader([(a, 1), (same, 1), (adopted, 1)], 9)
    merge = [program("tokmap"), "merge", "-q", "-o", folder / "merged"]  # has the same rule
    assert subprocess.run([*merge, a, same]).returncode == 0
    refused = subprocess.run([*merge, "--force", a, b], capture_output=True, text=True)
    assert refused.returncode == 4 and "another tokenizer" in refused.stderr, refused
    mixed = tokmap.open(folder / "x-*", mixed_tokenizers=True)
    assert len(pickle.loads(pickle.dumps(mixed))) == 2 and len(mixed.shards[0]) == 1
    loader = tokmap.Loader(mixed, 9, reading=tokmap.Reading(mixed_tokenizers=True))
    next(loader)
    assert pickle.loads(pickle.dumps(loader)).state() == loader.state()


def an_interrupted_batch_comes_again(folder):
    loader, truth = loader_of(folder), loader_of(folder)
    wanted = [next(truth).inputs.tolist() for _ in range(2)]
    assert next(loader).inputs.tolist() == wanted[0]
    state = loader.state()
    with unittest.mock.patch.object(_loader, "Batch", side_effect=KeyboardInterrupt):  # right after the library's call
        raises(KeyboardInterrupt, next, loader)
    assert loader.state() == state and next(loader).inputs.tolist() == wanted[1]


def a_child_process_is_told(folder):
    loader = loader_of(folder)
    next(loader)
    pid = os.fork()
    if pid == 0:
        for call in (lambda: loader.epochs, lambda: loader.stats):
            assert "parent process" in str(raises(tokmap.ForkedError, call))
        try:
            next(loader)
        except tokmap.ForkedError as error:
            os._exit(0 if isinstance(error, RuntimeError) else 3)
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert next(loader).first_sample == 3


logging.getLogger("tokmap").setLevel(logging.WARNING)
sys.exit(run_in_folders("python_loader_", prepare=prepare))

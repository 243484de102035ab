#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Samples, and loaders that take turns: what the drop-in pieces are built on. It needs NumPy alone."""

import os
import pathlib
import pickle
import re
import sys
import threading
import warnings

import package
from grouped import grouped
from ref_protocol import run_in_folders

import numpy as np
import tokmap
from tokmap._frameworks.samples import Resumable
from tokmap._frameworks.tried import TRIED, minor, warn_of_untried

OUTPUTS = ("inputs", "labels", "position_ids", "loss_mask")


def prepare(folder):
    with tokmap.Writer(folder / "a", vocab_size=65536) as w:
        for i in range(0, 3001, 37):
            w.document(range(i, min(i + 37, 3001)))


def samples_are_the_rows_of_a_loader(folder):
    loader = tokmap.Loader(folder / "a", 10, 4, outputs=OUTPUTS, seed=5, ranks=tokmap.Ranks(rank=1, n_ranks=3), max_epochs=2)
    truth = list(tokmap.Loader(folder / "a", 10, 1, outputs=OUTPUTS, seed=5, max_epochs=2))
    for samples in (tokmap.Samples(loader), pickle.loads(pickle.dumps(tokmap.Samples(loader))),
                    tokmap.Samples(folder / "a", 10, outputs=OUTPUTS, seed=5, max_epochs=2)):
        assert len(samples) == len(truth) == 600
        for i in np.random.default_rng(1).permutation(600):
            found = samples[int(i)]
            assert list(found) == list(OUTPUTS)
            assert all((found[name] == truth[i][name][0]).all() for name in OUTPUTS)
    assert len(tokmap.Samples(folder / "a", 10)) == 300 and len(list(samples)) == 600
    for number in (-1, 600):
        try:
            samples[number]
        except IndexError as error:
            assert "600" in str(error)
            continue
        raise AssertionError(number)
    try:
        tokmap.Samples(tokmap.Loader(folder / "a", 10))
    except ValueError as error:
        assert "max_epochs" in str(error)
    else:
        raise AssertionError("without an end")


def the_first_samples_may_be_counted(folder):
    """As many epochs as that takes, unless max_epochs ends before."""
    truth = tokmap.Samples(folder / "a", 10, seed=5, max_epochs=3)
    loader = tokmap.Loader(folder / "a", 10, seed=5)
    for samples, n in ((tokmap.Samples(folder / "a", 10, seed=5, n_samples=700), 700), (tokmap.Samples(loader, n_samples=700), 700),
                       (tokmap.Samples(folder / "a", 10, seed=5, n_samples=700, max_epochs=2), 600),
                       (pickle.loads(pickle.dumps(tokmap.Samples(folder / "a", 10, seed=5, n_samples=0))), 0)):
        assert len(samples) == n and all((samples[i]["inputs"] == truth[i]["inputs"]).all() for i in range(n))
        try:
            samples[n]
        except IndexError:
            continue
        raise AssertionError(n)


class Named(tokmap.Samples):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.name = "of a subclass"


def a_subclass_is_pickled_with_its_attributes(folder):
    samples = Named(folder / "a", 10)
    found = pickle.loads(pickle.dumps(samples))
    assert found.name == samples.name and (found[7]["inputs"] == samples[7]["inputs"]).all()
    assert found._loader is not samples._loader


def what_a_loader_has_itself_is_not_given_beside_it(folder):
    loader = tokmap.Loader(folder / "a", 10, max_epochs=1)
    assert len(tokmap.Samples(loader, 10)) == 300
    for arguments, options in (((9,), {}), ((), {"seed": 3}), ((), {"max_epochs": 1})):
        try:
            tokmap.Samples(loader, *arguments, **grouped(**options))
        except TypeError as error:
            assert "beside a Loader" in str(error) and ([*options] or ["sequence_length"])[0] in str(error), error
            continue
        raise AssertionError(options)


def what_a_trainer_says_itself_cannot_be_in_its_options(folder):
    for options, words in (({"batch_rows": 3}, "batch_rows cannot be in options, because torchtitan"), ({"seed": 1, "ranks": None}, "seed, ranks")):
        error = package.raises(ValueError, Resumable()._open, folder / "a", (10, 4), None, options, ranks=tokmap.Ranks(), documents=True,
                               trainer="torchtitan")
        assert words in str(error), error


def a_ledger_is_refused(folder):
    ledger = folder / "run.ledger"
    for make in (lambda: tokmap.Samples(folder / "a", 10, ledger=ledger),
                 lambda: tokmap.Samples(tokmap.Loader(folder / "a", 10, max_epochs=1, ledger=ledger))):
        assert not ledger.exists()
        try:
            make()
        except ValueError as error:
            assert "leave it out" in str(error), error
            continue
        raise AssertionError("taken")


def threads_and_children_share_samples(folder):
    samples = tokmap.Samples(folder / "a", 10, seed=5)
    truth = [samples[i]["inputs"].tolist() for i in range(300)]
    found = [None] * 300

    def read(first):
        for i in range(first, 300, 8):
            found[i] = samples[i]["inputs"].tolist()

    threads = [threading.Thread(target=read, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == truth
    pid = os.fork()
    if pid == 0:
        os._exit(0 if [samples[i]["inputs"].tolist() for i in range(300)] == truth else 1)
    assert os.waitpid(pid, 0)[1] == 0


def loaders_that_take_turns_have_all_batches(folder):
    for options in (dict(max_epochs=1), dict(max_epochs=1, drop_last=False),
                    dict(max_epochs=1, drop_last=False, rank=1, n_ranks=2)):
        for first in (0, 8, 290):
            def loader_of():
                loader = tokmap.Loader(folder / "a", 10, 7, **grouped(seed=5, **options))
                loader.seek(first)
                return loader

            truth = list(loader_of())
            for n_workers in (1, 2, 3, 5):
                workers = [loader_of() for _ in range(n_workers)]
                for worker, loader in enumerate(workers):
                    loader._take_turns(worker, n_workers)
                batches = [list(loader) for loader in workers]
                assert sum(map(len, batches)) == len(truth)
                for i, wanted in enumerate(truth):
                    got = batches[i % n_workers][i // n_workers]
                    assert (got.inputs == wanted.inputs).all() and got.state == wanted.state


def a_version_that_was_not_tried_warns(folder):
    """By its minor number."""
    for name, version in (("torch", "99.0.1"), ("trl", TRIED["trl"] + ".99"), ("datasets", "0.1")):
        (folder / f"{name}-{version}.dist-info").mkdir()
        (folder / f"{name}-{version}.dist-info/METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warn_of_untried("torch", "trl", "datasets")
    finally:
        sys.path.remove(str(folder))
    assert [str(one.message) for one in found] == [f"torch 99.0.1 is newer than {TRIED['torch']}, the newest version that tokmap "
                                                   "was tested with"] and found[0].category is UserWarning, found


def the_newest_versions_that_were_tried_are_those_of_the_table(folder):
    root = pathlib.Path(__file__).resolve().parents[2]
    rows = re.findall(r"^\| ([\w-]+) \| (\S+) \| (\d\S*) \| 3", (root / "docs/frameworks.md").read_text(), re.MULTILINE)
    newest = {name: version for name, _, version in rows}
    assert set(TRIED) <= set(newest) and all(minor(newest[name]) == minor(version) for name, version in TRIED.items()), rows
    pinned = (root / "tests/frameworks/requirements.txt").read_text().split()
    assert all(f"{name}=={version}" in pinned for name, version, _ in rows), rows


sys.exit(run_in_folders("python_samples_", prepare=prepare))

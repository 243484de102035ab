#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.check_resume: it finds each planted fault, at the right step, and nothing in loaders that are right. docs/resume.md
shows what its programs print; `test_python_resume.py --write` writes it there. Its picture is of runs that are trained
here again."""

import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import package
import numpy as np
import ref_writer
from ref_protocol import expect, expect_equal, run_in_folders

import tokmap
import tokmap.typing


class Right:
    """Epochs of shuffled rows, with the interface of torchdata's StatefulDataLoader: a state that is taken after the last
    batch of an epoch gives an empty iteration first."""

    n_batches = 30

    def __init__(self, rank=0, n_ranks=1):
        self.epoch, self.at, self.share = 0, 0, slice(rank, None, n_ranks)

    def order(self):
        return random.Random(self.epoch).sample(range(1000), 8 * self.n_batches)

    def __iter__(self):
        while self.at < self.n_batches:
            rows = np.array(self.order()[8 * self.at:8 * self.at + 8])[self.share]
            self.at += 1
            yield {"input_ids": rows[:, None] * np.ones(4, np.int64), "more": [np.array(1), (rows, "text")]}
        self.epoch, self.at = self.epoch + 1, 0

    def state_dict(self):
        return {"epoch": self.epoch, "at": self.at}

    def load_state_dict(self, state):
        self.epoch, self.at = state["epoch"], state["at"]


class ReadsAhead(Right):
    """Its state counts the 5 batches that workers have read."""

    def state_dict(self):
        return {**super().state_dict(), "at": min(self.at + 5, self.n_batches)}


class BeginsAnew(Right):
    """The second resume is at the begin of its epoch: a loader that was resumed does not save its place."""

    was_resumed = False

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.was_resumed = True

    def state_dict(self):
        return {"epoch": self.epoch, "at": 0 if self.was_resumed else self.at}


class OtherOrder(Right):
    """After a resume it shuffles with another seed."""

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.order = lambda: random.Random(-1 - self.epoch).sample(range(1000, 2000), 8 * self.n_batches)


class EpochsOfTheTail(Right):
    """Epochs after a resumed one begin where that one was resumed."""

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.begin = self.at

    def __iter__(self):
        yield from super().__iter__()
        self.at = getattr(self, "begin", 0)


def kinds(found):
    return {one.kind for one in found.wrong}


def loaders_that_are_right(folder):
    for steps, resumes in ((200, 10), (40, 39), (2, 1)):
        found = tokmap.check_resume(Right, steps, resumes)
        expect(found.ok and "right: %d steps with %d resumes" % (steps, resumes) in str(found), str(found))
        expect_equal((found.n_steps, len(found.resumes), found.n_ranks), (steps, resumes, (1,) * (resumes + 1)), "what was done")
    other = tokmap.check_resume(Right, seed=1)
    expect(other.ok and other.resumes != tokmap.check_resume(Right).resumes == tokmap.check_resume(Right).resumes, "the seed")
    found = tokmap.check_resume(Right, ranks=(1, 2, 4))
    expect(found.ok and set(found.n_ranks) == {1, 2, 4}, str(found))
    expect(all(a != b for a, b in zip(found.n_ranks, found.n_ranks[1:])), str(found.n_ranks))


def each_planted_fault_is_found(folder):
    found = tokmap.check_resume(ReadsAhead)
    first = found.resumes[0]
    expect_equal(found.wrong[0], (first, first, first + 5, "skipped", 1), "the first fault")
    found = tokmap.check_resume(BeginsAnew)
    second = found.resumes[1]
    expect_equal(found.wrong[0], (second, second, second - second % 30, "repeated", 2), "the first fault")
    found = tokmap.check_resume(OtherOrder)
    expect_equal((found.wrong[0][:4], kinds(found)), ((first, first, None, "other"), {"other"}), "the first fault")
    expect("and %d more" % (len(found.wrong) - 20) in str(found), str(found))
    found = tokmap.check_resume(EpochsOfTheTail)
    expect_equal(found.wrong[0], (30, 30, 30 + first, "skipped", 1), "the first fault")
    expect("  30      30        %d: skipped %-10d  1, at step %d\n" % (30 + first, first, first) in str(found), str(found))
    expect("skipped %d, after resume 1" % first in found._repr_html_(), found._repr_html_())


def a_fault_on_other_ranks_is_found(folder):
    class Doubles(Right):
        def load_state_dict(self, state):
            self.share = slice(self.share.start // 2, None, self.share.step)
            super().load_state_dict(state)

    found = tokmap.check_resume(Doubles, ranks=(2, 4))
    expect_equal((found.wrong[0].step, kinds(found)), (found.resumes[0], {"other"}), str(found))
    text = package.raises(ValueError, tokmap.check_resume, lambda rank, n_ranks: Right(), ranks=(1, 2))
    expect("1 takes 8, 2 take 16" in str(text), str(text))


def a_loader_that_ends_is_compared_with_its_end(folder):
    class Once(Right):
        lost = 0

        def __iter__(self):
            return super().__iter__() if self.epoch == 0 else iter(())

        def load_state_dict(self, state):
            super().load_state_dict(state)
            self.n_batches = 30 - self.lost

    found = tokmap.check_resume(Once, resumes=4)
    expect(found.ok and found.n_steps == 30, str(found))
    Once.lost = 1
    expect_equal(tokmap.check_resume(Once, resumes=4).wrong[-1], (29, 29, None, "ended", 4), "a run that lacks its last batch")
    Once.lost = -2
    expect_equal(tokmap.check_resume(Once, resumes=4).wrong[-1][:4], (30, 30, None, "other"), "a run that goes on")


def what_is_not_the_fault_of_a_resume_is_said(folder):
    loaders = iter(range(100))

    class Random(Right):
        def order(self):
            return random.Random(self.number).sample(range(1000), 240)

        def __init__(self):
            super().__init__()
            self.number = next(loaders)

    expect("wrong at step 0, before any resume" in str(tokmap.check_resume(Random)), "other batches each time")

    class Touched(Right):
        def state_dict(self):
            found = super().state_dict()
            self.at += 1
            return found

    found = tokmap.check_resume(Touched)
    expect_equal((found.ok, found.wrong[0].step), (False, found.resumes[0]), "state_dict() takes a batch")


def what_cannot_be_checked_is_refused(folder):
    class Equal(Right):
        def order(self):
            return [7] * 240

    class Strange(Right):
        def __iter__(self):
            return iter([object()])

    class Short(Right):
        def __iter__(self):
            return super().__iter__() if self.epoch == 0 else iter(())

    for make, options, words in (
            (Right, {"steps": 1}, "at least 2"), (Right, {"resumes": 0}, "at least 1"), (Right, {"resumes": 200}, "less than"),
            (Right, {"ranks": ()}, "ranks"), (Right, {"ranks": (0, 1)}, "ranks"), (Equal, {}, "are equal"), (Strange, {}, "nothing to compare"),
            (lambda *ranks: Strange(), {"ranks": (1, 2)}, "no rows to compare"), (Short, {"resumes": 30}, "ended after 30 batches")):
        text = str(package.raises(ValueError, tokmap.check_resume, make, **options))
        expect(words in text, text)


def batches_are_equal_if_their_arrays_are(folder):
    """Arrays of NumPy, tensors, also in dicts and tuples; without them, numbers and texts."""
    class Tensor:
        def __init__(self, value, is_half=False):
            self.value, self.is_half = value, is_half

        def detach(self):
            return self

        cpu = detach

        def float(self):
            return Tensor(self.value)

        def __array__(self, dtype=None, copy=None):
            if self.is_half:
                raise TypeError("Got unsupported ScalarType BFloat16")
            return self.value

    def is_found(give):
        class Other(Right):
            def __iter__(self):
                while True:
                    self.at += 1
                    yield give(self.at)

            def load_state_dict(self, state):
                self.at = state["at"] + 1

        return tokmap.check_resume(Other, 20, 2).wrong[:1]

    for give in (lambda n: np.array(n), lambda n: (np.zeros(9), [{"a": np.array([n])}]), lambda n: Tensor(np.array([n])),
                 lambda n: {"a": Tensor(np.array([[n]]), True)}, lambda n: {"ids": [[0, n]]}, lambda n: ["text %d" % n],
                 lambda n: np.array([n, None], object), lambda n: np.zeros(n), lambda n: np.zeros(1, "u2" if n % 2 else "u4")):
        expect(is_found(give), str(give(1)))
    text = str(package.raises(ValueError, is_found, lambda n: (np.zeros(4), n)))
    expect("are equal" in text, "a number beside arrays counts")


def the_loaders_of_tokmap(folder):
    ref_writer.write(str(folder / "a"), [i * i % 251 for i in range(50000)], [500] * 100, vocab=256)

    def make(rank, n_ranks, **options):
        return tokmap.Loader(folder / "a", 64, 8 // n_ranks, seed=1, ranks=tokmap.Ranks(rank=rank, n_ranks=n_ranks), **options)

    every = tuple(name for name in tokmap.typing.Output.__args__ if name != "loss_weight")
    for options in ({}, {"windows": "best_fit", "outputs": every}, {"max_epochs": 2}):
        for ranks in ((1, 2, 4), (2,)):
            found = tokmap.check_resume(lambda rank, n_ranks: make(rank, n_ranks, **options), ranks=ranks)
            expect(found.ok, str(found))
        found = tokmap.check_resume(lambda: make(0, 1, **options))
        expect(found.ok, str(found))


PAGE = package.ROOT / "docs/resume.md"


def shown(folder):
    """The page with what its programs print, in a folder with a dataset."""
    os.mkdir(f"{folder}/data")
    ref_writer.write(f"{folder}/data/train", [i * i % 251 for i in range(50000)], [500] * 100, vocab=256)

    def with_output(match):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(match[1].replace('"data/', f'"{folder}/data/'), {})
        return f"```python\n{match[1]}```\n\n```\n{said.getvalue()}```\n"

    return re.sub(r"```python\n((?:(?!```).)*)```\n\n```\n.*?```\n", with_output, PAGE.read_text(), flags=re.DOTALL)


def the_page_shows_what_its_programs_print(folder):
    expect_equal(shown(folder), PAGE.read_text(), "docs/resume.md")


def the_picture_is_of_runs_that_can_be_trained_again(folder):
    """exp() of another processor may differ in its last digits."""
    done = subprocess.run([sys.executable, package.ROOT / "bench/wrong_resume.py"], stdout=subprocess.PIPE, check=True,
                          env={**os.environ, "PYTHONPATH": str(package.ROOT / "python")})
    committed = json.loads((package.ROOT / "bench/results/wrong-resume-computed.json").read_text())["rows"]
    trained = json.loads(done.stdout)["rows"]
    expect_equal([one["name"] for one in trained], [one["name"] for one in committed], "rows")
    for one, other in zip(trained, committed):
        expect(np.allclose(one["values"], other["values"], atol=1e-4), "other losses: %s" % one["name"])


if sys.argv[1:] == ["--write"]:
    with tempfile.TemporaryDirectory() as place:
        text = shown(place)
        PAGE.write_text(text)
    sys.exit()
sys.exit(run_in_folders("resume_"))

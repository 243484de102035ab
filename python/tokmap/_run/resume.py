# SPDX-License-Identifier: Apache-2.0
"""tokmap.check_resume: whether a loader that is saved and made again goes on with the right batches, whatever loader it is."""

import copy
import hashlib
import random
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .._c import html

_N_SHOWN = 20
_N_AFTER = 4  # a run goes on for fewer steps after a checkpoint before it is killed
_NOTHING = object()


class WrongStep(NamedTuple):
    """A step that did not get the batch that follows the one before. step: its number, from 0. expected, got: the numbers of
    these batches in the run without interruption. got is None if the batch is not one of that run, or if there was no
    batch. kind: "repeated", "skipped", "other", or "ended" if there was no batch. resume: how many resumes came before.

    After a wrong batch the one that follows it is expected, so that each fault is found once."""

    step: int
    expected: int
    got: Optional[int]
    kind: str
    resume: int


@dataclass(frozen=True)
class ResumeCheck:
    """What check_resume() has found. print(found) is a table of the wrong steps.

    ok: whether all steps had the right batches. n_steps: how many were compared. resumes: the steps before which the
    run was resumed. n_ranks: how many ranks it had from the beginning on, and after each resume; 1 where that was not
    asked for. wrong: the steps at which the order of the batches broke."""

    n_steps: int
    resumes: Tuple[int, ...]
    n_ranks: Tuple[int, ...]
    wrong: Tuple[WrongStep, ...]

    @property
    def ok(self) -> bool:
        """Whether all steps had the right batches."""
        return not self.wrong

    @property
    def verdict(self) -> str:
        """One sentence."""
        ranks = sorted(set(self.n_ranks))
        on = f" on {', '.join(map(str, ranks))} ranks" if len(ranks) > 1 else ""
        if self.ok:
            return f"right: {self.n_steps} steps with {len(self.resumes)} resumes{on} had the batches of a run without interruption"
        first = self.wrong[0].step
        if first < self.resumes[0]:
            return f"wrong at step {first}, before any resume: two loaders of make_loader give other batches. Does it set a seed?"
        return f"wrong at {len(self.wrong)} places of {self.n_steps} steps with {len(self.resumes)} resumes{on}"

    def rows(self) -> List[Tuple[str, str, str, str]]:
        """The table that print() shows: the step, the number of the expected batch, what came, and after which resume."""
        found = []
        for one in self.wrong[:_N_SHOWN]:
            got = one.kind if one.got is None else f"{one.got}: {one.kind} {abs(one.got - one.expected)}"
            after = f"{one.resume}, at step {self.resumes[one.resume - 1]}" if one.resume else "none"
            found.append((str(one.step), str(one.expected), got, after))
        return found

    def __str__(self) -> str:
        if self.ok:
            return self.verdict
        lines = [f"  {step:<8}{expected:<10}{got:<24}{after}\n" for step, expected, got, after in
                 [("step", "expected", "got", "after resume"), *self.rows()]]
        left = len(self.wrong) - _N_SHOWN
        return "".join(lines) + (f"  and {left} more\n" if left > 0 else "") + self.verdict

    def _repr_html_(self) -> str:
        return html.shown("of_resume_check", self)


def check_resume(make_loader: Callable[..., Any], steps: int = 200, resumes: int = 10, ranks: Optional[Sequence[int]] = None,
                 seed: int = 0) -> ResumeCheck:
    """Saves a loader at random steps, makes it again from its state as a killed run does, and compares its batches with those
    of a run without interruption.

        def make_loader():
            return tokmap.Loader("data/train", sequence_length=64, batch_rows=8)    # or any other

        print(tokmap.check_resume(make_loader))

    make_loader: makes a new loader, as a new process would: an iterable of batches with state_dict() and
    load_state_dict(). load_state_dict() is called before the first batch. Where an iteration ends, the next one begins,
    as for the next epoch. steps: how many steps are compared. resumes: how often the run is resumed. Each resume is
    from a state of the one before, and the run that is killed has gone on for some steps after it was saved. seed: of the
    random steps. ranks: if given, such as (1, 2, 4), make_loader(rank, n_ranks) is called, and each resume is on another
    one of these numbers of ranks. All ranks together must take the same rows in a step, so a rank of two has half of
    them. On the same number of ranks each rank loads its own state, on another number all load the state of rank 0.

    Batches are equal if their arrays have the same bytes: NumPy arrays, tensors, and others that NumPy can convert, in
    dicts, lists and tuples. What has no arrays is compared by its numbers and texts. With ranks=, the rows of a step may
    come in any order; the first array with the most dimensions says how many there are, and arrays of another length do
    not count.

    States are copied when they are saved, as a checkpoint does. An exception of the loader is not caught."""
    counts = None if ranks is None else tuple(ranks)
    if steps < 2 or not 0 < resumes < steps or counts is not None and (not counts or min(counts) < 1):
        raise ValueError("steps must be at least 2, resumes at least 1 and less than steps, and ranks numbers from 1 on")
    _check_shares(make_loader, counts or ())
    rng = random.Random(seed)
    n_ranks = [counts[0] if counts else None]
    truth = _Truth(_Run(make_loader, n_ranks[0]), steps)
    if truth.n_batches <= resumes:
        raise ValueError(f"the loader ended after {truth.n_batches} batches, which are too few for {resumes} resumes")
    if truth.all_are_equal():
        raise ValueError(f"all {truth.n_batches} batches of the loader are equal: a wrong resume could not be seen")
    places = sorted(rng.sample(range(1, truth.n_batches), resumes))
    end = min(steps, truth.n_batches + 1)  # with the end of the loader, if it has one
    run, expected = _Run(make_loader, n_ranks[0]), 0
    wrong: List[WrongStep] = []
    for resume, (first, last) in enumerate(zip([0, *places], [*places, end])):
        following = _compare(run, truth, range(first, last), expected, resume, wrong)
        if following is None or last == end:
            break
        expected = following
        state = copy.deepcopy(run.states())
        _compare(run, truth, range(last, min(last + rng.randrange(_N_AFTER), end)), expected, resume, wrong)
        n_ranks.append(rng.choice([n for n in counts if n != n_ranks[-1]] or counts) if counts else None)
        run = _Run(make_loader, n_ranks[-1])
        run.load(state)
    return ResumeCheck(min(steps, truth.n_batches), tuple(places), tuple(n or 1 for n in n_ranks), tuple(wrong))


def _compare(run: "_Run", truth: "_Truth", steps: Iterable[int], expected: int, resume: int,
             wrong: List[WrongStep]) -> Optional[int]:
    """Returns the number of the batch that is expected after these steps; None if the run has ended. After a wrong batch,
    the one that follows it is expected, so that each fault is found once."""
    for step in steps:
        batch = run.next()
        got = truth.number_of(batch, expected)
        if batch is None:
            if got != expected:
                wrong.append(WrongStep(step, expected, None, "ended", resume))
            return None
        if got != expected:
            kind = "other" if got is None else "repeated" if got < expected else "skipped"
            wrong.append(WrongStep(step, expected, got, kind, resume))
        expected = (expected if got is None else got) + 1
    return expected


def _check_shares(make_loader: Callable[..., Any], counts: Sequence[int]) -> None:
    """Refuses loaders whose ranks take more rows together when there are more of them."""
    rows = {n: sum(len(_rows_of(batch)) for batch in _Run(make_loader, n).take() or []) for n in counts}
    if len(set(rows.values())) > 1:
        raise ValueError("all ranks together must take the same rows in a step, but " + ", ".join(
            f"{n} take{'s' * (n == 1)} {n_rows}" for n, n_rows in rows.items()) +
            ": make_loader(rank, n_ranks) must give each rank its part of the step, such as batch_rows=8 // n_ranks")


class _Run:
    """The loaders of all ranks. n_ranks is None where there is one loader that knows nothing of ranks."""

    def __init__(self, make_loader: Callable[..., Any], n_ranks: Optional[int]) -> None:
        self._n_ranks = n_ranks
        self._loaders = [make_loader()] if n_ranks is None else [make_loader(rank, n_ranks) for rank in range(n_ranks)]
        self._iterators: Optional[List[Iterator[Any]]] = None

    def states(self) -> List[Any]:
        """The state of each rank."""
        return [loader.state_dict() for loader in self._loaders]

    def load(self, states: List[Any]) -> None:
        """Each rank loads its own state, or all that of rank 0 if there were more or fewer ranks."""
        same = len(states) == len(self._loaders)
        for rank, loader in enumerate(self._loaders):
            loader.load_state_dict(states[rank if same else 0])

    def take(self) -> Optional[List[Any]]:
        """The batches of a step, of the ranks that have one; None at the end. An iteration that is resumed at its end is
        empty, so the loaders are at their end after two iterations without a batch."""
        for _ in range(2):
            if self._iterators is None:
                self._iterators = [iter(loader) for loader in self._loaders]
            batches = [next(iterator, _NOTHING) for iterator in self._iterators]
            if any(batch is not _NOTHING for batch in batches):
                return [batch for batch in batches if batch is not _NOTHING]
            self._iterators = None
        return None

    def next(self) -> Optional[bytes]:
        """What identifies the batches of a step; None at the end."""
        batches = self.take()
        if batches is None:
            return None
        return _hash_of(batches[0]) if self._n_ranks is None else b"".join(sorted(row for one in batches for row in _rows_of(one)))


class _Truth:
    """The batches of a run without interruption, by their numbers."""

    def __init__(self, run: _Run, steps: int) -> None:
        self._run, self._most, self._n, self._ended = run, 2 * steps, 0, False
        self._numbers: Dict[Optional[bytes], List[int]] = {}
        self._take(steps)
        self.n_batches = self._n - self._ended

    def _take(self, n: int) -> None:
        """Takes batches until there are n, and then the end counts as one."""
        while self._n < n and not self._ended:
            batch = self._run.next()
            self._numbers.setdefault(batch, []).append(self._n)
            self._n, self._ended = self._n + 1, batch is None

    def all_are_equal(self) -> bool:
        """Whether no two batches differ."""
        return sum(batch is not None for batch in self._numbers) < 2

    def number_of(self, batch: Optional[bytes], expected: int) -> Optional[int]:
        """The number of a batch, the one nearest to that which is expected; None if no batch is equal. Batches after the
        last step, which a wrong run may have, are taken when they are needed."""
        self._take(expected + 1)
        while batch not in self._numbers and self._n < self._most and not self._ended:
            self._take(self._n + 1)
        return min(self._numbers.get(batch, []), key=lambda number: abs(number - expected), default=None)


# ---- What is compared of a batch ----


def _leaves(value: Any) -> Iterator[Any]:
    """What is in a batch, with arrays of NumPy in place of other arrays and tensors."""
    if hasattr(value, "keys"):
        for key in value.keys():
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)
    elif not hasattr(value, "__array__"):
        yield value
    else:
        value = value.detach().cpu() if hasattr(value, "detach") else value
        try:
            found = np.asarray(value)
        except TypeError:  # bfloat16 of torch, which float32 holds exactly
            found = np.asarray(value.float())
        if found.dtype.hasobject:
            yield from _leaves(found.tolist())
        else:
            yield found


def _arrays_of(batch: Any) -> List[Any]:
    return [leaf for leaf in _leaves(batch) if isinstance(leaf, np.ndarray)]


def _hash_of(batch: Any) -> bytes:
    arrays = _arrays_of(batch)
    if arrays:
        return _hash(arrays)
    plain = [leaf for leaf in _leaves(batch) if isinstance(leaf, (int, float, str, bytes))]
    if not plain:
        raise ValueError(f"a batch of this loader is a {type(batch).__name__} in which there is nothing to compare: no arrays, numbers or texts")
    return hashlib.blake2b(repr(plain).encode(), digest_size=16).digest()


def _rows_of(batch: Any) -> List[bytes]:
    arrays = _arrays_of(batch)
    first = max(arrays, key=lambda array: int(array.ndim), default=None)
    if first is None or not first.ndim:
        raise ValueError(f"a batch of this loader is a {type(batch).__name__} without arrays, which has no rows to compare on other ranks")
    return [_hash([array[row] for array in arrays if array.ndim and len(array) == len(first)]) for row in range(len(first))]


def _hash(arrays: Iterable[Any]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for array in arrays:
        found.update(repr((array.dtype.str, array.shape)).encode() + array.tobytes())
    return found.digest()

# SPDX-License-Identifier: Apache-2.0
"""The mixture and the skips of a run, and what a change of the run does to them: docs/ORDER.md, sections 9 and 10."""

import ctypes
from typing import Any, List, Mapping, NamedTuple, Sequence, Tuple

from .._c import structs as _lib
from .._c.arguments import number, real
from .steps import Pairs, as_skip


class Mixture(NamedTuple):
    """phases: (sample, the weight of each source from there on), the first of them from sample 0. max_epochs of each
    source: 0 for no limit. skip: the samples that are left out."""

    phases: List[Tuple[int, List[float]]]
    max_epochs: List[int]
    skip: Pairs

    def as_options(self, **options: Any) -> Any:
        """The options of C with these weights; the sources have no datasets yet."""
        sources = [_lib.LoaderSource(weight=weight, max_epochs=epochs)
                   for weight, epochs in zip(self.phases[0][1], self.max_epochs)]
        phases = [_lib.LoaderPhase(sample, (ctypes.c_double * len(weights))(*weights)) for sample, weights in self.phases[1:]]
        return _lib.LoaderOptions(
            sources=_lib.array_of(_lib.LoaderSource, sources), n_sources=len(sources),
            source_stride=ctypes.sizeof(_lib.LoaderSource), phases=_lib.array_of(_lib.LoaderPhase, phases), n_phases=len(phases),
            phase_stride=ctypes.sizeof(_lib.LoaderPhase), row_stride=ctypes.sizeof(_lib.Row),
            skips=_lib.array_of(_lib.LoaderSkip, [_lib.LoaderSkip(a, b) for a, b in self.skip]),
            n_skips=len(self.skip), skip_stride=ctypes.sizeof(_lib.LoaderSkip), **options)


    def __str__(self) -> str:
        parts = {"weights": self.phases[0][1], "phases": dict(self.phases[1:]), "skip": self.skip,
                 "max_epochs": self.max_epochs if any(self.max_epochs) else "none"}
        return ", ".join(f"{name} {str(value):.300}" for name, value in parts.items() if value)


def as_phases(given: Any, first: Sequence[float]) -> List[Tuple[int, List[float]]]:
    """Sorted, with the weights of sample 0, which are `first` unless they are given."""
    if given is not None and not hasattr(given, "items"):
        raise TypeError(f"phases is {given!r}: must be a dict, such as {{1000: [1.0, 2.0]}}")
    phases = {0: list(first)}
    for sample, weights in (given or {}).items():
        if not hasattr(weights, "__iter__") or isinstance(weights, (dict, set, frozenset, str)):
            raise TypeError(f"phases: the weights are {weights!r}: must be a list with one of each source")
        sample = number("the sample of a phase", sample, 2**62 - 1)
        phases[sample] = [real("phases: a weight", weight) for weight in weights]
        if len(phases[sample]) != len(first):
            raise ValueError(f"the phase from sample {sample} has {len(phases[sample])} weights for {len(first)} sources")
    return sorted(phases.items())


def as_mixture(given: Any) -> Mixture:
    """From a dict with "weights" or "phases", or both, and perhaps "skip" and "max_epochs": a number, or a list with
    one for each source."""
    if not isinstance(given, Mapping) or not given.keys() & {"weights", "phases"} or \
            given.keys() - {"weights", "phases", "max_epochs", "skip"}:
        raise ValueError(f"amend_from is {given!r:.80}: must be a dict with the old weights or phases, or both, and perhaps "
                         "max_epochs and skip")
    phases = given.get("phases") or {}
    first = given.get("weights", phases.get(0))
    if first is None:
        raise ValueError("amend_from: the weights from sample 0 on are missing")
    if not hasattr(first, "__len__"):
        raise TypeError(f"amend_from: the weights are {first!r:.80}: must be a list with one of each source")
    epochs = given.get("max_epochs") or 0
    limits = list(epochs) if hasattr(epochs, "__iter__") else [epochs] * len(first)
    if len(limits) != len(first):
        raise ValueError(f"amend_from: {len(limits)} max_epochs for {len(first)} sources")
    return Mixture(as_phases(phases, [real("amend_from: a weight", weight) for weight in first]),
                   [number("max_epochs", limit or 0, 2**64 - 1) for limit in limits], as_skip(given.get("skip", [])))


def amended(old: Mixture, new: Mixture, at: int) -> Mixture:
    """The old phases before sample `at`, in which sources that are new have no samples, and then the new ones."""
    none = [0.0] * (len(new.max_epochs) - len(old.max_epochs))
    was = [(sample, weights + none) for sample, weights in old.phases if sample < at]
    begins, weights = [phase for phase in new.phases if phase[0] <= at][-1]
    for sample, past in new.phases:
        if sample < begins and (sample, past) not in was:
            raise ValueError(f"the phase from sample {sample} is not one that the run had, and has no effect: it is over "
                             f"at sample {at}")
    same = bool(was) and begins < at and weights == was[-1][1]
    now = [] if same else [(at, weights)]
    return Mixture(was + now + [phase for phase in new.phases if phase[0] > at], new.max_epochs, new.skip)

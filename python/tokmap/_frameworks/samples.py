# SPDX-License-Identifier: Apache-2.0
"""tokmap.Samples - the samples of a loader by their numbers, for samplers."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple, Type

from .._c.arguments import integer, number
from .._data.store import is_url
from .._loader.batch import Batch
from .._loader.loader import Loader, reopened
from .._loader.options import Options, Ranks, Reading, Record, given_ones
from .._loader.sources import stores_of

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from .._loader.options import SampleOptions


def loader_of(sources: Any, options: Mapping[str, Any], *sizes: Tuple[str, int, int]) -> "Loader[Any]":
    """The Loader that is given, or a new Loader with these sizes and options. A given Loader has its own.
    sizes: for each its name, its value, and the value that means none."""
    options = given_ones(options)
    if not isinstance(sources, Loader):
        return Loader(sources, **{**options, **{name: value for name, value, _ in sizes}})
    wrong = [name for name, value, none in sizes if value not in (none, getattr(sources, name))] + list(options)
    if wrong:
        raise TypeError(f"beside a Loader there can be no {', '.join(wrong)}: give that to the Loader")
    return sources


def options_of(loader: "Loader[Any]") -> Options:
    """Returns the options of a loader whose batches are kept while it goes on."""
    found = loader._own_options()
    if found.device is not None:
        raise ValueError("a data set for a framework cannot be combined with a device: batches are read ahead, and in other "
                         "processes")
    return found


def check_whole_rows(given: Options, why: str) -> None:
    """ValueError if a row is cut into slices."""
    if given.ranks.cp_size != 1:
        raise ValueError(f"cp_size is {given.ranks.cp_size}: must be 1, because {why}")


def alone(given: Options) -> Options:
    """Changes options to one rank that takes a row at a time and writes nothing."""
    return given._with(batch_rows=1, ranks=replace(given.ranks, rank=0, n_ranks=1),
                       order=replace(given.order, batch_schedule=()), ledger=None, record=Record())


class Resumable:
    """An object with a Loader whose state a framework saves."""

    _loader: "Loader[Any]"

    def state_dict(self) -> Dict[str, Any]:
        """The state after the last batch, which is the same on all ranks."""
        return self._loader.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues after the batch that had this state, with any number of ranks."""
        self._loader.load_state_dict(state_dict)
        self._count()

    def _count(self) -> None:
        """Called when the position has changed."""

    def _open(self, sources: Any, sizes: Tuple[int, int], config: Any, options: Mapping[str, Any], *, ranks: Ranks,
              documents: bool, trainer: str, error: Type[Exception] = ValueError) -> None:
        """The Loader of a trainer that slices rows itself."""
        known = [name for name in ("sequence_length", "batch_rows", "seed", "ranks", "framework", "outputs") if name in options]
        if known:
            raise error(f"{', '.join(known)} cannot be in options, because {trainer} or its configuration says that, and slices the rows")
        outputs: Any = ("inputs", "labels", "cu_seqlens")[:2 + documents]
        self._loader = Loader(sources, sizes[0], sizes[1], seed=config.seed, framework="torch", outputs=outputs,
                              ranks=ranks, **options)
        self._loader.seek(config.first_sample)
        self._count()
        if options_of(self._loader).rows.ignore_index != -100:
            raise error(f"ignore_index must be -100 for {trainer}")


class Samples:
    """A sequence of samples in the order of a Loader: samples[i] is sample number i as a dict of arrays, one for
    each of the loader's outputs. For programs that have their own sampler. Number i is already shuffled, so take
    them in their order.

        samples = tokmap.Samples("data/train", sequence_length=1024, seed=1)
        samples[7]["inputs"]

    sources     a Loader without a ledger; or the sources of a Loader, and then also its other arguments except ledger. Ranks
                and batch_rows do not matter. Without max_epochs there is one epoch, or as many as n_samples needs
    n_samples   how many samples, from the first on; fewer if max_epochs ends before. None: all

    Threads may share it. Other processes get it by pickle or by fork."""

    def __init__(self, sources: Any, sequence_length: int = 0, *, n_samples: Optional[int] = None,
                 **options: "Unpack[SampleOptions]") -> None:
        is_own = not isinstance(sources, Loader)
        given = given_ones(options)
        if given.get("ledger") is not None or not is_own and sources._recorder.ledger is not None:
            raise ValueError("samples are asked for by their numbers here, so a ledger cannot know their steps: leave it out")
        if is_own:
            given = {"max_epochs": 1 if n_samples is None else None, "reading": Reading(io="auto" if is_url(sources) else "copy"),
                     "ranks": Ranks(rank=0, n_ranks=1), **given}
        sources = loader_of(sources, given, ("sequence_length", sequence_length, 0))
        counts = [] if n_samples is None else [number("n_samples", n_samples, 2**62 - 1)]
        counts += [] if sources.n_samples is None else [sources.n_samples]
        if not counts:
            raise ValueError("this loader has no end, so its samples cannot be counted: set n_samples or max_epochs")
        if sources._turns.steps.skips:
            raise ValueError("samples are asked for by their numbers here, so skip has no meaning: leave them out in the sampler")
        self._n_samples = min(counts)
        self._options = alone(options_of(sources))
        if self._options.reading.io == "auto" and not stores_of(sources._sources):  # the loader does not know which sample comes next
            self._options = self._options._with(reading=replace(self._options.reading, io="copy"))
        self._open(sources if is_own and self._options == sources._own_options() else None)

    def _open(self, loader: "Optional[Loader[Any]]" = None) -> None:
        self._loader, self._process = reopened(self._options) if loader is None else loader, os.getpid()

    def __getstate__(self) -> Dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_loader", "_process")}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __len__(self) -> int:
        return self._n_samples

    def __getitem__(self, sample: int) -> Dict[str, Any]:
        batch = self._take(sample)
        return {name: array if name == "cu_seqlens" else array[0] for name, array in dict(batch).items()}

    def _take(self, sample: int, rows: bool = False) -> Batch[Any]:
        """The batch of this one sample; rows: whether its `rows` are wanted, too."""
        sample = integer("sample", sample)
        if not 0 <= sample < self._n_samples:
            raise IndexError(f"sample {sample}: there are {self._n_samples}")
        if self._process != os.getpid():  # a loader does not work after a fork
            self._open()
        loader = self._loader
        with loader._lock:
            loader.seek(sample)
            batch = next(loader)
            if rows:
                batch.rows  # keeps them: another thread may use the loader next
        return batch

    def __repr__(self) -> str:
        return f"<tokmap.Samples: {self._n_samples} of {self._loader.sequence_length} inputs>"

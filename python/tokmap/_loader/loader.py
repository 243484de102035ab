# SPDX-License-Identifier: Apache-2.0
"""tokmap.Loader - batches of sequences from datasets: shuffled, mixed, resumable."""

from __future__ import annotations  # help() shows names of types and not what they stand for

import ctypes
import os
import warnings
from typing import (TYPE_CHECKING, Any, Callable, Dict, List, Literal, Mapping, NamedTuple, Optional, Tuple, Union, get_args,
                    overload)

import numpy as np

from .._c import html
from .._c import structs as _lib
from .._c.arguments import dtype_name, number, state_bytes
from .._c.errors import ArgumentError, ForkedError, Handle, MismatchError, NoHandle, call, check
from .._c.locks import new_lock
from .._c.structs import lib
from .._data.dataset import Array
from .._data.row import Row
from .batch import Batch, Origin, T, counts_before, save_at
from .gather import Gatherer
from .metrics import STATS, WAITS, as_text
from .mixture import Mixture, as_phases
from .open import Opener, explain, find_before
from .options import Device, Framework, Io, Options, Slots, choose, takes_options
from .place import Now, Place
from .ranks import check_found, find_rank, is_first_of_rank
from .recorder import Recorder
from .sources import Sources, short_name, stores_of
from .steps import Steps, as_schedule
from .turns import Turns

if TYPE_CHECKING:
    import torch
    from typing import Generic as Of
    from typing_extensions import Unpack
    from .options import LoaderOptions
else:
    Of = {T: object}  # Generic would be a dozen lines of help()

_END, _NOT_READY = 1, 3
_next, _wait = lib.tokmap_loader_next, lib.tokmap_loader_wait
_WAIT_NS = 50_000_000
_NO_LIMIT = 2**64 - 1
_IO_NAMES = (*get_args(Io), "store")
_USED_BY_HANDLER = ("a signal handler has used the loader during next: a handler may ask for the state, but not for a batch or "
                    "another position")


class Sample(NamedTuple):
    """Where a sample comes from: the number of its source, the number of the dataset in this source, the epoch and the
    window of the source, the first token in the dataset, and how many tokens the row has."""

    source: int
    dataset: int
    epoch: int
    window: int
    first_token: int
    n_tokens: int


def _check_fork(status: int) -> None:
    """For calls of an open loader that can fail for no other reason, and so have no text."""
    if status:
        raise ForkedError("this loader belongs to the parent process: open another one in the child", status)


class Piece(NamedTuple):
    """The tokens of a document that are in a row. place: where they begin in the row."""

    document: int
    first_token: int
    n_tokens: int
    place: int


class Loader(Of[T]):
    """An iterator over batches. It continues where it stands, also in a second `for` loop; seek(0) starts again.

        loader = tokmap.Loader("data/train", sequence_length=4096, batch_rows=8, seed=1)
        for inputs, labels in loader:
            ...
        state = loader.state()          # 128 bytes; restore() continues here, on any number of ranks

    sources     one corpus: a path, a pattern, a Dataset, a View, or a list of these, its shards. A mixture: {path: weight},
                a list of (path, weight), or a list of Sources
    sequence_length     inputs of a row
    batch_rows  rows of this rank in a step
    seed        of the order; the order does not depend on ranks and batch_rows
    shuffle     "full", "none", or "block" for cold data: blocks of rows, see Order
    windows     "concat": the tokens one after another; "within_document": no row crosses a document boundary;
                "best_fit": rows of whole documents, and of pieces of longer ones, with almost no padding. The label
                between two documents is masked. More than 10,000,000 documents need `tokmap rows` first
    max_epochs  the loader ends before a source begins more epochs than this; a Source can set its own. None, 0: no end
    outputs     some of "inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"; "lane:NAME", the numbers
                of a lane; and "loss_weight", weights for the labels from the lane that Rows(loss_weight=) names. With (),
                a batch has only its `rows`, which are not copied
    dtype       the type of inputs and labels: int32 or int64, as text, or of NumPy or PyTorch
    framework   "numpy" or "torch": what the outputs are. With a GPU, tensors are pinned, except in forks and workers
    device      a GPU, such as "cuda:0", or "cuda" for PyTorch's current one: batches are PyTorch tensors in its memory. A
                Stage copies them there ahead of the step; it is experimental
    ledger      a file for `tokmap trace` and `tokmap report`. One Loader of rank 0 adds a line at its first batch, at each
                later change, and when it is closed; writes_ledger of Record says which one. With workers: help(tokmap.torch.data_loader)
    store       where the paths of the sources are names, or URLs: see Dataset. Not with a list of Sources, which have their own
    order, rows, ranks, reading, resume, record, slots     groups of other options: help(tokmap.Order) and so on

    Several threads may take batches from one loader: each batch goes to one of them, and calls wait for each other.
    If something takes batches ahead of the training step (a framework that prefetches, a queue, a thread), save
    the `state` of the last batch that was trained on, not the state of the loader.

    After an exception in next, such as KeyboardInterrupt, the loader is as before the call, and next may be called again. In
    CPython 3.9 and 3.10 two places of each `with` remain: a signal that is handled just when its block ends may lose the batch,
    or leave the loader locked for other threads."""

    if TYPE_CHECKING:
        @overload
        def __init__(self: Loader[Array], sources: Sources, sequence_length: int, batch_rows: int = 1, *,
                     framework: Literal["numpy"] = "numpy", device: None = None, slots: None = None,
                     **options: Unpack[LoaderOptions]) -> None: ...
        @overload
        def __init__(self: Loader[torch.Tensor], sources: Sources, sequence_length: int, batch_rows: int = 1, *,
                     framework: Literal["torch"], device: None = None, slots: None = None,
                     **options: Unpack[LoaderOptions]) -> None: ...
        @overload
        def __init__(self: Loader[torch.Tensor], sources: Sources, sequence_length: int, batch_rows: int = 1, *,
                     device: Device, framework: Framework = "numpy", slots: Optional[Slots] = None,
                     **options: Unpack[LoaderOptions]) -> None: ...
    @takes_options
    def __init__(self, given: Options) -> None:
        order, rows, resume, own_ranks, record = given.order, given.rows, given.resume, find_rank(given.ranks), given.record
        is_first = is_first_of_rank(given.ranks, own_ranks)
        if record.writes_ledger is None:
            record = record._with(writes_ledger=own_ranks.rank == 0 and is_first)
        self._is_silent = record.metrics_file is not None and not (is_first if own_ranks.rank else record.writes_ledger)
        if self._is_silent:
            record = record._with(metrics_file=None)
        # Not compared yet with what torch.distributed says at the first batch.
        self._rank_is_found = (given.ranks.rank, given.ranks.mesh) == (None, None)
        self._options = given = given._with(ranks=own_ranks, record=record)
        self._sources, self.outputs = given.sources, given.outputs
        self.sequence_length = given.sequence_length
        self.rank, self.n_ranks = own_ranks.rank or 0, own_ranks.n_ranks or 1
        self._mixture = Mixture(as_phases(order.phases, [s.weight for s in self._sources]),
                                [s.max_epochs or 0 for s in self._sources], list(order.skip))
        steps = Steps(self._mixture.skip, as_schedule(order.batch_schedule, given.batch_rows, self.n_ranks))
        self.drop_last = order.drop_last
        self._turns = Turns(steps, self.rank, self.n_ranks, self.drop_last)
        self._place = Place(self._turns, given.batch_rows)
        most_rows = steps.most_rows() // self.n_ranks
        if "cu_seqlens" in self.outputs and most_rows * self.sequence_length >= 2**31:
            raise ArgumentError(f"batch_rows is {most_rows}: cu_seqlens counts to 2^31 - 1 inputs of a batch", -1)
        self._opener = Opener(given)
        if given.device is None and given.slots != Slots():
            raise ValueError("slots are for a Loader with a device")
        self._lock: Any = new_lock(self)  # held from next until the rows are copied
        self._generation = 0  # changes whenever the rows of the last batch are no longer valid
        self._is_plain = False  # whether a batch needs nothing but _take_next; known at the first one
        self._before = find_before(given)
        self._own_handle: Any = self._open(resume.amend)
        if resume.amend is not None:
            self._place.stand(lib.tokmap_loader_position(self._own_handle.pointer))
        self._finder: Any = None
        self._windows: List[int] = []
        self._handle: Any = self._own_handle  # replaced while a stage uses the loader
        self._batch = _lib.Batch()
        self._detail = _lib.ErrorDetail()
        self._references = ctypes.byref(self._batch), ctypes.byref(self._detail)
        self._count()
        n_samples = self.n_samples
        if self.drop_last and n_samples is not None and len(self) == 0:
            warnings.warn(f"{n_samples} samples are fewer than the {self.n_ranks * self.batch_rows} rows of a step of "
                          "all ranks, so there is no batch: set order=tokmap.Order(drop_last=False), or fewer batch_rows")
        self._stage: Any = None
        if given.device is None:
            self._gatherer = Gatherer(self._batch, given, self._opener.masks_labels)
            self._gatherer.set_loader(self._own_handle)
        else:
            if not (rows.contiguous and self.drop_last) or "loss_mask" in self.outputs or dtype_name(given.dtype)[0] == "u":
                raise ValueError("a device cannot be combined with contiguous=False, drop_last=False, the dtype of the data, "
                                 "or the output loss_mask (mask_labels=True applies it)")
            from .._device.stage import Stage

            self._make_stage: Callable[[], Any] = lambda: Stage(
                self, given.device, self.outputs, input_dtype=given.dtype, label_dtype=given.dtype, pad_id=rows.pad_id,
                ignore_index=rows.ignore_index, **vars(given.slots))
            self._stage = self._make_stage()
        self._recorder = Recorder(given, self._own_handle, self._place, self._collect)
        self._counts_tokens = self._recorder.metrics_file is not None  # or since metrics() was first called
        if resume.amend is not None:
            self._recorder.move(int.from_bytes(resume.amend[24:32], "little"))  # also if skips begin there
        self._warn_of_reading()

    # ---- Open and close ----

    def _open(self, state: Optional[bytes]) -> Handle:
        """state: what to continue, with this mixture from there on."""
        try:
            handle = self._opener.open(self._mixture, batch_rows=self.batch_rows, rank=self.rank, n_ranks=self.n_ranks)
            if state is not None:
                call(lib.tokmap_loader_restore, handle.pointer, (ctypes.c_uint8 * 128)(*state))
            return handle
        except (ArgumentError, MismatchError):
            if state is None:
                raise
        handle, self._mixture = self._continue_with(state)  # perhaps with its skips alone it could not be opened
        return handle

    def _continue_with(self, state: bytes) -> Tuple[Handle, Mixture]:
        return self._opener.continue_with(self._mixture, state, self._before, batch_rows=self.batch_rows, rank=self.rank,
                                         n_ranks=self.n_ranks)

    def _amend(self, state: bytes) -> None:
        """Opens the loader again with the mixture that continues the state."""
        handle, mixture = self._continue_with(state)
        self._recorder.close()  # as the loader was up to here
        self._mixture = mixture
        with self._lock:
            if self._stage is not None:
                self._stage.close()
            self._own_handle = self._handle = handle
            self._finder = None
            self._recorder.set_loader(handle)
            self._place.forget()
            self._generation += 1
            self._count()
            if self._stage is None:
                self._gatherer.set_loader(handle)

    def _count(self) -> None:
        info = self._get_info()
        self._origin = Origin(self._own_handle, self._turns.steps, self.outputs)
        self.n_samples: Optional[int] = None if info.n_samples == _NO_LIMIT else info.n_samples
        self._reading = _IO_NAMES[info.io], info.io_reason.decode(errors="replace")
        self._waits_for_store = self._reading[0] == "store"
        self._direct_failed = info.direct_failed

    def _warn_of_reading(self) -> None:
        """Python shows it once."""
        if self._direct_failed:
            warnings.warn(f"{self._reading[1]}; rows are read by {self._reading[0]}", RuntimeWarning)

    def _lend(self) -> Handle:
        """Its handle, for a stage that takes it."""
        with self._lock:
            self._generation += 1  # the rows of its batches are no longer valid
            if self._stage is None:  # else it is where its own stage begins
                self._place.follow(self._handle, self._place.now)
            handle: Handle = self._handle
            return handle

    def _take_back(self, handle: Handle) -> None:
        """From a stage that was closed. The loader has the position of a stage that it did not make itself."""
        self._handle = handle
        self._place.at = lib.tokmap_loader_position(handle.pointer)
        if self._stage is None:
            self._place.stand(self._place.at)

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._lock:
            handle = self._handle  # which another thread may replace
            call(function, handle.pointer, *arguments)

    def close(self) -> None:
        """Frees the loader. Arrays and states of batches stay valid. Waits for a call of another thread."""
        with self._lock:
            self._generation += 1
            self._recorder.end(self._collect)
            if self._stage is not None:
                self._stage.close()
            else:
                self._gatherer.forget()
            self._handle = self._own_handle = NoHandle("the loader is closed")
            self._origin = self._origin._replace(handle=self._own_handle)
            self._finder = None

    def __enter__(self) -> Loader[T]:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        if self._rank_is_found:
            check_found(self._options.ranks)
        return _reopen, (self._own_options()._with(ledger=None), self.state(), self._rank_is_found)

    def _own_options(self) -> Options:
        """Its arguments as they are now: an amended run has other phases, and the amend itself is over."""
        given = self._options
        return given._with(order=given.order._with(phases=self.phases), resume=given.resume._with(amend=None))

    def __repr__(self) -> str:
        if isinstance(self._own_handle, NoHandle):
            return "<tokmap.Loader: closed>"
        end = "without end" if self.n_samples is None else f"of {self.n_samples}"
        ranks = "" if self.n_ranks == 1 else f", rank {self.rank} of {self.n_ranks}"
        silent = ", does not write the ledger" if self._options.ledger is not None and self._recorder.ledger is None else ""
        silent += ", does not write metrics" * self._is_silent
        first, *others = (path for source in self._sources for path in source._paths())
        view = self._sources[0].views[0]
        of = short_name(first) + (f" ({len(view)} of {view.dataset.n_documents} documents)" if view else "")
        return (f"<tokmap.Loader of {of}{f' and {len(others)} more' if others else ''}: {self.batch_rows} rows of "
                f"{self.sequence_length}{ranks}, seed {self._options.seed}, at sample {self.sample} {end}, reads by {self._reading[0]} ({self._reading[1]}){silent}>")

    def _repr_html_(self) -> str:
        return html.shown("of_loader", self)

    # ---- Batches ----

    def __iter__(self) -> Loader[T]:
        return self

    if not TYPE_CHECKING:  # to which loader[0] is an error
        def __class_getitem__(cls, of):
            return cls

        def __getitem__(self, i):
            raise TypeError("a Loader has no index: it gives its batches one after another. For a DataLoader of PyTorch, use "
                            "tokmap.torch.IterableDataset and tokmap.torch.data_loader; for samples by number, tokmap.Samples")

    def __next__(self) -> Batch[T]:
        """After any other exception than StopIteration the next call takes the same step. Nothing is changed until the whole
        batch is ready, except what the library knows, which follows `now` of the place."""
        place = self._place
        before: Optional[Now] = None
        after: Optional[Now] = None
        try:
            with self._lock:
                before = place.now
                batch, after = self._take(before)
                if place.now is not before:
                    raise RuntimeError(_USED_BY_HANDLER)
                place.now = after
                if self._recorder.metrics_file is not None:
                    self._recorder.metrics_file.update(self._collect, at_once=batch is None)
                if batch is None:
                    raise StopIteration
                return batch
        except StopIteration:
            raise
        except BaseException:
            if before is not None and place.now is after:
                place.now = before  # the caller did not get the batch, not even if a signal came while the lock was released
            raise

    def _take(self, now: Now) -> Tuple[Optional[Batch[T]], Now]:
        """Returns the next batch, and where the Loader stands after it. None: the end, where this rank may have no rows in the
        last step."""
        if self._is_plain:
            return self._take_next(now)
        self._check_rank()
        changes, is_even = self._turns.steps.changes, True
        self._is_plain = self._stage is self._recorder.ledger is None and not changes and not self._counts_tokens
        if changes:
            rows, is_even = self._turns.rows(now[0])
            now = (now[0], rows, now[2])
        if self._counts_tokens and now[2] is None:
            now = (*now[:2], (0,) * len(self._sources))
        if self._recorder.ledger is not None:
            self._follow(now)
            self._recorder.begin(now)
        if not is_even:
            return self._take_uneven(now)
        return self._take_next(now) if self._stage is None else self._next_on_device(now)

    def _stand(self, sample: int) -> None:
        """The library was moved to this sample."""
        self._recorder.move(sample)
        stands_at = self._stage.sample if self._stage is not None and self._stage._is_open else \
            lib.tokmap_loader_position(self._handle.pointer)
        self._place.stand(stands_at)
        if self._stage is not None:
            self._follow(self._place.now)

    def _check_rank(self) -> None:
        """Before the first batch."""
        if self._rank_is_found:
            check_found(self._options.ranks)
            self._rank_is_found = False

    def _take_next(self, now: Now) -> Tuple[Optional[Batch[T]], Now]:
        place, turns, (sample, rows, counts) = self._place, self._turns, now
        if place.at != sample or place.rows != rows:
            place.follow(self._handle, now)
        self._generation = generation = self._generation + 1
        c_batch, handle = self._batch, self._handle  # a signal handler may close the loader meanwhile
        if self._waits_for_store:
            self._wait_for_rows(handle)
        place.at = -1  # not known until the batch is ready
        status = _next(handle.pointer, *self._references)
        if status:
            if status == _END:
                return self._take_uneven(now)
            check(status, self._detail)
        first = c_batch.first_sample
        after = first + turns.n_ranks_left * rows
        if turns.steps.skips:
            after = turns.next_step(first, rows)
        batch: Batch[T] = Batch(self._origin, self._rows_of, generation, c_batch.n_rows, first, after)
        self._gatherer.fill(batch)
        if counts is not None:
            counts = self._count_tokens(counts)
        if self._generation != generation:
            raise RuntimeError(_USED_BY_HANDLER)
        if turns.n_workers > 1:
            after = turns.next_round(sample, rows)
        place.at = after
        return batch, (after, rows, counts)

    def _wait_for_rows(self, handle: Handle) -> None:
        """Until they are there, in short calls: the handler of a signal runs only between calls of the library."""
        while _wait(handle.pointer, _WAIT_NS, self._references[1]) == _NOT_READY:
            pass

    def _count_tokens(self, counts: Tuple[int, ...]) -> Tuple[int, ...]:
        """Adds the inputs of the rows that were just taken."""
        found, whole = list(counts), self._options.ranks.cp_size == self._options.rows.align == 1
        for row in self._batch.rows[:self._batch.n_rows]:
            found[row.source] += row.n_tokens - 1 if whole else sum(n for _, n in self._inputs_of(row.sample))
        return tuple(found)

    def _follow(self, now: Now) -> None:
        """Brings the library to this place, and the stage, which has steps of one size."""
        place, stage = self._place, self._stage
        if stage is not None and stage._is_open and place.rows == now[1]:
            if place.at != now[0]:
                place.at = -1
                stage.seek(now[0])
                place.at = now[0]
            return
        if stage is not None:
            stage.close()
        place.follow(self._handle, now)
        if stage is not None:
            self._stage = self._make_stage()

    def _take_uneven(self, now: Now) -> Tuple[Optional[Batch[T]], Now]:
        """Takes rows that the library does not count by itself: see Turns.uneven."""
        sample, rows, counts = now
        share = self._turns.uneven(sample, self.n_samples)
        if share is None:
            return None, self._place.now
        batch: Optional[Batch[T]] = None
        if share.n_rows > 0:
            self._place.forget()
            self._call(lib.tokmap_loader_set_batch, 0, 1, share.n_rows)
            self._call(lib.tokmap_loader_seek, share.first)
            self._generation = generation = self._generation + 1
            if self._waits_for_store:
                self._wait_for_rows(self._handle)
            self._call(lib.tokmap_loader_next, ctypes.byref(self._batch))
            batch = Batch(self._origin, self._rows_of, generation, share.n_rows, share.first, share.next_step)
            self._gatherer.fill(batch)
            batch._rows = self._rows_of(generation)
            if counts is not None:
                counts = self._count_tokens(counts)
        return batch, (share.next_round, rows, counts)

    def _take_turns(self, worker: int, n_workers: int) -> None:
        """Makes this loader one of n_workers that take turns with whole steps, each from the same position."""
        with self._lock:
            self._turns.worker, self._turns.n_workers = worker, n_workers
            self._generation += 1
            self._place.forget()
            self._place.follow(self._handle, self._place.now)

    def _rows_of(self, generation: int) -> Optional[List[Row]]:
        with self._lock:
            if self._generation != generation:
                return None
            handle, batch, pad_id = self._own_handle, self._batch, self._options.rows.pad_id
            return [Row(handle, row, batch.sequence_length, pad_id) for row in _lib.unpack_rows(batch.rows, batch.n_rows)]

    def _next_on_device(self, now: Now) -> Tuple[Optional[Batch[T]], Now]:
        self._follow(now)
        self._place.at = -1
        staged = self._stage.next()
        if staged is None:
            return None, self._place.now
        _, rows, counts = now
        first = staged.first_sample
        after = self._turns.next_step(first, rows)
        batch: Batch[T] = Batch(self._origin, self._rows_of, -1, staged.n_rows, first, after)  # its rows are those of the stage
        for name, tensor in staged.torch()._asdict().items():
            setattr(batch, name, tensor[:staged.n_documents + 1] if name == "cu_seqlens" else tensor)
        if "cu_seqlens" in self.outputs:
            batch.max_seqlen = staged.max_seqlen
        if counts is not None:
            found = list(counts)
            for sample, source in zip(batch.sample_ids.tolist(), batch.source_ids.tolist()):
                found[source] += sum(n for _, n in self._inputs_of(sample))
            counts = tuple(found)
        self._place.at = after
        return batch, (after, rows, counts)

    def __len__(self) -> int:
        """Batches from sample 0 to the end; `n_samples` has the samples. TypeError if there is no end."""
        if self.n_samples is None:
            raise TypeError("this loader has no end, so it has no len(): set max_epochs. For a DataLoader of PyTorch, use "
                            "tokmap.torch.IterableDataset and tokmap.torch.data_loader")
        return self._turns.count(self.n_samples)

    # ---- Position ----

    @property
    def sample(self) -> int:
        """The first sample of the next step."""
        with self._lock:
            (self._handle if self._stage is None else self._own_handle).pointer  # or it says why the loader cannot be used
            return self._place.now[0]

    @property
    def batch_rows(self) -> int:
        """The rows of this rank in a step: of the last one, where batch_schedule changes them."""
        return self._place.now[1]

    @property
    def epochs(self) -> List[int]:
        """How many epochs of each source are over. metrics()["sources"] has fractions of them, too."""
        with self._lock:
            return [n // n_windows for n, n_windows in zip(counts_before(self._own_handle, self.sample).tolist(), self._n_windows())]

    def _n_windows(self) -> List[int]:
        """In an epoch of each source."""
        with self._lock:
            handle = self._free_handle()
            for k in range(len(self._windows), len(self._sources)):
                info = _lib.LoaderSourceInfo()
                _check_fork(lib.tokmap_loader_get_source(handle.pointer, k, ctypes.byref(info)))
                self._windows.append(info.n_windows)
        return self._windows

    def _free_handle(self) -> Any:
        """A handle that no stage uses. With a device it is a second handle, opened when it is first needed."""
        if self._stage is None or self._handle is self._own_handle:
            handle: Handle = self._handle
            return handle
        self._finder = self._finder or self._opener.open(self._mixture, batch_rows=1, io=choose("io", "map", Io))
        return self._finder

    def seek(self, sample: int) -> None:
        """The next step starts at this sample, or, if it is skipped, at the next sample that is not."""
        sample = number("sample", sample, 2**62)
        with self._lock:
            self._generation += 1
            self._place.forget_position()
            if self._stage is not None and self._stage._is_open:
                self._stage.seek(sample)
            else:
                self._call(lib.tokmap_loader_seek, sample)
            self._stand(sample)

    def locate(self, sample: int) -> Sample:
        """Where a sample comes from, without reading its tokens."""
        out = self._locate(sample)
        return Sample(*(getattr(out, name) for name in Sample._fields))

    def pieces(self, sample: int) -> List[Piece]:
        """With windows="best_fit", the pieces of documents in the row of a sample."""
        if self._options.windows != "best_fit":
            return []
        with self._lock:
            out = self._locate(sample)
            return [Piece(p.document, p.first_token, p.n_tokens, p.place) for p in out.pieces[:out.n_pieces]]

    def _locate(self, sample: int) -> Any:
        """Its pieces are valid until the next call."""
        out = _lib.LoaderSample()
        with self._lock:
            handle = self._free_handle()
            call(lib.tokmap_loader_locate, handle.pointer, number("sample", sample, 2**62 - 1), ctypes.byref(out))
        return out

    def _parts(self, sample: int) -> Tuple[Tuple[int, int], ...]:
        """Its tokens in the dataset: the first one, and how many."""
        with self._lock:
            at = self._locate(sample)
            return tuple((piece.first_token, piece.n_tokens) for piece in at.pieces[:at.n_pieces])

    def _inputs_of(self, sample: int) -> List[Tuple[int, int]]:
        """Its inputs without padding, in all slices of the row: the place of the first one in the row, and how many."""
        with self._lock:
            at = self._locate(sample)
            return [(piece.place, piece.n_inputs) for piece in at.pieces[:at.n_pieces]]

    # ---- State ----

    def state(self) -> bytes:
        """128 bytes, the same on every rank. restore() continues after the last batch that was taken. If the last
        batch that was trained on is an earlier one, save its Batch.state instead."""
        with self._lock:
            return save_at(self._own_handle, self.sample)

    def restore(self, state: Union[bytes, bytearray, memoryview]) -> None:
        """Continues where a state was taken. MismatchError says what is different here: data, sequence_length, seed,
        shuffle, windows or mixture. If data were redacted since then, it says which order_of they need."""
        self._continue(state, self._options.resume.on_mismatch == "amend")

    def _continue(self, given: Union[bytes, bytearray, memoryview], amends: bool) -> None:
        state = state_bytes(given)
        try:
            with self._lock:
                self._generation += 1
                self._place.forget_position()
                if self._stage is not None and self._stage._is_open:
                    self._stage.restore(state)
                else:
                    self._call(lib.tokmap_loader_restore, (ctypes.c_uint8 * 128)(*state))
        except MismatchError as error:
            if not amends:
                raise explain(error, state, self._before, self._mixture) from None
            self._amend(state)
        with self._lock:
            self._stand(int.from_bytes(state[24:32], "little"))
        self._warn_of_reading()

    @property
    def phases(self) -> Dict[int, List[float]]:
        """{sample: [weight of each source from there on, ...]}, from sample 0: a value for the argument phases."""
        return {sample: list(weights) for sample, weights in self._mixture.phases}

    def state_dict(self) -> Dict[str, Any]:
        """The state as plain types, for checkpoints: 128 bytes as hexadecimal digits, and the sample for people."""
        with self._lock:
            return {"state": self.state().hex(), "sample": self.sample}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continues where state_dict() was taken."""
        try:
            state = bytes.fromhex(state_dict["state"])
        except (TypeError, KeyError, ValueError):
            if isinstance(state_dict, (bytes, bytearray, memoryview)):
                raise TypeError("state_dict is what state() returned, which restore() takes") from None
            raise ValueError(f"state_dict is {state_dict!r:.80}: must be what state_dict() returned") from None
        self.restore(state)

    # ---- Info ----

    def _get_info(self) -> Any:
        info = _lib.LoaderInfo()
        with self._lock:
            handle = self._handle
            _check_fork(lib.tokmap_loader_get_info(handle.pointer, ctypes.byref(info)))
        return info

    @property
    def stats(self) -> Dict[str, Any]:
        """How it reads ("io", "look_ahead") and why ("io_reason"), its memory ("resident_bytes"), how many steps had
        to wait and how long ("n_waits", "waited_ns", ...). With io="map" and outputs=() no waits are counted, because a
        step waits where its rows are used. With data in a store, "store" has the requests to it since the datasets were opened: how
        many, the bytes of their answers, hedges (second requests in place of slow ones), retries and failed requests. With a device:
        Stage.stats."""
        if self._stage is not None:
            staged: Dict[str, Any] = self._stage.stats
            return staged
        info = self._get_info()
        found = {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}
        found["io"] = _IO_NAMES[info.io]
        found["io_reason"] = info.io_reason.decode(errors="replace")
        counters = list({id(one.counters): one.counters for one in stores_of(self._sources)}.values())
        if counters:
            found["store"] = {name: sum(one[name] for one in counters) for name in counters[0]}
        return found

    def metrics(self, *, text: bool = False) -> Any:
        """What was read and used so far, as a dict or as text for Prometheus: position, waits, bytes read, and for each
        source the samples, tokens and epochs of all ranks. tokens are inputs, those of the padding included. process_tokens
        are the inputs of this rank since the first call, without padding: call it once before the loop. The text is that of
        Record(metrics_file=): only the process that writes the ledger has the totals of the run in it."""
        self._counts_tokens, self._is_plain = True, False
        found = self._collect()
        return as_text(found, bool(self._options.record.writes_ledger)) if text else found

    def _collect(self) -> Dict[str, Any]:
        position, stats, handle, counted = self.sample, self.stats, self._own_handle, self._place.now[2]
        if counted is None:
            counted = (0,) * len(self._sources)
        before, skipped = counts_before(handle, position), np.zeros(len(self._sources), np.int64)
        for begin, end in self._mixture.skip:
            if begin < position:
                skipped += counts_before(handle, min(end, position)) - counts_before(handle, begin)
        found: Dict[str, Any] = {"position": position, "rank": self.rank, "n_ranks": self.n_ranks,
                                 "batch_rows": self.batch_rows, "samples_skipped": int(skipped.sum())}
        found.update((name, stats[name]) for name in (*STATS, *WAITS) if name in stats)
        found["sources"] = []
        for k, source in enumerate(self._sources):
            n_samples = int(before[k] - skipped[k])
            found["sources"].append({
                "path": source.datasets[0].paths[0], "samples": n_samples, "epochs": int(before[k]) / self._n_windows()[k],
                "tokens": n_samples * self.sequence_length, "process_tokens": counted[k]})
        return found


def of_worker(given: Options) -> Options:
    """For a process that gives batches of a run, but does not write its ledger."""
    if given.record.metrics_file is not None:
        raise ValueError("the metrics file would have the batches of one worker only: use num_workers=0, or no metrics_file")
    before = given.ledger if given.ledger is not None and os.path.exists(given.ledger) else None
    return given._with(ledger=None, resume=given.resume._with(amend_from=given.resume.amend_from or before))


def note_start(given: Options, state_dict: Mapping[str, Any]) -> None:
    """Notes the start in the ledger of a run whose batches other processes give."""
    if given.ledger is not None:
        if given.order.batch_schedule:
            raise ValueError("the ledger would not say where batch_schedule changes the rows of a step, because workers "
                             "write nothing: use num_workers=0, or no ledger")
        with reopened(given) as loader:
            loader.load_state_dict(state_dict)
            if (ledger := loader._recorder.ledger) is not None:
                ledger.begin(loader._place.now)
                ledger.is_open = False  # nothing is known of its end


def reopened(given: Options, **changed: Any) -> Loader[Any]:
    """A Loader with the options of another one, and other values of some."""
    return Loader(**vars(given._with(**changed)))


def _reopen(given: Options, state: bytes, rank_is_found: bool = False) -> Loader[Any]:
    loader = reopened(given)
    loader._rank_is_found = rank_is_found
    loader.restore(state)
    return loader

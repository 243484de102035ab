# SPDX-License-Identifier: Apache-2.0
"""tokmap.Loader - batches of sequences from datasets: shuffled, mixed, resumable."""

import ctypes
import os
import warnings
import weakref
from typing import Any, Callable, Dict, List, Literal, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple, Union

import numpy as np

from .._c import html
from .._c import structs as _lib
from .._c.arguments import dtype_name, flag, integer, number, path, real, state_bytes
from .._c.errors import ArgumentError, ForkedError, Handle, MismatchError, NoHandle, call, check
from .._c.locks import new_lock
from .._c.structs import lib
from .._data.dataset import Path
from .._data.row import Row
from .batch import Batch, counts_before, save_at
from .gather import Gatherer
from .metrics import STATS, WAITS, MetricsFile, as_text
from .mixture import Mixture, as_mixture, as_phases
from .open import (IO, Before, CpMode, Io, Order, Shuffle, Weights, WholeDocuments, Windows, as_outputs, choose, explain,
                   row_parts)
from .ranks import check_found, find_rank, rank_in_mesh
from .sources import as_sources
from .steps import Steps, as_schedule, as_skip

_ON_MISMATCH = {"error": 0, "amend": 1}
_END = 1
_next = lib.tokmap_loader_next
_NO_LIMIT = 2**64 - 1
_IO_NAMES = list(IO)  # by their numbers


class Sample(NamedTuple):
    """Where a sample comes from: the number of its source, of the dataset in it, epoch and window of the source,
    its first token in the dataset, and how many tokens its row has."""

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
    """Tokens of a document of a dataset in a row; place: where they begin in the row."""

    document: int
    first_token: int
    n_tokens: int
    place: int


class Loader:
    """An iterator over batches. It continues where it stands, also in a second `for` loop; seek(0) starts again.

        loader = tokmap.Loader("data/train", sequence_length=4096, batch_rows=8, seed=1)
        for inputs, labels in loader:
            ...
        state = loader.state()          # 128 bytes; restore() continues here, on any number of ranks

    Several threads may take batches from one loader: each batch goes to one of them, and calls wait for each other.
    If something takes batches ahead of the training step (a framework that prefetches, a queue, a thread), save
    the `state` of the last batch that was trained on, not that of the loader.

    sources     a path, a pattern or a Dataset; a list of them, which are the shards of one corpus; a list of
                (path, weight); or a list of Sources
    sequence_length     inputs of a row
    batch_rows  rows of this rank in a step
    outputs     some of "inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens". With (),
                a batch has only its `rows`, which are not copied
    dtype       of inputs and labels: int32 or int64, as text, NumPy's or PyTorch's
    contiguous  False: inputs and labels are two views of one array of sequence_length + 1 columns, which takes
                one copy in place of two. They cannot have mask_labels, and need windows="concat"
    framework   "numpy" or "torch": what the outputs are. PyTorch's are pinned if there is a GPU
    device      a GPU, such as "cuda:0": batches are PyTorch tensors in its memory, copied there ahead of the
                step by a Stage, which is experimental
    n_slots, max_documents, log     with a device: those of the Stage
    reuse       whether each batch is written into the arrays of the last one that the same thread took
    pad_id      inputs that a shorter row lacks
    ignore_index    labels that do not count: those that a shorter row lacks, and see mask_labels
    mask_labels     whether labels whose loss_mask is 0 become ignore_index; with spans those in spans do in any case, or, if
                loss_mask is an output, all of these
    rank, n_ranks   by default what torch.distributed says, or else the environment of torchrun, Open MPI,
                MPICH or Slurm. RuntimeError at the first batch: torch.distributed was initialized since, and says
                another rank. Ranks that are to get the same data, as in tensor parallelism, must be given the
                same rank
    mesh, dims  in place of rank and n_ranks: a DeviceMesh, and those of its dimensions in which ranks get different rows.
                Ranks that differ in other dimensions, as of tensor, context or pipeline parallelism, get the same
    seed        of the order; the order does not depend on rank, n_ranks and batch_rows
    shuffle     "full", "none", or "block" for cold data; see block_windows and group_blocks in tokmap_loader.h
    windows     "concat": the tokens one after another; "within-document": no row crosses a document boundary;
                "best_fit": rows of several whole documents, and pieces of longer ones, that waste next to nothing. The
                label after a document is masked in any case. More than 10,000,000 documents need `tokmap rows` first
    align, documents_per_row, whole_documents   with "best_fit": documents begin at multiples of `align`, at most so
                many (0: any number) are in a row, and longer ones than a row are "split", "drop"ped or "truncate"d
    weights     "samples" or "tokens": of what the weights of the sources are shares; with "tokens", of labels that the
                rows have on average
    cp_rank, cp_size, cp_mode   for context parallelism: the arrays have sequence_length / cp_size columns, the inputs of a
                row that this rank computes: "contiguous", number cp_rank of cp_size parts; "zigzag", numbers cp_rank and
                2 * cp_size - 1 - cp_rank of twice as many; "documents", the same of each document, with "best_fit" and an
                align that is a multiple of 2 * cp_size. position_ids and cu_seqlens are those of the whole rows. Give all
                ranks that share rows the same rank
    max_epochs  the loader ends before the epoch after these, for sources that do not say; None or 0: no end
    drop_last   what happens to samples at the end that do not fill a step of all ranks. True: they are left out.
                False: the last batch may be smaller, and ranks without a row end one batch earlier. If all are
                left out, a warning says so
    random_offset   whether the windows of each epoch begin at another token
    phases      {first_sample: [weight of each source, ...]}: new weights from that sample on. Those of sample 0 are
                used in place of the weights of the sources
    io          how to read; the environment variable TOKMAP_IO overrides it, and stats["io_reason"] says why a way was
                taken. "auto" chooses: "map" if the data are in memory and the file system can say so; "direct" if they
                are larger than memory; else "populate". "map": the memory map, nothing is read ahead. "populate": a thread
                brings the next rows into the map. "read": it copies them. "direct": it reads them past the page cache.
                "copy": each row is copied when it is asked for, without a thread. docs/SHARED.md: which one where
    look_ahead  steps to read ahead. 0: 256 rows, and up to 4,096 rows and 64 MiB where batches had to be waited for
    drop_behind     whether used rows leave the page cache, with "populate" and "read"
    mixed_tokenizers    whether the datasets may be of different tokenizers, whose ids do not mean the same. Else
                that is a MismatchError; datasets that name no tokenizer go with all others. A state does not
                depend on it
    skip        [(first, end), ...]: samples that are left out, from the first one to the one before the end of each
                pair. They count as used: all others stay what they are. A skip that lies ahead of a state is part of
                it, so amend is needed to continue a state with another one; those behind it need not be given again
    batch_schedule  [(sample, rows), ...]: from the first step that begins at this sample or later, the rows of a step
                of all ranks, in place of n_ranks * batch_rows. The order of samples does not depend on it
    amend       a state of a run with other weights, phases, max_epochs or skip, or without the last sources: this loader
                continues it, and what was trained on stays as it was. The weights are those from the state's sample
                on. Then write `phases` into the script, as the argument phases, which restores later states
    amend_from  {"weights": [...], "phases": {...}, "max_epochs": [...], "skip": [...]} of that run, or the path of its
                ledger. None: that of `ledger`; without one, phases are all those of the run, the first max_epochs are
                its own, and it had no other skip ahead
    ledger      a file, to which the Loader of rank 0 adds a line when it gives its first batch, whenever it then goes on
                in another way, and when it is closed: what trace and report need. Workers of a DataLoader write
                nothing: then tokmap.torch.data_loader notes where each iteration begins, and refuses batch_schedule
    micro_batches   for the ledger: batches in a step of the optimizer; 0: not known
    metrics_file    a file for a collector of Prometheus, written again with metrics(text=True) at most every
                metrics_seconds, when a batch is taken; .NAME.partial until it is complete; {rank} in its name is the
                rank
    on_mismatch     "error", or "amend": what restore and load_state_dict do with the state of such a run

    n_samples: how many there are, or None. phases: as the argument, from sample 0."""

    def __init__(self, sources: Any, sequence_length: int, batch_rows: int = 1, *,
                 outputs: Sequence[str] = ("inputs", "labels"), dtype: Any = "int64", contiguous: bool = True,
                 framework: Literal["numpy", "torch"] = "numpy", device: Any = None, reuse: bool = False, pad_id: int = 0,
                 ignore_index: int = -100, mask_labels: bool = False, rank: Optional[int] = None,
                 n_ranks: Optional[int] = None, seed: int = 0, shuffle: Shuffle = "full", windows: Windows = "concat",
                 max_epochs: Optional[int] = None, drop_last: bool = True, random_offset: bool = False,
                 phases: Optional[Mapping[int, Sequence[float]]] = None, block_windows: int = 0,
                 group_blocks: int = 0, io: Io = "auto", look_ahead: int = 0, drop_behind: bool = False,
                 mixed_tokenizers: bool = False, n_slots: int = 0, max_documents: int = 0,
                 log: Optional[Callable[[str], None]] = None, skip: Sequence[Tuple[int, int]] = (),
                 batch_schedule: Sequence[Tuple[int, int]] = (), ledger: Optional[Path] = None,
                 micro_batches: int = 0, metrics_file: Optional[Path] = None, metrics_seconds: float = 15, amend: Optional[bytes] = None,
                 amend_from: Union[None, Path, Mapping[str, Any]] = None, on_mismatch: Literal["error", "amend"] = "error", align: int = 1,
                 documents_per_row: int = 0, whole_documents: WholeDocuments = "split", weights: Weights = "samples", cp_rank: int = 0,
                 cp_size: int = 1, cp_mode: CpMode = "contiguous", mesh: Any = None, dims: Sequence[str] = ("dp",)) -> None:
        if mesh is not None:
            if (rank, n_ranks) != (None, None):
                raise ValueError("mesh says rank and n_ranks: do not give them too")
            rank, n_ranks = rank_in_mesh(mesh, dims)
            mesh, dims = None, ("dp",)  # not pickled
        elif not isinstance(dims, (list, tuple)) or tuple(dims) != ("dp",):
            raise ValueError(f"dims is {dims!r:.80}: these are dimensions of a mesh, and there is no mesh")
        contiguous, reuse = flag("contiguous", contiguous), flag("reuse", reuse)
        mask_labels, drop_last = flag("mask_labels", mask_labels), flag("drop_last", drop_last)
        random_offset = flag("random_offset", random_offset)
        drop_behind, mixed_tokenizers = flag("drop_behind", drop_behind), flag("mixed_tokenizers", mixed_tokenizers)
        cp_size = number("cp_size", cp_size, 2**24, 1)
        choose({"numpy": 0, "torch": 1}, framework, "framework")
        if log is not None and not callable(log):
            raise TypeError(f"log is {log!r:.80}: must be a function that takes a line of text")
        ledger = None if ledger is None else path("ledger", ledger)
        metrics_file = None if metrics_file is None else path("metrics_file", metrics_file)
        micro_batches = number("micro_batches", micro_batches, 2**32 - 1)
        metrics_seconds = real("metrics_seconds", metrics_seconds)
        if not metrics_seconds >= 0:
            raise ValueError(f"metrics_seconds is {metrics_seconds}: must be at least 0")
        state = None if amend is None else state_bytes(amend, "amend")
        if isinstance(amend_from, (str, os.PathLike)):
            amend_from = os.path.abspath(amend_from)  # the process may change its folder
            if not os.path.exists(amend_from):
                raise FileNotFoundError(f"amend_from is {amend_from!r}: there is no such file")
        arguments = dict(locals())
        del arguments["self"], arguments["state"]
        self._sources = as_sources(sources, max_epochs)
        self._mixture = Mixture(as_phases(phases, [s.weight for s in self._sources]),
                                [s.max_epochs or 0 for s in self._sources], as_skip(skip))
        self._amends = choose(_ON_MISMATCH, on_mismatch, "on_mismatch") == 1
        self.outputs = as_outputs(outputs)
        self.rank, self.n_ranks = find_rank(rank, n_ranks)
        self._rank_is_found = rank is None  # and not compared yet with what torch.distributed says at the first batch
        self.sequence_length = number("sequence_length", sequence_length, 2**24, 1)
        self.batch_rows = number("batch_rows", batch_rows, 2**24, 1)
        self.drop_last = drop_last
        self._pad_id = number("pad_id", pad_id, 2**32 - 1)
        self._steps = Steps(self._mixture.skip, as_schedule(batch_schedule, self.batch_rows, self.n_ranks))
        most_rows = self._steps.most_rows() // self.n_ranks
        if "cu_seqlens" in self.outputs and most_rows * self.sequence_length >= 2**31:
            raise ArgumentError(f"batch_rows is {most_rows}: cu_seqlens counts to 2^31 - 1 inputs of a batch", -1)
        arguments.update(sources=self._sources, outputs=self.outputs, rank=self.rank,
                         n_ranks=self.n_ranks, amend=None)
        self._arguments = arguments
        self._to_next = (self.n_ranks - self.rank) * self.batch_rows  # from the first row to the next step
        self._lane, self._n_lanes = 0, 1  # of processes that take turns: tokmap.torch
        span_mask = False
        if any(s.has_spans for s in self._sources):
            if not contiguous or not {"labels", "loss_mask"} & set(self.outputs):
                raise MismatchError("the data have tokens whose labels must not count: outputs needs labels or loss_mask, and "
                                    "contiguous=True", -7)
            span_mask = not mask_labels and "loss_mask" not in self.outputs
            mask_labels = mask_labels or "labels" in self.outputs
        needed = set(self.outputs) | ({"loss_mask"} if mask_labels else set())
        if any(s.masked for s in self._sources) and "loss_mask" not in needed:
            raise ValueError('a source is masked: add "loss_mask" to outputs, or set mask_labels=True')
        parts = row_parts(needed, device is not None and cp_size == 1, span_mask)
        self._order = Order(self._sources, {**arguments, "sequence_length": self.sequence_length, "row_parts": parts})
        if device is None and (integer("n_slots", n_slots) or integer("max_documents", max_documents) or log):
            raise ValueError("n_slots, max_documents and log are for a Loader with a device; documents_per_row limits the "
                             "documents of a row")
        if (windows != "concat" or cp_size > 1) and not contiguous:
            raise ValueError("contiguous=False needs windows='concat' and cp_size=1: the labels of other rows are not all the "
                             "next input")
        self._lock: Any = new_lock(self)  # held from next until the rows are copied
        self._turn = 0  # changes whenever the rows of the last batch are no longer valid
        if amend_from is None and ledger is not None and os.path.exists(ledger):
            amend_from = ledger
        self._amend_from: Union[None, Path, Mixture] = (
            amend_from if amend_from is None or isinstance(amend_from, (str, os.PathLike)) else as_mixture(amend_from))
        self._own_handle: Any = self._open(state)
        self._finder: Any = None
        self._windows: List[int] = []
        self._handle: Any = self._own_handle  # replaced while a stage uses the loader
        self._batch = _lib.Batch()
        self._detail = _lib.ErrorDetail()
        self._references = ctypes.byref(self._batch), ctypes.byref(self._detail)
        arguments["phases"] = self.phases
        self._count()
        n_samples = self.n_samples
        if drop_last and n_samples is not None and len(self) == 0:
            warnings.warn(f"{n_samples} samples are fewer than the {self.n_ranks * self.batch_rows} rows of a step of "
                          "all ranks, so there is no batch: set drop_last=False, or fewer batch_rows")
        self._stage: Any = None
        if device is None:
            self._gatherer = Gatherer(self._batch, self.outputs, dtype, contiguous, framework, reuse, pad_id,
                                      ignore_index if mask_labels else None, ignore_index, self.sequence_length)
            self._gatherer.set_loader(self._own_handle)
        else:
            if not (contiguous and drop_last) or reuse or "loss_mask" in self.outputs or dtype_name(dtype)[0] == "u":
                raise ValueError("a device cannot be combined with contiguous=False, drop_last=False, reuse=True, the dtype of "
                                 "the data, or the output loss_mask (mask_labels=True applies it)")
            from .._device.stage import Stage

            self._make_stage: Callable[[], Any] = lambda: Stage(
                self, device, self.outputs, input_dtype=dtype, label_dtype=dtype, pad_id=pad_id,
                ignore_index=ignore_index, n_slots=n_slots, max_documents=max_documents, log=log)
            self._stage = self._make_stage()
        self._token_counts: Any = None  # of each source, where a row may have fewer tokens
        self._metrics_file = None if metrics_file is None else MetricsFile(
            metrics_file.replace("{rank}", str(self.rank)), metrics_seconds)
        self._ledger: Any = None
        if ledger is not None and self.rank == 0:
            from .ledger import Ledger

            self._ledger = Ledger(ledger, micro_batches, self._own_handle)
            weakref.finalize(self, self._ledger.close)
        if state is not None:
            self._note_position(int.from_bytes(state[24:32], "little"))

    # ---- Open and close ----

    def _open(self, state: Optional[bytes]) -> Handle:
        """state: what to continue, with this mixture from there on."""
        try:
            handle = self._order.open(self._mixture, batch_rows=self.batch_rows, rank=self.rank, n_ranks=self.n_ranks)
            if state is not None:
                call(lib.tokmap_loader_restore, handle.pointer, (ctypes.c_uint8 * 128)(*state))
            return handle
        except (ArgumentError, MismatchError):
            if state is None:
                raise
        handle, self._mixture = self._continue_with(state)  # perhaps with its skips alone it could not be opened
        return handle

    def _continue_with(self, state: bytes) -> Tuple[Handle, Mixture]:
        return self._order.continue_with(self._mixture, state, self._before(), batch_rows=self.batch_rows, rank=self.rank,
                                         n_ranks=self.n_ranks)

    def _before(self) -> Before:
        known = self._amend_from
        if known is None or isinstance(known, Mixture):
            mixture = known
            return Before("amend_from", lambda sample: [mixture])
        from .ledger import earlier_mixtures

        path = known
        return Before(os.fspath(path), lambda sample: earlier_mixtures(path, sample))

    def _amend(self, state: bytes) -> None:
        """Opens the loader again with the mixture that continues the state."""
        handle, mixture = self._continue_with(state)
        if self._ledger is not None:
            self._ledger.close()  # as the loader was up to here
        self._mixture = mixture
        with self._lock:
            self._arguments["phases"] = self.phases
            if self._stage is not None:
                self._stage.close()
            self._own_handle = self._handle = handle
            self._finder = None
            if self._ledger is not None:
                self._ledger.handle = handle
            self._take_turns(self._lane, self._n_lanes)
            self._count()
            if self._stage is None:
                self._gatherer.set_loader(handle)
            else:
                self._stage = self._make_stage()

    def _count(self) -> None:
        info = self._get_info()
        self.n_samples: Optional[int] = None if info.n_samples == _NO_LIMIT else info.n_samples
        self._reading = f"{_IO_NAMES[info.io]} ({info.io_reason.decode(errors='replace')})"

    def _call(self, function: Any, *arguments: Any) -> None:
        with self._lock:
            handle = self._handle  # which another thread may replace
            call(function, handle.pointer, *arguments)

    def close(self) -> None:
        """Frees the loader. Arrays and states of batches stay valid. Waits for a call of another thread."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()
            if self._stage is not None:
                self._stage.close()
            self._handle = self._own_handle = NoHandle("the loader is closed")
            self._finder = None
            self._turn += 1

    def __enter__(self) -> "Loader":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickles the options and the state, so that another process opens the same loader there. If the data were
        replaced meanwhile, that raises MismatchError."""
        if self._rank_is_found:
            check_found(self.rank, self.n_ranks)
        return _reopen, ({**self._arguments, "ledger": None}, self.state(), self._rank_is_found)

    def __repr__(self) -> str:
        if isinstance(self._own_handle, NoHandle):
            return "<tokmap.Loader: closed>"
        end = "no end" if self.n_samples is None else f"{self.n_samples} samples"
        ranks = "" if self.n_ranks == 1 else f", rank {self.rank} of {self.n_ranks}"
        return (f"<tokmap.Loader: {self.batch_rows} rows of {self.sequence_length}{ranks}, at sample {self.sample}, "
                f"{end}, reads by {self._reading}>")

    def _repr_html_(self) -> str:
        return html.shown("of_loader", self)

    # ---- Batches ----

    def __iter__(self) -> "Loader":
        return self

    def __getitem__(self, i: Any) -> NoReturn:
        """Says what to use in its place: a DataLoader would ask for samples by their numbers."""
        raise TypeError("a Loader gives its batches one after another. A DataLoader takes tokmap.torch.IterableDataset, or is made "
                        "by tokmap.torch.data_loader; tokmap.Samples has samples by their numbers")

    def __next__(self) -> Batch:
        with self._lock:
            if self._rank_is_found:
                self._check_rank()
            if self._ledger is None and self._metrics_file is None:
                return self._next()
            if self._steps.changes:
                self._follow_schedule()
            if self._ledger is not None:
                self._ledger.begin(self.sample)
            batch = self._next()
            if self._ledger is not None:
                self._ledger.next_sample = batch.next_sample
            if self._metrics_file is not None:
                self._metrics_file.update(lambda: self.metrics(text=True))
            return batch

    def _next(self) -> Batch:
        if self._steps.changes and not self._follow_schedule():
            return self._take_uneven()
        return self._take_next() if self._stage is None else self._next_on_device()

    def _note_position(self, sample: int) -> None:
        """The ledger gets a line if the next batch does not follow the last one."""
        if self._ledger is not None and sample != self._ledger.next_sample:
            self._ledger.close()
            self._ledger.due = sample

    def _check_rank(self) -> None:
        """Before the first batch."""
        if self._rank_is_found:
            check_found(self.rank, self.n_ranks)
            self._rank_is_found = False

    def _take_next(self) -> Batch:
        self._turn = turn = self._turn + 1
        c_batch, handle = self._batch, self._handle  # a signal handler may close the loader meanwhile
        c_batch.step_sample = _NO_LIMIT
        try:
            status = _next(handle.pointer, *self._references)
            if not status:
                first = c_batch.first_sample
                batch = Batch(self._own_handle, self._steps, self.outputs, self._rows_of, turn, c_batch.n_rows, first,
                              self._after(first))
                self._gatherer.fill(batch)
                if self._token_counts is not None:
                    self._count_tokens()
        except BaseException:
            if self._turn == turn and c_batch.step_sample != _NO_LIMIT:
                self.seek(c_batch.step_sample)  # the caller did not get the batch: return it again
            raise
        if status:
            if status == _END:
                return self._take_uneven()
            check(status, self._detail)
        if self._turn != turn:
            raise RuntimeError("a signal handler has used the loader during next, and this batch is lost: a handler "
                               "may ask for the state, but not for a batch or another position")
        return batch

    def _new_batch(self, turn: int, n_rows: int, first: int, after: int) -> Batch:
        return Batch(self._own_handle, self._steps, self.outputs, self._rows_of, turn, n_rows, first, after)

    def _count_tokens(self) -> None:
        """Adds the inputs of the rows that were just taken."""
        for row in self._batch.rows[:self._batch.n_rows]:
            self._token_counts[row.source] += row.n_tokens - 1

    def _after(self, first: int) -> int:
        """The first sample of the next step of all ranks, from that of this rank in a step."""
        steps = self._steps
        return steps.sample(steps.position(first) + self._to_next) if steps.skips else first + self._to_next

    def _set_rows(self, batch_rows: int) -> None:
        if self._stage is not None:
            self._stage.close()
        self.batch_rows = batch_rows
        self._to_next = (self.n_ranks - self.rank) * batch_rows
        self._take_turns(self._lane, self._n_lanes)
        if self._ledger is not None and self._ledger.due is None:
            self._ledger.due = self._ledger.next_sample
        if self._stage is not None:
            self._stage = self._make_stage()

    def _follow_schedule(self) -> bool:
        """Whether the next steps, one for each lane, all have the same rows, which are then set."""
        steps, first = self._steps, self._steps.position(self.sample)
        n_rows = steps.rows(first)
        if n_rows != self.n_ranks * self.batch_rows:
            self._set_rows(n_rows // self.n_ranks)
        return not steps.changes_between(first, first + (self._n_lanes - 1) * n_rows)

    def _take_uneven(self) -> Batch:
        """The rows of this rank where the steps of the lanes differ: at a change of batch_schedule, and at the end, where
        the last one may not be complete."""
        steps, start = self._steps, self.sample
        end = _NO_LIMIT if self.n_samples is None else steps.position(self.n_samples)
        own = after = steps.position(start)
        n_step = 0
        for lane in range(self._n_lanes):
            if lane == self._lane:
                own, n_step = after, steps.rows(after)
            after = min(after + steps.rows(after), end)
        left = max(end - own, 0)
        if self.drop_last and left < n_step:
            raise StopIteration
        share = n_step // self.n_ranks
        n_rows = min(max(left - self.rank * share, 0), share)
        if n_rows > 0:
            first = steps.sample(own + self.rank * share)
            batch = self._new_batch(self._turn, n_rows, first, steps.sample(min(own + n_step, end)))
            try:
                self._call(lib.tokmap_loader_set_batch, 0, 1, n_rows)
                self._call(lib.tokmap_loader_seek, first)
                self._call(lib.tokmap_loader_next, ctypes.byref(self._batch))
                self._gatherer.fill(batch)
                batch._rows = self._rows_of(self._turn)
                if self._token_counts is not None:
                    self._count_tokens()
            finally:  # also after an error: the next call tries this step again
                self._take_turns(self._lane, self._n_lanes)
                self._call(lib.tokmap_loader_seek, start)
        self._call(lib.tokmap_loader_seek, steps.sample(after))
        if n_rows == 0:
            raise StopIteration
        return batch

    def _take_turns(self, lane: int, n_lanes: int) -> None:
        """Makes this loader one of n_lanes that take turns with whole steps, each from the same position."""
        with self._lock:
            self._call(lib.tokmap_loader_set_batch, self.rank + lane * self.n_ranks, self.n_ranks * n_lanes,
                       self.batch_rows)
            self._lane, self._n_lanes = lane, n_lanes
            self._turn += 1

    def _rows_of(self, turn: int) -> Optional[List[Row]]:
        with self._lock:
            if self._turn != turn:
                return None
            handle, batch, pad_id = self._own_handle, self._batch, self._pad_id
            return [Row(handle, row, batch.sequence_length, pad_id) for row in _lib.unpack_rows(batch.rows, batch.n_rows)]

    def _next_on_device(self) -> Batch:
        staged = self._stage.next()
        if staged is None:
            raise StopIteration
        first = staged.first_sample
        batch = self._new_batch(-1, staged.n_rows, first, self._after(first))  # its rows are those of the stage
        for name, tensor in staged.torch()._asdict().items():
            setattr(batch, name, tensor[:staged.n_documents + 1] if name == "cu_seqlens" else tensor)
        if "cu_seqlens" in self.outputs:
            batch.max_seqlen = staged.max_seqlen
        if self._token_counts is not None:
            cp_size = self._arguments["cp_size"]
            for at in map(self.locate, batch.sample_ids.tolist()):
                self._token_counts[at.source] += at.n_tokens - 1 if cp_size == 1 else self.sequence_length // cp_size
        return batch

    def __len__(self) -> int:
        """Batches from sample 0 to the end. TypeError if there is no end."""
        if self.n_samples is None:
            raise TypeError("this loader has no end, so it has no len(): set max_epochs")
        n_steps, at = self._steps.count(self.n_samples)
        rest = self._steps.position(self.n_samples) - at
        return n_steps + (not self.drop_last and rest > self.rank * (self._steps.rows(at) // self.n_ranks))

    # ---- Position ----

    @property
    def sample(self) -> int:
        """The first sample of the next step."""
        with self._lock:
            handle = self._handle
            position: int = self._stage.sample if self._stage else lib.tokmap_loader_position(handle.pointer)
        return position

    @property
    def epochs(self) -> List[int]:
        """How many epochs of each source are over."""
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
        """One that no stage uses: with a device another one, which is opened when it is needed first."""
        if self._stage is None or self._handle is self._own_handle:
            return self._handle
        self._finder = self._finder or self._order.open(self._mixture, batch_rows=1, io=IO["map"])
        return self._finder

    @property
    def epoch(self) -> int:
        """How many epochs of the first source are over."""
        return self.epochs[0]

    def seek(self, sample: int) -> None:
        """The next step starts at this sample, or after those that are skipped there."""
        sample = number("sample", sample, 2**62)
        with self._lock:
            self._note_position(sample)
            self._turn += 1
            if self._stage is not None:
                self._stage.seek(sample)
            else:
                self._call(lib.tokmap_loader_seek, sample)

    def locate(self, sample: int) -> Sample:
        """Where a sample comes from, without reading its tokens. With a device, the first call opens the order of samples
        once more."""
        out = self._locate(sample)
        return Sample(*(getattr(out, name) for name in Sample._fields))

    def pieces(self, sample: int) -> List[Piece]:
        """With windows="best_fit", what the row of a sample has of which documents."""
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
        if pieces := self.pieces(sample):
            return tuple((piece.first_token, piece.n_tokens) for piece in pieces)
        at = self.locate(sample)
        begin, end = self._sources[at.source].extent(at.dataset)
        n = min(at.n_tokens, end - at.first_token)  # with a random offset it may go on at the beginning
        return ((at.first_token, n), (begin, at.n_tokens - n))[:1 + (n < at.n_tokens)]

    # ---- State ----

    def state(self) -> bytes:
        """128 bytes, the same on every rank. restore() continues after the last batch that was taken, which may be
        later than the last one that was trained on: Batch.state is the state after that batch."""
        with self._lock:
            return save_at(self._own_handle, self.sample)

    def restore(self, state: bytes) -> None:
        """Continues where a state was taken. MismatchError: it was taken with other data, or with another sequence
        length, seed, shuffle, kind of windows or mixture; if the data were redacted since, it says which order_of their
        Source needs."""
        self._continue(state, self._amends)

    def _continue(self, state: bytes, amends: bool) -> None:
        state = state_bytes(state)
        try:
            with self._lock:
                self._turn += 1
                if self._stage is not None:
                    self._stage.restore(state)
                else:
                    self._call(lib.tokmap_loader_restore, (ctypes.c_uint8 * 128)(*state))
        except MismatchError as error:
            if not amends:
                raise explain(error, state, self._before(), self._mixture) from None
            self._amend(state)
        self._note_position(int.from_bytes(state[24:32], "little"))

    @property
    def phases(self) -> Dict[int, List[float]]:
        """{sample: [weight of each source from there on, ...]}, from sample 0: what the argument phases may be."""
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
        """How it reads ("io", "look_ahead") and why ("io_reason"), its memory ("resident_bytes"), and how many steps
        had to wait and how long ("n_waits", "ns_waited", ...). With io="map", nothing is read ahead, and a step waits
        while its arrays are written; with outputs=() where its rows are used, which is not counted. With a device,
        those of the stage."""
        if self._stage is not None:
            staged: Dict[str, Any] = self._stage.stats
            return staged
        info = self._get_info()
        found = {name: getattr(info, name) for name, _ in info._fields_ if name != "struct_size"}
        found["io"] = _IO_NAMES[info.io]
        found["io_reason"] = info.io_reason.decode(errors="replace")
        return found

    def metrics(self, *, text: bool = False) -> Any:
        """What was read and used so far: the position, waits, bytes read (0 with io="map"), and for each source samples,
        tokens and epochs. As a dict, or as the text of OpenMetrics. Samples are those of all ranks, and so are tokens; but unless windows is "concat",
        tokens are what this process has given out since the first call (tokens_of_process). With a device, waits are
        those of its stage."""
        if self._token_counts is None and self._order.has_short_rows:
            self._token_counts = [0] * len(self._sources)
        found = self._collect()
        return as_text(found) if text else found

    def _collect(self) -> Dict[str, Any]:
        position, stats, handle, counted = self.sample, self.stats, self._own_handle, self._token_counts
        before, skipped = counts_before(handle, position), np.zeros(len(self._sources), np.int64)
        for begin, end in self._mixture.skip:
            if begin < position:
                skipped += counts_before(handle, min(end, position)) - counts_before(handle, begin)
        found: Dict[str, Any] = {"position": position, "rank": self.rank, "n_ranks": self.n_ranks,
                                 "batch_rows": self.batch_rows, "samples_skipped": int(skipped.sum())}
        found.update((name, stats[name]) for name in (*STATS, *WAITS) if name in stats)
        found["tokens_of_process"] = counted is not None
        found["sources"] = []
        for k, source in enumerate(self._sources):
            n_samples = int(before[k] - skipped[k])
            found["sources"].append({
                "path": source.datasets[0].paths[0], "samples": n_samples, "epochs": int(before[k]) / self._n_windows()[k],
                "tokens": n_samples * self.sequence_length if counted is None else int(counted[k])})
        return found


def of_worker(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """For a process that gives batches of a run, but does not write its ledger."""
    ledger = arguments["ledger"] or ""
    return {**arguments, "ledger": None, "amend_from": arguments["amend_from"] or (ledger if os.path.exists(ledger) else None)}


def note_start(arguments: Dict[str, Any], state_dict: Mapping[str, Any]) -> None:
    """In the ledger of a run whose batches other processes give."""
    if arguments["ledger"] is not None:
        if arguments["batch_schedule"]:
            raise ValueError("the ledger would not say where batch_schedule changes the rows of a step, because workers "
                             "write nothing: use num_workers=0, or no ledger")
        with Loader(**arguments) as loader:
            loader.load_state_dict(state_dict)
            if loader._ledger is not None:
                loader._ledger.begin(loader.sample)
                loader._ledger.next_sample = None  # nothing is known of its end


def _reopen(arguments: Dict[str, Any], state: bytes, rank_is_found: bool = False) -> Loader:
    loader = Loader(**arguments)
    loader._rank_is_found = rank_is_found
    loader.restore(state)
    return loader

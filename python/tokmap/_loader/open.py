# SPDX-License-Identifier: Apache-2.0
"""From the arguments of a Loader to an open loader of the library: which samples there are, and how they are read."""

import ctypes
import os
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Set, Tuple

from .._c import structs as _lib
from .._c.arguments import text
from .._c.errors import Error, Handle, MismatchError, call
from .._c.structs import lib
from .._data.dataset import Shard, pointers_of
from .batch import PARTS
from .lists import DocumentList
from .mixture import Mixture, amended, as_mixture
from .options import LANE, CpMode, Io, Options, Shuffle, Weights, WholeDocuments, Windows, choose
from .roles import USUAL, choose_roles, may_mask
from .sources import stores_of


def row_parts(outputs: Set[str], by_stage: bool, span_mask: bool) -> int:
    """What the library has to find out about rows. A stage makes positions and numbers of whole rows from boundaries.
    span_mask: labels that begin a document count."""
    wanted = {"cu_seqlens" if by_stage and name in ("position_ids", "document_ids") else name for name in outputs}
    return sum(PARTS.get(name, 0) for name in wanted) + 16 * span_mask


def lanes_of(given: Options) -> List[str]:
    """The names of the lanes that the outputs need."""
    if ("loss_weight" in given.outputs) != (given.rows.loss_weight is not None):
        raise ValueError('the output "loss_weight" and rows=tokmap.Rows(loss_weight="NAME"), its lane, need each other')
    if given.device is not None and any(name == "loss_weight" or name.startswith(LANE) for name in given.outputs):
        raise ValueError('lanes cannot be combined with device: use framework="torch", and Batch.to')
    found = [name[len(LANE):] for name in given.outputs if name.startswith(LANE)]
    return list(dict.fromkeys(found + ([given.rows.loss_weight] if given.rows.loss_weight else [])))


class Before(NamedTuple):
    """What is known of the mixture that a run had. find gives the mixtures that the run may have had at a sample, the
    likeliest first. views: what to say of views that have changed since then."""

    name: str
    find: Callable[[int], Sequence[Optional[Mixture]]]
    views: Callable[[int], List[str]]


def find_before(given: Options) -> Before:
    """Chooses amend_from, or else the ledger. A ledger is read when it is asked for."""
    known, sources = given.resume.amend_from, given.sources
    if known is None and given.ledger is not None and os.path.exists(given.ledger):
        known = given.ledger
    if not isinstance(known, str):
        mixture = None if known is None else as_mixture(known)
        return Before("amend_from", lambda sample: [mixture], lambda sample: [
            f"This loader has {view!r} of {view.dataset.paths[0]}" for source in sources for view in source.views if view])
    from .ledger import changed_views, earlier_lines, earlier_mixtures

    path = known
    return Before(path, lambda sample: earlier_mixtures(path, sample), lambda sample: [
        text for line in earlier_lines(path, sample)[:1] for then, now in zip(line.fields["sources"], sources)
        for text in changed_views(then, now._paths(), now._used_views())])


class Opener:
    """Opens all samples of some sources, except for their mixture, which a run may change. masks_labels: whether labels
    whose loss mask is 0 become ignore_index."""

    def __init__(self, given: Options) -> None:
        sources, order, rows, ranks, reading = given.sources, given.order, given.rows, given.ranks, given.reading
        self._sources, self._deadline = sources, reading.deadline
        for s in sources:
            if s._made_for not in (None, given.sequence_length):
                raise ValueError(f"sequence_length is {given.sequence_length}: a source was made for {s._made_for}, and its order of "
                                 "windows would be another one")
        outputs: Set[str] = {*given.outputs}
        self.masks_labels, span_mask = rows.mask_labels, False
        choose_roles(sources, rows.train_roles)
        self._lanes = lanes_of(given)
        for s in sources:
            for name in s.lanes or ():
                if name not in self._lanes:
                    raise ValueError(f"lanes of a source has {name!r}, but the outputs name the lanes {', '.join(self._lanes) or 'of none'}")
        if any(map(may_mask, sources)):
            if not rows.contiguous or outputs.isdisjoint({"labels", "loss_mask"}):
                raise MismatchError("the data have tokens whose labels must not count: outputs needs labels or loss_mask, and "
                                    "contiguous=True", -7)
            span_mask = not self.masks_labels and "loss_mask" not in outputs
            self.masks_labels = self.masks_labels or "labels" in outputs
        needed = outputs | {"loss_mask"} if self.masks_labels or "loss_weight" in outputs else outputs
        if any(s.masked for s in sources) and "loss_mask" not in needed:
            raise ValueError('a source is masked: add "loss_mask" to outputs, or set rows=tokmap.Rows(mask_labels=True)')
        parts = row_parts(needed, given.device is not None and ranks.cp_size == 1, span_mask)
        self._options = {
            "sequence_length": given.sequence_length, "row_parts": parts, "seed": given.seed,
            "shuffle": choose("shuffle", given.shuffle, Shuffle), "windows": choose("windows", given.windows, Windows),
            "random_offset": order.random_offset, "block_windows": order.block_windows, "group_blocks": order.group_blocks,
            "weigh_tokens": choose("weights", order.weights, Weights), "cp_rank": ranks.cp_rank, "cp_size": ranks.cp_size,
            "cp_mode": choose("cp_mode", ranks.cp_mode, CpMode), "io": choose("io", reading.io, Io), "look_ahead": reading.look_ahead,
            "drop_behind": reading.drop_behind, "mixed_tokenizers": reading.mixed_tokenizers,
            "verify_blocks": reading.verify, "view_pieces": ranks.cp_size == 1 and not outputs.isdisjoint({"inputs", "labels"})}
        if (order.block_windows or order.group_blocks) and given.shuffle != "block":
            raise ValueError("block_windows and group_blocks need shuffle='block'")
        packing = {"align": rows.align, "max_documents": rows.max_documents,
                   "whole_documents": choose("whole_documents", rows.whole_documents, WholeDocuments)}
        self.has_short_rows = given.windows != "concat" or any(one and one.keeps_rest for s in sources for one in s.document_lists)
        if given.windows == "best_fit":
            self._options.update(packing)
        elif tuple(packing.values()) != (1, 0, 0) or any(any(s.rows_files) for s in sources):
            raise ValueError("align, max_documents, whole_documents and rows_files need windows='best_fit'")
        if (self.has_short_rows or ranks.cp_size > 1) and not rows.contiguous:
            raise ValueError("contiguous=False needs windows='concat' without a rest of a list, and cp_size=1: the labels of other rows are not all the "
                             "next input")

    def open(self, mixture: Mixture, **batches: int) -> Handle:
        """batches: who gets which rows, and options that replace given ones."""
        shards: List[List[Shard]] = [[shard for d in s.datasets for shard in d._shards()] for s in self._sources]
        views = [[one for dataset, view in zip(s.datasets, s.views)
                  for one in (view._handles if view else [None] * len(dataset.paths))] for s in self._sources]

        def close(pointer: Any, used: Any = (views, [(s.document_lists, s.window_list) for s in self._sources])) -> None:
            """Closes the loader, and lets go of its views and lists then."""
            lib.tokmap_loader_close(pointer)

        for one in stores_of(self._sources):
            one.deadline = self._deadline
        handle = Handle(close, shards)
        options = mixture.as_options(**{**self._options, **batches})
        for c, s, own, of_own in zip(options.sources, self._sources, shards, views):
            c.datasets, c.n_datasets = pointers_of(own), len(own)
            c.masked = bool(s.masked)
            c.lacks_lanes = sum(1 << i for i, name in enumerate(self._lanes) if s.lanes is not None and name not in s.lanes)
            c.train_roles = None if s._roles == USUAL else s._roles
            if any(s.rows_files):
                c.rows_files = (ctypes.c_char_p * len(own))(*[None if path is None else os.fsencode(path) for path in s.rows_files])
            if s.order_of != [None]:
                c.order_of = (ctypes.c_char_p * len(own))(*[None if one is None else one.encode() for one in s.order_of])
            if s.documents != [None]:
                c.documents = (ctypes.c_uint64 * (2 * len(own)))(*[n for one in s.documents for n in one or (0, 2**64 - 1)])
            if any(of_own):
                c.views = (ctypes.c_void_p * len(own))(*[view.pointer if view else None for view in of_own])
            if any(s.document_lists):
                c.document_lists = (_lib.DocumentList * len(own))(*map(_as_struct, s.document_lists))
            if s.window_list is not None:
                array = s.window_list.array
                c.window_list, c.n_window_list, c.window_list_bytes = array.ctypes.data, array.size, array.itemsize
        options.lanes = (ctypes.c_char_p * len(self._lanes))(*[text("outputs", name, "the name of a lane") for name in self._lanes])
        options.n_lanes = len(self._lanes)
        call(lib.tokmap_loader_open, ctypes.byref(handle.pointer), ctypes.byref(options))
        return handle

    def continue_with(self, mixture: Mixture, state: bytes, before: Before, **batches: int) -> Tuple[Handle, Mixture]:
        """A loader that continues a state with another mixture, which is the second result."""
        errors: List[Exception] = []
        sample = int.from_bytes(state[24:32], "little")
        for one in before.find(sample):
            try:
                found = amended(one, mixture, sample) if one else mixture
                handle = self.open(found, **batches)
                options = one.as_options(weigh_tokens=self._options["weigh_tokens"]) if one else None
                call(lib.tokmap_loader_amend, handle.pointer, (ctypes.c_uint8 * 128)(*state), options and ctypes.byref(options))
                return handle, found
            except (MismatchError, ValueError) as error:
                errors.append(error)
        raise explain(errors[0], state, before, mixture)  # of the likeliest one


def _as_struct(given: Optional[DocumentList]) -> _lib.DocumentList:
    if given is None:
        return _lib.DocumentList()
    documents = given.documents.array
    found = _lib.DocumentList(documents=documents.ctypes.data, n_documents=documents.size, document_bytes=documents.itemsize,
                              keeps_rest=given.keeps_rest)
    if given.starts is not None:
        starts = given.starts.array
        found.starts, found.n_windows, found.start_bytes = starts.ctypes.data, len(starts), starts.itemsize
    return found


def _explain_views(error: Error, state: bytes, before: Before) -> Error:
    """Adds to the error which views have other documents, and what to do."""
    try:
        changed = before.views(int.from_bytes(state[24:32], "little"))
    except (Error, OSError):  # the ledger cannot be read
        return error
    return error if not changed else MismatchError(
        f"{error}. {'; '.join(changed)}. A run goes on only with the same documents: restore the columns that the expression reads, "
        "or give the earlier view file as view=... of tokmap.Source. To change the view of a run, keep the earlier view as a source "
        "of weight 0, add the new one as another source, and set amend=state of tokmap.Resume", error.status)


def explain(error: Exception, state: bytes, before: Before, mixture: Mixture) -> Exception:
    """What to raise for a state that this mixture does not continue. If the mixtures differ, it names both, and says
    what to do."""
    if isinstance(error, Error) and error.reason == _lib.OTHER_DATA:
        return _explain_views(error, state, before)
    if not isinstance(error, Error) or error.reason != _lib.OTHER_MIXTURE:
        return error
    sample, n_sources, n_phases = (int.from_bytes(state[a:b], "little") for a, b in ((24, 32), (32, 36), (36, 40)))
    try:
        known = before.find(sample)[0]
        saved = "a ledger would say which" if known is None else f"{before.name} says {known}"
    except (Error, OSError) as damage:
        saved = str(damage)
    return MismatchError(
        f"{error}. The state is at sample {sample}, and has {n_sources} sources and weights of {n_phases} phases; {saved}. This "
        f'loader has {mixture}. To change the run from there on, set amend=state or on_mismatch="amend" of tokmap.Resume, with ledger=... '
        "or amend_from=... for what it had before. To go on without a change, give the sources and weights that it had; if that run "
        "was amended, give tokmap.Order(phases=...) too, with the Loader.phases of that run", error.status)

# SPDX-License-Identifier: Apache-2.0
"""What a run was trained on: from steps and samples to documents, from documents to steps, and labels of documents."""

import ctypes
import glob
import os
import warnings
from typing import Any, Callable, Container, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from .._c import html
from .._c import structs as _lib
from .._c.arguments import integer, number, path, state_bytes
from .._c.errors import ArgumentError, Error, MismatchError
from .._c.structs import lib
from .._data.dataset import Array, Dataset, Path
from .._data.values import prefix_of
from .._data.view import View
from .._loader import ledger as _ledger
from .._loader.batch import counts_before
from .._loader.ledger import Line, Segment
from .._loader.loader import Loader, Piece
from .._loader.options import Order, Output, Ranks, Reading, Rows
from .._loader.roles import may_mask, names_of_roles, only_roles
from .._loader.sources import Source, stores_of
from .report import Report, Share, check_boundaries, shares


class TracedDocument(NamedTuple):
    """A document in a row: its number in the dataset, the tokens of it that are there, and whether it was redacted."""

    number: int
    first_token: int
    n_tokens: int
    input: Optional[str]
    meta: Dict[str, Any]
    redacted: bool = False


class TracedRow(NamedTuple):
    """A row of a run. given_up: the run went back to an earlier sample, so this row does not count."""

    sample: int
    step: int
    micro_batch: int
    rank: int
    row: int
    source: int
    dataset: str
    epoch: int
    window: int
    first_token: int
    n_tokens: int
    given_up: bool = False
    pieces: Tuple[Piece, ...] = ()  # with windows="best_fit"
    parts: Tuple[Tuple[int, int], ...] = ()  # its tokens in the dataset, several with a view: the first one, and how many


class _Part(NamedTuple):
    """A segment of the run, and its steps. The first one may have begun before it, with this many batches."""

    segment: Segment
    end: int
    first_step: int
    n_steps: int
    first_position: int
    n_before: int
    micro_batches: int
    batch_rows: int  # of all ranks


class Run:
    """A run, as its ledger tells it: what was in its steps, and in which steps a document was.

        with tokmap.Loader("data/train", sequence_length=64, ledger="run.ledger") as loader:
            for _ in range(3):
                next(loader)
        run = tokmap.Run("run.ledger")
        for row in run.step(2):
            print(row.sample, [document.number for document in run.documents(row)])

    ledger      the path of the ledger, whose datasets must be where its last line says; or a Loader, if its n_ranks,
                batch_rows and micro_batches were the same from sample 0 on
    until       a sample or a state: where the run is. None: where the ledger says that the run was closed, or where the
                Loader is
    all_attempts    whether the answers are also about what the run did before it went back to an earlier sample

    given_up: what the run did before it went back, as pairs of samples. If the ledger does not have the end of such a
    part, the end is None, and the answers leave the part out."""

    def __init__(self, ledger: Union[Path, Loader[Any]], until: Union[None, int, bytes] = None, *,
                 all_attempts: bool = False) -> None:
        state = None if until is None or isinstance(until, int) else state_bytes(until)
        if state is not None:
            until = int.from_bytes(state[24:32], "little")
        others: List[_ledger.GivenUp] = []
        if isinstance(ledger, Loader):
            place = "the Loader"
            if ledger._turns.steps.changes:
                raise ArgumentError("with batch_schedule, only a ledger says which steps there were", -1)
            segments = [Segment(0, None, _ledger.line_of(ledger._own_handle, ledger._options.record.micro_batches))]
            segments[0].line.sources = ledger._sources
            for view in [view for source in ledger._sources for view in source.views if view]:
                segments[0].line.ways.update(view._reopen_arguments())
            until = ledger.sample if until is None else until
        else:
            place = path("ledger", ledger)
            lines = _ledger.read(place)
            segments, others = _ledger.history(lines), _ledger.given_up(lines)
        last = segments[-1].end
        end = last if until is None else number("until", until, 2**62)
        if end is None:
            raise ArgumentError(f"{place}: does not say where the run ended: give until (--until), the sample after its "
                                "last one", -1)
        if last is not None and end > last:
            raise ArgumentError(f"{place}: the run was closed at sample {last}, before sample {end}", -1)
        if end < segments[0].begin:
            raise ArgumentError(f"{place}: begins at sample {segments[0].begin}, after sample {end}", -1)
        if state is not None:
            _check_state(state, [s for s in segments if s.begin <= end])
        segments = [s for s in segments if s.begin < end] or segments[:1]
        self.given_up = [(one.begin, one.end) for one in others]
        self._n_given_up = len({one.history[-1].line.place for one in others})
        self._attempts, self._is_given_up = [self], False
        self._set(segments, 0, end)
        for one in others if all_attempts else ():
            if one.end is not None:
                attempt = Run.__new__(Run)
                attempt._is_given_up = True
                attempt._set(one.history, one.begin, one.end)
                self._attempts.append(attempt)
        self._by_path = {d.paths[0]: d for run in self._attempts for some in run._datasets for d in some}

    def _set(self, segments: List[Segment], begin: int, end: int) -> None:
        """The answers are about the samples from `begin` on."""
        self.end = end
        self._line = segments[-1].line
        self.loader = _open(self._line, _skips_of(segments, end))
        self.loader.seek(end)
        self._datasets = [source.datasets for source in self.loader._sources]
        self._parts = list(self._plan(segments))
        self._spans: List[Tuple[int, int]] = []  # all samples that were used, or skipped
        for part in self._parts:
            first, last = max(part.segment.begin, begin), max(part.end, begin)
            if self._spans and self._spans[-1][1] == first:
                self._spans[-1] = self._spans[-1][0], last
            else:
                self._spans.append((first, last))

    def _plan(self, segments: List[Segment]) -> Iterator[_Part]:
        n_steps, n_batches, steps = 0, 0, self.loader._turns.steps
        for segment in segments:
            end = self.end if segment.end is None else min(segment.end, self.end)
            first, line = steps.position(segment.begin), segment.line
            micro_batches = max(int(line.fields["micro_batches"]), 1)
            n_before = n_batches % micro_batches if line.event == "batch" else 0
            n_steps -= n_before > 0  # goes on with the last one
            n_batches = n_before - (first - steps.position(end)) // line.rows
            n = -(-n_batches // micro_batches)
            yield _Part(segment, end, n_steps, n, first, n_before, micro_batches, line.rows)
            n_steps += n

    @property
    def n_steps(self) -> int:
        """Steps of the optimizer up to here."""
        last = self._parts[-1]
        return last.first_step + last.n_steps

    @property
    def n_ranks(self) -> int:
        """The largest number of ranks that a step had."""
        ranks: List[int] = [part.segment.line.fields["ranks"] for run in self._attempts for part in run._parts]
        return max(ranks)

    def __repr__(self) -> str:
        counted = ((self.n_steps, "step"), (self.n_ranks, "rank"), (self._n_given_up, "attempt"))
        steps, ranks, attempts = (f"{n} {what}{'s' * (n != 1)}" for n, what in counted)
        return f"<tokmap.Run: {steps}, {ranks}, up to sample {self.end}{f', {attempts} given up' * (self._n_given_up > 0)}>"

    def _repr_html_(self) -> str:
        return html.shown("of_run", self)

    def step(self, step: int, rank: Optional[int] = None) -> List[TracedRow]:
        """The rows of a step of all ranks, or of one rank. A step has all of its micro-batches if the ledger has the
        number of micro-batches."""
        step = integer("step", step)
        parts = [(run, part) for run in self._attempts for part in run._parts
                 if part.first_step <= step < part.first_step + part.n_steps]
        rows = [row for run, part in parts for row in run._rows_of_step(part, step)]
        if not rows:
            raise IndexError(f"step {step}: there are {self.n_steps} steps up to sample {self.end}, from step 0")
        n_ranks = max(part.segment.line.fields["ranks"] for _, part in parts)
        if rank is not None and not 0 <= integer("rank", rank) < n_ranks:
            raise IndexError(f"rank {rank}: step {step} had {n_ranks}")
        return [row for row in rows if rank is None or row.rank == rank]

    def _rows_of_step(self, part: _Part, step: int) -> List[TracedRow]:
        steps, n_rows = self.loader._turns.steps, part.micro_batches * part.batch_rows
        first = part.first_position + (step - part.first_step) * n_rows - part.n_before * part.batch_rows
        samples = map(steps.sample, range(max(first, part.first_position), min(first + n_rows, steps.position(part.end))))
        return [self._row(sample) for sample in samples if self._has(sample)]

    def _has(self, sample: int) -> bool:
        steps = self.loader._turns.steps
        return any(a <= sample < b for a, b in self._spans) and steps.sample(steps.position(sample)) == sample

    def rows(self, sample: int) -> List[TracedRow]:
        """The row of a sample that was used; with all_attempts also the rows that do not count."""
        sample = integer("sample", sample)
        found = [run._row(sample) for run in self._attempts if run._has(sample)]
        if not found:
            what = "was not used" if 0 <= sample < self.end else f"is not before sample {self.end}, where the run is"
            raise IndexError(f"sample {sample} {what}")
        return found

    def row(self, sample: int) -> TracedRow:
        """The row of a sample that was used: the row that counts, if there is such a row."""
        return self.rows(sample)[0]

    def _row(self, sample: int) -> TracedRow:
        position = self.loader._turns.steps.position(sample)
        at = self.loader.locate(sample)
        _check_lists(self._line, [at.source])
        part = next(part for part in self._parts if part.segment.begin <= sample < part.end)
        n_batches, within = divmod(position - part.first_position, part.batch_rows)
        step, micro_batch = divmod(part.n_before + n_batches, part.micro_batches)
        rank, row = divmod(within, part.segment.line.fields["batch_rows"])
        path = self._datasets[at.source][at.dataset].paths[0]
        return TracedRow(sample, part.first_step + step, micro_batch, rank, row, source=at.source, dataset=path,
                         epoch=at.epoch, window=at.window, first_token=at.first_token, n_tokens=at.n_tokens,
                         given_up=self._is_given_up, pieces=tuple(self.loader.pieces(sample)),
                         parts=self.loader._parts(sample))

    def documents(self, row: TracedRow) -> List[TracedDocument]:
        """The documents that have tokens in the row, in their order."""
        dataset = self._by_path[row.dataset]
        check_boundaries(dataset)
        return [document for at, n in row.parts for document in _documents_of(dataset, at, n)]

    def report(self, by: str = "source", column: str = "") -> List[Share]:
        """How many tokens were labels up to here, the largest share first. by: "source" (its number), "input", "value"
        of a column that the documents kept, "host" of a column of URLs, or "role" of the tokens: its name, None for tokens
        without a role, "unnamed" for roles without a name. The labels of a source that has a list of
        documents or of windows are not counted: a warning says so, and `not_counted` of the result has its number."""
        if by not in ("source", "input", "role", "value", "host") or bool(column) != (by in ("value", "host")):
            raise ValueError(f"by is {by!r} and column {column!r}: by is 'source', 'input' or 'role', or 'value' or 'host' of a column")
        found, not_counted = self._shares(by, column), self._not_counted()
        for why in not_counted.values():
            warnings.warn(f"not counted: {why}", stacklevel=2)
        return Report(found, column or by, {one.name: self._name_of_source(one.name) for one in found} if by == "source" else {},
                      not_counted)

    def _unknown(self) -> List[int]:
        """The sources of which neither epochs nor rows are known."""
        return _unknown(self._line)

    def _not_counted(self) -> Dict[int, str]:
        return {k: f"source {self._name_of_source(k)}, which has a list of documents or of windows"
                for k in sorted({k for run in self._attempts for k in _with_lists(run._line)})}

    def _path_of_source(self, source: int) -> Optional[str]:
        """That of its first dataset; None if attempts had different ones."""
        found = {one._paths()[0] for run in self._attempts for one in run.loader._sources[source:source + 1]}
        return found.pop() if len(found) == 1 else None

    def _name_of_source(self, source: int) -> str:
        """Its number, its datasets, and the expression of its views; only the number if attempts had different ones."""
        found = {(tuple(one._paths()), tuple(dict.fromkeys(view[1] for view in one._used_views() if view)))
                 for run in self._attempts for one in run.loader._sources[source:source + 1]}
        paths, views = found.pop()
        return str(source) if found else f"{source} {paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "") + "".join(
            f" where {where}" if where else " through a view" for where in views)

    def _shares(self, by: str, column: str, go_through: Callable[[Iterable[int]], Iterable[int]] = iter) -> List[Share]:
        if by != "role":
            return shares(self._uses(), by, column, go_through)
        found = []
        without: List[str] = []
        for names in (without, *([name] for name in sorted({
                name for run in self._attempts for source in run.loader._sources for name in names_of_roles(source)}))):
            # The labels of one role are those that count beside labels without a role.
            uses = self._uses(names) + (self._uses(without, is_added=False) if names else [])
            found += [share._replace(name=names[0] if names else None) for share in shares(uses, "role", "", go_through)]
        return sorted(found, key=lambda share: (-share.n_labels, str(share.name)))

    def _uses(self, roles: Optional[List[str]] = None, is_added: bool = True) -> List[Tuple[Loader[Any], List[int], int, int, bool]]:
        """The samples that were used, or skipped, of each loader: its sources that are not counted, from which sample, and
        up to which. roles: only labels of these roles count, and those without a role; None: those that the run had."""
        loaders = [(run, run.loader if roles is None else _open(run._line, run.loader._mixture.skip, roles)) for run in self._attempts]
        return [(loader, _with_lists(run._line), *span, is_added) for run, loader in loaders for span in run._spans]

    def samples(self, path: Path, first_document: int, n_documents: int = 1) -> List[TracedRow]:
        """The rows that had one of these documents of a dataset, in the order of training."""
        same = {name: dataset for name, dataset in self._by_path.items() if _is_same(name, path)}
        if not same:
            raise LookupError(f"{os.fspath(path)}: is no dataset of the run")
        dataset, n_documents = next(iter(same.values())), number("n_documents", n_documents, 2**64 - 1, 1)
        check_boundaries(dataset)
        first, last = dataset.document(first_document), dataset.document(first_document + n_documents - 1)
        n_tokens = last.first_token + last.n_tokens - first.first_token
        return [row for run in self._attempts for row in run._rows_with(same, first.first_token, n_tokens)]

    def _rows_with(self, paths: Container[str], first_token: int, n_tokens: int) -> List[TracedRow]:
        found: Set[int] = set()
        for source, datasets in enumerate(self._datasets):
            for k in [k for k, dataset in enumerate(datasets) if dataset.paths[0] in paths]:
                _check_lists(self._line, [source])
                for epoch in self._epochs(source):
                    found.update(find_samples(self.loader, source, k, epoch, first_token, n_tokens).tolist())
        return [self._row(sample) for sample in sorted(found) if self._has(sample)]

    def _epochs(self, source: int) -> List[int]:
        """The epochs of a source that had samples before the end, without those that were skipped as a whole."""
        handle, n = self.loader._own_handle, self.loader._n_windows()[source]
        found: Set[int] = set()
        ends = [0, *(sample for skip in self.loader._mixture.skip for sample in skip), self.end]
        for begin, end in zip(ends[::2], ends[1::2]):
            if begin < end:
                first, last = (int(counts_before(handle, sample)[source]) for sample in (begin, end))
                found.update(range(first // n, -(-last // n)))
        return sorted(found)


def find_samples(loader: Loader[Any], source: int, dataset: int, epoch: int, first_token: int, n_tokens: int) -> Array:
    """The samples of an epoch of a source whose rows have one of these tokens of a dataset, sorted."""
    samples = np.empty(16, np.uint64)
    while True:
        search = _lib.LoaderSearch(source=source, dataset=dataset, epoch=epoch, first_token=first_token,
                                   n_tokens=n_tokens, samples=samples.ctypes.data, max_samples=len(samples))
        loader._call(lib.tokmap_loader_find, ctypes.byref(search))
        if search.n_found <= len(samples):
            return np.unique(samples[:search.n_found])
        samples = np.empty(search.n_found, np.uint64)


def _documents_of(dataset: Dataset, at: int, left: int) -> Iterator[TracedDocument]:
    """The documents of this many tokens."""
    while left > 0:
        document = dataset.find_document(at)
        n = min(left, document.first_token + document.n_tokens - at)
        yield TracedDocument(document.number, at - document.first_token, n, input_of(dataset, document.number),
                             dataset.document_meta(document.number), is_redacted(dataset, document.number))
        at, left = at + n, left - n


def _check_state(state: bytes, segments: Sequence[Segment]) -> None:
    """Checks a state of the last segment, or, where this begins, of the segment before it."""
    begins = segments[-1].begin == int.from_bytes(state[24:32], "little")
    for segment in segments[:-3:-1] if begins else segments[-1:]:
        _check_lists(segment.line, _with_lists(segment.line))
        with _open(segment.line, segment.line.skips) as loader:
            try:
                return loader._call(lib.tokmap_loader_restore, (ctypes.c_uint8 * 128)(*state))
            except MismatchError as error:
                text = str(error)
    raise MismatchError(f"{text}; it is no state of the run of {segments[-1].line.place}", -7)


def _skips_of(segments: Sequence[Segment], end: int) -> List[Tuple[int, int]]:
    """What was skipped before the end, by the line that counted there."""
    found = []
    for segment in segments:
        to = end if segment.end is None else min(segment.end, end)
        found += [(max(a, segment.begin), min(b, to)) for a, b in segment.line.skips if a < to and b > segment.begin]
    return found


def _is_same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(_index_of(path), _index_of(other))
    except OSError:
        return False


def _index_of(path: Path) -> str:
    text = os.fspath(path)
    return text if text.endswith(".tmi") else f"{text}.tmi"


def _with_lists(line: Line) -> List[int]:
    """The sources that have a list of documents or of windows."""
    return [k for k, source in enumerate(line.fields["sources"])
            if "window_list" in source or any("document_list" in one for one in source["datasets"])]


def _unknown(line: Line) -> List[int]:
    """The sources with lists that are not known: a ledger has only their hashes."""
    return [] if line.sources else _with_lists(line)


def _check_lists(line: Line, sources: Container[int]) -> None:
    for k in [k for k in _unknown(line) if k in sources]:
        raise MismatchError(f"{line.place}: source {k} has a list of documents or of windows, of which a ledger has only the hash: "
                            "open a tokmap.Loader with the same lists, and give it to tokmap.Run", -7, file=line.place)


def _open(line: Line, skips: Sequence[Tuple[int, int]], roles: Optional[List[str]] = None) -> Loader[Any]:
    """The loader of a line, which skips what the run has skipped up to now. roles: of those whose labels counted, only these
    do."""
    fields, mixture = line.fields, line.mixture()
    sources = [Source([Dataset(path, mixed_tokenizers=True) for path in paths], max_epochs=epochs, masked=source["masked"],
                      order_of=[id for id, *_ in _ledger.order_ids(source)],
                      documents=[one and (int(one[0]), int(one[1])) for _, one, *_ in _ledger.order_ids(source)])
               for paths, epochs, source in zip(line.paths(), mixture.max_epochs, fields["sources"])]
    for s, source in zip(sources, fields["sources"]):
        if "train_roles" in source:
            bits = int.from_bytes(bytes.fromhex(source["train_roles"]), "little")
            s._roles = bytes(bits >> role & 1 for role in range(256))
        if roles is not None:
            s._roles = only_roles(s, roles)
    for k in _with_lists(line):
        if line.sources:
            sources[k].document_lists, sources[k].window_list = line.sources[k].document_lists, line.sources[k].window_list
        else:  # its samples are not known, but how many it had is
            sources[k].max_epochs = 0
    for source, given in zip(sources, fields["sources"]):
        for dataset, of_ledger in zip(source.datasets, given["datasets"]):
            if dataset.dataset_id != of_ledger["id"] and of_ledger["id"] not in dataset.metadata.get("redacted_from", ()):
                raise MismatchError(f"{line.place}: {dataset.paths[0]} is another dataset now", -7, file=line.place)
            if dataset.spans_hash != int(of_ledger.get("spans", "0"), 16):
                raise MismatchError(f"{line.place}: {dataset.paths[0]} has other spans now", -7, file=line.place)
        source.views = [view and _view_of(line, dataset, *view) for dataset, view in zip(source.datasets, _ledger.views_of(given))]
    outputs: List[Output] = ["inputs", "loss_mask"] if any(source.masked or may_mask(source) for source in sources) else ["inputs"]
    fitted, in_blocks = fields["windows"] == "best_fit", fields["shuffle"] == "block"
    rows = Rows(align=fields["align"], max_documents=fields["max_documents"],
                whole_documents=fields["whole_documents"]) if fitted else None
    order = Order(weights="tokens" if fields.get("weigh_tokens") else "samples", phases=dict(mixture.phases), skip=skips,
                  drop_last=False, random_offset=fields["random_offset"],
                  block_windows=int(fields["block_windows"]) if in_blocks and not fitted else 0,
                  group_blocks=int(fields["group_blocks"]) if in_blocks else 0)
    return Loader(sources, fields["sequence_length"], seed=int(fields["seed"]), shuffle=fields["shuffle"],
                  windows=fields["windows"],
                  outputs=outputs, order=order, rows=rows, ranks=Ranks(rank=0, n_ranks=1),
                  reading=Reading(io="auto" if stores_of(sources) else "copy", mixed_tokenizers=True))


def _view_of(line: Line, dataset: Dataset, set_hash: int, where: str) -> View:
    """The view that a run had: by its expression, or else by a view file beside the dataset."""
    prefix, why = prefix_of(dataset._shards()[0]), "there is no expression"
    ways: List[Dict[str, Any]] = [line.ways[set_hash]] if set_hash in line.ways else [{"where": where}] if where else []
    ways += [{"paths": [path]} for path in sorted(glob.glob(f"{glob.escape(prefix)}.{'[0-9a-f]' * 16}.tmw"))]
    for way in ways:
        try:
            view = View(dataset, **way)
        except Error as error:
            why = str(error) if "where" in way else why
            continue
        if view.set_hashes == [set_hash]:
            return view
        why = f"the expression {where!r} has other documents now" if where else why
    raise MismatchError(f"{line.place}: {dataset.paths[0]}: the run had a view{f' {where!r}' if where else ''} with the set "
                        f"{set_hash:016x}, but {why}, and no view file {prefix}.*.tmw has this set: restore the "
                        "columns, or write the view file of these documents with Dataset.write_view(keep=...)", -7, file=line.place)


def is_redacted(dataset: Dataset, document: int) -> bool:
    return any(span.role in (1, 2) for span in dataset.spans(document))


def input_of(dataset: Dataset, document: int) -> Optional[str]:
    """The name of the input that a document came from."""
    low, high = 0, dataset.n_inputs
    while low < high:
        middle = (low + high) // 2
        if dataset.input(middle).first_document <= document:
            low = middle + 1
        else:
            high = middle
    found = dataset.input(low - 1) if low else None
    return found.name if found and document < found.first_document + found.n_documents else None

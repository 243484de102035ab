# SPDX-License-Identifier: Apache-2.0
"""tokmap trace, and report: what a run was trained on."""

import csv
import io
import math
import os
import re
import sys
from fractions import Fraction
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from .._data import values as _meta
from .._data.dataset import Dataset
from .._loader.loader import Loader
from .._loader.options import Order, Ranks, Reading
from .._run.report import CHUNK, Share, check_boundaries, name_of, value_for_json
from .._loader.sources import Source
from .._data.tokenizer import Tokenizer
from .._run.trace import Run, TracedRow
from .terminal import Given, Refused, WrongUse, ends_as_program, plain, print_json, show_count, warn


def _percent(text: str) -> Fraction:
    percent = Fraction(text.rstrip("%")) if re.fullmatch(r"[0-9]+(\.[0-9]+)?%?", text) else Fraction(0)
    if not 0 < percent <= 100:
        raise WrongUse(f"--top {text}: must be above 0 % and at most 100 %")
    return percent


def _document(text: str) -> Tuple[str, int]:
    path, _, number = text.rpartition(":")
    if not path or not number.isdecimal():
        raise WrongUse(f"--document {text}: must be the name of a dataset, a colon and the number of a document")
    return path, int(number)


def _condition(text: str) -> Tuple[str, str]:
    column, equals, value = text.partition("=")
    if not column or not equals:
        raise WrongUse(f"--where {text}: must be the name of a column, '=' and a value")
    return column, value


def _run_of(given: Given) -> Run:
    until: Any = given.until
    if given.state is not None:
        with open(given.state, "rb") as file:
            until = file.read(129)
        if len(until) != 128:
            raise Refused(f"{given.state}: is not a state, which is a file of 128 bytes")
    names = ("sequence_length", "seed", "shuffle", "windows", "max_epochs", "n_ranks", "batch_rows")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.ledger is not None:
        if given.operands or given.order_of or options:
            raise WrongUse("with --ledger there are no datasets and no options of a Loader: the ledger has them")
        return Run(given.ledger, until, all_attempts=given.all_attempts)
    if given.all_attempts:
        raise WrongUse("--all-attempts needs --ledger")
    if not given.operands or "sequence_length" not in options:
        raise WrongUse("say which run: --ledger FILE, or datasets and --sequence-length")
    if given.step is not None and not {"n_ranks", "batch_rows"} <= options.keys():
        raise WrongUse("--step without a ledger needs --n-ranks and --batch-rows")
    n_ranks = options.pop("n_ranks", 1)
    loader = Loader([Source(given.operands, order_of=given.order_of)], ranks=Ranks(rank=0, n_ranks=n_ranks),
                    reading=Reading(io="map"), order=Order(drop_last=False), **options)
    until = loader.n_samples if until is None else until
    if until is None:
        raise WrongUse("say where the run is: --until, --state or --max-epochs")
    return Run(loader, until)


# ---- Trace ----


def _documents_of_input(dataset: Dataset, name: str) -> Iterator[range]:
    for one in dataset.inputs:
        if one.name == name or os.path.basename(one.name) == name:
            yield range(one.first_document, one.first_document + one.n_documents)


def _documents_of_value(dataset: Dataset, column: str, value: str) -> Iterator[range]:
    columns = _meta.columns_of(dataset._shards()[0])
    if column in columns:
        columns[column].verify()
    for first in range(0, dataset.n_documents if column in columns else 0, 1 << 18):
        numbers, values = columns[column].groups(first, min(1 << 18, dataset.n_documents - first))
        wanted = [i for i, one in enumerate(values) if one is not None and str(value_for_json(one)) == value]
        for i in (k for w in wanted for k in (numbers == w).nonzero()[0].tolist()):
            yield range(first + i, first + i + 1)


def _find(run: Run, given: Given) -> Iterator[TracedRow]:
    if given.document is not None:
        yield from run.samples(*_document(given.document))
        return
    any_found, datasets = False, run._by_path.values()
    column, value = ("", "") if given.where is None else _condition(given.where)
    for dataset in datasets:
        check_boundaries(dataset)
    if given.where is not None and not any(column in _meta.columns_of(dataset._shards()[0]) for dataset in datasets):
        raise LookupError(f"the documents of the run have no values {column!r}")
    for path, dataset in run._by_path.items():
        found = _documents_of_input(dataset, given.input) if given.input is not None else \
            _documents_of_value(dataset, column, value)
        for documents in found:
            any_found = True
            if len(documents) > 0:
                yield from run.samples(path, documents[0], len(documents))
    if not any_found:
        raise LookupError("no dataset of the run has such documents")


def _trace(run: Run, given: Given) -> None:
    if all(getattr(given, name) is None for name in ("step", "sample", "document", "input", "where")):
        raise WrongUse("one of these options is required: --step, --sample, --document, --input, --where")
    n_ranks = run.n_ranks
    if given.rank is not None and given.rank >= n_ranks:
        raise LookupError(f"rank {given.rank}: the run had {n_ranks}")
    if given.step is not None:
        rows = run.step(given.step, given.rank)
    elif given.sample is not None:
        rows = run.rows(given.sample)
    else:
        rows = sorted(set(show_count(_find(run, given), "trace", "rows")))
    tokenizer = None if given.text is None else Tokenizer(given.text)
    found = [_entry(run, row, tokenizer) for row in show_count(rows, "trace", "rows") if given.rank in (None, row.rank)]
    if given.json:
        return print_json(until=run.end, rows=found)
    for one in found:
        where = "".join(f"{name} {one[name]}  " for name in ("step", "micro_batch", "rank", "row"))
        (first, n), *others = one["parts"]
        more = f" and {len(others)} more range{'s' * (len(others) > 1)}" if others else ""
        print(f"{'given up: ' if one['given_up'] else ''}{where}sample {one['sample']}  source {one['source']}  "
              f"epoch {one['epoch']}  {plain(one['dataset'])} tokens {first} to {first + n - 1}{more}")
        for document in one["documents"]:
            meta = "".join(plain(f"  {name}={value}") for name, value in document["meta"].items() if value is not None)
            print(f"    document {document['number']}  {document['n_tokens']} tokens from its token "
                  f"{document['first_token']}  {plain(document['input'] or '')}{meta}{'  redacted' * document['redacted']}")
        if "text" in one:
            print(f"    {one['text']!r}")
    if given.step is None and given.sample is None:
        print(f"{len(found)} rows up to sample {run.end}")


def _entry(run: Run, row: TracedRow, tokenizer: Optional[Tokenizer]) -> Dict[str, Any]:
    documents = [{**one._asdict(), "meta": {name: value_for_json(value) for name, value in one.meta.items()}}
                 for one in run.documents(row)]
    found: Dict[str, Any] = {**row._asdict(), "documents": documents}
    del found["pieces"]
    if tokenizer is not None:
        dataset = run._by_path[row.dataset]
        found["text"] = tokenizer.decode([id for first, n in row.parts for id in dataset.tokens(first, n)])
    return found


# ---- Report ----


def _report(run: Run, given: Given) -> None:
    top = None if given.top is None else _percent(given.top)
    by, column = given.by or "source", ""
    if by not in ("source", "input", "role"):
        by, column = "value", by
    if given.host is not None:
        by, column = "host", given.host
    found = run._shares(by, column, lambda chunks: show_count(chunks, "report", "documents", step=CHUNK))
    total = sum(one.n_labels for one in found)
    if top is not None:
        found = found[:math.ceil(len(found) * top / 100)]
    name = column or by
    if given.json:
        print_json(until=run.end, n_labels=total, by=by, column=column or None, not_counted=[
            {"source": k, "path": run._path_of_source(k)} for k in run._not_counted()], shares=[{
            **one._asdict(), "name": value_for_json(one.name), **({"path": run._path_of_source(one.name)} if by == "source" else {})}
            for one in found])
    elif given.format == "csv":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="surrogateescape")  # names of files are bytes
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([name, "n_labels", "n_documents", "share"])
        writer.writerows([name_of(one), one.n_labels, one.n_documents, f"{one.n_labels / max(total, 1):.9f}"] for one in found)
    else:
        if by == "source":
            found = [one._replace(name=run._name_of_source(one.name)) for one in found]
        _print_table(name, found, total)
    for why in run._not_counted().values() if not given.json else ():
        warn("report", f"not counted: {why}")


def _print_table(name: str, found: List[Share], total: int) -> None:
    rows = [[plain(name), "tokens", "documents", "share"]]
    rows += [[plain(name_of(one)) or "(none)", f"{one.n_labels:,}", f"{one.n_documents:,}", f"{100 * one.n_labels / max(total, 1):.3f} %"]
             for one in found]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print(row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])), sep="  ")
    print(f"{total:,} tokens in all")


def _answer(command: str, print_answer: Callable[[Run, Given], None], arguments: List[str]) -> None:
    given = Given(arguments)
    with ends_as_program(command, given.json, other=2):
        run = _run_of(given)
        print_answer(run, given)
        n_unknown = sum(end is None for _, end in run.given_up) if given.all_attempts else 0
        if n_unknown:
            warn(command, f"killed attempts whose end is not in the ledger: {n_unknown}. What they did after their last line in the "
                 "ledger is not counted")


def trace(arguments: List[str]) -> None:
    _answer("trace", _trace, arguments)


def report(arguments: List[str]) -> None:
    _answer("report", _report, arguments)

# SPDX-License-Identifier: Apache-2.0
"""tokmap trace, and report: what a run was trained on."""

import argparse
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
from .._run.report import CHUNK, Share, check_boundaries, shares
from .._loader.sources import Source
from .._data.tokenizer import Tokenizer
from .._run.trace import Run, TracedRow
from .options import Parser, Refused, ends_as_program, plain, print_json, show_count, warn


def _percent(text: str) -> Fraction:
    percent = Fraction(text.rstrip("%")) if re.fullmatch(r"[0-9]+(\.[0-9]+)?%?", text) else Fraction(0)
    if not 0 < percent <= 100:
        raise argparse.ArgumentTypeError(f"{text}: must be above 0 % and at most 100 %")
    return percent


def _document(text: str) -> Tuple[str, int]:
    path, _, number = text.rpartition(":")
    if not path or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text}: must be the name of a dataset, a colon and the number of a document")
    return path, int(number)


def _condition(text: str) -> Tuple[str, str]:
    column, equals, value = text.partition("=")
    if not column or not equals:
        raise argparse.ArgumentTypeError(f"{text}: must be the name of a column, '=' and a value")
    return column, value


def _add_run(parser: Parser) -> None:
    """Adds the options that say which run it is."""
    group = parser.add_argument_group("The run")
    group.add_argument("--ledger", metavar="FILE", help="the ledger of the run; its datasets must be where its last line says")
    group.add_argument("--all-attempts", action="store_true", help="also show what the run gave up when it went back")
    until = group.add_mutually_exclusive_group()
    until.add_argument("--until", type=int, metavar="SAMPLE", help="the sample that the run is at [where it closed]")
    until.add_argument("--state", metavar="FILE", help="the run is where this state, a file of 128 bytes, was taken")
    group = parser.add_argument_group("Without a ledger")
    for name, kind, value in (("sequence-length", int, "N"), ("seed", int, "N"), ("shuffle", str, "NAME"),
                              ("windows", str, "NAME"), ("max-epochs", int, "N"), ("ranks", int, "N"),
                              ("batch-rows", int, "N")):
        group.add_argument(f"--{name}", type=kind, metavar=value, help="as for the Loader")
    group.add_argument("--order-of", action="append", metavar="ID", help="for each dataset, the id that it had before "
                       "it was redacted, or its own")
    parser.add_argument("datasets", nargs="*", metavar="P")


def _parse_trace(arguments: List[str]) -> argparse.Namespace:
    parser = Parser("trace", trace.__doc__)
    what = parser.add_argument_group("What to trace").add_mutually_exclusive_group(required=True)
    what.add_argument("--step", type=int, metavar="N", help="a step of the optimizer, counted from 0 where the ledger begins")
    what.add_argument("--sample", type=int, metavar="G", help="one row")
    what.add_argument("--document", type=_document, metavar="P:N", help="document number N of dataset P")
    what.add_argument("--input", metavar="FILE", help="the documents of this input; its name without folders is enough")
    what.add_argument("--where", type=_condition, metavar="COLUMN=VALUE", help="the documents that kept this value")
    _add_run(parser)
    output = parser.add_argument_group("Output")
    output.add_argument("--rank", type=int, metavar="R", help="show only the rows of this rank")
    output.add_argument("--text", metavar="TOKENIZER", help="show the text of rows, with this tokenizer file")
    output.add_argument("--json", action="store_true", help="print the result as a JSON object")
    return parser.read(arguments)


def _parse_report(arguments: List[str]) -> argparse.Namespace:
    parser = Parser("report", report.__doc__)
    groups = parser.add_argument_group("Groups")
    by = groups.add_mutually_exclusive_group()
    by.add_argument("--by", default="source", metavar="WHAT", help="source, input, or the name of a column [source]")
    by.add_argument("--host", metavar="COLUMN", help="the hosts of a column of URLs, in lower case")
    groups.add_argument("--top", type=_percent, metavar="N%", help="show only the largest N percent of the groups")
    _add_run(parser)
    output = parser.add_argument_group("Output").add_mutually_exclusive_group()
    output.add_argument("--format", choices=("table", "csv"), default="table", metavar="WORD", help="the form [table]")
    output.add_argument("--json", action="store_true", help="print the result as a JSON object")
    return parser.read(arguments)


def _run_of(given: argparse.Namespace) -> Run:
    until: Any = given.until
    if given.state is not None:
        with open(given.state, "rb") as file:
            until = file.read(129)
        if len(until) != 128:
            raise Refused(f"{given.state}: is not a state, which is a file of 128 bytes")
    names = ("sequence_length", "seed", "shuffle", "windows", "max_epochs", "ranks", "batch_rows")
    options = {name: getattr(given, name) for name in names if getattr(given, name) is not None}
    if given.ledger is not None:
        if given.datasets or given.order_of or options:
            raise ValueError("with --ledger there are no datasets and no options of a Loader: the ledger has them")
        return Run(given.ledger, until, all_attempts=given.all_attempts)
    if given.all_attempts:
        raise ValueError("--all-attempts needs --ledger")
    if not given.datasets or "sequence_length" not in options:
        raise ValueError("say which run: --ledger FILE, or datasets and --sequence-length")
    if getattr(given, "step", None) is not None and not {"ranks", "batch_rows"} <= options.keys():
        raise ValueError("--step without a ledger needs --ranks and --batch-rows")
    n_ranks = options.pop("ranks", 1)
    loader = Loader([Source(given.datasets, order_of=given.order_of)], ranks=Ranks(rank=0, n_ranks=n_ranks),
                    reading=Reading(io="map"), order=Order(drop_last=False), **options)
    until = loader.n_samples if until is None else until
    if until is None:
        raise ValueError("say where the run is: --until, --state or --max-epochs")
    return Run(loader, until)


# ---- Values ----


def _for_json(value: Any) -> Any:
    """JSON has no NaN and no infinities."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


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
        wanted = [i for i, one in enumerate(values) if one is not None and str(_for_json(one)) == value]
        for i in (k for w in wanted for k in (numbers == w).nonzero()[0].tolist()):
            yield range(first + i, first + i + 1)


def _find(run: Run, given: argparse.Namespace) -> Iterator[TracedRow]:
    if given.document is not None:
        yield from run.samples(*given.document)
        return
    any_found, datasets = False, run._by_path.values()
    for dataset in datasets:
        check_boundaries(dataset)
    if given.where is not None and not any(given.where[0] in _meta.columns_of(dataset._shards()[0]) for dataset in datasets):
        raise LookupError(f"the documents of the run have no values {given.where[0]!r}")
    for path, dataset in run._by_path.items():
        found = _documents_of_input(dataset, given.input) if given.input is not None else \
            _documents_of_value(dataset, *given.where)
        for documents in found:
            any_found = True
            if len(documents) > 0:
                yield from run.samples(path, documents[0], len(documents))
    if not any_found:
        raise LookupError("no dataset of the run has such documents")


def _trace(run: Run, given: argparse.Namespace) -> None:
    n_ranks = run.n_ranks
    if given.rank is not None and not 0 <= given.rank < n_ranks:
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
    documents = [{**one._asdict(), "meta": {name: _for_json(value) for name, value in one.meta.items()}}
                 for one in run.documents(row)]
    found: Dict[str, Any] = {**row._asdict(), "documents": documents}
    del found["pieces"]
    if tokenizer is not None:
        dataset = run._by_path[row.dataset]
        found["text"] = tokenizer.decode([id for first, n in row.parts for id in dataset.tokens(first, n)])
    return found


# ---- Report ----


def _report(run: Run, given: argparse.Namespace) -> None:
    by, column = (given.by, "") if given.by in ("source", "input") else ("value", given.by)
    if given.host is not None:
        by, column = "host", given.host
    found = shares(run._uses(), by, column, lambda chunks: show_count(chunks, "report", "documents", step=CHUNK))
    total = sum(one.tokens for one in found)
    if given.top is not None:
        found = found[:math.ceil(len(found) * given.top / 100)]
    name = column or by
    if given.json:
        print_json(until=run.end, tokens=total, by=by, column=column or None,
                   shares=[{**one._asdict(), "name": _for_json(one.name)} for one in found])
    elif given.format == "csv":
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="surrogateescape")  # names of files are bytes
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([name, "tokens", "documents", "share"])
        writer.writerows([_name(one), one.tokens, one.documents, f"{one.tokens / max(total, 1):.9f}"] for one in found)
    else:
        if by == "source":
            found = [one._replace(name=f"{one.name} {_paths_of(run, one.name)}".rstrip()) for one in found]
        _print_table(name, found, total)


def _paths_of(run: Run, source: int) -> str:
    """The datasets of a source, and the expression of its views; nothing if attempts had different ones."""
    found = {(tuple(one._paths()), tuple(dict.fromkeys(view[1] for view in one._used_views() if view)))
             for run in run._attempts for one in run.loader._sources[source:source + 1]}
    paths, views = found.pop()
    return "" if found else paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "") + "".join(
        f" where {where}" if where else " through a view" for where in views)


def _name(share: Share) -> str:
    return "" if share.name is None else str(_for_json(share.name))


def _print_table(name: str, found: List[Share], total: int) -> None:
    rows = [[plain(name), "tokens", "documents", "share"]]
    rows += [[plain(_name(one)) or "(none)", f"{one.tokens:,}", f"{one.documents:,}", f"{100 * one.tokens / max(total, 1):.3f} %"]
             for one in found]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        print(row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])), sep="  ")
    print(f"{total:,} tokens in all")


def _answer(command: str, parse: Callable[[List[str]], argparse.Namespace],
            print_answer: Callable[[Run, argparse.Namespace], None], arguments: List[str]) -> None:
    with ends_as_program(command, other=2):
        given = parse(arguments)
        run = _run_of(given)
        print_answer(run, given)
        n_unknown = sum(end is None for _, end in run.given_up) if given.all_attempts else 0
        if n_unknown:
            warn(command, f"attempts that were given up and whose end the ledger does not have: {n_unknown}. What came "
                 "after the last line about them is not shown")


def trace(arguments: List[str]) -> None:
    """tokmap trace WHAT --ledger FILE [OPTION]...
           tokmap trace WHAT P... --sequence-length N [OPTION]...

    Shows what was in a step or a sample of a run, or in which steps a document was. WHAT is one of the options that say
    what to trace.

    The run is that of a ledger, which a Loader writes (ledger=...). Without a ledger, it is that of the datasets P, the
    shards of one source, and of the options of their Loader.

    Examples:
      tokmap trace --ledger run.ledger --step 48211
      tokmap trace --ledger run.ledger --document data/train:1234
      tokmap trace data/train --sequence-length 4096 --ranks 8 \\
          --batch-rows 4 --until 9000 --step 100"""
    _answer("trace", _parse_trace, _trace, arguments)


def report(arguments: List[str]) -> None:
    """tokmap report --ledger FILE [OPTION]...
           tokmap report P... --sequence-length N [OPTION]...

    Shows how many tokens a run was trained on: how often one was a label, by source, by input, or by a value that its
    documents kept.

    The run is that of a ledger, which a Loader writes (ledger=...). Without a ledger, it is that of the datasets P, the
    shards of one source, and of the options of their Loader.

    Examples:
      tokmap report --ledger run.ledger --by input
      tokmap report --ledger run.ledger --host url --top 10%
      tokmap report data/train --sequence-length 4096 --until 9000"""
    _answer("report", _parse_report, _report, arguments)

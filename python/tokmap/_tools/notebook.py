# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a Dataset, a View, a Loader, a Batch or a Run: HTML without scripts, in the colours of the notebook."""

import html
import os
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from .._loader.batch import counts_before
from .._data.dataset import Dataset
from .._c.errors import Error
from .._data.tokenizer import Tokenizer
from .._data.view import View
from .._loader.sources import Source, short_name
from .._run.report import name_of

_N_LENGTHS = 1000  # documents of a histogram, each of which may be a read of the disk
_N_BARS = 12
_N_SAMPLES = 3
_N_IDS = 200  # of a sample
_CELL = "text-align:left;vertical-align:top;padding:1px 14px 1px 0;border:0;background:none"
_TEXT = "white-space:pre-wrap;overflow-wrap:anywhere"
_BAR = ('<span style="display:inline-block;width:{:.1f}px;margin-right:8px;background:{}"><span style="display:block;height:.75em;'
        'background:#4c8dd6;width:{:.1f}px"></span></span>{}')
_WIDTH = 160
Rows = List[Tuple[str, str]]  # a name, and HTML


def _page(title: str, *sections: Tuple[str, Rows]) -> str:
    parts = [f'<div style="font-size:13px;line-height:1.45"><b>{html.escape(title)}</b>']
    for name, rows in sections:
        cells = "".join(f'<tr style="background:none"><td style="{_CELL};white-space:nowrap">{html.escape(key[-60:])}</td>'
                        f'<td style="{_CELL};{_TEXT}">{value}</td></tr>' for key, value in rows)
        parts.append(f'<div style="opacity:.7;margin-top:6px">{html.escape(name)}</div><table style="border-collapse:collapse;'
                     f'border:0;margin:0">{cells}</table>' if rows else "")
    return "".join(parts) + "</div>"


def _bars(values: Sequence[Tuple[str, float, str]], total: float = 0) -> Rows:
    """For each value its name, its size, and the text after its bar. With a total, each bar is a part of it, which is shown too."""
    most = total or max((size for _, size, _ in values), default=0) or 1
    widths = [_WIDTH * size / most for _, size, _ in values]
    return [(name, _BAR.format(_WIDTH if total else width, "#8883" if total else "none", width, html.escape(text)))
            for width, (name, _, text) in zip(widths, values)]


def _shares(sizes: Sequence[Tuple[str, float]], texts: Sequence[str] = (), total: float = 0) -> Rows:
    total = total or sum(size for _, size in sizes) or 1
    values = [(name, size, f"{size / total:.2%}" + "".join(texts[k:k + 1])) for k, (name, size) in enumerate(sizes)]
    return _bars(values[:_N_BARS], total) + [(f"and {len(values) - _N_BARS:,} more", "")] * (len(values) > _N_BARS)


def _histogram(lengths: Sequence[int]) -> Rows:
    """By powers of two, as in `tokmap info`."""
    counts = np.bincount([int(n).bit_length() for n in lengths])
    return _bars([(f"{2**b // 2:,}" + (f" to {2**b - 1:,}" if b > 1 else ""), float(n), f"{n / len(lengths):.1%}")
                  for b, n in enumerate(counts.tolist()) if counts[:b + 1].any()])


def _lengths(*parts: Tuple[Dataset, Optional[View]]) -> Tuple[str, Rows]:
    """Of all documents of these datasets, or of those of a view."""
    ends = np.cumsum([data.n_documents if view is None else view.n_documents for data, view in parts])
    n = int(ends[-1])
    numbers = np.arange(n) if n <= _N_LENGTHS else np.random.default_rng(0).integers(0, n, _N_LENGTHS)
    lengths = []
    for part, i in zip(np.searchsorted(ends, numbers, "right").tolist(), numbers.tolist()):
        (data, view), number = parts[part], i - (int(ends[part - 1]) if part else 0)
        lengths.append(data.document(number if view is None else view.documents(number, 1)[0]).n_tokens)
    paths = [path for data, _ in parts for path in data.paths]
    of = f" of {short_name(paths[0])} and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"lengths of {len(numbers):,} document{'s' * (n != 1)}" + " at random" * (n > len(numbers)) + of, _histogram(lengths)


def _tokenizer(data: Dataset) -> Optional[Tokenizer]:
    """That of the metadata: "bytes", or a file of its name beside the dataset or in the working folder, of the same kind."""
    stored = data.shards[0].metadata.get("tokenizer")
    made_with = stored if isinstance(stored, dict) else {}
    name = os.path.basename(made_with.get("name") or "")
    for path in ["bytes"] if name == "bytes" else [os.path.join(os.path.dirname(data.paths[0]), name), name] if name else []:
        try:
            found = Tokenizer(path)
        except Error:
            continue
        if (found.family, found.vocab_size) == (made_with.get("family", found.family), data.vocab_size or found.vocab_size):
            return found
    return None


def _text(ids: Any, data: Optional[Dataset]) -> str:
    tokenizer = None if data is None else _tokenizer(data)
    try:
        if tokenizer is not None:
            return html.escape(tokenizer.decode(ids[:_N_IDS])) + " …" * (len(ids) > _N_IDS)
    except Error:  # an id that is none of the tokenizer
        pass
    return " ".join(map(str, ids[:_N_IDS // 4])) + " …" * (len(ids) > _N_IDS // 4)


def of_dataset(data: Dataset) -> str:
    if data._open_shards is None:
        return _page(repr(data).strip("<>"))
    shards = data.shards
    facts = [("tokens", f"{data.n_tokens:,} ({data.dtype.name})"), ("vocabulary", f"{data.vocab_size:,}" if data.vocab_size else "not known"),
             ("documents", f"{data.n_documents:,}" if data.n_documents else "boundaries not known"), ("inputs", f"{data.n_inputs:,}")]
    parts = [(one.paths[0], one.n_tokens) for one in shards] if len(shards) > 1 else [
        (one.name, one.n_tokens) for one in map(data.input, range(min(data.n_inputs, _N_BARS)))]
    what = "datasets" if len(shards) > 1 else "inputs" if len(parts) == data.n_inputs else f"the first {len(parts)} inputs"
    samples = [(f"{i:,}", _text(data[i][:_N_IDS + 1].tolist(), data)) for i in range(min(_N_SAMPLES, data.n_documents))]
    return _page(repr(data).strip("<>"), ("", facts), (f"{what} by tokens", _shares(parts, (), data.n_tokens)),
                 _lengths((data, None)), ("first documents", samples))


def of_view(view: Any) -> str:
    data = view.dataset
    facts = [("of", html.escape(repr(data).strip("<>"))), ("tokens per document", f"{view.n_tokens / max(len(view), 1):,.1f}"),
             ("runs of documents", f"{view.n_runs:,}")] + [("file", html.escape(path)) for path in view.paths[:_N_BARS] if path]
    shares = [(f"{name}: {n:,}", _shares([("", n)], (), of)[0][1]) for name, n, of in
              (("documents", len(view), data.n_documents), ("tokens", view.n_tokens, data.n_tokens))]
    return _page(repr(view).strip("<>"), ("", facts), ("shares of the dataset", shares),
                 *([] if data._open_shards is None else [_lengths((data, view))]))


def of_loader(loader: Any) -> str:
    try:
        first, sources, rows = loader.sample, loader._sources, []
    except ValueError:  # it is closed
        return _page(repr(loader).strip("<>"))
    weights = loader.phases[max(begin for begin in loader.phases if begin <= first)]
    epochs = [f", epoch {n / n_windows:.2f}" for n, n_windows in zip(counts_before(loader._own_handle, first).tolist(), loader._n_windows())]
    for sample in range(first, min(first + _N_SAMPLES, 2**62 if loader.n_samples is None else loader.n_samples)):
        at = loader.locate(sample)
        data = [shard for one in sources[at.source].datasets for shard in one.shards][at.dataset]
        ids = [id for first, n in loader._parts(sample) for id in data.tokens(first, min(n, _N_IDS + 1)).tolist()]
        rows.append((f"{sample:,}", _text(ids, data)))
    shares = _shares([(_shards(source), weight) for source, weight in zip(sources, weights)], epochs)
    return _page(repr(loader).strip("<>"), ("sources by samples", shares),
                 *([_lengths(*zip(sources[0].datasets, sources[0].views))]
                   if len(sources) == 1 and sources[0].documents == [None] and not any(sources[0].document_lists) else []),
                 ("next samples", rows))


def _shards(source: Source) -> str:
    paths = source._paths()
    return paths[0] + f" and {len(paths) - 1} more" * (len(paths) > 1)


def of_run(run: Any) -> str:
    """The documents are not counted, which takes long: run.report() does that."""
    loader, facts = run.loader, [("steps", f"{run.n_steps:,}"), ("ranks", f"{run.n_ranks:,}"), ("sequence length", f"{run.loader.sequence_length:,}")]
    facts += [("given up", ", ".join(f"samples {begin:,} to {end:,}" if end is not None else f"from sample {begin:,} on" for begin, end in
                                     run.given_up[:_N_BARS]))] if run.given_up else []
    found, unknown = loader.metrics()["sources"], run._unknown()
    return _page(repr(run).strip("<>"), ("", facts), ("sources by samples", _shares(
        [(_shards(source), one["samples"]) for source, one in zip(loader._sources, found)], [
            f", {one['samples']:,} samples" + f", epoch {one['epochs']:.2f}" * (k not in unknown) for k, one in enumerate(found)])))


def of_report(report: Any) -> str:
    total = sum(one.n_labels for one in report)
    facts = [("not counted", html.escape(why)) for why in report.not_counted.values()]
    return _page(f"{total:,} tokens that were labels", ("", facts), (f"by {report.what}", _shares(
        [(report.shown.get(one.name) or name_of(one) or "(none)", one.n_labels) for one in report],
        [f", {one.n_labels:,} tokens of {one.n_documents:,} document{'s' * (one.n_documents != 1)}" for one in report])))


def of_measurement(found: Any) -> str:
    """With its waits by powers of two of a microsecond."""
    return _page(found.verdict, ("", [(name, html.escape(value)) for name, value in found.rows()]),
                 ("waits in us", _histogram([round(wait * 1e6) for wait in found.waits])))


def of_resume_check(found: Any) -> str:
    rows = [(f"step {step}", html.escape(f"expected {expected}, got {got}, after resume {after}")) for step, expected, got, after in found.rows()]
    return _page(found.verdict, ("", rows))


def _places(loader: Any, sample: int, n_inputs: int) -> List[Tuple[int, int]]:
    """The inputs of a row without padding: the place of the first one, and how many. Nothing where that is not known."""
    try:
        return loader._inputs_of(sample) if loader is not None and loader.sequence_length == n_inputs else []
    except ValueError:  # it is closed
        return []


def of_batch(batch: Any) -> str:
    source_ids, handle = batch.source_ids.tolist(), batch._origin.handle
    data = [None] * (max(source_ids) + 1) if handle is None else [Dataset(shards[0].full_path) for shards in handle.kept]
    names = [f"source {k}" if one is None else one.paths[0] for k, one in enumerate(data)]
    inputs = [] if batch.inputs is None else batch.inputs[:_N_SAMPLES].tolist()
    loader = getattr(batch._rows_of, "__self__", None)  # None in another process
    rows = []
    for i, ids, k in zip(batch.sample_ids.tolist(), inputs, source_ids):
        places = _places(loader, i, len(ids))
        ids = [id for first, n in places for id in ids[first:first + n]] if places else ids
        padding = len(inputs[0]) - len(ids)
        rows.append((f"{i:,}", _text(ids, data[k]) + f" ({padding} of padding)" * (padding > 0)))
    lengths = [] if batch.cu_seqlens is None else _histogram(np.diff(batch.cu_seqlens.tolist()).tolist())
    return _page(repr(batch).strip("<>"), ("", [(name, f"{tuple(batch[name].shape)}, {batch[name].dtype}") for name in batch.keys()]),
                 ("sources by rows", _shares(list(zip(names, np.bincount(source_ids, minlength=len(names)).tolist())))),
                 ("lengths of documents", lengths), ("inputs of the first rows", rows))

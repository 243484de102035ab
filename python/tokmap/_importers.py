# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap import: datasets from the files of other libraries."""

import argparse
import collections
import importlib
import io
import itertools
import json
import os
import sys
import tarfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional

import numpy as np

from ._dataset import Array
from ._dataset import open as _open
from ._errors import ExistsError, LockedError
from ._writer import Writer


class _Refused(Exception):
    """A file that cannot be imported, with the reason."""


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _Refused(f"{error}. Install it: pip install {module.partition('.')[0]}") from None


def _choose(field: Optional[str], names: Iterable[str], path: str) -> str:
    """The field that the user named, else the usual name, else the only one there is."""
    found = list(names)
    for name in [field] if field else ["input_ids", "tokens", *(found if len(found) == 1 else [])]:
        if name in found:
            return name
    raise _Refused(f"{path}: {f'no field {field!r}' if field else 'several fields'}: choose one by --field: "
                   f"{', '.join(found)}")


def _check_rows(rows_hold_ids: bool, path: str, o: argparse.Namespace) -> None:
    if not rows_hold_ids and not o.stream:
        raise _Refused(f"{path}: has one id after another, and no documents: use --stream, with --eod-id if "
                       "documents end with an id")


def _from_bytes(data: bytes, path: str, o: argparse.Namespace) -> Array:
    if o.dtype is None:
        raise _Refused(f"{path}: the ids are stored as bytes: say by --dtype which type they have")
    return np.frombuffer(data, o.dtype)


# ---- Readers: the rows of a file, each an array of ids ----

def _read_hdf5(path: str, o: argparse.Namespace) -> Iterator[Array]:
    h5py = _need("h5py")
    with h5py.File(path, "r") as f:
        names: List[str] = []
        f.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        data = f[_choose(o.field, names, path)]
        rows_hold_ids = data.ndim == 2 or h5py.check_vlen_dtype(data.dtype) is not None
        _check_rows(rows_hold_ids, path, o)
        n = 1024 if rows_hold_ids else 1 << 22
        for first in range(0, len(data), n):
            yield from data[first:first + n] if rows_hold_ids else [data[first:first + n]]


def _read_numpy(path: str, o: argparse.Namespace) -> Iterator[Array]:
    data = np.lib.format.open_memmap(path, mode="r")
    if data.ndim not in (1, 2) or data.dtype.kind not in "iu":
        raise _Refused(f"{path}: has {data.dtype} in {data.ndim} dimensions: must be integers in one or two")
    _check_rows(data.ndim == 2, path, o)
    n = 1 if data.ndim == 2 else 1 << 22
    for first in range(0, len(data), n):
        yield data[first:first + n].ravel()


def _read_lmdb(path: str, o: argparse.Namespace) -> Iterator[Array]:
    lmdb = _need("lmdb")
    with lmdb.open(path, readonly=True, lock=False, subdir=os.path.isdir(path)) as store, store.begin() as reading:
        for _, value in reading.cursor():
            yield _from_bytes(value, path, o)


def _read_tfrecord(path: str, o: argparse.Namespace) -> Iterator[Array]:
    reader, pb2 = _need("tfrecord.reader"), _need("tfrecord.example_pb2")
    for record in reader.tfrecord_iterator(path, compression_type="gzip" if path.endswith(".gz") else None):
        features = pb2.Example.FromString(bytes(record)).features.feature
        feature = features[_choose(o.field, features, path)]
        if feature.HasField("bytes_list"):
            yield _from_bytes(b"".join(feature.bytes_list.value), path, o)
        else:
            yield np.array(feature.int64_list.value, np.int64)


def _read_webdataset(path: str, o: argparse.Namespace) -> Iterator[Array]:
    with tarfile.open(path, "r|*") as tar:
        sample: Dict[str, Any] = {}
        key = None
        for member in itertools.chain(tar, [None]):
            own = member and member.name[:(member.name + ".").index(".", member.name.rfind("/") + 1)]
            if own != key and sample:
                yield _decode(sample, _choose(o.field, sample, path), path, o)
                sample = {}
            key = own
            if member is not None and member.isfile():
                sample[member.name[len(own or "") + 1:]] = tar.extractfile(member).read()  # type: ignore[union-attr]


def _decode(sample: Dict[str, bytes], name: str, path: str, o: argparse.Namespace) -> Array:
    if name.endswith("npy"):
        array: Array = np.load(io.BytesIO(sample[name]), allow_pickle=False)
        return array
    return np.array(json.loads(sample[name])) if name.endswith("json") else _from_bytes(sample[name], path, o)


def _read_datasets(path: str, o: argparse.Namespace) -> Iterator[Array]:
    saved = _need("datasets").load_from_disk(path)
    if isinstance(saved, dict):
        raise _Refused(f"{path}: has several splits: import one, such as {path}/{next(iter(saved))}")
    name = _choose(o.field, saved.column_names, path)
    for table in saved.select_columns([name]).with_format("arrow").iter(1024):
        yield from _rows_of_column(table[name].combine_chunks(), path, o)


def _read_parquet(path: str, o: argparse.Namespace) -> Iterator[Array]:
    with _need("pyarrow.parquet").ParquetFile(path) as f:
        name = _choose(o.field, f.schema_arrow.names, path)
        for batch in f.iter_batches(batch_size=1024, columns=[name]):
            yield from _rows_of_column(batch.column(0), path, o)


def _rows_of_column(column: Any, path: str, o: argparse.Namespace) -> Iterator[Array]:
    pa, compute = _need("pyarrow"), _need("pyarrow.compute")
    if column.null_count:
        raise _Refused(f"{path}: has rows without ids")
    if pa.types.is_integer(column.type):
        _check_rows(False, path, o)
        return iter([column.to_numpy(zero_copy_only=False)])
    if not hasattr(column.type, "value_type") or not pa.types.is_integer(column.type.value_type):
        raise _Refused(f"{path}: the column has {column.type}: must be ids or lists of ids")
    values = compute.list_flatten(column).to_numpy(zero_copy_only=False)
    return iter(np.split(values, np.cumsum(compute.list_value_length(column).to_numpy())[:-1]))


READERS: Dict[str, Callable[[str, argparse.Namespace], Iterator[Array]]] = {
    "hdf5": _read_hdf5, "lmdb": _read_lmdb, "numpy": _read_numpy, "tfrecord": _read_tfrecord,
    "webdataset": _read_webdataset, "datasets": _read_datasets, "parquet": _read_parquet}


# ---- The command ----

def _split(pieces: Iterable[Array], eod_id: Optional[int]) -> Iterator[Array]:
    """The documents of a stream of tokens: each ends after eod_id."""
    rest: List[Array] = []
    for piece in pieces:
        begin = 0
        for end in (np.flatnonzero(piece == eod_id) + 1).tolist():
            yield np.concatenate([*rest, piece[begin:end]])
            begin, rest = end, []
        rest.append(piece[begin:])
    if sum(map(len, rest)):
        yield np.concatenate(rest)


def _parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tokmap import", description="Makes a dataset from token files of other libraries.",
        epilog="Example: python -m tokmap import parquet data/*.parquet -o train --vocab-size 50257")
    parser.add_argument("format", choices=READERS, help="of the inputs: %(choices)s", metavar="FORMAT")
    parser.add_argument("inputs", nargs="+", metavar="INPUT", help="a file; for lmdb and datasets also a folder")
    parser.add_argument("-o", "--output", required=True, metavar="PREFIX", help="the dataset PREFIX.bin, PREFIX.tmi")
    parser.add_argument("--vocab-size", required=True, type=int, metavar="N", help="ids are below it")
    parser.add_argument("--eod-id", type=int, metavar="ID", help="the id that ends documents")
    parser.add_argument("--field", metavar="NAME", help="column, feature, HDF5 dataset or suffix in a tar that has "
                        "the ids [input_ids, tokens, or the only one]")
    parser.add_argument("--dtype", choices=("uint16", "uint32", "int32", "int64"),
                        help="of ids that are stored as bytes, as in lmdb; there is no default, because a wrong "
                        "one gives wrong ids")
    parser.add_argument("--stream", action="store_true", help="rows are pieces of one stream, in which documents "
                        "end after --eod-id; without it, each row is a document")
    parser.add_argument("--replace", action="store_true", help="replace a dataset of this name")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only errors")
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> None:
    """Runs the command `import`. Exit statuses are those of the program."""
    o = _parse(arguments)
    path = o.output
    lengths: Dict[int, int] = collections.Counter()  # of rows
    try:
        with Writer(o.output, o.vocab_size, o.eod_id, replace=o.replace) as writer:
            for path in o.inputs:
                rows = READERS[o.format](path, o)
                for document in _split(rows, o.eod_id) if o.stream else rows:
                    writer.document(document)
                    lengths[len(document)] += 1
                writer.end_input(path, os.path.getsize(path) if os.path.isfile(path) else 0)
            writer.set_metadata({"imported_from": o.format, "field": o.field, "stream": o.stream})
        if not o.quiet:
            made = _open(o.output)
            print(f"{o.output}: {made.n_documents:,} documents, {made.n_tokens:,} tokens (u{8 * made.dtype.itemsize}) "
                  f"from {len(o.inputs)} files, id {made.dataset_id}")
    except Exception as error:  # each library has its own
        text = str(error) if path in str(error) else f"{path}: {error}"
        print(f"tokmap import: {text}", file=sys.stderr)
        sys.exit(5 if isinstance(error, (ExistsError, LockedError)) else 3)
    n, length = sum(lengths.values()), max(lengths, key=lengths.__getitem__, default=0)
    if not o.stream and n > 2 and lengths[length] >= n - 1:  # the last one may be shorter
        print(f"tokmap import: {o.output}: {lengths[length]} of {n} documents have {length} ids: if these rows are "
              "pieces of one stream, import them again with --stream, and --eod-id if documents end with an id",
              file=sys.stderr)

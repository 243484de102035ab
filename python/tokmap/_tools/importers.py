# SPDX-License-Identifier: Apache-2.0
"""tokmap import: datasets from the files of other libraries."""

import collections
import importlib
import io
import itertools
import json
import os
import pickle
import struct
import tarfile
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np

from .._data.dataset import Array
from .._data.dataset import open as _open
from .._c.errors import ExistsError, FileError, LockedError
from .._data.writer import Writer
from .terminal import Given, Refused, WrongUse, describe, ends_as_program, plain, print_json, show_count, warn


_PACKAGES = {"streaming": "mosaicml-streaming"}  # whose modules have other names
_MASKS = ("labels", "assistant_masks", "completion_mask", "loss_mask")
_Row = Union[Array, Tuple[Array, Optional[Array]]]  # ids, or ids and which of them count


def _need(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise Refused(f"{error}. Install it: pip install {_PACKAGES.get(package, package)}") from None


def _load_tokenizer(name: str) -> Any:
    """The tokenizer of transformers, without the network."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when transformers is imported
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    transformers = _need("transformers")
    try:
        return transformers.AutoTokenizer.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        why = "" if os.path.exists(name) else "there is no such folder; "
        why += "".join(str(error).strip().splitlines()[:1])
        raise Refused(f"{name}: transformers cannot load this tokenizer without the network: {why}") from None


def _choose(field: Optional[str], names: Iterable[str], path: str) -> str:
    """The field that the user named, else the usual name, else the only one there is."""
    found = list(names)
    for name in [field] if field else ["input_ids", "tokens", *(found if len(found) == 1 else [])]:
        if name in found:
            return name
    raise Refused(f"{path}: {f'no field {field!r}' if field else 'several fields'}: choose one by --field: "
                   f"{', '.join(found)}")


def _check_rows(rows_hold_ids: bool, path: str, o: Given) -> None:
    if not rows_hold_ids and not o.stream:
        raise Refused(f"{path}: has one id after another, and no documents: use --stream, with --eod if "
                       "documents end with an id")


def _from_bytes(data: bytes, path: str, o: Given) -> Array:
    if o.dtype is None:
        raise Refused(f"{path}: the ids are stored as bytes: say by --dtype which type they have")
    if len(data) % np.dtype(o.dtype).itemsize:
        raise Refused(f"{path}: a row has {len(data)} bytes: not a whole number of ids of {o.dtype}")
    return np.frombuffer(data, o.dtype)


# ---- Masks, and rows of several documents ----

def _fields(found: Iterable[str], path: str, o: Given) -> List[str]:
    """The name of the field of ids, and the names of the fields of masks and of where documents begin."""
    names = list(found)
    ids = _choose(o.field, names, path)
    masks = [name for name in (o.labels, o.loss_mask) if name] or [name for name in _MASKS if name in names and name != ids]
    if o.no_mask:
        masks = []
    for name in masks:
        if name not in names:
            raise Refused(f"{path}: no field {name!r}: there are {', '.join(names)}")
    if o.stream and masks:
        raise Refused(f"{path}: has {' and '.join(masks)}, so its rows are documents: use it without --stream, or with "
                       "--no-mask")
    return [ids, *masks, *(name for name in ("seq_lengths", "seq_start_id") if name in names and not o.stream)]


def _documents(fields: Dict[str, Array], place: str, o: Given) -> Iterator[_Row]:
    """The documents of a row, whose fields are those of _fields(), in that order."""
    (_, ids), *others = fields.items()
    starts, train = np.zeros(1, np.int64), None
    for name, values in others:
        if name in ("seq_lengths", "seq_start_id"):
            ends = np.append(values, len(ids)) if name == "seq_start_id" else np.cumsum(np.append(0, values))
            if ends[0] != 0 or ends[-1] != len(ids) or (np.diff(ends) < 1).any():
                raise Refused(f"{place}: {name} does not divide its {len(ids)} ids: {values.tolist()!s:.80}")
            starts = ends[:-1]
            continue
        if len(values) != len(ids):
            raise Refused(f"{place}: has {len(ids)} ids and {len(values)} {name}")
        is_labels = name == (o.labels or "labels")
        counts = values != (-100 if is_labels else 0)
        for i in np.flatnonzero(counts & (values != (ids if is_labels else 1)))[:1].tolist():
            must = f"{ids[i]}, the id, or -100" if is_labels else "0 or 1"
            raise Refused(f"{place}: {name} has {values[i]} at {i}: must be {must}; --no-mask ignores it")
        train = counts if train is None else train & counts
    if train is not None and "seq_start_id" in fields:  # Megatron's mask is that of the next id
        train = np.append(False, train[:-1])
        train[starts] = False
    for first, end in zip(starts.tolist(), [*starts[1:].tolist(), len(ids)]):
        yield ids[first:end], None if train is None else train[first:end]


# ---- Readers: the rows of a file ----

def _read_hdf5(path: str, o: Given) -> Iterator[Array]:
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


class _Part:
    """Stands for whatever a pickle wants to call."""

    def __init__(self, *_: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """For an array of plain objects, which becomes a _Part. Nothing that the file names is called or looked up."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "numpy" or name not in ("_reconstruct", "ndarray", "dtype"):
            raise Refused(f"names {module}.{name}: only lists, numbers and names are read")
        return _Part


def _read_numpy(path: str, o: Given) -> Iterator[_Row]:
    with open(path, "rb") as f:
        version = np.lib.format.read_magic(f)
        _, _, dtype = (np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0)(f)
        if dtype.hasobject:  # rows of NeMo: dicts of lists
            for number, row in enumerate(_Unpickler(f).load().state[-1]):
                names = _fields(row, path, o)
                yield from _documents({name: np.array(row[name]) for name in names}, f"{path}: row {number}", o)
            return
    data = np.lib.format.open_memmap(path, mode="r")
    if data.ndim not in (1, 2) or data.dtype.kind not in "iu":
        raise Refused(f"{path}: has {data.dtype} in {data.ndim} dimensions: must be integers in one or two")
    _check_rows(data.ndim == 2, path, o)
    n = 1 if data.ndim == 2 else 1 << 22
    for first in range(0, len(data), n):
        yield data[first:first + n].ravel()


def _read_megatron(path: str, o: Given) -> Iterator[_Row]:
    """SFT rows of Megatron-Bridge: three words, where the documents begin, and ids whose highest bit is the mask."""
    prefix = path[:-4] if path.endswith((".bin", ".idx")) else path
    with open(prefix + ".idx", "rb") as f:
        index = f.read()
    magic, version, dtype, n_rows = struct.unpack_from("<9sQBQ", index)
    if (magic, version, dtype) != (b"MMIDIDX\0\0", 1, 4):
        raise Refused(f"{prefix}.idx: does not describe rows for SFT, which are of int32; for other files of Megatron: "
                      f"tokmap index {prefix}.bin")
    lengths, places = (np.frombuffer(index, kind, n_rows, 34 + skip).tolist() for kind, skip in (("<i4", 0), ("<i8", 4 * n_rows)))
    data = np.memmap(prefix + ".bin", "<u4", "r")
    for number, (place, n) in enumerate(zip(places, lengths)):
        row = data[place // 4:place // 4 + n]
        n_starts = int(row[2]) if n > 3 and len(row) == n and row[:2].tolist() == [0x53465442, 1] else n
        if 3 + n_starts >= n:
            raise Refused(f"{prefix}.bin: row {number} does not hold SFT data: 'tokmap index' reads other files of Megatron")
        words = row[3 + n_starts:]
        fields = {"input_ids": words & 0x7FFFFFFF, "loss_mask": words >> 31, "seq_start_id": row[3:3 + n_starts]}
        names = _fields(fields, path, o)
        yield from _documents({name: fields[name] for name in names}, f"{prefix}.bin: row {number}", o)


def _read_datatrove(path: str, o: Given) -> Iterator[_Row]:
    """X.ds: ids; X.ds.index: where each document ends; X.ds.loss: a byte for each id, 0 if it does not count."""
    with open(path + ".index", "rb") as f:
        ends = np.frombuffer(f.read(), "<u8").tolist()
    n, size = ends[-1] if ends else 0, os.path.getsize(path)
    if ends != sorted(ends) or size not in (2 * n, 4 * n):
        raise Refused(f"{path}.index: its {len(ends)} documents end at id {n}, and {path} has {size} bytes: must be 2 or 4 for each id")
    if not n:
        return
    fields: dict[str, Array] = {"input_ids": np.memmap(path, f"<u{size // n}", "r")}
    if os.path.exists(path + ".loss") and not o.no_mask:
        fields["loss_mask"] = np.fromfile(path + ".loss", np.uint8)
        if len(fields["loss_mask"]) != n:
            raise Refused(f"{path}.loss: has {len(fields['loss_mask'])} bytes for {n} ids; --no-mask ignores it")
    names = _fields(fields, path, o)
    for number, (begin, end) in enumerate(zip([0, *ends], ends)):
        row = {name: fields[name][begin:end] for name in names}
        yield from row.values() if len(row) == 1 else _documents(row, f"{path}: document {number}", o)


def _read_lmdb(path: str, o: Given) -> Iterator[Array]:
    lmdb = _need("lmdb")
    with lmdb.open(path, readonly=True, lock=False, subdir=os.path.isdir(path)) as store, store.begin() as reading:
        for key, value in reading.cursor():
            if key[:2] == key[-2:] == b"__":  # about the store, such as __len__ and __keys__
                warn("import", f"{path}: {plain(key.decode(errors='replace'))}: is left out, because it is not a row")
            else:
                yield _from_bytes(value, path, o)


def _read_tfrecord(path: str, o: Given) -> Iterator[Array]:
    reader, pb2 = _need("tfrecord.reader"), _need("tfrecord.example_pb2")
    for record in reader.tfrecord_iterator(path, compression_type="gzip" if path.endswith(".gz") else None):
        features = pb2.Example.FromString(bytes(record)).features.feature
        feature = features[_choose(o.field, features, path)]
        if feature.HasField("bytes_list"):
            yield _from_bytes(b"".join(feature.bytes_list.value), path, o)
        else:
            yield np.array(feature.int64_list.value, np.int64)


def _read_webdataset(path: str, o: Given) -> Iterator[Array]:
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


def _decode(sample: Dict[str, bytes], name: str, path: str, o: Given) -> Array:
    if name.endswith("npy"):
        array: Array = np.load(io.BytesIO(sample[name]), allow_pickle=False)
        return array
    return np.array(json.loads(sample[name])) if name.endswith("json") else _from_bytes(sample[name], path, o)


def _read_datasets(path: str, o: Given) -> Iterator[_Row]:
    saved = _need("datasets").load_from_disk(path)
    if isinstance(saved, dict):
        raise Refused(f"{path}: has several splits: import one, such as {path}/{next(iter(saved))}")
    names = _fields(saved.column_names, path, o)
    return _rows_of_tables(saved.select_columns(names).with_format("arrow").iter(1024), names, path, o)


def _read_parquet(path: str, o: Given) -> Iterator[_Row]:
    with _need("pyarrow.parquet").ParquetFile(path) as f:
        names = _fields(f.schema_arrow.names, path, o)
        yield from _rows_of_tables(f.iter_batches(batch_size=1024, columns=names), names, path, o)


def _rows_of_tables(tables: Iterable[Any], names: List[str], path: str, o: Given) -> Iterator[_Row]:
    n_before = 0
    for table in tables:
        columns = [_rows_of_column(table[name], name, name == names[0], path, o) for name in names]
        for number, row in enumerate(zip(*columns), n_before):
            yield from row if len(row) == 1 else _documents(dict(zip(names, row)), f"{path}: row {number}", o)
        n_before += len(table)


def _rows_of_column(column: Any, name: str, is_ids: bool, path: str, o: Given) -> Iterator[Array]:
    pa, compute = _need("pyarrow"), _need("pyarrow.compute")
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if column.null_count:
        raise Refused(f"{path}: has rows without {name}")
    if pa.types.is_integer(column.type) and is_ids:
        _check_rows(False, path, o)
        return iter([column.to_numpy(zero_copy_only=False)])
    kind = getattr(column.type, "value_type", None)
    if kind is None or not pa.types.is_integer(kind) and (is_ids or not pa.types.is_boolean(kind)):
        raise Refused(f"{path}: {name} has {column.type}: must be " + ("ids or lists of ids" if is_ids else
                       "lists of as many numbers as there are ids; --no-mask ignores it"))
    values = compute.list_flatten(column).to_numpy(zero_copy_only=False)
    return iter(np.split(values, np.cumsum(compute.list_value_length(column).to_numpy())[:-1]))


def _read_index(folder: str, *keys: str) -> List[Any]:
    """The values of these keys of the index of MosaicML or litdata."""
    path = os.path.join(folder, "index.json")
    with open(path, encoding="utf-8") as f:
        try:
            index = json.load(f)
            return [index[key] for key in keys]
        except (ValueError, LookupError, TypeError) as error:
            raise Refused(f"{path}: is damaged: {type(error).__name__}: {error}") from None


def _beside(folder: str, name: str) -> str:
    """The path of a file that an index names: in the folder of the index."""
    path = os.path.join(folder, name)
    if os.path.basename(name) != name or not os.path.exists(path):
        raise Refused(f"{path}: the index names this file, which is {'not in its folder' if '/' in name else 'missing'}")
    return path


def _items(data: Any, n_wanted: int, path: str) -> Iterator[Any]:
    """The bytes of each item of a shard of MosaicML or litdata: how many there are, where each begins, and the end."""
    n = int(np.frombuffer(data, "<u4", 1)[0]) if len(data) >= 4 else 0
    places = np.frombuffer(data, "<u4", n + 1, 4).tolist() if len(data) >= 4 * (n + 2) else [0]
    if n != n_wanted or places[0] < 4 * (n + 2) or places[-1] != len(data) or sorted(places) != places:
        raise Refused(f"{path}: is damaged: it does not have the {n_wanted} items that the index says")
    for begin, end in zip(places, places[1:]):
        yield data[begin:end]


def _rows_of_item(item: Dict[str, Any], place: str, o: Given, decode: Callable[[str, Any], Any]) -> Iterator[_Row]:
    """decode: makes the value of a field from what the item has."""
    values = {name: decode(name, item[name]) for name in _fields(item, place, o)}
    arrays = {name: _from_bytes(value, place, o) if isinstance(value, bytes) else np.asarray(value) for name, value in values.items()}
    ids, *others = arrays.values()
    if ids.ndim != 1:
        raise Refused(f"{place}: the ids have {ids.ndim} dimensions: must be one")
    yield from _documents(arrays, place, o) if others else [ids]


def _read_mds(path: str, o: Given) -> Iterator[_Row]:
    """Decompresses in memory, because a StreamingDataset leaves files in the folder. Decodes the fields that are wanted, because
    others may be pickles."""
    compression, encodings = _need("streaming.base.compression"), _need("streaming.base.format.mds.encodings")
    shards, = _read_index(path, "shards")
    for shard in shards:
        stored, kinds = shard["zip_data"] or shard["raw_data"], dict(zip(shard["column_names"], shard["column_encodings"]))
        name = _beside(path, stored["basename"])
        with open(name, "rb") as f:
            data = f.read()
        data = compression.decompress(shard["compression"], data) if shard["zip_data"] else data

        def decode(field: str, value: bytes, kinds: Dict[str, str] = kinds, name: str = name) -> Any:
            if kinds[field].partition(":")[0] not in ("bytes", "ndarray"):
                raise Refused(f"{name}: {field} has the encoding {kinds[field]}: must be bytes or ndarray")
            return encodings.mds_decode(kinds[field], value)

        for number, item in enumerate(_items(data, shard["samples"], name)):
            lengths = [size or 0 for size in shard["column_sizes"]]
            unknown = [i for i, size in enumerate(lengths) if not size]
            for i, size in zip(unknown, np.frombuffer(item, "<u4", len(unknown)).tolist()):
                lengths[i] = size
            ends = list(itertools.accumulate(lengths, initial=4 * len(unknown)))
            fields = {column: item[begin:end] for column, begin, end in zip(kinds, ends, ends[1:])}
            yield from _rows_of_item(fields, f"{name}: item {number}", o, decode)


def _read_litdata(path: str, o: Given) -> Iterator[_Row]:
    """Tokens item by item: a TokensLoader would leave out the end of each chunk."""
    litdata, constants = _need("litdata"), _need("litdata.constants")
    chunks, config = _read_index(path, "chunks", "config")
    files = [_beside(path, chunk["filename"]) for chunk in chunks]
    kinds = [str(kind).partition(":") for kind in config["data_format"]]
    for kind, _, _ in kinds:  # a pickle could call anything
        if kind not in ("no_header_tensor", "no_header_numpy", "tensor", "numpy", "bytes", "str", "int", "float", "bool"):
            raise Refused(f"{path}: has items of the format {kind}: must be arrays, tensors or plain values")
    kind, _, number = kinds[0]
    if len(kinds) != 1 or kind[:10] != "no_header_" or config["compression"]:
        for place, item in enumerate(litdata.StreamingDataset(path, shuffle=False, drop_last=False)):
            fields = item if isinstance(item, dict) else {"tokens": item}
            yield from _rows_of_item(fields, f"{path}: item {place}", o, lambda _, value: value)
        return
    types = constants._TORCH_DTYPES_MAPPING if kind == "no_header_tensor" else constants._NUMPY_DTYPES_MAPPING
    dtype = str(types[int(number)]).rpartition(".")[2]
    for file, chunk in zip(files, chunks):
        for item in _items(np.memmap(file, np.uint8, "r"), chunk["chunk_size"], file):
            yield item.view(dtype)


READERS: Dict[str, Callable[[str, Given], Iterator[_Row]]] = {
    "hdf5": _read_hdf5, "lmdb": _read_lmdb, "megatron": _read_megatron, "datatrove": _read_datatrove, "numpy": _read_numpy,
    "tfrecord": _read_tfrecord, "webdataset": _read_webdataset, "datasets": _read_datasets, "parquet": _read_parquet,
    "mds": _read_mds, "litdata": _read_litdata}


# ---- The command ----

def _split(pieces: Iterable[Array], eod_id: Optional[int]) -> Iterator[Array]:
    """The documents of a stream of tokens: each ends after eod_id."""
    rest: List[Array] = []
    for piece in pieces:
        begin = 0
        for end in (np.flatnonzero(piece == eod_id) + 1).tolist():
            yield np.concatenate([*rest, piece[begin:end]])
            begin, rest = end, []
        if begin < len(piece):  # an empty list has no type
            rest.append(piece[begin:])
    if rest:
        yield np.concatenate(rest)


def _print_result(masked: bool, o: Given) -> None:
    made, n_files = _open(o.output), len(o.operands) - 1
    if o.json:
        print_json(index_file=made.paths[0], token_file=f"{made.paths[0][:-4]}.bin", n_tokens=made.n_tokens,
                   dtype=f"u{8 * made.dtype.itemsize}", n_documents=made.n_documents, n_inputs=n_files,
                   n_spans=made.n_spans, dataset_id=made.dataset_id)
    elif not o.quiet:
        spans = f"{made.n_spans:,} spans that are not trained on, " if masked else ""
        print(plain(f"{o.output}: {made.n_documents:,} documents, {made.n_tokens:,} tokens (u{8 * made.dtype.itemsize}) "
                    f"from {n_files} file{'s' * (n_files != 1)}, {spans}id {made.dataset_id}"))


def _write(o: Given) -> None:
    kind, *inputs = o.operands
    if kind not in READERS:
        raise WrongUse(f"there is no format '{kind}'")
    path = inputs[0]
    lengths: Dict[int, int] = collections.Counter()  # of rows

    def read(path: str) -> Iterator[Any]:
        rows = READERS[kind](path, o)
        return iter(_split(rows, o.eod)) if o.stream else rows  # type: ignore[arg-type]

    try:
        for first_file, path in enumerate(inputs):
            rows = read(path)
            first = list(itertools.islice(rows, 1))
            if first:  # the first row says whether there are masks
                break
        masked = bool(first) and isinstance(first[0], tuple) and first[0][1] is not None
        if first and not masked and (o.labels or o.loss_mask):
            raise Refused(f"{path}: --labels and --loss-mask are for columns beside the ids, and not with --no-mask")
        path = o.output
        with Writer(o.output, o.vocab_size, o.eod, replace=bool(o.force), spans=masked) as writer:
            for number, path in enumerate(inputs):
                rows = read(path) if number > first_file else itertools.chain(first, rows) if number == first_file else iter(())
                for row in show_count(rows, "import", f"documents of file {number + 1} of {len(inputs)}", o.quiet):
                    ids, train = row if isinstance(row, tuple) else (row, None)
                    if (train is None) is masked:
                        raise Refused(f"{path}: some rows have a mask, and some have none: --no-mask ignores all")
                    writer.document(ids, train=train)
                    lengths[len(ids)] += 1
                writer.end_input(path, os.path.getsize(path) if os.path.isfile(path) else 0)
            writer.set_metadata({"imported_from": kind, "field": o.field, "stream": bool(o.stream)})
    except (ExistsError, LockedError, FileError, MemoryError):
        raise  # they name the output
    except Exception as error:  # each library has its own
        text = describe(error)
        raise Refused(text if path in text.partition(": ")[0] else f"{path}: {text}") from None
    _print_result(masked, o)
    n, length = sum(lengths.values()), max(lengths, key=lengths.__getitem__, default=0)
    if not o.stream and n > 2 and lengths[length] >= n - 1:  # the last one may be shorter
        warn("import", f"{o.output}: {lengths[length]} of {n} documents have {length} ids: if these rows are pieces of "
             "one stream, import them again with --stream, and --eod if documents end with an id")


def main(arguments: List[str]) -> None:
    o = Given(arguments)
    with ends_as_program("import", o.json):
        _write(o)

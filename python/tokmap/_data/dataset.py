# SPDX-License-Identifier: Apache-2.0
"""tokmap.Dataset - tokens and documents, read in place."""

import bisect
import contextlib
import ctypes
import errno
import itertools
import os
import re
from typing import (TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple, Union, overload)

import numpy as np

from .._c import arguments, forks, html  # noqa: F401: forks are noted from now on
from .._c import structs as _lib
from .._c.arguments import flag, integer, number, real
from .._c.errors import DamagedError, Error, FileError, Handle, MismatchError, UnsupportedError, call, make_error
from .._c.structs import lib
from . import values as _meta
from .store import is_url, opening, parse_url
from .view import View, write_view

if TYPE_CHECKING:
    from .byte_source import StoreSource
    from .hub_cache import Place
    from .lanes import Lane, LaneWriter

Path = Union[str, "os.PathLike[str]"]
Array = _meta.Array


class Document(NamedTuple):
    """Where a document is: its number, its first token, and how many tokens it has."""

    number: int
    first_token: int
    n_tokens: int


class Input(NamedTuple):
    """An input file of a dataset, and what came from it. input_checksum is the XXH3-64 of its bytes (for a Parquet
    file, of the bytes that were read: docs/FORMAT.md, section 3.5). input_checksum and input_bytes are 0 if they are
    not known."""

    name: str
    first_document: int
    n_documents: int
    first_token: int
    n_tokens: int
    input_bytes: int
    input_checksum: int


# Name i of Dataset.roles is that of the roles 3 + i and 128 + i; from 128 on, labels count unless a Loader is told otherwise.
FIRST_NAMED_ROLE, FIRST_COUNTED_ROLE = 3, 128


class Span(NamedTuple):
    """Ids of a document that have a role: the first one, counted from the beginning of the document, and how many there
    are. role: 0: a prompt, 1: redacted, 2: a prompt and redacted, whose labels never count; 3 to 127: another one whose
    labels do not count; 128 to 254: one whose labels count. train_roles of a Loader may say otherwise of roles from 3 on."""

    first: int
    n: int
    role: int


class Segment(NamedTuple):
    """A token file of a joined dataset, and which tokens are in it. token_offset: the byte of its first token."""

    path: str
    first_token: int
    n_tokens: int
    token_offset: int


def encode_path(path: Path, name: str = "path") -> bytes:
    return os.fsencode(arguments.path(name, path))


def natural_order(path: str) -> Any:
    """For sorting as the commands do: numbers by their value, and / before all other characters."""
    parts = re.findall(rb"[0-9]+|[^0-9]", os.fsencode(path))
    return [(-1, 0) if one == b"/" else (48, int(one)) if one.isdigit() else (one[0], 0) for one in parts], path


def _find_folders(path: str, seen: Set[Tuple[int, int]]) -> Iterator[str]:
    """The folder and all below it, each once, without hidden ones."""
    try:
        facts, names = os.stat(path or "."), os.listdir(path or ".")
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path) and not os.path.exists(path):
            raise
        return
    if (facts.st_dev, facts.st_ino) in seen:
        return
    seen.add((facts.st_dev, facts.st_ino))
    yield path
    for name in sorted((name for name in names if name[0] != "."), key=natural_order):
        yield from _find_folders(os.path.join(path, name), seen)


def match_pattern(pattern: str) -> List[str]:
    """As glob.glob, but only what does not exist is left out; glob.glob also leaves out what it cannot look at. ** is
    any number of folders, also none."""
    import fnmatch
    import glob

    folder, name = os.path.split(pattern)
    found: List[str] = []
    seen: Set[Tuple[int, int]] = set()
    for one in sorted(match_pattern(folder), key=natural_order) if glob.has_magic(folder) else [folder]:
        try:
            if name == "**":
                found += _find_folders(one, seen)
            elif glob.has_magic(name):
                names = fnmatch.filter(os.listdir(one or "."), name)
                found += [os.path.join(one, entry) for entry in names if name[0] == "." or entry[0] != "."]
            else:
                os.lstat(os.path.join(one, name))
                found.append(os.path.join(one, name))
        except NotADirectoryError:
            pass
        except OSError as error:
            place = error.filename if name == "**" else one or "."
            is_broken = os.path.islink(place) and not os.path.exists(place)
            why = f"is a symbolic link to {os.readlink(place)}, which does not exist" if is_broken else error.strerror
            if is_broken or error.errno != errno.ENOENT:
                raise make_error(f"{pattern}: {place}: {why}", -3, error.errno or 0, 0, file=pattern) from None
    return found


def find_paths(path: Union[Path, Sequence[Path]], store: Any = None) -> List[str]:
    """The datasets that a user means with a path, a pattern, or a list of both. Names in a store stay as they are."""
    if isinstance(path, (list, tuple)):
        return [one for item in path for one in find_paths(item, store)]
    text = arguments.path("path", path)
    if store is not None or is_url(text):
        return [text]
    if text.startswith("hf://"):
        from . import hub_cache
        if hub_cache.is_name(text):
            return _find_in_hub(hub_cache.Place(text))
    return _find_on_disk(text)


def _find_in_hub(place: "Place") -> List[str]:
    """The datasets of a name hf://..., all of whose files are in the cache."""
    try:
        paths = _find_on_disk(place.path)
    except FileNotFoundError:
        raise place.no_match() from None
    for path in paths:
        place.check(path)
    return paths


def _find_on_disk(text: str) -> List[str]:
    is_one = any(os.path.exists(text + end) for end in (".tmi", ""))
    if is_one or not set("*?[") & set(text):
        return [text]
    text += "/*" if os.path.basename(text) == "**" else ""
    # While a dataset is replaced it has only names with .replaced, and gets the others back between two looks.
    names = (".tmi", ".bin", ".tmi.replaced") + ((".bin.replaced",) if text.endswith(".bin") else ())
    looks = ("", ".replaced") if text.endswith((".tmi", ".bin")) else ("", ".tmi", ".tmi.replaced")
    prefixes: Set[str] = set()
    n_before = -1
    while n_before != len(prefixes):  # until a look at all names finds nothing new
        n_before = len(prefixes)
        prefixes |= {found[:-len(end)] for look in looks for found in match_pattern(text + look)
                     for end in names if found.endswith(end)}
    if not prefixes:
        raise make_error(f"{text}: no dataset matches this pattern", -3, errno.ENOENT, 0, file=text)
    return sorted(prefixes, key=natural_order)


def choose_paths(given: Sequence[Any], store: Any = None) -> List[Any]:
    """The paths of a list, patterns replaced by what they match, each dataset once. Datasets in the list stay."""
    seen: Set[Any] = set()
    for item in given:
        name = parse_url(item).name if is_url(item) else os.fsdecode(item) if isinstance(item, (str, os.PathLike)) else id(item)
        if name in seen:
            raise ValueError(f"{name if is_url(item) else item}: is named twice; to train on a dataset more often than on others, give a source "
                             "that has a weight")
        seen.add(name)
    items = [one for item in given for one in
             (find_paths(item, store) if isinstance(item, (str, os.PathLike, list, tuple)) else [item])]
    if len(items) == 1:
        return items
    places = [i for i, item in enumerate(items) if isinstance(item, str) and store is None and not is_url(item)]
    chosen = ctypes.create_string_buffer(len(places) + 1)
    call(lib.tokmap_dataset_choose_paths, (ctypes.c_char_p * len(places))(*(encode_path(items[i]) for i in places)),
         len(places), chosen)
    left_out = {place for i, place in enumerate(places) if chosen[i] == b"\0"}
    return [item for i, item in enumerate(items) if i not in left_out]


class Shard:
    """One dataset of the library: its handle, what its index says, and its tokens. tokens: all as an array, which
    keeps the map for as long as any view of it lives; None for a joined dataset, which has several maps, and for one in a
    store. source: reads it from a store; None: its files are read. index: a copy of the index of a store, on a disk."""

    def __init__(self, path: str, store: Any = None, index: Optional[str] = None) -> None:
        self.index = index
        self.source: Optional["StoreSource"] = None
        if store is None and not is_url(path):
            self.handle = Handle(lib.tokmap_dataset_close)
            call(lib.tokmap_dataset_open, ctypes.byref(self.handle.pointer), encode_path(path))
        else:
            self._open_from(path, store, index)
        self.info = _lib.Info()
        lib.tokmap_dataset_get_info(self.handle.pointer, ctypes.byref(self.info))
        self.path = os.fsdecode(self.info.index_path)
        self.full_path = os.path.abspath(self.path) if self.source is None else self.path  # the process may change its folder
        self._typestr = "<u2" if self.info.token_bytes == 2 else "<u4"
        self.dtype = np.dtype(self._typestr)
        self.tokens: Optional[Array] = None
        if self.info.token_path is not None and self.source is None:
            self.tokens = self._mapped(0, self.info.n_tokens)
            assert self.tokens is not None
            self.address: int = self.tokens.__array_interface__["data"][0]

    def _open_from(self, name: str, store: Any, index: Optional[str]) -> None:
        from .byte_source import StoreSource  # here, because few programs need it

        with opening() as together:
            self.source = source = StoreSource(name, store, together.seconds)
            source.struct.index_path = None if index is None else encode_path(index)
            self.handle = Handle(lib.tokmap_dataset_close, source)
            with source.read_elsewhere():
                call(lib.tokmap_dataset_open_from, ctypes.byref(self.handle.pointer), encode_path(source.name), ctypes.byref(source.struct))

    def _mapped(self, first: int, n_tokens: int) -> Optional[Array]:
        """A view of the map; None if the range is not in one piece of memory."""
        address = ctypes.c_void_p()
        if lib.tokmap_dataset_tokens(self.handle.pointer, first, n_tokens, ctypes.byref(address)):
            return None
        return np.asarray(_meta.View(self.handle, address.value or 0, n_tokens, self._typestr))

    def range(self, first: int, n_tokens: int) -> Array:
        """Tokens [first, first + n_tokens), read-only: a view if possible, else a copy."""
        if self.tokens is not None:
            return self.tokens[first:first + n_tokens]
        found = self._mapped(first, n_tokens)
        if found is None:
            found = np.empty(n_tokens, self.dtype)
            call(lib.tokmap_dataset_read, self.handle.pointer, first, n_tokens, found.ctypes.data)
            found.flags.writeable = False
        return found

    def row(self, address: int, first: int, n_tokens: int) -> Optional[Array]:
        """Of a joined dataset: a view of a row that the loader found in a map; None if it is elsewhere."""
        found = self._mapped(first, n_tokens) if first + n_tokens <= self.info.n_tokens else None
        return found if found is not None and found.__array_interface__["data"][0] == address else None

    def look_up(self, function: Any, number: int, out: Any) -> Any:
        status = function(self.handle.pointer, number, ctypes.byref(out))
        if status:
            raise self.index_error("an entry of the index cannot be read", status)
        return out

    def index_error(self, problem: str, status: int) -> Error:
        """Why a call of the library failed that does not say it: it read a part of a large index from the store, or it is damaged."""
        failed = None if self.source is None else self.source.take_failure()
        if failed is not None and failed.status == status:
            return make_error(str(failed), status, failed.sys_errno, failed.read.offset, file=failed.read.name)
        if status == -8:
            return UnsupportedError(f"{self.path}: more than 1 GiB of the index is needed in memory: copy it to a disk, and give its path by "
                                    "index=", -8, file=self.path)
        return DamagedError(f"{self.path}: damaged: {problem}", -6, file=self.path)


def pointers_of(shards: List[Shard]) -> Any:
    return _lib.array_of(ctypes.c_void_p, [shard.handle.pointer for shard in shards])


def check_tokenizers(shards: List[Shard]) -> None:
    """Whether what `tokmap pack` has stored about the tokenizers is the same."""
    call(lib.tokmap_dataset_check_tokenizers, pointers_of(shards), len(shards), advice=": set mixed_tokenizers=True to open both")


def _same(values: List[Any]) -> Any:
    return values[0] if all(value == values[0] for value in values) else None


class Dataset:
    """The documents of one dataset, or of several that form one corpus, in their order. A sequence of documents:
    len(ds) is their number, ds[i] the tokens of document i as a read-only NumPy array that is a view of the
    mapped file, or a copy if it is in two files of a joined dataset. Arrays stay valid when the dataset is closed.

    path    a path (data/train, data/train.tmi or data/train.bin), a pattern such as "data/part-*", or a list of
            both. Matches are taken in the order of the commands, part-2 before part-10; "data/**" is all datasets in
            and below data. A folder that a pattern may match and that cannot be searched is a FileError. A link whose
            target is missing is a FileError too. Paths that lead to one index are one dataset. The same path twice is
            a ValueError. A joined dataset together with a dataset that has its tokens is a MismatchError.
            hf://datasets/OWNER/NAME[@REVISION]/PATH is a dataset in the Hugging Face Hub's cache on this disk; the FileError
            for one that is not there names the command that downloads it. Or a URL, s3://, gs://, az://, https:// or http://, or a list with URLs, of datasets that are read where they are,
            without patterns: see store
    store   where path is a name, or a URL: a store of obstore; a file system of fsspec; or a function (name, offset,
            length) -> bytes, which may have an attribute size, a function (name) -> int. A store of obstore gets the path in
            its bucket, others get the name as it is given, with an end such as ".tmi". Fsspec and functions say nothing of
            versions: if an object is replaced by one of the same size, only tokmap.Reading(verify=True) finds it. None: of a
            URL, a store that tokmap makes by obstore (pip install obstore, Python 3.11 or later), with the credentials
            of the environment
    index   for one dataset in a store: a copy of its P.tmi on a disk. An index of more than 1 GiB needs it where documents are
            looked up, as for windows within documents, rows of several documents, views and masks
    mixed_tokenizers    whether the datasets may be of different tokenizers. False: MismatchError names two datasets
            with different tokenizers, by what `tokmap pack` has stored. A dataset that names none goes with all others

    n_tokens, n_documents, n_inputs: totals. dtype: of the tokens, uint16 or uint32. largest_id: the largest id
    in the data. vocab_size and eod_id: None if they are not known, or differ between the datasets. shards: the
    datasets, each as a Dataset.

    A notebook shows what is in it: inputs, lengths of up to 1,000 documents at random, and the first texts, if the
    tokenizer is "bytes", or if its file is beside the dataset or in the working folder. A Loader and a Batch are
    shown in the same way."""

    def __init__(self, path: Union[Path, Sequence[Path]], *, store: Any = None, index: Optional[Path] = None,
                 mixed_tokenizers: bool = False) -> None:
        paths = choose_paths(path if isinstance(path, (list, tuple)) else [path], store)
        if not paths:
            raise ValueError("no path is given")
        if index is not None and (len(paths) > 1 or store is None and not is_url(paths[0])):
            raise ValueError("index is for one dataset in a store")
        with opening():
            shards = [Shard(one, store, None if index is None else os.path.abspath(arguments.path("index", index))) for one in paths]
        if not flag("mixed_tokenizers", mixed_tokenizers) and len(shards) > 1:
            check_tokenizers(shards)
        call(lib.tokmap_dataset_check_files, pointers_of(shards), len(shards))
        self._open_shards: Optional[List[Shard]] = shards
        self._describe()

    def _describe(self) -> None:
        shards = self._shards()
        infos = [shard.info for shard in shards]
        for shard in shards:
            if shard.dtype != shards[0].dtype:
                raise ValueError(f"{shards[0].path} has tokens of {infos[0].token_bytes} bytes, but {shard.path} "
                                 f"has tokens of {shard.info.token_bytes}: open them as two datasets")
        # Where each shard begins, and the end of the last one.
        self._first_tokens = [0, *itertools.accumulate(info.n_tokens for info in infos)]
        self._first_documents = [0, *itertools.accumulate(info.n_documents for info in infos)]
        self._first_inputs = [0, *itertools.accumulate(info.n_inputs for info in infos)]
        self.n_tokens: int = self._first_tokens[-1]
        self.n_documents: int = self._first_documents[-1]
        self.n_inputs: int = self._first_inputs[-1]
        self.n_spans: int = sum(info.n_spans for info in infos)
        self.dtype: "np.dtype[Any]" = shards[0].dtype
        self.largest_id: int = max(info.largest_id for info in infos)
        self.vocab_size: Optional[int] = _same([info.vocab_size for info in infos]) or None
        eod_id = _same([info.eod_id for info in infos])
        self.eod_id: Optional[int] = None if eod_id == _lib.NO_ID else eod_id

    def _shards(self) -> List[Shard]:
        if self._open_shards is None:
            raise ValueError("the dataset is closed")
        return self._open_shards

    def _only(self, what: str) -> Shard:
        shards = self._shards()
        if len(shards) > 1:
            raise ValueError(f"{what}: these are {len(shards)} datasets: ask one of `shards`")
        return shards[0]

    @property
    def shards(self) -> List["Dataset"]:
        """The datasets, each as a Dataset of its own. Nothing is opened again."""
        found = []
        for shard in self._shards():
            one = Dataset.__new__(Dataset)
            one._open_shards = [shard]
            one._describe()
            found.append(one)
        return found

    @property
    def paths(self) -> List[str]:
        """The paths of the indexes."""
        return [shard.path for shard in self._shards()]

    @property
    def dataset_id(self) -> str:
        """32 hexadecimal digits that depend on the content. Only for a single dataset."""
        return bytes(self._only("dataset_id").info.dataset_id).hex()

    @property
    def spans_hash(self) -> int:
        """A hash of which ids do not count as labels, without redacted ones; 0: none. Only for a single dataset."""
        return int(self._only("spans_hash").info.spans_hash)

    @property
    def metadata(self) -> Dict[str, Any]:
        """What the writer of the dataset stored: how it was made. Only for a single dataset."""
        import json

        n_bytes, shard = ctypes.c_size_t(), self._only("metadata")  # which another thread may close meanwhile
        text = lib.tokmap_dataset_metadata(shard.handle.pointer, ctypes.byref(n_bytes))
        if text is None:
            raise shard.index_error("the metadata cannot be read", -3)
        try:
            found: Dict[str, Any] = json.loads(ctypes.string_at(text, n_bytes.value))
        except ValueError as error:
            raise DamagedError(f"{shard.path}: damaged: the metadata is not JSON: {error}", -6, file=shard.path) from None
        return found

    @property
    def roles(self) -> Tuple[str, ...]:
        """The names of the roles that its tokens may have, as `train_roles` takes them. Name number i, from 0, is that of
        the roles 3 + i and 128 + i of Span. Only for a single dataset."""
        found = self.metadata.get("roles", [])
        if not isinstance(found, list) or len(found) > 125 or len(set(map(str, found))) != len(found) or any(
                not isinstance(one, str) or one in ("prompt", "redacted") or not re.fullmatch("[A-Za-z0-9_-]{1,64}", one) for one in found):
            path = self.paths[0]
            raise DamagedError(f"{path}: damaged: the names of the roles in its metadata", -6, file=path)
        return tuple(found)

    def close(self) -> None:
        """Closes the files when no array and no loader uses them any longer."""
        self._open_shards = None

    def __enter__(self) -> "Dataset":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._open_shards is None:
            return "<tokmap.Dataset: closed>"
        paths = self.paths
        name = repr(paths[0]) if len(paths) == 1 else f"{paths[0]!r} and {len(paths) - 1} more"
        documents = f"{self.n_documents} documents" if self.n_documents else "boundaries not known"
        return f"<tokmap.Dataset {name}: {documents}, {self.n_tokens} tokens, {self.dtype.name}>"

    def _repr_html_(self) -> str:
        return html.shown("of_dataset", self)

    def __reduce__(self) -> Tuple[Any, ...]:
        """Pickles paths and ids, so that another process opens the same data, or raises MismatchError. A URL is pickled without
        credentials; a store that was given pickles itself."""
        shards = self._shards()
        sources = [shard.source for shard in shards if shard.source is not None]
        return _reopen, ([(shard.full_path, bytes(shard.info.dataset_id), shard.info.spans_hash) for shard in shards],
                         sources[0].store if sources else None, any(source.has_credentials for source in sources), shards[0].index)

    def _need_files(self, what: str) -> None:
        """Refuses what is done with files."""
        for shard in self._shards():
            if shard.source is not None:
                raise UnsupportedError(f"{shard.path}: is in a store, and {what} needs files: copy the dataset first", -8, file=shard.path)

    # ---- Documents ----

    def __len__(self) -> int:
        return self.n_documents

    @overload
    def __getitem__(self, index: int) -> Array: ...

    @overload
    def __getitem__(self, index: slice) -> List[Array]: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Array, List[Array]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.n_documents))]
        index = integer("index", index)
        shard, found, _ = self._find(index, index + self.n_documents if index < 0 else index)
        return shard.range(found.first_token, found.n_tokens)

    def __iter__(self) -> Iterator[Array]:
        for i in range(self.n_documents):
            yield self[i]

    def _find(self, given: int, index: Optional[int] = None) -> Tuple[Shard, Any, Document]:
        """The shard, the document in it, and in all of them. index: the number that is meant, if it is another one."""
        shards, given = self._shards(), integer("index", given)
        index = given if index is None else index
        if not 0 <= index < self.n_documents:
            hint = f"there are {self.n_documents}" if self.n_documents else "their boundaries are not known"
            raise IndexError(f"document {given}: {hint}")
        k = bisect.bisect_right(self._first_documents, index) - 1
        found = shards[k].look_up(lib.tokmap_dataset_document, index - self._first_documents[k], _lib.Document())
        return shards[k], found, Document(index, self._first_tokens[k] + found.first_token, found.n_tokens)

    def document(self, index: int) -> Document:
        """Where document number `index` is."""
        return self._find(index)[2]

    def find_document(self, token: int) -> Document:
        """The document that contains token number `token`."""
        shards, token = self._shards(), integer("token", token)
        if not 0 <= token < self.n_tokens:
            raise IndexError(f"token {token}: there are {self.n_tokens}")
        k = bisect.bisect_right(self._first_tokens, token) - 1
        if shards[k].info.n_documents == 0:
            raise LookupError(f"{shards[k].path}: its document boundaries are not known")
        found = shards[k].look_up(lib.tokmap_dataset_find_document, token - self._first_tokens[k], _lib.Document())
        return Document(self._first_documents[k] + found.index, self._first_tokens[k] + found.first_token, found.n_tokens)

    def lengths(self) -> Array:
        """The number of tokens of each document, as int64: np.repeat(values, ds.lengths()) gives each token the value of its
        document."""
        found = np.empty(self.n_documents, np.int64)
        one = _lib.Document()
        for shard, first in zip(self._shards(), self._first_documents):
            if shard.info.n_documents == 0 and shard.info.n_tokens:
                raise LookupError(f"{shard.path}: its document boundaries are not known")
            for i in range(shard.info.n_documents):
                found[first + i] = shard.look_up(lib.tokmap_dataset_document, i, one).n_tokens
        return found

    # ---- Tokens ----

    def tokens(self, first: int = 0, n_tokens: Optional[int] = None) -> Array:
        """n_tokens tokens from number `first`, by default to the end: a read-only view of the mapped file. A range
        that crosses from one token file to the next is a copy."""
        shards, first = self._shards(), integer("first", first)
        n_tokens = self.n_tokens - first if n_tokens is None else integer("n_tokens", n_tokens)
        if first < 0 or n_tokens < 0 or first + n_tokens > self.n_tokens:
            raise IndexError(f"tokens {first} to {first + n_tokens}: there are {self.n_tokens}")
        parts = []
        end = first + n_tokens
        for k in range(bisect.bisect_right(self._first_tokens, first) - 1, len(shards)):
            before, after = self._first_tokens[k:k + 2]
            begin = max(first, before)
            parts.append(shards[k].range(begin - before, min(end, after) - begin))
            if end <= after:
                break
        if len(parts) == 1:
            return parts[0]
        joined = np.concatenate(parts) if parts else np.empty(0, self.dtype)
        joined.flags.writeable = False
        return joined

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        """All tokens: np.asarray(ds) is a view of the mapped file, or of a joined dataset a copy."""
        shard = self._only("all tokens as one array")
        if shard.tokens is None and shard.info.n_segments > 1 and copy is False:
            raise ValueError("the tokens are in several files: one array of them needs a copy")
        tokens = shard.range(0, shard.info.n_tokens)
        if dtype is not None and np.dtype(dtype) != tokens.dtype:
            if copy is False:
                raise ValueError(f"the tokens are {tokens.dtype.name}: another dtype needs a copy")
            return tokens.astype(dtype)
        return tokens.copy() if copy else tokens

    # ---- Values ----

    def _columns(self) -> List[Dict[str, _meta.Column]]:
        """The columns of each dataset, which all have the same names."""
        shards = self._shards()
        found = [_meta.columns_of(shard) for shard in shards]
        for shard, columns in zip(shards, found):
            for name in sorted(columns.keys() ^ found[0].keys()):
                raise ValueError(f"only one of {shards[0].path} and {shard.path} has values {name!r}: ask each of "
                                 "`shards`")
        return found

    @overload
    def meta(self) -> Dict[str, str]: ...

    @overload
    def meta(self, name: str) -> Array: ...

    def meta(self, name: Optional[str] = None) -> Union[Dict[str, str], Array]:
        """Without a name: the names of the values that documents have, and their types: "int64", "float64", "str",
        or "null" if no document has one. With a name: the values of all documents. Late columns count too. Numbers are
        int64 or float64: a read-only view of the mapped file, or a copy if they are stored in fewer bytes or there are
        several datasets; a masked array if some documents have no value. Strings are an array of objects, with None for
        a document without a value. A late column is compared with its checksums; columns of the index are checked by
        verify. In a store late columns have no names here, and are found if you ask for them by name."""
        columns = self._columns()
        if name is not None:
            arguments.text("name", name, "the name of a column")
            if name not in columns[0] and self._shards()[0].source is not None:
                with contextlib.suppress(FileNotFoundError):
                    columns = [{name: _meta.Column(shard, name)} for shard in self._shards()]
        if name is None:
            types = {one: [shard[one].type for shard in columns] for one in columns[0]}
            return {one: _meta.TYPE_NAMES[max(found)] for one, found in types.items()}
        if name not in columns[0]:
            if os.path.exists(f"{self.paths[0][:-4]}.{name}.tmc"):
                _meta.Column(self._shards()[0], name)  # says why it was left out
            names = ", ".join(map(repr, columns[0])) or "none"
            raise KeyError(f"the documents have no values {name!r}: there are {names}")
        return _meta.join([shard[name].verify() for shard in columns])

    def document_meta(self, index: int) -> Dict[str, Union[None, int, float, str]]:
        """The values of document number `index`, by name; None where it has none. Single values are read without
        comparing checksums, as single tokens are: verify does that."""
        shard, found, _ = self._find(index)
        return {name: column.value(found.index) for name, column in _meta.columns_of(shard).items()}

    def add_column(self, name: str, values: Any, *, replace: bool = False) -> None:
        """Adds a late column: a value for each document, in a file P.NAME.tmc beside each dataset, which stays as it is.
        values: an array of numbers or truth values, masked where a document has no value; a list of numbers, strings
        and None; a column of pandas, polars or Arrow. Integers stay integers beside missing values. Nothing is rounded: an
        integer above 2^63 - 1 is an OverflowError, and one beside floats that no float64 is equal to a ValueError. Read it
        with meta(name). name: letters, digits, _ and -. replace: whether a late column of this name may be replaced, else
        ExistsError."""
        array, shards = _meta.as_array(values), self._shards()
        if array.shape != (self.n_documents,):
            raise ValueError(f"values has the shape {array.shape}: must be one for each of the {self.n_documents} documents")
        for shard, first in zip(shards, self._first_documents):
            _meta.add_column(shard, name, array[first:first + shard.info.n_documents], flag("replace", replace))

    def scan(self, name: str, *, against: Union[None, Path, Sequence[str]] = None, duplicates: bool = False,
             fields: Union[str, Sequence[str]] = "text", ngram: int = 13, tokenizer: Optional[Path] = None, pattern: Optional[str] = None,
             matches: bool = False, replace: bool = False, threads: int = 0) -> Dict[str, Any]:
        """Adds late columns about tokens that documents have in common with others, by the command `tokmap scan`, and
        returns what it prints as JSON.

        against: the examples of a benchmark: a file of Parquet, Arrow, JSON lines or CSV, or a list of texts. The columns are
        NAME_ngrams, how many n-grams of a document some example has; NAME_longest, the tokens of the longest run of them;
        NAME_example, the number of its example, from 1 on. duplicates: the column NAME has the first document with the
        same tokens.

        fields: those of an example that are looked for, each on its own: a list, or with commas between them. ngram: tokens of an n-gram. tokenizer: the file of the
        tokenizer that made the dataset; None: "bytes". pattern: as for `Tokenizer`. matches: the result also has the 20
        longest matches of each example. replace: whether late columns of these names may be replaced. threads: 0: one
        for each processor. Several datasets are scanned one after another; after an error, those before it have their
        columns."""
        from .scan import scan  # here, because few programs need it

        self._need_files("scan")
        chosen = fields if isinstance(fields, str) else ",".join(fields)
        arguments.text("fields", chosen, "a list of names")
        arguments.text("pattern", "" if pattern is None else pattern, "a string")
        threads = number("threads", threads, 64)
        if flag("duplicates", duplicates) == (against is not None):
            raise ValueError("scan needs one of against and duplicates=True")
        if duplicates:
            self._only("duplicates")
            if (chosen, ngram, tokenizer, pattern, matches, threads) != ("text", 13, None, None, False, 0):
                raise ValueError("duplicates=True needs no examples: only name and replace go with it")
            options = ["--duplicates"]
        else:
            options = ["--fields", chosen, "--ngram", str(integer("ngram", ngram))]
            options += ["--threads", str(threads)] if threads else []
            options += ["--tokenizer", os.fsdecode(encode_path(tokenizer, "tokenizer"))] if tokenizer is not None else []
            options += ["--pattern", pattern] if pattern is not None else []
            options += ["--matches"] if flag("matches", matches) else []
        arguments.text("name", name, "the name of a column")
        options += ["--name", name, *(["--force"] if flag("replace", replace) else [])]
        if isinstance(against, (str, os.PathLike)):
            against = os.path.abspath(arguments.path("against", against))
        elif against is not None and (isinstance(against, (bytes, type)) or not hasattr(against, "__iter__")
                                      or not all(isinstance(one, str) for one in against)):
            raise TypeError(f"against is {against!r:.80}: must be the path of a file, or a list of texts")
        elif against is not None and chosen != "text":
            raise ValueError("fields is for the examples of a file, not for a list of texts")
        names = [name + end for end in ("_ngrams", "_longest", "_example")] if not duplicates else [name]
        return scan([path[:-4] for path in self.paths], self._first_documents, options, against, names, replace)

    # ---- Lanes ----

    @property
    def lanes(self) -> "Dict[str, Lane]":
        """The lanes of this dataset by name, as they are in its folder now. Of several datasets those that each has. One that
        cannot be read is left out, with a warning."""
        from .lanes import lanes_of  # here, because few programs need it

        for shard in self._shards():
            if shard.source is not None:
                raise UnsupportedError(f"{shard.path}: a store is not listed: ask for a lane by its name: Dataset.lane", -8, file=shard.path)
        return lanes_of(self)

    def lane(self, name: str) -> "Lane":
        """The lane of this name: numbers for each token. ArgumentError: there is none."""
        from .lanes import Lane

        return Lane(self, name)

    def add_lane(self, name: str, values: Any, *, type: Optional[str] = None, goes_with: str = "label",
                 about: Optional[Mapping[str, Any]] = None, replace: bool = False) -> None:
        """Adds a lane: numbers for each token, in a file P.NAME.tml beside each dataset, which stays as it is.
        values: an array, memmap or tensor [n_tokens] or [n_tokens, count]; value t belongs to token t. type: how they are
        stored, "uint8" to "int32", "float16", "bfloat16" or "float32"; None: as they are. As floats they are rounded, and may not
        become infinite; as integers they must be whole and fit. "bfloat16" takes bits as uint16, or a tensor of torch. goes_with:
        "label" if a value says something of its token as a label, such as a weight or a log-probability; "input" if a
        model has computed it at the token, such as logits. about: what JSON can hold: who made them. It has "attention":
        "within documents" unless you say otherwise: whether values depend on tokens of other documents, which `tokmap
        redact` asks. replace: whether a lane of this name may be replaced, else ExistsError."""
        from .lanes import add_lane

        add_lane(self, name, values, type, goes_with=goes_with, about=about, replace=replace)

    def lane_writer(self, name: str, type: str, count: int = 1, *, goes_with: str = "label",
                    about: Optional[Mapping[str, Any]] = None, replace: bool = False, partial: bool = False) -> "LaneWriter":
        """Begins a lane whose values come in any order: see LaneWriter. count: numbers for each token. partial: whether
        tokens may be left out, whose numbers are then 0. The other arguments are those of add_lane. Only for a single
        dataset. A lane cannot be resumed: write what takes days for each of the datasets that are joined."""
        from .lanes import LaneWriter

        return LaneWriter(self._only("a lane"), name, type, count, goes_with, about, replace, partial)

    # ---- Views ----

    def where(self, expression: str) -> View:
        """The documents for which an expression holds, such as "quality >= 3 and not dup", as in `tokmap info --where`:
        how many they are, and a source of a Loader. Values and late columns count. Datasets of more than 10,000,000
        documents need the file of `write_view` or `tokmap view` first."""
        return View(self, expression)

    def write_view(self, path: Optional[Path] = None, *, where: Optional[str] = None, keep: Any = None) -> View:
        """Writes the view of an expression, or of a mask (see Source), to a file beside each dataset, and returns it.
        The file is then a path for a Loader. A file of this name is replaced. path: another file, for a single dataset."""
        if path is not None:
            self._only("path")
        return write_view(self, where, keep, None if path is None else os.fsdecode(encode_path(path)))

    # ---- Spans ----

    def spans(self, index: int) -> List[Span]:
        """The ids of document number `index` that have a role, such as those of prompts, whose labels never count."""
        shard, found, _ = self._find(index)
        n = ctypes.c_size_t(0)
        while True:
            spans = (_lib.Span * n.value)()
            status = lib.tokmap_dataset_get_spans(shard.handle.pointer, found.first_token, found.n_tokens, spans, n, ctypes.byref(n))
            if status:
                raise shard.index_error("its spans cannot be read", status)
            if n.value <= len(spans):
                return [Span(one.first_token - found.first_token, one.n_tokens, one.role) for one in spans]

    def labels(self, index: int, ignore_index: int = -100) -> Array:
        """The ids of a document as int64, with `ignore_index` in place of ids that are not trained on. These are the
        labels of transformers: each stands at the place of its own id."""
        labels = self[index].astype(np.int64)
        for span in self.spans(index):
            if span.role < FIRST_COUNTED_ROLE:
                labels[span.first:span.first + span.n] = ignore_index
        return labels

    # ---- Inputs ----

    def input(self, index: int) -> Input:
        """Input file number `index`, and what came from it."""
        shards, index = self._shards(), integer("index", index)
        if not 0 <= index < self.n_inputs:
            raise IndexError(f"input {index}: there are {self.n_inputs}")
        k = bisect.bisect_right(self._first_inputs, index) - 1
        found = shards[k].look_up(lib.tokmap_dataset_get_input, index - self._first_inputs[k], _lib.Input())
        return Input(os.fsdecode(ctypes.string_at(found.name, found.name_bytes)),
                     self._first_documents[k] + found.first_document, found.n_documents,
                     self._first_tokens[k] + found.first_token, found.n_tokens, found.input_bytes, found.input_checksum)

    @property
    def inputs(self) -> List[Input]:
        """All input files."""
        return [self.input(i) for i in range(self.n_inputs)]

    # ---- Segments ----

    @property
    def segments(self) -> List[Segment]:
        """The token files of joined datasets, in order. A dataset with one token file has none."""
        found = []
        for shard, before in zip(self._shards(), self._first_tokens):
            for i in range(shard.info.n_segments):
                one = shard.look_up(lib.tokmap_dataset_get_segment, i, _lib.Segment())
                path = os.path.join(os.path.dirname(shard.path), os.fsdecode(one.path))
                found.append(Segment(path, before + one.first_token, one.n_tokens, one.token_offset))
        return found

    # ---- Checks ----

    def verify(self, threads: int = 0, fraction: float = 1.0) -> None:
        """Reads and checks every byte, or this fraction of the blocks, and then the late columns, the views and the lanes beside
        each dataset. Raises DamagedError, or FileError if the system could not read; MismatchError for a late column or a
        view of other documents, or a lane of other tokens."""
        from .lanes import verify_lanes

        options = _lib.VerifyOptions(n_threads=number("threads", threads, 64), fraction=real("fraction", fraction))
        for shard in self._shards():
            call(lib.tokmap_dataset_verify, shard.handle.pointer, ctypes.byref(options), None)
            _meta.verify_beside(shard)
            verify_lanes(shard, options)


def _reopen(pickled: List[Tuple[Any, ...]], store: Any = None, had_credentials: bool = False, index: Optional[str] = None) -> Dataset:
    try:
        found = Dataset([path for path, *_ in pickled], store=store, index=index, mixed_tokenizers=True)
    except FileError as error:
        if not had_credentials:
            raise
        raise make_error(f"{error}. Its URL had user information or a query, which are not pickled: give a store by store=, which pickles "
                         "itself", error.status, getattr(error, "errno", 0) or 0, error.offset, error.reason, error.file) from None
    for shard, (path, dataset_id, spans_hash) in zip(found._shards(), pickled):
        if bytes(shard.info.dataset_id) != dataset_id or shard.info.spans_hash != spans_hash:
            raise MismatchError(f"{path}: has other data than when it was pickled", -7, file=path)
    return found


def open(path: Union[Path, Sequence[Path]], *, store: Any = None, index: Optional[Path] = None,
         mixed_tokenizers: bool = False) -> Dataset:
    """Opens a dataset: a path, a pattern such as "data/part-*", hf://datasets/OWNER/NAME/PATH in the Hub's
    cache, a URL, or a list of these. Reads no tokens: the time depends only on the number of files. store, index, mixed_tokenizers: as
    for Dataset."""
    return Dataset(path, store=store, index=index, mixed_tokenizers=mixed_tokenizers)

# SPDX-License-Identifier: Apache-2.0
"""Text to token ids and back: the C library libtokmap_tokenizer through ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Literal, Optional, Sequence, Tuple, Union, overload

import numpy as np
from numpy.typing import NDArray

from .._c import arguments
from .._c import find as _native
from .._c.arguments import integer, number
from .._c.errors import Handle, call
from .._c.structs import NO_ID, ErrorDetail, Sized
from .dataset import Path, encode_path

Text = Union[str, bytes]
_SPECIALS = ("text", "match", "error", "drop")


class TokenizerOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("pattern", c_char_p), ("specials_file", c_char_p)]


class TokenText(ctypes.Structure):
    _fields_ = [("bytes", c_void_p), ("n_bytes", c_size_t)]


class EncodeOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("texts", c_void_p), ("n_texts", c_uint64), ("text_stride", c_uint32),
                ("n_threads", c_uint32), ("specials", c_int), ("token_offsets", c_int32)]


class Encoding(Sized):
    _fields_ = [("struct_size", c_size_t), ("ids", c_void_p), ("n_ids", c_uint64), ("offsets", c_void_p),
                ("token_offsets", c_void_p)]


class TokenizerInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("vocab_size", c_uint64), ("eod_id", c_uint32), ("bos_id", c_uint32),
                ("eod_is_guess", c_int32), ("takes_bytes", c_int32), ("decodes", c_int32), ("family", c_char_p),
                ("unicode", c_char_p), ("eod_reason", c_char_p), ("bos_reason", c_char_p)]


# name: (result, arguments)
TOKENIZER_SIGNATURES: Dict[str, Tuple[Any, List[Any]]] = {
    "tokmap_tokenizer_version": (c_char_p, []),
    "tokmap_tokenizer_open": (c_int, [POINTER(c_void_p), c_char_p, POINTER(TokenizerOptions), POINTER(ErrorDetail)]),
    "tokmap_tokenizer_close": (None, [c_void_p]),
    "tokmap_tokenizer_encode": (c_int, [c_void_p, POINTER(EncodeOptions), POINTER(Encoding), POINTER(ErrorDetail)]),
    "tokmap_tokenizer_decode": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(TokenText), POINTER(ErrorDetail)]),
    "tokmap_memory_free": (None, [c_void_p]),
    "tokmap_tokenizer_token": (c_int, [c_void_p, c_uint32, POINTER(TokenText)]),
    "tokmap_tokenizer_find": (c_uint32, [c_void_p, c_char_p, c_size_t]),
    "tokmap_tokenizer_get_info": (c_int, [c_void_p, POINTER(TokenizerInfo)]),
}


@functools.lru_cache(maxsize=None)
def _library() -> Any:
    """Loaded for the first tokenizer: who only reads tokens does not need it."""
    return _native.load("libtokmap_tokenizer.so", TOKENIZER_SIGNATURES)


class _Memory:
    """An array that the library has allocated, freed when nothing refers to it any longer."""

    def __init__(self, address: int, shape: Tuple[int, ...], kind: str) -> None:
        self._free = _library().tokmap_memory_free
        self._address = address
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": kind, "version": 3}

    def __del__(self) -> None:
        self._free(self._address)


def _array(address: int, shape: Tuple[int, ...], kind: str) -> NDArray[Any]:
    return np.asarray(_Memory(address, shape, kind))


def _data_offset(probe: Text, empty: Text) -> Optional[int]:
    """Where CPython keeps the content of bytes, or of a str of ASCII, counted from the address of the object;
    None: not there. The empty one ends with a NUL, which the others have behind their content."""
    offset = sys.getsizeof(empty) - 1
    if sys.implementation.name == "cpython" and ctypes.string_at(id(probe) + offset, 10) == b"0123456789":
        return offset
    return None


_BYTES_OFFSET, _ASCII_OFFSET = _data_offset(b"0123456789", b""), _data_offset("0123456789", "")
_Table = NDArray[np.uint64]  # the address and the length of each text


def _table_of_list(texts: Sequence[Text]) -> Tuple[_Table, Any]:
    """The table, and what it points into."""
    data: List[Any] = list(texts)  # a copy: another thread may change the caller's while the call runs
    kinds = set(map(type, data))
    offset = _BYTES_OFFSET
    if kinds == {str} and _ASCII_OFFSET is not None and all(map(str.isascii, data)):
        offset = _ASCII_OFFSET
    elif kinds == {str}:
        data = list(map(str.encode, data))
    elif kinds != {bytes}:
        data = [_to_bytes(text) for text in data]
    table = np.empty((len(data), 2), np.uint64)
    table[:, 1] = lengths = np.fromiter(map(len, data), np.int64, len(data))
    if offset is not None:
        table[:, 0] = np.fromiter(map(id, data), np.uint64, len(data)) + np.uint64(offset)
        return table, data
    joined = np.frombuffer(b"".join([*data, b"\0"]), np.uint8)
    table[:, 0] = joined.ctypes.data + np.cumsum(lengths) - lengths
    return table, joined


def _table_of_buffer(buffer: Any, offsets: Any) -> Tuple[_Table, Any]:
    data = np.frombuffer(buffer, np.uint8) if memoryview(buffer).nbytes else np.empty(0, np.uint8)
    ends = np.asarray(offsets)
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or len(ends) == 0:
        raise ValueError("offsets: must be a one-dimensional array of integers, one more than there are texts")
    ends = ends.astype(np.int64, copy=False)
    if ends[0] < 0 or ends[-1] > len(data) or bool((ends[1:] < ends[:-1]).any()):
        raise ValueError(f"offsets: must not fall, and must be from 0 to the {len(data)} bytes of the buffer")
    table = np.empty((len(ends) - 1, 2), np.uint64)
    table[:, 0] = data.ctypes.data + ends[:-1]
    table[:, 1] = ends[1:] - ends[:-1]
    return table, data


def _to_bytes(text: Any) -> bytes:
    if isinstance(text, str):
        return text.encode()
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"a text must be str or bytes, not {type(text).__name__}")


def _to_ids(ids: Any) -> NDArray[np.uint32]:
    array = np.asarray(ids)
    if array.size == 0:
        return np.empty(0, np.uint32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError("ids: must be a sequence or a one-dimensional array of integers")
    if array.dtype != np.uint32 and (array.min() < 0 or array.max() > NO_ID):
        raise ValueError("ids: must be 0 to 2^32 - 1")
    return np.ascontiguousarray(array, np.uint32)


def _id_or_none(number: int) -> Optional[int]:
    return None if number == NO_ID else number


def _text_or_none(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode(errors="replace")


def _fact(name: str, convert: Callable[[Any], Any], text: str) -> Any:
    return property(lambda tokenizer: convert(getattr(tokenizer._info, name)), doc=text)


class Tokenizer:
    """A tokenizer file: tokenizer.json, vocab.json (with merges.txt beside it), .tiktoken, tokenizer.model or
    tekken.json, or the folder that has it; or "bytes", where each byte is its own id and 256 ends a document.

        tokenizer = tokmap.Tokenizer("tokenizer.json")
        tokenizer.encode("Hello")                           # a NumPy array of uint32
        ids, offsets = tokenizer.encode_batch(texts)        # of all texts, with all processors
        tokenizer.decode(ids[offsets[3]:offsets[4]])        # text number 3

    The ids equal the ids of the reference implementation (tokenizers, tiktoken, sentencepiece), and the ids that
    `tokmap pack` writes. A file whose ids might differ is refused. No token is added before or after a
    text. Any number of threads may use one tokenizer, and so may forked processes; calls release the GIL. It is
    pickled by its path.

    pattern          for files that contain only ranks, such as .tiktoken: "cl100k", "o200k", ... as in
                     `tokmap pack --help`; or a regular expression, as tiktoken takes it
    specials_file    a JSON file with more special tokens: {"CONTENT": ID}"""

    def __init__(self, file: Path, *, pattern: Optional[str] = None, specials_file: Optional[Path] = None) -> None:
        self._file, self._pattern = arguments.path("file", file), pattern
        # Absolute, because the process may change its folder before the tokenizer is pickled.
        self._full_paths = [path if path is None or path == "bytes" else os.path.abspath(path) for path in (
            self._file, None if specials_file is None else arguments.path("specials_file", specials_file))]
        options = TokenizerOptions(pattern=None if pattern is None else arguments.text("pattern", pattern, "a string"),
                                   specials_file=None if specials_file is None else encode_path(specials_file, "specials_file"))
        self._handle = Handle(_library().tokmap_tokenizer_close)
        call(_library().tokmap_tokenizer_open, byref(self._handle.pointer), encode_path(file, "file"), byref(options))
        self._info = TokenizerInfo()  # its texts belong to the handle
        _library().tokmap_tokenizer_get_info(self._handle.pointer, byref(self._info))

    vocab_size: int = _fact("vocab_size", int, "The largest id + 1, including added tokens.")
    eod_id: Optional[int] = _fact("eod_id", _id_or_none, "The id that ends a document, as `tokmap pack` chooses it. None: "
                                  "`eod_reason` says why.")
    eod_reason: Optional[str] = _fact("eod_reason", _text_or_none, "Why `eod_id` is None, with the candidates if there are "
                                      "several.")
    eod_is_guess: bool = _fact("eod_is_guess", bool, "Whether no file says which token ends a document, and `eod_id` is a "
                               "special token with a usual name.")
    bos_id: Optional[int] = _fact("bos_id", _id_or_none, "The id that begins a document, or None. `tokmap pack` writes it "
                                  "only with --bos.")
    family: str = _fact("family", lambda text: _text_or_none(text) or "", 'The kind of tokenizer, such as "byte-level BPE".')
    unicode_version: Optional[str] = _fact("unicode", _text_or_none, "The version of the Unicode tables that take part, or "
                                           "None.")
    takes_bytes: bool = _fact("takes_bytes", bool, "Whether texts may be bytes that are not UTF-8.")

    def __repr__(self) -> str:
        eod = "no eod" if self.eod_id is None else f"eod {self.eod_id}"
        return f"<tokmap.Tokenizer {self._file!r}: {self.family}, {self.vocab_size} ids, {eod}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        file, specials_file = self._full_paths
        return _open_again, (file, self._pattern, specials_file)

    def _encode(self, texts: int, n_texts: int, specials: str, threads: int, token_offsets: bool) -> Encoding:
        """Of a table of texts at this address."""
        if specials not in _SPECIALS:
            raise ValueError(f"specials: {specials!r} is not one of {', '.join(_SPECIALS)}")
        threads = number("threads", threads, 1024)
        handle = self._handle  # the handle stays while the call runs
        options = EncodeOptions(texts=texts, n_texts=n_texts, text_stride=16, n_threads=threads,
                                specials=_SPECIALS.index(specials), token_offsets=bool(token_offsets))
        out = Encoding()
        call(_library().tokmap_tokenizer_encode, handle.pointer, byref(options), byref(out))
        return out

    @overload
    def encode(self, text: Text, *, specials: str = "text", offsets: Literal[False] = False) -> NDArray[np.uint32]: ...

    @overload
    def encode(self, text: Text, *, specials: str = "text",
               offsets: Literal[True]) -> Tuple[NDArray[np.uint32], NDArray[np.int64]]: ...

    def encode(self, text: Text, *, specials: str = "text",
               offsets: bool = False) -> Union[NDArray[np.uint32], Tuple[NDArray[np.uint32], NDArray[np.int64]]]:
        """The ids of a text, which is str or UTF-8.

        specials    what to do with special tokens that are written in the text: "text" treats them as plain
                    text, "match" replaces them with their ids, "error" raises MismatchError, "drop" leaves
                    them out
        offsets     True: returns (ids, offsets). offsets is an array of shape (n, 2): for each id the first byte of
                    its part of the UTF-8, and the byte after the last. The parts are in order and do not overlap.
                    If an id stands for no byte, such as a blank that is put before the text, both numbers are the
                    same. UnsupportedError: there are no offsets for this tokenizer, or for this text, because the
                    tokens do not spell the text, as with lower case"""
        if type(text) is str and _ASCII_OFFSET is not None and text.isascii():
            data: Any = text
            one = TokenText(id(data) + _ASCII_OFFSET, len(data))
        elif _BYTES_OFFSET is not None:
            data = _to_bytes(text)
            one = TokenText(id(data) + _BYTES_OFFSET, len(data))
        else:
            data = np.frombuffer(_to_bytes(text) + b"\0", np.uint8)
            one = TokenText(data.ctypes.data, len(data) - 1)
        out = self._encode(ctypes.addressof(one), 1, specials, 1, offsets)
        del data  # until here the address is valid
        _library().tokmap_memory_free(out.offsets)
        ids = _array(out.ids, (out.n_ids,), "=u4")
        return (ids, _array(out.token_offsets, (out.n_ids, 2), "=i8")) if offsets else ids

    @overload
    def encode_batch(self, texts: Any, *, offsets: Any = None, specials: str = "text", threads: int = 0,
                     token_offsets: Literal[False] = False) -> Tuple[NDArray[np.uint32], NDArray[np.int64]]: ...

    @overload
    def encode_batch(self, texts: Any, *, offsets: Any = None, specials: str = "text", threads: int = 0,
                     token_offsets: Literal[True]
                     ) -> Tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]: ...

    def encode_batch(self, texts: Any, *, offsets: Any = None, specials: str = "text", threads: int = 0,
                     token_offsets: bool = False
                     ) -> Union[Tuple[NDArray[np.uint32], NDArray[np.int64]],
                                Tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]]:
        """The ids of many texts, one after another, and n + 1 offsets: the ids of text i are
        ids[offsets[i]:offsets[i + 1]]. A part of the time is spent on turning str into UTF-8: bytes are
        faster, and one buffer is fastest.

        texts            an iterable of str or bytes
        offsets          if given, `texts` is one buffer of UTF-8 (bytes, a NumPy array, a memoryview), and text i
                         is from offsets[i] to offsets[i + 1], as in Arrow's arrays of strings
        specials         as in `encode`
        threads          the largest number of threads; 0: one for each processor of the process
        token_offsets    True: returns (ids, offsets, token_offsets). token_offsets are the offsets of `encode`, for
                         all ids, counted from the beginning of the text of each id"""
        if isinstance(texts, (str, bytes)) and offsets is None:
            raise TypeError("texts: is one text; encode() takes one, encode_batch() a list")
        if offsets is None:
            table, keep = _table_of_list(texts if isinstance(texts, (list, tuple)) else list(texts))
        else:
            table, keep = _table_of_buffer(texts, offsets)
        out = self._encode(table.ctypes.data, len(table), specials, threads, token_offsets)
        del keep  # until here the addresses are valid
        encoded = _array(out.ids, (out.n_ids,), "=u4"), _array(out.offsets, (len(table) + 1,), "=i8")
        return (*encoded, _array(out.token_offsets, (out.n_ids, 2), "=i8")) if token_offsets else encoded

    def decode_bytes(self, ids: Any) -> bytes:
        """The text of the ids as UTF-8. It is not valid if the ids do not begin and end with whole characters.
        Special tokens become their content."""
        array = _to_ids(ids)
        handle, out = self._handle, TokenText()
        call(_library().tokmap_tokenizer_decode, handle.pointer, array.ctypes.data, len(array), byref(out))
        try:
            return ctypes.string_at(out.bytes, out.n_bytes)
        finally:
            _library().tokmap_memory_free(out.bytes)

    def decode(self, ids: Any, *, errors: str = "replace") -> str:
        """The text of the ids. Special tokens become their content.

        errors    what to do with bytes that are not whole characters, as in bytes.decode; by default they
                  become U+FFFD"""
        return self.decode_bytes(ids).decode(errors=errors)

    def token(self, id: int) -> bytes:
        """The bytes of one token, as the vocabulary has them. IndexError: there is no such id."""
        out, id = TokenText(), integer("id", id)
        if not 0 <= id < NO_ID or _library().tokmap_tokenizer_token(self._handle.pointer, id, byref(out)):
            raise IndexError(f"there is no token with the id {id}")
        return ctypes.string_at(out.bytes, out.n_bytes)

    def find(self, token: Text) -> Optional[int]:
        """The id of the token with this content, special tokens first; None: there is none."""
        data = _to_bytes(token)
        return _id_or_none(_library().tokmap_tokenizer_find(self._handle.pointer, data, len(data)))


def _open_again(file: Path, pattern: Optional[str], specials_file: Optional[Path]) -> Tokenizer:
    return Tokenizer(file, pattern=pattern, specials_file=specials_file)

# SPDX-License-Identifier: Apache-2.0
"""What the tests of stores share: calls of the functions that the C library is given, and stores of objects in memory."""

import ctypes
import os
import traceback

import package  # noqa: F401: finds tokmap

from tokmap._c import structs as _lib
from tokmap._data.byte_source import StoreSource


class Reply:
    """What a call of `read` has said. parts: (bytes, version, size of the object) of each range."""

    def __init__(self, status, detail, parts):
        self.status, self.parts = status, parts
        self.text, self.errno = detail.text.decode(), detail.sys_errno
        self.file, self.offset = detail.text[:detail.file_bytes].decode(), detail.file_offset


def open_source(path, store=None, seconds=60):
    return StoreSource(path, store, seconds)


def structs_of(ranges, version=""):
    """(the structs of ranges (name, offset, n_bytes), what they point to)"""
    structs, kept = (_lib.ByteRead * len(ranges))(), []
    for one, (name, offset, n_bytes) in zip(structs, ranges):
        kept.append((ctypes.create_string_buffer(version.encode(), 128), ctypes.create_string_buffer(max(n_bytes, 1))))
        one.name, one.offset, one.n_bytes = name.encode(), offset, n_bytes
        one.version, one.dst = (ctypes.addressof(buffer) for buffer in kept[-1])
    return structs, kept


def read(source, *ranges, version="", structs=None):
    """As the library calls it."""
    structs, kept = structs_of(ranges, version) if structs is None else structs
    detail = _lib.ErrorDetail()
    status = source.struct.read(source.struct.context, ctypes.addressof(structs), len(structs), ctypes.addressof(detail))
    return Reply(status, detail, [(data.raw[:one.n_read], found.value.decode(), one.object_bytes)
                                  for one, (found, data) in zip(structs, kept)])


def run_in_child(function):
    """Calls it in a child of fork, which has not read from a store yet."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


class Memory:
    """A function with a size, over objects in memory. spoil: a function (number of the call, name, offset, length, data) that
    returns other data, or raises."""

    def __init__(self, objects, spoil=None):
        self.objects, self.spoil, self.calls = objects, spoil, []

    def __call__(self, name, offset, length):
        self.calls.append((name, offset, length))
        data = self.object(name)[offset:offset + length]
        return data if self.spoil is None else self.spoil(len(self.calls), name, offset, length, data)

    def object(self, name):
        if name not in self.objects:
            raise FileNotFoundError(name)
        return self.objects[name]

    def size(self, name):
        return len(self.object(name))


class Answer:
    """As obstore's GetResult."""

    def __init__(self, data, found, size, etag):
        self.data, self.range, self.meta = data, found, {"size": size, "e_tag": etag}

    async def bytes_async(self):
        return self.data


class Versions:
    """An object with the face of a store of obstore. spoil: a function (number of the call, Answer) that changes an answer, or
    raises."""

    def __init__(self, objects, spoil=None, etag='"1"'):
        self.objects, self.spoil, self.etag, self.calls = objects, spoil, etag, []

    async def get_async(self, path, options):
        self.calls.append((path, dict(options)))
        data = self.objects[path]
        first, end = options.get("range", (0, 0))
        end = min(end, len(data))
        answer = Answer(data[first:end], (first, end), len(data), self.etag)
        if self.spoil is not None:
            self.spoil(len(self.calls), answer)
        return answer

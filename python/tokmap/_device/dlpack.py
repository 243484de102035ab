# SPDX-License-Identifier: Apache-2.0
"""DLPack, the protocol for passing arrays between libraries: puts tensors of the C library into capsules,
and takes the capsules of other libraries."""

import ctypes
from typing import Any, List
from ctypes import c_char_p, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p

from .._c.references import count_alone, count_references

HOST, CUDA = 1, 2  # kinds of devices
SIGNED = 0  # a kind of numbers: signed integers


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("n_dimensions", c_int32), ("type_code", c_uint8), ("type_bits", c_uint8),
                ("type_lanes", c_uint16), ("shape", ctypes.POINTER(c_int64)),
                ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64),
                ("context", c_void_p), ("deleter", c_void_p)]


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
NAME, _USED = b"dltensor", b"used_dltensor"

_python = ctypes.PyDLL(None)  # not ctypes.pythonapi, which all modules share, with its declarations
new_capsule = _python.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [c_void_p, c_char_p, c_void_p]
_is_capsule = _python.PyCapsule_IsValid
_is_capsule.restype, _is_capsule.argtypes = c_int, [ctypes.py_object, c_char_p]
_tensor_of = _python.PyCapsule_GetPointer
_tensor_of.restype, _tensor_of.argtypes = c_void_p, [ctypes.py_object, c_char_p]
_rename = _python.PyCapsule_SetName
_rename.restype, _rename.argtypes = c_int, [ctypes.py_object, c_char_p]


def take(capsule: Any) -> Tensor:
    """Consumes a capsule. The caller has to delete the tensor."""
    address = _tensor_of(capsule, NAME)
    _rename(capsule, _USED)
    return Tensor.from_address(address)


def delete(tensor: Tensor) -> None:
    if tensor.deleter:
        _Deleter(tensor.deleter)(ctypes.addressof(tensor))


# If a capsule is never consumed, its tensor must still be deleted. A destructor of the capsule would be
# Python code that could run at any time, such as during an exception or while the interpreter ends. So
# the code that makes capsules keeps them, and sweep() deletes those that nothing else refers to.
def sweep(capsules: List[Any]) -> List[Any]:
    """Deletes the tensors that will never be consumed; returns the capsules that still may be."""
    left = []
    for i in range(len(capsules)):
        if not _is_capsule(capsules[i], NAME):
            continue
        if count_references(capsules[i]) == count_alone():
            delete(take(capsules[i]))
        else:
            left.append(capsules[i])
    return left


orphans: List[Any] = []  # capsules of deleted batches; any thread may add some


def sweep_orphans() -> None:
    for _ in range(len(orphans)):
        try:
            orphans.extend(sweep([orphans.pop(0)]))
        except IndexError:  # another thread is sweeping too
            break

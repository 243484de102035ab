# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: the package of this checkout with the library of the build, or a skip."""

import ctypes
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
os.environ["TOKMAP_LIBRARY"] = str(BUILD / "libtokmap.so")
sys.path.insert(0, str(ROOT / "python"))


def _skip(why):
    print(f"skip {pathlib.Path(sys.argv[0]).stem}: {why}")
    sys.exit(77)


if os.environ.get("TOKMAP_SANITIZED"):
    _skip("a sanitized library cannot be loaded into Python")
try:
    import numpy  # noqa: F401
except ImportError:
    _skip("there is no NumPy for this Python")


COMPILER = os.environ.get("CC", "cc").split()


def check_structs(folder, headers, structs):
    """The sizes and offsets of [(struct of ctypes, its name in C), ...] are those of a C program that includes the
    headers; for another processor, an EMULATOR runs it."""
    numbers, expected = [], []
    for struct, name in structs:
        numbers += [f"sizeof({name})"] + [f"__builtin_offsetof({name}, {field})" for field, _ in struct._fields_]
        expected += [ctypes.sizeof(struct)] + [getattr(struct, field).offset for field, _ in struct._fields_]
    includes = "".join(f'#include "{header}"\n' for header in ("stdio.h", *headers))
    prints = "".join(f'printf("%zu\\n", {number});\n' for number in numbers)
    (folder / "numbers.c").write_text(f"{includes}int main(void) {{\n{prints}return 0; }}\n")
    subprocess.run([*COMPILER, "-I", ROOT / "include", folder / "numbers.c", "-o", folder / "numbers"], check=True)
    output = subprocess.run([*os.environ.get("EMULATOR", "").split(), folder / "numbers"], check=True,
                            capture_output=True, text=True).stdout
    assert [int(line) for line in output.split()] == expected


def raises(kind, function, *arguments, **named):
    """The exception that the call raises, which is of this kind."""
    try:
        function(*arguments, **named)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def outputs_of(rows, length, pad_id=0, ignore_index=-100, mask_labels=True, by_row=False):
    """What a batch has, put together from its rows; cu_seqlens without its end. And the longest document."""
    said = {name: [] for name in ("inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens")}
    longest = 0
    for r, row in enumerate(rows):
        tokens, n = list(row.tokens), len(row.tokens) - 1
        lacks = length - n
        said["inputs"] += tokens[:-1] + [pad_id] * lacks
        said["labels"] += [t if counts or not mask_labels else ignore_index
                           for t, counts in zip(tokens[1:], row.loss_mask)] + [ignore_index] * lacks
        said["position_ids"] += [*range(n), *[0] * lacks] if by_row else list(row.position_ids)
        said["document_ids"] += list(row.document_ids)
        said["loss_mask"] += list(row.loss_mask)
        said["cu_seqlens"] += [r * length + b for b in list(row.cu_seqlens)[:-1] + ([n] if lacks else [])]
        longest = max(longest, row.longest_document, lacks)
    return said, longest

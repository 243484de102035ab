# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries and programs that belong to this package: those of the wheel, or of the checkout."""

import ctypes
import os
import sys
from typing import Any, Dict, List, Optional, Tuple

# Without pathlib, whose import takes longer than all of this package.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_VERSION_FILE = os.path.join(_PACKAGE, "version.txt")  # only in a wheel
_CHECKOUT = None if os.path.exists(_VERSION_FILE) else os.path.dirname(os.path.dirname(_PACKAGE))


def _version() -> str:
    with open(os.path.join(_CHECKOUT, "include/tokmap.h") if _CHECKOUT else _VERSION_FILE) as file:
        text = file.read()
    return text.split('TOKMAP_VERSION_TEXT "')[1].split('"')[0] if _CHECKOUT else text.strip()


VERSION = _version()
ABI = "0"  # the number in the libraries' SONAMEs, as in the Makefile
_ADVICE = "run `make`" if _CHECKOUT else "install the package again"


def _candidates(name: str) -> List[str]:
    """Places of a library or program, best first: beside the library of TOKMAP_LIBRARY, so that all are of one
    build; in the package; as `make` builds it in a checkout."""
    chosen = os.environ.get("TOKMAP_LIBRARY")
    beside = [os.path.join(os.path.dirname(chosen), name)] if chosen else []
    return [*beside, os.path.join(_PACKAGE, name), *([os.path.join(_CHECKOUT, "build", name)] if _CHECKOUT else [])]


def _find_library(file_name: str) -> Tuple[str, Optional[str]]:
    """(the library to load, what chose it)"""
    chosen = os.environ.get("TOKMAP_LIBRARY")
    if chosen and file_name == "libtokmap.so":
        return chosen, "TOKMAP_LIBRARY"
    for path in _candidates(file_name):
        if os.path.exists(path):
            return path, None
    return f"{file_name}.{ABI}", "the system's libraries"


def load(file_name: str, signatures: Dict[str, Tuple[Any, List[Any]]]) -> Any:
    """Loads libtokmap.so or libtokmap_tokenizer.so: from TOKMAP_LIBRARY, or the folder of that file; from
    the package; as built in the checkout; as installed in the system. Raises ImportError if it cannot be
    loaded or is of another version than the package. signatures: of each function its result and its arguments."""
    path, chosen_by = _find_library(file_name)
    where = f"{path} ({chosen_by})" if chosen_by else path
    advice = "set it to the path of libtokmap.so, or unset it" if chosen_by == "TOKMAP_LIBRARY" else _ADVICE
    try:
        library = ctypes.CDLL(path)
        version = getattr(library, file_name[3:-3] + "_version")
    except (OSError, AttributeError) as error:
        raise ImportError(f"tokmap {VERSION}: cannot load {where}: {error}. To repair it, {advice}",
                          path=path) from None
    version.restype, version.argtypes = ctypes.c_char_p, []
    found = version().decode(errors="replace")
    if found != VERSION:
        raise ImportError(f"tokmap {VERSION}: {where} is of version {found}. To repair it, {advice}", path=path)
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def find_program(name: str) -> str:
    """The path of the program `tokmap` or `tokbench`. Raises FileNotFoundError."""
    import sysconfig  # only to run programs

    site = os.path.dirname(_PACKAGE)
    folders = [os.path.join(site, "bin")]  # of a --target folder; the next: PREFIX/lib/pythonX.Y/site-packages
    if os.path.basename(site) in ("site-packages", "dist-packages"):
        folders.append(os.path.normpath(os.path.join(site, "../../../bin")))
    folders += [sysconfig.get_path("scripts"), os.path.join(sys.prefix, "bin"),
                sysconfig.get_path("scripts", os.name + "_user")]
    paths = [*_candidates(name), *(os.path.join(folder, name) for folder in folders)]
    for path in paths:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f"the program {name} is missing: it is none of "
                            f"{', '.join(dict.fromkeys(paths))}. To repair it, {_ADVICE}")

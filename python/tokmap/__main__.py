# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap ARGUMENT...: the command `tokmap`, and `import`, `render`, `preprocess`, `trace` and `report`, which are written in Python."""

import importlib
import os
import sys

from ._c import find as _native

_MODULES = {"import": "_tools.importers", "render": "_tools.render", "preprocess": "_tools.preprocess",
            "trace": "_tools.answers", "report": "_tools.answers"}


def main() -> None:
    command = "".join(sys.argv[1:2])
    if command in _MODULES:
        module = importlib.import_module(f".{_MODULES[command]}", __package__)
        return module.main(sys.argv[1 if command in ("trace", "report") else 2:])  # type: ignore[no-any-return]
    try:
        program = _native.find_program("tokmap")
    except FileNotFoundError as error:
        sys.exit(f"tokmap: {error}")
    os.execv(program, ["tokmap", *sys.argv[1:]])


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)

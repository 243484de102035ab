# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap ARGUMENT...: the command `tokmap`, and `import`, `render`, `preprocess`, `trace` and `report`, which are written in Python."""

import os
import sys

from . import _native


def main() -> None:
    if sys.argv[1:2] == ["import"]:
        from ._importers import main as import_files

        return import_files(sys.argv[2:])
    if sys.argv[1:2] == ["render"]:
        from ._render import main as render

        return render(sys.argv[2:])
    if sys.argv[1:2] == ["preprocess"]:
        from ._preprocess import main as preprocess

        return preprocess(sys.argv[2:])
    if sys.argv[1:2] in (["trace"], ["report"]):
        from ._answers import main as answer

        return answer(sys.argv[1:])
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

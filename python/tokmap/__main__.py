"""python -m tokmap ARGUMENT...: the command `tokmap`."""

import os
import sys

from . import _native


def main() -> None:
    # Subcommands that are written in Python belong here, before the program.
    try:
        program = _native.find_program("tokmap")
    except FileNotFoundError as error:
        sys.exit(f"tokmap: {error}")
    os.execv(program, ["tokmap", *sys.argv[1:]])


if __name__ == "__main__":
    main()

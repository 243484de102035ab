# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap COMMAND ARGUMENT...: a command of the program `tokmap`. The commands in Python run here."""

import importlib
import os
import sys
from typing import List

from ._c import find as _native

# The module in _tools, and the function.
_COMMANDS = {"import": ("importers", "main"), "preprocess": ("preprocess", "main"), "render": ("render", "main"),
             "report": ("answers", "report"), "trace": ("answers", "trace")}
_FOR_PROGRAM = {**_COMMANDS, "hub": ("hub", "main")}


def run_command(command: str, arguments: List[str]) -> None:
    module, function = _FOR_PROGRAM[command]
    getattr(importlib.import_module(f"._tools.{module}", __package__), function)(arguments)


def run_for_program() -> None:
    """Runs tokmap-python VERSION PROGRAM COMMAND ARGUMENT..., which the program has executed. Never executes the
    program in turn, which could go on for ever."""
    if len(sys.argv) < 4:
        sys.exit("tokmap-python: the program tokmap executes this script; run tokmap, or the Python of this environment")
    (version, program, command, *arguments), package = sys.argv[1:], os.path.dirname(__file__)
    if version != _native.VERSION:
        print(f"tokmap {command}: {program} is of version {version}, but the Python package {package} "
              f"is of version {_native.VERSION}: install both from one version", file=sys.stderr)
        sys.exit(2)
    if command not in _FOR_PROGRAM:
        print(f"tokmap: the Python package has no command '{command}'", file=sys.stderr)
        sys.exit(2)
    run_command(command, arguments)


def main() -> None:
    if "".join(sys.argv[1:2]) in _COMMANDS:
        return run_command(sys.argv[1], sys.argv[2:])
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

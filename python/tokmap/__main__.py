# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap COMMAND ARGUMENT...: executes the program `tokmap`, which executes this package for some commands."""

import importlib
import os
import sys
from typing import List

from ._c import find as _native

# The module in _tools, and the function.
_COMMANDS = {"compare": ("compare", "main"), "hub": ("hub", "main"), "import": ("importers", "main"), "loader": ("loader", "main"), "preprocess": ("preprocess", "main"),
             "render": ("render", "main"), "try": ("try_out", "main"), "report": ("answers", "report"), "trace": ("answers", "trace")}


def run_command(command: str, arguments: List[str]) -> None:
    module, function = _COMMANDS[command]
    getattr(importlib.import_module(f"._tools.{module}", __package__), function)(arguments)


def run_for_program() -> None:
    """Runs tokmap-python VERSION PROGRAM COMMAND ARGUMENT..., which the program has executed. Never executes the
    program in turn, which could go on for ever."""
    if len(sys.argv) < 5:
        sys.exit("tokmap-python: the program tokmap executes this script; run tokmap, or the Python of this environment")
    (version, program, command, *arguments), package = sys.argv[1:], os.path.dirname(__file__)
    if version != _native.VERSION:
        print(f"{os.path.basename(program)} {command}: {program} is of version {version}, but the Python package {package} "
              f"is of version {_native.VERSION}: install both from one version", file=sys.stderr)
        sys.exit(2)
    if command not in _COMMANDS:
        print(f"tokmap: the Python package has no command '{command}'", file=sys.stderr)
        sys.exit(2)
    if os.path.basename(program) == "tokbench":
        importlib.import_module("._tools.terminal", __package__).speak_for("tokbench")
    run_command(command, arguments)


def main() -> None:
    try:
        program = _native.find_program("tokmap")
    except FileNotFoundError as error:
        sys.exit(f"tokmap: {error}")
    # The program may look for the interpreter of its script in PATH.
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    os.execv(program, ["tokmap", *sys.argv[1:]])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""mypy --strict of the whole package where the frameworks are installed, and what its drop-in modules are."""

import importlib
import inspect
import io
import subprocess
import sys
import tokenize

from frameworks import ROOT, need

if __name__ == "__main__":
    need("types", "mypy", "torch")
from ref_protocol import run_tests  # noqa: E402

MODULES = ("torch", "lightning", "huggingface", "megatron")


def code_lines(path):
    """Lines that are more than a comment or a docstring."""
    lines, text = set(), path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        if token.type not in layout and not token.string.startswith('"""'):
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def the_package_is_typed():
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "-p", "tokmap"], cwd=ROOT / "python",
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def each_module_is_short_and_documented():
    found = []
    for name in MODULES:
        path = ROOT / f"python/tokmap/{name}.py"
        module = importlib.import_module(f"tokmap.{name}")
        classes = [value for value in vars(module).values() if inspect.isclass(value)
                   and value.__module__ == module.__name__]
        members = [member for value in classes for key, member in vars(value).items()
                   if not key.startswith("_") and inspect.isfunction(member)]
        for value in [module, *classes, *members]:
            assert inspect.getdoc(value), value
        assert code_lines(path) <= 60, (path, code_lines(path))
        found.append(f"{name} {code_lines(path)}")
    return "lines of code: " + ", ".join(found)


if __name__ == "__main__":
    sys.exit(run_tests([("types_" + test.__name__, test) for test in
                        (the_package_is_typed, each_module_is_short_and_documented)]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/python.md is what the docstrings say, every public name has one, and the package is typed: mypy --strict
finds nothing in it, and finds the wrong lines in a user's program."""

import importlib.util
import inspect
import subprocess
import sys

from package import BUILD, ROOT
from ref_protocol import Skip, run_in_folders

import tokmap

USER = """
import tokmap

ds = tokmap.open("data/train")
first: int = ds[0].size + ds.n_tokens
loader = tokmap.Loader([("a", 0.5), ("b", 0.5)], 128, batch_rows=2, outputs=["inputs", "labels"])
for batch in loader:
    inputs, labels = batch
    state: bytes = batch.state
    loader.restore(state)
with tokmap.Writer("x", vocab_size=10) as w:
    w.document([1, 2], meta={"score": 0.5})
print(ds.meta("score").mean(), ds.meta()["score"].upper(), ds.document_meta(0).get("score"))
try:
    loader.load_state_dict({"state": "00"})
except tokmap.MismatchError as error:
    print(error.file, error.offset + 1)
"""
WRONG = """
import tokmap

tokmap.Loader("a", sequence_length="128")
tokmap.open(5)
tokmap.Loader("a", 128).restore("text")
n: str = tokmap.open("a").n_tokens
tokmap.Loader("a", 128, windows="bestfit")
tokmap.Loader("a", 128, shuffle="blocks", io="mmap")
"""


def mypy(*arguments):
    if importlib.util.find_spec("mypy") is None:
        raise Skip("there is no mypy for this Python")
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", BUILD / "mypy",
                           # Frameworks may be missing here. make test-frameworks checks with them.
                           "--ignore-missing-imports", "--allow-subclassing-any", *map(str, arguments)], capture_output=True, text=True, cwd=ROOT / "python").stdout


def is_typed(folder):
    assert (found := mypy("-p", "tokmap")) == "", found


def user_is_typed(folder):
    (folder / "user.py").write_text(USER)
    assert (found := mypy(folder / "user.py")) == "", found
    (folder / "wrong.py").write_text(WRONG)
    lines = mypy(folder / "wrong.py").splitlines()
    assert [line.split(":")[1] for line in lines if "error" in line] == ["4", "5", "6", "7", "8", "9", "9"], lines


def names_are_documented(folder):
    n = 0
    for name in tokmap.__all__:
        value = getattr(tokmap, name)
        members = vars(value).items() if inspect.isclass(value) and not issubclass(value, tuple) else ()
        public = [member for key, member in members if not key.startswith("_")
                  and (isinstance(member, property) or inspect.isfunction(member))]
        for one in [value, *public]:
            assert inspect.getdoc(one), f"{name}: {one} has no docstring"
            n += 1
    return f"{n} names"


def document_is_of_this_package(folder):
    if sys.version_info < (3, 10):
        raise Skip("the modules for torchtitan and OLMo-core need Python 3.10, as these do")
    made = subprocess.run([sys.executable, ROOT / "python/reference.py"], check=True, capture_output=True, text=True)
    assert made.stdout == (ROOT / "docs/python.md").read_text(), \
        "docs/python.md is out of date: python3 python/reference.py >docs/python.md"


sys.exit(run_in_folders("python_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/python.md is what the docstrings say, every public name has one, and the package is typed: mypy --strict
finds nothing in it, and finds the wrong lines in a user's program."""

import importlib.util
import inspect
import pydoc
import subprocess
import sys

from package import BUILD, ROOT, raises
from ref_protocol import Skip, run_in_folders

import tokmap

USER = """
import tokmap
import tokmap.typing

windows: tokmap.typing.Windows = "best_fit"
outputs: list[tokmap.typing.Output] = ["inputs", "labels"]
other = tokmap.Loader({"a": 1, "b": 0.5}, 64, windows=windows, outputs=outputs, order=tokmap.Order(skip=[(1, 2)]))
other.restore(bytearray(128))
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
"""
# What people write, and words of the message that says what was meant.
MISSPELT = (
    ('tokmap.Loader("a", 128, windws="best_fit")', "did you mean windows?"),
    ('tokmap.Loader("a", 128, windows="bestfit")', "'concat', 'within_document', 'best_fit'"),
    ('tokmap.Loader("a", 128, shuffle="blocks")', "'full', 'none', 'block'"),
    ('tokmap.Loader("a", 128, batchrows=4)', "did you mean batch_rows?"),
    ('tokmap.Loader("a", 128, align=8)', "it is rows=tokmap.Rows(align=...)"),
    ('tokmap.Loader("a", 128, ranks=2)', "must be a tokmap.Ranks"),
    ('tokmap.Loader("a", 128, rank=0, n_ranks=2)', "it is ranks=tokmap.Ranks(rank=...)"),
    ('tokmap.Loader("a", 128, lookahead=8)', "did you mean reading=tokmap.Reading(look_ahead=...)?"),
    ('tokmap.Loader("a", 128, rows={"align": 8})', "must be a tokmap.Rows"),
    ('tokmap.Loader("a", 128, outputs=["input"])', "'inputs', 'labels'"),
    ('tokmap.Loader("a", 128, outputs="inputs")', "must be a list"),
    ('tokmap.Loader("a", 128, dtype="int46")', "must be int32 or int64"),
    ('tokmap.Loader("a", 128, framework="pytorch")', "'numpy', 'torch'"),
    ('tokmap.Loader("a", 128)[0]', "for samples by number, tokmap.Samples"),
    ('tokmap.Loader("a", 128, slots=tokmap.Slots(n_slots=3))', "slots are for a Loader with a device"),
    ('tokmap.Reading(io="mmap")', "'auto', 'map', 'direct'"),
    ('tokmap.Rows(pad=0)', "did you mean rows=tokmap.Rows(pad_id=...)?"),
    ('tokmap.Rows(seed=1)', "it is seed, of the Loader itself"),
    ('tokmap.Order(drop_lst=False)', "did you mean order=tokmap.Order(drop_last=...)?"),
    ('tokmap.Loader("a", 128, batch_size=4)', "did you mean batch_rows?"),
    ('tokmap.Loader("a", 128, world_size=4)', "did you mean ranks=tokmap.Ranks(n_ranks=...)?"),
    ('tokmap.Loader("a", 128, order_of="00")', "it is order_of, of a tokmap.Source"),
    ('tokmap.Samples("a", 128, sead=None)', "did you mean seed?"),
    ('tokmap.Samples("a", 128, seed=None)', "seed is None"),
    ('tokmap.Order(skip=None)', "skip is None"),
    ('tokmap.Record(metrics_seconds=None)', "metrics_seconds is None"),
    ('tokmap.Samples("a", 128, io="copy")', "it is reading=tokmap.Reading(io=...)"),
)


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
    assert [line.split(":")[1] for line in lines if "error" in line] == ["4", "5", "6", "7"], lines


def misspelt_calls_are_found(folder):
    (folder / "misspelt.py").write_text("import tokmap\n" + "".join(f"{call}\n" for call, _ in MISSPELT))
    found = {line.split(":")[1] for line in mypy(folder / "misspelt.py").splitlines() if ": error:" in line}
    has_torch = importlib.util.find_spec("torch") is not None  # else torch.dtype may be anything
    missed = [call for n, (call, _) in enumerate(MISSPELT, 2) if str(n) not in found and (has_torch or "dtype" not in call)
              and "outputs=" not in call]  # which may be the names of lanes
    assert not missed, missed


def misspelt_calls_say_what_was_meant(folder):
    with tokmap.Writer(folder / "a", vocab_size=10) as w:
        w.document([1] * 500)
    for call, words in MISSPELT:
        error = raises((TypeError, ValueError), eval, call.replace('"a"', repr(str(folder / "a"))), globals())
        assert words in str(error), (call, error)


def names_are_documented(folder):
    n = 0
    for name in tokmap.__all__:
        value = getattr(tokmap, name)
        members = vars(value).items() if inspect.isclass(value) and not issubclass(value, tuple) else ()
        public = [member for key, member in members if not key.startswith("_")
                  and (isinstance(member, property) or inspect.isfunction(member))]
        for one in [value, *public]:
            assert inspect.getdoc(one), f"{name}: {one} has no docstring"
            assert "tokmap_" not in inspect.getdoc(one), f"{name}: {one} sends a reader to the interface of C"
            n += 1
        assert name in pydoc.render_doc(value), name
    assert "Loader" in pydoc.render_doc(tokmap)
    return f"{n} names"


def document_is_of_this_package(folder):
    if sys.version_info < (3, 10):
        raise Skip("the modules for torchtitan and OLMo-core need Python 3.10, as these do")
    made = subprocess.run([sys.executable, ROOT / "python/reference.py"], check=True, capture_output=True, text=True)
    assert made.stdout == (ROOT / "docs/python.md").read_text(), \
        "docs/python.md is out of date: python3 python/reference.py >docs/python.md"


sys.exit(run_in_folders("python_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""add_column takes each kind of column in kinds.py exactly, or refuses it with the name of the column and leaves nothing
behind. This runs with the pandas of `make test`, and once more with pandas 2."""

import functools
import os
import subprocess
import sys
import tempfile

from package import BUILD
from ref_protocol import Skip, expect, expect_equal, need, run_tests

import numpy as np
import tokmap
from kinds import KINDS  # imports numpy


def is_taken_or_refused(package, make, wanted):
    module = need(package)
    try:
        values = make(module)
    except (AttributeError, TypeError, ImportError, NotImplementedError) as error:  # an older version
        raise Skip(f"{package} {module.__version__} has no such column: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        with tokmap.Writer(os.path.join(folder, "p"), 10) as writer:
            for _ in range(4):
                writer.document([1])
        ds = tokmap.open(os.path.join(folder, "p"))
        try:
            ds.add_column("a_column", values)
        except (TypeError, ValueError, OverflowError) as error:
            expect(isinstance(wanted, type) and isinstance(error, wanted), f"{type(error).__name__}: {error}")
            expect("a_column" in str(error), f"the message does not name the column: {error}")
            expect("document" in str(error), f"the message does not name the document: {error}")
            expect_equal(sorted(os.listdir(folder)), ["p.bin", "p.tmi"], "files")
            return
        found = [ds.document_meta(i)["a_column"] for i in range(4)]
        array = [None if one is np.ma.masked else one for one in ds.meta("a_column").tolist()]
    expect_equal([(type(one), one) for one in found],
                 [(int if isinstance(one, bool) else type(one), one) for one in wanted]
                 if isinstance(wanted, list) else wanted, "values")
    expect_equal(array, found, "meta()")


def pandas_2():
    """The tests of pandas, with the pandas 2 that .ci/python installs."""
    folder = BUILD / "pandas2"
    if not folder.is_dir():
        raise Skip(f"there is no pandas 2 in {folder}")
    path = os.pathsep.join([str(folder), *sys.path])
    code = "import runpy, sys, pandas; assert pandas.__version__[:2] == '2.'; runpy.run_path(sys.argv[1], run_name='__main__')"
    run = subprocess.run([sys.executable, "-c", code, __file__], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": path, "ONLY": "pandas_"})
    failed = "".join(line + " " for line in run.stdout.splitlines() if line.startswith("FAIL"))
    expect(run.returncode == 0, failed + run.stderr)
    return f"{run.stdout.count('ok ')} kinds"


if __name__ == "__main__":
    tests = [(f"{package}_{name}", functools.partial(is_taken_or_refused, package, make, wanted))
             for package, name, make, wanted in KINDS]
    if os.environ.get("ONLY") != "pandas_":
        tests.append(("again_with_pandas_2", pandas_2))
    sys.exit(run_tests(tests))

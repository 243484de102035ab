#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The blocks of Python that tests/house/test_examples.py runs, here with the packages that `make test` may not have."""

import os
import pathlib
import sys

from frameworks import INSTALLED, ROOT, need

if __name__ == "__main__":
    need("examples", "torch")
if INSTALLED:
    os.environ["TOKMAP_BUILD"] = str(pathlib.Path(sys.executable).parent)  # the wheel has brought tokmap
sys.path.insert(0, str(ROOT / "tests/house"))
import test_examples  # noqa: E402
from ref_protocol import run_tests  # noqa: E402

if __name__ == "__main__":
    sys.exit(run_tests([(name, test) for name, language, test in test_examples.tests_of_blocks() if language == "python"]))

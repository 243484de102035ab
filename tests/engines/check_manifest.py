#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reader of manifests that test_indexed_job.py uses, beside PyYAML."""

import sys

from ref_protocol import expect_equal, need, run_tests
from test_indexed_job import MANIFEST, manifest


def another_reader_of_yaml_agrees():
    expect_equal(manifest(), need("yaml").safe_load(MANIFEST.read_text()), "manifest")


sys.exit(run_tests([("kubernetes: another_reader_of_yaml_agrees", another_reader_of_yaml_agrees)]))

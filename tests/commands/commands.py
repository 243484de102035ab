# SPDX-License-Identifier: Apache-2.0
"""Runs a command of tokmap."""

import subprocess

from ref_protocol import expect_equal, program


def tokmap(*arguments):
    """(exit status, stdout, stderr)"""
    done = subprocess.run([program("tokmap"), *map(str, arguments)], capture_output=True)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def said(*arguments):
    code, out, err = tokmap(*arguments)
    expect_equal((code, err), (0, ""), "tokmap %s" % (arguments,))
    return out

# SPDX-License-Identifier: Apache-2.0
"""Runs a command of tokmap."""


from ref_protocol import expect_equal, run_program


def tokmap(*arguments):
    """(exit status, stdout, stderr)"""
    done = run_program("tokmap", *arguments)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def said(*arguments):
    code, out, err = tokmap(*arguments)
    expect_equal((code, err), (0, ""), "tokmap %s" % (arguments,))
    return out

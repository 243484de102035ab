#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a process with a decimal comma (de_DE), or whose i is not that of English (tr_TR), numbers are read and written as
in the C locale: the tests of values, expressions, weights, ledgers, metrics and JSON pass there too. The scripts run in
the first locale, and with TOKMAP_LONG=all in both."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from ref_protocol import BUILD, Skip, expect, program, run_tests

TESTS = pathlib.Path(__file__).resolve().parents[1]
LOCALES = [("de_DE", "UTF-8"), ("tr_TR", "ISO-8859-9")]
# Each program calls setlocale. Of those that take long, the tests that have numbers with a fraction.
PROGRAMS = """test_real; test_json_reader; test_json_text; test_json_line; test_where; test_field_list; test_numbers
    test_model_files; test_amend a_change_from_the_position_on_is_accepted
    test_values what_was_written_is_read a_value_that_does_not_go_with_its_column_is_refused_by_name
    test_columns numbers_take_as_many_bytes_as_they_need expressions_keep_what_where_holds_keeps
    test_loader_refusals options_that_break_a_rule_are_refused""".replace("; ", "\n").splitlines()
# A script, and a part of the names of the tests that are run.
SCRIPTS = [("python/test_python_meta.py", ""), ("python/test_python_metrics.py", ""), ("commands/test_values.py", ""),
           ("python/test_python_ledger.py", "what_was_changed")]


@functools.lru_cache(None)
def made(language, charmap):
    """The environment of a process with this locale, in the build folder."""
    folder = pathlib.Path(BUILD or tempfile.mkdtemp()) / "locales"
    name = f"{language}.{charmap}"
    if not (folder / name).is_dir():
        if not shutil.which("localedef", path=os.environ["PATH"] + ":/usr/sbin"):
            raise Skip("there is no localedef")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as new:
            run = subprocess.run(["localedef", "-i", language, "-f", charmap, os.path.join(new, name)],
                                 capture_output=True, text=True)
            if not os.path.isdir(os.path.join(new, name)):
                raise Skip(f"localedef cannot make {name}: {run.stderr.strip()[-120:]}")
            os.rename(os.path.join(new, name), folder / name)
    return {**os.environ, "LC_ALL": name, "LOCPATH": str(folder), "PYTHONUTF8": "1",
            "PYTHONPATH": os.pathsep.join([str(TESTS / "support/locale"), os.environ.get("PYTHONPATH", "")])}


def passes(command, locale, **more):
    run = subprocess.run(command, env={**made(*locale), **more}, capture_output=True, text=True, errors="replace")
    failed = [line for line in run.stdout.splitlines() if line.startswith("FAIL")]
    if run.returncode == 77:
        raise Skip(run.stdout.strip()[-200:])
    expect(run.returncode == 0 and not failed, f"status {run.returncode}: {failed[:3]} {run.stderr[-300:]}")


def runs_program(locale, name, *tests):
    passes([program(name), *tests], locale)


def the_comma_is_there(locale):
    """Otherwise the other tests prove nothing."""
    code = "import locale; print(locale.localeconv()['decimal_point'])"
    run = subprocess.run([sys.executable, "-c", code], env=made(*locale), capture_output=True, text=True, check=True)
    expect(run.stdout == ",\n", f"the decimal point is {run.stdout!r}: {run.stderr[-200:]}")


def main():
    tests = []
    for locale in LOCALES:
        name = "_".join(locale).replace("-", "").lower()
        tests.append((f"{name}_has_a_comma", functools.partial(the_comma_is_there, locale)))
        tests += [(f"{name}_{line.split()[0]}", functools.partial(runs_program, locale, *line.split())) for line in PROGRAMS]
        tests += [(f"{name}_{pathlib.Path(script).stem}", functools.partial(
            passes, [sys.executable, TESTS / script], locale, ONLY=only)) for script, only in SCRIPTS
                  if locale == LOCALES[0] or os.environ.get("TOKMAP_LONG") == "all"]
    return run_tests(tests)


if __name__ == "__main__":
    sys.exit(main())

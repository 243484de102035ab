#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""install.py FOLDER [REQUIREMENTS] - a virtual environment with the packages of a requirements file
[requirements.txt beside this].

Each package is installed separately, without changing the version of another one in the file. A
failure is written to FOLDER/not-installed.json and does not stop the others. Lines that begin with
-- are options of pip; those behind a package are for it alone. If this was done before for the same
requirements, it only retries the packages that failed."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import venv

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"


def wanted(text):
    """Packages, and options of pip."""
    lines = [line.split("#")[0].strip() for line in text.split("\n")]
    packages = [line for line in lines if line and not line.startswith("--")]
    return packages, [word for line in lines if line.startswith("--") for word in line.split()]


def reason(output):
    """The last line with an error message."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no reason given"])[-1].removeprefix("ERROR: ")


def install(python, requirement, options):
    """None, or the reason of the failure."""
    done = subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            *options,
            *requirement.split(),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return None if done.returncode == 0 else reason(done.stdout)


def install_all(python, text, chosen=None):
    """{package: why it is not installed}; `chosen`: only these."""
    packages, options = wanted(text)
    failed = {}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        pinned = [package.split()[0] for package in packages if "==" in package]
        constraints.write("".join(re.sub(r"\[.*\]", "", package) + "\n" for package in pinned))  # extras are not allowed there
        constraints.flush()
        for requirement in packages:
            name = requirement.split("==")[0]
            if chosen is not None and name not in chosen:
                continue
            why = install(python, requirement, [*options, "--constraint", constraints.name])
            if why is not None:
                failed[name] = why
                print("  %s: not installed: %s" % (requirement, why), flush=True)
    return failed


def failed_before(folder, text):
    """The packages that could not be installed last time; None: this was never done."""
    try:
        if (folder / "requirements.txt").read_text() == text:
            return json.loads((folder / "not-installed.json").read_text())
    except (OSError, ValueError):
        pass
    return None


def main():
    if not 2 <= len(sys.argv) <= 3:
        print(__doc__.split("\n\n")[0], file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    text = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else REQUIREMENTS).read_text()
    before = failed_before(folder, text)
    if before == {}:
        return 0
    print("Installing into %s: %s" % (folder, " ".join(before or wanted(text)[0])), flush=True)
    try:
        if before is None:
            venv.create(folder, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as e:
        print(
            "install.py: no virtual environment: %s (on Debian: the package python3-venv)" % e,
            file=sys.stderr,
        )
        return 1
    failed = install_all(folder / "bin/python", text, before)
    (folder / "not-installed.json").write_text(json.dumps(failed))
    (folder / "requirements.txt").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""install.py FOLDER - a virtual environment with the packages of requirements.txt beside this.

Each package is installed on its own; what goes wrong with one is written to
FOLDER/not-installed.json and does not stop the others. Does nothing when it has been
done for the same requirements."""

import json
import pathlib
import subprocess
import sys
import venv

REQUIREMENTS = pathlib.Path(__file__).resolve().parent / "requirements.txt"


def wanted():
    lines = [line.split("#")[0].strip() for line in REQUIREMENTS.read_text().split("\n")]
    return [line for line in lines if line]


def reason(output):
    """The last line that says what is wrong."""
    lines = [line.strip() for line in output.split("\n") if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no reason given"])[-1].removeprefix("ERROR: ")


def install(python, requirement):
    """None, or why not."""
    done = subprocess.run(
        [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--only-binary=:all:",
            requirement,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return None if done.returncode == 0 else reason(done.stdout)


def main():
    folder = pathlib.Path(sys.argv[1])
    stamp, record = folder / "requirements.txt", folder / "not-installed.json"
    if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
        return 0
    print("Installing into %s ..." % folder, flush=True)
    try:
        venv.create(folder, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as e:
        print(
            "install.py: no virtual environment: %s (on Debian: the package python3-venv)" % e,
            file=sys.stderr,
        )
        return 1
    python = folder / "bin/python"
    failed = {}
    for requirement in wanted():
        why = install(python, requirement)
        if why is not None:
            failed[requirement.split("==")[0]] = why
            print("  %s: not installed: %s" % (requirement, why), flush=True)
    record.write_text(json.dumps(failed))
    if not failed:
        stamp.write_text(REQUIREMENTS.read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())

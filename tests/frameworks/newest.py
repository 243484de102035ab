#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""newest.py install FOLDER - a virtual environment with the newest versions of the packages of requirements.txt, made anew
each day. Its Python is the newest here for which all of them have wheels.
newest.py run COMMAND... - runs the checks in the Python of $PYTHON, and prints the table of docs/frameworks.md. Fails if a
check does, or if megatron-core is older than 0.19.2.

make test-frameworks NEWEST=1 runs both."""

import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIREMENTS = (ROOT / "tests/frameworks/requirements.txt").read_text()
PINNED = dict(re.findall(r"^([\w-]+)==(\S+)", REQUIREMENTS, re.MULTILINE))
PYTHONS = ["3.14", "3.13", "3.12"]
OLDEST_MEGATRON = (0, 19, 2)
CHECKED_BY = {"torch": "torch", "torchdata": "torch", "lightning": "lightning", "transformers": "huggingface",
              "accelerate": "huggingface", "trl": "huggingface", "datasets": "huggingface", "grain": "grain", "jax": "jax",
              "megatron-core": "megatron", "torchtitan": "torchtitan", "ai2-olmo-core": "olmo_core", "nvidia-dali-cuda130": "dali"}


def find_python():
    """The newest Python that has a wheel of each package."""
    wanted = [name for name in PINNED if name != "tfrecord"]  # which has none, and needs none
    for version in PYTHONS:
        folders = [*map(pathlib.Path, os.environ["PATH"].split(":")), *pathlib.Path.home().glob(f".pyenv/versions/{version}*/bin")]
        for python in (folder / f"python{version}" for folder in folders):
            if not python.exists() or subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode != 0:
                continue
            done = subprocess.run([python, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--no-deps",
                                   "--only-binary=:all:", "--target=unused", *wanted], capture_output=True, text=True)
            if done.returncode == 0:
                return python
            print(f"Python {version}: {done.stderr.strip().splitlines()[-1]}")
            break
    sys.exit(f"newest.py: no Python of {', '.join(PYTHONS)} here has wheels of all packages")


def install(folder):
    python, path = find_python(), pathlib.Path(folder + ".txt")
    path.write_text(f"# {datetime.date.today()}, {python}\n" + re.sub(r"==\S+", "", REQUIREMENTS))
    return subprocess.run([python, ROOT / "bench/peers/install.py", folder, path]).returncode


def results_of(lines):
    """{check: what it found} of the output of tests/run.sh: counts, and the first failure."""
    found = {}
    for line in lines:
        if head := re.match(r"check_(\w+)\.py +(\d.*?)(?: \(\d+ s\))?$", line):
            found[name := head[1]] = head[2]
        elif line.startswith("    FAIL ") and ": " not in found[name]:
            found[name] += ": " + line[9:].strip().replace("|", "/")
    return found


def run(command):
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as checks:
        for line in checks.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    results, day = results_of(lines), datetime.date.today()
    said = subprocess.run([os.environ["PYTHON"], "-c", "import platform, sys\nfrom importlib.metadata import version\n"
                           "print(platform.python_version(), *map(version, sys.argv[1:]))", *CHECKED_BY],
                          check=True, capture_output=True, text=True).stdout.split()
    versions = dict(zip(CHECKED_BY, said[1:]))
    print("\n| package | pinned | newest | Python | day | result |\n| --- | --- | --- | --- | --- | --- |")
    for package, version in versions.items():
        print(f"| {package} | {PINNED[package]} | {version} | {said[0]} | {day} | {results.get(CHECKED_BY[package], 'not run')} |")
    is_old = tuple(map(int, versions["megatron-core"].split(".")[:3])) < OLDEST_MEGATRON
    if is_old:
        print(f"newest.py: megatron-core is {versions['megatron-core']}: must be {'.'.join(map(str, OLDEST_MEGATRON))} or newer")
    return checks.returncode or is_old


if __name__ == "__main__":
    sys.exit({"install": lambda folder: install(folder), "run": lambda *command: run(command)}[sys.argv[1]](*sys.argv[2:]))

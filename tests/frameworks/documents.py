# SPDX-License-Identifier: Apache-2.0
"""The code blocks of a document in docs/."""

import os
import re
import subprocess
import sys

from frameworks import INSTALLED, ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$|^## (.*?)$", re.MULTILINE | re.DOTALL)


def blocks(name):
    """(title of the section, language, text) of each code block of docs/NAME."""
    title = ""
    for match in BLOCK.finditer((ROOT / "docs" / name).read_text()):
        title = match[3] or title
        if match[3] is None:
            yield title, match[1], match[2]


def environment():
    """For programs that a document shows: where they find commands and packages."""
    folders = [os.path.dirname(sys.executable), os.environ["PATH"]]
    if INSTALLED:
        return {**os.environ, "PATH": os.pathsep.join(folders), "PYTHONPATH": ""}
    folders.insert(0, os.environ.get("TOKMAP_BUILD", str(ROOT / "build")))
    return {**os.environ, "PATH": os.pathsep.join(folders), "PYTHONPATH": str(ROOT / "python")}


def run(command, folder):
    """Its output."""
    done = subprocess.run(command, cwd=folder, env=environment(), text=True, capture_output=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout

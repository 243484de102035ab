#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What .github says is true: each command of a workflow is a target of the Makefile, each action is one commit with the
version beside it, and zizmor finds nothing. What needs a public address has that of the Makefile, if it has one."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest.mock

from ref_protocol import Skip, expect, expect_equal, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
MAKEFILES = [ROOT / name for name in ("Makefile", "bench/bench.mk", "docs/packaging/release.mk", "tests/sanitizers.mk")]


def targets():
    text = "\n".join(path.read_text() for path in MAKEFILES)
    found = re.findall(r"^([a-z][a-z0-9 -]*):(?!=)", text, re.MULTILINE)
    jobs = re.search(r"^DEPS := \$\(addprefix deps-,(.*)\)$", text, re.MULTILINE)[1].split()
    return {name for names in found for name in names.split()} | {f"deps-{job}" for job in jobs}


def faults(text):
    """What is wrong in a workflow."""
    known, n_commands = targets(), 0
    chosen = re.search(r"^ +target: \[(.*)\]$", text, re.MULTILINE)
    for command in re.findall(r"^ +- run: *(.*)$|^ +run: *(.*)$", text, re.MULTILINE):
        words = "".join(command).split()
        names = [word for word in words[1:] if "=" not in word]
        if names == ['"$TARGET"']:
            names = chosen[1].split(", ")
        n_commands += 1
        if words[0] != "make" or not names or not known.issuperset(names):
            yield f"no target of the Makefile: {' '.join(words)}: {names}"
    for action in re.findall(r"uses: *(.*)$", text, re.MULTILINE):
        if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action):
            yield f"not one commit and its version: {action}"
    if not n_commands:
        yield "no command"


def commands_are_targets_and_actions_are_commits(folder):
    expect(len(WORKFLOWS) >= 4, f"only {WORKFLOWS}")
    for path in WORKFLOWS:
        expect_equal(list(faults(path.read_text())), [], path.name)
    text = WORKFLOWS[0].read_text()
    for old, new in (("run: make", "run: ninja"), ("run: make", "run: make nothing"), (" # v", " #"), ("@", "@v6 #")):
        expect(list(faults(text.replace(old, new))), f"{new} is not found")


def zizmor_finds_nothing(folder):
    zizmor = shutil.which("zizmor", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if not zizmor:
        raise Skip("no zizmor")
    command = [zizmor, "--offline", "--strict-collection", "--pedantic", "--no-progress"]
    done = subprocess.run([*command, ROOT / ".github"], capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stdout + done.stderr)
    planted = folder / ".github/workflows/planted.yml"
    planted.parent.mkdir(parents=True)
    planted.write_text(WORKFLOWS[0].read_text().replace('"$TARGET"', "${{ github.head_ref }}"))
    expect(subprocess.run([*command, planted], capture_output=True).returncode, "a command of a stranger is not found")


def addresses_are_that_of_the_makefile(folder):
    """With HOMEPAGE, a citation has it, the description of the package has it in its links, and the issues lead to the
    reports of vulnerabilities. Without, no file has one."""
    homepage = re.search(r"^HOMEPAGE :=(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].strip()
    citation = (ROOT / "CITATION.cff").read_text()
    expect_equal(re.findall(r"^repository-code: (.*)$", citation, re.MULTILINE), [f'"{homepage}"'] if homepage else [], "CITATION.cff")
    sys.path.insert(0, str(ROOT / "python"))
    import build_backend

    with unittest.mock.patch.object(build_backend, "makefile_value", return_value="https://example.org/a"):
        links = re.findall(r'\]\((.*?)\)|src(?:set)?="(.*?)"', build_backend.readme())
    kinds = {one.split(f"/v{build_backend.version()}/")[0] for pair in links for one in pair if one and one[0] != "#"}
    expect_equal(kinds, {"https://example.org/a/blob", "https://example.org/a/raw"}, "links of the package's description")
    expect_equal(build_backend.readme() == (ROOT / "README.md").read_text(), not homepage, "paths")
    config = (ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text()
    expect_equal(re.findall(r"^ +url: (.*)$", config, re.MULTILINE), [f"{homepage}/security/advisories/new"] if homepage else [], "config.yml")


sys.exit(run_in_folders("workflows_"))

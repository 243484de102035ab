#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mypy --strict of the whole package where the frameworks are installed, and what its drop-in modules are."""

import importlib
import importlib.metadata
import inspect
import io
import os
import re
import subprocess
import sys
import tokenize

from frameworks import ROOT, need, run_checks

if __name__ == "__main__":
    need("types", "mypy", "torch")

MODULES = ("torch", "lightning", "huggingface", "megatron", "torchtitan", "olmo_core")


def code_lines(path):
    """Lines that are more than a comment or a docstring."""
    lines, text = set(), path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
        if token.type not in layout and not token.string.startswith('"""'):
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines)


def the_package_is_typed(folder):
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports",  # torchtitan has no types
                           "--allow-subclassing-any", "-p", "tokmap"], cwd=ROOT / "python", capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


USER = """
import lightning, torch, transformers
from torch.utils.data import DataLoader
import tokmap.torch, tokmap.huggingface, tokmap.lightning

dataset = tokmap.torch.IterableDataset("data/train", sequence_length=64, batch_rows=8, seed=1)
for batch in DataLoader(dataset, batch_size=None, num_workers=2):
    inputs: torch.Tensor = batch["inputs"]
    dataset.load_state_dict(batch["state"])
for each in tokmap.torch.profiled(tokmap.Loader("data/train", 64)):
    state: bytes = each.state
n: int = len(tokmap.torch.MapDataset("data/train", 64)) + len(tokmap.huggingface.CausalLMDataset("data/train", 64))
data: lightning.LightningDataModule = tokmap.lightning.DataModule("data/train", 64, batch_rows=8)
"""


def a_user_is_typed(folder):
    (folder / "user.py").write_text(USER)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", folder / "user.py"], cwd=ROOT / "python",
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def the_versions_are_those_of_the_requirements(folder):
    wanted = re.findall(r"^([\w-]+)==(\S+)", (ROOT / "tests/frameworks/requirements.txt").read_text(), re.MULTILINE)
    found = []
    for name, version in wanted:
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue  # the checks that need it skip
        assert "TOKMAP_NEWEST" in os.environ or found[-1][1].split("+")[0] == version
    print("note Python " + sys.version.split()[0] + "".join(f", {name} {version}" for name, version in found))


def each_module_is_short_and_documented(folder):
    found = []
    for name in MODULES:
        path = ROOT / f"python/tokmap/{name}.py"
        try:
            module = importlib.import_module(f"tokmap.{name}")
        except ImportError as error:  # of a framework with an environment of its own
            print(f"note {error}")
            continue
        classes = [value for value in vars(module).values() if inspect.isclass(value)
                   and value.__module__ == module.__name__]
        members = [member for value in classes for key, member in vars(value).items()
                   if not key.startswith("_") and inspect.isfunction(member)]
        for value in [module, *classes, *members]:
            assert inspect.getdoc(value), value
        assert code_lines(path) <= 100, (path, code_lines(path))
        found.append(f"{name} {code_lines(path)}")
    return "lines of code: " + ", ".join(found)


if __name__ == "__main__":
    sys.exit(run_checks("types_"))

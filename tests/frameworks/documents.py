# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the documents, how the Python in them is run, and which test or reason stands beside each."""

import collections
import contextlib
import itertools
import os
import re
import subprocess
import sys
import unittest.mock

from frameworks import INSTALLED, ROOT, make_gpt

FENCE = re.compile(r"^ *```(\w*)$")
MARK = re.compile(r"^ *<!-- (run by|not run:) (.*?) -->$")
N_BATCHES = 5  # that the endless loops of examples get

# heading: the nearest one above; is_first: whether only blank lines are between it and the block.
Block = collections.namedtuple("Block", "line heading is_first language mark text")


def read_blocks(path):
    """Each code block of a document. A mark stands on the line before its block, or before the first heading."""
    blocks, heading, is_first, mark, whole, lines = [], "", False, None, None, None
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence = FENCE.match(line)
        if fence and lines is None:
            first, language, lines = number, fence[1], []
        elif fence:
            text = "".join(line + "\n" for line in lines)
            blocks.append(Block(first, heading, is_first, language, mark or whole, text))
            mark, is_first, lines = None, False, None
        elif lines is not None:
            lines.append(line)
        elif line.startswith("#"):
            heading, is_first = line.lstrip("# "), True
        elif MARK.match(line):
            mark = MARK.match(line).groups()
            whole, mark = (whole, mark) if heading else (mark, None)
        elif line:
            is_first, mark = False, None
    return blocks


def blocks(name):
    """(title of the section, language, text) of each code block of docs/NAME that a check of this folder runs."""
    return [(block.heading, block.language, block.text) for block in read_blocks(ROOT / "docs" / name)
            if block.mark and block.mark[0] == "run by" and "/frameworks/" in block.mark[1]]


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


# ---- Python ----

class Enough(Exception):
    """Ends an endless loop over something other than a loader, or one of a recipe."""


def count_step(n_steps=itertools.count(1)):
    if next(n_steps) % (2 * N_BATCHES) == 0:
        raise Enough


def take_step(*arrays):
    """The training step of an example."""
    count_step()
    inputs, labels = (array.tolist() for array in arrays)
    assert len(inputs) == len(labels) > 0 and all(i[1:] == l[:-1] for i, l in zip(inputs, labels))


def save_state(state):
    assert len(state) == 128


def make_stage():
    """A loader, a model that takes ids, and its loss."""
    import tokmap
    import torch

    model, _ = make_gpt()

    def cross_entropy(logits, labels):
        count_step()
        return torch.nn.functional.cross_entropy(logits, labels)

    return {"loader": tokmap.Loader("data/train", 64, 8, seed=1), "model": lambda ids: model(ids.long()),
            "cross_entropy": cross_entropy}


def make_lightning():
    import check_recipes
    import lightning
    import tokmap.lightning

    def trainer():
        return lightning.Trainer(max_steps=4, accelerator="cpu", logger=False, enable_progress_bar=False)

    names = {"model": check_recipes.make_module()["module"], "trainer": trainer()}
    earlier = trainer()
    earlier.fit(names["model"], tokmap.lightning.DataModule("data/train", sequence_length=1024, batch_rows=8, seed=1))
    earlier.save_checkpoint("last.ckpt")
    return names


def make_huggingface():
    import check_recipes
    import transformers

    return {"transformers": transformers, "model": check_recipes.make_llama()["llama"]}


def make_megatron():
    import check_recipes

    names = check_recipes.make_provider()
    return {"config": names["core_gpt_dataset_config_from_args"](None), "train_val_test_num_samples": (5000, 20, 10)}


def make_torchtitan():
    from torchtitan.models.llama3.config_registry import llama3_debugmodel

    return {"config": llama3_debugmodel()}


def make_olmo_core():
    import check_recipes

    return check_recipes.make_train_module()


# What an example takes for granted beyond `import tokmap`, if it has this text.
MORE_NAMES = {"Stage(": make_stage, "tokmap.lightning": make_lightning, "tokmap.huggingface": make_huggingface,
              "tokmap.megatron.": make_megatron, "tokmap.torchtitan": make_torchtitan, "tokmap.olmo_core": make_olmo_core}


def run_python(text, folder):
    """Runs an example in a folder that has its data. An endless loop over a loader ends after a few batches, and the
    host is the GPU. Raises ImportError if it needs a package that is not installed."""
    import tokmap

    taken = collections.Counter()
    next_batch = tokmap.Loader.__next__

    def next_of_few(loader):
        taken[id(loader)] += 1
        if taken[id(loader)] % (N_BATCHES + 1) == 0 and "measure(" not in text:  # which ends by itself
            raise StopIteration
        return next_batch(loader)

    with changed_folder(folder):
        names = {"__name__": "example", "tokmap": tokmap, "train": take_step, "step": take_step, "save": save_state,
                 "documents": [[1, 2, 256], [3, 256]], "texts": ["one", "two words", "", "four"]}
        for package in re.findall(r"tokmap\.([a-z_]+)\.|framework=\"(torch)\"|\b(torch)\.|\.(torch)\(", re.sub("#.*", "", text)):
            package = "".join(package)
            if package in ("torch", "lightning", "huggingface", "megatron", "torchtitan", "olmo_core"):
                names["torch"] = __import__("torch")
                __import__(f"tokmap.{package}")
        for part, make in MORE_NAMES.items():
            names.update(make() if part in text else {})
        with unittest.mock.patch.object(tokmap.Loader, "__next__", next_of_few), contextlib.suppress(Enough):
            exec(compile(text.replace("device=0", 'device="host"'), "example", "exec"), names)


@contextlib.contextmanager
def changed_folder(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)

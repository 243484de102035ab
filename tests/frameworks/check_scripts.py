#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts of docs/examples that need a framework: nanogpt.py, fsdp.py, torchtitan_run.py, hf_trainer.py run, and type
checkers find nothing in any script, and know what the batches of a Loader are made of."""

import os
import re
import shutil
import subprocess
import sys

from frameworks import INSTALLED, ROOT, need, run_checks
from ref_protocol import expect_equal

if __name__ == "__main__":
    need("scripts", "torch", "mypy", "basedpyright")

EXAMPLES = ROOT / "docs/examples"
REVEALED = """
import tokmap

reveal_type(next(tokmap.Loader("a", 128)).inputs)
reveal_type(next(tokmap.Loader({"a": 1}, 128, framework="torch")).inputs)
reveal_type(next(tokmap.Loader([("a", 1)], 128, device="cuda:0", slots=tokmap.Slots(n_slots=3))).labels)
reveal_type(next(tokmap.Loader("a", 128)).to("cpu").inputs)
reveal_type(tokmap.Loader("a", 128).phases)
"""


def run(folder, *command, **environment):
    path = {} if INSTALLED else {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, timeout=600,
                          env={**os.environ, **path, "OMP_NUM_THREADS": "1", **environment})
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    return done.stdout


def nanogpt_goes_on(folder):
    first, second = (run(folder, EXAMPLES / "nanogpt.py", "train", n) for n in (3, 2))
    expect_equal(re.findall(r"samples (\d+) to (\d+)", first + second),
                 [(str(8 * n), str(8 * n + 7)) for n in range(5)], "samples of five steps")


def fsdp_shares_rows_along_cp(folder):
    said = run(folder, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4", "--log-dir", folder / "log",
               EXAMPLES / "fsdp.py", "train", 2)
    found = re.findall(r"rank (\d): <tokmap.Loader of train: 8 rows of 64, rank (\d) of 2, .*?step (\d): \(8, 32\)", said)
    expect_equal(sorted(found), [(str(rank), str(rank // 2), str(step)) for rank in range(4) for step in range(2)],
                 "the rank in the data of each rank")


def the_trainer_of_transformers_goes_on(folder):
    need("scripts", "transformers", "datasets", "accelerate")
    for n in (4, 6):
        run(folder, EXAMPLES / "hf_trainer.py", "train", n)
    found = (folder / "run/checkpoint-6/trainer_state.json").read_text()
    assert '"sample": 24' in found and '"global_step": 6' in found, found


def torchtitan_takes_the_configuration(folder):
    need("scripts", "torchtitan", "tyro")
    shutil.copy(EXAMPLES / "torchtitan_run.py", folder)
    (folder / "data").mkdir()
    for end in ("bin", "tmi"):
        shutil.copy(folder / f"train.{end}", folder / f"data/train.{end}")
    said = run(folder, "-c", "from torchtitan_run import llama3_on_tokmap as made\n"
               "loader = made().dataloader.build(dp_world_size=1, dp_rank=0, seq_len=64, local_batch_size=2)\n"
               "print({name: tuple(a.shape) for name, a in next(iter(loader))[0].items()})")
    expect_equal(said.strip(), "{'input': (2, 64), 'positions': (2, 64)}", "a batch")


def type_checkers_find_nothing(folder):
    scripts = [shutil.copy(path, folder) for path in sorted(EXAMPLES.glob("*.py"))]
    assert len(scripts) >= 7, scripts
    run(folder, "-m", "mypy", "--strict", "--follow-untyped-imports", "--untyped-calls-exclude=torch", *scripts)
    run(folder, "-m", "basedpyright", "--pythonpath", sys.executable, "--level", "error", *scripts)


def batches_are_of_arrays_or_tensors(folder):
    (folder / "revealed.py").write_text(REVEALED)
    wanted = ["ndarray", "Tensor", "Tensor", "Tensor", "dict"]
    by_mypy = re.findall(r'Revealed type is "(.*)"', run(folder, "-m", "mypy", "--strict", "revealed.py"))
    expect_equal([re.sub(r"\[.*|\?", "", one).split(".")[-1] for one in by_mypy], wanted, by_mypy)
    said = run(folder, "-m", "basedpyright", "--pythonpath", sys.executable, "revealed.py")
    by_pyright = re.findall(r'information: Type of ".*" is "(.*)"', said)
    expect_equal([one.partition("[")[0].lower() for one in by_pyright], [one.lower() for one in wanted], said)


if __name__ == "__main__":
    sys.exit(run_checks("scripts_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md and docs/agents.md, block by block; the training of the tutorial is killed in the middle and resumed."""

import signal
import subprocess
import sys

from frameworks import ROOT, need

if __name__ == "__main__":
    need("tutorial", "torch")
from documents import blocks, environment, run  # noqa: E402
from ref_protocol import run_in_folders  # noqa: E402


def prepare(folder):
    for name in ("README.md", "CHANGELOG.md", "docs"):
        (folder / name).symlink_to(ROOT / name)


def losses_of(output):
    """{step: loss, as it was printed}"""
    return {int(line.split()[1]): line.split()[3] for line in output.splitlines() if line.startswith("step ")}


def kill_after(step, folder):
    """Runs train.py until it has printed the loss of a step. Returns what it printed."""
    with subprocess.Popen([sys.executable, "train.py"], cwd=folder, env=environment(), text=True,
                          stdout=subprocess.PIPE) as process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(f"step {step} "):
                process.send_signal(signal.SIGKILL)
        return "".join(lines)


def run_blocks(name, folder):
    """Runs each block, or saves it as the file that it names. Returns what the commands printed."""
    outputs = []
    for _, language, text in blocks(name):
        if text.startswith("# train.py"):
            (folder / "train.py").write_text(text)
        elif language == "python":
            run([sys.executable, "-c", text], folder)
        else:
            outputs.append(run(["bash", "-ec", text], folder))
    return outputs


def agents_page_is_run_as_written(folder):
    outputs = run_blocks("agents.md", folder)
    assert '"ok": true' in outputs[2] and '"vocab_size": 257' in outputs[2], outputs[2]
    assert outputs[3] == "same\n", outputs[3]
    assert "corpus.jsonl" in outputs[4] and "step 30 " in outputs[4], outputs[4]


def tutorial_is_run_as_written(folder):
    outputs = run_blocks("tutorial.md", folder)
    truth = losses_of(outputs[-2])
    assert outputs[-1].count("\nstep 40 ") == 7 and "CHANGELOG.md" in outputs[-1], outputs[-1]
    assert sorted(truth) == list(range(60)) and float(truth[0]) > 5 and float(truth[59]) < 4, truth
    (folder / "checkpoint.pt").unlink()
    killed = losses_of(kill_after(37, folder))
    assert killed.items() <= truth.items() and len(killed) < 60
    resumed = losses_of(run([sys.executable, "train.py"], folder))
    assert resumed == {step: loss for step, loss in truth.items() if step >= 30}
    return f"loss {float(truth[0]):.2f} to {float(truth[59]):.2f}; resumed at step {min(resumed)}"


if __name__ == "__main__":
    sys.exit(run_in_folders("", prepare=prepare))

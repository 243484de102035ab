#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lanes in a training: a teacher's top-k numbers, written once by the numbers of tokens and read in any order and any kind of
rows, give the losses that the teacher gives in the loop."""

import itertools
import sys

from frameworks import need, run_checks

if __name__ == "__main__":
    need("lanes", "torch")
import numpy as np  # noqa: E402
import tokmap  # noqa: E402
import torch  # noqa: E402

LENGTH, ROWS, K, STEPS = 64, 8, 8, 50


def make(seed, width=16):
    """A model whose logits at an input follow from this input alone, so that they are the same in every row."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Embedding(257, width), torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, 257))


def top_of(teacher, inputs):
    """Computed in one shape: with another number of inputs, the last bits may differ."""
    n, padded = inputs.numel(), torch.zeros(ROWS * LENGTH, dtype=torch.int64)
    padded[:n] = inputs.flatten()
    with torch.no_grad():
        values, indices = torch.topk(teacher(padded.view(ROWS, LENGTH)), K, -1)
    return [one.view(-1, K)[:n].view(*inputs.shape, K) for one in (values, indices)]


def write_lanes(folder, teacher, dtype):
    """By the number of the token that is the input. The last token of the data is no input."""
    ds = tokmap.open(folder / "train")
    options = {"goes_with": "input", "about": {"teacher": "make(1)"}, "replace": True, "partial": True}
    with ds.lane_writer("topk_ids", "int32", K, **options) as ids, ds.lane_writer("topk_logits", dtype, K, **options) as logits:
        done = 0
        with tokmap.Loader(ds, LENGTH, ROWS, shuffle="none", max_epochs=1, framework="torch", order=tokmap.Order(drop_last=False),
                           outputs=["inputs"]) as loader:
            for batch in loader:
                top = top_of(teacher, batch.inputs)
                for row, its_ids, its_logits in zip(batch.rows, top[1], top[0]):
                    ids.put(row.first_token, its_ids.to(torch.int32))
                    logits.put(row.first_token, its_logits)
                    done = row.first_token + LENGTH
        rest = torch.from_numpy(ds.tokens(done).astype(np.int64))  # fewer than a row
        top = top_of(teacher, rest)
        ids.put(done, top[1].to(torch.int32))
        logits.put(done, top[0])


def losses(folder, windows, find):
    """Of a student that learns what `find` says of a batch."""
    student = make(2)
    optimizer, found = torch.optim.SGD(student.parameters(), 0.5), []
    with tokmap.Loader(folder / "train", LENGTH, ROWS, windows=windows, seed=5, framework="torch",
                       outputs=["inputs", "labels", "lane:topk_ids", "lane:topk_logits"]) as loader:
        for batch in itertools.islice(loader, STEPS):
            ids, logits = find(batch)
            said = torch.log_softmax(student(batch.inputs), -1).gather(-1, ids)
            of_inputs = torch.sum(torch.softmax(logits, -1) * said, -1)
            loss = -of_inputs[batch.labels >= 0].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
    return found


def a_student_learns_the_same_from_lanes_as_from_its_teacher(folder):
    torch.set_num_threads(1)
    teacher = make(1)

    def in_loop(batch):
        top = top_of(teacher, batch.inputs)
        return top[1], top[0]

    def from_lanes(batch):
        return batch.lanes["topk_ids"].long(), batch.lanes["topk_logits"].float()

    def shifted(batch):
        return tuple(torch.roll(one, 1, 1) for one in from_lanes(batch))

    write_lanes(folder, teacher, "float32")
    tokmap.open(folder / "train").verify()
    for windows in ("concat", "within_document", "best_fit"):
        wanted = losses(folder, windows, in_loop)
        found = losses(folder, windows, from_lanes)
        assert found == wanted, (windows, found, wanted)
        assert min(wanted[-10:]) < wanted[0], (windows, wanted)
        assert losses(folder, windows, shifted)[0] != wanted[0]
    write_lanes(folder, teacher, "float16")
    differences = [abs(a - b) for a, b in zip(losses(folder, "best_fit", in_loop), losses(folder, "best_fit", from_lanes))]
    assert 0 < max(differences) < 2e-3, max(differences)
    return f"{3 * STEPS} losses are equal; with float16 the largest difference is {max(differences):.1e}"


def a_loss_is_weighted_by_the_score_of_its_document(folder):
    ds = tokmap.open(folder / "train")
    scores = np.linspace(0.25, 2, len(ds))
    ds.add_lane("weight", torch.from_numpy(np.repeat(scores, ds.lengths())).to(torch.bfloat16))
    stored = torch.from_numpy(scores).to(torch.bfloat16).float()
    documents = np.repeat(np.arange(len(ds)), ds.lengths())
    with tokmap.Loader(ds, LENGTH, ROWS, windows="best_fit", framework="torch", rows=tokmap.Rows(loss_weight="weight"),
                       outputs=["inputs", "labels", "loss_weight", "lane:weight"]) as loader:
        for batch in itertools.islice(loader, 20):
            assert batch.loss_weight.dtype == torch.float32 and batch.lanes["weight"].dtype == torch.bfloat16
            assert torch.equal(batch.loss_weight, batch.lanes["weight"].float() * (batch.labels >= 0))
            moved = batch.to("cpu")
            assert moved.loss_weight.shape == batch.labels.shape and list(moved.lanes) == ["weight"]
    with tokmap.Loader(ds, LENGTH, ROWS, shuffle="none", framework="torch", rows=tokmap.Rows(loss_weight="weight", mask_labels=True),
                       outputs=["labels", "loss_weight"]) as loader:
        batch = next(loader)
        first = torch.tensor([row.first_token for row in batch.rows])
        of_labels = torch.from_numpy(documents)[first[:, None] + 1 + torch.arange(LENGTH)]
        assert torch.equal(batch.loss_weight, torch.where(batch.labels >= 0, stored[of_labels], 0))


if __name__ == "__main__":
    sys.exit(run_checks("lanes_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wrong_resume.py - the figures of docs/resume.md: trains a tiny language model three times from one checkpoint. In one run
the loader goes on where it was saved, in one 40 steps earlier, in one 40 steps later. Prints a result file; nothing in it
depends on the machine but its name and the last digits of exp(). Needs NumPy and tokmap, and takes some seconds.

    PYTHONPATH=python TOKMAP_LIBRARY=build/libtokmap.so bench/wrong_resume.py > bench/results/wrong-resume-computed.json"""

import pathlib
import statistics
import tempfile

import numpy as np
import result_file

import tokmap

N_STEPS, SAVED, WRONG = 200, 100, 40
ALPHABET = " abcdefghijklmnopqrstuvwxyz.\n"
N_ORDERS, N_BUCKETS, RATE = 8, 1 << 16, 0.1
# Parts of a run, of the losses in training or of those after it.
PARTS = (("in training, steps 100 to 139", 0, 100, 140), ("after the run, batches 60 to 99", 1, 60, 100),
         ("after the run, batches 100 to 139", 1, 100, 140), ("after the run, batches 160 to 199", 1, 160, 200))
RUNS = {"right": SAVED, "repeated": SAVED - WRONG, "skipped": SAVED + WRONG}  # the batch after the checkpoint


def write_text(path, n_sentences=6000):
    """Sentences such as "bakeno sees six old maps of ruvika." with names of their own, which cannot be known before."""
    rng = np.random.default_rng(1)
    words = [text.split() for text in ("sees buys finds draws keeps", "two three four five six nine",
                                       "old new red blue long small", "maps boats coins lamps songs keys")]

    def name():
        return "".join(rng.choice(list("bdfgklmnprstvz")) + rng.choice(list("aeiou")) for _ in range(3))

    with tokmap.Writer(path, vocab_size=len(ALPHABET)) as writer:
        for _ in range(n_sentences):
            text = " ".join([name(), *map(rng.choice, words), "of", name()]) + ".\n"
            writer.document([ALPHABET.index(letter) for letter in text])


class Model:
    """The next letter from the last 1 to 8 letters, each with weights of its own: a linear model, which softmax ends."""

    def __init__(self):
        self.weights = np.zeros((N_ORDERS, N_BUCKETS, len(ALPHABET)))

    def step(self, batch, rate=RATE):
        """Trains on a batch, and returns its loss before that, in nats a letter."""
        ids, label, places, place = batch.inputs.astype(np.int64), batch.labels.ravel(), [], 0
        for order in range(N_ORDERS):
            before = np.pad(ids, ((0, 0), (order, 0)))[:, :ids.shape[1]]  # the letter so many places before
            place = (place * 31 + before + 1) * 1000003 % 2**31
            places.append((place % N_BUCKETS).ravel())
        scores = sum(self.weights[order, places[order]] for order in range(N_ORDERS))
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        every = np.arange(len(label))
        loss = -np.log(shares[every, label]).mean()
        shares[every, label] -= 1
        for order in range(N_ORDERS if rate else 0):
            np.subtract.at(self.weights[order], places[order], rate * shares)
        return float(loss)


def train(path, resumed):
    """Losses of all steps, and of the batches of the right run afterwards."""
    loader = tokmap.Loader(path, sequence_length=64, batch_rows=8, seed=1)
    batches = [next(loader) for _ in range(N_STEPS + WRONG)]
    model = Model()
    trained = [*batches[:SAVED], *batches[resumed:]][:N_STEPS]
    return [model.step(batch) for batch in trained], [model.step(batch, 0) for batch in batches[:N_STEPS]]


def main():
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        write_text(pathlib.Path(folder, "text"))
        for run, resumed in RUNS.items():
            losses = train(pathlib.Path(folder, "text"), resumed)
            for line, which, begin, end in (("in training", 0, 0, N_STEPS), ("after the run", 1, 0, N_STEPS), *PARTS):
                values = [round(loss, 5) for loss in losses[which][begin:end]]
                rows.append({"page": "wrong_resume", "name": f"{line}, {run}", "line": line, "column": run, "unit": "nats",
                             "median": round(statistics.median(values), 5), "values": values})
    print(result_file.as_text({"schema": 1, "command": "bench/wrong_resume.py", "machine": result_file.machine(), "rows": rows}), end="")


if __name__ == "__main__":
    main()

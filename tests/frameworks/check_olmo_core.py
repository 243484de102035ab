#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.olmo_core in the Trainer of OLMo-core, on the CPU: a run that was killed has the losses of one that was not,
and its checkpoint continues with another data-parallel degree and another batch size."""

import json
import os
import pathlib
import signal
import subprocess
import sys

from frameworks import EOD, need, run_checks, take

if __name__ == "__main__":
    need("olmo_core", "torch", "olmo_core.train")
import torch  # noqa: E402
from olmo_core.data.utils import get_cumulative_document_lengths, get_document_lengths, split_batch  # noqa: E402
from olmo_core.distributed.parallel import DataParallelType  # noqa: E402
from olmo_core.exceptions import OLMoConfigurationError  # noqa: E402
from olmo_core.nn.transformer import TransformerConfig  # noqa: E402
from olmo_core.optim import AdamWConfig  # noqa: E402
import olmo_core.train as training  # noqa: E402
from olmo_core.train.callbacks import BatchSizeSchedulerCallback, Callback, CheckpointerCallback  # noqa: E402
from olmo_core.train.train_module import TransformerDataParallelConfig, TransformerTrainModuleConfig  # noqa: E402

import tokmap  # noqa: E402
import tokmap.olmo_core  # noqa: E402

LENGTH, N_ROWS, SEED = 32, 8, 3  # N_ROWS: of a step of all ranks


def config_of(folder, **options):
    return tokmap.olmo_core.DataLoaderConfig(**{
        "sources": str(folder / "train"), "sequence_length": LENGTH, "global_batch_size": N_ROWS * LENGTH, "seed": SEED,
        **options})


# ---- Runs of the Trainer ----

class Notes(Callback):
    """Writes a line of the loss of this rank and its rows for each step, and kills the process after one of them."""

    path = kill_at = None

    def pre_step(self, batch):
        self.rows = [list(row) for row in zip(batch["input_ids"].tolist(), batch["labels"].tolist())]

    def pre_train(self):
        def note(loss, *_):
            self.loss = float(loss)

        self.trainer.train_module.record_ce_loss = note

    def post_step(self):
        with self.path.open("a") as lines:
            lines.write(json.dumps([self.step, self.loss, self.rows]) + "\n")
        if self.step == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def run_rank(folder, name, n_steps, kill_at, sizes):
    training.prepare_training_environment(seed=1, backend="gloo")
    torch.set_num_threads(1)
    model = TransformerConfig.olmo2_1M(vocab_size=257).build(init_device="cpu")
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=LENGTH, max_sequence_length=LENGTH, optim=AdamWConfig(lr=1e-3),
        dp_config=TransformerDataParallelConfig(name=DataParallelType.ddp)).build(model, torch.device("cpu"))
    notes = Notes()
    notes.path, notes.kill_at = folder / f"{name}.{os.environ['WORLD_SIZE']}.{os.environ['RANK']}", kill_at
    loader = config_of(folder).build(dp_process_group=module.dp_process_group)
    trainer = training.TrainerConfig(
        save_folder=str(folder / name), max_duration=training.Duration.steps(n_steps), metrics_collect_interval=1, device="cpu",
        async_bookkeeping=False, save_overwrite=True,
    ).with_callback("checkpointer", CheckpointerCallback(save_interval=4, save_async=False)).with_callback("notes", notes)
    if sizes:
        trainer = trainer.with_callback("sizes", BatchSizeSchedulerCallback(
            batch_sizes=[rows * LENGTH for rows, _ in sizes], schedule=[training.Duration.steps(step) for _, step in sizes]))
    trainer.build(module, loader).fit()
    training.teardown_training_environment()


def train(folder, name, n_ranks, n_steps=10, kill_at=None, sizes=()):
    """{step: loss}, and {step: its rows in their order}."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={n_ranks}", "--log-dir",
               folder / "log", __file__, json.dumps([str(folder), name, n_steps, kill_at, sizes])]
    paths = [folder / f"{name}.{n_ranks}.{rank}" for rank in range(n_ranks)]
    for path in paths:
        path.unlink(missing_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (done.returncode == 0) == (kill_at is None), done.stderr[-3000:]
    losses, rows = {}, {}
    for entries in zip(*[map(json.loads, path.read_text().splitlines()) for path in paths]):
        losses[entries[0][0]] = sum(entry[1] for entry in entries) / n_ranks
        rows[entries[0][0]] = [row for entry in entries for row in entry[2]]
    return losses, rows


def truth_of(folder, first=0):
    """The rows of the loader, one after another."""
    loader = tokmap.Loader(folder / "train", LENGTH, 1, seed=SEED)
    loader.seek(first)
    for batch in loader:
        yield [batch.inputs[0].tolist(), batch.labels[0].tolist()]


def a_run_that_was_killed_continues(folder):
    losses, rows = train(folder, "whole", 2)
    assert len(losses) == 10 and sum(rows.values(), []) == take(10 * N_ROWS, truth_of(folder))
    before, _ = train(folder, "killed", 2, kill_at=7)
    assert max(before) == 7 and (folder / "killed/step4").exists()
    again, rows = train(folder, "killed", 2)
    assert min(again) == 5 and {**before, **again} == losses and all(before[step] == again[step] for step in (5, 6, 7))
    assert sum(rows.values(), []) == take(6 * N_ROWS, truth_of(folder, 4 * N_ROWS))


def a_checkpoint_continues_with_another_degree_and_batch_size(folder):
    losses, _ = train(folder, "two", 2, 16)
    train(folder, "run", 2, 10)
    more, first = train(folder, "run", 1, 13)
    last, rows = train(folder, "run", 4, 20, sizes=[(N_ROWS, 0), (2 * N_ROWS, 17)])
    torch.testing.assert_close([*more.values(), *last.values()][:6], [losses[step] for step in range(11, 17)])
    assert list(first) == [11, 12, 13] and [len(rows[step]) for step in range(14, 21)] == [8, 8, 8, 8, 8, 16, 16]
    assert sum([*first.values(), *rows.values()], []) == take(12 * N_ROWS, truth_of(folder, 10 * N_ROWS))


# ---- The data alone ----

def documents_are_those_of_olmo_core(folder):
    """Its own attention for documents needs a GPU."""
    with tokmap.Writer(folder / "short", vocab_size=257) as w:
        for n in range(1, 200):
            w.document([n % 5] * (n % 50) + [EOD])
    for windows in ("concat", "best_fit", "within_document"):
        loader = config_of(folder, sources=folder / "short", generate_doc_lengths=True,
                           options={"windows": windows, "max_epochs": 1}).build()
        loader.reshuffle(1)
        n = 0
        for batch in loader:
            assert list(batch) == ["input_ids", "labels", "doc_lens", "max_doc_lens"]
            ends = get_cumulative_document_lengths(batch["doc_lens"])
            assert ends[-1] == N_ROWS * LENGTH and (batch["doc_lens"].sum(1) == LENGTH).all()
            for part in split_batch(batch, 3):
                assert part["max_doc_lens"] == part["doc_lens"].max(1).values.tolist()
            for row, labels, lengths in zip(batch["input_ids"], batch["labels"], batch["doc_lens"]):
                n_inputs = LENGTH if windows == "concat" else int((labels != -100).nonzero().max()) + 1  # then padding
                wanted = get_document_lengths(row[:n_inputs], EOD).tolist() + [LENGTH - n_inputs]
                assert lengths[lengths > 0].tolist() == [length for length in wanted if length > 0]
                n += len(wanted) > 2
        assert len(loader) == loader.batches_processed and (n > 3) == (windows != "within_document"), (windows, n)
    mock = loader.get_mock_batch()
    assert mock.keys() == batch.keys() and all(mock[key].shape[0] == N_ROWS for key in ("input_ids", "labels", "doc_lens"))


def what_does_not_fit_is_refused(folder):
    for options in ({"global_batch_size": LENGTH + 1}, {"options": {"ranks": tokmap.Ranks(cp_size=2)}},
                    {"options": {"rows": tokmap.Rows(ignore_index=-1)}}):
        try:
            config_of(folder, **options).build()
        except OLMoConfigurationError:
            continue
        raise AssertionError(options)
    loader = config_of(folder, options={"max_epochs": 1}, first_sample=5 * N_ROWS).build()
    loader.reshuffle()
    assert len(list(loader)) == len(loader) - 5 and loader.batches_processed == len(loader)
    loader.reset()
    try:
        loader.reshuffle()
    except OLMoConfigurationError as error:
        assert "max_epochs" in str(error)
    else:
        raise AssertionError("epoch 2")


def the_configuration_is_one_of_olmo_core(folder):
    config = config_of(folder, sources=[(str(folder / "train"), 0.5), (str(folder / "val"), 0.5)])
    other = config.merge(["seed=4", "global_batch_size=64", "generate_doc_lengths=true"])
    assert (type(other), other.seed, other.sources, other.generate_doc_lengths) == (type(config), 4, config.sources, True)
    assert json.loads(json.dumps(config.as_config_dict()))["seed"] == SEED and next(iter(other.build()))["doc_lens"].any()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        place, *arguments = json.loads(sys.argv[1])
        run_rank(pathlib.Path(place), *arguments)
        sys.exit()
    sys.exit(run_checks("olmo_core_"))

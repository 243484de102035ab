#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.lightning: losses after a resume in the middle of an epoch are those of a run that was not stopped."""

import json
import sys
import tempfile
import warnings

from frameworks import loss_of, make_gpt, need, run_checks
from grouped import grouped

if __name__ == "__main__":
    need("lightning", "torch", "lightning")
import lightning  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint, OnExceptionCheckpoint  # noqa: E402

import tokmap  # noqa: E402
import tokmap.lightning  # noqa: E402

warnings.filterwarnings("ignore")
OPTIONS = dict(sequence_length=32, batch_rows=4, seed=3)


class Module(lightning.LightningModule):
    def __init__(self, fail_at=None):
        super().__init__()
        self.gpt, self.optimizer = make_gpt()
        self.losses, self.val_losses, self.rows, self.fail_at = [], [], [], fail_at

    def training_step(self, batch):
        if len(self.losses) == self.fail_at:
            raise RuntimeError("as planned")
        loss = loss_of(self.gpt, batch["inputs"], batch["labels"])
        self.losses.append(loss.item())
        self.rows += batch["inputs"].tolist()
        return loss

    def validation_step(self, batch):
        self.val_losses.append(loss_of(self.gpt, batch["inputs"], batch["labels"]).item())

    def configure_optimizers(self):
        return self.optimizer


class WithoutValidation(Module):
    validation_step = lightning.LightningModule.validation_step


def fit(folder, n_steps, data, checkpoint=None, callbacks=(), fail_at=None, kind=Module, **options):
    module = kind(fail_at)
    trainer = lightning.Trainer(max_steps=n_steps, accelerator="cpu", logger=False, enable_progress_bar=False,
                                enable_model_summary=False, default_root_dir=folder, callbacks=list(callbacks),
                                **{"enable_checkpointing": bool(callbacks), "num_sanity_val_steps": 0, **options})
    try:
        trainer.fit(module, data, ckpt_path=checkpoint)
    except RuntimeError as error:
        assert str(error) == "as planned"
    return module


def data_of(folder, n_workers=0, **options):
    return tokmap.lightning.DataModule(folder / "train", **grouped(num_workers=n_workers, **OPTIONS, **options))


def losses_are_the_same_after_a_resume(folder):
    loader = iter(tokmap.Loader(folder / "train", **grouped(**OPTIONS)))
    for number, (options, limits) in enumerate((
            ({}, {}), ({"n_workers": 2}, {}), ({}, {"limit_train_batches": 7}), ({"max_epochs": 1}, {}),
            ({"n_workers": 2, "validation": folder / "val"}, {"limit_train_batches": 9, "limit_val_batches": 3,
                                                              "val_check_interval": 4}))):
        if number == 0:
            truth = fit(folder, 20, data_of(folder))
            assert truth.rows == [row for _ in range(20) for row in next(loader).inputs.tolist()]
        keep = ModelCheckpoint(folder / str(number), "{step}", every_n_train_steps=6, save_top_k=-1)
        stopped = fit(folder, 13, data_of(folder, **options), callbacks=[keep], **limits)
        assert stopped.losses == truth.losses[:13], number
        for step in (6, 12):
            again = fit(folder, 20, data_of(folder, **options), folder / f"{number}/step={step}.ckpt", **limits)
            assert again.losses == truth.losses[step:] and again.rows == truth.rows[4 * step:], (number, step)
        if "validation" in options:
            assert len(again.val_losses) in (6, 9, 12) and stopped.val_losses[:3] != again.val_losses[-3:]


def epochs_of_the_trainer_are_not_lost_in_silence(folder):
    n_batches = len(tokmap.Loader(folder / "train", **grouped(**OPTIONS, max_epochs=1)))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        module = fit(folder, -1, data_of(folder, max_epochs=1), kind=WithoutValidation, max_epochs=2)
    assert len(module.losses) == n_batches
    texts = [str(one.message) for one in found]
    assert sum("this epoch of the Trainer has no batches" in text for text in texts) == 1, texts
    assert not any("val_dataloader" in text for text in texts), texts
    module = fit(folder, -1, data_of(folder), max_epochs=3, overfit_batches=2)
    assert len(module.rows) == 24 and module.rows[:8] == module.rows[8:16] == module.rows[16:]


def a_step_that_failed_is_repeated(folder):
    truth = fit(folder, 12, data_of(folder))
    keep = OnExceptionCheckpoint(folder, "failed")
    assert len(fit(folder, 12, data_of(folder), callbacks=[keep], fail_at=9).losses) == 9
    again = fit(folder, 12, data_of(folder), folder / "failed.ckpt")
    assert again.rows == truth.rows[9 * 4:] and again.losses == truth.losses[9:]


class Ranks(Module):
    def on_train_end(self):
        with open(f"{self.trainer.default_root_dir}/rank{self.global_rank}.json", "w") as f:
            json.dump(self.rows, f)


def ranks_are_those_of_the_trainer(folder):
    truth = fit(folder, 20, data_of(folder))
    options = dict(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
                   default_root_dir=folder)
    data = tokmap.lightning.DataModule(folder / "train", 32, batch_rows=2, seed=3)
    keep = ModelCheckpoint(folder, "{step}", every_n_train_steps=6)
    tempfile.tempdir = str(folder)  # its processes leave files behind
    lightning.Trainer(max_steps=6, devices=2, strategy="ddp_fork", callbacks=[keep], **options).fit(Ranks(), data)
    tempfile.tempdir = None
    halves = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]
    rows = [row for i in range(0, 12, 2) for half in halves for row in half[i:i + 2]]
    assert rows == truth.rows[:24]
    again = Module()
    lightning.Trainer(max_steps=20, devices=1, **options).fit(again, data_of(folder), ckpt_path=folder / "step=6.ckpt")
    assert again.rows == truth.rows[24:]


if __name__ == "__main__":
    sys.exit(run_checks("lightning_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.huggingface in Trainer, and tokmap in a loop with accelerate: losses after a resume are those of a run that
was not stopped, and what was trained on is not read again."""

import json
import pathlib
import subprocess
import sys

from frameworks import loss_of, make_gpt, need, run_checks, take

if __name__ == "__main__":
    need("huggingface", "torch", "transformers", "accelerate")
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import tokmap  # noqa: E402
import tokmap.huggingface  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def model():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=257, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2))


class Counted(tokmap.huggingface.CausalLMDataset):
    n_read = 0

    def __getitem__(self, sample):
        self.n_read += 1
        return super().__getitem__(sample)


def train(folder, name, n_steps, resume=None, stop_at=None, **options):
    data = Counted(folder / "train", sequence_length=33, seed=3)
    arguments = transformers.TrainingArguments(
        str(folder / name), max_steps=n_steps, per_device_train_batch_size=4, logging_steps=1, save_steps=5,
        report_to=[], disable_tqdm=True, use_cpu=True, train_sampling_strategy="sequential", **options)

    class Stop(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            control.should_training_stop |= state.global_step == stop_at

    trainer = transformers.Trainer(model(), arguments, train_dataset=data, callbacks=[Stop()])
    trainer.train(resume_from_checkpoint=resume)
    entries = [entry for entry in trainer.state.log_history if "loss" in entry]
    return {entry["step"]: (entry["loss"], entry["grad_norm"]) for entry in entries}, data.n_read


def trainer_resumes_with_the_same_losses(folder):
    for options in ({}, {"gradient_accumulation_steps": 2}, {"dataloader_num_workers": 2}):
        truth, _ = train(folder, "a", 16, **options)
        train(folder, "b", 16, stop_at=8, **options)
        again, n_read = train(folder, "b", 16, str(folder / "b/checkpoint-5"), **options)
        assert len(truth) == 16 and {step: truth[step] for step in range(6, 17)} == \
            {step: again[step] for step in range(6, 17)}, options
        assert n_read <= 13 * 4 * options.get("gradient_accumulation_steps", 1), n_read  # 11 steps, and a little ahead


def rows_have_the_expected_shape(folder):
    plain = tokmap.Samples(folder / "train", 32, seed=3)
    data = tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, seed=3)
    for outputs in (("inputs",), ("inputs", "labels", "loss_mask")):  # whose mask the model would not see
        try:
            tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, outputs=outputs)
        except ValueError as error:
            assert "mask_labels" in str(error)
            continue
        raise AssertionError(outputs)
    llama = model()
    for i in range(20):
        row, wanted = data[i], plain[i]
        assert row["input_ids"].tolist() == [*wanted["inputs"], wanted["labels"][-1]] and row["labels"][0] == -100
        assert row["labels"][1:].tolist() == wanted["labels"].tolist() and row["labels"].dtype == np.int64
        logits = llama(torch.from_numpy(wanted["inputs"])[None]).logits[0]
        expected = torch.nn.functional.cross_entropy(logits, torch.from_numpy(wanted["labels"]))
        batch = transformers.default_data_collator([row])
        torch.testing.assert_close(llama(**batch).loss, expected)  # the model shifts as we mean it


def only_labels_are_masked(folder):
    with tokmap.Writer(folder / "many", vocab_size=1000) as w:
        for i in range(90):
            w.document(range(10 * i, 10 * i + 2 + i % 8))
    outputs, tokens = ("inputs", "labels", "position_ids"), tokmap.open(folder / "many").tokens()
    for windows, wraps in (("concat", False), ("concat", True), ("within-document", False)):
        for length in (2, 3, 5, 8):
            options = dict(seed=4, windows=windows, random_offset=wraps, pad_id=999, outputs=outputs)
            plain = tokmap.Loader(folder / "many", length - 1, max_epochs=1, **options)
            data = tokmap.huggingface.CausalLMDataset(folder / "many", length, mask_labels=True, **options)
            assert len(data) == plain.n_samples
            for i, got in enumerate(data):
                _, _, _, _, first, n = plain.locate(i)
                wanted = tokens.take(range(first, first + n), mode="wrap").astype(np.int64)
                positions = []  # from 0 in each row and document
                for token in wanted:
                    positions.append(0 if not positions or token % 10 == 0 else positions[-1] + 1)
                assert got["input_ids"].tolist() == [*wanted, *[999] * (length - n)], (windows, length, i, got)
                assert got["position_ids"].tolist() == [*positions, *range(length - n)], (windows, length, i, got)
                labels = [-100 if k == 0 or positions[k] == 0 else wanted[k] for k in range(n)]
                assert got["labels"].tolist() == [*labels, *[-100] * (length - n)], (windows, length, i, got)
    try:
        tokmap.huggingface.CausalLMDataset(folder / "many", 8, ignore_index=-1)
    except ValueError as error:
        assert "-100" in str(error)
    else:
        raise AssertionError("ignore_index")
    try:  # the labels of a slice are not the next inputs
        tokmap.huggingface.CausalLMDataset(folder / "many", 9, cp_size=2, cp_mode="zigzag")
    except ValueError as error:
        assert "cp_size" in str(error)
    else:
        raise AssertionError("cp_size")


def pieces_of_a_row_are_separate(folder):
    with tokmap.Writer(folder / "pieces", vocab_size=1000) as w:
        for n in (2, 2, 9, 3, 31, 2, 17, 8, 2):
            w.document(range(n))  # an id is its position
    outputs = ("inputs", "labels", "position_ids")
    for length, align in ((8, 1), (8, 7), (16, 1), (16, 5), (65, 1), (65, 64)):
        data = tokmap.huggingface.CausalLMDataset(folder / "pieces", length, windows="best_fit", align=align, shuffle="none",
                                                  whole_documents="drop", pad_id=999, outputs=outputs)
        for i, got in enumerate(data):
            wanted, pieces = [*range(length)], data._loader.pieces(i)
            for piece in pieces:
                wanted[piece.place:] = range(length - piece.place)
            n = pieces[-1].place + pieces[-1].n_tokens  # what follows is padding
            assert got["position_ids"][:n].tolist() == wanted[:n], (length, align, i, got)
            assert all(token in (position, 999) for token, position in zip(got["input_ids"][:n], wanted)), got
            labels = [token if token == position > 0 else -100 for token, position in zip(got["input_ids"], wanted)]
            assert got["labels"].tolist() == labels, (length, align, i, got)


def documents_of_a_row_are_separate(folder):
    data = tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, mask_labels=True, shuffle="none",
                                              outputs=("inputs", "labels", "position_ids"))
    llama = model()
    n = 0
    for row in data:
        starts = np.flatnonzero(row["position_ids"] == 0)
        if 5 < starts[-1] < 28:
            batch = transformers.default_data_collator([row])
            whole = llama(input_ids=batch["input_ids"], position_ids=batch["position_ids"], use_cache=False).logits[0]
            alone = llama(batch["input_ids"][:, starts[-1]:]).logits[0]
            torch.testing.assert_close(whole[starts[-1]:], alone)
            assert row["labels"][starts[-1]] == -100
            n += 1
    assert n > 3


RANK = """
import sys
sys.path[:0] = {path!r}
import check_huggingface as check
check.run_rank({folder!r})
"""


def run_rank(place):
    """One of two ranks: trains for 6 steps, and writes down what it was given."""
    rows = []

    def collate(batch):
        rows.append([row["input_ids"].tolist() for row in batch])
        return transformers.default_data_collator(batch)

    data = tokmap.huggingface.CausalLMDataset(pathlib.Path(place) / "train", sequence_length=33, seed=3)
    arguments = transformers.TrainingArguments(
        f"{place}/ranks", max_steps=6, per_device_train_batch_size=2, report_to=[], disable_tqdm=True, use_cpu=True,
        ddp_backend="gloo", save_steps=6, train_sampling_strategy="sequential")
    transformers.Trainer(model(), arguments, train_dataset=data, data_collator=collate).train()
    pathlib.Path(place, f"rank{arguments.process_index}.json").write_text(json.dumps(rows[:6]))


def ranks_share_a_step(folder):
    truth = take(24, tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, seed=3))
    (folder / "rank.py").write_text(RANK.format(path=sys.path, folder=str(folder)))
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
                           "--log-dir", folder / "log", folder / "rank.py"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-1500:]
    ranks = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]
    got = [row for step in zip(*ranks) for rows in step for row in rows]
    assert got == [row["input_ids"].tolist() for row in truth]


def accelerate_saves_and_loads_the_loader(folder):
    def run(n_steps, load=None):
        accelerator = Accelerator(cpu=True)
        gpt, optimizer = accelerator.prepare(*make_gpt())
        loader = tokmap.Loader(folder / "train", 32, 4, seed=3, framework="torch", rank=accelerator.process_index,
                               n_ranks=accelerator.num_processes)
        accelerator.register_for_checkpointing(loader)
        if load:
            accelerator.load_state(load)
        losses = []
        for batch in take(n_steps, loader):
            loss = loss_of(gpt, batch.inputs, batch.labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        accelerator.save_state(str(folder / f"state{n_steps}"))
        return losses

    truth = run(15)
    assert run(6) == truth[:6] and run(9, str(folder / "state6")) == truth[6:]


def accelerate_skips_what_was_trained_on(folder):
    data = Counted(folder / "train", sequence_length=33, seed=3)
    accelerator = Accelerator(cpu=True)
    loader = accelerator.prepare(DataLoader(data, batch_size=4))
    truth = take(12, loader)
    data.n_read = 0
    got = take(7, accelerator.skip_first_batches(loader, 5))
    assert data.n_read <= 8 * 4
    assert all((a["input_ids"] == b["input_ids"]).all() for a, b in zip(got, truth[5:]))


if __name__ == "__main__":
    sys.exit(run_checks("huggingface_"))

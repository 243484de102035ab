#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.huggingface in Trainer, TRL and accelerate, and tokmap in a loop with accelerate: losses after a resume are those
of a run that was not stopped, on another number of ranks too, and what was trained on is not read again."""

import json
import pathlib
import subprocess
import sys
import warnings

from frameworks import loss_of, make_gpt, need, run_checks, take
from grouped import grouped

if __name__ == "__main__":
    need("huggingface", "torch", "transformers", "accelerate")
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from accelerate import Accelerator, DataLoaderConfiguration  # noqa: E402
from ref_protocol import Skip  # noqa: E402
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


class Stop(transformers.TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **_):
        control.should_training_stop |= state.global_step == self.step


def arguments_of(place, n_steps, **options):
    return transformers.TrainingArguments(str(place), **{
        "max_steps": n_steps, "per_device_train_batch_size": 4, "logging_steps": 1, "save_steps": 5, "report_to": [],
        "disable_tqdm": True, "use_cpu": True, "train_sampling_strategy": "sequential", **options})


def train(folder, name, n_steps, resume=None, stop_at=None, data=None, logs=False, **options):
    """Losses by step, and how many rows were read; logs: with a Callback of tokmap."""
    data = data or Counted(folder / "train", sequence_length=33, seed=3)
    n_read = 0

    def collate(rows):
        nonlocal n_read
        n_read += len(rows)
        return transformers.default_data_collator(rows)

    callbacks = [Stop(stop_at)] + ([tokmap.huggingface.Callback(data)] if logs else [])
    trainer = transformers.Trainer(model(), arguments_of(folder / name, n_steps, **options), train_dataset=data,
                                   callbacks=callbacks, data_collator=collate)
    trainer.train(resume_from_checkpoint=resume)
    entries = [entry for entry in trainer.state.log_history if "loss" in entry]
    if logs:
        n_rows = 4 * options.get("gradient_accumulation_steps", 1)
        read_ahead = 4 if isinstance(data, tokmap.huggingface.IterableDataset) and "dataloader_num_workers" not in options else 0
        for entry in entries:
            at = entry["step"] * n_rows
            assert entry["tokmap/position"] in (at, at + read_ahead) and entry["tokmap/samples/0"] >= at, entry
            assert entry["tokmap/epochs/0"] > 0 and "tokmap/bytes_read" in entry
    return {entry["step"]: (entry["loss"], entry["grad_norm"]) for entry in entries}, data.n_read if isinstance(data, Counted) else n_read


def trainer_resumes_with_the_same_losses(folder):
    for options in ({}, {"gradient_accumulation_steps": 2}, {"dataloader_num_workers": 2}):
        truth, _ = train(folder, "a", 16, **options)
        train(folder, "b", 16, stop_at=8, **options)
        again, n_read = train(folder, "b", 16, str(folder / "b/checkpoint-5"), **options)
        assert len(truth) == 16 and {step: truth[step] for step in range(6, 17)} == \
            {step: again[step] for step in range(6, 17)}, options
        assert n_read <= 13 * 4 * options.get("gradient_accumulation_steps", 1), n_read  # 11 steps, and a little ahead


def stream(folder, **options):
    return tokmap.huggingface.IterableDataset(folder / "train", **grouped(sequence_length=33, seed=3, **options))


def a_stream_resumes_with_the_same_losses(folder):
    truth, _ = train(folder, "map", 16, logs=True)
    for options in ({}, {"gradient_accumulation_steps": 2}, {"dataloader_num_workers": 1}):
        for logs in (True, False):  # without the callback the Trainer reads and skips
            whole, _ = train(folder, "a", 16, data=stream(folder), logs=logs, **options)
            assert whole == truth or "gradient_accumulation_steps" in options
            train(folder, "b", 16, data=stream(folder), stop_at=8, logs=logs, **options)
            again, n_read = train(folder, "b", 16, str(folder / "b/checkpoint-5"), data=stream(folder), logs=logs, **options)
            assert {step: whole[step] for step in range(6, 17)} == {step: again[step] for step in range(6, 17)}, options
            assert not logs or n_read <= 13 * 4 * options.get("gradient_accumulation_steps", 1), n_read
    try:
        train(folder, "b", 16, str(folder / "b/checkpoint-5"), data=stream(folder), logs=True)
    except ValueError as error:
        assert "without tokmap.huggingface.Callback" in str(error)
    else:
        raise AssertionError("a checkpoint without a state")


def ids(rows):
    return [row["input_ids"].tolist() for row in rows]


def shards_of_a_stream_are_its_samples(folder):
    truth = ids(tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, seed=3, max_epochs=2))
    data = stream(folder, max_epochs=2)
    assert ids(data) == truth and ids(data) == truth  # each iteration begins at the same place
    whole, parts = iter(data), [iter(data.shard(3, rank)) for rank in range(3)]
    data.set_epoch(0)
    assert ids(take(6, whole)) == truth[:6] and [ids(take(2, part)) for part in parts] == [
        truth[rank:6:3] for rank in range(3)]
    shard = data.shard(3, 1).shard(2, 1)  # samples 4, 10, ...
    assert ids(take(2, shard)) == [truth[4], truth[10]]
    states = [data.shard(3, rank) for rank in range(3)]
    for one in states:
        take(2, one)
    assert len({one.state_dict()["state"] for one in states}) == 1 and states[0].state_dict()["sample"] == 6
    states[2].load_state_dict(states[0].state_dict())
    assert ids(take(1, states[2]) + take(1, states[1]) + take(1, data)) == [truth[8], truth[1], truth[0]]
    take(2, states[1])
    other = stream(folder, max_epochs=2)
    other.load_state_dict(states[1].state_dict())
    assert other.state_dict() == states[1].state_dict() and ids(take(4, other.shard(2, 1))) == truth[7:14:2]
    assert ids(take(2, other.with_format("torch"))) == truth[6:8]  # as the library does it
    loader = tokmap.Loader(folder / "train", 32, 4, seed=3, max_epochs=2)
    loader.load_state_dict(states[0].state_dict())
    assert next(loader).first_sample == 6
    given = tokmap.huggingface.IterableDataset(loader, 33)
    assert ids(take(2, given)) == truth[10:12]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        data.set_epoch(1)
    assert any("leaves the order alone" in str(one.message) for one in found) and ids(take(2, data)) == truth[:2]


def refused(says, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except (RuntimeError, TypeError, ValueError) as error:
        assert says in str(error), error
        return
    raise AssertionError(says)


def what_would_change_a_stream_is_refused(folder):
    data = stream(folder)
    for name in ("map", "filter", "shuffle", "select_columns"):
        refused("skip_prepare_dataset", getattr(data, name), print)
    refused("ranks", stream, folder, rank=0, n_ranks=2)
    refused("batch_schedule", stream, folder, batch_schedule=[(10, 4)])
    refused("micro_batches", stream, folder, micro_batches=2)
    refused("mask_labels", stream, folder, outputs=("inputs", "labels", "loss_mask"))
    refused("num_workers", lambda: next(iter(DataLoader(data, batch_size=4, num_workers=2))))
    refused("max_epochs", train, folder, "end", 10000, data=stream(folder, max_epochs=1), logs=True)
    other = tokmap.huggingface.Callback(data)
    refused("and not the dataset of this callback", transformers.Trainer(
        model(), arguments_of(folder / "other", 2), callbacks=[other], train_dataset=Counted(
            folder / "train", sequence_length=33, seed=3)).train)


def a_stream_of_a_mixture_with_skips_resumes(folder):
    def run(name, n_rows, n_steps, resume=None):
        data, seen = tokmap.huggingface.IterableDataset(sources, 33, seed=5, order=tokmap.Order(skip=[(6, 10), (30, 33)])), []

        def collate(rows):
            seen.extend(ids(rows))
            return transformers.default_data_collator(rows)

        arguments = arguments_of(folder / name, n_steps, save_steps=2, per_device_train_batch_size=n_rows)
        transformers.Trainer(model(), arguments, train_dataset=data, data_collator=collate, callbacks=[
            tokmap.huggingface.Callback(data)]).train(resume_from_checkpoint=resume)
        return seen[1:]  # the callback tries one

    sources = [(folder / "train", 0.7), (folder / "val", 0.3)]
    loader = tokmap.Loader(sources, 32, 8, seed=5, order=tokmap.Order(skip=[(6, 10), (30, 33)]))
    truth = [row.tolist() for batch in take(4, loader) for row in batch.inputs]
    assert [row[:-1] for row in run("whole", 4, 8)[:32]] == truth
    run("part", 4, 2)
    assert [row[:-1] for row in run("part", 8, 5, str(folder / "part/checkpoint-2"))[:24]] == truth[8:]


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
    ds, outputs = tokmap.open(folder / "many"), ("inputs", "labels", "position_ids")
    tokens = ds.tokens()
    for windows, wraps, part in (("concat", False, None), ("concat", True, None), ("concat", True, (17, 60)),
                                 ("within_document", False, None)):
        source = tokmap.Source(folder / "many", documents=part)
        begin, last = (ds.document(i) for i in ((0, 89) if part is None else (part[0], part[1] - 1)))
        begin, end = begin.first_token, last.first_token + last.n_tokens
        for length in (2, 3, 5, 8):
            options = dict(seed=4, windows=windows, random_offset=wraps, pad_id=999, outputs=outputs)
            plain = tokmap.Loader([source], length - 1, **grouped(max_epochs=1, **options))
            data = tokmap.huggingface.CausalLMDataset([source], length, **grouped(mask_labels=True, **options))
            assert len(data) == plain.n_samples
            for i, got in enumerate(data):
                _, _, _, _, first, n = plain.locate(i)
                wanted = tokens[begin:end].take(range(first - begin, first - begin + n), mode="wrap").astype(np.int64)
                positions = []  # from 0 in each row and document
                for token in wanted:
                    positions.append(0 if not positions or token % 10 == 0 else positions[-1] + 1)
                assert got["input_ids"].tolist() == [*wanted, *[999] * (length - n)], (windows, length, i, got)
                assert got["position_ids"].tolist() == [*positions, *range(length - n)], (windows, length, i, got)
                labels = [-100 if k == 0 or positions[k] == 0 else wanted[k] for k in range(n)]
                assert got["labels"].tolist() == [*labels, *[-100] * (length - n)], (windows, length, i, got)
    try:
        tokmap.huggingface.CausalLMDataset(folder / "many", 8, rows=tokmap.Rows(ignore_index=-1))
    except ValueError as error:
        assert "-100" in str(error)
    else:
        raise AssertionError("ignore_index")
    try:  # the labels of a slice are not the next inputs
        tokmap.huggingface.CausalLMDataset(folder / "many", 9, ranks=tokmap.Ranks(cp_size=2, cp_mode="zigzag"))
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
        data = tokmap.huggingface.CausalLMDataset(folder / "pieces", length, windows="best_fit", rows=tokmap.Rows(align=align, whole_documents="drop", pad_id=999), shuffle="none", outputs=outputs)
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
    data = tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, rows=tokmap.Rows(mask_labels=True),
                                              shuffle="none",
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
check.{function}({folder!r}, **{options!r})
"""


def run_ranks(folder, n_ranks, function, **options):
    """Runs a function of this script in n_ranks processes. Returns what they wrote, or their error."""
    (folder / "rank.py").write_text(RANK.format(path=sys.path, folder=str(folder), function=function, options=options))
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={n_ranks}",
                           "--log-dir", folder / "log", folder / "rank.py"], capture_output=True, text=True, timeout=200)
    if done.returncode != 0:
        return done.stderr
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(n_ranks)]


def run_rank(place, n_rows=2, n_steps=6, save_steps=6, resume=None, is_stream=False, **options):
    """One of several ranks: trains for some steps, and writes down what it was given for each."""
    rows = []

    def collate(batch):
        rows.append([row["input_ids"].tolist() for row in batch])
        return transformers.default_data_collator(batch)

    place, callbacks = pathlib.Path(place), []
    data = tokmap.huggingface.CausalLMDataset(place / "train", sequence_length=33, seed=3)
    if is_stream:
        data = stream(place)
        callbacks = [tokmap.huggingface.Callback(data)]
    arguments = arguments_of(place / "ranks", n_steps, per_device_train_batch_size=n_rows, ddp_backend="gloo",
                             save_steps=save_steps, **options)
    trainer = transformers.Trainer(model(), arguments, train_dataset=data, data_collator=collate, callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resume and str(place / "ranks" / resume))
    rows = rows[1:] if is_stream else rows  # the callback tries one
    (place / f"rank{arguments.process_index}.json").write_text(json.dumps(rows))


def ranks_share_a_step(folder):
    truth = ids(take(24, tokmap.huggingface.CausalLMDataset(folder / "train", sequence_length=33, seed=3)))
    ranks = run_ranks(folder, 2, "run_rank")
    assert [row for step in list(zip(*ranks))[:6] for rows in step for row in rows] == truth


def a_stream_goes_on_with_other_ranks(folder):
    truth = [tuple(row) for row in ids(take(40, stream(folder)))]
    options = {"is_stream": True, "accelerator_config": {"dispatch_batches": False}}
    at = 0
    for n_ranks, n_rows, n_batches, steps, resume in ((2, 2, 1, (0, 3), None), (3, 1, 2, (3, 5), "checkpoint-3"),
                                                      (1, 3, 1, (5, 8), "checkpoint-5")):
        ranks = run_ranks(folder, n_ranks, "run_rank", n_rows=n_rows, n_steps=steps[1], save_steps=1, resume=resume,
                          gradient_accumulation_steps=n_batches, **options)
        assert isinstance(ranks, list), ranks[-1500:]
        for first in range(0, (steps[1] - steps[0]) * n_batches, n_batches):
            got = [tuple(row) for rank in ranks for batch in rank[first:first + n_batches] for row in batch]
            n = n_ranks * n_rows * n_batches
            assert sorted(got) == sorted(truth[at:at + n]), (n_ranks, first)
            at += n
    for says, wrong in (("set dispatch_batches=False", {}), (
            "with split_batches=False", {"accelerator_config": {"dispatch_batches": False, "split_batches": True}})):
        error = run_ranks(folder, 2, "run_rank", is_stream=True, **wrong)
        assert isinstance(error, str) and says in error, error


def prepare_rank(place, n_rows, n_batches, load):
    """One of several ranks, with accelerate: prepare, batches, save_state."""
    place, rows = pathlib.Path(place), []
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(
        dispatch_batches=False, use_stateful_dataloader=True))
    loader = accelerator.prepare(DataLoader(stream(place), batch_size=n_rows))
    if load:
        accelerator.load_state(place / "state")
    for batch in take(n_batches, loader):
        rows.append(batch["input_ids"].tolist())
    accelerator.wait_for_everyone()  # as a step of training does: a slow rank may still load
    accelerator.save_state(place / "state")
    (place / f"rank{accelerator.process_index}.json").write_text(json.dumps(rows))


def accelerate_prepares_and_saves_a_stream(folder):
    truth, at = [tuple(row) for row in ids(take(40, stream(folder)))], 0
    for n_ranks, n_rows, n_batches in ((2, 3, 2), (1, 4, 2), (3, 2, 1)):
        ranks = run_ranks(folder, n_ranks, "prepare_rank", n_rows=n_rows, n_batches=n_batches, load=at > 0)
        assert isinstance(ranks, list), ranks[-1500:]
        for k in range(n_batches):
            got = [tuple(row) for rank in ranks for row in rank[k]]
            assert sorted(got) == sorted(truth[at:at + n_ranks * n_rows]), (n_ranks, k)
            at += n_ranks * n_rows


def plain_rank(place):
    """One of several ranks, with accelerate and a DataLoader that has its share already."""
    accelerator, place = Accelerator(cpu=True), pathlib.Path(place)
    data = tokmap.torch.IterableDataset(place / "train", 32, 4, seed=3)
    loader = accelerator.prepare(tokmap.torch.data_loader(data))
    (place / f"rank{accelerator.process_index}.json").write_text(json.dumps([batch["inputs"].tolist() for batch in take(3, loader)]))


def accelerate_leaves_a_loader_as_it_is(folder):
    ranks = run_ranks(folder, 2, "plain_rank")
    assert isinstance(ranks, list), ranks[-1500:]
    for rank in range(2):
        loader = tokmap.Loader(folder / "train", 32, 4, seed=3, ranks=tokmap.Ranks(rank=rank, n_ranks=2))
        assert ranks[rank] == [batch.inputs.tolist() for batch in take(3, loader)]


def trl_trains_and_resumes(folder):
    try:
        import trl
    except ImportError as error:
        raise Skip(str(error)) from None
    import tokenizers

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<eos>": 0}, unk_token="<eos>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<eos>", pad_token="<eos>")

    def sft(name, resume=None, stop_at=None, data=None, logs=True, skip=True, **options):
        data = data or stream(folder)
        arguments = trl.SFTConfig(str(folder / name), max_steps=8, per_device_train_batch_size=4, logging_steps=1,
                                  save_steps=3, report_to=[], disable_tqdm=True, use_cpu=True, bf16=False,
                                  dataset_kwargs={"skip_prepare_dataset": skip}, **options)
        trainer = trl.SFTTrainer(model(), arguments, train_dataset=data, processing_class=tokenizer, callbacks=[
            Stop(stop_at), tokmap.huggingface.Callback(data)], data_collator=options.get("remove_unused_columns") is False
                                 and transformers.default_data_collator or None)
        trainer.train(resume_from_checkpoint=resume)
        return {entry["step"]: (entry["loss"], entry["grad_norm"]) for entry in trainer.state.log_history if "loss" in entry}

    with_positions = {"outputs": ("inputs", "labels", "position_ids"), "mask_labels": True}
    for options, data in (({}, {}), ({"remove_unused_columns": False}, with_positions)):
        truth = sft("sft", data=stream(folder, **data), **options)
        sft("sft2", stop_at=4, data=stream(folder, **data), **options)
        again = sft("sft2", str(folder / "sft2/checkpoint-3"), data=stream(folder, **data), **options)
        assert len(truth) == 8 and again == {**{step: again[step] for step in range(1, 4)}, **{step: truth[step] for step in range(4, 9)}}
    refused("the collator drops position_ids", sft, "sft3", data=stream(folder, **with_positions))
    refused("skip_prepare_dataset", sft, "sft4", skip=False)


def accelerate_saves_and_loads_the_loader(folder):
    def run(n_steps, load=None):
        accelerator = Accelerator(cpu=True)
        gpt, optimizer = accelerator.prepare(*make_gpt())
        loader = tokmap.Loader(folder / "train", 32, 4, seed=3, framework="torch",
                               ranks=tokmap.Ranks(rank=accelerator.process_index, n_ranks=accelerator.num_processes))
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

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.torch in DataLoader, StatefulDataLoader and torch.distributed.checkpoint."""

import gc
import pickle
import random
import sys
import unittest.mock

from frameworks import need, redact, run_checks, take
from grouped import grouped

if __name__ == "__main__":
    need("torch", "torch", "torchdata")
import torch  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler  # noqa: E402
from torchdata.stateful_dataloader import StatefulDataLoader  # noqa: E402

import tokmap  # noqa: E402
import tokmap.torch  # noqa: E402

OPTIONS = dict(sequence_length=64, batch_rows=4, seed=3)


def dataset_of(folder, **options):
    return tokmap.torch.IterableDataset(folder / "train", **grouped(**{**OPTIONS, **options}))


def over(dataset, n_workers, kind=DataLoader, **options):
    context = {"multiprocessing_context": options.pop("context", "fork")} if n_workers else {}
    if kind is DataLoader:
        return tokmap.torch.data_loader(dataset, num_workers=n_workers, **context, **options)
    return kind(dataset, batch_size=None, num_workers=n_workers, **context, **options)


def expect_same(got, wanted):
    assert len(got) == len(wanted), (len(got), len(wanted))
    for a, b in zip(got, wanted):
        assert type(a["inputs"]) is torch.Tensor and a["inputs"].dtype == torch.int64
        assert (a["inputs"].numpy() == b.inputs).all() and (a["labels"].numpy() == b.labels).all()
        assert a["state"]["sample"] == b.next_sample and bytes.fromhex(a["state"]["state"]) == b.state


def a_changed_run_goes_on(folder):
    sources = [(folder / "train", 1.0), (folder / "val", 2.0)]
    ledger = folder / "run.ledger"
    dataset = dataset_of(folder, ledger=ledger)
    for n_workers in (0, 2):
        ledger.unlink(missing_ok=True)
        state = take(5, over(dataset, n_workers))[-1]["state"]
        for options in ({"amend_from": {"weights": [1]}}, {"ledger": ledger}):
            truth = tokmap.Loader(sources, **grouped(**OPTIONS, amend=bytes.fromhex(state["state"]), amend_from={"weights": [1]}))
            truth = take(20, truth)
            for kind in (DataLoader, StatefulDataLoader):
                changed = tokmap.torch.IterableDataset(sources, **grouped(on_mismatch="amend", **OPTIONS, **options))
                changed.load_state_dict(state)
                expect_same(take(20, over(changed, n_workers, kind)), truth)
        gc.collect()
        events = [line.event for line in tokmap._loader.ledger.read(ledger) if line.event != "closed"]
        assert events == ["opened", "amended", "resumed"][:2 + (n_workers == 0)], events
        assert tokmap.Run(ledger, until=truth[-1].state).n_steps == 25


def a_run_goes_on_with_redacted_data(folder):
    source, n_others = redact(folder), 0
    for n_workers, options in ((0, {}), (2, {}), (2, {"context": "spawn"})):
        first = tokmap.Loader(folder / "train", **grouped(**OPTIONS))
        state = take(5, over(dataset_of(folder), n_workers, **options))[-1]["state"]
        first.load_state_dict(state)
        redacted = tokmap.torch.IterableDataset(source, **grouped(**OPTIONS))
        redacted.load_state_dict(state)
        for got, wanted in zip(take(100, over(redacted, n_workers, **options)), first):
            assert got["state"]["state"] == wanted.state.hex()
            others = (got["inputs"].numpy() != wanted.inputs).any(axis=1) | (got["labels"].numpy() == -100).any(axis=1)
            assert (got["labels"].numpy() == wanted.labels)[~others].all()
            n_others += others.sum()
    assert 0 < n_others < 300 * OPTIONS["batch_rows"]
    other = tokmap.torch.IterableDataset(folder / "redacted", **grouped(**OPTIONS))
    other.load_state_dict(state)
    try:
        next(iter(over(other, 0)))
    except tokmap.MismatchError as error:
        assert f'give order_of="{source.order_of[0]}"' in str(error), error
        return
    raise AssertionError("a state of another order was taken")


def the_order_is_the_same_for_any_number_of_workers(folder):
    for options in (dict(max_epochs=1), dict(max_epochs=2, drop_last=False), dict(rank=1, n_ranks=3, max_epochs=1),
                    dict(rank=1, n_ranks=3, max_epochs=1, drop_last=False, batch_schedule=[(30, 18), (100, 6), (150, 24)]),
                    dict(max_epochs=1, skip=[(3, 50), (90, 91)], batch_schedule=[(60, 3)]), {}):
        truth = take(500, tokmap.Loader(folder / "train", **grouped(**OPTIONS, **options)))
        dataset = dataset_of(folder, **options)
        assert not options or len(dataset) == len(truth)
        for n_workers in (0, 1, 2, 3, 5):
            expect_same(take(500, over(dataset, n_workers)), truth)
    loader = over(dataset, 2, context="spawn", persistent_workers=True)
    for _ in range(2):  # each iteration begins at the same place
        expect_same(take(20, loader), truth[:20])
    ramp = dataset_of(folder, ledger=folder / "ramp.ledger", batch_schedule=[(60, 6)])
    for call, kind, word in ((lambda: len(dataset), TypeError, "max_epochs"),
                             (lambda: tokmap.torch.data_loader(dataset, batch_size=8), TypeError, "batch_rows"),
                             (lambda: tokmap.torch.data_loader(dataset, in_order=False), ValueError, "in_order"),
                             (lambda: iter(over(ramp, 2)), ValueError, "batch_schedule")):
        try:
            call()
        except kind as error:
            assert word in str(error)
            continue
        raise AssertionError(word)


def all_outputs_pass_through_workers(folder):
    outputs = ["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
    truth = take(30, tokmap.Loader(folder / "train", **grouped(**OPTIONS, outputs=outputs)))
    for n_workers in (0, 2):
        for got, wanted in zip(over(dataset_of(folder, outputs=outputs), n_workers), truth):
            assert list(got) == [*outputs, "max_seqlen", "state"] and got["max_seqlen"] == wanted.max_seqlen
            assert all((got[name].numpy() == wanted[name]).all() for name in outputs)


TENSORS = {**OPTIONS, "framework": "torch"}


def check_in_fork(folder, truth):
    expect_same([{"inputs": b.inputs, "labels": b.labels, "state": {"sample": b.next_sample, "state": b.state.hex()}}
                 for b in take(20, tokmap.Loader(folder / "train", **grouped(**TENSORS)))], truth)


def workers_and_forked_processes_do_not_pin_memory(folder):
    """PyTorch keeps free pinned memory, which a process has in common with its forks: they would write over each other's
    batches. Without a GPU, PyTorch cannot pin memory at all."""
    has_gpu, truth = torch.cuda.is_available(), take(20, tokmap.Loader(folder / "train", **grouped(**OPTIONS)))
    with unittest.mock.patch("torch.cuda.is_available", lambda: True):
        try:
            pinned = take(5, tokmap.Loader(folder / "train", **grouped(**TENSORS)))
            assert has_gpu and all(batch.inputs.is_pinned() for batch in pinned)
            del pinned  # now it is free
        except RuntimeError:
            assert not has_gpu
        for n_workers in (1, 2):
            expect_same(take(20, over(dataset_of(folder), n_workers)), truth)
        child = torch.multiprocessing.get_context("fork").Process(target=check_in_fork, args=(folder, truth))
        child.start()
        child.join()
        assert child.exitcode == 0


def the_state_of_a_batch_continues_after_it(folder):
    truth = take(60, tokmap.Loader(folder / "train", **grouped(**OPTIONS)))
    for before in (0, 1, 3):
        batch = take(17, over(dataset_of(folder), before, **({"prefetch_factor": 4} if before else {})))[-1]
        for after in (0, 1, 3):
            dataset = dataset_of(folder)
            dataset.load_state_dict(batch["state"])
            expect_same(take(43, over(dataset, after)), truth[17:])
        on_ranks = [take(2, over(dataset_of(folder, batch_rows=2, rank=rank, n_ranks=2), 0)) for rank in range(2)]
        assert on_ranks[0][1]["state"] == on_ranks[1][1]["state"] == take(2, over(dataset_of(folder), 2))[1]["state"]


def persistent_workers_begin_where_the_dataset_says(folder):
    truth = take(40, tokmap.Loader(folder / "train", **grouped(**OPTIONS)))
    for context in ("fork", "spawn"):
        for dataset in [dataset_of(folder)] + [pickle.loads(pickle.dumps(dataset_of(folder)))] * (context == "fork"):
            ours = over(dataset, 2, context=context, persistent_workers=True)
            plain = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context=context,
                               persistent_workers=True)
            for loader in (ours, plain):
                for _ in range(2):
                    expect_same(take(8, loader), truth[:8])
            dataset.load_state_dict({"state": truth[6].state.hex()})
            expect_same(take(8, ours), truth[7:15])
            expect_same(take(8, ours), truth[7:15])  # by the same workers
            try:
                take(1, plain)
            except RuntimeError as error:
                assert "data_loader" in str(error)
            else:
                raise AssertionError(context)
            batches = []
            for batch in ours:  # a state that is loaded during an iteration is that of the next one
                batches.append(batch)
                dataset.load_state_dict(batch["state"])
                if len(batches) == 10:
                    break
            expect_same(batches + take(10, ours), truth[7:27])


def stateful_data_loader_is_exact(folder):
    truth = take(60, tokmap.Loader(folder / "train", **grouped(**OPTIONS)))
    capped = list(tokmap.Loader(folder / "train", **grouped(**OPTIONS, max_epochs=1)))
    for n_workers in (0, 1, 2):
        for n_before in (0, 1, 2, 7, 20):
            loader = over(dataset_of(folder), n_workers, StatefulDataLoader)
            expect_same(take(n_before, loader), truth[:n_before])
            again = over(dataset_of(folder), n_workers, StatefulDataLoader)
            again.load_state_dict(loader.state_dict())
            expect_same(take(30, again), truth[n_before:n_before + 30])
        loader = over(dataset_of(folder, max_epochs=1), n_workers, StatefulDataLoader)
        take(len(capped) - 2, loader)
        again = over(dataset_of(folder, max_epochs=1), n_workers, StatefulDataLoader)
        again.load_state_dict(loader.state_dict())
        expect_same(list(again), capped[-2:])
        expect_same(list(again), capped)  # the next iteration


def epochs_after_a_resumed_one_are_whole(folder):
    capped = list(tokmap.Loader(folder / "train", **grouped(**OPTIONS, max_epochs=1)))
    for options in ({}, {"n_workers": 2}, {"n_workers": 2, "persistent_workers": True}):
        for n_before in (7, len(capped)):
            dataset = dataset_of(folder, max_epochs=1)
            dataset.load_state_dict({"state": capped[n_before - 1].state.hex()})
            loader = over(dataset, **{"n_workers": 0, **options})
            expect_same(list(loader), capped[n_before:])
            expect_same(list(loader), capped)
            expect_same(take(3, loader), capped[:3])
            expect_same(list(loader), capped)
            dataset.load_state_dict({"state": capped[1].state.hex()})
            expect_same(take(3, loader), capped[2:5])  # which is not the end, so that the next iteration begins there too
            expect_same(list(loader), capped[2:])


def check_resume_takes_other_loaders(folder):
    """Batches of tensors, also of bfloat16, which NumPy lacks. A DataLoader that begins anew is found."""
    def make(n_workers=0):
        torch.manual_seed(1)
        rows = [{"ids": torch.full((4,), i), "half": torch.tensor([i], dtype=torch.bfloat16)} for i in range(100)]
        return StatefulDataLoader(rows, batch_size=4, shuffle=True, num_workers=n_workers)

    class Anew(StatefulDataLoader):
        def load_state_dict(self, state):
            pass

    for loader in (make, lambda: make(2), lambda: over(dataset_of(folder), 2, StatefulDataLoader)):
        found = tokmap.check_resume(loader, steps=60, resumes=5)
        assert found.ok, str(found)
    found = tokmap.check_resume(lambda: over(dataset_of(folder), 0, Anew), steps=60, resumes=5)
    assert found.wrong[0][1:4] == (found.resumes[0], 0, "repeated"), str(found)
    half = tokmap.check_resume(lambda: Anew([torch.tensor(i, dtype=torch.bfloat16) for i in range(99)]), steps=60, resumes=5)
    assert half.wrong[0][1:4] == (half.resumes[0], 0, "repeated"), str(half)


def a_map_dataset_is_for_samplers(folder):
    truth = [row for batch in tokmap.Loader(folder / "train", 64, 1, seed=3, max_epochs=1) for row in batch.inputs]
    dataset = tokmap.torch.MapDataset(folder / "train", 64, seed=3)
    assert len(dataset) == len(truth) and isinstance(dataset, torch.utils.data.Dataset)
    for n_workers in (0, 1, 3):
        for context in ("fork", "spawn")[:1 + (n_workers == 3)]:
            with_context = {"multiprocessing_context": context} if n_workers else {}
            batches = list(DataLoader(dataset, batch_size=8, num_workers=n_workers, **with_context))
            assert torch.cat([batch["inputs"] for batch in batches]).tolist() == [row.tolist() for row in truth]
    order = list(RandomSampler(dataset, generator=torch.Generator().manual_seed(1)))
    batches = DataLoader(dataset, batch_size=1, sampler=order, num_workers=2)
    assert [b["inputs"][0].tolist() for b in batches] == [truth[i].tolist() for i in order]
    sampler = DistributedSampler(dataset, 3, 1, shuffle=False)
    batches = DataLoader(dataset, sampler=sampler)
    assert [b["inputs"][0].tolist() for b in batches] == [truth[i].tolist() for i in sampler]
    assert dataset[0]["labels"][0] == truth[0][1]
    for number in (-1, len(dataset)):
        try:
            dataset[number]
        except IndexError:
            continue
        raise AssertionError(number)


def packed_rows_have_the_loss_of_their_documents(folder):
    """A tiny transformer sees a document in a row of several as it sees it alone: forward with FlexAttention, and gradients
    with the same mask in scaled_dot_product_attention."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch.manual_seed(0)
    rng, length, width = random.Random(0), 64, 16
    documents = [[rng.randrange(50) for _ in range(rng.randint(2, length + 1))] for _ in range(60)]
    with tokmap.Writer(folder / "packed", vocab_size=50) as w:
        for document in documents:
            w.document(document)
    ids, places = torch.nn.Embedding(50, width).double(), torch.nn.Embedding(length, width).double()
    heads, head = torch.nn.Linear(width, 3 * width).double(), torch.nn.Linear(width, 50).double()
    parameters = [p for part in (ids, places, heads, head) for p in part.parameters()]

    def loss(inputs, labels, positions, in_document, flex=False):
        n_rows, n = inputs.shape
        q, k, v = (part.view(n_rows, n, 2, width // 2).transpose(1, 2)
                   for part in heads(ids(inputs) + places(positions)).split(width, dim=2))
        if flex:
            mask = create_block_mask(lambda b, h, i, j: (in_document[b, i] == in_document[b, j]) & (i >= j), n_rows, None, n, n,
                                     device="cpu")
            seen = flex_attention(q, k, v, block_mask=mask)
        else:
            mask = (in_document[:, :, None] == in_document[:, None, :]) & torch.ones(n, n).tril().bool()
            seen = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])
        out = head(seen.transpose(1, 2).reshape(n_rows, n, width))
        return torch.nn.functional.cross_entropy(out.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")

    def add_up(batches, **options):
        total = sum(loss(*batch, **options) for batch in batches)
        return total, torch.cat([g.flatten() for g in torch.autograd.grad(total, parameters)]) if not options else None

    for align in (1, 16):
        loader = tokmap.Loader(folder / "packed", length, 4, windows="best_fit", rows=tokmap.Rows(align=align),
                               framework="torch", max_epochs=1,
                               order=tokmap.Order(drop_last=False), outputs=["inputs", "labels", "position_ids", "document_ids"])
        packed = [tuple(batch) for batch in loader]
        alone = [(torch.tensor([d[:-1]]), torch.tensor([d[1:]]), torch.arange(len(d) - 1)[None], torch.zeros(1, len(d) - 1))
                 for d in documents]
        (one, gradients), (other, wanted) = add_up(packed), add_up(alone)
        assert torch.allclose(one, other, rtol=1e-12) and torch.allclose(gradients, wanted, rtol=1e-9, atol=1e-12)
        with torch.no_grad():
            assert torch.allclose(add_up(packed, flex=True)[0], other, rtol=1e-6)


def a_mesh_says_which_rows_a_rank_gets(folder):
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "cp"))
        loader = tokmap.Loader(folder / "train", 16, ranks=tokmap.Ranks(mesh=mesh, dims=("dp",),
                                                                        cp_rank=mesh.get_local_rank("cp")))
        assert (loader.rank, loader.n_ranks) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


def a_profile_has_a_range_for_each_batch(folder):
    loader = tokmap.Loader(folder / "train", **grouped(**OPTIONS, framework="torch", max_epochs=1))
    truth = [batch.inputs.tolist() for batch in take(3, loader)]
    loader.seek(0)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        assert [batch.inputs.tolist() for batch in take(3, tokmap.torch.profiled(loader, "reading"))] == truth
    assert {event.key: event.count for event in profile.key_averages()}["reading"] == 3
    assert len(list(tokmap.torch.profiled(loader))) == len(loader) - 3


def says_early(take_one):
    try:
        take_one()
    except RuntimeError as error:
        return "init_process_group" in str(error)
    return False


def run_rank(rank, n_ranks, folder, resumes, results, early):
    """One rank of a run that saves after 3 steps, or resumes there. early: a loader and a dataset of the parent."""
    early += (tokmap.Loader(folder / "train", 64), dataset_of(folder))
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/init{n_ranks}", rank=rank,
                                         world_size=n_ranks)
    loader = tokmap.Loader(folder / "train", 64, 12 // n_ranks, seed=3, framework="torch")
    assert (loader.rank, loader.n_ranks) == (rank, n_ranks)  # found
    for one in early:
        calls = [lambda: next(iter(one))]
        if not isinstance(one, tokmap.Loader):
            calls += [lambda: next(iter(over(one, 1, context=context))) for context in ("fork", "spawn")]
        assert all(says_early(call) == (n_ranks > 1) for call in calls)
    weights = torch.zeros(4)
    if resumes:
        state = {"loader": loader, "weights": weights}
        dcp.load(state, checkpoint_id=folder / "checkpoint")
        assert weights.tolist() == [7.0] * 4
        dataset = dataset_of(folder, batch_rows=12 // n_ranks)
        dcp.load({"loader": dataset}, checkpoint_id=folder / "of_a_batch")
        assert next(iter(dataset))["state"]["sample"] == 48  # the state of a batch, not of what was read ahead
    else:
        for _ in range(3):
            next(loader)
        dcp.save({"loader": loader, "weights": weights + 7}, checkpoint_id=folder / "checkpoint")
        batches = over(dataset_of(folder, batch_rows=12 // n_ranks), 2)
        dcp.save({"loader": take(3, batches)[-1]["state"]}, checkpoint_id=folder / "of_a_batch")
    got = [next(loader) for _ in range(4)]
    results.put((rank, [(b.sample_ids.tolist(), b.inputs.tolist()) for b in got]))
    torch.distributed.destroy_process_group()


def a_distributed_checkpoint_resumes_on_other_ranks(folder):
    truth = {int(s): row.tolist() for b in take(20, tokmap.Loader(folder / "train", 64, 12, seed=3))
             for s, row in zip(b.sample_ids, b.inputs)}
    context = torch.multiprocessing.get_context("spawn")
    early = (tokmap.Loader(folder / "train", 64), dataset_of(folder))
    for n_ranks, resumes in ((2, False), (1, True), (3, True)):
        results = context.SimpleQueue()
        ranks = [context.Process(target=run_rank, args=(rank, n_ranks, folder, resumes, results, early))
                 for rank in range(n_ranks)]
        for process in ranks:
            process.start()
        for process in ranks:
            process.join()
            assert process.exitcode == 0, (n_ranks, process.exitcode)
        got = {}
        for _ in ranks:
            for samples, rows in results.get()[1]:
                got.update(zip(samples, rows))
        assert got == {sample: truth[sample] for sample in range(36, 36 + 48)}, n_ranks


if __name__ == "__main__":
    sys.exit(run_checks("torch_"))

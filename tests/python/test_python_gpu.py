#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.Stage on the first GPU: what it hands out is what the Loader says, also to those who look late,
in another stream, in another thread or in a graph; PyTorch, CuPy and JAX where they are there. Skips
without a device, with the reason."""

import ctypes
import sys

import test_python_stage as stage
from ref_protocol import Skip, run_in_folders
from test_python_stage import ALL, LENGTH, ROWS, loader, need, said_by_loader, tokmap, write

A_WHILE = 3_000_000  # cycles: longer than a copy and a kernel of the stage


class Driver:
    """What a test needs of it: its context is current, and memory comes to the host."""

    def __init__(self):
        count, context = ctypes.c_uint32(), ctypes.c_void_p()
        detail = tokmap._c.structs.ErrorDetail()
        if tokmap._c.structs.lib.tokmap_stage_count_devices(ctypes.byref(count), ctypes.byref(detail)):
            raise Skip(f"no device: {detail.text.decode(errors='replace')}")
        self.cuda = ctypes.CDLL("libcuda.so.1")
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert self.cuda.cuCtxSetCurrent(context) == 0

    def numbers(self, a):
        """What stands in the memory of an output, when the default stream has come to it."""
        n = a.shape[0] * (a.shape[1] if len(a.shape) > 1 else 1)
        found = (stage.KINDS[a.dtype] * n)()
        assert self.cuda.cuMemcpyDtoH_v2(found, ctypes.c_uint64(a.address),
                                         ctypes.c_size_t(ctypes.sizeof(found))) == 0
        return list(found)


def need_torch():
    torch = need("torch")
    if not torch.cuda.is_available():
        raise Skip("PyTorch finds no device")
    return torch


def total_of(said):
    """Of numbers that a loader says: some of them are NumPy's, of 16 bits."""
    return sum(map(int, said))


def open_stage(folder, **options):
    """And a loader of the same order."""
    made = tokmap.Stage(loader(folder), 0, **{"outputs": ALL, "log": print, **options})
    return made, loader(folder)


# ---- Without a framework ----


def batches_hold_what_the_loader_says(folder):
    driver = Driver()
    for options in ({}, {"thread": False, "n_slots": 2}, {"positions": "row"},
                    {"input_dtype": "int64", "label_dtype": "int32", "pad_id": 9}):
        staged, truth = open_stage(folder, **options)
        with staged:
            for _ in range(40):
                batch = staged.next(0)
                said, facts = said_by_loader(next(truth), pad_id=options.get("pad_id", 0),
                                             by_row="positions" in options)
                assert facts == (batch.first_sample, batch.step_sample, batch.n_rows,
                                 batch.n_documents, batch.max_seqlen)
                for name in ALL:
                    assert driver.numbers(getattr(batch, name)) == said[name], name
                batch.release()


def a_state_goes_on_elsewhere(folder):
    driver = Driver()
    first, truth = open_stage(folder)
    batches = [first.next() for _ in range(3)]
    second, _ = open_stage(folder, thread=False)
    second.restore(batches[1].state)
    truth.restore(batches[1].state)
    batch = second.next(0)
    assert driver.numbers(batch.inputs) == said_by_loader(next(truth))[0]["inputs"]


# ---- PyTorch ----


def torch_takes_batches(folder):
    torch = need_torch()
    staged, truth = open_stage(folder, n_slots=4)  # two batches are kept, and next makes a third
    kept = []
    for _, batch in zip(range(40), staged):
        tensors, said = batch.torch(), said_by_loader(next(truth))[0]
        assert tensors.inputs.data_ptr() == batch.inputs.address and tensors.inputs.is_cuda
        del batch
        kept = kept[-1:] + [(tensors, said)]
        for held, values in kept:
            assert {name: getattr(held, name).flatten().tolist() for name in ALL} == values
    del tensors, held, kept


def tensors_die_in_the_thread_of_autograd(folder):
    """The ids are saved for the backward pass, which is queued late and runs late."""
    torch = need_torch()
    staged, truth = open_stage(folder, outputs=("inputs", "labels"), n_slots=2)
    table = torch.nn.Embedding(200000, 1, device="cuda")
    for _ in range(60):
        inputs, labels = staged.next().torch()
        loss = table(inputs).sum()
        del inputs, labels
        torch.cuda._sleep(A_WHILE)
        table.zero_grad()
        loss.backward()
        del loss
        counts = table.weight.grad.flatten()
        expected = torch.zeros(200000)
        ids = torch.tensor([int(i) for i in said_by_loader(next(truth))[0]["inputs"]])
        expected.index_add_(0, ids, torch.ones(len(ids)))
        assert torch.equal(counts.cpu(), expected)


def a_side_stream_reads_its_tensors_before_they_are_written_over(folder):
    torch = need_torch()
    staged, truth = open_stage(folder, outputs=("inputs", "labels"), n_slots=2)
    side, sums = torch.cuda.Stream(), []
    for _ in range(40):
        batch = staged.next()
        with torch.cuda.stream(side):
            inputs, labels = batch.torch()
            torch.cuda._sleep(A_WHILE)
            sums.append((inputs.long().sum(), labels.sum()))
        del inputs, labels, batch
    torch.cuda.synchronize()
    for inputs, labels in sums:
        said = said_by_loader(next(truth))[0]
        assert (inputs.item(), labels.item()) == (total_of(said["inputs"]), total_of(said["labels"]))


def a_graph_reads_what_fill_has_written(folder):
    torch = need_torch()
    staged, truth = open_stage(folder, outputs=("inputs", "labels", "cu_seqlens"))
    inputs = torch.zeros(ROWS, LENGTH, dtype=torch.int32, device="cuda")
    labels = torch.zeros(ROWS, LENGTH, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        total = inputs.long().sum() * 3 + labels.sum()
    for _ in range(60):
        assert staged.fill(inputs=inputs, labels=labels) is not None
        graph.replay()
        said = said_by_loader(next(truth))[0]
        assert total.item() == 3 * total_of(said["inputs"]) + total_of(said["labels"])


def a_batch_may_be_collected_during_a_capture(folder):
    torch = need_torch()
    staged, truth = open_stage(folder, n_slots=2)
    numbers = torch.zeros(8, device="cuda")
    for i in range(6):
        batch = staged.next()
        tensors, said = batch.torch(), said_by_loader(next(truth))[0]
        assert tensors.inputs.flatten().tolist() == said["inputs"]
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            numbers += 1
            if i % 2:
                del batch, tensors
            else:
                del tensors, batch
        graph.replay()
    assert numbers.tolist() == [6.0] * 8


def workers_of_a_data_loader_have_memory_of_their_own(folder):
    """Free pinned memory is the same pages in a process and in its forks."""
    torch = need_torch()
    import tokmap.torch
    options = dict(sequence_length=LENGTH, batch_rows=ROWS, seed=5)
    truth = tokmap.Loader(folder / "a", **options)
    plain = [next(truth).inputs for _ in range(30)]
    pinned = tokmap.Loader(folder / "a", framework="torch", **options)
    kept = [next(pinned).inputs for _ in range(30)]
    assert all(one.is_pinned() and (one.numpy() == wanted).all() for one, wanted in zip(kept, plain))
    del kept
    for n_workers in (1, 3):
        made = tokmap.torch.data_loader(tokmap.torch.IterableDataset(folder / "a", **options), num_workers=n_workers,
                                        pin_memory=True, multiprocessing_context="fork")
        found = [batch["inputs"] for _, batch in zip(range(30), made)]
        assert all(one.is_pinned() and (one.numpy() == wanted).all() for one, wanted in zip(found, plain))


# ---- Others ----


def cupy_takes_arrays(folder):
    cupy = need("cupy")
    staged, truth = open_stage(folder)
    for _ in range(10):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            batch = staged.next(stream.ptr)
            arrays = {name: cupy.from_dlpack(getattr(batch, name)) for name in ALL}
            said = said_by_loader(next(truth))[0]
            assert {name: a.flatten().tolist() for name, a in arrays.items()} == said
        del arrays, batch
        stream.synchronize()


def jax_takes_copies(folder):
    jax = need("jax")
    if jax.default_backend() != "gpu":
        raise Skip("JAX finds no device")
    staged, truth = open_stage(folder)
    for _ in range(10):
        batch = staged.next()
        said = said_by_loader(next(truth))[0]
        for name in ("inputs", "position_ids", "cu_seqlens"):
            array = jax.dlpack.from_dlpack(getattr(batch, name))
            copy = jax.numpy.copy(array).block_until_ready()
            del array
            assert copy.flatten().tolist() == said[name]
        batch.release()


# ---- Ends ----

ENDS = {
    "a stage": "s = tokmap.Stage(loader(), 0); b = next(s)",
    "a tensor": "s = tokmap.Stage(loader(), 0); t = _dlpack.take(next(s).inputs.__dlpack__()); s.close()",
    "a circle": "s = tokmap.Stage(loader(), 0); s.circle = [s, next(s), s.next().labels]",
    "sys.exit": "s = tokmap.Stage(loader(), 0, edit=slow); b = next(s); sys.exit(0)",
}
ENDS_OF_TORCH = {
    "tensors": "import torch\ns = tokmap.Stage(loader(), 0); b = next(s); x = b.torch()\n"
               "s.circle = [s, next(s).torch()]",
    "tensors of a closed stage": "import torch\ns = tokmap.Stage(loader(), 0); x = next(s).torch()\n"
                                 "s.close(); y = x.inputs.long().sum()",
    "a graph": "import torch\ns = tokmap.Stage(loader(), 0)\n"
               "x = torch.zeros(5, 23, dtype=torch.int32, device='cuda'); g = torch.cuda.CUDAGraph()\n"
               "with torch.cuda.graph(g): y = x.sum()\n"
               "s.fill(inputs=x); g.replay()",
}


def an_interpreter_may_end_with_anything_alive(folder):
    for name, script in ENDS.items():
        stage.run_end(folder, name, script)


def an_interpreter_may_end_with_torch_tensors_alive(folder):
    need_torch()
    for name, script in ENDS_OF_TORCH.items():
        stage.run_end(folder, name, script)


PLAIN = (batches_hold_what_the_loader_says, a_state_goes_on_elsewhere,
         an_interpreter_may_end_with_anything_alive)

def prepare(folder):
    Driver()
    write(folder)


if __name__ == "__main__":
    sys.exit(run_in_folders("python_gpu_", PLAIN if "--plain" in sys.argv else None, prepare))

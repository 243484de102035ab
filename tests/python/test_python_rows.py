#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rows of several documents: what is in them, and the rows file, compared with a second implementation of docs/ORDER.md,
section 11. test_python_amend and test_python_look_back try the same rows in runs that are changed, and backwards."""

import ctypes
import os
import pickle
import random
import struct
import subprocess
import sys

import ref_rows
from chaos_rows import kill_rows
from grouped import grouped, open_loader
from package import raises
from ref_order import Order, PackedRow, Phase, Source, quotas_of
from ref_protocol import program, run_in_folders

import numpy as np
import tokmap
from tokmap._loader.batch import sources_of

N_RUNS = 1440 if os.environ.get("TOKMAP_LONG") == "all" else 8
OUTPUTS = ["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
PAD = 7


def write(path, lengths, ids=lambda n: np.zeros(n, np.uint16)):
    with tokmap.Writer(path, vocab_size=60000) as w:
        for n in lengths:
            w.document(ids(n))
    return tokmap.Dataset(path)


def any_lengths(rng):
    mean = rng.choice((3, 30, 200))
    return [int(rng.expovariate(1 / mean)) if rng.random() < 0.9 else rng.choice((0, 1, 2, 900))
            for _ in range(rng.choice((3, 50, 400)))] + [5, 2]


def any_kind(rng, lengths=(1, 2, 4, 7, 8, 64, 100, 1024)):
    length = rng.choice(lengths)
    align = rng.choice([a for a in (1, 1, 2, 4, 8, 64, length) if length % a == 0])
    return ref_rows.Kind(length, align, rng.choice((0, 0, 1, 2, 3)), rng.choice(ref_rows.WHOLE))


def options_of(kind):
    return {"sequence_length": kind.sequence_length, "windows": "best_fit", "align": kind.align,
            "max_documents": kind.most, "whole_documents": kind.whole}


def rows_options(kind):
    return ["--sequence-length", str(kind.sequence_length), *(["--align", str(kind.align)] if kind.align > 1 else []),
            *(["--max-documents", str(kind.most)] if kind.most else []),
            *(["--whole-documents", kind.whole] if kind.whole != "split" else [])]


def rows(*arguments, status=0):
    done = subprocess.run([program("tokmap"), "rows", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, (done.returncode, done.stderr)
    return done.stdout + done.stderr


def check_row(batch, i, tokens, row, kind):
    """All outputs of a row, from the tokens of its dataset and its pieces. Returns its part of cu_seqlens."""
    length, (places, n) = kind.sequence_length, ref_rows.places_of(row, kind)
    ids, mask = np.full(length + 1, PAD, np.int64), np.zeros(length, np.uint8)
    positions, documents = np.zeros(length, np.int32), np.full(length, len(row), np.int32)
    for k, (piece, place, end) in enumerate(zip(row, places, places[1:] + [n])):
        ids[place:place + piece.n] = tokens[piece.first:piece.first + piece.n]
        mask[place:place + piece.n - 1] = 1
        positions[place:end], documents[place:end] = range(end - place), k
    inputs = ids[:-1].copy()
    inputs[n:] = PAD
    wanted = {"inputs": inputs, "labels": np.where(mask, ids[1:], -100), "position_ids": positions,
              "document_ids": documents, "loss_mask": mask}
    for name, array in wanted.items():
        assert (batch[name][i] == array).all(), (name, batch[name][i], array)
    return [i * length + place for place in places + ([n] if n < length else [])]


def rows_have_all_their_tokens(folder):
    n_rows = n_labels = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        kind = any_kind(rng)
        lengths = [any_lengths(rng) for _ in range(rng.randint(1, 3))]
        datasets = [write(folder / ("%d-%d" % (seed, d)), some, lambda n: np.array(rng.choices(range(60000), k=n), np.uint16))
                    for d, some in enumerate(lengths)]
        wanted = [(d, row) for d, some in enumerate(lengths) for chunk in ref_rows.pack_documents(some, kind)
                  for row in chunk.rows]
        loader = tokmap.Loader(datasets, **grouped(batch_rows=rng.randint(1, 5), seed=seed, max_epochs=2, drop_last=False, outputs=OUTPUTS, pad_id=PAD, shuffle=rng.choice(("full", "none", "block")), io=rng.choice(("map", "populate", "read", "direct")), **options_of(kind)))
        assert loader.n_samples == 2 * len(wanted)
        tokens, seen, labels = [ds.tokens(0, ds.n_tokens) for ds in datasets], [], [0, 0]
        for batch in loader:
            boundaries = []
            for i, g in enumerate(batch.sample_ids.tolist()):
                at = loader.locate(g)
                dataset, row = wanted[at.window]
                assert at.dataset == dataset
                boundaries += check_row(batch, i, tokens[dataset], row, kind)
                assert loader.pieces(g) == [(piece.document, piece.first, piece.n, place) for piece, place in
                                            zip(row, ref_rows.places_of(row, kind)[0])]
                seen.append((at.epoch, at.window))
                labels[at.epoch] += int(batch.loss_mask[i].sum())
                assert batch.rows[i].tokens.tolist() == [PAD if t is None else tokens[dataset][t] for t in
                                                         PackedRow(dataset, row, *ref_rows.places_of(row, kind)).tokens()]
            assert batch.cu_seqlens.tolist() == boundaries + [batch.n_rows * kind.sequence_length]
        assert sorted(seen) == [(epoch, w) for epoch in range(2) for w in range(len(wanted))]
        if kind.whole == "split":  # each token is a label once, but the first of each document
            assert labels == [sum(max(n - 1, 0) for some in lengths for n in some)] * 2
        n_rows, n_labels = n_rows + len(seen), n_labels + sum(labels)
    return "%d rows, %d labels" % (n_rows, n_labels)


def a_stage_has_the_same_rows(folder):
    """On the host device, which a GPU's kernel follows."""
    kinds = {"int32": ctypes.c_int32, "int64": ctypes.c_int64}
    n_batches = 0
    for seed in range(N_RUNS // 3):
        rng = random.Random(seed)
        kind = any_kind(rng, (8, 64, 100))
        dataset = write(folder / str(seed), any_lengths(rng), lambda n: np.array(rng.choices(range(60000), k=n), np.uint16))
        options = {"batch_rows": rng.randint(1, 4), "seed": seed, "max_epochs": 1, "outputs": OUTPUTS, "pad_id": PAD,
                   "io": rng.choice(("map", "populate", "read")), **options_of(kind)}
        loader = tokmap.Loader(dataset, **grouped(**options))
        stage = tokmap.Stage(tokmap.Loader(dataset, **grouped(**options)), "host", pad_id=PAD,
                             outputs=[name for name in OUTPUTS if name != "loss_mask"])
        for batch in loader:
            staged = stage.next()
            for name in ("inputs", "labels", "position_ids", "document_ids", "cu_seqlens"):
                array, wanted = getattr(staged, name), getattr(batch, name).ravel()
                found = (kinds[array.dtype] * len(wanted)).from_address(array.address)
                assert list(found) == wanted.tolist(), (seed, name)
            staged.release()
            n_batches += 1
        assert stage.next() is None
    return "%d batches" % n_batches


def places_of_slice(boundaries, length, rank, size, mode):
    """The places of a row that a rank of context parallelism gets. boundaries: where its documents begin, and the end."""
    def chunks(begin, end, parts, n):
        step = (end - begin) // n
        return [place for part in parts for place in range(begin + part * step, begin + (part + 1) * step)]

    zigzag = (rank, 2 * size - 1 - rank)
    if mode == "contiguous":
        return chunks(0, length, [rank], size)
    if mode == "zigzag":
        return chunks(0, length, zigzag, 2 * size)
    found = [place for a, b in zip(boundaries, boundaries[1:]) for place in chunks(a, b, zigzag, 2 * size)]
    return found + [-1] * (length // size - len(found))  # padding


def slices_make_the_whole(folder):
    n_slices = 0
    for seed in range(N_RUNS):
        rng = random.Random(seed)
        size, mode = rng.choice((2, 3, 4)), rng.choice(("contiguous", "zigzag", "documents"))
        windows = "best_fit" if mode == "documents" else rng.choice(("concat", "within_document", "best_fit"))
        align = 2 * size * rng.choice((1, 2)) if mode == "documents" else rng.choice((1, 2))
        packing = {"align": align, "max_documents": rng.choice((0, 3))} if windows == "best_fit" else {}
        datasets = [write(folder / ("%d-%d" % (seed, d)), any_lengths(rng) + [300],
                          lambda n: np.array(rng.choices(range(60000), k=n), np.uint16)) for d in range(rng.randint(1, 2))]
        options = {"sequence_length": 4 * size * rng.choice((1, 3, 10)), "batch_rows": rng.randint(1, 4), "seed": seed,
                   "windows": windows, "outputs": OUTPUTS, "pad_id": PAD, "max_epochs": 1, "drop_last": False,
                   "random_offset": windows == "concat" and rng.random() < 0.5, "mask_labels": rng.random() < 0.5, **packing}
        length = options["sequence_length"]
        loaders = [tokmap.Loader(datasets, **grouped(cp_rank=rank, cp_size=size, cp_mode=mode, io=rng.choice(("map", "populate", "read")), **options)) for rank in range(size)]
        for whole in tokmap.Loader(datasets, **grouped(**options)):
            parts, ends = [next(loader) for loader in loaders], whole.cu_seqlens
            for rank, part in enumerate(parts):
                assert part.cu_seqlens.tolist() == ends.tolist() and part.inputs.shape == (whole.n_rows, length // size)
                for i in range(whole.n_rows):
                    inside = ends[(ends >= i * length) & (ends <= (i + 1) * length)] - i * length
                    if mode == "documents" and (whole.loss_mask[i][inside[-2]:] == 0).all():
                        inside = inside[:-1]  # what a short row lacks
                    at = places_of_slice(inside.tolist(), length, rank, size, mode)
                    for name in ("inputs", "labels", "position_ids", "document_ids", "loss_mask"):
                        pad = {"inputs": PAD, "labels": -100, "document_ids": len(inside) - 1}.get(name, 0)
                        wanted = [pad if place < 0 else whole[name][i][place] for place in at]
                        assert part[name][i].tolist() == wanted, (seed, name, rank, part[name][i], wanted)
                    n_slices += 1
            if mode != "documents":
                assert sorted(sum((places_of_slice([], length, r, size, mode) for r in range(size)), [])) == list(range(length))
        names, whole = ["inputs", "labels", "position_ids", "document_ids"], {**options, "drop_last": True}
        part = {**whole, "cp_rank": size - 1, "cp_size": size, "cp_mode": mode}
        tokmap.Loader(datasets, **grouped(device="host", **{**part, "outputs": names + ["cu_seqlens"]})).close()
        stage = tokmap.Stage(tokmap.Loader(datasets, **grouped(**part)), "host", names, input_dtype="int64", pad_id=PAD)
        for batch in tokmap.Loader(datasets, **grouped(**{**part, "mask_labels": True})):
            arrays = {name: np.empty_like(batch[name]) for name in names}
            assert stage.fill(**arrays).first_sample == batch.first_sample
            assert all((arrays[name] == batch[name]).all() for name in names), seed
        stage.close()
        assert all(next(loader, None) is None and loader.state() == loaders[0].state() for loader in loaders)
    for wrong in ({"cp_size": 2, "cp_rank": 2}, {"cp_size": 3}, {"cp_size": 4, "cp_mode": "zigzag"}, {"cp_mode": "ring"},
                  {"cp_size": 2, "cp_mode": "documents"}, {"cp_size": 2, "contiguous": False}, {"dims": ("dp", "fsdp")}):
        raises((ValueError, tokmap.ArgumentError), open_loader, datasets, 20, **wrong)
    raises((ValueError, tokmap.ArgumentError), tokmap.Loader, datasets, 20, windows="best_fit",
           rows=tokmap.Rows(align=2), ranks=tokmap.Ranks(cp_size=2, cp_mode="documents"))
    return "%d slices" % n_slices


def ranks_of_a_mesh_share_rows(folder):
    class Mesh:  # what is used of torch.distributed.DeviceMesh, which check_torch has
        mesh_dim_names = ("pp", "dp", "fsdp", "cp")

        def __init__(self, *place):
            self.place = dict(zip(self.mesh_dim_names, place))

        def size(self, dim):
            return (2, 3, 2, 4)[dim]

        def get_local_rank(self, name):
            return self.place[name]

    dataset = write(folder / "d", [500])
    for pp, dp, fsdp, cp in ((0, 0, 0, 0), (1, 2, 1, 3), (1, 1, 0, 2)):
        loader = tokmap.Loader(dataset, 4, ranks=tokmap.Ranks(mesh=Mesh(pp, dp, fsdp, cp), dims=("dp", "fsdp"),
                                                              cp_rank=cp, cp_size=4))
        assert (loader.rank, loader.n_ranks) == (2 * dp + fsdp, 6)
        assert pickle.loads(pickle.dumps(loader)).rank == loader.rank
    assert tokmap.Loader(dataset, 4, ranks=tokmap.Ranks(mesh=Mesh(0, 2, 1, 0))).rank == 2
    for wrong in ({"dims": "dp"}, {"dims": ["tp"]}, {"dims": ["dp", "dp"]}, {"rank": 0, "n_ranks": 1}, {"dims": ()}, {"dims": []},
                  {"dims": 1}, {"dims": [["dp"]]}, {"dims": None}):
        text = str(raises(ValueError, open_loader, dataset, 4, mesh=Mesh(0, 2, 0, 0), **wrong))
        assert text.startswith("dims is") or "rank" in wrong, text


def the_rows_file_is_as_specified(folder):
    for seed in range(N_RUNS // 2):
        rng = random.Random(seed)
        kind, lengths = any_kind(rng, (1, 2, 7, 8, 64, 100, 1024, 65536)), any_lengths(rng) if seed else []
        dataset = write(folder / str(seed), lengths)
        said = rows(*rows_options(kind), folder / str(seed))
        index = (folder / ("%d.tmi" % seed)).read_bytes()
        wanted = ref_rows.file_bytes(sum(lengths), lengths, index[136:152], kind)
        parts = ["align%d" % kind.align] * (kind.align > 1) + ["max%d" % kind.most] * (kind.most > 0)
        name = "-".join([str(kind.sequence_length), *parts] + [kind.whole] * (kind.whole != "split"))
        path = folder / ("%d.%s.tmr" % (seed, name))
        assert path.read_bytes() == wanted, seed
        assert "%d row" % struct.unpack_from("<Q", wanted, 64) in said.replace(",", ""), said
        if not lengths:
            continue
        one, other = folder / "elsewhere", folder / ("copy%d" % seed)
        path.rename(one)
        write(other, lengths)  # the same documents at another place
        packed = tokmap.Loader(dataset, **grouped(shuffle="none", max_epochs=1, **options_of(kind)))
        found = tokmap.Loader(tokmap.Source(other, max_epochs=1, rows_files=one), **grouped(shuffle="none", **options_of(kind)))
        assert [packed.pieces(g) for g in range(packed.n_samples)] == [found.pieces(g) for g in range(found.n_samples)]
        assert packed.state() == found.state()


def chunks_stay_together(folder):
    """Several chunks in several datasets. ORDER says where they stand."""
    length, rng = 65536, random.Random(3)
    lengths = [[rng.choice((rng.randint(0, 60000), 150000, 3)) for _ in range(n)] for n in (420, 20, 300, 0)]
    datasets = [write(folder / ("chunks%d" % d), some) for d, some in enumerate(lengths)]
    documents = [[(sum(some[:i]), sum(some[:i + 1])) for i in range(len(some))] for some in lengths]
    ids = [bytes.fromhex(dataset.dataset_id) for dataset in datasets]
    rows("--sequence-length", length, folder / "chunks0")  # the others are packed in memory
    n_rows = 0
    for shuffle, group in (("none", 0), ("full", 0), ("block", 0), ("block", 2), ("block", 1)):
        source = Source(ids, [sum(some) for some in lengths], documents, 2)
        order = Order([source], [Phase(0, quotas_of([1]))], length, 5, windows="best_fit", shuffle=shuffle, group=group)
        chunks = order.windows[0]
        assert chunks.n_whole > 3 and chunks.n > 128 * chunks.n_whole + 30
        loader = tokmap.Loader(datasets, length, seed=5, windows="best_fit", shuffle=shuffle,
                               order=tokmap.Order(group_blocks=group), max_epochs=2)
        assert loader.n_samples == order.mixture.end
        for g in range(loader.n_samples):
            wanted, found = order.sample(g), loader.locate(g)
            assert (found.epoch, found.window, found.dataset) == (wanted.epoch, wanted.window, wanted.row.dataset), (shuffle, g)
            assert [piece.first_token for piece in loader.pieces(g)] == [piece.first for piece in wanted.row.pieces]
        assert loader.state() == order.state(0)
        n_rows += loader.n_samples
        if shuffle == "block":  # whole chunks: the first groups have rows of no others
            size = 128 * order.group
            for first in range(0, 128 * chunks.n_whole - size, size):
                used = {loader.locate(g).window // 1 for g in range(first, first + size)}
                assert len({(order.windows[0].rows[w][0], chunks.in_blocks.index(w) // 128) for w in used}) == order.group
    for io in ("populate", "read"):  # chunks are requested ahead
        ahead = tokmap.Loader(datasets, length, 4, seed=5, windows="best_fit", shuffle="block",
                              order=tokmap.Order(group_blocks=1), reading=tokmap.Reading(io=io),
                              max_epochs=1, outputs=[])
        assert sum(batch.n_rows for batch in ahead) == ahead.n_samples // 4 * 4
    return "%d rows" % n_rows


def weights_may_be_shares_of_tokens(folder):
    rng = random.Random(8)
    lengths = [[rng.randint(0, 40) for _ in range(3000)], [rng.randint(0, 3000) for _ in range(60)]]
    datasets = [write(folder / name, some) for name, some in zip("ab", lengths)]
    for windows, labels in (("best_fit", [sum(max(n - 1, 0) for n in some) for some in lengths]),
                            ("within_document", [sum(max(n - 1, 0) for n in some) for some in lengths]),
                            ("concat", [(sum(some) - 1) // 256 * 256 for some in lengths])):
        options = {"sequence_length": 256, "windows": windows, "outputs": ["loss_mask"], "weights": "tokens"}
        one = [tokmap.Loader(ds, **grouped(max_epochs=1, **options)).n_samples for ds in datasets]
        given = [(0.3, 0.7), (2.0, 1.0)]
        loader = tokmap.Loader(list(zip(datasets, given[0])), **grouped(phases={5000: given[1]}, **options))
        phases = [Phase(first, quotas_of([w / (m / n) for w, n, m in zip(weights, one, labels)]))
                  for first, weights in zip((0, 5000), given)]
        order = [k for phase in phases for k in (phase.slots * 5000)[:5000]]
        sources = sources_of(loader._own_handle, 0, 10000).tolist()
        assert sources == order, windows
        if windows != "concat":
            continue
        state = tokmap.Loader(list(zip(datasets, given[0])), **grouped(**options))
        state.seek(5000)
        changed = tokmap.Loader(list(zip(datasets, given[1])), **grouped(amend=state.state(),
                                                                         amend_from={"weights": given[0]}, **options))
        assert sources_of(changed._own_handle, 0, 10000).tolist() == order


def a_rows_file_is_complete_or_absent(folder):
    """`tokmap rows` is killed at any time; the next run, and readers, find the old file, none, or the whole one."""
    return kill_rows(folder, N_RUNS // 2, 4)


def adopted(where):
    """Tokens whose documents are not known."""
    (where / "raw.bin").write_bytes(bytes(2000))
    subprocess.run([program("tokmap"), "index", "-q", "--dtype", "u16", "--eod", "none", where / "raw.bin"], check=True)
    return where / "raw"


def what_is_wrong_is_refused(folder):
    dataset, kind = write(folder / "d", [5, 100, 3, 70, 900] * 20), ref_rows.Kind(64, 8)
    rows(*rows_options(kind), folder / "d")
    path = folder / "d.64-align8.tmr"
    good = path.read_bytes()
    n_rows = tokmap.Loader(dataset, **grouped(max_epochs=1, **options_of(kind))).n_samples

    def read_all(options=options_of(kind), **more):
        with tokmap.Loader(tokmap.Source(folder / "d", **more), **grouped(max_epochs=1, **options)) as loader:
            for g in range(loader.n_samples):
                loader.pieces(g)

    read_all()
    for wrong in (good[:-1], good + bytes(8), good[:100], b"", b"x" * len(good)):
        path.write_bytes(wrong)
        assert "d.64-align8.tmr" in str(raises(tokmap.DamagedError, read_all))
    rng = random.Random(1)
    for _ in range(300):
        at = rng.randrange(len(good))
        path.write_bytes(good[:at] + bytes([good[at] ^ 1 << rng.randrange(8)]) + good[at + 1:])
        assert "d.64-align8.tmr" in str(raises((tokmap.DamagedError, tokmap.VersionError), read_all)), at
    for at, value in ((64, 1 << 40), (88, 0), (88, 7), (96, 1 << 50), (104, 8)):  # n_rows, n_chunks, largest_chunk, n_bytes
        wrong = good[:at] + struct.pack("<Q", value) + good[at + 8:120]
        path.write_bytes(wrong + struct.pack("<Q", ref_rows.xxh3_64(wrong)) + good[128:])
        assert "impossible sizes" in str(raises(tokmap.DamagedError, read_all)), at
    path.write_bytes(good)
    newer = good[:8] + struct.pack("<I", 2) + good[12:120]
    path.write_bytes(newer + struct.pack("<Q", ref_rows.xxh3_64(newer)) + good[128:])
    raises(tokmap.VersionError, read_all)
    path.write_bytes(good)
    write(folder / "other", [5, 100, 3, 70, 901] * 20)
    for source in ({"data": folder / "other", "rows_files": path}, {"data": folder / "d", "rows_files": folder / "none"}):
        raises((tokmap.MismatchError, tokmap.FileError), open_loader, tokmap.Source(**source), **options_of(kind))
    for change in ({"align": 4}, {"sequence_length": 128}, {"max_documents": 9}, {"whole_documents": "drop"}):
        text = str(raises(tokmap.MismatchError, read_all, {**options_of(kind), **change}, rows_files=path))
        change = {**options_of(kind), **change}
        made = "tokmap rows --sequence-length 64 --align 8; "
        wanted = rows_options(ref_rows.Kind(*(change[name] for name in (
            "sequence_length", "align", "max_documents", "whole_documents"))))
        assert made in text and text.endswith(" ".join(["with: tokmap rows", *wanted])), text
    raises(ValueError, tokmap.Source, folder / "d", rows_files=[path, path])
    loader = tokmap.Loader(dataset, **grouped(**options_of(kind)))
    os.truncate(path, 200)
    assert "d.64-align8.tmr" in str(raises(tokmap.FileError, loader.pieces, 0))
    path.write_bytes(good)
    loader.pieces(0)
    here = os.getcwd()
    try:
        os.chdir(folder)
        loader = pickle.dumps(tokmap.Loader(tokmap.Source("d", rows_files=path.name), **grouped(**options_of(kind))))
        opened = tokmap.Dataset("d")
        os.chdir("/")
        tokmap.Loader(opened, 32, windows="best_fit")  # without a rows file
        pickle.loads(loader)
    finally:
        os.chdir(here)
    for no_path in ("", "d\0", 3, b"d", [3]):
        raises((TypeError, ValueError), tokmap.Source, folder / "d", rows_files=no_path)
    for wrong in ({"align": 5}, {"align": 0}, {"whole_documents": "cut"}, {"max_documents": -1}, {"random_offset": True},
                  {"shuffle": "block", "block_windows": 3}, {"contiguous": False}):
        raises((ValueError, tokmap.ArgumentError), open_loader, dataset, **{**options_of(kind), **wrong})
    raises(ValueError, tokmap.Loader, dataset, 64, rows=tokmap.Rows(align=8))
    write(folder / "short", [1, 0, 1])
    raises(tokmap.MismatchError, tokmap.Loader, folder / "short", 64, windows="best_fit")
    raises(tokmap.MismatchError, tokmap.Loader, write(folder / "long", [99, 99]), 64, windows="best_fit",
           rows=tokmap.Rows(whole_documents="drop"))
    plain = tokmap.Loader(dataset, 64)
    raises(tokmap.MismatchError, plain.restore, tokmap.Loader(dataset, **grouped(**options_of(kind))).state())
    for arguments in (["--sequence-length", "0", folder / "d"], ["--sequence-length", "64", "--align", "7", folder / "d"],
                      [folder / "d"], ["--sequence-length", "64"],
                      ["--sequence-length", "64", "--whole-documents", "cut", folder / "d"],
                      ["--sequence-length", "64", "-o", folder / "x", folder / "d", folder / "other"]):
        rows(*arguments, status=2)
    tokens = (folder / "d.bin").read_bytes()
    assert "but a rows file" in rows("-l", "64", path, status=3)
    assert "is not a rows file" in rows("-l", "64", "-o", folder / "d.bin", folder / "d", status=5)
    assert (folder / "d.bin").read_bytes() == tokens and n_rows > 20
    assert "boundaries" in rows("-l", "64", adopted(folder), status=4)


sys.exit(run_in_folders("python_rows_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap import, of files that each library wrote."""

import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from frameworks import need, run_checks

if __name__ == "__main__":
    need("importers", "numpy")
import numpy as np  # noqa: E402

import tokmap  # noqa: E402
from documents import blocks, changed_folder, environment  # noqa: E402
from ref_protocol import need as need_module  # noqa: E402

EOD = 499
rng = np.random.default_rng(1)
DOCUMENTS = [np.append(rng.integers(0, EOD, rng.integers(0, 60)), EOD) for _ in range(2500)]
STREAM = np.concatenate(DOCUMENTS)
ROWS = STREAM[:len(STREAM) // 64 * 64].reshape(-1, 64)  # packed
VOCAB = ["--vocab-size", "500", "--eod", str(EOD)]


def run_import(folder, *arguments, status=0):
    """Its stderr, and the dataset that it made."""
    done = subprocess.run([sys.executable, "-m", "tokmap", "import", *map(str, arguments), "-o", folder / "out"],
                          env=environment(), capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stderr


def expect(folder, documents, *arguments):
    run_import(folder, *arguments, *VOCAB, "--force")
    ds = tokmap.open(folder / "out")
    ds.verify()
    assert len(ds) == len(documents) and all((a == b).all() for a, b in zip(ds, documents)), arguments
    assert ds.eod_id == EOD and ds.metadata["imported_from"] == arguments[0]
    assert [i.name for i in ds.inputs] == [str(a) for a in arguments[1:] if str(a).startswith(str(folder))]


def hdf5(folder):
    h5py = need_module("h5py")
    with h5py.File(folder / "a.h5", "w") as f:
        f["group/tokens"] = STREAM.astype("u2")
        f.create_dataset("rows", data=ROWS.astype("i4"), compression="gzip")
        vlen = f.create_dataset("documents", (len(DOCUMENTS),), dtype=h5py.vlen_dtype("i8"))
        for i, ids in enumerate(DOCUMENTS):
            vlen[i] = ids
    expect(folder, DOCUMENTS, "hdf5", folder / "a.h5", "--field", "documents")
    expect(folder, list(ROWS), "hdf5", folder / "a.h5", "--field", "rows")
    expect(folder, DOCUMENTS, "hdf5", folder / "a.h5", "--field", "group/tokens", "--stream")
    assert "choose one by --field: " in run_import(folder, "hdf5", folder / "a.h5", *VOCAB, "--force", status=3)
    assert "use --stream" in run_import(folder, "hdf5", folder / "a.h5", "--field", "group/tokens", *VOCAB, "--force",
                                        status=3)


def lmdb(folder):
    store = need_module("lmdb").open(str(folder / "store"), map_size=1 << 24)
    with store.begin(write=True) as writing:
        for i, ids in enumerate(DOCUMENTS):
            writing.put(b"%08d" % i, ids.astype("u2").tobytes())
    store.close()
    expect(folder, DOCUMENTS, "lmdb", folder / "store", "--dtype", "uint16")


def tfrecord(folder):
    need_module("tfrecord")
    from tfrecord.writer import TFRecordWriter

    for name, make in (("ints", lambda ids: (ids.tolist(), "int")),
                       ("bytes", lambda ids: (ids.astype("u4").tobytes(), "byte"))):
        writer = TFRecordWriter(str(folder / name))
        for i, ids in enumerate(DOCUMENTS):
            writer.write({"input_ids": make(ids), "number": (i, "int")})
        writer.close()
    expect(folder, DOCUMENTS, "tfrecord", folder / "ints")
    expect(folder, DOCUMENTS, "tfrecord", folder / "bytes", "--dtype", "uint32")


def webdataset(folder):
    wds = need_module("webdataset")
    half = len(DOCUMENTS) // 2
    for name, documents in (("a-0.tar", DOCUMENTS[:half]), ("a-1.tar", DOCUMENTS[half:])):
        with wds.TarWriter(str(folder / name)) as out:
            for i, ids in enumerate(documents):
                array = io.BytesIO()
                np.save(array, ids.astype("u2"))
                out.write({"__key__": f"part.1/{i:06d}", "ids.npy": array.getvalue(), "raw": ids.astype("u2").tobytes(),
                           "json": {"n": len(ids)}, "list.json": ids.tolist()})
    for field, *dtype in (("ids.npy",), ("raw", "--dtype", "uint16"), ("list.json",)):
        expect(folder, DOCUMENTS, "webdataset", folder / "a-0.tar", folder / "a-1.tar", "--field", field, *dtype)


def hf_datasets(folder):
    datasets = need_module("datasets")
    documents = datasets.Dataset.from_dict({"text": ["x"] * len(DOCUMENTS), "input_ids": DOCUMENTS})
    documents.save_to_disk(str(folder / "saved"))
    expect(folder, DOCUMENTS, "datasets", folder / "saved")
    rows = datasets.Dataset.from_dict({"input_ids": ROWS.tolist()}).select(range(len(ROWS)))
    datasets.DatasetDict({"train": rows.shuffle(1), "test": rows}).save_to_disk(str(folder / "both"))
    n_whole = int((ROWS == EOD).sum())
    last = STREAM[:ROWS.size][np.flatnonzero(ROWS.ravel() == EOD)[-1] + 1:]
    expect(folder, DOCUMENTS[:n_whole] + [last] * bool(len(last)), "datasets", folder / "both/test", "--stream")
    assert "several splits" in run_import(folder, "datasets", folder / "both", *VOCAB, "--force", status=3)


def parquet(folder):
    pa = need_module("pyarrow")
    import pyarrow.parquet

    for number, kind in enumerate((pa.list_(pa.int32()), pa.large_list(pa.uint16()), pa.list_(pa.int64()))):
        table = pa.table({"id": range(len(DOCUMENTS)), "tokens": pa.array([d.tolist() for d in DOCUMENTS], kind)})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=700)
        expect(folder, DOCUMENTS, "parquet", folder / f"{number}.parquet")
    pyarrow.parquet.write_table(pa.table({"t": STREAM}), folder / "flat.parquet")
    expect(folder, DOCUMENTS, "parquet", folder / "flat.parquet", "--stream")
    assert "use --stream" in run_import(folder, "parquet", folder / "flat.parquet", *VOCAB, "--force", status=3)
    pyarrow.parquet.write_table(pa.table({"text": ["a", "b"]}), folder / "text.parquet")
    assert "must be ids" in run_import(folder, "parquet", folder / "text.parquet", *VOCAB, "--force", status=3)


class Harmful:
    """Makes a file when its pickle is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def write_mds(folder, kind, compression, documents):
    streaming = need_module("streaming")
    with streaming.MDSWriter(out=str(folder), columns={"tokens": kind, "source": "str"}, compression=compression,
                             size_limit=1 << 16) as writer:
        for ids in documents:
            writer.write({"tokens": ids.astype("i8").tobytes() if kind == "bytes" else ids.astype(kind[8:]), "source": "x"})


def mds(folder):
    """As the library itself reads it, which decompresses in its folder: so in a copy."""
    streaming = need_module("streaming")
    documents = [*DOCUMENTS[:300], np.arange(10**6) % EOD, DOCUMENTS[0]]
    for number, compression in enumerate((None, "gz", "bz2", "br", "snappy", "zstd")):
        source = folder / str(number)
        write_mds(source, ("ndarray:int64", "ndarray:uint16", "bytes")[number % 3], compression, documents)
        files = sorted(path.name for path in source.iterdir())
        expect(folder, documents, "mds", source, "--field", "tokens", *(["--dtype", "int64"] if number % 3 == 2 else []))
        assert sorted(path.name for path in source.iterdir()) == files and len(files) > 3, files
        shutil.copytree(source, folder / f"copy-{number}")
        library = streaming.StreamingDataset(local=str(folder / f"copy-{number}"), shuffle=False, batch_size=1)
        ds = tokmap.open(folder / "out")
        assert len(library) == len(ds)
        for i in (0, 299, 300, 301):
            own = library[i]["tokens"]
            assert (ds[i] == (np.frombuffer(own, "i8") if isinstance(own, bytes) else own)).all()
    write_mds(folder / "large", "bytes", None, [np.empty(0), np.array([70000, 3]), np.empty(0)])
    run_import(folder, "mds", folder / "large", "--field", "tokens", "--dtype", "int64", "--vocab-size", 70001, "--force")
    assert [ids.tolist() for ids in tokmap.open(folder / "out")] == [[], [70000, 3], []]
    path = next((folder / "0").glob("*.mds"))
    path.write_bytes(path.read_bytes()[:-1])
    damaged = ["mds", folder / "0", "--field", "tokens", *VOCAB, "--force"]
    assert f"{path}: is damaged" in run_import(folder, *damaged, status=3)
    index = folder / "0/index.json"
    text = index.read_text()
    for old, new, word in ((path.name, "../1/" + path.name, "not in its folder"), (path.name, "nothing.mds", "is missing"),
                           ('"shards"', '"others"', "is damaged: KeyError"), ("{", "[", "is damaged: JSONDecodeError")):
        index.write_text(text.replace(old, new, 1))
        assert word in run_import(folder, *damaged, status=3), word
    with streaming.MDSWriter(out=str(folder / "pickles"), columns={"tokens": "ndarray:int64", "note": "pkl"}) as writer:
        writer.write({"tokens": np.array([1, 2]), "note": Harmful(folder / "harm")})
    assert "has the encoding pkl" in run_import(folder, "mds", folder / "pickles", "--field", "note", *VOCAB, "--force", status=3)
    run_import(folder, "mds", folder / "pickles", "--field", "tokens", *VOCAB, "--force")
    assert not (folder / "harm").exists() and tokmap.open(folder / "out")[0].tolist() == [1, 2]


OPTIMIZE = """
import sys, numpy as np, torch
from litdata import TokensLoader, optimize
documents = [ids for ids in np.load(sys.argv[1], allow_pickle=True)]
def tensor(i):
    yield torch.from_numpy(documents[i].astype("i4"))
def fields(i):
    return {"input_ids": documents[i].astype("i8"), "labels": documents[i].astype("i8")}
if __name__ == "__main__":
    inputs = list(range(len(documents)))
    optimize(fn=tensor, inputs=inputs, output_dir=sys.argv[2], chunk_size=4096, item_loader=TokensLoader(), num_workers=1)
    optimize(fn=fields, inputs=inputs, output_dir=sys.argv[3], chunk_bytes="16KB", num_workers=1)
"""


def litdata(folder):
    """Tokens as its TokensLoader reads them, but with the end of each chunk; dicts as they are."""
    library = need_module("litdata")
    documents = [ids for ids in DOCUMENTS[:200] if len(ids)]
    np.save(folder / "ids.npy", np.array(documents, dtype=object), allow_pickle=True)
    (folder / "optimize.py").write_text(OPTIMIZE)
    subprocess.run([sys.executable, folder / "optimize.py", folder / "ids.npy", folder / "tokens", folder / "dicts"], check=True,
                   capture_output=True, env={**os.environ, "TMPDIR": str(folder)})  # where it leaves folders
    expect(folder, documents, "litdata", folder / "tokens")
    read = library.StreamingDataset(str(folder / "tokens"), item_loader=library.TokensLoader(block_size=1), shuffle=False)
    own = np.concatenate([ids for ids in tokmap.open(folder / "out")])
    assert [int(read[i][0]) for i in range(0, len(read), 37)] == own[:len(read):37].tolist() and len(read) == len(own)
    expect(folder, documents, "litdata", folder / "dicts")
    assert len(library.StreamingDataset(str(folder / "dicts"))) == len(documents)
    index = folder / "dicts/index.json"
    index.write_text(index.read_text().replace("no_header_numpy:3", "pickle", 1))
    assert "items of the format pickle" in run_import(folder, "litdata", folder / "dicts", *VOCAB, "--force", status=3)
    chunk = next((folder / "tokens").glob("*.bin"))
    chunk.write_bytes(chunk.read_bytes()[:-1])
    assert f"{chunk}: is damaged" in run_import(folder, "litdata", folder / "tokens", *VOCAB, "--force", status=3)


def masks_are_kept(folder):
    """Labels, masks, both, and rows of several documents, from Parquet files and saved datasets; and back again."""
    pa, datasets = need_module("pyarrow"), need_module("datasets")
    import pyarrow.parquet

    documents = [ids for ids in DOCUMENTS if len(ids) > 1]
    trains = [rng.random(len(ids)) < 0.7 for ids in documents]
    labels = [np.where(train, ids, -100).tolist() for ids, train in zip(documents, trains)]
    others = [rng.random(len(ids)) < 0.5 for ids in documents]
    both = [np.where(train & other, ids, -100).tolist() for ids, train, other in zip(documents, trains, others)]
    ids = [d.tolist() for d in documents]
    lengths = [[len(d) for d in documents[i:i + 3]] for i in range(0, len(documents), 3)]
    in_threes = lambda rows: [sum(rows[i:i + 3], []) for i in range(0, len(rows), 3)]  # noqa: E731
    next_ones = [[*train[1:].tolist(), True] for train in trains]
    no_first = [[-100, *row[1:]] for row in labels]
    for columns, arguments, wanted in (
            ({"input_ids": ids, "labels": labels}, [], labels),
            ({"input_ids": ids, "loss_mask": pa.array([[*map(int, t)] for t in trains], pa.large_list(pa.int8()))}, [], labels),
            ({"input_ids": ids, "assistant_masks": others, "completion_mask": trains}, [], both),
            ({"a": ids, "b": labels, "c": others}, ["--field", "a", "--labels", "b", "--loss-mask", "c"], both),
            ({"input_ids": ids, "labels": labels, "loss_mask": others}, ["--loss-mask", "loss_mask", "--labels", "labels"], both),
            ({"input_ids": ids, "labels": labels, "x": others}, ["--no-mask"], ids),
            ({"input_ids": in_threes(ids), "labels": in_threes(labels), "seq_lengths": lengths}, [], labels),
            ({"input_ids": in_threes(ids), "loss_mask": in_threes(next_ones),
              "seq_start_id": [np.cumsum([0] + some[:-1]).tolist() for some in lengths]}, [], no_first),
            ({"input_ids": in_threes(ids), "seq_lengths": lengths}, [], ids)):
        table = pa.table({name: c if isinstance(c, pa.Array) else pa.array([list(row) for row in c]) for name, c in columns.items()})
        pyarrow.parquet.write_table(table, folder / "a.parquet", row_group_size=700)
        datasets.Dataset(table).save_to_disk(str(folder / "saved"))
        for kind, path in (("parquet", folder / "a.parquet"), ("datasets", folder / "saved")):
            expect(folder, documents, kind, path, *arguments)
            ds = tokmap.open(folder / "out")
            assert [ds.labels(i).tolist() for i in range(len(ds))] == wanted, (kind, list(columns))
            assert (ds.n_spans > 0) == (wanted is not ids)
    for columns, why in (({"labels": [[1, 3]]}, "row 0: labels has 3 at 1: must be 2, the id, or -100; --no-mask"),
                         ({"labels": [[2, -100]]}, "labels has 2 at 0"), ({"labels": [[1]]}, "has 2 ids and 1 labels"),
                         ({"labels": [[1, None]]}, "labels"), ({"labels": [None]}, "without labels"), ({"labels": [7]}, "labels has int64"),
                         ({"loss_mask": [[1, 2]]}, "loss_mask has 2 at 1: must be 0 or 1"), ({"seq_lengths": [[1, 2]]}, "seq_lengths does not"),
                         ({"loss_mask": [["a", "b"]]}, "loss_mask has list"), ({"seq_lengths": [[1, 0, 1]]}, "seq_lengths does not")):
        pyarrow.parquet.write_table(pa.table({"input_ids": [[1, 2]], **columns}), folder / "bad.parquet")
        text = run_import(folder, "parquet", folder / "bad.parquet", *VOCAB, "--force", status=3)
        assert why in text and text.startswith(f"tokmap import: {folder}/bad.parquet: "), (columns, text)
    assert "no field 'x'" in run_import(folder, "parquet", folder / "bad.parquet", *VOCAB, "--labels", "x", "--force", status=3)


def the_recipes_write_what_is_read(folder):
    """A dataset with spans as rows of Hugging Face, and as packs of Megatron, is the same dataset afterwards."""
    need_module("datasets"), need_module("pyarrow")
    documents = [ids for ids in DOCUMENTS if len(ids) > 1]
    with tokmap.Writer(folder / "chats", 500, EOD, spans=True) as w:
        for ids in documents:
            w.document(ids, train=np.append(False, rng.random(len(ids) - 1) < 0.7))
    chats = tokmap.open(folder / "chats")
    texts = [text for title, _, text in blocks("recipes.md") if title == "Tokens that are not trained on"][1:]
    with changed_folder(folder):
        for text in texts:
            exec(compile(text, "recipe", "exec"), {})
    for kind, name in (("datasets", "rows"), ("parquet", "packed.idx.parquet")):
        expect(folder, documents, kind, folder / name)
        out = tokmap.open(folder / "out")
        assert (out.dataset_id, out.spans_hash) == (chats.dataset_id, chats.spans_hash), kind
    return f"{chats.n_spans} spans"


def what_is_wrong_is_said(folder):
    (folder / "damaged").write_bytes(b"damaged")
    for kind in ("hdf5", "tfrecord", "webdataset", "parquet"):
        text = run_import(folder, kind, folder / "damaged", *VOCAB, status=3)
        assert text.startswith("tokmap import: ") and "damaged" in text and len(text.splitlines()) == 1, text
        assert not (folder / "out.tmi").exists()
    run_import(folder, "nothing", folder / "damaged", *VOCAB, status=2)
    np.save(folder / "x", [600])
    import tarfile

    with tarfile.open(folder / "large.tar", "w") as tar:
        tar.add(folder / "x.npy", "0.npy")
    assert "600" in run_import(folder, "webdataset", folder / "large.tar", *VOCAB, status=3)
    run_import(folder, "webdataset", folder / "large.tar", "--vocab-size", 601)
    assert "exists" in run_import(folder, "webdataset", folder / "large.tar", "--vocab-size", 601, status=5)


def remove_locks():
    """Of streaming, whose package filelock leaves the files of its locks in some versions."""
    for path in pathlib.Path(tempfile.gettempdir()).glob("*_cache_filelock"):
        path.unlink()


if __name__ == "__main__":
    status = run_checks("import_")
    remove_locks()
    sys.exit(status)

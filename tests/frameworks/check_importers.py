#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap import, of files that each library wrote."""

import io
import subprocess
import sys

from frameworks import need, run_checks

if __name__ == "__main__":
    need("importers", "numpy")
import numpy as np  # noqa: E402

import tokmap  # noqa: E402
from documents import environment  # noqa: E402
from ref_protocol import need as need_module  # noqa: E402

EOD = 499
rng = np.random.default_rng(1)
DOCUMENTS = [np.append(rng.integers(0, EOD, rng.integers(0, 60)), EOD) for _ in range(2500)]
STREAM = np.concatenate(DOCUMENTS)
ROWS = STREAM[:len(STREAM) // 64 * 64].reshape(-1, 64)  # packed
VOCAB = ["--vocab-size", "500", "--eod-id", str(EOD)]


def run_import(folder, *arguments, status=0):
    """Its stderr, and the dataset that it made."""
    done = subprocess.run([sys.executable, "-m", "tokmap", "import", *map(str, arguments), "-o", folder / "out"],
                          env=environment(), capture_output=True, text=True)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done.stderr


def expect(folder, documents, *arguments):
    run_import(folder, *arguments, *VOCAB, "--replace")
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
    assert "choose one by --field: " in run_import(folder, "hdf5", folder / "a.h5", *VOCAB, "--replace", status=3)
    assert "use --stream" in run_import(folder, "hdf5", folder / "a.h5", "--field", "group/tokens", *VOCAB, "--replace",
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
    assert "several splits" in run_import(folder, "datasets", folder / "both", *VOCAB, "--replace", status=3)


def parquet(folder):
    pa = need_module("pyarrow")
    import pyarrow.parquet

    for number, kind in enumerate((pa.list_(pa.int32()), pa.large_list(pa.uint16()), pa.list_(pa.int64()))):
        table = pa.table({"id": range(len(DOCUMENTS)), "tokens": pa.array([d.tolist() for d in DOCUMENTS], kind)})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet", row_group_size=700)
        expect(folder, DOCUMENTS, "parquet", folder / f"{number}.parquet")
    pyarrow.parquet.write_table(pa.table({"t": STREAM}), folder / "flat.parquet")
    expect(folder, DOCUMENTS, "parquet", folder / "flat.parquet", "--stream")
    assert "use --stream" in run_import(folder, "parquet", folder / "flat.parquet", *VOCAB, "--replace", status=3)
    pyarrow.parquet.write_table(pa.table({"text": ["a", "b"]}), folder / "text.parquet")
    assert "must be ids" in run_import(folder, "parquet", folder / "text.parquet", *VOCAB, "--replace", status=3)


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


if __name__ == "__main__":
    sys.exit(run_checks("import_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""python -m tokmap import, and render, without other packages: a tar of arrays, streams of packed rows, and what is missing."""

import io
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tarfile

from package import ROOT
from ref_protocol import run_in_folders

import numpy as np
import tokmap

HIDE = "import sys; sys.modules.update(h5py=None, lmdb=None, tfrecord=None, datasets=None, pyarrow=None, transformers=None); "


def run(*arguments):
    script = HIDE + f"sys.argv[1:] = {list(map(str, arguments))!r}; from tokmap.__main__ import main; main()"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})


def write_tar(path, arrays):
    with tarfile.open(path, "w") as tar:
        for i, array in enumerate(arrays):
            file = io.BytesIO()
            np.save(file, array)
            for name, data in ((f"a.b/{i}.ids.npy", file.getvalue()), (f"a.b/{i}.txt", b"text")):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def tar_becomes_a_dataset(folder):
    documents = [np.append(np.arange(n) % 9, 9) for n in range(300)]
    write_tar(folder / "a.tar", documents)
    done = run("import", "webdataset", folder / "a.tar", "-o", folder / "a", "--vocab-size", 10, "--field", "ids.npy")
    ds = tokmap.open(folder / "a")
    said = f"{folder}/a: 300 documents, {ds.n_tokens:,} tokens (u16) from 1 files, id {ds.dataset_id}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, ""), done
    assert [d.tolist() for d in ds] == [d.tolist() for d in documents] and ds.inputs[0].name == str(folder / "a.tar")
    done = run("import", "webdataset", folder / "a.tar", "-o", folder / "b", "--vocab-size", 65536, "--field", "txt")
    assert done.returncode == 3 and "--dtype" in done.stderr, done.stderr  # bytes of any type would be ids
    assert not (folder / "b.tmi").exists()
    packed = np.concatenate(documents)[:44_900].reshape(-1, 50)
    write_tar(folder / "p.tar", packed)
    done = run("import", "webdataset", folder / "p.tar", "-o", folder / "q", "--vocab-size", 10, "--field", "ids.npy")
    assert done.returncode == 0 and "898 of 898 documents have 50 ids" in done.stderr, done.stderr
    assert "--stream" in done.stderr, done.stderr
    done = run("import", "webdataset", folder / "p.tar", "-o", folder / "p", "--vocab-size", 10, "--field", "ids.npy",
               "--stream", "--eod-id", 9)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    ds = tokmap.open(folder / "p")
    assert np.array_equal(ds.tokens(), packed.ravel()) and [d.tolist() for d in ds[:-1]] == \
        [d.tolist() for d in documents[:len(ds) - 1]]


def arrays_become_datasets(folder):
    """Those that `tokmap index` refuses, because their tokens would have to be converted."""
    rows = np.arange(600, dtype=np.int64).reshape(20, 30)
    for name, array, options, documents in (("rows", rows, (), rows), ("stream", rows.ravel(), ("--stream",), [rows.ravel()]),
                                            ("turned", np.asfortranarray(rows.astype(">u2")), (), rows)):
        np.save(folder / f"{name}.npy", array)
        done = run("import", "numpy", folder / f"{name}.npy", "-o", folder / name, "--vocab-size", 600, "-q", *options)
        assert done.returncode == 0 and done.stdout == "", (name, done)
        assert [d.tolist() for d in tokmap.open(folder / name)] == [list(d) for d in documents], name
    for array, why in ((rows.ravel(), "use --stream"), (rows / 2, "must be integers"), (rows - 1, "-1"),
                       (rows + 1, "600")):
        np.save(folder / "bad.npy", array)
        done = run("import", "numpy", folder / "bad.npy", "-o", folder / "bad", "--vocab-size", 600)
        assert done.returncode == 3 and why in done.stderr and not (folder / "bad.tmi").exists(), (why, done)


class Marker:
    """Leaves a folder behind when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def nothing_in_a_file_is_unpickled(folder):
    marker = Marker(folder / "unpickled")
    array, plain = io.BytesIO(), pickle.dumps(marker)
    np.save(array, np.array([marker], object), allow_pickle=True)
    for name, data in (("ids.npy", array.getvalue()), ("ids.json", plain), ("ids.pyd", plain), ("ids.pth", plain)):
        with tarfile.open(folder / "a.tar", "w") as tar:
            member = tarfile.TarInfo("0." + name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        run("import", "webdataset", folder / "a.tar", "-o", folder / "a", "--vocab-size", 65536, "--field", name,
            "--dtype", "uint16", "--replace")
        assert not (folder / "unpickled").exists(), name
    for path in (pathlib.Path(tokmap.__file__).parent).glob("*.py"):
        assert not re.search(r"pickle\.load|import pickle|allow_pickle=True|\beval\(|\bexec\(", path.read_text()), path


def missing_packages_are_named(folder):
    (folder / "x").touch()
    for kind, package in (("hdf5", "h5py"), ("lmdb", "lmdb"), ("tfrecord", "tfrecord"), ("datasets", "datasets"),
                          ("parquet", "pyarrow")):
        done = run("import", kind, folder / "x", "-o", folder / "new", "--vocab-size", 10)
        assert done.returncode == 3 and f"pip install {package}\n" in done.stderr, (kind, done.stderr)
        assert len(done.stderr.splitlines()) == 1 and not (folder / "new.tmi").exists()
    done = run("render", folder / "x", "--tokenizer", folder, "-o", folder / "new")
    assert done.returncode == 3 and done.stderr.endswith("pip install transformers\n") and not (folder / "new").exists(), done


sys.exit(run_in_folders("python_import_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap import, and render, without other packages: a tar of arrays, streams of packed rows, and what is missing."""

import io
import json
import os
import pathlib
import pickle
import re
import struct
import subprocess
import sys
import tarfile
import threading
import time

import terminal
from package import ROOT
from ref_protocol import hand_over, need_parquet, program, run_in_folders

import numpy as np
import tokmap
from tokmap._tools.importers import READERS

HIDE = "import sys; sys.modules.update(h5py=None, lmdb=None, tfrecord=None, datasets=None, pyarrow=None, transformers=None); "


def run(*arguments):
    done, handed_over = hand_over(*arguments)
    if done.returncode:
        return done
    script = HIDE + f"from tokmap.__main__ import run_command; run_command({arguments[0]!r}, {handed_over!r})"
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
    said = f"{folder}/a: 300 documents, {ds.n_tokens:,} tokens (u16) from 1 file, id {ds.dataset_id}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, ""), done
    assert [d.tolist() for d in ds] == [d.tolist() for d in documents] and ds.inputs[0].name == str(folder / "a.tar")
    done = run("import", "webdataset", folder / "a.tar", "-o", folder / "b", "--vocab-size", 65536, "--field", "txt")
    assert done.returncode == 3 and "--dtype" in done.stderr, done.stderr  # bytes of any type would be ids
    assert not (folder / "b.tmi").exists()
    done = run("import", "webdataset", folder / "a.tar", "-o", folder / "b", "--vocab-size", 10, "--field", "ids.npy",
               "--labels", "x")
    assert done.returncode == 3 and "--labels" in done.stderr and not (folder / "b.tmi").exists(), done.stderr
    packed = np.concatenate(documents)[:44_900].reshape(-1, 50)
    write_tar(folder / "p.tar", packed)
    done = run("import", "webdataset", folder / "p.tar", "-o", folder / "q", "--vocab-size", 10, "--field", "ids.npy")
    assert done.returncode == 0 and "898 of 898 documents have 50 ids" in done.stderr, done.stderr
    assert "--stream" in done.stderr, done.stderr
    done = run("import", "webdataset", folder / "p.tar", "-o", folder / "p", "--vocab-size", 10, "--field", "ids.npy",
               "--stream", "--eod", 9)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    ds = tokmap.open(folder / "p")
    assert np.array_equal(ds.tokens(), packed.ravel()) and [d.tolist() for d in ds[:-1]] == \
        [d.tolist() for d in documents[:len(ds) - 1]]


def it_behaves_as_the_commands_in_c(folder):
    """An output that exists, --json, names that a terminal would obey, and progress on a terminal alone."""
    np.save(folder / "a.npy", np.arange(300).reshape(-1, 30))
    command = ["import", "numpy", folder / "a.npy", "-o", folder / "a", "--vocab-size", 300]
    assert run(*command).returncode == 0
    done = run(*command)
    assert (done.returncode, done.stdout) == (5, ""), done
    hint = "Use --force to replace it, or choose another name.\n"
    assert done.stderr == f"tokmap import: {folder}/a.tmi: already exists\n{hint}", done
    done, ds = run(*command, "--force", "--json"), tokmap.open(folder / "a")
    assert json.loads(done.stdout) == {
        "schema_version": 1, "index_file": f"{folder}/a.tmi", "token_file": f"{folder}/a.bin", "n_tokens": 300,
        "dtype": "u16", "n_documents": 10, "n_inputs": 1, "n_spans": 0, "dataset_id": ds.dataset_id}, done
    hostile = os.fsdecode(bytes(folder) + b"/\"\\\xc3\xa9\x1b[31m\xff")
    done = run("import", "numpy", folder / "a.npy", "-o", hostile, "--vocab-size", 300)
    assert done.returncode == 0 and "/\"\\\u00e9\\x1b[31m\\xff: 10 documents" in done.stdout, done
    write_tar(folder / "a.tar", np.arange(300).reshape(-1, 30))
    os.mkfifo(folder / "pipe")

    def write_slowly():
        with open(folder / "pipe", "wb") as pipe:
            data = (folder / "a.tar").read_bytes()
            for part in data[:len(data) // 2], data[len(data) // 2:]:
                pipe.write(part)
                pipe.flush()
                time.sleep(0.5)

    terminal.run(["true"])  # skips the test before a thread waits for a reader of the pipe
    threading.Thread(target=write_slowly).start()
    command = [sys.executable, "-m", "tokmap", "import", "webdataset", folder / "pipe", "-o", folder / "b",
               "--field", "ids.npy", "--vocab-size", "300"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TERM": "xterm"}
    status, printed = terminal.run(list(map(str, command)), env=environment)
    assert status == 0, printed
    assert re.match(rb"(\r\x1b\[\?7limport: \d documents of file 1 of 1\x1b\[\?7h\x1b\[K)+\r\x1b\[K", printed), printed


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
            "--dtype", "uint16", "--force")
        assert not (folder / "unpickled").exists(), name
    rows = np.array([{"input_ids": [1, 2], "loss_mask": marker, "seq_start_id": [0]}], object)
    for what in (rows, np.array([marker], object), np.array({"input_ids": marker}, object)):
        np.save(folder / "a.npy", what, allow_pickle=True)
        done = run("import", "numpy", folder / "a.npy", "-o", folder / "a", "--vocab-size", 65536, "--force")
        assert done.returncode == 3 and "mkdir: only lists" in done.stderr and not (folder / "unpickled").exists(), done
    own = ("short_process.py", "store.py")  # unpickle only the store that this process or its parent has pickled, from no file
    for path in (pathlib.Path(tokmap.__file__).parent).rglob("*.py"):  # Unpickler: one that calls nothing
        if path.name in own:
            continue
        assert not re.search(r"pickle\.loads?\(|allow_pickle=True|\beval\(|\bexec\(", path.read_text()), path
        assert "import pickle" not in path.read_text() or path.name == "importers.py", path


def some_packs(rng):
    """Documents with their labels, and the same as packed SFT rows of Megatron, whose mask is that of the next id."""
    documents, packs = [], []
    for _ in range(60):
        some = [(ids := rng.integers(0, 500, rng.integers(1, 30)), np.append(False, rng.random(len(ids) - 1) < 0.6))
                for _ in range(rng.integers(1, 6))]
        documents += [np.where(train, ids, -100).tolist() for ids, train in some]
        last = [[bool(rng.integers(2))] for _ in some]  # which nobody reads
        starts = np.cumsum([0] + [len(ids) for ids, _ in some])[:-1]
        packs.append({"input_ids": np.concatenate([ids for ids, _ in some]).tolist(), "seq_start_id": starts.tolist(),
                      "loss_mask": sum(([*train[1:].tolist(), *end] for (_, train), end in zip(some, last)), [])})
    return documents, packs


def write_pair(prefix, packs):
    rows = [np.array([0x53465442, 1, len(p["seq_start_id"]), *p["seq_start_id"],
                      *(i | mask << 31 for i, mask in zip(p["input_ids"], p["loss_mask"]))], "<u4") for p in packs]
    lengths = [len(row) for row in rows]
    pathlib.Path(f"{prefix}.bin").write_bytes(np.concatenate(rows).tobytes())
    pathlib.Path(f"{prefix}.idx").write_bytes(
        struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 4, len(rows), len(rows) + 1) + np.array(lengths, "<i4").tobytes() +
        np.array(np.cumsum([0] + lengths[:-1]) * 4, "<i8").tobytes() + np.arange(len(rows) + 1, dtype="<i8").tobytes())


def masks_of_megatron_are_kept(folder):
    """Rows that NeMo packed: a .npy of dicts, and a pair of files."""
    documents, packs = some_packs(np.random.default_rng(1))
    np.save(folder / "packs.npy", packs)
    write_pair(folder / "packs.sft", packs)
    for kind, name in (("numpy", "packs.npy"), ("megatron", "packs.sft.idx"), ("megatron", "packs.sft")):
        done = run("import", kind, folder / name, "-o", folder / "a", "--vocab-size", 500, "--force")
        ds = tokmap.open(folder / "a")
        ds.verify()
        assert done.returncode == 0 and f" {ds.n_spans} spans that are not trained on, id" in done.stdout, done
        assert [ds.labels(i).tolist() for i in range(len(ds))] == documents
        assert [ids for document in ds for ids in document] == [ids for pack in packs for ids in pack["input_ids"]]
    run("import", "numpy", folder / "packs.npy", "-o", folder / "b", "--vocab-size", 500, "--no-mask")
    assert tokmap.open(folder / "b").n_spans == 0 and len(tokmap.open(folder / "b")) == len(documents)
    assert (folder / "b.bin").read_bytes() == (folder / "a.bin").read_bytes()
    for change, why in (({"loss_mask": [1, 0]}, "row 1: has 3 ids and 2 loss_mask"), ({"loss_mask": [0, 2, 1]}, "loss_mask has 2 at 1"),
                        ({"seq_start_id": [1]}, "seq_start_id does not divide its 3 ids"), ({"seq_start_id": [0, 3]}, "[0, 3]"),
                        ({"seq_start_id": [0, 2, 1]}, "seq_start_id"), ({"seq_start_id": []}, "seq_start_id"),
                        ({"input_ids": [1, 2, 500]}, "500"), ({"input_ids": [[1]]}, "row 1"), ({"input_ids": ["a", "b", "c"]}, "ids")):
        np.save(folder / "bad.npy", [packs[0], {"input_ids": [1, 2, 3], "loss_mask": [1, 0, 1], "seq_start_id": [0], **change}])
        done = run("import", "numpy", folder / "bad.npy", "-o", folder / "c", "--vocab-size", 500)
        assert done.returncode == 3 and why in done.stderr and not (folder / "c.tmi").exists(), (change, done)
    np.save(folder / "bad.npy", [packs[0], {"input_ids": [1, 2, 3], "seq_start_id": [0]}])
    assert "some have none" in run("import", "numpy", folder / "bad.npy", "-o", folder / "c", "--vocab-size", 500).stderr
    done = run("import", "numpy", folder / "packs.npy", "-o", folder / "c", "--vocab-size", 500, "--stream")
    assert done.returncode == 3 and "without --stream" in done.stderr, done
    for name, at, value in (("idx", 0, 1), ("idx", 17, 5), ("idx", 36, 90), ("bin", 0, 0), ("bin", 8, 90), ("bin", 4, 2)):
        write_pair(folder / "bad", packs)
        data = bytearray((folder / f"bad.{name}").read_bytes())
        data[at] = value
        (folder / f"bad.{name}").write_bytes(data)
        done = run("import", "megatron", folder / "bad", "-o", folder / "c", "--vocab-size", 500)
        assert done.returncode == 3 and "bad." in done.stderr and not (folder / "c.tmi").exists(), (name, at, done)


def masks_of_datatrove_are_kept(folder):
    rng = np.random.default_rng(2)
    documents = [(rng.integers(0, 500, n), rng.random(n) < 0.6) for n in (3, 1, 40, 7)]
    ids, loss = (np.concatenate(column) for column in zip(*documents))
    ends = np.cumsum([len(i) for i, _ in documents]).astype("<u8")
    files, path = {"": ids.astype("<u2"), ".index": ends, ".loss": loss}, folder / "x.ds"

    def take(changes, *more):
        for suffix, array in {**files, **changes}.items():
            pathlib.Path(f"{path}{suffix}").write_bytes(array.tobytes())
        return run("import", "datatrove", path, "-o", folder / "a", "--vocab-size", 500, "--force", *more)

    for changes in ({}, {"": ids.astype("<u4")}):
        done = take(changes)
        ds = tokmap.open(folder / "a")
        ds.verify()
        assert done.returncode == 0, done
        assert [ds.labels(i).tolist() for i in range(len(ds))] == [np.where(m, i, -100).tolist() for i, m in documents]
    assert take({}, "--no-mask").returncode == 0 and tokmap.open(folder / "a").n_spans == 0
    assert take(dict.fromkeys(files, ids[:0])).returncode == 0 and len(tokmap.open(folder / "a")) == 0
    for changes, why in (({".loss": loss[1:]}, "x.ds.loss: has 50 bytes for 51 ids"), ({".index": ends[:3]}, "x.ds.index: its 3"),
                         ({".index": ends[[1, 0, 2, 3]]}, "x.ds.index: its 4"), ({".loss": loss[:0]}, "has 0 bytes"),
                         ({".index": np.append(np.uint64(2**64 - 5), ends[1:])}, "x.ds.index: its 4"),
                         ({".index": np.append(ends.view(np.uint8), np.uint8(1))}, "x.ds: "), ({".loss": loss * np.uint8(3)}, "must be 0 or 1")):
        done = take(changes)
        assert done.returncode == 3 and why in done.stderr, done
    assert take({".loss": loss[:0]}, "--no-mask").returncode == 0 and "without --stream" in take({}, "--stream").stderr
    pathlib.Path(f"{path}.loss").unlink()
    del files[".loss"]
    assert take({}, "--stream").returncode == 0
    assert tokmap.open(folder / "a").n_spans == 0 and tokmap.open(folder / "a").n_tokens == 51


def empty_lists_and_files_go_with_all_others(folder):
    with tarfile.open(folder / "e.tar", "w") as tar:
        for i, text in enumerate((b"[]", b"[1, 2]", b"[]", b"[5, 3]", b"[]")):
            info = tarfile.TarInfo(f"{i}.json")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    done = run("import", "webdataset", folder / "e.tar", "-o", folder / "e", "--vocab-size", 10, "--field", "json", "--stream", "--eod", 5)
    assert done.returncode == 0 and [one.tolist() for one in tokmap.open(folder / "e")] == [[1, 2, 5], [3]], done
    pa, pq = need_parquet()
    ids = pa.list_(pa.int32())
    for name, rows in (("none", []), ("some", [([1, 2, 3], [1, -100, 3])]), ("plain", [([4, 5], None)])):
        columns = {"input_ids": pa.array([one for one, _ in rows], ids)}
        if name != "plain":
            columns["labels"] = pa.array([other for _, other in rows], ids)
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    none, some, plain = (folder / f"{name}.parquet" for name in ("none", "some", "plain"))

    def take(*files):
        return subprocess.run([sys.executable, "-m", "tokmap", *map(str, ("import", "parquet", *files, "-o", folder / "m", "-f", "--vocab-size", 10))],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})

    for files in ((none, some), (none, none, some, none), (some, none)):
        done, ds = take(*files), tokmap.open(folder / "m")
        assert done.returncode == 0 and ds.labels(0).tolist() == [1, -100, 3] and len(ds) == 1, done
        assert [one.name for one in ds.inputs] == list(map(str, files))
        ds.close()
    assert take(none, none).returncode == 0 and len(tokmap.open(folder / "m")) == 0
    assert "some have none" in take(none, some, plain).stderr


def what_a_store_says_of_itself_is_not_a_row(folder):
    """A stand-in for lmdb: stores for training have __len__ or __keys__ beside the rows."""
    (folder / "lmdb.py").write_text("""import contextlib
class Store(dict):
    cursor = dict.items
    begin = lambda self: contextlib.nullcontext(self)
def open(path, **_): return contextlib.nullcontext(Store(eval(__import__('pathlib').Path(path).read_text())))
""")
    (folder / "store").write_text(repr({b"0": b"\3\0", b"1": b"\1\0\2\0", b"__len__": b"odd", b"__keys__": b"evenbyte"}))

    def take(*more):
        return subprocess.run([sys.executable, "-m", "tokmap", *map(str, ("import", "lmdb", folder / "store", "-o", folder / "d", "-f", *more))],
                              capture_output=True, text=True, env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'python'}"})

    done = take("--vocab-size", 10, "--dtype", "uint16")
    assert done.returncode == 0 and [one.tolist() for one in tokmap.open(folder / "d")] == [[3], [1, 2]], done
    assert "__len__" in done.stderr and "__keys__" in done.stderr, done
    done = take("--vocab-size", 10, "--dtype", "uint32")
    assert done.returncode == 3 and "a row has 2 bytes" in done.stderr and "uint32" in done.stderr, done


def a_program_of_another_version_is_refused(folder):
    for version, command, said in (("9.8.7", "trace", "tokmap trace: /bin/tokmap is of version 9.8.7, but the Python package "),
                                   (tokmap.__version__, "pack", "tokmap: the Python package has no command 'pack'")):
        script = f"import sys; sys.argv[1:] = {[version, '/bin/tokmap', command, '--help']}; from tokmap.__main__ import run_for_program as run; run()"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        assert done.returncode == 2 and done.stderr.startswith(said) and not done.stdout, done


def missing_packages_are_named(folder):
    (folder / "x").touch()
    for kind, package in (("hdf5", "h5py"), ("lmdb", "lmdb"), ("tfrecord", "tfrecord"), ("datasets", "datasets"),
                          ("parquet", "pyarrow")):
        done = run("import", kind, folder / "x", "-o", folder / "new", "--vocab-size", 10)
        assert done.returncode == 3 and f"pip install {package}\n" in done.stderr, (kind, done.stderr)
        assert len(done.stderr.splitlines()) == 1 and not (folder / "new.tmi").exists()
    done = run("render", folder / "x", "--tokenizer", folder, "-o", folder / "new")
    assert done.returncode == 3 and done.stderr.endswith("pip install transformers\n") and not (folder / "new").exists(), done


def the_help_has_the_formats_that_can_be_read(folder):
    said = subprocess.run([program("tokmap"), "import", "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.search(r"\nFormats:\n(.*?)\n\n", said, re.DOTALL)[1]
    assert re.findall(r"\b(?!or\b)\w+", listed) == [*READERS], listed


sys.exit(run_in_folders("python_import_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`tokmap index` and `tokmap export` on files that foreign_writers makes from their layouts: adopted,
verified, printed, exported byte for byte; everything that must be refused, with its exit code."""

import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import foreign_writers as writers
import ref_reader
import ref_writer
from ref_protocol import NAMING_CALLS, Skip, expect, expect_equal, kills, program, reads, run_in_folders, run_program

USAGE, INPUT, DATASET, EXISTS, AGAIN = 2, 3, 4, 5, 75
DOCUMENTS = [[5, 6, 7], [], [8], [9, 10, 11, 12, 65535], []]


class Folder:
    """`folder / name` is a path in it."""

    def __init__(self, path):
        self.path = str(path)

    def __truediv__(self, name):
        return os.path.join(self.path, name)

    def files(self):
        """Names and digests of everything in it."""
        return {name: digest(self / name) for name in sorted(os.listdir(self.path))}

    def empty(self):
        for name in os.listdir(self.path):
            os.unlink(self / name)


def digest(path):
    if os.path.isdir(path):
        return "folder"
    if os.path.getsize(path) > 1 << 24:
        return os.path.getsize(path)
    return hashlib.sha256(content(path)).hexdigest()


def content(path):
    with open(path, "rb") as f:
        return f.read()


def tokmap(*arguments, exit_code=0, says=""):
    done = run_program("tokmap", *arguments)
    message = done.stderr.decode("utf-8", "replace")
    expect_equal((done.returncode, message if done.returncode != exit_code else ""),
                 (exit_code, ""), "tokmap %s" % " ".join(arguments))
    expect(says in message, "tokmap %s says %r, without %r" % (arguments, message, says))
    if exit_code != 0:
        expect(message != "", "tokmap %s fails without a word" % (arguments,))
    return done.stdout.decode()


def refused(folder, exit_code, says, *arguments):
    """The call fails with this code and text, and leaves every file as it was and no other."""
    before = folder.files()
    tokmap(*arguments, exit_code=exit_code, says=says)
    expect_equal(folder.files(), before, "files after a refusal (%s)" % says)


def check_adopted(path, documents, format_name, size, *options):
    """Adopts path and compares all that can be seen with `documents`, a list of lists, or a tuple of
    tokens when boundaries are not known. Returns what ref_reader sees."""
    has_boundaries = isinstance(documents, list)
    tokens = writers.flat(documents) if has_boundaries else list(documents)
    line = tokmap("index", *options, path)
    expect(": %s, " % format_name in line, "index says %r" % line)
    prefix = os.path.splitext(path)[0]
    tokmap("verify", "-q", prefix)
    rows = [row.split() for row in tokmap("cat", prefix).split("\n")[:-1]]
    wanted = documents if has_boundaries else [tokens] if tokens else []
    expect_equal(rows, [[str(t) for t in document] for document in wanted], "tokmap cat")
    ds = ref_reader.read(prefix)
    expect_equal(list(ds.tokens), tokens, "tokens seen by ref_reader")
    expect_equal(ds.token_bytes, size, "token_bytes")
    expect(ds.dataset_id.hex() in line, "index says %r" % line)
    expect_equal(ds.metadata["adopted_from"]["format"], format_name, "metadata")
    return ds


def export_is_identical(folder, prefix, to, wanted):
    """wanted: expected files by suffix; exported once to a new place."""
    tokmap("export", "-q", "--to", to, prefix, "-o", folder / "exported")
    for suffix, path in wanted.items():
        expect_equal(digest(folder / ("exported" + suffix)), digest(path), to + " " + suffix)
        os.unlink(folder / ("exported" + suffix))
    expect(not [name for name in os.listdir(folder.path) if name.startswith("exported")],
           "more files than expected")


# ---- Adopted and exported ----


def megatron_round_trip(folder):
    for size in (2, 4):
        folder.empty()
        path = writers.megatron(folder / "x", DOCUMENTS, size)
        ds = check_adopted(path, DOCUMENTS, "megatron", size)
        expect_equal((ds.token_offset, ds.eod_id), (0, None), "offset, eod")
        export_is_identical(folder, folder / "x", "megatron",
                            {".bin": folder / "x.bin", ".idx": folder / "x.idx"})
        export_is_identical(folder, folder / "x", "raw", {".bin": folder / "x.bin"})


def megatron_documents_of_several_sequences(folder):
    path = writers.megatron(folder / "x", DOCUMENTS, 2,
                            split=lambda d: [d[:1], [], d[1:3], d[3:]])
    check_adopted(path, DOCUMENTS, "megatron", 2)
    folder.empty()
    path = writers.megatron(folder / "x", DOCUMENTS, 4,
                            split=lambda d: [d[:2], d[2:]] if d else [])
    check_adopted(folder / "x.idx", DOCUMENTS, "megatron", 4, "--eod", "9")
    expect_equal(ref_reader.read(folder / "x").eod_id, 9, "eod")


def megatron_many_documents_round_trip(folder):
    chance = random.Random(1)
    documents = [[chance.randrange(50000) for _ in range(chance.choice((0, 1, 7, 90)))]
                 for _ in range(20000)]
    path = writers.megatron(folder / "x", [[]], 2)
    ends = [0] + writers.datatrove_ends(documents)
    starts = [2 * end for end in ends[:-1]]
    writers.raw(path, writers.flat(documents))
    writers.write_file(folder / "x.idx", writers.megatron_index(
        [len(d) for d in documents], range(len(documents) + 1), 2, starts=starts))
    check_adopted(path, documents, "megatron", 2)
    export_is_identical(folder, folder / "x", "megatron",
                        {".bin": folder / "x.bin", ".idx": folder / "x.idx"})


def megatron_without_documents(folder):
    path = writers.megatron(folder / "x", [], 2)
    check_adopted(path, [], "megatron", 2)
    export_is_identical(folder, folder / "x", "megatron",
                        {".bin": folder / "x.bin", ".idx": folder / "x.idx"})


def numpy_versions_and_types(folder):
    tokens = (1, 2, 7, 3, 7)
    for version in ((1, 0), (2, 0), (3, 0)):
        for size, descr in ((2, "<u2"), (4, "<u4"), (4, "<i4")):
            folder.empty()
            path = writers.numpy(folder / "x.npy", tokens, size, version, descr)
            ds = check_adopted(path, tokens, "numpy", size, "--eod", "none")
            expect_equal(ds.token_offset % 64, 0, "offset")
            writers.raw(folder / "raw", tokens, size)
            export_is_identical(folder, folder / "x", "raw", {".bin": folder / "raw"})
            check_adopted(path, [[1, 2, 7], [3, 7]], "numpy", size, "--eod", "7", "--force")


def llmc_round_trip(folder):
    for size in (2, 4):
        begin = writers.LLMC_BEGIN[size]
        folder.empty()
        path = writers.llmc(folder / "x.bin", DOCUMENTS, size)
        adopted = [[begin] + document for document in DOCUMENTS]
        ds = check_adopted(path, adopted, "llmc", size)
        expect_equal((ds.token_offset, ds.eod_id), (1024, None), "offset, no end id")
        expect_equal(ds.metadata["adopted_from"]["documents_begin_with"], begin, "begin id")
        export_is_identical(folder, folder / "x", "llmc", {".bin": path})
        writers.raw(folder / "raw", writers.flat(adopted), size)
        export_is_identical(folder, folder / "x", "raw", {".bin": folder / "raw"})


def llmc_begins_in_the_middle_of_a_document(folder):
    tokens = [3, 4, 50256, 5, 6, 50256]
    path = writers.write_file(folder / "s_000002.bin",
                              writers.llmc_head(2, 6) + writers.token_bytes(tokens, 2))
    check_adopted(path, [[3, 4], [50256, 5, 6], [50256]], "llmc", 2)
    check_adopted(path, [[3], [4, 50256, 5, 6, 50256]], "llmc", 2, "--bos", "4", "-f")
    check_adopted(path, [[3, 4], [50256, 5, 6, 50256]], "llmc", 2, "--eod", "4", "-f")
    check_adopted(path, tuple(tokens), "llmc", 2, "--bos", "none", "-f")


def llmc_without_tokens(folder):
    path = writers.llmc(folder / "x.bin", [])
    check_adopted(path, [], "llmc", 2)
    export_is_identical(folder, folder / "x", "llmc", {".bin": path})


def llmc_shards_are_numbered_and_hold_all(folder):
    tokens = list(range(1, 26))
    check_adopted(writers.raw(folder / "x.bin", tokens), [tokens[:9], tokens[9:]], "raw", 2,
                  "--dtype", "u16", "--eod", "9")
    tokmap("export", "--to", "llmc", folder / "x", "-o", folder / "s", "--shard-tokens", "10")
    names = [name for name in sorted(os.listdir(folder.path)) if name.startswith("s_")]
    expect_equal(names, ["s_00000%d.bin" % i for i in (1, 2, 3)], "shards")
    for i, name in enumerate(names):
        part = tokens[10 * i : 10 * i + 10]
        wanted = writers.llmc_head(2, len(part)) + writers.token_bytes(part, 2)
        expect_equal(content(folder / name), wanted, name)
    refused(folder, EXISTS, "already", "export", "--to", "llmc", folder / "x", "-o",
            folder / "s", "--shard-tokens", "10")
    os.unlink(folder / "s_000001.bin")
    refused(folder, EXISTS, "already", "export", "--to", "llmc", folder / "x", "-o",
            folder / "s", "--shard-tokens", "10")
    tokmap("export", "--to", "llmc", folder / "x", "-o", folder / "s", "--shard-tokens", "10",
           "--force")
    check_adopted(folder / "s_000002.bin", tuple(tokens[10:20]), "llmc", 2, "--bos", "none")


def old_shards_do_not_follow_on_the_last_new_one(folder):
    p = make_dataset(folder, documents=[list(range(1, 26))])
    export = ("export", "--to", "llmc", p, "-o", folder / "s", "--shard-tokens")
    tokmap(*export, "5")
    for n in (1, 2):
        os.unlink(folder / ("s_00000%d.bin" % n))
    refused(folder, EXISTS, "s_000003.bin", *export, "13")
    writers.raw(folder / "s_000007.bin", [7])
    tokmap("index", folder / "s_000005.bin")
    refused(folder, EXISTS, "tokmap dataset", *export, "13", "--force")
    os.unlink(folder / "s_000005.tmi")
    seen = json.loads(tokmap(*export, "13", "--force", "--json"))
    names = [name for name in sorted(os.listdir(folder.path)) if name.startswith("s_")]
    expect_equal(names, ["s_000001.bin", "s_000002.bin", "s_000007.bin"], "shards")
    expect_equal(seen["files"], [folder / name for name in names[:2]], "files in JSON")


def killed_shards_are_no_set_and_the_same_command_goes_on(folder):
    """Killed at each call that names, removes or flushes a file: the first shard has its name only if all have theirs."""
    p = make_dataset(folder, documents=[list(range(1, 26)), list(range(25))])
    export = ("export", "-q", "--to", "llmc", p, "-o", folder / "s", "--shard-tokens", "10")
    tokmap(*export)
    old, last = digest(writers.write_file(folder / "old", b"old")), content(folder / "s_000003.bin")
    wanted = {name: data for name, data in folder.files().items() if name.startswith("s_")}
    n_kills = 0

    def empty():
        for name in set(folder.files()) - {"p.bin", "p.tmi"}:
            os.unlink(folder / name)

    def write_old():
        empty()
        tokmap(*export[:-1], "9")
        writers.write_file(folder / "s_000001.bin", b"old")

    for prepare, force in ((empty, ()), (write_old, ("--force",))):
        for place in kills(prepare, *export, *force, calls=(*NAMING_CALLS, "fsync", "fdatasync")):
            now = folder.files()
            if now.get("s_000001.bin", old) != old:
                expect(all(now.get(name) == data for name, data in wanted.items()), "%s: %s" % (place, sorted(now)))
            tokmap(*export, *force, exit_code=EXISTS if "s_000001.bin" in now and not force else 0)
            now = {name: data for name, data in folder.files().items() if name.startswith("s_")}
            expect_equal(now, wanted, "the shards after " + place)
            n_kills += 1
    empty()
    # What is not of the killed run stays.
    tokmap(*export, "--force")
    os.rename(folder / "s_000001.bin", folder / "s_000001.bin.partial")
    for other in (last[:-1] + b"!", b"another"):
        writers.write_file(folder / "s_000003.bin", other)
        tokmap(*export, exit_code=EXISTS, says="s_000003.bin: already exists")
        expect_equal(content(folder / "s_000003.bin"), other, "the file of another program")
    return "%d kills" % n_kills


def results_in_json_and_quiet(folder):
    p = make_dataset(folder)
    q = folder / "q"
    for to, way, suffixes in (("megatron", "hard link", (".bin", ".idx")),
                              ("raw", "hard link", (".bin",)), ("llmc", "copy", (".bin",))):
        for quiet in ((), ("-q",)):
            seen = json.loads(tokmap("export", "--to", to, p, "-o", q, "--json", *quiet))
            wanted = {"schema_version": 1, "format": to, "files": [q + s for s in suffixes],
                      "way": way, "n_tokens": 9, "n_documents": 5}
            expect_equal(seen, wanted, to)
            for suffix in suffixes:
                os.unlink(q + suffix)
        expect_equal(tokmap("export", "--to", to, p, "-o", q, "-q"), "", "export -q")
        for suffix in suffixes:
            os.unlink(q + suffix)
    seen = json.loads(tokmap("export", "--to", "megatron", p, "-o", p, "--json"))
    expect_equal((seen["files"], seen["way"]), ([p + ".idx"], None), "only the .idx")
    path = writers.llmc(folder / "x.bin", DOCUMENTS)
    writers.write_file(path + ".loss", b"1")
    expect_equal(tokmap("index", "-q", path), "", "index -q")
    seen = json.loads(tokmap("index", "-q", "--json", "-f", path))
    expect_equal(seen["format"], "llmc", "index -q --json")


def the_result_is_that_of_the_file_that_was_indexed(folder):
    make_dataset(folder, "x.bin", documents=[[1]])
    path = writers.llmc(folder / "x.bin", DOCUMENTS)
    seen = json.loads(tokmap("index", "--json", path))
    expect_equal((seen["n_documents"], seen["index_file"]), (5, folder / "x.tmi"), "result")


def a_development_file_is_not_called_newer(folder):
    p = make_dataset(folder)
    index = bytearray(content(p + ".tmi"))
    struct.pack_into("<HH", index, 12, 0, 0)
    writers.write_file(p + ".tmi", ref_writer.sign(bytes(index)))
    done = run_program("tokmap", "info", p)
    expect_equal(done.returncode, DATASET, "exit code")
    expect(b"ewer tokmap can" not in done.stderr, "it says %r" % done.stderr)


def verify_lists_blocks_with_ids_above_the_largest(folder):
    p = make_dataset(folder)
    index = bytearray(content(p + ".tmi"))
    struct.pack_into("<I", index, 84, 12)
    writers.write_file(p + ".tmi", ref_writer.sign(bytes(index)))
    done = run_program("tokmap", "verify", p)
    expect_equal(done.returncode, DATASET, "exit code")
    expect(b"an id above 12, the largest according to the index; tokens 0-8, documents 0-3" in
           done.stdout, "it says %r" % done.stdout)
    expect(b"DAMAGED: 1 of 1 block," in done.stdout, "it says %r" % done.stdout)
    done = run_program("tokmap", "verify", "--json", p)
    seen = json.loads(done.stdout)
    expect_equal((seen["n_bad_blocks"], seen["damages"][0]["kind"],
                  seen["damages"][0]["block"], seen["damages"][0]["n_tokens"]),
                 (1, "content", 0, 9), "JSON")


def datatrove_round_trip(folder):
    for size in (2, 4):
        for first_line in ("gpt2|%d", "a|b|%d", "gpt2", None):
            folder.empty()
            path = writers.datatrove(folder / "0_unshuffled.ds", DOCUMENTS, size, first_line)
            ds = check_adopted(path, DOCUMENTS, "datatrove", size)
            expect_equal(ds.eod_id, None, "eod")
            export_is_identical(folder, folder / "0_unshuffled", "raw", {".bin": path})


def datatrove_loss_is_mentioned(folder):
    path = writers.datatrove(folder / "x.ds", DOCUMENTS)
    writers.write_file(path + ".loss", b"\1" * 9)
    for option in ("-f", "-qf"):  # --quiet hides no loss of data
        tokmap("index", option, path, says="x.ds.loss: is not read: all tokens of the dataset count as labels")


def the_index_of_a_packed_dataset_is_not_replaced(folder):
    """It alone has the documents, their values, the input files and what was redacted."""
    writers.write_file(folder / "a.jsonl", b'{"text": "ab", "n": 1}\n{"text": "cd", "n": 2}\n')
    for more in ([], ["--meta", "n"]):
        tokmap("pack", "-qf", folder / "a.jsonl", "--tokenizer", "bytes", "-o", folder / "p", *more)
        before = folder.files()
        tokmap("index", "-f", folder / "p.bin", "--dtype", "u16", "--eod", "none", exit_code=5, says="remove it first")
        expect_equal(folder.files(), before, "files")
    writers.write_file(folder / "p.tmi", b"\x89TMI\r\n\x1a\n" + bytes(500))
    tokmap("index", "-qf", folder / "p.bin", "--dtype", "u16", "--eod", "none")  # a damaged one
    tokmap("index", "-qf", folder / "p.bin", "--dtype", "u16", "--eod", "256")  # and one that it made
    expect_equal(json.loads(tokmap("info", "--json", folder / "p"))["n_documents"], 2, "documents")


def raw_boundaries_by_end_and_begin(folder):
    for size in (2, 4):
        dtype = "u%d" % (8 * size)
        tokens = (7, 1, 2, 7, 7, 3)
        path = writers.raw(folder / "train.bin", tokens, size)
        options = ("--dtype", dtype, "-f")
        check_adopted(path, [[7], [1, 2, 7], [7], [3]], "raw", size, "--eod", "7", *options)
        check_adopted(path, [[7, 1, 2], [7], [7, 3]], "raw", size, "--bos", "7", *options)
        ds = check_adopted(path, tokens, "raw", size, "--eod", "none", *options)
        expect_equal(ds.n_documents, 0, "documents")
        export_is_identical(folder, folder / "train", "raw", {".bin": path})


def raw_boundaries_anywhere_in_a_large_file(folder):
    chance = random.Random(2)
    documents = [[chance.randrange(1, 60000) for _ in range(chance.choice((0, 3, 60, 4000)))] + [0]
                 for _ in range(1500)]
    path = writers.raw(folder / "train.bin", writers.flat(documents))
    expect(os.path.getsize(path) > 2 << 20, "more than two blocks")
    check_adopted(path, documents, "raw", 2, "--dtype", "u16", "--eod", "0")


def olmo_documents_come_from_the_csv(folder):
    path = writers.olmo(folder / "part-0", DOCUMENTS, 4)
    if not reads("zlib"):
        raise Skip("this build has no zlib")
    check_adopted(path, DOCUMENTS, "raw", 4, "--dtype", "u32")
    check_adopted(path, [[5, 6, 7, 8], [9, 10, 11, 12, 65535]], "raw", 4, "--dtype", "u32",
                  "--eod", "8", "--force")
    for rows in (["0,3"], ["0,3", "4,9"], ["0,3", "3,10"], ["0,3", "2,9"], ["a,b"]):
        writers.olmo(folder / "part-0", DOCUMENTS, 4, rows)
        refused(folder, INPUT, ".csv.gz", "index", "--dtype", "u32", "--force", path)
    writers.olmo(folder / "part-0", DOCUMENTS, 4)
    data = content(folder / "part-0.csv.gz")
    codes = set()
    for n in range(4, 16):
        limited = 'ulimit -n "$1"; shift; exec "$@"'
        done = subprocess.run(["bash", "-c", limited, "limit", str(n), program("tokmap"), "index",
                               "--dtype", "u32", "--force", path], capture_output=True)
        if b"part-0.csv.gz" in done.stderr:
            codes.add(done.returncode)
    if os.environ.get("TOKMAP_SANITIZED") != "qemu":  # the script that starts it needs more files
        expect_equal(codes, {AGAIN}, "exit codes when the .csv.gz cannot be opened")
    writers.write_file(folder / "part-0.csv.gz", data[:-6])
    refused(folder, INPUT, "part-0.csv.gz", "index", "--dtype", "u32", "--force", path)


def result_is_json_and_deterministic(folder):
    path = writers.megatron(folder / "x", DOCUMENTS)
    seen = json.loads(tokmap("index", "--json", "--vocab-size", "65536", path))
    expect_equal((seen["format"], seen["dtype"], seen["n_tokens"], seen["n_documents"]),
                 ("megatron", "u16", 9, 5), "json")
    expect_equal((seen["index_file"], seen["token_file"]),
                 (folder / "x.tmi", folder / "x.bin"), "json files")
    ds = ref_reader.read(folder / "x")
    expect_equal(ds.vocab_size, 65536, "vocab_size")
    first = content(folder / "x.tmi")
    expect(os.fsencode(folder.path) not in first, "a path of the machine is in the index")
    tokmap("index", "--force", "--vocab-size", "65536", path)
    expect_equal(content(folder / "x.tmi"), first, "the index written again")


def several_files_and_the_first_failure(folder):
    writers.megatron(folder / "a", DOCUMENTS)
    writers.raw(folder / "b.bin", [1])
    writers.llmc(folder / "c.bin", DOCUMENTS)
    out = tokmap("index", folder / "a.bin", folder / "b.bin", folder / "missing",
                 folder / "c.bin", exit_code=USAGE, says="missing: cannot open")
    expect_equal(len(out.splitlines()), 2, "lines of output")
    expect(os.path.exists(folder / "c.tmi"), "the last file was not adopted")
    expect(not os.path.exists(folder / "b.tmi"), "the bad file was adopted")


# ---- Refused ----


def refuses_megatron_dtypes(folder):
    in_place = " tokens cannot be adopted in place"
    path = writers.raw(folder / "x.bin", [1, 2])
    for code, says in ((1, "uint8" + in_place), (2, "int8" + in_place), (3, "int16" + in_place),
                       (5, "int64" + in_place), (6, "float64" + in_place),
                       (7, "float32" + in_place), (9, "no Megatron dtype 9")):
        writers.write_file(folder / "x.idx", writers.megatron_index([2], [0, 1], 2, code))
        refused(folder, INPUT, says, "index", path)


def refuses_megatron_indexes(folder):
    index = writers.megatron_index
    for says, data in (
        ("multimodal", index([2, 3], [0, 1, 2], 2, modes=b"\0\1")),
        ("version 2", index([2, 3], [0, 1, 2], 2, version=2)),
        ("in order and without gaps", index([2, 3], [0, 1, 2], 2, starts=[0, 6])),
        ("in order and without gaps", index([3, 2], [0, 1, 2], 2, starts=[4, 0])),
        ("in order and without gaps", index([2, 3], [0, 1, 2], 2, starts=[0, -(2**63)])),
        ("extends beyond the .bin", index([2, 4], [0, 1, 2], 2)),
        ("extends beyond the .bin", index([2, 2**31 - 1], [0, 1, 2], 2)),
        ("end at byte 8 of 10", index([2, 2], [0, 1, 2], 2)),
        ("length -3", index([2, -3], [0, 1, 2], 2, starts=[0, 4])),
        ("document index 1", index([2, 3], [0, 3, 2], 2)),
        ("document index 1", index([2, 3], [0, -1, 2], 2)),
        ("document index 0", index([2, 3], [1, 1, 2], 2)),
        ("hold 1 of 2 sequences", index([2, 3], [0, 1, 1], 2)),
        ("no document indices", index([2, 3], [], 2)),
        ("do not fit", index([2, 3], [0, 1, 2], 2, counts=(3, 3))),
        ("do not fit", index([2, 3], [0, 1, 2], 2, counts=(2, 2**32))),
        ("do not fit", index([2, 3], [0, 1, 2], 2, counts=(2**63, 3))),
        ("do not fit", index([2, 3], [0, 1, 2], 2, counts=(2**64 - 1, 2**64 - 1))),
        ("do not fit", index([2, 3], [0, 1, 2], 2) + b"\0\0\0"),
        ("do not fit", index([2, 3], [0, 1, 2], 2)[:-1]),
        ("too short", index([2, 3], [0, 1, 2], 2)[:20]),
    ):
        path = writers.raw(folder / "x.bin", [1, 2, 3, 4, 5])
        writers.write_file(folder / "x.idx", data)
        refused(folder, INPUT, says, "index", path)
        refused(folder, INPUT, says, "index", folder / "x.idx")


def refuses_megatron_pairs_that_do_not_fit(folder):
    writers.megatron(folder / "x", DOCUMENTS)
    os.truncate(folder / "x.bin", 17)
    refused(folder, INPUT, "not a whole number of uint16", "index", folder / "x.bin")
    os.unlink(folder / "x.bin")
    refused(folder, INPUT, "x.bin: cannot open", "index", folder / "x.idx")
    shutil.move(folder / "x.idx", folder / "x.other")
    refused(folder, INPUT, "the two files X.bin and X.idx", "index", folder / "x.other")
    writers.raw(folder / "x.bin", [1])
    refused(folder, INPUT, "x.idx: cannot open", "index", "--format", "megatron",
            folder / "x.bin")
    writers.write_file(folder / "x.idx", b"TNTIDX\0\0" + bytes(40))
    refused(folder, INPUT, "fairseq", "index", folder / "x.bin")


def refuses_negative_ids_with_their_place(folder):
    data = struct.pack("<5i", 1, 2, 3, -5, 4)
    writers.write_file(folder / "x.bin", data)
    writers.write_file(folder / "x.idx", writers.megatron_index([5], [0, 1], 4))
    for vocab in ((), ("--vocab-size", "100")):
        refused(folder, INPUT, "negative id -5 at token 3 (byte 12)", "index", *vocab,
                folder / "x.bin")
    refused(folder, INPUT, "token 2 has id 3", "index", "--vocab-size", "3", folder / "x.bin")
    head = writers.numpy_head(writers.numpy_literal("<i4", [5]))
    writers.write_file(folder / "y.npy", head + data)
    refused(folder, INPUT, "negative id -5 at token 3 (byte %d)" % (len(head) + 12), "index",
            "--eod", "none", folder / "y.npy")


def refuses_ids_outside_the_vocabulary_with_their_place(folder):
    path = writers.raw(folder / "x.bin", [1, 2, 50, 60])
    options = ("--dtype", "u16", "--eod", "none", path, "--vocab-size")
    refused(folder, INPUT, "token 2", "index", *options, "50")
    refused(folder, INPUT, "token 3", "index", *options, "60")
    tokmap("index", *options, "61")
    path = writers.raw(folder / "y.bin", [1, 2, 2**31, 7], 4)
    refused(folder, INPUT, "token 2", "index", "--dtype", "u32", "--eod", "7", path,
            "--vocab-size", "2147483648")


def refuses_an_index_that_is_written_to_meanwhile(folder):
    n_tokens = 1 << 28  # zeros that are not on the disk: enough to be looking at for a while
    writers.write_file(folder / "m.idx", writers.megatron_index([n_tokens], [0, 1], 2))
    writers.write_file(folder / "m.bin", b"")
    os.truncate(folder / "m.bin", 2 * n_tokens)
    ended = threading.Event()

    def write_on():
        for second in range(1, 10**9):
            if ended.is_set():
                return
            os.utime(folder / "m.idx", (second, second))

    thread = threading.Thread(target=write_on)
    thread.start()
    try:
        tokmap("index", folder / "m.bin", exit_code=INPUT, says="was modified while it was read")
    finally:
        ended.set()
        thread.join()
    expect_equal(sorted(os.listdir(folder.path)), ["m.bin", "m.idx"], "files")


def refuses_numpy_arrays(folder):
    for says, descr, shape in (
        ("int64 tokens cannot be adopted in place", "<i8", [3]),
        ("from .npy files; 'tokmap import numpy'", "<i8", [3]),
        ("tokens have one; 'tokmap import numpy'", "<u2", [3, 1]),
        ("uint64 tokens", "<u8", [3]),
        ("uint8 tokens", "|u1", [3]),
        ("big-endian uint16", ">u2", [3]),
        ("0 dimensions", "<u2", []),
        ("2 dimensions", "<u2", [3, 1]),
        ("do not fit", "<u2", [2]),
        ("do not fit", "<u2", [2**32]),
        ("do not fit", "<u2", [2**63]),
        ("damaged NumPy header", "<u2", [2**64]),
        ("float32 tokens", "<f4", [3]),
        ("'|O' tokens", "|O", [3]),
    ):
        path = writers.write_file(
            folder / "x.npy",
            writers.numpy_head(writers.numpy_literal(descr, shape)) + bytes(6))
        refused(folder, INPUT, says, "index", "--eod", "none", path)
    good = "{'descr': '<u2', 'fortran_order': False, 'shape': (3,)}"
    for old, new in (("'<u2'", "[('a', '<u2')]"), ("(3,)", "(3)"), ("(3,)", "(-3,)"), ("False", "0"), ("}", ""),
                     ("'fortran_order': False, ", ""), ("{", "{'descr': '<u2', "), ("}", ", 'more': 1}"),
                     ("}", "} and more"), (good, "")):
        path = writers.write_file(folder / "x.npy", writers.numpy_head(good.replace(old, new)) + bytes(6))
        refused(folder, INPUT, "records" if "[" in new else "damaged NumPy header", "index", "--eod", "none", path)
    path = writers.numpy(folder / "x.npy", [1, 2])
    refused(folder, USAGE, "does not state where documents end", "index", path)
    writers.write_file(path, content(path)[:9])
    refused(folder, INPUT, "too short", "index", "--eod", "none", path)
    unaligned = writers.numpy_head(writers.numpy_literal("<u4", [1]), align=1)
    unaligned += b"" if len(unaligned) % 4 else b"?"
    writers.write_file(path, unaligned + bytes(4))
    refused(folder, INPUT, "", "index", "--eod", "none", path)


def refuses_llmc_files(folder):
    for says, head in (
        ("evaluation file", writers.llmc_head(2, 3, magic=20240522)),
        ("version 3; only version 1", writers.llmc_head(2, 3, version=3)),
        ("version 1; only version 7", writers.llmc_head(4, 3, version=1)),
        ("do not fit", writers.llmc_head(2, 2)),
        ("do not fit", writers.llmc_head(2, 4)),
        ("do not fit", writers.llmc_head(2, 2**31 - 1)),
        ("counts -1 tokens", writers.llmc_head(2, -1)),
        ("counts -2147483648 tokens", writers.llmc_head(2, -(2**31))),
    ):
        path = writers.write_file(folder / "x.bin", head + bytes(6))
        refused(folder, INPUT, says, "index", path)
    path = writers.llmc(folder / "x.bin", DOCUMENTS)
    refused(folder, USAGE, "50256 cannot be an id of this file", "index", "--vocab-size", "100", path)


def refuses_datatrove_files(folder):
    for says, ends, metadata, options in (
        ("does not fit its .index", [4], None, ()),
        ("does not fit its .index", [], None, ()),
        ("does not fit its .index", [2**63 + 5], None, ()),
        ("does not fit its .index", [2**64 - 1], None, ("--dtype", "u16")),
        ("does not fit its .index", [5], b"gpt2|4\n5\n5", ()),
        ("document 1 ends at token 2, the one before at 3", [3, 2, 5], None, ()),
        ("document 0 ends at token 6", [6, 5], None, ()),
        ("not the given --dtype", [5], b"gpt2|2\n5\n5", ("--dtype", "u32")),
        ("counts 7", [5], b"gpt2|2\n7\n7", ()),
        ("does not fit its .index", [5], None, ("--dtype", "u32")),
        ("only 2 and 4", [5], b"gpt2|8\n5\n5", ()),
        (".metadata of 5000 bytes", [5], bytes(5000), ()),
    ):
        folder.empty()
        path = writers.raw(folder / "x.ds", [1, 2, 3, 4, 5])
        writers.write_file(path + ".index", struct.pack("<%dQ" % len(ends), *ends))
        if metadata is not None:
            writers.write_file(path + ".metadata", metadata)
        refused(folder, INPUT, says, "index", *options, path)
    folder.empty()
    path = writers.raw(folder / "x.ds", [])
    writers.write_file(path + ".index", b"")
    refused(folder, INPUT, "give --dtype", "index", path)
    check_adopted(path, [], "datatrove", 4, "--dtype", "u32")
    writers.write_file(path + ".index", b"1234567")
    refused(folder, INPUT, "not a multiple of 8", "index", path)


def refuses_raw_files_that_nobody_explains(folder):
    path = writers.raw(folder / "x.bin", [1, 2, 3])
    refused(folder, USAGE, "give --dtype", "index", path)
    refused(folder, USAGE, "give --dtype", "index", "--eod", "3", path)
    refused(folder, USAGE, "give --eod ID", "index", "--dtype", "u16", path)
    refused(folder, INPUT, "not a multiple of 4", "index", "--dtype", "u32", "--eod", "3", path)
    refused(folder, USAGE, "70000 cannot be an id", "index", "--dtype", "u16", "--eod", "70000", path)
    refused(folder, USAGE, "use only one of", "index", "--eod", "1", "--bos", "1", path)


def refuses_raw_files_that_are_something_else(folder):
    for kind, data in (
        ("zstd", b"\x28\xb5\x2f\xfd" + bytes(60)),
        ("gzip", b"\x1f\x8b\x08\x00" + bytes(60)),
        ("Parquet", b"PAR1" + bytes(60)),
        ("NumPy", writers.numpy_head(writers.numpy_literal("<u2", [0]))),
        ("llm.c", writers.llmc_head(2, 0)),
        ("tokmap index", b"\x89TMI\r\n\x1a\n" + bytes(248)),
    ):
        path = writers.write_file(folder / "x.bin", data)
        options = ("--dtype", "u16", "--eod", "none", path)
        refused(folder, INPUT, kind, "index", "--format", "raw", *options)
        if kind not in ("NumPy", "llm.c"):
            refused(folder, INPUT, kind, "index", *options)


def refuses_files_that_tokmap_writes(folder):
    """Real ones where a command leaves them; the others by their first bytes in FORMAT.md and ORDER.md."""
    with open(folder / "t.txt", "w") as f:
        f.write("one\ntwo\n" * 100)
    tokmap("pack", "-q", "--lines", folder / "t.txt", "-o", folder / "p")
    tokmap("rows", "-q", "-l", "16", folder / "p")
    tokmap("plan", "-q", "--lines", folder / "t.txt", "--cells", folder / "cells", "-o", folder / "plan")
    for name, magic in (("journal", b"\x89TMJ\r\n\x1a\n"), ("values", b"\x89TMV\r\n\x1a\n"), ("state", b"\x89TMS\r\n\x1a\n"),
                        ("ledger", b'{"ledger":1,"event":"opened","time":"2026-11-23T14:05:59Z","host":""')):
        writers.write_file(folder / name, magic + bytes(248))
    for name, says in (("p.16.tmr", "is a rows file of tokmap"), ("p.tmi", "is a tokmap index"), ("plan", "is a plan of tokmap"),
                       ("journal", "is a tokmap journal"), ("values", "is a values file of an unfinished tokmap dataset"),
                       ("state", "is the state of a tokmap loader"), ("ledger", "is a ledger of tokmap")):
        os.truncate(folder / name, os.path.getsize(folder / name) & ~3)
        for dtype in ("u16", "u32"):
            refused(folder, INPUT, says, "index", "--dtype", dtype, "--eod", "none", folder / name)


def refuses_a_format_that_is_not_there(folder):
    path = writers.raw(folder / "x.bin", range(60))
    options = ("--dtype", "u16", "--eod", "none", path)
    refused(folder, INPUT, "not a NumPy", "index", "--format", "numpy", *options)
    refused(folder, INPUT, "not an llm.c", "index", "--format", "llmc", *options)
    tokmap("index", "--format", "raw", *options)
    os.unlink(folder / "x.tmi")
    refused(folder, INPUT, "cannot open", "index", "--format", "datatrove", *options)
    refused(folder, INPUT, "cannot open", "index", "--format", "megatron", *options)
    refused(folder, USAGE, "must be auto", "index", "--format", "mds", *options)
    writers.llmc(path, DOCUMENTS)
    refused(folder, INPUT, "not the given --dtype", "index", "--dtype", "u32", path)


def refuses_what_is_no_file(folder):
    path = writers.raw(folder / "without_suffix", [1])
    refused(folder, USAGE, "suffix", "index", "--dtype", "u16", "--eod", "none", path)
    os.mkdir(folder / "x.bin")
    refused(folder, INPUT, "is a folder", "index", folder / "x.bin")
    os.mkfifo(folder / "pipe.bin")
    tokmap("index", folder / "pipe.bin", exit_code=INPUT, says="not a regular file")
    tokmap("index", folder / ("n" * 5000), exit_code=INPUT, says="too long")
    tokmap("index", exit_code=USAGE, says="no FILE given")
    tokmap("index", "--dtype", "u8", "x", exit_code=USAGE, says="u16 or u32")
    tokmap("index", "--eod", "-1", "x", exit_code=USAGE, says="must be a token id")
    tokmap("index", "--vocab-size", "0", "x", exit_code=USAGE, says="must be a whole number from 1")


def refuses_to_replace_an_index_unasked(folder):
    path = writers.megatron(folder / "x", DOCUMENTS)
    tokmap("index", path)
    refused(folder, EXISTS, "--force", "index", path)
    refused(folder, EXISTS, "--force", "index", folder / "x.idx")


def every_truncation_and_bit_of_an_idx_is_refused_or_harmless(folder):
    path = writers.megatron(folder / "x", [[1, 2], [3]])
    good = content(folder / "x.idx")
    n_refused = 0
    for n in range(9, len(good), 3):
        writers.write_file(folder / "x.idx", good[:n])
        refused(folder, INPUT, "", "index", path)
    for bit in range(72, 8 * len(good), 7):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        writers.write_file(folder / "x.idx", bad)
        done = run_program("tokmap", "index", "-qf", path)
        expect(done.returncode in (0, INPUT), "bit %d: exit %d" % (bit, done.returncode))
        n_refused += done.returncode == INPUT
        if done.returncode == 0:
            tokmap("verify", "-q", folder / "x")
    return "%d flipped bits refused" % n_refused


# ---- Export: outputs ----


def make_dataset(folder, name="p", size=2, documents=DOCUMENTS):
    vocab = 65536 if size == 2 else 100000
    ref_writer.write(folder / name, writers.flat(documents), [len(d) for d in documents],
                     vocab=vocab)
    return folder / name


def inode(path):
    return os.stat(path).st_ino


def megatron_index_beside_the_dataset(folder):
    p = make_dataset(folder, size=4)
    before = folder.files()
    for output in (p, p + ".idx"):
        out = tokmap("export", "--to", "megatron", p, "-o", output)
        expect_equal(len(out.splitlines()), 1, "lines")
        wanted = writers.megatron_index([3, 0, 1, 5, 0], range(6), 4)
        expect_equal(content(p + ".idx"), wanted, "index")
        os.unlink(p + ".idx")
    expect_equal(folder.files(), before, "other files")


def shares_the_token_file_by_hard_link(folder):
    p = make_dataset(folder)
    for to in ("megatron", "raw"):
        out = tokmap("export", "--to", to, p, "-o", folder / to)
        expect("hard link" in out, out)
        expect_equal(inode(folder / (to + ".bin")), inode(p + ".bin"), "inode")
    tokmap("export", "--to", "megatron", p, "-o", folder / "megatron", "--force")
    expect_equal(inode(folder / "megatron.bin"), inode(p + ".bin"), "inode after --force")
    writers.raw(folder / "raw2.bin", [1])
    tokmap("export", "--to", "raw", p, "-o", folder / "raw2", "--force")
    expect_equal(inode(folder / "raw2.bin"), inode(p + ".bin"), "inode of a replaced file")
    expect("hard link" in tokmap("export", "--to", "raw", p, "-o", folder / "raw2", "--force"), "a second time")
    refused(folder, EXISTS, "is the token file", "export", "--to", "raw", p, "-o", p, "--force")
    tokmap("verify", "-q", p)


def copies_to_another_file_system(folder):
    other = "/dev/shm"
    if not os.access(other, os.W_OK) or os.stat(other).st_dev == os.stat(folder.path).st_dev:
        raise Skip("%s is not another file system" % other)
    p = make_dataset(folder)
    target = tempfile.mkdtemp(prefix="tokmap-foreign-", dir=other)
    try:
        out = tokmap("export", "--to", "megatron", p, "-o", os.path.join(target, "q"))
        expect("copied" in out, out)
        expect_equal(content(os.path.join(target, "q.bin")), content(p + ".bin"), "tokens")
        expect_equal(sorted(os.listdir(target)), ["q.bin", "q.idx"], "files")
        old = os.path.join(target, "old.bin")
        writers.raw(old, [1])
        script = 'trap "" XFSZ; ulimit -f 0; exec "$@"'
        done = subprocess.run(["bash", "-c", script, "limit", program("tokmap"), "export",
                               "--to", "raw", p, "-o", old, "--force"], capture_output=True)
        expect(done.returncode not in (0, 1, 2), "exit %d" % done.returncode)
        expect_equal(content(old), b"\1\0", "the old file after a failed --force")
        tokmap("export", "--to", "raw", p, "-o", old, "--force")
        expect_equal(content(old), content(p + ".bin"), "replaced file")
    finally:
        shutil.rmtree(target)


def refuses_outputs_that_are_there(folder):
    p = make_dataset(folder)
    q = folder / "q"
    writers.raw(q + ".bin", [1])
    for to in ("megatron", "llmc", "raw"):
        refused(folder, EXISTS, "--force", "export", "--to", to, p, "-o", q)
    os.rename(q + ".bin", q + ".idx")
    refused(folder, EXISTS, "--force", "export", "--to", "megatron", p, "-o", q)
    tokmap("export", "--to", "megatron", p, "-o", q, "--force")
    expect_equal(content(q + ".idx"), writers.megatron_index([3, 0, 1, 5, 0], range(6), 2),
                 "replaced index")


def never_replaces_the_dataset_itself(folder):
    p = make_dataset(folder)
    os.symlink(p + ".bin", folder / "linked.bin")
    other = make_dataset(folder, "other", documents=[[1]])
    for to in ("raw", "llmc"):
        for q in (p, folder / "linked"):
            refused(folder, EXISTS, "choose another -o", "export", "--to", to, p, "-o", q,
                    "--force")
    for to in ("raw", "llmc", "megatron"):
        refused(folder, EXISTS, "tokmap dataset", "export", "--to", to, p, "-o", other,
                "--force")
    path = writers.llmc(folder / "shard.bin", DOCUMENTS)
    tokmap("index", path)
    for to in ("raw", "llmc", "megatron"):
        refused(folder, EXISTS, "choose another -o", "export", "--to", to, path, "-o", path,
                "--force")


def refuses_what_the_format_cannot_hold(folder):
    n = 2**31
    ref_writer.write(folder / "big", ref_writer.Zeros(n), [1, n - 1 - 2**20, 2**20], vocab=9)
    refused(folder, USAGE, "--shard-tokens", "export", "--to", "llmc", folder / "big", "-o",
            folder / "q")
    tokmap("export", "--to", "megatron", folder / "big", "-o", folder / "big")
    ref_writer.write(folder / "long", ref_writer.Zeros(n + 1), [1, n], vocab=9)
    refused(folder, DATASET, "document 1 has 2,147,483,648 tokens", "export", "--to",
            "megatron", folder / "long", "-o", folder / "q")
    ref_writer.write(folder / "flat", [1, 2], [], vocab=9)
    refused(folder, DATASET, "boundaries are not known", "export", "--to", "megatron",
            folder / "flat", "-o", folder / "q")
    path = writers.raw(folder / "large_id.bin", [1, 2**31], 4)
    tokmap("index", "--dtype", "u32", "--eod", "1", path)
    refused(folder, DATASET, "largest id is 2147483648", "export", "--to", "megatron", path,
            "-o", folder / "q")
    ref_writer.write(folder / "few", list(range(9)), [9], vocab=9)
    big = folder / "big"
    refused(folder, USAGE, "the limit is 999999", "export", "--to", "llmc", big, "-o",
            folder / "q", "--shard-tokens", "2000")


def refuses_a_damaged_document_index(folder):
    p = make_dataset(folder)
    index = bytearray(content(p + ".tmi"))
    ds = ref_reader.read(p)
    at = index.index(struct.pack("<5I", 3, 3, 4, 9, 9))
    struct.pack_into("<I", index, at, 7)
    writers.write_file(p + ".tmi", index)
    expect_equal(ds.n_documents, 5, "documents")
    refused(folder, DATASET, "tokmap verify", "export", "--to", "megatron", p, "-o",
            folder / "q")


def refuses_wrong_export_options(folder):
    p = make_dataset(folder)
    q = folder / "q"
    refused(folder, USAGE, "option --to FORMAT is required", "export", p, "-o", q)
    refused(folder, USAGE, "option --output Q is required", "export", "--to", "raw", p)
    refused(folder, USAGE, "no dataset given", "export", "--to", "raw", "-o", q)
    refused(folder, USAGE, "one dataset", "export", "--to", "raw", p, p, "-o", q)
    refused(folder, USAGE, "must be megatron", "export", "--to", "mds", p, "-o", q)
    refused(folder, USAGE, "only with --to llmc", "export", "--to", "raw", p, "-o", q,
            "--shard-tokens", "9")
    refused(folder, USAGE, "must be a whole number", "export", "--to", "llmc", p, "-o", q,
            "--shard-tokens", "0")
    refused(folder, USAGE, "must be a whole number", "export", "--to", "llmc", p, "-o", q,
            "--shard-tokens", "2147483648")
    refused(folder, USAGE, "names a folder", "export", "--to", "raw", p, "-o", folder.path + "/")
    refused(folder, INPUT, "cannot open", "export", "--to", "raw", folder / "none", "-o", q)
    refused(folder, INPUT, "Not a directory", "export", "--to", "llmc", p, "-o",
            folder / "p.bin/folder/q")


def what_a_killed_export_left_is_taken_over(folder):
    p = make_dataset(folder)
    tokens = content(p + ".bin")
    # The worst leftover: a second name of the dataset's own tokens.
    os.link(p + ".bin", folder / "q.bin.partial")
    writers.write_file(folder / "q.idx.partial", b"half")
    tokmap("export", "--to", "llmc", p, "-o", folder / "q")
    os.unlink(folder / "q.bin")
    tokmap("export", "--to", "megatron", p, "-o", folder / "q")
    expect_equal(content(p + ".bin"), tokens, "tokens of the dataset")
    expect_equal(sorted(os.listdir(folder.path)), ["p.bin", "p.tmi", "q.bin", "q.idx"],
                 "files")


def two_exports_to_one_name(folder):
    """Any number at once: exactly one wins, the others say exists or locked, the files are whole."""
    p = make_dataset(folder, documents=[[i % 60000] * 50 for i in range(20000)])
    codes = []

    def run():
        done = run_program("tokmap", "export", "-q", "--to", "llmc", p, "-o", folder / "q")
        codes.append(done.returncode)

    for _ in range(5):
        del codes[:]
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect_equal(sorted(codes), [0, EXISTS, EXISTS, EXISTS], "exit codes")
        expect_equal(sorted(os.listdir(folder.path)), ["p.bin", "p.tmi", "q.bin"], "files")
        expect_equal(content(folder / "q.bin")[1024:], content(p + ".bin"), "tokens")
        os.unlink(folder / "q.bin")


def failed_writes_leave_nothing(folder):
    """The file size limit makes writes fail at every size."""
    p = make_dataset(folder, documents=[[i] * 40 for i in range(3000)])
    before = folder.files()
    script = 'trap "" XFSZ; ulimit -f "$1"; shift; exec "$@"'
    for to, options in (("llmc", ()), ("megatron", ()),
                        ("llmc", ("--shard-tokens", "30000"))):
        for blocks in (0, 1, 20):
            done = subprocess.run(
                ["bash", "-c", script, "limit", str(blocks), program("tokmap"), "export",
                 "-q", "--to", to, p, "-o", folder / "q", *options], capture_output=True)
            expect(done.returncode not in (0, 1, 2), "%s at %d blocks: exit %d"
                   % (to, blocks, done.returncode))
            expect(b"File too large" in done.stderr, "it says %r" % done.stderr)
            expect_equal(folder.files(), before, "files after a failed %s" % to)


def refuses_a_folder_that_cannot_be_written(folder):
    # Root may write everywhere: as root the commands run as another user.
    user = {"user": 65534} if os.getuid() == 0 else {}
    p = make_dataset(folder)
    writers.megatron(folder / "x", DOCUMENTS)
    before = folder.files()
    os.chmod(folder.path, 0o555)
    for arguments in (("export", "--to", "llmc", p, "-o", folder / "q"),
                      ("export", "--to", "megatron", p, "-o", folder / "q"),
                      ("index", folder / "x.bin")):
        try:
            done = run_program("tokmap", *arguments, **user)
        except PermissionError:
            raise Skip("the other user may not run tokmap")
        expect_equal(done.returncode, INPUT, "exit code of %r" % (arguments,))
        expect(b"Permission denied" in done.stderr, "it says %r" % done.stderr)
    os.chmod(folder.path, 0o700)
    expect_equal(folder.files(), before, "files")


if __name__ == "__main__":
    sys.exit(run_in_folders("", prepare=Folder))

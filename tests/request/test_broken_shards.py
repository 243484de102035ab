#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Broken shards with --format auto: each format x each damage, alone, in a folder of good shards, by a plan and with
--format. They are refused before anything is packed, or give documents of the good shard alone; a text document never
comes of them without a word."""

import base64
import gzip
import io
import json
import subprocess
import sys
import tarfile

from ref_protocol import expect, expect_equal, need, need_parquet, program, reads, run_in_folders, run_program

N = 60
DOCUMENTS = ["document %d: The quick brown fox, \u00c4pfel \"quoted\" {braces}." % i for i in range(N)]
OTHERS = ["good %d" % i for i in range(3)]
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d" * 32 + b"\nsize 12345\n"
HTML = b"<!DOCTYPE html>\n<html><head><title>404 Not Found</title></head><body>nginx</body></html>\n"
RECORDS = (".parquet", ".arrow", ".feather", ".jsonl", ".ndjson", ".tar", ".tgz")


def zstd(data):
    """A frame with one raw block after another, as any zstd can read it."""
    out = b"\x28\xb5\x2f\xfd\x00\x58"
    parts = [data[i:i + 1000] for i in range(0, len(data), 1000)] or [b""]
    for i, part in enumerate(parts):
        out += (len(part) << 3 | (i == len(parts) - 1)).to_bytes(3, "little") + part
    return out


def jsonl(documents):
    return "".join(json.dumps({"id": i, "text": d, "score": 0.5}) + "\n" for i, d in enumerate(documents)).encode()


def text(documents):
    return "\n".join(documents).encode()


def tar(documents):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        member = tarfile.TarInfo("a.jsonl")
        data = jsonl(documents)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def arrow(documents, write):
    pyarrow, _ = need_parquet()
    need("pyarrow.feather")
    table = pyarrow.table({"text": documents, "id": list(range(len(documents)))})
    out = io.BytesIO()
    if write == "parquet":
        pyarrow.parquet.write_table(table, out)
    elif write == "feather":
        pyarrow.feather.write_feather(table, out, compression="uncompressed")
    else:
        with pyarrow.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
    return out.getvalue()


WRITERS = {".txt": text, ".jsonl": jsonl, ".ndjson": jsonl, ".tar": tar,
           ".parquet": lambda d: arrow(d, "parquet"), ".feather": lambda d: arrow(d, "feather"),
           ".arrow": lambda d: arrow(d, "stream")}
CODECS = {".gz": lambda data: gzip.compress(data, mtime=0), ".zst": zstd}
NAMES = [".txt", ".txt.gz", ".txt.zst", ".jsonl", ".ndjson", ".JSONL", ".jsonl.gz", ".jsonl.zst", ".tar", ".tar.gz",
         ".tgz", ".parquet", ".feather", ".arrow"]


def make(name, documents):
    """The bytes of a good shard."""
    name = {".tgz": ".tar.gz"}.get(name, name.lower())
    kind, codec = "." + name.split(".")[1], "." + name.split(".")[-1]
    data = WRITERS[kind](documents)
    return CODECS[codec](data) if codec in CODECS else data


def damages(name):
    good = make(name, DOCUMENTS)
    wrong = CODECS[".gz" if "zst" in name else ".zst"]
    lines = make(name[:-3] if name.endswith(".gz") else ".jsonl", DOCUMENTS) if "json" in name.lower() else b""
    return {
        "0 bytes": b"", "1 byte": good[:1], "2 bytes": good[:2], "3 bytes": good[:3],
        "cut start": good[9:], "cut start by half": good[len(good) // 2:], "cut end": good[:-11],
        "cut end by half": good[:len(good) // 2], "Git LFS pointer": LFS, "HTML page": HTML,
        "JSON error page": b'{"error": "not found"}\n', "gzip of nothing": gzip.compress(b""),
        "gzip of a pointer": gzip.compress(LFS), "gzip of a page": gzip.compress(HTML),
        "wrong compression": wrong(good), "its text": text(DOCUMENTS), "zeros": bytes(5000),
        "a comment first": b"# made by a script\n" + lines if lines else HTML,
        "lines of strings": "".join(json.dumps(d) + "\n" for d in DOCUMENTS).encode(),
    }


def run(*arguments, cwd, env=None):
    done = run_program("tokmap", *arguments, cwd=cwd)
    return done.returncode, done.stderr.decode("utf-8", "replace")


def packed(folder, name="out"):
    """The documents of a dataset of bytes."""
    ids = (folder / (name + ".bin")).read_bytes()[::2] if (folder / (name + ".bin")).stat().st_size else b""
    wide = (folder / (name + ".bin")).read_bytes()[1::2]
    out, start = [], 0
    for i, high in enumerate(wide):
        if high:
            out.append(ids[start:i].decode())
            start = i + 1
    return out


def is_text_name(name):
    return name.startswith(".txt")


def is_harmless(name, what, documents, message):
    """Whether documents of a broken shard are its own, or those of a plain text whose name promises nothing else."""
    if is_text_name(name):
        plain = what in ("cut start", "cut start by half", "cut end", "cut end by half", "HTML page", "its text",
                         "lines of strings", "gzip of a page", "wrong compression", "a comment first",
                         "1 byte", "2 bytes", "3 bytes")
        note = name == ".txt" or "gzip" in what or what == "wrong compression" or "not compressed" in message
        return not documents or (plain and note)
    return all(d in DOCUMENTS + OTHERS for d in documents)


def check(name, what, result, folder, shard, expected=()):
    """expected: documents of good shards beside the broken one."""
    code, message = result
    where = "%s of %s: exit %d: %s" % (what, name, code, message)
    expect(code in (0, 3), where)
    if code == 3:
        expect(shard in message, where)
        expect(not (folder / "out.tmi").exists(), where)
        return
    documents = packed(folder)
    expect(is_harmless(name, what, [d for d in documents if d not in expected], message),
           "%s: %.300r" % (where, [d for d in documents if d not in expected]))
    expect_equal([d for d in documents if d in OTHERS], list(expected), where)
    if what in ("0 bytes", "gzip of nothing"):
        expect(shard + ": empty" in message, where)
        expect_equal(documents, list(expected), where)


def each(names=None):
    for name in names or NAMES:
        if ".zst" in name and not reads("zstd") or ".gz" in name and not reads("zlib"):
            continue
        for what, data in damages(name).items():
            yield name, what, data


def put(folder, name, data):
    shard = "c" + name
    for old in folder.glob("*"):
        if old.is_file():
            old.unlink()
    (folder / shard).write_bytes(data)
    return shard


def good_shards_are_packed(folder):
    for name in NAMES:
        shard = put(folder, name, make(name, DOCUMENTS))
        expect_equal(run("pack", "-q", shard, "-o", "out", cwd=folder), (0, ""), name)
        expect_equal(packed(folder), [text(DOCUMENTS).decode()] if is_text_name(name) else DOCUMENTS, name)


def alone(folder):
    for name, what, data in each():
        shard = put(folder, name, data)
        check(name, what, run("pack", shard, "-o", "out", cwd=folder), folder, shard)


def beside_good_shards(folder):
    for name, what, data in each():
        shard = put(folder, name, data)
        (folder / "corpus").mkdir(exist_ok=True)
        for old in (folder / "corpus").glob("*"):
            old.unlink()
        others = OTHERS[:1] if is_text_name(name) else OTHERS
        (folder / "corpus" / ("a" + name)).write_bytes(make(name, others))
        (folder / shard).rename(folder / "corpus" / shard)
        check(name, what, run("pack", "corpus", "-o", "out", cwd=folder), folder, shard, others)


def by_a_plan(folder):
    for name, what, data in each([".txt.gz", ".jsonl", ".jsonl.gz", ".tar", ".parquet", ".arrow"]):
        shard = put(folder, name, data)
        others = OTHERS[:1] if is_text_name(name) else OTHERS
        (folder / ("a" + name)).write_bytes(make(name, others))
        cells = folder / "cells"
        for old in cells.glob("*") if cells.exists() else ():
            old.unlink()
        result = run("plan", "a" + name, shard, "--cells", "cells", "-o", "plan", cwd=folder)
        if result[0] == 0:
            code, message = run("pack", "--plan", "plan", cwd=folder)
            if code == 0:
                code, message = run("join", "plan", "-o", "joined", cwd=folder)
            if code == 0:
                code, message = run("merge", "joined", "-o", "out", cwd=folder)
            result = (code if code != 4 else 3, result[1] + message)
        check(name, what, result, folder, shard, others)


def with_a_format_what_it_names_is_packed(folder):
    for name, what, data in each([".parquet", ".jsonl", ".txt.gz", ".tar"]):
        shard = put(folder, name, data)
        refused = run("pack", "--force", shard, "-o", "out", cwd=folder)
        if refused[0] != 3 or "--format text" not in refused[1] or "--utf8 raw" in refused[1]:
            continue
        for options in (["--format", "text"], ["--lines"]):
            code, message = run("pack", "-q", "--force", *options, shard, "-o", "out", cwd=folder)
            expect_equal(code, 0, "%s of %s %s: %s" % (what, name, options, message))
        expect("--format" in refused[1], refused[1])


def json_lines_that_were_cut_are_refused_whatever_their_name(folder):
    for line in ({"id": 1, "text": "some \"words\"\n", "n": 2.5}, {"a": [1, "b"], "text": "x", "m": {"b": 2, "c": None}}):
        whole = json.dumps(line)
        for at in range(1, len(whole) - 1):
            tail = whole[at:]
            if '"' not in tail or tail.lstrip()[:1] == "{":
                continue
            (folder / "a.txt").write_text(tail + "\n" + whole + "\n")
            code, message = run("pack", "a.txt", "-o", "out", cwd=folder)
            expect_equal((code, "looks like JSON lines" in message), (3, True), "%r: %s" % (tail, message))
    for start in ("# a comment\n", "// made by x\n\n", '"header"\n'):
        (folder / "a.txt").write_text(start + '{"text": "one"}\n')
        expect_equal(run("pack", "a.txt", "-o", "out", cwd=folder)[0], 3, start)


def text_that_only_resembles_them_is_packed(folder):
    for words in ("}\n", "said \"stop\"}\n", "\\emph{\"x\"}\n{\"no text here\": 1}\n", "POST /x\n{\"id\": 1}\n",
                  "a\n{\n", "f(\"x\", {\"a\": 1})\n", "\"To be or not to be\"\n\"That is\"\n", "(a", "x\n\n{b}"):
        (folder / "a.txt").write_text(words)
        expect_equal(run("pack", "-q", "--force", "a.txt", "-o", "out", cwd=folder), (0, ""), repr(words))
        expect_equal(packed(folder), [words], repr(words))


def text_beside_records_is_refused_with_commands(folder):
    (folder / "a.jsonl").write_bytes(jsonl(OTHERS))
    (folder / "b.txt").write_text("words")
    for command, output in ((["pack"], ["-o", "out"]), (["plan", "--cells", "cells"], ["-o", "out"]),
                            (["pack", "--dry-run"], ["-o", "out"])):
        code, message = run(*command, "a.jsonl", "b.txt", *output, cwd=folder)
        expect_equal(code, 3, message)
        verb = "plan" if command[0] == "plan" else "pack"
        expect("tokmap %s --format text b.txt" % verb in message, message)
        expect("tokmap %s a.jsonl" % verb in message, message)
    expect_equal(sorted(p.name for p in folder.iterdir()), ["a.jsonl", "b.txt"], "files")
    for line in message.split("\n"):
        if line.startswith("  tokmap"):
            done = subprocess.run(line.strip().replace("tokmap", program("tokmap"), 1), shell=True, cwd=folder,
                                  capture_output=True, text=True)
            expect_equal(done.returncode, 0, line + done.stderr)
    expect_equal(packed(folder), ["words"] + OTHERS, "after the commands")
    expect_equal(run("pack", "-q", "--lines", "a.jsonl", "b.txt", "-o", "lines", cwd=folder), (0, ""), "--lines")


def formats_and_empty_inputs_are_named(folder):
    (folder / "a.jsonl").write_bytes(jsonl(OTHERS))
    for i in range(5):
        (folder / ("e%d.jsonl" % i)).touch()
    names = ["a.jsonl"] + ["e%d.jsonl" % i for i in range(5)]
    for command in (["pack", "-o", "out", "--meta", "id", "--report", "report"], ["plan", "--cells", "cells", "-o", "plan"]):
        code, message = run(*command, *names, cwd=folder)
        expect_equal(code, 0, message)
        expect("e0.jsonl, e1.jsonl, e2.jsonl and 2 more: empty" in message, message)
        expect("formats: 1 jsonl, 5 empty" in message, message)
    expect_equal(json.loads((folder / "report").read_text())["formats"], {"jsonl": 1, "empty": 5}, "--report")
    done = run_program("tokmap", "pack", "--dry-run", *names, "-o", "x", cwd=folder, text=True)
    expect("6 files (1 jsonl, 5 empty)" in done.stdout, done.stdout)
    done = run_program("tokmap", "pack", "-q", "-", "-o", "stdin", cwd=folder)
    expect_equal((done.returncode, packed(folder, "stdin")), (0, []), "stdin")
    expect_equal(run("pack", "-q", "--format", "text", "e0.jsonl", "-o", "t", cwd=folder), (0, ""), "--format text")
    expect_equal(packed(folder, "t"), [""], "an empty text is a document")


def records_that_are_read_as_text_must_be_forced(folder):
    for name in (".parquet", ".feather", ".arrow"):
        shard = put(folder, name, make(name, DOCUMENTS))
        for options in (["--lines"], ["--format", "text"], ["--format", "jsonl"]):
            code, message = run("pack", *options, shard, "-o", "out", cwd=folder)
            expect_equal(code, 3, "%s %s: %s" % (name, options, message))
            expect("--utf8 raw" in message and "leave out --format" in message, message)
        expect_equal(run("pack", "-q", "--lines", "--utf8", "raw", shard, "-o", "out", cwd=folder)[0], 0, name)
        expect_equal(run("pack", "-q", "-f", shard, "-o", "out", cwd=folder), (0, ""), name)


def encrypted_parquet_has_the_message_of_parquet(folder):
    pyarrow, encryption = need("pyarrow"), need("pyarrow.parquet.encryption")

    class Kms(encryption.KmsClient):
        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, key, _):
            return base64.b64decode(key)

    table = pyarrow.table({"text": DOCUMENTS})
    for plain_footer, words in ((True, "encrypted columns cannot be read"), (False, "an encrypted Parquet file")):
        how = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": ["text"]}, plaintext_footer=plain_footer)
        keys = encryption.CryptoFactory(lambda _: Kms()).file_encryption_properties(encryption.KmsConnectionConfig(), how)
        with pyarrow.parquet.ParquetWriter(folder / "a.parquet", table.schema, encryption_properties=keys) as writer:
            writer.write_table(table)
        code, message = run("pack", "a.parquet", "-o", "out", cwd=folder)
        expect(code == 3 and words in message and "NUL" not in message, message)


sys.exit(run_in_folders(""))

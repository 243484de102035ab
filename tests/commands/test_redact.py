#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap redact: what it writes has the bytes that a second implementation of docs/FORMAT.md, section 7.1, gives for it;
what it reads and writes; what it refuses."""

import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

import ref_reader
import ref_writer
from commands import said, tokmap
from ref_protocol import Skip, call, expect, expect_equal, kills, program, run_in_folders
from ref_xxh3 import xxh3_64

N_RUNS = 3000 if os.environ.get("TOKMAP_LONG") == "all" else 20
MIB = 2**20


def random_dataset(rng):
    """The arguments of ref_writer.write."""
    lengths = [rng.choice((0, 1, 2, rng.randint(0, 40))) for _ in range(rng.randint(1, 150))]
    n_tokens, vocab = sum(lengths), rng.choice((1, 2, 300, 70000))
    eod = rng.choice((None, vocab - 1, rng.randrange(vocab)))
    tokens = [rng.randrange(vocab) for _ in range(n_tokens)]
    values, spans, at = [], [], 0
    for n in lengths:
        if n and eod is not None and rng.random() < 0.7:
            tokens[at + n - 1] = eod
        first = at
        while rng.random() < 0.6 and first < at + n:
            first = rng.randint(first, at + n - 1)
            end, role = rng.randint(first + 1, at + n), rng.choice((0, 0, 1, 2, 7, 127, 128, 254))
            if not spans or spans[-1][1:] != (first, role) or first == at:
                spans.append((first, end, role))
            first = end
        at += n
    for name, choose in (("score", lambda: rng.choice((1, 2.5))), ("lang", lambda: rng.choice((b"en", b"de", b"fr"))),
                         ("url", lambda: b"https://%d" % rng.randrange(10**9)), ("none", lambda: None)):
        if rng.random() < 0.4:
            values.append((name, None, [choose() if rng.random() < 0.8 else None for _ in lengths]))
    segments = None
    if rng.random() < 0.5:
        segments, left = [], n_tokens
        while left:
            n = rng.randint(1, left) if rng.random() < 0.8 else left
            segments.append((b"cells/%d.bin" % len(segments), n, rng.choice((b"", b"foreign "))))
            left -= n
    inputs = ref_writer.inputs_of(lengths, [("all", len(lengths), 7, 8)]) if rng.random() < 0.5 else []
    return dict(tokens=tokens, lengths=lengths, vocab=vocab, eod=eod, values=values, segments=segments,
                inputs=[(n.encode(), *rest) for n, *rest in inputs], spans=rng.choice((None, spans)),
                foreign=b"" if segments is not None else rng.choice((b"", b"12345678")),
                metadata=rng.choice((b"{}", b'{"created_by": "by hand"}', b'{ "a": [{"redacted_from": 1}] }')))


def redacted(given, documents, prefix, from_id):
    """The same after `documents` were redacted, to be written to `prefix`."""
    tokens, lengths, eod = list(given["tokens"]), given["lengths"], given["eod"]
    largest = max(tokens, default=0)
    filler = largest if largest != eod else max(eod - 1, 0)
    role_of = [None] * len(tokens)
    for first, end, role in given["spans"] or ():
        role_of[first:end] = [role] * (end - first)
    spans, at = [], 0
    for d, n in enumerate(lengths):
        for t in range(at, at + n):
            if d in documents:
                role_of[t] = 1 if role_of[t] in (None, 1, 128, 254) else 2
                if t < at + n - 1 or tokens[t] != eod:
                    tokens[t] = filler
            if role_of[t] is not None:
                if t > at and role_of[t - 1] == role_of[t]:
                    spans[-1] = (spans[-1][0], t + 1, role_of[t])
                else:
                    spans.append((t, t + 1, role_of[t]))
        at += n
    values = [(name, None, [None if d in documents else v for d, v in enumerate(column)])
              for name, _, column in given["values"]]
    for i, (name, _, column) in enumerate(given["values"]):  # one that had a fraction was written as such
        if any(isinstance(v, float) for v in column):
            values[i] = (name, None, [None if v is None else float(v) for v in values[i][2]])
    metadata = json.loads(given["metadata"])
    metadata.setdefault("redacted_from", []).append(from_id)
    segments, at = given["segments"], 0
    if segments is not None:
        touched = {t for d, t in enumerate_tokens(lengths) if d in documents}
        segments, width = [], 2 if given["vocab"] <= 65536 else 4
        for name, n, foreign in given["segments"]:
            if touched & set(range(at, at + n)):
                stored = ref_writer.little_endian(tokens[at:at + n], width)
                checksum = xxh3_64(ref_writer.block_checksums_section(stored)) + len(foreign)
                name = b"%s.%016x.redacted" % (os.path.basename(prefix).encode(), checksum)
            segments.append((name, n, foreign))
            at += n
    return dict(given, tokens=tokens, values=values, spans=spans, segments=segments, metadata=metadata)


def enumerate_tokens(lengths):
    at = 0
    for d, n in enumerate(lengths):
        yield from ((d, t) for t in range(at, at + n))
        at += n


def write_list(path, documents):
    path.write_text("".join("%d\n" % d for d in documents))
    return "@%s" % path


def redact(p, documents, q, *more):
    """What it says."""
    listed = write_list(pathlib.Path(str(q) + ".list"), documents)
    first, end = documents[0], documents[-1] + 1
    if list(documents) == list(range(first, end)):
        listed = "%d" % first if end == first + 1 else "%d:%d" % (first, end)
    code, out, err = tokmap("redact", p, "--documents", listed, "-o", q, "--json", *more)
    expect_equal(code, 0, err)
    return json.loads(out)


def compare(wanted, q, folder):
    """The dataset q with what a second writer writes."""
    second = folder / "second"
    second.mkdir()
    found = ref_reader.read(str(q))
    expect_equal(found.metadata, wanted["metadata"], "metadata")
    ref_writer.write(str(second / q.name), **dict(wanted, metadata=bytes(found.metadata_bytes)))
    for file in second.rglob("*"):
        if file.is_file():
            path = folder / file.relative_to(second)
            expect(path.read_bytes() == file.read_bytes(), "%s is another one" % path)
    shutil.rmtree(second)


def what_is_written_equals_a_second_implementation(folder):
    n_documents = n_joined = 0
    for seed in range(N_RUNS):
        rng, work = random.Random(seed), folder / str(seed)
        work.mkdir()
        given = random_dataset(rng)
        ref_writer.write(str(work / "p"), **given)
        for name in "qr":  # r is q, redacted again
            chosen = sorted(rng.sample(range(len(given["lengths"])), rng.randint(1, min(5, len(given["lengths"])))))
            p = work / ("p" if name == "q" else "q")
            done = redact(p, chosen, work / name)
            given = redacted(given, chosen, str(work / name), ref_reader.read(str(p)).dataset_id.hex())
            compare(given, work / name, work)
            expect(": OK" in said("verify", work / name), "verify")
            expect_equal(done["n_redacted_documents"], len(chosen), "documents")
            given["metadata"] = json.dumps(given["metadata"]).encode()
            n_documents += len(chosen)
            n_joined += given["segments"] is not None
        shutil.rmtree(work)
    return "%d documents of %d datasets, %d of these joined" % (n_documents, 2 * N_RUNS, n_joined)


def large_files_of_several_blocks(folder):
    """Tokens 0 and 5, so that the second implementation is fast enough."""
    for width, eod in ((2, None), (4, 5)):
        tokens = [0] * (3 * MIB // width)
        ends = [10, MIB // width - 3, MIB // width + 1, 2 * MIB // width + 9, len(tokens) - 4, len(tokens)]
        for end in ends:
            tokens[end - 1] = 5
        lengths = [b - a for a, b in zip([0] + ends, ends)]
        for segments in (None, [(b"a", MIB // width + 5, b""), (b"b", 2 * MIB // width - 5, b"xxxx")]):
            given = dict(tokens=tokens, lengths=lengths, vocab=70000 if width == 4 else 6, eod=eod, values=[], inputs=[],
                         spans=None, segments=segments, metadata=b"{}")
            work = folder / ("%d-%s" % (width, segments is None))
            work.mkdir()
            ref_writer.write(str(work / "p"), **given)
            done = redact(work / "p", [2, 3], work / "q")
            id = ref_reader.read(str(work / "p"), with_tokens=False).dataset_id.hex()
            compare(redacted(given, [2, 3], str(work / "q"), id), work / "q", work)
            n = lengths[2] + lengths[3] - 2 * (eod is not None)
            expect_equal((done["n_redacted_tokens"], done["bytes_written"]), (n, n * width), "written")
            expect(done["bytes_read"] <= 3 * MIB, done)


def the_largest_id_is_looked_for_if_it_ends_documents(folder):
    """It was in these documents alone, then also in a block that is not read for them."""
    for elsewhere in (False, True):
        tokens = [1] * MIB
        tokens[3] = 9
        tokens[-2] = 9 if elsewhere else 4
        given = dict(tokens=tokens, lengths=[5, MIB - 5], vocab=10, eod=9, values=[], inputs=[], spans=None, segments=None,
                     metadata=b"{}")
        ref_writer.write(str(folder / "p"), **given)
        done = redact(folder / "p", [0], folder / "q", "--force")
        compare(redacted(given, [0], str(folder / "q"), ref_reader.read(str(folder / "p")).dataset_id.hex()), folder / "q", folder)
        expect_equal(ref_reader.read(str(folder / "q")).largest_id, 9 if elsewhere else 8, "largest id")
        expect_equal(done["bytes_read"], 2 * MIB, "bytes read")


def make_corpus(folder, n=30):
    lines = [{"text": "document %d " % i + "x" * i, "lang": ("en", "de")[i % 2], "score": i / 2} for i in range(n)]
    (folder / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    call("tokmap", "pack", "-q", folder / "d.jsonl", "--meta", "lang,score", "-o", folder / "p")
    return folder / "p"


def where_and_list_together(folder):
    p = make_corpus(folder)
    where = 'lang == "de" and score >= 10'
    wanted = sorted({3, 4, 21} | {d for d in range(30) if d % 2 and d >= 20})
    listed = write_list(folder / "list", [3, 4, 21])
    said("redact", "-q", p, "--documents", listed, "--where", where, "-o", folder / "q")
    columns = ref_reader.read(str(folder / "q")).values
    expect_equal([d for d in range(30) if columns[0].values[d] is None], wanted, "redacted")
    with open(folder / "list") as f:  # a list from stdin, and again what was redacted
        done = subprocess.run([program("tokmap"), "redact", "-q", folder / "q", "--documents", "@-", "-o", folder / "r"], stdin=f)
    expect_equal(done.returncode, 0, "from stdin")
    expect_equal(ref_reader.read(str(folder / "r")).metadata["redacted_from"],
                 [ref_reader.read(str(folder / name)).dataset_id.hex() for name in "pq"], "redacted_from")


def info_and_merge_know_of_it(folder):
    p = make_corpus(folder)
    redact(p, [3, 4], folder / "q")
    id = ref_reader.read(str(p)).dataset_id.hex()
    documents = ref_reader.read(str(p)).documents
    n = sum(end - first for first, end in documents[3:5])
    shown = json.loads(said("info", "--json", folder / "q"))
    expect_equal((shown["n_redacted_documents"], shown["n_redacted_tokens"]), (2, n), "counts")
    line = next(line for line in said("info", folder / "q").splitlines() if line.startswith("redacted:"))
    expect_equal(line.split(maxsplit=1)[1], '2 documents, %d tokens, from ["%s"]' % (n, id), "line")
    expect("redacted:" not in said("info", p), "one that was not redacted")
    call("tokmap", "merge", "-q", folder / "q", "-o", folder / "alone")
    call("tokmap", "merge", "-q", folder / "q", folder / "p", "-o", folder / "both")
    for name, wanted in (("alone", [id]), ("both", None)):
        merged = ref_reader.read(str(folder / name))
        expect_equal(merged.metadata.get("redacted_from"), wanted, name)
        expect_equal([span[2] for span in merged.spans], [1, 1], "spans of %s" % name)
        expect_equal(json.loads(said("info", "--json", folder / name))["n_redacted_documents"], 2, name)
    call("tokmap", "rows", "-q", "-l", "16", p, folder / "q")
    expect((folder / "p.16.tmr").read_bytes() == (folder / "q.16.tmr").read_bytes(), "rows files")


def make_joined(folder, n=12):
    """A joined dataset p of four token files; document i has i times the id 100 + i, then 7."""
    lengths = list(range(1, n + 1))
    tokens = [t for i in range(n) for t in [100 + i] * i + [7]]
    at = [sum(lengths[:k]) for k in (0, 3, 6, 9, n)]
    segments = [(b"p.%d.bin" % k, at[k + 1] - at[k], b"") for k in range(4)]
    ref_writer.write(str(folder / "p"), tokens=tokens, lengths=lengths, vocab=300, eod=7, values=[], inputs=[], spans=None,
                     segments=segments, metadata=b"{}")
    return folder / "p"


def used_by(prefix):
    return {os.path.basename(one["token_file"]) for one in json.loads(tokmap("info", "--json", prefix)[1])["segments"]}


def copies(folder, name="q"):
    return {f.name for f in folder.glob(name + ".*.redacted")}


def has_id(path, id):
    data = path.read_bytes()
    return any(data[i:i + 2] == bytes([id, 0]) for i in range(0, len(data), 2))


def a_second_redaction_leaves_nothing_of_the_first(folder):
    p = make_joined(folder)
    redact(p, [3], folder / "q")
    expect(any(has_id(folder / name, 105) for name in copies(folder)), "document 5 is in the file of document 3")
    redact(p, [3, 5, 10], folder / "q", "-f")
    expect_equal(copies(folder), used_by(folder / "q") & copies(folder), "files of redacted tokens")
    expect_equal(len(copies(folder)), 2, "files of redacted tokens")
    expect(not any(has_id(f, id) for f in folder.glob("q*") for id in (103, 105, 110) if f.suffix != ".tmi"), "a token stays")
    expect(": OK" in said("verify", folder / "q"), "verify")
    said("merge", "-q", p, "-o", folder / "flat")  # and if the new one is a single file
    redact(folder / "flat", [3, 5, 10], folder / "q", "-f")
    expect_equal(copies(folder), set(), "files of redacted tokens")
    expect_equal(sorted(f.name for f in folder.glob("q*")), ["q.bin", "q.list", "q.tmi"], "files")


def files_of_the_source_stay(folder):
    """q was renamed to r, whose tokens are still in q.*.redacted; a new q is made from it, twice."""
    p = make_joined(folder)
    redact(p, [3], folder / "q")
    of_r = copies(folder)
    (folder / "q.tmi").rename(folder / "r.tmi")
    os.symlink(folder / "r.tmi", folder / "link.tmi")
    for source, documents in (("r", [9]), ("link", [10]), ("r", [4, 11])):
        redact(folder / source, documents, folder / "q", *(["-f"] if (folder / "q.tmi").exists() else []))
        expect(of_r <= copies(folder), "a file of the source is gone")
        expect_equal(copies(folder), of_r | {name for name in used_by(folder / "q") if name.startswith("q.")}, "files")
        for name in "qr":
            expect(": OK" in tokmap("verify", folder / name)[1], name)


def other_files_of_the_old_dataset_stay(folder):
    """Files whose names only begin, or only end, as redact names its files."""
    p = make_joined(folder)
    names = ["q.0123456789abcdef.bin", "q.0123456789abcdef", "q.0123456789abcde.redacted", "qq.0123456789abcdef.redacted"]
    ref_writer.write(str(folder / "q"), tokens=range(8), lengths=[8], vocab=300,
                     segments=[(os.fsencode(name), 2, b"") for name in names])
    redact(p, [3], folder / "q", "-f")
    expect_equal(sorted(name for name in names if (folder / name).exists()), sorted(names), "what stays")


def unused_files_are_named(folder):
    p = make_joined(folder)
    redact(p, [3], folder / "q")
    others = ["q.0123456789abcdef.redacted", "qq.0123456789abcdef.redacted", "r.0123456789abcdef.redacted",
              "q.x.0123456789abcdef.redacted"]  # of the dataset q.x
    for name in others:
        (folder / name).write_bytes(b"\1\0")
    for command in (["info"], ["info", "--json"], ["verify"], ["verify", "-q"],
                    ["redact", "-q", p, "--documents", "@%s" % (folder / "q.list"), "-f", "-o"]):
        code, out, err = tokmap(*command, folder / "q")
        expect_equal((code, err.count("is not used by")), (0, 1), err)
        expect(others[0] + ": is not used by" in err, err)
    code, _, err = tokmap("info", folder / "q", p, folder / "q.tmi")
    expect_equal((code, err.count("is not used by")), (0, 1), err)
    expect(all((folder / name).exists() for name in others), "one is gone")


def a_damaged_file_is_written_again(folder):
    p = make_joined(folder)
    redact(p, [3], folder / "q")
    name, = copies(folder)
    whole = (folder / name).read_bytes()
    for damage in (b"", whole[:-2], whole[:-2] + b"\1\0"):
        for force in ((), ("-f",)):
            (folder / name).write_bytes(damage)
            if not force:
                (folder / "q.tmi").unlink()
            redact(p, [3], folder / "q", *force)
            expect_equal((folder / name).read_bytes(), whole, "the file")
            expect(": OK" in said("verify", folder / "q"), "verify")


def a_killed_one_leaves_nothing_unnamed(folder):
    """Killed at each call that names or removes a file: q is the old or the new one, whole, each file that it does not use
    is named by info, and the next redaction, of the new list, leaves none that says what was deleted."""
    p, listed = make_joined(folder), write_list(folder / "new", [3, 5])
    redact(p, [3], folder / "q")
    old, n_killed, n_named = copies(folder), 0, 0

    def begin():
        redact(p, [3], folder / "q", "-f")
        for name in copies(folder) - old:
            (folder / name).unlink()

    for when in kills(begin, "redact", "-q", "-f", p, "--documents", listed, "-o", folder / "q"):
        n_killed += 1
        code, _, err = tokmap("info", folder / "q")
        expect_equal(code, 0, f"info after {when}: {err}")
        unused = copies(folder) - used_by(folder / "q")
        expect(all(name in err for name in unused), f"{when}: {err} of {unused}")
        expect("q.bin.partial" not in os.listdir(folder) or "killed" in err, err)
        n_named += len(unused)
        expect(": OK" in tokmap("verify", folder / "q")[1], "verify")
        redact(p, [3, 5], folder / "q", "-f")
        _, _, err = tokmap("info", folder / "q")
        for f in folder.glob("q*"):
            stays = f.suffix not in (".tmi", ".list") and has_id(f, 105)
            expect(not stays or f.name in err, f"{f.name} stays after {when}: {err}")
            if f.name in err:
                f.unlink()
    expect(n_killed > 5 and n_named > 0, f"{n_killed} kills, {n_named} files named")
    return f"{n_killed} kills, {n_named} unused files named"


def other_names_of_token_files_are_noted(folder):
    p = make_corpus(folder)
    listed = write_list(folder / "list", [3])
    said("redact", "-q", p, "--documents", listed, "-o", folder / "q")
    for name in "pq":
        os.link(folder / (name + ".bin"), folder / (name + "-export.bin"))
    code, out, err = tokmap("redact", p, "--documents", listed, "-o", folder / "q", "-f")
    expect_equal((code, err.count("has 2 names (hard links")), (0, 2), err)
    expect("p.bin: has 2" in err and "q.bin: has 2" in err, err)
    expect(f"{p} still has these documents: remove it, and what was made from it" in out, out)
    expect(re.search(r"redacted 1 document, \d+ tokens?; [\d.]+ \w+ (copied|shared \(reflink\)), [\d.]+ \w+ read, [\d.]+ \w+ written\n", out),
           out)
    result = json.loads(tokmap("redact", p, "--documents", listed, "-o", folder / "r", "--json")[1])
    expect_equal((result["n_redacted_documents"], result["index_file"], result["dataset_id"]),
                 (1, str(folder / "r.tmi"), json.loads(said("info", "--json", folder / "r"))["dataset_id"]), "--json")


def a_megatron_index_is_kept(folder):
    make_corpus(folder)
    p, q = folder / "m", folder / "q"
    listed = write_list(folder / "list", [3])
    said("pack", "-q", folder / "d.jsonl", "--also", "megatron", "-o", p)
    idx = (folder / "m.idx").read_bytes()
    code, _, err = tokmap("redact", "-q", p, "--documents", listed, "-o", q)
    expect(code == 0 and "q.idx: cannot mark labels" in err, err)
    expect_equal((folder / "q.idx").read_bytes(), idx, "q.idx")
    code, _, err = tokmap("redact", "-q", p, "--documents", listed, "-o", q)
    expect(code == 5, err)
    (folder / "q.idx").write_bytes(b"of other tokens")
    (folder / "m.idx").write_bytes(idx + b" ")
    redact(p, [3], q, "-f")
    expect_equal((folder / "q.idx").read_bytes(), idx + b" ", "q.idx, replaced")
    redact(p, [3, 4], q, "-f")
    (folder / "m.idx").unlink()
    for force in ((), ("-f",)):
        code, _, err = tokmap("redact", p, "--documents", listed, "-o", q, *force)
        expect(code == 5 and "q.idx: exists, and would be a Megatron index" in err, err)
    (folder / "q.idx").unlink()
    said("redact", "-q", p, "--documents", listed, "-o", q, "-f")
    expect_equal(sorted(f.name for f in folder.glob("q*")), ["q.bin", "q.list", "q.tmi"], "files")


def exports_say_what_is_trained_on(folder):
    make_corpus(folder)
    p, q = folder / "m", folder / "q"
    said("pack", "-q", folder / "d.jsonl", "--also", "megatron", "-o", p)
    redact(p, [3, 4], q)
    expect("2 of tokens whose labels never count, all redacted\n" in tokmap("info", q)[1], "info")
    for to in ("megatron", "llmc", "raw"):
        options = ["export", "-q", "--to", to, q, "-o", folder / "x"]
        code, _, err = tokmap(*options)
        expect(code == 4 and "with --spans drop" in err and not list(folder.glob("x*")), err)
        code, _, err = tokmap(*options, "--spans", "drop")
        expect(code == 0 and "q.tmi: its 2 spans of tokens whose labels never count are trained on" in err, err)
        skip = 1024 if to == "llmc" else 0
        expect_equal((folder / "x.bin").read_bytes()[skip:], (folder / "q.bin").read_bytes(), to)
        if to == "megatron":
            expect_equal((folder / "x.idx").read_bytes(), (folder / "m.idx").read_bytes(), "x.idx")
        for f in folder.glob("x*"):
            f.unlink()
    code, _, err = tokmap("export", "-q", "--spans", "drop", "--to", "raw", p, "-o", folder / "x")
    expect_equal((code, err), (0, ""), "without spans")


def bad_input_is_named(folder):
    p = make_corpus(folder)
    lists = {"5\n5\n": "line 2", "5\n4\n": "line 2", "1\n\n30\n": "line 3", "1\nx\n": "line 2", "-1\n": "line 1",
             "1 2\n": "line 1", "1.0\n": "line 1", "18446744073709551617\n": "line 1", "29\n0\n": "line 2"}
    for text, place in lists.items():
        (folder / "list").write_text(text)
        code, out, err = tokmap("redact", p, "--documents", "@%s" % (folder / "list"), "-o", folder / "q")
        expect_equal((code, out), (3, ""), text)
        expect("list: %s: must be the number of a document" % place in err, err)
    for options, wanted, why in ((["--where", "lang > 1"], 2, "compares a string with a number"), ([], 2, "give --documents"),
                                 (["--where", "lang ="], 2, "--where: character"), (["--documents", "5:4"], 2, "--documents 5:4: must be FIRST:END"),
                                 (["--documents", "999999999"], 2, "the dataset has only"),
                                 (["--where", "url == 'a'"], 3, "there is no column 'url'"),
                                 (["--where", "lang == 'fr'"], 3, "no document was chosen"),
                                 (["--documents", "@%s" % (folder / "none")], 3, "none: cannot open")):
        code, _, err = tokmap("redact", p, *options, "-o", folder / "q")
        expect(code == wanted and why in err, (code, err))
    code, _, err = tokmap("redact", p, "--where", "score > 1", "-o", p, "-f")
    expect(code == 2 and "is an input" in err, err)
    tokens = bytearray((folder / "p.bin").read_bytes())
    tokens[0] ^= 1
    (folder / "p.bin").write_bytes(tokens)
    code, _, err = tokmap("redact", p, "--where", "score > 1", "-o", folder / "q")
    expect(code == 4 and "block 0" in err, err)
    for metadata in (b"{", b'{"redacted_from": "x"}'):
        ref_writer.write(str(folder / "bad"), [1, 2], [2], vocab=3, metadata=metadata)
        code, _, err = tokmap("redact", folder / "bad", "--documents", write_list(folder / "list", [0]), "-o", folder / "q")
        expect(code == 4 and "bad.tmi: its metadata" in err, err)
    (folder / "raw.bin").write_bytes(b"\1\0\2\0")
    tokmap("index", folder / "raw.bin", "--dtype", "u16", "--eod", "none")
    code, _, err = tokmap("redact", folder / "raw", "--documents", write_list(folder / "list", [0]), "-o", folder / "q")
    expect(code == 4 and "raw.tmi: the document boundaries are not known" in err, err)
    expect_equal(sorted(f.name for f in folder.glob("q*")), [], "what is left")


def verify_names_damaged_spans(folder):
    redact(make_corpus(folder), [3], folder / "q")
    path = folder / "q.tmi"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")  # the end of the only span
    code, out, err = tokmap("verify", folder / "q")
    expect(code == 4 and "the spans section" in out + err, out + err)


def mount_with_reflinks(image, at):
    """A file system in a file; skips where there cannot be one."""
    at.mkdir()
    for command in (["mkfs.xfs", "-q", "-m", "reflink=1"], ["mkfs.btrfs", "-q"]):
        with open(image, "wb") as f:
            f.truncate(400 * MIB)
        if os.geteuid() == 0 and shutil.which(command[0]) and subprocess.run([*command, image]).returncode == 0:
            done = subprocess.run(["mount", "-o", "loop", image, at], capture_output=True, text=True)
            if done.returncode == 0:
                return
    raise Skip("no xfs or btrfs can be mounted from a file here")


def on_reflinks_only_what_changes_is_read_and_written(folder):
    at = folder / "mounted"
    mount_with_reflinks(folder / "image", at)
    try:
        with open(folder / "ids", "wb") as f:  # 64 MiB of tokens, documents of 1 MiB that do not begin with a block
            f.write(os.urandom(1000) + b"\xff\xff" + (os.urandom(MIB // 2 - 1).replace(b"\xff", b"\0") * 2 + b"\xff\xff") * 64)
        shutil.copy(folder / "ids", at / "p.bin")
        said("index", "-q", "--format", "raw", "--dtype", "u16", "--eod", "65535", at / "p.bin")
        before = shutil.disk_usage(at).used
        done = redact(at / "p", [7], at / "q")
        subprocess.run(["sync", "-f", at], check=True)
        n_more = shutil.disk_usage(at).used - before
        expect_equal((done["bytes_shared"], done["bytes_copied"]), (os.path.getsize(at / "p.bin"), 0), "shared")
        expect(done["bytes_read"] <= 2 * MIB and done["bytes_written"] <= MIB, done)
        expect(n_more < 2 * MIB, "the disk has %d bytes more" % n_more)
        said("verify", at / "q")
        return "%(bytes_read)d bytes read, %(bytes_written)d written" % done + ", %d more on the disk" % n_more
    finally:
        subprocess.run(["umount", at], check=True)


if __name__ == "__main__":
    sys.exit(run_in_folders("redact_"))

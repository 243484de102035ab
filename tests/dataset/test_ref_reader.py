#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The second reader (ref_reader) and writer (ref_writer) against each other and against the
library: datasets of every shape, every check of docs/FORMAT.md."""

import json
import os
import random
import shutil
import sys

import ref_faults
import ref_reader
import ref_shapes
import ref_writer
from ref_protocol import Skip, call, expect, expect_equal, run_in_folders
from ref_reader import Damaged, NewerFormat, NotADataset

LONG = os.environ.get("TOKMAP_LONG") == "all"
WIDE = 2**32 - 1
# What tool_lookup may print for a refused dataset: nothing when it takes verify to find the damage.
OPEN_ANSWERS = {
    NotADataset: ("refused -4\n",),
    NewerFormat: ("refused -5\n",),
    Damaged: ("", "refused -6\n"),
    None: ("refused -5\n", "refused -6\n"),
}


def expect_same(ds, wanted, shape):
    tokens, lengths, inputs = wanted
    expect_equal(ds.n_tokens, len(tokens), "n_tokens")
    expect_equal(ds.n_documents, len(lengths), "n_documents")
    expect(list(ds.tokens) == tokens, "tokens differ")
    expect([end - first for first, end in ds.documents] == lengths, "documents differ")
    expect_equal([tuple(entry) for entry in ds.inputs], inputs, "inputs")
    expect_equal(ds.metadata_bytes, shape.metadata, "metadata")
    expect_equal(ds.eod_id, shape.eod, "eod_id")
    expect_equal(ds.vocab_size, shape.vocab, "vocab_size")
    expect_equal(ds.dtype, "u16" if shape.vocab <= 65536 else "u32", "dtype")
    expect_equal(ds.largest_id, max(tokens, default=0), "largest_id")


def lookup_tokens(ds, n_random=2000 if LONG else 700):
    """Tokens worth asking for: all boundaries (a part of them when they are many), random ones."""
    if ds.n_tokens == 0:
        return []
    rng = random.Random(ds.n_tokens)
    documents = ds.documents
    if len(documents) > 20000:
        documents = rng.sample(documents, 5000)
    tokens = {0, ds.n_tokens - 1}
    for first, end in documents:
        tokens |= {first - 1, first, end - 1, end}
    tokens |= {rng.randrange(ds.n_tokens) for _ in range(n_random)}
    return sorted(t for t in tokens if 0 <= t < ds.n_tokens)


def write_shape(shape, prefix):
    wanted = ref_shapes.carry_out(shape)
    ref_writer.write(
        prefix,
        *wanted[:2],
        vocab=shape.vocab,
        eod=shape.eod,
        inputs=wanted[2],
        metadata=shape.metadata
    )
    return wanted


def wide_lengths():
    lengths = [1] * 64
    lengths += [0] * 10 + [WIDE - 1] + [0] * 53  # the widest narrow group
    lengths += [1] * 63 + [WIDE - 63]  # the narrowest wide group
    lengths += [2**33 + 5, 0, 7] + [3] * 61
    lengths += [0] * 64 * 15
    lengths += [2] * 5 + [2**32, 1, 0]  # wide and not full
    return lengths


def planted(plant, good):
    index = bytearray(good)
    plant(index)
    return ref_writer.sign(index)


def refusal_of(prefix):
    """By ref_reader; None: it reads the dataset."""
    try:
        ref_reader.read(prefix)
    except (NotADataset, NewerFormat, Damaged) as e:
        return e
    return None


def every_check_of_the_document_is_made(folder):
    """ref_reader refuses each fault, and the library for the same kind of reason; both accept what is harmless."""
    prefix, index = str(folder / "fault"), folder / "fault.tmi"
    ref_writer.write(prefix, **ref_faults.base_arguments())
    base, good = ref_reader.read(prefix), index.read_bytes()
    faults = ref_faults.faults(base)
    differing = []
    for name, plant, kind, offset in faults:
        index.write_bytes(planted(plant, good))
        e = refusal_of(prefix)
        expect(e, "accepted: " + name)
        expect(kind in (None, type(e)), "%s: refused as %s: %s" % (name, type(e).__name__, e))
        expect(offset is None or e.offset == offset, "%s (%s): offset %s" % (name, e, offset))
        status, _ = call("tokmap", "verify", prefix, check=False)
        if status != 4:
            differing.append("%s: verify says %d" % (name, status))
        _, output = call("tool_lookup", prefix, check=False)
        if output.decode() not in OPEN_ANSWERS[kind]:
            differing.append("%s: open says %r, not %s" % (name, output, OPEN_ANSWERS[kind]))
    for name, plant in ref_faults.harmless_changes(base):
        index.write_bytes(planted(plant, good))
        expect_equal(ref_reader.read(prefix).documents, base.documents, name)
        status, _ = call("tokmap", "verify", prefix, check=False)
        if status != 0:
            differing.append("%s: harmless, verify says %d" % (name, status))
    expect(not differing, "; ".join(differing))
    return "%d faults" % len(faults)


# ---- Against the library ----


def expect_info(prefix, ds):
    wanted = {
        "dtype": ds.dtype,
        "n_tokens": ds.n_tokens,
        "n_documents": ds.n_documents,
        "n_inputs": ds.n_inputs,
        "vocab_size": ds.vocab_size,
        "largest_id": ds.largest_id,
        "eod_id": ds.eod_id,
        "dataset_id": ds.dataset_id.hex(),
        "token_offset": ds.token_offset,
        "token_bytes": ds.token_bytes,
        "format_version": 1,
        "index_bytes": ds.index_bytes,
        "token_file_bytes": ds.token_file_bytes,
    }
    seen = json.loads(call("tokmap", "info", "--json", prefix)[1])
    expect_equal({key: seen.get(key) for key in wanted}, wanted, "info --json")


def expect_cat(prefix, ds):
    tokens = ds.tokens
    output = call("tokmap", "cat", "--json", prefix)[1].decode()
    boundaries = ds.documents or ([(0, ds.n_tokens)] if ds.n_tokens > 0 else [])
    documents = [json.loads(line) for line in output.splitlines()]
    expect_equal(len(documents), len(boundaries), "lines of cat --json")
    for d, (first, end) in enumerate(boundaries):
        expect(documents[d] == list(tokens[first:end]), "cat --json of document %d" % d)


def expect_library_lookups(prefix, ds):
    """tool_lookup answers `t TOKEN` and `d DOCUMENT` lines: document, first token, length."""
    if ds.n_documents == 0:
        return
    tokens = lookup_tokens(ds)
    documents = range(ds.n_documents)
    if ds.n_documents > 20000:
        documents = random.Random(3).sample(documents, 5000)
    lines = ["t %d" % t for t in tokens] + ["d %d" % d for d in documents]
    output = call("tool_lookup", prefix, stdin=("\n".join(lines) + "\n").encode())[1]
    answers = [tuple(int(x) for x in line.split()) for line in output.splitlines()]
    expect_equal(len(answers), len(lines), "answers of tool_lookup")
    wanted = [ds.find_document(t) for t in tokens] + [(d,) + ds.documents[d] for d in documents]
    for line, answer, (d, first, end) in zip(lines, answers, wanted):
        expect_equal(answer, (d, first, end - first), line)


def expect_agreement(prefix, ds, with_tokens=True):
    expect_info(prefix, ds)
    expect_library_lookups(prefix, ds)
    if with_tokens:
        call("tokmap", "verify", prefix)
        expect_cat(prefix, ds)


def expect_same_file(a, b):
    x, y = a.read_bytes(), b.read_bytes()
    if x != y:
        at = next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))
        raise AssertionError("%s: %d and %d bytes, differ at byte %d" % (a.name, len(x), len(y), at))


def the_library_writes_and_reads_every_shape(folder):
    """Its writer writes the same bytes, and it reads ref_writer's files."""
    ours, theirs = str(folder / "python"), str(folder / "library")
    for name, shape in ref_shapes.SHAPES.items():
        wanted = write_shape(shape, ours)
        call("tool_make_dataset", stdin=ref_shapes.tool_input(shape, theirs).encode())
        ds = ref_reader.read(theirs)
        expect_same(ds, wanted, shape)
        expect_agreement(ours, ds)
        for suffix in (".bin", ".tmi"):
            expect_same_file(folder / ("python" + suffix), folder / ("library" + suffix))
            (folder / ("library" + suffix)).unlink()
    return "%d shapes" % len(ref_shapes.SHAPES)


def the_library_adopts_foreign_files(folder):
    """Offset, suffix, unknown vocabulary."""
    ours, theirs = str(folder / "python"), str(folder / "library")
    for token_bytes, vocab in ((2, None), (4, 65536)):
        lengths = [5, 0, 1000, 7]
        tokens = [ref_shapes.generated_id(i, 65536) for i in range(sum(lengths))]
        arguments = dict(vocab=vocab, eod=7, token_bytes=token_bytes, suffix=".x-1_y")
        ref_writer.write(ours, tokens, lengths, foreign=b"headhead" * 128, **arguments)
        shutil.copy(ours + ".x-1_y", theirs + ".x-1_y")
        place = (token_bytes, 1024, len(tokens))
        text = ref_shapes.adopt_input(theirs + ".x-1_y", place, vocab or 0, 7, lengths)
        call("tool_make_dataset", stdin=text.encode())
        ds = ref_reader.read(theirs)
        expect_equal(ds.n_tokens, len(tokens), "n_tokens")
        expect_same_file(folder / "python.tmi", folder / "library.tmi")
        (folder / "library.tmi").unlink()
        expect_library_lookups(ours, ds)
        call("tokmap", "verify", ours)
        expect_cat(ours, ds)


def the_library_takes_odd_suffixes(folder):
    """That no writer of ours makes, but that the document allows."""
    prefix = str(folder / "dots")
    for suffix in (".a.b-c_D.9", ".bin.gz", "..", ".23456789012345", ".TMI"):
        ref_writer.write(prefix, [1, 2, 3], [1, 2], vocab=10, suffix=suffix)
        expect_agreement(prefix, ref_reader.read(prefix))


def the_library_searches_wide_groups(folder):
    prefix = str(folder / "wide")
    lengths = wide_lengths()
    ref_writer.write(prefix, ref_writer.Zeros(sum(lengths)), lengths, vocab=10)
    ds = ref_reader.read(prefix, with_tokens=False)
    expect_equal([end - first for first, end in ds.documents], lengths, "lengths")
    expect_agreement(prefix, ds, with_tokens=False)


def the_library_writes_a_wide_group(folder):
    """8 GiB of zeros in a sparse file, adopted: the same index as ref_writer's."""
    if "TOKMAP_LONG" not in os.environ:
        raise Skip("TOKMAP_LONG is not set")
    prefix = str(folder / "adopted")
    lengths = [1, 0, 2**32 + 1] + [2] * 100
    ref_writer.write(prefix, ref_writer.Zeros(sum(lengths)), lengths, vocab=10)
    if os.stat(prefix + ".bin").st_blocks > 2**16:
        raise Skip("no sparse files here")
    os.rename(prefix + ".tmi", prefix + ".wanted")
    text = ref_shapes.adopt_input(prefix + ".bin", (2, 0, sum(lengths)), 10, None, lengths)
    call("tool_make_dataset", stdin=text.encode())
    expect_same_file(folder / "adopted.wanted", folder / "adopted.tmi")
    call("tokmap", "verify", prefix)
    expect_agreement(prefix, ref_reader.read(prefix, with_tokens=False), with_tokens=False)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))

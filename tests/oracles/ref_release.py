# SPDX-License-Identifier: Apache-2.0
"""What tool_release prints, by the second reader and the second order: written from docs/FORMAT.md and docs/ORDER.md
alone. Standard library only."""

import functools
import itertools
import os
import struct

import ref_reader
from ref_order import DocumentList, Order, Phase, Skips, Source, quotas_of
from ref_rows import WHOLE
from ref_views import read_view
from ref_xxh3 import xxh3_64

MAX_TOKENS_READ = 2**24
STEPS = 3
FAR = (1000, 10**6, 10**12)
SHUFFLES, WINDOWS = ("full", "none", "block"), ("concat", "within_document", "best_fit")


def hash_of(numbers, code):
    return "%016x" % xxh3_64(struct.pack("<%d%s" % (len(numbers), code), *numbers))


def text_of(data):
    return data.decode("utf-8", "surrogateescape")


# ---- Datasets ----


def shown_value(value):
    if value is None:
        return b"null\n"
    if isinstance(value, int):
        return b"int %d\n" % value
    if isinstance(value, float):
        return b"float %s\n" % struct.pack(">d", value).hex().encode()
    return b"text " + value + b"\n"


def inputs_of(ds):
    document = token = 0
    for i in ds.inputs:
        yield " input %s: documents %d to %d, tokens %d to %d, %d bytes, checksum %016x" % (
            text_of(i.name), document, i.end_document, token, i.end_token, i.input_bytes, i.input_checksum)
        document, token = i.end_document, i.end_token


def documents_of(ds):
    yield " documents %d, ends_xxh3 %s" % (ds.n_documents, hash_of([end for _, end in ds.documents], "Q"))
    if ds.n_documents and ds.n_tokens:
        for token in (0, ds.n_tokens // 3, ds.n_tokens // 2, ds.n_tokens - 1):
            d, first, end = ds.find_document(token)
            yield " token %d is in document %d: %d tokens from %d" % (token, d, end - first, first)


def columns_of(ds):
    for column in ds.values:
        yield " column %s: %s, %d nulls" % (column.name, column.type, column.values.count(None))
        values = [shown_value(value) for value in column.values]
        yield from ("  " + text_of(value[:-1]) for value in values[:3])
        yield "  all xxh3 %016x" % xxh3_64(b"".join(values))


def dataset_lines(folder, name):
    path = os.path.join(folder, name)
    ds = ref_reader.read(path, with_tokens=False)
    if ds.n_tokens <= MAX_TOKENS_READ:
        ds = ref_reader.read(path)
    yield "dataset " + name
    yield " id " + ds.dataset_id.hex()
    yield " format %d for readers of %d" % (ds.format_version, ds.lowest_reader)
    yield " tokens %d of %d bytes at %d, files of %d bytes" % (
        ds.n_tokens, ds.token_bytes, ds.token_offset, ds.token_file_bytes)
    yield " ids to %d, vocabulary %d, end of document %d" % (
        ds.largest_id, ds.vocab_size, -1 if ds.eod_id is None else ds.eod_id)
    if ds.n_tokens <= MAX_TOKENS_READ:
        yield " tokens_xxh3 " + hash_of(ds.tokens, "I")
    yield from documents_of(ds)
    yield from inputs_of(ds)
    yield from columns_of(ds)
    first = 0
    for segment in ds.segments or ():
        yield " segment %s: tokens %d to %d, at %d" % (text_of(segment.name), first, segment.end_token, segment.token_offset)
        first = segment.end_token
    yield " metadata " + text_of(ds.metadata_bytes)


# ---- Loaders ----


read_dataset = functools.lru_cache(ref_reader.read)  # for many loaders of a dataset


class Setup:
    """A line of a loader: `order`, `o` with its numbers, `tokens` of each dataset of each source."""

    def __init__(self, folder, words):
        self.o = {"ranks": 1}
        self.tokens, sources, weights, phases, width, skips = [], [], [], [], 2, []
        for key, _, value in (word.partition("=") for word in words):
            if key == "source":
                names, weight, epochs, masked = value.split(":")
                parts = [(name + "@@").split("@")[:3] for name in names.split("+")]
                datasets = [read_dataset(os.path.join(folder, name)) for name, _, _ in parts]
                views = [read_view(os.path.join(folder, view), ds) if view else None
                         for (_, view, _), ds in zip(parts, datasets)]
                ranges = [tuple(map(int, part.split("-"))) if part else None for _, _, part in parts]
                self.tokens.append([ds.tokens for ds in datasets])
                lists = [None] * len(datasets)
                sources.append([[ds.dataset_id for ds in datasets], [ds.n_tokens for ds in datasets],
                                [ds.documents for ds in datasets], int(epochs), masked == "1", ranges, views, lists, None])
                weights.append(float(weight))
                width = max(width, *(ds.token_bytes for ds in datasets))
            elif key in ("list", "order"):
                n, step, last = map(int, value.split(":"))
                if key == "list":
                    lists[-1] = DocumentList([i * step % len(datasets[-1].documents) for i in range(n)], last == 1)
                else:
                    sources[-1][-1] = [i * step % last for i in range(n)]
            elif key == "skip":
                skips.append(tuple(map(int, value.split("-"))))
            elif key == "phase":
                first, _, rest = value.partition(":")
                phases.append((int(first), [float(w) for w in rest.split(",")]))
            else:
                self.o[key] = int(value)
        phases = [(0, weights if any(weights) else [1.0]), *phases]
        phases = [Phase(first, quotas_of(w)) for first, w in phases]
        block, group = self.o.get("block_windows", 0), self.o.get("group_blocks", 0)
        packed = self.o.get("windows") == 2
        self.order = Order(
            [Source(*source) for source in sources], phases, self.o["length"], self.o.get("seed", 0),
            windows=WINDOWS[self.o.get("windows", 0)], shuffle=SHUFFLES[self.o.get("shuffle", 0)],
            random_offset=bool(self.o.get("random_offset", 0)),
            block=block or max(1, 2**20 // (self.o["length"] * width)), group=group or (0 if packed else 64),
            align=self.o.get("align", 1), most=self.o.get("max_documents", 0),
            whole=WHOLE[self.o.get("whole_documents", 0)])
        self.end = self.order.mixture.end
        self.skips = Skips(skips, self.end or 2**62)


def place(setup, sample):
    first = setup.order.tokens(sample)[0]
    return "source %d dataset %d epoch %d window %d first %d" % (
        sample.source, sample.row.dataset, sample.epoch, sample.window, first)


def hash_parts(setup, sample):
    length = setup.order.length
    starts, positions, numbers, mask = setup.order.about(sample)
    missing = length - len(positions)
    positions, numbers = positions + [0] * missing, numbers + [len(starts) - 1] * missing
    data = struct.pack("<%di" % (len(starts) + 2 * length), *starts, *positions, *numbers) + bytes(mask)
    return "%016x" % xxh3_64(data)


def row_line(setup, g):
    sample = setup.order.sample(g)
    tokens = setup.tokens[sample.source][sample.row.dataset]
    ids = [0 if t is None else tokens[t] for t in setup.order.tokens(sample)]
    line = " row %d: %s, %d tokens, xxh3 %s" % (g, place(setup, sample), len(ids), hash_of(ids, "I"))
    return line + (", parts " + hash_parts(setup, sample) if setup.o.get("parts") else "")


def loader_lines(folder, name, words):
    setup = Setup(folder, words)
    n_ranks, n_rows, first = setup.o["ranks"], setup.o["rows"], setup.o["next"]
    with open(os.path.join(folder, "states", name), "rb") as f:
        if f.read() != setup.order.state(first, setup.skips):
            raise AssertionError("states/%s is not the state of docs/ORDER.md" % name)
    yield "loader " + name
    samples = list(itertools.islice(setup.skips.samples(first), STEPS * n_ranks * n_rows))
    for rank in range(n_ranks):
        if rank == 0:
            yield " at %d of %d" % (first, setup.end or 2**64 - 1)
        for step in range(STEPS):
            begin = (step * n_ranks + rank) * n_rows
            for g in samples[begin:begin + n_rows]:
                yield row_line(setup, g)
        state = setup.order.state(setup.skips.next(samples[-1] + 1), setup.skips).hex()
        yield " state" + "".join(" " + state[i:i + 64] for i in range(0, 256, 64))
        if rank == 0:
            for g in FAR:
                if setup.end is None or g < setup.end:
                    sample = setup.order.sample(g)
                    yield " sample %d: %s, %d tokens" % (g, place(setup, sample), sample.row.n_inputs + 1)


def show(folder, contents):
    """The lines for a text of lines `dataset NAME` and `loader NAME WORD...`."""
    lines = []
    for verb, name, *words in map(str.split, contents.splitlines()):
        lines += dataset_lines(folder, name) if verb == "dataset" else loader_lines(folder, name, words)
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")

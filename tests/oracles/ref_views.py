# SPDX-License-Identifier: Apache-2.0
"""View files, written from docs/FORMAT.md section 15 alone: a second reader and writer to compare the library with.
Plain and slow; standard library only.

    data = view_bytes(dataset.documents_hash, [n_tokens, ...], [3, 4, 9])
    view = read_view("data/train.0123456789abcdef.tmw", ref_reader.read("data/train"))
"""

import struct
from collections import namedtuple

from ref_reader import Damaged, NewerFormat
from ref_xxh3 import xxh3_64

MAGIC = bytes.fromhex("89544D570D0A1A0A")
CHUNK_DOCUMENTS, MOST_NUMBERS, BITMAP_BYTES, SAMPLE_EVERY = 65536, 4096, 8192, 32

# kept: the numbers of the documents, ascending.
View = namedtuple("View", "kept n_tokens n_runs set_hash key")
Entry = namedtuple("Entry", "kept_before tokens_before place n_kept zero checksum")


class OtherDocuments(Exception):
    """The view is of other documents."""


def runs_of(kept):
    """(first, end) of the longest runs of consecutive numbers."""
    runs = []
    for number in kept:
        if runs and runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    return runs


def set_hash_of(kept):
    return xxh3_64(b"".join(struct.pack("<QQ", *run) for run in runs_of(kept)))


def samples_of(kept, lengths):
    """Of the documents of a chunk, which begins with the first of these lengths."""
    samples, n_tokens = [], 0
    for i, number in enumerate(kept):
        if i % SAMPLE_EVERY == 0:
            samples.append(number | n_tokens << 16)
        n_tokens += lengths[number]
    return samples


def chunk_bytes(kept, lengths):
    if len(kept) > MOST_NUMBERS:
        bits = bytearray(BITMAP_BYTES)
        for number in kept:
            bits[number // 8] |= 1 << number % 8
        documents = bytes(bits)
    else:
        documents = struct.pack("<%dH" % len(kept), *kept)
        documents += bytes(-len(documents) % 8)
    samples = samples_of(kept, lengths)
    return documents + struct.pack("<%dQ" % len(samples), *samples)


def view_bytes(documents_hash, lengths, kept, key=None):
    """The file of a view of documents of these lengths; key: None for that of a set."""
    n_chunks = -(-len(lengths) // CHUNK_DOCUMENTS)
    parts = [[] for _ in range(n_chunks)]
    for number in kept:
        parts[number // CHUNK_DOCUMENTS].append(number % CHUNK_DOCUMENTS)
    table, chunks, n_kept, n_tokens, place = b"", b"", 0, 0, 128 + 40 * n_chunks
    for k, part in enumerate(parts):
        some = lengths[k * CHUNK_DOCUMENTS:(k + 1) * CHUNK_DOCUMENTS]
        chunk = chunk_bytes(part, some)
        table += struct.pack("<QQQIIQ", n_kept, n_tokens, place + len(chunks), len(part), 0, xxh3_64(chunk))
        n_kept, n_tokens, chunks = n_kept + len(part), n_tokens + sum(some[i] for i in part), chunks + chunk
    set_hash = set_hash_of(kept)
    header = struct.pack(
        "<8sI4x16s9Q16x", MAGIC, 1, documents_hash, len(lengths), n_kept, n_tokens, len(runs_of(kept)), set_hash,
        n_chunks, place + len(chunks), xxh3_64(table), set_hash if key is None else key)
    return header + struct.pack("<Q", xxh3_64(header)) + table + chunks


def read_chunk(data, entry, lengths, check):
    """The numbers in the chunk of its documents, and their tokens."""
    n = entry.n_kept
    is_bitmap = n > MOST_NUMBERS
    n_bytes = BITMAP_BYTES if is_bitmap else 2 * n
    padded = n_bytes + -n_bytes % 8
    n_samples = -(-n // SAMPLE_EVERY)
    chunk = data[entry.place:entry.place + padded + 8 * n_samples]
    check(len(chunk) == padded + 8 * n_samples, "a chunk ends after the file", entry.place)
    check(xxh3_64(chunk) == entry.checksum, "checksum of a chunk", entry.place)
    if is_bitmap:
        kept = [number for number in range(8 * BITMAP_BYTES) if chunk[number // 8] >> number % 8 & 1]
    else:
        kept = list(struct.unpack_from("<%dH" % n, chunk))
    check(len(kept) == n and all(a < b for a, b in zip(kept, kept[1:])), "documents of a chunk", entry.place)
    check(not kept or kept[-1] < len(lengths), "a document of the chunk does not exist", entry.place)
    check(not any(chunk[n_bytes:padded]), "padding of a chunk", entry.place + n_bytes)
    samples = list(struct.unpack_from("<%dQ" % n_samples, chunk, padded))
    check(samples == samples_of(kept, lengths), "samples of a chunk", entry.place + padded)
    return kept, sum(lengths[number] for number in kept), len(chunk)


def read_view(path, ds):
    """The View in a file, of a dataset that ref_reader has read. Raises NewerFormat, OtherDocuments or Damaged."""
    with open(path, "rb") as f:
        data = f.read()

    def check(condition, why, offset):
        if not condition:
            raise Damaged(why, path, offset)

    check(len(data) >= 128 and data[:8] == MAGIC, "magic", 0)
    check(xxh3_64(data[:120]) == struct.unpack_from("<Q", data, 120)[0], "header checksum", 120)
    version, reserved = struct.unpack_from("<II", data, 8)
    if version != 1 or reserved or any(data[104:120]):
        raise NewerFormat(path)
    n_documents, n_kept, n_tokens, n_runs, set_hash, n_chunks, file_bytes, table_checksum, key = struct.unpack_from("<9Q", data, 32)
    if data[16:32] != ds.documents_hash or n_documents != ds.n_documents:
        raise OtherDocuments(path)
    check(n_chunks == -(-n_documents // CHUNK_DOCUMENTS), "n_chunks", 72)
    check(file_bytes == len(data) and file_bytes >= 128 + 40 * n_chunks, "file_bytes", 80)
    check(n_tokens < 2**48, "n_tokens", 48)
    check(xxh3_64(data[128:128 + 40 * n_chunks]) == table_checksum, "checksum of the table", 88)
    lengths = [end - first for first, end in ds.documents]
    kept, tokens, place = [], 0, 128 + 40 * n_chunks
    for k in range(n_chunks):
        at, first = 128 + 40 * k, k * CHUNK_DOCUMENTS
        entry = Entry(*struct.unpack_from("<QQQIIQ", data, at))
        check(entry.kept_before == len(kept) and entry.tokens_before == tokens, "what is before a chunk", at)
        check(entry.place == place, "place of a chunk", at + 16)
        check(entry.n_kept <= CHUNK_DOCUMENTS and entry.zero == 0, "n_kept of a chunk", at + 24)
        some, n, n_bytes = read_chunk(data, entry, lengths[first:first + CHUNK_DOCUMENTS], check)
        kept += [first + number for number in some]
        tokens, place = tokens + n, place + n_bytes
    check(place == file_bytes, "bytes after the last chunk", place)
    check((len(kept), tokens) == (n_kept, n_tokens), "sums of the chunks", 40)
    check((len(runs_of(kept)), set_hash_of(kept)) == (n_runs, set_hash), "runs", 56)
    return View(kept, n_tokens, n_runs, set_hash, key)

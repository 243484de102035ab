# SPDX-License-Identifier: Apache-2.0
"""Rows of several documents, written from docs/ORDER.md section 11 and docs/FORMAT.md section 13 alone: a second
implementation to compare the library with. Plain and slow; standard library only.

    chunks = pack_documents([n_tokens, ...], Kind(sequence_length=4096))
    chunks[0].rows[3] is a list of Pieces
"""

import struct
from collections import defaultdict, namedtuple

from ref_xxh3 import xxh3_64

MAGIC = bytes.fromhex("89544D520D0A1A0A")
WHOLE = ("split", "drop", "truncate")


class Kind(namedtuple("Kind", "sequence_length align most whole", defaults=(1, 0, "split"))):
    @property
    def room(self):
        return (self.sequence_length + 1) // self.align

    @property
    def chunk_rows(self):
        return max(2**23 // self.sequence_length, 128)

    def size(self, n_tokens):
        return min((n_tokens + self.align - 1) // self.align, self.room)


class Piece(namedtuple("Piece", "document part first n")):
    """n tokens from token `first` of the dataset on."""


class Chunk(namedtuple("Chunk", "first_piece n_alone rows")):
    """The first n_alone rows have one piece that fills them."""


def pieces_of(lengths, kind, start=0):
    length = kind.sequence_length
    for document, n in enumerate(lengths):
        if n >= 2:
            if kind.whole == "split":
                for part in range((n - 2) // length + 1):
                    yield Piece(document, part, start + part * length, min(n - part * length, length + 1))
            elif kind.whole == "truncate" or n <= length + 1:
                yield Piece(document, 0, start, min(n, length + 1))
        start += n


def pack(sizes, room, most):
    """Best fit decreasing: for each piece its row, and the number of rows."""
    row_of, left, counts = [None] * len(sizes), [], []
    stacks = defaultdict(list)  # of rows by their room; the last one was put into last
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        fitting = [r for r, stack in stacks.items() if r >= sizes[i] and stack]
        if fitting:
            row = stacks[min(fitting)].pop()
        else:
            row = len(left)
            left.append(room)
            counts.append(0)
        row_of[i] = row
        left[row] -= sizes[i]
        counts[row] += 1
        if counts[row] != most:
            stacks[left[row]].append(row)
    return row_of, len(left)


def chunk_of(sizes, room, n_rows, most):
    """The row of each piece of the next chunk, and the number of rows; sizes: of all pieces that are left."""
    limit = total = 0
    while limit < len(sizes) and total + sizes[limit] <= n_rows * room and (not most or limit < n_rows * most):
        total += sizes[limit]
        limit += 1
    least, packed = min(limit, n_rows), {}

    def fits(n):
        if n not in packed:
            packed[n] = pack(sizes[:n], room, most)
        return packed[n][1] <= n_rows

    tried, i = limit, 0
    while not fits(tried):
        bad = tried
        i += 1
        tried = max(limit - 2**i + 1, least)
    if tried < limit:
        while bad - tried > 1:
            middle = tried + (bad - tried) // 2
            if fits(middle):
                tried = middle
            else:
                bad = middle
    row_of, n = packed[tried]
    if tried < len(sizes):
        while n < n_rows:
            shared = [r for r in set(row_of) if row_of.count(r) > 1]
            last = max(i for i, r in enumerate(row_of) if r in shared)
            row_of[last] = n
            n += 1
    return row_of, n


def pack_documents(lengths, kind, n_rows=None, start=0):
    """Chunks of all pieces. n_rows: of a chunk, if that is not to be as specified."""
    pieces, chunks = list(pieces_of(lengths, kind, start)), []
    while pieces:
        row_of, n = chunk_of([kind.size(p.n) for p in pieces], kind.room, n_rows or kind.chunk_rows, kind.most)
        rows = [[] for _ in range(n)]
        for piece, row in zip(pieces, row_of):
            rows[row].append(piece)
        n_alone = sum(kind.size(row[0].n) == kind.room for row in rows)
        chunks.append(Chunk(pieces[0], n_alone, rows))
        pieces = pieces[len(row_of):]
    return chunks


def places_of(row, kind):
    """Where each piece of a row begins in it, and the number of inputs of the row."""
    places, at = [], 0
    for piece in row:
        places.append(at)
        at += -(-piece.n // kind.align) * kind.align
    return places, -(-(places[-1] + row[-1].n - 1) // kind.align) * kind.align


# ---- The file ----


def chunk_bytes(number, chunk):
    base = chunk.first_piece.document
    alone, shared = chunk.rows[:chunk.n_alone], chunk.rows[chunk.n_alone:]
    documents = [piece.document - base for row in shared for piece in row]
    starts = [sum(len(row) for row in shared[:i]) for i in range(len(shared))]
    numbers = [row[0].document - base for row in alone] + starts + documents
    span = max(piece.document for row in chunk.rows for piece in row) - base
    width = 2 if span <= 65535 and len(documents) <= 65536 else 4
    head = struct.pack("<QQQIIII", number, base, chunk.first_piece.part, len(alone), len(shared), len(documents), width)
    body = head + struct.pack("<%d%s" % (len(numbers), "H" if width == 2 else "I"), *numbers)
    body += bytes(-len(body) % 8)
    return struct.pack("<Q", xxh3_64(body)) + body


def numbered(chunk, kept):
    """The chunk with the numbers of the documents in the dataset instead of those among the documents of a view."""
    def piece_of(piece):
        return piece._replace(document=kept[piece.document])

    return Chunk(piece_of(chunk.first_piece), chunk.n_alone, [list(map(piece_of, row)) for row in chunk.rows])


def file_bytes(n_tokens, lengths, documents_hash, kind, view=None):
    """lengths: of all documents. view: a View of ref_views, or None for all documents."""
    if view:
        chunks = [numbered(chunk, view.kept) for chunk in pack_documents([lengths[i] for i in view.kept], kind)]
    else:
        chunks = pack_documents(lengths, kind)
    records = [chunk_bytes(k, chunk) for k, chunk in enumerate(chunks)]
    offsets = [128 + sum(map(len, records[:k])) for k in range(len(records))]
    pieces = [piece for chunk in chunks for row in chunk.rows for piece in row]
    size = 128 + sum(map(len, records)) + 8 * len(records)
    header = struct.pack(
        "<8sIIIII4xQQ16sQQQQQQQ", MAGIC, 1, kind.sequence_length, kind.align, kind.most, WHOLE.index(kind.whole),
        n_tokens, len(lengths), documents_hash, sum(len(chunk.rows) for chunk in chunks),
        sum(piece.n - 1 for piece in pieces), len(pieces), len(chunks), max(map(len, records), default=0), size,
        view.set_hash if view else 0)
    header += struct.pack("<Q", xxh3_64(header))
    return header + b"".join(records) + struct.pack("<%dQ" % len(offsets), *offsets)

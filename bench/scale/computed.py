#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""computed.py MEASURED.json [--out FILE] - what a corpus of 15T tokens in 100,000 cells costs on 1,000 nodes, and its
loaders on 16,384 ranks, computed from what join.py has measured on one machine. Nothing here was measured at this
size."""

import argparse
import json
import math
import pathlib

import rows

TOKENS, TOKEN_BYTES, CELLS, NODES, FILES = 15e12, 4, 100_000, 1_000, 30_000
DOCUMENT_TOKENS = 650        # FineWeb: 15T tokens in 23 billion documents
FILE_SYSTEM = 1e9            # bytes a second of one process in a file system
RANKS, RANK_TOKENS, ROW_TOKENS = 16_384, 10_000, 8_192  # tokens a second of a rank, tokens of a row
INPUT_LINE_BYTES = 100       # of a plan: size, time, format and a path of 60 bytes
INDEX_BYTES = 4.13           # for each document, FORMAT.md 3.3
SEGMENT_BYTES = 24 + 20      # an entry, and a name such as cells/012345.bin
REDACTED = 1_000_000         # documents, anywhere
PACK_SECONDS = 900           # of the whole pack: stragglers.py, 16 tasks a node


def of_join(measured, many_cells, many_documents):
    """(seconds for a cell, seconds for a document), from two joins."""
    def seconds_for(what, column):
        return (rows.value(measured, "cells", "tokmap join", column) / rows.value(measured, "cells", what, column))

    return seconds_for("cells", many_cells), seconds_for("documents", many_documents)


def rows_until(n_cells, n):
    """The number of rows after which n cells have had one."""
    return math.log1p(-n / n_cells) / math.log1p(-1 / n_cells)


def loader_rows(n_cells):
    """With a full shuffle: each row is of a cell at random. A map is kept for 1,024 cells."""
    rate = RANK_TOKENS / ROW_TOKENS  # rows a second of a rank
    mapped = min(1024, 0.99 * n_cells)

    def row(name, unit, number):
        return rows.row("loaders", name, unit, [number], "{:,} cells".format(n_cells))

    return [row("rows of all ranks", "per second", rate * RANKS),
            row("until a rank has 1,024 maps, or of 99 % of the cells", "s", rows_until(n_cells, mapped) / rate),
            row("from then on, opens of all ranks", "per second", rate * RANKS * (1 - mapped / n_cells))]


def redacting(index, seconds_for_documents):
    """Each document is in one block, or in two where it crosses their border. The index is read twice, once for its
    checksums, and written."""
    document = DOCUMENT_TOKENS * TOKEN_BYTES
    blocks = REDACTED * (1 + document / 2**20)
    touched = CELLS * -math.expm1(REDACTED * math.log1p(-1 / CELLS))

    def row(name, unit, number):
        return rows.row("redact", name, unit, [number])

    return [row("tokens read", "TB", blocks * 2**20 / 1e12),
            row("time to read them at 1 GB/s", "s", blocks * 2**20 / FILE_SYSTEM),
            row("tokens written", "GB", REDACTED * document / 1e9),
            row("reading and writing the index at 1 GB/s", "s", 3 * index / FILE_SYSTEM),
            row("time for the documents of the index", "s", seconds_for_documents),
            row("cells with such a document", "cells", touched),
            row("copying the token files at 1 GB/s", "hours", TOKENS * TOKEN_BYTES / FILE_SYSTEM / 3600),
            row("memory for block checksums", "GB", 2 * 8 * TOKENS * TOKEN_BYTES / 2**20 / 1e9)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    measured = json.loads(arguments.measured.read_text())
    documents = TOKENS / DOCUMENT_TOKENS
    index = documents * INDEX_BYTES + CELLS * SEGMENT_BYTES
    per_cell, per_document = of_join(measured, "100,000 cells", "many documents")
    packing = rows.value(measured, "cells", "packing a cell: calls for metadata", "100,000 cells")
    plan = rows.value(measured, "cells", "plan, for each cell", "100,000 cells")
    page = "corpus"
    found = [
        rows.row(page, "tokens", "TB", [TOKENS * TOKEN_BYTES / 1e12]),
        rows.row(page, "plan", "MB", [(CELLS * plan + FILES * INPUT_LINE_BYTES) / 1e6]),
        rows.row(page, "indexes of all cells, and the joined index", "GB", [index / 1e9]),
        rows.row(page, "segments of the joined index", "MB", [CELLS * SEGMENT_BYTES / 1e6]),
        rows.row(page, "join: time for cells", "s", [CELLS * per_cell]),
        rows.row(page, "join: time for documents", "s", [documents * per_document]),
        rows.row(page, "join: reading and writing indexes at 1 GB/s", "s", [2 * index / FILE_SYSTEM]),
        rows.row(page, "packing: calls for metadata", "million", [CELLS * packing / 1e6]),
        rows.row(page, "packing: calls for metadata, while all nodes pack", "per second", [CELLS * packing / PACK_SECONDS]),
        rows.row(page, "packing: calls for metadata of a node", "per second", [CELLS * packing / PACK_SECONDS / NODES]),
    ]
    found += redacting(index, documents * per_document)
    found += loader_rows(1_000) + loader_rows(10_000) + loader_rows(CELLS)
    rows.finish(found, "computed.py " + arguments.measured.name, arguments.out)


if __name__ == "__main__":
    main()

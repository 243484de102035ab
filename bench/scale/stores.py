#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stores.py [--out FILE] - requests and bytes of training from a store of objects, for rows that are read one by one and
for whole blocks, on 1 to 2,048 nodes. All of it is computed from the assumptions at the head of this file."""

import argparse
import math

import rows

NODES = (1, 8, 64, 512, 2048)
NODE_RANKS, RANK_TOKENS, ROW_TOKENS, TOKEN_BYTES = 8, 10_000, 8_192, 4
FAST_RANK_TOKENS = 60_000       # of a small model
PIECES = 13                     # documents of a row that is packed by best fit
BLOCK_BYTES = 64 << 20
PREFIX_GETS = 5_500             # a second, that S3 promises for each prefix
LATENCY = 0.15                  # seconds
DOLLARS = 0.4e-6                # for a GET
EPOCH_TOKENS = 15e12
CACHES = (0.1, 0.25, 0.5, 0.9)  # of the data, in a cache that all nodes share


def lru_hits(part):
    """Of the rows of an epoch, how many a cache of this part of the data still has from the epoch before, if each epoch
    has an order of its own and the cache keeps what was used last. A row at u of one epoch and v of the next comes again
    after 1 - u (1 - v) of all rows were used, for u and v at random from 0 to 1."""
    return part + (1 - part) * math.log1p(-part)


def of_nodes(n):
    """(name, unit, number) for each line of the table. With whole blocks each row is of a block that all nodes read in
    the same time, because their ranks take rows of it in turn."""
    gets = n * NODE_RANKS * RANK_TOKENS / ROW_TOKENS
    used = n * NODE_RANKS * RANK_TOKENS * TOKEN_BYTES
    return [("bytes that are used", "MB/s", used / 1e6),
            ("rows: GETs", "per second", gets),
            ("rows: GETs, at 60,000 tokens a second", "per second", gets * FAST_RANK_TOKENS / RANK_TOKENS),
            ("rows of 13 documents: GETs", "per second", gets * PIECES),
            ("blocks, each node reads all: bytes", "MB/s", n * used / 1e6),
            ("blocks, each node reads all: GETs", "per second", n * used / BLOCK_BYTES),
            ("blocks, read once for all nodes: GETs", "per second", used / BLOCK_BYTES)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    found = [rows.row("stores", name, unit, [number], "1 node" if n == 1 else "{:,} nodes".format(n))
             for n in NODES for name, unit, number in of_nodes(n)]
    gets = NODE_RANKS * RANK_TOKENS / ROW_TOKENS
    fast = FAST_RANK_TOKENS / RANK_TOKENS
    found += [rows.row("store_limits", name, unit, [number]) for name, unit, number in (
        ("a block", "MiB", BLOCK_BYTES / 2**20),
        ("a GET", "ms", 1000 * LATENCY),
        ("nodes that one prefix serves", "nodes", PREFIX_GETS / gets),
        ("nodes that one prefix serves, at 60,000 tokens a second", "nodes", PREFIX_GETS / gets / fast),
        ("requests of a node in flight", "requests", gets * LATENCY),
        ("requests of a node in flight, at 60,000 tokens a second", "requests", gets * LATENCY * fast),
        ("GETs of 15T tokens", "billion", EPOCH_TOKENS / ROW_TOKENS / 1e9),
        ("price of these GETs", "dollars", EPOCH_TOKENS / ROW_TOKENS * DOLLARS))]
    found += [rows.row("store_caches", "a cache of %.0f %% of the data: GETs that it saves in later epochs" % (100 * part),
                       "%", [100 * lru_hits(part)]) for part in CACHES]
    rows.finish(found, "stores.py", arguments.out)


if __name__ == "__main__":
    main()

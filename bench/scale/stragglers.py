#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stragglers.py [--out FILE] - how long 1,000 nodes take to pack 100,000 cells, in 1, 4, 16 or 100 tasks a node.

A simulation. A task has neighbouring cells and the engine gives the next task to the first node that is free. What
varies is below; each round draws all of it anew. The result of a round is the time until the last cell, divided by
the time that the same nodes would need if the work could be distributed without a rest."""

import argparse
import heapq
import random

import rows

N_CELLS, N_NODES = 100_000, 1_000
CELL_SECONDS = 7.0        # 0.7 GB of text at 100 MB/s: the share of a node in a file system of 100 GB/s
CELL_SPREAD = 0.15        # of the logarithm of the time of a cell
SOURCE_CELLS, SOURCE_SPREAD = 500, 0.25  # neighbours are of one source or language, and alike
NODE_SPREAD = 0.05        # of the logarithm of the speed of a node
SLOW_NODES, SLOWER = 0.02, 2.0  # this part of the nodes takes so many times as long
LOST_NODES = 0.002        # this part of the nodes is lost at a random moment, with the cell it is packing
LOST_SECONDS = 120.0      # until the engine starts the task again elsewhere: it continues after its last cell
START_SECONDS = 5.0       # of a task: a container or an allocation, and loading the tokenizer
STARTS_PER_SECOND = 100.0  # of the engine


def draw_cells(rng):
    seconds = []
    while len(seconds) < N_CELLS:
        source = rng.lognormvariate(0, SOURCE_SPREAD)
        seconds += [CELL_SECONDS * source * rng.lognormvariate(0, CELL_SPREAD) for _ in range(SOURCE_CELLS)]
    return seconds[:N_CELLS]


def draw_nodes(rng):
    """How many times as long as usual each node takes."""
    return [rng.lognormvariate(0, NODE_SPREAD) * (SLOWER if rng.random() < SLOW_NODES else 1) for _ in range(N_NODES)]


def shares(n_tasks):
    return [(i * N_CELLS // n_tasks, (i + 1) * N_CELLS // n_tasks) for i in range(n_tasks)]


def simulate(cells, nodes, lost, n_tasks):
    """Seconds until the last cell. `lost`: {node: when}"""
    ready = [(0.0, begin, end) for begin, end in shares(n_tasks)]  # when a task may start, its cells
    heapq.heapify(ready)
    free = [(0.0, node) for node in range(len(nodes))]
    engine = last = 0.0
    while ready:
        when, begin, end = heapq.heappop(ready)
        now, node = heapq.heappop(free)
        if node in lost and now >= lost[node]:
            heapq.heappush(ready, (when, begin, end))
            continue
        engine = max(engine + 1 / STARTS_PER_SECOND, when, now)
        now = engine + START_SECONDS
        for at in range(begin, end):
            now += cells[at] * nodes[node]
            if node in lost and now > lost[node]:
                heapq.heappush(ready, (lost[node] + LOST_SECONDS, at, end))
                break
        else:
            last = max(last, now)
            heapq.heappush(free, (now, node))
    return last


def one_round(rng, tasks_per_node):
    cells, nodes = draw_cells(rng), draw_nodes(rng)
    ideal = sum(cells) / sum(1 / slowness for slowness in nodes)
    lost = {node: rng.random() * ideal for node in range(N_NODES) if rng.random() < LOST_NODES}
    return ideal, [simulate(cells, nodes, lost, k * N_NODES) / ideal for k in tasks_per_node]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    tasks_per_node = [1, 4, 16, 100]
    ideals, results = zip(*(one_round(random.Random(seed), tasks_per_node) for seed in range(arguments.rounds)))
    found = [rows.row("stragglers", "the least possible time", "s", ideals)]
    for k, values in zip(tasks_per_node, zip(*results)):
        found.append(rows.row("stragglers", "%d task%s a node, of the least time" % (k, "s" * (k > 1)), "x", values))
    rows.finish(found, "stragglers.py --rounds %d" % arguments.rounds, arguments.out)


if __name__ == "__main__":
    main()

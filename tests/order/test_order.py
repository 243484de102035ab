#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order of samples: the library gives the published values of docs/ORDER.md, and the same order as ref_order;
test_release compares whole loaders. With TOKMAP_LONG=all three times as many answers are compared."""

import os
import random
import sys

from ref_order import Keys, Mixture, Permutation, Phase, Shuffle, quotas_of
from ref_protocol import call, expect, expect_equal, run_in_folders
from ref_rows import chunk_of, pack

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "ORDER.md")
LONG = os.environ.get("TOKMAP_LONG") == "all"
TIMES = 3 if LONG else 1
# The library numbers samples below this, and an order that would end there or later has no end.
N_SAMPLES = 2**63
PRIMES = (5, 7, 127, 8191, 65537, 131071, 524287, 2**31 - 1, 2**48 - 59)
EDGES = sorted(
    {1, 2, 3, *PRIMES}
    | {2**k + d for k in range(1, 48) for d in (-1, 0, 1)}
    | {2**48 - 1, 2**48}
    | {r * r + d for r in (3, 10, 999, 2**20 + 7, 2**24 - 1) for d in (-1, 0, 1)}
    | {r * (r + 1) + d for r in (3, 10, 999, 2**20 + 7, 2**24 - 1) for d in (-1, 0, 1)}
)


def any_number(rng, bits=64):
    """All lengths are equally frequent, and so are the edges."""
    return rng.choice((0, 1, 2**bits - 1, rng.getrandbits(rng.randint(1, bits))))


def any_n(rng):
    return rng.choice(EDGES) if rng.random() < 0.5 else rng.randrange(2 ** rng.randint(1, 48)) + 1


def any_keys(rng):
    return Keys(any_number(rng), rng.getrandbits(64), rng.choice((0, 0, 1, rng.randrange(65535))))


def any_place(rng, n):
    return rng.choice((0, n - 1, rng.randrange(n), rng.randrange(n)))


# ---- Keys and permutations ----


def published(head):
    """The rows of numbers of a table of section 12, which has this head."""
    with open(DOCUMENT, encoding="utf-8") as file:
        table = file.read().split("\n" + head + "\n")[1].split("\n\n")[0]
    for line in table.splitlines()[1:]:
        words = [word.strip().replace("^", "**") for word in line.strip("|").split("|")]
        yield [word if word.isalpha() else eval(word or "0") for word in words]


# N, key, x, permute(x, N, key)
VECTORS = list(published("| N | key | x | permute |"))
# mode, N, B, M, x, window; seed 1, id 2, copy 0, epoch 3
SHUFFLE_VECTORS = list(published("| shuffle | N | B | M | x | w |"))


# ---- Mixtures ----


def any_mixture(rng, largest_first=300):
    n_sources = rng.randint(1, 5)
    n_phases = min(rng.choice((1, 1, 2, 3)), largest_first)
    firsts = [0] + sorted(rng.sample(range(1, largest_first), n_phases - 1))
    phases = []
    for first in firsts:
        quotas = [rng.choice((0, 1, rng.randrange(1, 15))) for _ in range(n_sources)]
        quotas[rng.randrange(n_sources)] += 1
        phases.append(Phase(first, quotas))
    n_windows = [rng.randint(1, 40) for _ in range(n_sources)]
    epochs = [rng.choice((0, 0, 1, 2, 9)) for _ in range(n_sources)]
    return Mixture(phases, n_windows, epochs)


def any_weights(rng):
    n = rng.choice((1, 2, 3, rng.randint(1, 30)))
    kind = rng.randrange(6)
    if kind == 0:
        digits = rng.randint(0, 6)
        weights = [rng.randrange(10 ** rng.randint(1, 5)) / 10**digits for _ in range(n)]
    elif kind == 1:
        weights = [rng.random() for _ in range(n)]
    elif kind == 2:
        weights = [10 ** rng.uniform(-4, 1) for _ in range(n)]
    elif kind == 3:
        weights = [rng.choice((0.0, 1 / 7, 1 / 3, 1e-3, 0.1, 7.0, 1e-5)) for _ in range(n)]
    elif kind == 4:
        # At the tolerance of 10^-9.
        weights = [rng.randint(1, 99) * (1 + rng.uniform(-2e-9, 2e-9)) / 100 for _ in range(n)]
    else:
        weights = [rng.randrange(1, 2**8) * 2.0 ** rng.randint(0, 12) for _ in range(n)]
    weights[rng.randrange(n)] = rng.choice((1.0, 0.25, 1 / 3, rng.random() + 0.1))
    return weights


def quotas_or_refused(weights):
    try:
        return quotas_of(weights)
    except ValueError:
        return ["refused"]


# ---- The library ----


def compare(cases):
    """cases: (line for tool_order, expected numbers)."""
    lines = "".join(line + "\n" for line, _ in cases)
    answers = call("tool_order", stdin=lines.encode())[1].decode().splitlines()
    expect_equal(len(answers), len(cases), "number of answers")
    wrong = [
        (line, answer, expected)
        for (line, expected), answer in zip(cases, answers)
        if answer != " ".join(map(str, expected))
    ]
    if wrong:
        message = "%d of %d differ; %s: got %s, expected %s"
        raise AssertionError(message % (len(wrong), len(cases), *wrong[0]))
    return "%d answers" % len(cases)


# One piece more needs two rows more.
ODD_CHUNKS = [
    (22, 12, 5, "11 3 20 19 22 7 1 4 12 8 7 18 10 8 2 6 20 2 1 15 6 5 1 9 11 4 1 9 17"),
    (25, 12, 5, "1 6 14 17 9 12 15 1 11 11 3 10 7 13 8 1 17 4 12 2 11 10 7 14 4 14 23 8 10 21"),
]


def library_chunks(folder):
    """Small ones, where the search for the number of pieces has all cases. test_python_rows has whole datasets."""
    rng = random.Random(25)
    kinds = [(room, n_rows, most, list(map(int, sizes.split()))) for room, n_rows, most, sizes in ODD_CHUNKS]
    while len(kinds) < 3000 * TIMES:
        room, n = rng.choice((1, 5, 20, 60, 130, 5000)), rng.randint(1, 60)
        sizes = [rng.randint(1, max(room // rng.choice((1, 1, 3)), 1)) for _ in range(n)]
        kinds.append((room, rng.randint(1, 12), rng.choice((0, 0, 1, 2, 4)), sizes))
    cases, n_refilled = [], 0
    for room, n_rows, most, sizes in kinds:
        row_of, n = chunk_of(sizes, room, n_rows, most)
        n_refilled += len(row_of) < len(sizes) and pack(sizes[:len(row_of)], room, most)[1] < n
        words = (room, n_rows, most or 2**32 - 1, *sizes)
        cases.append(("chunk " + " ".join(map(str, words)), [n, *row_of]))
    expect(n_refilled >= len(ODD_CHUNKS), "some chunks have rows that were filled again")
    return compare(cases)


def library_permute(folder):
    rng = random.Random(20)
    cases = [("permute %d %d %d" % (n, key, x), [y]) for n, key, x, y in VECTORS]
    while len(cases) < 5000 * TIMES:
        n, key = any_n(rng), any_number(rng)
        permute = Permutation(n, key)
        for x in {any_place(rng, n) for _ in range(8)}:
            cases.append(("permute %d %d %d" % (n, key, x), [permute(x)]))
    return compare(cases)


def library_keys(folder):
    rng = random.Random(22)
    cases = []
    for _ in range(1500 * TIMES):
        keys = any_keys(rng)
        where = rng.randint(1, 5), any_number(rng), any_number(rng)
        line = "key %d %d %d %d %d %d" % (keys.seed, keys.id, keys.copy, *where)
        cases.append((line, [keys(*where)]))
    return compare(cases)


def any_blocks(rng, n):
    """B and M, often so that there are several groups, and a short last block or group."""
    if rng.random() < 0.1:
        return any_n(rng), 1
    block = rng.randrange(2 ** rng.randint(1, max(1, n.bit_length()))) + 1
    block = min(block, 2**48)
    group = rng.randrange(2 ** rng.randint(1, 12)) + 1
    return block, max(1, min(group, 2**48 // block))


def library_shuffle(folder):
    rng = random.Random("shuffle")
    cases = [("shuffle %s %d %d %d 1 2 0 3 %d" % (mode, n, block, group, x), [w])
             for mode, n, block, group, x, w in SHUFFLE_VECTORS]
    while len(cases) < 5000 * TIMES:
        n, keys, epoch = any_n(rng), any_keys(rng), any_number(rng)
        mode = rng.choice(("none", "full", "full", "block", "block", "block"))
        block, group = any_blocks(rng, n) if mode == "block" else (0, 0)
        shuffle = Shuffle(mode, n, keys, block, group)
        shape = mode, n, block, group, keys.seed, keys.id, keys.copy, epoch
        for x in {any_place(rng, n) for _ in range(8)}:
            cases.append((" ".join(map(str, ("shuffle", *shape, x))), [shuffle(epoch, x)]))
    return compare(cases)


def library_quotas(folder):
    rng = random.Random(24)
    cases = []
    for _ in range(40 * TIMES):
        weights = any_weights(rng)
        cases.append(("quotas " + " ".join(map(repr, weights)), quotas_or_refused(weights)))
    return compare(cases)


def any_large_mixture(rng):
    n_sources = rng.choice((1, 2, 3, rng.randint(1, 6), rng.randint(1, 40)))
    largest = rng.choice((1, 3, 50, 50, 300))
    if rng.random() < 0.01:
        n_sources, largest = 3, 100000
    firsts = {rng.randrange(2 ** rng.randint(1, 40)) for _ in range(rng.choice((0, 0, 1, 3)))}
    phases = []
    for first in sorted({0} | firsts):
        quotas = [rng.randrange(1, largest + 1) for _ in range(n_sources)]
        if rng.random() < 0.3:
            quotas = [rng.choice((0, q)) for q in quotas]
            quotas[rng.randrange(n_sources)] += 1
        phases.append(Phase(first, quotas))
    n_windows = [any_n(rng) for _ in range(n_sources)]
    epochs = [rng.choice((1, 5, 2**16)) if rng.random() < 0.1 else 0 for _ in range(n_sources)]
    return Mixture(phases, n_windows, epochs)


def written(mixture):
    phases = ["%d:%s" % (s.first, ",".join(map(str, s.quotas))) for s in mixture.phases]
    sources = ["%d:%d" % source for source in zip(mixture.n_windows, mixture.epochs)]
    return " ".join([str(len(sources)), *sources, str(len(phases)), *phases])


def any_samples(rng, mixture):
    """Edges of phases and periods, the end, and points to 10^12 and beyond."""
    end = min(mixture.end or N_SAMPLES, N_SAMPLES)
    samples = {0, end - 1} | {rng.randrange(min(end, 10**12)) for _ in range(12)}
    samples |= {rng.randrange(2 ** rng.randint(1, 63)) for _ in range(6)}
    for phase in mixture.phases:
        samples |= {phase.first + d for d in (-1, 0, 1, phase.period - 1, phase.period)}
    return sorted(g for g in samples if 0 <= g < end)


def compare_mixtures(command, answer, n):
    rng = random.Random(command)
    cases = []
    while len(cases) < n:
        mixture = any_large_mixture(rng)
        text = written(mixture)
        for g in any_samples(rng, mixture):
            cases.append(("%s %s %d" % (command, text, g), answer(mixture, g)))
    return compare(cases)


def library_mixture(folder):
    return compare_mixtures("mixture", Mixture.sample, 4000 * TIMES)


def library_counts(folder):
    return compare_mixtures("counts", Mixture.counts, 1000 * TIMES)


def library_ends_and_hashes(folder):
    rng = random.Random(25)
    cases = []
    n_ends = 0
    while len(cases) < 300 * TIMES:
        mixture = any_large_mixture(rng) if len(cases) % 2 else any_mixture(rng)
        endless = mixture.end is None or mixture.end >= N_SAMPLES
        ends = ["endless"] if endless else [mixture.end, mixture.ending_source]
        cases.append(("end " + written(mixture), ends))
        cases.append(("hash " + written(mixture), [mixture.hash()]))
        n_ends += not endless
    expect(n_ends > len(cases) / 10, "only %d end" % n_ends)
    return compare(cases)


if __name__ == "__main__":
    sys.exit(run_in_folders("order_"))

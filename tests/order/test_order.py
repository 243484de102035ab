#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The order of samples: that ref_order keeps the promises of docs/ORDER.md, and that the library
gives the same order as ref_order. With TOKMAP_LONG=all three times as many answers are compared."""

import os
import random
import struct
import sys
from fractions import Fraction
from functools import partial

import ref_order
from ref_order import Keys, Mixture, Order, Permutation, Shuffle, Source, Phase, quotas_of
from ref_protocol import call, expect, expect_equal, run_tests

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "ORDER.md")
LONG = os.environ.get("TOKMAP_LONG") == "all"
# Answers of the library to compare, for each command.
N_COMPARED = {
    name: few * 3 if LONG else few
    for name, few in {
        "permute": 5000,
        "key": 1500,
        "shuffle": 5000,
        "quotas": 40,
        "mixture": 4000,
        "counts": 1000,
        "end": 300,
    }.items()
}
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
    """The rows of numbers of a table of section 9, which has this head."""
    with open(DOCUMENT, encoding="utf-8") as file:
        table = file.read().split("\n" + head + "\n")[1].split("\n\n")[0]
    for line in table.splitlines()[1:]:
        words = [word.strip().replace("^", "**") for word in line.strip("|").split("|")]
        yield [word if word.isalpha() else eval(word or "0") for word in words]


# N, key, x, permute(x, N, key)
VECTORS = list(published("| N | key | x | permute |"))
# mode, N, B, M, x, window; seed 1, id 2, copy 0, epoch 3
SHUFFLE_VECTORS = list(published("| shuffle | N | B | M | x | w |"))


def test_mix():
    """With key 0 the round keys are the outputs of SplitMix64 for seed 0, published elsewhere."""
    known = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    expect_equal(Permutation(129, 0).round_keys[:4], known, "round keys")


def test_vectors():
    for n, key, x, y in VECTORS:
        expect_equal(Permutation(n, key)(x), y, "permute(%d, %d, %#x)" % (x, n, key))
        expect_equal(Permutation(n, key).inverse(y), x, "the inverse for N %d" % n)
    for mode, n, block, group, x, w in SHUFFLE_VECTORS:
        got = Shuffle(mode, n, Keys(1, 2, 0), block, group)(3, x)
        expect_equal(got, w, "%s, N %d, x %d" % (mode, n, x))
    return "%d vectors" % (len(VECTORS) + len(SHUFFLE_VECTORS))


def test_bijective():
    rng = random.Random(1)
    sizes = list(range(1, 301))
    if LONG:
        sizes += list(range(301, 1000)) + [rng.randrange(2**17) + 1 for _ in range(4)]
    for n in sizes:
        permute = Permutation(n, rng.getrandbits(64))
        ys = [permute(x) for x in range(n)]
        expect_equal(sorted(ys), list(range(n)), "the numbers below N = %d" % n)
        expect(all(permute.inverse(y) == x for x, y in enumerate(ys)), "inverse for N = %d" % n)
    return "%d N" % len(sizes)


def test_inverse():
    rng = random.Random(2)
    for n in EDGES:
        permute = Permutation(n, rng.getrandbits(64))
        for _ in range(20 if LONG else 4):
            x = any_place(rng, n)
            y = permute(x)
            expect(0 <= y < n, "%d is not below N = %d" % (y, n))
            expect_equal(permute.inverse(y), x, "inverse for N = %d" % n)
    return "%d N" % len(EDGES)


def test_few_walks():
    for n in list(range(129, 5000)) + [n for n in EDGES if n > 128]:
        p = Permutation(n, 0)
        expect(p.a % 2 == 0 and (p.a - 2) ** 2 < n <= p.a**2, "a for N = %d" % n)
        expect(n <= p.a * p.b <= n + p.a - 1, "a * b for N = %d" % n)


def test_shuffle_bijective():
    rng = random.Random(3)
    n_cases = 600 if LONG else 120
    for _ in range(n_cases):
        n = rng.randint(1, 400)
        block, group = rng.randint(1, rng.choice((3, 20, 500))), rng.randint(1, 9)
        keys = any_keys(rng)
        for mode in ("none", "full", "block"):
            shuffle = Shuffle(mode, n, keys, block, group)
            windows = [shuffle(7, x) for x in range(n)]
            why = "%s, N %d, B %d, M %d" % (mode, n, block, group)
            expect_equal(sorted(windows), list(range(n)), why)
    return "%d N" % n_cases


def test_block_groups():
    """A group holds the windows of M blocks, so M blocks at a time are all that is read."""
    keys = Keys(5, 6, 0)
    n, block, group = 1000, 8, 5
    shuffle = Shuffle("block", n, keys, block, group)
    begin = keys(4, 2, 0) * n >> 64
    for c in range(n // (block * group)):
        members = [shuffle(2, x) for x in range(c * block * group, (c + 1) * block * group)]
        blocks = {(w - begin) % n // block for w in members}
        expect_equal(len(blocks), group, "blocks of group %d" % c)


# ---- Windows ----


def labels_of(windows, epoch):
    """{(dataset, token): number of rows that have it as a label}"""
    counts = {}
    for w in range(windows.n):
        row = windows.row(epoch, w)
        for token in row.tokens()[1:]:
            counts[row.dataset, token] = counts.get((row.dataset, token), 0) + 1
    return counts


def test_concat():
    rng = random.Random(4)
    for _ in range(200):
        length = rng.randint(1, 12)
        sizes = [rng.randrange(60) for _ in range(rng.randint(1, 3))]
        windows = ref_order.ConcatWindows(sizes, length)
        expected = {
            (d, token): 1
            for d, t in enumerate(sizes)
            for token in range(1, t - (t - 1) % length if t > 0 else 0)
        }
        expect_equal(labels_of(windows, 0), expected, "labels, L %d, sizes %s" % (length, sizes))


def test_offsets():
    rng = random.Random(5)
    n_joined = 0
    for _ in range(200):
        length = rng.randint(1, 12)
        sizes = [rng.randrange(60) for _ in range(rng.randint(1, 3))]
        windows = ref_order.ConcatWindows(sizes, length, any_keys(rng))
        for epoch in range(4):
            counts = labels_of(windows, epoch)
            expect_equal(len(counts), windows.n * length, "different labels")
            expect(all(n == 1 for n in counts.values()), "a label twice")
            for d, t in enumerate(sizes):
                p = windows.offset(epoch, d)
                expect(0 <= p < length, "offset %d" % p)
                mine = {token for dataset, token in counts if dataset == d}
                expect_equal(mine, {(p + 1 + i) % t for i in range(len(mine))}, "labels")
                n_joined += p > 0 and 0 in mine
    expect(n_joined > 100, "only %d rows joined" % n_joined)
    offsets = {windows.offset(epoch, 0) for epoch in range(200)}
    expect_equal(offsets, set(range(length)), "offsets of 200 epochs")
    return "%d rows join end and beginning" % n_joined


def any_documents(rng):
    documents, first = [], 0
    for _ in range(rng.randrange(12)):
        end = first + rng.choice((0, 1, 2, rng.randrange(20)))
        documents.append((first, end))
        first = end
    return documents


def test_within_document():
    rng = random.Random(6)
    for _ in range(300):
        length = rng.randint(1, 8)
        documents = [any_documents(rng) for _ in range(rng.randint(1, 3))]
        windows = ref_order.DocumentWindows(documents, length)
        expected = {
            (d, token): 1
            for d, some in enumerate(documents)
            for first, end in some
            for token in range(first + 1, end)
        }
        expect_equal(labels_of(windows, 0), expected, "labels, L %d, %s" % (length, documents))
        for w in range(windows.n):
            row = windows.row(0, w)
            expect(1 <= row.n_inputs <= length, "inputs of window %d" % w)
            inside = [first <= row.first and row.first + row.n_inputs < end
                      for first, end in documents[row.dataset]]  # fmt: skip
            expect_equal(sum(inside), 1, "documents that window %d lies in" % w)


def test_about_rows():
    """Against the document of each token, looked up one by one."""
    rng = random.Random(7)
    for _ in range(300):
        documents, length = any_documents(rng), rng.randint(1, 12)
        size = documents[-1][1] if documents else 0
        document_of = [i for i, (first, end) in enumerate(documents) for _ in range(first, end)]
        keys = any_keys(rng)
        windows = ref_order.ConcatWindows([size], length, keys)
        for w in range(windows.n):
            row = windows.row(1, w)
            tokens = row.tokens()
            about = ref_order.about_row(row, documents, length)
            new = [
                document_of[a] != document_of[b] or b < a for a, b in zip(tokens, tokens[1:])
            ]  # new[i]: token i + 1 begins a document
            expect_equal(about.loss_mask, [int(not x) for x in new], "loss mask")
            ids = [sum(new[:i]) for i in range(length)]
            expect_equal(about.document_ids, ids, "document ids")
            positions = [i - ids.index(id) for i, id in enumerate(ids)]
            expect_equal(about.position_ids, positions, "position ids")
            starts = [i for i, x in enumerate(positions) if x == 0] + [length]
            expect_equal(about.starts, starts, "document starts")
    row = ref_order.DocumentWindows([[(0, 5)]], 3).row(0, 1)
    about = ref_order.about_row(row, [(0, 5)], 3)
    expect_equal(about, ([0, 1], [0], [0], [1, 0, 0]), "a short row")
    about = ref_order.about_row(ref_order.Row(0, 7, 4, 10), None, 4)
    expect_equal(about, ([0, 3, 4], [0, 1, 2, 0], [0, 0, 0, 1], [1, 1, 0, 1]), "no boundaries")
    about = ref_order.about_row(ref_order.Row(0, 6, 4, 10), None, 4, masked=True)
    expect_equal(about, ([0, 4], [0, 1, 2, 3], [0] * 4, [0] * 4), "a masked source")


# ---- Mixtures ----


def any_quotas(rng, largest=40):
    while True:
        quotas = [rng.choice((0, 1, 1, rng.randrange(largest))) for _ in range(rng.randint(1, 7))]
        if any(quotas):
            return quotas


def plain_slots(quotas):
    """The rule of section 5, word for word."""
    period, counts, slots = sum(quotas), [0] * len(quotas), []
    for i in range(period):
        able = [k for k, q in enumerate(quotas) if counts[k] * period < q * (i + 1)]
        due = {k: ((counts[k] + 1) * period + quotas[k] - 1) // quotas[k] for k in able}
        slots.append(min(able, key=lambda k: (due[k], k)))
        counts[slots[-1]] += 1
    return slots


def test_slots():
    rng = random.Random(8)
    for _ in range(300):
        quotas = any_quotas(rng)
        expect_equal(ref_order.slots_of(quotas), plain_slots(quotas), "slots of %s" % quotas)


def test_deviation():
    rng = random.Random(9)
    largest = Fraction(0)
    n_mixtures = 2000 if LONG else 300
    for i in range(n_mixtures):
        quotas = [1] * 40 + [7] if i == 0 else any_quotas(rng, 60)
        counts = [0] * len(quotas)
        shares = [Fraction(q, sum(quotas)) for q in quotas]
        for length, k in enumerate(ref_order.slots_of(quotas), 1):
            counts[k] += 1
            worst = max(abs(n - length * share) for n, share in zip(counts, shares))
            expect(worst < 1, "%s: %s from the share after %d samples" % (quotas, worst, length))
            largest = max(worst, largest)
        expect_equal(counts, quotas, "samples in a period")
        phase = Phase(0, quotas)
        for g in (rng.randrange(10**12), rng.randrange(10**4)):
            worst = max(abs(phase.count(k, g) - g * share) for k, share in enumerate(shares))
            expect(worst < 1, "%s: %s from the share after %d samples" % (quotas, worst, g))
    expect(largest > Fraction(1, 2), "the largest deviation is only %s" % largest)
    return "%d mixtures, at most %.4f from the share" % (n_mixtures, largest)


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


def test_seek():
    """Sample g for itself is the one that counting from 0 comes to, and so is the end."""
    rng = random.Random(10)
    n_ended = 0
    for _ in range(500):
        mixture = any_mixture(rng)
        counts = [0] * len(mixture.n_windows)
        for g in range(500):
            phase = [phase for phase in mixture.phases if phase.first <= g][-1]
            k = phase.slots[(g - phase.first) % phase.period]
            n, e = mixture.n_windows[k], mixture.epochs[k]
            if e > 0 and counts[k] == e * n:
                break
            expect_equal(mixture.sample(g), (k, counts[k] // n, counts[k] % n), "sample %d" % g)
            counts[k] += 1
        else:
            expect(mixture.end is None or mixture.end >= 500, "ends at %s" % mixture.end)
            continue
        expect_equal(mixture.end, g, "the end")
        n_ended += 1
    expect(100 < n_ended < 400, "%d of 500 ended" % n_ended)


def test_quotas():
    for weights, quotas in (
        ([0.5, 0.3, 0.2], [5, 3, 2]),
        ([1.0, 3.0], [1, 3]),
        ([4.0, 0.0, 6.0], [2, 0, 3]),
        ([0.1, 0.25], [2, 5]),
        ([0.000001, 0.000002], [1, 2]),
        ([1e300, 1e300], [1, 1]),
        ([2 / 3, 1 / 3], [2, 1]),
        ([0.0, 2 / 3, 0.0, 1 / 3], [0, 2, 0, 1]),
        ([1 / 7] * 3, [1, 1, 1]),
        ([1.0 + 0.9e-9, 1.0], [1, 1]),
        ([0.9999, 0.0001], [9999, 1]),
        ([0.000001, 0.999999], [1, 999999]),
        ([1.0, 1048575.0], [1, 1048575]),
        ([1.5e-6, 1.0], [1, 666000]),
    ):
        expect_equal(quotas_of(weights), quotas, "quotas of %s" % weights)
    for weights in ([1e-7, 1.0], [1.0, 1048576.0], [0.0, 0.0], [-1.0, 2.0], [1.7e308, 1.7e308]):
        try:
            expect(False, "quotas of %s are %s" % (weights, quotas_of(weights)))
        except ValueError:
            pass


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


def test_quota_shares():
    """Every share is right to a thousandth, or to one slot of 2^20."""
    rng = random.Random(11)
    n_rounded, n_cases = 0, 150 if LONG else 50
    for _ in range(n_cases):
        weights = any_weights(rng)
        quotas = quotas_or_refused(weights)
        if quotas == ["refused"]:
            least = min(w for w in weights if w > 0)
            expect(least / sum(weights) < 1.000001 / 2**20, "%s are refused" % weights)
            continue
        period = sum(quotas)
        expect(1 <= period <= 2**20, "sum of the quotas of %s" % weights)
        for w, q in zip(weights, quotas):
            off = abs(q - w / sum(weights) * period)
            expect(off <= max(q / 1000, period == 2**20), "quotas of %s" % weights)
            n_rounded += off > q * 1e-9
    expect(n_rounded > n_cases, "%d quotas are not exact" % n_rounded)


# ---- The whole order ----


def small_order(rng, **options):
    sources = []
    for i in range(rng.randint(1, 3)):
        documents = [any_documents(rng) + [] for _ in range(rng.randint(1, 2))]
        end = documents[0][-1][1] if documents[0] else 0
        documents[0].append((end, end + 9))
        sizes = [some[-1][1] if some else 0 for some in documents]
        # Sources 0 and 2 are the same data, so the second is a copy.
        ids = [bytes([i % 2, d]) * 8 for d in range(len(documents))]
        sources.append(Source(ids, sizes, documents, epochs=0 if i else 50))
    quotas = [rng.randint(1, 4) for _ in sources]
    return Order(sources, [Phase(0, quotas)], 4, rng.getrandbits(64), **options)


def test_epochs():
    rng = random.Random(12)
    for _ in range(60):
        for shuffle in ("none", "full", "block"):
            kind = rng.choice(("concat", "within-document"))
            order = small_order(rng, windows=kind, random_offset=True, shuffle=shuffle, block=2, group=2)
            seen = {}
            for g in range(200):
                sample = order.sample(g)
                seen.setdefault((sample.source, sample.epoch), []).append(sample.window)
            for (k, epoch), windows in seen.items():
                n = order.windows[k].n
                expect_equal(len(set(windows)), len(windows), "windows of epoch %d" % epoch)
                if (k, epoch + 1) in seen:
                    expect_equal(len(windows), n, "samples in epoch %d" % epoch)


def test_copies():
    ids = [5, 6, 5, 5, 6]
    expect_equal(ref_order.copies(ids), [0, 0, 1, 2, 1], "copies")
    data = [bytes(range(16)), bytes(16)]
    halves = [0x0706050403020100, 0x0F0E0D0C0B0A0908, 0, 0]
    expect_equal(ref_order.source_id(data), ref_order.hash_of(halves), "id of a source")


def test_ranks():
    for n_ranks, n_rows in ((1, 9), (2, 3), (3, 1), (8, 2)):
        samples = []
        for step in range(5):
            for rank in range(n_ranks):
                samples += ref_order.rank_samples(step * n_ranks * n_rows, n_ranks, n_rows, rank)
        expect_equal(samples, list(range(len(samples))), "%d ranks" % n_ranks)


def test_state():
    def state(epochs=0, next_sample=77, length=4, seed=9, phases=((0, [1]),), **options):
        sources = [Source([bytes(range(16))], [100], epochs=epochs)]
        phases = [Phase(*phase) for phase in phases]
        return Order(sources, phases, length, seed, **options).state(next_sample)

    plain = state()
    expect_equal(len(plain), 128, "bytes")
    expect_equal(plain[:12].hex(), "89544d530d0a1a0a01000000", "the first bytes")
    expect_equal(plain[64:120], bytes(56), "reserved bytes")
    first = plain[12:40].hex()
    expect_equal(first, "0400000009000000000000004d000000000000000100000001000000", "numbers")
    data = ref_order.hash_of([ref_order.source_id([bytes(range(16))])])
    block_state = state(shuffle="block", block=2, group=3, phases=((0, [1]), (5, [7])), epochs=8)
    hashes = [data, ref_order.hash_of((0, 0, 2, 2, 3)), ref_order.hash_of((0, 1, 5, 7, 8))]
    expect_equal(struct.unpack("<3Q", block_state[40:64]), tuple(hashes), "hashes")
    others = [
        (state(seed=10), range(16, 24)),
        (state(length=5), range(12, 16)),
        (state(next_sample=2**40), range(24, 32)),
        (state(epochs=3), range(56, 64)),
        (state(phases=((0, [2]),)), range(56, 64)),
        (state(phases=((0, [1]), (5, [1]))), list(range(36, 40)) + list(range(56, 64))),
        (state(random_offset=True), range(48, 56)),
        (state(shuffle="none"), range(48, 56)),
        (state(shuffle="block", block=2, group=3), range(48, 56)),
        (state(shuffle="block", block=3, group=2), range(48, 56)),
    ]
    for other, may_differ in others:
        differ = {i for i in range(120) if other[i] != plain[i]}
        expect(differ and differ <= set(may_differ), "bytes that differ: %s" % sorted(differ))
        expect(other[120:] != plain[120:], "the checksum")
    expect_equal(state(block=2, group=3), plain, "B and M without block")


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


def test_library_permute():
    rng = random.Random(20)
    cases = [("permute %d %d %d" % (n, key, x), [y]) for n, key, x, y in VECTORS]
    while len(cases) < N_COMPARED["permute"]:
        n, key = any_n(rng), any_number(rng)
        permute = Permutation(n, key)
        for x in {any_place(rng, n) for _ in range(8)}:
            cases.append(("permute %d %d %d" % (n, key, x), [permute(x)]))
    return compare(cases)


def test_library_keys():
    rng = random.Random(22)
    cases = []
    for _ in range(N_COMPARED["key"]):
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


def test_library_shuffle():
    rng = random.Random("shuffle")
    cases = []
    while len(cases) < N_COMPARED["shuffle"]:
        n, keys, epoch = any_n(rng), any_keys(rng), any_number(rng)
        mode = rng.choice(("none", "full", "full", "block", "block", "block"))
        block, group = any_blocks(rng, n) if mode == "block" else (0, 0)
        shuffle = Shuffle(mode, n, keys, block, group)
        shape = mode, n, block, group, keys.seed, keys.id, keys.copy, epoch
        for x in {any_place(rng, n) for _ in range(8)}:
            cases.append((" ".join(map(str, ("shuffle", *shape, x))), [shuffle(epoch, x)]))
    return compare(cases)


def test_library_quotas():
    rng = random.Random(24)
    cases = []
    for _ in range(N_COMPARED["quotas"]):
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


def test_library_mixture(command, answer):
    rng = random.Random(command)
    cases = []
    while len(cases) < N_COMPARED[command]:
        mixture = any_large_mixture(rng)
        text = written(mixture)
        for g in any_samples(rng, mixture):
            cases.append(("%s %s %d" % (command, text, g), answer(mixture, g)))
    return compare(cases)


def test_library_ends():
    rng = random.Random(25)
    cases = []
    n_ends = 0
    while len(cases) < N_COMPARED["end"]:
        mixture = any_large_mixture(rng) if len(cases) % 2 else any_mixture(rng)
        endless = mixture.end is None or mixture.end >= N_SAMPLES
        ends = ["endless"] if endless else [mixture.end, mixture.ending_source]
        cases.append(("end " + written(mixture), ends))
        cases.append(("hash " + written(mixture), [mixture.hash()]))
        n_ends += not endless
    expect(n_ends > len(cases) / 10, "only %d end" % n_ends)
    return compare(cases)


TESTS = [
    ("order_mix_is_splitmix64", test_mix),
    ("order_vectors", test_vectors),
    ("order_permute_is_a_bijection", test_bijective),
    ("order_permute_inverse_at_edges", test_inverse),
    ("order_permute_seldom_walks", test_few_walks),
    ("order_shuffle_is_a_bijection", test_shuffle_bijective),
    ("order_block_group_is_m_blocks", test_block_groups),
    ("order_concat_labels_once", test_concat),
    ("order_offsets_label_once", test_offsets),
    ("order_within_document_labels_once", test_within_document),
    ("order_about_rows", test_about_rows),
    ("order_slots_by_the_rule", test_slots),
    ("order_mixture_below_one_sample_off", test_deviation),
    ("order_mixture_seeks", test_seek),
    ("order_quotas_of_weights", test_quotas),
    ("order_quotas_give_their_share", test_quota_shares),
    ("order_epoch_has_each_window_once", test_epochs),
    ("order_copies_and_source_id", test_copies),
    ("order_ranks_share_one_sequence", test_ranks),
    ("order_state_says_what_it_depends_on", test_state),
    ("order_library_permute", test_library_permute),
    ("order_library_keys", test_library_keys),
    ("order_library_shuffle", test_library_shuffle),
    ("order_library_quotas", test_library_quotas),
    ("order_library_mixture", partial(test_library_mixture, "mixture", Mixture.sample)),
    ("order_library_counts", partial(test_library_mixture, "counts", Mixture.counts)),
    ("order_library_ends_and_hashes", test_library_ends),
]

if __name__ == "__main__":
    sys.exit(run_tests(TESTS))

# SPDX-License-Identifier: Apache-2.0
"""ref_megatron.py - the samples of Megatron-core's GPTDataset and BlendedDataset, written from its sources step by step, with a
Mersenne Twister of its own, so that a change in NumPy would be found. Plain Python, and slow."""

import math
from fractions import Fraction


class Twister:
    """numpy.random.RandomState(seed).shuffle, of lists."""

    def __init__(self, seed):
        self._key, self._at = [seed & 0xffffffff], 624
        for i in range(1, 624):
            self._key.append((1812433253 * (self._key[-1] ^ self._key[-1] >> 30) + i) & 0xffffffff)

    def _next(self):
        if self._at == 624:
            key = self._key
            for i in range(624):
                y = key[i] & 0x80000000 | key[(i + 1) % 624] & 0x7fffffff
                key[i] = key[(i + 397) % 624] ^ y >> 1 ^ (0x9908b0df if y & 1 else 0)
            self._at = 0
        y = self._key[self._at]
        self._at += 1
        y ^= y >> 11
        y ^= y << 7 & 0x9d2c5680
        y ^= y << 15 & 0xefc60000
        return y ^ y >> 18

    def _up_to(self, most):
        mask = (1 << most.bit_length()) - 1
        while True:
            value = self._next() & mask
            if value <= most:
                return value

    def shuffle(self, values):
        for i in range(len(values) - 1, 0, -1):
            j = self._up_to(i)
            values[i], values[j] = values[j], values[i]
        return values


def gpt_indices(lengths, first, end, length, n_samples, seed):
    """(document_index, sample_index, shuffle_index) of a GPTDataset."""
    per_epoch = sum(lengths[first:end])
    epochs, n_tokens = 1, per_epoch
    while n_samples is not None and n_tokens < n_samples * length + 1:
        epochs, n_tokens = epochs + 1, n_tokens + per_epoch
    is_apart, before_last = False, ((epochs - 1) * per_epoch - 1) // length
    if epochs > 1:
        is_apart = n_samples - before_last < int(0.80 * ((per_epoch - 1) // length))
    random = Twister(seed)
    if is_apart:
        listed = random.shuffle(list(range(first, end)) * (epochs - 1)) + random.shuffle(list(range(first, end)))
    else:
        listed = random.shuffle(list(range(first, end)) * epochs)
    samples = _build_sample_idx(lengths, listed, length, (epochs * per_epoch - 1) // length)
    n = len(samples) - 1
    if is_apart:
        return listed, samples, random.shuffle(list(range(before_last))) + random.shuffle(list(range(before_last, n)))
    return listed, samples, random.shuffle(list(range(n)))


def _build_sample_idx(lengths, listed, length, n_samples):
    found, place, offset = [(0, 0)], 0, 0
    while len(found) <= n_samples:
        left = length + 1
        while left:
            has = lengths[listed[place]] - offset
            left -= has
            if left <= 0:
                offset += left + has - 1
                left = 0
            else:
                if place == len(listed) - 1:
                    raise AssertionError("the last row would be shorter")
                place, offset = place + 1, 0
        found.append((place, offset))
    return found


def gpt_sample(indices, documents, sample):
    """The length + 1 tokens of a sample of a GPTDataset."""
    listed, samples, shuffled = indices
    (place, offset), (last, end) = samples[shuffled[sample]], samples[shuffled[sample] + 1]
    if place == last:
        return documents[listed[place]][offset:end + 1]
    found = documents[listed[place]][offset:]
    for i in range(place + 1, last):
        found = found + documents[listed[i]]
    return found + documents[listed[last]][:end + 1]


def normalized(weights):
    total = sum(weights)  # NumPy adds as many as these one after another, too
    return [weight / total for weight in weights]


def choose(weights, n, fused, limits=None):
    """The source of each of n samples of a BlendedDataset."""
    counts, found = [0] * len(weights), []
    for i in range(n):
        best, most = None, 0.0
        for k, weight in enumerate(weights):
            if limits and counts[k] == limits[k]:
                continue
            i_or_1 = float(max(i, 1))
            error = float(Fraction(weight) * Fraction(i_or_1) - counts[k]) if fused else weight * i_or_1 - float(counts[k])
            if best is None or error > most:
                best, most = k, error
        found.append(best)
        counts[best] += 1
    return found


def split_of(split, part):
    shares = [float(word) for word in split.split(",")]
    shares = normalized(shares + [0.0] * (3 - len(shares)))
    ends = [0, shares[0], shares[0] + shares[1], shares[0] + shares[1] + shares[2]]
    return ends[part], ends[part + 1]


def samples_of(corpora, weights, share, length, seed, n_samples, fused=False, surplus=0.005):
    """[(corpus, tokens), ...] of what Megatron's builder makes of corpora, each a list of documents, which are lists."""
    ranges = [[int(round(edge * float(len(documents)))) for edge in share] for documents in corpora]
    lengths = [[len(document) for document in documents] for documents in corpora]

    def indices_of(counts):
        return [gpt_indices(own, *one, length, count, seed) for own, one, count in zip(lengths, ranges, counts)]

    if len(corpora) == 1 and weights is None:
        indices = indices_of([n_samples])
        return [(0, gpt_sample(indices[0], corpora[0], i)) for i in range(len(indices[0][2]))]
    if weights is None:
        indices = indices_of([None] * len(corpora))
        sizes = [len(one[2]) for one in indices]
        total = sum(sizes)
        sources = choose(normalized(sizes), total, fused, sizes) if n_samples is None else choose(normalized(sizes), min(n_samples, total), fused)
    else:
        weights = normalized(weights)
        wanted = [math.ceil(n_samples * weight) for weight in weights]
        indices = indices_of([int(math.ceil(one * (1 + surplus))) for one in wanted])
        sources = choose(normalized(weights), sum(wanted), fused)
    counts, found = [0] * len(corpora), []
    for k in sources:
        found.append((k, gpt_sample(indices[k], corpora[k], counts[k])))
        counts[k] += 1
    return found

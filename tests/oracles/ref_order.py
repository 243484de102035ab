# SPDX-License-Identifier: Apache-2.0
"""The order of samples, written from docs/ORDER.md alone: a second implementation to compare the
library with. Plain and slow; standard library only.

    sources = [Source([dataset_id], [n_tokens]), ...]
    order = Order(sources, [Phase(0, quotas_of(weights))], sequence_length=4096, seed=1)
    sample = order.sample(g)
"""

import heapq
import itertools
import math
import struct
from bisect import bisect_left, bisect_right
from collections import namedtuple

from ref_rows import WHOLE, Kind, pack_documents, places_of
from ref_xxh3 import r64, xxh3_64

M64 = 2**64 - 1
G = 0x9E3779B97F4A7C15
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
HASH_START = 0x31646572726F6D74
LARGEST_N = 2**48
LARGEST_PERIOD = 2**20

FOR_FULL, FOR_BLOCKS, FOR_GROUP, FOR_BEGIN, FOR_PHASE = 1, 2, 3, 4, 5

STATE_MAGIC = bytes.fromhex("89544D530D0A1A0A")
STATE_WINDOWS = {"concat": 0, "within_document": 1, "best_fit": 2}
STATE_SHUFFLE = {"full": 0, "none": 1, "block": 2}


# ---- Keys ----


def mix(z):
    z = (z ^ z >> 30) * MIX_1 & M64
    z = (z ^ z >> 27) * MIX_2 & M64
    return z ^ z >> 31


def hash_of(numbers):
    h = HASH_START
    for v in numbers:
        h = mix(h ^ v) + G & M64
    return h


class DocumentList(namedtuple("DocumentList", "numbers keeps_rest", defaults=(False,))):
    @property
    def hash(self):
        return hash_of_list([*self.numbers, 1] if self.keeps_rest else self.numbers)


def hash_of_list(numbers):
    return xxh3_64(struct.pack("<%dQ" % len(numbers), *numbers))


def source_id(dataset_ids, ranges=None, views=None, lists=None, window_list=None):
    """Of the ids of its datasets, 16 bytes each, in order, and of each (first, end), view and list, or None."""
    none, numbers = [None] * len(dataset_ids), []
    for id, part, view, listed in zip(dataset_ids, ranges or none, views or none, lists or none):
        numbers += [r64(id, 0), r64(id, 8), *(part or ()), *((M64, view.set_hash) if view else ()),
                    *((M64 - 1, listed.hash) if listed else ())]
    return hash_of(numbers + ([M64 - 2, len(window_list), hash_of_list(window_list)] if window_list else []))


def copies(ids):
    """For each source how many before it have the same id."""
    return [ids[:i].count(id) for i, id in enumerate(ids)]


class Keys:
    """The keys of one source: keys(purpose, epoch, n)."""

    def __init__(self, seed, id, copy):
        self.seed, self.id, self.copy = seed, id, copy

    def __call__(self, purpose, epoch, n):
        return hash_of((purpose, self.seed, self.id, self.copy, epoch, n))


# ---- A permutation of [0, N) ----


LARGEST_TABLE = 128


class Permutation:
    """permute for one N and key: call it with x; inverse(y) is the x that gives y."""

    def __init__(self, n, key):
        if not 1 <= n <= LARGEST_N:
            raise ValueError("N is %d" % n)
        self.n = n
        if n <= LARGEST_TABLE:
            self.table = shuffled(n, key)
            return
        root = math.isqrt(n - 1) + 1
        self.a = root + root % 2
        self.b = (n + self.a - 1) // self.a
        n_rounds = 15 - 2 * sum(n >= 2**bits for bits in (8, 10, 13, 20))
        self.round_keys = [mix(key + (i + 1) * G & M64) for i in range(n_rounds)]

    def __call__(self, x):
        if self.n <= LARGEST_TABLE:
            return self.table[x]
        n, a, b = self.n, self.a, self.b
        while True:
            left, right = divmod(x, b)
            for i, k in enumerate(self.round_keys):
                z = ((left if i % 2 else right) ^ k) * MIX_1 & M64
                z = (z ^ z >> 32) * MIX_2 & M64
                if i % 2:
                    right = (right + (z * b >> 64)) % b
                else:
                    left = (left + (z * a >> 64)) % a
            x = left * b + right
            if x < n:
                return x


def shuffled(n, key):
    table = list(range(n))
    for i in range(n - 1, 0, -1):
        j = mix(key + i * G & M64) * (i + 1) >> 64
        table[i], table[j] = table[j], table[i]
    return table


# ---- Windows ----


class Row(namedtuple("Row", "dataset first n_inputs begin n_tokens")):
    """n_inputs + 1 tokens of a dataset, from token `first` on, round the end of the n_tokens from token `begin` on."""

    def tokens(self):
        return [self.begin + (self.first - self.begin + i) % self.n_tokens for i in range(self.n_inputs + 1)]


class ConcatWindows:
    """Of datasets of so many tokens, from token `begins` of each on. With keys, those of the source, offsets are
    random. rests: for each whether the rest of it is a window."""

    def __init__(self, sizes, sequence_length, keys=None, begins=None, rests=None):
        self.sizes, self.length, self.keys, self.begins = sizes, sequence_length, keys, begins or [0] * len(sizes)
        counts = [(t - 1 + (sequence_length - 1) * rest) // sequence_length if t > 0 else 0
                  for t, rest in zip(sizes, rests or self.begins)]
        self.ends = list(itertools.accumulate(counts))
        self.n = self.ends[-1]

    def offset(self, epoch, dataset):
        if self.keys is None:
            return 0
        return self.keys(FOR_PHASE, epoch, dataset) * self.length >> 64

    def row(self, epoch, w):
        d = bisect_right(self.ends, w)
        within = w - (self.ends[d - 1] if d > 0 else 0)
        first = self.begins[d] + self.offset(epoch, d) + within * self.length
        n = self.length if self.keys else min(self.length, self.begins[d] + self.sizes[d] - 1 - first)
        return Row(d, first, n, self.begins[d], self.sizes[d])


class DocumentWindows:
    """Of datasets with these documents, a list of (first, end) for each dataset."""

    def __init__(self, documents, sequence_length):
        self.length = sequence_length
        self.documents = [(d, *document) for d, some in enumerate(documents) for document in some]
        self.sizes = [some[-1][1] if some else 0 for some in documents]
        counts = [self.count(end - first) for _, first, end in self.documents]
        self.ends = list(itertools.accumulate(counts))
        self.n = self.ends[-1] if counts else 0

    def count(self, n):
        return (n - 1 + self.length - 1) // self.length if n >= 2 else 0

    def row(self, epoch, w):
        at = bisect_right(self.ends, w)
        d, s, end = self.documents[at]
        first = s + (w - (self.ends[at - 1] if at > 0 else 0)) * self.length
        last = min(first + self.length, end - 1)
        return Row(d, first, last - first, 0, self.sizes[d])


class PackedRow(namedtuple("PackedRow", "dataset pieces places n_inputs")):
    """Pieces of documents of a dataset, and where they begin in the row."""

    @property
    def first(self):
        return self.pieces[0].first

    def tokens(self):
        """For each place the number of its token, or None."""
        tokens = [None] * (self.n_inputs + 1)
        for piece, place in zip(self.pieces, self.places):
            tokens[place:place + piece.n] = range(piece.first, piece.first + piece.n)
        return tokens


class BestFitWindows:
    """Of datasets with these documents, a list of (first, end) for each dataset."""

    def __init__(self, documents, kind):
        self.kind, self.rows, whole, short = kind, [], [], []
        for d, some in enumerate(documents):
            for chunk in pack_documents([end - first for first, end in some], kind, start=some[0][0] if some else 0):
                numbers = range(len(self.rows), len(self.rows) + len(chunk.rows))
                (whole if len(chunk.rows) == kind.chunk_rows else short).extend(numbers)
                self.rows += [(d, row) for row in chunk.rows]
        self.n, self.n_whole, self.in_blocks = len(self.rows), len(whole) // kind.chunk_rows, whole + short

    def row(self, epoch, w):
        dataset, row = self.rows[w]
        return PackedRow(dataset, row, *places_of(row, self.kind))


# ---- Shuffle modes ----


class Shuffle:
    """From the number of a sample within its epoch to a window: shuffle(epoch, x)."""

    def __init__(self, mode, n, keys, block=0, group=0, best_fit=None):
        if mode not in STATE_SHUFFLE:
            raise ValueError(mode)
        if mode == "block" and not (block >= 1 and group >= 1 and block * group <= LARGEST_N):
            raise ValueError("%d windows in a block, %d blocks in a group" % (block, group))
        self.mode, self.n, self.keys, self.block, self.group = mode, n, keys, block, group
        self.permutations, self.best_fit = {}, best_fit
        self.n_whole = best_fit.n_whole if best_fit else n // block if block else 0

    def permutation(self, n, purpose, epoch, number):
        name = (n, purpose, epoch, number)
        if name not in self.permutations:
            if len(self.permutations) >= 1000:
                self.permutations.clear()
            self.permutations[name] = Permutation(n, self.keys(purpose, epoch, number))
        return self.permutations[name]

    def __call__(self, epoch, x):
        if self.mode == "none":
            return x
        if self.mode == "full":
            return self.permutation(self.n, FOR_FULL, epoch, 0)(x)
        n, b, m = self.n, self.block, self.group
        c, within = divmod(x, b * m)
        size = min(b * m, n - c * b * m)
        o = self.permutation(size, FOR_GROUP, epoch, c)(within)
        s = c * m + o // b
        if s < self.n_whole:
            s = self.permutation(self.n_whole, FOR_BLOCKS, epoch, 0)(s)
        if self.best_fit:
            return self.best_fit.in_blocks[s * b + o % b]
        return (s * b + o % b + (self.keys(FOR_BEGIN, epoch, 0) * n >> 64)) % n


# ---- Mixtures ----


def slots_of(quotas):
    """The source of each slot of a period."""
    period = sum(quotas)
    if not 1 <= period <= LARGEST_PERIOD:
        raise ValueError("the period is %d" % period)
    counts = [0] * len(quotas)
    slots, ready = [], []
    # A source waits for the first slot i with n * P < q * (i + 1), then it is ready.
    waiting = [(0, k) for k, q in enumerate(quotas) if q > 0]
    for i in range(period):
        while waiting and waiting[0][0] <= i:
            k = heapq.heappop(waiting)[1]
            due = ((counts[k] + 1) * period + quotas[k] - 1) // quotas[k]
            heapq.heappush(ready, (due, k))
        k = heapq.heappop(ready)[1]
        slots.append(k)
        counts[k] += 1
        heapq.heappush(waiting, (counts[k] * period // quotas[k], k))
    return slots


class Phase:
    """From sample `first` on, with quotas; its slots are those of one period."""

    def __init__(self, first, quotas):
        self.first, self.quotas, self.period = first, list(quotas), sum(quotas)
        self.slots = slots_of(quotas)
        self.slots_of_source = [[] for _ in quotas]
        self.earlier = []  # for each slot: those of its source before it
        for i, k in enumerate(self.slots):
            self.earlier.append(len(self.slots_of_source[k]))
            self.slots_of_source[k].append(i)

    def count(self, k, n_samples):
        """Samples of source k among the first n_samples."""
        periods, slot = divmod(n_samples, self.period)
        return periods * self.quotas[k] + bisect_left(self.slots_of_source[k], slot)

    def place(self, k, j):
        """At which sample of the phase the one of source k with number j stands."""
        periods, number = divmod(j, self.quotas[k])
        return periods * self.period + self.slots_of_source[k][number]


class Mixture:
    """Phases, and for each source its number of windows N and its largest number of epochs E, 0
    for none. `end` is the sample that the order ends before, or None; it would be of
    `ending_source`."""

    def __init__(self, phases, n_windows, epochs):
        firsts = [phase.first for phase in phases]
        if firsts[0] != 0 or any(a >= b for a, b in zip(firsts, firsts[1:])):
            raise ValueError("phases begin at %s" % firsts)
        self.phases, self.firsts, self.n_windows, self.epochs = phases, firsts, n_windows, epochs
        self.bases = [[0] * len(n_windows)]
        for phase, behind in zip(phases, phases[1:]):
            length = behind.first - phase.first
            base = self.bases[-1]
            self.bases.append([n + phase.count(k, length) for k, n in enumerate(base)])
        self.end, self.ending_source = self.find_end()

    def find_end(self):
        """(end, the source that has given all), or (None, None)."""
        for i, (phase, base) in enumerate(zip(self.phases, self.bases)):
            ends = [
                (phase.first + phase.place(k, e * n - base[k]), k)
                for k, (e, n) in enumerate(zip(self.epochs, self.n_windows))
                if e > 0 and phase.quotas[k] > 0
            ]
            if ends and (i + 1 == len(self.phases) or min(ends)[0] < self.firsts[i + 1]):
                return min(ends)
        return None, None

    def counts(self, g):
        """Samples of each source before sample g."""
        i = bisect_right(self.firsts, g) - 1
        phase = self.phases[i]
        return [n + phase.count(k, g - phase.first) for k, n in enumerate(self.bases[i])]

    def sample(self, g):
        """(source, epoch, x) of sample g, which is before the end."""
        i = bisect_right(self.firsts, g) - 1
        phase = self.phases[i]
        periods, slot = divmod(g - phase.first, phase.period)
        k = phase.slots[slot]
        j = self.bases[i][k] + periods * phase.quotas[k] + phase.earlier[slot]
        return k, j // self.n_windows[k], j % self.n_windows[k]

    def hash(self):
        numbers = [v for phase in self.phases for v in (phase.first, *phase.quotas)]
        return hash_of(numbers + self.epochs)


def quotas_of(weights):
    if not all(w >= 0 for w in weights):
        raise ValueError("weights %s" % weights)
    # Not sum(): from Python 3.12 on it does not add doubles one after the other.
    total = 0.0
    for w in weights:
        total += w
    if not 0 < total < math.inf:
        raise ValueError("weights %s" % weights)
    shares = sorted(w / total for w in weights if w > 0)  # the smallest fits least often
    if shares[0] * LARGEST_PERIOD < 1:
        raise ValueError("a share is too small: %s" % weights)
    period = (
        find_period(shares, 1, 2**17, 1e-11, 1e-11)
        or find_period(shares, 1, 2**14, 1e-3, 1e-9)
        or find_period(shares, 2**17 + 1, LARGEST_PERIOD, 1e-11, 1e-11)
        or find_period(shares, 2**14 + 1, LARGEST_PERIOD, 1e-3, 1e-3)
    )
    if period:
        return [round(w / total * period) for w in weights]
    scaled = [w / total * LARGEST_PERIOD for w in weights]
    quotas = [math.floor(x) for x in scaled]
    used = [k for k, w in enumerate(weights) if w > 0]
    # sorted() keeps the first of equal ones first.
    for k in sorted(used, key=lambda k: quotas[k] - scaled[k])[: LARGEST_PERIOD - sum(quotas)]:
        quotas[k] += 1
    return quotas


def find_period(shares, first, last, limit, enough):
    """The one with the smallest error below the limit, or the first below `enough`."""
    best = None
    for period in range(first, last + 1):
        error = error_of(shares, period, limit)
        if error < limit:
            best, limit = period, error
            if error < enough:
                break
    return best


def error_of(shares, period, limit):
    """`limit` if it is not below that, or the quotas do not fit."""
    total, largest = 0, 0.0
    for share in shares:
        s = share * period
        r = round(s)
        error = abs(s - r) / r if r > 0 else limit
        if error >= limit:
            return limit
        total += r
        largest = max(largest, error)
    return largest if total == period else limit


# ---- Ranks ----


def rank_samples(g, n_ranks, n_rows, rank):
    """The samples of the rows of a rank in the step that begins at g."""
    return [g + rank * n_rows + i for i in range(n_rows)]


class Skips:
    """Intervals [a, b) of samples that are left out of the `end` samples of an order."""

    def __init__(self, intervals, end):
        self.intervals, self.end = [], end
        for a, b in intervals:
            if not (self.intervals[-1][1] if self.intervals else 0) <= a < b <= end:
                raise ValueError("[%d, %d)" % (a, b))
            if self.intervals and self.intervals[-1][1] == a:
                a = self.intervals.pop()[0]
            self.intervals.append((a, b))

    def samples(self, g):
        """Those from g on that are not skipped."""
        for a, b in [*self.intervals, (self.end, self.end)]:
            yield from range(g, a)
            g = max(g, b)

    def next(self, g):
        """Where the step begins that would begin at g."""
        return next(self.samples(g), self.end)

    def hash(self, next_sample):
        left = [v for a, b in self.intervals if b > next_sample for v in (a, b)]
        return hash_of(left) if left else 0


# ---- Documents in a row ----

About = namedtuple("About", "starts position_ids document_ids loss_mask")


def about_row(row, documents, sequence_length, masked=False):
    """documents: (first, end) of each document of the row's dataset, or None where the boundaries are
    not known."""
    # Only a row that joins the end of a dataset to its beginning has token 0 behind another one.
    begins = {row.begin} | {first for first, end in documents or [] if first < end}
    tokens, n = row.tokens(), row.n_inputs
    starts = [0] + [i for i in range(1, n) if tokens[i] in begins]
    document_ids = [bisect_right(starts, i) - 1 for i in range(n)]
    position_ids = [i - starts[document] for i, document in enumerate(document_ids)]
    mask = [
        int(i < n and tokens[i + 1] not in begins and not masked) for i in range(sequence_length)
    ]
    return About(starts + [n], position_ids, document_ids, mask)


def about_packed(row, sequence_length, masked=False):
    starts, n = row.places + [row.n_inputs], row.n_inputs
    document_ids = [bisect_right(row.places, i) - 1 for i in range(n)]
    position_ids = [i - starts[document] for i, document in enumerate(document_ids)]
    mask = [0] * sequence_length
    for piece, place in zip(row.pieces, row.places):
        mask[place:place + piece.n - 1] = [int(not masked)] * (piece.n - 1)
    return About(starts, position_ids, document_ids, mask)


# ---- The whole order ----


def documents_alone(documents, numbers):
    """The documents of these numbers, as if there were no others; and the token of the dataset that each token is."""
    alone, tokens = [], []
    for first, end in map(documents.__getitem__, numbers):
        alone.append((len(tokens), len(tokens) + end - first))
        tokens += range(first, end)
    return alone, tokens


class Source:
    """dataset_ids: 16 bytes each, of redacted datasets perhaps earlier ones; sizes: tokens of each dataset; documents:
    for each a list of (first, end), or None where the boundaries are not known; epochs: at most so many, 0 for no end;
    ranges: for each (first, end) of its documents, or None for all; views: for each a View of ref_views, or None; lists:
    for each a DocumentList, or None; window_list: numbers of windows, or None."""

    def __init__(self, dataset_ids, sizes, documents=None, epochs=0, masked=False, ranges=None, views=None, lists=None,
                 window_list=None):
        none = [None] * len(sizes)
        self.lists, self.window_list = lists or none, window_list
        self.rests = [bool(listed and listed.keeps_rest) for listed in self.lists]
        self.epochs, self.masked = epochs, masked
        self.documents, self.sizes, self.begins = list(documents or none), list(sizes), [0] * len(sizes)
        self.tokens = list(none)  # with a view: the token of the dataset that each token of the rows is
        ranges = [None if part == (0, len(some or ())) else part for part, some in zip(ranges or none, self.documents)]
        views = [None if view and len(view.kept) == len(some) else view
                 for view, some in zip(views or none, self.documents)]
        self.id, self.parts = source_id(dataset_ids, ranges, views, self.lists, window_list), []
        for d, (part, view, listed) in enumerate(zip(ranges, views, self.lists)):
            first, end = part or (0, len(self.documents[d] or ()))
            if not view and not listed:
                self.parts.append((dataset_ids[d], not part, first, end))
            if view or listed:
                numbers = listed.numbers if listed else [n for n in view.kept if first <= n < end]
                self.documents[d], self.tokens[d] = documents_alone(self.documents[d], numbers)
                self.sizes[d] = len(self.tokens[d])
            elif part:
                starts = [start for start, _ in self.documents[d]] + [sizes[d]]
                self.begins[d], self.sizes[d] = starts[first], starts[end] - starts[first]
                self.documents[d] = self.documents[d][first:end]


def check_parts(parts):
    """Refuses ranges (id, whether it is the whole dataset, first, end) with a document in common."""
    for a, b in itertools.combinations(parts, 2):
        if a[0] == b[0] and not (a[1] and b[1]) and max(a[2], b[2]) < min(a[3], b[3]):
            raise ValueError("two ranges have documents in common")


class Sample(namedtuple("Sample", "source epoch x window row")):
    """`row` lies in one dataset of the source."""


class Order:
    def __init__(self, sources, phases, sequence_length, seed, **options):
        """options: windows, random_offset, shuffle, block, group; with best_fit align, most and whole."""
        self.sources, self.length, self.seed = sources, sequence_length, seed
        self.kind = options.get("windows", "concat")
        self.random_offset = options.get("random_offset", False)
        self.shuffle = options.get("shuffle", "full")
        self.block, self.group = options.get("block", 0), options.get("group", 0)
        self.rows = Kind(sequence_length, options.get("align", 1), options.get("most", 0), options.get("whole", "split"))
        if self.kind == "best_fit":
            self.block = self.rows.chunk_rows
            self.group = self.group or max(2**27 // (self.block * sequence_length), 1)
        check_parts([part for source in sources for part in source.parts])
        ids = [source.id for source in sources]
        self.keys = [Keys(seed, id, copy) for id, copy in zip(ids, copies(ids))]
        self.windows = [self.windows_of(s, keys) for s, keys in zip(sources, self.keys)]
        self.shuffles = [
            Shuffle(self.shuffle, windows.n, keys, self.block, self.group, windows if self.kind == "best_fit" else None)
            for windows, keys in zip(self.windows, self.keys)
        ]
        epochs = [source.epochs for source in sources]
        n_windows = [len(s.window_list or ()) or windows.n for s, windows in zip(sources, self.windows)]
        self.mixture = Mixture(phases, n_windows, epochs)

    def windows_of(self, source, keys):
        if self.kind == "within_document":
            if None in source.documents:
                raise ValueError("a dataset whose boundaries are not known")
            windows = DocumentWindows(source.documents, self.length)
        elif self.kind == "best_fit":
            windows = BestFitWindows(source.documents, self.rows)
        else:
            windows = ConcatWindows(source.sizes, self.length, keys if self.random_offset else None, source.begins,
                                    source.rests)
        if not 1 <= windows.n <= LARGEST_N:
            raise ValueError("%d windows" % windows.n)
        return windows

    def sample(self, g):
        k, epoch, x = self.mixture.sample(g)
        listed = self.sources[k].window_list
        w = listed[x] if listed else self.shuffles[k](epoch, x)
        return Sample(k, epoch, x, w, self.windows[k].row(epoch, w))

    def tokens(self, sample):
        """The number in its dataset of each token of the row; None at a place without one."""
        real = self.sources[sample.source].tokens[sample.row.dataset]
        return [t if t is None or real is None else real[t] for t in sample.row.tokens()]

    def about(self, sample):
        source = self.sources[sample.source]
        if self.kind == "best_fit":
            return about_packed(sample.row, self.length, source.masked)
        documents = source.documents[sample.row.dataset]
        return about_row(sample.row, documents, self.length, source.masked)

    def state(self, next_sample, skips=None):
        """The 128 bytes of docs/ORDER.md, section 8."""
        block, group = (self.block, self.group) if self.shuffle == "block" else (0, 0)
        windows, shuffle = STATE_WINDOWS[self.kind], STATE_SHUFFLE[self.shuffle]
        fields = (windows, int(self.random_offset), shuffle, block, group)
        if self.kind == "best_fit":
            rows = self.rows
            fields = (windows, rows.align, rows.most, WHOLE.index(rows.whole), rows.chunk_rows, shuffle, group)
        data = struct.pack(
            "<8sIIQQIIQQQQ48x",
            STATE_MAGIC,
            3 if any(any(s.lists) or s.window_list for s in self.sources) else 2 if self.kind == "best_fit" else 1,
            self.length,
            self.seed,
            next_sample,
            len(self.sources),
            len(self.mixture.phases),
            hash_of(source.id for source in self.sources),
            hash_of(fields),
            self.mixture.hash(),
            skips.hash(next_sample) if skips else 0,
        )
        return data + struct.pack("<Q", xxh3_64(data))

# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron_source - Megatron's samples in Megatron's order: two lists for a Source, computed as Megatron-core does, or
mapped from its caches."""

import ctypes
import glob
import itertools
import json
import math
import os
import platform
import re
import warnings
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .._c.arguments import flag, number, real
from .._c.errors import MismatchError, call
from .._c.structs import lib
from .._data.dataset import Dataset, Path
from .._data.values import Array
from .._loader.lists import DocumentList
from .._loader.sources import Source, is_view
from .blends import Sequences, check_prefixes, open_prefixes, special_id

_PARTS = ("train", "valid", "test")
_COMPARED = 1_000_000  # choices in a cache of a blend that tell which kind it is

# [prefix, ...], and their weights, or None.
Blend = Tuple[List[str], Optional[List[float]]]


class MegatronSource(Source):
    """What megatron_source returns. fused: the kind of its blend: True, False, or None where both kinds are the same, or the first
    million choices of a cache."""

    fused: Optional[bool] = None


def megatron_source(blend: Any, split: str = "1,0,0", part: str = "train", *, sequence_length: int, seed: int,
                    n_samples: Optional[int] = None, cache: Optional[Path] = None, fused: Optional[bool] = None,
                    surplus: float = 0.005, order_of: Union[None, str, Sequence[Optional[str]]] = None) -> MegatronSource:
    """A Source with the samples of Megatron-core's GPTDataset and BlendedDataset, in their order: sample number g of
    a Loader over it is what Megatron's data set has at index g. Neither megatron-core nor torch is needed.

        source = tokmap.megatron_source([("data/web", 0.7), ("data/code", 0.3)], "99,1,0", "train",
                                        sequence_length=512, seed=1234, n_samples=10_000, fused=False)
        loader = tokmap.Loader(source, 512, batch_rows=8)
        loader.seek(800)                    # consumed_samples of the checkpoint

    blend       a prefix; a list of prefixes; (prefix, weight) for each, as a list or a dict; or the words of Megatron's
                --data-path. A prefix is a dataset, or X.bin and X.idx for which `tokmap index` has made X.tmi
    split       Megatron's --split. For a blend of its own for each part (--train-data-path and others), leave the others
                0: "0,1,0" for part="valid". Megatron then ignores the weight of a single prefix, which with --data-path
                adds the surplus: give such a prefix without its weight
    part        train, valid or test
    sequence_length, seed  as in the Megatron run: --seq-length and --seed
    n_samples   as many as Megatron asks for: train_iters * global_batch_size for train. The order depends on it. None:
                one epoch, which a blend with weights cannot have
    cache       Megatron's folder of caches (--data-cache-path); without that option, Megatron has one for each prefix:
                PREFIX/cache/GPTDataset_indices. The arrays in it are mapped, and not computed. They must stay as they are. None: they are computed, in each
                process, in 1 s and 70 MB for 10^7 documents
    fused       the kind of arithmetic by which sources of a blend are chosen. Megatron's helpers compute `w * i - n` with one
                rounding where they were compiled for aarch64 (True), and with two for x86-64 (False); the orders differ.
                None: the kind of the cache, or else the kind of this machine
    surplus     Megatron's --mid-level-dataset-surplus
    order_of    as for a Source: for states of before a redaction

    The Source has one epoch, and an attribute `fused` that says which kind its blend is; None: both kinds are the same. Hashes
    of its documents and windows are in the state, so a run continues only in the same order. The last rows of a validation set
    are whole, as with Megatron's default. ValueError: the cache does not have this order, and what it has."""
    prefixes, weights = as_blend(blend)
    if part not in _PARTS:
        raise ValueError(f"part is {part!r}: must be one of {', '.join(_PARTS)}")
    share = share_of(split, part)
    opened = open_prefixes(prefixes)
    return ordered((prefixes, weights), opened, share, part, sequence_length=sequence_length, seed=seed, n_samples=n_samples,
                   cache=cache, fused=fused, surplus=surplus, order_of=order_of)


def as_blend(given: Any) -> Blend:
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)], None
    if not isinstance(given, (Mapping, list, tuple)):  # a set has no order
        raise TypeError(f"blend is of type {type(given).__name__}: must be a prefix, or a list or dict of prefixes")
    items: List[Any] = list(given.items() if isinstance(given, Mapping) else given)
    if not items:
        raise ValueError("blend is empty: must have a prefix")
    words = [os.fspath(item) for item in items if isinstance(item, (str, os.PathLike))]
    if len(words) == len(items):
        weights = [_weight_of(word) for word in words[::2]] if len(words) % 2 == 0 else [None]
        if None in weights:
            return words, None
        items = list(zip(words[1::2], weights))
    if not all(isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], (str, os.PathLike)) for item in items):
        raise TypeError(f"blend is {given!r:.80}: must be a prefix, prefixes, or (prefix, weight) for each")
    return [os.fspath(prefix) for prefix, _ in items], [real(f"the weight of {prefix}", weight) for prefix, weight in items]


def _weight_of(word: str) -> Optional[float]:
    try:
        return float(word)
    except ValueError:
        return None


def share_of(split: str, part: str) -> Tuple[float, float]:
    """Where the part begins and ends, as Megatron reads its --split."""
    try:
        shares = [float(word) for word in re.findall(r"[.0-9]+", split)]
    except (TypeError, ValueError):
        shares = []
    if not 0 < len(shares) <= len(_PARTS) or sum(shares) == 0:
        raise ValueError(f"split is {split!r}: must be shares of train, valid and test, such as 99,1,0")
    shares = _normalized(shares + [0.0] * (len(_PARTS) - len(shares)))
    ends = [0.0]
    for one in shares:
        ends.append(ends[-1] + one)
    k = _PARTS.index(part)
    if ends[k + 1] <= ends[k]:
        raise ValueError(f"split is {split!r}: has nothing for {part}")
    return ends[k], ends[k + 1]


def _normalized(weights: Sequence[float]) -> List[float]:
    array = np.array(weights, np.float64)
    found: List[float] = (array / np.sum(array)).tolist()
    return found


class Corpus(NamedTuple):
    """A prefix and its part: sequences [first, end), as Megatron counts them."""

    prefix: str
    dataset: Dataset
    sequences: Sequences
    first: int
    end: int
    n_tokens: int

    def n_epochs(self, length: int, n_samples: Optional[int]) -> int:
        return 1 if n_samples is None else max(1, -(-(n_samples * length + 1) // self.n_tokens))

    def n_windows(self, length: int, n_epochs: int) -> int:
        return (n_epochs * self.n_tokens - 1) // length


class Lists(NamedTuple):
    documents: DocumentList
    windows: Array


def _open_corpus(prefix: str, dataset: Dataset, share: Tuple[float, float], part: str, length: int, n_samples: Optional[int]) -> Corpus:
    sequences = Sequences(prefix, dataset)
    first, end = sequences.cut(share)
    n_tokens = sequences.token_at(end) - sequences.token_at(first)
    least = length + 1 if n_samples is None else 1  # a sample may have several epochs of a short part
    if n_tokens < least:
        raise ValueError(f"{prefix}: {end - first:,} documents of {n_tokens:,} tokens are in {part}: at least {least:,} tokens are needed")
    if end >= 2**31:
        raise ValueError(f"{prefix}: {end:,} documents: Megatron numbers at most 2^31 - 1")
    return Corpus(prefix, dataset, sequences, first, end, n_tokens)


def _compute(corpus: Corpus, length: int, n_samples: Optional[int], seed: int) -> Lists:
    """The numbers are drawn in Megatron's order: all documents before all windows."""
    epochs, per_epoch = corpus.n_epochs(length, n_samples), corpus.n_tokens
    n = corpus.n_windows(length, epochs)
    before_last = ((epochs - 1) * per_epoch - 1) // length
    is_apart = n_samples is not None and epochs > 1 and n_samples - before_last < int(0.80 * ((per_epoch - 1) // length))
    random = np.random.RandomState(seed)

    def shuffled(array: Array) -> Array:
        random.shuffle(array)
        return array

    def epochs_of(n_epochs: int) -> Array:
        return shuffled(np.tile(np.arange(corpus.first, corpus.end, dtype=np.int32), n_epochs))

    kind = np.uint32 if n < 2**32 - 2 else np.int64
    if not is_apart:
        listed = epochs_of(epochs)
        windows = shuffled(np.arange(n, dtype=kind))
    else:
        listed = np.concatenate((epochs_of(epochs - 1), epochs_of(1)))
        windows = np.concatenate((shuffled(np.arange(before_last, dtype=kind)), shuffled(np.arange(before_last, n, dtype=kind))))
    numbers = corpus.sequences.documents_of(listed)
    return Lists(DocumentList(listed if numbers is None else numbers[0]), windows)


def _n_common(has: Mapping[str, Any], corpus: Corpus) -> int:
    """How many names at the end of the path in a description equal the last names of the prefix, which may have moved since."""
    there, here = (os.path.normpath(path).split(os.sep)[::-1] for path in (has["dataset_path"], os.path.abspath(corpus.prefix)))
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(there, here)))


def _nearest(found: Sequence[Tuple[int, str]]) -> List[str]:
    """The descriptions whose paths have the most in common with those of the prefixes."""
    return [base for n, base in found if n == max(found)[0]]


class Cache:
    """The descriptions in a folder of Megatron's."""

    def __init__(self, folder: Path, part: str, length: int, seed: int) -> None:
        self._folder, self._part = os.fspath(folder), part
        self._same = {"random_seed": seed, "sequence_length": length}
        self._found: List[Tuple[str, Dict[str, Any]]] = []
        for path in sorted(glob.glob(os.path.join(glob.escape(self._folder), f"*-{part}-description.txt"))):
            with open(path, encoding="utf-8") as file:
                try:
                    self._found.append((path[:-len("description.txt")], dict(json.load(file))))
                except (ValueError, TypeError) as error:
                    raise ValueError(f"{path}: cannot be read as a description of a Megatron cache: {error}") from None
        if not self._found:
            raise ValueError(f"{self._folder}: has no cache of Megatron's for {part} (a file *-{part}-description.txt)")

    def _is_of(self, has: Mapping[str, Any], corpus: Corpus, share: Tuple[float, float]) -> bool:
        matrix = has.get("split_matrix")
        own = (0, 1) if matrix is None else tuple(matrix[_PARTS.index(self._part)] or ())
        return os.path.basename(has["dataset_path"]) == os.path.basename(corpus.prefix) and own == share and \
            all(has.get(name) == value for name, value in self._same.items())

    def lists(self, corpus: Corpus, share: Tuple[float, float], n_samples: Optional[int]) -> Lists:
        fitting = _nearest([(_n_common(has, corpus), base) for base, has in self._found if has.get("class") == "GPTDataset" and
                            has.get("num_samples") == n_samples and self._is_of(has, corpus, share)])
        if len(fitting) != 1:
            name, wanted = os.path.basename(corpus.prefix), {**self._same, "num_samples": n_samples, "split_matrix": share}
            told = f"have {', '.join(f'{key} {value}' for key, value in wanted.items())}, and one must"
            if fitting:
                raise ValueError(f"{self._folder}: {len(fitting)} caches for {name} {told}: leave one in the folder: "
                                 f"{', '.join(os.path.basename(base) + '*' for base in fitting)}")
            others = "; ".join(", ".join(f"{key} {has.get(key)}" for key in wanted) for _, has in self._found
                               if os.path.basename(has.get("dataset_path") or "") == name)
            raise ValueError(f"{self._folder}: no caches for {name} {told}. For {name} there are: {others or 'none'}")
        base = fitting[0]
        listed, starts, windows = (np.load(f"{base}{name}_index.npy", mmap_mode="r") for name in ("document", "sample", "shuffle"))
        epochs = corpus.n_epochs(self._same["sequence_length"], n_samples)
        expected = (corpus.end - corpus.first) * epochs, corpus.n_windows(self._same["sequence_length"], epochs)
        if (len(listed), len(windows)) != expected or len(starts) != len(windows) + 1:
            raise MismatchError(f"{base}*: has {len(listed):,} documents and {len(windows):,} samples, and of {corpus.prefix} it would be "
                                f"{expected[0]:,} and {expected[1]:,}: the cache is of other data", -7, file=base)
        starts = starts[:-1]
        numbers = corpus.sequences.documents_of(listed, is_checked=True)
        if numbers is not None:
            listed, places = numbers
            starts = np.stack((places[starts[:, 0]], starts[:, 1]), axis=1)
        return Lists(DocumentList(listed, starts), windows)

    def blend(self, corpora: Sequence[Corpus], share: Tuple[float, float], weights: Sequence[float],
              size: Optional[int]) -> Optional[Array]:
        """The source of each sample; None: it is not in the folder, as where Megatron was given no --data-cache-path."""
        found = _nearest([(sum(map(_n_common, has["datasets"], corpora)), base) for base, has in self._found
                          if has.get("class") == "BlendedDataset" and has.get("size") == size
                          and has.get("weights") == list(weights) and len(has["datasets"]) == len(corpora) and
                          all(self._is_of(one, corpus, share) for one, corpus in zip(has["datasets"], corpora))])
        if len(found) > 1:
            raise ValueError(f"{self._folder}: has {len(found)} blends of these prefixes and weights: leave one in the folder: "
                             f"{', '.join(map(os.path.basename, found))}")
        return np.load(f"{found[0]}dataset_index.npy", mmap_mode="r") if found else None


def _choose(weights: Sequence[float], n: int, fused: bool, limits: Optional[Sequence[int]]) -> Array:
    sources = np.empty(n, np.uint16)
    most = None if limits is None else (ctypes.c_uint64 * len(limits))(*limits)
    call(lib.tokmap_blend_by_error, (ctypes.c_double * len(weights))(*weights), most, len(weights), fused, n, sources.ctypes.data)
    return sources


def _choose_kind(weights: Sequence[float], n: int, limits: Optional[Sequence[int]], cached: Optional[Array],
                 fused: Optional[bool]) -> Tuple[Array, Optional[bool]]:
    """The source of each sample, and the kind of arithmetic; None: both kinds are the same, or a cache begins like both."""
    if cached is not None:
        first = cached[:_COMPARED]
        fitting = [kind for kind in (False, True) if len(cached) == n and np.array_equal(_choose(weights, len(first), kind, limits), first)]
        if not fitting:
            raise MismatchError("Megatron's cache of the blend has other choices than its weights give", -7)
        if fused is not None and fused not in fitting:
            raise ValueError(f"fused is {fused}: the cache of the blend was made with {fitting[0]}")
        return cached, fitting[0] if len(fitting) == 1 else None
    is_aarch64 = platform.machine().lower() not in ("x86_64", "amd64", "i686")
    kind = is_aarch64 if fused is None else fused
    sources = _choose(weights, n, kind, limits)
    if np.array_equal(sources, _choose(weights, n, not kind, limits)):
        return sources, None
    if fused is None:
        warnings.warn(f"the order of this blend is the one that Megatron has on {'aarch64' if kind else 'x86-64'}, and on the other "
                      "processors it has another one: give fused=True (aarch64) or False (x86-64)", stacklevel=4)
    return sources, kind


def ordered(blend: Blend, opened: Mapping[str, Union[Dataset, Any]], share: Tuple[float, float], part: str, *, sequence_length: int,
            seed: int, n_samples: Optional[int], cache: Optional[Path], fused: Optional[bool], surplus: float,
            order_of: Union[None, str, Sequence[Optional[str]]] = None) -> MegatronSource:
    """The part of each prefix is [share[0], share[1]) of its sequences."""
    prefixes, weights = blend
    length, seed = number("sequence_length", sequence_length, 2**24, 1), number("seed", seed, 2**32 - 1)
    fused = None if fused is None else flag("fused", fused)
    if n_samples is not None:
        n_samples = number("n_samples", n_samples, 2**48, 1)
    surplus = real("surplus", surplus)
    if not 0 <= surplus < math.inf:
        raise ValueError(f"surplus is {surplus}: must be finite and not negative")
    if views := [prefix for prefix in prefixes if is_view(prefix)]:
        raise ValueError(f"{views[0]}: is a view, and Megatron's order is one of all documents of a prefix")
    if weights is not None and not all(0 < weight < math.inf for weight in weights):
        raise ValueError(f"the weights of the blend are {weights}: Megatron wants each above 0")
    counts: List[Optional[int]] = [n_samples] * len(prefixes)
    is_alone, n = len(prefixes) == 1 and weights is None, 0
    if weights is not None:
        if n_samples is None:
            raise ValueError("n_samples is missing: a blend with weights has no end")
        weights = _normalized(weights)
        wanted = [math.ceil(n_samples * weight) for weight in weights]
        counts, n = [int(math.ceil(one * (1 + surplus))) for one in wanted], sum(wanted)
    elif not is_alone:
        counts = [None] * len(prefixes)
    corpora = [_open_corpus(prefix, opened[prefix], share, part, length, count) for prefix, count in zip(prefixes, counts)]
    known = None if cache is None else Cache(cache, part, length, seed)
    lists = [known.lists(corpus, share, count) if known else _compute(corpus, length, count, seed)
             for corpus, count in zip(corpora, counts)]
    windows, kind = lists[0].windows, None
    if not is_alone:
        lengths, limits = [len(one.windows) for one in lists], None
        size: Optional[int] = n
        shares: Sequence[float] = _normalized(weights or lengths)
        described = shares
        if weights is None:
            n = sum(lengths) if n_samples is None else min(n_samples, sum(lengths))
            size = None if n_samples is None else n
            if n_samples is None:
                limits, described = lengths, lengths
        cached = known.blend(corpora, share, described, size) if known else None
        sources, kind = _choose_kind(shares, n, limits, cached, fused)
        windows = _compose(prefixes, sources, lists)
    found = MegatronSource([corpus.dataset for corpus in corpora], document_list=[one.documents for one in lists], window_list=windows,
                           max_epochs=1, order_of=order_of)
    found.fused, found._made_for = kind, length
    return found


def _compose(prefixes: Sequence[str], sources: Array, lists: Sequence[Lists]) -> Array:
    """The windows of all corpora, numbered one after another: each sample takes the next one of its source."""
    counts = np.bincount(sources, minlength=len(lists))
    if wrong := [k for k, one in enumerate(lists) if counts[k] > len(one.windows)]:
        k = wrong[0]
        raise ValueError(f"the blend takes {counts[k]:,} samples of {prefixes[k]}, which has {len(lists[k].windows):,}: Megatron stops here, "
                         "too; a larger surplus helps")
    before, chosen = 0, []
    kind: Any = np.uint32 if sum(len(one.windows) for one in lists) < 2**32 else np.uint64
    for count, one in zip(counts, lists):
        chosen.append(one.windows[:count].astype(kind) + kind(before))
        before += len(one.windows)
    found = np.empty(len(sources), kind)
    found[np.argsort(sources, kind="stable")] = np.concatenate(chosen)
    return found


# ---- For a configuration of Megatron-core ----

def check_order(sample_order: Optional[str], cache: Any, fused: Optional[bool], options: Dict[str, Any]) -> Optional[bool]:
    """Whether it is Megatron's, or None. TypeError: beside it there is an option that says another order."""
    if sample_order not in (None, "tokmap", "megatron"):
        raise ValueError(f"sample_order is {sample_order!r}: must be 'tokmap' or 'megatron'")
    if sample_order != "megatron":
        for name, value in (("cache", cache), ("fused", fused)):
            if value is not None:
                raise TypeError(f"{name} needs sample_order='megatron'")
        return None
    wrong = [name for name in ("seed", "shuffle", "windows", "order", "max_epochs") if options.get(name) is not None]
    if wrong:
        raise TypeError(f"{', '.join(wrong)} cannot be given with sample_order='megatron': that is one order, with the random_seed of config "
                        "and n_samples")
    return True


def eod_of(config: Any) -> int:
    found = special_id(config, "eod")
    if found is None:
        raise ValueError("sample_order='megatron' needs a tokenizer in config that has an eod, by which Megatron makes masks")
    return found


def source_of(sources: Any, config: Any, mixed_tokenizers: bool, **given: Any) -> MegatronSource:
    if isinstance(sources, MegatronSource):
        if wrong := [name for name, value in given.items() if value is not None]:
            raise TypeError(f"{', '.join(wrong)} cannot be given with a source of megatron_source: give them to megatron_source")
        return sources
    blend = as_blend(sources)
    opened = open_prefixes(blend[0])
    check_prefixes(opened, config, mixed_tokenizers)
    return of_config(config, blend, opened, (0, 1), "train", **given)


def of_config(config: Any, blend: Blend, opened: Mapping[str, Union[Dataset, Any]], share: Tuple[float, float], part: str,
              **given: Any) -> MegatronSource:
    return ordered(blend, opened, share, part, sequence_length=config.sequence_length, seed=config.random_seed,
                   surplus=config.mid_level_dataset_surplus, **given)

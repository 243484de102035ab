# SPDX-License-Identifier: Apache-2.0
"""From the configuration of a data set of Megatron-core to sources: its prefixes, weights and splits."""

import dataclasses
import errno
import math
import os
import shlex
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

import numpy as np

from .._c.arguments import flag, real
from .._c.errors import MismatchError, make_error
from .._data.dataset import Dataset, check_tokenizers
from .._data.values import Array, prefix_of
from .._data.view import View
from .._loader.sources import Source, is_view, open_view

# Options of a GPTDatasetConfig: those that are used, and those of caches and of reading, which mean nothing here.
_USED = {"random_seed", "sequence_length", "blend", "blend_per_split", "multiple_validation_sets", "full_validation", "split",
         "split_matrix", "mock", "tokenizer", "allow_ambiguous_pad_tokens", "reset_position_ids", "reset_attention_mask",
         "eod_mask_loss", "create_attention_mask", "inter_document_masking"}
_IGNORED = {"num_dataset_builder_threads", "path_to_cache", "mmap_bin_files", "mid_level_dataset_surplus", "fast_cache_load",
            "defer_npy_index_mmap", "object_storage_cache_path", "data_parallel_size", "sequence_parallel_size",
            "context_parallel_size", "sequences_per_dataset", "token_dtype_code"}


def refuse_options(config: Any) -> None:
    if not dataclasses.is_dataclass(config):
        raise TypeError(f"config is of type {type(config).__name__}: must be a GPTDatasetConfig")
    wrong = [field.name for field in dataclasses.fields(config) if field.name not in _USED | _IGNORED
             and getattr(config, field.name) != field.default]
    if wrong:
        raise ValueError(f"{type(config).__name__}: {', '.join(wrong)}: tokmap supports only the default of these options")


def special_id(config: Any, name: str) -> Optional[int]:
    try:
        found: Optional[int] = getattr(config.tokenizer, name)
    except (AttributeError, NotImplementedError):
        return None
    return found


def padding_id(config: Any) -> Optional[int]:
    """The id of padding in the data, as Megatron finds it, unless another special token has the same id."""
    pad, *others = (special_id(config, name) for name in ("pad", "eos", "eod"))
    return None if pad in others and not config.allow_ambiguous_pad_tokens else pad


def open_prefixes(prefixes: Iterable[str]) -> Dict[str, Union[Dataset, View]]:
    """A prefix may also be the path of a view file."""
    found: Dict[str, Union[Dataset, View]] = {}
    unknown: List[str] = []
    not_indexed: List[str] = []
    for prefix in dict.fromkeys(prefixes):
        if is_view(prefix):
            found[prefix] = open_view(prefix)
        elif os.path.exists(prefix + ".tmi"):
            found[prefix] = Dataset(prefix)
        else:
            is_pair = os.path.exists(prefix + ".bin") and os.path.exists(prefix + ".idx")
            (not_indexed if is_pair else unknown).append(prefix)
    texts = [f"there is no dataset with the prefix {', '.join(unknown)}"] if unknown else []
    if not_indexed:
        files = " ".join(shlex.quote(prefix + ".bin") for prefix in not_indexed)
        texts.append(f"{len(not_indexed)} of Megatron's have no .tmi yet, which is made once: tokmap index {files}")
    if texts:
        raise make_error("; ".join(texts), -3, errno.ENOENT, 0)
    return found


def check_prefixes(opened: Mapping[str, Union[Dataset, View]], config: Any, mixed_tokenizers: bool) -> None:
    n_ids, eod = getattr(config.tokenizer, "vocab_size", None), special_id(config, "eod")
    datasets = {prefix: one.dataset if isinstance(one, View) else one for prefix, one in opened.items()}
    for prefix, dataset in datasets.items():
        if n_ids is not None and dataset.largest_id >= n_ids:
            raise MismatchError(f"{prefix}: is of another tokenizer: it has the id {dataset.largest_id}, and the tokenizer of "
                                f"config has {n_ids} ids", -7, file=prefix)
        if None not in (eod, dataset.eod_id) and eod != dataset.eod_id:
            warnings.warn(f"{prefix}: its documents end with the id {dataset.eod_id}, those of the tokenizer of config with {eod}: "
                          "is it of another tokenizer?", stacklevel=3)
    if not flag("mixed_tokenizers", mixed_tokenizers):
        check_tokenizers([shard for dataset in datasets.values() for shard in dataset._shards()])


class Sequences:
    """The sequences of a prefix, by which Megatron counts. They are in its .idx, where a document without tokens may have
    none, and another one several; without an .idx, the documents."""

    def __init__(self, prefix: str, dataset: Dataset) -> None:
        self._prefix, self._dataset = prefix, dataset
        self.n = self._n_documents = dataset.n_documents
        self._is_file = False
        if os.path.exists(prefix + ".idx"):
            with open(prefix + ".idx", "rb") as file:
                head = file.read(34)
            self._is_file = len(head) == 34 and head[:7] == b"MMIDIDX"
        if self._is_file:
            self.n, self._n_documents = int.from_bytes(head[18:26], "little"), int.from_bytes(head[26:], "little") - 1

    def _table(self, kind: str, offset: int, n: int) -> Array:
        return np.memmap(self._prefix + ".idx", kind, "r", 34 + offset, (n,))

    def cut(self, share: Tuple[float, float]) -> Tuple[int, int]:
        """[first, end) of a part of a split."""
        first, end = (int(round(place * float(self.n))) for place in share)
        return first, end

    def token_at(self, sequence: int) -> int:
        if sequence >= self.n:
            return self._dataset.n_tokens
        if not self._is_file:
            return self._dataset.document(sequence).first_token
        return int(self._table("<i8", 4 * self.n, self.n)[sequence]) // self._dataset.dtype.itemsize

    def documents_of(self, listed: Array, is_checked: bool = False) -> Optional[Tuple[Array, Array]]:
        """The numbers of the documents of listed sequences, but for sequences without tokens, and for each place in `listed`
        how many are left before it; None: each sequence is a document. is_checked: something else finds other ones."""
        if self._n_documents != self._dataset.n_documents:
            raise MismatchError(f"{self._prefix}.idx has {self._n_documents:,} documents, and the dataset has "
                                f"{self._dataset.n_documents:,}: make its .tmi again with tokmap index", -7, file=self._prefix)
        if not self._is_file:
            return None
        begins = self._table("<i8", 12 * self.n, self._n_documents + 1)
        if self.n == self._n_documents and (is_checked or _counts_up(begins)):
            return None
        numbers = np.repeat(np.arange(self._n_documents, dtype=listed.dtype), np.diff(begins))
        has_tokens = self._table("<i4", 0, self.n) > 0
        if (np.diff(numbers[has_tokens]) == 0).any():
            raise ValueError(f"{self._prefix}.idx: Megatron shuffles sequences, and some documents have several (--split-sentences): its "
                             "order is not one of documents")
        is_left = has_tokens[listed]
        return numbers[listed[is_left]], np.cumsum(is_left) - is_left


def _counts_up(array: Array, n: int = 2**20) -> bool:
    """Whether array[i] is i, without as much memory again."""
    return all(np.array_equal(array[i:i + n], np.arange(i, min(i + n, len(array)))) for i in range(0, len(array), n))


def _documents(prefix: str, dataset: Dataset, share: Tuple[float, float]) -> Optional[Tuple[int, int]]:
    """[first, end) as in Megatron's builder; None: all."""
    n, sequences = dataset.n_documents, Sequences(prefix, dataset)
    first, end = sequences.cut(share)
    if (first, end) == (0, sequences.n) and (n > 0 or share == (0, 1)):
        return None
    if sequences.n != n:
        first, end = (_document_at(prefix, dataset, sequences.token_at(k)) if 0 < k < sequences.n else k and n for k in (first, end))
    return first, end


def _document_at(prefix: str, dataset: Dataset, token: int) -> int:
    document = dataset.find_document(token)
    if document.first_token != token:
        raise ValueError(f"{prefix}.idx: Megatron splits between two sequences of document {document.number}: tokmap only splits "
                         "between documents")
    return document.number


def sources_of(blend: Tuple[List[str], Optional[List[float]]], opened: Dict[str, Union[Dataset, View]], share: Tuple[float, float],
             split: str) -> List[Source]:
    """One Source for each prefix, or, without weights, one Source of all prefixes."""
    prefixes, weights = blend
    found = [opened[prefix] for prefix in prefixes]
    datasets: List[Dataset] = [one.dataset if isinstance(one, View) else one for one in found]
    documents = [_documents(prefix_of(dataset._shards()[0]) if isinstance(one, View) else prefix, dataset, share)
                 for prefix, dataset, one in zip(prefixes, datasets, found)]
    nothing = [f"{prefix} ({dataset.n_documents} documents)" for prefix, dataset, part in zip(prefixes, datasets, documents)
               if part and part[0] >= part[1]]
    if nothing:
        raise ValueError(f"split leaves no document for {split} of {', '.join(nothing)}: it needs a larger share, or 0 samples")
    first: Dict[str, str] = {}
    for prefix, dataset, one, part in zip(prefixes, datasets, found, documents):
        if isinstance(one, View):
            continue  # views may have documents in common
        if part and dataset.dataset_id in first:
            other = first[dataset.dataset_id]
            problem = "comes twice in the blend" if other == prefix else f"is the same dataset as {other}"
            raise MismatchError(f"{split}: {prefix} {problem}: where split cuts it, give it once, with the sum of the weights", -7, file=split)
        first[dataset.dataset_id] = prefix
    if weights is None:
        return [Source(found, documents=documents)]
    weights = [real(f"{split}: the weight of {prefix}", weight) for prefix, weight in zip(prefixes, weights)]
    total = math.fsum(weights)
    wrong = ([k for k, weight in enumerate(weights) if not 0 <= weight < math.inf] or
             [k for k, weight in enumerate(weights) if total == 0 or 0 < weight / total < 2**-20])
    if wrong:
        raise ValueError(f"{split}: the weight of {', '.join(f'{prefixes[k]} is {weights[k]}' for k in wrong)}: " +
                         ("one must be above 0" if not any(weights) else "must be 0, or finite and at least 2^-20 of the sum of the weights"))
    return [Source(dataset, weight, documents=[part]) for dataset, weight, part in zip(found, weights, documents)]

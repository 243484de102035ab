# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron - data sets with the keys of Megatron-core's GPTDataset, and the blends and splits of its configuration."""

import importlib
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np
import torch

from ._c.arguments import flag
from ._c.errors import MismatchError
from ._loader.options import Order, Reading, Rows, group
from ._frameworks.blends import check_prefixes, open_prefixes, padding_id, refuse_options, sources_of, special_id
from ._frameworks.megatron_order import MegatronSource, as_blend, ordered
from ._frameworks.samples import check_whole_rows
from .torch import MapDataset


class GPTDataset(MapDataset):
    """Samples as Megatron-core's GPTDataset returns them: tokens, labels, loss_mask, position_ids and, with
    create_attention_mask, attention_mask. Megatron's samplers skip the samples that were trained on.

        train = tokmap.megatron.GPTDataset("data/train", config)

    config      a GPTDatasetConfig. Its sequence_length, random_seed, reset_position_ids, reset_attention_mask,
                eod_mask_loss, create_attention_mask and inter_document_masking are used, and the ids of its tokenizer for
                padding. Options that would change samples in another way are refused. Documents end at the boundaries
                of the dataset, also if they have no end-of-document id, which Megatron looks for
    options     as for a Loader without ledger, and n_samples as for Samples. Without max_epochs and n_samples there is one epoch
    inter_document_masking  replaces the option of the config, which Megatron-core up to 0.16.1 does not have. True:
                cu_seqlens and max_seqlen take the place of attention_mask, and position_ids are reset
    sample_order  "megatron": samples, their order and their masks are Megatron's own, so that losses can be compared. `sources`
                is then a blend as for megatron_source, or what that returns; n_samples decides the order, as in Megatron,
                and there may be more samples. Documents end at the end-of-document id, as for Megatron. None: tokmap's order
    cache, fused  with sample_order="megatron": as for megatron_source

    A row that is shorter, with windows="within_document" or "best_fit", has inputs of pad_id, labels of 0 and a loss_mask
    of 0 after its end, whatever eod_mask_loss says. With "best_fit" the label after each document is 0 with a loss_mask
    of 0, too. In cu_seqlens, the rest after the end of such a row is a document."""

    index_split: Any = None  # Megatron chooses samplers by it
    _is_blend = False

    def __init__(self, sources: Any, config: Any, *, inter_document_masking: Optional[bool] = None,
                 rows: Optional[Rows] = None, sample_order: Optional[str] = None, cache: Any = None,
                 fused: Optional[bool] = None, **options: Any) -> None:
        rows = group(Rows, rows)
        if rows.mask_labels or rows.ignore_index != -100 or "outputs" in options:
            raise ValueError("mask_labels, outputs and ignore_index cannot be options here: Megatron takes a loss_mask, "
                             "which is 0 for labels that a row lacks and, with eod_mask_loss of the config, at the ends "
                             "of documents")
        refuse_options(config)
        self._eod = check_order(sample_order, cache, fused, options) and _eod_of(config)
        if self._eod is not None:
            mixed_tokenizers = group(Reading, options.get("reading")).mixed_tokenizers
            sources = _in_megatrons_order(sources, config, mixed_tokenizers, n_samples=options.pop("n_samples", None), cache=cache, fused=fused)
            options = {"shuffle": "none", "max_epochs": 1, **options}
        if inter_document_masking is None:
            inter_document_masking = getattr(config, "inter_document_masking", False)
        self._by_document = flag("inter_document_masking", inter_document_masking)
        self._has_mask = config.create_attention_mask and not self._by_document
        by_eod = self._eod is not None
        needed = {"inputs": True, "labels": True, "loss_mask": config.eod_mask_loss and not by_eod,
                  "position_ids": self._by_document or config.reset_position_ids and not by_eod,
                  "document_ids": config.reset_attention_mask and self._has_mask and not by_eod, "cu_seqlens": self._by_document}
        outputs = [name for name, is_needed in needed.items() if is_needed]
        options = {"seed": config.random_seed, "framework": "torch", "rows": rows, **options, "outputs": outputs}
        super().__init__(sources, config.sequence_length, **options)
        check_whole_rows(self._options, "Megatron slices the rows itself")
        self.config, self._padding = config, padding_id(config)

    def __getitem__(self, sample: Optional[int]) -> Dict[str, Any]:
        found = super().__getitem__(sample or 0)
        length = self.config.sequence_length
        if self._eod is not None:
            found = {**self._found_by_id(found["inputs"], self._eod), **found}
        mask = torch.tril(torch.ones((length, length), dtype=torch.bool)) if self._has_mask else None
        if mask is not None and "document_ids" in found:
            mask &= found["document_ids"][:, None] == found["document_ids"]
        loss_mask = found["loss_mask"].float() if "loss_mask" in found else torch.ones(length)
        tokens, labels = torch.as_tensor(found["inputs"]), torch.as_tensor(found["labels"])
        lacks = labels < 0  # Megatron's cross entropy takes only ids
        if self._padding is not None:
            lacks |= labels == self._padding
            tokens[tokens == self._padding] = 0
        loss_mask[lacks] = 0
        row = {
            "tokens": tokens, "labels": labels.masked_fill(lacks, 0),
            **({} if mask is None else {"attention_mask": ~mask[None]}),  # True: not seen
            "loss_mask": torch.zeros(length) if sample is None else loss_mask,  # None: a row of padding
            "position_ids": found["position_ids"].long() if "position_ids" in found else torch.arange(length)}
        if self._by_document:
            begins = torch.as_tensor(found["cu_seqlens"])
            row["cu_seqlens"] = torch.nn.functional.pad(begins, (0, length + 1 - len(begins)), value=length)  # to collate
            row["max_seqlen"] = begins.diff().max()
        if not self._is_blend:
            return row
        where = self._loader.locate(sample or 0)
        return {"dataset_id": np.int16(where.source + where.dataset), **row}  # one of them is 0: see sources_of

    def _found_by_id(self, inputs: Any, eod: int) -> Dict[str, Any]:
        """What Megatron finds out about a row by the id that ends documents."""
        config, is_end = self.config, torch.eq(torch.as_tensor(inputs), eod)
        number = torch.nn.functional.pad(is_end.cumsum(0)[:-1], (1, 0))  # of the document that an input is in
        found: Dict[str, Any] = {"document_ids": number} if config.reset_attention_mask and self._has_mask else {}
        if config.eod_mask_loss:
            found["loss_mask"] = ~is_end
        if config.reset_position_ids:
            at = torch.arange(len(number))
            begins = at.masked_fill(number.diff(prepend=number[:1] - 1) == 0, 0)
            found["position_ids"] = at - begins.cummax(0).values
        return found


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


def _eod_of(config: Any) -> int:
    found = special_id(config, "eod")
    if found is None:
        raise ValueError("sample_order='megatron' needs a tokenizer in config that has an eod, by which Megatron makes masks")
    return found


def _in_megatrons_order(sources: Any, config: Any, mixed_tokenizers: bool, **given: Any) -> MegatronSource:
    if isinstance(sources, MegatronSource):
        if wrong := [name for name, value in given.items() if value is not None]:
            raise TypeError(f"{', '.join(wrong)} cannot be given with a source of megatron_source: give them to megatron_source")
        return sources
    blend = as_blend(sources)
    opened = open_prefixes(blend[0])
    check_prefixes(opened, config, mixed_tokenizers)
    return ordered(blend, opened, (0, 1), "train", sequence_length=config.sequence_length, seed=config.random_seed,
                   surplus=config.mid_level_dataset_surplus, **given)


def datasets(config: Any, sizes: Sequence[Optional[int]] = (None, None, None),
             is_built_on_rank: Callable[[], bool] = lambda: True, *, order: Optional[Order] = None,
             reading: Optional[Reading] = None, sample_order: Optional[str] = None, cache: Any = None, fused: Optional[bool] = None,
             **options: Any) -> List[Any]:
    """Train, valid and test, each a GPTDataset or None: what BlendedMegatronDatasetBuilder(GPTDataset, sizes,
    is_built_on_rank, config).build() returns, for train_valid_test_datasets_provider.

        train, valid, test = tokmap.megatron.datasets(config, train_val_test_num_samples)

    config      a GPTDatasetConfig. Each prefix of its blend, or blend_per_split, is a dataset, or X.bin and X.idx for which
                `tokmap index` has made X.tmi. Weights are shares of the samples; 0 leaves a prefix out. A blend without
                weights is one corpus: each of its samples comes once. split cuts at the same documents as Megatron; a
                prefix that is cut may be in a blend only once. multiple_validation_sets gives a list. Options for
                caches and for reading mean nothing here. Options that are not supported, such as FIM, are refused
    sizes       the number of samples of each split; None: an epoch; 0: None is returned for this split. A blend of several
                prefixes without weights has at most one epoch. Only Megatron's order of samples depends on sizes
    sample_order, cache  "megatron": the samples that Megatron's builder returns, in its order: consumed_samples of a run that
                Megatron's classes fed mean the same here. cache is Megatron's folder of caches; None: the order is computed in
                each process. Prefixes must be datasets, which may come more than once, and weights above 0
    fused       for a blend with sample_order="megatron": as for megatron_source
    is_built_on_rank    where it returns False, there is None in place of a data set. Everything is checked nevertheless
    options     as for GPTDataset

    Nothing is written, and ranks do not wait for each other: what is refused is refused on each. The samples of a blend
    have a dataset_id, the number of their prefix."""
    Split = importlib.import_module("megatron.core.datasets.utils").Split
    if wrong := sorted(options.keys() & {"max_epochs", "n_samples"}) + (["phases"] if order and order.phases else []):
        raise TypeError(f"{', '.join(wrong)} cannot be given here, where config and sizes say it: make a GPTDataset of Sources")
    if len(sizes) != len(Split):
        raise ValueError(f"sizes is {sizes!r}: must be those of train, valid and test")
    refuse_options(config)
    if config.mock:
        raise ValueError("config has neither blend nor blend_per_split, and mock data are Megatron's")
    is_one = config.blend is not None  # blend for all splits
    blends = [config.blend if share else None for share in config.split_matrix] if is_one else config.blend_per_split
    opened = open_prefixes(prefix for blend in blends if blend for prefix in blend[0])
    check_prefixes(opened, config, group(Reading, reading).mixed_tokenizers)
    is_megatrons = check_order(sample_order, cache, fused, {**options, "order": order})
    is_built = is_built_on_rank()

    def make(split: Any, size: Optional[int], prefixes: List[str], weights: Optional[List[float]]) -> Optional[GPTDataset]:
        if not is_one and len(prefixes) == 1:
            weights = None  # so does Megatron
        if weights is not None and size is None:
            raise ValueError(f"{split.name}: a blend with weights has no end, so its size cannot be None")
        share = config.split_matrix[split.value] if is_one else (0, 1)
        try:
            if is_megatrons:
                source = ordered((prefixes, weights), opened, share, split.name, sequence_length=config.sequence_length,
                                 seed=config.random_seed, n_samples=size, cache=cache, fused=fused, surplus=config.mid_level_dataset_surplus)
                one = GPTDataset(source, config, sample_order="megatron", reading=reading, **options)
            else:
                max_epochs = 1 if size is None or weights is None and len(prefixes) > 1 else None
                one = GPTDataset(sources_of((prefixes, weights), opened, share, split.name), config, n_samples=size,
                                 max_epochs=max_epochs, order=order, reading=reading, **options)
        except MismatchError as error:
            error.args = f"{split.name}: {error}", *error.args[1:]
            raise
        one.index_split, one._is_blend = split, weights is not None or len(prefixes) > 1
        return one if is_built else None

    found: List[Any] = []
    for split, size, blend in zip(Split, sizes, blends):
        if size == 0 or not blend:
            found.append(None)
        elif config.multiple_validation_sets and not is_one and split is Split.valid and len(blend[0]) > 1:
            found.append([make(split, size, [prefix], None) for prefix in blend[0]])
        else:
            found.append(make(split, size, *blend))
    return found

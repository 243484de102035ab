# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron - data sets with the keys of Megatron-core's GPTDataset, and the blends and splits of its configuration."""

import importlib
from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from ._c.arguments import flag
from ._c.errors import MismatchError
from ._loader.options import Order, Reading, Rows, group
from ._frameworks.blends import check_prefixes, open_prefixes, padding_id, refuse_options, sources_of
from ._frameworks.megatron_keys import found_by_id, sample_of
from ._frameworks.megatron_order import check_order, eod_of, of_config, source_of
from ._frameworks.samples import check_whole_rows
from ._frameworks.tried import warn_of_untried
from .torch import MapDataset

warn_of_untried("megatron-core")


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
        self._eod = check_order(sample_order, cache, fused, options) and eod_of(config)
        if self._eod is not None:
            mixed_tokenizers = group(Reading, options.get("reading")).mixed_tokenizers
            sources = source_of(sources, config, mixed_tokenizers, n_samples=options.pop("n_samples", None), cache=cache, fused=fused)
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
        if self._eod is not None:
            found = {**found_by_id(self.config, found["inputs"], self._eod), **found}
        row = sample_of(found, self.config.sequence_length, self._padding, self._has_mask, is_padding=sample is None)
        if not self._is_blend:
            return row
        where = self._loader.locate(sample or 0)
        return {"dataset_id": np.int16(where.source + where.dataset), **row}  # one of them is 0: see sources_of


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
                source = of_config(config, (prefixes, weights), opened, share, split.name, n_samples=size, cache=cache, fused=fused)
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

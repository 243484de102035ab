# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron - a data set with the keys of Megatron-core's GPTDataset."""

from typing import Any, Dict, Optional

import torch

from .torch import MapDataset


class GPTDataset(MapDataset):
    """Samples as Megatron-core's GPTDataset returns them: tokens, labels, loss_mask, position_ids and, with
    create_attention_mask, attention_mask. Megatron's samplers skip the samples that were trained on.

        train = tokmap.megatron.GPTDataset("data/train", config)

    config      a GPTDatasetConfig. Its sequence_length, random_seed, reset_position_ids, reset_attention_mask,
                eod_mask_loss and create_attention_mask are used. Documents end at the boundaries of the dataset,
                which are the end-of-document ids that Megatron looks for, unless documents lack them
    options     those of a Loader. Without max_epochs the data set has one epoch"""

    def __init__(self, sources: Any, config: Any, **options: Any) -> None:
        if options.get("mask_labels") or "outputs" in options:
            raise ValueError("mask_labels and outputs cannot be options here: Megatron takes a loss_mask, which "
                             "eod_mask_loss of the config makes")
        outputs = ["inputs", "labels"]
        outputs += ["loss_mask"] if config.eod_mask_loss else []
        outputs += ["position_ids"] if config.reset_position_ids else []
        outputs += ["document_ids"] if config.reset_attention_mask and config.create_attention_mask else []
        options = {"seed": config.random_seed, "framework": "torch", **options, "outputs": outputs}
        super().__init__(sources, config.sequence_length, **options)
        self.config = config

    def __getitem__(self, sample: Optional[int]) -> Dict[str, Any]:
        found = super().__getitem__(sample or 0)
        length = self.config.sequence_length
        mask = torch.tril(torch.ones((length, length), dtype=torch.bool)) if self.config.create_attention_mask else None
        if mask is not None and "document_ids" in found:
            mask &= found["document_ids"][:, None] == found["document_ids"]
        loss_mask = found["loss_mask"].float() if "loss_mask" in found else torch.ones(length)
        return {
            "tokens": found["inputs"], "labels": found["labels"],
            **({} if mask is None else {"attention_mask": ~mask[None]}),  # True: not seen
            "loss_mask": torch.zeros(length) if sample is None else loss_mask,  # None: a row of padding
            "position_ids": found["position_ids"].long() if "position_ids" in found else torch.arange(length)}

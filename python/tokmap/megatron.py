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
    options     those of a Loader. Without max_epochs the data set has one epoch

    A row that is shorter, with windows="within-document" or "best_fit", has inputs of pad_id, labels of 0 and a loss_mask
    of 0 after its end, whatever eod_mask_loss says. With "best_fit" the label after each document is 0 with a loss_mask
    of 0, too."""

    def __init__(self, sources: Any, config: Any, **options: Any) -> None:
        if options.get("mask_labels") or "outputs" in options or "ignore_index" in options:
            raise ValueError("mask_labels, outputs and ignore_index cannot be options here: Megatron takes a loss_mask, "
                             "which is 0 for labels that a row lacks and, with eod_mask_loss of the config, at the ends "
                             "of documents")
        outputs = ["inputs", "labels"]
        outputs += ["loss_mask"] if config.eod_mask_loss else []
        outputs += ["position_ids"] if config.reset_position_ids else []
        outputs += ["document_ids"] if config.reset_attention_mask and config.create_attention_mask else []
        options = {"seed": config.random_seed, "framework": "torch", **options, "outputs": outputs}
        super().__init__(sources, config.sequence_length, **options)
        if self._arguments["cp_size"] != 1:
            raise ValueError(f"cp_size is {self._arguments['cp_size']}: must be 1, because Megatron slices the rows itself")
        self.config = config

    def __getitem__(self, sample: Optional[int]) -> Dict[str, Any]:
        found = super().__getitem__(sample or 0)
        length = self.config.sequence_length
        mask = torch.tril(torch.ones((length, length), dtype=torch.bool)) if self.config.create_attention_mask else None
        if mask is not None and "document_ids" in found:
            mask &= found["document_ids"][:, None] == found["document_ids"]
        loss_mask = found["loss_mask"].float() if "loss_mask" in found else torch.ones(length)
        labels = torch.as_tensor(found["labels"])
        lacks = labels < 0  # Megatron's cross entropy takes only ids
        loss_mask[lacks] = 0
        return {
            "tokens": found["inputs"], "labels": labels.masked_fill(lacks, 0),
            **({} if mask is None else {"attention_mask": ~mask[None]}),  # True: not seen
            "loss_mask": torch.zeros(length) if sample is None else loss_mask,  # None: a row of padding
            "position_ids": found["position_ids"].long() if "position_ids" in found else torch.arange(length)}

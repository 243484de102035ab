# SPDX-License-Identifier: Apache-2.0
"""The keys of a sample of Megatron-core's GPTDataset, made from what a loader gives."""

from typing import Any, Dict, Mapping, Optional

import torch


def found_by_id(config: Any, inputs: Any, eod: int) -> Dict[str, Any]:
    """What Megatron finds out about a row by the id that ends documents."""
    is_end = torch.eq(torch.as_tensor(inputs), eod)
    number = torch.nn.functional.pad(is_end.cumsum(0)[:-1], (1, 0))  # of the document that an input is in
    found: Dict[str, Any] = {"document_ids": number} if config.reset_attention_mask else {}
    if config.eod_mask_loss:
        found["loss_mask"] = ~is_end
    if config.reset_position_ids:
        at = torch.arange(len(number))
        begins = at.masked_fill(number.diff(prepend=number[:1] - 1) == 0, 0)
        found["position_ids"] = at - begins.cummax(0).values
    return found


def sample_of(found: Mapping[str, Any], length: int, padding: Optional[int], has_mask: bool, is_padding: bool) -> Dict[str, Any]:
    """is_padding: a row whose labels do not count."""
    mask = torch.tril(torch.ones((length, length), dtype=torch.bool)) if has_mask else None
    if mask is not None and "document_ids" in found:
        mask &= found["document_ids"][:, None] == found["document_ids"]
    loss_mask = found["loss_mask"].float() if "loss_mask" in found else torch.ones(length)
    tokens, labels = torch.as_tensor(found["inputs"]), torch.as_tensor(found["labels"])
    lacks = labels < 0  # Megatron's cross entropy takes only ids
    if padding is not None:
        lacks |= labels == padding
        tokens[tokens == padding] = 0
    loss_mask[lacks] = 0
    row = {
        "tokens": tokens, "labels": labels.masked_fill(lacks, 0),
        **({} if mask is None else {"attention_mask": ~mask[None]}),  # True: not seen
        "loss_mask": torch.zeros(length) if is_padding else loss_mask,
        "position_ids": found["position_ids"].long() if "position_ids" in found else torch.arange(length)}
    if "cu_seqlens" in found:
        begins = torch.as_tensor(found["cu_seqlens"])
        row["cu_seqlens"] = torch.nn.functional.pad(begins, (0, length + 1 - len(begins)), value=length)  # to collate
        row["max_seqlen"] = begins.diff().max()
    return row

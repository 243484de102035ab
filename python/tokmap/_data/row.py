# SPDX-License-Identifier: Apache-2.0
"""The rows of a batch, as arrays that never change."""

import ctypes
from typing import Any, Optional, Tuple

import numpy as np

from .._c import structs as _lib
from .._c.errors import Handle
from .dataset import Array


def _copy(address: Optional[int], n: int, dtype: str) -> Optional[Array]:
    if not address:
        return None
    return np.frombuffer(ctypes.string_at(address, n * np.dtype(dtype).itemsize), dtype)


def _joined(pieces: Any, n_tokens: int, token_bytes: int, pad_id: int) -> Array:
    tokens = np.full(n_tokens, pad_id if pad_id < 256**token_bytes else 0, "<u2" if token_bytes == 2 else "<u4")
    for p in pieces:
        tokens[p.place:p.place + p.n_tokens] = np.frombuffer(ctypes.string_at(p.tokens, p.n_tokens * token_bytes), tokens.dtype)
    tokens.flags.writeable = False
    return tokens


class Row:
    """One sequence, and where it comes from.

    tokens: sequence_length + 1 ids as stored, fewer in a short row (unless windows is "concat"). It is
    a view of the mapped file where that is possible, else a copy, as with windows="best_fit", and stays valid.
    source: the number of the source. dataset: the number of the dataset in this source. epoch, window: the epoch and
    the window of the source. first_token: its number in the dataset. sample: the number of the sample. cu_seqlens,
    n_documents, longest_document, position_ids, document_ids and loss_mask are for this row, and None or 0 if the
    loader's outputs do not need them."""

    __slots__ = ("tokens", "source", "dataset", "epoch", "window", "first_token", "cu_seqlens", "n_documents",
                 "longest_document", "position_ids", "document_ids", "loss_mask", "sample")

    def __init__(self, handle: Handle, row: Tuple[Any, ...], length: int, pad_id: int) -> None:
        (pointer, n_tokens, token_bytes, source, dataset, self.epoch, self.window, self.first_token, cu_seqlens,
         self.n_documents, self.longest_document, position_ids, document_ids, loss_mask, self.sample, pieces, n_pieces) = row
        self.source: int = source
        self.dataset: int = dataset
        shard = handle.kept[source][dataset]
        self.tokens: Any = None
        if pieces:
            self.tokens = _joined((_lib.Piece * n_pieces).from_address(pieces), n_tokens, token_bytes, pad_id)
        elif shard.tokens is None:
            self.tokens = shard.row(pointer, self.first_token, n_tokens)
        else:
            first = (pointer - shard.address) // token_bytes
            if 0 <= first <= len(shard.tokens) - n_tokens:
                self.tokens = shard.tokens[first:first + n_tokens]
        if self.tokens is None:
            self.tokens = _copy(pointer, n_tokens, "<u2" if token_bytes == 2 else "<u4")
        # One check for a row without them: a batch may have thousands of rows.
        self.cu_seqlens: Optional[Array] = None
        self.position_ids: Optional[Array] = None
        self.document_ids: Optional[Array] = None
        self.loss_mask: Any = None
        if cu_seqlens or position_ids or document_ids or loss_mask:
            self.cu_seqlens = _copy(cu_seqlens, self.n_documents + 1, "<i4")
            self.position_ids = _copy(position_ids, length, "<i4")
            self.document_ids = _copy(document_ids, length, "<i4")
            self.loss_mask = _copy(loss_mask, length, "u1")

    def __repr__(self) -> str:
        return (f"<tokmap.Row: {len(self.tokens)} tokens from token {self.first_token} of dataset {self.dataset} "
                f"of source {self.source}, epoch {self.epoch}>")

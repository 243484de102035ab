# SPDX-License-Identifier: Apache-2.0
"""Rows as models of transformers take them."""

from typing import Any, Dict

import numpy as np

from .._c import structs as _lib
from .._c.structs import lib
from .._loader.batch import Batch
from .._loader.loader import Loader
from .samples import check_whole_rows


def check_options(loader: Loader[Any]) -> None:
    """ValueError if models of transformers do not understand rows of this loader."""
    outputs, given = set(loader.outputs), loader._options
    if not {"inputs", "labels"} <= outputs <= {"inputs", "labels", "position_ids"}:
        raise ValueError(f"outputs are {loader.outputs}: must be inputs and labels, and may be position_ids; "
                         "tokmap.Rows(mask_labels=True) applies the loss_mask")
    check_whole_rows(given, "models of transformers take the label of an input from the next one, which may be in another slice")
    if given.rows.ignore_index != -100:
        raise ValueError(f"ignore_index is {given.rows.ignore_index}: must be -100, the only label that "
                         "transformers leaves out of the loss")


def row_of(batch: Batch[Any], loader: Loader[Any]) -> Dict[str, Any]:
    """The one row of a batch of a loader, as models of transformers take it."""
    given = loader._options
    row, labels = batch.rows[0], np.insert(np.asarray(batch.labels[0]), 0, -100)
    n_tokens = len(row.tokens)
    input_ids = np.full(len(labels), given.rows.pad_id, labels.dtype)
    input_ids[:n_tokens] = row.tokens  # also the last one, which is only a label of the loader
    found = {"input_ids": input_ids, "labels": labels}
    if batch.position_ids is not None:
        positions = np.append(np.asarray(batch.position_ids[0], np.int64), 0)
        positions[n_tokens - 1] = positions[n_tokens - 2] + 1
        if given.windows == "concat":  # in other windows no document begins with the last token
            shard = batch._origin.handle.kept[row.source][row.dataset]
            first, n = loader._parts(row.sample)[-1]
            document = shard.look_up(lib.tokmap_dataset_find_document, first + n - 1, _lib.Document())
            positions[n_tokens - 1] *= document.first_token != first + n - 1
        positions[n_tokens:] = np.arange(len(labels) - n_tokens)
        found["position_ids"] = positions
    return found

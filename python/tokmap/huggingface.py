# SPDX-License-Identifier: Apache-2.0
"""tokmap.huggingface - data sets for the Trainer of transformers, TRL and accelerate."""

from typing import TYPE_CHECKING, Any, Dict

import numpy as np

from ._c import structs as _lib
from ._loader.batch import Batch
from ._c.structs import lib
from ._loader.loader import Loader
from ._c.arguments import number
from .torch import MapDataset

if TYPE_CHECKING:
    from ._frameworks.hf_stream import Callback as Callback, IterableDataset as IterableDataset


def __getattr__(name: str) -> Any:
    """Callback needs transformers, and IterableDataset datasets: they are imported when they are asked for."""
    if name not in ("Callback", "IterableDataset"):
        raise AttributeError(f"module 'tokmap.huggingface' has no attribute {name!r}")
    from ._frameworks import hf_stream as _huggingface
    return getattr(_huggingface, name)


def check_options(loader: Loader) -> None:
    """ValueError if models of transformers do not understand rows of this loader."""
    outputs, arguments = set(loader.outputs), loader._arguments
    if not {"inputs", "labels"} <= outputs <= {"inputs", "labels", "position_ids"}:
        raise ValueError(f"outputs are {loader.outputs}: must be inputs and labels, and may be position_ids; "
                         "mask_labels=True applies the loss_mask")
    if arguments["cp_size"] != 1:
        raise ValueError(f"cp_size is {arguments['cp_size']}: must be 1, because models of transformers take the label "
                         "of an input from the next one, which may be in another slice")
    if arguments["ignore_index"] != -100:
        raise ValueError(f"ignore_index is {arguments['ignore_index']}: must be -100, the only label that "
                         "transformers leaves out of the loss")


def row_of(batch: Batch, arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The one row of a batch of a loader with these arguments, as models of transformers take it."""
    row, labels = batch.rows[0], np.insert(np.asarray(batch.labels[0]), 0, -100)
    n_tokens = len(row.tokens)
    input_ids = np.full(len(labels), arguments["pad_id"], labels.dtype)
    input_ids[:n_tokens] = row.tokens  # also the last one, which is only a label of the loader
    found = {"input_ids": input_ids, "labels": labels}
    if batch.position_ids is not None:
        positions = np.append(np.asarray(batch.position_ids[0], np.int64), 0)
        positions[n_tokens - 1] = positions[n_tokens - 2] + 1
        if arguments["windows"] == "concat":  # in other windows no document begins with the last token
            shard = batch._handle.kept[row.source][row.dataset]
            begin, end = arguments["sources"][row.source].extent(row.dataset)
            last = begin + (row.first_token - begin + n_tokens - 1) % (end - begin)  # random_offset: a row may wrap around
            document = shard.look_up(lib.tokmap_dataset_find_document, last, _lib.Document())
            positions[n_tokens - 1] *= document.first_token != last
        positions[n_tokens:] = np.arange(len(labels) - n_tokens)
        found["position_ids"] = positions
    return found


class CausalLMDataset(MapDataset):
    """Samples in the shape that causal language models of transformers expect: "input_ids" and "labels", each of
    sequence_length tokens. The models shift labels themselves: label i belongs to input i, and label 0 does not
    count (-100). So a sample is a window of sequence_length - 1 inputs and the label after the last: its samples are
    those of a Loader with sequence_length - 1, not of one with sequence_length.

        train = tokmap.huggingface.CausalLMDataset("data/train", sequence_length=1024, seed=1)
        arguments = transformers.TrainingArguments("run", max_steps=4, train_sampling_strategy="sequential")
        transformers.Trainer(model, arguments, train_dataset=train).train()    # resume_from_checkpoint=True resumes

    Samples are already shuffled, so a sequential sampler is enough. Trainer skips the samples that were trained
    on without reading them. With ignore_data_skip=True it does not, and begins at sample 0 again. Options are those
    of a Loader. Without max_epochs it has one epoch. With outputs=("inputs", "labels", "position_ids") models see
    the documents of a row as separate. mask_labels changes labels alone; a row that is shorter, with
    windows="within-document" or "best_fit", has pad_id after its last token. Labels that do not count are -100, as
    transformers expects."""

    def __init__(self, sources: Any, sequence_length: int, **options: Any) -> None:
        super().__init__(sources, number("sequence_length", sequence_length, 2**24 + 1, 2) - 1, **options)
        check_options(self._loader)

    def __getitem__(self, sample: int) -> Dict[str, Any]:
        return row_of(self._take(sample, rows=True), self._arguments)

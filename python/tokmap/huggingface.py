# SPDX-License-Identifier: Apache-2.0
"""tokmap.huggingface - a data set for the Trainer of transformers, and for accelerate."""

from typing import Any, Dict

import numpy as np

from ._numbers import number
from .torch import MapDataset


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
    the documents of a row as separate."""

    def __init__(self, sources: Any, sequence_length: int, **options: Any) -> None:
        super().__init__(sources, number("sequence_length", sequence_length, 2**24 + 1, 2) - 1, **options)
        outputs = set(self._loader.outputs)
        if not {"inputs", "labels"} <= outputs <= {"inputs", "labels", "position_ids"}:
            raise ValueError(f"outputs are {self._loader.outputs}: must be inputs and labels, and may be position_ids; "
                             "mask_labels=True applies the loss_mask")

    def __getitem__(self, sample: int) -> Dict[str, Any]:
        found = super().__getitem__(sample)
        inputs, labels = found["inputs"], found["labels"]
        # The last input predicts nothing: where its label is masked, any id will do.
        row = {"input_ids": np.append(inputs, np.maximum(labels[-1:], 0)), "labels": np.insert(labels, 0, -100)}
        if "position_ids" in found:
            positions = found["position_ids"].astype(np.int64)
            row["position_ids"] = np.append(positions, positions[-1] + 1)
        return row

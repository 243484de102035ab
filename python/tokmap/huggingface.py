# SPDX-License-Identifier: Apache-2.0
"""tokmap.huggingface - data sets for the Trainer of transformers, TRL and accelerate."""

from typing import TYPE_CHECKING, Any, Dict

from ._c.arguments import number
from ._frameworks.rows import check_options, row_of
from ._frameworks.tried import warn_of_untried
from .torch import MapDataset

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from ._frameworks.hf_stream import Callback as Callback, IterableDataset as IterableDataset
    from ._loader.options import SampleOptions

warn_of_untried("transformers", "accelerate", "trl", "datasets")


def __getattr__(name: str) -> Any:
    """Callback needs transformers, and IterableDataset datasets: they are imported when they are asked for."""
    if name not in ("Callback", "IterableDataset"):
        raise AttributeError(f"module 'tokmap.huggingface' has no attribute {name!r}")
    from ._frameworks import hf_stream as _huggingface
    return getattr(_huggingface, name)


class CausalLMDataset(MapDataset):
    """Samples in the shape that causal language models of transformers expect: "input_ids" and "labels", each of
    sequence_length tokens. The models shift labels themselves: label i belongs to input i, and label 0 does not
    count (-100). So a sample is a window of sequence_length - 1 inputs and the label after the last input. These are
    the samples of a Loader with sequence_length - 1, not with sequence_length.

        train = tokmap.huggingface.CausalLMDataset("data/train", sequence_length=1024, seed=1)
        arguments = transformers.TrainingArguments("run", max_steps=4, train_sampling_strategy="sequential")
        transformers.Trainer(model, arguments, train_dataset=train).train()    # resume_from_checkpoint=True resumes

    Samples are already shuffled, so a sequential sampler is enough. Trainer skips the samples that were trained
    on without reading them. With ignore_data_skip=True it begins at sample 0 again. options are as for a Loader.
    Without max_epochs there is one epoch. With outputs=("inputs", "labels", "position_ids") models see the documents
    of a row as separate. mask_labels changes only labels. A shorter row, with windows="within_document" or
    "best_fit", has pad_id after its last token. Labels that do not count are -100, as transformers expects."""

    def __init__(self, sources: Any, sequence_length: int, **options: "Unpack[SampleOptions]") -> None:
        super().__init__(sources, number("sequence_length", sequence_length, 2**24 + 1, 2) - 1, **options)
        check_options(self._loader)

    def __getitem__(self, sample: int) -> Dict[str, Any]:
        return row_of(self._take(sample, rows=True), self._loader)

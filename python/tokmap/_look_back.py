# SPDX-License-Identifier: Apache-2.0
"""From tokens to samples, and how many labels documents have had."""

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from . import _lib
from ._dataset import Array
from ._lib import lib

if TYPE_CHECKING:
    from ._loader import Loader


def find_samples(loader: "Loader", source: int, dataset: int, epoch: int, first_token: int, n_tokens: int) -> Array:
    """The samples of an epoch of a source whose rows have one of these tokens of a dataset, sorted."""
    samples = np.empty(16, np.uint64)
    while True:
        search = _lib.LoaderSearch(source=source, dataset=dataset, epoch=epoch, first_token=first_token,
                                   n_tokens=n_tokens, samples=samples.ctypes.data, max_samples=len(samples))
        loader._call(lib.tokmap_loader_find, ctypes.byref(search))
        if search.n_found <= len(samples):
            return np.unique(samples[:search.n_found])
        samples = np.empty(search.n_found, np.uint64)


def count_labels(loader: "Loader", source: int, dataset: int, first_document: int, n_documents: int,
                 end_sample: int) -> Array:
    """For each of these documents how many labels the samples before end_sample have had in it."""
    labels = np.zeros(n_documents, np.uint64)
    options = _lib.LoaderLabels(source=source, dataset=dataset, first_document=first_document, n_documents=n_documents,
                                end_sample=end_sample, labels=labels.ctypes.data)
    loader._call(lib.tokmap_loader_count_labels, ctypes.byref(options))
    return labels

# SPDX-License-Identifier: Apache-2.0
"""tokmap.typing - types of arguments of a Loader, for annotations: `outputs: list[tokmap.typing.Output] = ["inputs"]`."""

from ._loader.options import CpMode, Device, Dtype, Framework, Io, OnMismatch, Output, Outputs, Shuffle, Weights, WholeDocuments, Windows
from ._loader.sources import Sources

__all__ = ["CpMode", "Device", "Dtype", "Framework", "Io", "OnMismatch", "Output", "Outputs", "Shuffle", "Sources", "Weights", "WholeDocuments",
           "Windows"]

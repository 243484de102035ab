# SPDX-License-Identifier: Apache-2.0
"""The newest versions of other packages that the adapters were tested with."""

import re
import warnings
from importlib import metadata
from typing import Tuple

TRIED = {  # the table of docs/frameworks.md, "The newest versions"
    "torch": "2.15", "torchdata": "0.11", "lightning": "2.6", "transformers": "5.24", "accelerate": "1.15", "trl": "1.16",
    "datasets": "5.2", "megatron-core": "0.19", "torchtitan": "0.3", "ai2-olmo-core": "3.0"}


def minor(version: str) -> Tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def warn_of_untried(*packages: str) -> None:
    """Warns of a package whose minor version is newer than the newest that was tested. Called where a module is imported,
    so a process warns once."""
    for name in packages:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:  # it is a checkout
            continue
        if minor(version) > minor(TRIED[name]):
            warnings.warn(f"{name} {version} is newer than {TRIED[name]}, the newest version that tokmap was tested with",
                          stacklevel=3)

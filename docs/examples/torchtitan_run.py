# SPDX-License-Identifier: Apache-2.0
"""torchtitan_run.py - a configuration for torchtitan's Trainer with rows of whole documents:

    torchrun -m torchtitan.train --module torchtitan_run --config llama3_on_tokmap"""

import tokmap
import tokmap.torchtitan
from torchtitan.models.llama3.config_registry import llama3_debugmodel
from torchtitan.trainer import Trainer


def llama3_on_tokmap() -> Trainer.Config:
    config = llama3_debugmodel()
    config.dataloader = tokmap.torchtitan.DataLoader.Config(
        dataset_path="data/train", seed=1,
        options={"windows": "best_fit", "reading": tokmap.Reading(look_ahead=8)})
    return config

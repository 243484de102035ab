# SPDX-License-Identifier: Apache-2.0
"""tokbench loader: tokmap.measure for a loader that a function of a module makes."""

import importlib
import os
import sys
import traceback
from typing import Any, List

from .._run.measure import FED, measure
from .terminal import Given, Refused, WrongUse, ends_as_program

_WAITS = 6  # as FIT_WAITS of tokbench fit


def _find(place: str) -> Any:
    """What has this name, MODULE:NAME, in a module of the working folder or in an installed one."""
    module, separator, name = place.partition(":")
    if not (module and separator and name):
        raise WrongUse(f"{place}: give a module and a name in it, such as my_training:make_loader")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not error.name or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise Refused(f"there is no module {module!r} here or installed for {sys.executable}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused(f"module {module!r} has no {name!r}")
        found = getattr(found, part)
    return found


def _milliseconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1
    if not 0 <= found <= 600000:
        raise WrongUse(f"--step-ms {text}: must be a number from 0 to 600000")
    return found


def main(arguments: List[str]) -> None:
    given, out = Given(arguments), os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the code of the user prints is no result
    sys.argv = given.operands[:1]
    with ends_as_program("loader", bool(given.json), 1, out):
        if given.step_ms is None and given.model_step is None:
            raise WrongUse("give --step-ms, such as --step-ms 180: the time of a step; or --model-step")
        step_ms = None if given.step_ms is None else _milliseconds(given.step_ms)
        try:
            loader = _find(given.operands[0])
            model_step = None if given.model_step is None else _find(given.model_step)
            if not hasattr(loader, "__iter__") or isinstance(loader, type):
                loader = loader()
            found = measure(loader, step_ms=step_ms, model_step=model_step, steps=given.steps or 200, tokens=given.tokens,
                            warm_up=8 if given.warm_up is None else given.warm_up, replay=given.replay or 0)
        except (Refused, WrongUse):
            raise
        except (Exception, SystemExit) as error:  # of the code of the user
            traceback.print_exc()
            raise ValueError(f"the loader failed: {error}") from error
        sys.stdout.flush()
        os.dup2(out, sys.stdout.fileno())
        print(found.to_json() if given.json else found)
    sys.exit(_WAITS if found.step_s and found.utilisation < FED else 0)

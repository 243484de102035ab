# SPDX-License-Identifier: Apache-2.0
"""Late columns by the command `tokmap scan`, which has the tokenizers and the formats of examples."""

import json
import os
import tempfile
from typing import Any, Dict, List, Sequence, Union

from .._c.command import run
from .._c.errors import ExistsError


def _run(path: str, options: List[str]) -> Dict[str, Any]:
    result: Dict[str, Any] = run("scan", ["--quiet", *options], [path],
                                 lambda text: text.replace("--force replaces", "replace=True replaces"))
    for name in ("schema_version", "index_file", "columns"):  # of one dataset
        del result[name]
    return result


def _add(total: Dict[str, Any], more: Dict[str, Any]) -> None:
    total["n_documents"] += more["n_documents"]
    for example, other in zip(total["examples"], more["examples"]):
        example["n_documents"] += other["n_documents"]
        if "matches" in example:
            both = [*example["matches"], *other["matches"]]
            example["matches"] = sorted(both, key=lambda one: (-one["n_tokens"], one["document"]))[:20]
    total["n_examples_found"] = sum(example["n_documents"] > 0 for example in total["examples"])


def scan(paths: Sequence[str], first_documents: Sequence[int], options: List[str],
         against: Union[None, str, Sequence[str]], names: Sequence[str], replace: bool) -> Dict[str, Any]:
    """The result over all datasets. against: a file, or texts, which become a file. names: of the columns."""
    taken = [f"{path}.{name}.tmc" for path in paths[1:] for name in names if not replace and os.path.exists(f"{path}.{name}.tmc")]
    if taken:  # before the columns of the first dataset are written
        raise ExistsError(f"{taken[0]}: exists already; replace=True replaces late columns", -9, file=taken[0])
    if against is not None and not isinstance(against, str):
        with tempfile.TemporaryDirectory(prefix="tokmap-scan-") as folder:
            file = os.path.join(folder, "examples.jsonl")
            with open(file, "w", encoding="utf-8") as out:
                out.writelines(json.dumps({"text": text}) + "\n" for text in against)
            return scan(paths, first_documents, options, file, names, replace)
    total: Dict[str, Any] = {}
    for path, first in zip(paths, first_documents):
        result = _run(path, options if against is None else [*options, "--against", against])
        for example in result.get("examples", ()):
            for match in example.get("matches", ()):
                match["document"] += first
        if total:
            _add(total, result)
        else:
            total = result
    return total

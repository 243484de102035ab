#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""blends.py --tokmap FILE [--prefixes N] [--documents N] [--cases WORD] [--rounds N] [--dir DIR] [--out FILE] - how long it takes until a blend of N
datasets can give rows, beside BlendedMegatronDatasetBuilder of megatron-core: once where it builds its indexes and saves
them, and once where it finds them saved. tokmap is measured in its own order, and in Megatron's, computed and from what
Megatron saved. All get the same files, X.bin and X.idx of 10,000 documents of 1,000 tokens on average, for which `tokmap index` has made X.tmi; the tokens are a hole in a file. Each figure is of a process of its own, in
turns, which has imported everything: `a split` is the processor's time for each split that is built, `memory` what the
process has more of its own afterwards, without files that it maps, for each split, `files` what was saved, and `a row` the
processor's time for each of the first 5,000 samples."""

import argparse
import ctypes
import itertools
import multiprocessing
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy
import torch.distributed
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench/scale"), str(ROOT / "python")]
import rows  # noqa: E402
import tokmap.megatron  # noqa: E402

DOCUMENTS, MEAN, LENGTH, SIZES, ROWS = 10000, 1000, 4096, (10**6, 10**5, 10**4), 5000
SYSTEMS = {"tokmap": {}, "megatron-core, first time": None, "megatron-core, saved before": None,
           "tokmap, Megatron's order": {"sample_order": "megatron", "fused": False},
           "tokmap, Megatron's order, saved by Megatron": {"sample_order": "megatron"}}
COLUMNS = {"a split": "ms", "memory": "MiB", "files": "MiB", "a row": "us"}


def make(folder, tokmap, n_prefixes, n_documents):
    generator = numpy.random.default_rng(1)
    for k in range(n_prefixes):
        lengths = numpy.maximum(generator.lognormal(numpy.log(MEAN) - 0.5, 1, n_documents), 2).astype("<i4")
        starts = 2 * (numpy.cumsum(lengths, dtype="<i8") - lengths)
        with open(folder / f"{k}.idx", "wb") as f:
            f.write(b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + b"\x08" + len(lengths).to_bytes(8, "little"))
            f.write((len(lengths) + 1).to_bytes(8, "little") + lengths.tobytes() + starts.tobytes())
            f.write(numpy.arange(len(lengths) + 1, dtype="<i8").tobytes())
        with open(folder / f"{k}.bin", "wb") as f:
            f.truncate(2 * int(lengths.sum()))
    subprocess.run([tokmap, "index", "-q", *[folder / f"{k}.bin" for k in range(n_prefixes)]], check=True)
    return [str(folder / str(k)) for k in range(n_prefixes)]


def weights_of(n):
    random.seed(1)
    given = [random.lognormvariate(0, 1) for _ in range(n)]
    five, percent = ([max(round(unit * weight / sum(given), 5), 1e-5) for weight in given] for unit in (1, 100))
    return {"any weights": (given, "1"), "shares of five decimals": (five, "1"), "percent of five decimals": (percent, "1"),
            "no weights": (None, "1"), "any weights, three splits": (given, "949,50,1")}


class Tokenizer:
    vocab_size, eod = 50257, 50256
    unique_identifiers = {"class": "none"}


def own_memory():
    ctypes.CDLL(None).malloc_trim(0)
    return int(pathlib.Path("/proc/self/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024


def measure(system, prefixes, weights, split, cache):
    """In a process of its own."""
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    config = GPTDatasetConfig(
        random_seed=1, sequence_length=LENGTH, blend=(prefixes, weights), split=split, path_to_cache=cache, tokenizer=Tokenizer(),
        reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
        mid_level_dataset_surplus=0.05)  # with its default, a small split is an error that advises more
    n_splits = sum(share is not None for share in config.split_matrix)
    before, begin = own_memory(), time.process_time()
    options = SYSTEMS[system]
    if options is not None:
        saved = {"cache": cache} if system.endswith("by Megatron") else {}
        made = tokmap.megatron.datasets(config, SIZES, **options, **saved)
    else:
        made = BlendedMegatronDatasetBuilder(GPTDataset, SIZES, lambda: True, config).build()
    built = time.process_time() - begin
    assert sum(one is not None for one in made) == n_splits
    memory = own_memory() - before
    begin = time.process_time()
    for sample in range(ROWS):
        made[0][sample]
    of_row = (time.process_time() - begin) / ROWS
    files = sum(path.stat().st_size for path in pathlib.Path(cache).rglob("*") if path.is_file())
    return [1e3 * built / n_splits, memory / n_splits, files / 2**20, 1e6 * of_row]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokmap", type=pathlib.Path, required=True)
    parser.add_argument("--prefixes", type=int, default=200)
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="of each prefix")
    parser.add_argument("--cases", default="", help="only cases with this in their names")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(dir=arguments.dir) as name:
        folder = pathlib.Path(name)
        prefixes = make(folder, arguments.tokmap, arguments.prefixes, arguments.documents)
        for case, (weights, split) in weights_of(arguments.prefixes).items():
            if arguments.cases not in case:
                continue
            values = {system: [] for system in SYSTEMS}
            for i, system in itertools.product(range(arguments.rounds), SYSTEMS):
                cache = folder / ("tokmap" if system in ("tokmap", "tokmap, Megatron's order") else f"{case} {i}")
                cache.mkdir(exist_ok=True)
                with multiprocessing.get_context("fork").Pool(1) as pool:
                    values[system].append(pool.apply(measure, (system, prefixes, weights, split, str(cache))))
            found += [rows.row("blends", f"{case}: {system}", unit, some, column) for system in SYSTEMS
                      for (column, unit), some in zip(COLUMNS.items(), zip(*values[system]))]
    given = f"--prefixes {arguments.prefixes} --documents {arguments.documents}" + (f" --cases '{arguments.cases}'" if arguments.cases else "")
    rows.finish(found, f"blends.py {given} --rounds {arguments.rounds}", arguments.out)


if __name__ == "__main__":
    main()

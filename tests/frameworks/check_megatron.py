#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron against the GPTDataset of megatron-core, over the same tokens."""

import itertools
import logging
import pickle
import subprocess
import sys
import warnings

from frameworks import EOD, need, redact, run_checks

if __name__ == "__main__":
    need("megatron", "torch", "megatron.core")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import numpy as np  # noqa: E402
import torch  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402
from megatron.core.datasets.utils import Split  # noqa: E402

import tokmap  # noqa: E402
import tokmap.megatron  # noqa: E402
from documents import environment  # noqa: E402


class Tokenizer:
    vocab_size, eod = 257, EOD
    unique_identifiers = {"class": "none"}


def samples_are_those_of_megatron_core(folder):
    """Megatron shuffles documents before it cuts windows, so for it the tokens are one document."""
    tokens = np.array(tokmap.open(folder / "train").tokens(0, 9000))
    tokens[np.random.default_rng(1).integers(0, 9000, 300)] = EOD  # short documents, some of which end together
    with tokmap.Writer(folder / "one", vocab_size=257) as w:
        w.document(tokens)
    subprocess.run(["tokmap", "export", "--to", "megatron", folder / "one", "-o", folder / "exported"], check=True,
                   env=environment(), stdout=subprocess.DEVNULL)
    with tokmap.Writer(folder / "many", vocab_size=257, eod_id=EOD) as w:
        ends = sorted({*np.flatnonzero(tokens == EOD) + 1, len(tokens)})
        for first, end in zip([0, *ends], ends):
            w.document(tokens[first:end])
    names = ("reset_position_ids", "reset_attention_mask", "eod_mask_loss", "create_attention_mask")
    for flags in itertools.product((False, True), repeat=4):
        config = GPTDatasetConfig(
            random_seed=1, sequence_length=32, blend=([str(folder / "exported")], None), split="1",
            path_to_cache=str(folder / "cache"), tokenizer=Tokenizer(), **dict(zip(names, flags)))
        low = GPTDataset.build_low_level_dataset(str(folder / "exported"), config)
        truth = GPTDataset(low, str(folder / "exported"), np.arange(1, dtype=np.int32), None, Split.train, config)
        mine = tokmap.megatron.GPTDataset(folder / "many", config, shuffle="none")
        assert len(mine) == len(truth) == (len(tokens) - 1) // 32
        for i, window in [(None, int(truth.shuffle_index[0])), *enumerate(truth.shuffle_index.tolist())]:
            wanted, got = truth[i], mine[window]
            if i is None:
                got = {**got, "loss_mask": mine[None]["loss_mask"]}
            assert list(got) == list(wanted)
            for key, value in wanted.items():
                assert got[key].dtype == value.dtype and got[key].shape == value.shape, key
                assert torch.equal(got[key], value), (flags, i, key)
    for options in ({"mask_labels": True}, {"outputs": ("inputs", "labels")}, {"ignore_index": 5}, {"cp_size": 2}):  # labels of -100 count in its loss
        try:
            tokmap.megatron.GPTDataset(folder / "many", config, **options)
        except ValueError:
            continue
        raise AssertionError(options)
    shuffled = tokmap.megatron.GPTDataset(folder / "many", config)
    rows = [[row["tokens"].tolist() for row in dataset] for dataset in (shuffled, mine)]
    assert rows[0] != rows[1] and sorted(rows[0]) == sorted(rows[1])


def what_a_short_row_lacks_does_not_count(folder):
    with tokmap.Writer(folder / "short", vocab_size=257) as w:
        for n in range(2, 60):
            w.document(range(n))
    for eod_mask_loss in (False, True):
        config = GPTDatasetConfig(random_seed=1, sequence_length=32, blend=None, split="1", tokenizer=Tokenizer(),
                                  reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=eod_mask_loss)
        mine = tokmap.megatron.GPTDataset(folder / "short", config, windows="within-document", pad_id=EOD)
        mine = pickle.loads(pickle.dumps(mine))  # as for a worker that is spawned
        truth = tokmap.Samples(folder / "short", 32, seed=1, windows="within-document", pad_id=EOD)
        n_short = 0
        for got, wanted in zip(mine, truth):
            lacks = wanted["labels"] == -100
            assert (got["loss_mask"].numpy() == ~lacks).all() and (got["tokens"].numpy() == wanted["inputs"]).all()
            assert (got["labels"].numpy() == np.where(lacks, 0, wanted["labels"])).all()
            n_short += lacks.any()
        assert len(mine) == len(truth) and 30 < n_short < len(mine)


def packed_rows_are_imported(folder):
    """As Megatron-Bridge lays them out for the builder of megatron-core: where documents begin, and a mask of next ids."""
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    rng, documents = np.random.default_rng(1), []
    builder = IndexedDatasetBuilder(str(folder / "packed.sft.bin"), dtype=np.int32)
    for n in range(1, 50):
        pack = [(rng.integers(0, 257, k), rng.random(k) < 0.5) for k in rng.integers(1, 20, n)]
        starts = np.cumsum([0] + [len(ids) for ids, _ in pack])[:-1]
        words = np.concatenate([ids.astype(np.uint32) | (np.append(train[1:], False).astype(np.uint32) << 31) for ids, train in pack])
        builder.add_item(torch.from_numpy(np.concatenate([[0x53465442, 1, n], starts, words]).astype(np.uint32).view(np.int32)))
        builder.end_document()
        documents += [[-100, *np.where(train, ids, -100)[1:]] for ids, train in pack]
    builder.finalize(str(folder / "packed.sft.idx"))
    subprocess.run([sys.executable, "-m", "tokmap", "import", "megatron", folder / "packed.sft.idx", "-o", folder / "out",
                    "--vocab-size", "257", "-q"], check=True, env=environment())
    ds = tokmap.open(folder / "out")
    assert [ds.labels(i).tolist() for i in range(len(ds))] == documents


def redacted_data_have_the_samples_of_before(folder):
    source, n_redacted = redact(folder), 0
    for eod_mask_loss in (False, True):
        config = GPTDatasetConfig(random_seed=1, sequence_length=32, blend=None, split="1", tokenizer=Tokenizer(),
                                  reset_position_ids=True, reset_attention_mask=False, eod_mask_loss=eod_mask_loss)
        first, mine = (tokmap.megatron.GPTDataset(data, config) for data in (folder / "train", source))
        assert len(first) == len(mine)
        for wanted, got in zip(first, mine):
            gone = (wanted["tokens"] != got["tokens"]) | (wanted["loss_mask"] != got["loss_mask"])
            n_redacted += bool(gone.any())
            assert torch.equal(wanted["position_ids"], got["position_ids"]) and not got["loss_mask"][wanted["loss_mask"] == 0].any()
            assert gone.any() or torch.equal(*(row["labels"] * row["loss_mask"] for row in (wanted, got)))
    assert 0 < n_redacted < len(mine)


if __name__ == "__main__":
    sys.exit(run_checks("megatron_"))

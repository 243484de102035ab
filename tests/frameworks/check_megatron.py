#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap.megatron against the GPTDataset of megatron-core, over the same tokens."""

import collections
import dataclasses
import itertools
import json
import logging
import pathlib
import pickle
import shutil
import subprocess
import sys
import typing
import warnings

from frameworks import EOD, ROOT, need, redact, run_checks
from grouped import grouped

if __name__ == "__main__":
    need("megatron", "torch", "megatron.core")
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import numpy as np  # noqa: E402
import torch  # noqa: E402
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder  # noqa: E402
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig  # noqa: E402
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder  # noqa: E402
from megatron.core.datasets.utils import Split, get_blend_from_list  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

import tokmap  # noqa: E402
import tokmap.megatron  # noqa: E402
from documents import blocks, changed_folder, environment  # noqa: E402


class Tokenizer:
    vocab_size, eod = 257, EOD
    unique_identifiers = {"class": "none"}


class Padded(Tokenizer):
    pad = ord(" ")


class Ambiguous(Tokenizer):
    pad = EOD


def config_of(kind=GPTDatasetConfig, **options):
    return kind(**{**dict(random_seed=1, sequence_length=32, tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
                          eod_mask_loss=True, create_attention_mask=False), **options})


def make_prefixes(folder, sizes, is_pair=True):
    """A dataset for each of so many documents, whose ids are 3 * its number, + 1, + 2; as a pair of Megatron with a .tmi."""
    for k, n in enumerate(sizes):
        with tokmap.Writer(folder / f"p{k}", vocab_size=257, eod_id=EOD) as w:
            for i in range(n):
                w.document([3 * k + (3 * i > n) + (3 * i > 2 * n)] * (40 + i % 30) + [EOD])
        if is_pair:
            for command in (["export", "--to", "megatron", folder / f"p{k}", "-o", folder / f"m{k}"],
                            ["index", folder / f"m{k}.bin"]):
                subprocess.run(["tokmap", *command, "-q"], check=True, env=environment())
    return [str(folder / f"{'m' if is_pair else 'p'}{k}") for k in range(len(sizes))]


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
    kinds = [(Tokenizer, False), (Padded, False), (Ambiguous, False), (Ambiguous, True)]
    for *flags, (tokenizer, allows) in itertools.product(*[(False, True)] * 4, kinds):
        config = config_of(blend=([str(folder / "exported")], None), split="1", path_to_cache=str(folder / "cache"),
                           tokenizer=tokenizer(), allow_ambiguous_pad_tokens=allows, **dict(zip(names, flags)))
        low = GPTDataset.build_low_level_dataset(str(folder / "exported"), config)
        truth = GPTDataset(low, str(folder / "exported"), np.arange(1, dtype=np.int32), None, Split.train, config)
        mine = tokmap.megatron.GPTDataset(folder / "many", config, shuffle="none")
        assert len(mine) == len(truth) == (len(tokens) - 1) // 32
        truth.masks_and_position_ids_are_cacheable = False  # else the padding of a row is masked in all after it, too
        for i, window in [(None, int(truth.shuffle_index[0])), *enumerate(truth.shuffle_index.tolist())]:
            wanted, got = truth[i], mine[window]
            if i is None:
                got = {**got, "loss_mask": mine[None]["loss_mask"]}
            assert list(got) == list(wanted)
            for key, value in wanted.items():
                assert got[key].dtype == value.dtype and got[key].shape == value.shape, key
                assert torch.equal(got[key], value), (flags, tokenizer, i, key)
    for options in ({"mask_labels": True}, {"outputs": ("inputs", "labels")}, {"ignore_index": 5}, {"cp_size": 2}):  # labels of -100 count in its loss
        try:
            tokmap.megatron.GPTDataset(folder / "many", config, **grouped(**options))
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
        config = config_of(eod_mask_loss=eod_mask_loss)
        mine = tokmap.megatron.GPTDataset(folder / "short", config, windows="within_document", rows=tokmap.Rows(pad_id=EOD))
        mine = pickle.loads(pickle.dumps(mine))  # as for a worker that is spawned
        truth = tokmap.Samples(folder / "short", 32, seed=1, windows="within_document", rows=tokmap.Rows(pad_id=EOD))
        n_short = 0
        for got, wanted in zip(mine, truth):
            lacks = wanted["labels"] == -100
            assert (got["loss_mask"].numpy() == ~lacks).all() and (got["tokens"].numpy() == wanted["inputs"]).all()
            assert (got["labels"].numpy() == np.where(lacks, 0, wanted["labels"])).all()
            n_short += lacks.any()
        assert len(mine) == len(truth) and 30 < n_short < len(mine)


def blends_and_splits_are_those_of_the_builder(folder):
    """Which documents each split has, which samples, and what they look like; their order is tokmap's. Megatron's builder
    comes last, because it writes files."""
    prefixes = make_prefixes(folder, (300, 101, 80, 1000))
    weights, five = [0.5, 0.123, 0.3, 2.0], get_blend_from_list(["30", prefixes[0], "70.5", prefixes[1]])
    cases = [(dict(blend=(prefixes, weights), split=split), (300, 70, 40)) for split in ("949,50,11", "98,1,1", "1,1,1", "0.3,0,1")]
    cases += [(dict(blend=(prefixes, None), split="90,5,5"), (None, None, 30)), (dict(blend=(prefixes[3:], None), split="2,1"), (5000, None, 9)),
              (dict(blend=(prefixes[3:], [3.0]), split="100"), (70, 1, 1)), (dict(blend=five, split="1"), (100, 0, 0)),
              (dict(blend_per_split=[(prefixes, weights), (prefixes[:2], None), (prefixes[:1], [2.0])]), (100, 10**6, 50)),
              (dict(blend_per_split=[get_blend_from_list(prefixes[:3]), (prefixes[1:], None), None], full_validation=True,
                    multiple_validation_sets=True), (200, None, 50))]
    before = sorted(folder.rglob("*"))
    results = [tokmap.megatron.datasets(config_of(**options), sizes) for options, sizes in cases]
    assert sorted(folder.rglob("*")) == before
    for (options, sizes), mine in zip(cases, results):
        config = config_of(**options)
        truth = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()
        for got_list, wanted_list, size in zip(mine, truth, sizes):
            if size == 0:  # Megatron makes one, of which training makes none
                wanted_list = None
            assert type(got_list) is list if type(wanted_list) is list else True
            for got, wanted in zip(*[one if isinstance(one, list) else [one] for one in (got_list, wanted_list)]):
                assert (got is None) == (wanted is None), (options, got, wanted)
                if got is not None:
                    compare_with_builder(got, wanted, size)
        unbuilt = tokmap.megatron.datasets(config, sizes, lambda: False)
        assert [one if one is None or isinstance(one, list) else 0 for one in unbuilt] == \
            [[None] * len(one) if isinstance(one, list) else None for one in mine]


def compare_with_builder(got, wanted, size):
    assert got.index_split is getattr(wanted, "split", None) or got.index_split is wanted.index_split
    for key, value in wanted[0].items():
        assert [key in got[0], got[0][key].dtype, got[0][key].shape] == [True, value.dtype, value.shape], key
    assert list(got[0]) == list(wanted[0])
    parts = getattr(wanted, "datasets", [wanted])
    for part, (dataset, documents) in zip(parts, documents_of(got)):
        assert str(part.dataset_path) == dataset.paths[0][:-4]
        assert (part.indices[0], part.indices[-1] + 1, len(part.indices)) == (*documents, documents[1] - documents[0])
    # An epoch of a part: Megatron's may end in the middle of another row, because it shuffles documents first.
    lengths = [(sum(len(dataset[i]) for i in range(*documents)) - 1) // 32 for dataset, documents in documents_of(got)]
    counts = collections.Counter(int(row.get("dataset_id", 0)) for row in got)
    if not hasattr(wanted, "datasets"):
        assert len(got) == (size or lengths[0]) <= len(wanted)
    elif got._options.max_epochs == 1:
        assert len(got) == len(wanted) == min(size or sum(lengths), sum(lengths))
        assert len(got) < sum(lengths) or [counts[k] for k in range(len(parts))] == lengths
    else:
        assert len(got) == size <= len(wanted) <= size + len(parts)
        for k, weight in enumerate(np.array(wanted.weights) / sum(wanted.weights)):
            assert abs(counts[k] - size * weight) < 1.01, (counts, wanted.weights)
    for row in itertools.islice(got, 200):  # only of documents of this split
        dataset, (first, end) = documents_of(got)[int(row.get("dataset_id", 0))]
        assert {*row["tokens"].tolist()} <= {id for i in range(first, end) for id in dataset[i].tolist()}


def documents_of(data):
    """Each dataset of a data set, and the documents that it takes of it."""
    return [(dataset, part or (0, len(dataset))) for source in data._options.sources
            for dataset, part in zip(source.datasets, source.documents)]


def training_goes_on_at_the_consumed_samples(folder):
    """With other ranks, other micro batches and workers. Batches are those of MegatronPretrainingSampler (megatron.training,
    which is not in the package): micro_batch rows for each rank in turn, from the consumed sample on."""
    prefixes = make_prefixes(folder, (300, 101, 57), is_pair=False)
    config = config_of(blend=(prefixes, [0.5, 0.2, 0.3]), split="9,1,0")
    truth = [row["tokens"].tolist() for row in tokmap.megatron.datasets(config, (960, 0, 0))[0]]
    loader = tokmap.Loader([tokmap.Source(prefix, weight, documents=(0, end)) for prefix, weight, end in zip(
        prefixes, (0.5, 0.2, 0.3), (270, 91, 51))], 32, 8, seed=1)
    assert [row for _ in range(120) for row in next(loader).inputs.tolist()] == truth
    consumed, seen = 0, []
    for n_ranks, micro_batch, n_workers, n_steps in ((4, 2, 0, 20), (2, 4, 2, 25), (8, 1, 1, 30), (1, 8, 3, 45)):
        ranks = []
        for rank in range(n_ranks):
            train, _, _ = tokmap.megatron.datasets(config, (len(seen) + 1000, 0, 0))
            batches = [[consumed + (step * n_ranks + rank) * micro_batch + i for i in range(micro_batch)] for step in range(n_steps)]
            ranks.append([batch["tokens"].tolist() for batch in DataLoader(train, batch_sampler=batches, num_workers=n_workers)])
        seen += [row for step in zip(*ranks) for batch in step for row in batch]
        consumed += n_steps * n_ranks * micro_batch
    assert seen == truth and consumed == 960


@dataclasses.dataclass
class Later(GPTDatasetConfig):
    """The option that releases after 0.16.1 have (pull request 5298)."""

    inter_document_masking: bool = False


def keys_of_documents_are_those_that_megatron_documents(folder):
    """Not compared with the package, which has none in 0.16.1: cu_seqlens has sequence_length + 1 places, the last ones of
    which are sequence_length; max_seqlen is a tensor without dimensions; there is no attention_mask. On 2026-11-24 the rows
    of 500 documents were those of GPTDataset at Megatron-LM's commit d98e8a64ddf3."""
    options = dict(eod_mask_loss=False, reset_attention_mask=True, create_attention_mask=True)
    configs = [(config_of(Later, **options, inter_document_masking=True), {}),
               (config_of(Later, **options), {"inter_document_masking": True}),
               (config_of(**options), {"inter_document_masking": True})]
    for (config, given), windows in itertools.product(configs, ({}, {"windows": "best_fit", "align": 4})):
        mine = tokmap.megatron.GPTDataset(folder / "train", config, **grouped(**given, **windows))
        truth = tokmap.Samples(folder / "train", 32, **grouped(seed=1, outputs=("inputs", "labels", "position_ids",
                                                                                "cu_seqlens"), **windows))
        assert len(mine) == len(truth) > 100
        for got, wanted in zip(mine, truth):
            assert list(got) == ["tokens", "labels", "loss_mask", "position_ids", "cu_seqlens", "max_seqlen"]
            assert got["cu_seqlens"].dtype == got["max_seqlen"].dtype == torch.int32 and got["max_seqlen"].ndim == 0
            begins, n = wanted["cu_seqlens"].tolist(), len(wanted["cu_seqlens"])
            assert got["cu_seqlens"].tolist() == begins + [32] * (33 - n) and begins[-1] == 32
            assert got["max_seqlen"] == max(b - a for a, b in zip(begins, begins[1:]))
            assert (got["position_ids"].numpy() == wanted["position_ids"]).all() and got["position_ids"].dtype == torch.int64
            assert (got["tokens"].numpy() == wanted["inputs"]).all()
            assert (got["loss_mask"].numpy() == (wanted["labels"] != -100)).all()
            assert not windows or not any(begin % 4 for begin in begins)
        batch = next(iter(DataLoader(mine, batch_size=8)))
        assert batch["cu_seqlens"].shape == (8, 33) and batch["max_seqlen"].shape == (8,)
    assert "cu_seqlens" not in tokmap.megatron.GPTDataset(folder / "train", config_of(Later, **options))[0]


@dataclasses.dataclass
class Fim(GPTDatasetConfig):
    """Megatron's GPTFIMDatasetConfig is in megatron.training."""

    fim_rate: typing.Optional[float] = None


def what_cannot_be_done_is_refused_on_every_rank(folder):
    """Also where nothing is built, and before any rank waits for another one."""
    a, b, c = make_prefixes(folder, (300, 101, 3))
    (folder / "m1.tmi").rename(folder / "kept")
    (folder / "m2.tmi").unlink()
    blend = ([a, a], [1.0, 1.0])
    for name, tokenizer in (("one", "a"), ("other", "b")):
        with tokmap.Writer(folder / name, vocab_size=257) as w:
            w.set_metadata({"tokenizer": {"sha256": tokenizer * 64}})
            w.document(range(256))
    sentences = IndexedDatasetBuilder(str(folder / "sentences.bin"), dtype=np.int32)
    for n in (3, 0, 2):  # an empty document, too
        for _ in range(n):
            sentences.add_item(torch.arange(50))
        sentences.end_document()
    sentences.finalize(str(folder / "sentences.idx"))
    subprocess.run(["tokmap", "index", "-q", folder / "sentences.bin"], check=True, env=environment())
    others = [str(folder / name) for name in ("one", "other")]
    Small = type("Small", (Tokenizer,), {"vocab_size": 200})
    cases = [
        (dict(blend=([a, "nix", "nada"], None)), {}, FileNotFoundError, "nix, nada"),
        (dict(blend=([a, b, c], [1.0] * 3)), {}, FileNotFoundError, f"tokmap index {b}.bin {c}.bin"),
        (dict(blend=([a, a], [1.0, "2"])), {}, TypeError, a), (dict(blend=([a, a], [1.0, None])), {}, TypeError, a),
        *[(dict(blend=([a, a], weights)), {}, ValueError, a) for weights in ([0.0, 0.0], [1.0, -1.0], [1.0, float("nan")],
                                                                             [1.0, 1e-6 / 2], [float("inf"), 1.0])],
        (dict(blend=blend), {"sizes": (None, 0, 0)}, ValueError, "size"), (dict(blend=blend), {"sizes": (1, 2)}, ValueError, "sizes"),
        (dict(blend=([a], None), split="9999,1,0"), {"sizes": (9, 9, 9)}, ValueError, "valid"),
        (dict(blend=([a], None), split="99,1", sequence_length=256), {"sizes": (9, 9, 9)}, tokmap.MismatchError, "valid: " + a),
        (dict(blend=([str(folder / "sentences")], None), split="1,1"), {"sizes": (9, 9, 0)}, ValueError, "sequences of document 0"),
        (dict(blend=(others, None)), {}, tokmap.MismatchError, "other"),
        (dict(blend_per_split=[(others[:1], None), (others[1:], None), None], split=None), {}, tokmap.MismatchError, "other"),
        (dict(blend=(others[:1], None), tokenizer=Small()), {}, tokmap.MismatchError, "one"),
        (dict(blend=([a, a], [1.0, 1.0]), split="9,1"), {}, tokmap.MismatchError, f"{a} comes twice"),
        (dict(blend=None, split=None), {}, ValueError, "mock"),
        *[(dict(blend=blend, **{name: not GPTDatasetConfig.__dataclass_fields__[name].default}), {}, ValueError, name) for name in (
            "add_extra_token_to_sequence", "drop_last_partial_validation_sequence", "hybrid_context_parallel")],
        *[(dict(blend=blend), {name: value}, TypeError, name) for name, value in (
            ("max_epochs", 1), ("phases", {5: [1, 1]}), ("n_samples", 3))],
        (dict(blend=blend, kind=Fim, fim_rate=0.5), {}, ValueError, "fim_rate")]
    for options, more, error, word in cases:
        config = config_of(**{"split": "1", **options})
        for is_built in (True, False):
            try:
                tokmap.megatron.datasets(config, **grouped(**{"sizes": (9, 0, 0), "is_built_on_rank": lambda: is_built, **more}))
            except error as found:
                assert word in str(found), (word, found)
                continue
            raise AssertionError((options, more))
    parts = tokmap.megatron.datasets(config_of(blend=([str(folder / "sentences")], None), split="2,1"), (9, 9, 0))[:2]
    assert [part._options.sources[0].documents for part in parts] == [[(0, 2)], [(2, 3)]]
    train, _, _ = tokmap.megatron.datasets(config_of(blend=(others, None), split="1"),
                                           reading=tokmap.Reading(mixed_tokenizers=True))
    assert len(train) == 2 * 7
    for eod, n_warnings in ((EOD, 0), (EOD - 1, 1)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            tokmap.megatron.datasets(config_of(blend=([str(folder / "p0")], None), split="1", tokenizer=type("Other", (Tokenizer,), {"eod": eod})()))
        ours = [one for one in found if "another tokenizer" in str(one.message)]  # megatron-core and torch have warnings too
        assert len(ours) == n_warnings, (eod, found)
    for used in (dict(num_dataset_builder_threads=8), dict(path_to_cache="nix", defer_npy_index_mmap=True), dict(mmap_bin_files=False)):
        assert len(tokmap.megatron.datasets(config_of(blend=blend, split="1", **used), (9, 0, 0))[0]) == 9


# Resets of position ids and of attention, eod_mask_loss, whether there is an attention mask; tokenizer; what is blended; split;
# sizes; whether Megatron's caches are read. Megatron 0.16.1 never ends if a part has no document.
IN_ORDER = [
    ((False, False, False, False), Tokenizer, [0], "1", (None, 0, 0), False), ((True, True, True, True), Tokenizer, [0], "98,1,1", (700, 9, 9), True),
    ((True, False, True, False), Padded, [1], "1,1", (2500, 300, 0), False), ((False, True, False, True), Padded, [0, 1], "90,10", (None, None, 0), True),
    ((False, False, True, True), Tokenizer, [(0, 0.3), (1, 0.7)], "949,51", (900, 70, 0), False),
    ((True, True, False, True), Ambiguous, [(0, 0.37), (1, 0.21), (2, 0.42)], "9,1", (2000, 150, 0), True),
    ((False, False, False, False), Tokenizer, [0, 1, 2], "1", (500, 0, 0), True), ((True, False, False, False), Tokenizer, [(2, 3)], "1", (1100, 0, 0), False),
    ((False, True, True, True), Tokenizer, [(0, 1), (2, 1)], "7,2,1", (300, 200, 100), True),
    ((True, True, True, False), Padded, [(1, 5), (2, 0.01)], "1", (800, 0, 0), False), ((False, False, True, False), Tokenizer, [2], "6,4", (3000, 1000, 0), True),
    ((True, True, True, True), Ambiguous, [2, 0], "1", (None, 0, 0), False), ((False, False, False, False), Tokenizer, [1], "988,12", (90, 50, 0), False),
    ((False, False, True, False), Tokenizer, [(1, 0.25), (0, 0.5), (1, 0.25)], "1", (700, 0, 0), True),
    ((False, False, True, False), Tokenizer, [0, 1, 0], "8,2", (None, 60, 0), True)]
RESETS = ("reset_position_ids", "reset_attention_mask", "eod_mask_loss", "create_attention_mask")
HAS_INTER_DOCUMENT = "inter_document_masking" in GPTDatasetConfig.__dataclass_fields__


def make_corpora(folder, is_indexed=True):
    """Three pairs of files of Megatron, with documents of 0 to 90 tokens, some of which have an end id in the middle."""
    rng, prefixes = np.random.default_rng(7), []
    for k, n in enumerate((400, 90, 250)):
        path = str(folder / f"corpus{k}")
        builder = IndexedDatasetBuilder(path + ".bin", dtype=np.int32)
        for _ in range(n):
            ids = rng.integers(0, EOD, rng.integers(1, 90) if rng.random() < 0.95 else 0)
            ids[rng.random(len(ids)) < 0.02] = EOD
            builder.add_item(torch.from_numpy(np.append(ids, EOD) if len(ids) else ids))
            builder.end_document()
        builder.finalize(path + ".idx")
        if is_indexed:
            subprocess.run(["tokmap", "index", "-q", path + ".bin"], check=True, env=environment())
        prefixes.append(path)
    return prefixes


def keys_and_order_are_megatrons(folder):
    """Every key of every sample, in Megatron's order: computed, and from Megatron's caches after they were moved."""
    prefixes, n_compared = make_corpora(folder), 0
    # Megatron-core 0.16.1 asks for its rank where a blend is cached.
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/ranks", rank=0, world_size=1)
    for number, (resets, tokenizer, blended, split, sizes, is_cached) in enumerate(IN_ORDER):
        pairs = [one if isinstance(one, tuple) else (one, None) for one in blended]
        blend = [prefixes[k] for k, _ in pairs], None if pairs[0][1] is None else [weight for _, weight in pairs]
        given = dict(blend=blend, split=split, tokenizer=tokenizer(), allow_ambiguous_pad_tokens=True, **dict(zip(RESETS, resets)))
        if HAS_INTER_DOCUMENT and number % 3 == 0:
            given["inter_document_masking"] = True
        config = config_of(**given, path_to_cache=str(folder / f"made{number}"))
        truth = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()
        (folder / f"made{number}").rename(folder / f"cache{number}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine = tokmap.megatron.datasets(config_of(**given), sizes, sample_order="megatron", cache=folder / f"cache{number}" if is_cached else None)
        for size, got, wanted in zip(sizes, mine, truth):
            if size == 0 or wanted is None:
                assert got is None
                continue
            for one in getattr(wanted, "datasets", [wanted]):
                one.masks_and_position_ids_are_cacheable = False  # else the padding of a row is masked in all after it, too
            assert len(got) == len(wanted), (number, len(got), len(wanted))
            for i in [None, *range(len(wanted))] if not hasattr(wanted, "datasets") else range(len(wanted)):
                compare_keys(got[i], wanted[i], (number, i))
            n_compared += len(wanted)
    torch.distributed.destroy_process_group()
    assert n_compared > 10_000, n_compared
    return f"{n_compared:,} samples"


def compare_keys(got, wanted, what):
    assert list(got) == list(wanted), what
    for key, value in wanted.items():
        if key == "cu_seqlens":  # a document without tokens has no place in ours
            n = len(value)
            value = torch.nn.functional.pad(found := value.unique(), (0, n - len(found)), value=int(value[-1]))
        if key == "dataset_id":
            assert got[key] == value and got[key].dtype == value.dtype, (what, key)
        else:
            assert got[key].dtype == value.dtype and torch.equal(got[key], value), (what, key)


def losses_are_megatrons(folder):
    """docs/from-megatron.md: 200 steps, the second half on four ranks; the provider; and from one order to the other."""
    (index, compare), python = ([text for _, language, text in blocks("from-megatron.md") if language == kind] for kind in ("sh", "python"))
    provider, leave = python
    (folder / "data").mkdir()
    for corpus, name in zip(make_corpora(folder, is_indexed=False), ("web", "code")):
        for suffix in (".bin", ".idx"):
            pathlib.Path(corpus + suffix).rename(folder / f"data/{name}_text_document{suffix}")
    shutil.copy(ROOT / "docs/examples/from_megatron.py", folder)
    given = {**environment(), "OMP_NUM_THREADS": "1"}
    for text in (index, compare):
        ran = subprocess.run(["bash", "-ec", text], cwd=folder, text=True, capture_output=True, env=given)
        assert ran.returncode == 0, (text, ran.stderr)
    assert ran.stdout.endswith("largest difference: 0.0\n") and ran.stdout.count("from Megatron") == 4, ran.stdout
    prefixes = [str(folder / f"data/{name}_text_document") for name in ("web", "code")]
    config = config_of(blend=(prefixes, None), split="9,1,0")
    names = {"tokmap": tokmap, "get_args": dict, "core_gpt_dataset_config_from_args": lambda args: config}
    exec(provider, names)
    train, valid, _ = names["train_valid_test_datasets_provider"]((100, 20, 0))
    assert (len(train), len(valid)) == (100, 20) and train[0]["dataset_id"] in (0, 1)
    for name, prefix in zip(("web", "code"), prefixes):
        for suffix in (".bin", ".idx", ".tmi"):
            pathlib.Path(prefix + suffix).rename(folder / f"data/{name}{suffix}")
    with changed_folder(folder):
        source = tokmap.megatron_source([("data/web", 0.7), ("data/code", 0.3)], "98,1,1", "train", sequence_length=64, seed=1234, n_samples=4_000,
                                        fused=False)
        with tokmap.Loader(source, 64, batch_rows=8, ledger="run.ledger") as loader:
            loader.seek(800)
            names["state"] = next(loader).state
        names["source"] = source
        exec(leave, names)
        with tokmap.Loader(["data/web", "data/code"], 64, batch_rows=8) as alone:
            assert all((next(names["loader"]).inputs == next(alone).inputs).all() for _ in range(30))


KILLED = """
import sys, tokmap
source = tokmap.megatron_source(sys.argv[1:3], sequence_length=32, seed=1, n_samples=4000)
with tokmap.Loader(source, 32, 6) as loader:
    for batch in loader:
        print(batch.state.hex(), batch.inputs.tolist(), sep=";", flush=True)
"""


def a_killed_run_goes_on_in_megatrons_order(folder):
    """On other ranks."""
    prefixes = make_corpora(folder)[:2]
    config = config_of(blend=(prefixes, None), split="1")
    truth = BlendedMegatronDatasetBuilder(GPTDataset, (4000, 0, 0), lambda: True, config).build()[0]
    truth = [truth[i]["tokens"].tolist() for i in range(len(truth))]
    child = subprocess.Popen([sys.executable, "-c", KILLED, *prefixes], stdout=subprocess.PIPE, text=True, env=environment())
    lines = [child.stdout.readline() for _ in range(37)]
    child.kill()
    child.wait()
    seen = [row for line in lines for row in json.loads(line.split(";")[1])]
    source = tokmap.megatron_source(prefixes, sequence_length=32, seed=1, n_samples=4000)
    ranks = [tokmap.Loader(source, 32, 2, ranks=tokmap.Ranks(rank=rank, n_ranks=4)) for rank in range(4)]
    for rank in ranks:
        rank.restore(bytes.fromhex(lines[-1].split(";")[0]))
    for _ in range(20):
        batches = [next(rank) for rank in ranks]
        seen += [row for batch in batches for row in batch.inputs.tolist()]
    assert seen == truth[:len(seen)] and len(seen) == 37 * 6 + 20 * 8


def order_is_not_given_twice(folder):
    prefixes = make_corpora(folder)
    config = config_of(blend=(prefixes, [1.0, 2.0, 3.0]), split="1")
    for options, kind, word in (({"seed": 3}, TypeError, "seed"), ({"shuffle": "full"}, TypeError, "shuffle"), ({"windows": "best_fit"}, TypeError, "windows"),
                                ({"order": tokmap.Order()}, TypeError, "order"), ({"sample_order": "olmo"}, ValueError, "olmo"),
                                ({"cache": folder / "nix"}, ValueError, "no cache"), ({"sample_order": None, "cache": folder}, TypeError, "cache"),
                                ({"sample_order": None, "fused": True}, TypeError, "fused")):
        try:
            tokmap.megatron.datasets(config, (50, 0, 0), **{"sample_order": "megatron", **options})
        except kind as error:
            assert word in str(error), error
            continue
        raise AssertionError(options)
    one = tokmap.megatron.GPTDataset(prefixes[0], config, sample_order="megatron", n_samples=50)
    two = tokmap.megatron.datasets(config_of(blend=(prefixes[:1], None), split="1"), (50, 0, 0), sample_order="megatron")[0]
    for sources, options in ((prefixes[0], {"max_epochs": 2}), (tokmap.megatron_source(prefixes[0], sequence_length=32, seed=1), {"fused": True})):
        try:
            tokmap.megatron.GPTDataset(sources, config, sample_order="megatron", **options)
        except TypeError as error:
            assert [*options][0] in str(error), error
            continue
        raise AssertionError(options)
    again = pickle.loads(pickle.dumps(one))  # as for a worker that is spawned
    assert len(one) == len(two) == len(again) and all((one[i]["tokens"] == two[i]["tokens"]).all() and (again[i]["tokens"] == two[i]["tokens"]).all()
                                                      for i in range(50))


def blends_are_measured(folder):
    """Not how fast anything is."""
    subprocess.run([sys.executable, ROOT / "bench/peers/blends.py", "--tokmap", "tokmap", "--prefixes", "3", "--rounds", "1",
                    "--dir", folder, "--out", folder / "blends.json"], check=True, env=environment(), capture_output=True)
    found = {(row["line"], row["column"]): row["median"] for row in json.loads((folder / "blends.json").read_text())["rows"]}
    assert len(found) == 5 * 5 * 4 and found["no weights: tokmap", "files"] == 0 < found["no weights: tokmap", "a split"]


def packed_rows_are_imported(folder):
    """As Megatron-Bridge lays them out for the builder of megatron-core: where documents begin, and a mask of next ids."""
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
        config = config_of(reset_position_ids=True, eod_mask_loss=eod_mask_loss)
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

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packers.py --tokmap FILE - packing of rows of several documents, beside the packers that people use.

Documents of two kinds: `web`, whose lengths are lognormal with the median 400, and `texts`, whose lengths are drawn
from the lengths of real texts in GPT-2's ids. Each run has the same lengths. The id of a token is its number, so that rows can be
checked. Slow packers get only the first of the documents.

In each round all take turns, each in a process of its own, in an order that rotates. In the first one, each also packs some
documents whose rows are all compared with them: no row has too much, and each token is in one row exactly once. Else the
packer is WRONG, and has no figures.

Packing is timed from the lengths of the documents until it is known which piece is in which row: of `tokmap rows` it is a
whole process, which reads the index and writes a rows file; of tokmap's Loader, until it is open. Rows of tokens, from the
beginning until all rows were handed out: by tokmap 64-bit inputs and labels, position_ids and cu_seqlens; by TRL a dataset
of input_ids and seq_lengths in a file; by Grain tokens, segment_ids and positions. For packers that do not cut documents
longer than a row, they were cut before. Imports are not timed. Memory is the most that a process has of its own, without
files that it maps, above what it had at the beginning."""

import argparse
import ctypes
import functools
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench"), str(ROOT / "python")]
from loader_adapter import variant  # noqa: E402
from loader_data import warm_up  # noqa: E402
from result_file import as_text, machine  # noqa: E402

SHARED = pathlib.Path(os.environ.get("TOKMAP_SHARED", ROOT.parent / "shared"))
PAGES, LENGTHS, BATCH_ROWS, CHECKED = ("web", "texts"), (2048, 4096, 8192), 32, 20000
MEDIAN, SIGMA, SEED = 400, 1.0, 20261123
WRONG, SPEED = "WRONG: ", "documents/s"
# The columns of the table: the unit, and whether it changes from round to round.
COLUMNS = {"documents": ("thousand", False), "packing": (SPEED, True), "rows of tokens": (SPEED, True),
           "padding": ("%", False), "memory": ("MiB", True), "labels lost": ("%", False)}


class Packer:
    """The first documents of those in `data`, in rows of `length`. run() sets n_rows, and how many seconds it took to pack,
    and to hand out all rows of tokens; None if it does not do that. pieces() is of a run with `checks`: the row of each
    piece, its first token, and how many it has.

    longer: tokens that the longest piece has more than a row has inputs; overlap: tokens that a piece has of the one before
    it, so that no label is lost; spared: tokens of a piece that need no room."""

    package, documents = None, 10**6  # at most
    longer = overlap = spared = memory = 0
    packing = handing_out = None

    def __init__(self, tokmap, data, length, scratch, n_documents, checks=False):
        self.tokmap, self.data, self.length, self.scratch, self.checks = tokmap, data, length, scratch, checks
        self.room = length + self.longer - self.spared
        self.lengths = numpy.load(data / "lengths.npy")[:n_documents]
        self.ends = numpy.cumsum(self.lengths)
        self.cut(length + self.longer)
        self.prepare()

    def cut(self, longest):
        """The first token of each piece, and their numbers of tokens."""
        n_pieces = -(-self.lengths // longest)
        at = longest * (numpy.arange(n_pieces.sum()) - numpy.repeat(numpy.cumsum(n_pieces) - n_pieces, n_pieces))
        self.first = numpy.repeat(self.ends - self.lengths, n_pieces) + at
        self.n = numpy.minimum(numpy.repeat(self.lengths, n_pieces) - at, longest)

    def ids(self):
        return numpy.memmap(self.data / "all.bin", numpy.int32, "r")

    def figures(self):
        """Tokens that need room, and labels."""
        return int((self.n - self.spared).sum()), int((self.n - 1).sum())


class TokmapLoader(Packer):
    longer, overlap, rows_file = 1, 1, None

    def prepare(self):
        from tokmap import Loader, Order, Source

        prefix, self.batches = str(self.data / ("check" if self.checks else "all")), []
        self.rows_command = [self.tokmap, "rows", "--json", "-l", str(self.length), prefix, "-o", self.scratch / "rows"]
        self.open = lambda: Loader(
            Source(prefix, rows_files=self.rows_file), self.length, batch_rows=BATCH_ROWS, windows="best_fit",
            outputs=["inputs", "labels", "position_ids", "cu_seqlens"], max_epochs=1, order=Order(drop_last=False))

    def pack(self):
        """The Loader does."""

    def run(self):
        begin = time.perf_counter()
        self.pack()
        loader = self.open()
        self.packing = self.packing or time.perf_counter() - begin
        self.n_rows = loader.n_samples
        for batch in loader:
            if self.checks:
                self.batches.append((batch.inputs, batch.labels))
        self.handing_out = time.perf_counter() - begin

    def figures(self):
        said = json.loads(subprocess.check_output(self.rows_command))
        assert said["n_rows"] == self.n_rows
        return said["n_labels"] + said["n_pieces"], said["n_labels"]

    def pieces(self):
        """What is between labels that do not count."""
        inputs, labels = (numpy.concatenate(arrays) for arrays in zip(*self.batches))
        counts = numpy.pad(labels >= 0, ((0, 0), (1, 1))).astype(numpy.int8)
        assert (labels == inputs + 1)[labels >= 0].all(), "a label is not the token after its input"
        (rows, begins), (_, ends) = numpy.nonzero(numpy.diff(counts) == 1), numpy.nonzero(numpy.diff(counts) == -1)
        assert (inputs[rows, begins] + ends - begins == labels[rows, ends - 1]).all(), "a piece has a gap"
        return rows, inputs[rows, begins], ends - begins + 1


class TokmapRows(TokmapLoader):
    """The command, and then a Loader with its file."""

    def pack(self):
        begin = time.perf_counter()
        process = subprocess.Popen(self.rows_command, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            self.memory = max(self.memory, own_memory(process.pid))
            time.sleep(0.001)
        self.packing, self.rows_file = time.perf_counter() - begin, self.scratch / "rows"


class Trl(Packer):
    package, documents, batch_size = "trl", 250000, 1000  # the default of Dataset.map

    def prepare(self):
        import datasets
        import pyarrow
        from trl.data_utils import pack_dataset

        datasets.disable_progress_bars()
        tokens = pyarrow.Array.from_buffers(pyarrow.int32(), int(self.ends[-1]), [None, pyarrow.py_buffer(self.ids())])
        lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, *self.ends.tolist()], pyarrow.int32()), tokens)
        self.dataset = datasets.Dataset(pyarrow.table({"input_ids": lists}), fingerprint="packers")
        self.pack_dataset = pack_dataset

    def run(self):
        begin = time.perf_counter()
        rows = self.pack_dataset(self.dataset, self.length, "bfd_split", {
            "batch_size": self.batch_size, "cache_file_name": f"{self.scratch}/{self.checks}.arrow"})
        self.handing_out = time.perf_counter() - begin
        self.n_rows, self.rows = len(rows), rows

    def pieces(self):
        rows = self.rows.with_format("numpy")[:]
        return pieces_of(zip(rows["input_ids"], rows["seq_lengths"]))


class Olmo(Packer):
    package, documents = "ai2-olmo-core", 250000

    def prepare(self):
        from olmo_core.data.utils import InstancePacker

        self.packer = InstancePacker(self.length)
        self.indices = numpy.stack([self.first, self.first + self.n], 1).astype(numpy.uint64)

    def run(self):
        begin = time.perf_counter()
        self.rows, self.sorted, _ = self.packer.pack_documents(self.indices)
        self.packing = time.perf_counter() - begin
        self.n_rows = len(self.rows)

    def pieces(self):
        first, end = self.sorted[numpy.concatenate(self.rows)].astype(numpy.int64).T
        return rows_of(self.rows), first, end - first


class Grain(Packer):
    package, documents, kind, n_bins = "grain", 20000, "BestFitPackIterDataset", 64

    def prepare(self):
        import grain

        ids = self.ids()
        pieces = grain.MapDataset.source([{"tokens": ids[first:first + n]} for first, n in zip(self.first, self.n)])
        self.dataset = getattr(grain.experimental, self.kind)(
            pieces.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)),
            length_struct={"tokens": self.length}, num_packing_bins=self.n_bins)

    def run(self):
        begin, self.n_rows, self.rows = time.perf_counter(), 0, []
        for row in self.dataset:
            self.n_rows += 1
            if self.checks:
                self.rows.append((row["tokens"], numpy.bincount(row["tokens_segment_ids"])[1:]))
        self.handing_out = time.perf_counter() - begin

    def pieces(self):
        return pieces_of((ids, n[n > 0]) for ids, n in self.rows)


class Bridge(Packer):
    """It counts inputs, of which a piece has one less than tokens. The module is loaded from its file, because the package
    imports others that must be compiled for a GPU."""

    package, documents, longer, spared = "megatron-bridge", 10000, 1, 1

    def prepare(self):
        folder = importlib.util.find_spec("megatron.bridge").submodule_search_locations[0]
        spec = importlib.util.spec_from_file_location("packing_utils", folder + "/data/datasets/packing_utils.py")
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.histogram = numpy.bincount(self.n - 1, minlength=self.length + 1).tolist()

    def run(self):
        begin = time.perf_counter()
        self.rows, _ = self.module.create_packing_strategy(self.histogram, self.length, "first_fit_decreasing")
        self.packing = time.perf_counter() - begin
        self.n_rows = len(self.rows)

    def pieces(self):
        """Its rows have lengths, for which any pieces may be taken."""
        n, first = numpy.concatenate(self.rows), numpy.empty(len(self.n), numpy.int64)
        first[numpy.argsort(n)] = self.first[numpy.argsort(self.n)]
        return rows_of(self.rows), first, n + 1


PACKERS = {
    "tokmap rows": TokmapRows,
    "tokmap Loader": TokmapLoader,
    "TRL bfd_split": Trl,
    "TRL bfd_split, batches of 100,000": variant(Trl, batch_size=100000),
    "OLMo-core fragment": Olmo,
    "Grain best fit, 64 bins": Grain,
    "Grain best fit, 1,024 bins": variant(Grain, n_bins=1024),
    "Grain first fit, 64 bins": variant(Grain, kind="FirstFitPackIterDataset"),
    "Megatron-Bridge first_fit_decreasing": Bridge,
}
LEFT_OUT = {"Megatron-core": "none in release 0.16.1, which spreads packed samples over ranks, but packs none"}


def rows_of(rows):
    """The row of each piece."""
    return numpy.repeat(numpy.arange(len(rows)), [len(row) for row in rows])


def pieces_of(rows):
    """The pieces of rows, of which each is its ids and the lengths of its pieces."""
    rows = [(ids, numpy.asarray(n), numpy.cumsum(n)) for ids, n in rows]
    assert all((numpy.diff(ids[end - k:end]) == 1).all() for ids, n, ends in rows for k, end in zip(n, ends)), "a gap"
    all_n = [n for _, n, _ in rows]
    return rows_of(all_n), numpy.concatenate([ids[ends - n] for ids, n, ends in rows]), numpy.concatenate(all_n)


def check(packer):
    packer.run()
    rows, first, n = (numpy.asarray(some, numpy.int64) for some in packer.pieces())
    assert packer.figures()[1] == (n - 1).sum() and len(numpy.unique(rows)) == packer.n_rows, "other figures"
    assert (numpy.bincount(rows, n - packer.spared) <= packer.room).all(), "a row has too much"
    order = numpy.argsort(first)
    first, end = first[order], (first + n)[order]
    document = numpy.searchsorted(packer.ends, first, "right")
    assert (end <= packer.ends[document]).all(), "a piece is of two documents"
    first += packer.overlap * (first > (packer.ends - packer.lengths)[document])
    assert first[0] == 0 and (first[1:] == end[:-1]).all() and end[-1] == packer.ends[-1], "a token is in no row, or twice"


def measure(tokmap, name, data, length, documents, scratch, checks):
    """In a process of its own."""
    kind = functools.partial(PACKERS[name], tokmap, pathlib.Path(data), length, pathlib.Path(scratch))
    packer = kind(min(PACKERS[name].documents, documents))
    ctypes.CDLL(None).malloc_trim(0)  # what preparing has left is not reused unseen
    before, begin = own_memory(os.getpid()), time.monotonic()
    packer.run()
    end, n_documents, (n_tokens, n_labels) = time.monotonic(), len(packer.lengths), packer.figures()
    seconds = {"packing": packer.packing, "rows of tokens": packer.handing_out}
    if checks:
        check(kind(min(CHECKED, n_documents), checks=True))
    return {"documents": n_documents / 1000, **{name: n_documents / value for name, value in seconds.items() if value},
            "padding": 100 * (1 - n_tokens / (packer.n_rows * packer.room)), "memory": packer.memory,
            "labels lost": 100 * (1 - n_labels / int(packer.ends[-1] - n_documents)),
            "before": before, "begin": begin, "end": end}


# ---- All processes ----


def own_memory(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024
    except (OSError, IndexError):
        return 0  # it has ended


def run(name, data, length, options, checks):
    """What measure() says in a process, or a text: why it does not."""
    with tempfile.TemporaryDirectory(dir=data) as scratch, tempfile.TemporaryFile("w+") as errors:
        asked = {"name": name, "data": str(data), "length": length, "documents": options.documents, "scratch": scratch,
                 "checks": checks}
        command = [sys.executable, __file__, "--tokmap", options.tokmap, "--measure", json.dumps(asked)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        samples = []
        while process.poll() is None:
            samples.append((time.monotonic(), own_memory(process.pid)))
            time.sleep(0.005)
        if process.returncode:
            errors.seek(0)
            return (errors.read().strip() or "it was killed").split("\n")[-1]
        said = json.load(process.stdout)
    most = max([memory for moment, memory in samples if said["begin"] <= moment <= said["end"]], default=0)
    return {**said, "memory": max(said["memory"], most - said["before"])}


def make(page, data, options):
    """The lengths, and datasets of all documents and of those that are checked."""
    import tokmap

    random = numpy.random.default_rng(SEED)
    if page == "web":
        lengths = numpy.maximum(random.lognormal(numpy.log(MEDIAN), SIGMA, options.documents), 2).astype(numpy.int64)
    else:
        real = []
        for name in ("novels", "tldr"):
            subprocess.run([options.tokmap, "pack", "-q", "--tokenizer", SHARED / "vocab/gpt2.tokenizer.json",
                            SHARED / f"text/{name}.jsonl.zst", "-o", data / name], check=True)
            real += [len(document) for document in tokmap.open(data / name)]
        lengths = random.choice(real, options.documents)
    numpy.save(data / "lengths.npy", lengths)
    for name, n_documents in (("check", CHECKED), ("all", len(lengths))):
        with tokmap.Writer(data / name, vocab_size=2**31) as writer:
            for end, n in zip(numpy.cumsum(lengths).tolist(), lengths[:n_documents].tolist()):
                writer.document(numpy.arange(end - n, end, dtype=numpy.uint32))
    warm_up([data])


def measure_page(page, data, options):
    """Its rows of the result."""
    values, left_out = {}, {}
    places = [(length, name) for length in options.lengths for name in options.packers]
    for number in range(options.rounds):
        say("%s: round %d" % (page, number + 1))
        turn = number * len(places) // options.rounds
        for place in (place for place in places[turn:] + places[:turn] if place not in left_out):
            said = run(place[1], data, place[0], options, number == 0)
            if isinstance(said, str):
                left_out[place] = WRONG * said.startswith("AssertionError") + said
            else:
                values.setdefault(place, []).append({key: float("%.6g" % value) for key, value in said.items()})
    for length, name in places:
        line, own = "%s: %s" % (f"{length:,}", name), values.get((length, name))
        head = {"page": page, "line": line, "system": name}
        if (length, name) in left_out:
            say("%s, %s: %s" % (page, line, left_out[length, name]))
            yield {**head, "name": line, "left_out": left_out[length, name]}
            continue
        for column, (unit, changes) in COLUMNS.items():
            if column in own[0]:
                some = [one[column] for one in own[:None if changes else 1]]
                group = {"group": "%s, %d, %s" % (page, length, column)} if unit == SPEED else {}
                yield {**head, "name": "%s, %s" % (line, column), "column": column, **group, "unit": unit,
                       "median": statistics.median(some), "values": some, **version_of(name)}
    yield from ({"page": page, "name": name, "system": name, "left_out": why} for name, why in LEFT_OUT.items())


def version_of(name):
    package = PACKERS[name].package
    return {"version": importlib.metadata.version(package)} if package else {}


def say(text):
    print("packers.py: " + text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--tokmap", type=pathlib.Path, required=True, help="the program; libtokmap.so is beside it")
    add("--pages", nargs="+", choices=PAGES, default=PAGES)
    add("--lengths", type=int, nargs="+", default=LENGTHS, help="of rows")
    add("--packers", nargs="+", choices=list(PACKERS), default=list(PACKERS))
    add("--documents", type=int, default=10**6, help="at most; slow packers get fewer [1000000]")
    add("--rounds", type=int, default=3)
    add("--dir", help="where data are made and removed again: 4 GB [$TMPDIR or /tmp]")
    add("--out", type=pathlib.Path, help="write all figures to this file, as JSON")
    add("--measure", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.tokmap = options.tokmap.absolute()
    os.environ.update(TOKMAP_LIBRARY=str(options.tokmap.parent / "libtokmap.so"), HF_HUB_OFFLINE="1")
    if options.measure:
        return print(json.dumps(measure(options.tokmap, **options.measure)))
    words = ["packers.py", "--documents %d --rounds %d" % (options.documents, options.rounds)]
    result = {"schema": 1, "command": " ".join(words), "machine": machine(), "rows": []}
    for page in options.pages:
        if page == "texts" and not SHARED.is_dir():
            say("texts: left out: there is no folder %s (TOKMAP_SHARED)" % SHARED)
            continue
        with tempfile.TemporaryDirectory(prefix="tokmap-packers-", dir=options.dir) as folder:
            say("%s: making %d documents" % (page, options.documents))
            make(page, pathlib.Path(folder), options)
            result["rows"] += measure_page(page, pathlib.Path(folder), options)
    for row in (row for row in result["rows"] if "left_out" not in row):
        print("%-6s %-70s %12.6g %s" % (row["page"], row["name"], row["median"], row["unit"]))
    if options.out:
        options.out.write_text(as_text(result))
    return any(row.get("left_out", "").startswith(WRONG) for row in result["rows"])


if __name__ == "__main__":
    sys.exit(main())

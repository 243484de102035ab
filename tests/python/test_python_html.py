#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: shares, lengths and texts, escaped, without scripts; cheap however many documents there are."""

import html.parser
import re
import shutil
import subprocess
import sys
import unittest.mock

from grouped import grouped
from package import BUILD, ROOT
from ref_protocol import run_in_folders

import numpy as np
import tokmap

IS_IMPORTED = "tokmap._tools.notebook" in sys.modules
NASTY = "<script>alert(1)</script> & \"q\" <img src=x onerror=y>"


class Parser(html.parser.HTMLParser):
    """The cells of all tables; every tag is closed and expected."""

    def __init__(self):
        super().__init__()
        self.open, self.cells = [], []

    def handle_starttag(self, tag, attributes):
        assert tag in ("div", "b", "table", "tr", "td", "span") and [name for name, _ in attributes] in ([], ["style"]), tag
        self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1] += data


def shown(value):
    """The cells by the names before them, and the HTML."""
    text = value._repr_html_()
    parser = Parser()
    parser.feed(text)
    assert not parser.open and len(text) < 40000, len(text)
    return dict(zip(parser.cells[::2], parser.cells[1::2])), text


def make(folder, name, texts):
    (folder / f"{name}.txt").write_text("\0".join(texts))
    subprocess.run([BUILD / "tokmap", "pack", f"{name}.txt", "--format", "text", "--separator", "\\0", "--tokenizer", "bytes", "-o",
                    name, "-q"], cwd=folder, check=True)
    return folder / name


def datasets_show_lengths_and_texts(folder):
    path = make(folder, "a", [NASTY, "x" * 10, "y" * 10, "z" * 3000])
    cells, text = shown(tokmap.open(path))
    assert cells["documents"] == "4" and cells["8 to 15"] == "50.0%" and cells["2,048 to 4,095"] == "25.0%", cells
    assert cells["16 to 31"] == "0.0%" and cells["0"].startswith(NASTY) and "<script" not in text and "<img" not in text
    assert cells["a.txt"] == "100.00%"
    with tokmap.Writer(folder / "plain", vocab_size=1000) as w:  # whose tokenizer nobody knows
        for i in range(5000):
            w.document(range(i % 7 * 100))
        w.end_input("<b>")
    cells, text = shown(tokmap.open(folder / "plain"))
    assert "lengths of 1,000 documents at random" in text and cells["1"] == " ".join(map(str, range(50))) + " …", cells
    assert cells["<b>"] == "100.00%" and "<b>&" not in text and "64 to 127" in cells
    for metadata in ({"tokenizer": "bytes"}, {"tokenizer": {"name": "bytes"}}):
        with tokmap.Writer(folder / "other", vocab_size=257, replace=True) as w:
            w.set_metadata(metadata)
            w.document([104, 105])
        assert shown(tokmap.open(folder / "other"))[0]["0"] == ("104 105" if metadata["tokenizer"] == "bytes" else "hi")
    for end in (".bin", ".tmi"):
        shutil.copy(str(path) + end, folder / ("copy" + end))
    both, _ = shown(tokmap.open([path, folder / "copy"]))
    assert both["documents"] == "8" and list(both.values()).count("50.00%") == 2, both
    with tokmap.Writer(folder / "empty", vocab_size=10):
        pass
    assert shown(tokmap.open(folder / "empty"))[0]["tokens"] == "0 (uint16)"
    closed = tokmap.open(path)
    closed.close()
    assert "closed" in shown(closed)[1]


def a_tokenizer_file_is_found_by_its_name(folder):
    sys.path.append(str(ROOT / "tests/pack"))
    import pack_corpus

    (folder / "v.json").write_text(pack_corpus.small_vocabulary())
    (folder / "t.txt").write_text("word word")
    subprocess.run([BUILD / "tokmap", "pack", "t.txt", "--tokenizer", "v.json", "-o", "t", "-q"], cwd=folder, check=True)
    assert shown(tokmap.open(folder / "t"))[0]["0"].startswith("word word")
    for other in (pack_corpus.small_vocabulary(specials=("<|endoftext|>", "<x>")), "{"):  # of another size, and damaged
        (folder / "v.json").write_text(other)
        assert re.fullmatch(r"[\d ]+", shown(tokmap.open(folder / "t"))[0]["0"])


def loaders_and_batches_show_sources_and_samples(folder):
    a, b = make(folder, "a", [NASTY * 20, "b" * 500]), make(folder, "b", ["c" * 900])
    with tokmap.Loader([(a, 0.75), (b, 0.25)], 32, 8, seed=1, outputs=["inputs", "cu_seqlens"]) as loader:
        cells, text = shown(loader)
        assert "lengths" not in text  # of one source only
        assert cells[str(a) + ".tmi"][:6] == "75.00%" if len(str(a)) < 56 else True
        before = loader.sample
        batch = next(loader)
        assert before == 0 and [cells[str(k)][:30] for k in range(3)] == [
            bytes(row[row < 256].astype(np.uint8).tolist()).decode()[:30] for row in batch.inputs[:3]]
        found, text = shown(batch)
        n = np.bincount(batch.source_ids, minlength=2)
        assert f"{n[0] / 8:.2%}" in text and [found[str(k)][:30] for k in range(3)] == [cells[str(k)][:30] for k in range(3)]
        assert found["inputs"] == "(8, 32), int64" and "32 to 63" in found
        import pickle
        assert "source 1" in shown(pickle.loads(pickle.dumps(batch)))[0]
    assert "closed" in shown(loader)[1]
    with tokmap.Loader(a, 64, windows="best_fit", max_epochs=1) as loader:
        cells, text = shown(loader)
        assert "lengths" in text
        piece = loader.pieces(0)[0]
        text = bytes(next(loader).rows[0].tokens[:min(piece.n_tokens, 30)].astype(np.uint8).tolist()).decode()
        assert cells["0"].startswith(text)
    path = make(folder, "r", [c * 12 for c in "123456"])
    for options in ({"random_offset": True}, {"windows": "best_fit"}):  # rows that wrap around, and of several documents
        with tokmap.Loader(tokmap.Source(path, documents=(1, 4)), 30, **grouped(max_epochs=1, seed=4, **options)) as loader:
            cells, text = shown(loader)
            tokens = next(loader).rows[0].tokens
            assert cells["0"] == tokmap.Tokenizer("bytes").decode(tokens) and not {*cells["0"]} & {*"156"}
            assert "lengths" not in text
    with tokmap.Loader([make(folder, "x", ["1234567"])], 4, outputs=[], max_epochs=1) as loader:
        shown(next(loader))


def bars(text):
    """How full each bar is that shows a part of something."""
    return [float(part) / 160 for part in re.findall(r"width:160\.0px;margin-right:8px;background:#8883.*?width:([0-9.]+)px", text)]


def parts_are_drawn_to_one_scale(folder):
    with tokmap.Writer(folder / "few", vocab_size=10) as w:
        for n in (8, 2, 90):
            w.document([1] * n)
            w.end_input(f"input {n}")
    data = tokmap.open(folder / "few")
    assert bars(shown(data)[1]) == [0.08, 0.02, 0.9]
    cells, text = shown(tokmap.View(data, keep=[True, True, False]))
    assert [round(part, 3) for part in bars(text)] == [0.667, 0.1] and cells["documents: 2"] == "66.67%"


def shards_are_named(folder):
    paths = [make(folder, name, texts) for name, texts in (("web", ["a" * 9] * 3), ("code", ["b" * 40]), ("books", ["c" * 80]))]
    with tokmap.Loader(paths[:2], 16) as loader:
        cells, text = shown(loader)
        assert "Loader of web and 1 more: " in repr(loader) and cells[f"{paths[0]}.tmi and 1 more"[-60:]].startswith("100.00%")
        assert "lengths of 4 documents of web and 1 more" in text and cells["8 to 15"] == "75.0%" and cells["32 to 63"] == "25.0%"
    with tokmap.Loader([(paths[:2], 0.9), (paths[2], 0.1)], 16) as loader:
        cells, text = shown(loader)
        assert "Loader of web and 2 more: " in repr(loader) and "lengths" not in text
        assert [round(part, 3) for part in bars(text)] == [0.9, 0.1]
    views = [tokmap.View(tokmap.open(path), keep=keep) for path, keep in ((paths[0], [1, 0, 1]), (paths[1], [0]), (paths[2], [1]))]
    with tokmap.Loader(views, 16) as loader:
        cells, text = shown(loader)
        assert "lengths of 3 documents of web and 2 more" in text and cells["8 to 15"] == "66.7%" and cells["32 to 63"] == "0.0%"
    many = [str(make(folder, f"m{i}", ["d" * 3] * (600 * i))) for i in (1, 2)]
    with tokmap.Loader(many, 16) as loader:
        assert "lengths of 1,000 documents at random of m1 and 1 more" in shown(loader)[1]


def padding_is_counted_and_not_drawn(folder):
    path = make(folder, "p", ["x" * 5, "y" * 9, "z" * 3])
    for options in ({"windows": "best_fit", "max_documents": 1}, {"windows": "best_fit", "max_documents": 1, "align": 8},
                    {"windows": "within_document"}):
        with tokmap.Loader(path, 32, 3, **grouped(max_epochs=1, pad_id=33, **options)) as loader:
            batch = next(loader)
            cells = {value for key, value in shown(batch)[0].items() if key.isdecimal()}
            end = "<eod>" if "align" in options else ""  # else it is a label only
            assert cells == {f"{c * n}{end} ({32 - n - bool(end)} of padding)" for c, n in zip("xyz", (5, 9, 3))}, cells
        assert "!" in shown(batch)[1]  # of a closed loader, which cannot be asked
    with tokmap.Loader(path, 64, 1, windows="best_fit", max_epochs=1, rows=tokmap.Rows(align=16)) as loader:  # also between documents
        row = shown(next(loader))[0]["0"]
        assert row.endswith(" (44 of padding)") and sorted(row.split(" (")[0].split("<eod>")) == ["", "xxxxx", "yyyyyyyyy", "zzz"], row
    for rank in range(2):  # a slice of a row, where padding is not looked for
        with tokmap.Loader(path, 32, 3, windows="within_document", max_epochs=1, ranks=tokmap.Ranks(rank=0, n_ranks=1, cp_rank=rank, cp_size=2)) as loader:
            cells = shown(next(loader))[0]
            assert all(len(cells[key]) == 16 for key in "012"), cells
    with tokmap.Loader(path, 16, 1) as loader:
        assert "of padding" not in shown(next(loader))[1]


def runs_and_reports_are_tables(folder):
    a, b = make(folder, "a", ["a" * 200]), make(folder, "b", ["b" * 300, "c" * 100])
    with tokmap.Loader([(a, 0.75), (b, 0.25)], 16, 4, ledger=folder / "run") as loader:
        for _ in range(3):
            next(loader)
    with tokmap.Loader([(a, 0.75), (b, 0.25)], 16, 2, ledger=folder / "run", ranks=tokmap.Ranks(rank=0, n_ranks=2)) as loader:
        loader.seek(8)
        for _ in range(2):
            next(loader)
    run = tokmap.Run(folder / "run", all_attempts=True)
    assert repr(run) == "<tokmap.Run: 4 steps, 2 ranks, up to sample 16, 1 attempt given up>"
    with unittest.mock.patch.object(tokmap.Run, "report", None):  # which would go through all documents
        cells, text = shown(run)
    assert cells["steps"] == "4" and cells["given up"] == "samples 8 to 12"
    assert cells[f"{a}.tmi"[-60:]] == "75.00%, 12 samples, epoch 1.00" and bars(text) == [0.75, 0.25], (cells, bars(text))
    killed = [tokmap.Loader(a, 16, 4, ledger=folder / "killed") for _ in range(3)]
    for loader, at in zip(killed, (0, 12, 8)):
        loader.seek(at)
        next(loader)
        loader._recorder.ledger.is_open = False
    assert repr(tokmap.Run(folder / "killed", 16)) == "<tokmap.Run: 4 steps, 1 rank, up to sample 16, 2 attempts given up>"
    report = run.report()
    cells, text = shown(report)
    assert [one.name for one in report] == [0, 1]
    total = sum(one.n_labels for one in report)
    assert f"{total:,} tokens that were labels" in text and bars(text) == [round(one.n_labels / total * 160, 1) / 160 for one in report]
    assert cells[f"0 {a}.tmi"[-60:]].endswith(f", {report[0].n_labels} tokens of 1 document"), cells
    assert "by input" in shown(run.report("input"))[1]
    assert set(shown(run.report("input"))[0]) == {"a.txt", "b.txt"}
    for by in ("source", "input"):  # each name stays with its share
        report = run.report(by)
        cells = shown(report)[0]
        report.reverse()
        assert shown(report)[0] == cells and list(shown(report)[0]) == list(cells)[::-1] != list(cells), (by, cells)
        del report[0]
        assert list(shown(report)[0]) == list(cells)[:1]
        report.append(tokmap._run.report.Share(None, 1, 1))
        assert list(shown(report)[0]) == [*list(cells)[:1], "(none)"]


def it_is_imported_only_when_asked_for(folder):
    assert not IS_IMPORTED


if __name__ == "__main__":
    sys.exit(run_in_folders("python_html_"))

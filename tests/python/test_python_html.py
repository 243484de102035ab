#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: shares, lengths and texts, escaped, without scripts; cheap however many documents there are."""

import html.parser
import re
import shutil
import subprocess
import sys

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


def it_is_imported_only_when_asked_for(folder):
    assert not IS_IMPORTED


if __name__ == "__main__":
    sys.exit(run_in_folders("python_html_"))

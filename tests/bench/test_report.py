#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/report.py: from result files, of this repository and made up, to a page and tables that say what the
files say, whatever is in them; a clear refusal of files that are not results or do not belong together."""

import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

from ref_protocol import Skip, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build")) / "report-venv/bin/python"  # of make bench
PYTHON = str(VENV) if VENV.exists() else sys.executable
HAS_CHARTS = not subprocess.run([PYTHON, "-c", "import matplotlib"], capture_output=True).returncode
RESULTS = sorted((ROOT / "bench/results").glob("*-epyc-2core.json"))  # one machine, as a page needs
MACHINE = {"cpu": "Some CPU", "processors": 2, "memory_gib": 23.5, "kernel": "6.18", "architecture": "x86_64"}
HOSTILE = "</title></svg><script>alert(1)</script> & \"'|`_*[x](http://evil)\\ $x^2$ \x01\x00\u202e\ufffe"


def report(*arguments, **environment):
    return subprocess.run([PYTHON, str(ROOT / "bench/report.py"), *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})


def row(page, name, unit, values, **more):
    return {"page": page, "name": name, "unit": unit, "median": sorted(values)[len(values) // 2], "values": values,
            **more}


def result(rows, **more):
    return {"schema": 1, "tokmap": "0.1.0", "command": "tokbench some", "machine": MACHINE, "rows": rows, **more}


def write(path, what):
    path.write_text(what if isinstance(what, str) else json.dumps(what))
    return path


def make(folder, *files, more=()):
    """(the page as elements, as text, the Markdown)"""
    run = report(*files, "-o", folder / "r.html", "--markdown", *more)
    assert run.returncode == 0 and not run.stderr, run.stderr
    text = (folder / "r.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    return xml.fromstring(text), text, run.stdout


def made(folder, document):
    return make(folder, write(folder / "made.json", document))


def text_of(element):
    return "".join(element.itertext())


def need_charts():
    if not HAS_CHARTS:
        raise Skip("there is no matplotlib; make bench installs it")


# ---- Tables ----


def number(value):
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e15 else f"{value:.3g}"


def shown_rows(document):
    """(name, median, range) of each figure of a file; compare.py has up to four a row."""
    for line in document["rows"]:
        own = [("", line)] if "tokenizer" not in line else [
            (("tokmap / " if kind.endswith("ratio") else ""), line[kind])
            for kind in ("cold", "cold_ratio", "warm", "warm_ratio") if kind in line]
        for before, figure in [] if "left_out" in line else own:
            name = line["name"] if "name" in line else (f"{line['tokenizer']}, {line['text']}: "
                                                        f"{before}{line['system']}")
            values = figure["values"]
            yield name, number(figure["median"]), f"{number(min(values))} .. {number(max(values))}"


def table_rows(page):
    """(name, median, range) from all tables of figures of a page."""
    for table in page.iter("table"):
        heads = [text_of(th) for th in table.find("thead/tr")]
        for line in table.find("tbody") if "what" in heads else ():
            cells = dict(zip(heads, map(text_of, line)))
            yield cells["what"], cells["median"], cells["min .. max"]


def markdown_rows(markdown):
    """{column: text} of each row."""
    heads = None
    for line in markdown.split("\n"):
        cells = [re.sub(r"^\*\*(.*)\*\*$", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        cells = [html.unescape(re.sub(r"\\(.)", r"\1", cell)) for cell in cells]
        if not cells:
            heads = None
        elif heads is None:
            heads = cells
        elif not line.startswith("| --- "):
            yield dict(zip(heads, cells))


def every_figure_of_every_result_is_shown(folder):
    page, text, markdown = make(folder, *RESULTS)
    documents = [json.loads(path.read_text()) for path in RESULTS]
    expected = sorted(figure for document in documents for figure in shown_rows(document))
    assert len(expected) > 400 and sorted(table_rows(page)) == expected
    assert sorted((row["what"], row["median"], row["min .. max"]) for row in markdown_rows(markdown)) == expected
    shown = text_of(page)
    for line in (line for document in documents for line in document["rows"]):
        assert line.get("left_out", "") in shown and line.get("note", "") in shown, line


def cells_say_targets_and_limits(folder):
    rows = [row("p", "plain", "us", [6, 4, 5]), row("p", "ours", "us", [10, 8, 9], limit="plain", fraction=.5556),
            row("p", "goal", "x", [2], limit="a law", target={"at_least": 3, "reached": False})]
    _, _, markdown = made(folder, result(rows))
    cells = {line["what"]: (line["of its limit"], line["target"]) for line in markdown_rows(markdown)}
    assert cells == {"plain": ("", ""), "ours": ("55.6 % of plain", ""),
                     "goal": ("a law", "at least 3 x: not reached")}, cells


# ---- Page ----


def the_page_opens_with_what_was_found(folder):
    """What is good, what is missed and why, in words; and whether the machine was busy."""
    rows = [row("load", "zero-copy sample, 4096 tokens", "ns", [30], target={"at_most": 40, "reached": True}),
            row("verify", "verify / read, one thread each", "x", [.6], target={"at_least": .8, "reached": False}),
            row("p", "another", "x", [2], target={"at_most": 1, "reached": False})]
    page, text, _ = made(folder, result(rows, busy={"steal_percent": 7, "others_percent": 2}))
    said = " ".join(text_of(p) for p in page.iter("p"))
    assert "hands out a sample in 30 ns" in said and "It reaches 1 of 3 targets." in said, said
    assert re.search("1 because verify also computes .*; 1 because the machine was busy", said), said
    assert "other virtual machines took 7 %" in said and "other programs" not in said, said
    assert ["verify / read, one thread each", "another"] == [
        text_of(th) for th in page.iter("th") if th.get("scope") == "row"][:2]
    idle = made(folder, result(rows))[1]
    assert "busy" not in idle and "1 for no known reason" in idle
    assert "GPU path is not measured" in text and "GPU path" not in made(folder, result([row("gpu", "a", "x", [1])]))[1]


def without_matplotlib_there_are_tables(folder):
    write(folder / "matplotlib.py", "raise ImportError")
    path = write(folder / "made.json", result([row("p", f"a{i}", "GB/s", [1]) for i in range(2)]))
    run = report(path, "-o", "-", PYTHONPATH=str(folder))
    assert run.returncode == 0 and "pip install -r bench/requirements.txt" in run.stdout, run
    assert "<svg" not in run.stdout and run.stdout.count(">GB/s</td>") == 2


def paths_of(svg, colour):
    """(left, right) of shapes that are filled with the colour, from top to bottom."""
    for path in svg.iter("path"):
        if f"fill: var(--{colour})" in path.get("style", ""):
            xs = [float(x) for x in re.findall(r"[ML] ([0-9.]+) ", path.get("d"))]
            yield min(xs), max(xs)


def bars_are_sorted_linear_and_have_ratios(folder):
    need_charts()
    page, _, _ = made(folder, result([row("p", name, "tokens/s", values, group="g", system=name) for name, values in
                                      (("slow", [1e3] * 3), ("tokmap", [2e3] * 3), ("fast", [2e3, 3e3, 4e3]))]))
    svg = next(page.iter("svg"))
    assert [text_of(e) for e in svg.iter("text")] == ["fast", "3,000", "1.5 x", "tokmap", "2,000", "1 x",
                                                      "slow", "1,000", "0.5 x"]
    assert [round(right) for _, right in paths_of(svg, "peer")] == [270, 90]  # of 360 for the largest round
    assert [round(right) for _, right in paths_of(svg, "ours")] == [180]


def each_question_has_its_charts(folder):
    need_charts()
    rows = [row("load", f"{name}, {n} tokens", "GB/s", [n], group=f"hot, {n} tokens", system=name)
            for n in (1024, 4096) for name in ("tokmap", "memcpy")]
    rows += [row("stall", f"cold, map, {ms} ms, p99", "us", [9e4], column="p99", line="cold, map") for ms in (5, 20)]
    rows += [row("start", f"open, 10^{k} tokens", "us", [k], x=10 ** k, target={"at_most": 100, "reached": True})
             for k in (6, 9)]
    page, _, _ = made(folder, result(rows))
    captions = [text_of(e) for e in page.iter("figcaption")]
    assert captions == ["hot, 4096 tokens: GB/s; x: of tokmap", "stall: us", "start: us, by tokens"], captions
    texts = [[text_of(e) for e in svg.iter("text")] for svg in page.iter("svg")]
    assert "90,000" in texts[1] and "6 \u2026 9  open" in texts[2] and "target: at most 100" in texts[2], texts
    assert [text_of(e) for e in page.iter("dt")][:3] == ["hot", "cold", "direct, populate, read, map"]


def names_cannot_break_out_and_nothing_comes_from_outside(folder):
    clean = HOSTILE.translate({1: "\ufffd", 0: "\ufffd", 0x202e: "\ufffd", 0xfffe: "\ufffd"})
    rows = [row(HOSTILE, HOSTILE + f" {i}", "GB/s", [5, 6, 7], system=f"tokmap {i} " + HOSTILE, group=HOSTILE,
                limit=HOSTILE, note=HOSTILE) for i in range(3)]
    rows += [row("start", f"{HOSTILE}, 10^{k} tokens", "ms", [k], x=10 ** k) for k in (6, 9)]
    page, text, markdown = made(folder, result(rows, command=HOSTILE, tokmap=HOSTILE,
                                               machine=MACHINE | {"cpu": HOSTILE, "gpu": HOSTILE}))
    assert "<script" not in text + markdown and not re.search("[\0-\x09\x0b-\x1f\u202e]", text + markdown)
    assert [line[0] for line in table_rows(page)].count(clean + " 0") == 1
    assert [line["what"] for line in markdown_rows(markdown)].count(clean + " 0") == 1
    for element in page.iter():
        assert element.tag not in ("script", "link", "img", "iframe", "object", "base"), element
        for name, value in element.attrib.items():
            assert not name.startswith("on") and name not in ("src", "srcset", "action"), name
            assert not name.endswith("href") or value.startswith("#"), value
    style = text_of(page.find("head/style"))
    assert "url(" not in style and "@import" not in style
    ids = [e.get("id") for e in page.iter() if e.get("id")]
    assert len(ids) == len(set(ids))


def strange_figures_are_drawn(folder):
    """Nothing, less than nothing, and what has hundreds of digits, in every kind of chart."""
    need_charts()
    for values in ([0], [-1, 0, 1], [1e-320, 1e308], [5e-324], [1e300, 1e300]):
        rows = [row("p", f"rate {i}", "GB/s", values, limit="rate 0", system="tokmap") for i in range(2)]
        rows += [row("stall", f"x{i}, p99", "us", values, column="p99") for i in range(2)]
        rows += [row("start", f"open, 10^{k} tokens", "ms", values, x=10 ** k) for k in (6, 9)]
        _, text, _ = made(folder, result(rows))
        assert not re.search(r"[ \"](nan|-?inf)", text), values


def same_files_same_bytes(folder):
    first, second = (report(*RESULTS[:4], "-o", "-") for _ in range(2))
    assert first.returncode == 0 and first.stdout == second.stdout and len(first.stdout) > 50000
    assert str(ROOT) not in first.stdout and "bench/results" not in first.stdout


def machines_are_kept_apart(folder):
    one = write(folder / "one.json", result([row("p", "a", "GB/s", [1])]))
    other = result([row("p", "c", "GB/s", [3])], machine=MACHINE | {"cpu": "Another CPU"})
    two = write(folder / "two.json", other)
    run = report(one, two, "-o", folder / "r.html")
    assert run.returncode == 3 and not (folder / "r.html").exists()
    for part in ("one.json", "two.json", "Some CPU", "Another CPU", "--by-machine"):
        assert part in run.stderr, run.stderr
    page, _, _ = make(folder, one, two, more=["--by-machine"])
    headings = [text_of(e) for e in page.iter("h2")]
    assert len(headings) == 2 and "Some CPU" in headings[0] and "Another CPU" in headings[1]
    # A field that tokbench does not know is not a reason, and a file need not name the GPU ...
    for more in ({"python": "3.11"}, {"gpu": "H200"}):
        write(two, other | {"machine": MACHINE | more})
        assert report(one, two, "-o", "-").returncode == 0, more
    # ... but two of them are two machines, whatever is between them.
    three = write(folder / "three.json", other | {"machine": MACHINE | {"gpu": "A100"}})
    assert report(two, one, three, "-o", "-").returncode == 3


# ---- What is refused ----


def refusals(document):
    """(what is wrong with it, a part of the message)"""
    def with_row(**more):
        return document | {"rows": [document["rows"][0] | more]}

    text = json.dumps(document)
    yield "", "line 1 column 1"
    yield "[]", "this program reads an object"
    yield "\xff", "can't decode byte"
    yield text + "x", "line 1 column "
    yield document | {"schema": 2}, "\"schema\": 1"
    for key in ("schema", "command", "machine", "rows"):
        yield {name: value for name, value in document.items() if name != key}, f"no field \"{key}\""
    yield document | {"machine": {}}, "machine: no field \"cpu\""
    for key in ("page", "name", "unit", "median", "values"):
        yield with_row(**{key: None}), f"row 1: no field \"{key}\""
    yield document | {"rows": []}, "no row"
    yield document | {"rows": {}}, "\"rows\" is not an array"
    yield document | {"rows": [1]}, "row 1: an object was expected"
    yield with_row(values=["1"]), "row 1: no field \"values\" with only numbers"
    yield with_row(median=50), "row 1: the median 50"
    yield with_row(median=True), "row 1: \"median\" is not a number"
    yield text.replace('"median": 6', '"median": NaN'), "\"median\" is too large"
    yield with_row(x=-5), "\"x\""
    yield with_row(target={"at_least": 3}), "row 1: a target needs"
    yield document | {"rows": [{"tokenizer": "t", "text": "x", "system": "other"}]}, "row 1: no field \"cold\""
    yield "[" * 100000, "recursion"


def what_is_no_result_is_refused(folder):
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    bad = folder / "bad.json"
    for what, message in refusals(json.loads(good.read_text())):
        write(bad, what) if not isinstance(what, str) else bad.write_bytes(what.encode("latin-1"))
        run = report(good, bad, "-o", folder / "r.html", "--markdown")
        assert run.returncode == 3 and not run.stdout, (str(what)[:80], run)
        assert "bad.json: " in run.stderr and run.stderr.count("\n") == 1, run.stderr
        assert message in run.stderr and not (folder / "r.html").exists(), (message, run.stderr)
    run = report(folder / "absent.json", "-o", "-")
    assert run.returncode == 3 and "absent.json: No such file" in run.stderr, run


def usage_is_told(folder):
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    (folder / "twin").mkdir()
    os.link(good, folder / "link")
    for wrong in ([], [good], ["-o", "-"], [good, "--what", "-o", "-"], [good, "-o", "-", "--markdown"],
                  [good, "-o", good], [good, "-o", folder / "link"],
                  [good, write(folder / "twin/good.json", good.read_text()), "-o", "-"]):
        run = report(*wrong)
        assert run.returncode == 2 and "usage: " in run.stderr and not run.stdout, (wrong, run)
    run = report(good, "-o", folder / "absent" / "r.html")
    assert run.returncode == 1 and "No such file" in run.stderr, run
    assert report("--help").returncode == 0


def no_other_file_is_written_into(folder):
    """Another name of somebody's file, as the output or as what it is called on the way."""
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    for link, name in ((os.link, "r.html"), (os.symlink, "r.html"), (os.link, "r.html.partial")):
        (folder / "victim").write_text("not ours")
        link(folder / "victim", folder / name)
        report(good, "-o", folder / "r.html")
        assert (folder / "victim").read_text() == "not ours", (link, name)
        for path in folder.glob("r.html*"):
            path.unlink()
    (folder / "full").symlink_to("/dev/full")  # a mistake would replace the link, not the device
    assert report(good, "-o", folder / "full").returncode == 1 and (folder / "full").is_symlink()


def the_commands_of_the_document_work(folder):
    """The commands of bench/results/README.md, on copies of the results."""
    block = re.search(r"^```sh\n(bench/report.py.*?)^```", (ROOT / "bench/results/README.md").read_text(), re.M | re.S)[1]
    shutil.copytree(ROOT / "bench", folder / "bench")
    subprocess.run(["bash", "-ec", block], cwd=folder, check=True, capture_output=True)
    assert (folder / "report.html").stat().st_size > 1e5
    assert (folder / "bench/results/README.md").read_text() == (ROOT / "bench/results/README.md").read_text()


sys.exit(run_in_folders("report_"))

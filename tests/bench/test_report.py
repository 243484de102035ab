#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/report.py: from result files, those of this repository and made ones, to a page and tables that say what the
files say, whatever is in them; a clear refusal of what is no result or does not belong together; two runs compared."""

import copy
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

from ref_protocol import run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPORT = [sys.executable, str(ROOT / "bench/report.py")]
RESULTS = sorted((ROOT / "bench/results").glob("*-epyc-2core.json"))  # one machine, as a page needs
MACHINE = {"cpu": "Some CPU", "processors": 2, "memory_gib": 23.5, "kernel": "6.18",
           "architecture": "x86_64"}
GPU_MISSING = "The GPU path is unmeasured here"
HOSTILE = "</title></svg><script>alert(1)</script> & \"'|`_*[x](http://evil)\\ \x01\x00\u202e\ufffe"


def report(*arguments):
    return subprocess.run([*REPORT, *arguments], capture_output=True, text=True)


def row(page, name, unit, values, **more):
    return {"page": page, "name": name, "unit": unit, "median": sorted(values)[len(values) // 2],
            "values": values, **more}


def result(rows, **more):
    return {"schema": 1, "tokmap": "0.1.0", "command": "tokbench some", "machine": MACHINE,
            "rows": rows, **more}


def write(path, what):
    path.write_text(what if isinstance(what, str) else json.dumps(what))
    return path


def stall_rows(page, name, figures, **more):
    return [row(page, f"{name}, {word}", "us", [value, value * 1.1, value * 0.9], line=name,
                column=word, **more)
            for word, value in zip(("p50", "p99", "p99.9", "max"), figures)]


def hour_of_pages():
    """A file as a run of every page leaves one."""
    rows = [row("limits", "memcpy, one thread, huge pages", "GB/s", [18.5, 17.0, 19.1])]
    for kib in (2, 8, 16):
        rows += [row("limits", f"gather of rows of {kib} KiB, {kind}", "GB/s", [s, s * .9, s * 1.1],
                     group="random gather, GB/s", system=kind, x=kib * 1024, x_unit="bytes a row")
                 for kind, s in (("4 KiB pages", 7 + kib / 2), ("file map", 9 + kib / 2))]
    for bytes_ in (4096, 65536, 1048576):
        rows.append(row("limits", f"page faults, {bytes_} bytes", "us", [bytes_ / 9e3] * 3,
                        group="page faults", x=bytes_, x_unit="bytes"))
    for name, speed in (("tokmap, gather", 7.1e9), ("llm.c, made again", 4.1e9),
                        ("DataLoader, 0 workers, one item at a time and the default collate", 3e8),
                        ("nanoGPT get_batch", 8.1e7), ("Megatron GPTDataset", 3.3e7)):
        rows.append(row("peers-load", f"{name}, u16, 1024 tokens", "tokens/s",
                        [speed, speed * .8, speed * 1.3], group="hot, u16, 1024 tokens",
                        system=name, version="1.2", note="as it is used"))
    rows.append({"page": "peers-load", "system": "HDF5", "group": "hot, u16, 1024 tokens",
                 "left_out": "not installed"})
    rows.append(row("load", "batch gathered, u16, 16 KiB", "GB/s", [16, 15.5, 16.6],
                    limit="gather of rows of 16 KiB, file map", fraction=.9412))
    rows.append(row("load", "sample", "us", [0.03], limit="locate"))
    rows.append(row("start", "locate", "us", [0.015]))
    rows.append(row("load", "of something else", "us", [0.03], limit="nothing that is here"))
    for k in range(6, 14):
        for name, at, slope in (("tokmap", 51, 0), ("Megatron", 40, k - 6)):
            value = at * 10 ** (slope / 2)
            rows.append(row("start", f"open, 10^{k} tokens, {name}", "us", [value, value * 1.4],
                            group="opening, and the first batch", system=name, x=10 ** k,
                            target={"at_most": 1e4, "reached": value * 1.4 <= 1e4}))
        rows.append(row("start", f"memory, 10^{k} tokens", "KiB", [3.37, 3.37, 3.37], x=10 ** k))
    for ms in (5, 20, 100):
        rows += stall_rows("stall", f"hot, map, {ms} ms", (0.9, 3.1, 12 + ms, 95),
                           group=f"waiting for a batch, steps of {ms} ms")
        rows += stall_rows("stall", f"cold, direct, {ms} ms", (0, 140, 600, 8100),
                           group=f"waiting for a batch, steps of {ms} ms")
    rows.append(row("mix", "128 sources, u64 weights, sample", "ns", [55, 54, 58], x=128,
                    x_unit="sources", group="mixture: sample"))
    rows.append(row("mix", "2 sources, u64 weights, sample", "ns", [41, 42, 43], x=2,
                    x_unit="sources", group="mixture: sample"))
    rows.append(row("pack", "tokmap pack / its slowest stage", "x", [.81, .6, .87],
                    target={"at_least": .8, "reached": True}))
    return result(rows)


# ---- What a figure should look like ----


def number(value):
    if 999.5 <= abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def shown_rows(document):
    """(name, median, range) of each figure of a file; those of compare.py have up to four a row."""
    for line in document["rows"]:
        if "left_out" in line:
            continue
        if "tokenizer" not in line:
            yield line["name"], number(line["median"]), values_range(line)
            continue
        place = f"{line['tokenizer']}, {line['text']}: "
        for kind in ("cold", "cold_ratio", "warm", "warm_ratio"):
            if kind in line:
                before = "tokmap / " if kind.endswith("ratio") else ""
                yield (place + before + line["system"], number(line[kind]["median"]),
                       values_range(line[kind]))


def values_range(line):
    return f"{number(min(line['values']))} .. {number(max(line['values']))}"


def text_of(element):
    return "".join(element.itertext())


def table_rows(page):
    """(name, median, range) from all tables of figures of a page."""
    for table in page.iter("table"):
        if table.find("caption") is None:
            continue
        heads = [text_of(th) for th in table.find("thead/tr")]
        for line in table.find("tbody"):
            cells = dict(zip(heads, [text_of(cell) for cell in line]))
            yield cells["what"], cells["median"], cells["min .. max"]


def markdown_cells(line):
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    cells = [re.sub(r"^\*\*(.*)\*\*$", r"\1", cell) for cell in cells]
    return [html.unescape(re.sub(r"\\(.)", r"\1", cell)) for cell in cells]


def markdown_rows(markdown):
    """{column: text} of each row, with the title of its table as the page."""
    title, heads = "", None
    for line in markdown.split("\n"):
        if line.startswith("**"):
            title = line.strip("*")
        elif not line.startswith("|"):
            heads = None
        elif heads is None:
            heads = markdown_cells(line)
        elif not line.startswith("| --- "):
            cells = markdown_cells(line)
            assert len(cells) == len(heads), line
            yield {"page": title, **dict(zip(heads, cells))}


def section(page, title):
    """All elements between the heading and the next of its kind."""
    inside = False
    for element in page.iter():
        if element.tag in ("h2", "h3"):
            inside = text_of(element) == title
        if inside:
            yield element


def count(page, title, tag, class_):
    return sum(element.tag == tag and class_ in element.get("class", "").split()
               for element in section(page, title))


def make(folder, *files, more=()):
    """(the page as elements, as text, the Markdown)"""
    run = report(*files, "-o", folder / "r.html", "--markdown", *more)
    assert run.returncode == 0, run.stderr
    text = (folder / "r.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    return xml.fromstring(text), text, run.stdout


def made(folder, document, name="made.json"):
    return make(folder, write(folder / name, document))


# ---- Tests ----


def every_figure_of_every_result_is_shown(folder):
    page, _, markdown = make(folder, *RESULTS)
    documents = [json.loads(path.read_text()) for path in RESULTS]
    expected = [figure for document in documents for figure in shown_rows(document)]
    assert len(expected) > 400 and sorted(table_rows(page)) == sorted(expected)
    for document in documents:
        for line in document["rows"]:
            assert line.get("left_out", "") in text_of(page)
            assert line.get("note", "") in text_of(page)
    assert GPU_MISSING in text_of(page)
    cells = [(row["what"], row["median"], row["min .. max"]) for row in markdown_rows(markdown)]
    assert sorted(cells) == sorted(expected)


def markdown_says_what_the_json_says(folder):
    document = hour_of_pages()
    _, _, markdown = made(folder, document)
    cells = list(markdown_rows(markdown))
    pages = [line["page"] for line in document["rows"]]
    rows = sorted((line for line in document["rows"] if "left_out" not in line),
                  key=lambda line: pages.index(line["page"]))
    assert len(cells) == len(rows)
    for cell, line in zip(cells, rows):
        assert (cell["page"], cell["what"]) == (line["page"], line["name"])
        assert (cell["median"], cell["unit"]) == (number(line["median"]), line["unit"]), cell
        assert cell["min .. max"] == values_range(line), (cell, line)
        assert cell.get("system", "") == line.get("system", "")
        target = line.get("target")
        assert cell.get("target", "") == ("" if not target else
                                          ("at least " if "at_least" in target else "at most ") +
                                          number(target.get("at_least", target.get("at_most"))) +
                                          f" {line['unit']}: " +
                                          ("reached" if target["reached"] else "not reached")), cell
    limits = {cell["what"]: cell["of its limit"] for cell in cells if "of its limit" in cell}
    assert limits["batch gathered, u16, 16 KiB"] == "94.1 % of gather of rows of 16 KiB, file map"
    assert limits["sample"] == "50 % of locate"  # a time, worked out from the medians
    assert limits["of something else"] == "nothing that is here: not in this run"
    assert "- HDF5: left out: not installed (hot, u16, 1024 tokens)" in markdown


def each_section_has_its_drawings(folder):
    page, text, _ = made(folder, hour_of_pages())
    figures = {"Throughput by system": ("bars", 5), "Latency": ("dots", 3),
               "Starting up, by the size of the corpus": ("lines", 2), "By size": ("lines", 2),
               "Part of the machine's limit": ("bars", 2), "Stall of a training step": ("bars", 3)}
    for title, (kind, n) in figures.items():
        assert count(page, title, "svg", kind) == n, (title, count(page, title, "svg", kind))
    assert count(page, "Throughput by system", "rect", "ours") == 1
    assert count(page, "Throughput by system", "rect", "peer") == 4
    assert count(page, "Part of the machine's limit", "path", "reference") == 3
    assert count(page, "Stall of a training step", "path", "target") == 6
    assert "absent" not in [e.get("class") for e in section(page, "Latency")]
    assert GPU_MISSING in text


def bars_are_as_long_as_their_figures(folder):
    """On the logarithmic scale that the labels below them say."""
    document = result([row("p", "tokmap one", "tokens/s", [1e3] * 3, group="g", system="tokmap"),
                       row("p", "other", "tokens/s", [1e2, 10, 1e4], group="g", system="other")])
    page, _, _ = made(folder, document)
    svg = next(page.iter("svg"))
    ours, other = [float(e.get("width")) for e in svg.iter("rect")
                   if "bar" in e.get("class").split()]
    ticks = [text_of(e) for e in svg.iter("text") if e.get("class") == "tick"]
    assert ticks == ["1", "10", "100", "1,000", "10,000"], ticks
    assert abs(ours - 360 * 3 / 4) < 0.1 and abs(other - 360 / 2) < 0.1
    whisker = [e.get("d") for e in svg.iter("path") if e.get("class") == "whisker"]
    assert len(whisker) == 1 and whisker[0].startswith("M90.0 ") and "H360.0" in whisker[0]


def what_is_missing_is_said(folder):
    page, text, _ = made(folder, result([row("verify", "reading", "KiB", [3])]))
    for command in ("tokbench load", "tokbench stall", "tokbench start", "tokbench limits load",
                    "make bench-gpu"):
        assert f"<code>{command}</code>" in text, command
    assert not list(page.iter("svg")) and GPU_MISSING in text
    for gpu in ({"group": "gpu, stall"}, {"page": "gpu"}):
        _, text, _ = made(folder, result([row("load", "p99", "us", [30]) | gpu]))
        assert GPU_MISSING not in text, gpu
    _, text, _ = made(folder, result([row("load", "cuda p99", "us", [30])]))
    assert GPU_MISSING in text


def missed_targets_come_first(folder):
    rows = [row("p", f"figure {i}", "ns", [value], target={"at_most": 10, "reached": value <= 10})
            for i, value in enumerate((5, 10, 11))]
    page, text, _ = made(folder, result(rows))
    assert "Targets: 2 of 3 reached" in text
    missed = [text_of(e) for e in section(page, "Targets: 2 of 3 reached") if e.tag == "th"
              and e.get("scope") == "row"]
    assert missed == ["figure 2"]


def nothing_comes_from_outside(folder):
    documents = [hour_of_pages(), result([row(HOSTILE, HOSTILE, HOSTILE, [1, 2, 3])])]
    for i, document in enumerate(documents):
        page, text, _ = made(folder, document, f"{i}.json")
        for element in page.iter():
            assert element.tag not in ("script", "link", "img", "iframe", "object", "base"), element
            for name, value in element.attrib.items():
                assert not name.startswith("on"), name
                assert name not in ("src", "srcset", "action") and not name.endswith("}href"), name
                assert name != "href" or value.startswith("#"), value
        style = text_of(page.find("head/style"))
        assert "url(" not in style and "@import" not in style
        ids = [e.get("id") for e in page.iter() if e.get("id")]
        assert len(ids) == len(set(ids))


def hostile_names_cannot_break_out(folder):
    clean = HOSTILE.translate({1: "\ufffd", 0: "\ufffd", 0x202e: "\ufffd", 0xfffe: "\ufffd"})
    rows = [row(HOSTILE, HOSTILE + f" {i}", "GB/s", [5, 6, 7], system="tokmap " + HOSTILE,
                group=HOSTILE, limit=HOSTILE) for i in range(3)]
    rows += stall_rows("stall", HOSTILE, (1, 2, 3, 4), note=HOSTILE, system=HOSTILE)
    rows += [row("start", f"{HOSTILE}, 10^{k} tokens", "ms", [k], x=10 ** k) for k in (6, 9)]
    document = result(rows, command=HOSTILE, tokmap=HOSTILE,
                      machine=MACHINE | {"cpu": HOSTILE, "kernel": HOSTILE, "gpu": HOSTILE})
    page, text, markdown = made(folder, document)
    assert "<script" not in text and not re.search("[\0-\x09\x0b-\x1f\u202e]", text)
    assert [r[0] for r in table_rows(page)].count(clean + " 0") == 1
    assert len(list(page.iter("svg"))) >= 4
    assert "<script" not in markdown and "\0" not in markdown
    assert [row["what"] for row in markdown_rows(markdown)].count(clean + " 0") == 1
    compared = report("--compare", folder / "made.json", folder / "made.json")
    assert compared.returncode == 0 and "\0" not in compared.stdout and "\u202e" not in compared.stdout


def strange_figures_are_drawn(folder):
    """Nothing, less than nothing, and what has hundreds of digits, in every kind of drawing."""
    for values in ([0], [-1, 0, 1], [1e-320, 1e308], [5e-324], [1e300, 1e300]):
        rows = [row("p", f"rate {i}", "GB/s", values, limit="rate 0") for i in range(2)]
        rows += [row("stall", f"x, {word}", "us", values, line="x", column=word) for word in ("p50", "p99")]
        rows += [row("start", f"open, 10^{k} tokens", "ms", values, x=10 ** k) for k in (6, 9)]
        rows += [row("p", "a / b", "x", [max(values)], target={"at_least": 0, "reached":
                                                               max(values) >= 0})]
        _, text, _ = made(folder, result(rows))
        assert not re.search(r"[ \"](nan|-?inf)", text), values


def same_files_same_bytes(folder):
    first, second = (report(*RESULTS, "-o", "-") for _ in range(2))
    assert first.returncode == 0 and first.stdout == second.stdout and len(first.stdout) > 100000
    assert str(ROOT) not in first.stdout and "bench/results" not in first.stdout


def machines_are_kept_apart(folder):
    one = write(folder / "one.json", result([row("p", "a", "GB/s", [1]), row("p", "b", "GB/s", [2])]))
    other = result([row("p", "c", "GB/s", [3]), row("p", "d", "GB/s", [4])],
                   machine=MACHINE | {"cpu": "Another CPU"})
    two = write(folder / "two.json", other)
    run = report(one, two, "-o", folder / "r.html")
    assert run.returncode == 3 and not (folder / "r.html").exists()
    for part in ("one.json", "two.json", "Some CPU", "Another CPU", "--by-machine"):
        assert part in run.stderr, run.stderr
    page, text, _ = make(folder, one, two, more=["--by-machine"])
    headings = [text_of(e) for e in page.iter("h2")]
    assert len(headings) == 2 and "Some CPU" in headings[0] and "Another CPU" in headings[1]
    for svg in page.iter("svg"):
        assert not ({"a", "c"} <= {text_of(e) for e in svg.iter("text")})
    for key, value in (("kernel", "6.19"), ("processors", 4), ("memory_gib", 11.7),
                       ("architecture", "aarch64")):
        write(two, other | {"machine": MACHINE | {key: value}})
        assert report(one, two, "-o", "-").returncode == 3, key
    # A field that tokbench does not know is no reason, and a file need not name the GPU ...
    for more in ({"python": "3.11"}, {"gpu": "H200"}):
        write(two, other | {"machine": MACHINE | more})
        assert report(one, two, "-o", "-").returncode == 0, more
    # ... but two of them are two machines, whatever is between them.
    three = write(folder / "three.json", other | {"machine": MACHINE | {"gpu": "A100"}})
    assert report(two, one, three, "-o", "-").returncode == 3


def refusals(document):
    """(what is wrong with it, a part of the message)"""
    def without(*path):
        changed = copy.deepcopy(document)
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        return changed

    def with_row(**more):
        return document | {"rows": [document["rows"][0] | more]}

    text = json.dumps(document)
    yield "", "line 1, column 1"
    yield "[]", "an object was expected"
    yield "\xff", "byte 0: "
    yield text[:-20], "line 1, column "
    yield text + "x", "line 1, column "
    yield "{}", "no field \"schema\""
    yield {"rows": []}, "no field \"schema\""
    yield document | {"schema": 2}, "schema 2"
    for key in ("schema", "command", "machine", "rows"):
        yield without(key), f"no field \"{key}\""
    for key in MACHINE:
        yield without("machine", key), f"machine: no field \"{key}\""
    for key in ("page", "name", "unit", "median", "values"):
        yield without("rows", 0, key), f"row 1: no field \"{key}\""
    yield document | {"rows": []}, "no row"
    yield document | {"rows": {}}, "\"rows\" is not an array"
    yield text[:-1] + ", \"rows\": []}", "\"rows\" twice"
    yield with_row(values=[]), "row 1: no field \"values\""
    yield with_row(values=["1"]), "row 1: no field \"values\" with only numbers"
    yield with_row(median="5"), "row 1: \"median\" is not a number"
    yield with_row(median=50), "row 1: the median 50"
    yield with_row(name=7), "row 1: \"name\" is not a text"
    for word in ("NaN", "Infinity", "-Infinity"):
        yield text.replace('"median": 6', f'"median": {word}'), f"{word} is no number"
    for what in ("1e999", "9" * 5000):
        yield text.replace("[5,", f"[{what},"), "row 1: no field \"values\" with only numbers"
    yield with_row(median=True), "row 1: \"median\" is not a number"
    yield with_row(x=0), "\"x\""
    yield with_row(x=-5), "\"x\""
    yield with_row(fraction=-1), "\"fraction\""
    yield with_row(target={"at_least": 3}), "row 1: a target needs"
    yield with_row(target={"reached": True}), "row 1: a target needs"
    yield with_row(target={"at_least": 9, "reached": True}), "row 1: the target 9"
    yield with_row(target={"at_most": 9, "reached": False}), "row 1: the target 9"
    compared = {"tokenizer": "t", "text": "x", "system": "other",
                "cold": {"unit": "MB/s", "median": 1, "values": [1]}}
    yield document | {"rows": [compared]}, "row 1: no field \"cold_ratio\""
    yield document | {"rows": [compared | {"cold_ratio": {}}]}, "row 1: no field \"unit\""
    yield "[" * 100000, "nested too deeply"


def what_is_no_result_is_refused(folder):
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    bad = folder / "bad.json"
    n = 0
    for what, message in refusals(json.loads(good.read_text())):
        write(bad, what) if not isinstance(what, str) else bad.write_bytes(what.encode("latin-1"))
        run = report(good, bad, "-o", folder / "r.html", "--markdown")
        assert run.returncode == 3 and not run.stdout, (str(what)[:80], run)
        assert "bad.json: " in run.stderr and run.stderr.count("\n") == 1, run.stderr
        assert message in run.stderr, (message, run.stderr)
        assert not (folder / "r.html").exists()
        n += 1
    assert n > 40
    for absent in (folder / "absent.json", folder):
        run = report(absent, "-o", "-")
        assert run.returncode == 3 and absent.name in run.stderr and not run.stdout, run


def usage_is_told(folder):
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    twin = folder / "twin"
    twin.mkdir()
    for wrong in ([], [good], ["-o", "-"], [good, "-o"], [good, "--what", "-o", "-"],
                  [good, "-o", "-", "--markdown"], [good, "-o", good], [good, good, "-o", "-"],
                  [good, write(twin / "good.json", good.read_text()), "-o", "-"]):
        run = report(*wrong)
        assert run.returncode == 2 and "usage: " in run.stderr and not run.stdout, (wrong, run)
    assert json.loads(good.read_text())["schema"] == 1
    os.link(good, folder / "link")
    for output in (folder / "link", twin / ".." / "good.json"):
        run = report(good, "-o", output)
        assert run.returncode == 2 and "is an input" in run.stderr, run
    assert json.loads(good.read_text())["schema"] == 1
    os.unlink(folder / "link")
    run = report(good, "-o", good / "r.html")
    assert run.returncode == 1 and "Not a directory" in run.stderr, run
    run = report(good, "-o", folder / "absent" / "r.html")
    assert run.returncode == 1 and "No such file" in run.stderr, run
    run = report("--help")
    assert run.returncode == 0 and not run.stderr
    for option in ("--output", "--markdown", "--by-machine", "--help"):
        assert option in run.stdout
    assert max(len(line) for line in run.stdout.split("\n")) <= 100
    if os.path.exists("/dev/full"):
        (folder / "full").symlink_to("/dev/full")  # a mistake would replace the link, not the device
        assert report(good, "-o", folder / "full").returncode == 1
        assert (folder / "full").is_symlink() and (folder / "full").is_char_device()


def no_other_file_is_written_into(folder):
    """Another name of somebody's file, as the output or as what it is called on the way."""
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    for link, name in ((os.link, "r.html"), (os.symlink, "r.html"), (os.link, "r.html.partial"),
                       (os.symlink, "r.html.partial")):
        (folder / "victim").write_text("not ours")
        link(folder / "victim", folder / name)
        report(good, "-o", folder / "r.html")
        assert (folder / "victim").read_text() == "not ours", (link, name)
        for path in folder.glob("r.html*"):
            path.unlink()


# ---- compare ----


def two_pages(**changed):
    machine = {"cpu": "Some CPU", "processors": 2, "memory_gib": 4.0, "kernel": "6.1",
               "architecture": "x86_64", **changed}
    rows = [{"page": "load", "name": "gather", "unit": "GB/s", "median": 10, "values": [9, 10, 11]},
            {"page": "mix", "name": "sample", "unit": "ns", "median": 30, "values": [30, 30, 31]},
            {"page": "mix", "name": "memory", "unit": "KiB", "median": 4, "values": [4, 4, 4]}]
    return {"schema": 1, "tokmap": "1", "command": "tokbench load mix", "machine": machine,
            "rows": rows}


def compare(folder, a, b):
    (folder / "A.json").write_text(json.dumps(a))
    (folder / "B.json").write_text(json.dumps(b))
    return report("--compare", folder / "A.json", folder / "B.json")


def compare_reports_a_planted_ratio(folder):
    b = copy.deepcopy(two_pages())
    b["rows"][0] |= {"median": 5, "values": [4.5, 5, 5.5]}  # half as fast
    b["rows"][1] |= {"median": 15, "values": [15, 15, 16]}  # twice as fast
    run = compare(folder, two_pages(), b)
    assert run.returncode == 0, run
    lines = {line.split()[0]: line for line in run.stdout.split("\n") if line.startswith("  ")}
    assert "0.5 x" in lines["gather"] and "0.409..0.611" in lines["gather"], lines
    assert lines["gather"].endswith("slower") and lines["sample"].endswith("faster"), lines
    assert "0.5 x" in lines["sample"] and "1 x" in lines["memory"], lines
    assert lines["memory"].endswith("1..1"), lines
    assert "3 rows compared, 2 differ" in run.stdout and not run.stderr
    b["rows"][1] |= {"values": [15, 15, 30.5]}  # now its rounds reach A's
    assert "3 rows compared, 1 differ" in compare(folder, two_pages(), b).stdout
    b["rows"][1]["name"] = "another"
    b["command"] = "tokbench mix"
    run = compare(folder, two_pages(), b)
    assert "2 rows compared" in run.stdout and "1 of the old, 1 of the new" in run.stdout, run
    assert "tokbench mix" in run.stderr, run


def compare_refuses_different_machines(folder):
    for changed in ({"cpu": "Another CPU"}, {"processors": 4}, {"memory_gib": 8.0},
                    {"kernel": "6.2"}, {"architecture": "aarch64"}):
        run = compare(folder, two_pages(), two_pages(**changed))
        assert run.returncode == 3 and not run.stdout, (changed, run)
        assert "different machines" in run.stderr, run
        assert str(list(changed.values())[0]).removesuffix(".0") in run.stderr, run


def compare_tells_what_is_wrong(folder):
    other = two_pages()
    for row in other["rows"]:
        row["name"] += ", changed"
    run = compare(folder, two_pages(), other)
    assert run.returncode == 1 and "no row is in both" in run.stderr, run
    good, bad = folder / "A.json", folder / "bad.json"
    for content in ("", "{", "[]", '{"schema": 1}', good.read_text()[:-3]):
        bad.write_text(content)
        run = report("--compare", good, bad)
        assert run.returncode == 3 and "bad.json" in run.stderr and not run.stdout, (content, run)
    assert report("--compare", good, folder / "absent").returncode == 3
    for wrong in ([], [good], [good, good, good], ["--json", good]):
        run = report("--compare", *wrong)
        assert run.returncode == 2 and "usage: " in run.stderr, (wrong, run)


def the_commands_of_the_document_work(folder):
    """Of docs/BENCHMARKS.md, on copies of the results."""
    block = re.search(r"^```sh\n(bench/report.py.*?)^```", (ROOT / "docs/BENCHMARKS.md").read_text(), re.M | re.S)[1]
    shutil.copytree(ROOT / "bench", folder / "bench")
    for name in ("OLD.json", "NEW.json"):
        shutil.copy(ROOT / "bench/results/epyc-2core.json", folder / name)
    subprocess.run(["bash", "-ec", block], cwd=folder, check=True, capture_output=True)
    assert (folder / "report.html").stat().st_size > 1e5
    assert (folder / "bench/results/README.md").read_text() == (ROOT / "bench/results/README.md").read_text()


TESTS = (every_figure_of_every_result_is_shown, markdown_says_what_the_json_says,
         each_section_has_its_drawings, bars_are_as_long_as_their_figures, what_is_missing_is_said,
         missed_targets_come_first, nothing_comes_from_outside, hostile_names_cannot_break_out,
         strange_figures_are_drawn, same_files_same_bytes, machines_are_kept_apart,
         what_is_no_result_is_refused, usage_is_told, no_other_file_is_written_into,
         compare_reports_a_planted_ratio, compare_refuses_different_machines,
         compare_tells_what_is_wrong, the_commands_of_the_document_work)
sys.exit(run_in_folders("report_", TESTS))

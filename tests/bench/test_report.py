#!/usr/bin/env python3
"""tokbench report: from result files, those of this repository and made ones, to a page and tables that say what
the files say, whatever is in them; and a clear refusal of what is no result or does not belong together."""

import copy
import html
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

from ref_protocol import run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOKBENCH = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build")) / "tokbench"
RESULTS = sorted((ROOT / "bench/results").glob("*.json"))
MACHINE = {"cpu": "Some CPU", "processors": 2, "memory_gib": 23.5, "kernel": "6.18",
           "architecture": "x86_64"}
GPU_MISSING = "The GPU path is unmeasured here"
HOSTILE = "</title></svg><script>alert(1)</script> & \"'|`_*[x](http://evil)\\ \x01\x00\u202e\ufffe"


def report(*arguments):
    return subprocess.run([TOKBENCH, "report", *arguments], capture_output=True, text=True)


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
    return [row(page, f"{name}, {word}", "us", [value, value * 1.1, value * 0.9], **more)
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
    rows.append(row("scale", "locate", "us", [0.015]))
    rows.append(row("load", "of something else", "us", [0.03], limit="nothing that is here"))
    for k in range(6, 14):
        for name, at, slope in (("tokmap", 51, 0), ("Megatron", 40, k - 6)):
            value = at * 10 ** (slope / 2)
            rows.append(row("scale", f"open, 10^{k} tokens, {name}", "us", [value, value * 1.4],
                            group="opening, and the first batch", system=name, x=10 ** k,
                            target={"at_most": 1e4, "reached": value * 1.4 <= 1e4}))
        rows.append(row("scale", f"memory, 10^{k} tokens", "KiB", [3.37, 3.37, 3.37]))
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
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    plain = [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells]
    return [html.unescape(cell) for cell in plain]


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
    run = report(*files, "-o", folder / "r.html", "-m", folder / "r.md", *more)
    assert run.returncode == 0, run.stderr
    text = (folder / "r.html").read_text()
    assert text.startswith("<!DOCTYPE html>")
    return xml.fromstring(text), text, (folder / "r.md").read_text()


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
    lines = [markdown_cells(line) for line in markdown.split("\n") if line.startswith("| ")]
    lines = [cells for cells in lines if cells[0] not in ("page", "---")]
    assert len(lines) == len(expected)
    by_name = {}
    for name, median, _ in expected:
        by_name.setdefault(name, set()).add(median)
    for cells in lines:
        assert any(cell.split(" ")[0] in by_name[cells[1]] for cell in cells[2:4]), cells


def markdown_says_what_the_json_says(folder):
    document = hour_of_pages()
    _, _, markdown = made(folder, document)
    heads, _, *lines = [markdown_cells(line) for line in markdown.split("\n")
                        if line.startswith("| ")]
    rows = [line for line in document["rows"] if "left_out" not in line]
    assert len(lines) == len(rows)
    for cells, line in zip(lines, rows):
        cell = dict(zip(heads, cells))
        assert (cell["page"], cell["what"]) == (line["page"], line["name"])
        assert cell["median"] == f"{number(line['median'])} {line['unit']}", cell
        assert cell["min .. max"] == values_range(line), (cell, line)
        assert cell["system"] == line.get("system", "")
        target = line.get("target")
        assert cell["target"] == ("" if not target else
                                  ("at least " if "at_least" in target else "at most ") +
                                  number(target.get("at_least", target.get("at_most"))) +
                                  f" {line['unit']}: " +
                                  ("reached" if target["reached"] else "not reached")), cell
    limits = {dict(zip(heads, cells))["what"]: dict(zip(heads, cells))["of its limit"]
              for cells in lines}
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
    for command in ("load", "stall", "scale", "limits load", "limits load stall"):
        assert f"<code>tokbench {command}</code>" in text, command
    assert not list(page.iter("svg")) and GPU_MISSING in text
    for gpu in ({"group": "gpu, stall"}, {"page": "gpu"}, {"name": "push, cuda p99"}):
        _, text, _ = made(folder, result([row("load", "p99", "us", [30]) | gpu]))
        assert GPU_MISSING not in text, gpu
    _, text, _ = made(folder, result([row("load", "rCUDAx p99", "us", [30])]))
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
    rows += [row("scale", f"{HOSTILE}, 10^{k} tokens", "ms", [k]) for k in (6, 9)]
    document = result(rows, command=HOSTILE, tokmap=HOSTILE,
                      machine=MACHINE | {"cpu": HOSTILE, "kernel": HOSTILE, "gpu": HOSTILE})
    page, text, markdown = made(folder, document)
    assert "<script" not in text and not re.search("[\0-\x09\x0b-\x1f\u202e]", text)
    assert [r[0] for r in table_rows(page)].count(clean + " 0") == 1
    assert len(list(page.iter("svg"))) >= 4
    assert "<script" not in markdown and "\0" not in markdown
    for line in markdown.split("\n"):
        if line.startswith("|"):
            assert len(markdown_cells(line)) == len(markdown_cells(markdown.split("\n")[2])), line
    cells = markdown_cells(markdown.split("\n")[4])
    assert cells[1] == clean + " 0", cells


def strange_figures_are_drawn(folder):
    """Nothing, less than nothing, and what has hundreds of digits, in every kind of drawing."""
    for values in ([0], [-1, 0, 1], [1e-320, 1e308], [5e-324], [1e300, 1e300]):
        rows = [row("p", f"rate {i}", "GB/s", values, limit="rate 0") for i in range(2)]
        rows += [row("stall", f"x {word}", "us", values) for word in ("p50", "p99")]
        rows += [row("scale", f"open, 10^{k} tokens", "ms", values) for k in (6, 9)]
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
    yield "", "byte 0"
    yield "[]", "byte 0"
    yield "\xff", "byte 0: "
    yield text[:-20], "byte "
    yield text + "x", "byte "
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
    yield document | {"rows": {}}, "byte "
    yield text[:-1] + ", \"rows\": []}", "\"rows\" twice"
    yield document | {"rows": document["rows"] * 5000}, "more than 4000 rows"
    yield with_row(values=[]), "row 1: no field \"values\""
    yield with_row(values=["1"]), "byte "
    yield with_row(median="5"), "byte "
    yield with_row(median=50), "row 1: the median 50"
    yield with_row(name=7), "byte "
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
    yield document | {"rows": [compared | {"cold_ratio": {}}]}, "row 1: no field \"warm\""
    yield "[" * 100000, "byte "


def what_is_no_result_is_refused(folder):
    good = write(folder / "good.json", result([row("p", "n", "GB/s", [5, 6, 7])]))
    bad = folder / "bad.json"
    n = 0
    for what, message in refusals(json.loads(good.read_text())):
        write(bad, what) if not isinstance(what, str) else bad.write_bytes(what.encode("latin-1"))
        for files in ([bad], [good, bad]):
            run = report(*files, "-o", folder / "r.html", "-m", "-")
            assert run.returncode == 3 and not run.stdout, (str(what)[:80], run)
            assert "bad.json: " in run.stderr and run.stderr.count("\n") == 1, run.stderr
        if "cold_ratio\": {}" not in json.dumps(what):
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
                  [good, "-o", "-", "-m", "-"], [good, "-o", good], [good, good, "-o", "-"],
                  [good, write(twin / "good.json", good.read_text()), "-o", "-"]):
        run = report(*wrong)
        assert run.returncode == 2 and "--help" in run.stderr and not run.stdout, (wrong, run)
    assert json.loads(good.read_text())["schema"] == 1
    os.link(good, folder / "link")
    for output in (folder / "link", twin / ".." / "good.json"):
        run = report(good, "-o", output)
        assert run.returncode == 2 and "is an input" in run.stderr, run
    assert json.loads(good.read_text())["schema"] == 1
    os.unlink(folder / "link")
    run = report(good, "-o", good / "r.html")
    assert run.returncode == 1 and "Not a directory" in run.stderr, run
    assert report(good, "-o", folder / "absent" / "r.html").returncode == 0
    assert (folder / "absent" / "r.html").stat().st_size > 1000
    run = report("--help")
    assert run.returncode == 0 and not run.stderr
    for option in ("--output", "--markdown", "--by-machine", "--help"):
        assert option in run.stdout
    assert max(len(line) for line in run.stdout.split("\n")) <= 100
    if os.path.exists("/dev/full"):
        assert report(good, "-o", "/dev/full").returncode == 1


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


TESTS = (every_figure_of_every_result_is_shown, markdown_says_what_the_json_says,
         each_section_has_its_drawings, bars_are_as_long_as_their_figures, what_is_missing_is_said,
         missed_targets_come_first, nothing_comes_from_outside, hostile_names_cannot_break_out,
         strange_figures_are_drawn, same_files_same_bytes, machines_are_kept_apart,
         what_is_no_result_is_refused, usage_is_told, no_other_file_is_written_into)
sys.exit(run_in_folders("report_", TESTS))

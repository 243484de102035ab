#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokbench end to end on small data: every page gives figures, the JSON has what the lines say,
nothing is left behind, and a failure is reported. Not how fast anything is."""

import gzip
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import time

import ref_writer
from ref_protocol import Skip, expect, expect_equal, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build"))
TOKBENCH, TOKMAP = BUILD / "tokbench", BUILD / "tokmap"
SMALL = ["--rounds", "3", "--documents", "100000", "--verify-mib", "3", "--load-mib", "16",
         "--step-ms", "1,2.5"]
PAGES = {"verify", "lookup", "load", "cold", "stall", "start", "mix", "views", "lists", "scan"}
WAYS = ("direct", "populate", "read", "plain map", "populate, block shuffle")


def skip_where_terabytes_cannot_be_mapped():
    if os.environ.get("TOKMAP_SANITIZED") == "tsan":
        raise Skip("ThreadSanitizer leaves no room to map terabytes")


def tokbench(*arguments, **environment):
    return subprocess.run([TOKBENCH, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})


def rows_of(path):
    return {row["name"]: row for row in json.loads(path.read_text())["rows"]}


def check_row(row, names):
    values = row["values"]
    name = row["name"]
    pooled = name.endswith((", p99", ", p99.9", ", max", ", steps"))  # of all rounds together
    assert len(values) == (1 if pooled else 3), row
    assert all(value > 0 or (value == 0 and name.endswith(", RSS")) for value in values), row
    assert pooled or sorted(values)[1] == row["median"], row
    if "target" in row:
        (kind, target), reached = list(row["target"].items())[0], row["target"]["reached"]
        assert reached == (row["median"] >= target if kind == "at_least" else
                           row["median"] <= target), row
    if "limit" in row:
        assert row["fraction"] > 0 and row["limit"] != name, row
        assert row["limit"] in names or row["limit"] == "steps that never wait", row
    assert row.get("x", 1) > 0 and ("x" in row) == ("x_unit" in row), row


def check_start(rows):
    assert {row["x"] for row in rows.values() if "x" in row} == {10.0 ** i for i in range(6, 14)}
    targets = {name: list(row["target"].items())[0] for name, row in rows.items() if "target" in row}
    for way in ("map", "direct") if "direct, 10^6 tokens, open" in rows else ("map",):
        for size in [f"10^{i} tokens" for i in range(6, 14)] + ["10,000 files"]:
            for cell in ("open", "start", "seek", "restore"):
                most = 100000 if "files" in size and cell != "open" else 10000
                assert targets.pop(f"{way}, {size}, {cell}") == ("at_most", most), (way, size, cell)
            for cell in ("memory", "RSS"):
                assert f"{way}, {size}, {cell}" in rows, (way, size, cell)
            limit = rows[f"{way}, {size}, open"].get("limit")
            assert limit == (None if "files" in size else f"{size}, plain open"), limit
    for kind, goal in (("zero-copy sample", ("at_most", 1.05)), ("batch gathered", ("at_least", 0.95))):
        for length in (1024, 4096):
            flat, joined = (rows[f"{kind}, {length} tokens, {which}"] for which in ("flat", "joined"))
            ratio = rows[f"joined / flat, {kind}, {length} tokens"]["values"]
            assert all(abs(r * a / b - 1) < 1e-3 for r, a, b in zip(ratio, flat["values"], joined["values"]))
            assert targets.pop(f"joined / flat, {kind}, {length} tokens") == goal
    assert targets == {"10,000 files, join": ("at_most", 10),
                       "open, 10^12 tokens against 10^6": ("at_most", 1.5)}, targets


def every_page_gives_figures(folder):
    skip_where_terabytes_cannot_be_mapped()
    run = tokbench("all", *SMALL, "--dir", folder, "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    result = json.loads((folder / "out.json").read_text())
    rows = result["rows"]
    assert result["schema"] == 1 and result["machine"]["processors"] >= 1
    assert all(0 <= result["busy"][who] <= 100 for who in ("others_percent", "steal_percent"))
    assert "--rounds 3" in result["command"] and str(folder) not in result["command"]
    without = {"cold"} if "O_DIRECT" in run.stderr else set()
    assert {row["page"] for row in rows} - {"gpu"} == PAGES - without, run.stderr
    names = {row["name"] for row in rows}
    assert len(names) == len(rows)
    for row in rows:
        check_row(row, names)
        expect("  %s: " % row["name"] in run.stdout, row["name"])
    for page in PAGES - without:
        assert any("limit" in row for row in rows if row["page"] == page), page
    check_start({row["name"]: row for row in rows if row["page"] == "start"})
    assert os.listdir(folder) == ["out.json"]


def fractions_are_those_of_the_rounds(folder):
    run = tokbench("load", "mix", *SMALL[:2], "--load-mib", "16", "--dir", folder,
                   "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    rows = rows_of(folder / "out.json")
    kinds = {"batch gathered, u16, 1024 tokens": lambda own, limit: own / limit,
             "inputs and labels, i64, 4096 tokens": lambda own, limit: 2 * own / limit,
             "64 sources, capped, sample": lambda own, limit: limit / own}
    for name, part in kinds.items():
        row = rows[name]
        limit = rows[row["limit"]]
        parts = sorted(part(*pair) for pair in zip(row["values"], limit["values"]))
        assert abs(row["fraction"] / parts[1] - 1) < 1e-4, row


def tokenizing_is_measured(folder):
    text = "naïve 七転び八起き\n".encode() * 100
    (folder / "text").write_bytes(text)
    run = tokbench("tokenize", "--tokenizer", "bytes", "--text", folder / "text", "--rounds", "3",
                   "-j", "2", "--ids", folder / "ids", "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    ids = (folder / "ids").read_bytes()
    assert [struct.unpack_from("<I", ids, i)[0] for i in range(0, len(ids), 4)] == list(text)
    rows = rows_of(folder / "out.json")
    for row in rows.values():
        check_row({**row, "median": sorted(row["values"])[len(row["values"]) // 2],
                   "values": (row["values"] * 3)[:3]}, rows)
    for name in ("cold, 1 thread", "warm, 1 thread", "cold, 2 threads", "warm, 2 threads"):
        assert rows[name]["limit"] == "text read and ids written," + name[name.rindex(" ", 0, -8):], name


def packing_is_measured(folder):
    with gzip.open(folder / "text.jsonl.gz", "wt") as file:
        file.write('{"text": "some words"}\n' * 2000)
    run = tokbench("pack", "--tokenizer", "bytes", "--text", folder / "text.jsonl.gz", "--rounds", "2", "--dir", folder,
                   "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    rows = rows_of(folder / "out.json")
    assert len(rows) == 8 and all(value > 0 for row in rows.values() for value in row["values"]), rows
    whole = rows["tokmap pack, from end to end"]
    assert whole["limit"] in rows and rows["tokmap pack / " + whole["limit"]]["target"]["at_least"] == 0.95
    assert sorted(os.listdir(folder)) == ["out.json", "text.jsonl.gz"]


def a_result_stays_until_another_is_there(folder):
    (folder / "out.json").write_text("the old one, longer than nothing")
    options = ("tokenize", "--tokenizer", "bytes", "--rounds", "1", "--json", folder / "out.json")
    run = tokbench(*options, "--text", folder / "absent")
    assert run.returncode == 1 and "absent" in run.stderr, run
    assert (folder / "out.json").read_text() == "the old one, longer than nothing"
    (folder / "text").write_text("some words")
    assert tokbench(*options, "--text", folder / "text").returncode == 0
    assert len(rows_of(folder / "out.json")) == 4


def no_other_file_is_written_into(folder):
    """Another name of somebody's file, or of an input, as an output or as what it is called on the
    way."""
    text = folder / "text"
    text.write_text("some words")
    options = ("tokenize", "--tokenizer", "bytes", "--rounds", "1", "--text", text, "--dir", folder)
    for option in ("--json", "--ids"):
        for link, name in ((os.link, "out"), (os.symlink, "out"), (os.link, "out.partial"),
                           (os.symlink, "out.partial")):
            for victim in (text, folder / "victim"):
                victim.write_text("some words")
                link(victim, folder / name)
                tokbench(*options, option, folder / "out")
                assert victim.read_text() == "some words", (option, link, name)
                for path in folder.glob("out*"):
                    path.unlink()
    assert tokbench(*options, "--json", text).returncode == 1
    with subprocess.Popen([TOKBENCH, *options, "--json", "/dev/stdout"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as run:
        assert b'"rows"' in run.stdout.read()  # a pipe is not a file that could be replaced


def cold_reads_are_measured(folder):
    run = tokbench("cold", "--rounds", "1", "--load-mib", "16", "--dir", folder, "--json",
                   folder / "out.json")
    if run.returncode and "O_DIRECT" in run.stderr:
        raise Skip("no O_DIRECT here")
    assert run.returncode == 0, run.stderr
    rows = rows_of(folder / "out.json")
    ways = [way for way in WAYS if f"{way}, 4096 tokens, rate" in rows]
    assert "plain map" in ways and len(rows) == 3 * (4 + 3 * len(ways)), rows.keys()
    assert len(ways) == 5 or "does not work here" in run.stderr
    assert {row["page"] for row in rows.values()} == {"cold"}
    assert all(value >= 0 for row in rows.values() for value in row["values"])


def check_stalls(rows, steps):
    kinds = {row["line"] for row in rows.values()}
    assert all(name == f"{row['line']}, {row['column']}" for name, row in rows.items()), rows.keys()
    assert {kind.rsplit(", ", 1)[1] for kind in kinds} == steps, kinds
    for kind in kinds:
        p50, p99, most = (rows[f"{kind}, {p}"] for p in ("p50", "p99", "max"))
        assert 0 < p50["median"] and p99["median"] <= most["median"], kind
        assert rows[f"{kind}, steps"]["median"] >= 100 and f"{kind}, p99.9" not in rows, kind
        busy = rows[f"{kind}, busy"]
        assert 0 < busy["median"] <= 100 and rows[f"{kind}, CPU"]["median"] > 0, kind
        assert abs(busy["fraction"] * 100 - busy["median"]) < 1e-3, kind
    return kinds


def stalls_are_ordered(folder):
    run = tokbench("stall", "--rounds", "2", "--load-mib", "4", "--step-ms", "1,3", "--dir",
                   folder, "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    kinds = check_stalls(rows_of(folder / "out.json"), {"1 ms", "3 ms"})
    in_memory = "file system is in memory" in run.stderr
    assert {"hot, map, 1 ms", "hot, map, 3 ms"} <= kinds
    assert in_memory == (not any(kind.startswith("cold") for kind in kinds)), kinds
    assert in_memory or len(kinds) == 14 or "does not work here" in run.stderr, kinds


def the_way_to_a_gpu_is_measured_where_there_is_one(folder):
    options = ("gpu", "--rounds", "1", "--load-mib", "32", "--dir", folder, "--json",
               folder / "out.json")
    without = tokbench(*options)
    assert without.returncode == 0, without.stderr
    if "left out" in without.stderr:
        assert not rows_of(folder / "out.json"), "figures of no device"
    if os.environ.get("TOKMAP_SANITIZED") == "tsan":
        raise Skip("two copies of the library in one process, under a sanitizer")
    stand_in = str(BUILD / "stand_in")
    run = tokbench(*options, LD_LIBRARY_PATH=stand_in)
    assert run.returncode == 0, run.stderr
    rows = rows_of(folder / "out.json")
    assert len(rows) == 4 + 1 + 3 * 3 + 1 + 3 and {row["page"] for row in rows.values()} == {"gpu"}
    for name, row in rows.items():
        assert row["median"] > 0, name
        assert (name.startswith("staged") and " / " not in name) == (row.get("limit") == "host to device, 262144 KiB"), name
        if name.endswith("p50"):
            assert row["median"] <= rows[name[:-3] + "p99"]["median"], name


def make_u32_dataset(place):
    """As numpy writes it, so that tokens begin within a page."""
    n = 1_300_000
    text = "{'descr': '<u4', 'fortran_order': False, 'shape': (%d,), }" % n
    head = text.encode().ljust(117) + b"\n"
    tokens = random.Random(1).choices(range(100_000), k=n)
    path = place / "own.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head +
                     struct.pack("<%dI" % n, *tokens))
    subprocess.run([TOKMAP, "index", "-q", "--eod", "7", path], check=True)
    return path


def own_data_are_measured_and_left_alone(folder):
    path = make_u32_dataset(folder)
    before = {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()}
    run = tokbench("load", "stall", "--data", path, "--rounds", "1", "--step-ms", "1", "--dir",
                   folder, "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    cold = tokbench("cold", "--data", path, "--rounds", "1", "--dir", folder, "--json", folder / "cold.json")
    assert {file.name: (file.stat().st_mtime_ns, file.read_bytes()) for file in folder.iterdir()
            if file.suffix != ".json"} == before
    rows = rows_of(folder / "out.json")
    for name in ("zero-copy sample, 8192 tokens", "batch gathered, u32, 1024 tokens",
                 "inputs and labels, i32, 4096 tokens", "gather, in order, 4096 tokens",
                 "gather, block shuffle, 4096 tokens", "gather, full shuffle, 4096 tokens",
                 "hot, map, 1 ms, p50"):
        assert rows[name]["median"] > 0, name
    if "O_DIRECT" not in cold.stderr:
        assert cold.returncode == 0, cold.stderr
        assert "plain map, 4096 tokens, rate" in rows_of(folder / "cold.json")
    assert "--data own.npy" in json.loads((folder / "out.json").read_text())["command"]


def data_that_are_too_small_are_refused(folder):
    (folder / "text").write_text("abc " * 100)
    subprocess.run([TOKMAP, "pack", "-q", folder / "text", "-o", folder / "P"], check=True)
    for page in ("load", "stall", "cold"):
        run = tokbench(page, "--data", folder / "P", "--rounds", "1", "--dir", folder)
        assert run.returncode == 1 and "needs" in run.stderr, run
    assert sorted(os.listdir(folder)) == ["P.bin", "P.tmi", "text"]


def json_on_stdout_is_alone_there(folder):
    run = tokbench("mix", "--rounds", "1", "--dir", folder, "--json", "-")
    assert run.returncode == 0 and json.loads(run.stdout)["rows"], run
    assert "Medians" in run.stderr


def a_row_is_a_line_with_all_that_the_json_says(folder):
    said = tokbench("verify", "--verify-mib", "1", "--rounds", "3", "--dir", folder, "--json", folder / "out.json").stdout
    for name, row in rows_of(folder / "out.json").items():
        line = next(line for line in said.splitlines() if line.startswith("  %s: " % name))
        expect_equal(" .. " in line, len(row["values"]) > 1, line)
        expect_equal(" % of {}".format(row.get("limit", "?")) in line, "limit" in row, line)
        if "target" in row:
            expect(line.endswith(": " + ("reached" if row["target"]["reached"] else "missed")), line)


def busy_neighbours_are_named(folder):
    """A program that computes beside it."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        run = tokbench("mix", "--rounds", "3", "--dir", folder, "--json", folder / "out.json")
        other.kill()
    busy = json.loads((folder / "out.json").read_text())["busy"]
    assert busy["others_percent"] > 0, busy
    is_busy = busy["others_percent"] >= 5 or busy["steal_percent"] >= 1
    assert ("figures may be too low" in run.stdout) == is_busy, (busy, run)


def a_stopped_run_leaves_no_data(folder):
    for page in (["lookup", "--documents", "30000000"], ["load", "--load-mib", "512"],
                 ["stall", "--load-mib", "512"]):
        run = subprocess.Popen([TOKBENCH, *page, "--dir", folder], stderr=subprocess.PIPE)
        run.stderr.readline()  # the page has begun
        deadline = time.monotonic() + 60
        while not list(folder.glob("*/*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        run.terminate()
        assert run.wait() == 128 + 15, page
        run.stderr.close()
        assert os.listdir(folder) == [], page


def failures_are_told(folder):
    run = tokbench("mix", "--dir", folder / "absent")
    assert run.returncode == 1 and "absent" in run.stderr, run
    run = tokbench("load", "--data", folder / "absent")
    assert run.returncode == 1 and "--data" in run.stderr and "absent" in run.stderr, run
    ref_writer.write(str(folder / "joined"), [1, 2], [2], vocab=3, segments=[(b"a.bin", 2, b"")])
    run = tokbench("load", "--data", folder / "joined")
    assert run.returncode == 1 and "joined" in run.stderr and "tokmap merge" in run.stderr, run
    for name in os.listdir(folder):
        os.unlink(folder / name)
    for wrong in (["nothing"], ["--rounds", "2"], ["start", "--rounds", "0"], ["start", "--rounds", "102"],
                  ["lookup", "--documents", "x"], ["start", "--what"],
                  ["start", "--documents", "10"], ["mix", "--data", "P"],
                  ["load", "--step-ms", "5"], ["mix", "--load-mib", "9"],
                  ["stall", "--step-ms", ""], ["stall", "--step-ms", "5,"],
                  ["stall", "--step-ms", "5,x"], ["stall", "--step-ms", "-5"],
                  ["stall", "--step-ms", "0"], ["stall", "--step-ms", "5,5"],
                  ["stall", "--step-ms", "1e9"], ["stall", "--step-ms", "20000"],
                  ["stall", "--step-ms", "1,2,3,4,5,6,7,8,9"],
                  ["load", "--data", "P", "--load-mib", "9"]):
        run = tokbench(*wrong)
        assert run.returncode == 2 and "--help" in run.stderr and not run.stdout, (wrong, run)
    run = tokbench("loda")
    assert run.returncode == 2 and "there is no page 'loda'; did you mean 'load'?" in run.stderr, run


sys.exit(run_in_folders("tokbench_"))

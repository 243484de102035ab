#!/usr/bin/env python3
"""tokbench end to end on small data: every page gives figures, the JSON has what the table shows, nothing is left
behind, and a failure is told. Not how fast anything is."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOKBENCH = pathlib.Path(os.environ.get("TOKMAP_BUILD", ROOT / "build")) / "tokbench"
SMALL = ["--rounds", "3", "--documents", "100000", "--verify-mib", "3",
         "--load-mib", "40"]


def tokbench(*arguments):
    return subprocess.run([TOKBENCH, *arguments], capture_output=True, text=True)


def every_page_gives_figures(folder):
    run = tokbench("all", *SMALL, "--dir", folder, "--json", folder / "out.json")
    assert run.returncode == 0, run.stderr
    result = json.loads((folder / "out.json").read_text())
    assert result["schema"] == 1 and result["machine"]["processors"] >= 1
    assert "--rounds 3" in result["command"] and str(folder) not in result["command"]
    assert {row["page"] for row in result["rows"]} == {"verify", "lookup", "open", "load"}
    for row in result["rows"]:
        assert len(row["values"]) == 3 and all(value > 0 for value in row["values"]), row
        assert sorted(row["values"])[1] == row["median"], row
        assert row["name"] in run.stdout, row["name"]
        if "target" in row:
            (kind, target), reached = list(row["target"].items())[0], row["target"]["reached"]
            assert reached == (row["median"] >= target if kind == "at_least" else
                               row["median"] <= target), row
    assert len({row["name"] for row in result["rows"]}) == len(result["rows"])
    assert os.listdir(folder) == ["out.json"]


def cold_reads_are_measured(folder):
    run = tokbench("cold", "--rounds", "1", "--load-mib", "40", "--dir", folder, "--json",
                   folder / "out.json")
    if run.returncode and "O_DIRECT" in run.stderr:
        return "no O_DIRECT here"
    assert run.returncode == 0, run.stderr
    rows = json.loads((folder / "out.json").read_text())["rows"]
    assert {row["page"] for row in rows} == {"cold"} and len(rows) == 42
    assert all(value >= 0 for row in rows for value in row["values"])


def json_on_stdout_is_alone_there(folder):
    run = tokbench("open", "--rounds", "1", "--dir", folder, "--json", "-")
    assert run.returncode == 0 and json.loads(run.stdout)["rows"], run
    assert "median" in run.stderr


def a_stopped_run_leaves_no_data(folder):
    run = subprocess.Popen([TOKBENCH, "lookup", "--dir", folder, "--documents", "30000000"],
                           stderr=subprocess.PIPE)
    run.stderr.readline()  # the page has begun
    deadline = time.monotonic() + 60
    while not list(folder.glob("*/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    run.terminate()
    assert run.wait() == 128 + 15
    assert os.listdir(folder) == []


def failures_are_told(folder):
    run = tokbench("open", "--dir", folder / "absent")
    assert run.returncode == 1 and "absent" in run.stderr, run
    for wrong in (["nothing"], [], ["open", "--rounds", "0"], ["open", "--rounds", "102"],
                  ["open", "--documents", "x"], ["open", "--what"]):
        run = tokbench(*wrong)
        assert run.returncode == 2 and "--help" in run.stderr and not run.stdout, (wrong, run)


MAPS_TERABYTES = (every_page_gives_figures, json_on_stdout_is_alone_there)
status = 0
for test in (every_page_gives_figures, cold_reads_are_measured, json_on_stdout_is_alone_there,
             a_stopped_run_leaves_no_data, failures_are_told):
    if os.environ.get("TOKMAP_SANITIZED") == "tsan" and test in MAPS_TERABYTES:
        print(f"skip tokbench_{test.__name__}: ThreadSanitizer leaves no room to map terabytes")
        continue
    with tempfile.TemporaryDirectory() as name:
        try:
            reason = test(pathlib.Path(name))
            print(f"skip tokbench_{test.__name__}: {reason}" if reason else
                  f"ok tokbench_{test.__name__}")
        except Exception as error:
            status = 1
            print(f"FAIL tokbench_{test.__name__}: {type(error).__name__} {error}".replace("\n", " | "))
sys.exit(status)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The questions that tokbench answers, as a user types them: is this disk enough for 8 GPUs, is my loader the
bottleneck, and what has changed."""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys

from ref_protocol import Skip, expect, expect_equal, program, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAINING = """
import multiprocessing, time

def batches(seconds):
    for _ in range(60):
        time.sleep(seconds)
        yield {"input_ids": [0] * 64, "labels": None}

def quick():
    return batches(0)

def slow():
    return batches(0.005)

def from_a_worker():
    queue = multiprocessing.Queue(2)
    def work():
        while True:
            sum(range(100000))
            queue.put([0] * 64)
    worker = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    worker.start()
    for _ in range(60):
        yield queue.get()
    worker.kill()

def step(batch):
    time.sleep(0.004)

def fails():
    raise KeyError("no data")

def talks():
    import sys
    print("a banner", sys.argv)
    return [[1, 2]] * 48

def ends():
    raise SystemExit(2)

always = [[1, 2, 3]] * 40
"""


def tokbench(folder, *words, code=None):
    try:
        import numpy  # noqa: F401
    except ImportError:
        raise Skip("there is no NumPy for this Python") from None
    place = os.path.dirname(sys.executable)
    program("tokmap-python")
    done = subprocess.run([program("tokbench"), *map(str, words)], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python")})
    if code is not None:
        expect_equal(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
    return done


def prepare(folder):
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a sanitized library cannot be loaded into Python")
    (folder / "my_training.py").write_text(TRAINING)


def is_this_disk_enough(folder):
    said = tokbench(folder, "fit", "--dir", folder, "--size", "64MiB", "--gpus", 8, "--tokens-per-second", "15k", "--seconds", 4)
    expect(said.returncode in (0, 6), said.stderr)
    verdict = said.stdout.rstrip().split("\n")[-1]
    expect(verdict.startswith(("fed: ", "hot only: ") if said.returncode == 0 else "waits: "), said.stdout)


def is_my_loader_the_bottleneck(folder):
    said = tokbench(folder, "loader", "my_training:slow", "--step-ms", 10, "--steps", 40, "--replay", 4, code=6).stdout
    step_ms = re.search(r"with kept batches a step takes ([0-9.]+) ms", said)
    expect("waits: " in said and step_ms and float(step_ms[1]) >= 10, said)
    found = measured(folder, "my_training:quick", "--step-ms", 10)
    expect_equal((found["kind"], found["n_steps"], found["n_tokens"], found["step_ms"]), ("measure", 40, 40 * 64, 10), str(found))


def measured(folder, *words):
    """0 or 6, as busy as the machine may be."""
    done = tokbench(folder, "loader", *words, "--steps", 40, "--json")
    found = json.loads(done.stdout)
    expect_equal(done.returncode, 0 if found["verdict"] == "fed" else 6, done.stdout)
    return found


def a_loader_may_be_anything(folder):
    found = measured(folder, "my_training:from_a_worker", "--step-ms", 5)
    expect(found["cpu_children_s"] > 0, "processor time of the worker: %s" % found)
    found = measured(folder, "my_training:slow", "--model-step", "my_training:step", "--tokens", 7)
    expect(found["step_ms"] >= 4 and found["n_tokens"] == 40 * 7 and found["wait_p50_us"] >= 5000, str(found))
    expect_equal(measured(folder, "my_training:always", "--step-ms", 1)["n_steps"], 32, "batches after the warm-up")


def what_is_wrong_is_said(folder):
    for words, code, why in ((("my_training:slow",), 2, "give --step-ms"), (("my_training", "--step-ms", 1), 2, "a name in it"),
                             (("my_training:slow", "--step-ms", "x"), 2, "must be a number"), ((), 2, "MODULE:NAME"),
                             (("none:slow", "--step-ms", 1), 3, "no module 'none'"),
                             (("my_training:none", "--step-ms", 1), 3, "has no 'none'"),
                             (("my_training:fails", "--step-ms", 1), 1, "the loader failed: 'no data'")):
        done = tokbench(folder, "loader", *words, code=code)
        expect("tokbench loader: " in done.stderr and why in done.stderr and not done.stdout, f"{words}: {done}")
    found = measured(folder, "my_training:talks", "--step-ms", 1)  # what it prints is no result
    expect_equal((found["n_steps"], found["n_tokens"]), (40, 80), str(found))
    tokbench(folder, "loader", "my_training:ends", "--step-ms", 1, code=1)
    tokbench(folder, "loader", "none.inner:x", "--step-ms", 1, code=3)
    error = json.loads(tokbench(folder, "loader", "my_training:fails", "--step-ms", 1, "--json", code=1).stdout)["error"]
    expect("no data" in error["text"], str(error))


# ---- What has changed ----


MACHINE = {"cpu": "Some CPU", "processors": 2, "memory_gib": 23.5, "kernel": "6.18", "architecture": "x86_64"}


def row(page, name, unit, values):
    return {"page": page, "name": name, "unit": unit, "median": sorted(values)[len(values) // 2], "values": values}


def result(rows, **more):
    return {"schema": 1, "tokmap": "0.1.0", "command": "tokbench some", "machine": MACHINE, "rows": rows, **more}


def write(path, what):
    path.write_text(json.dumps(what))
    return path


def what_has_changed(folder):
    old = result([row("load", "gather", "GB/s", [9, 10, 11]), row("mix", "sample", "ns", [30, 30, 31]),
                  row("mix", "memory", "KiB", [4, 4, 4])])
    new = copy.deepcopy(old)
    new["rows"][0] |= {"median": 5, "values": [4.5, 5, 5.5]}  # half as fast
    new["rows"][1] |= {"median": 15, "values": [15, 15, 16]}  # twice as fast
    old, path = write(folder / "A.json", old), folder / "B.json"

    def compare(new, code):
        return tokbench(folder, "compare", old, write(path, new), code=code)

    run = compare(new, 0)
    lines = {line.split()[0]: line for line in run.stdout.split("\n") if line}
    expect("3 rows compared, 2 differ" in run.stdout and not run.stderr, str(run))
    for name, parts in (("gather", ("0.5 x", "0.409..0.611", "slower")), ("sample", ("0.5 x", "faster")), ("memory", ("1 x",))):
        expect(all(part in lines[name] for part in parts) and lines[name].rstrip().endswith(parts[-1]), str(lines))
    first = json.loads(tokbench(folder, "compare", "--json", old, path, code=0).stdout)["rows"][0]
    expect_equal((first["name"], first["old"], first["new"], first["ratio"], first["verdict"]), ("gather", 10, 5, 0.5, "slower"),
                 "JSON")
    new["rows"][1] |= {"values": [15, 15, 30.5]}  # now its rounds reach those of A
    expect("3 rows compared, 1 differ" in compare(new, 0).stdout, "rounds that meet")
    new["rows"][1]["name"] = "another"
    run = compare(new | {"command": "tokbench mix"}, 0)
    expect("2 rows compared" in run.stdout and "1 of the old, 1 of the new" in run.stdout, str(run))
    expect("tokbench mix" in run.stderr, str(run))
    expect("no row is in both" in compare(result([row("p", "n", "x", [1])]), 1).stderr, "nothing in common")
    for key, value in (("cpu", "Another"), ("processors", 4), ("memory_gib", 8.25), ("kernel", "6.2"), ("architecture", "aarch64")):
        run = compare(new | {"machine": MACHINE | {key: value}}, 3)
        expect(not run.stdout and "different machines" in run.stderr and str(value) in run.stderr, str(run))
    for wrong in ([], {"schema": 2}, {"schema": 1}, result([{}]), result([row("p", "n", "x", [1]) | {"values": "no"}])):
        expect("is not a result" in compare(wrong, 3).stderr, str(wrong))


def measurements_are_compared_by_their_kind(folder):
    found = measured(folder, "my_training:slow", "--step-ms", 10)
    a, b = write(folder / "a.json", found), write(folder / "b.json", found | {"wait_p99_us": 2 * found["wait_p99_us"]})
    said = tokbench(folder, "compare", a, b, code=0).stdout
    line = next(line for line in said.split("\n") if line.startswith("wait_p99_us"))
    expect(line.split()[-3:] == ["us", "2", "x"], said)
    done = tokbench(folder, "compare", a, write(folder / "c.json", found | {"kind": "fit"}), code=2)
    expect("of kind 'measure'" in done.stderr and "of kind 'fit'" in done.stderr, done.stderr)


sys.exit(run_in_folders("question_", prepare=prepare))

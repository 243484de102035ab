#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokbench fit: its verdict follows from its figures, and its figures from what the data allow. Not how fast this machine is."""

import html.parser
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import mounts
import ref_writer
from ref_protocol import Skip, expect, expect_equal, program, run_in_folders, run_program

TRAINING = ("--gpus", "2", "--sequence-length", "64", "--batch-rows", "4", "--seconds", "2")
MACHINE = {"cpu", "processors", "memory_gib", "kernel", "architecture"}


def fit(*words, code=None):
    done = run_program("tokbench", "fit", *words, text=True)
    if code is not None:
        expect_equal(done.returncode, code, "%s: %s%s" % (words, done.stdout, done.stderr))
    return done


def make(path, n_tokens=200000):
    ref_writer.write(str(path), [i % 251 for i in range(n_tokens)], [500] * (n_tokens // 500), vocab=256)
    return path


def judged(*words):
    done = fit(*words, "--json")
    found = json.loads(done.stdout)
    expect_equal(done.returncode, 6 if found["verdict"] == "waits" else 0, "exit status of %s" % found["verdict"])
    return found


def the_verdict_follows_from_the_figures(folder):
    found = judged(make(folder / "a"), *TRAINING, "--step-ms", "5")
    expect_equal((found["schema_version"], found["kind"]), (1, "fit"), "what it is")
    expect_equal(set(found["machine"]), MACHINE, "the machine")
    expect_equal(found["needed_tokens_per_second"], 2 * 4 * 64 * 1000 / 5, "tokens that are needed")
    cold = found["cold"]
    if cold is None:
        expect(found["verdict"] in ("hot only", "waits"), "without cold data")
    else:
        expect_equal(found["verdict"], "fed" if cold["utilisation"] >= 0.99 else "waits", str(cold))
    for phase in filter(None, (cold, found["hot"])):
        expect(phase["n_steps"] > 0 and phase["wait_p50_us"] <= phase["wait_p99_us"] <= phase["wait_p999_us"] <=
               phase["wait_max_us"], str(phase))
        n, waited = phase["n_steps"], phase["n_steps"] * phase["wait_mean_us"]
        expect(abs(phase["utilisation"] - 5000 * n / (5000 * n + waited)) < 1e-4, str(phase))


def a_rate_and_a_step_mean_the_same(folder):
    a = make(folder / "a")
    found = judged(a, *TRAINING, "--tokens-per-second", "51.2k")
    expect_equal((found["options"]["step_ms"], found["options"]["gpus"]), (5, 2), "from the rate")
    text = fit(a, *TRAINING, "--step-ms", "5").stdout
    expect("51,200 tokens/s: 4 rows of 64 in a step of 5 ms" in text, text)
    expect(text.count("\n") <= 24, text)


def a_disk_that_is_too_slow_makes_a_training_wait(folder):
    """Each read takes 30 ms, one at a time, so 33 of 1,600 rows a second can come."""
    mounts.enter_namespace()
    for name in ("shown", "mount"):
        (folder / name).mkdir()
    make(folder / "shown/a", 4000000)
    with mounts.fuse(folder / "shown", folder / "mount", latency=0.03, side_by_side=1):
        found = judged(folder / "mount/a", *TRAINING, "--step-ms", "5")
    expect_equal(found["verdict"], "waits", found["text"])
    expect(found["cold"]["utilisation"] < 0.9 and "block shuffle gives" in found["text"], found["text"])


def data_in_memory_have_no_verdict_on_a_device(folder):
    place = pathlib.Path("/dev/shm")
    if not os.access(place, os.W_OK) or "tmpfs" not in subprocess.run(["stat", "-f", "-c", "%T", place], capture_output=True,
                                                                      text=True).stdout:
        raise Skip("no tmpfs at /dev/shm")
    with tempfile.TemporaryDirectory(dir=place) as own:
        found = judged("--dir", own, "--size", "1MiB", *TRAINING, "--step-ms", "20")
        fed = found["hot"]["utilisation"] >= 0.99  # cold data are never better than those in memory
        expect_equal((found["verdict"], found["cold"]), ("hot only" if fed else "waits", None), found["text"])
        found = judged("--dir", own, "--size", "1MiB", *TRAINING, "--batch-rows", "4000", "--step-ms", "0.1")
        expect_equal((found["verdict"], found["cold"]), ("waits", None), found["text"])
        expect_equal(os.listdir(own), [], "what is left")


def a_view_and_other_outputs_are_measured(folder):
    a = make(folder / "a")
    mask = bytes(i % 3 == 0 for i in range(400))
    (folder / "keep").write_bytes(mask)
    outputs = ("--outputs", "inputs,labels,position_ids,loss_mask,cu_seqlens")
    expect(judged(a, *TRAINING, "--step-ms", "5", *outputs)["hot"], "outputs")
    words = [json.dumps({"id": i, "text": "x" * 50}) for i in range(3000)]
    (folder / "b.jsonl").write_text("\n".join(words) + "\n")
    run_program("tokmap", "pack", folder / "b.jsonl", "--meta", "id", "-o", folder / "b", check=True)
    expect(judged(folder / "b", *TRAINING, "--step-ms", "5", "--where", "id < 1000")["hot"], "where")


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]

    handle_startendtag = handle_starttag


def the_page_needs_nothing_from_elsewhere(folder):
    fit(make(folder / "a"), *TRAINING, "--step-ms", "5", "--html", folder / "fit.html")
    page = Page()
    text = (folder / "fit.html").read_text()
    page.feed(text)
    expect_equal((page.tags.count("svg"), page.links), (3, []), "charts, links")
    expect("utilisation (AU)" in text and "url(" not in text, "figures")


def what_is_wrong_is_said(folder):
    a = make(folder / "a")
    for words, code, why in (((a,), 2, "give one of --tokens-per-second and --step-ms"),
                             ((a, "--step-ms", "5", "--tokens-per-second", "1k"), 2, "give one of"),
                             ((a, "--step-ms", "0"), 2, "--step-ms 0: must be"),
                             ((a, "--tokens-per-second", "x"), 2, "--tokens-per-second x"),
                             ((a, "--step-ms", "5", "--dir", folder), 2, "--dir makes a dataset"),
                             (("--step-ms", "5"), 2, "no dataset named"),
                             ((a, "--step-ms", "5", "--outputs", "ids"), 2, "--outputs ids"),
                             ((a, "--step-ms", "5", "--gpus", "4", "--n-ranks", "2"), 2, "--n-ranks 2"),
                             ((folder / "none", "--step-ms", "5"), 3, "none.tmi: cannot open"),
                             ((a, "--step-ms", "5", "--sequence-length", "300000"), 1, "too few for sequence_length")):
        done = fit(*words, code=code)
        expect(why in done.stderr and done.stderr.count(why) == 1, "%s: %s" % (words, done.stderr))
    error = json.loads(fit(folder / "none", "--step-ms", "5", "--json", code=3).stdout)["error"]
    expect_equal((error["status"], error["errno"]), (-3, 2), "JSON")


def without_arguments_a_screen_about_this_machine(folder):
    done = subprocess.run([program("tokbench")], env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    for name in ("memory", "processor", "device", "first batch", "waits"):
        expect("\n  %s " % name in done.stdout, done.stdout)
    lines = done.stdout.split("\n")
    expect(len(lines) <= 24 and max(map(len, lines[1:])) <= 90, done.stdout)
    expect_equal(list(folder.iterdir()), [], "what is left in the folder")


def children_of(pid):
    found = []
    for task in pathlib.Path("/proc/%d/task" % pid).glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children_of(child)]
    return found


def nothing_is_left_of_a_run_that_is_ended(folder):
    """Neither its ranks nor its data."""
    run = subprocess.Popen([program("tokbench"), "fit", "--dir", folder, "--size", "1MiB", *TRAINING[:-1], "100", "--step-ms", "5"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(children_of(run.pid)) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    ranks = children_of(run.pid)
    expect(len(ranks) >= 3, "the worker and two ranks: %s" % ranks)
    run.send_signal(signal.SIGQUIT)
    expect(run.wait(60) != 0, "its exit status")
    while any(os.path.exists("/proc/%d/exe" % rank) for rank in ranks) and time.monotonic() < until:
        time.sleep(0.01)
    expect_equal([rank for rank in ranks if os.path.exists("/proc/%d/exe" % rank)], [], "ranks that are left")
    expect_equal(list(folder.iterdir()), [], "what is left in the folder")


def the_page_never_replaces_the_data(folder):
    a = make(folder / "a")
    before = (folder / "a.bin").read_bytes()
    done = fit(a, *TRAINING, "--step-ms", "5", "--html", folder / "a.bin")
    expect(done.returncode not in (0, 6) and (folder / "a.bin").read_bytes() == before, done.stderr)
    done = fit(a, *TRAINING, "--step-ms", "5", "--html", folder / "a.bin/page")
    expect(done.returncode not in (0, 6) and "given:" not in done.stdout, "said before the work: %s" % done.stdout)


def data_that_are_made_have_no_name(folder):
    said = fit("--dir", folder, "--size", "1MiB", *TRAINING, "--step-ms", "2").stdout
    expect(said.startswith("random tokens: 1.0 MiB") and str(folder) not in said, said)


def a_file_system_is_a_table(folder):
    def ask(*more):
        done = run_program("tokbench", "file-system", folder, "--size", "4MiB", *more, text=True)
        expect_equal((done.returncode, list(folder.iterdir())), (0, []), done.stderr)
        return done.stdout

    said = ask()
    for name in ("auto", "direct", "auto, two processes", "open", "fsync"):
        expect("\n  %s  " % name in said, said)
    expect(folder.name not in said and os.uname().nodename not in said.split(), "a place: %s" % said)
    found = json.loads(ask("--json"))
    expect_equal((found["schema_version"], found["kind"], found["n_bytes"]), (1, "file-system", 4 << 20), str(found))
    expect_equal(set(found["machine"]), MACHINE, "the machine")
    expect_equal(set(found["calls_us"]), {"open", "stat", "rename", "lock", "fsync"}, "calls")
    rates = found["tokens_per_second"]
    expect({"auto_hot_full", "map_hot_block", "two_processes_hot_full"} <= set(rates) and min(rates.values()) > 0, str(rates))
    expect_equal(run_program("tokbench", "file-system", folder / "none", text=True).returncode, 1, "no folder")


sys.exit(run_in_folders("fit_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/peers/loaders.py: a slow system is reported as slow, one that hands out wrong rows as
WRONG and is not timed, one that is missing or fails with its reason; tables show the JSON.
Planted systems need nothing but Python. Not how fast anything is."""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import resource
import signal
import struct
import subprocess
import sys
import time
from array import array

from ref_protocol import Skip, expect, expect_equal, program, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "bench/peers"
LOADERS = PEERS / "loaders.py"
sys.path.append(str(PEERS))

import install  # noqa: E402
import loader_check  # noqa: E402
import loader_data  # noqa: E402
import loader_report  # noqa: E402
import loader_rows  # noqa: E402
import loader_run  # noqa: E402
from loader_adapter import I64, U16, Adapter, variant  # noqa: E402
from loader_adapter import ADAPTERS as OWN  # noqa: E402

PLANTED = '''
import time
from loader_adapter import I64, Adapter, ReadBlocks, variant

class Slow(ReadBlocks):
    def finish(self, buffer):
        time.sleep(0.2)
        return buffer

class WrongToken(ReadBlocks):
    def tokens_of(self, batch):
        rows = [(bytearray(row), None) for row, _ in super().tokens_of(batch)]
        rows[3][0][2 * 5] ^= 1
        return [(memoryview(row).cast("H"), None) for row, _ in rows]

class WrongLabels(ReadBlocks):
    def tokens_of(self, batch):
        return [(row[:-1], row[:-1]) for row, _ in super().tokens_of(batch)]

class OneTwice(ReadBlocks):
    def epoch(self):
        for i, batch in enumerate(super().epoch()):
            yield batch
            if i == 1:
                yield batch

class OneLess(ReadBlocks):
    def epoch(self):
        return (batch for i, batch in enumerate(super().epoch()) if i != 1)

class Narrow(ReadBlocks):
    work = I64

class Fails(ReadBlocks):
    def epoch(self):
        raise RuntimeError("the disk is full")

class Hangs(ReadBlocks):
    def epoch(self):
        time.sleep(1000)

class WrongResume(ReadBlocks):
    pages = ("resume",)
    def save(self):
        return {}
    def restore(self, state):
        self.random.seed(7)

ADAPTERS = {
    "planted-slow": Slow,
    "planted-wrong-token": WrongToken,
    "planted-wrong-labels": WrongLabels,
    "planted-one-twice": OneTwice,
    "planted-one-less": OneLess,
    "planted-narrow": Narrow,
    "planted-fails": Fails,
    "planted-absent": variant(ReadBlocks, packages=("no-such-package-anywhere",)),
    "planted-wrong-resume": WrongResume,
    "hangs": Hangs,
}
'''
# In place of tokbench: notes its arguments, and answers in each round what is prepared for it.
STAND_IN = '''#!%s
import json, pathlib, subprocess, sys

here, words = pathlib.Path(__file__).parent, sys.argv[1:]
with open(here / "calls", "a") as f:
    f.write(json.dumps(words) + "\\n")
if words[0] == "hangs":
    child = subprocess.Popen(["sleep", "1000"])
    (here / "child").write_text("%%d\\n" %% child.pid)
    child.wait()
answers = here / "answers.json"
n_before = len((here / "calls").read_text().split("\\n")) - 2
rows = json.loads(answers.read_text())[n_before] if answers.exists() else []
pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps({"rows": rows}))
''' % sys.executable
SMALL = ["--tokens", "40000", "--lengths", "16", "--batches", "128", "--rounds", "2",
         "--seconds", "0.05", "--check-batches", "2", "--resume-step", "3",
         "--far-tokens", "0"]


def command_of(folder, *arguments):
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a sanitized library cannot be loaded into Python")
    library = pathlib.Path(program("tokmap")).parent / "libtokmap.so"
    command = [sys.executable, LOADERS, "--tokmap", program("tokmap"), "--library", library]
    command += ["--dir", folder, "--out", folder / "out.json", *SMALL, *arguments]
    return [str(word) for word in command]


def loaders(folder, *arguments, prepare=None):
    run = subprocess.run(command_of(folder, *arguments), capture_output=True, text=True,
                         preexec_fn=prepare)
    if not (folder / "out.json").exists():
        raise AssertionError("exit status %d: %s" % (run.returncode, run.stderr[-400:]))
    return run, json.loads((folder / "out.json").read_text())


def stand_in(place):
    path = place / "tokbench"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    return path


def calls_of(place):
    return [json.loads(line) for line in (place / "calls").read_text().splitlines()]


def figures_of(result, system):
    rows = (row for row in result["rows"] if row.get("system") == system and "measure" in row)
    return {row["measure"]: row for row in rows}


def slow_wrong_and_absent_systems_are_reported(folder):
    (folder / "planted.py").write_text(PLANTED)
    planted = re.findall(r'"(planted-[a-z-]+)"', PLANTED)
    run, result = loaders(folder, "--pages", "hot", "resume", "--adapters",
                          folder / "planted.py", "--systems", *planted)
    expect_equal(run.returncode, 1, "exit status")
    for system, why in (("planted-wrong-token", "row 3, from token"),
                        ("planted-wrong-labels", "labels against its inputs"),
                        ("planted-one-twice", "came 2 times in an epoch"),
                        ("planted-one-less", "windows did not come in an epoch"),
                        ("planted-narrow", "numbers of 2 bytes, not 8"),
                        ("planted-wrong-resume", "other rows come")):
        told = result["wrong"].get(system, "")
        expect(why in told, "%s: told %r" % (system, told))
        expect(not figures_of(result, system), "%s was timed" % system)
        expect("%s is WRONG" % system in run.stderr, run.stderr[-400:])
        expect("%s: WRONG: " % system in run.stdout, run.stdout[-400:])
    expect("the disk is full" in result["failed"]["planted-fails"], str(result["failed"]))
    told = {row["system"]: row["left_out"] for row in result["rows"] if "left_out" in row}
    expect_equal(set(told), set(planted) - {"planted-slow"}, "what the report is told of")
    absent = result["not_installed"]["planted-absent"]
    expect("no_such_package_anywhere" in absent, absent)
    expect("planted-absent: not installed: " in run.stdout, run.stdout[-400:])
    slow = figures_of(result, "planted-slow")
    expect(slow["ratio"]["median"] > 10, "a planted sleep of 200 ms: %s" % slow["ratio"])
    expect(slow["p50_us"]["median"] > 150000, "p50 of a planted sleep: %s" % slow["p50_us"])
    expect_equal(sorted(os.listdir(folder)), ["out.json", "planted.py"], "left behind")
    expect_equal(result["schema"], 1, "schema")
    expect(str(folder) not in result["command"], result["command"])
    names = [(row["page"], row["name"]) for row in result["rows"] if "name" in row]
    twice = {name for name in names if names.count(name) > 1}
    expect(not twice, "rows of one name: %s" % twice)


def what_hangs_is_given_up_and_a_stop_leaves_no_data(folder):
    (folder / "planted.py").write_text(PLANTED)
    hang = ["--pages", "hot", "--adapters", folder / "planted.py", "--systems", "hangs"]
    _, result = loaders(folder, *hang, "--timeout", "2")
    told = result["failed"].get("hangs", "")
    expect("no answer within 2 seconds" in told, "told %r" % told)
    (folder / "out.json").unlink()
    run = subprocess.Popen(command_of(folder, *hang), stderr=subprocess.PIPE, text=True)
    for line in run.stderr:
        if "hangs: comparing" in line:
            break
    run.terminate()
    try:
        run.communicate(timeout=60)
    finally:
        run.kill()
    expect_equal(run.returncode, 128 + 15, "exit status of a stopped run")
    expect_equal(os.listdir(folder), ["planted.py"], "left behind by a stopped run")


def a_sound_run_ends_well_and_is_shown_again(folder):
    run, result = loaders(folder, "--systems", "read-blocks-u16", "--startup-tokens", "200000",
                          "400000", "--far-tokens", "800000", "--cold-mib", "4",
                          "--cold-seconds", "0.05", "--cold-lengths", "512", "--markdown")
    left_out = {kind: result[kind] for kind in loader_report.LEFT_OUT}
    expect_equal(run.returncode, 0, "exit status, %s" % left_out)
    expect(not any(left_out.values()), str(left_out))
    pages = {row["page"] for row in result["rows"]}
    expect(pages >= {"loaders " + page for page in ("hot", "resume", "startup", "cold")},
           str(pages))
    for row in result["rows"]:
        expect("unit" in row and row["values"] and "median" in row, str(row))
    far = [row for row in result["rows"] if row.get("tokens") == 800000]
    expect_equal([(row["system"], row["measure"], len(row["values"])) for row in far],
                 [("read-blocks-u16", "first_ms", 1), ("read-blocks-u16", "peak_mib", 1)],
                 "the far size, for those that grow, once")
    expect_equal({row["note"] for row in far}, {"once"}, "what is said of it")
    expect(re.search(r"read-blocks-u16 \| 800000 .* \| once \|", run.stdout), run.stdout)
    epochs = [system["epochs_compared"] for system in result["systems"]]
    expect(all(epoch and epoch[0]["windows"] == 512 for epoch in epochs), str(epochs))
    again = subprocess.run([sys.executable, LOADERS, "--from", folder / "out.json",
                            "--markdown"], capture_output=True, text=True)
    expect_equal(again.stdout, run.stdout, "tables from JSON")
    for title in ("**Hot, 128 rows of 16", "**Cold, 128 rows of 512", "**Starting up",
                  "**Resuming", "**Targets"):
        expect(title in run.stdout, title)


def a_part_that_fails_leaves_the_rest(folder):
    def files_up_to_a_mebibyte():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    run, result = loaders(folder, "--systems", "read-blocks-u16", "--pages",
                          "startup", "cold", "--startup-tokens", "200000", "400000",
                          "--far-tokens", "800000", "--cold-mib", "4",
                          prepare=files_up_to_a_mebibyte)
    expect_equal(run.returncode, 0, "exit status: %s" % run.stderr[-400:])
    why = "File too large"
    expect_equal(result["failed"], {"the far size": why, "the cold page": why}, "told")
    for part in result["failed"]:
        expect("loaders.py: %s: %s" % (part, why) in run.stderr, run.stderr[-400:])
        expect("%s: failed: %s" % (part, why) in run.stdout, run.stdout[-400:])
    sizes = {row["tokens"] for row in result["rows"] if row["page"] == "loaders startup"}
    expect(sizes >= {200000, 400000}, "the sizes before: %s" % sizes)


def tokbench_reads_the_cold_file_and_a_far_size_comes_once(folder):
    run, result = loaders(folder, "--systems", "read-blocks-u16", "--pages", "startup", "cold",
                          "--tokbench", stand_in(folder), "--startup-tokens", "200000",
                          "400000", "--far-tokens", "400000", "--cold-mib", "4",
                          "--cold-seconds", "0.05", "--cold-lengths", "512")
    expect_equal((run.returncode, result["failed"]), (0, {}), run.stderr[-400:])
    calls = calls_of(folder)
    expect_equal([call[0] for call in calls], ["start", "start", "cold", "cold"], "pages")
    for call in calls[2:]:
        data = call[call.index("--data") + 1]
        expect(data.endswith("/cold/tokens"), "it reads %s" % data)
        expect("--load-mib" not in call, str(call))
    names = [row["name"] for row in result["rows"] if row["page"] == "loaders startup"]
    expect_equal(len(names), len(set(names)), "rows of one name: %s" % names)


def numpy_systems_hand_out_the_file(folder):
    if importlib.util.find_spec("numpy") is None:
        raise Skip("no numpy")
    systems = ["numpy-views", "numpy-u16", "numpy-u16-tuned", "numpy-i64", "numpy-i64-tuned",
               "numpy-i64-two-views", "tokmap-i64-two-views", "read-blocks-i64"]
    run, result = loaders(folder, "--pages", "hot", "--systems", *systems)
    expect_equal(run.returncode, 0, "exit status: %s" % run.stderr[-400:])
    for system in systems:
        expect("speed" in figures_of(result, system), "%s has no speed" % system)
    expect("ratio_new" in figures_of(result, "numpy-i64-two-views"), "against two views of one array")
    expect("ratio_new" not in figures_of(result, "numpy-u16"), "against the usual arrays alone")
    expect("tokmap is  new arrays" in run.stdout, "the last columns of %s" % run.stdout)
    systems = ["numpy-u16-random", "numpy-u16-willneed"]  # that advise
    run, result = loaders(folder, "--pages", "cold", "--cold-mib", "4", "--cold-seconds", "0.05", "--cold-lengths", "512",
                          "--systems", *systems)
    expect_equal(run.returncode, 0, "exit status: %s" % run.stderr[-400:])
    epochs = {about["system"]: about["epochs_compared"] for about in result["systems"]}
    for system in systems:
        found = figures_of(result, system)
        expect("speed" in found, "%s has no speed" % system)
        expect_equal((found["ratio"]["against"], epochs[system][0]["windows"]), ("tokmap-direct", 512), system)


def a_hole_has_the_index_that_megatron_reads(folder):
    data = loader_data.make_hole(folder / "hole", 5000)
    index = pathlib.Path(data["prefix"] + ".idx").read_bytes()
    expect_equal(struct.unpack_from("<9sQBQQ", index), (b"MMIDIDX\0\0", 1, 8, 5, 6), "header")
    lengths, starts, documents = index[34:54], index[54:94], index[94:]
    expect_equal(array("i", lengths).tolist(), [1000] * 5, "lengths in tokens")
    expect_equal(array("q", starts).tolist(), list(range(0, 10000, 2000)), "in bytes")
    expect_equal(array("q", documents).tolist(), list(range(6)), "documents")
    long = folder / "long.idx"
    loader_data.write_megatron_index(long, 10**11)
    expect_equal(long.stat().st_size, 34 + 20 * 10**5 + 8, "of documents of a million tokens")


def megatron_builds_its_indexes_at_each_start(folder):
    if importlib.util.find_spec("megatron") is None:
        raise Skip("no megatron-core")
    from loader_megatron import ADAPTERS

    data = loader_data.make_hole(folder / "hole", 10**6)
    before = set(os.listdir(data["folder"]))
    for system, n_sets in (("megatron-w0", 1), ("megatron-w0", 1), ("megatron-blend-w0", 2)):
        adapter = ADAPTERS[system](data, 16, 4)
        next(iter(adapter.batches()))
        built = [file for file in os.listdir(adapter.cache.name) if file.endswith(".npy")]
        expect_equal(len(built), 3 * n_sets, "indexes of %s: %s" % (system, built))
        adapter.close()
        expect_equal(set(os.listdir(data["folder"])), before, "left behind by " + system)


class Known(Adapter):
    """Hands out given rows."""

    def __init__(self, rows, work=U16, order="epoch", starts=()):
        super().__init__(None, 4, 2)
        self.given, self.work, self.order, self.places = rows, work, order, starts

    def epoch(self):
        return iter([self.given])

    def tokens_of(self, batch):
        return batch

    def starts(self, batch):
        return self.places


def wrong(adapter, flat):
    try:
        loader_check.check_adapter(adapter, flat, 1)
    except loader_check.Wrong as e:
        return str(e)
    return None


def rows_are_compared_token_by_token(folder):
    flat = array("H", range(100, 113))
    sound = [(flat[0:5], None), (flat[4:9], None)]
    expect_equal(wrong(Known(sound), flat.tobytes()), None, "sound rows")
    wide = [(array("q", flat[i : i + 4]), array("q", flat[i + 1 : i + 5])) for i in (8, 0)]
    expect_equal(wrong(Known(wide, I64), flat.tobytes()), None, "sound inputs and labels")
    shifted = [(flat[1:6], None), (flat[4:9], None)]
    expect("no window begins" in wrong(Known(shifted), flat.tobytes()), "shifted by one")
    claimed = Known(shifted, order="random", starts=[1, 4])
    expect_equal(wrong(claimed, flat.tobytes()), None, "rows from where they say")
    claimed.places = [0, 4]
    expect("token 0 on is" in wrong(claimed, flat.tobytes()), "rows from elsewhere")
    claimed.places = [1, 9]
    expect("outside" in wrong(claimed, flat.tobytes()), "rows from outside")
    last = [(flat[0:5], None), (array("H", [104, 105, 106, 107, 0]), None)]
    expect("row 1" in wrong(Known(last), flat.tobytes()), "the last token")
    expect("1 rows, not 2" in wrong(Known(sound[:1]), flat.tobytes()), "a row too few")
    signed = [(array("q", [100, 101, 102, -1]), array("q", [101, 102, -1, 104]))] * 2
    expect("not of token ids" in wrong(Known(signed, I64), flat.tobytes()), "a negative id")


def known_system(name, page, speeds, adapter="tokmap-u16"):
    system = loader_run.System(name, OWN[adapter], None)
    for number, speed in speeds.items():
        system.add(page, (16, 4), number, {"speed": speed, "device_bytes_a_byte": 1.5})
    return system


def ratios_are_taken_within_a_round(folder):
    ours = known_system("tokmap-u16", "hot", {0: 100.0, 1: 300.0, 2: 200.0})
    peer = known_system("dataloader-u16-w0", "hot", {0: 50.0, 2: 10.0})
    rows = loader_rows.ratio_rows("hot", [ours, peer])
    expect_equal([row["values"] for row in rows], [[2.0, 20.0]], "ratios")
    other = known_system("numpy-i64", "hot", {0: 50.0}, "tokmap-i64")
    expect_equal(loader_rows.ratio_rows("hot", [ours, other]), [], "a ratio of unequal work")
    find = loader_rows.Finder(rows)
    targets = loader_rows.hot_targets(find)
    expect_equal([row["target"] for row in targets], [{"at_least": 10, "reached": True}], "targets")
    expect(targets[0]["name"].endswith("(usual arrays)"), targets[0]["name"])
    direct = known_system("tokmap-direct", "cold", {0: 16e3, 1: 32e3}, "tokmap-direct")
    device = [{"name": "device, random reads of a row, 16 tokens", "values": [1000, 4000]}]
    shares = loader_rows.device_rows([direct], device)
    expect_equal(shares[0]["values"], [1.0, 0.5], "shares of the device's rate of the same round")
    expect(not loader_rows.cold_targets(loader_rows.Finder(shares))[0]["target"]["reached"],
           "0.75 of the device's rate reaches 0.9")


def a_peer_may_be_compared_with_two_systems(folder):
    ours = known_system("tokmap-i64", "hot", {0: 100.0}, "tokmap-i64")
    views = known_system("tokmap-i64-two-views", "hot", {0: 50.0, 1: 60.0}, "tokmap-i64-two-views")
    peer = known_system("numpy-i64", "hot", {0: 5.0, 1: 4.0}, "tokmap-i64")
    peer.adapter = variant(peer.adapter, equal_new="tokmap-i64-two-views")
    rows = loader_rows.ratio_rows("hot", [ours, views, peer])
    where = ", 4 x 16 tokens"
    expect_equal([(r["name"], r["measure"], r["against"], r["values"]) for r in rows], [
        ("tokmap-i64 / tokmap-i64-two-views" + where, "ratio", "tokmap-i64", [2.0]),
        ("tokmap-i64 / numpy-i64" + where, "ratio", "tokmap-i64", [20.0]),
        ("tokmap-i64-two-views / numpy-i64" + where, "ratio_new", "tokmap-i64-two-views", [10.0, 15.0]),
    ], "ratios")
    expect_equal(loader_rows.ratio_rows("cold", [ours, views, peer]), [], "on another page")


def what_grows_is_reckoned_along_a_line(folder):
    system = loader_run.System("planted", OWN["read-blocks-u16"], None)
    rows = [{"system": "planted", "measure": "first_ms", "unit": "ms", "tokens": n, "median": ms,
             "values": [ms], "name": "planted, %g tokens, to the first batch" % n}
            for n, ms in ((10**8, 5.0), (10**9, 14.0))]
    far = loader_rows.reckoned([system], rows, 10**12)
    expect_equal([row["median"] for row in far], [10004.0], "5 ms, and 10 ns a thousand tokens")
    expect(far[0]["extrapolated"] and far[0]["name"].endswith("extrapolated"), str(far))
    expect_equal(loader_rows.reckoned([system], rows[:1], 10**12), [], "from one size alone")
    measured = {**rows[1], "tokens": 10**12, "median": 9000.0}
    again = loader_rows.reckoned([system], [*rows, measured], 10**12)
    expect_equal(again, [], "what was measured")
    expect_equal(loader_report.remark(far[0]), "extrapolated", "without a reason")
    system.why_not_far = "MemoryError: " + "x" * 100
    nearer = loader_rows.reckoned([system], rows, 2 * 10**9)
    expect_equal([(row["tokens"], row["median"]) for row in nearer], [(2 * 10**9, 24.0)], "nearer")
    expect_equal(nearer[0]["note"], system.why_not_far, "the reason")
    expect_equal(loader_report.remark(nearer[0]),
                 "extrapolated: MemoryError: " + "x" * 44 + "...", "in 60 letters")


def a_far_size_that_fails_leaves_nobody_out(folder):
    class Answers(loader_run.System):
        def call(self, mode, **more):
            return {"failed": "no\nmemory", "seconds": 1.5}

    options = argparse.Namespace(lengths=[16], batches=[4])
    system = Answers("planted", OWN["read-blocks-u16"], options)
    loader_run.measure_far([system], {"n_tokens": 10**12})
    expect_equal((system.left_out, system.values), (None, {}), "after a failure")
    expect_equal(system.why_not_far, "no memory", "the reason")


def tokbench_options(place):
    return argparse.Namespace(tokbench=stand_in(place), folder=place, running=set(),
                              stopped=False)


def fractions_of_tokbench_are_those_of_all_rounds(folder):
    bound = {"at_least": 2, "reached": False}
    rounds = [[{"name": "with", "median": v, "values": [v], "fraction": f, "target": bound},
               {"name": "without", "median": v, "values": [v]}]
              for v, f in ((1.0, 0.1), (4.0, 0.9), (3.0, 0.4))]
    (folder / "answers.json").write_text(json.dumps(rounds))
    tokbench = loader_run.Tokbench(tokbench_options(folder), "load", "--load-mib", 16)
    for number in range(3):
        tokbench(number)
    expect_equal(tokbench.failed, None, "failed")
    reached = {**bound, "reached": True}
    values = {"median": 3.0, "values": [1.0, 4.0, 3.0]}
    expect_equal(tokbench.finished(),
                 [{"name": "with", **values, "fraction": 0.4, "target": reached},
                  {"name": "without", **values}], "rows")


def is_running(pid):
    try:
        state = pathlib.Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def a_stop_ends_all_that_tokbench_started(folder):
    class Stopped(Exception):
        pass

    def stop_once_it_has_a_child(*_):
        if child.exists() and child.read_text().endswith("\n"):
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise Stopped

    child = folder / "child"
    before = signal.signal(signal.SIGALRM, stop_once_it_has_a_child)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        loader_run.Tokbench(tokbench_options(folder), "hangs")(0)
        raise AssertionError("it was not stopped")
    except Stopped:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    pid = int(child.read_text())
    until = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    expect(not is_running(pid), "what it started goes on")


def requirements_are_read_line_by_line(folder):
    found = install.wanted("# why\n--no-binary x\nx==1.0\n\ny==2  # and why\n")
    expect_equal(found, (["x==1.0", "y==2"], ["--no-binary", "x"]), "packages and options")
    for file in ("requirements.txt", "loader-requirements.txt", "packer-requirements.txt", "../requirements.txt"):
        packages, _ = install.wanted((PEERS / file).read_text())
        loose = [package for package in packages if not re.fullmatch(r"[\w-]+==[\d.]+( --no-deps)?", package)]
        expect(packages and not loose, "%s: versions are not told: %s" % (file, loose))


sys.exit(run_in_folders("loader_peers_"))

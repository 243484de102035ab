# SPDX-License-Identifier: Apache-2.0
"""loader_run.py - runs systems in turn, each in a process of its own, and keeps their figures."""

import concurrent.futures
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

import loader_counts
from compare import figures
from loader_adapter import I64, U16, VIEWS
from loader_data import warm_up

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EQUALS = {VIEWS: "tokmap-views", U16: "tokmap-u16", I64: "tokmap-i64"}
COLD_EQUAL = "tokmap-direct"
# measure: unit; how it is called in a row's name
MEASURES = {
    "speed": ("tokens/s", "speed"),
    "p50_us": ("us", "a batch, p50"),
    "p99_us": ("us", "a batch, p99"),
    "cpu_us": ("us", "processor time a batch"),
    "cpu_ns": ("ns", "processor time a token"),
    "feed_percent": ("%", "of a processor to feed 8 GPUs at 10,000 tokens/s each"),
    "first_ms": ("ms", "to the first batch"),
    "private_mib": ("MiB", "private memory"),
    "own_mib": ("MiB", "private memory beyond what was imported"),
    "pss_mib": ("MiB", "proportional memory"),
    "device_bytes_a_byte": ("x", "device bytes a byte"),
}
FAILURES = ("not_installed", "not_run", "wrong", "failed")
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1",
    "LITDATA_DISABLE_VERSION_CHECK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}


# Arrays of some megabytes that are made and freed in each batch else go back to the system, and
# cost a page fault for each 4 KiB in the next one: several times what the batch takes, which says
# nothing of a loader.
KEPT_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
}


def environment(folder, library, keep_memory):
    """Disables the network, and puts the files that libraries leave beside our data."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    places = {"HOME": home, "TMPDIR": home, "HF_HOME": home, "XDG_CACHE_HOME": home}
    python_path = [str(ROOT / "python"), str(HERE)] + os.environ.get("PYTHONPATH", "").split(":")
    return {
        **os.environ,
        **OFFLINE,
        **(KEPT_MEMORY if keep_memory else {}),
        **{name: str(path) for name, path in places.items()},
        "PYTHONPATH": ":".join(part for part in python_path if part),
        "TOKMAP_LIBRARY": str(library),
    }


class System:
    """A system and its state: timed, or left out with a reason."""

    def __init__(self, name, adapter, options):
        self.name, self.adapter, self.options = name, adapter, options
        self.left_out = None  # (kind, reason)
        self.versions, self.copies, self.epochs, self.imports = {}, [], [], {}
        self.resumed = None
        self.why_not_far = None  # why the far size has no figures
        self.values = {}  # (page, length, rows, measure): {round: value}
        self.seconds = 0  # that its last process took

    def on(self, page):
        return page in self.adapter.pages and self.left_out is None

    def leave_out(self, kind, reason):
        self.left_out = (kind, " ".join(reason.split()))
        text = "loaders.py: %s: %s: %s" % (self.name, kind.replace("_", " "), self.left_out[1])
        print(text, file=sys.stderr, flush=True)

    def call(self, mode, **more):
        """The answer of a process, or its failure."""
        options = self.options
        job = {
            "system": self.name,
            "adapters": options.adapters,
            "mode": mode,
            "seed": 1,
            "group": None,
            **more,
        }
        path = options.folder / (self.name + ".json")
        path.write_text(json.dumps(job))
        answer = run_process([sys.executable, HERE / "loader_process.py", path], options)
        self.seconds = answer.get("seconds", 0)
        return answer

    def ask(self, mode, **more):
        """The same, or None: from now on the system is left out."""
        answer = self.call(mode, **more)
        for kind in FAILURES:
            if kind in answer:
                self.leave_out(kind, answer[kind])
                return None
        return answer

    def files(self, data, lengths):
        """What it reads of a data set."""
        if not self.adapter.copy:
            return [data["flat"]]
        return sorted({self.adapter.copy_path(data, length) for length in lengths})

    def add(self, page, where, round_number, found):
        """`where`: (length, rows)."""
        for measure, value in found.items():
            self.values.setdefault((page, *where, measure), {})[round_number] = value

    def is_slow(self):
        return self.seconds > self.options.slow_seconds

    def about(self):
        """Its version, and notes on its figures."""
        versions = list(self.versions.values())
        found = {"version": versions[0]} if versions else {}
        return {**found, "note": self.adapter.note} if self.adapter.note else found

    def rows_of(self, page):
        """JSON rows of a page."""
        rows = []
        for (of_page, length, n_rows, measure), values in self.values.items():
            if of_page != page or measure not in MEASURES:
                continue
            if measure == "device_bytes_a_byte" and page != "cold":
                continue
            unit, called = MEASURES[measure]
            rows.append(self.row(page, (length, n_rows), (measure, unit, called), values))
        return rows

    def row(self, page, where, measure, values):
        what, unit, called = measure
        row = {
            "page": "loaders " + page,
            "name": "%s, %d x %d tokens, %s" % (self.name, where[1], where[0], called),
            "system": self.name,
        }
        if what in ("p50_us", "p99_us"):
            row["line"], _, row["column"] = row["name"].rpartition(", ")
        if what in ("speed", "p50_us", "p99_us"):  # bench/report.py draws these side by side
            work = self.adapter.work + ", " if page == "hot" else ""
            row["group"] = "%s, %s%d x %d tokens" % (page, work, where[1], where[0])
        if what == "speed":
            row.update(self.about())
        elif "group" in row:
            row["group"] = "a batch, " + row["group"]
        return {
            **row,
            "measure": what,
            "length": where[0],
            "rows": where[1],
            **figures(unit, list(values.values())),
        }


def run_process(command, options):
    """Its JSON with the seconds that it took; a failure is in "failed"."""
    if options.stopped:
        return {"failed": "stopped"}
    place = {"env": options.environment, "cwd": options.folder}
    before = time.monotonic()
    try:
        status, out, err = run_in_session(command, options, options.timeout, **place)
    except subprocess.TimeoutExpired:
        return {"failed": "no answer within %d seconds" % options.timeout}
    seconds = time.monotonic() - before
    if status != 0 or not out.strip():
        lines = [line for line in err.strip().split("\n") if line.strip()]
        why = lines[-1] if lines else "it said nothing"
        return {"failed": "exit status %d: %s" % (status, why)}
    return {**json.loads(out), "seconds": seconds}


def run_in_session(command, options, timeout=None, **place):
    """(exit status, stdout, stderr). Runs it in a new session, so that it ends with all its
    processes if we stop waiting. `place`: its environment and its folder."""
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **place,
    )
    options.running.add(process)
    if options.stopped:  # since the caller looked at it
        stop(process)
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException:
        stop(process)
        raise
    finally:
        options.running.discard(process)
    return process.returncode, out, err


def stop(process):
    """With all processes that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


STARTED = time.monotonic()


def say(text):
    seconds = time.monotonic() - STARTED
    print("loaders.py: %4.0f s: %s ..." % (seconds, text), file=sys.stderr, flush=True)


# ---- Before timing ----


def check(systems, data, small):
    """Runs as many at a time as there are processors: only the writing of copies is timed, which is
    reported but not compared. `small`: {length: data}."""

    def one_after_the_other(group):
        for system in group:
            check_one(system, data, small)

    groups = {}  # those that share a copy must not write it twice
    for system in sorted(systems, key=lambda system: system.adapter.copy is None):
        groups.setdefault(system.adapter.copy or system.name, []).append(system)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            list(pool.map(one_after_the_other, groups.values()))
        except BaseException:  # Ctrl-C: what has been begun is not waited for
            systems[0].options.stopped = True
            for process in list(systems[0].options.running):
                stop(process)
            raise


def check_one(system, data, small):
    say("%s: comparing its rows with the file" % system.name)
    options = system.options
    answer = system.ask(
        "check",
        data=data,
        configurations=[(small[n], n, b) for n in options.lengths for b in options.batches],
        copies=[(d, n) for n in options.lengths for d in (small[n], data)],
        n_batches=options.check_batches,
    )
    if answer:
        system.versions, system.copies = answer["versions"], answer["copies"]
        system.epochs = answer["epochs"]


# ---- Timing ----


def take_turns(systems, n_rounds, measure, each_round=None):
    """measure(system, round) for all, in a rotating order. Slow ones have fewer rounds."""
    for number in range(n_rounds):
        if each_round:
            each_round(number)
        start = number % max(1, len(systems))
        for system in systems[start:] + systems[:start]:
            if system.left_out:
                continue
            if number < system.options.slow_rounds or not system.is_slow():
                measure(system, number)


def measure_hot(systems, data, tokbench):
    options = systems[0].options
    where = [(n, b) for n in options.lengths for b in options.batches]

    def one(system, number):
        say("hot, round %d: %s" % (number + 1, system.name))
        warm_up(system.files(data, options.lengths))
        turned = where[number % len(where) :] + where[: number % len(where)]
        answer = system.ask(
            "measure", data=data, configurations=turned, seconds=options.seconds, cold=False
        )
        if not answer:
            return
        system.imports.setdefault("import_s", []).append(answer["import_seconds"])
        system.imports.setdefault("import_mib", []).append(answer["import_mib"])
        for found in answer["results"]:
            system.add("hot", (found["length"], found["rows"]), number, found)

    chosen = [system for system in systems if system.on("hot")]
    take_turns(chosen, options.rounds, one, tokbench)


def measure_resume(systems, data):
    options = systems[0].options
    length, rows = options.lengths[0], options.batches[-1]
    job = {"data": data, "length": length, "rows": rows}
    step = min(options.resume_step, (data["n_tokens"] - 1) // length // rows // 2)
    chosen = [system for system in systems if system.on("resume")]
    for system in chosen:
        state = str(options.folder / (system.name + ".state"))
        answer = system.ask("save", **job, step=step, state=state)
        if answer:
            system.resumed = {"step": step, "state_bytes": answer["state_bytes"]}

    def one(system, number):
        say("resume, round %d: %s" % (number + 1, system.name))
        warm_up(system.files(data, [length]))
        state = str(options.folder / (system.name + ".state"))
        answer = system.ask("resume", **job, state=state)
        if answer and not answer["exact"]:
            system.leave_out("wrong", "after a resume at step %d other rows come" % step)
        elif answer:
            system.add("resume", (length, rows), number, {"first_ms": answer["first_ms"]})

    take_turns(chosen, options.rounds, one)


def measure_start(systems, data):
    """`data`: of one size."""
    options = systems[0].options
    length, rows = options.lengths[-1], options.batches[-1]
    page = "startup %g" % data["n_tokens"]

    def one(system, number):
        say("%s tokens, round %d: %s" % (page, number + 1, system.name))
        answer = system.ask("start_up", data=data, length=length, rows=rows)
        if answer:
            found = {"first_ms": answer["first_ms"], "peak_mib": answer["peak_mib"]}
            system.add(page, (length, rows), number, found)

    take_turns([system for system in systems if system.on("startup")], options.rounds, one)


def measure_far(systems, data):
    """Once, for systems whose start grows with the data. If one fails, its time is extrapolated,
    and it is not left out."""
    options = systems[0].options
    length, rows = options.lengths[-1], options.batches[-1]
    page = "startup %g" % data["n_tokens"]
    for system in systems:
        if not system.on("startup") or not system.adapter.grows:
            continue
        say("%s tokens: %s" % (page, system.name))
        most = loader_counts.memory_available() * 3 // 4
        answer = system.call("start_up", data=data, length=length, rows=rows, most_bytes=most)
        if "first_ms" in answer:
            found = {"first_ms": answer["first_ms"], "peak_mib": answer["peak_mib"]}
            system.add(page, (length, rows), 0, found)
        else:
            reasons = [answer[kind] for kind in FAILURES if kind in answer]
            system.why_not_far = " ".join(reasons[0].split())
            text = "loaders.py: %s: %s" % (system.name, system.why_not_far)
            print(text, file=sys.stderr, flush=True)


def measure_cold(systems, data, tokbench):
    """In a control group with less memory than the file, where that is permitted."""
    options = systems[0].options
    where = [(n, options.batches[-1]) for n in options.cold_lengths]
    with loader_counts.Limit(options.cold_memory_mib << 20) as limit:

        def one(system, number):
            for length, rows in where:
                say("cold, round %d: %s, %d tokens" % (number + 1, system.name, length))
                loader_counts.forget([data["flat"]])
                answer = system.ask(
                    "measure",
                    data=data,
                    configurations=[(length, rows)],
                    seconds=options.cold_seconds,
                    cold=True,
                    group=limit.procs,
                )
                if not answer:
                    return
                system.add("cold", (length, rows), number, answer["results"][0])

        chosen = [system for system in systems if system.on("cold")]
        conditions = {
            "file_mib": round(2 * data["n_tokens"] / 2**20),
            "read_ahead_kib": loader_counts.read_ahead_kib(data["flat"]),
            "memory_limit_mib": options.cold_memory_mib if limit.procs else None,
            "no_limit_because": limit.why,
        }
        take_turns(chosen, options.rounds, one, tokbench)
    return conditions


# ---- tokbench, in the same rounds ----


class Tokbench:
    """Runs a page of tokbench once a round; keeps its rows with the values of all rounds."""

    def __init__(self, options, page, *more):
        self.options, self.page, self.more = options, page, more
        self.rows = {}
        self.fractions = {}  # of each round, by the name of the row
        self.failed = None

    def __call__(self, number):
        if self.failed:
            return
        say("tokbench %s, round %d" % (self.page, number + 1))
        out = self.options.folder / "tokbench.json"
        command = [self.options.tokbench, self.page, "--rounds", "1", *self.more]
        command += ["--dir", self.options.folder, "--json", out]
        status, _, err = run_in_session(command, self.options)
        if status != 0:
            told = [line for line in err.split("\n") if line and not line.endswith("...")]
            why = told[0] if told else "it said nothing"
            self.failed = "exit status %d: %s" % (status, why)
            return
        for row in json.loads(out.read_text())["rows"]:
            kept = self.rows.setdefault(row["name"], {**row, "values": []})
            kept["values"] += row["values"]
            if "fraction" in row:
                self.fractions.setdefault(row["name"], []).append(row["fraction"])

    def finished(self):
        for name, row in self.rows.items():
            row["median"] = statistics.median(row["values"])
            if name in self.fractions:
                row["fraction"] = statistics.median(self.fractions[name])
            target = row.get("target")
            if target:
                low, high = target.get("at_least"), target.get("at_most")
                reached = row["median"] >= low if low is not None else row["median"] <= high
                row["target"] = {**target, "reached": reached}
        return list(self.rows.values())

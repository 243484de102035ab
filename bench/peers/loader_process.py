#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loader_process.py JOB - runs one system in its own process for loaders.py: JSON on stdout.

JOB is a JSON file: {"system": name, "adapters": files with more of them, "mode": one of MODES,
...}."""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import pickle
import resource
import sys
import time

import loader_check
import loader_counts
from loader_adapter import ADAPTERS as OWN
from loader_adapter import COPY_IS_COMPLETE, NotSupported, open_flat

MODULES = ("loader_tokmap", "loader_numpy", "loader_megatron", "loader_streams", "loader_stores")
FED_TOKENS = 8 * 10000  # a second: what eight GPUs train on
WARM_UP_SECONDS = 0.25
LEAST_BATCHES, MOST_BATCHES = 3, 10**9


def all_adapters(files=()):
    """{name: class}. The modules import a peer only when it is used."""
    found = dict(OWN)
    for name in MODULES:
        found.update(importlib.import_module(name).ADAPTERS)
    for path in files:
        spec = importlib.util.spec_from_file_location("adapters_of_the_user", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.update(module.ADAPTERS)
    return found


def import_peer(adapter_class):
    """Imports it and its dependencies; returns the seconds that took."""
    before = time.perf_counter()
    for name in adapter_class.imports or adapter_class.packages:
        importlib.import_module(name.replace("-", "_"))
    adapter_class.check()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)  # as many as tokmap has
    return time.perf_counter() - before


def why_not_installed(adapter_class, error):
    """The version that install.py found, else the version of Python."""
    try:
        with open(os.path.join(sys.prefix, "not-installed.json")) as f:
            record = json.load(f)
    except (OSError, ValueError):
        record = {}
    return next((record[p] for p in adapter_class.packages if p in record), str(error))


# ---- Modes ----


def check(adapter_class, job):
    """Before timing: its versions, its copies of the data, and whether its rows are correct."""
    import_peer(adapter_class)
    versions = {p: importlib.metadata.version(p) for p in adapter_class.packages}
    copies = write_copies(adapter_class, job)
    return {"versions": versions, "copies": copies, "epochs": verify(adapter_class, job)}


def write_copies(adapter_class, job):
    written = []
    for data, length in job["copies"] if adapter_class.copy else ():
        path = adapter_class.copy_path(data, length)
        if os.path.exists(os.path.join(path, COPY_IS_COMPLETE)):
            continue
        os.makedirs(path, exist_ok=True)
        before = time.perf_counter()
        adapter_class.write_copy(data, path, length)
        seconds = time.perf_counter() - before
        about = {"n_tokens": data["n_tokens"], "length": length, "seconds": seconds}
        written.append({**about, "bytes": bytes_below(path)})
        open(os.path.join(path, COPY_IS_COMPLETE), "w").close()
    return written


def bytes_below(path):
    return sum(
        os.stat(os.path.join(folder, name)).st_blocks * 512
        for folder, _, names in os.walk(path)
        for name in names
    )


def verify(adapter_class, job):
    """A whole epoch of a small file, and some batches of the measured one."""
    told = []
    for small, length, rows in job["configurations"]:
        for data, n_batches in ((small, None), (job["data"], job["n_batches"])):
            adapter = adapter_class(data, length, rows, job["seed"])
            found = loader_check.check_adapter(adapter, open_flat(data["flat"]), n_batches)
            adapter.close()
            if found:
                told.append({"length": length, "rows": rows, **found})
    return told


def measure(adapter_class, job):
    bare = loader_counts.memory()["private"]
    import_seconds = import_peer(adapter_class)
    imported = loader_counts.memory()["private"]
    results = []
    for length, rows in job["configurations"]:
        results.append(measure_one(adapter_class, job, length, rows))
    for later in results[1:]:
        del later["first_ms"]  # not the first thing that its process does
    return {
        "import_seconds": import_seconds,
        "import_mib": imported - bare,
        "bare_mib": bare,
        "results": results,
    }


def measure_one(adapter_class, job, length, rows):
    import tokmap  # after the peer, whose import is measured

    take = tokmap.measure
    imported = loader_counts.memory()["private"]
    start = time.perf_counter()
    adapter = adapter_class(job["data"], length, rows, job["seed"])
    batches = iter(adapter.batches())
    next(batches)
    first_seconds = time.perf_counter() - start
    if not job["cold"]:
        warm_up(batches, (job["data"]["n_tokens"] - 1) // length // rows)
    device = loader_counts.device_bytes()
    timed = until(batches, job["seconds"])
    found = take(timed, step_ms=0, steps=MOST_BATCHES, warm_up=0, tokens=rows * length)
    device = loader_counts.device_bytes() - device
    memory = loader_counts.memory()
    cpu, n = found.cpu_s + found.cpu_children_s, found.n_steps
    adapter.close()
    return {
        "length": length,
        "rows": rows,
        "first_ms": first_seconds * 1e3,
        "speed": found.tokens_per_second,
        "p50_us": found.wait.p50 * 1e6,
        "p99_us": found.wait.p99 * 1e6,
        "cpu_us": cpu / n * 1e6,
        "cpu_ns": cpu / found.n_tokens * 1e9,
        "feed_percent": cpu / found.n_tokens * FED_TOKENS * 100,
        "device_bytes_a_byte": device / (n * rows * 2 * (length + 1)),
        "private_mib": memory["private"],
        "own_mib": memory["private"] - imported,
        "pss_mib": memory["pss"],
        "n_batches": n,
    }


def warm_up(batches, n_batches):
    """An epoch, after which all pages of a map were touched; or as much as fits in the time."""
    until = time.perf_counter() + WARM_UP_SECONDS
    for n, _ in enumerate(batches):
        if n >= n_batches or (time.perf_counter() > until and n >= LEAST_BATCHES):
            break


def until(batches, seconds):
    """The batches of this duration."""
    start = time.perf_counter()
    for n, batch in enumerate(batches, 1):
        yield batch
        if n >= LEAST_BATCHES and time.perf_counter() - start >= seconds:
            return


def start_up(adapter_class, job):
    """The time to the first batch, and the peak memory until then."""
    import_peer(adapter_class)
    if "most_bytes" in job:  # of its own, without maps of files: too much is an error, no kill
        resource.setrlimit(resource.RLIMIT_DATA, (job["most_bytes"], job["most_bytes"]))
    before, _ = loader_counts.own_memory()
    start = time.perf_counter()
    adapter = adapter_class(job["data"], job["length"], job["rows"], job["seed"])
    next(iter(adapter.batches()))
    seconds = time.perf_counter() - start
    _, peak = loader_counts.own_memory()
    adapter.close()
    return {"first_ms": seconds * 1e3, "peak_mib": peak - before}


def content(adapter, batch):
    return b"".join(
        loader_check.as_u16(part, "a row")
        for row in adapter.tokens_of(batch)
        for part in row
        if part is not None
    ).hex()


def save(adapter_class, job):
    """Some steps, the state, and one more step, with which a resumed loader must begin."""
    import_peer(adapter_class)
    adapter = adapter_class(job["data"], job["length"], job["rows"], job["seed"])
    batches = iter(adapter.batches())
    for _ in range(job["step"]):
        next(batches)
    state = adapter.save()
    with open(job["state"], "wb") as f:
        pickle.dump({"state": state, "next": content(adapter, next(batches))}, f)
    adapter.close()
    return {"state_bytes": len(pickle.dumps(state))}


def resume(adapter_class, job):
    import_peer(adapter_class)
    with open(job["state"], "rb") as f:
        saved = pickle.load(f)
    start = time.perf_counter()
    adapter = adapter_class(job["data"], job["length"], job["rows"], job["seed"])
    adapter.restore(saved["state"])
    batch = next(iter(adapter.batches()))
    seconds = time.perf_counter() - start
    exact = content(adapter, batch) == saved["next"]
    adapter.close()
    return {"first_ms": seconds * 1e3, "exact": exact}


MODES = {
    "check": check,
    "measure": measure,
    "start_up": start_up,
    "save": save,
    "resume": resume,
}


def answer(job):
    if job.get("group"):
        with open(job["group"], "w") as f:
            f.write(str(os.getpid()))
    adapter_class = all_adapters(job["adapters"])[job["system"]]
    try:
        return MODES[job["mode"]](adapter_class, job)
    except ImportError as e:
        return {"not_installed": why_not_installed(adapter_class, e)}
    except NotSupported as e:
        return {"not_run": str(e)}
    except loader_check.Wrong as e:
        return {"wrong": str(e)}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is not an answer
    with open(sys.argv[1]) as f:
        job = json.load(f)
    out.write(json.dumps(answer(job)) + "\n")
    out.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py - tests and measures tokmap on the first CUDA device, in less than nine minutes.

Each step is a process of its own with a time limit. What it measured is in the result file when it
ends; a step that fails, or that this machine cannot do, is reported and the next one begins. Without
a device every step is skipped, with the reason. `make bench-gpu` builds what it needs."""

import argparse
import ctypes
import json
import math
import os
import pathlib
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))
import result_file  # noqa: E402

HERE = ROOT / "bench/gpu"
SKIPPED = 77
DATA_MIB = 512
KERNEL_TEST = "the_kernel_writes_what_its_twin_writes"

# (step, what it does, seconds, commands). A command that writes figures prints each as a line of JSON
# with "name", "unit" and "values"; tokbench writes a result file.
STEPS = (
    ("stress", "tests of the stage, in C and Python; compute-sanitizer on its kernel", 190, (
        "{build}/test_gpu", "{python} {root}/tests/python/test_python_gpu.py",
        *("{sanitizer} --tool %s --error-exitcode 1 --report-api-errors no {build}/test_gpu %s" %
          (tool, KERNEL_TEST) for tool in ("memcheck", "racecheck", "initcheck")))),
    ("h2d", "plain copies to the device, and batches of the stage alone", 30, (
        "{build}/tokbench gpu --dir {work} --json {work}/h2d.json",)),
    ("first", "time to the first batch", 40, ("{python} {here}/first_batch.py {data} {seconds}",)),
    ("pipeline", "training steps: without data, with tokmap, with what PyTorch offers", 180, (
        "{python} {here}/pipeline.py {data} {seconds}",)),
)


class Stopped(Exception):
    """By a signal."""


# ---- The machine ----


def find_device():
    """Its name. Raises OSError that says what is missing."""
    import tokmap._c.structs

    count, detail = ctypes.c_uint32(), tokmap._c.structs.ErrorDetail()
    if tokmap._c.structs.lib.tokmap_stage_count_devices(ctypes.byref(count), ctypes.byref(detail)):
        raise OSError(detail.text.decode(errors="replace"))
    cuda, device, text = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(256)
    cuda.cuInit(0)
    cuda.cuDeviceGet(ctypes.byref(device), 0)
    cuda.cuDeviceGetName(text, 256, device)
    return text.value.decode(errors="replace")


def describe_machine(gpu):
    machine = result_file.machine()
    if gpu:
        query = "driver_version,pcie.link.gen.current,pcie.link.width.current,clocks.sm,clocks.mem"
        smi = find_program("nvidia-smi")
        machine["gpu"] = gpu
        machine["nvidia_smi"] = {query: subprocess.run(
            [smi, "--id=0", f"--query-gpu={query}", "--format=csv,noheader"], capture_output=True,
            text=True, timeout=15).stdout.strip()} if smi else None
    return machine


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + "/usr/local/cuda/bin")


# ---- Rows ----


def finish_row(row):
    """From "values" to a row of a result file."""
    values = [float("%.6g" % v) for v in row["values"] if v is not None and math.isfinite(v)]
    if not values:
        return {"page": "gpu", "name": row["name"], "left_out": "nothing was measured"}
    row = {"page": "gpu", **row, "values": values, "median": float("%.6g" % statistics.median(values))}
    if "at_most" in row:
        limit = row.pop("at_most")
        row["target"] = {"at_most": limit, "reached": row["median"] <= limit}
    return row


def rows_in(log):
    """What a step that was stopped had printed by then counts."""
    for line in log.read_text(errors="replace").split("\n"):
        try:
            row = json.loads(line) if line.startswith("{") else {}
        except ValueError:
            continue  # its writer was killed in the middle of it
        if "values" in row:
            yield finish_row(row)
        elif "left_out" in row:
            yield {"page": "gpu", **row}


# ---- Steps ----


class Runner:
    def __init__(self, options, work):
        self.options, self.work, self.began = options, work, time.monotonic()
        self.logs = work / "logs"
        self.logs.mkdir()
        self.child = self.device = self.no_device = None
        self.rows, self.steps = [], []

    def left(self):
        return self.options.seconds - (time.monotonic() - self.began)

    def look_for_device(self):
        try:
            self.device = find_device()
        except OSError as error:
            self.no_device = f"no device: {error}"

    def run(self, command, limit, log):
        """Its exit status; None: its time was up. timeout keeps the limit when this process is killed."""
        limited = ["timeout", "--kill-after=3", "%.0f" % max(limit, 1), *command]
        with open(log, "ab", buffering=0) as out:
            out.write(("$ " + shlex.join(command) + "\n").encode())
            self.child = subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=out,
                                          stderr=subprocess.STDOUT, start_new_session=True, cwd=ROOT)
        try:
            status = self.child.wait()
            return None if status in (124, 137, -signal.SIGKILL) else status
        finally:
            self.kill()

    def kill(self):
        """With all that it started."""
        if self.child:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.child.wait()
        self.child = None

    def make_data(self):
        """Random tokens. Each block begins elsewhere, so that rows differ."""
        block = os.urandom(16 << 20)
        with open(self.work / "tokens.bin", "wb") as out:
            for i in range(DATA_MIB // 16):
                out.write(block[8198 * i:] + block[:8198 * i])
        subprocess.run([self.options.build / "tokmap", "index", self.work / "tokens.bin", "--dtype",
                        "u16", "--eod", "none"], check=True, stdout=subprocess.DEVNULL)

    def fill(self, command, seconds):
        """None: compute-sanitizer is not here."""
        words = {"build": self.options.build, "python": sys.executable, "root": ROOT, "here": HERE,
                 "work": self.work, "data": self.work / "tokens", "seconds": "%.0f" % seconds,
                 "sanitizer": find_program("compute-sanitizer")}
        if "{sanitizer}" in command and not words["sanitizer"]:
            return None
        return [word.format(**words) for word in command.split(" ")]

    def run_commands(self, commands, seconds, log):
        """(state, reason). A command that fails does not keep the next from running."""
        state, reason = "done", None
        for command in filter(None, (self.fill(command, seconds) for command in commands)):
            # They keep to their seconds themselves; this limit is for those that hang.
            status = self.run(command, min(1.5 * seconds + 15, self.left()), log)
            lines = [line for line in log.read_text(errors="replace").split("\n") if line.strip()]
            if status == SKIPPED and state == "done":
                state, reason = "skipped", lines[-1].removeprefix("skip: ")[:300]
            elif status is None:
                state, reason = "stopped", "its time was up"
            elif status not in (0, SKIPPED):
                failed = [line for line in lines if line.startswith("FAIL")]
                state, reason = "failed", f"status {status}: {(failed or lines)[-1][:300]}"
        return state, reason

    def run_step(self, step, seconds, commands):
        log, begun = self.logs / f"{step}.log", time.monotonic()
        state, reason = "stopped", "interrupted"
        try:
            if self.no_device:
                state, reason = "skipped", self.no_device
            elif self.left() < 10:
                state, reason = "skipped", "no time was left"
            else:
                state, reason = self.run_commands(commands, seconds, log)
        finally:
            self.add_step(step, state, reason, time.monotonic() - begun)

    def add_step(self, step, state, reason, seconds):
        log, result = self.logs / f"{step}.log", self.work / f"{step}.json"
        rows = list(rows_in(log)) if log.exists() else []
        if result.exists():
            rows += json.loads(result.read_text())["rows"]
        if not rows and reason:
            rows = [{"page": "gpu", "name": step, "left_out": reason}]
        self.rows += rows
        self.steps.append({"step": step, "state": state, "reason": reason, "seconds": round(seconds, 1)})
        print(f"{step}: {state}{f' ({reason})' if reason else ''}, {seconds:.1f} s", flush=True)
        self.write()

    def write(self):
        """The result file; the logs beside it."""
        version = re.search(r'TOKMAP_VERSION_TEXT "(.*)"', (ROOT / "include/tokmap.h").read_text())[1]
        result = {"schema": 1, "tokmap": version, "command": self.options.command,
                  "machine": describe_machine(self.device), "steps": self.steps, "rows": self.rows}
        out = self.options.out
        partial = out.with_name(out.name + ".partial")
        partial.write_text(result_file.as_text(result))
        os.replace(partial, out)
        with tarfile.open(out.with_suffix(".tar.gz"), "w:gz") as tar:
            tar.add(self.logs, "logs")

    def run_all(self):
        steps = [step for step in STEPS if not self.options.only or step[0] in self.options.only]
        self.look_for_device()
        if self.device:
            self.make_data()
        try:
            for step, _, seconds, commands in steps:
                self.run_step(step, seconds, commands)
        except Stopped:
            self.kill()
            for step, *_ in steps[len(self.steps):]:
                self.add_step(step, "skipped", "interrupted", 0)
            raise


# ---- Command line ----


def parse_options():
    about, text = __doc__.split(" - ", 1)[1].split("\n\n", 1)
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter, description=about,
        epilog=text + "\n\nSteps:\n" + "\n".join(f"  {step:9} {what}" for step, what, *_ in STEPS) +
        "\n\nExit status: 0 done, whatever was skipped or failed; 2 wrong usage; 130 interrupted.")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR", default=ROOT / "build",
                        help="the build folder [build]")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE.json",
                        help="result file; logs go into FILE.tar.gz [BUILD/gpu.json]")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="STEP,STEP",
                        help="these steps")
    parser.add_argument("--seconds", type=float, default=530, metavar="N", help="for all steps [530]")
    options = parser.parse_args()
    unknown = set(options.only or ()) - {step for step, *_ in STEPS}
    if unknown:
        parser.error(f"--only: no such step: {', '.join(sorted(unknown))}")
    options.build = options.build.resolve()
    options.out = (options.out or options.build / "gpu.json").resolve()
    missing = [name for name in ("libtokmap.so", "tokmap", "tokbench", "test_gpu")
               if not (options.build / name).exists()]
    if missing:
        parser.error(f"{', '.join(missing)}: not built in {options.build}; make bench-gpu builds them")
    options.command = "make bench-gpu" + (f" (--only {','.join(options.only)})" if options.only else "")
    return options


def stop(number, frame):
    raise Stopped


def main():
    options, status = parse_options(), 0
    paths = [str(ROOT / name) for name in ("python", "tests/oracles", "tests/support")]
    sys.path[:0] = paths
    os.environ.update(TOKMAP_LIBRARY=str(options.build / "libtokmap.so"), TOKMAP_BUILD=str(options.build),
                      PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1",
                      PYTHONUNBUFFERED="1")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    with tempfile.TemporaryDirectory(prefix="gpu_", dir=options.build) as work:
        try:
            Runner(options, pathlib.Path(work)).run_all()
        except Stopped:
            status = 130
    print(flush=True)
    subprocess.run([sys.executable, ROOT / "bench/report.py", options.out, "--markdown"], check=False)
    return status


if __name__ == "__main__":
    sys.exit(main())

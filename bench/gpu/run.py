#!/usr/bin/env python3
"""run.py - what bench/gpu.sh does: builds, tests on the first CUDA device, and measures there, one
step after another, each a process with a limit of its own. What a step writes is on disk at once;
what fails, or cannot be done here, is said and passed over."""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from typing import NamedTuple

import machine
from results import Results, print_tables

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "bench" / "gpu"
SKIPPED = 77
LEFT_FOR_THE_TABLE = 4  # seconds at the end
CARRY = ("xxhash.h not found. Where packages cannot be installed, carry a folder that has "
         "include/xxhash.h and lib/libxxhash.a, and name it: TOKMAP_DEPS=FOLDER bench/gpu.sh")
KERNEL_TEST = "the_kernel_writes_what_its_twin_writes"


class Step(NamedTuple):
    id: str
    title: str
    seconds: float   # of 530 for all
    needs: tuple     # of "device", "library", "data", "torch"
    commands: tuple  # lists of words; {...} are filled in


def script(name, *more):
    return ("{python}", str(HERE / name), "--rows", "{rows}", "--seconds", "{seconds}", *more)


def sanitizer(tool):
    return ("{sanitizer}", "--tool", tool, "--error-exitcode", "1", "--report-api-errors", "no",
            "{build}/test_gpu", KERNEL_TEST)


BUILD = Step("build", "library, commands, tests", 60, (), ())
DATA = Step("data", "a dataset of random tokens", 20, ("library",), (script("data.py", "{data}"),))
STEPS = (
    Step("machine", "device, driver, system, for the record", 8, ("device",),
         (("{python}", str(HERE / "machine.py"), "--out", "{environment}", "--dir", "{work}"),)),
    Step("test", "tests of the stage and its kernel", 45, ("device", "library"),
         (("{build}/test_gpu",),)),
    Step("python", "tests in Python", 60, ("device", "library"),
         (("{python}", str(ROOT / "tests/python/test_python_gpu.py")),)),
    Step("sanitize", "the kernel under compute-sanitizer", 90, ("device", "library", "sanitizer"),
         tuple(sanitizer(tool) for tool in ("memcheck", "racecheck", "initcheck"))),
    Step("copies", "plain copies, and batches of a stage alone", 30, ("device", "library"),
         (("{build}/tokbench", "gpu", "--dir", "{work}", "--json", "{rows}"),)),
    Step("first", "time to the first batch", 30, ("device", "library", "data"),
         (script("first_batch.py", "{data}"),)),
    Step("steps", "training steps, ours and others'", 180, ("device", "library", "data", "torch"),
         (script("step_time.py", "{data}"),)),
)


class Stopped(Exception):
    """From outside: whoever runs us wants an end."""


class Runner:
    def __init__(self, options):
        self.options, self.began = options, time.monotonic()
        self.build, self.work = options.build.resolve(), options.build.resolve() / "gpu"
        self.rows, self.logs = self.work / "rows", self.work / "logs"
        self.data = self.work / "data" / "tokens"
        self.results = Results(self.rows, options.command, machine.describe())
        self.child = self.device = None
        self.why_not = {}  # what is not there, and why
        self.steps = []

    # ---- Time ----

    def left(self):
        return self.options.seconds - LEFT_FOR_THE_TABLE - (time.monotonic() - self.began)

    def share(self, step, later):
        """Its own seconds, or less when those that come later would have none left."""
        wanted = step.seconds + sum(s.seconds for s in later)
        return step.seconds * min(1, max(self.left(), 0) / wanted)

    # ---- Processes ----

    def environment(self):
        paths = [str(HERE), str(ROOT / "python"), str(ROOT / "tests/oracles"), os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p),
                "TOKMAP_LIBRARY": str(self.build / "libtokmap.so"), "TOKMAP_BUILD": str(self.build),
                "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def kill(self):
        if self.child and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGTERM)
            try:
                self.child.wait(2)
            except subprocess.TimeoutExpired:
                pass
        if self.child:
            try:  # what it started may be there still
                os.killpg(self.child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.child.wait()
        self.child = None

    def run(self, command, limit, log):
        """Its exit status, None when it was stopped; its output goes to the end of the log. timeout
        keeps the limit, so that it holds when this process is killed, too."""
        limited = ["timeout", "--kill-after=3", "%.0f" % max(limit, 1), *command]
        with open(log, "ab") as out:
            out.write(("$ " + shlex.join(command) + "\n").encode())
            out.flush()
            try:
                self.child = subprocess.Popen(limited, stdin=subprocess.DEVNULL, stdout=out,
                                              stderr=subprocess.STDOUT, start_new_session=True,
                                              env=self.environment(), cwd=ROOT)
            except OSError as error:
                out.write(f"{error}\n".encode())
                return 127
        try:
            status = self.child.wait()
            return None if status in (124, 137, -signal.SIGKILL) else status
        finally:
            self.kill()

    def last_line(self, log):
        lines = [line.strip() for line in log.read_text(errors="replace").split("\n")]
        lines = [line for line in lines if line and not line.startswith(("{", "$ "))]
        return lines[-1][:300] if lines else "it said nothing"

    # ---- Steps ----

    def say(self, step, state, reason, seconds):
        self.results.add(step, state, reason, seconds)
        print("==== %s: %s%s, %.1f s" % (step.id, state, f" ({reason})" if reason else "", seconds),
              flush=True)
        self.write()

    def write(self):
        version = re.search(r'TOKMAP_VERSION_TEXT "(.*)"',
                            (ROOT / "include/tokmap.h").read_text())[1]
        self.results.write(self.options.out, version)
        archive = self.options.out.with_suffix(".tar.gz")
        with tarfile.open(f"{archive}.partial", "w:gz") as tar:
            tar.add(self.logs, "logs")
            tar.add(self.rows, "rows")
        os.replace(f"{archive}.partial", archive)

    def fill(self, step, seconds):
        words = {"rows": self.rows / f"{step.id}.jsonl", "data": self.data, "build": self.build,
                 "work": self.work, "python": sys.executable,
                 "environment": self.rows / "environment.json", "sanitizer": self.find_sanitizer(),
                 "seconds": "%.1f" % (seconds / max(len(step.commands), 1))}
        return [[word.format(**words) for word in command] for command in step.commands]

    def run_step(self, step, later=()):
        """The state of a step, said and kept."""
        begun = time.monotonic()
        missing = next((self.why_not[need] for need in step.needs if need in self.why_not), None)
        seconds = self.share(step, later)
        if missing:
            return self.say(step, "skipped", missing, 0)
        if seconds < min(2, step.seconds / 2):
            return self.say(step, "skipped", "no time was left", 0)
        log = self.logs / f"{step.id}.log"
        state, reason = "stopped", "interrupted"
        try:
            state, reason = self.run_commands(step, seconds, log)
        finally:
            self.say(step, state, reason, time.monotonic() - begun)
        return state

    def run_commands(self, step, seconds, log):
        """One that fails does not keep the others from running."""
        state, reason = "done", None
        for command in self.fill(step, seconds):
            # They keep to their seconds themselves; this is for those that hang.
            status = self.run(command, min(seconds * 1.5 + 15, self.left()), log)
            if status == SKIPPED and state == "done":
                state, reason = "skipped", self.last_line(log).removeprefix("skip: ")
            elif status is None:
                state, reason = "stopped", "its time was up"
            elif status not in (0, SKIPPED):
                state, reason = "failed", f"status {status}: {self.last_line(log)}"
        if step.id in ("test", "python"):
            lines = [line.split()[0] for line in log.read_text(errors="replace").split("\n") if line]
            counts = [f"{lines.count(word)} {word}" for word in ("ok", "skip", "FAIL")]
            reason = ", ".join([*counts, *([reason] if reason else [])])
        return state, reason

    # ---- What the steps need ----

    def look_for_device(self):
        log = self.logs / "device.log"
        status = self.run([sys.executable, str(HERE / "machine.py"), "--look"], 30, log)
        if status == 0:
            self.device = self.results.device = self.last_line(log)
        else:
            why = "the driver does not answer" if status is None else self.last_line(log)
            self.why_not["device"] = self.results.no_device = f"no device: {why}"

    def look_for_torch(self):
        if self.device:
            log = self.logs / "torch.log"
            code = ("import torch, numpy\nif not torch.cuda.is_available(): "
                    "raise SystemExit('PyTorch finds no device')")
            if self.run([sys.executable, "-c", code], 60, log) != 0:
                self.why_not["torch"] = f"PyTorch does not work here: {self.last_line(log)}"
        if not self.find_sanitizer():
            self.why_not["sanitizer"] = "compute-sanitizer not found"

    @staticmethod
    def find_sanitizer():
        places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
        return shutil.which("compute-sanitizer", path=places)

    def find_missing_for_build(self):
        """What has to be carried, said before the compiler says it in its own words."""
        cc = os.environ.get("CC", "cc")
        flags = shlex.split(os.environ.get("CPPFLAGS", ""))
        links = shlex.split(os.environ.get("LDFLAGS", ""))
        if not shutil.which(cc):
            return f"no compiler: {cc} not found"
        try:
            done = subprocess.run([cc, *flags, "-include", "xxhash.h", "-x", "c", "-", "-o",
                                   str(self.work / "probe"), *links, "-lxxhash"], text=True,
                                  input="int main(void) { return 0; }", capture_output=True,
                                  timeout=30)
        except subprocess.TimeoutExpired:
            return f"{cc} does not come back"
        return CARRY if done.returncode else None

    def build_all(self):
        begun, log = time.monotonic(), self.logs / "build.log"
        products = [self.build / name for name in ("libtokmap.so", "tokmap", "tokbench", "test_gpu")]
        reason = "not asked for" if self.options.no_build else self.find_missing_for_build()
        if not self.options.no_build:
            for path in products:
                path.unlink(missing_ok=True)  # what is old does not count
        if not reason:
            make = [os.environ.get("MAKE", "make"), "--no-print-directory", "-C", str(ROOT),
                    f"-j{os.cpu_count()}", f"BUILD={self.build}", *map(str, products)]
            status = self.run(make, min(BUILD.seconds * 3, max(self.left() / 2, 30)), log)
            what = "took too long" if status is None else f"status {status}"
            reason = f"{what}: {self.last_line(log)}" if status != 0 else None
        state = "skipped" if self.options.no_build else "failed" if reason else "done"
        self.say(BUILD, state, reason, time.monotonic() - begun)
        if not all(path.exists() for path in products):
            self.why_not["library"] = f"not built: {reason}"

    def make_data(self, later):
        self.data.parent.mkdir(parents=True, exist_ok=True)
        if "device" in self.why_not:
            self.why_not["data"] = self.why_not["device"]
            self.say(DATA, "skipped", self.why_not["device"], 0)
        elif self.run_step(DATA, later) != "done":
            self.why_not["data"] = "there are no data: see that step"

    # ---- All ----

    def run_all(self):
        only = self.options.only
        later = [step for step in STEPS if not only or step.id in only]
        self.steps = [BUILD, DATA, *later]
        for folder in (self.rows, self.logs):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.look_for_device()
        self.build_all()
        self.look_for_torch()
        self.make_data(later)
        for i, step in enumerate(later):
            self.run_step(step, later[i + 1:])

    def finish(self):
        """Also when it was interrupted."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.kill()
        shutil.rmtree(self.data.parent, ignore_errors=True)
        told = {step["id"] for step in self.results.steps}
        for step in self.steps:
            if step.id not in told:
                self.results.add(step, "skipped", "interrupted", 0)
        self.write()
        print_tables(self.results, self.options.seconds)
        print(f"Written: {self.options.out}, with its logs in a .tar.gz beside it")


def take_options():
    parser = argparse.ArgumentParser(
        prog="bench/gpu.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Builds tokmap, tests it on the first CUDA device and measures the way there.\n"
                    "Without a device all steps are skipped, with the reason.",
        epilog="Steps:\n" + "\n".join(f"  {step.id:8} {step.title}" for step in STEPS) +
               "\n\nEnvironment: BUILD, CC, CPPFLAGS, LDFLAGS, MAKE, PYTHON, and TOKMAP_DEPS, a\n"
               "folder with include/xxhash.h and lib/libxxhash.a where the package is not\n"
               "installed.\n"
               "\nExit status: 0 done, whatever was skipped, failed or reached no aim; 2 wrong\n"
               "usage; 130 interrupted. The tables are printed in any case.")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE.json",
                        help="result file; logs and rows go into FILE.tar.gz beside it "
                             "[BUILD/gpu/results.json]")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="STEP,STEP",
                        help="these steps")
    parser.add_argument("--seconds", type=float, default=530, metavar="N",
                        help="for everything together [530]")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        default=pathlib.Path(os.environ.get("BUILD", ROOT / "build")),
                        help="build folder [$BUILD or build]")
    parser.add_argument("--no-build", action="store_true",
                        help="take what the build folder has")
    options = parser.parse_args()
    unknown = set(options.only or ()) - {step.id for step in STEPS}
    if unknown:
        parser.error(f"--only: no such step: {', '.join(sorted(unknown))}")
    if options.seconds < 10:
        parser.error("--seconds has to be 10 or more")
    options.out = (options.out or options.build / "gpu" / "results.json").resolve()
    words = [re.sub(r"^(--[a-z-]+=)?.*/.*", r"\1...", word) for word in sys.argv[1:]]
    options.command = shlex.join(["bench/gpu.sh", *words])
    return options


def stop(number, frame):
    raise Stopped


def main():
    options = take_options()
    runner, status = Runner(options), 0
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        runner.run_all()
    except Stopped:
        print("==== interrupted", flush=True)
        status = 130
    finally:
        runner.finish()
    return status


if __name__ == "__main__":
    sys.exit(main())

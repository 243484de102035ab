#!/usr/bin/env python3
"""run.py - what bench/gpu.sh does: builds, tests, and runs the experiments E0 to E12 one after
another, each in processes of its own that end when their time is up. What one of them writes is on
disk at once; what fails, or cannot be done here, is said and passed over."""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
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


class Step(NamedTuple):
    id: str
    title: str
    seconds: float   # of 530 for all
    needs: tuple     # of "device", "gpubench", "library", "data", "torch"
    commands: tuple  # lists of words; {...} are filled in


def gpubench(page, *more):
    return ("{gpubench}", page, "--rows", "{rows}", "--data", "{data}", "--dir", "{dir}",
            "--seconds", "{seconds}", *more)


def script(name, *more):
    return ("{python}", str(HERE / name), *more, "--rows", "{rows}", "--data", "{data}",
            "--seconds", "{seconds}")


BUILD = Step("build", "library, gpubench", 55, (), ())
DATA = Step("data", "datasets of random tokens", 35, ("gpubench",),
            (("{gpubench}", "data", "--data", "{data}", "--seconds", "{seconds}", "--mib",
              "{data_mib}"),))
TEST = Step("test", "make gpu-test", 45, ("device", "gpubench"),
            (("{make}", "--no-print-directory", "-C", str(ROOT), "BUILD={build}", "gpu-test"),))
# In the order in which they run: what matters most first, what forgets the page cache last.
EXPERIMENTS = (
    Step("E0", "the machine", 8, ("device",),
         (("{python}", str(HERE / "machine.py"), "--out", "{environment}", "--dir", "{dir}",
           "--gpubench", "{gpubench}", "--seconds", "{seconds}"),)),
    Step("E1", "copies to the device by size and kind of memory", 25, ("device", "gpubench"),
         (gpubench("h2d"),)),
    Step("E5", "the loader alone against the link's peak", 35, ("device", "gpubench", "data"),
         (gpubench("pipeline"),)),
    Step("E6", "simulated training steps, ours and others'", 130, ("device", "torch"),
         (script("torch_steps.py", "--without", "{without}"),)),
    Step("E4", "the kernel: exact, fast, sanitized", 55, ("device", "gpubench", "data"),
         (gpubench("expand"), script("sanitize.py", "--gpubench", "{gpubench}"))),
    Step("E7", "transfers beside a step, by events", 12, ("device", "torch", "library", "data"),
         (script("torch_overlap.py", "overlap"),)),
    Step("E8", "beside large copies of others", 18, ("device", "torch", "library", "data"),
         (script("torch_overlap.py", "traffic"),)),
    Step("E9", "lifetimes of batches, two streams, a graph", 25, ("device", "gpubench", "data"),
         (gpubench("stress"),)),
    Step("E2", "slices by copies and by kernels; where pull ends", 25,
         ("device", "gpubench", "data"), (gpubench("slices"),)),
    Step("E11", "fork beside pinned memory", 6, ("device", "gpubench", "data"),
         (gpubench("fork"),)),
    Step("E3", "which mapped files can be registered", 25, ("device", "gpubench"),
         (gpubench("register"),)),
    Step("E10", "a file that is not in memory", 25, ("device", "gpubench", "data"),
         (gpubench("cold"),)),
    Step("E12", "memory nodes; a file that is only mapped", 6, ("device", "gpubench"),
         (gpubench("numa"),)),
)


class Stopped(Exception):
    """From outside: whoever runs us wants an end."""


class Runner:
    def __init__(self, options):
        self.options, self.began = options, time.monotonic()
        self.build, self.work = options.build.resolve(), options.build.resolve() / "gpu"
        self.rows, self.logs = self.work / "rows", self.work / "logs"
        self.data = pathlib.Path(options.dir or self.work).resolve() / "gpu-data" / "tokens"
        self.bench = self.work / "gpubench"
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
        paths = [str(HERE), str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p),
                "TOKMAP_LIBRARY": str(self.build / "libtokmap.so"), "PYTHONUNBUFFERED": "1",
                "PYTHONDONTWRITEBYTECODE": "1"}

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
        """Its exit status, None when it was stopped; its output goes to the end of the log."""
        with open(log, "ab") as out:
            out.write(("$ " + shlex.join(command) + "\n").encode())
            out.flush()
            try:
                self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                              stderr=subprocess.STDOUT, start_new_session=True,
                                              env=self.environment(), cwd=ROOT)
            except OSError as error:
                out.write(f"{error}\n".encode())
                return 127
        try:
            return self.child.wait(max(limit, 1))
        except subprocess.TimeoutExpired:
            return None
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

    def fill(self, step, seconds):
        words = {"gpubench": self.bench, "rows": self.rows / f"{step.id}.jsonl", "data": self.data,
                 "dir": self.data.parent, "python": sys.executable, "build": self.build,
                 "make": os.environ.get("MAKE", "make"), "data_mib": self.options.data_mib,
                 "environment": self.rows / "environment.json",
                 "seconds": "%.1f" % (seconds / max(len(step.commands), 1)),
                 "without": "tokmap" if "library" in self.why_not else ""}
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
        if step == TEST and state == "done":
            reason = self.last_line(log)  # how many passed
        return state, reason

    # ---- What the experiments need ----

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

    def build_commands(self):
        cc, cuda = os.environ.get("CC", "cc"), self.options.cuda
        folders = [cuda / name for name in ("lib64", "lib", "targets/x86_64-linux/lib")]
        found = ["-L" + str(folder) for folder in folders if folder.exists()]
        flags = shlex.split(os.environ.get("CPPFLAGS", ""))
        links = shlex.split(os.environ.get("LDFLAGS", ""))
        nvcc = cuda / "bin" / "nvcc"
        kernels = str(self.work / "kernels.o")
        make = [os.environ.get("MAKE", "make"), "--no-print-directory", "-C", str(ROOT),
                f"-j{os.cpu_count()}", f"BUILD={self.build}"]
        target = "native" if self.device else "sm_75"
        return [
            make + [str(self.build / "libtokmap.a")],
            [str(nvcc), "-O3", f"-arch={target}", "-c", str(HERE / "kernels.cu"), "-o", kernels],
            [cc, "-O3", "-g", "-std=c11", "-D_GNU_SOURCE", "-pthread", *flags,
             "-I" + str(ROOT / "include"), "-isystem", str(cuda / "include"), "-o",
             str(self.bench), *map(str, sorted(HERE.glob("*.c"))), kernels,
             str(self.build / "libtokmap.a"), *links, "-lxxhash", *found, "-lcudart_static",
              "-ldl", "-lrt", "-lpthread", "-lstdc++", "-lm"],
            make + [str(self.build / "libtokmap.so")],
        ]

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
        library = self.build / "libtokmap.so"
        reason = "not asked for" if self.options.no_build else self.find_missing_for_build()
        if not self.options.no_build:
            for path in (library, self.bench):
                path.unlink(missing_ok=True)  # what is old does not count
        limit = min(BUILD.seconds * 3, max(self.left() / 2, 30))
        for command in () if reason else self.build_commands():
            status = self.run(command, limit - (time.monotonic() - begun), log)
            if status != 0:
                what = "took too long" if status is None else f"status {status}"
                reason = f"{pathlib.Path(command[0]).name}: {what}: {self.last_line(log)}"
                break
        state = "skipped" if self.options.no_build else "failed" if reason else "done"
        self.say(BUILD, state, reason, time.monotonic() - begun)
        if not library.exists():
            self.why_not["library"] = f"the library is not built: {reason}"
        if not self.bench.exists():
            self.why_not["gpubench"] = f"gpubench is not built: {reason}"

    def data_files(self):
        return [pathlib.Path(f"{self.data}-{name}.{suffix}") for suffix in ("tmi", "bin")
                for name in ("large", "small", "wide")]

    def make_data(self, later):
        self.data.parent.mkdir(parents=True, exist_ok=True)
        if "device" in self.why_not:
            self.why_not["data"] = self.why_not["device"]
            self.say(DATA, "skipped", self.why_not["device"], 0)
        elif all(path.exists() for path in self.data_files()):
            self.say(DATA, "done", None, 0)
        elif self.run_step(DATA, later) != "done":
            self.why_not["data"] = "there are no data: see that step"

    # ---- All ----

    def run_all(self):
        only = self.options.only
        tests = [TEST] if not only or "test" in only else []
        later = [*tests, *(e for e in EXPERIMENTS if not only or e.id in only)]
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

    def clean(self):
        if not self.options.keep_data:
            for path in self.data_files():
                path.unlink(missing_ok=True)
            try:
                self.data.parent.rmdir()
            except OSError:
                pass  # not ours alone, or not made

    def finish(self):
        """Also when it was interrupted."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self.kill()
        self.clean()
        told = {step["id"] for step in self.results.steps}
        for step in self.steps:
            if step.id not in told:
                self.results.add(step, "skipped", "interrupted", 0)
        self.write()
        print_tables(self.results, self.options.seconds)
        print(f"Written: {self.options.out}   logs: {self.logs}")


def find_toolkit():
    nvcc = shutil.which("nvcc")
    beside = pathlib.Path(nvcc).resolve().parent.parent if nvcc else None
    return pathlib.Path(os.environ.get("CUDA_HOME") or beside or "/usr/local/cuda")


def take_options():
    parser = argparse.ArgumentParser(
        prog="bench/gpu.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Builds tokmap, tests it on the first CUDA device and measures the way there:\n"
                    "experiments E0 to E12. Without a device all are skipped, with the reason.",
        epilog="Experiments:\n" +
               "\n".join(f"  {e.id:4} {e.title}" for e in sorted(EXPERIMENTS,
                                                                 key=lambda e: int(e.id[1:]))) +
               "\n\nEnvironment: BUILD, CC, CPPFLAGS, LDFLAGS, MAKE, PYTHON, CUDA_HOME, and\n"
               "TOKMAP_DEPS, a folder with include/xxhash.h and lib/libxxhash.a where the package\n"
               "is not installed.\n"
               "\nExit status: 0 done, whatever was skipped, failed or reached no aim; 2 wrong\n"
               "usage; 130 interrupted. The tables are printed in any case.")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE",
                        help="result file, JSON [BUILD/gpu/results.json]")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="E1,E5",
                        help="these experiments; also 'test'")
    parser.add_argument("--seconds", type=float, default=530, metavar="N",
                        help="for everything together [530]")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        default=pathlib.Path(os.environ.get("BUILD", ROOT / "build")),
                        help="build folder [$BUILD or build]")
    parser.add_argument("--no-build", action="store_true",
                        help="take what the build folder has")
    parser.add_argument("--dir", metavar="DIR", help="for test data, 4 GiB [BUILD/gpu]")
    parser.add_argument("--data-mib", type=int, default=4096, metavar="N",
                        help="size of the large dataset [4096]")
    parser.add_argument("--keep-data", action="store_true",
                        help="do not remove the data; a later run takes them")
    parser.add_argument("--cuda", metavar="DIR", type=pathlib.Path, default=find_toolkit(),
                        help="the toolkit [$CUDA_HOME, or where nvcc is]")
    options = parser.parse_args()
    known = {e.id for e in EXPERIMENTS} | {"test"}
    if options.only and set(options.only) - known:
        parser.error(f"--only: no such experiment: {', '.join(set(options.only) - known)}")
    if options.seconds < 10 or options.data_mib < 1:
        parser.error("--seconds has to be 10 or more, --data-mib 1 or more")
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

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chaos.py N SEED - tokmap pack under everything that goes wrong at once: kills and signals at any moment, full
disks, calls that fail (an allocation, a new thread, a read, a write), torn, flipped, swapped and outdated files of
unfinished work, inputs that change between runs and in the middle of one. With splits, limits, bad documents skipped.

Each of the N trials ends when pack does, or gives up after some runs. Whatever has a final name has the bytes of a
run that nothing happened to; every other end is an error that says so. Prints what happened how often, and the number
of each trial that failed: `chaos.py 1 SEED --first NUMBER` runs that one alone. chaos_plans.py does the same to packs
with a plan, and chaos_walk.py lets nothing but one call fail."""

import argparse
import collections
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pack_corpus
import ref_protocol
from ref_protocol import NO_LEAK_SEARCH

# What a run may end with: done, bad input, damage, exists, try again; or the signal that was sent.
ENDS = (0, 3, 4, 5, 75, -signal.SIGKILL, -signal.SIGXFSZ, -signal.SIGINT, -signal.SIGTERM)
# The calls that libfailures.so lets fail, and how a run then ends; a short read or write is no failure.
FAILURES = {"memory": (0, 75), "thread": (0, 75), "read": (0, 75), "short": (0,), "write": (0, 75)}
LIBRARY = os.path.join(ref_protocol.BUILD or "", "libfailures.so")
CAN_FAIL = os.path.exists(LIBRARY) and not os.environ.get("TOKMAP_SANITIZED")  # whose allocators come first


class Wrong(Exception):
    """What must never happen."""


def counting(folder):
    """The environment of a run whose calls are counted."""
    return {**os.environ, "LD_PRELOAD": LIBRARY, "FAIL_COUNTS": str(folder / "counts")} if CAN_FAIL else None


def read_counts(folder):
    """How many calls of each kind the last run of this kind made."""
    return {kind: int(n) for kind, n in map(str.split, open(folder / "counts"))} if CAN_FAIL else {}


class World(pack_corpus.Packing):
    """Inputs, options, and what a run gives that nothing happens to."""

    OPTIONS = [
        [],
        ["--split", "v=0.3", "--also", "megatron"],
        ["--split", "v=0.1", "--split", "t=0.3"],
        ["--split", "v=0.2", "--limit-documents", "300"],
        ["--limit-tokens", "400000", "--also", "megatron"],
        ["--tokenizer", "vocabulary.json", "--split", "v=0.1", "--split", "t=0.3"],
        ["--tokenizer", "vocabulary.json", "--specials", "error", "--split", "v=0.5"],
        ["--where", "id >= 20 or @row < 5", "--meta", "id,@row,lang,text", "--split", "v=0.3"],
    ]

    scale = 1

    def __init__(self, folder, number, rng):
        super().__init__(folder)
        folder.mkdir()
        self.names = pack_corpus.write_inputs(folder, rng, self.scale, text_files=number % 9 == 8)
        options = self.OPTIONS[number % len(self.OPTIONS)]
        if "--where" in options:
            self.names = pack_corpus.with_fields(self.names)
        self.plan_options = [*options, "--on-error", "skip"]
        self.options = [*self.plan_options, "--memory", "8M"]
        self.originals = {name: ((folder / name).read_bytes(), (folder / name).stat()) for name in self.names}
        begin = time.monotonic()
        self.wanted = self.pack_undisturbed()
        self.seconds = time.monotonic() - begin
        self.calls = read_counts(folder)

    def command(self, out, *arguments):
        return [self.program, "pack", "-q", *self.names, "-o", out, *self.options, *arguments]

    def pack_undisturbed(self):
        done = subprocess.run(self.command("calm", "-j", "1"), cwd=self.folder, capture_output=True, text=True,
                              env=counting(self.folder))
        if done.returncode != 0:
            raise Wrong("an undisturbed run ends with %d: %s" % (done.returncode, done.stderr))
        files = self.outputs("calm")
        self.remove("calm")
        return files

    def restore_inputs(self):
        for name, (data, stat) in self.originals.items():
            path = self.folder / name
            if not path.exists() or path.stat().st_mtime_ns != stat.st_mtime_ns or path.read_bytes() != data:
                path.write_bytes(data)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


class Trial:
    readers, spills = ["", "1", "3", "64"], ["", "0", "20000", str(1 << 40)]

    def __init__(self, world, seed, counts):
        self.world, self.counts = world, counts
        self.rng = random.Random(seed)
        self.acceptable = [world.wanted]
        self.history = []  # for the report
        self.snapshots = []  # {suffix: bytes} of unfinished work, at several times
        self.changed = self.tampered = False

    def note(self, what, *details):
        self.counts[what] += 1
        self.history.append(" ".join([what, *map(str, details)]))

    def partial_files(self):
        return [path for path in self.world.paths("out") if path.name.endswith(".partial")]

    # ---- What happens to the files of unfinished work ----

    def tamper(self):
        files = [path for path in self.partial_files() if path.stat().st_nlink == 1]  # else it is finished
        journals = [path for path in files if path.name.endswith(".tmj.partial")]
        if not files:
            return
        rng = self.rng
        how = rng.choice(["tear", "tear", "flip the tail", "flip the tail", "flip", "flip data", "old", "swap",
                          "remove", "extend"])
        path = rng.choice(journals or files)
        if how in ("flip data", "old", "remove", "extend"):
            path = rng.choice(files)
        data = bytearray(path.read_bytes())
        if how == "swap":
            if len(journals) < 2:
                return
            a, b = rng.sample(journals, 2)
            first, second = a.read_bytes(), b.read_bytes()
            a.write_bytes(second)
            b.write_bytes(first)
        elif how == "old":
            old = rng.choice(self.snapshots) if self.snapshots else {}
            if path.name[3:] not in old:
                return
            path.write_bytes(old[path.name[3:]])
        elif how == "remove":
            path.unlink()
        elif how == "extend":
            path.write_bytes(bytes(data) + rng.randbytes(rng.randint(1, 300)))
        elif not data:
            return
        elif how == "tear":
            path.write_bytes(bytes(data[:len(data) - rng.randint(1, min(len(data), rng.choice([8, 400, 4000])))]))
        else:
            last = 200 if how == "flip the tail" else len(data)
            at = len(data) - 1 - rng.randrange(min(last, len(data)))
            data[at] ^= 1 << rng.randrange(8)
            path.write_bytes(bytes(data))
        self.tampered = True
        self.note(how, path.name)

    # ---- What happens to the inputs ----

    def change_input(self):
        """One input, once a trial. From then on a run may end with the old bytes of it or with the new ones."""
        rng, name = self.rng, self.rng.choice(self.world.names)
        path = self.world.folder / name
        stat, data = path.stat(), bytearray(path.read_bytes())
        how = rng.choice(["grow", "shrink", "replace", "edit and hide"])
        if how == "grow":
            with open(path, "ab") as out:
                out.write(data[:rng.randint(1, 3000)])
        elif how == "shrink":
            os.truncate(path, rng.randrange(len(data)))
        else:
            at = rng.randrange(len(data))
            data[at] = ord("x") if data[at] != ord("x") else ord("y")
            if how == "replace":
                other = path.with_name("other")
                other.write_bytes(data)
                other.rename(path)
            else:
                path.write_bytes(data)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.changed = True
        self.note(how, name)

    def accept_changed_input(self):
        try:
            self.acceptable.append(self.world.pack_undisturbed())
        except Wrong:
            pass  # a damaged archive: it cannot be packed at all

    # ---- Runs ----

    def failure(self):
        """The environment of a run of which, now and then, one call fails, or all from one on."""
        rng, calls = self.rng, self.world.calls
        if not calls or rng.random() < 0.7:
            return {}
        kind = rng.choice(["memory", *FAILURES])
        which = "%s:%d%s" % (kind, rng.randint(1, calls[kind]), rng.choice(["", "", "", "+"]))
        self.note("fail " + kind, which)
        return {"LD_PRELOAD": LIBRARY, "FAIL": which}

    def start(self, command, limit, failure):
        """A run whose files may not grow beyond the limit, as on a full disk."""
        if limit:
            self.note("full disk")

        def limit_size():
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        environment = {**os.environ, **NO_LEAK_SEARCH, "TOKMAP_CHECKPOINT_MS": self.rng.choice(["0", "0", "3", "2000"]),
                       **failure}
        if readers := self.rng.choice(self.readers):  # else they are added when they are missed
            environment["TOKMAP_TEST_READERS"] = readers
        if spill := self.rng.choice(self.spills):  # all jobs that are ahead, as far as there is room
            environment["TOKMAP_TEST_SPILL"] = spill
        if part := self.rng.choice(["", "1", "3000", "20000"]):  # a file of Parquet has so many bytes in each part
            environment["TOKMAP_TEST_PART"] = part
        return subprocess.Popen(command, cwd=self.world.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, env=environment, preexec_fn=limit_size)

    def disturb(self, run, seconds, ways):
        """In one of these ways, at a moment within so many seconds."""
        try:
            run.wait(self.rng.random() * seconds)
            return
        except subprocess.TimeoutExpired:
            pass
        how = self.rng.choice(ways)
        if how == "change":
            run.send_signal(signal.SIGSTOP)
            self.change_input()
            run.send_signal(signal.SIGCONT)
        elif how == "interrupt":
            run.send_signal(self.rng.choice([signal.SIGINT, signal.SIGTERM]))
            self.note("interrupt")
        elif how == "kill":
            run.send_signal(signal.SIGSTOP)
            self.note("kill")
            try:
                files = [os.stat(path) for path in pack_corpus.descriptors_without_a_name(run.pid, self.world.folder)]
            except FileNotFoundError:  # it has ended
                files = []
            if any(file.st_size for file in files):
                self.note("kill after tokens were in a file without a name")
            if any(file.st_blocks for file in files):
                self.note("kill while tokens are in it")
            run.kill()

    def disturb_somehow(self, run):
        if self.rng.random() < 0.3:
            self.kill_between_names(run)
        else:
            self.disturb(run, 1.1 * self.world.seconds,
                         ["kill", "kill", "kill", "interrupt", "kill" if self.changed else "change"])

    def kill_between_names(self, run):
        """When the outputs get their names, one after the other."""
        names = [self.world.folder / ("out" + name) for name in self.world.wanted]
        name = self.rng.choice(names)
        while run.poll() is None and not name.exists():
            pass
        time.sleep(self.rng.choice([0, 0, 0.0002, 0.001]))
        run.kill()
        self.note("kill between names", name.name)

    def run_once(self, *arguments, calm=False):
        rng = self.rng
        limit = None
        if not calm and rng.random() < 0.15:
            limit = rng.randrange(1000, max(len(data) for data in self.world.wanted.values()) + 4096)
        failure = {} if calm else self.failure()
        run = self.start(self.world.command("out", "-j", rng.choice("123"), *arguments), limit, failure)
        if not calm and not (failure and rng.random() < 0.7):
            self.disturb_somehow(run)
        said = run.communicate(timeout=120)[1].decode("utf-8", "replace")
        self.history.append("exit %d: %s" % (run.returncode, " ".join(said.split())[:200]))
        self.counts["exit %d" % run.returncode] += 1
        if run.returncode not in ENDS or (run.returncode != 0 and run.returncode > 0 and not said):
            raise Wrong("it ended with %d and said: %s" % (run.returncode, said))
        return run.returncode, said

    def check_named_files(self, finished):
        """Whatever has a final name has the right bytes, all of one and the same dataset once it is finished."""
        got = {name: data for name, data in self.world.outputs("out").items() if not name.endswith(".partial")}
        for wanted in self.acceptable:
            if all(wanted.get(name) == data for name, data in got.items()) and (
                    not finished or sorted(got) == sorted(wanted)):
                return
        raise Wrong("the files %s are not those of an undisturbed run" % sorted(got))

    def run(self):
        rng = self.rng
        self.world.restore_inputs()
        self.world.remove("out")
        arguments = []
        for step in range(14):
            n_changed = self.changed
            code, said = self.run_once(*arguments, calm=step > 9)
            arguments = []
            if self.changed and not n_changed:
                self.accept_changed_input()
            exists = code == 5 and "already exists" in said
            self.check_named_files(finished=code == 0 or code == 5 and "nothing to resume" in said)
            if code == 0 or exists:
                self.counts["finished"] += 1
                return
            if code in (3, 4, 5):
                if not self.tampered and not self.changed:
                    raise Wrong("it is refused with %d, and nothing was damaged: %s" % (code, said))
                self.counts["refused"] += 1
                arguments = rng.choice([[], ["--restart"], ["--restart", "--force"]])
            if code == 3 and self.changed and rng.random() < 0.4:
                self.world.restore_inputs()
                self.note("repair")
            self.snapshots.append({path.name[3:]: path.read_bytes() for path in self.partial_files()})
            if rng.random() < 0.6:
                self.tamper()
            if rng.random() < 0.1 and not self.changed:
                self.change_input()
                self.accept_changed_input()
        self.counts["given up"] += 1


def fast_folder():
    memory = pathlib.Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 10**9 else None


class LargeWorld(World):
    scale = 10


class AheadTrial(Trial):
    """Many inputs are read and encoded at the same time, and all that is ahead goes to the file without a name."""
    readers, spills = ["64"], [str(1 << 40)]


def run_trials(n, seed, first=0, keep=False, kinds=(World, Trial)):
    """Returns (counts, [what went wrong])."""
    world_kind, trial_kind = kinds
    counts, wrong = collections.Counter(), []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tokmap_chaos_", dir=fast_folder()))
    worlds = {}
    try:
        for number in range(first, first + n):
            kind = number % (2 * len(world_kind.OPTIONS))
            if kind not in worlds:
                worlds[kind] = world_kind(folder / str(kind), kind, random.Random(kind))
            trial = trial_kind(worlds[kind], "%d/%d" % (seed, number), counts)
            try:
                trial.run()
            except (Wrong, subprocess.TimeoutExpired) as e:
                wrong.append("trial %d, options %s: %s; what happened: %s" % (
                    number, " ".join(worlds[kind].options), e, "; ".join(trial.history)))
                if keep:
                    shutil.copytree(worlds[kind].folder, "chaos-%d" % number, dirs_exist_ok=True)
    finally:
        shutil.rmtree(folder)
    return counts, wrong


def main(description, kinds):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    if kinds[0] is World:
        parser.add_argument("--ahead", action="store_true", help="larger inputs, and all tokens that are ahead in a file")
    parser.add_argument("--keep", action="store_true", help="copy the files of a failed trial to chaos-NUMBER")
    arguments = parser.parse_args()
    if getattr(arguments, "ahead", False):
        kinds = LargeWorld, AheadTrial
    counts, wrong = run_trials(arguments.n, arguments.seed, arguments.first, arguments.keep, kinds)
    print("%d trials: %s" % (arguments.n, ", ".join("%s %d" % item for item in sorted(counts.items()))))
    for line in wrong:
        print("WRONG " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(__doc__, (World, Trial)))

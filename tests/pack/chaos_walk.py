#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chaos_walk.py N SEED - one call of tokmap fails: an allocation, a new thread, a read, a write; or a read or write
is short. The same command again then ends with 0 and the bytes of a run that nothing happened to.

A case is an input of one format, or all inputs, with one set of options; a task of a plan; `tokmap plan`; `tokmap
join`; `tokmap rows`, `columns add`, `view` and `scan`. In each of N trials, a random call of a random case fails.
`chaos_walk.py --all` lets each call of each case fail, alone and with all later ones; it takes an hour and a half."""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

import chaos
import chaos_plans
import pack_corpus
import ref_protocol
from chaos import FAILURES, LIBRARY, Wrong

UNFINISHED = re.compile(r"\.(partial|lock|replaced)$")
PACK = ["pack", "-q", "-j", "1", "--memory", "8M"]  # small batches


class Case:
    """A command, and the files that it makes."""

    def __init__(self, folder, command, made, prepare=()):
        self.folder, self.command, self.made, self.prepare = folder, command, made, prepare
        self.program = ref_protocol.program("tokmap")
        self.wanted = None  # until it was run

    def files(self):
        paths = [path for pattern in self.made for path in self.folder.glob(pattern) if path.is_file()]
        return {str(path): path.read_bytes() for path in paths}

    def clean(self):
        for path in self.files():
            os.unlink(path)

    def named(self):
        return {name: data for name, data in self.files().items() if not UNFINISHED.search(name)}

    def call(self, command, **environment):
        done = subprocess.run([self.program, *command], cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=120,
                              env={**os.environ, **environment})
        return done.returncode, done.stdout + done.stderr

    def begin(self):
        """What it gives undisturbed, and how many calls that takes."""
        if self.wanted is not None:
            return
        self.clean()
        for command in [*self.prepare, self.command]:
            code, said = self.call(command, TOKMAP_CHECKPOINT_MS="0", **chaos.counting(self.folder))
            if code != 0:
                raise Wrong("undisturbed, %s ends with %d: %s" % (" ".join(command), code, said))
        self.wanted, self.calls = self.named(), chaos.read_counts(self.folder)

    def fail(self, kind, which, counts, checkpoint_ms="0", ends=FAILURES):
        """One call fails in one run; then the command is repeated."""
        self.clean()
        what = "%s, %s:%s: " % (" ".join(self.command), kind, which)
        code, said = self.call(self.command, LD_PRELOAD=LIBRARY, FAIL="%s:%s" % (kind, which),
                               TOKMAP_CHECKPOINT_MS=checkpoint_ms)
        counts["%s exit %d" % (kind, code)] += 1
        named = self.named()
        counts["unbalanced"] += code == 4 and "came in" in said
        if code not in ends[kind] or (code and not said):
            raise Wrong(what + "exit %d, it said: %s" % (code, said))
        if any(self.wanted.get(name) != data for name, data in named.items()) or (code == 0 and named != self.wanted):
            raise Wrong(what + "exit %d, and other bytes; it said: %s" % (code, said))
        counts["resumed"] += "Progress is saved" in said
        again, more = (0, "") if code == 0 else self.call(self.command, TOKMAP_CHECKPOINT_MS=checkpoint_ms)
        exists = again == 5 and "already exists" in more
        if (again != 0 and not exists) or self.named() != self.wanted:
            raise Wrong(what + "exit %d, it said: %s; repeated, exit %d%s, it said: %s" % (
                code, said, again, "" if self.named() == self.wanted else " and other bytes", more))


def write_long_inputs(folder, rng):
    """With a document that is read in pieces."""
    texts = [" ".join(rng.choices(["word", "Wort", "語"], k=n)) for n in (20, 30, 330_000, 20, 30)]
    lines = "".join(json.dumps({"id": 20 + i, "text": text}) + "\n" for i, text in enumerate(texts))
    (folder / "long.jsonl").write_text(lines)
    pack_corpus.write_arrow(folder / "long.arrow", texts)
    return ["long.jsonl", "long.arrow"]


def list_cases(folder):
    rng = random.Random(1)
    inputs = pack_corpus.write_inputs(folder, rng, 1)
    texts = ["b.txt", "e.txt"]
    groups = [[name] for name in inputs + texts + write_long_inputs(folder, rng)] + [inputs, texts]
    cases = [Case(folder, [*PACK, *texts, *options, "--split", "v=0.3", "-o", "out"], ["out*"])
             for options in (["--lines"], ["--separator", "word7 "])]
    cases.append(Case(folder, ["rows", "-q", "-l", "64", "rowed"], ["rowed.*.tmr*"],
                      [[*PACK, *texts, "--force", "-o", "rowed"]]))
    scores = "".join(json.dumps({"score": i / 3 if i % 3 else None, "word": "word%d" % (i * i)}) + "\n" for i in range(2000))
    (folder / "scores.jsonl").write_text(scores)
    (folder / "scored.txt").write_text("line\n" * 2000)
    cases.append(Case(folder, ["columns", "add", "-q", "-f", "scored", "scores.jsonl"], ["scored.*.tmc*"],
                      [[*PACK, "scored.txt", "--lines", "--force", "-o", "scored"]]))
    cases.append(Case(folder, ["view", "-q", "viewed", "--where", "score > 100 or word == 'word49'"], ["viewed.*.tmw*"],
                      [[*PACK, "scored.txt", "--lines", "--force", "-o", "viewed"],
                       ["columns", "add", "-q", "-f", "viewed", "scores.jsonl"]]))
    (folder / "benchmark.jsonl").write_text('{"text": "line\\nline"}\n{"text": "word0 word1 word2"}\n')
    for scan in (["--against", "benchmark.jsonl", "-n", "5", "-j", "1"], ["--duplicates", "--memory", "20k"]):
        cases.append(Case(folder, ["scan", "-q", "-f", "scanned", *scan, "--name", "s"], ["scanned.*.tmc*"],
                          [[*PACK, "scored.txt", "--lines", "--force", "-o", "scanned"]]))
    for options in chaos.World.OPTIONS:
        on_error = ["--on-error", "skip"]
        for names in groups:
            if "--where" not in options or names == pack_corpus.with_fields(names) and not names[0].startswith("long."):
                cases.append(Case(folder, [*PACK, *names, *options, *on_error, "-o", "out"], ["out*"]))
    for i, options in enumerate(chaos_plans.PlanWorld.OPTIONS):
        names = [*options, *(pack_corpus.with_fields(inputs) if "--where" in options else inputs)]
        name = "plan%d" % i
        plan = ["plan", "-q", *names, "--on-error", "skip", "--cells", name, "--cell-size", "200k"]
        task = ["pack", "-q", "-j", "1", "--plan", name + ".plan", "--task", "0/1"]
        join = ["join", "-q", name + ".plan", "-o", "joined"]
        cases += [Case(folder, [*plan, "-o", "other.plan"], ["other.plan"]),
                  Case(folder, task, [name + "/*"], [[*plan, "--force", "-o", name + ".plan"]]),
                  Case(folder, join, ["joined*"], [[*plan, "--force", "-o", name + ".plan"], task]),
                  Case(folder, ["merge", "-q", name + "-joined", "-o", "merged"], ["merged*"],
                       [[*plan, "--force", "-o", name + ".plan"], task, [*join[:-1], name + "-joined", "--force"]])]
    return cases


def run_trials(n, seed, first=0, every=False):
    """Returns (counts, [what went wrong])."""
    counts, wrong = collections.Counter(), []
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tokmap_walk_", dir=chaos.fast_folder()))

    def fail(case, kind, which, checkpoint_ms="0"):
        try:
            case.fail(kind, which, counts, checkpoint_ms)
        except (Wrong, subprocess.TimeoutExpired) as e:
            wrong.append(str(e))

    try:
        cases = list_cases(folder)
        for case in cases if every else []:
            case.begin()
            for kind, n_calls in case.calls.items():
                for i in range(1, n_calls + 1):
                    fail(case, kind, str(i))
                    fail(case, kind, "%d+" % i)
        for number in range(first, first + n):
            rng = random.Random("%d/%d" % (seed, number))
            case, kind = rng.choice(cases), rng.choice(["memory", "memory", *FAILURES])
            case.begin()
            if case.calls[kind] == 0:
                continue
            which = "%d%s" % (rng.randint(1, case.calls[kind]), rng.choice(["", "", "+"]))
            fail(case, kind, which, rng.choice("05"))
    finally:
        shutil.rmtree(folder)
    return counts, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, nargs="?", default=0)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial")
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    if not chaos.CAN_FAIL:
        print("skipped: libfailures.so is missing, or this is a build with a sanitizer")
        return 0
    counts, wrong = run_trials(arguments.n, arguments.seed, arguments.first, arguments.all)
    print("calls that fail: %s" % ", ".join("%s %d" % item for item in sorted(counts.items())))
    for line in wrong:
        print("WRONG " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

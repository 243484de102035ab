#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chaos_plans.py N SEED - what chaos.py does, to packs with a plan: tasks that are killed and repeated, several at a time, cells that are
damaged, exchanged or of another plan, inputs that change, plans that are edited by hand.

Cells with a final name have the bytes of a run that nothing happened to. A join that ends with 0 gives the index that
was wanted, or one of which verify says that its tokens are damaged. At the end of each trial, what errors name is
removed and packed again, until the dataset is complete and right."""

import os
import re
import shutil
import subprocess
import sys

from chaos import ENDS, Trial, World, Wrong, counting, main, read_counts
from ref_plan import cell_hash, read_plan, signed
from ref_protocol import program, run_program

DATASET_ID = slice(40, 56)  # of an index
CELL = re.compile(r"^\d{6}(-\w+)?\.(bin|tmi|bad)$")


class PlanWorld(World):
    """A plan, its cells, the joined dataset, and the cells of another plan of the same inputs."""

    OPTIONS = [
        [],
        ["--split", "v=0.3"],
        ["--tokenizer", "vocabulary.json", "--split", "v=0.1", "--split", "t=0.3"],
        ["--tokenizer", "vocabulary.json", "--specials", "error"],
        ["--where", "id >= 20 or @row < 5", "--meta", "id,lang", "--split", "v=0.3"],
    ]

    def __init__(self, folder, number, rng):
        super().__init__(folder, number, rng)
        stored = sum(len(data) for data, _ in self.originals.values())
        self.n_cells = [7, 12, 25][number % 3]
        self.plan_text = self.make_plan("run", stored // self.n_cells)
        other_text = self.make_plan("other", stored // 5)
        self.other = self.pack_cells("other")
        self.cells = self.pack_cells("run")
        self.same = self.find_same(read_plan(self.plan_text), read_plan(other_text))
        self.calls = read_counts(folder)
        self.succeed("join", "-q", "run.plan", "-o", "joined")
        self.joined = self.outputs("joined")
        self.check_joined()

    def make_plan(self, name, cell_bytes):
        self.succeed("plan", "-q", *self.names, *self.plan_options, "--cells", name + "-cells", "--cell-size",
                     str(max(cell_bytes, 1000)), "-o", name + ".plan")
        return (self.folder / (name + ".plan")).read_bytes()

    def find_same(self, plan, other):
        """The files of the other plan's cells into which the same is packed: its name is all that differs in them."""
        cells = range(min(len(plan["cells"]), len(other["cells"])))
        same = {"%06d" % i for i in cells if cell_hash(plan, i) == cell_hash(other, i)}
        return {name: data for name, data in self.other.items() if name[:6] in same}

    def call(self, *arguments):
        done = run_program("tokmap", *arguments, cwd=self.folder, text=True, errors="replace",
                           env=counting(self.folder))
        said = done.stdout + done.stderr
        if done.returncode not in ENDS or (done.returncode > 0 and not said):
            raise Wrong("%s ended with %d and said: %s" % (arguments[0], done.returncode, said))
        return done.returncode, said

    def succeed(self, *arguments):
        code, said = self.call(*arguments)
        if code != 0:
            raise Wrong("undisturbed, %s ends with %d: %s" % (" ".join(arguments), code, said))

    def pack_cells(self, name):
        self.succeed("pack", "-q", "--plan", name + ".plan", "--task", "0/1", "-j", "1")
        return self.cell_files(name + "-cells")

    def cell_files(self, cells="run-cells"):
        folder = self.folder / cells
        return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}

    def check_joined(self):
        """Undisturbed, ids and tokens are those of a plain pack."""
        for name, data in self.wanted.items():
            if name.endswith(".tmi"):
                right = self.joined[name][DATASET_ID] == data[DATASET_ID]
            elif name.endswith(".bin"):
                right = b"".join(self.cells[cell] for cell in sorted(self.cells) if cell[6:] == name) == data
            else:
                right = self.joined[name] == data
            if not right:
                raise Wrong("joined, %s is not that of a plain pack" % name)

    def remove_cells(self):
        shutil.rmtree(self.folder / "run-cells", ignore_errors=True)


class PlanTrial(Trial):
    def __init__(self, world, seed, counts):
        super().__init__(world, seed, counts)
        self.folder = world.folder / "run-cells"
        self.touched = set()  # names of files of finished cells that were damaged

    # ---- What happens to cells and to the plan ----

    def partial_files(self):
        return [path for path in self.folder.glob("*.partial") if path.is_file()] if self.folder.exists() else []

    def finished_files(self):
        return sorted(path for path in self.folder.glob("*") if CELL.match(path.name)) if self.folder.exists() else []

    def damage_cell(self):
        rng, files = self.rng, self.finished_files()
        if not files:
            return
        how = rng.choice(["flip", "flip", "cut", "lengthen", "remove", "exchange", "of another plan", "twice"])
        path = rng.choice(files)
        data = bytearray(path.read_bytes())
        if how == "flip" and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif how == "cut" and data:
            del data[rng.randrange(len(data)):]
        elif how == "lengthen":
            data += rng.randbytes(rng.choice([1, 2, 4, 64, 4096]))
        elif how == "remove":
            path.unlink()
            self.touched.add(path.name)
        elif how in ("exchange", "twice"):
            self.move_cell(rng.choice(files).name[:6], rng.choice(files).name[:6], both=how == "exchange")
        elif how == "of another plan":
            self.take_from_other_plan(path.name)
        if how in ("flip", "cut", "lengthen"):
            self.write(path.name, bytes(data))
        self.note("cell: " + how, path.name)

    def write(self, name, data):
        path = self.folder / name
        path.unlink(missing_ok=True)  # it may have a second name
        path.write_bytes(data)
        self.touched.add(name)

    def move_cell(self, one, two, both):
        """All files of a cell get the names of those of another one."""
        files = {path.name: path.read_bytes() for path in self.finished_files() if path.name[:6] in (one, two)}
        for name, data in files.items():
            if name[:6] == one or both:
                self.write((two if name[:6] == one else one) + name[6:], data)

    def take_from_other_plan(self, name):
        """A whole cell, or only one of its files."""
        whole = self.rng.random() < 0.7
        for other, data in self.world.other.items():
            if other == name or (whole and other[:6] == name[:6]):
                self.write(other, data)

    def edit_plan(self):
        """With a checksum that does not fit, no command works; with a new one, the first cell is not of this plan."""
        rng, path = self.rng, self.world.folder / "run.plan"
        data = bytearray(self.world.plan_text)
        how = rng.choice(["flip", "cut", "line", "twice", "with a new checksum"])
        lines = bytes(data).splitlines(keepends=True)
        if how == "with a new checksum":
            return self.join_with_other_plan(re.sub(rb"(?m)^(input \d+) .*? ", rb"\1 12345 ", b"".join(lines[:-1]), count=1))
        if how == "flip":
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif how == "cut":
            del data[rng.randrange(len(data)):]
        elif how == "line":
            del lines[rng.randrange(len(lines))]
            data = b"".join(lines)
        else:
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
            data = b"".join(lines)
        if bytes(data) == self.world.plan_text:
            return
        path.write_bytes(bytes(data))
        self.note("plan: " + how)
        command = rng.choice([["pack", "-q", "--plan", "run.plan", "--task", "0/1"], ["join", "run.plan", "-o", "out"],
                              ["status", "run.plan"]])
        before = self.world.cell_files()
        code, said = self.world.call(*command)
        path.write_bytes(self.world.plan_text)
        if code == 0 or "run.plan" not in said:
            raise Wrong("with an edited plan, %s ends with %d and says: %s" % (command[0], code, said))
        if self.world.cell_files() != before:
            raise Wrong("with an edited plan, %s has changed the cells" % command[0])

    def join_with_other_plan(self, text):
        (self.world.folder / "signed.plan").write_bytes(signed(text))
        code, said = self.world.call("join", "-q", "signed.plan", "-o", "edited")
        self.note("plan: with a new checksum, join exit %d" % code)
        if code not in (3, 4) or self.world.outputs("edited"):
            raise Wrong("with the cells of another plan, join ends with %d and says: %s" % (code, said))

    # ---- Runs ----

    def start_task(self, task=None):
        rng = self.rng
        n = rng.choice([1, 1, 2, 3, 7, 64])
        task = task or "%d/%d" % (rng.randrange(n), n)
        limit = rng.randrange(1000, 100_000) if rng.random() < 0.1 else None
        run = self.start([self.world.program, "pack", "-q", "--plan", "run.plan", "--task", task, "-j", rng.choice("123")],
                         limit, self.failure())
        run.task = task
        return run

    def run_tasks(self):
        runs = [self.start_task() for _ in range(self.rng.choice([1, 1, 2, 4]))]
        if self.rng.random() < 0.3:  # the same task twice at the same time
            runs.append(self.start_task(runs[-1].task))
        for run in runs:
            self.disturb(run, 0.6 * self.world.seconds, ["kill", "kill", "interrupt", "change", "nothing"])
        for run in runs:
            said = run.communicate(timeout=120)[1].decode("utf-8", "replace")
            self.history.append("task %s exit %d: %s" % (run.task, run.returncode, " ".join(said.split())[:200]))
            self.counts["task exit %d" % run.returncode] += 1
            if run.returncode not in ENDS or (run.returncode > 0 and not said):
                raise Wrong("a task ended with %d and said: %s" % (run.returncode, said))
        self.check_cells()

    def change_input(self):
        """In a way that size or time tell of; until the inputs are restored."""
        rng, name = self.rng, self.rng.choice(self.world.names)
        path = self.world.folder / name
        data = path.read_bytes() if path.exists() else b""
        if not data:
            return
        how = rng.choice(["grow", "shrink", "remove", "touch", "edit"])
        if how == "grow":
            with open(path, "ab") as out:
                out.write(data[:rng.randint(1, 3000)])
        elif how == "shrink":
            os.truncate(path, rng.randrange(len(data)))
        elif how == "remove":
            path.unlink()
        elif how == "touch":
            os.utime(path, ns=(0, path.stat().st_mtime_ns + rng.choice([-1, 1, 10**9])))
        else:
            at = rng.randrange(len(data))
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
        self.note("input: " + how, name)

    # ---- What must be true ----

    def check_cells(self):
        """Of finished cells: there is an index with a final name."""
        files = self.world.cell_files()
        for name, data in files.items():
            if not CELL.match(name) or name in self.touched or name[:-3] + "tmi" not in files:
                continue
            if data not in (self.world.cells.get(name), self.world.same.get(name)):
                raise Wrong("%s is not that of an undisturbed run" % name)

    def join(self):
        code, said = self.world.call("join", "-q", "--force", "run.plan", "-o", "joined")
        self.history.append("join exit %d: %s" % (code, " ".join(said.split())[:200]))
        self.counts["join exit %d" % code] += 1
        if code != 0:
            return code, said
        if self.world.outputs("joined") != self.world.joined:
            raise Wrong("join ends with 0, and what it wrote is wrong")
        for name in sorted(self.world.joined):
            if name.endswith(".tmi"):
                code, said = self.world.call("verify", "-q", "joined" + name[:-4])
                self.history.append("verify exit %d: %s" % (code, " ".join(said.split())[:200]))
                self.counts["verify exit %d" % code] += 1
                if code != 0:
                    return code, said
        files = self.world.cell_files()
        for name, data in self.world.cells.items():
            if name.endswith(".bin") and data and files.get(name) != data:
                raise Wrong("join and verify end with 0, but the tokens in %s are wrong" % name)
        return 0, ""

    def merge(self):
        """It reads the tokens, and must notice when they are not those of the index."""
        for name, wanted in sorted(self.world.wanted.items()):
            if not name.endswith(".tmi"):
                continue
            arguments = ["merge", "-q", "joined" + name[:-4], "-o", "flat" + name[:-4]]
            for _ in range(self.rng.choice([0, 0, 1, 3])):
                run = subprocess.Popen([program("tokmap"), *arguments], cwd=self.world.folder,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    run.wait(self.rng.random() * 0.02)
                except subprocess.TimeoutExpired:
                    run.kill()
                    self.note("kill merge")
                run.wait()
                self.counts["merge exit %d" % run.returncode] += 1
            code, said = self.world.call(*arguments, "--force")
            self.history.append("merge exit %d: %s" % (code, " ".join(said.split())[:200]))
            self.counts["merge exit %d" % code] += 1
            got = self.world.outputs("flat")
            self.world.remove("flat")
            if code != 0:
                return code, said
            if got[name][DATASET_ID] != wanted[DATASET_ID] or got[name[:-3] + "bin"] != self.world.wanted[name[:-3] + "bin"]:
                raise Wrong("merge ends with 0, but flat%s is wrong" % name[:-4])
        return 0, ""

    def repair(self, said):
        """Removes the cells that a message names."""
        names = set(re.findall(r"cells?[/ ](\d{6})\b", said))
        cells = [path for path in self.folder.glob("*") if path.name[:6] in names] if self.folder.exists() else []
        if not cells:
            raise Wrong("the message names no cell that is there: " + said)
        for path in cells:
            path.unlink()
        self.touched -= {name for name in self.touched if name[:6] in names}
        self.note("repaired", *sorted(names))

    def finish(self):
        """Does what the messages say."""
        self.world.restore_inputs()
        arguments = []
        for _ in range(60):
            code, said = self.world.call("pack", "-q", "--plan", "run.plan", "--task", "0/1", *arguments)
            self.history.append("last task exit %d: %s" % (code, " ".join(said.split())[:200]))
            if code == 0:
                code, said = self.join()
            if code == 0:
                self.touched.clear()
                self.check_cells()
                code, said = self.merge()
            if code == 0:
                self.counts["finished"] += 1
                return
            arguments = ["--restart"] if "use --restart" in said.lower() else []
            if not arguments:
                self.repair(said)
        raise Wrong("it does not get finished")

    def run(self):
        self.world.restore_inputs()
        self.world.remove_cells()
        self.world.remove("joined")
        self.world.remove("flat")
        for _ in range(self.rng.randint(2, 9)):
            draw = self.rng.random()
            if draw < 0.5:
                self.run_tasks()
                self.world.restore_inputs()
            elif draw < 0.65:
                self.damage_cell()
            elif draw < 0.72:
                self.tamper()
            elif draw < 0.8:
                self.edit_plan()
            elif draw < 0.88:
                self.join()
            elif draw < 0.96:
                self.merge()
            else:
                self.world.call("status", "run.plan")
        self.finish()


if __name__ == "__main__":
    sys.exit(main(__doc__, (PlanWorld, PlanTrial)))

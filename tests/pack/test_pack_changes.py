#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokmap pack whose inputs or unfinished files change: it ends with the bytes of an undisturbed run or with an error,
and what it reads and what it writes always add up."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import chaos
import chaos_walk
import pack_corpus
import ref_protocol
from pack_corpus import n_bytes, wait_for
from ref_protocol import NO_LEAK_SEARCH, Skip, expect, expect_equal

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPLITS = ["--split", "v=0.1", "--split", "t=0.3"]


class Case(pack_corpus.Packing):
    """A folder with one large file of lines and what packing it gives."""

    environment = NO_LEAK_SEARCH

    def __init__(self, folder, program=None):
        super().__init__(folder, program)
        rng = random.Random(3)
        words = ["word%d" % i for i in range(300)]
        line = ['{"text": "%s"}' % " ".join(rng.choices(words, k=rng.randint(1, 60))) for _ in range(500)]
        self.lines = ["not JSON %d" % i if i % 97 == 96 else rng.choice(line) for i in range(40000)]
        if not program:
            self.write("big.jsonl", self.lines)
            self.write("small.jsonl", self.lines[:200])

    def write(self, name, lines):
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def command(self, out, *arguments):
        return [self.program, "pack", "-q", "--memory", "8M", "--on-error", "skip", *SPLITS, "-o", out, *arguments]

    def pack(self, out, *arguments):
        run = self.start(out, *arguments)
        said = run.communicate(timeout=120)[1]
        return run.returncode, said

    def named(self, out):
        return sorted(name for name in self.outputs(out) if not name.endswith(".partial"))

    def put_back(self, out, files):
        self.remove(out)
        for name, data in files.items():
            (self.folder / (out + name)).write_bytes(data)


# ---- Unfinished files ----


def a_damaged_end_of_a_journal_never_gives_other_bytes(case):
    expect_equal(case.pack("calm", "big.jsonl")[0], 0, "exit status")
    wanted = case.outputs("calm")
    left = case.leave_unfinished("out", "big.jsonl")
    rng = random.Random(5)
    n_resumed = 0
    journals = sorted(name for name in left if name.endswith(".tmj.partial"))
    for number in range(60):
        files = dict(left)
        name = journals[number % len(journals)]
        data = bytearray(files[name])
        if number % 2:
            data[len(data) - 1 - rng.randrange(200)] ^= 1 << rng.randrange(8)
        else:
            del data[len(data) - rng.randint(1, 3000):]
        files[name] = bytes(data)
        case.put_back("out", files)
        code, said = case.pack("out", "big.jsonl")
        if code == 0:
            n_resumed += 1
            expect(case.outputs("out") == wanted, "other bytes after damage in %s, number %d" % (name, number))
        else:
            expect(code in (4, 5) and said and not case.named("out"), "exit %d, %s" % (code, said))
    expect(n_resumed > 30, "only %d of 60 went on" % n_resumed)


def damage_in_what_was_packed_long_ago_is_found(case):
    left = case.leave_unfinished("out", "big.jsonl")
    for name in (".bin.partial", "-t.bin.partial", ".skipped.partial"):
        files = dict(left)
        data = bytearray(files[name])
        data[10] ^= 1
        files[name] = bytes(data)
        case.put_back("out", files)
        code, said = case.pack("out", "big.jsonl")
        expect_equal((code, case.named("out")), (4, []), "exit status, and files; %s; it said %s" % (name, said))
        expect(name in said and "--restart" in said, said)
    case.put_back("out", left)
    expect_equal(case.pack("out", "big.jsonl")[0], 0, "exit status")


def a_missing_file_of_one_output_is_told_and_nothing_is_removed(case):
    left = case.leave_unfinished("out", "big.jsonl")
    for name in (".bin.partial", ".tmj.partial", "-v.bin.partial", "-v.tmj.partial"):
        files = {suffix: data for suffix, data in left.items() if suffix != name}
        case.put_back("out", files)
        code, said = case.pack("out", "big.jsonl")
        expect_equal(code, 4, "exit status; it said " + said)
        expect("--restart" in said and "partial files are missing" in said, said)
        expect_equal(sorted(case.outputs("out")), sorted(files), "files")
    case.remove("out")


def a_run_that_is_killed_twice_at_its_beginning_starts_over(case):
    """The first time P and a split have their first checkpoint, but not all splits: then the next run starts over. The
    second time only P was made again. Here a failing write ends the first run, and the files of P are removed."""
    need_failures()
    small = [case.program, "pack", "-j", "1", "--on-error", "skip", *SPLITS, "-o", "out", "small.jsonl"]
    n_over, n_refused = 0, 0

    def call(**environment):
        run = subprocess.run(small, cwd=case.folder, capture_output=True, text=True, env={**os.environ, **environment})
        return run.returncode, run.stderr

    expect_equal(call()[0], 0, "exit status")
    wanted = case.outputs("out")
    for number in range(1, 200):
        case.remove("out")
        code, said = call(LD_PRELOAD=chaos.LIBRARY, FAIL="write:%d+" % number, TOKMAP_CHECKPOINT_MS="0")
        if code == 0 or case.named("out"):
            break
        for suffix in (".bin", ".tmj", ".tmi"):
            (case.folder / ("out%s.partial" % suffix)).unlink(missing_ok=True)
        code, said = call()
        if code == 0:
            expect(case.outputs("out") == wanted, "other bytes after write %d" % number)
            n_over += "starting over" in said
        else:
            expect(code == 4 and "partial files are missing" in said, "exit %d, %s" % (code, said))
            n_refused += 1
    case.remove("out")
    expect(n_over > 0 and n_refused > 0, "%d started over, %d refused" % (n_over, n_refused))
    return "%d started over, %d refused" % (n_over, n_refused)


def files_of_others_are_never_given_our_names(case):
    """Somebody removes the partial files of a run, and puts others in their place."""
    for name in (".bin.partial", ".tmi.partial", ".skipped.partial"):
        has_name = name != ".skipped.partial"  # it would get no other
        for _ in range(50):
            case.remove("out")
            run = case.start("out", "big.jsonl", "-j", "1")
            wait_for(run, lambda: n_bytes(case.folder / "out.tmj.partial") > 0)
            run.send_signal(signal.SIGSTOP)
            path = case.folder / ("out" + name)
            if path.exists():
                path.unlink()
            path.write_bytes(b"of somebody else")
            run.send_signal(signal.SIGCONT)
            said = run.communicate(timeout=60)[1]
            if run.returncode != 0 or not has_name:
                break
        expect(run.returncode in ((4, 5) if has_name else (0,)), "exit %d; it said %s" % (run.returncode, said))
        expect(not has_name or said and not {".bin", ".tmi"} & set(case.named("out")), "it has a name; it said " + said)
        expect_equal(path.read_bytes(), b"of somebody else", "the other file")
    case.remove("out")


# ---- Inputs ----


def open_for_reader(pipe, run):
    """Opens the pipe once the run reads from it."""
    while run.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.001)
    raise AssertionError("it ended with %d before it opened the pipe: %s" % (run.returncode, run.stderr.read()))


def with_first_input_held(case, out, change):
    """Packs a pipe and then small.jsonl; calls change() when all inputs were looked at and none was opened but the
    pipe."""
    pipe = case.folder / "pipe"
    os.mkfifo(pipe)
    case.remove(out)
    usual = case.environment  # with another reader, small.jsonl is read while the pipe is waited for
    case.environment = {**usual, "TOKMAP_TEST_READERS": "1"}
    run = case.start(out, "pipe", "small.jsonl")
    case.environment = usual
    with os.fdopen(open_for_reader(pipe, run), "wb") as feed:
        change()
        feed.write(b'{"text": "first"}\n')
    said = run.communicate(timeout=60)[1]
    pipe.unlink()
    return run.returncode, said


def wait_for_tick():
    """What is written now has another time than what was written before, in file systems whose clock has ticks."""
    time.sleep(0.02)


def append_to(path):
    with open(path, "ab") as out:
        out.write(b'{"text": "more"}\n')


def replace(path):
    stat, data = path.stat(), bytearray(path.read_bytes())
    data[data.index(b"word")] = ord("W")
    other = path.with_name("other")
    wait_for_tick()
    other.write_bytes(data)
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.rename(path)


def overwrite(path):
    data = bytearray(path.read_bytes())
    data[data.index(b"word")] = ord("W")
    wait_for_tick()
    path.write_bytes(data)


CHANGES = {
    "grows": (append_to, "bytes and now has"),
    "shrinks": (lambda path: os.truncate(path, path.stat().st_size // 2), "bytes and now has"),
    "is replaced": (replace, "modified or replaced"),
    "is overwritten": (overwrite, "modified or replaced"),
    "disappears": (lambda path: path.unlink(), "No such file"),
}


def an_input_that_changes_before_its_turn_is_an_error(case):
    path = case.folder / "small.jsonl"
    for how, (change, words) in CHANGES.items():
        case.write("small.jsonl", case.lines[:200])
        code, said = with_first_input_held(case, "out", lambda: change(path))
        expect_equal((code, case.outputs("out")), (3, {}), "an input that %s: exit status and files; %s" % (how, said))
        expect("small.jsonl" in said and words in said, said)
    case.write("small.jsonl", case.lines[:200])
    expect_equal(with_first_input_held(case, "out", lambda: None)[0], 0, "exit status")
    case.remove("out")


def a_failure_at_the_last_name_leaves_no_split_of_a_pipe(case):
    """The run cannot be resumed, so the next one must not be refused."""
    code, said = with_first_input_held(case, "out", lambda: (case.folder / "out.tmi").write_text("of somebody else"))
    expect_equal((code, case.outputs("out")), (5, {".tmi": b"of somebody else"}), "exit status and files; %s" % said)
    (case.folder / "out.tmi").unlink()
    expect_equal(with_first_input_held(case, "out", lambda: None)[0], 0, "exit status")
    expect_equal(case.named("out"), sorted(end + name for end in ("", "-t", "-v") for name in (".bin", ".tmi")), "files")
    case.remove("out")


def an_input_that_changes_while_it_is_read_is_an_error(case):
    path = case.folder / "big.jsonl"
    for how, (change, _) in CHANGES.items():
        if how == "disappears":
            continue
        for _ in range(50):
            case.write("big.jsonl", case.lines)
            case.remove("out")
            run = case.start("out", "big.jsonl", "-j", "1")
            wait_for(run, lambda: n_bytes(case.folder / "out.tmj.partial") > 0)
            run.send_signal(signal.SIGSTOP)
            change(path)
            run.send_signal(signal.SIGCONT)
            said = run.communicate(timeout=60)[1]
            if run.returncode != 0:
                break
        expect_equal((run.returncode, case.named("out")), (3, []), "an input that %s; it said %s" % (how, said))
        expect("has changed" in said and "--restart" in said, said)
    case.write("big.jsonl", case.lines)
    case.remove("out")


def a_changed_byte_in_what_was_read_is_found_when_going_on(case):
    path = case.folder / "big.jsonl"
    case.leave_unfinished("out", "big.jsonl")
    stat, data = path.stat(), bytearray(path.read_bytes())
    at = data.index(b"word")
    data[at] = ord("W")
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for _ in range(2):  # a second try must not take it for granted
        code, said = case.pack("out", "big.jsonl")
        expect_equal((code, case.named("out")), (3, []), "exit status and files; it said " + said)
        expect("are not the ones that were packed" in said and "--restart" in said, said)
    data[at] = ord("w")
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    expect_equal(case.pack("out", "big.jsonl")[0], 0, "exit status")
    expect_equal(case.pack("calm", "big.jsonl", "--force")[0], 0, "exit status")
    expect(case.outputs("out") == case.outputs("calm"), "other bytes")


# ---- What is read and what is written add up ----


def build_mutant(folder, changes):
    """A tokmap with changes [(file, old text, new text)], built of the objects of this one."""
    build = pathlib.Path(ref_protocol.BUILD)
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("the mutants are built without sanitizers")
    compiler = os.environ.get("CC", "cc").split()
    if not shutil.which(compiler[0]) or not (build / "obj/tokenize_tools/main.o").exists():
        raise Skip("there is no compiler, or no objects to link with")
    objects = []
    for name, old, new in changes:
        text = (ROOT / name).read_text()
        expect_equal(text.count(old), 1, "places in %s for %r" % (name, old))
        source = folder / pathlib.Path(name).name
        source.write_text(text.replace(old, new))
        objects.append(str(source.with_suffix(".o")))
        subprocess.run([*compiler, "-std=c11", "-D_GNU_SOURCE", "-O1", "-w", "-pthread", "-I" + str(build),
                        "-I" + str(ROOT / "include"), "-I" + str(ROOT / "src"), "-I" + str(ROOT / "tokenize_tools"),
                        "-I" + str((ROOT / name).parent), "-c", str(source), "-o", objects[-1]], check=True)
    libraries = (build / "config.h").read_text()
    found = ["-l" + {"ZSTD": "zstd", "ZLIB": "z", "ISAL": "isal"}[part] for part in ("ZSTD", "ZLIB", "ISAL")
             if "HAVE_%s 1" % part in libraries]
    program = folder / "tokmap"
    subprocess.run([*compiler, "-pthread", "-o", str(program), str(build / "obj/tokenize_tools/main.o"), *objects,
                    str(build / "libtools.a"), str(build / "libsrc.a"), "-lxxhash", "-ldl", *found], check=True)
    return str(program)


NO_FILE_CHECKS = [
    ("tokenize_tools/input/input.c", "    if (!was->known)\n        return true;\n", "    return true;\n"),
    ("tokenize_tools/input/input.c", "if (!part && in->version.known &&", "if (false &&"),
]
NO_NOTE_CHECKS = [
    ("tokenize_tools/pack/resume.c", "    if (code != CLI_OK)\n        return code;\n    if (!decode_note(&from->note, "
     "s->note, s->info.note_bytes))\n        return refuse_other_fingerprint(s, false);\n    if (some_named",
     "    code = read_checkpoint(s, s->outputs->n - 1, 0);\n    decode_note(&from->note, s->note, s->info.note_bytes);\n"
     "    if (some_named"),
    ("tokenize_tools/pack/resume.c", "    if (s->info.n_tokens != note->tokens", "    if (false && s->info.n_tokens != note->tokens"),
]
LOSSES = {
    "some documents are not written": (
        "tokenize_tools/pack/documents.c", "    if (status == TOKMAP_OK)\n        status = job->is_stored",
        "    static int n;\n    if (status == TOKMAP_OK && ++n != 5)\n        status = job->is_stored"),
    "some documents are written twice": (
        "tokenize_tools/pack/documents.c", "    out->tokens += n_ids;\n",
        "    static int n;\n    if (++n == 5)\n        tokmap_writer_append_documents(out->writer, ids, n_ids, "
        "job->lengths + run->first, run->n, &why);\n    out->tokens += n_ids;\n"),
    "a document is not ended": (
        "src/writer/writer.c", "        status = tokmap_i_writer_document(w, end += lengths[i], &w->failure);\n",
        "    {\n        static int n;\n        end += lengths[i];\n        if (++n != 500)\n"
        "            status = tokmap_i_writer_document(w, end, &w->failure);\n    }\n"),
    "the tokens of a document are lost": (
        "tokenize_tools/pack/job.c", "    job->n_tokens += ids->n;\n",
        "    static int n;\n    job->n_tokens += __atomic_add_fetch(&n, 1, __ATOMIC_SEQ_CST) == 500 ? 0 : ids->n;\n"),
    "the reader passes a document over": ("tokenize_tools/corpus/corpus.c", "    return add_end(c, (corpus_end){.record =",
                                          "    if (c->counts.documents == 500)\n        return STEP_ON;\n"
                                          "    return add_end(c, (corpus_end){.record ="),
    "a job is lost": ("tokenize_tools/pack/work.c", "    size_t enough = 0;\n    int code = pack_documents_take(",
                      "    size_t enough = 0;\n    static int n;\n    int code = ++n == 4 ? CLI_OK : pack_documents_take("),
    "a bad document is not reported": ("tokenize_tools/pack/work.c", "        if (item->is_bad)\n",
                                       "        static int n;\n        if (item->is_bad && ++n != 3)\n"),
}


def merged(changes):
    """Changes to one file become one."""
    files = {}
    for name, old, new in changes:
        text = files.get(name, (ROOT / name).read_text())
        expect_equal(text.count(old), 1, "places in %s for %r" % (name, old))
        files[name] = text.replace(old, new)
    return [(name, (ROOT / name).read_text(), text) for name, text in files.items()]


def expect_unbalanced(case, code, said, what):
    expect_equal((code, case.named("out")), (4, []), "%s: exit status and files; it said %s" % (what, said))
    expect("came in" in said and "went out" in said, said)


def whatever_is_lost_on_the_way_is_not_published(case):
    for what, change in LOSSES.items():
        with tempfile.TemporaryDirectory() as name:
            lossy = Case(case.folder, build_mutant(pathlib.Path(name), [change]))
            lossy.remove("out")
            expect_unbalanced(lossy, *lossy.pack("out", "big.jsonl"), what)
    case.remove("out")


def input_changes_that_reading_overlooks_do_not_add_up(case):
    with tempfile.TemporaryDirectory() as name:
        blind = Case(case.folder, build_mutant(pathlib.Path(name), merged(NO_FILE_CHECKS)))
        for how in ("grows", "shrinks"):
            blind.write("small.jsonl", blind.lines[:200])
            change = CHANGES[how][0]
            code, said = with_first_input_held(blind, "out", lambda: change(blind.folder / "small.jsonl"))
            expect_unbalanced(blind, code, said, how)
    case.write("small.jsonl", case.lines[:200])


def a_resume_from_two_different_places_does_not_add_up(case):
    """As if the places of journal and note were never compared."""
    left = case.leave_unfinished("out", "big.jsonl")
    files = dict(left)
    files[".tmj.partial"] = files[".tmj.partial"][:-3000]  # some checkpoints
    with tempfile.TemporaryDirectory() as name:
        changes = [*NO_NOTE_CHECKS, ("tokenize_tools/pack/resume.c",
                                     "        return fail_damaged(s, output, \"its checkpoints are not", "        return CLI_OK;\n    if (false)\n        return fail_damaged(s, output, \"its checkpoints are not")]
        blind = Case(case.folder, build_mutant(pathlib.Path(name), merged(changes)))
        blind.put_back("out", files)
        expect_unbalanced(blind, *blind.pack("out", "big.jsonl"), "a later note")
    case.remove("out")


RESUMES_BEHIND_THE_PLACE = [("tokenize_tools/corpus/corpus.c", "    c->state = there ? BETWEEN : SEEKING;\n",
                             "    c->state = there ? BETWEEN : SEEKING;\n    if (there)\n"
                             "        reader_next(c->reader, &c->document, &c->error);\n")]
PLACES_AFTER_FAILURES = [("tokenize_tools/pack/work.c", " && !job->batch.failed", "")]


def a_resume_that_passes_a_record_over_does_not_add_up(case):
    files = case.leave_unfinished("out", "big.jsonl")
    with tempfile.TemporaryDirectory() as name:
        blind = Case(case.folder, build_mutant(pathlib.Path(name), RESUMES_BEHIND_THE_PLACE))
        blind.put_back("out", files)
        expect_unbalanced(blind, *blind.pack("out", "big.jsonl"), "a record")
    case.remove("out")


def walk(names, kind="memory", program=None, ends=chaos.FAILURES):
    """Each call of this kind fails, one in each run of a pack."""
    counts = chaos.collections.Counter()
    with tempfile.TemporaryDirectory(dir=chaos.fast_folder()) as name:
        folder = pathlib.Path(name)
        pack_corpus.write_inputs(folder, random.Random(1), 1)
        case = chaos_walk.Case(folder, [*chaos_walk.PACK, *names, "--on-error", "skip", "-o", "out"], ["out*"])
        case.program = program or case.program
        case.begin()
        for i in range(1, case.calls[kind] + 1):
            case.fail(kind, str(i), counts, ends=ends)
    return counts


def need_failures():
    if not chaos.CAN_FAIL:
        raise Skip("libfailures.so is missing, or this is a build with a sanitizer")


def a_failed_read_of_parquet_is_not_a_bad_file(case):
    need_failures()
    walk(["d.jsonl", "h.parquet"], "read")


def a_failed_allocation_costs_no_document(case):
    need_failures()
    counts = walk(["d.jsonl"])
    expect(counts["resumed"] > 10, "too few resumed runs: %s" % counts)
    n = 400 if os.environ.get("TOKMAP_LONG") == "all" else 10
    counts, wrong = chaos_walk.run_trials(n, seed=1)
    expect(not wrong, "; ".join(wrong))


def records_that_a_failure_passes_over_do_not_add_up(case):
    """As if the place after a failure were taken for one to continue at: it is behind the record that failed."""
    need_failures()
    inputs = [["d.jsonl"]]
    if os.environ.get("TOKMAP_LONG"):
        inputs += [["c.gz"], ["f.tar"], ["a.jsonl", "c.gz"]]
    with tempfile.TemporaryDirectory() as name:
        program = build_mutant(pathlib.Path(name), PLACES_AFTER_FAILURES)
        for names in inputs:
            counts = walk(names, "memory", program, {"memory": (0, 75, 4)})
            expect(counts["unbalanced"] > 0, "%s: nothing was found: %s" % (names, counts))


def chaos_ends_with_the_same_bytes_or_an_error(case):
    n = 600 if os.environ.get("TOKMAP_LONG") == "all" else 60
    counts, wrong = chaos.run_trials(n, seed=1)
    expect(not wrong, "; ".join(wrong))
    n_killed = counts["kill"] + counts["kill between names"]
    expect(n_killed > n / 2 and counts["finished"] > n / 2, "too little happened: %s" % counts)
    return "%d trials, %d kills, %d refused" % (n, n_killed, counts["refused"])


def main():
    with tempfile.TemporaryDirectory(dir=chaos.fast_folder()) as name:
        case = Case(pathlib.Path(name))
        return ref_protocol.run_with(case=case)


sys.exit(main())

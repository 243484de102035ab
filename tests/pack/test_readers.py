#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The readers of tokmap pack: whatever their number, the threads and the memory, a run writes the same bytes and says the
same; an error has its place in the order of the inputs; slow inputs are read at the same time; what is ahead may lie in a
file meanwhile. TOKMAP_TEST_READERS: so many from the start, and no more. TOKMAP_TEST_SPILL: all jobs that are ahead go to
the file, which takes at most so many bytes."""

import gzip
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import threading
import time

import pack_corpus
from ref_protocol import BUILD, Skip, expect, expect_equal, need_parquet, program, run_in_folders, run_program

# READERS, -j, --memory, bytes of the file for what is ahead, bytes of a part of Parquet
WAYS = [(1, 2, "64M", None, 20000), (2, 1, "8M", 1 << 40, 3000), (3, 3, "8M", 0, 1), (64, 1, "64M", 1 << 40, 1),
        (64, 8, "8M", 100000, 20000), (64, 2, "8M", None, None), (None, 3, "1G", None, 5000)]
LONG = os.environ.get("TOKMAP_LONG") == "all"
if os.environ.get("TOKMAP_SANITIZED"):
    WAYS = WAYS[3:5]


def make(folder):
    """Inputs of several formats, some of them large, some empty; their names, in order."""
    rng = random.Random(7)
    names = pack_corpus.write_inputs(folder, rng, 1)
    for i in range(30):
        lines = [json.dumps({"id": k, "lang": "l%d" % (k % 3), "text": "word%d " % k * rng.choice((0, 1, 30, 300))})
                 for k in range(rng.choice((0, 1, 20, 400)))]
        if i % 7 == 3 and len(lines) > 1:
            lines.insert(len(lines) // 2, "not JSON")
        data = "".join(line + "\n" for line in lines).encode()
        name = "%02d.jsonl" % i
        if i % 2 and pack_corpus.has_zlib():
            name += ".gz"
            data = gzip.compress(data, mtime=0)
        (folder / name).write_bytes(data)
        names.append(name)
    rng.shuffle(names)
    return names


def pack(folder, names, *options, readers=1, threads=1, memory="64M", spill=None, part=None, out="o", fail=None, **named):
    """(exit status, what it says, {file: bytes})"""
    environment = {**os.environ, "TOKMAP_CHECKPOINT_MS": "0"}
    for name, value in (("TOKMAP_TEST_READERS", readers), ("TOKMAP_TEST_SPILL", spill), ("TOKMAP_TEST_PART", part)):
        environment.pop(name, None)
        if value is not None:
            environment[name] = str(value)
    if fail:
        environment.update(LD_PRELOAD=failures(), **fail)
    tokenizer = named.pop("tokenizer", "vocabulary.json")
    options = (*options, "--tokenizer", tokenizer) if tokenizer else options
    done = run_program("tokmap", "pack", *names, "-o", out, "--format", "auto", "-j", threads,
                       "--memory", memory, *options, cwd=folder, text=True, env=environment, **named)
    left_out = "MB/s", "--memory", "Progress is saved"  # a run with parts has a checkpoint earlier
    said = "\n".join(line for line in done.stderr.split("\n") if not any(words in line for words in left_out))
    files = {path.name: path.read_bytes() for path in folder.glob(out + "[.-]*")}
    return done.returncode, said, files


def clear(folder, out="o"):
    for path in folder.glob(out + "[.-]*"):
        path.unlink()


def same_in_all_ways(folder, names, *options, code=0, keeps=False):
    wanted = pack(folder, names, *options)
    expect_equal(wanted[0], code, "exit status; it said " + wanted[1][-500:])
    clear(folder)
    for readers, threads, memory, spill, part in WAYS:
        found = pack(folder, names, *options, readers=readers, threads=threads, memory=memory, spill=spill, part=part)
        what = "with %s readers, -j %d, --memory %s, spill %s, parts of %s, %s: " % (readers, threads, memory, spill, part,
                                                                                     " ".join(options))
        expect_equal(found[0], wanted[0], what + "exit status; it said " + found[1][-500:])
        expect_equal(found[1], wanted[1], what + "messages")
        if not keeps:  # an unfinished run has got as far as it has
            expect_equal(sorted(found[2]), sorted(wanted[2]), what + "files")
            expect(found[2] == wanted[2], what + "other bytes")
        clear(folder)
    return wanted


def bytes_and_messages_are_the_same_however_many_read(folder):
    names = make(folder)
    fields = pack_corpus.with_fields(names)
    for options in ([], ["--split", "v=0.3", "--also", "megatron"], ["--specials", "match"]):
        same_in_all_ways(folder, names, "--on-error", "skip", *options)
    same_in_all_ways(folder, fields, "--on-error", "skip", "--where", "id >= 20 or @row < 5", "--meta", "id,@row,lang")
    return "%d inputs" % len(names)


def parquet_files(folder):
    """With dictionaries, without, in many row groups, in one; with nulls, long and empty texts, lists of tokens."""
    pa, pq = need_parquet()
    rng, names = random.Random(11), []
    pack_corpus.write_inputs(folder, rng, 1)
    for i, (rows, size, dictionary) in enumerate(((100, 700, True), (10000, 3000, True), (10000, 900, False), (333, 1, False))):
        texts = [None if k % 29 == 3 else "%d " % (k % 70) * rng.choice((0, 1, 9, 60)) for k in range(900)]
        table = {"id": list(range(900)), "text": texts, "score": [None if k % 7 == 1 else k / 3 for k in range(900)],
                 "tokens": [[k % 250] * (k % 40) for k in range(900)], "lang": ["l%d" % (k % 3) for k in range(900)]}
        names.append("p%d.parquet" % i)
        pq.write_table(pa.table(table), folder / names[-1], row_group_size=rows, data_page_size=size, write_batch_size=7,
                       use_dictionary=dictionary, compression=("snappy", "none")[i % 2], write_page_checksum=True)
    return names


def parts_of_a_parquet_file_are_the_file(folder):
    names = parquet_files(folder)
    for name in (names, names[1:2]):
        same_in_all_ways(folder, name, "--on-error", "skip", "--max-document", "150", "--split", "v=0.3")
    same_in_all_ways(folder, names, "--where", "id >= 450 and lang != 'l1'", "--meta", "id,score,@row,lang")
    same_in_all_ways(folder, names, "--where", "id == 899")  # most parts have no document
    same_in_all_ways(folder, names, "--where", "id == 899 or id < 0", "--limit-documents", "2")
    for n in (1, 871, 900, 1743, 2000) if LONG else (871, 1743):
        same_in_all_ways(folder, names, "--limit-documents", str(n))

    def lists(**named):
        return pack(folder, names, "--tokens", "tokens", "--vocab-size", "256", tokenizer=None, **named)

    wanted = lists()
    for part in (1, 500, 5000):
        clear(folder)
        expect(lists(readers=8, part=part) == wanted, "other lists with parts of %d bytes" % part)


def an_error_in_a_part_comes_after_the_parts_before_it(folder):
    name = parquet_files(folder)[2]
    good = (folder / name).read_bytes()
    chunk = need_parquet()[1].ParquetFile(folder / name).metadata.row_group(0).column(1)
    for share in (0.2, 0.5, 0.9):
        bad = bytearray(good)
        at = chunk.data_page_offset + int(chunk.total_compressed_size * share)
        bad[at:at + 1500] = bytes(byte ^ 0xff for byte in bad[at:at + 1500])  # more than the statistics in a header
        (folder / name).write_bytes(bad)
        same_in_all_ways(folder, [name], code=3, keeps=True)
        clear(folder)


def a_run_that_is_killed_in_a_part_is_resumed(folder):
    """By a run with parts of another size, or without."""
    failures()  # or a Skip
    names, rng, n_within = parquet_files(folder), random.Random(5), 0
    wanted = pack(folder, names)[2]
    for trial in range(12):
        clear(folder)
        for n in sorted(rng.sample(range(2, 40), 2)):
            part = rng.choice((None, 1, 2000, 9000))
            pack(folder, names, readers=8, part=part, memory="8M", spill=rng.choice((0, 1 << 40)),
                 fail={"FAIL": "write:%d+" % n})
            n_within += (folder / "o.tmj.partial").exists()
        is_over = (folder / "o.tmi").exists()
        code, said, files = pack(folder, names, readers=3, part=rng.choice((None, 1, 700, 5000)))
        expect_equal(code, 5 if is_over else 0, "exit status; it said " + said)
        expect(files == wanted, "other bytes in trial %d" % trial)
    expect(n_within > 3, "%d runs had a checkpoint" % n_within)


def limits_end_a_run_at_the_same_document(folder):
    names = make(folder)
    all_of = pack(folder, names, "--on-error", "skip")[2]["o.bin"]
    clear(folder)
    rng = random.Random(3)
    for n in [1, 2, *(rng.randrange(3, 3000) for _ in range(4))]:
        files = same_in_all_ways(folder, names, "--on-error", "skip", "--limit-documents", str(n))[2]
        expect(all_of.startswith(files["o.bin"]), "not the beginning")
    same_in_all_ways(folder, names, "--on-error", "skip", "--limit-tokens", "30000")


def an_error_comes_after_all_that_is_before_it(folder):
    """In input 5 of 9: a bad record, then a stream that is cut, which is repaired."""
    pack_corpus.write_inputs(folder, random.Random(1), 1)
    names = []
    for i in range(9):
        names.append("%d.jsonl.gz" % i if pack_corpus.has_zlib() else "%d.jsonl" % i)
        lines = "".join('{"text": "word%d %d %s"}\n' % (i, k, "word " * (k % 90)) for k in range(2500))
        write = gzip.compress if names[-1].endswith("gz") else bytes
        (folder / names[-1]).write_bytes(write(lines.encode()))
    whole = pack(folder, names)[2]
    clear(folder)
    good = (folder / names[4]).read_bytes()
    if pack_corpus.has_zlib():
        (folder / names[4]).write_bytes(good[:len(good) // 2])
        said = same_in_all_ways(folder, names, code=3, keeps=True)[1]
        before = int(said.split("documents read before it: ")[1].split()[0])
        expect(10000 < before < 12500, "%d documents before an error in the fifth input of 2,500 documents" % before)
    lines = gzip.decompress(good) if names[4].endswith("gz") else good
    bad = lines[:len(lines) // 2] + b"\nnot JSON\n" + lines[len(lines) // 2:]
    (folder / names[4]).write_bytes(write(bad))
    same_in_all_ways(folder, names, code=3, keeps=True)
    for readers, threads, memory, spill, _ in WAYS:  # what is repaired is resumed by another number of readers
        expect_equal(pack(folder, names, readers=65 - (readers or 1), threads=4 - threads % 4)[0], 3, "exit status")
        (folder / names[4]).write_bytes(good)
        code, said, files = pack(folder, names, readers=readers, threads=threads, memory=memory, spill=spill)
        expect_equal(code, 0, "exit status; it said " + said)
        expect(files == whole, "other bytes after a repair")
        clear(folder)
        (folder / names[4]).write_bytes(write(bad))


# ---- Slow inputs ----

N_PIPES = 8
LINES = b"".join(b'{"text": "word %d"}\n' % i for i in range(20000))  # more than a pipe holds


def with_pipes(folder):
    pack_corpus.write_inputs(folder, random.Random(1), 1)
    names = ["p%d" % i for i in range(N_PIPES)]
    for name in names:
        os.mkfifo(folder / name)
    return names


def the_last_of_slow_inputs_is_read_while_the_first_is_waited_for(folder):
    """The first pipe gets nothing before all others were read. One thread that reads would wait forever."""
    for readers in (N_PIPES, None):
        names = with_pipes(folder)
        done = [threading.Event() for _ in names]

        def feed(i):
            if i == 0:
                for one in done[1:]:
                    one.wait()
            (folder / names[i]).write_bytes(LINES)
            done[i].set()

        for i in range(N_PIPES):
            threading.Thread(target=feed, args=(i,), daemon=True).start()
        code, said, files = pack(folder, names, "--format", "jsonl", "-q", readers=readers, threads=2, timeout=120)
        expect_equal(code, 0, "exit status; it said " + said)
        (folder / "l.jsonl").write_bytes(LINES * N_PIPES)
        wanted = pack(folder, ["l.jsonl"], "--format", "jsonl", "-q", out="w")[2]
        expect(files["o.bin"] == wanted["w.bin"], "other bytes")
        clear(folder)
        for name in names:
            (folder / name).unlink()


def signals_end_a_run_whose_readers_all_wait(folder):
    names = with_pipes(folder)
    for number in (signal.SIGINT, signal.SIGTERM):
        run = subprocess.Popen([program("tokmap"), "pack", "-q", *names, "--format", "jsonl", "-o", "o", "--tokenizer",
                                "vocabulary.json", "-j", "3"], cwd=folder, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "TOKMAP_TEST_READERS": "64"})
        writers = [open(folder / name, "wb", buffering=0) for name in names]  # which waits until it is read
        writers[3].write(LINES[:1000])
        run.send_signal(number)
        said = run.communicate(timeout=60)[1]
        expect_equal(run.returncode, 75, "exit status; it said " + said)
        for writer in writers:
            writer.close()
        expect_equal([path.name for path in folder.glob("o.*")], [], "files")


# ---- The file for what is ahead ----


def with_the_second_input_in_the_file(folder, then):
    """The first pipe gets nothing until the tokens of the second lie in the file: (exit status, what it says)."""
    first, second = with_pipes(folder)[:2]
    run = subprocess.Popen([program("tokmap"), "pack", "-q", first, second, "--format", "jsonl", "-o", "o", "--json",
                            "--report", "r.json", "--tokenizer", "vocabulary.json", "-j", "1", "--memory", "32M"], cwd=folder,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env={**os.environ, "TOKMAP_TEST_READERS": "2", "TOKMAP_TEST_SPILL": str(1 << 40)})
    writer = open(folder / first, "wb", buffering=0)
    with open(folder / second, "wb", buffering=0) as pipe:
        pipe.write(LINES * 8)
    deadline, n_bytes, before = time.monotonic() + 60, 0, -1
    while (n_bytes == 0 or n_bytes != before) and time.monotonic() < deadline:
        time.sleep(0.2)
        before = n_bytes
        n_bytes = sum(os.stat(path).st_blocks for path in pack_corpus.descriptors_without_a_name(run.pid, folder))
    if n_bytes == 0 and run.poll() is None and not pack_corpus.descriptors_without_a_name(run.pid, folder):
        run.kill()
        run.communicate()
        raise Skip("this file system has no files without a name")
    then(run)
    writer.write(LINES)
    writer.close()
    said = run.communicate(timeout=120)[1]
    for name in [folder / ("p%d" % i) for i in range(N_PIPES)]:
        name.unlink()
    return run.returncode, said


def what_is_ahead_lies_in_a_file_without_a_name(folder):
    code, said = with_the_second_input_in_the_file(folder, lambda run: None)
    expect_equal(code, 0, "exit status; it said " + said)
    spilled = json.loads((folder / "r.json").read_text())["spilled_bytes"]
    expect(spilled > 500000, "%d bytes were in the file" % spilled)
    expect_equal(sorted(path.name for path in folder.glob("o.*")), ["o.bin", "o.tmi"], "files")
    (folder / "l.jsonl").write_bytes(LINES * 9)
    pack(folder, ["l.jsonl"], "--format", "jsonl", "-q", out="w")
    expect((folder / "o.bin").read_bytes() == (folder / "w.bin").read_bytes(), "other bytes")


def json_says_what_the_threads_used_and_what_limited_them(folder):
    (folder / "a.jsonl").write_bytes(LINES * 9)
    done = run_program("tokmap", "pack", "a.jsonl", "--format", "jsonl", "--split", "v=0.5", "--json", "--report", "r.json", "-q",
                       "-o", "o", cwd=folder)
    expect_equal(done.returncode, 0, done.stderr.decode())
    report, (first, second) = json.loads((folder / "r.json").read_text()), map(json.loads, done.stdout.splitlines())
    for found in (report, first):
        expect_equal(sorted(found["cpu_seconds"]), ["decompress", "encode", "flush", "main", "read"], "cpu_seconds")
        expect(found["cpu_seconds"]["encode"] > 0 and found["cpu_seconds"]["main"] > 0, str(found["cpu_seconds"]))
        expect(found["limited_by"] in ("read", "decompress", "encode", "write", "memory"), found["limited_by"])
        expect(found["limit_bytes_per_second"] > 0 and found["spilled_bytes"] == 0, str(found))
    expect("cpu_seconds" not in second, str(second))


def a_file_with_other_bytes_than_were_written_is_an_error(folder):
    def change(run):
        for path in pack_corpus.descriptors_without_a_name(run.pid, folder):
            with open(path, "r+b") as file:
                file.seek(1000)
                byte = file.read(1)
                file.seek(1000)
                file.write(bytes([byte[0] ^ 1]))

    code, said = with_the_second_input_in_the_file(folder, change)
    expect("o: cannot read tokens back from the temporary file beside it" in said and code not in (0, 2),
           "exit status %d; it said %s" % (code, said))


def failures():
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a sanitizer has its own memory")
    return os.path.join(BUILD, "libfailures.so")


def calls_that_fail_end_the_run_or_change_nothing(folder):
    failures()  # or a Skip
    names, rng = make(folder), random.Random(2)
    wanted = pack(folder, names, "--on-error", "skip")
    clear(folder)
    n_whole = 0
    for kind in ("write", "read", "short", "thread"):
        pack(folder, names, "--on-error", "skip", readers=8, threads=2, memory="8M", spill=1 << 40,
             fail={"FAIL_COUNTS": str(folder / "counts")})
        clear(folder)
        counts = dict(line.split() for line in (folder / "counts").read_text().split("\n") if line)
        for _ in range(60 if os.environ.get("TOKMAP_LONG") == "all" else 5):
            call = "%s:%d%s" % (kind, rng.randint(1, int(counts[kind])), rng.choice(("", "+")))
            found = pack(folder, names, "--on-error", "skip", readers=8, threads=2, memory="8M", spill=1 << 40,
                         fail={"FAIL": call}, errors="replace")
            n_whole += found[0] == 0
            if found[0] != 0:
                found = pack(folder, names, "--on-error", "skip")
            expect_equal(found[0], 0, call + ": exit status; it said " + found[1])
            expect(found[2] == wanted[2], call + ": other bytes")
            clear(folder)
    return "%d runs ended well" % n_whole


# ---- Memory ----


def bad_documents_of_later_inputs_wait_too(folder):
    """What is reported of them takes memory, so the pipe behind the first one is not read to its end."""
    first, second = with_pipes(folder)[:2]
    run = subprocess.Popen([program("tokmap"), "pack", "-q", first, second, "--format", "jsonl", "--on-error", "skip", "-o", "o",
                            "--tokenizer", "vocabulary.json", "-j", "1", "--memory", "32M"], cwd=folder, stderr=subprocess.PIPE,
                           text=True, env={**os.environ, "TOKMAP_TEST_READERS": "2"})
    most, n = 100 << 20, 0
    writer = open(folder / first, "wb", buffering=0)
    pipe = os.open(folder / second, os.O_WRONLY)
    os.set_blocking(pipe, False)
    deadline = time.monotonic() + 60
    while n < most and time.monotonic() < deadline:
        try:
            n += os.write(pipe, b"x\n" * 2048)
        except BlockingIOError:
            if not select.select([], [pipe], [], 5)[1]:
                break  # it is not read any more
    expect(n < most, "%d MB of bad lines were read before their turn" % (n >> 20))
    writer.write(LINES)
    writer.close()
    os.set_blocking(pipe, True)
    os.write(pipe, b"\n" if n % 2 == 0 else b"x\n")
    os.close(pipe)
    said = run.communicate(timeout=120)[1]
    expect_equal(run.returncode, 0, "exit status; it said " + said)
    return "%d MB" % (n >> 20)


def without_memory_all_threads_take_at_most_a_quarter_of_what_there_is(folder):
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a sanitizer takes all address space")
    pack_corpus.write_inputs(folder, random.Random(1), 1)
    (folder / "l.jsonl").write_bytes(LINES)
    found = {}
    for n_threads in (1, 30, 100):
        run = subprocess.run([program("tokmap"), "pack", "l.jsonl", "-o", "o", "-f", "--tokenizer", "vocabulary.json",
                              "-j", str(n_threads)], cwd=folder, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * 10**9, 3 * 10**9)))
        expect_equal(run.returncode, 0, "exit status; it said " + run.stderr)
        found[n_threads] = [line for line in run.stderr.split("\n") if "--memory" in line]
    expect_equal(found[1], [], "with one thread")
    for n_threads, most in ((30, 25), (100, 8)):  # less where the machine has less than 3 GB
        expect(len(found[n_threads]) == 1, str(found[n_threads]))
        size = int(found[n_threads][0].split("--memory ")[1].split("M")[0])
        expect(8 <= size <= most, str(found[n_threads]))


def windows_of_many_inputs_do_not_add_up(folder):
    """40 streams with windows of 128 MiB: what decompressing them takes is waited for."""
    if not pack_corpus.has_zstd():
        raise Skip("this build has no zstd")
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a sanitizer has its own memory")
    pack_corpus.write_inputs(folder, random.Random(1), 1)
    names = []
    for i in range(40):
        # A frame with a window of 128 MiB: a line, then blocks that repeat a byte, so that the window is used.
        frame = b"\x28\xb5\x2f\xfd\x00" + bytes([17 << 3])
        line = b'{"text": "%d"}\n' % i
        frame += (len(line) << 3).to_bytes(3, "little") + line
        frame += b"".join((1 << 1 | 131072 << 3 | (k == 499)).to_bytes(3, "little") + b"\n" for k in range(500))
        names.append("z%02d.jsonl.zst" % i)
        (folder / names[-1]).write_bytes(frame)
    script = ("import resource, subprocess, sys; code = subprocess.call(sys.argv[1:]); "
              "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)")
    done = subprocess.run([sys.executable, "-c", script, program("tokmap"), "pack", "-q", *names, "-o", "o", "--tokenizer",
                           "vocabulary.json", "-j", "2", "--memory", "64M", "--format", "jsonl"], cwd=folder,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, "TOKMAP_TEST_READERS": "64"})
    expect_equal(done.returncode, 0, "exit status")
    peak = int(done.stdout) // 1024
    expect(peak < 400, "%d MiB at its peak, and one window has 128" % peak)
    return "%d MiB" % peak


if __name__ == "__main__":
    sys.exit(run_in_folders("readers_"))

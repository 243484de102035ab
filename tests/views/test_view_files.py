#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Views: the library writes the bytes of a second implementation of docs/FORMAT.md, section 15, and serves the rows of
a second implementation of docs/ORDER.md; of a damaged view it serves no wrong row. test_views.c compares a view with a
dataset of its documents alone."""

import os
import random
import sys

import ref_reader
import ref_release
import ref_rows
import ref_writer
from ref_protocol import expect, expect_equal, run_in_folders, run_program
from ref_views import CHUNK_DOCUMENTS, OtherDocuments, View, read_view, runs_of, set_hash_of, view_bytes
from ref_xxh3 import xxh3_64

TIMES = 10 if os.environ.get("TOKMAP_LONG") == "all" else 1
SHARES = (0, 0.01, 0.05, 0.4, 0.95, 1)


def any_lengths(rng, n, longest):
    return [rng.choice((0, 1, 2, rng.randint(0, longest))) for _ in range(n)]


def write(path, rng, lengths, **more):
    ref_writer.write(str(path), rng.choices(range(60000), k=sum(lengths)), lengths, vocab=60000, **more)
    return ref_reader.read(str(path))


def any_kept(rng, n, share):
    """About this share of the documents, some of them in runs."""
    run = rng.choice((1, 1, 3, 100))
    kept, at = [], 0
    while at < n:
        size = rng.randint(1, run)
        if rng.random() < share:
            kept += range(at, min(at + size, n))
        at += size
    return kept


def lengths_of(ds):
    return [end - first for first, end in ds.documents]


def mask_of(kept, n):
    mask = bytearray(n)
    for number in kept:
        mask[number] = 1
    return bytes(mask)


def tool(folder, name, *lines):
    """The lines that it prints."""
    done = run_program(name, cwd=folder, input="".join(line + "\n" for line in lines), text=True)
    expect_equal(done.returncode, 0, "%s %s: %s" % (name, lines, done.stderr))
    return done.stdout.splitlines()


def keep(folder, ds, kept, path):
    """Writes a view of the dataset d; returns the numbers that the library says."""
    (folder / "mask").write_bytes(mask_of(kept, ds.n_documents))
    return tuple(map(int, tool(folder, "tool_views", "keep d %s mask" % path)[0].split()))


# ---- Files ----


def check_file(folder, ds, kept):
    lengths = lengths_of(ds)
    wanted = view_bytes(ds.documents_hash, lengths, kept)
    path = folder / "v.tmw"
    said = keep(folder, ds, kept, path)
    expect(path.read_bytes() == wanted, "bytes of a view of %d documents" % len(kept))
    view = read_view(str(path), ds)
    n_tokens = sum(lengths[number] for number in kept)
    expect_equal(view, View(kept, n_tokens, len(runs_of(kept)), set_hash_of(kept), set_hash_of(kept)), "what is read")
    expect_equal(said, (len(kept), n_tokens, view.n_runs, view.set_hash, len(wanted)), "what the library says")


def the_library_writes_the_bytes_of_the_specification(folder):
    n_views = 0
    for seed in range(12 * TIMES):
        rng = random.Random(seed)
        n = rng.choice((1, 31, 32, 33, 64, 65, 500))
        ds = write(folder / "d", rng, any_lengths(rng, n, 50))
        masks = [any_kept(rng, n, share) for share in SHARES] + [[0], [n - 1], list(range(n)), list(range(n // 2))]
        for kept in masks:
            check_file(folder, ds, kept)
            n_views += 1
    return "%d views" % n_views


def a_view_of_many_chunks_has_the_bytes_of_the_specification(folder):
    for n in (CHUNK_DOCUMENTS, 2 * CHUNK_DOCUMENTS + 7000):
        rng = random.Random(n)
        ds = write(folder / "d", rng, any_lengths(rng, n, 3))
        masks = [any_kept(rng, n, share) for share in SHARES] if n > CHUNK_DOCUMENTS else []
        # Both forms of a chunk at their limit; a chunk without documents between others; its first and last document.
        masks += [list(range(4096)), list(range(4097)), sorted(rng.sample(range(CHUNK_DOCUMENTS), 4096)),
                  sorted({0, CHUNK_DOCUMENTS - 1, n - 1}), list(range(n - 9, n)), list(range(n))]
        for kept in masks:
            check_file(folder, ds, kept)


def a_view_of_an_expression_differs_in_its_key_alone(folder):
    rng = random.Random(3)
    lengths, scores = any_lengths(rng, 300, 20), [rng.random() for _ in range(300)]
    ds = write(folder / "d", rng, lengths, values=[("score", None, scores)])
    found = {}
    for limit in (0.0, 0.3, 0.9, 2.0):
        kept = [number for number, score in enumerate(scores) if score > limit]
        for where in ("score > %g" % limit, "score>%g" % limit, "not (score <= %g)" % limit):
            for path in folder.glob("*.tmw"):
                path.unlink()
            said = tool(folder, "tool_views", "where d - " + where)
            path, = folder.glob("*.tmw")
            view = read_view(str(path), ds)
            expect_equal((view.kept, path.name), (kept, "d.%016x.tmw" % view.key), where)
            expect(path.read_bytes() == view_bytes(ds.documents_hash, lengths, kept, view.key), where)
            expect_equal(int(said[0].split()[3]), set_hash_of(kept), "set_hash")
            found[where] = view.key
            expect(view.key != view.set_hash, "the key is that of the expression")
    expect_equal(len(set(found.values())), 8, "keys")  # spaces are no part of an expression


# ---- Rows ----


def any_options(rng):
    windows, shuffle = rng.choice((0, 0, 1, 2)), rng.choice((0, 1, 2))
    words = ["seed=%d" % rng.randint(0, 9), "length=%d" % rng.choice((1, 4, 16, 30)), "windows=%d" % windows,
             "shuffle=%d" % shuffle, "rows=%d" % rng.randint(1, 5), "ranks=%d" % rng.randint(1, 2), "parts=15"]
    if windows == 0:
        words.append("random_offset=%d" % (rng.random() < 0.6))
    if windows == 2:
        words += ["max_documents=%d" % rng.choice((0, 2)), "whole_documents=%d" % rng.randint(0, 2)]
    if shuffle == 2:
        words.append("group_blocks=%d" % rng.randint(1, 4))
        words += ["block_windows=%d" % rng.randint(1, 9)] if windows != 2 else []
    return words


def any_shard(rng, name, n):
    first = rng.randint(0, n)
    part = rng.choice(("", "", "@%d-%d" % (first, rng.randint(first, n)), "@0-%d" % n))
    return "%s@%s.%d.tmw%s" % (name, name, rng.randrange(4), part)


def rows_are_those_of_the_second_order(folder):
    """With the states, which have the ids of the sources."""
    (folder / "states").mkdir()
    n_compared = n_refused = 0
    for seed in range(200 * TIMES):
        rng = random.Random(seed)
        if seed % 30 == 0:
            sizes = {}
            for name in ("%s%d" % (letter, seed) for letter in "abc"):
                sizes[name] = rng.choice((40, 300))
                ds = write(folder / name, rng, any_lengths(rng, sizes[name], 60))
                for k, share in enumerate((0.05, 0.4, 0.95, rng.choice((0.5, 2)))):
                    data = view_bytes(ds.documents_hash, lengths_of(ds), any_kept(rng, ds.n_documents, share))
                    (folder / ("%s.%d.tmw" % (name, k))).write_bytes(data)
                # Which a loader with such rows finds.
                tool(folder, "tool_views", "rows {0} {0}.{1}.tmw - 16 1 0 {2}".format(name, k, k % 3))
        sources = [[any_shard(rng, name, n) for name, n in rng.sample(sorted(sizes.items()), rng.randint(1, 3))]
                   for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.4:
            name = rng.choice(sorted(sizes))  # all documents; a source takes no view of them beside them
            free = [source for source in sources if not any(shard.startswith(name + "@") for shard in source)]
            if not free:
                sources.append([])
                free = sources[-1:]
            free[0].insert(rng.randint(0, 1), name)
        options = any_options(rng)
        numbers = dict(word.split("=") for word in options)
        options.append("next=%d" % (rng.choice((0, 0, 7)) * int(numbers["rows"]) * int(numbers["ranks"])))
        words = "x%d %s" % (seed, " ".join(options + ["source=%s:1:0:%d" % ("+".join(some), rng.random() < 0.2) for some in sources]))
        try:
            ref_release.Setup(str(folder), words.split()[1:])
        except ValueError:
            done = run_program("tool_release", cwd=folder, input="save %s\n" % words, text=True)
            expect(done.returncode == 1 and any(why in done.stderr for why in ("too few", "two tokens", "two ranges")),
                   "%s: %s" % (words, done.stderr))
            n_refused += 1
            continue
        got = tool(folder, "tool_release", "save " + words, "loader " + words)
        wanted = ref_release.show(str(folder), "loader " + words).decode().splitlines()
        for a, b in zip(got, wanted):
            expect_equal(a, b, words)
        expect_equal(len(got), len(wanted), "lines of " + words)
        n_compared += sum(line.startswith(" row") for line in got)
    return "%d rows, %d loaders without enough windows" % (n_compared, n_refused)


def a_rows_file_of_a_view_has_the_bytes_of_the_specification(folder):
    for seed in range(20 * TIMES):
        rng = random.Random(seed)
        ds = write(folder / "d", rng, any_lengths(rng, 200, 40))
        kept = any_kept(rng, 200, rng.choice(SHARES[2:5])) + [199]
        kept = sorted(set(kept))
        keep(folder, ds, kept, "v.tmw")
        length = rng.choice((8, 16))
        kind = ref_rows.Kind(length, rng.choice((1, 2)), rng.choice((0, 3)), rng.choice(ref_rows.WHOLE))
        whole = ref_rows.WHOLE.index(kind.whole)
        tool(folder, "tool_views", "rows d v.tmw - %d %d %d %d" % (length, kind.align, kind.most, whole))
        path, = folder.glob("*.tmr")
        view = read_view(str(folder / "v.tmw"), ds)
        name = "d.%d%s%s%s-v%016x.tmr" % (length, "-align2" if kind.align == 2 else "", "-max3" if kind.most else "",
                                         ("", "-drop", "-truncate")[whole], view.set_hash)
        expect_equal(path.name, name, "name of the file")
        wanted = ref_rows.file_bytes(ds.n_tokens, lengths_of(ds), ds.documents_hash, kind, view)
        expect(path.read_bytes() == wanted, "bytes of a rows file of %d documents" % len(kept))
        path.unlink()


# ---- Damage ----


def sign(data):
    """The file with right checksums of its chunks, as far as their places are in it, of its table and its header."""
    data, n_chunks = bytearray(data), int.from_bytes(data[72:80], "little")
    for at in range(128, min(128 + 40 * min(n_chunks, 4), len(data) - 39), 40):
        place = int.from_bytes(data[at + 16:at + 24], "little")
        n = int.from_bytes(data[at + 24:at + 28], "little")
        size = (8192 if n > 4096 else 2 * n + -2 * n % 8) + 8 * -(-n // 32)
        data[at + 32:at + 40] = xxh3_64(data[place:place + size]).to_bytes(8, "little")
    data[88:96] = xxh3_64(data[128:128 + 40 * min(n_chunks, 4)]).to_bytes(8, "little")
    data[120:128] = xxh3_64(data[:120]).to_bytes(8, "little")
    return bytes(data)


def serve(folder, words, data):
    """What tool_release prints of a loader over a view file with this content, or None, and then why."""
    (folder / "bad.tmw").write_bytes(data)
    done = run_program("tool_release", cwd=folder, input="loader x %s\n" % words.replace("v.tmw", "bad.tmw"), text=True)
    expect(done.returncode == 0 or done.returncode == 1 and ": " in done.stderr, "%d, %s" % (done.returncode, done.stderr))
    return (None, done.stderr) if done.returncode else (done.stdout, "")


def is_sound(folder, ds):
    try:
        return bool(read_view(str(folder / "bad.tmw"), ds))
    except (ref_reader.Damaged, ref_reader.NewerFormat, OtherDocuments):
        return False


def a_damaged_view_serves_no_wrong_row(folder):
    """With right checksums, as of a wrong writer, a damaged view may have other rows, but one that the second reader
    takes is served."""
    (folder / "states").mkdir()
    rng, n_refused, n_right, n_served, n_sound = random.Random(8), 0, 0, 0, 0
    for n, share, more in ((60, 0.5, "length=4"), (300, 0.5, "length=4 windows=1"), (CHUNK_DOCUMENTS + 9000, 0.4, "length=6")):
        ds = write(folder / "d", rng, any_lengths(rng, n, 9))
        keep(folder, ds, [number for number in range(n) if rng.random() < share], "v.tmw")
        good = (folder / "v.tmw").read_bytes()
        words = "next=0 rows=3 ranks=1 parts=15 source=d@v.tmw:1:0:0 " + more
        tool(folder, "tool_release", "save x " + words)
        rows = serve(folder, words, good)[0]
        expect(rows.count("\n row") == 9, rows)
        places = sorted({*range(n % 3, min(len(good), 208), 3), *rng.sample(range(len(good)), 20)})
        damaged = [good[:at] + bytes([good[at] ^ rng.randint(1, 255)]) + good[at + 1:] for at in places]
        shorter = [good[:at] for at in rng.sample(range(len(good)), 20)]
        for data in [*damaged, *shorter, b"", good + b"\0"]:
            got, why = serve(folder, words, data)
            # A chunk that no row needs is not read.
            expect("bad.tmw" in why or got == rows and n > CHUNK_DOCUMENTS, "%s %s" % (why, got))
            n_refused, n_right = n_refused + (got is None), n_right + (got == rows)
        for data in damaged[::15 if n > CHUNK_DOCUMENTS else 1]:
            got, why = serve(folder, words, sign(data))
            sound = is_sound(folder, ds)
            expect(got == rows or not sound, why)
            n_served, n_sound = n_served + (got is not None), n_sound + sound
    return "%d refused, %d with right rows; with right checksums %d served, %d of them sound" % (
        n_refused, n_right, n_served, n_sound)


def tokens_before_the_first_document_are_refused(folder):
    """With right checksums, too: what the table says of earlier chunks can be checked at open."""
    (folder / "states").mkdir()
    rng = random.Random(1)
    ds = write(folder / "d", rng, [9] * 40)
    keep(folder, ds, [3, 4, 7, 20], "v.tmw")
    words = "next=0 length=4 rows=1 ranks=1 source=d@v.tmw:1:0:0"
    tool(folder, "tool_release", "save x " + words)
    good = (folder / "v.tmw").read_bytes()
    expect(serve(folder, words, sign(good))[0] == serve(folder, words, good)[0], "signed as it was")
    for at in (128, 136, 144, 156):
        why = serve(folder, words, sign(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:]))[1]
        expect("bad.tmw: damaged: impossible chunks" in why, "byte %d: %s" % (at, why))


sys.exit(run_in_folders("views_"))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of real Parquet writers, and files of JSON lines beside them, are cut and read in parts: the parts give the
documents that were written, and what the whole gives."""

import json
import sys
from random import Random

from ref_protocol import Skip, expect, expect_equal, need, need_parquet, run_in_folders, run_program, split_texts


def run(*arguments):
    done = run_program("tool_parts", *arguments)
    if b"this build has no" in done.stderr:
        raise Skip(done.stderr.decode().strip())
    return done


def read_parts(paths, field, meta, seed):
    """The documents, the number of parts, and of those that begin in a file."""
    done = run("all", "auto", field, meta, seed, *paths)
    expect_equal(done.returncode, 0, "%s, seed %d: %s" % (paths, seed, done.stderr.decode("utf-8", "replace")))
    n_parts, n_cut = map(int, done.stderr.split())
    return [text.decode() for text in split_texts(done.stdout)], n_parts, n_cut


def random_texts(random, n):
    words = ["alpha ", "be ", "\u00e4\u6f22\U0001f600", "x" * 40, "\n", ""]
    texts = ["".join(random.choices(words, k=random.choice((0, 1, 3, 30)))) for _ in range(n)]
    if random.random() < 0.5:
        texts = [None if random.random() < 0.2 else t for t in texts]
    return texts


def write_parquet(random, path, texts):
    pa, pq = need_parquet()
    codec = random.choice(("none", "snappy", "gzip", "zstd"))
    columns = {"id": list(range(len(texts))), "text": pa.array(texts, pa.string()),
               "score": pa.array([i / 4 if i % 3 else None for i in range(len(texts))], pa.float64())}
    names = list(columns)
    random.shuffle(names)
    dictionary = random.random() < 0.5
    options = {"compression": codec, "data_page_version": random.choice(("1.0", "2.0")),
               "data_page_size": random.choice((50, 500, 5000, 1 << 20)), "write_batch_size": random.choice((1, 7, 32, 1000)),
               "row_group_size": random.choice((3, 50, 170, 10000)), "use_dictionary": dictionary,
               "dictionary_pagesize_limit": random.choice((300, 1 << 20)), "write_page_index": random.random() < 0.5,
               "write_page_checksum": random.random() < 0.5}
    if not dictionary:
        options["column_encoding"] = {"text": random.choice(("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"))}
    pq.write_table(pa.table({name: columns[name] for name in names}), str(path), **options)


def write_json(random, path, texts):
    lines = [json.dumps({"id": i, "text": t, "score": 0.5}, ensure_ascii=False) for i, t in enumerate(texts)]
    blank = ["", " ", "\r"]
    out = "".join(line + "\n" + (random.choice(blank) + "\n" if random.random() < 0.1 else "") for line in lines)
    path.write_text(("\ufeff" if random.random() < 0.3 else "") + (out[:-1] if random.random() < 0.3 and lines else out),
                    encoding="utf-8", newline="")


def pyarrow_files_in_parts_give_the_texts_that_were_written(folder):
    n_parts = n_cut = 0
    for seed in range(150):
        random = Random(seed)
        paths, want, kinds = [], [], ["parquet", "parquet", "jsonl"]
        for i in range(random.choice((1, 1, 3))):
            texts = random_texts(random, random.choice((0, 1, 20, 400)))
            kind = random.choice(kinds)
            path = folder / ("%d.%s" % (i, kind))
            if kind == "parquet":
                write_parquet(random, path, texts)
                want += [t for t in texts if t is not None]
            else:
                texts = [t for t in texts if t is not None] or [""]
                write_json(random, path, texts)
                want += texts
            paths.append(path)
        only_parquet = all(p.suffix == ".parquet" for p in paths)
        meta = random.choice(("-", "id,score", "@row,id")) if only_parquet else random.choice(("-", "id"))
        texts, parts, cut = read_parts(paths, "text", meta, seed)
        expect(texts == want, "seed %d: %d documents, %d were written" % (seed, len(texts), len(want)))
        n_parts, n_cut = n_parts + parts, n_cut + cut
    expect(n_cut > 500, "only %d parts begin in a file" % n_cut)
    return "%d parts, %d of which begin in a file" % (n_parts, n_cut)


def other_writers_in_parts_give_the_texts_that_were_written(folder):
    polars, duckdb = need("polars"), need("duckdb")
    n_cut = 0
    for seed in range(20):
        random = Random(seed)
        texts = random_texts(random, 5000)
        a, b = folder / "a.parquet", folder / "b.parquet"
        frame = polars.DataFrame({"id": list(range(len(texts))), "text": texts})
        frame.write_parquet(str(a), compression=random.choice(("zstd", "snappy")), row_group_size=random.choice((700, 5000)),
                            data_page_size=random.choice((1000, 100000)))
        duckdb.sql("copy (select * from read_parquet('%s')) to '%s' (format parquet, compression zstd, row_group_size 2048)" % (a, b))
        got, _, cut = read_parts([a, b], "text", random.choice(("-", "@row,id")), seed)
        want = [t for t in texts if t is not None]
        expect(got == want + want, "seed %d" % seed)
        n_cut += cut
    return "%d parts begin in a file" % n_cut


def a_part_of_a_large_file_reads_only_its_pages(folder):
    pa, pq = need_parquet()
    random = Random(1)
    texts = ["%0500d" % random.randrange(10**400) for _ in range(40000)]
    for row_group_size in (2000, 40000):
        path = folder / "large.parquet"
        pq.write_table(pa.table({"other": texts, "text": texts}), str(path), compression="none", use_dictionary=False,
                       data_page_size=100000, write_batch_size=10, row_group_size=row_group_size)
        size = path.stat().st_size
        done = run("one", "text", size * 3 // 4, size * 3 // 4 + 1000000, path)
        expect_equal(done.returncode, 0, done.stderr.decode())
        begin, begin_row, end, end_row, records, n_read = map(int, done.stdout.split())
        expect_equal(records, end_row - begin_row, "records of the part")
        expect(size * 3 // 4 <= begin < end <= size * 3 // 4 + 2200000, "places %d and %d of %d" % (begin, end, size))
        # The pages, with room for the header of each page before it in its row group, and the footer.
        allowed = records * 504 + (row_group_size // 200 + 20) * 8300 + 200000
        expect(n_read < allowed, "%d bytes were read for %d rows, %d are allowed" % (n_read, records, allowed))
    return "%d bytes for %d rows" % (n_read, records)


if __name__ == "__main__":
    sys.exit(run_in_folders(""))

/* SPDX-License-Identifier: Apache-2.0 */
/* The time that is left, where each byte of text takes as long as any other. */
#include "support/check.h"

#include "base/base.h"
#include "pack/remaining.h"

#define MAX_FILES 10
#define STEP ((uint64_t)200000) /* bytes of a file between two looks */

typedef struct run {
    const char *names[MAX_FILES];
    input_version versions[MAX_FILES];
    pack_inputs inputs;
    double density[MAX_FILES]; /* bytes of text of a stored byte */
} run;

static void add(run *r, const char *name, uint64_t n_bytes, double density)
{
    const size_t i = r->inputs.n++;
    CHECK(i < MAX_FILES);
    r->names[i] = name;
    r->versions[i].n_bytes = n_bytes;
    r->density[i] = density;
    r->inputs.total_bytes += n_bytes;
    r->inputs.names = r->names;
    r->inputs.versions = r->versions;
}

/* Goes through the files of all runs. From a fifth of the bytes on, the time that is said to be
 * left is right within the factor. */
static void expect_within(run *runs, size_t n_runs, double factor)
{
    pack_remaining r = {0};
    double now = 1, all_text = 0;
    uint64_t all = 0, done = 0;
    for (size_t k = 0; k < n_runs; k++) {
        pack_remaining_expect(&r, &runs[k].inputs, 0);
        for (size_t i = 0; i < runs[k].inputs.n; i++)
            all_text += runs[k].density[i] * (double)runs[k].versions[i].n_bytes;
        all += runs[k].inputs.total_bytes;
    }
    r.started_ns = 1;
    CHECK(pack_remaining_seconds(&r, 2) < 0);
    for (size_t k = 0; k < n_runs; k++) {
        uint64_t at = 0;
        pack_remaining_enter(&r, 0);
        for (size_t i = 0; i < runs[k].inputs.n; i++) {
            const uint64_t end = at + runs[k].versions[i].n_bytes;
            while (at < end) {
                const uint64_t n = MIN(STEP, end - at);
                const double text = runs[k].density[i] * (double)n;
                at += n;
                done += n;
                now += text;
                pack_remaining_reach(&r, &runs[k].inputs, i, at, (uint64_t)text);
                const double left = (all_text + 1 - now) / 1e9;
                const double said = pack_remaining_seconds(&r, (uint64_t)now);
                if (done >= all / 5 && left > all_text / 1e11)
                    CHECK(said < left * factor && said > left / factor);
            }
        }
    }
    CHECK(pack_remaining_seconds(&r, (uint64_t)now) < all_text / 1e11);
}

TEST(compressed_files_take_as_long_as_their_text)
{
    run r = {0};
    add(&r, "a.txt", 4000000, 1);
    add(&r, "b.txt", 12000000, 1);
    add(&r, "c.txt.gz", 3000000, 2.6);
    add(&r, "d.txt", 500000, 1);
    add(&r, "e.txt.zst", 20000000, 2.6);
    add(&r, "f.txt", 900000, 1);
    expect_within(&r, 1, 1.5);
    run other = {0};
    add(&other, "a.jsonl.gz", 9000000, 5);
    add(&other, "b.jsonl", 30000000, 0.9);
    expect_within(&other, 1, 1.5);
}

TEST(files_of_one_kind_are_measured)
{
    run r = {0};
    add(&r, "a.parquet", 900000, 1.3);
    add(&r, "b.parquet", 40000000, 1.3);
    add(&r, "c.parquet", 3000000, 1.3);
    expect_within(&r, 1, 1.05);
}

TEST(cells_of_a_task_are_one_work)
{
    run cells[3] = {{{0}}};
    add(&cells[0], "a.txt", 2000000, 1);
    add(&cells[1], "b.txt.gz", 4000000, 3);
    add(&cells[2], "c.txt", 8000000, 1);
    expect_within(cells, 3, 1.5);
}

TEST(a_part_of_an_input_is_counted_as_such)
{
    pack_remaining r = {0};
    run cell = {0};
    add(&cell, "a.txt", 1000000, 1);
    cell.inputs.begin.offset = 300000;
    cell.inputs.end.offset = 800000;
    pack_remaining_expect(&r, &cell.inputs, 100000);
    r.started_ns = 1;
    pack_remaining_enter(&r, 100000);
    pack_remaining_reach(&r, &cell.inputs, 0, 300000, 200000);
    const double said = pack_remaining_seconds(&r, 1000000001);
    CHECK(said > 0.99 && said < 1.01); /* 200,000 bytes of 400,000 took a second */
}

TEST(what_can_be_read_only_once_has_no_end)
{
    pack_remaining r = {0};
    run pipe = {0};
    add(&pipe, "-", 0, 1);
    pack_remaining_expect(&r, &pipe.inputs, 0);
    pack_remaining_enter(&r, 0);
    pack_remaining_reach(&r, &pipe.inputs, 0, 1000, 1000);
    CHECK(pack_remaining_seconds(&r, r.started_ns + 5) < 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_bit_flips - every single bit of a dataset matters: flipped, open or verify refuses the
 * dataset, and every other call stays inside the files. */
#include <fcntl.h>

#include "support/check.h"

#include "support/bad_days.h"
#include "support/joined.h"
#include "support/must.h"

typedef struct flips {
    uint64_t n_flips, n_by_open, n_by_verify;
    int fd; /* of the file whose bits are flipped */
    const char *prefix;
} flips;

/* What catches the flip that is in the file now: nothing, open or verify. */
static void judge(flips *f, const char *file, uint64_t bit)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    tokmap_status status = tokmap_dataset_open(&ds, f->prefix, &err);
    f->n_flips++;
    if (status) {
        f->n_by_open++;
        CHECK(ds == NULL && err.status == status && err.text[0]);
        return;
    }
    const char *problem = probe(ds);
    status = verify_one_thread(ds, &err);
    tokmap_dataset_close(ds);
    if (problem)
        CHECK_FAIL("%s, bit %" PRIu64 ": %s", file, bit, problem);
    if (status != TOKMAP_ERR_CORRUPT)
        CHECK_FAIL("%s, bit %" PRIu64 ": verify says %d", file, bit, (int)status);
    f->n_by_verify++;
}

static void flip_all(flips *f, const char *path, size_t first_byte)
{
    const file_bytes whole = file_load(path);
    CHECK(whole.data != NULL);
    f->fd = open(path, O_WRONLY);
    CHECK(f->fd >= 0);
    for (size_t at = first_byte; at < whole.n_bytes; at++) {
        for (int bit = 0; bit < 8; bit++) {
            const uint8_t flipped = (uint8_t)(whole.data[at] ^ (1u << bit));
            CHECK_INT(pwrite(f->fd, &flipped, 1, (off_t)at), 1);
            judge(f, path, 8 * at + (unsigned)bit);
        }
        CHECK_INT(pwrite(f->fd, whole.data + at, 1, (off_t)at), 1);
    }
    close(f->fd);
    free(whole.data);
}

static void flip_shape(const shape *s)
{
    const char *prefix = check_path("p");
    must_store(s, prefix);
    flips f = {.prefix = prefix};
    flip_all(&f, with_suffix(prefix, ".tmi"), 0);
    flip_all(&f, shape_token_path(s, prefix), s->token_offset);
    must_hold(s, prefix, "after all flips were taken back");
    printf("note %s: %" PRIu64 " of %" PRIu64 " flips caught, %" PRIu64 " by open, %" PRIu64
           " by verify\n",
           s->name, f.n_by_open + f.n_by_verify, f.n_flips, f.n_by_open, f.n_by_verify);
    CHECK_EQ(f.n_by_open + f.n_by_verify, f.n_flips);
    CHECK(f.n_flips > 8 * 256);
}

TEST(every_flip_is_caught)
{
    static const shape *const all[] = {&SHAPE_TINY,  &SHAPE_WIDE_IDS, &SHAPE_NO_DOCUMENTS,
                                       &SHAPE_EMPTY, &SHAPE_ADOPTED,  &SHAPE_VALUES};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        flip_shape(all[i]);
        remove_dataset(check_path("p"));
    }
}

TEST(every_flip_in_a_joined_dataset_is_caught)
{
    static const joined_part parts[] = {{"one.bin", 100, 0}, {"two", 1, 0}, {"three", 29, 4}};
    const char *flat = check_path("flat"), *prefix = check_path("p");
    must_store(&SHAPE_WIDE_IDS, flat);
    joined_store(flat, prefix, parts, 3);
    flips f = {.prefix = prefix};
    flip_all(&f, with_suffix(prefix, ".tmi"), 0);
    for (int i = 0; i < 3; i++)
        flip_all(&f, check_path(parts[i].name), parts[i].token_offset);
    must_hold(&SHAPE_WIDE_IDS, prefix, "after all flips were taken back");
    CHECK_EQ(f.n_by_open + f.n_by_verify, f.n_flips);
}

/* The one place where a flip may stay: it is not ours. */
TEST(a_foreign_header_is_neither_read_nor_checked)
{
    const char *prefix = check_path("p");
    const shape *s = &SHAPE_ADOPTED;
    must_store(s, prefix);
    const int fd = open(shape_token_path(s, prefix), O_WRONLY);
    for (uint32_t i = 0; i < s->token_offset; i++)
        CHECK_INT(pwrite(fd, "x", 1, i), 1);
    close(fd);
    must_hold(s, prefix, "with another header");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_copy - one token file from those of a joined dataset: what counts as done, and what is in
 * the way of a copy. */
#include <sys/file.h>

#include "base/base.h"
#include "support/bad_days.h"
#include "support/check.h"
#include "support/joined.h"
#include "support/must.h"

enum {
    UNIT_BYTES = 16 << 20
};

/* Two units and a bit. */
static const shape FLAT = {.name = "flat",
                           .vocab_size = 50000,
                           .n_tokens = 2 * UNIT_BYTES / 2 + 1234567,
                           .n_documents = 3000,
                           .n_inputs = 4,
                           .metadata = "{\"a\": 1}",
                           .n_columns = SHAPE_MAX_COLUMNS};
static const shape SMALL = {.name = "small",
                            .vocab_size = 50000,
                            .n_tokens = 1000,
                            .n_documents = 30,
                            .n_inputs = 1,
                            .metadata = "{}"};

static char flat[600], joined[600], out[600];

/* flat, and joined with the same content, in token files of about a million tokens. */
static void make_datasets(const shape *s)
{
    snprintf(flat, sizeof flat, "%s", check_path("flat"));
    snprintf(joined, sizeof joined, "%s", check_path("joined"));
    snprintf(out, sizeof out, "%s", check_path("out"));
    must_store(s, flat);
    joined_store_even(flat, joined, "cell", s->n_tokens / 17 + 1);
}

static tokmap_copy_options part_of(uint64_t part, uint64_t n_parts, bool replace)
{
    tokmap_copy_options options = TOKMAP_INIT(tokmap_copy_options);
    options.part = part;
    options.n_parts = n_parts;
    options.replace = replace;
    return options;
}

static tokmap_status copy_part(uint64_t part, uint64_t n_parts, tokmap_error *err)
{
    const tokmap_copy_options options = part_of(part, n_parts, false);
    tokmap_dataset *ds = NULL;
    tokmap_status status = tokmap_dataset_open(&ds, joined, err);
    if (!status)
        status = tokmap_writer_copy_part(ds, out, &options, err);
    tokmap_dataset_close(ds);
    return status;
}

static tokmap_status copy_finish(bool replace, tokmap_error *err)
{
    const tokmap_copy_options options = part_of(0, 0, replace);
    tokmap_dataset *ds = NULL;
    tokmap_status status = tokmap_dataset_open(&ds, joined, err);
    if (!status)
        status = tokmap_writer_copy_finish(ds, out, &options, err);
    tokmap_dataset_close(ds);
    return status;
}

static void must_copy(uint32_t part, uint32_t n_parts)
{
    tokmap_error err;
    CHECK_OK(copy_part(part, n_parts, &err), err);
    CHECK(is_absent(out));
}

static void must_complete(void)
{
    tokmap_error err;
    CHECK_OK(copy_finish(false, &err), err);
    CHECK(files_are_equal(with_suffix(out, ".bin"), with_suffix(flat, ".bin")));
    CHECK(files_are_equal(with_suffix(out, ".tmi"), with_suffix(flat, ".tmi")));
    CHECK(!has_partials(out));
}

/* Of the same shape as SMALL; the next calls copy it. */
static void use_another_dataset(void)
{
    shape other = SMALL;
    other.seed = 9;
    must_store(&other, check_path("other"));
    joined_store_even(check_path("other"), check_path("other_joined"), "other_cell", 100);
    snprintf(joined, sizeof joined, "%s", check_path("other_joined"));
    snprintf(flat, sizeof flat, "%s", check_path("other"));
}

/* ---- Shares; their orders, and kills: tests/plan/test_flatten.py ---- */

/* What is done is not read again: its source may be away. */
TEST(what_is_done_is_not_done_again)
{
    make_datasets(&FLAT);
    must_copy(0, 1);
    char first[700];
    snprintf(first, sizeof first, "%s", check_path("cell-0003.bin"));
    CHECK_INT(rename(first, check_path("away")), 0);
    must_complete();
    remove_dataset(out);
    tokmap_error err;
    CHECK_REFUSED(copy_part(0, 1, &err), TOKMAP_ERR_IO, err, "cell-0003.bin");
    CHECK_INT(copy_finish(false, &err), TOKMAP_ERR_IO);
    CHECK(is_absent(out) && file_is_there(with_suffix(out, ".bin.partial")));
    CHECK_INT(rename(check_path("away"), first), 0);
    must_complete();
}

/* While another process copies: neither that it holds the lock is an error, nor is it reported. */
TEST(a_shared_lock_is_no_error)
{
    make_datasets(&SMALL);
    must_copy(0, 1);
    tokmap_error err = {.status = TOKMAP_ERR_DEVICE};
    FILE *other = fopen(with_suffix(out, ".tmi.partial"), "r+");
    CHECK(other != NULL);
    CHECK_INT(flock(fileno(other), LOCK_SH), 0);
    CHECK_INT(copy_part(0, 1, &err), TOKMAP_OK);
    CHECK_INT(err.status, TOKMAP_OK);
    CHECK_INT(copy_finish(false, &err), TOKMAP_ERR_LOCKED);
    fclose(other);
    must_complete();
}

/* Two datasets at the same time would mix. */
TEST(a_copy_of_another_dataset_excludes_copies)
{
    make_datasets(&SMALL);
    must_copy(0, 2);
    FILE *others = fopen(with_suffix(out, ".tmi.partial"), "r+");
    CHECK(others != NULL);
    CHECK_INT(flock(fileno(others), LOCK_SH), 0);
    use_another_dataset();
    tokmap_error err;
    CHECK_REFUSED(copy_part(0, 1, &err), TOKMAP_ERR_LOCKED, err, "another dataset");
    fclose(others);
    must_copy(0, 1);
    must_complete();
}

/* Where others may write into the folder of the output, it could be a name of any file of ours. */
TEST(a_hard_link_in_place_of_the_tokens_is_not_written_to)
{
    make_datasets(&SMALL);
    const char *precious = check_path("precious");
    CHECK(file_store(precious, "precious", 8));
    CHECK_INT(link(precious, with_suffix(out, ".bin.partial")), 0);
    tokmap_error err;
    CHECK_REFUSED(copy_part(0, 1, &err), TOKMAP_ERR_EXISTS, err, "hard link");
    CHECK_INT(copy_finish(false, &err), TOKMAP_ERR_EXISTS);
    const file_bytes f = file_load(precious);
    CHECK(f.n_bytes == 8 && memcmp(f.data, "precious", 8) == 0);
    free(f.data);
    CHECK_INT(unlink(with_suffix(out, ".bin.partial")), 0);
    must_complete();
}

/* Then the tokens that it speaks of are copied again. */
TEST(a_changed_record_does_not_count)
{
    enum {
        RECORD_AT = 4096,
        RECORD_BYTES = 192
    };
    make_datasets(&SMALL);
    must_copy(0, 1);
    char partial[700];
    snprintf(partial, sizeof partial, "%s", with_suffix(out, ".bin.partial"));
    const file_bytes whole = file_load(partial);
    CHECK_EQ(whole.n_bytes, RECORD_AT + 4096);
    memset(whole.data, 0, 100);
    for (size_t at = RECORD_AT; at < RECORD_AT + RECORD_BYTES; at += check_long() ? 1 : 5) {
        whole.data[at] ^= 0x10;
        CHECK(file_store(partial, whole.data, whole.n_bytes));
        whole.data[at] ^= 0x10;
        must_complete();
        remove_dataset(out);
    }
    free(whole.data);
}

TEST(records_of_another_dataset_do_not_count)
{
    make_datasets(&SMALL);
    must_copy(0, 1);
    use_another_dataset();
    must_copy(0, 1);
    must_complete();
}

/* ---- Other files of the same name ---- */

TEST(existing_datasets_are_refused_or_replaced)
{
    make_datasets(&SMALL);
    tokmap_error err;
    must_store(&SHAPE_OLD, out);
    CHECK_INT(copy_part(0, 1, &err), TOKMAP_ERR_EXISTS);
    CHECK_INT(copy_finish(false, &err), TOKMAP_ERR_EXISTS);
    CHECK(!shape_compare(&SHAPE_OLD, out) && !has_partials(out));
    const tokmap_copy_options options = part_of(0, 1, true);
    tokmap_dataset *ds = must_open(joined);
    CHECK_INT(tokmap_writer_copy_part(ds, out, &options, &err), TOKMAP_OK);
    tokmap_dataset_close(ds);
    CHECK(!shape_compare(&SHAPE_OLD, out));
    CHECK_INT(copy_finish(true, &err), TOKMAP_OK);
    CHECK(!shape_compare(&SMALL, out) && !has_partials(out));
}

/* As after a process that has published the copy, while this one was about to take its share. */
TEST(a_share_that_comes_too_late_leaves_nothing)
{
    make_datasets(&SMALL);
    tokmap_error err;
    must_copy(0, 1);
    must_complete();
    FILE *lock = fopen(with_suffix(out, ".tmi.partial"), "w");
    CHECK(lock != NULL);
    fclose(lock);
    CHECK_INT(copy_part(0, 1, &err), TOKMAP_ERR_EXISTS);
    CHECK(!has_partials(out));
}

TEST(a_writer_of_the_same_name_excludes_copies)
{
    make_datasets(&SMALL);
    tokmap_error err;
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID, .resumable = 1};
    tokmap_writer *w = must_begin(out, &options);
    CHECK_INT(copy_part(0, 1, &err), TOKMAP_ERR_LOCKED);
    CHECK_INT(copy_finish(false, &err), TOKMAP_ERR_LOCKED);
    CHECK_INT(tokmap_writer_checkpoint(w, "", 0, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    CHECK_INT(copy_part(0, 1, &err), TOKMAP_ERR_EXISTS);
    CHECK_INT(copy_finish(false, &err), TOKMAP_ERR_EXISTS);
    CHECK(file_is_there(with_suffix(out, ".tmj.partial")));
    remove_dataset(out);
    CHECK_INT(unlink(with_suffix(out, ".tmj.partial")), 0);
    must_copy(0, 1);
    CHECK_INT(shape_write(&SHAPE_OLD, out, false, &err), TOKMAP_OK); /* discards the copy */
    CHECK(!shape_compare(&SHAPE_OLD, out) && !has_partials(out));
}

TEST(arguments_are_checked)
{
    make_datasets(&SMALL);
    tokmap_error err;
    CHECK_INT(copy_part(2, 2, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(copy_part(1, 0, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(copy_part(1, (UINT64_C(1) << 32) + 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(copy_part(1, UINT64_C(1) << 32, &err), TOKMAP_OK);
    remove_dataset(out);
    CHECK_INT(tokmap_writer_copy_part(NULL, out, NULL, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_writer_copy_finish(NULL, out, NULL, &err), TOKMAP_ERR_ARGUMENT);
    CHECK(!has_partials(out));
}

TEST(a_dataset_without_tokens_can_be_copied)
{
    shape empty = SHAPE_EMPTY;
    empty.n_inputs = 1;
    snprintf(joined, sizeof joined, "%s", check_path("flat"));
    snprintf(flat, sizeof flat, "%s", check_path("flat"));
    snprintf(out, sizeof out, "%s", check_path("out"));
    must_store(&empty, flat);
    must_copy(0, 2);
    must_complete();
}

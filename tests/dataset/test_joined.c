/* SPDX-License-Identifier: Apache-2.0 */
/* test_joined - datasets whose tokens are in several files: every call gives what the flat dataset
 * gives, and missing, wrong or damaged files are named. */
#include "support/check.h"

#include <sys/stat.h>

#include "base/base.h"
#include "base/le.h"
#include "support/bad_days.h"
#include "support/faults.h"
#include "support/joined.h"
#include "support/must.h"

static tokmap_error err;

static const char *store_flat(const shape *s)
{
    static char prefix[600];
    snprintf(prefix, sizeof prefix, "%s", check_path(s->name));
    must_store(s, prefix);
    return prefix;
}

/* ---- The same as the flat dataset ---- */

/* The part that holds a token, found from the front. */
static size_t part_of(const joined_part *parts, uint64_t token)
{
    size_t i = 0;
    for (; token >= parts[i].n_tokens; i++)
        token -= parts[i].n_tokens;
    return i;
}

/* Reads it, and asks for its place, which it has if it is in one part. */
static void compare_range(const tokmap_dataset *ds, const uint8_t *all, const joined_part *parts,
                          uint64_t first, uint64_t n_tokens)
{
    static uint8_t copy[1 << 16];
    const uint32_t width = must_info(ds).token_bytes;
    const size_t n_bytes = (size_t)n_tokens * width;
    const void *tokens = NULL;
    CHECK(n_bytes <= sizeof copy);
    memset(copy, 0x55, n_bytes);
    CHECK_INT(tokmap_dataset_read(ds, first, n_tokens, copy, &err), TOKMAP_OK);
    CHECK(memcmp(copy, all + first * width, n_bytes) == 0);
    static uint32_t ids[(sizeof copy) / 2 + 1];
    ids[n_tokens] = 0x55555555;
    CHECK_INT(tokmap_dataset_read_ids(ds, first, n_tokens, ids, &err), TOKMAP_OK);
    for (uint64_t i = 0; i < n_tokens; i++)
        CHECK_EQ(ids[i], width == 2 ? le_get16(copy + 2 * i) : le_get32(copy + 4 * i));
    CHECK_EQ(ids[n_tokens], 0x55555555);
    const bool whole =
        n_tokens == 0 || part_of(parts, first) == part_of(parts, first + n_tokens - 1);
    CHECK_INT(tokmap_dataset_tokens(ds, first, n_tokens, &tokens),
              whole ? TOKMAP_OK : TOKMAP_IN_PIECES);
    CHECK(!whole || (tokens && (uintptr_t)tokens % width == 0));
    CHECK(!whole || memcmp(tokens, all + first * width, n_bytes) == 0);
}

static void compare_all_ranges(const shape *s, const tokmap_dataset *ds, const joined_part *parts)
{
    file_bytes file = shape_token_file(s);
    const uint8_t *all = file.data + s->token_offset;
    const uint64_t step = s->n_tokens / 60 + 1;
    for (uint64_t first = 0; first <= s->n_tokens; first += step)
        for (uint64_t end = first; end <= s->n_tokens; end += step)
            compare_range(ds, all, parts, first, end - first);
    uint64_t end = 0;
    for (const joined_part *p = parts; end < s->n_tokens; p++) { /* around each border */
        end += p->n_tokens;
        for (uint64_t first = end - MIN(end, 2); first < end; first++)
            for (uint64_t n = 0; n < 4; n++)
                compare_range(ds, all, parts, first, MIN(n, s->n_tokens - first));
    }
    free(file.data);
}

static void compare_segments(const tokmap_dataset *ds, const joined_part *parts, size_t n_parts)
{
    tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
    uint64_t first = 0;
    CHECK_EQ(must_info(ds).n_segments, n_parts);
    for (size_t i = 0; i < n_parts; i++) {
        CHECK_INT(tokmap_dataset_get_segment(ds, i, &segment), TOKMAP_OK);
        CHECK_STR(segment.path, parts[i].name);
        CHECK_EQ(segment.path_bytes, strlen(parts[i].name));
        CHECK_EQ(segment.first_token, first);
        CHECK_EQ(segment.n_tokens, parts[i].n_tokens);
        CHECK_EQ(segment.token_offset, parts[i].token_offset);
        first += parts[i].n_tokens;
    }
    CHECK_INT(tokmap_dataset_get_segment(ds, n_parts, &segment), TOKMAP_ERR_ARGUMENT);
}

static void compare_info(const tokmap_dataset *flat, const tokmap_dataset *joined,
                         const joined_part *parts, size_t n_parts)
{
    const tokmap_dataset_info a = must_info(flat), b = must_info(joined);
    uint64_t n_bytes = b.n_tokens * b.token_bytes;
    for (size_t i = 0; i < n_parts; i++)
        n_bytes += parts[i].token_offset;
    CHECK(memcmp(a.dataset_id, b.dataset_id, sizeof a.dataset_id) == 0);
    CHECK_EQ(a.n_segments, 0);
    CHECK_EQ(b.token_file_bytes, n_bytes);
    CHECK(a.token_path != NULL && b.token_path == NULL);
}

static void compare_joined(const shape *s, const joined_part *parts, size_t n_parts)
{
    const char *flat_prefix = store_flat(s), *prefix = check_path("joined");
    joined_store(flat_prefix, prefix, parts, n_parts);
    must_hold(s, prefix, "joined");
    tokmap_dataset *flat = must_open(flat_prefix), *joined = must_open(with_suffix(prefix, ".tmi"));
    compare_info(flat, joined, parts, n_parts);
    compare_segments(joined, parts, n_parts);
    compare_all_ranges(s, joined, parts);
    CHECK_NO_PROBLEM(probe_sound(joined));
    tokmap_dataset_close(joined);
    tokmap_dataset_close(flat);
}

enum {
    MOST_PARTS = 4000
};
static joined_part parts[MOST_PARTS];
static char names[MOST_PARTS][24];

typedef enum cut_kind {
    ALL_IN_ONE,
    ONE_EACH,
    GROWING,
    MIXED,
    N_CUTS
} cut_kind;

/* Parts of such sizes, until nothing is left. */
static size_t cut(uint64_t n_left, cut_kind kind, uint32_t offset_step)
{
    size_t n = 0;
    for (; n_left > 0; n++) {
        const uint64_t sizes[N_CUTS] = {UINT64_MAX, 1, n + 1, 1 + n * 7919 % 257};
        CHECK(n < MOST_PARTS);
        sprintf(names[n], "part-%zu.bin", n);
        parts[n] = (joined_part){names[n], MIN(n_left, sizes[kind]), offset_step * (n % 3)};
        n_left -= parts[n].n_tokens;
    }
    return n;
}

TEST(a_joined_dataset_equals_the_flat_one)
{
    for (unsigned k = 0; k < N_CUTS; k++)
        for (unsigned i = 0; i < N_SMALL_SHAPES; i++)
            compare_joined(SMALL_SHAPES[i], parts,
                           cut(SMALL_SHAPES[i]->n_tokens, (cut_kind)k, 4 * k));
}

/* Blocks are counted in each segment. */
TEST(segments_of_several_blocks_are_checked_block_by_block)
{
    const shape s = {.name = "blocks",
                     .vocab_size = 70000,
                     .n_tokens = 1500000,
                     .n_documents = 100,
                     .n_inputs = 2,
                     .metadata = "{}"};
    const joined_part sizes[] = {{"a.bin", (1 << 18) - 1, 0},
                                 {"b.bin", 1 << 18, 8},
                                 {"c.bin", (1 << 18) + 1, 0},
                                 {"d.bin", 1, 4},
                                 {"e.bin", 1500000 - 3 * (1 << 18) - 1, 0}};
    joined_store(store_flat(&s), check_path("joined"), sizes, 5);
    tokmap_dataset *ds = must_open(check_path("joined"));
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    CHECK_INT(tokmap_dataset_verify(ds, NULL, &report, &err), TOKMAP_OK);
    CHECK_EQ(report.n_blocks, 1 + 1 + 2 + 1 + 3);
    CHECK_EQ(report.n_blocks_checked, report.n_blocks);
    CHECK_EQ(report.bytes_read, must_info(ds).index_bytes + 4 * 1500000ull);
    tokmap_dataset_close(ds);
}

/* ---- Which files, and when ---- */

static const shape SMALL = {.name = "small",
                            .vocab_size = 1000,
                            .n_tokens = 90,
                            .n_documents = 10,
                            .n_inputs = 1,
                            .metadata = "{}"};
static const joined_part THREE[] = {{"one.bin", 30, 0}, {"sub/two.bin", 20, 6}, {"three", 40, 2}};

static const char *store_three(void)
{
    static char prefix[600];
    const char *flat = store_flat(&SMALL);
    CHECK(mkdir(check_path("sub"), 0777) == 0);
    snprintf(prefix, sizeof prefix, "%s", check_path("P"));
    joined_store(flat, prefix, THREE, 3);
    return prefix;
}

TEST(a_token_file_beside_a_joined_dataset_is_not_its_own)
{
    const char *prefix = store_three();
    tokmap_dataset *ds = NULL;
    CHECK(file_store(with_suffix(prefix, ".bin"), "x", 1));
    tokmap_dataset_close(must_open(prefix));
    CHECK_INT(tokmap_dataset_open(&ds, with_suffix(prefix, ".bin"), &err), TOKMAP_ERR_MISMATCH);
    CHECK(strstr(err.text, "P.bin") && strstr(err.text, "P.tmi") && strstr(err.text, "joined"));
}

TEST(open_opens_no_token_file)
{
    const char *prefix = store_three();
    for (int i = 0; i < 3; i++)
        CHECK_INT(unlink(check_path(THREE[i].name)), 0);
    tokmap_dataset *ds = must_open(prefix);
    compare_segments(ds, THREE, 3);
    tokmap_dataset_close(ds);
}

/* Token files are found from the folder as it was at open. */
TEST(neither_the_process_nor_the_folder_has_to_stay_where_it_is)
{
    char here[600], moved[600];
    store_three();
    snprintf(moved, sizeof moved, "%s-moved", check_dir());
    CHECK(getcwd(here, sizeof here) != NULL);
    CHECK_INT(chdir(check_dir()), 0);
    tokmap_dataset *ds = must_open("P");
    CHECK_INT(chdir("/"), 0);
    CHECK_NO_PROBLEM(compare_content(&SMALL, ds));
    tokmap_dataset_close(ds);
    CHECK_INT(chdir(check_dir()), 0);
    ds = must_open("./P.tmi");
    CHECK_INT(chdir(here), 0);
    CHECK_INT(rename(check_dir(), moved), 0);
    const char *problem = compare_content(&SMALL, ds);
    CHECK_INT(rename(moved, check_dir()), 0);
    CHECK_NO_PROBLEM(problem);
    tokmap_dataset_close(ds);
}

/* What all calls say about tokens 25 to 55, of which 30 to 49 are in a bad second file. */
static void expect_second_bad(const tokmap_dataset *ds, tokmap_status status, int sys_errno)
{
    uint16_t copy[90];
    const void *tokens;
    CHECK_INT(tokmap_dataset_tokens(ds, 30, 20, &tokens), status);
    CHECK_INT(tokmap_dataset_tokens(ds, 25, 30, &tokens), TOKMAP_IN_PIECES);
    CHECK_INT(tokmap_dataset_read(ds, 25, 30, copy, &err), status);
    CHECK_INT(err.sys_errno, sys_errno);
    CHECK_SAYS(err.text, "sub/two.bin");
    CHECK_INT(tokmap_dataset_read(ds, 0, 30, copy, &err), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_tokens(ds, 50, 40, &tokens), TOKMAP_OK);
}

typedef struct seen_damages {
    tokmap_damage list[10];
    size_t n;
} seen_damages;

static void on_damage(void *context, const tokmap_damage *damage)
{
    seen_damages *seen = context;
    CHECK(seen->n < 10);
    seen->list[seen->n++] = *damage;
}

static seen_damages verify(const tokmap_dataset *ds, uint32_t n_threads, tokmap_status wanted)
{
    seen_damages seen = {.n = 0};
    const tokmap_verify_options o = {
        .struct_size = sizeof o, .n_threads = n_threads, .context = &seen, .on_damage = on_damage};
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    CHECK_INT(tokmap_dataset_verify(ds, &o, &report, &err), wanted);
    CHECK_EQ(report.n_damages, seen.n);
    return seen;
}

/* The documents that hold some of the tokens [first, end), or are between two of them. */
static void expect_documents(const tokmap_damage *d, const shape *s)
{
    uint32_t first = 0, end = 0;
    while (shape_document_end(s, first) <= d->first_token)
        first++;
    while (end < s->n_documents && shape_document_end(s, end) < d->first_token + d->n_tokens)
        end++;
    CHECK_EQ(d->first_document, first);
    CHECK_EQ(d->n_documents, end + 1 - first);
}

static void expect_one_damage(const seen_damages *seen, tokmap_damage_kind kind, const char *file)
{
    CHECK_EQ(seen->n, 1);
    const tokmap_damage *d = &seen->list[0];
    CHECK_INT(d->kind, kind);
    CHECK_SAYS(d->error.text, file);
    CHECK_STR(d->error.text, err.text);
    expect_documents(d, &SMALL);
}

TEST(a_missing_file_is_named_and_the_rest_is_checked)
{
    tokmap_dataset *ds = must_open(store_three());
    CHECK_INT(rename(check_path("sub/two.bin"), check_path("sub/away")), 0);
    expect_second_bad(ds, TOKMAP_ERR_IO, ENOENT);
    seen_damages seen = verify(ds, 2, TOKMAP_ERR_IO);
    expect_one_damage(&seen, TOKMAP_DAMAGE_UNREADABLE, "sub/two.bin: cannot open: No such file");
    CHECK_EQ(seen.list[0].first_byte, 6);
    CHECK_EQ(seen.list[0].n_bytes, 40);
    CHECK_EQ(seen.list[0].first_token, 30);
    CHECK_EQ(seen.list[0].n_tokens, 20);
    CHECK_EQ(seen.list[0].block_index, 1);
    CHECK(file_store(
        check_path("three"),
        "0123456789012345678901234567890123456789012345678901234567890123456789012345678901", 82));
    seen = verify(ds, 2, TOKMAP_ERR_CORRUPT);
    CHECK_EQ(seen.n, 2);
    CHECK_INT(seen.list[1].kind, TOKMAP_DAMAGE_BLOCK);
    tokmap_dataset_close(ds);
    CHECK_INT(rename(check_path("sub/away"), check_path("sub/two.bin")), 0);
}

TEST(a_file_of_another_size_is_named)
{
    tokmap_dataset *ds = must_open(store_three());
    CHECK_INT(truncate(check_path("sub/two.bin"), 45), 0);
    expect_second_bad(ds, TOKMAP_ERR_CORRUPT, 0);
    seen_damages seen = verify(ds, 1, TOKMAP_ERR_CORRUPT);
    expect_one_damage(&seen, TOKMAP_DAMAGE_CONTENT, "sub/two.bin: has 45 bytes, but its index");
    CHECK_INT(truncate(check_path("sub/two.bin"), 46), 0); /* its size again; a zero byte */
    seen = verify(ds, 1, TOKMAP_ERR_CORRUPT);
    expect_one_damage(&seen, TOKMAP_DAMAGE_BLOCK,
                      "sub/two.bin: block 1 (bytes 6-45) does not match");
    CHECK_EQ(seen.list[0].first_byte, 6);
    CHECK_EQ(seen.list[0].n_bytes, 40);
    tokmap_dataset_close(ds);
}

/* One that was opened already, and is then shortened. */
TEST(a_file_that_is_shortened_later_is_an_error_of_reads)
{
    uint16_t copy[20];
    const void *tokens;
    tokmap_dataset *ds = must_open(store_three());
    CHECK_INT(tokmap_dataset_tokens(ds, 30, 20, &tokens), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_read(ds, 30, 20, copy, &err), TOKMAP_OK);
    CHECK_INT(truncate(check_path("sub/two.bin"), 20), 0);
    CHECK_INT(tokmap_dataset_read(ds, 30, 7, copy, &err), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_read(ds, 30, 8, copy, &err), TOKMAP_ERR_IO);
    CHECK_EQ(err.file_offset, 20);
    CHECK_SAYS(err.text, "sub/two.bin: the file ends at byte 20");
    tokmap_dataset_close(ds);
}

/* ---- As many as may be kept ---- */

TEST(a_thousand_maps_and_some_descriptors_are_kept)
{
    static const void *places[1500];
    const shape s = {.name = "many",
                     .vocab_size = 1000,
                     .n_tokens = 3000,
                     .n_documents = 30,
                     .n_inputs = 1,
                     .metadata = "{}"};
    joined_store_even(store_flat(&s), check_path("P"), "cell", 2);
    tokmap_dataset *ds = must_open(check_path("P"));
    const unsigned n_before = n_open_files();
    uint16_t copy[3000];
    CHECK_EQ(must_info(ds).n_segments, 1500);
    for (unsigned i = 0; i < 1500; i++)
        CHECK_INT(tokmap_dataset_tokens(ds, 2 * i, 2, &places[i]),
                  i < 1024 ? TOKMAP_OK : TOKMAP_IN_PIECES);
    CHECK_EQ(n_mapped_files("cell-"), check_emulated() ? 1023 : 1024); /* qemu leaves one out */
    CHECK_EQ(n_open_files(), n_before);
    CHECK_INT(tokmap_dataset_read(ds, 0, 3000, copy, &err), TOKMAP_OK);
    CHECK_EQ(n_open_files(), n_before + 256);
    for (unsigned i = 0; i < 1024; i++)
        CHECK(memcmp(places[i], copy + 2 * (size_t)i, 4) == 0);
    for (unsigned i = 0; i < 3000; i++)
        CHECK_EQ(copy[i], shape_id(&s, i));
    CHECK_NO_PROBLEM(compare_content(&s, ds));
    CHECK_INT(verify_one_thread(ds, &err), TOKMAP_OK);
    CHECK_EQ(n_open_files(), n_before + 256);
    tokmap_dataset_close(ds);
    CHECK(n_open_files() < n_before);
    CHECK_EQ(n_mapped_files("cell-"), 0);
}

/* ---- Faults ---- */

static void use_everything(const char *prefix)
{
    tokmap_dataset *ds = NULL;
    uint16_t copy[90];
    const void *tokens;
    const tokmap_status status = tokmap_dataset_open(&ds, prefix, &err);
    CHECK(!status || (status == err.status && err.text[0]));
    if (status)
        return;
    const tokmap_status of_tokens = tokmap_dataset_tokens(ds, 30, 20, &tokens);
    CHECK(of_tokens == TOKMAP_OK || of_tokens == TOKMAP_ERR_IO);
    const tokmap_status of_read = tokmap_dataset_read(ds, 10, 70, copy, &err);
    CHECK(of_read == err.status && (of_read == TOKMAP_OK || of_read == TOKMAP_ERR_IO));
    for (unsigned i = 0; i < 70 && !of_read; i++)
        CHECK_EQ(copy[i], shape_id(&SMALL, 10 + i));
    for (unsigned i = 0; i < 20 && !of_tokens; i++)
        CHECK_EQ(((const uint16_t *)tokens)[i], shape_id(&SMALL, 30 + i));
    const tokmap_status of_verify = verify_one_thread(ds, &err);
    CHECK(of_verify == TOKMAP_OK || of_verify == TOKMAP_ERR_IO || of_verify == TOKMAP_ERR_MEMORY);
    tokmap_dataset_close(ds);
}

static void fail_each(const char *prefix, unsigned calls, int errno_value)
{
    const unsigned n_before = n_open_files();
    uint64_t n = 0;
    for (bool struck = true; struck; n++) {
        fault_arm(FAULT_ONCE, calls, errno_value, n + 1);
        use_everything(prefix);
        struck = fault_disarm();
    }
    CHECK(n > 5);
    CHECK_EQ(n_open_files(), n_before);
    CHECK_EQ(n_mapped_files("/one.bin"), 0);
}

TEST(each_call_that_fails_is_an_error_and_nothing_is_kept)
{
    const char *prefix = store_three();
    fail_each(prefix, FAULT_OPEN | FAULT_PREAD | FAULT_MMAP, EIO);
    fail_each(prefix, FAULT_OPEN, EMFILE);
    if (FAULT_MEMORY_WORKS)
        fail_each(prefix, FAULT_MEMORY, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_join - joined datasets: an index over the token files of others. The model is merging: what
 * is joined must equal what is merged, without its tokens. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/le.h"
#include "support/bad_days.h"
#include "support/must.h"
#include "support/check.h"
#include "writer/relative_path.h"

enum {
    BLOCK_TOKENS = 1 << 19,
    MOST_PARTS = 8
};

/* Sizes around those of blocks and groups; one without tokens, one without anything, one with a
 * foreign header. */
static const shape PARTS[] = {
    {.name = "some", .n_tokens = 1000, .n_documents = 200, .n_inputs = 3},
    {.name = "block", .n_tokens = BLOCK_TOKENS, .n_documents = 64, .n_inputs = 1},
    {.name = "nothing"},
    {.name = "no tokens", .n_documents = 5, .n_inputs = 2},
    {.name = "adopted",
     .n_tokens = 77,
     .n_documents = 63,
     .token_offset = 10,
     .adopted_suffix = ".npy"},
    {.name = "one", .n_tokens = 1, .n_documents = 1, .n_inputs = 1},
    {.name = "more", .n_tokens = 2 * BLOCK_TOKENS + 3, .n_documents = 1000},
};
enum {
    N_PARTS = sizeof PARTS / sizeof PARTS[0]
};

static shape part_shape(int i, uint32_t n_columns)
{
    shape s = PARTS[i];
    s.vocab_size = 50000;
    s.metadata = "{}";
    s.seed = (uint32_t)i;
    s.n_columns = s.adopted_suffix ? 0 : n_columns;
    return s;
}

static const char *in_folder(const char *folder, const char *name)
{
    static char paths[16][1000];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void make_folder(const char *path)
{
    CHECK_INT(mkdir(path, 0777), 0);
}

typedef struct parts {
    int n;
    char prefixes[MOST_PARTS][600];
} parts;

static parts make_parts(const char *folder, uint32_t n_columns)
{
    parts p = {0};
    make_folder(folder);
    for (int i = 0; i < N_PARTS; i++) {
        char name[24];
        const shape s = part_shape(i, n_columns);
        if (n_columns > 0 && s.adopted_suffix)
            continue; /* it can have no values */
        snprintf(name, sizeof name, "%06d", i);
        snprintf(p.prefixes[p.n], sizeof p.prefixes[0], "%s", in_folder(folder, name));
        must_store(&s, p.prefixes[p.n++]);
    }
    return p;
}

static const tokmap_writer_options OPTIONS = {
    .struct_size = sizeof(tokmap_writer_options), .vocab_size = 50000, .eod_id = TOKMAP_NO_ID};

/* Joins or merges the parts. */
static tokmap_status write_whole(const parts *p, const char *prefix, bool joined, bool replace,
                                 tokmap_error *err)
{
    tokmap_writer *w = NULL;
    tokmap_writer_options options = OPTIONS;
    options.replace = replace;
    tokmap_status status = joined ? tokmap_writer_open_joined(&w, prefix, &options, err)
                                  : tokmap_writer_open(&w, prefix, &options, err);
    for (int i = 0; !status && i < p->n; i++) {
        tokmap_dataset *ds = NULL;
        status = joined ? tokmap_dataset_open_index(&ds, p->prefixes[i], err)
                        : tokmap_dataset_open(&ds, p->prefixes[i], err);
        if (!status)
            status = joined ? tokmap_writer_join(w, ds, NULL, err)
                            : tokmap_writer_append_dataset(w, ds, err);
        tokmap_dataset_close(ds);
    }
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    return status;
}

static void must_write(const parts *p, const char *prefix, bool joined)
{
    tokmap_error err;
    CHECK_OK(write_whole(p, prefix, joined, false, &err), err);
    CHECK(file_is_there(with_suffix(prefix, ".bin")) == !joined);
    CHECK(!has_partials(prefix));
}

/* What is merged from the joined dataset is what is merged from its parts. */
static void compare_datasets(const char *joined, const char *flat)
{
    const char *merged = check_path("merged");
    parts whole = {.n = 1};
    snprintf(whole.prefixes[0], sizeof whole.prefixes[0], "%s", joined);
    tokmap_dataset_close(must_be_sound(joined));
    must_write(&whole, merged, false);
    CHECK(files_are_equal(with_suffix(merged, ".bin"), with_suffix(flat, ".bin")));
    CHECK(files_are_equal(with_suffix(merged, ".tmi"), with_suffix(flat, ".tmi")));
    remove_dataset(merged);
}

/* ---- What joining gives ---- */

TEST(joined_equals_merged)
{
    const parts p = make_parts(check_path("cells"), 0);
    make_folder(check_path("out"));
    must_write(&p, check_path("out/joined"), true);
    must_write(&p, check_path("flat"), false);
    compare_datasets(check_path("out/joined"), check_path("flat"));
}

TEST(joined_equals_merged_with_values)
{
    const parts p = make_parts(check_path("cells"), SHAPE_MAX_COLUMNS);
    must_write(&p, check_path("joined"), true);
    must_write(&p, check_path("flat"), false);
    compare_datasets(check_path("joined"), check_path("flat"));
}

TEST(joined_datasets_can_be_joined_and_merged)
{
    const parts p = make_parts(check_path("cells"), 0);
    parts first = {.n = 3}, all = {.n = 0};
    memcpy(first.prefixes, p.prefixes, sizeof p.prefixes);
    make_folder(check_path("out"));
    must_write(&first, check_path("out/first"), true);
    snprintf(all.prefixes[all.n++], 600, "%s", check_path("out/first"));
    for (int i = first.n; i < p.n; i++)
        strcpy(all.prefixes[all.n++], p.prefixes[i]);
    must_write(&all, check_path("joined"), true);
    must_write(&p, check_path("flat"), false);
    compare_datasets(check_path("joined"), check_path("flat"));
    /* The two list the same token files, from different folders. */
    must_write(&p, check_path("at_once"), true);
    CHECK(files_are_equal(check_path("joined.tmi"), check_path("at_once.tmi")));
}

TEST(everything_can_be_moved_together)
{
    make_folder(check_path("here"));
    const parts p = make_parts(check_path("here/cells"), 0);
    make_folder(check_path("here/out"));
    CHECK_INT(symlink(check_path("here/out"), check_path("link")), 0);
    must_write(&p, check_path("link/joined"), true);
    must_write(&p, check_path("flat"), false);
    CHECK_INT(unlink(check_path("link")), 0);
    CHECK_INT(rename(check_path("here"), check_path("there")), 0);
    compare_datasets(check_path("there/out/joined"), check_path("flat"));
}

TEST(no_datasets_give_an_empty_one)
{
    const parts none = {0};
    must_write(&none, check_path("joined"), true);
    tokmap_dataset *ds = must_be_sound(check_path("joined"));
    const tokmap_dataset_info info = must_info(ds);
    CHECK_EQ(info.n_tokens + info.n_documents + info.n_inputs + info.n_segments, 0);
    tokmap_dataset_close(ds);
}

TEST(token_files_are_not_opened)
{
    const parts p = make_parts(check_path("cells"), 0);
    must_write(&p, check_path("flat"), false);
    CHECK_INT(rename(with_suffix(p.prefixes[0], ".bin"), check_path("away")), 0);
    must_write(&p, check_path("joined"), true);
    tokmap_error err;
    uint16_t token;
    tokmap_dataset *ds = must_open(check_path("joined"));
    CHECK_INT(tokmap_dataset_read(ds, 0, 1, &token, &err), TOKMAP_ERR_IO);
    CHECK_SAYS(err.text, "cells/000000.bin");
    CHECK_INT(verify_one_thread(ds, &err), TOKMAP_ERR_IO);
    tokmap_dataset_close(ds);
    CHECK_INT(rename(check_path("away"), with_suffix(p.prefixes[0], ".bin")), 0);
    compare_datasets(check_path("joined"), check_path("flat"));
}

/* ---- Inputs that continue ---- */

typedef struct cut_input {
    const char *name;
    uint32_t n_documents;
    uint64_t input_bytes;
} cut_input;

static void write_inputs(const char *prefix, const cut_input *inputs, int n)
{
    tokmap_writer *w = must_begin(prefix, &OPTIONS);
    for (int i = 0; i < n; i++) {
        for (uint32_t d = 0; d < inputs[i].n_documents; d++) {
            CHECK_INT(tokmap_writer_append(w, &d, 1, NULL), TOKMAP_OK);
            CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
        }
        CHECK_INT(tokmap_writer_end_input(w, inputs[i].name, inputs[i].input_bytes, 77, NULL),
                  TOKMAP_OK);
    }
    must_finish(w);
}

static tokmap_status join_part(tokmap_writer *w, const char *prefix, int32_t continues,
                               tokmap_error *err)
{
    tokmap_join_options options = TOKMAP_INIT(tokmap_join_options);
    options.continues_input = continues;
    tokmap_dataset *ds = NULL;
    CHECK_INT(tokmap_dataset_open_index(&ds, prefix, NULL), TOKMAP_OK);
    const tokmap_status status = tokmap_writer_join(w, ds, &options, err);
    tokmap_dataset_close(ds);
    return status;
}

TEST(an_input_may_continue_in_the_next_dataset)
{
    write_inputs(check_path("a"), (cut_input[]){{"x", 2, 10}, {"y", 3, 50}}, 2);
    write_inputs(check_path("b"), (cut_input[]){{"y", 70, 60}}, 1);
    write_inputs(check_path("c"), (cut_input[]){{"y", 0, 0}, {"z", 1, 7}}, 2);
    tokmap_writer *w = NULL;
    tokmap_error err;
    CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &OPTIONS, NULL), TOKMAP_OK);
    CHECK_INT(join_part(w, check_path("a"), 0, &err), TOKMAP_OK);
    CHECK_INT(join_part(w, check_path("b"), 1, &err), TOKMAP_OK);
    CHECK_INT(join_part(w, check_path("c"), 1, &err), TOKMAP_OK);
    must_finish(w);
    tokmap_dataset *ds = must_be_sound(check_path("p"));
    static const tokmap_input_info wanted[] = {
        {.name = "x", .n_documents = 2, .input_bytes = 10, .input_checksum = 77},
        {.name = "y", .n_documents = 73, .input_bytes = 60},
        {.name = "z", .n_documents = 1, .input_bytes = 7, .input_checksum = 77},
    };
    for (uint64_t i = 0; i < 3; i++) {
        tokmap_input_info is = TOKMAP_INIT(tokmap_input_info);
        CHECK_INT(tokmap_dataset_get_input(ds, i, &is), TOKMAP_OK);
        CHECK(is.name_bytes == 1 && is.name[0] == wanted[i].name[0]);
        CHECK_EQ(is.n_documents, wanted[i].n_documents);
        CHECK_EQ(is.n_tokens, wanted[i].n_documents);
        CHECK_EQ(is.input_bytes, wanted[i].input_bytes);
        CHECK_EQ(is.input_checksum, wanted[i].input_checksum);
    }
    tokmap_dataset_close(ds);
}

static void expect_refused(int32_t continues, const char *before, const char *part,
                           tokmap_status wanted)
{
    tokmap_writer *w = NULL;
    tokmap_error err;
    CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &OPTIONS, NULL), TOKMAP_OK);
    if (before)
        CHECK_INT(join_part(w, before, 0, &err), TOKMAP_OK);
    CHECK_INT(join_part(w, part, continues, &err), wanted);
    CHECK_INT(err.status, wanted);
    CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* it closes no descriptor of its caller */
    CHECK_INT(tokmap_writer_finish(w, &err), wanted);
    tokmap_writer_close(w);
    CHECK(is_absent(check_path("p")) && !has_partials(check_path("p")));
}

TEST(what_cannot_continue_is_refused)
{
    write_inputs(check_path("a"), (cut_input[]){{"x", 2, 10}}, 1);
    write_inputs(check_path("b"), (cut_input[]){{"y", 2, 10}}, 1);
    expect_refused(1, NULL, check_path("a"), TOKMAP_ERR_ARGUMENT);
    expect_refused(1, check_path("a"), check_path("b"), TOKMAP_ERR_MISMATCH);
    expect_refused(2, check_path("a"), check_path("a"), TOKMAP_ERR_ARGUMENT);
}

/* ---- What is refused ---- */

TEST(what_does_not_fit_is_refused)
{
    must_store(&SHAPE_WIDE_IDS, check_path("wide"));
    must_store(&SHAPE_NO_DOCUMENTS, check_path("no"));
    shape large = SHAPE_TINY;
    large.vocab_size = 60000;
    must_store(&large, check_path("large"));
    must_store(&SHAPE_TINY, check_path("tiny"));
    must_store(&SHAPE_VALUES, check_path("values"));
    expect_refused(0, NULL, check_path("wide"), TOKMAP_ERR_MISMATCH);
    expect_refused(0, NULL, check_path("no"), TOKMAP_ERR_MISMATCH);
    expect_refused(0, check_path("tiny"), check_path("large"), TOKMAP_ERR_MISMATCH);
    expect_refused(0, check_path("tiny"), check_path("values"), TOKMAP_ERR_MISMATCH);
    expect_refused(0, check_path("values"), check_path("tiny"), TOKMAP_ERR_MISMATCH);
}

TEST(an_id_beyond_the_vocabulary_is_refused)
{
    for (uint32_t n_ids = 1; n_ids <= 50000; n_ids += 49999) {
        tokmap_error err;
        tokmap_dataset *ds = NULL;
        tokmap_writer_options options = OPTIONS;
        options.vocab_size = n_ids + 1;
        tokmap_writer *w = must_begin(check_path("a"), &options);
        CHECK_INT(tokmap_writer_append(w, &n_ids, 1, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
        must_finish(w);
        CHECK_INT(tokmap_dataset_open(&ds, check_path("a"), NULL), TOKMAP_OK);
        options.vocab_size = n_ids;
        w = must_begin(check_path("p"), &options);
        CHECK_REFUSED(tokmap_writer_append_dataset(w, ds, &err), TOKMAP_ERR_MISMATCH, err,
                      "the vocabulary size of the output");
        tokmap_writer_close(w);
        tokmap_dataset_close(ds);
        remove_dataset(check_path("a"));
    }
}

TEST(damaged_sections_are_found)
{
    const parts p = make_parts(check_path("cells"), SHAPE_MAX_COLUMNS);
    const char *index = with_suffix(p.prefixes[0], ".tmi");
    const file_bytes whole = file_load(index);
    const size_t step = check_long() ? 1 : 61;
    for (size_t at = 0; at < whole.n_bytes; at += step) {
        tokmap_writer *w = NULL;
        tokmap_dataset *ds = NULL;
        tokmap_error err;
        whole.data[at] ^= 0x40;
        CHECK(file_store(index, whole.data, whole.n_bytes));
        whole.data[at] ^= 0x40;
        CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &OPTIONS, NULL), TOKMAP_OK);
        tokmap_status status = tokmap_dataset_open_index(&ds, p.prefixes[0], &err);
        if (!status)
            status = tokmap_writer_join(w, ds, NULL, &err);
        tokmap_dataset_close(ds);
        tokmap_writer_close(w);
        const bool metadata = status == TOKMAP_OK; /* not joined, so not checked */
        CHECK(metadata || status == TOKMAP_ERR_CORRUPT || status == TOKMAP_ERR_NOT_A_DATASET ||
              status == TOKMAP_ERR_VERSION);
        CHECK(!metadata || whole.data[at] == '{' || whole.data[at] == '}' || at / 8 * 8 == 176 ||
              (at >= 176 && at < 240));
    }
    free(whole.data);
}

TEST(other_calls_are_refused)
{
    uint32_t id = 1;
    tokmap_error err;
    const void *tokens;
    size_t n;
    must_store(&SHAPE_TINY, check_path("tiny"));
    tokmap_dataset *ds = must_be_sound(check_path("tiny"));
    for (int call = 0; call < 7; call++) {
        tokmap_writer *w = NULL;
        CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &OPTIONS, NULL), TOKMAP_OK);
        const tokmap_status status = call == 0   ? tokmap_writer_append(w, &id, 1, &err)
                                     : call == 1 ? tokmap_writer_end_document(w, &err)
                                     : call == 2 ? tokmap_writer_end_input(w, "a", 0, 0, &err)
                                     : call == 3 ? tokmap_writer_append_dataset(w, ds, &err)
                                     : call == 4 ? tokmap_writer_scan(w, &tokens, &n, &err)
                                     : call == 5 ? tokmap_writer_add_document(w, 0, &err)
                                                 : tokmap_writer_checkpoint(w, NULL, 0, &err);
        CHECK_INT(status, TOKMAP_ERR_ARGUMENT);
        CHECK_INT(err.status, TOKMAP_ERR_ARGUMENT);
        tokmap_writer_close(w);
    }
    tokmap_writer *w = must_begin(check_path("p"), &OPTIONS);
    CHECK_INT(tokmap_writer_join(w, ds, NULL, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    tokmap_writer_options options = OPTIONS;
    options.resumable = 1;
    CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &options, &err), TOKMAP_ERR_ARGUMENT);
    options.resumable = 0;
    options.unfinished = TOKMAP_UNFINISHED_RESUME;
    CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &options, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_dataset_close(ds);
}

static void go_down(char path[4096], const char *name, size_t n_bytes)
{
    while (strlen(path) + strlen(name) + 1 <= n_bytes) {
        strcat(strcat(path, "/"), name);
        make_folder(path);
    }
}

TEST(a_path_that_is_too_long_is_refused)
{
    static char deep[4096], many[4096];
    char name[201];
    memset(name, 'd', 200);
    name[200] = 0;
    strcpy(deep, check_dir());
    strcpy(many, check_dir());
    go_down(deep, name, 4000);
    go_down(many, "m", strlen(many) + 1000);
    strcat(deep, "/p");
    strcat(many, "/p");
    must_store(&SHAPE_TINY, deep);
    must_store(&SHAPE_TINY, check_path("tiny"));
    tokmap_writer *w = NULL;
    tokmap_error err;
    CHECK_INT(tokmap_writer_open_joined(&w, many, &OPTIONS, NULL), TOKMAP_OK);
    CHECK_INT(join_part(w, check_path("tiny"), 0, &err), TOKMAP_OK);
    CHECK_INT(join_part(w, deep, 0, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    CHECK_INT(tokmap_writer_open_joined(&w, check_path("p"), &OPTIONS, NULL), TOKMAP_OK);
    CHECK_INT(join_part(w, deep, 0, &err), TOKMAP_OK);
    must_finish(w);
    tokmap_dataset_close(must_be_sound(check_path("p")));
}

/* ---- Existing files ---- */

TEST(tokens_of_the_output_itself_are_refused)
{
    must_store(&SHAPE_TINY, check_path("p"));
    parts p = {.n = 1};
    tokmap_error err;
    snprintf(p.prefixes[0], 600, "%s", check_path("p"));
    CHECK_INT(write_whole(&p, check_path("p"), true, true, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, check_path("p.bin"));
    CHECK(!shape_compare(&SHAPE_TINY, check_path("p")));
    CHECK(!has_partials(check_path("p")));
}

TEST(existing_files_are_refused_or_replaced)
{
    const parts p = make_parts(check_path("cells"), 0);
    const char *out = check_path("p");
    tokmap_error err;
    must_write(&p, check_path("flat"), false);
    /* A flat one becomes joined: without P.bin. */
    must_store(&SHAPE_TINY, out);
    CHECK_INT(write_whole(&p, out, true, false, &err), TOKMAP_ERR_EXISTS);
    CHECK(!shape_compare(&SHAPE_TINY, out));
    CHECK_INT(write_whole(&p, out, true, true, &err), TOKMAP_OK);
    CHECK(!file_is_there(with_suffix(out, ".bin")) && !has_partials(out));
    compare_datasets(out, check_path("flat"));
    /* Joined, and joined again; then flat. */
    CHECK_INT(write_whole(&p, out, true, false, &err), TOKMAP_ERR_EXISTS);
    CHECK_INT(write_whole(&p, out, true, true, &err), TOKMAP_OK);
    CHECK_INT(shape_write(&SHAPE_TINY, out, false, &err), TOKMAP_ERR_EXISTS);
    compare_datasets(out, check_path("flat"));
    CHECK_INT(shape_write(&SHAPE_TINY, out, true, &err), TOKMAP_OK);
    CHECK(!shape_compare(&SHAPE_TINY, out));
    CHECK(!file_is_there(with_suffix(out, ".tmi.replaced")));
    /* Tokens without an index. */
    CHECK_INT(unlink(with_suffix(out, ".tmi")), 0);
    CHECK_INT(write_whole(&p, out, true, false, &err), TOKMAP_ERR_EXISTS);
    CHECK_INT(write_whole(&p, out, true, true, &err), TOKMAP_OK);
    CHECK(!file_is_there(with_suffix(out, ".bin")));
    CHECK(!file_is_there(with_suffix(out, ".bin.replaced")));
    compare_datasets(out, check_path("flat"));
}

TEST(an_unfinished_dataset_is_kept_unless_it_is_discarded)
{
    const char *out = check_path("p");
    tokmap_writer_options options = OPTIONS;
    tokmap_error err;
    const uint32_t id = 7;
    options.resumable = 1;
    tokmap_writer *w = must_begin(out, &options);
    CHECK_INT(tokmap_writer_append(w, &id, 1, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, "", 0, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    options.resumable = 0;
    CHECK_INT(tokmap_writer_open_joined(&w, out, &options, &err), TOKMAP_ERR_EXISTS);
    CHECK(file_is_there(with_suffix(out, ".tmj.partial")));
    options.unfinished = TOKMAP_UNFINISHED_DISCARD;
    CHECK_INT(tokmap_writer_open_joined(&w, out, &options, &err), TOKMAP_OK);
    must_finish(w);
    CHECK(!has_partials(out) && !file_is_there(with_suffix(out, ".tmj.partial")));
    tokmap_dataset_close(must_be_sound(out));
}

/* ---- Ways from folder to folder ---- */

/* Follows a way name by name. */
static void follow(char path[200], const char *way)
{
    while (*way) {
        const size_t n = strcspn(way, "/");
        if (n == 2 && memcmp(way, "..", 2) == 0)
            *strrchr(path, '/') = 0;
        else
            snprintf(path + strlen(path), 200 - strlen(path), "/%.*s", (int)n, way);
        CHECK(way[n] == '/');
        way += n + 1;
    }
}

TEST(a_way_leads_from_one_folder_to_the_other)
{
    static const char *const folders[] = {"/",      "/a",     "/ab",      "/a/b",   "/a/bc",
                                          "/a/b/c", "/b/a/c", "/a/b/c/d", "/c/b/a", "/a/c/b"};
    enum {
        N = sizeof folders / sizeof folders[0]
    };
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            char *way = tokmap_i_relative_way(folders[i], folders[j]);
            char path[200];
            snprintf(path, sizeof path, "%s", i == 0 ? "" : folders[i]);
            follow(path, way);
            CHECK_STR(*path ? path : "/", folders[j]);
            CHECK(i != j || !*way);
            CHECK(way[0] != '/');
            /* The shortest: it does not go up and down again. */
            const size_t n_up = strspn(way, "./");
            CHECK(strstr(way + n_up, "..") == NULL);
            free(way);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_view_make - a view has the documents of one state of its columns, whatever other programs do
 * to their files meanwhile, and it is not made from damaged values. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset/dataset.h"
#include "support/check.h"
#include "support/faults.h"
#include "support/must.h"
#include "tokmap_loader.h"

enum {
    N_DOCUMENTS = 3000,
    CALLS = FAULT_ALL_FILE_CALLS | FAULT_MMAP | FAULT_STAT
};
static const char expression[] = "q == 1";

/* The values of a state: documents of one sort have 1, the others 2. */
static int64_t value_of(int state, uint64_t document)
{
    return 1 + (int64_t)((document + (uint64_t)state) % 2);
}

static tokmap_dataset *make_dataset(bool has_column, uint32_t n_tokens)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .replace = 1};
    tokmap_error err;
    tokmap_writer *w = must_begin(check_path("P"), &options);
    if (has_column)
        CHECK_OK(tokmap_writer_set_meta_columns(w, (const char *[]){"q"}, 1, &err), err);
    for (uint64_t d = 0; d < N_DOCUMENTS; d++) {
        const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = value_of(0, d)};
        CHECK_OK(tokmap_writer_append(w, (uint32_t[]){1, 2}, n_tokens, &err), err);
        if (has_column)
            CHECK_OK(tokmap_writer_add_meta(w, &v, 1, &err), err);
        CHECK_OK(tokmap_writer_end_document(w, &err), err);
    }
    must_finish(w);
    return must_open(check_path("P"));
}

static void add_column(const tokmap_dataset *ds, int state)
{
    const tokmap_column_options options = {
        .struct_size = sizeof options, .name = "q", .replace = 1};
    tokmap_column_writer *w;
    tokmap_error err;
    CHECK_OK(tokmap_column_writer_open(&w, ds, &options, &err), err);
    for (uint64_t d = 0; d < N_DOCUMENTS; d++) {
        const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = value_of(state, d)};
        CHECK_OK(tokmap_column_writer_put(w, d, &v, 1, &err), err);
    }
    CHECK_OK(tokmap_column_writer_finish(w, &err), err);
    tokmap_column_writer_close(w);
}

/* Copies a file into another one, which stays the same file. */
static void copy_file(const char *from, const char *to, time_t modified)
{
    static uint8_t bytes[2 * N_DOCUMENTS];
    const struct timespec times[2] = {{.tv_sec = modified}, {.tv_sec = modified}};
    const int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT, 0644);
    const ssize_t n = read(in, bytes, sizeof bytes);
    CHECK(n > N_DOCUMENTS && write(out, bytes, (size_t)n) == n && futimens(out, times) == 0);
    close(in);
    close(out);
}

static int state_now;
static bool in_place;

static void set_state(int state)
{
    const char *const from = check_path(state ? "one" : "zero"), *to = check_path("P.q.tmc");
    static time_t clock = 1000;
    state_now = state;
    copy_file(from, in_place ? to : check_path("next"), clock++);
    if (!in_place)
        CHECK(rename(check_path("next"), to) == 0);
}

static void change_state(void)
{
    set_state(!state_now);
}

/* Checks that a view has the documents of a state. */
static void check_set(const tokmap_view *v, int state, uint64_t nth)
{
    static uint64_t documents[N_DOCUMENTS];
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
    tokmap_error err;
    CHECK_INT(tokmap_view_get_info(v, &info), TOKMAP_OK);
    CHECK_OK(tokmap_view_documents(v, 0, info.n_documents, documents, &err), err);
    CHECK_EQ(info.n_documents, N_DOCUMENTS / 2);
    for (uint64_t i = 0; i < info.n_documents; i++)
        if (value_of(state, documents[i]) != 1)
            CHECK_FAIL("call %" PRIu64 ": document %" PRIu64 " is of another state", nth,
                       documents[i]);
}

static tokmap_view *open_view(const tokmap_dataset *ds, const char *path)
{
    const tokmap_view_options o = {
        .struct_size = sizeof o, .where = path ? NULL : expression, .path = path};
    tokmap_view *v;
    tokmap_error err;
    CHECK_OK(tokmap_view_open(&v, ds, &o, &err), err);
    return v;
}

static tokmap_status write_view(const tokmap_dataset *ds, tokmap_error *err)
{
    const tokmap_view_options o = {.struct_size = sizeof o, .where = expression};
    return tokmap_view_write(ds, &o, NULL, err);
}

/* Finds the view file of a state, and keeps its path. */
static void find_path(const tokmap_dataset *ds, int state, char path[256])
{
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
    tokmap_error err;
    set_state(state);
    CHECK_OK(write_view(ds, &err), err);
    tokmap_view *v = open_view(ds, NULL);
    CHECK(tokmap_view_get_info(v, &info) == TOKMAP_OK && info.path);
    snprintf(path, 256, "%s", info.path);
    tokmap_view_close(v);
}

/* Writes a view while its column is replaced before call number n, for each n. */
static void replace_at_each_call(const tokmap_dataset *ds, char paths[2][256])
{
    bool is_hit = true;
    for (uint64_t nth = 1; is_hit; nth++) {
        tokmap_error err;
        set_state(0);
        unlink(paths[0]);
        unlink(paths[1]);
        fault.meanwhile = change_state;
        fault_arm(FAULT_MEANWHILE, CALLS, 0, nth);
        const tokmap_status status = write_view(ds, &err);
        is_hit = fault_disarm();
        CHECK_OK(status, err);
        for (int state = 0; state < 2; state++) {
            tokmap_view *v = access(paths[state], F_OK) ? NULL : open_view(ds, paths[state]);
            if (v)
                check_set(v, state, nth);
            tokmap_view_close(v);
        }
    }
}

/* The same, but makes the view in memory. */
static void replace_while_opening(const tokmap_dataset *ds)
{
    bool is_hit = true;
    for (uint64_t nth = 1; is_hit; nth++) {
        set_state(0);
        fault_arm(FAULT_MEANWHILE, CALLS, 0, nth);
        tokmap_view *v = open_view(ds, NULL);
        is_hit = fault_disarm();
        check_set(v, state_now, nth);
        tokmap_view_close(v);
    }
}

static void check_replaced(bool is_in_place)
{
    char paths[2][256];
    tokmap_dataset *ds = make_dataset(false, 1);
    in_place = is_in_place;
    for (int state = 0; state < 2; state++) {
        add_column(ds, state);
        copy_file(check_path("P.q.tmc"), check_path(state ? "one" : "zero"), 1);
    }
    for (int state = 0; state < 2; state++)
        find_path(ds, state, paths[state]);
    CHECK(strcmp(paths[0], paths[1]) != 0);
    replace_at_each_call(ds, paths);
    unlink(paths[0]);
    unlink(paths[1]);
    replace_while_opening(ds);
    tokmap_dataset_close(ds);
}

TEST(a_view_is_of_one_state_of_a_column_that_is_replaced)
{
    check_replaced(false);
}

TEST(a_view_is_of_one_state_of_a_column_that_is_changed_in_place)
{
    check_replaced(true);
}

/* Opens a view of a dataset that is too large for it; the message must end with this. */
static void check_advice(const tokmap_dataset *ds, const char *where, const char *end)
{
    const tokmap_view_options o = {.struct_size = sizeof o, .where = where};
    tokmap_view *v;
    tokmap_error err;
    CHECK_REFUSED(tokmap_view_open(&v, ds, &o, &err), TOKMAP_ERR_MISMATCH, err, "--where ");
    CHECK_STR(strstr(err.text, "--where ") + strlen("--where "), end);
}

TEST(the_command_for_a_large_dataset_is_one_for_a_shell)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .replace = 1};
    const tokmap_column_options column = {.struct_size = sizeof column, .name = "q", .replace = 1};
    tokmap_error err;
    tokmap_column_writer *c;
    tokmap_writer *w = must_begin(check_path("P"), &options);
    for (uint32_t d = 0; d <= 10000000; d++)
        CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    must_finish(w);
    tokmap_dataset *ds = must_open(check_path("P"));
    CHECK_OK(tokmap_column_writer_open(&c, ds, &column, &err), err);
    CHECK_OK(tokmap_column_writer_finish(c, &err), err);
    tokmap_column_writer_close(c);
    check_advice(ds, "q == \"$HOME\"", "'q == \"$HOME\"'");
    check_advice(ds, "q == 'de'", "\"q == 'de'\"");
    check_advice(ds, "`q` == 'de'", "EXPRESSION");
    char text[300] = "q == '";
    memset(text + 6, 'x', 250);
    strcpy(text + 256, "'");
    check_advice(ds, text, "EXPRESSION");
    tokmap_dataset_close(ds);
}

/* The values, so the key, are those of the dataset before; its documents are longer. */
TEST(a_view_file_of_a_replaced_dataset_is_as_good_as_none)
{
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
    tokmap_error err;
    for (uint32_t n_tokens = 1; n_tokens <= 2; n_tokens++) {
        tokmap_dataset *ds = make_dataset(true, n_tokens);
        tokmap_view *v = open_view(ds, NULL);
        tokmap_view_get_info(v, &info);
        CHECK(!info.path);
        CHECK_EQ(info.n_tokens, (uint64_t)n_tokens * N_DOCUMENTS / 2);
        check_set(v, 0, 0);
        tokmap_view_close(v);
        CHECK_OK(write_view(ds, &err), err);
        v = open_view(ds, NULL);
        tokmap_view_get_info(v, &info);
        CHECK(info.path);
        check_set(v, 0, 0);
        tokmap_view_close(v);
        tokmap_dataset_close(ds);
    }
}

/* Flips bits of a file. */
static void flip(const char *path, off_t at)
{
    uint8_t byte;
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 3; /* a value becomes the other one */
    CHECK(pwrite(fd, &byte, 1, at) == 1);
    close(fd);
}

/* Finds the byte of the value of document 1, which is 2, by the values around it. */
static off_t find_value(const char *path)
{
    static uint8_t bytes[1 << 20];
    const uint8_t wanted[24] = {[0] = 1, [8] = 2, [16] = 1};
    const int fd = open(path, O_RDONLY);
    const ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    for (ssize_t i = 0; i + 24 <= n; i++)
        if (memcmp(bytes + i, wanted, 24) == 0)
            return (off_t)i + 8;
    CHECK_FAIL("no values in %s", path);
    return 0;
}

/* Lengths of documents go into a view file too. */
TEST(no_view_file_is_made_from_damaged_lengths)
{
    tokmap_dataset *ds = make_dataset(false, 1);
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, TOKMAP_I_DOCUMENTS);
    tokmap_error err;
    add_column(ds, 0);
    flip(check_path("P.tmi"), (off_t)(section->offset + section->n_bytes / 2));
    CHECK_REFUSED(write_view(ds, &err), TOKMAP_ERR_CORRUPT, err, "the documents section");
    tokmap_dataset_close(ds);
}

/* A file with the key of the sound values would be taken when they are there again. */
TEST(no_view_is_made_from_damaged_values)
{
    for (int is_late = 0; is_late < 2; is_late++) {
        tokmap_dataset *ds = make_dataset(!is_late, 1);
        const char *const path = check_path(is_late ? "P.q.tmc" : "P.tmi");
        const tokmap_view_options o = {.struct_size = sizeof o, .where = expression};
        tokmap_error err;
        tokmap_view *v;
        if (is_late)
            add_column(ds, 0);
        const off_t at = is_late ? 129 : find_value(path);
        flip(path, at);
        CHECK_REFUSED(write_view(ds, &err), TOKMAP_ERR_CORRUPT, err, "match its checksum");
        CHECK_SAYS(err.text, path);
        CHECK_REFUSED(tokmap_view_open(&v, ds, &o, &err), TOKMAP_ERR_CORRUPT, err, path);
        flip(path, at);
        v = open_view(ds, NULL);
        tokmap_view_info info = TOKMAP_INIT(tokmap_view_info);
        tokmap_view_get_info(v, &info);
        CHECK(!info.path); /* no file was left */
        check_set(v, 0, 0);
        tokmap_view_close(v);
        tokmap_dataset_close(ds);
    }
}

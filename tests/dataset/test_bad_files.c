/* SPDX-License-Identifier: Apache-2.0 */
/* test_bad_files - files that are cut, foreign, swapped or no files at all, and folders that do
 * not let themselves be written: each gets its own kind of refusal, and nothing of somebody
 * else's is touched. */
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "support/bad_days.h"
#include "base/base.h"
#include "base/le.h"
#include "base/hash.h"
#include "support/joined.h"
#include "support/must.h"

static char prefix[600];
static tokmap_error err;

static const char *file(const char *suffix)
{
    return with_suffix(prefix, suffix);
}

static void start(void)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
}

static void store(const shape *s)
{
    start();
    must_store(s, prefix);
}

/* Opening it fails in this way; the message is one line and names a file of this dataset. */
static void expect_refusal(const char *path, tokmap_status wanted, int wanted_errno)
{
    tokmap_dataset *ds = (tokmap_dataset *)&err;
    const tokmap_status status = tokmap_dataset_open(&ds, path, &err);
    if (status != wanted || err.status != wanted || err.sys_errno != wanted_errno)
        CHECK_FAIL("status %d, errno %d: %s", (int)status, err.sys_errno, err.text);
    CHECK(ds == NULL);
    CHECK(strchr(err.text, '\n') == NULL && err.text[0]);
    CHECK(strstr(err.text, "p.") != NULL || strstr(err.text, "p:") != NULL);
}

static void expect_content(const shape *s)
{
    must_hold(s, prefix, "in the end");
}

/* ---- Cut files ---- */

/* Each length but its own is refused, with its end as the place; of an index from 8 bytes on. */
static void try_lengths(const char *path, bool is_index)
{
    const file_bytes f = file_load(path);
    for (size_t n = 0; n <= f.n_bytes + 2; n++) {
        const bool unknown = is_index && n < 8;
        if (n == f.n_bytes)
            continue;
        CHECK(file_store(path, f.data, MIN(n, f.n_bytes)));
        CHECK_INT(truncate(path, (off_t)n), 0);
        expect_refusal(prefix, unknown ? TOKMAP_ERR_NOT_A_DATASET : TOKMAP_ERR_CORRUPT, 0);
        CHECK_EQ(err.file_offset, unknown ? 0 : MIN(n, f.n_bytes));
    }
    CHECK(file_store(path, f.data, f.n_bytes));
    free(f.data);
}

TEST(every_length_of_a_file_but_its_own_is_refused)
{
    static const shape *const shapes[] = {&SHAPE_WIDE_IDS, &SHAPE_ADOPTED};
    for (int i = 0; i < 2; i++) {
        store(shapes[i]);
        try_lengths(file(".tmi"), true);
        try_lengths(shape_token_path(shapes[i], prefix), false);
        expect_content(shapes[i]);
        unlink(shape_token_path(shapes[i], prefix));
        unlink(file(".tmi"));
    }
}

/* ---- Joined datasets ---- */

static const joined_part PARTS[] = {{"p.one", 100, 0}, {"p.two", 20, 8}, {"p.three", 10, 0}};

static void store_joined(void)
{
    store(&SHAPE_WIDE_IDS);
    joined_store(prefix, prefix, PARTS, 3);
    CHECK_INT(unlink(file(".bin")), 0);
}

TEST(every_length_of_a_joined_index_but_its_own_is_refused)
{
    store_joined();
    try_lengths(file(".tmi"), true);
    expect_content(&SHAPE_WIDE_IDS);
}

/* It opens, and reading the second segment fails in this way. */
static void expect_second_refused(tokmap_status wanted, int wanted_errno)
{
    uint32_t copy[130];
    const void *tokens;
    tokmap_dataset *ds = must_open(prefix);
    CHECK_INT(tokmap_dataset_tokens(ds, 100, 20, &tokens), wanted);
    CHECK_INT(tokmap_dataset_read(ds, 0, 130, copy, &err), wanted);
    CHECK_INT(err.sys_errno, wanted_errno);
    CHECK(strstr(err.text, "/p.two: ") != NULL && strchr(err.text, '\n') == NULL);
    CHECK_INT(tokmap_dataset_read(ds, 0, 100, copy, &err), TOKMAP_OK);
    tokmap_dataset_close(ds);
}

TEST(what_is_no_token_file_is_refused_when_a_segment_is_used)
{
    store_joined();
    const file_bytes f = file_load(file(".two"));
    for (size_t n = 0; n <= f.n_bytes + 2; n++) {
        CHECK_INT(truncate(file(".two"), (off_t)n), 0);
        if (n != f.n_bytes)
            expect_second_refused(TOKMAP_ERR_CORRUPT, 0);
    }
    free(f.data);
    CHECK_INT(unlink(file(".two")), 0);
    expect_second_refused(TOKMAP_ERR_IO, ENOENT);
    CHECK_INT(mkdir(file(".two"), 0777), 0);
    expect_second_refused(TOKMAP_ERR_IO, EISDIR);
    CHECK_INT(rmdir(file(".two")), 0);
    CHECK_INT(mkfifo(file(".two"), 0666), 0);
    expect_second_refused(TOKMAP_ERR_IO, EINVAL);
    CHECK_INT(unlink(file(".two")), 0);
    CHECK_INT(symlink("p.two", file(".two")), 0);
    expect_second_refused(TOKMAP_ERR_IO, ELOOP);
}

/* To open a device can do something, and an index may name any. */
TEST(what_is_no_token_file_is_not_even_opened)
{
    char event[4096];
    store_joined();
    CHECK_INT(unlink(file(".two")), 0);
    CHECK_INT(mkfifo(file(".two"), 0666), 0);
    const int watch = inotify_init1(IN_NONBLOCK);
    CHECK(watch >= 0 && inotify_add_watch(watch, file(".two"), IN_OPEN) >= 0);
    expect_second_refused(TOKMAP_ERR_IO, EINVAL);
    CHECK(read(watch, event, sizeof event) < 0 && errno == EAGAIN);
    close(watch);
}

TEST(token_files_of_two_segments_that_are_exchanged_are_found_by_verify)
{
    store(&SHAPE_WIDE_IDS);
    const joined_part halves[] = {{"p.one", 65, 0}, {"p.two", 65, 0}};
    joined_store(prefix, prefix, halves, 2);
    CHECK_INT(rename(file(".one"), file(".x")), 0);
    CHECK_INT(rename(file(".two"), file(".one")), 0);
    CHECK_INT(rename(file(".x"), file(".two")), 0);
    tokmap_dataset *ds = must_open(prefix);
    CHECK_REFUSED(verify_one_thread(ds, &err), TOKMAP_ERR_CORRUPT, err, "/p.one: block 0 ");
    tokmap_dataset_close(ds);
}

/* ---- Other files ---- */

TEST(other_files_are_not_a_dataset)
{
    static const char text[] = "{\"text\": \"This is a line of somebody's corpus.\"}\n";
    uint8_t megatron[300] = "MMIDIDX\0\0\1";
    uint8_t png[300] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    start();
    CHECK(file_store(file(".bin"), text, sizeof text));
    CHECK(file_store(file(".tmi"), text, sizeof text - 1));
    expect_refusal(prefix, TOKMAP_ERR_NOT_A_DATASET, 0);
    expect_refusal(file(".tmi"), TOKMAP_ERR_NOT_A_DATASET, 0);
    expect_refusal(file(".bin"), TOKMAP_ERR_NOT_A_DATASET, 0);
    CHECK(file_store(file(".tmi"), megatron, sizeof megatron));
    expect_refusal(prefix, TOKMAP_ERR_NOT_A_DATASET, 0);
    CHECK(file_store(file(".tmi"), png, sizeof png));
    expect_refusal(prefix, TOKMAP_ERR_NOT_A_DATASET, 0);
    CHECK(file_store(file(".tmi"), text, 0));
    expect_refusal(prefix, TOKMAP_ERR_NOT_A_DATASET, 0);
}

/* Puts a value into the header and fits its checksum. */
static void change_header(size_t offset, uint64_t value, size_t width)
{
    const file_bytes f = file_load(file(".tmi"));
    uint8_t bytes[8];
    CHECK(f.data != NULL);
    le_put64(bytes, value);
    memcpy(f.data + offset, bytes, width);
    le_put64(f.data + 248, tokmap_i_checksum(f.data, 248));
    CHECK(file_store(file(".tmi"), f.data, f.n_bytes));
    free(f.data);
}

typedef struct header_change {
    size_t offset, width;
    uint64_t value;
    tokmap_status status;
    uint64_t named_offset;
} header_change;

TEST(newer_damaged_and_foreign_are_told_apart_with_the_place)
{
    static const header_change changes[] = {
        {0, 1, 0x88, TOKMAP_ERR_NOT_A_DATASET, 0},
        {8, 4, 0x04030201, TOKMAP_ERR_CORRUPT, 8},
        {12, 2, 0, TOKMAP_ERR_VERSION, 12},
        {14, 2, 2, TOKMAP_ERR_VERSION, 14},
        {14, 2, 65535, TOKMAP_ERR_VERSION, 14},
        {16, 4, 1, TOKMAP_ERR_VERSION, 16},
        {24, 4, 255, TOKMAP_ERR_CORRUPT, 24},
        {28, 4, 3, TOKMAP_ERR_CORRUPT, 28},
        {28, 4, 33, TOKMAP_ERR_CORRUPT, 28},
        {40, 8, 7, TOKMAP_ERR_CORRUPT, 40},
        {56, 8, (1ull << 48) + 1, TOKMAP_ERR_CORRUPT, 56},
        {64, 8, (1ull << 40) + 1, TOKMAP_ERR_CORRUPT, 64},
        {72, 8, 1, TOKMAP_ERR_CORRUPT, 72},
        {80, 4, 3, TOKMAP_ERR_CORRUPT, 80},
        {84, 4, 100000, TOKMAP_ERR_CORRUPT, 84},
        {88, 8, (1ull << 31) + 1, TOKMAP_ERR_CORRUPT, 88},
        {96, 4, 100000, TOKMAP_ERR_CORRUPT, 96},
        {100, 4, 1, TOKMAP_ERR_CORRUPT, 100},
        {104, 1, 'b', TOKMAP_ERR_CORRUPT, 104},
        {105, 1, '/', TOKMAP_ERR_CORRUPT, 104},
        {119, 1, 'n', TOKMAP_ERR_CORRUPT, 104},
        {175, 1, 1, TOKMAP_ERR_CORRUPT, 152},
        {240, 8, 0, TOKMAP_ERR_CORRUPT, 256},
    };
    store(&SHAPE_WIDE_IDS);
    const file_bytes f = file_load(file(".tmi"));
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        change_header(changes[i].offset, changes[i].value, changes[i].width);
        expect_refusal(prefix, changes[i].status, 0);
        CHECK_EQ(err.file_offset, changes[i].named_offset);
        CHECK(file_store(file(".tmi"), f.data, f.n_bytes));
    }
    change_header(12, 2, 2); /* a newer writer that says that we can read it */
    change_header(20, UINT32_MAX, 4);
    change_header(200, UINT64_MAX, 8);
    expect_content(&SHAPE_WIDE_IDS);
    free(f.data);
}

TEST(missing_files_are_named)
{
    start();
    expect_refusal(prefix, TOKMAP_ERR_IO, ENOENT);
    CHECK_SAYS(err.text, "p.tmi");
    store(&SHAPE_TINY);
    unlink(file(".bin"));
    expect_refusal(prefix, TOKMAP_ERR_IO, ENOENT);
    CHECK_SAYS(err.text, "p.bin");
}

TEST(an_index_beside_the_tokens_of_another_is_refused)
{
    store(&SHAPE_TINY);
    const file_bytes other = file_load(file(".tmi"));
    unlink(file(".tmi"));
    unlink(file(".bin"));
    store(&SHAPE_WIDE_IDS);
    CHECK(file_store(file(".tmi"), other.data, other.n_bytes));
    free(other.data);
    expect_refusal(prefix, TOKMAP_ERR_CORRUPT, 0);
    CHECK(strstr(err.text, "p.bin") != NULL && strstr(err.text, "p.tmi") != NULL);
}

TEST(swapped_tokens_of_the_same_size_are_found_by_verify)
{
    shape other = SHAPE_TINY;
    other.seed = 1;
    store(&SHAPE_TINY);
    const file_bytes index = file_load(file(".tmi"));
    CHECK_INT(shape_write(&other, prefix, true, NULL), TOKMAP_OK);
    CHECK(file_store(file(".tmi"), index.data, index.n_bytes));
    free(index.data);
    tokmap_dataset *ds = must_open(prefix);
    CHECK_INT(verify_one_thread(ds, &err), TOKMAP_ERR_CORRUPT);
    tokmap_dataset_close(ds);
}

/* ---- What is no file ---- */

TEST(folders_are_refused)
{
    start();
    CHECK_INT(mkdir(file(".tmi"), 0777), 0);
    expect_refusal(prefix, TOKMAP_ERR_IO, EISDIR);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, false, &err), TOKMAP_ERR_IO);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, true, &err), TOKMAP_ERR_IO);
    CHECK(strstr(err.text, "p.tmi") != NULL && !has_partials(prefix));
    rmdir(file(".tmi"));
    store(&SHAPE_TINY);
    unlink(file(".bin"));
    CHECK_INT(mkdir(file(".bin"), 0777), 0);
    expect_refusal(prefix, TOKMAP_ERR_IO, EISDIR);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, true, &err), TOKMAP_ERR_IO);
    CHECK(!has_partials(prefix));
    CHECK_INT(tokmap_dataset_open(&(tokmap_dataset *){NULL}, check_dir(), &err),
              TOKMAP_ERR_NOT_A_DATASET);
    CHECK_INT(err.sys_errno, ENOENT);
    CHECK_SAYS(err.text, ": not a dataset, but a folder: pack its files, or name a dataset in it");
}

TEST(pipes_and_devices_are_refused_at_once)
{
    start();
    alarm(20);
    CHECK_INT(mkfifo(file(".tmi"), 0666), 0);
    expect_refusal(prefix, TOKMAP_ERR_IO, EINVAL);
    unlink(file(".tmi"));
    CHECK_INT(symlink("/dev/zero", file(".tmi")), 0);
    expect_refusal(prefix, TOKMAP_ERR_IO, EINVAL);
    unlink(file(".tmi"));
    store(&SHAPE_TINY);
    unlink(file(".bin"));
    CHECK_INT(mkfifo(file(".bin"), 0666), 0);
    expect_refusal(prefix, TOKMAP_ERR_IO, EINVAL);
    const tokmap_adopt_options options = {.struct_size = sizeof options,
                                          .n_tokens = 5,
                                          .token_bytes = 2,
                                          .eod_id = TOKMAP_NO_ID,
                                          .replace = 1};
    tokmap_writer *w = NULL;
    CHECK_INT(tokmap_writer_adopt(&w, file(".bin"), &options, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, EINVAL);
    alarm(0);
}

TEST(symbolic_links_are_followed_and_circles_refused)
{
    store(&SHAPE_TINY);
    const char *other = check_path("elsewhere-p.");
    CHECK_INT(symlink(file(".tmi"), with_suffix(other, "tmi")), 0);
    CHECK_INT(symlink(file(".bin"), with_suffix(other, "bin")), 0);
    tokmap_dataset *ds = must_open(with_suffix(other, "tmi"));
    tokmap_dataset_close(ds);
    unlink(with_suffix(other, "tmi"));
    CHECK_INT(symlink(with_suffix(other, "tmi"), with_suffix(other, "tmi")), 0);
    expect_refusal(with_suffix(other, "tmi"), TOKMAP_ERR_IO, ELOOP);
}

TEST(odd_paths_are_refused_in_one_line)
{
    char path[6000];
    tokmap_writer *w = NULL;
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID};
    start();
    expect_refusal(check_path("p.\n\x1b[31m\x7f.tmi"), TOKMAP_ERR_IO, ENOENT);
    for (const char *c = err.text; *c; c++)
        CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    CHECK_INT(tokmap_dataset_open(&(tokmap_dataset *){NULL}, path, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENAMETOOLONG);
    CHECK(strlen(err.text) < sizeof err.text);
    CHECK_INT(tokmap_writer_open(&w, path, &options, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENAMETOOLONG);
    CHECK_INT(tokmap_writer_open(&w, check_path("no/such/folder"), &options, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENOENT);
    CHECK_INT(tokmap_writer_open(&w, check_path("folder/"), &options, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_dataset_open(&(tokmap_dataset *){NULL}, "", &err), TOKMAP_ERR_ARGUMENT);
}

/* Names the beginning of the path and its end, and what happened. */
TEST(a_message_about_a_long_path_still_says_what_happened)
{
    char folder[3200];
    size_t used = (size_t)snprintf(folder, sizeof folder, "%s", check_dir());
    while (used < 3000) {
        used += (size_t)snprintf(folder + used, sizeof folder - used, "/%0100d", 7);
        CHECK_INT(mkdir(folder, 0777), 0);
    }
    snprintf(folder + used, sizeof folder - used, "/p.tmi");
    CHECK_INT(tokmap_dataset_open(&(tokmap_dataset *){NULL}, folder, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENOENT);
    CHECK(strncmp(err.text, folder, 100) == 0 && strlen(err.text) == sizeof err.text - 1);
    CHECK_SAYS(err.text, "/p.tmi: cannot open: No such file or directory");
    /* Neither a.b.tmi nor a.tmi exists: the first one is named. */
    CHECK_INT(tokmap_dataset_open(&(tokmap_dataset *){NULL}, check_path("a.b"), &err),
              TOKMAP_ERR_IO);
    CHECK_SAYS(err.text, "/a.b.tmi: cannot open: No such file or directory");
    CHECK(file_store(folder, "text", 4));
    CHECK_INT(tokmap_dataset_open(&(tokmap_dataset *){NULL}, folder, &err),
              TOKMAP_ERR_NOT_A_DATASET);
    CHECK_SAYS(err.text, "/p.tmi: not a tokmap index");
}

/* The name just fits, and those of the partial files do not: known before any work is done. */
TEST(a_name_that_has_no_room_for_partial_is_refused_at_once)
{
    char name[260];
    memset(name, 'p', sizeof name);
    snprintf(name + 250, 10, ".");
    tokmap_writer *w = NULL;
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID};
    CHECK_INT(tokmap_writer_open(&w, check_path(name), &options, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENAMETOOLONG);
}

/* ---- Permissions ---- */

/* Root without its capabilities: an owner like others. False when that cannot be had. */
static bool become_ordinary(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}, {0}};
    return geteuid() != 0 || syscall(SYS_capset, &header, none) == 0;
}

/* Runs checks in a child, which permissions and limits may stop. */
static void run_in_child(void (*checks)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        if (!become_ordinary())
            _exit(77);
        const int folder = open(check_dir(), O_RDONLY); /* it is not the way that is barred */
        CHECK(folder >= 0);
        close(folder);
        checks();
        _exit(0);
    }
    const int status = must_exit(child);
    if (status == 77)
        SKIP("cannot give up the rights of root");
    CHECK_INT(status, 0);
}

static void check_no_permission(void)
{
    expect_refusal(prefix, TOKMAP_ERR_IO, EACCES);
}

TEST(files_that_may_not_be_read_are_refused)
{
    store(&SHAPE_TINY);
    CHECK_INT(chmod(file(".bin"), 0), 0);
    run_in_child(check_no_permission);
    CHECK_INT(chmod(file(".bin"), 0644), 0);
    CHECK_INT(chmod(file(".tmi"), 0), 0);
    run_in_child(check_no_permission);
}

static void check_no_writing(void)
{
    tokmap_writer *w = NULL;
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID, .replace = 1};
    CHECK_INT(tokmap_writer_open(&w, prefix, &options, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, EACCES);
    CHECK(w == NULL && strstr(err.text, "p.tmi.partial") != NULL);
}

TEST(a_read_only_folder_is_refused_before_any_work)
{
    const char *folder = check_path("read-only");
    CHECK_INT(mkdir(folder, 0777), 0);
    snprintf(prefix, sizeof prefix, "%s/p", folder);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, false, NULL), TOKMAP_OK);
    CHECK_INT(chmod(folder, 0555), 0);
    run_in_child(check_no_writing);
    CHECK_INT(chmod(folder, 0755), 0);
    expect_content(&SHAPE_TINY);
    CHECK(!has_partials(prefix));
}

/* ---- Files that are in the way of a writer ---- */

static void expect_precious(const char *path)
{
    const file_bytes f = file_load(path);
    CHECK(f.data != NULL);
    CHECK_STR((char *)f.data, "precious");
    free(f.data);
}

TEST(links_in_place_of_partial_files_are_not_written_through)
{
    start();
    const char *precious = check_path("precious");
    CHECK(file_store(precious, "precious", 8));
    CHECK_INT(symlink(precious, file(".bin.partial")), 0);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, false, &err), TOKMAP_OK);
    expect_precious(precious);
    unlink(file(".bin.partial"));
    CHECK_INT(symlink(precious, file(".tmi.partial")), 0);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, true, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ELOOP);
    expect_precious(precious);
    unlink(file(".tmi.partial"));
    CHECK_INT(link(precious, file(".tmi.partial")), 0);
    CHECK_INT(link(precious, file(".bin.partial")), 0);
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, true, &err), TOKMAP_OK);
    expect_precious(precious);
    expect_content(&SHAPE_TINY);
    CHECK(!has_partials(prefix));
}

TEST(what_was_there_before_is_not_touched)
{
    start();
    CHECK(file_store(file(".bin"), "precious", 8));
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, false, &err), TOKMAP_ERR_EXISTS);
    CHECK(strstr(err.text, "p.bin") != NULL && !has_partials(prefix));
    CHECK(file_store(file(".bin.partial"), "half", 4));
    CHECK(file_store(file(".tmi.partial"), "half", 4));
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, false, &err), TOKMAP_ERR_EXISTS);
    expect_precious(file(".bin"));
    unlink(file(".bin"));
    CHECK(file_store(file(".tmi"), "precious", 8));
    CHECK_INT(shape_write(&SHAPE_TINY, prefix, false, &err), TOKMAP_ERR_EXISTS);
    expect_precious(file(".tmi"));
    CHECK(!file_is_there(file(".bin")));
}

/* A token file that appears during writing belongs to another process. */
TEST(what_appears_during_writing_is_not_touched)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID};
    static const char *const suffixes[] = {".bin", ".tmi"};
    start();
    for (int i = 0; i < 2; i++) {
        tokmap_writer *w = must_begin(prefix, &options);
        CHECK(file_store(file(suffixes[i]), "precious", 8));
        CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_EXISTS);
        tokmap_writer_close(w);
        expect_precious(file(suffixes[i]));
        CHECK(!file_is_there(file(suffixes[!i])) && !has_partials(prefix));
        unlink(file(suffixes[i]));
    }
}

TEST(a_token_file_that_changes_while_it_is_adopted_is_refused)
{
    const shape *s = &SHAPE_ADOPTED;
    start();
    for (int change = -1; change <= 1; change += 2) {
        tokmap_writer *w = NULL;
        CHECK(shape_store_tokens(s, prefix));
        CHECK_INT(shape_open(s, prefix, false, &w, &err), TOKMAP_OK);
        CHECK_INT(shape_fill(s, w, &err), TOKMAP_OK);
        const off_t size = s->token_offset + 2 * (off_t)s->n_tokens;
        CHECK_INT(truncate(shape_token_path(s, prefix), size + change), 0);
        CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_MISMATCH);
        CHECK_EQ(err.file_offset, (uint64_t)(change < 0 ? size - 1 : size));
        tokmap_writer_close(w);
        CHECK(is_absent(prefix) && !has_partials(prefix));
    }
}

static void overwrite(const char *path)
{
    FILE *f = fopen(path, "r+b");
    CHECK(f && fseek(f, -2, SEEK_END) == 0 && putc(1, f) != EOF && fclose(f) == 0);
}

static void replace(const char *path)
{
    file_bytes bytes = file_load(path);
    CHECK(unlink(path) == 0 && file_store(path, bytes.data, bytes.n_bytes));
    free(bytes.data);
}

static void take_away(const char *path)
{
    CHECK_INT(unlink(path), 0);
}

/* The size alone does not tell. */
TEST(a_token_file_that_is_another_one_when_its_index_is_finished_is_refused)
{
    static void (*const changes[])(const char *) = {overwrite, replace, take_away};
    const shape *s = &SHAPE_ADOPTED;
    start();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        tokmap_writer *w = NULL;
        CHECK(shape_store_tokens(s, prefix));
        CHECK_INT(shape_open(s, prefix, false, &w, &err), TOKMAP_OK);
        CHECK_INT(shape_fill(s, w, &err), TOKMAP_OK);
        usleep(20000); /* a tick of the clock of file systems */
        changes[i](shape_token_path(s, prefix));
        CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_MISMATCH);
        tokmap_writer_close(w);
        CHECK(is_absent(prefix) && !has_partials(prefix));
    }
}

/* ---- No room ---- */

static void expect_failed_write(int wanted_errno)
{
    shape big = SHAPE_TINY;
    big.n_tokens = 3000000;
    CHECK_INT(shape_write(&big, prefix, false, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, wanted_errno);
    CHECK_SAYS(err.text, "partial");
    CHECK(is_absent(prefix) && !has_partials(prefix) && !file_is_there(file(".bin")));
}

static void check_file_limit(void)
{
    const struct rlimit limit = {1500000, 1500000};
    signal(SIGXFSZ, SIG_IGN);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_failed_write(EFBIG);
    CHECK_INT(shape_write(&SHAPE_WIDE_IDS, prefix, false, &err), TOKMAP_OK);
}

TEST(a_limit_on_file_sizes_leaves_nothing_behind)
{
    start();
    run_in_child(check_file_limit);
    expect_content(&SHAPE_WIDE_IDS);
}

/* In a mount namespace of its own, so that nothing stays mounted. */
static void check_full_disk(void)
{
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", check_path("disk"), "tmpfs", 0, "size=3m"))
        _exit(77);
    expect_failed_write(ENOSPC);
    CHECK_INT(shape_write(&SHAPE_WIDE_IDS, prefix, false, &err), TOKMAP_OK);
    expect_content(&SHAPE_WIDE_IDS);
    umount(check_path("disk"));
    _exit(0);
}

TEST(a_full_disk_leaves_nothing_behind)
{
    CHECK_INT(mkdir(check_path("disk"), 0777), 0);
    snprintf(prefix, sizeof prefix, "%s", check_path("disk/p"));
    const pid_t child = fork();
    if (child == 0)
        check_full_disk();
    const int status = must_exit(child);
    if (status == 77)
        SKIP("mounting is not allowed");
    CHECK_INT(status, 0);
}

static void check_no_memory_map(void)
{
    const struct rlimit limit = {1 << 29, 1 << 29};
    CHECK_INT(setrlimit(RLIMIT_AS, &limit), 0);
    expect_refusal(prefix, TOKMAP_ERR_IO, ENOMEM);
}

TEST(a_map_that_the_system_refuses_is_an_error)
{
    if (check_sanitized())
        SKIP("sanitizers need the whole address space");
    start();
    const int fd = open(file(".bin"), O_WRONLY | O_CREAT, 0666);
    CHECK(fd >= 0);
    if (ftruncate(fd, 1 << 30))
        SKIP("no file of 1 GiB, even sparse");
    close(fd);
    const tokmap_adopt_options options = {.struct_size = sizeof options,
                                          .n_tokens = 1 << 29,
                                          .token_bytes = 2,
                                          .eod_id = TOKMAP_NO_ID};
    must_finish(must_adopt(file(".bin"), &options));
    run_in_child(check_no_memory_map);
}

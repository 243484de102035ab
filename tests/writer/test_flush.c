/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a writer: the files are byte for byte those of a writer without them, whatever is
 * called between two buffers, and a failed write is never lost. */
#include "support/check.h"

#include <unistd.h>

#include "support/joined.h"
#include "support/faults.h"
#include "support/must.h"

enum {
    MOST_TOKENS = 6 << 20
};

static uint32_t ids[MOST_TOKENS];

static void start(void)
{
    for (size_t i = 0; i < MOST_TOKENS; i++)
        ids[i] = (uint32_t)(check_mix(7, i) % 60000);
}

static tokmap_writer_options options_of(uint32_t token_bytes, uint32_t n_threads)
{
    return (tokmap_writer_options){.struct_size = sizeof(tokmap_writer_options),
                                   .vocab_size = 60000,
                                   .token_bytes = token_bytes,
                                   .eod_id = TOKMAP_NO_ID,
                                   .resumable = 1,
                                   .n_threads = n_threads};
}

/* Documents of random lengths; now and then, by `dice`, a checkpoint, or the writer is given up and
 * another one resumes. */
static void write_all(const char *path, tokmap_writer_options options, uint64_t dice)
{
    tokmap_writer *w = must_begin(path, &options);
    tokmap_error err;
    options.unfinished = TOKMAP_UNFINISHED_RESUME;
    for (uint64_t at = 0, turn = 0, n; at < MOST_TOKENS; turn++) {
        const uint64_t random = check_mix(dice, turn);
        n = (random >> 32) % (random % 5 ? 3000 : 3 << 20);
        n = n < MOST_TOKENS - at ? n : MOST_TOKENS - at;
        CHECK_OK(tokmap_writer_append(w, ids + at, n, &err), err);
        CHECK_OK(tokmap_writer_end_document(w, &err), err);
        at += n;
        if (dice == 0 || random % 7)
            continue;
        CHECK_OK(tokmap_writer_checkpoint(w, &at, sizeof at, &err), err);
        if (random % 2)
            continue;
        CHECK_OK(tokmap_writer_append(w, ids, random % MOST_TOKENS, &err), err);
        tokmap_writer_close(w);
        w = must_begin(path, &options);
        CHECK_EQ(tokmap_writer_n_tokens(w), at);
    }
    must_finish(w);
}

static void expect_same_file(const char *a, const char *b, const char *suffix)
{
    char path_a[600], path_b[600];
    snprintf(path_a, sizeof path_a, "%s%s", a, suffix);
    snprintf(path_b, sizeof path_b, "%s%s", b, suffix);
    file_bytes one = file_load(path_a), other = file_load(path_b);
    CHECK(one.n_bytes == other.n_bytes && memcmp(one.data, other.data, one.n_bytes) == 0);
    free(one.data);
    free(other.data);
}

TEST(files_are_those_of_a_writer_without_threads)
{
    start();
    for (uint32_t token_bytes = 2; token_bytes <= 4; token_bytes += 2)
        for (uint64_t dice = 0; dice < (check_long() ? 20u : 3u); dice++) {
            const uint32_t n_threads = dice == 0 ? 7 : 1 + (uint32_t)dice % 3;
            write_all(check_path("without"), options_of(token_bytes, 0), dice);
            write_all(check_path("with"), options_of(token_bytes, n_threads), dice);
            expect_same_file(check_path("without"), check_path("with"), ".bin");
            expect_same_file(check_path("without"), check_path("with"), ".tmi");
            remove_dataset(check_path("without"));
            remove_dataset(check_path("with"));
        }
}

TEST(a_dataset_is_added_after_what_the_threads_have)
{
    start();
    write_all(check_path("part"), options_of(2, 0), 0);
    tokmap_dataset *part = must_open(check_path("part"));
    for (uint32_t n_threads = 0; n_threads < 2; n_threads++) {
        const tokmap_writer_options options = options_of(2, n_threads);
        tokmap_writer *w = must_begin(check_path(n_threads ? "with" : "without"), &options);
        tokmap_error err;
        for (int i = 0; i < 2; i++) {
            CHECK_OK(tokmap_writer_append(w, ids, 3 << 20, &err), err);
            CHECK_OK(tokmap_writer_end_document(w, &err), err);
            CHECK_OK(tokmap_writer_append_dataset(w, part, &err), err);
        }
        CHECK_OK(tokmap_writer_append(w, ids, 3 << 20, &err), err);
        CHECK_OK(tokmap_writer_end_document(w, &err), err);
        CHECK_OK(tokmap_writer_end_input(w, "rest", 0, 0, &err), err);
        must_finish(w);
    }
    tokmap_dataset_close(part);
    expect_same_file(check_path("without"), check_path("with"), ".bin");
    tokmap_dataset_close(must_be_sound(check_path("with")));
}

TEST(more_than_seven_threads_are_refused)
{
    const tokmap_writer_options options = options_of(2, 8);
    tokmap_writer *w = NULL;
    tokmap_error err;
    CHECK_INT(tokmap_writer_open(&w, check_path("a"), &options, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_STR(err.text, "n_threads is 8: must be at most 7");
}

/* Writes until a call fails, and returns the status of finish, which is the same. */
static tokmap_status write_without_room(uint64_t nth, tokmap_error *err)
{
    const tokmap_writer_options options = options_of(4, 3);
    tokmap_writer *w = must_begin(check_path("f"), &options);
    fault_arm(FAULT_ONCE, FAULT_PWRITE, ENOSPC, nth);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0; !status && at < MOST_TOKENS; at += 1 << 18) {
        status = tokmap_writer_append(w, ids + at, 1 << 18, err);
        if (!status)
            status = tokmap_writer_end_document(w, err);
    }
    const tokmap_status at_end = tokmap_writer_finish(w, err);
    CHECK(!status || status == at_end);
    tokmap_writer_close(w);
    return at_end;
}

TEST(a_failed_write_ends_the_dataset)
{
    start();
    const unsigned n_before = n_open_files();
    for (uint64_t n = 1; n < 12; n++) {
        tokmap_error err;
        const tokmap_status status = write_without_room(n, &err);
        CHECK(fault_disarm());
        CHECK_INT(status, TOKMAP_ERR_IO);
        CHECK_INT(err.sys_errno, ENOSPC);
        CHECK(!file_is_there(check_path("f.tmi")) && !file_is_there(check_path("f.bin")) &&
              !file_is_there(check_path("f.bin.partial")));
        CHECK_EQ(n_open_files(), n_before);
    }
}

TEST(short_and_refused_writes_change_nothing)
{
    start();
    write_all(check_path("f2"), options_of(4, 0), 0);
    static const struct {
        fault_mode mode;
        unsigned calls;
        int errno_value;
        uint64_t nth;
    } cases[] = {{FAULT_SHORT, FAULT_PWRITE, 0, 3},
                 {FAULT_ONCE, FAULT_PWRITE, EINTR, 3},
                 {FAULT_ONCE, FAULT_PWRITE, EINVAL, 3}, /* its blocks are larger */
                 {FAULT_FROM_THEN_ON, FAULT_DIRECT, EINVAL, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fault_arm(cases[i].mode, cases[i].calls, cases[i].errno_value, cases[i].nth);
        write_all(check_path("f"), options_of(4, 2), 0);
        CHECK(fault_disarm());
        expect_same_file(check_path("f"), check_path("f2"), ".bin");
        expect_same_file(check_path("f"), check_path("f2"), ".tmi");
        remove_dataset(check_path("f"));
    }
}

TEST(a_child_of_fork_closes_a_writer_that_has_threads)
{
    start();
    const tokmap_writer_options options = options_of(2, 2);
    tokmap_writer *w = must_begin(check_path("p"), &options);
    tokmap_error err;
    CHECK_OK(tokmap_writer_append(w, ids, MOST_TOKENS, &err), err);
    CHECK_OK(tokmap_writer_end_document(w, &err), err);
    const pid_t child = fork();
    if (child == 0) {
        const tokmap_status status = tokmap_writer_append(w, ids, 1, NULL);
        tokmap_writer_close(w);
        _exit(status != TOKMAP_ERR_FORKED);
    }
    must_end(child);
    must_finish(w);
    tokmap_dataset_close(must_be_sound(check_path("p")));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_replace - while a dataset is replaced, and after the writer was killed, whoever opens it
 * gets the old one or the new one, complete; and of two writers at once one wins. Each run has two
 * processes; readers and a writer change places at chosen calls, so which schedules are tried does
 * not depend on time. */
#include "support/check.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/bad_days.h"
#include "support/must.h"
#include "support/faults.h"

/* Tokens of the same size, so that only the checks of names can tell the files apart; the metadata
 * are in the index. */
static const shape OLD = {.name = "old",
                          .vocab_size = 700,
                          .n_tokens = 77,
                          .n_documents = 5,
                          .seed = 5,
                          .metadata = "{}"};
static const shape NEW = {.name = "new",
                          .vocab_size = 700,
                          .n_tokens = 77,
                          .n_documents = 5,
                          .seed = 6,
                          .metadata = "[]"};

enum {
    NAME_CALLS = FAULT_LINK | FAULT_RENAME | FAULT_RENAMEAT2 | FAULT_UNLINK,
    READER_CALLS = FAULT_OPEN | FAULT_STAT | FAULT_PREAD | FAULT_MMAP
};

static char prefix[600];

static void expect_old_or_new(const char *what)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    if (tokmap_dataset_open(&ds, prefix, &err))
        CHECK_FAIL("%s: neither old nor new: %s", what, err.text);
    fault_disarm();
    if (compare_content(&OLD, ds) && compare_content(&NEW, ds))
        CHECK_FAIL("%s: a mix of old and new", what);
    tokmap_dataset_close(ds);
}

/* ---- A writer that stops before chosen calls ---- */

static struct stopping {
    pid_t pid;
    int to_child, from_child;
    unsigned calls; /* before which it stops */
    uint64_t second_stop;
} writer;

static void wait_in_child(void)
{
    char byte = 0;
    if (write(writer.from_child, &byte, 1) != 1 || read(writer.to_child, &byte, 1) != 1)
        _exit(2);
    fault_arm(FAULT_MEANWHILE, NAME_CALLS, 0, writer.second_stop);
}

/* Starts a process that runs to before call number first_stop of NAME_CALLS. When it is told to go
 * on, it makes n_calls of them. */
static void start_writer(uint64_t first_stop, uint64_t n_calls, bool replace)
{
    int down[2], up[2];
    CHECK(pipe(down) == 0 && pipe(up) == 0);
    writer = (struct stopping){fork(), down[0], up[1], NAME_CALLS, n_calls + 1};
    CHECK(writer.pid >= 0);
    if (writer.pid == 0) {
        close(down[1]);
        close(up[0]);
        fault.meanwhile = wait_in_child;
        fault_arm(FAULT_MEANWHILE, NAME_CALLS, 0, first_stop);
        _exit(shape_write(&NEW, prefix, replace, NULL) ? 1 : 0);
    }
    close(down[0]);
    close(up[1]);
    writer.to_child = down[1];
    writer.from_child = up[0];
}

/* False if the writer ended instead. */
static bool writer_stops(void)
{
    char byte;
    return read(writer.from_child, &byte, 1) == 1;
}

static void continue_writer(void)
{
    CHECK_INT(write(writer.to_child, "", 1), 1);
    writer_stops();
}

static void kill_writer(void)
{
    kill(writer.pid, SIGKILL);
    CHECK_INT(waitpid(writer.pid, NULL, 0), writer.pid);
    close(writer.to_child);
    close(writer.from_child);
}

/* ---- Readers between the steps of a writer ---- */

/* The reader opens the dataset when the writer is before call `first`; before call number `at` of
 * the reader, the writer goes on by n_calls. False when the reader ended before that call. */
static bool read_between(uint64_t first, uint64_t n_calls, uint64_t at)
{
    char what[100];
    snprintf(what, sizeof what, "from call %" PRIu64 ", %" PRIu64 " on before call %" PRIu64, first,
             n_calls, at);
    fault.meanwhile = continue_writer;
    fault_arm(FAULT_MEANWHILE, READER_CALLS, 0, at);
    expect_old_or_new(what);
    return fault.n_fired > 0;
}

static uint64_t n_schedules;

/* From the state that `prepare` makes; false when the writer ends before its call `first`. */
static bool try_schedules(void (*prepare)(uint64_t), uint64_t state, bool replace, uint64_t first)
{
    bool stopped = true;
    const uint64_t most_calls = check_long() ? 6 : 3;
    for (uint64_t n_calls = 1; n_calls <= most_calls && stopped; n_calls += check_long() ? 1 : 2) {
        bool fired = true;
        for (uint64_t at = 1; fired && stopped; at++, n_schedules++) {
            prepare(state);
            start_writer(first, n_calls, replace);
            stopped = writer_stops();
            fired = stopped && read_between(first, n_calls, at);
            expect_old_or_new("afterwards");
            kill_writer();
            expect_old_or_new("after a kill");
        }
    }
    return stopped;
}

static void prepare_old(uint64_t state)
{
    (void)state;
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    remove_dataset(prefix);
    must_store(&OLD, prefix);
}

static void replace_at_all_calls(void)
{
    n_schedules = 0;
    for (uint64_t first = 1; try_schedules(prepare_old, 0, true, first); first++)
        continue;
    printf("note %" PRIu64 " schedules\n", n_schedules);
    CHECK(n_schedules > 100);
}

TEST(a_reader_finds_old_or_new_at_every_step_of_a_writer)
{
    replace_at_all_calls();
}

TEST(a_reader_finds_old_or_new_without_hard_links)
{
    fault.missing = FAULT_LINK;
    replace_at_all_calls();
    fault.missing = 0;
}

static bool killed;

static void prepare_killed(uint64_t state)
{
    prepare_old(0);
    start_writer(state, 0, true);
    killed = writer_stops();
    kill_writer();
}

TEST(a_reader_finds_old_or_new_while_the_next_writer_clears_up)
{
    n_schedules = 0;
    killed = true;
    for (uint64_t state = 1; killed; state++)
        for (uint64_t first = 1; try_schedules(prepare_killed, state, false, first); first++)
            continue;
    printf("note %" PRIu64 " schedules\n", n_schedules);
    CHECK(n_schedules > 100);
}

/* ---- Many times ---- */

TEST(readers_never_miss_a_dataset_that_is_replaced_again_and_again)
{
    prepare_old(0);
    const int n_times = check_long() ? 400 : 70;
    const pid_t child = fork();
    CHECK(child >= 0);
    for (int i = 0; child == 0 && i <= n_times; i++)
        if (i == n_times || shape_write(i % 2 ? &OLD : &NEW, prefix, true, NULL))
            _exit(i == n_times ? 0 : 1);
    int status = 0, n_opened = 0;
    for (; waitpid(child, &status, WNOHANG) == 0; n_opened++)
        expect_old_or_new("in a loop");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("note opened %d times\n", n_opened);
    CHECK(n_opened > 0);
}

/* ---- What an open dataset can still do ---- */

TEST(a_dataset_that_was_set_aside_says_which_files_it_has)
{
    prepare_old(0);
    CHECK_INT(rename(check_path("p.tmi"), check_path("p.tmi.replaced")), 0);
    static const char *const names[] = {"p", "p.tmi", "p.bin"}, *const tokens[] = {
                                                                    "p.bin", "p.bin.replaced"};
    for (int i = 0; i < 6; i++) {
        tokmap_dataset_info info = {.struct_size = sizeof info};
        if (i == 3)
            CHECK_INT(rename(check_path("p.bin"), check_path("p.bin.replaced")), 0);
        tokmap_dataset *ds = must_open(check_path(names[i % 3]));
        tokmap_dataset_get_info(ds, &info);
        CHECK_STR(info.index_path, check_path("p.tmi"));
        CHECK_STR(info.token_path, check_path(tokens[i / 3]));
        CHECK_INT(verify_one_thread(ds, NULL), TOKMAP_OK);
        tokmap_dataset_close(ds);
    }
}

/* The names of a dataset that is open may change, back and forth. */
TEST(an_open_dataset_finds_its_index_under_both_names)
{
    prepare_old(0);
    tokmap_error err;
    tokmap_dataset *ds = must_open(prefix);
    CHECK_INT(rename(check_path("p.tmi"), check_path("p.tmi.replaced")), 0);
    CHECK_INT(verify_one_thread(ds, NULL), TOKMAP_OK);
    tokmap_dataset_close(ds);
    ds = must_open(prefix);
    CHECK_INT(rename(check_path("p.tmi.replaced"), check_path("p.tmi")), 0);
    CHECK_INT(verify_one_thread(ds, NULL), TOKMAP_OK);
    CHECK_INT(shape_write(&NEW, prefix, true, NULL), TOKMAP_OK);
    CHECK_INT(verify_one_thread(ds, &err), TOKMAP_ERR_MISMATCH);
    tokmap_dataset_close(ds);
}

TEST(a_dataset_without_tokens_is_refused_also_when_it_was_set_aside)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    prepare_old(0);
    CHECK_INT(rename(check_path("p.tmi"), check_path("p.tmi.replaced")), 0);
    CHECK_INT(unlink(check_path("p.bin")), 0);
    CHECK_INT(tokmap_dataset_open(&ds, prefix, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENOENT);
}

/* ---- Two writers at once ---- */

typedef struct race {
    pid_t children[2];
    int statuses[2]; /* what their calls came to, negated */
} race;

static void write_at_signal(const shape *s, bool replace, int signal_fd)
{
    char byte;
    if (read(signal_fd, &byte, 1) != 0) /* ends when the parent closes its end */
        _exit(100);
    _exit(-(int)shape_write(s, prefix, replace, NULL));
}

static race run_race(const shape *const shapes[2], bool replace)
{
    race r;
    int barrier[2];
    CHECK_INT(pipe(barrier), 0);
    for (int i = 0; i < 2; i++) {
        r.children[i] = fork();
        if (r.children[i] == 0) {
            close(barrier[1]);
            write_at_signal(shapes[i], replace, barrier[0]);
        }
        CHECK(r.children[i] > 0);
    }
    close(barrier[0]);
    close(barrier[1]);
    for (int i = 0; i < 2; i++)
        r.statuses[i] = must_exit(r.children[i]);
    return r;
}

static const shape FIRST = {
    .name = "first", .vocab_size = 1000, .n_tokens = 100000, .n_documents = 100, .metadata = "{}"};
static const shape SECOND = {.name = "second",
                             .vocab_size = 90000,
                             .n_tokens = 120000,
                             .n_documents = 70,
                             .seed = 4,
                             .metadata = "{}"};

TEST(of_two_writers_at_once_one_wins)
{
    const shape *const shapes[2] = {&FIRST, &SECOND};
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    int n_locked = 0;
    const int n_rounds = check_sanitized() ? 10 : 30;
    for (int round = 0; round < n_rounds; round++) {
        remove_dataset(prefix);
        const race r = run_race(shapes, false);
        const int winner = r.statuses[0] == 0 ? 0 : 1;
        CHECK_INT(r.statuses[winner], 0);
        CHECK(r.statuses[!winner] == -TOKMAP_ERR_LOCKED ||
              r.statuses[!winner] == -TOKMAP_ERR_EXISTS);
        n_locked += r.statuses[!winner] == -TOKMAP_ERR_LOCKED;
        must_hold(shapes[winner], prefix, "of the winner");
        CHECK(!has_partials(prefix));
    }
    printf("note %d times locked, %d times there already\n", n_locked, n_rounds - n_locked);
}

/* With replace both may succeed, one after the other; what is there then is one of the two,
 * whole. */
TEST(of_two_that_replace_at_once_the_last_one_stays)
{
    const shape *const shapes[2] = {&FIRST, &SECOND};
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    must_store(&SHAPE_OLD, prefix);
    int n_both = 0;
    for (int round = 0; round < (check_sanitized() ? 10 : 30); round++) {
        const race r = run_race(shapes, true);
        for (int i = 0; i < 2; i++)
            CHECK(r.statuses[i] == 0 || r.statuses[i] == -TOKMAP_ERR_LOCKED);
        CHECK(r.statuses[0] == 0 || r.statuses[1] == 0);
        n_both += r.statuses[0] == r.statuses[1];
        const char *first = shape_compare(&FIRST, prefix);
        if (first || r.statuses[0] != 0)
            must_hold(&SECOND, prefix, "of the last");
        CHECK(!has_partials(prefix));
    }
    printf("note %d times both\n", n_both);
}

/* An open dataset is not disturbed by one that takes its name. */
TEST(readers_keep_a_dataset_that_is_replaced)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    must_store(&FIRST, prefix);
    tokmap_dataset *ds = must_open(prefix);
    CHECK_INT(shape_write(&SECOND, prefix, true, NULL), TOKMAP_OK);
    CHECK_NO_PROBLEM(compare_content(&FIRST, ds));
    tokmap_error err;
    CHECK_INT(verify_one_thread(ds, &err), TOKMAP_ERR_MISMATCH);
    tokmap_dataset_close(ds);
    must_hold(&SECOND, prefix, "after replacing");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_kill - kill -9 at random moments of writing, replacing and adopting, and two writers at
 * once: a dataset is complete or absent, and the next writer goes on. (test_faults kills at
 * every system call.) */
#include "support/check.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "support/bad_days.h"

/* Some tens of milliseconds of work, most of it in small steps. */
static const shape BIG = {.name = "big",
                          .vocab_size = 60000,
                          .n_tokens = 3000000,
                          .n_documents = 5000,
                          .n_inputs = 40,
                          .metadata = "{\"a\": 1}",
                          .n_columns = SHAPE_MAX_COLUMNS};
static const shape OTHER = {.name = "other",
                            .vocab_size = 70000,
                            .n_tokens = 5000,
                            .n_documents = 9,
                            .seed = 99,
                            .metadata = "{}"};
static const shape FOREIGN = {.name = "foreign",
                              .vocab_size = 60000,
                              .n_tokens = 3000000,
                              .n_documents = 5000,
                              .n_inputs = 40,
                              .metadata = "{}",
                              .token_offset = 1024,
                              .adopted_suffix = ".bin"};

static char prefix[600];

static int n_kills(void)
{
    return check_long() ? 300 : check_sanitized() ? 10 : 50;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
}

/* A new number each time, the same in each run. */
static uint64_t next_random(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void expect_content(const shape *s, const char *what)
{
    const char *problem = shape_compare(s, prefix);
    if (problem)
        CHECK_FAIL("%s: the %s dataset: %s", what, s->name, problem);
}

static pid_t start_writing(const shape *s, bool replace)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(shape_write(s, prefix, replace, NULL) ? 1 : 0);
    CHECK(child > 0);
    return child;
}

/* Whether the child was killed; otherwise it must have succeeded. */
static bool wait_for(pid_t child)
{
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
    return false;
}

typedef struct story {
    const shape *before, *after; /* before: NULL: nothing exists at first */
    bool replace;
} story;

static void prepare(const story *s)
{
    tokmap_error err;
    remove_dataset(prefix);
    if (s->after->adopted_suffix)
        CHECK(shape_store_tokens(s->after, prefix));
    if (s->before && shape_write(s->before, prefix, false, &err))
        CHECK_FAIL("%s", err.text);
}

/* Of a dataset that is being replaced there is always the old one or the new one. The old one may
 * be what an earlier run of the same story had put there. */
static void expect_complete_or_absent(const story *s)
{
    if (!s->before && is_absent(prefix))
        return;
    if (!s->before || !shape_compare(s->after, prefix))
        expect_content(s->after, "after a kill");
    else
        expect_content(s->before, "after a kill");
}

/* The least of three: a run that stalls takes many times as long. */
static uint64_t time_of_a_run(const story *s)
{
    uint64_t least_ns = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        prepare(s);
        const uint64_t start = now_ns();
        CHECK(!wait_for(start_writing(s->after, s->replace)));
        const uint64_t run_ns = now_ns() - start;
        least_ns = run_ns < least_ns ? run_ns : least_ns;
    }
    return least_ns;
}

/* Every fourth kill is left as it is for the next writer, to be taken over. */
static void kill_at_random(const story *s)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    const uint64_t run_ns = time_of_a_run(s);
    int n_hit = 0, n_absent = 0;
    for (int tries = 0; n_hit < n_kills() && tries < 10 * n_kills(); tries++) {
        if (tries % 4 != 3)
            prepare(s);
        const pid_t child = start_writing(s->after, s->replace || tries % 4 == 3);
        sleep_ns(next_random() % (run_ns + run_ns / 8));
        kill(child, SIGKILL);
        n_hit += wait_for(child);
        n_absent += is_absent(prefix);
        expect_complete_or_absent(s);
        if (tries % 4 == 0) {
            tokmap_error err;
            const bool there = !s->replace && !is_absent(prefix);
            const tokmap_status status = shape_write(s->after, prefix, s->replace, &err);
            if (status != (there ? TOKMAP_ERR_EXISTS : TOKMAP_OK))
                CHECK_FAIL("the next writer: %s", err.text);
            expect_content(s->after, "after the next writer");
        }
    }
    printf("note %d kills, %d times absent\n", n_hit, n_absent);
    CHECK_INT(n_hit, n_kills());
}

TEST(a_killed_writer_leaves_a_complete_dataset_or_none)
{
    const story s = {NULL, &BIG, false};
    kill_at_random(&s);
}

TEST(a_killed_writer_that_replaces_leaves_old_or_new)
{
    const story s = {&OTHER, &BIG, true};
    kill_at_random(&s);
}

TEST(a_killed_adoption_leaves_a_complete_index_or_none)
{
    const story s = {NULL, &FOREIGN, false};
    kill_at_random(&s);
}

/* ---- Two writers of one P ---- */

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
    for (int i = 0; i < 2; i++) {
        int status;
        CHECK_INT(waitpid(r.children[i], &status, 0), r.children[i]);
        CHECK(WIFEXITED(status));
        r.statuses[i] = WEXITSTATUS(status);
    }
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
        expect_content(shapes[winner], "of the winner");
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
    CHECK_INT(shape_write(&OTHER, prefix, false, NULL), TOKMAP_OK);
    int n_both = 0;
    for (int round = 0; round < (check_sanitized() ? 10 : 30); round++) {
        const race r = run_race(shapes, true);
        for (int i = 0; i < 2; i++)
            CHECK(r.statuses[i] == 0 || r.statuses[i] == -TOKMAP_ERR_LOCKED);
        CHECK(r.statuses[0] == 0 || r.statuses[1] == 0);
        n_both += r.statuses[0] == r.statuses[1];
        const char *first = shape_compare(&FIRST, prefix);
        if (first || r.statuses[0] != 0)
            expect_content(&SECOND, "of the last");
        CHECK(!has_partials(prefix));
    }
    printf("note %d times both\n", n_both);
}

/* An open dataset is not disturbed by one that takes its name. */
TEST(readers_keep_a_dataset_that_is_replaced)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    CHECK_INT(shape_write(&FIRST, prefix, false, NULL), TOKMAP_OK);
    tokmap_dataset *ds = NULL;
    CHECK_INT(tokmap_dataset_open(&ds, prefix, NULL), TOKMAP_OK);
    CHECK_INT(shape_write(&SECOND, prefix, true, NULL), TOKMAP_OK);
    const char *problem = compare_content(&FIRST, ds);
    CHECK_STR(problem ? problem : "the same", "the same");
    tokmap_error err;
    CHECK_INT(verify_one_thread(ds, &err), TOKMAP_ERR_MISMATCH);
    tokmap_dataset_close(ds);
    expect_content(&SECOND, "after replacing");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_race - two writers of one dataset at once, and a reader of one that is replaced.
 * (test_faults kills writers at every system call.) */
#include "support/check.h"

#include <sys/wait.h>

#include "support/bad_days.h"

static const shape OTHER = {.name = "other",
                            .vocab_size = 70000,
                            .n_tokens = 5000,
                            .n_documents = 9,
                            .seed = 99,
                            .metadata = "{}"};
static char prefix[600];

static void expect_content(const shape *s, const char *what)
{
    const char *problem = shape_compare(s, prefix);
    if (problem)
        CHECK_FAIL("%s: the %s dataset: %s", what, s->name, problem);
}

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

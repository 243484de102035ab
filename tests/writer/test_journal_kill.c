/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal_kill - resumable writers whose every system call fails, falls short or is the last
 * one before kill -9; who meet each other and run out of disk. What
 * a checkpoint held is never lost, and the dataset ends as that of one go. */
#include "writer/journal_plans.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "support/fault_sweeps.h"

static const plan WORK = {
    .seed = 6, .n_steps = 13, .most_tokens = 400, .vocab_size = 70000, .n_columns = 2};
static const shape OLD = {.name = "old",
                          .vocab_size = 700,
                          .n_tokens = 77,
                          .n_documents = 5,
                          .seed = 5,
                          .metadata = "{\"old\": true}"};

static volatile uint64_t *n_made; /* checkpoints, counted by whichever process makes them */

/* ---- Scenarios ---- */

struct scenario {
    bool begun;   /* there is something to resume */
    bool replace; /* and an old dataset */
    tokmap_unfinished unfinished;
    uint64_t resume_checkpoint;
    uint64_t n_safe; /* checkpoints that no failure may cost */
};

static const scenario FRESH = {.unfinished = TOKMAP_UNFINISHED_RESUME};
static const scenario FRESH_REPLACE = {.replace = true, .unfinished = TOKMAP_UNFINISHED_RESUME};
static const scenario AGAIN = {.begun = true, .unfinished = TOKMAP_UNFINISHED_RESUME, .n_safe = 2};
static const scenario AGAIN_REPLACE = {
    .begun = true, .replace = true, .unfinished = TOKMAP_UNFINISHED_RESUME, .n_safe = 2};
static const scenario BACK = {
    .begun = true, .unfinished = TOKMAP_UNFINISHED_RESUME, .resume_checkpoint = 1, .n_safe = 1};
static const scenario OVER = {.begun = true, .unfinished = TOKMAP_UNFINISHED_DISCARD};

static files whole, begun;

static void set_up(void)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    if (!n_made)
        n_made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(n_made != MAP_FAILED);
    whole = uninterrupted(&WORK);
    remove_all_of(prefix);
    run_well((run){.plan = &WORK, .checkpoint_every = 3, .stop_at = 8});
    begun = load_files(prefix);
    CHECK(begun.f[2].data && begun.f[3].n_bytes > 384 && begun.f[4].data);
}

static void tear_down(void)
{
    remove_all_of(prefix);
    free_files(&whole);
    free_files(&begun);
}

static void prepare(const scenario *s)
{
    const files nothing = {0};
    store_files(s->begun ? &begun : &nothing);
    if (s->replace) {
        files old;
        char kept[sizeof prefix];
        memcpy(kept, prefix, sizeof kept);
        snprintf(prefix, sizeof prefix, "%s", check_path("old"));
        CHECK_INT(shape_write(&OLD, prefix, true, NULL), TOKMAP_OK);
        old = load_files(prefix);
        memcpy(prefix, kept, sizeof kept);
        CHECK(file_store(with_suffix(prefix, ".bin"), old.f[0].data, old.f[0].n_bytes));
        CHECK(file_store(with_suffix(prefix, ".tmi"), old.f[1].data, old.f[1].n_bytes));
        free_files(&old);
    }
    *n_made = s->n_safe;
}

static run run_of(const scenario *s)
{
    return (run){.plan = &WORK,
                 .unfinished = s->unfinished,
                 .resume_checkpoint = s->resume_checkpoint,
                 .replace = s->replace,
                 .checkpoint_every = 2,
                 .n_checkpoints = n_made};
}

/* ---- What must hold afterwards ---- */

static bool holds(int suffix, const files *all)
{
    file_bytes is = file_load(with_suffix(prefix, all_suffixes[suffix]));
    const bool same = is.data && is.n_bytes == all->f[suffix].n_bytes &&
                      memcmp(is.data, all->f[suffix].data, is.n_bytes) == 0;
    free(is.data);
    return same;
}

static bool is_complete(void)
{
    return !is_absent(prefix) && holds(0, &whole) && holds(1, &whole);
}

static void expect_nothing_half(const scenario *s, const char *what)
{
    if (is_absent(prefix) || is_complete())
        return;
    const char *problem = s->replace ? shape_compare(&OLD, prefix) : "is there";
    if (problem)
        CHECK_FAIL("%s: the old dataset: %s", what, problem);
}

/* Beside a journal alone, P may be the dataset that was to be replaced. */
static bool has_leftovers(void)
{
    bool any = false;
    for (int i = 2; i < N_SUFFIXES; i++)
        any |= strcmp(all_suffixes[i], ".tmj.partial") != 0 &&
               file_is_there(with_suffix(prefix, all_suffixes[i]));
    return any;
}

/* The same once more, without faults. Of what is complete it is told so, but where a dataset was to
 * be replaced and nothing says that this has been done. */
static void expect_resumes(const scenario *s, const char *what)
{
    tokmap_error err;
    expect_nothing_half(s, what);
    const bool complete = is_complete(), told = complete && (!s->replace || has_leftovers());
    const uint64_t n_safe = *n_made;
    run r = {.plan = &WORK, .unfinished = TOKMAP_UNFINISHED_RESUME, .replace = s->replace};
    if (run_plan(&r, &err))
        CHECK_FAIL("%s: the next run: %s", what, err.text);
    if (told && !r.complete)
        CHECK_FAIL("%s: P is complete, and the next run began anew", what);
    if (!complete && r.resumed_from < n_safe)
        CHECK_FAIL("%s: checkpoint %d is lost, went on from %d", what, (int)n_safe,
                   (int)r.resumed_from);
    expect_files(&whole, what);
}

/* ---- Kills at every call ---- */

static pid_t start_run(const scenario *s, fault_mode mode, uint64_t n)
{
    const pid_t child = fork();
    if (child == 0) {
        run r = run_of(s);
        fault_arm(mode, FAULT_ALL_FILE_CALLS, 0, n);
        _exit(run_plan(&r, NULL) ? 1 : 0);
    }
    CHECK(child > 0);
    return child;
}

static bool was_killed(pid_t child)
{
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    if (WIFEXITED(status))
        CHECK_INT(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

static void kill_everywhere(const scenario *s)
{
    uint64_t n_kills = 0;
    char what[100];
    set_up();
    for (fault_mode mode = FAULT_KILL_BEFORE; mode <= FAULT_KILL_AFTER; mode++) {
        bool killed = true;
        for (uint64_t n = 1; killed; n++) {
            snprintf(what, sizeof what, "killed %s call %" PRIu64,
                     mode == FAULT_KILL_BEFORE ? "before" : "after", n);
            prepare(s);
            killed = was_killed(start_run(s, mode, n));
            n_kills += killed;
            expect_resumes(s, what);
        }
    }
    tear_down();
    printf("note %" PRIu64 " kills\n", n_kills);
    CHECK(n_kills > 60);
}

static const scenario *const ALL[] = {&FRESH, &FRESH_REPLACE, &AGAIN, &AGAIN_REPLACE, &BACK, &OVER};

TEST(a_kill_at_any_call_costs_no_checkpoint)
{
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        kill_everywhere(ALL[i]);
}

TEST(without_hard_links_a_kill_at_any_call_costs_no_checkpoint)
{
    fault.missing = FAULT_LINK;
    kill_everywhere(&FRESH);
    kill_everywhere(&AGAIN_REPLACE);
    fault.missing = 0;
}

/* ---- Failing calls ---- */

/* A checkpoint that failed is none, even if all of it was written before it did. */
static void expect_checkpoints(const char *what)
{
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, &info, NULL, NULL), TOKMAP_OK);
    if (!is_complete() && info.n_checkpoints > *n_made)
        CHECK_FAIL("%s: %d checkpoints, of which %d succeeded", what, (int)info.n_checkpoints,
                   (int)*n_made);
}

bool run_once(const scenario *s, const sweep *sw, uint64_t n, const char *what)
{
    tokmap_error err = {0};
    run r = run_of(s);
    prepare(s);
    const swept before = begin_swept(sw, n);
    const tokmap_status status = run_plan(&r, &err);
    const bool fired = end_swept(sw, &before, status, &err, what);
    if (!status && !is_complete())
        CHECK_FAIL("%s: said to be complete", what);
    if (status && s->begun && s->unfinished == TOKMAP_UNFINISHED_RESUME && !is_complete())
        CHECK(file_is_there(with_suffix(prefix, ".tmj.partial")));
    if (status && sw->mode == FAULT_ONCE && s->resume_checkpoint == 0 &&
        s->unfinished == TOKMAP_UNFINISHED_RESUME)
        expect_checkpoints(what);
    expect_resumes(s, what);
    return fired;
}

static void sweep_modes(const scenario *s)
{
    set_up();
    uint64_t n_runs = 0;
    for (size_t i = 0; i < N_SWEEPS; i++)
        n_runs += sweep_all(s, &sweeps_of_calls[i]);
    tear_down();
    printf("note %" PRIu64 " faults\n", n_runs);
    CHECK(n_runs > 100);
}

TEST(a_failing_call_costs_no_checkpoint)
{
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        sweep_modes(ALL[i]);
}

TEST(without_hard_links_a_failing_call_costs_no_checkpoint)
{
    fault.missing = FAULT_LINK;
    sweep_modes(&FRESH);
    sweep_modes(&AGAIN_REPLACE);
    fault.missing = 0;
}

TEST(a_lack_of_memory_costs_no_checkpoint)
{
    uint64_t n = 0;
    if (!FAULT_MEMORY_WORKS)
        SKIP("memory cannot be made to fail under this sanitizer or C library");
    set_up();
    for (int i = 0; i < 2; i++)
        n += sweep_all(&FRESH, &sweeps_of_memory[i]) + sweep_all(&AGAIN, &sweeps_of_memory[i]);
    tear_down();
    printf("note %" PRIu64 " faults\n", n);
    CHECK(n >= 40);
}

/* ---- A disk that is really full, as far as the process can see ---- */

TEST(a_full_disk_costs_no_checkpoint)
{
    int n_failed = 0;
    set_up();
    for (rlim_t limit = 0; limit < 24000; limit += check_long() ? 211 : 613) {
        int status;
        prepare(&FRESH);
        const pid_t child = fork();
        if (child == 0) {
            run r = run_of(&FRESH);
            const struct rlimit most = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            _exit(setrlimit(RLIMIT_FSIZE, &most) ? 100 : run_plan(&r, NULL) ? 1 : 0);
        }
        CHECK_INT(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        n_failed += WEXITSTATUS(status);
        expect_resumes(&FRESH, "after a full disk");
    }
    tear_down();
    printf("note %d times full\n", n_failed);
    CHECK(n_failed > 5);
}

/* ---- Others at the same time ---- */

TEST(a_second_writer_is_told_that_it_is_locked)
{
    int ready[2], status;
    char byte;
    set_up();
    prepare(&AGAIN);
    CHECK_INT(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        run r = run_of(&AGAIN);
        tokmap_writer *w = NULL;
        if (open_run(&r, &w, NULL) || make_checkpoint(&r, w, r.started_at, NULL))
            _exit(1);
        byte = 1;
        _exit(write(ready[1], &byte, 1) == 1 && pause() ? 0 : 1);
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    files now = load_files(prefix);
    for (int mode = 0; mode < 3; mode++) {
        tokmap_error err;
        run r = {.plan = &WORK, .unfinished = (tokmap_unfinished)mode, .replace = mode == 0};
        CHECK_INT(run_plan(&r, &err), TOKMAP_ERR_LOCKED);
    }
    expect_files(&now, "locked");
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, &info, NULL, NULL), TOKMAP_OK);
    CHECK_EQ(info.n_checkpoints, 3);
    kill(child, SIGKILL);
    CHECK_INT(waitpid(child, &status, 0), child);
    close(ready[0]);
    close(ready[1]);
    expect_resumes(&AGAIN, "after the first one");
    free_files(&now);
    tear_down();
}

static tokmap_status rival_status;

static void run_rival(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        run r = {.plan = &WORK, .unfinished = TOKMAP_UNFINISHED_RESUME, .checkpoint_every = 3};
        _exit(-(int)run_plan(&r, NULL));
    }
    rival_status = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
                       ? (tokmap_status)-WEXITSTATUS(status)
                       : TOKMAP_ERR_MEMORY;
}

static void meet_rival_everywhere(const scenario *s)
{
    uint64_t n = 1;
    int n_locked = 0;
    char what[100];
    set_up();
    fault.meanwhile = run_rival;
    for (bool fired = true; fired; n++) {
        tokmap_error err = {0};
        run r = run_of(s);
        snprintf(what, sizeof what, "another writer before call %" PRIu64, n);
        prepare(s);
        rival_status = TOKMAP_ERR_LOCKED;
        fault_arm(FAULT_MEANWHILE, FAULT_ALL_FILE_CALLS, 0, n);
        const tokmap_status status = run_plan(&r, &err);
        fired = fault_disarm();
        if (status && status != TOKMAP_ERR_EXISTS && status != TOKMAP_ERR_LOCKED)
            CHECK_FAIL("%s: %s", what, err.text);
        if (rival_status && rival_status != TOKMAP_ERR_EXISTS && rival_status != TOKMAP_ERR_LOCKED)
            CHECK_FAIL("%s: the other one: %d", what, (int)rival_status);
        n_locked += rival_status == TOKMAP_ERR_LOCKED;
        if (status && rival_status)
            CHECK_FAIL("%s: %d and %d", what, (int)status, (int)rival_status);
        expect_files(&whole, what);
    }
    tear_down();
    CHECK(n_locked > 10);
}

TEST(another_writer_at_any_call_harms_nobody)
{
    meet_rival_everywhere(&FRESH);
    meet_rival_everywhere(&AGAIN);
    meet_rival_everywhere(&OVER);
}

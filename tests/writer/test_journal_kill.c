/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal_kill - resumable writers whose every system call fails, falls short or is the last
 * one before kill -9 or a power cut; who meet each other and run out of disk. What a checkpoint
 * held is never lost, and the dataset ends as that of one go.
 *
 * A power cut loses what was not flushed, or half of it: a process that is killed at call n keeps
 * account of what the disk would hold: of each file what it was at its last fsync, of the folder
 * which names led where at its last fsync. From that the folder is put together as it might be
 * found after the cut. */
#include "writer/journal_plans.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/fault_sweeps.h"
#include "support/must.h"

static const plan WORK = {
    .seed = 6, .n_steps = 10, .most_tokens = 400, .vocab_size = 70000, .n_columns = 2};

/* Written by whichever process makes checkpoints, or finishes. */
static volatile uint64_t *n_made, *finished;

/* ---- The disk ---- */

static char disk[600]; /* a folder: `names`, and a file for each inode that was ever flushed */

static const char *disk_path(uint64_t inode)
{
    static char path[700];
    snprintf(path, sizeof path, "%s/%" PRIu64, disk, inode);
    return path;
}

static uint64_t inode_of(const char *path)
{
    struct stat st;
    return lstat(path, &st) ? 0 : st.st_ino;
}

static void flush_names(void)
{
    char path[700];
    snprintf(path, sizeof path, "%s/names", disk);
    unlink(path); /* emptying a file would make some file systems write it out at once */
    FILE *out = fopen(path, "w");
    for (int i = 0; i < N_SUFFIXES; i++)
        fprintf(out, "%" PRIu64 "\n", inode_of(file_of(all_suffixes[i])));
    fclose(out);
}

/* The descriptor is kept, so that the number of the inode is not given to another file. */
static void flush_file(int fd, uint64_t inode)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    file_bytes now = file_load(path);
    unlink(disk_path(inode));
    if (dup(fd) < 0 || !now.data || !file_store(disk_path(inode), now.data, now.n_bytes))
        _exit(3);
    free(now.data);
}

static void flush_any(int fd)
{
    struct stat st;
    const bool armed = fault.armed;
    fault.armed = false;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        flush_names();
    else
        flush_file(fd, st.st_ino);
    fault.armed = armed;
}

/* All existing files count as flushed. */
static void start_account(void)
{
    for (int i = 0; i < N_SUFFIXES; i++) {
        const int fd = open(file_of(all_suffixes[i]), O_RDONLY);
        if (fd >= 0)
            flush_any(fd);
    }
    flush_names();
    fault.sync_hook = flush_any;
}

typedef enum cut {
    ALL_LOST,   /* names and bytes as last flushed */
    BYTES_LOST, /* names and lengths are new, the new bytes are zero */
    NAMES_LOST, /* bytes are new, names are as last flushed */
    SOME_LOST,  /* by lot, for each file */
    NOTHING_LOST
} cut;

static file_bytes after_cut(uint64_t inode, cut how, file_bytes current)
{
    file_bytes flushed = file_load(disk_path(inode));
    if (current.data && (how == NAMES_LOST || !flushed.data)) {
        memset(current.data, 0, flushed.data ? 0 : current.n_bytes);
        free(flushed.data);
        return current;
    }
    if (how == BYTES_LOST && current.data) {
        const size_t n = current.n_bytes < flushed.n_bytes ? current.n_bytes : flushed.n_bytes;
        memcpy(current.data, flushed.data, n);
        memset(current.data + n, 0, current.n_bytes - n);
        free(flushed.data);
        return current;
    }
    free(current.data);
    return flushed;
}

static file_bytes load_inode(const files *current, const uint64_t inodes[N_SUFFIXES],
                             uint64_t inode)
{
    file_bytes copy = {0};
    for (int i = 0; i < N_SUFFIXES; i++)
        if (inodes[i] == inode && current->f[i].data && !copy.data) {
            copy.n_bytes = current->f[i].n_bytes;
            copy.data = malloc(copy.n_bytes + 1);
            if (copy.data)
                memcpy(copy.data, current->f[i].data, copy.n_bytes);
        }
    return copy;
}

static void read_names(uint64_t inodes[N_SUFFIXES])
{
    char path[700];
    snprintf(path, sizeof path, "%s/names", disk);
    FILE *in = fopen(path, "r");
    CHECK(in != NULL);
    for (int i = 0; i < N_SUFFIXES; i++)
        CHECK_INT(fscanf(in, "%" SCNu64, &inodes[i]), 1);
    fclose(in);
}

/* The folder as it may be found. */
static void cut_power(cut how, uint64_t lot)
{
    uint64_t is[N_SUFFIXES], will_be[N_SUFFIXES];
    files current = load_files(prefix);
    for (int i = 0; i < N_SUFFIXES; i++)
        is[i] = inode_of(file_of(all_suffixes[i]));
    read_names(will_be);
    if (how == BYTES_LOST || (how == SOME_LOST && lot % 2))
        memcpy(will_be, is, sizeof is);
    remove_all_of(prefix);
    for (int i = 0; i < N_SUFFIXES; i++) {
        int same = 0;
        while (same < i && will_be[same] != will_be[i])
            same++;
        const char *path = file_of(all_suffixes[i]);
        if (will_be[i] && same < i)
            CHECK(link(file_of(all_suffixes[same]), path) == 0);
        if (!will_be[i] || same < i)
            continue;
        const cut mine = how == SOME_LOST ? (cut)(check_mix(lot, (uint64_t)i) % 3) : how;
        file_bytes f = after_cut(will_be[i], mine, load_inode(&current, is, will_be[i]));
        CHECK(file_store(path, f.data ? (const void *)f.data : "", f.n_bytes));
        free(f.data);
    }
    free_files(&current);
}

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

static files whole, begun, old;

static void set_up(void)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    snprintf(disk, sizeof disk, "%s", check_path("disk"));
    if (!n_made)
        n_made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(n_made != MAP_FAILED);
    finished = n_made + 1;
    must_store(&SHAPE_OLD, prefix);
    old = load_files(prefix);
    whole = uninterrupted(&WORK);
    remove_all_of(prefix);
    run_well((run){.plan = &WORK, .checkpoint_every = 3, .stop_at = 7});
    begun = load_files(prefix);
    CHECK(begun.f[2].data && begun.f[3].n_bytes > 384 && begun.f[4].data);
}

static void tear_down(void)
{
    remove_all_of(prefix);
    free_files(&whole);
    free_files(&begun);
    free_files(&old);
}

static void prepare(const scenario *s)
{
    files all = {0};
    if (s->begun)
        all = begun;
    if (s->replace) {
        all.f[0] = old.f[0];
        all.f[1] = old.f[1];
    }
    store_files(&all);
    *n_made = s->n_safe;
    *finished = 0;
    check_remove(disk);
    CHECK(mkdir(disk, 0777) == 0);
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

static bool is_complete(void)
{
    return !is_absent(prefix) && file_holds(file_of(all_suffixes[0]), &whole.f[0]) &&
           file_holds(file_of(all_suffixes[1]), &whole.f[1]);
}

static void expect_nothing_half(const scenario *s, const char *what)
{
    if (is_absent(prefix) || is_complete())
        return;
    const char *problem = s->replace ? shape_compare(&SHAPE_OLD, prefix) : "is there";
    if (problem)
        CHECK_FAIL("%s: the old dataset: %s", what, problem);
}

/* Beside a journal alone, P may be the dataset that was to be replaced. */
static bool has_leftovers(void)
{
    bool any = false;
    for (int i = 2; i < N_SUFFIXES; i++)
        any |=
            strcmp(all_suffixes[i], ".tmj.partial") != 0 && file_is_there(file_of(all_suffixes[i]));
    return any;
}

/* The same once more, without faults. Of what is complete it is told so, but where a dataset was to
 * be replaced and nothing says that this has been done. A power cut may leave other files. */
static void expect_resumes(const scenario *s, cut how, const char *what)
{
    tokmap_error err;
    expect_nothing_half(s, what);
    const bool complete = is_complete(), told = complete && (!s->replace || has_leftovers());
    const uint64_t n_safe = *n_made;
    if (!complete && *finished)
        CHECK_FAIL("%s: a finished dataset is not there", what);
    run r = {.plan = &WORK, .unfinished = TOKMAP_UNFINISHED_RESUME, .replace = s->replace};
    const tokmap_status status = run_plan(&r, &err);
    if (status && !(how != NOTHING_LOST && complete && status == TOKMAP_ERR_EXISTS))
        CHECK_FAIL("%s: the next run: %s", what, err.text);
    if (how == NOTHING_LOST && told && !r.complete)
        CHECK_FAIL("%s: P is complete, and the next run began anew", what);
    if (!complete && r.resumed_from < n_safe)
        CHECK_FAIL("%s: checkpoint %d is lost, went on from %d", what, (int)n_safe,
                   (int)r.resumed_from);
    if (how == NOTHING_LOST)
        expect_files(&whole, what);
    CHECK(is_complete());
}

/* ---- Kills at every call ---- */

/* False when the run came to its end. */
static bool run_until(const scenario *s, cut how, fault_mode mode, uint64_t n)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        run r = run_of(s);
        tokmap_writer *w = NULL;
        if (how != NOTHING_LOST)
            start_account();
        fault_arm(mode, FAULT_ALL_FILE_CALLS, 0, n);
        if (open_run(&r, &w, NULL) || play(&r, w, NULL))
            _exit(1);
        *finished = 1;
        tokmap_writer_close(w);
        _exit(0);
    }
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

/* Returns how often the run was ended. */
static uint64_t end_at_every_call(const scenario *s, cut how, fault_mode mode, uint64_t lot)
{
    uint64_t n = 1;
    char what[100];
    for (bool killed = true; killed; n++) {
        snprintf(what, sizeof what, "cut %d, killed %s call %" PRIu64, (int)how,
                 mode == FAULT_KILL_BEFORE ? "before" : "after", n);
        prepare(s);
        killed = run_until(s, how, mode, n);
        if (how != NOTHING_LOST)
            cut_power(how, check_mix(lot, n));
        expect_resumes(s, how, what);
    }
    return n - 2;
}

static void kill_everywhere(const scenario *s)
{
    set_up();
    const uint64_t n_kills = end_at_every_call(s, NOTHING_LOST, FAULT_KILL_BEFORE, 0) +
                             end_at_every_call(s, NOTHING_LOST, FAULT_KILL_AFTER, 0);
    tear_down();
    printf("note %" PRIu64 " kills\n", n_kills);
    CHECK(n_kills > 60);
}

static const scenario *const ALL[] = {&FRESH, &FRESH_REPLACE, &AGAIN, &AGAIN_REPLACE, &BACK, &OVER};

TEST(a_kill_at_any_call_costs_no_checkpoint)
{
    if (check_sanitized())
        SKIP("what a killed process leaves is the same without a sanitizer");
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        kill_everywhere(ALL[i]);
}

TEST(without_hard_links_a_kill_at_any_call_costs_no_checkpoint)
{
    if (check_sanitized())
        SKIP("what a killed process leaves is the same without a sanitizer");
    fault.missing = FAULT_LINK;
    kill_everywhere(&FRESH);
    kill_everywhere(&AGAIN_REPLACE);
    fault.missing = 0;
}

static void cut_everywhere(const scenario *s)
{
    const uint64_t n_lots = check_long() ? 5 : 1;
    uint64_t n_cuts = 0;
    set_up();
    for (uint64_t i = 0; i < SOME_LOST + n_lots; i++)
        n_cuts += end_at_every_call(s, i < SOME_LOST ? (cut)i : SOME_LOST,
                                    i % 2 ? FAULT_KILL_BEFORE : FAULT_KILL_AFTER, i);
    tear_down();
    printf("note %" PRIu64 " power cuts\n", n_cuts);
    CHECK(n_cuts > 80);
}

TEST(a_power_cut_at_any_call_costs_no_checkpoint)
{
    if (check_sanitized())
        SKIP("what a killed process leaves is the same without a sanitizer");
    for (const scenario *const *s = ALL; *s != &OVER; s++)
        cut_everywhere(*s);
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
    expect_resumes(s, NOTHING_LOST, what);
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
        prepare(&FRESH);
        const pid_t child = fork();
        if (child == 0) {
            run r = run_of(&FRESH);
            const struct rlimit most = {limit, limit};
            signal(SIGXFSZ, SIG_IGN);
            _exit(setrlimit(RLIMIT_FSIZE, &most) ? 100 : run_plan(&r, NULL) ? 1 : 0);
        }
        const int status = must_exit(child);
        CHECK(status <= 1);
        n_failed += status;
        expect_resumes(&FRESH, NOTHING_LOST, "after a full disk");
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
    expect_resumes(&AGAIN, NOTHING_LOST, "after the first one");
    free_files(&now);
    tear_down();
}

static tokmap_status rival_status;

static void run_rival(void)
{
    const pid_t child = fork();
    if (child == 0) {
        run r = {.plan = &WORK, .unfinished = TOKMAP_UNFINISHED_RESUME, .checkpoint_every = 3};
        _exit(-(int)run_plan(&r, NULL));
    }
    rival_status = (tokmap_status)-must_exit(child);
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

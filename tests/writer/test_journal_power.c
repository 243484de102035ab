/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal_power - a power cut at every system call of a resumable writer: what was not flushed
 * is lost, or half of it. What a finished checkpoint held is not, nor is a finished dataset.
 *
 * A process that is killed at call n keeps account of what the disk would hold: of each file what
 * it was at its last fsync, of the folder which names led where at its last fsync. From that the
 * folder is put together as it might be found after the cut. */
#include "writer/journal_plans.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/faults.h"

static const plan WORK = {.seed = 6, .n_steps = 8, .most_tokens = 400, .vocab_size = 70000};
static const shape OLD = {.name = "old",
                          .vocab_size = 700,
                          .n_tokens = 77,
                          .n_documents = 5,
                          .seed = 5,
                          .metadata = "{\"old\": true}"};

typedef struct scenario {
    bool begun, replace;
    uint64_t resume_checkpoint;
    uint64_t n_safe; /* checkpoints that no power cut may cost */
} scenario;

static const scenario FRESH = {0};
static const scenario FRESH_REPLACE = {.replace = true};
static const scenario AGAIN = {.begun = true, .n_safe = 2};
static const scenario BACK = {.begun = true, .resume_checkpoint = 1, .n_safe = 1};
static const scenario AGAIN_REPLACE = {.begun = true, .replace = true, .n_safe = 2};

/* What the child counts, seen by the parent. */
static volatile uint64_t *n_made, *finished;
static files whole, begun, old;

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
        fprintf(out, "%" PRIu64 "\n", inode_of(with_suffix(prefix, all_suffixes[i])));
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
        const int fd = open(with_suffix(prefix, all_suffixes[i]), O_RDONLY);
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
    N_CUTS
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
        is[i] = inode_of(with_suffix(prefix, all_suffixes[i]));
    read_names(will_be);
    if (how == BYTES_LOST || (how == SOME_LOST && lot % 2))
        memcpy(will_be, is, sizeof is);
    remove_all_of(prefix);
    for (int i = 0; i < N_SUFFIXES; i++) {
        int same = 0;
        while (same < i && will_be[same] != will_be[i])
            same++;
        const char *path = with_suffix(prefix, all_suffixes[i]);
        if (will_be[i] && same < i)
            CHECK(link(with_suffix(prefix, all_suffixes[same]), path) == 0);
        if (!will_be[i] || same < i)
            continue;
        const cut mine = how == SOME_LOST ? (cut)(mix(lot, (uint64_t)i) % 3) : how;
        file_bytes f = after_cut(will_be[i], mine, load_inode(&current, is, will_be[i]));
        CHECK(file_store(path, f.data ? (const void *)f.data : "", f.n_bytes));
        free(f.data);
    }
    free_files(&current);
}

/* ---- Runs ---- */

static void set_up(void)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    snprintf(disk, sizeof disk, "%s", check_path("disk"));
    if (!n_made)
        n_made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(n_made != MAP_FAILED);
    finished = n_made + 1;
    CHECK_INT(shape_write(&OLD, prefix, false, NULL), TOKMAP_OK);
    old = load_files(prefix);
    whole = uninterrupted(&WORK);
    remove_all_of(prefix);
    run_well((run){.plan = &WORK, .checkpoint_every = 2, .stop_at = 5});
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

/* False when the run came to its end. */
static bool run_until(const scenario *s, fault_mode mode, uint64_t n)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        run r = {.plan = &WORK,
                 .unfinished = TOKMAP_UNFINISHED_RESUME,
                 .replace = s->replace,
                 .resume_checkpoint = s->resume_checkpoint,
                 .checkpoint_every = 3,
                 .n_checkpoints = n_made};
        tokmap_writer *w = NULL;
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

static bool is_complete(void)
{
    files now = load_files(prefix);
    bool same = !is_absent(prefix);
    for (int i = 0; i < 2; i++)
        same = same && now.f[i].n_bytes == whole.f[i].n_bytes &&
               memcmp(now.f[i].data, whole.f[i].data, now.f[i].n_bytes) == 0;
    free_files(&now);
    return same;
}

static void expect_resumes(const scenario *s, const char *what)
{
    tokmap_error err;
    const bool complete = is_complete();
    if (!complete && *finished)
        CHECK_FAIL("%s: a finished dataset is not there", what);
    if (!complete && !is_absent(prefix) && (!s->replace || shape_compare(&OLD, prefix)))
        CHECK_FAIL("%s: a dataset is there that is neither the old nor the new one", what);
    run r = {.plan = &WORK, .unfinished = TOKMAP_UNFINISHED_RESUME, .replace = s->replace};
    const tokmap_status status = run_plan(&r, &err);
    if (status && !(complete && status == TOKMAP_ERR_EXISTS))
        CHECK_FAIL("%s: the next run: %s", what, err.text);
    if (!complete && r.resumed_from < *n_made)
        CHECK_FAIL("%s: checkpoint %d is lost, went on from %d", what, (int)*n_made,
                   (int)r.resumed_from);
    CHECK(is_complete());
}

static void cut_everywhere(const scenario *s)
{
    uint64_t n_cuts = 0;
    char what[100];
    set_up();
    const int n_lots = check_long() ? 5 : 1;
    for (int how = 0; how < N_CUTS - 1 + n_lots; how++) {
        const cut kind = how < SOME_LOST ? (cut)how : SOME_LOST;
        const fault_mode mode = how % 2 ? FAULT_KILL_BEFORE : FAULT_KILL_AFTER;
        bool killed = true;
        for (uint64_t n = 1; killed; n++) {
            snprintf(what, sizeof what, "cut %d at call %" PRIu64, how, n);
            prepare(s);
            killed = run_until(s, mode, n);
            cut_power(kind, mix((uint64_t)how, n));
            expect_resumes(s, what);
            n_cuts += killed;
        }
    }
    tear_down();
    printf("note %" PRIu64 " power cuts\n", n_cuts);
    CHECK(n_cuts > 80);
}

TEST(a_power_cut_at_any_call_costs_no_checkpoint)
{
    const scenario *const all[] = {&FRESH, &FRESH_REPLACE, &AGAIN, &AGAIN_REPLACE, &BACK};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        cut_everywhere(all[i]);
}

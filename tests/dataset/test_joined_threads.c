/* SPDX-License-Identifier: Apache-2.0 */
/* test_joined_threads - many threads use the files of a joined dataset for the first time at once,
 * and the process forks meanwhile: each sees the right tokens, and no more is kept than may be. */
#include "support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/base.h"
#include "support/bad_days.h"
#include "support/joined.h"
#include "support/must.h"

enum {
    N_THREADS = 8,
    N_FORKS = 3,
    FILE_TOKENS = 3,
    MOST_MAPS = 1024,
    MOST_FDS = 256
};

static const shape SHAPE = {.name = "flat",
                            .vocab_size = 1000,
                            .n_tokens = 1300 * FILE_TOKENS,
                            .n_documents = 30,
                            .n_inputs = 1,
                            .metadata = "{}"};

typedef struct visitors {
    const tokmap_dataset *ds;
    pthread_barrier_t start;
    atomic_uint next_visitor, n_wrong, n_in_pieces;
} visitors;

static bool is_right(const uint16_t *tokens, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (tokens[i] != shape_id(&SHAPE, first + i))
            return false;
    return true;
}

/* The file, and a range that goes on into the next. */
static bool visit(const tokmap_dataset *ds, uint64_t file, atomic_uint *n_in_pieces)
{
    uint16_t copy[2 * FILE_TOKENS];
    const void *tokens = NULL;
    const uint64_t first = file * FILE_TOKENS, n = MIN(4, SHAPE.n_tokens - first);
    const tokmap_status status = tokmap_dataset_tokens(ds, first, FILE_TOKENS, &tokens);
    if (status == TOKMAP_IN_PIECES)
        atomic_fetch_add(n_in_pieces, 1);
    else if (status || !is_right(tokens, first, FILE_TOKENS))
        return false;
    return !tokmap_dataset_read(ds, first, n, copy, NULL) && is_right(copy, first, n);
}

/* Even ones go forwards, so that they meet at each file, odd ones in an order of their own. */
static void visit_all(visitors *v, uint64_t visitor)
{
    const uint64_t n_files = SHAPE.n_tokens / FILE_TOKENS;
    for (uint64_t i = 0; i < n_files; i++) {
        const uint64_t file = visitor % 2 ? (i * 7 + visitor * 131) % n_files : i;
        if (!visit(v->ds, file, &v->n_in_pieces))
            atomic_fetch_add(&v->n_wrong, 1);
    }
}

static void *run_visitor(void *context)
{
    visitors *v = context;
    const unsigned visitor = atomic_fetch_add(&v->next_visitor, 1);
    pthread_barrier_wait(&v->start);
    visit_all(v, visitor);
    return NULL;
}

static pid_t fork_visitor(visitors *v)
{
    const pid_t child = fork();
    if (child == 0) {
        atomic_store(&v->n_wrong, 0);
        visit_all(v, 1);
        _exit(atomic_load(&v->n_wrong) == 0 ? 0 : 1);
    }
    return child;
}

static void check_kept(const visitors *v, unsigned n_open_before)
{
    const unsigned n_maps = n_mapped_files("/cell-"), n_open = n_open_files();
    CHECK(n_maps <= MOST_MAPS && n_maps > MOST_MAPS - N_THREADS);
    CHECK(n_open <= n_open_before + MOST_FDS && n_open > n_open_before + MOST_FDS - N_THREADS);
    CHECK(atomic_load(&v->n_in_pieces) > 0);
}

static void one_round(const char *prefix, int n_forks)
{
    static visitors v;
    pthread_t threads[N_THREADS];
    pid_t children[N_FORKS];
    tokmap_dataset *ds = must_open(prefix);
    const unsigned n_open_before = n_open_files();
    v.ds = ds;
    v.next_visitor = v.n_wrong = v.n_in_pieces = 0;
    CHECK_INT(pthread_barrier_init(&v.start, NULL, N_THREADS + 1), 0);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, run_visitor, &v), 0);
    pthread_barrier_wait(&v.start);
    for (int i = 0; i < n_forks; i++)
        children[i] = fork_visitor(&v);
    for (int i = 0; i < N_THREADS; i++)
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < n_forks; i++)
        must_end(children[i]);
    CHECK_INT(atomic_load(&v.n_wrong), 0);
    check_kept(&v, n_open_before);
    pthread_barrier_destroy(&v.start);
    tokmap_dataset_close(ds);
    CHECK_EQ(n_mapped_files("/cell-"), 0);
    CHECK(n_open_files() < n_open_before);
}

static const char *store(void)
{
    static char flat[600], prefix[600];
    snprintf(flat, sizeof flat, "%s", check_path("flat"));
    snprintf(prefix, sizeof prefix, "%s", check_path("P"));
    must_store(&SHAPE, flat);
    joined_store_even(flat, prefix, "cell", FILE_TOKENS);
    return prefix;
}

TEST(many_threads_use_files_for_the_first_time_at_once)
{
    const char *prefix = store();
    for (int round = 0; round < 20; round++)
        one_round(prefix, 0);
}

TEST(children_that_are_forked_meanwhile_use_them_too)
{
    const char *prefix = store();
    for (int round = 0; round < 10; round++)
        one_round(prefix, N_FORKS);
}

/* Several datasets together keep no more than half of what the process may open. */
TEST(datasets_leave_room_for_other_files)
{
    enum {
        LIMIT = 64,
        N_DATASETS = 3
    };
    const char *prefix = store();
    struct rlimit before;
    visitors v[N_DATASETS] = {{0}};
    tokmap_dataset *ds[N_DATASETS];
    const unsigned n_open_before = n_open_files();
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit low = {LIMIT, before.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int i = 0; i < N_DATASETS; i++) {
        v[i].ds = ds[i] = must_open(prefix);
    }
    for (unsigned i = 0; i < N_DATASETS; i++)
        visit_all(&v[i], i);
    const unsigned n_open = n_open_files();
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < N_DATASETS; i++) {
        CHECK_INT(atomic_load(&v[i].n_wrong), 0);
        tokmap_dataset_close(ds[i]);
    }
    CHECK(n_open <= LIMIT / 2 + n_open_before);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_threads - a loader that two threads use at the same time says so, and one that they
 * use in turn does not. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/faults.h"
#include "loader/loader.h"
#include "loader/sweep.h"
#include "support/loader_corpus.h"

static corpus_shape data = {.name = "data", .n_tokens = 1003, .token_bytes = 2};
static tokmap_dataset *datasets[1];
static tokmap_loader_source source;

static tokmap_loader *open_loader(tokmap_io io)
{
    datasets[0] = data.ds;
    source = (tokmap_loader_source){.datasets = datasets, .n_datasets = 1};
    const tokmap_loader_options o = {LOADER_SIZES,         .sources = &source, .n_sources = 1,
                                     .sequence_length = 7, .batch_rows = 2,    .io = io};
    unsetenv("TOKMAP_IO");
    return corpus_open_loader(&o);
}

static void expect_next(tokmap_loader *l)
{
    const tokmap_batch b = corpus_next(l);
    for (uint32_t r = 0; r < b.n_rows; r++)
        corpus_check_tokens(&data, &b.rows[r]);
}

static void expect_shared(tokmap_status status, const tokmap_error *err)
{
    CHECK_INT(status, TOKMAP_ERR_ARGUMENT);
    CHECK_REFUSED(err->status, TOKMAP_ERR_ARGUMENT, *err, "two threads");
}

/* Every call that has a status, but the one that any thread may make. */
static void expect_all_refused(tokmap_loader *l)
{
    uint8_t state[TOKMAP_STATE_BYTES] = {0};
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_loader_source_info info = {.struct_size = sizeof info};
    tokmap_sample sample = TOKMAP_INIT(tokmap_sample);
    tokmap_error err;
    expect_shared(tokmap_loader_next(l, &b, &err), &err);
    expect_shared(tokmap_loader_seek(l, 0, &err), &err);
    expect_shared(tokmap_loader_set_batch(l, 0, 1, 3, &err), &err);
    expect_shared(tokmap_loader_save(l, state, &err), &err);
    expect_shared(tokmap_loader_restore(l, state, &err), &err);
    expect_shared(tokmap_loader_locate(l, 0, &sample, &err), &err);
    CHECK_INT(tokmap_loader_get_source(l, 0, &info), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_loader_save_at(l, 7, state, &err), TOKMAP_OK);
}

static void *next_in_thread(void *loader)
{
    static tokmap_status status;
    tokmap_batch b = {.struct_size = sizeof b};
    status = tokmap_loader_next(loader, &b, NULL);
    return &status;
}

/* Reads wait until the test has looked. */
static atomic_int held, n_held;

static int hold(int fd, uint64_t offset, size_t n_bytes)
{
    (void)fd, (void)offset, (void)n_bytes;
    n_held++;
    while (held)
        usleep(100);
    return 0;
}

TEST(a_call_while_another_thread_is_in_one_is_refused_and_harms_nothing)
{
    corpus_shape_open(&data);
    held = 1;
    fault.pread_hook = hold;
    tokmap_loader *l = open_loader(TOKMAP_IO_READ);
    pthread_t thread;
    void *status;
    CHECK(pthread_create(&thread, NULL, next_in_thread, l) == 0);
    while (n_held == 0 || !atomic_load(&l->user))
        usleep(100);
    expect_all_refused(l);
    held = 0;
    CHECK(pthread_join(thread, &status) == 0);
    CHECK_INT(*(tokmap_status *)status, TOKMAP_OK);
    CHECK_EQ(tokmap_loader_position(l), 2);
    expect_next(l); /* in turn */
    CHECK(pthread_create(&thread, NULL, next_in_thread, l) == 0);
    CHECK(pthread_join(thread, &status) == 0);
    CHECK_INT(*(tokmap_status *)status, TOKMAP_OK);
    expect_next(l);
    CHECK_EQ(tokmap_loader_position(l), 8);
    tokmap_loader_close(l);
    fault.pread_hook = NULL;
    corpus_shape_close(&data);
}

/* A thread that sweeps reads until it is stopped: no read may come after close has returned, which
 * frees what it reads. */
static atomic_int closed, n_after_close;

static int note_read(int fd, uint64_t offset, size_t n_bytes)
{
    (void)fd, (void)offset, (void)n_bytes;
    n_held++;
    n_after_close += closed;
    usleep(1000);
    return 0;
}

TEST(a_sweep_ends_when_it_is_closed)
{
    enum {
        N_SOURCES = 500 /* half a second */
    };
    static tokmap_i_source many[N_SOURCES];
    corpus_shape large = {.name = "large", .n_tokens = 5 << 20, .token_bytes = 4};
    corpus_shape_open(&large);
    datasets[0] = large.ds;
    source = (tokmap_loader_source){.datasets = datasets, .n_datasets = 1};
    const tokmap_loader_options o = {LOADER_SIZES,         .sources = &source, .n_sources = 1,
                                     .sequence_length = 7, .batch_rows = 2,    .io = TOKMAP_IO_MAP};
    tokmap_loader *l = corpus_open_loader(&o);
    for (uint32_t i = 0; i < N_SOURCES; i++)
        many[i] = l->samples.sources[0];
    n_held = 0;
    fault.pread_hook = note_read;
    tokmap_i_sweep *sweep = tokmap_i_sweep_start(many, N_SOURCES);
    CHECK(sweep != NULL);
    while (n_held == 0)
        usleep(100);
    tokmap_i_sweep_close(sweep, false);
    closed = 1;
    usleep(50000); /* for reads that must not come */
    fault.pread_hook = NULL;
    CHECK_INT(n_after_close, 0);
    CHECK(n_held < N_SOURCES);
    tokmap_loader_close(l);
    corpus_shape_close(&large);
}

/* Many threads in a tight loop: no step is returned twice, and each that was returned counts. */
enum {
    N_THREADS = 4,
    N_CALLS = 1000000
};

static uint8_t n_returned[N_THREADS * N_CALLS];
static atomic_uint n_overlaps;

static void *next_many_times(void *loader)
{
    tokmap_batch b = {.struct_size = sizeof b};
    for (int i = 0; i < N_CALLS; i++) {
        const tokmap_status status = tokmap_loader_next(loader, &b, NULL);
        if (status == TOKMAP_OK)
            n_returned[b.first_sample / 2]++;
        else
            CHECK_INT(status, TOKMAP_ERR_ARGUMENT);
        n_overlaps += status != TOKMAP_OK;
    }
    return NULL;
}

TEST(of_calls_that_overlap_one_succeeds)
{
    corpus_shape_open(&data);
    tokmap_loader *l = open_loader(TOKMAP_IO_MAP);
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, next_many_times, l) == 0);
    for (int i = 0; i < N_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    const uint64_t n_steps = tokmap_loader_position(l) / 2;
    CHECK_EQ(n_steps + n_overlaps, N_THREADS * N_CALLS);
    for (uint64_t i = 0; i < n_steps; i++)
        CHECK_INT(n_returned[i], 1);
    tokmap_loader_close(l);
    corpus_shape_close(&data);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_many - loaders of many sources and many phases: what open costs, in instructions and
 * in memory. */
#include <malloc.h>

#include "support/loader_corpus.h"
#include "system/platform_memory.h"

enum {
    MAX_SOURCES = 4096,
    MAX_PHASES = 100
};

static corpus_shape corpus = {.name = "many", .n_tokens = 500, .token_bytes = 2};
static tokmap_dataset *dataset;
static tokmap_loader_source sources[MAX_SOURCES];
static tokmap_loader_phase phases[MAX_PHASES];
static double weights[MAX_PHASES][3];

static tokmap_loader_options options_for(size_t n_sources)
{
    dataset = corpus.ds;
    for (size_t k = 0; k < n_sources; k++)
        sources[k] = (tokmap_loader_source){.datasets = &dataset, .n_datasets = 1, .weight = 1};
    return (tokmap_loader_options){LOADER_SIZES,           .sources = sources,
                                   .n_sources = n_sources, .sequence_length = 16,
                                   .batch_rows = 4,        .io = TOKMAP_IO_MAP};
}

/* ---- Memory ---- */

/* The first test: what others free and malloc keeps for the thread still counts as allocated. */
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)

static uint64_t n_allocated(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* resident_bytes are what open allocates, except for malloc's own overhead. Since glibc 2.41,
 * calloc takes small pieces that count as allocated from what the thread has freed. A thread that
 * reads ahead may allocate before this one looks again; so there are several attempts. */
static bool are_bytes(const tokmap_loader_options *o, uint64_t most, bool is_last)
{
    const uint64_t before = n_allocated();
    tokmap_loader *l = corpus_open_loader(o);
    const uint64_t n = n_allocated() - before;
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader_get_info(l, &info);
    const bool ok =
        info.resident_bytes <= n + 1000 && n <= info.resident_bytes * 1.1 + 1000 && n <= most;
    if (!ok && is_last)
        CHECK_FAIL("%" PRIu64 " resident bytes, %" PRIu64 " allocated, at most %" PRIu64,
                   info.resident_bytes, n, most);
    tokmap_loader_close(l);
    return ok;
}

static void check_bytes(const tokmap_loader_options *o, uint64_t most)
{
    for (int i = 4; i >= 0 && !are_bytes(o, most, i == 0); i--)
        ;
}

TEST(resident_bytes_are_what_open_allocates)
{
    if (check_sanitized())
        SKIP("sanitizers allocate otherwise");
    corpus_cut(&corpus, 30);
    corpus_shape_open(&corpus);
    tokmap_loader_options o = options_for(1);
    check_bytes(&o, 18432); /* half of it is a histogram of waits, and 4 KiB the sizes of files */
    o = options_for(MAX_SOURCES);
    check_bytes(&o, MAX_SOURCES * 2000);
    o.windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT;
    check_bytes(&o, MAX_SOURCES * 2000);
    o = options_for(MAX_SOURCES);
    o.io = TOKMAP_IO_POPULATE;
    check_bytes(&o, MAX_SOURCES * 2700);
    o.shuffle = TOKMAP_SHUFFLE_BLOCK;
    check_bytes(&o, MAX_SOURCES * 3200);
    o = options_for(3);
    o.io = TOKMAP_IO_POPULATE;
    o.windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT;
    o.row_parts = TOKMAP_ROW_DOCUMENTS;
    check_bytes(&o, 118000);
    o = options_for(3);
    o.phases = phases;
    o.n_phases = MAX_PHASES;
    o.phase_stride = sizeof(tokmap_loader_phase);
    for (size_t i = 0; i < MAX_PHASES; i++) {
        weights[i][0] = 1 + 1 / ((double)i + 0.37);
        weights[i][1] = 1 + (double)i / 7;
        weights[i][2] = 300 / (1000.0 - (double)i);
        phases[i] = (tokmap_loader_phase){1000 * (i + 1), weights[i]};
    }
    check_bytes(&o, 11200000);
    for (size_t i = 0; i < MAX_PHASES; i++)
        phases[i].weights = weights[i % 2];
    check_bytes(&o, 250000);
    corpus_shape_close(&corpus);
}

/* Rows of two tokens take no page each. */
TEST(short_rows_that_are_read_ahead_take_little_memory)
{
    corpus_cut(&corpus, 30);
    corpus_shape_open(&corpus);
    tokmap_loader_options o = options_for(1);
    tokmap_error err;
    tokmap_loader *l;
    o.io = TOKMAP_IO_READ;
    o.sequence_length = 1;
    o.batch_rows = 65536;
    o.look_ahead = 1;
    l = corpus_open_loader(&o);
    tokmap_loader_info info = {.struct_size = sizeof info};
    tokmap_loader_get_info(l, &info);
    CHECK(info.resident_bytes < 32000000);
    tokmap_loader_close(l);
    o.batch_rows = 1 << 24;
    o.look_ahead = 2;
    o.io = TOKMAP_IO_DIRECT;
    if (tokmap_i_memory_available() > 500000000000)
        SKIP("this machine has the memory for all that may be read ahead");
    const tokmap_status status = tokmap_loader_open(&l, &o, &err);
    if (!status)
        SKIP("no direct reads here");
    CHECK_INT(status, TOKMAP_ERR_MEMORY);
    corpus_shape_close(&corpus);
}

#endif

/* ---- Instructions ---- */

static void open_many(size_t n_sources)
{
    corpus_cut(&corpus, 30);
    corpus_shape_open(&corpus);
    const tokmap_loader_options o = options_for(n_sources);
    tokmap_loader_close(corpus_open_loader(&o));
    corpus_shape_close(&corpus);
}

TEST(open_1024)
{
    open_many(1024);
}

TEST(open_2048)
{
    open_many(2048);
}

TEST(open_4096)
{
    open_many(4096);
}

/* Of a test of this program. 0: there is no valgrind. */
static uint64_t n_instructions(const char *test)
{
    char command[1000], line[1000];
    uint64_t n = 0;
    snprintf(command, sizeof command,
             "valgrind --tool=callgrind --callgrind-out-file=%s /proc/%d/exe %s 2>&1",
             check_path("callgrind.out"), (int)getpid(), test);
    FILE *output = popen(command, "r");
    CHECK(output);
    while (fgets(line, sizeof line, output)) {
        const char *at = strstr(line, "Collected : ");
        if (at)
            n = strtoull(at + strlen("Collected : "), NULL, 10);
    }
    pclose(output);
    return n;
}

/* What 2,048 more sources cost, after what 1,024 more cost: twice as much, and four times where
 * each is compared with all before it. */
TEST(open_takes_as_long_for_each_of_many_sources)
{
    if (check_sanitized())
        SKIP("sanitizers count along");
    const uint64_t n1 = n_instructions("open_1024");
    if (n1 == 0)
        SKIP("there is no valgrind, which counts instructions");
    const uint64_t n2 = n_instructions("open_2048"), n4 = n_instructions("open_4096");
    if ((n4 - n2) * 10 > (n2 - n1) * 26)
        CHECK_FAIL("%" PRIu64 ", %" PRIu64 " and %" PRIu64 " instructions", n1, n2, n4);
}

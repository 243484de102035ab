/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are read whole: each row has been asked for before its step is planned, nothing is
 * asked for twice, and hardly anything that is not needed. Blocks that are in the map: no row is
 * handed out before it is. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "loader/block_ahead.h"
#include "loader/loader.h"
#include "support/loader_corpus.h"

/* ---- In front of the system: which bytes are asked for ---- */

enum {
    MAX_BYTES = 1 << 20
};

static struct {
    tokmap_dataset *datasets[3];
    uint8_t asked[3][MAX_BYTES]; /* how often */
    uint64_t n_bytes, n_calls, largest;
    bool armed;
} seen;

/* A file of dataset d was asked for, at these bytes. Bytes are counted as in the flat dataset. */
static void see(int d, const tokmap_i_token_file *file, off_t offset, off_t n_bytes)
{
    const off_t first = (off_t)(2 * file->first_token) + offset - (off_t)file->token_offset;
    for (off_t i = MAX(first, 0); i < first + n_bytes && i < MAX_BYTES; i++)
        seen.asked[d][i]++;
    seen.n_bytes += (uint64_t)n_bytes;
    seen.largest = MAX(seen.largest, (uint64_t)n_bytes);
    seen.n_calls++;
}

int posix_fadvise64(int fd, off_t offset, off_t n_bytes, int advice)
{
    for (int d = 0; seen.armed && advice == POSIX_FADV_WILLNEED && d < 3; d++) {
        const tokmap_dataset *ds = seen.datasets[d];
        for (uint64_t k = 0; ds && k < ds->n_files; k++)
            if (tokmap_i_token_file_fd(&ds->files[k]) == fd)
                see(d, &ds->files[k], offset, n_bytes);
    }
    return 0;
}

/* ---- In front of the system: what is faulted into maps ---- */

enum {
    MAX_POPULATED = 8192
};

static struct {
    uintptr_t begin[MAX_POPULATED], end[MAX_POPULATED];
    atomic_uint n; /* a range is there before it is counted */
    size_t most;   /* calls for more bytes fail; 0: none */
} populated;

int madvise(void *at, size_t n_bytes, int advice)
{
    if (advice != MADV_POPULATE_READ)
        return (int)syscall(SYS_madvise, at, n_bytes, advice);
    if (populated.most && n_bytes > populated.most) {
        errno = EFAULT;
        return -1;
    }
    const int result = (int)syscall(SYS_madvise, at, n_bytes, advice);
    const unsigned n = atomic_load(&populated.n);
    CHECK(n < MAX_POPULATED);
    populated.begin[n] = (uintptr_t)at;
    populated.end[n] = (uintptr_t)at + n_bytes;
    atomic_store(&populated.n, n + 1);
    return result;
}

static bool is_populated(const tokmap_row *row)
{
    const uintptr_t begin = (uintptr_t)row->tokens, end = begin + row->n_tokens * row->token_bytes;
    for (unsigned i = atomic_load(&populated.n); i > 0; i--)
        if (populated.begin[i - 1] <= begin && end <= populated.end[i - 1])
            return true;
    return false;
}

static void forget_seen(void)
{
    memset(seen.asked, 0, sizeof seen.asked);
    seen.n_bytes = seen.n_calls = seen.largest = 0;
}

/* ---- Loaders, of which only the order is used ---- */

static corpus_shape shapes[3] = {
    {.name = "a", .n_tokens = 40000, .token_bytes = 2},
    {.name = "b", .n_tokens = 7000, .token_bytes = 2},
    {.name = "c", .n_tokens = 20000, .token_bytes = 2, .n_segments = 40}};

static void open_shapes(void)
{
    for (int i = 0; i < 3; i++) {
        corpus_cut(&shapes[i], 90);
        corpus_shape_open(&shapes[i]);
        seen.datasets[i] = shapes[i].ds;
    }
}

static void close_shapes(void)
{
    for (int i = 0; i < 3; i++) {
        seen.datasets[i] = NULL;
        corpus_shape_close(&shapes[i]);
    }
}

typedef struct variant {
    tokmap_windows windows;
    int random_offset;
    uint32_t n_sources; /* 1: a and b are one source; 2: and c is another */
    uint32_t length, block, group;
} variant;

static const variant variants[] = {
    {.n_sources = 1, .length = 64, .block = 16, .group = 4},
    {.n_sources = 1, .length = 64, .block = 16, .group = 4, .random_offset = 1},
    {.n_sources = 1, .length = 64, .block = 16, .group = 4, .windows = 1},
    {.n_sources = 2, .length = 50, .block = 10, .group = 3},
    {.n_sources = 2, .length = 33, .block = 7, .group = 5, .windows = 1},
    {.n_sources = 2, .length = 100, .block = 1000, .group = 2}, /* one block is all */
    {.n_sources = 1, .length = 64, .block = 1, .group = 1},
};

static tokmap_loader *open_variant(const variant *v)
{
    static tokmap_dataset *first[2], *second[1];
    first[0] = shapes[0].ds;
    first[1] = shapes[1].ds;
    second[0] = shapes[2].ds;
    const tokmap_loader_source sources[] = {{.datasets = first, .n_datasets = 2, .weight = 3},
                                            {.datasets = second, .n_datasets = 1, .weight = 1}};
    const tokmap_loader_options o = {LOADER_SIZES,
                                     .sources = sources,
                                     .n_sources = v->n_sources,
                                     .sequence_length = v->length,
                                     .batch_rows = 4,
                                     .seed = 5,
                                     .shuffle = TOKMAP_SHUFFLE_BLOCK,
                                     .windows = v->windows,
                                     .random_offset = v->random_offset,
                                     .block_windows = v->block,
                                     .group_blocks = v->group,
                                     .io = TOKMAP_IO_MAP};
    return corpus_open_loader(&o);
}

static int dataset_of(const tokmap_sample *at)
{
    return at->source == 1 ? 2 : (int)at->dataset;
}

/* Tokens after the end are those at the beginning, which are copied when they are needed. */
static void check_asked(const tokmap_sample *at)
{
    const int d = dataset_of(at);
    for (uint32_t i = 0; i < at->n_tokens && at->first_token + i < shapes[d].n_tokens; i++)
        for (uint64_t b = 0; b < 2; b++)
            if (!seen.asked[d][2 * (at->first_token + i) + b])
                CHECK_FAIL("dataset %d, token %d of a row was not asked for", d, (int)i);
}

static void walk(tokmap_loader *l, tokmap_i_block_ahead *a, uint64_t from, uint64_t to)
{
    tokmap_error err;
    for (uint64_t g = from; g < to; g++) {
        tokmap_sample at = TOKMAP_INIT(tokmap_sample);
        if (g % 4 == 0)
            tokmap_i_block_ahead_advance(a, g);
        CHECK_OK(tokmap_loader_locate(l, g, &at, &err), err);
        check_asked(&at);
    }
}

static uint64_t n_windows(const tokmap_loader *l)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < l->samples.n_sources; k++)
        n += l->samples.sources[k].windows.n_windows;
    return n;
}

TEST(every_row_has_been_asked_for_in_time)
{
    open_shapes();
    seen.armed = true;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        tokmap_loader *l = open_variant(&variants[i]);
        tokmap_i_block_ahead a;
        forget_seen();
        CHECK(tokmap_i_block_ahead_open(&a, &l->sampler, l->samples.n_sources));
        const uint64_t n = n_windows(l);
        walk(l, &a, 0, 2 * n + 100);
        for (int jump = 0; jump < 20; jump++) { /* what was asked for before a jump is gone */
            const uint64_t at = corpus_any((uint32_t)(3 * n)) / 4 * 4;
            tokmap_i_block_ahead_close(&a);
            CHECK(tokmap_i_block_ahead_open(&a, &l->sampler, l->samples.n_sources));
            forget_seen();
            walk(l, &a, at, at + n / 2);
        }
        tokmap_i_block_ahead_close(&a);
        tokmap_loader_close(l);
    }
    seen.armed = false;
    close_shapes();
}

TEST(a_seek_asks_for_the_group_it_leads_to)
{
    open_shapes();
    seen.armed = true;
    const variant v = {.n_sources = 2, .length = 20, .block = 8, .group = 3};
    tokmap_loader *l = open_variant(&v);
    tokmap_i_block_ahead a;
    CHECK(tokmap_i_block_ahead_open(&a, &l->sampler, l->samples.n_sources));
    walk(l, &a, 0, 1000);
    for (int jump = 0; jump < 200; jump++) {
        const uint64_t at = corpus_any(5000) / 4 * 4;
        forget_seen();
        a.n_asked[0] = a.n_asked[1] = corpus_any(2) ? 0 : UINT64_MAX / 2; /* far from it */
        walk(l, &a, at, at + 200);
    }
    tokmap_i_block_ahead_close(&a);
    tokmap_loader_close(l);
    seen.armed = false;
    close_shapes();
}

TEST(an_epoch_is_asked_for_once_in_whole_blocks)
{
    open_shapes();
    seen.armed = true;
    const variant v = {.n_sources = 1, .length = 64, .block = 16, .group = 4};
    tokmap_loader *l = open_variant(&v);
    tokmap_i_block_ahead a;
    forget_seen();
    CHECK(tokmap_i_block_ahead_open(&a, &l->sampler, l->samples.n_sources));
    const uint64_t n = n_windows(l), n_blocks = div_up(n, v.block);
    for (uint64_t g = 0; g < n; g += 4)
        tokmap_i_block_ahead_advance(&a, g);
    CHECK_EQ(a.n_asked[0], (n - 1) / 4 * 4 / v.block + v.group + 8);
    /* A block is a call, or two if it continues in the next dataset or after the last window. */
    CHECK(seen.n_calls >= a.n_asked[0] && seen.n_calls <= a.n_asked[0] + 8);
    const uint64_t block_bytes = 2 * (v.block * v.length + 1);
    CHECK(seen.n_bytes <= a.n_asked[0] * block_bytes);
    CHECK_EQ(seen.largest, block_bytes);
    CHECK(seen.n_bytes < 2 * (n + (v.group + 8) * v.block) * v.length * 101 / 100);
    CHECK(a.n_asked[0] > n_blocks);
    tokmap_i_block_ahead_close(&a);
    tokmap_loader_close(l);
    seen.armed = false;
    close_shapes();
}

/* The loader itself, from the page cache, in every way that it takes. */
TEST(the_loader_asks_for_blocks_and_not_for_rows)
{
    open_shapes();
    tokmap_dataset *list[] = {shapes[0].ds};
    const tokmap_loader_source source = {.datasets = list, .n_datasets = 1, .weight = 1};
    tokmap_loader_options o = {LOADER_SIZES,        .sources = &source,
                               .n_sources = 1,      .sequence_length = 64,
                               .batch_rows = 4,     .shuffle = TOKMAP_SHUFFLE_BLOCK,
                               .block_windows = 32, .group_blocks = 4};
    for (int i = 0; i < 4; i++) {
        const uint32_t ranks = i % 2 ? 9 : 1;
        tokmap_loader *l;
        tokmap_error err;
        forget_seen();
        o.n_ranks = ranks;
        o.io = i < 2 ? TOKMAP_IO_POPULATE : TOKMAP_IO_READ;
        seen.armed = true;
        CHECK_INT(tokmap_loader_open(&l, &o, &err), TOKMAP_OK);
        for (int step = 0; step < 20; step++) {
            tokmap_batch b = corpus_next(l);
            for (uint32_t r = 0; r < b.n_rows; r++)
                corpus_check_tokens(&shapes[0], &b.rows[r]);
        }
        tokmap_loader_close(l); /* its thread is gone */
        seen.armed = false;
        CHECK(ranks == 1 ? seen.largest == 2 * (32 * 64 + 1) : seen.largest == 2 * 65);
    }
    close_shapes();
}

/* An epoch of 2,000 rows in steps of 4; returns how many calls faulted something in. */
static unsigned count_populated(corpus_shape *shape, size_t most_bytes, bool offset)
{
    tokmap_dataset *list[] = {shape->ds};
    const tokmap_loader_source source = {.datasets = list, .n_datasets = 1, .weight = 1};
    const tokmap_loader_options o = {LOADER_SIZES,
                                     .sources = &source,
                                     .n_sources = 1,
                                     .sequence_length = 500,
                                     .batch_rows = 4,
                                     .shuffle = TOKMAP_SHUFFLE_BLOCK,
                                     .random_offset = offset,
                                     .block_windows = 32,
                                     .group_blocks = 8,
                                     .io = TOKMAP_IO_POPULATE};
    uint32_t n_copied = 0; /* they are in two files, or wrap around */
    populated.most = most_bytes;
    atomic_store(&populated.n, 0);
    tokmap_loader *l = corpus_open_loader(&o);
    for (int step = 0; step < 500; step++) {
        tokmap_batch b = corpus_next(l);
        for (uint32_t r = 0; r < b.n_rows; r++) {
            corpus_check_tokens(shape, &b.rows[r]);
            const void *in_map = NULL;
            tokmap_dataset_tokens(shape->ds, b.rows[r].first_token, b.rows[r].n_tokens, &in_map);
            n_copied += b.rows[r].tokens != in_map;
            CHECK(b.rows[r].tokens != in_map || is_populated(&b.rows[r]));
        }
    }
    tokmap_loader_close(l);
    CHECK(n_copied <= shape->n_segments + 1);
    return atomic_load(&populated.n);
}

/* Whether the tokens were faulted in, or are not in the map of one file. */
static bool is_there(const tokmap_dataset *ds, uint64_t first_token, uint32_t n_tokens)
{
    tokmap_row row = {.n_tokens = n_tokens, .token_bytes = 4};
    return tokmap_dataset_tokens(ds, first_token, n_tokens, &row.tokens) || is_populated(&row);
}

/* Checks the rows near a position that are said to be in the map, and counts them. */
static uint64_t check_mapped(tokmap_loader *l, const tokmap_i_block_ahead *a, uint64_t at)
{
    uint64_t n = 0;
    for (uint64_t g = at - MIN(at, 100); g < at + 100; g += 3) {
        tokmap_sample s = TOKMAP_INIT(tokmap_sample);
        tokmap_error err;
        CHECK_OK(tokmap_loader_locate(l, g, &s, &err), err);
        if (!tokmap_i_block_ahead_is_mapped(a, g, &s))
            continue;
        n++;
        for (size_t i = 0; i < s.n_pieces; i++)
            CHECK(is_there(l->samples.datasets[0], s.pieces[i].first_token, s.pieces[i].n_tokens));
        CHECK(s.n_pieces > 0 || is_there(l->samples.datasets[0], s.first_token, s.n_tokens));
    }
    return n;
}

/* Steps of so many rows, and now and then back. Returns how many rows were in the map. */
static uint64_t walk_mapped(tokmap_loader *l, uint32_t n_rows)
{
    tokmap_i_block_ahead a;
    uint64_t at = corpus_any(3000), n = 0;
    CHECK(tokmap_i_block_ahead_open(&a, &l->sampler, l->samples.n_sources));
    a.maps = true;
    atomic_store(&populated.n, 0);
    for (int step = 0; step < 30; step++, at += n_rows) {
        const uint64_t back = corpus_any(6) == 0 ? corpus_any(400) : 0;
        at -= MIN(at, back);
        tokmap_i_block_ahead_advance(&a, at);
        n += check_mapped(l, &a, at);
    }
    tokmap_i_block_ahead_close(&a);
    return n;
}

/* Whatever the steps are, and wherever they lead, what is said to be in the map was faulted in.
 * drops: the view lacks one document in so many; 0: there is no view. */
static void check_walks(uint32_t n_segments, uint32_t drops)
{
    static const uint32_t steps[] = {1, 4, 30, 90, 300};
    corpus_shape shape = {
        .name = "w", .n_tokens = 1000001, .token_bytes = 4, .n_segments = n_segments};
    uint8_t keep[CORPUS_MAX_DOCUMENTS];
    tokmap_view *view = NULL;
    tokmap_error err;
    corpus_cut(&shape, 5000);
    corpus_shape_open(&shape);
    for (uint32_t d = 0; d < shape.n_documents; d++)
        keep[d] = drops == 0 || d % drops != 0;
    const tokmap_view_options of_view = {
        .struct_size = sizeof of_view, .keep = keep, .n_keep = shape.n_documents};
    if (drops > 0)
        CHECK_OK(tokmap_view_open(&view, shape.ds, &of_view, &err), err);
    tokmap_dataset *list[] = {shape.ds};
    tokmap_view *views[] = {view};
    const tokmap_loader_source source = {
        .datasets = list, .n_datasets = 1, .weight = 1, .views = views};
    const tokmap_loader_options o = {LOADER_SIZES,
                                     .sources = &source,
                                     .n_sources = 1,
                                     .sequence_length = 1024,
                                     .batch_rows = 4,
                                     .random_offset = 1,
                                     .shuffle = TOKMAP_SHUFFLE_BLOCK,
                                     .block_windows = 4,
                                     .group_blocks = 10,
                                     .io = TOKMAP_IO_MAP};
    tokmap_loader *l = corpus_open_loader(&o);
    uint64_t n = 0;
    for (size_t i = 0; i < 5 * 8; i++)
        n += walk_mapped(l, steps[i % 5]);
    CHECK(n > 5000);
    tokmap_loader_close(l);
    tokmap_view_close(view);
    corpus_shape_close(&shape);
}

TEST(what_is_in_the_map_was_faulted_in)
{
    check_walks(2, 0);
    check_walks(0, 2);
    check_walks(3, 3);
}

TEST(blocks_are_faulted_in_and_not_rows)
{
    corpus_shape flat = {.name = "f", .n_tokens = 1000001, .token_bytes = 4},
                 joined = {.name = "j", .n_tokens = 1000001, .token_bytes = 4, .n_segments = 3};
    corpus_shape_open(&flat);
    corpus_shape_open(&joined);
    for (int offset = 0; offset < 2; offset++) {
        /* Rows of the first group are faulted in until its eight blocks are; then a block at a
         * time: 63 of an epoch, and those that are ahead. */
        CHECK(count_populated(&flat, 0, offset) < 200);
        CHECK(count_populated(&joined, 0, offset) < 200);
        /* Where a block cannot be faulted in, rows are. */
        CHECK(count_populated(&flat, 16384, offset) >= 1900);
        CHECK(count_populated(&joined, 16384, offset) >= 1900);
    }
    corpus_shape_close(&flat);
    corpus_shape_close(&joined);
}

/* ---- Memory ---- */

static const char *meminfo; /* in place of that of the system, if set */

int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    const int mode = flags & O_CREAT ? va_arg(list, int) : 0;
    va_end(list);
    if (meminfo && strcmp(path, "/proc/meminfo") == 0)
        path = meminfo;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Whether blocks are read whole if the system has so much memory. */
static bool reads_whole(tokmap_loader_options o, const char *available)
{
    static char path[700];
    snprintf(path, sizeof path, "%s", check_path("meminfo"));
    FILE *f = fopen(path, "w");
    CHECK(f && fprintf(f, "MemTotal: 1 kB\nMemAvailable: %s kB\n", available) > 0);
    CHECK_INT(fclose(f), 0);
    meminfo = path;
    tokmap_loader *l = corpus_open_loader(&o);
    meminfo = NULL;
    const bool whole = l->reads_blocks;
    tokmap_loader_close(l);
    return whole;
}

/* Else most pages would be dropped before a row needs them. */
TEST(blocks_are_read_whole_if_two_groups_fit_into_memory)
{
    corpus_shape shape = {.name = "m", .n_tokens = 100000, .token_bytes = 4};
    corpus_cut(&shape, 200);
    corpus_shape_open(&shape);
    tokmap_dataset *list[] = {shape.ds};
    const tokmap_loader_source source = {.datasets = list, .n_datasets = 1};
    tokmap_loader_options o = {LOADER_SIZES,
                               .sources = &source,
                               .n_sources = 1,
                               .sequence_length = 1000,
                               .batch_rows = 2,
                               .shuffle = TOKMAP_SHUFFLE_BLOCK,
                               .block_windows = 5,
                               .group_blocks = 5,
                               .io = TOKMAP_IO_POPULATE};
    CHECK(reads_whole(o, "400"));
    CHECK(reads_whole(o, "230")); /* two groups are 196 KiB, and an eighth is left to others */
    CHECK(!reads_whole(o, "220"));
    o.group_blocks = 0; /* 64: more than there are data, which are 391 KiB */
    CHECK(reads_whole(o, "450"));
    CHECK(!reads_whole(o, "440"));
    o.windows = TOKMAP_WINDOWS_BEST_FIT;
    o.block_windows = 0;
    CHECK(reads_whole(o, "450"));
    CHECK(!reads_whole(o, "440"));
    o.shuffle = TOKMAP_SHUFFLE_FULL;
    CHECK(!reads_whole(o, "450"));
    corpus_shape_close(&shape);
}

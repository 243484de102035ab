/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_joined - a loader over a joined dataset gives what it gives over the flat dataset of
 * the same tokens, and names the token file that is missing, of another size, or cut. */
#include <dirent.h>
#include <errno.h>
#include <time.h>

#include "base/base.h"
#include "dataset/token_files.h"
#include "support/bad_days.h"
#include "support/joined.h"
#include "support/loader_corpus.h"

enum {
    N_TOKENS = 6000,
    LENGTH = 19,
    N_ROWS = 5,
    N_WAYS = 4 /* of reading, from TOKMAP_IO_MAP on */
};

static corpus_shape flat = {.name = "flat", .n_tokens = N_TOKENS, .token_bytes = 2};
static corpus_shape joined = {.name = "joined", .n_tokens = N_TOKENS, .token_bytes = 2};
static corpus_shape small = {.name = "small", .n_tokens = 700, .token_bytes = 2};
static corpus_shape wide = {.name = "wide", .n_tokens = 900, .token_bytes = 4};
static corpus_shape wide_joined = {
    .name = "wide-joined", .n_tokens = 900, .token_bytes = 4, .n_segments = 41};

static void open_all(uint32_t n_segments)
{
    unsetenv("TOKMAP_IO");
    corpus_random_state = 1;
    corpus_cut(&flat, 40);
    corpus_cut(&small, 40);
    corpus_cut(&wide, 40);
    joined.n_documents = flat.n_documents;
    wide_joined.n_documents = wide.n_documents;
    memcpy(joined.ends, flat.ends, sizeof flat.ends);
    memcpy(wide_joined.ends, wide.ends, sizeof wide.ends);
    joined.n_segments = n_segments;
    corpus_shape_open(&flat);
    corpus_shape_open(&joined);
    corpus_shape_open(&small);
    corpus_shape_open(&wide);
    corpus_shape_open(&wide_joined);
}

static void close_all(void)
{
    corpus_shape *all[] = {&flat, &joined, &small, &wide, &wide_joined};
    for (int i = 0; i < 5; i++)
        corpus_shape_close(all[i]);
}

static const char *piece_path(uint32_t i)
{
    static char path[700];
    snprintf(path, sizeof path, "%s-%04u.bin", joined.path, i);
    return path;
}

/* ---- Loaders ---- */

static tokmap_loader_options options_of(int mode, tokmap_io io)
{
    tokmap_loader_options o = {LOADER_SIZES,         .sequence_length = LENGTH,
                               .batch_rows = N_ROWS, .row_parts = ALL_PARTS,
                               .seed = 12,           .io = io,
                               .look_ahead = 3};
    corpus_set_mode(&o, mode);
    return o;
}

/* Two sources, of which the first has two datasets: all flat, or two of the three joined. */
static tokmap_loader *open_mixture(tokmap_loader_options o, bool is_joined)
{
    static tokmap_dataset *lists[2][3];
    tokmap_dataset **list = lists[is_joined];
    list[0] = is_joined ? joined.ds : flat.ds;
    list[1] = small.ds;
    list[2] = is_joined ? wide_joined.ds : wide.ds;
    const tokmap_loader_source sources[] = {
        {.datasets = list, .n_datasets = 2, .weight = 2},
        {.datasets = list + 2, .n_datasets = 1, .weight = 1, .masked = 1}};
    o.sources = sources;
    o.n_sources = 2;
    return corpus_open_loader(&o);
}

static tokmap_loader *open_one(tokmap_loader_options o, tokmap_dataset *ds)
{
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    o.sources = &source;
    o.n_sources = 1;
    return corpus_open_loader(&o);
}

static tokmap_io io_of(const tokmap_loader *l)
{
    tokmap_loader_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_loader_get_info(l, &info), TOKMAP_OK);
    return info.io;
}

static bool same_bytes(const void *a, const void *b, size_t n_bytes)
{
    return (!a && !b) || (a && b && memcmp(a, b, n_bytes) == 0);
}

static bool same_row(const tokmap_row *a, const tokmap_row *b)
{
    return a->n_tokens == b->n_tokens && a->token_bytes == b->token_bytes &&
           a->source == b->source && a->dataset == b->dataset && a->epoch == b->epoch &&
           a->window == b->window && a->first_token == b->first_token &&
           a->n_documents == b->n_documents && a->longest_document == b->longest_document &&
           same_bytes(a->tokens, b->tokens, (size_t)a->n_tokens * a->token_bytes) &&
           same_bytes(a->cu_seqlens, b->cu_seqlens, 4 * (a->n_documents + 1ull)) &&
           same_bytes(a->position_ids, b->position_ids, 4 * LENGTH) &&
           same_bytes(a->document_ids, b->document_ids, 4 * LENGTH) &&
           same_bytes(a->loss_mask, b->loss_mask, LENGTH);
}

/* Steps of both loaders. Without checks, so for any thread: false if they differ. */
static bool same_steps(tokmap_loader *a, tokmap_loader *b, int n_steps)
{
    for (int i = 0; i < n_steps; i++) {
        tokmap_batch x = {.struct_size = sizeof x}, y = {.struct_size = sizeof y};
        if (tokmap_loader_next(a, &x, NULL) || tokmap_loader_next(b, &y, NULL) ||
            x.n_rows != y.n_rows || x.first_sample != y.first_sample)
            return false;
        for (uint32_t r = 0; r < x.n_rows; r++)
            if (!same_row(&x.rows[r], &y.rows[r]))
                return false;
    }
    return true;
}

/* ---- The same rows ---- */

TEST(rows_are_those_of_the_flat_dataset)
{
    static const uint32_t n_segments[] = {1, 2, 9, 80, 300, 1500};
    for (size_t k = 0; k < sizeof n_segments / sizeof *n_segments; k++) {
        open_all(n_segments[k]);
        for (int mode = 0; mode < CORPUS_MODES; mode++) {
            for (int way = 0; way < N_WAYS; way++) {
                const tokmap_loader_options o = options_of(mode, (tokmap_io)(TOKMAP_IO_MAP + way));
                tokmap_loader *a = open_mixture(options_of(mode, TOKMAP_IO_MAP), false);
                tokmap_loader *b = open_mixture(o, true);
                CHECK(same_steps(a, b, check_long() ? 600 : 100));
                tokmap_loader_close(a);
                tokmap_loader_close(b);
            }
        }
        close_all();
    }
}

/* Longer than most pieces, so that rows cross many of them, and all of them. */
TEST(long_rows_cross_many_files)
{
    open_all(400);
    for (int way = 0; way < N_WAYS; way++) {
        tokmap_loader_options o = options_of(4, (tokmap_io)(TOKMAP_IO_MAP + way));
        o.row_parts = 0;
        o.drop_behind = way % 2;
        for (uint32_t length = 200; length < N_TOKENS; length += 5799) {
            o.sequence_length = length;
            tokmap_loader *a = open_one(o, flat.ds), *b = open_one(o, joined.ds);
            CHECK(same_steps(a, b, 30));
            CHECK_INT(tokmap_loader_set_batch(a, 1, 2, 9, NULL), TOKMAP_OK);
            CHECK_INT(tokmap_loader_set_batch(b, 1, 2, 9, NULL), TOKMAP_OK);
            CHECK(same_steps(a, b, 10));
            tokmap_loader_close(a);
            tokmap_loader_close(b);
        }
    }
    close_all();
}

/* A row in the map of one file is not copied. */
TEST(rows_of_one_file_are_in_its_map)
{
    open_all(9);
    const tokmap_loader_options o = options_of(0, TOKMAP_IO_MAP);
    tokmap_loader *l = open_one(o, joined.ds);
    uint32_t n_lent = 0, n_rows = 0;
    for (; n_rows < N_TOKENS / LENGTH - N_ROWS; n_rows += N_ROWS) {
        tokmap_batch b = corpus_next(l);
        for (uint32_t r = 0; r < b.n_rows; r++) {
            const tokmap_row *row = &b.rows[r];
            const void *tokens = NULL;
            const tokmap_status status =
                tokmap_dataset_tokens(joined.ds, row->first_token, row->n_tokens, &tokens);
            CHECK(status == TOKMAP_OK ? tokens == row->tokens : status == TOKMAP_IN_PIECES);
            n_lent += status == TOKMAP_OK;
        }
    }
    CHECK(n_lent < n_rows && n_lent + 9 > n_rows);
    tokmap_loader_close(l);
    close_all();
}

TEST(a_state_moves_between_a_flat_and_a_joined_dataset)
{
    open_all(80);
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        uint8_t of_flat[TOKMAP_STATE_BYTES], of_joined[TOKMAP_STATE_BYTES];
        const tokmap_loader_options o = options_of(mode, TOKMAP_IO_MAP);
        tokmap_loader *a = open_mixture(o, false), *b = open_mixture(o, true);
        CHECK_INT(tokmap_loader_seek(a, 7 * N_ROWS, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_save(a, of_flat, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_restore(b, of_flat, NULL), TOKMAP_OK);
        CHECK(same_steps(a, b, 20));
        CHECK_INT(tokmap_loader_save(b, of_joined, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_save(a, of_flat, NULL), TOKMAP_OK);
        CHECK(memcmp(of_flat, of_joined, sizeof of_flat) == 0);
        CHECK_INT(tokmap_loader_seek(a, 0, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_restore(a, of_joined, NULL), TOKMAP_OK);
        CHECK(same_steps(a, b, 20));
        tokmap_loader_close(a);
        tokmap_loader_close(b);
    }
    close_all();
}

/* ---- Limits ---- */

/* Those that name a piece. */
static uint32_t count_descriptors(void)
{
    uint32_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir != NULL);
    for (const struct dirent *e; (e = readdir(dir));) {
        char link[64], path[900];
        snprintf(link, sizeof link, "/proc/self/fd/%.20s", e->d_name);
        const ssize_t n_bytes = readlink(link, path, sizeof path - 1);
        path[MAX(n_bytes, 0)] = 0;
        n += strncmp(path, piece_path(0), strlen(joined.path) + 1) == 0;
    }
    closedir(dir);
    return n;
}

static tokmap_io expected_io(tokmap_io wanted, tokmap_io of_flat, uint32_t n_segments)
{
    if (wanted == TOKMAP_IO_DIRECT && of_flat == TOKMAP_IO_DIRECT && n_segments <= 256)
        return TOKMAP_IO_DIRECT;
    if (wanted == TOKMAP_IO_DIRECT || wanted == TOKMAP_IO_POPULATE)
        return n_segments <= 1024 ? TOKMAP_IO_POPULATE : TOKMAP_IO_READ;
    return wanted;
}

TEST(the_number_of_files_decides_how_they_are_read)
{
    static const uint32_t n_segments[] = {256, 257, 1024, 1025, 2500};
    for (size_t k = 0; k < sizeof n_segments / sizeof *n_segments; k++) {
        open_all(n_segments[k]);
        for (int way = 0; way < N_WAYS; way++) {
            const tokmap_loader_options o = options_of(1, (tokmap_io)(TOKMAP_IO_MAP + way));
            tokmap_loader *a = open_one(o, flat.ds), *b = open_one(o, joined.ds);
            CHECK_INT(io_of(b), expected_io(o.io, io_of(a), n_segments[k]));
            CHECK(same_steps(a, b, 2 * N_TOKENS / LENGTH / N_ROWS));
            tokmap_loader_close(a);
            tokmap_loader_close(b);
        }
        CHECK(count_descriptors() <= 256);
        CHECK(n_mapped_files("/joined-") <= 1024);
        CHECK(n_mapped_files("/joined-") > 0);
        close_all();
    }
}

/* AUTO looks at files in every part of the dataset. */
TEST(data_in_memory_are_used_where_they_are)
{
    open_all(1500);
    tokmap_loader *l = open_one(options_of(1, TOKMAP_IO_AUTO), joined.ds);
    CHECK_INT(io_of(l), corpus_way_in_memory());
    tokmap_loader_close(l);
    close_all();
}

/* ---- Damage ---- */

typedef enum damage {
    MISSING,
    SHORTER,
    LONGER,
    SWAPPED, /* with the next piece, which has another size */
    N_DAMAGES
} damage;

enum {
    BAD = 17 /* a piece of many tokens */
};

static void rename_piece(uint32_t from, uint32_t to)
{
    char old[700];
    snprintf(old, sizeof old, "%s", piece_path(from));
    CHECK_INT(rename(old, piece_path(to)), 0);
}

/* Damages the piece, or repairs it. */
static void set_damage(damage kind, bool damaged)
{
    static file_bytes whole;
    const char *path = piece_path(BAD);
    if (kind == MISSING) {
        rename_piece(damaged ? BAD : 999, damaged ? 999 : BAD);
    } else if (kind == SWAPPED) {
        rename_piece(BAD, 999);
        rename_piece(BAD + 1, BAD);
        rename_piece(999, BAD + 1);
    } else if (damaged) {
        whole = file_load(path);
        CHECK_INT(truncate(path, (off_t)whole.n_bytes + (kind == SHORTER ? -1 : 1)), 0);
    } else {
        CHECK(file_store(path, whole.data, whole.n_bytes));
        free(whole.data);
    }
}

/* Steps until one fails; the rows of the others are right. Sizes are asked once a millisecond. */
static tokmap_status go_until_error(tokmap_loader *l, tokmap_error *err)
{
    tokmap_batch b = {.struct_size = sizeof b};
    tokmap_status status = TOKMAP_OK;
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    for (int i = 0; i < 2 * N_TOKENS / LENGTH && !status; i++) {
        status = tokmap_loader_next(l, &b, err);
        for (uint32_t r = 0; r < N_ROWS && !status; r++)
            corpus_check_tokens(&flat, &b.rows[r]);
    }
    return status;
}

static void expect_named(tokmap_status status, const tokmap_error *err, damage kind)
{
    char name[710];
    CHECK_INT(status, kind == MISSING ? TOKMAP_ERR_IO : TOKMAP_ERR_CORRUPT);
    CHECK_INT(err->status, status);
    CHECK_INT(err->sys_errno, kind == MISSING ? ENOENT : 0);
    for (uint32_t i = BAD; i <= BAD + (kind == SWAPPED); i++) {
        snprintf(name, sizeof name, "%s:", piece_path(i));
        if (strstr(err->text, name))
            return;
    }
    CHECK_FAIL("%s", err->text);
}

/* Before anything has used the file. Once it is repaired, the loader continues. */
TEST(a_token_file_that_is_not_what_the_index_says_is_named)
{
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        for (int way = 0; way < N_WAYS; way++) {
            const damage kind = (damage)((mode + way) % N_DAMAGES);
            const tokmap_loader_options o = options_of(mode, (tokmap_io)(TOKMAP_IO_MAP + way));
            tokmap_error err = {0};
            open_all(40);
            set_damage(kind, true);
            tokmap_loader *l = open_one(o, joined.ds), *other = open_one(o, flat.ds);
            expect_named(go_until_error(l, &err), &err, kind);
            const uint64_t position = tokmap_loader_position(l);
            tokmap_batch b = {.struct_size = sizeof b};
            expect_named(tokmap_loader_next(l, &b, &err), &err, kind);
            CHECK_EQ(tokmap_loader_position(l), position);
            set_damage(kind, false);
            CHECK_INT(tokmap_loader_seek(other, position, NULL), TOKMAP_OK);
            CHECK(same_steps(l, other, 100));
            tokmap_loader_close(l);
            tokmap_loader_close(other);
            close_all();
        }
    }
}

/* With MAP by name an access raises SIGBUS in the thread of the caller, as the header says. The
 * steps that were read ahead before are checked when they are handed out. */
TEST(rows_that_were_cut_off_are_an_error_before_they_are_accessed)
{
    static const tokmap_io ways[] = {TOKMAP_IO_AUTO, TOKMAP_IO_POPULATE};
    for (int mode = 0; mode < 2 * CORPUS_MODES; mode++) {
        tokmap_error err = {0};
        open_all(40);
        const tokmap_loader_options o = options_of(mode / 2, ways[mode % 2]);
        tokmap_loader *l = open_one(o, flat.ds), *other = open_one(o, joined.ds);
        char path[700];
        snprintf(path, sizeof path, "%s.bin", flat.path);
        CHECK(same_steps(l, other, 2 * N_TOKENS / LENGTH / N_ROWS));
        const file_bytes whole = file_cut(path, 1);
        CHECK_REFUSED(go_until_error(l, &err), TOKMAP_ERR_IO, err, "shortened");
        CHECK_SAYS(err.text, path);
        const uint64_t position = tokmap_loader_position(l);
        CHECK(file_store(path, whole.data, whole.n_bytes));
        free(whole.data);
        CHECK_INT(tokmap_loader_seek(other, position, NULL), TOKMAP_OK);
        CHECK(same_steps(l, other, 100));
        tokmap_loader_close(l);
        tokmap_loader_close(other);
        close_all();
    }
}

TEST(a_token_file_that_is_cut_while_in_use_is_named)
{
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        for (int way = 1; way < N_WAYS; way++) {
            const tokmap_loader_options o = options_of(mode, (tokmap_io)(TOKMAP_IO_MAP + way));
            tokmap_error err = {0};
            open_all(40);
            tokmap_loader *l = open_one(o, joined.ds), *other = open_one(o, flat.ds);
            CHECK(same_steps(l, other, 2 * N_TOKENS / LENGTH / N_ROWS)); /* all files are open */
            set_damage(SHORTER, true);
            CHECK_REFUSED(go_until_error(l, &err), TOKMAP_ERR_IO, err, piece_path(BAD));
            CHECK_SAYS(err.text, "shortened");
            const uint64_t position = tokmap_loader_position(l);
            set_damage(SHORTER, false);
            CHECK_INT(tokmap_loader_seek(other, position, NULL), TOKMAP_OK);
            CHECK(same_steps(l, other, 100));
            tokmap_loader_close(l);
            tokmap_loader_close(other);
            close_all();
        }
    }
}

/* Files that keep no descriptor are opened again for each read, and so compared again. */
TEST(one_of_very_many_files_that_is_cut_is_named)
{
    tokmap_error err = {0};
    open_all(1500);
    for (uint32_t piece = 0; piece < 1400; piece += 199) {
        const tokmap_loader_options o = options_of(0, TOKMAP_IO_POPULATE);
        tokmap_loader *l = open_one(o, joined.ds), *other = open_one(o, flat.ds);
        char path[700];
        snprintf(path, sizeof path, "%s", piece_path(piece));
        const file_bytes whole = file_load(path);
        CHECK(same_steps(l, other, 2 * N_TOKENS / LENGTH / N_ROWS));
        CHECK_INT(truncate(path, (off_t)whole.n_bytes - 1), 0);
        const tokmap_status status = go_until_error(l, &err);
        CHECK_INT(status, err.status);
        CHECK(status == TOKMAP_ERR_IO || status == TOKMAP_ERR_CORRUPT);
        CHECK_SAYS(err.text, path);
        const uint64_t position = tokmap_loader_position(l);
        CHECK(file_store(path, whole.data, whole.n_bytes));
        free(whole.data);
        CHECK_INT(tokmap_loader_seek(other, position, NULL), TOKMAP_OK);
        CHECK(same_steps(l, other, 30));
        tokmap_loader_close(l);
        tokmap_loader_close(other);
    }
    close_all();
}

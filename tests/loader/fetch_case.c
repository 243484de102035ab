/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/fetch_case.h"

#include "base/le.h"
#include "support/joined.h"
#include "support/must.h"

static uint32_t ahead_token(uint32_t dataset, uint64_t position)
{
    return (uint32_t)(check_mix(dataset, position) % CASE_VOCAB);
}

static void ahead_add_open(fetch_case *c, const char *path)
{
    CHECK(c->n_datasets < CASE_MAX_DATASETS);
    c->datasets[c->n_datasets++] = must_open(path);
}

const char *ahead_path(uint32_t dataset, const char *suffix)
{
    char name[32];
    snprintf(name, sizeof name, "d%u%s", dataset, suffix);
    return check_path(name);
}

static void ahead_write(const fetch_case *c, const char *prefix, uint32_t n_tokens,
                        uint32_t token_bytes)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = CASE_VOCAB,
                                           .eod_id = TOKMAP_NO_ID,
                                           .token_bytes = token_bytes};
    uint32_t *ids = malloc(n_tokens * sizeof *ids);
    CHECK(ids != NULL);
    for (uint32_t i = 0; i < n_tokens; i++)
        ids[i] = ahead_token(c->n_datasets, i);
    tokmap_writer *w = must_begin(prefix, &options);
    CHECK_INT(tokmap_writer_append(w, ids, n_tokens, NULL), TOKMAP_OK);
    must_finish(w);
    free(ids);
}

void ahead_add(fetch_case *c, uint32_t n_tokens, uint32_t token_bytes)
{
    const char *prefix = ahead_path(c->n_datasets, "");
    ahead_write(c, prefix, n_tokens, token_bytes);
    ahead_add_open(c, prefix);
}

void ahead_add_joined(fetch_case *c, uint32_t n_tokens, size_t n_files)
{
    const char *flat = ahead_path(c->n_datasets, ".flat"), *prefix = ahead_path(c->n_datasets, "");
    ahead_write(c, flat, n_tokens, 2);
    joined_store_uneven(flat, prefix, strrchr(prefix, '/') + 1, n_files);
    ahead_add_open(c, prefix);
}

void ahead_add_adopted(fetch_case *c, uint32_t n_tokens, uint32_t header_bytes)
{
    const char *path = ahead_path(c->n_datasets, ".ds");
    const tokmap_adopt_options options = {.struct_size = sizeof options,
                                          .token_offset = header_bytes,
                                          .n_tokens = n_tokens,
                                          .vocab_size = CASE_VOCAB,
                                          .token_bytes = 2,
                                          .eod_id = TOKMAP_NO_ID};
    FILE *out = fopen(path, "wb");
    CHECK(out != NULL);
    for (uint32_t i = 0; i < header_bytes; i++)
        fputc('h', out);
    for (uint32_t i = 0; i < n_tokens; i++) {
        const uint16_t id = (uint16_t)ahead_token(c->n_datasets, i);
        fwrite(&id, sizeof id, 1, out);
    }
    CHECK_INT(fclose(out), 0);
    must_finish(must_adopt(path, &options));
    ahead_add_open(c, path);
}

void ahead_open_files(fetch_case *c)
{
    for (uint32_t i = 0; i < c->n_datasets; i++) {
        const tokmap_dataset *ds = c->datasets[i];
        for (uint64_t k = 0; k < ds->n_files; k++) {
            const uint8_t *map;
            tokmap_i_named_file file;
            CHECK_INT(tokmap_i_token_file_borrow(ds, &ds->files[k], &file, NULL), TOKMAP_OK);
            tokmap_i_token_file_give_back(&ds->files[k], &file);
            CHECK_INT(tokmap_i_token_file_map(ds, &ds->files[k], &map, NULL), TOKMAP_OK);
        }
    }
}

void ahead_close(fetch_case *c)
{
    for (uint32_t i = 0; i < c->n_datasets; i++)
        tokmap_dataset_close(c->datasets[i]);
    c->n_datasets = 0;
}

/* ---- The plan ---- */

tokmap_i_fetch_row ahead_row(const fetch_case *c, uint64_t sample)
{
    const uint64_t h = check_mix(c->seed, sample), k = check_mix(h, 1);
    const uint32_t dataset = (uint32_t)(h % c->n_datasets);
    const uint64_t n_all = c->datasets[dataset]->header.n_tokens;
    const uint64_t longest = MIN(c->max_tokens, n_all);
    const uint64_t n = h >> 32 & 1 ? longest : 1 + (h >> 40) % longest;
    uint64_t first = k % n_all;
    if (k >> 60 == 0)
        first = n_all - n;
    else if (k >> 60 > 1 && first + n > n_all)
        first = (k >> 20) % (n_all - n + 1);
    if (c->from < c->to)
        first = c->from + k % (c->to - c->from - n + 1);
    return (tokmap_i_fetch_row){.dataset = dataset,
                                .at = {.n_tokens = (uint32_t)n, .first_token = first}};
}

/* Adds the pieces of a row, which may wrap around in its dataset. */
static bool ahead_add_pieces(const fetch_case *c, tokmap_i_fetch_row *row,
                             tokmap_i_fetch_pieces *pieces)
{
    const uint64_t n_all = c->datasets[row->dataset]->header.n_tokens;
    const uint32_t n = row->at.n_tokens;
    const uint32_t n_here = (uint32_t)MIN(n, n_all - row->at.first_token);
    const tokmap_piece two[] = {
        {.first_token = row->at.first_token, .n_tokens = n_here, .continues = n_here < n},
        {.n_tokens = n - n_here, .place = n_here}};
    row->at.n_pieces = 1 + (n_here < n);
    return tokmap_i_fetch_add_pieces(pieces, two, row->at.n_pieces);
}

static tokmap_status ahead_plan(void *context, uint64_t sample, uint32_t n_rows,
                                tokmap_i_fetch_row *rows, tokmap_i_fetch_pieces *pieces,
                                tokmap_error *err)
{
    fetch_case *c = context;
    memset(err, 0, sizeof *err);
    if (c->plan_us > 0)
        usleep(c->plan_us);
    if (c->end > 0 && sample + n_rows > c->end)
        return TOKMAP_END;
    if (c->n_refusals > 0 && sample <= c->refused_sample && c->refused_sample < sample + n_rows) {
        c->n_refusals--;
        snprintf(err->text, sizeof err->text, "refused");
        return err->status = TOKMAP_ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        rows[i] = ahead_row(c, sample + i);
        if (!ahead_add_pieces(c, &rows[i], pieces))
            return err->status = TOKMAP_ERR_MEMORY;
    }
    c->n_planned = MAX(c->n_planned, sample + n_rows);
    return TOKMAP_OK;
}

tokmap_i_fetch_options ahead_options(fetch_case *c, tokmap_io kind)
{
    return (tokmap_i_fetch_options){.io = kind,
                                    .datasets = c->datasets,
                                    .n_datasets = c->n_datasets,
                                    .n_steps = 4,
                                    .max_rows = 9,
                                    .max_tokens = c->max_tokens,
                                    .plan = ahead_plan,
                                    .context = c};
}

tokmap_i_fetch *ahead_fetch(const tokmap_i_fetch_options *o)
{
    tokmap_i_fetch *f = NULL;
    tokmap_error err;
    const tokmap_status status = tokmap_i_fetch_open(&f, o, &err);
    if (status == TOKMAP_ERR_UNSUPPORTED && o->io == TOKMAP_IO_DIRECT) {
        ahead_close(o->context);
        SKIP("direct reads do not work here: %s", err.text);
    }
    CHECK_OK(status, err);
    CHECK(f != NULL);
    return f;
}

tokmap_i_fetch *ahead_begin(fetch_case *c, tokmap_io kind)
{
    const tokmap_i_fetch_options o = ahead_options(c, kind);
    tokmap_i_fetch *f = ahead_fetch(&o);
    tokmap_i_fetch_restart(f, 0, 9, 9);
    return f;
}

void ahead_end(fetch_case *c, tokmap_i_fetch *f)
{
    tokmap_i_fetch_close(f, false);
    ahead_close(c);
}

/* ---- What came ---- */

static bool ahead_is_right(const fetch_case *c, const tokmap_i_fetch_row *row, const void *tokens)
{
    const tokmap_dataset *ds = c->datasets[row->dataset];
    const uint8_t *p = tokens;
    for (uint32_t i = 0; i < row->at.n_tokens; i++) {
        const uint64_t position = (row->at.first_token + i) % ds->header.n_tokens;
        const uint32_t id =
            ds->header.token_bytes == 2 ? le_get16(p + 2 * i) : le_get32(p + 4 * (size_t)i);
        if (id != ahead_token(row->dataset, position))
            return false;
    }
    return true;
}

void ahead_compare(const fetch_case *c, const tokmap_i_fetch_row *rows, uint32_t n_rows,
                   uint64_t sample)
{
    for (uint32_t i = 0; i < n_rows; i++) {
        const tokmap_i_fetch_row expected = ahead_row(c, sample + i);
        const tokmap_dataset *ds = c->datasets[expected.dataset];
        CHECK_EQ(rows[i].dataset, expected.dataset);
        CHECK_EQ(rows[i].at.first_token, expected.at.first_token);
        CHECK_EQ(rows[i].at.n_tokens, expected.at.n_tokens);
        if (rows[i].tokens) {
            CHECK_EQ((uintptr_t)rows[i].tokens % ds->header.token_bytes, 0);
            CHECK(ahead_is_right(c, &rows[i], rows[i].tokens));
        } else {
            const tokmap_i_token_piece p =
                tokmap_i_first_piece(ds, expected.at.first_token, expected.at.n_tokens);
            CHECK(rows[i].at.n_pieces > 1 || p.n_tokens < expected.at.n_tokens);
        }
    }
}

void ahead_expect(fetch_case *c, tokmap_i_fetch *f, uint32_t n_rows, uint64_t sample)
{
    const tokmap_i_fetch_row *rows = NULL;
    tokmap_error err;
    if (tokmap_i_fetch_next(f, &rows, &err))
        CHECK_FAIL("sample %" PRIu64 ": %s", sample, err.text);
    ahead_compare(c, rows, n_rows, sample);
}

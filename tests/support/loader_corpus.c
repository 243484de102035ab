/* SPDX-License-Identifier: Apache-2.0 */
#include "support/loader_corpus.h"

#include <fcntl.h>
#include <unistd.h>

#include "support/joined.h"
#include "support/must.h"
#include "system/platform.h"

uint64_t corpus_random_state = 1;

uint32_t corpus_any(uint32_t n)
{
    corpus_random_state = corpus_random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((corpus_random_state >> 33) % n);
}

void corpus_cut(corpus_shape *c, uint32_t mean)
{
    c->n_documents = 0;
    for (uint32_t end = 0; end < c->n_tokens || c->n_documents == 0;) {
        const uint32_t kind = corpus_any(8);
        const uint32_t length = kind == 0 ? 0 : kind == 1 ? 1 : corpus_any(2 * mean + 1);
        end = end + length < c->n_tokens ? end + length : c->n_tokens;
        if (c->n_documents == CORPUS_MAX_DOCUMENTS - 1)
            end = c->n_tokens;
        c->ends[c->n_documents++] = end;
    }
}

static void write_shape(const corpus_shape *c, const char *path)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = c->token_bytes == 2 ? 65536 : 0,
                                           .token_bytes = c->token_bytes,
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = 1};
    tokmap_error err;
    tokmap_writer *w = must_begin(path, &options);
    for (uint32_t t = 0, d = 0; t < c->n_tokens || d < c->n_documents;) {
        while (d < c->n_documents && c->ends[d] == t) {
            CHECK_INT(tokmap_writer_end_document(w, &err), TOKMAP_OK);
            d++;
        }
        if (t < c->n_tokens) {
            const uint32_t id = c->first_id + t++;
            CHECK_INT(tokmap_writer_append(w, &id, 1, &err), TOKMAP_OK);
        }
    }
    must_finish(w);
}

void corpus_shape_open(corpus_shape *c)
{
    char flat[700];
    snprintf(c->path, sizeof c->path, "%s/%s", check_dir(), c->name);
    snprintf(flat, sizeof flat, "%s%s", c->path, c->n_segments ? ".flat" : "");
    write_shape(c, flat);
    if (c->n_segments)
        joined_store_uneven(flat, c->path, c->name, c->n_segments);
    c->ds = must_open(c->path);
}

void corpus_shape_close(corpus_shape *c)
{
    tokmap_dataset_close(c->ds);
    c->ds = NULL;
}

tokmap_loader *corpus_open_loader(const tokmap_loader_options *o)
{
    tokmap_loader *l = NULL;
    tokmap_error err;
    CHECK_OK(tokmap_loader_open(&l, o, &err), err);
    return l;
}

tokmap_io corpus_way_in_memory(void)
{
    const int fd = open(check_path("in-memory"), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    CHECK_INT(write(fd, "a", 1), 1);
    const int n_cold = tokmap_i_file_count_cold(fd, &(uint64_t){0}, 1);
    close(fd);
    return n_cold < 0 ? TOKMAP_IO_POPULATE : TOKMAP_IO_MAP;
}

tokmap_batch corpus_next(tokmap_loader *l)
{
    tokmap_batch b = TOKMAP_INIT(tokmap_batch);
    tokmap_error err;
    CHECK_OK(tokmap_loader_next(l, &b, &err), err);
    return b;
}

void corpus_gather(const tokmap_batch *b, bool mask_labels, int64_t *inputs, int64_t *labels)
{
    tokmap_error err;
    const tokmap_gather_options o = {.struct_size = sizeof o,
                                     .format = TOKMAP_GATHER_I64,
                                     .pad_id = 7,
                                     .mask_labels = mask_labels,
                                     .inputs = inputs,
                                     .labels = labels};
    CHECK_OK(tokmap_batch_gather(b, &o, &err), err);
}

void corpus_set_mode(tokmap_loader_options *o, int mode)
{
    static const tokmap_shuffle shuffles[] = {TOKMAP_SHUFFLE_NONE, TOKMAP_SHUFFLE_FULL,
                                              TOKMAP_SHUFFLE_BLOCK};
    o->shuffle = shuffles[mode % 3];
    if (o->shuffle == TOKMAP_SHUFFLE_BLOCK) {
        o->block_windows = 5;
        o->group_blocks = 3;
    }
    if (mode >= 3 && mode < 6)
        o->random_offset = 1;
    if (mode >= 6)
        o->windows = mode < 8 ? TOKMAP_WINDOWS_WITHIN_DOCUMENT : TOKMAP_WINDOWS_BEST_FIT;
    if (mode >= 8)
        o->block_windows = 0;
}

const tokmap_piece *corpus_piece(const tokmap_row *row, uint32_t i)
{
    for (size_t k = 0; k < row->n_pieces; k++)
        if (i - row->pieces[k].place < row->pieces[k].n_tokens)
            return &row->pieces[k];
    return NULL;
}

uint32_t corpus_id(const tokmap_row *row, uint32_t i)
{
    const tokmap_piece *p = corpus_piece(row, i);
    const uint8_t *tokens = p ? p->tokens : row->tokens;
    uint16_t narrow;
    uint32_t wide;
    i -= p ? p->place : 0;
    if (row->token_bytes == 4) {
        memcpy(&wide, tokens + 4 * (size_t)i, 4);
        return wide;
    }
    memcpy(&narrow, tokens + 2 * (size_t)i, 2);
    return narrow;
}

/* Which token of the dataset place i of the row has. */
static uint64_t token_at(const corpus_shape *c, const tokmap_row *row, uint32_t i)
{
    const tokmap_piece *p = corpus_piece(row, i);
    return p ? p->first_token + (i - p->place) : (row->first_token + i) % c->n_tokens;
}

void corpus_check_tokens(const corpus_shape *c, const tokmap_row *row)
{
    CHECK_EQ(row->token_bytes, c->token_bytes);
    for (uint32_t i = 0; i < row->n_tokens; i++)
        CHECK_EQ(corpus_id(row, i), c->first_id + token_at(c, row, i));
}

bool corpus_begins(const corpus_shape *c, uint64_t token)
{
    if (token == 0)
        return true;
    for (uint32_t d = 0; d < c->n_documents; d++)
        if (c->ends[d] == token)
            return true;
    return false;
}

void corpus_check_parts(const corpus_shape *c, const tokmap_row *row, uint32_t length, bool masked)
{
    const uint32_t n_inputs = row->n_tokens - 1;
    uint32_t n_documents = 0, longest = 0, start = 0;
    for (uint32_t i = 0; i < n_inputs; i++) {
        const tokmap_piece *p = corpus_piece(row, i);
        const uint64_t token = token_at(c, row, i);
        const uint64_t label = token_at(c, row, i + 1);
        if (i == 0 || (p ? p->place == i : corpus_begins(c, token))) {
            start = i;
            CHECK_INT(row->cu_seqlens[n_documents++], i);
        }
        longest = i - start + 1 > longest ? i - start + 1 : longest;
        CHECK_INT(row->position_ids[i], i - start);
        CHECK_INT(row->document_ids[i], n_documents - 1);
        CHECK_INT(row->loss_mask[i],
                  !masked && (p ? p == corpus_piece(row, i + 1) : !corpus_begins(c, label)));
    }
    CHECK_INT(row->cu_seqlens[n_documents], n_inputs);
    CHECK_EQ(row->n_documents, n_documents);
    CHECK_EQ(row->longest_document, longest);
    for (uint32_t i = n_inputs; i < length; i++) {
        CHECK_INT(row->loss_mask[i], 0);
        CHECK_INT(row->position_ids[i], 0);
        CHECK_INT(row->document_ids[i], n_documents);
    }
}

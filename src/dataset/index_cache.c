/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index_cache.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "dataset/token_files.h"

enum {
    BLOCK_BYTES = 4096,
    SLOT_BYTES = BLOCK_BYTES + TOKMAP_I_PIECE_BYTES, /* room for a piece that crosses its end */
    MOST_SLOTS = 4096                                /* 16 MiB of blocks */
};

typedef struct slot {
    const void *owner; /* identifies the file; NULL: the slot is empty */
    uint64_t block;
    uint8_t bytes[SLOT_BYTES];
} slot;

struct tokmap_i_index_cache {
    tokmap_i_pieces pieces;
    tokmap_i_cached_file file; /* the file of the lookups */
    tokmap_error err;          /* the error of the last read, if it failed */
    uint64_t n_slots;          /* a power of two */
    slot slots[];
};

static const uint8_t *get_piece(tokmap_i_pieces *self, uint64_t offset)
{
    tokmap_i_index_cache *c = (tokmap_i_index_cache *)self;
    const uint64_t at = c->file.offset + offset, block = at / BLOCK_BYTES;
    slot *s = &c->slots[(c->file.key + block) & (c->n_slots - 1)];
    if (s->owner != c->file.owner || s->block != block) {
        const tokmap_i_named_file file = {c->file.fd, c->file.path};
        const uint64_t begin = block * BLOCK_BYTES;
        const uint64_t n_bytes = MIN(SLOT_BYTES, c->file.n_bytes - MIN(begin, c->file.n_bytes));
        s->owner = NULL;
        if (n_bytes == 0)
            FAIL(&c->err, TOKMAP_ERR_CORRUPT, "%s: damaged: refers to something that is not in it",
                 c->file.path);
        if (n_bytes == 0 || tokmap_i_read_exactly(file, begin, (size_t)n_bytes, s->bytes, &c->err))
            return NULL;
        s->owner = c->file.owner;
        s->block = block;
    }
    return s->bytes + at % BLOCK_BYTES;
}

tokmap_i_index_cache *tokmap_i_index_cache_open(uint64_t n_bytes)
{
    uint64_t n_slots = 1;
    while (n_slots < MOST_SLOTS && n_slots * BLOCK_BYTES < n_bytes + BLOCK_BYTES)
        n_slots *= 2;
    tokmap_i_index_cache *c = calloc(1, sizeof *c + n_slots * sizeof(slot));
    if (c) {
        c->pieces.get = get_piece;
        c->n_slots = n_slots;
    }
    return c;
}

void tokmap_i_index_cache_close(tokmap_i_index_cache *c)
{
    free(c);
}

uint64_t tokmap_i_index_cache_bytes(const tokmap_i_index_cache *c)
{
    return c ? sizeof *c + c->n_slots * sizeof(slot) : 0;
}

static tokmap_i_pieces *of_section(tokmap_i_index_cache *c, const tokmap_dataset *ds,
                                   const uint8_t *section)
{
    const tokmap_i_cached_file file = {ds,
                                       ds->index_fd,
                                       ds->index_path,
                                       ds->header.index_bytes,
                                       (uint64_t)(section - ds->index_map),
                                       le_get64(ds->header.dataset_id)};
    return c ? tokmap_i_index_cache_set(c, &file) : NULL;
}

tokmap_i_pieces *tokmap_i_index_cache_of(tokmap_i_index_cache *c, const tokmap_dataset *ds)
{
    return of_section(c, ds, ds->documents.bytes);
}

tokmap_i_pieces *tokmap_i_index_cache_spans(tokmap_i_index_cache *c, const tokmap_dataset *ds)
{
    return of_section(c, ds, ds->spans.bytes);
}

tokmap_i_pieces *tokmap_i_index_cache_set(tokmap_i_index_cache *c, const tokmap_i_cached_file *file)
{
    c->file = *file;
    c->err.status = TOKMAP_OK;
    return &c->pieces;
}

tokmap_status tokmap_i_index_cache_check(const tokmap_i_index_cache *c, tokmap_error *err)
{
    if (c && c->err.status && err)
        *err = c->err;
    return c ? c->err.status : TOKMAP_OK;
}

tokmap_status tokmap_i_index_cache_fail(const tokmap_i_index_cache *c, const tokmap_dataset *ds,
                                        tokmap_error *err)
{
    const tokmap_status status = tokmap_i_index_cache_check(c, err);
    return status
               ? status
               : FAIL(err, TOKMAP_ERR_CORRUPT, "%s: the document index is damaged", ds->index_path);
}

/* staging_cuda_direct.c - maps of datasets that the device reads by itself.
 *
 * They are registered in pieces, since a driver refuses half a terabyte at once. A row that does
 * not lie in one piece is copied like any other.
 */
#include <stdlib.h>

#include "base.h"
#include "staging_cuda.h"

#define PIECE_BYTES ((uint64_t)16 << 30)

static int register_piece(tokmap_cuda *s, const uint8_t *begin, uint64_t n_bytes)
{
    tokmap_i_registered *r = &s->registered[s->n_registered];
    /* Read-only maps can be registered in no other way. */
    void *memory = (void *)(uintptr_t)begin;
    int error = s->driver->register_host(memory, n_bytes,
                                         TOKMAP_I_REGISTER_PORTABLE | TOKMAP_I_REGISTER_MAPPED |
                                             TOKMAP_I_REGISTER_READ_ONLY);
    if (error)
        return error;
    *r = (tokmap_i_registered){.begin = begin, .end = begin + n_bytes};
    s->n_registered++;
    error = s->driver->get_device_address(&r->address, memory, 0);
    return error;
}

static uint64_t count_pieces(const tokmap_cuda *s)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < s->loader->n_sources; k++)
        for (uint32_t d = 0; d < s->loader->sources[k].windows.n_datasets; d++)
            n += div_up(s->loader->sources[k].datasets[d]->token_file_bytes, PIECE_BYTES);
    return n;
}

/* Another source may hold the same dataset. */
static bool is_registered(const tokmap_cuda *s, const uint8_t *map)
{
    for (uint32_t i = 0; i < s->n_registered; i++)
        if (s->registered[i].begin == map)
            return true;
    return false;
}

static int register_map(tokmap_cuda *s, const tokmap_dataset *ds)
{
    if (is_registered(s, ds->token_map))
        return 0;
    for (uint64_t at = 0; at < ds->token_file_bytes; at += PIECE_BYTES) {
        const uint64_t n_bytes = MIN(ds->token_file_bytes - at, PIECE_BYTES);
        const int error = register_piece(s, ds->token_map + at, n_bytes);
        if (error)
            return error;
    }
    return 0;
}

int tokmap_i_stage_register_maps(tokmap_cuda *s)
{
    int error = 0;
    s->registered = calloc(count_pieces(s) + 1, sizeof *s->registered);
    if (!s->registered)
        return TOKMAP_I_DRIVER_OUT_OF_MEMORY;
    for (uint32_t k = 0; k < s->loader->n_sources && !error; k++)
        for (uint32_t d = 0; d < s->loader->sources[k].windows.n_datasets && !error; d++)
            error = register_map(s, s->loader->sources[k].datasets[d]);
    if (error)
        tokmap_i_stage_unregister_maps(s);
    return error;
}

void tokmap_i_stage_unregister_maps(tokmap_cuda *s)
{
    for (uint32_t i = 0; i < s->n_registered; i++)
        s->driver->unregister_host((void *)(uintptr_t)s->registered[i].begin);
    free(s->registered);
    s->registered = NULL;
    s->n_registered = 0;
}

uint64_t tokmap_i_stage_find_row(const void *stage, const void *tokens, size_t n_bytes)
{
    const tokmap_cuda *s = stage;
    const uint8_t *begin = tokens;
    for (uint32_t i = 0; i < s->n_registered; i++) {
        const tokmap_i_registered *r = &s->registered[i];
        if (begin >= r->begin && begin < r->end)
            return n_bytes <= (size_t)(r->end - begin) ? r->address + (uint64_t)(begin - r->begin)
                                                       : 0;
    }
    return 0;
}

const void *tokmap_i_stage_row_on_host(const void *stage, uint64_t address)
{
    const tokmap_cuda *s = stage;
    for (uint32_t i = 0; i < s->n_registered; i++) {
        const tokmap_i_registered *r = &s->registered[i];
        if (address >= r->address && address - r->address < (uint64_t)(r->end - r->begin))
            return r->begin + (address - r->address);
    }
    return NULL;
}

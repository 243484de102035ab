/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/slot_image.h"

#include "base/base.h"

enum {
    ALIGNMENT = 64
};

static uint64_t mask_bytes(const tokmap_i_image_shape *s)
{
    return s->has_masks ? div_up(s->length, 32) * 4 : 0;
}

static uint64_t row_bytes(const tokmap_i_image_shape *s)
{
    return round_up((s->length + 1ull) * s->token_bytes, 16);
}

static bool is_slice(const tokmap_i_image_shape *s)
{
    return s->n_slices > 1;
}

/* Returns the inputs of a whole row. */
static uint64_t whole_length(const tokmap_i_image_shape *s)
{
    return (uint64_t)s->length * MAX(s->n_slices, 1);
}

static uint32_t n_tiles(const tokmap_i_image_shape *s)
{
    return (uint32_t)div_up(s->length, TOKMAP_I_TILE);
}

/* ---- Layout ---- */

typedef struct places {
    uint64_t masks, tile_boundaries, boundaries, positions, documents, tokens, end;
} places;

static places find_places(const tokmap_i_image_shape *s, uint64_t n_boundaries)
{
    const uint64_t tile_bytes =
        s->has_documents && !is_slice(s) ? 4ull * n_tiles(s) * s->n_rows : 0;
    const uint64_t ids_bytes = 4ull * s->n_rows * s->length;
    places p;
    p.masks = round_up((uint64_t)s->n_rows * sizeof(tokmap_i_image_row), ALIGNMENT);
    p.tile_boundaries = round_up(p.masks + mask_bytes(s) * s->n_rows, ALIGNMENT);
    p.boundaries = p.tile_boundaries + tile_bytes;
    p.positions = p.boundaries + (s->has_documents ? 4 * n_boundaries : 0);
    p.documents = p.positions + (s->has_position_ids ? ids_bytes : 0);
    p.tokens = round_up(p.documents + (s->has_document_ids ? ids_bytes : 0), ALIGNMENT);
    p.end = p.tokens + row_bytes(s) * s->n_rows * (is_slice(s) ? 2 : 1);
    return p;
}

uint64_t tokmap_i_image_bytes(const tokmap_i_image_shape *shape)
{
    uint64_t n_inputs, n_bytes;
    if (__builtin_mul_overflow((uint64_t)shape->n_rows, whole_length(shape), &n_inputs) ||
        n_inputs > INT32_MAX || /* boundaries are 32 bits wide */
        __builtin_mul_overflow((uint64_t)shape->n_rows, row_bytes(shape), &n_bytes))
        return 0;
    const places p = find_places(shape, shape->max_boundaries);
    return p.end <= UINT32_MAX ? p.end : 0;
}

/* ---- Documents ---- */

/* Returns the inputs of a row, or of the whole row if it is a slice. */
static uint32_t n_whole_inputs(const tokmap_i_image_shape *s, const tokmap_row *row)
{
    return is_slice(s) ? (uint32_t)row->cu_seqlens[row->n_documents] : row->n_tokens - 1;
}

/* Counts the boundaries of a row: one for each document, and one for its missing part. */
static uint32_t n_row_boundaries(const tokmap_i_image_shape *s, const tokmap_row *row)
{
    return row->n_documents + (n_whole_inputs(s, row) < whole_length(s));
}

/* Writes the boundaries of each row, which begins at input r * length of the batch, and, except for
 * slices, the last boundary at or before the beginning of each tile. */
static void put_documents(tokmap_i_image *image, const tokmap_i_image_shape *s,
                          const tokmap_row *rows)
{
    tokmap_i_image_row *table = (tokmap_i_image_row *)image->memory;
    int32_t *boundaries = (int32_t *)(image->memory + image->boundaries);
    uint32_t *tiles = (uint32_t *)(image->memory + image->tile_boundaries);
    const uint32_t length = (uint32_t)whole_length(s);
    uint32_t first = 0;
    for (uint32_t r = 0; r < s->n_rows; r++) {
        const tokmap_row *row = &rows[r];
        const uint32_t n_inputs = n_whole_inputs(s, row), n = n_row_boundaries(s, row);
        const int32_t begin = (int32_t)(r * length);
        table[r].first_boundary = first;
        table[r].n_boundaries = n;
        for (uint32_t d = 0; d < row->n_documents; d++)
            boundaries[first + d] = begin + row->cu_seqlens[d];
        if (n_inputs < length)
            boundaries[first + row->n_documents] = begin + (int32_t)n_inputs;
        image->longest = MAX(image->longest, MAX(row->longest_document, length - n_inputs));
        uint32_t last = first;
        for (uint32_t t = 0; t < n_tiles(s) && image->tile_boundaries; t++) {
            const int32_t tile_begin = boundaries[first] + (int32_t)(t * TOKMAP_I_TILE);
            while (last + 1 < first + n && boundaries[last + 1] <= tile_begin)
                last++;
            *tiles++ = last;
        }
        first += n;
    }
}

/* ---- Rows ---- */

static void put_mask(const tokmap_i_image_shape *s, const tokmap_row *row, uint8_t *bits)
{
    const uint8_t *mask = row->loss_mask;
    memset(bits, 0, mask_bytes(s));
    for (uint32_t i = 0; mask && i < s->length; i += 8) {
        uint8_t byte = 0;
        for (uint32_t k = 0; k < 8 && i + k < s->length; k++)
            byte |= (uint8_t)((mask[i + k] != 0) << k);
        bits[i / 8] = byte;
    }
    for (size_t k = 0; !mask && k < row->n_pieces; k++) {
        const tokmap_piece *p = &row->pieces[k];
        for (uint64_t i = p->place, end = i + MIN(p->n_inputs, p->n_tokens - 1); i < end; i++)
            bits[i / 8] |= (uint8_t)(1 << i % 8);
    }
}

bool tokmap_i_image_begin(tokmap_i_image *image, const tokmap_i_image_shape *s,
                          const tokmap_row *rows)
{
    uint64_t n_boundaries = 0;
    for (uint32_t r = 0; s->has_documents && r < s->n_rows; r++)
        n_boundaries += n_row_boundaries(s, &rows[r]);
    const places p = find_places(s, n_boundaries);
    image->n_boundaries = (uint32_t)n_boundaries;
    image->longest = 0;
    if (n_boundaries > s->max_boundaries && s->has_documents)
        return false;
    image->boundaries = s->has_documents ? (uint32_t)p.boundaries : 0;
    image->tile_boundaries = s->has_documents && !is_slice(s) ? (uint32_t)p.tile_boundaries : 0;
    image->positions = s->has_position_ids ? (uint32_t)p.positions : 0;
    image->documents = s->has_document_ids ? (uint32_t)p.documents : 0;
    for (uint32_t r = 0; r < s->n_rows; r++) {
        tokmap_i_image_row *to = (tokmap_i_image_row *)image->memory + r;
        *to = (tokmap_i_image_row){.tokens = p.tokens + r * row_bytes(s) * (is_slice(s) ? 2 : 1),
                                   .n_tokens = rows[r].n_tokens,
                                   .token_bytes = rows[r].token_bytes};
        if (s->has_masks && (rows[r].loss_mask || rows[r].pieces)) {
            to->flags |= TOKMAP_I_ROW_MASKED;
            to->mask = (uint32_t)(p.masks + r * mask_bytes(s));
            put_mask(s, &rows[r], image->memory + to->mask);
        }
    }
    image->n_bytes = (uint32_t)p.end;
    if (s->has_documents)
        put_documents(image, s, rows);
    /* The ids of all rows are one array. */
    if (s->has_position_ids)
        memcpy(image->memory + p.positions, rows->position_ids, 4ull * s->n_rows * s->length);
    if (s->has_document_ids)
        memcpy(image->memory + p.documents, rows->document_ids, 4ull * s->n_rows * s->length);
    return true;
}

uint8_t *tokmap_i_image_tokens(const tokmap_i_image *image, uint32_t row)
{
    return image->memory + ((const tokmap_i_image_row *)image->memory)[row].tokens;
}

uint8_t *tokmap_i_image_labels(const tokmap_i_image *image, const tokmap_i_image_shape *s,
                               uint32_t row)
{
    return tokmap_i_image_tokens(image, row) + row_bytes(s);
}

tokmap_i_expand_job tokmap_i_image_job(const tokmap_i_image *image, const tokmap_i_image_shape *s)
{
    return (tokmap_i_expand_job){.n_rows = s->n_rows,
                                 .length = s->length,
                                 .n_tiles = n_tiles(s),
                                 .boundaries = image->boundaries,
                                 .tile_boundaries = image->tile_boundaries,
                                 .n_boundaries = image->n_boundaries,
                                 .cu_end = (uint32_t)(s->n_rows * whole_length(s)),
                                 .labels_at = is_slice(s) ? (uint32_t)row_bytes(s) : 0,
                                 .positions = image->positions,
                                 .documents = image->documents};
}

#include "expand_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const expand_output_names[N_OUTPUTS] = {"inputs", "labels", "position_ids",
                                                    "document_ids", "cu_seqlens"};

/* ---- Shapes ---- */

static uint32_t below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(random_next(seed) >> 33) % n;
}

/* Short, around the tile of 2,048, and long. */
static uint32_t make_length(uint64_t *seed)
{
    switch (below(seed, 4)) {
    case 0:
        return 1 + below(seed, 40);
    case 1:
        return 2040 + below(seed, 20);
    case 2:
        return 4090 + below(seed, 20);
    default:
        return 1 + below(seed, 9000);
    }
}

expand_case expand_case_make(uint64_t n, bool only_safe)
{
    static const tokmap_cuda_delivery ways[] = {TOKMAP_CUDA_PUSH, TOKMAP_CUDA_PULL,
                                                TOKMAP_CUDA_DIRECT};
    uint64_t seed = n * 0x9E3779B97F4A7C15u + 1;
    for (int i = 0; i < 4; i++)
        random_next(&seed);
    expand_case c = {.wide = below(&seed, 3) == 0};
    const bool within = below(&seed, 4) == 0;
    c.loader = (tokmap_loader_options){.sequence_length = make_length(&seed),
                                       .batch_rows = 1 + below(&seed, 24),
                                       .seed = random_next(&seed),
                                       .windows = within ? TOKMAP_WINDOWS_WITHIN_DOCUMENT
                                                         : TOKMAP_WINDOWS_CONCAT,
                                       .random_phase = !within && below(&seed, 2),
                                       .row_parts = TOKMAP_ROW_DOCUMENTS,
                                       .io = TOKMAP_IO_MAP};
    c.stage = (tokmap_cuda_options){.outputs = 1 + below(&seed, (1 << N_OUTPUTS) - 1),
                                    .input_bytes = below(&seed, 2) ? 4 : 8,
                                    .label_bytes = below(&seed, 2) ? 4 : 8,
                                    .ignore_index = below(&seed, 2) ? -100 : -1,
                                    .pad_id = below(&seed, 60000),
                                    .n_slots = 2 + below(&seed, 3),
                                    .delivery = ways[below(&seed, only_safe ? 2 : 3)],
                                    .expand_in_next = below(&seed, 3) == 0,
                                    .no_thread = below(&seed, 4) == 0,
                                    .n_copiers = 1 + below(&seed, 3)};
    if (below(&seed, 3) == 0)
        c.stage.outputs |= TOKMAP_CUDA_ROW_POSITIONS;
    return c;
}

void expand_case_describe(const expand_case *c, char *text, size_t n_bytes)
{
    snprintf(text, n_bytes,
             "%u rows of %u, %d bits%s%s, outputs 0x%x of %u and %u bytes, %s, next %d, thread %d",
             c->loader.batch_rows, c->loader.sequence_length, c->wide ? 32 : 16,
             c->loader.windows ? ", within documents" : "",
             c->loader.random_phase ? ", random phase" : "", c->stage.outputs, c->stage.input_bytes,
             c->stage.label_bytes, delivery_name(c->stage.delivery), c->stage.expand_in_next,
             !c->stage.no_thread);
}

/* ---- Outputs ---- */

bool expand_outputs_open(expand_outputs *o, const expand_case *c)
{
    const size_t n = (size_t)c->loader.batch_rows * c->loader.sequence_length;
    const size_t widths[N_OUTPUTS] = {c->stage.input_bytes, c->stage.label_bytes, 4, 4, 4};
    *o = (expand_outputs){.n_documents = 0};
    for (int i = 0; i < N_OUTPUTS; i++) {
        if (!(c->stage.outputs & 1u << i))
            continue;
        o->n_bytes[i] = (n + (i == 4)) * widths[i];
        o->bytes[i] = malloc(o->n_bytes[i]);
        if (!o->bytes[i]) {
            expand_outputs_close(o);
            return fine(cudaErrorMemoryAllocation, "memory for outputs");
        }
    }
    return true;
}

void expand_outputs_close(expand_outputs *o)
{
    for (int i = 0; i < N_OUTPUTS; i++)
        free(o->bytes[i]);
}

static void put(expand_outputs *o, int output, uint32_t width, size_t at, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    if (o->bytes[output] && width == 8)
        memcpy(o->bytes[output] + 8 * at, &value, 8);
    else if (o->bytes[output])
        memcpy(o->bytes[output] + 4 * at, &narrow, 4);
}

static uint32_t token(const tokmap_row *row, uint32_t i)
{
    uint16_t narrow;
    uint32_t wide;
    if (row->token_bytes == 4) {
        memcpy(&wide, (const uint8_t *)row->tokens + 4 * (size_t)i, 4);
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)row->tokens + 2 * (size_t)i, 2);
    return narrow;
}

static void make_row(expand_outputs *o, const expand_case *c, const tokmap_row *row, uint32_t r)
{
    const uint32_t length = c->loader.sequence_length, n_inputs = row->n_tokens - 1;
    const bool in_row = (c->stage.outputs & TOKMAP_CUDA_ROW_POSITIONS) != 0;
    uint32_t document = 0, begin = 0;
    for (uint32_t i = 0; i < length; i++) {
        const size_t at = (size_t)r * length + i;
        const bool there = i < n_inputs;
        if (document + 1 < row->n_documents && (uint32_t)row->cu_seqlens[document + 1] == i) {
            document++;
            begin = i;
        }
        put(o, 0, c->stage.input_bytes, at, there ? token(row, i) : c->stage.pad_id);
        put(o, 1, c->stage.label_bytes, at,
            there ? (int64_t)token(row, i + 1) : c->stage.ignore_index);
        put(o, 2, 4, at, there ? (int64_t)i - (in_row ? 0 : begin) : 0);
        /* What a short row lacks is a document of its own. */
        put(o, 3, 4, at, there ? document : row->n_documents);
    }
}

static void make_borders(expand_outputs *o, const expand_case *c, const tokmap_batch *batch)
{
    const uint32_t length = c->loader.sequence_length;
    const size_t n_cu = (size_t)c->loader.batch_rows * length + 1;
    size_t n = 0;
    o->max_seqlen = 0;
    for (uint32_t r = 0; r < batch->n_rows; r++) {
        const tokmap_row *row = &batch->rows[r];
        const uint32_t lacks = length - (row->n_tokens - 1);
        for (uint32_t d = 0; d < row->n_documents; d++)
            put(o, 4, 4, n++, (int64_t)r * length + row->cu_seqlens[d]);
        if (lacks > 0)
            put(o, 4, 4, n++, (int64_t)r * length + row->n_tokens - 1);
        const uint32_t longest = row->longest_document > lacks ? row->longest_document : lacks;
        o->max_seqlen = longest > o->max_seqlen ? longest : o->max_seqlen;
    }
    o->n_documents = (uint32_t)n;
    for (; n < n_cu; n++)
        put(o, 4, 4, n, (int64_t)(n_cu - 1));
}

void expand_outputs_make(expand_outputs *o, const expand_case *c, const tokmap_batch *batch)
{
    for (uint32_t r = 0; r < batch->n_rows; r++)
        make_row(o, c, &batch->rows[r], r);
    make_borders(o, c, batch);
}

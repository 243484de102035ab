/* SPDX-License-Identifier: Apache-2.0 */
/* expand.cu - makes inputs, labels, ids and boundaries of a batch from its image, on the device.
 *
 * One block makes one tile: 2,048 inputs of one row. It loads what it needs of the image into
 * shared memory once: the row of the table, the tokens in whole 16-byte words, and the words of the
 * mask. It sets a bit for each input at which a document begins, and for each word of bits counts
 * how many documents began before, and where the last one did. Threads then write neighbouring
 * outputs.
 *
 * Written in the common part of C and CUDA, with a function for each part between two barriers, so
 * that tests can run the same source on the processor. The reference in plain C is src/stage/expand.c. */
#include "../expand_job.h"

#define WORDS (TOKMAP_I_TILE / 32)

typedef struct tile {
    uint4 tokens[(TOKMAP_I_TILE + 1) * 4 / 16 + 2];
    tokmap_i_image_row row;
    uint32_t boundary;           /* index of the last boundary at or before the tile */
    uint32_t counts[WORDS];    /* a bit for each input whose label counts */
    uint32_t begins[WORDS];    /* a bit for each input at which a document begins */
    uint32_t documents[WORDS]; /* documents of the row that began before each word */
    int32_t last_begin[WORDS]; /* position in the row at which the last document before each word begins */
} tile;

/* The part of a row on which a block works. */
typedef struct place {
    const uint8_t *image;
    uint64_t first;    /* address of the first token of the tile */
    uint32_t n_tokens; /* of the row from there on; at most one more than the tile */
    uint32_t row_index, begin, n_inputs; /* of the tile; begin: counted in the row */
} place;

/* Loads the row. Runs before the first barrier. */
__device__ static void load_row(tile *t, const tokmap_i_expand_job *job, uint32_t block,
                                uint32_t thread)
{
    const uint8_t *image = (const uint8_t *)job->image;
    const tokmap_i_image_row *row = (const tokmap_i_image_row *)image + block / job->n_tiles;
    if (thread < sizeof *row / 4)
        ((uint32_t *)&t->row)[thread] = ((const uint32_t *)row)[thread];
    else if (thread == sizeof *row / 4 && job->tile_boundaries)
        t->boundary = ((const uint32_t *)(image + job->tile_boundaries))[block];
}

/* Finds the block's part. Runs after the first barrier, in each thread. */
__device__ static place find_place(const tile *t, const tokmap_i_expand_job *job, uint32_t block)
{
    place p;
    p.row_index = block / job->n_tiles;
    p.begin = block % job->n_tiles * TOKMAP_I_TILE;
    p.image = (const uint8_t *)job->image;
    p.n_inputs = job->length - p.begin;
    if (p.n_inputs > TOKMAP_I_TILE)
        p.n_inputs = TOKMAP_I_TILE;
    p.n_tokens = t->row.n_tokens > p.begin ? t->row.n_tokens - p.begin : 0;
    if (p.n_tokens > TOKMAP_I_TILE + 1)
        p.n_tokens = TOKMAP_I_TILE + 1;
    p.first = job->image + t->row.tokens + (uint64_t)p.begin * t->row.token_bytes;
    return p;
}

/* Loads the tokens. Runs before the second barrier. The words at both ends are read whole: a word
 * with any byte of the tokens is in the same page. */
__device__ static void load_tokens(tile *t, const place *p, uint32_t thread)
{
    const uint64_t begin = p->first & ~(uint64_t)15;
    const uint64_t end = p->first + (uint64_t)p->n_tokens * t->row.token_bytes;
    if (thread < WORDS) {
        const uint32_t *mask = (const uint32_t *)(p->image + t->row.mask) + p->begin / 32;
        const int there = (t->row.flags & TOKMAP_I_ROW_MASKED) && 32 * thread < p->n_inputs;
        t->counts[thread] = there ? mask[thread] : 0xFFFFFFFFu;
        t->begins[thread] = 0;
    }
    if (p->n_tokens == 0)
        return;
    const uint32_t n_words = (uint32_t)((end - begin + 15) / 16);
    for (uint32_t i = thread; i < n_words; i += TOKMAP_I_BLOCK_THREADS)
        t->tokens[i] = ((const uint4 *)begin)[i];
}

/* Marks the boundaries inside the tile. Runs before the third barrier. */
__device__ static void mark_begins(tile *t, const tokmap_i_expand_job *job, const place *p,
                                   uint32_t thread)
{
    const int32_t *boundaries = (const int32_t *)(p->image + job->boundaries);
    const int32_t tile_begin = (int32_t)(p->row_index * job->length + p->begin);
    const uint32_t end = t->row.first_boundary + t->row.n_boundaries;
    for (uint32_t i = t->boundary + 1 + thread; i < end; i += TOKMAP_I_BLOCK_THREADS) {
        const uint32_t at = (uint32_t)(boundaries[i] - tile_begin);
        if (at >= p->n_inputs)
            return; /* boundaries are ascending */
        atomicOr(&t->begins[at / 32], 1u << at % 32);
    }
}

/* Before the fourth barrier: one thread per word counts the boundaries before it. */
__device__ static void count_begins(tile *t, const tokmap_i_expand_job *job, const place *p,
                                    uint32_t thread)
{
    if (thread >= WORDS)
        return;
    const int32_t *boundaries = (const int32_t *)(p->image + job->boundaries);
    uint32_t documents = t->boundary - t->row.first_boundary;
    int32_t last = boundaries[t->boundary] - (int32_t)(p->row_index * job->length);
    for (uint32_t w = 0; w < thread; w++) {
        const uint32_t bits = t->begins[w];
        documents += (uint32_t)__popc((int)bits);
        if (bits)
            last = (int32_t)(p->begin + 32 * w + 31 - (uint32_t)__clz((int)bits));
    }
    t->documents[thread] = documents;
    t->last_begin[thread] = last;
}

__device__ static uint32_t load_token(const uint8_t *tokens, uint32_t width, uint32_t i)
{
    return width == 2 ? ((const uint16_t *)tokens)[i] : ((const uint32_t *)tokens)[i];
}

__device__ static uint32_t token_of(const tile *t, const place *p, uint32_t i)
{
    return load_token((const uint8_t *)t->tokens + (p->first & 15), t->row.token_bytes, i);
}

__device__ static uint32_t label_of(const tile *t, const tokmap_i_expand_job *job, const place *p,
                                    uint32_t i)
{
    if (!job->labels_at)
        return token_of(t, p, i + 1);
    return load_token((const uint8_t *)p->first + job->labels_at, t->row.token_bytes, i);
}

__device__ static void put(uint64_t array, uint32_t width, uint64_t at, int64_t value)
{
    if (width == 8)
        ((int64_t *)array)[at] = value;
    else
        ((int32_t *)array)[at] = (int32_t)value;
}

__device__ static void put_tokens(const tile *t, const tokmap_i_expand_job *job, const place *p,
                                  uint32_t i)
{
    const uint64_t at = (uint64_t)p->row_index * job->length + p->begin + i;
    const int there = i + 1 < p->n_tokens; /* has an input and a label */
    if (job->inputs)
        put(job->inputs, job->input_bytes, at, there ? token_of(t, p, i) : job->pad_id);
    if (job->labels) {
        const int counts = there && (t->counts[i / 32] >> i % 32 & 1);
        put(job->labels, job->label_bytes, at,
            counts ? (int64_t)label_of(t, job, p, i) : job->ignore);
    }
}

__device__ static void put_ids(const tile *t, const tokmap_i_expand_job *job, const place *p,
                               uint32_t i)
{
    const uint64_t at = (uint64_t)p->row_index * job->length + p->begin + i;
    const uint32_t j = p->begin + i, n_inputs = t->row.n_tokens - 1;
    uint32_t document = 0;
    int32_t begin = 0;
    if (job->tile_boundaries) {
        const uint32_t w = i / 32;
        const uint32_t bits = t->begins[w] & (0xFFFFFFFFu >> (31 - i % 32));
        document = t->documents[w] + (uint32_t)__popc((int)bits);
        begin = bits ? (int32_t)(p->begin + 32 * w + 31 - (uint32_t)__clz((int)bits))
                     : t->last_begin[w];
    }
    if (job->document_ids)
        ((int32_t *)job->document_ids)[at] =
            job->documents ? ((const int32_t *)(p->image + job->documents))[at] : (int32_t)document;
    if (job->position_ids)
        ((int32_t *)job->position_ids)[at] =
            job->positions  ? ((const int32_t *)(p->image + job->positions))[at]
            : j >= n_inputs ? 0
                            : (int32_t)j - (job->row_positions ? 0 : begin);
}

/* After the last barrier. */
__device__ static void put_tile(const tile *t, const tokmap_i_expand_job *job, const place *p,
                                uint32_t thread)
{
    for (uint32_t i = thread; i < p->n_inputs; i += TOKMAP_I_BLOCK_THREADS) {
        put_tokens(t, job, p, i);
        if (job->document_ids || job->position_ids)
            put_ids(t, job, p, i);
    }
}

/* All blocks do this together. Unused entries are the end of the batch. */
__device__ static void put_boundaries(const tokmap_i_expand_job *job, uint64_t at,
                                      uint64_t n_threads)
{
    const int32_t *boundaries = (const int32_t *)((const uint8_t *)job->image + job->boundaries);
    for (uint64_t i = at; i < job->n_cu; i += n_threads)
        ((int32_t *)job->cu_seqlens)[i] =
            i < job->n_boundaries ? boundaries[i] : (int32_t)job->cu_end;
}

#ifdef __CUDACC__
extern "C" __global__ void __launch_bounds__(TOKMAP_I_BLOCK_THREADS)
    tokmap_expand(const tokmap_i_expand_job job)
{
    __shared__ tile t;
    load_row(&t, &job, blockIdx.x, threadIdx.x);
    __syncthreads();
    const place p = find_place(&t, &job, blockIdx.x);
    load_tokens(&t, &p, threadIdx.x);
    if (job.tile_boundaries) {
        __syncthreads();
        mark_begins(&t, &job, &p, threadIdx.x);
        __syncthreads();
        count_begins(&t, &job, &p, threadIdx.x);
    }
    __syncthreads();
    put_tile(&t, &job, &p, threadIdx.x);
    if (job.cu_seqlens)
        put_boundaries(&job, (uint64_t)blockIdx.x * TOKMAP_I_BLOCK_THREADS + threadIdx.x,
                    (uint64_t)gridDim.x * TOKMAP_I_BLOCK_THREADS);
}
#endif

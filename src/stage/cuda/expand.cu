/* expand.cu - the device's side of a batch: from the image to inputs, labels, ids and borders.
 *
 * One block makes one tile: 2,048 inputs of one row. Everything that it needs of the image comes
 * into shared memory once: the row of the table, the tokens by whole 16-byte words, and the words
 * of the mask. Where documents begin becomes a bit for each input, and how many began before, and
 * where the last one did, is counted in words of bits. Threads then write neighbouring outputs.
 *
 * Written in the C that C and CUDA share, a function for each stretch between two barriers, so that
 * tests run the very same text on the processor. Its plain twin is src/stage/expand.c. */
#include "../expand_job.h"

#define WORDS (TOKMAP_I_TILE / 32)

typedef struct tile {
    uint4 tokens[(TOKMAP_I_TILE + 1) * 4 / 16 + 2];
    tokmap_i_image_row row;
    uint32_t border;           /* the last one at or before the tile */
    uint32_t counts[WORDS];    /* a bit for each input whose label counts */
    uint32_t begins[WORDS];    /* and for each at which a document begins */
    uint32_t documents[WORDS]; /* began before the word, in the row */
    int32_t last_begin[WORDS]; /* the last one before the word, in the row */
} tile;

/* What a block works on. */
typedef struct place {
    const uint8_t *image;
    uint64_t first;    /* token of the tile: an address */
    uint32_t n_tokens; /* of the row, from there on; at most one more than a tile has */
    uint32_t row_index, begin, n_inputs; /* of the tile, in the row */
} place;

/* Before the first barrier. */
__device__ static void load_row(tile *t, const tokmap_i_expand_job *job, uint32_t block,
                                uint32_t thread)
{
    const uint8_t *image = (const uint8_t *)job->image;
    const tokmap_i_image_row *row = (const tokmap_i_image_row *)image + block / job->n_tiles;
    if (thread < sizeof *row / 4)
        ((uint32_t *)&t->row)[thread] = ((const uint32_t *)row)[thread];
    else if (thread == sizeof *row / 4 && job->borders)
        t->border = ((const uint32_t *)(image + job->tile_borders))[block];
}

/* From here on each thread knows. */
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

/* Before the second barrier. The words around the tokens are read whole: a word that holds a byte
 * of them lies in the same page. */
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

/* Before the third barrier: the borders that lie inside the tile. */
__device__ static void mark_begins(tile *t, const tokmap_i_expand_job *job, const place *p,
                                   uint32_t thread)
{
    const int32_t *borders = (const int32_t *)(p->image + job->borders);
    const int32_t tile_begin = (int32_t)(p->row_index * job->length + p->begin);
    const uint32_t end = t->row.first_border + t->row.n_borders;
    for (uint32_t i = t->border + 1 + thread; i < end; i += TOKMAP_I_BLOCK_THREADS) {
        const uint32_t at = (uint32_t)(borders[i] - tile_begin);
        if (at >= p->n_inputs)
            return; /* they rise */
        atomicOr(&t->begins[at / 32], 1u << at % 32);
    }
}

/* Before the fourth barrier: a thread for each word counts those before it. */
__device__ static void count_begins(tile *t, const tokmap_i_expand_job *job, const place *p,
                                    uint32_t thread)
{
    if (thread >= WORDS)
        return;
    const int32_t *borders = (const int32_t *)(p->image + job->borders);
    uint32_t documents = t->border - t->row.first_border;
    int32_t last = borders[t->border] - (int32_t)(p->row_index * job->length);
    for (uint32_t w = 0; w < thread; w++) {
        const uint32_t bits = t->begins[w];
        documents += (uint32_t)__popc((int)bits);
        if (bits)
            last = (int32_t)(p->begin + 32 * w + 31 - (uint32_t)__clz((int)bits));
    }
    t->documents[thread] = documents;
    t->last_begin[thread] = last;
}

__device__ static uint32_t token_of(const tile *t, const place *p, uint32_t i)
{
    const uint8_t *bytes = (const uint8_t *)t->tokens + (p->first & 15);
    if (t->row.token_bytes == 2)
        return ((const uint16_t *)bytes)[i];
    return ((const uint32_t *)bytes)[i];
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
    const int there = i + 1 < p->n_tokens; /* an input and its label */
    if (job->inputs)
        put(job->inputs, job->input_bytes, at, there ? token_of(t, p, i) : job->pad_id);
    if (job->labels) {
        const int counts = there && (t->counts[i / 32] >> i % 32 & 1);
        put(job->labels, job->label_bytes, at,
            counts ? (int64_t)token_of(t, p, i + 1) : job->ignore);
    }
}

__device__ static void put_ids(const tile *t, const tokmap_i_expand_job *job, const place *p,
                               uint32_t i)
{
    const uint64_t at = (uint64_t)p->row_index * job->length + p->begin + i;
    const uint32_t j = p->begin + i, n_inputs = t->row.n_tokens - 1;
    uint32_t document = 0;
    int32_t begin = 0;
    if (job->borders) {
        const uint32_t w = i / 32;
        const uint32_t bits = t->begins[w] & (0xFFFFFFFFu >> (31 - i % 32));
        document = t->documents[w] + (uint32_t)__popc((int)bits);
        begin = bits ? (int32_t)(p->begin + 32 * w + 31 - (uint32_t)__clz((int)bits))
                     : t->last_begin[w];
    }
    if (job->document_ids)
        ((int32_t *)job->document_ids)[at] = (int32_t)document;
    if (job->position_ids)
        ((int32_t *)job->position_ids)[at] =
            j >= n_inputs ? 0 : (int32_t)j - (job->row_positions ? 0 : begin);
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

/* All blocks together; what is left over is the end of the batch. */
__device__ static void put_borders(const tokmap_i_expand_job *job, uint64_t at, uint64_t n_threads)
{
    const int32_t *borders = (const int32_t *)((const uint8_t *)job->image + job->borders);
    for (uint64_t i = at; i < job->n_cu; i += n_threads)
        ((int32_t *)job->cu_seqlens)[i] =
            i < job->n_borders ? borders[i] : (int32_t)(job->n_rows * job->length);
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
    if (job.borders) {
        __syncthreads();
        mark_begins(&t, &job, &p, threadIdx.x);
        __syncthreads();
        count_begins(&t, &job, &p, threadIdx.x);
    }
    __syncthreads();
    put_tile(&t, &job, &p, threadIdx.x);
    if (job.cu_seqlens)
        put_borders(&job, (uint64_t)blockIdx.x * TOKMAP_I_BLOCK_THREADS + threadIdx.x,
                    (uint64_t)gridDim.x * TOKMAP_I_BLOCK_THREADS);
}
#endif

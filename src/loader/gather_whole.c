/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/gather_whole.h"

#include <string.h>

#include "base/base.h"

/* Rows are at random places of a map far larger than the caches, so the cost is waiting for their
 * lines. A processor waits for few lines of one place at a time, and for more of several places. So
 * several rows are copied in turns. Where numbers are widened, turns do not pay, because they would
 * write to more places than the first cache holds. */

enum {
    LINE = 64,
    TURN_BYTES = 2 * LINE,
    /* Rows that take turns, and long rows that do: these often have the same offset in a page,
     * and so compete for the same sets of the first cache. */
    N_LANES = 8,
    N_LONG_LANES = 4,
    LONG_ROW_BYTES = 4 << 10,
    MOST_ROW_BYTES = 64 << 10, /* longer rows gain little */
    FIRST_BYTES = 4 * LINE,    /* of the next piece of a row are prefetched */
    ROWS_AHEAD = 8,            /* whose first bytes are prefetched */
    ROW_BYTES_AHEAD = 2 << 10
};

/* A row that takes turns. */
typedef struct lane {
    const tokmap_i_gather_row *row; /* NULL: none yet */
    uint8_t *copied;                /* where the row goes */
    size_t n_pieces;                /* that were begun */
    /* the last of these */
    uint8_t *dst;
    const uint8_t *src;
    size_t n_bytes, n_copied;
} lane;

/* Begins the next piece of a row. Returns false at the end of the row. */
static bool begin_piece(lane *l, unsigned width)
{
    if (!l->row || l->n_pieces == (l->row->tokens ? 1 : l->row->n_pieces))
        return false;
    const tokmap_piece whole = {.tokens = l->row->tokens, .n_tokens = l->row->n_tokens};
    const tokmap_piece *piece = l->row->tokens ? &whole : &l->row->pieces[l->n_pieces];
    l->n_pieces++;
    l->dst = l->copied + (size_t)piece->place * width;
    l->src = piece->tokens;
    l->n_bytes = (size_t)piece->n_tokens * width;
    l->n_copied = 0;
    for (size_t k = 0; l->n_pieces < l->row->n_pieces && k < FIRST_BYTES; k += LINE)
        __builtin_prefetch((const uint8_t *)l->row->pieces[l->n_pieces].tokens + k);
    return true;
}

/* Whether the rows are only copied, and copying them in turns is faster. */
static bool is_suitable(const tokmap_i_gather *g)
{
    if (!g->whole || !g->inputs || g->n_rows < 2 || (g->n_inputs + 1) * g->width > MOST_ROW_BYTES)
        return false;
    for (size_t i = 0; i < g->n_rows; i++) {
        const tokmap_i_gather_row *row = &g->rows[i];
        size_t n_tokens = row->tokens ? row->n_tokens : 0;
        for (size_t k = 0; !row->tokens && k < row->n_pieces; k++) {
            if (row->pieces[k].place != n_tokens)
                return false;
            n_tokens += row->pieces[k].n_tokens;
        }
        if (row->token_bytes != g->width || n_tokens != g->n_inputs + 1)
            return false;
    }
    return true;
}

#define INLINE static inline __attribute__((always_inline))

/* The reference. */
INLINE void copy_turn(uint8_t *dst, const uint8_t *src)
{
    memcpy(dst, src, TURN_BYTES);
}

/* Prefetches the first bytes of a row, if there is one of this number. */
INLINE void prefetch_row(const tokmap_i_gather *g, size_t number, size_t n_bytes)
{
    if (number >= g->n_rows)
        return;
    const tokmap_i_gather_row *row = &g->rows[number];
    const uint8_t *tokens = row->tokens ? row->tokens : row->pieces[0].tokens;
    const size_t n_here = row->tokens ? n_bytes : row->pieces[0].n_tokens * (size_t)g->width;
    for (size_t k = 0; k < MIN(n_here, ROW_BYTES_AHEAD); k += LINE)
        __builtin_prefetch(tokens + k);
}

INLINE void copy_in_turns(const tokmap_i_gather *g, void (*copy)(uint8_t *, const uint8_t *))
{
    const size_t row_bytes = (g->n_inputs + 1) * g->width;
    lane lanes[N_LANES] = {0};
    size_t n_begun = 0, n_lanes = row_bytes <= LONG_ROW_BYTES ? N_LANES : N_LONG_LANES;
    for (size_t j = 0; n_lanes > 0; j = j + 1 < n_lanes ? j + 1 : 0) {
        lane *l = &lanes[j];
        if (l->n_copied + TURN_BYTES <= l->n_bytes) {
            copy(l->dst + l->n_copied, l->src + l->n_copied);
            /* the turns after the first begin at a line of the copy */
            l->n_copied += TURN_BYTES - (l->n_copied == 0 ? (uintptr_t)l->dst % LINE : 0);
            continue;
        }
        if (l->n_copied < l->n_bytes)
            memcpy(l->dst + l->n_copied, l->src + l->n_copied, l->n_bytes - l->n_copied);
        if (begin_piece(l, g->width))
            continue;
        if (n_begun == g->n_rows) {
            *l = lanes[--n_lanes];
            continue;
        }
        prefetch_row(g, n_begun + ROWS_AHEAD, row_bytes);
        *l = (lane){.row = &g->rows[n_begun], .copied = (uint8_t *)g->inputs + n_begun * row_bytes};
        n_begun++;
    }
}

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))

INLINE AVX2 void copy_turn_avx2(uint8_t *dst, const uint8_t *src)
{
    __m256i lines[TURN_BYTES / sizeof(__m256i)];
    for (size_t i = 0; i < TURN_BYTES / sizeof *lines; i++)
        lines[i] = _mm256_loadu_si256((const __m256i *)(const void *)src + i);
    for (size_t i = 0; i < TURN_BYTES / sizeof *lines; i++)
        _mm256_storeu_si256((__m256i *)(void *)dst + i, lines[i]);
}

AVX2 static void copy_avx2(const tokmap_i_gather *g)
{
    copy_in_turns(g, copy_turn_avx2);
}

INLINE AVX512 void copy_turn_avx512(uint8_t *dst, const uint8_t *src)
{
    __m512i lines[TURN_BYTES / LINE];
    for (size_t i = 0; i < TURN_BYTES / LINE; i++)
        lines[i] = _mm512_loadu_si512(src + LINE * i);
    for (size_t i = 0; i < TURN_BYTES / LINE; i++)
        _mm512_storeu_si512(dst + LINE * i, lines[i]);
}

AVX512 static void copy_avx512(const tokmap_i_gather *g)
{
    copy_in_turns(g, copy_turn_avx512);
}
#endif

bool tokmap_i_gather_whole_by(const tokmap_i_gather *g, tokmap_i_gather_level level)
{
    if (!is_suitable(g))
        return false;
#if defined(__x86_64__)
    if (level != TOKMAP_I_GATHER_SCALAR) {
        (level == TOKMAP_I_GATHER_AVX512 ? copy_avx512 : copy_avx2)(g);
        return true;
    }
#endif
    (void)level;
    copy_in_turns(g, copy_turn);
    return true;
}

bool tokmap_i_gather_whole(const tokmap_i_gather *g)
{
    tokmap_i_gather_level level = TOKMAP_I_GATHER_AVX512;
    while (!tokmap_i_gather_works(level))
        level--;
    return tokmap_i_gather_whole_by(g, level);
}

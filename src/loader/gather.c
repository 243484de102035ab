/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/gather.h"

#include "base/base.h"
#include "base/le.h"

/* A row becomes one copy_run, which writes inputs and labels in one pass, or two of them where
 * inputs and labels are aligned differently. A short row is followed by its fill.
 *
 * Rows are at random places of a map far larger than the caches. The cost is waiting for their
 * first lines, and for the hardware prefetcher to notice a new row. So while a row is copied, a
 * later row is prefetched line by line. */

enum {
    LINE = 64,
    /* The distance to prefetch: 150 ns of latency at 25 bytes per nanosecond, which is several
     * short rows. */
    FETCH_BYTES = 4 << 10,
    /* A row of this length does not prefetch the next one, which would be evicted before its turn,
     * but its own next lines. */
    LONG_ROW_BYTES = 64 << 10,
    /* Lines are prefetched from this many rows at the beginning of a batch, before any is copied:
     * so their pages are looked up at the same time. */
    FIRST_ROWS = 8,
    FIRST_BYTES = 4 * LINE,
    /* With at least this much output, stores bypass the caches: the output would not stay in them
     * until it is read, and the old content of its lines need not be read first. */
    STREAM_BYTES = 32 << 20
};

typedef struct copy_run {
    uint8_t *dst;
    /* not NULL: the token after each token is written here, and mask is for these */
    uint8_t *labels;
    const uint8_t *src;
    size_t n;
    unsigned from, to; /* bytes of a token in src and dst; from = 0: all tokens are `other` */
    const uint8_t *mask;
    uint64_t other;  /* the value where mask is 0 */
    uintptr_t ahead; /* distance from the bytes being read to the bytes to prefetch; wraps around */
} copy_run;

/* Passes each pair of widths as constants, so that each gets a loop of its own. */
#define FOR_PAIR(copy, s, from, to, streaming)                                                     \
    case from << 4 | to:                                                                           \
        copy(s, from, to, streaming);                                                              \
        break;
#define FOR_WIDTHS(copy, s, streaming)                                                             \
    switch ((s)->from << 4 | (s)->to) {                                                            \
        FOR_PAIR(copy, s, 2, 2, streaming)                                                         \
        FOR_PAIR(copy, s, 2, 4, streaming)                                                         \
        FOR_PAIR(copy, s, 2, 8, streaming)                                                         \
        FOR_PAIR(copy, s, 4, 4, streaming)                                                         \
        FOR_PAIR(copy, s, 4, 8, streaming)                                                         \
        FOR_PAIR(copy, s, 0, 2, streaming)                                                         \
        FOR_PAIR(copy, s, 0, 4, streaming)                                                         \
        FOR_PAIR(copy, s, 0, 8, streaming)                                                         \
    }

/* Passes each combination as constants too: with and without labels and a mask, bypassing the
 * caches or not. */
#define FOR_STORE(copy, s, from, to, paired, masked, streaming)                                    \
    if (streaming)                                                                                 \
        copy(s, from, to, paired, masked, true);                                                   \
    else                                                                                           \
        copy(s, from, to, paired, masked, false);
#define FOR_KINDS(copy, s, from, to, streaming)                                                    \
    if ((from) && (s)->labels && (s)->mask) {                                                      \
        FOR_STORE(copy, s, from, to, true, true, streaming)                                        \
    } else if ((from) && (s)->labels) {                                                            \
        FOR_STORE(copy, s, from, to, true, false, streaming)                                       \
    } else if ((from) && (s)->mask) {                                                              \
        FOR_STORE(copy, s, from, to, false, true, streaming)                                       \
    } else {                                                                                       \
        FOR_STORE(copy, s, from, to, false, false, streaming)                                      \
    }

#define INLINE static inline __attribute__((always_inline))

INLINE void put(uint8_t *dst, unsigned to, uint64_t x)
{
    const uint16_t x16 = (uint16_t)x;
    const uint32_t x32 = (uint32_t)x;
    if (to == 2)
        memcpy(dst, &x16, 2);
    else if (to == 4)
        memcpy(dst, &x32, 4);
    else
        memcpy(dst, &x, 8);
}

INLINE void loop_scalar(const copy_run *s, unsigned from, unsigned to, bool masked)
{
    uint8_t *restrict dst = s->dst;
    const uint8_t *restrict src = s->src, *restrict mask = s->mask;
    const size_t n = s->n;
    const uint64_t other = s->other;
    for (size_t i = 0; i < n; i++) {
        uint64_t x = from == 0 ? other : from == 2 ? le_get16(src + 2 * i) : le_get32(src + 4 * i);
        if (masked)
            x = mask[i] ? x : other;
        put(dst + i * to, to, x);
    }
}

INLINE void widths_scalar(const copy_run *s, unsigned from, unsigned to, bool streaming)
{
    (void)streaming; /* there is no portable non-temporal store */
    if (from && s->mask)
        loop_scalar(s, from, to, true);
    else
        loop_scalar(s, from, to, false);
}

static void copy_scalar(const copy_run *s, bool streaming)
{
    FOR_WIDTHS(widths_scalar, s, streaming)
}

#if defined(__x86_64__)
#include <immintrin.h>

#include "base/blend.h"

/* Inline assembly in place of intrinsics: clang merges the two equal stores of the two branches,
 * and the result is an ordinary store. */
#define STREAM(type, dst, x) __asm__("vmovntdq %1, %0" : "=m"(*(type *)(dst)) : "v"(x))

/* The loop for one kind of vector. The first and the last vector may overlap their neighbours, so
 * that no single elements remain at the ends, and all others are stored aligned. One iteration
 * reads one cache line. */
#define LOOP(TARGET, level, vector)                                                                \
    INLINE TARGET void store_##level(uint8_t *dst, vector x, bool streaming)                       \
    {                                                                                              \
        if (streaming)                                                                             \
            STREAM(vector, dst, x);                                                                \
        else                                                                                       \
            memcpy(dst, &x, sizeof x);                                                             \
    }                                                                                              \
                                                                                                   \
    INLINE TARGET void turn_##level(const copy_run *s, size_t i, size_t n, vector other,           \
                                    bool paired, bool masked, bool streaming)                      \
    {                                                                                              \
        const size_t per_vector = sizeof(vector) / s->to;                                          \
        copy_run labels = *s;                                                                      \
        if (s->from) /* else src is NULL */                                                        \
            labels.src += s->from;                                                                 \
        for (size_t k = i; k < i + n; k += per_vector)                                             \
            store_##level(s->dst + k * s->to, vector_##level(s, k, other, masked && !paired),      \
                          streaming);                                                              \
        for (size_t k = i; paired && k < i + n; k += per_vector)                                   \
            store_##level(s->labels + k * s->to, vector_##level(&labels, k, other, masked),        \
                          streaming);                                                              \
    }                                                                                              \
                                                                                                   \
    INLINE TARGET void loop_##level(const copy_run *in, unsigned from, unsigned to, bool paired,   \
                                    bool masked, bool streaming)                                   \
    {                                                                                              \
        const size_t per_vector = sizeof(vector) / to;                                             \
        const size_t per_turn = from ? LINE / from : 4 * per_vector;                               \
        if (in->n < per_vector) {                                                                  \
            copy_scalar(in, false);                                                                \
            return;                                                                                \
        }                                                                                          \
        copy_run s = *in; /* a copy, because the stores could change what `in` points to */        \
        s.from = from;                                                                             \
        s.to = to;                                                                                 \
        const vector other = other_##level(s.other, to);                                           \
        const uintptr_t fetch = (uintptr_t)s.src + s.ahead;                                        \
        size_t i = -(uintptr_t)s.dst % sizeof(vector) / to;                                        \
        if (from)                                                                                  \
            _mm_prefetch((const void *)fetch, _MM_HINT_T0);                                        \
        if (i > 0)                                                                                 \
            turn_##level(&s, 0, per_vector, other, paired, masked, false);                         \
        for (; i + per_turn <= s.n; i += per_turn) {                                               \
            if (from)                                                                              \
                _mm_prefetch((const void *)(fetch + i * from), _MM_HINT_T0);                       \
            turn_##level(&s, i, per_turn, other, paired, masked, streaming);                       \
        }                                                                                          \
        for (; i + per_vector <= s.n; i += per_vector)                                             \
            turn_##level(&s, i, per_vector, other, paired, masked, streaming);                     \
        if (i < s.n)                                                                               \
            turn_##level(&s, s.n - per_vector, per_vector, other, paired, masked, false);          \
    }

#define AVX2 __attribute__((target("avx2")))

INLINE AVX2 __m256i mask_avx2(const uint8_t *mask, unsigned to)
{
    if (to == 2)
        return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)mask));
    if (to == 4)
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)mask));
    int four;
    memcpy(&four, mask, sizeof four);
    return _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four));
}

INLINE AVX2 __m256i is_zero_avx2(__m256i x, unsigned to)
{
    const __m256i zero = _mm256_setzero_si256();
    return to == 2   ? _mm256_cmpeq_epi16(x, zero)
           : to == 4 ? _mm256_cmpeq_epi32(x, zero)
                     : _mm256_cmpeq_epi64(x, zero);
}

INLINE AVX2 __m256i widen_avx2(const uint8_t *src, unsigned from, unsigned to)
{
    if (from == to)
        return _mm256_loadu_si256((const void *)src);
    if (from == 4)
        return _mm256_cvtepu32_epi64(_mm_loadu_si128((const void *)src));
    if (to == 4)
        return _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)src));
    return _mm256_cvtepu16_epi64(_mm_loadl_epi64((const void *)src));
}

INLINE AVX2 __m256i other_avx2(uint64_t other, unsigned to)
{
    return to == 2   ? _mm256_set1_epi16((short)other)
           : to == 4 ? _mm256_set1_epi32((int)other)
                     : _mm256_set1_epi64x((long long)other);
}

INLINE AVX2 __m256i vector_avx2(const copy_run *s, size_t i, __m256i other, bool masked)
{
    if (s->from == 0)
        return other;
    const __m256i x = widen_avx2(s->src + i * s->from, s->from, s->to);
    if (!masked)
        return x;
    return blend_bytes(x, other, is_zero_avx2(mask_avx2(s->mask + i, s->to), s->to));
}

LOOP(AVX2, avx2, __m256i)

INLINE AVX2 void widths_avx2(const copy_run *s, unsigned from, unsigned to,
                             bool streaming){FOR_KINDS(loop_avx2, s, from, to, streaming)}

AVX2 static void copy_avx2(const copy_run *s, bool streaming){FOR_WIDTHS(widths_avx2, s, streaming)}

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

INLINE AVX512 __m512i widen_avx512(const uint8_t *src, unsigned from, unsigned to)
{
    if (from == to)
        return _mm512_loadu_si512(src);
    if (from == 4)
        return _mm512_cvtepu32_epi64(_mm256_loadu_si256((const void *)src));
    if (to == 4)
        return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)src));
    return _mm512_cvtepu16_epi64(_mm_loadu_si128((const void *)src));
}

INLINE AVX512 __m512i other_avx512(uint64_t other, unsigned to)
{
    return to == 2   ? _mm512_set1_epi16((short)other)
           : to == 4 ? _mm512_set1_epi32((int)other)
                     : _mm512_set1_epi64((long long)other);
}

/* Returns x where the mask is not 0, else other. */
INLINE AVX512 __m512i blend_avx512(__m512i x, const uint8_t *mask, __m512i other, unsigned to)
{
    if (to == 2) {
        const __m256i bytes = _mm256_loadu_si256((const void *)mask);
        return _mm512_mask_blend_epi16(_mm256_test_epi8_mask(bytes, bytes), other, x);
    }
    if (to == 4) {
        const __m128i bytes = _mm_loadu_si128((const void *)mask);
        return _mm512_mask_blend_epi32(_mm_test_epi8_mask(bytes, bytes), other, x);
    }
    const __m512i lanes = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const void *)mask));
    return _mm512_mask_blend_epi64(_mm512_test_epi64_mask(lanes, lanes), other, x);
}

INLINE AVX512 __m512i vector_avx512(const copy_run *s, size_t i, __m512i other, bool masked)
{
    if (s->from == 0)
        return other;
    const __m512i x = widen_avx512(s->src + i * s->from, s->from, s->to);
    return masked ? blend_avx512(x, s->mask + i, other, s->to) : x;
}

LOOP(AVX512, avx512, __m512i)

INLINE AVX512 void widths_avx512(const copy_run *s, unsigned from, unsigned to,
                                 bool streaming){FOR_KINDS(loop_avx512, s, from, to, streaming)}

AVX512 static void copy_avx512(const copy_run *s, bool streaming)
{
    FOR_WIDTHS(widths_avx512, s, streaming)
}
#endif

static void (*const COPIES[])(const copy_run *s, bool streaming) = {
    [TOKMAP_I_GATHER_SCALAR] = copy_scalar,
#if defined(__x86_64__)
    [TOKMAP_I_GATHER_AVX2] = copy_avx2,
    [TOKMAP_I_GATHER_AVX512] = copy_avx512,
#endif
};

typedef struct gather_settings {
    const tokmap_i_gather *g;
    size_t rows_ahead; /* prefetch the row that is this many rows later; 0: the same row */
    tokmap_i_gather_level level;
    bool streaming;
} gather_settings;

static uintptr_t find_ahead(const gather_settings *p, size_t row_index)
{
    const tokmap_i_gather_row *row = &p->g->rows[row_index];
    if (p->rows_ahead == 0)
        return FETCH_BYTES;
    if (p->rows_ahead >= p->g->n_rows - row_index)
        return 0; /* nothing left to prefetch: use the line that is read anyway */
    return (uintptr_t)row[p->rows_ahead].tokens - (uintptr_t)row->tokens;
}

/* Writes the same number n times. */
static void fill(const gather_settings *p, uint8_t *dst, size_t n, uint64_t number)
{
    const copy_run s = {.dst = dst, .n = n, .to = p->g->width, .other = number};
    if (n > 0)
        COPIES[p->level](&s, p->streaming);
}

/* Returns what is read after a piece; after the last one, the piece itself. */
static const void *next_tokens(const gather_settings *p, size_t row_index, size_t piece)
{
    const tokmap_i_gather_row *row = &p->g->rows[row_index];
    if (piece + 1 < row->n_pieces)
        return row->pieces[piece + 1].tokens;
    if (row_index + 1 < p->g->n_rows && row[1].n_pieces > 0)
        return row[1].pieces[0].tokens;
    return row->pieces[piece].tokens;
}

static uint64_t token_at(const tokmap_i_gather_row *row, const tokmap_piece *piece, size_t i)
{
    const uint8_t *tokens = piece->tokens;
    return row->token_bytes == 2 ? le_get16(tokens + 2 * i) : le_get32(tokens + 4 * i);
}

/* Writes the last input of a piece that continues, and its label, which is in the next piece. */
static void write_last(const gather_settings *p, const tokmap_i_gather_row *row,
                       const tokmap_piece *piece, uint8_t *inputs, uint8_t *labels)
{
    const size_t last = piece->n_tokens - 1, to = last * p->g->width;
    const bool counts = !row->mask || row->mask[piece->place + last];
    if (inputs)
        put(inputs + to, p->g->width, token_at(row, piece, last));
    if (labels)
        put(labels + to, p->g->width,
            counts ? token_at(row, piece + 1, 0) : (uint64_t)p->g->ignore);
}

/* Writes the inputs and labels of a piece, and the fill up to the next one. */
static void write_piece(const gather_settings *p, size_t row_index, const tokmap_piece *piece,
                        size_t n_places, uintptr_t ahead)
{
    const tokmap_i_gather *g = p->g;
    const tokmap_i_gather_row *row = &g->rows[row_index];
    const size_t dst_offset = (row_index * (g->n_inputs + g->whole) + piece->place) * g->width;
    uint8_t *const inputs = g->inputs ? (uint8_t *)g->inputs + dst_offset : NULL;
    uint8_t *const labels = g->labels ? (uint8_t *)g->labels + dst_offset : NULL;
    const size_t n_inputs = g->whole ? piece->n_tokens : piece->n_inputs;
    const size_t n_labels = piece->n_tokens - (piece->n_tokens > 0);
    const bool continues = piece->continues && !g->whole;
    const size_t n_here = n_inputs - continues; /* with labels in this piece */
    const bool paired = inputs && labels && p->level != TOKMAP_I_GATHER_SCALAR &&
                        n_here == n_labels && n_here * g->width >= LINE &&
                        ((uintptr_t)labels - (uintptr_t)inputs) % LINE == 0;
    copy_run s = {.dst = inputs,
                  .labels = paired ? labels : NULL,
                  .src = piece->tokens,
                  .n = n_here,
                  .from = row->token_bytes,
                  .to = g->width,
                  .ahead = ahead};
    if (inputs && !paired) {
        COPIES[p->level](&s, p->streaming);
        s.ahead = 0; /* only one pass prefetches */
    }
    if (labels && n_labels > 0) {
        s.mask = row->mask ? row->mask + piece->place : NULL;
        s.other = (uint64_t)g->ignore;
        s.dst = paired ? inputs : labels;
        s.src += paired ? 0 : s.from;
        s.n = n_labels;
        COPIES[p->level](&s, p->streaming);
    }
    if (continues) {
        write_last(p, row, piece, inputs, labels);
        return; /* the next piece follows at once */
    }
    if (inputs)
        fill(p, inputs + n_inputs * g->width, n_places - n_inputs, g->pad_id);
    if (labels)
        fill(p, labels + n_labels * g->width, n_places - n_labels, (uint64_t)g->ignore);
}

static void write_row(const gather_settings *p, size_t row_index)
{
    static const tokmap_piece none; /* stands before the first piece */
    const tokmap_i_gather_row *row = &p->g->rows[row_index];
    const tokmap_piece whole = {
        .tokens = row->tokens, .n_tokens = row->n_tokens, .n_inputs = row->n_tokens - 1};
    const size_t n_wanted = p->g->n_inputs + p->g->whole;
    if (row->tokens) {
        write_piece(p, row_index, &whole, n_wanted, find_ahead(p, row_index));
        return;
    }
    const size_t n_before = row->n_pieces > 0 ? row->pieces[0].place : n_wanted;
    if (n_before > 0)
        write_piece(p, row_index, &none, n_before, 0);
    for (size_t k = 0; k < row->n_pieces; k++) {
        const tokmap_piece *piece = &row->pieces[k];
        const size_t end = k + 1 < row->n_pieces ? piece[1].place : n_wanted;
        write_piece(p, row_index, piece, end - piece->place,
                    (uintptr_t)next_tokens(p, row_index, k) - (uintptr_t)piece->tokens);
    }
}

bool tokmap_i_gather_works(tokmap_i_gather_level level)
{
#if defined(__x86_64__)
    if (level == TOKMAP_I_GATHER_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl");
    if (level == TOKMAP_I_GATHER_AVX2)
        return __builtin_cpu_supports("avx2");
#endif
    return level == TOKMAP_I_GATHER_SCALAR;
}

void tokmap_i_gather_run_by(const tokmap_i_gather *g, tokmap_i_gather_level level, bool streaming)
{
    gather_settings p = {.g = g, .level = level, .streaming = streaming};
    /* Computed for 2 bytes a token; wider rows are only prefetched earlier. */
    const size_t row_bytes = (g->n_inputs + 1) * 2;
    if (row_bytes <= LONG_ROW_BYTES)
        p.rows_ahead = (size_t)div_up(FETCH_BYTES, row_bytes);
    for (size_t i = 0; i < MIN(g->n_rows, FIRST_ROWS); i++)
        for (size_t k = 0; g->rows[i].tokens && k < MIN(row_bytes, FIRST_BYTES); k += LINE)
            __builtin_prefetch((const uint8_t *)g->rows[i].tokens + k);
    for (size_t i = 0; i < g->n_rows; i++)
        write_row(&p, i);
#if defined(__x86_64__)
    /* non-temporal stores are not ordered with later ones */
    if (streaming)
        _mm_sfence();
#endif
}

void tokmap_i_gather_run(const tokmap_i_gather *g)
{
    const size_t n_outputs = (g->inputs != NULL) + (g->labels != NULL);
    const size_t n_bytes = g->n_rows * (g->n_inputs + g->whole) * g->width * n_outputs;
    tokmap_i_gather_level level = TOKMAP_I_GATHER_AVX512;
    while (!tokmap_i_gather_works(level))
        level--;
    tokmap_i_gather_run_by(g, level, n_bytes >= STREAM_BYTES);
}

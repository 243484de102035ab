/* SPDX-License-Identifier: Apache-2.0 */
#include "base/content_hash.h"

#include <stdbool.h>

#include "base/le.h"

#if defined __x86_64__
#include <immintrin.h>
#endif

/* Polynomials are reflected: the lowest bit of a word is the coefficient of the highest power. So
 * the product of two words without carries is the product of the polynomials times x, which the
 * constants make up for. */

/* The table of what each value of a byte adds to a remainder when 0 to 3 bytes follow it: the sum
 * of what its bits add, the highest bit first. */
#define OF_BYTE(b, k7, k6, k5, k4, k3, k2, k1, k0)                                                 \
    (((b) >> 7 & 1) * k7 ^ ((b) >> 6 & 1) * k6 ^ ((b) >> 5 & 1) * k5 ^ ((b) >> 4 & 1) * k4 ^       \
     ((b) >> 3 & 1) * k3 ^ ((b) >> 2 & 1) * k2 ^ ((b) >> 1 & 1) * k1 ^ ((b)&1) * k0)
#define OF_4(b, ...)                                                                               \
    OF_BYTE(b, __VA_ARGS__), OF_BYTE(b + 1, __VA_ARGS__), OF_BYTE(b + 2, __VA_ARGS__),             \
        OF_BYTE(b + 3, __VA_ARGS__)
#define OF_16(b, ...)                                                                              \
    OF_4(b, __VA_ARGS__), OF_4(b + 4, __VA_ARGS__), OF_4(b + 8, __VA_ARGS__),                      \
        OF_4(b + 12, __VA_ARGS__)
#define OF_64(b, ...)                                                                              \
    OF_16(b, __VA_ARGS__), OF_16(b + 16, __VA_ARGS__), OF_16(b + 32, __VA_ARGS__),                 \
        OF_16(b + 48, __VA_ARGS__)
#define OF_EACH(...)                                                                               \
    {                                                                                              \
        OF_64(0u, __VA_ARGS__), OF_64(64u, __VA_ARGS__), OF_64(128u, __VA_ARGS__),                 \
            OF_64(192u, __VA_ARGS__)                                                               \
    }

/* Indexed by modulus, bytes that follow, and byte. A constant is the previous one times x. */
static const uint64_t content_hash_tables[2][4][256] = {
    {
        /* CRC-64/NVME */
        OF_EACH(0x9a6c9329ac4bc9b5, 0xd75adabd7a6e2d6f, 0xf1c1fe77117cdf02, 0x78e0ff3b88be6f81,
                0xa61cecb46814fe75, 0xc962e5739841b68f, 0xfedde190606b12f2, 0x7f6ef0c830358979),
        OF_EACH(0xa5dbeb4db4510d09, 0xc881668f76634f31, 0xfe2c206e177a6e2d, 0xe57a831ea7f6fea3,
                0xe8d1d2a6ffb0b6e4, 0x7468e9537fd85b72, 0x3a3474a9bfec2db9, 0x8776a97d73bddf69),
        OF_EACH(0xd9d7c79715952601, 0xf68770e226815ab5, 0xe12f2b58bf0b64ef, 0xeafb0685f3ce7bc2,
                0x757d8342f9e73de1, 0xa0d25288d0b85745, 0xca05ba6dc417e217, 0xff6e4e1f4e4038be),
        OF_EACH(0x7fb7270fa7201c5f, 0xa5b700ae7fdbc79a, 0x52db80573fede3cd, 0xb301530233bd3853,
                0xc3ec3aa8b595559c, 0x61f61d545acaaace, 0x30fb0eaa2d655567, 0x8211147cbaf96306),
    },
    {
        /* CRC-64/REDIS */
        OF_EACH(0x95ac9329ac4bc9b5, 0xdf7adabd7a6e2d6f, 0xfa11fe77117cdf02, 0x7d08ff3b88be6f81,
                0xab28ecb46814fe75, 0xc038e5739841b68f, 0xf5b0e190606b12f2, 0x7ad870c830358979),
        OF_EACH(0xa8c0ab4db4510d09, 0xc1ccc68f76634f31, 0xf54af06e177a6e2d, 0xef09eb1ea7f6fea3,
                0xe22866a6ffb0b6e4, 0x711433537fd85b72, 0x388a19a9bfec2db9, 0x89e99ffd73bddf69),
        OF_EACH(0xd1585cd715952601, 0xfd00bd4226815ab5, 0xeb2ccd88bf0b64ef, 0xe03af5edf3ce7bc2,
                0x701d7af6f9e73de1, 0xada22e52d0b85745, 0xc37d8400c417e217, 0xf4125129ce4038be),
        OF_EACH(0x7a092894e7201c5f, 0xa8a80763dfdbc79a, 0x545403b1efede3cd, 0xbf8692f15bbd3853,
                0xca6fda510195559c, 0x6537ed2880caaace, 0x329bf69440655567, 0x8ce168638c796306),
    },
};

typedef struct modulus {
    uint64_t polynomial; /* without x^64 */
    const uint64_t (*tables)[256];
    uint64_t move_64[2], move_256[2]; /* x^575 and x^511; x^2111 and x^2047 */
} modulus;

static const modulus moduli[2] = {
    {0x9a6c9329ac4bc9b5,
     content_hash_tables[0],
     {0x0c32cdb31e18a84a, 0x62242240ace5045a},
     {0x37ccd3e14069cabc, 0xa043808c0f782663}},
    {0x95ac9329ac4bc9b5,
     content_hash_tables[1],
     {0xaf86efb16d9ab4fb, 0xf49784a634f014e4},
     {0x9a8908341a6d6d52, 0x9471a5389095fe44}},
};

/* ---- 4 bytes at a time ---- */

static void add_bytes(uint64_t crc[2], const uint8_t *p, size_t n_bytes)
{
    uint64_t a = crc[0], b = crc[1];
    const uint64_t(*t)[256] = content_hash_tables[0], (*u)[256] = content_hash_tables[1];
    size_t at = 0;
    for (; at + 4 <= n_bytes; at += 4) {
        const uint32_t word = le_get32(p + at), v = word ^ (uint32_t)a, w = word ^ (uint32_t)b;
        a = a >> 32 ^ t[3][v & 255] ^ t[2][v >> 8 & 255] ^ t[1][v >> 16 & 255] ^ t[0][v >> 24];
        b = b >> 32 ^ u[3][w & 255] ^ u[2][w >> 8 & 255] ^ u[1][w >> 16 & 255] ^ u[0][w >> 24];
    }
    for (; at < n_bytes; at++) {
        a = a >> 8 ^ t[0][(a ^ p[at]) & 255];
        b = b >> 8 ^ u[0][(b ^ p[at]) & 255];
    }
    crc[0] = a;
    crc[1] = b;
}

/* ---- With multiplication without carries ---- */

/* A register holds a part of the sequence, and a group of registers the remainder so far: as many
 * bytes as the group has. A step multiplies the remainder by the power of x that moves it forward
 * by its own length, with one product for each half of 16 bytes, and adds the next bytes. At the
 * end, the sequence that is left is one group long. */

#if defined __x86_64__

enum {
    GROUP_128 = 4 * 16,
    GROUP_WIDE = 4 * 64 /* also for registers of 32 bytes */
};

#define CLMUL __attribute__((target("pclmul,sse4.1")))
#define VCLMUL_256 __attribute__((target("vpclmulqdq,avx2")))
#define VCLMUL_512 __attribute__((target("vpclmulqdq,avx512f")))

/* Returns one remainder of a multiple of 4 bytes. */
static uint64_t reduce(const uint64_t (*t)[256], const uint8_t *p, size_t n_bytes)
{
    uint64_t crc = 0;
    for (size_t at = 0; at < n_bytes; at += 4) {
        const uint32_t v = le_get32(p + at) ^ (uint32_t)crc;
        crc = crc >> 32 ^ t[3][v & 255] ^ t[2][v >> 8 & 255] ^ t[1][v >> 16 & 255] ^ t[0][v >> 24];
    }
    return crc;
}

CLMUL static inline __m128i move_128(__m128i l, __m128i by)
{
    return _mm_xor_si128(_mm_clmulepi64_si128(l, by, 0x00), _mm_clmulepi64_si128(l, by, 0x11));
}

/* Folds n_bytes, a multiple of GROUP_128 and not 0, into one remainder. */
CLMUL static uint64_t fold_128(const modulus *m, uint64_t crc, const uint8_t *p, size_t n_bytes)
{
    const __m128i by = _mm_loadu_si128((const __m128i *)m->move_64);
    __m128i group[4];
    for (int i = 0; i < 4; i++)
        group[i] = _mm_loadu_si128((const __m128i *)p + i);
    group[0] = _mm_xor_si128(group[0], _mm_cvtsi64_si128((long long)crc));
    for (size_t at = GROUP_128; at < n_bytes; at += GROUP_128) {
        for (int i = 0; i < 4; i++) {
            const __m128i next = _mm_loadu_si128((const __m128i *)(p + at) + i);
            group[i] = _mm_xor_si128(move_128(group[i], by), next);
        }
    }
    return reduce(m->tables, (const uint8_t *)group, sizeof group);
}

VCLMUL_256 static inline __m256i move_256(__m256i l, __m256i by)
{
    return _mm256_xor_si256(_mm256_clmulepi64_epi128(l, by, 0x00),
                            _mm256_clmulepi64_epi128(l, by, 0x11));
}

/* Loads the 32 bytes at `at`. narrow: they are stored as 16 bytes, numbers of 16 bits. */
VCLMUL_256 static inline __m256i load_256(const uint8_t *p, size_t at, bool narrow)
{
    if (narrow)
        return _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + at / 2)));
    return _mm256_loadu_si256((const __m256i *)(p + at));
}

/* Folds a multiple of GROUP_WIDE, not 0, into one remainder. narrow: half as many bytes are
 * stored. */
VCLMUL_256 static uint64_t fold_256(const modulus *m, uint64_t crc, const uint8_t *p,
                                    size_t n_bytes, bool narrow)
{
    const __m128i move = _mm_loadu_si128((const __m128i *)m->move_256);
    const __m256i by = _mm256_broadcastsi128_si256(move);
    __m256i group[8];
    for (int i = 0; i < 8; i++)
        group[i] = load_256(p, 32 * (size_t)i, narrow);
    group[0] = _mm256_xor_si256(group[0], _mm256_set_epi64x(0, 0, 0, (long long)crc));
    for (size_t at = GROUP_WIDE; at < n_bytes; at += GROUP_WIDE)
        for (int i = 0; i < 8; i++)
            group[i] =
                _mm256_xor_si256(move_256(group[i], by), load_256(p, at + 32 * (size_t)i, narrow));
    return fold_128(m, 0, (const uint8_t *)group, sizeof group);
}

VCLMUL_512 static inline __m512i move_512(__m512i l, __m512i by)
{
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(l, by, 0x00),
                            _mm512_clmulepi64_epi128(l, by, 0x11));
}

VCLMUL_512 static inline __m512i load_512(const uint8_t *p, size_t at, bool narrow)
{
    if (narrow)
        return _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(p + at / 2)));
    return _mm512_loadu_si512(p + at);
}

/* Folds a multiple of GROUP_WIDE, not 0, into both remainders. */
VCLMUL_512 static inline void fold_512(uint64_t crc[2], const uint8_t *p, size_t n_bytes,
                                       bool narrow)
{
    __m512i group[2][4], by[2];
    for (int i = 0; i < 4; i++)
        group[0][i] = group[1][i] = load_512(p, 64 * (size_t)i, narrow);
    for (int k = 0; k < 2; k++) {
        const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)crc[k]));
        by[k] = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)moduli[k].move_256));
        group[k][0] = _mm512_xor_si512(group[k][0], before);
    }
    for (size_t at = GROUP_WIDE; at < n_bytes; at += GROUP_WIDE) {
        for (int i = 0; i < 4; i++) {
            const __m512i next = load_512(p, at + 64 * (size_t)i, narrow);
            group[0][i] = _mm512_xor_si512(move_512(group[0][i], by[0]), next);
            group[1][i] = _mm512_xor_si512(move_512(group[1][i], by[1]), next);
        }
    }
    for (int k = 0; k < 2; k++)
        crc[k] = fold_128(&moduli[k], 0, (const uint8_t *)group[k], sizeof group[k]);
}

VCLMUL_512 static void fold_with_512(uint64_t crc[2], const uint8_t *p, size_t n_bytes, bool narrow)
{
    if (narrow)
        fold_512(crc, p, n_bytes, true);
    else
        fold_512(crc, p, n_bytes, false);
}

/* Adds a multiple of GROUP_WIDE. Returns false if this machine or the engine cannot. */
static bool fold_wide(uint64_t crc[2], const uint8_t *p, size_t n_bytes, bool narrow,
                      tokmap_i_content_engine engine)
{
    if (engine < CONTENT_256 || n_bytes == 0 || !__builtin_cpu_supports("vpclmulqdq") ||
        !__builtin_cpu_supports("avx2"))
        return false;
    if (engine == CONTENT_512 && __builtin_cpu_supports("avx512f"))
        fold_with_512(crc, p, n_bytes, narrow);
    else
        for (int k = 0; k < 2; k++)
            crc[k] = fold_256(&moduli[k], crc[k], p, n_bytes, narrow);
    return true;
}

/* Adds as much from the front as the engine can, and returns how much. */
static size_t fold_bytes(uint64_t crc[2], const uint8_t *p, size_t n_bytes,
                         tokmap_i_content_engine engine)
{
    const size_t n_wide = n_bytes / GROUP_WIDE * GROUP_WIDE;
    if (fold_wide(crc, p, n_wide, false, engine))
        return n_wide;
    const size_t n = n_bytes / GROUP_128 * GROUP_128;
    if (n == 0 || engine == CONTENT_SCALAR || !__builtin_cpu_supports("pclmul") ||
        !__builtin_cpu_supports("sse4.1"))
        return 0;
    for (int k = 0; k < 2; k++)
        crc[k] = fold_128(&moduli[k], crc[k], p, n);
    return n;
}

/* The same as fold_bytes, for tokens of 2 bytes, counted in tokens. */
static size_t fold_tokens(uint64_t crc[2], const uint8_t *p, size_t n_tokens)
{
    const size_t n = n_tokens / (GROUP_WIDE / 4) * (GROUP_WIDE / 4);
    return fold_wide(crc, p, 4 * n, true, CONTENT_512) ? n : 0;
}

#else

static size_t fold_bytes(uint64_t crc[2], const uint8_t *p, size_t n_bytes,
                         tokmap_i_content_engine engine)
{
    (void)crc, (void)p, (void)n_bytes, (void)engine;
    return 0;
}

static size_t fold_tokens(uint64_t crc[2], const uint8_t *p, size_t n_tokens)
{
    (void)crc, (void)p, (void)n_tokens;
    return 0;
}

#endif

/* ---- All of it ---- */

#define N_AT_ONCE 2048 /* tokens of 2 bytes */

void tokmap_i_content_hash_store(const tokmap_i_content_hash *h, uint8_t *bytes)
{
    le_put64(bytes, h->crc[0]);
    le_put64(bytes + 8, h->crc[1]);
}

void tokmap_i_content_hash_add_with(tokmap_i_content_hash *h, const void *data, size_t n_bytes,
                                    tokmap_i_content_engine engine)
{
    const uint8_t *p = data;
    size_t at = 0;
    for (size_t n = 1; n > 0; at += n) /* large groups, and small ones for the rest */
        n = fold_bytes(h->crc, p + at, n_bytes - at, engine);
    add_bytes(h->crc, p + at, n_bytes - at);
    h->n_bytes += n_bytes;
}

void tokmap_i_content_hash_add(tokmap_i_content_hash *h, const void *data, size_t n_bytes)
{
    tokmap_i_content_hash_add_with(h, data, n_bytes, CONTENT_512);
}

void tokmap_i_content_hash_add_tokens(tokmap_i_content_hash *h, const void *tokens, size_t n_tokens,
                                      unsigned token_bytes)
{
    uint32_t wide[N_AT_ONCE];
    const uint8_t *p = tokens;
    if (token_bytes == sizeof *wide) {
        tokmap_i_content_hash_add(h, tokens, n_tokens * token_bytes);
        return;
    }
    const size_t n_folded = fold_tokens(h->crc, p, n_tokens);
    h->n_bytes += sizeof *wide * n_folded;
    p += 2 * n_folded;
    n_tokens -= n_folded;
    for (; n_tokens >= N_AT_ONCE; n_tokens -= N_AT_ONCE, p += 2 * (size_t)N_AT_ONCE) {
        for (size_t i = 0; i < N_AT_ONCE; i++) /* a constant, for the compiler */
            wide[i] = le_get16(p + 2 * i);
        tokmap_i_content_hash_add(h, wide, sizeof wide);
    }
    for (size_t i = 0; i < n_tokens; i++)
        wide[i] = le_get16(p + 2 * i);
    if (n_tokens > 0)
        tokmap_i_content_hash_add(h, wide, n_tokens * sizeof *wide);
}

/* ---- Joining ---- */

/* Returns a * b. */
static uint64_t multiply_mod(const modulus *m, uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        product = (product >> 1) ^ (m->polynomial & (0 - (product & 1))); /* product * x */
        product ^= a & (0 - (b & 1)); /* the highest power of b comes first */
        b >>= 1;
    }
    return product;
}

/* Returns crc * x^(8 * n_bytes). */
static uint64_t shift_bytes(const modulus *m, uint64_t crc, uint64_t n_bytes)
{
    uint64_t power = UINT64_C(1) << 55; /* x^8 */
    for (; n_bytes > 0; n_bytes >>= 1) {
        if (n_bytes & 1)
            crc = multiply_mod(m, crc, power);
        power = multiply_mod(m, power, power);
    }
    return crc;
}

void tokmap_i_content_hash_join(tokmap_i_content_hash *h, const tokmap_i_content_hash *next)
{
    for (int k = 0; k < 2; k++)
        h->crc[k] = shift_bytes(&moduli[k], h->crc[k], next->n_bytes) ^ next->crc[k];
    h->n_bytes += next->n_bytes;
}

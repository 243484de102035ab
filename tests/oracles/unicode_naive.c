/* SPDX-License-Identifier: Apache-2.0 */
#include "oracles/unicode_naive.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

size_t naive_decode(const uint8_t *text, size_t n_bytes, uint32_t *code_point)
{
    for (size_t length = 1; length <= 4 && length <= n_bytes; length++) {
        uint8_t again[4];
        uint32_t c = text[0];
        if (length > 1)
            c &= 0x7Fu >> length;
        for (size_t i = 1; i < length; i++)
            c = c << 6 | (text[i] & 0x3Fu);
        if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) || utf8_encode(c, again) != length ||
            memcmp(again, text, length) != 0)
            continue;
        *code_point = c;
        return length;
    }
    return 0;
}

size_t naive_valid_prefix(const uint8_t *text, size_t n_bytes)
{
    size_t i = 0, length = 1;
    while (i < n_bytes && length > 0) {
        uint32_t c;
        length = naive_decode(text + i, n_bytes - i, &c);
        i += length;
    }
    return i;
}

/* ---- NFC: all decomposed, bubble sort, every pair tried ---- */

/* 1 + the index of the decomposition: by code point, and chained by the second of the pair. */
static uint16_t naive_by_code_point[0x30000], naive_by_second[0x10000];
static uint16_t naive_chain[NFC_N_DECOMPOSITIONS];

static void naive_prepare(void)
{
    if (naive_by_code_point[0xC0])
        return;
    for (size_t i = 0; i < NFC_N_DECOMPOSITIONS; i++) {
        const nfc_decomposition *d = nfc_decompositions + i;
        naive_by_code_point[d->code_point] = (uint16_t)(i + 1);
        naive_chain[i] = naive_by_second[d->second & 0xFFFF];
        naive_by_second[d->second & 0xFFFF] = (uint16_t)(i + 1);
    }
}

nfc_kind naive_kind(uint32_t c)
{
    return nfc_kinds[c < NAIVE_BYTE ? nfc_kind_pages[nfc_kind_index[c >> 7]][c & 127] : 0];
}

static size_t naive_decompose(uint32_t c, uint32_t *out)
{
    if (c >= 0xAC00 && c < 0xD7A4) {
        const uint32_t s = c - 0xAC00;
        out[0] = 0x1100 + s / 588;
        out[1] = 0x1161 + s % 588 / 28;
        out[2] = 0x11A7 + s % 28;
        return s % 28 ? 3 : 2;
    }
    if (c >= 0x30000 || !naive_by_code_point[c]) {
        out[0] = c;
        return 1;
    }
    const nfc_decomposition *d = nfc_decompositions + naive_by_code_point[c] - 1;
    size_t n = naive_decompose(d->first, out);
    return d->second ? n + naive_decompose(d->second, out + n) : n;
}

static uint32_t naive_composite(uint32_t first, uint32_t second)
{
    if (first >= 0x1100 && first < 0x1113 && second >= 0x1161 && second < 0x1176)
        return 0xAC00 + (first - 0x1100) * 588 + (second - 0x1161) * 28;
    if (first >= 0xAC00 && first < 0xD7A4 && (first - 0xAC00) % 28 == 0 && second > 0x11A7 &&
        second < 0x11C3)
        return first + second - 0x11A7;
    for (uint16_t i = second ? naive_by_second[second & 0xFFFF] : 0; i; i = naive_chain[i - 1]) {
        const nfc_decomposition *d = nfc_decompositions + i - 1;
        if (d->first == first && d->second == second &&
            !(naive_kind(d->code_point).flags & KIND_DOUBTFUL))
            return d->code_point;
    }
    return 0;
}

static void naive_reorder(uint32_t *c, size_t n)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i + 1 < n; i++) {
            const uint8_t a = naive_kind(c[i]).combining_class;
            const uint8_t b = naive_kind(c[i + 1]).combining_class;
            if (b == 0 || a <= b)
                continue;
            const uint32_t swapped = c[i];
            c[i] = c[i + 1];
            c[i + 1] = swapped;
            again = true;
        }
    }
}

/* After D115 and D117 of the standard: c[i] is blocked from the starter c[k] if a character between
 * them has its class or a higher one, or is a starter. */
static bool naive_blocked(const uint32_t *c, size_t k, size_t i)
{
    const uint8_t class = naive_kind(c[i]).combining_class;
    for (size_t between = k + 1; between < i; between++) {
        const uint8_t its = naive_kind(c[between]).combining_class;
        if (its == 0 || its >= class)
            return true;
    }
    return false;
}

static size_t naive_compose(uint32_t *c, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        size_t k = i;
        while (k > 0 && naive_kind(c[k - 1]).combining_class)
            k--;
        if (k == 0 || naive_blocked(c, k - 1, i))
            continue;
        const uint32_t composed = naive_composite(c[k - 1], c[i]);
        if (!composed)
            continue;
        c[k - 1] = composed;
        memmove(c + i, c + i + 1, (n - i - 1) * sizeof *c);
        n--;
        i--;
    }
    return n;
}

/* Returns the length; out has room for NFC_GROWTH * n_bytes. */
static size_t naive_nfc(const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    uint32_t *c = malloc((n_bytes * 2 + 4) * sizeof *c);
    size_t n = 0, n_out = 0;
    naive_prepare();
    for (size_t i = 0; i < n_bytes;) {
        uint32_t code_point = NAIVE_BYTE + text[i];
        const size_t length = naive_decode(text + i, n_bytes - i, &code_point);
        n += naive_decompose(code_point, c + n);
        i += length ? length : 1;
    }
    naive_reorder(c, n);
    n = naive_compose(c, n);
    for (size_t i = 0; i < n; i++) {
        if (c[i] >= NAIVE_BYTE)
            out[n_out++] = (uint8_t)(c[i] - NAIVE_BYTE);
        else
            n_out += utf8_encode(c[i], out + n_out);
    }
    free(c);
    return n_out;
}

/* ---- Comparing ---- */

static bool is_nfc(nfc_workspace *workspace, const uint8_t *text, size_t n_bytes,
                   const uint8_t *wanted, size_t n_wanted)
{
    uint8_t *out = malloc(n_bytes * NFC_GROWTH + 1);
    size_t n_out = 0;
    const bool is = nfc_normalize(workspace, text, n_bytes, out, &n_out) && n_out == n_wanted &&
                    memcmp(out, wanted, n_out) == 0;
    free(out);
    return is;
}

static const char *compare_nfc(nfc_workspace *workspace, const uint8_t *text, size_t n_bytes,
                               const uint8_t *nfc, size_t n_nfc)
{
    const size_t prefix = nfc_stable_prefix_by(SIMD_SCALAR, text, n_bytes);
    const bool changed = n_nfc != n_bytes || memcmp(text, nfc, n_nfc) != 0;
    if (!is_nfc(workspace, text, n_bytes, nfc, n_nfc))
        return "NFC differs";
    if (!is_nfc(workspace, nfc, n_nfc, nfc, n_nfc))
        return "NFC again changes";
    for (simd_level e = SIMD_BEST; e <= SIMD_AVX512; e++) {
        if (simd_works(e) && nfc_stable_prefix_by(e, text, n_bytes) != prefix)
            return "the stable prefix depends on the engine";
    }
    if (prefix > n_bytes || (changed ? prefix == n_bytes : n_bytes <= 96 && prefix < n_bytes))
        return "the stable prefix is too long or too short";
    if (memcmp(text, nfc, prefix) != 0 ||
        !is_nfc(workspace, text + prefix, n_bytes - prefix, nfc + prefix, n_nfc - prefix))
        return "NFC changes when it is cut behind the stable prefix";
    return NULL;
}

const char *naive_nfc_compare(const uint8_t *text, size_t n_bytes)
{
    nfc_workspace workspace = {0};
    uint8_t *nfc = malloc(n_bytes * NFC_GROWTH + 4), *exact = exact_copy(text, n_bytes);
    const size_t n_nfc = naive_nfc(text, n_bytes, nfc);
    const char *why = compare_nfc(&workspace, exact, n_bytes, nfc, n_nfc);
    nfc_workspace_free(&workspace);
    free(exact);
    free(nfc);
    return why;
}

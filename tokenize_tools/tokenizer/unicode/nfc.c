/* SPDX-License-Identifier: Apache-2.0 */
/* nfc.c - Unicode's normalization form C.
 *
 * Nearly all text is in NFC already. So the text is searched for characters that are not "plain"
 * (nfc_tables.h), first by their lead bytes alone, many at a time. Around each one that is found,
 * the text from one boundary to the next is a segment, which does not depend on the rest of the
 * text. A quick check of properties accepts most segments; the others are decomposed, reordered and
 * composed. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "tokenizer/unicode/nfc_tables.h"
#include "tokenizer/unicode/table_rows.h"
#include "tokenizer/unicode/unicode.h"
#include "base/utf8.h"

enum {
    HANGUL = 0xAC00,
    HANGUL_LEAD = 0x1100,
    HANGUL_VOWEL = 0x1161,
    HANGUL_TRAIL = 0x11A7, /* one before the first: no trail */
    N_LEADS = 19,
    N_VOWELS = 21,
    N_TRAILS = 28,
    N_SYLLABLES = N_LEADS * N_VOWELS * N_TRAILS,

    NOT_A_CHARACTER = 0x110000, /* plus the value of a byte that is not UTF-8 */
    SMALL_SEGMENT = 96,         /* bytes; a segment of this size needs no allocated memory */
    SHORT_RUN = 16
};

/* A code point with the properties that decide its place: class << 24 | SECOND | code point. */
#define SECOND 0x800000u
#define CODE_POINT 0x1FFFFFu

static uint8_t kind_number(uint32_t code_point)
{
    return nfc_kind_pages[nfc_kind_index[code_point >> 7]][code_point & 127];
}

static nfc_kind kind_of(uint32_t code_point)
{
    return nfc_kinds[code_point < NOT_A_CHARACTER ? kind_number(code_point) : 0];
}

static size_t decode_any(const uint8_t *text, size_t n_bytes, uint32_t *code_point)
{
    const size_t length = utf8_decode(text, n_bytes, code_point);
    if (length > 0)
        return length;
    *code_point = NOT_A_CHARACTER + text[0];
    return 1;
}

static size_t encode_any(uint32_t code_point, uint8_t out[4])
{
    if (code_point < NOT_A_CHARACTER)
        return utf8_encode(code_point, out);
    out[0] = (uint8_t)(code_point - NOT_A_CHARACTER);
    return 1;
}

/* ---- The search for what is not plain ---- */

static size_t find_scalar(const uint8_t *text, size_t n_bytes, size_t from)
{
    size_t i = from;
    while (i < n_bytes) {
        uint32_t code_point;
        if (text[i] < 0x80) {
            i++;
            continue;
        }
        const size_t length = decode_any(text + i, n_bytes - i, &code_point);
        if (code_point < NOT_A_CHARACTER && kind_number(code_point) >= NFC_N_PLAIN_KINDS)
            break;
        i += length;
    }
    return i;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* For the character at text, which starts with a lead byte. utf8_decode and kind_number in one, for
 * the loops below. */
static inline bool is_plain(const uint8_t *text, size_t n_bytes)
{
    uint32_t code_point = 0;
    if (n_bytes >= 2 && text[0] < 0xE0 && (text[1] & 0xC0) == 0x80) {
        code_point = (text[0] & 0x1Fu) << 6 | (text[1] & 0x3Fu);
    } else if (n_bytes >= 3 && text[0] < 0xF0 && (text[1] & 0xC0) == 0x80 &&
               (text[2] & 0xC0) == 0x80) {
        code_point = (text[0] & 0xFu) << 12 | (text[1] & 0x3Fu) << 6 | (text[2] & 0x3Fu);
        if (code_point < 0x800)
            return true;
    } else if (utf8_decode(text, n_bytes, &code_point) == 0) {
        return true;
    }
    return kind_number(code_point) < NFC_N_PLAIN_KINDS;
}

/* suspects: bit j is set if the character at text[j] may not be plain. Returns the offset of the
 * first one that is not, 64 if there is none. */
static inline size_t first_not_plain(const uint8_t *text, size_t n_bytes, uint64_t suspects)
{
    for (; suspects; suspects &= suspects - 1) {
        const size_t j = (size_t)__builtin_ctzll(suspects);
        if (!is_plain(text + j, n_bytes - j))
            return j;
    }
    return 64;
}

#define AVX2 __attribute__((target("avx2,bmi")))

/* How to read nfc_lead_rows: the high half of the first byte gives the bits of the first and of the
 * second 16 rows; the high half of the second byte selects among these. */
#define FIRST_ROWS 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0F, (char)0xF0, 0, 0
#define LAST_ROWS 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0F, (char)0xF0
#define SECONDS 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x44, (char)0x88, 0, 0, 0, 0

/* Bit j: a character that may not be plain starts at text[j]. Reads 33 bytes. */
AVX2 static inline uint32_t suspects_avx2(const uint8_t *text)
{
    const __m128i *rows = (const __m128i *)nfc_lead_rows;
    const __m256i half = _mm256_set1_epi8(0x0F);
    const __m256i lead = _mm256_loadu_si256((const __m256i *)text);
    const __m256i next = _mm256_loadu_si256((const __m256i *)(text + 1));
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(lead, 4), half);
    const __m256i low = _mm256_and_si256(lead, half);
    const __m256i second = _mm256_and_si256(_mm256_srli_epi16(next, 4), half);
    const __m256i first_rows = _mm256_and_si256(
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(rows)), low),
        _mm256_shuffle_epi8(_mm256_setr_epi8(FIRST_ROWS, FIRST_ROWS), high));
    const __m256i last_rows = _mm256_and_si256(
        _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128(rows + 1)), low),
        _mm256_shuffle_epi8(_mm256_setr_epi8(LAST_ROWS, LAST_ROWS), high));
    const __m256i hits =
        _mm256_and_si256(_mm256_or_si256(first_rows, last_rows),
                         _mm256_shuffle_epi8(_mm256_setr_epi8(SECONDS, SECONDS), second));
    return ~(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(hits, _mm256_setzero_si256()));
}

AVX2 static size_t find_avx2(const uint8_t *text, size_t n_bytes, size_t from)
{
    size_t i = from;
    for (; n_bytes - i > 64; i += 64) {
        const uint64_t suspects = suspects_avx2(text + i) | (uint64_t)suspects_avx2(text + i + 32)
                                                                << 32;
        const size_t j = first_not_plain(text + i, n_bytes - i, suspects);
        if (j < 64)
            return i + j;
    }
    return i;
}

/* Searches whole blocks only. Stops at a character that is not plain, or when less than a block is
 * left; a character may cross that place. */
static size_t find_in_blocks(simd_level e, const uint8_t *text, size_t n_bytes, size_t from)
{
    return e == SIMD_SCALAR ? from : find_avx2(text, n_bytes, from);
}
#else
static size_t find_in_blocks(simd_level e, const uint8_t *text, size_t n_bytes, size_t from)
{
    (void)e, (void)text, (void)n_bytes;
    return from;
}
#endif

/* ---- Compatibility ---- */

uint8_t unicode_combining_class(uint32_t code_point)
{
    return kind_of(code_point).combining_class;
}

size_t unicode_nfkd(uint32_t code_point, uint32_t out[NFKD_LONGEST])
{
    const compatibility_run *low =
        find_row(compatibility_runs, COMPATIBILITY_N_RUNS, sizeof *low, code_point);
    if (code_point < low->first || code_point > low->last)
        return unicode_nfd(code_point, out);
    memcpy(out, compatibility_parts + low->offset + (code_point - low->first) * low->n_parts,
           low->n_parts * sizeof *out);
    return low->n_parts;
}

/* ---- Segments ---- */

typedef struct nfc_segment {
    size_t start, end;
} nfc_segment;

/* Finds the first segment after `from` (a boundary) that is not known to be in NFC; start is
 * n_bytes if there is none. A segment is known to be in NFC if no character is doubtful and
 * combining classes are in order. */
static nfc_segment next_segment(simd_level e, const uint8_t *text, size_t n_bytes, size_t from)
{
    nfc_segment s = {from, from};
    /* A continuation byte left over from a block looks like invalid UTF-8 to find_scalar: it counts
     * as plain, as its character was. */
    while ((s.start = find_scalar(text, n_bytes, find_in_blocks(e, text, n_bytes, s.end))) <
           n_bytes) {
        uint32_t code_point;
        size_t i = s.start + decode_any(text + s.start, n_bytes - s.start, &code_point);
        nfc_kind kind = kind_of(code_point);
        bool sure = !(kind.flags & KIND_DOUBTFUL);
        uint8_t last_class = kind.combining_class;
        if (!(kind.flags & KIND_BOUNDARY) && s.start > s.end) {
            const size_t before = utf8_decode_last(text + s.end, s.start - s.end, &code_point);
            s.start -= before > 0 ? before : 1;
        }
        for (s.end = i; i < n_bytes; s.end = i) {
            i += decode_any(text + i, n_bytes - i, &code_point);
            kind = kind_of(code_point);
            if (kind.flags & KIND_BOUNDARY)
                break;
            sure &= !(kind.flags & KIND_DOUBTFUL) &&
                    (kind.combining_class == 0 || kind.combining_class >= last_class);
            last_class = kind.combining_class;
        }
        if (!sure)
            return s;
    }
    s.end = n_bytes;
    return s;
}

bool nfc_reserve(nfc_workspace *workspace, size_t n)
{
    return array_reserve(&workspace->code_points, &workspace->capacity, n,
                         sizeof *workspace->code_points);
}

/* Only the first of a pair decomposes further. */
size_t unicode_nfd(uint32_t code_point, uint32_t out[4])
{
    uint32_t backwards[4];
    size_t n = 0, n_out = 0;
    if (code_point - HANGUL < N_SYLLABLES) {
        const uint32_t syllable = code_point - HANGUL, trail = syllable % N_TRAILS;
        out[0] = HANGUL_LEAD + syllable / N_TRAILS / N_VOWELS;
        out[1] = HANGUL_VOWEL + syllable / N_TRAILS % N_VOWELS;
        out[2] = HANGUL_TRAIL + trail;
        return trail > 0 ? 3 : 2;
    }
    while (kind_of(code_point).flags & KIND_DECOMPOSES) {
        const nfc_decomposition *d =
            find_row(nfc_decompositions, NFC_N_DECOMPOSITIONS, sizeof *d, code_point);
        if (d->second)
            backwards[n++] = d->second;
        code_point = d->first;
    }
    out[n_out++] = code_point;
    while (n > 0)
        out[n_out++] = backwards[--n];
    return n_out;
}

/* Decomposes into workspace, without reordering; n is the number of code points. */
static bool decompose_text(nfc_workspace *workspace, const uint8_t *text, size_t n_bytes, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < n_bytes;) {
        uint32_t code_point, parts[4];
        i += decode_any(text + i, n_bytes - i, &code_point);
        const size_t n_parts = unicode_nfd(code_point, parts);
        if (!nfc_reserve(workspace, *n + n_parts))
            return false;
        for (size_t k = 0; k < n_parts; k++) {
            const nfc_kind kind = kind_of(parts[k]);
            workspace->code_points[(*n)++] = parts[k] | (uint32_t)kind.combining_class << 24 |
                                             (kind.flags & KIND_SECOND ? SECOND : 0);
        }
    }
    return true;
}

static void sort_short(uint32_t *run, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const uint32_t c = run[i];
        size_t k = i;
        for (; k > 0 && run[k - 1] >> 24 > c >> 24; k--)
            run[k] = run[k - 1];
        run[k] = c;
    }
}

/* A counting sort, so that long runs take linear time. spare: n elements. */
static void sort_long(uint32_t *run, size_t n, uint32_t *spare)
{
    size_t places[257] = {0};
    for (size_t i = 0; i < n; i++)
        places[(run[i] >> 24) + 1]++;
    for (size_t k = 1; k < 257; k++)
        places[k] += places[k - 1];
    for (size_t i = 0; i < n; i++)
        spare[places[run[i] >> 24]++] = run[i];
    memcpy(run, spare, n * sizeof *run);
}

/* Sorts each run of combining characters by class, stably. */
static bool reorder_runs(nfc_workspace *workspace, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t start = i;
        while (i < n && workspace->code_points[i] >> 24)
            i++;
        if (i - start <= SHORT_RUN) {
            sort_short(workspace->code_points + start, i - start);
        } else if (nfc_reserve(workspace, n + (i - start))) {
            sort_long(workspace->code_points + start, i - start, workspace->code_points + n);
        } else {
            return false;
        }
    }
    return true;
}

bool nfc_order(nfc_workspace *workspace, size_t n)
{
    for (size_t i = 0; i < n; i++)
        workspace->code_points[i] |= (uint32_t)unicode_combining_class(workspace->code_points[i])
                                     << 24;
    const bool ordered = reorder_runs(workspace, n);
    for (size_t i = 0; i < n; i++)
        workspace->code_points[i] &= CODE_POINT;
    return ordered;
}

/* Returns the code point to which the pair composes, or 0. */
static uint32_t compose_pair(uint32_t first, uint32_t second)
{
    if (first - HANGUL_LEAD < N_LEADS && second - HANGUL_VOWEL < N_VOWELS)
        return HANGUL + ((first - HANGUL_LEAD) * N_VOWELS + (second - HANGUL_VOWEL)) * N_TRAILS;
    if (first - HANGUL < N_SYLLABLES && (first - HANGUL) % N_TRAILS == 0 &&
        second - HANGUL_TRAIL - 1 < N_TRAILS - 1)
        return first + (second - HANGUL_TRAIL);
    uint32_t slot = (first * NFC_HASH_A ^ second * NFC_HASH_B) >> NFC_HASH_SHIFT;
    for (; nfc_slots[slot]; slot = (slot + 1) % NFC_N_SLOTS) {
        const nfc_decomposition *d = nfc_decompositions + nfc_slots[slot] - 1;
        if (d->first == first && d->second == second)
            return d->code_point;
    }
    return 0;
}

/* Composes in place; returns how many are left. A character combines with the last starter if
 * nothing, or only characters of a lower class, is between them. */
static size_t compose_text(uint32_t *code_points, size_t n)
{
    size_t n_out = 0;
    uint32_t *starter = NULL;
    for (size_t i = 0; i < n; i++) {
        const uint32_t c = code_points[i];
        if (starter && c & SECOND &&
            (starter == code_points + n_out - 1 || code_points[n_out - 1] >> 24 < c >> 24)) {
            const uint32_t composed = compose_pair(*starter & CODE_POINT, c & CODE_POINT);
            if (composed) {
                *starter = composed;
                continue;
            }
        }
        if (c >> 24 == 0)
            starter = code_points + n_out;
        code_points[n_out++] = c;
    }
    return n_out;
}

/* Normalizes a segment by the full rules. */
static bool normalize_segment(nfc_workspace *workspace, const uint8_t *text, size_t n_bytes,
                              uint8_t *out, size_t *n_out)
{
    size_t n;
    *n_out = 0;
    if (!decompose_text(workspace, text, n_bytes, &n) || !reorder_runs(workspace, n))
        return false;
    n = compose_text(workspace->code_points, n);
    for (size_t i = 0; i < n; i++)
        *n_out += encode_any(workspace->code_points[i] & CODE_POINT, out + *n_out);
    return true;
}

/* ---- Texts ---- */

static bool segment_is_nfc(const uint8_t *text, size_t n_bytes)
{
    /* Each part has at least two thirds of a byte of input; as much again is needed for sorting. */
    uint32_t code_points[SMALL_SEGMENT * 3];
    uint8_t out[SMALL_SEGMENT * NFC_GROWTH];
    size_t n_out;
    nfc_workspace workspace = {code_points, SMALL_SEGMENT * 3};
    return n_bytes <= SMALL_SEGMENT && normalize_segment(&workspace, text, n_bytes, out, &n_out) &&
           n_out == n_bytes && memcmp(out, text, n_bytes) == 0;
}

size_t nfc_stable_prefix_by(simd_level e, const uint8_t *text, size_t n_bytes)
{
    const simd_level engine = e == SIMD_BEST ? simd_best() : e;
    nfc_segment s = {0, 0};
    do {
        s = next_segment(engine, text, n_bytes, s.end);
    } while (s.start < n_bytes && segment_is_nfc(text + s.start, s.end - s.start));
    return s.start;
}

size_t nfc_stable_prefix(const uint8_t *text, size_t n_bytes)
{
    return nfc_stable_prefix_by(SIMD_BEST, text, n_bytes);
}

bool nfc_normalize(nfc_workspace *workspace, const uint8_t *text, size_t n_bytes, uint8_t *out,
                   size_t *out_bytes)
{
    const simd_level engine = simd_best();
    size_t n_out = 0;
    for (size_t i = 0; i < n_bytes;) {
        size_t n_segment = 0;
        const nfc_segment s = next_segment(engine, text, n_bytes, i);
        if (s.start > i)
            memcpy(out + n_out, text + i, s.start - i);
        n_out += s.start - i;
        if (!normalize_segment(workspace, text + s.start, s.end - s.start, out + n_out, &n_segment))
            return false;
        n_out += n_segment;
        i = s.end;
    }
    *out_bytes = n_out;
    return true;
}

void nfc_workspace_free(nfc_workspace *workspace)
{
    free(workspace->code_points);
    *workspace = (nfc_workspace){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_char_map.c - steps that look at one character, as a table, against the same steps one after
 * the other with a bubble sort; and what they do to every code point. */
#include "support/check.h"

#include "oracles/char_naive.h"
#include "oracles/unicode_naive.h"
#include "text/utf8.h"
#include "tokenizer/normalize/char_map.h"
#include "tokenizer/split/splitter.h"

#define N NAIVE_N

static size_t run_map(const char_map *m, const uint8_t *text, size_t n_bytes, uint8_t *out)
{
    nfc_scratch scratch = {0};
    text_buffer padded = {0}, got = {0};
    CHECK(text_buffer_append(&padded, text, n_bytes));
    CHECK(char_map_run(m, &scratch, text_buffer_span(&padded), &got));
    const size_t n = got.n_bytes;
    memcpy(out, text_buffer_span(&got).bytes, n);
    text_buffer_free(&padded);
    text_buffer_free(&got);
    nfc_scratch_free(&scratch);
    return n;
}

/* ---- One code point ---- */

static uint64_t hash_images(const char_step *steps, size_t n_steps)
{
    uint64_t hash = 0xCBF29CE484222325u;
    char_map *m = char_map_new(steps, n_steps);
    CHECK(m != NULL);
    nfc_scratch scratch = {0};
    text_buffer text = {0}, got = {0};
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint8_t bytes[4];
        if (c >= 0xD800 && c < 0xE000)
            continue;
        text.n_bytes = got.n_bytes = 0;
        CHECK(text_buffer_append(&text, bytes, utf8_encode(c, bytes)));
        CHECK(char_map_run(m, &scratch, text_buffer_span(&text), &got));
        for (size_t i = 0; i < got.n_bytes; i++)
            hash = (hash ^ got.bytes[i]) * 0x100000001B3u;
        hash = (hash ^ 0xFF) * 0x100000001B3u;
    }
    text_buffer_free(&text);
    text_buffer_free(&got);
    nfc_scratch_free(&scratch);
    char_map_free(m);
    return hash;
}

/* The numbers are of the images that tokenizers 0.23.3 gave. */
TEST(every_code_point_becomes_what_the_reference_made_of_it)
{
    CHECK_EQ(hash_images((const char_step[]){CHAR_NFD, CHAR_ORDER}, 2), 0x367A2034E4801E51u);
    CHECK_EQ(hash_images((const char_step[]){CHAR_NFKD, CHAR_ORDER}, 2), 0xD0815FE37D244062u);
    CHECK_EQ(hash_images((const char_step[]){CHAR_STRIP_MARKS}, 1), 0xEA88EA7D6DC66784u);
    CHECK_EQ(hash_images((const char_step[]){CHAR_LOWERCASE}, 1), 0x4B2E69A63593DC34u);
    CHECK_EQ(hash_images((const char_step[]){CHAR_NMT}, 1), 0x43DE6B2FE0760BDAu);
    CHECK_EQ(hash_images((const char_step[]){CHAR_CLEAN}, 1), 0x64E6626EC725349Eu);
    CHECK_EQ(hash_images((const char_step[]){CHAR_IDEOGRAPHS}, 1), 0xE075C45FF39AF3F5u);
    CHECK_EQ(hash_images((const char_step[]){CHAR_NFD, CHAR_ORDER, CHAR_STRIP_NONSPACING}, 3),
             0xFC9D3B7A0EFC4B07u);
}

/* ---- Texts ---- */

/* Code points of which each step changes some, and marks of many classes. */
static const uint32_t interesting[] = {
    'a',    'Z',    ' ',    '\n',   '\t',    0,       0x7F,    0xAD,     0xC5,    0xE9,   0x130,
    0x300,  0x301,  0x316,  0x323,  0x327,   0x334,   0x345,   0x34F,    0x488,   0x5B0,  0x64B,
    0x8D4,  0x93C,  0x94D,  0xE31,  0xE38,   0x1100,  0x1161,  0x11A8,   0x1B44,  0x1E9B, 0x200B,
    0x2126, 0x2581, 0x3000, 0x302E, 0x3099,  0x4E00,  0xAC01,  0xF900,   0xFB01,  0xFDFA, 0xFEFF,
    0xFF21, 0xFFFD, 0x344,  0x1F71, 0x1D15E, 0x1D165, 0x1D16D, 0x10FFFF, 0x16EA0, 0x2B920};

#define N_SINGLE (CHAR_IDEOGRAPHS + 1)

static size_t apply_step(char_map *const *single, char_step step, uint32_t *c, size_t n)
{
    uint32_t out[2000];
    size_t n_out = 0;
    if (step == CHAR_ORDER) {
        for (size_t pass = 0; pass < n; pass++) {
            for (size_t i = 0; i + 1 < n; i++) {
                const uint8_t a = naive_kind(c[i]).combining_class;
                const uint8_t b = naive_kind(c[i + 1]).combining_class;
                const uint32_t swapped = c[i];
                if (b == 0 || a <= b)
                    continue;
                c[i] = c[i + 1];
                c[i + 1] = swapped;
            }
        }
        return n;
    }
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[4], image[80];
        const size_t n_image = run_map(single[step], bytes, utf8_encode(c[i], bytes), image);
        for (size_t at = 0; at < n_image;)
            at += utf8_decode(image + at, n_image - at, &out[n_out++]);
    }
    memcpy(c, out, n_out * sizeof *c);
    return n_out;
}

static void compare(const char_map *m, char_map *const *single, const char_step *steps,
                    size_t n_steps)
{
    uint32_t c[2000];
    uint8_t text[200], got[8000], want[8000];
    const bool ascii = naive_any(4) == 0;
    size_t n = 1 + naive_any(40), n_text = 0, n_want = 0;
    for (size_t i = 0; i < n; i++) {
        c[i] = ascii ? naive_any(128) : interesting[naive_any(N(interesting))];
        n_text += utf8_encode(c[i], text + n_text);
    }
    const size_t n_got = run_map(m, text, n_text, got);
    for (size_t i = 0; i < n_steps; i++)
        n = apply_step(single, steps[i], c, n);
    for (size_t i = 0; i < n; i++)
        n_want += utf8_encode(c[i], want + n_want);
    if (n_got != n_want || memcmp(got, want, n_got) != 0)
        CHECK_FAIL("\"%.*s\": \"%.*s\", not \"%.*s\"", (int)n_text, (const char *)text, (int)n_got,
                   (const char *)got, (int)n_want, (const char *)want);
}

TEST(a_map_is_its_steps_one_after_the_other)
{
    static const char_step lists[][5] = {
        {CHAR_NFD, CHAR_ORDER},
        {CHAR_NFKD, CHAR_ORDER, CHAR_LOWERCASE},
        {CHAR_NFKD, CHAR_ORDER, CHAR_STRIP_MARKS, CHAR_LOWERCASE},
        {CHAR_CLEAN, CHAR_IDEOGRAPHS, CHAR_NFD, CHAR_ORDER, CHAR_STRIP_NONSPACING},
        {CHAR_LOWERCASE, CHAR_NFD, CHAR_ORDER, CHAR_NMT},
        {CHAR_CLEAN, CHAR_IDEOGRAPHS, CHAR_LOWERCASE},
        {CHAR_COMPATIBLE, CHAR_LOWERCASE}};
    static const size_t n_steps[] = {2, 3, 4, 5, 4, 3, 2};
    char_map *single[N_SINGLE];
    for (char_step step = 0; step < N_SINGLE; step++)
        CHECK((single[step] = char_map_new(&step, 1)) != NULL);
    for (size_t i = 0; i < N(lists); i++) {
        char_map *m = char_map_new(lists[i], n_steps[i]);
        CHECK(m != NULL);
        for (int round = 0; round < (check_long() ? 20000 : 1000); round++)
            compare(m, single, lists[i], n_steps[i]);
        char_map_free(m);
    }
    for (size_t step = 0; step < N_SINGLE; step++)
        char_map_free(single[step]);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_normalizer_cuts.c - where a text may be cut before it is normalized and split into words by
 * a pattern: both parts give the words of the whole. */
#include "support/check.h"

#include "tokenizer/normalizer_case.h"
#include "tokenizer/normalize/normalizer.h"
#include "support/split_words.h"
#include "tokenizer/split/text_cut.h"

enum {
    MAX_TEXT = 400,
    MAX_NORMAL = 40 * MAX_TEXT
};

/* Words: each with its length before it, without the blanks that the pattern drops. */
typedef struct words {
    uint8_t bytes[2 * MAX_NORMAL];
    size_t n;
} words;

static void append_word(words *w, const uint8_t *word, size_t n_bytes, bool drops_blanks)
{
    const size_t blanks = drops_blanks ? split_leading_blanks(word, n_bytes) : 0;
    if (n_bytes == blanks)
        return;
    w->bytes[w->n++] = (uint8_t)(n_bytes - blanks);
    memcpy(w->bytes + w->n, word + blanks, n_bytes - blanks);
    w->n += n_bytes - blanks;
}

static void append_words(words *w, const normalizer *z, split_pattern p, unsigned flags,
                         text_span text)
{
    normalize_scratch scratch = {0};
    uint64_t starts[MAX_NORMAL / 64 + 1];
    text_buffer padded = {0};
    CHECK(text_buffer_append(&padded, text.bytes, text.n_bytes));
    text_span span = text_buffer_span(&padded);
    CHECK(normalize_text(z, &scratch, flags, &span));
    CHECK(span.n_bytes < MAX_NORMAL);
    split_words(p, SIMD_SCALAR, span.bytes, span.n_bytes, starts);
    for (size_t at = 0, end; at < span.n_bytes; at = end) {
        end = at + 1;
        while (end < span.n_bytes && !(starts[end / 64] >> end % 64 & 1))
            end++;
        append_word(w, span.bytes + at, end - at, split_drops_blanks(p));
    }
    text_buffer_free(&padded);
    normalize_scratch_free(&scratch);
}

/* Returns the number of cuts. */
static size_t check_cuts(const model *m, const normalizer *z, const char *text, size_t n)
{
    const unsigned cuts = normalizer_text_cuts(m);
    const uint8_t *bytes = (const uint8_t *)text;
    words whole = {.n = 0};
    size_t n_cuts = 0;
    append_words(&whole, z, m->split, NORMALIZE_FIRST, (text_span){bytes, n});
    for (size_t end = n; end > 0; end--) {
        const size_t cut = text_cut(bytes, 0, end, cuts);
        words parts = {.n = 0};
        if (cut == 0)
            break;
        append_words(&parts, z, m->split, NORMALIZE_FIRST, (text_span){bytes, cut});
        append_words(&parts, z, m->split, NORMALIZE_CONTINUES, (text_span){bytes + cut, n - cut});
        if (parts.n != whole.n || memcmp(parts.bytes, whole.bytes, whole.n) != 0)
            CHECK_FAIL("%s: \"%.*s\" is cut at %zu", split_pattern_name(m->split), (int)n, text,
                       cut);
        end = cut + 1 < end ? cut + 1 : end;
        n_cuts++;
    }
    return n_cuts;
}

/* Places for cuts, and what normalizers make of their neighbours. */
static size_t random_text(char *text)
{
    static const char *const parts[] = {"a b",
                                        "x\ny",
                                        "a1",
                                        "a+b",
                                        "1/2",
                                        "+",
                                        " ",
                                        "\n",
                                        "\t",
                                        "  ",
                                        "b",
                                        "S",
                                        "'s",
                                        "1",
                                        ".",
                                        "``",
                                        "\r\n",
                                        "\xC3\xA9 \xC3\xA9",
                                        "\xC3\x85\nb",
                                        "\xCC\x81",
                                        "\xCC\xA7",
                                        "\xE3\x80\x80",
                                        "\xC2\xAD",
                                        "\xE5\xAD\x97\xE3\x80\x82\xE6\x96\x87",
                                        "\xE5\xAD\x97\xEF\xBC\x8C\xE6\x96\x87",
                                        "\xD0\xB1 \xEF\xB9\xB0",
                                        "\xD0\xB1 \xEF\xBE\x9E",
                                        "\xD0\xB1 \xEF\xB7\xBA",
                                        "\xEF\xB7\xBA\n\xC3\xA9",
                                        "\xEF\xB7\xBA",
                                        "\xEF\xB9\xB0",
                                        "\xCD\xBA",
                                        "\xEF\xBE\x9E",
                                        "\xC2\xAA \xC2\xAA",
                                        "\xE1\x84\x80 \xE1\x85\xA1",
                                        "\xE4\xB8\xAD \xE6\x96\x87",
                                        "\xE2\x80\xA6"};
    size_t n = 0;
    for (uint32_t k = 1 + naive_any(30); k > 0; k--) {
        const char *part = parts[naive_any(N(parts))];
        memcpy(text + n, part, strlen(part));
        n += strlen(part);
    }
    return n;
}

typedef struct step_texts {
    normalize_step step;
    const char *from, *to;
} step_texts;

static const step_texts steps[] = {
    {{.kind = NORMALIZE_NFC}, "", ""},
    {{.kind = NORMALIZE_NFD}, "", ""},
    {{.kind = NORMALIZE_NFKC}, "", ""},
    {{.kind = NORMALIZE_NFKD}, "", ""},
    {{.kind = NORMALIZE_STRIP_ACCENTS}, "", ""},
    {{.kind = NORMALIZE_LOWERCASE}, "", ""},
    {{.kind = NORMALIZE_NMT}, "", ""},
    {{.kind = NORMALIZE_BERT, .clean_text = true, .ideographs = true}, "", ""},
    {{.kind = NORMALIZE_BERT, .clean_text = true, .strip_accents = true}, "", ""},
    {{.kind = NORMALIZE_STRIP, .left = true, .right = true}, "", ""},
    {{.kind = NORMALIZE_PREPEND}, "", "x "},
    {{.kind = NORMALIZE_REPLACE}, "``", ""},
    {{.kind = NORMALIZE_REPLACE}, "b", "."},
    {{.kind = NORMALIZE_REPLACE}, " ", "_"},
    {{.kind = NORMALIZE_REPLACE_RUNS}, " ", " "},
    {{.kind = NORMALIZE_REPLACE_BLANKS}, " ", " "},
    {{.kind = NORMALIZE_REPLACE_LONG_BLANKS}, " ", " "}};

static void add_random_step(model *m)
{
    const step_texts *s = &steps[naive_any(N(steps))];
    normalize_step step = s->step;
    step.from = text_of(s->from);
    step.to = text_of(s->to);
    add_step(m, &step);
}

TEST(words_of_both_parts_are_those_of_the_whole)
{
    size_t n_cuts = 0;
    for (int round = 0; round < (check_sanitized() ? 20 : check_long() ? 300 : 100); round++) {
        static const split_pattern patterns[] = {STAGE_GPT2,       STAGE_CL100K,
                                                 STAGE_O200K,      STAGE_BERT,
                                                 STAGE_WHITESPACE, STAGE_WHITESPACE_SPLIT};
        char text[MAX_TEXT];
        model m;
        failure err;
        model_init(&m);
        m.split = patterns[naive_any(N(patterns))];
        for (uint32_t n = 1 + naive_any(3); n > 0; n--)
            add_random_step(&m);
        normalizer *z = normalizer_new(&m, true, &err);
        CHECK(z != NULL);
        for (int i = 0; i < 50; i++) {
            const size_t n = random_text(text);
            n_cuts += check_cuts(&m, z, text, n);
        }
        normalizer_free(z);
        model_free(&m);
    }
    CHECK(n_cuts > 1000);
}

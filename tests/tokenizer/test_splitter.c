/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "support/check.h"
#include "oracles/naive_splitter.h"

#include "support/split_words.h"
#include "tokenizer/split/splitter_blocks.h"
#include "base/utf8.h"

enum {
    MAX_TEXT = NAIVE_SPLIT_BYTES,
    MAX_WORDS = MAX_TEXT / 64 + 1
};

/* ---- Comparing ---- */

static const char *const engine_names[] = {"best", "scalar", "avx2", "avx512", "blocks"};

/* The words around byte `at`, escaped. */
static const char *excerpt(const uint8_t *text, size_t n_bytes, const uint64_t *starts, size_t at)
{
    static char lines[2][400];
    static int next;
    char *line = lines[next++ % 2];
    int n = 0;
    for (size_t i = at < 24 ? 0 : at - 24; i < n_bytes && i < at + 12; i++) {
        if (naive_has_bit(starts, i))
            line[n++] = '|';
        n += snprintf(line + n, 8, text[i] > 32 && text[i] < 127 ? "%c" : "\\x%02x", text[i]);
    }
    line[n] = 0;
    return line;
}

static void same_words(const uint8_t *text, size_t n_bytes, const uint64_t *got,
                       const uint64_t *wanted, const char *what)
{
    for (size_t k = 0; k < n_bytes / 64 + 1; k++) {
        uint64_t wrong = got[k] ^ wanted[k];
        if (wrong == 0)
            continue;
        size_t at = k * 64 + (size_t)__builtin_ctzll(wrong);
        CHECK_FAIL("%s at byte %zu of %zu: %s, not %s", what, at, n_bytes,
                   excerpt(text, n_bytes, got, at), excerpt(text, n_bytes, wanted, at));
    }
}

static const char *named(split_pattern p, simd_level engine)
{
    static char text[64];
    snprintf(text, sizeof text, "%s, %s", split_pattern_name(p), engine_names[engine]);
    return text;
}

/* text has TEXT_PADDING bytes after it. wanted NULL: what the scalar engine says. */
static void engines_agree(split_pattern p, const uint8_t *text, size_t n_bytes,
                          const uint64_t *wanted)
{
    size_t n_words = n_bytes / 64 + 1;
    uint64_t *scalar = malloc(n_words * sizeof *scalar), *vector = malloc(n_words * sizeof *vector);
    split_words(p, SIMD_SCALAR, text, n_bytes, scalar);
    if (wanted)
        same_words(text, n_bytes, scalar, wanted, named(p, SIMD_SCALAR));
    for (int e = SIMD_BEST; e <= SIMD_BLOCKS; e++) {
        if (e == SIMD_SCALAR || !simd_works((simd_level)e))
            continue;
        memset(vector, 0xA5, n_words * sizeof *vector);
        split_words(p, (simd_level)e, text, n_bytes, vector);
        same_words(text, n_bytes, vector, scalar, named(p, (simd_level)e));
    }
    free(scalar);
    free(vector);
}

/* All patterns: the engines against each other and against the expressions. */
static void check_text(const uint8_t *text, size_t n_bytes)
{
    uint64_t wanted[MAX_WORDS];
    CHECK(n_bytes < MAX_TEXT);
    for (size_t i = 0; split_known(i) != SPLIT_UNKNOWN; i++) {
        naive_words(split_known(i), text, n_bytes, wanted);
        engines_agree(split_known(i), text, n_bytes, wanted);
    }
}

static void all_engines_agree(const uint8_t *text, size_t n_bytes)
{
    for (size_t i = 0; split_known(i) != SPLIT_UNKNOWN; i++)
        engines_agree(split_known(i), text, n_bytes, NULL);
}

/* ---- Texts ---- */

/* Difficult pieces for patterns; a text is made of a few of the rows. */
static const char *const alphabet[] = {
    "aBcDe\u00c9\u00df\u00e9\u1e9e",
    "sStTdDmMlLrRvVeE\u017f\u212a",
    "'''\u2019\u02bc",
    "'s't'm'd're've'll'S'LL'\u017f'T'Re",
    "\u01c5\u01c8\u03a9\u03c9\u0416\u0436\u0531\u0561",
    "\u00aa\u00ba\u4e00\u9fa5\u9fa6\u9fff\u5b57\u4e2d\u3042\u3041\u30fc\u30fb\u309b\u30a0",
    "\u3099\u3040\u4dbf\u4dc0\ud7a3\uac00\ud7b0\u4e8c",
    "\u02b0\u02c7\u0640\u05d0\u0915\u0e02",
    "\u0301\u0300\ufe0f\u0903\u20dd\u0301\u0301",
    "0123456789",
    "0123456789\u00b2\u00bc",
    "\u00b2\u00b3\u00bd\u2167\u0663\u06f4\u0967\U0001d7d7\u3007\U00011de0\U00016ff5",
    "    \t\t\n\n\r\r\r\n",
    "          \n",
    "\v\f\xc2\x85\u00a0\u1680\u2003\u2028\u202f\u205f\u3000",
    "!?.,-\"()/////",
    "!/\n/\r;",
    "$+<=>^`|~\u20ac\u00a9\u00a6",
    "\u3000\u3000 \u3002!a\u3001\n\u1e00",
    "\u201c\u2014\u2026\u00ab\u3001\u3002\u00bf\u166d",
    "\U0001f600\U0001f44d\U0001f3fd\u200d\U0001f389",
    "\x01\x1c\x1f\x7f\u200b\ufeff\ufffd\ue000\U000e0041\u0378",
    "abcdefghijklmnop ",
};

enum {
    N_ROWS = sizeof alphabet / sizeof *alphabet
};

/* One character of a row. */
static size_t random_char(const char *row, uint8_t *out)
{
    size_t n_bytes = strlen(row), i = check_below((uint32_t)n_bytes), n = 1;
    while (i > 0 && (row[i] & 0xC0) == 0x80)
        i--;
    while ((row[i + n] & 0xC0) == 0x80)
        n++;
    memcpy(out, row + i, n);
    return n;
}

static size_t random_text(uint8_t *text, size_t max_bytes)
{
    uint32_t n_rows = 1 + check_below(5), rows[5];
    for (uint32_t i = 0; i < n_rows; i++)
        rows[i] = check_below(N_ROWS);
    size_t n = 0, repeats;
    while (n + 4 < max_bytes) {
        size_t length = random_char(alphabet[rows[check_below(n_rows)]], text + n);
        repeats = check_one_in(8) ? check_below(check_one_in(8) ? 150 : 7) : 0;
        for (n += length; repeats > 0 && n + length < max_bytes; repeats--, n += length)
            memcpy(text + n, text + n - length, length);
        if (check_one_in(40)) /* NUL has no place in the rows */
            text[n++] = 0;
    }
    return n;
}

static void damage(uint8_t *text, size_t n_bytes, uint32_t one_of)
{
    for (size_t i = 0; i < n_bytes; i++) {
        if (check_one_in(one_of))
            text[i] = (uint8_t)(check_below(3) ? 0x80 + check_below(0x80) : check_below(256));
    }
}

/* ---- Tests ---- */

/* "Don| ..." means that words begin at the bars and at 0. */
static void splits_into(split_pattern p, const char *barred)
{
    uint8_t text[256 + TEXT_PADDING] = {0};
    uint64_t wanted[5] = {1};
    size_t n = 0;
    for (; *barred; barred++) {
        if (*barred == '|')
            naive_set_bit(wanted, n);
        else
            text[n++] = (uint8_t)*barred;
    }
    engines_agree(p, text, n, wanted);
}

TEST(words_are_those_of_the_patterns)
{
    splits_into(SPLIT_NONE, "All of it, 12 34");
    splits_into(STAGE_GPT2, "Don|'t| stop|'|S|'s|a|  | it|,| 12345| '|s|\n\n");
    splits_into(STAGE_CL100K, "Don|'T| stop|-it|!?\n\n|  \n| | |123|456|7|'s|'abc| \"|x|\t\t\n");
    splits_into(STAGE_CL100K_TIKTOKEN, "Don|'\u017f| !?\n|  \n| |123|456|7|'s|'abc|\u0301x| \n\t");
    splits_into(STAGE_O200K, "don't|Stop| HTMLParser's|!//\n/|x| it's|'s|12|!\n");
    splits_into(STAGE_O200K, "\u4f7f\u7528|GPU|,\u4f7f\u7528GPUs| \u4f7fABC\u4f7f|AB");
    splits_into(STAGE_QWEN2, "a|1|2|3| b");
    splits_into(STAGE_QWEN35, "a\u0301b|1|\u0301c|!!|\u0301");
    splits_into(STAGE_TEKKEN, "don|'t|1|2");
    splits_into(SPLIT_DEEPSEEK3,
                "  |12|\x01|\x01x| a|\u4e00\u4e8c|b|!abc|\u00e9|\u00b7\u00b7|\x01\x01");
    splits_into(SPLIT_FALCON, "It|'|s| |123|45| a|...|\xc2|\xb2");
    splits_into(SPLIT_THEN(STAGE_GPT2, STAGE_GPT2, 1), "In| 2024|  | \u00b2|\u00e9");
    splits_into(SPLIT_THEN(STAGE_GPT2, STAGE_DIGITS, 1), "In| |2024|  | |\u00b2|\u00e9");
    splits_into(SPLIT_THEN(STAGE_BYTE_LEVEL, STAGE_DIGITS, 1), "In| |2024|  | \xc2|\xb2|\u00e9");
    splits_into(STAGE_LINES, "a b|\n\nc !|\r\nd");
    splits_into(STAGE_DIGITS, "a|12\u00b2\U00016ff5|b");
    splits_into(STAGE_EACH_DIGIT, "a|1|2|\u00b2|\U00016ff5|b");
    splits_into(STAGE_PUNCTUATION, "a|_!|\u20ac\u00a6");
    splits_into(STAGE_EACH_PUNCTUATION, "a|_|!|\u20ac\u00a6");
    splits_into(SPLIT_STARCODER, "a|  |1|2|3| b|'s");
    splits_into(STAGE_WHITESPACE, "a1_\u00e9\u0301\u200db|...\u00b2| c| !?|\n\n |\u3000|d|  ");
    splits_into(STAGE_WHITESPACE_SPLIT, "a1_...\u00b2| c| !?|\n\n|\n|d");
    splits_into(STAGE_BERT, "a1|_|\u00e9|.|.|\u20ac\u00b2| c| !|?|\n\n|\t|d");
}

static size_t append(uint8_t *text, const char *unit)
{
    return (size_t)(stpcpy((char *)text, unit) - (char *)text);
}

/* Not in a plane that is unassigned or private. */
static bool is_in_use(uint32_t code_point)
{
    return code_point < 0x33480 || (code_point >= 0xE0000 && code_point < 0xE0200);
}

/* The character among neighbours of several kinds; of fewer if it is not in use. */
static size_t append_in_contexts(uint8_t *text, uint32_t code_point)
{
    const char *contexts =
        is_in_use(code_point) ? "a@a @1@1'@!@B\n@=@Ba\t@ x'@e!@/@@\t~" : "a@a @1@'@!@\n";
    char utf8[5] = {0}, other[2] = {0};
    size_t n = 0;
    utf8_encode(code_point, (uint8_t *)utf8);
    for (const char *c = contexts; *c; c++) {
        other[0] = *c == '=' ? '2' : *c;
        n += append(text + n, *c == '@' ? utf8 : *c == '~' ? "\u4e00\u0301" : other);
    }
    return n;
}

/* Hundreds of neighbours of one class each. */
static bool is_ideograph_or_hangul(uint32_t c)
{
    return (c >= 0x3400 && c < 0xA000) || (c >= 0xAC00 && c < 0xD7A4) || (c >= 0x20000);
}

/* Several at a time, the first and the last at an end of the text. Of the planes that are not in
 * use, every 61st one, of ideographs and Hangul every 7th. With sanitizers, which look for accesses
 * and not for words, every 509th. */
TEST(every_code_point_splits_as_the_expressions_say)
{
    static uint8_t text[MAX_TEXT];
    const bool all = check_long() && !check_sanitized();
    const uint32_t some = check_sanitized() ? 509 : 61;
    uint32_t step = 1;
    size_t n = 0;
    for (uint32_t c = 0; c < 0x110000; c += step) {
        char utf8[5] = {0};
        step = c < 0x180 ? 1 : !all || !is_in_use(c) ? some : is_ideograph_or_hangul(c) ? 7 : 1;
        if (c >= 0xD800 && c < 0xE000)
            continue;
        utf8_encode(c, (uint8_t *)utf8);
        n += append(text + n, n == 0 ? utf8 : "");
        n += append_in_contexts(text + n, c);
        if (n < 600 && c + step < 0x110000)
            continue;
        n += append(text + n, utf8);
        memset(text + n, 0, TEXT_PADDING);
        check_text(text, n);
        n = 0;
    }
}

TEST(random_text_splits_as_the_expressions_say)
{
    static const uint32_t sizes[] = {6, 12, 24, 24, 60, 70, 140, 300};
    uint8_t text[300 + TEXT_PADDING];
    int n_texts = check_sanitized() ? 300 : check_long() ? 10000 : 1700;
    for (int i = 0; i < n_texts; i++) {
        size_t n = random_text(text, sizes[check_below(8)]);
        if (i % 4 == 0)
            damage(text, n, 8);
        damage(text + n, TEXT_PADDING, 1);
        check_text(text, n);
    }
}

static uint64_t bits_from(const uint64_t *bitmap, size_t from)
{
    const uint64_t high = from % 64 ? bitmap[from / 64 + 1] << (64 - from % 64) : 0;
    return bitmap[from / 64] >> from % 64 | high;
}

/* Splits a text window by window. wanted: the words of the whole text, and 0 in three words of bits
 * after them. */
static void windows_agree(split_pattern p, simd_level e, const uint8_t *text, size_t n_bytes,
                          size_t window, const uint64_t *wanted)
{
    uint64_t *got = malloc((n_bytes / 64 + 1) * sizeof *got);
    for (size_t at = 0, n; at < n_bytes; at += n) {
        const size_t n_left = n_bytes - at;
        n = split_window(p, e, text + at, n_left, window, got);
        if (n == 0 || n > n_left || (n < n_left && !naive_has_bit(wanted, at + n)))
            CHECK_FAIL("%s: a window of %zu bytes from %zu on ends at %zu", named(p, e), window, at,
                       at + n);
        for (size_t i = 0; i <= n_left; i += 64) {
            const uint64_t exists = i >= n       ? 0
                                    : n - i < 64 ? ((uint64_t)1 << (n - i)) - 1
                                                 : UINT64_MAX;
            if (got[i / 64] != (bits_from(wanted, at + i) & exists))
                CHECK_FAIL("%s: in a window of %zu bytes from %zu on, near byte %zu: %s",
                           named(p, e), window, at, at + i, excerpt(text, n_bytes, wanted, at + i));
        }
    }
    free(got);
}

static void all_windows_agree(const uint8_t *text, size_t n_bytes, size_t window)
{
    uint64_t *wanted = malloc((n_bytes / 64 + 4) * sizeof *wanted);
    for (size_t i = 0; split_known(i) != SPLIT_UNKNOWN; i++) {
        const split_pattern p = split_known(i);
        memset(wanted, 0, (n_bytes / 64 + 4) * sizeof *wanted);
        split_words(p, SIMD_SCALAR, text, n_bytes, wanted);
        for (int e = SIMD_SCALAR; e <= SIMD_BLOCKS; e++)
            if (simd_works((simd_level)e))
                windows_agree(p, (simd_level)e, text, n_bytes, window, wanted);
    }
    free(wanted);
}

TEST(words_do_not_depend_on_windows)
{
    enum {
        MAX_BYTES = 150000
    };
    uint8_t *text = malloc(MAX_BYTES + TEXT_PADDING);
    for (int i = 0; i < (check_sanitized() ? 20 : check_long() ? 2000 : 50); i++) {
        const size_t n = random_text(text, 900);
        damage(text, n, i % 4 ? UINT32_MAX : 8);
        damage(text + n, TEXT_PADDING, 1);
        all_windows_agree(text, n, 64 + check_below(256));
    }
    for (int i = 0; i < (check_sanitized() ? 1 : check_long() ? 40 : 2); i++) {
        size_t n = 0;
        while (n + 3000 < MAX_BYTES)
            n += random_text(text + n, 3000);
        damage(text + n, TEXT_PADDING, 1);
        all_windows_agree(text, n, (size_t)1 << (10 + i % 4));
        all_windows_agree(text, n, 48 << 10);
    }
    free(text);
}

/* ---- Blocks that the algebra leaves to the scalar splitter ---- */

static split_algebra *algebra_of[SPLIT_MAX_STAGES];
static size_t n_blocks, forced_block; /* in all stages */

#define FORCED(k)                                                                                  \
    static uint64_t forced_##k(struct carry *c, const block *b, const block *next,                 \
                               const pieces *p)                                                    \
    {                                                                                              \
        const uint64_t found = algebra_of[k](c, b, next, p);                                       \
        c->undecided |= forced_block == SIZE_MAX || n_blocks == forced_block;                      \
        n_blocks++;                                                                                \
        return found;                                                                              \
    }
FORCED(0)
FORCED(1)
FORCED(2)
FORCED(3)
FORCED(4)
FORCED(5)
FORCED(6)
FORCED(7)

/* A splitter whose algebra gives up at a block. */
static splitter forced_splitter(const splitter *s, split_stage stages[SPLIT_MAX_STAGES])
{
    static split_algebra *const forced[] = {forced_0, forced_1, forced_2, forced_3,
                                            forced_4, forced_5, forced_6, forced_7};
    splitter copy = *s;
    copy.scanners = NULL;
    for (unsigned k = 0; k < s->n_stages; k++) {
        algebra_of[k] = s->stages[k]->words;
        if (!algebra_of[k] || s->stages[k] == split_stages[STAGE_BYTE_LEVEL])
            continue;
        stages[k] = *s->stages[k];
        stages[k].words = forced[k];
        stages[k].scanners = NULL;
        copy.stages[k] = &stages[k];
    }
    return copy;
}

/* Where all stages are split at once: from each block on. */
static void list_takes_undecided_blocks(const splitter *s, const uint8_t *text, size_t n_bytes,
                                        const uint64_t *wanted)
{
    uint64_t got[MAX_WORDS];
    for (size_t at = 0; at < n_bytes; at += 64) {
        block_reader r = {.text = text, .n_bytes = n_bytes};
        memset(got, 0, sizeof got);
        memcpy(got, wanted, at / 64 * sizeof *got);
        got[0] |= 1;
        const size_t end = split_undecided(s, SPLIT_ALL, &r, at, got);
        CHECK(end == n_bytes || (end >= at + 64 && naive_has_bit(wanted, end)));
        for (size_t i = 0; i < end; i++)
            if (naive_has_bit(got, i) != naive_has_bit(wanted, i))
                CHECK_FAIL("%s, block %zu: %s, not %s", split_pattern_name(s->pattern), at / 64,
                           excerpt(text, n_bytes, got, i), excerpt(text, n_bytes, wanted, i));
        split_words(s->pattern, SIMD_BEST, text + end, n_bytes - end, got);
        for (size_t i = end; i < n_bytes; i++)
            CHECK(naive_has_bit(got, i - end) == naive_has_bit(wanted, i));
    }
}

TEST(any_block_may_be_left_to_the_scalar_splitter)
{
    uint8_t text[700 + TEXT_PADDING];
    uint64_t wanted[MAX_WORDS] = {0}, got[MAX_WORDS];
    for (int i = 0; i < (check_sanitized() ? 10 : check_long() ? 1000 : 27); i++) {
        const size_t n = random_text(text, 40 + check_below(660));
        damage(text, n, i % 4 ? UINT32_MAX : 8);
        damage(text + n, TEXT_PADDING, 1);
        for (size_t k = 0; split_known(k) != SPLIT_UNKNOWN; k++) {
            split_stage stages[SPLIT_MAX_STAGES];
            const splitter s = forced_splitter(split_kept(k), stages);
            split_words(split_known(k), SIMD_SCALAR, text, n, wanted);
            for (size_t forced = 0, n_all = 0; forced <= n_all; forced++) {
                forced_block = forced < n_all ? forced : SIZE_MAX;
                n_blocks = 0;
                memset(got, 0, sizeof got);
                splitter_words(&s, SIMD_BEST, text, n, SIZE_MAX, got);
                same_words(text, n, got, wanted, named(split_known(k), SIMD_BEST));
                n_all = forced == 0 ? n_blocks : n_all;
            }
            if (split_kept(k)->scanners)
                list_takes_undecided_blocks(split_kept(k), text, n, wanted);
        }
    }
}

TEST(special_tokens_of_clip_are_words)
{
    static const char *const units[] = {
        "<|endoftext|>", "<|startoftext|>", "<|endoftext|", "<|", ">", "!", " ", "a", "'s", "1"};
    uint8_t text[300 + TEXT_PADDING];
    for (int i = 0; i < (check_sanitized() ? 200 : check_long() ? 10000 : 700); i++) {
        size_t n = 0;
        while (n < 200)
            n += append(text + n, units[check_below(sizeof units / sizeof *units)]);
        memset(text + n, 0xBF, TEXT_PADDING);
        check_text(text, n);
    }
}

/* Each stage alone and after any others: the algebra of a stage has to respect all pieces. */
TEST(stages_in_any_sequence_split_as_the_expressions_say)
{
    static const uint32_t sizes[] = {6, 12, 24, 60, 70, 140, 300, 600};
    uint8_t text[600 + TEXT_PADDING];
    uint64_t wanted[600 / 64 + 1];
    for (int i = 0; i < (check_sanitized() ? 20 : check_long() ? 3000 : 350); i++) {
        const size_t n = random_text(text, sizes[check_below(8)]);
        if (i % 4 == 0)
            damage(text, n, 8);
        damage(text + n, TEXT_PADDING, 1);
        for (unsigned last = STAGE_NONE + 1; last < STAGE_N; last++) {
            const unsigned n_before = check_below(4);
            split_pattern p = SPLIT_NONE;
            for (unsigned k = 0; k < n_before; k++)
                p = SPLIT_THEN(p, STAGE_NONE + 1 + check_below(STAGE_N - STAGE_NONE - 1), k);
            p = SPLIT_THEN(p, last, n_before);
            naive_words(p, text, n, wanted);
            engines_agree(p, text, n, wanted);
        }
    }
}

/* Each text after 0 to 127 other bytes. */
TEST(engines_agree_at_every_alignment)
{
    static const char *const before[] = {"a", " ", "\n", "!", "7", "\t ", "\u4e00", "\u0301"};
    uint8_t text[128 + 300 + TEXT_PADDING];
    int n_texts = check_sanitized() ? 2 : check_long() ? 10 : 2;
    for (int i = 0; i < n_texts * (int)(sizeof before / sizeof *before); i++) {
        const char *fill = before[i % 8];
        size_t n_fill = strlen(fill), n = random_text(text + 128, 300);
        if (i % 5 == 0)
            damage(text + 128, n, 16);
        damage(text + 128 + n, TEXT_PADDING, 1);
        for (size_t offset = 0; offset < 128; offset++) {
            for (size_t k = 0; k < offset; k++)
                text[127 - k] = (uint8_t)fill[n_fill - 1 - k % n_fill];
            all_engines_agree(text + 128 - offset, n + offset);
        }
    }
}

TEST(engines_agree_on_random_bytes)
{
    uint8_t text[1000 + TEXT_PADDING];
    int n_texts = check_sanitized() ? 50 : check_long() ? 3000 : 350;
    for (int i = 0; i < n_texts; i++) {
        size_t n = check_below(1000);
        damage(text, n + TEXT_PADDING, 1);
        all_engines_agree(text, n);
    }
}

static size_t append_times(uint8_t *text, const char *unit, size_t n_times)
{
    size_t n = 0;
    for (; n_times > 0; n_times--)
        n += append(text + n, unit);
    return n;
}

/* Each after 0 to 79 bytes, at the end of the text and before other characters. */
TEST(bytes_that_are_no_utf8_are_characters)
{
    static const char *const bad[] = {"\x80",
                                      "\xbf\xbf\xbf\xbf",
                                      "\xc0\xaf",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xc3(",
                                      "\xe0\x80\x80",
                                      "\xe0\x9f\xbf",
                                      "\xe2\x80",
                                      "\xe4\xb8",
                                      "\xe4",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xef\xbf",
                                      "\xf0\x80\x80\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf0\x9f\x98",
                                      "\xf0\x9f",
                                      "\xf0",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xfe\xff",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xe4\xb8\xe4\xb8\xad\xb8"};
    static const char *const after[] = {"",       "a",          " x",      "\u00e9",
                                        "\u4e2d", "\U0001f600", "\xb2\x35"};
    uint8_t text[256];
    for (size_t i = 0; i < sizeof bad / sizeof *bad * 80; i++) {
        for (size_t k = 0; k < sizeof after / sizeof *after; k++) {
            size_t n = append_times(text, k % 2 ? "a" : " ", i % 80);
            n += append(text + n, bad[i / 80]);
            n += append(text + n, after[k]);
            memset(text + n, 0xBF, TEXT_PADDING);
            check_text(text, n);
        }
    }
}

/* Long runs whose end is not in two blocks, after words that are long or short. */
TEST(what_two_blocks_do_not_show_is_split_right)
{
    static const char *const runs[][3] = {{"\n", " ", "\n"},         {"\n", " ", "x"},
                                          {"!\n", "\t", "\n\n "},    {"\n", "\u3000", "\n"},
                                          {"\u4e00", "A", "a"},      {"\u4e00", "A", " "},
                                          {"\u4e00", "A", "\u0301"}, {"\u4e00", "\u0410", "\u0430"},
                                          {"A", "'s", "\u4e00A"},    {"a'll", "\u4e00", "Aa"},
                                          {"!!", "\u0301", "\n/"},   {"!", "\n/", "!\u0301"},
                                          {"9", "1", "\u0661"},      {"\u4e00", "\u4e00", "a"}};
    uint8_t text[2048];
    for (size_t i = 0; i < sizeof runs / sizeof *runs * 220; i++) {
        size_t n = append_times(text, "b", i % 3 * 100 + i % 7);
        n += append(text + n, runs[i / 220][0]);
        n += append_times(text + n, runs[i / 220][1], i % 220);
        n += append(text + n, runs[i / 220][2]);
        memset(text + n, 0, TEXT_PADDING);
        check_text(text, n);
    }
}

/* The pages before the text and after its padding cannot be read. */
TEST(nothing_is_read_beyond_the_padding)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK_INT(mprotect(pages + page, page, PROT_READ | PROT_WRITE), 0);
    for (size_t i = 0; i < 600; i++) {
        size_t n = random_text(pages + page, 4 + check_below(400));
        if (i % 2)
            damage(pages + page, n, 8);
        all_engines_agree(pages + page, n);
        uint8_t *at_end = pages + 2 * page - TEXT_PADDING - n;
        memmove(at_end, pages + page, n);
        all_engines_agree(at_end, n);
    }
    munmap(pages, 3 * page);
}

/* If one of them were quadratic, this would take hours. */
TEST(hostile_text_takes_linear_time)
{
    static const char *const units[] = {
        "a",       "A",        " ",         "\n",       "'",          "1",          "!",
        "/",       "\u0301",   "\u4e00",    "\u3000",   "\x80",       "\xf0",       "aA",
        "Aa",      " \n",      "\n ",       "\r\n",     "'s",         "'S",         "\u4e00A",
        "A\u4e00", "\u0301A",  "!\u0301",   "!/",       "!\n",        "/\n",        "\n/",
        " 1",      "1 ",       "a'",        "\t ",      "\x01",       "\x01 ",      "\U0001f600",
        "\u0967",  "\xc2\xb2", "1\xc2\xb2", "\u00a0\n", "a'll\u4e00", "!\n/\u0301", "!!\u0301\n/",
        "\u3040"};
    static const char *const ends[] = {"", "a", "\n", "1", "\u4e00", "!"};
    size_t size = check_sanitized() ? 1 << 17 : 1 << 18;
    uint8_t *text = malloc(size + 16 + TEXT_PADDING);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        const char *end = ends[u % 6], *middle = u % 3 ? units[u] : ends[u % 5];
        size_t n = 0;
        for (int k = 0; n + 16 <= size; k++)
            n += append(text + n, k == 1000 ? middle : units[u]);
        n += append(text + n, end);
        memset(text + n, 0, TEXT_PADDING);
        all_engines_agree(text, n);
    }
    free(text);
}

TEST(engines_agree_on_real_text)
{
    static const char *const files[] = {"mobydick_1MB.txt",
                                        "dclm_sample.jsonl",
                                        "xquad.de.txt",
                                        "xquad.el.txt",
                                        "xquad.en.txt",
                                        "xquad.es.txt",
                                        "xquad.ro.txt",
                                        "xquad.ru.txt",
                                        "xquad.tr.txt",
                                        "xquad.vi.txt",
                                        "md.txt",
                                        "c.txt",
                                        "py.txt"}; /* of make vocabularies */
    const char *shared = getenv("TOKMAP_SHARED");
    int n_files = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/text/%s", shared ? shared : "../shared", files[i]);
        FILE *f = fopen(path, "rb");
        if (!f)
            continue;
        uint8_t *text = calloc(1, (2 << 20) + TEXT_PADDING);
        size_t n = fread(text, 1, 2 << 20, f);
        fclose(f);
        all_engines_agree(text, n);
        free(text);
        n_files++;
    }
    if (n_files == 0)
        SKIP("no text in TOKMAP_SHARED (../shared)");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The time of splitting grows with the length of a run, not with its square: each stage, on its
 * own and in the patterns that have it, takes for a text of 2 MB at most 24 times the CPU time of
 * 250 kB, the least of several runs each. Each pattern gets every third kind of run, and with
 * TOKMAP_LONG=all each of them. */
#include "support/check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/split_words.h"

enum {
    SMALL_BYTES = 250000,
    TIMES = 8,
    LARGE_BYTES = TIMES * SMALL_BYTES,
    MOST_TIMES = 24,
    N_RUNS = 15,
    CHUNK_BYTES = 48 << 10 /* what an encoder splits at a time */
};
/* What grows with the square takes more than the first for LARGE_BYTES. No other load of the
 * machine explains the second; a host that takes the processor away explains 30 ms. */
#define LEAST_SECONDS 0.01
#define CERTAIN_SECONDS 1.0

/* The last ones are words, so that many blocks are left to the scalar splitter. */
static const char *const runs[] = {" ",
                                   "\n",
                                   "\t",
                                   "\r\n",
                                   " \n",
                                   "\n ",
                                   "\u00a0",
                                   "\u3000",
                                   "\u2003\n",
                                   "a",
                                   "A",
                                   "aA",
                                   "Aa",
                                   "\u00e9",
                                   "\u0430",
                                   "\u4e00",
                                   "\u3042",
                                   "\uac00",
                                   "\u0e01",
                                   "\u02b0",
                                   "\u0301",
                                   "a\u0301",
                                   "\u0301A",
                                   "\u4e00A",
                                   "\u200d",
                                   "\U0001f600",
                                   "\U0001d400",
                                   "1",
                                   "\u0967",
                                   "\u00b2",
                                   "1\u00b2",
                                   " 1",
                                   "1 ",
                                   "1,",
                                   "1a",
                                   "'",
                                   "'s",
                                   "'S",
                                   "a'",
                                   "!",
                                   "!\n",
                                   "/",
                                   "!/",
                                   "/\n",
                                   "\n/",
                                   ".a",
                                   "_",
                                   "\x80",
                                   "\xf0",
                                   "\x01",
                                   "ab 123 cd ",
                                   "x   y  \n",
                                   "\u4e00\u4e8c12\u3002"};

typedef struct timed_text {
    uint8_t *text;
    size_t n_bytes;
    uint64_t *starts;
} timed_text;

static timed_text make_text(const char *run, size_t n_bytes)
{
    const size_t n_run = strlen(run);
    timed_text t = {calloc(1, n_bytes + TEXT_PADDING), n_bytes / n_run * n_run,
                    calloc(n_bytes / 64 + 1, sizeof *t.starts)};
    for (size_t i = 0; i < t.n_bytes; i++)
        t.text[i] = (uint8_t)run[i % n_run];
    return t;
}

static void free_text(const timed_text *t)
{
    free(t->text);
    free(t->starts);
}

/* Splits as an encoder does, a chunk after the other. Returns the CPU time in seconds. */
static double split_time(const splitter *s, const timed_text *t)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (size_t at = 0, n; at < t->n_bytes; at += n) {
        n = splitter_words(s, SIMD_BEST, t->text + at, t->n_bytes - at, CHUNK_BYTES, t->starts);
        memset(t->starts, 0, (n / 64 + 1) * sizeof *t->starts);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
}

static double split_times(const splitter *s, const timed_text *t, int n_times)
{
    double time = 0;
    for (int i = 0; i < n_times; i++)
        time += split_time(s, t);
    return time;
}

/* What else the machine does changes what is in the caches. So where one small text is not enough,
 * eight of them, which take as long as the large one, are compared with it. */
static void takes_linear_time(const splitter *s, const char *name, const char *run,
                              const timed_text texts[2])
{
    double small = TIMES * split_time(s, &texts[0]), large = split_time(s, &texts[1]);
    if (large < LEAST_SECONDS)
        return;
    for (int i = 0; i < N_RUNS && TIMES * large > MOST_TIMES * small && large < CERTAIN_SECONDS;
         i++) {
        const double next = split_time(s, &texts[1]), other = split_times(s, &texts[0], TIMES);
        large = next < large ? next : large;
        small = i == 0 || other < small ? other : small;
    }
    if (TIMES * large > MOST_TIMES * small)
        CHECK_FAIL("%s, a run of \"%s\": %.4f s for %zu bytes, %.4f s for %d times %zu", name, run,
                   large, texts[1].n_bytes, small, TIMES, texts[0].n_bytes);
}

/* Expressions of the tokenizer's own: searches that find nothing, and matches that are short. */
static const char *const own[] = {"\\s*[\\r\\n]+|\\s{1,4}|\\S{1,8}",
                                  "[a-z]+[0-9]|[a-z]{1,4}|[^a-z]", "[^!]+!|\\d{1,3}|.",
                                  "\\p{L}+|\\p{N}"};

TEST(every_stage_takes_linear_time)
{
    if (check_sanitized())
        SKIP("a sanitizer changes what takes time");
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        const timed_text texts[2] = {make_text(runs[r], SMALL_BYTES),
                                     make_text(runs[r], LARGE_BYTES)};
        const size_t every = check_long() ? 1 : 3;
        for (size_t k = r % every; split_known(k) != SPLIT_UNKNOWN; k += every)
            takes_linear_time(split_kept(k), split_pattern_name(split_known(k)), runs[r], texts);
        for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
            expression_error err;
            const split_own x = {expression_new(own[k], strlen(own[k]), EXPRESSION_RUBY, &err),
                                 JOIN_NONE};
            splitter *alone = splitter_new(STAGE_OWN, &x);
            splitter *second =
                splitter_new(SPLIT_LIST(STAGE_NUMBERS, STAGE_OWN, STAGE_NONE, STAGE_NONE), &x);
            CHECK(x.expression && alone && second);
            takes_linear_time(alone, own[k], runs[r], texts);
            takes_linear_time(second, own[k], runs[r], texts);
            splitter_free(alone);
            splitter_free(second);
            expression_free(x.expression);
        }
        free_text(&texts[0]);
        free_text(&texts[1]);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_order - answers questions about the order of samples, one a line of the standard input, with
 * a line of decimal numbers each, so that another implementation can be compared.
 *
 *     permute N KEY X                                  the number that X becomes
 *     key SEED ID COPY PURPOSE EPOCH N                 a key
 *     shuffle MODE N B M SEED ID COPY EPOCH X          the window; MODE: none, full, block
 *     quotas W1 W2 ...                                 the quotas, or `refused`
 *     mixture MIXTURE G                                source, epoch and place of sample G
 *     counts MIXTURE G                                 samples of each source before sample G
 *     end MIXTURE                                      samples and source that ends, or `endless`
 *     hash MIXTURE                                     what the state holds of it
 *
 * MIXTURE is the number of sources, for each source its WINDOWS:MAX_EPOCHS (0: no limit), the
 * number of phases, and for each phase FROM:Q1,Q2,... with a quota for each source. Numbers are
 * decimal, weights what strtod reads. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/mixture.h"
#include "order/order_key.h"
#include "order/permute.h"
#include "order/shuffle.h"

static const char *line;

__attribute__((noreturn)) static void refuse(const char *why)
{
    fprintf(stderr, "tool_order: %s: %s\n", why, line);
    exit(2);
}

/* The text between blanks, colons and commas. */
static char *next_word(char **rest)
{
    char *word = strtok_r(NULL, " :,\n", rest);
    if (!word)
        refuse("something is missing");
    return word;
}

static uint64_t next_number(char **rest)
{
    char *end, *word = next_word(rest);
    errno = 0;
    const uint64_t number = strtoull(word, &end, 10);
    if (*end || *word == '-' || errno)
        refuse("not a number");
    return number;
}

static uint64_t number_in(char **rest, uint64_t least, uint64_t most)
{
    const uint64_t number = next_number(rest);
    if (number < least || number > most)
        refuse("a number is out of its range");
    return number;
}

static void permute_command(char **rest)
{
    tokmap_i_permutation p;
    const uint64_t n = number_in(rest, 1, TOKMAP_I_PERMUTE_MAX), key = next_number(rest);
    const uint64_t x = number_in(rest, 0, n - 1);
    tokmap_i_permutation_init(&p, n, key);
    printf("%" PRIu64 "\n", tokmap_i_permute(&p, x));
}

static tokmap_i_order_id next_id(char **rest)
{
    tokmap_i_order_id id;
    id.seed = next_number(rest);
    id.source_id = next_number(rest);
    id.copy = next_number(rest);
    return id;
}

static void key_command(char **rest)
{
    const tokmap_i_order_id id = next_id(rest);
    const uint64_t purpose = next_number(rest), epoch = next_number(rest), n = next_number(rest);
    printf("%" PRIu64 "\n", tokmap_i_order_key(&id, purpose, epoch, n));
}

static tokmap_i_shuffle_mode mode_of(const char *name)
{
    if (strcmp(name, "none") == 0)
        return TOKMAP_I_SHUFFLE_NONE;
    if (strcmp(name, "full") == 0)
        return TOKMAP_I_SHUFFLE_FULL;
    if (strcmp(name, "block") != 0)
        refuse("no such mode");
    return TOKMAP_I_SHUFFLE_BLOCK;
}

static void shuffle_command(char **rest)
{
    tokmap_i_shuffle s = {.mode = mode_of(next_word(rest))};
    const bool is_block = s.mode == TOKMAP_I_SHUFFLE_BLOCK;
    s.n_windows = number_in(rest, 1, TOKMAP_I_PERMUTE_MAX);
    s.block_windows = number_in(rest, is_block, TOKMAP_I_PERMUTE_MAX);
    const uint64_t most = TOKMAP_I_PERMUTE_MAX / (s.block_windows ? s.block_windows : 1);
    s.group_blocks = number_in(rest, is_block, most);
    s.id = next_id(rest);
    const uint64_t epoch = next_number(rest), x = number_in(rest, 0, s.n_windows - 1);
    tokmap_i_shuffle_init(&s);
    printf("%" PRIu64 "\n", tokmap_i_shuffle_window(&s, epoch, x));
}

static void quotas_command(char **rest)
{
    static double weights[TOKMAP_I_MIXTURE_SOURCES + 1];
    static uint32_t quotas[TOKMAP_I_MIXTURE_SOURCES + 1];
    uint32_t n = 0;
    for (char *word, *end; (word = strtok_r(NULL, " \n", rest));) {
        if (n > TOKMAP_I_MIXTURE_SOURCES)
            refuse("too many weights");
        weights[n++] = strtod(word, &end);
        if (*end)
            refuse("not a weight");
    }
    uint32_t too_small;
    const bool ok = tokmap_i_quotas(weights, n, quotas, &too_small);
    for (uint32_t k = 0; ok && k < n; k++)
        printf("%s%" PRIu32, k > 0 ? " " : "", quotas[k]);
    puts(ok ? "" : "refused");
}

static tokmap_i_mixture *next_mixture(char **rest, uint32_t *n_sources)
{
    static tokmap_i_mixture_source sources[TOKMAP_I_MIXTURE_SOURCES];
    static uint32_t quotas[TOKMAP_I_MIXTURE_SOURCES];
    const uint32_t n = (uint32_t)number_in(rest, 1, TOKMAP_I_MIXTURE_SOURCES);
    for (uint32_t k = 0; k < n; k++) {
        sources[k].n_windows = number_in(rest, 1, TOKMAP_I_PERMUTE_MAX);
        sources[k].max_epochs = next_number(rest);
    }
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, n);
    const uint64_t n_phases = number_in(rest, 1, TOKMAP_I_MIXTURE_PHASES);
    uint64_t least = 0;
    for (uint64_t i = 0; i < n_phases; i++) {
        const uint64_t from = number_in(rest, least, i == 0 ? 0 : UINT64_MAX - 1);
        uint64_t sum = 0;
        for (uint32_t k = 0; k < n; k++)
            sum += quotas[k] = (uint32_t)number_in(rest, 0, TOKMAP_I_MIXTURE_PERIOD - sum);
        if (sum == 0)
            refuse("a phase without quotas");
        if (!m || !tokmap_i_mixture_add_phase(m, from, quotas))
            refuse("no memory");
        least = from + 1;
    }
    *n_sources = n;
    return m;
}

static void print_counts(const tokmap_i_mixture *m, uint32_t n_sources, uint64_t g)
{
    static uint64_t counts[TOKMAP_I_MIXTURE_SOURCES];
    tokmap_i_mixture_counts(m, g, counts);
    for (uint32_t k = 0; k < n_sources; k++)
        printf("%" PRIu64 "%c", counts[k], k + 1 < n_sources ? ' ' : '\n');
}

static void print_end(const tokmap_i_mixture *m)
{
    uint32_t source;
    const uint64_t end = tokmap_i_mixture_end(m, &source);
    if (end == UINT64_MAX)
        puts("endless");
    else
        printf("%" PRIu64 " %" PRIu32 "\n", end, source);
}

static void mixture_command(char **rest, const char *what)
{
    uint32_t n_sources;
    tokmap_i_mixture *m = next_mixture(rest, &n_sources);
    if (strcmp(what, "mixture") == 0) {
        tokmap_i_mixture_sample sample;
        tokmap_i_mixture_at(m, number_in(rest, 0, INT64_MAX), &sample);
        printf("%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", sample.source, sample.epoch, sample.place);
    } else if (strcmp(what, "counts") == 0) {
        print_counts(m, n_sources, number_in(rest, 0, INT64_MAX));
    } else if (strcmp(what, "end") == 0) {
        print_end(m);
    } else {
        printf("%" PRIu64 "\n", tokmap_i_mixture_hash(m));
    }
    tokmap_i_mixture_free(m);
}

static void answer(char *words)
{
    char *rest;
    const char *what = strtok_r(words, " \n", &rest);
    if (!what)
        refuse("an empty line");
    if (strcmp(what, "permute") == 0)
        permute_command(&rest);
    else if (strcmp(what, "key") == 0)
        key_command(&rest);
    else if (strcmp(what, "shuffle") == 0)
        shuffle_command(&rest);
    else if (strcmp(what, "quotas") == 0)
        quotas_command(&rest);
    else if (strcmp(what, "mixture") == 0 || strcmp(what, "counts") == 0 ||
             strcmp(what, "end") == 0 || strcmp(what, "hash") == 0)
        mixture_command(&rest, what);
    else
        refuse("no such command");
    if (strtok_r(NULL, " \n", &rest))
        refuse("too many words");
}

int main(void)
{
    char *text = NULL;
    size_t capacity = 0;
    while (getline(&text, &capacity, stdin) > 0) {
        char *words = strdup(text);
        line = text;
        answer(words);
        free(words);
    }
    free(text);
    return 0;
}

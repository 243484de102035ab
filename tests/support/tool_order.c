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
 *     chunk ROOM ROWS MOST SIZE...                     the row of each piece of a chunk
 *
 * MIXTURE is the number of sources, for each source its WINDOWS:MAX_EPOCHS (0: no limit), the
 * number of phases, and for each phase FROM:Q1,Q2,... with a quota for each source. Numbers are
 * decimal, weights what strtod reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "order/mixture.h"
#include "order/order_key.h"
#include "order/permute.h"
#include "order/shuffle.h"
#include "rows/best_fit.h"

/* The text between blanks, colons and commas. */
static char *next_word(char **rest)
{
    char *word = strtok_r(NULL, " :,\n", rest);
    if (!word)
        exit(2);
    return word;
}

static uint64_t next_number(char **rest)
{
    return strtoull(next_word(rest), NULL, 10);
}

static void permute_command(char **rest)
{
    tokmap_i_permutation p;
    const uint64_t n = next_number(rest), key = next_number(rest);
    const uint64_t x = next_number(rest);
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

static void shuffle_command(char **rest)
{
    const char *mode = next_word(rest);
    tokmap_i_shuffle s = {.mode = strcmp(mode, "none") == 0   ? TOKMAP_SHUFFLE_NONE
                                  : strcmp(mode, "full") == 0 ? TOKMAP_SHUFFLE_FULL
                                                              : TOKMAP_SHUFFLE_BLOCK};
    s.n_windows = next_number(rest);
    s.block_windows = next_number(rest);
    s.group_blocks = next_number(rest);
    s.id = next_id(rest);
    const uint64_t epoch = next_number(rest), x = next_number(rest);
    tokmap_i_shuffle_init(&s);
    printf("%" PRIu64 "\n", tokmap_i_shuffle_window(&s, epoch, x));
}

static void chunk_command(char **rest)
{
    tokmap_i_best_fit b = {.room = (uint32_t)next_number(rest)};
    tokmap_i_fit_piece pieces[1000] = {0};
    uint32_t n = 0, n_rows;
    b.n_rows = (uint32_t)next_number(rest);
    b.most_pieces = (uint32_t)next_number(rest);
    for (char *word; (word = strtok_r(NULL, " \n", rest)) && n < 1000;)
        pieces[n++].size = (uint32_t)strtoul(word, NULL, 10);
    const uint32_t limit = tokmap_i_best_fit_limit(&b, pieces, n);
    if (!tokmap_i_best_fit_open(&b))
        exit(2);
    const uint32_t n_packed = tokmap_i_best_fit_pack(&b, pieces, limit, limit == n, &n_rows);
    printf("%" PRIu32, n_rows);
    for (uint32_t i = 0; i < n_packed; i++)
        printf(" %" PRIu32, pieces[i].row);
    putchar('\n');
    tokmap_i_best_fit_close(&b);
}

static void quotas_command(char **rest)
{
    static double weights[TOKMAP_I_MIXTURE_SOURCES + 1];
    static uint32_t quotas[TOKMAP_I_MIXTURE_SOURCES + 1];
    uint32_t n = 0;
    for (char *word; (word = strtok_r(NULL, " \n", rest));)
        weights[n++] = strtod(word, NULL);
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
    const uint32_t n = *n_sources = (uint32_t)next_number(rest);
    for (uint32_t k = 0; k < n; k++) {
        sources[k].n_windows = next_number(rest);
        sources[k].max_epochs = next_number(rest);
    }
    uint64_t n_phases = next_number(rest);
    tokmap_i_mixture *m = tokmap_i_mixture_new(sources, n, (uint32_t)n_phases);
    for (; n_phases > 0; n_phases--) {
        const uint64_t from = next_number(rest);
        for (uint32_t k = 0; k < n; k++)
            quotas[k] = (uint32_t)next_number(rest);
        if (!m || !tokmap_i_mixture_add_phase(m, from, quotas))
            exit(2);
    }
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
        tokmap_i_mixture_at(m, next_number(rest), &sample);
        printf("%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", sample.source, sample.epoch, sample.place);
    } else if (strcmp(what, "counts") == 0) {
        print_counts(m, n_sources, next_number(rest));
    } else if (strcmp(what, "end") == 0) {
        print_end(m);
    } else {
        printf("%" PRIu64 "\n", tokmap_i_mixture_hash(m));
    }
    tokmap_i_mixture_free(m);
}

int main(void)
{
    char *text = NULL, *rest;
    size_t capacity = 0;
    while (getline(&text, &capacity, stdin) > 0) {
        const char *what = strtok_r(text, " \n", &rest);
        if (strcmp(what, "permute") == 0)
            permute_command(&rest);
        else if (strcmp(what, "key") == 0)
            key_command(&rest);
        else if (strcmp(what, "shuffle") == 0)
            shuffle_command(&rest);
        else if (strcmp(what, "quotas") == 0)
            quotas_command(&rest);
        else if (strcmp(what, "chunk") == 0)
            chunk_command(&rest);
        else
            mixture_command(&rest, what);
    }
    free(text);
    return 0;
}

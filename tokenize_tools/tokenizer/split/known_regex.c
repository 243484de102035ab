/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/known_regex.h"

#include <string.h>

/* Compares a spelling with the text of a file, in which \n may be written as a newline. Returns the
 * length of the match in the text, or 0. */
static size_t match_spelling(const char *spelling, size_t n_spelling, const char *text,
                             size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_spelling; i++, n++) {
        const bool escape = spelling[i] == '\\' && i + 1 < n_spelling;
        if (n == n_bytes)
            return 0;
        if (escape && strncmp(spelling + i, "\\x20", 4) == 0 && text[n] == ' ')
            i += 3;
        else if (escape && ((spelling[i + 1] == 'r' && text[n] == '\r') ||
                            (spelling[i + 1] == 'n' && text[n] == '\n')))
            i++;
        else if (spelling[i] != text[n])
            return 0;
    }
    return n;
}

/* The length of the match of one alternative, up to a bar or the end of the text; 0: it does not
 * match. */
static size_t match_alternative(const char *spellings, const char *text, size_t n_bytes)
{
    while (*spellings) {
        const size_t n_spelling = strcspn(spellings, " ");
        const size_t n = match_spelling(spellings, n_spelling, text, n_bytes);
        if (n > 0 && (n == n_bytes || text[n] == '|'))
            return n;
        spellings += n_spelling;
        spellings += *spellings == ' ';
    }
    return 0;
}

static bool matches(const split_stage *stage, const char *text, size_t n_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < SPLIT_MAX_ALTERNATIVES && stage->alternatives[i]; i++) {
        if (i > 0 && (at == n_bytes || text[at++] != '|'))
            return false;
        const size_t n = match_alternative(stage->alternatives[i], text + at, n_bytes - at);
        if (n == 0)
            return false;
        at += n;
    }
    return at > 0 && at == n_bytes;
}

split_stage_id known_regex_find(const char *text, size_t n_bytes)
{
    for (int id = STAGE_NONE + 1; id < STAGE_N; id++) {
        if (split_stages[id]->component == COMPONENT_SPLIT &&
            split_stages[id]->dialect == EXPRESSION_RUBY &&
            matches(split_stages[id], text, n_bytes))
            return (split_stage_id)id;
    }
    return STAGE_NONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tokenizer/load/load_bytes.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/load/presets.h"

/* Mistral counts ranks from 0, and their ids from 1000, after the specials. */
#define TEKKEN_SPECIALS 1000

typedef struct rank_line {
    const char *token; /* base64 */
    size_t n_token;
    uint32_t rank;
} rank_line;

/* base64, a space, digits. */
static bool parse_line(const char *line, size_t n_bytes, rank_line *out)
{
    const char *space = memchr(line, ' ', n_bytes);
    const size_t n_token = space ? (size_t)(space - line) : 0;
    uint64_t rank;
    if (n_token == 0 || !number_read_digits(space + 1, n_bytes - n_token - 1, &rank) ||
        rank >= MODEL_MAX_TOKENS)
        return false;
    *out = (rank_line){line, n_token, (uint32_t)rank};
    return true;
}

typedef struct tiktoken_file {
    byte_vocabulary words;
    preset_choice preset;
    uint32_t n_ranks, first_id;
} tiktoken_file;

static bool read_lines(tiktoken_file *f, const char *text, size_t n_bytes)
{
    failure *err = f->words.err;
    size_t number = 1;
    for (size_t at = 0; at < n_bytes; number++) {
        const char *end = memchr(text + at, '\n', n_bytes - at);
        const size_t n_line = end ? (size_t)(end - text) - at : n_bytes - at;
        const size_t n = n_line - (n_line > 0 && text[at + n_line - 1] == '\r');
        rank_line line;
        if (n > 0 && !parse_line(text + at, n, &line))
            return model_fail(err, at, "line %zu is not a token as base64, a space and its rank",
                              number);
        if (n > 0 && f->n_ranks++ == 0 && line.rank == 0 && !f->preset.any &&
            strcmp(f->preset.preset->name, PRESET_TEKKEN) == 0)
            f->first_id = TEKKEN_SPECIALS;
        if (n > 0 &&
            !bytes_add_base64(&f->words, f->first_id + line.rank, line.token, line.n_token)) {
            err->place = at;
            return false;
        }
        at += n_line + 1;
    }
    return f->n_ranks > 0 || model_fail(err, 0, "there are no ranks");
}

bool load_tiktoken(model *m, const model_source *source, failure *err)
{
    tiktoken_file f = {.words = {.m = m, .err = err}};
    if (!preset_find(&f.preset, source->pattern, err))
        return false;
    const bool ok = read_lines(&f, (const char *)source->data, source->n_bytes) &&
                    bytes_check(&f.words) && preset_apply(f.preset, m, f.n_ranks, err);
    bytes_free(&f.words);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "tokenizer/load/load_bytes.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/load/presets.h"

/* Mistral counts ranks from 0, and their ids from 1000, after the specials. */
#define TEKKEN_SPECIALS 1000

/* Reads the rank of a line: base64, a space, digits. Returns the length of the base64; 0: the line
 * is wrong. */
static size_t parse_line(const char *line, size_t n_bytes, uint64_t *rank)
{
    const char *space = memchr(line, ' ', n_bytes);
    const size_t n_token = space ? (size_t)(space - line) : 0;
    return n_token > 0 && number_read_digits(space + 1, n_bytes - n_token - 1, rank) &&
                   *rank < MODEL_MAX_TOKENS
               ? n_token
               : 0;
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
        uint64_t rank = 0;
        const size_t n_token = parse_line(text + at, n, &rank);
        if (n > 0 && n_token == 0)
            return model_fail(err, at, "line %zu is not a token as base64, a space and its rank",
                              number);
        if (n_token > 0 && f->n_ranks++ == 0 && rank == 0 && !f->preset.any &&
            strcmp(f->preset.preset->name, PRESET_TEKKEN) == 0)
            f->first_id = TEKKEN_SPECIALS;
        if (n_token > 0 &&
            !bytes_add_base64(&f->words, f->first_id + (uint32_t)rank, text + at, n_token)) {
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

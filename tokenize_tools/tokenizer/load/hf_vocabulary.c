/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/hf_vocabulary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_parts.h"
#include "tokenizer/model/byte_alphabet.h"

/* ---- Vocabulary ---- */

/* Returns the value of a digit in capitals, or -1. */
static int hex_digit(char c)
{
    return c >= 'a' ? -1 : json_hex_digits[(uint8_t)c] - 1;
}

int hf_byte_of_name(const char *name, size_t n_bytes)
{
    if (n_bytes != 6 || memcmp(name, "<0x", 3) != 0 || name[5] != '>')
        return -1;
    const int high = hex_digit(name[3]), low = hex_digit(name[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Adds a token. bytes: room for MODEL_MAX_TOKEN_BYTES. */
static bool add_token(model *m, json_string name, uint32_t id, uint8_t *bytes, failure *err)
{
    new_token token = {id, name.s, name.n_bytes, TOKEN_NORMAL, 0};
    const bool falls_back = m->byte_fallback && m->kind != MODEL_BYTE_BPE;
    const int byte = falls_back ? hf_byte_of_name(name.s, name.n_bytes) : -1;
    if (byte >= 0) {
        bytes[0] = (uint8_t)byte;
        token = (new_token){id, bytes, 1, TOKEN_BYTE, 0};
    } else if (name.n_bytes == 0) {
        token.kind = TOKEN_CONTROL;
    } else if (m->kind == MODEL_BYTE_BPE && name.n_bytes <= MODEL_MAX_TOKEN_BYTES) {
        const size_t n_bytes = byte_alphabet_decode(name.s, name.n_bytes, bytes);
        if (n_bytes == SIZE_MAX)
            token.kind = TOKEN_CONTROL;
        else
            token = (new_token){id, bytes, n_bytes, TOKEN_NORMAL, 0};
    }
    return model_set_token(m, &token, err);
}

static bool read_tokens(json_reader *r, model *m, name_table *names, uint8_t *bytes, failure *err)
{
    json_string name;
    uint64_t id;
    if (!json_begin(r, JSON_OBJECT))
        return false;
    while (json_next_key(r, &name)) {
        if (!json_read_uint(r, &id))
            return false;
        if (id >= MODEL_MAX_TOKENS)
            return model_fail(err, r->at,
                              "the token \"%.*s\" has the id %" PRIu64 ": ids must be below %u",
                              model_shown(name.n_bytes), name.s, id, MODEL_MAX_TOKENS);
        if (!model_add_name(names, model_view(name.s, name.n_bytes), (uint32_t)id, "token", err) ||
            !add_token(m, name, (uint32_t)id, bytes, err))
            return false;
    }
    return r->failure[0] == '\0';
}

bool hf_read_vocabulary(json_reader *r, model *m, name_table *names, failure *err)
{
    uint8_t *bytes = malloc(MODEL_MAX_TOKEN_BYTES); /* too large for a small stack */
    bool read = bytes ? read_tokens(r, m, names, bytes, err) : fail_memory(err);
    free(bytes);
    return read;
}

/* ---- Merges ---- */

typedef struct merge_reader {
    model *m;
    const name_table *names;
    failure *err;
    char *joined; /* the two names of a merge, one after the other */
    size_t capacity;
    size_t n_read; /* merges so far */
} merge_reader;

static bool put_name(merge_reader *d, size_t at, json_string name)
{
    if (!array_reserve(&d->joined, &d->capacity, at + name.n_bytes, 1))
        return fail_memory(d->err);
    if (name.n_bytes > 0)
        memcpy(d->joined + at, name.s, name.n_bytes);
    return true;
}

static bool find_token(merge_reader *d, const char *name, size_t n_bytes, uint32_t *id)
{
    *id = name_table_find(d->names, name, n_bytes);
    return *id != NAME_TABLE_NONE ||
           model_fail(d->err, 0, "merge %zu: the vocabulary has no \"%.*s\"", d->n_read,
                      model_shown(n_bytes), name);
}

/* Returns the first n_left bytes of `joined` are the left name. */
static bool add_joined(merge_reader *d, size_t n_left, size_t n_bytes)
{
    const model_token *tokens = d->m->tokens;
    model_merge merge;
    if (!find_token(d, d->joined, n_left, &merge.left) ||
        !find_token(d, d->joined + n_left, n_bytes - n_left, &merge.right) ||
        !find_token(d, d->joined, n_bytes, &merge.result))
        return false;
    d->n_read++;
    /* No text produces such a token, so the merge never happens. */
    if (tokens[merge.left].kind == TOKEN_CONTROL || tokens[merge.right].kind == TOKEN_CONTROL ||
        tokens[merge.result].kind == TOKEN_CONTROL)
        return true;
    return model_add_merge(d->m, merge, d->err);
}

static bool add_line(merge_reader *d, json_string line)
{
    const char *space = memchr(line.s, ' ', line.n_bytes);
    if (line.n_bytes >= 8 && memcmp(line.s, "#version", 8) == 0)
        return true;
    const size_t n_left = space ? (size_t)(space - line.s) : 0;
    if (!space || memchr(space + 1, ' ', line.n_bytes - n_left - 1))
        return model_fail(d->err, 0,
                          "merge %zu: \"%.*s\" is not two tokens separated by a space (tokens with "
                          "spaces need merges of the form [\"a\", \"b\"])",
                          d->n_read, model_shown(line.n_bytes), line.s);
    const json_string left = {line.s, n_left}, right = {space + 1, line.n_bytes - n_left - 1};
    return put_name(d, 0, left) && put_name(d, n_left, right) &&
           add_joined(d, n_left, n_left + right.n_bytes);
}

static bool read_pair(json_reader *r, merge_reader *d)
{
    json_string left, right;
    if (!json_begin(r, JSON_ARRAY) || !json_next_item(r) || !json_read_string(r, &left))
        return json_fail(r, "a merge must be two tokens");
    if (!put_name(d, 0, left))
        return false;
    const size_t n_left = left.n_bytes;
    if (!json_next_item(r) || !json_read_string(r, &right) || json_next_item(r) || r->failure[0])
        return json_fail(r, "a merge must be two tokens");
    return put_name(d, n_left, right) && add_joined(d, n_left, n_left + right.n_bytes);
}

static bool read_list(json_reader *r, merge_reader *d)
{
    json_kind form = JSON_NONE;
    json_string line;
    if (!json_begin(r, JSON_ARRAY))
        return false;
    while (json_next_item(r)) {
        const json_kind kind = json_peek(r);
        if (form != JSON_NONE && kind != form)
            return json_fail(r, "merges in two different forms");
        form = kind;
        const bool ok =
            kind == JSON_ARRAY ? read_pair(r, d) : json_read_string(r, &line) && add_line(d, line);
        if (!ok)
            return false;
    }
    return r->failure[0] == '\0';
}

bool hf_read_merges(json_reader *r, model *m, const name_table *names, failure *err)
{
    merge_reader d = {.m = m, .names = names, .err = err};
    const bool ok = read_list(r, &d) && model_keep_last_merges(m, err);
    free(d.joined);
    return ok;
}

bool hf_read_merge_lines(json_string text, model *m, const name_table *names, failure *err)
{
    merge_reader d = {.m = m, .names = names, .err = err};
    bool ok = true;
    for (size_t at = 0; ok && at < text.n_bytes;) {
        const char *end = memchr(text.s + at, '\n', text.n_bytes - at);
        const size_t n = end ? (size_t)(end - text.s) - at : text.n_bytes - at;
        const bool returned = end && n > 0 && text.s[at + n - 1] == '\r';
        ok = add_line(&d, (json_string){text.s + at, n - returned});
        at += n + 1;
    }
    ok = ok && model_keep_last_merges(m, err);
    free(d.joined);
    return ok;
}

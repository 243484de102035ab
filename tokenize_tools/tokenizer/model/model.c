/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/model/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_reader.h"
#include "base/real.h"
#include "base/utf8.h"
#include "tokenizer/model/name_table.h"

void model_init(model *m)
{
    *m = (model){.unknown_id = MODEL_NO_ID,
                 .bos_id = MODEL_NO_ID,
                 .eos_id = MODEL_NO_ID,
                 .eos_rival = MODEL_NO_ID};
}

void model_text_free(model_text *text)
{
    free(text->s);
    *text = (model_text){0};
}

void model_free(model *m)
{
    for (size_t i = 0; i < m->n_steps; i++) {
        model_text_free(&m->steps[i].from);
        model_text_free(&m->steps[i].to);
    }
    for (size_t i = 0; i < m->n_added; i++)
        model_text_free(&m->added[i].content);
    model_text_free(&m->charsmap);
    model_text_free(&m->split_text);
    for (size_t i = 0; i < m->n_own; i++)
        expression_free(m->own[i].expression);
    model_text_free(&m->subword_prefix);
    model_text_free(&m->word_suffix);
    model_text_free(&m->decode_affix);
    free(m->added);
    free(m->merges);
    free(m->tokens);
    free(m->bytes);
    model_init(m);
}

bool model_fail(failure *err, size_t offset, const char *format, ...)
{
    char text[480];
    va_list args;
    va_start(args, format);
    real_print_list(text, sizeof text, format, args);
    va_end(args);
    for (char *c = text; *c; c++) /* names from the file must not break the line */
        *c = (unsigned char)*c < ' ' || *c == 0x7F ? ' ' : *c;
    fail(err, "%s", text);
    err->place = offset;
    return false;
}

bool model_table_failed(failure *err, const char *entries)
{
    if (errno == ENOMEM)
        return fail_memory(err);
    return model_fail(err, 0, "too many %s have the same hash; the file looks malicious", entries);
}

bool model_add_name(name_table *names, model_text name, uint32_t id, const char *what, failure *err)
{
    switch (name_table_add(names, name.s, name.n_bytes, id)) {
    case NAME_ADDED:
        return true;
    case NAME_THERE:
        return model_fail(err, 0, "the %s \"%.*s\" appears twice", what, model_shown(name.n_bytes),
                          name.s);
    case NAME_NO_MEMORY:
        return fail_memory(err);
    default:
        return model_fail(err, 0, "too many names have the same hash; the file looks malicious");
    }
}

bool model_fail_json(failure *err, const char *before, const json_reader *r)
{
    return r->no_memory ? fail_memory(err)
                        : model_fail(err, r->failure_at, "%s%s", before, r->failure);
}

bool model_end_json(bool ok, json_reader *r, failure *err)
{
    if (!ok && r->failure[0])
        model_fail_json(err, "", r);
    json_reader_free(r);
    return ok;
}

bool model_text_set(model_text *text, const void *s, size_t n_bytes)
{
    char *copy = malloc(n_bytes + 1);
    if (!copy)
        return false;
    if (n_bytes > 0)
        memcpy(copy, s, n_bytes);
    copy[n_bytes] = '\0';
    free(text->s);
    text->s = copy;
    text->n_bytes = n_bytes;
    return true;
}

bool model_text_same(const model_text *a, const model_text *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->s, b->s, a->n_bytes) == 0;
}

bool model_text_is(const model_text *text, const char *s)
{
    const model_text other = model_view(s, strlen(s));
    return model_text_same(text, &other);
}

bool model_text_is_character(const model_text *text, uint32_t *character)
{
    return text->n_bytes > 0 &&
           utf8_decode((const uint8_t *)text->s, text->n_bytes, character) == text->n_bytes;
}

/* ---- Tokens ---- */

static bool reserve_tokens(model *m, size_t n_tokens)
{
    if (!array_reserve(&m->tokens, &m->tokens_capacity, n_tokens, sizeof *m->tokens))
        return false;
    for (; m->n_tokens < n_tokens; m->n_tokens++)
        m->tokens[m->n_tokens] = (model_token){.kind = TOKEN_ABSENT};
    return true;
}

bool model_set_token(model *m, const new_token *token, failure *err)
{
    if (token->id >= MODEL_MAX_TOKENS)
        return model_fail(err, 0, "id %u: ids must be below %u", token->id, MODEL_MAX_TOKENS);
    if (token->n_bytes > MODEL_MAX_TOKEN_BYTES)
        return model_fail(err, 0, "the token with id %u has %zu bytes; the limit is %d", token->id,
                          token->n_bytes, MODEL_MAX_TOKEN_BYTES);
    if (token->id < m->n_tokens && m->tokens[token->id].kind != TOKEN_ABSENT)
        return model_fail(err, 0, "two tokens have the id %u", token->id);
    if (token->id >= m->n_tokens && !reserve_tokens(m, (size_t)token->id + 1))
        return fail_memory(err);
    if (!array_reserve(&m->bytes, &m->bytes_capacity, m->n_bytes + token->n_bytes + MODEL_PADDING,
                       1))
        return fail_memory(err);
    if (token->n_bytes > 0)
        memcpy(m->bytes + m->n_bytes, token->bytes, token->n_bytes);
    m->tokens[token->id] = (model_token){.offset = m->n_bytes,
                                         .n_bytes = (uint32_t)token->n_bytes,
                                         .score = token->score,
                                         .kind = (uint8_t)token->kind};
    m->n_bytes += token->n_bytes;
    memset(m->bytes + m->n_bytes, 0, MODEL_PADDING);
    return true;
}

model_text model_token_text(const model *m, uint32_t id, model_byte_name *name)
{
    const uint8_t *bytes = model_token_bytes(m, id);
    if (m->tokens[id].kind != TOKEN_BYTE)
        return model_view(bytes, m->tokens[id].n_bytes);
    snprintf(name->text, sizeof name->text, MODEL_BYTE_NAME, *bytes);
    return model_view(name->text, MODEL_BYTE_NAME_BYTES);
}

void model_byte_ids(const model *m, uint32_t byte_ids[256])
{
    memset(byte_ids, 0xFF, 256 * sizeof *byte_ids);
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        if (m->tokens[id].kind == TOKEN_BYTE && m->tokens[id].n_bytes == 1)
            byte_ids[*model_token_bytes(m, id)] = id;
    }
}

bool model_copy_tokens(model *to, const model *from)
{
    to->tokens = malloc(from->n_tokens * sizeof *to->tokens + 1);
    to->bytes = malloc(from->n_bytes + MODEL_PADDING);
    if (!to->tokens || !to->bytes)
        return false;
    to->n_tokens = to->tokens_capacity = from->n_tokens;
    to->n_bytes = from->n_bytes;
    to->bytes_capacity = from->n_bytes + MODEL_PADDING;
    if (from->n_tokens > 0) {
        memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
        memcpy(to->bytes, from->bytes, to->bytes_capacity);
    }
    return true;
}

/* ---- Merges ---- */

bool model_add_merge(model *m, model_merge merge, failure *err)
{
    if (!array_reserve(&m->merges, &m->merges_capacity, m->n_merges + 1, sizeof *m->merges))
        return fail_memory(err);
    m->merges[m->n_merges++] = merge;
    return true;
}

bool model_keep_last_merges(model *m, failure *err)
{
    name_table pairs = {0};
    name_result seen = NAME_ADDED;
    for (size_t i = m->n_merges; i-- > 0 && (seen == NAME_ADDED || seen == NAME_THERE);) {
        const uint32_t pair[2] = {m->merges[i].left, m->merges[i].right};
        seen = name_table_add(&pairs, pair, sizeof pair, 0);
        if (seen == NAME_THERE)
            m->merges[i].result = MODEL_NO_ID;
    }
    name_table_free(&pairs);
    size_t n = 0;
    for (size_t i = 0; i < m->n_merges; i++) {
        if (m->merges[i].result != MODEL_NO_ID)
            m->merges[n++] = m->merges[i];
    }
    m->n_merges = n;
    if (seen == NAME_CROWDED)
        return model_fail(err, 0, "too many merges have the same hash; the file looks malicious");
    return seen != NAME_NO_MEMORY || fail_memory(err);
}

/* ---- The rest ---- */

bool model_add_added(model *m, const added_token *token, failure *err)
{
    const model_text *text = &token->content;
    if (token->id >= MODEL_MAX_TOKENS)
        return model_fail(err, 0, "added token \"%.*s\" has the id %u: ids must be below %u",
                          model_shown(text->n_bytes), text->s, token->id, MODEL_MAX_TOKENS);
    if (text->n_bytes > MODEL_MAX_TOKEN_BYTES)
        return model_fail(err, 0, "added token \"%.*s\" has %zu bytes; the limit is %d",
                          model_shown(text->n_bytes), text->s, text->n_bytes,
                          MODEL_MAX_TOKEN_BYTES);
    if (!array_reserve(&m->added, &m->added_capacity, m->n_added + 1, sizeof *m->added))
        return fail_memory(err);
    added_token *copy = &m->added[m->n_added];
    *copy = *token;
    copy->content = (model_text){0};
    if (!model_text_set(&copy->content, text->s, text->n_bytes))
        return fail_memory(err);
    m->n_added++;
    return true;
}

bool model_add_special(model *m, uint32_t id, model_text content, failure *err)
{
    if (id < m->n_tokens && m->tokens[id].kind != TOKEN_ABSENT &&
        (m->tokens[id].n_bytes != content.n_bytes ||
         memcmp(model_token_bytes(m, id), content.s, content.n_bytes) != 0))
        return model_fail(err, 0, "special \"%.*s\": another token has the id %u",
                          model_shown(content.n_bytes), content.s, id);
    const added_token token = {.id = id, .content = content, .special = true};
    return model_add_added(m, &token, err);
}

uint32_t model_special_id(const model *m, const char *content)
{
    for (size_t i = 0; content && i < m->n_added; i++) {
        if (m->added[i].special && strcmp(m->added[i].content.s, content) == 0)
            return m->added[i].id;
    }
    return MODEL_NO_ID;
}

normalize_step *model_add_step(model *m, normalize_kind kind, failure *err)
{
    if (m->n_steps == MODEL_MAX_STEPS) {
        model_fail(err, 0, "more than %d normalizers", MODEL_MAX_STEPS);
        return NULL;
    }
    m->steps[m->n_steps] = (normalize_step){.kind = kind};
    return &m->steps[m->n_steps++];
}

bool model_step_marks_blanks(const normalize_step *step)
{
    return step->kind == NORMALIZE_REPLACE && model_text_is(&step->from, " ") &&
           model_text_is(&step->to, MODEL_MARK);
}

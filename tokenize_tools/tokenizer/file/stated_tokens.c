/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/file/stated_tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_reader.h"

#define CONFIG "tokenizer_config.json"
#define GENERATION "generation_config.json"

typedef struct config_reader {
    json_reader json;
    const tokenizer_file *file;
    stated_tokens *tokens;
} config_reader;

static void add_stated(stated_tokens *tokens, uint32_t id, const char *source)
{
    if (id == MODEL_NO_ID || tokens->n == STATED_TOKENS_MAX)
        return;
    for (size_t i = 0; i < tokens->n; i++) {
        if (tokens->list[i].id == id)
            return;
    }
    tokens->list[tokens->n++] = (stated_token){id, source};
}

/* ---- tokenizer_config.json: "eos_token": "</s>", or {"content": "</s>", ...} ---- */

static bool read_content(config_reader *r, const char *key)
{
    json_string content;
    if (!json_read_string(&r->json, &content))
        return false;
    const uint32_t id = tokenizer_find(r->file->tokenizer, content.s, content.n_bytes);
    if (id == MODEL_NO_ID)
        return json_fail(&r->json, "%s is \"%.*s\", and %s has no such token", key,
                         content.n_bytes < 60 ? (int)content.n_bytes : 60, content.s,
                         r->file->name);
    add_stated(r->tokens, id, CONFIG);
    return true;
}

static bool read_token(config_reader *r, const char *key)
{
    json_string field;
    r->tokens->none |= json_peek(&r->json) == JSON_NULL && strcmp(key, "bos_token") == 0;
    if (json_peek(&r->json) == JSON_STRING)
        return read_content(r, key);
    if (json_peek(&r->json) != JSON_OBJECT)
        return json_skip(&r->json);
    if (!json_begin(&r->json, JSON_OBJECT))
        return false;
    while (json_next_key(&r->json, &field)) {
        if (!(json_string_is(field, "content") ? read_content(r, key) : json_skip(&r->json)))
            return false;
    }
    return r->json.failure[0] == '\0';
}

/* ---- generation_config.json: "eos_token_id": 2, or [2, 7] ---- */

static bool read_one_id(config_reader *r, const char *key)
{
    uint64_t id;
    size_t n_bytes;
    if (json_peek(&r->json) != JSON_NUMBER)
        return json_skip(&r->json);
    if (!json_read_uint(&r->json, &id))
        return false;
    if (id >= MODEL_NO_ID || !tokenizer_token_bytes(r->file->tokenizer, (uint32_t)id, &n_bytes))
        return json_fail(&r->json, "%s is %" PRIu64 ", and %s has no such token", key, id,
                         r->file->name);
    add_stated(r->tokens, (uint32_t)id, GENERATION);
    return true;
}

static bool read_ids(config_reader *r, const char *key)
{
    if (json_peek(&r->json) != JSON_ARRAY)
        return read_one_id(r, key);
    if (!json_begin(&r->json, JSON_ARRAY))
        return false;
    while (json_next_item(&r->json)) {
        if (!read_one_id(r, key))
            return false;
    }
    return r->json.failure[0] == '\0';
}

/* ---- Both ---- */

static bool read_beside(stated_tokens *tokens, const char *role, const char *name,
                        const tokenizer_file *file, failure *err)
{
    static const char *const vocabularies[] = {"tokenizer.json", "tokenizer.model", "vocab.json"};
    const bool generation = strcmp(name, GENERATION) == 0;
    whole_file config = {0};
    char key[16];
    json_string field;
    bool read = true;
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        if (read && !config.data)
            read = tokenizer_file_read_beside(file->path, (name_pair){vocabularies[i], name},
                                              &config, err);
    }
    if (!read || !config.data) {
        free(config.data);
        return read;
    }
    tokens->read[tokens->n_read++] = config.facts;
    config_reader r = {.file = file, .tokens = tokens};
    snprintf(key, sizeof key, "%s_token%s", role, generation ? "_id" : "");
    json_reader_init(&r.json, config.data, config.n_bytes);
    bool more = json_begin(&r.json, JSON_OBJECT);
    while (more && json_next_key(&r.json, &field)) {
        if (!json_string_is(field, key))
            more = json_skip(&r.json);
        else
            more = generation ? read_ids(&r, key) : read_token(&r, key);
    }
    if (r.json.failure[0]) {
        read = fail(err, "%s beside %s: byte %zu: %s", name, file->name, r.json.failure_at,
                    r.json.failure);
        err->place = r.json.failure_at;
    }
    json_reader_free(&r.json);
    free(config.data);
    return read;
}

bool stated_tokens_find(stated_tokens *tokens, const char *role, const tokenizer_file *file,
                        failure *err)
{
    const tokenizer_info *t = tokenizer_get_info(file->tokenizer);
    const bool ends = strcmp(role, "eos") == 0;
    *tokens = (stated_tokens){.n = 0};
    if (file->from_file && (!read_beside(tokens, role, CONFIG, file, err) ||
                            !read_beside(tokens, role, GENERATION, file, err)))
        return false;
    if (tokens->none)
        tokens->n = 0;
    else if (!ends)
        add_stated(tokens, t->bos_id, file->name);
    else if (!t->eos_guessed)
        add_stated(tokens, t->eos_id, file->name);
    if (ends && tokens->n == 0) {
        tokens->guessed = t->eos_id != MODEL_NO_ID;
        add_stated(tokens, t->eos_id, file->name);
        add_stated(tokens, t->eos_rival, file->name);
    }
    return true;
}

void stated_tokens_list(const stated_tokens *tokens, const tokenizer_file *file,
                        char list[STATED_TOKENS_LIST_BYTES])
{
    size_t used = 0;
    list[0] = '\0';
    for (size_t i = 0; i < tokens->n && used < STATED_TOKENS_LIST_BYTES; i++) {
        size_t n_bytes;
        const uint8_t *text = tokenizer_token_bytes(file->tokenizer, tokens->list[i].id, &n_bytes);
        const int n = snprintf(list + used, STATED_TOKENS_LIST_BYTES - used, "%s\"%.*s\" (%u, %s)",
                               i == 0               ? ""
                               : i + 1 == tokens->n ? " and "
                                                    : ", ",
                               n_bytes < 40 ? (int)n_bytes : 40, (const char *)text,
                               tokens->list[i].id, tokens->list[i].source);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/number.h"
#include "base/json_reader.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/model/name_table.h"

/* ---- What kind of file it is ---- */

typedef bool loader(model *m, const model_source *source, failure *err);

/* Returns the kind of the value of a key of the object; JSON_NONE: there is no such key. */
static json_kind kind_of(json_reader *r, const char *name)
{
    json_string key;
    r->at = 0;
    r->depth = 0;
    if (!json_begin(r, JSON_OBJECT))
        return JSON_NONE;
    while (json_next_key(r, &key)) {
        if (json_string_is(key, name))
            return json_peek(r);
        if (!json_skip(r))
            break;
    }
    return JSON_NONE;
}

/* A vocabulary may have tokens named "model" and "vocab", so the kinds of the values are checked
 * too. */
static loader *json_loader(const model_source *source, failure *err)
{
    json_reader r;
    loader *found = NULL;
    json_reader_init(&r, source->data, source->n_bytes);
    if (kind_of(&r, "model") == JSON_OBJECT)
        found = load_hf_json;
    else if (kind_of(&r, "config") == JSON_OBJECT && kind_of(&r, "vocab") == JSON_ARRAY)
        found = load_tekken;
    else if (!r.failure[0]) {
        json_string key;
        r.at = 0;
        r.depth = 0;
        if (json_begin(&r, JSON_OBJECT) && json_next_key(&r, &key) && json_peek(&r) == JSON_NUMBER)
            found = load_vocab_merges;
    }
    if (r.failure[0])
        model_fail_json(err, "JSON: ", &r);
    else if (!found)
        model_fail(err, 0, "this is JSON, but not a tokenizer.json, tekken.json or vocab.json");
    const bool failed = r.failure[0] != '\0';
    json_reader_free(&r);
    return failed ? NULL : found;
}

/* Whether the file begins with a line of base64, a space and a digit. */
static bool is_tiktoken(const model_source *source)
{
    size_t i = 0;
    while (i < source->n_bytes &&
           (base64_value((char)source->data[i]) < 64 || source->data[i] == '='))
        i++;
    return i > 0 && i + 1 < source->n_bytes && source->data[i] == ' ' &&
           source->data[i + 1] >= '0' && source->data[i + 1] <= '9';
}

static loader *find_loader(const model_source *source, failure *err)
{
    size_t i = 0;
    while (i < source->n_bytes && strchr(" \t\r\n", source->data[i]) && source->data[i])
        i++;
    if (i < source->n_bytes && source->data[i] == '{')
        return json_loader(source, err);
    if (is_tiktoken(source))
        return load_tiktoken;
    if (source->n_bytes >= 8 && memcmp(source->data, "#version", 8) == 0) {
        model_fail(err, 0, "these are merges; name the vocab.json in the same folder instead");
        return NULL;
    }
    if (source->n_bytes > 0 && source->data[0] == 0x0A) /* the first field of every .model */
        return load_sentencepiece;
    model_fail(
        err, 0, "%s",
        source->n_bytes == 0
            ? "the file is empty"
            : "not a tokenizer.json, tekken.json, vocab.json, .tiktoken or SentencePiece model");
    return NULL;
}

bool model_load(model *m, const model_source *source, failure *err)
{
    loader *load = find_loader(source, err);
    return load && load(m, source, err) && model_finish(m, source, err);
}

/* ---- Specials ---- */

typedef struct specials_reader {
    model *m;
    failure *err;
    name_table contents; /* in the file */
    uint8_t *ids;        /* a bit for each id in the file */
} specials_reader;

/* "content": id or "id": "content" */
static bool read_special(json_reader *r, specials_reader *s, json_string key)
{
    json_string content = key;
    uint64_t id = 0;
    if (json_peek(r) == JSON_NUMBER) {
        if (!json_read_uint(r, &id))
            return false;
    } else if (key.n_bytes > 8 || !number_read_digits(key.s, key.n_bytes, &id)) {
        return json_fail(r, "expected an id as key or value");
    } else if (!json_read_string(r, &content)) {
        return false;
    }
    if (content.n_bytes == 0 || id >= MODEL_MAX_TOKENS)
        return model_fail(s->err, 0, "an empty token, or an id that is too large");
    const model_text text = model_view(content.s, content.n_bytes);
    if (!model_add_name(&s->contents, text, 0, "token", s->err))
        return false;
    s->ids[id / 8] |= (uint8_t)(1 << id % 8);
    return model_add_special(s->m, (uint32_t)id, text, s->err);
}

/* Removes those of the first n_before that the file replaces. */
static void drop_replaced(specials_reader *s, size_t n_before)
{
    model *m = s->m;
    size_t n = 0;
    for (size_t i = 0; i < m->n_added; i++) {
        added_token *a = &m->added[i];
        const bool replaced =
            i < n_before &&
            ((s->ids[a->id / 8] >> a->id % 8 & 1) != 0 ||
             name_table_find(&s->contents, a->content.s, a->content.n_bytes) != NAME_TABLE_NONE);
        if (replaced)
            free(a->content.s);
        else
            m->added[n++] = *a;
    }
    m->n_added = n;
}

static bool read_specials(const model_source *source, model *m, failure *err)
{
    const size_t n_before = m->n_added;
    specials_reader s = {.m = m, .err = err, .ids = calloc(MODEL_MAX_TOKENS / 8, 1)};
    json_reader r;
    json_string key;
    if (!s.ids)
        return fail_memory(err);
    json_reader_init(&r, source->specials, source->specials_bytes);
    bool ok = json_begin(&r, JSON_OBJECT);
    while (ok && json_next_key(&r, &key))
        ok = read_special(&r, &s, key);
    ok = model_end_json(ok && json_end(&r), &r, err);
    if (ok)
        drop_replaced(&s, n_before);
    else if (err->status == FAILURE_CONTENT)
        err->status = FAILURE_BESIDE;
    name_table_free(&s.contents);
    free(s.ids);
    return ok;
}

/* ---- Finishing ---- */

/* A token that is not special may be ordinary text: </s> ends struck-out text in HTML. */
static void guess_eos(model *m)
{
    static const char *const names[] = {"<|endoftext|>",         "<|end_of_text|>", "</s>", "<eos>",
                                        "<｜end▁of▁sentence｜>", "<|im_end|>",      "[EOS]"};
    if (m->eos_id != MODEL_NO_ID)
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const uint32_t id = model_special_id(m, names[i]);
        if (m->eos_id == MODEL_NO_ID)
            m->eos_id = id;
        else if (m->eos_rival == MODEL_NO_ID && id != m->eos_id)
            m->eos_rival = id;
    }
    m->eos_guessed = m->eos_id != MODEL_NO_ID;
}

static bool place_added(model *m, failure *err)
{
    for (size_t i = 0; i < m->n_added; i++) {
        const added_token *a = &m->added[i];
        const new_token token = {a->id, a->content.s, a->content.n_bytes, TOKEN_CONTROL, 0};
        const bool is_free = a->id >= m->n_tokens || m->tokens[a->id].kind == TOKEN_ABSENT;
        if (is_free && !model_set_token(m, &token, err))
            return false;
    }
    return true;
}

static bool check_end(const model *m, uint32_t id, const char *what, failure *err)
{
    if (id == MODEL_NO_ID || (id < m->n_tokens && m->tokens[id].kind != TOKEN_ABSENT))
        return true;
    return model_fail(err, 0, "%s has the id %u, but there is no such token", what, id);
}

bool model_finish(model *m, const model_source *source, failure *err)
{
    if (source->specials && !read_specials(source, m, err))
        return false;
    if (!place_added(m, err))
        return false;
    guess_eos(m);
    return check_end(m, m->bos_id, "the token before a text", err) &&
           check_end(m, m->eos_id, "the token after a text", err);
}

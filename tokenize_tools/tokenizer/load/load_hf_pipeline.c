/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/load_hf_pipeline.h"

#include <stdlib.h>

#include "base/base64.h"
#include "tokenizer/load/hf_json.h"

/* ---- Normalizer ---- */

typedef struct component_context {
    model *m;
    failure *err;
} component_context;

static bool set_text(json_reader *r, model_text *text, json_string s)
{
    return model_text_set(text, s.s, s.n_bytes) || json_no_memory(r);
}

static bool read_prepend(json_reader *r, normalize_step *step)
{
    json_string text = {"", 0};
    json_field fields[] = {{"type", 0}, {"prepend", 0, JSON_STRING, .text = &text}};
    if (!json_read_fields(r, "Prepend", fields, HF_N(fields)))
        return false;
    if (text.n_bytes == 0) /* the normalizers after it would fail in tokenizers */
        return json_fail(r, "normalizer Prepend of an empty text is not supported");
    return set_text(r, &step->to, text);
}

static const struct {
    const char *regex;
    normalize_kind kind;
    char from;
} replace_regexes[] = {{" {2,}", NORMALIZE_REPLACE_RUNS, ' '},
                       {" ", NORMALIZE_REPLACE, ' '},
                       {"\n", NORMALIZE_REPLACE, '\n'},
                       {"\\n", NORMALIZE_REPLACE, '\n'},
                       {"\\s+", NORMALIZE_REPLACE_BLANKS, ' '},
                       {"\\s{2,}|[\\n\\r\\t]", NORMALIZE_REPLACE_LONG_BLANKS, ' '}};

static bool read_replace(json_reader *r, normalize_step *step, failure *err)
{
    json_field fields[] = {
        {"type", 0}, {"pattern", 0, JSON_OBJECT, false}, {"content", 0, JSON_STRING, false}};
    json_string content = {"", 0};
    hf_pattern p;
    if (!json_read_fields(r, "Replace", fields, HF_N(fields)) ||
        !hf_read_pattern(r, &fields[1], "Replace", &p))
        return false;
    if (p.text.n_bytes == 0)
        return model_fail(err, fields[1].at, "normalizer Replace with an empty pattern");
    if (p.regex) {
        size_t i = 0;
        while (i < HF_N(replace_regexes) && !json_string_is(p.text, replace_regexes[i].regex))
            i++;
        if (i == HF_N(replace_regexes))
            return model_fail(err, fields[1].at,
                              "normalizer Replace: the regex %.*s is not supported",
                              hf_shown(p.text), p.text.s);
        step->kind = replace_regexes[i].kind;
        p.text = (json_string){&replace_regexes[i].from, 1};
    }
    return set_text(r, &step->from, p.text) && json_field_string(r, &fields[2], &content) &&
           set_text(r, &step->to, content);
}

static bool read_strip(json_reader *r, normalize_step *step)
{
    json_field fields[] = {{"type", 0},
                           {"strip_left", 0, JSON_TRUE, .flag = &step->left},
                           {"strip_right", 0, JSON_TRUE, .flag = &step->right}};
    return json_read_fields(r, "Strip", fields, HF_N(fields));
}

/* strip_accents null: as lowercase. */
static bool read_bert(json_reader *r, normalize_step *step)
{
    json_field fields[] = {{"type", 0},
                           {"clean_text", 0, JSON_TRUE, .flag = &step->clean_text},
                           {"handle_chinese_chars", 0, JSON_TRUE, .flag = &step->ideographs},
                           {"lowercase", 0, JSON_TRUE, .flag = &step->lowercase},
                           {"strip_accents", .flag = &step->strip_accents}};
    const bool read = json_read_fields(r, "BertNormalizer", fields, HF_N(fields));
    if (!json_field_given(r, &fields[4]))
        step->strip_accents = step->lowercase;
    return read;
}

static bool read_precompiled(json_reader *r, normalize_step *step, failure *err)
{
    json_string text = {"", 0};
    json_field fields[] = {{"type", 0}, {"precompiled_charsmap", 0, JSON_STRING, .text = &text}};
    if (!json_read_fields(r, "Precompiled", fields, HF_N(fields)))
        return false;
    step->to.s = malloc(BASE64_ROOM(text.n_bytes) + 1);
    if (!step->to.s)
        return json_no_memory(r);
    step->to.n_bytes = base64_decode(text.s, text.n_bytes, (uint8_t *)step->to.s);
    if (step->to.n_bytes == BASE64_BAD) {
        step->to.n_bytes = 0;
        return model_fail(err, fields[1].at, "precompiled_charsmap is not base64");
    }
    step->to.s[step->to.n_bytes] = '\0';
    return true;
}

static const char *const normalizer_types[] = {[NORMALIZE_NFC] = "NFC",
                                               [NORMALIZE_NFD] = "NFD",
                                               [NORMALIZE_NFKC] = "NFKC",
                                               [NORMALIZE_NFKD] = "NFKD",
                                               [NORMALIZE_STRIP_ACCENTS] = "StripAccents",
                                               [NORMALIZE_LOWERCASE] = "Lowercase",
                                               [NORMALIZE_NMT] = "Nmt",
                                               [NORMALIZE_BERT] = "BertNormalizer",
                                               [NORMALIZE_PREPEND] = "Prepend",
                                               [NORMALIZE_REPLACE] = "Replace",
                                               [NORMALIZE_STRIP] = "Strip",
                                               [NORMALIZE_CHARSMAP] = "Precompiled"};

static bool read_normalizer(json_reader *r, size_t type, void *context)
{
    const component_context *c = context;
    normalize_step *step = model_add_step(c->m, (normalize_kind)type, c->err);
    if (!step)
        return false;
    switch (step->kind) {
    case NORMALIZE_PREPEND:
        return read_prepend(r, step);
    case NORMALIZE_REPLACE:
        return read_replace(r, step, c->err);
    case NORMALIZE_STRIP:
        return read_strip(r, step);
    case NORMALIZE_CHARSMAP:
        return read_precompiled(r, step, c->err);
    case NORMALIZE_BERT:
        return read_bert(r, step);
    default:
        return hf_read_bare(r, normalizer_types[type]);
    }
}

bool hf_read_normalizer(json_reader *r, model *m, failure *err)
{
    component_context c = {m, err};
    const hf_sequence s = {"normalizer",           "normalizers",   normalizer_types,
                           HF_N(normalizer_types), read_normalizer, &c};
    return hf_read_components(r, &s, err);
}

/* ---- Post-processor ---- */

typedef struct
    template_ends { /* the number of specials before and after the text, and the last of each */
    size_t n_before, n_after;
    model_text before, after;
} template_ends;

/* {"Sequence": {"id": "A"}} or {"SpecialToken": {"id": "<s>"}} */
static bool read_piece(json_reader *r, template_ends *ends, bool *text_seen)
{
    json_field fields[] = {{"Sequence", 0}, {"SpecialToken", 0}};
    json_string id = {"", 0};
    uint64_t type_id;
    json_field parts[] = {{"id", 0, JSON_STRING, .text = &id},
                          {"type_id", 0, JSON_NUMBER, .number = &type_id}};
    if (!json_read_fields(r, "TemplateProcessing", fields, HF_N(fields)))
        return false;
    const bool text = fields[0].at != 0;
    if (text == (fields[1].at != 0))
        return json_fail(r, "TemplateProcessing: expected a Sequence or a SpecialToken");
    const size_t end = r->at;
    r->at = fields[text ? 0 : 1].at;
    if (!json_read_fields(r, "TemplateProcessing", parts, HF_N(parts)))
        return false;
    r->at = end;
    *text_seen |= text;
    if (text)
        return json_string_is(id, "A") || json_string_is(id, "B") ||
               json_fail(r, "TemplateProcessing: the Sequence is not A or B");
    ends->n_before += !*text_seen;
    ends->n_after += *text_seen;
    return set_text(r, *text_seen ? &ends->after : &ends->before, id);
}

/* [piece, ...] */
static bool read_pieces(json_reader *r, const json_field *field, template_ends *ends)
{
    bool text_seen = false, ok = true;
    r->at = field->at;
    ok = json_begin(r, JSON_ARRAY);
    while (ok && json_next_item(r))
        ok = read_piece(r, ends, &text_seen);
    return ok && r->failure[0] == '\0';
}

/* Reads {"id": "<s>", "ids": [1], "tokens": ["<s>"]}; MODEL_NO_ID if there is not exactly one
 * id. */
static bool read_special_id(json_reader *r, uint32_t *id)
{
    json_field fields[] = {{"id", 0, JSON_STRING, false},
                           {"ids", 0, JSON_ARRAY, false},
                           {"tokens", 0, JSON_ARRAY, false}};
    uint64_t value = 0;
    json_string token;
    size_t n = 0;
    if (!json_read_fields(r, "special_tokens", fields, HF_N(fields)))
        return false;
    const size_t end = r->at;
    r->at = fields[1].at;
    if (!json_begin(r, JSON_ARRAY))
        return false;
    for (; json_next_item(r); n++) {
        if (!json_read_uint(r, &value))
            return false;
    }
    r->at = fields[2].at;
    if (!json_begin(r, JSON_ARRAY))
        return false;
    while (json_next_item(r)) {
        if (!json_read_string(r, &token))
            return false;
    }
    r->at = end;
    *id = n == 1 && value < MODEL_MAX_TOKENS ? (uint32_t)value : MODEL_NO_ID;
    return r->failure[0] == '\0';
}

static bool read_template_ids(json_reader *r, const template_ends *ends, model *m)
{
    json_string key;
    if (!json_begin(r, JSON_OBJECT))
        return false;
    while (json_next_key(r, &key)) {
        uint32_t id = MODEL_NO_ID;
        const model_text name = model_view(key.s, key.n_bytes);
        const bool before = ends->n_before == 1 && model_text_same(&ends->before, &name);
        const bool after = ends->n_after == 1 && model_text_same(&ends->after, &name);
        if (!read_special_id(r, &id))
            return false;
        if (before)
            m->bos_id = id;
        if (after)
            m->eos_id = id;
    }
    return r->failure[0] == '\0';
}

static bool read_template(json_reader *r, model *m)
{
    json_field fields[] = {{"type", 0},
                           {"single", 0, JSON_ARRAY, false},
                           {"pair", 0, JSON_ARRAY, false},
                           {"special_tokens", 0, JSON_OBJECT, false}};
    template_ends ends = {0}, pair = {0};
    if (!json_read_fields(r, "TemplateProcessing", fields, HF_N(fields)))
        return false;
    const size_t end = r->at;
    bool ok = read_pieces(r, &fields[1], &ends) && read_pieces(r, &fields[2], &pair);
    r->at = fields[3].at;
    ok = ok && read_template_ids(r, &ends, m);
    r->at = end;
    model_text_free(&pair.before);
    model_text_free(&pair.after);
    model_text_free(&ends.before);
    model_text_free(&ends.after);
    return ok;
}

/* ["</s>", 2] */
static bool read_named_id(json_reader *r, const json_field *field, uint32_t *id)
{
    json_string name;
    uint64_t value = MODEL_NO_ID;
    const size_t at = r->at;
    r->at = field->at;
    const bool ok = json_begin(r, JSON_ARRAY) && json_next_item(r) && json_read_string(r, &name) &&
                    json_next_item(r) && json_read_uint(r, &value);
    if (!ok || json_next_item(r) || r->failure[0])
        return json_fail(r, "expected a token and its id");
    r->at = at;
    *id = value < MODEL_MAX_TOKENS ? (uint32_t)value : MODEL_NO_ID;
    return true;
}

enum {
    POST_TEMPLATE,
    POST_BYTE_LEVEL,
    POST_ROBERTA,
    POST_BERT,
    POST_N
};
static const char *const post_types[POST_N] = {"TemplateProcessing", "ByteLevel",
                                               "RobertaProcessing", "BertProcessing"};

static bool read_post_processor(json_reader *r, size_t type, void *context)
{
    model *m = context;
    const bool roberta = type == POST_ROBERTA;
    bool ignored[2];
    if (type == POST_TEMPLATE)
        return read_template(r, m);
    if (type == POST_BYTE_LEVEL) /* it only trims offsets */
        return hf_read_byte_level(r, &ignored[0], &ignored[1]);
    json_field fields[] = {{"type", 0},
                           {"sep", 0, JSON_ARRAY, false},
                           {"cls", 0, JSON_ARRAY, false},
                           {"trim_offsets", 0, JSON_TRUE, !roberta},
                           {"add_prefix_space", 0, JSON_TRUE, !roberta}};
    return json_read_fields(r, post_types[type], fields, HF_N(fields)) &&
           read_named_id(r, &fields[2], &m->bos_id) && read_named_id(r, &fields[1], &m->eos_id);
}

bool hf_read_post_processor(json_reader *r, model *m, failure *err)
{
    const hf_sequence s = {"post_processor", "processors",        post_types,
                           POST_N,           read_post_processor, m};
    return hf_read_components(r, &s, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/load/hf_json.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/load/load_bytes.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/load/presets.h"

/* Files up to version 7 may leave out the list of specials. */
#define LAST_WITHOUT_SPECIALS 7

typedef struct tekken_file {
    json_reader r;
    model *m;
    failure *err;
    byte_vocabulary words;
    name_table contents; /* of the specials */
    uint64_t version, vocab_size, n_specials;
} tekken_file;

/* ---- config ---- */

/* "v3", "v11" */
static bool parse_version(tekken_file *f, json_string s)
{
    f->version = 0;
    for (size_t i = 1; i < s.n_bytes && i < 6 && s.s[i] >= '0' && s.s[i] <= '9'; i++)
        f->version = f->version * 10 + (uint64_t)(s.s[i] - '0');
    return (s.n_bytes > 1 && s.s[0] == 'v' && f->version > 0) ||
           model_fail(f->err, 0, "config: the version %.*s is not supported", hf_shown(s), s.s);
}

static bool read_config(tekken_file *f, const json_field *config)
{
    json_reader *r = &f->r;
    json_string pattern = {"", 0}, version = {"", 0};
    json_field fields[] = {{"pattern", .text = &pattern},
                           {"num_vocab_tokens", 0},
                           {"default_vocab_size", .number = &f->vocab_size},
                           {"default_num_special_tokens", .number = &f->n_specials},
                           {"version", 0}};
    r->at = config->at;
    if (!json_read_fields(r, "config", fields, HF_N(fields)))
        return false;
    if (split_find_stage(pattern.s, pattern.n_bytes) != STAGE_TEKKEN)
        return model_fail(f->err, fields[0].at, "config: the pattern %.*s is not supported",
                          hf_shown(pattern), pattern.s);
    f->m->split = STAGE_TEKKEN;
    if (!json_field_string(r, &fields[4], &version) || !parse_version(f, version))
        return false;
    return (f->n_specials < f->vocab_size && f->vocab_size <= MODEL_MAX_TOKENS) ||
           model_fail(f->err, config->at,
                      "config: %" PRIu64 " tokens with %" PRIu64 " specials is out of range",
                      f->vocab_size, f->n_specials);
}

/* ---- vocab ---- */

/* The file has more tokens than the model uses. */
static bool read_vocab(tekken_file *f, const json_field *vocab)
{
    const uint64_t n_wanted = f->vocab_size - f->n_specials;
    uint64_t rank = 0;
    f->r.at = vocab->at;
    if (!json_begin(&f->r, JSON_ARRAY))
        return false;
    for (; json_next_item(&f->r); rank++) {
        json_string text = {"", 0};
        uint64_t given = UINT64_MAX;
        json_field fields[] = {
            {"rank", .number = &given}, {"token_bytes", .text = &text}, {"token_str", 0}};
        if (rank >= n_wanted) {
            if (!json_skip(&f->r))
                return false;
            continue;
        }
        if (!json_read_fields(&f->r, "vocab", fields, HF_N(fields)))
            return false;
        if (given != rank)
            return json_fail(&f->r, "vocab: the rank is %" PRIu64 ", expected %" PRIu64, given,
                             rank);
        if (!bytes_add_base64(&f->words, (uint32_t)(f->n_specials + rank), text.s, text.n_bytes))
            return false;
    }
    if (f->r.failure[0])
        return false;
    if (rank < n_wanted)
        return model_fail(f->err, 0, "vocab: %" PRIu64 " tokens, expected %" PRIu64, rank,
                          n_wanted);
    return bytes_check(&f->words);
}

/* ---- special_tokens ---- */

static bool add_special(tekken_file *f, uint64_t id, const char *content, size_t n_bytes)
{
    if (n_bytes == 0 || id >= f->n_specials)
        return model_fail(f->err, 0, "special_tokens: more than %" PRIu64 ", or one without text",
                          f->n_specials);
    const model_text text = model_view(content, n_bytes);
    return model_add_name(&f->contents, text, (uint32_t)id, "special token", f->err) &&
           model_add_special(f->m, (uint32_t)id, text, f->err);
}

static bool read_listed_specials(tekken_file *f, const json_field *list, uint64_t *n)
{
    f->r.at = list->at;
    if (!json_begin(&f->r, JSON_ARRAY))
        return false;
    for (; json_next_item(&f->r); ++*n) {
        json_string text = {"", 0};
        uint64_t given = UINT64_MAX;
        json_field fields[] = {
            {"rank", .number = &given}, {"token_str", .text = &text}, {"is_control", 0}};
        if (!json_read_fields(&f->r, "special_tokens", fields, HF_N(fields)))
            return false;
        if (given != *n)
            return json_fail(&f->r, "special_tokens: the rank is %" PRIu64 ", expected %" PRIu64,
                             given, *n);
        if (!add_special(f, *n, text.s, text.n_bytes))
            return false;
    }
    return f->r.failure[0] == '\0';
}

static bool read_specials(tekken_file *f, const json_field *list)
{
    uint64_t n = 0;
    if (!json_field_given(&f->r, list)) {
        if (f->version > LAST_WITHOUT_SPECIALS)
            return model_fail(f->err, 0,
                              "there are no special_tokens, but version %" PRIu64 " needs them",
                              f->version);
        if (f->n_specials < PRESET_N_TEKKEN)
            return model_fail(f->err, 0, "config: fewer than %d specials", PRESET_N_TEKKEN);
        if (!preset_add_tekken_specials(f->m, f->err))
            return false;
        n = PRESET_N_TEKKEN;
    } else if (!read_listed_specials(f, list, &n)) {
        return false;
    }
    for (; n < f->n_specials; n++) {
        char text[40];
        const int n_bytes = snprintf(text, sizeof text, "<SPECIAL_%" PRIu64 ">", n);
        if (!add_special(f, n, text, (size_t)n_bytes))
            return false;
    }
    return true;
}

/* ---- The file ---- */

/* The parts for images and sound do not concern text. */
static bool read_file(tekken_file *f)
{
    json_field fields[] = {{"config", 0}, {"vocab", 0},      {"special_tokens", 0}, {"version", 0},
                           {"type", 0},   {"multimodal", 0}, {"image", 0},          {"audio", 0}};
    if (!json_read_fields(&f->r, "tekken.json", fields, HF_N(fields)) || !json_end(&f->r))
        return false;
    if (!fields[0].at || !fields[1].at)
        return model_fail(f->err, 0, "tekken.json without config or vocab");
    if (!read_config(f, &fields[0]) || !read_vocab(f, &fields[1]) || !read_specials(f, &fields[2]))
        return false;
    f->m->bos_id = model_special_id(f->m, "<s>");
    f->m->eos_id = model_special_id(f->m, "</s>");
    return true;
}

bool load_tekken(model *m, const model_source *source, failure *err)
{
    tekken_file f = {.m = m, .err = err, .words = {.m = m, .err = err}};
    if (source->pattern && strcmp(source->pattern, PRESET_TEKKEN) != 0)
        return model_fail(err, 0, "--pattern %.60s: a tekken.json has its own pattern",
                          source->pattern);
    json_reader_init(&f.r, source->data, source->n_bytes);
    const bool ok = model_end_json(read_file(&f), &f.r, err);
    name_table_free(&f.contents);
    bytes_free(&f.words);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer/model/byte_alphabet.h"
#include "tokenizer/load/hf_json.h"
#include "tokenizer/load/hf_vocabulary.h"
#include "tokenizer/load/load_hf_pipeline.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/model/name_table.h"
#include "tokenizer/split/text_cursor.h"
#include "base/utf8.h"

typedef struct hf_file {
    json_reader r;
    model *m;
    failure *err;
    name_table names; /* of the vocabulary, as written */
    /* Fields of the model, whichever it is. */
    bool fuse_unk, byte_fallback, ignore_merges;
    uint64_t unk_id, max_characters;
} hf_file;

/* ---- BPE ---- */

enum {
    BPE_TYPE,
    BPE_DROPOUT,
    BPE_UNK_TOKEN,
    BPE_PREFIX,
    BPE_SUFFIX,
    BPE_FUSE_UNK,
    BPE_BYTE_FALLBACK,
    BPE_IGNORE_MERGES,
    BPE_VOCAB,
    BPE_MERGES,
    BPE_UNK_ID,
    BPE_MAX_CHARACTERS,
    BPE_N_FIELDS
};

/* A prefix is not supported. In a byte-level model the suffix, like the names of tokens, stands for
 * bytes. */
static bool read_affixes(hf_file *f, const json_field *fields)
{
    const json_field *prefix = &fields[BPE_PREFIX], *suffix = &fields[BPE_SUFFIX];
    json_string s = {"", 0};
    if (!json_field_string(&f->r, prefix, &s))
        return false;
    if (s.n_bytes > 0)
        return model_fail(f->err, prefix->at, "%s \"%.*s\" is not supported", prefix->name,
                          hf_shown(s), s.s);
    if (!json_field_string(&f->r, suffix, &s))
        return false;
    if (s.n_bytes > 0 && f->m->byte_fallback)
        return model_fail(f->err, suffix->at,
                          "%s \"%.*s\" is not supported together with byte_fallback", suffix->name,
                          hf_shown(s), s.s);
    model_text *own = &f->m->word_suffix;
    if (!model_text_set(own, s.s, s.n_bytes))
        return fail_memory(f->err);
    if (f->m->kind == MODEL_BYTE_BPE)
        own->n_bytes = byte_alphabet_decode(s.s, s.n_bytes, (uint8_t *)own->s);
    return own->n_bytes != SIZE_MAX ||
           model_fail(f->err, 0, "end_of_word_suffix \"%.*s\" is not in the alphabet of ByteLevel",
                      hf_shown(s), s.s);
}

static bool refuse_dropout(hf_file *f, const json_field *field)
{
    double dropout = 0;
    if (!json_field_given(&f->r, field))
        return true;
    f->r.at = field->at;
    if (!json_read_number(&f->r, &dropout))
        return false;
    return dropout == 0 || model_fail(f->err, field->at, "dropout %g is not supported", dropout);
}

static bool is_in_utf8(unsigned byte)
{
    return byte < 0xF5 && byte != 0xC0 && byte != 0xC1;
}

static bool has_byte(const hf_file *f, const uint32_t byte_ids[256], unsigned byte)
{
    const char c = (char)byte;
    return byte_ids[byte] != MODEL_NO_ID || (byte < 0x80 && f->m->kind != MODEL_UNIGRAM &&
                                             name_table_find(&f->names, &c, 1) != NAME_TABLE_NONE);
}

/* If all bytes have tokens no character is unknown, and how tokenizers treats unknown characters
 * between others with byte fallback does not matter. In Unigram a run of unknown characters may
 * hold the text of the unknown token, so characters with tokens need their bytes too. */
static bool check_byte_fallback(const hf_file *f)
{
    uint32_t byte_ids[256];
    model_byte_ids(f->m, byte_ids);
    for (unsigned byte = 0; byte < 256; byte++) {
        if (is_in_utf8(byte) && !has_byte(f, byte_ids, byte))
            return model_fail(f->err, 0,
                              "byte_fallback needs all bytes, but the vocabulary has no <0x%02X>",
                              byte);
    }
    return true;
}

/* Whether all bytes of a character in UTF-8 have tokens <0xNN>. */
static bool falls_back(const hf_file *f, uint32_t code_point)
{
    char name[8];
    uint8_t bytes[4];
    const size_t n = utf8_encode(code_point, bytes);
    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof name, MODEL_BYTE_NAME, bytes[i]);
        if (name_table_find(&f->names, name, MODEL_BYTE_NAME_BYTES) == NAME_TABLE_NONE)
            return false;
    }
    return true;
}

/* Whether the bytes that may occur have tokens, alone or with the suffix, or an unknown one. In
 * byte-level BPE, tokenizers falls back from a character of the alphabet, "\u0120" for a blank,
 * to two tokens, <0xC4> and <0xA0>; usually there are none. */
static bool check_missing_bytes(const hf_file *f, const model_text *suffix, bool names_unknown)
{
    bool found[256] = {false};
    const model *m = f->m;
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const uint8_t *bytes = model_token_bytes(m, id);
        if (m->tokens[id].kind == TOKEN_NORMAL && m->tokens[id].n_bytes == suffix->n_bytes + 1 &&
            (suffix->n_bytes == 0 || memcmp(bytes + 1, suffix->s, suffix->n_bytes) == 0))
            found[*bytes] = true;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        if (found[byte] || !is_in_utf8(byte))
            continue;
        if (f->m->byte_fallback && falls_back(f, byte_char((uint8_t)byte).code_point))
            return model_fail(f->err, 0,
                              "byte_fallback of byte-level BPE (0x%02X) is not supported", byte);
        if (names_unknown && f->m->unknown_id == MODEL_NO_ID)
            return model_fail(f->err, 0,
                              "the vocabulary has neither the byte 0x%02X nor the unk_token", byte);
    }
    return true;
}

static bool read_unknown(hf_file *f, const json_field *field)
{
    json_string name = {NULL, 0};
    if (!json_field_string(&f->r, field, &name))
        return false;
    if (name.s)
        f->m->unknown_id = name_table_find(&f->names, name.s, name.n_bytes);
    /* tokenizers fails at the first unknown character; if all bytes have tokens there is none. */
    if (name.s && f->m->unknown_id == MODEL_NO_ID && f->m->kind == MODEL_CHAR_BPE &&
        !f->m->byte_fallback)
        return model_fail(f->err, field->at, "unk_token \"%.*s\" is not in the vocabulary",
                          hf_shown(name), name.s);
    const model_text *suffix = &f->m->word_suffix;
    return f->m->kind != MODEL_BYTE_BPE ||
           (check_missing_bytes(f, &(model_text){NULL, 0}, name.s != NULL) &&
            (suffix->n_bytes == 0 || check_missing_bytes(f, suffix, name.s != NULL)));
}

static bool read_bpe(hf_file *f, const json_field *fields)
{
    json_reader *r = &f->r;
    f->m->rule = MERGE_LISTED;
    f->m->family = f->m->kind == MODEL_BYTE_BPE ? "byte-level BPE" : "character BPE";
    if (!fields[BPE_MERGES].at)
        return model_fail(f->err, 0, "BPE without merges");
    if (!refuse_dropout(f, &fields[BPE_DROPOUT]))
        return false;
    f->m->fuse_unknown = f->fuse_unk;
    f->m->byte_fallback = f->byte_fallback;
    f->m->whole_word_first = f->ignore_merges;
    /* The text "<0x0A>" would be a word in the vocabulary. */
    if (f->m->byte_fallback && f->m->whole_word_first && f->m->kind != MODEL_BYTE_BPE)
        return model_fail(f->err, fields[BPE_IGNORE_MERGES].at,
                          "ignore_merges together with byte_fallback is not supported");
    if (!read_affixes(f, fields))
        return false;
    r->at = fields[BPE_VOCAB].at;
    if (!hf_read_vocabulary(r, f->m, &f->names, f->err))
        return false;
    r->at = fields[BPE_MERGES].at;
    if (!hf_read_merges(r, f->m, &f->names, f->err) || !read_unknown(f, &fields[BPE_UNK_TOKEN]))
        return false;
    if (f->m->kind == MODEL_BYTE_BPE)
        f->m->byte_fallback = false; /* it never happens */
    return !f->m->byte_fallback || check_byte_fallback(f);
}

/* ---- WordPiece, WordLevel ---- */

static bool read_words(hf_file *f, const json_field *fields, bool wordpiece)
{
    json_reader *r = &f->r;
    json_string prefix = {"", 0};
    f->m->kind = wordpiece ? MODEL_WORDPIECE : MODEL_WORDLEVEL;
    f->m->family = wordpiece ? "WordPiece" : "WordLevel";
    static const int needed[] = {BPE_UNK_TOKEN, BPE_PREFIX, BPE_MAX_CHARACTERS};
    for (size_t i = 0; i < (wordpiece ? HF_N(needed) : 1); i++) {
        if (!json_field_given(r, &fields[needed[i]]))
            return model_fail(f->err, 0, "%s without %s", f->m->family, fields[needed[i]].name);
    }
    if (wordpiece && !json_field_string(r, &fields[BPE_PREFIX], &prefix))
        return false;
    f->m->max_word_characters = f->max_characters;
    if (!model_text_set(&f->m->subword_prefix, prefix.s, prefix.n_bytes))
        return fail_memory(f->err);
    r->at = fields[BPE_VOCAB].at;
    return hf_read_vocabulary(r, f->m, &f->names, f->err) &&
           read_unknown(f, &fields[BPE_UNK_TOKEN]);
}

/* ---- Unigram ---- */

static bool read_piece(hf_file *f, uint32_t id)
{
    json_reader *r = &f->r;
    json_string piece;
    double score;
    if (!json_begin(r, JSON_ARRAY) || !json_next_item(r) || !json_read_string(r, &piece) ||
        !json_next_item(r) || !json_read_number(r, &score) || json_next_item(r) || r->failure[0])
        return json_fail(r, "expected a piece and its score");
    new_token token = {id, piece.s, piece.n_bytes, TOKEN_NORMAL, score};
    if (piece.n_bytes == 0)
        return model_fail(f->err, r->at, "piece %u is empty", id);
    const int value = f->m->byte_fallback ? hf_byte_of_name(piece.s, piece.n_bytes) : -1;
    const uint8_t byte = (uint8_t)value;
    if (value >= 0)
        token = (new_token){id, &byte, 1, TOKEN_BYTE, score};
    return model_set_token(f->m, &token, f->err) &&
           model_add_name(&f->names, model_view(piece.s, piece.n_bytes), id, "token", f->err);
}

static bool read_unigram(hf_file *f, const json_field *fields)
{
    json_reader *r = &f->r;
    f->m->kind = MODEL_UNIGRAM;
    f->m->family = "Unigram";
    f->m->byte_fallback = f->byte_fallback;
    if (!refuse_dropout(f, &fields[BPE_DROPOUT]))
        return false;
    if (json_field_kind(r, &fields[BPE_BYTE_FALLBACK]) == JSON_NULL)
        return json_fail(r, "Unigram: byte_fallback is null");
    r->at = fields[BPE_VOCAB].at;
    if (!json_begin(r, JSON_ARRAY))
        return false;
    uint32_t id = 0;
    while (json_next_item(r)) {
        if (!read_piece(f, id++))
            return false;
    }
    if (r->failure[0])
        return false;
    if (f->unk_id >= f->m->n_tokens)
        return model_fail(f->err, 0, "Unigram needs an unk_id in the vocabulary");
    f->m->unknown_id = (uint32_t)f->unk_id;
    return !f->m->byte_fallback || check_byte_fallback(f);
}

/* Reads the model, and before it the pre_tokenizer: words of bytes are only for BPE. */
static bool read_model(hf_file *f, const json_field *field, const json_field *pre_tokenizer)
{
    json_field fields[BPE_N_FIELDS] = {{"type", 0},
                                       {"dropout", 0},
                                       {"unk_token", 0},
                                       {"continuing_subword_prefix", 0},
                                       {"end_of_word_suffix", 0},
                                       {"fuse_unk", .flag = &f->fuse_unk},
                                       {"byte_fallback", .flag = &f->byte_fallback},
                                       {"ignore_merges", .flag = &f->ignore_merges},
                                       {"vocab", 0},
                                       {"merges", 0},
                                       {"unk_id", .number = &f->unk_id},
                                       {"max_input_chars_per_word", .number = &f->max_characters}};
    char type[HF_TYPE_BYTES];
    f->r.at = field->at;
    if (!hf_read_type(&f->r, type))
        return false;
    const bool wordpiece = strcmp(type, "WordPiece") == 0;
    const bool words = wordpiece || strcmp(type, "WordLevel") == 0;
    if (type[0] && strcmp(type, "BPE") != 0 && strcmp(type, "Unigram") != 0 && !words)
        return model_fail(f->err, f->r.at, "the model %s is not supported", type);
    if (!json_read_fields(&f->r, "model", fields, BPE_N_FIELDS))
        return false;
    const json_kind vocab = json_field_kind(&f->r, &fields[BPE_VOCAB]);
    const bool unigram = strcmp(type, "Unigram") == 0 || (!type[0] && vocab == JSON_ARRAY);
    f->r.at = pre_tokenizer->at;
    if (!hf_read_pre_tokenizer(&f->r, f->m, !words && !unigram, f->err))
        return false;
    if (unigram)
        return vocab == JSON_ARRAY ? read_unigram(f, fields)
                                   : model_fail(f->err, 0, "Unigram without a list of pieces");
    if (words)
        return vocab == JSON_OBJECT ? read_words(f, fields, wordpiece)
                                    : model_fail(f->err, 0, "%s without a vocabulary", type);
    if (!type[0] && !fields[BPE_MERGES].at)
        return model_fail(f->err, 0, "a model without type and without merges is not supported");
    return vocab == JSON_OBJECT ? read_bpe(f, fields)
                                : model_fail(f->err, 0, "BPE without a vocabulary");
}

/* ---- Added tokens ---- */

typedef struct added_reader {
    name_table contents;
    uint32_t next_id; /* of a token that is not in the vocabulary */
} added_reader;

/* tokenizers ignores the ids in the file: a token has its id in the vocabulary, or the next free
 * one after it. A file with other ids would mean different things here and there. */
static bool check_added_id(const hf_file *f, added_reader *a, json_string content, uint64_t id)
{
    uint32_t expected = name_table_find(&f->names, content.s, content.n_bytes);
    const bool own = expected == NAME_TABLE_NONE;
    if (own)
        expected = a->next_id++;
    if (own && expected < f->m->n_tokens && f->m->tokens[expected].kind != TOKEN_ABSENT)
        return model_fail(f->err, 0,
                          "added token \"%.*s\" would get the id %u, which another token has",
                          model_shown(content.n_bytes), content.s, expected);
    return id == expected ||
           model_fail(f->err, 0,
                      "added token \"%.*s\" has the id %" PRIu64 ", but tokenizers gives it %u",
                      model_shown(content.n_bytes), content.s, id, expected);
}

static bool read_added(hf_file *f, added_reader *a)
{
    json_string content = {"", 0};
    added_token token = {0};
    uint64_t id = 0;
    json_field fields[] = {{"id", 0, JSON_NUMBER, .number = &id},
                           {"content", 0, JSON_STRING, .text = &content},
                           {"single_word", 0, JSON_TRUE, .flag = &token.single_word},
                           {"lstrip", 0, JSON_TRUE, .flag = &token.lstrip},
                           {"rstrip", 0, JSON_TRUE, .flag = &token.rstrip},
                           {"normalized", 0, JSON_TRUE, .flag = &token.normalized},
                           {"special", 0, JSON_TRUE, .flag = &token.special}};
    if (!json_read_fields(&f->r, "an added token", fields, HF_N(fields)))
        return false;
    if (content.n_bytes == 0) /* like tokenizers */
        return true;
    token.id = (uint32_t)id;
    token.content = model_view(content.s, content.n_bytes);
    return model_add_name(&a->contents, token.content, 0, "token", f->err) &&
           check_added_id(f, a, content, id) && model_add_added(f->m, &token, f->err);
}

static bool read_added_tokens(hf_file *f)
{
    added_reader a = {.next_id = (uint32_t)f->names.n_used};
    bool ok = json_begin(&f->r, JSON_ARRAY);
    while (ok && json_next_item(&f->r))
        ok = read_added(f, &a);
    name_table_free(&a.contents);
    return ok && f->r.failure[0] == '\0';
}

/* ---- The file ---- */

enum {
    FILE_VERSION,
    FILE_TRUNCATION,
    FILE_PADDING,
    FILE_ADDED_TOKENS,
    FILE_NORMALIZER,
    FILE_PRE_TOKENIZER,
    FILE_POST_PROCESSOR,
    FILE_DECODER,
    FILE_MODEL,
    FILE_N_FIELDS
};

/* Padding to the longest of a batch does not change a single text. */
static bool refuse_padding(hf_file *f, const json_field *field)
{
    json_reader *r = &f->r;
    json_string strategy = {"Fixed", 5}, direction = {"", 0};
    uint64_t multiple = 0, pad;
    json_field fields[] = {{"strategy", 0},
                           {"direction", 0, JSON_STRING, .text = &direction},
                           {"pad_to_multiple_of", .number = &multiple},
                           {"pad_id", 0, JSON_NUMBER, .number = &pad},
                           {"pad_type_id", 0, JSON_NUMBER, .number = &pad},
                           {"pad_token", 0, JSON_STRING, false}};
    if (!json_field_given(r, field))
        return true;
    r->at = field->at;
    if (!json_read_fields(r, "padding", fields, HF_N(fields)))
        return false;
    if (!json_string_is(direction, "Left") && !json_string_is(direction, "Right"))
        return json_fail(r, "padding: the direction is not Left or Right");
    if (json_field_kind(r, &fields[0]) == JSON_STRING &&
        !json_field_string(r, &fields[0], &strategy))
        return false;
    return (json_string_is(strategy, "BatchLongest") && multiple <= 1) ||
           model_fail(f->err, field->at,
                      "padding is supported only to the longest; any other adds tokens");
}

static bool check_head(hf_file *f, const json_field *fields)
{
    json_string version = {"1.0", 3};
    if (!json_field_string(&f->r, &fields[FILE_VERSION], &version))
        return false;
    if (!json_string_is(version, "1.0"))
        return model_fail(f->err, fields[FILE_VERSION].at, "version %.*s is not supported",
                          hf_shown(version), version.s);
    if (json_field_given(&f->r, &fields[FILE_TRUNCATION]))
        return model_fail(f->err, fields[FILE_TRUNCATION].at,
                          "truncation is not supported, because it loses text");
    if (!refuse_padding(f, &fields[FILE_PADDING]))
        return false;
    return fields[FILE_MODEL].at != 0 || model_fail(f->err, 0, "there is no model");
}

static bool read_file(hf_file *f)
{
    json_field fields[FILE_N_FIELDS] = {{"version", 0, JSON_STRING, true},
                                        {"truncation", 0},
                                        {"padding", 0},
                                        {"added_tokens", 0, JSON_ARRAY, true},
                                        {"normalizer", 0},
                                        {"pre_tokenizer", 0},
                                        {"post_processor", 0},
                                        {"decoder", 0},
                                        {"model", 0}};
    if (!json_read_fields(&f->r, "tokenizer.json", fields, FILE_N_FIELDS) || !json_end(&f->r) ||
        !check_head(f, fields))
        return false;
    f->r.at = fields[FILE_NORMALIZER].at;
    if (!hf_read_normalizer(&f->r, f->m, f->err) ||
        !read_model(f, &fields[FILE_MODEL], &fields[FILE_PRE_TOKENIZER]))
        return false;
    f->r.at = fields[FILE_ADDED_TOKENS].at;
    if (f->r.at && !read_added_tokens(f))
        return false;
    hf_drop_absent_split(f->m);
    f->r.at = fields[FILE_DECODER].at;
    if (!hf_read_decoder(&f->r, f->m, f->err))
        return false;
    f->r.at = fields[FILE_POST_PROCESSOR].at;
    return hf_read_post_processor(&f->r, f->m, f->err);
}

bool load_hf_json(model *m, const model_source *source, failure *err)
{
    hf_file f = {.m = m, .err = err, .unk_id = MODEL_NO_ID};
    if (source->pattern)
        return model_fail(err, 0, "--pattern %s: a tokenizer.json has its own pattern",
                          source->pattern);
    json_reader_init(&f.r, source->data, source->n_bytes);
    const bool ok = model_end_json(read_file(&f), &f.r, err);
    name_table_free(&f.names);
    return ok;
}

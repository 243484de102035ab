/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tokenizer/load/hf_vocabulary.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/model/name_table.h"
#include "base/le.h"
#include "base/utf8.h"

/* The limit of sentencepiece. */
#define MAX_PIECE_BYTES 7999

/* ---- Protocol buffers ---- */

typedef struct pb_reader {
    const uint8_t *data; /* the whole file: messages give offsets in it */
    size_t at, end;
    bool damaged;
} pb_reader;

enum {
    PB_VARINT = 0,
    PB_FIXED64 = 1,
    PB_BYTES = 2,
    PB_FIXED32 = 5
};

typedef struct pb_field {
    uint64_t number;
    unsigned wire_type;
    uint64_t value;     /* PB_VARINT, PB_FIXED32 */
    size_t at, n_bytes; /* PB_BYTES: offset in the file, and size */
} pb_field;

static bool pb_damaged(pb_reader *r)
{
    r->damaged = true;
    return false;
}

static bool pb_varint(pb_reader *r, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (r->at == r->end)
            return pb_damaged(r);
        const uint8_t byte = r->data[r->at++];
        if (shift == 63 && byte > 1)
            return pb_damaged(r);
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return pb_damaged(r);
}

static bool pb_take(pb_reader *r, uint64_t n_bytes, pb_field *field)
{
    if (n_bytes > r->end - r->at)
        return pb_damaged(r);
    field->at = r->at;
    field->n_bytes = (size_t)n_bytes;
    r->at += (size_t)n_bytes;
    return true;
}

/* Reads the next field of the message; false: there is none, or the message is damaged. */
static bool pb_next(pb_reader *r, pb_field *field)
{
    uint64_t tag;
    *field = (pb_field){0};
    if (r->damaged || r->at == r->end || !pb_varint(r, &tag))
        return false;
    field->number = tag >> 3;
    field->wire_type = tag & 7;
    if (field->number == 0 || field->number > 0x1FFFFFFF)
        return pb_damaged(r);
    switch (field->wire_type) {
    case PB_VARINT:
        return pb_varint(r, &field->value);
    case PB_FIXED64:
        return pb_take(r, 8, field);
    case PB_BYTES:
        return pb_varint(r, &field->value) && pb_take(r, field->value, field);
    case PB_FIXED32:
        if (!pb_take(r, 4, field))
            return false;
        field->value = le_get32(r->data + field->at);
        return true;
    default:
        return pb_damaged(r);
    }
}

/* A field with a wrong type is damage: a parser would skip it and use a default that nobody
 * intended. */
static bool pb_is(pb_reader *r, const pb_field *field, uint64_t number, unsigned wire_type)
{
    if (field->number != number)
        return false;
    return field->wire_type == wire_type || pb_damaged(r);
}

static pb_reader pb_message(const pb_reader *r, const pb_field *field)
{
    return (pb_reader){r->data, field->at, field->at + field->n_bytes, false};
}

/* ---- The specs ---- */

typedef struct spm_file {
    const uint8_t *data;
    model *m;
    failure *err;
    uint64_t model_type;
    model_text bos_piece, eos_piece; /* not owned; not NUL-terminated */
    /* In Unigram a normal piece may have the name of a reserved one. */
    name_table pieces, reserved;
} spm_file;

static const struct {
    model_kind kind;
    merge_rule rule;
    bool words;
    const char *family;
} kinds_of_models[] = {{MODEL_UNIGRAM, MERGE_SCORED, false, "SentencePiece Unigram"},
                       {MODEL_CHAR_BPE, MERGE_SCORED, false, "SentencePiece BPE"},
                       {MODEL_CHAR_BPE, MERGE_NONE, true, "SentencePiece word"},
                       {MODEL_CHAR_BPE, MERGE_NONE, false, "SentencePiece char"}};

/* After the last field of a message. */
static bool check_end(const spm_file *f, const pb_reader *r)
{
    return !r->damaged || model_fail(f->err, r->at, "damaged, or not a SentencePiece model");
}

static model_text bytes_of(const spm_file *f, const pb_field *field)
{
    return model_view(f->data + field->at, field->n_bytes);
}

/* Replaces each of the known fields, which are given with number and type, by the last one with its
 * number in the message. */
static bool read_fields(const spm_file *f, pb_reader r, pb_field *known, size_t n_known)
{
    pb_field field;
    while (pb_next(&r, &field)) {
        for (size_t i = 0; i < n_known; i++) {
            if (pb_is(&r, &field, known[i].number, known[i].wire_type))
                known[i] = field;
        }
    }
    return check_end(f, &r);
}

static bool read_trainer(spm_file *f, pb_reader r)
{
    pb_field fields[] = {{3, PB_VARINT, .value = f->model_type},
                         {24, PB_VARINT, .value = f->m->whitespace_as_suffix},
                         {35, PB_VARINT, .value = f->m->byte_fallback},
                         {44, PB_BYTES},
                         {46, PB_BYTES},
                         {47, PB_BYTES}};
    if (!read_fields(f, r, fields, sizeof fields / sizeof *fields))
        return false;
    f->model_type = fields[0].value;
    f->m->whitespace_as_suffix = fields[1].value != 0;
    f->m->byte_fallback = fields[2].value != 0;
    f->bos_piece = fields[4].at ? bytes_of(f, &fields[4]) : f->bos_piece;
    f->eos_piece = fields[5].at ? bytes_of(f, &fields[5]) : f->eos_piece;
    const model_text unknown = bytes_of(f, &fields[3]);
    return !fields[3].at || model_text_set(&f->m->decode_affix, unknown.s, unknown.n_bytes) ||
           fail_memory(f->err);
}

static bool read_normalizer(spm_file *f, pb_reader r)
{
    pb_field fields[] = {{2, PB_BYTES},
                         {3, PB_VARINT, .value = f->m->dummy_prefix},
                         {4, PB_VARINT, .value = f->m->collapse_spaces},
                         {5, PB_VARINT, .value = f->m->escape_spaces}};
    if (!read_fields(f, r, fields, sizeof fields / sizeof *fields))
        return false;
    f->m->dummy_prefix = fields[1].value != 0;
    f->m->collapse_spaces = fields[2].value != 0;
    f->m->escape_spaces = fields[3].value != 0;
    const model_text blob = bytes_of(f, &fields[0]);
    return !fields[0].at || model_text_set(&f->m->charsmap, blob.s, blob.n_bytes) ||
           fail_memory(f->err);
}

/* sentencepiece maps the characters of a decoded text by this charsmap. */
static bool read_denormalizer(spm_file *f, pb_reader r)
{
    pb_field fields[] = {{2, PB_BYTES}};
    if (!read_fields(f, r, fields, sizeof fields / sizeof *fields))
        return false;
    if (fields[0].at)
        f->m->decode = fields[0].n_bytes > 0 ? DECODE_UNKNOWN : DECODE_AS_MODEL;
    return true;
}

static bool read_specs(spm_file *f, pb_reader r)
{
    pb_field field;
    while (pb_next(&r, &field)) {
        if (pb_is(&r, &field, 2, PB_BYTES) && !read_trainer(f, pb_message(&r, &field)))
            return false;
        if (pb_is(&r, &field, 3, PB_BYTES) && !read_normalizer(f, pb_message(&r, &field)))
            return false;
        if (pb_is(&r, &field, 5, PB_BYTES) && !read_denormalizer(f, pb_message(&r, &field)))
            return false;
    }
    return check_end(f, &r);
}

/* ---- Pieces ---- */

enum {
    PIECE_NORMAL = 1,
    PIECE_UNKNOWN,
    PIECE_CONTROL,
    PIECE_USER_DEFINED,
    PIECE_UNUSED,
    PIECE_BYTE
};

typedef struct piece {
    uint32_t id;
    model_text text;
    float score;
    uint64_t type;
} piece;

static bool check_piece(const spm_file *f, const piece *p)
{
    const model_text *text = &p->text;
    if (text->n_bytes == 0)
        return model_fail(f->err, 0, "piece %u is empty", p->id);
    if (text->n_bytes > MAX_PIECE_BYTES)
        return model_fail(f->err, 0, "piece %u has %zu bytes; the limit is %d", p->id,
                          text->n_bytes, MAX_PIECE_BYTES);
    if (utf8_valid_prefix((const uint8_t *)text->s, text->n_bytes) < text->n_bytes)
        return model_fail(f->err, 0, "piece %u is not UTF-8", p->id);
    if (memchr(text->s, '\0', text->n_bytes) && !(f->m->byte_fallback && text->n_bytes == 1))
        return model_fail(f->err, 0, "piece %u contains a NUL", p->id);
    if (!isfinite(p->score) && f->m->rule != MERGE_NONE) /* which does not use it */
        return model_fail(f->err, 0, "the score of piece %u is not a number", p->id);
    if (p->type < PIECE_NORMAL || p->type > PIECE_BYTE)
        return model_fail(f->err, 0, "piece %u: the type %" PRIu64 " is not supported", p->id,
                          p->type);
    return true;
}

static bool add_piece(spm_file *f, const piece *p)
{
    static const token_kind kinds[] = {
        [PIECE_NORMAL] = TOKEN_NORMAL,   [PIECE_UNKNOWN] = TOKEN_UNKNOWN,
        [PIECE_CONTROL] = TOKEN_CONTROL, [PIECE_USER_DEFINED] = TOKEN_USER_DEFINED,
        [PIECE_UNUSED] = TOKEN_UNUSED,   [PIECE_BYTE] = TOKEN_BYTE};
    const int value = hf_byte_of_name(p->text.s, p->text.n_bytes);
    const uint8_t byte = (uint8_t)value;
    if (!check_piece(f, p))
        return false;
    new_token token = {p->id, p->text.s, p->text.n_bytes, kinds[p->type], (double)p->score};
    /* sentencepiece ignores a NUL piece beside <0x00>: some converters write one. */
    if (p->text.n_bytes == 1 && p->text.s[0] == '\0') {
        token.kind = TOKEN_CONTROL;
        return model_set_token(f->m, &token, f->err);
    }
    if (p->type == PIECE_BYTE && (value < 0 || !f->m->byte_fallback))
        return model_fail(f->err, 0, "piece %u is a byte, but %s", p->id,
                          value < 0 ? "not written <0xNN>" : "byte_fallback is off");
    if (p->type == PIECE_BYTE) {
        token.bytes = &byte;
        token.n_bytes = 1;
    }
    if (p->type == PIECE_UNKNOWN && f->m->unknown_id != MODEL_NO_ID)
        return model_fail(f->err, 0, "two pieces of type unknown");
    if (p->type == PIECE_UNKNOWN)
        f->m->unknown_id = p->id;
    const bool normal =
        p->type == PIECE_NORMAL || p->type == PIECE_USER_DEFINED || p->type == PIECE_UNUSED;
    name_table *names = normal || f->m->kind == MODEL_CHAR_BPE ? &f->pieces : &f->reserved;
    return model_add_name(names, p->text, p->id, "piece", f->err) &&
           model_set_token(f->m, &token, f->err);
}

static bool read_pieces(spm_file *f, pb_reader r)
{
    pb_field field;
    uint32_t id = 0;
    while (pb_next(&r, &field)) {
        if (!pb_is(&r, &field, 1, PB_BYTES))
            continue;
        pb_field fields[] = {{1, PB_BYTES}, {2, PB_FIXED32}, {3, PB_VARINT, .value = PIECE_NORMAL}};
        if (!read_fields(f, pb_message(&r, &field), fields, sizeof fields / sizeof *fields))
            return false;
        piece p = {.id = id, .text = bytes_of(f, &fields[0]), .type = fields[2].value};
        const uint32_t bits = (uint32_t)fields[1].value;
        memcpy(&p.score, &bits, sizeof p.score);
        if (!add_piece(f, &p))
            return false;
        id++;
    }
    return check_end(f, &r);
}

/* ---- The file ---- */

static uint32_t control_id(const spm_file *f, const model_text *name, const char *otherwise)
{
    const name_table *names = f->m->kind == MODEL_CHAR_BPE ? &f->pieces : &f->reserved;
    const uint32_t id = name->n_bytes ? name_table_find(names, name->s, name->n_bytes)
                                      : name_table_find(names, otherwise, strlen(otherwise));
    return id != NAME_TABLE_NONE && f->m->tokens[id].kind == TOKEN_CONTROL ? id : MODEL_NO_ID;
}

static bool set_kind(spm_file *f)
{
    model *m = f->m;
    if (f->model_type < 1 || f->model_type > sizeof kinds_of_models / sizeof *kinds_of_models)
        return model_fail(f->err, 0, "SentencePiece: the model type %" PRIu64 " is not supported",
                          f->model_type);
    m->kind = kinds_of_models[f->model_type - 1].kind;
    m->rule = kinds_of_models[f->model_type - 1].rule;
    m->whole_word_first = kinds_of_models[f->model_type - 1].words;
    m->family = kinds_of_models[f->model_type - 1].family;
    return model_add_step(m, NORMALIZE_SENTENCEPIECE, f->err) != NULL;
}

static bool check_pieces(const spm_file *f)
{
    if (f->m->n_tokens == 0)
        return model_fail(f->err, 0, "there are no pieces: this is not a SentencePiece model");
    if (f->m->unknown_id == MODEL_NO_ID && !f->m->byte_fallback)
        return model_fail(f->err, 0, "there is no piece for unknown characters");
    uint32_t byte_ids[256];
    model_byte_ids(f->m, byte_ids);
    for (unsigned byte = 0; f->m->byte_fallback && byte < 256; byte++) {
        if (byte_ids[byte] == MODEL_NO_ID)
            return model_fail(
                f->err, 0, "byte_fallback needs all bytes, but there is no piece <0x%02X>", byte);
    }
    return true;
}

bool load_sentencepiece(model *m, const model_source *source, failure *err)
{
    spm_file f = {.data = source->data, .m = m, .err = err, .model_type = 1};
    const pb_reader r = {source->data, 0, source->n_bytes, false};
    if (source->pattern || source->specials)
        return model_fail(err, 0, "a SentencePiece model cannot be used with %s",
                          source->pattern ? "--pattern" : "--specials-file");
    m->dummy_prefix = m->collapse_spaces = m->escape_spaces = true; /* the defaults */
    if (!model_text_set(&m->decode_affix, " \xE2\x81\x87 ", 5))     /* U+2047 */
        return fail_memory(err);
    const bool ok = read_specs(&f, r) && set_kind(&f) && read_pieces(&f, r) && check_pieces(&f);
    if (ok) {
        m->bos_id = control_id(&f, &f.bos_piece, "<s>");
        m->eos_id = control_id(&f, &f.eos_piece, "</s>");
    }
    name_table_free(&f.pieces);
    name_table_free(&f.reserved);
    return ok;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tokenizer/load/hf_json.h"
#include "tokenizer/load/load_hf_pipeline.h"

#define MAX_PARTS 7

/* A decoder as a word, with a letter for each of its parts. */
typedef struct part_word {
    char letters[MAX_PARTS + 1];
    size_t n;
    model *m;
    failure *err;
} part_word;

static const char *const types[] = {"ByteLevel", "Metaspace", "Replace",    "ByteFallback", "Fuse",
                                    "Strip",     "WordPiece", "BPEDecoder", "CTC"};
static const char type_letters[] = "LMRBFSWE?";

/* Only U+2581 by a blank is supported. */
static bool read_replace(json_reader *r, char *letter)
{
    json_field fields[] = {
        {"type", 0}, {"pattern", 0, JSON_OBJECT, false}, {"content", 0, JSON_STRING, false}};
    json_string content = {"", 0};
    hf_pattern p;
    if (!json_read_fields(r, "Replace", fields, HF_N(fields)) ||
        !hf_read_pattern(r, &fields[1], "decoder Replace", &p))
        return false;
    const bool marks = !p.regex && json_string_is(p.text, MODEL_MARK);
    if (!json_field_string(r, &fields[2], &content))
        return false;
    *letter = marks && json_string_is(content, " ") ? 'R' : '?';
    return true;
}

/* Only one blank at the start is supported. */
static bool read_strip(json_reader *r, char *letter)
{
    json_string content = {"", 0};
    uint64_t start = 0, stop = 0;
    uint32_t c;
    json_field fields[] = {{"type", 0},
                           {"content", 0, JSON_STRING, .text = &content},
                           {"start", 0, JSON_NUMBER, .number = &start},
                           {"stop", 0, JSON_NUMBER, .number = &stop}};
    if (!json_read_fields(r, "decoder Strip", fields, HF_N(fields)))
        return false;
    const model_text text = model_view(content.s, content.n_bytes);
    if (!model_text_is_character(&text, &c))
        return json_fail(r, "decoder Strip: the content is not one character");
    *letter = json_string_is(content, " ") && start == 1 && stop == 0 ? 'S' : '?';
    return true;
}

static bool read_wordpiece(json_reader *r, model *m)
{
    json_string prefix = {"##", 2};
    json_field fields[] = {{"type", 0},
                           {"prefix", 0, JSON_STRING, .text = &prefix},
                           {"cleanup", 0, JSON_TRUE, .flag = &m->decode_cleans}};
    return json_read_fields(r, "decoder WordPiece", fields, HF_N(fields)) &&
           (model_text_set(&m->decode_affix, prefix.s, prefix.n_bytes) || json_no_memory(r));
}

static bool read_suffix(json_reader *r, model *m, char *letter)
{
    json_string suffix = {"</w>", 4};
    json_field fields[] = {{"type", 0}, {"suffix", 0, JSON_STRING, .text = &suffix}};
    if (!json_read_fields(r, "BPEDecoder", fields, HF_N(fields)))
        return false;
    if (suffix.n_bytes == 0) /* every place has it */
        *letter = '?';
    return model_text_set(&m->decode_affix, suffix.s, suffix.n_bytes) || json_no_memory(r);
}

static bool read_part(json_reader *r, size_t type, void *context)
{
    part_word *word = context;
    bool ignored[2];
    prepend_scheme prepend = PREPEND_ALWAYS;
    json_field ctc[] = {{"type", 0},
                        {"pad_token", 0, JSON_STRING, false},
                        {"word_delimiter_token", 0, JSON_STRING, false},
                        {"cleanup", 0, JSON_TRUE, false}};
    if (word->n == MAX_PARTS)
        return model_fail(word->err, r->at, "more than %d decoders", MAX_PARTS);
    char *letter = &word->letters[word->n++];
    *letter = type_letters[type];
    switch (*letter) {
    case 'M':
        if (!hf_read_metaspace(r, &prepend, &ignored[0]))
            return false;
        if (prepend == PREPEND_NEVER) /* no blank was put before the text */
            *letter = 'm';
        return true;
    case 'R':
        return read_replace(r, letter);
    case 'S':
        return read_strip(r, letter);
    case 'E':
        return read_suffix(r, word->m, letter);
    case 'W':
        return read_wordpiece(r, word->m);
    case 'L':
        return hf_read_byte_level(r, &ignored[0], &ignored[1]);
    case '?':
        return json_read_fields(r, "CTC", ctc, HF_N(ctc));
    default:
        return hf_read_bare(r, types[type]);
    }
}

bool hf_read_decoder(json_reader *r, model *m, failure *err)
{
    static const struct {
        const char *letters;
        bool bytes, fallback; /* the models that it belongs to */
        decode_rule rule;
        bool strips;
    } rules[] = {
        {"L", true, false, DECODE_BYTES, false},      {"M", false, false, DECODE_METASPACE, true},
        {"m", false, false, DECODE_METASPACE, false}, {"R", false, false, DECODE_MARKS, false},
        {"RF", false, false, DECODE_MARKS, false},    {"RFS", false, false, DECODE_MARKS, true},
        {"RB", false, true, DECODE_MARKS, false},     {"RBF", false, true, DECODE_MARKS, false},
        {"RBFS", false, true, DECODE_MARKS, true},    {"BM", false, true, DECODE_METASPACE, true},
        {"Bm", false, true, DECODE_METASPACE, false}, {"W", false, false, DECODE_WORDPIECE, false},
        {"", false, false, DECODE_BLANKS, false},     {"E", false, false, DECODE_SUFFIX, false},
    };
    part_word word = {.m = m, .err = err};
    const hf_sequence s = {"decoder", "decoders", types, HF_N(types), read_part, &word};
    const bool none =
        r->at == 0 || json_peek(r) == JSON_NULL; /* an empty Sequence is not the same */
    m->decode = DECODE_UNKNOWN;
    if (!hf_read_components(r, &s, err))
        return false;
    for (size_t i = 0; i < HF_N(rules); i++) {
        if (strcmp(word.letters, rules[i].letters) == 0 && none == (word.n == 0) &&
            rules[i].fallback == m->byte_fallback &&
            rules[i].bytes == (m->kind == MODEL_BYTE_BPE)) {
            m->decode = rules[i].rule;
            m->decode_strips = rules[i].strips;
        }
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer/load/hf_json.h"
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/load/load_hf_pipeline.h"

/* ---- Pre-tokenizer: its parts ---- */

typedef enum part_kind {
    PART_BYTE_LEVEL,
    PART_SPLIT,
    PART_METASPACE,
    PART_DIGITS,
    PART_PUNCTUATION,
    PART_WHITESPACE_SPLIT,
    PART_WHITESPACE,
    PART_BERT,
    PART_CHAR_DELIMITER,
    PART_FIXED_LENGTH
} part_kind;

typedef enum behavior {
    BEHAVIOR_NONE, /* the part has none */
    ISOLATED,
    REMOVED,
    CONTIGUOUS,
    MERGED_PREVIOUS,
    MERGED_NEXT
} behavior;
static const char *const behavior_names[] = {[ISOLATED] = "Isolated",
                                             [REMOVED] = "Removed",
                                             [CONTIGUOUS] = "Contiguous",
                                             [MERGED_PREVIOUS] = "MergedWithPrevious",
                                             [MERGED_NEXT] = "MergedWithNext"};

typedef struct part {
    part_kind kind;
    bool prefix_space, use_regex; /* ByteLevel */
    unsigned stage;    /* a known one, or STAGE_OWN and more; STAGE_NONE: there is none */
    behavior behavior; /* Split, Punctuation */
    bool invert;       /* Split */
    bool metaspace_split;
    prepend_scheme prepend;
} part;

#define MAX_PARTS 8

typedef struct part_list {
    part parts[MAX_PARTS];
    size_t n;
    model *m;
    failure *err;
} part_list;

bool hf_read_byte_level(json_reader *r, bool *prefix_space, bool *use_regex)
{
    json_field fields[] = {{"type", 0},
                           {"add_prefix_space", 0, JSON_TRUE, .flag = prefix_space},
                           {"trim_offsets", 0, JSON_TRUE, false},
                           {"use_regex", 0, JSON_TRUE, true, .flag = use_regex}};
    *use_regex = true;
    return json_read_fields(r, "ByteLevel", fields, HF_N(fields));
}

static bool read_behavior(json_reader *r, const json_field *field, part *p)
{
    json_string name = {behavior_names[ISOLATED], strlen(behavior_names[ISOLATED])};
    if (!json_field_string(r, field, &name))
        return false;
    const size_t i = hf_find_word(behavior_names, HF_N(behavior_names), name);
    p->behavior = (behavior)i;
    return i < HF_N(behavior_names) ||
           json_fail(r, "the behavior %.*s is not supported", hf_shown(name), name.s);
}

/* What the part does with a Split of the stage: if every character belongs to a match, inverting
 * does not change Isolated, and an inverted Removed removes nothing. */
static bool is_split_of(const part *p, const split_stage *stage)
{
    if (stage->drops_blanks)
        return p->behavior == REMOVED && p->invert;
    if (stage->join == JOIN_NEXT)
        return p->behavior == MERGED_NEXT && !p->invert;
    return (p->behavior == ISOLATED && (stage->everything || !p->invert)) ||
           (p->behavior == REMOVED && p->invert && stage->everything);
}

/* An expression that no known stage has is a stage of the model's own. */
static bool add_own(part_list *list, part *p, json_string text, expression_dialect dialect)
{
    model *m = list->m;
    static const split_join joins[][2] = {[ISOLATED] = {JOIN_NONE, JOIN_NONE},
                                          [REMOVED] = {JOIN_REMOVED, JOIN_KEPT},
                                          [CONTIGUOUS] = {JOIN_MATCHES, JOIN_MATCHES},
                                          [MERGED_PREVIOUS] = {JOIN_PREVIOUS, JOIN_NEXT},
                                          [MERGED_NEXT] = {JOIN_NEXT, JOIN_PREVIOUS}};
    expression_error why;
    expression *x = expression_new(text.s, text.n_bytes, dialect, &why);
    if (x) {
        p->stage = (unsigned)(STAGE_OWN + m->n_own);
        m->own[m->n_own++] = (split_own){x, joins[p->behavior][p->invert]};
        return true;
    }
    return why.why[0] == 0
               ? fail_memory(list->err)
               : model_fail(list->err, 0,
                            "pre_tokenizer Split: %s in the regex %.*s is not supported", why.why,
                            hf_shown(text), text.s);
}

static bool read_split(json_reader *r, part *p, part_list *list)
{
    json_field fields[] = {{"type", 0},
                           {"pattern", 0, JSON_OBJECT, false},
                           {"behavior", 0, JSON_STRING, false},
                           {"invert", 0, JSON_TRUE, .flag = &p->invert}};
    hf_pattern pattern;
    if (!json_read_fields(r, "Split", fields, HF_N(fields)) || !read_behavior(r, &fields[2], p) ||
        !hf_read_pattern(r, &fields[1], "Split", &pattern))
        return false;
    const size_t n = pattern.text.n_bytes;
    if (n == 0)
        return json_fail(r, "pre_tokenizer Split with an empty pattern");
    const bool is_text = !pattern.regex || json_string_is(pattern.text, " ");
    if (is_text && !model_text_set(&list->m->split_text, pattern.text.s, n))
        return fail_memory(list->err);
    p->stage = is_text ? STAGE_NONE : split_find_stage(pattern.text.s, n);
    if (p->stage && !is_split_of(p, split_stages[p->stage]))
        p->stage = STAGE_NONE;
    return p->stage || add_own(list, p, pattern.text, is_text ? EXPRESSION_TEXT : EXPRESSION_RUBY);
}

bool hf_read_metaspace(json_reader *r, prepend_scheme *prepend, bool *split)
{
    static const char *const schemes[] = {
        [PREPEND_NEVER] = "never", [PREPEND_FIRST] = "first", [PREPEND_ALWAYS] = "always"};
    bool prefix_space = true;
    json_string replacement = {"", 0}, scheme = {"always", 6};
    json_field fields[] = {{"type", 0},
                           {"replacement", 0, JSON_STRING, .text = &replacement},
                           {"add_prefix_space", .flag = &prefix_space},
                           {"prepend_scheme", 0, JSON_STRING, true},
                           {"split", .flag = split},
                           {"str_rep", 0}};
    *split = true;
    if (!json_read_fields(r, "Metaspace", fields, HF_N(fields)))
        return false;
    if (!json_string_is(replacement, MODEL_MARK))
        return json_fail(r, "Metaspace: the replacement is \"%.*s\", not U+2581",
                         hf_shown(replacement), replacement.s);
    if (!json_field_string(r, &fields[3], &scheme))
        return false;
    const size_t i = hf_find_word(schemes, HF_N(schemes), scheme);
    if (i == HF_N(schemes))
        return json_fail(r, "Metaspace: the prepend_scheme %.*s is not supported", hf_shown(scheme),
                         scheme.s);
    *prepend = (prepend_scheme)i;
    if (!prefix_space && *prepend != PREPEND_NEVER) /* tokenizers refuses it too */
        return json_fail(r, "Metaspace: add_prefix_space does not match prepend_scheme");
    return true;
}

static bool read_digits(json_reader *r, part *p)
{
    bool individual = false;
    json_field fields[] = {{"type", 0}, {"individual_digits", 0, JSON_TRUE, .flag = &individual}};
    const bool read = json_read_fields(r, "Digits", fields, HF_N(fields));
    p->stage = individual ? STAGE_EACH_DIGIT : STAGE_DIGITS;
    return read;
}

static bool read_punctuation(json_reader *r, part *p, part_list *list)
{
    static const char each[] = "\\p{HfPunctuation}";
    json_field fields[] = {{"type", 0}, {"behavior", 0, JSON_STRING, true}};
    if (!json_read_fields(r, "Punctuation", fields, HF_N(fields)) ||
        !read_behavior(r, &fields[1], p))
        return false;
    p->stage = p->behavior == ISOLATED ? STAGE_EACH_PUNCTUATION : STAGE_PUNCTUATION;
    return p->behavior == ISOLATED || p->behavior == CONTIGUOUS ||
           add_own(list, p, (json_string){each, strlen(each)}, EXPRESSION_OWN);
}

static bool read_delimiter(json_reader *r, part *p, part_list *list)
{
    json_string delimiter = {"", 0};
    uint32_t code_point;
    json_field fields[] = {{"type", 0}, {"delimiter", 0, JSON_STRING, .text = &delimiter}};
    if (!json_read_fields(r, "CharDelimiterSplit", fields, HF_N(fields)))
        return false;
    const model_text text = model_view(delimiter.s, delimiter.n_bytes);
    if (!model_text_is_character(&text, &code_point))
        return json_fail(r, "CharDelimiterSplit: the delimiter is not one character");
    p->behavior = REMOVED;
    return add_own(list, p, delimiter, EXPRESSION_TEXT);
}

static bool read_length(json_reader *r, part *p, part_list *list)
{
    char text[40];
    uint64_t length = 0;
    json_field fields[] = {{"type", 0}, {"length", 0, JSON_NUMBER, .number = &length}};
    if (!json_read_fields(r, "FixedLength", fields, HF_N(fields)))
        return false;
    p->behavior = ISOLATED;
    const int n = snprintf(text, sizeof text, "(?s:.){1,%" PRIu64 "}", length);
    return add_own(list, p, (json_string){text, (size_t)n}, EXPRESSION_OWN);
}

static const char *const part_names[] = {[PART_BYTE_LEVEL] = "ByteLevel",
                                         [PART_SPLIT] = "Split",
                                         [PART_METASPACE] = "Metaspace",
                                         [PART_DIGITS] = "Digits",
                                         [PART_PUNCTUATION] = "Punctuation",
                                         [PART_WHITESPACE_SPLIT] = "WhitespaceSplit",
                                         [PART_WHITESPACE] = "Whitespace",
                                         [PART_BERT] = "BertPreTokenizer",
                                         [PART_CHAR_DELIMITER] = "CharDelimiterSplit",
                                         [PART_FIXED_LENGTH] = "FixedLength"};

/* The stages of parts that have only a type. */
static const split_stage_id bare_stages[] = {[PART_WHITESPACE] = STAGE_WHITESPACE,
                                             [PART_WHITESPACE_SPLIT] = STAGE_WHITESPACE_SPLIT,
                                             [PART_BERT] = STAGE_BERT};

static bool read_part(json_reader *r, size_t type, void *context)
{
    part_list *list = context;
    if (list->n == MAX_PARTS)
        return model_fail(list->err, r->at, "more than %d pre_tokenizers", MAX_PARTS);
    part *p = &list->parts[list->n++];
    *p = (part){.kind = (part_kind)type};
    switch (p->kind) {
    case PART_BYTE_LEVEL:
        if (!hf_read_byte_level(r, &p->prefix_space, &p->use_regex))
            return false;
        p->stage = p->use_regex && !p->prefix_space ? STAGE_BYTE_LEVEL : STAGE_NONE;
        return true;
    case PART_SPLIT:
        return read_split(r, p, list);
    case PART_METASPACE:
        return hf_read_metaspace(r, &p->prepend, &p->metaspace_split);
    case PART_DIGITS:
        return read_digits(r, p);
    case PART_PUNCTUATION:
        return read_punctuation(r, p, list);
    case PART_CHAR_DELIMITER:
        return read_delimiter(r, p, list);
    case PART_FIXED_LENGTH:
        return read_length(r, p, list);
    default:
        p->stage = bare_stages[type];
        return hf_read_bare(r, part_names[type]);
    }
}

/* ---- Pre-tokenizer: what the parts make together ---- */

/* Every part is a stage. For words of bytes, one of them is a ByteLevel; one without an expression
 * is the last and no stage. After one with an expression, stages see the characters for bytes; if
 * none follows, it is a Split at GPT-2's. SPLIT_UNKNOWN: it is not known. */
static split_pattern find_split(const part *p, size_t n, bool of_bytes)
{
    bool has_byte_level = false;
    split_pattern split = SPLIT_NONE;
    for (size_t i = 0; i < n; i++) {
        const bool bare = p[i].kind == PART_BYTE_LEVEL && !p[i].use_regex && !p[i].prefix_space;
        const bool last = i + 1 == n;
        if (bare && last && of_bytes && !has_byte_level)
            return split;
        split_stage_id id = (split_stage_id)p[i].stage;
        const split_stage *known = id < STAGE_N ? split_stages[id] : NULL;
        const bool drops_blanks = known && known->drops_blanks;
        if (!id || (has_byte_level && (drops_blanks || p[i].kind == PART_BYTE_LEVEL)))
            return SPLIT_UNKNOWN;
        if (id == STAGE_BYTE_LEVEL && last)
            id = STAGE_GPT2;
        split = SPLIT_THEN(split, id, i);
        has_byte_level |= p[i].kind == PART_BYTE_LEVEL;
    }
    return has_byte_level == of_bytes ? split : SPLIT_UNKNOWN;
}

/* The known stages of some parts leave a blank at the start of some words, which is dropped at
 * last. If a later part would see it, or after ByteLevel, they are expressions, which are slower.
 * And a ByteLevel that does not split, but is not the last part, becomes a stage. */
static bool add_stages(part_list *list)
{
    static const char *const expressions[PART_FIXED_LENGTH + 1] = {
        [PART_WHITESPACE] = "\\w+|[^\\w\\s]+",
        [PART_WHITESPACE_SPLIT] = "\\S+",
        [PART_BERT] = "\\p{HfPunctuation}|[^\\s\\p{HfPunctuation}]+"};
    bool seen = false;
    size_t n_before_bytes = 0;
    while (n_before_bytes < list->n && list->parts[n_before_bytes].kind != PART_BYTE_LEVEL)
        n_before_bytes++;
    for (size_t i = list->n; i-- > 0;) {
        part *p = &list->parts[i];
        const char *text = expressions[p->kind];
        if (text && (seen || i > n_before_bytes)) {
            p->behavior = REMOVED;
            p->invert = true;
            if (!add_own(list, p, (json_string){text, strlen(text)}, EXPRESSION_OWN))
                return false;
        }
        const bool last = i + 1 == list->n;
        const bool bare = p->kind == PART_BYTE_LEVEL && !p->use_regex && !p->prefix_space;
        if (bare && !last) { /* it splits nothing, so its expression does not matter */
            if (!add_own(list, p, (json_string){" ", 1}, EXPRESSION_TEXT))
                return false;
            list->m->own[list->m->n_own - 1].join = JOIN_BYTES;
        }
        seen |= p->kind == PART_SPLIT || p->stage >= STAGE_OWN ||
                (p->kind == PART_BYTE_LEVEL && !(bare && last));
    }
    return true;
}

_Static_assert(MAX_PARTS <= SPLIT_MAX_STAGES, "each part may be a stage");

/* Whether the normalizer knows how much of its result comes from the first character of the text
 * (s->n_first of normalize_text): with `all` how much exactly, else whether anything does. */
static bool knows_first(const model *m, bool all)
{
    /* In a form of Unicode, only the beginning is known to come from it. NFD and NFKD put marks in
     * order, so they count if all marks are dropped at once. */
    enum {
        EXACT,
        BUT_MARKS,
        BEGINNING
    } known = EXACT;
    uint32_t from;
    for (size_t i = 0; i < m->n_steps; i++) {
        const normalize_step *s = &m->steps[i];
        switch (s->kind) {
        case NORMALIZE_LOWERCASE:
            break;
        case NORMALIZE_NFD:
        case NORMALIZE_NFKD:
            known = known == EXACT ? BUT_MARKS : BEGINNING;
            break;
        case NORMALIZE_NFC:
        case NORMALIZE_NFKC:
        case NORMALIZE_CHARSMAP:
            known = BEGINNING;
            break;
        case NORMALIZE_STRIP_ACCENTS:
            if (known == BEGINNING)
                return false;
            known = EXACT;
            break;
        default:
            if (known != EXACT && s->kind != NORMALIZE_PREPEND &&
                (s->kind != NORMALIZE_STRIP || s->left) &&
                (s->kind != NORMALIZE_REPLACE || s->to.n_bytes == 0 ||
                 !model_text_is_character(&s->from, &from)))
                return false;
            if (s->kind == NORMALIZE_BERT && s->strip_accents)
                return false;
            known = known == EXACT ? EXACT : BEGINNING;
        }
    }
    return known == EXACT || !all;
}

static split_pattern *add_later(model *m, piece_change change, prepend_scheme prepend)
{
    m->later[m->n_later++] = (piece_step){.change = change, .prepend = prepend};
    return &m->later[m->n_later - 1].split;
}

/* One part after the other, as they are: text of characters, also after a ByteLevel. */
static bool set_parts(model *m, const part_list *list)
{
    split_pattern *split = &m->split;
    unsigned place = 0;
    for (size_t i = 0; i < list->n; i++) {
        const part *p = &list->parts[i];
        const bool metaspace = p->kind == PART_METASPACE;
        if (metaspace && p->prepend == PREPEND_FIRST && !knows_first(m, i > 0))
            return model_fail(list->err, 0,
                              "Metaspace with prepend_scheme first is not supported after a "
                              "normalizer that hides what the text begins with");
        if (metaspace && i + 1 == list->n) {
            m->metaspace = true;
            m->prepend = p->prepend;
            m->metaspace_split = p->metaspace_split;
        } else if (metaspace) {
            split = add_later(m, CHANGE_MARKS, p->prepend);
            *split = p->metaspace_split ? STAGE_MARKS : SPLIT_NONE;
            place = p->metaspace_split;
        } else if (p->kind == PART_BYTE_LEVEL) {
            if (p->prefix_space) {
                split = add_later(m, CHANGE_BLANK, PREPEND_NEVER);
                place = 0;
            }
            if (p->use_regex)
                *split = SPLIT_THEN(*split, STAGE_GPT2, place);
            split = add_later(m, CHANGE_BYTES, PREPEND_NEVER);
            place = 0;
        } else {
            *split = SPLIT_THEN(*split, p->stage, place++);
        }
    }
    return true;
}

/* A ByteLevel with add_prefix_space sees the pieces of the parts before it, and puts a blank before
 * each. false: the words are not of bytes only. */
static bool set_bytes(model *m, const part *p, size_t n)
{
    part rest[MAX_PARTS];
    size_t n_before = 0;
    while (n_before < n && !p[n_before].prefix_space)
        n_before++;
    const bool prefix = n_before < n;
    n_before = prefix ? n_before : 0;
    memcpy(rest, p + n_before, (n - n_before) * sizeof *rest);
    rest[0].prefix_space = false;
    if (prefix && rest[0].use_regex)
        rest[0].stage = STAGE_BYTE_LEVEL;
    const split_pattern before = find_split(p, n_before, false);
    const split_pattern after = find_split(rest, n - n_before, true);
    if (before == SPLIT_UNKNOWN || after == SPLIT_UNKNOWN || split_drops_blanks(before))
        return false;
    m->split = n_before > 0 ? before : after;
    m->prefix_space = prefix && n_before == 0;
    if (n_before > 0)
        *add_later(m, CHANGE_BLANK, PREPEND_NEVER) = after;
    return true;
}

bool hf_read_pre_tokenizer(json_reader *r, model *m, bool of_bytes, failure *err)
{
    part_list list = {.m = m, .err = err};
    const hf_sequence s = {"pre_tokenizer",  "pretokenizers", part_names,
                           HF_N(part_names), read_part,       &list};
    const part *p = list.parts;
    if (!hf_read_components(r, &s, err) || !add_stages(&list))
        return false;
    m->kind = of_bytes && set_bytes(m, p, list.n) ? MODEL_BYTE_BPE : MODEL_CHAR_BPE;
    if (m->kind == MODEL_BYTE_BPE || list.n != 1 || p->invert)
        model_text_free(&m->split_text);
    return m->kind == MODEL_BYTE_BPE || set_parts(m, &list);
}

/* ---- A Split that does nothing ---- */

static bool have_common_byte(const model_text *a, const model_text *b)
{
    for (size_t i = 0; i < a->n_bytes; i++)
        if (memchr(b->s, a->s[i], b->n_bytes))
            return true;
    return false;
}

/* Whether the step may make the text where it was not before: it writes a part of it, or removes
 * what was between its parts. */
static bool may_make(const normalize_step *step, const model_text *text)
{
    switch (step->kind) {
    case NORMALIZE_PREPEND:
        return have_common_byte(&step->to, text);
    case NORMALIZE_REPLACE:
        return have_common_byte(&step->to, text) || (step->to.n_bytes == 0 && text->n_bytes > 1);
    case NORMALIZE_STRIP:
        return false;
    default:
        return true;
    }
}

/* Whether it is an added token that is always found: as a single byte it can only be inside others,
 * and none of these has it. */
static bool is_always_taken(const model *m, const model_text *text)
{
    bool found = false;
    if (text->n_bytes != 1)
        return false;
    for (size_t i = 0; i < m->n_added; i++) {
        const added_token *a = &m->added[i];
        if (!memmem(a->content.s, a->content.n_bytes, text->s, text->n_bytes))
            continue;
        if (!model_text_same(&a->content, text) || a->special || a->normalized || a->single_word)
            return false;
        found = true;
    }
    return found;
}

/* Whether no normalized text between added tokens ever has this text, whatever the input. */
static bool is_absent_text(const model *m, const model_text *text)
{
    bool absent = is_always_taken(m, text);
    for (size_t i = 0; i < m->n_steps; i++) {
        const normalize_step *step = &m->steps[i];
        const bool takes = step->kind == NORMALIZE_REPLACE && model_text_same(&step->from, text);
        absent = (absent || takes) && !may_make(step, text);
    }
    return absent;
}

void hf_drop_absent_split(model *m)
{
    if (m->split_text.n_bytes > 0 && is_absent_text(m, &m->split_text))
        m->split = SPLIT_NONE;
}

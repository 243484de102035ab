/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/normalize/char_map.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/unicode/grapheme.h"
#include "tokenizer/unicode/unicode.h"
#include "base/array.h"
#include "base/utf8.h"

/* Steps that look at one character at a time are one char_map as far as they follow each other. */
typedef struct list_step {
    char_map *map; /* or NULL: */
    normalize_step step;
} list_step;

/* A step of a model makes at most two, and one more is for those before it. */
#define MAX_LIST_STEPS (2 * MODEL_MAX_STEPS + 1)

struct normalizer {
    bool sentencepiece, identity;
    bool finds_first; /* what comes from the first character is counted */
    normal_form form;
    charsmap map; /* sentencepiece's, or NORMALIZE_CHARSMAP */
    /* sentencepiece */
    double_array user; /* user-defined pieces, which stay unchanged */
    bool dummy, collapse, suffix;
    bool fast[256]; /* unchanged before ASCII, and not the start of a user-defined piece */
    bool blank_is_fast, regular; /* regular: so are U+0020 to U+007E */
    /* tokenizer.json */
    list_step steps[MAX_LIST_STEPS];
    size_t n_steps;
};

/* ---- sentencepiece: new ---- */

static bool load_sentencepiece_rules(normalizer *n, const model *m, failure *err)
{
    n->sentencepiece = true;
    n->dummy = m->dummy_prefix && !m->whitespace_as_suffix;
    n->suffix = m->dummy_prefix && m->whitespace_as_suffix;
    n->collapse = m->collapse_spaces;
    n->form.spaces_are_marks = m->escape_spaces;
    if (m->charsmap.n_bytes > 0 && !charsmap_load(&n->map, &m->charsmap, err))
        return false;
    for (unsigned i = 0; i < 128; i++)
        n->fast[i] = n->map.rules.n_units == 0 || n->map.plain[i];
    for (uint32_t id = 0; id < m->n_tokens; id++)
        if (m->tokens[id].kind == TOKEN_USER_DEFINED && m->tokens[id].n_bytes > 0)
            n->fast[*model_token_bytes(m, id)] = false;
    n->user.max_keys = SENTENCEPIECE_USER_MATCHES;
    if (!double_array_of_tokens(&n->user, m, 1u << TOKEN_USER_DEFINED, err))
        return false;
    n->blank_is_fast = n->fast[' '];
    n->fast[' '] &= !n->collapse;
    n->regular = n->blank_is_fast;
    for (unsigned c = 0x21; c < 0x7F; c++)
        n->regular &= n->fast[c];
    n->identity = !n->collapse && !n->suffix && n->map.rules.n_units == 0;
    if (n->identity) {
        n->form.prefix_first = n->dummy;
        n->form.blank_prefix = true;
        n->dummy = false;
    }
    return true;
}

/* ---- sentencepiece: run ---- */

/* *r: the replacement of the beginning of the text. Returns the length of the beginning. */
static size_t normalize_prefix(const normalizer *n, text_span text, replacement *r)
{
    static const uint8_t bad[3] = {0xEF, 0xBF, 0xBD}; /* U+FFFD */
    uint32_t value, c;
    size_t length = 0;
    if (n->user.n_units > 0)
        length = double_array_longest(&n->user, double_array_root(&n->user), text.bytes,
                                      text.n_bytes, &value);
    if (length == 0 && n->map.rules.n_units > 0) {
        length = charsmap_longest(&n->map, text.bytes, text.n_bytes, r);
        if (length > 0)
            return length;
    }
    if (length == 0)
        length = utf8_decode(text.bytes, text.n_bytes, &c);
    *r = (replacement){text.bytes, length};
    if (length == 0) {
        *r = (replacement){bad, sizeof bad};
        length = 1;
    }
    return length;
}

static text_span without_leading_blanks(const normalizer *n, text_span text)
{
    while (text.n_bytes > 0) {
        replacement r;
        const size_t length = normalize_prefix(n, text, &r);
        if (r.n_bytes != 1 || r.bytes[0] != ' ')
            break;
        text.bytes += length;
        text.n_bytes -= length;
    }
    return text;
}

#define BLOCK_BYTES 32

/* The length of a beginning of whole blocks of U+0020 to U+007E, with more of them after a blank
 * than blanks. */
static size_t regular_prefix(text_span text)
{
    size_t n = 0;
    uint8_t odd = 0;
    for (; text.n_bytes - n > BLOCK_BYTES; n += BLOCK_BYTES) {
        const uint8_t *at = text.bytes + n;
        for (size_t i = 0; i < BLOCK_BYTES; i++)
            odd |= (uint8_t)(((uint8_t)(at[i] - 0x20) > 0x5E) |
                             ((at[i] == ' ') & ((uint8_t)(at[i + 1] - 0x21) > 0x5D)));
        if (odd)
            break;
    }
    return n;
}

/* The length of a beginning that can be copied: characters that stay unchanged, with single blanks
 * between. */
static size_t fast_prefix(const normalizer *n, text_span text, bool *after_blank)
{
    const bool before = *after_blank;
    size_t i = n->regular && !(before && text.bytes[0] == ' ') ? regular_prefix(text) : 0;
    if (i > 0)
        *after_blank = n->collapse && text.bytes[i - 1] == ' ';
    for (; i < text.n_bytes; i++) {
        const uint8_t c = text.bytes[i];
        if (n->fast[c])
            *after_blank = false;
        else if (c == ' ' && n->blank_is_fast && !*after_blank && i + 1 < text.n_bytes &&
                 text.bytes[i + 1] < 0x80)
            *after_blank = n->collapse;
        else
            break;
    }
    if (i == 0 || i == text.n_bytes || text.bytes[i] < 0x80)
        return i;
    /* A rule may begin with the last one and continue with a character that is not ASCII. */
    *after_blank = i > 1 ? n->collapse && text.bytes[i - 2] == ' ' : before;
    return i - 1;
}

/* After a blank, further ones are left out. */
static bool append_all(const normalizer *n, text_span text, bool after_blank, text_buffer *out)
{
    while (text.n_bytes > 0) {
        size_t length = fast_prefix(n, text, &after_blank);
        replacement r = {text.bytes, length};
        if (length == 0) {
            length = normalize_prefix(n, text, &r);
            for (; after_blank && r.n_bytes > 0 && r.bytes[0] == ' '; r.n_bytes--)
                r.bytes++;
            if (r.n_bytes > 0)
                after_blank = n->collapse && r.bytes[r.n_bytes - 1] == ' ';
        }
        if (!text_buffer_append(out, r.bytes, r.n_bytes))
            return false;
        text.bytes += length;
        text.n_bytes -= length;
    }
    return true;
}

static void strip_blanks(const normalizer *n, text_buffer *out)
{
    for (;;) {
        const uint8_t *end = out->bytes + out->n_bytes;
        if (out->n_bytes > 0 && end[-1] == ' ')
            out->n_bytes--;
        else if (n->form.spaces_are_marks && out->n_bytes >= MODEL_MARK_BYTES &&
                 model_begins_with_mark(end - MODEL_MARK_BYTES, MODEL_MARK_BYTES))
            out->n_bytes -= MODEL_MARK_BYTES;
        else
            break;
    }
}

static bool normalize_sentencepiece(const normalizer *n, unsigned flags, text_span text,
                                    text_buffer *out)
{
    if (n->collapse)
        text = without_leading_blanks(n, text);
    if (text.n_bytes == 0)
        return true;
    if (n->dummy && (flags & NORMALIZE_FIRST) && !text_buffer_append(out, " ", 1))
        return false;
    if (!append_all(n, text, n->collapse, out))
        return false;
    if (n->collapse)
        strip_blanks(n, out);
    return !(n->suffix && (flags & NORMALIZE_FIRST)) || text_buffer_append(out, " ", 1);
}

/* ---- tokenizer.json: load ---- */

typedef struct step_loader {
    normalizer *n;
    failure *err;
    /* Those that are not in a char_map yet. */
    char_step characters[CHAR_MAP_STEPS];
    size_t n_characters;
    bool ordered;
} step_loader;

static bool flush_characters(step_loader *l)
{
    if (l->n_characters == 0)
        return true;
    char_map *map = char_map_new(l->characters, l->n_characters);
    l->n_characters = 0;
    l->ordered = false;
    l->n->steps[l->n->n_steps++] = (list_step){.map = map};
    return map || fail_memory(l->err);
}

/* What is decomposed after CHAR_ORDER has to be ordered again, which is another char_map. */
static bool add_character(step_loader *l, char_step step)
{
    const bool decomposes = step == CHAR_NFD || step == CHAR_NFKD || step == CHAR_COMPATIBLE;
    if (l->ordered && decomposes && !flush_characters(l))
        return false;
    l->ordered |= step == CHAR_ORDER;
    l->characters[l->n_characters++] = step;
    return true;
}

static bool add_text_step(step_loader *l, const normalize_step *from)
{
    if (!flush_characters(l))
        return false;
    normalize_step *to = &l->n->steps[l->n->n_steps++].step;
    *to = *from;
    to->from = to->to = (model_text){0};
    if (from->kind == NORMALIZE_CHARSMAP)
        return l->n->map.rules.n_units > 0
                   ? model_fail(l->err, 0, "more than one normalizer Precompiled is not supported")
                   : charsmap_load(&l->n->map, &from->to, l->err);
    return (model_text_set(&to->from, from->from.s, from->from.n_bytes) &&
            model_text_set(&to->to, from->to.s, from->to.n_bytes)) ||
           fail_memory(l->err);
}

static bool add_bert(step_loader *l, const normalize_step *step)
{
    return (!step->clean_text || add_character(l, CHAR_CLEAN)) &&
           (!step->ideographs || add_character(l, CHAR_IDEOGRAPHS)) &&
           (!step->strip_accents || (add_character(l, CHAR_NFD) && add_character(l, CHAR_ORDER) &&
                                     add_character(l, CHAR_STRIP_NONSPACING))) &&
           (!step->lowercase || add_character(l, CHAR_LOWERCASE));
}

static bool add_step(step_loader *l, const normalize_step *step)
{
    static const normalize_step nfc = {.kind = NORMALIZE_NFC};
    switch (step->kind) {
    case NORMALIZE_NFD:
        return add_character(l, CHAR_NFD) && add_character(l, CHAR_ORDER);
    case NORMALIZE_NFKD:
        return add_character(l, CHAR_NFKD) && add_character(l, CHAR_ORDER);
    case NORMALIZE_NFKC:
        return add_character(l, CHAR_COMPATIBLE) && add_text_step(l, &nfc);
    case NORMALIZE_STRIP_ACCENTS:
        return add_character(l, CHAR_STRIP_MARKS);
    case NORMALIZE_LOWERCASE:
        return add_character(l, CHAR_LOWERCASE);
    case NORMALIZE_NMT:
        return add_character(l, CHAR_NMT);
    case NORMALIZE_BERT:
        return add_bert(l, step);
    case NORMALIZE_NFC:
    case NORMALIZE_PREPEND:
    case NORMALIZE_REPLACE:
    case NORMALIZE_REPLACE_RUNS:
    case NORMALIZE_REPLACE_BLANKS:
    case NORMALIZE_REPLACE_LONG_BLANKS:
    case NORMALIZE_STRIP:
    case NORMALIZE_CHARSMAP:
    case NORMALIZE_SENTENCEPIECE:
        break;
    }
    return add_text_step(l, step);
}

/* The last steps may be left to the reader of the text: blanks to U+2581, and one U+2581 before the
 * text. Returns how many steps remain here. */
static size_t leave_to_reader(normalizer *n, const model *m, bool all_steps)
{
    bool replaced = m->metaspace && !split_drops_blanks(m->split), prefixed = false;
    size_t n_steps = m->n_steps;
    for (; n_steps > 0 && !all_steps; n_steps--) {
        const normalize_step *s = &m->steps[n_steps - 1];
        if (s->kind == NORMALIZE_PREPEND && model_text_is(&s->to, MODEL_MARK) && !prefixed)
            prefixed = true;
        else if (model_step_marks_blanks(s))
            replaced = true;
        else
            break;
    }
    n->form.spaces_are_marks = n->form.blank_prefix = replaced;
    n->form.prefix_all = prefixed;
    if (m->metaspace && m->split == SPLIT_NONE && !prefixed) {
        n->form.prefix_all = m->prepend == PREPEND_ALWAYS;
        n->form.prefix_first = m->prepend == PREPEND_FIRST;
        n->form.not_twice = true;
    }
    return n_steps;
}

static bool load_steps(normalizer *n, const model *m, bool all_steps, failure *err)
{
    step_loader l = {.n = n, .err = err};
    const size_t n_steps = leave_to_reader(n, m, all_steps);
    n->identity = n_steps == 0;
    for (size_t i = 0; i < n_steps; i++)
        if (!add_step(&l, &m->steps[i]))
            return false;
    return flush_characters(&l);
}

/* ---- tokenizer.json: run ---- */

/* Each step writes the whole text to a new one. false: out of memory. */

/* Returns the end of the run of `what` that begins here. */
static const uint8_t *run_end(const uint8_t *at, const uint8_t *end, const model_text *what)
{
    while ((size_t)(end - at) >= what->n_bytes && memcmp(at, what->s, what->n_bytes) == 0)
        at += what->n_bytes;
    return at;
}

bool normalize_replace(text_span text, model_text from, model_text to, bool runs, text_buffer *out)
{
    const uint8_t *at = text.bytes, *end = at + text.n_bytes, *match;
    while ((match = memmem(at, (size_t)(end - at), from.s, from.n_bytes)) != NULL) {
        const uint8_t *after = runs ? run_end(match, end, &from) : match + from.n_bytes;
        const bool replace = !runs || after > match + from.n_bytes;
        if (!text_buffer_append(out, at, (size_t)((replace ? match : after) - at)) ||
            (replace && !text_buffer_append(out, to.s, to.n_bytes)))
            return false;
        at = after;
    }
    return text_buffer_append(out, at, (size_t)(end - at));
}

bool normalize_marks(text_span text, bool drop, text_buffer *out)
{
    return normalize_replace(text, model_view(MODEL_MARK, MODEL_MARK_BYTES), model_view(" ", !drop),
                             false, out);
}

static size_t blank_at(text_span text, size_t at)
{
    uint32_t c = text.bytes[at];
    const size_t n = c < 0x80 ? 1 : utf8_decode(text.bytes + at, text.n_bytes - at, &c);
    return n > 0 && unicode_class_of(c) == CLASS_SPACE ? n : 0;
}

/* As unicode_blanks_after(), but inlined into the loop below, which is 8 % faster. */
static size_t blanks_end(text_span text, size_t at)
{
    for (size_t n; at < text.n_bytes && (n = blank_at(text, at)) > 0;)
        at += n;
    return at;
}

/* Returns the length of the white space that begins here and that the step replaces, or 0: each run
 * of it, as \s+ does, or each run of two or more, and \n, \r and \t alone, as \s{2,}|[\n\r\t]
 * does. */
static inline size_t match_blanks(const normalize_step *step, text_span text, size_t at)
{
    const uint8_t c = text.bytes[at];
    const size_t n = blank_at(text, at);
    const size_t all = n > 0 ? blanks_end(text, at + n) - at : 0;
    const bool alone = step->kind == NORMALIZE_REPLACE_LONG_BLANKS && all == n && c != '\n' &&
                       c != '\r' && c != '\t';
    return alone ? 0 : all;
}

/* Returns the length of the match of a Replace that begins here, or 0. */
static size_t match_at(const normalize_step *step, text_span text, size_t at)
{
    const uint8_t *here = text.bytes + at, *end = text.bytes + text.n_bytes;
    const model_text *from = &step->from;
    if (step->kind == NORMALIZE_REPLACE || step->kind == NORMALIZE_REPLACE_RUNS) {
        const size_t n = (size_t)(run_end(here, end, from) - here);
        return step->kind == NORMALIZE_REPLACE ? (n > 0 ? from->n_bytes : 0)
                                               : (n > from->n_bytes ? n : 0);
    }
    return match_blanks(step, text, at);
}

/* Replaces white space. */
static bool step_replace_blanks(text_span text, const normalize_step *step, text_buffer *out)
{
    size_t start = 0;
    for (size_t at = 0, length; at<text.n_bytes; at += length> 0 ? length : 1) {
        length = match_blanks(step, text, at);
        if (length == 0)
            continue;
        if (!text_buffer_append(out, text.bytes + start, at - start) ||
            !text_buffer_append(out, step->to.s, step->to.n_bytes))
            return false;
        start = at + length;
    }
    return text_buffer_append(out, text.bytes + start, text.n_bytes - start);
}

static bool append_characters(const charsmap *map, text_span text, text_buffer *out)
{
    for (size_t i = 0; i < text.n_bytes;) {
        uint32_t c;
        const size_t n = utf8_decode(text.bytes + i, text.n_bytes - i, &c);
        const size_t length = n > 0 ? n : 1;
        replacement r = {text.bytes + i, length};
        charsmap_shortest(map, r.bytes, length, &r);
        if (!text_buffer_append(out, r.bytes, r.n_bytes))
            return false;
        i += length;
    }
    return true;
}

/* Returns the length of a beginning that stays unchanged: ASCII characters before ASCII
 * characters. */
static size_t plain_prefix(const charsmap *map, text_span text)
{
    size_t n = map->regular ? regular_prefix(text) : 0;
    while (n < text.n_bytes && text.bytes[n] < 0x80 && text.bytes[n] != '\r' &&
           map->plain[text.bytes[n]])
        n++;
    return n > 0 && n < text.n_bytes && text.bytes[n] >= 0x80 ? n - 1 : n;
}

/* Applies rules to grapheme clusters shorter than six bytes, and to characters. */
static bool step_charsmap(text_span text, const charsmap *map, text_buffer *out)
{
    const size_t longest_cluster = 5;
    while (text.n_bytes > 0) {
        const size_t n_plain = plain_prefix(map, text);
        if (!text_buffer_append(out, text.bytes, n_plain))
            return false;
        text.bytes += n_plain;
        text.n_bytes -= n_plain;
        if (text.n_bytes == 0)
            break;
        const text_span cluster = {text.bytes, grapheme_length(text.bytes, text.n_bytes)};
        const bool whole = cluster.n_bytes <= longest_cluster;
        replacement r;
        const bool mapped = whole && charsmap_shortest(map, cluster.bytes, cluster.n_bytes, &r);
        if (!(mapped ? text_buffer_append(out, r.bytes, r.n_bytes)
                     : append_characters(map, cluster, out)))
            return false;
        text.bytes += cluster.n_bytes;
        text.n_bytes -= cluster.n_bytes;
    }
    return true;
}

/* Text in NFC stays where it is. out is empty. */
static bool step_nfc(text_span *text, nfc_workspace *workspace, text_buffer *out)
{
    const size_t stable = nfc_stable_prefix(text->bytes, text->n_bytes);
    const size_t n_rest = text->n_bytes - stable;
    size_t written = 0;
    if (n_rest == 0)
        return true;
    if (!text_buffer_reserve(out, stable + n_rest * NFC_GROWTH))
        return false;
    memcpy(out->bytes, text->bytes, stable);
    if (!nfc_normalize(workspace, text->bytes + stable, n_rest, out->bytes + stable, &written))
        return false;
    out->n_bytes = stable + written;
    *text = text_buffer_span(out);
    return true;
}

/* Removes the blanks at its ends. */
static text_span step_strip(text_span text, bool left, bool right)
{
    const size_t n = text.n_bytes, from = left ? unicode_blanks_after(text.bytes, n, 0) : 0;
    const size_t end = right ? unicode_blanks_before(text.bytes, from, n) : n;
    return (text_span){text.bytes + from, end - from};
}

/* Leaves *text, or shortens it, or writes the whole text to `out`, which is empty, and sets *text
 * to it. */
static bool run_step(const normalizer *n, const list_step *l, nfc_workspace *nfc, text_span *text,
                     text_buffer *out)
{
    const normalize_step *step = &l->step;
    bool done = true;
    if (l->map) {
        done = char_map_run(l->map, nfc, *text, out);
        *text = text_buffer_span(out);
        return done;
    }
    switch (step->kind) {
    case NORMALIZE_NFC:
        return step_nfc(text, nfc, out);
    case NORMALIZE_STRIP:
        *text = step_strip(*text, step->left, step->right);
        return true;
    case NORMALIZE_PREPEND:
        return text->n_bytes == 0 || text_buffer_prefix(out, step->to.s, step->to.n_bytes, text);
    case NORMALIZE_REPLACE:
    case NORMALIZE_REPLACE_RUNS:
        done = normalize_replace(*text, step->from, step->to, step->kind == NORMALIZE_REPLACE_RUNS,
                                 out);
        break;
    case NORMALIZE_CHARSMAP:
        done = step_charsmap(*text, &n->map, out);
        break;
    case NORMALIZE_REPLACE_BLANKS:
    case NORMALIZE_REPLACE_LONG_BLANKS:
        done = step_replace_blanks(*text, step, out);
        break;
    case NORMALIZE_NFD: /* add_step made characters of these, or keeps them elsewhere */
    case NORMALIZE_NFKC:
    case NORMALIZE_NFKD:
    case NORMALIZE_STRIP_ACCENTS:
    case NORMALIZE_LOWERCASE:
    case NORMALIZE_NMT:
    case NORMALIZE_BERT:
    case NORMALIZE_SENTENCEPIECE:
        return true;
    }
    *text = text_buffer_span(out);
    return done;
}

/* How much of the result comes from the first n_first bytes: the result of a match comes from its
 * last character. */
static size_t replaced_first(const normalize_step *step, text_span text, size_t n_first)
{
    size_t n = 0;
    for (size_t at = 0, length; at<n_first; at += length> 0 ? length : 1) {
        length = match_at(step, text, at);
        if (at + length > n_first)
            break;
        n += length > 0 ? step->to.n_bytes : 1;
    }
    return n;
}

/* Counts s->n_first for the result of a step. Of NFC and a charsmap only the first character is
 * known to come from the first one. */
static bool count_first(const list_step *l, normalize_workspace *s, text_span text)
{
    s->beginning.n_bytes = 0;
    if (l->map) {
        if (!char_map_run(l->map, &s->nfc, (text_span){text.bytes, s->n_first}, &s->beginning))
            return false;
        s->n_first = s->beginning.n_bytes;
        return true;
    }
    size_t n_removed = 0;
    switch (l->step.kind) {
    case NORMALIZE_PREPEND:
        s->n_first += l->step.to.n_bytes;
        break;
    case NORMALIZE_STRIP:
        n_removed = text.n_bytes - step_strip(text, l->step.left, false).n_bytes;
        s->n_first -= s->n_first < n_removed ? s->n_first : n_removed;
        break;
    case NORMALIZE_NFC:
    case NORMALIZE_CHARSMAP:
        s->n_first = 1;
        break;
    default:
        s->n_first = replaced_first(&l->step, text, s->n_first);
    }
    return true;
}

/* Rounds up to whole characters. */
static size_t round_first(text_span text, size_t n_first)
{
    while (n_first < text.n_bytes && n_first > 0 && (text.bytes[n_first] & 0xC0) == 0x80)
        n_first++;
    return n_first < text.n_bytes ? n_first : text.n_bytes;
}

static bool run_steps(const normalizer *n, normalize_workspace *s, text_span *text)
{
    size_t turn = 0;
    for (size_t i = 0; i < n->n_steps; i++) {
        text_buffer *out = &s->texts[turn];
        out->n_bytes = 0;
        s->n_first = round_first(*text, s->n_first);
        if (n->finds_first && s->n_first > 0 && !count_first(&n->steps[i], s, *text))
            return false;
        if (!run_step(n, &n->steps[i], &s->nfc, text, out))
            return false;
        /* The next one must not write where this one has put the text. */
        if (text->bytes == out->bytes)
            turn = !turn;
    }
    s->n_first = round_first(*text, s->n_first);
    return true;
}

/* ---- All ---- */

normalizer *normalizer_new(const model *m, bool all_steps, failure *err)
{
    normalizer *n = calloc(1, sizeof *n);
    bool loaded = false;
    if (!n) {
        fail_memory(err);
    } else if (m->n_steps == 1 && m->steps[0].kind == NORMALIZE_SENTENCEPIECE) {
        loaded = load_sentencepiece_rules(n, m, err);
    } else {
        loaded = load_steps(n, m, all_steps, err);
    }
    for (size_t i = 0; loaded && i < m->n_later; i++)
        n->finds_first |= m->later[i].prepend == PREPEND_FIRST;
    if (loaded) {
        n->finds_first |= m->metaspace && m->prepend == PREPEND_FIRST;
        return n;
    }
    normalizer_free(n);
    return NULL;
}

void normalizer_free(normalizer *n)
{
    if (!n)
        return;
    charsmap_free(&n->map);
    double_array_free(&n->user);
    for (size_t i = 0; i < n->n_steps; i++) {
        char_map_free(n->steps[i].map);
        free(n->steps[i].step.from.s);
        free(n->steps[i].step.to.s);
    }
    free(n);
}

normal_form normalizer_form(const normalizer *n)
{
    return n->form;
}

bool normalize_text(const normalizer *n, normalize_workspace *s, unsigned flags, text_span *span)
{
    uint32_t c;
    const size_t n_first = utf8_decode(span->bytes, span->n_bytes, &c);
    s->n_first = (flags & NORMALIZE_FIRST) == 0 ? 0 : n_first > 0 ? n_first : span->n_bytes > 0;
    for (size_t i = 0; i < 2; i++) {
        const size_t limit = span->n_bytes * NORMALIZE_MAX_GROWTH + NORMALIZE_MORE_BYTES;
        s->texts[i].limit = limit < NORMALIZE_MAX_BYTES ? limit : NORMALIZE_MAX_BYTES;
        s->texts[i].over = false;
    }
    if (!n || n->identity)
        return true;
    s->texts[0].n_bytes = 0;
    if (!(n->sentencepiece ? normalize_sentencepiece(n, flags, *span, &s->texts[0])
                           : run_steps(n, s, span)))
        return false;
    if (n->sentencepiece)
        *span = text_buffer_span(&s->texts[0]);
    normalize_workspace_free_large(s, span->bytes);
    s->texts[0].over = span->n_bytes > NORMALIZE_MAX_BYTES;
    return !s->texts[0].over;
}

bool normalize_too_long(const normalize_workspace *s)
{
    return s->texts[0].over || s->texts[1].over;
}

static bool normalize_content(const normalizer *n, model_text *content, failure *err)
{
    normalize_workspace workspace = {0};
    text_buffer padded = {0};
    bool done = text_buffer_append(&padded, content->s, content->n_bytes);
    text_span span = text_buffer_span(&padded);
    done = done && normalize_text(n, &workspace, 0, &span) &&
           model_text_set(content, span.bytes, span.n_bytes);
    if (!done && normalize_too_long(&workspace))
        model_fail(err, 0, "an added token is too long when normalized");
    else if (!done)
        fail_memory(err);
    text_buffer_free(&padded);
    normalize_workspace_free(&workspace);
    return done;
}

bool normalizer_add_tokens(const normalizer *n, const model *m, model *added, failure *err)
{
    for (size_t i = 0; i < m->n_added; i++) {
        if (!m->added[i].normalized)
            continue;
        if (!model_add_added(added, &m->added[i], err))
            return false;
        model_text *content = &added->added[added->n_added - 1].content;
        if (n && !normalize_content(n, content, err))
            return false;
        if (content->n_bytes == 0)
            return model_fail(err, 0, "an added token is empty when normalized");
    }
    return true;
}

void normalize_workspace_free(normalize_workspace *s)
{
    text_buffer_free(&s->texts[0]);
    text_buffer_free(&s->texts[1]);
    text_buffer_free(&s->beginning);
    nfc_workspace_free(&s->nfc);
}

void normalize_workspace_free_large(normalize_workspace *s, const uint8_t *text)
{
    for (size_t i = 0; i < 2; i++) {
        if (!text || s->texts[i].bytes != text)
            text_buffer_free_large(&s->texts[i]);
    }
    text_buffer_free_large(&s->beginning);
    array_free_large(&s->nfc.code_points, &s->nfc.capacity, sizeof *s->nfc.code_points);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/step_list.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "tokenizer/unicode/grapheme.h"

/* ---- Load ---- */

typedef struct char_steps { /* those that were not added to the list yet */
    char_step steps[CHAR_MAP_STEPS];
    size_t n;
    bool ordered;
} char_steps;

static bool flush_characters(step_list *l, char_steps *c, failure *err)
{
    if (c->n == 0)
        return true;
    char_map *map = char_map_new(c->steps, c->n);
    c->n = 0;
    c->ordered = false;
    l->steps[l->n_steps++] = (list_step){.map = map};
    return map || fail_memory(err);
}

/* What is decomposed after CHAR_ORDER has to be ordered again, which is another char_map. */
static bool add_character(step_list *l, char_steps *c, char_step step, failure *err)
{
    const bool decomposes = step == CHAR_NFD || step == CHAR_NFKD || step == CHAR_COMPATIBLE;
    if (c->ordered && decomposes && !flush_characters(l, c, err))
        return false;
    c->ordered |= step == CHAR_ORDER;
    c->steps[c->n++] = step;
    return true;
}

static bool copy_text(model_text *to, const model_text *from)
{
    return model_text_set(to, from->n_bytes > 0 ? from->s : "", from->n_bytes);
}

static bool add_step(step_list *l, char_steps *c, const normalize_step *from, failure *err)
{
    if (!flush_characters(l, c, err))
        return false;
    normalize_step *to = &l->steps[l->n_steps++].step;
    *to = *from;
    to->from = to->to = (model_text){0};
    switch (from->kind) {
    case NORMALIZE_SENTENCEPIECE:
        return model_fail(err, 0,
                          "sentencepiece's normalizer together with others is not supported");
    case NORMALIZE_CHARSMAP:
        if (l->charsmap.rules.n_units > 0)
            return model_fail(err, 0, "more than one normalizer Precompiled is not supported");
        return charsmap_load(&l->charsmap, &from->to, err);
    case NORMALIZE_REPLACE:
    case NORMALIZE_REPLACE_RUNS:
        if (from->from.n_bytes == 0)
            return model_fail(err, 0, "normalizer Replace with an empty pattern");
        break;
    default:
        break;
    }
    return (copy_text(&to->from, &from->from) && copy_text(&to->to, &from->to)) || fail_memory(err);
}

static bool add_model_step(step_list *l, char_steps *c, const normalize_step *step, failure *err)
{
    static const normalize_step nfc = {.kind = NORMALIZE_NFC};
    char_step steps[6]; /* at most those of BertNormalizer */
    size_t n = 0;
    switch (step->kind) {
    case NORMALIZE_NFD:
    case NORMALIZE_NFKD:
        steps[n++] = step->kind == NORMALIZE_NFD ? CHAR_NFD : CHAR_NFKD;
        steps[n++] = CHAR_ORDER;
        break;
    case NORMALIZE_NFKC:
        steps[n++] = CHAR_COMPATIBLE;
        break;
    case NORMALIZE_STRIP_ACCENTS:
        steps[n++] = CHAR_STRIP_MARKS;
        break;
    case NORMALIZE_LOWERCASE:
        steps[n++] = CHAR_LOWERCASE;
        break;
    case NORMALIZE_NMT:
        steps[n++] = CHAR_NMT;
        break;
    case NORMALIZE_BERT:
        if (step->clean_text)
            steps[n++] = CHAR_CLEAN;
        if (step->ideographs)
            steps[n++] = CHAR_IDEOGRAPHS;
        if (step->strip_accents) {
            steps[n++] = CHAR_NFD;
            steps[n++] = CHAR_ORDER;
            steps[n++] = CHAR_STRIP_NONSPACING;
        }
        if (step->lowercase)
            steps[n++] = CHAR_LOWERCASE;
        break;
    default:
        return add_step(l, c, step, err);
    }
    for (size_t i = 0; i < n; i++)
        if (!add_character(l, c, steps[i], err))
            return false;
    return step->kind != NORMALIZE_NFKC || add_step(l, c, &nfc, err);
}

bool step_list_load(step_list *l, const model *m, size_t n_steps, failure *err)
{
    char_steps characters = {.n = 0};
    for (size_t i = 0; i < n_steps; i++)
        if (!add_model_step(l, &characters, &m->steps[i], err))
            return false;
    return flush_characters(l, &characters, err);
}

void step_list_free(step_list *l)
{
    charsmap_free(&l->charsmap);
    for (size_t i = 0; i < l->n_steps; i++) {
        char_map_free(l->steps[i].map);
        free(l->steps[i].step.from.s);
        free(l->steps[i].step.to.s);
    }
    *l = (step_list){0};
}

/* Each step writes the whole text to a new one. false: out of memory. */

/* ---- Replace ---- */

/* The end of the run of `what` that begins here. */
static const uint8_t *run_end(const uint8_t *at, const uint8_t *end, const model_text *what)
{
    while ((size_t)(end - at) >= what->n_bytes && memcmp(at, what->s, what->n_bytes) == 0)
        at += what->n_bytes;
    return at;
}

/* Replaces each `from`, from left to right, by `to`; or each run of two or more by one `to`. */
static bool step_replace(text_span text, const normalize_step *step, text_buffer *out)
{
    const bool runs = step->kind == NORMALIZE_REPLACE_RUNS;
    const model_text *from = &step->from, *to = &step->to;
    const uint8_t *at = text.bytes, *end = at + text.n_bytes, *match;
    while ((match = memmem(at, (size_t)(end - at), from->s, from->n_bytes)) != NULL) {
        const uint8_t *after = runs ? run_end(match, end, from) : match + from->n_bytes;
        const bool replace = !runs || after > match + from->n_bytes;
        if (!text_buffer_append(out, at, (size_t)((replace ? match : after) - at)) ||
            (replace && !text_buffer_append(out, to->s, to->n_bytes)))
            return false;
        at = after;
    }
    return text_buffer_append(out, at, (size_t)(end - at));
}

/* ---- White space ---- */

static size_t blank_at(text_span text, size_t at)
{
    uint32_t c;
    const size_t n = utf8_decode(text.bytes + at, text.n_bytes - at, &c);
    return n > 0 && unicode_class_of(c) == CLASS_SPACE ? n : 0;
}

/* The end of the white space that begins here. */
static size_t blanks_end(text_span text, size_t at)
{
    for (size_t n; at < text.n_bytes && (n = blank_at(text, at)) > 0;)
        at += n;
    return at;
}

/* Replaces white space by `to`: each run of it, as \s+ does, or with long_only each run of two or
 * more, and \n, \r and \t alone, as \s{2,}|[\n\r\t] does. */
static bool step_replace_blanks(text_span text, bool long_only, const model_text *to,
                                text_buffer *out)
{
    size_t start = 0;
    for (size_t at = 0; at < text.n_bytes;) {
        const uint8_t c = text.bytes[at];
        const size_t n = blank_at(text, at);
        const size_t end = n > 0 ? blanks_end(text, at + n) : at;
        if (n == 0 || (long_only && end == at + n && c != '\n' && c != '\r' && c != '\t')) {
            at += n > 0 ? n : 1;
            continue;
        }
        if (!text_buffer_append(out, text.bytes + start, at - start) ||
            !text_buffer_append(out, to->s, to->n_bytes))
            return false;
        start = at = end;
    }
    return text_buffer_append(out, text.bytes + start, text.n_bytes - start);
}

/* ---- Precompiled ---- */

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

/* The length of a beginning that stays unchanged: ASCII characters before ASCII characters. */
static size_t plain_prefix(const charsmap *map, text_span text)
{
    size_t n = 0;
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

/* ---- NFC ---- */

/* Text in NFC stays where it is. out is empty. */
static bool step_nfc(text_span *text, nfc_scratch *scratch, text_buffer *out)
{
    const size_t stable = nfc_stable_prefix(text->bytes, text->n_bytes);
    const size_t n_rest = text->n_bytes - stable;
    size_t written = 0;
    if (n_rest == 0)
        return true;
    if (!text_buffer_reserve(out, stable + n_rest * NFC_GROWTH))
        return false;
    memcpy(out->bytes, text->bytes, stable);
    if (!nfc_normalize(scratch, text->bytes + stable, n_rest, out->bytes + stable, &written))
        return false;
    out->n_bytes = stable + written;
    *text = text_buffer_span(out);
    return true;
}

/* ---- Strip ---- */

/* Removes the blanks at its ends. */
static text_span step_strip(text_span text, bool left, bool right)
{
    for (size_t n; left && text.n_bytes > 0 && (n = blank_at(text, 0)) > 0;) {
        text.bytes += n;
        text.n_bytes -= n;
    }
    uint32_t c;
    for (size_t n; right && (n = utf8_decode_last(text.bytes, text.n_bytes, &c)) > 0;) {
        if (unicode_class_of(c) != CLASS_SPACE)
            break;
        text.n_bytes -= n;
    }
    return text;
}

/* ---- Run ---- */

/* Leaves *text, or writes the whole text to `out`, which is empty, and sets *text to it. */
static bool run_step(const step_list *l, const normalize_step *step, nfc_scratch *nfc,
                     text_span *text, text_buffer *out)
{
    bool done = true;
    switch (step->kind) {
    case NORMALIZE_PREPEND:
        done = (text->n_bytes == 0 || text_buffer_append(out, step->to.s, step->to.n_bytes)) &&
               text_buffer_append(out, text->bytes, text->n_bytes);
        break;
    case NORMALIZE_REPLACE:
    case NORMALIZE_REPLACE_RUNS:
        done = step_replace(*text, step, out);
        break;
    case NORMALIZE_REPLACE_BLANKS:
    case NORMALIZE_REPLACE_LONG_BLANKS:
        done =
            step_replace_blanks(*text, step->kind == NORMALIZE_REPLACE_LONG_BLANKS, &step->to, out);
        break;
    case NORMALIZE_CHARSMAP:
        done = step_charsmap(*text, &l->charsmap, out);
        break;
    default:
        return step_nfc(text, nfc, out);
    }
    *text = text_buffer_span(out);
    return done;
}

bool step_list_run(const step_list *l, list_scratch *s, bool goes_on, text_span *text)
{
    size_t turn = 0;
    for (size_t i = 0; i < l->n_steps; i++) {
        const normalize_step *step = &l->steps[i].step;
        const char_map *map = l->steps[i].map;
        text_buffer *out = &s->texts[turn];
        out->n_bytes = 0;
        if (map) {
            if (!char_map_run(map, &s->nfc, *text, out))
                return false;
            *text = text_buffer_span(out);
        } else if (step->kind == NORMALIZE_STRIP) {
            *text = step_strip(*text, step->left && !goes_on, step->right);
        } else if (step->kind != NORMALIZE_PREPEND || !goes_on) {
            if (!run_step(l, step, &s->nfc, text, out))
                return false;
        }
        /* The next one must not write where this one has put the text. */
        if (text->bytes == out->bytes)
            turn = !turn;
    }
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/step_list.h"

#include <stdlib.h>

#include "tokenizer/normalize/normalize_steps.h"

/* ---- Load ---- */

typedef struct char_steps { /* those that were not added to the list yet */
    char_step steps[CHAR_MAP_STEPS];
    size_t n;
    bool ordered;
} char_steps;

static bool flush_characters(step_list *l, char_steps *c, model_error *err)
{
    if (c->n == 0)
        return true;
    char_map *map = char_map_new(c->steps, c->n);
    c->n = 0;
    c->ordered = false;
    l->steps[l->n_steps++] = (list_step){.map = map};
    return map || model_no_memory(err);
}

/* What is decomposed after CHAR_ORDER has to be ordered again, which is another char_map. */
static bool add_character(step_list *l, char_steps *c, char_step step, model_error *err)
{
    const bool decomposes = step == CHAR_NFD || step == CHAR_NFKD || step == CHAR_COMPATIBLE;
    if (c->ordered && decomposes && !flush_characters(l, c, err))
        return false;
    c->ordered |= step == CHAR_ORDER;
    c->steps[c->n++] = step;
    return true;
}

static bool add_bert(step_list *l, char_steps *c, const normalize_step *step, model_error *err)
{
    if ((step->clean_text && !add_character(l, c, CHAR_CLEAN, err)) ||
        (step->ideographs && !add_character(l, c, CHAR_IDEOGRAPHS, err)))
        return false;
    if (step->strip_accents &&
        (!add_character(l, c, CHAR_NFD, err) || !add_character(l, c, CHAR_ORDER, err) ||
         !add_character(l, c, CHAR_STRIP_NONSPACING, err)))
        return false;
    return !step->lowercase || add_character(l, c, CHAR_LOWERCASE, err);
}

static bool copy_text(model_text *to, const model_text *from)
{
    return model_text_set(to, from->n_bytes > 0 ? from->s : "", from->n_bytes);
}

static bool add_step(step_list *l, char_steps *c, const normalize_step *from, model_error *err)
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
    return (copy_text(&to->from, &from->from) && copy_text(&to->to, &from->to)) ||
           model_no_memory(err);
}

static bool add_model_step(step_list *l, char_steps *c, const normalize_step *step,
                           model_error *err)
{
    static const normalize_step nfc = {.kind = NORMALIZE_NFC};
    switch (step->kind) {
    case NORMALIZE_NFD:
        return add_character(l, c, CHAR_NFD, err) && add_character(l, c, CHAR_ORDER, err);
    case NORMALIZE_NFKD:
        return add_character(l, c, CHAR_NFKD, err) && add_character(l, c, CHAR_ORDER, err);
    case NORMALIZE_NFKC:
        return add_character(l, c, CHAR_COMPATIBLE, err) && add_step(l, c, &nfc, err);
    case NORMALIZE_STRIP_ACCENTS:
        return add_character(l, c, CHAR_STRIP_MARKS, err);
    case NORMALIZE_LOWERCASE:
        return add_character(l, c, CHAR_LOWERCASE, err);
    case NORMALIZE_NMT:
        return add_character(l, c, CHAR_NMT, err);
    case NORMALIZE_BERT:
        return add_bert(l, c, step, err);
    default:
        return add_step(l, c, step, err);
    }
}

bool step_list_load(step_list *l, const model *m, size_t n_steps, model_error *err)
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
        done = step_replace(*text, &step->from, &step->to, out);
        break;
    case NORMALIZE_REPLACE_RUNS:
        done = step_replace_runs(*text, &step->from, &step->to, out);
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

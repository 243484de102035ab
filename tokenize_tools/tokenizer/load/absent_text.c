/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/absent_text.h"

#include <string.h>

static bool same_text(const model_text *a, const model_text *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->s, b->s, a->n_bytes) == 0;
}

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

static bool has_text(const model_text *in, const model_text *text)
{
    for (size_t i = 0; i + text->n_bytes <= in->n_bytes; i++)
        if (memcmp(in->s + i, text->s, text->n_bytes) == 0)
            return true;
    return false;
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
        if (!has_text(&a->content, text))
            continue;
        if (!same_text(&a->content, text) || a->special || a->normalized || a->single_word)
            return false;
        found = true;
    }
    return found;
}

bool is_absent_text(const model *m, const model_text *text)
{
    bool absent = is_always_taken(m, text);
    for (size_t i = 0; i < m->n_steps; i++) {
        const normalize_step *step = &m->steps[i];
        const bool takes = step->kind == NORMALIZE_REPLACE && same_text(&step->from, text);
        absent = (absent || takes) && !may_make(step, text);
    }
    return absent;
}

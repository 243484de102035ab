/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/marked_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/json_reader.h"
#include "base/le.h"
#include "base/base.h"
#include "base/utf8.h"
#include "formats/role_names.h"

#define LABEL_NONE (-100) /* as PyTorch's ignore_index */

static reader_result bad_list(marked_text *m, document *d, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static reader_result bad_list(marked_text *m, document *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(m->reason, sizeof m->reason, format, args);
    va_end(args);
    d->reason = m->reason;
    d->bad_offset = d->offset;
    return READER_BAD;
}

/* ---- Tokens ---- */

typedef enum element {
    ELEMENT_END,
    ELEMENT_NUMBER,
    ELEMENT_OTHER /* no whole number of at most 10 digits */
} element;

typedef struct list_cursor {
    bool has_truth;          /* true and false are 1 and 0 */
    bool is_stored;          /* numbers of 64 bits, up to the end; else JSON: */
    const uint8_t *at, *end; /* at the first bracket, or at what follows an element */
} list_cursor;

/* Takes the next element of the list. */
static element next_element(list_cursor *list, int64_t *value)
{
    const uint8_t *p = list->at;
    if (list->is_stored) {
        if (p == list->end)
            return ELEMENT_END;
        memcpy(value, p, sizeof *value);
        list->at += sizeof *value;
        return *value == STORED_LIST_NULL ? ELEMENT_OTHER : ELEMENT_NUMBER;
    }
    if (*p != ']')
        p++;
    while (json_is_space(*p))
        p++;
    if (*p == ']')
        return ELEMENT_END;
    const bool negative = *p == '-', truth = *p == 't';
    const uint8_t *const digits = p += negative;
    *value = truth;
    if (list->has_truth && (truth || *p == 'f')) {
        p += truth ? 4 : 5;
    } else {
        for (; *p >= '0' && *p <= '9' && p < digits + 11; p++)
            *value = *value * 10 + (*p - '0');
        if (p == digits || p == digits + 11)
            return ELEMENT_OTHER;
    }
    *value = negative ? -*value : *value;
    while (json_is_space(*p))
        p++;
    list->at = p;
    return *p == ',' || *p == ']' ? ELEMENT_NUMBER : ELEMENT_OTHER;
}

static list_cursor marks_of(const document *d, bool has_truth)
{
    const uint8_t *bytes = (const uint8_t *)d->marks.text;
    return (list_cursor){has_truth, d->is_stored, bytes,
                         bytes ? bytes + d->marks.text_bytes : NULL};
}

/* What one element of the list of marks says of its token. NULL, or what is wrong. */
static const char *read_mark(corpus_marks marks, int64_t mark, int64_t id, bool *counts)
{
    if (marks == MARKS_LABELS) {
        *counts = mark != LABEL_NONE;
        return mark == id || !*counts ? NULL : "neither the id of its token nor -100";
    }
    *counts = mark == 1;
    return mark == 0 || mark == 1 ? NULL : "neither 1 nor 0";
}

static reader_result read_tokens(marked_text *m, const reader_options *o, document *d)
{
    const char *name = o->marks ? o->fields->names[o->fields->n_fields - 1] : NULL;
    list_cursor tokens = {false, d->is_stored, d->text, d->text + d->n_bytes};
    list_cursor masks = marks_of(d, o->marks == MARKS_LOSS_MASK);
    size_t n = 0;
    if (o->marks && d->marks.type != TOKMAP_VALUE_STRING)
        return bad_list(m, d, "the field is missing or not a list: \"%.100s\"", name);
    for (;; n++) {
        int64_t id, mark = 1;
        bool counts = true;
        const element found = next_element(&tokens, &id);
        const element marked = o->marks ? next_element(&masks, &mark) : found;
        if (found == ELEMENT_OTHER || (found == ELEMENT_NUMBER && (id < 0 || id >= MARKED_TOKEN)))
            return bad_list(m, d, "element %zu of the list is not a token id", n);
        if (found == ELEMENT_NUMBER && o->vocab_size > 0 && (uint64_t)id >= o->vocab_size)
            return bad_list(m, d,
                            "element %zu of the list is %" PRId64
                            ", but the vocabulary has %" PRIu64 " ids",
                            n, id, o->vocab_size);
        if ((found == ELEMENT_END) != (marked == ELEMENT_END))
            return bad_list(m, d, "%.100s is %s than the list of tokens, which has %zu%s", name,
                            found ? "shorter" : "longer", n, found ? " or more" : "");
        if (found == ELEMENT_END)
            break;
        const char *wrong = marked == ELEMENT_OTHER ? "not a whole number"
                            : o->marks              ? read_mark(o->marks, mark, id, &counts)
                                                    : NULL;
        if (wrong)
            return bad_list(m, d, "element %zu of %.100s is %s", n, name, wrong);
        le_put(m->bytes + 4 * n, (uint32_t)id | (counts ? 0 : MARKED_TOKEN), 4);
    }
    m->n_bytes = 4 * n;
    return READER_DOCUMENT;
}

/* ---- Parts ---- */

/* role: from 1; 0: it has none. */
static bool add_part(marked_text *m, const char *s, size_t n_bytes, bool train, uint32_t role)
{
    const size_t begin = m->n_bytes;
    memcpy(m->bytes + begin, s, n_bytes);
    m->n_bytes += n_bytes;
    if ((!train && role == 0) || n_bytes == 0)
        return true;
    if (!array_reserve(&m->ranges, &m->ranges_capacity, m->n_ranges + 1, sizeof *m->ranges))
        return false;
    m->ranges[m->n_ranges++] =
        (text_range){begin, m->n_bytes, (train ? 0 : MARKED_TOKEN) | role << MARKED_ROLE_SHIFT};
    return true;
}

static reader_result read_stored_parts(marked_text *m, document *d, failure *err)
{
    list_cursor texts = {false, true, d->text, d->text + d->n_bytes};
    list_cursor trains = marks_of(d, false);
    for (size_t n = 0;; n++) {
        int64_t n_bytes, train;
        const element found = next_element(&texts, &n_bytes), mark = next_element(&trains, &train);
        if ((found == ELEMENT_END) != (mark == ELEMENT_END))
            return bad_list(m, d, "damaged: a part has only one of text and train");
        if (found == ELEMENT_END)
            return READER_DOCUMENT;
        if (found == ELEMENT_OTHER || mark == ELEMENT_OTHER)
            return bad_list(m, d, "element %zu of the list of parts: a part without %s", n,
                            found == ELEMENT_OTHER ? "text" : "train");
        if (utf8_valid_prefix(texts.at, (size_t)n_bytes) < (size_t)n_bytes)
            return bad_list(m, d, "element %zu of the list of parts: not valid UTF-8", n);
        if (!add_part(m, (const char *)texts.at, (size_t)n_bytes, train, 0))
            return (reader_result)fail_memory(err);
        texts.at += n_bytes;
    }
}

static reader_result read_parts(marked_text *m, const char *roles, document *d, failure *err)
{
    json_reader r;
    json_reader_init(&r, d->text, d->n_bytes);
    json_begin(&r, JSON_ARRAY);
    bool has_memory = true;
    while (has_memory && json_next_item(&r)) {
        bool train = false;
        json_string name = {NULL, 0}, part = {"", 0};
        json_field fields[] = {
            {"text", .kind = JSON_STRING},
            {"train", .kind = JSON_TRUE, .flag = &train},
            {"role", .kind = JSON_NONE},
        };
        if (!json_read_fields(&r, "a part", fields, sizeof fields / sizeof *fields) ||
            (json_field_given(&r, &fields[2]) && !json_field_string(&r, &fields[2], &name)))
            break;
        const int role = name.s ? role_names_find(roles ? roles : "", name.s, name.n_bytes) + 1 : 0;
        if (name.s && role == 0) {
            const reader_result result =
                bad_list(m, d, "a part has the role '%.*s', which --roles does not name",
                         (int)MIN(name.n_bytes, 64), name.s);
            json_reader_free(&r);
            return result;
        }
        if (!json_field_string(&r, &fields[0], &part)) /* ends the life of `name` */
            break;
        has_memory = add_part(m, part.s, part.n_bytes, train, (uint32_t)role);
    }
    const bool failed = *r.failure;
    const reader_result result =
        !failed && has_memory ? READER_DOCUMENT
        : r.no_memory || !has_memory
            ? (reader_result)fail_memory(err)
            : bad_list(m, d, "byte %zu of the list of parts: %.100s", r.failure_at, r.failure);
    json_reader_free(&r);
    return result;
}

reader_result marked_text_read(marked_text *m, const reader_options *options, document *d,
                               failure *err)
{
    /* A token takes two bytes of JSON at least, or 8 of a number; a part takes more than its text.
     */
    if (!array_reserve(&m->bytes, &m->capacity, 2 * d->n_bytes + 1, 1))
        return fail_memory(err);
    m->n_bytes = m->n_ranges = 0;
    if (options->roles && d->is_stored)
        return bad_list(m, d, "--roles works only with JSON lines");
    const reader_result result = options->list == LIST_TOKENS ? read_tokens(m, options, d)
                                 : d->is_stored               ? read_stored_parts(m, d, err)
                                                : read_parts(m, options->roles, d, err);
    d->text = m->bytes;
    d->n_bytes = m->n_bytes;
    d->ranges = m->ranges;
    d->n_ranges = m->n_ranges;
    return result;
}

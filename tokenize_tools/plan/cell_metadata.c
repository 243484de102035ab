/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cell_metadata.h"

#include <inttypes.h>
#include <string.h>

#include "system/memory_file.h"

static const char counts_begin[] = ", \"counts\": {", plan_begin[] = ", \"plan\": {\"hash\": \"",
                  cell_begin[] = "\", \"cell\": ", bad_begin[] = ", \"bad_xxh3\": \"";
#define LENGTH(text) (sizeof(text) - 1)
#define HASH_DIGITS 16

/* ---- Print ---- */

void cell_metadata_print_plan(FILE *out, const cell_metadata *m)
{
    fprintf(out, "%s%016" PRIx64 "%s%" PRIu64, plan_begin, m->hash, cell_begin, m->cell);
    if (m->bad_xxh3)
        fprintf(out, "%s%016" PRIx64 "\"", bad_begin, m->bad_xxh3);
    putc('}', out);
}

char *cell_metadata_join(const char *head, size_t head_bytes, const cell_counts *sum,
                         size_t *n_bytes)
{
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return NULL;
    fwrite(head, 1, head_bytes, out);
    fputs(counts_begin, out);
    for (size_t i = 0; i < sum->n; i++)
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", sum->list[i].name, sum->list[i].value);
    fputs("}}", out);
    if (!memory_file_close(out, &text))
        return NULL;
    *n_bytes = text.n_bytes;
    return text.text;
}

/* ---- Read ---- */

/* A text that is read from its start; failed: something else came than was expected. */
typedef struct text_part {
    const char *at, *end;
    bool failed;
} text_part;

static void expect(text_part *t, const char *text)
{
    size_t n = strlen(text);
    t->failed = t->failed || (size_t)(t->end - t->at) < n || memcmp(t->at, text, n) != 0;
    t->at += t->failed ? 0 : n;
}

static bool next_is(const text_part *t, char c)
{
    return !t->failed && t->at < t->end && *t->at == c;
}

static uint64_t take_number(text_part *t)
{
    uint64_t value = 0;
    const char *first = t->at;
    while (!t->failed && t->at < t->end && *t->at >= '0' && *t->at <= '9') {
        unsigned digit = (unsigned)(*t->at++ - '0');
        t->failed = value > (UINT64_MAX - digit) / 10;
        value = 10 * value + digit;
    }
    t->failed = t->failed || t->at == first || (*first == '0' && t->at > first + 1);
    return value;
}

static uint64_t take_hash(text_part *t)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t hash = 0;
    t->failed = t->failed || t->end - t->at < HASH_DIGITS;
    for (int i = 0; i < HASH_DIGITS && !t->failed; i++) {
        const char *digit = memchr(digits, *t->at++, LENGTH(digits));
        t->failed = !digit;
        hash = digit ? hash << 4 | (uint64_t)(digit - digits) : 0;
    }
    return hash;
}

/* Pairs of a name and a number. */
static void take_counts(text_part *t, cell_counts *counts)
{
    expect(t, counts_begin);
    for (counts->n = 0; !t->failed && !next_is(t, '}');) {
        cell_count *count = &counts->list[counts->n];
        size_t n = 0;
        expect(t, counts->n > 0 ? ", \"" : "\"");
        t->failed = t->failed || counts->n == CELL_MAX_COUNTS;
        while (!t->failed && t->at < t->end && n < sizeof count->name - 1 &&
               ((*t->at >= 'a' && *t->at <= 'z') || *t->at == '_'))
            count->name[n++] = *t->at++;
        if (t->failed || n == 0) {
            t->failed = true;
            return;
        }
        count->name[n] = '\0';
        expect(t, "\": ");
        count->value = take_number(t);
        counts->n++;
    }
    expect(t, "}");
}

/* The last place of `text` in [begin, end), or NULL. */
static const char *find_last(const char *begin, const char *end, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(end - begin) < n)
        return NULL;
    for (const char *at = end - n;; at--) {
        if (memcmp(at, text, n) == 0)
            return at;
        if (at == begin)
            return NULL;
    }
}

bool cell_metadata_read(cell_metadata *m, const char *json, size_t n_bytes)
{
    const char *end = json + n_bytes;
    /* Quotes in a string of JSON have a backslash, so this is not in a string. */
    const char *counts = find_last(json, end, counts_begin);
    if (!counts)
        return false;
    text_part t = {counts, end, false};
    *m = (cell_metadata){.head_bytes = (size_t)(counts - json)};
    take_counts(&t, &m->counts);
    expect(&t, plan_begin);
    m->hash = take_hash(&t);
    expect(&t, cell_begin);
    m->cell = take_number(&t);
    if (next_is(&t, ',')) {
        expect(&t, bad_begin);
        m->bad_xxh3 = take_hash(&t);
        expect(&t, "\"");
    }
    expect(&t, "}}");
    return !t.failed && t.at == t.end;
}

bool cell_counts_add(cell_counts *sum, const cell_counts *more)
{
    if (sum->n == 0) {
        *sum = *more;
        return true;
    }
    if (sum->n != more->n)
        return false;
    for (size_t i = 0; i < sum->n; i++) {
        cell_count *to = &sum->list[i];
        const cell_count *from = &more->list[i];
        if (strcmp(to->name, from->name) != 0 || from->value > UINT64_MAX - to->value)
            return false;
        to->value += from->value;
    }
    return true;
}

uint64_t cell_counts_value(const cell_counts *counts, const char *name)
{
    for (size_t i = 0; i < counts->n; i++) {
        if (strcmp(counts->list[i].name, name) == 0)
            return counts->list[i].value;
    }
    return 0;
}

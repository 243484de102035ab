/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/csv.h"

#include <stdlib.h>
#include <string.h>

/* ---- Rows ---- */

/* Returns the place of the first such byte from `from` on, n_bytes if there is none. `from` never
 * goes back, so that each byte is looked at once. */
static size_t find_byte(csv_finder *f, uint8_t byte, const uint8_t *bytes, size_t from,
                        size_t n_bytes)
{
    if (f->found && f->at >= from)
        return f->at;
    const size_t at = f->found || f->at < from ? from : f->at;
    const uint8_t *next = at < n_bytes ? memchr(bytes + at, byte, n_bytes - at) : NULL;
    *f = (csv_finder){.at = next ? (size_t)(next - bytes) : n_bytes, .found = next != NULL};
    return f->at;
}

static void note_wrong(csv_scanner *s, const char *wrong, size_t at)
{
    if (!s->wrong)
        s->wrong_at = s->passed + at;
    s->wrong = s->wrong ? s->wrong : wrong;
}

static void end_field(csv_scanner *s)
{
    if (s->n_fields < s->most)
        s->fields[s->n_fields] = s->field;
    s->n_fields++;
}

static csv_status end_row(csv_scanner *s, size_t n_bytes, size_t end_bytes)
{
    end_field(s);
    s->n_bytes = n_bytes;
    s->end_bytes = end_bytes;
    return CSV_ROW;
}

/* Counts the newlines in quotes, up to here. */
static void count_newlines(csv_scanner *s, const uint8_t *bytes, size_t n_bytes)
{
    size_t at = s->counted_at;
    while ((at = find_byte(&s->newline, '\n', bytes, at, n_bytes)) < s->at) {
        s->n_newlines++;
        at++;
    }
    s->counted_at = s->at;
}

/* Reads to the end of the quotes. Returns false where more bytes are needed. */
static bool scan_quoted(csv_scanner *s, const uint8_t *bytes, size_t n_bytes, bool at_end)
{
    for (;;) {
        const size_t quote = find_byte(&s->quote, '"', bytes, s->at, n_bytes);
        s->at = quote;
        if (quote == n_bytes || (quote + 1 == n_bytes && !at_end)) {
            count_newlines(s, bytes, n_bytes);
            return false;
        }
        if (quote + 1 == n_bytes || bytes[quote + 1] != '"')
            break;
        s->field.doubled = true;
        s->at = quote + 2;
    }
    count_newlines(s, bytes, n_bytes);
    s->field.end = s->at++;
    s->state = CSV_CLOSED;
    return true;
}

/* Checks a part of a field that is not in quotes, and is followed by this byte. Returns the bytes
 * of its line end that are in it: a CR before the LF. */
static size_t check_plain(csv_scanner *s, const uint8_t *bytes, size_t end, size_t n_bytes)
{
    const bool at_newline = end < n_bytes && bytes[end] == '\n';
    const size_t quote = s->tabs ? n_bytes : find_byte(&s->quote, '"', bytes, s->plain_at, n_bytes);
    const size_t cr = find_byte(&s->carriage_return, '\r', bytes, s->plain_at, n_bytes);
    if (quote < end)
        note_wrong(s, "a quote in a field that does not begin with one", quote);
    if (cr + 1 == end && at_newline)
        return 1;
    if (cr < end)
        note_wrong(s, "a carriage return without a line feed", cr);
    return cr < end && at_newline && bytes[end - 1] == '\r';
}

csv_status csv_scan(csv_scanner *s, const uint8_t *bytes, size_t n_bytes, bool at_end)
{
    const uint8_t separator = s->tabs ? '\t' : ',';
    for (;;) {
        if (s->at == n_bytes && !at_end)
            return CSV_MORE;
        if (s->state == CSV_BEGINS) {
            const bool quoted = !s->tabs && s->at < n_bytes && bytes[s->at] == '"';
            s->state = quoted ? CSV_QUOTED : CSV_PLAIN;
            if (quoted) {
                s->open_at = s->passed + s->at++;
                s->open_newlines = s->n_newlines;
            }
            s->field = (csv_field){.begin = s->at};
            s->plain_at = s->counted_at = s->at;
        }
        if (s->state == CSV_QUOTED && !scan_quoted(s, bytes, n_bytes, at_end))
            return at_end ? CSV_UNCLOSED : CSV_MORE;
        if (s->state == CSV_CLOSED) {
            const size_t at = s->at;
            const uint8_t next = at < n_bytes ? bytes[at] : '\n';
            const bool is_cr_lf = next == '\r' && at + 1 < n_bytes && bytes[at + 1] == '\n';
            if ((at == n_bytes || (next == '\r' && at + 1 == n_bytes)) && !at_end)
                return CSV_MORE;
            if (next == '\n' || is_cr_lf)
                return end_row(s, at, is_cr_lf ? 2 : at < n_bytes);
            if (next == separator) {
                end_field(s);
                s->at++;
                s->state = CSV_BEGINS;
                continue;
            }
            if (next != '\r')
                note_wrong(s, "data after the quote that ends a field", at);
            s->plain_at = at;
            s->state = CSV_PLAIN;
        }
        const size_t newline = find_byte(&s->newline, '\n', bytes, s->at, n_bytes);
        const uint8_t *next =
            newline > s->at ? memchr(bytes + s->at, separator, newline - s->at) : NULL;
        const size_t end = next ? (size_t)(next - bytes) : newline;
        s->at = end;
        if (end == n_bytes && !at_end)
            return CSV_MORE;
        const size_t n_cr = check_plain(s, bytes, end, n_bytes);
        s->field.end = end - n_cr;
        if (!next)
            return end_row(s, end - n_cr, n_cr + (end < n_bytes));
        end_field(s);
        s->at++;
        s->state = CSV_BEGINS;
    }
}

static size_t less(size_t at, size_t n_bytes)
{
    return at > n_bytes ? at - n_bytes : 0;
}

static csv_finder pass_finder(csv_finder f, size_t n_bytes)
{
    return (csv_finder){.at = less(f.at, n_bytes), .found = f.found && f.at >= n_bytes};
}

void csv_pass(csv_scanner *s, size_t n_bytes, bool at_row)
{
    csv_scanner next = {.tabs = s->tabs, .fields = s->fields, .most = s->most};
    if (!at_row) {
        next = *s;
        next.at = less(s->at, n_bytes);
        next.plain_at = less(s->plain_at, n_bytes);
        next.counted_at = less(s->counted_at, n_bytes);
        next.passed = s->passed + n_bytes;
    }
    next.newline = pass_finder(s->newline, n_bytes);
    next.quote = pass_finder(s->quote, n_bytes);
    next.carriage_return = pass_finder(s->carriage_return, n_bytes);
    *s = next;
}

/* ---- Columns ---- */

void csv_columns_free(csv_columns *c)
{
    free(c->fields);
    free(c->names);
    free(c->sorted);
    free(c->bytes);
    *c = (csv_columns){0};
}

size_t csv_copy_field(uint8_t *to, const uint8_t *bytes, const csv_field *f)
{
    size_t n = 0;
    for (size_t at = f->begin; at < f->end;) {
        const uint8_t *quote = f->doubled ? memchr(bytes + at, '"', f->end - at) : NULL;
        const size_t end = quote ? (size_t)(quote - bytes) + 1 : f->end;
        memcpy(to + n, bytes + at, end - at);
        n += end - at;
        at = end + (quote != NULL);
    }
    return n;
}

static int compare_bytes(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b)
{
    const size_t n = n_a < n_b ? n_a : n_b;
    const int order = n > 0 ? memcmp(a, b, n) : 0;
    return order ? order : (n_a > n_b) - (n_a < n_b);
}

static int compare_names(const void *a, const void *b)
{
    const csv_name *x = a, *y = b;
    return compare_bytes(x->text, x->n_bytes, y->text, y->n_bytes);
}

bool csv_name_is_plain(const csv_name *name)
{
    enum {
        LONGEST_NAMED = 60
    };
    size_t i = 0;
    while (i < name->n_bytes && name->text[i] >= ' ' && name->text[i] != 0x7f)
        i++;
    return i > 0 && i == name->n_bytes && i <= LONGEST_NAMED;
}

/* Takes the names of a row that was scanned with these fields. Columns without a name are allowed,
 * and nothing can ask for them. */
static bool take_names(csv_columns *c, const uint8_t *bytes, const csv_scanner *s, failure *err)
{
    size_t n_bytes = 0;
    c->n = s->n_fields;
    c->names = calloc(c->n, sizeof *c->names);
    c->sorted = calloc(c->n, sizeof *c->sorted);
    c->bytes = malloc(s->n_bytes + 1);
    if (!c->names || !c->sorted || !c->bytes)
        return fail_memory(err);
    for (size_t i = 0; i < c->n; i++) {
        const size_t n = csv_copy_field(c->bytes + n_bytes, bytes, &c->fields[i]);
        c->names[i] = c->sorted[i] = (csv_name){c->bytes + n_bytes, n, i};
        n_bytes += n;
    }
    qsort(c->sorted, c->n, sizeof *c->sorted, compare_names);
    for (size_t i = 1; i < c->n; i++) {
        const csv_name *name = &c->sorted[i];
        if (name->n_bytes > 0 && compare_names(name - 1, name) == 0)
            return fail(err, "two columns have the same name%s%.*s",
                        csv_name_is_plain(name) ? ": " : "",
                        csv_name_is_plain(name) ? (int)name->n_bytes : 0, (const char *)name->text);
    }
    return true;
}

/* Scans the row again, now that the number of its fields is known, and takes the names. */
bool csv_columns_read(csv_columns *c, const uint8_t *bytes, const csv_scanner *row, failure *err)
{
    c->fields = calloc(row->n_fields, sizeof *c->fields);
    if (!c->fields)
        return fail_memory(err);
    csv_scanner s = {.tabs = row->tabs, .fields = c->fields, .most = row->n_fields};
    csv_scan(&s, bytes, row->n_bytes, true);
    return take_names(c, bytes, &s, err);
}

bool csv_columns_given(csv_columns *c, const char *columns, failure *err)
{
    csv_scanner row = {0};
    const uint8_t *bytes = (const uint8_t *)columns;
    const csv_status status = csv_scan(&row, bytes, strlen(columns), true);
    if (status == CSV_UNCLOSED || row.wrong || row.n_bytes < strlen(columns))
        return fail(err, "--columns: %s",
                    status == CSV_UNCLOSED ? "a quote is not closed"
                    : row.wrong            ? row.wrong
                                           : "must be one line");
    return csv_columns_read(c, bytes, &row, err) || fail_at(err, "--columns: ");
}

size_t csv_columns_find(const csv_columns *c, const char *name)
{
    const csv_name key = {.text = (const uint8_t *)name, .n_bytes = strlen(name)};
    const csv_name *found = key.n_bytes > 0 && c->n > 0
                                ? bsearch(&key, c->sorted, c->n, sizeof *c->sorted, compare_names)
                                : NULL;
    return found ? found->column : CSV_NO_COLUMN;
}

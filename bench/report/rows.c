#include "report/rows.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report/write.h"

bool report_is_rate(const report_row *row)
{
    const size_t n = strlen(row->unit);
    return n > 2 && strcmp(row->unit + n - 2, "/s") == 0;
}

double report_time_unit(const report_row *row)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\xc2\xb5s", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(row->unit, units[i].unit) == 0)
            return units[i].seconds;
    return 0;
}

/* ---- Words of a name ---- */

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The word that begins at or behind s; length 0: there is none. A point belongs to it when more
 * follows. */
static const char *next_word(const char *s, size_t *length)
{
    while (*s && !in_word(*s))
        s++;
    *length = 0;
    while (in_word(s[*length]) || (*length && s[*length] == '.' && in_word(s[*length + 1])))
        ++*length;
    return s;
}

static bool has_word(const char *s, const char *word)
{
    size_t n;
    for (s = next_word(s, &n); n; s = next_word(s + n, &n))
        if (n == strlen(word) && strncasecmp(s, word, n) == 0)
            return true;
    return false;
}

static double percentile_word(const char *s, size_t n)
{
    char *end;
    if (n == 3 && strncmp(s, "max", 3) == 0)
        return 1;
    if (s[0] != 'p' || n < 2 || !isdigit((unsigned char)s[1]))
        return 0;
    const double percent = strtod(s + 1, &end);
    return end == s + n && percent > 0 && percent < 100 ? percent / 100 : 0;
}

/* Where the word for the percentile is; NULL: there is none. */
static const char *find_percentile(const char *name, size_t *n, double *percentile)
{
    for (name = next_word(name, n); *n; name = next_word(name + *n, n)) {
        *percentile = percentile_word(name, *n);
        if (*percentile > 0)
            return name;
    }
    return NULL;
}

double report_percentile(const report_row *row)
{
    size_t n;
    double percentile;
    return report_time_unit(row) > 0 && find_percentile(row->name, &n, &percentile) ? percentile
                                                                                    : 0;
}

bool report_on_gpu(const report_row *row)
{
    return (row->group && strncmp(row->group, "gpu", 3) == 0) || strcmp(row->page, "gpu") == 0 ||
           has_word(row->name, "cuda") || has_word(row->name, "h2d");
}

/* ---- Parts of a name, which commas separate ---- */

/* Length of the part that begins at s. */
static size_t part_length(const char *s)
{
    const char *end = strstr(s, ", ");
    return end ? (size_t)(end - s) : strlen(s);
}

double report_x(const report_row *row)
{
    if (row->x > 0)
        return row->x;
    for (const char *s = row->name; *s;) {
        const size_t n = part_length(s);
        char *end = NULL;
        const double exponent = strncmp(s, "10^", 3) == 0 ? strtod(s + 3, &end) : 0;
        if (end && exponent > 0 && exponent < 300 && strcmp(row->unit, "x") != 0 &&
            (size_t)(end - s) + 7 == n && strncmp(end, " tokens", 7) == 0)
            return pow(10, exponent);
        s += n + (s[n] ? 2 : 0);
    }
    return 0;
}

const char *report_x_unit(const report_row *row)
{
    return row->x_unit ? row->x_unit : "tokens";
}

/* ", 1024 tokens" at the end of the name, or NULL. */
static const char *size_at_end(const char *name)
{
    const char *tail = NULL;
    for (const char *s = strstr(name, ", "); s; s = strstr(s + 2, ", "))
        tail = s;
    if (!tail || tail == name || !isdigit((unsigned char)tail[2]))
        return NULL;
    const size_t n = strlen(tail);
    return n > 9 && strcmp(tail + n - 7, " tokens") == 0 ? tail : NULL;
}

const char *report_short_name(report_memory *memory, const report_row *row)
{
    const char *tail = size_at_end(row->name);
    return tail ? report_text(memory, "%.*s", (int)(tail - row->name), row->name) : row->name;
}

bool report_fraction(const report_row *row, double *fraction)
{
    const bool ratio = !row->limit && strcmp(row->unit, "x") == 0 && strstr(row->name, " / ") &&
                       row->goal == BENCH_AT_LEAST && row->target <= 1;
    *fraction = ratio ? row->median : row->fraction;
    return ratio || (row->limit && row->fraction >= 0);
}

/* ---- Keys ---- */

const char *report_key_page_unit(report_memory *memory, const report_row *row)
{
    return report_text(memory, "%s\n%s", row->page, row->unit);
}

const char *report_key_page(report_memory *memory, const report_row *row)
{
    (void)memory;
    return row->page;
}

const char *report_key_group(report_memory *memory, const report_row *row)
{
    (void)memory;
    return row->group ? row->group : "";
}

const char *report_key_x(report_memory *memory, const report_row *row)
{
    if (!(row->x > 0))
        return "";
    return report_text(memory, "%s%s%s", report_format_tick(row->x).s, row->x_unit ? " " : "",
                       row->x_unit ? row->x_unit : "");
}

const char *report_key_place(report_memory *memory, const report_row *row)
{
    const char *tail = size_at_end(row->name);
    return tail ? tail + 2 : report_key_x(memory, row);
}

const char *report_key_title_unit(report_memory *memory, const report_row *row)
{
    return report_text(memory, "%s\n%s\n%s", row->group ? row->group : row->page, row->unit,
                       report_x_unit(row));
}

/* What is left of a name, with the system before it where it does not say that itself. */
static const char *named(report_memory *memory, const report_row *row, const char *rest)
{
    const char *what = *rest ? rest : row->page;
    return row->system && !strstr(what, row->system)
               ? report_text(memory, "%s, %s", row->system, what)
               : what;
}

const char *report_key_line(report_memory *memory, const report_row *row)
{
    char *rest = report_alloc(memory, strlen(row->name) + 3), *to = rest;
    for (const char *s = row->name; *s;) {
        const size_t n = part_length(s);
        if (!isdigit((unsigned char)*s)) {
            if (to > rest) {
                *to++ = ',';
                *to++ = ' ';
            }
            to = (char *)memcpy(to, s, n) + n;
        }
        s += n + (s[n] ? 2 : 0);
    }
    return named(memory, row, rest);
}

const char *report_key_distribution(report_memory *memory, const report_row *row)
{
    size_t n;
    double percentile;
    const char *word = find_percentile(row->name, &n, &percentile);
    if (row->group && row->system)
        return row->system;
    if (!word)
        return row->name;
    const char *behind = word + n;
    size_t before = (size_t)(word - row->name);
    while (before && row->name[before - 1] == ' ')
        before--;
    if (before && row->name[before - 1] == ',') /* "stall, p50" and "stall, p50, 5 ms step" */
        before--;
    while (!before && (*behind == ' ' || *behind == ','))
        behind++;
    return named(memory, row, report_text(memory, "%.*s%s", (int)before, row->name, behind));
}

/* ---- Rows that belong together ---- */

bool report_is_ours(const report_row *row)
{
    return row->system && strncmp(row->system, "tokmap", 6) == 0;
}

bool report_any_ours(const report_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        if (report_is_ours(items->items[i].row))
            return true;
    return false;
}

report_items report_choose(report_memory *memory, const report_run *run, report_choice *choice)
{
    report_items chosen = {report_alloc(memory, (run->n_rows + 1) * sizeof(report_item)), 0};
    for (size_t i = 0; i < run->n_rows; i++)
        if (choice(&run->rows[i]))
            chosen.items[chosen.n++].row = &run->rows[i];
    return chosen;
}

void report_set_keys(report_memory *memory, report_items *items, report_key *key)
{
    for (size_t i = 0; i < items->n; i++)
        items->items[i].key = key(memory, items->items[i].row);
}

report_items report_split(report_memory *memory, report_items *items)
{
    const char *key = items->n ? items->items[0].key : "";
    size_t n_same = 0, n_left = 0;
    for (size_t i = 0; i < items->n; i++)
        n_same += strcmp(items->items[i].key, key) == 0;
    report_items same = {report_alloc(memory, (n_same + 1) * sizeof *items->items), 0};
    for (size_t i = 0; i < items->n; i++) {
        if (strcmp(items->items[i].key, key) == 0)
            same.items[same.n++] = items->items[i];
        else
            items->items[n_left++] = items->items[i];
    }
    items->n = n_left;
    return same;
}

bool report_all_differ(const report_items *items)
{
    for (size_t i = 0; i < items->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(items->items[i].key, items->items[k].key) == 0)
                return false;
    return true;
}

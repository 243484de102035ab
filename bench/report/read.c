/* read.c - a result file into a run: every field has the kind that it should have, nothing
 * that is needed is missing, and what can be checked against the values is. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "report/data.h"
#include "text/json_reader.h"

enum {
    MAX_FILE_BYTES = 16 << 20,
    MAX_ROWS = 4000,
    BAD_INPUT = 3
};

typedef struct reading {
    json_reader json;
    report_memory *memory;
    report_run *run;
    size_t row_number; /* from 1; 0: not in a row */
    char wrong[300];   /* the JSON is sound and what it says is not */
} reading;

/* Always false. The first complaint is kept. */
static bool refuse(reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(reading *r, const char *format, ...)
{
    va_list args;
    if (r->wrong[0])
        return false;
    const int n =
        r->row_number ? snprintf(r->wrong, sizeof r->wrong, "row %zu: ", r->row_number) : 0;
    va_start(args, format);
    vsnprintf(r->wrong + n, sizeof r->wrong - (size_t)n, format, args);
    va_end(args);
    return false;
}

/* ---- Values ---- */

/* Bytes of a character that a page must not show, at s: control characters, those that turn the
 * direction of text, and U+FFFE and U+FFFF, which XML does not allow. 0: it may. */
static size_t bad_character(const char *s, size_t n)
{
    const unsigned char a = (unsigned char)s[0], b = n > 1 ? (unsigned char)s[1] : 0,
                        c = n > 2 ? (unsigned char)s[2] : 0;
    if (a < 0x20 || a == 0x7f)
        return 1;
    if (a == 0xc2 && b < 0xa0)
        return 2;
    const bool turns =
        a == 0xe2 && ((b == 0x80 && (c == 0x8e || c == 0x8f || (c >= 0xa8 && c <= 0xae))) ||
                      (b == 0x81 && c >= 0xa6 && c <= 0xa9));
    return turns || (a == 0xef && b == 0xbf && c >= 0xbe) ? 3 : 0;
}

static const char *keep(reading *r, json_string s)
{
    static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
    char *copy = report_alloc(r->memory, 3 * s.n_bytes + 1), *to = copy;
    for (size_t i = 0; i < s.n_bytes;) {
        const size_t bad = bad_character(s.s + i, s.n_bytes - i);
        if (bad)
            to = (char *)memcpy(to, replacement, 3) + 3;
        else
            *to++ = s.s[i];
        i += bad ? bad : 1;
    }
    return copy;
}

static bool read_text(reading *r, const char **text)
{
    json_string s;
    if (!json_read_string(&r->json, &s))
        return false;
    *text = keep(r, s);
    return true;
}

/* json_read_number checks the syntax; it computes as somebody else's reader does, not always to the
 * last bit. The text ends with a NUL, see load_file. */
static bool read_number(reading *r, double *number)
{
    if (json_peek(&r->json) == JSON_NONE)
        return json_read_number(&r->json, number);
    const char *text = (const char *)r->json.text + r->json.at;
    if (!json_read_number(&r->json, number))
        return false;
    *number = strtod(text, NULL);
    return isfinite(*number) || json_fail(&r->json, "a number that is too large");
}

typedef struct field {
    const char *name;
    const char **text; /* or else */
    double *number;
} field;

/* Reads the value of a key when it is one of the fields, which *known says. Null is absent. */
static bool read_field(reading *r, json_string key, const field *fields, bool *known)
{
    for (; fields->name; fields++) {
        if (!json_string_is(key, fields->name))
            continue;
        *known = true;
        if (json_peek(&r->json) == JSON_NULL)
            return json_skip(&r->json);
        if (fields->text)
            return read_text(r, fields->text);
        return fields->number && read_number(r, fields->number);
    }
    *known = false;
    return true;
}

static bool read_object(reading *r, const field *fields)
{
    json_string key;
    bool known, ok = json_begin(&r->json, JSON_OBJECT);
    while (ok && json_next_key(&r->json, &key)) {
        ok = read_field(r, key, fields, &known);
        if (ok && !known)
            ok = json_skip(&r->json);
    }
    return ok && !r->json.failure[0];
}

/* ---- Figures ---- */

typedef struct figure {
    const char *unit;
    double median, min, max; /* median: NAN when the file has none */
    size_t n_values;
} figure;

static bool read_values(reading *r, figure *f)
{
    double value;
    f->n_values = 0;
    f->min = INFINITY;
    f->max = -INFINITY;
    bool ok = json_begin(&r->json, JSON_ARRAY);
    while (ok && json_next_item(&r->json)) {
        ok = read_number(r, &value);
        f->min = ok ? fmin(f->min, value) : 0;
        f->max = ok ? fmax(f->max, value) : 0;
        f->n_values++;
    }
    return ok && !r->json.failure[0];
}

static bool read_figure_field(reading *r, json_string key, figure *f, bool *known)
{
    const field fields[] = {{"unit", &f->unit, NULL}, {"median", NULL, &f->median}, {0}};
    *known = json_string_is(key, "values");
    return *known ? read_values(r, f) : read_field(r, key, fields, known);
}

static bool read_figure(reading *r, figure *f)
{
    json_string key;
    bool known, ok = json_begin(&r->json, JSON_OBJECT);
    *f = (figure){.median = NAN};
    while (ok && json_next_key(&r->json, &key)) {
        ok = read_figure_field(r, key, f, &known);
        if (ok && !known)
            ok = json_skip(&r->json);
    }
    return ok && !r->json.failure[0];
}

/* Medians are rounded to six digits or four places, so the values may miss them by that. */
static bool at_least(double a, double b)
{
    return a >= b - 1e-4 - 1e-5 * fabs(b);
}

static bool check_figure(reading *r, const figure *f)
{
    if (!f->unit)
        return refuse(r, "no field \"unit\"");
    if (isnan(f->median))
        return refuse(r, "no field \"median\"");
    if (f->n_values == 0)
        return refuse(r, "no field \"values\" with a number in it");
    if (!at_least(f->median, f->min) || !at_least(f->max, f->median))
        return refuse(r, "the median %g is not between the smallest value, %g, and the largest, %g",
                      f->median, f->min, f->max);
    return true;
}

/* ---- Rows ---- */

enum {
    N_PASSES = 4
};
static const char *const passes[N_PASSES] = {"cold", "cold_ratio", "warm", "warm_ratio"};

typedef struct raw_row {
    const char *page, *name, *system, *group, *limit, *x_unit, *left_out, *note, *version;
    const char *tokenizer, *text; /* of compare.py */
    double fraction, x;
    figure own, of_pass[N_PASSES];
    bool has_pass[N_PASSES];
    bench_goal goal;
    double target;
    bool reached, reached_told;
} raw_row;

static bool read_target(reading *r, raw_row *raw)
{
    json_string key;
    bool ok = json_begin(&r->json, JSON_OBJECT);
    while (ok && json_next_key(&r->json, &key)) {
        const bool least = json_string_is(key, "at_least");
        if (least || json_string_is(key, "at_most")) {
            raw->goal = least ? BENCH_AT_LEAST : BENCH_AT_MOST;
            ok = read_number(r, &raw->target);
        } else if (json_string_is(key, "reached")) {
            raw->reached_told = true;
            ok = json_read_bool(&r->json, &raw->reached);
        } else {
            ok = json_skip(&r->json);
        }
    }
    if (!ok || r->json.failure[0])
        return false;
    if (raw->goal == BENCH_NO_GOAL || !raw->reached_told)
        return refuse(r, "a target needs \"at_least\" or \"at_most\", and \"reached\"");
    return true;
}

static bool read_row_field(reading *r, json_string key, raw_row *raw)
{
    const field fields[] = {{"page", &raw->page, NULL},
                            {"name", &raw->name, NULL},
                            {"system", &raw->system, NULL},
                            {"group", &raw->group, NULL},
                            {"limit", &raw->limit, NULL},
                            {"x_unit", &raw->x_unit, NULL},
                            {"left_out", &raw->left_out, NULL},
                            {"note", &raw->note, NULL},
                            {"version", &raw->version, NULL},
                            {"tokenizer", &raw->tokenizer, NULL},
                            {"text", &raw->text, NULL},
                            {"fraction", NULL, &raw->fraction},
                            {"x", NULL, &raw->x},
                            {0}};
    bool known;
    if (!read_field(r, key, fields, &known) || known)
        return !r->json.failure[0];
    if (!read_figure_field(r, key, &raw->own, &known) || known)
        return !r->json.failure[0];
    if (json_string_is(key, "target") && json_peek(&r->json) != JSON_NULL)
        return read_target(r, raw);
    for (int i = 0; i < N_PASSES; i++)
        if (json_string_is(key, passes[i])) {
            raw->has_pass[i] = true;
            return read_figure(r, &raw->of_pass[i]);
        }
    return json_skip(&r->json);
}

static bool check_target(reading *r, const raw_row *raw)
{
    const bool least = raw->goal == BENCH_AT_LEAST;
    const double above = least ? raw->own.median : raw->target;
    const double below = least ? raw->target : raw->own.median;
    const bool may_be = raw->reached ? at_least(above, below) : at_least(below, above);
    if (raw->goal != BENCH_NO_GOAL && !may_be)
        return refuse(r, "the target %g was%s reached, says the file, and the median is %g",
                      raw->target, raw->reached ? "" : " not", raw->own.median);
    return true;
}

static report_row *add_row(reading *r, const figure *f)
{
    report_run *run = r->run;
    if ((run->n_rows & (run->n_rows + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
        report_row *rows = report_alloc(r->memory, (2 * run->n_rows + 1) * sizeof *rows);
        if (run->n_rows)
            memcpy(rows, run->rows, run->n_rows * sizeof *rows);
        run->rows = rows;
    }
    report_row *row = &run->rows[run->n_rows++];
    *row = (report_row){
        .unit = f->unit, .median = f->median, .min = f->min, .max = f->max, .fraction = -1};
    return row;
}

static bool take_plain(reading *r, const raw_row *raw)
{
    if (!raw->page || !raw->name)
        return refuse(r, "no field \"%s\"", raw->page ? "name" : "page");
    if (!check_figure(r, &raw->own) || !check_target(r, raw))
        return false;
    if (raw->x <= 0 || raw->fraction < 0)
        return refuse(r, "\"x\" has to be above 0, and \"fraction\" not below");
    report_row *row = add_row(r, &raw->own);
    row->page = raw->page;
    row->name = raw->name;
    row->system = raw->system;
    row->group = raw->group;
    row->limit = raw->limit;
    row->x_unit = raw->x_unit;
    row->goal = raw->goal;
    row->target = raw->target;
    row->reached = raw->reached;
    row->fraction = isnan(raw->fraction) ? -1 : raw->fraction;
    row->x = isnan(raw->x) ? 0 : raw->x;
    return true;
}

/* A row of compare.py has up to four figures, each of which becomes a row. */
static bool take_compared(reading *r, const raw_row *raw)
{
    if (!raw->text || !raw->system)
        return refuse(r, "no field \"%s\"", raw->text ? "system" : "text");
    const bool ours = strcmp(raw->system, "tokmap") == 0;
    for (int i = 0; i < N_PASSES; i++) {
        const bool ratio = i % 2 == 1;
        if (!raw->has_pass[i] && !(ratio && ours))
            return refuse(r, "no field \"%s\"", passes[i]);
        if (!raw->has_pass[i])
            continue;
        if (!check_figure(r, &raw->of_pass[i]))
            return false;
        report_row *row = add_row(r, &raw->of_pass[i]);
        row->page = i < 2 ? "tokenize, cold" : "tokenize, warm";
        row->group = report_text(r->memory, "%s, %s", raw->tokenizer, raw->text);
        row->system = raw->system;
        row->name =
            report_text(r->memory, "%s: %s%s", row->group, ratio ? "tokmap / " : "", raw->system);
    }
    return true;
}

static void add_remark(reading *r, const raw_row *raw, const char *text, bool everywhere)
{
    report_run *run = r->run;
    const char *place = raw->tokenizer && raw->text
                            ? report_text(r->memory, "%s, %s", raw->tokenizer, raw->text)
                        : raw->group ? raw->group
                                     : raw->page;
    if (!run->remarks) /* at most three a row */
        run->remarks = report_alloc(r->memory, 3 * MAX_ROWS * sizeof *run->remarks);
    run->remarks[run->n_remarks++] =
        (report_remark){raw->system ? raw->system : raw->name, text, everywhere ? NULL : place};
}

static bool take_row(reading *r, const raw_row *raw)
{
    if (raw->left_out || raw->note || raw->version) {
        if (!raw->system && !raw->name)
            return refuse(r, "no field \"system\"");
        if (raw->version)
            add_remark(r, raw, report_text(r->memory, "version %s", raw->version), true);
        if (raw->left_out)
            add_remark(r, raw, report_text(r->memory, "left out: %s", raw->left_out), false);
        if (raw->note)
            add_remark(r, raw, raw->note, false);
    }
    if (raw->left_out)
        return true;
    return raw->tokenizer ? take_compared(r, raw) : take_plain(r, raw);
}

static bool read_rows(reading *r)
{
    bool ok = json_begin(&r->json, JSON_ARRAY);
    while (ok && json_next_item(&r->json)) {
        raw_row raw = {.fraction = NAN, .x = NAN, .own = {.median = NAN}};
        json_string key;
        r->row_number++;
        ok = r->row_number <= MAX_ROWS || refuse(r, "more than %d rows", MAX_ROWS);
        ok = ok && json_begin(&r->json, JSON_OBJECT);
        while (ok && json_next_key(&r->json, &key))
            ok = read_row_field(r, key, &raw);
        ok = ok && !r->json.failure[0] && take_row(r, &raw);
    }
    r->row_number = 0;
    return ok && !r->json.failure[0];
}

/* ---- The file ---- */

static bool read_machine(reading *r)
{
    report_machine *m = &r->run->machine;
    *m = (report_machine){.processors = NAN, .memory_gib = NAN};
    const field fields[] = {{"cpu", &m->cpu, NULL},
                            {"kernel", &m->kernel, NULL},
                            {"architecture", &m->architecture, NULL},
                            {"gpu", &m->gpu, NULL},
                            {"processors", NULL, &m->processors},
                            {"memory_gib", NULL, &m->memory_gib},
                            {0}};
    if (!read_object(r, fields))
        return false;
    const char *missing = !m->cpu                ? "cpu"
                          : !m->kernel           ? "kernel"
                          : !m->architecture     ? "architecture"
                          : isnan(m->processors) ? "processors"
                          : isnan(m->memory_gib) ? "memory_gib"
                                                 : NULL;
    return !missing || refuse(r, "machine: no field \"%s\"", missing);
}

static bool read_top(reading *r)
{
    report_run *run = r->run;
    double schema = NAN;
    bool machine = false, rows = false, known;
    const field fields[] = {{"schema", NULL, &schema},
                            {"command", &run->command, NULL},
                            {"tokmap", &run->version, NULL},
                            {0}};
    json_string key;
    bool ok = json_begin(&r->json, JSON_OBJECT);
    while (ok && json_next_key(&r->json, &key)) {
        ok = read_field(r, key, fields, &known);
        if (!ok || known)
            continue;
        const bool is_machine = json_string_is(key, "machine"),
                   is_rows = json_string_is(key, "rows");
        if (is_rows && rows)
            return refuse(r, "\"rows\" twice");
        machine |= is_machine;
        rows |= is_rows;
        ok = is_machine ? read_machine(r) : is_rows ? read_rows(r) : json_skip(&r->json);
    }
    if (!ok || r->json.failure[0] || !json_end(&r->json))
        return false;
    if (isnan(schema) || !run->command || !machine || !rows)
        return refuse(r, "no field \"%s\": not a result of tokbench or compare.py",
                      isnan(schema)   ? "schema"
                      : !run->command ? "command"
                      : !machine      ? "machine"
                                      : "rows");
    if (schema != 1)
        return refuse(r, "schema %g; this tokbench reads schema 1", schema);
    return run->n_rows + run->n_remarks > 0 || refuse(r, "there is no row in it");
}

/* NULL: there is none. Of several rows of that name one on the page of limits, else the first. */
static const report_row *find_limit(const report_run *run, const report_row *of)
{
    const report_row *found = NULL;
    for (size_t i = 0; i < run->n_rows; i++) {
        const report_row *row = &run->rows[i];
        if (row == of || strcmp(row->name, of->limit) != 0)
            continue;
        if (strcmp(row->page, "limits") == 0)
            return row;
        found = found ? found : row;
    }
    return found;
}

static void resolve_limits(report_run *run)
{
    for (size_t i = 0; i < run->n_rows; i++) {
        report_row *row = &run->rows[i];
        const report_row *limit = row->limit ? find_limit(run, row) : NULL;
        row->limit_found = limit != NULL;
        if (!limit || row->fraction >= 0 || strcmp(row->unit, limit->unit) != 0)
            continue;
        const size_t n = strlen(row->unit);
        const bool rate = n > 2 && strcmp(row->unit + n - 2, "/s") == 0;
        const double part = rate ? row->median / limit->median : limit->median / row->median;
        row->fraction = isfinite(part) ? part : -1;
    }
}

static char *load_file(report_memory *memory, const char *path, size_t *n_bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        cli_warn("%s: %s", path, strerror(errno));
        return NULL;
    }
    char *text = report_alloc(memory, MAX_FILE_BYTES + 1);
    errno = 0;
    *n_bytes = fread(text, 1, MAX_FILE_BYTES + 1, f);
    const bool failed = ferror(f) != 0;
    if (failed)
        cli_warn("%s: %s", path, strerror(errno));
    else if (*n_bytes > MAX_FILE_BYTES)
        cli_warn("%s: larger than %d MiB: not a result file", path, MAX_FILE_BYTES >> 20);
    fclose(f);
    return failed || *n_bytes > MAX_FILE_BYTES ? NULL : text;
}

int report_read(report_memory *memory, const char *path, report_run *run)
{
    size_t n_bytes;
    const char *slash = strrchr(path, '/');
    *run = (report_run){.file = slash ? slash + 1 : path};
    char *text = load_file(memory, path, &n_bytes);
    if (!text)
        return BAD_INPUT;
    reading r = {.memory = memory, .run = run};
    json_reader_init(&r.json, text, n_bytes);
    const bool ok = read_top(&r);
    if (!ok && r.wrong[0])
        cli_warn("%s: %s", path, r.wrong);
    else if (!ok)
        cli_warn("%s: byte %zu: %s", path, r.json.failure_at,
                 r.json.failure[0] ? r.json.failure : "something follows the value");
    json_reader_free(&r.json);
    if (!ok)
        return BAD_INPUT;
    resolve_limits(run);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_columns - late columns, and expressions over all columns. A table in memory is the model,
 * where_holds the oracle of expressions. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "base/real.h"
#include "fields/where.h"
#include "support/check.h"
#include "support/must.h"

enum {
    MAX_DOCUMENTS = 70000,
    N_SORTS = 9
};

/* ---- The model ---- */

/* Sorts of columns: flags, small numbers, 32 bits, 64 bits, floats of 32 and of 64 bits with NaN,
 * few strings, many strings, nothing. */
typedef struct column_model {
    tokmap_value *values; /* of each document */
    char (*texts)[24];
    char name[8];
} column_model;

static column_model make_column(uint64_t seed, uint32_t sort, uint32_t n)
{
    column_model c = {calloc(n + 1, sizeof *c.values), calloc(n + 1, sizeof *c.texts), ""};
    const uint32_t nulls = (uint32_t)(check_mix(seed, 1) % 4);
    CHECK(c.values && c.texts);
    for (uint32_t d = 0; d < n; d++) {
        const uint64_t r = check_mix(seed, 100 + d);
        tokmap_value *v = &c.values[d];
        if (sort == 8 || r % 8 < nulls)
            continue;
        v->type = sort < 4   ? TOKMAP_VALUE_INT64
                  : sort < 6 ? TOKMAP_VALUE_FLOAT64
                             : TOKMAP_VALUE_STRING;
        const int64_t wide = (int64_t)check_mix(r, 7);
        const int64_t integers[] = {(int64_t)(r >> 8) % 2, (int64_t)(r >> 8) % 7 - 3,
                                    (int64_t)(int32_t)wide, wide};
        v->integer = sort < 4 ? integers[sort] : 0;
        v->real = sort == 4   ? (double)((int64_t)(r >> 8) % 9 - 4) / 4
                  : sort == 5 ? (r % 31 == 8 ? (double)NAN : (double)wide / 3)
                              : 0;
        if (sort < 6)
            continue;
        v->text = c.texts[d];
        v->text_bytes = (size_t)snprintf(c.texts[d], sizeof c.texts[d], "%" PRIu64,
                                         sort == 6 ? (r >> 8) % 5 : check_mix(r, 9));
        v->text_bytes = r % 13 == 9 ? 0 : v->text_bytes;
    }
    return c;
}

static void free_column(column_model *c)
{
    free(c->values);
    free(c->texts);
}

/* A dataset of n documents of one token, without columns of its own, or with these. */
static tokmap_dataset *make_dataset(const char *name, uint32_t n, const column_model *own)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .replace = 1};
    tokmap_error err;
    tokmap_writer *w = must_begin(check_path(name), &options);
    const char *names[] = {own ? own->name : NULL};
    if (own)
        CHECK_OK(tokmap_writer_set_meta_columns(w, names, 1, &err), err);
    for (uint32_t d = 0; d < n; d++) {
        CHECK_OK(tokmap_writer_append(w, &(uint32_t){d % 1000}, 1, &err), err);
        if (own)
            CHECK_OK(tokmap_writer_add_meta(w, &own->values[d], 1, &err), err);
        CHECK_OK(tokmap_writer_end_document(w, &err), err);
    }
    must_finish(w);
    return must_open(check_path(name));
}

static tokmap_column_writer *begin_column(const tokmap_dataset *ds, const char *name)
{
    const tokmap_column_options options = {
        .struct_size = sizeof options, .name = name, .replace = 1};
    tokmap_column_writer *w;
    tokmap_error err;
    CHECK_OK(tokmap_column_writer_open(&w, ds, &options, &err), err);
    return w;
}

/* Puts values at once, or each value that is not null alone, so that there are gaps. */
static void put_values(tokmap_column_writer *w, const column_model *c, uint64_t first, uint64_t n,
                       bool has_gaps)
{
    tokmap_error err;
    for (uint64_t i = first; has_gaps && i < first + n; i++)
        if (c->values[i].type != TOKMAP_VALUE_NULL)
            CHECK_OK(tokmap_column_writer_put(w, i, &c->values[i], 1, &err), err);
    if (!has_gaps)
        CHECK_OK(tokmap_column_writer_put(w, n ? first : 0, c->values + first, n, &err), err);
}

/* Adds the column: in order in pieces, or piece by piece in another order. */
static void add_column(const tokmap_dataset *ds, const column_model *c, bool in_order)
{
    const uint64_t n = must_info(ds).n_documents;
    tokmap_column_writer *w = begin_column(ds, c->name);
    tokmap_error err;
    const bool has_gaps = check_below(2) == 0;
    const uint64_t piece = 1 + check_below(in_order ? 100000 : 50), n_pieces = n / piece + 1;
    for (uint64_t i = 0; i < n_pieces; i++) {
        const uint64_t k = in_order ? i : (i * 7919 + 3) % n_pieces, first = k * piece;
        const uint64_t n_put = first >= n ? 0 : n - first < piece ? n - first : piece;
        put_values(w, c, first, n_put, has_gaps);
    }
    CHECK_OK(tokmap_column_writer_finish(w, &err), err);
    tokmap_column_writer_close(w);
}

static tokmap_column *open_column(const tokmap_dataset *ds, const char *name)
{
    tokmap_column *c;
    tokmap_error err;
    CHECK_OK(tokmap_column_open(&c, ds, name, &err), err);
    return c;
}

static bool is_same(const tokmap_value *a, const tokmap_value *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == TOKMAP_VALUE_INT64)
        return a->integer == b->integer;
    if (a->type == TOKMAP_VALUE_FLOAT64)
        return a->real == b->real || (isnan(a->real) && isnan(b->real));
    return a->type == TOKMAP_VALUE_NULL ||
           (a->text_bytes == b->text_bytes && memcmp(a->text, b->text, a->text_bytes) == 0);
}

static void compare_values(const tokmap_column *c, const column_model *model, uint64_t n)
{
    tokmap_value v;
    for (uint64_t d = 0; d < n; d++) {
        CHECK_INT(tokmap_column_get_value(c, d, &v), TOKMAP_OK);
        if (!is_same(&v, &model->values[d]))
            CHECK_FAIL("column %s, document %" PRIu64, model->name, d);
    }
    CHECK_INT(tokmap_column_get_value(c, n, &v), TOKMAP_ERR_ARGUMENT);
}

static char *read_file(const char *path, size_t *n_bytes)
{
    struct stat s;
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &s) == 0);
    char *bytes = malloc((size_t)s.st_size + 1);
    CHECK(bytes && read(fd, bytes, (size_t)s.st_size) == s.st_size);
    close(fd);
    *n_bytes = (size_t)s.st_size;
    return bytes;
}

/* ---- Columns ---- */

TEST(late_columns_have_the_values_that_were_put)
{
    for (uint64_t seed = 0; seed < (check_long() ? 2000 : 120); seed++) {
        const uint32_t n = (uint32_t)(check_mix(seed, 2) % (seed % 40 == 7 ? MAX_DOCUMENTS : 200)),
                       sort = (uint32_t)(seed % N_SORTS);
        tokmap_dataset *ds = make_dataset("P", n, NULL);
        column_model model = make_column(seed, sort, n);
        strcpy(model.name, "late");
        add_column(ds, &model, true);
        size_t n_bytes, n_again;
        char *bytes = read_file(check_path("P.late.tmc"), &n_bytes);
        tokmap_column *c = open_column(ds, "late");
        tokmap_error err;
        CHECK_OK(tokmap_column_verify(c, NULL, NULL, &err), err);
        compare_values(c, &model, n);
        tokmap_column_close(c);
        add_column(ds, &model, false);
        char *again = read_file(check_path("P.late.tmc"), &n_again);
        CHECK(n_bytes == n_again && memcmp(bytes, again, n_bytes) == 0);
        free(bytes);
        free(again);
        free_column(&model);
        tokmap_dataset_close(ds);
    }
}

TEST(numbers_take_as_many_bytes_as_they_need)
{
    static const struct {
        int64_t value;
        double real;
        uint32_t n_bytes;
    } cases[] = {
        {127, 0, 1},       {-128, 0, 1},   {128, 0, 2},       {-129, 0, 2},
        {32767, 0, 2},     {-32769, 0, 4}, {INT32_MAX, 0, 4}, {(int64_t)INT32_MIN - 1, 0, 8},
        {INT64_MIN, 0, 8}, {0, 0.5, 4},    {0, 1e300, 8},     {0, 0.1, 8},
        {0, INFINITY, 4}};
    tokmap_dataset *ds = make_dataset("P", 2, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool is_real = cases[i].real != 0;
        const tokmap_value value = {.type = is_real ? TOKMAP_VALUE_FLOAT64 : TOKMAP_VALUE_INT64,
                                    .integer = cases[i].value,
                                    .real = cases[i].real};
        tokmap_column_writer *w = begin_column(ds, "n");
        tokmap_error err;
        CHECK_OK(tokmap_column_writer_put(w, 1, &value, 1, &err), err);
        CHECK_OK(tokmap_column_writer_finish(w, &err), err);
        tokmap_column_writer_close(w);
        tokmap_column *c = open_column(ds, "n");
        tokmap_meta_column info = TOKMAP_INIT(tokmap_meta_column);
        tokmap_value v;
        CHECK_INT(tokmap_column_get_info(c, &info), TOKMAP_OK);
        CHECK_EQ(info.number_bytes, cases[i].n_bytes);
        CHECK_EQ(info.n_nulls, 1);
        CHECK(info.path != NULL && info.name_bytes == 1);
        CHECK(!tokmap_column_get_value(c, 1, &v) && is_same(&v, &value));
        CHECK(!tokmap_column_get_value(c, 0, &v) && v.type == TOKMAP_VALUE_NULL);
        tokmap_column_close(c);
    }
    tokmap_dataset_close(ds);
}

TEST(a_name_has_64_characters_at_most)
{
    char name[66];
    const tokmap_value value = {.type = TOKMAP_VALUE_INT64, .integer = 7};
    tokmap_column_options options = {.struct_size = sizeof options, .name = name};
    tokmap_dataset *ds = make_dataset("P", 1, NULL);
    tokmap_column_writer *w;
    tokmap_column *c;
    tokmap_value v;
    tokmap_error err;
    memset(name, 'n', sizeof name);
    name[64] = 0;
    CHECK_OK(tokmap_column_writer_open(&w, ds, &options, &err), err);
    CHECK_OK(tokmap_column_writer_put(w, 0, &value, 1, &err), err);
    CHECK_OK(tokmap_column_writer_finish(w, &err), err);
    tokmap_column_writer_close(w);
    c = open_column(ds, name);
    tokmap_meta_column info = TOKMAP_INIT(tokmap_meta_column);
    CHECK_INT(tokmap_column_get_info(c, &info), TOKMAP_OK);
    CHECK(info.name_bytes == 64 && memcmp(info.name, name, 64) == 0);
    CHECK(!tokmap_column_get_value(c, 0, &v) && is_same(&v, &value));
    tokmap_column_close(c);
    memset(name, 'n', 65);
    name[65] = 0;
    CHECK_REFUSED(tokmap_column_writer_open(&w, ds, &options, &err), TOKMAP_ERR_ARGUMENT, err,
                  "is not the name of a late column");
    CHECK_REFUSED(tokmap_column_open(&c, ds, name, &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is no column");
    tokmap_dataset_close(ds);
}

TEST(what_cannot_be_a_column_is_refused)
{
    column_model own = make_column(1, 0, 5);
    strcpy(own.name, "own");
    tokmap_dataset *ds = make_dataset("P", 5, &own), *other = make_dataset("Q", 6, NULL);
    const tokmap_value number = {.type = TOKMAP_VALUE_INT64, .integer = 3},
                       string = {.type = TOKMAP_VALUE_STRING, .text = "x", .text_bytes = 1};
    tokmap_column_options options = {.struct_size = sizeof options, .name = "own"};
    tokmap_column_writer *w, *second;
    tokmap_column *c;
    tokmap_error err;
    CHECK_REFUSED(tokmap_column_writer_open(&w, ds, &options, &err), TOKMAP_ERR_EXISTS, err,
                  "has a column 'own' of its own");
    static const char *const names[] = {"", "a b", "a.b", "a/b", "\xc3\xa4", NULL};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        options.name = names[i];
        CHECK_REFUSED(tokmap_column_writer_open(&w, ds, &options, &err), TOKMAP_ERR_ARGUMENT, err,
                      "is not the name of a late column");
    }
    options.name = "late";
    CHECK_OK(tokmap_column_writer_open(&w, ds, &options, &err), err);
    CHECK_REFUSED(tokmap_column_writer_open(&second, ds, &options, &err), TOKMAP_ERR_LOCKED, err,
                  "another process");
    CHECK_REFUSED(tokmap_column_writer_put(w, 5, &number, 1, &err), TOKMAP_ERR_ARGUMENT, err,
                  "there are 5");
    CHECK_REFUSED(tokmap_column_writer_finish(w, &err), TOKMAP_ERR_ARGUMENT, err, "there are 5");
    tokmap_column_writer_close(w);
    CHECK(access(check_path("P.late.tmc"), F_OK) && access(check_path("P.late.tmc.partial"), F_OK));
    CHECK_OK(tokmap_column_writer_open(&w, ds, &options, &err), err);
    CHECK_OK(tokmap_column_writer_put(w, 0, &number, 1, &err), err);
    CHECK_REFUSED(tokmap_column_writer_put(w, 1, &string, 1, &err), TOKMAP_ERR_ARGUMENT, err,
                  "column 'late' is a number in document 0, but the string 'x' in document 1");
    tokmap_column_writer_close(w);
    CHECK_REFUSED(tokmap_column_open(&c, ds, "late", &err), TOKMAP_ERR_ARGUMENT, err,
                  "there is no column 'late'");
    CHECK_REFUSED(tokmap_column_open(&c, ds, "ovn", &err), TOKMAP_ERR_ARGUMENT, err,
                  "did you mean 'own'? 'tokmap columns list' shows all");
    strcpy(own.name, "late");
    add_column(ds, &own, true);
    CHECK_REFUSED(tokmap_column_writer_open(&w, ds, &options, &err), TOKMAP_ERR_EXISTS, err,
                  "exists");
    CHECK(rename(check_path("P.late.tmc"), check_path("Q.late.tmc")) == 0);
    CHECK_REFUSED(tokmap_column_open(&c, other, "late", &err), TOKMAP_ERR_MISMATCH, err,
                  "another dataset");
    free_column(&own);
    tokmap_dataset_close(ds);
    tokmap_dataset_close(other);
}

/* ---- Expressions ---- */

typedef struct text_buffer {
    char s[4096];
    size_t n;
} text_buffer;

#define ADD(t, ...)                                                                                \
    ((t)->n += (size_t)real_print((t)->s + (t)->n, sizeof(t)->s - (t)->n, __VA_ARGS__))

/* A literal that is near the values of a column of this sort. */
static void add_literal(text_buffer *t, uint32_t sort, const column_model *c, uint32_t n)
{
    const tokmap_value *v = &c->values[n ? check_below(n) : 0];
    if (sort >= 6 && sort < 8)
        ADD(t, "\"%.*s\"", (int)v->text_bytes, v->text_bytes ? v->text : "");
    else if (check_one_in(6))
        ADD(t, "%s",
            (const char *[]){"1e30", "-1e30", "0.5", "-9223372036854775808", "9223372036854775807",
                             "18446744073709551616", "127", "-129.25"}[check_below(8)]);
    else if (v->type == TOKMAP_VALUE_INT64)
        ADD(t, "%" PRId64, v->integer == INT64_MIN ? 0 : v->integer);
    else if (v->type == TOKMAP_VALUE_FLOAT64 && isfinite(v->real))
        ADD(t, "%.17g", v->real);
    else
        ADD(t, "%d", (int)check_below(5) - 2);
}

static void add_expression(text_buffer *t, const column_model *columns, uint32_t n, int depth)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    const uint32_t sort = check_below(N_SORTS), other = check_below(N_SORTS);
    const char *name = columns[sort].name, *sign = signs[check_below(6)];
    const uint32_t what = check_below(depth > 0 ? 9 : 6);
    const bool mixed =
        (sort >= 6 && sort < 8) != (other >= 6 && other < 8) && sort != 8 && other != 8;
    if (what == 0 && sort < 6) {
        ADD(t, "%s", name);
    } else if (what == 1) {
        ADD(t, "%s is%s null", name, check_one_in(2) ? " not" : "");
    } else if (what == 2 && !mixed) {
        ADD(t, "%s %s %s", name, sign, columns[other].name);
    } else if (what == 3) {
        ADD(t, "%s in (", name);
        add_literal(t, sort, &columns[sort], n);
        ADD(t, ", ");
        add_literal(t, sort, &columns[sort], n);
        ADD(t, ")");
    } else if (what == 4) {
        add_literal(t, sort, &columns[sort], n);
        ADD(t, " %s %s", sign, name);
    } else if (what < 6) {
        ADD(t, "%s %s ", name, sign);
        add_literal(t, sort, &columns[sort], n);
    } else if (what == 6) {
        ADD(t, "not (");
        add_expression(t, columns, n, depth - 1);
        ADD(t, ")");
    } else {
        ADD(t, "(");
        add_expression(t, columns, n, depth - 1);
        ADD(t, what == 7 ? " and " : " or ");
        add_expression(t, columns, n, depth - 1);
        ADD(t, ")");
    }
}

typedef struct chosen {
    uint8_t *kept;
    uint64_t n_documents;
} chosen;

static tokmap_status take_kept(void *context, uint64_t first, uint32_t n, const uint64_t *kept,
                               tokmap_error *err)
{
    chosen *c = context;
    (void)err;
    if (first != c->n_documents || first % 65536 != 0 || n == 0 || n > 65536)
        return TOKMAP_ERR_MISMATCH;
    for (uint32_t i = 0; i < n; i++)
        c->kept[first + i] = kept[i / 64] >> i % 64 & 1;
    c->n_documents += n;
    return n % 64 == 0 || kept[n / 64] >> n % 64 == 0 ? TOKMAP_OK : TOKMAP_ERR_MISMATCH;
}

/* Compares all documents with where_holds. Returns how many are kept. */
static uint32_t compare_with_oracle(const tokmap_dataset *ds, const char *text,
                                    const column_model *columns, uint32_t n)
{
    field_list fields = {0};
    failure why;
    where *w = where_compile(text, &fields, &why);
    tokmap_error err;
    uint32_t n_kept = 0;
    if (!w)
        CHECK_FAIL("%s: %s", text, why.text);
    chosen c = {calloc(n + 1, 1), 0};
    CHECK(c.kept != NULL);
    const tokmap_status status = tokmap_dataset_select(ds, text, take_kept, &c, &err);
    if (status)
        CHECK_FAIL("%s: %s", text, err.text);
    CHECK_EQ(c.n_documents, n);
    for (uint32_t d = 0; d < n; d++) {
        tokmap_value values[FIELD_LIST_MAX];
        for (size_t i = 0; i < fields.n_fields; i++)
            for (uint32_t k = 0; k < N_SORTS; k++)
                if (strcmp(columns[k].name, fields.names[i]) == 0)
                    values[i] = columns[k].values[d];
        if (where_holds(w, values) != (c.kept[d] != 0))
            CHECK_FAIL("%s: document %u is %s", text, d, c.kept[d] ? "kept" : "not kept");
        n_kept += c.kept[d];
    }
    free(c.kept);
    where_free(w);
    field_list_free(&fields);
    return n_kept;
}

TEST(expressions_keep_what_where_holds_keeps)
{
    uint64_t n_kept = 0, n_all = 0;
    for (uint64_t seed = 0; seed < (check_long() ? 400 : 30); seed++) {
        const uint32_t n = (uint32_t)(check_mix(seed, 3) % (seed % 10 == 4 ? MAX_DOCUMENTS : 300));
        const uint32_t own = (uint32_t)(seed % N_SORTS);
        column_model columns[N_SORTS];
        for (uint32_t i = 0; i < N_SORTS; i++) {
            columns[i] = make_column(check_mix(seed, i), i, n);
            snprintf(columns[i].name, sizeof columns[i].name, "c%u", i);
        }
        tokmap_dataset *ds = make_dataset("P", n, &columns[own]);
        for (uint32_t i = 0; i < N_SORTS; i++)
            if (i != own)
                add_column(ds, &columns[i], true);
        for (int k = 0; k < (n > 1000 ? 10 : 60); k++) {
            text_buffer t = {.n = 0};
            add_expression(&t, columns, n, 3);
            n_kept += compare_with_oracle(ds, t.s, columns, n);
            n_all += n;
        }
        for (uint32_t i = 0; i < N_SORTS; i++) {
            free_column(&columns[i]);
            unlink(check_path((char[16]){'P', '.', 'c', (char)('0' + i), '.', 't', 'm', 'c', 0}));
        }
        tokmap_dataset_close(ds);
    }
    CHECK(n_kept > n_all / 5 && n_kept < n_all * 4 / 5);
}

TEST(expressions_that_cannot_be_evaluated_are_refused)
{
    column_model own = make_column(2, 6, 9);
    strcpy(own.name, "lang");
    tokmap_dataset *ds = make_dataset("P", 9, &own);
    chosen c = {calloc(10, 1), 0};
    tokmap_error err;
    CHECK_REFUSED(tokmap_dataset_select(ds, "lang ==", take_kept, &c, &err), TOKMAP_ERR_ARGUMENT,
                  err, "where: character 8: expected a field");
    CHECK_REFUSED(tokmap_dataset_select(ds, "lang > 3", take_kept, &c, &err), TOKMAP_ERR_ARGUMENT,
                  err, "where: character 1: compares a string with a number");
    CHECK_REFUSED(tokmap_dataset_select(ds, "lang", take_kept, &c, &err), TOKMAP_ERR_ARGUMENT, err,
                  "compares a string with a number");
    CHECK_REFUSED(tokmap_dataset_select(ds, "lamg == 'x'", take_kept, &c, &err),
                  TOKMAP_ERR_ARGUMENT, err, "there is no column 'lamg'; did you mean 'lang'?");
    CHECK_REFUSED(tokmap_dataset_select(ds, "meta.lang == 'x'", take_kept, &c, &err),
                  TOKMAP_ERR_ARGUMENT, err, "there is no column 'meta.lang'");
    CHECK_EQ(c.n_documents, 0);
    free(c.kept);
    free_column(&own);
    tokmap_dataset_close(ds);
}

/* ---- Damage ---- */

/* The header or a checksum covers every byte, so that reading all of it finds any change. */
TEST(every_damaged_byte_is_found)
{
    const uint32_t n = 300;
    tokmap_dataset *ds = make_dataset("P", n, NULL);
    uint32_t n_flips = 0, n_by_select = 0;
    for (uint32_t sort = 0; sort < N_SORTS; sort++) {
        column_model model = make_column(sort + 50, sort, n);
        strcpy(model.name, "late");
        add_column(ds, &model, true);
        const char *const path = check_path("P.late.tmc");
        const bool is_string = sort == 6 || sort == 7;
        const char *const text = is_string ? "late > \"3\"" : "late > 0";
        size_t n_bytes;
        char *bytes = read_file(path, &n_bytes);
        const int fd = open(path, O_RDWR);
        CHECK(fd >= 0);
        for (size_t at = 0; at < n_bytes; at += 1 + check_below(check_long() ? 1 : 4)) {
            const char bad = (char)(bytes[at] ^ 1 << check_below(8));
            tokmap_column *c;
            tokmap_error err;
            chosen kept = {calloc(n, 1), 0};
            CHECK(kept.kept && pwrite(fd, &bad, 1, (off_t)at) == 1);
            tokmap_status status = tokmap_column_open(&c, ds, "late", &err);
            if (!status)
                status = tokmap_column_verify(c, NULL, NULL, &err);
            if (status == TOKMAP_OK)
                CHECK_FAIL("sort %u, byte %zu", sort, at);
            CHECK_SAYS(err.text, path);
            tokmap_column_close(c);
            CHECK(tokmap_dataset_select(ds, text, take_kept, &kept, &err) != TOKMAP_OK);
            CHECK_SAYS(err.text, path);
            n_by_select++;
            free(kept.kept);
            CHECK(pwrite(fd, &bytes[at], 1, (off_t)at) == 1);
            n_flips++;
        }
        close(fd);
        compare_with_oracle(ds, text, (column_model[N_SORTS]){[0] = model}, n);
        free(bytes);
        free_column(&model);
    }
    printf("note %u damaged bytes: %u found by verify, %u by an expression\n", n_flips, n_flips,
           n_by_select);
    tokmap_dataset_close(ds);
}

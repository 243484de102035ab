/* SPDX-License-Identifier: Apache-2.0 */
/* test_values - values of documents: what is written is read, in the form that the format asks for.
 * A table in memory is the model. */
#include <sys/resource.h>
#include <sys/wait.h>

#include "support/bad_days.h"
#include "support/must.h"
#include "support/check.h"

enum {
    MAX_COLUMNS = 6,
    MAX_TEXT = 24
};

/* ---- The model ---- */

typedef struct cell {
    tokmap_value_type type;
    int64_t integer;
    double real;
    char text[MAX_TEXT];
    size_t text_bytes;
} cell;

typedef struct table {
    uint32_t n_columns, n_documents;
    char names[MAX_COLUMNS][16];
    cell *cells; /* of a document, then of the next */
} table;

static cell *cell_of(const table *t, uint32_t document, uint32_t column)
{
    return &t->cells[document * t->n_columns + column];
}

/* Sort of a column: integers, reals, both, few words, many words, nothing. */
static cell make_cell(uint64_t random, uint32_t sort, uint32_t nulls_in_8)
{
    cell c = {.type = TOKMAP_VALUE_NULL};
    if (sort == 5 || random % 8 < nulls_in_8)
        return c;
    random /= 8;
    c.type = sort >= 3                                ? TOKMAP_VALUE_STRING
             : sort == 1 || (sort == 2 && random % 2) ? TOKMAP_VALUE_FLOAT64
                                                      : TOKMAP_VALUE_INT64;
    c.integer = sort == 0 ? (int64_t)(random << 5) : (int64_t)(random % 1000) - 500;
    c.real = (double)(int64_t)(random << 5) / 1024;
    c.text_bytes = (size_t)snprintf(c.text, sizeof c.text, "%" PRIu64,
                                    sort == 3 ? random % 7 : random % 1000000007);
    if (random % 11 == 0)
        c.text_bytes = 0;
    return c;
}

static table make_table(uint64_t seed)
{
    table t = {.n_columns = 1 + (uint32_t)(check_mix(seed, 1) % MAX_COLUMNS),
               .n_documents = (uint32_t)(check_mix(seed, 2) % (seed % 10 == 0 ? 40000 : 300))};
    t.cells = calloc((size_t)t.n_documents * t.n_columns + 1, sizeof *t.cells);
    CHECK(t.cells != NULL);
    for (uint32_t i = 0; i < t.n_columns; i++) {
        const uint32_t sort = (uint32_t)(check_mix(seed, 100 + i) % 6);
        const uint32_t nulls = (uint32_t)(check_mix(seed, 200 + i) % 9) / 2 * 2;
        snprintf(t.names[i], sizeof t.names[i], "column %u", (i * 5 + (uint32_t)seed) % 97);
        for (uint32_t d = 0; d < t.n_documents; d++)
            *cell_of(&t, d, i) = make_cell(check_mix(seed ^ d, 300 + i), sort, nulls);
    }
    return t;
}

static tokmap_writer *open_writer(const char *name, tokmap_error *err)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .replace = 1};
    tokmap_writer *w;
    return tokmap_writer_open(&w, check_path(name), &options, err) ? NULL : w;
}

static tokmap_status set_names(tokmap_writer *w, const table *t, tokmap_error *err)
{
    const char *names[MAX_COLUMNS];
    for (uint32_t i = 0; i < t->n_columns; i++)
        names[i] = t->names[i];
    return tokmap_writer_set_meta_columns(w, names, t->n_columns, err);
}

static tokmap_status add_documents(tokmap_writer *w, const table *t, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (uint32_t d = 0; !status && d < t->n_documents; d++) {
        tokmap_value row[MAX_COLUMNS];
        bool any = false;
        for (uint32_t i = 0; i < t->n_columns; i++) {
            const cell *c = cell_of(t, d, i);
            row[i] = (tokmap_value){c->type, c->integer, c->real, c->text, c->text_bytes};
            any |= c->type != TOKMAP_VALUE_NULL;
        }
        const uint32_t ids[2] = {d % 1000, 7};
        status = tokmap_writer_append(w, ids, d % 3, err);
        if (!status && (any || d % 2))
            status = tokmap_writer_add_meta(w, row, t->n_columns, err);
        if (!status)
            status = tokmap_writer_end_document(w, err);
    }
    return status;
}

static void write_table(const char *name, const table *t)
{
    tokmap_error err;
    tokmap_writer *w = open_writer(name, &err);
    CHECK(w != NULL);
    if (set_names(w, t, &err) || add_documents(w, t, &err) || tokmap_writer_finish(w, &err))
        CHECK_FAIL("%s", err.text);
    tokmap_writer_close(w);
}

/* ---- What a dataset must say about it ---- */

static tokmap_value_type wanted_type(const table *t, uint32_t column)
{
    tokmap_value_type type = TOKMAP_VALUE_NULL;
    for (uint32_t d = 0; d < t->n_documents; d++)
        if (cell_of(t, d, column)->type > type) /* float64 after int64; strings stand alone */
            type = cell_of(t, d, column)->type;
    return type;
}

static void expect_value(const cell *c, tokmap_value_type type, const tokmap_value *is)
{
    if (c->type == TOKMAP_VALUE_NULL) {
        CHECK_INT(is->type, TOKMAP_VALUE_NULL);
        return;
    }
    CHECK_INT(is->type, type);
    if (type == TOKMAP_VALUE_INT64)
        CHECK(is->integer == c->integer);
    if (type == TOKMAP_VALUE_FLOAT64)
        CHECK(is->real == (c->type == TOKMAP_VALUE_INT64 ? (double)c->integer : c->real));
    if (type == TOKMAP_VALUE_STRING)
        CHECK(is->text_bytes == c->text_bytes && memcmp(is->text, c->text, c->text_bytes) == 0);
}

static void expect_column(const tokmap_dataset *ds, const table *t, uint32_t column, uint32_t in_ds)
{
    tokmap_meta_column is = TOKMAP_INIT(tokmap_meta_column);
    const tokmap_value_type type = wanted_type(t, column);
    uint64_t n_nulls = 0;
    CHECK_INT(tokmap_dataset_get_meta_column(ds, in_ds, &is), TOKMAP_OK);
    CHECK_INT(is.type, type);
    CHECK_EQ(is.name_bytes, strlen(t->names[column]));
    CHECK(memcmp(is.name, t->names[column], is.name_bytes) == 0);
    for (uint32_t d = 0; d < t->n_documents; d++) {
        tokmap_value value;
        CHECK_INT(tokmap_dataset_get_meta(ds, in_ds, d, &value), TOKMAP_OK);
        expect_value(cell_of(t, d, column), type, &value);
        n_nulls += value.type == TOKMAP_VALUE_NULL;
        if (is.validity)
            CHECK((is.validity[d / 8] >> d % 8 & 1) == (value.type != TOKMAP_VALUE_NULL));
    }
    CHECK_EQ(is.n_nulls, n_nulls);
    CHECK((is.validity != NULL) == (n_nulls > 0 && type != TOKMAP_VALUE_NULL));
    CHECK((uintptr_t)is.values % 64 == 0 && (uintptr_t)is.codes % 64 == 0);
    CHECK((uintptr_t)is.offsets % 64 == 0 && (uintptr_t)is.validity % 64 == 0);
}

static void expect_table(const char *name, const table *t)
{
    tokmap_dataset *ds = must_be_sound(check_path(name));
    const tokmap_dataset_info info = must_info(ds);
    CHECK_EQ(info.n_meta_columns, t->n_columns);
    CHECK_EQ(info.n_documents, t->n_documents);
    for (uint32_t i = 0; i < t->n_columns; i++)
        expect_column(ds, t, i, i);
    tokmap_dataset_close(ds);
    CHECK(!file_is_there(with_suffix(check_path(name), ".tmv.partial")));
    CHECK(!file_is_there(with_suffix(check_path(name), ".tmi.partial")));
}

TEST(what_was_written_is_read)
{
    const uint64_t n = check_long() ? 400 : 60;
    for (uint64_t seed = 0; seed < n; seed++) {
        table t = make_table(seed);
        write_table("p", &t);
        expect_table("p", &t);
        free(t.cells);
    }
}

/* ---- Forms ---- */

/* n documents, each with its own string of `width` digits, and the same again. */
static tokmap_meta_column column_of_strings(uint32_t n, int width, tokmap_dataset **ds)
{
    tokmap_error err;
    const char *name = "s";
    tokmap_writer *w = open_writer("p", &err);
    tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
    CHECK(w != NULL);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_OK);
    for (uint32_t d = 0; d < 2 * n; d++) {
        char text[40];
        const tokmap_value v = {.type = TOKMAP_VALUE_STRING,
                                .text = text,
                                .text_bytes =
                                    (size_t)snprintf(text, sizeof text, "%0*u", width, d % n)};
        CHECK_INT(tokmap_writer_add_meta(w, &v, 1, &err), TOKMAP_OK);
        CHECK_INT(tokmap_writer_end_document(w, &err), TOKMAP_OK);
    }
    must_finish(w);
    CHECK_INT(tokmap_dataset_open(ds, check_path("p"), &err), TOKMAP_OK);
    CHECK_OK(tokmap_dataset_verify(*ds, NULL, NULL, &err), err);
    tokmap_dataset_get_meta_column(*ds, 0, &column);
    return column;
}

TEST(few_strings_become_a_dictionary)
{
    static const struct {
        uint32_t n;
        uint32_t code_bytes;
    } cases[] = {{1, 1}, {256, 1}, {257, 2}, {65536, 2}, {65537, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tokmap_dataset *ds;
        const tokmap_meta_column column = column_of_strings(cases[i].n, 20, &ds);
        CHECK_EQ(column.code_bytes, cases[i].code_bytes);
        CHECK_EQ(column.n_strings, cases[i].code_bytes ? cases[i].n : 2 * cases[i].n);
        for (uint32_t d = 0; d < 2 * cases[i].n; d += 1 + cases[i].n / 100) {
            tokmap_value v;
            char text[40];
            snprintf(text, sizeof text, "%020u", d % cases[i].n);
            CHECK_INT(tokmap_dataset_get_meta(ds, 0, d, &v), TOKMAP_OK);
            CHECK(v.text_bytes == 20 && memcmp(v.text, text, 20) == 0);
        }
        tokmap_dataset_close(ds);
    }
}

/* ---- Refusals ---- */

static tokmap_value integer(int64_t x)
{
    return (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = x};
}

static tokmap_value real(double x)
{
    return (tokmap_value){.type = TOKMAP_VALUE_FLOAT64, .real = x};
}

static tokmap_value string(const char *s)
{
    return (tokmap_value){.type = TOKMAP_VALUE_STRING, .text = s, .text_bytes = strlen(s)};
}

/* Two documents with these values. */
static void expect_two(tokmap_value a, tokmap_value b, tokmap_status wanted, const char *words)
{
    tokmap_error err;
    const char *name = "score";
    tokmap_writer *w = open_writer("p", &err);
    CHECK(w != NULL);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_meta(w, &a, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, &err), TOKMAP_OK);
    CHECK_REFUSED(tokmap_writer_add_meta(w, &b, 1, &err), wanted, err, words);
    tokmap_writer_close(w);
    CHECK(!file_is_there(with_suffix(check_path("p"), ".tmv.partial")));
}

TEST(a_value_that_does_not_go_with_its_column_is_refused_by_name)
{
    const tokmap_status bad = TOKMAP_ERR_ARGUMENT;
    expect_two(integer(3), string("high"), bad,
               "column 'score' is a number in document 0, but the string 'high' in document 1");
    expect_two(string("high"), real(0.5), bad,
               "column 'score' is a string in document 0, but the number 0.5 in document 1");
    expect_two(string("high"), integer(INT64_MAX), bad,
               "column 'score' is a string in document 0, but the number 9223372036854775807 in "
               "document 1");
    expect_two(integer(INT64_MAX), real(0.5), bad,
               "column 'score' is 9223372036854775807 in document 0, which is not exact as a "
               "float64, and has a float64 in document 1");
    expect_two(real(0.5), integer((INT64_C(1) << 53) + 1), bad,
               "column 'score' is 9007199254740993 in document 1");
    expect_two(real(0.5), integer(INT64_C(1) << 53), TOKMAP_OK, "");
    expect_two(real(0.5), integer(INT64_MIN), TOKMAP_OK, "");
    expect_two(integer(INT64_MAX), integer(INT64_MIN + 1), TOKMAP_OK, "");
    char *text = calloc(1, 65537);
    CHECK(text != NULL);
    tokmap_value long_text = {.type = TOKMAP_VALUE_STRING, .text = text, .text_bytes = 65536};
    expect_two(string(""), long_text, TOKMAP_OK, "");
    long_text.text_bytes++;
    expect_two(string(""), long_text, bad,
               "column 'score' has a string of 65537 bytes in document 1");
    free(text);
    expect_two(integer(1), (tokmap_value){.type = (tokmap_value_type)4}, bad, "no type 4");
}

static void expect_columns(const char *const *names, uint32_t n, tokmap_status wanted,
                           const char *words)
{
    tokmap_error err = {.status = TOKMAP_OK};
    tokmap_writer *w = open_writer("p", &err);
    CHECK(w != NULL);
    CHECK_REFUSED(tokmap_writer_set_meta_columns(w, names, n, &err), wanted, err, words);
    tokmap_writer_close(w);
}

TEST(bad_columns_are_refused)
{
    char many[65][8], longest[257];
    const char *names[65];
    for (uint32_t i = 0; i < 65; i++) {
        snprintf(many[i], sizeof many[i], "c%u", i);
        names[i] = many[i];
    }
    memset(longest, 'a', sizeof longest);
    longest[256] = 0;
    const char *too_long = longest, *fits = longest + 1;
    const char *twice[] = {"a", "b", "a"}, *empty = "", *no_utf8 = "a\xff", *cut = "\xe2\x82";
    const char *surrogate = "\xed\xa0\x80", *good = "\xf0\x9f\x98\x80 \xc3\xa9 \xe0\xa4\x85";
    expect_columns(names, 64, TOKMAP_OK, "");
    expect_columns(names, 65, TOKMAP_ERR_ARGUMENT, "65 columns of values; the limit is 64");
    expect_columns(&fits, 1, TOKMAP_OK, "");
    expect_columns(&good, 1, TOKMAP_OK, "");
    expect_columns(&too_long, 1, TOKMAP_ERR_ARGUMENT, "the name of column 0");
    expect_columns(twice, 3, TOKMAP_ERR_ARGUMENT, "there are two columns 'a'");
    expect_columns(&empty, 1, TOKMAP_ERR_ARGUMENT, "the name of column 0");
    expect_columns(&no_utf8, 1, TOKMAP_ERR_ARGUMENT, "the name of column 0");
    expect_columns(&cut, 1, TOKMAP_ERR_ARGUMENT, "the name of column 0");
    expect_columns(&surrogate, 1, TOKMAP_ERR_ARGUMENT, "the name of column 0");
}

TEST(calls_out_of_order_are_refused)
{
    tokmap_error err;
    const char *name = "a";
    const tokmap_value one = integer(1);
    tokmap_writer *w = open_writer("p", &err);
    CHECK_INT(tokmap_writer_end_document(w, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "1 documents have ended without columns of values");
    tokmap_writer_close(w);
    w = open_writer("p", &err);
    CHECK_INT(tokmap_writer_add_meta(w, &one, 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "1 values for document 0, but there are 0 columns");
    tokmap_writer_close(w);
    w = open_writer("p", &err);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_meta(w, &one, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_meta(w, &one, 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "document 0 already has its values");
    tokmap_writer_close(w);
    w = open_writer("p", &err);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_meta(w, &one, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "document 0 has values, but has not ended");
    tokmap_writer_close(w);
    w = open_writer("p", &err);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
}

static void write_one(const char *name, const char *column, tokmap_value value)
{
    tokmap_error err;
    tokmap_writer *w = open_writer(name, &err);
    CHECK(w != NULL);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &column, column ? 1 : 0, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_meta(w, &value, column ? 1 : 0, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, &err), TOKMAP_OK);
    must_finish(w);
}

static void expect_merge(tokmap_status wanted, const char *words)
{
    tokmap_error err = {.status = TOKMAP_OK};
    tokmap_writer *w = open_writer("m", &err);
    tokmap_status status = TOKMAP_OK;
    CHECK(w != NULL);
    for (int i = 0; !status && i < 2; i++) {
        tokmap_dataset *ds = must_open(check_path(i ? "b" : "a"));
        status = tokmap_writer_append_dataset(w, ds, &err);
        tokmap_dataset_close(ds);
    }
    CHECK_INT(status, wanted);
    CHECK_INT(err.status, wanted);
    CHECK_SAYS(err.text, words);
    tokmap_writer_close(w);
}

TEST(datasets_with_other_columns_are_not_appended)
{
    const tokmap_status bad = TOKMAP_ERR_MISMATCH;
    write_one("a", "x", integer(1));
    write_one("b", "x", real(0.5));
    expect_merge(TOKMAP_OK, "");
    write_one("b", "x", (tokmap_value){.type = TOKMAP_VALUE_NULL});
    expect_merge(TOKMAP_OK, "");
    write_one("b", "y", integer(1));
    expect_merge(bad, "has no column 'x' of values, but the output has one");
    write_one("b", NULL, integer(1));
    expect_merge(bad, "has no column 'x' of values, but the output has one");
    write_one("b", "x", string("s"));
    expect_merge(bad, "column 'x' has strings, but in the output it has numbers");
    write_one("a", NULL, integer(1));
    expect_merge(bad, "has a column 'x' of values, but the output has none");
    write_one("a", "x", integer((INT64_C(1) << 53) + 1));
    write_one("b", "x", real(0.5));
    expect_merge(bad, "column 'x' is 9007199254740993 in document 0, which is not exact");
}

/* ---- Resuming ---- */

static tokmap_writer *open_resumable(tokmap_unfinished unfinished)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = 1000,
                                           .resumable = 1,
                                           .unfinished = unfinished};
    return must_begin(check_path("r"), &options);
}

/* Two documents, a checkpoint within the third, whose values are given before it. */
static void leave_unfinished(const char *const *names, uint32_t n)
{
    const tokmap_value row[] = {integer(1), string("s")};
    tokmap_writer *w = open_resumable(TOKMAP_UNFINISHED_DISCARD);
    CHECK_INT(tokmap_writer_set_meta_columns(w, names, n, NULL), TOKMAP_OK);
    for (int d = 0; d < 3; d++) {
        const uint32_t id = 5;
        CHECK_INT(tokmap_writer_append(w, &id, 1, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_writer_add_meta(w, row, n, NULL), TOKMAP_OK);
        if (d < 2)
            CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    }
    CHECK_INT(tokmap_writer_checkpoint(w, "", 0, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    CHECK(file_is_there(with_suffix(check_path("r"), ".tmv.partial")) == (n > 0));
}

static void expect_resume(const char *const *names, uint32_t n, const char *words)
{
    tokmap_error err = {.status = TOKMAP_OK};
    tokmap_writer *w = open_resumable(TOKMAP_UNFINISHED_RESUME);
    tokmap_status status = names ? tokmap_writer_set_meta_columns(w, names, n, &err) : TOKMAP_OK;
    if (!status)
        status = tokmap_writer_end_document(w, &err);
    CHECK_INT(status, words ? TOKMAP_ERR_MISMATCH : TOKMAP_OK);
    if (words && !strstr(err.text, words))
        CHECK_FAIL("%s", err.text);
    if (words)
        tokmap_writer_close(w);
    else
        must_finish(w);
}

TEST(a_dataset_is_resumed_with_the_columns_that_it_was_begun_with)
{
    static const char *const ab[] = {"a", "b"}, *const ba[] = {"b", "a"};
    leave_unfinished(ab, 2);
    expect_resume(ba, 2, "was begun with these columns of values: a, b;");
    expect_resume(ab, 1, "was begun with these columns of values: a, b;");
    expect_resume(NULL, 0, "was begun with these columns of values: a, b;");
    expect_resume(ab, 2, NULL);
    tokmap_value v;
    tokmap_dataset *ds = must_open(check_path("r"));
    CHECK(tokmap_dataset_get_meta(ds, 1, 1, &v) == TOKMAP_OK && v.type == TOKMAP_VALUE_STRING);
    CHECK(tokmap_dataset_get_meta(ds, 1, 2, &v) == TOKMAP_OK && v.type == TOKMAP_VALUE_NULL);
    tokmap_dataset_close(ds);
    unlink(with_suffix(check_path("r"), ".tmi"));
    unlink(with_suffix(check_path("r"), ".bin"));
    leave_unfinished(ab, 0);
    expect_resume(ab, 1, "was begun with these columns of values: none;");
    expect_resume(ab, 0, NULL);
}

/* ---- Many documents ---- */

/* Few words, which become a dictionary; many words; integers; reals with nulls. */
static tokmap_status add_one_of_many(tokmap_writer *w, uint32_t d, tokmap_error *err)
{
    static const char *const words[] = {"en", "de", "fr", "zh", "ja"};
    char url[40];
    snprintf(url, sizeof url, "https://example.org/%u", d * 2654435761u);
    const tokmap_value row[] = {string(words[check_mix(d, 1) % 5]), string(url), integer(d),
                                d % 3 ? real(d / 4.0) : (tokmap_value){.type = TOKMAP_VALUE_NULL}};
    const tokmap_status status = tokmap_writer_add_meta(w, row, 4, err);
    return status ? status : tokmap_writer_end_document(w, err);
}

static void write_many(uint32_t n)
{
    static const char *const names[] = {"lang", "url", "number", "score"};
    tokmap_error err;
    tokmap_writer *w = open_writer("p", &err);
    tokmap_status status = w ? tokmap_writer_set_meta_columns(w, names, 4, &err) : TOKMAP_ERR_IO;
    for (uint32_t d = 0; !status && d < n; d++)
        status = add_one_of_many(w, d, &err);
    if (!status)
        status = tokmap_writer_finish(w, &err);
    tokmap_writer_close(w);
    _exit(status ? 1 : 0);
}

TEST(memory_does_not_grow_with_documents)
{
    const uint32_t n = check_long() ? 10000000 : 1000000;
    const char *folder = check_dir(); /* made before the fork */
    struct rusage used;
    int status;
    if (check_sanitized())
        SKIP("sanitizers take memory of their own");
    const pid_t child = fork();
    if (child == 0)
        write_many(n);
    CHECK(folder && wait4(child, &status, 0, &used) == child && status == 0);
    printf("note %u documents: %ld MiB\n", n, used.ru_maxrss >> 10);
    CHECK(used.ru_maxrss < 48 << 10);
    tokmap_value v;
    tokmap_dataset *ds = must_be_sound(check_path("p"));
    for (uint32_t d = 0; d < n; d += 4999) {
        char url[40];
        snprintf(url, sizeof url, "https://example.org/%u", d * 2654435761u);
        CHECK_INT(tokmap_dataset_get_meta(ds, 1, d, &v), TOKMAP_OK);
        CHECK(v.text_bytes == strlen(url) && memcmp(v.text, url, v.text_bytes) == 0);
        CHECK(tokmap_dataset_get_meta(ds, 2, d, &v) == TOKMAP_OK && v.integer == d);
        CHECK(tokmap_dataset_get_meta(ds, 3, d, &v) == TOKMAP_OK &&
              (d % 3 == 0 || v.real == d / 4.0));
    }
    tokmap_dataset_close(ds);
}

TEST(an_adopted_file_can_have_values)
{
    static const uint16_t tokens[] = {1, 2, 3, 4, 5};
    const tokmap_adopt_options options = {
        .struct_size = sizeof options, .n_tokens = 5, .token_bytes = 2};
    const char *name = "score", *path = check_path("p.dat");
    tokmap_writer *w;
    tokmap_error err;
    const void *scanned;
    size_t n;
    CHECK(file_store(path, tokens, sizeof tokens));
    CHECK_INT(tokmap_writer_adopt(&w, path, &options, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_set_meta_columns(w, &name, 1, &err), TOKMAP_OK);
    while (tokmap_writer_scan(w, &scanned, &n, &err) == TOKMAP_OK)
        continue;
    for (int d = 0; d < 5; d++) {
        const tokmap_value v = integer(10 * d);
        CHECK_INT(tokmap_writer_add_meta(w, &v, 1, &err), TOKMAP_OK);
        CHECK_INT(tokmap_writer_add_document(w, 1, &err), TOKMAP_OK);
    }
    must_finish(w);
    tokmap_value v;
    tokmap_dataset *ds = must_open(path);
    CHECK_INT(tokmap_dataset_verify(ds, NULL, NULL, &err), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_get_meta(ds, 0, 4, &v), TOKMAP_OK);
    CHECK(v.type == TOKMAP_VALUE_INT64 && v.integer == 40);
    tokmap_dataset_close(ds);
    CHECK(!file_is_there(check_path("p.tmv.partial")));
}

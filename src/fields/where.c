/* SPDX-License-Identifier: Apache-2.0 */
/* An expression becomes a list of tests. Each says which test comes next if it holds and if it does
 * not, so that evaluation is a loop. While an expression is compiled, exits that are not known yet
 * are WHERE_TRUE and WHERE_FALSE: `and` connects the true exits of its left side with its right
 * side, `or` the false exits, and `not` exchanges the two. */
#include "fields/where.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_parts.h"
#include "base/moment.h"
#include "base/number.h"
#include "base/utf8.h"

typedef struct operand {
    bool is_field;
    size_t field;
    tokmap_value literal;
    size_t at; /* in the text */
} operand;

typedef struct test {
    unsigned accepts; /* bits of where.h */
    operand left, right;
    size_t if_true, if_false;
} test;

#define EXIT_HELD (SIZE_MAX - 2) /* replaces one of the two exits while they are exchanged */

struct where {
    size_t n_tests;
    test *tests;
    char *strings; /* of the literals; shorter than the text */
    char *text;
};

/* ---- Comparing ---- */

static bool is_number(const tokmap_value *v)
{
    return v->type == TOKMAP_VALUE_INT64 || (v->type == TOKMAP_VALUE_FLOAT64 && !isnan(v->real));
}

static int compare_strings(const tokmap_value *a, const tokmap_value *b)
{
    const size_t n_bytes = a->text_bytes < b->text_bytes ? a->text_bytes : b->text_bytes;
    const int c = n_bytes ? memcmp(a->text, b->text, n_bytes) : 0;
    return c ? c : (a->text_bytes > b->text_bytes) - (a->text_bytes < b->text_bytes);
}

static bool is_time(const tokmap_value *v)
{
    return v->type == TOKMAP_VALUE_INT64 && v->text_bytes != TIME_NONE;
}

static bool read_moment(const tokmap_value *v, moment *m)
{
    if (v->type == TOKMAP_VALUE_STRING)
        return moment_read(v->text, v->text_bytes, m);
    if (!is_time(v))
        return false;
    *m = moment_of(v->integer, (time_unit)v->text_bytes);
    return true;
}

/* Returns the order of two values; 0 if they cannot be compared. */
static unsigned order_values(const tokmap_value *a, const tokmap_value *b)
{
    const bool strings = a->type == TOKMAP_VALUE_STRING && b->type == TOKMAP_VALUE_STRING;
    moment x, y;
    int c;
    if (strings)
        c = compare_strings(a, b);
    else if ((is_time(a) || is_time(b)) && read_moment(a, &x) && read_moment(b, &y))
        c = moment_compare(x, y);
    else if (is_number(a) && is_number(b))
        c = number_compare(a, b);
    else
        return 0;
    return c < 0 ? WHERE_LESS : c > 0 ? WHERE_GREATER : WHERE_EQUAL;
}

static const tokmap_value *value_of(const operand *o, const tokmap_value *values)
{
    return o->is_field ? &values[o->field] : &o->literal;
}

static bool test_holds(const test *t, const tokmap_value *values)
{
    const tokmap_value *left = value_of(&t->left, values);
    if (t->accepts == WHERE_NULL || t->accepts == WHERE_NOT_NULL)
        return (left->type == TOKMAP_VALUE_NULL) == (t->accepts == WHERE_NULL);
    return order_values(left, value_of(&t->right, values)) & t->accepts;
}

bool where_holds(const where *w, const tokmap_value *values)
{
    size_t at = 0;
    while (at < w->n_tests)
        at = test_holds(&w->tests[at], values) ? w->tests[at].if_true : w->tests[at].if_false;
    return at == WHERE_TRUE;
}

bool where_fails_by(const where *w, size_t field, const tokmap_value *values)
{
    size_t at = 0;
    while (at < w->n_tests) {
        const test *t = &w->tests[at];
        if ((t->left.is_field && t->left.field != field) ||
            (t->right.is_field && t->right.field != field))
            return false;
        at = test_holds(t, values) ? t->if_true : t->if_false;
    }
    return at == WHERE_FALSE;
}

size_t where_n_tests(const where *w)
{
    return w->n_tests;
}

static size_t field_of(const operand *o)
{
    return o->is_field ? o->field : WHERE_NO_FIELD;
}

where_test where_get_test(const where *w, size_t number)
{
    const test *t = &w->tests[number];
    return (where_test){field_of(&t->left), field_of(&t->right), t->accepts, t->if_true,
                        t->if_false};
}

unsigned where_test_order(const where *w, size_t number, const tokmap_value *values)
{
    const test *t = &w->tests[number];
    const tokmap_value *left = value_of(&t->left, values), *right = value_of(&t->right, values);
    return order_values(left, right);
}

bool where_test_holds(const where *w, size_t number, const tokmap_value *values)
{
    return test_holds(&w->tests[number], values);
}

/* ---- Words of the expression ---- */

typedef enum token_kind {
    TOKEN_END,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_COMPARISON,
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_NOT,
    TOKEN_IS,
    TOKEN_IN,
    TOKEN_COMMA,
    TOKEN_NULL,
    TOKEN_FIELD,
    TOKEN_LITERAL
} token_kind;

typedef struct token {
    token_kind kind;
    size_t at;
    unsigned accepts; /* of a COMPARISON */
    size_t name_at;   /* of a FIELD: byte of the text */
    size_t name_bytes;
    tokmap_value literal; /* of a LITERAL */
} token;

typedef struct parser {
    const char *text; /* w->text */
    size_t at;        /* after `next` */
    token next;
    unsigned depth;
    size_t n_strings; /* bytes of w->strings */
    field_list *fields;
    where *w;
    failure *err;
} parser;

#define REFUSE(p, at, ...) (fail((p)->err, __VA_ARGS__) || field_fail_at((p)->err, (p)->text, at))

static bool is_word_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (uint8_t)c >= 0x80;
}

static bool is_word_part(char c)
{
    return is_word_start(c) || (c >= '0' && c <= '9');
}

static void read_word(parser *p, token *t)
{
    static const struct {
        const char *word;
        token_kind kind;
        int64_t integer;
    } words[] = {
        {"and", TOKEN_AND, 0},       {"or", TOKEN_OR, 0},     {"not", TOKEN_NOT, 0},
        {"is", TOKEN_IS, 0},         {"null", TOKEN_NULL, 0}, {"true", TOKEN_LITERAL, 1},
        {"false", TOKEN_LITERAL, 0}, {"in", TOKEN_IN, 0},
    };
    t->kind = TOKEN_FIELD;
    t->name_at = p->at;
    p->at += p->text[p->at] == '@';
    while (is_word_part(p->text[p->at]) ||
           (p->text[p->at] == '.' && is_word_start(p->text[p->at + 1])))
        p->at++;
    t->name_bytes = p->at - t->name_at;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) == t->name_bytes &&
            memcmp(p->text + t->name_at, words[i].word, t->name_bytes) == 0) {
            t->kind = words[i].kind;
            t->literal = (tokmap_value){.type = TOKMAP_VALUE_INT64, .integer = words[i].integer};
        }
    }
}

static bool read_quoted_name(parser *p, token *t)
{
    const char *end = strchr(p->text + p->at + 1, '`');
    if (!end)
        return REFUSE(p, t->at, "a name without its closing `");
    t->kind = TOKEN_FIELD;
    t->name_at = p->at + 1;
    t->name_bytes = (size_t)(end - p->text) - t->name_at;
    p->at = (size_t)(end - p->text) + 1;
    return true;
}

static bool read_number(parser *p, token *t)
{
    json_number n = NUMBER_BEGINS;
    while (json_number_step(&n, (uint8_t)p->text[p->at]))
        p->at++;
    if (!json_number_may_end(n))
        return REFUSE(p, p->at, "expected a digit");
    if (is_word_part(p->text[p->at]) || p->text[p->at] == '.')
        return REFUSE(p, p->at, "expected the end of the number");
    t->kind = TOKEN_LITERAL;
    t->literal = number_read(p->text + t->at, p->at - t->at);
    return true;
}

static bool read_string(parser *p, token *t)
{
    const char quote = p->text[p->at++];
    char *const begin = p->w->strings + p->n_strings;
    char *out = begin;
    while (p->text[p->at] != quote) {
        const char c = p->text[p->at], *const text = p->text + p->at + 1;
        if (!c)
            return REFUSE(p, t->at, "a string without its closing %c", quote);
        if ((uint8_t)c < 0x20)
            return REFUSE(p, p->at, "a control character in a string");
        json_escape e = {.text = {(uint8_t)c}, .n_bytes = 1};
        if (c == '\\' && *text == '\'')
            e = (json_escape){.text = {'\''}, .n_bytes = 1, .n_read = 1};
        else if (c == '\\')
            e = json_read_escape((const uint8_t *)text, strlen(text));
        if (e.why)
            return REFUSE(p, p->at, "%s", e.why);
        memcpy(out, e.text, e.n_bytes);
        out += e.n_bytes;
        p->at += 1 + e.n_read;
    }
    p->at++;
    t->kind = TOKEN_LITERAL;
    t->literal = (tokmap_value){
        .type = TOKMAP_VALUE_STRING, .text = begin, .text_bytes = (size_t)(out - begin)};
    p->n_strings += t->literal.text_bytes;
    return true;
}

static bool read_comparison(parser *p, token *t)
{
    static const struct {
        const char *sign;
        unsigned accepts;
    } signs[] = {
        {"==", WHERE_EQUAL}, {"!=", WHERE_LESS | WHERE_GREATER},  {"<=", WHERE_LESS | WHERE_EQUAL},
        {"<", WHERE_LESS},   {">=", WHERE_GREATER | WHERE_EQUAL}, {">", WHERE_GREATER}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t n_bytes = strlen(signs[i].sign);
        if (strncmp(p->text + p->at, signs[i].sign, n_bytes) == 0) {
            t->kind = TOKEN_COMPARISON;
            t->accepts = signs[i].accepts;
            p->at += n_bytes;
            return true;
        }
    }
    if (p->text[p->at] == '=')
        return REFUSE(p, p->at, "unknown sign; equal is ==");
    return REFUSE(p, p->at, "unknown sign");
}

/* Reads the next token into p->next. */
static bool advance(parser *p)
{
    while (json_is_space(p->text[p->at]))
        p->at++;
    const char c = p->text[p->at];
    token *t = &p->next;
    *t = (token){.at = p->at};
    if (!c)
        return true;
    if (c == '(' || c == ')' || c == ',') {
        t->kind = c == '(' ? TOKEN_OPEN : c == ')' ? TOKEN_CLOSE : TOKEN_COMMA;
        p->at++;
        return true;
    }
    if (is_word_start(c) || (c == '@' && is_word_start(p->text[p->at + 1]))) {
        read_word(p, t);
        return true;
    }
    if (c == '"' || c == '\'')
        return read_string(p, t);
    if (c == '`')
        return read_quoted_name(p, t);
    return c == '-' || is_word_part(c) ? read_number(p, t) : read_comparison(p, t);
}

/* ---- Parsing ---- */

static bool read_operand(parser *p, operand *o)
{
    const token *t = &p->next;
    const bool is_field = t->kind == TOKEN_FIELD || t->kind == TOKEN_IN; /* a field named in */
    *o = (operand){.is_field = is_field, .literal = t->literal, .at = t->at};
    if (t->kind == TOKEN_NULL)
        return REFUSE(p, t->at, "null is not a value; use `is null`");
    if (!is_field && t->kind != TOKEN_LITERAL)
        return REFUSE(p, t->at, "expected a field, a number or a string");
    if (o->is_field &&
        !field_list_add(p->fields, p->text + t->name_at, t->name_bytes, &o->field, p->err))
        return field_fail_at(p->err, p->text, t->name_at + p->err->place);
    return advance(p);
}

/* Reads what follows `is`. */
static bool read_is(parser *p, test *t)
{
    if (!t->left.is_field)
        return REFUSE(p, t->left.at, "expected a field before `is`");
    if (!advance(p))
        return false;
    t->accepts = p->next.kind == TOKEN_NOT ? WHERE_NOT_NULL : WHERE_NULL;
    if (t->accepts == WHERE_NOT_NULL && !advance(p))
        return false;
    t->right = t->left;
    if (p->next.kind != TOKEN_NULL)
        return REFUSE(p, p->next.at, "expected `null`");
    return advance(p);
}

static bool add_test(parser *p, const test *t)
{
    where *w = p->w;
    if (!array_grow(&w->tests, w->n_tests, sizeof *w->tests))
        return fail_memory(p->err);
    w->tests[w->n_tests++] = *t;
    return true;
}

/* Reads what follows the field: `in` and a list, each value of which becomes a test. */
static bool parse_list(parser *p, test *t)
{
    t->accepts = WHERE_EQUAL;
    if (!t->left.is_field)
        return REFUSE(p, t->left.at, "expected a field before `in`");
    if (!advance(p))
        return false;
    if (p->next.kind != TOKEN_OPEN)
        return REFUSE(p, p->next.at, "expected ( and a list of values after `in`");
    do {
        if (!advance(p))
            return false;
        if (p->next.kind != TOKEN_LITERAL)
            return REFUSE(p, p->next.at, "expected a number or a string");
        if (!read_operand(p, &t->right))
            return false;
        t->if_false = p->next.kind == TOKEN_COMMA ? p->w->n_tests + 1 : WHERE_FALSE;
        if (!add_test(p, t))
            return false;
    } while (p->next.kind == TOKEN_COMMA);
    if (p->next.kind != TOKEN_CLOSE)
        return REFUSE(p, p->next.at, "expected , or )");
    return advance(p);
}

/* Whether an operand that this token follows stands alone. */
static bool ends_operand(token_kind kind)
{
    return kind == TOKEN_END || kind == TOKEN_CLOSE || kind == TOKEN_AND || kind == TOKEN_OR;
}

static bool parse_comparison(parser *p)
{
    test t = {.if_true = WHERE_TRUE, .if_false = WHERE_FALSE};
    if (!read_operand(p, &t.left))
        return false;
    if (t.left.is_field && ends_operand(p->next.kind)) {
        t.accepts = WHERE_LESS | WHERE_GREATER;
        t.right = (operand){.literal.type = TOKMAP_VALUE_INT64, .at = t.left.at};
        return add_test(p, &t);
    }
    t.accepts = p->next.accepts;
    if (p->next.kind == TOKEN_IS)
        return read_is(p, &t) && add_test(p, &t);
    if (p->next.kind == TOKEN_IN)
        return parse_list(p, &t);
    if (p->next.kind != TOKEN_COMPARISON)
        return REFUSE(p, p->next.at, "expected a comparison: == != < <= > >= `in` or `is`");
    if (!advance(p) || !read_operand(p, &t.right))
        return false;
    if (!t.left.is_field && !t.right.is_field)
        return REFUSE(p, t.left.at, "a comparison of two values; one side is a field");
    return add_test(p, &t);
}

/* Replaces exits of the tests from number `begin` on. */
static void connect(where *w, size_t begin, size_t from, size_t to)
{
    for (test *t = w->tests + begin; t < w->tests + w->n_tests; t++) {
        t->if_true = t->if_true == from ? to : t->if_true;
        t->if_false = t->if_false == from ? to : t->if_false;
    }
}

static bool parse_or(parser *p);

static bool parse_not(parser *p)
{
    const size_t begin = p->w->n_tests;
    const token first = p->next;
    if (first.kind != TOKEN_NOT && first.kind != TOKEN_OPEN)
        return parse_comparison(p);
    if (++p->depth > WHERE_MAX_DEPTH)
        return REFUSE(p, first.at, "nested more than %d levels deep", WHERE_MAX_DEPTH);
    if (!advance(p) || !(first.kind == TOKEN_NOT ? parse_not(p) : parse_or(p)))
        return false;
    p->depth--;
    if (first.kind == TOKEN_NOT) {
        connect(p->w, begin, WHERE_TRUE, EXIT_HELD);
        connect(p->w, begin, WHERE_FALSE, WHERE_TRUE);
        connect(p->w, begin, EXIT_HELD, WHERE_FALSE);
        return true;
    }
    if (p->next.kind != TOKEN_CLOSE)
        return REFUSE(p, p->next.at, "expected `and`, `or` or )");
    return advance(p);
}

/* Reads operands joined by `and`, or by `or`. Only the exits of the last operand are still open:
 * the exits of the others are connected. */
static bool parse_chain(parser *p, bool (*parse)(parser *), token_kind kind, size_t exit)
{
    for (;;) {
        const size_t begin = p->w->n_tests;
        if (!parse(p))
            return false;
        if (p->next.kind != kind)
            return true;
        connect(p->w, begin, exit, p->w->n_tests);
        if (!advance(p))
            return false;
    }
}

static bool parse_and(parser *p)
{
    return parse_chain(p, parse_not, TOKEN_AND, WHERE_TRUE);
}

static bool parse_or(parser *p)
{
    return parse_chain(p, parse_and, TOKEN_OR, WHERE_FALSE);
}

static bool parse(parser *p)
{
    if (!advance(p) || !parse_or(p))
        return false;
    return p->next.kind == TOKEN_END || REFUSE(p, p->next.at, "expected `and`, `or` or the end");
}

/* ---- Expressions ---- */

where *where_compile(const char *text, field_list *fields, failure *err)
{
    parser p = {.fields = fields, .err = err};
    const size_t n_bytes = strlen(text);
    const size_t n_valid = utf8_valid_prefix((const uint8_t *)text, n_bytes);
    const bool fits = n_bytes <= WHERE_MAX_BYTES;
    p.w = calloc(1, sizeof *p.w);
    if (p.w) {
        p.w->strings = malloc(fits ? n_bytes + 1 : 1);
        p.text = p.w->text = strndup(text, WHERE_MAX_BYTES);
    }
    const bool has_memory = p.w && p.w->strings && p.w->text;
    const bool ok = !has_memory         ? fail_memory(err)
                    : !fits             ? REFUSE(&p, 0, "longer than %d bytes", WHERE_MAX_BYTES)
                    : n_valid < n_bytes ? REFUSE(&p, n_valid, "not UTF-8")
                                        : parse(&p);
    if (ok)
        return p.w;
    where_free(p.w);
    return NULL;
}

void where_free(where *w)
{
    if (!w)
        return;
    free(w->tests);
    free(w->strings);
    free(w->text);
    free(w);
}

static void hash_operand(const operand *o, tokmap_i_hasher *hasher)
{
    const tokmap_value *v = &o->literal;
    uint64_t parts[5] = {o->is_field, o->field, (uint64_t)v->type, (uint64_t)v->integer,
                         v->text_bytes};
    if (!o->is_field && v->type == TOKMAP_VALUE_FLOAT64)
        memcpy(&parts[3], &v->real, sizeof v->real);
    tokmap_i_hasher_add(hasher, parts, sizeof parts);
    if (!o->is_field && v->text)
        tokmap_i_hasher_add(hasher, v->text, v->text_bytes);
}

/* Returns what the test accepts if its operands change sides. */
static unsigned mirror(unsigned accepts)
{
    const unsigned less = accepts & WHERE_LESS ? WHERE_GREATER : 0;
    const unsigned greater = accepts & WHERE_GREATER ? WHERE_LESS : 0;
    return less | greater | (accepts & ~(unsigned)(WHERE_LESS | WHERE_GREATER));
}

void where_hash(const where *w, tokmap_i_hasher *hasher)
{
    for (const test *t = w->tests; t < w->tests + w->n_tests; t++) {
        const unsigned accepts = t->left.is_field ? t->accepts : mirror(t->accepts);
        const uint64_t parts[3] = {accepts, t->if_true, t->if_false};
        tokmap_i_hasher_add(hasher, parts, sizeof parts);
        hash_operand(t->left.is_field ? &t->left : &t->right, hasher);
        hash_operand(t->left.is_field ? &t->right : &t->left, hasher);
    }
}

static bool is_moment(const operand *o)
{
    moment m;
    return o->is_field || o->literal.type != TOKMAP_VALUE_STRING || read_moment(&o->literal, &m);
}

static tokmap_value_type type_of(const operand *o, const tokmap_value_type *types)
{
    return o->is_field ? types[o->field] : o->literal.type;
}

bool where_check_types(const where *w, const tokmap_value_type *types, failure *err)
{
    for (const test *t = w->tests; t < w->tests + w->n_tests; t++) {
        const tokmap_value_type left = type_of(&t->left, types), right = type_of(&t->right, types);
        const bool known = left != TOKMAP_VALUE_NULL && right != TOKMAP_VALUE_NULL;
        if (left == WHERE_TIME || right == WHERE_TIME) {
            if (is_moment(&t->left) && is_moment(&t->right))
                continue;
            fail(err, "compares a date or time with a string that is not one; write it as "
                      "2026-11-25 or 2026-11-25T08:30:00Z");
            return field_fail_at(err, w->text, t->left.at);
        }
        if (known && (left == TOKMAP_VALUE_STRING) != (right == TOKMAP_VALUE_STRING)) {
            fail(err, "compares a %s with a %s", left == TOKMAP_VALUE_STRING ? "string" : "number",
                 right == TOKMAP_VALUE_STRING ? "string" : "number");
            return field_fail_at(err, w->text, t->left.at);
        }
    }
    return true;
}

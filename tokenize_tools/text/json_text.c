#include "text/json_text.h"

#include <stdint.h>
#include <string.h>

#include "text/plain_text.h"
#include "text/utf8.h"

typedef struct scanner {
    const char *at, *end;
    const char *reason; /* set when a scan failed; `at` is then the place */
} scanner;

static bool scan_value(scanner *s, unsigned depth);

static bool refuse(scanner *s, const char *reason)
{
    s->reason = reason;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_space(scanner *s)
{
    while (s->at < s->end && is_space(*s->at))
        s->at++;
}

static bool take(scanner *s, char c)
{
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static size_t utf8_length(const char *text, size_t n)
{
    uint32_t code_point;
    return plain_text_utf8(text, n, &code_point);
}

/* Of bytes that begin no character: as many as one U+FFFD stands for. */
static size_t bad_length(const char *text, size_t n)
{
    const size_t length = utf8_bad_bytes((const uint8_t *)text, n);
    return length > 0 ? length : n;
}

static bool scan_hex4(scanner *s, uint32_t *out)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, s->at++) {
        char c = s->at < s->end ? *s->at : ' ';
        char lower = (char)(c | 0x20);
        if (is_digit(c))
            value = value * 16 + (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + (uint32_t)(lower - 'a') + 10;
        else
            return refuse(s, "\\u needs four hexadecimal digits");
    }
    *out = value;
    return true;
}

/* After the backslash. */
static bool scan_escape(scanner *s)
{
    char c = s->at < s->end ? *s->at : ' ';
    if (c == '\0' || !strchr("\"\\/bfnrtu", c))
        return refuse(s, "unknown escape");
    s->at++;
    if (c != 'u')
        return true;
    uint32_t unit, second;
    if (!scan_hex4(s, &unit))
        return false;
    if (unit < 0xd800 || unit > 0xdfff)
        return true;
    if (unit > 0xdbff || !take(s, '\\') || !take(s, 'u'))
        return refuse(s, "half of a surrogate pair");
    if (!scan_hex4(s, &second))
        return false;
    if (second < 0xdc00 || second > 0xdfff)
        return refuse(s, "half of a surrogate pair");
    return true;
}

static bool scan_string(scanner *s)
{
    if (!take(s, '"'))
        return refuse(s, "a string is needed here");
    while (s->at < s->end && *s->at != '"') {
        if ((unsigned char)*s->at < 0x20)
            return refuse(s, "a control character in a string");
        if (take(s, '\\')) {
            if (!scan_escape(s))
                return false;
            continue;
        }
        size_t length = utf8_length(s->at, (size_t)(s->end - s->at));
        if (length == 0)
            return refuse(s, "not UTF-8");
        s->at += length;
    }
    return take(s, '"') || refuse(s, "a string does not end");
}

static bool scan_digits(scanner *s)
{
    if (s->at == s->end || !is_digit(*s->at))
        return refuse(s, "a digit is needed here");
    while (s->at < s->end && is_digit(*s->at))
        s->at++;
    return true;
}

static bool scan_number(scanner *s)
{
    take(s, '-');
    if (!take(s, '0') && !scan_digits(s))
        return false;
    if (take(s, '.') && !scan_digits(s))
        return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+'))
            take(s, '-');
        return scan_digits(s);
    }
    return true;
}

static bool scan_word(scanner *s, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return refuse(s, "a value is needed here");
    s->at += n;
    return true;
}

static bool scan_key(scanner *s)
{
    skip_space(s);
    if (!scan_string(s))
        return false;
    skip_space(s);
    return take(s, ':') || refuse(s, "':' is needed here");
}

/* The members of an object or the elements of an array, from behind the opening bracket. */
static bool scan_items(scanner *s, unsigned depth, bool keys)
{
    char closing = keys ? '}' : ']';
    if (depth == JSON_TEXT_MAX_DEPTH)
        return refuse(s, "nested too deeply");
    skip_space(s);
    if (take(s, closing))
        return true;
    for (;;) {
        if ((keys && !scan_key(s)) || !scan_value(s, depth + 1))
            return false;
        if (take(s, closing))
            return true;
        if (!take(s, ','))
            return refuse(s, keys ? "',' or '}' is needed here" : "',' or ']' is needed here");
    }
}

/* A value and the white space around it. */
static bool scan_value(scanner *s, unsigned depth)
{
    bool ok;
    skip_space(s);
    switch (s->at < s->end ? *s->at : '\0') {
    case '{':
    case '[':
        s->at++;
        ok = scan_items(s, depth, s->at[-1] == '{');
        break;
    case '"':
        ok = scan_string(s);
        break;
    case 't':
        ok = scan_word(s, "true");
        break;
    case 'f':
        ok = scan_word(s, "false");
        break;
    case 'n':
        ok = scan_word(s, "null");
        break;
    default:
        if (s->at == s->end || (*s->at != '-' && !is_digit(*s->at)))
            return refuse(s, "a value is needed here");
        ok = scan_number(s);
        break;
    }
    skip_space(s);
    return ok;
}

static bool check(json_text_span text, bool only_object, json_text_error *err)
{
    scanner s = {text.text, text.text + text.n_bytes, NULL};
    skip_space(&s);
    bool ok = !only_object || (s.at < s.end && *s.at == '{') || refuse(&s, "not an object");
    ok = ok && scan_value(&s, 0);
    if (ok && s.at != s.end)
        ok = refuse(&s, "something stands behind the value");
    if (!ok && err) {
        err->offset = (size_t)(s.at - text.text);
        err->reason = s.reason;
    }
    return ok;
}

bool json_text_check(json_text_span text, json_text_error *err)
{
    return check(text, false, err);
}

bool json_text_check_object(json_text_span text, json_text_error *err)
{
    return check(text, true, err);
}

bool json_text_is_string(json_text_span value, const char *s)
{
    size_t n = strlen(s);
    return value.n_bytes == n + 2 && value.text[0] == '"' && memcmp(value.text + 1, s, n) == 0 &&
           value.text[n + 1] == '"';
}

bool json_text_find(json_text_span object, const char *key, json_text_span *value)
{
    scanner s = {object.text, object.text + object.n_bytes, NULL};
    skip_space(&s);
    if (!take(&s, '{'))
        return false;
    do {
        skip_space(&s);
        const char *name = s.at;
        if (!scan_string(&s))
            return false;
        json_text_span found = {name, (size_t)(s.at - name)};
        skip_space(&s);
        take(&s, ':');
        skip_space(&s);
        json_text_span member = {.text = s.at};
        if (!scan_value(&s, 1))
            return false;
        member.n_bytes = (size_t)(s.at - member.text);
        while (member.n_bytes && is_space(member.text[member.n_bytes - 1]))
            member.n_bytes--;
        if (json_text_is_string(found, key)) {
            *value = member;
            return true;
        }
    } while (take(&s, ','));
    return false;
}

/* The next byte that counts, or -1 at the end: white space outside of strings does not. A byte at a
 * time with two bits of state, so that no copy of the text is needed. */
typedef struct compact {
    json_text_span rest;
    bool in_string, escaped;
} compact;

static int compact_next(compact *c)
{
    while (c->rest.n_bytes) {
        char byte = *c->rest.text++;
        c->rest.n_bytes--;
        if (!c->in_string && is_space(byte))
            continue;
        if (c->escaped)
            c->escaped = false;
        else if (c->in_string && byte == '\\')
            c->escaped = true;
        else if (byte == '"')
            c->in_string = !c->in_string;
        return (unsigned char)byte;
    }
    return -1;
}

/* For characters that a terminal would interpret, all of them below U+10000. */
static void print_escape(FILE *out, const char *s, size_t length)
{
    uint32_t code_point = 0;
    plain_text_utf8(s, length, &code_point);
    fprintf(out, "\\u%04x", (unsigned)code_point);
}

void json_text_print(FILE *out, json_text_span text)
{
    compact c = {.rest = text};
    for (int byte = compact_next(&c); byte >= 0; byte = compact_next(&c)) {
        const char *at = c.rest.text - 1;
        size_t n = c.rest.n_bytes + 1, length = byte < 0x7f ? 1 : utf8_length(at, n);
        if (length && byte >= 0x7f && !plain_text_length(at, n)) {
            print_escape(out, at, length);
            c.rest.text += length - 1;
            c.rest.n_bytes -= length - 1;
        } else {
            putc(byte, out);
        }
    }
}

bool json_text_same(json_text_span a, json_text_span b)
{
    compact left = {.rest = a}, right = {.rest = b};
    for (;;) {
        int byte = compact_next(&left);
        if (byte != compact_next(&right))
            return false;
        if (byte < 0)
            return true;
    }
}

void json_text_print_string(FILE *out, const char *s, size_t n_bytes)
{
    putc('"', out);
    while (n_bytes) {
        size_t length = utf8_length(s, n_bytes);
        unsigned char c = (unsigned char)*s;
        if (length == 0)
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (!plain_text_length(s, n_bytes))
            print_escape(out, s, length);
        else
            fwrite(s, 1, length, out);
        length = length ? length : bad_length(s, n_bytes);
        s += length;
        n_bytes -= length;
    }
    putc('"', out);
}

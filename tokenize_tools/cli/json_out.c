/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/json_parts.h"
#include "base/plain_text.h"
#include "base/utf8.h"

void json_out_key(json_out *o, const char *key)
{
    fputs(o->follows ? ", " : "", o->out);
    if (key)
        fprintf(o->out, "\"%s\": ", key);
    o->follows = true;
}

void json_out_begin(json_out *o, const char *key, char bracket)
{
    json_out_key(o, key);
    putc(bracket, o->out);
    o->follows = false;
}

void json_out_end(json_out *o, char bracket)
{
    putc(bracket, o->out);
    o->follows = true;
}

json_out json_out_begin_result(FILE *out)
{
    json_out o = {.out = out};
    json_out_begin(&o, NULL, '{');
    json_out_number(&o, "schema_version", 1);
    return o;
}

void json_out_print(json_out *o, const char *key, const char *format, ...)
{
    va_list args;
    json_out_key(o, key);
    va_start(args, format);
    vfprintf(o->out, format, args);
    va_end(args);
}

void json_out_text(json_out *o, const char *key, const char *s, size_t n_bytes)
{
    json_out_key(o, key);
    if (s)
        json_text_print_string(o->out, s, n_bytes);
    else
        fputs("null", o->out);
}

void json_out_string(json_out *o, const char *key, const char *s)
{
    json_out_text(o, key, s, s ? strlen(s) : 0);
}

void json_out_known(json_out *o, const char *key, uint64_t value, bool is_known)
{
    if (is_known)
        json_out_print(o, key, "%" PRIu64, value);
    else
        json_out_print(o, key, "null");
}

void json_out_number(json_out *o, const char *key, uint64_t value)
{
    json_out_known(o, key, value, true);
}

void json_out_bool(json_out *o, const char *key, bool value)
{
    json_out_print(o, key, value ? "true" : "false");
}

void json_out_hash(json_out *o, const char *key, uint64_t hash)
{
    json_out_print(o, key, "\"%016" PRIx64 "\"", hash);
}

/* ---- JSON text ---- */

/* Prints the first character of s: unchanged if it is plain, else as an escape (characters that
 * are not plain are below U+10000). What is not UTF-8 becomes U+FFFD. Returns the length of what is
 * printed. */
static size_t print_character(FILE *out, const char *s, size_t n_bytes)
{
    uint32_t code_point;
    const size_t length = utf8_decode((const uint8_t *)s, n_bytes, &code_point);
    if (length && plain_text_length(s, n_bytes))
        fwrite(s, 1, length, out);
    else
        fprintf(out, "\\u%04x", length ? (unsigned)code_point : 0xfffd);
    if (length)
        return length;
    const size_t n_bad = utf8_bad_bytes((const uint8_t *)s, n_bytes);
    return n_bad ? n_bad : n_bytes; /* a character that is cut off by the end of the text */
}

void json_text_print(FILE *out, json_text_span text)
{
    bool in_string = false, escaped = false;
    for (size_t i = 0, n; i < text.n_bytes; i += n) {
        const char c = text.text[i];
        n = 1;
        if (!in_string && json_is_space(c))
            continue;
        if ((unsigned char)c < 0x7f)
            putc(c, out);
        else
            n = print_character(out, text.text + i, text.n_bytes - i);
        in_string ^= c == '"' && !escaped;
        escaped = in_string && !escaped && c == '\\';
    }
}

void json_text_print_string(FILE *out, const char *s, size_t n_bytes)
{
    putc('"', out);
    while (n_bytes) {
        size_t length = 1;
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s == '\n')
            fputs("\\n", out);
        else if (*s == '\t')
            fputs("\\t", out);
        else
            length = print_character(out, s, n_bytes);
        s += length;
        n_bytes -= length;
    }
    putc('"', out);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/json_parts.h"

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

void json_text_print(FILE *out, json_text_span text)
{
    bool in_string = false, escaped = false;
    for (size_t i = 0, n; i < text.n_bytes; i += n) {
        const char c = text.text[i];
        char shown[JSON_ESCAPED_BYTES] = {c};
        size_t n_shown = 1;
        n = 1;
        if (!in_string && json_is_space(c))
            continue;
        if ((unsigned char)c >= 0x7f)
            n = json_text_character(text.text + i, text.n_bytes - i, shown, &n_shown);
        fwrite(shown, 1, n_shown, out);
        in_string ^= c == '"' && !escaped;
        escaped = in_string && !escaped && c == '\\';
    }
}

void json_text_print_string(FILE *out, const char *s, size_t n_bytes)
{
    putc('"', out);
    while (n_bytes) {
        char escaped[JSON_ESCAPED_BYTES];
        size_t n_escaped;
        const size_t length = json_text_escape(s, n_bytes, escaped, &n_escaped);
        fwrite(escaped, 1, n_escaped, out);
        s += length;
        n_bytes -= length;
    }
    putc('"', out);
}

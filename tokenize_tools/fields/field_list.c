/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/field_list.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

static const char no_memory[] = "out of memory";

bool field_fail(field_error *err, const char *text, size_t at, const char *format, ...)
{
    va_list args;
    err->character = 1;
    for (size_t i = 0; i < at; i++)
        err->character += ((uint8_t)text[i] & 0xc0) != 0x80;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (strcmp(err->text, no_memory) == 0)
        err->character = 0;
    return false;
}

void field_list_free(field_list *l)
{
    for (size_t i = 0; i < l->n_fields; i++)
        free(l->names[i]);
    *l = (field_list){0};
}

size_t field_list_find(const field_list *l, const char *name, size_t n_bytes)
{
    size_t i = 0;
    while (i < l->n_fields &&
           !(strlen(l->names[i]) == n_bytes && memcmp(l->names[i], name, n_bytes) == 0))
        i++;
    return i;
}

/* Sets *at to the byte that is wrong. */
static const char *check_name(const char *name, size_t n_bytes, size_t *at)
{
    *at = 0;
    if (n_bytes > FIELD_NAME_MAX)
        return "the name has more than 255 bytes";
    for (size_t i = 0; i <= n_bytes; i++) {
        bool begins = i == 0 || name[i - 1] == '.', ends = i == n_bytes || name[i] == '.';
        bool blank = i < n_bytes && name[i] == ' ' && (i == 0 || i == n_bytes - 1);
        *at = i;
        if (begins && ends)
            return n_bytes ? "a part of the name is empty" : "expected the name of a field";
        if (blank)
            return "a blank beside the name";
        if (i < n_bytes && ((uint8_t)name[i] < ' ' || name[i] == 0x7f))
            return "a control character in the name";
    }
    return NULL;
}

const char *field_list_add(field_list *l, const char *name, size_t n_bytes, size_t *index,
                           size_t *at)
{
    const char *reason = check_name(name, n_bytes, at);
    if (reason)
        return reason;
    *at = 0;
    *index = field_list_find(l, name, n_bytes);
    if (*index < l->n_fields)
        return NULL;
    if (*index == FIELD_LIST_MAX)
        return "more than 64 fields";
    l->names[*index] = strndup(name, n_bytes);
    if (!l->names[*index])
        return no_memory;
    l->n_fields++;
    return NULL;
}

bool field_list_parse(field_list *l, const char *text, field_error *err)
{
    size_t text_bytes = strlen(text);
    size_t n_valid = utf8_valid_prefix((const uint8_t *)text, text_bytes);
    if (n_valid < text_bytes)
        return field_fail(err, text, n_valid, "not UTF-8");
    for (const char *name = text;; name++) {
        size_t n_bytes = strcspn(name, ","), n_before = l->n_fields, index, at;
        const char *reason = field_list_add(l, name, n_bytes, &index, &at);
        if (!reason && l->n_fields == n_before)
            reason = "the field is already in the list";
        if (reason) {
            field_list_free(l);
            return field_fail(err, text, (size_t)(name - text) + at, "%s", reason);
        }
        name += n_bytes;
        if (!*name)
            return true;
    }
}

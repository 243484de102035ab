/* SPDX-License-Identifier: Apache-2.0 */
#include "fields/field_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

bool field_fail_at(failure *err, const char *text, size_t at)
{
    err->place = 1;
    for (size_t i = 0; i < at; i++)
        err->place += ((uint8_t)text[i] & 0xc0) != 0x80;
    return false;
}

void field_list_free(field_list *l)
{
    for (size_t i = 0; i < l->n_fields; i++)
        free(l->names[i]);
    *l = (field_list){0};
}

uint64_t field_list_bits(const field_list *l)
{
    return l->n_fields == FIELD_LIST_MAX ? UINT64_MAX : ((uint64_t)1 << l->n_fields) - 1;
}

size_t field_list_find(const field_list *l, const char *name, size_t n_bytes)
{
    size_t i = 0;
    while (i < l->n_fields &&
           !(strlen(l->names[i]) == n_bytes && memcmp(l->names[i], name, n_bytes) == 0))
        i++;
    return i;
}

/* Checks a name. Returns what is wrong, and sets *at to the wrong byte; NULL: nothing. */
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

bool field_list_add(field_list *l, const char *name, size_t n_bytes, size_t *index, failure *err)
{
    size_t at;
    const char *reason = check_name(name, n_bytes, &at);
    if (reason) {
        fail(err, "%s", reason);
        err->place = at;
        return false;
    }
    *index = field_list_find(l, name, n_bytes);
    if (*index < l->n_fields)
        return true;
    if (*index == FIELD_LIST_MAX)
        return fail(err, "more than 64 fields");
    l->names[*index] = strndup(name, n_bytes);
    if (!l->names[*index])
        return fail_memory(err);
    l->n_fields++;
    return true;
}

bool field_list_add_key(field_list *l, const char *name, size_t n_bytes, failure *err)
{
    size_t at;
    return check_name(name, n_bytes, &at) || memchr(name, '.', n_bytes) ||
           (n_bytes == strlen(FIELD_ROW) && memcmp(name, FIELD_ROW, n_bytes) == 0) ||
           utf8_valid_prefix((const uint8_t *)name, n_bytes) < n_bytes ||
           field_list_add(l, name, n_bytes, &at, err);
}

bool field_list_parse(field_list *l, const char *text, failure *err)
{
    size_t text_bytes = strlen(text);
    size_t n_valid = utf8_valid_prefix((const uint8_t *)text, text_bytes);
    if (n_valid < text_bytes) {
        fail(err, "not UTF-8");
        return field_fail_at(err, text, n_valid);
    }
    for (const char *name = text;; name++) {
        const size_t n_bytes = strcspn(name, ","), n_before = l->n_fields;
        size_t index;
        if (!field_list_add(l, name, n_bytes, &index, err) ||
            (l->n_fields == n_before && !fail(err, "the field is already in the list"))) {
            field_list_free(l);
            return field_fail_at(err, text, (size_t)(name - text) + err->place);
        }
        name += n_bytes;
        if (!*name)
            return true;
    }
}

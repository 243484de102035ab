/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/tar_header.h"

#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "base/number.h"

/* The fields of a header; the same in all forms. */
enum {
    NAME_AT = 0,
    NAME_FIELD = 100,
    SIZE_AT = 124,
    SIZE_FIELD = 12,
    SUM_AT = 148,
    SUM_FIELD = 8,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_FIELD = 155
};

/* ---- Numbers ---- */

/* Octal digits after blanks, ended by a blank, a NUL or the end of the field. */
static bool read_octal(const uint8_t *field, size_t n_bytes, uint64_t *value)
{
    size_t i = 0, first;
    *value = 0;
    while (i < n_bytes && field[i] == ' ')
        i++;
    for (first = i; i < n_bytes && field[i] >= '0' && field[i] <= '7'; i++) {
        if (*value >> 60)
            return false;
        *value = *value * 8 + (field[i] - '0');
    }
    return i > first && (i == n_bytes || field[i] == ' ' || field[i] == 0);
}

/* Octal, or big-endian bytes after a first byte of 0x80. Some old writers left the field empty. */
static bool read_size(const uint8_t *field, uint64_t *value)
{
    *value = 0;
    if (field[0] == 0x80) {
        for (size_t i = 1; i < SIZE_FIELD; i++) {
            if (*value >> 55)
                return false;
            *value = *value << 8 | field[i];
        }
        return true;
    }
    bool empty = field[0] == 0 || (field[0] == ' ' && field[SIZE_FIELD - 1] == ' ' &&
                                   memcmp(field, field + 1, SIZE_FIELD - 1) == 0);
    return empty || read_octal(field, SIZE_FIELD, value);
}

/* The checksum counts its own field as blanks. Some old writers added signed bytes. */
bool tar_is_header(const uint8_t *block)
{
    int64_t sum = 0, signed_sum = 0;
    uint64_t stored;
    if (!read_octal(block + SUM_AT, SUM_FIELD, &stored))
        return false;
    for (size_t i = 0; i < TAR_BLOCK_BYTES; i++) {
        uint8_t byte = i - SUM_AT < SUM_FIELD ? ' ' : block[i];
        sum += byte;
        signed_sum += (int8_t)byte;
    }
    return stored <= INT32_MAX && ((int64_t)stored == sum || (int64_t)stored == signed_sum);
}

/* ---- Names ---- */

/* Up to the first NUL. */
static const char *copy_name(char *name, const uint8_t *bytes, size_t n_bytes)
{
    size_t n = strnlen((const char *)bytes, n_bytes);
    if (n >= TAR_NAME_BYTES)
        return "the name of a member has more than 4095 bytes";
    for (size_t i = 0; i < n; i++)
        name[i] = bytes[i] < ' ' || bytes[i] == 0x7F ? '?' : (char)bytes[i];
    name[n] = 0;
    return NULL;
}

tar_document tar_document_kind(const char *name)
{
    static const struct {
        const char *suffix;
        tar_document kind;
    } suffixes[] = {{".txt", TAR_TEXT},  {".text", TAR_TEXT},        {".md", TAR_TEXT},
                    {".json", TAR_JSON}, {".jsonl", TAR_JSON_LINES}, {".ndjson", TAR_JSON_LINES}};
    const char *base = name_in_path(name), *dot = strrchr(base, '.');
    /* The attributes of a file as macOS stores them. */
    if (strncmp(base, "._", 2) == 0)
        return TAR_NO_DOCUMENT;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        if (dot && dot > base && strcasecmp(dot, suffixes[i].suffix) == 0)
            return suffixes[i].kind;
    }
    return TAR_NO_DOCUMENT;
}

/* ---- Pax records ---- */

static bool is_key(const uint8_t *key, size_t n_bytes, const char *name)
{
    return n_bytes == strlen(name) && memcmp(key, name, n_bytes) == 0;
}

/* An empty value takes an earlier one back. */
static const char *set_value(tar_values *v, const uint8_t *key, const uint8_t *value,
                             const uint8_t *end)
{
    size_t key_bytes = (size_t)(value - key) - 1, value_bytes = (size_t)(end - value);
    if (is_key(key, key_bytes, "path")) {
        v->has_name = value_bytes > 0;
        return copy_name(v->name, value, value_bytes);
    }
    if (is_key(key, key_bytes, "size")) {
        v->has_size = value_bytes > 0;
        const bool is_size =
            number_read_digits((const char *)value, value_bytes, &v->size) && v->size <= INT64_MAX;
        return !v->has_size || is_size ? NULL : "the size in a pax header is not a number";
    }
    v->sparse = v->sparse || (key_bytes > 11 && memcmp(key, "GNU.sparse.", 11) == 0);
    return NULL;
}

/* "LENGTH KEY=VALUE\n", where LENGTH counts all of it. */
static const char *read_records(tar_values *v, const uint8_t *data, size_t n_bytes)
{
    for (size_t at = 0; at < n_bytes && data[at];) {
        const uint8_t *record = data + at, *blank = memchr(record, ' ', n_bytes - at);
        uint64_t length;
        if (!blank ||
            !number_read_digits((const char *)record, (size_t)(blank - record), &length) ||
            length > n_bytes - at || length < (size_t)(blank - record) + 3 ||
            record[length - 1] != '\n')
            return "a damaged pax header";
        const uint8_t *end = record + length - 1;
        const uint8_t *equals = memchr(blank + 1, '=', (size_t)(end - blank) - 1);
        if (!equals)
            return "a damaged pax header";
        const char *why = set_value(v, blank + 1, equals + 1, end);
        if (why)
            return why;
        at += (size_t)length;
    }
    return NULL;
}

const char *tar_add_extra(tar_member *m, const uint8_t *data, size_t n_bytes)
{
    switch (m->type) {
    case 'g':
        return read_records(&m->all, data, n_bytes);
    case 'L':
        m->next.has_name = true;
        return copy_name(m->next.name, data, n_bytes);
    case 'K': /* the target of a link */
        return NULL;
    default:
        return read_records(&m->next, data, n_bytes);
    }
}

/* ---- Headers ---- */

/* Before ustar, a folder was a file whose name ends with a slash. */
static tar_kind kind_of(char type, const char *name)
{
    if (type == 0 || type == '0' || type == '7')
        return *name && name[strlen(name) - 1] == '/' ? TAR_OTHER : TAR_FILE;
    if (type == 'S')
        return TAR_SPARSE;
    return type != 0 && strchr("xgXLK", type) ? TAR_EXTRA : TAR_OTHER;
}

/* A link, a device, a folder and a pipe have no data, whatever the size is. */
static bool has_data(char type)
{
    return type == 0 || !strchr("123456", type);
}

/* Applies what was said about this member, which has no effect on the next one. */
static const char *finish_member(tar_member *m)
{
    const tar_values *next = &m->next, *all = &m->all;
    if (next->has_name || all->has_name)
        strcpy(m->name, next->has_name ? next->name : all->name);
    if (has_data(m->type) && (next->has_size || all->has_size))
        m->data_bytes = next->has_size ? next->size : all->size;
    m->kind = kind_of(m->type, m->name);
    if (next->sparse || all->sparse)
        m->kind = TAR_SPARSE;
    m->next.has_name = m->next.has_size = m->next.sparse = false;
    return m->data_bytes > INT64_MAX ? "the size of a member is damaged" : NULL;
}

const char *tar_read_header(tar_member *m, const uint8_t *block)
{
    m->data_bytes = 0;
    m->kind = TAR_ZEROS;
    if (is_zero(block, TAR_BLOCK_BYTES))
        return NULL;
    if (!tar_is_header(block))
        return "no tar header here: its checksum is wrong";
    m->type = (char)block[TYPE_AT];
    if (m->type == 'M')
        return "the rest of a member whose beginning is in another volume; join the volumes first";
    if (has_data(m->type) && !read_size(block + SIZE_AT, &m->data_bytes))
        return "the size of a member is damaged";
    /* Only "ustar" with a NUL has a prefix: GNU tar has other fields there. */
    size_t n_prefix = 0;
    if (memcmp(block + MAGIC_AT, "ustar", 6) == 0 && block[PREFIX_AT]) {
        copy_name(m->name, block + PREFIX_AT, PREFIX_FIELD);
        n_prefix = strlen(m->name);
        m->name[n_prefix++] = '/';
    }
    copy_name(m->name + n_prefix, block + NAME_AT, NAME_FIELD);
    m->kind = kind_of(m->type, "");
    if (m->kind != TAR_EXTRA)
        return finish_member(m);
    return m->data_bytes > TAR_EXTRA_BYTES ? "a name or pax header of more than 1 MiB" : NULL;
}

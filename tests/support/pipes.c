/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pipes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void put_number(uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        putchar((int)(value >> 8 * i & 0xff));
}

void put_bytes(const void *bytes, size_t n_bytes)
{
    put_number(n_bytes, 4);
    if (n_bytes > 0)
        fwrite(bytes, 1, n_bytes, stdout);
}

bool get_length(size_t *n_bytes)
{
    uint8_t b[4];
    if (fread(b, sizeof b, 1, stdin) != 1)
        return false;
    *n_bytes = b[0] | b[1] << 8 | b[2] << 16 | (size_t)b[3] << 24;
    return true;
}

uint8_t *get_bytes(size_t n_bytes, size_t padding, int fill)
{
    uint8_t *bytes = malloc(n_bytes + padding + 1);
    if (!bytes || fread(bytes, 1, n_bytes, stdin) != n_bytes)
        exit(2);
    memset(bytes + n_bytes, fill, padding);
    return bytes;
}

static uint8_t digit_value(char c)
{
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

uint8_t *get_hex_line(size_t *n_bytes, size_t padding)
{
    static char *line;
    static size_t capacity;
    const ssize_t length = getline(&line, &capacity, stdin);
    *n_bytes = length > 0 ? (size_t)length / 2 : 0;
    uint8_t *bytes = length > 0 ? calloc(*n_bytes + padding + 1, 1) : NULL;
    for (size_t i = 0; bytes && i < *n_bytes; i++)
        bytes[i] = (uint8_t)(digit_value(line[2 * i]) << 4 | digit_value(line[2 * i + 1]));
    return bytes;
}

void put_hex(const void *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        printf("%02x", ((const uint8_t *)bytes)[i]);
}

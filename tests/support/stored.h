/* SPDX-License-Identifier: Apache-2.0 */
/* stored.h - bytes as an input stores them: plain, gzip in members, zstd in frames. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum stored_form {
    STORED_PLAIN,
    STORED_GZIP,
    STORED_ZSTD,
    STORED_FORMS
} stored_form;

typedef struct stored {
    uint8_t *bytes; /* malloced; NULL: this build cannot write it */
    size_t n_bytes;
} stored;

/* Appends one member or frame. */
bool stored_add(stored *s, stored_form form, const uint8_t *plain, size_t n);
/* In n_parts members or frames, in front of the last one a skippable frame (zstd). */
stored stored_make(stored_form form, const uint8_t *plain, size_t n, size_t n_parts);

/* SPDX-License-Identifier: Apache-2.0 */
/* char_pairs.h - a set of pairs of characters between which text must not be cut. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/model/name_table.h"

#define CHAR_ANY 0x110000u /* as one side of a pair: any character */

/* Starts as {0}. A blank and U+2581 are the same character here. */
typedef struct char_pairs {
    name_table pairs;
    bool all;       /* every pair is in the set */
    bool no_memory; /* a pair could not be added */
} char_pairs;

void char_pairs_add(char_pairs *p, uint32_t left, uint32_t right);
/* Adds all neighbours in a text. Text that is not UTF-8 adds every pair. */
void char_pairs_add_text(char_pairs *p, const uint8_t *text, size_t n_bytes);
/* Whether (left, right), (left, CHAR_ANY) or (CHAR_ANY, right) is in the set. */
bool char_pairs_has(const char_pairs *p, uint32_t left, uint32_t right);
void char_pairs_free(char_pairs *p);

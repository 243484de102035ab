/* SPDX-License-Identifier: Apache-2.0 */
/* grapheme_tables.h - the properties used by grapheme.c, made by make_grapheme_tables.py. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* First code point << 8 | kind, in order; a range ends where the next one begins. Bits of a kind:
 * 0-3 Grapheme_Cluster_Break, 4-5 Indic_Conjunct_Break, 6 Extended_Pictographic. */
extern const uint32_t grapheme_ranges[];
extern const size_t grapheme_n_ranges;
/* The range of the first code point of each 256, up to U+10000. */
extern const uint16_t grapheme_blocks[];

/* SPDX-License-Identifier: Apache-2.0 */
/* nfc_tables.h - the properties of code points for nfc.c. Private to it.
 *
 * Made by make_unicode_tables.py, which has the same constants. */
#pragma once

#include <stdint.h>

enum {
    KIND_DOUBTFUL = 1,   /* may not occur in NFC, or combine with what is before */
    KIND_BOUNDARY = 2,   /* independent of everything before it */
    KIND_DECOMPOSES = 4, /* including Hangul syllables, by arithmetic */
    KIND_SECOND = 8,     /* second of a pair that composes */

    NFC_N_PLAIN_KINDS = 2, /* the kinds 0 and 1: starters, a boundary, not doubtful */
    NFC_N_DECOMPOSITIONS = 2060,
    NFC_N_SLOTS = 2048,
    NFC_HASH_SHIFT = 21
};
#define NFC_HASH_A 0x9E3779B1u
#define NFC_HASH_B 0x85EBCA6Bu

typedef struct nfc_kind {
    uint8_t combining_class, flags;
} nfc_kind;
extern const nfc_kind nfc_kinds[];
/* nfc_kinds[nfc_kind_pages[nfc_kind_index[cp >> 7]][cp & 127]] */
extern const uint8_t nfc_kind_index[0x110000 >> 7];
extern const uint8_t nfc_kind_pages[][128];

/* Whether any character that starts with the two bytes hl, sx is not plain: for h = C and D, bits s
 * - 8 and s - 4 of row l; for E and F, those of row 16 + l. */
extern const uint8_t nfc_lead_rows[32];

/* One step of a canonical decomposition; second is 0 if there is none. Sorted by code_point. */
typedef struct nfc_decomposition {
    uint32_t code_point, first, second;
} nfc_decomposition;
extern const nfc_decomposition nfc_decompositions[NFC_N_DECOMPOSITIONS];

/* A hash table: from slot (first * NFC_HASH_A ^ second * NFC_HASH_B) >> NFC_HASH_SHIFT to the next
 * empty one, 1 + the index of the decomposition that composing undoes. */
extern const uint16_t nfc_slots[NFC_N_SLOTS];

/* Compatibility: the full decompositions, where they are not the canonical ones. The decompositions
 * of first to last are one after another in compatibility_parts, n_parts each. Sorted. */
enum {
    COMPATIBILITY_N_RUNS = 410
};
typedef struct compatibility_run {
    uint32_t first, last, n_parts, offset;
} compatibility_run;
extern const compatibility_run compatibility_runs[COMPATIBILITY_N_RUNS];
extern const uint32_t compatibility_parts[];

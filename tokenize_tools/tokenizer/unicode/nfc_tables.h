/* nfc_tables.h - what nfc.c has to know of each code point. Private to nfc.c.
 *
 * Made by make_unicode_tables.py, which holds the same constants. */
#ifndef TOKMAP_NFC_TABLES_H
#define TOKMAP_NFC_TABLES_H

#include <stdint.h>

enum {
    KIND_DOUBTFUL = 1,   /* may be absent from NFC, or melt into what stands before */
    KIND_BOUNDARY = 2,   /* nothing before it changes it, nor does it change anything before it */
    KIND_DECOMPOSES = 4, /* Hangul syllables, by arithmetic, too */
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

/* Whether some characters that begin with two bytes hl, sx are not plain: for h = C and D bit s - 8
 * and s - 4 of row l, for E and F the same of row 16 + l. */
extern const uint8_t nfc_lead_rows[32];

/* One step of a canonical decomposition; second is 0 if there is none. Sorted by code_point. */
typedef struct nfc_decomposition {
    uint32_t code_point, first, second;
} nfc_decomposition;
extern const nfc_decomposition nfc_decompositions[NFC_N_DECOMPOSITIONS];

/* From slot (first * NFC_HASH_A ^ second * NFC_HASH_B) >> NFC_HASH_SHIFT on, until an empty one:
 * 1 + where the decomposition stands that composing has to undo. */
extern const uint16_t nfc_slots[NFC_N_SLOTS];

#endif /* TOKMAP_NFC_TABLES_H */

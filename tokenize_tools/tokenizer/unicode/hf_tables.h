/* SPDX-License-Identifier: Apache-2.0 */
/* hf_tables.h - classes and lower case as Hugging Face's pre-tokenizers and normalizers know them,
 * for unicode.c. Made by make_unicode_tables.py. */
#pragma once

#include <stdint.h>

enum {
    HF_N_CLASSES = 5,
    LOWER_N_RUNS = 185
};

extern const uint8_t unicode_hf_index[0x110000 >> 7];
/* For 128 code points: two words of bits for each class. */
extern const uint64_t unicode_hf_pages[][2 * HF_N_CLASSES];

/* The lower case of first, first + step, ... last is each of them + distance. Sorted. */
typedef struct lower_run {
    uint32_t first, last, step;
    int32_t distance;
} lower_run;
extern const lower_run lower_runs[LOWER_N_RUNS];

/* SPDX-License-Identifier: Apache-2.0 */
/* simd.h - which vector instructions to use; the scalar code is the definition. */
#pragma once

#include <stdbool.h>

/* Vector loads may read this many bytes after a text; their values do not matter. */
#define TEXT_PADDING 64

typedef enum simd_level {
    SIMD_BEST, /* the best on this machine */
    SIMD_SCALAR,
    SIMD_AVX2,   /* and BMI1, BMI2, POPCNT */
    SIMD_AVX512, /* F, BW, VL, VBMI, VBMI2, and all of SIMD_AVX2 */
    SIMD_BLOCKS  /* of the splitter alone: plain C, 64 bytes at a time */
} simd_level;

bool simd_works(simd_level level);
/* Returns the best level of this machine, never SIMD_BEST itself. */
simd_level simd_best(void);

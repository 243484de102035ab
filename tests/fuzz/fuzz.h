/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what each fuzz target needs: the function that an engine or replay.c calls, and a way to
 * say that something must hold. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

#endif /* TESTS_FUZZ_H */

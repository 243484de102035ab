/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what each fuzz target needs: the function that an engine or replay.c calls, and a way to
 * say that something must hold. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static inline void require(bool condition)
{
    if (!condition)
        abort();
}

/* A folder of its own, in memory if there is such a file system. */
static inline void make_folder(char folder[64])
{
    snprintf(folder, 64, "%s/tokmap_fuzz_XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    require(mkdtemp(folder) != NULL);
}

/* Copies a true file with edits: u16 offset, u8 to exclusive-or, ...; 255 cuts the file there.
 * Returns its size. */
static inline size_t edit_file(uint8_t *bytes, const uint8_t *truth, size_t n_truth,
                               const uint8_t *edits, size_t n_edits)
{
    size_t n_bytes = n_truth;
    memcpy(bytes, truth, n_truth);
    for (; n_edits >= 3; edits += 3, n_edits -= 3) {
        const size_t at = (size_t)(edits[0] | edits[1] << 8) % n_truth;
        if (edits[2] == 255)
            n_bytes = at;
        bytes[at] ^= edits[2];
    }
    return n_bytes;
}

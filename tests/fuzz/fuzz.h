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

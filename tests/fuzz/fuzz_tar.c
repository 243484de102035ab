/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tar.c - any bytes as a tar archive, with the checksums of its headers set: no access
 * outside, and the documents do not depend on how they are read. */
#include "fuzz/fuzz.h"
#include "formats/tar_header.h"
#include "fuzz/reread.h"
#include "support/exact_copy.h"

static void seal(uint8_t *block)
{
    char digits[8];
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < TAR_BLOCK_BYTES; i++)
        sum += block[i];
    snprintf(digits, sizeof digits, "%06o", sum);
    memcpy(block + 148, digits, 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < REREAD_BYTES + TAR_BLOCK_BYTES)
        return 0;
    const size_t n = size - REREAD_BYTES;
    uint8_t *archive = exact_copy(data + REREAD_BYTES, n);
    for (size_t at = 0; at + TAR_BLOCK_BYTES <= n; at += TAR_BLOCK_BYTES) {
        if (at == 0 || memcmp(archive + at + 257, "ustar", 5) == 0)
            seal(archive + at);
    }
    reread_input(data, archive, n);
    free(archive);
    return 0;
}

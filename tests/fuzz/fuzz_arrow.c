/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_arrow.c - any bytes as an Arrow stream or file: no access outside, and the documents do not
 * depend on how they are read. */
#include "fuzz/fuzz.h"
#include "formats/arrow/arrow_reader.h"
#include "fuzz/reread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice[REREAD_BYTES];
    if (size < REREAD_BYTES || !arrow_is_magic(data + REREAD_BYTES, size - REREAD_BYTES))
        return 0;
    memcpy(choice, data, REREAD_BYTES);
    choice[0] &= 0xFC; /* CORPUS_AUTO */
    reread_input(choice, data + REREAD_BYTES, size - REREAD_BYTES);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_csv.c - any bytes as CSV or TSV: no access outside, and documents and values do not depend
 * on how they are read. fuzz_corpus.c compares the documents with a model. */
#include "fuzz/fuzz.h"
#include "fuzz/reread.h"
#include "support/exact_copy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice[REREAD_BYTES];
    if (size < REREAD_BYTES)
        return 0;
    memcpy(choice, data, sizeof choice);
    const corpus_format format = choice[0] & 1 ? CORPUS_TSV : CORPUS_CSV;
    choice[0] = (uint8_t)(choice[0] / CORPUS_N_FORMATS * CORPUS_N_FORMATS + format);
    uint8_t *table = exact_copy(data + REREAD_BYTES, size - REREAD_BYTES);
    reread_input(choice, table, size - REREAD_BYTES);
    free(table);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cell_metadata.c - any bytes as the metadata of a cell: refused, or the same after it is put
 * together again. */
#include "fuzz/fuzz.h"
#include "plan/cell_metadata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cell_metadata m;
    cell_counts sum = {0};
    size_t n;
    if (!cell_metadata_read(&m, (const char *)data, size))
        return 0;
    require(cell_counts_add(&sum, &m.counts));
    char *json = cell_metadata_join((const char *)data, m.head_bytes, &sum, &n);
    require(json && n < size && memcmp(json, data, n - 1) == 0);
    free(json);
    return 0;
}

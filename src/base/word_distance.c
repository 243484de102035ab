/* SPDX-License-Identifier: Apache-2.0 */
#include "base/word_distance.h"

#include <stdint.h>

size_t word_distance(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    size_t row[WORD_DISTANCE_LONGEST + 1];
    if (a_bytes > WORD_DISTANCE_LONGEST || b_bytes > WORD_DISTANCE_LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_bytes; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_bytes; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_bytes; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_bytes];
}

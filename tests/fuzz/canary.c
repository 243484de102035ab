/* SPDX-License-Identifier: Apache-2.0 */
/* canary.c - a fuzz target with a bug: it reads one byte beyond its input after the letters TMI.
 * `make fuzz` must find it in seconds; otherwise the success of the other targets means nothing. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static volatile uint8_t seen;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes > 3 && data[0] == 'T' && data[1] == 'M' && data[2] == 'I')
        seen = data[n_bytes];
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tiktoken.c - any bytes as ranks: refused with a reason, or a sound model.
 *
 * Byte 0 chooses the pattern: a name of the table, with ":any" if it is above 127; what follows a
 * NUL is a --specials-file. */
#include "check_model.h"

#include <stdio.h>
#include <string.h>

#include "tokenizer/load/model_load.h"
#include "tokenizer/load/presets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char pattern[64];
    size_t n_names = 0;
    while (preset_name(n_names))
        n_names++;
    const char *name = preset_name((data[0] & 127) % (n_names + 1)); /* NULL: an unknown name */
    snprintf(pattern, sizeof pattern, "%s%s", name ? name : "none",
             data[0] > 127 ? PRESET_ANY : "");
    const uint8_t *nul = memchr(data + 1, '\0', size - 1);
    const size_t n_bytes = nul ? (size_t)(nul - data) - 1 : size - 1;
    const model_source source = {
        .data = data + 1,
        .n_bytes = n_bytes,
        .pattern = pattern,
        .specials = nul ? nul + 1 : NULL,
        .specials_bytes = nul ? size - 2 - n_bytes : 0,
    };
    check_loader(load_tiktoken, &source);
    return 0;
}

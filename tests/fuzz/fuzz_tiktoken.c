/* fuzz_tiktoken.c - any bytes as ranks: refused with a reason, or a sound model.
 *
 * Byte 0 chooses the pattern; what follows a NUL is a --specials-file. */
#include "check_model.h"

#include <string.h>

#include "tokenizer/load/model_load.h"

static const char *const patterns[] = {"gpt2:any",   "p50k:any",      "cl100k:any", "o200k:any",
                                       "llama3:any", "llama4:any",    "tekken:any", "qwen3:any",
                                       "gpt2",       "deepseek3:any", "none"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const uint8_t *nul = memchr(data + 1, '\0', size - 1);
    const size_t n_bytes = nul ? (size_t)(nul - data) - 1 : size - 1;
    const model_source source = {
        .name = "fuzz",
        .data = data + 1,
        .n_bytes = n_bytes,
        .pattern = patterns[data[0] % (sizeof patterns / sizeof *patterns)],
        .specials = nul ? nul + 1 : NULL,
        .specials_bytes = nul ? size - 2 - n_bytes : 0,
    };
    check_loader(load_tiktoken, &source);
    return 0;
}

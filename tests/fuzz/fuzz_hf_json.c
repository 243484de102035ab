/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hf_json.c - any bytes as a tokenizer.json: refused with a reason, or a sound model. */
#include "check_model.h"
#include "tokenizer/load/model_load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const model_source source = {.data = data, .n_bytes = size};
    check_loader(load_hf_json, &source);
    check_loader(model_load, &source);
    return 0;
}

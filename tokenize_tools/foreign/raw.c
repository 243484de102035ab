/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c - tokens from the first byte of a file to the last. Documents come from the user's options,
 * or from csv.c if the table is beside the file. */
#include "foreign/foreign.h"

#include <inttypes.h>

static bool decode_raw(foreign_layout *out, const foreign_files *files, failure *err)
{
    const uint64_t file_bytes = files->tokens->size;
    *out = (foreign_layout){.boundaries = FOREIGN_BOUNDARIES_UNKNOWN,
                            .token_bytes = files->token_bytes,
                            .n_tokens = file_bytes / files->token_bytes};
    if (file_bytes % files->token_bytes != 0)
        return fail(err,
                    "is not a raw token file of u%u: %" PRIu64 " bytes are not a multiple of %u",
                    8 * files->token_bytes, file_bytes, files->token_bytes);
    return true;
}

const foreign_reader foreign_raw = {
    .name = "raw",
    .help = "tokens and nothing else (nanoGPT, OLMo); needs --dtype. If X.csv.gz is beside "
            "X.npy (OLMo), it lists the documents, unless --eod or --bos is given",
    .decode = decode_raw,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* llmc.c - llm.c token files and modded-nanogpt shards: 256 int32 (magic, version, token count,
 * zeros), then the tokens. The end-of-text token is before each document; a shard may begin inside
 * a document. */
#include "foreign/foreign.h"

#include <inttypes.h>

#define HEADER_BYTES 1024

typedef struct llmc_kind {
    uint32_t magic, version, token_bytes, begin_id;
} llmc_kind;

static const llmc_kind kinds[] = {
    {20240520, 1, 2, 50256},  /* GPT-2 */
    {20240801, 7, 4, 128000}, /* Llama 3 */
};
static const uint32_t eval_magic = 20240522;

/* Four bytes of magic could be two u16 tokens, but hardly with a small version after them.
 * Evaluation files are recognised too, so that a message can name them. */
static bool recognise_llmc(const uint8_t *head, size_t n_head, uint64_t file_bytes)
{
    if (n_head < 12 || file_bytes < 1024 || le_get32(head + 4) > 255)
        return false;
    uint32_t magic = le_get32(head);
    return magic == kinds[0].magic || magic == kinds[1].magic || magic == eval_magic;
}

static bool decode_llmc(foreign_layout *out, const foreign_files *files, failure *err)
{
    const foreign_bytes *file = files->tokens;
    *out = (foreign_layout){.boundaries = FOREIGN_BOUNDARIES_BEGIN};
    uint8_t head[12];
    if (!foreign_read(file, 0, head, sizeof head, err))
        return false;
    uint32_t magic = le_get32(head), version = le_get32(head + 4);
    if (magic == eval_magic)
        return fail(err, "is an llm.c evaluation file (questions, not a token stream)");
    const llmc_kind *kind = magic == kinds[0].magic ? &kinds[0] : &kinds[1];
    if (magic != kind->magic)
        return fail(err, "is not an llm.c token file");
    if (version != kind->version)
        return fail(err, "is an llm.c file of version %u; only version %u is supported", version,
                    kind->version);
    uint64_t n_tokens = le_get32(head + 8);
    if (n_tokens > INT32_MAX)
        return fail(err, "is damaged: its header counts %" PRId64 " tokens",
                    (int64_t)n_tokens - (INT64_C(1) << 32));
    if (file->size != HEADER_BYTES + n_tokens * kind->token_bytes)
        return fail(err,
                    "is damaged: %" PRIu64 " bytes do not fit the %" PRIu64 " tokens of its header",
                    file->size, n_tokens);
    out->token_bytes = kind->token_bytes;
    out->token_offset = HEADER_BYTES;
    out->n_tokens = n_tokens;
    out->boundary_id = kind->begin_id;
    return true;
}

const foreign_reader foreign_llmc = {
    .name = "llmc",
    .help = "llm.c and modded-nanogpt shards",
    .kind = "an llm.c file with its header",
    .recognise = recognise_llmc,
    .decode = decode_llmc,
};

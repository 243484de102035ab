#include "pack_tokens.h"

#include <string.h>

#include "cli.h"

#define MAX_ID (((uint64_t)1 << 31) - 1)

typedef struct token_role {
    const char *option, *job;
    uint32_t automatic; /* what the tokenizer names for it */
} token_role;

static int choose(uint32_t *id, const char *word, const token_role *role,
                  const tokenizer_file *file)
{
    uint64_t number;
    *id = MODEL_NO_ID;
    if (strcmp(word, "none") == 0)
        return CLI_OK;
    if (strcmp(word, "auto") == 0) {
        *id = role->automatic;
        if (*id == MODEL_NO_ID)
            return cli_usage("%s does not say which token %s a document: choose one with %s ID or "
                             "%s TOKEN, or %s none",
                             file->name, role->job, role->option, role->option, role->option);
        return CLI_OK;
    }
    if (cli_parse_u64(word, &number)) {
        if (number > MAX_ID)
            return cli_usage("%s %s: an id is below 2^31", role->option, word);
        *id = (uint32_t)number;
        return CLI_OK;
    }
    *id = tokenizer_find(file->tokenizer, word, strlen(word));
    if (*id == MODEL_NO_ID)
        return cli_usage("%s %s: %s has no such token", role->option, word, file->name);
    return CLI_OK;
}

static void cover(pack_tokens *tokens, uint32_t id)
{
    if (id != MODEL_NO_ID && id >= tokens->vocab_size)
        tokens->vocab_size = (uint64_t)id + 1;
}

int pack_tokens_choose(pack_tokens *tokens, const pack_options *options, const tokenizer_file *file)
{
    const token_role ends = {"--eod", "ends", tokenizer_eos(file->tokenizer)};
    const token_role begins = {"--bos", "begins", tokenizer_bos(file->tokenizer)};
    int code = choose(&tokens->eod_id, options->eod, &ends, file);
    if (code == CLI_OK)
        code = choose(&tokens->bos_id, options->bos, &begins, file);
    tokens->vocab_size = tokenizer_vocab_size(file->tokenizer);
    if (code == CLI_OK) {
        cover(tokens, tokens->eod_id);
        cover(tokens, tokens->bos_id);
    }
    return code;
}

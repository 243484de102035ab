#include "pack_tokens.h"

#include <string.h>

#include "cli.h"

#define MAX_ID (((uint64_t)1 << 31) - 1)

typedef struct token_role {
    const char *option, *job;
    uint32_t automatic; /* what the tokenizer names for it */
    bool quiet;
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

#define MAX_IDS_OF_2_BYTES 65536

/* An id that the vocabulary does not have may be meant so, or be a slip. */
static void cover(pack_tokens *tokens, uint32_t id, const token_role *role,
                  const tokenizer_file *file)
{
    uint64_t known = tokenizer_vocab_size(file->tokenizer), n_before = tokens->vocab_size;
    if (id == MODEL_NO_ID || id < known)
        return;
    if (id >= n_before)
        tokens->vocab_size = (uint64_t)id + 1;
    bool wider = n_before <= MAX_IDS_OF_2_BYTES && tokens->vocab_size > MAX_IDS_OF_2_BYTES;
    if (!role->quiet)
        cli_warn("%s %u: %s has no such id, but %s; the vocabulary of the dataset is larger%s",
                 role->option, id, file->name, cli_count_of(known, "id").s,
                 wider ? ", and each of its tokens takes 4 bytes, not 2" : "");
}

int pack_tokens_choose(pack_tokens *tokens, const pack_options *options, const tokenizer_file *file)
{
    const token_role ends = {"--eod", "ends", tokenizer_eos(file->tokenizer), options->quiet};
    const token_role begins = {"--bos", "begins", tokenizer_bos(file->tokenizer), options->quiet};
    int code = choose(&tokens->eod_id, options->eod, &ends, file);
    if (code == CLI_OK)
        code = choose(&tokens->bos_id, options->bos, &begins, file);
    tokens->vocab_size = tokenizer_vocab_size(file->tokenizer);
    if (code == CLI_OK) {
        cover(tokens, tokens->eod_id, &ends, file);
        cover(tokens, tokens->bos_id, &begins, file);
    }
    return code;
}

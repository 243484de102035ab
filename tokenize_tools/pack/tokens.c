/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/tokens.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "system/protected.h"
#include "tokenizer/choice/tokenizer_choice.h"
#include "tokenizer/file/stated_tokens.h"

#define MAX_ID (((uint64_t)1 << 31) - 1)

typedef struct token_role {
    const char *option, *job, *name; /* name: in tokenizer files */
    bool quiet;
} token_role;

/* Chooses the token that the files of the tokenizer name. */
static int choose_stated(uint32_t *id, const token_role *role, const tokenizer_file *file)
{
    stated_tokens tokens;
    failure err;
    char advice[48], list[STATED_TOKENS_LIST_BYTES];
    snprintf(advice, sizeof advice, "; choose the token with %s", role->option);
    if (!stated_tokens_find(&tokens, role->name, file, &err))
        return tokenizer_choice_fail(&err, advice);
    int code = CLI_OK;
    for (size_t i = 0; i < tokens.n_read && code == CLI_OK; i++)
        code = path_protect(&tokens.read[i], "part of the tokenizer");
    if (code != CLI_OK || tokens.none)
        return code;
    if (tokens.n == 0)
        return cli_usage(
            "the tokenizer %s does not say which token %s a document; choose one with %s ID or "
            "%s TOKEN, or %s none",
            file->name, role->job, role->option, role->option, role->option);
    if (tokens.n > 1) {
        stated_tokens_list(&tokens, file, list);
        return cli_usage("%s: more than one token may be the one that %s a document: %s; "
                         "choose one with %s ID or %s TOKEN, or %s none",
                         file->name, role->job, list, role->option, role->option, role->option);
    }
    *id = tokens.list[0].id;
    return CLI_OK;
}

static int choose_id(uint32_t *id, const char *word, const token_role *role,
                     const tokenizer_file *file)
{
    uint64_t number;
    *id = MODEL_NO_ID;
    if (strcmp(word, "none") == 0)
        return CLI_OK;
    if (strcmp(word, "auto") == 0)
        return choose_stated(id, role, file);
    if (cli_parse_u64(word, &number)) {
        if (number > MAX_ID)
            return cli_usage("%s %s: an id must be less than 2^31", role->option, word);
        *id = (uint32_t)number;
        return CLI_OK;
    }
    *id = tokenizer_find(file->tokenizer, word, strlen(word));
    if (*id == MODEL_NO_ID)
        return cli_usage("%s %s: the tokenizer %s has no such token", role->option, word,
                         file->name);
    return CLI_OK;
}

#define MAX_IDS_OF_2_BYTES 65536

/* An id above the vocabulary may be intended, or be a mistake. */
static void include_id(pack_tokens *tokens, uint32_t id, const token_role *role,
                       const tokenizer_file *file)
{
    uint64_t known = tokenizer_get_info(file->tokenizer)->vocab_size, n_before = tokens->vocab_size;
    if (id == MODEL_NO_ID || id < known)
        return;
    if (id >= n_before)
        tokens->vocab_size = (uint64_t)id + 1;
    bool wider = n_before <= MAX_IDS_OF_2_BYTES && tokens->vocab_size > MAX_IDS_OF_2_BYTES;
    if (!role->quiet)
        cli_warn("%s %u: the tokenizer %s has only %s, so the vocabulary of the dataset becomes "
                 "larger%s",
                 role->option, id, file->name, cli_count_of(known, "id").s,
                 wider ? ", and each token takes 4 bytes instead of 2" : "");
}

int pack_tokens_open(pack_tokens *tokens, tokenizer_file *file, const pack_options *options)
{
    const token_role ends = {"--eod", "ends", "eos", options->quiet};
    const token_role begins = {"--bos", "begins", "bos", options->quiet};
    int code = tokenizer_choice_open(file, &options->tokenizer);
    if (code == CLI_OK)
        code = choose_id(&tokens->eod_id, options->eod, &ends, file);
    if (code == CLI_OK)
        code = choose_id(&tokens->bos_id, options->bos, &begins, file);
    if (code != CLI_OK)
        return code;
    tokens->vocab_size = tokenizer_get_info(file->tokenizer)->vocab_size;
    include_id(tokens, tokens->eod_id, &ends, file);
    include_id(tokens, tokens->bos_id, &begins, file);
    if (options->utf8 == UTF8_RAW && !tokenizer_get_info(file->tokenizer)->takes_bytes)
        return cli_usage(
            "--utf8 raw: %s encodes characters, not bytes; use --utf8 replace or error",
            file->name);
    return CLI_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/choice/tokenizer_choice.h"

#include <errno.h>
#include <string.h>

#include "cli/cli.h"
#include "input/hub.h"
#include "system/files.h"
#include "system/protected.h"
#include "tokenizer/model/bytes_tokenizer.h"
#include "tokenizer/load/presets.h"

/* ---- Open ---- */

int tokenizer_choice_fail(const failure *err, const char *advice)
{
    if (err->status == ENOMEM)
        return cli_no_memory();
    /* A file that is too large is the wrong file, not a limit of the system. */
    const bool is_limit = err->status > 0 && err->status != EFBIG;
    const int code = is_limit ? cli_failure_exit_code(err) : CLI_INPUT;
    cli_error(code, "tokenizer: %s%s", err->text, err->status ? "" : advice);
    cli_print_hint(&(tokmap_error){.sys_errno = is_limit ? err->status : 0});
    return code;
}

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return n > n_end && strcmp(name + n - n_end, end) == 0;
}

/* Whether it may be OWNER/NAME[@REVISION]: there is no such file, and the name is not that of a
 * tokenizer file. */
static bool may_be_repository(const char *name)
{
    static const char letters[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-.@/";
    const char *slash = strchr(name, '/');
    return slash && slash > name && slash[1] && !strchr(slash + 1, '/') && *name != '.' &&
           !name[strspn(name, letters)] && !ends_in(name, ".json") && !ends_in(name, ".model") &&
           !ends_in(name, ".tiktoken") && !file_name_exists(name);
}

static void print_note(void *context, const char *text)
{
    (void)context;
    cli_warn("%s", text);
}

/* Opens the file that the cache of the Hub has for the name. */
static bool open_found(tokenizer_file *file, tokenizer_choice choice, failure *err)
{
    const hub_request request = {choice.name, true, choice.download};
    input_list found = {.report = choice.download ? print_note : NULL};
    if (!hub_find(&found, &request, err))
        return hub_is_name(choice.name)
                   ? false
                   : fail_at(err,
                             "%.300s: no such file. As a repository of the Hub: ", choice.name);
    choice.name = found.names[0];
    const bool opened = tokenizer_file_open(file, &choice, err);
    file->found_path = found.names[0];
    found.n_names--;
    input_list_free(&found);
    return opened;
}

int tokenizer_choice_open(tokenizer_file *file, const tokenizer_choice *choice)
{
    failure err;
    *file = (tokenizer_file){0};
    if ((choice->pattern || choice->specials) && strcmp(choice->name, BYTES_TOKENIZER_NAME) == 0)
        return cli_usage("%s works only with a tokenizer file; name one with --tokenizer FILE",
                         choice->pattern ? "--pattern" : "--specials-file");
    const bool is_of_hub = hub_is_name(choice->name) || may_be_repository(choice->name);
    if (!(is_of_hub ? open_found(file, *choice, &err) : tokenizer_file_open(file, choice, &err))) {
        const bool is_bare = err.status == ENOENT && !strpbrk(choice->name, "/.");
        return is_bare ? cli_error(CLI_INPUT,
                                   "tokenizer: %s; a repository of the Hub is OWNER/NAME, as in "
                                   "hf://openai-community/gpt2",
                                   err.text)
                       : tokenizer_choice_fail(&err, "");
    }
    int code = CLI_OK;
    for (size_t i = 0; i < file->n_read && code == CLI_OK; i++)
        code = path_protect(&file->read[i], "part of the tokenizer");
    return code;
}

int tokenizer_choice_open_decoder(tokenizer_file *file, const tokenizer_choice *choice)
{
    int code = tokenizer_choice_open(file, choice);
    if (code == CLI_OK && !tokenizer_get_info(file->tokenizer)->decodes)
        code = cli_error(CLI_INPUT,
                         "tokenizer: %s: its decoder is not supported with its model; 'man "
                         "tokmap-tokenizers' lists those that are",
                         choice->name);
    return code;
}

/* ---- Words of options ---- */

const cli_word *tokenizer_pattern_words(void)
{
    static cli_word words[PRESET_MAX_NAMES + 1];
    for (size_t i = 0; (words[i].name = preset_name(i)) != NULL; i++)
        continue;
    return words;
}

const cli_word tokenizer_specials_words[] = {
    {"text", SPECIALS_TEXT, "treat them as plain text"},
    {"match", SPECIALS_MATCH, "replace them with their ids"},
    {"error", SPECIALS_ERROR, "refuse the text: pack treats it as a bad document; encode stops"},
    {"drop", SPECIALS_DROP, "leave them out"},
    {NULL},
};

#include "tokenizer/file/tokenizer_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "system/protected.h"
#include "tokenizer/bytes/bytes_tokenizer.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/load/presets.h"

/* The largest vocabularies in use have 40 MB. */
#define MAX_FILE_BYTES ((size_t)1 << 30)

/* ---- Reading ---- */

static int read_whole(const char *path, whole_file *file)
{
    const int error = file_read_whole(path, MAX_FILE_BYTES, file);
    if (error == ENOMEM)
        return cli_no_memory();
    if (error == EISDIR)
        return cli_error(CLI_INPUT,
                         "tokenizer: %s: is a folder; name the file in it, such as "
                         "tokenizer.json",
                         path);
    if (error == EFBIG)
        return cli_error(CLI_INPUT,
                         "tokenizer: %s: is larger than 1 GiB, so it cannot be a tokenizer file",
                         path);
    if (error)
        return cli_error(cli_errno_exit_code(error), "tokenizer: %s: %s", path, strerror(error));
    return path_protect(&file->facts, "part of the tokenizer");
}

int tokenizer_file_read_beside(const char *path, const char *last, const char *other,
                               whole_file *file)
{
    char beside[4096];
    const size_t n = strlen(path), n_last = strlen(last);
    *file = (whole_file){0};
    if (n < n_last || strcmp(path + n - n_last, last) != 0)
        return CLI_OK;
    const int n_beside = snprintf(beside, sizeof beside, "%.*s%s", (int)(n - n_last), path, other);
    if (n_beside < 0 || (size_t)n_beside >= sizeof beside || !file_exists(beside))
        return CLI_OK;
    return read_whole(beside, file);
}

/* ---- Loading ---- */

static int make_tokenizer(tokenizer_file *file, const tokenizer_choice *choice,
                          const model_source *source)
{
    model m;
    model_error err = {.text = ""};
    model_init(&m);
    bool loaded = model_load(&m, source, &err);
    if (loaded)
        file->tokenizer = tokenizer_new(&m, &err);
    model_free(&m);
    if (file->tokenizer)
        return CLI_OK;
    if (err.no_memory)
        return cli_no_memory();
    if (err.offset)
        return cli_error(CLI_INPUT, "tokenizer: %s: byte %zu: %s", choice->name, err.offset,
                         err.text);
    return cli_error(CLI_INPUT, "tokenizer: %s: %s", choice->name, err.text);
}

static int open_built_in(tokenizer_file *file, const tokenizer_choice *choice)
{
    if (choice->pattern || choice->specials)
        return cli_usage("%s works only with a tokenizer file; name one with --tokenizer FILE",
                         choice->pattern ? "--pattern" : "--specials-file");
    snprintf(file->name, sizeof file->name, "%s", BYTES_TOKENIZER_NAME);
    file->tokenizer = tokenizer_new_bytes();
    return file->tokenizer ? CLI_OK : cli_no_memory();
}

static uint64_t file_checksum(const whole_file *file)
{
    return file->data ? XXH3_64bits(file->data, file->n_bytes) : 0;
}

int tokenizer_file_open(tokenizer_file *file, const tokenizer_choice *choice)
{
    *file = (tokenizer_file){.path = choice->name, .pattern = choice->pattern};
    if (strcmp(choice->name, BYTES_TOKENIZER_NAME) == 0)
        return open_built_in(file, choice);
    const char *slash = strrchr(choice->name, '/');
    snprintf(file->name, sizeof file->name, "%s", slash ? slash + 1 : choice->name);
    file->from_file = true;
    whole_file vocab = {0}, merges = {0}, specials = {0};
    int code = read_whole(choice->name, &vocab);
    if (code == CLI_OK)
        code = tokenizer_file_read_beside(choice->name, "vocab.json", "merges.txt", &merges);
    if (code == CLI_OK && choice->specials)
        code = read_whole(choice->specials, &specials);
    if (code == CLI_OK) {
        file->file_xxh3 = file_checksum(&vocab);
        file->merges_xxh3 = file_checksum(&merges);
        file->specials_xxh3 = file_checksum(&specials);
        code = make_tokenizer(file, choice,
                              &(model_source){
                                  .name = file->name,
                                  .data = vocab.data,
                                  .n_bytes = vocab.n_bytes,
                                  .merges = merges.data,
                                  .merges_bytes = merges.n_bytes,
                                  .specials = specials.data,
                                  .specials_bytes = specials.n_bytes,
                                  .pattern = choice->pattern,
                              });
    }
    free(vocab.data);
    free(merges.data);
    free(specials.data);
    return code;
}

void tokenizer_file_close(tokenizer_file *file)
{
    tokenizer_free(file->tokenizer);
    file->tokenizer = NULL;
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
    {"error", SPECIALS_ERROR,
     "refuse the text: pack treats it as a bad document, which cannot be collected; encode stops"},
    {"drop", SPECIALS_DROP, "leave them out"},
    {NULL},
};

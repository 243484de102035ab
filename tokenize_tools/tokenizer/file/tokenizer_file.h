/* tokenizer_file.h - the tokenizer that a command line names: `bytes`, or a vocabulary file and
 * what stands beside it. */
#ifndef TOKMAP_TOKENIZER_FILE_H
#define TOKMAP_TOKENIZER_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "system/files.h"
#include "tokenizer/tokenizer.h"

typedef struct tokenizer_choice {
    const char *name;     /* "bytes", or the path of a file */
    const char *pattern;  /* --pattern, or NULL */
    const char *specials; /* --specials-file, or NULL */
} tokenizer_choice;

typedef struct tokenizer_file {
    tokenizer *tokenizer;
    const char *path;    /* as chosen */
    char name[256];      /* "bytes", or the last part of the path */
    const char *pattern; /* as chosen */
    bool from_file;      /* else it is built in, and there are no checksums */
    uint64_t file_xxh3;
    uint64_t merges_xxh3;   /* of the merges.txt beside a vocab.json, else 0 */
    uint64_t specials_xxh3; /* of the file of --specials-file, else 0 */
} tokenizer_file;

/* Loads it. Returns an exit code, with a message that names the file when it is not CLI_OK. */
int tokenizer_file_open(tokenizer_file *file, const tokenizer_choice *choice);
void tokenizer_file_close(tokenizer_file *file);

/* Reads the file whose name is that of `path` with `other` in place of its last part: for
 * x/gpt2-vocab.json, "vocab.json" and "merges.txt" that is x/gpt2-merges.txt. Nothing is read when
 * the path ends otherwise or there is no such file. Returns an exit code, with a message. */
int tokenizer_file_read_beside(const char *path, const char *last, const char *other,
                               whole_file *file);

/* The lines of --help about the options that every command with a tokenizer has. A test compares
 * the names with those of presets.c. */
#define TOKENIZER_FILE_HELP                                                                        \
    "                            Ids are those of tokenizers 0.23, tiktoken 0.14 or\n"             \
    "                            sentencepiece 0.2.2 and later; a file whose ids would\n"          \
    "                            differ is refused\n"                                              \
    "      --pattern NAME        what a file with only ranks needs: gpt2, p50k, p50k_edit, "       \
    "cl100k,\n"                                                                                    \
    "                            o200k, o200k_harmony, llama3, llama4, qwen2, qwen2.5, qwen3,\n"   \
    "                            deepseek3 or tekken; NAME:any is its pattern without its\n"       \
    "                            special tokens, for files with any number of ranks\n"             \
    "      --specials-file FILE  more special tokens: JSON, {\"CONTENT\": ID, ...}\n"

/* text, match, error or drop; false for another word. */
bool tokenizer_specials_policy(const char *word, specials_policy *policy);
const char *tokenizer_specials_name(specials_policy policy);

#endif /* TOKMAP_TOKENIZER_FILE_H */

/* tokenizer_file.h - opens the tokenizer of a command line: `bytes`, or a tokenizer file and the
 * files beside it. */
#ifndef TOKMAP_TOKENIZER_FILE_H
#define TOKMAP_TOKENIZER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/options.h"
#include "system/files.h"
#include "tokenizer/tokenizer.h"

typedef struct tokenizer_choice {
    const char *name;     /* "bytes", or the path of a file */
    const char *pattern;  /* --pattern, or NULL */
    const char *specials; /* --specials-file, or NULL */
} tokenizer_choice;

typedef struct tokenizer_file {
    tokenizer *tokenizer;
    const char *path;    /* as in the choice */
    char name[256];      /* "bytes", or the last part of the path */
    const char *pattern; /* as in the choice */
    bool from_file;      /* else it is built in, and the checksums are 0 */
    uint64_t file_xxh3;
    uint64_t merges_xxh3;   /* of the merges.txt beside a vocab.json, or 0 */
    uint64_t specials_xxh3; /* of the file of --specials-file, or 0 */
} tokenizer_file;

/* Loads the tokenizer. Returns an exit code, and prints the error with the name of the file. */
int tokenizer_file_open(tokenizer_file *file, const tokenizer_choice *choice);
void tokenizer_file_close(tokenizer_file *file);

/* Reads the file beside `path` whose name has `other` in place of `last` at the end: for
 * x/gpt2-vocab.json, "vocab.json" and "merges.txt" that is x/gpt2-merges.txt. Reads nothing if the
 * path does not end in `last` or the file does not exist. Returns an exit code, and prints the
 * error. */
int tokenizer_file_read_beside(const char *path, const char *last, const char *other,
                               whole_file *file);

/* Help texts for the options that every command with a tokenizer has. */
#define TOKENIZER_HELP                                                                             \
    "the tokenizer: tokenizer.json, vocab.json (with merges.txt beside it), .tiktoken, "           \
    "tokenizer.model or "                                                                          \
    "tekken.json; or 'bytes', where each byte is its own id and 256 ends a document. Ids equal "   \
    "those of tokenizers 0.23, tiktoken 0.14 or sentencepiece 0.2.2 and later; a file whose ids "  \
    "would differ is refused"
#define PATTERN_HELP                                                                               \
    "for files that contain only ranks, such as .tiktoken: the rule that splits text into words, " \
    "and the special tokens; NAME:any is only the rule, for files with any number of ranks"
#define SPECIALS_FILE_HELP "a JSON file with more special tokens: {\"CONTENT\": ID, ...}"
/* The names of --pattern. */
const cli_word *tokenizer_pattern_words(void);
/* The words of --specials. */
extern const cli_word tokenizer_specials_words[];

#endif /* TOKMAP_TOKENIZER_FILE_H */

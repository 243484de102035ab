/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_choice.h - the tokenizer that a command line names: opens it, prints why it cannot, and
 * has the help and the words of its options. */
#pragma once

#include <stddef.h>

#include "cli/options.h"
#include "tokenizer/file/tokenizer_file.h"

/* Opens the tokenizer and protects its files (protected.h). Returns an exit code, and prints the
 * error. */
int tokenizer_choice_open(tokenizer_file *file, const tokenizer_choice *choice);
/* The same as tokenizer_choice_open, but a tokenizer that cannot turn ids into text is an error
 * too. */
int tokenizer_choice_open_decoder(tokenizer_file *file, const tokenizer_choice *choice);
/* Prints the error and returns its exit code. For an error in the content of a file, the advice
 * follows, which is "" or begins with a semicolon. */
int tokenizer_choice_fail(const failure *err, const char *advice);

#define TOKENIZER_HELP                                                                             \
    "the tokenizer: tokenizer.json, vocab.json (with merges.txt beside it), .tiktoken, "           \
    "tokenizer.model or tekken.json, or the folder that has it; or 'bytes', where each byte is "   \
    "its own id and 256 ends a document. Ids equal those of tokenizers 0.23, tiktoken 0.14 or "    \
    "sentencepiece 0.2.2 and "                                                                     \
    "later; a file whose ids would differ is refused. hf://OWNER/NAME[@REVISION], or OWNER/NAME, " \
    "names a repository of the Hugging Face Hub that is in its cache"
/* The rows of --pattern, --specials-file and --download, for a tokenizer_choice at this offset. */
#define TOKENIZER_ROWS(offset)                                                                     \
    {.name = "pattern",                                                                            \
     .kind = CLI_TEXT,                                                                             \
     .target = (offset) + offsetof(tokenizer_choice, pattern),                                     \
     .placeholder = "NAME",                                                                        \
     .help = "for files that contain only ranks, such as .tiktoken: the rule that splits text "    \
             "into words, and the special tokens; NAME:any is only the rule, for files with any "  \
             "number of ranks; or a regular expression, as tiktoken takes it",                     \
     .get_words = tokenizer_pattern_words},                                                        \
        {"specials-file", 0,                                                                       \
         CLI_TEXT,        (offset) + offsetof(tokenizer_choice, specials),                         \
         "FILE",          .help = "a JSON file with more special tokens: {\"CONTENT\": ID, ...}"}, \
    {                                                                                              \
        "download", 0, CLI_FLAG, (offset) + offsetof(tokenizer_choice, download),                  \
            .help = "fetch files named hf://... that the cache of the Hub lacks; else nothing "    \
                    "uses the network"                                                             \
    }
/* The names of --pattern. */
const cli_word *tokenizer_pattern_words(void);
/* The words of --specials. */
extern const cli_word tokenizer_specials_words[];

/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of tokmap pack. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "corpus/corpus.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "input/name_filter.h"
#include "tokenizer/file/tokenizer_file.h"

#define PACK_MAX_SPLITS 16
#define PACK_MAX_SPLIT_NAME 32
#define PACK_NO_LIMIT UINT64_MAX
#define PACK_SPECIALS_AUTO (-1)

/* --also: the files of another program that share P.bin */
typedef enum pack_also {
    PACK_ALSO_NONE,
    PACK_ALSO_MEGATRON
} pack_also;

/* --split NAME=FRACTION: documents whose hash is in [from, below) go to P-NAME. */
typedef struct pack_split {
    char name[PACK_MAX_SPLIT_NAME + 1];
    double fraction;
    uint64_t below; /* `from` is the `below` of the split before it, or 0 */
} pack_split;

typedef struct pack_options {
    const char *output;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
    const char *cells_folder;       /* of a plan, which is the output; or NULL */
    const char *report;             /* or NULL */

    const char **skipped; /* --skip-input; owned */
    size_t n_skipped;
    name_filter filter; /* --include and --exclude; its lists are owned */
    bool skip_unsuitable;
    reader_options input;                            /* what pack_reader_options does not set */
    char *separator;                                 /* owned, or NULL */
    const char *tokens, *parts, *labels, *loss_mask; /* fields, or NULL */
    uint64_t vocab_size;                             /* --vocab-size, or 0 */
    const char **meta_text; /* --meta-text, then what pack_inputs_look adds; owned */
    size_t n_meta_text;
    bool types_known;              /* all that are strings are in it */
    const char *meta, *where_text; /* --meta and --where, or NULL; compiled: */
    field_list fields;             /* those of --meta come first */
    where *where;                  /* or NULL */

    tokenizer_choice tokenizer;
    int specials;          /* specials_policy, or PACK_SPECIALS_AUTO until pack_options_check */
    const char *eod, *bos; /* as written */

    uint64_t limit_documents, limit_tokens; /* or PACK_NO_LIMIT */
    int also;                               /* pack_also */
    pack_split splits[PACK_MAX_SPLITS];
    size_t n_splits;

    uint64_t n_threads;
    uint64_t memory;        /* bytes for each thread; 0: pack_options_check chooses it, */
    bool memory_is_short;   /* and has less than usual */
    uint64_t max_document;  /* bytes */
    uint64_t checkpoint_ms; /* between two checkpoints; 0: whenever one can be made */
    bool dry_run, write_lists, restart, force, json, quiet;
} pack_options;

/* The options for reading the inputs, without the callbacks. */
reader_options pack_reader_options(const pack_options *options);
/* The words of --format, --utf8, --on-error and --also, as they are written and recorded. */
extern const cli_word pack_formats[], pack_utf8_words[], pack_on_error_words[], pack_also_words[];

/* ---- Those that decide what is written, for all commands that take them ---- */

/* The struct of a command's options begins with pack_options. */
extern const cli_option pack_document_rows[], pack_token_rows[], pack_split_row[],
    pack_memory_row[];
/* All of these; NULL ends the list. */
extern const cli_option *const pack_deciding_rows[];

/* The row of the option --write-lists. */
#define PACK_WRITE_LISTS_ROW                                                                       \
    {                                                                                              \
        "write-lists", 0, CLI_FLAG, offsetof(pack_options, write_lists),                           \
            .help = "if text and records need a run each, write the lists of inputs that the "     \
                    "proposed commands name, beside the output"                                    \
    }

/* The options before any is given. */
pack_options pack_options_new(void);
/* Called after the options were set: compiles --meta and --where, and refuses what does not go
 * together. Returns an exit code, and prints the error. */
int pack_options_check(pack_options *options);
/* After the result: prints that tokens are bytes, if the command line names no tokenizer. */
int pack_options_say_bytes(const pack_options *options);
/* Makes the field, which must stay valid, a string in CSV and TSV. False: out of memory. */
bool pack_options_add_text(pack_options *options, const char *field);
/* Takes those that the environment has. */
int pack_options_environment(pack_options *options);
void pack_options_free(pack_options *options);

/* ---- The tokens around each document: --eod and --bos ---- */

typedef struct pack_tokens {
    uint32_t eod_id, bos_id; /* or MODEL_NO_ID */
    uint64_t vocab_size;     /* of all ids, including these two */
} pack_tokens;

/* Opens the tokenizer that the options name, and resolves the words of the options to ids. Returns
 * an exit code, and prints the error; then too the file must be closed. */
int pack_tokens_open(pack_tokens *tokens, tokenizer_file *file, const pack_options *options);
/* Returns the size of a token in the outputs: 2 or 4. */
uint32_t pack_token_bytes(const pack_tokens *tokens, const pack_options *options);

/* ---- The files that a run reads and writes ---- */

/* P.skipped.partial exists while a run with --on-error skip is not done. */
#define PACK_SKIPPED_SUFFIX ".skipped"
/* Checks the names of all outputs, including temporary names, after all inputs are protected
 * (paths.h): no file may be both read and written, or be two outputs, and only a regular file may
 * be replaced. makes_folders: creates the folders of the outputs first; without them, two names in
 * a folder that does not exist are the same only if they are spelt alike. Returns an exit code, and
 * prints the error. */
int pack_names_check(const pack_options *options, bool makes_folders);

/* model.h - what a vocabulary file says, before anything is made fast of it.
 *
 * The loaders (load_*.c) fill one; tokenizer.c makes a tokenizer of it or refuses it by name. */
#ifndef TOKMAP_MODEL_H
#define TOKMAP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/split/splitter.h"

#define MODEL_NO_ID UINT32_MAX
#define MODEL_MAX_TOKENS ((uint32_t)1 << 21)
#define MODEL_MAX_TOKEN_BYTES 65535

typedef enum model_kind {
    MODEL_BYTE_BPE, /* symbols are bytes; token bytes are raw bytes */
    MODEL_CHAR_BPE, /* symbols are characters; token bytes are UTF-8, U+2581 for a space */
    MODEL_UNIGRAM
} model_kind;

/* What the vocabulary of a tokenizer.json holds is TOKEN_NORMAL even when it is an added token too,
 * or the unknown token: as in the reference, merges and Unigram may arrive at it. Only what no text
 * can give is TOKEN_CONTROL there: added tokens that the vocabulary lacks, and entries of a
 * byte-level vocabulary that are not written in its alphabet. No merge names a TOKEN_CONTROL. */
typedef enum token_kind {
    TOKEN_ABSENT, /* a hole in the ids */
    TOKEN_NORMAL,
    TOKEN_UNKNOWN,      /* sentencepiece: its own text does not match */
    TOKEN_CONTROL,      /* never comes out of text: specials */
    TOKEN_USER_DEFINED, /* sentencepiece: matches before anything else */
    TOKEN_UNUSED,       /* sentencepiece: split up again when it comes out */
    TOKEN_BYTE          /* byte fallback <0xNN>: its bytes are the one byte */
} token_kind;

typedef struct model_token {
    size_t offset; /* in model.bytes */
    uint32_t n_bytes;
    uint8_t kind;
    double score; /* Unigram of a tokenizer.json; sentencepiece's, which are floats */
} model_token;

typedef struct model_merge {
    uint32_t left, right, result;
} model_merge;

/* What gives a pair of symbols its turn. */
typedef enum merge_rule {
    MERGE_LISTED, /* the place in `merges` (tokenizer.json, merges.txt) */
    MERGE_RANKED, /* any two tokens whose bytes together are a token; its id, the lowest first
                     (tiktoken, tekken): only among TOKEN_NORMAL */
    MERGE_SCORED  /* the same by score, the highest first (sentencepiece) */
} merge_rule;

typedef struct model_text {
    char *s; /* owned, NUL after it */
    size_t n_bytes;
} model_text;

typedef enum normalize_kind {
    NORMALIZE_NFC,
    NORMALIZE_NFKC,
    NORMALIZE_PREPEND,      /* `to` before a text that is not empty */
    NORMALIZE_REPLACE,      /* each `from` by `to` */
    NORMALIZE_REPLACE_RUNS, /* each run of two or more `from` by one `to`: regex " {2,}" */
    NORMALIZE_STRIP,        /* blanks at `left` and/or `right` */
    NORMALIZE_CHARSMAP,     /* `to` is sentencepiece's precompiled blob */
    NORMALIZE_SENTENCEPIECE /* all that normalizer_spec says, in sentencepiece's own order */
} normalize_kind;

typedef struct normalize_step {
    normalize_kind kind;
    model_text from, to;
    bool left, right;
} normalize_step;

/* HuggingFace's Metaspace, as a pre-tokenizer. */
typedef enum prepend_scheme {
    PREPEND_NEVER,
    PREPEND_FIRST, /* before the first stretch of the text only */
    PREPEND_ALWAYS /* before every stretch between added tokens */
} prepend_scheme;

/* How ids become text again. */
typedef enum decode_rule {
    DECODE_AS_MODEL,  /* as the kind of the model says */
    DECODE_BYTES,     /* the bytes of the tokens */
    DECODE_METASPACE, /* U+2581 to blanks; decode_strips: the first token loses its own */
    DECODE_MARKS,     /* U+2581 to blanks, byte fallback; decode_strips: one blank at the start */
    DECODE_UNKNOWN    /* in a way that is not supported */
} decode_rule;

typedef struct added_token {
    uint32_t id;
    model_text content;
    bool special, normalized, lstrip, rstrip, single_word;
} added_token;

#define MODEL_MAX_STEPS 8

typedef struct model {
    model_kind kind;
    uint8_t *bytes; /* of all tokens */
    size_t n_bytes, bytes_capacity;
    model_token *tokens; /* by id */
    size_t n_tokens, tokens_capacity;

    merge_rule rule;
    model_merge *merges; /* MERGE_LISTED */
    size_t n_merges, merges_capacity;
    bool whole_word_first; /* a word that is a TOKEN_NORMAL is that, reachable by merges or not */
    bool byte_fallback;    /* every character that may need it has its bytes as TOKEN_BYTE */
    bool fuse_unknown;     /* BPE: unknown characters in a row are one unknown token */
    uint32_t unknown_id;   /* MODEL_NO_ID: unknown characters are left out */

    normalize_step steps[MODEL_MAX_STEPS];
    size_t n_steps;
    bool whitespace_split; /* WhitespaceSplit before Metaspace */
    bool metaspace;        /* spaces become U+2581 ... */
    prepend_scheme prepend;
    bool metaspace_split; /* ... and words begin there */
    split_pattern split;
    bool prefix_space; /* ByteLevel's add_prefix_space */
    /* NORMALIZE_SENTENCEPIECE */
    model_text charsmap;
    bool dummy_prefix, collapse_spaces, escape_spaces, whitespace_as_suffix;

    decode_rule decode;
    bool decode_strips;

    added_token *added;
    size_t n_added, added_capacity;
    uint32_t bos_id, eos_id; /* what the file or preset names, or MODEL_NO_ID */
    bool eos_guessed;        /* eos_id is a special token with the name of an end ... */
    uint32_t eos_rival;      /* ... and this is another one, or MODEL_NO_ID */
    const char *family;      /* static: "byte-level BPE", for messages and metadata */
} model;

typedef struct model_error {
    bool no_memory; /* and nothing is wrong with the file */
    size_t offset;  /* in the file, where that means something; else 0 */
    char text[480]; /* one line, without the file's name: what is not supported or wrong */
} model_error;

void model_init(model *m);
void model_free(model *m);

/* Builders for the loaders; false: out of memory, or a limit is passed and err says so. */
/* Sets tokens[id]; the ids between become TOKEN_ABSENT. An id that is set already is an error. */
typedef struct new_token {
    uint32_t id;
    const void *bytes;
    size_t n_bytes;
    token_kind kind;
    double score;
} new_token;
bool model_set_token(model *m, const new_token *token, model_error *err);
bool model_add_merge(model *m, model_merge merge, model_error *err);
/* Of a pair that is merged twice the last one counts, as in tokenizers. After the last merge. */
bool model_keep_last_merges(model *m, model_error *err);
/* Copies the content, which is not empty. */
bool model_add_added(model *m, const added_token *token, model_error *err);
/* The same for a special that a preset or the user names; an id with another text is an error. */
bool model_add_special(model *m, uint32_t id, model_text content, model_error *err);
/* A new step, to be filled in. NULL: there are too many. */
normalize_step *model_add_step(model *m, normalize_kind kind, model_error *err);
/* Whether the parts of sentencepiece's blob lie inside it: 4 bytes with the size of a trie of
 * 4-byte units, the trie, texts that end with NUL. */
bool model_check_charsmap(const model_text *charsmap, model_error *err);
bool model_text_set(model_text *text, const void *s, size_t n_bytes);
/* Return false. */
bool model_no_memory(model_error *err);
/* After a table could not be made, errno having been 0 before: no memory, or its `entries` were
 * made to fall into one place. */
bool model_table_failed(model_error *err, const char *entries);
struct json_reader;
/* As the reader failed. */
bool model_fail_json(model_error *err, const char *before, const struct json_reader *r);
bool model_fail(model_error *err, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline const uint8_t *model_token_bytes(const model *m, uint32_t id)
{
    return m->bytes + m->tokens[id].offset;
}

#endif /* TOKMAP_MODEL_H */

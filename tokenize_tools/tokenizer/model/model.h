/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - the contents of a tokenizer file, before fast tables are made from it.
 *
 * The loaders (load_*.c) fill one and check what they take from a file: ids exist, pieces are UTF-8
 * and different, scores are finite, and what byte_fallback needs is there. tokenizer.c makes a
 * tokenizer from it, or refuses it and names the part that is not supported. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "tokenizer/split/stages.h"

#define MODEL_NO_ID UINT32_MAX
#define MODEL_MAX_TOKENS ((uint32_t)1 << 21)
#define MODEL_MAX_TOKEN_BYTES 65535
#define MODEL_PADDING 16 /* zeros after the bytes of all tokens */
/* The name of a TOKEN_BYTE in a vocabulary, for printf. */
#define MODEL_BYTE_NAME "<0x%02X>"
#define MODEL_BYTE_NAME_BYTES 6
typedef struct model_byte_name {
    char text[MODEL_BYTE_NAME_BYTES + 2];
} model_byte_name;

typedef enum model_kind {
    MODEL_BYTE_BPE, /* symbols are bytes; token bytes are raw bytes */
    MODEL_CHAR_BPE, /* symbols are characters; token bytes are UTF-8, U+2581 for a space */
    MODEL_UNIGRAM,
    MODEL_WORDPIECE, /* a word is the longest pieces from left to right */
    MODEL_WORDLEVEL  /* a word is one token */
} model_kind;

/* Entries in the vocabulary of a tokenizer.json are TOKEN_NORMAL even if they are also added tokens
 * or the unknown token: as in the reference, merges and Unigram may produce them. TOKEN_CONTROL are
 * only those that no text can produce: added tokens that are not in the vocabulary, and entries of
 * a byte-level vocabulary that are not written in its alphabet. No merge names a TOKEN_CONTROL. */
typedef enum token_kind {
    TOKEN_ABSENT, /* no token has this id */
    TOKEN_NORMAL,
    TOKEN_UNKNOWN,      /* sentencepiece: its own text does not match */
    TOKEN_CONTROL,      /* text never produces it: specials */
    TOKEN_USER_DEFINED, /* sentencepiece: matches before anything else (BPE, Unigram, char) */
    TOKEN_UNUSED,       /* sentencepiece: split again when it is produced; MERGE_NONE: unknown */
    TOKEN_BYTE          /* byte fallback <0xNN>: its bytes are the one byte */
} token_kind;

typedef struct model_token {
    size_t offset; /* in model.bytes */
    uint32_t n_bytes;
    uint8_t kind;
    double score; /* of a Unigram tokenizer.json, or sentencepiece's, which are floats */
} model_token;

typedef struct model_merge {
    uint32_t left, right, result;
} model_merge;

/* What decides the order of merges. */
typedef enum merge_rule {
    MERGE_LISTED, /* the index in `merges` (tokenizer.json, merges.txt) */
    MERGE_RANKED, /* any two tokens whose bytes together are a token merge, the lowest id first
                     (tiktoken, tekken): only TOKEN_NORMAL */
    MERGE_SCORED, /* the same, the highest score first (sentencepiece) */
    MERGE_NONE    /* nothing merges (sentencepiece): each character is a token or unknown; with
                     whole_word_first each word, which begins at a U+2581 */
} merge_rule;

typedef struct model_text {
    char *s; /* owned, NUL-terminated */
    size_t n_bytes;
} model_text;

typedef enum normalize_kind {
    NORMALIZE_NFC,
    NORMALIZE_NFD,
    NORMALIZE_NFKC,
    NORMALIZE_NFKD,
    NORMALIZE_STRIP_ACCENTS,
    NORMALIZE_LOWERCASE,
    NORMALIZE_NMT,
    NORMALIZE_BERT,                /* what its four flags say, in their order */
    NORMALIZE_PREPEND,             /* puts `to` before a text that is not empty */
    NORMALIZE_REPLACE,             /* each `from` by `to` */
    NORMALIZE_REPLACE_RUNS,        /* each run of two or more `from` by one `to`: regex " {2,}" */
    NORMALIZE_REPLACE_BLANKS,      /* each run of white space by `to`: regex "\\s+" */
    NORMALIZE_REPLACE_LONG_BLANKS, /* the same of two or more, and \n, \r and \t: regex
                                      "\\s{2,}|[\\n\\r\\t]" */
    NORMALIZE_STRIP,               /* blanks at `left` and/or `right` */
    NORMALIZE_CHARSMAP,            /* `to` is sentencepiece's precompiled blob */
    NORMALIZE_SENTENCEPIECE        /* everything in normalizer_spec, in sentencepiece's order */
} normalize_kind;

typedef struct normalize_step {
    normalize_kind kind;
    model_text from, to;
    bool left, right;
    bool clean_text, ideographs, strip_accents, lowercase; /* NORMALIZE_BERT */
} normalize_step;

/* HuggingFace's Metaspace, as a pre-tokenizer. */
typedef enum prepend_scheme {
    PREPEND_NEVER,
    PREPEND_FIRST, /* before what begins where the text begins */
    PREPEND_ALWAYS /* before every stretch between added tokens, or every piece of one */
} prepend_scheme;

/* A pre-tokenizer that changes each piece that those before it have left, and then splits it. */
typedef enum piece_change {
    CHANGE_BLANK, /* a blank goes before it, unless it begins with one: ByteLevel */
    CHANGE_MARKS, /* blanks become U+2581, which may also go before it: Metaspace */
    CHANGE_BYTES  /* each byte becomes its character of byte_alphabet.h: ByteLevel */
} piece_change;
typedef struct piece_step {
    piece_change change;
    prepend_scheme prepend; /* CHANGE_MARKS */
    split_pattern split;
} piece_step;
#define MODEL_MAX_PIECE_STEPS (2 * SPLIT_MAX_STAGES)

/* How ids are decoded. */
typedef enum decode_rule {
    DECODE_AS_MODEL,  /* the bytes of the tokens; over characters, as sentencepiece */
    DECODE_BYTES,     /* the bytes of the tokens */
    DECODE_METASPACE, /* U+2581 to blanks; decode_strips: the first token loses its own */
    DECODE_MARKS,     /* U+2581 to blanks, byte fallback; decode_strips: one blank at the start */
    DECODE_WORDPIECE, /* blanks between tokens that do not begin with `decode_affix`;
                         decode_cleans */
    DECODE_BLANKS,    /* blanks between tokens */
    DECODE_SUFFIX,    /* a blank for each `decode_affix`, but none in the last token */
    DECODE_UNKNOWN    /* not supported */
} decode_rule;

typedef struct added_token {
    uint32_t id;
    model_text content;
    bool special, normalized, lstrip, rstrip, single_word;
} added_token;

#define MODEL_MAX_STEPS 8

typedef struct model {
    model_kind kind;
    uint8_t *bytes; /* of all tokens, and MODEL_PADDING */
    size_t n_bytes, bytes_capacity;
    model_token *tokens; /* by id */
    size_t n_tokens, tokens_capacity;

    merge_rule rule;
    model_merge *merges; /* MERGE_LISTED */
    size_t n_merges, merges_capacity;
    bool whole_word_first; /* a word that is a TOKEN_NORMAL becomes that token, even if merges do
                              not lead to it */
    bool byte_fallback;    /* every character that may need it has its bytes as TOKEN_BYTE */
    bool fuse_unknown;     /* BPE: a run of unknown characters becomes one unknown token */
    uint32_t unknown_id;   /* MODEL_NO_ID: unknown characters are left out */

    normalize_step steps[MODEL_MAX_STEPS];
    size_t n_steps;
    bool metaspace; /* at last, spaces become U+2581 ... */
    prepend_scheme prepend;
    bool metaspace_split;  /* ... and words begin there */
    model_text split_text; /* where `split` splits: if it never occurs there is no split; or {0} */
    split_own own[SPLIT_MAX_STAGES]; /* STAGE_OWN + k of the patterns */
    size_t n_own;
    split_pattern split;
    bool prefix_space; /* ByteLevel's add_prefix_space, before the text is split */
    piece_step later[MODEL_MAX_PIECE_STEPS]; /* for the words of `split`, before `metaspace` */
    size_t n_later;
    /* NORMALIZE_SENTENCEPIECE */
    model_text charsmap;
    bool dummy_prefix, collapse_spaces, escape_spaces, whitespace_as_suffix;

    model_text word_suffix;       /* BPE: of the last symbol of a word, "</w>" */
    model_text subword_prefix;    /* WordPiece: of pieces that continue a word, "##" */
    uint64_t max_word_characters; /* WordPiece: a longer word is unknown */

    decode_rule decode;
    bool decode_strips;
    model_text decode_affix; /* DECODE_WORDPIECE, DECODE_SUFFIX; sentencepiece: of the unknown */
    bool decode_cleans;      /* DECODE_WORDPIECE: no blanks before punctuation */

    added_token *added;
    size_t n_added, added_capacity;
    uint32_t bos_id, eos_id; /* as the file or preset says, or MODEL_NO_ID */
    bool eos_guessed;        /* eos_id was guessed from the name of a special token ... */
    uint32_t eos_rival;      /* ... and this is another candidate, or MODEL_NO_ID */
    const char *family;      /* static: "byte-level BPE", for messages and metadata */
} model;

void model_init(model *m);
void model_free(model *m);

/* For the loaders. false: out of memory, or a limit is exceeded, with *err set. */
/* Sets tokens[id]; ids skipped become TOKEN_ABSENT. An id that is already set is an error. */
typedef struct new_token {
    uint32_t id;
    const void *bytes;
    size_t n_bytes;
    token_kind kind;
    double score;
} new_token;
bool model_set_token(model *m, const new_token *token, failure *err);
bool model_add_merge(model *m, model_merge merge, failure *err);
/* Finishes the merges, after the last one. If a pair is listed twice the last one counts, as in
 * tokenizers. */
bool model_keep_last_merges(model *m, failure *err);
/* Copies the content, which is not empty. */
bool model_add_added(model *m, const added_token *token, failure *err);
/* The same as model_add_added, but adds a special of a preset or the user; an id that has another
 * text is an error. */
bool model_add_special(model *m, uint32_t id, model_text content, failure *err);
/* Returns the id of the special added token with this content, which may be NULL; or
 * MODEL_NO_ID. */
uint32_t model_special_id(const model *m, const char *content);
/* Adds a step for the caller to fill in. NULL: there are too many. */
normalize_step *model_add_step(model *m, normalize_kind kind, failure *err);
/* Finds the ids of the tokens of bytes, of several the last one; MODEL_NO_ID for others. */
void model_byte_ids(const model *m, uint32_t byte_ids[256]);
/* Copies the tokens, and nothing else, to a model without any. false: out of memory. */
bool model_copy_tokens(model *to, const model *from);
bool model_text_set(model_text *text, const void *s, size_t n_bytes);
void model_text_free(model_text *text);
bool model_text_is(const model_text *text, const char *s);
bool model_text_same(const model_text *a, const model_text *b);
/* Whether it is one character of UTF-8, and which. */
bool model_text_is_character(const model_text *text, uint32_t *character);
/* Called after a table could not be made, with errno set to 0 before: out of memory, or too many
 * `entries` have the same hash. */
bool model_table_failed(failure *err, const char *entries);
struct json_reader;
struct name_table;
/* Adds a name that is new, or fails. `what` it names: "token". */
bool model_add_name(struct name_table *names, model_text name, uint32_t id, const char *what,
                    failure *err);
/* Sets err to the failure of the reader. */
bool model_fail_json(failure *err, const char *before, const struct json_reader *r);
/* Frees the reader; if not ok, err is its failure, if it has one. Returns ok. */
bool model_end_json(bool ok, struct json_reader *r, failure *err);
/* Returns the place is a byte of the file, or 0. The text becomes one line. */
bool model_fail(failure *err, size_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* How many bytes of a name from the file fit in a message, for "%.*s". */
static inline int model_shown(size_t n_bytes)
{
    return n_bytes < 100 ? (int)n_bytes : 100;
}
/* Makes a text that somebody else owns; it may end without a NUL. */
static inline model_text model_view(const void *s, size_t n_bytes)
{
    return (model_text){(char *)(uintptr_t)s, n_bytes};
}
/* U+2581, which stands for a blank in the text of tokens. */
#define MODEL_MARK "\xE2\x96\x81"
enum {
    MODEL_MARK_BYTES = 3
};
static inline bool model_begins_with_mark(const uint8_t *text, size_t n_bytes)
{
    return n_bytes >= MODEL_MARK_BYTES && memcmp(text, MODEL_MARK, MODEL_MARK_BYTES) == 0;
}
/* Whether the step replaces blanks by it. */
bool model_step_marks_blanks(const normalize_step *step);
static inline const uint8_t *model_token_bytes(const model *m, uint32_t id)
{
    return m->bytes + m->tokens[id].offset;
}
/* Returns the text of a token in a vocabulary: its bytes, or, of a TOKEN_BYTE, the name. */
model_text model_token_text(const model *m, uint32_t id, model_byte_name *name);

/* SPDX-License-Identifier: Apache-2.0 */
/* tokmap_tokenizer.h - text to token ids and back, with the tokenizers of language models.
 *
 * Example: prints the ids of a text.
 *
 *     int print_ids(const char *path, const char *text, size_t n_bytes)
 *     {
 *         const tokmap_text texts[] = {{text, n_bytes}};
 *         tokmap_encode_options options = TOKMAP_ENCODE_OPTIONS_INIT;
 *         options.texts = texts;
 *         options.n_texts = 1;
 *         tokmap_encoding ids = TOKMAP_INIT(tokmap_encoding);
 *         tokmap_tokenizer *t;
 *         int status = tokmap_tokenizer_open(&t, path, NULL, NULL);
 *         if (!status)
 *             status = tokmap_tokenizer_encode(t, &options, &ids, NULL);
 *         for (uint64_t i = 0; i < ids.n_ids; i++)
 *             printf("%u\n", (unsigned)ids.ids[i]);
 *         tokmap_encoding_free(&ids);
 *         tokmap_tokenizer_close(t);
 *         return status;
 *     }
 *
 * The rules in tokmap.h hold here too. The calls are in a library of their own: link with
 * -ltokmap_tokenizer. It does not need libtokmap, which has tokmap_status_text.
 *
 * Ids       Equal to those of the reference implementation (tokenizers, tiktoken, sentencepiece)
 *           for every text, and to those that `tokmap pack` writes. A file for which that is not
 *           known is refused. No token is added before or after a text.
 * Memory    encode and decode allocate what they return; the caller frees it with
 *           tokmap_encoding_free and tokmap_memory_free. While encode runs, it needs up to three
 *           times the memory of its result, and each of its threads a copy of the text that it
 *           encodes; what the normalizer makes of this text, twice; and up to 8 bytes for each byte
 *           of its longest word. A thread frees these after each text. For each thread that encodes
 *           at the same time, a tokenizer keeps an encoder with a cache of words, of about 32 MiB,
 *           and buffers of at most 1 MiB each, until it is closed.
 * Threads   Any number of threads may use a tokenizer at the same time. encode starts threads of
 *           its own when there is enough text, and ends them before it returns. One thread encodes
 *           a text from start to end, however long it is. Ids do not depend on the number of
 *           threads. Close a tokenizer once, when no call is running. ThreadSanitizer reports the
 *           library's own memory, unless the library was built with it or TSAN_OPTIONS has
 *           ignore_noninstrumented_modules=1.
 * Limits    A text has at most 2 GiB, and 4 GiB after the normalizer of the tokenizer.
 * fork      A child process may use a tokenizer of its parent, whatever the threads of the parent
 *           were doing. */
#ifndef TOKMAP_TOKENIZER_H
#define TOKMAP_TOKENIZER_H

#include "tokmap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ---- */

typedef struct tokmap_tokenizer tokmap_tokenizer;

typedef struct tokmap_tokenizer_options {
    size_t struct_size; /* sizeof(tokmap_tokenizer_options) */
    /* For files that contain only ranks, such as .tiktoken: the rule that splits text into words,
     * and the special tokens, by name: "cl100k", "o200k", ... as in `tokmap pack --help`. NAME:any
     * sets only the rule, for files with any number of ranks. A regular expression, as tiktoken
     * takes it, is a rule too. NULL: the file has its own. */
    const char *pattern;
    const char *specials_file; /* a JSON file with more special tokens: {"CONTENT": ID}; or NULL */
} tokmap_tokenizer_options;

typedef struct tokmap_text {
    const char *bytes; /* may be NULL if n_bytes is 0 */
    size_t n_bytes;    /* to encode: at most 2 GiB */
} tokmap_text;

/* What to do with a special token that is written in a text. Added tokens that are not special
 * always become their ids. */
typedef enum tokmap_specials {
    TOKMAP_SPECIALS_TEXT = 0,  /* treat it as plain text */
    TOKMAP_SPECIALS_MATCH = 1, /* replace it with its id */
    TOKMAP_SPECIALS_ERROR = 2, /* refuse the text */
    TOKMAP_SPECIALS_DROP = 3   /* leave it out */
} tokmap_specials;

typedef struct tokmap_encode_options {
    size_t struct_size; /* sizeof(tokmap_encode_options) */
    const tokmap_text *texts;
    uint64_t n_texts;
    uint32_t text_stride; /* sizeof(tokmap_text), or of a struct that begins with one */
    uint32_t n_threads;   /* at most, up to 1,024; 0: one for each processor of the process */
    tokmap_specials specials;
    int32_t token_offsets; /* 1: also gives the bytes of the text that each id stands for */
} tokmap_encode_options;

/* tokmap_encode_options options = TOKMAP_ENCODE_OPTIONS_INIT; sets struct_size and text_stride. */
#ifdef __cplusplus
static inline tokmap_encode_options tokmap_init_encode_options()
{
    tokmap_encode_options options = TOKMAP_INIT(tokmap_encode_options);
    options.text_stride = sizeof(tokmap_text);
    return options;
}
#define TOKMAP_ENCODE_OPTIONS_INIT tokmap_init_encode_options()
#else
#define TOKMAP_ENCODE_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .struct_size = sizeof(tokmap_encode_options), .text_stride = sizeof(tokmap_text)           \
    }
#endif
/* Does what TOKMAP_ENCODE_OPTIONS_INIT does, for languages without macros, to `size` bytes. */
TOKMAP_API void tokmap_encode_options_init(tokmap_encode_options *out, size_t size);
/* The same as tokmap_struct_init of libtokmap, for the other structs of this header. */
TOKMAP_API void tokmap_tokenizer_struct_init(void *out, size_t size);

/* The bytes that an id stands for, counted from the beginning of its text. The ranges of a text are
 * in order and do not overlap. Each byte of the text is in one of them, unless it belongs to a
 * special token that was left out. A token may end inside a character. The range is empty if the id
 * stands for no byte, such as a blank that the tokenizer puts before the text. The range of an
 * added token includes the white space that it takes. */
typedef struct tokmap_byte_range {
    uint64_t begin;
    uint64_t end; /* the byte after the last one */
} tokmap_byte_range;

/* The ids of text number i are ids[offsets[i]] to ids[offsets[i + 1] - 1]. */
typedef struct tokmap_encoding {
    size_t struct_size; /* sizeof(tokmap_encoding), set by the caller */
    uint32_t *ids;      /* of all texts, one after another; not NULL */
    uint64_t n_ids;
    /* n_texts + 1 of them, signed as in Apache Arrow; the first is 0, the last is n_ids */
    int64_t *offsets;
    tokmap_byte_range *token_offsets; /* n_ids of them; NULL if they were not asked for */
} tokmap_encoding;

/* ---- Open and close ---- */

/* Opens the tokenizer file at `path`: a tokenizer.json, vocab.json (with merges.txt beside it),
 * .tiktoken, tokenizer.model or tekken.json; its content decides which. A folder stands for the
 * first of tokenizer.json, tokenizer.model, tekken.json and vocab.json in it. The path "bytes" is a
 * built-in tokenizer: each byte is its own id, and 256 ends a document. options may be NULL.
 * TOKMAP_ERR_UNSUPPORTED: the file is not a tokenizer, is damaged, or its ids would differ from the
 * ids of the reference; err names the part, and file_offset is the byte or 0. */
TOKMAP_API tokmap_status tokmap_tokenizer_open(tokmap_tokenizer **out, const char *path,
                                               const tokmap_tokenizer_options *options,
                                               tokmap_error *err);
TOKMAP_API void tokmap_tokenizer_close(tokmap_tokenizer *t);

/* ---- Use ---- */

/* Encodes all texts, which are UTF-8, or any bytes if the tokenizer takes_bytes. After an error the
 * fields of out, except struct_size, are 0. TOKMAP_ERR_ARGUMENT: also if a text is not UTF-8, or
 * longer than 2 GiB. TOKMAP_ERR_MISMATCH: a text contains a special token, with
 * TOKMAP_SPECIALS_ERROR. TOKMAP_ERR_UNSUPPORTED: token_offsets are wanted, but the tokenizer
 * changes this text, or any text: err says which; or a step of its normalizer, such as a Replace,
 * makes more of a text than 64 bytes of each byte, and 1 MiB, or its normalizer more than 4 GiB.
 * Except for texts of more than 2 GiB, err names the first such text by its number, counted from 0,
 * and file_offset is the byte in it. */
TOKMAP_API tokmap_status tokmap_tokenizer_encode(const tokmap_tokenizer *t,
                                                 const tokmap_encode_options *options,
                                                 tokmap_encoding *out, tokmap_error *err);

/* Decodes ids, as the reference does; special tokens become their content. The text is terminated
 * by a NUL that n_bytes does not count; free out->bytes with tokmap_memory_free. It may not be
 * valid UTF-8 if the ids do not begin and end with whole characters. TOKMAP_ERR_ARGUMENT: there is
 * no such id. TOKMAP_ERR_UNSUPPORTED: the tokenizer cannot decode (`decodes` of its info is 0). */
TOKMAP_API tokmap_status tokmap_tokenizer_decode(const tokmap_tokenizer *t, const uint32_t *ids,
                                                 size_t n_ids, tokmap_text *out, tokmap_error *err);

/* Frees the arrays of an encoding, also after close, and sets them to NULL and n_ids to 0;
 * struct_size stays. Does nothing to one that TOKMAP_INIT has made. NULL is accepted. */
TOKMAP_API void tokmap_encoding_free(tokmap_encoding *e);
/* Frees an array of an encoding, or the bytes of a text that decode has returned, also after close.
 * NULL is accepted. */
TOKMAP_API void tokmap_memory_free(const void *memory);

/* Gives the bytes of one token as they are in a text, such as " the"; for a special token, its
 * content. They are not terminated, and valid until close. TOKMAP_ERR_ARGUMENT: there is no such
 * id. */
TOKMAP_API tokmap_status tokmap_tokenizer_token(const tokmap_tokenizer *t, uint32_t id,
                                                tokmap_text *out);
/* Returns the id of the token with these bytes, special tokens first; TOKMAP_NO_ID: there is
 * none. */
TOKMAP_API uint32_t tokmap_tokenizer_find(const tokmap_tokenizer *t, const char *bytes,
                                          size_t n_bytes);

/* ---- Info ---- */

typedef struct tokmap_tokenizer_info {
    size_t struct_size;  /* sizeof(tokmap_tokenizer_info), set by the caller */
    uint64_t vocab_size; /* the largest id + 1, including added tokens */
    /* The tokens that end and begin a document, as the tokenizer file or the tokenizer_config.json
     * or generation_config.json beside it say. TOKMAP_NO_ID: none, or more than one that differ. */
    uint32_t eod_id;
    uint32_t bos_id;
    int32_t eod_is_guess; /* 1: a guess from the usual name of the token; no file tells it */
    int32_t takes_bytes;  /* 1: encodes bytes that are not UTF-8 */
    int32_t decodes;      /* 1: decode works */
    /* Valid until close. */
    const char *family;     /* such as "byte-level BPE" */
    const char *unicode;    /* version of the Unicode tables in use, or NULL */
    const char *eod_reason; /* why there is no eod_id, with the candidates; else NULL */
    const char *bos_reason; /* the same for bos_id */
} tokmap_tokenizer_info;

TOKMAP_API tokmap_status tokmap_tokenizer_get_info(const tokmap_tokenizer *t,
                                                   tokmap_tokenizer_info *info);

/* Gives what the metadata of a dataset say of its tokenizer, by which
 * tokmap_dataset_check_tokenizers compares datasets: a JSON object, as `tokmap pack` writes it;
 * docs/FORMAT.md, section 3.6. It is the value of the key "tokenizer" of the metadata. It is
 * terminated by a NUL that n_bytes does not count, and valid until close. */
TOKMAP_API tokmap_status tokmap_tokenizer_metadata(const tokmap_tokenizer *t, const char **json,
                                                   size_t *n_bytes, tokmap_error *err);

/* Returns the version of the linked library, like TOKMAP_VERSION_TEXT. */
TOKMAP_API const char *tokmap_tokenizer_version(void);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_TOKENIZER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* tokmap.h - read token datasets: one flat file of tokens and its index, mapped into memory.
 *
 * Example: prints the first ids of a document.
 *
 *     int print_document(const char *path, uint64_t index)
 *     {
 *         tokmap_dataset *ds;
 *         tokmap_document d = {0, 0, 0};
 *         uint32_t ids[8];
 *         tokmap_error err; // err.text says why a call failed
 *         tokmap_status status = tokmap_dataset_open(&ds, path, &err);
 *         if (!status)
 *             status = tokmap_dataset_document(ds, index, &d);
 *         const uint64_t n = d.n_tokens < 8 ? d.n_tokens : 8;
 *         if (!status)
 *             status = tokmap_dataset_read_ids(ds, d.first_token, n, ids, &err);
 *         for (uint64_t i = 0; !status && i < n; i++)
 *             printf("%u\n", (unsigned)ids[i]);
 *         tokmap_dataset_close(ds);
 *         return status;
 *     }
 *
 * The rules below hold for all headers of tokmap.
 *
 * Status    A call returns a tokmap_status: 0, a negative error, or a positive condition. Only
 *           calls that close, and calls that cannot fail and return one number or pointer, do not.
 *           Any call may return TOKMAP_ERR_ARGUMENT, when the caller breaks a rule of the header,
 *           and TOKMAP_ERR_MEMORY; calls that use files may return TOKMAP_ERR_IO. Each comment
 *           names the other errors of its call. The library never prints, never exits, and never
 *           asserts on the content of a file.
 * Error     Where a call takes a tokmap_error, it fills it in when it fails. It may be NULL.
 * NULL      Handles, and pointers to what a call reads or fills in, must not be NULL, unless a
 *           comment says so or the number of elements is 0: TOKMAP_ERR_ARGUMENT, or 0 or NULL from
 *           a call that returns a number or pointer. Close calls accept NULL.
 * Options   Begin with TOKMAP_INIT(type). This sets struct_size and makes all other fields 0. Two
 *           structs with strides have macros of their own, which set the strides too:
 *           TOKMAP_LOADER_OPTIONS_INIT and TOKMAP_ENCODE_OPTIONS_INIT. In C these macros are
 *           initializers; in an assignment, the type stands before them: batch =
 *           (tokmap_batch)TOKMAP_INIT(tokmap_batch). Other languages call tokmap_struct_init and
 *           the calls that end with _options_init. A 0 means the default where a comment names one,
 *           otherwise that the option is not set. A flag is 0 or 1. An id that may be 0 has a flag
 *           beside it (has_...). A field `reserved` must be 0. Structs without struct_size, such
 *           as the elements of arrays, begin with {0}.
 * Growth    Later versions add fields at the end of a struct. The caller states the sizes:
 *           struct_size is the sizeof of the struct that contains it, and a stride is the sizeof of
 *           the elements of an array. Neither may be 0. If the caller's header is newer than the
 *           library, the fields that the library does not know must be 0, and it sets them to 0 in
 *           what it fills in. Structs without a struct_size or a stride never grow.
 * Memory    Every open call has a close call that frees everything. A failed open frees what it
 *           took and sets *out to NULL.
 * Threads   A tokmap_dataset does not change after open: any number of threads may use it at the
 *           same time. Close it once, when no call is running.
 * Joined    The tokens of a joined dataset are in several files, its segments, one after another.
 *           All calls treat them as one sequence of tokens, except that tokmap_dataset_tokens
 *           returns TOKMAP_IN_PIECES for a range that is not in one map.
 * Locale    Numbers in expressions, ledgers and messages have a point, whatever the locale of the
 *           process is. The library does not change it.
 * fork      A child process may use a dataset of its parent. It opens the token files of a joined
 *           dataset again, and descriptors of them that it inherited stay open until it ends.
 * Damage    Open takes constant time (of a joined dataset it reads the list of segments) and checks
 *           everything that can be checked without reading the data. Only tokmap_dataset_verify
 *           reads and checks every byte. Until then a damaged file may yield wrong tokens or an
 *           error, but the library never reads outside the file.
 * SIGBUS    Accessing a mapped page raises SIGBUS if the system cannot provide it, because the file
 *           was shortened or the disk failed. tokmap never shortens a file. tokmap_dataset_read and
 *           tokmap_dataset_verify do not use the map and return TOKMAP_ERR_IO instead. */
#ifndef TOKMAP_H
#define TOKMAP_H

#include <stddef.h>
#include <stdint.h>

/* tokmap_writer_options options = TOKMAP_INIT(tokmap_writer_options); */
#ifdef __cplusplus
template <class T> static inline T tokmap_init()
{
    T t = T();
    t.struct_size = sizeof t;
    return t;
}
#define TOKMAP_INIT(type) tokmap_init<type>()
extern "C" {
#else
#define TOKMAP_INIT(type)                                                                          \
    {                                                                                              \
        .struct_size = sizeof(type)                                                                \
    }
#endif

#define TOKMAP_VERSION_MAJOR 0
#define TOKMAP_VERSION_MINOR 2
#define TOKMAP_VERSION_PATCH 0
#define TOKMAP_VERSION_TEXT "0.2.0"
/* 2000 is 0.2.0, and 1002003 is 1.2.3. */
#define TOKMAP_VERSION_NUMBER                                                                      \
    (TOKMAP_VERSION_MAJOR * 1000000 + TOKMAP_VERSION_MINOR * 1000 + TOKMAP_VERSION_PATCH)

#define TOKMAP_API __attribute__((visibility("default")))

/* ---- Types: status and error ---- */

/* Values never change. New ones are added at the end. */
typedef enum tokmap_status {
    TOKMAP_OK = 0,
    TOKMAP_END = 1,                /* nothing is left */
    TOKMAP_IN_PIECES = 2,          /* not in one piece of memory */
    TOKMAP_NOT_READY = 3,          /* the time is up */
    TOKMAP_ERR_ARGUMENT = -1,      /* the caller broke a rule of the header */
    TOKMAP_ERR_MEMORY = -2,        /* out of memory */
    TOKMAP_ERR_IO = -3,            /* a system call failed: see sys_errno */
    TOKMAP_ERR_NOT_A_DATASET = -4, /* the file is something else */
    TOKMAP_ERR_VERSION = -5,       /* the format is newer than this library */
    TOKMAP_ERR_CORRUPT = -6,       /* damaged: sizes, offsets or checksums are wrong */
    TOKMAP_ERR_MISMATCH = -7,      /* things that do not belong together */
    TOKMAP_ERR_UNSUPPORTED = -8,   /* what this version or build does not do */
    TOKMAP_ERR_EXISTS = -9,        /* the output already exists */
    TOKMAP_ERR_LOCKED = -10,       /* another writer has the same output open */
    TOKMAP_ERR_FORKED = -11,       /* opened before a fork, used in the child */
    TOKMAP_ERR_DEVICE = -12,       /* no GPU, no driver, or it failed */
    TOKMAP_ERR_STOPPED = -13       /* on_progress stopped the call */
} tokmap_status;

/* What a program may decide by, besides the status. Values never change. New ones are added at the
 * end. */
typedef enum tokmap_reason {
    TOKMAP_REASON_NONE = 0,          /* the status says enough, or only err.text says more */
    TOKMAP_REASON_OTHER_DATA = 1,    /* a state of other datasets, documents or views */
    TOKMAP_REASON_OTHER_MIXTURE = 2, /* a state of other sources, weights, phases or skips:
                                      * tokmap_loader_amend may continue it */
    TOKMAP_REASON_EXPRESSION = 3,    /* `where` is not an expression of these columns */
    TOKMAP_REASON_REPLACEABLE = 4,   /* the output exists; `replace` would replace it */
    TOKMAP_REASON_EDIT = 5,          /* the function `edit` of a stage failed */
    TOKMAP_REASON_UNFINISHED = 6     /* the output is unfinished: it can be resumed or discarded */
} tokmap_reason;

typedef struct tokmap_error {
    tokmap_status status;
    int sys_errno; /* 0: no errno of the system says more */
    tokmap_reason reason;
    uint32_t file_bytes; /* bytes at the beginning of `text` that name a file; 0: none */
    /* the byte of the file where it happened; 0 if the error has no such byte */
    uint64_t file_offset;
    char text[512]; /* one line without a newline */
} tokmap_error;

/* Receives how far a long call is: n_done of n_total, in the unit that the call names. Called
 * during the call, by the thread that made it or by a thread of the call, but never in two threads
 * at the same time, and not if n_total is 0. A result other than 0 stops the call, which returns
 * TOKMAP_ERR_STOPPED and leaves everything as after any other error; also the result of the last
 * call, with n_total. */
typedef int tokmap_on_progress(void *context, uint64_t n_done, uint64_t n_total);

/* Returns the version of the linked library, like TOKMAP_VERSION_TEXT. */
TOKMAP_API const char *tokmap_version(void);
/* Returns the version of the linked library, like TOKMAP_VERSION_NUMBER. */
TOKMAP_API uint32_t tokmap_version_number(void);
/* Returns a few words for a status. Never NULL; not to be freed. */
TOKMAP_API const char *tokmap_status_text(tokmap_status status);

/* Does what TOKMAP_INIT does, for languages without macros: sets all `size` bytes to 0, and
 * struct_size, which is the first field, to `size`. Does nothing if out is NULL or `size` is less
 * than sizeof(size_t). */
TOKMAP_API void tokmap_struct_init(void *out, size_t size);

/* ---- Types: datasets ---- */

typedef struct tokmap_dataset tokmap_dataset;

/* The value of an id field that holds no id. */
#define TOKMAP_NO_ID UINT32_MAX

typedef struct tokmap_document {
    uint64_t index;
    uint64_t first_token;
    uint64_t n_tokens;
} tokmap_document;

/* What the tokens of a span are. It says whether their labels count in the loss. Labels of tokens
 * in no span always count. docs/FORMAT.md, section 3.9. */
typedef enum tokmap_span_role {
    /* Their labels never count. */
    TOKMAP_SPAN_PROMPT = 0,
    TOKMAP_SPAN_REDACTED = 1, /* its tokens were removed */
    TOKMAP_SPAN_REDACTED_PROMPT = 2,
    TOKMAP_SPAN_UNCOUNTED = 3, /* from here to 127: roles of the writer; labels do not count */
    TOKMAP_SPAN_COUNTED = 128  /* from here to 254: roles of the writer; labels count */
} tokmap_span_role;

/* Consecutive tokens of a document. */
typedef struct tokmap_span {
    uint64_t first_token;
    uint64_t n_tokens;
    tokmap_span_role role;
} tokmap_span;

/* A value that belongs to a document, such as its score or its language. */
typedef enum tokmap_value_type {
    TOKMAP_VALUE_NULL = 0,
    TOKMAP_VALUE_INT64 = 1,
    TOKMAP_VALUE_FLOAT64 = 2,
    TOKMAP_VALUE_STRING = 3
} tokmap_value_type;

typedef struct tokmap_value {
    tokmap_value_type type;
    int64_t integer; /* INT64 */
    double real;     /* FLOAT64 */
    /* STRING: bytes, not terminated; UTF-8 unless the writer was given other bytes */
    const char *text;
    size_t text_bytes;
} tokmap_value;

/* ---- Open and close ---- */

/* Opens and checks a dataset. `path` is its prefix P, or P.tmi, or the token file (P.bin). If a
 * path is both a prefix and another form, it is the prefix: where a.bin.tmi exists, a.bin means
 * a.bin.bin. An open dataset holds up to two maps and two file descriptors. The token files of a
 * joined dataset are opened when they are first used, from the folder of P.tmi as it was at open:
 * up to 1,024 of them stay mapped, and up to 256 stay open.
 * While a writer replaces a dataset, and after it was killed, this opens the old dataset or the new
 * one.
 * TOKMAP_ERR_IO with ENOENT in sys_errno: nothing has this name. TOKMAP_ERR_NOT_A_DATASET: the same
 * with ENOENT, if a file or a folder has this name, but no index, so it must be packed or indexed;
 * without it, P.tmi is not an index. TOKMAP_ERR_VERSION, TOKMAP_ERR_CORRUPT: P.tmi is newer than
 * this library, or damaged. TOKMAP_ERR_MISMATCH: the index belongs to another token file, or the
 * dataset was replaced a hundred times during the call. */
TOKMAP_API tokmap_status tokmap_dataset_open(tokmap_dataset **out, const char *path,
                                             tokmap_error *err);
/* The same as tokmap_dataset_open, but the token file is only opened when its tokens are first
 * used. A call that uses them then fails if it is missing or has another size. For programs that
 * open many datasets and read no tokens. */
TOKMAP_API tokmap_status tokmap_dataset_open_index(tokmap_dataset **out, const char *path,
                                                   tokmap_error *err);
/* A store of objects, such as a bucket of S3. The library has no HTTP and no credentials: the
 * caller reads ranges for it. */
#define TOKMAP_VERSION_BYTES 128

/* A range of an object. */
typedef struct tokmap_byte_read {
    const char *name; /* of the object: the name that was opened, with another end */
    /* The version that the object must have, "" for any one; then the version that it has, "" if
     * the source knows none. Room for TOKMAP_VERSION_BYTES, never NULL. */
    char *version;
    uint64_t offset;
    size_t n_bytes; /* 0: only the version and the size are asked for */
    void *dst;
    /* Set by the source: */
    size_t n_read;         /* less than n_bytes only where the object ends */
    uint64_t object_bytes; /* size of the object; UINT64_MAX: not known */
} tokmap_byte_read;

typedef struct tokmap_byte_source {
    size_t struct_size; /* sizeof(tokmap_byte_source) */
    void *context;
    /* Reads all ranges, at the same time, and returns when all are there or one of them has failed
     * for good: it is not asked again unless a row is needed. Several threads call it at the same
     * time. It fills in err, whose text names the object and the range. TOKMAP_ERR_IO with ENOENT
     * in sys_errno: there is no such object. TOKMAP_ERR_MISMATCH: it has another version. */
    tokmap_status (*read)(void *context, tokmap_byte_read *reads, size_t n_reads,
                          tokmap_error *err);
    /* Makes the call of `read` that was given these reads return soon, with any status. Called by
     * any thread. NULL: closing a loader waits for reads. */
    void (*cancel)(void *context, const tokmap_byte_read *reads);
    /* A copy of P.tmi on a disk, which is mapped as usual, of any size. If the store has P.tmi too,
     * they are compared: TOKMAP_ERR_MISMATCH. NULL: P.tmi is read from the store. */
    const char *index_path;
} tokmap_byte_source;

/* Opens a dataset in a store. `name` is its prefix P or P.tmi, as messages have it and `source`
 * gets it. The source must stay valid until close. Two calls of `read`, one after the other: the
 * beginning of P.tmi; then its sections, except checksums and those above 64 MiB, with the size
 * of the token file. A call that needs such a section later reads the rest of the index into
 * memory, up to 1 GiB; above that it is TOKMAP_ERR_UNSUPPORTED, and needs index_path. Tokens are
 * never mapped: tokmap_dataset_tokens returns TOKMAP_IN_PIECES, tokmap_dataset_read reads them,
 * and a loader reads rows ahead. TOKMAP_ERR_UNSUPPORTED also: the call needs the files on a
 * disk, as verify, writers and stages do. Other errors are those of tokmap_dataset_open, and of
 * the source. */
TOKMAP_API tokmap_status tokmap_dataset_open_from(tokmap_dataset **out, const char *name,
                                                  const tokmap_byte_source *source,
                                                  tokmap_error *err);

/* Closes a dataset. Pointers that other calls returned for it are invalid afterwards. */
TOKMAP_API void tokmap_dataset_close(tokmap_dataset *ds);

/* ---- Use: tokens and documents ---- */

/* Points *tokens to n_tokens tokens in the map, from token number `first` on: little-endian numbers
 * of token_bytes, aligned to token_bytes. Read-only, valid until close. Reads nothing from the
 * file. TOKMAP_ERR_ARGUMENT: the range is not inside the dataset.
 * TOKMAP_IN_PIECES: the dataset is a joined one, and the range is in more than one segment, or its
 * segment is not mapped because 1,024 other segments are; copy it with tokmap_dataset_read.
 * TOKMAP_ERR_IO, TOKMAP_ERR_CORRUPT: the token file was not opened yet, and cannot be opened or
 * mapped, or has another size; tokmap_dataset_read of the same range says which. */
TOKMAP_API tokmap_status tokmap_dataset_tokens(const tokmap_dataset *ds, uint64_t first,
                                               uint64_t n_tokens, const void **tokens);

/* Copies n_tokens * token_bytes bytes to dst, without the map. TOKMAP_ERR_IO: the file is too short
 * or cannot be opened or read; file_offset is the place in the token file that err.text names.
 * TOKMAP_ERR_CORRUPT: the token file was not opened yet, and has another size than it must have. */
TOKMAP_API tokmap_status tokmap_dataset_read(const tokmap_dataset *ds, uint64_t first,
                                             uint64_t n_tokens, void *dst, tokmap_error *err);

/* Copies the ids of n_tokens tokens to `ids`, whatever token_bytes is; else the same as
 * tokmap_dataset_read. */
TOKMAP_API tokmap_status tokmap_dataset_read_ids(const tokmap_dataset *ds, uint64_t first,
                                                 uint64_t n_tokens, uint32_t *ids,
                                                 tokmap_error *err);

/* Finds document number `index`. One or two cache misses, no system call. TOKMAP_ERR_ARGUMENT:
 * there is no such document. TOKMAP_ERR_CORRUPT: its entry is damaged. */
TOKMAP_API tokmap_status tokmap_dataset_document(const tokmap_dataset *ds, uint64_t index,
                                                 tokmap_document *out);
/* Finds the document that contains token number `token`. Takes less than a microsecond with 10^9
 * documents. The errors are those of tokmap_dataset_document. */
TOKMAP_API tokmap_status tokmap_dataset_find_document(const tokmap_dataset *ds, uint64_t token,
                                                      tokmap_document *out);

/* Finds the spans that have any of the tokens first .. first + n_tokens - 1, in order: *n_found
 * becomes their number, and `spans` gets the first n_most of them. A long span may come in parts.
 * TOKMAP_ERR_CORRUPT: the section of spans is damaged. */
TOKMAP_API tokmap_status tokmap_dataset_get_spans(const tokmap_dataset *ds, uint64_t first,
                                                  uint64_t n_tokens, tokmap_span *spans,
                                                  size_t n_most, size_t *n_found);

/* ---- Use: values of documents ---- */

/* A column: one value for each document. The arrays have the layout of Apache Arrow (Int8 to
 * Int64, Float, Double, LargeUtf8, Dictionary), little-endian, and begin at multiples of 64 bytes
 * in the map. Their content is not checked: before use, compare codes with n_strings, and offsets
 * with text_bytes. All pointers are valid until close. */
typedef struct tokmap_meta_column {
    size_t struct_size; /* sizeof(tokmap_meta_column), set by the caller */
    const char *name;   /* UTF-8, not terminated */
    size_t name_bytes;
    tokmap_value_type type;  /* of all values that are not null; NULL if there are none */
    uint32_t code_bytes;     /* STRING: size of a code; 0: document d has string d */
    uint64_t n_nulls;        /* documents without a value */
    uint64_t n_strings;      /* STRING: in `text`; n_documents if code_bytes is 0 */
    const uint8_t *validity; /* bit d % 8 of byte d / 8: document d has a value; NULL: all have */
    const void *values;      /* a number of each document; NULL for other types */
    const void *codes;       /* of each document, u8 or u16; NULL if code_bytes is 0 */
    const void *offsets; /* STRING: n_strings + 1 u64: string i begins at offsets[i] in `text` */
    const char *text;    /* and ends before offsets[i + 1]; NULL for other types */
    uint64_t text_bytes;
    /* Size of a number: 8 in the index; in a late column 1, 2, 4 or 8 (INT64), 4 or 8 (FLOAT64) */
    uint32_t number_bytes;
    const char *path; /* of the file of a late column; NULL: the column is in the index */
} tokmap_meta_column;

/* Describes column number `column`, below n_meta_columns of tokmap_dataset_info.
 * TOKMAP_ERR_ARGUMENT: there is no such column. */
TOKMAP_API tokmap_status tokmap_dataset_get_meta_column(const tokmap_dataset *ds, uint32_t column,
                                                        tokmap_meta_column *out);
/* Returns the value of a document in a column. Text is valid until close. TOKMAP_ERR_ARGUMENT:
 * there is no such column or document. TOKMAP_ERR_CORRUPT: its entry is damaged. */
TOKMAP_API tokmap_status tokmap_dataset_get_meta(const tokmap_dataset *ds, uint32_t column,
                                                 uint64_t document, tokmap_value *out);

/* ---- Use: columns by name ---- */

/* A column of the dataset, or a late column, which was added later in a file of its own
 * (tokmap_writer.h). Does not change after open. */
typedef struct tokmap_column tokmap_column;

/* Opens the column of this name: that of the index, else P.NAME.tmc. The dataset must stay open.
 * TOKMAP_ERR_ARGUMENT: there is no such column. TOKMAP_ERR_MISMATCH: the file is of another
 * dataset. TOKMAP_ERR_CORRUPT, TOKMAP_ERR_VERSION: it is damaged, or newer than this library. */
TOKMAP_API tokmap_status tokmap_column_open(tokmap_column **out, const tokmap_dataset *ds,
                                            const char *name, tokmap_error *err);
/* Pointers that other calls returned for the column are invalid afterwards. */
TOKMAP_API void tokmap_column_close(tokmap_column *column);
TOKMAP_API tokmap_status tokmap_column_get_info(const tokmap_column *column,
                                                tokmap_meta_column *out);
/* The same as tokmap_dataset_get_meta. */
TOKMAP_API tokmap_status tokmap_column_get_value(const tokmap_column *column, uint64_t document,
                                                 tokmap_value *out);
/* Reads and checks every byte of a late column. Columns of the index are checked by
 * tokmap_dataset_verify. on_progress counts bytes, and may be NULL. TOKMAP_ERR_CORRUPT: the column
 * is damaged. */
TOKMAP_API tokmap_status tokmap_column_verify(const tokmap_column *column,
                                              tokmap_on_progress *on_progress, void *context,
                                              tokmap_error *err);

/* Receives which of the n documents from number `first` on are kept: bit i % 64 of kept[i / 64] is
 * that of document first + i, and the bits after the last document are 0. `first` is a multiple of
 * 65,536, and n at most 65,536. A status other than TOKMAP_OK ends the call. */
typedef tokmap_status tokmap_use_kept(void *context, uint64_t first, uint32_t n,
                                      const uint64_t *kept, tokmap_error *err);
/* Evaluates an expression, as --where of tokmap-pack(1), for all documents, in their order. First
 * it compares the columns that the expression reads with their checksums: late columns, and the
 * values in the index as a whole. TOKMAP_ERR_ARGUMENT: the expression is not one, or names a column
 * that does not exist. TOKMAP_ERR_MISMATCH: the document boundaries are not known. Other errors are
 * those of tokmap_column_open. */
TOKMAP_API tokmap_status tokmap_dataset_select(const tokmap_dataset *ds, const char *where,
                                               tokmap_use_kept *use, void *context,
                                               tokmap_error *err);

/* ---- Use: lanes ---- */

/* A lane has numbers for each token of the dataset, such as a weight, a log-probability, or the ids
 * that a teacher ranks highest: docs/FORMAT.md, section 16. It is in a file of its own, P.NAME.tml;
 * in a joined dataset, if there is no such file, each token file has its lane beside it, which is
 * opened when it is first used. tokmap_writer.h says how lanes are written. A lane is used as a
 * dataset is: by any number of threads, and after fork. */
typedef struct tokmap_lane tokmap_lane;

/* The type of a number. The library never converts them. */
typedef enum tokmap_lane_type {
    TOKMAP_LANE_U8 = 1,
    TOKMAP_LANE_I8 = 2,
    TOKMAP_LANE_U16 = 3,
    TOKMAP_LANE_I16 = 4,
    TOKMAP_LANE_U32 = 5,
    TOKMAP_LANE_I32 = 6,
    TOKMAP_LANE_F16 = 7,
    TOKMAP_LANE_BF16 = 8,
    TOKMAP_LANE_F32 = 9,
    TOKMAP_LANE_F8_E4M3 = 10,
    TOKMAP_LANE_F8_E5M2 = 11
} tokmap_lane_type;

/* With what the numbers of a token go. A log-probability, a weight or a mask of a token goes with
 * it as a label; logits or a hidden state that a model has computed at a token go with it as an
 * input, and are about the label after it. */
typedef enum tokmap_goes_with {
    TOKMAP_WITH_LABEL = 0,
    TOKMAP_WITH_INPUT = 1
} tokmap_goes_with;

typedef struct tokmap_lane_info {
    size_t struct_size; /* sizeof(tokmap_lane_info), set by the caller */
    const char *name;   /* valid until close, as are path and about */
    const char *path;   /* of the file; NULL: each token file has a lane beside it */
    const char *about;  /* JSON: who made the values; "": not stated. That of the first file */
    tokmap_lane_type type;
    uint32_t count;       /* numbers for a token */
    uint32_t token_bytes; /* size of the numbers of a token */
    tokmap_goes_with goes_with;
    uint64_t n_tokens; /* of the dataset */
    uint64_t offset;   /* of the first number, in the file; 0 if path is NULL */
    uint64_t hash;     /* identifies the values; 0 if path is NULL */
} tokmap_lane_info;

/* Opens the lane of this name. The dataset must stay open. TOKMAP_ERR_ARGUMENT: there is no such
 * lane. TOKMAP_ERR_MISMATCH: the file has the values of other tokens, or two token files would have
 * the same lane file. TOKMAP_ERR_CORRUPT, TOKMAP_ERR_VERSION: it is damaged, or newer than this
 * library. */
TOKMAP_API tokmap_status tokmap_lane_open(tokmap_lane **out, const tokmap_dataset *ds,
                                          const char *name, tokmap_error *err);
/* Pointers that other calls returned for the lane are invalid afterwards. */
TOKMAP_API void tokmap_lane_close(tokmap_lane *lane);
TOKMAP_API tokmap_status tokmap_lane_get_info(const tokmap_lane *lane, tokmap_lane_info *info);
/* Sets *values to the numbers of tokens first .. first + n_tokens - 1, in the map of the file:
 * `count` for each token, little-endian. The errors are those of tokmap_dataset_tokens, also
 * TOKMAP_IN_PIECES. */
TOKMAP_API tokmap_status tokmap_lane_values(const tokmap_lane *lane, uint64_t first,
                                            uint64_t n_tokens, const void **values);
/* Copies the numbers of these tokens, without the map, as tokmap_dataset_read copies tokens. dst
 * has room for n_tokens * token_bytes. TOKMAP_ERR_IO also: the lane of a token file does not exist.
 * TOKMAP_ERR_MISMATCH: it is of other tokens, or of another type. */
TOKMAP_API tokmap_status tokmap_lane_read(const tokmap_lane *lane, uint64_t first,
                                          uint64_t n_tokens, void *dst, tokmap_error *err);

/* ---- Use: verify ---- */

typedef enum tokmap_damage_kind {
    TOKMAP_DAMAGE_BLOCK = 0,     /* the checksum of a block of tokens is wrong */
    TOKMAP_DAMAGE_SECTION = 1,   /* the checksum of a section of the index is wrong */
    TOKMAP_DAMAGE_CONTENT = 2,   /* the checksum is right, but the content breaks the format */
    TOKMAP_DAMAGE_UNREADABLE = 3 /* the system could not read it: see error.sys_errno */
} tokmap_damage_kind;

typedef struct tokmap_damage {
    size_t struct_size; /* set by the library: its sizeof */
    tokmap_damage_kind kind;
    uint64_t block_index;    /* number of the (first) block, if n_tokens is not 0 */
    uint64_t first_byte;     /* start of the block or section, in the file that error.text names */
    uint64_t n_bytes;        /* of the block or section */
    uint64_t first_token;    /* of the block */
    uint64_t n_tokens;       /* of the block; 0: the damage is in the index */
    uint64_t first_document; /* first document that has tokens in the block */
    uint64_t n_documents;    /* documents that have tokens in the block; 0: none, or not known */
    tokmap_error error;
} tokmap_damage;

typedef struct tokmap_verify_options {
    size_t struct_size; /* sizeof(tokmap_verify_options) */
    uint32_t n_threads; /* up to 64; 0: one for each processor, up to 16 */
    double fraction;    /* of the token blocks that are read, above 0, up to 1; 0 means 1 */
    uint64_t seed;      /* chooses these blocks */
    void *context;      /* passed to the functions below, which never run at the same time */
    tokmap_on_progress *on_progress;                               /* in bytes; or NULL */
    void (*on_damage)(void *context, const tokmap_damage *damage); /* or NULL */
    uint64_t first_segment; /* of a joined dataset: reads only n_segments token files from this */
    uint64_t n_segments;    /* 0: all; a flat dataset has one */
} tokmap_verify_options;

typedef struct tokmap_verify_report {
    size_t struct_size;        /* sizeof(tokmap_verify_report), set by the caller */
    uint64_t n_blocks;         /* token blocks of the dataset */
    uint64_t n_blocks_checked; /* token blocks that were read */
    uint64_t n_damages;        /* calls of on_damage */
    uint64_t bytes_read;
} tokmap_verify_report;

/* Reads and checks every byte. With a fraction or segments, it reads only some token blocks, but
 * the whole index. The blocks of a joined dataset are counted through all segments. A token file
 * that is missing or has another size is reported as one damage for all its blocks, and the rest is
 * checked. options and report may be NULL. TOKMAP_OK: everything that was read is intact.
 * TOKMAP_ERR_CORRUPT: damage was found, and err describes the first one. TOKMAP_ERR_IO: the only
 * damage is that the system could not read some bytes. TOKMAP_ERR_MISMATCH: the index was replaced
 * since open. When on_progress stops the call, which is TOKMAP_ERR_STOPPED, the report and
 * on_damage have what was found until then, without the documents of a block. */
TOKMAP_API tokmap_status tokmap_dataset_verify(const tokmap_dataset *ds,
                                               const tokmap_verify_options *options,
                                               tokmap_verify_report *report, tokmap_error *err);
/* Reads every byte of a lane, without its map, and checks it: all fields of the options are used,
 * and damage is reported with the same kinds. Of a joined dataset it also checks the hash of the
 * tokens. TOKMAP_ERR_CORRUPT: it is damaged, or the lane of a token file is of other tokens.
 * TOKMAP_ERR_IO: something could not be read. */
TOKMAP_API tokmap_status tokmap_lane_verify(const tokmap_lane *lane,
                                            const tokmap_verify_options *options,
                                            tokmap_error *err);

/* ---- Info ---- */

typedef struct tokmap_dataset_info {
    size_t struct_size; /* sizeof(tokmap_dataset_info), set by the caller */
    uint64_t n_tokens;
    uint64_t n_documents; /* 0 also if document boundaries are not known */
    uint64_t n_inputs;
    uint64_t vocab_size;   /* 0: not known */
    uint64_t token_offset; /* of the first token in the token file, in bytes */
    /* size of the token file; of all token files if there are segments */
    uint64_t token_file_bytes;
    uint64_t index_bytes;     /* size of the index file */
    uint64_t documents_bytes; /* size of the documents section in the index file */
    uint32_t token_bytes;     /* 2 or 4 */
    uint32_t largest_id;      /* largest id in the tokens; 0 if there are none */
    uint32_t eod_id;          /* the id that ends documents; TOKMAP_NO_ID: there is none */
    uint32_t format_version;
    uint32_t lowest_reader; /* lowest version whose readers can read it */
    /* equal if tokens and documents are equal, even if their values differ */
    uint8_t dataset_id[16];
    const char *index_path;  /* valid until close */
    const char *token_path;  /* valid until close; NULL: a joined dataset, see its segments */
    uint32_t n_meta_columns; /* columns of values of documents; 0: there are none */
    uint64_t n_segments;     /* token files of a joined dataset; 0: one token file, or no tokens */
    uint64_t n_spans;        /* spans of tokens that have a role */
    /* identifies the tokens in spans whose labels do not count, without redacted ones; 0: none */
    uint64_t spans_hash;
    uint64_t spans_role; /* the role of all spans; 255: each has its own */
} tokmap_dataset_info;

TOKMAP_API tokmap_status tokmap_dataset_get_info(const tokmap_dataset *ds,
                                                 tokmap_dataset_info *info);

/* A segment of a joined dataset: consecutive tokens in one file. */
typedef struct tokmap_segment_info {
    size_t struct_size; /* sizeof(tokmap_segment_info), set by the caller */
    const char *path;   /* path of the token file from the folder of P.tmi; valid until close */
    size_t path_bytes;  /* without the final NUL */
    uint64_t first_token;
    uint64_t n_tokens;
    uint64_t token_offset; /* of the first token in the token file, in bytes */
} tokmap_segment_info;

/* Describes segment number `index`, below n_segments of tokmap_dataset_info. TOKMAP_ERR_ARGUMENT:
 * there is no such segment. */
TOKMAP_API tokmap_status tokmap_dataset_get_segment(const tokmap_dataset *ds, uint64_t index,
                                                    tokmap_segment_info *info);

/* An input file of the dataset, and the documents that came from it. */
typedef struct tokmap_input_info {
    size_t struct_size; /* sizeof(tokmap_input_info), set by the caller */
    const char *name;   /* any bytes except NUL, not terminated; valid until close */
    size_t name_bytes;
    uint64_t first_document;
    uint64_t n_documents;
    uint64_t first_token;
    uint64_t n_tokens;
    uint64_t input_bytes; /* size of the input file; 0: not known */
    /* checksum of the input file: docs/FORMAT.md, section 3.5; 0: not known */
    uint64_t input_checksum;
} tokmap_input_info;

/* Describes input number `index`. TOKMAP_ERR_ARGUMENT: there is no such input. TOKMAP_ERR_CORRUPT:
 * its entry is damaged. */
TOKMAP_API tokmap_status tokmap_dataset_get_input(const tokmap_dataset *ds, uint64_t index,
                                                  tokmap_input_info *info);

/* Returns the metadata: *n_bytes bytes of JSON, an object, not terminated, valid until close. The
 * library does not check that it is JSON. */
TOKMAP_API const char *tokmap_dataset_metadata(const tokmap_dataset *ds, size_t *n_bytes);
/* Checks that the ids of all these datasets mean the same. Arrays of datasets are not of const
 * ones, because C does not convert arrays of pointers to that. TOKMAP_ERR_MISMATCH: the metadata of
 * two datasets name different tokenizers (another file, its merges, special tokens or pattern; for
 * built-in tokenizers another name), or vocabularies of different sizes; err names both. Datasets
 * whose metadata name no tokenizer, such as adopted files, match all others. */
TOKMAP_API tokmap_status tokmap_dataset_check_tokenizers(tokmap_dataset *const *datasets,
                                                         size_t n_datasets, tokmap_error *err);

/* ---- Several datasets as one list ---- */

/* Decides which of these paths to open, so that each dataset of the list is opened once: sets
 * chosen[i] to 1 or 0. Paths that lead to the same index file as an earlier path are not chosen,
 * nor are files that belong to a dataset of the list: P.idx, P.*.tmr, P.*.tmc, P.*.tmw, P.*.tml
 * and P.*.redacted. A path that leads to no index is chosen: tokmap_dataset_open then explains why
 * it cannot be opened. */
TOKMAP_API tokmap_status tokmap_dataset_choose_paths(const char *const *paths, size_t n_paths,
                                                     uint8_t *chosen, tokmap_error *err);
/* Checks that no joined dataset of the list has its tokens in the token file of another dataset,
 * which would use them twice. TOKMAP_ERR_MISMATCH: one has; err names both. tokmap_loader_open
 * checks this for all its sources. */
TOKMAP_API tokmap_status tokmap_dataset_check_files(tokmap_dataset *const *datasets,
                                                    size_t n_datasets, tokmap_error *err);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_H */

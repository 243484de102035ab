/* tokmap.h - read token datasets: one flat token file and its index, mapped and served without
 * copies.
 *
 * Use       tokmap_dataset_open; get_info, tokens, document, ... in any order;
 *           tokmap_dataset_close. To write one: tokmap_writer.h.
 * Status    Calls that can fail return a tokmap_status: 0, a negative error, or a positive
 *           condition. Where a call takes a tokmap_error it may be NULL; else it says in one
 *           line what happened. Any call may be TOKMAP_ERR_ARGUMENT or TOKMAP_ERR_MEMORY, and one
 *           that reads or writes files TOKMAP_ERR_IO; each call lists the others that it has. The
 *           library never prints, never exits and never asserts on what a file holds. Handles,
 *           and pointers to what a call fills in, must not be NULL unless their comment says so.
 * Options   Begin with TOKMAP_INIT(type), which zeroes the struct and sets its struct_size, then
 *           set what you want. A zeroed struct declares nothing: flags are 0 or 1, and an id that
 *           may be 0 has a flag beside it. Reserved fields, and what a newer header has behind the
 *           struct that this library knows, must be 0, else TOKMAP_ERR_ARGUMENT: so an old library
 *           never ignores a new option.
 * Memory    What an open call gives, its close call takes back; close accepts NULL. A failed
 *           open leaves nothing behind and sets *out to NULL. Pointers to tokens, names and
 *           metadata lead into the mapped files: read them, do not write or free them; they end
 *           with the close.
 * Threads   A tokmap_dataset does not change after open: any number of threads may use it at the
 *           same time. Close it once, when no call is running.
 * fork      A child may go on using a dataset of its parent.
 * Damage    Open checks, in constant time, all that can be checked without reading the data,
 *           and tells apart: not a tokmap index, a newer format, a damaged file (with the
 *           offset). tokmap_dataset_verify reads and checks every byte. Until then a damaged
 *           file may give wrong tokens or an error, but never makes the library read outside
 *           the file.
 * Caution   Whoever touches a mapped page that the system cannot provide (the file was
 *           shortened, the disk failed) is sent SIGBUS. tokmap itself never shortens a file.
 *           Calls that copy (tokmap_dataset_read) and verify read without the map and return
 *           TOKMAP_ERR_IO instead; so do the threads that the library starts.
 * Files     An open dataset holds two maps and two file descriptors: one if it has no documents. */
#ifndef TOKMAP_H
#define TOKMAP_H

#include <stddef.h>
#include <stdint.h>

/* tokmap_writer_options o = TOKMAP_INIT(tokmap_writer_options); */
#ifdef __cplusplus
template <class T> inline T tokmap_init()
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
#define TOKMAP_VERSION_MINOR 1
#define TOKMAP_VERSION_PATCH 0
#define TOKMAP_VERSION_TEXT "0.1.0"

#define TOKMAP_API __attribute__((visibility("default")))

/* The value of an id field that holds no id. */
#define TOKMAP_NO_ID UINT32_MAX

/* Values never change; new ones are added at the end. */
typedef enum tokmap_status {
    TOKMAP_OK = 0,
    TOKMAP_END = 1,                /* nothing more to hand out */
    TOKMAP_ERR_ARGUMENT = -1,      /* the caller broke a rule of this header */
    TOKMAP_ERR_MEMORY = -2,        /* the system gave no memory */
    TOKMAP_ERR_IO = -3,            /* a system call failed: see sys_errno */
    TOKMAP_ERR_NOT_A_DATASET = -4, /* the file is something else */
    TOKMAP_ERR_VERSION = -5,       /* a newer format than this library reads */
    TOKMAP_ERR_CORRUPT = -6,       /* damaged: sizes, offsets or checksums disagree */
    TOKMAP_ERR_MISMATCH = -7,      /* things that do not belong together */
    TOKMAP_ERR_UNSUPPORTED = -8,   /* known, but not done by this build */
    TOKMAP_ERR_EXISTS = -9,        /* the output already exists */
    TOKMAP_ERR_LOCKED = -10,       /* another process is writing the same output */
    TOKMAP_ERR_FORKED = -11,       /* opened before a fork, used in the child */
    TOKMAP_ERR_DEVICE = -12        /* no GPU, no driver for it, or it failed */
} tokmap_status;

typedef struct tokmap_error {
    tokmap_status status;
    int sys_errno;        /* 0 where the system is not to blame */
    uint64_t file_offset; /* byte where the damage or the failure is; 0 where that makes no sense */
    char text[512];       /* one line without a final newline; names the file */
} tokmap_error;

/* The version of the library that was linked, as TOKMAP_VERSION_TEXT. */
TOKMAP_API const char *tokmap_version(void);
/* A few words for a status; static, never NULL. */
TOKMAP_API const char *tokmap_status_text(tokmap_status status);

/* ---- Dataset ---- */

typedef struct tokmap_dataset tokmap_dataset;

typedef struct tokmap_dataset_info {
    size_t struct_size; /* set by the caller: sizeof(tokmap_dataset_info) */
    uint64_t n_tokens;
    uint64_t n_documents; /* 0 also when document borders are not known */
    uint64_t n_sources;
    uint64_t vocab_size;       /* 0: not known */
    uint64_t token_offset;     /* bytes before the first token in the token file */
    uint64_t token_file_bytes; /* size of the token file */
    uint64_t index_bytes;      /* size of the index file */
    uint64_t documents_bytes;  /* size of the documents section in it */
    uint32_t token_bytes;      /* 2 or 4 */
    uint32_t largest_id;       /* of all tokens; 0 when there are none */
    uint32_t eod_id;           /* or TOKMAP_NO_ID */
    uint32_t format_version;
    uint32_t lowest_reader;
    uint8_t dataset_id[16]; /* same tokens and documents, same id */
    const char *index_path; /* live as long as the dataset */
    const char *token_path;
} tokmap_dataset_info;

/* Opens and checks a dataset. path is the prefix P, or P.tmi, or the token file (P.bin). A path
 * that is a prefix is taken as one: with a.bin.tmi there, a.bin means a.bin.bin.
 * TOKMAP_ERR_NOT_A_DATASET, TOKMAP_ERR_VERSION, TOKMAP_ERR_CORRUPT: see Damage.
 * TOKMAP_ERR_MISMATCH: the index of this name belongs to another token file, or the dataset was
 * replaced meanwhile. */
TOKMAP_API tokmap_status tokmap_dataset_open(tokmap_dataset **out, const char *path,
                                             tokmap_error *err);
TOKMAP_API void tokmap_dataset_close(tokmap_dataset *ds);

/* Fills info up to info->struct_size bytes, so that a caller built against an older header
 * works. */
TOKMAP_API tokmap_status tokmap_dataset_get_info(const tokmap_dataset *ds,
                                                 tokmap_dataset_info *info);

/* Sets *tokens to token `first` in the map, aligned to token_bytes, with n_tokens tokens behind it.
 * TOKMAP_ERR_ARGUMENT when the range leaves the dataset. No token is read. */
TOKMAP_API tokmap_status tokmap_dataset_tokens(const tokmap_dataset *ds, uint64_t first,
                                               uint64_t n_tokens, const void **tokens);

/* Copies tokens at their stored width to dst (n_tokens * token_bytes bytes). Does not use the map:
 * a shortened file or a failing disk is TOKMAP_ERR_IO, with the byte of the token file where it
 * ends or fails. */
TOKMAP_API tokmap_status tokmap_dataset_read(const tokmap_dataset *ds, uint64_t first,
                                             uint64_t n_tokens, void *dst, tokmap_error *err);

typedef struct tokmap_document {
    uint64_t index;
    uint64_t first_token;
    uint64_t n_tokens;
} tokmap_document;

/* Document number `index`. TOKMAP_ERR_ARGUMENT when there is no such document, TOKMAP_ERR_CORRUPT
 * when its entry is damaged. No system call, one or two cache misses. */
TOKMAP_API tokmap_status tokmap_dataset_document(const tokmap_dataset *ds, uint64_t index,
                                                 tokmap_document *out);
/* The document that holds token `token`; errors as above. Below a microsecond at 10^9 documents. */
TOKMAP_API tokmap_status tokmap_dataset_find_document(const tokmap_dataset *ds, uint64_t token,
                                                      tokmap_document *out);

typedef struct tokmap_source_info {
    size_t struct_size; /* set by the caller: sizeof(tokmap_source_info) */
    const char *name;   /* name_bytes bytes, no terminator, may be any bytes but NUL */
    size_t name_bytes;
    uint64_t first_document, n_documents;
    uint64_t first_token, n_tokens;
    uint64_t input_bytes;    /* 0: not known */
    uint64_t input_checksum; /* XXH3-64 of the input as stored; 0: not known */
} tokmap_source_info;

/* Source number `index`: one input file and what came from it. */
TOKMAP_API tokmap_status tokmap_dataset_get_source(const tokmap_dataset *ds, uint64_t index,
                                                   tokmap_source_info *out);

/* The metadata: one JSON object, n_bytes bytes, no terminator. Not checked to be JSON. */
TOKMAP_API const char *tokmap_dataset_metadata(const tokmap_dataset *ds, size_t *n_bytes);

/* ---- Verify: read every byte and check it; a sample still reads the whole index ---- */

typedef enum tokmap_damage_kind {
    TOKMAP_DAMAGE_BLOCK = 0,     /* a block of tokens does not have its checksum */
    TOKMAP_DAMAGE_SECTION = 1,   /* a section of the index does not have its checksum */
    TOKMAP_DAMAGE_CONTENT = 2,   /* the checksum is right, but a rule of the format is broken */
    TOKMAP_DAMAGE_UNREADABLE = 3 /* the system gave an error: see error.sys_errno */
} tokmap_damage_kind;

typedef struct tokmap_damage {
    size_t struct_size; /* set by the library: as much as it knows of this */
    tokmap_damage_kind kind;
    uint64_t block_index;                 /* where n_tokens is not 0: of a block of tokens */
    uint64_t first_byte, n_bytes;         /* in the file that error.text names */
    uint64_t first_token, n_tokens;       /* of a block of tokens; else 0 */
    uint64_t first_document, n_documents; /* likewise; 0, 0 where documents are not known */
    tokmap_error error;
} tokmap_damage;

typedef struct tokmap_verify_options { /* zero it; 0 means the default */
    size_t struct_size;                /* sizeof(tokmap_verify_options) */
    uint32_t n_threads;                /* at most 64; default: one a processor, up to 16 */
    double sample;                     /* fraction of token blocks to read, in (0, 1]; default 1 */
    uint64_t seed;                     /* chooses the blocks of a sample */
    void *context; /* passed to the calls below, which never run at the same time */
    void (*on_progress)(void *context, uint64_t bytes_done, uint64_t bytes_total);
    void (*on_damage)(void *context, const tokmap_damage *damage);
} tokmap_verify_options;

typedef struct tokmap_verify_report {
    size_t struct_size;        /* set by the caller: sizeof(tokmap_verify_report) */
    uint64_t n_blocks;         /* token blocks of the dataset */
    uint64_t n_blocks_checked; /* of these, read */
    uint64_t n_damages;        /* calls of on_damage */
    uint64_t bytes_read;
} tokmap_verify_report;

/* TOKMAP_OK: all that was read is sound. TOKMAP_ERR_CORRUPT or, when all that is wrong is that
 * the system could not read, TOKMAP_ERR_IO: damages were found, err tells the first. Other
 * errors: could not verify; TOKMAP_ERR_MISMATCH when the index was replaced since it was opened.
 * options and report may be NULL. */
TOKMAP_API tokmap_status tokmap_dataset_verify(const tokmap_dataset *ds,
                                               const tokmap_verify_options *options,
                                               tokmap_verify_report *report, tokmap_error *err);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_H */

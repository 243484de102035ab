/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.h - an open dataset, for the other files of the library. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "format/document_index.h"
#include "format/format.h"
#include "format/input_table.h"
#include "format/meta_section.h"
#include "format/spans_section.h"
#include "system/platform.h"
#include "tokmap.h"

/* A file that holds consecutive tokens of the dataset. See token_files.h. */
typedef struct tokmap_i_token_file {
    const char *path;
    uint64_t first_token, n_tokens; /* counted in the dataset */
    uint64_t token_offset;          /* byte of the file at which its first token is */
    uint64_t first_block;           /* number of its first block of tokens in the dataset */
    _Atomic(const uint8_t *) map;   /* the whole file; NULL: not mapped */
    atomic_int *fd;                 /* the descriptor + 1; 0: not open */
} tokmap_i_token_file;

/* The number of token files that keep a map, without files that are mapped at open, and how files
 * that are kept are going to be read. */
typedef struct tokmap_i_files_kept {
    atomic_uint n_maps;
    atomic_bool random_maps, random_fds;
} tokmap_i_files_kept;

/* The descriptors of a joined dataset, in memory that a fork fills with zeros in the child. fork
 * copies the table of descriptors before the memory, so a descriptor that another thread opens
 * meanwhile may be in this list although the child does not have it, or has another file under its
 * number. */
typedef struct tokmap_i_kept_fds {
    atomic_uint n_fds;
    atomic_int fds[]; /* one for each file */
} tokmap_i_kept_fds;

#define TOKMAP_I_SEVERAL_FILES UINT32_MAX

struct tokmap_dataset {
    char *index_names[2];   /* P.tmi, P.tmi.replaced */
    const char *index_path; /* the one of index_names that was opened */
    char *token_names[2];   /* P.bin or another suffix, P.bin.replaced */
    const char *token_path; /* the one of token_names that was opened; P.tmi for a joined dataset */
    tokmap_i_header header;
    int index_fd;                  /* -1 if there are no documents */
    tokmap_i_file_stat index_stat; /* recognizes the index when it is opened again */
    bool is_joined;
    int folder_fd;              /* the folder of the index of a joined dataset, or -1 */
    tokmap_i_token_file *files; /* in the order of their tokens, then one without tokens */
    uint64_t n_files;
    /* For each 2^file_shift tokens, the file of the first token, if the others are in it or in the
     * next file; else TOKMAP_I_SEVERAL_FILES. Up to four numbers for each file. */
    const uint32_t *file_at;
    uint32_t file_shift;
    char *paths;                 /* the paths of the files of a joined dataset */
    size_t folder_bytes;         /* length of the part of each path before the name in the index */
    tokmap_i_files_kept *kept;   /* behind a pointer, because calls that use files change it */
    tokmap_i_kept_fds *kept_fds; /* NULL: the dataset is flat, or the system has no such memory */
    uint64_t token_file_bytes;   /* of all files */
    /* Checks a file when it is opened, in place of tokmap_i_token_file_check; NULL: no other
     * check. Set for lanes, which are read as datasets with wider tokens. */
    tokmap_status (*check_file)(const tokmap_dataset *ds, const tokmap_i_token_file *file, int fd,
                                tokmap_error *err);
    const uint8_t *index_map;     /* the whole file */
    struct tokmap_i_store *store; /* NULL: the files are on a disk. See store.h */
    tokmap_i_documents documents;
    tokmap_i_inputs inputs;
    tokmap_i_meta *meta; /* NULL: documents have no values */
    tokmap_i_spans spans;
    tokmap_i_token_file only_file[2]; /* the file of a flat dataset */
    atomic_int only_fd;
    tokmap_i_files_kept kept_here;
};

/* Whether it was opened under the names of a dataset that is being replaced. */
static inline bool tokmap_i_is_set_aside(const tokmap_dataset *ds)
{
    return ds->index_path == ds->index_names[1];
}

#define TOKMAP_I_WRONG_TOKENS_HASH "the hash of the tokens in its header is not theirs"
/* Fails with TOKMAP_ERR_CORRUPT: `what`, at this byte of the index, is wrong. */
tokmap_status tokmap_i_fail_damaged(const tokmap_dataset *ds, uint64_t offset, const char *problem,
                                    tokmap_error *err);
/* Whether the index has a column of this name; sets *index to its number, or to n_columns. */
bool tokmap_i_find_column(const tokmap_dataset *ds, const char *name, uint32_t *index);
/* Describes a column to a caller. path: of the file of a late column, else NULL. */
tokmap_status tokmap_i_give_column(const tokmap_i_meta *m, uint32_t column, const char *path,
                                   tokmap_meta_column *out);
/* Makes the names of the index. *prefix_bytes becomes the length of the prefix P in `path`, which
 * is P, P.tmi or P.suffix. */
tokmap_status tokmap_i_find_index(tokmap_dataset *ds, const char *path, size_t *prefix_bytes,
                                  tokmap_error *err);
/* Returns what a file beside a dataset is, by its suffix, such as "a rows file"; NULL: another
 * file. */
const char *tokmap_i_name_side_file(const char *path);
/* Opens the index file again, to read it without the map. Fails if the name now leads to another
 * file. */
tokmap_status tokmap_i_dataset_open_index(const tokmap_dataset *ds, int *fd, tokmap_error *err);
/* Compares the tokenizer of `ds` with the tokenizer of `*first`, the first dataset that names one;
 * NULL before that. TOKMAP_ERR_MISMATCH: they differ; the message ends with `advice`. */
tokmap_status tokmap_i_check_tokenizer(const tokmap_dataset **first, const tokmap_dataset *ds,
                                       const char *advice, tokmap_error *err);
/* Reads an id from 32 hex digits. Returns false if they are not. */
bool tokmap_i_id_of_hex(const char *hex, uint8_t id[16]);
/* Returns how many ids the dataset has had, its own last; sets id to number n of them, or to its
 * own if there is no number n. Reads the metadata in the map. */
size_t tokmap_i_dataset_ids(const tokmap_dataset *ds, size_t n, uint8_t id[16]);
/* Whether the id of these 32 digits is one that the dataset had before its own. */
bool tokmap_i_was_redacted_from(const tokmap_dataset *ds, const char *hex);

/* SPDX-License-Identifier: Apache-2.0 */
/* dataset.h - an open dataset, for the other files of the library. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "format/document_index.h"
#include "format/format.h"
#include "system/platform.h"
#include "format/input_table.h"
#include "format/meta_section.h"
#include "format/spans_section.h"
#include "tokmap.h"

/* A file that holds consecutive tokens of the dataset. See token_files.h. */
typedef struct tokmap_i_token_file {
    const char *path;
    uint64_t first_token, n_tokens; /* of the dataset */
    uint64_t token_offset;          /* of its first token, in bytes */
    uint64_t first_block;           /* of its first block of tokens, among those of the dataset */
    _Atomic(const uint8_t *) map;   /* the whole file; NULL: not mapped */
    atomic_int *fd;                 /* 1 more than the descriptor; 0: not open */
} tokmap_i_token_file;

/* How many token files keep a map; those that never give it up do not count. And whether those that
 * will be kept are going to be read in random order. */
typedef struct tokmap_i_files_kept {
    atomic_uint n_maps;
    atomic_bool random_maps, random_fds;
} tokmap_i_files_kept;

/* The descriptors of a joined dataset, in memory that is zeros in a forked child. fork copies the
 * table of descriptors before the memory. So one that another thread opens meanwhile may be in this
 * list and yet be none of the child's, or be another file there. */
typedef struct tokmap_i_kept_fds {
    atomic_uint n_fds;
    atomic_int fds[]; /* of each file */
} tokmap_i_kept_fds;

#define TOKMAP_I_SEVERAL_FILES UINT32_MAX

struct tokmap_dataset {
    char *index_names[2];   /* P.tmi, P.tmi.replaced */
    const char *index_path; /* the one of them that was opened */
    char *token_names[2];   /* P.bin or another suffix, P.bin.replaced */
    const char *token_path; /* likewise; of a joined dataset, P.tmi */
    tokmap_i_header header;
    int index_fd;                  /* -1 without documents */
    tokmap_i_file_stat index_stat; /* to recognize the index when it is opened again */
    bool is_joined;
    int folder_fd;              /* of the index of a joined dataset, or -1 */
    tokmap_i_token_file *files; /* in the order of their tokens, and one more without any */
    uint64_t n_files;
    /* For each 2^file_shift tokens the file of the first one, if the others are in it or in the
     * next file; else TOKMAP_I_SEVERAL_FILES. Up to four numbers for each file. */
    const uint32_t *file_at;
    uint32_t file_shift;
    char *paths;                 /* those of the files of a joined dataset */
    size_t folder_bytes;         /* of each of these, what stands before the name in the index */
    tokmap_i_files_kept *kept;   /* behind a pointer: calls that use files change it */
    tokmap_i_kept_fds *kept_fds; /* NULL: flat, or the system has no such memory */
    uint64_t token_file_bytes;   /* of all files */
    const uint8_t *index_map;    /* the whole file */
    tokmap_i_documents documents;
    tokmap_i_inputs inputs;
    tokmap_i_meta *meta; /* NULL: documents have no values */
    tokmap_i_spans spans;
    tokmap_i_token_file only_file[2]; /* of a flat dataset */
    atomic_int only_fd;
    tokmap_i_files_kept kept_here;
};

/* Whether the names at which it was opened are those of a dataset that is being replaced. */
static inline bool tokmap_i_is_set_aside(const tokmap_dataset *ds)
{
    return ds->index_path == ds->index_names[1];
}

#define TOKMAP_I_WRONG_TOKENS_HASH "the hash of the tokens in its header is not theirs"
/* TOKMAP_ERR_CORRUPT: a part of the index, at this byte, is wrong. */
tokmap_status tokmap_i_fail_damaged(const tokmap_dataset *ds, uint64_t offset, const char *problem,
                                    tokmap_error *err);
/* Names the index. *prefix_bytes is the length of the prefix P in `path`, which is P, P.tmi or
 * P.suffix. */
tokmap_status tokmap_i_find_index(tokmap_dataset *ds, const char *path, size_t *prefix_bytes,
                                  tokmap_error *err);
/* Opens the index file again, to read it without the map. Fails if it is another file now. */
tokmap_status tokmap_i_dataset_open_index(const tokmap_dataset *ds, int *fd, tokmap_error *err);
/* Compares the tokenizer of `ds` with that of `*first`, the first dataset that names one, or NULL
 * before that. TOKMAP_ERR_MISMATCH: they differ; the message ends with `advice`. */
tokmap_status tokmap_i_check_tokenizer(const tokmap_dataset **first, const tokmap_dataset *ds,
                                       const char *advice, tokmap_error *err);
/* Of 32 hex digits. false: these are none. */
bool tokmap_i_id_of_hex(const char *hex, uint8_t id[16]);
/* How many ids the dataset has had, the first one first and the last one its own; sets id to number
 * n of them, or to its own. Reads the metadata in the map. */
size_t tokmap_i_dataset_ids(const tokmap_dataset *ds, size_t n, uint8_t id[16]);
/* Whether the id of these 32 digits is one before its own. */
bool tokmap_i_was_redacted_from(const tokmap_dataset *ds, const char *hex);

/* SPDX-License-Identifier: Apache-2.0 */
/* token_files.h - the files that hold the tokens of a dataset: which one holds a token, its map and
 * its descriptor.
 *
 * A flat dataset has one file, which open opens and maps. The files of a joined dataset are opened
 * and mapped when they are first used, without a lock: threads that come at the same time each open
 * the file, one keeps its descriptor or map, and the others close theirs. None of them is closed
 * before the dataset is closed, so pointers into maps stay valid. The first TOKMAP_I_MOST_MAPS
 * files that are mapped keep their map, and the first TOKMAP_I_MOST_FDS that are read keep their
 * descriptor, fewer if many datasets are open and the process may open few files. Other files are
 * opened for each read. */
#pragma once

#include "dataset/file.h"

enum {
    TOKMAP_I_MOST_MAPS = 1024,
    TOKMAP_I_MOST_FDS = 256
};

/* Returns the descriptor that the file keeps, or -1. */
static inline int tokmap_i_token_file_fd(const tokmap_i_token_file *file)
{
    return atomic_load_explicit(file->fd, memory_order_acquire) - 1;
}

/* Finds the file of a token in the whole list. */
tokmap_i_token_file *tokmap_i_search_file(const tokmap_dataset *ds, uint64_t token);

/* Returns the file that holds a token. The dataset must have that token, or exactly one file. */
static inline tokmap_i_token_file *tokmap_i_file_of_token(const tokmap_dataset *ds, uint64_t token)
{
    const uint32_t at = ds->file_at[token >> ds->file_shift];
    if (at == TOKMAP_I_SEVERAL_FILES)
        return tokmap_i_search_file(ds, token);
    const uint64_t is_next = ds->files[at + 1ull].first_token <= token;
    return ds->files + (at + is_next); /* without a branch, which would often be mispredicted */
}

/* The tokens [begin, end) of a dataset; end 0: all tokens. */
typedef struct tokmap_i_extent {
    uint64_t begin, end;
} tokmap_i_extent;

/* Returns tokens that are already in the map of one file, else NULL. The range is inside the
 * dataset and not empty, unless there is exactly one file. */
static inline const uint8_t *tokmap_i_mapped_tokens(const tokmap_dataset *ds, uint64_t first,
                                                    uint64_t n_tokens)
{
    const tokmap_i_token_file *file = tokmap_i_file_of_token(ds, first);
    const uint8_t *map = atomic_load_explicit(&file->map, memory_order_acquire);
    const uint64_t in_file = first - file->first_token;
    if (!map || n_tokens > file->n_tokens - in_file)
        return NULL;
    return map + file->token_offset + in_file * ds->header.token_bytes;
}

/* Returns the part of a range of tokens that is in the file of its first token. The range is inside
 * the dataset and not empty, unless there is exactly one file. */
static inline tokmap_i_token_piece tokmap_i_first_piece(const tokmap_dataset *ds, uint64_t first,
                                                        uint64_t n_tokens)
{
    tokmap_i_token_file *file = tokmap_i_file_of_token(ds, first);
    const uint64_t in_file = first - file->first_token, width = ds->header.token_bytes;
    const uint64_t n_left = file->n_tokens - in_file;
    const uint64_t n = n_tokens < n_left ? n_tokens : n_left;
    return (tokmap_i_token_piece){file, first, n, file->token_offset + in_file * width, n * width};
}

/* Returns block number `block`, the unit of checksums: a MiB of a file, or what is left of it. Its
 * tokens are those that have a byte in it. The dataset must have it. */
tokmap_i_token_piece tokmap_i_block_piece(const tokmap_dataset *ds, uint64_t block);

/* Sets *map to the map of the whole file, which is made if necessary and valid until the dataset is
 * closed. TOKMAP_IN_PIECES: as many other files as possible are mapped; this is not an error.
 * TOKMAP_ERR_IO, TOKMAP_ERR_CORRUPT: the file cannot be opened, or has another size. */
tokmap_status tokmap_i_token_file_map(const tokmap_dataset *ds, tokmap_i_token_file *file,
                                      const uint8_t **map, tokmap_error *err);
/* Returns a descriptor of the file, which is opened if necessary. The errors are those of
 * tokmap_i_token_file_map. Unless it fails, call tokmap_i_token_file_give_back afterwards. */
tokmap_status tokmap_i_token_file_borrow(const tokmap_dataset *ds, tokmap_i_token_file *file,
                                         tokmap_i_named_file *out, tokmap_error *err);
void tokmap_i_token_file_give_back(tokmap_i_token_file *file, const tokmap_i_named_file *opened);

/* Copies the bytes of a piece, without the map. TOKMAP_ERR_IO also if the file was shortened. */
tokmap_status tokmap_i_token_piece_read(const tokmap_dataset *ds, const tokmap_i_token_piece *piece,
                                        void *dst, tokmap_error *err);

/* Tells the system how all files will be read, including those that are opened later: through maps
 * or by reads, in random order or not. */
void tokmap_i_token_files_expect(const tokmap_dataset *ds, bool mapped, bool random);

/* Makes room for the list of n files of a joined dataset, and for their paths: all of them, with
 * their last bytes. Give it back after a failure too. */
tokmap_status tokmap_i_token_files_take(tokmap_dataset *ds, uint64_t n_files, size_t paths_bytes,
                                        tokmap_error *err);
/* Makes the dataset one of a single file, which is not opened. */
void tokmap_i_token_files_take_one(tokmap_dataset *ds, const char *path);
/* Closes all files, and frees their list. */
void tokmap_i_token_files_give_back(tokmap_dataset *ds);

/* Opens a file of a dataset and checks it. */
tokmap_status tokmap_i_token_file_open(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                       int *fd, tokmap_error *err);

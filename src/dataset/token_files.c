/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/token_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "dataset/store.h"

/* Finds the last file that begins at this token or block, or before. */
static inline tokmap_i_token_file *search_files(const tokmap_dataset *ds, bool by_block, uint64_t x)
{
    tokmap_i_token_file *file = ds->files;
    for (uint64_t n = ds->n_files; n > 1;) {
        const uint64_t half = n / 2;
        file += (by_block ? file[half].first_block : file[half].first_token) <= x ? half : 0;
        n -= half;
    }
    return file;
}

tokmap_i_token_file *tokmap_i_search_file(const tokmap_dataset *ds, uint64_t token)
{
    return search_files(ds, false, token);
}

tokmap_i_token_piece tokmap_i_block_piece(const tokmap_dataset *ds, uint64_t block)
{
    tokmap_i_token_file *file = search_files(ds, true, block);
    const uint64_t width = ds->header.token_bytes;
    const uint64_t begin = (block - file->first_block) * TOKMAP_I_BLOCK_BYTES;
    const uint64_t n_bytes = MIN(file->n_tokens * width - begin, TOKMAP_I_BLOCK_BYTES);
    const uint64_t first = begin / width, end = div_up(begin + n_bytes, width);
    return (tokmap_i_token_piece){file, file->first_token + first, end - first,
                                  file->token_offset + begin, n_bytes};
}

/* ---- The list ---- */

static size_t kept_fds_bytes(const tokmap_dataset *ds)
{
    return sizeof *ds->kept_fds + (size_t)ds->n_files * sizeof ds->kept_fds->fds[0];
}

tokmap_status tokmap_i_token_files_take(tokmap_dataset *ds, uint64_t n_files, size_t paths_bytes,
                                        tokmap_error *err)
{
    ds->n_files = n_files;
    ds->files = calloc((size_t)n_files + 1, sizeof *ds->files);
    ds->paths = malloc(paths_bytes + 1);
    int error = ds->files && ds->paths ? 0 : ENOMEM;
    if (!error)
        error = tokmap_i_memory_take_wiped(kept_fds_bytes(ds), (void **)&ds->kept_fds);
    if (error && error != EINVAL) {
        ds->n_files = 0;
        return FAIL_MEMORY(err);
    }
    for (uint64_t i = 0; i < n_files; i++)
        ds->files[i].fd = ds->kept_fds ? &ds->kept_fds->fds[i] : &ds->only_fd;
    ds->files[n_files].first_token = UINT64_MAX;
    return TOKMAP_OK;
}

void tokmap_i_token_files_take_one(tokmap_dataset *ds, const char *path)
{
    static const uint32_t file_at[1] = {0};
    ds->files = ds->only_file;
    ds->files[0] = (tokmap_i_token_file){.path = path,
                                         .n_tokens = ds->header.n_tokens,
                                         .token_offset = ds->header.token_offset,
                                         .fd = &ds->only_fd};
    ds->files[1].first_token = UINT64_MAX;
    ds->n_files = 1;
    ds->file_at = file_at;
    ds->file_shift = 63;
    ds->token_file_bytes = tokmap_i_token_file_bytes(ds, ds->files);
}

void tokmap_i_token_files_give_back(tokmap_dataset *ds)
{
    for (uint64_t i = 0; i < ds->n_files; i++) {
        tokmap_i_token_file *file = &ds->files[i];
        tokmap_i_unmap(atomic_load(&file->map), tokmap_i_token_file_bytes(ds, file));
        tokmap_i_file_close(tokmap_i_token_file_fd(file));
    }
    tokmap_i_memory_give_back(ds->kept_fds, kept_fds_bytes(ds));
    if (ds->files != ds->only_file)
        free(ds->files);
    free(ds->paths);
}

/* ---- Opening ---- */

tokmap_status tokmap_i_token_file_open(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                       int *fd, tokmap_error *err)
{
    tokmap_i_file_stat stat;
    *fd = -1;
    if (ds->store)
        return tokmap_i_fail_in_store(file->path, err);
    tokmap_status status =
        tokmap_i_open_file_in(ds->folder_fd, file->path, ds->folder_bytes, fd, &stat, err);
    if (!status)
        status = ds->check_file ? ds->check_file(ds, file, *fd, err)
                                : tokmap_i_token_file_check(ds, file, &stat, err);
    if (!status)
        return TOKMAP_OK;
    tokmap_i_file_close(*fd);
    *fd = -1;
    return status;
}

/* Whether one more file may be kept: counts it in n_kept. A thread that then does not keep it
 * subtracts it again. */
static bool take_one(const tokmap_dataset *ds, atomic_uint *n_kept, unsigned most)
{
    const bool any_number = ds->n_files <= most; /* threads may exceed the count for one file */
    if (!any_number && atomic_load_explicit(n_kept, memory_order_relaxed) >= most)
        return false;
    if (atomic_fetch_add_explicit(n_kept, 1, memory_order_relaxed) < most || any_number)
        return true;
    atomic_fetch_sub_explicit(n_kept, 1, memory_order_relaxed);
    return false;
}

/* ---- Descriptors ---- */

/* Keeps the descriptor for later reads, or closes it if another thread has kept one. Returns the
 * one to use. */
static int keep_fd(const tokmap_dataset *ds, tokmap_i_token_file *file, int fd)
{
    int kept = 0;
    if (!ds->kept_fds || !tokmap_i_file_may_stay(fd) ||
        !take_one(ds, &ds->kept_fds->n_fds, TOKMAP_I_MOST_FDS))
        return fd;
    if (atomic_load_explicit(&ds->kept->random_fds, memory_order_relaxed))
        tokmap_i_file_expect_random(fd, true);
    if (atomic_compare_exchange_strong(file->fd, &kept, fd + 1))
        return fd;
    atomic_fetch_sub_explicit(&ds->kept_fds->n_fds, 1, memory_order_relaxed);
    tokmap_i_file_close(fd);
    return kept - 1;
}

tokmap_status tokmap_i_token_file_borrow(const tokmap_dataset *ds, tokmap_i_token_file *file,
                                         tokmap_i_named_file *out, tokmap_error *err)
{
    *out = (tokmap_i_named_file){tokmap_i_token_file_fd(file), file->path};
    if (out->fd >= 0)
        return TOKMAP_OK;
    const tokmap_status status = tokmap_i_token_file_open(ds, file, &out->fd, err);
    if (!status)
        out->fd = keep_fd(ds, file, out->fd);
    return status;
}

/* No other descriptor has a number that is in use, so the comparison is safe. */
void tokmap_i_token_file_give_back(tokmap_i_token_file *file, const tokmap_i_named_file *opened)
{
    if (opened->fd != tokmap_i_token_file_fd(file))
        tokmap_i_file_close(opened->fd);
}

/* ---- Maps ---- */

/* Opens the file for its map alone, if it has no descriptor: a map needs none. */
static tokmap_status map_file(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                              const uint8_t **map, tokmap_error *err)
{
    const int kept = tokmap_i_token_file_fd(file);
    int fd = kept;
    const tokmap_status status =
        kept < 0 ? tokmap_i_token_file_open(ds, file, &fd, err) : TOKMAP_OK;
    if (status)
        return status;
    const uint64_t n_bytes = tokmap_i_token_file_bytes(ds, file);
    const int error = tokmap_i_map(fd, n_bytes, (const void **)map);
    if (kept < 0)
        tokmap_i_file_close(fd);
    return CHECK_IO(err, error, "%s: cannot map %" PRIu64 " bytes", file->path, n_bytes);
}

/* Another thread may have kept a map meanwhile, as for descriptors. */
tokmap_status tokmap_i_token_file_map(const tokmap_dataset *ds, tokmap_i_token_file *file,
                                      const uint8_t **map, tokmap_error *err)
{
    *map = atomic_load_explicit(&file->map, memory_order_acquire);
    if (*map)
        return TOKMAP_OK;
    if (ds->store || !take_one(ds, &ds->kept->n_maps, TOKMAP_I_MOST_MAPS))
        return TOKMAP_IN_PIECES;
    const uint8_t *kept = NULL;
    const tokmap_status status = map_file(ds, file, map, err);
    if (!status && atomic_load_explicit(&ds->kept->random_maps, memory_order_relaxed))
        tokmap_i_map_expect_random(*map, tokmap_i_token_file_bytes(ds, file), true);
    if (!status && atomic_compare_exchange_strong(&file->map, &kept, *map))
        return TOKMAP_OK;
    atomic_fetch_sub_explicit(&ds->kept->n_maps, 1, memory_order_relaxed);
    if (!status) {
        tokmap_i_unmap(*map, tokmap_i_token_file_bytes(ds, file));
        *map = kept;
    }
    return status;
}

void tokmap_i_token_files_expect(const tokmap_dataset *ds, bool mapped, bool random)
{
    atomic_store(mapped ? &ds->kept->random_maps : &ds->kept->random_fds, random);
    for (uint64_t i = 0; i < ds->n_files; i++) {
        const tokmap_i_token_file *file = &ds->files[i];
        const uint8_t *map = mapped ? atomic_load(&file->map) : NULL;
        const int fd = mapped ? -1 : tokmap_i_token_file_fd(file);
        if (map)
            tokmap_i_map_expect_random(map, tokmap_i_token_file_bytes(ds, file), random);
        if (fd >= 0)
            tokmap_i_file_expect_random(fd, random);
    }
}

/* ---- Tokens ---- */

static tokmap_status read_from_store(const tokmap_dataset *ds, const tokmap_i_token_piece *piece,
                                     void *dst, tokmap_error *err)
{
    tokmap_i_store_batch b = {0};
    const tokmap_status status =
        tokmap_i_store_add(&b, ds, piece, dst) ? tokmap_i_store_read(&b, err) : FAIL_MEMORY(err);
    tokmap_i_store_free(&b);
    return status;
}

tokmap_status tokmap_i_token_piece_read(const tokmap_dataset *ds, const tokmap_i_token_piece *piece,
                                        void *dst, tokmap_error *err)
{
    tokmap_i_named_file from;
    if (ds->store)
        return read_from_store(ds, piece, dst, err);
    tokmap_status status = tokmap_i_token_file_borrow(ds, piece->file, &from, err);
    if (status)
        return status;
    status = tokmap_i_read_exactly(from, piece->first_byte, (size_t)piece->n_bytes, dst, err);
    tokmap_i_token_file_give_back(piece->file, &from);
    return status;
}

enum {
    PART_BYTES = 8 << 20, /* of a long range, which are read at the same time */
    MOST_PARTS = 64       /* so many in one call of the source */
};

/* Reads tokens of any number of files, many parts at the same time. */
static tokmap_status read_parts(const tokmap_dataset *ds, uint64_t first, uint64_t n_tokens,
                                uint8_t *dst, tokmap_error *err)
{
    tokmap_i_store_batch b = {0};
    tokmap_status status = TOKMAP_OK;
    while (n_tokens > 0 && !status) {
        tokmap_i_token_piece part = tokmap_i_first_piece(ds, first, n_tokens);
        first += part.n_tokens;
        n_tokens -= part.n_tokens;
        for (uint64_t left = part.n_bytes; left > 0 && !status; left -= part.n_bytes) {
            part.n_bytes = MIN(left, PART_BYTES);
            if (!tokmap_i_store_add(&b, ds, &part, dst))
                status = FAIL_MEMORY(err);
            part.first_byte += part.n_bytes;
            dst += part.n_bytes;
            if (!status && b.n == MOST_PARTS) {
                status = tokmap_i_store_read(&b, err);
                b.n = 0;
            }
        }
    }
    if (!status)
        status = tokmap_i_store_read(&b, err);
    tokmap_i_store_free(&b);
    return status;
}

static bool range_inside(const tokmap_dataset *ds, uint64_t first, uint64_t n_tokens)
{
    return first <= ds->header.n_tokens && n_tokens <= ds->header.n_tokens - first;
}

tokmap_status tokmap_dataset_tokens(const tokmap_dataset *ds, uint64_t first, uint64_t n_tokens,
                                    const void **tokens)
{
    if (!ds || !tokens || !range_inside(ds, first, n_tokens))
        return TOKMAP_ERR_ARGUMENT;
    if ((ds->is_joined || ds->store) && n_tokens == 0) { /* there may be no file */
        *tokens = ds->index_map;
        return TOKMAP_OK;
    }
    const tokmap_i_token_piece piece = tokmap_i_first_piece(ds, first, n_tokens);
    if (piece.n_tokens < n_tokens)
        return TOKMAP_IN_PIECES;
    const uint8_t *map;
    const tokmap_status status = tokmap_i_token_file_map(ds, piece.file, &map, NULL);
    if (!status)
        *tokens = map + piece.first_byte;
    return status;
}

tokmap_status tokmap_dataset_read(const tokmap_dataset *ds, uint64_t first, uint64_t n_tokens,
                                  void *dst, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!ds || (!dst && n_tokens > 0))
        return FAIL_NULL(err);
    if (!range_inside(ds, first, n_tokens))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: has %" PRIu64 " tokens; cannot read %" PRIu64 " from token %" PRIu64,
                    ds->token_path, ds->header.n_tokens, n_tokens, first);
    if (ds->store)
        return read_parts(ds, first, n_tokens, dst, err);
    tokmap_status status = TOKMAP_OK;
    for (uint8_t *to = dst; n_tokens > 0 && !status;) {
        const tokmap_i_token_piece piece = tokmap_i_first_piece(ds, first, n_tokens);
        status = tokmap_i_token_piece_read(ds, &piece, to, err);
        to += piece.n_bytes;
        first += piece.n_tokens;
        n_tokens -= piece.n_tokens;
    }
    return status;
}

tokmap_status tokmap_dataset_read_ids(const tokmap_dataset *ds, uint64_t first, uint64_t n_tokens,
                                      uint32_t *ids, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!ds || (!ids && n_tokens > 0))
        return FAIL_NULL(err);
    if (ds->header.token_bytes == 4 || !range_inside(ds, first, n_tokens))
        return tokmap_dataset_read(ds, first, n_tokens, ids, err);
    /* Tokens of two bytes are read into the second half, and widened from the first one on. */
    uint8_t *narrow = (uint8_t *)ids + 2 * n_tokens;
    const tokmap_status status = tokmap_dataset_read(ds, first, n_tokens, narrow, err);
    for (uint64_t i = 0; i < n_tokens && !status; i++)
        ids[i] = le_get16(narrow + 2 * i);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/file.h"

#include <errno.h>
#include <inttypes.h>

#include "base/base.h"
#include "base/error.h"

tokmap_status tokmap_i_fail_read(tokmap_i_named_file file, int error, uint64_t at,
                                 tokmap_error *err)
{
    if (error)
        return FAIL_IO_AT(err, error, at, "%s: cannot read at byte %" PRIu64, file.name, at);
    tokmap_i_file_stat stat = {.n_bytes = UINT64_MAX};
    (void)tokmap_i_file_stat_fd(file.fd, &stat);
    const uint64_t end = MIN(at, stat.n_bytes); /* the file may end before the first byte to read */
    return FAIL_IO_AT(err, 0, end,
                      "%s: the file ends at byte %" PRIu64 "; it was shortened while in use",
                      file.name, end);
}

tokmap_status tokmap_i_read_exactly(tokmap_i_named_file file, uint64_t offset, size_t n_bytes,
                                    void *dst, tokmap_error *err)
{
    size_t n_read = 0;
    const int error = tokmap_i_file_read(file.fd, dst, n_bytes, offset, &n_read);
    if (!error && n_read == n_bytes)
        return TOKMAP_OK;
    return tokmap_i_fail_read(file, error, offset + n_read, err);
}

tokmap_status tokmap_i_open_file_in(int folder_fd, const char *path, size_t folder_bytes, int *fd,
                                    tokmap_i_file_stat *stat, tokmap_error *err)
{
    int error = tokmap_i_file_open_from(folder_fd, path + folder_bytes, fd);
    if (!error)
        error = tokmap_i_file_stat_fd(*fd, stat);
    if (error == EINVAL)
        return FAIL_IO(err, error, "%s: not a regular file", path);
    return CHECK_IO(err, error, "%s: cannot open", path);
}

tokmap_status tokmap_i_open_file(const char *path, int *fd, tokmap_i_file_stat *stat,
                                 tokmap_error *err)
{
    return tokmap_i_open_file_in(-1, path, 0, fd, stat, err);
}

tokmap_status tokmap_i_token_file_check(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                        const tokmap_i_file_stat *stat, tokmap_error *err)
{
    const uint64_t n_bytes = tokmap_i_token_file_bytes(ds, file);
    if (stat->n_bytes == n_bytes)
        return TOKMAP_OK;
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, MIN(stat->n_bytes, n_bytes),
                   "%s: has %" PRIu64 " bytes, but its index %s states %" PRIu64
                   "; it was shortened or changed, or belongs to another index",
                   file->path, stat->n_bytes, ds->index_path, n_bytes);
}

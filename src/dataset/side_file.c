/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/side_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/real.h"
#include "dataset/dataset.h"

/* Checks that a file, if there is one, begins as one that may be replaced. */
static tokmap_status check_older(const char *path, const uint8_t magic[8], const char *what,
                                 tokmap_error *err)
{
    uint8_t bytes[8] = {0};
    size_t n_read = 0;
    int fd, error = tokmap_i_file_open(path, &fd);
    if (error && !tokmap_i_file_exists(path))
        return TOKMAP_OK;
    if (!error) {
        error = tokmap_i_file_read(fd, bytes, sizeof bytes, 0, &n_read);
        tokmap_i_file_close(fd);
        if (error && error != EISDIR)
            return FAIL_IO(err, error, "%s: cannot read", path);
    }
    return !error && n_read == sizeof bytes && memcmp(bytes, magic, n_read) == 0
               ? TOKMAP_OK
               : FAIL(err, TOKMAP_ERR_EXISTS,
                      "%s: exists and is not %s: remove it, or choose another path", path, what);
}

tokmap_status tokmap_i_side_file_open(tokmap_i_side_file *f, const char *path,
                                      const uint8_t magic[8], const char *what, tokmap_error *err)
{
    const char *text;
    const size_t n_bytes = strlen(path) + sizeof ".partial";
    *f = (tokmap_i_side_file){.fd = -1, .path = strdup(path), .partial = malloc(n_bytes)};
    if (!f->path || !f->partial)
        return FAIL_MEMORY(err);
    snprintf(f->partial, n_bytes, "%s.partial", path);
    const tokmap_status status = check_older(path, magic, what, err);
    if (status)
        return status;
    int error = tokmap_i_file_lock(f->partial, &f->fd);
    if (error == EWOULDBLOCK)
        return FAIL(err, TOKMAP_ERR_LOCKED, "%s: another process is writing this file", path);
    if (error)
        return FAIL_IO(err, error, "%s: %s", f->partial, tokmap_i_file_lock_text(error));
    f->is_locked = true;
    error = tokmap_i_file_probe(path, &text);
    if (error)
        return FAIL_IO(err, error, "%s: %s", path, text);
    return CHECK_IO(err, tokmap_i_file_resize(f->fd, 0), "%s: cannot write", f->partial);
}

tokmap_status tokmap_i_side_file_finish(tokmap_i_side_file *f, tokmap_error *err)
{
    tokmap_status status = CHECK_IO(err, tokmap_i_file_sync(f->fd), "%s: cannot write", f->partial);
    if (status)
        return status;
    const int error = tokmap_i_file_rename_over(f->partial, f->path);
    if (error)
        return FAIL_IO(err, error, "%s: cannot be named", f->path);
    f->is_locked = false;
    return CHECK_IO(err, tokmap_i_folder_sync(f->path), "%s: cannot be made durable", f->path);
}

void tokmap_i_side_file_close(tokmap_i_side_file *f)
{
    if (f->is_locked)
        tokmap_i_file_remove(f->partial);
    tokmap_i_file_close(f->fd);
    free(f->partial);
    free(f->path);
    *f = (tokmap_i_side_file){.fd = -1};
}

char *tokmap_i_side_path(const tokmap_dataset *ds, const char *format, ...)
{
    const char *index = ds->index_names[0];
    const size_t n_prefix = strlen(index) - strlen("tmi"); /* with the dot */
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const size_t n_bytes = n_prefix + (size_t)real_print_list(NULL, 0, format, args) + 1;
    char *path = malloc(n_bytes);
    if (path) {
        snprintf(path, n_prefix + 1, "%s", index);
        real_print_list(path + n_prefix, n_bytes - n_prefix, format, again);
    }
    va_end(again);
    va_end(args);
    return path;
}

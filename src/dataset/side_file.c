/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/side_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/real.h"
#include "dataset/dataset.h"
#include "dataset/store.h"
#include "dataset/token_files.h"

/* ---- Reading ---- */

tokmap_status tokmap_i_side_fail(const tokmap_i_side *s, const char *problem, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: damaged: %s: %s", s->path, problem, s->kind->again);
}

tokmap_status tokmap_i_side_read_header(const tokmap_i_side *s, void *header, tokmap_error *err)
{
    uint8_t bytes[TOKMAP_I_SIDE_HEADER_BYTES];
    const char *problem = NULL;
    tokmap_i_side_result result = TOKMAP_I_SIDE_OTHER;
    if (s->stat.n_bytes >= sizeof bytes) {
        const tokmap_status status = tokmap_i_side_read(s, 0, sizeof bytes, bytes, err);
        if (status)
            return status;
        result = tokmap_i_side_header_decode(s->kind, header, bytes, &problem);
    }
    if (result == TOKMAP_I_SIDE_OTHER)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: not %s: remove it", s->path, s->kind->what);
    if (result == TOKMAP_I_SIDE_NEWER)
        return FAIL(err, TOKMAP_ERR_VERSION, "%s: a newer format: use a newer version of tokmap",
                    s->path);
    if (result == TOKMAP_I_SIDE_DAMAGED)
        return tokmap_i_side_fail(s, problem, err);
    const uint64_t n_bytes = le_get64(bytes + s->kind->size_at);
    if (n_bytes != s->stat.n_bytes)
        return FAIL(err, TOKMAP_ERR_CORRUPT,
                    "%s: damaged: has %" PRIu64 " bytes, but its header states %" PRIu64 ": %s",
                    s->path, s->stat.n_bytes, n_bytes, s->kind->again);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_side_open(tokmap_i_side *s, const tokmap_i_side_kind *kind,
                                 const tokmap_dataset *ds, const char *path, void *header,
                                 bool *exists, tokmap_error *err)
{
    tokmap_i_beside opened;
    tokmap_error last = {0};
    *s = (tokmap_i_side){.kind = kind, .fd = -1, .path = strdup(path)};
    if (!s->path)
        return FAIL_MEMORY(err);
    const tokmap_status status = tokmap_i_open_beside(ds, path, 0, &opened, &last);
    *exists = !status || last.sys_errno != ENOENT;
    s->fd = opened.fd;
    s->stat = opened.stat;
    if (status && err)
        *err = last;
    return status ? status : tokmap_i_side_read_header(s, header, err);
}

void tokmap_i_side_close(tokmap_i_side *s)
{
    if (s->map)
        tokmap_i_unmap(s->map, s->stat.n_bytes);
    tokmap_i_file_close(s->fd);
    free(s->path);
    free(s->checked);
    *s = (tokmap_i_side){.fd = -1};
}

tokmap_status tokmap_i_side_read(const tokmap_i_side *s, uint64_t at, size_t n_bytes, void *to,
                                 tokmap_error *err)
{
    return tokmap_i_read_exactly((tokmap_i_named_file){s->fd, s->path}, at, n_bytes, to, err);
}

tokmap_status tokmap_i_side_map(tokmap_i_side *s, const void **map, tokmap_error *err)
{
    const int error = tokmap_i_map(s->fd, s->stat.n_bytes, &s->map);
    *map = s->map;
    return CHECK_IO(err, error, "%s: cannot be mapped", s->path);
}

bool tokmap_i_side_expect_chunks(tokmap_i_side *s, uint64_t n)
{
    s->checked = calloc((size_t)n / 8 + 1, 1);
    return s->checked != NULL;
}

tokmap_status tokmap_i_side_check(const tokmap_i_side *s, const tokmap_i_side_chunk *c,
                                  const char **problem, tokmap_error *err)
{
    *problem = NULL;
    if (tokmap_i_side_is_checked(s, c->number))
        return TOKMAP_OK;
    uint8_t *bytes = malloc(c->n_bytes + 1);
    if (!bytes)
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_side_read(s, c->begin, c->n_bytes, bytes, err);
    if (!status)
        *problem = c->check(c->context, bytes);
    free(bytes);
    if (!status && !*problem)
        __atomic_fetch_or(&s->checked[c->number / 8], (uint8_t)(1 << c->number % 8),
                          __ATOMIC_RELAXED);
    return status ? status : *problem ? TOKMAP_ERR_CORRUPT : TOKMAP_OK;
}

/* ---- Writing ---- */

/* Refuses to replace a file that does not begin with the magic of its kind. */
static tokmap_status check_older(const tokmap_i_side_kind *kind, const char *path,
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
    return !error && n_read == sizeof bytes && memcmp(bytes, kind->magic, n_read) == 0
               ? TOKMAP_OK
               : FAIL(err, TOKMAP_ERR_EXISTS,
                      "%s: exists and is not %s: remove it, or choose another path", path,
                      kind->what);
}

tokmap_status tokmap_i_side_file_open(tokmap_i_side_file *f, const tokmap_i_side_kind *kind,
                                      const char *path, tokmap_error *err)
{
    const char *text;
    const size_t n_bytes = strlen(path) + sizeof ".partial";
    *f = (tokmap_i_side_file){.fd = -1, .path = strdup(path), .partial = malloc(n_bytes)};
    if (!f->path || !f->partial)
        return FAIL_MEMORY(err);
    snprintf(f->partial, n_bytes, "%s.partial", path);
    const tokmap_status status = check_older(kind, path, err);
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

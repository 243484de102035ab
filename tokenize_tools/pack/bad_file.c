/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/bad_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "plan/cell_state.h"
#include "system/platform.h"

static int print_error(const char *path, const char *what, int reason)
{
    return cli_error(cli_errno_exit_code(reason), "%s: cannot %s: %s", path, what,
                     strerror(reason));
}

static int refuse_damaged(const char *path, uint64_t n_bytes)
{
    return cli_error(CLI_DATASET,
                     "%s: its first %" PRIu64
                     " bytes are not the ones that the interrupted run wrote; "
                     "use --restart to start over",
                     path, n_bytes);
}

static int open_partial(pack_bad_file *f, const pack_bad_mark *keep)
{
    output_file out;
    bool missing = keep->n_bytes > 0 && !file_name_exists(f->out.partial);
    int code = output_name(&out, f->out.path, "", f->out.replace);
    if (code == CLI_OK && !missing)
        code = keep->n_bytes > 0 ? output_resume(&out) : output_begin(&out);
    if (code != CLI_OK)
        return code;
    f->out = out;
    int error = missing ? 0 : file_hash(out.fd, 0, keep->n_bytes, f->checksum);
    if (error)
        return print_error(out.partial, "read", error);
    if (keep->n_bytes > 0 && (missing || XXH3_64bits_digest(f->checksum) != keep->checksum))
        return refuse_damaged(out.partial, keep->n_bytes);
    error = output_try_cut(&f->out, keep->n_bytes);
    return error ? print_error(out.partial, "write", error) : CLI_OK;
}

/* The earlier run has given the file its name, unless it was empty. */
static int check_placed(const char *path, const pack_bad_mark *keep)
{
    file_facts named;
    const bool same = keep->n_bytes == 0 ||
                      (file_describe_name(path, &named) == 0 && named.kind == FILE_REGULAR &&
                       cell_bad_is(path, keep->n_bytes, keep->checksum));
    return same ? CLI_OK : refuse_damaged(path, keep->n_bytes);
}

int pack_bad_file_open(pack_bad_file *f, const pack_options *options, const pack_bad_mark *keep,
                       bool finishing)
{
    f->out = (output_file){.fd = -1, .replace = options->force};
    f->n_bytes = keep->n_bytes;
    f->checksum = XXH3_createState();
    if (!f->checksum)
        return cli_no_memory();
    XXH3_64bits_reset(f->checksum);
    pack_bad_path(f->out.path, options);
    snprintf(f->out.partial, sizeof f->out.partial, "%s.partial", f->out.path);
    if (finishing && !file_name_exists(f->out.partial))
        return check_placed(f->out.path, keep);
    return open_partial(f, keep);
}

static void write_all(pack_bad_file *f, const void *data, size_t n_bytes)
{
    if (f->sys_errno == 0)
        f->sys_errno = output_try_write(&f->out, data, n_bytes);
}

void pack_bad_file_flush(pack_bad_file *f)
{
    write_all(f, f->buffer, f->n_buffered);
    f->n_buffered = 0;
}

void pack_bad_file_write(pack_bad_file *f, const void *data, size_t n_bytes)
{
    f->n_bytes += n_bytes;
    XXH3_64bits_update(f->checksum, data, n_bytes);
    if (n_bytes > sizeof f->buffer - f->n_buffered)
        pack_bad_file_flush(f);
    if (n_bytes > sizeof f->buffer) {
        write_all(f, data, n_bytes);
    } else if (n_bytes > 0) {
        memcpy(f->buffer + f->n_buffered, data, n_bytes);
        f->n_buffered += n_bytes;
    }
}

pack_bad_mark pack_bad_file_mark(const pack_bad_file *f)
{
    return f ? (pack_bad_mark){f->n_bytes, XXH3_64bits_digest(f->checksum)} : (pack_bad_mark){0};
}

int pack_bad_file_sync(pack_bad_file *f, pack_error *err)
{
    const int error = tokmap_i_file_sync(f->out.fd);
    return error ? pack_error_from_system(err, f->out.partial, "write", error) : CLI_OK;
}

int pack_bad_file_place(pack_bad_file *f, uint64_t n_bytes, pack_error *err)
{
    if (f->out.fd < 0)
        return CLI_OK;
    if (n_bytes == 0) {
        pack_bad_file_close(f, false);
        const int error = f->out.replace ? output_try_remove(f->out.path) : 0;
        return error ? pack_error_from_system(err, f->out.path, "remove", error) : CLI_OK;
    }
    if (!output_has_name(f->out.fd, f->out.partial)) {
        pack_error_set(err, CLI_DATASET, "%.500s: was removed or replaced while it was written",
                       f->out.partial);
        err->start_over = true;
        return CLI_DATASET;
    }
    if (!f->out.replace && file_name_exists(f->out.path))
        return pack_error_set(err, CLI_EXISTS, "%.500s: already exists", f->out.path);
    int error = output_try_cut(&f->out, n_bytes);
    if (!error)
        error = tokmap_i_file_sync(f->out.fd);
    if (!error)
        error = output_try_name(&f->out);
    if (error)
        return pack_error_from_system(err, f->out.partial, "write", error);
    output_keep(&f->out);
    const int code = output_flush_folder(f->out.path);
    return code == CLI_OK
               ? CLI_OK
               : pack_error_set(err, code, "%.500s: its name may be lost in a power failure",
                                f->out.path);
}

void pack_bad_file_close(pack_bad_file *f, bool keep)
{
    XXH3_freeState(f->checksum);
    f->checksum = NULL;
    if (keep)
        output_keep(&f->out);
    else
        output_close(&f->out);
}

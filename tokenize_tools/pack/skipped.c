/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/skipped.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "system/platform.h"

#define BUFFER_BYTES ((size_t)64 * 1024)

/* Continues the file of an earlier run at the place that its checkpoint names. */
static int resume_file(pack_skipped *s, const pack_skipped_mark *keep)
{
    const char *path = s->out.partial;
    if (!file_name_exists(path))
        return cli_error(CLI_DATASET, "%s: is missing; use --restart to start over", path);
    const int code = output_resume(&s->out);
    if (code != CLI_OK)
        return code;
    const int error = file_hash(s->out.fd, 0, keep->n_bytes, s->checksum);
    if (error)
        return cli_fail_errno(path, "read", error);
    if (XXH3_64bits_digest(s->checksum) == keep->checksum)
        return CLI_OK;
    return cli_error(CLI_DATASET,
                     "%s: its first %" PRIu64 " bytes are not the ones that the interrupted run "
                     "wrote; use --restart to start over",
                     path, keep->n_bytes);
}

int pack_skipped_open(pack_skipped *s, const pack_options *options, const pack_skipped_mark *keep)
{
    s->out.fd = -1;
    s->n_bytes = keep->n_bytes;
    s->n_documents = keep->n_documents;
    s->checksum = XXH3_createState();
    s->lines = memory_file_open(&s->buffer);
    if (!s->checksum || !s->lines)
        return cli_no_memory();
    XXH3_64bits_reset(s->checksum);
    int code = output_name(&s->out, options->prefix, PACK_SKIPPED_SUFFIX, false);
    if (code == CLI_OK)
        code = keep->n_bytes > 0 ? resume_file(s, keep) : output_begin(&s->out);
    if (code != CLI_OK)
        return code;
    const int error = output_try_cut(&s->out, keep->n_bytes);
    return error ? cli_fail_errno(s->out.partial, "write", error) : CLI_OK;
}

/* After a failure the file lacks lines that are counted, so it fails again, and no checkpoint is
 * made. */
static int flush(pack_skipped *s, pack_error *err)
{
    if (!s->write_errno)
        s->write_errno = output_try_write(&s->out, s->buffer.text, s->buffer.n_bytes);
    s->buffer.n_bytes = 0;
    return s->write_errno ? pack_error_from_system(err, s->out.partial, "write", s->write_errno)
                          : CLI_OK;
}

int pack_skipped_add(pack_skipped *s, const skipped_document *d, pack_error *err)
{
    const size_t n_before = s->buffer.n_bytes;
    json_out o = {.out = s->lines};
    json_out_begin(&o, NULL, '{');
    json_out_string(&o, "file", d->input);
    if (d->at.is_row) {
        json_out_number(&o, "row", d->at.line);
    } else {
        json_out_known(&o, "line", d->at.line + 1, !d->at.no_number);
        json_out_number(&o, "offset", d->at.offset);
        json_out_number(&o, "n_bytes", d->at.n_bytes);
    }
    json_out_text(&o, "reason", d->reason, d->reason_bytes);
    json_out_end(&o, '}');
    putc('\n', o.out);
    fflush(o.out);
    if (ferror(o.out))
        return pack_error_no_memory(err);
    const size_t n_bytes = s->buffer.n_bytes - n_before;
    XXH3_64bits_update(s->checksum, s->buffer.text + n_before, n_bytes);
    s->n_bytes += n_bytes;
    s->n_documents++;
    return s->buffer.n_bytes < BUFFER_BYTES ? CLI_OK : flush(s, err);
}

int pack_skipped_sync(pack_skipped *s, pack_error *err)
{
    if (!s || flush(s, err) != CLI_OK)
        return s ? err->exit_code : CLI_OK;
    s->write_errno = tokmap_i_file_sync(s->out.fd);
    return flush(s, err);
}

pack_skipped_mark pack_skipped_now(const pack_skipped *s)
{
    return s ? (pack_skipped_mark){s->n_bytes, XXH3_64bits_digest(s->checksum), s->n_documents}
             : (pack_skipped_mark){0};
}

int pack_skipped_print(pack_skipped *s, json_out *o)
{
    pack_error err;
    char *block = malloc(BUFFER_BYTES);
    int error = 0;
    if (!block)
        return cli_no_memory();
    json_out_begin(o, "skipped", '[');
    if (s && flush(s, &err) != CLI_OK) {
        free(block);
        return pack_error_print(&err);
    }
    for (uint64_t at = 0; s && !error && at < s->n_bytes;) {
        size_t n = 0;
        error = tokmap_i_file_read(s->out.fd, block, BUFFER_BYTES, at, &n);
        if (!error && n == 0) /* shortened by somebody else */
            break;
        at += n;
        /* Each line is an object. */
        for (size_t i = 0; i < n; i++) {
            if (block[i] != '\n')
                putc(block[i], o->out);
            else if (i + 1 < n || at < s->n_bytes)
                fputs(", ", o->out);
        }
    }
    free(block);
    json_out_end(o, ']');
    return error ? cli_fail_errno(s->out.partial, "read", error) : CLI_OK;
}

void pack_skipped_close(pack_skipped *s, bool keep)
{
    if (!s)
        return;
    XXH3_freeState(s->checksum);
    if (s->lines)
        memory_file_close(s->lines, &s->buffer);
    free(s->buffer.text);
    if (keep || !output_has_name(s->out.fd, s->out.partial)) /* the other file is not ours */
        output_keep(&s->out);
    else
        output_close(&s->out);
}

void pack_skipped_remove(const char *prefix)
{
    output_try_remove(path_of(prefix, PACK_SKIPPED_SUFFIX ".partial").s);
}

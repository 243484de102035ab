/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - adds datasets to an index over their token files, of which nothing is read. */
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"
#include "writer/writer.h"

static tokmap_status add_segment(tokmap_writer *w, const tokmap_i_token_file *file,
                                 tokmap_error *err)
{
    char *name;
    const char *slash = strrchr(w->names.bin_path, '/');
    tokmap_status status = tokmap_i_relative_path_name(&w->paths, file->path, &name, err);
    if (status)
        return status;
    const tokmap_i_new_segment segment = {name, w->n_tokens + file->n_tokens, file->token_offset};
    /* A dataset may be on its way to be replaced by the output, which would take its tokens. */
    if (strcmp(name, slash ? slash + 1 : w->names.bin_path) == 0)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "%s: has the name of the output, and would be removed; give the output "
                      "another one",
                      w->names.bin_path);
    if (!status)
        status = tokmap_i_index_writer_segment(w->index, &segment, err);
    w->n_tokens = segment.end_token;
    free(name);
    return status;
}

static tokmap_status join_all(tokmap_i_append *a, tokmap_error *err)
{
    tokmap_writer *w = a->w;
    const tokmap_i_header *h = &a->ds->header;
    tokmap_status status = tokmap_i_append_open(a, err);
    /* The caller makes the metadata of the whole from those of the parts; opening one does not
     * check them. */
    if (!status)
        status = tokmap_i_index_reader_checksum(&a->reader,
                                                tokmap_i_section_find(h, TOKMAP_I_METADATA), err);
    for (uint64_t i = 0; !status && i < a->ds->n_files; i++)
        if (a->ds->files[i].n_tokens > 0)
            status = add_segment(w, &a->ds->files[i], err);
    if (!status)
        status =
            tokmap_i_index_writer_blocks(w->index, a->checksums, (size_t)a->checksums_bytes, err);
    if (status)
        return status;
    tokmap_i_content_hash_join(&w->header.tokens_hash, &h->tokens_hash);
    w->header.largest_id = MAX(w->header.largest_id, h->largest_id);
    return tokmap_i_append_index(a, err);
}

tokmap_status tokmap_writer_join(tokmap_writer *w, const tokmap_dataset *ds,
                                 const tokmap_join_options *options, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_join_options, continues_input)};
    tokmap_join_options o = {0};
    tokmap_status status = tokmap_i_writer_enter(w, ds, TOKMAP_I_OUTPUT_JOINED, __func__, err);
    if (status)
        return status;
    if (options)
        status = tokmap_i_take_options(&o, options, &kind, &w->failure);
    if (!status)
        status = tokmap_i_check_flag("continues_input", o.continues_input, &w->failure);
    if (!status) {
        tokmap_i_append a = {.w = w, .ds = ds, .continues_input = o.continues_input != 0};
        status = join_all(&a, &w->failure);
        tokmap_i_append_close(&a);
    }
    return tokmap_i_writer_leave(w, status, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rows_write.c - tokmap_rows_write: writes a rows file that is complete or absent. */
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "dataset/side_file.h"
#include "dataset/store.h"
#include "rows/rows.h"

static tokmap_status write_rows(const tokmap_dataset *ds, const tokmap_i_rows_kind *kind,
                                const tokmap_rows_options *o, const char *path,
                                tokmap_rows_info *info, tokmap_error *err)
{
    tokmap_i_side_file file;
    tokmap_i_rows r = {.ds = ds, .end_document = ds->header.n_documents, .view = o->view};
    tokmap_status status = tokmap_i_side_file_open(&file, &tokmap_i_rows_file_kind, path, err);
    r.file = (tokmap_i_side){.fd = file.fd, .path = file.partial};
    if (!status)
        status = tokmap_i_rows_make(&r, kind, o, err);
    if (!status)
        status = tokmap_i_side_file_finish(&file, err);
    *info = (tokmap_rows_info){.n_rows = r.header.n_rows,
                               .n_pieces = r.header.n_pieces,
                               .n_labels = r.header.n_labels,
                               .n_bytes = r.header.n_bytes};
    r.file = (tokmap_i_side){.fd = -1};
    tokmap_i_rows_close(&r);
    tokmap_i_side_file_close(&file);
    return status;
}

tokmap_status tokmap_rows_write(const tokmap_dataset *ds, const tokmap_rows_options *options,
                                tokmap_rows_info *info, tokmap_error *err)
{
    static const tokmap_i_struct_kind options_kind = {STRUCT_KIND(tokmap_rows_options, path)};
    static const tokmap_i_struct_kind info_kind = {STRUCT_KIND(tokmap_rows_info, n_bytes)};
    tokmap_rows_options o;
    tokmap_i_error_clear(err);
    if (!ds)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_take_options(&o, options, &options_kind, err);
    if (!status)
        status = tokmap_i_need_files(ds, err);
    if (!status && info)
        status = tokmap_i_check_struct(info, &info_kind, err);
    if (status)
        return status;
    const tokmap_i_rows_kind kind = {o.sequence_length, MAX(o.align, 1), o.max_documents,
                                     o.whole_documents};
    status = tokmap_i_rows_check(&kind, err);
    if (!status && o.path && !*o.path)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "path is empty: must be NULL, or name a file");
    if (status)
        return status;
    if (o.view && (o.view->header.n_documents != ds->header.n_documents ||
                   memcmp(&o.view->ds->header.documents_hash, &ds->header.documents_hash,
                          sizeof ds->header.documents_hash) != 0))
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: the view is of the documents of %s",
                    ds->index_path, o.view->ds->index_path);
    if (o.view && o.view->header.n_kept == o.view->header.n_documents)
        o.view = NULL; /* a view of all documents is treated as no view */
    char *beside = o.path ? NULL : tokmap_i_rows_path(ds, &kind, o.view);
    if (!o.path && !beside)
        return FAIL_MEMORY(err);
    tokmap_rows_info full;
    status = write_rows(ds, &kind, &o, o.path ? o.path : beside, &full, err);
    free(beside);
    return status || !info ? status : tokmap_i_give_struct(info, &full, &info_kind, err);
}

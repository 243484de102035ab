/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - begins and ends every public call of a writer. */
#include "base/error.h"
#include "writer/writer.h"

const char *const tokmap_i_writer_opened_by[] = {"tokmap_writer_open", "tokmap_writer_adopt",
                                                 "tokmap_writer_open_joined"};

tokmap_status tokmap_i_writer_enter(tokmap_writer *w, bool complete, tokmap_i_output output,
                                    const char *call, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!w)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "the writer is NULL");
    if (tokmap_i_fork_mark_is_child(&w->fork_mark)) /* it would write to the parent's files */
        return FAIL(err, TOKMAP_ERR_FORKED,
                    "%s: this writer belongs to the parent process: only that can write to it",
                    w->names.index_path);
    const tokmap_i_output is = w->names.output;
    const bool is_over = w->finished || (w->is_whole && output != TOKMAP_I_OUTPUT_ANY);
    if (!w->failure.status && is_over)
        FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: %s", w->names.index_path,
             w->finished ? "is finished and can only be closed" : "accepts nothing after redact");
    else if (!w->failure.status && !complete)
        FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: an argument of %s is NULL", w->names.index_path,
             call);
    else if (!w->failure.status && output != TOKMAP_I_OUTPUT_ANY && output != is)
        FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: was opened with %s, but %s is for %s",
             w->names.index_path, tokmap_i_writer_opened_by[is], call,
             tokmap_i_writer_opened_by[output]);
    return tokmap_i_writer_leave(w, w->failure.status, err);
}

tokmap_i_progress tokmap_i_writer_progress(const tokmap_writer *w, uint64_t n_bytes,
                                           uint64_t n_documents)
{
    return (tokmap_i_progress){w->options.on_progress, w->options.context, 0,
                               n_bytes + 8 * n_documents};
}

tokmap_status tokmap_i_writer_leave(tokmap_writer *w, tokmap_status status, tokmap_error *err)
{
    if (status >= 0)
        return status;
    w->failure.status = status;
    if (err)
        *err = w->failure;
    return status;
}

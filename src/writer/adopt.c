/* SPDX-License-Identifier: Apache-2.0 */
/* adopt.c - makes an index for an existing token file, which it does not change. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "base/token_scan.h"
#include "dataset/token_files.h"
#include "writer/writer.h"

static tokmap_status take_options(tokmap_writer *w, const tokmap_adopt_options *options,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_adopt_options, replace)};
    tokmap_adopt_options o;
    tokmap_i_header *h = &w->header;
    tokmap_status status = tokmap_i_take_options(&o, options, &kind, err);
    if (!status)
        status = tokmap_i_check_flag("replace", o.replace, err);
    w->names.output = TOKMAP_I_OUTPUT_ADOPTED;
    w->names.replace = o.replace != 0;
    h->token_offset = o.token_offset;
    h->n_tokens = o.n_tokens;
    h->vocab_size = o.vocab_size;
    h->token_bytes = o.token_bytes;
    if (!status)
        status = tokmap_i_take_ids(h, o.has_eod, o.eod_id, err);
    if (status)
        return status;
    if (o.token_offset > TOKMAP_I_MAX_TOKEN_OFFSET || o.token_offset % o.token_bytes != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "token_offset is %" PRIu64 ": must be a multiple of %" PRIu32 ", at most 2^30",
                    o.token_offset, o.token_bytes);
    if (o.n_tokens > TOKMAP_I_MAX_TOKENS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_tokens is %" PRIu64 ": must be at most 2^48",
                    o.n_tokens);
    return TOKMAP_OK;
}

tokmap_status tokmap_writer_adopt(tokmap_writer **out, const char *token_path,
                                  const tokmap_adopt_options *options, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out || !token_path)
        return FAIL_NULL(err);
    *out = NULL;
    tokmap_writer *w = tokmap_i_writer_new();
    if (!w)
        return FAIL_MEMORY(err);
    const tokmap_i_header *h = &w->header;
    tokmap_i_file_stat *stat = &w->names.token_file;
    const char *base = name_in_path(token_path);
    const char *suffix = strrchr(base, '.');
    tokmap_status status = take_options(w, options, err);
    if (!status && (!suffix || suffix == base || !tokmap_i_suffix_valid(suffix)))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "%s: its name needs a short suffix such as .bin (letters, digits, '_', '-'): "
                      "rename the file or make a link",
                      token_path);
    if (!status)
        status = tokmap_i_writer_begin(w, token_path, (size_t)(suffix - token_path), suffix, err);
    if (!status)
        status = tokmap_i_open_file(w->names.token_path, &w->token_fd, stat, err);
    const uint64_t expected = h->token_offset + h->n_tokens * h->token_bytes;
    if (!status && stat->n_bytes != expected)
        status = FAIL_AT(err, TOKMAP_ERR_MISMATCH, MIN(stat->n_bytes, expected),
                         "%s: has %" PRIu64 " bytes; %" PRIu64 " tokens of %" PRIu32
                         " bytes from byte %" PRIu64 " need %" PRIu64,
                         w->names.token_path, stat->n_bytes, h->n_tokens, h->token_bytes,
                         h->token_offset, expected);
    if (status)
        tokmap_writer_close(w);
    else
        *out = w;
    return status;
}

static tokmap_status refuse_id(const tokmap_writer *w, size_t n_tokens, tokmap_error *err)
{
    const uint32_t width = w->header.token_bytes;
    size_t i = 0;
    while (i < n_tokens &&
           tokmap_i_largest_id(w->buffer + i * width, 1, width) < w->header.vocab_size)
        i++;
    return FAIL_AT(err, TOKMAP_ERR_ARGUMENT, w->header.token_offset + (w->n_tokens + i) * width,
                   "%s: token %" PRIu64 " has id %" PRIu32 ", but the vocabulary size is %" PRIu64,
                   w->names.token_path, w->n_tokens + i,
                   tokmap_i_largest_id(w->buffer + i * width, 1, width), w->header.vocab_size);
}

tokmap_status tokmap_writer_scan(tokmap_writer *w, const void **tokens, size_t *n_tokens,
                                 tokmap_error *err)
{
    const bool complete = tokens && n_tokens;
    if (complete) {
        *tokens = NULL;
        *n_tokens = 0;
    }
    tokmap_status status =
        tokmap_i_writer_enter(w, complete, TOKMAP_I_OUTPUT_ADOPTED, __func__, err);
    if (status || !complete)
        return status;
    const uint32_t width = w->header.token_bytes;
    const size_t n = (size_t)MIN(w->header.n_tokens - w->n_tokens, TOKMAP_I_BLOCK_BYTES / width);
    if (n == 0)
        return TOKMAP_END;
    status = tokmap_i_read_exactly((tokmap_i_named_file){w->token_fd, w->names.token_path},
                                   w->header.token_offset + w->n_tokens * width, n * width,
                                   w->buffer, &w->failure);
    const uint32_t largest = status ? 0 : tokmap_i_largest_id(w->buffer, n, width);
    if (!status && w->header.vocab_size > 0 && largest >= w->header.vocab_size)
        status = refuse_id(w, n, &w->failure);
    if (status)
        return tokmap_i_writer_leave(w, status, err);
    w->header.largest_id = MAX(w->header.largest_id, largest);
    status = tokmap_i_writer_hash(w, w->buffer, n * width, &w->failure);
    w->n_tokens += n;
    if (!status) {
        *tokens = w->buffer;
        *n_tokens = n;
    }
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_writer_add_document(tokmap_writer *w, uint64_t n_tokens, tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, true, TOKMAP_I_OUTPUT_ADOPTED, __func__, err);
    if (status)
        return status;
    const uint64_t last_end = w->index->last_end;
    if (n_tokens > w->header.n_tokens - last_end)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: document %" PRIu64 " of %" PRIu64 " tokens from token %" PRIu64
                      " ends after the last of the %" PRIu64 " tokens in the file",
                      w->names.token_path, w->index->n_documents, n_tokens, last_end,
                      w->header.n_tokens);
    else
        status = tokmap_i_writer_document(w, last_end + n_tokens, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

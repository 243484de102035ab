/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/options.h"
#include "base/token_scan.h"
#include "system/platform.h"
#include "writer/sections.h"

tokmap_writer *tokmap_i_writer_new(void)
{
    tokmap_writer *w = calloc(1, sizeof *w);
    if (w) {
        tokmap_i_fork_mark_set(&w->fork_mark);
        w->token_fd = -1;
        w->journal = TOKMAP_I_NO_JOURNAL;
    }
    return w;
}

tokmap_status tokmap_i_writer_begin(tokmap_writer *w, const char *prefix, size_t prefix_bytes,
                                    const char *suffix, tokmap_error *err)
{
    int fd;
    w->buffer = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_WRITE_BYTES);
    w->hasher = tokmap_i_hasher_open();
    if (!w->buffer || !w->hasher || !tokmap_i_bytes_append(&w->metadata, "{}", 2))
        return FAIL_MEMORY(err);
    strcpy(w->header.token_suffix, suffix);
    tokmap_status status = tokmap_i_names_open(&w->names, prefix, prefix_bytes, suffix, err);
    if (!status)
        status = tokmap_i_names_lock(&w->names, &fd, err);
    if (!status)
        status = tokmap_i_index_writer_open(&w->index, w->names.index_partial, fd, err);
    if (!status && w->options.unfinished == TOKMAP_UNFINISHED_RESUME)
        status = tokmap_i_writer_resume(w, err);
    if (status || w->token_fd >= 0)
        return status;
    status = tokmap_i_names_claim(&w->names, err);
    if (!status && w->names.has_journal && w->options.unfinished == TOKMAP_UNFINISHED_REFUSE)
        status = tokmap_i_writer_refuse_unfinished(w, err);
    if (!status)
        status = tokmap_i_names_discard(&w->names, err);
    return status ? status
                  : CHECK_IO(err, tokmap_i_file_resize(fd, 0), "%s: cannot empty",
                             w->names.index_partial);
}

/* Returns the smallest id that is out of range. */
static uint64_t id_limit(const tokmap_i_header *h)
{
    const uint64_t width_limit = h->token_bytes == 2 ? UINT16_MAX + 1ull : TOKMAP_NO_ID;
    return h->vocab_size == 0 ? width_limit : MIN(h->vocab_size, width_limit);
}

tokmap_status tokmap_i_take_ids(tokmap_i_header *h, int32_t has_eod, uint32_t eod_id,
                                tokmap_error *err)
{
    h->eod_id = has_eod ? eod_id : TOKMAP_NO_ID;
    if (has_eod && eod_id == TOKMAP_NO_ID)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "has_eod is 1, but eod_id is TOKMAP_NO_ID");
    if (!has_eod && eod_id != 0 && eod_id != TOKMAP_NO_ID)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "eod_id is %" PRIu32 ", but has_eod is 0", eod_id);
    if (h->token_bytes != 2 && h->token_bytes != 4)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "token_bytes is %" PRIu32 ": must be 2 or 4",
                    h->token_bytes);
    if (h->vocab_size > TOKMAP_I_MAX_VOCAB)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "vocab_size is %" PRIu64 ": must be at most 2^31",
                    h->vocab_size);
    if (has_eod && eod_id >= id_limit(h))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "eod_id is %" PRIu32 ": must be below %" PRIu64
                    " (vocab_size, or the limit of token_bytes)",
                    eod_id, id_limit(h));
    return tokmap_i_check_flag("has_eod", has_eod, err);
}

/* Checks w->options, and applies them. */
static tokmap_status take_options(tokmap_writer *w, tokmap_error *err)
{
    tokmap_writer_options *o = &w->options;
    tokmap_i_header *h = &w->header;
    tokmap_status status = tokmap_i_check_flag("replace", o->replace, err);
    if (!status)
        status = tokmap_i_check_flag("resumable", o->resumable, err);
    h->vocab_size = o->vocab_size;
    h->token_bytes = o->token_bytes ? o->token_bytes : o->vocab_size <= UINT16_MAX + 1 ? 2 : 4;
    if (!status)
        status = tokmap_i_take_ids(h, o->has_eod, o->eod_id, err);
    if (status)
        return status;
    w->names.replace = o->replace;
    w->names.resume = o->unfinished == TOKMAP_UNFINISHED_RESUME;
    o->resumable |= w->names.resume;
    if (o->vocab_size == 0 && o->token_bytes == 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "vocab_size is 0: must be 1 to 2^31, or 0 if token_bytes is set");
    if ((uint32_t)o->unfinished > TOKMAP_UNFINISHED_DISCARD)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "unfinished is %d: must be 0, 1 or 2",
                    (int)o->unfinished);
    if (o->n_threads > TOKMAP_I_MAX_FLUSH_THREADS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "n_threads is %" PRIu32 ": must be at most %d",
                    o->n_threads, TOKMAP_I_MAX_FLUSH_THREADS);
    if (o->resume_checkpoint > 0 && !w->names.resume)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "resume_checkpoint is set, but unfinished is not TOKMAP_UNFINISHED_RESUME");
    return tokmap_i_check_flag("has_spans", o->has_spans, err);
}

static tokmap_status open_output(tokmap_writer **out, const char *prefix,
                                 const tokmap_writer_options *options, tokmap_i_output output,
                                 tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_writer_options, token_bytes)};
    tokmap_i_error_clear(err);
    if (!out || !prefix)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: an argument is NULL",
                    tokmap_i_writer_opened_by[output]);
    *out = NULL;
    tokmap_writer *w = tokmap_i_writer_new();
    if (!w)
        return FAIL_MEMORY(err);
    w->names.output = output;
    const size_t prefix_bytes = tokmap_i_prefix_bytes(prefix);
    const bool is_joined = output == TOKMAP_I_OUTPUT_JOINED;
    tokmap_status status = tokmap_i_take_options(&w->options, options, &kind, err);
    if (!status)
        status = take_options(w, err);
    if (!status && w->options.resumable && is_joined)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: a joined dataset cannot be resumed", prefix);
    if (!status && (prefix_bytes == 0 || prefix[prefix_bytes - 1] == '/'))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "'%s' is a folder, not a dataset", prefix);
    if (!status)
        status = tokmap_i_writer_begin(w, prefix, prefix_bytes, ".bin", err);
    if (!status && is_joined)
        status = tokmap_i_find_folder(w->names.index_path, &w->paths.base, err);
    else if (!status && w->token_fd < 0)
        status = CHECK_IO(err, tokmap_i_file_create(w->names.token_partial, &w->token_fd),
                          "%s: cannot create", w->names.token_partial);
    if (!status)
        w->index->is_joined = is_joined;
    if (!status && w->options.has_spans && !w->index->has_spans && w->index->n_documents > 0)
        status = FAIL(err, TOKMAP_ERR_MISMATCH,
                      "%s: was begun without spans; resume it without has_spans, or discard it to "
                      "start over",
                      w->names.index_path);
    if (!status && w->options.has_spans)
        w->index->has_spans = true;
    if (status)
        tokmap_writer_close(w);
    else
        *out = w;
    return status;
}

tokmap_status tokmap_writer_open(tokmap_writer **out, const char *prefix,
                                 const tokmap_writer_options *options, tokmap_error *err)
{
    return open_output(out, prefix, options, TOKMAP_I_OUTPUT_NEW, err);
}

tokmap_status tokmap_writer_open_joined(tokmap_writer **out, const char *prefix,
                                        const tokmap_writer_options *options, tokmap_error *err)
{
    return open_output(out, prefix, options, TOKMAP_I_OUTPUT_JOINED, err);
}

/* Tokens that are to be added. */
typedef struct new_tokens {
    const void *tokens;
    uint32_t width; /* of those: that of the output, or 4 */
    size_t n;
    const uint64_t *lengths; /* of the documents that they are; NULL: they are of the current one */
} new_tokens;

static const uint8_t *place_of(const new_tokens *t, size_t i)
{
    return (const uint8_t *)t->tokens + i * t->width;
}

/* Names the first id that is out of range, which is `first` or later; w->n_tokens counts those
 * before `first`. */
static tokmap_status refuse_ids(const tokmap_writer *w, const new_tokens *t, size_t first,
                                tokmap_error *err)
{
    size_t i = first;
    uint64_t id, n_documents = 0, end = 0;
    while ((id = t->width == 2 ? le_get16(place_of(t, i)) : le_get32(place_of(t, i))) <
           id_limit(&w->header))
        i++;
    while (t->lengths && (end += t->lengths[n_documents]) <= i)
        n_documents++;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: token %" PRIu64 " (document %" PRIu64 ") has id %" PRIu64
                ": must be below %" PRIu64 " (vocab_size, or the limit of token_bytes)",
                w->names.token_path, w->n_tokens + (i - first), w->index->n_documents + n_documents,
                id, id_limit(&w->header));
}

/* Copies tokens to where they are to be stored. Returns the largest id. */
static uint32_t store(uint8_t *dst, const new_tokens *t, size_t first, size_t n, uint32_t width)
{
    if (t->width != width)
        return tokmap_i_store_ids(dst, (const uint32_t *)t->tokens + first, n, width);
    memcpy(dst, place_of(t, first), n * width);
    return tokmap_i_largest_id(dst, n, width);
}

static tokmap_status add_tokens(tokmap_writer *w, const new_tokens *t, tokmap_error *err)
{
    const uint32_t width = w->header.token_bytes;
    const size_t tokens_in_piece = TOKMAP_I_WRITE_BYTES / width;
    tokmap_status status = TOKMAP_OK;
    if (t->n > TOKMAP_I_MAX_TOKENS - w->n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than 2^48 tokens", w->names.token_path);
    for (size_t done = 0, n; !status && done < t->n; done += n) {
        n = MIN(t->n - done, tokens_in_piece - w->n_tokens % tokens_in_piece);
        const uint32_t largest = store(w->buffer + w->buffer_used, t, done, n, width);
        if (largest >= id_limit(&w->header))
            return refuse_ids(w, t, done, err);
        w->header.largest_id = MAX(w->header.largest_id, largest);
        w->buffer_used += n * width;
        w->n_tokens += n;
        if (w->n_tokens % tokens_in_piece == 0)
            status = tokmap_i_writer_pass_on(w, err);
    }
    return status;
}

tokmap_status tokmap_writer_append(tokmap_writer *w, const uint32_t *ids, size_t n_tokens,
                                   tokmap_error *err)
{
    const tokmap_status status =
        tokmap_i_writer_enter(w, ids || n_tokens == 0, TOKMAP_I_OUTPUT_NEW, __func__, err);
    if (status)
        return status;
    const new_tokens t = {.tokens = ids, .width = sizeof *ids, .n = n_tokens};
    return tokmap_i_writer_leave(w, add_tokens(w, &t, &w->failure), err);
}

tokmap_status tokmap_writer_append_documents(tokmap_writer *w, const void *tokens, size_t n_tokens,
                                             const uint64_t *lengths, size_t n_documents,
                                             tokmap_error *err)
{
    const bool complete = (tokens || n_tokens == 0) && (lengths || n_documents == 0);
    tokmap_status status = tokmap_i_writer_enter(w, complete, TOKMAP_I_OUTPUT_NEW, __func__, err);
    if (status)
        return status;
    uint64_t n_left = n_tokens, end = w->n_tokens;
    size_t n_fit = 0;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): `complete` */
    while (n_fit < n_documents && lengths[n_fit] <= n_left)
        n_left -= lengths[n_fit++];
    if (n_left > 0 || n_fit < n_documents)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: the lengths of the documents do not add up to n_tokens, which is %zu",
                      w->names.token_path, n_tokens);
    const new_tokens t = {tokens, w->header.token_bytes, n_tokens, lengths};
    if (!status)
        status = add_tokens(w, &t, &w->failure);
    for (size_t i = 0; !status && i < n_documents; i++)
        status = tokmap_i_writer_document(w, end += lengths[i], &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_writer_end_document(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, true, TOKMAP_I_OUTPUT_NEW, __func__, err);
    if (status)
        return status;
    status = tokmap_i_writer_document(w, w->n_tokens, &w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_writer_end_input(tokmap_writer *w, const char *name, uint64_t input_bytes,
                                      uint64_t input_checksum, tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, name, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    const uint64_t n_documents = w->index->n_documents;
    const uint64_t last_end = w->index->last_end;
    const bool adopted = w->names.output == TOKMAP_I_OUTPUT_ADOPTED;
    const tokmap_i_new_input input = {
        .name = name,
        .name_bytes = strlen(name),
        .entry.end_document = n_documents,
        .entry.end_token = n_documents > 0 ? last_end
                           : adopted       ? w->header.n_tokens
                                           : w->n_tokens,
        .entry.input_bytes = input_bytes,
        .entry.input_checksum = input_checksum,
    };
    if (w->names.output == TOKMAP_I_OUTPUT_JOINED) {
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: is joined, so its inputs come from its datasets", w->names.index_path);
    } else if (n_documents > 0 && !adopted && last_end != w->n_tokens) {
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: an input cannot end within a document",
                      w->names.index_path);
    } else {
        w->input_before_document |= n_documents == 0 && w->n_tokens > 0;
        status = tokmap_i_index_writer_input(w->index, &input, &w->failure);
    }
    return tokmap_i_writer_leave(w, status, err);
}

tokmap_status tokmap_writer_set_metadata(tokmap_writer *w, const char *json, size_t n_bytes,
                                         tokmap_error *err)
{
    tokmap_status status =
        tokmap_i_writer_enter(w, json || n_bytes == 0, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    if (n_bytes > TOKMAP_I_MAX_METADATA_BYTES)
        status = FAIL(&w->failure, TOKMAP_ERR_ARGUMENT,
                      "%s: the metadata has %zu bytes; the limit is 64 MiB", w->names.index_path,
                      n_bytes);
    w->metadata.n_bytes = 0;
    if (!status && !tokmap_i_bytes_append(&w->metadata, json, json ? n_bytes : 0))
        status = FAIL_MEMORY(&w->failure);
    return tokmap_i_writer_leave(w, status, err);
}

/* Checks that documents and inputs cover all tokens. */
static tokmap_status check_complete(const tokmap_writer *w, tokmap_error *err)
{
    const uint64_t n_documents = w->index->n_documents;
    const uint64_t last_end = w->index->last_end;
    if (n_documents > 0 && last_end != w->n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the last document ends at token %" PRIu64 " of %" PRIu64
                    ": end the last document too, or none",
                    w->names.token_path, last_end, w->n_tokens);
    const bool has_values = w->meta && w->meta->has_row;
    if (has_values || w->spans.n_bytes > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: document %" PRIu64 " has %s, but has not ended",
                    w->names.index_path, n_documents, has_values ? "values" : "spans");
    if (n_documents > 0 && w->input_before_document)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: an input ended within the first document",
                    w->names.index_path);
    tokmap_i_new_input last;
    if (tokmap_i_index_writer_last_input(w->index, &last) &&
        (last.entry.end_document != n_documents || last.entry.end_token != w->n_tokens))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the last input ends at document %" PRIu64 " of %" PRIu64
                    ": end the last input too, or none",
                    w->names.index_path, last.entry.end_document, n_documents);
    if (w->names.output == TOKMAP_I_OUTPUT_ADOPTED && w->n_tokens != w->header.n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: only %" PRIu64 " of %" PRIu64 " tokens were scanned", w->names.token_path,
                    w->n_tokens, w->header.n_tokens);
    return TOKMAP_OK;
}

/* Checks that nobody changed the file meanwhile: the index that is about to be published would be
 * wrong. */
static tokmap_status check_unchanged(const tokmap_writer *w, const char *path, tokmap_error *err)
{
    const uint64_t expected = w->header.token_offset + w->n_tokens * w->header.token_bytes;
    tokmap_i_file_stat stat;
    const int error = tokmap_i_file_stat_fd(w->token_fd, &stat);
    if (error)
        return FAIL_IO(err, error, "%s: cannot read", path);
    if (stat.n_bytes != expected)
        return FAIL_AT(err, TOKMAP_ERR_MISMATCH, MIN(stat.n_bytes, expected),
                       "%s: has %" PRIu64 " bytes now, not %" PRIu64 ": another process changed it",
                       path, stat.n_bytes, expected);
    if (w->names.output == TOKMAP_I_OUTPUT_ADOPTED &&
        (stat.modified_ns != w->names.token_file.modified_ns ||
         !tokmap_i_file_is(path, &w->names.token_file)))
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: was changed or replaced while it was read",
                    path);
    return TOKMAP_OK;
}

static tokmap_status finish_tokens(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    w->header.n_tokens = w->n_tokens;
    if (w->names.output == TOKMAP_I_OUTPUT_JOINED)
        return TOKMAP_OK;
    if (w->buffer_used > 0 || w->flush)
        status = tokmap_i_writer_flush(w, err);
    if (!status && w->hashed > 0)
        status = tokmap_i_index_writer_block(w->index, tokmap_i_hasher_get(w->hasher), err);
    if (status || w->names.output == TOKMAP_I_OUTPUT_ADOPTED)
        return status ? status : check_unchanged(w, w->names.token_path, err);
    status = check_unchanged(w, w->names.token_partial, err);
    return status ? status : tokmap_i_writer_sync(w, err);
}

tokmap_status tokmap_writer_finish(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, true, TOKMAP_I_OUTPUT_ANY, __func__, err);
    if (status)
        return status;
    const uint64_t n_bytes = w->n_tokens * w->header.token_bytes;
    tokmap_i_progress progress = tokmap_i_writer_progress(w, n_bytes, w->index->n_documents);
    status = check_complete(w, &w->failure);
    if (!status)
        status = tokmap_i_progress_add(&progress, 0, &w->failure);
    if (!status)
        status = finish_tokens(w, &w->failure);
    if (!status)
        status = tokmap_i_progress_add(&progress, n_bytes, &w->failure);
    w->index->progress = &progress;
    if (!status)
        status = tokmap_i_index_writer_finish(w->index, &w->header, w->metadata.data,
                                              w->metadata.n_bytes, &w->failure);
    w->index->progress = NULL;
    if (!status && w->meta && tokmap_i_file_stat_fd(w->meta->fd, &w->names.values_file))
        status = FAIL_IO(&w->failure, EIO, "%s: cannot read", w->names.values);
    if (!status && w->token_fd >= 0 && tokmap_i_file_stat_fd(w->token_fd, &w->names.token_file))
        status = FAIL_IO(&w->failure, EIO, "%s: cannot read", w->names.token_partial);
    if (!status) /* before anybody sees the dataset */
        status = tokmap_i_progress_add(&progress, progress.n_total, &w->failure);
    if (!status)
        status = tokmap_i_names_publish(&w->names, &w->failure);
    w->finished = status == TOKMAP_OK;
    return tokmap_i_writer_leave(w, status, err);
}

uint64_t tokmap_writer_n_tokens(const tokmap_writer *w)
{
    return w ? w->n_tokens : 0;
}

uint64_t tokmap_writer_n_documents(const tokmap_writer *w)
{
    return w ? w->index->n_documents : 0;
}

void tokmap_writer_close(tokmap_writer *w)
{
    if (!w)
        return;
    if (tokmap_i_fork_mark_is_child(&w->fork_mark))
        w->names.has_journal = true; /* so that close keeps the files, which are the parent's */
    tokmap_i_writer_end_threads(w);
    tokmap_i_fork_mark_free(&w->fork_mark);
    tokmap_i_names_close(&w->names);
    tokmap_i_index_writer_close(w->index);
    tokmap_i_meta_writer_close(w->meta);
    tokmap_i_file_close(w->token_fd);
    tokmap_i_journal_close(&w->journal);
    tokmap_i_hasher_close(w->hasher);
    tokmap_i_relative_path_close(&w->paths);
    free(w->note.data);
    free(w->buffer);
    free(w->spans.data);
    free(w->metadata.data);
    free(w);
}

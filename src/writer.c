#include "writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "platform.h"
#include "status.h"
#include "token_scan.h"

static char *join(const char *prefix, size_t prefix_bytes, const char *suffix, const char *more)
{
    char *path = malloc(prefix_bytes + strlen(suffix) + strlen(more) + 1);
    if (path) {
        memcpy(path, prefix, prefix_bytes);
        strcpy(path + prefix_bytes, suffix);
        strcat(path, more);
    }
    return path;
}

/* Tokens without an index are refused too, but for those that a killed writer was about to publish:
 * they still have their partial name as well. */
static tokmap_status refuse_existing(const tokmap_writer *w, tokmap_error *err)
{
    if (w->replace)
        return TOKMAP_OK;
    if (tokmap_i_file_exists(w->index_path))
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: is there already", w->index_path);
    if (w->token_partial && tokmap_i_file_exists(w->token_path) &&
        !tokmap_i_file_same(w->token_path, w->token_partial))
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: is there already, without an index",
                    w->token_path);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_writer_begin(tokmap_writer *w, const char *prefix, size_t prefix_bytes,
                                    const char *suffix, tokmap_error *err)
{
    w->token_path = join(prefix, prefix_bytes, suffix, "");
    w->index_path = join(prefix, prefix_bytes, ".tmi", "");
    w->index_partial = join(prefix, prefix_bytes, ".tmi", ".partial");
    w->buffer = malloc(TOKMAP_I_WRITE_BYTES);
    w->hasher = tokmap_i_hasher_open();
    w->metadata = strdup("{}");
    w->metadata_bytes = 2;
    if (!w->token_path || !w->index_path || !w->index_partial || !w->buffer || !w->hasher ||
        !w->metadata)
        return FAIL_MEMORY(err);
    strcpy(w->header.token_suffix, suffix);
    /* Looked at before and after taking the lock: the first spares files that are not ours to touch
     * a lock file beside them, the second sees what a writer before us has just finished. */
    tokmap_status status = refuse_existing(w, err);
    if (!status)
        status = tokmap_i_index_writer_open(&w->index, w->index_partial, err);
    w->owns_partials = !status;
    if (!status)
        status = refuse_existing(w, err);
    if (status)
        return status;
    const int error = tokmap_i_folder_sync(w->index_path); /* told now, not after all the work */
    return error ? FAIL_IO(err, error, "%s: cannot flush its folder to the disk", w->index_path)
                 : TOKMAP_OK;
}

/* Not when replacing: then they may be those of a dataset that is complete. */
static tokmap_status remove_unpublished(const tokmap_writer *w, tokmap_error *err)
{
    const int error = w->replace ? 0 : tokmap_i_file_remove(w->token_path);
    return error && error != ENOENT ? FAIL_IO(err, error, "%s: cannot remove", w->token_path)
                                    : TOKMAP_OK;
}

static tokmap_status begin_new(tokmap_writer *w, const char *prefix, tokmap_error *err)
{
    size_t prefix_bytes = strlen(prefix);
    if (prefix_bytes > 4 && (strcmp(prefix + prefix_bytes - 4, ".bin") == 0 ||
                             strcmp(prefix + prefix_bytes - 4, ".tmi") == 0))
        prefix_bytes -= 4;
    if (prefix_bytes == 0 || prefix[prefix_bytes - 1] == '/')
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "'%s' names a folder, not a dataset", prefix);
    w->token_partial = join(prefix, prefix_bytes, ".bin", ".partial");
    if (!w->token_partial)
        return FAIL_MEMORY(err);
    tokmap_status status = tokmap_i_writer_begin(w, prefix, prefix_bytes, ".bin", err);
    if (!status)
        status = remove_unpublished(w, err);
    if (status)
        return status;
    const int error = tokmap_i_file_create(w->token_partial, &w->token_fd);
    return error ? FAIL_IO(err, error, "%s: cannot create", w->token_partial) : TOKMAP_OK;
}

/* The smallest id that a writer refuses. */
static uint64_t id_limit(const tokmap_i_header *h)
{
    const uint64_t width_limit = h->token_bytes == 2 ? UINT16_MAX + 1ull : TOKMAP_NO_ID;
    return h->vocab_size == 0 ? width_limit : MIN(h->vocab_size, width_limit);
}

static tokmap_status take_options(tokmap_i_header *h, const tokmap_writer_options *o,
                                  tokmap_error *err)
{
    h->vocab_size = o->vocab_size;
    h->eod_id = o->eod_id;
    h->token_bytes = o->token_bytes ? o->token_bytes : o->vocab_size <= UINT16_MAX + 1 ? 2 : 4;
    if (h->token_bytes != 2 && h->token_bytes != 4)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokens of %" PRIu32 " bytes: must be 2 or 4",
                    h->token_bytes);
    if (o->vocab_size > TOKMAP_I_MAX_VOCAB || (o->vocab_size == 0 && o->token_bytes == 0))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "vocabulary size %" PRIu64 " is not in 1 to 2^31",
                    o->vocab_size);
    if (o->eod_id != TOKMAP_NO_ID && o->eod_id >= id_limit(h))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "the end-of-document id %" PRIu32 " is not below %" PRIu64, o->eod_id,
                    id_limit(h));
    return TOKMAP_OK;
}

tokmap_status tokmap_writer_open(tokmap_writer **out, const char *prefix,
                                 const tokmap_writer_options *options, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out || !prefix || !options || options->struct_size < sizeof *options)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_writer_open: an argument is missing");
    *out = NULL;
    tokmap_writer *w = calloc(1, sizeof *w);
    if (!w)
        return FAIL_MEMORY(err);
    w->token_fd = -1;
    w->replace = options->replace != 0;
    tokmap_status status = take_options(&w->header, options, err);
    if (!status)
        status = begin_new(w, prefix, err);
    if (status) {
        tokmap_writer_close(w);
        return status;
    }
    *out = w;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_writer_enter(tokmap_writer *w, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (w->finished && !w->failure.status)
        FAIL(&w->failure, TOKMAP_ERR_ARGUMENT, "%s: is finished; only close is left",
             w->index_path);
    if (w->failure.status && err)
        *err = w->failure;
    return w->failure.status;
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

tokmap_status tokmap_i_writer_hash(tokmap_writer *w, const void *data, size_t n_bytes,
                                   tokmap_error *err)
{
    const uint8_t *p = data;
    while (n_bytes > 0) {
        const size_t n = MIN(n_bytes, TOKMAP_I_BLOCK_BYTES - w->hashed);
        tokmap_i_hasher_add(w->hasher, p, n);
        w->hashed += n;
        p += n;
        n_bytes -= n;
        if (w->hashed < TOKMAP_I_BLOCK_BYTES)
            break;
        const tokmap_status status =
            tokmap_i_index_writer_block(w->index, tokmap_i_hasher_get(w->hasher), err);
        if (status)
            return status;
        tokmap_i_hasher_reset(w->hasher);
        w->hashed = 0;
    }
    return TOKMAP_OK;
}

tokmap_status tokmap_i_writer_flush(tokmap_writer *w, tokmap_error *err)
{
    const uint64_t offset = w->n_tokens * w->header.token_bytes - w->buffer_used;
    const int error = tokmap_i_file_write(w->token_fd, w->buffer, w->buffer_used, offset);
    if (error)
        return FAIL_IO_AT(err, error, offset, "%s: cannot write", w->token_partial);
    w->buffer_used = 0;
    return TOKMAP_OK;
}

static void narrow(uint8_t *dst, const uint32_t *ids, size_t n_tokens)
{
    for (size_t i = 0; i < n_tokens; i++)
        store_le16(dst + 2 * i, (uint16_t)ids[i]);
}

static void store_wide(uint8_t *dst, const uint32_t *ids, size_t n_tokens)
{
    for (size_t i = 0; i < n_tokens; i++)
        store_le32(dst + 4 * i, ids[i]);
}

/* As many ids as there are to the end of the piece at most. */
static tokmap_status append_some(tokmap_writer *w, const uint32_t *ids, size_t n_tokens,
                                 tokmap_error *err)
{
    uint8_t *dst = w->buffer + w->buffer_used;
    if (w->header.token_bytes == 2)
        narrow(dst, ids, n_tokens);
    else
        store_wide(dst, ids, n_tokens);
    const size_t n_bytes = n_tokens * w->header.token_bytes;
    const tokmap_status status = tokmap_i_writer_hash(w, dst, n_bytes, err);
    w->buffer_used += n_bytes;
    w->n_tokens += n_tokens;
    if (status || w->n_tokens * w->header.token_bytes % TOKMAP_I_WRITE_BYTES != 0)
        return status;
    return tokmap_i_writer_flush(w, err);
}

static tokmap_status check_ids(tokmap_writer *w, const uint32_t *ids, size_t n_tokens,
                               tokmap_error *err)
{
    uint32_t largest = w->header.largest_id;
    for (size_t i = 0; i < n_tokens; i++)
        largest = ids[i] > largest ? ids[i] : largest;
    if (n_tokens == 0 || largest < id_limit(&w->header)) {
        w->header.largest_id = largest;
        return TOKMAP_OK;
    }
    size_t i = 0;
    while (ids[i] < id_limit(&w->header))
        i++;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: token %" PRIu64 " (document %" PRIu64 ") has id %" PRIu32
                "; it must be below %" PRIu64,
                w->token_path, w->n_tokens + i, tokmap_i_index_writer_n_documents(w->index), ids[i],
                id_limit(&w->header));
}

static tokmap_status append(tokmap_writer *w, const uint32_t *ids, size_t n_tokens,
                            tokmap_error *err)
{
    if (!w->token_partial)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: is adopted; nothing can be added",
                    w->token_path);
    if (n_tokens > TOKMAP_I_MAX_TOKENS - w->n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than 2^48 tokens", w->token_path);
    tokmap_status status = check_ids(w, ids, n_tokens, err);
    while (!status && n_tokens > 0) {
        const size_t tokens_in_piece = TOKMAP_I_WRITE_BYTES / w->header.token_bytes;
        const size_t room = tokens_in_piece - w->n_tokens % tokens_in_piece;
        const size_t n = MIN(n_tokens, room);
        status = append_some(w, ids, n, err);
        ids += n;
        n_tokens -= n;
    }
    return status;
}

tokmap_status tokmap_writer_append(tokmap_writer *w, const uint32_t *ids, size_t n_tokens,
                                   tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, err);
    return status ? status : tokmap_i_writer_leave(w, append(w, ids, n_tokens, &w->failure), err);
}

static tokmap_status end_document(tokmap_writer *w, tokmap_error *err)
{
    if (!w->token_partial)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: is adopted; use tokmap_writer_add_document",
                    w->token_path);
    return tokmap_i_index_writer_document(w->index, w->n_tokens, err);
}

tokmap_status tokmap_writer_end_document(tokmap_writer *w, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, err);
    return status ? status : tokmap_i_writer_leave(w, end_document(w, &w->failure), err);
}

tokmap_status tokmap_i_writer_source(tokmap_writer *w, const tokmap_i_new_source *source,
                                     tokmap_error *err)
{
    w->n_sources++;
    w->source_end_document = source->end_document;
    w->source_end_token = source->end_token;
    return tokmap_i_index_writer_source(w->index, source, err);
}

tokmap_status tokmap_writer_end_source(tokmap_writer *w, const char *name, uint64_t input_bytes,
                                       uint64_t input_checksum, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, err);
    if (status)
        return status;
    const uint64_t n_documents = tokmap_i_index_writer_n_documents(w->index);
    const tokmap_i_new_source source = {
        .name = name,
        .name_bytes = strlen(name),
        .end_document = n_documents,
        .end_token = n_documents > 0    ? tokmap_i_index_writer_last_end(w->index)
                     : w->token_partial ? w->n_tokens
                                        : w->header.n_tokens,
        .input_bytes = input_bytes,
        .input_checksum = input_checksum,
    };
    return tokmap_i_writer_leave(w, tokmap_i_writer_source(w, &source, &w->failure), err);
}

static tokmap_status set_metadata(tokmap_writer *w, const char *json, size_t n_bytes,
                                  tokmap_error *err)
{
    if (n_bytes > TOKMAP_I_MAX_METADATA_BYTES)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: metadata of %zu bytes; the limit is 64 MiB",
                    w->index_path, n_bytes);
    char *copy = malloc(MAX(n_bytes, 1));
    if (!copy)
        return FAIL_MEMORY(err);
    memcpy(copy, json, n_bytes);
    free(w->metadata);
    w->metadata = copy;
    w->metadata_bytes = n_bytes;
    return TOKMAP_OK;
}

tokmap_status tokmap_writer_set_metadata(tokmap_writer *w, const char *json, size_t n_bytes,
                                         tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, err);
    return status ? status
                  : tokmap_i_writer_leave(w, set_metadata(w, json, n_bytes, &w->failure), err);
}

/* The rules that hold for the whole: documents and sources cover all tokens. */
static tokmap_status check_complete(const tokmap_writer *w, tokmap_error *err)
{
    const uint64_t n_documents = tokmap_i_index_writer_n_documents(w->index);
    const uint64_t last_end = tokmap_i_index_writer_last_end(w->index);
    if (n_documents > 0 && last_end != w->n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the last document ends at token %" PRIu64 " of %" PRIu64, w->token_path,
                    last_end, w->n_tokens);
    if (w->n_sources > 0 &&
        (w->source_end_document != n_documents || w->source_end_token != w->n_tokens))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the last source ends at document %" PRIu64 " of %" PRIu64, w->index_path,
                    w->source_end_document, n_documents);
    if (!w->token_partial && w->n_tokens != w->header.n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: %" PRIu64 " of %" PRIu64 " tokens were scanned",
                    w->token_path, w->n_tokens, w->header.n_tokens);
    return TOKMAP_OK;
}

/* A file that grew or shrank meanwhile would not fit the index that we are about to publish. */
static tokmap_status check_adopted_size(const tokmap_writer *w, tokmap_error *err)
{
    const uint64_t expected = w->header.token_offset + w->n_tokens * w->header.token_bytes;
    tokmap_i_file_stat stat;
    const int error = tokmap_i_file_stat_fd(w->token_fd, &stat);
    if (error)
        return FAIL_IO(err, error, "%s: cannot read", w->token_path);
    if (stat.n_bytes == expected)
        return TOKMAP_OK;
    return FAIL_AT(err, TOKMAP_ERR_MISMATCH, MIN(stat.n_bytes, expected),
                   "%s: has %" PRIu64 " bytes by now, not %" PRIu64
                   ": somebody changed it while it was read",
                   w->token_path, stat.n_bytes, expected);
}

static tokmap_status finish_tokens(tokmap_writer *w, tokmap_error *err)
{
    w->header.n_tokens = w->n_tokens;
    if (w->hashed > 0) {
        const tokmap_status status =
            tokmap_i_index_writer_block(w->index, tokmap_i_hasher_get(w->hasher), err);
        if (status)
            return status;
    }
    if (!w->token_partial)
        return check_adopted_size(w, err);
    const tokmap_status status = tokmap_i_writer_flush(w, err);
    if (status)
        return status;
    const int error = tokmap_i_file_sync(w->token_fd);
    return error ? FAIL_IO(err, error, "%s: cannot write to the disk", w->token_partial)
                 : TOKMAP_OK;
}

/* Files get their final name as a second one, and lose the partial one when all is done: until
 * then the lock holds, and a killed writer's tokens can be told from somebody else's. Where the
 * file system has no second names, they are renamed. */
static int name_tokens(const tokmap_writer *w)
{
    const int error = tokmap_i_file_link(w->token_partial, w->token_path);
    return error == 0 || error == EEXIST ? error
                                         : tokmap_i_file_rename(w->token_partial, w->token_path);
}

static int name_index(tokmap_writer *w)
{
    int error = tokmap_i_file_link(w->index_partial, w->index_path);
    if (error == 0 || error == EEXIST)
        return error;
    if (w->token_partial) /* with the rename the lock goes */
        tokmap_i_file_remove(w->token_partial);
    error = tokmap_i_file_rename(w->index_partial, w->index_path);
    w->owns_partials = error != 0;
    return error;
}

static void remove_partials(tokmap_writer *w)
{
    if (!w->owns_partials) /* without the lock the files are another writer's */
        return;
    if (w->token_partial)
        tokmap_i_file_remove(w->token_partial);
    tokmap_i_file_remove(w->index_partial);
    w->owns_partials = false;
}

/* After a file was given its name: makes the name durable. */
static tokmap_status sync_name(int naming_error, const char *path, tokmap_error *err)
{
    if (naming_error == EEXIST)
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: is there already", path);
    if (naming_error)
        return FAIL_IO(err, naming_error, "%s: cannot give the finished file this name", path);
    const int error = tokmap_i_folder_sync(path);
    if (!error)
        return TOKMAP_OK;
    tokmap_i_file_remove(path); /* it may not survive a power cut: better absent now */
    return FAIL_IO(err, error, "%s: cannot flush its folder to the disk", path);
}

/* The old index goes first, so that at no moment an index stands beside tokens that are not its
 * own. */
static tokmap_status remove_old(const tokmap_writer *w, tokmap_error *err)
{
    if (!w->replace)
        return TOKMAP_OK;
    int error = tokmap_i_file_remove(w->index_path);
    if (!error)
        error = tokmap_i_folder_sync(w->index_path);
    if (error && error != ENOENT)
        return FAIL_IO(err, error, "%s: cannot replace", w->index_path);
    error = w->token_partial ? tokmap_i_file_remove(w->token_path) : 0;
    return error && error != ENOENT ? FAIL_IO(err, error, "%s: cannot replace", w->token_path)
                                    : TOKMAP_OK;
}

static tokmap_status publish(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = remove_old(w, err);
    if (!status && w->token_partial)
        status = sync_name(name_tokens(w), w->token_path, err);
    if (status)
        return status;
    status = sync_name(name_index(w), w->index_path, err);
    if (status && w->token_partial)
        tokmap_i_file_remove(w->token_path);
    return status;
}

static tokmap_status finish(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = check_complete(w, err);
    if (!status)
        status = finish_tokens(w, err);
    if (!status)
        status =
            tokmap_i_index_writer_finish(w->index, &w->header, w->metadata, w->metadata_bytes, err);
    if (!status)
        status = publish(w, err);
    w->finished = status == TOKMAP_OK;
    if (w->finished)
        remove_partials(w);
    return status;
}

tokmap_status tokmap_writer_finish(tokmap_writer *w, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_writer_enter(w, err);
    return status ? status : tokmap_i_writer_leave(w, finish(w, &w->failure), err);
}

void tokmap_writer_close(tokmap_writer *w)
{
    if (!w)
        return;
    remove_partials(w);
    tokmap_i_index_writer_close(w->index);
    tokmap_i_file_close(w->token_fd);
    tokmap_i_hasher_close(w->hasher);
    free(w->token_path);
    free(w->token_partial);
    free(w->index_path);
    free(w->index_partial);
    free(w->buffer);
    free(w->metadata);
    free(w);
}

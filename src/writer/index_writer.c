/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/index_writer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "format/document_index.h"
#include "format/segments_section.h"
#include "format/spans_section.h"
#include "system/platform.h"

static bool append_u64(tokmap_i_bytes *b, uint64_t value)
{
    uint8_t bytes[8];
    le_put64(bytes, value);
    return tokmap_i_bytes_append(b, bytes, sizeof bytes);
}

bool tokmap_i_index_writer_has(const tokmap_i_index_writer *w, uint32_t kind)
{
    return kind == TOKMAP_I_META       ? w->meta != NULL
           : kind == TOKMAP_I_SEGMENTS ? w->is_joined
           : kind == TOKMAP_I_SPANS    ? w->has_spans
                                       : true;
}

uint32_t tokmap_i_index_writer_n_sections(const tokmap_i_index_writer *w)
{
    uint32_t n = 0;
    for (uint32_t kind = TOKMAP_I_DOCUMENTS; kind <= TOKMAP_I_LAST_SECTION; kind++)
        n += tokmap_i_index_writer_has(w, kind);
    return n;
}

/* Returns the offset of the first group. */
static uint64_t documents_start(const tokmap_i_index_writer *w)
{
    const tokmap_i_header counted = {.n_sections = tokmap_i_index_writer_n_sections(w)};
    return tokmap_i_section_start(&counted, 0);
}

tokmap_status tokmap_i_index_writer_open(tokmap_i_index_writer **out, const char *path, int fd,
                                         tokmap_error *err)
{
    *out = NULL;
    tokmap_i_index_writer *w = calloc(1, sizeof *w);
    if (!w) {
        tokmap_i_file_close(fd);
        return FAIL_MEMORY(err);
    }
    w->fd = fd;
    w->path = path;
    w->out = malloc(TOKMAP_I_WRITE_BYTES);
    w->hasher = tokmap_i_hasher_open();
    if (!w->out || !w->hasher) {
        tokmap_i_index_writer_close(w);
        return FAIL_MEMORY(err);
    }
    *out = w;
    return TOKMAP_OK;
}

void tokmap_i_index_writer_close(tokmap_i_index_writer *w)
{
    if (!w)
        return;
    tokmap_i_file_close(w->fd);
    tokmap_i_hasher_close(w->hasher);
    free(w->out);
    free(w->wide_ends.data);
    free(w->blocks.data);
    free(w->inputs.data);
    free(w->names.data);
    free(w->segments.data);
    free(w->segment_names.data);
    free(w->spans.data);
    free(w);
}

/* Adds what is new in `out` to the checksum of the section. */
static void hash_out(tokmap_i_index_writer *w)
{
    tokmap_i_hasher_add(w->hasher, w->out + w->out_hashed, w->out_used - w->out_hashed);
    w->out_hashed = w->out_used;
}

uint64_t tokmap_i_index_writer_checksum(tokmap_i_index_writer *w)
{
    hash_out(w);
    return tokmap_i_hasher_get(w->hasher);
}

tokmap_status tokmap_i_index_writer_flush(tokmap_i_index_writer *w, tokmap_error *err)
{
    hash_out(w);
    const int error = tokmap_i_file_write(w->fd, w->out, w->out_used, w->written);
    if (error)
        return FAIL_IO_AT(err, error, w->written, "%s: cannot write", w->path);
    w->written += w->out_used;
    w->out_used = w->out_hashed = 0;
    return TOKMAP_OK;
}

tokmap_status tokmap_i_index_writer_put(tokmap_i_index_writer *w, const void *data, size_t n_bytes,
                                        tokmap_error *err)
{
    const uint8_t *from = data;
    while (n_bytes > 0) {
        const size_t room =
            TOKMAP_I_WRITE_BYTES - (w->written + w->out_used) % TOKMAP_I_WRITE_BYTES;
        const size_t n = MIN(n_bytes, room);
        memcpy(w->out + w->out_used, from, n);
        w->out_used += n;
        from += n;
        n_bytes -= n;
        const tokmap_status status = n == room ? tokmap_i_index_writer_flush(w, err) : TOKMAP_OK;
        if (status)
            return status;
    }
    return TOKMAP_OK;
}

static tokmap_status end_group(tokmap_i_index_writer *w, tokmap_error *err)
{
    uint8_t record[TOKMAP_I_GROUP_BYTES], wide[TOKMAP_I_WIDE_BYTES];
    uint8_t lengths[8 * TOKMAP_I_GROUP_DOCUMENTS];
    if (w->n_documents <= TOKMAP_I_GROUP_DOCUMENTS) /* the first one */
        w->written = documents_start(w);
    for (uint32_t i = 0; i < w->n_in_group; i++)
        le_put64(lengths + 8 * (size_t)i, w->group_ends[i] - (i ? w->group_ends[i - 1] : 0));
    tokmap_i_content_hash_add(&w->documents_hash, lengths, 8 * (size_t)w->n_in_group);
    const uint64_t wide_index = w->wide_ends.n_bytes / TOKMAP_I_WIDE_BYTES;
    if (tokmap_i_group_encode(w->group_ends, w->n_in_group, wide_index, record, wide) &&
        !tokmap_i_bytes_append(&w->wide_ends, wide, sizeof wide))
        return FAIL_MEMORY(err);
    w->group_start = w->last_end;
    w->n_in_group = 0;
    return tokmap_i_index_writer_put(w, record, sizeof record, err);
}

tokmap_status tokmap_i_index_writer_end_groups(tokmap_i_index_writer *w, tokmap_error *err)
{
    if (w->n_documents == 0)
        w->written = documents_start(w);
    const tokmap_status status = w->n_in_group > 0 ? end_group(w, err) : TOKMAP_OK;
    return status ? status : tokmap_i_index_writer_flush(w, err);
}

tokmap_status tokmap_i_index_writer_document(tokmap_i_index_writer *w, uint64_t end,
                                             tokmap_error *err)
{
    if (end < w->last_end || end > TOKMAP_I_MAX_TOKENS || w->n_documents >= TOKMAP_I_MAX_DOCUMENTS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: document %" PRIu64 " would end at token %" PRIu64
                    ": ends must ascend, up to 2^48 tokens and 2^40 documents",
                    w->path, w->n_documents, end);
    w->group_ends[w->n_in_group++] = end - w->group_start;
    w->last_end = end;
    w->n_documents++;
    return w->n_in_group == TOKMAP_I_GROUP_DOCUMENTS ? end_group(w, err) : TOKMAP_OK;
}

tokmap_status tokmap_i_index_writer_block(tokmap_i_index_writer *w, uint64_t checksum,
                                          tokmap_error *err)
{
    return append_u64(&w->blocks, checksum) ? TOKMAP_OK : FAIL_MEMORY(err);
}

tokmap_status tokmap_i_index_writer_blocks(tokmap_i_index_writer *w, const uint8_t *checksums,
                                           size_t n_bytes, tokmap_error *err)
{
    return tokmap_i_bytes_append(&w->blocks, checksums, n_bytes) ? TOKMAP_OK : FAIL_MEMORY(err);
}

tokmap_status tokmap_i_index_writer_input(tokmap_i_index_writer *w, const tokmap_i_new_input *input,
                                          tokmap_error *err)
{
    if (input->name_bytes > TOKMAP_I_MAX_INPUT_NAME || memchr(input->name, 0, input->name_bytes))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: an input name has more than %d bytes", w->path,
                    TOKMAP_I_MAX_INPUT_NAME);
    if (w->inputs.n_bytes / TOKMAP_I_INPUT_ENTRY_BYTES >= TOKMAP_I_MAX_INPUTS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than %d inputs", w->path,
                    TOKMAP_I_MAX_INPUTS);
    uint8_t *entry = tokmap_i_bytes_add(&w->inputs, TOKMAP_I_INPUT_ENTRY_BYTES);
    if (!entry || !tokmap_i_bytes_append(&w->names, input->name, input->name_bytes))
        return FAIL_MEMORY(err);
    tokmap_i_input_entry e = input->entry;
    e.name_end = w->names.n_bytes;
    tokmap_i_input_entry_encode(&e, entry);
    return TOKMAP_OK;
}

bool tokmap_i_index_writer_last_input(const tokmap_i_index_writer *w, tokmap_i_new_input *out)
{
    *out = (tokmap_i_new_input){.name = ""};
    if (w->inputs.n_bytes == 0)
        return false;
    const uint8_t *last = w->inputs.data + w->inputs.n_bytes - TOKMAP_I_INPUT_ENTRY_BYTES;
    const uint64_t first =
        last == w->inputs.data ? 0 : le_get64(last - 8); /* where the previous name ends */
    *out = (tokmap_i_new_input){.name = (const char *)w->names.data + first,
                                .name_bytes = (size_t)(w->names.n_bytes - first),
                                .entry.end_document = le_get64(last),
                                .entry.end_token = le_get64(last + 8)};
    return true;
}

void tokmap_i_index_writer_extend_input(tokmap_i_index_writer *w, const tokmap_i_new_input *input)
{
    uint8_t *last = w->inputs.data + w->inputs.n_bytes - TOKMAP_I_INPUT_ENTRY_BYTES;
    const tokmap_i_input_entry *e = &input->entry;
    tokmap_i_input_entry_encode(&(tokmap_i_input_entry){e->end_document, e->end_token,
                                                        MAX(le_get64(last + 16), e->input_bytes), 0,
                                                        w->names.n_bytes},
                                last);
}

tokmap_status tokmap_i_index_writer_segment(tokmap_i_index_writer *w, const char *name,
                                            uint64_t end_token, uint64_t token_offset,
                                            tokmap_error *err)
{
    const size_t name_bytes = strlen(name);
    if (name_bytes > TOKMAP_I_MAX_SEGMENT_NAME)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: the path to a token file has %zu bytes; the limit is %d: '%.200s...'",
                    w->path, name_bytes, TOKMAP_I_MAX_SEGMENT_NAME, name);
    if (w->segments.n_bytes / TOKMAP_I_SEGMENT_ENTRY_BYTES >= TOKMAP_I_MAX_SEGMENTS)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than %d token files", w->path,
                    TOKMAP_I_MAX_SEGMENTS);
    if (!tokmap_i_bytes_append(&w->segment_names, name, name_bytes) ||
        !append_u64(&w->segments, end_token) || !append_u64(&w->segments, token_offset) ||
        !append_u64(&w->segments, w->segment_names.n_bytes))
        return FAIL_MEMORY(err);
    return TOKMAP_OK;
}

/* ---- Spans ---- */

tokmap_status tokmap_i_index_writer_span(tokmap_i_index_writer *w, const tokmap_span *span,
                                         tokmap_error *err)
{
    const uint64_t length_and_role = span->n_tokens << 8 | (uint8_t)span->role;
    if (w->spans.n_bytes / TOKMAP_I_ADDED_SPAN_BYTES >= TOKMAP_I_MAX_SPANS / 2)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than 2^39 spans", w->path);
    return append_u64(&w->spans, span->first_token) && append_u64(&w->spans, length_and_role)
               ? TOKMAP_OK
               : FAIL_MEMORY(err);
}

/* ---- Reading back the ends of the groups ---- */

tokmap_status tokmap_i_index_writer_read_back(const tokmap_i_index_writer *w, uint64_t at,
                                              uint8_t *dst, size_t n_bytes, tokmap_error *err)
{
    size_t n_read;
    const uint64_t offset = documents_start(w) + at;
    const int error = tokmap_i_file_read(w->fd, dst, n_bytes, offset, &n_read);
    if (error)
        return FAIL_IO_AT(err, error, offset, "%s: cannot read", w->path);
    if (n_read == n_bytes)
        return TOKMAP_OK;
    tokmap_i_file_stat stat = {.n_bytes = UINT64_MAX};
    (void)tokmap_i_file_stat_fd(w->fd, &stat);
    const uint64_t end = MIN(offset + n_read, stat.n_bytes);
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, end,
                   "%s: ends at byte %" PRIu64 ", before the end of what was written to it",
                   w->path, end);
}

/* ---- Checkpoints ---- */

tokmap_status tokmap_i_index_writer_save(tokmap_i_index_writer *w, tokmap_i_checkpoint *now,
                                         tokmap_error *err)
{
    const tokmap_status status = tokmap_i_index_writer_flush(w, err);
    if (status)
        return status;
    now->n_documents = w->n_documents;
    now->group_start = w->group_start;
    now->n_wide = w->wide_ends.n_bytes / TOKMAP_I_WIDE_BYTES;
    now->n_inputs = w->inputs.n_bytes / TOKMAP_I_INPUT_ENTRY_BYTES;
    now->has_spans = w->has_spans;
    now->n_spans = w->spans.n_bytes / TOKMAP_I_ADDED_SPAN_BYTES;
    now->names_bytes = w->names.n_bytes;
    now->ends_checksum = tokmap_i_hasher_get(w->hasher);
    now->documents_hash = w->documents_hash;
    return CHECK_IO(err, tokmap_i_file_sync(w->fd), "%s: cannot write to the disk", w->path);
}

static const uint8_t *last_bytes(const tokmap_i_bytes *b, uint64_t n_bytes)
{
    return n_bytes == 0 ? NULL : b->data + b->n_bytes - n_bytes;
}

void tokmap_i_index_writer_tails(tokmap_i_index_writer *w, tokmap_i_record_parts *parts)
{
    const uint64_t *n = parts->n_bytes;
    parts->data[TOKMAP_I_OPEN_ENDS] = (const uint8_t *)w->group_ends;
    parts->data[TOKMAP_I_WIDE_ENDS] = last_bytes(&w->wide_ends, n[TOKMAP_I_WIDE_ENDS]);
    parts->data[TOKMAP_I_BLOCKS] = last_bytes(&w->blocks, n[TOKMAP_I_BLOCKS]);
    parts->data[TOKMAP_I_NEW_INPUTS] = last_bytes(&w->inputs, n[TOKMAP_I_NEW_INPUTS]);
    parts->data[TOKMAP_I_NAMES] = last_bytes(&w->names, n[TOKMAP_I_NAMES]);
    parts->data[TOKMAP_I_NEW_SPANS] = last_bytes(&w->spans, n[TOKMAP_I_NEW_SPANS]);
}

tokmap_status tokmap_i_index_writer_restore(tokmap_i_index_writer *w,
                                            const tokmap_i_checkpoint *now,
                                            const tokmap_i_record_parts *parts, tokmap_error *err)
{
    tokmap_i_bytes *const to[TOKMAP_I_RECORD_PARTS] = {[TOKMAP_I_WIDE_ENDS] = &w->wide_ends,
                                                       [TOKMAP_I_BLOCKS] = &w->blocks,
                                                       [TOKMAP_I_NEW_INPUTS] = &w->inputs,
                                                       [TOKMAP_I_NAMES] = &w->names,
                                                       [TOKMAP_I_NEW_SPANS] = &w->spans};
    for (int part = 0; part < TOKMAP_I_RECORD_PARTS; part++)
        if (to[part] &&
            !tokmap_i_bytes_append(to[part], parts->data[part], (size_t)parts->n_bytes[part]))
            return FAIL_MEMORY(err);
    w->n_documents = now->n_documents;
    w->documents_hash = now->documents_hash;
    w->n_in_group = (uint32_t)(now->n_documents % TOKMAP_I_GROUP_DOCUMENTS);
    w->group_start = w->last_end = now->group_start;
    for (uint32_t i = 0; i < w->n_in_group; i++) {
        w->group_ends[i] = le_get64(parts->data[TOKMAP_I_OPEN_ENDS] + 8 * (size_t)i);
        w->last_end = w->group_start + w->group_ends[i];
    }
    return TOKMAP_OK;
}

tokmap_status tokmap_i_index_writer_check(tokmap_i_index_writer *w, uint64_t ends_checksum,
                                          tokmap_error *err)
{
    const uint64_t n_bytes = w->n_documents / TOKMAP_I_GROUP_DOCUMENTS * TOKMAP_I_GROUP_BYTES;
    w->written = documents_start(w) + n_bytes;
    uint8_t *piece = malloc(TOKMAP_I_READ_BACK_BYTES);
    if (!piece)
        return FAIL_MEMORY(err);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t at = 0; !status && at < n_bytes; at += TOKMAP_I_READ_BACK_BYTES) {
        const size_t n = (size_t)MIN(n_bytes - at, TOKMAP_I_READ_BACK_BYTES);
        status = tokmap_i_index_writer_read_back(w, at, piece, n, err);
        if (!status)
            tokmap_i_hasher_add(w->hasher, piece, n);
    }
    free(piece);
    if (status != TOKMAP_ERR_CORRUPT && (status || tokmap_i_hasher_get(w->hasher) == ends_checksum))
        return status;
    return FAIL(err, TOKMAP_ERR_CORRUPT, "%s: does not match its journal" TOKMAP_I_CANNOT_RESUME,
                w->path);
}

tokmap_status tokmap_i_index_writer_cut(tokmap_i_index_writer *w, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_file_resize(w->fd, w->written), "%s: cannot shorten", w->path);
}

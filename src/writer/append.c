/* SPDX-License-Identifier: Apache-2.0 */
/* append.c - adds whole datasets to the output of a writer: merging copies their tokens, joining
 * leaves them where they are. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/le.h"
#include "base/options.h"
#include "base/token_scan.h"
#include "dataset/token_files.h"
#include "system/platform.h"
#include "writer/writer.h"

#define SHOWN_BYTES 150 /* length of a name in a message */
#define REPORTED_DOCUMENTS 65536

static tokmap_status check_fit(const tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_header *h = &a->ds->header;
    const tokmap_writer *w = a->w;
    if (h->token_bytes != w->header.token_bytes)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has tokens of %" PRIu32 " bytes, but the output has tokens of %" PRIu32,
                    a->ds->token_path, h->token_bytes, w->header.token_bytes);
    if (w->header.vocab_size > 0 && h->n_tokens > 0 && h->largest_id >= w->header.vocab_size)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has id %" PRIu32 ", but the vocabulary size of the output is %" PRIu64,
                    a->ds->token_path, h->largest_id, w->header.vocab_size);
    if (h->n_tokens > 0 && h->n_documents == 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: its document boundaries are not known",
                    a->ds->token_path);
    if (a->ds->spans.n_spans > 0 && !w->index->has_spans && w->index->n_documents > 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has spans, but the output was opened without has_spans",
                    a->ds->index_path);
    if (w->index->last_end != w->n_tokens || (w->meta && w->meta->has_row) || w->spans.n_bytes > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: a document is still open", w->names.token_path);
    if (h->n_tokens > TOKMAP_I_MAX_TOKENS - w->n_tokens)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: more than 2^48 tokens", w->names.token_path);
    return TOKMAP_OK;
}

/* Reads and checks a section; the caller frees it. */
static tokmap_status load_section(tokmap_i_append *a, const tokmap_i_section *section,
                                  uint8_t **out, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_index_reader_checksum(&a->reader, section, err);
    return status ? status : tokmap_i_index_reader_load(&a->reader, section, out, err);
}

tokmap_status tokmap_i_append_open(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&a->ds->header, TOKMAP_I_CHECKSUMS);
    a->reader.file.fd = -1;
    a->checksums_bytes = section->n_bytes;
    a->first_document = a->w->index->n_documents;
    a->first_token = a->w->n_tokens;
    tokmap_status status = check_fit(a, err);
    if (!status && (a->ds->spans.bytes || a->redacted) && a->w->index->n_documents == 0)
        a->w->index->has_spans = true;
    if (!status)
        status = tokmap_i_writer_fit_columns(a->w, a->ds, err);
    if (!status)
        status = tokmap_i_index_reader_open(&a->reader, a->ds, err);
    return status ? status : load_section(a, section, &a->checksums, err);
}

void tokmap_i_append_close(tokmap_i_append *a)
{
    tokmap_i_index_reader_close(&a->reader);
    free(a->checksums);
    free((void *)a->spans.bytes);
}

tokmap_status tokmap_i_append_read_block(const tokmap_dataset *ds, uint64_t block,
                                         uint64_t checksum, uint8_t *dst, tokmap_error *err)
{
    const tokmap_i_token_piece piece = tokmap_i_block_piece(ds, block);
    const tokmap_status status = tokmap_i_token_piece_read(ds, &piece, dst, err);
    if (status || tokmap_i_checksum(dst, (size_t)piece.n_bytes) == checksum)
        return status;
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, piece.first_byte,
                   "%s: damaged: block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64
                   ") does not match its checksum",
                   piece.file->path, block, piece.first_byte, piece.first_byte + piece.n_bytes - 1);
}

/* ---- Documents, spans and inputs ---- */

/* Reads the next span of the dataset. */
static tokmap_status next_span(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_spans_next(&a->span_at, &a->next);
    a->has_next = !status;
    return !status || status == TOKMAP_END
               ? TOKMAP_OK
               : tokmap_i_fail_damaged(
                     a->ds, tokmap_i_section_find(&a->ds->header, TOKMAP_I_SPANS)->offset,
                     "its spans are not in order", err);
}

static tokmap_status open_spans(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&a->ds->header, TOKMAP_I_SPANS);
    if (a->ds->spans.n_spans == 0)
        return TOKMAP_OK;
    uint8_t *bytes = NULL;
    const tokmap_status status = load_section(a, section, &bytes, err);
    a->spans = a->ds->spans;
    a->spans.bytes = bytes;
    a->span_at = (tokmap_i_span_cursor){.spans = &a->spans, .page = TOKMAP_I_BEFORE_SPANS};
    return status ? status : next_span(a, err);
}

/* Adds the tokens [first, end) of the document that ends next, unless there are none. */
static tokmap_status add_span(tokmap_i_append *a, uint64_t first, uint64_t end,
                              tokmap_span_role role, tokmap_error *err)
{
    const tokmap_span span = {first, end - first, role};
    return first < end ? tokmap_i_writer_add_span(a->w, &span, err) : TOKMAP_OK;
}

/* Adds the spans of the document that ends next, at this token of the dataset. All tokens of a
 * redacted document are in spans. */
static tokmap_status add_spans(tokmap_i_append *a, uint64_t end, tokmap_error *err)
{
    const uint64_t begin = a->w->index->last_end - a->first_token;
    const bool is_redacted =
        a->redacted && a->w->index->n_documents - a->first_document == *a->redacted;
    uint64_t done = 0; /* tokens of the document so far */
    tokmap_status status = TOKMAP_OK;
    while (a->has_next && a->next.first_token < end && !status) {
        const uint64_t first = a->next.first_token - begin;
        tokmap_span_role role = a->next.role;
        if (a->next.first_token < begin || a->next.n_tokens > end - a->next.first_token)
            return tokmap_i_fail_damaged(a->ds, 0, "a span is not inside a document", err);
        if (is_redacted)
            role = role == TOKMAP_SPAN_REDACTED || tokmap_i_role_counts(role)
                       ? TOKMAP_SPAN_REDACTED
                       : TOKMAP_SPAN_REDACTED_PROMPT;
        if (is_redacted)
            status = add_span(a, done, first, TOKMAP_SPAN_REDACTED, err);
        done = first + a->next.n_tokens;
        if (!status)
            status = add_span(a, first, done, role, err);
        if (!status)
            status = next_span(a, err);
    }
    if (is_redacted && !status)
        status = add_span(a, done, end - begin, TOKMAP_SPAN_REDACTED, err);
    if (is_redacted) /* else there may be no list */
        a->redacted++;
    return status ? status : tokmap_i_writer_end_spans(a->w, a->first_token + end, err);
}

/* Ends documents, in place of tokmap_i_writer_document: their values are added all at once. */
static tokmap_status add_ends(void *context, const uint64_t *ends, uint32_t n_ends,
                              tokmap_error *err)
{
    tokmap_i_append *a = context;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; !status && i < n_ends; i++) {
        status = add_spans(a, ends[i], err);
        if (!status)
            status = tokmap_i_index_writer_document(a->w->index, a->first_token + ends[i], err);
    }
    const uint64_t n_new = a->w->index->n_documents - a->first_document - a->n_reported;
    if (status || (n_new < REPORTED_DOCUMENTS && a->n_reported + n_new < a->ds->header.n_documents))
        return status;
    a->n_reported += n_new;
    return tokmap_i_progress_add(&a->progress, 8 * n_new, err);
}

static tokmap_status add_input(tokmap_i_append *a, const tokmap_input_info *info, tokmap_error *err)
{
    tokmap_writer *w = a->w;
    const tokmap_i_new_input input = {
        .name = info->name,
        .name_bytes = info->name_bytes,
        .entry.end_document = a->first_document + info->first_document + info->n_documents,
        .entry.end_token = a->first_token + info->first_token + info->n_tokens,
        .entry.input_bytes = info->input_bytes,
        .entry.input_checksum = info->input_checksum,
    };
    if (!a->continues_input)
        return tokmap_i_index_writer_input(w->index, &input, err);
    a->continues_input = false;
    tokmap_i_new_input last;
    if (!tokmap_i_index_writer_last_input(w->index, &last))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: there is no input that could continue",
                    w->names.index_path);
    if (last.name_bytes != input.name_bytes || memcmp(last.name, input.name, last.name_bytes) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: the input '%.*s' is not the rest of '%.*s'",
                    w->names.index_path, (int)MIN(input.name_bytes, SHOWN_BYTES), input.name,
                    (int)MIN(last.name_bytes, SHOWN_BYTES), last.name);
    tokmap_i_index_writer_extend_input(w->index, &input);
    return TOKMAP_OK;
}

/* Adds the inputs. A dataset that names no input files still gets an entry, if it has documents,
 * because the table must cover them. So do earlier documents without an input: they would otherwise
 * count as part of its first input. */
static tokmap_status append_inputs(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_header *h = &a->ds->header;
    const tokmap_i_section *section = tokmap_i_section_find(h, TOKMAP_I_INPUTS);
    const tokmap_input_info unnamed_before = {.name = ""};
    const tokmap_input_info unnamed = {
        .name = "", .n_documents = h->n_documents, .n_tokens = h->n_tokens};
    tokmap_i_inputs inputs = a->ds->inputs;
    tokmap_i_new_input last;
    uint8_t *bytes = NULL;
    tokmap_status status = load_section(a, section, &bytes, err);
    if (status)
        return status;
    inputs.bytes = bytes;
    const char *problem = tokmap_i_inputs_check(&inputs);
    if (problem)
        status = tokmap_i_fail_damaged(a->ds, section->offset, problem, err);
    tokmap_i_index_writer_last_input(a->w->index, &last);
    if (!status && last.entry.end_document < a->first_document)
        status = add_input(a, &unnamed_before, err);
    for (uint64_t i = 0; !status && i < inputs.n_inputs; i++) {
        tokmap_input_info input;
        status = tokmap_i_inputs_get(&inputs, i, &input);
        if (!status)
            status = add_input(a, &input, err);
    }
    if (!status && inputs.n_inputs == 0 && h->n_documents + h->n_tokens > 0 && !a->redacted)
        status = add_input(a, &unnamed, err);
    free(bytes);
    return status;
}

tokmap_status tokmap_i_append_index(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&a->ds->header, TOKMAP_I_DOCUMENTS);
    tokmap_status status = tokmap_i_writer_append_values(a->w, &a->reader, a->redacted, err);
    if (!status)
        status = open_spans(a, err);
    if (!status)
        status = tokmap_i_index_reader_checksum(&a->reader, section, err);
    if (!status)
        status = tokmap_i_index_reader_documents(&a->reader, add_ends, a, err);
    if (!status && a->has_next)
        status = tokmap_i_fail_damaged(a->ds, 0, "a span is not inside a document", err);
    return status ? status : append_inputs(a, err);
}

/* ---- Merging ---- */

/* Whether the file system copied the block itself (by sharing blocks on XFS and btrfs, on the
 * server with NFS): then it need not be written. The tokens are always read and checked. */
static bool copy_block(tokmap_i_append *a, const tokmap_i_token_piece *block, uint64_t to_byte)
{
    tokmap_i_named_file from;
    if (a->cannot_copy || tokmap_i_token_file_borrow(a->ds, block->file, &from, NULL))
        return false;
    const tokmap_i_copy copy = {from.fd, a->w->token_fd, block->first_byte, to_byte,
                                block->n_bytes};
    a->cannot_copy = tokmap_i_file_copy(&copy) != 0;
    tokmap_i_token_file_give_back(block->file, &from);
    return !a->cannot_copy;
}

static tokmap_status append_block(tokmap_i_append *a, uint64_t block_index, tokmap_error *err)
{
    const tokmap_i_header *h = &a->ds->header;
    tokmap_writer *w = a->w;
    const tokmap_i_token_piece block = tokmap_i_block_piece(a->ds, block_index);
    tokmap_status status = tokmap_i_append_read_block(
        a->ds, block_index, le_get64(a->checksums + 8 * block_index), w->buffer, err);
    if (status)
        return status;
    const uint32_t largest = tokmap_i_largest_id(w->buffer, (size_t)block.n_tokens, h->token_bytes);
    if (largest > h->largest_id)
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, block.first_byte,
                       "%s: damaged: block %" PRIu64 " has id %" PRIu32
                       ", above the largest id in its header",
                       block.file->path, block_index, largest);
    w->header.largest_id = MAX(w->header.largest_id, largest);
    const uint64_t to_byte = w->n_tokens * w->header.token_bytes;
    if (!copy_block(a, &block, to_byte))
        status = CHECK_IO_AT(
            err, tokmap_i_file_write(w->token_fd, w->buffer, (size_t)block.n_bytes, to_byte),
            to_byte, "%s: cannot write", w->names.token_partial);
    if (!status)
        status = tokmap_i_writer_hash(w, w->buffer, (size_t)block.n_bytes, err);
    w->n_tokens += block.n_tokens;
    return status ? status : tokmap_i_progress_add(&a->progress, block.n_bytes, err);
}

tokmap_status tokmap_writer_append_dataset(tokmap_writer *w, const tokmap_dataset *ds,
                                           tokmap_error *err)
{
    tokmap_status status = tokmap_i_writer_enter(w, ds, TOKMAP_I_OUTPUT_NEW, __func__, err);
    if (status)
        return status;
    const tokmap_i_header *h = &ds->header;
    tokmap_i_append a = {
        .w = w,
        .ds = ds,
        .progress = tokmap_i_writer_progress(w, h->n_tokens * h->token_bytes, h->n_documents)};
    status = tokmap_i_append_open(&a, &w->failure);
    if (!status)
        status = tokmap_i_writer_flush(w, &w->failure);
    const tokmap_i_content_hash *now = &w->header.tokens_hash;
    tokmap_i_content_hash expected = *now;
    tokmap_i_content_hash_join(&expected, &ds->header.tokens_hash);
    for (uint64_t i = 0; !status && i < a.checksums_bytes / 8; i++)
        status = append_block(&a, i, &w->failure);
    if (!status && memcmp(now->crc, expected.crc, sizeof now->crc) != 0)
        status = tokmap_i_fail_damaged(ds, 0, TOKMAP_I_WRONG_TOKENS_HASH, &w->failure);
    if (!status)
        status = tokmap_i_append_index(&a, &w->failure);
    tokmap_i_append_close(&a);
    return tokmap_i_writer_leave(w, status, err);
}

/* ---- Joining ---- */

tokmap_status tokmap_i_append_segment(tokmap_writer *w, const tokmap_i_token_file *file,
                                      tokmap_error *err)
{
    char *name;
    tokmap_status status = tokmap_i_relative_path_name(&w->paths, file->path, &name, err);
    if (status)
        return status;
    w->n_tokens += file->n_tokens;
    /* The output may be about to replace the dataset, and would take its tokens. */
    if (strcmp(name, name_in_path(w->names.bin_path)) == 0)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "%s: has the name of the output, and would be removed; give the output "
                      "another one",
                      w->names.bin_path);
    if (!status)
        status =
            tokmap_i_index_writer_segment(w->index, name, w->n_tokens, file->token_offset, err);
    free(name);
    return status;
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
    if (status)
        return tokmap_i_writer_leave(w, status, err);
    tokmap_i_append a = {.w = w,
                         .ds = ds,
                         .continues_input = o.continues_input != 0,
                         .progress = tokmap_i_writer_progress(w, 0, ds->header.n_documents)};
    status = tokmap_i_append_open(&a, &w->failure);
    /* The caller makes the metadata of the whole from the metadata of the parts; opening a dataset
     * does not check it. */
    if (!status)
        status = tokmap_i_index_reader_checksum(
            &a.reader, tokmap_i_section_find(&ds->header, TOKMAP_I_METADATA), &w->failure);
    for (uint64_t i = 0; !status && i < ds->n_files; i++)
        if (ds->files[i].n_tokens > 0)
            status = tokmap_i_append_segment(w, &ds->files[i], &w->failure);
    if (!status)
        status = tokmap_i_index_writer_blocks(w->index, a.checksums, (size_t)a.checksums_bytes,
                                              &w->failure);
    if (!status) {
        tokmap_i_content_hash_join(&w->header.tokens_hash, &ds->header.tokens_hash);
        w->header.largest_id = MAX(w->header.largest_id, ds->header.largest_id);
        status = tokmap_i_append_index(&a, &w->failure);
    }
    tokmap_i_append_close(&a);
    return tokmap_i_writer_leave(w, status, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* append_index.c - adds what the index of a dataset says to the output of a writer. */
#include "writer/writer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/status.h"

enum {
    SHOWN_BYTES = 150 /* of a name in a message */
};

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
    if (tokmap_i_index_writer_last_end(w->index) != w->n_tokens || (w->meta && w->meta->has_row))
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
    a->reader.fd = -1;
    a->checksums_bytes = section->n_bytes;
    a->first_document = tokmap_i_index_writer_n_documents(a->w->index);
    a->first_token = a->w->n_tokens;
    tokmap_status status = check_fit(a, err);
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
}

tokmap_status tokmap_i_fail_tokens_hash(const tokmap_dataset *ds, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_CORRUPT,
                "%s: damaged: the hash of the tokens in its header is not theirs", ds->index_path);
}

/* ---- Documents and inputs ---- */

static tokmap_status add_ends(void *context, const uint64_t *ends, uint32_t n_ends,
                              tokmap_error *err)
{
    tokmap_i_append *a = context;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; !status && i < n_ends; i++)
        status = tokmap_i_index_writer_document(a->w->index, a->first_token + ends[i], err);
    return status;
}

static tokmap_status add_input(tokmap_i_append *a, const tokmap_input_info *info, tokmap_error *err)
{
    tokmap_writer *w = a->w;
    const tokmap_i_new_input input = {
        .name = info->name,
        .name_bytes = info->name_bytes,
        .end_document = a->first_document + info->first_document + info->n_documents,
        .end_token = a->first_token + info->first_token + info->n_tokens,
        .input_bytes = info->input_bytes,
        .input_checksum = info->input_checksum,
    };
    if (!a->continues_input)
        return tokmap_i_writer_input(w, &input, err);
    a->continues_input = false;
    size_t name_bytes;
    const char *name = tokmap_i_index_writer_last_input(w->index, &name_bytes);
    if (!name)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: there is no input that could continue",
                    w->names.index_path);
    if (name_bytes != input.name_bytes || memcmp(name, input.name, name_bytes) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: the input '%.*s' is not the rest of '%.*s'",
                    w->names.index_path, (int)MIN(input.name_bytes, SHOWN_BYTES), input.name,
                    (int)MIN(name_bytes, SHOWN_BYTES), name);
    w->input_end_document = input.end_document;
    w->input_end_token = input.end_token;
    tokmap_i_index_writer_extend_input(w->index, &input);
    return TOKMAP_OK;
}

/* A dataset that names no input files still gets an entry, because the table must cover its
 * documents. So do documents before it that have none: they would otherwise count as part of its
 * first input. */
static tokmap_status append_inputs(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_header *h = &a->ds->header;
    const tokmap_i_section *section = tokmap_i_section_find(h, TOKMAP_I_INPUTS);
    const tokmap_input_info unnamed_before = {.name = ""};
    const tokmap_input_info unnamed = {
        .name = "", .n_documents = h->n_documents, .n_tokens = h->n_tokens};
    tokmap_i_inputs inputs = a->ds->inputs;
    uint8_t *bytes = NULL;
    tokmap_status status = load_section(a, section, &bytes, err);
    if (status)
        return status;
    inputs.bytes = bytes;
    const char *problem = tokmap_i_inputs_check(&inputs);
    if (problem)
        status = tokmap_i_fail_damaged(a->ds, section->offset, problem, err);
    if (!status && a->w->input_end_document < a->first_document)
        status = add_input(a, &unnamed_before, err);
    for (uint64_t i = 0; !status && i < inputs.n_inputs; i++) {
        tokmap_input_info input;
        status = tokmap_i_inputs_get(&inputs, i, &input);
        if (!status)
            status = add_input(a, &input, err);
    }
    if (!status && inputs.n_inputs == 0)
        status = add_input(a, &unnamed, err);
    free(bytes);
    return status;
}

tokmap_status tokmap_i_append_index(tokmap_i_append *a, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&a->ds->header, TOKMAP_I_DOCUMENTS);
    tokmap_status status = tokmap_i_writer_append_values(a->w, a->ds, err);
    if (!status)
        status = tokmap_i_index_reader_checksum(&a->reader, section, err);
    if (!status)
        status = tokmap_i_index_reader_documents(&a->reader, add_ends, a, err);
    return status ? status : append_inputs(a, err);
}

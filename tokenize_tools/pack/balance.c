/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/balance.h"

#include "cli/cli.h"

/* Compares one pair of counts. */
static int compare_counts(const char *what, uint64_t in, uint64_t out, pack_error *err)
{
    if (in == out)
        return CLI_OK;
    pack_error_set(err, CLI_DATASET,
                   "%s: %s came in and %s went out: data was lost or duplicated, so nothing is "
                   "published; this is a bug in tokmap or an error of this machine's memory or "
                   "disk; please report it",
                   what, cli_count(in).s, cli_count(out).s);
    err->start_over = true;
    return CLI_DATASET;
}

static int check_inputs(const pack_balance *b, pack_error *err)
{
    /* The input in which a limit was reached was not read to its end. */
    const uint64_t n_whole = b->packed->input - b->limited;
    uint64_t n_bytes = 0;
    int code =
        b->limited ? CLI_OK : compare_counts("inputs", b->read->input, b->packed->input, err);
    for (uint64_t i = 0; i < n_whole && code == CLI_OK; i++)
        n_bytes += b->inputs->versions[i].n_bytes;
    return code == CLI_OK
               ? compare_counts("bytes of the input files", n_bytes, b->packed->file_bytes, err)
               : code;
}

static int check_documents(const pack_balance *b, pack_error *err)
{
    const corpus_counts *read = &b->read->counts;
    const pack_position *packed = b->packed;
    /* A document with a special token counts as left out from that token on, but as read only at
     * its end. */
    const uint64_t n_left_out = packed->special_documents - packed->dropped;
    int code = compare_counts("records", read->records,
                              read->documents + read->bad_documents + read->null_documents +
                                  read->filtered_documents,
                              err);
    if (code == CLI_OK)
        code = compare_counts("documents", read->documents, packed->documents + n_left_out, err);
    if (code == CLI_OK)
        code = compare_counts("bytes of text", read->text_bytes, packed->text_bytes, err);
    if (code == CLI_OK)
        code = compare_counts("tokens", b->encoded_tokens, packed->tokens + packed->special_tokens,
                              err);
    if (code == CLI_OK && b->collected)
        code = compare_counts("bytes of bad documents", read->bad_bytes + read->bad_documents,
                              b->collected_bytes, err); /* each document has a newline */
    return code;
}

static int check_outputs(const pack_balance *b, pack_error *err)
{
    uint64_t n_documents = 0, n_tokens = 0;
    int code = CLI_OK;
    for (size_t i = 0; i < b->outputs->n && code == CLI_OK; i++) {
        const pack_output *out = &b->outputs->list[i];
        n_documents += out->documents;
        n_tokens += out->tokens;
        if (!out->writer) /* it has its name already, and was compared when it was opened */
            continue;
        code = compare_counts("documents of an output", out->documents,
                              tokmap_writer_n_documents(out->writer), err);
        if (code == CLI_OK)
            code = compare_counts("tokens of an output", out->tokens,
                                  tokmap_writer_n_tokens(out->writer), err);
    }
    if (code == CLI_OK)
        code = compare_counts("documents for the outputs", b->packed->documents, n_documents, err);
    return code == CLI_OK
               ? compare_counts("tokens for the outputs", b->packed->tokens, n_tokens, err)
               : code;
}

int pack_balance_check(const pack_balance *b, pack_error *err)
{
    int code = check_inputs(b, err);
    if (code == CLI_OK)
        code = check_documents(b, err);
    return code == CLI_OK ? check_outputs(b, err) : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign/megatron_index.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "base/le.h"

/* The tables of an index: lengths, starts in bytes, and the numbers 0 to n. */
#define INDEX_BUFFER_BYTES (1 << 16)

typedef struct table_writer {
    output_file *out;
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    bool skip_empty;
    size_t filled;
    uint8_t buffer[INDEX_BUFFER_BYTES];
} table_writer;

static int flush_buffer(table_writer *w)
{
    int code = output_write(w->out, w->buffer, w->filled);
    w->filled = 0;
    return code;
}

/* Writes the lowest n_bytes of value, little-endian. */
static int put_number(table_writer *w, uint64_t value, size_t n_bytes)
{
    int code = w->filled + n_bytes > INDEX_BUFFER_BYTES ? flush_buffer(w) : CLI_OK;
    le_put(w->buffer + w->filled, value, n_bytes);
    w->filled += n_bytes;
    return code;
}

/* Reads a document. The index was not verified when it was opened, so each must begin where the one
 * before ended. */
static int get_document(const table_writer *w, uint64_t index, uint64_t begin,
                        tokmap_document *document)
{
    tokmap_status status = tokmap_dataset_document(w->ds, index, document);
    uint64_t left = w->info.n_tokens - begin;
    bool is_last = index + 1 == w->info.n_documents;
    if (status != TOKMAP_OK || document->first_token != begin || document->n_tokens > left ||
        (is_last && document->n_tokens != left)) {
        return cli_error(CLI_DATASET,
                         "%s: damaged at document %" PRIu64 "; run tokmap verify for details",
                         w->info.index_path, index);
    }
    if (document->n_tokens > INT32_MAX)
        return cli_error(CLI_DATASET,
                         "%s: document %" PRIu64 " has %s tokens; Megatron's index holds at most "
                         "2,147,483,647 a document",
                         w->info.index_path, index, cli_count(document->n_tokens).s);
    return CLI_OK;
}

enum {
    COUNT_SEQUENCES, /* writes nothing */
    PUT_LENGTHS,
    PUT_STARTS,
    PUT_DOCUMENTS
};

static int put_table(table_writer *w, int table, uint64_t *n_sequences)
{
    uint64_t begin = 0, n = 0;
    int code = table == PUT_DOCUMENTS ? put_number(w, 0, 8) : CLI_OK;
    for (uint64_t i = 0; code == CLI_OK && i < w->info.n_documents; i++) {
        tokmap_document document = {0};
        code = get_document(w, i, begin, &document);
        const bool has_sequence = document.n_tokens > 0 || !w->skip_empty;
        n += has_sequence;
        if (code == CLI_OK && table == PUT_DOCUMENTS)
            code = put_number(w, n, 8);
        else if (code == CLI_OK && has_sequence && table != COUNT_SEQUENCES)
            code = table == PUT_LENGTHS ? put_number(w, document.n_tokens, 4)
                                        : put_number(w, begin * w->info.token_bytes, 8);
        begin += document.n_tokens;
    }
    *n_sequences = n;
    return code;
}

int megatron_index_write(output_file *out, const tokmap_dataset *ds, bool skip_empty)
{
    static const uint8_t magic[9] = "MMIDIDX\0";
    uint64_t n_sequences;
    table_writer *w = malloc(sizeof *w);
    if (!w)
        return cli_no_memory();
    w->out = out;
    w->ds = ds;
    w->skip_empty = skip_empty;
    w->filled = 0;
    w->info = cli_dataset_info(ds);
    int code = put_table(w, COUNT_SEQUENCES, &n_sequences);
    for (size_t i = 0; i < sizeof magic; i++)
        put_number(w, magic[i], 1);
    put_number(w, 1, 8);
    put_number(w, w->info.token_bytes == 2 ? 8 : 4, 1);
    put_number(w, n_sequences, 8);
    put_number(w, w->info.n_documents + 1, 8);
    for (int table = PUT_LENGTHS; code == CLI_OK && table <= PUT_DOCUMENTS; table++)
        code = put_table(w, table, &n_sequences);
    if (code == CLI_OK)
        code = flush_buffer(w);
    free(w);
    return code;
}

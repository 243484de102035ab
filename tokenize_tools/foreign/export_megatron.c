/* SPDX-License-Identifier: Apache-2.0 */
/* export_megatron.c - writes the three tables of documents: lengths, starts in bytes, and the
 * numbers 0 to n. megatron.c describes the layout. */
#include "foreign/export_megatron.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text/little_endian.h"

enum {
    BUFFER_BYTES = 1 << 16
};

typedef struct table_writer {
    output_file *out;
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    size_t filled;
    uint8_t buffer[BUFFER_BYTES];
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
    int code = w->filled + n_bytes > BUFFER_BYTES ? flush_buffer(w) : CLI_OK;
    le_put(w->buffer + w->filled, value, n_bytes);
    w->filled += n_bytes;
    return code;
}

static int put_header(table_writer *w)
{
    static const uint8_t magic[9] = "MMIDIDX\0";
    for (size_t i = 0; i < sizeof magic; i++)
        put_number(w, magic[i], 1);
    put_number(w, 1, 8);
    put_number(w, w->info.token_bytes == 2 ? 8 : 4, 1);
    put_number(w, w->info.n_documents, 8);
    return put_number(w, w->info.n_documents + 1, 8);
}

/* The contents of the index were not checked at open: each document must begin where the one before
 * ended. */
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
    if (document->n_tokens > INT32_MAX) {
        return cli_error(CLI_DATASET,
                         "%s: document %" PRIu64 " has %s tokens; Megatron's index holds at most "
                         "2,147,483,647 a document",
                         w->info.index_path, index, cli_count(document->n_tokens).s);
    }
    return CLI_OK;
}

static int put_lengths(table_writer *w)
{
    uint64_t begin = 0;
    for (uint64_t i = 0; i < w->info.n_documents; i++) {
        tokmap_document document;
        int code = get_document(w, i, begin, &document);
        if (code == CLI_OK)
            code = put_number(w, document.n_tokens, 4);
        if (code != CLI_OK)
            return code;
        begin += document.n_tokens;
    }
    return CLI_OK;
}

static int put_starts(table_writer *w)
{
    uint64_t begin = 0;
    for (uint64_t i = 0; i < w->info.n_documents; i++) {
        tokmap_document document;
        int code = get_document(w, i, begin, &document);
        if (code == CLI_OK)
            code = put_number(w, begin * w->info.token_bytes, 8);
        if (code != CLI_OK)
            return code;
        begin += document.n_tokens;
    }
    return CLI_OK;
}

static int put_numbers(table_writer *w)
{
    int code = CLI_OK;
    for (uint64_t i = 0; code == CLI_OK && i <= w->info.n_documents; i++)
        code = put_number(w, i, 8);
    return code;
}

int write_megatron_index(output_file *out, const tokmap_dataset *ds)
{
    table_writer *w = malloc(sizeof *w);
    if (!w)
        return cli_no_memory();
    w->out = out;
    w->ds = ds;
    w->filled = 0;
    w->info = (tokmap_dataset_info){.struct_size = sizeof w->info};
    tokmap_dataset_get_info(ds, &w->info);
    int code = put_header(w);
    if (code == CLI_OK)
        code = put_lengths(w);
    if (code == CLI_OK)
        code = put_starts(w);
    if (code == CLI_OK)
        code = put_numbers(w);
    if (code == CLI_OK)
        code = flush_buffer(w);
    free(w);
    return code;
}

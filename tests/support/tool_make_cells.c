/* SPDX-License-Identifier: Apache-2.0 */
/* tool_make_cells - writes the datasets of the cells of a plan, fast: tool_make_cells HASH FOLDER
 * N_CELLS N_DOCUMENTS N_TOKENS. Each cell has that many documents of that many generated tokens,
 * from one input that all cells share. HASH: the checksum of the plan, 16 hex digits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokmap_writer.h"

static const char head[] = "{\"created_by\": \"tool_make_cells\", \"tokenizer\": {\"name\": "
                           "\"bytes\"}, \"options\": {}";

typedef struct maker {
    const char *hash, *folder;
    uint64_t n_documents, n_tokens;
    uint32_t *ids; /* n_tokens */
} maker;

static tokmap_status write_documents(const maker *m, tokmap_writer *w, uint64_t cell,
                                     tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < m->n_documents && !status; i++) {
        for (uint64_t k = 0; k < m->n_tokens; k++)
            m->ids[k] =
                (uint32_t)(((cell * m->n_documents + i + k) * UINT64_C(0x9E3779B97F4A7C15)) >> 56);
        status = tokmap_writer_append(w, m->ids, (size_t)m->n_tokens, err);
        if (!status)
            status = tokmap_writer_end_document(w, err);
    }
    return status;
}

static tokmap_status write_cell(const maker *m, uint64_t cell, tokmap_error *err)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 257, .has_eod = 1, .eod_id = 256};
    char path[4096], json[512];
    tokmap_writer *w = NULL;
    snprintf(path, sizeof path, "%s/%06" PRIu64, m->folder, cell);
    const int n = snprintf(json, sizeof json,
                           "%s, \"counts\": {\"records\": %" PRIu64 ", \"bad_documents\": 0}, "
                           "\"plan\": {\"hash\": \"%s\", \"cell\": %" PRIu64 "}}",
                           head, m->n_documents, m->hash, cell);
    tokmap_status status = tokmap_writer_open(&w, path, &options, err);
    if (!status)
        status = write_documents(m, w, cell, err);
    if (!status)
        status = tokmap_writer_end_input(w, "all.jsonl", UINT64_C(1) << 40, 0, err);
    if (!status)
        status = tokmap_writer_set_metadata(w, json, (size_t)n, err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    maker m = {argv[1], argv[2], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10), NULL};
    tokmap_error err = {0};
    tokmap_status status = TOKMAP_OK;
    m.ids = malloc((size_t)m.n_tokens * sizeof *m.ids + 1);
    for (uint64_t cell = 0; m.ids && !status && cell < strtoull(argv[3], NULL, 10); cell++)
        status = write_cell(&m, cell, &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    free(m.ids);
    return status || !m.ids ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_make_cells - writes the datasets of the cells of a plan, fast: tool_make_cells PLAN
 * N_DOCUMENTS N_TOKENS. Each cell has that many documents of that many generated tokens, from one
 * input that all cells share. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/cell_metadata.h"
#include "plan/plan_file.h"
#include "tokmap_writer.h"

static const char head[] = "{\"created_by\": \"tool_make_cells\", \"tokenizer\": {\"name\": "
                           "\"bytes\"}, \"options\": {}";

typedef struct maker {
    plan_file plan;
    uint64_t n_documents, n_tokens;
    uint32_t *ids; /* n_tokens */
} maker;

static tokmap_status write_documents(const maker *m, tokmap_writer *w, size_t cell,
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

static tokmap_status write_cell(const maker *m, size_t cell, tokmap_error *err)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 257, .has_eod = 1, .eod_id = 256};
    const cell_metadata of = {
        .hash = m->plan.cells[cell].hash, .cell = cell, .origin = m->plan.origin};
    char json[512];
    tokmap_writer *w = NULL;
    const path_text path = plan_file_cell_path(&m->plan, cell, "", "");
    const int n = snprintf(json, sizeof json,
                           "%s, \"counts\": {\"records\": %" PRIu64 ", \"bad_documents\": 0}%s}",
                           head, m->n_documents, cell_metadata_plan(&of).s);
    tokmap_status status = tokmap_writer_open(&w, path.s, &options, err);
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
    if (argc != 4)
        return 2;
    maker m = {.n_documents = strtoull(argv[2], NULL, 10), .n_tokens = strtoull(argv[3], NULL, 10)};
    tokmap_error err = {0};
    tokmap_status status = TOKMAP_OK;
    m.ids = malloc((size_t)m.n_tokens * sizeof *m.ids + 1);
    const bool ok = m.ids && plan_read(&m.plan, argv[1]) == 0;
    for (size_t cell = 0; ok && !status && cell < m.plan.n_cells; cell++)
        status = write_cell(&m, cell, &err);
    if (status)
        fprintf(stderr, "%s\n", err.text);
    free(m.ids);
    plan_file_free(&m.plan);
    return status || !ok ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "system/memory_file.h"
#include "text/line_text.h"

void plan_file_free(plan_file *plan)
{
    free(plan->earlier);
    free(plan->options);
    free(plan->facts);
    free(plan->inputs);
    free(plan->cells);
    free(plan->memory);
    *plan = (plan_file){0};
}

#define LONGEST_CELL_NAME 64 /* a number, the name of a split, a suffix */

bool plan_file_folders_fit(const plan_file *plan)
{
    return strlen(plan->folder) + strlen(plan->cells_folder) + LONGEST_CELL_NAME <=
           PATH_PREFIX_BYTES;
}

const char *plan_file_option(const plan_file *plan, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < plan->n_options; i++) {
        if (strcmp(plan->options[i].name, name) == 0)
            value = plan->options[i].value;
    }
    return value;
}

/* ---- Print ---- */

static void put_value(FILE *out, const char *value)
{
    putc(' ', out);
    line_text_print(out, value, strlen(value));
}

static void put_line(FILE *out, const char *word, const char *value)
{
    fputs(word, out);
    put_value(out, value);
    putc('\n', out);
}

char *plan_file_print(plan_file *plan, size_t *n_bytes)
{
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return NULL;
    fprintf(out, "tokmap plan %d\n", plan->n_earlier ? 2 : 1);
    put_line(out, "folder", plan->folder);
    put_line(out, "cells", plan->cells_folder);
    fprintf(out, "cell-size %" PRIu64 "\n", plan->cell_bytes);
    for (size_t i = 0; i < plan->n_earlier; i++)
        fprintf(out, "earlier %016" PRIx64 "\n", plan->earlier[i]);
    for (size_t i = 0; i < plan->n_options; i++) {
        const plan_option *o = &plan->options[i];
        fprintf(out, "option %s", o->name);
        if (o->value)
            put_value(out, o->value);
        putc('\n', out);
    }
    for (size_t i = 0; i < plan->n_facts; i++)
        fprintf(out, "fact %s\n", plan->facts[i]);
    for (size_t i = 0; i < plan->n_inputs; i++) {
        const plan_input *in = &plan->inputs[i];
        fprintf(out, "input %" PRIu64 " %" PRIu64 " %s", in->n_bytes, in->mtime_ns, in->format);
        put_value(out, in->name);
        putc('\n', out);
    }
    for (size_t i = 0; i < plan->n_cells; i++) {
        const plan_cell *c = &plan->cells[i];
        fprintf(out, "cell %" PRIu64 " %" PRIu64 " %" PRIu64, c->input, c->offset, c->row);
        if (plan->n_earlier)
            fprintf(out, " %" PRIu64, c->since);
        putc('\n', out);
    }
    fflush(out);
    plan->hash = text.text ? XXH3_64bits(text.text, text.n_bytes) : 0;
    fprintf(out, "checksum %016" PRIx64 "\n", plan->hash);
    if (!memory_file_close(out, &text))
        return NULL;
    *n_bytes = text.n_bytes;
    return text.text;
}

/* ---- Cells ---- */

plan_part plan_file_part(const plan_file *plan, size_t cell)
{
    const plan_cell *begin = &plan->cells[cell];
    plan_part part = {.first_input = (size_t)begin->input,
                      .end_input = plan->n_inputs,
                      .begin_offset = begin->offset,
                      .begin_row = begin->row};
    if (cell + 1 == plan->n_cells)
        return part;
    const plan_cell *end = &plan->cells[cell + 1];
    part.end_input = (size_t)end->input + (end->offset > 0);
    part.end_offset = end->offset;
    part.end_row = end->row;
    return part;
}

uint64_t plan_file_cell_hash(const plan_file *plan, size_t cell)
{
    const uint64_t since = plan->cells[cell].since;
    return since < plan->n_earlier ? plan->earlier[since] : plan->hash;
}

uint64_t plan_file_cell_bytes(const plan_file *plan, size_t cell)
{
    const plan_part part = plan_file_part(plan, cell);
    uint64_t n_bytes = 0;
    for (size_t i = part.first_input; i < part.end_input; i++) {
        bool last = i + 1 == part.end_input && part.end_offset > 0;
        uint64_t begin = i == part.first_input ? part.begin_offset : 0;
        n_bytes += (last ? part.end_offset : plan->inputs[i].n_bytes) - begin;
    }
    return n_bytes;
}

void plan_file_cell_prefix(const plan_file *plan, size_t cell, const char *split,
                           char prefix[PATH_PREFIX_BYTES])
{
    /* The parser has checked the length of the folders. */
    bool absolute = *plan->cells_folder == '/';
    snprintf(prefix, PATH_PREFIX_BYTES, "%s%s%s/%06zu%s%.32s", absolute ? "" : plan->folder,
             absolute ? "" : "/", plan->cells_folder, cell, split ? "-" : "", split ? split : "");
}

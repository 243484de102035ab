/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/fields.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define ENOUGH_DOCUMENTS 10000 /* to have had a value of every field */

void pack_fields_free(pack_fields *f)
{
    for (size_t i = 0; i < FIELD_LIST_MAX; i++)
        free(f->why[i]);
}

static bool is_row(const pack_fields *f, size_t field)
{
    return strcmp(f->options->fields.names[field], FIELD_ROW) == 0;
}

static void warn_of_nulls(pack_fields *f)
{
    f->warned = true;
    for (size_t i = 0; i < f->options->input.n_kept && !f->options->quiet && !f->of_cell; i++) {
        if (!(*f->found >> i & 1) && !is_row(f, i))
            cli_warn("--meta: none of the first %s has a value for %s; if no input has this field, "
                     "the run fails at its end",
                     cli_count_of(ENOUGH_DOCUMENTS, "document").s, f->options->fields.names[i]);
    }
}

void pack_fields_see(pack_fields *f, const tokmap_value *values, uint64_t n_documents)
{
    const uint64_t all = f->options->input.may_lack;
    for (size_t i = 0; (*f->found & all) != all && i < f->options->input.n_kept; i++) {
        if (values[i].type != TOKMAP_VALUE_NULL)
            *f->found |= (uint64_t)1 << i;
    }
    if (!f->warned && n_documents >= ENOUGH_DOCUMENTS)
        warn_of_nulls(f);
}

void pack_fields_end_input(pack_fields *f, const corpus_end *end)
{
    const uint64_t lacking = end->lacking & f->options->input.may_lack & ~f->seen_before;
    f->seen_before = 0;
    if (!end->knows_fields)
        return;
    *f->found |= ~lacking & f->options->input.may_lack;
    *f->lacking |= lacking;
    for (size_t i = 0; i < f->options->input.n_kept; i++)
        f->n_lacking[i] += lacking >> i & 1;
    f->n_inputs++;
}

void pack_fields_keep(pack_fields *f, size_t field, const char *why)
{
    if (!f->why[field])
        f->why[field] = strdup(why);
}

int pack_fields_check(const pack_fields *f, pack_error *err)
{
    for (size_t i = 0; i < f->options->input.n_kept; i++) {
        if (*f->found >> i & 1 || !(*f->lacking >> i & 1))
            continue;
        pack_error_set(err, CLI_INPUT, "--meta: no input has values of the field %s%s%s",
                       f->options->fields.names[i], f->why[i] ? "; " : "",
                       f->why[i] ? f->why[i] : "");
        err->start_over = true;
        return CLI_INPUT;
    }
    return CLI_OK;
}

void pack_fields_note(const pack_fields *f)
{
    for (size_t i = 0; i < f->options->input.n_kept; i++) {
        if (f->n_lacking[i] > 0)
            cli_warn("--meta: %s of %s %s %s, whose values are null there%s%s",
                     cli_count(f->n_lacking[i]).s, cli_count_of(f->n_inputs, "input").s,
                     f->n_lacking[i] == 1 ? "lacks" : "lack", f->options->fields.names[i],
                     f->why[i] ? "; " : "", f->why[i] ? f->why[i] : "");
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_plan - parses plans, for tests in Python.
 *
 * stdin is plans, each with its length in 4 bytes before it. The answer to each is 0, or 1 and
 * what it says: the number of texts in 4 bytes, and the texts, each with its length in 4 bytes.
 * They are the two folders, the size of cells, the hash and the origin; for each option its name
 * and its value, or nothing; the fingerprint as one text; for each input its four values; for
 * each cell its three numbers, its hash and its prefix, also with the split "s". Numbers are
 * little-endian, and decimal in texts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan_file.h"
#include "support/pipes.h"

static void put_text(const char *text)
{
    put_bytes(text, strlen(text));
}

static void put_decimal(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    put_text(text);
}

static void put_cell(const plan_file *plan, size_t which)
{
    const plan_cell *c = &plan->cells[which];
    char hash[24];
    put_decimal(c->input);
    put_decimal(c->offset);
    put_decimal(c->row);
    snprintf(hash, sizeof hash, "%016" PRIx64, c->hash);
    put_text(hash);
    put_text(plan_file_cell_path(plan, which, "", "").s);
    put_text(plan_file_cell_path(plan, which, "s", "").s);
}

static void put_plan(const plan_file *plan)
{
    char hash[24];
    put_number(1, 1);
    put_number(6 + 2 * plan->n_options + 4 * plan->n_inputs + 6 * plan->n_cells, 4);
    put_text(plan->folder);
    put_text(plan->cells_folder);
    put_decimal(plan->cell_bytes);
    snprintf(hash, sizeof hash, "%016" PRIx64, plan->hash);
    put_text(hash);
    snprintf(hash, sizeof hash, "%016" PRIx64, plan->origin);
    put_text(hash);
    for (size_t i = 0; i < plan->n_options; i++) {
        put_text(plan->options[i].name);
        put_text(plan->options[i].value ? plan->options[i].value : "");
    }
    put_bytes(plan->fingerprint, plan->fingerprint_bytes);
    for (size_t i = 0; i < plan->n_inputs; i++) {
        put_decimal(plan->inputs[i].n_bytes);
        put_decimal(plan->inputs[i].mtime_ns);
        put_text(plan->inputs[i].format);
        put_text(plan->inputs[i].name);
    }
    for (size_t i = 0; i < plan->n_cells; i++)
        put_cell(plan, i);
}

int main(void)
{
    for (size_t n; get_length(&n);) {
        char *text = (char *)get_bytes(n, 0, 0);
        plan_file plan = {0};
        failure err;
        if (plan_file_parse(&plan, text, n, &err))
            put_plan(&plan);
        else
            put_number(0, 1);
        plan_file_free(&plan);
        free(text);
    }
    return 0;
}

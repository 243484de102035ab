/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/plan_update.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "corpus/cutter.h"
#include "pack/inputs.h"

typedef struct update_state {
    pack_plan_update *u;
    bool *changed; /* each input */
} update_state;

/* Finds the places of the cells that begin inside the input. */
static int move_cells(plan_file *plan, size_t which, corpus_cutter *cutter)
{
    for (size_t i = 0; i < plan->n_cells; i++) {
        plan_cell *c = &plan->cells[i];
        corpus_cut cut;
        corpus_error err;
        if (c->input != which || c->offset == 0)
            continue;
        const int found = corpus_cutter_next(cutter, c->offset, &cut, &err);
        if (found < 0)
            return cli_input_failed(err.sys_errno, err.text);
        if (found == 0)
            return cli_error(CLI_INPUT,
                             "%s: cannot be cut at byte %" PRIu64 " or after it, where cell %06zu "
                             "begins; make a new plan",
                             plan->inputs[which].name, c->offset, i);
        c->offset = cut.offset;
        c->row = cut.row;
    }
    return CLI_OK;
}

static int update_input(void *context, size_t which)
{
    const update_state *s = context;
    plan_input *in = &s->u->plan->inputs[which];
    corpus_options options = pack_corpus_options(s->u->options);
    file_facts facts;
    corpus_error err;
    int code = pack_input_describe(in->name, &facts);
    if (code != CLI_OK)
        return code;
    const input_version now = input_version_of(&facts);
    if (!now.known)
        return cli_error(CLI_INPUT, "%s: is not a regular file", in->name);
    if (now.n_bytes == in->n_bytes && now.mtime_ns == in->mtime_ns)
        return CLI_OK;
    options.versions = &now;
    corpus_cutter *cutter = corpus_cutter_open(in->name, &options, &err);
    if (!cutter)
        return cli_input_failed(err.sys_errno, err.text);
    const corpus_cutter_info info = corpus_cutter_describe(cutter);
    code = move_cells(s->u->plan, which, cutter);
    corpus_cutter_close(cutter);
    in->n_bytes = now.n_bytes;
    in->mtime_ns = now.mtime_ns;
    in->format = info.is_archive ? "tar" : cli_word_name(pack_formats, info.format);
    s->changed[which] = true;
    s->u->n_inputs++;
    return code;
}

/* The cells that read no input that has changed keep the hash of the plan before. */
static int note_update(const update_state *s)
{
    plan_file *plan = s->u->plan;
    uint64_t *larger = realloc(plan->earlier, (plan->n_earlier + 1) * sizeof *larger);
    if (!larger)
        return cli_no_memory();
    plan->earlier = larger;
    if (plan->n_earlier == PLAN_MAX_EARLIER)
        return cli_error(CLI_INPUT, "the plan was updated %d times; make a new plan",
                         PLAN_MAX_EARLIER);
    plan->earlier[plan->n_earlier++] = plan->hash;
    for (size_t i = 0; i < plan->n_cells; i++) {
        const plan_part part = plan_file_part(plan, i);
        size_t which = part.first_input;
        while (which < part.end_input && !s->changed[which])
            which++;
        if (which == part.end_input)
            continue;
        plan->cells[i].since = plan->n_earlier;
        s->u->n_cells++;
    }
    return CLI_OK;
}

int pack_plan_update_run(pack_plan_update *u)
{
    const pack_inputs inputs = {.n = u->plan->n_inputs};
    update_state s = {.u = u, .changed = calloc(inputs.n, sizeof *s.changed)};
    if (!s.changed)
        return cli_no_memory();
    int code = pack_inputs_each(&inputs, update_input, &s);
    if (code == CLI_OK && u->n_inputs > 0)
        code = note_update(&s);
    free(s.changed);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/planner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "corpus/cutter.h"
#include "request/look.h"
#include "system/files.h"
#include "system/process.h"
#include "base/array.h"

/* The first line of an input is usually in its first bytes. */
#define READ_BYTES ((size_t)16 * 1024)
#define MAX_NOTES 10

/* ---- Cells ---- */

static int begin_cell(pack_planner *p, plan_cell cell)
{
    plan_file *plan = p->plan;
    if (plan->n_cells == PLAN_MAX_CELLS)
        return cli_usage("there would be more than %zu cells; use a larger --cell-size",
                         PLAN_MAX_CELLS);
    if (!array_grow(&plan->cells, plan->n_cells, sizeof *plan->cells))
        return cli_no_memory();
    plan->cells[plan->n_cells++] = cell;
    p->in_cell = 0;
    return CLI_OK;
}

/* ---- What cannot be cut ---- */

static void note_large(pack_planner *p, size_t which, uint64_t n_bytes,
                       const corpus_cutter_info *info)
{
    const char *why = "its format is ", *name = "";
    if (n_bytes / 2 <= p->plan->cell_bytes || p->n_large++ >= MAX_NOTES || p->options->quiet)
        return;
    if (info->can_be_cut)
        why = "there is no place to cut it";
    else if (info->is_archive)
        why = "it is a tar archive";
    else if (info->is_array)
        why = "it is a JSON array";
    else if (*info->codec && info->format != CORPUS_ARROW) {
        why = "it is compressed with ";
        name = info->codec;
    } else if (info->format == CORPUS_LINES || info->format == CORPUS_JSON_LINES)
        why = "@row is wanted, so its lines must be counted from the first";
    else
        name = cli_word_name(pack_formats, info->format);
    cli_warn("%s: %s stay in one cell: %s%s", p->inputs->names[which], cli_bytes(n_bytes).s, why,
             name);
}

/* ---- Inputs ---- */

/* Cuts the input wherever a cell is full. */
static int cut_input(pack_planner *p, size_t which, corpus_cutter *cutter)
{
    const uint64_t n_bytes = p->inputs->versions[which].n_bytes;
    const corpus_cutter_info info = corpus_cutter_describe(cutter);
    uint64_t begin = 0;
    for (uint64_t room = p->plan->cell_bytes - p->in_cell; n_bytes - begin > room;
         room = p->plan->cell_bytes) {
        corpus_cut cut;
        failure err;
        int found = corpus_cutter_next(cutter, begin + room, &cut, &err);
        if (found < 0)
            return cli_print_failure(&err);
        const uint64_t end = found ? cut.offset : n_bytes;
        note_large(p, which, end - begin, &info);
        if (!found)
            break;
        p->in_cell += end - begin;
        int code = begin_cell(p, (plan_cell){which, cut.offset, cut.row});
        if (code != CLI_OK)
            return code;
        begin = end;
    }
    p->in_cell += n_bytes - begin;
    return CLI_OK;
}

static int place_input(pack_planner *p, size_t which, corpus_cutter *cutter)
{
    const uint64_t n_bytes = p->inputs->versions[which].n_bytes;
    const uint64_t cell_bytes = p->plan->cell_bytes;
    const corpus_cutter_info info = corpus_cutter_describe(cutter);
    bool fits = p->in_cell <= cell_bytes && n_bytes <= cell_bytes - p->in_cell;
    bool can_be_cut = info.can_be_cut && p->in_cell < cell_bytes;
    int code = CLI_OK;
    if (p->plan->n_cells == 0 || (!fits && !can_be_cut && p->in_cell > 0))
        code = begin_cell(p, (plan_cell){.input = which});
    if (code != CLI_OK)
        return code;
    if (info.can_be_cut)
        return cut_input(p, which, cutter);
    note_large(p, which, n_bytes, &info);
    p->in_cell += n_bytes;
    return CLI_OK;
}

/* Opens the input, and describes it in the plan. NULL: an error was printed. */
static corpus_cutter *open_input(pack_planner *p, size_t which, int *code)
{
    const pack_inputs *inputs = p->inputs;
    const input_version *version = &inputs->versions[which];
    reader_options options = pack_reader_options(p->options);
    failure err;
    options.window.read_bytes = READ_BYTES;
    corpus_cutter *cutter = corpus_cutter_open(inputs->names[which], version, &options, &err);
    *code = cutter ? CLI_OK : cli_print_failure(&err);
    if (!cutter)
        return NULL;
    const corpus_cutter_info info = corpus_cutter_describe(cutter);
    p->plan->inputs[which] = (plan_input){
        .n_bytes = version->n_bytes,
        .mtime_ns = version->mtime_ns,
        .format = info.is_archive ? "tar" : cli_word_name(pack_formats, info.format),
        .name = inputs->names[which],
    };
    return cutter;
}

int pack_planner_run(pack_planner *p)
{
    const size_t n = p->inputs->n;
    int code = CLI_OK;
    if (n > PLAN_MAX_INPUTS)
        return cli_usage("more than %zu inputs", PLAN_MAX_INPUTS);
    p->plan->inputs = calloc(n, sizeof *p->plan->inputs);
    if (!p->plan->inputs)
        return cli_no_memory();
    p->plan->n_inputs = n;
    for (size_t i = 0; i < n && code == CLI_OK; i++) {
        corpus_cutter *cutter = open_input(p, i, &code);
        if (cutter)
            code = place_input(p, i, cutter);
        corpus_cutter_close(cutter);
    }
    if (code == CLI_OK && p->n_large > MAX_NOTES && !p->options->quiet)
        cli_warn("%s more like these", cli_count_of(p->n_large - MAX_NOTES, "large input").s);
    return code;
}

/* ---- Updates ---- */

/* The cells that begin in the input begin with the next one. */
static void leave_out(plan_file *plan, size_t which)
{
    plan_input *in = &plan->inputs[which];
    memmove(in, in + 1, (--plan->n_inputs - which) * sizeof *in);
    for (size_t i = 0; i < plan->n_cells; i++) {
        plan_cell *c = &plan->cells[i];
        if (c->input == which)
            c->offset = c->row = 0;
        c->input -= c->input > which;
    }
}

int pack_planner_skip(pack_planner *p, const char *const *names, size_t n_names)
{
    plan_file *plan = p->plan;
    for (size_t i = 0; i < n_names; i++) {
        const size_t n_before = plan->n_inputs;
        for (size_t k = plan->n_inputs; k-- > 0;)
            if (file_is_same_name(plan->inputs[k].name, names[i]))
                leave_out(plan, k);
        if (plan->n_inputs == n_before)
            return cli_usage("--skip-input %s: is not one of the inputs of the plan", names[i]);
        p->n_skipped += n_before - plan->n_inputs;
    }
    return plan->n_inputs > 0 ? CLI_OK : cli_error(CLI_INPUT, "no input is left in the plan");
}

/* Finds the places of the cells that begin inside the input. */
static int move_cells(const plan_file *plan, size_t which, corpus_cutter *cutter)
{
    for (size_t i = 0; i < plan->n_cells; i++) {
        plan_cell *c = &plan->cells[i];
        corpus_cut cut = {0};
        failure err;
        if (c->input != which || c->offset == 0)
            continue;
        const int found = corpus_cutter_next(cutter, c->offset, &cut, &err);
        if (found < 0)
            return cli_print_failure(&err);
        c->input += found == 0; /* it is too short: with the next one */
        c->offset = cut.offset;
        c->row = cut.row;
    }
    return CLI_OK;
}

static void describe_input(void *context, size_t which, void *result)
{
    const pack_planner *p = context;
    *(pack_described *)result = pack_input_describe(p->plan->inputs[which].name);
}

static int update_input(void *context, size_t which, void *result)
{
    pack_planner *p = context;
    const plan_input *in = &p->plan->inputs[which];
    const pack_described *d = result;
    int code = pack_input_accept(in->name, d);
    if (code != CLI_OK)
        return code;
    const input_version now = input_version_of(&d->facts);
    if (!now.known)
        return cli_error(CLI_INPUT, "%s: is not a regular file", in->name);
    p->inputs->versions[which] = now;
    if (now.n_bytes == in->n_bytes && now.mtime_ns == in->mtime_ns)
        return CLI_OK;
    p->n_changed++;
    const char *const was = in->format;
    corpus_cutter *cutter = open_input(p, which, &code);
    if (cutter)
        code = move_cells(p->plan, which, cutter);
    const corpus_cutter_info info =
        cutter ? corpus_cutter_describe(cutter) : (corpus_cutter_info){0};
    const bool is_table = info.format == CORPUS_CSV || info.format == CORPUS_TSV;
    const bool has_columns = info.format == CORPUS_PARQUET || info.format == CORPUS_ARROW;
    /* The members of an archive are of any format, and what has columns may have others. */
    const bool may_differ = strcmp(was, in->format) != 0 || info.is_archive;
    p->n_other += is_table || (has_columns && p->options->input.n_kept > 0) ||
                  (cutter && may_differ && p->options->input.format == CORPUS_AUTO);
    corpus_cutter_close(cutter);
    return code;
}

int pack_planner_update(pack_planner *p)
{
    pack_plan_inputs of_plan = {0};
    int code = pack_plan_inputs_begin(&of_plan, p->plan);
    pack_inputs inputs = {
        .names = of_plan.names, .versions = of_plan.versions, .n = p->plan->n_inputs};
    p->inputs = &inputs;
    if (code == CLI_OK)
        code = pack_inputs_each(&inputs,
                                &(pack_input_work){describe_input, update_input,
                                                   sizeof(pack_described), PACK_MOST_LOOKS, p});
    if (code == CLI_OK && p->n_other > 0)
        code = pack_inputs_check_again(&inputs, p->options);
    p->plan->updated = p->plan->updated || p->n_changed + p->n_skipped > 0;
    p->inputs = NULL;
    pack_plan_inputs_free(&of_plan);
    return code;
}

/* ---- Sessions ---- */

int pack_plan_options(const plan_file *plan, pack_options *options)
{
    const int error = process_enter_folder(plan->folder);
    if (error)
        return cli_fail_because(plan->folder, "the folder of the plan", error);
    for (size_t i = 0; i < plan->n_options; i++) {
        const plan_option *o = &plan->options[i];
        const cli_option *option = cli_find_option(pack_deciding_rows, o->name);
        if (!option)
            return cli_error(CLI_INPUT,
                             "the plan has an option that this tokmap does not know: "
                             "--%s; make a new plan",
                             o->name);
        int code = cli_set_option(option, o->value, options);
        if (code != CLI_OK)
            return code;
    }
    options->input.utf8_given = plan_file_option(plan, "utf8") != NULL;
    options->types_known = true; /* the plan has the fields that are strings */
    return pack_options_check(options);
}

int pack_plan_tokenizer(const plan_file *plan, const pack_options *options, pack_tokens *tokens,
                        tokenizer_file *file)
{
    pack_fingerprint now = {0};
    const pack_parts parts = {.options = options, .tokenizer = file, .tokens = tokens};
    int code = pack_tokens_open(tokens, file, options);
    if (code == CLI_OK && !pack_fingerprint_make(&now, &parts))
        code = cli_no_memory();
    if (code == CLI_OK && (plan->fingerprint_bytes != now.n_bytes ||
                           memcmp(plan->fingerprint, now.text, now.n_bytes) != 0)) {
        char difference[PACK_DIFFERENCE_BYTES];
        pack_fingerprint_difference(&now, plan->fingerprint, plan->fingerprint_bytes, difference);
        code = cli_error(CLI_DATASET,
                         "this is not what the plan was made with: %s; make a new "
                         "plan, or use what it was made with",
                         difference);
    }
    pack_fingerprint_free(&now);
    return code;
}

int pack_plan_inputs_begin(pack_plan_inputs *inputs, const plan_file *plan)
{
    inputs->plan = plan;
    inputs->names = calloc(plan->n_inputs, sizeof *inputs->names);
    inputs->versions = calloc(plan->n_inputs, sizeof *inputs->versions);
    inputs->formats = calloc(plan->n_inputs, sizeof *inputs->formats);
    if (!inputs->names || !inputs->versions || !inputs->formats)
        return cli_no_memory();
    for (size_t i = 0; i < plan->n_inputs; i++) {
        inputs->names[i] = plan->inputs[i].name;
        inputs->versions[i].n_bytes = plan->inputs[i].n_bytes; /* until it is looked at */
        /* CORPUS_AUTO also for formats of inputs that are never cut. */
        for (const cli_word *w = pack_formats; w->name; w++)
            if (strcmp(w->name, plan->inputs[i].format) == 0)
                inputs->formats[i] = (corpus_format)w->value;
    }
    return CLI_OK;
}

/* Whether the input has the size and time that it had. */
static bool is_unchanged(const plan_input *then, const file_facts *now, failure *why)
{
    if (now->kind != FILE_REGULAR)
        return fail(why, "%s: is no longer a regular file, as it was when the plan was made",
                    then->name);
    if (now->n_bytes != then->n_bytes)
        return fail(why,
                    "%s: has changed since the plan was made: it had %s and now has %s; update the "
                    "plan with tokmap plan --update",
                    then->name, cli_count_of(then->n_bytes, "byte").s, cli_count(now->n_bytes).s);
    return now->mtime_ns == then->mtime_ns ||
           fail(why,
                "%s: was modified since the plan was made; update the plan with tokmap plan "
                "--update",
                then->name);
}

int pack_plan_input_look(const plan_input *then, failure *why)
{
    file_facts facts;
    if (file_describe(then->name, &facts) != 0)
        return -1;
    return !is_unchanged(then, &facts, why);
}

static int check_input(pack_plan_inputs *inputs, size_t which)
{
    const plan_input *then = &inputs->plan->inputs[which];
    failure why;
    const pack_described now = pack_input_describe(then->name);
    const int code = pack_input_accept(then->name, &now);
    if (code != CLI_OK)
        return code;
    inputs->versions[which] = input_version_of(&now.facts);
    return is_unchanged(then, &now.facts, &why) ? CLI_OK : cli_error(CLI_DATASET, "%s", why.text);
}

int pack_plan_inputs_check(pack_plan_inputs *inputs, size_t cell)
{
    const plan_part part = plan_file_part(inputs->plan, cell);
    int code = CLI_OK;
    for (size_t i = part.first_input; i < part.end_input; i++) {
        if (!inputs->versions[i].known)
            code = cli_first_failure(check_input(inputs, i), code);
        inputs->versions[i].known = true; /* named once; after a failure nothing is packed */
    }
    return code;
}

pack_inputs pack_plan_inputs_of(const pack_plan_inputs *inputs, size_t cell)
{
    const plan_part part = plan_file_part(inputs->plan, cell);
    return (pack_inputs){
        .names = inputs->names + part.first_input,
        .versions = inputs->versions + part.first_input,
        .formats = inputs->formats + part.first_input,
        .n = part.end_input - part.first_input,
        .total_bytes = plan_file_cell_bytes(inputs->plan, cell),
        .begin = {part.begin_offset, part.begin_row},
        .end = {part.end_offset, part.end_row},
    };
}

void pack_plan_inputs_free(pack_plan_inputs *inputs)
{
    free(inputs->names);
    free(inputs->versions);
    free(inputs->formats);
    *inputs = (pack_plan_inputs){0};
}

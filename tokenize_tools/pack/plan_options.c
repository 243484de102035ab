/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/plan_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pack/options.h"
#include "system/memory_file.h"
#include "system/process.h"

int pack_plan_options(const plan_file *plan, pack_options *options)
{
    const int error = process_enter_folder(plan->folder);
    if (error)
        return cli_error(cli_errno_exit_code(error), "%s: the folder of the plan: %s", plan->folder,
                         strerror(error));
    for (size_t i = 0; i < plan->n_options; i++) {
        const plan_option *o = &plan->options[i];
        if (!pack_option_decides(o->name))
            return cli_error(CLI_INPUT,
                             "the plan has an option that this tokmap does not know: "
                             "--%s; make a new plan",
                             o->name);
        int code = cli_set_option(pack_deciding_rows, o->name, o->value, options);
        if (code != CLI_OK)
            return code;
    }
    options->utf8_given = plan_file_option(plan, "utf8") != NULL;
    return pack_options_check(options);
}

/* ---- Facts ---- */

/* The facts of the plan as one text; NULL: out of memory. */
static char *join_facts(const plan_file *plan, size_t *n_bytes)
{
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return NULL;
    for (size_t i = 0; i < plan->n_facts; i++)
        fprintf(out, "%s\n", plan->facts[i]);
    if (plan->n_facts == 0)
        putc('\n', out);
    if (!memory_file_close(out, &text))
        return NULL;
    *n_bytes = text.n_bytes;
    return text.text;
}

static int compare_facts(const plan_file *plan, const pack_facts *now)
{
    char difference[PACK_DIFFERENCE_BYTES];
    size_t n_bytes;
    char *then = join_facts(plan, &n_bytes);
    if (!then)
        return cli_no_memory();
    int code = CLI_OK;
    if (n_bytes != now->n_bytes || memcmp(then, now->text, n_bytes) != 0) {
        pack_facts_difference(now, then, n_bytes, difference);
        code = cli_error(CLI_DATASET,
                         "this is not what the plan was made with: %s; make a new "
                         "plan, or use what it was made with",
                         difference);
    }
    free(then);
    return code;
}

int pack_plan_tokenizer(const plan_file *plan, const pack_options *options, pack_tokens *tokens,
                        tokenizer_file *file)
{
    pack_facts now = {0};
    int code = pack_tokens_open(tokens, file, options);
    if (code != CLI_OK)
        return code;
    const pack_parts parts = {.options = options, .tokenizer = file, .tokens = tokens};
    code = pack_facts_make(&now, &parts) ? compare_facts(plan, &now) : cli_no_memory();
    pack_facts_free(&now);
    return code;
}

/* ---- Inputs ---- */

/* CORPUS_AUTO also for formats of inputs that are never cut. */
static corpus_format find_format(const char *word)
{
    for (const cli_word *w = pack_formats; w->name; w++) {
        if (strcmp(w->name, word) == 0)
            return (corpus_format)w->value;
    }
    return CORPUS_AUTO;
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
        inputs->formats[i] = find_format(plan->inputs[i].format);
    }
    return CLI_OK;
}

static int check_input(pack_plan_inputs *inputs, size_t which)
{
    const plan_input *then = &inputs->plan->inputs[which];
    file_facts facts;
    int code = pack_input_describe(then->name, &facts);
    if (code != CLI_OK)
        return code;
    const input_version now = inputs->versions[which] = input_version_of(&facts);
    if (!now.known)
        return cli_error(CLI_DATASET,
                         "%s: is no longer a regular file, as it was when the plan "
                         "was made",
                         then->name);
    if (now.n_bytes != then->n_bytes)
        return cli_error(CLI_DATASET,
                         "%s: has changed since the plan was made: it had %s and now "
                         "has %s; update the plan with tokmap plan --update",
                         then->name, cli_count_of(then->n_bytes, "byte").s,
                         cli_count(now.n_bytes).s);
    if (now.mtime_ns != then->mtime_ns)
        return cli_error(
            CLI_DATASET,
            "%s: was modified since the plan was made; update the plan with tokmap plan --update",
            then->name);
    return CLI_OK;
}

int pack_plan_inputs_check(pack_plan_inputs *inputs, size_t cell)
{
    const plan_part part = plan_file_part(inputs->plan, cell);
    int code = CLI_OK;
    for (size_t i = part.first_input; i < part.end_input; i++) {
        const int one = inputs->versions[i].known ? CLI_OK : check_input(inputs, i);
        inputs->versions[i].known = true; /* named once; after a failure nothing is packed */
        code = one == CLI_OK ? code : one;
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
        .has_end = part.end_offset > 0,
    };
}

void pack_plan_inputs_free(pack_plan_inputs *inputs)
{
    free(inputs->names);
    free(inputs->versions);
    free(inputs->formats);
    *inputs = (pack_plan_inputs){0};
}

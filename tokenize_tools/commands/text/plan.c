/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - tokmap plan: cuts a pack into cells, and writes the plan. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/text/text_commands.h"
#include "request/look.h"
#include "request/options.h"
#include "pack/planner.h"
#include "plan/cell_state.h"
#include "plan/plan_file.h"
#include "system/output_file.h"
#include "system/process.h"
#include "cli/json_out.h"

#define DEFAULT_CELL_BYTES ((uint64_t)1000000000)

typedef struct plan_options {
    pack_options pack;
    const char *update; /* a plan, or NULL */
    uint64_t cell_bytes;
    output_file out;
} plan_options;

/* ---- Options ---- */

#define NO_LIMIT                                                                                   \
    "a plan has no limit of documents or tokens: a cell does not know how many the cells before "  \
    "it have"

#define TARGET(field) offsetof(plan_options, field)
static const cli_option plan_rows[] = {
    {.name = "Plan"},
    {"cells", 0, CLI_TEXT, TARGET(pack.cells_folder), "DIR",
     .help = "the folder for the datasets of the cells"},
    {"output", 'o', CLI_TEXT, TARGET(pack.output), "FILE", .help = "the plan to write"},
    {"cell-size", 0, CLI_NUMBER, TARGET(cell_bytes), "SIZE",
     .help = "fill a cell with about this many bytes of inputs, as they are stored [1G]",
     .lowest = 1},
    {"update", 0, CLI_TEXT, TARGET(update), "FILE",
     .help = "update this plan for inputs that have changed, or leave some out with --skip-input: "
             "only the cells that read them have to be packed again; takes no INPUT, and of the "
             "other options only --json, --quiet and --no-lock"},
    {"force", 'f', CLI_FLAG, TARGET(pack.force), .help = "replace a plan that already exists"},
    OUTPUT_NO_LOCK_ROW,
    PACK_WRITE_LISTS_ROW,
    {"json", 0, CLI_FLAG, TARGET(pack.json), .help = "print the result as JSON"},
    {"quiet", 'q', CLI_FLAG, TARGET(pack.quiet), .help = "print only errors"},
    {"limit-documents", 0, CLI_TEXT, 0, "N", .refused = NO_LIMIT},
    {"limit-tokens", 0, CLI_TEXT, 0, "N", .refused = NO_LIMIT},
    {NULL},
};
static const cli_option splits_heading[] = {{.name = "Splits"}, {NULL}};
static const cli_option *const tables[] = {plan_rows,      pack_document_rows, pack_token_rows,
                                           splits_heading, pack_split_row,     NULL};
static cli_option option_table[CLI_MAX_OPTIONS + 1];

static const cli_manual manual = {
    .usage = "tokmap plan [OPTION]... INPUT... --cells DIR -o FILE\n"
             "       tokmap plan --update FILE [--skip-input INPUT]...",
    .about =
        "Plans a pack that many processes do together, on several machines: cuts the inputs into "
        "cells, and writes down the cells, the inputs with their sizes and times, and the "
        "options. 'tokmap pack --plan FILE --task I/N' packs a share of the cells; the result does "
        "not depend on N. 'tokmap join' makes one dataset of them. Files of lines and JSON lines "
        "that are not compressed are cut at line ends, Parquet files at pages; other files are "
        "not cut. An INPUT is what 'tokmap pack' takes, but not stdin.",
    .options = option_table,
    .most_used = " cells output cell-size update force include exclude skip-unsuitable lines field "
                 "where meta tokenizer split ",
    .examples = "  tokmap plan corpus --tokenizer tokenizer.json --cells cells -o run.plan\n"
                "  for i in 0 1 2; do tokmap pack --plan run.plan --task $i/3 & done; wait\n"
                "  tokmap join run.plan -o data/web\n",
};

/* ---- The plan ---- */

/* Records the options that decide what is written, as they were given. A tokenizer of the Hub is
 * recorded as the path in the cache, because a branch is looked up once. */
static int take_options(plan_file *plan, const tokenizer_file *file, const pack_options *options)
{
    size_t n;
    const cli_setting *settings = cli_get_settings(&n);
    plan->options = calloc(n + options->n_meta_text + 1, sizeof *plan->options);
    if (!plan->options)
        return cli_no_memory();
    for (size_t i = 0; i < n; i++) {
        const cli_setting *s = &settings[i];
        const bool is_found = file->found_path && strcmp(s->option->name, "tokenizer") == 0;
        if (!cli_find_option(pack_deciding_rows, s->option->name) ||
            strcmp(s->option->name, "download") == 0 || strcmp(s->option->name, "meta-text") == 0)
            continue;
        if (s->value && strlen(s->value) > PLAN_MAX_TEXT_BYTES)
            return cli_usage("--%s: the value is longer than %d bytes", s->option->name,
                             PLAN_MAX_TEXT_BYTES);
        plan->options[plan->n_options++] =
            (plan_option){s->option->name, is_found ? file->found_path : s->value};
    }
    for (size_t i = 0; i < options->n_meta_text; i++) /* with those that were found */
        plan->options[plan->n_options++] = (plan_option){"meta-text", options->meta_text[i]};
    return plan->n_options <= PLAN_MAX_OPTIONS ? CLI_OK : cli_usage("too many options");
}

static int begin_output(plan_options *options)
{
    const int code = output_name(&options->out, options->pack.output, "", options->pack.force);
    return code == CLI_OK ? output_begin(&options->out) : code;
}

static int write_plan(plan_file *plan, plan_options *options)
{
    size_t n_bytes;
    char *text = plan_file_print(plan, &n_bytes);
    if (!text)
        return cli_no_memory();
    int code = output_write(&options->out, text, n_bytes);
    if (code == CLI_OK)
        code = output_place(&options->out);
    free(text);
    return code;
}

static int print_result(const pack_planner *p, const plan_options *options)
{
    const plan_file *plan = p->plan;
    uint64_t n_bytes = 0, largest = 0;
    for (size_t i = 0; i < plan->n_cells; i++) {
        const uint64_t n = plan_file_cell_bytes(plan, i);
        n_bytes += n;
        largest = n > largest ? n : largest;
    }
    if (options->pack.json) {
        json_out o = json_out_begin_result(stdout);
        json_out_string(&o, "plan", options->pack.output);
        json_out_hash(&o, "plan_hash", plan->hash);
        json_out_number(&o, "n_inputs", plan->n_inputs);
        json_out_number(&o, "n_cells", plan->n_cells);
        json_out_number(&o, "input_bytes", n_bytes);
        json_out_number(&o, "largest_cell_bytes", largest);
        if (!options->update) /* then the inputs are those of the plan */
            unsuitable_print_counts(&p->inputs->unsuitable, &o);
        json_out_number(&o, "n_skipped_inputs", p->n_skipped);
        json_out_number(&o, "n_changed_inputs", p->n_changed);
        json_out_number(&o, "n_changed_cells", p->n_touched);
        puts("}");
    } else if (!options->pack.quiet) {
        cli_print_plain(stdout, options->pack.output, strlen(options->pack.output));
        printf(": %s of %s, %s; the largest has %s", cli_count_of(plan->n_inputs, "input").s,
               cli_bytes(n_bytes).s, cli_count_of(plan->n_cells, "cell").s, cli_bytes(largest).s);
        if (options->update)
            printf("; %s changed and %s left out, in %s", cli_count_of(p->n_changed, "input").s,
                   cli_count(p->n_skipped).s, cli_count_of(p->n_touched, "cell").s);
        cli_print_word(stdout, "\nNext:\n  tokmap pack --plan ", options->pack.output, "");
        cli_print_word(stdout, " --task I/N  (for each I below N)\n  tokmap join ",
                       options->pack.output, "");
        puts(" -o P");
        if (plan->n_cells == 1)
            puts("One cell is work for one task; a smaller --cell-size makes more.");
    }
    return cli_finish();
}

/* Warns about a cell of another plan in the folder, which a task would refuse. */
static int warn_of_cells(const plan_options *options)
{
    plan_file plan = {0};
    cell_report report = {.state = CELL_ABSENT};
    int code = options->pack.quiet ? CLI_OK : plan_read_to_update(&plan, options->pack.output);
    for (size_t i = 0; i < plan.n_cells && code == CLI_OK && report.state != CELL_FOREIGN; i++)
        cell_check(&plan, i, false, &report);
    if (code == CLI_OK && report.state == CELL_FOREIGN)
        cli_warn("%s: tasks of this plan will end there; use another folder for --cells, or remove "
                 "what is in it",
                 report.why);
    plan_file_free(&plan);
    return code;
}

static int make_plan(plan_options *options, const pack_parts *parts)
{
    plan_file plan = {.cell_bytes = options->cell_bytes};
    pack_planner planner = {.options = parts->options, .inputs = parts->inputs, .plan = &plan};
    pack_fingerprint fingerprint = {0};
    char folder[PATH_PREFIX_BYTES];
    int code = process_folder(folder, sizeof folder);
    if (code != CLI_OK)
        return code;
    plan.folder = folder;
    plan.cells_folder = options->pack.cells_folder;
    code = plan_file_folders_fit(&plan) ? take_options(&plan, parts->tokenizer, parts->options)
                                        : cli_usage("--cells: the path of the folder is too long");
    if (code == CLI_OK &&
        !pack_fingerprint_make(&fingerprint, &(pack_parts){.options = parts->options,
                                                           .tokenizer = parts->tokenizer,
                                                           .tokens = parts->tokens}))
        code = cli_no_memory();
    plan.fingerprint = fingerprint.text;
    plan.fingerprint_bytes = fingerprint.n_bytes;
    if (code == CLI_OK)
        code = pack_planner_run(&planner);
    if (code == CLI_OK)
        code = write_plan(&plan, options);
    if (code == CLI_OK)
        code = warn_of_cells(options);
    if (code == CLI_OK)
        code = print_result(&planner, options);
    pack_fingerprint_free(&fingerprint);
    plan_file_free(&plan);
    return code;
}

static int run(plan_options *options, char **names, size_t n_names)
{
    pack_inputs inputs = {0};
    tokenizer_file tokenizer_of = {0};
    pack_tokens tokens;
    const pack_parts parts = {.options = &options->pack,
                              .tokenizer = &tokenizer_of,
                              .tokens = &tokens,
                              .inputs = &inputs};
    options->pack.input.utf8_given = cli_is_given("utf8");
    process_prepare_threads();
    int code = path_check_all((char **)&options->pack.output, 1);
    if (code == CLI_OK)
        code = pack_options_check(&options->pack);
    if (code == CLI_OK)
        code = pack_inputs_find(&inputs, names, n_names, &options->pack);
    if (code == CLI_OK && inputs.once)
        code = cli_usage("%s: a plan needs files, which can be read by several processes and again",
                         inputs.once);
    if (code == CLI_OK) /* before the inputs are read, which takes long */
        code = begin_output(options);
    if (code == CLI_OK)
        code = pack_tokens_open(&tokens, &tokenizer_of, &options->pack);
    if (code == CLI_OK)
        code = pack_inputs_look(&inputs, &options->pack);
    if (code == CLI_OK)
        code = make_plan(options, &parts);
    if (code == CLI_OK)
        pack_kinds_note(&inputs, &options->pack);
    if (code == CLI_OK)
        code = pack_options_say_bytes(&options->pack);
    output_close(&options->out);
    tokenizer_file_close(&tokenizer_of);
    pack_inputs_free(&inputs);
    return code;
}

/* ---- Updates ---- */

static int run_update(plan_options *options, size_t n_names)
{
    char absolute[PATH_PREFIX_BYTES];
    plan_file plan = {0}, now = {0};
    tokenizer_file file = {0};
    pack_tokens tokens;
    pack_planner planner = {.options = &options->pack, .plan = &plan};
    static const char *const allowed[] = {"update", "skip-input", "json", "quiet", "no-lock", NULL};
    const char *other = cli_find_other(allowed);
    if (other)
        return cli_usage("--%s does not work with --update: the plan stays as it is", other);
    if (n_names > 0)
        return cli_usage("--update: the plan has the inputs; name none here");
    options->pack.output = options->update;
    options->pack.force = true;
    int code = plan_read_to_update(&plan, options->update);
    const size_t n_skipped = options->pack.n_skipped; /* without those of the plan */
    if (code == CLI_OK)
        code = process_make_absolute(&options->pack.output, absolute, sizeof absolute);
    if (code == CLI_OK)
        code = pack_plan_options(&plan, &options->pack);
    if (code == CLI_OK) /* only the program that made the plan can pack its cells */
        code = pack_plan_tokenizer(&plan, &options->pack, &tokens, &file);
    if (code == CLI_OK)
        code = pack_planner_skip(&planner, options->pack.skipped, n_skipped);
    if (code == CLI_OK) {
        code = pack_planner_update(&planner);
        if (code == CLI_INPUT)
            fprintf(stderr, "To leave an input out: tokmap plan --update %s --skip-input INPUT\n",
                    options->update);
    }
    const bool has_changed = code == CLI_OK && planner.n_changed + planner.n_skipped > 0;
    if (has_changed)
        code = begin_output(options);
    if (has_changed && code == CLI_OK)
        code = write_plan(&plan, options);
    output_close(&options->out);
    if (code == CLI_OK)
        code = plan_read_to_update(&now, options->pack.output);
    for (size_t i = 0; i < now.n_cells; i++)
        planner.n_touched += now.cells[i].hash != plan.cells[i].hash;
    options->pack.output = options->update;
    if (code == CLI_OK)
        code = print_result(&planner, options);
    tokenizer_file_close(&file);
    plan_file_free(&now);
    plan_file_free(&plan);
    return code;
}

int plan_command(int argc, char **argv)
{
    plan_options options = {
        .pack = pack_options_new(), .cell_bytes = DEFAULT_CELL_BYTES, .out.fd = -1};
    cli_join_options(option_table, tables);
    int code = cli_parse_options(&manual, argc, argv, &options);
    const size_t n_names = (size_t)(argc - optind);
    if (code == CLI_GO_ON && options.update)
        code = run_update(&options, n_names);
    else if (code == CLI_GO_ON && n_names == 0)
        code = cli_usage("no input given");
    else if (code == CLI_GO_ON && !options.pack.cells_folder)
        code = cli_usage("option --cells DIR is required");
    else if (code == CLI_GO_ON && !options.pack.output)
        code = cli_usage("option --output FILE is required");
    else if (code == CLI_GO_ON)
        code = run(&options, argv + optind, n_names);
    pack_options_free(&options.pack);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* verify.c - tokmap verify: reads everything and lists what is damaged. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"
#include "cli/cli.h"
#include "commands/dataset/dataset_commands.h"
#include "commands/dataset/verify_files.h"
#include "datasets/each.h"
#include "datasets/beside.h"
#include "cli/options.h"
#include "cli/json_out.h"
#include "tokmap.h"

#define BLOCK_BYTES (1 << 20)

typedef struct verify_command_options {
    uint64_t n_threads, seed;
    uint64_t first_segment, n_segments;
    double fraction;
    bool json, quiet, files;
} verify_command_options;

/* What the callbacks of tokmap_dataset_verify need. */
typedef struct verify_view {
    const char *path;
    tokmap_dataset_info info;
    cli_progress progress;
    json_out json; /* without a file: prints lines */
    uint64_t n_damages, n_bad_blocks, n_unreadable;
} verify_view;

static int on_progress(void *context, uint64_t bytes_done, uint64_t bytes_total)
{
    verify_view *view = context;
    cli_progress_update(&view->progress, bytes_done, bytes_total);
    return 0;
}

static bool is_block(const tokmap_damage *d)
{
    return d->n_tokens > 0;
}

static void print_damage(const verify_view *view, const tokmap_damage *d)
{
    if (!is_block(d) || cli_is_joined(&view->info)) { /* the message names the file */
        cli_print_plain(stdout, d->error.text, strlen(d->error.text));
    } else {
        cli_print_plain(stdout, view->info.token_path, strlen(view->info.token_path));
        printf(": block %" PRIu64 " (bytes %" PRIu64 "-%" PRIu64 "): ", d->block_index,
               d->first_byte, d->first_byte + d->n_bytes - 1);
        if (d->kind == TOKMAP_DAMAGE_BLOCK)
            fputs("checksum differs", stdout);
        else if (d->kind == TOKMAP_DAMAGE_CONTENT)
            printf("an id above %" PRIu32 ", the largest according to the index",
                   view->info.largest_id);
        else if (d->error.sys_errno)
            printf("cannot be read: %s", strerror(d->error.sys_errno));
        else
            fputs("cannot be read: the file is too short", stdout);
    }
    if (is_block(d))
        printf("; tokens %" PRIu64 "-%" PRIu64, d->first_token, d->first_token + d->n_tokens - 1);
    if (is_block(d) && d->n_documents)
        printf(", documents %" PRIu64 "-%" PRIu64, d->first_document,
               d->first_document + d->n_documents - 1);
    putchar('\n');
}

static const char *const kind_names[] = {
    [TOKMAP_DAMAGE_BLOCK] = "block",
    [TOKMAP_DAMAGE_SECTION] = "section",
    [TOKMAP_DAMAGE_CONTENT] = "content",
    [TOKMAP_DAMAGE_UNREADABLE] = "unreadable",
};

static void print_json_damage(json_out *o, const tokmap_damage *d)
{
    json_out_begin(o, NULL, '{');
    json_out_string(o, "kind", kind_names[d->kind]);
    json_out_number(o, "first_byte", d->first_byte);
    json_out_number(o, "n_bytes", d->n_bytes);
    if (is_block(d)) {
        json_out_number(o, "block", d->block_index);
        json_out_number(o, "first_token", d->first_token);
        json_out_number(o, "n_tokens", d->n_tokens);
        json_out_number(o, "first_document", d->first_document);
        json_out_number(o, "n_documents", d->n_documents);
    }
    json_out_string(o, "message", d->error.text);
    json_out_end(o, '}');
}

static void on_damage(void *context, const tokmap_damage *d)
{
    verify_view *view = context;
    cli_progress_clear(&view->progress);
    if (view->json.out)
        print_json_damage(&view->json, d);
    else
        print_damage(view, d);
    view->n_damages++;
    if (is_block(d))
        view->n_bad_blocks +=
            (d->n_bytes + BLOCK_BYTES - 1) / BLOCK_BYTES; /* of a file: all its blocks */
    view->n_unreadable += d->error.sys_errno != 0;
}

static void print_verdict(const verify_view *view, const tokmap_verify_report *r)
{
    cli_print_plain(stdout, view->path, strlen(view->path));
    cli_text blocks = cli_count_of(r->n_blocks, "block");
    const char *word = view->n_unreadable == view->n_damages ? "UNREADABLE" : "DAMAGED";
    if (view->n_bad_blocks)
        printf(": %s: %s of %s", word, cli_count(view->n_bad_blocks).s, blocks.s);
    else if (view->n_damages)
        printf(": %s: the index", word);
    else if (r->n_blocks_checked < r->n_blocks)
        printf(": no damage found in %s of %s", cli_count(r->n_blocks_checked).s, blocks.s);
    else
        printf(": OK, %s", blocks.s);
    if (view->n_bad_blocks && view->n_damages > view->n_bad_blocks)
        fputs(" and the index", stdout);
    if (view->n_damages && r->n_blocks_checked < r->n_blocks)
        printf("; %s of %s read", cli_count(r->n_blocks_checked).s, blocks.s);
    printf(", %s read\n", cli_bytes(r->bytes_read).s);
}

/* Begins the object, up to the array of damages. */
static void begin_json(json_out *o, const char *path)
{
    *o = json_out_begin_result(stdout);
    json_out_string(o, "path", path);
    json_out_begin(o, "damages", '[');
}

/* "sound" is an older name of "ok", kept while schema_version is 1. */
static void put_verdict(json_out *o, bool ok)
{
    json_out_end(o, ']');
    json_out_bool(o, "ok", ok);
    json_out_bool(o, "sound", ok);
}

/* Without callbacks. */
static tokmap_verify_options verify_options_of(const verify_command_options *options)
{
    return (tokmap_verify_options){
        .struct_size = sizeof(tokmap_verify_options),
        .n_threads = (uint32_t)options->n_threads,
        .fraction = options->fraction,
        .seed = options->seed,
        .first_segment = options->first_segment,
        .n_segments = options->n_segments,
    };
}

static int run_verify(const tokmap_dataset *ds, verify_view *view,
                      const verify_command_options *options)
{
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    tokmap_error err = {.status = TOKMAP_OK};
    json_out *json = &view->json;
    tokmap_verify_options verify_options = verify_options_of(options);
    verify_options.context = view;
    verify_options.on_progress = on_progress;
    verify_options.on_damage = on_damage;
    if (options->json)
        begin_json(json, view->path);
    tokmap_status status = tokmap_dataset_verify(ds, &verify_options, &report, &err);
    cli_progress_end(&view->progress, report.bytes_read);
    /* Damage was reported piece by piece; any other error was not. */
    bool is_unreported = status != TOKMAP_OK && view->n_damages == 0;
    if (options->json) {
        put_verdict(json, status == TOKMAP_OK);
        if (is_unreported)
            json_out_string(json, "error", err.text);
        json_out_number(json, "n_blocks", report.n_blocks);
        json_out_number(json, "n_blocks_checked", report.n_blocks_checked);
        json_out_number(json, "n_bad_blocks", view->n_bad_blocks);
        json_out_number(json, "bytes_read", report.bytes_read);
        puts("}");
    }
    if (is_unreported)
        return cli_fail(&err);
    if (!options->json && !(options->quiet && status == TOKMAP_OK))
        print_verdict(view, &report);
    return cli_exit_code(&err);
}

static int print_refused(void *command_options, const char *path, const tokmap_error *err)
{
    const verify_command_options *options = command_options;
    json_out json;
    if (options->files)
        return verify_files_without_index(path, err);
    if (!options->json)
        return CLI_OK;
    begin_json(&json, path);
    put_verdict(&json, false);
    json_out_string(&json, "error", err->text);
    puts("}");
    return CLI_OK;
}

static int verify_one(void *command_options, const char *path, const tokmap_dataset *ds)
{
    const verify_command_options *options = command_options;
    if (options->files) {
        const verify_files_options of_files = {verify_options_of(options), options->quiet};
        return verify_files(ds, &of_files);
    }
    verify_view view = {.path = path, .info = cli_dataset_info(ds)};
    cli_progress_begin(&view.progress, "verify", options->quiet);
    int code = run_verify(ds, &view, options);
    code = cli_first_failure(code, beside_check(ds, BESIDE_COLUMNS, true));
    code = cli_first_failure(code, beside_check(ds, BESIDE_VIEWS, true));
    code = cli_first_failure(code, beside_check(ds, BESIDE_LANES, true));
    report_unfinished(path);
    beside_report_unused(ds);
    return code;
}

/* ---- Command ---- */

static int parse_fraction(void *options, const char *text)
{
    char *end;
    double *fraction = &((verify_command_options *)options)->fraction;
    *fraction = real_read(text, &end);
    if (end == text || *end || !(*fraction > 0 && *fraction <= 1))
        return cli_usage("--fraction %s: must be a number above 0 and at most 1", text);
    return CLI_OK;
}

/* "7-9", or "7" for one. */
static int parse_segments(void *command_options, const char *text)
{
    verify_command_options *options = command_options;
    const char *dash = strchr(text, '-');
    const size_t n_first = dash ? (size_t)(dash - text) : strlen(text);
    uint64_t last = 0;
    if (!number_read_digits(text, n_first, &options->first_segment) ||
        (dash && !number_read_digits(dash + 1, strlen(dash + 1), &last)))
        return cli_usage("--segments %s: must be A-B, the numbers of two segments, or one number",
                         text);
    last = dash ? last : options->first_segment;
    if (last < options->first_segment || last - options->first_segment == UINT64_MAX)
        return cli_usage("--segments %s: the first number must not be above the second", text);
    options->n_segments = last - options->first_segment + 1;
    return CLI_OK;
}

static int check_names(void *options, const input_list *names)
{
    if (((verify_command_options *)options)->files && names->n_names > 1)
        return cli_usage("--files takes one dataset, because names are relative to its folder");
    return CLI_OK;
}

#define TARGET(field) offsetof(verify_command_options, field)
static const cli_option option_table[] = {
    {"threads", 'j', CLI_NUMBER, TARGET(n_threads), "N",
     .help = "number of reading threads, 1 to 64 [one per processor, at most 16]", .lowest = 1,
     .highest = 64},
    {"fraction", 0, CLI_CALL, 0, "F",
     .help =
         "read only this fraction of the token blocks, above 0 and at most 1; the index is always "
         "read completely [1]",
     .call = parse_fraction},
    {"seed", 0, CLI_NUMBER, TARGET(seed), "N",
     .help = "chooses the blocks that --fraction reads [0]"},
    {"segments", 0, CLI_CALL, 0, "A-B",
     .help = "of a joined dataset, read only the token files number A to B, counted from 0 in the "
             "order of 'tokmap info --segments', and their lanes; the index and the files beside "
             "P are always checked [all]",
     .call = parse_segments},
    {"files", 0, CLI_FLAG, TARGET(files),
     .help = "print only the names of files that are missing or damaged, one a line, relative to "
             "the folder of P, for programs that copy them again: rclone, s5cmd and hf "
             "(docs/recipes.md); reasons go to stderr, and the exit status is 4 if there is such a "
             "file; if it names the index, verify again after that was copied",
     .group = "output"},
    {"json", 0, CLI_FLAG, TARGET(json),
     .help = "print a JSON object for each dataset, one per line", .group = "output"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only damage, and no progress"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap verify [OPTION]... P...",
    .about = "Reads every byte of each dataset P, compares all checksums, checks the rules of the "
             "format, and lists each damaged block with its tokens and documents; then checks the "
             "late columns, the views and the lanes beside P. P may be a pattern such as 'data/*'.",
    .options = option_table,
    .notes = "Exit status: 0 if all datasets are OK, 4 if one is damaged, 75 if a file cannot be "
             "read. With several datasets, the first one that is not OK decides it.",
    .examples = "  tokmap verify data/train\n"
                "  tokmap verify --fraction 0.01 --seed 7 data/*.tmi\n"
                "  tokmap verify --files data/train >copy-again.txt\n",
    .operand = "dataset",
    .n_least = 1,
};

int verify_command(int argc, char **argv)
{
    verify_command_options options = {0};
    const each_command command = {&manual,
                                  &options,
                                  dataset_names_expand,
                                  &options.quiet,
                                  .check = check_names,
                                  .work = verify_one,
                                  .refuse = print_refused,
                                  .index_only = &options.files};
    return each_run(&command, argc, argv);
}

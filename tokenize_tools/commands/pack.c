/* pack.c - tokmap pack: the options and what they mean. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/commands.h"
#include "pack/option_rows.h"
#include "pack/run.h"

#define MAX_THREADS 1024

static int choose_resume(void *options, const char *value)
{
    (void)value;
    ((pack_options *)options)->restart = false;
    return CLI_OK;
}

/* ---- Options ---- */

#define TARGET(field) offsetof(pack_options, field)
static const cli_option bad_documents_row[] = {
    {"bad-documents", 0, CLI_TEXT, TARGET(bad_documents), "FILE",
     .help = "where --on-error collect saves bad documents [P.bad]"},
    {NULL},
};
static const cli_option output_row[] = {
    {.name = "Output"},
    {"output", 'o', CLI_TEXT, TARGET(output), "P", .help = "the dataset to write",
     .is_required = true},
    {NULL},
};
static const cli_option other_rows[] = {
    {"limit-docs", 0, CLI_NUMBER, TARGET(limit_documents), "N", .help = "stop after N documents",
     .lowest = 1, .highest = PACK_NO_LIMIT - 1},
    {"limit-tokens", 0, CLI_NUMBER, TARGET(limit_tokens), "N",
     .help = "stop after the document that reaches N tokens", .lowest = 1,
     .highest = PACK_NO_LIMIT - 1},
    {"force", 'f', CLI_FLAG, TARGET(force), .help = "replace datasets that already exist"},
    {"restart", 0, CLI_FLAG, TARGET(restart),
     .help = "discard what an interrupted run left, and start over"},
    {"resume", 0, CLI_CALL, 0, .help = "resume an interrupted run, if there is one [default]",
     .call = choose_resume},
    {"dry-run", 0, CLI_FLAG, TARGET(dry_run),
     .help = "show the inputs and an estimate of the result; write nothing"},
    {"report", 0, CLI_TEXT, TARGET(report), "FILE",
     .help = "write all counts, in total and for each input, as a JSON object"},
    {"json", 0, CLI_FLAG, TARGET(json),
     .help = "print the result as JSON, one line for each dataset"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print no progress, notes or result"},

    {.name = "Resources"},
    {"threads", 'j', CLI_NUMBER, TARGET(n_threads), "N",
     .help = "number of encoding threads; the result does not depend on it [one per processor]",
     .lowest = 1, .highest = MAX_THREADS},
    {NULL},
};
#undef TARGET
static const cli_option *const tables[] = {
    pack_document_rows, bad_documents_row, pack_token_rows, output_row,
    pack_split_row,     other_rows,        pack_memory_row, NULL};
static cli_option option_table[CLI_MAX_OPTIONS + 1];

static const cli_manual manual = {
    .usage = "tokmap pack [OPTION]... INPUT... -o P",
    .about = "Turns text into the dataset P, which is two files: P.bin holds the tokens, P.tmi is "
             "the index. An INPUT is a file, a folder (all files under it), a pattern such as "
             "'c/*.jsonl', @LIST (a file with an INPUT on each line, but not - or another list), "
             "or - for stdin. Files compressed with gzip or zstd, tar archives, Parquet and Arrow "
             "files are detected by their contents. "
             "Each file becomes one input of the dataset. To resume an interrupted run, run the "
             "same command again.",
    .options = option_table,
    .examples = "  tokmap pack book.txt notes.txt.zst -o data/train\n"
                "  tokmap pack 'corpus/*.jsonl.zst' --tokenizer tokenizer.json \\\n"
                "      --split valid=0.005 -o data/web\n"
                "  zcat corpus.gz | tokmap pack --lines - -o data/train\n",
    .operand = "input",
    .n_least = 1,
};

static int find_prefix(pack_options *options)
{
    int code = path_output_prefix(options->prefix, options->output, ".tmi");
    size_t longest = 0;
    for (size_t i = 0; i < options->n_splits; i++) {
        size_t n = strlen(options->splits[i].name) + 1;
        longest = n > longest ? n : longest;
    }
    if (code == CLI_OK && strlen(options->prefix) + longest >= PATH_PREFIX_BYTES)
        return cli_usage("-o: the path is too long");
    return code;
}

int pack_command(int argc, char **argv)
{
    pack_options options = pack_options_new();
    cli_join_options(option_table, tables);
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code == CLI_GO_ON) {
        options.utf8_given = cli_is_given("utf8");
        code = find_prefix(&options);
        if (code == CLI_OK)
            code = pack_options_check(&options);
        if (code == CLI_OK)
            code = pack_run(&options, argv + optind, (size_t)(argc - optind));
    }
    pack_options_free(&options);
    return code;
}

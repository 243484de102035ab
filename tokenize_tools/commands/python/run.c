/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the command lines of tokmap trace and tokmap report, which are about a run. */
#include "cli/options.h"
#include "commands/python/hand_over.h"
#include "commands/python/python_commands.h"

#define AS_FOR_THE_LOADER .help = "as for the Loader"
#define ABOUT_RUN                                                                                  \
    "The run is that of a ledger, which a Loader writes (ledger=...). Without a ledger, it is "    \
    "that of the datasets P, the shards of one source, and of the options of their Loader."

static const cli_word formats[] = {{"table"}, {"csv"}, {NULL}};

static const cli_option what_rows[] = {
    {"What to trace"},
    {"step", 0, CLI_NUMBER, 0, "N",
     .help = "a step of the optimizer, counted from 0 where the ledger begins", .group = "what"},
    {"sample", 0, CLI_NUMBER, 0, "G", .help = "one row", .group = "what"},
    {"document", 0, CLI_TEXT, 0, "P:N", .help = "document number N of dataset P", .group = "what"},
    {"input", 0, CLI_TEXT, 0, "FILE",
     .help = "the documents of this input; its name without folders is enough", .group = "what"},
    {"where", 0, CLI_TEXT, 0, "COLUMN=VALUE", .help = "the documents that kept this value",
     .group = "what"},
    {NULL},
};

static const cli_word groups[] = {{"source", 0, "each source of the mixture"},
                                  {"input", 0, "each file that was packed"},
                                  {"role", 0, "each role of tokens, such as of parts of chats"},
                                  {NULL}};

static const cli_option group_rows[] = {
    {"Groups"},
    {"by", 0, CLI_TEXT, 0, "WHAT", .help = "what makes a group; or the name of a column [source]",
     .words = groups, .group = "what"},
    {"host", 0, CLI_TEXT, 0, "COLUMN", .help = "the hosts of a column of URLs, in lower case",
     .group = "what"},
    {"top", 0, CLI_TEXT, 0, "N%", .help = "show only the largest N percent of the groups"},
    {NULL},
};

static const cli_option run_rows[] = {
    {"The run"},
    {"ledger", 0, CLI_TEXT, 0, "FILE",
     .help = "the ledger of the run; its datasets must be where its last line says"},
    {"all-attempts", 0, CLI_FLAG, 0, .help = "also show what the run gave up when it went back"},
    {"until", 0, CLI_NUMBER, 0, "SAMPLE", .help = "the sample that the run is at [where it closed]",
     .group = "end"},
    {"state", 0, CLI_TEXT, 0, "FILE",
     .help = "the run is where this state, a file of 128 bytes, was taken", .group = "end"},
    {"Without a ledger"},
    {"sequence-length", 0, CLI_NUMBER, 0, "N", AS_FOR_THE_LOADER},
    {"seed", 0, CLI_NUMBER, 0, "N", AS_FOR_THE_LOADER},
    {"shuffle", 0, CLI_TEXT, 0, "NAME", AS_FOR_THE_LOADER},
    {"windows", 0, CLI_TEXT, 0, "NAME", AS_FOR_THE_LOADER},
    {"max-epochs", 0, CLI_NUMBER, 0, "N", AS_FOR_THE_LOADER},
    {"n-ranks", 0, CLI_NUMBER, 0, "N", AS_FOR_THE_LOADER},
    {"batch-rows", 0, CLI_NUMBER, 0, "N", AS_FOR_THE_LOADER},
    {"order-of", 0, CLI_LIST, 0, "ID",
     .help = "for each dataset, the id that it had before it was redacted, or its own"},
    {"Output"},
    {NULL},
};

static const cli_option trace_output_rows[] = {
    {"rank", 0, CLI_NUMBER, 0, "R", .help = "show only the rows of this rank"},
    {"text", 0, CLI_TEXT, 0, "TOKENIZER",
     .help = "show the text of rows, with this tokenizer file"},
    {"json", 0, CLI_FLAG, 0, .help = "print the result as a JSON object"},
    {NULL},
};

static const cli_option report_output_rows[] = {
    {"format", 0, CLI_WORD, 0, "WORD", .help = "the form [table]", .words = formats,
     .group = "form"},
    {"json", 0, CLI_FLAG, 0, .help = "print the result as a JSON object", .group = "form"},
    {NULL},
};

static cli_option option_table[CLI_MAX_OPTIONS + 1]; /* of the command that runs */

static const cli_manual trace_manual = {
    .usage = "tokmap trace WHAT --ledger FILE [OPTION]...\n"
             "       tokmap trace WHAT P... --sequence-length N [OPTION]...",
    .about = "Shows what was in a step or a sample of a run, or in which steps a document was. "
             "WHAT is one of the options that say what to trace.\n\n" ABOUT_RUN,
    .options = option_table,
    .most_used = " step sample document input ledger until text json ",
    .examples = "  tokmap trace --ledger run.ledger --step 48211\n"
                "  tokmap trace --ledger run.ledger --document data/train:1234\n"
                "  tokmap trace data/train --sequence-length 4096 --n-ranks 8 \\\n"
                "      --batch-rows 4 --until 9000 --step 100\n",
    .operand = "dataset",
};

static const cli_manual report_manual = {
    .usage = "tokmap report --ledger FILE [OPTION]...\n"
             "       tokmap report P... --sequence-length N [OPTION]...",
    .about = "Shows how many tokens a run was trained on: how often one was a label, by source, "
             "by input, or by a value that its documents kept.\n\n" ABOUT_RUN,
    .options = option_table,
    .most_used = " by host top ledger until format json ",
    .examples = "  tokmap report --ledger run.ledger --by input\n"
                "  tokmap report --ledger run.ledger --host url --top 10%\n"
                "  tokmap report data/train --sequence-length 4096 --until 9000\n",
    .operand = "dataset",
};

int trace_command(int argc, char **argv)
{
    static const cli_option *const tables[] = {what_rows, run_rows, trace_output_rows, NULL};
    cli_join_options(option_table, tables);
    return hand_over(&trace_manual, argc, argv);
}

int report_command(int argc, char **argv)
{
    static const cli_option *const tables[] = {group_rows, run_rows, report_output_rows, NULL};
    cli_join_options(option_table, tables);
    return hand_over(&report_manual, argc, argv);
}

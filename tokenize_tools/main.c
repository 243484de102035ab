/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the tokmap command: picks the command and runs it. */
#include <string.h>

#include <xxhash.h>

#include "config.h"
#if HAVE_ZSTD
#include <zstd.h>
#endif
#if HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_ISAL
#include <isa-l.h>
#endif

#include "cli/cli.h"
#include "cli/complete.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "commands/python/python_commands.h"
#include "commands/text/text_commands.h"
#include "completion/completion.h"
#include "system/process.h"

#define FORMAT_VERSION 1

typedef struct command {
    const char *name;
    const char *summary; /* one line for `tokmap --help` */
    int (*run)(int argc, char **argv);
    const char *title; /* of the group that it begins; or NULL */
} command;

static const command commands[] = {
    {"try", "prove on your tokenizer and text what tokmap does", try_command, "To begin"},
    {"pack", "turn text into a dataset", pack_command, "To make datasets"},
    {"render", "turn chats into text, by the template of a tokenizer", render_command},
    {"preprocess", "pack as the preprocess_data.py of Megatron does", preprocess_command},
    {"import", "make a dataset from token files of other libraries", import_command},
    {"index", "make a dataset from a token file of another program, in place", index_command},
    {"plan", "cut a pack into cells, which many processes can pack", plan_command,
     "To pack on many machines"},
    {"status", "show how far the tasks of a plan are", status_command},
    {"join", "make one dataset from the cells of a plan, without copying", join_command},
    {"info", "show what a dataset contains", info_command, "To look at datasets"},
    {"cat", "print token ids or text", cat_command},
    {"verify", "check every byte of a dataset", verify_command},
    {"encode", "turn texts into token ids, one JSON line each", encode_command},
    {"decode", "turn token ids back into texts", decode_command},
    {"columns", "add values to the documents of a dataset, such as scores", columns_command,
     "To change or leave them"},
    {"scan", "find documents with the tokens of examples, such as a benchmark", scan_command},
    {"view", "choose documents by their values, for training", view_command},
    {"rows", "pack documents into rows with almost no padding", rows_command},
    {"merge", "make one dataset from several, by copying", merge_command},
    {"redact", "remove the contents of documents from a dataset", redact_command},
    {"export", "write a dataset in the format of another program", export_command},
    {"trace", "show what a step of a run contained, or when it had a document", trace_command,
     "To look back at a run"},
    {"report", "show how many tokens of each source a run was trained on", report_command},
    {"completion", "print the script with which a shell completes these words", completion_command,
     "To set up the shell"},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

static const cli_word *list_commands(void)
{
    static cli_word words[N_COMMANDS + 1];
    for (uint32_t i = 0; i < N_COMMANDS; i++)
        words[i] = (cli_word){commands[i].name, i, commands[i].summary, commands[i].title};
    return words;
}

static const cli_option option_table[] = {
    {"version", 0, CLI_FLAG, 0, .help = "print the version and the optional parts, and exit"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap COMMAND [OPTION]...",
    .about = "Makes, checks and reads token datasets for language model training. A dataset P is "
             "two files: P.bin holds the tokens and nothing else, P.tmi is the index.",
    .get_list = list_commands,
    .options = option_table,
    .notes = "'tokmap help COMMAND' or 'tokmap COMMAND --help' explains a command, 'tokmap COMMAND "
             "-h' its most used options. try, render, preprocess, import, trace and report need "
             "the Python package.",
    .examples = "  tokmap pack book.txt notes.txt.zst -o data/train\n"
                "  tokmap info data/train\n"
                "  tokmap cat data/train --documents 0 --text\n",
    .more = "More: 'man tokmap', 'man tokmap-COMMAND'; README.md and docs/ in the source.",
};

static int print_version(void)
{
    unsigned xxh = XXH_versionNumber();
    printf("tokmap %s\n", tokmap_version());
    printf("format  %d\n", FORMAT_VERSION);
    printf("xxHash  %u.%u.%u\n", xxh / 10000, xxh / 100 % 100, xxh % 100);
#if HAVE_ZSTD
    printf("zstd    %s\n", ZSTD_versionString());
#else
    puts("zstd    not in this build");
#endif
#if HAVE_ZLIB
    printf("zlib    %s\n", zlibVersion());
#else
    puts("zlib    not in this build");
#endif
#if HAVE_ISAL /* the version of the build; none can be asked for at run time */
    printf("ISA-L   %d.%d.%d\n", ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION);
#else
    puts("ISA-L   not in this build");
#endif
    return cli_finish();
}

static int refuse_command(const char *word)
{
    if (word[0] == '-')
        return cli_usage("unknown option %s", word);
    return cli_refuse_word("command", word, list_commands());
}

/* Whether --json is among the options. */
static bool wants_json(char **argv)
{
    while (*argv && strcmp(*argv, "--") != 0 && strcmp(*argv, "--json") != 0)
        argv++;
    return *argv && strcmp(*argv, "--json") == 0;
}

/* Completes the command, or leaves it to the command to complete its words. */
static int complete(int argc, char **argv)
{
    const bool is_help = argc > 2 && strcmp(argv[1], "help") == 0;
    const cli_word *word = argc > 2 ? cli_find_word(list_commands(), argv[1]) : NULL;
    if (word)
        return commands[word->value].run(argc - 1, argv + 1);
    return argc == 2 || is_help ? cli_complete(&manual, argc - is_help, argv + is_help) : CLI_OK;
}

int main(int argc, char **argv)
{
    if (!process_begin())
        return CLI_INTERNAL;
    if (argc < 2) {
        cli_print_help(stderr, &manual);
        return CLI_USAGE;
    }
    if (cli_begin_completion(argc, argv))
        return complete(argc - 1, argv + 1);
    static char help[] = "--help";
    if (strcmp(argv[1], "help") == 0) { /* 'tokmap help pack' is 'tokmap pack --help' */
        argv[1] = argc > 2 ? argv[2] : help;
        argv[2] = argc > 2 ? help : NULL;
    }
    const bool in_short = strcmp(argv[1], "-h") == 0;
    if (in_short || strcmp(argv[1], "--help") == 0) {
        (in_short ? cli_print_short_help : cli_print_help)(stdout, &manual);
        return cli_finish();
    }
    if (strcmp(argv[1], "--version") == 0)
        return print_version();
    const cli_word *word = cli_find_word(list_commands(), argv[1]);
    if (!word)
        return refuse_command(argv[1]);
    const bool as_json = wants_json(argv);
    cli_begin("tokmap", word->name);
    const int code = commands[word->value].run(argc - 1, argv + 1);
    if (code != CLI_OK && as_json)
        cli_print_error();
    return code;
}

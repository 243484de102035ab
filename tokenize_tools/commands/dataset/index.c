/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - tokmap index: options and output. The work is in adoption.c. */
#include <stddef.h>
#include <string.h>

#include "foreign/adoption.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/datasets.h"
#include "datasets/beside.h"
#include "system/output_file.h"

typedef struct index_options {
    adopt_request request;
    uint32_t reader;       /* the number in foreign_readers, from 1; 0: detect the format */
    const char *eod, *bos; /* as written, or NULL */
} index_options;

#define MAX_WORDS 16

static const cli_word *format_words(void)
{
    static cli_word words[MAX_WORDS + 1] = {
        {"auto", 0, "detect it by its contents and by the files beside it"}};
    for (uint32_t i = 0; i + 1 < MAX_WORDS && foreign_readers[i]; i++)
        words[i + 1] = (cli_word){foreign_readers[i]->name, i + 1, foreign_readers[i]->help};
    return words;
}

static const cli_word dtypes[] = {{"u16", 2, "2 bytes"}, {"u32", 4, "4 bytes"}, {NULL}};

static int parse_id(const char *option, const char *text, adopt_id *out)
{
    uint64_t id = TOKMAP_NO_ID;
    const bool is_id = text && strcmp(text, "none") != 0;
    if (is_id && (!cli_parse_u64(text, &id) || id >= TOKMAP_NO_ID))
        return cli_usage("--%s %s: must be a token id or none", option, text);
    *out = (adopt_id){text != NULL, (uint32_t)id};
    return CLI_OK;
}

#define TARGET(field) offsetof(index_options, field)
static const cli_option option_table[] = {
    {"format", 0, CLI_WORD, TARGET(reader), "NAME", .help = "the format of FILE [auto]",
     .get_words = format_words},
    {"dtype", 0, CLI_WORD, TARGET(request.token_bytes), "TYPE",
     .help = "the size of a token [what the file states]", .words = dtypes},
    {"eod", 0, CLI_TEXT, TARGET(eod), "ID|none",
     .help = "a document ends after each token ID; megatron and datatrove files list their "
             "documents, so ID is only recorded in the index [not known]"},
    {"bos", 0, CLI_TEXT, TARGET(bos), "ID|none",
     .help = "a document begins at each token ID; recorded in the same way [llmc: 50256 in u16 "
             "files, 128000 in u32 files]"},
    {"vocab-size", 0, CLI_NUMBER, TARGET(request.vocab_size), "N",
     .help = "refuse a file with an id of N or above, and record N in the index [not known]",
     .lowest = 1, .highest = UINT64_C(1) << 31},
    {"force", 'f', CLI_FLAG, TARGET(request.replace),
     .help = "replace an index that 'tokmap index' made, or that is damaged"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(request.json),
     .help = "print the result as JSON, one line for each FILE"},
    {"quiet", 'q', CLI_FLAG, TARGET(request.quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap index [OPTION]... FILE...",
    .about = "Makes datasets from token files of other programs, in place: reads each FILE once "
             "and writes an index (.tmi) beside it. No token is copied and FILE is not changed. "
             "FILE may be a pattern such as 'shards/*.bin'.\n\nraw and numpy files do not state "
             "where documents end: use --eod ID, --bos ID or --eod none.",
    .options = option_table,
    .notes = "If a FILE cannot be indexed, the others still are; the first failure decides the "
             "exit status.",
    .examples = "  tokmap index corpus_text_document.bin\n"
                "  tokmap index fineweb_train_*.bin\n"
                "  tokmap index train.bin --dtype u16 --eod 50256\n",
    .operand = "FILE",
    .n_least = 1,
};

int index_command(int argc, char **argv)
{
    index_options options = {0};
    adopt_request *request = &options.request;
    input_list names = {0};
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code != CLI_GO_ON)
        return code;
    request->reader = options.reader ? foreign_readers[options.reader - 1] : NULL;
    code = parse_id("eod", options.eod, &request->eod);
    if (code == CLI_OK)
        code = parse_id("bos", options.bos, &request->bos);
    if (code != CLI_OK)
        return code;
    if (request->eod.id != TOKMAP_NO_ID && request->bos.id != TOKMAP_NO_ID)
        return cli_usage("use only one of --eod ID and --bos ID");
    code = token_file_names_expand(&names, argv + optind, argc - optind, request->quiet);
    for (size_t i = 0, n = code == CLI_OK ? names.n_names : 0; i < n; i++) {
        const int one = adopt_file(names.names[i], request);
        if (one == CLI_OK && request->replace && !request->quiet)
            beside_report_replaced(names.names[i]);
        code = cli_first_failure(code, one);
    }
    input_list_free(&names);
    return code;
}

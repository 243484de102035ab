/* index.c - `tokmap index`: options and output. The work is in adoption.c. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/adoption.h"
#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/dataset_names.h"
#include "cli/paths.h"

static const char help[] =
    "Usage: tokmap index [OPTION]... FILE...\n"
    "\n"
    "Adopts token files of other programs in place: reads each FILE once and writes an index\n"
    "(.tmi) beside it. No token is copied and FILE is not changed. FILE may be a pattern such as\n"
    "'shards/*.bin'.\n"
    "\n"
    "Formats, told apart by their contents and by the files beside them:\n"
    "  megatron   X.bin and X.idx (uint16, int32); FILE is either of them\n"
    "  numpy      .npy with one dimension (uint16, uint32, int32)\n"
    "  llmc       llm.c and modded-nanogpt shards\n"
    "  datatrove  X.ds and X.ds.index; FILE is X.ds\n"
    "  raw        tokens and nothing else (nanoGPT, OLMo); needs --dtype. Where X.csv.gz stands\n"
    "             beside X.npy (OLMo), documents come from it unless --eod or --bos is given\n"
    "\n"
    "raw and numpy files do not say where documents end: give --eod ID, --bos ID or --eod none.\n"
    "\n"
    "Options:\n"
    "      --format NAME   one of the above, or auto [auto]\n"
    "      --dtype TYPE    u16 or u32 [what the file says]\n"
    "      --eod ID|none   a document ends after each token ID; with megatron and datatrove, "
    "which\n"
    "                      list their documents, ID is only noted in the index [not known]\n"
    "      --bos ID|none   a document begins at each token ID; noted likewise [llmc: 50256 in "
    "u16,\n"
    "                      128000 in u32 files]\n"
    "      --vocab-size N  refuse a file with an id of N or above, note N in the index [not "
    "known]\n"
    "  -f, --force         replace an index that already exists\n"
    "      --json          print one JSON object a line\n"
    "  -q, --quiet         no progress, no notes and no result line\n"
    "  -h, --help          print this and exit\n"
    "\n"
    "A FILE that cannot be adopted does not stop the next; the exit code is that of the first\n"
    "failure.\n"
    "\n"
    "Examples:\n"
    "  tokmap index corpus_text_document.bin\n"
    "  tokmap index fineweb_train_*.bin\n"
    "  tokmap index train.bin --dtype u16 --eod 50256\n";

enum {
    OPT_FORMAT = 256,
    OPT_DTYPE,
    OPT_EOD,
    OPT_BOS,
    OPT_VOCAB_SIZE,
    OPT_JSON
};

static const struct option options[] = {{"format", required_argument, NULL, OPT_FORMAT},
                                        {"dtype", required_argument, NULL, OPT_DTYPE},
                                        {"eod", required_argument, NULL, OPT_EOD},
                                        {"bos", required_argument, NULL, OPT_BOS},
                                        {"vocab-size", required_argument, NULL, OPT_VOCAB_SIZE},
                                        {"force", no_argument, NULL, 'f'},
                                        {"json", no_argument, NULL, OPT_JSON},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

typedef struct index_options {
    adopt_request request;
    bool json, help;
} index_options;

static int parse_format(const char *text, const foreign_reader **out)
{
    char words[128] = "";
    *out = foreign_reader_named(text);
    if (*out || strcmp(text, "auto") == 0)
        return CLI_OK;
    for (size_t i = 0, n = 0; foreign_readers[i] && n < sizeof words; i++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s %s",
                              foreign_readers[i + 1] ? "," : " or", foreign_readers[i]->name);
    return cli_usage("--format %s: must be auto%s", text, words);
}

static int parse_dtype(const char *text, uint32_t *out)
{
    *out = strcmp(text, "u16") == 0 ? 2 : strcmp(text, "u32") == 0 ? 4 : 0;
    return *out ? CLI_OK : cli_usage("--dtype %s: must be u16 or u32", text);
}

static int parse_id(const char *option, const char *text, adopt_id *out)
{
    uint64_t id = 0;
    out->is_given = true;
    out->is_none = strcmp(text, "none") == 0;
    if (!out->is_none && (!cli_parse_u64(text, &id) || id >= TOKMAP_NO_ID))
        return cli_usage("%s %s: not a token id", option, text);
    out->id = (uint32_t)id;
    return CLI_OK;
}

static int parse_vocab_size(const char *text, uint64_t *out)
{
    if (!cli_parse_u64(text, out) || *out < 1 || *out > 1ULL << 31)
        return cli_usage("--vocab-size %s: not a number from 1 to 2147483648", text);
    return CLI_OK;
}

static int parse_option(int option, char **argv, index_options *out)
{
    adopt_request *request = &out->request;
    switch (option) {
    case OPT_FORMAT:
        return parse_format(optarg, &request->reader);
    case OPT_DTYPE:
        return parse_dtype(optarg, &request->token_bytes);
    case OPT_EOD:
        return parse_id("--eod", optarg, &request->eod);
    case OPT_BOS:
        return parse_id("--bos", optarg, &request->bos);
    case OPT_VOCAB_SIZE:
        return parse_vocab_size(optarg, &request->vocab_size);
    case OPT_JSON:
        out->json = true;
        return CLI_OK;
    case 'f':
        request->replace = true;
        return CLI_OK;
    case 'q':
        request->quiet = true;
        return CLI_OK;
    case 'h':
        out->help = true;
        return CLI_OK;
    default:
        return cli_bad_option(option, argv);
    }
}

/* One FILE. */
static int index_file(const char *path, const index_options *out)
{
    adopt_result result;
    int code = adopt_file(path, &out->request, &result);
    if (code != CLI_OK || (out->request.quiet && !out->json))
        return code;
    return cli_print_result(result.prefix, result.reader->name, out->json);
}

int index_command(int argc, char **argv)
{
    index_options out = {0};
    int option, code;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":fqh", options, NULL)) != -1) {
        code = parse_option(option, argv, &out);
        if (code != CLI_OK)
            return code;
    }
    if (out.help)
        return cli_help(help);
    const adopt_request *request = &out.request;
    if (request->eod.is_given && request->bos.is_given && !request->eod.is_none &&
        !request->bos.is_none)
        return cli_usage("--eod and --bos: a document has one kind of border, give one of them");
    if (optind == argc)
        return cli_usage("no FILE given");
    dataset_names names;
    int first_failure = token_file_names_expand(&names, argv + optind, argc - optind);
    size_t n = first_failure == CLI_OK ? names.n : 0;
    for (size_t i = 0; i < n; i++) {
        code = index_file(names.paths[i], &out);
        first_failure = first_failure == CLI_OK ? code : first_failure;
    }
    dataset_names_free(&names);
    return first_failure;
}

/* pack.c - tokmap pack: the options and what they mean. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "pack/options.h"
#include "pack/run.h"
#include "system/process.h"

static const char help[] =
    "Usage: tokmap pack [OPTION]... INPUT... -o P\n"
    "\n"
    "Turns text into the dataset P (P.bin and P.tmi). An INPUT is a file, plain or compressed "
    "with\n"
    "gzip or zstd, whatever its name; a folder: all files in it; a pattern such as 'c/*.jsonl';\n"
    "@LIST: a file with an INPUT on each line, except - and other lists; - is stdin. Each file\n"
    "becomes one source of the dataset. To resume an interrupted run, run the same command "
    "again.\n"
    "\n"
    "Documents:\n"
    "      --format WORD         text: a file is a document; lines: each line is one; jsonl: each\n"
    "                            line is a JSON object; auto: jsonl if the first line is an\n"
    "                            object with the field, else text; auto refuses files that look\n"
    "                            like neither: archives, images, JSON arrays, UTF-16 ... [auto]\n"
    "      --lines               the same as --format lines\n"
    "      --field PATH          jsonl: the field that holds the text, such as meta.body [text]\n"
    "      --separator TEXT      text: TEXT ends a document within a file; it may contain \\n, "
    "\\r,\n"
    "                            \\t, \\0 and \\\\\n"
    "      --utf8 WORD           bytes that are not UTF-8: replace puts U+FFFD in their place;\n"
    "                            error makes the document a bad one; raw keeps them, for\n"
    "                            tokenizers that work on bytes [replace]\n"
    "      --on-error WORD       at a bad document: fail; skip leaves it out; collect leaves it\n"
    "                            out and saves it unchanged to a file [fail]\n"
    "      --bad-documents FILE  where --on-error collect saves bad documents [P.bad]\n"
    "\n"
    "Tokens:\n"
    "      --tokenizer FILE      tokenizer.json, vocab.json beside its merges.txt, .tiktoken,\n"
    "                            tokenizer.model or tekken.json; 'bytes': a byte is its own id,\n"
    "                            256 ends a document [bytes]\n" TOKENIZER_FILE_HELP
    "      --specials WORD       special tokens that appear in the text: text treats them as\n"
    "                            plain text, match replaces them with their ids, drop leaves\n"
    "                            them out, error makes the document a bad one (which cannot be\n"
    "                            collected) [text]\n"
    "      --eod TOKEN           the token that ends each document: an id, even one that the\n"
    "                            tokenizer does not have; the text of a token; none; or auto:\n"
    "                            the token that the tokenizer's files name [auto]\n"
    "      --bos TOKEN           the token that begins each document, likewise [none]\n"
    "\n"
    "Output:\n"
    "  -o, --output P            the dataset to write\n"
    "      --split NAME=F        put this fraction of the documents, chosen by their text, into\n"
    "                            the dataset P-NAME; may be given several times\n"
    "      --limit-docs N        stop after N documents\n"
    "      --limit-tokens N      stop after the document that reaches N tokens\n"
    "  -f, --force               replace datasets that already exist\n"
    "      --restart             discard what an interrupted run left, and start over\n"
    "      --resume              resume an interrupted run, if there is one [default]\n"
    "      --dry-run             show what would be done, with an estimate; write nothing\n"
    "      --report FILE         write all counts, in total and by input, as a JSON object\n"
    "      --json                print the result as JSON, one line for each dataset\n"
    "  -q, --quiet               no progress, no notes and no result line\n"
    "\n"
    "Work:\n"
    "  -j, --threads N           encoding threads; the result does not depend on N [one for each\n"
    "                            processor]\n"
    "      --memory SIZE         memory for each of them, besides the vocabulary [64M]\n"
    "  -h, --help                print this and exit\n"
    "\n"
    "Examples:\n"
    "  tokmap pack book.txt notes.txt.zst -o data/train\n"
    "  tokmap pack 'corpus/*.jsonl.zst' --tokenizer tokenizer.json --split valid=0.005 -o "
    "data/web\n"
    "  zcat corpus.gz | tokmap pack --lines - -o data/train\n";

#define MAX_THREADS 1024
#define MIN_MEMORY ((uint64_t)8000000)
#define MAX_MEMORY ((uint64_t)1000000000000)
#define DEFAULT_MEMORY ((uint64_t)64000000)

/* ---- Words ---- */

/* The place of the word in the list, or -1. */
static int find_word(const char *word, const char *const *words, size_t n_words)
{
    for (size_t i = 0; i < n_words; i++) {
        if (strcmp(word, words[i]) == 0)
            return (int)i;
    }
    return -1;
}

static int parse_format(pack_options *options, const char *word)
{
    int i = find_word(word, pack_formats, PACK_N_FORMATS);
    if (i < 0)
        return cli_usage("--format %s: must be auto, text, lines or jsonl", word);
    options->format = (corpus_format)i;
    return CLI_OK;
}

static int parse_utf8(pack_options *options, const char *word)
{
    int i = find_word(word, pack_utf8_words, PACK_N_UTF8_WORDS);
    if (i < 0)
        return cli_usage("--utf8 %s: must be replace, error or raw", word);
    options->utf8 = (corpus_utf8)i;
    options->utf8_given = true;
    return CLI_OK;
}

static int parse_on_error(pack_options *options, const char *word)
{
    int i = find_word(word, pack_on_error_words, PACK_N_ON_ERROR_WORDS);
    if (i < 0)
        return cli_usage("--on-error %s: must be fail, skip or collect", word);
    options->on_error = (corpus_on_error)i;
    return CLI_OK;
}

/* ---- Values ---- */

/* With \n, \r, \t, \0 and \\ as they are written in C. */
static int parse_separator(pack_options *options, const char *text)
{
    static const char letters[] = "nrt0\\", meanings[] = "\n\r\t\0\\";
    char *out = malloc(strlen(text) + 1);
    if (!out)
        return cli_no_memory();
    size_t n = 0;
    const char *letter = letters;
    for (const char *p = text; *p && letter; p++) {
        if (*p != '\\') {
            out[n++] = *p;
            continue;
        }
        p++;
        letter = *p ? strchr(letters, *p) : NULL;
        if (letter)
            out[n++] = meanings[letter - letters];
    }
    free(options->separator);
    options->separator = out;
    options->separator_bytes = n;
    if (!letter)
        return cli_usage(
            "--separator %s: a backslash must be followed by n, r, t, 0 or another backslash",
            text);
    return n ? CLI_OK : cli_usage("--separator: is empty");
}

static bool is_split_name(const char *name, size_t n_bytes)
{
    static const char letters[] =
        "0123456789_-.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return n_bytes > 0 && n_bytes <= PACK_MAX_SPLIT_NAME && strspn(name, letters) >= n_bytes &&
           strspn(name, ".") < n_bytes;
}

/* Plain digits with a point; 0 when it is something else. */
static double parse_fraction(const char *text)
{
    char *end;
    double fraction = strtod(text, &end);
    bool plain = strspn(text, "0123456789.") == strlen(text) && end != text && !*end;
    return plain ? fraction : 0;
}

static int parse_split(pack_options *options, const char *text)
{
    size_t n_name = strcspn(text, "=");
    if (options->n_splits == PACK_MAX_SPLITS)
        return cli_usage("--split: more than %d", PACK_MAX_SPLITS);
    if (!text[n_name] || !is_split_name(text, n_name))
        return cli_usage("--split %s: must be NAME=FRACTION, where the name is at most %d of A-Z, "
                         "a-z, 0-9, _, - and ., and not only of dots",
                         text, PACK_MAX_SPLIT_NAME);
    pack_split *split = &options->splits[options->n_splits];
    memcpy(split->name, text, n_name);
    split->name[n_name] = '\0';
    split->fraction = parse_fraction(text + n_name + 1);
    if (split->fraction <= 0 || split->fraction >= 1)
        return cli_usage("--split %s: the fraction must be a number between 0 and 1, such as 0.01",
                         text);
    double before = 0;
    for (size_t i = 0; i < options->n_splits; i++) {
        before += options->splits[i].fraction;
        if (strcmp(options->splits[i].name, split->name) == 0)
            return cli_usage("--split %s: the name is given twice", text);
    }
    if (before + split->fraction >= 1)
        return cli_usage("--split %s: leaves nothing for P itself", text);
    split->below = (uint64_t)((before + split->fraction) * 18446744073709551616.0);
    options->n_splits++;
    return CLI_OK;
}

static int parse_limit(uint64_t *limit, const char *name, const char *text)
{
    if (!cli_parse_u64(text, limit) || *limit == 0 || *limit == PACK_NO_LIMIT)
        return cli_usage("%s %s: must be a whole number above 0", name, text);
    return CLI_OK;
}

static int parse_threads(pack_options *options, const char *text)
{
    uint64_t n;
    if (!cli_parse_u64(text, &n) || n == 0 || n > MAX_THREADS)
        return cli_usage("--threads %s: must be 1 to %d", text, MAX_THREADS);
    options->n_threads = (unsigned)n;
    return CLI_OK;
}

static int parse_memory(pack_options *options, const char *text)
{
    if (!cli_parse_u64(text, &options->memory) || options->memory < MIN_MEMORY ||
        options->memory > MAX_MEMORY)
        return cli_usage("--memory %s: must be a size from 8M to 1T", text);
    return CLI_OK;
}

/* ---- Options ---- */

enum { /* those without a letter */
    OPT_TOKENIZER = 256,
    OPT_PATTERN,
    OPT_SPECIALS_FILE,
    OPT_SPECIALS,
    OPT_EOD,
    OPT_BOS,
    OPT_FORMAT,
    OPT_LINES,
    OPT_FIELD,
    OPT_SEPARATOR,
    OPT_UTF8,
    OPT_ON_ERROR,
    OPT_BAD_DOCUMENTS,
    OPT_SPLIT,
    OPT_LIMIT_DOCS,
    OPT_LIMIT_TOKENS,
    OPT_RESTART,
    OPT_RESUME,
    OPT_DRY_RUN,
    OPT_REPORT,
    OPT_JSON,
    OPT_MEMORY
};

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"tokenizer", required_argument, NULL, OPT_TOKENIZER},
    {"pattern", required_argument, NULL, OPT_PATTERN},
    {"specials-file", required_argument, NULL, OPT_SPECIALS_FILE},
    {"specials", required_argument, NULL, OPT_SPECIALS},
    {"eod", required_argument, NULL, OPT_EOD},
    {"bos", required_argument, NULL, OPT_BOS},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"lines", no_argument, NULL, OPT_LINES},
    {"field", required_argument, NULL, OPT_FIELD},
    {"separator", required_argument, NULL, OPT_SEPARATOR},
    {"utf8", required_argument, NULL, OPT_UTF8},
    {"on-error", required_argument, NULL, OPT_ON_ERROR},
    {"bad-documents", required_argument, NULL, OPT_BAD_DOCUMENTS},
    {"split", required_argument, NULL, OPT_SPLIT},
    {"limit-docs", required_argument, NULL, OPT_LIMIT_DOCS},
    {"limit-tokens", required_argument, NULL, OPT_LIMIT_TOKENS},
    {"force", no_argument, NULL, 'f'},
    {"restart", no_argument, NULL, OPT_RESTART},
    {"resume", no_argument, NULL, OPT_RESUME},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"report", required_argument, NULL, OPT_REPORT},
    {"json", no_argument, NULL, OPT_JSON},
    {"quiet", no_argument, NULL, 'q'},
    {"threads", required_argument, NULL, 'j'},
    {"memory", required_argument, NULL, OPT_MEMORY},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

/* Options that are a switch. false: it is none of them. */
static bool parse_switch(int c, pack_options *options)
{
    switch (c) {
    case OPT_LINES:
        options->format = CORPUS_LINES;
        return true;
    case 'f':
        options->force = true;
        return true;
    case OPT_RESTART:
    case OPT_RESUME:
        options->restart = c == OPT_RESTART;
        return true;
    case OPT_DRY_RUN:
        options->dry_run = true;
        return true;
    case OPT_JSON:
        options->json = true;
        return true;
    case 'q':
        options->quiet = true;
        return true;
    default:
        return false;
    }
}

/* Where the value of the option goes as it stands, or NULL. */
static const char **plain_value(int c, pack_options *options)
{
    switch (c) {
    case 'o':
        return &options->output;
    case OPT_TOKENIZER:
        return &options->tokenizer.name;
    case OPT_PATTERN:
        return &options->tokenizer.pattern;
    case OPT_SPECIALS_FILE:
        return &options->tokenizer.specials;
    case OPT_EOD:
        return &options->eod;
    case OPT_BOS:
        return &options->bos;
    case OPT_FIELD:
        return &options->field;
    case OPT_BAD_DOCUMENTS:
        return &options->bad_documents;
    case OPT_REPORT:
        return &options->report;
    default:
        return NULL;
    }
}

static int parse_option(int c, pack_options *options, char **argv)
{
    const char **plain = plain_value(c, options);
    if (plain) {
        *plain = optarg;
        return *optarg ? CLI_OK : cli_usage("option %s needs a value", argv[optind - 2]);
    }
    switch (c) {
    case OPT_SPECIALS:
        if (!tokenizer_specials_policy(optarg, &options->specials))
            return cli_usage("--specials %s: must be text, match, error or drop", optarg);
        return CLI_OK;
    case OPT_FORMAT:
        return parse_format(options, optarg);
    case OPT_SEPARATOR:
        return parse_separator(options, optarg);
    case OPT_UTF8:
        return parse_utf8(options, optarg);
    case OPT_ON_ERROR:
        return parse_on_error(options, optarg);
    case OPT_SPLIT:
        return parse_split(options, optarg);
    case OPT_LIMIT_DOCS:
        return parse_limit(&options->limit_documents, "--limit-docs", optarg);
    case OPT_LIMIT_TOKENS:
        return parse_limit(&options->limit_tokens, "--limit-tokens", optarg);
    case 'j':
        return parse_threads(options, optarg);
    case OPT_MEMORY:
        return parse_memory(options, optarg);
    default:
        return parse_switch(c, options) ? CLI_OK : cli_bad_option(c, argv);
    }
}

/* Options that do not go together. */
static int check_options(const pack_options *options)
{
    if (options->bad_documents && options->on_error != ON_ERROR_COLLECT)
        return cli_usage("--bad-documents is for --on-error collect");
    if (options->specials == SPECIALS_ERROR && options->on_error == ON_ERROR_COLLECT)
        return cli_usage(
            "--specials error does not work with --on-error collect, as the line is gone when "
            "the token is found: use --on-error skip or fail");
    if (options->separator && options->format != CORPUS_TEXT && options->format != CORPUS_AUTO)
        return cli_usage("--separator is for --format text");
    return CLI_OK;
}

static int find_prefix(pack_options *options)
{
    if (!options->output)
        return cli_usage("no output given: -o P");
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

static int run(pack_options *options, int argc, char **argv)
{
    if (optind == argc)
        return cli_usage("no input given");
    int code = find_prefix(options);
    if (code == CLI_OK)
        code = check_options(options);
    if (code == CLI_OK)
        code = pack_run(options, argv + optind, (size_t)(argc - optind));
    return code;
}

int pack_command(int argc, char **argv)
{
    pack_options options = {
        .tokenizer = {.name = "bytes"},
        .eod = "auto",
        .bos = "none",
        .field = "text",
        .limit_documents = PACK_NO_LIMIT,
        .limit_tokens = PACK_NO_LIMIT,
        .n_threads = process_processors(),
        .memory = DEFAULT_MEMORY,
    };
    int code = CLI_OK;
    opterr = 0;
    for (int c;
         code == CLI_OK && (c = getopt_long(argc, argv, ":o:fqj:h", long_options, NULL)) != -1;) {
        if (c == 'h') {
            free(options.separator);
            return cli_help(help);
        }
        code = parse_option(c, &options, argv);
    }
    if (code == CLI_OK)
        code = run(&options, argc, argv);
    free(options.separator);
    return code;
}

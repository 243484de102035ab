/* pack_command.c - tokmap pack: text to a dataset, in one pass and with bounded memory. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tokenizer/bytes_tokenizer.h"
#include "cli.h"
#include "corpus/input.h"
#include "paths.h"
#include "tokmap_writer.h"

static const char help[] =
    "Usage: tokmap pack [OPTION]... INPUT... -o P\n"
    "\n"
    "Turns text into the dataset P (P.bin and P.tmi). An INPUT is a file, plain or compressed "
    "with\n"
    "gzip or zstd, whatever its name; - is stdin. Each INPUT is one document and becomes one\n"
    "source of the dataset. Each document ends with the id for the end of a document.\n"
    "\n"
    "Options:\n"
    "  -o, --output P        the dataset to write\n"
    "      --tokenizer NAME  the tokenizer; 'bytes': a byte is its own id, 256 ends a document\n"
    "                        [bytes]\n"
    "      --lines           each line is a document, without its newline; an empty line is an\n"
    "                        empty document, a carriage return is kept [an INPUT is a document]\n"
    "  -f, --force           replace a dataset P that is already there\n"
    "      --json            print the result as a JSON object\n"
    "  -q, --quiet           no progress and no result line\n"
    "  -h, --help            print this and exit\n"
    "\n"
    "Examples:\n"
    "  tokmap pack book.txt notes.txt.zst -o data/train\n"
    "  zcat corpus.gz | tokmap pack --lines - -o data/train\n";

#define TEXT_BYTES ((size_t)64 * 1024)

typedef struct pack_options {
    const char *output;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
    bool lines, force, json, quiet;
} pack_options;

typedef struct pack_state {
    const pack_options *options;
    tokmap_writer *writer;
    cli_progress progress;
    uint64_t stored_done, stored_total; /* bytes of the inputs; total 0: not known */
    uint8_t text[TEXT_BYTES];
    uint32_t ids[TEXT_BYTES];
} pack_state;

/* ---- Documents ---- */

static tokmap_status append_text(pack_state *s, const uint8_t *text, size_t n_bytes,
                                 tokmap_error *err)
{
    bytes_tokenizer_encode(text, n_bytes, s->ids);
    return tokmap_writer_append(s->writer, s->ids, n_bytes, err);
}

static tokmap_status end_document(pack_state *s, tokmap_error *err)
{
    const uint32_t eod = BYTES_TOKENIZER_EOD;
    tokmap_status status = tokmap_writer_append(s->writer, &eod, 1, err);
    return status == TOKMAP_OK ? tokmap_writer_end_document(s->writer, err) : status;
}

/* Sets *open to whether the last line has no newline yet. */
static tokmap_status append_lines(pack_state *s, size_t n_bytes, bool *open, tokmap_error *err)
{
    const uint8_t *at = s->text, *end = s->text + n_bytes;
    while (at < end) {
        const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
        tokmap_status status = append_text(s, at, (size_t)((newline ? newline : end) - at), err);
        if (status == TOKMAP_OK && newline)
            status = end_document(s, err);
        if (status != TOKMAP_OK)
            return status;
        *open = newline == NULL;
        at = newline ? newline + 1 : end;
    }
    return TOKMAP_OK;
}

/* ---- Inputs ---- */

static int input_failed(pack_state *s, const input_error *err)
{
    cli_progress_clear(&s->progress);
    int code = err->sys_errno ? cli_errno_exit_code(err->sys_errno) : CLI_INPUT;
    return cli_error(code, "%s", err->text);
}

static int writer_failed(pack_state *s, const tokmap_error *err)
{
    cli_progress_clear(&s->progress);
    return cli_fail(err);
}

static int pack_opened(pack_state *s, input *in, const char *name)
{
    input_error in_err;
    tokmap_error err;
    tokmap_status status = TOKMAP_OK;
    bool open = !s->options->lines;
    for (;;) {
        ssize_t n = input_read(in, s->text, sizeof s->text, &in_err);
        if (n < 0)
            return input_failed(s, &in_err);
        if (n == 0)
            break;
        status = s->options->lines ? append_lines(s, (size_t)n, &open, &err)
                                   : append_text(s, s->text, (size_t)n, &err);
        if (status != TOKMAP_OK)
            return writer_failed(s, &err);
        cli_progress_update(&s->progress, s->stored_done + input_stored_bytes(in), s->stored_total);
    }
    if (open)
        status = end_document(s, &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_end_source(s->writer, name, input_stored_bytes(in),
                                          input_checksum(in), &err);
    s->stored_done += input_stored_bytes(in);
    return status == TOKMAP_OK ? CLI_OK : writer_failed(s, &err);
}

static int pack_input(pack_state *s, const char *name)
{
    input_error err;
    input *in = input_open(name, &err);
    if (!in)
        return input_failed(s, &err);
    int code = pack_opened(s, in, name);
    input_close(in);
    return code;
}

/* A name that is wrong should be told now and not after hours of work. */
static int look_at_inputs(const pack_options *options, char **names, size_t n_names,
                          uint64_t *total)
{
    struct stat st;
    bool size_known = true, stdin_used = false;
    *total = 0;
    for (size_t i = 0; i < n_names; i++) {
        const char *name = names[i];
        bool is_stdin = strcmp(name, "-") == 0;
        if (is_stdin && stdin_used)
            return cli_usage("stdin (-) can be read only once");
        stdin_used = stdin_used || is_stdin;
        if (is_stdin ? fstat(STDIN_FILENO, &st) != 0
                     : stat(name, &st) != 0 || access(name, R_OK) != 0)
            return cli_error(cli_errno_exit_code(errno), "%s: %s", name, strerror(errno));
        if (S_ISDIR(st.st_mode))
            return cli_error(CLI_INPUT, "%s: is a folder", name);
        int code = path_check_apart(&st, options->prefix);
        if (code != CLI_OK)
            return code;
        size_known = size_known && !is_stdin && S_ISREG(st.st_mode);
        *total += (uint64_t)st.st_size;
    }
    if (!size_known)
        *total = 0;
    return CLI_OK;
}

/* ---- Command ---- */

static tokmap_status set_metadata(pack_state *s, tokmap_error *err)
{
    char json[256];
    int n = snprintf(json, sizeof json,
                     "{\"created_by\": \"tokmap %s\", \"tokenizer\": {\"name\": \"%s\"}, "
                     "\"options\": {\"lines\": %s}}",
                     tokmap_version(), BYTES_TOKENIZER_NAME, s->options->lines ? "true" : "false");
    return tokmap_writer_set_metadata(s->writer, json, (size_t)n, err);
}

static int write_dataset(pack_state *s, char **names, size_t n_names)
{
    tokmap_error err;
    for (size_t i = 0; i < n_names; i++) {
        int code = pack_input(s, names[i]);
        if (code != CLI_OK)
            return code;
    }
    tokmap_status status = set_metadata(s, &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_finish(s->writer, &err);
    cli_progress_clear(&s->progress);
    return status == TOKMAP_OK ? CLI_OK : cli_fail(&err);
}

static int pack_all(char **names, size_t n_names, const pack_options *options)
{
    pack_state *s = calloc(1, sizeof *s);
    tokmap_error err;
    if (!s)
        return cli_no_memory();
    s->options = options;
    int code = look_at_inputs(options, names, n_names, &s->stored_total);
    if (code == CLI_OK) {
        tokmap_writer_options writer_options = {
            .struct_size = sizeof writer_options,
            .vocab_size = BYTES_TOKENIZER_VOCAB_SIZE,
            .eod_id = BYTES_TOKENIZER_EOD,
            .replace = options->force,
        };
        if (tokmap_writer_open(&s->writer, options->output, &writer_options, &err) != TOKMAP_OK)
            code = cli_fail(&err);
    }
    if (code == CLI_OK) {
        cli_progress_begin(&s->progress, "pack", options->quiet);
        code = write_dataset(s, names, n_names);
    }
    tokmap_writer_close(s->writer);
    free(s);
    if (code != CLI_OK || (options->quiet && !options->json))
        return code;
    return cli_print_result(options->prefix, NULL, options->json);
}

static int choose_tokenizer(const char *name)
{
    if (strcmp(name, BYTES_TOKENIZER_NAME) == 0)
        return CLI_OK;
    return cli_error(CLI_INPUT, "tokenizer %s: not in this version, which has only '%s'", name,
                     BYTES_TOKENIZER_NAME);
}

static int parse_option(int c, pack_options *options, char **argv)
{
    switch (c) {
    case 'o':
        options->output = optarg;
        return CLI_OK;
    case 't':
        return choose_tokenizer(optarg);
    case 'l':
        options->lines = true;
        return CLI_OK;
    case 'f':
        options->force = true;
        return CLI_OK;
    case 'J':
        options->json = true;
        return CLI_OK;
    case 'q':
        options->quiet = true;
        return CLI_OK;
    default:
        return cli_bad_option(c, argv);
    }
}

int pack_command(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"output", required_argument, NULL, 'o'}, {"tokenizer", required_argument, NULL, 't'},
        {"lines", no_argument, NULL, 'l'},        {"force", no_argument, NULL, 'f'},
        {"json", no_argument, NULL, 'J'},         {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    pack_options options = {0};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":o:fqh", long_options, NULL)) != -1;) {
        if (c == 'h')
            return cli_help(help);
        int code = parse_option(c, &options, argv);
        if (code != CLI_OK)
            return code;
    }
    if (optind == argc)
        return cli_usage("no input given");
    if (!options.output || !*options.output)
        return cli_usage("no output given: -o P");
    int code = path_output_prefix(options.prefix, options.output, ".tmi");
    if (code == CLI_OK)
        code = path_check_all(argv + optind, argc - optind);
    if (code != CLI_OK)
        return code;
    return pack_all(argv + optind, (size_t)(argc - optind), &options);
}

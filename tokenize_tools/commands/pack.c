/* pack.c - tokmap pack: the options and what they mean. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/commands.h"
#include "pack/options.h"
#include "pack/run.h"
#include "system/process.h"
#include "tokenizer/choice/tokenizer_choice.h"

#define MAX_THREADS 1024
#define MIN_MEMORY ((uint64_t)8000000)
#define MAX_MEMORY ((uint64_t)1000000000000)
#define DEFAULT_MEMORY ((uint64_t)64000000)

/* ---- Values ---- */

/* With \n, \r, \t, \0 and \\ as they are written in C. */
static int parse_separator(void *target, const char *text)
{
    pack_options *options = target;
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
    return CLI_OK;
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

static int parse_split(void *target, const char *text)
{
    pack_options *options = target;
    size_t n_name = strcspn(text, "=");
    if (options->n_splits == PACK_MAX_SPLITS)
        return cli_usage("--split: at most %d are allowed", PACK_MAX_SPLITS);
    if (!text[n_name] || !is_split_name(text, n_name))
        return cli_usage("--split %s: must be NAME=FRACTION; NAME has at most %d of the "
                         "characters A-Z, a-z, 0-9, _, - and ., and not only dots",
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
        return cli_usage("--split %s: the fractions must add up to less than 1", text);
    split->below = (uint64_t)((before + split->fraction) * 18446744073709551616.0);
    options->n_splits++;
    return CLI_OK;
}

static int choose_lines(void *options, const char *value)
{
    (void)value;
    ((pack_options *)options)->format = CORPUS_LINES;
    return CLI_OK;
}

static int choose_resume(void *options, const char *value)
{
    (void)value;
    ((pack_options *)options)->restart = false;
    return CLI_OK;
}

/* ---- Options ---- */

#define TARGET(field) offsetof(pack_options, field)
static const cli_option option_table[] = {
    {.name = "Documents"},
    {"format", 0, CLI_WORD, TARGET(format), "WORD", .help = "what the files hold [auto]",
     .words = pack_formats},
    {"lines", 0, CLI_CALL, 0, .help = "the same as --format lines", .call = choose_lines},
    {"field", 0, CLI_TEXT, TARGET(field), "PATH",
     .help =
         "for jsonl, parquet and arrow: the field or column that holds the text, such as meta.body "
         "[text]"},
    {"where", 0, CLI_TEXT, TARGET(where_text), "EXPR",
     .help = "pack only records for which EXPR holds, such as 'score >= 3 and lang == \"en\"'"},
    {"meta", 0, CLI_TEXT, TARGET(meta), "FIELD,...",
     .help = "keep these fields of each document in the dataset, such as score,lang; @row is the "
             "number of the record in its input"},
    {"separator", 0, CLI_CALL, 0, "TEXT",
     .help = "for text: TEXT ends a document within a file; it may contain \\n, \\r, \\t, \\0 "
             "and \\\\ [none]",
     .call = parse_separator},
    {"utf8", 0, CLI_WORD, TARGET(utf8), "WORD",
     .help = "what to do with bytes that are not valid UTF-8 [replace]", .words = pack_utf8_words},
    {"on-error", 0, CLI_WORD, TARGET(on_error), "WORD",
     .help = "what to do with a bad document [fail]", .words = pack_on_error_words},
    {"bad-documents", 0, CLI_TEXT, TARGET(bad_documents), "FILE",
     .help = "where --on-error collect saves bad documents [P.bad]"},

    {.name = "Tokens"},
    {"tokenizer", 0, CLI_TEXT, TARGET(tokenizer.name), "FILE", .help = TOKENIZER_HELP " [bytes]"},
    {"pattern", 0, CLI_TEXT, TARGET(tokenizer.pattern), "NAME", .help = PATTERN_HELP,
     .get_words = tokenizer_pattern_words},
    {"specials-file", 0, CLI_TEXT, TARGET(tokenizer.specials), "FILE", .help = SPECIALS_FILE_HELP},
    {"specials", 0, CLI_WORD, TARGET(specials), "WORD",
     .help = "what to do with special tokens that appear in the text [text]",
     .words = tokenizer_specials_words},
    {"eod", 0, CLI_TEXT, TARGET(eod), "TOKEN",
     .help = "the token that ends each document: an id, even one that the tokenizer does not have; "
             "the text of a token; none; or auto, the token that the tokenizer's files name "
             "[auto]"},
    {"bos", 0, CLI_TEXT, TARGET(bos), "TOKEN",
     .help = "the token that begins each document, given in the same way [none]"},

    {.name = "Output"},
    {"output", 'o', CLI_TEXT, TARGET(output), "P", .help = "the dataset to write",
     .is_required = true},
    {"split", 0, CLI_CALL, 0, "NAME=F",
     .help = "put this fraction of the documents, chosen by their text, into the dataset P-NAME; "
             "may be given several times",
     .call = parse_split},
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
    {"memory", 0, CLI_NUMBER, TARGET(memory), "SIZE",
     .help = "memory for each encoding thread, in addition to the vocabulary [64M]",
     .lowest = MIN_MEMORY, .highest = MAX_MEMORY},
    {NULL},
};
#undef TARGET

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

/* Options that do not work together. */
static int check_options(const pack_options *options)
{
    if (options->bad_documents && options->on_error != ON_ERROR_COLLECT)
        return cli_usage("--bad-documents works only with --on-error collect");
    if (options->specials == SPECIALS_ERROR && options->on_error == ON_ERROR_COLLECT)
        return cli_usage(
            "--specials error does not work with --on-error collect, because the original line "
            "is not kept; use --on-error skip or fail");
    if (options->separator && options->format != CORPUS_TEXT && options->format != CORPUS_AUTO)
        return cli_usage("--separator works only with --format text or auto");
    return CLI_OK;
}

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

static int bad_field_text(const char *option, const field_error *err)
{
    if (err->character == 0)
        return cli_no_memory();
    return cli_usage("%s: character %zu: %s", option, err->character, err->text);
}

static int compile_fields(pack_options *options)
{
    field_error err;
    if (options->meta && !field_list_parse(&options->fields, options->meta, &err))
        return bad_field_text("--meta", &err);
    options->n_kept = options->fields.n_fields;
    if (!options->where_text)
        return CLI_OK;
    options->where = where_compile(options->where_text, &options->fields, &err);
    return options->where ? CLI_OK : bad_field_text("--where", &err);
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
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code == CLI_GO_ON) {
        options.utf8_given = cli_is_given("utf8");
        code = find_prefix(&options);
        if (code == CLI_OK)
            code = check_options(&options);
        if (code == CLI_OK)
            code = compile_fields(&options);
        if (code == CLI_OK)
            code = pack_run(&options, argv + optind, (size_t)(argc - optind));
    }
    free(options.separator);
    field_list_free(&options.fields);
    where_free(options.where);
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "request/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "formats/csv.h"
#include "formats/marked_text.h"
#include "formats/role_names.h"
#include "plan/plan_file.h"
#include "system/files.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/platform_memory.h"
#include "system/protected.h"
#include "base/array.h"
#include "base/base.h"
#include "base/real.h"
#include "tokenizer/choice/tokenizer_choice.h"
#include "tokenizer/file/stated_tokens.h"

const cli_word pack_formats[] = {
    {"auto", CORPUS_AUTO,
     "parquet and arrow by their first bytes; csv and tsv by the name, .csv or .tsv; jsonl if the "
     "first line is a JSON object with the field, or for an array of objects in a .json file; "
     "otherwise text; refuses what is none of these (archives, images, UTF-16, ...), text in a "
     "file whose name promises another format, and inputs of which some are text and others "
     "records"},
    {"text", CORPUS_TEXT, "each file is one document"},
    {"lines", CORPUS_LINES, "each line is one document"},
    {"jsonl", CORPUS_JSON_LINES, "each line is a JSON object; one field of it is the document"},
    {"csv", CORPUS_CSV,
     "CSV with commas, as in RFC 4180, and a first row with the names of the columns: each other "
     "row is a document; one column of it is the text"},
    {"tsv", CORPUS_TSV, "the same with tabs and without quotes"},
    {"arrow", CORPUS_ARROW, "Arrow IPC: each row is a document; one column of it is the text"},
    {"parquet", CORPUS_PARQUET, "Parquet: each row is a document; one column of it is the text"},
    {NULL},
};
const cli_word pack_utf8_words[] = {
    {"replace", UTF8_REPLACE, "replace each invalid sequence with U+FFFD"},
    {"error", UTF8_ERROR, "treat the document as bad"},
    {"raw", UTF8_RAW, "keep them, for tokenizers that work on bytes"},
    {NULL},
};
const cli_word pack_on_error_words[] = {
    {"fail", ON_ERROR_FAIL, "stop the run"},
    {"skip", ON_ERROR_SKIP, "leave it out; --report lists all of them"},
    {NULL},
};

const cli_word pack_also_words[] = {
    {"megatron", PACK_ALSO_MEGATRON,
     "P.idx, so that Megatron reads P too; tokens are u16 only below 65,500 ids, and a document "
     "without tokens gets no --eod token, as with Megatron's preprocess_data.py"},
    {NULL},
};

reader_options pack_reader_options(const pack_options *o)
{
    reader_options options = o->input;
    options.separator = o->separator;
    options.fields = o->fields.n_fields ? &o->fields : NULL;
    options.where = o->where;
    options.only_text = o->skip_unsuitable;
    for (size_t i = 0; i < o->n_meta_text; i++)
        options.text_fields |=
            (uint64_t)1 << field_list_find(&o->fields, o->meta_text[i], strlen(o->meta_text[i]));
    options.types_known = o->types_known;
    options.max_document = (size_t)o->max_document;
    options.page_memory = o->memory / 4 * o->n_threads;
    options.memory_option = o->memory;
    return options;
}

/* ---- The options ---- */

#define MIN_MEMORY ((uint64_t)8000000)
#define MAX_MEMORY ((uint64_t)1000000000000)
#define DEFAULT_MEMORY ((uint64_t)64000000)
#define MAX_MAX_DOCUMENT ((uint64_t)1 << 31)
#define DEFAULT_CHECKPOINT_MS 2000
#define MAX_CHECKPOINT_MS 3600000

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
    options->input.separator_bytes = n;
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
    const char *digits = text + n_name + 1;
    char *end;
    split->fraction = real_read(digits, &end);
    const bool plain = strspn(digits, "0123456789.") == strlen(digits) && !*end;
    if (!plain || split->fraction <= 0 || split->fraction >= 1)
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

static int skip_input(void *target, const char *name)
{
    pack_options *options = target;
    if (!array_grow(&options->skipped, options->n_skipped, sizeof *options->skipped))
        return cli_no_memory();
    options->skipped[options->n_skipped++] = name;
    return CLI_OK;
}

static int add_pattern(name_patterns *patterns, const char *option, const char *pattern)
{
    failure err;
    if (name_patterns_add(patterns, pattern, &err))
        return CLI_OK;
    return err.status ? cli_no_memory() : cli_usage("%s '%s': %s", option, pattern, err.text);
}

static int include_names(void *target, const char *pattern)
{
    return add_pattern(&((pack_options *)target)->filter.include, "--include", pattern);
}

static int exclude_names(void *target, const char *pattern)
{
    return add_pattern(&((pack_options *)target)->filter.exclude, "--exclude", pattern);
}

static int add_meta_text(void *target, const char *name)
{
    return pack_options_add_text(target, name) ? CLI_OK : cli_no_memory();
}

static int choose_lines(void *options, const char *value)
{
    (void)value;
    ((pack_options *)options)->input.format = CORPUS_LINES;
    return CLI_OK;
}

#define MAX_ID (((uint64_t)1 << 31) - 1)

/* ---- Rows ---- */

#define TARGET(field) offsetof(pack_options, field)

const cli_option pack_document_rows[] = {
    {.name = "Documents"},
    {"skip-input", 0, CLI_CALL, 0, "FILE",
     .help =
         "leave out this input, such as a damaged file of a folder that is packed; FILE may be any "
         "path to it; may be given several times",
     .call = skip_input},
    {"include", 0, CLI_CALL, 0, "PATTERN",
     .help = "in folders, take only what matches, such as '*.md' or 'docs/', also hidden files; "
             "PATTERN is as in a .gitignore of the folder; may be given several times",
     .call = include_names},
    {"exclude", 0, CLI_CALL, 0, "PATTERN",
     .help = "in folders, leave out what matches, such as 'node_modules/'; wins over --include; "
             "may be given several times",
     .call = exclude_names},
    {"skip-unsuitable", 0, CLI_FLAG, TARGET(skip_unsuitable),
     .help = "leave out files that are recognized as something other than text, such as archives "
             "and images, and Parquet and Arrow files without the column, and count them by kind; "
             "damaged files are still errors"},
    {"format", 0, CLI_WORD, TARGET(input.format), "WORD", .help = "what the files hold [auto]",
     .words = pack_formats},
    {"lines", 0, CLI_CALL, 0, .help = "the same as --format lines", .call = choose_lines},
    {"field", 0, CLI_TEXT, TARGET(input.field), "PATH",
     .help =
         "for jsonl, csv, tsv, parquet and arrow: the field or column that holds the text, such as "
         "meta.body [text]"},
    {"columns", 0, CLI_TEXT, TARGET(input.columns), "NAME,...",
     .help = "for csv and tsv: the names of the columns, where no first row has them"},
    {"tokens", 0, CLI_TEXT, TARGET(tokens), "PATH",
     .help = "for jsonl and parquet: the field that is a list of token ids, packed as they are; "
             "--eod and --bos are then none by default, and --eod ID is added to documents that do "
             "not end with it"},
    {"parts", 0, CLI_TEXT, TARGET(parts), "PATH",
     .help =
         "for jsonl and parquet: the field that is a list of {\"text\": ..., \"train\": true or "
         "false}, as 'tokmap render' makes of chats; the texts are encoded as one, and only tokens "
         "of parts with true count in the loss; --eod and --bos as with --tokens"},
    {"roles", 0, CLI_TEXT, TARGET(input.roles), "NAME,...",
     .help = "with --parts of JSON lines: the names that parts may have as their \"role\", such as "
             "think,tool-call; the dataset keeps them, and 'train_roles' of a Loader chooses which "
             "of them "
             "count in the loss"},
    {"labels", 0, CLI_TEXT, TARGET(labels), "PATH",
     .help = "with --tokens: the field that is a list of the ids again, with -100 in place of ids "
             "that must not count in the loss"},
    {"loss-mask", 0, CLI_TEXT, TARGET(loss_mask), "PATH",
     .help = "with --tokens: the field that is a list of 1 for ids that count in the loss, and 0"},
    {"where", 0, CLI_TEXT, TARGET(where_text), "EXPRESSION",
     .help =
         "pack only records for which EXPRESSION holds, such as 'score >= 3 and lang == \"en\"'"},
    {"meta", 0, CLI_TEXT, TARGET(meta), "FIELD,...",
     .help = "keep these fields of each document in the dataset, such as score,lang; @row is the "
             "number of the record in its input"},
    {"meta-text", 0, CLI_CALL, 0, "FIELD",
     .help = "for csv and tsv: FIELD, which --meta or --where names, is a string, also where all "
             "its values are numbers; may be given several times [numbers, if all values in the "
             "first MiB of each input are]",
     .call = add_meta_text},
    {"separator", 0, CLI_CALL, 0, "TEXT",
     .help = "for text: TEXT ends a document within a file; it may contain \\n, \\r, \\t, \\0 "
             "and \\\\ [none]",
     .call = parse_separator},
    {"utf8", 0, CLI_WORD, TARGET(input.utf8), "WORD",
     .help = "what to do with bytes that are not valid UTF-8 [replace]", .words = pack_utf8_words},
    {"strict-json", 0, CLI_FLAG, TARGET(input.strict_json),
     .help =
         "treat JSON lines with NaN, Infinity or -Infinity as bad; else they are numbers, as in "
         "Python"},
    {"max-document", 0, CLI_NUMBER, TARGET(max_document), "SIZE",
     .help = "a document is bad if its record or its text is larger, at most 2 GiB; a run needs "
             "memory for the longest document, up to 12 times its size, 26 with --parts or a "
             "normalizer [1 GiB]",
     .lowest = 1, .highest = MAX_MAX_DOCUMENT},
    {"on-error", 0, CLI_WORD, TARGET(input.on_error), "WORD",
     .help = "what to do with a bad document [fail]", .words = pack_on_error_words},
    {NULL},
};

const cli_option pack_token_rows[] = {
    {.name = "Tokens"},
    {"tokenizer", 0, CLI_TEXT, TARGET(tokenizer.name), "FILE", .help = TOKENIZER_HELP " [bytes]"},
    TOKENIZER_ROWS(TARGET(tokenizer)),
    {"specials", 0, CLI_WORD, TARGET(specials), "WORD",
     .help = "what to do with special tokens that appear in the text [text; with --parts match]",
     .words = tokenizer_specials_words},
    {"vocab-size", 0, CLI_NUMBER, TARGET(vocab_size), "N",
     .help = "with --tokens and without --tokenizer: ids are below N", .lowest = 1,
     .highest = MAX_ID + 1},
    {"eod", 0, CLI_TEXT, TARGET(eod), "TOKEN",
     .help = "the token that ends each document: an id, even one that the tokenizer does not have; "
             "the text of a token; none; or auto, the token that the tokenizer's files name "
             "[auto]"},
    {"bos", 0, CLI_TEXT, TARGET(bos), "TOKEN",
     .help = "the token that begins each document, given in the same way [none]"},
    {NULL},
};

const cli_option pack_split_row[] = {
    {"split", 0, CLI_CALL, 0, "NAME=F",
     .help = "put this fraction of the documents, chosen by their text, into the dataset P-NAME; "
             "may be given several times",
     .call = parse_split},
    {NULL},
};

const cli_option pack_memory_row[] = {
    {"memory", 0, CLI_NUMBER, TARGET(memory), "SIZE",
     .help = "memory for each encoding thread, in addition to the vocabulary [64M; less where all "
             "threads together would take more than a quarter of what this process may use, but "
             "at least 8M]",
     .lowest = MIN_MEMORY, .highest = MAX_MEMORY},
    {NULL},
};

const cli_option *const pack_deciding_rows[] = {pack_document_rows, pack_token_rows, pack_split_row,
                                                NULL};

/* ---- All ---- */

pack_options pack_options_new(void)
{
    return (pack_options){
        .tokenizer = {.name = "bytes"},
        .bos = "none",
        .specials = PACK_SPECIALS_AUTO,
        .limit_documents = PACK_NO_LIMIT,
        .limit_tokens = PACK_NO_LIMIT,
        .n_threads = tokmap_i_n_processors(),
        .max_document = CORPUS_MAX_DOCUMENT,
        .checkpoint_ms = DEFAULT_CHECKPOINT_MS,
    };
}

void pack_options_free(pack_options *options)
{
    free(options->separator);
    free(options->skipped);
    free(options->meta_text);
    free(options->filter.include.list);
    free(options->filter.exclude.list);
    free(options->filter.include.has_matched);
    free(options->filter.exclude.has_matched);
    field_list_free(&options->fields);
    where_free(options->where);
}

int pack_options_environment(pack_options *options)
{
    const char *text = getenv("TOKMAP_CHECKPOINT_MS");
    if (!text || !*text)
        return CLI_OK;
    if (cli_parse_u64(text, &options->checkpoint_ms) && options->checkpoint_ms <= MAX_CHECKPOINT_MS)
        return CLI_OK;
    return cli_usage("TOKMAP_CHECKPOINT_MS is '%.40s': must be milliseconds, from 0 to %d", text,
                     MAX_CHECKPOINT_MS);
}

/* With records that are lists, the list is in the place of the text. */
static int check_lists(pack_options *o)
{
    reader_options *in = &o->input;
    const char *marks = o->labels ? o->labels : o->loss_mask;
    const corpus_format format = in->format;
    failure err;
    in->list = o->tokens ? LIST_TOKENS : o->parts ? LIST_PARTS : LIST_NONE;
    in->marks = o->labels ? MARKS_LABELS : o->loss_mask ? MARKS_LOSS_MASK : MARKS_NONE;
    if (!o->eod)
        o->eod = in->list ? "none" : "auto";
    if (o->tokens && o->specials != PACK_SPECIALS_AUTO)
        return cli_usage("--specials does not work with --tokens, which has no text");
    if (in->list && (in->utf8_given || o->separator))
        return cli_usage("%s does not work with --tokens and --parts",
                         in->utf8_given ? "--utf8" : "--separator");
    if (o->specials == PACK_SPECIALS_AUTO)
        o->specials = o->parts ? SPECIALS_MATCH : SPECIALS_TEXT;
    if (!o->tokens && (marks || o->vocab_size))
        return cli_usage("%s works only with --tokens", o->labels      ? "--labels"
                                                        : o->loss_mask ? "--loss-mask"
                                                                       : "--vocab-size");
    if (in->roles && !o->parts)
        return cli_usage("--roles works only with --parts");
    if (in->roles && in->format == CORPUS_PARQUET)
        return cli_usage("--roles works only with JSON lines");
    if (in->roles && !role_names_check(in->roles, &err))
        return cli_usage("--roles: %s", err.text);
    if (!in->list) {
        in->field = in->field ? in->field : "text";
        return CLI_OK;
    }
    if (o->labels && o->loss_mask)
        return cli_usage("--labels and --loss-mask do not work together");
    if ((o->tokens && o->parts) || in->field)
        return cli_usage("use only one of --field, --tokens and --parts: each names the field");
    if (format != CORPUS_AUTO && format != CORPUS_JSON_LINES && format != CORPUS_PARQUET)
        return cli_usage("--tokens and --parts work only with --format jsonl, parquet or auto");
    in->field = o->tokens ? o->tokens : o->parts;
    in->utf8 = UTF8_RAW;
    return CLI_OK;
}

/* Chooses the memory of a thread if it is not given. */
static void choose_memory(pack_options *o)
{
    if (o->memory > 0)
        return;
    const uint64_t share = tokmap_i_memory_allowed() / 4 / o->n_threads;
    o->memory = MAX(MIN(share, DEFAULT_MEMORY), MIN_MEMORY);
    o->memory_is_short = o->memory < DEFAULT_MEMORY;
}

bool pack_options_add_text(pack_options *options, const char *field)
{
    if (!array_grow(&options->meta_text, options->n_meta_text, sizeof *options->meta_text))
        return false;
    options->meta_text[options->n_meta_text++] = field;
    return true;
}

/* Refuses options that are only for tables of text. */
static int check_columns(const pack_options *o)
{
    const corpus_format format = o->input.format;
    const bool may_be_table = format == CORPUS_AUTO || format == CORPUS_CSV || format == CORPUS_TSV;
    csv_columns columns = {0};
    failure err;
    if (!may_be_table && (o->input.columns || o->n_meta_text))
        return cli_usage("%s works only with --format csv, tsv or auto",
                         o->input.columns ? "--columns" : "--meta-text");
    const bool fit = !o->input.columns || csv_columns_given(&columns, o->input.columns, &err);
    csv_columns_free(&columns);
    if (!fit)
        return cli_usage("%s", err.text);
    for (size_t i = 0; i < o->n_meta_text; i++) {
        const char *name = o->meta_text[i];
        if (field_list_find(&o->fields, name, strlen(name)) == o->fields.n_fields)
            return cli_usage("--meta-text %s: neither --meta nor --where names this field", name);
    }
    return CLI_OK;
}

int pack_options_check(pack_options *options)
{
    choose_memory(options);
    failure err;
    int code = check_lists(options);
    if (code != CLI_OK)
        return code;
    if (options->also && (options->labels || options->loss_mask || options->parts))
        return cli_usage("--also megatron does not work with %s: its index cannot say which tokens "
                         "count in the loss",
                         options->parts    ? "--parts"
                         : options->labels ? "--labels"
                                           : "--loss-mask");
    if (options->separator && options->input.format != CORPUS_TEXT &&
        options->input.format != CORPUS_AUTO)
        return cli_usage("--separator works only with --format text or auto");
    if (options->meta && !field_list_parse(&options->fields, options->meta, &err))
        return cli_refuse_text("--meta", &err);
    options->input.n_kept = options->fields.n_fields;
    options->input.may_lack = field_list_bits(&options->fields);
    if (options->where_text) {
        options->where = where_compile(options->where_text, &options->fields, &err);
        if (!options->where)
            return cli_refuse_text("--where", &err);
    }
    code = check_columns(options);
    if (code != CLI_OK)
        return code;
    const char *marks = options->labels ? options->labels : options->loss_mask;
    const size_t n_before = options->fields.n_fields;
    size_t index = n_before;
    if (marks && !field_list_add(&options->fields, marks, strlen(marks), &index, &err))
        return cli_refuse_text(options->labels ? "--labels" : "--loss-mask", &err);
    return index == n_before
               ? CLI_OK
               : cli_usage("%s: is a list, which --meta and --where cannot take", marks);
}

int pack_options_say_bytes(const pack_options *options)
{
    if (options->quiet || options->json || options->tokens || cli_is_given("tokenizer"))
        return CLI_OK;
    puts("No --tokenizer was given: each byte of the texts is a token.");
    return cli_finish();
}

/* ---- --eod and --bos ---- */

typedef struct token_role {
    const char *option, *job, *name; /* name: in tokenizer files */
    bool quiet;
} token_role;

/* Chooses the token that the files of the tokenizer name. */
static int choose_stated(uint32_t *id, const token_role *role, const tokenizer_file *file)
{
    stated_tokens tokens;
    failure err;
    char advice[48], list[STATED_TOKENS_LIST_BYTES];
    snprintf(advice, sizeof advice, "; choose the token with %s", role->option);
    if (!stated_tokens_find(&tokens, role->name, file, &err))
        return tokenizer_choice_fail(&err, advice);
    int code = CLI_OK;
    for (size_t i = 0; i < tokens.n_read && code == CLI_OK; i++)
        code = path_protect(&tokens.read[i], "part of the tokenizer");
    if (code != CLI_OK || tokens.none)
        return code;
    if (tokens.n == 0)
        return cli_usage(
            "the tokenizer %s does not say which token %s a document; choose one with %s ID or "
            "%s TOKEN, or %s none",
            file->name, role->job, role->option, role->option, role->option);
    if (tokens.n > 1) {
        stated_tokens_list(&tokens, file, list);
        return cli_usage("%s: more than one token may be the one that %s a document: %s; "
                         "choose one with %s ID or %s TOKEN, or %s none",
                         file->name, role->job, list, role->option, role->option, role->option);
    }
    *id = tokens.list[0].id;
    return CLI_OK;
}

static int choose_id(uint32_t *id, const char *word, const token_role *role,
                     const tokenizer_file *file)
{
    uint64_t number;
    *id = MODEL_NO_ID;
    if (strcmp(word, "none") == 0)
        return CLI_OK;
    if (strcmp(word, "auto") == 0)
        return choose_stated(id, role, file);
    if (cli_parse_u64(word, &number)) {
        if (number > MAX_ID)
            return cli_usage("%s %s: an id must be less than 2^31", role->option, word);
        *id = (uint32_t)number;
        return CLI_OK;
    }
    *id = tokenizer_find(file->tokenizer, word, strlen(word));
    if (*id == MODEL_NO_ID)
        return cli_usage("%s %s: the tokenizer %s has no such token", role->option, word,
                         file->name);
    return CLI_OK;
}

#define MAX_IDS_OF_2_BYTES 65536
#define MAX_IDS_OF_ROLES (1 << MARKED_ROLE_SHIFT)

/* An id above the vocabulary may be intended, or be a mistake. */
static void include_id(pack_tokens *tokens, uint32_t id, const token_role *role,
                       const tokenizer_file *file)
{
    uint64_t known = tokenizer_get_info(file->tokenizer)->vocab_size, n_before = tokens->vocab_size;
    if (id == MODEL_NO_ID || id < known)
        return;
    if (id >= n_before)
        tokens->vocab_size = (uint64_t)id + 1;
    bool wider = n_before <= MAX_IDS_OF_2_BYTES && tokens->vocab_size > MAX_IDS_OF_2_BYTES;
    if (!role->quiet)
        cli_warn("%s %u: the tokenizer %s has only %s, so the vocabulary of the dataset becomes "
                 "larger%s",
                 role->option, id, file->name, cli_count_of(known, "id").s,
                 wider ? ", and each token takes 4 bytes instead of 2" : "");
}

int pack_tokens_open(pack_tokens *tokens, tokenizer_file *file, const pack_options *options)
{
    const token_role ends = {"--eod", "ends", "eos", options->quiet};
    const token_role begins = {"--bos", "begins", "bos", options->quiet};
    const bool needs_file = strcmp(options->eod, "auto") == 0 || strcmp(options->bos, "auto") == 0;
    int code = tokenizer_choice_open(file, &options->tokenizer);
    if (code == CLI_OK && options->tokens && !file->from_file && needs_file)
        return cli_usage("--tokens with --eod auto or --bos auto needs --tokenizer; give the id");
    if (code == CLI_OK)
        code = choose_id(&tokens->eod_id, options->eod, &ends, file);
    if (code == CLI_OK)
        code = choose_id(&tokens->bos_id, options->bos, &begins, file);
    if (code != CLI_OK)
        return code;
    tokens->vocab_size = tokenizer_get_info(file->tokenizer)->vocab_size;
    if (options->tokens && !file->from_file && !options->vocab_size)
        return cli_usage("--tokens needs --vocab-size, or the --tokenizer that made the ids");
    if (options->vocab_size && file->from_file)
        return cli_usage("--vocab-size does not work with --tokenizer, which says it");
    const char *no_ranges = tokenizer_get_info(file->tokenizer)->no_ranges;
    if (options->parts && no_ranges)
        return cli_usage(
            "--parts: the tokenizer %s cannot say which bytes its tokens stand for: %s", file->name,
            no_ranges);
    if (options->vocab_size) {
        tokens->vocab_size = options->vocab_size;
    } else {
        include_id(tokens, tokens->eod_id, &ends, file);
        include_id(tokens, tokens->bos_id, &begins, file);
    }
    if (options->input.roles && tokens->vocab_size > MAX_IDS_OF_ROLES)
        return cli_usage("--roles works with vocabularies of at most %d ids", MAX_IDS_OF_ROLES);
    if (options->input.utf8 == UTF8_RAW && !options->input.list &&
        !tokenizer_get_info(file->tokenizer)->takes_bytes)
        return cli_usage(
            "--utf8 raw: %s encodes characters, not bytes; use --utf8 replace or error",
            file->name);
    return CLI_OK;
}

uint32_t pack_token_bytes(const pack_tokens *tokens, const pack_options *options)
{
    return tokens->vocab_size <= (options->also ? 65499 : MAX_IDS_OF_2_BYTES) ? 2 : 4;
}

/* ---- The files that a run reads and writes ---- */

typedef struct name_list {
    path_text names[(PACK_MAX_SPLITS + 1) * (PATH_N_DATASET_SUFFIXES + 2) + 4];
    size_t n;
} name_list;

static void add_beside(name_list *list, const char *path)
{
    if (!path)
        return;
    list->names[list->n++] = path_of(path, "");
    list->names[list->n++] = path_of(path, ".partial");
}

static int check_regular(const char *path, const char *option)
{
    file_facts facts;
    if (path && strlen(path) >= PATH_PREFIX_BYTES)
        return cli_usage("%s: the path is too long", option);
    if (path && file_describe_name(path, &facts) == 0 && facts.kind != FILE_REGULAR)
        return cli_usage("%s %s: is %s", option, path,
                         facts.kind == FILE_LINK ? "a symbolic link, which is not replaced"
                                                 : "not a regular file");
    return CLI_OK;
}

int pack_names_check(const pack_options *options, bool makes_folders)
{
    name_list *list = malloc(sizeof *list);
    if (!list)
        return cli_no_memory();
    list->n = 0;
    for (size_t i = 0; i <= options->n_splits; i++) {
        const char *split = i < options->n_splits ? options->splits[i].name : "";
        for (size_t k = 0; k < PATH_N_DATASET_SUFFIXES; k++)
            list->names[list->n++] =
                plan_split_path(options->prefix, split, path_dataset_suffixes[k]);
        if (options->also)
            add_beside(list, plan_split_path(options->prefix, split, ".idx").s);
    }
    add_beside(list, options->report);
    if (options->input.on_error == ON_ERROR_SKIP)
        add_beside(list, path_of(options->prefix, PACK_SKIPPED_SUFFIX).s);
    int code = check_regular(options->report, "--report");
    for (size_t i = 0; i < list->n && code == CLI_OK && makes_folders; i++)
        code = output_make_folders(list->names[i].s);
    for (size_t i = 0; i < list->n && code == CLI_OK; i++)
        code = path_check_output(list->names[i].s);
    for (size_t k = 0; k < list->n && code == CLI_OK; k++)
        for (size_t i = 0; i < k && code == CLI_OK; i++)
            if (file_is_same_name(list->names[i].s, list->names[k].s))
                code = cli_usage("%s: is named for two outputs", list->names[k].s);
    free(list);
    return code;
}

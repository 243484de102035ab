/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - tokmap scan: which documents have tokens of examples, such as a benchmark, or the tokens
 * of another document. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/each.h"
#include "commands/dataset/scan_report.h"
#include "datasets/beside.h"
#include "corpus/open_input.h"
#include "fields/field_list.h"
#include "request/inputs.h"
#include "scan/duplicates.h"
#include "scan/scan.h"
#include "system/files.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "tokenizer/choice/tokenizer_choice.h"
#include "tokenizer/model/bytes_tokenizer.h"
#include "tokmap_writer.h"

enum {
    LEAST_SHORT = 8, /* tokens of an example that is shorter than an n-gram */
    N_COLUMNS = 3
};
static const char *const match_suffixes[N_COLUMNS] = {"_ngrams", "_longest", "_example"};

typedef struct scan_options {
    const char *against, *fields, *name;
    tokenizer_choice tokenizer;
    uint64_t n, n_threads, memory;
    bool duplicates, shows_matches, force, json, quiet;
} scan_options;

typedef struct example {
    uint64_t n_ngrams, n_documents;
    uint64_t last_document; /* the last one that n_documents counts */
    bool is_short;          /* all of its texts are too short to be looked for */
    scan_matches matches;   /* for --matches */
} example;

typedef struct scan_state {
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    const scan_options *options;
    path_text tokenizer_path; /* if it was found */
    tokenizer_file tokenizer;
    encoder *encoder;
    field_list fields;
    reader *reader;
    document row;
    uint8_t *text; /* of a field, with a blank before it */
    size_t text_bytes;
    id_buffer ids, blank_ids; /* of a text, and of the text after a blank */
    example *examples;
    size_t n_examples, room;
    ngrams *of_length[NGRAMS_MOST_TOKENS + 1];
    ngrams *indexes[NGRAMS_MOST_TOKENS + 1];
    size_t n_indexes;
    tokmap_column_writer *columns[N_COLUMNS];
    uint64_t n_found, n_tokens, n_passes;
    int fields_code; /* the exit code if a field was refused */
    cli_progress progress;
} scan_state;

/* ---- Examples ---- */

static int fail_row(const scan_state *s, const char *what)
{
    char place[320];
    const reader_place at = {.offset = s->row.offset, .line = s->row.line};
    reader_describe(s->reader, at, s->row.bad_offset, place, sizeof place);
    return cli_error(CLI_INPUT, "%s: %s", place, what);
}

/* Adds the n-grams of ids, or all ids as one if there are fewer. */
static int add_ids(scan_state *s, const uint32_t *ids, size_t n_ids, example *e)
{
    const size_t n = MIN(n_ids, s->options->n);
    if (n < s->options->n && n < LEAST_SHORT)
        return CLI_OK;
    e->is_short = false;
    if (!s->of_length[n]) {
        s->of_length[n] = ngrams_open((uint32_t)n, s->info.token_bytes);
        if (!s->of_length[n])
            return cli_no_memory();
        s->indexes[s->n_indexes++] = s->of_length[n];
    }
    e->n_ngrams += n_ids - n + 1;
    return ngrams_add(s->of_length[n], ids, n_ids, (uint32_t)s->n_examples) ? CLI_OK
                                                                            : cli_no_memory();
}

/* Returns what became of special tokens in the texts of P; SPECIALS_ERROR: its metadata does not
 * say it. A P that was packed with --specials error has no such texts. */
static specials_policy find_specials(const scan_state *s)
{
    json_text_span options, tokens, word;
    if (!dataset_metadata_find(s->ds, "options", &options) ||
        json_text_find(options, "tokens", &tokens) || !json_text_find(options, "specials", &word))
        return SPECIALS_ERROR;
    for (const cli_word *w = tokenizer_specials_words; w->name; w++)
        if (json_text_is_string(word, w->name))
            return w->value == SPECIALS_ERROR ? SPECIALS_TEXT : (specials_policy)w->value;
    return SPECIALS_ERROR;
}

static int fail_special(const scan_state *s, const uint8_t *text, size_t n_bytes)
{
    char what[400];
    const special_match match = encoder_refused_special(s->encoder, text, n_bytes);
    snprintf(what, sizeof what,
             "the special token %.*s: the metadata of %.150s does not say what became of it when P "
             "was packed (pack --specials); leave it out of the example",
             (int)MIN(match.n_bytes, 100), (const char *)match.bytes, s->info.index_path);
    return fail_row(s, what);
}

static int encode(scan_state *s, const uint8_t *text, size_t n_bytes, id_buffer *ids)
{
    ids->n = 0;
    const tokenize_status status = encoder_encode(s->encoder, text, n_bytes, ids);
    if (status == TOKENIZE_SPECIAL)
        return fail_special(s, text, n_bytes);
    return status == TOKENIZE_OK         ? CLI_OK
           : status == TOKENIZE_TOO_LONG ? fail_row(s, "the text: " TOKENIZE_TOO_LONG_TEXT)
                                         : cli_no_memory();
}

/* Returns how many of the first ids with a blank before the text differ from the ids without it:
 * the ends are mostly equal. */
static size_t count_other_ids(const scan_state *s)
{
    const id_buffer *a = &s->ids, *b = &s->blank_ids;
    const size_t n = s->options->n;
    size_t n_same = 0;
    if (a->n < n || b->n < n)
        return b->n;
    while (n_same < MIN(a->n, b->n) && a->ids[a->n - 1 - n_same] == b->ids[b->n - 1 - n_same])
        n_same++;
    return n_same == b->n ? 0 : MIN(b->n, b->n - n_same + n - 1);
}

/* Adds a text as it is, and with a blank before it: only then its first word has the tokens that it
 * has within a sentence. */
static int add_text(scan_state *s, const tokmap_value *v, example *e)
{
    if (!array_reserve(&s->text, &s->text_bytes, v->text_bytes + 1 + TEXT_PADDING, 1))
        return cli_no_memory();
    s->text[0] = ' ';
    memcpy(s->text + 1, v->text, v->text_bytes);
    memset(s->text + 1 + v->text_bytes, 0, TEXT_PADDING);
    int code = encode(s, s->text + 1, v->text_bytes, &s->ids);
    if (code == CLI_OK)
        code = encode(s, s->text, v->text_bytes + 1, &s->blank_ids);
    if (code == CLI_OK)
        code = add_ids(s, s->ids.ids, s->ids.n, e);
    const size_t n_other = count_other_ids(s);
    return code == CLI_OK && n_other > 0 ? add_ids(s, s->blank_ids.ids, n_other, e) : code;
}

static int add_example(scan_state *s)
{
    if (!array_reserve(&s->examples, &s->room, s->n_examples + 1, sizeof *s->examples))
        return cli_no_memory();
    example e = {.is_short = true};
    bool is_text = true;
    int code = CLI_OK;
    s->n_examples++;
    for (size_t i = 0; i < s->fields.n_fields && code == CLI_OK; i++) {
        const tokmap_value *v = &s->row.values[i];
        if (v->type == TOKMAP_VALUE_STRING && v->text_bytes > 0)
            code = add_text(s, v, &e);
        is_text &= v->type == TOKMAP_VALUE_STRING || v->type == TOKMAP_VALUE_NULL;
    }
    s->examples[s->n_examples - 1] = e;
    return code == CLI_OK && !is_text ? fail_row(s, "--field names a field that is a number")
                                      : code;
}

/* Refuses a field that no example has as a text. */
static void refuse_fields(void *context, const char *text)
{
    scan_state *s = context;
    s->fields_code = cli_error(CLI_INPUT, "%s", text);
}

static int read_examples(scan_state *s)
{
    const input_source source = {.path = s->options->against};
    reader_result result = READER_FAILED;
    failure err;
    int code = CLI_OK;
    if (!field_list_parse(&s->fields, s->options->fields, &err))
        return cli_refuse_text("--field", &err);
    const reader_options options = reader_options_complete(
        &(reader_options){.fields_only = true,
                          .fields = &s->fields,
                          .text_fields = UINT64_MAX,
                          .types_known = true,
                          .report = s->options->quiet ? NULL : pack_print_note,
                          .note = refuse_fields,
                          .context = s});
    s->reader = reader_open(&source, &options, -1, &err);
    while (s->reader && code == CLI_OK &&
           (result = reader_next(s->reader, &s->row, &err)) > READER_END)
        code = result == READER_BAD ? fail_row(s, s->row.reason) : add_example(s);
    if (code == CLI_OK && result == READER_FAILED)
        code = cli_print_failure(&err);
    if (code == CLI_OK)
        reader_note_fields(s->reader);
    code = cli_first_failure(code, s->fields_code);
    reader_close(s->reader);
    for (size_t i = 0; i < s->n_indexes && code == CLI_OK; i++)
        code = ngrams_finish(s->indexes[i]) ? CLI_OK : cli_no_memory();
    return code;
}

/* ---- Documents ---- */

static tokmap_status record_match(void *context, uint64_t number, const ngrams_found *found,
                                  tokmap_error *err)
{
    scan_state *s = context;
    const ngrams_run *longest = ngrams_longest(found->runs, found->n_runs);
    const uint64_t values[N_COLUMNS] = {found->n_ngrams, longest->n_tokens, longest->example};
    tokmap_status status = TOKMAP_OK;
    s->n_found++;
    for (int i = 0; i < N_COLUMNS && !status; i++) {
        const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = (int64_t)values[i]};
        status = tokmap_column_writer_put(s->columns[i], number, &v, 1, err);
    }
    for (size_t i = 0; i < found->n_runs && !status; i++) {
        const ngrams_run *r = &found->runs[i];
        const scan_match match = {number, r->at, r->n_tokens};
        example *const e = &s->examples[r->example - 1];
        e->n_documents += e->n_documents == 0 || e->last_document != number;
        e->last_document = number;
        if (s->options->shows_matches && !scan_matches_add(&e->matches, &match))
            status = FAIL_MEMORY(err);
    }
    return status;
}

static void on_progress(void *context, uint64_t n_tokens)
{
    scan_state *s = context;
    s->n_tokens += n_tokens;
    cli_progress_update(&s->progress, s->n_tokens * s->info.token_bytes,
                        s->n_passes * s->info.n_tokens * s->info.token_bytes);
}

/* Begins a column for each suffix of the name. */
static int open_columns(scan_state *s, const char *const *suffixes, int n_columns)
{
    tokmap_error err;
    for (int i = 0; i < n_columns; i++) {
        const path_text name = path_of(s->options->name, suffixes[i]);
        const tokmap_column_options o = {
            .struct_size = sizeof o, .name = name.s, .replace = s->options->force};
        const tokmap_status status = tokmap_column_writer_open(&s->columns[i], s->ds, &o, &err);
        if (status)
            return status == TOKMAP_ERR_EXISTS &&
                           file_name_exists(beside_path(s->ds, name.s, BESIDE_COLUMNS).s)
                       ? cli_error(CLI_EXISTS, "%s; --force replaces late columns", err.text)
                       : cli_fail(&err);
    }
    return CLI_OK;
}

static int scan_documents(scan_state *s)
{
    tokmap_error err;
    const scan_job job = {.ds = s->ds,
                          .indexes = s->indexes,
                          .n_indexes = s->n_indexes,
                          .n_threads = (uint32_t)s->options->n_threads,
                          .context = s,
                          .on_match = record_match,
                          .on_progress = on_progress};
    s->n_passes = 1;
    cli_progress_begin(&s->progress, "scan", s->options->quiet);
    tokmap_status status = scan_run(&job, &err);
    cli_progress_clear(&s->progress);
    /* The older columns go before the first new one comes, so they never are from two scans. */
    int code = CLI_OK;
    for (int i = 0; i < N_COLUMNS && s->options->force && !status && code == CLI_OK; i++)
        code = beside_remove_column(s->ds, path_of(s->options->name, match_suffixes[i]).s);
    for (int i = 0; i < N_COLUMNS && !status && code == CLI_OK; i++)
        status = tokmap_column_writer_finish(s->columns[i], &err);
    return status ? cli_fail(&err) : code;
}

/* Begins the result: the dataset and its new columns. */
static json_out begin_json(const scan_state *s, const char *const *suffixes, int n_columns)
{
    json_out o = json_out_begin_result(stdout);
    json_out_string(&o, "index_file", s->info.index_path);
    json_out_begin(&o, "columns", '[');
    for (int i = 0; i < n_columns; i++)
        json_out_string(&o, NULL, path_of(s->options->name, suffixes[i]).s);
    json_out_end(&o, ']');
    return o;
}

/* What a scan has found in all. */
typedef struct totals {
    uint64_t n_ngrams, n_short, n_seen; /* n_short and n_seen are examples */
} totals;

static int print_json(const scan_state *s, const totals *t, scan_texts *texts)
{
    json_out o = begin_json(s, match_suffixes, N_COLUMNS);
    int code = CLI_OK;
    json_out_number(&o, "n_examples", s->n_examples);
    json_out_number(&o, "n_short", t->n_short);
    json_out_number(&o, "n_ngrams", t->n_ngrams);
    json_out_number(&o, "n_examples_found", t->n_seen);
    json_out_number(&o, "n_documents", s->n_found);
    json_out_begin(&o, "examples", '[');
    for (size_t i = 0; i < s->n_examples && code == CLI_OK; i++) {
        json_out_begin(&o, NULL, '{');
        json_out_number(&o, "example", i + 1);
        json_out_number(&o, "n_ngrams", s->examples[i].n_ngrams);
        json_out_number(&o, "n_documents", s->examples[i].n_documents);
        if (s->options->shows_matches)
            code = scan_texts_print(texts, &s->examples[i].matches, &o);
        json_out_end(&o, '}');
    }
    json_out_end(&o, ']');
    puts("}");
    return code;
}

static int print_lines(const scan_state *s, const totals *t, scan_texts *texts)
{
    int code = CLI_OK;
    printf("%s: %s, %s; ", s->options->name, cli_count_of(s->n_examples, "example").s,
           cli_count_of(t->n_ngrams, "n-gram").s);
    printf("%s with one, of %s\n", cli_count_of(s->n_found, "document").s,
           cli_count_of(t->n_seen, "example").s);
    for (size_t i = 0; i < s->n_examples && s->options->shows_matches && code == CLI_OK; i++) {
        const example *e = &s->examples[i];
        if (e->n_documents == 0)
            continue;
        printf("\nexample %zu: %s\n", i + 1, cli_count_of(e->n_documents, "document").s);
        code = scan_texts_print(texts, &e->matches, NULL);
    }
    return code;
}

static int print_result(const scan_state *s)
{
    totals t = {0};
    scan_texts texts = {.ds = s->ds, .tokenizer = s->tokenizer.tokenizer, .tokens.ds = s->ds};
    for (size_t i = 0; i < s->n_examples; i++) {
        t.n_short += s->examples[i].is_short;
        t.n_seen += s->examples[i].n_documents > 0;
    }
    for (size_t i = 0; i < s->n_indexes; i++)
        t.n_ngrams += ngrams_count(s->indexes[i]);
    if (!s->options->quiet && t.n_short)
        cli_warn("%s shorter than %d tokens: not looked for", cli_count_of(t.n_short, "example").s,
                 LEAST_SHORT);
    const int code = s->options->json                                  ? print_json(s, &t, &texts)
                     : s->options->shows_matches || !s->options->quiet ? print_lines(s, &t, &texts)
                                                                       : CLI_OK;
    scan_texts_free(&texts);
    return code;
}

/* ---- Duplicates ---- */

static tokmap_status record_duplicate(void *context, uint64_t number, uint64_t first,
                                      tokmap_error *err)
{
    scan_state *s = context;
    const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = (int64_t)first};
    s->n_found++;
    return tokmap_column_writer_put(s->columns[0], number, &v, 1, err);
}

static int run_duplicates(scan_state *s)
{
    static const char *const suffixes[] = {""};
    const duplicates_job job = {.ds = s->ds,
                                .memory = s->options->memory,
                                .context = s,
                                .on_duplicate = record_duplicate,
                                .on_progress = on_progress};
    tokmap_error err;
    s->n_passes = duplicates_n_passes(&job, s->info.n_documents);
    if (s->n_passes > 1 && !s->options->quiet)
        cli_warn("with --memory %s the tokens are read %" PRIu64 " times",
                 cli_bytes(s->options->memory).s, s->n_passes);
    int code = open_columns(s, suffixes, 1);
    if (code != CLI_OK)
        return code;
    cli_progress_begin(&s->progress, "scan", s->options->quiet);
    tokmap_status status = duplicates_run(&job, &err);
    cli_progress_clear(&s->progress);
    if (!status)
        status = tokmap_column_writer_finish(s->columns[0], &err);
    if (status)
        return cli_fail(&err);
    if (s->options->json) {
        json_out o = begin_json(s, suffixes, 1);
        json_out_number(&o, "n_duplicates", s->n_found);
        puts("}");
    } else if (!s->options->quiet) {
        printf("%s: %s with the tokens of an earlier one\n", s->options->name,
               cli_count_of(s->n_found, "document").s);
    }
    return CLI_OK;
}

/* ---- Command ---- */

/* Fails if the dataset was packed with other options of the tokenizer, which give other ids. */
static int check_encoding(const scan_state *s)
{
    static const struct {
        const char *key, *option;
    } parts[] = {{"merges_xxh3", "merges.txt"},
                 {"specials_xxh3", "--specials-file"},
                 {"pattern", "--pattern"}};
    const tokenizer_file *t = &s->tokenizer;
    const uint64_t hashes[] = {t->merges_xxh3, t->specials_xxh3};
    json_text_span made_with, recorded;
    char text[17];
    if (!dataset_metadata_find(s->ds, "tokenizer", &made_with) ||
        !json_text_find(made_with, "file_xxh3", &recorded))
        return CLI_OK;
    for (int i = 0; i < 3; i++) {
        const char *ours = i == 2 ? t->pattern : hashes[i] ? text : NULL;
        if (i < 2)
            snprintf(text, sizeof text, "%016" PRIx64, hashes[i]);
        const bool is_known =
            json_text_find(made_with, parts[i].key, &recorded) && recorded.text[0] == '"';
        if (is_known ? !ours || !json_text_is_string(recorded, ours) : ours && t->from_file)
            return cli_error(CLI_INPUT, "%s: was packed %s%.*s: its %s must be the same here",
                             s->info.index_path, is_known ? "with " : "without one",
                             is_known ? (int)MIN(recorded.n_bytes, 100) : 0, recorded.text,
                             parts[i].option);
    }
    return CLI_OK;
}

static int run_scan(scan_state *s)
{
    tokenizer_choice choice = s->options->tokenizer;
    if (!choice.name) {
        s->tokenizer_path = dataset_find_tokenizer(s->ds);
        choice.name = *s->tokenizer_path.s ? s->tokenizer_path.s : BYTES_TOKENIZER_NAME;
    }
    int code = s->options->shows_matches ? tokenizer_choice_open_decoder(&s->tokenizer, &choice)
                                         : tokenizer_choice_open(&s->tokenizer, &choice);
    if (code == CLI_OK)
        code = dataset_check_tokenizer(
            s->ds, s->tokenizer.from_file || s->options->tokenizer.name ? choice.name : NULL,
            s->tokenizer.file_xxh3, "");
    if (code != CLI_OK)
        return code;
    code = check_encoding(s);
    if (code != CLI_OK)
        return code;
    if (s->info.token_bytes == 2 &&
        tokenizer_get_info(s->tokenizer.tokenizer)->vocab_size > UINT16_MAX + 1)
        return cli_error(CLI_INPUT, "%s: its tokens have 2 bytes, but %s has ids above %d",
                         s->info.index_path, s->tokenizer.name, UINT16_MAX);
    s->encoder =
        encoder_new(s->tokenizer.tokenizer, &(encoder_options){.specials = find_specials(s)});
    if (!s->encoder)
        return cli_no_memory();
    code = open_columns(s, match_suffixes, N_COLUMNS);
    if (code == CLI_OK)
        code = read_examples(s);
    if (code == CLI_OK)
        code = scan_documents(s);
    if (code == CLI_OK)
        code = print_result(s);
    return code;
}

#define TARGET(field) offsetof(scan_options, field)
static const cli_option option_table[] = {
    {"against", 0, CLI_TEXT, TARGET(against), "FILE",
     .help = "the examples: Parquet, Arrow, JSON lines, CSV or TSV, also compressed"},
    {"duplicates", 0, CLI_FLAG, TARGET(duplicates),
     .help = "look for documents with the same tokens; the column NAME has the number of the first "
             "such document, and no value for that document itself"},
    {"fields", 0, CLI_TEXT, TARGET(fields), "FIELD,...",
     .help = "for --against: the fields of an example that are looked for, each on its own [text]"},
    {"name", 0, CLI_TEXT, TARGET(name), "NAME",
     .help = "the column, or the beginning of the names of columns", .is_required = true},
    {"ngram", 'n', CLI_NUMBER, TARGET(n), "N",
     .help = "for --against: tokens of an n-gram, 1 to 255 [13]", .lowest = 1,
     .highest = NGRAMS_MOST_TOKENS},
    {"tokenizer", 0, CLI_TEXT, TARGET(tokenizer.name), "FILE",
     .help = "for --against: the tokenizer that made P [bytes, or the file that made it, in this "
             "folder "
             "or beside P]"},
    TOKENIZER_ROWS(TARGET(tokenizer)),
    {"threads", 'j', CLI_NUMBER, TARGET(n_threads), "N",
     .help = "for --against: threads that read, 1 to 64 [one per processor]", .lowest = 1,
     .highest = 64},
    {"memory", 0, CLI_NUMBER, TARGET(memory), "SIZE",
     .help = "for --duplicates: about what a table may take, of 24 bytes for each document; with "
             "less, the tokens are read several times [1GiB]",
     .lowest = 1},
    {"matches", 0, CLI_FLAG, TARGET(shows_matches),
     .help = "for --against: print the 20 longest matches of each example, with the text of 60 "
             "tokens before and after each"},
    {"force", 'f', CLI_FLAG, TARGET(force),
     .help = "replace late columns; with --against, the older three are removed before the new "
             "ones get their names"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print the result as JSON"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap scan [OPTION]... --against FILE --name NAME P\n"
             "       tokmap scan [OPTION]... --duplicates --name NAME P",
    .about =
        "Looks in the documents of a dataset P for tokens of examples, such as the questions of a "
        "benchmark, and adds late columns to P: NAME_ngrams, how many n-grams of the document some "
        "example has; NAME_longest, the tokens of the longest run of them; and NAME_example, the "
        "number of its example, from 1 on. A document without any has no values.\n\nWith "
        "--duplicates, the column NAME has the first document with the same tokens.",
    .options = option_table,
    .notes =
        "What is found has the same tokens; an example that was written otherwise, with "
        "another case, punctuation or line break, is not found. Each text is also looked for "
        "with a blank before it. A text of fewer than N tokens is looked for whole, if it has "
        "at least 8. Special tokens in a text become what they became when P was packed ('tokmap "
        "pack --specials'); if the metadata of P does not say it, such an example is refused.",
    .examples = "  tokmap scan data/web --against mmlu.jsonl --fields question --name mmlu\n"
                "  tokmap scan data/scored --duplicates --name same_as\n"
                "  tokmap view data/scored --where 'same_as is null'\n",
    .operand = "dataset",
    .n_least = 1,
    .n_most = 1,
};

/* Refuses options of the other form, and sets defaults. */
static int complete_options(void *options, const input_list *names)
{
    scan_options *o = options;
    (void)names;
    if (o->duplicates == (o->against != NULL))
        return cli_usage("a scan needs one of --against and --duplicates");
    if (o->duplicates &&
        (o->fields || o->n || o->tokenizer.name || o->tokenizer.pattern || o->tokenizer.specials ||
         o->tokenizer.download || o->n_threads || o->shows_matches))
        return cli_usage(
            "--fields, --ngram, --threads, --matches and the tokenizer are for --against");
    if (o->against && o->memory)
        return cli_usage("--memory is for --duplicates");
    o->fields = o->fields ? o->fields : "text";
    o->n = o->n ? o->n : 13;
    o->n_threads = o->n_threads ? o->n_threads : MIN(tokmap_i_n_processors(), 64);
    o->memory = o->memory ? o->memory : UINT64_C(1) << 30;
    return CLI_OK;
}

static int scan_dataset(void *options, const char *path, const tokmap_dataset *ds)
{
    const scan_options *o = options;
    scan_state *s = calloc(1, sizeof *s);
    (void)path;
    if (!s)
        return cli_no_memory();
    s->ds = ds;
    s->info = cli_dataset_info(ds);
    s->options = o;
    const int code = o->duplicates ? run_duplicates(s) : run_scan(s);
    for (size_t i = 0; i < s->n_indexes; i++)
        ngrams_close(s->indexes[i]);
    for (int i = 0; i < N_COLUMNS; i++)
        tokmap_column_writer_close(s->columns[i]);
    encoder_free(s->encoder);
    tokenizer_file_close(&s->tokenizer);
    field_list_free(&s->fields);
    id_buffer_free(&s->ids);
    id_buffer_free(&s->blank_ids);
    free(s->text);
    for (size_t e = 0; e < s->n_examples; e++)
        scan_matches_free(&s->examples[e].matches);
    free(s->examples);
    free(s);
    return code;
}

int scan_command(int argc, char **argv)
{
    scan_options options = {0};
    const each_command command = {&manual, &options, dataset_names_take_one,
                                  .check = complete_options, .work = scan_dataset};
    return each_run(&command, argc, argv);
}

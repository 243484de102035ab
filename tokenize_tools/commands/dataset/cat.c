/* SPDX-License-Identifier: Apache-2.0 */
/* cat.c - tokmap cat: prints the tokens of a dataset as ids, text, JSON or stored bytes.
 *
 * The tokens to print are always one range. It is read in order, in pieces of CHUNK_TOKENS;
 * documents only decide where lines end. So a document may have any size; only a tokenizer from a
 * file decodes it as a whole. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/model/bytes_tokenizer.h"
#include "cli/cli.h"
#include "commands/dataset/dataset_commands.h"
#include "cli/options.h"
#include "datasets/each.h"
#include "datasets/lines.h"
#include "datasets/values.h"
#include "base/json_text.h"
#include "base/le.h"
#include "cli/paths.h"
#include "base/plain_text.h"
#include "system/process.h"
#include "system/protected.h"
#include "tokenizer/choice/tokenizer_choice.h"

#define CHUNK_TOKENS ((size_t)128 * 1024)
#define TEXT_BYTES ((size_t)4096)

typedef enum cat_form {
    CAT_IDS,
    CAT_JSON,
    CAT_TEXT,
    CAT_RAW
} cat_form;

typedef struct cat_options {
    const char *documents, *tokens, *where;
    bool ids, json, text, raw;
    cat_form form; /* which of these four */
    bool with_index, meta, spans;
    tokenizer_choice tokenizer;
} cat_options;

typedef struct cat_state {
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    const cat_options *options;
    value_columns columns;    /* with --meta */
    uint64_t *kept;           /* with --where: a bit for each document */
    uint64_t first, end;      /* tokens to print */
    path_text tokenizer_path; /* if it was found */
    tokenizer_file tokenizer;
    id_buffer line;    /* ids of the current line, for the tokenizer */
    size_t line_bytes; /* bytes of its text that were printed */

    uint8_t *stored; /* tokens [chunk_first, chunk_first + n_chunk) at their stored width */
    uint32_t *ids;   /* the same tokens as numbers; not for CAT_RAW */
    uint64_t chunk_first;
    size_t n_chunk;

    bool in_line, ends_in_newline; /* an id or a text was printed; its last character */
    bool on_terminal;              /* control characters are escaped */
    char held[3];                  /* the beginning of a character, for a terminal */
    size_t n_held;
    line_writer out;
} cat_state;

/* ---- Output ---- */

/* Writes text for a terminal: control characters, except newlines and tabs, as \x1b. */
static void put_shown(cat_state *s, const char *text, size_t n_bytes)
{
    while (n_bytes) {
        char escape[PLAIN_TEXT_ESCAPE_BYTES + 1];
        size_t length = *text == '\n' || *text == '\t' ? 1 : plain_text_length(text, n_bytes);
        snprintf(escape, sizeof escape, PLAIN_TEXT_ESCAPE, (unsigned char)*text);
        line_writer_put(&s->out, length ? text : escape, length ? length : PLAIN_TEXT_ESCAPE_BYTES);
        text += length ? length : 1;
        n_bytes -= length ? length : 1;
    }
}

/* Writes bytes for a terminal; a character may begin in one call and end in the next. */
static void put_for_terminal(cat_state *s, const uint8_t *bytes, size_t n_bytes)
{
    char text[sizeof s->held + TEXT_BYTES];
    memcpy(text, s->held, s->n_held);
    memcpy(text + s->n_held, bytes, n_bytes);
    n_bytes += s->n_held;
    s->n_held = plain_text_unfinished(text, n_bytes);
    memcpy(s->held, text + n_bytes - s->n_held, s->n_held);
    put_shown(s, text, n_bytes - s->n_held);
}

static void put_text(cat_state *s, const uint8_t *text, size_t n_bytes)
{
    for (size_t done = 0, n; done < n_bytes; done += n) {
        n = n_bytes - done < TEXT_BYTES ? n_bytes - done : TEXT_BYTES;
        if (s->on_terminal)
            put_for_terminal(s, text + done, n);
        else
            line_writer_put(&s->out, text + done, n);
    }
    if (n_bytes)
        s->ends_in_newline = text[n_bytes - 1] == '\n';
}

static int refuse_id(const cat_state *s, uint32_t id, uint64_t token)
{
    const char *name = s->tokenizer.tokenizer ? s->tokenizer.name : BYTES_TOKENIZER_NAME;
    return cli_error(CLI_DATASET,
                     "%s: id %" PRIu32 " at token %" PRIu64 " is not an id of the tokenizer '%s'",
                     cli_tokens_name(&s->info), id, token, name);
}

static int put_bytes_text(cat_state *s, uint64_t first, size_t n_ids)
{
    uint8_t text[TEXT_BYTES];
    const uint32_t *ids = s->ids + (first - s->chunk_first);
    for (size_t done = 0; done < n_ids;) {
        size_t n_bytes, n = n_ids - done < sizeof text ? n_ids - done : sizeof text;
        size_t n_known = bytes_tokenizer_decode(ids + done, n, text, &n_bytes);
        put_text(s, text, n_bytes);
        done += n_known;
        if (n_known < n)
            return refuse_id(s, ids[done], first + done);
    }
    return CLI_OK;
}

/* Prints the rest of the text of the current line, whose ids end before token `end`. */
static int put_collected(cat_state *s, uint64_t end)
{
    model_text text = {0};
    const id_buffer *line = &s->line;
    size_t bad = SIZE_MAX, n = line->n - (line->n && line->ids[line->n - 1] == s->info.eod_id);
    if (!tokenizer_decode(s->tokenizer.tokenizer, line->ids, n, &text, &bad))
        return bad == SIZE_MAX ? cli_no_memory()
                               : refuse_id(s, line->ids[bad], end - line->n + bad);
    if (text.n_bytes > s->line_bytes) {
        put_text(s, (const uint8_t *)text.s + s->line_bytes, text.n_bytes - s->line_bytes);
        s->line_bytes = text.n_bytes;
    }
    free(text.s);
    return CLI_OK;
}

static void put(cat_state *s, const char *text)
{
    line_writer_put(&s->out, text, strlen(text));
}

/* Prints what comes before the tokens of a document. */
static int begin_document(cat_state *s, uint64_t index)
{
    const bool json = s->options->form == CAT_JSON, with_index = s->options->with_index;
    char number[64];
    const bool is_object = with_index || s->options->meta || s->options->spans;
    s->in_line = s->ends_in_newline = false;
    s->line.n = s->line_bytes = 0;
    snprintf(number, sizeof number, json ? "{\"document\": %" PRIu64 : "%" PRIu64 "\t", index);
    put(s, with_index ? number : "");
    if (s->options->meta) { /* values of any length, printed past the buffer */
        put(s, !json ? "" : with_index ? ", \"meta\": " : "{\"meta\": ");
        line_writer_flush(&s->out);
        if (!values_print_row(stdout, &s->columns, index))
            return cli_error(CLI_DATASET, "%s: damaged: the values of document %" PRIu64,
                             s->info.index_path, index);
        put(s, json ? "" : "\t");
    }
    if (json)
        put(s, with_index || s->options->meta ? ", \"ids\": [" : is_object ? "{\"ids\": [" : "[");
    return CLI_OK;
}

static void end_document(cat_state *s)
{
    size_t n_held = s->n_held;
    s->n_held = 0;
    put_shown(s, s->held, n_held);
    switch (s->options->form) {
    case CAT_JSON:
        put(s, s->options->spans                            ? "}\n"
               : s->options->with_index || s->options->meta ? "]}\n"
                                                            : "]\n");
        break;
    case CAT_TEXT:
        put(s, s->ends_in_newline ? "" : "\n");
        break;
    case CAT_IDS:
        put(s, "\n");
        break;
    case CAT_RAW:
        break;
    }
}

/* ---- Tokens ---- */

static int load_chunk(cat_state *s, uint64_t first)
{
    const uint32_t token_bytes = s->info.token_bytes;
    tokmap_error err;
    uint64_t n = s->end - first;
    n = n < CHUNK_TOKENS ? n : CHUNK_TOKENS;
    if (tokmap_dataset_read(s->ds, first, n, s->stored, &err) != TOKMAP_OK)
        return cli_fail(&err);
    s->chunk_first = first;
    s->n_chunk = (size_t)n;
    for (size_t i = 0; s->options->form != CAT_RAW && i < s->n_chunk; i++) {
        const uint8_t *stored = s->stored + i * token_bytes;
        s->ids[i] = token_bytes == 2 ? le_get16(stored) : le_get32(stored);
    }
    return CLI_OK;
}

static int put_tokens(cat_state *s, uint64_t first, size_t n_tokens)
{
    const size_t at = (size_t)(first - s->chunk_first), token_bytes = s->info.token_bytes;
    switch (s->options->form) {
    case CAT_IDS:
    case CAT_JSON:
        line_writer_put_ids(&s->out, s->ids + at, n_tokens,
                            s->options->form == CAT_JSON ? ',' : ' ', s->in_line);
        s->in_line = true;
        break;
    case CAT_TEXT:
        if (!s->tokenizer.tokenizer)
            return put_bytes_text(s, first, n_tokens);
        if (!id_buffer_reserve(&s->line, n_tokens))
            return cli_no_memory();
        memcpy(s->line.ids + s->line.n, s->ids + at, n_tokens * sizeof *s->ids);
        s->line.n += n_tokens;
        break;
    case CAT_RAW:
        fwrite(s->stored + at * token_bytes, token_bytes, n_tokens, stdout);
        break;
    }
    return CLI_OK;
}

/* Prints tokens [first, end), chunk by chunk. */
static int print_tokens(cat_state *s, uint64_t first, uint64_t end)
{
    int code = CLI_OK;
    while (code == CLI_OK && first < end && !ferror(stdout)) {
        if (first >= s->chunk_first + s->n_chunk)
            code = load_chunk(s, first);
        uint64_t chunk_end = s->chunk_first + s->n_chunk;
        uint64_t piece_end = end < chunk_end ? end : chunk_end;
        if (code == CLI_OK)
            code = put_tokens(s, first, (size_t)(piece_end - first));
        first = piece_end;
    }
    return code == CLI_OK && s->tokenizer.tokenizer ? put_collected(s, first) : code;
}

/* Finds the first span in [first, end) and cuts it to that range; without one, returns an empty
 * span at `end`. */
static int next_span(const cat_state *s, uint64_t first, uint64_t end, tokmap_span *span)
{
    size_t n = 0;
    if (tokmap_dataset_get_spans(s->ds, first, end - first, span, 1, &n) != TOKMAP_OK)
        return cli_error(CLI_DATASET, "%s: damaged: the spans", s->info.index_path);
    const uint64_t begin = n == 0 ? end : span->first_token > first ? span->first_token : first;
    const uint64_t end_of_span = n == 0 ? end : span->first_token + span->n_tokens;
    span->first_token = begin;
    span->n_tokens = (end_of_span < end ? end_of_span : end) - begin;
    return CLI_OK;
}

/* Prints a list of the spans for JSON, where the tokens stand before it; else the tokens, with
 * spans in brackets or in color. */
static int print_spans(cat_state *s, uint64_t first, uint64_t end)
{
    const bool is_json = s->options->form == CAT_JSON;
    tokmap_span span;
    char text[80];
    int code = CLI_OK;
    for (uint64_t at = first; code == CLI_OK && at < end && !ferror(stdout);
         at = span.first_token + span.n_tokens) {
        code = next_span(s, at, end, &span);
        if (code == CLI_OK && !is_json)
            code = print_tokens(s, at, span.first_token);
        if (code != CLI_OK || span.n_tokens == 0)
            break;
        if (is_json)
            snprintf(text, sizeof text, "%s[%" PRIu64 ", %" PRIu64 ", %d]", at > first ? ", " : "",
                     span.first_token - first, span.n_tokens, (int)span.role);
        else
            snprintf(text, sizeof text, "%s%s", s->in_line ? " " : "",
                     !s->on_terminal                    ? "["
                     : span.role >= TOKMAP_SPAN_COUNTED ? "\033[32m"
                     : span.role == TOKMAP_SPAN_PROMPT || span.role >= TOKMAP_SPAN_UNCOUNTED
                         ? "\033[36m"
                         : "\033[31m");
        put(s, text);
        s->in_line = false;
        if (!is_json)
            code = print_tokens(s, span.first_token, span.first_token + span.n_tokens);
        put(s, is_json ? "" : s->on_terminal ? "\033[0m" : "]");
    }
    return code;
}

/* Prints the part [first, end) of a document as a line. */
static int print_line(cat_state *s, uint64_t index, uint64_t first, uint64_t end)
{
    int code = begin_document(s, index);
    const bool is_json = s->options->form == CAT_JSON;
    if (code == CLI_OK && (is_json || !s->options->spans))
        code = print_tokens(s, first, end);
    if (code == CLI_OK && s->options->spans) {
        put(s, is_json ? "], \"spans\": [" : "");
        code = print_spans(s, first, end);
        put(s, is_json ? "]" : "");
    }
    if (code == CLI_OK)
        end_document(s);
    return code;
}

/* ---- Documents ---- */

static int refuse_document(const cat_state *s, uint64_t index)
{
    return cli_error(CLI_DATASET, "%s: damaged: the entry of document %" PRIu64, s->info.index_path,
                     index);
}

/* Prints documents [index, end_index), cut to the tokens to print. Each must begin where the one
 * before ends: the index is not verified, and with a damaged one no token may be printed twice or
 * left out. */
static int print_documents(cat_state *s, uint64_t index, uint64_t end_index)
{
    tokmap_document doc;
    uint64_t next = s->end;
    for (uint64_t begin = index; index < end_index && !ferror(stdout); index++) {
        if (tokmap_dataset_document(s->ds, index, &doc) != TOKMAP_OK ||
            (index == begin ? doc.first_token > s->first : doc.first_token != next) ||
            doc.n_tokens > s->info.n_tokens || doc.first_token > s->info.n_tokens - doc.n_tokens)
            return refuse_document(s, index);
        next = doc.first_token + doc.n_tokens;
        uint64_t first = doc.first_token > s->first ? doc.first_token : s->first;
        uint64_t end = next < s->end ? next : s->end;
        if (s->kept && !values_is_kept(s->kept, index))
            continue;
        int code = first <= end ? print_line(s, index, first, end) : refuse_document(s, index);
        if (code != CLI_OK)
            return code;
    }
    return next < s->end && !ferror(stdout) ? refuse_document(s, end_index - 1) : CLI_OK;
}

static int print_document_range(cat_state *s, uint64_t index, uint64_t end_index)
{
    tokmap_document first, last;
    if (index == end_index)
        return CLI_OK;
    if (tokmap_dataset_document(s->ds, index, &first) != TOKMAP_OK ||
        tokmap_dataset_document(s->ds, end_index - 1, &last) != TOKMAP_OK)
        return refuse_document(s, index);
    s->first = first.first_token;
    s->end = last.first_token + last.n_tokens;
    if (s->first > s->end || s->end > s->info.n_tokens)
        return refuse_document(s, index);
    return s->options->form == CAT_RAW ? print_tokens(s, s->first, s->end)
                                       : print_documents(s, index, end_index);
}

/* ---- Command ---- */

static int print_asked(cat_state *s)
{
    const cat_options *options = s->options;
    const tokmap_dataset_info *info = &s->info;
    bool has_boundaries = info->n_documents || !info->n_tokens;
    if (!has_boundaries &&
        (options->documents || options->with_index || options->meta || options->where))
        return cli_error(CLI_DATASET, "%s: the document boundaries are not known",
                         info->index_path);
    int code = options->meta ? values_open_all(&s->columns, s->ds, true) : CLI_OK;
    if (code == CLI_OK && options->where)
        code = values_select(s->ds, options->where, &s->kept);
    if (code != CLI_OK)
        return code;
    if (options->meta && s->columns.n == 0)
        return cli_error(CLI_DATASET, "%s: its documents have no values (--meta)",
                         info->index_path);
    if (options->tokens || !has_boundaries) {
        const char *range = options->tokens ? options->tokens : ":";
        if (!cli_parse_range(range, info->n_tokens, &s->first, &s->end))
            return cli_refuse_range("--tokens", range, "token", info->n_tokens);
        if (s->first == s->end)
            return CLI_OK;
        if (options->form == CAT_RAW)
            return print_tokens(s, s->first, s->end);
        if (info->n_documents == 0)
            return print_line(s, 0, s->first, s->end);
        tokmap_document first, last;
        if (tokmap_dataset_find_document(s->ds, s->first, &first) != TOKMAP_OK ||
            tokmap_dataset_find_document(s->ds, s->end - 1, &last) != TOKMAP_OK)
            return cli_error(CLI_DATASET, "%s: damaged: no document contains token %" PRIu64,
                             info->index_path, s->first);
        return print_documents(s, first.index, last.index + 1);
    }
    uint64_t first_document, end_document;
    const char *range = options->documents ? options->documents : ":";
    if (!cli_parse_range(range, info->n_documents, &first_document, &end_document))
        return cli_refuse_range("--documents", range, "document", info->n_documents);
    return print_document_range(s, first_document, end_document);
}

/* Opens the tokenizer for --text: the file of --tokenizer, which must be the one that made the
 * dataset, or the one that is found, or 'bytes'. */
static int open_tokenizer(cat_state *s)
{
    tokenizer_choice choice = s->options->tokenizer;
    if (!choice.name) {
        s->tokenizer_path = dataset_find_tokenizer(s->ds);
        choice.name = *s->tokenizer_path.s ? s->tokenizer_path.s : NULL;
    }
    const int code = choice.name ? tokenizer_choice_open_decoder(&s->tokenizer, &choice) : CLI_OK;
    return code != CLI_OK ? code
                          : dataset_check_tokenizer(s->ds, choice.name, s->tokenizer.file_xxh3,
                                                    "; 'tokmap cat --json' and 'tokmap decode' "
                                                    "take any tokenizer");
}

static int print_dataset(void *options, const char *path, const tokmap_dataset *ds)
{
    (void)path;
    cat_state *s = calloc(1, sizeof *s);
    if (!s)
        return cli_no_memory();
    s->ds = ds;
    s->info = cli_dataset_info(ds);
    s->options = options;
    s->on_terminal = process_is_terminal(stdout);
    s->stored = malloc(CHUNK_TOKENS * s->info.token_bytes);
    s->ids = malloc(CHUNK_TOKENS * sizeof *s->ids);
    int code = s->stored && s->ids ? CLI_OK : cli_no_memory();
    if (code == CLI_OK)
        code = path_protect_dataset(ds);
    if (code == CLI_OK)
        code = path_check_stdout();
    if (code == CLI_OK && s->options->form == CAT_TEXT)
        code = open_tokenizer(s);
    if (code == CLI_OK)
        code = print_asked(s);
    line_writer_flush(&s->out);
    tokenizer_file_close(&s->tokenizer);
    id_buffer_free(&s->line);
    values_close_all(&s->columns);
    free(s->kept);
    free(s->stored);
    free(s->ids);
    free(s);
    return code;
}

#define TARGET(field) offsetof(cat_options, field)
static const cli_option option_table[] = {
    {"documents", 0, CLI_TEXT, TARGET(documents), "RANGE",
     .help = "print only these documents [all]"},
    {"tokens", 0, CLI_TEXT, TARGET(tokens), "RANGE",
     .help = "print only these tokens; documents are cut at both ends [all]"},
    {"where", 0, CLI_TEXT, TARGET(where), "EXPRESSION",
     .help = "print only the documents for whose values EXPRESSION holds, as in 'tokmap pack "
             "--where'; late columns have values too"},
    {"ids", 0, CLI_FLAG, TARGET(ids), .help = "print ids separated by spaces [default]"},
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print a JSON array of ids for each document"},
    {"text", 0, CLI_FLAG, TARGET(text),
     .help =
         "print the text; needs the --tokenizer that made the dataset; a document "
         "that does not end in a newline gets one; on a terminal, control characters are printed "
         "as \\x1b"},
    {"raw", 0, CLI_FLAG, TARGET(raw),
     .help =
         "print the bytes as they are stored, with nothing between documents; not to a terminal"},
    {"with-index", 0, CLI_FLAG, TARGET(with_index),
     .help = "begin each line with the number of the document and a tab; with --json, each line is "
             "{\"document\": N, \"ids\": [...]}"},
    {"meta", 0, CLI_FLAG, TARGET(meta),
     .help =
         "print the values of each document before it, those of late columns too, as a JSON object "
         "and a tab; with --json, each line is {\"meta\": {...}, \"ids\": [...]}"},
    {"spans", 0, CLI_FLAG, TARGET(spans),
     .help =
         "show which tokens have a role: in brackets; on a terminal in green if their labels "
         "count, in red if they were redacted, else in cyan; with --json, each line is {\"ids\": "
         "[...], \"spans\": "
         "[[FIRST, NUMBER, ROLE], ...]}, where FIRST is counted from the first id of the line"},
    {"tokenizer", 0, CLI_TEXT, TARGET(tokenizer.name), "FILE",
     .help = "for --text: the tokenizer that made the dataset [bytes, or the file that made it, in "
             "this folder or beside the dataset]"},
    TOKENIZER_ROWS(TARGET(tokenizer)),
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap cat [OPTION]... P",
    .about = "Prints the tokens of dataset P: one document per line, or all on one line if the "
             "document boundaries are not known.\n\n"
             "RANGE is FIRST:END, which does not include END; FIRST:, :END or a single number.",
    .options = option_table,
    .examples = "  tokmap cat data/train --documents 0:3\n"
                "  tokmap cat data/train --tokens 1M:1001k --raw | od -An -tu2\n"
                "  tokmap cat data/train --text | less\n"
                "  tokmap cat data/gpt2 --text --tokenizer tokenizer.json --documents 0\n",
    .operand = "dataset",
    .n_least = 1,
    .n_most = 1,
};

static int check_options(void *command_options, const input_list *names)
{
    cat_options *options = command_options;
    (void)names;
    if (options->ids + options->json + options->text + options->raw > 1)
        return cli_usage("use only one of --ids, --json, --text and --raw");
    if (options->tokenizer.name && !options->text)
        return cli_usage("--tokenizer works only with --text");
    if ((options->tokenizer.pattern || options->tokenizer.specials) && !options->tokenizer.name)
        return cli_usage("--pattern and --specials-file work only with --tokenizer");
    if (options->documents && options->tokens)
        return cli_usage("use only one of --documents and --tokens");
    if (options->where && options->raw)
        return cli_usage("--where does not work with --raw");
    options->form = options->json   ? CAT_JSON
                    : options->text ? CAT_TEXT
                    : options->raw  ? CAT_RAW
                                    : CAT_IDS;
    if (options->raw && process_is_terminal(stdout))
        return cli_usage("--raw does not print to a terminal; redirect it to a file or a pipe");
    if (options->raw && options->meta)
        return cli_usage("--meta does not work with --raw, which has no lines");
    if (options->raw && options->spans)
        return cli_usage("--spans does not work with --raw, which has only tokens");
    if (options->raw && options->with_index)
        return cli_usage("--with-index does not work with --raw, which has no lines");
    return CLI_OK;
}

int cat_command(int argc, char **argv)
{
    cat_options options = {0};
    const each_command command = {&manual, &options, dataset_names_take_one, .check = check_options,
                                  .work = print_dataset};
    return each_run(&command, argc, argv);
}

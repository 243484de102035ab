/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c - tokmap encode: texts to ids, one JSON value a line. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/text/text_commands.h"
#include "formats/json_line.h"
#include "datasets/lines.h"
#include "system/protected.h"
#include "tokenizer/file/special_place.h"
#include "base/array.h"
#include "base/utf8.h"
#include "tokenizer/choice/tokenizer_choice.h"

typedef struct encode_options {
    tokenizer_choice tokenizer;
    specials_policy specials;
    const char *field;
} encode_options;

typedef struct encode_state {
    line_reader lines;
    tokenizer_file tokenizer;
    encoder *encoder;
    const char *field;
    json_paths *paths;
    uint8_t *text; /* the text of a line with escapes */
    size_t text_capacity;
    id_buffer ids;
    uint64_t lone_surrogates;
    line_writer out;
} encode_state;

/* Finds the text of the line, with TEXT_PADDING readable bytes after it. */
static int find_text(encode_state *s, const text_line *line, json_line_result *text)
{
    if (!array_reserve(&s->text, &s->text_capacity, line->n_bytes + TEXT_PADDING, 1))
        return cli_no_memory();
    json_line_status status =
        json_line_text(s->paths, line->text, line->n_bytes, s->text, NULL, text);
    if (status == JSON_LINE_NO_FIELD || status == JSON_LINE_NULL)
        return cli_error(CLI_INPUT,
                         "%s: line %" PRIu64 ": the field '%s' is missing or is not a string",
                         s->lines.name, s->lines.number, s->field);
    if (status == JSON_LINE_MALFORMED)
        return cli_error(CLI_INPUT, "%s: line %" PRIu64 ": byte %" PRIu64 ": not JSON: %s",
                         s->lines.name, s->lines.number, text->error_offset, text->reason);
    if (status != JSON_LINE_OK)
        return line_reader_refuse(&s->lines, text->error_offset, text->reason);
    size_t n_valid = utf8_valid_prefix(text->text, text->n_bytes);
    if (n_valid < text->n_bytes)
        return line_reader_refuse(&s->lines, n_valid, "the text is not valid UTF-8");
    s->lone_surrogates += text->lone_surrogates;
    return CLI_OK;
}

static int encode_line(encode_state *s, const text_line *line)
{
    json_line_result text = {0};
    special_place place;
    int code = find_text(s, line, &text);
    if (code != CLI_OK)
        return code;
    s->ids.n = 0;
    switch (encoder_encode(s->encoder, text.text, text.n_bytes, &s->ids)) {
    case TOKENIZE_OK:
        line_writer_put(&s->out, "[", 1);
        line_writer_put_ids(&s->out, s->ids.ids, s->ids.n, ',', false);
        line_writer_put(&s->out, "]\n", 2);
        return CLI_OK;
    case TOKENIZE_SPECIAL:
        place = special_place_of(s->encoder, text.text, text.n_bytes);
        return cli_error(CLI_INPUT,
                         "%s: line %" PRIu64 ": byte %zu of the text: the special token %s",
                         s->lines.name, s->lines.number, place.at, place.name);
    case TOKENIZE_TOO_LONG:
        return cli_error(CLI_INPUT, "%s: line %" PRIu64 ": the text: " TOKENIZE_TOO_LONG_TEXT,
                         s->lines.name, s->lines.number);
    case TOKENIZE_NO_MEMORY:
        break;
    }
    return cli_no_memory();
}

static int encode_lines(encode_state *s)
{
    text_line line;
    bool more = true;
    int code = CLI_OK;
    while (code == CLI_OK && more && !ferror(stdout)) {
        code = line_reader_next(&s->lines, &line, &more);
        if (code == CLI_OK && more)
            code = encode_line(s, &line);
    }
    line_writer_flush(&s->out); /* the ids of the lines before a bad line are still written */
    code = cli_first_failure(code, cli_finish());
    if (code == CLI_OK && s->lone_surrogates)
        cli_warn("%s: %s in \\u escapes replaced with U+FFFD", s->lines.name,
                 cli_count_of(s->lone_surrogates, "lone surrogate").s);
    return code;
}

/* ---- Command ---- */

static int open_all(encode_state *s, const encode_options *options, const char *name)
{
    int code = tokenizer_choice_open(&s->tokenizer, &options->tokenizer);
    if (code != CLI_OK)
        return code;
    const encoder_options encoding = {.specials = options->specials};
    s->encoder = encoder_new(s->tokenizer.tokenizer, &encoding);
    if (!s->encoder)
        return cli_no_memory();
    s->field = options->field;
    s->paths = json_paths_new(options->field, NULL);
    if (!s->paths)
        return json_path_fits(options->field)
                   ? cli_no_memory()
                   : cli_usage("--field %s: has too many parts", options->field);
    s->paths->bare_string = true;
    code = line_reader_open(&s->lines, name);
    return code == CLI_OK ? path_check_stdout() : code;
}

#define TARGET(field) offsetof(encode_options, field)
static const cli_option option_table[] = {
    {"tokenizer", 0, CLI_TEXT, TARGET(tokenizer.name), "FILE", .help = TOKENIZER_HELP,
     .is_required = true},
    TOKENIZER_ROWS(TARGET(tokenizer)),
    {"specials", 0, CLI_WORD, TARGET(specials), "WORD",
     .help = "what to do with special tokens that appear in the text [text]",
     .words = tokenizer_specials_words},
    {"field", 0, CLI_TEXT, TARGET(field), "PATH",
     .help = "the field of an object that holds the text, such as meta.body [text]"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap encode [OPTION]... --tokenizer FILE [INPUT]",
    .about = "Reads texts from INPUT or stdin, one JSON value per line: a string, or an object "
             "with the field 'text'. For each line, writes the ids of the text as a JSON array, in "
             "the same order. Blank lines are skipped. No token is added before or after a text. "
             "'tokmap decode' does the reverse.",
    .options = option_table,
    .examples = "  echo '\"Hello, world\"' | tokmap encode --tokenizer tokenizer.json\n"
                "  tokmap encode --tokenizer o200k.tiktoken --pattern o200k texts.jsonl\n",
    .operand = "input",
    .n_most = 1,
};

int encode_command(int argc, char **argv)
{
    encode_options options = {.field = "text"};
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code != CLI_GO_ON)
        return code;
    encode_state *s = calloc(1, sizeof *s);
    if (!s)
        return cli_no_memory();
    code = open_all(s, &options, optind < argc ? argv[optind] : "-");
    if (code == CLI_OK)
        code = encode_lines(s);
    line_reader_close(&s->lines);
    json_paths_free(s->paths);
    encoder_free(s->encoder);
    tokenizer_file_close(&s->tokenizer);
    id_buffer_free(&s->ids);
    free(s->text);
    free(s);
    return code;
}

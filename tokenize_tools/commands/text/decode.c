/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - tokmap decode: ids back to texts, one JSON value a line. */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/text/text_commands.h"
#include "cli/json_out.h"
#include "datasets/lines.h"
#include "system/protected.h"
#include "tokenizer/choice/tokenizer_choice.h"

typedef struct decode_state {
    line_reader lines;
    tokenizer_file tokenizer;
    id_buffer ids;
} decode_state;

/* ---- Arrays ---- */

static int refuse(const decode_state *s, const text_line *line, const uint8_t *at, const char *why)
{
    return line_reader_refuse(&s->lines, (uint64_t)(at - line->text), why);
}

/* Parses a whole number of at most 32 bits. Returns what follows it, or NULL if there is none. */
static const uint8_t *parse_id(const uint8_t *at, const uint8_t *end, uint32_t *id)
{
    uint64_t value = 0;
    const uint8_t *first = at;
    for (; at < end && *at >= '0' && *at <= '9' && value <= UINT32_MAX; at++)
        value = 10 * value + (*at - (unsigned)'0');
    *id = (uint32_t)value;
    bool leading_zero = at - first > 1 && *first == '0';
    return at == first || value > UINT32_MAX || leading_zero ? NULL : at;
}

static int parse_ids(decode_state *s, const text_line *line)
{
    const uint8_t *end = line->text + line->n_bytes, *at = text_line_skip_blanks(line, line->text);
    s->ids.n = 0;
    if (at == end || *at != '[')
        return refuse(s, line, at, "expected an array of ids");
    at = text_line_skip_blanks(line, at + 1);
    bool more = at < end && *at != ']';
    while (more) {
        uint32_t id;
        const uint8_t *behind = parse_id(at, end, &id);
        if (!behind)
            return refuse(s, line, at, "expected an id");
        if (!id_buffer_reserve(&s->ids, 1))
            return cli_no_memory();
        s->ids.ids[s->ids.n++] = id;
        at = text_line_skip_blanks(line, behind);
        more = at < end && *at == ',';
        if (more)
            at = text_line_skip_blanks(line, at + 1);
    }
    if (at == end || *at != ']')
        return refuse(s, line, at, "expected a comma or the end of the array");
    at = text_line_skip_blanks(line, at + 1);
    return at == end ? CLI_OK : refuse(s, line, at, "trailing data after the array");
}

/* ---- Lines ---- */

static int decode_line(decode_state *s, const text_line *line)
{
    int code = parse_ids(s, line);
    if (code != CLI_OK)
        return code;
    model_text text = {0};
    size_t bad = SIZE_MAX;
    if (!tokenizer_decode(s->tokenizer.tokenizer, s->ids.ids, s->ids.n, &text, &bad)) {
        if (bad == SIZE_MAX)
            return cli_no_memory();
        return cli_error(CLI_INPUT,
                         "%s: line %" PRIu64 ": the tokenizer %s has no token with the id %u",
                         s->lines.name, s->lines.number, s->tokenizer.name, s->ids.ids[bad]);
    }
    json_text_print_string(stdout, text.s ? text.s : "", text.n_bytes);
    putchar('\n');
    free(text.s);
    return CLI_OK;
}

/* ---- Command ---- */

static const cli_option option_table[] = {
    {"tokenizer", 0, CLI_TEXT, offsetof(tokenizer_choice, name), "FILE", .help = TOKENIZER_HELP,
     .is_required = true},
    TOKENIZER_ROWS(0),
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap decode [OPTION]... --tokenizer FILE [INPUT]",
    .about =
        "Reads ids from INPUT or stdin, one JSON array per line, as 'tokmap encode' and 'tokmap "
        "cat --json' write them. For each line, writes the text as a JSON string. Blank lines are "
        "skipped. Each invalid UTF-8 sequence becomes one U+FFFD. Special tokens are written as "
        "their text.",
    .options = option_table,
    .examples = "  echo '[9906, 11, 1917]' |\n"
                "      tokmap decode --tokenizer cl100k_base.tiktoken --pattern cl100k\n"
                "  tokmap cat --json data/train | tokmap decode --tokenizer tokenizer.json\n",
    .operand = "input",
    .n_most = 1,
};

int decode_command(int argc, char **argv)
{
    tokenizer_choice choice = {0};
    decode_state s = {0};
    text_line line;
    bool more = true;
    int code = cli_parse_options(&manual, argc, argv, &choice);
    if (code != CLI_GO_ON)
        return code;
    code = tokenizer_choice_open_decoder(&s.tokenizer, &choice);
    if (code == CLI_OK)
        code = line_reader_open(&s.lines, optind < argc ? argv[optind] : "-");
    if (code == CLI_OK)
        code = path_check_stdout();
    while (code == CLI_OK && more && !ferror(stdout)) {
        code = line_reader_next(&s.lines, &line, &more);
        if (code == CLI_OK && more)
            code = decode_line(&s, &line);
    }
    line_reader_close(&s.lines);
    tokenizer_file_close(&s.tokenizer);
    id_buffer_free(&s.ids);
    return cli_first_failure(code, cli_finish());
}

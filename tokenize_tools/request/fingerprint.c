/* SPDX-License-Identifier: Apache-2.0 */
#include "request/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/real.h"
#include "system/memory_file.h"
#include "cli/line_text.h"
#include "tokenizer/choice/tokenizer_choice.h"
#include "tokmap.h"

corpus_options pack_corpus_options(const pack_parts *parts)
{
    corpus_options options = {.reader = pack_reader_options(parts->options)};
    options.reader.vocab_size = parts->tokens->vocab_size;
    return options;
}

/* ---- Text ---- */

static void put_text(FILE *out, const char *name, const char *value, size_t n_bytes)
{
    fprintf(out, "%s ", name);
    if (!value)
        fputs("none", out);
    else if (n_bytes == 4 && memcmp(value, "none", 4) == 0)
        fputs("\\x6eone", out); /* the word "none" itself */
    else
        line_text_print(out, value, n_bytes);
    putc('\n', out);
}

static void put_word(FILE *out, const char *name, const char *value)
{
    put_text(out, name, value, value ? strlen(value) : 0);
}

static void put_number(FILE *out, const char *name, uint64_t value)
{
    if (value == UINT64_MAX)
        put_word(out, name, NULL);
    else
        fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static void put_id(FILE *out, const char *name, uint32_t id)
{
    put_number(out, name, id == MODEL_NO_ID ? UINT64_MAX : id);
}

static void put_patterns(FILE *out, const char *name, const name_patterns *patterns)
{
    for (size_t i = 0; i < patterns->n; i++)
        put_word(out, name, patterns->list[i]);
}

/* Prints the options. --on-error is left out: until a document is bad it makes no difference. */
static void put_options(FILE *out, const pack_options *o)
{
    put_patterns(out, "--include", &o->filter.include);
    put_patterns(out, "--exclude", &o->filter.exclude);
    if (o->skip_unsuitable)
        put_word(out, "--skip-unsuitable", "yes");
    put_word(out, "--format", cli_word_name(pack_formats, o->input.format));
    put_word(out, o->tokens ? "--tokens" : o->parts ? "--parts" : "--field", o->input.field);
    if (o->tokens) {
        put_word(out, "--labels", o->labels);
        put_word(out, "--loss-mask", o->loss_mask);
        put_number(out, "--vocab-size", o->vocab_size);
    }
    if (o->input.roles)
        put_word(out, "--roles", o->input.roles);
    put_text(out, "--separator", o->separator, o->input.separator_bytes);
    put_word(out, "--meta", o->meta);
    if (o->input.columns)
        put_word(out, "--columns", o->input.columns);
    for (size_t i = 0; i < o->n_meta_text; i++)
        put_word(out, "--meta-text", o->meta_text[i]);
    put_word(out, "--where", o->where_text);
    put_word(out, "--utf8", cli_word_name(pack_utf8_words, o->input.utf8));
    put_word(out, "--strict-json", o->input.strict_json ? "yes" : NULL);
    put_number(out, "--limit-documents", o->limit_documents);
    put_number(out, "--limit-tokens", o->limit_tokens);
    put_word(out, "--also", o->also ? cli_word_name(pack_also_words, o->also) : NULL);
    fputs("--split ", out);
    for (size_t i = 0; i < o->n_splits; i++) {
        char digits[REAL_BYTES];
        real_write(digits, o->splits[i].fraction);
        fprintf(out, "%s%s=%s", i ? " " : "", o->splits[i].name, digits);
    }
    fputs(o->n_splits ? "\n" : "none\n", out);
}

size_t pack_fingerprint_cell(const pack_cell *cell, char text[PACK_FINGERPRINT_CELL_BYTES])
{
    const int n = snprintf(text, PACK_FINGERPRINT_CELL_BYTES, "plan %016" PRIx64 "\ncell %zu\n",
                           cell->origin, cell->number);
    snprintf(text + n, PACK_FINGERPRINT_CELL_BYTES - (size_t)n,
             "checksum of the cell %016" PRIx64 "\n", cell->hash);
    return (size_t)n;
}

bool pack_fingerprint_make(pack_fingerprint *fingerprint, const pack_parts *parts)
{
    *fingerprint = (pack_fingerprint){0};
    memory_file text;
    FILE *out = memory_file_open(&text);
    if (!out)
        return false;
    if (parts->cell) {
        char cell[PACK_FINGERPRINT_CELL_BYTES];
        pack_fingerprint_cell(parts->cell, cell);
        fputs(cell, out);
    }
    const tokenizer_file *t = parts->tokenizer;
    put_word(out, "version", tokmap_version());
    put_word(out, "--tokenizer", t->name);
    fprintf(out, "checksum of the tokenizer %016" PRIx64 "-%016" PRIx64 "\n", t->file_xxh3,
            t->merges_xxh3);
    put_word(out, "--pattern", t->pattern);
    fprintf(out, "checksum of --specials-file %016" PRIx64 "\n", t->specials_xxh3);
    put_word(out, "--specials", cli_word_name(tokenizer_specials_words, parts->options->specials));
    put_id(out, "--eod", parts->tokens->eod_id);
    put_id(out, "--bos", parts->tokens->bos_id);
    put_options(out, parts->options);
    /* A plain run records it once it has left a document out: then a run with another one may
     * resume it until then. */
    if (parts->cell || !parts->inputs)
        put_number(out, "--max-document", parts->options->max_document);
    fflush(out);
    fingerprint->options_bytes = text.n_bytes;
    const pack_inputs *inputs = parts->inputs;
    for (size_t i = 0; inputs && i < inputs->n; i++) {
        fprintf(out, "input %" PRIu64 " %" PRIu64 " ", inputs->versions[i].n_bytes,
                inputs->versions[i].mtime_ns);
        line_text_print(out, inputs->names[i], strlen(inputs->names[i]));
        putc('\n', out);
    }
    if (!memory_file_close(out, &text))
        return false;
    fingerprint->text = text.text;
    fingerprint->n_bytes = text.n_bytes;
    fingerprint->hash = XXH3_64bits(fingerprint->text, fingerprint->n_bytes);
    return true;
}

size_t pack_fingerprint_before(const pack_fingerprint *fingerprint, uint64_t n)
{
    size_t at = fingerprint->options_bytes;
    for (; n > 0 && at < fingerprint->n_bytes; n--)
        at += strcspn(fingerprint->text + at, "\n") + 1;
    return at;
}

uint64_t pack_fingerprint_hash(const pack_fingerprint *fingerprint, uint64_t n)
{
    return XXH3_64bits(fingerprint->text, pack_fingerprint_before(fingerprint, n));
}

void pack_fingerprint_free(pack_fingerprint *fingerprint)
{
    free(fingerprint->text);
    fingerprint->text = NULL;
}

/* ---- Difference ---- */

#define LINE_BYTES 1024

/* Returns the rest of the line after its first n words. */
static const char *behind_words(const char *line, int n)
{
    for (; n > 0 && *line; n--) {
        line += strcspn(line, " ");
        line += *line != '\0';
    }
    return line;
}

/* Describes how lines "input SIZE MTIME NAME" differ; an empty line stands for no input. */
static void differ_in_input(const char *then, const char *now,
                            char difference[PACK_DIFFERENCE_BYTES])
{
    const char *name_then = behind_words(then, 3), *name_now = behind_words(now, 3);
    if (strcmp(name_then, name_now) == 0)
        snprintf(difference, PACK_DIFFERENCE_BYTES, "%.400s has changed", name_now);
    else if (!*name_now)
        snprintf(difference, PACK_DIFFERENCE_BYTES, "the input %.400s is missing", name_then);
    else if (!*name_then)
        snprintf(difference, PACK_DIFFERENCE_BYTES, "the input %.400s is new", name_now);
    else
        snprintf(difference, PACK_DIFFERENCE_BYTES, "the input %.200s is now %.200s", name_then,
                 name_now);
}

/* Describes how lines "--eod 256", or "checksum of the tokenizer 0123-4567", differ. */
static void differ_in_option(const char *then, const char *now,
                             char difference[PACK_DIFFERENCE_BYTES])
{
    size_t n_name = strcspn(then, " ");
    for (size_t i = 0; *then != '-' && then[i] && then[i] == now[i]; i++) {
        if (then[i] == ' ')
            n_name = i;
    }
    const char *value_then = then + n_name + (then[n_name] == ' ');
    const char *value_now = strlen(now) > n_name ? now + n_name + 1 : "";
    snprintf(difference, PACK_DIFFERENCE_BYTES, "%.*s was %.200s and is now %.200s",
             n_name < 60 ? (int)n_name : 60, then, value_then, value_now);
}

/* Returns the bytes of the name that a line "--eod 256" begins with; 0: it is another line. */
static size_t option_bytes(const char *line)
{
    return *line == '-' ? strcspn(line, " ") : 0;
}

/* Whether the text has a line of the option that this line is of. */
static bool has_option(const pack_fingerprint *f, const char *line)
{
    const size_t n = option_bytes(line);
    const char *at = f->text;
    while (at && !(strncmp(at, line, n) == 0 && at[n] == ' ')) {
        at = strchr(at, '\n');
        at += at != NULL;
    }
    return at != NULL;
}

/* Copies the line at `text`, or as much of it as fits. */
static void copy_line(char line[LINE_BYTES], const char *text, const char *end)
{
    const char *newline = text < end ? memchr(text, '\n', (size_t)(end - text)) : NULL;
    snprintf(line, LINE_BYTES, "%.*s", (int)((newline ? newline : end) - text), text);
}

void pack_fingerprint_difference(const pack_fingerprint *fingerprint, const char *then,
                                 size_t n_then, char difference[PACK_DIFFERENCE_BYTES])
{
    const char *now = fingerprint->text;
    const size_t n_now = fingerprint->n_bytes;
    char line_then[LINE_BYTES], line_now[LINE_BYTES];
    size_t begin = 0; /* of the first line that differs */
    for (size_t i = 0; i < n_then && i < n_now && then[i] == now[i]; i++)
        begin = then[i] == '\n' ? i + 1 : begin;
    copy_line(line_then, then + begin, then + n_then);
    copy_line(line_now, now + begin, now + n_now);
    const char *line = *line_then ? line_then : line_now;
    if (!*line)
        snprintf(difference, PACK_DIFFERENCE_BYTES, "the inputs differ");
    else if (strncmp(line, "input ", 6) == 0)
        differ_in_input(line_then, line_now, difference);
    else if (option_bytes(line_then) && option_bytes(line_now) &&
             (option_bytes(line_then) != option_bytes(line_now) ||
              strncmp(line_then, line_now, option_bytes(line_now)) != 0)) {
        /* Some lines are there only if the option is given. */
        const bool is_new = has_option(fingerprint, line_then);
        const char *given = is_new ? line_now : line_then;
        const size_t n = option_bytes(given);
        snprintf(difference, PACK_DIFFERENCE_BYTES, "%.*s was %.200s and is now %.200s", (int)n,
                 given, is_new ? "none" : given + n + 1, is_new ? given + n + 1 : "none");
    } else
        differ_in_option(line_then, line_now, difference);
}

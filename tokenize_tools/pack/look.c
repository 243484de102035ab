/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/look.h"

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "corpus/wrong_file.h"

/* Usually enough to recognize a file; a longer record is read as a whole. */
#define READ_BYTES ((size_t)16 * 1024)
#define MAX_NAMED 3

/* Inputs that a message names together. */
typedef struct input_group {
    size_t n;
    const char *names[MAX_NAMED]; /* the first ones */
} input_group;

typedef struct look {
    const pack_parts *parts;
    pack_kinds *kinds;
    pack_seen *seen; /* of each input, or NULL */
    input_group empty, not_compressed, text, records;
} look;

static void add_to(input_group *group, const char *name)
{
    if (group->n < MAX_NAMED)
        group->names[group->n] = name;
    group->n++;
}

/* ---- One input ---- */

static void sort_input(look *l, const char *name, const reader *r, const pack_seen *seen)
{
    const bool empty = seen->format == CORPUS_AUTO && !reader_is_archive(r);
    l->kinds->n[seen->format]++;
    if (l->parts->options->format != CORPUS_AUTO)
        return;
    if (empty)
        add_to(&l->empty, name);
    else if (!*seen->summary.codec && wrong_name_is_compressed(name))
        add_to(&l->not_compressed, name);
    if (seen->format != CORPUS_AUTO)
        add_to(seen->format == CORPUS_TEXT ? &l->text : &l->records, name);
}

static int look_at(void *context, size_t which)
{
    look *l = context;
    const pack_inputs *inputs = l->parts->inputs;
    pack_seen one, *seen = l->seen ? &l->seen[which] : &one;
    corpus_options options = pack_corpus_options(l->parts->options);
    const input_source source = {.path = inputs->names[which], .version = &inputs->versions[which]};
    failure err;
    reader_text text;
    options.read_bytes = READ_BYTES;
    *seen = (pack_seen){.format = options.format, .summary.n_records = READER_UNKNOWN};
    if (!source.version->known)
        return CLI_OK;
    reader *r = reader_open(&source, &options, -1, &err);
    if (!r || reader_next(r, &text, &err) == READER_FAILED) {
        reader_close(r);
        return cli_print_failure(&err);
    }
    seen->format = reader_format(r);
    reader_summarize(r, &seen->summary);
    sort_input(l, source.path, r, seen);
    reader_close(r);
    return CLI_OK;
}

/* ---- Messages ---- */

/* "a.txt, b.txt, c.txt and 2 more" */
static void note_group(const look *l, const input_group *group, const char *what)
{
    char names[1024] = "";
    if (group->n == 0 || l->parts->options->quiet)
        return;
    for (size_t i = 0; i < group->n && i < MAX_NAMED; i++) {
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%.300s", i ? ", " : "", group->names[i]);
    }
    if (group->n > MAX_NAMED)
        cli_warn("%s and %zu more: %s", names, group->n - MAX_NAMED, what);
    else
        cli_warn("%s: %s", names, what);
}

/* As a word of the shell. */
static void print_word(const char *word)
{
    putc('\'', stderr);
    cli_print_plain(stderr, word, strlen(word));
    putc('\'', stderr);
}

static void print_command(const look *l, const input_group *group, const char *kind)
{
    const pack_options *o = l->parts->options;
    fprintf(stderr, "  tokmap %s%s", o->cells_folder ? "plan" : "pack",
            group == &l->text ? " --format text" : "");
    for (size_t i = 0; i < group->n && i < MAX_NAMED; i++) {
        putc(' ', stderr);
        print_word(group->names[i]);
    }
    fputs(group->n > MAX_NAMED ? " ..." : "", stderr);
    if (o->cells_folder)
        fprintf(stderr, " --cells '%s-%s'", o->cells_folder, kind);
    fprintf(stderr, " -o '%s-%s'\n", o->output, kind);
}

static int check_mixed(const look *l)
{
    if (l->text.n == 0 || l->records.n == 0)
        return CLI_OK;
    cli_error(CLI_INPUT,
              "%s: is text, but %s has records, and --format auto does not pack both in "
              "one run (%s of text, %s of records)",
              l->text.names[0], l->records.names[0], cli_count_of(l->text.n, "input").s,
              cli_count_of(l->records.n, "input").s);
    fputs("Pack each kind by itself, with the same other options:\n", stderr);
    print_command(l, &l->text, "text");
    print_command(l, &l->records, "records");
    const char *p = l->parts->options->output;
    if (!l->parts->options->cells_folder)
        fprintf(stderr, "  tokmap merge '%s-text' '%s-records' -o '%s'\n", p, p, p);
    return CLI_INPUT;
}

const char *pack_kind_name(corpus_format kind)
{
    return kind == CORPUS_AUTO ? "empty" : cli_word_name(pack_formats, kind);
}

void pack_kinds_text(const pack_kinds *kinds, char text[PACK_KINDS_BYTES])
{
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < PACK_N_KINDS; i++) {
        const corpus_format kind = (i + 1) % PACK_N_KINDS; /* empty ones last */
        if (kinds->n[kind])
            n += (size_t)snprintf(text + n, PACK_KINDS_BYTES - n, "%s%s %s", n ? ", " : "",
                                  cli_count(kinds->n[kind]).s, pack_kind_name(kind));
    }
}

int pack_look(const pack_parts *parts, pack_kinds *kinds, pack_seen *seen)
{
    look l = {.parts = parts, .kinds = kinds, .seen = seen};
    *kinds = (pack_kinds){0};
    int code = pack_inputs_each(parts->inputs, look_at, &l);
    if (code == CLI_OK)
        code = check_mixed(&l);
    if (code != CLI_OK)
        return code;
    note_group(&l, &l.empty, "empty, without documents");
    note_group(&l, &l.not_compressed, "not compressed, although the name says so");
    return CLI_OK;
}

void pack_kinds_note(const pack_parts *parts)
{
    char kinds[PACK_KINDS_BYTES];
    pack_kinds_text(&parts->inputs->kinds, kinds);
    const pack_options *o = parts->options;
    if (*kinds && o->format == CORPUS_AUTO && !o->quiet && !o->json)
        cli_warn("formats: %s", kinds);
}

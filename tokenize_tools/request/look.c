/* SPDX-License-Identifier: Apache-2.0 */
#include "request/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "corpus/open_input.h"
#include "formats/wrong_file.h"
#include "request/input_group.h"

/* Usually enough to recognize a file; a longer record is read as a whole. */
#define READ_BYTES ((size_t)16 * 1024)

typedef struct look {
    pack_inputs *inputs;
    const pack_options *options;
    input_group empty, not_compressed, text, records;
} look;

typedef struct looked {
    pack_seen seen;
    bool is_known, is_archive, failed;
    failure error;
} looked;

/* Memory for pages in each of the looks that go on at the same time; and for a decompressor, of
 * whose window a look uses little, or a long record. What needs more is looked at again, alone. */
#define LOOK_MEMORY ((uint64_t)2 << 20)
#define LOOK_WINDOW ((uint64_t)16 << 20)

static bool fits(void *context, uint64_t n_bytes)
{
    (void)context;
    return n_bytes <= LOOK_WINDOW;
}

static void look_with(const look *l, size_t which, bool alone, looked *found)
{
    reader_options options = pack_reader_options(l->options);
    const input_source source = {.path = l->inputs->names[which],
                                 .version = &l->inputs->versions[which],
                                 .reserve = alone ? NULL : fits};
    document first;
    options.window.read_bytes = options.sample_bytes = READ_BYTES;
    options.on_error = ON_ERROR_FAIL; /* else a long record is read to its end */
    if (!alone)
        options.page_memory = MIN(options.page_memory, LOOK_MEMORY);
    *found = (looked){
        .seen = {.format = options.format, .summary.n_records = READER_UNKNOWN},
        .is_known = source.version->known,
    };
    if (!found->is_known)
        return;
    reader *r = reader_open(&source, &options, -1, &found->error);
    found->failed = !r || reader_next(r, &first, &found->error) == READER_FAILED;
    if (!found->failed) {
        found->seen.format = reader_format(r);
        found->is_archive = reader_is_archive(r);
        reader_summarize(r, &found->seen.summary);
    }
    reader_close(r);
}

static void look_at(void *context, size_t which, void *result)
{
    look_with(context, which, false, result);
}

/* Counts the input; with --format auto, also in the groups that messages name. */
static void sort_input(look *l, const char *name, const looked *found)
{
    const pack_seen *seen = &found->seen;
    const bool empty = seen->format == CORPUS_AUTO && !found->is_archive;
    l->inputs->kinds[seen->format]++;
    if (l->options->input.format != CORPUS_AUTO)
        return;
    if (empty)
        input_group_add(&l->empty, name);
    else if (!*seen->summary.codec && wrong_name_is_compressed(name))
        input_group_add(&l->not_compressed, name);
    if (seen->format != CORPUS_AUTO)
        input_group_add(seen->format == CORPUS_TEXT ? &l->text : &l->records, name);
}

static int take_look(void *context, size_t which, void *result)
{
    look *l = context;
    pack_inputs *inputs = l->inputs;
    looked *found = result;
    const char *name = inputs->names[which];
    if (found->failed) /* maybe for lack of memory */
        look_with(l, which, true, found);
    if (inputs->seen)
        inputs->seen[which] = found->seen;
    if (inputs->in_pages)
        inputs->in_pages[which] = corpus_format_has_pages(found->seen.format);
    if (found->failed && !found->error.kind)
        return cli_print_failure(&found->error);
    if (found->failed)
        return unsuitable_add(&inputs->unsuitable, which, name, &found->error) ? CLI_OK
                                                                               : cli_no_memory();
    if (found->is_known)
        sort_input(l, name, found);
    return CLI_OK;
}

/* As many looks as memory for inputs allows, but a few in any case. */
static size_t n_looks(const look *l)
{
    const uint64_t n = l->options->memory / 4 * l->options->n_threads / LOOK_MEMORY;
    return (size_t)MAX(MIN(n, (uint64_t)PACK_MOST_LOOKS), 4);
}

static int look_at_all(look *l)
{
    return pack_inputs_each(l->inputs,
                            &(pack_input_work){look_at, take_look, sizeof(looked), n_looks(l), l});
}

/* Prints an argument for a shell: what comes before it, a name and its ending. */
static void print_argument(const char *before, const char *name, const char *ending)
{
    fprintf(stderr, "%s'", before);
    for (size_t n; *name; name += n + (name[n] == '\'')) {
        n = strcspn(name, "'");
        cli_print_plain(stderr, name, n);
        fputs(name[n] ? "'\\''" : "", stderr);
    }
    fprintf(stderr, "%s'", ending);
}

static void print_command(const look *l, const input_group *group, const char *ending)
{
    const pack_options *o = l->options;
    fprintf(stderr, "  tokmap %s%s", o->cells_folder ? "plan" : "pack",
            group == &l->text ? " --format text" : "");
    for (size_t i = 0; i < group->n && i < INPUT_GROUP_NAMED; i++)
        print_argument(" ", group->names[i], "");
    fputs(group->n > INPUT_GROUP_NAMED ? " ..." : "", stderr);
    if (o->cells_folder)
        print_argument(" --cells ", o->cells_folder, ending);
    print_argument(" -o ", o->output, ending);
    putc('\n', stderr);
}

static int check_mixed(const look *l)
{
    if (l->text.n == 0 || l->records.n == 0)
        return CLI_OK;
    return cli_error(CLI_INPUT,
                     "%s: is text, but %s has records, and --format auto does not pack both in "
                     "one run (%s of text, %s of records)",
                     l->text.names[0], l->records.names[0], cli_count_of(l->text.n, "input").s,
                     cli_count_of(l->records.n, "input").s);
}

/* Prints the commands that pack text and records by themselves. */
static void advise_mixed(const look *l)
{
    fputs("Pack each kind by itself, with the same other options; --include and --exclude choose "
          "files "
          "of a folder:\n",
          stderr);
    print_command(l, &l->text, "-text");
    print_command(l, &l->records, "-records");
    if (!l->options->cells_folder) {
        print_argument("  tokmap merge ", l->options->output, "-text");
        print_argument(" ", l->options->output, "-records");
        print_argument(" -o ", l->options->output, "");
        putc('\n', stderr);
    }
}

const char *pack_kind_name(corpus_format kind)
{
    return kind == CORPUS_AUTO ? "empty" : cli_word_name(pack_formats, kind);
}

void pack_kinds_text(const pack_inputs *inputs, char text[PACK_KINDS_BYTES])
{
    size_t n = 0;
    *text = '\0';
    for (size_t i = 0; i < CORPUS_N_FORMATS; i++) {
        const corpus_format kind = (i + 1) % CORPUS_N_FORMATS; /* empty ones last */
        if (inputs->kinds[kind])
            n += (size_t)snprintf(text + n, PACK_KINDS_BYTES - n, "%s%s %s", n ? ", " : "",
                                  cli_count(inputs->kinds[kind]).s, pack_kind_name(kind));
    }
}

/* Removes the inputs that are unsuitable; their list keeps the names. */
static void remove_unsuitable(pack_inputs *inputs)
{
    unsuitable_list *list = &inputs->unsuitable;
    size_t n = 0;
    for (size_t i = 0, next = 0; i < inputs->n; i++) {
        if (next < list->n && list->files[next].which == i) {
            inputs->total_bytes -= inputs->once ? 0 : inputs->versions[i].n_bytes;
            next++;
            continue;
        }
        inputs->files.names[n] = inputs->files.names[i];
        inputs->versions[n] = inputs->versions[i];
        if (inputs->seen)
            inputs->seen[n] = inputs->seen[i];
        inputs->in_pages[n] = inputs->in_pages[i];
        n++;
    }
    inputs->n = inputs->files.n_names = n;
    list->owns_names = true;
}

/* Refuses what is recognized as something other than text, or leaves it out. `code` is that of the
 * other inputs. */
static int settle_unsuitable(pack_inputs *inputs, const pack_options *options, int code)
{
    if (inputs->unsuitable.n == 0 || (options->skip_unsuitable && code != CLI_OK))
        return code;
    if (!options->skip_unsuitable)
        return unsuitable_refuse(&inputs->unsuitable, inputs->unsuitable.n == inputs->n);
    remove_unsuitable(inputs);
    if (!options->quiet)
        unsuitable_note(&inputs->unsuitable);
    return inputs->n > 0 ? CLI_OK : cli_error(CLI_INPUT, "no files are left to pack");
}

int pack_inputs_look(pack_inputs *inputs, const pack_options *options)
{
    look l = {.inputs = inputs, .options = options};
    inputs->in_pages = calloc(inputs->n, sizeof *inputs->in_pages);
    if (!inputs->in_pages)
        return cli_no_memory();
    if (options->dry_run) {
        inputs->seen = calloc(inputs->n, sizeof *inputs->seen);
        if (!inputs->seen)
            return cli_no_memory();
    }
    int code = look_at_all(&l);
    if (code == CLI_OK || code == CLI_INPUT)
        code = settle_unsuitable(inputs, options, code);
    if (code != CLI_OK)
        return code;
    code = check_mixed(&l);
    if (code != CLI_OK) {
        advise_mixed(&l);
        return code;
    }
    input_group_note(options, &l.empty, "empty, without documents");
    input_group_note(options, &l.not_compressed, "not compressed, although the name says so");
    return CLI_OK;
}

int pack_inputs_check_kinds(pack_inputs *inputs, const pack_options *options)
{
    look l = {.inputs = inputs, .options = options};
    int code = look_at_all(&l);
    if (code == CLI_OK && inputs->unsuitable.n > 0)
        code = unsuitable_refuse(&inputs->unsuitable, true);
    unsuitable_free(&inputs->unsuitable);
    return code == CLI_OK ? check_mixed(&l) : code;
}

void pack_kinds_note(const pack_inputs *inputs, const pack_options *options)
{
    char kinds[PACK_KINDS_BYTES];
    pack_kinds_text(inputs, kinds);
    if (*kinds && options->input.format == CORPUS_AUTO && !options->quiet && !options->json)
        cli_warn("formats: %s", kinds);
}

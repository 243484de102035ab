/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "corpus/open_input.h"
#include "formats/wrong_file.h"
#include "input/hub.h"
#include "system/files.h"
#include "system/process.h"
#include "system/protected.h"

typedef struct named_file {
    file_id id; /* the first member, for file_id_compare */
    const char *name;
} named_file;

int pack_input_describe(const char *name, file_facts *facts)
{
    const int error = file_describe_input(name, facts);
    if (error)
        return cli_error(cli_errno_exit_code(error), "%s: %s", name, strerror(error));
    if (facts->kind == FILE_FOLDER)
        return cli_error(CLI_INPUT, "%s: is a folder", name);
    return path_protect(facts, "an input");
}

int pack_inputs_each(const pack_inputs *inputs, pack_input_look look, void *context)
{
    size_t n_bad = 0;
    int code = CLI_OK;
    for (size_t i = 0; i < inputs->n && (code == CLI_OK || code == CLI_INPUT); i++) {
        const int one =
            process_is_interrupted() ? cli_error(CLI_AGAIN, "interrupted") : look(context, i);
        n_bad += one == CLI_INPUT;
        code = cli_first_failure(one, code);
    }
    if (n_bad > 1)
        cli_warn("%s cannot be packed; repair, replace or remove them, or leave them out of a "
                 "folder with "
                 "--exclude, and run this again",
                 cli_count_of(n_bad, "input").s);
    return code;
}

typedef struct input_check {
    pack_inputs *inputs;
    named_file *files;
    bool stdin_used;
} input_check;

static int describe_one(void *context, size_t which)
{
    input_check *c = context;
    pack_inputs *inputs = c->inputs;
    const char *name = inputs->names[which];
    const bool is_stdin = strcmp(name, "-") == 0;
    file_facts facts;
    if (is_stdin && c->stdin_used)
        return cli_usage("stdin (-) can be read only once");
    c->stdin_used = c->stdin_used || is_stdin;
    const int code = pack_input_describe(name, &facts);
    if (code != CLI_OK)
        return code;
    if (!is_stdin)
        inputs->versions[which] = input_version_of(&facts);
    c->files[which] = (named_file){facts.id, name};
    inputs->total_bytes += inputs->versions[which].n_bytes;
    if (!inputs->versions[which].known && !inputs->once)
        inputs->once = is_stdin ? "stdin" : name;
    return CLI_OK;
}

/* A file may be meant to be packed twice, or two patterns match it. What is not a file has its
 * bytes only once. */
static int check_repeated(named_file *files, size_t n, bool quiet)
{
    size_t n_again = 0;
    const char *name = NULL;
    file_facts facts;
    qsort(files, n, sizeof *files, file_id_compare);
    for (size_t i = 1; i < n; i++) {
        if (file_id_compare(&files[i - 1], &files[i]) != 0)
            continue;
        name = files[i].name;
        n_again++;
        if (file_describe_input(name, &facts) == 0 && facts.kind != FILE_REGULAR)
            return cli_usage("%s: is named more than once, and can be read only once", name);
    }
    if (n_again && !quiet)
        cli_warn("%s: is named more than once and will be packed each time (%s in total)", name,
                 cli_count_of(n_again, "repeated input").s);
    return CLI_OK;
}

static int check_inputs(pack_inputs *inputs, bool quiet)
{
    named_file *files = malloc(inputs->n * sizeof *files);
    if (!files)
        return cli_no_memory();
    input_check c = {.inputs = inputs, .files = files};
    int code = pack_inputs_each(inputs, describe_one, &c);
    if (inputs->once)
        inputs->total_bytes = 0;
    if (code == CLI_OK)
        code = check_repeated(files, inputs->n, quiet);
    free(files);
    return code;
}

/* ---- Own files ---- */

/* Whether `suffix` is what follows P, or P-NAME for a split, in the name of a file that a run
 * writes. */
static bool is_own_suffix(const char *suffix, const pack_options *options)
{
    for (size_t i = 0; i < options->n_splits && *suffix == '-'; i++) {
        size_t n = strlen(options->splits[i].name);
        if (strncmp(suffix + 1, options->splits[i].name, n) == 0 && suffix[1 + n] == '.')
            suffix += 1 + n;
    }
    bool found = strcmp(suffix, PACK_SKIPPED_SUFFIX ".partial") == 0;
    for (size_t i = 0; i < PATH_N_DATASET_SUFFIXES && !found; i++)
        found = strcmp(suffix, path_dataset_suffixes[i]) == 0;
    return found;
}

/* Whether a file is directly in the folder of the cells. */
static bool is_in_cells(const char *name, const pack_options *options)
{
    return file_in_same_folder(name, path_of(options->cells_folder, "/x").s);
}

/* Whether a file is of this run's plan: the plan, unfinished or not, or in the folder of cells. */
static bool is_own(const char *name, const pack_options *options)
{
    const bool of_plan = options->cells_folder != NULL;
    const char *output = of_plan ? options->output : options->prefix;
    const char *base = path_last_part(output), *last = path_last_part(name);
    if (of_plan && is_in_cells(name, options))
        return true;
    if (strncmp(last, base, strlen(base)) != 0 || !file_in_same_folder(name, output))
        return false;
    const char *suffix = last + strlen(base);
    return of_plan ? !*suffix || strcmp(suffix, ".partial") == 0 : is_own_suffix(suffix, options);
}

/* ---- All ---- */

void pack_print_note(void *context, const char *text)
{
    (void)context;
    cli_warn("%s", text);
}

#define MAX_NAMED 3

/* Inputs, or patterns, that a message names together. */
typedef struct input_group {
    size_t n;
    const char *names[MAX_NAMED]; /* the first ones */
} input_group;

static void add_to(input_group *group, const char *name)
{
    if (group->n < MAX_NAMED)
        group->names[group->n] = name;
    group->n++;
}

/* "a.txt, b.txt, c.txt and 2 more" */
static void note_group(const pack_options *options, const input_group *group, const char *what)
{
    char names[1024] = "";
    if (group->n == 0 || options->quiet)
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

static void note_unmatched(const pack_options *options, const name_patterns *patterns,
                           const char *what)
{
    input_group unmatched = {0};
    for (size_t i = 0; i < patterns->n; i++)
        if (!patterns->has_matched[i])
            add_to(&unmatched, patterns->list[i]);
    note_group(options, &unmatched, what);
}

static bool is_skipped(const char *name, const pack_options *options)
{
    size_t i = 0;
    while (i < options->n_skipped && !file_is_same_name(options->skipped[i], name))
        i++;
    return i < options->n_skipped;
}

static bool needs_no_file(void *options, const char *name)
{
    return is_skipped(name, options);
}

static bool find_in_hub(input_list *list, const char *name, failure *err)
{
    const pack_options *options = list->context;
    if (list->filter)
        return fail(err,
                    "%.400s: --include and --exclude are for folders: end the name with a pattern, "
                    "such as /data/*.parquet",
                    name);
    return hub_find(list, &(hub_request){.name = name, .download = options->tokenizer.download},
                    err);
}

/* Removes such files from the names at `first` and later, which came from the argument. */
static void leave_out(input_list *files, size_t first, const char *argument,
                      bool (*is_such)(const char *name, const pack_options *options),
                      const pack_options *options)
{
    size_t n = first;
    for (size_t i = first; i < files->n_names; i++) {
        char *name = files->names[i];
        if (is_such(name, options))
            free(name);
        else
            files->names[n++] = name;
    }
    const size_t n_out = files->n_names - n;
    if (n_out > 0 && !options->quiet)
        cli_warn("%s: left out %s %s", argument, cli_count_of(n_out, "file").s,
                 is_such == is_own ? "of the output" : "that it names");
    files->n_names = n;
}

/* One that is misspelt would be packed. */
static int check_skipped(const input_list *files, char **arguments, size_t n_arguments,
                         const pack_options *options)
{
    for (size_t s = 0; s < options->n_skipped; s++) {
        const char *skipped = options->skipped[s];
        bool found = false;
        for (size_t i = 0; i < files->n_names && !found; i++)
            found = file_is_same_name(skipped, files->names[i]);
        for (size_t i = 0; i < n_arguments && !found; i++)
            found = file_is_same_name(skipped, arguments[i]);
        if (!found)
            return cli_usage("--skip-input %s: is not one of the inputs", skipped);
    }
    return CLI_OK;
}

int pack_inputs_find(pack_inputs *inputs, char **arguments, size_t n_arguments,
                     const pack_options *options)
{
    input_list *files = &inputs->files;
    int code = CLI_OK;
    const bool is_filtered = options->filter.include.n + options->filter.exclude.n > 0;
    *inputs = (pack_inputs){.files = {.report = options->quiet ? NULL : pack_print_note,
                                      .needs_no_file = needs_no_file,
                                      .find_in_hub = find_in_hub,
                                      .filter = is_filtered ? &options->filter : NULL,
                                      .context = (void *)options}};
    for (size_t i = 0; i < n_arguments; i++) {
        failure err;
        size_t first = files->n_names;
        if (!*arguments[i])
            return cli_usage("the path of an input is empty");
        if (*arguments[i] == '@' &&
            path_protect_name(arguments[i] + 1, "a list of inputs") != CLI_OK)
            return CLI_AGAIN;
        if (is_skipped(arguments[i], options)) /* also one that is not a file or cannot be read */
            continue;
        if (!input_list_expand(files, arguments[i], &err))
            code = cli_print_failure(&err);
        bool itself = files->n_names == first + 1 && strcmp(files->names[first], arguments[i]) == 0;
        if (!itself)
            leave_out(files, first, arguments[i], is_own, options);
    }
    if (code == CLI_OK)
        code = check_skipped(files, arguments, n_arguments, options);
    leave_out(files, 0, "--skip-input", is_skipped, options);
    if (code == CLI_OK) {
        note_unmatched(options, &options->filter.include, "--include matches no name in a folder");
        note_unmatched(options, &options->filter.exclude, "--exclude matches no name in a folder");
    }
    if (code == CLI_OK && files->n_names == 0)
        return cli_error(CLI_INPUT, "no files are left to pack");
    if (code != CLI_OK)
        return code;
    inputs->names = (const char *const *)files->names;
    inputs->n = files->n_names;
    inputs->versions = calloc(inputs->n, sizeof *inputs->versions);
    if (!inputs->versions)
        return cli_no_memory();
    code = check_inputs(inputs, options->quiet);
    const char *cells =
        options->cells_folder && file_exists(options->cells_folder) ? options->cells_folder : NULL;
    for (size_t i = 0; cells && i < inputs->n && code == CLI_OK; i++) {
        if (is_in_cells(inputs->names[i], options))
            code = cli_usage("%s: an input must not be in the folder of the cells, %s",
                             inputs->names[i], cells);
    }
    return code;
}

/* ---- What they are ---- */

/* Usually enough to recognize a file; a longer record is read as a whole. */
#define READ_BYTES ((size_t)16 * 1024)
typedef struct look {
    pack_inputs *inputs;
    const pack_options *options;
    input_group empty, not_compressed, text, records;
} look;

/* Counts the input; with --format auto, also in the groups that messages name. */
static void sort_input(look *l, const char *name, const reader *r, const pack_seen *seen)
{
    const bool empty = seen->format == CORPUS_AUTO && !reader_is_archive(r);
    l->inputs->kinds[seen->format]++;
    if (l->options->input.format != CORPUS_AUTO)
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
    const pack_inputs *inputs = l->inputs;
    pack_seen one, *seen = inputs->seen ? &inputs->seen[which] : &one;
    reader_options options = pack_reader_options(l->options);
    const input_source source = {.path = inputs->names[which], .version = &inputs->versions[which]};
    failure err;
    document first;
    options.window.read_bytes = options.sample_bytes = READ_BYTES;
    options.on_error = ON_ERROR_FAIL; /* else a long record is read to its end */
    *seen = (pack_seen){.format = options.format, .summary.n_records = READER_UNKNOWN};
    if (!source.version->known)
        return CLI_OK;
    reader *r = reader_open(&source, &options, -1, &err);
    if (!r || reader_next(r, &first, &err) == READER_FAILED) {
        reader_close(r);
        if (!err.kind)
            return cli_print_failure(&err);
        return unsuitable_add(&l->inputs->unsuitable, which, source.path, &err) ? CLI_OK
                                                                                : cli_no_memory();
    }
    seen->format = reader_format(r);
    reader_summarize(r, &seen->summary);
    sort_input(l, source.path, r, seen);
    reader_close(r);
    return CLI_OK;
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
    for (size_t i = 0; i < group->n && i < MAX_NAMED; i++)
        print_argument(" ", group->names[i], "");
    fputs(group->n > MAX_NAMED ? " ..." : "", stderr);
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
    if (options->dry_run) {
        inputs->seen = calloc(inputs->n, sizeof *inputs->seen);
        if (!inputs->seen)
            return cli_no_memory();
    }
    int code = pack_inputs_each(inputs, look_at, &l);
    if (code == CLI_OK || code == CLI_INPUT)
        code = settle_unsuitable(inputs, options, code);
    if (code != CLI_OK)
        return code;
    code = check_mixed(&l);
    if (code != CLI_OK) {
        advise_mixed(&l);
        return code;
    }
    note_group(options, &l.empty, "empty, without documents");
    note_group(options, &l.not_compressed, "not compressed, although the name says so");
    return CLI_OK;
}

int pack_inputs_check_kinds(pack_inputs *inputs, const pack_options *options)
{
    look l = {.inputs = inputs, .options = options};
    int code = pack_inputs_each(inputs, look_at, &l);
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

void pack_inputs_free(pack_inputs *inputs)
{
    free(inputs->versions);
    free(inputs->seen);
    unsuitable_free(&inputs->unsuitable);
    input_list_free(&inputs->files);
}

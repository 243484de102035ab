/* SPDX-License-Identifier: Apache-2.0 */
#include "request/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "input/hub.h"
#include "request/input_group.h"
#include "request/own_files.h"
#include "system/each.h"
#include "system/files.h"
#include "system/process.h"
#include "system/protected.h"

typedef struct named_file {
    file_id id; /* the first member, for file_id_compare */
    const char *name;
} named_file;

pack_described pack_input_describe(const char *name)
{
    pack_described d;
    d.sys_errno = file_describe_input(name, &d.facts);
    return d;
}

int pack_input_accept(const char *name, const pack_described *d)
{
    failure err;
    if (d->sys_errno) {
        fail_file(&err, d->sys_errno, name);
        return cli_print_failure(&err);
    }
    if (d->facts.kind == FILE_FOLDER)
        return cli_error(CLI_INPUT, "%s: is a folder", name);
    return path_protect(&d->facts, "an input");
}

/* As many inputs as are found out about before the first of them is taken. */
#define AT_ONCE ((size_t)256)

typedef struct inputs_at_once {
    const pack_input_work *work;
    size_t first;
    uint8_t *results;
} inputs_at_once;

static void find_one(void *context, size_t which)
{
    const inputs_at_once *now = context;
    if (!process_is_interrupted())
        now->work->find(now->work->context, now->first + which,
                        now->results + which * now->work->result_bytes);
}

int pack_inputs_each(const pack_inputs *inputs, const pack_input_work *work)
{
    inputs_at_once now = {.work = work};
    size_t n_bad = 0;
    int code = CLI_OK;
    now.results = calloc(MIN(inputs->n, AT_ONCE) + 1, work->result_bytes);
    if (!now.results)
        return cli_no_memory();
    for (size_t i = 0; i < inputs->n && (code == CLI_OK || code == CLI_INPUT); i++) {
        if (i % AT_ONCE == 0) {
            now.first = i;
            each_at_once(MIN(inputs->n - i, AT_ONCE), work->n_threads, find_one, &now);
        }
        const int one =
            process_is_interrupted()
                ? cli_error(CLI_AGAIN, "interrupted")
                : work->take(work->context, i, now.results + (i - now.first) * work->result_bytes);
        n_bad += one == CLI_INPUT;
        code = cli_first_failure(one, code);
    }
    free(now.results);
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

static void describe_one(void *context, size_t which, void *result)
{
    const input_check *c = context;
    *(pack_described *)result = pack_input_describe(c->inputs->names[which]);
}

static int accept_one(void *context, size_t which, void *result)
{
    input_check *c = context;
    pack_inputs *inputs = c->inputs;
    const pack_described *d = result;
    const char *name = inputs->names[which];
    const bool is_stdin = strcmp(name, "-") == 0;
    if (is_stdin && c->stdin_used)
        return cli_usage("stdin (-) can be read only once");
    c->stdin_used = c->stdin_used || is_stdin;
    const int code = pack_input_accept(name, d);
    if (code != CLI_OK)
        return code;
    if (!is_stdin)
        inputs->versions[which] = input_version_of(&d->facts);
    c->files[which] = (named_file){d->facts.id, name};
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
    int code =
        pack_inputs_each(inputs, &(pack_input_work){describe_one, accept_one,
                                                    sizeof(pack_described), PACK_MOST_LOOKS, &c});
    if (inputs->once)
        inputs->total_bytes = 0;
    if (code == CLI_OK)
        code = check_repeated(files, inputs->n, quiet);
    free(files);
    return code;
}

/* ---- All ---- */

void pack_print_note(void *context, const char *text)
{
    (void)context;
    cli_warn("%s", text);
}

static void note_unmatched(const pack_options *options, const name_patterns *patterns,
                           const char *what)
{
    input_group unmatched = {0};
    for (size_t i = 0; i < patterns->n; i++)
        if (!patterns->has_matched[i])
            input_group_add(&unmatched, patterns->list[i]);
    input_group_note(options, &unmatched, what);
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
    input_group group = {0};
    char names[INPUT_GROUP_BYTES];
    for (size_t i = first; i < files->n_names; i++)
        if (is_such(files->names[i], options))
            input_group_add(&group, files->names[i]);
    input_group_text(&group, names);
    for (size_t i = first; i < files->n_names; i++) {
        char *name = files->names[i];
        if (is_such(name, options))
            free(name);
        else
            files->names[n++] = name;
    }
    const size_t n_out = files->n_names - n;
    if (n_out > 0 && !options->quiet)
        cli_warn("%s: left out %s %s: %s", argument, cli_count_of(n_out, "file").s,
                 is_such == pack_is_own_file ? "of the output" : "that it names", names);
    files->n_names = n;
}

/* Refuses a --skip-input that names no input: a misspelt one would leave its input in. */
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

static int expand(input_list *files, const char *argument, const input_described *known,
                  const pack_options *options)
{
    failure err;
    const size_t first = files->n_names;
    if (!*argument)
        return cli_usage("the path of an input is empty");
    if (*argument == '@' && path_protect_name(argument + 1, "a list of inputs") != CLI_OK)
        return CLI_AGAIN;
    if (is_skipped(argument, options)) /* also one that is not a file or cannot be read */
        return CLI_OK;
    const int code =
        input_list_expand(files, argument, known, &err) ? CLI_OK : cli_print_failure(&err);
    if (files->n_names != first + 1 || strcmp(files->names[first], argument) != 0)
        leave_out(files, first, argument, pack_is_own_file, options);
    return code;
}

/* Goes on after an argument that names a missing file, so that all missing files are named. */
static int expand_all(input_list *files, char **arguments, size_t n_arguments,
                      const pack_options *options)
{
    input_described *known = input_describe_all(arguments, n_arguments);
    int code = known ? CLI_OK : cli_no_memory();
    for (size_t i = 0; i < n_arguments && (code == CLI_OK || code == CLI_INPUT); i++)
        code = cli_first_failure(expand(files, arguments[i], &known[i], options), code);
    free(known);
    return code;
}

int pack_inputs_find(pack_inputs *inputs, char **arguments, size_t n_arguments,
                     const pack_options *options)
{
    input_list *files = &inputs->files;
    const bool is_filtered = options->filter.include.n + options->filter.exclude.n > 0;
    *inputs = (pack_inputs){.files = {.report = options->quiet ? NULL : pack_print_note,
                                      .needs_no_file = needs_no_file,
                                      .find_in_hub = find_in_hub,
                                      .filter = is_filtered ? &options->filter : NULL,
                                      .context = (void *)options}};
    int code = expand_all(files, arguments, n_arguments, options);
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
    inputs->arguments = arguments;
    inputs->n_arguments = n_arguments;
    inputs->names = (const char *const *)files->names;
    inputs->n = files->n_names;
    inputs->versions = calloc(inputs->n, sizeof *inputs->versions);
    if (!inputs->versions)
        return cli_no_memory();
    code = check_inputs(inputs, options->quiet);
    const char *cells =
        options->cells_folder && file_exists(options->cells_folder) ? options->cells_folder : NULL;
    for (size_t i = 0; cells && i < inputs->n && code == CLI_OK; i++) {
        if (pack_is_in_cells(inputs->names[i], options))
            code = cli_usage("%s: an input must not be in the folder of the cells, %s",
                             inputs->names[i], cells);
    }
    return code;
}

void pack_inputs_free(pack_inputs *inputs)
{
    for (size_t i = 0; i < inputs->n && inputs->seen; i++)
        free(inputs->seen[i].why);
    free(inputs->versions);
    free(inputs->seen);
    free(inputs->found);
    unsuitable_free(&inputs->unsuitable);
    input_list_free(&inputs->files);
}

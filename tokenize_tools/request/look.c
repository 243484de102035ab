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
#include "request/own_files.h"
#include "request/propose.h"
#include "request/tables.h"

/* Usually enough to recognize a file; a longer record is read as a whole. */
#define READ_BYTES ((size_t)16 * 1024)

typedef struct look {
    pack_inputs *inputs;
    const pack_options *options;
    input_group empty, not_compressed, text, records;
    /* Inputs that have columns, and of them those that lack a field of --meta. */
    size_t n_columnar, n_lacking[FIELD_LIST_MAX];
    char *why[FIELD_LIST_MAX]; /* of the first one; owned */
    table_columns tables;
} look;

typedef struct looked {
    pack_seen seen;
    bool is_known, is_archive, failed, has_columns;
    failure error;
    uint64_t lacking; /* bits of the fields that it lacks */
    char *why[FIELD_LIST_MAX];
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

static void ignore_note(void *context, const char *text)
{
    (void)context;
    (void)text;
}

static void keep_why(void *context, size_t field, const char *text)
{
    ((looked *)context)->why[field] = strdup(text);
}

/* An input with columns says which ones it has before its first document. */
static void find_lacking(const reader *r, looked *found)
{
    found->has_columns = reader_has_columns(r) && reader_lacking(r, &found->lacking);
    if (found->has_columns)
        reader_note_fields(r);
}

static void look_with(const look *l, size_t which, bool alone, looked *found)
{
    reader_options options = pack_reader_options(l->options);
    const input_source source = {.path = l->inputs->names[which],
                                 .version = &l->inputs->versions[which],
                                 .reserve = alone ? NULL : fits};
    document first;
    options.window.read_bytes = options.head_bytes = READ_BYTES;
    options.on_error = ON_ERROR_FAIL; /* else a long record is read to its end */
    options.note = ignore_note;
    options.missing = keep_why;
    options.context = found;
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
        find_lacking(r, found);
    }
    reader_close(r);
}

static void look_at_input(void *context, size_t which, void *result)
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

static void count_lacking(look *l, looked *found)
{
    l->n_columnar += found->has_columns;
    for (size_t i = 0; i < FIELD_LIST_MAX; i++) {
        l->n_lacking[i] += found->has_columns && found->lacking >> i & 1;
        if (l->why[i])
            free(found->why[i]);
        else
            l->why[i] = found->why[i];
    }
}

/* A field of --meta that none of the inputs has, if all of them have columns. */
static int check_lacking(const look *l)
{
    const size_t *kinds = l->inputs->kinds;
    const size_t n = l->inputs->n - l->inputs->unsuitable.n - kinds[CORPUS_AUTO];
    for (size_t i = 0; i < l->options->input.n_kept && l->n_columnar == n; i++) {
        if (n > 0 && l->n_lacking[i] == n)
            return cli_error(CLI_INPUT, "--meta: no input has values of the field %s%s%s",
                             l->options->fields.names[i], l->why[i] ? "; " : "",
                             l->why[i] ? l->why[i] : "");
    }
    return CLI_OK;
}

static void free_whys(look *l)
{
    for (size_t i = 0; i < FIELD_LIST_MAX; i++)
        free(l->why[i]);
}

int pack_inputs_keep_failure(pack_inputs *inputs, size_t which, const failure *err)
{
    const char *name = inputs->names[which];
    const size_t n = strlen(name);
    const bool is_named = strncmp(err->text, name, n) == 0 && strncmp(err->text + n, ": ", 2) == 0;
    pack_seen *seen = &inputs->seen[which];
    seen->why = strdup(err->text + (is_named ? n + 2 : 0));
    seen->is_unsuitable = err->kind != NULL;
    inputs->n_refused++;
    if (!seen->why || (err->kind && !unsuitable_add(&inputs->unsuitable, which, name, err)))
        return cli_no_memory();
    return CLI_OK;
}

static int take_look(void *context, size_t which, void *result)
{
    look *l = context;
    pack_inputs *inputs = l->inputs;
    looked *found = result;
    const char *name = inputs->names[which];
    if (found->failed) /* maybe for lack of memory */
        look_with(l, which, true, found);
    if (found->failed && found->error.kind && pack_is_token_file(name)) {
        fail(&found->error, "%s: is a token file of tokmap, not text", name);
        fail_kind(&found->error, "a token file of tokmap");
    }
    if (inputs->seen)
        inputs->seen[which] = found->seen;
    if (inputs->found)
        inputs->found[which] = found->seen.format;
    if (found->failed && inputs->seen && cli_failure_exit_code(&found->error) == CLI_INPUT)
        return pack_inputs_keep_failure(inputs, which, &found->error);
    if (found->failed && !found->error.kind)
        return cli_print_failure(&found->error);
    if (found->failed)
        return unsuitable_add(&inputs->unsuitable, which, name, &found->error) ? CLI_OK
                                                                               : cli_no_memory();
    if (found->is_known) {
        sort_input(l, name, found);
        table_columns_add(&l->tables, name, found->seen.format, &found->seen.summary);
    }
    count_lacking(l, found);
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
    return pack_inputs_each(
        l->inputs, &(pack_input_work){look_at_input, take_look, sizeof(looked), n_looks(l), l});
}

static bool is_mixed(const look *l)
{
    return l->text.n > 0 && l->records.n > 0;
}

static int check_mixed(const look *l)
{
    if (!is_mixed(l))
        return CLI_OK;
    return cli_error(CLI_INPUT,
                     "%s: is text, but %s has records, and --format auto does not pack both in "
                     "one run (%s of text, %s of records)",
                     l->text.names[0], l->records.names[0], cli_count_of(l->text.n, "input").s,
                     cli_count_of(l->records.n, "input").s);
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
            if (inputs->seen)
                free(inputs->seen[i].why);
            next++;
            continue;
        }
        inputs->files.names[n] = inputs->files.names[i];
        inputs->versions[n] = inputs->versions[i];
        if (inputs->seen)
            inputs->seen[n] = inputs->seen[i];
        inputs->found[n] = inputs->found[i];
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

/* Whether something of the inputs cannot be packed, which the table of a dry run names. */
static int settle_dry_run(pack_inputs *inputs, const pack_options *options)
{
    const bool only_unsuitable = inputs->n_refused == inputs->unsuitable.n;
    if (inputs->n_refused == 0)
        return CLI_OK;
    if (!options->skip_unsuitable || !only_unsuitable || inputs->n_refused == inputs->n)
        return CLI_INPUT;
    remove_unsuitable(inputs);
    inputs->n_refused = 0;
    return CLI_OK;
}

/* Refuses text beside records, and says how both are packed. */
static int refuse_mixed(const look *l, const pack_inputs *inputs)
{
    const int code = check_mixed(l);
    return code == CLI_OK ? code
                          : cli_first_failure(pack_propose_commands(inputs, l->options), code);
}

int pack_inputs_look(pack_inputs *inputs, pack_options *options)
{
    look l = {.inputs = inputs, .options = options};
    inputs->found = calloc(inputs->n, sizeof *inputs->found);
    if (!inputs->found)
        return cli_no_memory();
    if (options->dry_run) {
        inputs->seen = calloc(inputs->n, sizeof *inputs->seen);
        if (!inputs->seen)
            return cli_no_memory();
    }
    int code = look_at_all(&l);
    if (code == CLI_OK)
        code = check_lacking(&l);
    if (code == CLI_OK)
        code = table_columns_settle(&l.tables, !inputs->once, options);
    free_whys(&l);
    if (code != CLI_OK && code != CLI_INPUT)
        return code;
    if (options->dry_run) {
        code = cli_first_failure(code, settle_dry_run(inputs, options));
        return cli_first_failure(code, is_mixed(&l) ? CLI_INPUT : CLI_OK);
    }
    code = settle_unsuitable(inputs, options, code);
    if (code == CLI_OK || code == CLI_INPUT)
        code = cli_first_failure(code, refuse_mixed(&l, inputs));
    if (code != CLI_OK)
        return code;
    input_group_note(options, &l.empty, "empty, without documents");
    input_group_note(options, &l.not_compressed, "not compressed, although the name says so");
    return CLI_OK;
}

int pack_inputs_refuse(const pack_inputs *inputs, const pack_options *options)
{
    look l = {.options = options};
    for (size_t i = 0; i < inputs->n; i++) {
        const corpus_format format = inputs->found[i];
        if (format != CORPUS_AUTO && !inputs->seen[i].why)
            input_group_add(format == CORPUS_TEXT ? &l.text : &l.records, inputs->names[i]);
    }
    for (size_t i = 0; i < inputs->n && inputs->n_refused <= INPUT_GROUP_NAMED; i++) {
        if (inputs->seen[i].why)
            cli_error(CLI_INPUT, "%s: %s", inputs->names[i], inputs->seen[i].why);
    }
    if (inputs->n_refused > INPUT_GROUP_NAMED)
        cli_error(CLI_INPUT, "%s of %s cannot be packed", cli_count(inputs->n_refused).s,
                  cli_count_of(inputs->n, "input").s);
    if (inputs->unsuitable.n > 0 && !options->skip_unsuitable)
        fputs(UNSUITABLE_HINT, stderr);
    return cli_first_failure(refuse_mixed(&l, inputs), CLI_INPUT);
}

int pack_inputs_check_again(pack_inputs *inputs, const pack_options *options)
{
    pack_options again = *options;
    look l = {.inputs = inputs, .options = &again};
    again.types_known = false;
    int code = look_at_all(&l);
    if (code == CLI_OK)
        code = check_lacking(&l);
    free_whys(&l);
    if (code == CLI_OK && inputs->unsuitable.n > 0)
        code = unsuitable_refuse(&inputs->unsuitable, true);
    unsuitable_free(&inputs->unsuitable);
    if (code == CLI_OK)
        code = table_columns_check_again(&l.tables, options);
    return code == CLI_OK ? check_mixed(&l) : code;
}

void pack_kinds_note(const pack_inputs *inputs, const pack_options *options)
{
    char kinds[PACK_KINDS_BYTES];
    pack_kinds_text(inputs, kinds);
    if (strstr(kinds, ", ") && options->input.format == CORPUS_AUTO && !options->quiet &&
        !options->json)
        cli_warn("formats: %s", kinds);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/datasets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/paths.h"
#include "request/inputs.h"
#include "system/files.h"
#include "tokenizer/model/bytes_tokenizer.h"
#include "tokmap_writer.h"

#define ROLE_OF_ITS_OWN 255         /* in tokmap_dataset_info: each span has one */
#define SPANS_AT_ONCE ((size_t)128) /* and tokens, which have at most as many spans */

enum {
    MOST_TOKENIZER_BYTES = 1 << 30
};

/* ---- Names ---- */

static bool is_pattern(const char *argument)
{
    return strpbrk(argument, "*?[") && !file_name_exists(argument) &&
           !file_suffix_exists(path_prefix(argument).s, ".tmi");
}

/* Finds what matches the argument, with its suffix replaced unless `suffix` is NULL. A leading @ or
 * - has no special meaning. */
static bool find_matches(input_list *list, const char *argument, const char *suffix, failure *err)
{
    char pattern[4096];
    const char *here = *argument == '@' || *argument == '-' ? "./" : "";
    const path_text prefix = path_prefix(argument);
    const char *any = suffix && strcmp(path_last_part(prefix.s), "**") == 0 ? "/*" : "";
    int n = snprintf(pattern, sizeof pattern, "%s%s%s%s", here, suffix ? prefix.s : argument, any,
                     suffix ? suffix : "");
    if (n >= 0 && (size_t)n < sizeof pattern)
        return input_list_expand(list, pattern, NULL, err);
    return fail(err, "%.200s...: the path is too long", argument);
}

/* A match that is gone or cannot be looked at: opening it finds it, or says why not. */
static bool take_all(void *context, const char *name)
{
    (void)context;
    (void)name;
    return true;
}

/* Sorts the names from number `first` on, and removes duplicates. */
static void sort_names(input_list *list, size_t first)
{
    char **names = list->names + first;
    const size_t n = list->n_names - first;
    input_list_sort(list, first);
    list->n_names = first;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && strcmp(names[i], list->names[list->n_names - 1]) == 0)
            free(names[i]);
        else
            list->names[list->n_names++] = names[i];
    }
}

/* Appends the datasets that match. While a dataset is being replaced, its index is P.tmi.replaced.
 * P.tmi is searched again at the end, because the new index may have taken its name before the
 * search for P.tmi.replaced. */
static int append_datasets(input_list *list, const char *argument)
{
    static const char *const suffixes[] = {".tmi", ".tmi.replaced", ".tmi"};
    const size_t n_before = list->n_names;
    void (*const report)(void *, const char *) = list->report;
    failure err;
    bool ok = true;
    list->needs_no_file = take_all;
    list->may_match_nothing = true;
    for (int i = 0; i < 3 && ok; i++) {
        const size_t n = list->n_names;
        list->report = i == 0 ? report : NULL;
        ok = find_matches(list, argument, suffixes[i], &err);
        for (size_t j = n; i == 1 && j < list->n_names; j++)
            list->names[j][strlen(list->names[j]) - strlen(".replaced")] = '\0';
    }
    list->report = report;
    if (!ok || list->n_names == n_before)
        return cli_print_failure(&err);
    sort_names(list, n_before);
    return CLI_OK;
}

static int expand_names(input_list *names, char **arguments, int n_arguments, bool quiet,
                        bool datasets)
{
    failure err;
    names->report = quiet ? NULL : pack_print_note;
    int code = path_check_all(arguments, n_arguments);
    for (int i = 0; i < n_arguments && code == CLI_OK; i++) {
        if (datasets && is_pattern(arguments[i]))
            code = append_datasets(names, arguments[i]);
        else if (is_pattern(arguments[i]))
            code = find_matches(names, arguments[i], NULL, &err) ? CLI_OK : cli_print_failure(&err);
        else if (!input_list_append(names, strdup(arguments[i]), &err))
            code = cli_no_memory();
    }
    return code;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_repeated(char **arguments, int n_arguments)
{
    const size_t n = (size_t)n_arguments;
    char **sorted = calloc(n + 1, sizeof *sorted);
    int code = CLI_OK;
    if (!sorted)
        return cli_no_memory();
    for (size_t i = 0; i < n; i++)
        sorted[i] = arguments[i];
    qsort(sorted, n, sizeof *sorted, compare_names);
    for (size_t i = 1; i < n && code == CLI_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            code = cli_usage("%s: is named twice; to train on a dataset more often than on others, "
                             "give it a weight in the Loader",
                             sorted[i]);
    free(sorted);
    return code;
}

/* Keeps one name of each dataset. */
static int choose_names(input_list *names)
{
    tokmap_error err;
    const size_t n = names->n_names;
    uint8_t *chosen = calloc(n + 1, 1);
    if (!chosen)
        return cli_no_memory();
    const tokmap_status status =
        tokmap_dataset_choose_paths((const char *const *)names->names, n, chosen, &err);
    names->n_names = 0;
    for (size_t i = 0; i < n; i++) {
        if (chosen[i])
            names->names[names->n_names++] = names->names[i];
        else
            free(names->names[i]);
    }
    free(chosen);
    return status ? cli_fail(&err) : CLI_OK;
}

int dataset_names_expand(input_list *names, char **arguments, int n_arguments, bool quiet)
{
    int code = check_repeated(arguments, n_arguments);
    if (code == CLI_OK)
        code = expand_names(names, arguments, n_arguments, quiet, true);
    return code == CLI_OK ? choose_names(names) : code;
}

int dataset_names_take_one(input_list *names, char **arguments, int n_arguments, bool quiet)
{
    failure err;
    (void)quiet;
    const int code = path_check_all(arguments, n_arguments);
    return code == CLI_OK && !input_list_append(names, strdup(*arguments), &err) ? cli_no_memory()
                                                                                 : code;
}

int token_file_names_expand(input_list *names, char **arguments, int n_arguments, bool quiet)
{
    return expand_names(names, arguments, n_arguments, quiet, false);
}

static int check_indexes(const input_list *files, const char *suffix, const char *argument)
{
    for (size_t i = 0; i < files->n_names; i++) {
        const char *name = files->names[i];
        path_text prefix = path_of(name, "");
        if (!path_ends_with(name, suffix))
            continue;
        prefix.s[strlen(prefix.s) - strlen(suffix)] = '\0';
        if (!file_suffix_exists(prefix.s, ".tmi") && !file_suffix_exists(prefix.s, ".tmi.replaced"))
            return cli_error(CLI_DATASET,
                             "%s: has no index, so '%s' would leave it out: finish, index or "
                             "remove it, or end the pattern in .tmi",
                             name, argument);
    }
    return CLI_OK;
}

int dataset_names_expand_all(input_list *names, char **arguments, int n_arguments, bool quiet)
{
    static const char *const suffixes[] = {".bin", ".bin.partial"};
    int code = dataset_names_expand(names, arguments, n_arguments, quiet);
    for (int i = 0; i < 2 * n_arguments && code == CLI_OK; i++) {
        const char *argument = arguments[i / 2], *suffix = suffixes[i % 2];
        input_list files = {.needs_no_file = take_all, .may_match_nothing = true};
        failure err;
        if (is_pattern(argument) && !path_ends_with(argument, ".tmi"))
            code = find_matches(&files, argument, suffix, &err)
                       ? check_indexes(&files, suffix, argument)
                       : cli_print_failure(&err);
        input_list_free(&files);
    }
    return code;
}

/* ---- Several open datasets ---- */

/* Refuses a dataset that does not fit the ones before it. named: the first dataset whose vocabulary
 * is known, or NULL. */
static int check_same(const tokmap_dataset *first, const tokmap_dataset *named,
                      const tokmap_dataset *ds)
{
    const tokmap_dataset_info a = cli_dataset_info(first), b = cli_dataset_info(ds);
    if (a.token_bytes != b.token_bytes)
        return cli_error(CLI_DATASET,
                         "%s: has tokens of %" PRIu32 " bytes, but %s has tokens of %" PRIu32,
                         cli_tokens_name(&b), b.token_bytes, cli_tokens_name(&a), a.token_bytes);
    const tokmap_dataset_info v = cli_dataset_info(named ? named : ds);
    if (b.vocab_size != 0 && b.vocab_size != v.vocab_size)
        return cli_error(CLI_DATASET,
                         "%s: its vocabulary has %" PRIu64
                         " ids, but the vocabulary of %s has %" PRIu64,
                         cli_tokens_name(&b), b.vocab_size, cli_tokens_name(&v), v.vocab_size);
    return CLI_OK;
}

int dataset_list_open(dataset_list *list, const input_list *names)
{
    const tokmap_dataset *named = NULL;
    tokmap_error err;
    int code = CLI_OK;
    *list = (dataset_list){calloc(names->n_names, sizeof *list->datasets), 0};
    if (!list->datasets)
        return cli_no_memory();
    for (size_t i = 0; code == CLI_OK && i < names->n_names; i++) {
        if (tokmap_dataset_open(&list->datasets[i], names->names[i], &err) != TOKMAP_OK)
            return cli_fail(&err);
        list->n++;
        code = check_same(list->datasets[0], named, list->datasets[i]);
        if (!named && cli_dataset_info(list->datasets[i]).vocab_size != 0)
            named = list->datasets[i];
    }
    if (code == CLI_OK && tokmap_dataset_check_files(list->datasets, list->n, &err) != TOKMAP_OK)
        code = cli_fail(&err);
    return code;
}

void dataset_list_close(dataset_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        tokmap_dataset_close(list->datasets[i]);
    free(list->datasets);
}

json_text_span dataset_metadata(const tokmap_dataset *ds)
{
    json_text_span metadata;
    metadata.text = tokmap_dataset_metadata(ds, &metadata.n_bytes);
    return metadata;
}

bool dataset_has_roles(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    tokmap_span spans[SPANS_AT_ONCE];
    if (info.spans_role != ROLE_OF_ITS_OWN)
        return info.n_spans > 0 && info.spans_role >= TOKMAP_SPAN_UNCOUNTED;
    for (uint64_t at = 0; at < info.n_tokens; at += SPANS_AT_ONCE) {
        size_t n;
        if (tokmap_dataset_get_spans(ds, at, MIN(info.n_tokens - at, SPANS_AT_ONCE), spans,
                                     SPANS_AT_ONCE, &n))
            return true; /* damaged: the reader of the spans will say so */
        for (size_t i = 0; i < MIN(n, SPANS_AT_ONCE); i++)
            if (spans[i].role >= TOKMAP_SPAN_UNCOUNTED)
                return true;
    }
    return false;
}

bool dataset_metadata_find(const tokmap_dataset *ds, const char *key, json_text_span *value)
{
    const json_text_span metadata = dataset_metadata(ds);
    return json_text_check_object(metadata, NULL) && json_text_find(metadata, key, value);
}

/* ---- What is left beside datasets, and datasets that do not open ---- */

/* Finds the file that the user may have meant to adopt: path itself, or path with a usual
 * suffix. */
static bool find_adoptable(const char *path, path_text *out)
{
    static const char *const suffixes[] = {".bin", ".npy", ".ds"};
    const path_text prefix = path_ends_with(path, ".tmi") ? path_prefix(path) : path_of(path, "");
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        file_facts facts;
        *out = path_of(prefix.s, path_ends_with(path, suffixes[i]) ? "" : suffixes[i]);
        if (file_describe(out->s, &facts) == 0 && facts.kind == FILE_REGULAR && facts.n_bytes > 0)
            return true;
    }
    return false;
}

bool report_unfinished(const char *path)
{
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    const path_text prefix = path_prefix(path);
    const char *file = prefix.s;
    if (!file_suffix_exists(file, ".tmi.partial")) {
        const bool has_tokens = file_suffix_exists(file, ".bin.partial");
        if (has_tokens)
            cli_warn("%s.bin.partial: is left from a dataset whose other unfinished files are "
                     "missing. Write the dataset again, or remove this file.",
                     file);
        return has_tokens;
    }
    if (tokmap_writer_get_checkpoint(file, 0, &info, NULL, NULL) == TOKMAP_OK && info.n_checkpoints)
        cli_warn("%s: is being written, or the run that wrote it was interrupted; the last "
                 "checkpoint has %s, "
                 "%s. If it was interrupted, run the command that wrote it again to resume.",
                 file, cli_count_of(info.n_documents, "document").s,
                 cli_count_of(info.n_tokens, "token").s);
    else
        cli_warn(
            "%s: is being written, or its writer was killed before the first checkpoint. If it was "
            "killed, run the command that wrote it again.",
            file);
    return true;
}

int report_open_failure(const char *path, const tokmap_error *err)
{
    int code = cli_fail(err);
    bool no_index = err->status == TOKMAP_ERR_NOT_A_DATASET ||
                    (err->status == TOKMAP_ERR_IO && err->sys_errno == ENOENT);
    path_text file;
    if (no_index && !report_unfinished(path) && find_adoptable(path, &file)) {
        fputs("Try: tokmap index ", stderr);
        cli_print_plain(stderr, file.s, strlen(file.s));
        putc('\n', stderr);
    }
    return code;
}

/* Whether the file exists and has this checksum, a JSON string. */
static bool has_checksum(const char *path, json_text_span wanted)
{
    char checksum[17];
    whole_file file = {0};
    if (file_read_whole(path, MOST_TOKENIZER_BYTES, &file) != 0 || !file.data)
        return false;
    snprintf(checksum, sizeof checksum, "%016" PRIx64, tokmap_i_checksum(file.data, file.n_bytes));
    free(file.data);
    return json_text_is_string(wanted, checksum);
}

path_text dataset_find_tokenizer(const tokmap_dataset *ds)
{
    json_text_span made_with, recorded, name;
    char plain[256];
    path_text none = {""};
    if (!dataset_metadata_find(ds, "tokenizer", &made_with) ||
        !json_text_find(made_with, "name", &name) ||
        !json_text_find(made_with, "file_xxh3", &recorded) || name.n_bytes < 3)
        return none;
    snprintf(plain, sizeof plain, "%.*s", (int)name.n_bytes - 2, name.text + 1);
    if (!json_text_is_string(name, plain) || strchr(plain, '/'))
        return none;
    const path_text here = path_of("./", plain),
                    beside = path_beside(cli_dataset_info(ds).index_path, plain);
    return has_checksum(here.s, recorded) ? here : has_checksum(beside.s, recorded) ? beside : none;
}

int dataset_check_tokenizer(const tokmap_dataset *ds, const char *path, uint64_t file_xxh3,
                            const char *advice)
{
    char checksum[17];
    json_text_span made_with, recorded, name = {"not known", 9};
    const bool is_known = dataset_metadata_find(ds, "tokenizer", &made_with) &&
                          json_text_find(made_with, "name", &name);
    snprintf(checksum, sizeof checksum, "%016" PRIx64, file_xxh3);
    const bool is_bytes = !path || strcmp(path, BYTES_TOKENIZER_NAME) == 0;
    const bool fits = is_known && json_text_find(made_with, "file_xxh3", &recorded)
                          ? json_text_is_string(recorded, checksum)
                          : json_text_is_string(name, BYTES_TOKENIZER_NAME) == is_bytes;
    if (fits || (path && !is_known))
        return CLI_OK;
    return cli_error(CLI_INPUT, "%s: its tokenizer is %.*s%s%s", cli_dataset_info(ds).index_path,
                     (int)(name.n_bytes < 200 ? name.n_bytes : 200), name.text,
                     path       ? ": --tokenizer names another file"
                     : is_known ? ", which is not in this folder or beside the dataset: name its "
                                  "file with --tokenizer"
                                : ": name its file with --tokenizer",
                     advice);
}

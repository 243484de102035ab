/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/beside.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "system/files.h"
#include "system/output_file.h"
#include "tokmap_loader.h"

enum {
    REDACTED_DIGITS = 16 /* in the name of a file of redacted tokens */
};

/* ---- Names ---- */

/* The names in a folder that may be files beside a dataset. Kept for the next dataset, which is
 * often in the same folder, so what this command has written may be missing. */
static struct {
    path_text folder;
    input_list names;
    int code; /* not CLI_OK: the folder could not be listed */
} listed;

static bool see_name(void *context, const char *name)
{
    static const char *const suffixes[] = {BESIDE_COLUMNS, BESIDE_VIEWS, BESIDE_LANES,
                                           BESIDE_LANES ".partial", BESIDE_REDACTED};
    failure *err = context;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (path_ends_with(name, suffixes[i]))
            return input_list_append(&listed.names, strdup(name), err);
    return true;
}

/* Lists the names of the dataset's folder, unless it is the one that was listed last. */
static int list_folder(const char *index_path)
{
    const path_text folder = path_beside(index_path, ".");
    failure err = {0};
    if (strcmp(folder.s, listed.folder.s) == 0)
        return listed.code;
    input_list_free(&listed.names);
    listed.names = (input_list){0};
    listed.folder = folder;
    const int sys_errno = file_list_folder(folder.s, see_name, &err);
    listed.code = sys_errno   ? cli_fail_errno(index_path, "list the files beside it", sys_errno)
                  : *err.text ? cli_print_failure(&err)
                              : CLI_OK;
    return listed.code;
}

/* Whether a late column or a lane may have this name (docs/FORMAT.md, section 14). */
static bool is_column_name(const char *name, size_t n_bytes)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    return n_bytes <= 64 && strspn(name, allowed) >= n_bytes;
}

/* For functions that have paths on the stack, which is small in some places. */
#define APART __attribute__((noinline))

/* Says once that a file is not a late column or a lane, and forgets its name. */
APART static void ignore_name(const char *index_path, char *name, const char *what)
{
    cli_warn("%s: ignored: it is not a %s, whose name has 1 to 64 letters, digits, _ and -. "
             "It may contain values of documents",
             path_beside(index_path, name).s, what);
    *name = '\0';
}

/* Appends each NAME of the files PREFIX.NAME.SUFFIX. file: one in their folder, which errors
 * name. */
APART static int list_prefix(const char *file, const char *prefix, const char *suffix,
                             input_list *found)
{
    failure err;
    const bool is_lane = strcmp(suffix, BESIDE_LANES) == 0;
    const char *last = path_last_part(prefix);
    const size_t n_begin = strlen(last) + 1, n_end = strlen(suffix);
    int code = list_folder(file);
    for (size_t i = 0; code == CLI_OK && i < listed.names.n_names; i++) {
        const char *name = listed.names.names[i];
        const size_t n = strlen(name);
        if (n <= n_begin + n_end || strncmp(name, last, n_begin - 1) != 0 ||
            name[n_begin - 1] != '.' || !path_ends_with(name, suffix) ||
            memchr(name + n_begin, '.', n - n_begin - n_end))
            continue;
        if ((is_lane || strcmp(suffix, BESIDE_COLUMNS) == 0) &&
            !is_column_name(name + n_begin, n - n_begin - n_end))
            ignore_name(prefix, listed.names.names[i], is_lane ? "lane" : "late column");
        else if (!input_list_append(found, strndup(name + n_begin, n - n_begin - n_end), &err))
            code = cli_print_failure(&err);
    }
    return code;
}

APART static int list_beside_index(const tokmap_dataset *ds, const char *suffix, input_list *found)
{
    const char *index_path = cli_dataset_info(ds).index_path;
    return list_prefix(index_path, path_prefix(index_path).s, suffix, found);
}

/* Lists what is beside the first token file of a joined dataset. */
APART static int list_beside_tokens(const tokmap_dataset *ds, const char *suffix, input_list *found)
{
    tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
    tokmap_dataset_get_segment(ds, 0, &segment);
    path_text path = path_beside(cli_dataset_info(ds).index_path, segment.path);
    char *name = path.s + (path_last_part(path.s) - path.s), *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
    return list_prefix(path.s, path.s, suffix, found);
}

int beside_list(const tokmap_dataset *ds, const char *suffix, input_list *found)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    size_t n = 0;
    *found = (input_list){0};
    int code = list_beside_index(ds, suffix, found);
    if (code == CLI_OK && info.n_segments > 0 && strcmp(suffix, BESIDE_LANES) == 0)
        code = list_beside_tokens(ds, suffix, found);
    input_list_sort(found, 0);
    for (size_t i = 0; i < found->n_names; i++) { /* a lane may be in both places */
        char *name = found->names[i];
        if (n > 0 && strcmp(found->names[n - 1], name) == 0)
            free(name);
        else
            found->names[n++] = name;
    }
    found->n_names = n;
    return code;
}

path_text beside_path(const tokmap_dataset *ds, const char *name, const char *suffix)
{
    return path_of(path_of(path_prefix(cli_dataset_info(ds).index_path).s, ".").s,
                   path_of(name, suffix).s);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds the lanes P.HEX.NAME.tml beside the dataset, finished or not, whose P.HEX.redacted does not
 * exist, and removes them or prints a message. */
APART static int find_unused_lanes(const tokmap_dataset *ds, bool remove)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    const path_text prefix = path_prefix(info.index_path);
    const path_text begin = path_of(path_last_part(prefix.s), ".");
    const size_t n_begin = strlen(begin.s);
    int code = list_folder(info.index_path);
    for (size_t i = 0; code == CLI_OK && i < listed.names.n_names; i++) {
        const char *name = listed.names.names[i];
        char digits[REDACTED_DIGITS + 2] = "";
        const bool is_lane =
            path_ends_with(name, BESIDE_LANES) || path_ends_with(name, BESIDE_LANES ".partial");
        if (!is_lane || strncmp(name, begin.s, n_begin) != 0 ||
            strspn(name + n_begin, "0123456789abcdef") != REDACTED_DIGITS ||
            name[n_begin + REDACTED_DIGITS] != '.' ||
            strcmp(name + n_begin + REDACTED_DIGITS, BESIDE_LANES) == 0)
            continue;
        memcpy(digits, name + n_begin, REDACTED_DIGITS);
        const path_text path = path_beside(info.index_path, name);
        const path_text tokens =
            path_of(path_of(prefix.s, ".").s, path_of(digits, BESIDE_REDACTED).s);
        if (file_name_exists(tokens.s) || !file_name_exists(path.s))
            continue;
        if (remove)
            code = output_remove(path.s);
        else
            cli_warn("%s: is the lane of redacted tokens that no longer exist, and may contain "
                     "values of documents that were redacted since: remove it",
                     path.s);
    }
    return code;
}

int beside_remove_unused_lanes(const tokmap_dataset *ds)
{
    return find_unused_lanes(ds, true);
}

/* Prints a message about each P.HEX.redacted that the dataset does not use. */
APART static void report_unused_tokens(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    const path_text begin = path_of(path_prefix(path_last_part(info.index_path)).s, ".");
    const size_t n_begin = strlen(begin.s);
    input_list names;
    beside_list(ds, BESIDE_REDACTED, &names);
    bool *is_used = calloc(names.n_names + 1, sizeof *is_used);
    if (names.n_names > 0)
        qsort(names.names, names.n_names, sizeof *names.names, compare_names);
    for (uint64_t i = 0; is_used && names.n_names > 0 && i < info.n_segments; i++) {
        tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
        char key[REDACTED_DIGITS + 1] = "";
        const char *const wanted = key;
        tokmap_dataset_get_segment(ds, i, &segment);
        if (segment.path_bytes == n_begin + REDACTED_DIGITS + strlen(BESIDE_REDACTED) &&
            memcmp(segment.path, begin.s, n_begin) == 0)
            memcpy(key, segment.path + n_begin, REDACTED_DIGITS);
        char **found =
            bsearch(&wanted, names.names, names.n_names, sizeof *names.names, compare_names);
        is_used[found ? found - names.names : (ptrdiff_t)names.n_names] = true;
    }
    for (size_t i = 0; is_used && i < names.n_names; i++) {
        const path_text path = beside_path(ds, names.names[i], BESIDE_REDACTED);
        if (!is_used[i] && strlen(names.names[i]) == REDACTED_DIGITS && file_name_exists(path.s))
            cli_warn(
                "%s: is not used by %s: an earlier or failed 'tokmap redact' wrote it, and it "
                "may contain the tokens of documents that were redacted since. Remove it and its "
                "lanes, unless another dataset uses it (tokmap info --segments)",
                path.s, info.index_path);
    }
    free(is_used);
    input_list_free(&names);
}

void beside_report_unused(const tokmap_dataset *ds)
{
    report_unused_tokens(ds);
    find_unused_lanes(ds, false);
}

/* ---- Late columns, views and lanes ---- */

/* verify: compares checksums; of_lanes: options for that, or NULL. */
typedef struct beside_how {
    bool verify;
    const tokmap_verify_options *of_lanes;
} beside_how;

static tokmap_status check_one(const tokmap_dataset *ds, const char *name, const char *suffix,
                               beside_how how, tokmap_error *err)
{
    const bool verify = how.verify;
    const bool is_view = strcmp(suffix, BESIDE_VIEWS) == 0;
    const path_text path = beside_path(ds, name, suffix);
    const tokmap_view_options o = {.struct_size = sizeof o, .path = path.s};
    tokmap_column *column = NULL;
    tokmap_view *view = NULL;
    tokmap_lane *lane = NULL;
    if (strcmp(suffix, BESIDE_LANES) == 0) {
        tokmap_status of_lane = tokmap_lane_open(&lane, ds, name, err);
        if (of_lane == TOKMAP_OK && verify)
            of_lane = tokmap_lane_verify(lane, how.of_lanes, err);
        tokmap_lane_close(lane);
        return of_lane;
    }
    tokmap_status status =
        is_view ? tokmap_view_open(&view, ds, &o, err) : tokmap_column_open(&column, ds, name, err);
    if (status == TOKMAP_OK && verify)
        status = is_view ? tokmap_view_verify(view, NULL, NULL, err)
                         : tokmap_column_verify(column, NULL, NULL, err);
    tokmap_column_close(column);
    tokmap_view_close(view);
    return status;
}

int beside_check(const tokmap_dataset *ds, const char *suffix, bool verify)
{
    input_list names;
    int code = beside_list(ds, suffix, &names);
    for (size_t i = 0; i < names.n_names; i++) {
        tokmap_error err;
        if (check_one(ds, names.names[i], suffix, (beside_how){verify, NULL}, &err) != TOKMAP_OK)
            code = cli_first_failure(code, cli_fail(&err));
    }
    input_list_free(&names);
    return code;
}

int beside_visit_bad(const tokmap_dataset *ds, const char *suffix, const beside_visitor *visitor)
{
    input_list names;
    const int code = beside_list(ds, suffix, &names);
    for (size_t i = 0; i < names.n_names; i++) {
        const beside_how how = {true, visitor->of_lanes};
        path_text path = beside_path(ds, names.names[i], suffix);
        tokmap_error err;
        if (check_one(ds, names.names[i], suffix, how, &err) == TOKMAP_OK)
            continue;
        if (strcmp(suffix, BESIDE_LANES) == 0 && err.file_bytes > 0)
            snprintf(path.s, sizeof path.s, "%.*s", (int)err.file_bytes, err.text);
        visitor->found(visitor->context, path.s, &err);
    }
    input_list_free(&names);
    return code;
}

int beside_remove_column(const tokmap_dataset *ds, const char *name)
{
    return output_remove(beside_path(ds, name, BESIDE_COLUMNS).s);
}

void beside_note_left_out(const tokmap_dataset *ds, bool quiet)
{
    static const char *const suffixes[][2] = {{BESIDE_COLUMNS, "late columns"},
                                              {BESIDE_LANES, "lanes"}};
    for (size_t i = 0; i < 2 && !quiet; i++) {
        input_list names;
        beside_list(ds, suffixes[i][0], &names);
        if (names.n_names > 0)
            cli_warn("%s: its %s (%s%s) are not in the output", cli_dataset_info(ds).index_path,
                     suffixes[i][1], names.names[0], names.n_names > 1 ? " and others" : "");
        input_list_free(&names);
    }
}

void beside_advise_again(const char *dataset)
{
    cli_warn("%s: is complete, but not all files beside it: mend that, and run the command again "
             "with --force",
             dataset);
}

void beside_report_replaced(const char *dataset)
{
    static const char *const suffixes[] = {BESIDE_COLUMNS, BESIDE_VIEWS, BESIDE_LANES};
    tokmap_dataset *ds;
    tokmap_error err;
    if (tokmap_dataset_open_index(&ds, dataset, &err) != TOKMAP_OK)
        return;
    for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++) {
        input_list names;
        beside_list(ds, suffixes[k], &names);
        for (size_t i = 0; i < names.n_names; i++)
            if (check_one(ds, names.names[i], suffixes[k], (beside_how){false, NULL}, &err) ==
                TOKMAP_ERR_MISMATCH)
                cli_warn("%s: is of the dataset that was replaced: remove it",
                         beside_path(ds, names.names[i], suffixes[k]).s);
        input_list_free(&names);
    }
    tokmap_dataset_close(ds);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/dataset/verify_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "datasets/beside.h"
#include "datasets/datasets.h"

typedef struct bad_files {
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    size_t folder_bytes; /* of the path of the index */
    bool quiet;
    cli_progress progress;
    input_list names; /* without the index */
    bool has_bad_index;
    size_t n_lane_damages; /* of the lane that is being checked */
    int code; /* of what is neither missing nor damaged, such as a file without permission */
} bad_files;

/* Whether another copy of the file helps. */
static bool is_lost(const tokmap_error *err)
{
    if (err->status != TOKMAP_ERR_IO)
        return err->status == TOKMAP_ERR_CORRUPT || err->status == TOKMAP_ERR_MISMATCH ||
               err->status == TOKMAP_ERR_NOT_A_DATASET;
    return err->sys_errno == 0 || err->sys_errno == ENOENT || err->sys_errno == ENOTDIR ||
           err->sys_errno == EIO;
}

/* Prints why a file is bad, unless its name is already known. Returns whether the name counts. */
static bool explain(bad_files *bad, const tokmap_error *err, bool is_known)
{
    cli_progress_clear(&bad->progress);
    if (!is_lost(err)) {
        bad->code = cli_first_failure(bad->code, cli_fail(err));
        return false;
    }
    if (!bad->quiet && !is_known)
        cli_warn("%s", err->text);
    return true;
}

/* Takes a name from the folder of the index. The damages of one file come one after another. */
static void add_name(bad_files *bad, const char *name, const tokmap_error *err)
{
    failure why;
    const size_t n = bad->names.n_names;
    const bool is_known = n > 0 && strcmp(bad->names.names[n - 1], name) == 0;
    if (!explain(bad, err, is_known) || is_known)
        return;
    if (!input_list_append(&bad->names, strdup(name), &why))
        bad->code = cli_first_failure(bad->code, cli_print_failure(&why));
}

static void add_index(bad_files *bad, const tokmap_error *err)
{
    if (explain(bad, err, false))
        bad->has_bad_index = true;
}

/* Finds the segment that has a token. */
static tokmap_segment_info find_segment(const bad_files *bad, uint64_t token)
{
    uint64_t low = 0, n = bad->info.n_segments;
    tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
    while (n > 1) {
        const uint64_t half = n / 2;
        tokmap_dataset_get_segment(bad->ds, low + half, &segment);
        low += segment.first_token <= token ? half : 0;
        n -= half;
    }
    tokmap_dataset_get_segment(bad->ds, low, &segment);
    return segment;
}

/* Copies the file that the error names; "" if it names none. */
static path_text file_of(const tokmap_error *err)
{
    path_text path = {""};
    memcpy(path.s, err->text, err->file_bytes);
    return path;
}

/* A token file without tokens has no block: only its error says that it is meant. */
static bool is_of_tokens(const bad_files *bad, const tokmap_damage *d)
{
    return d->n_tokens > 0 ||
           (bad->info.token_path && strcmp(file_of(&d->error).s, bad->info.token_path) == 0);
}

static void on_damage(void *context, const tokmap_damage *d)
{
    bad_files *bad = context;
    if (!is_of_tokens(bad, d))
        add_index(bad, &d->error);
    else if (cli_is_joined(&bad->info))
        add_name(bad, find_segment(bad, d->first_token).path, &d->error);
    else
        add_name(bad, path_last_part(bad->info.token_path), &d->error);
}

static int on_progress(void *context, uint64_t bytes_done, uint64_t bytes_total)
{
    cli_progress_update(&((bad_files *)context)->progress, bytes_done, bytes_total);
    return 0;
}

/* Takes a file beside the dataset, or beside one of its token files. */
static void add_beside(bad_files *bad, const char *path, const tokmap_error *err)
{
    const bool is_inside = strncmp(path, bad->info.index_path, bad->folder_bytes) == 0;
    if (is_inside && path[bad->folder_bytes] && strcmp(path, bad->info.index_path) != 0)
        add_name(bad, path + bad->folder_bytes, err);
    else
        bad->code = cli_first_failure(bad->code, cli_fail(err));
}

static void on_lane_damage(void *context, const tokmap_damage *d)
{
    bad_files *bad = context;
    bad->n_lane_damages++;
    add_beside(bad, file_of(&d->error).s, &d->error);
}

/* The error of a lane whose damages were reported is the first of them. */
static void on_bad_beside(void *context, const char *path, const tokmap_error *err)
{
    bad_files *bad = context;
    if (bad->n_lane_damages == 0)
        add_beside(bad, path, err);
    bad->n_lane_damages = 0;
}

static void check_beside(bad_files *bad, const verify_files_options *options)
{
    static const char *const suffixes[] = {BESIDE_COLUMNS, BESIDE_VIEWS, BESIDE_LANES};
    tokmap_verify_options of_lanes = options->verify;
    of_lanes.context = bad;
    of_lanes.on_damage = on_lane_damage;
    const beside_visitor visitor = {&of_lanes, on_bad_beside, bad};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        bad->code = cli_first_failure(bad->code, beside_visit_bad(bad->ds, suffixes[i], &visitor));
}

/* Whether the path has a part "..": an index of others may name files outside its folder, which a
 * program that copies would then overwrite. */
static bool leaves_folder(const char *name)
{
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

static void print_name(const char *name)
{
    if (strchr(name, '\n'))
        cli_warn("%s: is not printed, because its name has a line break: copy this file too", name);
    else if (leaves_folder(name))
        cli_warn("%s: is not printed, because it is outside the folder of the index: copy this "
                 "file too, if it is yours",
                 name);
    else
        puts(name);
}

int verify_files(const tokmap_dataset *ds, const verify_files_options *options)
{
    bad_files bad = {.ds = ds, .info = cli_dataset_info(ds), .quiet = options->quiet};
    tokmap_verify_options verify = options->verify;
    tokmap_error err = {.status = TOKMAP_OK};
    bad.folder_bytes = (size_t)(path_last_part(bad.info.index_path) - bad.info.index_path);
    verify.context = &bad;
    verify.on_damage = on_damage;
    verify.on_progress = on_progress;
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    cli_progress_begin(&bad.progress, "verify", options->quiet);
    const tokmap_status status = tokmap_dataset_verify(ds, &verify, &report, &err);
    cli_progress_end(&bad.progress, report.bytes_read);
    if (status != TOKMAP_OK && report.n_damages == 0)
        bad.code = cli_fail(&err); /* damage was reported piece by piece; this was not */
    else
        check_beside(&bad, options);
    for (size_t i = 0; i < bad.names.n_names; i++)
        print_name(bad.names.names[i]);
    if (bad.has_bad_index)
        print_name(path_last_part(bad.info.index_path));
    const bool is_bad = bad.names.n_names > 0 || bad.has_bad_index;
    input_list_free(&bad.names);
    return is_bad ? CLI_DATASET : bad.code;
}

int verify_files_without_index(const char *path, const tokmap_error *err)
{
    if (!is_lost(err))
        return CLI_OK;
    print_name(path_last_part(path_of(path_prefix(path).s, ".tmi").s));
    return CLI_DATASET;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/open_failure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "system/files.h"
#include "tokmap_writer.h"

static bool is_filled_file(const char *path)
{
    file_facts facts;
    return file_describe(path, &facts) == 0 && facts.kind == FILE_REGULAR && facts.n_bytes > 0;
}

/* The file that the user may have meant to adopt: path itself, or path and a usual suffix. */
static bool find_adoptable(const char *path, char *out, size_t out_bytes)
{
    static const char *const suffixes[] = {".bin", ".npy", ".ds"};
    size_t n = strlen(path) - (path_ends_with(path, ".tmi") ? 4 : 0);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        bool has_suffix = path_ends_with(path, suffixes[i]);
        int n_out = snprintf(out, out_bytes, "%.*s%s", (int)n, path, has_suffix ? "" : suffixes[i]);
        if (n_out > 0 && (size_t)n_out < out_bytes && is_filled_file(out))
            return true;
    }
    return false;
}

bool report_unfinished(const char *path)
{
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    tokmap_error err;
    char file[4096];
    int n = path_prefix_bytes(path);
    int n_out = snprintf(file, sizeof file, "%.*s.tmi.partial", n, path);
    if (n_out < 0 || (size_t)n_out >= sizeof file)
        return false;
    if (!file_name_exists(file)) {
        snprintf(file, sizeof file, "%.*s.bin.partial", n, path);
        if (!file_name_exists(file))
            return false;
        cli_warn(
            "%s: is left of a dataset whose other unfinished files are gone. Write the dataset "
            "again, or remove this file.",
            file);
        return true;
    }
    file[n] = '\0';
    if (tokmap_writer_get_checkpoint(file, 0, &info, NULL, &err) == TOKMAP_OK && info.n_checkpoints)
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
    char file[4096];
    if (no_index && report_unfinished(path))
        return code;
    else if (no_index && find_adoptable(path, file, sizeof file)) {
        fputs("Try: tokmap index ", stderr);
        cli_print_plain(stderr, file, strlen(file));
        putc('\n', stderr);
    }
    return code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* output_file.h - writes a file that appears complete under its name or not at all.
 *
 * It is written as NAME.partial under an exclusive lock, flushed, renamed without replacing another
 * file (unless allowed), and the folder is flushed. What a killed process has left is taken over.
 * All calls return an exit code, and print the error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "system/files.h"

typedef struct output_file {
    char path[4096], partial[4096 + 8];
    int fd;         /* -1: nothing is being written */
    bool replace;   /* an existing file may be replaced */
    bool is_placed; /* this file has its final name */
} output_file;

/* An open file to copy from. */
typedef struct output_source {
    int fd;
    const char *path;
    cli_progress *progress;       /* the progress of copies */
    uint64_t n_copied, n_to_copy; /* bytes, over all outputs: for progress */
} output_source;

/* How tokens were copied. */
typedef enum output_way {
    OUTPUT_HARD_LINK,
    OUTPUT_REFLINK,
    OUTPUT_COPY
} output_way;

/* The row of the option --no-lock, for all commands that write. */
#define OUTPUT_NO_LOCK_ROW                                                                         \
    {                                                                                              \
        "no-lock", 0, CLI_CALL,                                                                    \
            .help = "take no lock, on a file system without locks; only if nobody else writes "    \
                    "the output at the same time",                                                 \
            .call = output_take_no_locks                                                           \
    }
int output_take_no_locks(void *options, const char *value);

/* Names the file: prefix followed by suffix. Refuses a file that already exists, unless `replace`,
 * and a file that is being read (protected.h). */
int output_name(output_file *out, const char *prefix, const char *suffix, bool replace);
/* Creates a new partial file, and missing folders. An existing partial file is never written to,
 * because it may be a link to another file. */
int output_begin(output_file *out);
/* Continues the partial file of an earlier run, which must have no other name. */
int output_resume(output_file *out);
/* Creates the folders of the path. */
int output_make_folders(const char *path);
int output_write(output_file *out, const void *data, size_t n_bytes);
/* Appends n_bytes of src, starting at src_offset. */
int output_copy(output_file *out, output_source *src, uint64_t src_offset, uint64_t n_bytes);
/* Flushes and renames the file, and flushes the folder. */
int output_place(output_file *out);
/* The steps of output_place, for files that get their names together: flushes and closes the
 * partial file; gives it its name; flushes the folder. */
int output_finish(output_file *out);
int output_give_name(output_file *out);
int output_flush_folder(const char *path);
/* Makes the file a copy of src: a hard link, else a reflink, else a copy of the bytes. Includes
 * output_begin and output_place. A file that is replaced stays until the new one takes its name. */
int output_share(output_file *out, output_source *src, output_way *way);
/* Closes the file. A partial one stays for another run. */
void output_keep(output_file *out);
/* Removes the partial file and a file that was placed. */
void output_abandon(output_file *out);
/* Closes the file. A placed file stays; a partial one is removed. */
void output_close(output_file *out);

/* Removes a file; a missing file is not an error. */
int output_remove(const char *path);

/* ---- Without messages: 0 or an errno value ---- */

int output_try_write(output_file *out, const void *data, size_t n_bytes);
/* Truncates or extends the file to this length; writing continues there. */
int output_try_cut(output_file *out, uint64_t n_bytes);
/* The same as output_remove, but returns an errno value. */
int output_try_remove(const char *path);
/* Whether the name refers to the open file. */
bool output_has_name(int fd, const char *path);

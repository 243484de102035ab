/* output_file.h - a file that appears whole under its name or not at all.
 *
 * Written as NAME.partial under an exclusive lock, flushed, renamed without replacing another file
 * (unless asked to), the folder flushed. What a killed process leaves is taken over. All calls
 * print what is wrong and return an exit code. */
#ifndef TOKMAP_OUTPUT_FILE_H
#define TOKMAP_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/cli.h"

typedef struct output_file {
    char path[4096], partial[4096 + 8];
    int fd;        /* -1: nothing is being written */
    bool replace;  /* a file of this name may be replaced */
    bool is_there; /* this output has its final name */
} output_file;

/* An open file to take bytes from. */
typedef struct output_source {
    int fd;
    const char *path;
    cli_progress *progress;       /* of copies */
    uint64_t n_copied, n_to_copy; /* bytes, over all outputs: for progress */
} output_source;

/* How tokens came into the new file. */
typedef enum output_way {
    OUTPUT_HARD_LINK,
    OUTPUT_REFLINK,
    OUTPUT_COPY
} output_way;

/* prefix and suffix make the name. Refuses a file that already exists, unless replace, and one
 * that is read (paths.h). */
int output_name(output_file *out, const char *prefix, const char *suffix, bool replace);
/* Makes a file of its own for what will be written, and the folders that are missing: nothing that
 * is there is opened, so that no link to another file is followed. */
int output_begin(output_file *out);
/* Goes on in the partial file that an earlier run left, which must have no other name. */
int output_go_on(output_file *out);
/* Makes the folders on the way to the file. */
int output_make_folders(const char *path);
/* Makes the name of the file durable. */
int output_flush_folder(const char *path);
int output_write(output_file *out, const void *data, size_t n_bytes);
/* Appends n_bytes of src from src_offset on. */
int output_copy(output_file *out, output_source *src, uint64_t src_offset, uint64_t n_bytes);
/* Flushes, renames, flushes the folder. */
int output_place(output_file *out);
/* Makes the whole file the content of out: by a hard link, else by a reflink, else by a copy.
 * Begins and places it. A file that is replaced stays until the new one takes its name. */
int output_share(output_file *out, output_source *src, output_way *way);
/* Removes what is being written and what was placed. */
void output_abandon(output_file *out);
/* Closes; what was placed stays, what was not is removed. */
void output_close(output_file *out);

#endif /* TOKMAP_OUTPUT_FILE_H */

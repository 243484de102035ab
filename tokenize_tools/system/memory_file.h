/* memory_file.h - a FILE that is written into memory, for texts of unknown length.
 *
 * open_memstream would do, but when memory is short it leaves out a part of the text and neither
 * ferror nor fclose tells. */
#ifndef TOKMAP_MEMORY_FILE_H
#define TOKMAP_MEMORY_FILE_H

#include <stdbool.h>
#include <stdio.h>

typedef struct memory_file {
    char *text; /* malloced */
    size_t n_bytes, capacity;
} memory_file;

/* m lives until the close. NULL: out of memory. */
FILE *memory_file_open(memory_file *m);
/* Whether all of it was written; if not m->text is freed and NULL. */
bool memory_file_close(FILE *f, memory_file *m);

#endif /* TOKMAP_MEMORY_FILE_H */

/* names.h - the files that a run of tokmap pack reads and writes. */
#ifndef TOKMAP_PACK_NAMES_H
#define TOKMAP_PACK_NAMES_H

#include "pack/options.h"

/* The file of bad documents, or NULL where none is written. */
const char *pack_bad_path(char path[PATH_PREFIX_BYTES + 8], const pack_options *options);
/* When all that is read is protected (paths.h): no file may be read and written, or be two outputs
 * at once, temporary names included; and what is replaced must be a regular file. Makes the folders
 * of the outputs, but for a dry run. Returns an exit code, with a message. */
int pack_names_check(const pack_options *options);

#endif /* TOKMAP_PACK_NAMES_H */

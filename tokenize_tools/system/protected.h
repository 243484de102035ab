/* protected.h - what is read is not written.
 *
 * A command names the files that it reads; then no output may be one of them, by whatever name,
 * nor take its name. */
#ifndef TOKMAP_PROTECTED_H
#define TOKMAP_PROTECTED_H

#include "system/files.h"
#include "tokmap.h"

/* what: "an input". Only regular files count. CLI_OK, or CLI_AGAIN with a message. */
int path_protect(const file_facts *facts, const char *what);
/* The same by its name, - for stdin; one that is not there is no harm. */
int path_protect_name(const char *path, const char *what);
/* Both files of an input that is a dataset. */
int path_protect_dataset(const tokmap_dataset_info *info);
/* CLI_USAGE with a message when the path leads to a protected file. */
int path_check_output(const char *path);
/* The same for all files of the dataset `prefix`, those that are only there while it is written
 * too. */
int path_check_dataset(const char *prefix);
/* The same for stdout. */
int path_check_stdout(void);

#endif /* TOKMAP_PROTECTED_H */

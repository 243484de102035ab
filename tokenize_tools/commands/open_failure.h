/* open_failure.h - what to say when a dataset does not open, and what the user may do about it. */
#ifndef TOKMAP_OPEN_FAILURE_H
#define TOKMAP_OPEN_FAILURE_H

#include <stdbool.h>

#include "tokmap.h"

/* When a run that writes the dataset `path` is at work or was interrupted: says so. */
bool tell_unfinished(const char *path);
/* cli_fail for the dataset `path`, with a hint: it may be a file for `tokmap index`, not yet
 * complete, or a dataset that was set aside while it was being replaced. */
int open_failure(const char *path, const tokmap_error *err);

#endif /* TOKMAP_OPEN_FAILURE_H */

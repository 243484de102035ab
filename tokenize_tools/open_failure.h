/* open_failure.h - what to say when a dataset does not open, and what the user may do about it. */
#ifndef TOKMAP_OPEN_FAILURE_H
#define TOKMAP_OPEN_FAILURE_H

#include "tokmap.h"

/* cli_fail for the dataset `path`, with a hint: it may be a file for `tokmap index`, or a dataset
 * that was set aside while it was being replaced. */
int open_failure(const char *path, const tokmap_error *err);

#endif /* TOKMAP_OPEN_FAILURE_H */

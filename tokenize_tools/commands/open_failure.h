/* SPDX-License-Identifier: Apache-2.0 */
/* open_failure.h - what to say when a dataset does not open, and what the user may do about it. */
#ifndef TOKMAP_OPEN_FAILURE_H
#define TOKMAP_OPEN_FAILURE_H

#include <stdbool.h>

#include "tokmap.h"

/* Whether the dataset `path` is being written, or the run that wrote it was interrupted; prints a
 * message if so. */
bool report_unfinished(const char *path);
/* cli_fail for the dataset `path`, with a hint: it may be a file for `tokmap index`, or not yet
 * complete. */
int report_open_failure(const char *path, const tokmap_error *err);

#endif /* TOKMAP_OPEN_FAILURE_H */

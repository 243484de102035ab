/* SPDX-License-Identifier: Apache-2.0 */
/* plan_read.h - reads the plan that a command line names. */
#ifndef TOKMAP_PLAN_READ_H
#define TOKMAP_PLAN_READ_H

#include "plan/plan_file.h"

/* Reads and protects the file (system/protected.h). Start with {0}; plan_file_free frees the plan,
 * also after a failure. Returns an exit code, and prints the error. */
int plan_read(plan_file *plan, const char *path);
/* The same, but the file may be an output. */
int plan_read_to_update(plan_file *plan, const char *path);

#endif /* TOKMAP_PLAN_READ_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* must.h - calls of the library that a test takes for granted: it fails, with their words, if they
 * do. */
#ifndef TOKMAP_MUST_H
#define TOKMAP_MUST_H

#include <sys/types.h>

#include "tokmap_writer.h"

tokmap_dataset *must_open(const char *path);
/* And verify finds nothing. */
tokmap_dataset *must_be_sound(const char *path);
tokmap_dataset_info must_info(const tokmap_dataset *ds);
tokmap_writer *must_begin(const char *path, const tokmap_writer_options *options);
/* Closes the writer, too. */
void must_finish(tokmap_writer *w);
/* A child that ends with status 0. */
void must_end(pid_t child);

#endif /* TOKMAP_MUST_H */

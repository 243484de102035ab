/* SPDX-License-Identifier: Apache-2.0 */
/* must.h - calls of the library that a test takes for granted: it fails, with their words, if they
 * do. */
#pragma once

#include <sys/types.h>

#include "support/bad_days.h"

tokmap_dataset *must_open(const char *path);
/* And verify finds nothing. */
tokmap_dataset *must_be_sound(const char *path);
tokmap_dataset_info must_info(const tokmap_dataset *ds);
tokmap_writer *must_begin(const char *path, const tokmap_writer_options *options);
/* Closes the writer, too. */
void must_finish(tokmap_writer *w);
/* A new file in check_dir(); its name is valid for the next 15 calls of check_path. */
const char *must_write_file(const void *bytes, size_t n_bytes);
/* Adopts a token file and scans all of it. */
tokmap_writer *must_adopt(const char *path, const tokmap_adopt_options *options);
/* Writes a dataset of this shape, and first its tokens if they are adopted; another is replaced. */
void must_store(const shape *s, const char *prefix);
/* A sound dataset of this shape; `when` is told if not. */
void must_hold(const shape *s, const char *prefix, const char *when);
/* A child that ends by itself; returns its status. */
int must_exit(pid_t child);
/* Likewise, with status 0. */
void must_end(pid_t child);

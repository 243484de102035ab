/* SPDX-License-Identifier: Apache-2.0 */
/* input_file.h - a file, pipe or stdin that is read once, sequentially, and a way for another
 * thread to stop the reading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Opens a stop for input_file_read: reading ends when it is raised. Returns -1 with errno after an
 * error. */
int input_stop_open(void);
/* Makes reading with this stop fail from then on; may be called from any thread. */
void input_stop_raise(int stop_fd);
/* Whether the stop was raised; with -1 false. */
bool input_stop_raised(int stop_fd);

/* Opens a file; "-" is stdin. Does not wait for the other end of a pipe: the first read does.
 * Returns -1 with errno after an error. */
int input_file_open(const char *path);
/* Reads up to n_bytes. Returns the number read, 0 at the end, -1 with errno after an error:
 * ECANCELED after the stop was raised. stop_fd may be -1. */
ssize_t input_file_read(int fd, int stop_fd, void *to, size_t n_bytes);
/* Goes to an offset of a file, not of a pipe. Returns 0 or an errno value. */
int input_file_skip_to(int fd, uint64_t offset);
/* Closes the file, except stdin; ignores -1. */
void input_file_close(int fd);

/* Opens a file to read lines; "-" is stdin. Returns NULL with errno after an error. */
FILE *input_file_open_text(const char *path);
void input_file_close_text(FILE *file);

/* SPDX-License-Identifier: Apache-2.0 */
/* input_file.h - a file, pipe or stdin that is read once, sequentially, and a way for another
 * thread to stop the reading. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The stop_fd of input_file_read: reading ends when it is readable. -1: errno. */
int input_stop_open(void);
/* May be called from any thread: reading with this stop fails from then on. */
void input_stop_raise(int stop_fd);
/* Whether it was raised; -1: no. */
bool input_stop_raised(int stop_fd);

/* Opens a file; "-" is stdin. Does not wait for the other end of a pipe: the first read does. -1:
 * errno. */
int input_file_open(const char *path);
/* Reads up to n_bytes. Returns the number read, 0 at the end, -1 with errno after an error:
 * ECANCELED after the stop was raised. stop_fd is -1 if there is none. */
ssize_t input_file_read(int fd, int stop_fd, void *to, size_t n_bytes);
/* Goes to an offset of a file, not of a pipe. 0 or an errno value. */
int input_file_skip_to(int fd, uint64_t offset);
/* Does not close stdin, and ignores -1. */
void input_file_close(int fd);

/* Opens a file to read lines; "-" is stdin. NULL: errno. */
FILE *input_file_open_text(const char *path);
void input_file_close_text(FILE *file);

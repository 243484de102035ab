/* input_file.h - a file, pipe or stdin that is read once, from front to back, and a way for another
 * thread to end the reading. */
#ifndef TOKMAP_INPUT_FILE_H
#define TOKMAP_INPUT_FILE_H

#include <stddef.h>
#include <stdio.h>

typedef struct input_stop {
    int fds[2]; /* a pipe: what is written to it ends all reading */
} input_stop;

/* 0 or an errno value. */
int input_stop_open(input_stop *stop);
/* From any thread: reading with this stop fails from now on. */
void input_stop_raise(const input_stop *stop);
void input_stop_close(input_stop *stop);
/* What input_file_read takes. */
int input_stop_fd(const input_stop *stop);

/* "-" is stdin. Does not wait for the other end of a pipe: the first read does. -1: errno. */
int input_file_open(const char *path);
/* Up to n_bytes: the number read, 0 at the end, -1 with errno after an error: ECANCELED once the
 * stop is raised. stop_fd is -1 if there is none. */
ssize_t input_file_read(int fd, int stop_fd, void *to, size_t n_bytes);
/* Leaves stdin open, and ignores -1. */
void input_file_close(int fd);

/* For reading lines; "-" is stdin. NULL: errno. */
FILE *input_file_open_text(const char *path);
void input_file_close_text(FILE *file);

#endif /* TOKMAP_INPUT_FILE_H */

/* platform.h - the operating system, as the library sees it. Only platform.c makes system calls.
 *
 * Calls return 0 or an errno value. Interrupted and short reads and writes are carried on
 * inside. */
#ifndef TOKMAP_PLATFORM_H
#define TOKMAP_PLATFORM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKMAP_I_DIRECT_BYTES 4096

typedef struct tokmap_i_file_stat {
    uint64_t n_bytes;
    uint64_t device, inode; /* which file it is, whatever its name */
    uint64_t n_names;
} tokmap_i_file_stat;

/* Opens a regular file for reading; EISDIR for a folder, EINVAL for a pipe, socket or device. */
int tokmap_i_file_open(const char *path, int *fd);
/* Creates a file of ours. A file of that name is removed first, never emptied: it may have another
 * name, or somebody may be reading it. */
int tokmap_i_file_create(const char *path, int *fd);
/* Opens a file of ours that is there, to go on writing it. Does not follow a symbolic link; EINVAL
 * for what is not a regular file. */
int tokmap_i_file_open_again(const char *path, int *fd);
/* Creates an empty file, or opens the one that nobody holds, as it is, and holds it until closed:
 * EWOULDBLOCK while another process does. Does not follow a symbolic link. */
int tokmap_i_file_lock(const char *path, int *fd);
int tokmap_i_file_stat_fd(int fd, tokmap_i_file_stat *out);
/* Whether the path leads, through links too, to the file that was described. */
bool tokmap_i_file_is(const char *path, const tokmap_i_file_stat *file);
bool tokmap_i_file_exists(const char *path);
bool tokmap_i_file_is_folder(const char *path);
/* Whether both are names of one file. */
bool tokmap_i_file_same(const char *path, const char *other_path);
/* Negative fds are ignored. */
void tokmap_i_file_close(int fd);

/* *n_read is below n_bytes only at the end of the file. */
int tokmap_i_file_read(int fd, void *dst, size_t n_bytes, uint64_t offset, size_t *n_read);
int tokmap_i_file_write(int fd, const void *src, size_t n_bytes, uint64_t offset);
/* The same, past the page cache where src, n_bytes and offset are multiples of
 * TOKMAP_I_DIRECT_BYTES and the file system can; nobody else may use the fd meanwhile. */
int tokmap_i_file_write_direct(int fd, const void *src, size_t n_bytes, uint64_t offset);

/* Cuts the file off, or fills it up with zeros. */
int tokmap_i_file_resize(int fd, uint64_t n_bytes);

typedef struct tokmap_i_copy {
    int from_fd, to_fd;
    uint64_t from_offset, to_offset, n_bytes;
} tokmap_i_copy;
/* Copies inside the file system, shared blocks where it can. Any error means: nothing promised,
 * write the range by other means. */
int tokmap_i_file_copy(const tokmap_i_copy *copy);

int tokmap_i_file_sync(int fd);
/* Makes names in the folder of `path` durable. */
int tokmap_i_folder_sync(const char *path);
/* A second name for a file; EEXIST when it is taken. Some file systems cannot. */
int tokmap_i_file_link(const char *from, const char *to);
/* EEXIST when `to` is there. */
int tokmap_i_file_rename(const char *from, const char *to);
int tokmap_i_file_remove(const char *path);

/* Read-only shared map of the first n_bytes; an empty one is a valid pointer too. */
int tokmap_i_map(int fd, uint64_t n_bytes, const void **out);
void tokmap_i_unmap(const void *map, uint64_t n_bytes);

uint32_t tokmap_i_n_processors(void);
/* Runs work(context) on up to n_threads threads, the caller's own among them, and waits for
 * all. When the system gives fewer threads, fewer do the work. */
void tokmap_i_run_threads(uint32_t n_threads, void (*work)(void *), void *context);

#endif /* TOKMAP_PLATFORM_H */

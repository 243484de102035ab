/* SPDX-License-Identifier: Apache-2.0 */
/* platform.h - files, maps and the page cache. Only the files of src/system/ make system calls.
 *
 * Calls return 0 or an errno value. Interrupted and short reads and writes are continued
 * (interrupted.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The alignment of direct reads and writes. Buffers for long reads begin at a multiple of it too:
 * Zen 3 copies at a fifth of its rate to an address that is up to 32 bytes after the source, modulo
 * 4,096, where malloc puts large buffers. */
#define TOKMAP_I_DIRECT_BYTES 4096
#define TOKMAP_I_MAX_THREADS 64 /* of tokmap_i_run_threads */

typedef struct tokmap_i_file_stat {
    uint64_t n_bytes;
    uint64_t device, inode; /* identify the file under any name */
    uint64_t n_names;
    uint64_t modified_ns; /* since 1970 */
} tokmap_i_file_stat;

/* Opens a regular file for reading; EISDIR for a folder, EINVAL for a pipe, socket or device. */
int tokmap_i_file_open(const char *path, int *fd);
/* Opens the folder of `path`, to open files from it even if the process changes its folder, or the
 * folder its name. */
int tokmap_i_folder_open(const char *path, int *fd);
/* The same as tokmap_i_file_open, but the path is relative to such a folder; a negative folder_fd
 * means the folder of the process. */
int tokmap_i_file_open_from(int folder_fd, const char *path, int *fd);
/* Whether the number of the descriptor, the lowest that was free, is in the lower half of the
 * numbers that the process may use. Only such a descriptor is kept for later, so that the process
 * can open what it needs. */
bool tokmap_i_file_may_stay(int fd);
/* Creates a file. An existing one is removed first, not emptied: it may have another name, or
 * another process may be reading it. */
int tokmap_i_file_create(const char *path, int *fd);
/* Opens an existing file to continue writing it. Does not follow a symbolic link; EINVAL if it is
 * not a regular file. */
int tokmap_i_file_open_again(const char *path, int *fd);
/* Creates an empty file, or opens an existing one without changing it, and locks it until it is
 * closed. EWOULDBLOCK: another process has locked it. Does not follow a symbolic link; EINVAL if it
 * is not a regular file. */
int tokmap_i_file_lock(const char *path, int *fd);
/* Locks an open file. EWOULDBLOCK: another process has locked it. ENOLCK: the file system has no
 * locks. On NFS, a file must be open for writing to be locked exclusively. */
int tokmap_i_file_lock_open(int fd, bool is_shared);
/* Makes this process take no locks from now on, because nobody else writes its files. Call it
 * before threads are started. */
void tokmap_i_file_take_no_locks(void);
/* Returns the meaning of an error of a lock, for a message; "cannot create" for all errors except
 * ENOLCK. */
const char *tokmap_i_file_lock_text(int error);
/* Tries, with two short files beside `path`, what a writer of it needs of its file system: writing
 * in any order, renaming, flushing the folder. Returns 0 or an errno value; *text says what failed
 * and what to do. */
int tokmap_i_file_probe(const char *path, const char **text);
int tokmap_i_file_stat_fd(int fd, tokmap_i_file_stat *out);
/* The same as tokmap_i_file_stat_fd, for the file that the path leads to. */
int tokmap_i_file_stat_path(const char *path, tokmap_i_file_stat *out);
/* Whether the path, possibly through links, leads to this file. */
bool tokmap_i_file_is(const char *path, const tokmap_i_file_stat *file);
bool tokmap_i_file_exists(const char *path);
bool tokmap_i_file_is_folder(const char *path);
/* Whether both are names of one file. */
bool tokmap_i_file_same(const char *path, const char *other_path);
/* Closes the file. Negative fds are ignored. */
void tokmap_i_file_close(int fd);

/* Reads n_bytes; *n_read is less only at the end of the file. */
int tokmap_i_file_read(int fd, void *dst, size_t n_bytes, uint64_t offset, size_t *n_read);
int tokmap_i_file_write(int fd, const void *src, size_t n_bytes, uint64_t offset);
/* Whether writing goes past the page cache: then src, n_bytes and offset must be multiples of
 * TOKMAP_I_DIRECT_BYTES, or of what the file system wants, or tokmap_i_file_write fails with
 * EINVAL. */
int tokmap_i_file_set_direct(int fd, bool is_direct);
/* The same as tokmap_i_file_write, but past the page cache if src, n_bytes and offset are multiples
 * of TOKMAP_I_DIRECT_BYTES and the file system supports it. No other thread may use the fd
 * meanwhile. */
int tokmap_i_file_write_direct(int fd, const void *src, size_t n_bytes, uint64_t offset);

/* Shortens the file, or extends it with zeros. */
int tokmap_i_file_resize(int fd, uint64_t n_bytes);

typedef struct tokmap_i_copy {
    int from_fd, to_fd;
    uint64_t from_offset, to_offset, n_bytes;
} tokmap_i_copy;
/* Copies inside the file system, which may share blocks. After an error the content of the range is
 * undefined: write it by other means. */
int tokmap_i_file_copy(const tokmap_i_copy *copy);

/* Makes an empty file a copy of another one that shares its blocks; only some file systems can. */
int tokmap_i_file_clone(int from_fd, int to_fd);

int tokmap_i_file_sync(int fd);
/* Finds the absolute path of the folder of `path`, without links; the caller frees it. */
int tokmap_i_folder_resolve(const char *path, char **out);
/* Makes names in the folder of `path` durable. */
int tokmap_i_folder_sync(const char *path);
/* Gives a file a second name; EEXIST if the name is taken. Some file systems have no links. */
int tokmap_i_file_link(const char *from, const char *to);
/* Renames a file; EEXIST if `to` exists. */
int tokmap_i_file_rename(const char *from, const char *to);
/* The same as tokmap_i_file_rename, but replaces a file `to`. */
int tokmap_i_file_rename_over(const char *from, const char *to);
int tokmap_i_file_remove(const char *path);

/* Sets *n_bytes to the size of a file as the system last heard of it: on a network file system
 * without asking the server. */
int tokmap_i_file_known_size(int fd, uint64_t *n_bytes);

/* Maps the first n_bytes, read-only and shared. *out is a valid pointer even for 0 bytes. */
int tokmap_i_map(int fd, uint64_t n_bytes, const void **out);
void tokmap_i_unmap(const void *map, uint64_t n_bytes);

/* ---- The page cache; all except populate, cached and open_direct are hints ---- */

uint32_t tokmap_i_page_bytes(void);
/* Turns read-ahead off if pages are going to be accessed in random order, else on. */
void tokmap_i_map_expect_random(const void *map, uint64_t n_bytes, bool random);
/* Reads the pages in and maps them. Returns EFAULT where an access would raise SIGBUS. The range
 * consists of whole pages. */
int tokmap_i_map_populate(const void *at, size_t n_bytes);
/* Whether this error of tokmap_i_map_populate means that the system does not know the call or does
 * not allow it. */
bool tokmap_i_map_never_populates(int error);
/* Unmaps the pages; an access maps them again. */
void tokmap_i_map_forget(const void *at, size_t n_bytes);
void tokmap_i_file_expect_random(int fd, bool random);
/* Starts to read the range, without waiting. */
void tokmap_i_file_will_need(int fd, uint64_t offset, uint64_t n_bytes);
/* Starts to read what follows `at` in a file that is read from front to back, at most n_bytes and
 * some MiB. *asked is the end of what was requested so far; start with 0. */
void tokmap_i_file_read_ahead(int fd, uint64_t at, uint64_t n_bytes, uint64_t *asked);
/* Drops the whole pages of the range from the page cache. */
void tokmap_i_file_forget(int fd, uint64_t offset, uint64_t n_bytes);
/* Returns how many of these bytes are in pages that are not in the page cache. Returns -1 if the
 * file system cannot say: FUSE, overlayfs, network file systems. Missing pages may be read in.
 * Files of tmpfs and ramfs are always in memory. Cancels the advice of expect_random. */
int tokmap_i_file_count_cold(int fd, const uint64_t *offsets, size_t n);
/* Opens the file of fd again, for reads past the page cache. They must begin and end at multiples
 * of *alignment, in the file and in memory. Fails where that is not possible. */
int tokmap_i_file_open_direct(int fd, int *direct_fd, uint32_t *alignment);

/* Takes memory that the system provides page by page, on first access. */
int tokmap_i_memory_take(size_t n_bytes, void **out);
void tokmap_i_memory_give_back(void *memory, size_t n_bytes);
/* Makes a file of zeros without a name, in memory, and maps it to be written. Only what is written
 * takes memory. */
int tokmap_i_memory_file(uint64_t n_bytes, int *fd, void **map);
/* The same as tokmap_i_memory_take, but in a forked child the memory is zeros. EINVAL: the system
 * has no such memory. */
int tokmap_i_memory_take_wiped(size_t n_bytes, void **out);

/* Detects a forked child: is_child is true in it. Makes no system call. */
typedef struct tokmap_i_fork_mark {
    void *page;      /* zeroed by fork; NULL: not supported */
    int64_t process; /* compared if page is NULL */
} tokmap_i_fork_mark;
void tokmap_i_fork_mark_set(tokmap_i_fork_mark *mark);
bool tokmap_i_fork_mark_is_child(const tokmap_i_fork_mark *mark);
void tokmap_i_fork_mark_free(tokmap_i_fork_mark *mark);

/* Returns the number of processors that this process may use, by its affinity and the quota of its
 * control group; 1 if the system does not say. */
uint32_t tokmap_i_n_processors(void);
/* Runs work(context), which returns NULL, on n_threads threads, at most TOKMAP_I_MAX_THREADS, the
 * caller's own among them, and waits for all. When the system gives fewer threads, fewer do the
 * work. */
void tokmap_i_run_threads(uint32_t n_threads, void *(*work)(void *), void *context);

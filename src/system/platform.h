/* platform.h - the operating system, as the library sees it. Only platform.c makes system calls.
 *
 * Calls return 0 or an errno value. Interrupted and short reads and writes are carried on
 * inside. */
#ifndef TOKMAP_PLATFORM_H
#define TOKMAP_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKMAP_I_DIRECT_BYTES 4096

enum {
    TOKMAP_I_MAX_THREADS = 64 /* of tokmap_i_run_threads */
};

typedef struct tokmap_i_file_stat {
    uint64_t n_bytes;
    uint64_t device, inode; /* which file it is, whatever its name */
    uint64_t n_names;
    uint64_t modified_ns; /* since 1970 */
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
 * EWOULDBLOCK while another process does. Does not follow a symbolic link; EINVAL for what is not a
 * regular file. */
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

/* ---- What the page cache is to do with ranges; all but open_direct and populate are hints ---- */

uint32_t tokmap_i_page_bytes(void);
/* Pages of the map are, or are no longer, asked for in random order: no read-ahead. */
void tokmap_i_map_expect_random(const void *map, uint64_t n_bytes, bool random);
/* Brings the pages in and maps them. EFAULT where touching would be SIGBUS. The range begins and
 * ends with pages. */
int tokmap_i_map_populate(const void *at, size_t n_bytes);
/* Whether its error says that the system does not know this call, or does not allow it. */
bool tokmap_i_map_never_populates(int error);
/* Takes the pages out of the map; they come back when they are touched. */
void tokmap_i_map_forget(const void *at, size_t n_bytes);
void tokmap_i_file_expect_random(int fd, bool random);
/* Begins to read the range, and does not wait. */
void tokmap_i_file_will_need(int fd, uint64_t offset, uint64_t n_bytes);
/* Lets the whole pages of the range go from the page cache. */
void tokmap_i_file_forget(int fd, uint64_t offset, uint64_t n_bytes);
/* Whether the page of this byte is in the page cache; a missing one may be read in. True where the
 * system does not say. Afterwards the file is not expected to be read in random order. */
bool tokmap_i_file_is_cached(int fd, uint64_t offset);
/* The file of fd once more, for reads past the page cache that begin and end at multiples of
 * *alignment, in the file and in memory. An error: it cannot be done here. */
int tokmap_i_file_open_direct(int fd, int *direct_fd, uint32_t *alignment);

/* Memory that takes no room until it is touched. */
int tokmap_i_memory_take(size_t n_bytes, void **out);
void tokmap_i_memory_give_back(void *memory, size_t n_bytes);

/* Tells a process from the children that it forks: is_child is true in those. No system call. */
typedef struct tokmap_i_fork_mark {
    void *page;      /* wiped by fork; NULL: the system cannot */
    int64_t process; /* then this is asked */
} tokmap_i_fork_mark;
void tokmap_i_fork_mark_set(tokmap_i_fork_mark *mark);
bool tokmap_i_fork_mark_is_child(const tokmap_i_fork_mark *mark);
void tokmap_i_fork_mark_free(tokmap_i_fork_mark *mark);

/* At most TOKMAP_I_MAX_THREADS. */
uint32_t tokmap_i_n_processors(void);
/* Runs work(context) on n_threads threads, at most TOKMAP_I_MAX_THREADS, the caller's own among
 * them, and waits for all. When the system gives fewer threads, fewer do the work. */
void tokmap_i_run_threads(uint32_t n_threads, void (*work)(void *), void *context);

#endif /* TOKMAP_PLATFORM_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - describes files and reads whole ones. Prints nothing: a call that returns an int
 * returns 0 or an errno value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identifies a file, under any name. */
typedef struct file_id {
    uint64_t device, inode;
} file_id;
/* Compares file ids for qsort and tsearch. */
int file_id_compare(const void *a, const void *b);

typedef enum file_kind {
    FILE_REGULAR,
    FILE_FOLDER,
    FILE_LINK, /* only from file_describe_name */
    FILE_SPECIAL
} file_kind;

typedef struct file_facts {
    file_id id;
    file_kind kind;
    uint64_t n_names, n_bytes;
    uint64_t mtime_ns, ctime_ns; /* modified, changed; since 1970 */
} file_facts;

/* Describes the file that the path leads to. */
int file_describe(const char *path, file_facts *facts);
/* Describes the name itself, which may be a symbolic link. */
int file_describe_name(const char *path, file_facts *facts);
int file_describe_open(int fd, file_facts *facts);
/* Describes an input, which must be readable; "-" is stdin. */
int file_describe_input(const char *name, file_facts *facts);

/* Whether the name exists, even as a broken link. */
bool file_name_exists(const char *path);
/* The same as file_name_exists, but takes the name in two parts. */
bool file_suffix_exists(const char *prefix, const char *suffix);
/* Whether the path leads to an existing file, or to a regular file. */
bool file_exists(const char *path);
bool file_is_regular(const char *path);
/* Whether it is a regular file that this process may execute. */
bool file_can_run(const char *path);
/* Whether the path leads to the file with this id. */
bool file_is(const char *path, file_id id);
/* Whether two paths are in the same folder. */
bool file_in_same_folder(const char *a, const char *b);
/* Whether both are the same name in the same folder, even if the file does not exist. */
bool file_is_same_name(const char *a, const char *b);
/* Whether the path is a symbolic link; then `target` is its target, truncated to n_bytes. */
bool file_link_target(const char *path, char *target, size_t n_bytes);

/* Calls `see` with each name in the folder except . and .., until it returns false. */
typedef bool file_see_name(void *context, const char *name);
int file_list_folder(const char *path, file_see_name *see, void *context);

/* Adds the bytes [first, first + n_bytes), as far as the file has them, to the checksum. */
struct XXH3_state_s;
int file_hash(int fd, uint64_t first, uint64_t n_bytes, struct XXH3_state_s *checksum);

/* Whether two regular files have the same bytes; false also if one cannot be read. */
bool file_is_copy(const char *a, const char *b);

/* Opens a file of any kind for reading and describes it; does not wait for the other end of a pipe.
 * *fd is -1 after an error. */
int file_open(const char *path, int *fd, file_facts *facts);

/* Opens a new file in the folder of `path`, to be written and read. It has no name and goes when it
 * is closed; an error where the file system has no such files. */
int file_open_unnamed(const char *path, int *fd);
/* How much the file system of the file has room for; 0: it is not known. */
uint64_t file_free_bytes(int fd);

#define FILE_PADDING 64

typedef struct whole_file {
    uint8_t *data; /* malloced, with FILE_PADDING zeros after it; NULL: the file does not exist */
    size_t n_bytes;
    file_facts facts;
} whole_file;
/* Reads a whole file or pipe: EISDIR for a folder, EFBIG for more than max_bytes. */
int file_read_whole(const char *path, size_t max_bytes, whole_file *file);

/* SPDX-License-Identifier: Apache-2.0 */
#include "system/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <xxhash.h>

#include "cli/paths.h"
#include "system/interrupted.h"
#include "system/platform.h"
#include "base/array.h"

int file_id_compare(const void *a, const void *b)
{
    const file_id *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* ---- Describing ---- */

/* Fills what is known of a file after stat, lstat or fstat. */
static int take_facts(int failed, const struct stat *st, file_facts *facts)
{
    *facts = (file_facts){0};
    if (failed)
        return errno;
    *facts = (file_facts){
        .id = {st->st_dev, st->st_ino},
        .kind = S_ISREG(st->st_mode)   ? FILE_REGULAR
                : S_ISDIR(st->st_mode) ? FILE_FOLDER
                : S_ISLNK(st->st_mode) ? FILE_LINK
                                       : FILE_SPECIAL,
        .n_names = st->st_nlink,
        .n_bytes = (uint64_t)st->st_size,
        .mtime_ns = 1000000000u * (uint64_t)st->st_mtim.tv_sec + (uint64_t)st->st_mtim.tv_nsec,
        .ctime_ns = 1000000000u * (uint64_t)st->st_ctim.tv_sec + (uint64_t)st->st_ctim.tv_nsec,
    };
    return 0;
}

int file_describe(const char *path, file_facts *facts)
{
    struct stat st;
    return take_facts(stat(path, &st), &st, facts);
}

int file_describe_name(const char *path, file_facts *facts)
{
    struct stat st;
    return take_facts(lstat(path, &st), &st, facts);
}

int file_describe_open(int fd, file_facts *facts)
{
    struct stat st;
    return take_facts(fstat(fd, &st), &st, facts);
}

int file_describe_input(const char *name, file_facts *facts)
{
    if (strcmp(name, "-") == 0)
        return file_describe_open(STDIN_FILENO, facts);
    const int error = file_describe(name, facts);
    return error ? error : access(name, R_OK) != 0 ? errno : 0;
}

bool file_name_exists(const char *path)
{
    file_facts facts;
    return file_describe_name(path, &facts) == 0;
}

bool file_suffix_exists(const char *prefix, const char *suffix)
{
    return file_name_exists(path_of(prefix, suffix).s);
}

bool file_exists(const char *path)
{
    file_facts facts;
    return file_describe(path, &facts) == 0;
}

bool file_is_regular(const char *path)
{
    file_facts facts;
    return file_describe(path, &facts) == 0 && facts.kind == FILE_REGULAR;
}

bool file_can_run(const char *path)
{
    return file_is_regular(path) && access(path, X_OK) == 0;
}

bool file_is(const char *path, file_id id)
{
    file_facts facts;
    return file_describe(path, &facts) == 0 && file_id_compare(&facts.id, &id) == 0;
}

bool file_in_same_folder(const char *a, const char *b)
{
    file_facts facts;
    return file_describe(path_beside(a, ".").s, &facts) == 0 &&
           file_is(path_beside(b, ".").s, facts.id);
}

bool file_is_same_name(const char *a, const char *b)
{
    return strcmp(a, b) == 0 ||
           (strcmp(path_last_part(a), path_last_part(b)) == 0 && file_in_same_folder(a, b));
}

bool file_link_target(const char *path, char *target, size_t n_bytes)
{
    const ssize_t n = readlink(path, target, n_bytes - 1);
    if (n >= 0)
        target[n] = '\0';
    return n >= 0;
}

int file_list_folder(const char *path, file_see_name *see, void *context)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    bool more = true;
    if (!folder)
        return errno;
    errno = 0;
    while (more && (entry = readdir(folder)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            more = see(context, entry->d_name);
        errno = 0;
    }
    const int error = errno;
    closedir(folder);
    return error;
}

/* ---- Reading ---- */

static int open_with(const char *path, int flags, int *fd, file_facts *facts)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flags);
    if (*fd < 0)
        return errno;
    const int error = file_describe_open(*fd, facts);
    if (error) {
        close(*fd);
        *fd = -1;
    }
    return error;
}

int file_open(const char *path, int *fd, file_facts *facts)
{
    return open_with(path, O_NONBLOCK, fd, facts);
}

int file_hash(int fd, uint64_t first, uint64_t n_bytes, struct XXH3_state_s *checksum)
{
    uint8_t block[1 << 14];
    int error = 0;
    size_t n = 1;
    for (uint64_t at = 0; !error && n > 0 && at < n_bytes; at += n) {
        const size_t wanted = n_bytes - at < sizeof block ? (size_t)(n_bytes - at) : sizeof block;
        error = tokmap_i_file_read(fd, block, wanted, first + at, &n);
        XXH3_64bits_update(checksum, block, n);
    }
    return error;
}

bool file_is_copy(const char *a, const char *b)
{
    uint8_t block[2][1 << 14];
    const char *const paths[] = {a, b};
    int fds[2] = {-1, -1};
    file_facts facts[2] = {{{0}}};
    bool same = true;
    for (int i = 0; i < 2; i++)
        same =
            file_open(paths[i], &fds[i], &facts[i]) == 0 && facts[i].kind == FILE_REGULAR && same;
    same = same && facts[0].n_bytes == facts[1].n_bytes;
    size_t n[2] = {1, 1};
    for (uint64_t at = 0; same && n[0] > 0; at += n[0]) {
        for (int i = 0; i < 2; i++)
            same = tokmap_i_file_read(fds[i], block[i], sizeof *block, at, &n[i]) == 0 && same;
        same = same && n[0] == n[1] && memcmp(block[0], block[1], n[0]) == 0;
    }
    for (int i = 0; i < 2; i++)
        tokmap_i_file_close(fds[i]);
    return same;
}

static int read_to_end(int fd, size_t max_bytes, whole_file *file)
{
    size_t capacity = 0;
    unsigned n_times = 0;
    for (;;) {
        if (capacity - file->n_bytes <= FILE_PADDING &&
            !array_reserve(&file->data, &capacity, file->n_bytes + (1 << 20), 1))
            return ENOMEM;
        const ssize_t n =
            read(fd, file->data + file->n_bytes, capacity - FILE_PADDING - file->n_bytes);
        if (n < 0 && !tokmap_i_is_interrupted(&n_times))
            return errno;
        if (n == 0) {
            memset(file->data + file->n_bytes, 0, FILE_PADDING);
            return 0;
        }
        file->n_bytes += n > 0 ? (size_t)n : 0;
        if (file->n_bytes > max_bytes)
            return EFBIG;
    }
}

int file_open_unnamed(const char *path, int *fd)
{
    const path_text folder = path_beside(path, ".");
    unsigned n_times = 0;
    do
        *fd = open(folder.s, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    while (*fd < 0 && tokmap_i_is_interrupted(&n_times));
    return *fd < 0 ? errno : 0;
}

uint64_t file_free_bytes(int fd)
{
    struct statvfs facts;
    if (fstatvfs(fd, &facts) != 0 || facts.f_bavail > UINT64_MAX / facts.f_frsize)
        return 0;
    return facts.f_bavail * facts.f_frsize;
}

int file_read_whole(const char *path, size_t max_bytes, whole_file *file)
{
    int fd;
    *file = (whole_file){0};
    int error = open_with(path, 0, &fd, &file->facts);
    if (!error && file->facts.kind == FILE_REGULAR && file->facts.n_bytes > max_bytes)
        error = EFBIG;
    if (!error)
        error = read_to_end(fd, max_bytes, file);
    tokmap_i_file_close(fd);
    if (error) {
        free(file->data);
        file->data = NULL;
    }
    return error;
}

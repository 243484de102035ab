#include "cli/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

bool path_ends_with(const char *path, const char *suffix)
{
    size_t n = strlen(path), n_suffix = strlen(suffix);
    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

bool path_is_file(const char *path, const struct stat *st)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == st->st_dev && other.st_ino == st->st_ino;
}

static bool is_folder_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    return !*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0;
}

int path_check_all(char **paths, int n_paths)
{
    for (int i = 0; i < n_paths; i++) {
        if (!*paths[i])
            return cli_usage("an empty path names no file");
        if (is_folder_name(paths[i]))
            return cli_usage("%s: names a folder, not a file", paths[i]);
    }
    return CLI_OK;
}

int path_prefix_bytes(const char *name)
{
    bool has_suffix = path_ends_with(name, ".tmi") || path_ends_with(name, ".bin");
    return (int)strlen(name) - (has_suffix ? 4 : 0);
}

int path_output_prefix(char prefix[PATH_PREFIX_BYTES], const char *output, const char *suffix)
{
    size_t n = strlen(output);
    if (path_ends_with(output, ".bin") || path_ends_with(output, suffix))
        n -= 4;
    if (n >= PATH_PREFIX_BYTES)
        return cli_usage("-o: the path is too long");
    memcpy(prefix, output, n);
    prefix[n] = '\0';
    if (is_folder_name(prefix))
        return cli_usage("-o %s: names a folder, not a file", output);
    return CLI_OK;
}

/* ---- What is read is not written ---- */

const char *const path_dataset_suffixes[PATH_N_DATASET_SUFFIXES] = {
    ".bin",         ".tmi",          ".bin.partial",  ".tmi.partial",
    ".tmj.partial", ".bin.replaced", ".tmi.replaced",
};

typedef struct protected_file {
    dev_t device;
    ino_t inode;
    const char *what;
} protected_file;

static struct {
    protected_file *files;
    size_t n, capacity;
} protected;

int path_protect(const struct stat *st, const char *what)
{
    if (!S_ISREG(st->st_mode))
        return CLI_OK;
    if (protected.n == protected.capacity) {
        size_t capacity = protected.capacity ? 2 * protected.capacity : 16;
        protected_file *files = realloc(protected.files, capacity * sizeof *files);
        if (!files)
            return cli_no_memory();
        protected.files = files;
        protected.capacity = capacity;
    }
    protected.files[protected.n++] = (protected_file){st->st_dev, st->st_ino, what};
    return CLI_OK;
}

int path_protect_name(const char *path, const char *what)
{
    struct stat st;
    bool is_stdin = strcmp(path, "-") == 0;
    if ((is_stdin ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0)
        return CLI_OK;
    return path_protect(&st, what);
}

int path_protect_dataset(const tokmap_dataset_info *info)
{
    int code = path_protect_name(info->token_path, "an input");
    return code == CLI_OK ? path_protect_name(info->index_path, "an input") : code;
}

static int check_apart(const struct stat *st, const char *name)
{
    for (size_t i = 0; i < protected.n; i++) {
        const protected_file *file = &protected.files[i];
        if (file->device == st->st_dev && file->inode == st->st_ino)
            return cli_usage("%s: is %s, so it cannot be an output", name, file->what);
    }
    return CLI_OK;
}

int path_check_output(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? check_apart(&st, path) : CLI_OK;
}

int path_check_dataset(const char *prefix)
{
    int code = CLI_OK;
    for (size_t i = 0; i < PATH_N_DATASET_SUFFIXES && code == CLI_OK; i++) {
        char path[PATH_PREFIX_BYTES + 32];
        snprintf(path, sizeof path, "%s%s", prefix, path_dataset_suffixes[i]);
        code = path_check_output(path);
    }
    return code;
}

int path_check_stdout(void)
{
    struct stat st;
    return fstat(STDOUT_FILENO, &st) == 0 ? check_apart(&st, "stdout") : CLI_OK;
}

#include "system/protected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/paths.h"

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

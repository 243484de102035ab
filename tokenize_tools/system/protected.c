/* SPDX-License-Identifier: Apache-2.0 */
#include "system/protected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"

typedef struct protected_file {
    file_id id;
    const char *what;
} protected_file;

static struct {
    protected_file *files;
    size_t n, capacity;
} protected;

int path_protect(const file_facts *facts, const char *what)
{
    if (facts->kind != FILE_REGULAR)
        return CLI_OK;
    if (protected.n == protected.capacity) {
        size_t capacity = protected.capacity ? 2 * protected.capacity : 16;
        protected_file *files = realloc(protected.files, capacity * sizeof *files);
        if (!files)
            return cli_no_memory();
        protected.files = files;
        protected.capacity = capacity;
    }
    protected.files[protected.n++] = (protected_file){facts->id, what};
    return CLI_OK;
}

int path_protect_name(const char *path, const char *what)
{
    file_facts facts;
    return file_describe_input(path, &facts) == 0 ? path_protect(&facts, what) : CLI_OK;
}

/* Its path is counted from the folder of the index. */
static int protect_segment(const char *index_path, const tokmap_segment_info *segment)
{
    const char *slash = strrchr(index_path, '/');
    const size_t n_folder = slash ? (size_t)(slash - index_path) + 1 : 0;
    char *path = malloc(n_folder + segment->path_bytes + 1);
    if (!path)
        return cli_no_memory();
    memcpy(path, index_path, n_folder);
    memcpy(path + n_folder, segment->path, segment->path_bytes + 1);
    const int code = path_protect_name(path, "an input");
    free(path);
    return code;
}

int path_protect_dataset(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_dataset_get_info(ds, &info);
    int code = path_protect_name(info.index_path, "an input");
    if (code == CLI_OK && info.token_path)
        code = path_protect_name(info.token_path, "an input");
    for (uint64_t i = 0; i < info.n_segments && code == CLI_OK; i++) {
        tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &segment);
        code = protect_segment(info.index_path, &segment);
    }
    return code;
}

static int check_apart(file_id id, const char *name)
{
    for (size_t i = 0; i < protected.n; i++) {
        const protected_file *file = &protected.files[i];
        if (file_id_compare(&file->id, &id) == 0)
            return cli_usage("%s: is %s, so it cannot be an output", name, file->what);
    }
    return CLI_OK;
}

int path_check_output(const char *path)
{
    file_facts facts;
    return file_describe(path, &facts) == 0 ? check_apart(facts.id, path) : CLI_OK;
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
    file_facts facts;
    return file_describe_open(1, &facts) == 0 ? check_apart(facts.id, "stdout") : CLI_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "system/protected.h"

#include "cli/cli.h"
#include "cli/paths.h"
#include "base/array.h"

typedef struct protected_file {
    file_id id;
    const char *what;
} protected_file;

static struct {
    protected_file *files;
    size_t n;
} protected;

int path_protect(const file_facts *facts, const char *what)
{
    if (facts->kind != FILE_REGULAR)
        return CLI_OK;
    if (!array_grow(&protected.files, protected.n, sizeof *protected.files))
        return cli_no_memory();
    protected.files[protected.n++] = (protected_file){facts->id, what};
    return CLI_OK;
}

int path_protect_name(const char *path, const char *what)
{
    file_facts facts;
    return file_describe_input(path, &facts) == 0 ? path_protect(&facts, what) : CLI_OK;
}

int path_protect_dataset(const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    int code = path_protect_name(info.index_path, "an input");
    if (code == CLI_OK && info.token_path)
        code = path_protect_name(info.token_path, "an input");
    for (uint64_t i = 0; i < info.n_segments && code == CLI_OK; i++) {
        tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &segment);
        code = path_protect_name(path_beside(info.index_path, segment.path).s, "an input");
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
    for (size_t i = 0; i < PATH_N_DATASET_SUFFIXES && code == CLI_OK; i++)
        code = path_check_output(path_of(prefix, path_dataset_suffixes[i]).s);
    return code;
}

int path_check_stdout(void)
{
    file_facts facts;
    return file_describe_open(1, &facts) == 0 ? check_apart(facts.id, "stdout") : CLI_OK;
}

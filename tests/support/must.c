/* SPDX-License-Identifier: Apache-2.0 */
#include "support/must.h"

#include <sys/wait.h>

#include "support/check.h"

tokmap_dataset *must_open(const char *path)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    CHECK_OK(tokmap_dataset_open(&ds, path, &err), err);
    return ds;
}

tokmap_dataset *must_be_sound(const char *path)
{
    tokmap_dataset *ds = must_open(path);
    tokmap_error err;
    CHECK_OK(tokmap_dataset_verify(ds, NULL, NULL, &err), err);
    return ds;
}

tokmap_dataset_info must_info(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_dataset_get_info(ds, &info), TOKMAP_OK);
    return info;
}

tokmap_writer *must_begin(const char *path, const tokmap_writer_options *options)
{
    tokmap_writer *w = NULL;
    tokmap_error err;
    CHECK_OK(tokmap_writer_open(&w, path, options, &err), err);
    return w;
}

void must_finish(tokmap_writer *w)
{
    tokmap_error err;
    CHECK_OK(tokmap_writer_finish(w, &err), err);
    tokmap_writer_close(w);
}

const char *must_write_file(const void *bytes, size_t n_bytes)
{
    static unsigned n_files;
    char name[32];
    snprintf(name, sizeof name, "file-%u", n_files++);
    const char *path = check_path(name);
    CHECK(file_store(path, bytes, n_bytes));
    return path;
}

tokmap_writer *must_adopt(const char *path, const tokmap_adopt_options *options)
{
    tokmap_writer *w = NULL;
    tokmap_error err;
    tokmap_status status = TOKMAP_OK;
    const void *tokens;
    size_t n_tokens;
    CHECK_OK(tokmap_writer_adopt(&w, path, options, &err), err);
    while (!status)
        status = tokmap_writer_scan(w, &tokens, &n_tokens, &err);
    CHECK_INT(status, TOKMAP_END);
    CHECK(tokens == NULL && n_tokens == 0);
    return w;
}

void must_store(const shape *s, const char *prefix)
{
    tokmap_error err;
    CHECK(!s->adopted_suffix || shape_store_tokens(s, prefix));
    CHECK_OK(shape_write(s, prefix, true, &err), err);
}

void must_hold(const shape *s, const char *prefix, const char *when)
{
    const char *problem = shape_compare(s, prefix);
    if (problem)
        CHECK_FAIL("%s: the %s dataset: %s", when, s->name, problem);
}

int must_exit(pid_t child)
{
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void must_end(pid_t child)
{
    CHECK_INT(must_exit(child), 0);
}

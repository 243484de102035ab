/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - checks several datasets that are used as one list, in which each may appear once. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "dataset/token_files.h"

/* ---- Paths ---- */

typedef struct choice {
    tokmap_i_file_stat index;
    size_t at;       /* index in the list of paths */
    bool is_dataset; /* false: a file that belongs to the dataset of this index */
} choice;

/* Finds the index that the path of a dataset leads to. *by_prefix: the path is P or P.tmi, and not
 * P with another suffix. */
static bool find_index(const char *path, tokmap_i_file_stat *index, bool *by_prefix)
{
    tokmap_dataset ds = {.index_fd = -1};
    size_t n_prefix = 0;
    const size_t n = strlen(path);
    const bool found = tokmap_i_find_index(&ds, path, &n_prefix, NULL) == TOKMAP_OK &&
                       (tokmap_i_file_stat_path(ds.index_names[0], index) == 0 ||
                        tokmap_i_file_stat_path(ds.index_names[1], index) == 0);
    *by_prefix = n_prefix == n || strcmp(path + n_prefix, ".tmi") == 0;
    free(ds.index_names[0]);
    return found;
}

/* Finds the dataset of a path, or the dataset to which the file belongs. */
static bool find_choice(const char *path, choice *out)
{
    bool by_prefix;
    const char *base = name_in_path(path), *dot = strrchr(base, '.');
    bool found = find_index(path, &out->index, &by_prefix);
    out->is_dataset = by_prefix || !dot || strcmp(dot, ".idx") != 0;
    const bool is_beside = dot && (tokmap_i_name_side_file(dot) || strcmp(dot, ".redacted") == 0);
    if (found || !is_beside)
        return found;
    /* It is named P.X.suffix, or P.HEX.X.suffix if it belongs to redacted tokens. */
    while (!found && dot > base) {
        while (dot > base && *--dot != '.') {
        }
        char *prefix = strndup(path, (size_t)(dot - path));
        found = prefix && dot > base && find_index(prefix, &out->index, &by_prefix) && by_prefix;
        free(prefix);
    }
    out->is_dataset = false;
    return found;
}

static int compare_choices(const void *a, const void *b)
{
    const choice *x = a, *y = b;
    if (x->index.device != y->index.device)
        return x->index.device < y->index.device ? -1 : 1;
    if (x->index.inode != y->index.inode)
        return x->index.inode < y->index.inode ? -1 : 1;
    if (x->is_dataset != y->is_dataset)
        return x->is_dataset ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

tokmap_status tokmap_dataset_choose_paths(const char *const *paths, size_t n_paths, uint8_t *chosen,
                                          tokmap_error *err)
{
    size_t n = 0;
    tokmap_i_error_clear(err);
    if ((!paths || !chosen) && n_paths)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "paths or chosen is NULL");
    for (size_t i = 0; i < n_paths; i++)
        if (!paths[i])
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "path %zu is NULL", i);
    choice *choices = malloc((n_paths + 1) * sizeof *choices);
    if (!choices)
        return FAIL_MEMORY(err);
    for (size_t i = 0; i < n_paths; i++) {
        chosen[i] = 1;
        choices[n].at = i;
        n += find_choice(paths[i], &choices[n]);
    }
    qsort(choices, n, sizeof *choices, compare_choices);
    const choice *first = choices; /* the first path with this index */
    for (const choice *c = choices; c < choices + n; c++) {
        if (c->index.device != first->index.device || c->index.inode != first->index.inode)
            first = c;
        chosen[c->at] = c == first || !first->is_dataset;
    }
    free(choices);
    return TOKMAP_OK;
}

/* ---- Token files ---- */

typedef struct flat {
    const tokmap_dataset *ds;
    tokmap_i_file_stat tokens;
} flat;

static int compare_sizes(const void *a, const void *b)
{
    const flat *x = a, *y = b;
    return (x->tokens.n_bytes > y->tokens.n_bytes) - (x->tokens.n_bytes < y->tokens.n_bytes);
}

/* Compares a file of a joined dataset with the token files of this size. */
static tokmap_status check_file(const tokmap_dataset *joined, const tokmap_i_token_file *file,
                                const flat *flats, size_t n_flats, tokmap_error *err)
{
    const flat wanted = {.tokens.n_bytes = tokmap_i_token_file_bytes(joined, file)};
    const flat *f = n_flats ? bsearch(&wanted, flats, n_flats, sizeof *flats, compare_sizes) : NULL;
    while (f && f > flats && compare_sizes(f - 1, &wanted) == 0)
        f--;
    for (; f && f < flats + n_flats && compare_sizes(f, &wanted) == 0; f++)
        if (tokmap_i_file_is(file->path, &f->tokens))
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "%s: is joined, and has the tokens of %s too: use only one of the two",
                        joined->index_path, f->ds->index_path);
    return TOKMAP_OK;
}

tokmap_status tokmap_dataset_check_files(tokmap_dataset *const *datasets, size_t n_datasets,
                                         tokmap_error *err)
{
    size_t n_flats = 0, n_joined = 0;
    tokmap_i_error_clear(err);
    if (!datasets && n_datasets)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "datasets is NULL");
    for (size_t i = 0; i < n_datasets; i++) {
        if (!datasets[i])
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "dataset %zu is NULL", i);
        n_joined += datasets[i]->is_joined;
    }
    flat *flats = malloc((n_datasets + 1) * sizeof *flats);
    if (!flats)
        return FAIL_MEMORY(err);
    for (size_t i = 0; i < n_datasets && n_joined > 0; i++) {
        flats[n_flats].ds = datasets[i];
        n_flats += !datasets[i]->is_joined &&
                   !tokmap_i_file_stat_path(datasets[i]->token_path, &flats[n_flats].tokens);
    }
    qsort(flats, n_flats, sizeof *flats, compare_sizes);
    tokmap_status status = TOKMAP_OK;
    for (size_t i = 0; i < n_datasets && n_flats > 0; i++)
        for (uint64_t k = 0; k < datasets[i]->n_files && datasets[i]->is_joined && !status; k++)
            status = check_file(datasets[i], &datasets[i]->files[k], flats, n_flats, err);
    free(flats);
    return status;
}

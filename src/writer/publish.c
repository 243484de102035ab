/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "dataset/dataset.h"
#include "system/platform.h"

static bool writes_tokens(const tokmap_i_names *n)
{
    return n->output == TOKMAP_I_OUTPUT_NEW;
}

/* Whether a file P.bin belongs to the dataset that is written, or must not exist beside it. */
static bool owns_bin(const tokmap_i_names *n)
{
    return n->output != TOKMAP_I_OUTPUT_ADOPTED;
}

static tokmap_status refuse_index(const tokmap_i_names *n, tokmap_error *err)
{
    tokmap_dataset *ds;
    if (tokmap_i_file_is_folder(n->index_path))
        return FAIL_IO(err, EISDIR, "%s: cannot write", n->index_path);
    if (!tokmap_i_file_exists(n->index_path))
        return TOKMAP_OK;
    if (tokmap_dataset_open(&ds, n->index_path, NULL) == TOKMAP_OK) {
        /* v1.npy and v1.bin would share v1.tmi. A joined dataset has no token file of its own. */
        tokmap_status status = TOKMAP_OK;
        if (!ds->is_joined && !tokmap_i_is_set_aside(ds) &&
            strcmp(ds->token_path, n->token_path) != 0)
            status = FAIL(err, TOKMAP_ERR_EXISTS,
                          "%s: is the index of %s; give one of the two another name", n->index_path,
                          ds->token_path);
        tokmap_dataset_close(ds);
        if (status)
            return status;
    }
    return n->replace ? TOKMAP_OK
                      : FAIL_REASON(err, TOKMAP_ERR_EXISTS, TOKMAP_REASON_REPLACEABLE,
                                    "%s: already exists", n->index_path);
}

/* Refuses to overwrite files. Tokens without an index are refused too, except tokens that a killed
 * writer left: those that it was publishing still have their partial name as well, and those that
 * it was replacing have a renamed index. */
static tokmap_status refuse_existing(const tokmap_i_names *n, tokmap_error *err)
{
    const tokmap_status status = refuse_index(n, err);
    if (status || !owns_bin(n))
        return status;
    if (tokmap_i_file_is_folder(n->token_path))
        return FAIL_IO(err, EISDIR, "%s: cannot write", n->token_path);
    if (!n->replace && tokmap_i_file_exists(n->token_path) &&
        !tokmap_i_file_same(n->token_path, n->token_partial) &&
        !tokmap_i_file_exists(n->index_replaced))
        return FAIL_REASON(err, TOKMAP_ERR_EXISTS, TOKMAP_REASON_REPLACEABLE,
                           "%s: already exists, without an index", n->token_path);
    return TOKMAP_OK;
}

size_t tokmap_i_prefix_bytes(const char *path)
{
    const size_t n_bytes = strlen(path);
    if (n_bytes > 4 &&
        (strcmp(path + n_bytes - 4, ".bin") == 0 || strcmp(path + n_bytes - 4, ".tmi") == 0))
        return n_bytes - 4;
    return n_bytes;
}

tokmap_status tokmap_i_names_make(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err)
{
    const struct {
        char **path;
        const char *suffix;
    } all[] = {{&n->token_path, suffix},
               {&n->bin_path, ".bin"},
               {&n->token_partial, ".bin.partial"},
               {&n->token_replaced, ".bin.replaced"},
               {&n->index_path, ".tmi"},
               {&n->index_partial, ".tmi.partial"},
               {&n->index_replaced, ".tmi.replaced"},
               {&n->journal, ".tmj.partial"},
               {&n->values, ".tmv.partial"}};
    const size_t n_paths = sizeof all / sizeof *all;
    const size_t room = prefix_bytes + strlen(suffix) + sizeof ".bin.replaced";
    n->strings = malloc(n_paths * room);
    if (!n->strings)
        return FAIL_MEMORY(err);
    for (size_t i = 0; i < n_paths; i++) {
        *all[i].path = n->strings + i * room;
        memcpy(*all[i].path, prefix, prefix_bytes);
        strcpy(*all[i].path + prefix_bytes, all[i].suffix);
    }
    return TOKMAP_OK;
}

tokmap_status tokmap_i_names_open(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_names_make(n, prefix, prefix_bytes, suffix, err);
    if (status)
        return status;
    /* A dataset that we must not touch does not even get a lock file, unless there is something to
     * clear up. */
    const char *const left[] = {n->index_partial, n->journal, n->values,
                                owns_bin(n) ? n->token_partial : n->values};
    bool clears_up = n->resume;
    for (size_t i = 0; i < sizeof left / sizeof *left; i++)
        clears_up |= tokmap_i_file_exists(left[i]);
    return clears_up ? TOKMAP_OK : refuse_existing(n, err);
}

tokmap_status tokmap_i_names_lock(tokmap_i_names *n, int *fd, tokmap_error *err)
{
    int error = 0;
    tokmap_i_file_stat stat = {.n_names = 2};
    while (!error && stat.n_names > 1) {
        error = tokmap_i_file_lock(n->index_partial, fd);
        n->has_journal = !error && tokmap_i_file_exists(n->journal);
        if (!error)
            error = tokmap_i_file_stat_fd(*fd, &stat);
        if (error || stat.n_names <= 1)
            break;
        /* A file with a second name, such as one that a killed writer had just published, must not
         * be emptied, so only this name is removed. */
        n->was_named |= tokmap_i_file_same(n->index_path, n->index_partial);
        error = n->has_journal && !n->was_named ? EMLINK : tokmap_i_file_remove(n->index_partial);
        tokmap_i_file_close(*fd);
        *fd = -1;
    }
    n->owns_partials = error == 0;
    n->index_file = stat;
    if (error)
        tokmap_i_file_close(*fd);
    if (error == EWOULDBLOCK)
        return FAIL(err, TOKMAP_ERR_LOCKED,
                    "%s: another writer has this output open; wait for it, or choose another name",
                    n->index_partial);
    if (error == EMLINK)
        return FAIL(err, TOKMAP_ERR_EXISTS,
                    "%s: has a second name (a hard link); remove one of the two to resume",
                    n->index_partial);
    return CHECK_IO(err, error, "%s: %s", n->index_partial, tokmap_i_file_lock_text(error));
}

/* ---- The old dataset, while a new one gets its names ---- */

static int move_file(const char *from, const char *to)
{
    const int error = tokmap_i_file_rename(from, to);
    return error == ENOENT ? 0 : error;
}

/* Renames the old dataset. The index is renamed first, and renamed back last, so that no index ever
 * has the tokens of another dataset. Meanwhile readers open the renamed files. */
static int set_aside(const tokmap_i_names *n)
{
    int error = move_file(n->index_path, n->index_replaced);
    if (!error)
        error = tokmap_i_folder_sync(n->index_path);
    if (!error && owns_bin(n))
        error = move_file(n->token_path, n->token_replaced);
    return error;
}

static int put_back(const tokmap_i_names *n)
{
    int error = move_file(n->token_replaced, n->bin_path);
    if (!error)
        error = tokmap_i_folder_sync(n->index_path);
    return error ? error : move_file(n->index_replaced, n->index_path);
}

static void drop_replaced(const tokmap_i_names *n)
{
    tokmap_i_file_remove(n->token_replaced);
    tokmap_i_file_remove(n->index_replaced);
}

/* True in each of these cases: tokens or index have both names; there is an index and also a
 * renamed old dataset; on a file system without links, there is a journal, and its tokens have only
 * their final name. */
bool tokmap_i_names_published(const tokmap_i_names *n)
{
    return tokmap_i_file_exists(n->index_path) &&
           (n->was_named || tokmap_i_file_same(n->bin_path, n->token_partial) ||
            tokmap_i_file_exists(n->index_replaced) || tokmap_i_file_exists(n->token_replaced) ||
            (n->has_journal && !n->replace && !tokmap_i_file_exists(n->token_partial)));
}

/* On a file system without links, a writer may have been killed after it had renamed its tokens. */
const char *tokmap_i_names_unfinished(const tokmap_i_names *n)
{
    if (tokmap_i_file_exists(n->token_partial))
        return n->token_partial;
    return tokmap_i_file_exists(n->index_path) || !tokmap_i_file_exists(n->bin_path) ? NULL
                                                                                     : n->bin_path;
}

tokmap_status tokmap_i_names_discard(tokmap_i_names *n, tokmap_error *err)
{
    const int error = n->has_journal ? tokmap_i_file_remove(n->journal) : 0;
    if (error && error != ENOENT)
        return FAIL_IO(err, error, "%s: cannot remove", n->journal);
    n->has_journal = false;
    tokmap_i_file_remove(n->values);
    return TOKMAP_OK;
}

/* Clears up after a killed writer. If it had published its index, the renamed old dataset and the
 * journal are removed; if not, its tokens are removed and the old dataset gets its names back. */
static int clear_leftovers(tokmap_i_names *n)
{
    if (tokmap_i_file_exists(n->index_path)) {
        if (tokmap_i_names_published(n) && tokmap_i_names_discard(n, NULL) == TOKMAP_OK) {
            drop_replaced(n);
            tokmap_i_file_remove(n->token_partial);
        }
        return 0;
    }
    const bool replacing =
        tokmap_i_file_exists(n->index_replaced) || tokmap_i_file_exists(n->token_replaced);
    if ((owns_bin(n) || replacing) && tokmap_i_file_same(n->bin_path, n->token_partial))
        tokmap_i_file_remove(n->bin_path);
    return replacing ? put_back(n) : 0;
}

static tokmap_status sync_name(const char *path, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_folder_sync(path), "%s: cannot flush its folder to the disk",
                    path);
}

tokmap_status tokmap_i_names_clear_up(tokmap_i_names *n, tokmap_error *err)
{
    const tokmap_status status = sync_name(n->index_path, err);
    if (!status)
        clear_leftovers(n);
    return status;
}

tokmap_status tokmap_i_names_claim(tokmap_i_names *n, tokmap_error *err)
{
    const int error = clear_leftovers(n);
    tokmap_status status = CHECK_IO(
        err, error, "%s: cannot restore the dataset that was being replaced", n->index_path);
    if (!status)
        status = refuse_existing(n, err);
    if (status)
        return status;
    const char *text; /* fail now, not after all the work */
    const int lacks = tokmap_i_file_probe(n->index_path, &text);
    return CHECK_IO(err, lacks, "%s: %s", n->index_path, text);
}

/* ---- Final names ---- */

static int name_index(tokmap_i_names *n)
{
    int error = tokmap_i_file_link(n->index_partial, n->index_path);
    if (error == 0 || error == EEXIST)
        return error;
    if (owns_bin(n)) /* the rename ends the lock */
        tokmap_i_file_remove(n->token_partial);
    error = tokmap_i_file_rename(n->index_partial, n->index_path);
    n->owns_partials = error != 0;
    return error;
}

/* Removes a final name again. A file with no other name is renamed back, so that it can be resumed.
 * If even that fails, it keeps the name, where a resume looks for it, and the result is false. */
static bool remove_final_name(const tokmap_i_names *n, const char *path, const char *partial)
{
    if (n->has_journal && !tokmap_i_file_exists(partial))
        return tokmap_i_file_rename(path, partial) == 0;
    tokmap_i_file_remove(path);
    return true;
}

/* Makes a final name durable, after the call that gave it. */
static tokmap_status keep_name(int error, const char *path, tokmap_error *err)
{
    if (error == EEXIST)
        return FAIL_REASON(err, TOKMAP_ERR_EXISTS, TOKMAP_REASON_REPLACEABLE, "%s: already exists",
                           path);
    return error ? FAIL_IO(err, error, "%s: cannot give the finished file this name", path)
                 : sync_name(path, err);
}

/* If a name cannot be made durable, it is removed: it might otherwise disappear in a power cut. */
static tokmap_status assign_names(tokmap_i_names *n, tokmap_error *err)
{
    int error = 0;
    tokmap_status status = TOKMAP_OK;
    if (writes_tokens(n)) { /* a second name if the file system has links, else another name */
        error = tokmap_i_file_link(n->token_partial, n->token_path);
        if (error && error != EEXIST)
            error = tokmap_i_file_rename(n->token_partial, n->token_path);
        status = keep_name(error, n->token_path, err);
    }
    if (error)
        return status;
    if (!status) {
        error = name_index(n);
        status = keep_name(error, n->index_path, err);
        if (status && !error && !remove_final_name(n, n->index_path, n->index_partial))
            return status;
    }
    if (status && writes_tokens(n))
        remove_final_name(n, n->token_path, n->token_partial);
    return status;
}

/* Removes the file of values. This comes before the journal and the partial names, which tell the
 * next writer that this file is left over. */
static void drop_values(const tokmap_i_names *n)
{
    if (n->values && tokmap_i_file_is(n->values, &n->values_file))
        tokmap_i_file_remove(n->values);
}

/* Removes what only the old dataset used. Without the lock another writer may already have begun to
 * use such a file. */
static void remove_unused(const tokmap_i_names *n)
{
    for (size_t at = 0; n->owns_partials && at < n->unused.n_bytes;) {
        const char *path = (const char *)n->unused.data + at;
        tokmap_i_file_remove(path);
        at += strlen(path) + 1;
    }
}

static void remove_partials(tokmap_i_names *n)
{
    /* Without the lock the files belong to another writer. */
    if (!n->owns_partials || n->has_journal || !tokmap_i_file_is(n->index_partial, &n->index_file))
        return;
    if (owns_bin(n))
        tokmap_i_file_remove(n->token_partial);
    tokmap_i_file_remove(n->values);
    tokmap_i_file_remove(n->index_partial);
    n->owns_partials = false;
}

tokmap_status tokmap_i_names_publish(tokmap_i_names *n, tokmap_error *err)
{
    /* The lock keeps other writers away from these names, but does not stop users from removing
     * files. */
    const char *gone = NULL;
    if (!tokmap_i_file_is(n->index_partial, &n->index_file))
        gone = n->index_partial;
    else if (writes_tokens(n) && !tokmap_i_file_is(n->token_partial, &n->token_file))
        gone = n->token_partial;
    if (gone)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: was removed or replaced while it was being written; nothing is published",
                    gone);
    /* A file that stayed would be taken for the tokens of index_replaced. */
    int error = n->replace ? tokmap_i_file_remove(n->token_replaced) : 0;
    if (error && error != ENOENT)
        return FAIL_IO(err, error, "%s: cannot remove", n->token_replaced);
    error = n->replace ? set_aside(n) : 0;
    tokmap_status status =
        error ? FAIL_IO(err, error, "%s: cannot rename the old dataset", n->index_path)
              : assign_names(n, err);
    if (!status) {
        drop_values(n);
        /* If a rename has ended the lock, the next writer may already have started, with its own
         * journal. */
        if (n->has_journal && tokmap_i_file_is(n->journal, &n->journal_file))
            tokmap_i_file_remove(n->journal);
        n->has_journal = false;
        remove_unused(n);
        if (n->replace)
            drop_replaced(n);
        remove_partials(n);
        return TOKMAP_OK;
    }
    const int back_error = n->replace ? put_back(n) : 0;
    if (back_error)
        status = FAIL_IO(err, back_error,
                         "%s: cannot be replaced, and the old dataset is still at %s; the next "
                         "writer of this name will restore it",
                         n->index_path, n->index_replaced);
    return status;
}

void tokmap_i_names_close(tokmap_i_names *n)
{
    remove_partials(n);
    if (!n->has_journal) /* a rename may have ended the lock */
        drop_values(n);
    free(n->unused.data);
    free(n->strings);
    *n = (tokmap_i_names){0};
}

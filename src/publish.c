#include "publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "platform.h"
#include "status.h"

static char *join(const char *prefix, size_t prefix_bytes, const char *suffix, const char *more)
{
    char *path = malloc(prefix_bytes + strlen(suffix) + strlen(more) + 1);
    if (path) {
        memcpy(path, prefix, prefix_bytes);
        strcpy(path + prefix_bytes, suffix);
        strcat(path, more);
    }
    return path;
}

/* The token file of the dataset that stands under our index name, if it is not ours: v1.npy and
 * v1.bin would share v1.tmi. NULL when it is ours, or nothing that opens. To be freed. */
static char *other_tokens(const tokmap_i_names *n)
{
    tokmap_dataset *ds;
    char *path = NULL;
    if (tokmap_dataset_open(&ds, n->index_path, NULL))
        return NULL;
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    if (strcmp(info.token_path, n->token_path) != 0)
        path = strdup(info.token_path);
    tokmap_dataset_close(ds);
    return path;
}

static tokmap_status refuse_index(const tokmap_i_names *n, tokmap_error *err)
{
    if (tokmap_i_file_is_folder(n->index_path))
        return FAIL_IO(err, EISDIR, "%s: cannot write", n->index_path);
    if (!tokmap_i_file_exists(n->index_path))
        return TOKMAP_OK;
    char *other = other_tokens(n);
    if (other) {
        FAIL(err, TOKMAP_ERR_EXISTS,
             "%s: is there already, the index of %s; give one of the two another name",
             n->index_path, other);
        free(other);
        return TOKMAP_ERR_EXISTS;
    }
    return n->replace ? TOKMAP_OK
                      : FAIL(err, TOKMAP_ERR_EXISTS, "%s: is there already", n->index_path);
}

/* Tokens without an index are refused too, but for those that a killed writer left: what it was
 * about to publish still has its partial name as well, and what it was to replace has its index
 * aside. */
static tokmap_status refuse_existing(const tokmap_i_names *n, tokmap_error *err)
{
    const tokmap_status status = refuse_index(n, err);
    if (status || !n->writes_tokens)
        return status;
    if (tokmap_i_file_is_folder(n->token_path))
        return FAIL_IO(err, EISDIR, "%s: cannot write", n->token_path);
    if (!n->replace && tokmap_i_file_exists(n->token_path) &&
        !tokmap_i_file_same(n->token_path, n->token_partial) &&
        !tokmap_i_file_exists(n->index_replaced))
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: is there already, without an index",
                    n->token_path);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_names_open(tokmap_i_names *n, const char *prefix, size_t prefix_bytes,
                                  const char *suffix, tokmap_error *err)
{
    n->token_path = join(prefix, prefix_bytes, suffix, "");
    n->bin_path = join(prefix, prefix_bytes, ".bin", "");
    n->token_partial = join(prefix, prefix_bytes, ".bin", ".partial");
    n->token_replaced = join(prefix, prefix_bytes, ".bin", ".replaced");
    n->index_path = join(prefix, prefix_bytes, ".tmi", "");
    n->index_partial = join(prefix, prefix_bytes, ".tmi", ".partial");
    n->index_replaced = join(prefix, prefix_bytes, ".tmi", ".replaced");
    if (!n->token_path || !n->bin_path || !n->token_partial || !n->token_replaced ||
        !n->index_path || !n->index_partial || !n->index_replaced)
        return FAIL_MEMORY(err);
    /* Files that are not ours to touch do not even get a lock file beside them. */
    return refuse_existing(n, err);
}

/* ---- The old dataset, while a new one takes its names ---- */

static int move(const char *from, const char *to)
{
    const int error = tokmap_i_file_rename(from, to);
    return error == ENOENT ? 0 : error;
}

/* The index first and, on the way back, last: no moment sees an index beside tokens not its own. */
static int set_aside(const tokmap_i_names *n)
{
    int error = move(n->index_path, n->index_replaced);
    if (!error)
        error = tokmap_i_folder_sync(n->index_path);
    if (!error && n->writes_tokens)
        error = move(n->token_path, n->token_replaced);
    return error;
}

static int put_back(const tokmap_i_names *n)
{
    int error = move(n->token_replaced, n->bin_path);
    if (!error)
        error = tokmap_i_folder_sync(n->index_path);
    return error ? error : move(n->index_replaced, n->index_path);
}

static void drop_replaced(const tokmap_i_names *n)
{
    tokmap_i_file_remove(n->token_replaced);
    tokmap_i_file_remove(n->index_replaced);
}

/* What a killed writer left. Had it published its index, an old dataset that is aside is done
 * with; if not, its tokens go and the old dataset comes back. */
static int clear_leftovers(const tokmap_i_names *n)
{
    if (tokmap_i_file_exists(n->index_path)) {
        drop_replaced(n);
        return 0;
    }
    const bool replacing =
        tokmap_i_file_exists(n->index_replaced) || tokmap_i_file_exists(n->token_replaced);
    if ((n->writes_tokens || replacing) && tokmap_i_file_same(n->bin_path, n->token_partial))
        tokmap_i_file_remove(n->bin_path);
    return replacing ? put_back(n) : 0;
}

tokmap_status tokmap_i_names_claim(tokmap_i_names *n, tokmap_error *err)
{
    n->owns_partials = true;
    int error = clear_leftovers(n);
    if (error)
        return FAIL_IO(err, error, "%s: cannot put back the dataset that was being replaced",
                       n->index_path);
    const tokmap_status status = refuse_existing(n, err);
    if (status)
        return status;
    error = tokmap_i_folder_sync(n->index_path); /* told now, not after all the work */
    return error ? FAIL_IO(err, error, "%s: cannot flush its folder to the disk", n->index_path)
                 : TOKMAP_OK;
}

/* ---- Final names ---- */

/* As a second name if the file system can, else by renaming. */
static int name_tokens(const tokmap_i_names *n)
{
    const int error = tokmap_i_file_link(n->token_partial, n->token_path);
    return error == 0 || error == EEXIST ? error
                                         : tokmap_i_file_rename(n->token_partial, n->token_path);
}

static int name_index(tokmap_i_names *n)
{
    int error = tokmap_i_file_link(n->index_partial, n->index_path);
    if (error == 0 || error == EEXIST)
        return error;
    if (n->writes_tokens) /* with the rename the lock goes */
        tokmap_i_file_remove(n->token_partial);
    error = tokmap_i_file_rename(n->index_partial, n->index_path);
    n->owns_partials = error != 0;
    return error;
}

/* After a file was given its name: makes the name durable. */
static tokmap_status sync_name(int naming_error, const char *path, tokmap_error *err)
{
    if (naming_error == EEXIST)
        return FAIL(err, TOKMAP_ERR_EXISTS, "%s: is there already", path);
    if (naming_error)
        return FAIL_IO(err, naming_error, "%s: cannot give the finished file this name", path);
    const int error = tokmap_i_folder_sync(path);
    if (!error)
        return TOKMAP_OK;
    tokmap_i_file_remove(path); /* it may not survive a power cut: better absent now */
    return FAIL_IO(err, error, "%s: cannot flush its folder to the disk", path);
}

static tokmap_status give_names(tokmap_i_names *n, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    if (n->writes_tokens)
        status = sync_name(name_tokens(n), n->token_path, err);
    if (status)
        return status;
    status = sync_name(name_index(n), n->index_path, err);
    if (status && n->writes_tokens)
        tokmap_i_file_remove(n->token_path);
    return status;
}

static void remove_partials(tokmap_i_names *n)
{
    if (!n->owns_partials) /* without the lock the files are another writer's */
        return;
    if (n->writes_tokens)
        tokmap_i_file_remove(n->token_partial);
    tokmap_i_file_remove(n->index_partial);
    n->owns_partials = false;
}

tokmap_status tokmap_i_names_publish(tokmap_i_names *n, tokmap_error *err)
{
    const int error = n->replace ? set_aside(n) : 0;
    tokmap_status status =
        error ? FAIL_IO(err, error, "%s: cannot set the old dataset aside", n->index_path)
              : give_names(n, err);
    if (!status) {
        if (n->replace)
            drop_replaced(n);
        remove_partials(n);
        return TOKMAP_OK;
    }
    const int back_error = n->replace ? put_back(n) : 0;
    if (back_error)
        status = FAIL_IO(err, back_error,
                         "%s: cannot be replaced, and the old dataset is still at %s; the next "
                         "writer of this name will put it back",
                         n->index_path, n->index_replaced);
    return status;
}

void tokmap_i_names_close(tokmap_i_names *n)
{
    remove_partials(n);
    free(n->token_path);
    free(n->bin_path);
    free(n->token_partial);
    free(n->token_replaced);
    free(n->index_path);
    free(n->index_partial);
    free(n->index_replaced);
    *n = (tokmap_i_names){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - datasets in a store of objects, which are read through the functions of the caller.
 *
 * The index is a file on a disk if the caller has one, else a file in memory, of its full size,
 * into which sections are read: at open those of up to 64 MiB, the others when a call needs them.
 * So everything that reads an index file or its map works, once it has asked for the sections
 * (tokmap_i_need_index). Files beside a dataset are read whole in the same way. Tokens are read
 * range by range. */
#pragma once

#include "dataset/file.h"

typedef struct tokmap_i_store tokmap_i_store;

tokmap_status tokmap_i_fail_in_store(const char *path, tokmap_error *err);
/* Fails a call that needs files on a disk, with TOKMAP_ERR_UNSUPPORTED, if they are not there. */
static inline tokmap_status tokmap_i_need_files(const tokmap_dataset *ds, tokmap_error *err)
{
    return ds->store ? tokmap_i_fail_in_store(ds->index_path, err) : TOKMAP_OK;
}
tokmap_status tokmap_i_store_open(tokmap_i_store **out, const tokmap_byte_source *source,
                                  tokmap_error *err);
/* Makes room for the versions of n token files. */
tokmap_status tokmap_i_store_expect_files(tokmap_i_store *s, uint64_t n_files, tokmap_error *err);
/* Opens a store for another list of token files, of a lane. */
tokmap_status tokmap_i_store_open_again(tokmap_i_store **out, const tokmap_i_store *of,
                                        uint64_t n_files, tokmap_error *err);
void tokmap_i_store_close(tokmap_i_store *s); /* s may be NULL */
/* Whether one call of `read` may have ranges of both. */
bool tokmap_i_store_same(const tokmap_i_store *a, const tokmap_i_store *b);
void tokmap_i_store_cancel(const tokmap_i_store *s, const tokmap_byte_read *reads);

/* ---- The index ---- */

/* Reads the beginning of the index: its header and section table. */
tokmap_status tokmap_i_store_begin_index(tokmap_dataset *ds, int *fd, tokmap_error *err);
/* Reads what open needs of the sections, and checks the ones that it reads whole. For a flat
 * dataset, also finds the size of the token file. */
tokmap_status tokmap_i_store_read_sections(tokmap_dataset *ds, tokmap_error *err);
/* Whether all sections are in memory, or on a disk, except checksums. */
bool tokmap_i_store_has_index(const tokmap_dataset *ds);
tokmap_status tokmap_i_store_need_index(const tokmap_dataset *ds, tokmap_error *err);
/* Reads what is not in memory of the sections, except checksums; call it before they are used.
 * TOKMAP_ERR_UNSUPPORTED: that is too much. Any thread may call it. */
static inline tokmap_status tokmap_i_need_index(const tokmap_dataset *ds, tokmap_error *err)
{
    return ds->store ? tokmap_i_store_need_index(ds, err) : TOKMAP_OK;
}

/* ---- Other objects ---- */

/* An open file beside a dataset, or a copy in memory of an object. */
typedef struct tokmap_i_beside {
    int fd;
    tokmap_i_file_stat stat;
    char version[TOKMAP_VERSION_BYTES]; /* of the object; "" for a file */
} tokmap_i_beside;

/* Reads an object into a file in memory: the first n_bytes of it, and zeros; 0: all.
 * TOKMAP_ERR_UNSUPPORTED: that is too much. */
tokmap_status tokmap_i_store_open_object(const tokmap_i_store *s, const char *path,
                                         uint64_t n_bytes, tokmap_i_beside *out, tokmap_error *err);
/* Opens a file: if it is in the folder of a dataset in a store, as tokmap_i_store_open_object
 * does; a dataset without a folder has only names without one. */
tokmap_status tokmap_i_open_beside(const tokmap_dataset *ds, const char *path, uint64_t n_bytes,
                                   tokmap_i_beside *out, tokmap_error *err);

/* Ranges that are read at the same time, all of one store. */
typedef struct tokmap_i_store_batch {
    tokmap_byte_read *reads;
    char (*versions)[TOKMAP_VERSION_BYTES]; /* of each range */
    struct tokmap_i_store_part {
        const tokmap_dataset *ds;
        const tokmap_i_token_file *file; /* NULL: the index */
    } * parts;
    size_t n, capacity, version_capacity, part_capacity;
} tokmap_i_store_batch;

/* Adds the bytes of a piece. Returns false when out of memory. */
bool tokmap_i_store_add(tokmap_i_store_batch *b, const tokmap_dataset *ds,
                        const tokmap_i_token_piece *piece, void *to);
/* Adds bytes of the index: of its object, unless the index is on a disk. */
bool tokmap_i_store_add_index(tokmap_i_store_batch *b, const tokmap_dataset *ds, uint64_t offset,
                              size_t n_bytes, void *to);
/* Reads all ranges. A file that is read for the first time is checked. */
tokmap_status tokmap_i_store_read(tokmap_i_store_batch *b, tokmap_error *err);
void tokmap_i_store_free(tokmap_i_store_batch *b);

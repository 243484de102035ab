/* SPDX-License-Identifier: Apache-2.0 */
/* lane.c - opens and closes a lane. */
#include "dataset/lane.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "dataset/store.h"
#include "dataset/token_files.h"

/* Returns the length of the path of a token file without its last suffix. */
static size_t stem_bytes(const char *path)
{
    const char *name = name_in_path(path), *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - path) : strlen(path);
}

char *tokmap_i_lane_path(const char *token_path, const char *name)
{
    char *path = NULL;
    const int n = asprintf(&path, "%.*s.%s.tml", (int)stem_bytes(token_path), token_path, name);
    return n < 0 ? NULL : path;
}

/* ---- Headers ---- */

static tokmap_status fail_other_tokens(const char *path, const char *of, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "%s: has the values of other tokens than %s: write the lane again, or remove it, "
                "if it is that of an earlier dataset that was redacted",
                path, of);
}

static bool has_hash(const tokmap_i_lane_header *h, const tokmap_i_content_hash *tokens)
{
    uint8_t bytes[sizeof h->tokens_hash];
    tokmap_i_content_hash_store(tokens, bytes);
    return memcmp(bytes, h->tokens_hash, sizeof bytes) == 0;
}

/* Opens a file in the folder of a joined dataset, to read its head. */
static tokmap_status open_head(const tokmap_dataset *ds, const char *path, tokmap_i_beside *out,
                               tokmap_error *err)
{
    *out = (tokmap_i_beside){.fd = -1};
    if (ds->store)
        return tokmap_i_store_open_object(ds->store, path, TOKMAP_I_LANE_CHECKSUMS_AT, out, err);
    return tokmap_i_open_file_in(ds->folder_fd, path, ds->folder_bytes, &out->fd, &out->stat, err);
}

/* Reads the header of an index in the folder of the dataset. Returns false if there is none that
 * can be read. */
static bool read_index(const tokmap_dataset *ds, const char *path, tokmap_i_header *h)
{
    uint8_t bytes[TOKMAP_I_HEADER_BYTES];
    size_t n_read = 0;
    tokmap_i_beside index;
    const bool is_read =
        !open_head(ds, path, &index, NULL) &&
        !tokmap_i_file_read(index.fd, bytes, sizeof bytes, 0, &n_read) &&
        !tokmap_i_header_decode(bytes, n_read, &(tokmap_i_index_file){path, index.stat.n_bytes}, h,
                                NULL);
    tokmap_i_file_close(index.fd);
    return is_read;
}

/* Compares the lane of a token file with the index that this file has of its own, if it has one. */
static tokmap_status check_tokens(const tokmap_lane *lane, const tokmap_i_token_file *file,
                                  const tokmap_i_lane_header *h, tokmap_error *err)
{
    const tokmap_dataset *ds = lane->ds;
    const char *tokens = ds->files[file - lane->wide.files].path;
    const size_t n_stem = stem_bytes(tokens);
    tokmap_i_header *index = calloc(1, sizeof *index);
    char *path = NULL;
    if (!index || asprintf(&path, "%.*s.tmi", (int)n_stem, tokens) < 0) {
        free(index);
        return FAIL_MEMORY(err);
    }
    const bool differs = read_index(ds, path, index) &&
                         strcmp(index->token_suffix, tokens + n_stem) == 0 &&
                         index->n_tokens == file->n_tokens && !has_hash(h, &index->tokens_hash);
    const tokmap_status status = differs ? fail_other_tokens(file->path, path, err) : TOKMAP_OK;
    free(path);
    free(index);
    return status;
}

tokmap_status tokmap_i_lane_read_header(const tokmap_lane *lane, const tokmap_i_token_file *file,
                                        int fd, tokmap_i_lane_header *h, tokmap_error *err)
{
    tokmap_i_side s = {.kind = &tokmap_i_lane_kind, .fd = fd, .path = (char *)file->path};
    const int error = tokmap_i_file_stat_fd(fd, &s.stat);
    if (error)
        return FAIL_IO(err, error, "%s: cannot open", file->path);
    const tokmap_status status = tokmap_i_side_read_header(&s, h, err);
    if (status)
        return status;
    const tokmap_i_lane_header *first = &lane->header;
    if (!lane->by_file &&
        (h->n_tokens != file->n_tokens || !has_hash(h, &lane->ds->header.tokens_hash)))
        return fail_other_tokens(file->path, lane->ds->index_path, err);
    if (h->n_tokens != file->n_tokens)
        return fail_other_tokens(file->path, lane->ds->files[file - lane->wide.files].path, err);
    if (first->count > 0 &&
        (h->type != first->type || h->count != first->count || h->goes_with != first->goes_with))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has numbers of another type, another count or another goes_with than the "
                    "lane of the first token file: write it again",
                    file->path);
    return lane->by_file ? check_tokens(lane, file, h, err) : TOKMAP_OK;
}

static tokmap_status check_file(const tokmap_dataset *wide, const tokmap_i_token_file *file, int fd,
                                tokmap_error *err)
{
    tokmap_i_lane_header h;
    return tokmap_i_lane_read_header((const tokmap_lane *)wide, file, fd, &h, err);
}

static tokmap_status fail_damaged(tokmap_i_named_file file, uint64_t at, const char *problem,
                                  tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, at, "%s: damaged: %s: write the lane again", file.name,
                   problem);
}

tokmap_status tokmap_i_lane_read_about(tokmap_i_named_file from, const tokmap_i_lane_header *h,
                                       char *about, tokmap_error *err)
{
    const uint64_t at = TOKMAP_I_SIDE_HEADER_BYTES;
    const size_t n_bytes = TOKMAP_I_LANE_ABOUT_ROOM;
    const tokmap_status status = tokmap_i_read_exactly(from, at, n_bytes, about, err);
    if (status || (tokmap_i_checksum(about, n_bytes) == h->about_checksum &&
                   is_zero(about + h->about_bytes, n_bytes - h->about_bytes)))
        return status;
    return fail_damaged(from, at, "'about' does not match its checksum", err);
}

tokmap_status tokmap_i_lane_read_checksums(tokmap_i_named_file from, const tokmap_i_lane_header *h,
                                           uint8_t **out, tokmap_error *err)
{
    const size_t n_bytes = (size_t)tokmap_i_lane_checksums_bytes(h);
    const size_t n_used = (size_t)(8 * h->n_blocks);
    uint8_t *bytes = malloc(n_bytes + 1);
    *out = NULL;
    if (!bytes)
        return FAIL_MEMORY(err);
    tokmap_status status =
        tokmap_i_read_exactly(from, TOKMAP_I_LANE_CHECKSUMS_AT, n_bytes, bytes, err);
    if (!status && (tokmap_i_checksum(bytes, n_bytes) != h->hash ||
                    !is_zero(bytes + n_used, n_bytes - n_used)))
        status = fail_damaged(from, TOKMAP_I_LANE_CHECKSUMS_AT,
                              "its checksums do not match their hash", err);
    if (status)
        free(bytes);
    else
        *out = bytes;
    return status;
}

/* Reads header and about of the first file. */
static tokmap_status read_first(tokmap_lane *lane, const tokmap_i_token_file *file, int fd,
                                tokmap_error *err)
{
    tokmap_i_lane_header h;
    const tokmap_i_named_file from = {fd, file->path};
    tokmap_status status = tokmap_i_lane_read_header(lane, file, fd, &h, err);
    if (!status)
        status = tokmap_i_lane_read_about(from, &h, lane->about, err);
    if (status)
        return status;
    lane->header = h;
    lane->wide.header.token_bytes = h.token_bytes;
    return TOKMAP_OK;
}

/* ---- Open ---- */

/* Opens P.NAME.tml, and maps it. *exists: there is such a file. */
static tokmap_status open_whole(tokmap_lane *lane, bool *exists, tokmap_error *err)
{
    tokmap_dataset *wide = &lane->wide;
    tokmap_i_beside head;
    tokmap_error last = {0};
    const uint8_t *map;
    tokmap_status status =
        tokmap_i_open_beside(lane->ds, lane->path, TOKMAP_I_LANE_CHECKSUMS_AT, &head, &last);
    *exists = !status || last.sys_errno != ENOENT;
    if (status && err)
        *err = last;
    if (status)
        return status;
    tokmap_i_token_file file = {.path = lane->path, .n_tokens = wide->header.n_tokens};
    status = read_first(lane, &file, head.fd, err);
    if (status) {
        tokmap_i_file_close(head.fd);
        return status;
    }
    tokmap_i_token_files_take_one(wide, lane->path);
    wide->files[0].token_offset = lane->header.offset;
    wide->token_file_bytes = lane->header.n_bytes;
    if (lane->ds->store) {
        tokmap_i_file_close(head.fd);
        return tokmap_i_store_open_again(&wide->store, lane->ds->store, 1, err);
    }
    atomic_store(wide->files[0].fd, head.fd + 1);
    return tokmap_i_token_file_map(wide, wide->files, &map, err);
}

typedef struct lane_name {
    const char *lane, *tokens;
} lane_name;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const lane_name *)a)->lane, ((const lane_name *)b)->lane);
}

/* Refuses two token files that would have one lane file. Only their suffixes can differ then. */
static tokmap_status check_names(const tokmap_lane *lane, tokmap_error *err)
{
    const tokmap_dataset *ds = lane->ds;
    bool differs = false;
    for (uint64_t i = 1; i < ds->n_files; i++)
        differs |= strcmp(ds->files[i].path + stem_bytes(ds->files[i].path),
                          ds->files[0].path + stem_bytes(ds->files[0].path)) != 0;
    if (!differs)
        return TOKMAP_OK;
    lane_name *names = malloc((size_t)ds->n_files * sizeof *names);
    if (!names)
        return FAIL_MEMORY(err);
    for (uint64_t i = 0; i < ds->n_files; i++)
        names[i] = (lane_name){lane->wide.files[i].path, ds->files[i].path};
    qsort(names, (size_t)ds->n_files, sizeof *names, compare_names);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 1; i < ds->n_files && !status; i++)
        if (compare_names(&names[i - 1], &names[i]) == 0 &&
            strcmp(names[i - 1].tokens, names[i].tokens) != 0)
            status = FAIL(err, TOKMAP_ERR_MISMATCH,
                          "%s: would be the lane of both %s and %s: write the lane of all tokens",
                          names[i].lane, names[i - 1].tokens, names[i].tokens);
    free(names);
    return status;
}

/* Lists the lanes beside the token files, in the same order. */
static tokmap_status list_files(tokmap_lane *lane, tokmap_error *err)
{
    tokmap_dataset *wide = &lane->wide;
    const tokmap_dataset *ds = lane->ds;
    const size_t n_suffix = strlen(lane->name) + strlen("..tml") + 1;
    size_t n_bytes = 0;
    for (uint64_t i = 0; i < ds->n_files; i++)
        n_bytes += stem_bytes(ds->files[i].path) + n_suffix;
    const tokmap_status status = tokmap_i_token_files_take(wide, ds->n_files, n_bytes, err);
    char *path = wide->paths;
    for (uint64_t i = 0; i < wide->n_files; i++) {
        tokmap_i_token_file *file = &wide->files[i];
        file->path = path;
        file->first_token = ds->files[i].first_token;
        file->n_tokens = ds->files[i].n_tokens;
        path += 1 + sprintf(path, "%.*s.%s.tml", (int)stem_bytes(ds->files[i].path),
                            ds->files[i].path, lane->name);
    }
    return status;
}

/* Sets where the values of each file begin. */
static void place_values(tokmap_lane *lane)
{
    uint64_t n_blocks = 0;
    for (uint64_t i = 0; i < lane->wide.n_files; i++) {
        tokmap_i_token_file *file = &lane->wide.files[i];
        tokmap_i_lane_header h = lane->header;
        h.n_tokens = file->n_tokens;
        (void)tokmap_i_lane_place(&h); /* fewer values than all files together */
        file->token_offset = h.offset;
        file->first_block = n_blocks;
        n_blocks += h.n_blocks;
        lane->wide.token_file_bytes += h.n_bytes;
    }
}

/* Opens the lanes of the token files of a joined dataset, of which only the first is looked at.
 * *exists: it has one. */
static tokmap_status open_files(tokmap_lane *lane, bool *exists, tokmap_error *err)
{
    tokmap_dataset *wide = &lane->wide;
    const tokmap_dataset *ds = lane->ds;
    wide->file_at = ds->file_at;
    wide->file_shift = ds->file_shift;
    wide->folder_fd = ds->folder_fd;
    wide->folder_bytes = ds->folder_bytes;
    wide->is_joined = true;
    lane->by_file = true;
    tokmap_status status = list_files(lane, err);
    if (status)
        return status;
    const tokmap_i_token_file *first = wide->files;
    while (first < wide->files + wide->n_files && first->n_tokens == 0)
        first++;
    *exists = first < wide->files + wide->n_files;
    if (!*exists)
        return TOKMAP_ERR_ARGUMENT;
    tokmap_i_beside head;
    tokmap_error last = {0};
    status = open_head(ds, first->path, &head, &last);
    *exists = !status || last.sys_errno != ENOENT;
    if (status && err)
        *err = last;
    if (status)
        return status;
    status = check_names(lane, err);
    if (!status)
        status = read_first(lane, first, head.fd, err);
    tokmap_i_file_close(head.fd);
    if (!status && ds->store)
        status = tokmap_i_store_open_again(&wide->store, ds->store, wide->n_files, err);
    if (!status &&
        (lane->header.n_tokens = wide->header.n_tokens, !tokmap_i_lane_place(&lane->header)))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: the lane is too large", lane->path);
    if (!status)
        place_values(lane);
    return status;
}

static tokmap_status open_lane(tokmap_lane *lane, const char *name, tokmap_error *err)
{
    const tokmap_dataset *ds = lane->ds;
    tokmap_dataset *wide = &lane->wide;
    bool exists = false;
    if (!tokmap_i_column_name_valid(name))
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: there is no lane '%.100s'", ds->index_path,
                    name);
    strcpy(lane->name, name);
    lane->path = tokmap_i_side_path(ds, "%s.tml", name);
    if (!lane->path)
        return FAIL_MEMORY(err);
    wide->header.n_tokens = ds->header.n_tokens;
    wide->header.tokens_hash = ds->header.tokens_hash;
    wide->index_path = ds->index_path;
    wide->token_path = lane->path;
    wide->index_map = ds->index_map;
    tokmap_status status = open_whole(lane, &exists, err);
    if (status && !exists && ds->is_joined)
        status = open_files(lane, &exists, err);
    if (!status || exists || status == TOKMAP_ERR_MEMORY)
        return status;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: there is no lane '%s': no file %s%s%s",
                ds->index_path, name, lane->path, lane->wide.n_files ? ", nor " : "",
                lane->wide.n_files ? lane->wide.files[0].path : "");
}

tokmap_status tokmap_lane_open(tokmap_lane **out, const tokmap_dataset *ds, const char *name,
                               tokmap_error *err)
{
    tokmap_error last = {0};
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL_NULL(err);
    *out = NULL;
    if (!ds || !name)
        return FAIL_NULL(err);
    tokmap_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return FAIL_MEMORY(err);
    lane->ds = ds;
    lane->wide.index_fd = lane->wide.folder_fd = -1;
    lane->wide.kept = &lane->wide.kept_here;
    lane->wide.check_file = check_file;
    const tokmap_status status = open_lane(lane, name, &last);
    if (status)
        tokmap_lane_close(lane);
    else
        *out = lane;
    if (status && err)
        *err = last;
    return status;
}

void tokmap_lane_close(tokmap_lane *lane)
{
    if (!lane)
        return;
    tokmap_i_token_files_give_back(&lane->wide);
    tokmap_i_store_close(lane->wide.store);
    free(lane->path);
    free(lane);
}

/* ---- Use ---- */

tokmap_status tokmap_lane_get_info(const tokmap_lane *lane, tokmap_lane_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_lane_info, hash)};
    if (!lane)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_i_lane_header *h = &lane->header;
    const tokmap_lane_info full = {.name = lane->name,
                                   .path = lane->by_file ? NULL : lane->path,
                                   .about = lane->about,
                                   .type = (tokmap_lane_type)h->type,
                                   .count = h->count,
                                   .token_bytes = h->token_bytes,
                                   .goes_with = (tokmap_goes_with)h->goes_with,
                                   .n_tokens = h->n_tokens,
                                   .offset = lane->by_file ? 0 : h->offset,
                                   .hash = lane->by_file ? 0 : h->hash};
    const tokmap_status status = tokmap_i_check_struct(info, &kind, NULL);
    return status ? status : tokmap_i_give_struct(info, &full, &kind, NULL);
}

tokmap_status tokmap_lane_values(const tokmap_lane *lane, uint64_t first, uint64_t n_tokens,
                                 const void **values)
{
    return tokmap_dataset_tokens(lane ? &lane->wide : NULL, first, n_tokens, values);
}

tokmap_status tokmap_lane_read(const tokmap_lane *lane, uint64_t first, uint64_t n_tokens,
                               void *dst, tokmap_error *err)
{
    return tokmap_dataset_read(lane ? &lane->wide : NULL, first, n_tokens, dst, err);
}

tokmap_status tokmap_i_lane_hash(const tokmap_lane *lane, uint64_t *hash, tokmap_error *err)
{
    tokmap_lane *kept = (tokmap_lane *)(uintptr_t)lane; /* only to keep the hash */
    *hash = atomic_load(&kept->knows_hash) ? atomic_load(&kept->hash) : lane->header.hash;
    if (!lane->by_file || atomic_load(&kept->knows_hash))
        return TOKMAP_OK;
    tokmap_i_hasher *hasher = tokmap_i_hasher_open();
    tokmap_status status = hasher ? TOKMAP_OK : FAIL_MEMORY(err);
    for (uint64_t i = 0; i < lane->wide.n_files && !status; i++) {
        const tokmap_i_token_file *file = &lane->wide.files[i];
        tokmap_i_lane_header h;
        tokmap_i_beside head;
        uint8_t bytes[8];
        if (file->n_tokens == 0)
            continue;
        status = open_head(lane->ds, file->path, &head, err);
        if (!status)
            status = tokmap_i_lane_read_header(lane, file, head.fd, &h, err);
        tokmap_i_file_close(head.fd);
        if (!status) {
            le_put64(bytes, h.hash);
            tokmap_i_hasher_add(hasher, bytes, sizeof bytes);
        }
    }
    *hash = status ? 0 : tokmap_i_hasher_get(hasher);
    tokmap_i_hasher_close(hasher);
    atomic_store(&kept->hash, *hash);
    atomic_store(&kept->knows_hash, status == TOKMAP_OK);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - opens and closes a dataset. */
#include "dataset/token_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "dataset/store.h"
#include "format/segments_section.h"

/* The number of times that open starts again because a writer was replacing the dataset. */
#define MOST_TRIES 100

tokmap_status tokmap_i_fail_damaged(const tokmap_dataset *ds, uint64_t offset, const char *problem,
                                    tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, offset, "%s: damaged: %s", ds->index_path, problem);
}

/* Makes P.suffix and P.suffix.replaced. */
static tokmap_status join_names(char *names[2], const char *prefix, size_t prefix_bytes,
                                const char *suffix, tokmap_error *err)
{
    const size_t room = prefix_bytes + strlen(suffix) + sizeof ".replaced";
    free(names[0]);
    names[0] = malloc(2 * room);
    if (!names[0])
        return FAIL_MEMORY(err);
    names[1] = names[0] + room;
    memcpy(names[0], prefix, prefix_bytes);
    strcpy(names[0] + prefix_bytes, suffix);
    strcpy(names[1], names[0]);
    strcat(names[1], ".replaced");
    return TOKMAP_OK;
}

/* Whether there is an index. Asks for P.tmi twice, because it may have been created after the first
 * try, and before P.tmi.replaced was tried. */
static bool has_index(const tokmap_dataset *ds)
{
    return tokmap_i_file_exists(ds->index_names[0]) || tokmap_i_file_exists(ds->index_names[1]) ||
           tokmap_i_file_exists(ds->index_names[0]);
}

tokmap_status tokmap_i_find_index(tokmap_dataset *ds, const char *path, size_t *prefix_bytes,
                                  tokmap_error *err)
{
    const size_t path_bytes = strlen(path);
    const size_t end_bytes = strlen(".tmi");
    const bool is_index =
        path_bytes > end_bytes && strcmp(path + path_bytes - end_bytes, ".tmi") == 0;
    *prefix_bytes = path_bytes - (is_index ? end_bytes : 0);
    tokmap_status status = join_names(ds->index_names, path, *prefix_bytes, ".tmi", err);
    const char *base = name_in_path(path);
    const char *dot = strrchr(base, '.');
    if (status || *prefix_bytes < path_bytes || !dot || dot == base || has_index(ds))
        return status;
    status = join_names(ds->index_names, path, (size_t)(dot - path), ".tmi", err);
    if (status || !has_index(ds))
        return status ? status : join_names(ds->index_names, path, path_bytes, ".tmi", err);
    *prefix_bytes = (size_t)(dot - path);
    return TOKMAP_OK;
}

/* Checks that the bytes before each section are zero, so that no changed byte of the index goes
 * unnoticed. */
static tokmap_status check_padding(const tokmap_dataset *ds, tokmap_i_named_file index,
                                   tokmap_error *err)
{
    uint64_t end =
        TOKMAP_I_HEADER_BYTES + (uint64_t)ds->header.n_sections * TOKMAP_I_SECTION_ENTRY_BYTES;
    for (uint32_t i = 0; i < ds->header.n_sections; i++) {
        uint8_t gap[TOKMAP_I_SECTION_ALIGNMENT];
        const size_t n_bytes = (size_t)(ds->header.sections[i].offset - end);
        const tokmap_status status = tokmap_i_read_exactly(index, end, n_bytes, gap, err);
        if (status)
            return status;
        for (size_t j = 0; j < n_bytes; j++)
            if (gap[j] != 0)
                return FAIL_AT(err, TOKMAP_ERR_CORRUPT, end + j,
                               "%s: damaged: byte %" PRIu64 " between sections is not zero",
                               ds->index_path, end + j);
        end = ds->header.sections[i].offset + ds->header.sections[i].n_bytes;
    }
    return TOKMAP_OK;
}

static tokmap_status read_header(tokmap_dataset *ds, tokmap_i_named_file index, tokmap_error *err)
{
    const tokmap_i_index_file file = {ds->index_path, ds->index_stat.n_bytes};
    uint8_t bytes[TOKMAP_I_MAX_SECTIONS * TOKMAP_I_SECTION_ENTRY_BYTES];
    size_t n_read = 0;
    const int error = tokmap_i_file_read(index.fd, bytes, TOKMAP_I_HEADER_BYTES, 0, &n_read);
    if (error)
        return FAIL_IO_AT(err, error, n_read, "%s: cannot read the header", ds->index_path);
    tokmap_status status = tokmap_i_header_decode(bytes, n_read, &file, &ds->header, err);
    if (status)
        return status;
    const size_t table_bytes = (size_t)ds->header.n_sections * TOKMAP_I_SECTION_ENTRY_BYTES;
    status = tokmap_i_read_exactly(index, TOKMAP_I_HEADER_BYTES, table_bytes, bytes, err);
    return status ? status : tokmap_i_table_decode(bytes, &file, &ds->header, err);
}

/* Reads the columns. Their names point into the copy of the directory, which is kept behind the
 * columns. */
static tokmap_status open_meta(tokmap_dataset *ds, tokmap_i_named_file index, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, TOKMAP_I_META);
    if (!section)
        return TOKMAP_OK;
    ds->meta = calloc(1, sizeof *ds->meta + TOKMAP_I_META_DIRECTORY_BYTES);
    if (!ds->meta)
        return FAIL_MEMORY(err);
    uint8_t *bytes = (uint8_t *)(ds->meta + 1);
    ds->meta->n_documents = ds->header.n_documents;
    ds->meta->section_bytes = section->n_bytes;
    ds->meta->section = ds->index_map + section->offset;
    tokmap_status status =
        tokmap_i_read_exactly(index, section->offset, TOKMAP_I_META_HEAD_BYTES, bytes, err);
    const uint64_t n_bytes = status ? 0 : tokmap_i_meta_directory_bytes(bytes);
    if (!status && n_bytes <= section->n_bytes && n_bytes > 0)
        status = tokmap_i_read_exactly(index, section->offset, (size_t)n_bytes, bytes, err);
    const char *problem = status ? NULL : tokmap_i_meta_decode(bytes, ds->meta);
    if (!problem)
        return status;
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, section->offset, "%s: damaged: values of documents: %s",
                   ds->index_path, problem);
}

static tokmap_status open_spans(tokmap_dataset *ds, tokmap_i_named_file index, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, TOKMAP_I_SPANS);
    uint8_t head[TOKMAP_I_SPANS_HEAD_BYTES];
    if (!section)
        return TOKMAP_OK;
    const tokmap_status status =
        tokmap_i_read_exactly(index, section->offset, sizeof head, head, err);
    if (status)
        return status;
    const char *problem =
        tokmap_i_spans_decode(head, section->n_bytes, ds->header.n_tokens, &ds->spans);
    ds->spans.bytes = ds->index_map + section->offset;
    return problem ? tokmap_i_fail_damaged(ds, section->offset, problem, err) : TOKMAP_OK;
}

static tokmap_status set_sections(tokmap_dataset *ds, tokmap_i_named_file index, tokmap_error *err)
{
    const tokmap_i_header *h = &ds->header;
    const tokmap_i_section *documents = tokmap_i_section_find(h, TOKMAP_I_DOCUMENTS);
    const tokmap_i_section *inputs = tokmap_i_section_find(h, TOKMAP_I_INPUTS);
    uint8_t count[TOKMAP_I_INPUT_HEAD_BYTES];
    const tokmap_status status =
        tokmap_i_read_exactly(index, inputs->offset, sizeof count, count, err);
    if (status)
        return status;
    const uint64_t n_inputs = le_get64(count);
    if (!tokmap_i_inputs_fit(n_inputs, inputs->n_bytes))
        return FAIL_AT(err, TOKMAP_ERR_CORRUPT, inputs->offset,
                       "%s: damaged: %" PRIu64 " inputs do not fit into their section",
                       ds->index_path, n_inputs);
    const int error = tokmap_i_map(index.fd, h->index_bytes, (const void **)&ds->index_map);
    if (error)
        return FAIL_IO(err, error, "%s: cannot map %" PRIu64 " bytes", ds->index_path,
                       h->index_bytes);
    ds->inputs = (tokmap_i_inputs){ds->index_map + inputs->offset, inputs->n_bytes, n_inputs,
                                   h->n_documents, h->n_tokens};
    tokmap_i_documents_view(&ds->documents, ds->index_map + documents->offset, documents->n_bytes,
                            h->n_documents, h->n_tokens);
    const tokmap_status opened = open_meta(ds, index, err);
    return opened ? opened : open_spans(ds, index, err);
}

/* ---- The segments of a joined dataset ---- */

/* Reads the section into new memory, and checks it. */
static tokmap_status read_segments(const tokmap_dataset *ds, tokmap_i_named_file index,
                                   tokmap_i_segments *segments, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, TOKMAP_I_SEGMENTS);
    uint8_t head[TOKMAP_I_SEGMENTS_HEAD_BYTES];
    tokmap_status status = tokmap_i_read_exactly(index, section->offset, sizeof head, head, err);
    if (status)
        return status;
    if (!tokmap_i_segments_size_valid(section->n_bytes, le_get64(head)))
        return tokmap_i_fail_damaged(ds, section->offset,
                                     "the segments do not fit into their section", err);
    uint8_t *bytes = malloc((size_t)section->n_bytes);
    if (!bytes)
        return FAIL_MEMORY(err);
    *segments = (tokmap_i_segments){.bytes = bytes,
                                    .n_bytes = section->n_bytes,
                                    .n_tokens = ds->header.n_tokens,
                                    .token_bytes = ds->header.token_bytes};
    status = tokmap_i_read_exactly(index, section->offset, (size_t)section->n_bytes, bytes, err);
    if (status)
        return status;
    if (tokmap_i_checksum(bytes, (size_t)section->n_bytes) != section->checksum)
        return tokmap_i_fail_damaged(ds, section->offset,
                                     "the segments do not match their checksum", err);
    uint64_t at = 0;
    const char *problem = tokmap_i_segments_check(segments, &at);
    return problem ? tokmap_i_fail_damaged(ds, section->offset + at, problem, err) : TOKMAP_OK;
}

/* Lists the files. Each path is the folder of the index, as the caller named it, and a name. */
static tokmap_status list_files(tokmap_dataset *ds, const tokmap_i_segments *segments,
                                tokmap_error *err)
{
    ds->folder_bytes = (size_t)(name_in_path(ds->index_path) - ds->index_path);
    const uint64_t n_segments = segments->n_segments;
    const tokmap_status status = tokmap_i_token_files_take(
        ds, n_segments, (size_t)(segments->names_bytes + n_segments * (ds->folder_bytes + 1)), err);
    if (status)
        return status;
    char *path = ds->paths;
    uint64_t n_blocks = 0;
    for (uint64_t i = 0; i < ds->n_files; i++) {
        const tokmap_i_segment segment = tokmap_i_segments_get(segments, i);
        tokmap_i_token_file *file = &ds->files[i];
        file->path = path;
        file->first_token = segment.first_token;
        file->n_tokens = segment.n_tokens;
        file->token_offset = segment.token_offset;
        file->first_block = n_blocks;
        memcpy(path, ds->index_path, ds->folder_bytes);
        memcpy(path + ds->folder_bytes, segment.name, segment.name_bytes);
        path += ds->folder_bytes + segment.name_bytes;
        *path++ = 0;
        n_blocks += div_up(file->n_tokens * ds->header.token_bytes, TOKMAP_I_BLOCK_BYTES);
        ds->token_file_bytes += tokmap_i_token_file_bytes(ds, file);
    }
    if (n_blocks == tokmap_i_n_blocks(&ds->header))
        return TOKMAP_OK;
    return tokmap_i_fail_damaged(
        ds, tokmap_i_section_find(&ds->header, TOKMAP_I_CHECKSUMS)->offset,
        "the size of the block checksums section does not match the segments", err);
}

/* Fills in file_at, for tokmap_i_file_of_token. */
static tokmap_status number_files(tokmap_dataset *ds, tokmap_error *err)
{
    const uint64_t last = MAX(ds->header.n_tokens, 1) - 1;
    while (last >> ds->file_shift >= 4 * ds->n_files + 1)
        ds->file_shift++;
    const uint64_t n = (last >> ds->file_shift) + 1;
    uint32_t *file_at = calloc((size_t)n, sizeof *file_at);
    ds->file_at = file_at;
    if (!file_at)
        return FAIL_MEMORY(err);
    const tokmap_i_token_file *file = ds->files;
    for (uint64_t i = 0; i < n && ds->n_files > 0; i++) {
        while (file[1].first_token <= i << ds->file_shift)
            file++;
        const bool several =
            file[1].first_token < UINT64_MAX && file[2].first_token >> ds->file_shift == i;
        file_at[i] = several ? TOKMAP_I_SEVERAL_FILES : (uint32_t)(file - ds->files);
    }
    return TOKMAP_OK;
}

/* Reads and checks the segments section, and opens the folder of the index; opens no token file. */
static tokmap_status open_segments(tokmap_dataset *ds, tokmap_i_named_file index, tokmap_error *err)
{
    tokmap_i_segments segments = {0};
    tokmap_status status = read_segments(ds, index, &segments, err);
    if (!status)
        status = list_files(ds, &segments, err);
    if (!status)
        status = number_files(ds, err);
    free((void *)segments.bytes);
    ds->is_joined = true;
    if (!status && ds->store)
        return tokmap_i_store_expect_files(ds->store, ds->n_files, err);
    return status ? status
                  : CHECK_IO(err, tokmap_i_folder_open(ds->index_path, &ds->folder_fd),
                             "%s: cannot open its folder", ds->index_path);
}

/* ---- Index and tokens ---- */

/* Reads what open needs of an index in a store, whose header is decoded. */
static tokmap_status read_sections(tokmap_dataset *ds, tokmap_error *err)
{
    const size_t prefix_bytes = strlen(ds->index_path) - strlen(".tmi");
    const bool is_joined = tokmap_i_section_find(&ds->header, TOKMAP_I_SEGMENTS) != NULL;
    const tokmap_status status = join_names(ds->token_names, ds->index_path, prefix_bytes,
                                            is_joined ? ".tmi" : ds->header.token_suffix, err);
    if (status)
        return status;
    ds->token_path = ds->token_names[0];
    if (!is_joined)
        tokmap_i_token_files_take_one(ds, ds->token_path);
    return tokmap_i_store_read_sections(ds, err);
}

static tokmap_status open_index(tokmap_dataset *ds, tokmap_error *err)
{
    tokmap_i_named_file index = {-1, ds->index_path};
    tokmap_status status = ds->store
                               ? tokmap_i_store_begin_index(ds, &index.fd, err)
                               : tokmap_i_open_file(index.name, &index.fd, &ds->index_stat, err);
    if (!status)
        status = read_header(ds, index, err);
    if (!status && ds->store)
        status = read_sections(ds, err);
    if (!status)
        status = check_padding(ds, index, err);
    if (!status)
        status = set_sections(ds, index, err);
    if (!status && tokmap_i_section_find(&ds->header, TOKMAP_I_SEGMENTS))
        status = open_segments(ds, index, err);
    if (!status && ds->header.n_documents > 0)
        ds->index_fd = index.fd;
    else
        tokmap_i_file_close(index.fd);
    return status;
}

/* Whether P.bin.replaced may exist. P.npy.replaced would be a user's file. */
static bool has_tokens_aside(const tokmap_dataset *ds)
{
    return strcmp(ds->header.token_suffix, ".bin") == 0 && tokmap_i_file_exists(ds->token_names[1]);
}

/* Whether index and tokens belong together, although a writer may have replaced them meanwhile:
 * docs/FORMAT.md, section 7. The order of the checks matters. */
static bool is_pair(const tokmap_dataset *ds, const tokmap_i_file_stat *tokens)
{
    const bool aside = tokmap_i_is_set_aside(ds);
    if (aside && ds->token_path == ds->token_names[0] && has_tokens_aside(ds))
        return false;
    if (aside && tokmap_i_file_exists(ds->index_names[0]))
        return false;
    return tokmap_i_file_is(ds->index_path, &ds->index_stat) &&
           tokmap_i_file_is(ds->token_path, tokens);
}

/* Opens the token file of a flat dataset, which stays open and mapped until the dataset is
 * closed. */
static tokmap_status open_tokens(tokmap_dataset *ds, bool index_only, bool *again,
                                 tokmap_error *err)
{
    tokmap_i_token_files_take_one(ds, ds->token_path);
    tokmap_i_token_file *file = ds->files;
    if (index_only)
        return TOKMAP_OK;
    tokmap_i_file_stat stat;
    int fd = -1;
    tokmap_status status = tokmap_i_open_file(file->path, &fd, &stat, err);
    atomic_store(file->fd, fd + 1);
    if (!status && !is_pair(ds, &stat)) {
        *again = true;
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: was replaced while it was being opened",
                    ds->index_names[0]);
    }
    if (status)
        *again = err->sys_errno == ENOENT &&
                 (tokmap_i_is_set_aside(ds) || tokmap_i_file_exists(file->path) ||
                  !tokmap_i_file_is(ds->index_path, &ds->index_stat));
    else
        status = tokmap_i_token_file_check(ds, file, &stat, err);
    const uint8_t *map;
    return status ? status : tokmap_i_token_file_map(ds, file, &map, err);
}

const char *tokmap_i_name_side_file(const char *path)
{
    static const char *const names[][2] = {
        {".tmr", "a rows file"}, {".tmc", "a late column"}, {".tmw", "a view"}, {".tml", "a lane"}};
    const char *end = strrchr(path, '.');
    for (size_t i = 0; end && i < sizeof names / sizeof *names; i++)
        if (strcmp(end, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* Explains why there is no index: if another file has the name, it is not a dataset, and the error
 * says what to do about it. */
static tokmap_status explain_missing(const char *path, tokmap_status status, tokmap_error *err)
{
    if (status != TOKMAP_ERR_IO || err->sys_errno != ENOENT || !tokmap_i_file_exists(path))
        return status;
    const char *side = tokmap_i_name_side_file(path);
    if (side)
        FAIL(err, TOKMAP_ERR_NOT_A_DATASET, "%s: not a dataset, but %s: name the dataset beside it",
             path, side);
    else
        FAIL(err, TOKMAP_ERR_NOT_A_DATASET, "%s: not a dataset%s", path,
             tokmap_i_file_is_folder(path)
                 ? ", but a folder: pack its files, or name a dataset in it"
                 : ": pack it, or index it");
    err->sys_errno = ENOENT;
    return err->status;
}

/* Opens the dataset at `path`. err is not NULL. Sets *again if it failed because a writer was
 * replacing the dataset. */
static tokmap_status open_at(tokmap_dataset *ds, const char *path, bool index_only, bool *again,
                             tokmap_error *err)
{
    size_t prefix_bytes = 0;
    tokmap_status status = tokmap_i_find_index(ds, path, &prefix_bytes, err);
    if (status)
        return status;
    ds->index_path = ds->index_names[!tokmap_i_file_exists(ds->index_names[0]) &&
                                     tokmap_i_file_exists(ds->index_names[1])];
    status = open_index(ds, err);
    *again = status && err->sys_errno == ENOENT && has_index(ds);
    if (status)
        return explain_missing(path, status, err);
    const char *rest = path + prefix_bytes;
    const bool by_prefix = *rest == 0 || strcmp(rest, ".tmi") == 0;
    if (ds->is_joined && !by_prefix)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: its index %s is that of a joined dataset, whose tokens are in other files",
                    path, ds->index_path);
    status = join_names(ds->token_names, path, prefix_bytes,
                        ds->is_joined ? ".tmi" : ds->header.token_suffix, err);
    if (status)
        return status;
    ds->token_path =
        ds->token_names[tokmap_i_is_set_aside(ds) && !ds->is_joined && has_tokens_aside(ds)];
    if (!by_prefix && strcmp(rest, ds->header.token_suffix) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: its index %s belongs to %s", path,
                    ds->index_path, ds->token_names[0]);
    return ds->is_joined ? TOKMAP_OK : open_tokens(ds, index_only, again, err);
}

tokmap_status tokmap_i_dataset_open_index(const tokmap_dataset *ds, int *fd, tokmap_error *err)
{
    if (ds->store)
        return tokmap_i_fail_in_store(ds->index_path, err);
    const char *path = ds->index_names[tokmap_i_file_is(ds->index_names[1], &ds->index_stat)];
    tokmap_i_file_stat stat;
    const tokmap_status status = tokmap_i_open_file(path, fd, &stat, err);
    if (status)
        return status;
    const bool same_file =
        stat.device == ds->index_stat.device && stat.inode == ds->index_stat.inode;
    if (same_file && stat.n_bytes == ds->index_stat.n_bytes)
        return TOKMAP_OK;
    tokmap_i_file_close(*fd);
    *fd = -1;
    if (same_file)
        return FAIL_IO_AT(err, 0, MIN(stat.n_bytes, ds->index_stat.n_bytes),
                          "%s: has %" PRIu64 " bytes now, not %" PRIu64
                          "; it was shortened or changed while in use",
                          path, stat.n_bytes, ds->index_stat.n_bytes);
    return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: was replaced since it was opened", path);
}

/* Makes a dataset that has nothing yet. NULL: out of memory. */
static tokmap_dataset *new_dataset(void)
{
    tokmap_dataset *ds = calloc(1, sizeof *ds);
    if (ds) {
        ds->index_fd = ds->folder_fd = -1;
        ds->kept = &ds->kept_here;
    }
    return ds;
}

static tokmap_status open_dataset(tokmap_dataset **out, const char *path, bool index_only,
                                  tokmap_error *err)
{
    const char *call = index_only ? "tokmap_dataset_open_index" : "tokmap_dataset_open";
    tokmap_error last;
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%.99s: out is NULL", call);
    *out = NULL;
    if (!path || !*path)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%.99s: path is NULL or empty", call);
    tokmap_status status;
    bool again = true;
    for (int n_tries = 0; again && n_tries < MOST_TRIES; n_tries++) {
        tokmap_dataset *ds = new_dataset();
        if (!ds)
            return FAIL_MEMORY(err);
        tokmap_i_error_clear(&last);
        again = false;
        status = open_at(ds, path, index_only, &again, &last);
        if (status)
            tokmap_dataset_close(ds);
        else
            *out = ds;
    }
    if (status && err)
        *err = last;
    return status;
}

tokmap_status tokmap_dataset_open(tokmap_dataset **out, const char *path, tokmap_error *err)
{
    return open_dataset(out, path, false, err);
}

tokmap_status tokmap_dataset_open_index(tokmap_dataset **out, const char *path, tokmap_error *err)
{
    return open_dataset(out, path, true, err);
}

static tokmap_status open_in_store(tokmap_dataset *ds, const char *name,
                                   const tokmap_byte_source *source, tokmap_error *err)
{
    const size_t n_bytes = strlen(name), n_end = strlen(".tmi");
    const bool is_index = n_bytes > n_end && strcmp(name + n_bytes - n_end, ".tmi") == 0;
    tokmap_status status =
        join_names(ds->index_names, name, n_bytes - (is_index ? n_end : 0), ".tmi", err);
    ds->index_path = ds->index_names[0];
    if (!status)
        status = tokmap_i_store_open(&ds->store, source, err);
    return status ? status : open_index(ds, err);
}

tokmap_status tokmap_dataset_open_from(tokmap_dataset **out, const char *name,
                                       const tokmap_byte_source *source, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL_NULL(err);
    *out = NULL;
    if (!name || !*name || !source)
        return FAIL_NULL(err);
    tokmap_dataset *ds = new_dataset();
    if (!ds)
        return FAIL_MEMORY(err);
    const tokmap_status status = open_in_store(ds, name, source, err);
    if (status)
        tokmap_dataset_close(ds);
    else
        *out = ds;
    return status;
}

void tokmap_dataset_close(tokmap_dataset *ds)
{
    if (!ds)
        return;
    tokmap_i_unmap(ds->index_map, ds->header.index_bytes);
    if (ds->is_joined)
        free((void *)ds->file_at);
    tokmap_i_token_files_give_back(ds);
    tokmap_i_file_close(ds->folder_fd);
    tokmap_i_file_close(ds->index_fd);
    tokmap_i_store_close(ds->store);
    free(ds->meta);
    free(ds->index_names[0]);
    free(ds->token_names[0]);
    free(ds);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/token_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/status.h"
#include "format/segments_section.h"

tokmap_status tokmap_i_fail_damaged(const tokmap_dataset *ds, uint64_t offset, const char *problem,
                                    tokmap_error *err)
{
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, offset, "%s: damaged: %s", ds->index_path, problem);
}

/* Reads the section into new memory, and checks it. */
static tokmap_status read_section(const tokmap_dataset *ds, tokmap_i_named_file index,
                                  tokmap_i_segments *segments, tokmap_error *err)
{
    const tokmap_i_section *section = tokmap_i_section_find(&ds->header, TOKMAP_I_SEGMENTS);
    uint8_t head[TOKMAP_I_SEGMENTS_HEAD_BYTES];
    tokmap_status status = tokmap_i_read_exactly(index, section->offset, sizeof head, head, err);
    if (status)
        return status;
    if (!tokmap_i_segments_size_valid(section->n_bytes, load_le64(head)))
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

static size_t kept_fds_bytes(const tokmap_dataset *ds)
{
    return sizeof *ds->kept_fds + (size_t)ds->n_files * sizeof ds->kept_fds->fds[0];
}

/* A path is the folder of the index, as the caller named it, and a name. */
static tokmap_status list_files(tokmap_dataset *ds, const tokmap_i_segments *segments,
                                tokmap_error *err)
{
    const char *slash = strrchr(ds->index_path, '/');
    ds->folder_bytes = slash ? (size_t)(slash - ds->index_path) + 1 : 0;
    ds->n_files = segments->n_segments;
    ds->files = calloc((size_t)ds->n_files + 1, sizeof *ds->files);
    ds->paths = malloc((size_t)(segments->names_bytes + ds->n_files * (ds->folder_bytes + 1)) + 1);
    int error = ds->files && ds->paths ? 0 : ENOMEM;
    if (!error)
        error = tokmap_i_memory_take_wiped(kept_fds_bytes(ds), (void **)&ds->kept_fds);
    if (error && error != EINVAL) {
        ds->n_files = 0;
        return FAIL_MEMORY(err);
    }
    char *path = ds->paths;
    uint64_t n_blocks = 0;
    for (uint64_t i = 0; i < ds->n_files; i++) {
        const tokmap_i_segment segment = tokmap_i_segments_get(segments, i);
        tokmap_i_token_file *file = &ds->files[i];
        *file = (tokmap_i_token_file){.path = path,
                                      .first_token = segment.first_token,
                                      .n_tokens = segment.n_tokens,
                                      .token_offset = segment.token_offset,
                                      .first_block = n_blocks,
                                      .fd = ds->kept_fds ? &ds->kept_fds->fds[i] : &ds->only_fd};
        memcpy(path, ds->index_path, ds->folder_bytes);
        memcpy(path + ds->folder_bytes, segment.name, segment.name_bytes);
        path += ds->folder_bytes + segment.name_bytes;
        *path++ = 0;
        n_blocks += div_up(file->n_tokens * ds->header.token_bytes, TOKMAP_I_BLOCK_BYTES);
        ds->token_file_bytes += tokmap_i_token_file_bytes(ds, file);
    }
    ds->files[ds->n_files].first_token = UINT64_MAX;
    if (n_blocks == tokmap_i_n_blocks(&ds->header))
        return TOKMAP_OK;
    return tokmap_i_fail_damaged(
        ds, tokmap_i_section_find(&ds->header, TOKMAP_I_CHECKSUMS)->offset,
        "the size of the block checksums section does not match the segments", err);
}

/* For tokmap_i_file_of_token. */
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

tokmap_status tokmap_i_segments_open(tokmap_dataset *ds, tokmap_i_named_file index,
                                     tokmap_error *err)
{
    tokmap_i_segments segments = {0};
    tokmap_status status = read_section(ds, index, &segments, err);
    if (!status)
        status = list_files(ds, &segments, err);
    if (!status)
        status = number_files(ds, err);
    free((void *)segments.bytes);
    ds->is_joined = true;
    return status ? status
                  : CHECK_IO(err, tokmap_i_folder_open(ds->index_path, &ds->folder_fd),
                             "%s: cannot open its folder", ds->index_path);
}

void tokmap_i_segments_close(tokmap_dataset *ds)
{
    tokmap_i_file_close(ds->folder_fd);
    free(ds->paths);
    tokmap_i_memory_give_back(ds->kept_fds, kept_fds_bytes(ds));
    if (ds->files == ds->only_file)
        return;
    free((void *)ds->file_at);
    free(ds->files);
}

tokmap_status tokmap_dataset_get_segment(const tokmap_dataset *ds, uint64_t index,
                                         tokmap_segment_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_segment_info, token_offset)};
    if (!ds || !ds->is_joined || index >= ds->n_files)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_i_token_file *file = &ds->files[index];
    const char *path = file->path + ds->folder_bytes;
    const tokmap_segment_info full = {
        .path = path,
        .path_bytes = strlen(path),
        .first_token = file->first_token,
        .n_tokens = file->n_tokens,
        .token_offset = file->token_offset,
    };
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

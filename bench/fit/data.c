/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - the files of the datasets that are measured, in the page cache and out of it. */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/paths.h"
#include "core/load_data.h"
#include "datasets/datasets.h"
#include "fit/fit.h"
#include "system/platform.h"

enum {
    AT_ONCE = 32, /* reads of the device */
    PROBES = 64,
    READ_BYTES = 1 << 20
};

static void add_file(fit_data *data, const char *path)
{
    failure err;
    if (!input_list_append(&data->files, strdup(path), &err))
        bench_fail("%s", err.text);
}

static uint64_t size_of(const char *path)
{
    tokmap_i_file_stat stat;
    bench_check_errno(tokmap_i_file_stat_path(path, &stat), path);
    return stat.n_bytes;
}

/* Adds the token files of a dataset, and what it says of them. */
static int add_dataset(fit_data *data, const char *name)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (tokmap_dataset_open(&ds, name, &err))
        return report_open_failure(name, &err);
    const tokmap_dataset_info info = cli_dataset_info(ds);
    for (uint64_t i = 0; cli_is_joined(&info) && i < info.n_segments; i++) {
        tokmap_segment_info segment = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &segment);
        add_file(data, path_beside(info.index_path, segment.path).s);
    }
    if (!cli_is_joined(&info))
        add_file(data, info.token_path);
    data->n_tokens += info.n_tokens;
    data->token_bytes = MAX(data->token_bytes, info.token_bytes);
    tokmap_dataset_close(ds);
    return CLI_OK;
}

int fit_data_find(fit_data *data)
{
    struct statfs system;
    uint64_t most = 0;
    int code = CLI_OK;
    for (size_t i = 0; i < data->names.n_names && code == CLI_OK; i++)
        code = add_dataset(data, data->names.names[i]);
    if (code != CLI_OK)
        return code;
    data->n_token_files = data->files.n_names;
    for (size_t i = 0; i < data->names.n_names; i++)
        add_file(data, path_of(path_prefix(data->names.names[i]).s, ".tmi").s);
    data->in_memory = data->n_token_files > 0; /* all of them are */
    for (size_t i = 0; i < data->files.n_names; i++) {
        const char *path = data->files.names[i];
        const uint64_t n_bytes = size_of(path);
        data->n_bytes += n_bytes;
        if (i >= data->n_token_files)
            continue;
        if (n_bytes >= most) {
            data->largest = path;
            most = n_bytes;
        }
        data->in_memory = data->in_memory && statfs(path, &system) == 0 &&
                          (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
    }
    return CLI_OK;
}

void fit_data_free(fit_data *data)
{
    input_list_free(&data->names);
    input_list_free(&data->files);
}

/* Counts probed pages of a file that are in memory; 0 if the file system cannot say. */
static int count_hot(int fd, uint64_t n_bytes)
{
    uint64_t offsets[PROBES];
    for (uint64_t i = 0; i < PROBES; i++)
        offsets[i] = n_bytes / PROBES * i;
    const int n_cold = n_bytes > 0 ? tokmap_i_file_count_cold(fd, offsets, PROBES) : PROBES;
    return n_cold < 0 ? 0 : PROBES - n_cold;
}

bool fit_data_drop(const fit_data *data)
{
    uint64_t hot_bytes = 0;
    for (size_t i = 0; i < data->files.n_names; i++) {
        const char *path = data->files.names[i];
        const uint64_t n_bytes = size_of(path);
        int fd;
        bench_check_errno(tokmap_i_file_open(path, &fd), path);
        fsync(fd); /* dirty pages are not dropped */
        tokmap_i_file_forget(fd, 0, round_up(n_bytes, tokmap_i_page_bytes()));
        hot_bytes += n_bytes / PROBES * (uint64_t)count_hot(fd, n_bytes);
        tokmap_i_file_close(fd);
    }
    return hot_bytes <= data->n_bytes / 10;
}

/* Reads a file until `until_ns`. Returns whether all of it is in memory then, as far as the file
 * system can say. */
static bool warm(const char *path, uint8_t *buffer, uint64_t until_ns)
{
    const uint64_t n_bytes = size_of(path);
    int fd;
    if (tokmap_i_file_open(path, &fd))
        return false;
    ssize_t n_read = 1;
    while (n_read > 0 && tokmap_i_now_ns() < until_ns)
        n_read = read(fd, buffer, READ_BYTES);
    const int n_hot = count_hot(fd, n_bytes);
    tokmap_i_file_close(fd);
    return n_read == 0 && (n_hot == 0 || n_hot >= PROBES * 9 / 10);
}

bool fit_data_warm(const fit_data *data, double seconds)
{
    const uint64_t until_ns = tokmap_i_now_ns() + (uint64_t)(seconds * 1e9);
    uint8_t *buffer = bench_memory(READ_BYTES);
    bool whole = true;
    for (size_t i = 0; i < data->files.n_names && whole; i++)
        whole = warm(data->files.names[i], buffer, until_ns);
    free(buffer);
    return whole;
}

void fit_data_make(fit_data *data, const char *folder, uint64_t n_bytes)
{
    const bench_options made = {.dir = folder};
    failure err;
    data->made = "random tokens";
    load_data_make_random(&made, 0, n_bytes / 2, LOAD_DATA_VOCABULARY);
    if (!input_list_append(&data->names, strdup(load_data_name(&made, 0).s), &err))
        bench_fail("%s", err.text);
}

double fit_data_device_rate(const fit_data *data, uint64_t length)
{
    const device_file file = device_open(data->largest);
    const device_reads reads = {.read_bytes = round_up(length * data->token_bytes, DEVICE_BLOCK),
                                .n_at_once = AT_ONCE,
                                .seed = 1,
                                .ns = 1000000000};
    double rate = 0;
    uint8_t *trial = bench_memory(reads.read_bytes); /* what opens may still refuse reads */
    const bool reads_direct = file.direct_fd >= 0 && pread(file.direct_fd, trial, reads.read_bytes,
                                                           0) == (ssize_t)reads.read_bytes;
    free(trial);
    if (reads_direct && file.n_bytes > 2 * reads.read_bytes + DEVICE_BLOCK)
        rate = device_rate(&file, &reads);
    close(file.fd);
    if (file.direct_fd >= 0)
        close(file.direct_fd);
    return rate * (double)length;
}

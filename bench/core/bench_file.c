/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int bench_file_open(bench_file *file, const char *path)
{
    const bool is_stdout = strcmp(path, "-") == 0;
    *file = (bench_file){.out = {.fd = -1},
                         .direct = is_stdout || (file_exists(path) && !file_is_regular(path))};
    if (!file->direct)
        return output_name(&file->out, path, "", true) || output_begin(&file->out) ? 1 : 0;
    snprintf(file->out.path, sizeof file->out.path, "%s", is_stdout ? "stdout" : path);
    file->out.fd = is_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                             : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return file->out.fd >= 0 ? 0 : cli_error(1, "%s: cannot write: %s", path, strerror(errno));
}

int bench_file_write(bench_file *file, const void *data, size_t n_bytes)
{
    int code = output_write(&file->out, data, n_bytes);
    if (code == CLI_OK && !file->direct)
        code = output_place(&file->out);
    bench_file_abandon(file);
    return code == CLI_OK ? 0 : 1;
}

void bench_file_abandon(bench_file *file)
{
    if (!file->direct)
        output_close(&file->out);
    else if (file->out.fd >= 0)
        close(file->out.fd);
    file->out.fd = -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int bench_file_open(output_file *file, const char *path)
{
    const bool is_stdout = strcmp(path, "-") == 0;
    if (!is_stdout && (!file_exists(path) || file_is_regular(path)))
        return output_name(file, path, "", true) || output_begin(file) ? 1 : 0;
    *file = (output_file){.fd = -1};
    snprintf(file->path, sizeof file->path, "%s", is_stdout ? "stdout" : path);
    file->fd = is_stdout ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                         : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return file->fd >= 0 ? 0 : cli_error(1, "%s: cannot write: %s", path, strerror(errno));
}

int bench_file_write(output_file *file, const void *data, size_t n_bytes)
{
    int code = output_write(file, data, n_bytes);
    if (code == CLI_OK && file->partial[0]) /* else it is written directly */
        code = output_place(file);
    output_close(file);
    return code == CLI_OK ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "core/bench_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int abandon_file(const bench_file *file)
{
    cli_error(1, "%s: cannot write: %s", file->out.path, strerror(errno));
    bench_file_abandon((bench_file *)file);
    return 1;
}

int bench_file_open(bench_file *file, const char *path)
{
    struct stat st;
    *file = (bench_file){.out = {.fd = -1}, .f = stdout};
    snprintf(file->out.path, sizeof file->out.path, "%s", strcmp(path, "-") ? path : "stdout");
    if (strcmp(path, "-") == 0)
        return 0;
    int fd = -1;
    file->f = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    else if (output_name(&file->out, path, "", true) != CLI_OK ||
             output_begin(&file->out) != CLI_OK)
        return 1;
    else
        fd = fcntl(file->out.fd, F_DUPFD_CLOEXEC, 0);
    file->f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file->f)
        return 0;
    if (fd >= 0)
        close(fd);
    return abandon_file(file);
}

int bench_file_place(bench_file *file)
{
    FILE *f = file->f;
    errno = 0;
    bool failed = fflush(f) != 0 || ferror(f);
    file->f = NULL;
    failed |= f != stdout && fclose(f) != 0;
    if (failed)
        return abandon_file(file);
    const int code = file->out.fd >= 0 ? output_place(&file->out) : CLI_OK;
    bench_file_abandon(file);
    return code == CLI_OK ? 0 : 1;
}

void bench_file_abandon(bench_file *file)
{
    if (file->f && file->f != stdout)
        fclose(file->f);
    file->f = NULL;
    output_close(&file->out);
}

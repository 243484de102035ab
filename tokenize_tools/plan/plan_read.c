/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "system/files.h"
#include "system/protected.h"

static int parse(plan_file *plan, const char *path, const whole_file *file)
{
    failure err;
    if (plan_file_parse(plan, (const char *)file->data, file->n_bytes, &err))
        return CLI_OK;
    if (err.status == ENOMEM)
        return cli_no_memory();
    return cli_error(CLI_INPUT, "%s:%" PRIu64 ": %s", path, err.place, err.text);
}

int plan_read_to_update(plan_file *plan, const char *path)
{
    whole_file file;
    const int error = file_read_whole(path, PLAN_MAX_FILE_BYTES, &file);
    if (error == EFBIG)
        return cli_error(CLI_INPUT, "%s: is larger than 4 GiB, so it is not a plan", path);
    if (error)
        return cli_error(cli_errno_exit_code(error), "%s: %s", path, strerror(error));
    if (!file.data)
        return cli_error(CLI_INPUT, "%s: there is no such plan", path);
    const int code = parse(plan, path, &file);
    free(file.data);
    return code;
}

int plan_read(plan_file *plan, const char *path)
{
    const int code = path_protect_name(path, "a plan");
    return code == CLI_OK ? plan_read_to_update(plan, path) : code;
}

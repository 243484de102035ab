#include "pack_inputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* The input must not be a file that this run writes. */
static int check_apart(const struct stat *st, const pack_options *options)
{
    int code = path_check_apart(st, options->prefix);
    for (size_t i = 0; i < options->n_splits && code == CLI_OK; i++) {
        char prefix[PATH_PREFIX_BYTES];
        pack_split_prefix(prefix, options, i);
        code = path_check_apart(st, prefix);
    }
    const char *others[] = {options->report, options->bad_documents};
    for (size_t i = 0; i < 2 && code == CLI_OK; i++) {
        if (others[i] && path_is_file(others[i], st))
            code = cli_usage("%s: is an input and cannot be an output too", others[i]);
    }
    return code;
}

static int look_at(pack_input *in, const char *name, const pack_options *options)
{
    struct stat st;
    bool is_stdin = strcmp(name, "-") == 0;
    if (is_stdin ? fstat(STDIN_FILENO, &st) != 0 : stat(name, &st) != 0 || access(name, R_OK) != 0)
        return cli_error(cli_errno_exit_code(errno), "%s: %s", name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return cli_error(CLI_INPUT, "%s: is a folder", name);
    in->again = !is_stdin && S_ISREG(st.st_mode);
    if (in->again) {
        in->n_bytes = (uint64_t)st.st_size;
        in->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    }
    return check_apart(&st, options);
}

int pack_inputs_look(pack_inputs *inputs, const char *const *names, size_t n,
                     const pack_options *options)
{
    bool stdin_used = false;
    *inputs = (pack_inputs){.names = names, .n = n, .list = calloc(n + 1, sizeof *inputs->list)};
    if (!inputs->list)
        return cli_no_memory();
    for (size_t i = 0; i < n; i++) {
        bool is_stdin = strcmp(names[i], "-") == 0;
        if (is_stdin && stdin_used)
            return cli_usage("stdin (-) can be read only once");
        stdin_used = stdin_used || is_stdin;
        int code = look_at(&inputs->list[i], names[i], options);
        if (code != CLI_OK)
            return code;
        inputs->total_bytes += inputs->list[i].n_bytes;
        if (!inputs->list[i].again && !inputs->once)
            inputs->once = is_stdin ? "stdin" : names[i];
    }
    if (inputs->once)
        inputs->total_bytes = 0;
    return CLI_OK;
}

void pack_inputs_free(pack_inputs *inputs)
{
    free(inputs->list);
    inputs->list = NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/each.h"

#include "cli/cli.h"

static int work_on(const each_command *c, const char *name)
{
    tokmap_dataset *ds;
    tokmap_error err;
    const bool index_only = c->index_only && *c->index_only;
    if ((index_only ? tokmap_dataset_open_index : tokmap_dataset_open)(&ds, name, &err)) {
        const int code = c->refuse ? c->refuse(c->options, name, &err) : CLI_OK;
        if (code == CLI_OK)
            return report_open_failure(name, &err);
        cli_fail(&err);
        return code;
    }
    const int code = c->work(c->options, name, ds);
    tokmap_dataset_close(ds);
    return code;
}

int each_run(const each_command *c, int argc, char **argv)
{
    input_list names = {0};
    int code = cli_parse_options(c->manual, argc, argv, c->options);
    if (code != CLI_GO_ON)
        return code;
    code = c->expand(&names, argv + optind, argc - optind, c->quiet && *c->quiet);
    if (code == CLI_OK && c->check)
        code = c->check(c->options, &names);
    for (size_t i = 0, n = code == CLI_OK && c->work ? names.n_names : 0; i < n; i++)
        code = cli_first_failure(code, work_on(c, names.names[i]));
    if (code == CLI_OK && c->end)
        code = c->end(c->options, &names);
    input_list_free(&names);
    return cli_first_failure(code, cli_finish());
}

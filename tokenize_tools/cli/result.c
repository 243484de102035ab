/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/result.h"

#include <string.h>

#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/paths.h"

static void print_result_json(const tokmap_dataset_info *info, const char *format, const char *more)
{
    json_out o = json_out_begin_result(stdout);
    json_out_string(&o, "index_file", info->index_path);
    json_out_string(&o, "token_file", info->token_path);
    if (format)
        json_out_string(&o, "format", format);
    json_out_string(&o, "dtype", info->token_bytes == 2 ? "u16" : "u32");
    json_out_number(&o, "n_tokens", info->n_tokens);
    json_out_number(&o, "n_documents", info->n_documents);
    json_out_number(&o, "n_inputs", info->n_inputs);
    json_out_string(&o, "dataset_id", cli_hex(info->dataset_id).s);
    printf("%s%s}\n", more && *more ? ", " : "", more ? more : "");
}

static void print_result_line(const tokmap_dataset_info *info, const char *format)
{
    /* A new dataset is called by its prefix, an adopted file by its own name. */
    const char *name = format ? info->token_path : info->index_path;
    cli_print_plain(stdout, name, strlen(name) - (format ? 0 : strlen(".tmi")));
    fputs(": ", stdout);
    if (format)
        printf("%s, ", format);
    if (info->n_documents || !info->n_tokens)
        printf("%s, ", cli_count_of(info->n_documents, "document").s);
    else
        fputs("document boundaries not known, ", stdout);
    printf("%s (u%u), %s, id %s\n", cli_count_of(info->n_tokens, "token").s, 8 * info->token_bytes,
           cli_bytes(info->token_file_bytes + info->index_bytes).s, cli_hex(info->dataset_id).s);
}

int cli_print_result(const char *prefix, const char *format, const char *more, bool json,
                     bool quiet)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (quiet && !json)
        return CLI_OK;
    if (tokmap_dataset_open(&ds, path_of(prefix, ".tmi").s, &err) != TOKMAP_OK)
        return cli_fail(&err);
    const tokmap_dataset_info info = cli_dataset_info(ds);
    if (json)
        print_result_json(&info, format, more);
    else
        print_result_line(&info, format);
    tokmap_dataset_close(ds);
    return cli_finish();
}

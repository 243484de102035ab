/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/dataset_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/cli.h"

static tokmap_dataset_info get_info(const tokmap_dataset *ds)
{
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_dataset_get_info(ds, &info);
    return info;
}

/* named: the first dataset whose vocabulary is known, or NULL. */
static int check_same(const tokmap_dataset *first, const tokmap_dataset *named,
                      const tokmap_dataset *ds)
{
    const tokmap_dataset_info a = get_info(first), b = get_info(ds);
    if (a.token_bytes != b.token_bytes)
        return cli_error(CLI_DATASET,
                         "%s: has tokens of %" PRIu32 " bytes, but %s has tokens of %" PRIu32,
                         cli_tokens_name(&b), b.token_bytes, cli_tokens_name(&a), a.token_bytes);
    const tokmap_dataset_info v = get_info(named ? named : ds);
    if (b.vocab_size != 0 && b.vocab_size != v.vocab_size)
        return cli_error(CLI_DATASET,
                         "%s: its vocabulary has %" PRIu64 " ids, that of %s has %" PRIu64,
                         cli_tokens_name(&b), b.vocab_size, cli_tokens_name(&v), v.vocab_size);
    return CLI_OK;
}

int dataset_list_open(dataset_list *list, char **paths, size_t n_paths)
{
    const tokmap_dataset *named = NULL;
    tokmap_error err;
    int code = CLI_OK;
    *list = (dataset_list){calloc(n_paths, sizeof *list->datasets), 0};
    if (!list->datasets)
        return cli_no_memory();
    for (size_t i = 0; code == CLI_OK && i < n_paths; i++) {
        if (tokmap_dataset_open(&list->datasets[i], paths[i], &err) != TOKMAP_OK)
            return cli_fail(&err);
        list->n++;
        code = check_same(list->datasets[0], named, list->datasets[i]);
        if (!named && get_info(list->datasets[i]).vocab_size != 0)
            named = list->datasets[i];
    }
    return code;
}

void dataset_list_close(dataset_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        tokmap_dataset_close(list->datasets[i]);
    free(list->datasets);
}

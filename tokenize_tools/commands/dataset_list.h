/* SPDX-License-Identifier: Apache-2.0 */
/* dataset_list.h - several open datasets that fit together, in the order given. */
#ifndef TOKMAP_DATASET_LIST_H
#define TOKMAP_DATASET_LIST_H

#include <stddef.h>

#include "tokmap.h"

typedef struct dataset_list {
    tokmap_dataset **datasets;
    size_t n;
} dataset_list;

/* Opens all, at least one. The exit code, after a message: a dataset cannot be opened, or has
 * another token width or another known vocabulary than those before it. Close it in any case. */
int dataset_list_open(dataset_list *list, char **paths, size_t n_paths);
void dataset_list_close(dataset_list *list);

#endif

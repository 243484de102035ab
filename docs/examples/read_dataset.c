/* SPDX-License-Identifier: Apache-2.0 */
/* read_dataset.c - opens a token dataset and prints what it holds.
 *
 *     read_dataset DATASET [TOKEN]
 *
 * Prints the size of the dataset, then the document that holds token number TOKEN (the first, if
 * none is given): its number, its length and its first ids.
 *
 *     cc read_dataset.c $(pkg-config --cflags --libs tokmap)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tokmap.h"

static int fail(const char *text)
{
    fprintf(stderr, "read_dataset: %s\n", text);
    return 1;
}

static int print_document(const tokmap_dataset *ds, uint64_t token)
{
    tokmap_document document;
    tokmap_error err;
    uint32_t ids[8];
    if (tokmap_dataset_find_document(ds, token, &document))
        return fail("no document holds this token");
    const uint64_t n = document.n_tokens < 8 ? document.n_tokens : 8;
    if (tokmap_dataset_read_ids(ds, document.first_token, n, ids, &err))
        return fail(err.text);
    printf("document %" PRIu64 ": %" PRIu64 " tokens:", document.index, document.n_tokens);
    for (uint64_t i = 0; i < n; i++)
        printf(" %" PRIu32, ids[i]);
    puts(document.n_tokens > n ? " ..." : "");
    return 0;
}

int main(int argc, char **argv)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (argc < 2 || argc > 3)
        return fail("usage: read_dataset DATASET [TOKEN]");
    if (tokmap_dataset_open(&ds, argv[1], &err))
        return fail(err.text); /* one line that names the file */
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    tokmap_dataset_get_info(ds, &info);
    printf("%" PRIu64 " tokens of %" PRIu32 " bytes in %" PRIu64 " documents\n", info.n_tokens,
           info.token_bytes, info.n_documents);
    const int status = print_document(ds, argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
    tokmap_dataset_close(ds);
    return status;
}

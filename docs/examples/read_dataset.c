/* SPDX-License-Identifier: Apache-2.0 */
/* read_dataset.c - opens a token dataset and prints what it holds, without copying a token.
 *
 *     read_dataset DATASET [TOKEN]
 *
 * Prints the size of the dataset, then the document that holds token number TOKEN (the first, if
 * none is given): its number, its length and its first ids.
 *
 *     cc read_dataset.c -ltokmap -lxxhash
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

/* Tokens are 16 or 32 bits wide; the pointer leads into the mapped file. */
static uint32_t get_id(const void *tokens, uint32_t token_bytes, uint64_t i)
{
    return token_bytes == 2 ? ((const uint16_t *)tokens)[i] : ((const uint32_t *)tokens)[i];
}

static int print_document(const tokmap_dataset *ds, uint32_t token_bytes, uint64_t token)
{
    tokmap_document document;
    const void *tokens;
    if (tokmap_dataset_find_document(ds, token, &document))
        return fail("no document holds this token");
    const tokmap_status status =
        tokmap_dataset_tokens(ds, document.first_token, document.n_tokens, &tokens);
    if (status == TOKMAP_IN_PIECES)
        return fail("the document is in several files: copy it with tokmap_dataset_read");
    if (status)
        return fail("the document cannot be reached: run tokmap verify");
    printf("document %" PRIu64 ": %" PRIu64 " tokens:", document.index, document.n_tokens);
    for (uint64_t i = 0; i < document.n_tokens && i < 8; i++)
        printf(" %" PRIu32, get_id(tokens, token_bytes, i));
    puts(document.n_tokens > 8 ? " ..." : "");
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
    const int status =
        print_document(ds, info.token_bytes, argc > 2 ? strtoull(argv[2], NULL, 10) : 0);
    tokmap_dataset_close(ds); /* pointers into the map end here */
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_lookup P - answers lines of stdin, `t TOKEN` (the document that holds it) and `d DOCUMENT`,
 * with the document's index, first token and number of tokens. If P does not open it prints
 * `refused STATUS`. */
#include <inttypes.h>
#include <stdio.h>

#include "tokmap.h"

static int answer(const tokmap_dataset *ds, char what, uint64_t number)
{
    tokmap_document document;
    tokmap_status status = what == 't' ? tokmap_dataset_find_document(ds, number, &document)
                                       : tokmap_dataset_document(ds, number, &document);
    if (status != TOKMAP_OK) {
        fprintf(stderr, "tool_lookup: %c %" PRIu64 ": status %d\n", what, number, (int)status);
        return 1;
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", document.index, document.first_token,
           document.n_tokens);
    return 0;
}

int main(int argc, char **argv)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (argc != 2) {
        fprintf(stderr, "usage: tool_lookup P\n");
        return 2;
    }
    tokmap_status status = tokmap_dataset_open(&ds, argv[1], &err);
    if (status != TOKMAP_OK) {
        printf("refused %d\n", (int)status);
        fprintf(stderr, "tool_lookup: %s\n", err.text);
        return 1;
    }
    char what;
    uint64_t number;
    int failed = 0;
    while (!failed && scanf(" %c %" SCNu64, &what, &number) == 2)
        failed = answer(ds, what, number);
    tokmap_dataset_close(ds);
    return failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_replace - writes and opens datasets that consist of one number, for test_next_writer.py:
 *
 *     tool_replace open P                     prints the number, or a mix
 *     tool_replace write P NUMBER             prints the status
 *     tool_replace replace P NUMBER [N [-]]   likewise; killed before call N that changes a name,
 *                                             and -: where there are no hard links
 *
 * The number is each of its tokens, and its metadata. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "tokmap_writer.h"

enum {
    N_TOKENS = 1000
};

static tokmap_status write_number(const char *prefix, const char *number, bool replace)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 1000, .replace = replace};
    const uint32_t id = (uint32_t)strtoul(number, NULL, 10);
    tokmap_writer *w = NULL;
    tokmap_status status = tokmap_writer_open(&w, prefix, &options, NULL);
    for (int i = 0; !status && i < N_TOKENS; i++)
        status = tokmap_writer_append(w, &id, 1, NULL);
    if (!status)
        status = tokmap_writer_set_metadata(w, number, strlen(number), NULL);
    if (!status)
        status = tokmap_writer_finish(w, NULL);
    tokmap_writer_close(w);
    return status;
}

static tokmap_status open_number(const char *prefix)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    const void *tokens;
    size_t n_bytes;
    if (tokmap_dataset_open(&ds, prefix, &err)) {
        puts(err.text);
        return err.status;
    }
    const char *number = tokmap_dataset_metadata(ds, &n_bytes);
    tokmap_status status = tokmap_dataset_tokens(ds, 0, N_TOKENS, &tokens);
    const uint16_t *ids = tokens;
    for (int i = 0; !status && i < N_TOKENS; i++)
        if (ids[i] != strtoul(number, NULL, 10))
            status = TOKMAP_ERR_MISMATCH;
    printf("%s%.*s\n", status ? "a mix, metadata " : "", (int)n_bytes, number);
    tokmap_dataset_close(ds);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    if (strcmp(argv[1], "open") == 0)
        return open_number(argv[2]) ? 1 : 0;
    if (argc > 4)
        fault_arm(FAULT_KILL_BEFORE, FAULT_LINK | FAULT_RENAMEAT2 | FAULT_UNLINK, 0,
                  strtoul(argv[4], NULL, 10));
    fault.missing = argc > 5 ? FAULT_LINK : 0;
    printf("%d\n", (int)write_number(argv[2], argv[3], strcmp(argv[1], "replace") == 0));
    return 0;
}

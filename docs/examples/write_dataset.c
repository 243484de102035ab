/* SPDX-License-Identifier: Apache-2.0 */
/* write_dataset.c - writes a token dataset: each line of the standard input is a document.
 *
 *     write_dataset DATASET <TEXT
 *
 * A byte is its own id here, and id 256 ends a document. The dataset appears under its name when
 * all of it is on the disk, and not before.
 *
 *     cc write_dataset.c $(pkg-config --cflags --libs tokmap)
 */
#include <stdio.h>
#include <string.h>

#include "tokmap_writer.h"

enum {
    END_OF_DOCUMENT = 256
};

static tokmap_status write_documents(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    int c, last = '\n';
    while (status == TOKMAP_OK && (c = getchar()) != EOF) {
        const uint32_t id = c == '\n' ? END_OF_DOCUMENT : (uint32_t)c;
        status = tokmap_writer_append(w, &id, 1, err);
        if (status == TOKMAP_OK && c == '\n')
            status = tokmap_writer_end_document(w, err);
        last = c;
    }
    if (status == TOKMAP_OK && last != '\n') {
        *err = (tokmap_error){.text = "the input does not end with a newline"};
        status = err->status = TOKMAP_ERR_ARGUMENT;
    }
    return status;
}

int main(int argc, char **argv)
{
    static const char metadata[] = "{\"made_by\": \"write_dataset\"}";
    tokmap_writer_options options = TOKMAP_INIT(tokmap_writer_options);
    tokmap_writer *w = NULL;
    tokmap_error err = {.text = "usage: write_dataset DATASET <TEXT"};
    options.vocab_size = END_OF_DOCUMENT + 1;
    options.has_eod = 1;
    options.eod_id = END_OF_DOCUMENT;
    tokmap_status status =
        argc == 2 ? tokmap_writer_open(&w, argv[1], &options, &err) : TOKMAP_ERR_ARGUMENT;
    if (status == TOKMAP_OK)
        status = write_documents(w, &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_end_input(w, "standard input", 0, 0, &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_set_metadata(w, metadata, strlen(metadata), &err);
    if (status == TOKMAP_OK)
        status = tokmap_writer_finish(w, &err);
    tokmap_writer_close(w); /* removes what was begun, unless it was finished */
    if (status != TOKMAP_OK)
        fprintf(stderr, "write_dataset: %s\n", err.text);
    return status == TOKMAP_OK ? 0 : 1;
}

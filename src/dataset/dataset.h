/* dataset.h - an open dataset, for the other files of the library. */
#ifndef TOKMAP_DATASET_H
#define TOKMAP_DATASET_H

#include <stdint.h>

#include "format/document_index.h"
#include "format/format.h"
#include "system/platform.h"
#include "format/input_table.h"
#include "format/meta_section.h"
#include "tokmap.h"

struct tokmap_dataset {
    char *index_path, *token_path;
    tokmap_i_header header;
    int token_fd;
    int index_fd;                  /* -1 without documents */
    tokmap_i_file_stat index_stat; /* to recognize the index when it is opened again */
    uint64_t token_file_bytes;
    const uint8_t *index_map, *token_map; /* whole files */
    tokmap_i_documents documents;
    tokmap_i_inputs inputs;
    tokmap_i_meta *meta; /* NULL: documents have no values */
};

/* Copies n_bytes from the token file; first_byte counts from the first token. TOKMAP_ERR_IO also if
 * the file has become shorter. */
tokmap_status tokmap_i_dataset_read_bytes(const tokmap_dataset *ds, uint64_t first_byte,
                                          size_t n_bytes, void *dst, tokmap_error *err);
/* An open file and its name for messages. */
typedef struct tokmap_i_named_file {
    int fd;
    const char *name;
} tokmap_i_named_file;
tokmap_status tokmap_i_read_exactly(tokmap_i_named_file file, uint64_t offset, size_t n_bytes,
                                    void *dst, tokmap_error *err);
/* Opens the index file again, to read it without the map. Fails if it is another file now. */
tokmap_status tokmap_i_dataset_open_index(const tokmap_dataset *ds, int *fd, tokmap_error *err);

#endif /* TOKMAP_DATASET_H */

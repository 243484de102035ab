/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - tokens of a dataset on their way to one token file: P.bin.partial, which many processes
 * may fill at the same time.
 *
 * The file has the tokens, at their places, and after them a record for each unit of 16 MiB, which
 * is written when the unit is on the disk. docs/FORMAT.md section 11. */
#ifndef TOKMAP_COPY_H
#define TOKMAP_COPY_H

#include "dataset/token_files.h"
#include "writer/index_writer.h"

typedef struct tokmap_i_copy_job {
    const tokmap_dataset *ds;
    tokmap_i_named_file to;
    int index_fd; /* of ds */
    uint64_t n_bytes, n_units, records_at;
    uint8_t *unit, *block, *records;
    uint64_t pending[16]; /* units that have been written, but not flushed */
    size_t n_pending;
} tokmap_i_copy_job;

/* Gives the file its size. Close it in any case; that does not close the file. */
tokmap_status tokmap_i_copy_open(tokmap_i_copy_job *job, const tokmap_dataset *ds,
                                 tokmap_i_named_file to, tokmap_error *err);
/* Copies the units of [first, end) that are not done, checks them, and makes them durable. */
tokmap_status tokmap_i_copy_units(tokmap_i_copy_job *job, uint64_t first, uint64_t end,
                                  tokmap_error *err);
/* All units are done: adds their block checksums to the index, and their tokens to the hash. */
tokmap_status tokmap_i_copy_collect(tokmap_i_copy_job *job, tokmap_i_index_writer *index,
                                    tokmap_i_content_hash *hash, tokmap_error *err);
/* The size of the file, with the records. */
uint64_t tokmap_i_copy_file_bytes(const tokmap_i_copy_job *job);
void tokmap_i_copy_close(tokmap_i_copy_job *job);

#endif /* TOKMAP_COPY_H */

/* index_writer.h - puts an index file together: documents as they come, the rest at the end.
 *
 * The file is P.tmi.partial, and the lock that keeps a second writer of P away. */
#ifndef TOKMAP_INDEX_WRITER_H
#define TOKMAP_INDEX_WRITER_H

#include "format/format.h"
#include "format/journal_record.h"
#include "tokmap.h"

typedef struct tokmap_i_index_writer tokmap_i_index_writer;

/* Creates or empties the file. TOKMAP_ERR_LOCKED while another process writes it. */
tokmap_status tokmap_i_index_writer_open(tokmap_i_index_writer **out, const char *path,
                                         tokmap_error *err);
/* The same for a file that the caller has opened and locked, and gives away even on failure. What
 * is in the file stays, until it is cleared or resumed. */
tokmap_status tokmap_i_index_writer_take(tokmap_i_index_writer **out, const char *path, int fd,
                                         tokmap_error *err);
tokmap_status tokmap_i_index_writer_clear(tokmap_i_index_writer *w, tokmap_error *err);
/* The next document ends at token `end`, counted from the first token of all. */
tokmap_status tokmap_i_index_writer_document(tokmap_i_index_writer *w, uint64_t end,
                                             tokmap_error *err);
/* The next block of tokens has this checksum. */
tokmap_status tokmap_i_index_writer_block(tokmap_i_index_writer *w, uint64_t checksum,
                                          tokmap_error *err);
/* The next source gave all documents and tokens since the one before it. */
typedef struct tokmap_i_new_source {
    const char *name;
    size_t name_bytes;
    uint64_t end_document, end_token;
    uint64_t input_bytes, input_checksum;
} tokmap_i_new_source;
tokmap_status tokmap_i_index_writer_source(tokmap_i_index_writer *w,
                                           const tokmap_i_new_source *source, tokmap_error *err);
uint64_t tokmap_i_index_writer_n_documents(const tokmap_i_index_writer *w);
uint64_t tokmap_i_index_writer_last_end(const tokmap_i_index_writer *w);

/* ---- Checkpoints ---- */

/* Makes all documents so far durable, and fills in what the index knows of a checkpoint: all but
 * tokens, note and sequence. */
tokmap_status tokmap_i_index_writer_save(tokmap_i_index_writer *w, tokmap_i_checkpoint *now,
                                         tokmap_error *err);
/* Lets all measured parts but the note point to what came last, until the next call. */
void tokmap_i_index_writer_tails(tokmap_i_index_writer *w, tokmap_i_record_parts *parts);
/* Takes over one checkpoint after the other. */
tokmap_status tokmap_i_index_writer_restore(tokmap_i_index_writer *w,
                                            const tokmap_i_checkpoint *now,
                                            const tokmap_i_record_parts *parts, tokmap_error *err);
/* Whether the file holds what the last checkpoint restored says. Changes nothing in it. */
tokmap_status tokmap_i_index_writer_check(tokmap_i_index_writer *w, uint64_t ends_checksum,
                                          tokmap_error *err);
/* Cuts off what is behind it. */
tokmap_status tokmap_i_index_writer_cut(tokmap_i_index_writer *w, tokmap_error *err);
/* The checksum of a whole block. */
uint64_t tokmap_i_index_writer_block_checksum(const tokmap_i_index_writer *w, uint64_t block);

/* Writes all sections and the header and flushes the file to the disk. The caller has filled in the
 * header's tokens, widths, ids and suffix; counts and sections are filled in here. */
tokmap_status tokmap_i_index_writer_finish(tokmap_i_index_writer *w, tokmap_i_header *header,
                                           const char *metadata, size_t metadata_bytes,
                                           tokmap_error *err);
/* Closes the file, which stays under its path. */
void tokmap_i_index_writer_close(tokmap_i_index_writer *w);

#endif /* TOKMAP_INDEX_WRITER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* meta_writer.h - values of documents: takes them row by row, and writes their section. */
#ifndef TOKMAP_META_WRITER_H
#define TOKMAP_META_WRITER_H

#include "writer/meta_spool.h"

/* What is known of a column so far. */
typedef struct tokmap_i_meta_state {
    tokmap_value_type type;
    uint64_t n_nulls, text_bytes;
    uint64_t first_document; /* with a value, if the type is not NULL */
    uint64_t first_real;     /* document with a double, if the type is FLOAT64 */
    bool has_inexact;        /* an integer that is not exact as a double; the first one: */
    int64_t inexact;
    uint64_t inexact_document;
} tokmap_i_meta_state;

typedef struct tokmap_i_meta_writer {
    tokmap_i_meta_spool spool;
    uint64_t n_rows; /* documents that have ended */
    bool has_row;    /* the next document has values: */
    tokmap_value row[TOKMAP_I_MAX_META_COLUMNS];
    tokmap_i_bytes row_text;
    tokmap_i_meta_state columns[TOKMAP_I_MAX_META_COLUMNS];
} tokmap_i_meta_writer;

/* Begins with these columns. TOKMAP_ERR_ARGUMENT: a name is not valid. */
tokmap_status tokmap_i_meta_writer_open(tokmap_i_meta_writer **out, const char *path,
                                        const char *const *names, uint32_t n_columns,
                                        tokmap_error *err);
/* Reads the first n_bytes of the file again, which hold n_rows documents, without changing it.
 * TOKMAP_ERR_CORRUPT if they do not match the checksum. */
typedef struct tokmap_i_meta_saved {
    uint64_t n_bytes, checksum, n_rows;
} tokmap_i_meta_saved;
tokmap_status tokmap_i_meta_writer_resume(tokmap_i_meta_writer **out, const char *path,
                                          const tokmap_i_meta_saved *saved, tokmap_error *err);
/* Cuts off what comes after them. */
tokmap_status tokmap_i_meta_writer_cut(tokmap_i_meta_writer *w, tokmap_error *err);
/* Accepts NULL. Does not remove the file. */
void tokmap_i_meta_writer_close(tokmap_i_meta_writer *w);

/* Whether the columns have these names, in this order. */
bool tokmap_i_meta_writer_has(const tokmap_i_meta_writer *w, const char *const *names,
                              uint32_t n_columns);
/* The values of the document that ends next, one for each column. */
tokmap_status tokmap_i_meta_writer_add(tokmap_i_meta_writer *w, const tokmap_value *values,
                                       tokmap_error *err);
/* A document ends. */
tokmap_status tokmap_i_meta_writer_end(tokmap_i_meta_writer *w, tokmap_error *err);
/* Makes the documents that have ended durable. */
tokmap_status tokmap_i_meta_writer_save(tokmap_i_meta_writer *w, tokmap_i_meta_saved *saved,
                                        tokmap_error *err);

/* Writes the section with `put`, from its first byte to its last. */
typedef tokmap_status tokmap_i_meta_put(void *context, const void *data, size_t n_bytes,
                                        tokmap_error *err);
tokmap_status tokmap_i_meta_writer_put(tokmap_i_meta_writer *w, tokmap_i_meta_put *put,
                                       void *context, tokmap_error *err);

#endif /* TOKMAP_META_WRITER_H */

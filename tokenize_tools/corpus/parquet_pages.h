/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_pages.h - the pages of a column, read ahead by threads; for parquet_column.c. */
#ifndef TOKMAP_PARQUET_PAGES_H
#define TOKMAP_PARQUET_PAGES_H

#include "corpus/parquet_column.h"

typedef struct parquet_pages parquet_pages;

parquet_pages *parquet_pages_new(const parquet_file *f, const parquet_element *column,
                                 parquet_rows rows, const parquet_column_options *options);
void parquet_pages_free(parquet_pages *p);
/* Moves the next page to *page, for parquet_pages_release. Before it waits for a page, the caller
 * must have released all but a dictionary of the same row group. 1, 0 at the end, or -1. */
int parquet_pages_next(parquet_pages *p, parquet_page *page, parquet_page_place *place,
                       failure *err);
/* How many pages were larger than the memory, and so were taken alone. */
uint64_t parquet_pages_n_large(parquet_pages *p);
/* Frees a page, whose memory counts as used until then. */
void parquet_pages_release(parquet_pages *p, parquet_page *page, const parquet_page_place *place);

#endif /* TOKMAP_PARQUET_PAGES_H */

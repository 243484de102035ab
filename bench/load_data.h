/* load_data.h - the datasets that `tokbench load` reads. */
#ifndef TOKMAP_LOAD_DATA_H
#define TOKMAP_LOAD_DATA_H

#include "bench.h"
#include "tokmap.h"

/* Random 16-bit tokens in documents of a thousand, in the page cache and mapped: a gigabyte, or
 * what the options say. Returns 0, or says what is wrong; close in any case. */
int load_data_open_hot(const bench_options *options, const tokmap_dataset **ds);
/* The same, 8 GiB of it, and not in the page cache. */
int load_data_open_cold(const bench_options *options, const tokmap_dataset **ds);
/* n_datasets of n_tokens zeros each, which are holes in files. */
int load_data_open_sparse(const bench_options *options, uint64_t n_tokens,
                          const tokmap_dataset **datasets, size_t n_datasets);
/* Closes and removes; NULL is no dataset. */
void load_data_close(const bench_options *options, const tokmap_dataset **datasets,
                     size_t n_datasets);

#endif /* TOKMAP_LOAD_DATA_H */

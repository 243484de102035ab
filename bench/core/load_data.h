/* SPDX-License-Identifier: Apache-2.0 */
/* load_data.h - the datasets that the loader pages read. */
#ifndef TOKMAP_LOAD_DATA_H
#define TOKMAP_LOAD_DATA_H

#include "core/bench.h"
#include "tokmap.h"
#include "tokmap_loader.h"

/* Opens the user's dataset, if one was named; else makes random 16-bit tokens in documents of a
 * thousand, as many as the options say or usual_bytes hold, not in the page cache. Returns 0, or
 * prints the error; close it in either case. */
int load_data_open(const bench_options *options, uint64_t usual_bytes, const tokmap_dataset **ds);
tokmap_dataset_info load_data_info(const tokmap_dataset *ds);
/* Whether it fits in the page cache: it must take at most half of the memory. */
bool load_data_fits(const tokmap_dataset *ds);
/* Smaller than 64 MiB: a trial or a test, for which short measures are enough. */
bool load_data_is_trial(const tokmap_dataset *ds);
/* Reads it in order and touches every page, so that all of it is in memory and mapped. */
int load_data_warm_up(const tokmap_dataset *ds);
typedef struct load_data_prefix {
    char s[4096];
} load_data_prefix;

/* The prefix of dataset i of those that are made here. */
load_data_prefix load_data_name(const bench_options *options, size_t i);
/* Makes dataset i, of n_tokens zeros, as a hole in a file. */
int load_data_make_sparse(const bench_options *options, size_t i, uint64_t n_tokens);
/* Opens n_datasets that were made, from `first` on. */
int load_data_open_made(const bench_options *options, size_t first, const tokmap_dataset **datasets,
                        size_t n_datasets);
/* NULL is accepted. Test data stays until other data replaces it, or the end. */
void load_data_close(const tokmap_dataset **datasets, size_t n_datasets);
/* Removes the first n_datasets: only files that were made here. */
void load_data_remove(const bench_options *options, size_t n_datasets);

/* NULL: the error was printed. Sets the sizes of structs. */
tokmap_loader *load_data_loader(tokmap_loader_options options);
/* The same for datasets that form one source. */
tokmap_loader *load_data_one_source(const tokmap_dataset *const *datasets, size_t n_datasets,
                                    tokmap_loader_options options);
/* ns for a row of the next n_steps batches: its address is taken, or it is gathered. -1: it failed,
 * and the error was printed. */
double load_data_steps_ns(tokmap_loader *l, uint64_t n_steps, const tokmap_gather_options *gather);
/* ns to locate a sample: the samples first + (i * step & mask) for many i. -1 as above. */
double load_data_locate_ns(tokmap_loader *l, uint64_t first, uint64_t step, uint64_t mask);

#endif /* TOKMAP_LOAD_DATA_H */

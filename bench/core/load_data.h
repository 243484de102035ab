/* load_data.h - the datasets that the pages of the loader read. */
#ifndef TOKMAP_LOAD_DATA_H
#define TOKMAP_LOAD_DATA_H

#include "core/bench.h"
#include "tokmap.h"
#include "tokmap_loader.h"

/* The caller's dataset, if he named one; else random 16-bit tokens in documents of a thousand, as
 * many as the options say or usual_bytes hold, and not in the page cache. Returns 0, or says what
 * is wrong; close in any case. */
int load_data_open(const bench_options *options, uint64_t usual_bytes, const tokmap_dataset **ds);
/* Whether it can stay in the page cache: it takes half of the memory at most. */
bool load_data_fits(const tokmap_dataset *ds);
/* Smaller than 64 MiB: somebody tries the program, or tests it, and short measures will do. */
bool load_data_is_trial(const tokmap_dataset *ds);
/* Reads it in order and touches every page, so that nothing is left to the system. */
int load_data_warm_up(const tokmap_dataset *ds);
/* n_datasets of n_tokens zeros each, which are holes in files. */
int load_data_make_sparse(const bench_options *options, uint64_t n_tokens, size_t n_datasets);
int load_data_open_sparse(const bench_options *options, const tokmap_dataset **datasets,
                          size_t n_datasets);
/* The prefix of number i of these. */
void load_data_name(const bench_options *options, size_t i, char *prefix, size_t n_bytes);
/* NULL is no dataset. Test data remain until the next is made in their place, or the end. */
void load_data_close(const tokmap_dataset **datasets, size_t n_datasets);
/* Takes away what was made here, and nothing else. */
void load_data_remove(const bench_options *options, size_t n_datasets);

/* NULL: it said why. Sizes of structs are set here. */
tokmap_loader *load_data_loader(tokmap_loader_options options);
/* The same for datasets that are one source. */
tokmap_loader *load_data_one_source(const tokmap_dataset *const *datasets, size_t n_datasets,
                                    tokmap_loader_options options);

#endif /* TOKMAP_LOAD_DATA_H */

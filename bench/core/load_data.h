/* SPDX-License-Identifier: Apache-2.0 */
/* load_data.h - the datasets that pages read, and the loaders that read them. What fails ends the
 * page (bench_fail).
 *
 * Datasets that are made here have numbers. They stay until another one with the number replaces
 * them, or until the page ends. */
#pragma once

#include "cli/paths.h"
#include "core/device.h"
#include "tokmap.h"
#include "tokmap_loader.h"
#include "tokmap_writer.h"

enum {
    LOAD_DATA_USUAL_MIB = 1024,
    LOAD_DATA_VOCABULARY = 50257, /* of random tokens, if a page does not say otherwise */
    LOAD_DATA_ROWS = 32           /* of a batch, if a page does not set them */
};

path_text load_data_name(const bench_options *options, size_t i);

/* The user's dataset, if one was named; else dataset 0. */
typedef struct load_data {
    tokmap_dataset *ds;
    tokmap_dataset_info info;
    device_file file; /* with its tokens */
    bool fits;        /* in the page cache: it takes at most half of the memory */
    bool is_trial;    /* less than 64 MiB: a trial or a test, for which short measures are enough */
} load_data;
/* Opens the user's dataset, or makes dataset 0 of random tokens: as many as the options say or
 * usual_mib hold. */
load_data load_data_open(const bench_options *options, uint64_t usual_mib);
void load_data_close(load_data *d);
/* Reads the tokens of dataset i in pages of 2 MiB, if the file system can: else a small file has
 * small pages, from which rows are copied more slowly than from the pages of a large file. */
void load_data_read_large_pages(const bench_options *options, size_t i);
/* Reads the dataset in order and touches every page, so that all of it is in memory and mapped. */
void load_data_warm_up(const tokmap_dataset *ds);

/* Makes a dataset of random tokens below vocab_size, the same on every machine, in documents of
 * 1,000: n_tokens, or up to 999 more. It is not in the page cache. */
void load_data_make_random(const bench_options *options, size_t i, uint64_t n_tokens,
                           uint32_t vocab_size);
/* Makes a dataset of n_tokens zeros in n_documents of random lengths, as a hole in the file, which
 * takes no disk space. */
void load_data_make_sparse(const bench_options *options, size_t i, uint64_t n_tokens,
                           uint64_t n_documents);
/* Makes dataset `to` with the index of `from` and a hole of its own. */
void load_data_copy_sparse(const bench_options *options, size_t from, size_t to, uint64_t n_tokens);
/* Returns options for a dataset of 16-bit tokens that may replace another one. */
tokmap_writer_options load_data_writer_options(void);
void load_data_finish(tokmap_writer *w);

/* Opens n_datasets that were made, from number `first` on. */
void load_data_open_made(const bench_options *options, size_t first, tokmap_dataset **datasets,
                         size_t n_datasets);
void load_data_close_made(tokmap_dataset *const *datasets, size_t n_datasets);
/* Opens and maps a file of a dataset without the library; tokmap_i_unmap ends it. */
const uint8_t *load_data_map(const char *prefix, const char *suffix, size_t *n_bytes);

/* The names of ways of reading. */
extern const char *const load_data_ways[];
/* Whether the loader really reads in this way if it is asked to; prints a message if not. */
bool load_data_works(tokmap_dataset *ds, tokmap_io io);
/* Opens a loader. Sets the sizes of structs, and, if a page has not, the rows of a batch and seed
 * 1. */
tokmap_loader *load_data_loader(tokmap_loader_options options);
/* The same as load_data_loader, but the datasets form one source. */
tokmap_loader *load_data_one_source(tokmap_dataset *const *datasets, size_t n_datasets,
                                    tokmap_loader_options options);
/* Takes the next batch; with `gather` it is copied. */
void load_data_next(tokmap_loader *l, tokmap_batch *b, const tokmap_gather_options *gather);
/* Measures the ns for a row of the next n_steps batches: its address is taken, or it is
 * gathered. */
double load_data_steps_ns(tokmap_loader *l, uint64_t n_steps, const tokmap_gather_options *gather);
/* Measures the ns to locate a sample: the samples first + (i * step & mask) for many i. */
double load_data_locate_ns(tokmap_loader *l, uint64_t first, uint64_t step, uint64_t mask);
/* Measures rows of 8,192 tokens in several places of the dataset, as `source` says, whose datasets
 * and weight are set here, beside rows in one place. names: of the rows, how many places, and of
 * rows in one place. */
void load_data_compare_places(const bench_options *options, bench_report *report,
                              const load_data *data, const tokmap_loader_source *source,
                              const char *const *names);

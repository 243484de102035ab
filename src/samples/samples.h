/* SPDX-License-Identifier: Apache-2.0 */
/* samples.h - the samples of a loader, in their order: its sources, mixture and skips. */
#pragma once

#include "order/skips.h"
#include "samples/sampler.h"

#define TOKMAP_I_MAX_SAMPLE ((uint64_t)1 << 62)
#define TOKMAP_I_SHUFFLE_BYTES ((uint64_t)1 << 20)
#define TOKMAP_I_GROUP_BLOCKS 64

/* The samples of a loader, in their order; does not change after open. */
typedef struct tokmap_i_samples {
    tokmap_loader_options o;              /* with the arrays that take_options copied */
    uint32_t length;                      /* inputs of a row */
    tokmap_i_rows_kind rows_kind;         /* with BEST_FIT; else all 0 */
    bool has_joined, has_views;           /* a dataset is joined, or has a view */
    bool has_document_lists;              /* of a dataset */
    uint64_t block_windows, group_blocks; /* 0 unless windows are shuffled in blocks */

    tokmap_dataset **datasets; /* of all sources, in order */
    uint32_t n_datasets;
    tokmap_i_source *sources;
    uint32_t n_sources, token_bytes; /* token_bytes: the widest */
    uint32_t largest_id;             /* of all datasets */
    tokmap_i_mixture *mixture;
    uint64_t end;        /* number of samples; UINT64_MAX: endless */
    uint32_t end_source; /* the source that ends it */
    tokmap_i_skips skips;
} tokmap_i_samples;

/* Copies a caller's options, their arrays, to our strides, and the weights of phases. The caller
 * frees them, also after an error. */
tokmap_status tokmap_i_samples_take_options(tokmap_loader_options *o,
                                            const tokmap_loader_options *options,
                                            tokmap_error *err);
void tokmap_i_samples_free_options(tokmap_loader_options *o);
/* Opens the samples that samples->o describes; all other fields are 0. Close them even after an
 * error; close also frees the options. */
tokmap_status tokmap_i_samples_open(tokmap_i_samples *samples, tokmap_error *err);
void tokmap_i_samples_close(tokmap_i_samples *samples);

/* Makes the mixture that options describe, of o->n_sources sources, which are the first ones of
 * `samples`. */
tokmap_status tokmap_i_samples_make_mixture(const tokmap_i_samples *samples,
                                            const tokmap_loader_options *o, tokmap_i_mixture **out,
                                            tokmap_error *err);
/* Makes the skips that options describe, before the sample `end`. The caller frees the gaps, also
 * after an error. */
tokmap_status tokmap_i_samples_make_skips(const tokmap_loader_options *o, uint64_t end,
                                          tokmap_i_skips *out, tokmap_error *err);

/* Returns TOKMAP_ERR_ARGUMENT if no step can begin at this sample. */
tokmap_status tokmap_i_samples_check(const tokmap_i_samples *samples, uint64_t sample,
                                     tokmap_error *err);
/* Returns the sample at which the step begins that is n_rows rows after another one. */
uint64_t tokmap_i_samples_after(const tokmap_i_samples *samples, uint64_t sample, uint64_t n_rows);

/* ---- Sources ---- */

/* Checks the sources of the options, and opens them. Close them even after an error. */
tokmap_status tokmap_i_sources_open(tokmap_i_samples *samples, tokmap_error *err);
void tokmap_i_sources_close(tokmap_i_samples *samples);
/* Adds the id of dataset d of a source, with this order id, to a hash that starts at
 * TOKMAP_I_HASH_START. */
uint64_t tokmap_i_source_add_id(uint64_t h, const tokmap_i_source *s, uint32_t d,
                                const uint8_t order_id[16]);
/* Whether a source has a list of windows, or of documents of a dataset. */
bool tokmap_i_source_has_list(const tokmap_i_source *s);
/* Returns the default block: as many windows as fit into a MiB of the widest tokens, the same
 * number for all sources. */
uint64_t tokmap_i_samples_default_block(uint32_t length, uint32_t token_bytes);

/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_case.h - what the tests of reading ahead share: datasets whose tokens tell where they
 * stand, a plan that is random and yet known, and the comparison. */
#pragma once

#include <stdatomic.h>

#include "base/base.h"
#include "dataset/dataset.h"
#include "loader/fetch.h"
#include "support/check.h"
#include "system/platform.h"
#include "tokmap_writer.h"

enum {
    CASE_MAX_DATASETS = 24,
    CASE_VOCAB = 50021
};

/* Datasets, and steps whose rows follow from `seed` and the number of the sample. */
typedef struct fetch_case {
    tokmap_dataset *datasets[CASE_MAX_DATASETS];
    uint32_t n_datasets;
    uint32_t seed, max_tokens;
    uint64_t end;            /* there is no sample from here on; 0: endless */
    uint64_t from, to;       /* rows lie among these tokens alone, unless both are 0 */
    uint64_t refused_sample; /* the plan fails for it, while refusals are left */
    unsigned plan_us;        /* how long planning a step takes */
    atomic_int n_refusals;
    atomic_uint_fast64_t n_planned; /* samples up to here */
} fetch_case;

const char *ahead_path(uint32_t dataset, const char *suffix);
void ahead_add(fetch_case *c, uint32_t n_tokens, uint32_t token_bytes);
/* A foreign file: its tokens follow a header, at an odd offset. */
void ahead_add_adopted(fetch_case *c, uint32_t n_tokens, uint32_t header_bytes);
/* Of so many files. */
void ahead_add_joined(fetch_case *c, uint32_t n_tokens, size_t n_files);
/* Those of joined datasets are otherwise opened when they are used. */
void ahead_open_files(fetch_case *c);
void ahead_close(fetch_case *c);

/* ---- The plan ---- */

/* Short and long rows, those that end with the dataset, and those that go on at its beginning. */
tokmap_i_fetch_row ahead_row(const fetch_case *c, uint64_t sample);
tokmap_i_fetch_options ahead_options(fetch_case *c, tokmap_io kind);
/* Skips the test where the machine cannot read directly. */
tokmap_i_fetch *ahead_fetch(const tokmap_i_fetch_options *o);
/* With the usual options, and from sample 0 on in steps of nine rows. */
tokmap_i_fetch *ahead_begin(fetch_case *c, tokmap_io kind);
void ahead_end(fetch_case *c, tokmap_i_fetch *f);

/* ---- What came ---- */

void ahead_compare(const fetch_case *c, const tokmap_i_fetch_row *rows, uint32_t n_rows,
                   uint64_t sample);
/* The next step, which must be there and right. */
void ahead_expect(fetch_case *c, tokmap_i_fetch *f, uint32_t n_rows, uint64_t sample);

#define EACH_KIND(name)                                                                            \
    TEST(populate_##name)                                                                          \
    {                                                                                              \
        name(TOKMAP_IO_POPULATE);                                                                  \
    }                                                                                              \
    TEST(read_##name)                                                                              \
    {                                                                                              \
        name(TOKMAP_IO_READ);                                                                      \
    }                                                                                              \
    TEST(direct_##name)                                                                            \
    {                                                                                              \
        name(TOKMAP_IO_DIRECT);                                                                    \
    }

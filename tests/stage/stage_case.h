/* SPDX-License-Identifier: Apache-2.0 */
/* stage_case.h - what the tests of the stage share: a corpus of two widths, the wide one joined,
 * loaders on it, and what a batch has to hold, worked out from the rows of another loader. */
#pragma once

#include "base/base.h"
#include "support/loader_corpus.h"
#include "tokmap_stage.h"

enum {
    LENGTH = 37,
    MAX_ROWS = 7,
    ALL = TOKMAP_STAGE_INPUTS | TOKMAP_STAGE_LABELS | TOKMAP_STAGE_POSITION_IDS |
          TOKMAP_STAGE_DOCUMENT_IDS | TOKMAP_STAGE_CU_SEQLENS
};

extern corpus_shape narrow, wide;

extern tokmap_loader_source sources[2];

/* Documents of 0 to twice `mean` tokens, about. */
void open_corpus_of(uint32_t mean);
void open_corpus(void);
void close_corpus(void);

typedef struct options {
    uint32_t length, n_rows, row_parts, n_ranks, row_stride;
    tokmap_windows windows;
    uint64_t max_epochs;
    tokmap_io io;
} options;

tokmap_loader *open_loader(const options *o);
tokmap_stage *open_stage(tokmap_loader *l, tokmap_stage_options o);
void next(tokmap_stage *s, tokmap_stage_batch *b, void *stream);
void release(tokmap_stage *s, const tokmap_stage_batch *b, void *stream);
/* A DLPack tensor, as version 0.8 has it. */
typedef struct dlpack {
    void *data;
    int32_t device_type, device_id, n_dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
    void *context;
    void (*deleter)(struct dlpack *self);
} dlpack;

int64_t value(const void *array, uint32_t width, size_t i);
/* Against the rows of a loader of the same order that has a row's every part. */
void check_batch(const tokmap_stage_batch *b, const tokmap_batch *rows,
                 const tokmap_stage_options *o);

/* Ways to stage that must not make a difference. */
enum {
    N_VARIANTS = 5
};
extern const tokmap_stage_options variants[N_VARIANTS];

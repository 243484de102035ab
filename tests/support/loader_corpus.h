/* SPDX-License-Identifier: Apache-2.0 */
/* loader_corpus.h - shared by the tests of the loader: datasets whose tokens tell their place, and
 * the expected rows, computed token by token. */
#pragma once

#include "support/check.h"
#include "tokmap_loader.h"
#include "tokmap_writer.h"

/* Sizes and strides in tokmap_loader_options. */
#define LOADER_SIZES                                                                               \
    .struct_size = sizeof(tokmap_loader_options), .source_stride = sizeof(tokmap_loader_source),   \
    .phase_stride = sizeof(tokmap_loader_phase), .row_stride = sizeof(tokmap_row),                 \
    .skip_stride = sizeof(tokmap_loader_skip)

enum {
    CORPUS_MAX_DOCUMENTS = 3000,
    CORPUS_MODES = 11, /* that change which window a sample is */
    ALL_PARTS = TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |
                TOKMAP_ROW_LOSS_MASK
};

/* Documents by their lengths, of tokens that are numbers from `first_id` on. */
typedef struct corpus_shape {
    const char *name;
    uint32_t n_tokens, first_id, token_bytes;
    uint32_t n_segments;  /* above 0: a joined dataset of so many files, PATH-0000.bin and on */
    uint32_t n_documents; /* 0: boundaries not known */
    uint32_t ends[CORPUS_MAX_DOCUMENTS];
    tokmap_dataset *ds;
    char path[600];
} corpus_shape;

extern uint64_t corpus_random_state; /* of corpus_any: any number below n */
uint32_t corpus_any(uint32_t n);
/* Documents of 0 to twice `mean` tokens, about. */
void corpus_cut(corpus_shape *c, uint32_t mean);
void corpus_shape_open(corpus_shape *c);
void corpus_shape_close(corpus_shape *c);
tokmap_loader *corpus_open_loader(const tokmap_loader_options *o);
/* What AUTO takes for data in memory: MAP, unless the file system of the tests cannot say that. */
tokmap_io corpus_way_in_memory(void);
/* The next batch, which must come. */
tokmap_batch corpus_next(tokmap_loader *l);
/* Puts it together; an input that a row lacks is 7. */
void corpus_gather(const tokmap_batch *b, bool mask_labels, int64_t *inputs, int64_t *labels);
/* Its shuffle, offset and windows. */
void corpus_set_mode(tokmap_loader_options *o, int mode);
/* The piece that has place i of the row, or NULL. */
const tokmap_piece *corpus_piece(const tokmap_row *row, uint32_t i);
uint32_t corpus_id(const tokmap_row *row, uint32_t i);
/* Token i of the row is the one at that place in the dataset. */
void corpus_check_tokens(const corpus_shape *c, const tokmap_row *row);
/* Whether a document that is not empty begins at the token. */
bool corpus_begins(const corpus_shape *c, uint64_t token);
/* Checks what the row says about its documents, token by token. */
void corpus_check_parts(const corpus_shape *c, const tokmap_row *row, uint32_t length, bool masked);

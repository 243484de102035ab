/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/stage_case.h"

corpus_shape narrow = {.name = "narrow", .n_tokens = 3000, .token_bytes = 2},
             wide = {.name = "wide",
                     .n_tokens = 1777,
                     .first_id = 100000,
                     .token_bytes = 4,
                     .n_segments = 23};

tokmap_loader_source sources[2];

void open_corpus_of(uint32_t mean)
{
    corpus_cut(&narrow, mean);
    corpus_cut(&wide, mean);
    corpus_shape_open(&narrow);
    corpus_shape_open(&wide);
    static tokmap_dataset *lists[2];
    lists[0] = narrow.ds;
    lists[1] = wide.ds;
    for (int i = 0; i < 2; i++)
        sources[i] =
            (tokmap_loader_source){.datasets = &lists[i], .n_datasets = 1, .weight = i + 1.0};
    sources[1].masked = 1;
}

void open_corpus(void)
{
    open_corpus_of(20);
}

void close_corpus(void)
{
    corpus_shape_close(&narrow);
    corpus_shape_close(&wide);
}

tokmap_loader *open_loader(const options *o)
{
    sources[0].max_epochs = o->max_epochs;
    const tokmap_loader_options lo = {.struct_size = sizeof lo,
                                      .sources = sources,
                                      .n_sources = 2,
                                      .source_stride = sizeof(tokmap_loader_source),
                                      .row_stride =
                                          o->row_stride ? o->row_stride : sizeof(tokmap_row),
                                      .sequence_length = o->length ? o->length : LENGTH,
                                      .batch_rows = o->n_rows ? o->n_rows : MAX_ROWS,
                                      .n_ranks = o->n_ranks,
                                      .seed = 7,
                                      .windows = o->windows,
                                      .row_parts = o->row_parts,
                                      .io = o->io};
    return corpus_open_loader(&lo);
}

tokmap_stage *open_stage(tokmap_loader *l, tokmap_stage_options o)
{
    tokmap_stage *s = NULL;
    tokmap_error err;
    o.struct_size = sizeof o;
    o.loader = l;
    CHECK_OK(tokmap_stage_open(&s, &o, &err), err);
    return s;
}

void next(tokmap_stage *s, tokmap_stage_batch *b, void *stream)
{
    tokmap_error err;
    *b = (tokmap_stage_batch){.struct_size = sizeof *b};
    CHECK_OK(tokmap_stage_next(s, b, stream, &err), err);
}

void release(tokmap_stage *s, const tokmap_stage_batch *b, void *stream)
{
    tokmap_error err;
    CHECK_OK(tokmap_stage_release(s, b, stream, &err), err);
}

int64_t value(const void *array, uint32_t width, size_t i)
{
    return width == 8 ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

void check_batch(const tokmap_stage_batch *b, const tokmap_batch *rows,
                 const tokmap_stage_options *o)
{
    const uint32_t in = o->input_bytes ? o->input_bytes : 4;
    const uint32_t out = o->label_bytes ? o->label_bytes : 8;
    uint32_t n_documents = 0, longest = 0;
    CHECK_EQ(b->first_sample, rows->first_sample);
    CHECK_EQ(b->step_sample, rows->step_sample);
    CHECK_EQ(b->n_rows, rows->n_rows);
    CHECK_EQ(b->sequence_length, LENGTH);
    for (uint32_t r = 0; r < b->n_rows; r++) {
        const tokmap_row *row = &rows->rows[r];
        for (uint32_t i = 0; i < LENGTH; i++) {
            const size_t at = r * LENGTH + i;
            const bool there = i + 1 < row->n_tokens;
            CHECK_INT(value(b->inputs, in, at), there ? corpus_id(row, i) : o->pad_id);
            CHECK_INT(value(b->labels, out, at),
                      there && row->loss_mask[i] ? corpus_id(row, i + 1) : o->ignore_index);
            CHECK_INT(b->position_ids[at], row->position_ids[i]);
            CHECK_INT(b->document_ids[at], row->document_ids[i]);
        }
        for (uint32_t d = 0; d < row->n_documents; d++)
            CHECK_INT(b->cu_seqlens[n_documents + d], r * LENGTH + row->cu_seqlens[d]);
        n_documents += row->n_documents;
        if (row->n_tokens <= LENGTH)
            CHECK_INT(b->cu_seqlens[n_documents++], r * LENGTH + row->n_tokens - 1);
        longest = MAX(longest, MAX(row->longest_document, LENGTH + 1 - row->n_tokens));
    }
    CHECK_EQ(b->n_documents, n_documents);
    CHECK_EQ(b->max_seqlen, longest);
    for (uint32_t d = n_documents; d <= b->n_rows * LENGTH; d++)
        CHECK_INT(b->cu_seqlens[d], b->n_rows * LENGTH);
}

const tokmap_stage_options variants[N_VARIANTS] = {
    {.outputs = ALL},
    {.outputs = ALL, .input_bytes = 8, .label_bytes = 4},
    {.outputs = ALL, .pad_id = 5, .has_ignore_index = 1, .ignore_index = -1},
    {.outputs = ALL, .no_thread = 1, .n_slots = 2, .n_host_slots = 1},
    {.outputs = ALL, .no_thread = 1, .n_slots = 9, .n_host_slots = 3},
};

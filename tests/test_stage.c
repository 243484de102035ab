/* The stage on the device that is always there: what it hands out is what the loader says, from
 * open to close, saved, restored, edited, exported and forked. */
#include <sys/wait.h>

#include "base.h"
#include "loader_corpus.h"
#include "tokmap_cuda.h"

enum {
    LENGTH = 37,
    MAX_ROWS = 7,
    ALL = TOKMAP_CUDA_INPUTS | TOKMAP_CUDA_LABELS | TOKMAP_CUDA_POSITION_IDS |
          TOKMAP_CUDA_DOCUMENT_IDS | TOKMAP_CUDA_CU_SEQLENS,
    ALL_PARTS = TOKMAP_ROW_DOCUMENTS | TOKMAP_ROW_POSITION_IDS | TOKMAP_ROW_DOCUMENT_IDS |
                TOKMAP_ROW_LOSS_MASK
};

static corpus_shape narrow = {.name = "narrow", .n_tokens = 3000, .token_bytes = 2},
                    wide = {.name = "wide", .n_tokens = 1777, .first_id = 100000, .token_bytes = 4};

static tokmap_loader_source sources[2];

static void open_corpus(void)
{
    corpus_cut(&narrow, 20);
    corpus_cut(&wide, 20);
    corpus_open(&narrow);
    corpus_open(&wide);
    static const tokmap_dataset *lists[2];
    lists[0] = narrow.ds;
    lists[1] = wide.ds;
    for (int i = 0; i < 2; i++)
        sources[i] =
            (tokmap_loader_source){.datasets = &lists[i], .n_datasets = 1, .weight = i + 1.0};
    sources[1].masked = 1;
}

static void close_corpus(void)
{
    corpus_close(&narrow);
    corpus_close(&wide);
}

typedef struct options {
    uint32_t n_rows, row_parts, n_ranks;
    tokmap_windows windows;
    uint64_t max_epochs;
} options;

static tokmap_loader *open_loader(const options *o)
{
    tokmap_loader *l = NULL;
    tokmap_error err;
    sources[0].max_epochs = o->max_epochs;
    const tokmap_loader_options lo = {.struct_size = sizeof lo,
                                      .sources = sources,
                                      .n_sources = 2,
                                      .sequence_length = LENGTH,
                                      .batch_rows = o->n_rows ? o->n_rows : MAX_ROWS,
                                      .n_ranks = o->n_ranks,
                                      .seed = 7,
                                      .windows = o->windows,
                                      .row_parts = o->row_parts};
    if (tokmap_loader_open(&l, &lo, &err))
        CHECK_FAIL("%s", err.text);
    return l;
}

static tokmap_cuda *open_stage(tokmap_loader *l, tokmap_cuda_options o)
{
    tokmap_cuda *s = NULL;
    tokmap_error err;
    o.struct_size = sizeof o;
    o.loader = l;
    o.device = TOKMAP_CUDA_HOST;
    if (tokmap_cuda_open(&s, &o, &err))
        CHECK_FAIL("%s", err.text);
    return s;
}

static void next(tokmap_cuda *s, tokmap_cuda_batch *b)
{
    tokmap_error err;
    *b = (tokmap_cuda_batch){.struct_size = sizeof *b};
    if (tokmap_cuda_next(s, b, NULL, &err))
        CHECK_FAIL("%s", err.text);
}

static void release(tokmap_cuda *s, const tokmap_cuda_batch *b)
{
    tokmap_error err;
    if (tokmap_cuda_release(s, b, NULL, &err))
        CHECK_FAIL("%s", err.text);
}

static int64_t value(const void *array, uint32_t width, size_t i)
{
    return width == 8 ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

/* Against the rows of a loader of the same order that has a row's every part. */
static void check_batch(const tokmap_cuda_batch *b, const tokmap_batch *rows,
                        const tokmap_cuda_options *o)
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

static const tokmap_cuda_options variants[] = {
    {.outputs = ALL},
    {.outputs = ALL, .delivery = TOKMAP_CUDA_PUSH, .input_bytes = 8, .label_bytes = 4},
    {.outputs = ALL, .delivery = TOKMAP_CUDA_DIRECT, .pad_id = 5, .ignore_index = -1},
    {.outputs = ALL, .no_thread = 1, .n_slots = 2, .n_host_slots = 1},
    {.outputs = ALL, .expand_in_next = 1, .n_copiers = 3},
    {.outputs = ALL, .expand_in_next = 1, .delivery = TOKMAP_CUDA_PUSH, .n_host_slots = 3},
    {.outputs = ALL, .no_thread = 1, .expand_in_next = 1, .n_slots = 9},
};

static void run_variant(const tokmap_cuda_options *given, tokmap_windows windows)
{
    const options o = {.row_parts = ALL_PARTS, .windows = windows};
    tokmap_cuda_options so = *given;
    so.ignore_index = so.ignore_index ? so.ignore_index : -100;
    tokmap_loader *mine = open_loader(&o), *l = open_loader(&o);
    tokmap_cuda *s = open_stage(l, so);
    tokmap_error err;
    for (int step = 0; step < 60; step++) {
        tokmap_batch rows = {.struct_size = sizeof rows};
        tokmap_cuda_batch b;
        CHECK_INT(tokmap_loader_next(mine, &rows, &err), TOKMAP_OK);
        next(s, &b);
        check_batch(&b, &rows, &so);
        CHECK_EQ(tokmap_cuda_position(s), tokmap_loader_position(mine));
        release(s, &b);
    }
    tokmap_cuda_close(s);
    CHECK_EQ(tokmap_loader_position(l), tokmap_loader_position(mine));
    tokmap_loader_close(l);
    tokmap_loader_close(mine);
}

TEST(hands_out_what_the_loader_says_in_every_variant)
{
    open_corpus();
    for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
        run_variant(&variants[v], TOKMAP_WINDOWS_CONCAT);
        run_variant(&variants[v], TOKMAP_WINDOWS_WITHIN_DOCUMENT);
    }
    close_corpus();
}

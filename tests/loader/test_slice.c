/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of rows for context parallelism: those of all ranks make the whole, with all labels. */
#include "support/loader_corpus.h"
#include "tokmap_stage.h"

enum {
    LENGTH = 24,
    ROWS = 3,
    N_STEPS = 30, /* more than an epoch, in which a row may wrap around */
    PAD = 77
};

static corpus_shape shape = {"slices", 2000, 5, 2, 0, 1, {0}, NULL, ""};

static int32_t mask_labels; /* of loaders with a loss mask */

typedef struct gathered {
    int64_t inputs[ROWS * LENGTH], labels[ROWS * LENGTH];
    int32_t positions[ROWS * LENGTH];
} gathered;

static tokmap_loader_options options_of(const tokmap_loader_source *source, int mode,
                                        tokmap_cp_mode cp)
{
    tokmap_loader_options o = {LOADER_SIZES,
                               .sources = source,
                               .n_sources = 1,
                               .sequence_length = LENGTH,
                               .batch_rows = ROWS,
                               .row_parts = ALL_PARTS,
                               .io = (tokmap_io)(1 + corpus_any(4))};
    corpus_set_mode(&o, mode);
    o.align = mode >= 8 ? 4 : 0;
    o.cp_mode = cp;
    return o;
}

static tokmap_batch take(tokmap_loader *l, gathered *g)
{
    tokmap_error err;
    const tokmap_batch b = corpus_next(l);
    const tokmap_gather_options o = {.struct_size = sizeof o,
                                     .format = TOKMAP_GATHER_I64,
                                     .pad_id = PAD,
                                     .mask_labels = mask_labels,
                                     .inputs = g->inputs,
                                     .labels = g->labels};
    CHECK_OK(tokmap_batch_gather(&b, &o, &err), err);
    memcpy(g->positions, b.rows[0].position_ids,
           (size_t)b.n_rows * b.sequence_length * sizeof *g->positions);
    return b;
}

/* Which place of a row input i of a slice is, if not of each document. */
static uint32_t place_of(uint32_t i, uint32_t rank, uint32_t size, tokmap_cp_mode cp)
{
    const uint32_t n = LENGTH / size;
    if (cp == TOKMAP_CP_CONTIGUOUS)
        return rank * n + i;
    return i < n / 2 ? rank * n / 2 + i : LENGTH - (rank + 1) * n / 2 + (i - n / 2);
}

static void compare(const gathered *whole, const gathered *part, uint32_t rank, uint32_t size,
                    tokmap_cp_mode cp)
{
    const uint32_t n = LENGTH / size;
    for (uint32_t at = 0; at < ROWS * n; at++) {
        const uint32_t from = at / n * LENGTH + place_of(at % n, rank, size, cp);
        CHECK_INT(part->inputs[at], whole->inputs[from]);
        CHECK_INT(part->labels[at], whole->labels[from]);
        CHECK_INT(part->positions[at], whole->positions[from]);
    }
}

/* Each input that is not padding and each label is in one slice. */
static void add_up(const gathered *part, uint32_t n, int64_t sums[4])
{
    for (uint32_t at = 0; at < ROWS * n; at++) {
        sums[0] += part->inputs[at] != PAD;
        sums[1] += part->inputs[at] == PAD ? 0 : part->inputs[at];
        sums[2] += part->labels[at] != -100;
        sums[3] += part->labels[at] == -100 ? 0 : part->labels[at];
    }
}

static void try_slices(int mode, uint32_t size, tokmap_cp_mode cp)
{
    static gathered whole, part;
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    tokmap_loader_options o = options_of(&source, mode, TOKMAP_CP_CONTIGUOUS);
    tokmap_loader *l = corpus_open_loader(&o), *of_rank[4];
    for (uint32_t r = 0; r < size; r++) {
        o = options_of(&source, mode, cp);
        o.cp_rank = r;
        o.cp_size = size;
        of_rank[r] = corpus_open_loader(&o);
    }
    for (int step = 0; step < N_STEPS; step++) {
        int64_t wanted[4] = {0}, sums[4] = {0};
        take(l, &whole);
        add_up(&whole, LENGTH, wanted);
        for (uint32_t r = 0; r < size; r++) {
            take(of_rank[r], &part);
            add_up(&part, LENGTH / size, sums);
            if (cp != TOKMAP_CP_DOCUMENTS)
                compare(&whole, &part, r, size, cp);
        }
        CHECK(memcmp(sums, wanted, sizeof sums) == 0);
    }
    for (uint32_t r = 0; r < size; r++)
        tokmap_loader_close(of_rank[r]);
    tokmap_loader_close(l);
}

TEST(slices_of_all_ranks_make_the_whole)
{
    corpus_cut(&shape, 20);
    corpus_shape_open(&shape);
    for (int mode = 0; mode < CORPUS_MODES; mode++) {
        try_slices(mode, 3, TOKMAP_CP_CONTIGUOUS);
        try_slices(mode, 4, TOKMAP_CP_ZIGZAG);
        if (mode >= 8)
            try_slices(mode, 2, TOKMAP_CP_DOCUMENTS);
    }
    corpus_shape_close(&shape);
}

/* ---- In the memory of a device ---- */

static void stage_slices(int mode, uint32_t size, tokmap_cp_mode cp)
{
    static gathered wanted;
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    tokmap_loader_options o = options_of(&source, mode, cp);
    tokmap_error err;
    tokmap_stage *s;
    o.row_parts &= mask_labels ? ALL_PARTS : ~(uint32_t)TOKMAP_ROW_LOSS_MASK;
    o.cp_size = size;
    o.cp_rank = corpus_any(size);
    o.seed = corpus_any(1000);
    tokmap_loader *mine = corpus_open_loader(&o), *l = corpus_open_loader(&o);
    const tokmap_stage_options so = {.struct_size = sizeof so,
                                     .loader = l,
                                     .device = TOKMAP_STAGE_HOST,
                                     .outputs = 31,
                                     .input_bytes = 8,
                                     .pad_id = PAD};
    const uint32_t n = ROWS * LENGTH / size;
    CHECK_OK(tokmap_stage_open(&s, &so, &err), err);
    for (int step = 0; step < N_STEPS; step++) {
        const tokmap_batch rows = take(mine, &wanted);
        tokmap_stage_batch b = {.struct_size = sizeof b};
        uint32_t n_documents = 0;
        CHECK_OK(tokmap_stage_next(s, &b, NULL, &err), err);
        CHECK_EQ(b.sequence_length, LENGTH / size);
        CHECK(memcmp(b.inputs, wanted.inputs, n * sizeof *wanted.inputs) == 0);
        CHECK(memcmp(b.labels, wanted.labels, n * sizeof *wanted.labels) == 0);
        CHECK(memcmp(b.position_ids, wanted.positions, n * sizeof *wanted.positions) == 0);
        CHECK(memcmp(b.document_ids, rows.rows->document_ids, n * sizeof(int32_t)) == 0);
        for (uint32_t r = 0; r < ROWS; r++) {
            const tokmap_row *row = &rows.rows[r];
            for (uint32_t d = 0; d < row->n_documents; d++)
                CHECK_INT(b.cu_seqlens[n_documents++], r * LENGTH + row->cu_seqlens[d]);
            if (row->cu_seqlens[row->n_documents] < LENGTH)
                CHECK_INT(b.cu_seqlens[n_documents++],
                          r * LENGTH + row->cu_seqlens[row->n_documents]);
            for (size_t k = 0; k < row->n_pieces; k++)
                CHECK_EQ(*(const uint16_t *)row->pieces[k].tokens,
                         shape.first_id + row->pieces[k].first_token);
        }
        CHECK_EQ(b.n_documents, n_documents);
        CHECK_INT(b.cu_seqlens[n_documents], ROWS * LENGTH);
        CHECK_OK(tokmap_stage_release(s, &b, NULL, &err), err);
    }
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    tokmap_loader_close(mine);
}

TEST(a_stage_has_the_same_slices)
{
    corpus_shape_open(&shape);
    for (int i = 0; i < 2 * CORPUS_MODES; i++) {
        const int mode = i / 2;
        mask_labels = i % 2;
        stage_slices(mode, 3, TOKMAP_CP_CONTIGUOUS);
        stage_slices(mode, 4, TOKMAP_CP_ZIGZAG);
        if (mode >= 8)
            stage_slices(mode, 2, TOKMAP_CP_DOCUMENTS);
    }
    mask_labels = 0;
    corpus_shape_close(&shape);
}

static uint64_t bytes_of_a_step(uint32_t size)
{
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    tokmap_loader_options o = options_of(&source, 0, TOKMAP_CP_ZIGZAG);
    tokmap_stage_info info = {.struct_size = sizeof info};
    tokmap_error err;
    tokmap_stage *s;
    o.sequence_length = 8 * LENGTH;
    o.cp_size = size;
    tokmap_loader *l = corpus_open_loader(&o);
    const tokmap_stage_options so = {
        .struct_size = sizeof so, .loader = l, .device = TOKMAP_STAGE_HOST, .no_thread = 1};
    tokmap_stage_batch b = {.struct_size = sizeof b};
    CHECK_OK(tokmap_stage_open(&s, &so, &err), err);
    CHECK_OK(tokmap_stage_next(s, &b, NULL, &err), err);
    CHECK_OK(tokmap_stage_get_info(s, &info), err);
    tokmap_stage_close(s);
    tokmap_loader_close(l);
    return info.bytes_moved / info.n_batches;
}

/* Tokens and labels of an eighth of a row are a quarter of its tokens. */
TEST(only_the_slice_crosses_the_bus)
{
    corpus_shape_open(&shape);
    CHECK(bytes_of_a_step(8) < bytes_of_a_step(1) / 2);
    corpus_shape_close(&shape);
}

static void edit(void *context, tokmap_row *rows, const tokmap_batch *batch)
{
    (void)context;
    (void)rows;
    (void)batch;
}

TEST(what_needs_whole_rows_is_refused)
{
    static int64_t rows[ROWS * (LENGTH + 1)];
    tokmap_error err;
    tokmap_stage *s;
    corpus_shape_open(&shape);
    tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    tokmap_loader_options o = options_of(&source, 0, TOKMAP_CP_ZIGZAG);
    o.cp_size = 2;
    tokmap_loader *l = corpus_open_loader(&o);
    const tokmap_batch b = corpus_next(l);
    const tokmap_gather_options whole = {
        .struct_size = sizeof whole, .format = TOKMAP_GATHER_ROWS_I64, .inputs = rows};
    CHECK_REFUSED(tokmap_batch_gather(&b, &whole, &err), TOKMAP_ERR_ARGUMENT, err, "slices");
    static int32_t positions[ROWS * LENGTH];
    CHECK_REFUSED(tokmap_loader_set_parts(l, positions, NULL, NULL, &err), TOKMAP_ERR_ARGUMENT, err,
                  "no cp_size");
    tokmap_stage_options so = {.struct_size = sizeof so, .loader = l, .device = TOKMAP_STAGE_HOST};
    so.edit = edit;
    CHECK_REFUSED(tokmap_stage_open(&s, &so, &err), TOKMAP_ERR_ARGUMENT, err, "edit needs whole");
    so.edit = NULL;
    so.outputs = TOKMAP_STAGE_POSITION_IDS | TOKMAP_STAGE_ROW_POSITIONS;
    CHECK_REFUSED(tokmap_stage_open(&s, &so, &err), TOKMAP_ERR_ARGUMENT, err, "POSITIONS needs");
    so.outputs = TOKMAP_STAGE_INPUTS;
    so.pad_id = 65536;
    CHECK_REFUSED(tokmap_stage_open(&s, &so, &err), TOKMAP_ERR_ARGUMENT, err, "below 65,536");
    tokmap_loader_close(l);
    so.pad_id = 0;
    o.row_parts = TOKMAP_ROW_DOCUMENTS;
    so.loader = l = corpus_open_loader(&o);
    so.outputs = TOKMAP_STAGE_DOCUMENT_IDS;
    CHECK_REFUSED(tokmap_stage_open(&s, &so, &err), TOKMAP_ERR_ARGUMENT, err, "DOCUMENT_IDS for");
    tokmap_loader_close(l);
    corpus_shape_close(&shape);
}

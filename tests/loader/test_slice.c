/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of rows for context parallelism: those of all ranks make the whole, with all labels. */
#include "support/loader_corpus.h"

enum {
    LENGTH = 24,
    ROWS = 3,
    N_STEPS = 20,
    PAD = 77
};

static corpus_shape shape = {"slices", 2000, 5, 2, 0, 1, {0}, NULL, ""};

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

static void take(tokmap_loader *l, gathered *g)
{
    tokmap_error err;
    const tokmap_batch b = corpus_next(l);
    const tokmap_gather_options o = {.struct_size = sizeof o,
                                     .format = TOKMAP_GATHER_I64,
                                     .pad_id = PAD,
                                     .inputs = g->inputs,
                                     .labels = g->labels};
    CHECK_OK(tokmap_batch_gather(&b, &o, &err), err);
    memcpy(g->positions, b.rows[0].position_ids,
           (size_t)b.n_rows * b.sequence_length * sizeof *g->positions);
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
    const tokmap_dataset *ds = shape.ds;
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

TEST(whole_rows_of_slices_and_their_stage_are_refused)
{
    static int64_t rows[ROWS * (LENGTH + 1)];
    tokmap_error err;
    corpus_shape_open(&shape);
    const tokmap_dataset *ds = shape.ds;
    const tokmap_loader_source source = {.datasets = &ds, .n_datasets = 1};
    tokmap_loader_options o = options_of(&source, 0, TOKMAP_CP_ZIGZAG);
    o.cp_size = 2;
    tokmap_loader *l = corpus_open_loader(&o);
    const tokmap_batch b = corpus_next(l);
    const tokmap_gather_options whole = {
        .struct_size = sizeof whole, .format = TOKMAP_GATHER_ROWS_I64, .inputs = rows};
    CHECK_REFUSED(tokmap_batch_gather(&b, &whole, &err), TOKMAP_ERR_ARGUMENT, err, "slices");
    tokmap_loader_close(l);
    corpus_shape_close(&shape);
}

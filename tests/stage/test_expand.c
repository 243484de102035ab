/* SPDX-License-Identifier: Apache-2.0 */
/* From images to batches, in three ways: a reference that reads like tokmap_stage.h and section
 * 7 of docs/ORDER.md, token by token, from rows; the plain C of the library; and the kernel's
 * own text, on the processor. */
#include "support/check.h"

#include "base/base.h"
#include "stage/cuda_on_cpu.h"
#include "stage/expand.h"
#include "stage/slot_image.h"
#include "tokmap_stage.h"

enum {
    MAX_ROWS = 9,
    MAX_LENGTH = 6200,
    MAX_INPUTS = MAX_ROWS * MAX_LENGTH,
    MAX_CU = MAX_INPUTS + 300,
    N_OUTPUTS = 5,
    GUARD = 64, /* bytes before and behind an output */
    UNTOUCHED = 0xC3,
    TILE = TOKMAP_I_TILE,
    ALL = (1 << N_OUTPUTS) - 1,
    OF_DOCUMENTS = TOKMAP_STAGE_POSITION_IDS | TOKMAP_STAGE_DOCUMENT_IDS | TOKMAP_STAGE_CU_SEQLENS
};
static const char *const NAMES[N_OUTPUTS] = {"inputs", "labels", "position_ids", "document_ids",
                                             "cu_seqlens"};

/* ---- Batches ---- */

typedef enum cuts {
    CUTS_NONE,
    CUTS_FEW,
    CUTS_SOME,
    CUTS_MOST,
    CUTS_EVERYWHERE, /* each document is one token */
    CUTS_AT_TILES,   /* at begins of tiles and beside them */
    CUTS_AT_WORDS,   /* likewise, of 32 inputs */
    N_CUTS
} cuts;

/* What a batch is to be like. */
typedef struct plan {
    uint32_t n_rows, length;
    uint32_t widths; /* of tokens: 2, 4, or 2 | 4: mixed */
    cuts cuts;
    bool has_short_rows, has_masks;
    uint32_t outputs; /* TOKMAP_STAGE_... */
    uint32_t input_bytes, label_bytes, pad_id;
    int64_t ignore;
    uint32_t n_cu; /* 0: one more than there are documents */
} plan;

typedef struct source_row {
    uint8_t *tokens;
    int32_t *cu_seqlens;
    uint8_t *mask;
} source_row;

static struct {
    plan plan;
    source_row sources[MAX_ROWS];
    tokmap_row rows[MAX_ROWS];
    tokmap_i_image_shape shape;
    uint8_t *image; /* exactly as much of it as crosses the bus */
    tokmap_i_expand_job job;
    uint32_t n_documents, longest;
    int64_t wanted[N_OUTPUTS][MAX_CU];
    uint64_t n_wanted[N_OUTPUTS];
} now;

/* What has come up, so that no change of the generator makes the random cases poorer unseen. */
static struct {
    uint32_t widths[2][2]; /* of inputs and labels */
    uint64_t tile_boundaries, documents_of_one, short_rows, one_input, masked;
    uint64_t short_at_tile, last_tiles_of_one, no_documents, row_positions, small_cu, cases;
} seen;

static void *take(size_t alignment, size_t n_bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, alignment, MAX(n_bytes, 1)))
        abort();
    memset(memory, UNTOUCHED, n_bytes);
    return memory;
}

static bool cut_here(cuts style, uint32_t i)
{
    static const uint32_t one_of[] = {[CUTS_FEW] = 700, [CUTS_SOME] = 25};
    switch (style) {
    case CUTS_FEW:
    case CUTS_SOME:
        return check_one_in(one_of[style]);
    case CUTS_MOST:
        return !check_one_in(4);
    case CUTS_EVERYWHERE:
        return true;
    case CUTS_AT_TILES:
        return (i + 1) % TILE <= 2 && !check_one_in(3);
    case CUTS_AT_WORDS:
        return (i + 1) % 32 <= 2 && check_one_in(2);
    default:
        return false;
    }
}

static void make_documents(tokmap_row *row, source_row *from)
{
    const uint32_t n_inputs = row->n_tokens - 1;
    int32_t *cu = from->cu_seqlens = take(16, (n_inputs + 1) * sizeof *cu);
    uint32_t n = 1;
    cu[0] = 0;
    for (uint32_t i = 1; i < n_inputs; i++)
        if (cut_here(now.plan.cuts, i))
            cu[n++] = (int32_t)i;
    cu[n] = (int32_t)n_inputs;
    row->cu_seqlens = cu;
    row->n_documents = n;
    for (uint32_t d = 0; d < n; d++) {
        const uint32_t n_here = (uint32_t)(cu[d + 1] - cu[d]);
        row->longest_document = MAX(row->longest_document, n_here);
        seen.tile_boundaries += d > 0 && cu[d] % TILE == 0;
        seen.documents_of_one += n_here == 1;
    }
}

static void make_tokens(tokmap_row *row, source_row *from)
{
    const size_t n_bytes = (size_t)row->n_tokens * row->token_bytes;
    from->tokens = take(16, n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        from->tokens[i] = (uint8_t)(check_bits() >> 24);
    row->tokens = from->tokens;
}

static void make_mask(tokmap_row *row, source_row *from)
{
    const uint32_t style = check_below(4);
    from->mask = take(16, now.plan.length);
    for (uint32_t i = 0; i < now.plan.length; i++)
        from->mask[i] = style == 0 ? 0 : style == 1 ? 1 : (uint8_t)check_below(2);
    row->loss_mask = from->mask;
    seen.masked++;
}

/* Tokens of a row that may be shorter, some of them by the end of a tile. */
static uint32_t short_row(void)
{
    const uint32_t length = now.plan.length;
    const uint32_t at_tile = TILE * (1 + check_below(length / TILE)) - 1 + check_below(4);
    if (at_tile <= length && check_one_in(2))
        return at_tile;
    return check_one_in(4) ? 2 : 2 + check_below(length);
}

static void make_row(tokmap_row *row, source_row *from)
{
    const plan *p = &now.plan;
    *row = (tokmap_row){.n_tokens = p->length + 1};
    *from = (source_row){0};
    row->token_bytes = p->widths == 6 ? 2 + 2 * check_below(2) : p->widths;
    if (p->has_short_rows && check_one_in(2))
        row->n_tokens = short_row();
    seen.short_at_tile += row->n_tokens <= p->length && row->n_tokens % TILE == 0;
    seen.short_rows += row->n_tokens <= p->length;
    seen.one_input += row->n_tokens == 2;
    seen.last_tiles_of_one += row->n_tokens > TILE && row->n_tokens % TILE == 1;
    make_tokens(row, from);
    make_documents(row, from);
    if (p->has_masks && !check_one_in(4))
        make_mask(row, from);
}

/* Only what crosses the bus is there for those who read the image. */
static void make_image(void)
{
    const plan *p = &now.plan;
    tokmap_i_image image = {0};
    uint32_t n_most = 0;
    for (uint32_t r = 0; r < p->n_rows; r++)
        n_most += now.rows[r].n_documents + 1;
    now.shape = (tokmap_i_image_shape){.n_rows = p->n_rows,
                                       .length = p->length,
                                       .token_bytes = p->widths & 4 ? 4 : 2,
                                       .has_masks = p->has_masks,
                                       .has_documents = p->outputs & TOKMAP_STAGE_ROW_POSITIONS
                                                            ? p->outputs & OF_DOCUMENTS &
                                                                  ~TOKMAP_STAGE_POSITION_IDS
                                                            : p->outputs & OF_DOCUMENTS};
    now.shape.max_boundaries = now.shape.has_documents ? n_most : 0;
    image.memory = take(64, tokmap_i_image_bytes(&now.shape));
    CHECK(tokmap_i_image_begin(&image, &now.shape, now.rows));
    for (uint32_t r = 0; r < p->n_rows; r++)
        memcpy(tokmap_i_image_tokens(&image, r), now.rows[r].tokens,
               (size_t)now.rows[r].n_tokens * now.rows[r].token_bytes);
    now.job = tokmap_i_image_job(&image, &now.shape);
    now.image = take(16, image.n_bytes);
    memcpy(now.image, image.memory, image.n_bytes);
    free(image.memory);
    now.n_documents = image.n_boundaries;
    now.longest = image.longest;
    seen.no_documents += !now.shape.has_documents;
}

static void free_batch(void)
{
    for (uint32_t r = 0; r < now.plan.n_rows; r++) {
        free(now.sources[r].tokens);
        free(now.sources[r].cu_seqlens);
        free(now.sources[r].mask);
    }
    free(now.image);
}

/* ---- The reference ---- */

static uint32_t token_at(const tokmap_row *row, uint32_t i)
{
    uint32_t wide = 0;
    uint16_t narrow = 0;
    if (row->token_bytes == 4) {
        memcpy(&wide, (const uint8_t *)row->tokens + i * 4, 4);
        return wide;
    }
    memcpy(&narrow, (const uint8_t *)row->tokens + i * 2, 2);
    return narrow;
}

/* Starts of documents in 1 .. i, and the last one in 0 .. i. */
static int64_t count_starts(const tokmap_row *row, uint32_t i, int64_t *last)
{
    int64_t n = 0;
    *last = 0;
    for (uint32_t d = 1; d < row->n_documents && row->cu_seqlens[d] <= (int64_t)i; d++) {
        n++;
        *last = row->cu_seqlens[d];
    }
    return n;
}

static void reference_row(uint32_t r)
{
    const tokmap_row *row = &now.rows[r];
    const plan *p = &now.plan;
    const bool by_row = p->outputs & TOKMAP_STAGE_ROW_POSITIONS;
    int64_t last = 0, document = 0;
    uint32_t counted = 0; /* anew at each start only, or this would take the square of L */
    for (uint32_t i = 0; i < p->length; i++) {
        const size_t at = (size_t)r * p->length + i;
        const bool there = i < row->n_tokens - 1;
        const bool counts = there && (!row->loss_mask || row->loss_mask[i]);
        if (i == 0 || (counted < row->n_documents && row->cu_seqlens[counted] == (int64_t)i)) {
            document = count_starts(row, i, &last);
            counted++;
        }
        now.wanted[0][at] = there ? token_at(row, i) : p->pad_id;
        now.wanted[1][at] = counts ? token_at(row, i + 1) : p->ignore;
        now.wanted[2][at] = there ? (int64_t)i - (by_row ? 0 : last) : 0;
        now.wanted[3][at] = there ? document : row->n_documents;
    }
}

static void reference(void)
{
    const plan *p = &now.plan;
    uint32_t n = 0, longest = 0;
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const tokmap_row *row = &now.rows[r];
        const uint32_t begin = r * p->length, n_inputs = row->n_tokens - 1;
        reference_row(r);
        for (uint32_t d = 0; d < row->n_documents; d++) {
            longest = MAX(longest, (uint32_t)(row->cu_seqlens[d + 1] - row->cu_seqlens[d]));
            now.wanted[4][n++] = begin + row->cu_seqlens[d];
        }
        if (n_inputs < p->length) {
            longest = MAX(longest, p->length - n_inputs);
            now.wanted[4][n++] = begin + n_inputs;
        }
    }
    if (now.shape.has_documents) {
        CHECK_EQ(now.n_documents, n);
        CHECK_EQ(now.longest, longest);
    }
    now.n_wanted[4] = p->n_cu ? p->n_cu : n + 1;
    CHECK(now.n_wanted[4] <= MAX_CU);
    seen.small_cu += now.n_wanted[4] <= n;
    for (uint64_t i = n; i < now.n_wanted[4]; i++)
        now.wanted[4][i] = (int64_t)p->n_rows * p->length;
    for (int k = 0; k < 4; k++)
        now.n_wanted[k] = (uint64_t)p->n_rows * p->length;
}

/* ---- Outputs ---- */

typedef struct output {
    uint8_t *memory, *begin;
    uint32_t width;
    size_t n_bytes; /* without guards */
} output;

static uint32_t width_of(int k)
{
    return k == 0 ? now.plan.input_bytes : k == 1 ? now.plan.label_bytes : 4;
}

/* Aligned to what it holds, and to no more. */
static void open_output(output *o, int k)
{
    o->width = width_of(k);
    o->n_bytes = now.n_wanted[k] * o->width;
    o->memory = take(64, GUARD + 64 + o->n_bytes + GUARD);
    o->begin = o->memory + GUARD + check_below(64 / o->width) * o->width;
}

static void check_output(const output *o, int k, const char *who)
{
    const uint8_t *end = o->begin + o->n_bytes;
    const uint8_t *last = o->memory + GUARD + 64 + o->n_bytes + GUARD;
    for (const uint8_t *b = o->memory; b < last; b++)
        if ((b < o->begin || b >= end) && *b != UNTOUCHED)
            CHECK_FAIL("%s wrote outside of %s", who, NAMES[k]);
    for (uint64_t i = 0; i < now.n_wanted[k]; i++) {
        int64_t wanted = now.wanted[k][i], got;
        int32_t narrow;
        memcpy(&narrow, o->begin + i * o->width, sizeof narrow);
        got = narrow;
        if (o->width == 8)
            memcpy(&got, o->begin + i * 8, sizeof got);
        else
            wanted = (int32_t)wanted;
        if (got != wanted)
            CHECK_FAIL("%s, %s of row %" PRIu64 ", %" PRIu64 " of %" PRIu32 " inputs: %" PRId64
                       ", not %" PRId64,
                       who, NAMES[k], i / now.plan.length, i % now.plan.length, now.plan.length,
                       got, wanted);
    }
}

static void shuffle(uint16_t *numbers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = (uint16_t)i;
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = check_below(i);
        const uint16_t last = numbers[i - 1];
        numbers[i - 1] = numbers[k];
        numbers[k] = last;
    }
}

static void run_kernel(const tokmap_i_expand_job *job)
{
    static cuda_orders orders;
    const uint32_t n_blocks = job->n_rows * job->n_tiles;
    uint16_t *blocks = take(16, n_blocks * sizeof *blocks);
    shuffle(blocks, n_blocks);
    for (uint32_t b = 0; b < n_blocks; b++) {
        for (int phase = 0; phase < CUDA_PHASES; phase++)
            shuffle(orders.threads[phase], TOKMAP_I_BLOCK_THREADS);
        cuda_run_block(job, blocks[b], &orders, (uint8_t)check_bits());
    }
    free(blocks);
}

static void run_and_check(void (*run)(const tokmap_i_expand_job *), const char *who)
{
    tokmap_i_expand_job job = now.job;
    output outputs[N_OUTPUTS];
    uint64_t *places[N_OUTPUTS] = {&job.inputs, &job.labels, &job.position_ids, &job.document_ids,
                                   &job.cu_seqlens};
    job.image = (uint64_t)(uintptr_t)now.image;
    job.ignore = now.plan.ignore;
    job.input_bytes = now.plan.input_bytes;
    job.label_bytes = now.plan.label_bytes;
    job.pad_id = now.plan.pad_id;
    job.row_positions = (now.plan.outputs & TOKMAP_STAGE_ROW_POSITIONS) != 0;
    job.n_cu = (uint32_t)now.n_wanted[4];
    for (int k = 0; k < N_OUTPUTS; k++) {
        open_output(&outputs[k], k);
        *places[k] = now.plan.outputs & 1u << k ? (uint64_t)(uintptr_t)outputs[k].begin : 0;
    }
    run(&job);
    for (int k = 0; k < N_OUTPUTS; k++) {
        if (*places[k])
            check_output(&outputs[k], k, who);
        free(outputs[k].memory);
    }
}

static void check_plan(const plan *p)
{
    now.plan = *p;
    for (uint32_t r = 0; r < p->n_rows; r++)
        make_row(&now.rows[r], &now.sources[r]);
    make_image();
    reference();
    run_and_check(tokmap_i_expand, "expand.c");
    run_and_check(run_kernel, "expand.cu");
    seen.widths[p->input_bytes == 8][p->label_bytes == 8]++;
    seen.row_positions += (p->outputs & TOKMAP_STAGE_ROW_POSITIONS) != 0;
    seen.cases++;
    free_batch();
}

/* ---- Tests ---- */

static plan usual(uint32_t n_rows, uint32_t length)
{
    return (plan){.n_rows = n_rows,
                  .length = length,
                  .widths = 2,
                  .cuts = CUTS_SOME,
                  .outputs = ALL,
                  .input_bytes = 4,
                  .label_bytes = 8,
                  .pad_id = 50256,
                  .ignore = -100};
}

TEST(every_length_around_words_and_tiles)
{
    for (uint32_t length = 1; length <= 3 * TILE + 3; length++) {
        const uint32_t to_tile = (length + 3) % TILE;
        if (length > 140 && to_tile > 6 && !(check_long() && (length + 1) % 32 <= 2))
            continue;
        for (cuts c = CUTS_NONE; c < N_CUTS; c++) {
            plan p = usual(length < 200 ? 3 : 1, length);
            p.cuts = c;
            p.widths = c & 1 ? 4 : 2;
            p.has_masks = true;
            p.has_short_rows = length % 5 == 0;
            check_plan(&p);
        }
    }
}

TEST(every_choice_of_outputs_and_widths)
{
    for (uint32_t outputs = 1; outputs <= ALL; outputs++) {
        for (uint32_t k = 0; k < 8; k++) {
            plan p = usual(3, 77 + outputs);
            p.outputs = outputs | (k & 1 ? TOKMAP_STAGE_ROW_POSITIONS : 0);
            p.input_bytes = k & 2 ? 8 : 4;
            p.label_bytes = k & 4 ? 8 : 4;
            p.widths = 6;
            p.has_masks = p.has_short_rows = true;
            check_plan(&p);
        }
    }
}

TEST(cu_seqlens_of_any_room)
{
    for (uint32_t n_cu = 1; n_cu < 1400; n_cu += n_cu < 40 ? 1 : 97) {
        plan p = usual(4, 100);
        p.cuts = CUTS_MOST;
        p.n_cu = n_cu;
        check_plan(&p);
        p.outputs = TOKMAP_STAGE_CU_SEQLENS;
        check_plan(&p);
    }
}

static uint32_t random_length(void)
{
    switch (check_below(5)) {
    case 0:
        return 1 + check_below(6000);
    case 1:
        return TILE * (1 + check_below(3)) - 3 + check_below(7);
    case 2:
        return 32 * (1 + check_below(190)) - 2 + check_below(5);
    default:
        return 1 + check_below(300);
    }
}

static plan random_plan(void)
{
    static const uint32_t widths[] = {2, 4, 6};
    static const int64_t ignored[] = {-100, -1, 0, INT32_MAX, INT64_MIN};
    const uint32_t length = random_length();
    plan p = {.n_rows = 1 + check_below(MAX_ROWS),
              .length = length,
              .widths = widths[check_below(3)],
              .cuts = (cuts)check_below(N_CUTS),
              .has_short_rows = check_one_in(2),
              .has_masks = check_one_in(2),
              .outputs = check_one_in(2) ? ALL : 1 + check_below(ALL),
              .input_bytes = 4 + 4 * check_below(2),
              .label_bytes = 4 + 4 * check_below(2),
              .pad_id = check_one_in(2) ? 0 : check_bits(),
              .ignore = ignored[check_below(5)]};
    if (check_one_in(3))
        p.outputs |= TOKMAP_STAGE_ROW_POSITIONS;
    if (check_one_in(2))
        p.n_cu = 1 + check_below(check_one_in(2) ? 20 : p.n_rows * length + 290);
    return p;
}

TEST(random_batches)
{
    const int n_cases = (check_long() ? 6000 : 500) / (check_sanitized() ? 5 : 1);
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < n_cases; i++) {
        const plan p = random_plan();
        check_plan(&p);
    }
    CHECK_EQ(seen.cases, n_cases);
    CHECK(seen.widths[0][0] && seen.widths[0][1] && seen.widths[1][0] && seen.widths[1][1]);
    CHECK(seen.tile_boundaries && seen.documents_of_one && seen.masked && seen.short_rows);
    CHECK(seen.one_input && seen.last_tiles_of_one && seen.no_documents && seen.row_positions);
    CHECK(seen.small_cu && seen.short_at_tile);
}

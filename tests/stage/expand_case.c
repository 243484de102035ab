/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/expand_case.h"

enum {
    MAX_ROWS = 9,
    MAX_LENGTH = 6200,
    MAX_INPUTS = MAX_ROWS * MAX_LENGTH,
    MAX_CU = MAX_INPUTS + 300,
    GUARD = 64, /* bytes before and behind an output and an image */
    UNTOUCHED = 0xC3,
    TILE = TOKMAP_I_TILE,
    OF_DOCUMENTS = TOKMAP_STAGE_POSITION_IDS | TOKMAP_STAGE_DOCUMENT_IDS | TOKMAP_STAGE_CU_SEQLENS
};
static const char *const NAMES[EXPAND_OUTPUTS] = {"inputs", "labels", "position_ids",
                                                  "document_ids", "cu_seqlens"};

/* ---- Batches ---- */

typedef struct source_row {
    uint8_t *tokens; /* somewhere in 16 bytes more */
    uint8_t *labels; /* of a slice */
    int32_t *cu_seqlens;
    uint8_t *mask;
} source_row;

static struct {
    plan plan;
    source_row sources[MAX_ROWS];
    tokmap_row rows[MAX_ROWS];
    int32_t *ids[2]; /* of slices: positions and documents */
    tokmap_i_image_shape shape;
    uint8_t *image; /* exactly as much of it as crosses the bus */
    size_t image_bytes;
    tokmap_i_expand_job job;
    uint32_t n_documents, longest;
    int64_t wanted[EXPAND_OUTPUTS][MAX_CU];
    uint64_t n_wanted[EXPAND_OUTPUTS];
} now;

struct expand_seen expand_seen;

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

static bool of_slices(void)
{
    return now.plan.n_slices > 1;
}

static uint32_t whole_length(void)
{
    return now.plan.length * MAX(now.plan.n_slices, 1);
}

/* Of the whole row. */
static uint32_t inputs_of(const tokmap_row *row)
{
    return of_slices() ? (uint32_t)row->cu_seqlens[row->n_documents] : row->n_tokens - 1;
}

static bool is_short(const tokmap_row *row)
{
    return inputs_of(row) < whole_length();
}

static void make_documents(tokmap_row *row, source_row *from)
{
    uint32_t n_inputs = row->n_tokens - 1;
    if (of_slices())
        n_inputs = check_one_in(2) ? whole_length() : 1 + check_below(whole_length());
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
        expand_seen.tile_boundaries += d > 0 && cu[d] % TILE == 0;
        expand_seen.documents_of_one += n_here == 1;
    }
}

static void make_tokens(tokmap_row *row, source_row *from)
{
    const size_t n_bytes = (size_t)row->n_tokens * row->token_bytes;
    const size_t shift = check_below(16);
    from->tokens = take(16, shift + n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        from->tokens[shift + i] = (uint8_t)(check_bits() >> 24);
    row->tokens = from->tokens + shift;
    from->labels = take(16, n_bytes);
    for (size_t i = 0; i < n_bytes; i++)
        from->labels[i] = (uint8_t)(check_bits() >> 24);
}

/* Of slices they are given, and so may be any. */
static void make_ids(void)
{
    const size_t n = (size_t)now.plan.n_rows * now.plan.length;
    for (int k = 0; k < 2; k++) {
        now.ids[k] = take(16, n * sizeof *now.ids[k]);
        for (size_t i = 0; i < n; i++)
            now.ids[k][i] = (int32_t)(check_bits() >> 1);
    }
    for (uint32_t r = 0; r < now.plan.n_rows && of_slices(); r++) {
        now.rows[r].position_ids = now.ids[0] + (size_t)r * now.plan.length;
        now.rows[r].document_ids = now.ids[1] + (size_t)r * now.plan.length;
    }
    expand_seen.slices += of_slices();
}

static void make_mask(tokmap_row *row, source_row *from)
{
    const uint32_t style = check_below(4);
    from->mask = take(16, now.plan.length);
    for (uint32_t i = 0; i < now.plan.length; i++)
        from->mask[i] = style == 0   ? 0
                        : style == 1 ? 1
                                     : (uint8_t)(check_one_in(2) ? 0 : check_bits());
    row->loss_mask = from->mask;
    expand_seen.masked++;
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
    if (p->has_short_rows && !of_slices() && check_one_in(2))
        row->n_tokens = short_row();
    expand_seen.short_at_tile += row->n_tokens <= p->length && row->n_tokens % TILE == 0;
    expand_seen.short_rows += row->n_tokens <= p->length;
    expand_seen.one_input += row->n_tokens == 2;
    expand_seen.last_tiles_of_one += row->n_tokens > TILE && row->n_tokens % TILE == 1;
    make_tokens(row, from);
    make_documents(row, from);
    if (!check_one_in(p->has_masks ? 4 : 2)) /* some that do not count */
        make_mask(row, from);
}

static void free_batch(void)
{
    for (uint32_t r = 0; r < now.plan.n_rows; r++) {
        free(now.sources[r].tokens);
        free(now.sources[r].labels);
        free(now.sources[r].cu_seqlens);
        free(now.sources[r].mask);
    }
    free(now.ids[0]);
    free(now.ids[1]);
    free(now.image);
}

/* ---- Images ---- */

/* Memory of exactly the size that was promised, between guards. */
static tokmap_i_image open_image(size_t n_bytes)
{
    uint8_t *memory = take(64, GUARD + n_bytes + GUARD);
    CHECK(n_bytes > 0);
    return (tokmap_i_image){.memory = memory + GUARD};
}

static void close_image(const tokmap_i_image *image, size_t n_bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        CHECK(image->memory[i - GUARD] == UNTOUCHED && image->memory[n_bytes + i] == UNTOUCHED);
    free(image->memory - GUARD);
}

static const tokmap_i_image_row *row_of(const tokmap_i_image *image, uint32_t r)
{
    return (const tokmap_i_image_row *)image->memory + r;
}

/* Each stretch is marked; none may be marked before. */
static void mark(uint8_t *marks, const tokmap_i_image *image, uint64_t begin, uint64_t n_bytes)
{
    CHECK(begin + n_bytes <= image->n_bytes);
    for (uint64_t i = begin; i < begin + n_bytes; i++)
        CHECK(marks[i]++ == 0);
}

static void check_mask(const tokmap_i_image *image, uint32_t r, uint8_t *marks)
{
    const tokmap_i_image_row *row = row_of(image, r);
    const uint32_t n_bits = (uint32_t)round_up(now.shape.length, 32);
    CHECK(row->flags == (now.shape.has_masks && now.rows[r].loss_mask ? TOKMAP_I_ROW_MASKED : 0));
    if (!row->flags)
        return;
    CHECK_EQ(row->mask % 4, 0);
    mark(marks, image, row->mask, n_bits / 8);
    for (uint32_t i = 0; i < n_bits; i++)
        CHECK_EQ(image->memory[row->mask + i / 8] >> i % 8 & 1,
                 i < now.shape.length && now.rows[r].loss_mask[i] != 0);
}

static void check_tokens(const tokmap_i_image *image, uint32_t r, uint8_t *marks)
{
    const tokmap_i_image_row *row = row_of(image, r);
    const size_t n_bytes = (size_t)now.rows[r].n_tokens * now.rows[r].token_bytes;
    CHECK_EQ(row->n_tokens, now.rows[r].n_tokens);
    CHECK_EQ(row->token_bytes, now.rows[r].token_bytes);
    CHECK_EQ(row->tokens % 16, 0);
    mark(marks, image, row->tokens,
         round_up(n_bytes, 16)); /* who reads whole words reads no other row */
    CHECK(memcmp(image->memory + row->tokens, now.rows[r].tokens, n_bytes) == 0);
    if (of_slices())
        mark(marks, image, row->tokens + tokmap_i_image_job(image, &now.shape).labels_at, n_bytes);
}

static void check_documents(const tokmap_i_image *image, uint32_t r, uint32_t first)
{
    const tokmap_i_image_row *row = row_of(image, r);
    const tokmap_row *from = &now.rows[r];
    const int32_t *boundaries = (const int32_t *)(image->memory + image->boundaries);
    const uint32_t *tiles = (const uint32_t *)(image->memory + image->tile_boundaries);
    const uint32_t n_tiles = (now.shape.length + TILE - 1) / TILE;
    const int32_t row_begin = (int32_t)(r * whole_length());
    CHECK_EQ(row->first_boundary, first);
    CHECK_EQ(row->n_boundaries, from->n_documents + is_short(from));
    for (uint32_t d = 0; d < row->n_boundaries; d++)
        CHECK_INT(boundaries[first + d], row_begin + from->cu_seqlens[d]);
    for (uint32_t t = 0; t < n_tiles && !of_slices(); t++) {
        const uint32_t last = tiles[r * n_tiles + t];
        const int32_t tile_begin = row_begin + (int32_t)(t * TILE);
        CHECK(last >= first && last < first + row->n_boundaries);
        CHECK(boundaries[last] <= tile_begin);
        CHECK(last + 1 == first + row->n_boundaries || boundaries[last + 1] > tile_begin);
    }
}

static void check_parts(const tokmap_i_image *image)
{
    const uint32_t n_tiles = (now.shape.length + TILE - 1) / TILE, n_rows = now.shape.n_rows;
    uint8_t *marks = calloc(image->n_bytes, 1);
    mark(marks, image, 0, n_rows * sizeof(tokmap_i_image_row));
    for (uint32_t r = 0, first = 0; r < n_rows; r++) {
        check_mask(image, r, marks);
        check_tokens(image, r, marks);
        if (now.shape.has_documents)
            check_documents(image, r, first);
        first += row_of(image, r)->n_boundaries;
    }
    CHECK_INT(image->boundaries != 0, now.shape.has_documents);
    CHECK_INT(image->tile_boundaries != 0, now.shape.has_documents && !of_slices());
    CHECK_INT(image->positions != 0, now.shape.has_position_ids);
    CHECK_INT(image->documents != 0, now.shape.has_document_ids);
    CHECK_EQ(image->boundaries % 4 + image->tile_boundaries % 4, 0);
    if (now.shape.has_documents) {
        mark(marks, image, image->boundaries, 4ull * image->n_boundaries);
        if (!of_slices())
            mark(marks, image, image->tile_boundaries, 4ull * n_tiles * n_rows);
    }
    if (image->positions)
        mark(marks, image, image->positions, 4ull * n_rows * now.shape.length);
    if (image->documents)
        mark(marks, image, image->documents, 4ull * n_rows * now.shape.length);
    free(marks);
    tokmap_i_expand_job job = tokmap_i_image_job(image, &now.shape);
    CHECK_INT(job.labels_at != 0, of_slices());
    job.labels_at = 0;
    const tokmap_i_expand_job wanted = {.n_rows = n_rows,
                                        .length = now.shape.length,
                                        .n_tiles = n_tiles,
                                        .boundaries = image->boundaries,
                                        .tile_boundaries = image->tile_boundaries,
                                        .n_boundaries = image->n_boundaries,
                                        .cu_end = n_rows * whole_length(),
                                        .positions = image->positions,
                                        .documents = image->documents};
    CHECK(memcmp(&job, &wanted, sizeof job) == 0);
}

static void check_refusal(uint32_t n_boundaries)
{
    tokmap_i_image_shape shape = now.shape;
    shape.max_boundaries = check_below(n_boundaries);
    const size_t n_bytes = tokmap_i_image_bytes(&shape);
    tokmap_i_image image = open_image(n_bytes);
    CHECK(!tokmap_i_image_begin(&image, &shape, now.rows));
    CHECK_EQ(image.n_boundaries, n_boundaries);
    close_image(&image, n_bytes);
    expand_seen.refused_images++;
}

/* Only what crosses the bus is there for those who read the image. */
static void make_image(void)
{
    const plan *p = &now.plan;
    const uint32_t by_row = p->outputs & TOKMAP_STAGE_ROW_POSITIONS ? TOKMAP_STAGE_POSITION_IDS : 0;
    uint32_t n_boundaries = 0;
    for (uint32_t r = 0; r < p->n_rows; r++)
        n_boundaries += now.rows[r].n_documents + is_short(&now.rows[r]);
    now.shape = (tokmap_i_image_shape){.n_rows = p->n_rows,
                                       .length = p->length,
                                       .token_bytes = p->widths & 4 ? 4 : 2,
                                       .has_masks = p->has_masks,
                                       .has_documents = p->outputs & OF_DOCUMENTS & ~by_row,
                                       .n_slices = p->n_slices};
    if (of_slices()) {
        now.shape.has_documents = p->outputs & TOKMAP_STAGE_CU_SEQLENS;
        now.shape.has_position_ids = p->outputs & TOKMAP_STAGE_POSITION_IDS;
        now.shape.has_document_ids = p->outputs & TOKMAP_STAGE_DOCUMENT_IDS;
    }
    const uint32_t n_more = check_one_in(2) ? 0 : check_below(100);
    now.shape.max_boundaries = now.shape.has_documents ? n_boundaries + n_more : 0;
    const size_t promised = tokmap_i_image_bytes(&now.shape);
    tokmap_i_image image = open_image(promised);
    CHECK(tokmap_i_image_begin(&image, &now.shape, now.rows));
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const size_t n_bytes = (size_t)now.rows[r].n_tokens * now.rows[r].token_bytes;
        memcpy(tokmap_i_image_tokens(&image, r), now.rows[r].tokens, n_bytes);
        if (of_slices())
            memcpy(tokmap_i_image_labels(&image, &now.shape, r), now.sources[r].labels, n_bytes);
    }
    CHECK(image.n_bytes <= promised);
    if (!p->has_short_rows && p->widths != 6 && (!now.shape.has_documents || n_more == 0)) {
        CHECK_EQ(image.n_bytes, promised);
        expand_seen.full_images++;
    }
    check_parts(&image);
    now.job = tokmap_i_image_job(&image, &now.shape);
    now.image = take(16, image.n_bytes);
    now.image_bytes = image.n_bytes;
    memcpy(now.image, image.memory, image.n_bytes);
    close_image(&image, promised);
    now.n_documents = image.n_boundaries;
    now.longest = image.longest;
    expand_seen.no_documents += !now.shape.has_documents;
    if (now.shape.has_documents && check_one_in(4))
        check_refusal(n_boundaries);
}

/* ---- The reference ---- */

static uint32_t token_at(const tokmap_row *row, const uint8_t *tokens, uint32_t i)
{
    uint32_t wide = 0;
    uint16_t narrow = 0;
    if (row->token_bytes == 4) {
        memcpy(&wide, tokens + i * 4, 4);
        return wide;
    }
    memcpy(&narrow, tokens + i * 2, 2);
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
    const uint8_t *tokens = row->tokens;
    const uint8_t *labels = of_slices() ? now.sources[r].labels : tokens + row->token_bytes;
    int64_t last = 0, document = 0;
    uint32_t counted = 0; /* anew at each start only, or this would take the square of L */
    for (uint32_t i = 0; i < p->length; i++) {
        const size_t at = (size_t)r * p->length + i;
        const bool there = i < row->n_tokens - 1;
        const bool counts = there && (!p->has_masks || !row->loss_mask || row->loss_mask[i]);
        if (!of_slices() &&
            (i == 0 || (counted < row->n_documents && row->cu_seqlens[counted] == (int64_t)i))) {
            document = count_starts(row, i, &last);
            counted++;
        }
        now.wanted[0][at] = there ? token_at(row, tokens, i) : p->pad_id;
        now.wanted[1][at] = counts ? token_at(row, labels, i) : p->ignore;
        now.wanted[2][at] = there ? (int64_t)i - (by_row ? 0 : last) : 0;
        now.wanted[3][at] = there ? document : row->n_documents;
        for (int k = 0; k < 2 && of_slices(); k++)
            now.wanted[2 + k][at] = now.ids[k][at];
    }
}

static void reference(void)
{
    const plan *p = &now.plan;
    uint32_t n = 0, longest = 0;
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const tokmap_row *row = &now.rows[r];
        const uint32_t begin = r * whole_length(), n_inputs = inputs_of(row);
        reference_row(r);
        for (uint32_t d = 0; d < row->n_documents; d++) {
            longest = MAX(longest, (uint32_t)(row->cu_seqlens[d + 1] - row->cu_seqlens[d]));
            now.wanted[4][n++] = begin + row->cu_seqlens[d];
        }
        if (is_short(row)) {
            longest = MAX(longest, whole_length() - n_inputs);
            now.wanted[4][n++] = begin + n_inputs;
        }
    }
    if (now.shape.has_documents) {
        CHECK_EQ(now.n_documents, n);
        CHECK_EQ(now.longest, longest);
    }
    now.n_wanted[4] = p->n_cu ? p->n_cu : n + 1;
    CHECK(now.n_wanted[4] <= MAX_CU);
    expand_seen.small_cu += now.n_wanted[4] <= n;
    for (uint64_t i = n; i < now.n_wanted[4]; i++)
        now.wanted[4][i] = (int64_t)p->n_rows * whole_length();
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

static void run_and_check(expand_run *run, const char *who)
{
    tokmap_i_expand_job job = now.job;
    output outputs[EXPAND_OUTPUTS];
    uint64_t *places[EXPAND_OUTPUTS] = {&job.inputs, &job.labels, &job.position_ids,
                                        &job.document_ids, &job.cu_seqlens};
    job.image = (uint64_t)(uintptr_t)now.image;
    job.ignore = now.plan.ignore;
    job.input_bytes = now.plan.input_bytes;
    job.label_bytes = now.plan.label_bytes;
    job.pad_id = now.plan.pad_id;
    job.row_positions = (now.plan.outputs & TOKMAP_STAGE_ROW_POSITIONS) != 0;
    job.n_cu = (uint32_t)now.n_wanted[4];
    for (int k = 0; k < EXPAND_OUTPUTS; k++) {
        open_output(&outputs[k], k);
        *places[k] = now.plan.outputs & 1u << k ? (uint64_t)(uintptr_t)outputs[k].begin : 0;
    }
    run(&job, now.image_bytes);
    for (int k = 0; k < EXPAND_OUTPUTS; k++) {
        if (*places[k])
            check_output(&outputs[k], k, who);
        free(outputs[k].memory);
    }
}

void check_plan(const plan *p, expand_run *const *runs, const char *const *names, int n_runs)
{
    now.plan = *p;
    for (uint32_t r = 0; r < p->n_rows; r++)
        make_row(&now.rows[r], &now.sources[r]);
    make_ids();
    make_image();
    reference();
    for (int i = 0; i < n_runs; i++)
        run_and_check(runs[i], names[i]);
    expand_seen.widths[p->input_bytes == 8][p->label_bytes == 8]++;
    expand_seen.row_positions += (p->outputs & TOKMAP_STAGE_ROW_POSITIONS) != 0;
    expand_seen.cases++;
    free_batch();
}

/* ---- Random ones ---- */

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

plan random_plan(void)
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
              .outputs = check_one_in(2) ? EXPAND_ALL : 1 + check_below(EXPAND_ALL),
              .input_bytes = 4 + 4 * check_below(2),
              .label_bytes = 4 + 4 * check_below(2),
              .pad_id = check_one_in(2) ? 0 : check_bits(),
              .ignore = ignored[check_below(5)]};
    if (check_one_in(3)) {
        p.n_slices = 2 + check_below(3);
        p.length = 1 + length % 1500;
    } else if (check_one_in(3)) {
        p.outputs |= TOKMAP_STAGE_ROW_POSITIONS;
    }
    if (check_one_in(2))
        p.n_cu = 1 + check_below(check_one_in(2) ? 20 : p.n_rows * length + 290);
    return p;
}

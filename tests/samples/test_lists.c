/* SPDX-License-Identifier: Apache-2.0 */
/* test_lists - a loader over lists of documents and of windows. Each row is compared with the same
 * window of a plain loader, over a dataset that was packed in the order of the list. */
#include "base/base.h"
#include "base/le.h"
#include "dataset/dataset.h"
#include "support/faults.h"
#include "support/joined.h"
#include "support/loader_corpus.h"
#include "support/must.h"

enum {
    MAX_DATASETS = 2,
    MAX_SOURCES = 3,
    MAX_LENGTH = 24,
    MAX_ROWS = 4,
    MAX_DOCUMENTS = 30,
    MAX_PLACES = 60,
    MAX_WINDOWS = 4000,
    MAX_FOUND = 4096,
    N_STEPS = 10,
    N_SAMPLES = 150 /* that are located to check find */
};

static uint32_t any(uint32_t n)
{
    return corpus_any(n);
}

/* ---- Datasets ---- */

typedef struct made {
    tokmap_dataset *ds, *packed; /* packed: in the order of the list, or `ds` without a list */
    uint32_t n_documents, seed, lengths[MAX_DOCUMENTS];
    uint32_t n_places, order[MAX_PLACES];
    uint8_t numbers[8 * MAX_PLACES], starts[16 * MAX_WINDOWS];
    tokmap_document_list list;
} made;

static void add(tokmap_writer *w, uint32_t seed, uint32_t number, uint32_t n)
{
    tokmap_error err;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = (uint32_t)(check_mix(seed + number, i) % 60000);
        CHECK_OK(tokmap_writer_append(w, &id, 1, &err), err);
    }
    const tokmap_span span = {n / 3, 1 + n / 4, TOKMAP_SPAN_PROMPT};
    if (n > 2 && check_mix(seed, number) % 3 == 0)
        CHECK_OK(tokmap_writer_add_span(w, &span, &err), err);
    CHECK_OK(tokmap_writer_end_document(w, &err), err);
}

static tokmap_writer *begin(const char *name)
{
    const tokmap_writer_options o = {
        .struct_size = sizeof o, .vocab_size = 60000, .replace = 1, .has_spans = 1};
    return must_begin(check_path(name), &o);
}

static void put(uint8_t *to, uint64_t i, uint32_t n_bytes, uint64_t x)
{
    if (n_bytes == 4)
        le_put32(to + 4 * i, (uint32_t)x);
    else
        le_put64(to + 8 * i, x);
}

/* Writes where the windows begin, token by token. */
static uint64_t put_starts(made *m, uint32_t length, uint64_t n_windows)
{
    uint64_t at = 0, n = 0;
    for (uint32_t p = 0; p < m->n_places; p++)
        for (uint32_t i = 0; i < m->lengths[m->order[p]]; i++, at++)
            if (at % length == 0 && n < n_windows) {
                put(m->starts, 2 * n, m->list.start_bytes, p);
                put(m->starts, 2 * n++ + 1, m->list.start_bytes, i);
            }
    return n;
}

/* Makes a list, and the dataset of its documents in their order. If the list keeps its rest, there
 * are so many tokens after them that the short window is a whole one. */
static void make_list(made *m, uint32_t length, const char *name)
{
    uint64_t n_tokens = 0;
    m->n_places = 1 + any(MAX_PLACES);
    m->list = (tokmap_document_list){.documents = m->numbers,
                                     .n_documents = m->n_places,
                                     .document_bytes = any(2) ? 4 : 8,
                                     .keeps_rest = any(2)};
    tokmap_writer *w = begin(name);
    const uint32_t in_order = any(4) == 0;
    for (uint32_t p = 0; p < m->n_places; p++) {
        m->order[p] = in_order ? p % m->n_documents : any(m->n_documents);
        put(m->numbers, p, m->list.document_bytes, m->order[p]);
        add(w, m->seed, m->order[p], m->lengths[m->order[p]]);
        n_tokens += m->lengths[m->order[p]];
    }
    const uint64_t n_labels = n_tokens ? n_tokens - 1 : 0, rest = n_labels % length;
    if (m->list.keeps_rest && rest > 0)
        add(w, 1, 1, (uint32_t)(length - rest));
    must_finish(w);
    m->packed = must_open(check_path(name));
    if (any(2)) {
        m->list.starts = m->starts;
        m->list.start_bytes = any(2) ? 4 : 8;
        m->list.n_windows = n_labels / length + (m->list.keeps_rest && rest > 0);
        CHECK_EQ(put_starts(m, length, m->list.n_windows), m->list.n_windows);
    }
}

static void make(made *m, uint32_t i, bool joined, bool listed, uint32_t length)
{
    char name[4][32];
    const uint32_t longest = 1 + any(30);
    uint64_t n_tokens = 0;
    snprintf(name[0], sizeof name[0], "p%u", i);
    snprintf(name[1], sizeof name[1], "flat%u", i);
    snprintf(name[2], sizeof name[2], "l%u", i);
    snprintf(name[3], sizeof name[3], "j%u", i);
    *m = (made){.n_documents = 1 + any(MAX_DOCUMENTS), .seed = any(1 << 30)};
    tokmap_writer *w = begin(name[joined]);
    for (uint32_t d = 0; d < m->n_documents; d++) {
        m->lengths[d] = any(5) == 0 ? 0 : any(longest + 1);
        n_tokens += m->lengths[d];
        add(w, m->seed, d, m->lengths[d]);
    }
    must_finish(w);
    const bool cut = joined && n_tokens > 16;
    if (cut)
        joined_store_uneven(check_path(name[1]), check_path(name[0]), name[3], 1 + any(4));
    m->ds = must_open(check_path(name[joined && !cut]));
    if (listed)
        make_list(m, length, name[2]);
}

static void free_made(made *m)
{
    tokmap_dataset_close(m->packed);
    tokmap_dataset_close(m->ds);
}

/* ---- Sources ---- */

typedef struct source {
    made made[MAX_DATASETS];
    tokmap_dataset *ds[MAX_DATASETS], *packed[MAX_DATASETS];
    tokmap_document_list lists[MAX_DATASETS];
    uint64_t n_windows; /* of an epoch, without the list of windows */
    uint32_t n_list;
    uint8_t numbers[8 * MAX_WINDOWS];
    tokmap_loader *plain; /* its windows in order; NULL: it has none */
} source;

typedef struct setting {
    tokmap_windows windows;
    tokmap_shuffle shuffle;
    bool documents, of_windows, joined, sliced;
} setting;

/* Opens the loader of single windows of a source. */
static void open_plain(source *s, const tokmap_loader_options *of, bool masked, uint32_t n)
{
    const tokmap_loader_source one = {
        .datasets = s->packed, .n_datasets = n, .masked = masked, .weight = 1};
    tokmap_loader_options o = *of;
    tokmap_loader_source_info info = TOKMAP_INIT(tokmap_loader_source_info);
    tokmap_error err;
    o.sources = &one;
    o.n_sources = 1;
    o.n_phases = o.n_skips = 0;
    o.shuffle = TOKMAP_SHUFFLE_NONE;
    o.block_windows = o.group_blocks = 0;
    o.batch_rows = 1;
    o.io = TOKMAP_IO_MAP;
    s->n_windows = 0;
    const tokmap_status status = tokmap_loader_open(&s->plain, &o, &err);
    if (status)
        CHECK_INT(status, TOKMAP_ERR_MISMATCH); /* no windows */
    else
        CHECK_INT(tokmap_loader_get_source(s->plain, 0, &info), TOKMAP_OK);
    s->n_windows = status ? 0 : info.n_windows;
}

/* Makes a source; false: it has no windows. */
static bool make_source(source *s, uint32_t k, const setting *how, const tokmap_loader_options *o,
                        tokmap_loader_source *out)
{
    const uint32_t n = 1 + any(MAX_DATASETS), list_bytes = any(2) ? 4 : 8;
    bool listed = false;
    *out = (tokmap_loader_source){
        .datasets = s->ds, .n_datasets = n, .masked = any(5) == 0, .weight = 1 + any(3)};
    for (uint32_t d = 0; d < n; d++) {
        const bool has_list = how->documents && any(4) > 0;
        make(&s->made[d], k * MAX_DATASETS + d, how->joined, has_list, o->sequence_length);
        s->ds[d] = s->made[d].ds;
        s->packed[d] = has_list ? s->made[d].packed : s->ds[d];
        s->lists[d] = s->made[d].list;
        listed |= has_list;
    }
    out->document_lists = listed ? s->lists : NULL;
    open_plain(s, o, out->masked != 0, n);
    s->n_list = how->of_windows && any(4) > 0 && s->n_windows > 0 ? 1 + any(60) : 0;
    for (uint32_t x = 0; x < s->n_list; x++)
        put(s->numbers, x, list_bytes, any((uint32_t)s->n_windows));
    if (s->n_list > 0) {
        out->window_list = s->numbers;
        out->n_window_list = s->n_list;
        out->window_list_bytes = list_bytes;
    }
    return s->n_windows > 0;
}

static uint64_t listed_window(const source *s, const tokmap_loader_source *of, uint64_t x)
{
    return of->window_list_bytes == 4 ? le_get32(s->numbers + 4 * x) : le_get64(s->numbers + 8 * x);
}

/* ---- Rows ---- */

typedef struct rows {
    int64_t inputs[MAX_ROWS * MAX_LENGTH], labels[MAX_ROWS * MAX_LENGTH];
} rows;

/* Returns the place in its row of input i of a slice. */
static uint32_t place_in_row(const tokmap_loader_options *o, uint32_t i)
{
    const uint32_t n = MAX(o->cp_size, 1), part = o->sequence_length / (2 * n);
    if (n == 1 || o->cp_mode == TOKMAP_CP_CONTIGUOUS)
        return o->cp_rank * (o->sequence_length / n) + i;
    return i < part ? o->cp_rank * part + i : (2 * n - 1 - o->cp_rank) * part + (i - part);
}

/* Compares row i of a batch, of n_tokens before it was sliced, with the row of a plain loader,
 * which has more tokens if the window is the rest of a list. */
static void compare_row(const tokmap_batch *a, uint32_t i, const tokmap_batch *b, uint32_t n_tokens,
                        const tokmap_loader_options *o)
{
    static rows x, y;
    const tokmap_row *r = &a->rows[i], *s = &b->rows[0];
    const uint32_t length = a->sequence_length;
    const bool masks = any(3) > 0;
    const bool is_short = o->windows == TOKMAP_WINDOWS_CONCAT && n_tokens <= o->sequence_length;
    corpus_gather(a, masks, x.inputs, x.labels);
    corpus_gather(b, masks, y.inputs, y.labels);
    CHECK(r->dataset == s->dataset && n_tokens > 1);
    for (uint32_t j = 0; j < length; j++) {
        const size_t at = (size_t)i * length + j;
        if (is_short && place_in_row(o, j) >= n_tokens - 1) {
            CHECK(x.inputs[at] == 7 && (!r->loss_mask || r->loss_mask[j] == 0));
            continue;
        }
        CHECK(x.inputs[at] == y.inputs[j] && x.labels[at] == y.labels[j]);
        CHECK(!r->position_ids || r->position_ids[j] == s->position_ids[j]);
        CHECK(!r->document_ids || r->document_ids[j] == s->document_ids[j]);
        CHECK(!r->loss_mask || r->loss_mask[j] == s->loss_mask[j]);
    }
    if (!r->cu_seqlens || is_short)
        return;
    CHECK(r->n_tokens == s->n_tokens && r->n_documents == s->n_documents);
    CHECK(memcmp(r->cu_seqlens, s->cu_seqlens, (r->n_documents + 1) * sizeof *r->cu_seqlens) == 0);
}

static void check_batch(tokmap_loader *l, const tokmap_batch *b, source *sources,
                        const tokmap_loader_options *o)
{
    uint64_t counts[MAX_SOURCES];
    tokmap_error err;
    for (uint32_t i = 0; i < b->n_rows; i++) {
        const tokmap_row *r = &b->rows[i];
        source *s = &sources[r->source];
        tokmap_sample at = TOKMAP_INIT(tokmap_sample);
        const uint64_t n = s->n_list ? s->n_list : s->n_windows;
        CHECK_OK(tokmap_loader_count_samples(l, r->sample, counts, &err), err);
        const uint64_t place = counts[r->source] % n;
        CHECK_EQ(r->epoch, counts[r->source] / n);
        if (s->n_list)
            CHECK_EQ(r->window, listed_window(s, &o->sources[r->source], place));
        else if (o->shuffle == TOKMAP_SHUFFLE_NONE)
            CHECK_EQ(r->window, place);
        CHECK_OK(tokmap_loader_locate(l, r->sample, &at, &err), err);
        CHECK_OK(tokmap_loader_seek(s->plain, r->window, &err), err);
        const tokmap_batch one = corpus_next(s->plain);
        compare_row(b, i, &one, at.n_tokens, o);
    }
}

/* ---- From tokens to samples ---- */

/* Compares find with the samples that locate says have one of the tokens. */
static void check_find(tokmap_loader *l, const source *sources, uint32_t k, uint32_t dataset)
{
    static uint64_t found[MAX_FOUND];
    bool expected[N_SAMPLES] = {0}, is_found[N_SAMPLES] = {0};
    tokmap_error err;
    const uint64_t n_tokens = must_info(sources[k].made[dataset].ds).n_tokens;
    tokmap_loader_search s = {.struct_size = sizeof s,
                              .source = k,
                              .dataset = dataset,
                              .epoch = any(2),
                              .samples = found,
                              .max_samples = MAX_FOUND};
    s.first_token = any((uint32_t)n_tokens + 1);
    s.n_tokens = any((uint32_t)MIN(n_tokens - s.first_token, 20) + 1);
    CHECK_OK(tokmap_loader_find(l, &s, &err), err);
    for (uint64_t g = 0; g < N_SAMPLES; g++) {
        tokmap_sample at = TOKMAP_INIT(tokmap_sample);
        CHECK_OK(tokmap_loader_locate(l, g, &at, &err), err);
        for (size_t i = 0; i < at.n_pieces; i++)
            expected[g] |= s.n_tokens > 0 && at.source == k && at.dataset == dataset &&
                           at.epoch == s.epoch &&
                           at.pieces[i].first_token < s.first_token + s.n_tokens &&
                           s.first_token < at.pieces[i].first_token + at.pieces[i].n_tokens;
    }
    CHECK(s.n_found <= MAX_FOUND);
    for (uint64_t i = 0; i < s.n_found; i++)
        if (found[i] < N_SAMPLES)
            is_found[found[i]] = true;
    CHECK(memcmp(expected, is_found, sizeof expected) == 0);
}

/* ---- Cases ---- */

static tokmap_loader_options options_of(const setting *s)
{
    tokmap_loader_options o = {
        LOADER_SIZES,
        .sequence_length = s->sliced ? 8 * (1 + any(3)) : 1 + any(MAX_LENGTH),
        .seed = any(1000),
        .windows = s->windows,
        .shuffle = s->shuffle,
        .row_parts = any(3) ? ALL_PARTS : TOKMAP_ROW_SPAN_MASK};
    if (s->shuffle == TOKMAP_SHUFFLE_BLOCK) {
        o.block_windows = 1 + any(4);
        o.group_blocks = 1 + any(3);
    }
    o.view_pieces = !s->sliced && any(2);
    if (s->sliced) {
        o.cp_size = 2;
        o.cp_rank = any(2);
        o.cp_mode = any(2) ? TOKMAP_CP_ZIGZAG : TOKMAP_CP_CONTIGUOUS;
    }
    return o;
}

/* A state of one loader continues another one, with other ranks and another way of reading. */
static void resume(tokmap_loader *old, source *sources, const tokmap_loader_options *o)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_loader_options more = *o;
    tokmap_error err;
    CHECK_OK(tokmap_loader_save(old, state, &err), err);
    more.n_ranks = 1 + any(3);
    more.rank = any(more.n_ranks);
    more.batch_rows = 1 + any(MAX_ROWS);
    more.io = (tokmap_io)any(6);
    tokmap_loader *l = corpus_open_loader(&more);
    CHECK_OK(tokmap_loader_restore(l, state, &err), err);
    CHECK_EQ(tokmap_loader_position(l), tokmap_loader_position(old));
    for (int i = 0; i < 3; i++) {
        const tokmap_batch b = corpus_next(l);
        check_batch(l, &b, sources, &more);
    }
    tokmap_loader_close(l);
}

static bool has_list(const tokmap_loader_options *o)
{
    for (uint32_t k = 0; k < o->n_sources; k++)
        if (o->sources[k].document_lists || o->sources[k].window_list)
            return true;
    return false;
}

/* One number of a list less, and the state is of other data. */
static void check_other_lists(tokmap_loader *old, const tokmap_loader_options *o)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_loader_source other[MAX_SOURCES];
    tokmap_document_list lists[MAX_DATASETS];
    tokmap_loader_options more = *o;
    tokmap_error err;
    tokmap_loader *l;
    bool changed = false;
    CHECK_OK(tokmap_loader_save(old, state, &err), err);
    CHECK_EQ(le_get32(state + 8), has_list(o) ? 3 : o->windows == TOKMAP_WINDOWS_BEST_FIT ? 2 : 1);
    memcpy(other, o->sources, o->n_sources * sizeof *other);
    for (uint32_t k = 0; k < o->n_sources && !changed; k++) {
        if (other[k].n_window_list > 1) {
            other[k].n_window_list--;
            changed = true;
        } else if (other[k].document_lists && other[k].document_lists[0].n_documents > 1) {
            memcpy(lists, other[k].document_lists, other[k].n_datasets * sizeof *lists);
            other[k].document_lists = lists;
            lists[0].starts = NULL;
            lists[0].n_documents--;
            lists[0].n_windows = lists[0].start_bytes = 0;
            changed = true;
        }
    }
    more.sources = other;
    if (!changed || tokmap_loader_open(&l, &more, &err))
        return; /* a source may have no window now, or a list a window that is gone */
    CHECK_REFUSED(tokmap_loader_restore(l, state, &err), TOKMAP_ERR_MISMATCH, err, "lists");
    tokmap_loader_close(l);
}

static bool run(const setting *how)
{
    static source sources[MAX_SOURCES];
    tokmap_loader_source given[MAX_SOURCES];
    const uint32_t n = 1 + any(MAX_SOURCES);
    tokmap_loader_options o = options_of(how);
    double weights[MAX_SOURCES];
    bool runs = true;
    for (uint32_t k = 0; k < n; k++) {
        runs &= make_source(&sources[k], k, how, &o, &given[k]);
        weights[k] = 1 + any(4);
    }
    const tokmap_loader_phase phase = {1 + any(40), weights};
    const uint64_t skipped = any(60);
    const tokmap_loader_skip skip = {skipped, skipped + 1 + any(20)};
    o.sources = given;
    o.n_sources = n;
    o.phases = &phase;
    o.n_phases = any(2);
    o.skips = &skip;
    o.n_skips = any(2);
    o.batch_rows = 1 + any(MAX_ROWS);
    o.n_ranks = 1 + any(2);
    o.rank = any(o.n_ranks);
    o.io = (tokmap_io)any(6);
    tokmap_loader *l;
    tokmap_error err;
    const tokmap_status status = tokmap_loader_open(&l, &o, &err);
    if (!runs)
        CHECK_INT(status, TOKMAP_ERR_MISMATCH);
    else
        CHECK_OK(status, err);
    for (int i = 0; runs && i < N_STEPS; i++) {
        const tokmap_batch b = corpus_next(l);
        check_batch(l, &b, sources, &o);
    }
    for (uint32_t k = 0; runs && k < n; k++)
        check_find(l, sources, k, any(given[k].n_datasets));
    if (runs) {
        resume(l, sources, &o);
        check_other_lists(l, &o);
    }
    tokmap_loader_close(l);
    for (uint32_t k = 0; k < n; k++) {
        tokmap_loader_close(sources[k].plain);
        for (uint32_t d = 0; d < given[k].n_datasets; d++)
            free_made(&sources[k].made[d]);
    }
    return runs;
}

static void run_all(bool documents)
{
    const uint32_t n_cases = check_long() ? 100000 : check_sanitized() ? 250 : 350;
    uint32_t n_open = 0;
    corpus_random_state = 11;
    for (uint32_t i = 0; i < n_cases; i++) {
        const tokmap_shuffle shuffle = (tokmap_shuffle)any(documents ? 3 : 2);
        const setting how = {.windows = documents ? TOKMAP_WINDOWS_CONCAT : (tokmap_windows)(i % 3),
                             .shuffle = shuffle,
                             .documents = documents,
                             .of_windows =
                                 !documents || (shuffle != TOKMAP_SHUFFLE_BLOCK && any(2)),
                             .joined = any(2),
                             .sliced = any(3) == 0};
        n_open += run(&how);
    }
    printf("note %u cases, %u of them with rows\n", n_cases, n_open);
    CHECK(n_open > n_cases / 2);
}

TEST(a_list_of_documents_is_a_dataset_in_its_order)
{
    run_all(true);
}

TEST(a_list_of_windows_is_the_order_of_samples)
{
    run_all(false);
}

/* ---- Refusals ---- */

/* Documents of 1, 2, .. 9 tokens, each after an empty one. */
static made *numbered(void)
{
    static made m;
    m = (made){.n_documents = 18, .seed = 3, .n_places = 20};
    tokmap_writer *w = begin("p");
    for (uint32_t d = 0; d < m.n_documents; d++) {
        m.lengths[d] = d % 2 ? 1 + d / 2 : 0;
        add(w, m.seed, d, m.lengths[d]);
    }
    must_finish(w);
    m.ds = must_open(check_path("p"));
    for (uint32_t p = 0; p < m.n_places; p++) {
        m.order[p] = p * 7 % m.n_documents;
        put(m.numbers, p, 4, m.order[p]);
    }
    m.list = (tokmap_document_list){.documents = m.numbers, .n_documents = 20, .document_bytes = 4};
    return &m;
}

static const uint32_t windows_of_0[] = {0, 0}, too_large[] = {0, 999};

static tokmap_loader_options options_of_numbered(const made *m, tokmap_loader_source *s)
{
    *s = (tokmap_loader_source){.datasets = &m->ds, .n_datasets = 1, .document_lists = &m->list};
    return (tokmap_loader_options){LOADER_SIZES,           .sources = s,
                                   .n_sources = 1,         .sequence_length = 4,
                                   .batch_rows = 1,        .shuffle = TOKMAP_SHUFFLE_NONE,
                                   .row_parts = ALL_PARTS, .io = TOKMAP_IO_MAP};
}

#define REFUSED(change, status, why)                                                               \
    do {                                                                                           \
        made *m = &kept;                                                                           \
        tokmap_loader_source s;                                                                    \
        tokmap_loader_options o = options_of_numbered(m, &s);                                      \
        tokmap_loader *l;                                                                          \
        *m = *numbers;                                                                             \
        m->list.documents = m->numbers;                                                            \
        change;                                                                                    \
        CHECK_REFUSED(tokmap_loader_open(&l, &o, &err), status, err, why);                         \
        CHECK(l == NULL);                                                                          \
    } while (0)

TEST(lists_that_break_a_rule_are_refused)
{
    static made kept;
    const made *numbers = numbered();
    const uint64_t some[] = {0, 3};
    tokmap_view *view;
    tokmap_error err;
    uint8_t keep[18] = {[1] = 1};
    const tokmap_view_options of_one = {
        .struct_size = sizeof of_one, .keep = keep, .n_keep = sizeof keep};
    CHECK_OK(tokmap_view_open(&view, numbers->ds, &of_one, &err), err);
    kept = *numbers;
    const tokmap_status wrong = TOKMAP_ERR_ARGUMENT;
    REFUSED(m->list.documents = NULL, wrong, "list of documents must have 1 to 2^48 numbers");
    REFUSED(m->list.document_bytes = 2, wrong, "of 4 or 8 bytes");
    REFUSED(m->list.n_documents = UINT64_MAX, wrong, "1 to 2^48 numbers");
    REFUSED(m->list.keeps_rest = 2, wrong, "keeps_rest is 2");
    REFUSED(m->list.reserved = 1, wrong, "reserved of a list of documents is 1");
    REFUSED(m->list.n_windows = 1, wrong, "starts of its list of documents");
    REFUSED(m->list.start_bytes = 4, wrong, "starts of its list of documents");
    REFUSED(m->list.starts = m->starts, wrong, "starts of its list of documents");
    REFUSED(put(m->numbers, 7, 4, 18), wrong,
            "list of documents has 18 at place 7, but there are 18 documents");
    REFUSED(put(m->numbers, 19, 4, UINT32_MAX), wrong, "has 4294967295 at place 19");
    REFUSED(m->list.n_documents = 1, TOKMAP_ERR_MISMATCH, "too few tokens for sequence_length 4");
    REFUSED(o.sequence_length = 200, TOKMAP_ERR_MISMATCH, "list of documents has too few tokens");
    REFUSED(o.windows = TOKMAP_WINDOWS_WITHIN_DOCUMENT, wrong, "another kind than concat");
    REFUSED(o.windows = TOKMAP_WINDOWS_BEST_FIT, wrong, "another kind than concat");
    REFUSED(o.random_offset = 1, wrong, "does not work with random_offset");
    REFUSED(o.weigh_tokens = 1, wrong, "documents does not work with weights that are shares");
    REFUSED(s.documents = some, wrong, "does not work with a range of documents");
    REFUSED(s.views = &view, wrong, "does not work with a view");
    REFUSED(s.window_list = windows_of_0, wrong, "window_list_bytes is 0");
    REFUSED(s.window_list_bytes = 4, wrong, "list of windows must have 1 to 2^48 numbers");
    REFUSED(s.n_window_list = 2, wrong, "window_list_bytes is 0");
#define WINDOWS                                                                                    \
    s.window_list = windows_of_0, s.n_window_list = 2, s.window_list_bytes = 4, s.document_lists = 0
    REFUSED((WINDOWS, o.shuffle = TOKMAP_SHUFFLE_BLOCK), wrong,
            "a list of windows does not work with shuffle in blocks");
    REFUSED((WINDOWS, o.weigh_tokens = 1), wrong,
            "list of windows does not work with weights that");
    REFUSED((WINDOWS, s.window_list = too_large), wrong, "list of windows has 999 at place 1, but");
    tokmap_dataset *const twice[] = {numbers->ds, numbers->ds};
    tokmap_document_list lists[2] = {numbers->list, numbers->list};
    REFUSED((s.datasets = twice, s.n_datasets = 2, s.document_lists = lists), wrong, "named twice");
    tokmap_loader_source s;
    tokmap_loader_options o = options_of_numbered(numbers, &s);
    s.datasets = twice, s.n_datasets = 2, s.document_lists = lists;
    s.window_list = windows_of_0, s.n_window_list = 2, s.window_list_bytes = 4;
    tokmap_loader_close(
        corpus_open_loader(&o)); /* here the list of windows says what comes twice */
    tokmap_view_close(view);
    tokmap_dataset_close(numbers->ds);
}

/* ---- Starts ---- */

TEST(wrong_starts_are_an_error_and_never_another_row)
{
    made *m = numbered();
    tokmap_loader_source s;
    tokmap_loader_options o = options_of_numbered(m, &s);
    tokmap_loader *right = corpus_open_loader(&o), *l;
    tokmap_loader_source_info info = TOKMAP_INIT(tokmap_loader_source_info);
    tokmap_error err;
    CHECK_INT(tokmap_loader_get_source(right, 0, &info), TOKMAP_OK);
    const uint64_t n = info.n_windows;
    uint32_t n_at_open = 0;
    m->list.starts = m->starts;
    m->list.start_bytes = 4;
    for (uint64_t i = 2; i < 2 * n; i++) /* the start of window 0 is not read */
        for (int64_t change = -1; change <= 1; change += 2) {
            m->list.n_windows = put_starts(m, o.sequence_length, n);
            put(m->starts, i, 4, le_get32(m->starts + 4 * i) + (uint64_t)change);
            const tokmap_status status = tokmap_loader_open(&l, &o, &err);
            n_at_open += status != 0;
            if (status) {
                CHECK_REFUSED(status, TOKMAP_ERR_MISMATCH, err, "does not go with its starts");
                CHECK(i / 2 >= n - 2);
            }
            uint32_t n_errors = status != 0;
            for (uint64_t w = 0; !status && w < n; w++) {
                tokmap_sample a = TOKMAP_INIT(tokmap_sample), b = TOKMAP_INIT(tokmap_sample);
                const tokmap_status located = tokmap_loader_locate(l, w, &a, &err);
                const bool touches = w == i / 2 || w + 1 == i / 2;
                n_errors += located != 0;
                CHECK(!located || (located == TOKMAP_ERR_MISMATCH && touches));
                CHECK_OK(tokmap_loader_locate(right, w, &b, &err), err);
                CHECK(located || (a.n_pieces == b.n_pieces &&
                                  memcmp(a.pieces, b.pieces, a.n_pieces * sizeof *a.pieces) == 0));
            }
            CHECK(n_errors > 0);
            tokmap_loader_close(l);
        }
    CHECK(n_at_open >= 4); /* the starts of the last two windows */
    for (uint64_t n_given = 0; n_given < n; n_given++) {
        m->list.n_windows = n_given;
        CHECK_REFUSED(tokmap_loader_open(&l, &o, &err), TOKMAP_ERR_MISMATCH, err, "its starts");
    }
    tokmap_loader_close(right);
    tokmap_dataset_close(m->ds);
}

static void check_changed(tokmap_loader *l, uint64_t sample)
{
    tokmap_sample at = TOKMAP_INIT(tokmap_sample);
    tokmap_error err;
    const tokmap_status status = tokmap_loader_locate(l, sample, &at, &err);
    CHECK_REFUSED(status, TOKMAP_ERR_MISMATCH, err, "changed");
}

/* Rows are located twice, with the lists changed between. */
TEST(a_list_below_64_mib_may_change_after_open)
{
    made *m = numbered();
    uint32_t order[] = {3, 1, 0};
    tokmap_loader_source s;
    tokmap_loader_options o = options_of_numbered(m, &s);
    tokmap_piece pieces[2][3][5];
    tokmap_error err;
    uint64_t n_tokens = 0;
    for (uint32_t p = 0; p < m->n_places; p++)
        n_tokens += m->lengths[m->order[p]];
    m->list.starts = m->starts;
    m->list.start_bytes = 8;
    m->list.n_windows = put_starts(m, o.sequence_length, (n_tokens - 1) / o.sequence_length);
    s.window_list = order;
    s.n_window_list = 3;
    s.window_list_bytes = 4;
    memset(pieces, 0, sizeof pieces);
    tokmap_loader *l = corpus_open_loader(&o);
    for (int k = 0; k < 2; k++) {
        for (uint64_t g = 0; g < 3; g++) {
            tokmap_sample at = TOKMAP_INIT(tokmap_sample);
            CHECK_OK(tokmap_loader_locate(l, g, &at, &err), err);
            memcpy(pieces[k][g], at.pieces, at.n_pieces * sizeof *at.pieces);
        }
        memset(order, 0xff, sizeof order);
        memset(m->numbers, 0xff, sizeof m->numbers);
        memset(m->starts, 0xff, sizeof m->starts);
    }
    CHECK(memcmp(pieces[0], pieces[1], sizeof pieces[0]) == 0);
    tokmap_loader_close(l);
    tokmap_dataset_close(m->ds);
}

/* The document that is listed has one token. */
TEST(a_list_of_64_mib_that_changes_is_an_error)
{
    enum {
        N = 1 << 24,
        N_WINDOWS = (N - 1) / 4
    };
    made *m = numbered();
    uint32_t *documents = malloc(N * sizeof *documents), *order = calloc(N, sizeof *order);
    uint32_t *starts = calloc(N_WINDOWS, 2 * sizeof *starts);
    tokmap_loader_source s;
    tokmap_loader_options o = options_of_numbered(m, &s);
    CHECK(documents && order && starts);
    for (uint32_t i = 0; i < N; i++)
        documents[i] = 1;
    for (uint32_t i = 0; i < N_WINDOWS; i++)
        starts[2 * i] = 4 * i;
    m->list = (tokmap_document_list){.documents = documents,
                                     .n_documents = N,
                                     .document_bytes = 4,
                                     .starts = starts,
                                     .n_windows = N_WINDOWS,
                                     .start_bytes = 4};
    s.window_list = order;
    s.n_window_list = N;
    s.window_list_bytes = 4;
    tokmap_loader *l = corpus_open_loader(&o);
    tokmap_loader_info info = TOKMAP_INIT(tokmap_loader_info);
    CHECK_INT(tokmap_loader_get_info(l, &info), TOKMAP_OK);
    CHECK(info.resident_bytes > N_WINDOWS * 8 && info.resident_bytes < N_WINDOWS * 8 + 1000000);
    order[1] = N;
    check_changed(l, 1);
    documents[3] = 3; /* of two tokens */
    check_changed(l, 0);
    documents[3] = 18; /* which does not exist */
    check_changed(l, 0);
    tokmap_loader_close(l);
    free(documents);
    free(order);
    free(starts);
    tokmap_dataset_close(m->ds);
}

/* ---- Ledger, labels, memory ---- */

TEST(a_ledger_line_has_the_hashes_of_lists)
{
    made *m = numbered();
    tokmap_loader_source s;
    tokmap_loader_options o = options_of_numbered(m, &s);
    static char line[4096];
    size_t n_bytes = sizeof line;
    uint64_t labels;
    const tokmap_ledger_entry entry = {.struct_size = sizeof entry, .event = "opened"};
    const uint32_t numbers[] = {2, 0, 2};
    const tokmap_loader_labels count = {
        .struct_size = sizeof count, .n_documents = 1, .labels = &labels};
    tokmap_error err;
    m->list.documents = (const uint32_t[]){3, 0, 3, 17};
    m->list.n_documents = 4;
    s.window_list = numbers;
    s.n_window_list = 3;
    s.window_list_bytes = 4;
    tokmap_loader *l = corpus_open_loader(&o);
    CHECK_OK(tokmap_loader_ledger_line(l, &entry, line, &n_bytes, &err), err);
    CHECK(strncmp(line, "{\"ledger\":3,", 12) == 0);
    CHECK_SAYS(line, ",\"window_list\":{\"hash\":\"14cc7ce8ff280b69\",\"n\":\"3\"}"); /* ORDER.md */
    CHECK_SAYS(line, "\"document_list\":{\"hash\":\"");
    CHECK_OK(tokmap_ledger_check(line, n_bytes, NULL, &err), err);
    CHECK_REFUSED(tokmap_loader_count_labels(l, &count, &err), TOKMAP_ERR_ARGUMENT, err,
                  "labels are not counted");
    tokmap_loader_close(l);
    tokmap_dataset_close(m->ds);
}

TEST(lists_without_memory_are_an_error)
{
    made *m = numbered();
    tokmap_loader_source s;
    tokmap_loader_options o = options_of_numbered(m, &s);
    tokmap_error err;
    tokmap_loader *l;
    bool fired = FAULT_MEMORY_WORKS;
    for (uint64_t n = 1; fired; n++) {
        const int64_t before = fault_n_live;
        fault_arm(FAULT_ONCE, FAULT_MEMORY, ENOMEM, n);
        const tokmap_status status = tokmap_loader_open(&l, &o, &err);
        tokmap_loader_close(l);
        fired = fault_disarm();
        CHECK_INT(status, fired ? TOKMAP_ERR_MEMORY : TOKMAP_OK);
        CHECK_INT(fault_n_live, before);
        CHECK(fired || n > 10);
    }
    tokmap_dataset_close(m->ds);
    if (!FAULT_MEMORY_WORKS)
        SKIP("a sanitizer has its own memory");
}

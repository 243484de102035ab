/* SPDX-License-Identifier: Apache-2.0 */
/* test_views - a loader over views against a loader over datasets of only the kept documents.
 *
 * The order follows from the ids of the datasets, which differ. So the second loader, which reads
 * with MAP, gets the order ids of the first one, and then both must give the same rows. */
#include <unistd.h>

#include "loader/loader.h"
#include "support/joined.h"
#include "support/loader_corpus.h"
#include "support/faults.h"
#include "support/must.h"
#include "views/view.h"

enum {
    MAX_DATASETS = 3,
    MAX_SOURCES = 3,
    MAX_LENGTH = 32,
    MAX_ROWS = 4,
    N_STEPS = 14,
    MAX_FOUND = 64
};

/* ---- Datasets ---- */

typedef struct made {
    tokmap_dataset *ds, *kept; /* kept: only the documents of view and range */
    tokmap_view *view;
    bool borrows; /* the dataset of another one */
    uint64_t n_documents, range[2];
    uint32_t seed, *lengths;
    uint8_t *keep;
} made;

static uint32_t any(uint32_t n)
{
    return corpus_any(n);
}

static tokmap_writer *begin(const char *name)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 60000, .replace = 1, .has_spans = 1};
    return must_begin(check_path(name), &options);
}

/* Writes a document: its ids and spans follow from its number. */
static void add(tokmap_writer *w, uint32_t seed, uint64_t number, uint32_t n)
{
    tokmap_error err;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = (uint32_t)(check_mix(seed + number, i) % 60000);
        CHECK_OK(tokmap_writer_append(w, &id, 1, &err), err);
    }
    const uint32_t first = n ? (uint32_t)(check_mix(seed + number, 999) % n) : 0;
    const tokmap_span span = {first, n ? 1 + (n - first) / 3 : 0, TOKMAP_SPAN_PROMPT};
    if (n && check_mix(seed, number) % 3 == 0 && first + span.n_tokens <= n)
        CHECK_OK(tokmap_writer_add_span(w, &span, &err), err);
    CHECK_OK(tokmap_writer_end_document(w, &err), err);
}

/* How many documents a view keeps: none, one, few, some, nearly all, all. */
static void choose(made *m, uint32_t how)
{
    static const uint32_t in_100[] = {0, 0, 4, 40, 95, 100};
    for (uint64_t d = 0; d < m->n_documents; d++)
        m->keep[d] = any(100) < in_100[how];
    if (how == 1 && m->n_documents > 0)
        m->keep[any((uint32_t)m->n_documents)] = 1;
}

/* Checks the numbers of all documents of a view, and of some that follow each other. */
static void check_numbers(const tokmap_view *v, const made *m, uint64_t n_kept)
{
    uint64_t *all = calloc(n_kept + 1, sizeof *all), *some = calloc(n_kept + 1, sizeof *some);
    uint64_t n = 0;
    tokmap_error err;
    CHECK(all && some);
    CHECK_OK(tokmap_view_documents(v, 0, n_kept, all, &err), err);
    for (uint64_t d = 0; d < m->n_documents; d++)
        if (m->keep[d])
            CHECK(n < n_kept && all[n++] == d);
    CHECK_INT(n, n_kept);
    for (uint32_t i = 0; i < 20; i++) {
        const uint64_t first = check_mix(m->seed, i) % (n_kept + 1);
        n = check_mix(m->seed + 1, i) % (n_kept - first + 1);
        some[n] = 99;
        CHECK_OK(tokmap_view_documents(v, first, n, some, &err), err);
        CHECK(memcmp(some, all + first, n * sizeof *some) == 0 && some[n] == 99);
    }
    CHECK_INT(tokmap_view_documents(v, 1, n_kept, some, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_view_documents(v, n_kept + 1, 0, some, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_view_documents(v, UINT64_MAX, 2, some, &err), TOKMAP_ERR_ARGUMENT);
    free(all);
    free(some);
}

static tokmap_view *open_view(made *m, bool as_file, const char *name)
{
    tokmap_view_options o = {.struct_size = sizeof o, .keep = m->keep, .n_keep = m->n_documents};
    tokmap_view_info info = TOKMAP_INIT(tokmap_view_info), written = TOKMAP_INIT(tokmap_view_info);
    tokmap_view *v;
    tokmap_error err;
    if (as_file) {
        o.path = check_path(name);
        CHECK_OK(tokmap_view_write(m->ds, &o, &written, &err), err);
        o = (tokmap_view_options){.struct_size = sizeof o, .path = o.path};
    }
    CHECK_OK(tokmap_view_open(&v, m->ds, &o, &err), err);
    CHECK_OK(tokmap_view_verify(v, NULL, NULL, &err), err);
    CHECK_INT(tokmap_view_get_info(v, &info), TOKMAP_OK);
    check_numbers(v, m, info.n_documents);
    CHECK(!as_file || (info.set_hash == written.set_hash && info.n_tokens == written.n_tokens));
    return v;
}

static void make_kept(made *m, const char *name)
{
    tokmap_writer *w = begin(name);
    for (uint64_t d = m->range[0]; d < m->range[1]; d++)
        if (m->keep[d])
            add(w, m->seed, d, m->lengths[d]);
    must_finish(w);
    m->kept = must_open(check_path(name));
}

static made make(uint32_t k, uint32_t n_parts, bool ranged, uint32_t how, bool large)
{
    char name[4][32], cells[32];
    snprintf(name[0], sizeof name[0], "p%u", k);
    snprintf(name[1], sizeof name[1], "flat%u", k);
    snprintf(name[2], sizeof name[2], "k%u", k);
    snprintf(name[3], sizeof name[3], "v%u.tmw", k);
    snprintf(cells, sizeof cells, "j%u", k);
    made m = {.n_documents = large ? 140000 : any(70), .seed = any(1 << 30)};
    const uint32_t longest = 1 + any(large ? 3 : 25);
    m.lengths = calloc(m.n_documents + 1, sizeof *m.lengths);
    m.keep = calloc(m.n_documents + 1, 1);
    CHECK(m.lengths && m.keep);
    m.range[1] = m.n_documents;
    if (ranged) {
        m.range[0] = any((uint32_t)m.n_documents / 2 + 1);
        m.range[1] = m.range[0] + any((uint32_t)(m.n_documents - m.range[0]) + 1);
    }
    choose(&m, how);
    tokmap_writer *w = begin(name[n_parts > 0]);
    uint64_t n_tokens = 0;
    for (uint64_t d = 0; d < m.n_documents; d++) {
        m.lengths[d] = any(4) == 0 ? 0 : any(longest + 1);
        n_tokens += m.lengths[d];
        add(w, m.seed, d, m.lengths[d]);
    }
    must_finish(w);
    if (n_parts > 0 && n_tokens > 4ull * n_parts)
        joined_store_uneven(check_path(name[1]), check_path(name[0]), cells, n_parts);
    m.ds = must_open(check_path(name[n_parts > 0 && n_tokens <= 4ull * n_parts]));
    make_kept(&m, name[2]);
    m.view = open_view(&m, any(2) == 0, name[3]);
    return m;
}

/* Makes another view of the documents of `of`, which may have some in common with its view. */
static made make_another(const made *of, uint32_t k, uint32_t how)
{
    char name[32];
    made m = *of;
    m.borrows = true;
    m.keep = calloc(m.n_documents + 1, 1);
    CHECK(m.keep != NULL);
    choose(&m, how);
    snprintf(name, sizeof name, "k%u", k);
    make_kept(&m, name);
    snprintf(name, sizeof name, "v%u.tmw", k);
    m.view = open_view(&m, any(2) == 0, name);
    return m;
}

/* Whether a source has the same tokens of a dataset twice, or all of them and some again. */
static bool is_twice(const made *all, uint32_t n)
{
    bool found = false;
    for (uint32_t d = 0; d < n; d++)
        for (uint32_t e = d + 1; e < n; e++) {
            const made *a = &all[d], *b = &all[e];
            bool a_all = true, b_all = true, same = true;
            uint64_t n_a = 0, n_b = 0;
            for (uint64_t i = 0; a->ds == b->ds && i < a->n_documents; i++) {
                a_all &= a->keep[i];
                b_all &= b->keep[i];
                same &= a->keep[i] == b->keep[i];
                n_a += a->keep[i] ? a->lengths[i] : 0;
                n_b += b->keep[i] ? b->lengths[i] : 0;
            }
            found |= n_a > 0 && n_b > 0 && (a_all || b_all || same);
        }
    return found;
}

static void free_made(made *m)
{
    tokmap_view_close(m->view);
    if (!m->borrows) {
        tokmap_dataset_close(m->ds);
        free(m->lengths);
    }
    tokmap_dataset_close(m->kept);
    free(m->keep);
}

/* ---- Loaders ---- */

typedef struct setting {
    tokmap_windows windows;
    tokmap_shuffle shuffle;
    bool ranged, joined, sliced;
} setting;

typedef struct pair {
    tokmap_loader *of_view, *of_kept;
} pair;

/* Gives the second loader the order of the first one. */
static void share_order(const pair *p)
{
    for (uint32_t k = 0; k < p->of_view->samples.n_sources; k++) {
        const tokmap_i_order_id id = p->of_view->samples.sources[k].shuffle.id;
        tokmap_i_source *s = &p->of_kept->samples.sources[k];
        s->shuffle.id = s->windows.id = p->of_kept->sampler.shuffles[k].id = id;
    }
}

typedef struct rows {
    int64_t inputs[MAX_ROWS * MAX_LENGTH], labels[MAX_ROWS * MAX_LENGTH];
} rows;

static void compare_rows(const tokmap_batch *a, const tokmap_batch *b)
{
    static rows x, y;
    const bool masks = any(3) > 0;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    corpus_gather(a, masks, x.inputs, x.labels);
    corpus_gather(b, masks, y.inputs, y.labels);
    CHECK(memcmp(&x, &y, sizeof x) == 0);
    for (uint32_t i = 0; i < a->n_rows; i++) {
        const tokmap_row *r = &a->rows[i], *s = &b->rows[i];
        const uint32_t n = a->sequence_length;
        CHECK(r->n_tokens == s->n_tokens && r->epoch == s->epoch && r->window == s->window &&
              r->sample == s->sample && r->dataset == s->dataset && r->source == s->source);
        CHECK(!r->cu_seqlens || (r->n_documents == s->n_documents &&
                                 memcmp(r->cu_seqlens, s->cu_seqlens,
                                        (r->n_documents + 1) * sizeof *r->cu_seqlens) == 0));
        CHECK(!r->position_ids ||
              memcmp(r->position_ids, s->position_ids, n * sizeof(int32_t)) == 0);
        CHECK(!r->document_ids ||
              memcmp(r->document_ids, s->document_ids, n * sizeof(int32_t)) == 0);
        CHECK(!r->loss_mask || memcmp(r->loss_mask, s->loss_mask, n) == 0);
    }
}

/* ---- From documents to samples ---- */

static uint64_t token_of(const tokmap_dataset *ds, uint64_t number)
{
    tokmap_document d;
    CHECK_INT(tokmap_dataset_document(ds, number, &d), TOKMAP_OK);
    return d.first_token;
}

static size_t find(tokmap_loader *l, uint32_t source, uint32_t dataset, uint64_t first, uint64_t n,
                   uint64_t *samples)
{
    tokmap_loader_search s = {.struct_size = sizeof s,
                              .source = source,
                              .dataset = dataset,
                              .epoch = any(2),
                              .first_token = first,
                              .n_tokens = n,
                              .samples = samples,
                              .max_samples = MAX_FOUND};
    tokmap_error err;
    CHECK_OK(tokmap_loader_find(l, &s, &err), err);
    return (size_t)s.n_found;
}

/* Looks for the tokens of some documents, and counts the labels of all. */
static void compare_lookups(const pair *p, uint32_t source, uint32_t dataset, const made *m)
{
    uint64_t a[MAX_FOUND], b[MAX_FOUND], at = 0;
    tokmap_error err;
    const uint64_t n_kept = must_info(m->kept).n_documents, end = any(60);
    uint64_t *counts = calloc(m->n_documents + n_kept + 1, sizeof *counts);
    tokmap_loader_labels o = {.struct_size = sizeof o,
                              .source = source,
                              .dataset = dataset,
                              .n_documents = m->n_documents,
                              .end_sample = end,
                              .labels = counts};
    CHECK(counts != NULL);
    CHECK_OK(tokmap_loader_count_labels(p->of_view, &o, &err), err);
    o.n_documents = n_kept;
    o.labels = counts + m->n_documents;
    CHECK_OK(tokmap_loader_count_labels(p->of_kept, &o, &err), err);
    for (uint64_t d = 0; d < m->n_documents; d++) {
        const bool used = m->keep[d] && d >= m->range[0] && d < m->range[1];
        CHECK_EQ(counts[d], used ? counts[m->n_documents + at] : 0);
        const uint64_t state = corpus_random_state;
        const bool looks = m->n_documents < 100 || d % 4001 == 0;
        const size_t n =
            looks ? find(p->of_view, source, dataset, token_of(m->ds, d), m->lengths[d], a) : 0;
        corpus_random_state = state; /* the same epoch */
        const size_t n_wanted = looks && used ? find(p->of_kept, source, dataset,
                                                     token_of(m->kept, at), m->lengths[d], b)
                                              : 0;
        CHECK_EQ(n, n_wanted);
        for (size_t i = 0; i < n && i < MAX_FOUND; i++)
            CHECK_EQ(a[i], b[i]);
        at += used;
    }
    free(counts);
}

/* ---- Cases ---- */

static tokmap_loader_options options_of(const setting *s, const tokmap_loader_source *sources,
                                        uint32_t n_sources)
{
    tokmap_loader_options o = {LOADER_SIZES,
                               .sources = sources,
                               .n_sources = n_sources,
                               .sequence_length =
                                   s->sliced ? 8 * (1 + any(4)) : 1 + any(MAX_LENGTH),
                               .batch_rows = 1 + any(MAX_ROWS),
                               .seed = any(1000),
                               .windows = s->windows,
                               .shuffle = s->shuffle,
                               .row_parts = any(3) ? ALL_PARTS : TOKMAP_ROW_SPAN_MASK};
    if (s->windows == TOKMAP_WINDOWS_CONCAT)
        o.random_offset = any(2);
    if (s->shuffle == TOKMAP_SHUFFLE_BLOCK && s->windows != TOKMAP_WINDOWS_BEST_FIT) {
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

/* A state of one loader continues another one with other ranks. */
static void resume(const pair *p, const tokmap_loader_options *o)
{
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_loader_options more = *o;
    tokmap_error err;
    CHECK_OK(tokmap_loader_save(p->of_view, state, &err), err);
    more.n_ranks = 2;
    more.rank = any(2);
    more.batch_rows = 1 + any(MAX_ROWS);
    more.io = (tokmap_io)any(6);
    tokmap_loader *l = corpus_open_loader(&more);
    CHECK_OK(tokmap_loader_restore(l, state, &err), err);
    CHECK_OK(tokmap_loader_set_batch(p->of_kept, more.rank, 2, more.batch_rows, &err), err);
    CHECK_OK(tokmap_loader_seek(p->of_kept, tokmap_loader_position(p->of_view), &err), err);
    for (int i = 0; i < 3; i++) {
        const tokmap_batch a = corpus_next(l), b = corpus_next(p->of_kept);
        compare_rows(&a, &b);
    }
    tokmap_loader_close(l);
}

static bool run(const setting *s, bool large)
{
    made all[MAX_SOURCES][MAX_DATASETS] = {{{0}}};
    tokmap_dataset *ds[MAX_SOURCES][MAX_DATASETS], *kept[MAX_SOURCES][MAX_DATASETS];
    tokmap_view *views[MAX_SOURCES][MAX_DATASETS];
    uint64_t documents[MAX_SOURCES][2 * MAX_DATASETS];
    tokmap_loader_source of_view[MAX_SOURCES] = {{0}}, of_kept[MAX_SOURCES] = {{0}};
    const uint32_t n_sources = large ? 1 : 1 + any(MAX_SOURCES);
    for (uint32_t k = 0; k < n_sources; k++) {
        const uint32_t n = large ? 1 : 1 + any(MAX_DATASETS);
        of_view[k] = (tokmap_loader_source){.datasets = ds[k],
                                            .n_datasets = n,
                                            .views = views[k],
                                            .documents = s->ranged ? documents[k] : NULL,
                                            .masked = any(5) == 0,
                                            .weight = 1};
        of_kept[k] = of_view[k];
        of_kept[k].views = NULL;
        of_kept[k].documents = NULL;
        of_kept[k].datasets = kept[k];
        for (uint32_t d = 0; d < n; d++) {
            made *m = &all[k][d];
            const uint32_t i = k * MAX_DATASETS + d, how = any(8) ? 2 + any(4) : any(2);
            if (!s->ranged && i > 0 && d > 0 && any(4) == 0)
                *m = make_another(&all[k][0], i, how);
            else
                *m = make(i, s->joined ? 1 + any(4) : 0, s->ranged, how, large);
            ds[k][d] = m->ds;
            kept[k][d] = m->kept;
            views[k][d] = m->view;
            documents[k][2 * d] = m->range[0];
            documents[k][2 * d + 1] = m->range[1];
        }
    }
    tokmap_loader_options o = options_of(s, of_view, n_sources), same = o;
    same.sources = of_kept;
    same.io = TOKMAP_IO_MAP;
    o.io = (tokmap_io)any(6);
    pair p = {NULL, NULL};
    tokmap_error err, other;
    const tokmap_status status = tokmap_loader_open(&p.of_view, &o, &err);
    const tokmap_status wanted = tokmap_loader_open(&p.of_kept, &same, &other);
    bool any_twice = false;
    for (uint32_t k = 0; k < n_sources; k++)
        any_twice |= is_twice(all[k], of_view[k].n_datasets);
    if (any_twice)
        CHECK_REFUSED(status, TOKMAP_ERR_ARGUMENT, err, "named twice in a source");
    else if (status != wanted)
        CHECK_FAIL("%s; %s", err.text, other.text);
    if (!status) {
        share_order(&p);
        for (int i = 0; i < N_STEPS; i++) {
            const tokmap_batch a = corpus_next(p.of_view), b = corpus_next(p.of_kept);
            compare_rows(&a, &b);
        }
        for (uint32_t k = 0; k < n_sources; k++)
            for (uint32_t d = 0; d < of_view[k].n_datasets; d++)
                compare_lookups(&p, k, d, &all[k][d]);
        resume(&p, &o);
    }
    tokmap_loader_close(p.of_view);
    tokmap_loader_close(p.of_kept);
    for (uint32_t k = 0; k < n_sources; k++)
        for (uint32_t d = 0; d < of_view[k].n_datasets; d++)
            free_made(&all[k][d]);
    return !status;
}

TEST(a_view_is_a_dataset_of_its_documents)
{
    static const char *const windows[] = {"concat", "within_document", "best_fit"};
    static const char *const shuffles[] = {"full", "block", "none"};
    const uint32_t n_each = check_long() ? 1400 : 2; /* each makes about ten datasets */
    uint32_t n_open = 0;
    corpus_random_state = 5;
    for (uint32_t i = 0; i < 72; i++) {
        const setting s = {(tokmap_windows)(i % 3), (tokmap_shuffle)(i / 3 % 3), i / 9 % 2,
                           i / 18 % 2, i / 36 % 2};
        uint32_t n = 0;
        for (uint32_t k = 0; k < n_each; k++)
            n += run(&s, false);
        if (check_long())
            printf("note %u cases with rows: %s, %s%s%s%s\n", n, windows[s.windows],
                   shuffles[s.shuffle], s.ranged ? ", ranges" : "", s.joined ? ", joined" : "",
                   s.sliced ? ", slices" : "");
        CHECK(n >= 50 || !check_long());
        n_open += n;
    }
    printf("note %u cases, %u of them with rows\n", 72 * n_each, n_open);
    CHECK(n_open > 72);
}

TEST(views_of_many_chunks)
{
    corpus_random_state = 9;
    for (uint32_t i = 0; i < (check_long() ? 60 : 6); i++) {
        const setting s = {(tokmap_windows)(i % 3), (tokmap_shuffle)(any(3)), any(2), false, false};
        run(&s, true);
    }
}

/* Writes and opens the view, which has a file, and opens the same documents without one. */
static tokmap_status write_and_open(made *m, const char *path, tokmap_error *e)
{
    tokmap_view *v = NULL;
    tokmap_view_options o = {
        .struct_size = sizeof o, .path = path, .keep = m->keep, .n_keep = m->n_documents};
    tokmap_status status = tokmap_view_write(m->ds, &o, NULL, e);
    o.path = NULL;
    if (!status)
        status = tokmap_view_open(&v, m->ds, &o, e);
    tokmap_view_close(v);
    v = NULL;
    o = (tokmap_view_options){.struct_size = sizeof o, .path = path};
    if (!status)
        status = tokmap_view_open(&v, m->ds, &o, e);
    if (!status)
        status = tokmap_view_verify(v, NULL, NULL, e);
    tokmap_view_close(v);
    return status;
}

TEST(views_without_memory_are_an_error)
{
    uint8_t keep[] = {1, 0, 1, 1, 0, 0, 1};
    made m = {.n_documents = sizeof keep, .keep = keep};
    tokmap_writer *w = begin("p");
    for (uint64_t d = 0; d < m.n_documents; d++)
        add(w, 1, d, (uint32_t)d + 3);
    must_finish(w);
    m.ds = must_open(check_path("p"));
    const char *path = check_path("v.tmw");
    tokmap_error err;
    CHECK_OK(write_and_open(&m, path, &err), err);
    bool fired = FAULT_MEMORY_WORKS;
    for (uint64_t n = 1; fired; n++) {
        unlink(path);
        const int64_t before = fault_n_live;
        fault_arm(FAULT_ONCE, FAULT_MEMORY, ENOMEM, n);
        const tokmap_status status = write_and_open(&m, path, &err);
        fired = fault_disarm();
        CHECK_INT(status, fired ? TOKMAP_ERR_MEMORY : TOKMAP_OK);
        CHECK_INT(fault_n_live, before);
        CHECK(fired || n > 10);
    }
    tokmap_dataset_close(m.ds);
    if (!FAULT_MEMORY_WORKS)
        SKIP("a sanitizer has its own memory");
}

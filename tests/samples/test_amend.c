/* SPDX-License-Identifier: Apache-2.0 */
/* test_amend - a run continues with another mixture: docs/ORDER.md, section 9. Whatever is accepted
 * has the samples of the old loader before the state, sample by sample. */
#include "support/loader_corpus.h"

enum {
    MAX_SOURCES = 5,
    MAX_PHASES = 5,
    LENGTH = 16,
    FAR = 2000, /* samples at most before a change */
    MAX_WINDOWS = 2048
};

/* What a script says about a run. */
typedef struct run {
    tokmap_loader_source sources[MAX_SOURCES];
    double weights[MAX_PHASES][MAX_SOURCES];
    tokmap_loader_phase phases[MAX_PHASES];
    tokmap_loader_options o;
} run;

static corpus_shape shapes[3] = {{.name = "one", .n_tokens = 1500, .token_bytes = 2},
                                 {.name = "two", .n_tokens = 333, .token_bytes = 2},
                                 {.name = "wide", .n_tokens = 900, .token_bytes = 4}};
static tokmap_dataset *datasets[3];
static tokmap_error err;

static void open_shapes(void)
{
    for (int i = 0; i < 3 && !datasets[i]; i++) {
        corpus_cut(&shapes[i], 40);
        corpus_shape_open(&shapes[i]);
        datasets[i] = shapes[i].ds;
    }
}

static double any_weight(void)
{
    static const double weights[] = {0, 1, 1, 2, 0.3, 0.25, 5};
    return weights[check_below(sizeof weights / sizeof *weights)];
}

/* Points the options to the arrays, after a copy. */
static void connect(run *r)
{
    r->o.sources = r->sources;
    r->o.phases = r->phases;
    for (uint32_t i = 0; i < r->o.n_phases; i++)
        r->phases[i].weights = r->weights[i];
}

static void add_source(run *r)
{
    const uint32_t k = r->o.n_sources++;
    r->sources[k] = (tokmap_loader_source){.datasets = &datasets[check_below(3)],
                                           .n_datasets = 1,
                                           .weight = any_weight(),
                                           .max_epochs = check_one_in(3) ? check_below(40) : 0};
    for (uint32_t i = 0; i < r->o.n_phases; i++)
        r->weights[i][k] = any_weight();
}

static void add_phase(run *r, uint64_t from)
{
    const uint32_t i = r->o.n_phases++;
    for (uint32_t k = 0; k < MAX_SOURCES; k++)
        r->weights[i][k] = any_weight();
    r->phases[i].first_sample = from;
}

static run random_run(void)
{
    run r = {.o = {LOADER_SIZES, .sequence_length = LENGTH, .batch_rows = 1, .io = TOKMAP_IO_MAP}};
    const uint32_t n_sources = 1 + check_below(3);
    uint64_t from = 0;
    r.o.seed = check_below(3);
    r.o.shuffle = (tokmap_shuffle)check_below(3);
    r.o.windows = (tokmap_windows)check_below(2);
    r.o.random_offset = r.o.windows == TOKMAP_WINDOWS_CONCAT && check_one_in(2);
    for (uint32_t n = check_below(3); n > 0; n--)
        add_phase(&r, from += 1 + check_below(FAR / 2));
    while (r.o.n_sources < n_sources)
        add_source(&r);
    return r;
}

/* From sample `at` on other weights; and, some of the time, other later phases, limits and sources.
 * What begins before `at` stays. */
static run changed(const run *old, uint64_t at)
{
    run r = *old;
    while (r.o.n_phases > 0 && r.phases[r.o.n_phases - 1].first_sample >= at)
        r.o.n_phases--;
    const uint32_t n_kept = r.o.n_phases, n_sources = r.o.n_sources;
    for (uint32_t n = check_below(3); r.o.n_sources < MAX_SOURCES && n > 0; n--)
        add_source(&r);
    for (uint32_t k = n_sources; k < r.o.n_sources; k++) {
        r.sources[k].weight = at > 0 ? 0 : r.sources[k].weight;
        for (uint32_t i = 0; i < n_kept; i++)
            r.weights[i][k] = 0;
    }
    if (old->o.n_sources == 1 && old->sources[0].weight == 0)
        r.sources[0].weight = 3;
    if (at > 0 && r.o.n_phases < MAX_PHASES)
        add_phase(&r, at);
    if (check_one_in(2) && r.o.n_phases < MAX_PHASES)
        add_phase(&r, at + 1 + check_below(FAR));
    for (uint32_t k = 0; k < r.o.n_sources; k++)
        r.sources[k].max_epochs = check_one_in(4) ? check_below(60) : r.sources[k].max_epochs;
    return r;
}

/* Something that may change samples before the state. */
static void disturb(run *r)
{
    const uint32_t k = check_below(r->o.n_sources), i = check_below(MAX_PHASES);
    switch (check_below(6)) {
    case 0:
        r->sources[k].weight = any_weight();
        break;
    case 1:
        r->sources[k].datasets = &datasets[check_below(3)];
        break;
    case 2:
        r->weights[i][k] = any_weight();
        break;
    case 3:
        r->phases[i].first_sample += check_below(5);
        break;
    case 4:
        r->o.seed = check_below(3);
        break;
    default:
        r->o.n_sources -= r->o.n_sources > 1;
    }
}

static uint64_t n_samples(tokmap_loader *l)
{
    tokmap_loader_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_loader_get_info(l, &info), TOKMAP_OK);
    return info.n_samples;
}

static tokmap_sample locate(tokmap_loader *l, uint64_t sample)
{
    tokmap_sample s = {.struct_size = sizeof s};
    CHECK_INT(tokmap_loader_locate(l, sample, &s, &err), TOKMAP_OK);
    return s;
}

static bool same_sample(tokmap_loader *a, tokmap_loader *b, uint64_t sample)
{
    const tokmap_sample x = locate(a, sample), y = locate(b, sample);
    return x.source == y.source && x.dataset == y.dataset && x.epoch == y.epoch &&
           x.window == y.window && x.first_token == y.first_token && x.n_tokens == y.n_tokens;
}

/* After the change, each source goes on where it was: no window comes again in its epoch. */
static void check_nothing_is_repeated(tokmap_loader *l, uint64_t at, uint32_t n_sources)
{
    const uint64_t end = n_samples(l) < at + 300 ? n_samples(l) : at + 300;
    for (uint32_t k = 0; k < n_sources; k++) {
        tokmap_loader_source_info info = {.struct_size = sizeof info};
        uint8_t seen[4][MAX_WINDOWS / 8] = {{0}};
        CHECK_INT(tokmap_loader_get_source(l, k, &info), TOKMAP_OK);
        const uint64_t first_epoch = info.n_samples_before / info.n_windows;
        uint64_t n = 0;
        for (uint64_t g = at > 300 ? at - 300 : 0; g < end; g++) {
            const tokmap_sample s = locate(l, g);
            if (s.source != k || s.epoch < first_epoch || s.epoch > first_epoch + 3)
                continue;
            uint8_t *byte = &seen[s.epoch - first_epoch][s.window / 8];
            CHECK((*byte >> s.window % 8 & 1) == 0);
            *byte |= (uint8_t)(1 << s.window % 8);
            n += g >= at;
            CHECK(g < at || s.epoch == (info.n_samples_before + n - 1) / info.n_windows);
        }
    }
}

/* Amends with the new run; false: refused. */
static bool try_amend(run *old, run *new, uint64_t at, run *before)
{
    uint8_t state[TOKMAP_STATE_BYTES], again[TOKMAP_STATE_BYTES];
    tokmap_loader *a = NULL, *b = NULL;
    connect(old);
    connect(new);
    if (before)
        connect(before);
    if (tokmap_loader_open(&a, &old->o, &err) || n_samples(a) < at ||
        tokmap_loader_open(&b, &new->o, &err)) {
        tokmap_loader_close(a);
        return false; /* no such run */
    }
    CHECK_INT(tokmap_loader_save_at(a, at, state, &err), TOKMAP_OK);
    const tokmap_status status = tokmap_loader_amend(b, state, before ? &before->o : NULL, &err);
    if (!status) {
        CHECK_EQ(tokmap_loader_position(b), at);
        for (uint64_t g = 0; g < at; g++)
            if (!same_sample(a, b, g))
                CHECK_FAIL("sample %" PRIu64 " of %" PRIu64 " differs", g, at);
        check_nothing_is_repeated(b, at, new->o.n_sources);
        CHECK_INT(tokmap_loader_save(b, again, &err), TOKMAP_OK);
        CHECK_INT(tokmap_loader_restore(b, again, &err), TOKMAP_OK);
    } else {
        CHECK(status == TOKMAP_ERR_MISMATCH || status == TOKMAP_ERR_ARGUMENT);
        CHECK(err.text[0] != 0);
        CHECK_EQ(tokmap_loader_position(b), 0);
    }
    tokmap_loader_close(a);
    tokmap_loader_close(b);
    return status == TOKMAP_OK;
}

static bool ends_before(run *r, uint64_t at)
{
    tokmap_loader *l = NULL;
    connect(r);
    const bool ends = tokmap_loader_open(&l, &r->o, &err) != TOKMAP_OK || n_samples(l) < at;
    tokmap_loader_close(l);
    return ends;
}

/* Whether the default block is not the one before, because a wide source was added. */
static bool has_other_blocks(const run *old, const run *new)
{
    bool was_wide = false, is_wide = false;
    for (uint32_t k = 0; k < new->o.n_sources; k++) {
        const bool wide = new->sources[k].datasets == &datasets[2];
        is_wide |= wide;
        was_wide |= wide && k < old->o.n_sources;
    }
    return new->o.shuffle == TOKMAP_SHUFFLE_BLOCK &&is_wide != was_wide;
}

TEST(a_change_from_the_position_on_is_accepted)
{
    open_shapes();
    uint32_t n = 0, n_wide = 0;
    const uint32_t n_wanted = check_long() ? 20000 : check_sanitized() ? 100 : 1000;
    while (n < n_wanted) {
        run old = random_run();
        const uint64_t at = check_one_in(8) ? 0 : check_below(FAR);
        run new = changed(&old, at);
        if (ends_before(&old, at) || ends_before(&new, at))
            continue;
        const bool other_blocks = has_other_blocks(&old, &new);
        if (try_amend(&old, &new, at, &old) == other_blocks)
            CHECK_FAIL("at sample %" PRIu64 ": %s", at, err.text);
        if (other_blocks) {
            n_wide++;
            CHECK(strstr(err.text, "set block_windows to ") != NULL);
            new.o.block_windows = strtoull(strstr(err.text, "windows to ") + 11, NULL, 10);
            CHECK(try_amend(&old, &new, at, &old));
        }
        n++;
    }
    printf("note %" PRIu32 " changes, %" PRIu32 " of them with a wider source\n", n, n_wide);
}

TEST(any_other_change_is_refused_or_leaves_the_samples_before_it_alone)
{
    open_shapes();
    uint32_t n = 0, n_accepted = 0;
    const uint32_t n_wanted = check_long() ? 20000 : check_sanitized() ? 100 : 1000;
    while (n < n_wanted) {
        run old = random_run(), before = old;
        const uint64_t at = check_below(FAR);
        run new = changed(&old, at);
        disturb(check_one_in(4) ? &before : &new);
        if (ends_before(&old, at) || ends_before(&new, at))
            continue;
        n_accepted += try_amend(&old, &new, at, check_one_in(3) ? NULL : &before);
        n++;
    }
    CHECK(n_accepted > n / 20 && n_accepted < n - n / 20);
    printf("note %" PRIu32 " changes, %" PRIu32 " accepted\n", n, n_accepted);
}

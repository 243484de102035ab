/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/journal_plans.h"

char prefix[600];

const char *const all_suffixes[N_SUFFIXES] = {".bin",          ".tmi",         ".bin.partial",
                                              ".tmi.partial",  ".tmj.partial", ".bin.replaced",
                                              ".tmi.replaced", ".tmv.partial"};

void remove_all_of(const char *of)
{
    for (int i = 0; i < N_SUFFIXES; i++)
        unlink(with_suffix(of, all_suffixes[i]));
}

/* ---- Work ---- */

tokmap_status set_columns(const plan *p, tokmap_writer *w, tokmap_error *err)
{
    static const char *const names[] = {"score", "place", "page"};
    return p->n_columns == 0 ? TOKMAP_OK
                             : tokmap_writer_set_meta_columns(w, names, p->n_columns, err);
}

/* Numbers, words of which there are few, and words of which there are many; some are missing. */
static tokmap_status add_values(const plan *p, tokmap_writer *w, tokmap_error *err)
{
    static const char *const places[] = {"", "here", "over there"};
    const uint64_t document = tokmap_writer_n_documents(w), random = check_mix(p->seed, document);
    char page[40];
    snprintf(page, sizeof page, "page %" PRIu64, random % 100000);
    tokmap_value v[3] = {{.type = random % 3 ? TOKMAP_VALUE_FLOAT64 : TOKMAP_VALUE_INT64,
                          .integer = (int64_t)(random % 1000) - 500,
                          .real = (double)(random % 1000) / 8},
                         {.type = TOKMAP_VALUE_STRING, .text = places[random % 3]},
                         {.type = TOKMAP_VALUE_STRING, .text = page}};
    for (uint32_t i = 0; i < 3; i++) {
        v[i].text_bytes = v[i].text ? strlen(v[i].text) : 0;
        if (check_mix(random, i) % 5 == 0)
            v[i].type = TOKMAP_VALUE_NULL;
    }
    return p->n_columns == 0 || document % 11 == 10
               ? TOKMAP_OK
               : tokmap_writer_add_meta(w, v, p->n_columns, err);
}

tokmap_status step(const plan *p, tokmap_writer *w, uint32_t i, tokmap_error *err)
{
    uint32_t ids[997];
    const uint64_t random = check_mix(p->seed, i);
    tokmap_status status = TOKMAP_OK;
    uint64_t left = random % 5 == 0 ? 0 : check_mix(random, 1) % (p->most_tokens + 1);
    for (uint64_t at = 0; !status && left > 0; at++) {
        size_t n = 0;
        while (n < sizeof ids / sizeof ids[0] && n < left) {
            ids[n] = (uint32_t)(check_mix(random + n, at) % p->vocab_size);
            n++;
        }
        left -= n;
        status = tokmap_writer_append(w, ids, n, err);
    }
    if (i % 4 != 3 && i + 1 < p->n_steps)
        return status;
    for (uint64_t n = 1 + random % 150; !status && n > 0; n--) {
        status = add_values(p, w, err);
        if (!status)
            status = tokmap_writer_end_document(w, err);
    }
    if (!status && (random % 3 == 0 || i + 1 == p->n_steps))
        status = tokmap_writer_end_input(w, random % 2 ? "corpus/part.txt" : "", i, random, err);
    return status;
}

/* ---- Notes ---- */

enum {
    MAX_PLAN_NOTE = 400
};

static size_t make_note(const plan *p, uint32_t next_step, uint8_t note[MAX_PLAN_NOTE])
{
    const size_t n_bytes = 12 + check_mix(p->seed, next_step) % (MAX_PLAN_NOTE - 12);
    for (size_t i = 0; i < n_bytes; i++)
        note[i] = (uint8_t)check_mix(next_step, i);
    memcpy(note, &p->seed, 8);
    memcpy(note + 8, &next_step, 4);
    return n_bytes;
}

uint32_t read_note(const plan *p, const void *note, size_t n_bytes)
{
    uint8_t expected[MAX_PLAN_NOTE];
    uint32_t next_step;
    if (!note)
        return 0;
    CHECK(n_bytes >= 12);
    memcpy(&next_step, (const uint8_t *)note + 8, 4);
    CHECK_EQ(n_bytes, make_note(p, next_step, expected));
    CHECK(memcmp(note, expected, n_bytes) == 0);
    return next_step;
}

/* ---- Runs ---- */

tokmap_status open_run(run *r, tokmap_writer **w, tokmap_error *err)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = r->plan->vocab_size,
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = r->replace,
                                           .resumable = !r->plain,
                                           .unfinished = r->unfinished,
                                           .resume_checkpoint = r->resume_checkpoint};
    const tokmap_status status = tokmap_writer_open(w, prefix, &options, err);
    r->complete = status == TOKMAP_END;
    if (status)
        return status;
    size_t n_bytes;
    const void *note = tokmap_writer_note(*w, &n_bytes);
    r->resumed_from = tokmap_writer_n_checkpoints(*w);
    r->started_at = read_note(r->plan, note, n_bytes);
    return set_columns(r->plan, *w, err);
}

tokmap_status make_checkpoint(const run *r, tokmap_writer *w, uint32_t next_step, tokmap_error *err)
{
    uint8_t note[MAX_PLAN_NOTE];
    const size_t n_bytes = make_note(r->plan, next_step, note);
    const tokmap_status status = tokmap_writer_checkpoint(w, note, n_bytes, err);
    if (!status && r->n_checkpoints)
        *r->n_checkpoints = tokmap_writer_n_checkpoints(w);
    return status;
}

tokmap_status play(const run *r, tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = r->started_at; !status && i < r->plan->n_steps; i++) {
        if (r->stop_at > 0 && i == r->stop_at)
            return TOKMAP_OK;
        status = step(r->plan, w, i, err);
        if (!status && r->checkpoint_every > 0 && (i + 1) % r->checkpoint_every == 0)
            status = make_checkpoint(r, w, i + 1, err);
    }
    if (!status)
        status = tokmap_writer_set_metadata(w, "{\"a\": 1}", 8, err);
    return status || r->stop_at > 0 ? status : tokmap_writer_finish(w, err);
}

tokmap_status run_plan(run *r, tokmap_error *err)
{
    tokmap_writer *w = NULL;
    tokmap_status status = open_run(r, &w, err);
    if (!status)
        status = play(r, w, err);
    tokmap_writer_close(w);
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

run run_well(run r)
{
    tokmap_error err;
    if (run_plan(&r, &err))
        CHECK_FAIL("seed %d: %s", (int)r.plan->seed, err.text);
    return r;
}

/* ---- Files ---- */

files load_files(const char *of)
{
    files all;
    for (int i = 0; i < N_SUFFIXES; i++)
        all.f[i] = file_load(with_suffix(of, all_suffixes[i]));
    return all;
}

void store_files(const files *all)
{
    remove_all_of(prefix);
    for (int i = 0; i < N_SUFFIXES; i++)
        if (all->f[i].data)
            CHECK(file_store(with_suffix(prefix, all_suffixes[i]), all->f[i].data,
                             all->f[i].n_bytes));
}

void free_files(files *all)
{
    for (int i = 0; i < N_SUFFIXES; i++)
        free(all->f[i].data);
}

/* Whether the files of `of` are these now; else *which is one that is not. */
static bool same_files(const files *all, const char **which)
{
    bool same = true;
    for (int i = 0; i < N_SUFFIXES && same; i++) {
        const char *path = with_suffix(prefix, all_suffixes[i]);
        same = all->f[i].data ? file_holds(path, &all->f[i]) : !file_is_there(path);
        *which = all_suffixes[i];
    }
    return same;
}

files uninterrupted(const plan *p)
{
    char name[32], kept[sizeof prefix];
    snprintf(name, sizeof name, "whole-%d", (int)p->seed);
    memcpy(kept, prefix, sizeof kept);
    snprintf(prefix, sizeof prefix, "%s", check_path(name));
    run_well((run){.plan = p, .plain = true, .replace = true});
    files all = load_files(prefix);
    CHECK(all.f[0].data && all.f[1].data && !all.f[2].data && !all.f[3].data);
    memcpy(prefix, kept, sizeof kept);
    return all;
}

void expect_files(const files *all, const char *what)
{
    const char *which;
    if (!same_files(all, &which))
        CHECK_FAIL("%s: P%s is not as it should be", what, which);
}

/* ---- A small work for many runs ---- */

const plan SMALL = {
    .seed = 4, .n_steps = 23, .most_tokens = 300, .vocab_size = 70000, .n_columns = 3};

void start(void)
{
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    remove_all_of(prefix);
}

const char *file_of(const char *suffix)
{
    return with_suffix(prefix, suffix);
}

files leave(const plan *p, uint32_t checkpoint_every, uint32_t stop_at)
{
    remove_all_of(prefix);
    run_well((run){.plan = p, .checkpoint_every = checkpoint_every, .stop_at = stop_at});
    return load_files(prefix);
}

void expect_refused(run r, tokmap_status wanted, const char *words)
{
    tokmap_error err;
    files before = load_files(prefix);
    const tokmap_status status = run_plan(&r, &err);
    if (status != wanted || err.status != wanted || !strstr(err.text, words))
        CHECK_FAIL("status %d: %s", (int)status, err.text);
    expect_files(&before, err.text);
    free_files(&before);
}

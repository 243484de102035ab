/* SPDX-License-Identifier: Apache-2.0 */
/* test_stopped - on_progress of every call that has one: it counts up to its total, and stops the
 * call at any time, which then leaves what any other error leaves. */
#include "support/check.h"

#include "support/must.h"
#include "tokmap_loader.h"
#include "tokmap_writer.h"

enum {
    N_DOCUMENTS = 150000, /* more than two chunks of a view */
    DOCUMENT_TOKENS = 11, /* more than three blocks in all */
    NEVER = 1000000000
};

typedef struct calls {
    uint64_t n, stop_at; /* calls, and the one that stops; from 1 */
    uint64_t done, total;
    bool is_wrong; /* it went backwards, or beyond the total, or came after the stop or the total */
} calls;

static calls seen;
static tokmap_dataset *ds;
static tokmap_column *column;
static tokmap_view *view;

static int on_progress(void *context, uint64_t n_done, uint64_t n_total)
{
    calls *c = context;
    c->is_wrong |= c->n >= c->stop_at || n_done > n_total || n_done < c->done ||
                   (c->n > 0 && (n_total != c->total || c->done == n_total));
    c->n++;
    c->done = n_done;
    c->total = n_total;
    return c->n == c->stop_at ? 7 : 0;
}

static void add_documents(tokmap_writer *w)
{
    static uint32_t ids[DOCUMENT_TOKENS];
    tokmap_error err;
    for (uint64_t d = 0; d < N_DOCUMENTS; d++) {
        for (uint32_t i = 0; i < DOCUMENT_TOKENS; i++)
            ids[i] = (uint32_t)((d * DOCUMENT_TOKENS + i) % 1000);
        CHECK_OK(tokmap_writer_append(w, ids, DOCUMENT_TOKENS, &err), err);
        CHECK_OK(tokmap_writer_end_document(w, &err), err);
    }
}

static tokmap_writer_options writer_options(void)
{
    return (tokmap_writer_options){.struct_size = sizeof(tokmap_writer_options),
                                   .vocab_size = 1000,
                                   .replace = 1,
                                   .context = &seen,
                                   .on_progress = on_progress};
}

/* ---- The calls ---- */

static tokmap_status verify(tokmap_error *err)
{
    const tokmap_verify_options o = {
        .struct_size = sizeof o, .n_threads = 3, .context = &seen, .on_progress = on_progress};
    return tokmap_dataset_verify(ds, &o, NULL, err);
}

static tokmap_status verify_column(tokmap_error *err)
{
    return tokmap_column_verify(column, on_progress, &seen, err);
}

static tokmap_status verify_view(tokmap_error *err)
{
    return tokmap_view_verify(view, on_progress, &seen, err);
}

static tokmap_status open_view(tokmap_error *err)
{
    const tokmap_view_options o = {
        .struct_size = sizeof o, .where = "late > 4", .context = &seen, .on_progress = on_progress};
    tokmap_view *v;
    const tokmap_status status = tokmap_view_open(&v, ds, &o, err);
    CHECK(!status == (v != NULL));
    tokmap_view_close(v);
    return status;
}

static tokmap_status write_view(tokmap_error *err)
{
    const tokmap_view_options o = {.struct_size = sizeof o,
                                   .where = "late > 5",
                                   .path = check_path("made.tmw"),
                                   .context = &seen,
                                   .on_progress = on_progress};
    return tokmap_view_write(ds, &o, NULL, err);
}

static tokmap_status write_rows(tokmap_error *err)
{
    const tokmap_rows_options o = {.struct_size = sizeof o,
                                   .sequence_length = 64,
                                   .path = check_path("made.tmr"),
                                   .context = &seen,
                                   .on_progress = on_progress};
    return tokmap_rows_write(ds, &o, NULL, err);
}

/* Ends the writer of the dataset `made`. A stopped one repeats its failure, and leaves nothing. */
static tokmap_status end_writer(tokmap_writer *w, tokmap_status status)
{
    tokmap_error err;
    if (status)
        CHECK_INT(tokmap_writer_finish(w, &err), status);
    tokmap_writer_close(w);
    return status;
}

static tokmap_status append(tokmap_error *err)
{
    const tokmap_writer_options o = writer_options();
    tokmap_writer *w = must_begin(check_path("made"), &o);
    return end_writer(w, tokmap_writer_append_dataset(w, ds, err));
}

static tokmap_status join(tokmap_error *err)
{
    const tokmap_writer_options o = writer_options();
    tokmap_writer *w;
    CHECK_OK(tokmap_writer_open_joined(&w, check_path("made"), &o, err), *err);
    return end_writer(w, tokmap_writer_join(w, ds, NULL, err));
}

static tokmap_status redact(tokmap_error *err)
{
    const tokmap_writer_options o = writer_options();
    const uint64_t documents[] = {3, 70000, N_DOCUMENTS - 1};
    tokmap_redact_info info = TOKMAP_INIT(tokmap_redact_info);
    tokmap_writer *w = must_begin(check_path("made"), &o);
    return end_writer(w, tokmap_writer_redact(w, ds, documents, 3, &info, err));
}

static tokmap_status finish(tokmap_error *err)
{
    const tokmap_writer_options o = writer_options();
    tokmap_writer *w = must_begin(check_path("made"), &o);
    add_documents(w);
    return end_writer(w, tokmap_writer_finish(w, err));
}

static const struct {
    const char *name;
    tokmap_status (*run)(tokmap_error *err);
    uint64_t least;   /* calls of on_progress */
    const char *made; /* the file that the call makes, and that no stopped one leaves */
} all[] = {{"verify", verify, 5, NULL},
           {"column_verify", verify_column, 4, NULL},
           {"view_verify", verify_view, 2, NULL},
           {"view_open", open_view, 4, NULL},
           {"view_write", write_view, 5, "made.tmw"},
           {"rows_write", write_rows, 1, "made.tmr"},
           {"append_dataset", append, 5, "made.tmi"},
           {"join", join, 2, "made.tmi"},
           {"redact", redact, 4, "made.tmi"},
           {"finish", finish, 2, "made.tmi"}};

static bool exists(const char *name)
{
    char partial[600];
    snprintf(partial, sizeof partial, "%s.partial", check_path(name));
    return access(check_path(name), F_OK) == 0 || access(partial, F_OK) == 0;
}

static void try_call(size_t k)
{
    tokmap_error err = {0};
    uint64_t n_calls = NEVER, next;
    for (uint64_t stop_at = NEVER; stop_at != 0; stop_at = next) {
        seen = (calls){.stop_at = stop_at};
        const tokmap_status status = all[k].run(&err);
        if (seen.is_wrong || status != (stop_at == NEVER ? TOKMAP_OK : TOKMAP_ERR_STOPPED))
            CHECK_FAIL("%s, stopped at call %" PRIu64 " of %" PRIu64 ": %d, %s", all[k].name,
                       stop_at, n_calls, (int)status, err.text);
        if (stop_at == NEVER) {
            n_calls = seen.n;
            if (n_calls < all[k].least || seen.done != seen.total)
                CHECK_FAIL("%s: %" PRIu64 " calls, %" PRIu64 " of %" PRIu64, all[k].name, n_calls,
                           seen.done, seen.total);
        } else {
            CHECK_STR(err.text, "stopped by on_progress");
            CHECK(!all[k].made || !exists(all[k].made));
        }
        if (all[k].made)
            unlink(check_path(all[k].made));
        unlink(check_path("made.bin"));
        next = stop_at == NEVER ? n_calls : stop_at / 2;
    }
}

TEST(every_call_counts_to_its_total_and_can_be_stopped)
{
    tokmap_writer_options options = writer_options();
    options.on_progress = NULL;
    tokmap_error err;
    tokmap_writer *w = must_begin(check_path("P"), &options);
    add_documents(w);
    must_finish(w);
    ds = must_open(check_path("P"));
    const tokmap_column_options late = {.struct_size = sizeof late, .name = "late"};
    tokmap_column_writer *values;
    CHECK_OK(tokmap_column_writer_open(&values, ds, &late, &err), err);
    for (uint64_t d = 0; d < N_DOCUMENTS; d++) {
        const tokmap_value v = {.type = TOKMAP_VALUE_INT64, .integer = (int64_t)(d % 10)};
        CHECK_OK(tokmap_column_writer_put(values, d, &v, 1, &err), err);
    }
    CHECK_OK(tokmap_column_writer_finish(values, &err), err);
    tokmap_column_writer_close(values);
    CHECK_OK(tokmap_column_open(&column, ds, "late", &err), err);
    const tokmap_view_options of_view = {.struct_size = sizeof of_view, .where = "late < 9"};
    CHECK_OK(tokmap_view_open(&view, ds, &of_view, &err), err);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        try_call(k);
    tokmap_view_close(view);
    tokmap_column_close(column);
    tokmap_dataset_close(ds);
}

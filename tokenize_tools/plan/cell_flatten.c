/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cell_flatten.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "plan/cell_join.h"
#include "plan/cell_state.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/platform_thread.h"
#include "tokmap_writer.h"

enum {
    MAX_THREADS = 64,
    WAIT_MS = 100,
    MOST_WAITS = 100 /* for another process that begins the same copy */
};

typedef struct flatten_state {
    const plan_file *plan;
    const cell_flatten_options *options;
    char joined[PATH_PREFIX_BYTES];  /* .P.HASH: hidden from patterns of datasets */
    char visible[PATH_PREFIX_BYTES]; /* P.HASH, its name in version 0.1 */
} flatten_state;

static void name_index(char path[PATH_PREFIX_BYTES + 8], const char *prefix)
{
    snprintf(path, PATH_PREFIX_BYTES + 8, "%s.tmi", prefix);
}

/* ---- Joining ---- */

/* While .P.HASH exists, what exists of the outputs is from an earlier process of this copy. */
static int refuse_existing(const flatten_state *s)
{
    char output[PATH_PREFIX_BYTES], path[PATH_PREFIX_BYTES + 8], old[PATH_PREFIX_BYTES + 8];
    name_index(path, s->joined);
    name_index(old, s->visible);
    if (s->options->force || file_name_exists(path) || file_name_exists(old))
        return CLI_OK;
    for (size_t i = 0; cell_join_output(s->plan, s->options->prefix, i, output); i++) {
        name_index(path, output);
        if (file_name_exists(path))
            return cli_error(CLI_EXISTS, "%s: already exists; replace it with --force", path);
    }
    return CLI_OK;
}

static int check_names(flatten_state *s)
{
    const char *prefix = s->options->prefix, *name = path_last_part(prefix);
    const int n = snprintf(s->joined, sizeof s->joined, "%.*s.%s.%016" PRIx64, (int)(name - prefix),
                           prefix, name, s->plan->hash);
    snprintf(s->visible, sizeof s->visible, "%s.%016" PRIx64, prefix, s->plan->hash);
    if ((size_t)n >= sizeof s->joined)
        return cli_usage("-o: the path is too long");
    const int code = cell_join_check_names(s->plan, s->options->prefix);
    return code == CLI_OK ? refuse_existing(s) : code;
}

static int join_once(flatten_state *s)
{
    const cell_join_options options = {
        .prefix = s->joined, .force = true, .quiet = true, .temporary = true};
    char path[PATH_PREFIX_BYTES + 8];
    name_index(path, s->joined);
    int code = CELL_JOIN_TAKEN;
    while (code == CELL_JOIN_TAKEN && !file_name_exists(path)) {
        code = cell_join(s->plan, &options);
        if (code == CELL_JOIN_TAKEN)
            tokmap_i_sleep_ns(WAIT_MS * UINT64_C(1000000));
    }
    return code == CELL_JOIN_TAKEN ? CLI_OK : code;
}

/* ---- Copying ---- */

typedef struct copy_thread {
    const tokmap_dataset *ds;
    const char *path;
    tokmap_copy_options options;
    tokmap_error err;
} copy_thread;

static void *copy_share(void *context)
{
    copy_thread *t = context;
    tokmap_status status = TOKMAP_ERR_LOCKED;
    for (int i = 0; status == TOKMAP_ERR_LOCKED && i < MOST_WAITS; i++) {
        if (i > 0)
            tokmap_i_sleep_ns(WAIT_MS * UINT64_C(1000000));
        status = tokmap_writer_copy_part(t->ds, t->path, &t->options, &t->err);
    }
    return NULL;
}

/* The calling thread is the first one; when the system gives fewer, it does their shares too. */
static int copy_shares(const flatten_state *s, const tokmap_dataset *ds, const char *path)
{
    const cell_flatten_options *o = s->options;
    copy_thread threads[MAX_THREADS];
    tokmap_i_thread handles[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    unsigned n = o->n_threads < MAX_THREADS ? o->n_threads : MAX_THREADS;
    n = o->n_tasks > UINT32_MAX / MAX_THREADS ? 1 : n;
    for (unsigned i = 0; i < n; i++) {
        threads[i] = (copy_thread){.ds = ds,
                                   .path = path,
                                   .options = {.struct_size = sizeof threads[i].options,
                                               .part = o->task * n + i,
                                               .n_parts = o->n_tasks * n,
                                               .replace = o->force}};
        started[i] = i > 0 && tokmap_i_thread_start(&handles[i], copy_share, &threads[i]) == 0;
    }
    for (unsigned i = 0; i < n; i++)
        if (!started[i])
            copy_share(&threads[i]);
    const tokmap_error *first = NULL;
    for (unsigned i = 0; i < n; i++) {
        if (started[i])
            tokmap_i_thread_join(handles[i]);
        if (!first && threads[i].err.status < 0)
            first = &threads[i].err;
    }
    return first ? cli_fail(first) : CLI_OK;
}

static int finish_copy(const flatten_state *s, const tokmap_dataset *ds, const char *path)
{
    tokmap_error err;
    const tokmap_copy_options options = {.struct_size = sizeof options,
                                         .replace = s->options->force};
    return tokmap_writer_copy_finish(ds, path, &options, &err) == TOKMAP_OK ? CLI_OK
                                                                            : cli_fail(&err);
}

/* Whether an earlier process has finished the output. */
static bool is_finished(const flatten_state *s, const tokmap_dataset *joined, const char *path)
{
    tokmap_dataset *ds;
    tokmap_dataset_info was = {.struct_size = sizeof was}, is = was;
    if (s->options->force || tokmap_dataset_open(&ds, path, NULL) != TOKMAP_OK)
        return false;
    size_t n_was, n_is;
    const char *json_was = tokmap_dataset_metadata(joined, &n_was);
    const char *json_is = tokmap_dataset_metadata(ds, &n_is);
    tokmap_dataset_get_info(joined, &was);
    tokmap_dataset_get_info(ds, &is);
    const bool same = is.n_segments == 0 && n_was == n_is && memcmp(json_was, json_is, n_is) == 0 &&
                      memcmp(was.dataset_id, is.dataset_id, sizeof was.dataset_id) == 0;
    tokmap_dataset_close(ds);
    return same;
}

/* The process that finished it may have been killed before it removed its temporary names. */
static int clear_up(const tokmap_dataset *joined, const char *path)
{
    tokmap_writer *w;
    tokmap_error err;
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(joined, &info);
    const tokmap_writer_options options = {
        .struct_size = sizeof options,
        .vocab_size = info.vocab_size,
        .has_eod = info.eod_id != TOKMAP_NO_ID,
        .eod_id = info.eod_id,
        .token_bytes = info.token_bytes,
        .unfinished = TOKMAP_UNFINISHED_RESUME,
    };
    const tokmap_status status = tokmap_writer_open(&w, path, &options, &err);
    tokmap_writer_close(w);
    return status < 0 ? cli_fail(&err) : CLI_OK;
}

static int finish_output(const flatten_state *s, const tokmap_dataset *joined, const char *path)
{
    return is_finished(s, joined, path) ? clear_up(joined, path) : finish_copy(s, joined, path);
}

static int copy_share_of(const flatten_state *s, const tokmap_dataset *joined, const char *path)
{
    return is_finished(s, joined, path) ? CLI_OK : copy_shares(s, joined, path);
}

/* Copies the share of output `which`, or finishes it. */
static int copy_output(const flatten_state *s, size_t which, bool finish)
{
    char output[PATH_PREFIX_BYTES], joined[PATH_PREFIX_BYTES], path[PATH_PREFIX_BYTES + 8];
    tokmap_dataset *ds;
    tokmap_error err;
    cell_join_output(s->plan, s->joined, which, joined);
    cell_join_output(s->plan, s->options->prefix, which, output);
    name_index(path, joined);
    const tokmap_status status = tokmap_dataset_open(&ds, path, &err);
    const bool is_gone = status == TOKMAP_ERR_IO && !file_name_exists(path);
    name_index(path, output);
    if (is_gone && file_name_exists(path))
        return CLI_OK; /* another process has finished all outputs, and then removed it */
    if (status != TOKMAP_OK)
        return cli_fail(&err);
    if (!cell_is_joined(s->plan, which, ds)) {
        tokmap_dataset_close(ds);
        return cli_error(CLI_DATASET, "%s.tmi: is not made of the cells of this plan; remove it",
                         joined);
    }
    const int code = finish ? finish_output(s, ds, path) : copy_share_of(s, ds, path);
    tokmap_dataset_close(ds);
    return code;
}

/* ---- The end ---- */

/* A process that was killed, or one that runs now, may have placed the same file. */
static int place_bad(const flatten_state *s)
{
    char path[PATH_PREFIX_BYTES + 8], placed[PATH_PREFIX_BYTES + 8];
    output_file out;
    cli_progress none = {0};
    output_source src = {.path = path, .progress = &none};
    output_way way;
    file_facts facts;
    if (!plan_file_collects(s->plan))
        return CLI_OK;
    snprintf(path, sizeof path, "%s.bad", s->joined);
    snprintf(placed, sizeof placed, "%s.bad", s->options->prefix);
    if (file_equals(path, placed))
        return CLI_OK;
    int code = output_name(&out, s->options->prefix, ".bad", s->options->force);
    if (code != CLI_OK)
        return code;
    if (file_open(path, &src.fd, &facts) != 0) { /* there are none */
        const int error = s->options->force ? output_try_remove(out.path) : 0;
        return error ? cli_error(cli_errno_exit_code(error), "%s: cannot remove: %s", out.path,
                                 strerror(error))
                     : CLI_OK;
    }
    code = output_share(&out, &src, &way);
    tokmap_i_file_close(src.fd);
    return code;
}

static void remove_file(const char *prefix, const char *suffix)
{
    char path[PATH_PREFIX_BYTES + 24];
    snprintf(path, sizeof path, "%s%s", prefix, suffix);
    output_try_remove(path);
}

/* With what killed processes have left of it. The index of all documents last, because it says that
 * this copy goes on. */
static void remove_joined(const flatten_state *s, const char *prefix)
{
    char joined[PATH_PREFIX_BYTES];
    remove_file(prefix, ".bad.partial");
    remove_file(prefix, ".bad");
    for (size_t i = plan_file_splits(s->plan).n + 1; i-- > 0;) {
        cell_join_output(s->plan, prefix, i, joined);
        remove_file(joined, ".tmv.partial");
        remove_file(joined, ".tmi.partial");
        remove_file(joined, ".tmi");
    }
}

static int print_results(const flatten_state *s)
{
    char output[PATH_PREFIX_BYTES];
    int code = CLI_OK;
    if (s->options->quiet && !s->options->json)
        return CLI_OK;
    for (size_t i = 0; cell_join_output(s->plan, s->options->prefix, i, output); i++) {
        const int printed = cli_print_result(output, NULL, s->options->json);
        code = code == CLI_OK ? printed : code;
    }
    return code;
}

static int finish_all(const flatten_state *s)
{
    const size_t n_splits = plan_file_splits(s->plan).n;
    int code = CLI_OK;
    for (size_t i = 1; i <= n_splits && code == CLI_OK; i++)
        code = copy_output(s, i, true);
    if (code == CLI_OK)
        code = place_bad(s);
    if (code == CLI_OK)
        code = copy_output(s, 0, true);
    if (code != CLI_OK)
        return code;
    remove_joined(s, s->visible);
    remove_joined(s, s->joined);
    return print_results(s);
}

int cell_flatten(const plan_file *plan, const cell_flatten_options *options)
{
    flatten_state s = {.plan = plan, .options = options};
    const size_t n_splits = plan_file_splits(plan).n;
    int code = check_names(&s);
    if (code == CLI_OK)
        code = join_once(&s);
    for (size_t i = 0; i <= n_splits && code == CLI_OK; i++)
        code = copy_output(&s, i, false);
    return code == CLI_OK && !options->is_task ? finish_all(&s) : code;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cell_flatten.c - joins the cells for all processes once, copies their tokens, gives the names. */
#include "plan/cell_join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"
#include "plan/cell_state.h"
#include "system/output_file.h"
#include "system/platform.h"
#include "system/platform_thread.h"
#include "tokmap_writer.h"

enum {
    MAX_THREADS = TOKMAP_I_MAX_THREADS,
    WAIT_MS = 100,
    MOST_WAITS = 100 /* for another process that begins the same copy */
};

typedef struct flatten_state {
    const plan_file *plan;
    const cell_join_options *options;
    char joined[PATH_PREFIX_BYTES]; /* .P.HASH: hidden from patterns of datasets */
} flatten_state;

/* ---- Joining ---- */

static int check_names(flatten_state *s)
{
    const char *prefix = s->options->prefix, *name = path_last_part(prefix);
    const int n = snprintf(s->joined, sizeof s->joined, "%.*s.%s.%016" PRIx64, (int)(name - prefix),
                           prefix, name, s->plan->hash);
    if ((size_t)n >= sizeof s->joined)
        return cli_usage("-o: the path is too long");
    const int code = cell_join_check_names(s->plan, prefix);
    /* While .P.HASH exists, what exists of the outputs is from an earlier process of this copy. */
    if (code != CLI_OK || s->options->force || file_suffix_exists(s->joined, ".tmi"))
        return code;
    for (size_t i = 0; i < s->plan->splits.n; i++) {
        const path_text path = plan_split_path(prefix, s->plan->splits.names[i], ".tmi");
        if (file_name_exists(path.s))
            return cli_error(CLI_EXISTS, "%s: already exists; replace it with --force", path.s);
    }
    return CLI_OK;
}

static int join_once(flatten_state *s)
{
    const cell_join_options options = {
        .prefix = s->joined, .force = true, .quiet = true, .temporary = true};
    int code = CELL_JOIN_TAKEN;
    while (code == CELL_JOIN_TAKEN && !file_suffix_exists(s->joined, ".tmi")) {
        code = cell_join(s->plan, &options);
        if (code == CELL_JOIN_TAKEN)
            tokmap_i_sleep_ns(WAIT_MS * UINT64_C(1000000));
    }
    return code == CELL_JOIN_TAKEN ? CLI_OK : code;
}

/* ---- Copying ---- */

typedef struct copy_work {
    const tokmap_dataset *ds;
    const char *path;
    tokmap_copy_options options; /* of the first share */
    unsigned n_shares;
    atomic_uint next;
    tokmap_error errors[MAX_THREADS]; /* of each share */
} copy_work;

static void *copy_some(void *context)
{
    copy_work *w = context;
    for (unsigned share; (share = w->next++) < w->n_shares;) {
        tokmap_copy_options options = w->options;
        tokmap_status status = TOKMAP_ERR_LOCKED;
        options.part += share;
        for (int i = 0; status == TOKMAP_ERR_LOCKED && i < MOST_WAITS; i++) {
            if (i > 0)
                tokmap_i_sleep_ns(WAIT_MS * UINT64_C(1000000));
            status = tokmap_writer_copy_part(w->ds, w->path, &options, &w->errors[share]);
        }
    }
    return NULL;
}

/* A share for each thread; when the system gives fewer threads, these do more. */
static int copy_shares(const flatten_state *s, const tokmap_dataset *ds, const char *path)
{
    const cell_join_options *o = s->options;
    unsigned n = o->n_threads < MAX_THREADS ? (unsigned)o->n_threads : MAX_THREADS;
    const uint64_t n_tasks = o->n_tasks ? o->n_tasks : 1;
    n = n_tasks > UINT32_MAX / MAX_THREADS ? 1 : n;
    copy_work work = {.ds = ds,
                      .path = path,
                      .options = {.struct_size = sizeof work.options,
                                  .part = o->task * n,
                                  .n_parts = n_tasks * n,
                                  .replace = o->force},
                      .n_shares = n};
    tokmap_i_run_threads(n, copy_some, &work);
    for (unsigned i = 0; i < n; i++) {
        if (work.errors[i].status < 0)
            return cli_fail(&work.errors[i]);
    }
    return CLI_OK;
}

/* Whether an earlier process has finished the output. */
static bool is_finished(const flatten_state *s, const tokmap_dataset *joined, const char *path)
{
    tokmap_dataset *ds;
    if (s->options->force || tokmap_dataset_open(&ds, path, NULL) != TOKMAP_OK)
        return false;
    size_t n_was, n_is;
    const char *json_was = tokmap_dataset_metadata(joined, &n_was);
    const char *json_is = tokmap_dataset_metadata(ds, &n_is);
    const tokmap_dataset_info was = cli_dataset_info(joined), is = cli_dataset_info(ds);
    const bool same = is.n_segments == 0 && n_was == n_is && memcmp(json_was, json_is, n_is) == 0 &&
                      memcmp(was.dataset_id, is.dataset_id, sizeof was.dataset_id) == 0;
    tokmap_dataset_close(ds);
    return same;
}

/* Copies the share of an output, or finishes it. */
static int copy_output(const flatten_state *s, const char *split, bool finish)
{
    const path_text joined = plan_split_path(s->joined, split, ".tmi");
    const path_text path = plan_split_path(s->options->prefix, split, ".tmi");
    const tokmap_copy_options options = {.struct_size = sizeof options,
                                         .replace = s->options->force};
    tokmap_dataset *ds;
    tokmap_error err;
    int code;
    const tokmap_status status = tokmap_dataset_open(&ds, joined.s, &err);
    const bool is_gone = status == TOKMAP_ERR_IO && !file_name_exists(joined.s);
    if (is_gone && file_name_exists(path.s))
        return CLI_OK; /* another process has finished all outputs, and then removed it */
    if (status != TOKMAP_OK)
        return cli_fail(&err);
    if (!cell_is_joined(s->plan, split, ds))
        code = cli_error(CLI_DATASET, "%s: is not made of the cells of this plan; remove it",
                         joined.s);
    else if (is_finished(s, ds, path.s))
        code = finish ? cell_clear_up(path.s) : CLI_OK;
    else if (!finish)
        code = copy_shares(s, ds, path.s);
    else
        code = tokmap_writer_copy_finish(ds, path.s, &options, &err) == TOKMAP_OK ? CLI_OK
                                                                                  : cli_fail(&err);
    tokmap_dataset_close(ds);
    return code;
}

/* ---- The end ---- */

/* A process that was killed, or one that runs now, may have placed the same file. */
static int place_bad(const flatten_state *s)
{
    const path_text path = path_of(s->joined, ".bad");
    output_file out;
    cli_progress none = {0};
    output_source src = {.path = path.s, .progress = &none};
    output_way way;
    file_facts facts;
    uint64_t checksum;
    if (!plan_file_collects(s->plan))
        return CLI_OK;
    const int error = file_open(path.s, &src.fd, &facts);
    const bool has_bad = error == 0;
    if (error && error != ENOENT)
        return cli_error(cli_errno_exit_code(error), "%s: %s", path.s, strerror(error));
    const bool is_placed =
        has_bad && cell_bad_checksum(src.fd, 0, facts.n_bytes, &checksum) == 0 &&
        cell_bad_is(path_of(s->options->prefix, ".bad").s, facts.n_bytes, checksum);
    int code =
        is_placed ? CLI_OK : output_name(&out, s->options->prefix, ".bad", s->options->force);
    if (code == CLI_OK && !is_placed && has_bad)
        code = output_share(&out, &src, &way);
    else if (code == CLI_OK && !has_bad && s->options->force) /* as in cell_join */
        code = output_remove(out.path);
    tokmap_i_file_close(src.fd);
    return code;
}

/* With what killed processes have left of it. The index of all documents last, because it says that
 * this copy goes on. */
static void remove_joined(const flatten_state *s)
{
    static const char *const suffixes[] = {".tmv.partial", ".tmi.partial", ".tmi"};
    output_try_remove(path_of(s->joined, ".bad.partial").s);
    output_try_remove(path_of(s->joined, ".bad").s);
    for (size_t i = s->plan->splits.n; i-- > 0;)
        for (size_t k = 0; k < sizeof suffixes / sizeof *suffixes; k++)
            output_try_remove(plan_split_path(s->joined, s->plan->splits.names[i], suffixes[k]).s);
}

int cell_flatten(const plan_file *plan, const cell_join_options *options)
{
    flatten_state s = {.plan = plan, .options = options};
    int code = check_names(&s);
    if (code == CLI_OK)
        code = join_once(&s);
    for (size_t i = 0; i < plan->splits.n && code == CLI_OK; i++)
        code = copy_output(&s, plan->splits.names[i], false);
    if (code != CLI_OK || options->n_tasks > 0)
        return code;
    for (size_t i = 1; i < plan->splits.n && code == CLI_OK; i++)
        code = copy_output(&s, plan->splits.names[i], true);
    if (code == CLI_OK)
        code = place_bad(&s);
    if (code == CLI_OK)
        code = copy_output(&s, plan->splits.names[0], true);
    if (code != CLI_OK)
        return code;
    remove_joined(&s);
    return cell_join_print_results(plan, options);
}

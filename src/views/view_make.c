/* SPDX-License-Identifier: Apache-2.0 */
/* view_make.c - makes views, in memory or as files, and opens and writes them for callers. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "columns/select.h"
#include "dataset/index_reader.h"
#include "dataset/side_file.h"
#include "dataset/store.h"
#include "system/platform.h"
#include "views/view.h"

enum {
    MOST_MADE = 10000000, /* documents of a view that is made in memory */
    MOST_TRIES = 100,     /* while other programs replace the columns */
    WORDS = TOKMAP_I_VIEW_CHUNK / 64,
    RUNS_AT_ONCE = 512
};

typedef struct maker {
    tokmap_view *v;
    tokmap_i_bytes out; /* all bytes, or those of the current chunk */
    uint64_t written;   /* bytes of the file before `out`; in memory 0 */
    tokmap_i_hasher *hasher;
    uint64_t run_begin, run_end;    /* the last run of kept documents */
    uint64_t runs[RUNS_AT_ONCE][2]; /* runs that are not hashed yet */
    size_t n_runs;
    tokmap_i_progress *progress;
} maker;

/* ---- The set ---- */

static void end_run(maker *m)
{
    if (m->run_end == m->run_begin)
        return;
    m->runs[m->n_runs][0] = m->run_begin; /* little-endian, as everywhere */
    m->runs[m->n_runs++][1] = m->run_end;
    m->v->header.n_runs++;
    if (m->n_runs == RUNS_AT_ONCE) {
        tokmap_i_hasher_add(m->hasher, m->runs, sizeof m->runs);
        m->n_runs = 0;
    }
}

static void add_to_runs(maker *m, uint64_t document)
{
    if (document != m->run_end) {
        end_run(m);
        m->run_begin = document;
    }
    m->run_end = document + 1;
}

/* ---- Chunks ---- */

/* Adds the kept documents of a group, and their lengths, to a chunk. */
static tokmap_status add_group(maker *m, uint64_t group, uint64_t bits, uint32_t *n_kept,
                               uint64_t *n_tokens, uint8_t *list, uint8_t *samples,
                               tokmap_error *err)
{
    const tokmap_dataset *ds = m->v->ds;
    uint64_t ends[TOKMAP_I_GROUP_DOCUMENTS];
    tokmap_document first;
    if (tokmap_i_documents_get(&ds->documents, NULL, group * TOKMAP_I_GROUP_DOCUMENTS, &first))
        return tokmap_i_index_cache_fail(NULL, ds, err);
    const uint32_t n = tokmap_i_documents_group(&ds->documents, NULL, group, ends);
    for (; bits != 0; bits &= bits - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(bits);
        const uint64_t begin = i > 0 ? ends[i - 1] : first.first_token;
        const uint64_t number = group * TOKMAP_I_GROUP_DOCUMENTS + i;
        if (i >= n || ends[i] < begin)
            return tokmap_i_index_cache_fail(NULL, ds, err);
        if (*n_kept % TOKMAP_I_VIEW_STEP == 0)
            le_put64(samples + 8 * (*n_kept / TOKMAP_I_VIEW_STEP),
                     *n_tokens << 16 | number % TOKMAP_I_VIEW_CHUNK);
        if (list)
            le_put16(list + 2 * (size_t)*n_kept, (uint16_t)(number % TOKMAP_I_VIEW_CHUNK));
        add_to_runs(m, number);
        ++*n_kept;
        *n_tokens += ends[i] - begin;
    }
    return TOKMAP_OK;
}

static tokmap_status flush(maker *m, tokmap_error *err)
{
    if (m->v->file.fd < 0)
        return TOKMAP_OK;
    const tokmap_status status =
        CHECK_IO(err, tokmap_i_file_write(m->v->file.fd, m->out.data, m->out.n_bytes, m->written),
                 "%s: cannot write", m->v->file.path);
    m->written += m->out.n_bytes;
    m->out.n_bytes = 0;
    return status;
}

/* Adds the next chunk, whose documents these bits keep. */
static tokmap_status add_chunk(void *context, uint64_t first, uint32_t n, const uint64_t *kept,
                               tokmap_error *err)
{
    maker *m = context;
    tokmap_i_view_header *h = &m->v->header;
    tokmap_i_view_chunk *c = &m->v->chunks[first / TOKMAP_I_VIEW_CHUNK];
    uint32_t n_kept = 0, n_added = 0;
    uint64_t n_tokens = 0;
    const uint32_t n_words = (n + 63) / 64;
    for (uint32_t i = 0; i < n_words; i++)
        n_kept += (uint32_t)__builtin_popcountll(kept[i]);
    *c = (tokmap_i_view_chunk){h->n_kept, h->n_tokens, m->written + m->out.n_bytes, 0, n_kept};
    const uint32_t n_bytes = tokmap_i_view_chunk_bytes(n_kept);
    uint8_t *bytes = tokmap_i_bytes_add(&m->out, n_bytes);
    if (!bytes)
        return FAIL_MEMORY(err);
    memset(bytes, 0, n_bytes);
    const bool is_list = n_kept <= TOKMAP_I_VIEW_MOST_LISTED;
    uint8_t *samples = bytes + tokmap_i_view_samples_at(n_kept);
    tokmap_status status = TOKMAP_OK;
    for (uint32_t i = 0; i < n_words && !status; i++) {
        if (!is_list)
            le_put64(bytes + 8 * (size_t)i, kept[i]);
        if (kept[i] != 0)
            status = add_group(m, first / 64 + i, kept[i], &n_added, &n_tokens,
                               is_list ? bytes : NULL, samples, err);
    }
    c->checksum = tokmap_i_checksum(bytes, n_bytes);
    h->n_kept += n_kept;
    h->n_tokens += n_tokens;
    if (!status)
        status = flush(m, err);
    return status ? status : tokmap_i_progress_add(m->progress, n, err);
}

/* ---- The whole ---- */

/* Makes the bits of a mask of bytes. */
static tokmap_status add_mask(maker *m, const uint8_t *keep, tokmap_error *err)
{
    const uint64_t n_documents = m->v->header.n_documents;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t first = 0; first < n_documents && !status; first += TOKMAP_I_VIEW_CHUNK) {
        const uint32_t n = (uint32_t)MIN(n_documents - first, TOKMAP_I_VIEW_CHUNK);
        uint64_t words[WORDS] = {0};
        for (uint32_t i = 0; i < n; i++)
            words[i / 64] |= (uint64_t)(keep[first + i] != 0) << i % 64;
        status = add_chunk(m, first, n, words, err);
    }
    return status;
}

/* Writes header and table, when the chunks are complete. */
static tokmap_status finish(maker *m, uint64_t key, tokmap_error *err)
{
    tokmap_view *v = m->v;
    tokmap_i_view_header *h = &v->header;
    const size_t table_bytes = (size_t)h->n_chunks * TOKMAP_I_VIEW_ENTRY_BYTES;
    const size_t n_bytes = TOKMAP_I_SIDE_HEADER_BYTES + table_bytes;
    const bool in_memory = v->file.fd < 0;
    uint8_t *head = in_memory ? m->out.data : malloc(n_bytes);
    if (!head)
        return FAIL_MEMORY(err);
    end_run(m);
    tokmap_i_hasher_add(m->hasher, m->runs, m->n_runs * sizeof *m->runs);
    for (uint64_t i = 0; i < h->n_chunks; i++)
        tokmap_i_view_chunk_encode(&v->chunks[i], head + TOKMAP_I_SIDE_HEADER_BYTES +
                                                      i * TOKMAP_I_VIEW_ENTRY_BYTES);
    h->set_hash = tokmap_i_hasher_get(m->hasher);
    h->key = key ? key : h->set_hash;
    h->n_bytes = in_memory ? m->out.n_bytes : m->written;
    h->table_checksum = tokmap_i_checksum(head + TOKMAP_I_SIDE_HEADER_BYTES, table_bytes);
    tokmap_i_content_hash_store(&v->ds->header.documents_hash, h->documents_hash);
    tokmap_i_side_header_encode(&tokmap_i_view_kind, h, head);
    tokmap_status status = TOKMAP_OK;
    if (in_memory) {
        v->bytes = head;
        m->out.data = NULL;
    } else {
        status = CHECK_IO(err, tokmap_i_file_write(v->file.fd, head, n_bytes, 0),
                          "%s: cannot write", v->file.path);
        free(head);
    }
    return status;
}

/* Makes the view in memory, or in a file that is open for writing, whose name is in v->file.path.
 * selection: of an expression, or NULL. */
static tokmap_status make_view(tokmap_view *v, const tokmap_view_options *o,
                               tokmap_i_selection *selection, uint64_t key,
                               tokmap_i_progress *progress, tokmap_error *err)
{
    tokmap_i_view_header *h = &v->header;
    h->n_documents = v->ds->header.n_documents;
    h->n_chunks = div_up(h->n_documents, TOKMAP_I_VIEW_CHUNK);
    const size_t head_bytes =
        TOKMAP_I_SIDE_HEADER_BYTES + (size_t)h->n_chunks * TOKMAP_I_VIEW_ENTRY_BYTES;
    maker *m = calloc(1, sizeof *m);
    v->chunks = calloc((size_t)h->n_chunks + 1, sizeof *v->chunks);
    if (!m || !v->chunks) {
        free(m);
        return FAIL_MEMORY(err);
    }
    m->v = v;
    m->progress = progress;
    m->written = v->file.fd < 0 ? 0 : head_bytes;
    m->hasher = tokmap_i_hasher_open();
    tokmap_status status = m->hasher && (v->file.fd >= 0 || tokmap_i_bytes_add(&m->out, head_bytes))
                               ? TOKMAP_OK
                               : FAIL_MEMORY(err);
    if (!status)
        status = o->keep ? add_mask(m, o->keep, err)
                         : tokmap_i_selection_run(selection, add_chunk, m, progress, err);
    if (!status)
        status = finish(m, key, err);
    tokmap_i_hasher_close(m->hasher);
    free(m->out.data);
    free(m);
    return status;
}

/* ---- Calls ---- */

/* The progress of making a view. selection: of its expression, or NULL. */
static tokmap_i_progress begin_progress(const tokmap_dataset *ds, const tokmap_view_options *o,
                                        const tokmap_i_selection *selection)
{
    return (tokmap_i_progress){.on_progress = o->on_progress,
                               .context = o->context,
                               .n_total = ds->header.n_documents +
                                          (selection ? tokmap_i_selection_bytes(selection) : 0)};
}

static tokmap_status check_options(const tokmap_dataset *ds, const tokmap_view_options *o,
                                   bool writes, tokmap_error *err)
{
    const uint64_t n_documents = ds->header.n_documents;
    const int n_given = (o->where != NULL) + (o->keep != NULL) + (!writes && o->path);
    if (n_given != 1)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    writes ? "a view needs one of where and keep"
                           : "a view needs one of where, keep and path");
    if (n_documents == 0 && ds->header.n_tokens > 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: the document boundaries are not known; a view needs them", ds->index_path);
    if (o->keep && o->n_keep != n_documents)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: the mask has %" PRIu64 " documents, but the dataset has %" PRIu64,
                    ds->index_path, o->n_keep, n_documents);
    return TOKMAP_OK;
}

static tokmap_view *new_view(const tokmap_dataset *ds)
{
    tokmap_view *v = calloc(1, sizeof *v);
    if (v) {
        v->ds = ds;
        v->file.fd = -1;
    }
    return v;
}

void tokmap_view_close(tokmap_view *v)
{
    if (!v)
        return;
    tokmap_i_side_close(&v->file);
    free(v->chunks);
    free(v->bytes);
    free(v->where);
    free(v);
}

static char *path_of_key(const tokmap_dataset *ds, uint64_t key)
{
    return tokmap_i_side_path(ds, "%016" PRIx64 ".tmw", key);
}

/* Brings a view back to what it was before its file was opened. */
static void forget_file(tokmap_view *v)
{
    tokmap_i_side_close(&v->file);
    v->header = (tokmap_i_view_header){0};
}

/* Opens the file that was made from the expression, if there is one; else makes the view. */
static tokmap_status open_where(tokmap_view *v, const tokmap_view_options *o,
                                tokmap_i_selection *selection, tokmap_error *err)
{
    uint64_t key;
    bool exists = false;
    tokmap_status status = tokmap_i_selection_key(selection, &key, err);
    if (status)
        return status;
    char *path = path_of_key(v->ds, key);
    v->where = strdup(o->where);
    if (!path || !v->where)
        status = FAIL_MEMORY(err);
    if (!status)
        status = tokmap_i_view_open_file(v, path, &exists, err);
    free(path);
    /* A file that was made for an earlier dataset of this name is ignored. */
    if ((exists && status != TOKMAP_ERR_MISMATCH) || status == TOKMAP_ERR_MEMORY)
        return status;
    forget_file(v);
    if (v->ds->header.n_documents > MOST_MADE) {
        /* The quotes of a shell; an expression that does not fit into them is not shown. */
        const char *quote = !strchr(o->where, '\'')        ? "'"
                            : strpbrk(o->where, "\"$`\\!") ? ""
                                                           : "\"";
        const bool fits = *quote && strlen(o->where) <= 200;
        quote = fits ? quote : "";
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "%s: has more than 10,000,000 documents, and no view of this expression yet: "
                    "make it with: tokmap view %.100s --where %s%s%s",
                    v->ds->index_path, v->ds->index_path, quote, fits ? o->where : "EXPRESSION",
                    quote);
    }
    tokmap_i_error_clear(err);
    tokmap_i_progress progress = begin_progress(v->ds, o, selection);
    return make_view(v, o, selection, key, &progress, err);
}

/* Opens a view. *again: a column of its expression was replaced meanwhile. */
static tokmap_status try_open(tokmap_view **out, const tokmap_dataset *ds,
                              const tokmap_view_options *o, bool *again, tokmap_error *err)
{
    bool exists;
    tokmap_i_selection *selection = NULL;
    tokmap_i_progress progress = begin_progress(ds, o, NULL);
    tokmap_view *v = new_view(ds);
    tokmap_status status = v ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status && o->where)
        status = tokmap_i_selection_open(&selection, ds, o->where, err);
    if (!status)
        status = o->path     ? tokmap_i_view_open_file(v, o->path, &exists, err)
                 : selection ? open_where(v, o, selection, err)
                             : make_view(v, o, NULL, 0, &progress, err);
    *again = status != TOKMAP_ERR_STOPPED && selection && !tokmap_i_selection_is_current(selection);
    tokmap_i_selection_close(selection);
    if (status || *again)
        tokmap_view_close(v);
    else
        *out = v;
    return status;
}

static tokmap_status fail_replaced(const tokmap_dataset *ds, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_LOCKED,
                "%s: another program replaces the columns of the expression all the time: try "
                "again when it has ended",
                ds->index_path);
}

static const tokmap_i_struct_kind options_kind = {STRUCT_KIND(tokmap_view_options, path)};

tokmap_status tokmap_view_open(tokmap_view **out, const tokmap_dataset *ds,
                               const tokmap_view_options *options, tokmap_error *err)
{
    tokmap_view_options o;
    bool again = true;
    tokmap_i_error_clear(err);
    if (!out)
        return FAIL_NULL(err);
    *out = NULL;
    if (!ds)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_take_options(&o, options, &options_kind, err);
    if (!status)
        status = check_options(ds, &o, false, err);
    if (!status)
        status = tokmap_i_need_index(ds, err);
    if (status)
        return status;
    for (int n_tries = 0; again && n_tries < MOST_TRIES; n_tries++)
        status = try_open(out, ds, &o, &again, err);
    return again ? fail_replaced(ds, err) : status;
}

static const tokmap_i_struct_kind info_kind = {STRUCT_KIND(tokmap_view_info, path)};

static tokmap_view_info describe(const tokmap_view *v, const char *path)
{
    return (tokmap_view_info){.n_documents = v->header.n_kept,
                              .n_tokens = v->header.n_tokens,
                              .n_runs = v->header.n_runs,
                              .set_hash = v->header.set_hash,
                              .n_bytes = v->header.n_bytes,
                              .path = path};
}

tokmap_status tokmap_view_get_info(const tokmap_view *v, tokmap_view_info *info)
{
    if (!v)
        return TOKMAP_ERR_ARGUMENT;
    const tokmap_view_info full = describe(v, v->file.path);
    return tokmap_i_give_struct(info, &full, &info_kind, NULL);
}

/* Writes a view. *again: a column of its expression was replaced meanwhile, and nothing is
 * written. */
static tokmap_status try_write(const tokmap_dataset *ds, const tokmap_view_options *o,
                               tokmap_view_info *info, bool *again, tokmap_error *err)
{
    tokmap_i_side_file file = {.fd = -1};
    tokmap_i_selection *selection = NULL;
    uint64_t key = 0;
    tokmap_status status =
        o->where ? tokmap_i_selection_open(&selection, ds, o->where, err) : TOKMAP_OK;
    if (!status && selection)
        status = tokmap_i_selection_key(selection, &key, err);
    tokmap_view *v = status ? NULL : new_view(ds);
    char *path = status ? NULL : o->path ? strdup(o->path) : path_of_key(ds, key);
    if (!status && (!v || !path))
        status = FAIL_MEMORY(err);
    tokmap_i_progress progress = begin_progress(ds, o, selection);
    progress.n_total += tokmap_i_section_find(&ds->header, TOKMAP_I_DOCUMENTS)->n_bytes;
    if (!status) /* the file has the lengths of documents */
        status = tokmap_i_check_section(ds, TOKMAP_I_DOCUMENTS, &progress, err);
    if (!status)
        status = tokmap_i_side_file_open(&file, &tokmap_i_view_kind, path, err);
    if (!status) {
        v->file = (tokmap_i_side){.fd = file.fd, .path = file.partial};
        status = make_view(v, o, selection, key, &progress, err);
        *info = describe(v, NULL);
        v->file = (tokmap_i_side){.fd = -1};
    }
    *again = status != TOKMAP_ERR_STOPPED && selection && !tokmap_i_selection_is_current(selection);
    if (!status && !*again)
        status = tokmap_i_side_file_finish(&file, err);
    tokmap_i_side_file_close(&file);
    tokmap_i_selection_close(selection);
    tokmap_view_close(v);
    free(path);
    return status;
}

tokmap_status tokmap_view_write(const tokmap_dataset *ds, const tokmap_view_options *options,
                                tokmap_view_info *info, tokmap_error *err)
{
    tokmap_view_options o;
    tokmap_view_info full = {0};
    bool again = true;
    tokmap_i_error_clear(err);
    if (!ds)
        return FAIL_NULL(err);
    tokmap_status status = tokmap_i_take_options(&o, options, &options_kind, err);
    if (!status)
        status = tokmap_i_need_files(ds, err);
    if (!status && info)
        status = tokmap_i_check_struct(info, &info_kind, err);
    if (!status)
        status = check_options(ds, &o, true, err);
    if (!status && !o.where && !o.path)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "the view of a mask needs a path");
    if (status)
        return status;
    for (int n_tries = 0; again && n_tries < MOST_TRIES; n_tries++)
        status = try_write(ds, &o, &full, &again, err);
    if (again)
        status = fail_replaced(ds, err);
    return status || !info ? status : tokmap_i_give_struct(info, &full, &info_kind, err);
}

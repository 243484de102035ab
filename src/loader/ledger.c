/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - a line of the ledger of a run: docs/FORMAT.md, section 12. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "base/real.h"
#include "loader/loader.h"

#define BEGINNING "{\"ledger\":"
#define CHECKSUM ",\"checksum\":\""

enum {
    DIGITS = 16,
    END_BYTES = sizeof CHECKSUM - 1 + DIGITS + 2 /* and "} */
};

/* ---- Text ---- */

typedef struct text {
    char *s;
    size_t max, n; /* n may be above max: then the rest is only counted */
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...)
{
    va_list arguments;
    char *to = t->n < t->max ? t->s + t->n : NULL;
    va_start(arguments, format);
    const int n = real_print_list(to, to ? t->max - t->n : 0, format, arguments);
    va_end(arguments);
    t->n += n > 0 ? (size_t)n : 0;
}

/* Adds a string of any bytes: bytes that are not printable ASCII, and backslashes, become \xHH. */
static void add_string(text *t, const char *name, const char *s, size_t n_bytes)
{
    add(t, "\"%s\":\"", name);
    for (size_t i = 0; i < n_bytes; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c < 0x20 || c > 0x7E || c == '\\')
            add(t, "\\\\x%02x", c);
        else
            add(t, c == '"' ? "\\%c" : "%c", c);
    }
    add(t, "\"");
}

static void add_hex(text *t, const char *name, const uint8_t *bytes, size_t n_bytes)
{
    add(t, "\"%s\":\"", name);
    for (size_t i = 0; i < n_bytes; i++)
        add(t, "%02x", bytes[i]);
    add(t, "\"");
}

/* ---- The parts of a line ---- */

static void add_event(text *t, const tokmap_ledger_entry *e)
{
    const char *names[] = {"event", "time", "host", "folder"};
    const char *values[] = {e->event, e->time, e->host, e->folder};
    for (int i = 0; i < 4; i++) {
        add_string(t, names[i], values[i] ? values[i] : "", values[i] ? strlen(values[i]) : 0);
        add(t, ",");
    }
    add_string(t, "tokmap", TOKMAP_VERSION_TEXT, strlen(TOKMAP_VERSION_TEXT));
}

static void add_order(text *t, const tokmap_loader *l)
{
    static const char *const shuffles[] = {"full", "none", "block"};
    static const char *const whole[] = {"split", "drop", "truncate"};
    static const char *const windows[] = {"concat", "within_document", "best_fit"};
    add(t, ",\"sequence_length\":%" PRIu32 ",\"seed\":\"%" PRIu64 "\",\"shuffle\":\"%s\"",
        l->samples.length, l->samples.o.seed, shuffles[l->samples.o.shuffle]);
    add(t, ",\"windows\":\"%s\",\"random_offset\":%s", windows[l->samples.o.windows],
        l->samples.o.random_offset ? "true" : "false");
    if (l->samples.o.weigh_tokens)
        add(t, ",\"weigh_tokens\":true");
    if (l->samples.o.windows == TOKMAP_WINDOWS_BEST_FIT)
        add(t, ",\"align\":%" PRIu32 ",\"max_documents\":%" PRIu32 ",\"whole_documents\":\"%s\"",
            l->samples.rows_kind.align, l->samples.rows_kind.most,
            whole[l->samples.rows_kind.whole]);
    add(t, ",\"block_windows\":\"%" PRIu64 "\",\"group_blocks\":\"%" PRIu64 "\"",
        l->samples.block_windows, l->samples.group_blocks);
}

static void add_list(text *t, const char *name, uint64_t hash, uint64_t n)
{
    add(t, ",\"%s\":{\"hash\":\"%016" PRIx64 "\",\"n\":\"%" PRIu64 "\"}", name, hash, n);
}

/* Adds the hashes of the lanes of a dataset; an empty one if the header of a file cannot be read,
 * which the row that needs the file will report. */
static void add_lanes(text *t, const tokmap_loader *l, uint32_t dataset)
{
    const char *separator = "";
    add(t, ",\"lanes\":{");
    for (uint32_t i = 0; i < l->lanes.n; i++) {
        const tokmap_lane *lane = l->lanes.lanes[(size_t)i * l->lanes.n_datasets + dataset];
        char digits[DIGITS + 1] = "";
        uint64_t hash;
        if (!lane)
            continue;
        if (tokmap_i_lane_hash(lane, &hash, NULL) == TOKMAP_OK)
            snprintf(digits, sizeof digits, "%016" PRIx64, hash);
        add(t, "%s\"%s\":\"%s\"", separator, lane->name, digits);
        separator = ",";
    }
    add(t, "}");
}

static void add_sources(text *t, const tokmap_loader *l)
{
    add(t, ",\"sources\":[");
    for (uint32_t k = 0; k < l->samples.n_sources; k++) {
        const tokmap_i_source *s = &l->samples.sources[k];
        add(t, "%s{\"datasets\":[", k ? "," : "");
        for (uint32_t d = 0; d < s->windows.n_datasets; d++) {
            const tokmap_dataset *ds = s->windows.datasets[d];
            add(t, d ? ",{" : "{");
            add_hex(t, "id", ds->header.dataset_id, sizeof ds->header.dataset_id);
            add(t, ",");
            add_string(t, "index", ds->index_path, strlen(ds->index_path));
            if (ds->spans.hash)
                add(t, ",\"spans\":\"%016" PRIx64 "\"", ds->spans.hash);
            if (memcmp(s->order_ids[d], ds->header.dataset_id, sizeof *s->order_ids) != 0) {
                add(t, ",");
                add_hex(t, "order_of", s->order_ids[d], sizeof *s->order_ids);
            }
            if (s->windows.ranges[d].is_part)
                add(t, ",\"documents\":[\"%" PRIu64 "\",\"%" PRIu64 "\"]",
                    s->windows.ranges[d].first_document, s->windows.ranges[d].end_document);
            const tokmap_view *view = s->windows.ranges[d].view;
            if (view) {
                const char *where = view->where ? view->where : "";
                add(t, ",\"view\":{\"set\":\"%016" PRIx64 "\",", view->header.set_hash);
                add_string(t, "where", where, strlen(where));
                add(t, "}");
            }
            const tokmap_i_document_list *list = s->windows.ranges[d].list;
            if (list)
                add_list(t, "document_list", list->hash, list->documents.n);
            if (l->lanes.n > 0)
                add_lanes(t, l, s->first_dataset + d);
            add(t, "}");
        }
        add(t, "]");
        if (s->window_list.bytes)
            add_list(t, "window_list", s->window_list_hash, s->window_list.n);
        if (s->own_roles) {
            uint8_t bytes[sizeof s->own_roles->bits];
            for (size_t i = 0; i < sizeof bytes / 8; i++)
                le_put64(bytes + 8 * i, s->own_roles->bits[i]);
            add(t, ",");
            add_hex(t, "train_roles", bytes, sizeof bytes);
        }
        add(t, ",\"max_epochs\":\"%" PRIu64 "\",\"masked\":%s}", l->samples.o.sources[k].max_epochs,
            s->masked ? "true" : "false");
    }
    add(t, "]");
}

static void add_phases(text *t, const tokmap_loader *l)
{
    add(t, ",\"phases\":[");
    for (uint32_t i = 0; i < tokmap_i_mixture_n_phases(l->samples.mixture); i++) {
        const tokmap_i_mixture_phase phase = tokmap_i_mixture_get_phase(l->samples.mixture, i);
        add(t, "%s{\"sample\":\"%" PRIu64 "\",\"weights\":[", i ? "," : "", phase.from);
        for (uint32_t k = 0; k < l->samples.n_sources; k++)
            add(t, "%s%.17g", k ? "," : "",
                i ? l->samples.o.phases[i - 1].weights[k] : l->samples.o.sources[k].weight);
        add(t, "],\"quotas\":[");
        for (uint32_t k = 0; k < l->samples.n_sources; k++)
            add(t, "%s%" PRIu32, k ? "," : "", phase.quotas[k]);
        add(t, "]}");
    }
    add(t, "],\"skips\":[");
    for (size_t i = 0; i < l->samples.skips.n_gaps; i++)
        add(t, "%s[\"%" PRIu64 "\",\"%" PRIu64 "\"]", i ? "," : "", l->samples.skips.gaps[i].begin,
            l->samples.skips.gaps[i].end);
    add(t, "]");
}

/* ---- Calls ---- */

static int version_of(const tokmap_i_samples *samples)
{
    bool has_list = false;
    for (uint32_t k = 0; k < samples->n_sources; k++)
        has_list |= tokmap_i_source_has_list(&samples->sources[k]);
    return has_list ? 3 : samples->has_views ? 2 : 1;
}

/* Returns the digits of the checksum; NULL if this is not a line of a ledger. */
static const char *checksum_of(const char *line, size_t n_bytes)
{
    const size_t least = sizeof BEGINNING - 1 + END_BYTES;
    if (n_bytes < least || memcmp(line + n_bytes - END_BYTES, CHECKSUM, sizeof CHECKSUM - 1) != 0 ||
        memcmp(line + n_bytes - 2, "\"}", 2) != 0)
        return NULL;
    return line + n_bytes - 2 - DIGITS;
}

static void write_checksum(char digits[DIGITS + 1], const char *line, size_t n_bytes)
{
    snprintf(digits, DIGITS + 1, "%016" PRIx64, tokmap_i_checksum(line, n_bytes));
}

tokmap_status tokmap_loader_ledger_line(const tokmap_loader *l, const tokmap_ledger_entry *entry,
                                        char *line, size_t *n_bytes, tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_ledger_entry, micro_batches)};
    uint8_t state[TOKMAP_STATE_BYTES];
    tokmap_ledger_entry e;
    const size_t room = n_bytes ? *n_bytes : 0;
    tokmap_i_error_clear(err);
    if (n_bytes)
        *n_bytes = 0; /* after an error, except where the line needs more room */
    tokmap_status status = l && n_bytes ? TOKMAP_OK : FAIL_NULL(err);
    if (!status)
        status = tokmap_i_take_options(&e, entry, &kind, err);
    if (!status)
        status = tokmap_loader_save_at(l, e.sample, state, err);
    if (status)
        return status;
    const char *before = e.after ? checksum_of(e.after, strlen(e.after)) : "";
    if (!before)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "ledger: `after` is not a line of a ledger");
    text t = {line, line ? room : 0, 0};
    add(&t, BEGINNING "%d,", version_of(&l->samples));
    add_event(&t, &e);
    add(&t, ",\"from\":\"%" PRIu64 "\",\"sample\":\"%" PRIu64 "\",", e.sample,
        tokmap_i_samples_after(&l->samples, e.sample, 0));
    add_hex(&t, "state", state, sizeof state);
    add(&t, ",\"ranks\":%" PRIu32 ",\"batch_rows\":%" PRIu32 ",\"micro_batches\":%" PRIu64,
        l->n_ranks, l->batch_rows, e.micro_batches);
    add_order(&t, l);
    add_sources(&t, l);
    add_phases(&t, l);
    add(&t, ",\"after\":\"%.16s\"", before);
    char digits[DIGITS + 1];
    write_checksum(digits, line, MIN(t.n, t.max));
    add(&t, CHECKSUM "%s\"}", digits);
    *n_bytes = t.n;
    return t.n < t.max ? TOKMAP_OK
                       : FAIL(err, TOKMAP_ERR_ARGUMENT,
                              "ledger: the line has %zu bytes, and a NUL: there is room for %zu",
                              t.n, t.max);
}

tokmap_status tokmap_ledger_check(const char *line, size_t n_bytes, const char *after,
                                  tokmap_error *err)
{
    char digits[DIGITS + 1], link[sizeof ",\"after\":\"" + DIGITS + 2];
    tokmap_i_error_clear(err);
    if (!line)
        return FAIL_NULL(err);
    const char *checksum = checksum_of(line, n_bytes);
    if (!checksum || memcmp(line, "{\"ledger\":", 10) != 0)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "is not a line of a ledger");
    write_checksum(digits, line, n_bytes - END_BYTES);
    if (memcmp(digits, checksum, DIGITS) != 0)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "was changed: its checksum is wrong");
    const char version = line[sizeof BEGINNING - 1]; /* 2: with views; 3: with lists */
    if (version < '1' || version > '3' || line[sizeof BEGINNING] != ',')
        return FAIL(err, TOKMAP_ERR_VERSION, "is of a newer format: use a newer version of tokmap");
    const char *before = after ? checksum_of(after, strlen(after)) : "";
    const int n = snprintf(link, sizeof link, ",\"after\":\"%.16s\"", before ? before : "?");
    const size_t end = n_bytes - END_BYTES;
    if (end < (size_t)n || memcmp(line + end - (size_t)n, link, (size_t)n) != 0)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "does not follow the line before it");
    return TOKMAP_OK;
}

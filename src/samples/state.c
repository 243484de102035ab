/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the 128 bytes of the state of a loader: docs/ORDER.md, section 8. */
#include "samples/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"

static const uint8_t magic[8] = {0x89, 'T', 'M', 'S', '\r', '\n', 0x1A, '\n'};

enum {
    ORDER_VERSION = 1,
    ROWS_VERSION = 2, /* with rows of documents */
    LIST_VERSION = 3, /* with a list of documents or of windows */
    VERSION_AT = 8,
    LENGTH_AT = 12,
    SEED_AT = 16,
    SAMPLE_AT = 24,
    SOURCES_AT = 32,
    PHASES_AT = 36,
    DATA_AT = 40,
    WINDOWS_AT = 48,
    MIXTURE_AT = 56,
    SKIPS_AT = 64,
    SPANS_AT = 72,
    RESERVED_AT = 80,
    CHECKSUM_AT = 120,
    MAX_READ = 1 << 26 /* bytes of metadata that are read to find earlier ids of redacted data */
};

static uint64_t hash_fields(const uint64_t *fields, size_t n_fields)
{
    uint64_t hash = TOKMAP_I_HASH_START;
    for (size_t i = 0; i < n_fields; i++)
        hash = tokmap_i_hash_add(hash, fields[i]);
    return hash;
}

static uint64_t hash_windows(const tokmap_i_samples *samples, uint64_t block_windows)
{
    const tokmap_i_rows_kind *kind = &samples->rows_kind;
    if (samples->o.windows == TOKMAP_WINDOWS_BEST_FIT)
        return hash_fields((const uint64_t[]){samples->o.windows, kind->align, kind->most,
                                              kind->whole, tokmap_i_chunk_rows(samples->length),
                                              samples->o.shuffle, samples->group_blocks},
                           7);
    return hash_fields((const uint64_t[]){samples->o.windows, samples->o.random_offset,
                                          samples->o.shuffle, block_windows, samples->group_blocks},
                       5);
}

/* Hashes the spans of the first n_sources sources, and the roles of a source if they are not the
 * usual ones; 0 if there is neither. */
static uint64_t hash_spans(const tokmap_i_samples *samples, uint32_t n_sources)
{
    uint64_t hash = TOKMAP_I_HASH_START;
    bool any = false;
    for (uint32_t k = 0; k < n_sources; k++) {
        const tokmap_i_roles *roles = samples->sources[k].own_roles;
        for (uint32_t d = 0; d < samples->sources[k].windows.n_datasets; d++) {
            const uint64_t of_dataset = samples->sources[k].windows.datasets[d]->spans.hash;
            hash = tokmap_i_hash_add(hash, of_dataset);
            any |= of_dataset != 0;
        }
        any |= roles != NULL;
        for (size_t i = 0; roles && i < sizeof roles->bits / sizeof *roles->bits; i++)
            hash = tokmap_i_hash_add(hash, roles->bits[i]);
    }
    return any ? hash : 0;
}

/* Encodes the state of a loader that has the first n_sources sources of `samples`, and this
 * mixture. */
static void encode(const tokmap_i_samples *samples, uint32_t n_sources,
                   const tokmap_i_mixture *mixture, const tokmap_i_skips *skips,
                   uint64_t next_sample, uint8_t *state)
{
    uint64_t data = TOKMAP_I_HASH_START;
    uint32_t version = samples->o.windows == TOKMAP_WINDOWS_BEST_FIT ? ROWS_VERSION : ORDER_VERSION;
    for (uint32_t k = 0; k < n_sources; k++) {
        data = tokmap_i_hash_add(data, samples->sources[k].shuffle.id.source_id);
        if (tokmap_i_source_has_list(&samples->sources[k]))
            version = LIST_VERSION;
    }
    memset(state, 0, TOKMAP_STATE_BYTES);
    memcpy(state, magic, sizeof magic);
    le_put32(state + VERSION_AT, version);
    le_put32(state + LENGTH_AT, samples->length);
    le_put64(state + SEED_AT, samples->o.seed);
    le_put64(state + SAMPLE_AT, next_sample);
    le_put32(state + SOURCES_AT, n_sources);
    le_put32(state + PHASES_AT, tokmap_i_mixture_n_phases(mixture));
    le_put64(state + DATA_AT, data);
    le_put64(state + WINDOWS_AT, hash_windows(samples, samples->block_windows));
    le_put64(state + MIXTURE_AT, tokmap_i_mixture_hash(mixture));
    le_put64(state + SKIPS_AT, tokmap_i_skips_hash(skips, next_sample));
    le_put64(state + SPANS_AT, hash_spans(samples, n_sources));
    le_put64(state + CHECKSUM_AT, tokmap_i_checksum(state, CHECKSUM_AT));
}

void tokmap_i_state_encode(const tokmap_i_samples *samples, uint64_t next_sample, uint8_t *state)
{
    encode(samples, samples->n_sources, samples->mixture, &samples->skips, next_sample, state);
}

/* Finds out whether the state was saved with the same data before they were redacted, and says so:
 * tries the combinations of the ids that they have had. Combination 0 has the first id of each. */
static tokmap_status fail_data(const tokmap_i_samples *samples, const uint8_t *state,
                               tokmap_error *err)
{
    char advice[440] = ""; /* fits into the text of an error */
    uint64_t n_read = 0;
    for (size_t i = 0, rest = 0; rest == 0 && n_read < MAX_READ; i++) {
        uint64_t data = TOKMAP_I_HASH_START;
        size_t n = 0;
        rest = i;
        for (uint32_t k = 0; k < le_get32(state + SOURCES_AT); k++) {
            const tokmap_i_source *s = &samples->sources[k];
            uint64_t source = TOKMAP_I_HASH_START;
            for (uint32_t d = 0; d < s->windows.n_datasets; d++) {
                const tokmap_dataset *ds = s->windows.datasets[d];
                uint8_t id[16];
                n_read += tokmap_i_section_find(&ds->header, TOKMAP_I_METADATA)->n_bytes;
                const size_t n_ids = tokmap_i_dataset_ids(ds, 0, id);
                tokmap_i_dataset_ids(ds, rest % n_ids, id);
                rest /= n_ids;
                source = tokmap_i_source_add_id(source, s, d, id);
                if (memcmp(id, s->order_ids[d], sizeof id) == 0)
                    continue;
                const size_t room = sizeof advice - n;
                const int more =
                    snprintf(advice + n, room,
                             "%s order_of=\"%016" PRIx64 "%016" PRIx64 "\" to the source of %s",
                             n ? "," : "", __builtin_bswap64(le_get64(id)),
                             __builtin_bswap64(le_get64(id + 8)), ds->index_path);
                n += n == 0 || (size_t)more < room ? MIN((size_t)more, room - 1) : 0;
                advice[n] = 0; /* what does not fit is named by the next attempt */
            }
            data = tokmap_i_hash_add(data, source);
        }
        if (data == le_get64(state + DATA_AT))
            return FAIL(err, TOKMAP_ERR_MISMATCH,
                        "state: its data were redacted, which changed their id: give%s", advice);
    }
    return FAIL_REASON(
        err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_DATA,
        "state: saved with other datasets, views, lists or ranges of documents, or with the same "
        "ones in another order");
}

/* Checks everything but the mixture. */
static tokmap_status check_same_data(const tokmap_i_samples *samples, const uint8_t *state,
                                     const uint8_t *own, tokmap_error *err)
{
    if (le_get32(state + SOURCES_AT) != le_get32(own + SOURCES_AT))
        return FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                           "state: number of sources: saved with %" PRIu32
                           ", this loader has %" PRIu32,
                           le_get32(state + SOURCES_AT), le_get32(own + SOURCES_AT));
    if (le_get64(state + DATA_AT) != le_get64(own + DATA_AT))
        return fail_data(samples, state, err);
    if (le_get32(state + LENGTH_AT) != le_get32(own + LENGTH_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with sequence length %" PRIu32 ", this loader has %" PRIu32,
                    le_get32(state + LENGTH_AT), le_get32(own + LENGTH_AT));
    if (le_get64(state + SEED_AT) != le_get64(own + SEED_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with seed %" PRIu64 ", this loader has %" PRIu64,
                    le_get64(state + SEED_AT), le_get64(own + SEED_AT));
    if (le_get64(state + WINDOWS_AT) != le_get64(own + WINDOWS_AT) ||
        le_get32(state + VERSION_AT) != le_get32(own + VERSION_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with other windows, random_offset or shuffle, or with other "
                    "options of rows of documents");
    return TOKMAP_OK;
}

uint64_t tokmap_i_state_sample(const uint8_t *state)
{
    return le_get64(state + SAMPLE_AT);
}

static tokmap_status check_readable(const uint8_t *state, tokmap_error *err)
{
    if (memcmp(state, magic, sizeof magic) != 0)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "state: these bytes are not the state of a loader");
    if (le_get64(state + CHECKSUM_AT) != tokmap_i_checksum(state, CHECKSUM_AT))
        return FAIL(err, TOKMAP_ERR_CORRUPT, "state: damaged, its checksum is wrong");
    const uint32_t version = le_get32(state + VERSION_AT);
    if (version < ORDER_VERSION || version > LIST_VERSION)
        return FAIL(err, TOKMAP_ERR_VERSION,
                    "state: has order version %" PRIu32
                    ", but this library has versions %d to %d: use a newer one",
                    version, ORDER_VERSION, LIST_VERSION);
    if (!is_zero(state + RESERVED_AT, CHECKSUM_AT - RESERVED_AT))
        return FAIL(err, TOKMAP_ERR_VERSION,
                    "state: holds something that this library does not know: use a newer one");
    return TOKMAP_OK;
}

tokmap_status tokmap_i_state_check(const tokmap_i_samples *samples, const uint8_t *state,
                                   tokmap_error *err)
{
    uint8_t own[TOKMAP_STATE_BYTES];
    tokmap_status status = check_readable(state, err);
    if (status)
        return status;
    tokmap_i_state_encode(samples, tokmap_i_state_sample(state), own);
    status = check_same_data(samples, state, own, err);
    if (!status && memcmp(state + SOURCES_AT, own + SOURCES_AT, SKIPS_AT - SOURCES_AT) != 0)
        status = FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                             "state: saved with other weights, phases or max_epochs");
    if (!status && le_get64(state + SKIPS_AT) != le_get64(own + SKIPS_AT))
        status = FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                             "state: other samples after it were to be skipped");
    if (!status && le_get64(state + SPANS_AT) != le_get64(own + SPANS_AT))
        status = FAIL(err, TOKMAP_ERR_MISMATCH,
                      "state: the labels of other tokens did not count (spans of the datasets, or "
                      "train_roles)");
    return status;
}

/* ---- Amend: docs/ORDER.md, section 9 ---- */

/* Returns phase i, if it begins before `end`; else a phase that begins there. */
static tokmap_i_mixture_phase phase_before(const tokmap_i_mixture *m, uint32_t i, uint64_t end)
{
    tokmap_i_mixture_phase none = {.from = end};
    if (i >= tokmap_i_mixture_n_phases(m))
        return none;
    const tokmap_i_mixture_phase phase = tokmap_i_mixture_get_phase(m, i);
    return phase.from < end ? phase : none;
}

/* Compares two mixtures, which must have the same samples below `end`; `old` has the first
 * n_sources sources. */
static tokmap_status check_prefix(const tokmap_i_mixture *old, uint32_t n_sources,
                                  const tokmap_i_samples *samples, uint64_t end, tokmap_error *err)
{
    for (uint32_t i = 0;; i++) {
        const tokmap_i_mixture_phase a = phase_before(old, i, end);
        const tokmap_i_mixture_phase b = phase_before(samples->mixture, i, end);
        if (a.from != b.from)
            return FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                               "state: before its sample %" PRIu64
                               ", %s has a phase from sample %" PRIu64 " on that %s does not have",
                               end, a.from < b.from ? "the old loader" : "this loader",
                               MIN(a.from, b.from), a.from < b.from ? "this one" : "the old one");
        if (a.from == end)
            return TOKMAP_OK;
        for (uint32_t k = 0; k < samples->n_sources; k++) {
            const uint32_t quota = k < n_sources ? a.quotas[k] : 0;
            if (b.quotas[k] == quota && b.period == a.period)
                continue;
            return FAIL_REASON(
                err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                "state: it is at sample %" PRIu64 ", but from sample %" PRIu64 " on source %" PRIu32
                " has %" PRIu32 " of %" PRIu32 " samples, and had %" PRIu32 " of %" PRIu32
                ": other weights need a phase that begins at the state's sample or later",
                end, a.from, k, b.quotas[k], b.period, quota, a.period);
        }
    }
}

/* Says which block size was the default before a wider source was added. */
static tokmap_status check_blocks(const tokmap_i_samples *samples, const uint8_t *state,
                                  uint32_t n_sources, tokmap_error *err)
{
    uint32_t widest = 1;
    for (uint32_t k = 0; k < n_sources; k++)
        widest = MAX(widest, samples->sources[k].token_bytes);
    const uint64_t block_windows = tokmap_i_samples_default_block(samples->length, widest);
    if (block_windows == samples->block_windows || samples->o.windows == TOKMAP_WINDOWS_BEST_FIT ||
        le_get64(state + WINDOWS_AT) != hash_windows(samples, block_windows))
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "state: saved with blocks of %" PRIu64 " windows, this loader has %" PRIu64
                ", because a source of wider tokens was added: set block_windows to %" PRIu64,
                block_windows, samples->block_windows, block_windows);
}

static tokmap_status check_order(const tokmap_i_samples *samples, const uint8_t *state,
                                 const tokmap_loader_options *before, tokmap_error *err)
{
    uint8_t old[TOKMAP_STATE_BYTES];
    tokmap_i_mixture *mixture = NULL;
    tokmap_i_skips skips = {0};
    const uint64_t end = tokmap_i_state_sample(state);
    const uint32_t n_sources = le_get32(state + SOURCES_AT);
    if (n_sources == 0 || n_sources > samples->n_sources)
        return FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                           "state: saved with %" PRIu32 " sources, this loader has %" PRIu32
                           ": to stop a source, give it weight 0",
                           n_sources, samples->n_sources);
    if (before && before->n_sources != n_sources)
        return FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                           "state: saved with %" PRIu32
                           " sources, but the loader that is described had %" PRIu32,
                           n_sources, before->n_sources);
    tokmap_loader_options o = before ? *before : samples->o;
    if (!before) { /* the skips and phases of this loader, as far as the state can include them */
        o.n_sources = n_sources;
        o.n_skips = le_get64(state + SKIPS_AT) == 0 ? 0 : o.n_skips;
        while (o.n_phases > 0 && o.phases[o.n_phases - 1].first_sample >= end)
            o.n_phases--;
    }
    tokmap_status status = tokmap_i_samples_make_mixture(samples, &o, &mixture, err);
    if (!status)
        status = tokmap_i_samples_make_skips(&o, TOKMAP_I_MAX_SAMPLE, &skips, err);
    if (!status)
        encode(samples, n_sources, mixture, &skips, end, old);
    if (status == TOKMAP_ERR_ARGUMENT && !before)
        status =
            FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                        "state: its sources have no samples here before its sample: describe its "
                        "loader, too");
    if (!status)
        status = check_blocks(samples, state, n_sources, err);
    if (!status)
        status = check_same_data(samples, state, old, err);
    const char *field = NULL;
    if (!status && (le_get32(state + PHASES_AT) != le_get32(old + PHASES_AT) ||
                    le_get64(state + MIXTURE_AT) != le_get64(old + MIXTURE_AT)))
        field = before ? "weights, phases or max_epochs" : "weights or max_epochs, or later phases";
    else if (!status && le_get64(state + SKIPS_AT) != le_get64(old + SKIPS_AT))
        field = "skips after its sample";
    if (field)
        status =
            FAIL_REASON(err, TOKMAP_ERR_MISMATCH, TOKMAP_REASON_OTHER_MIXTURE,
                        "state: its loader had other %s%s", field,
                        before ? " than those that are described" : ": describe that loader, too");
    if (!status)
        status = check_prefix(mixture, n_sources, samples, end, err);
    tokmap_i_mixture_free(mixture);
    free(skips.gaps);
    return status;
}

tokmap_status tokmap_i_state_check_amended(const tokmap_i_samples *samples, const uint8_t *state,
                                           const tokmap_loader_options *before, tokmap_error *err)
{
    tokmap_loader_options o = {0};
    tokmap_status status = check_readable(state, err);
    if (!status && before)
        status = tokmap_i_samples_take_options(&o, before, err);
    if (!status)
        status = check_order(samples, state, before ? &o : NULL, err);
    tokmap_i_samples_free_options(&o);
    return status;
}

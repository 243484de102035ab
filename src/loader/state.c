/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - the 128 bytes of the state of a loader: docs/ORDER.md, section 8. */
#include <inttypes.h>

#include "base/base.h"
#include "base/hash.h"
#include "loader/loader.h"
#include "base/status.h"

static const uint8_t magic[8] = {0x89, 'T', 'M', 'S', '\r', '\n', 0x1A, '\n'};

enum {
    ORDER_VERSION = 1,
    VERSION_AT = 8,
    LENGTH_AT = 12,
    SEED_AT = 16,
    SAMPLE_AT = 24,
    SOURCES_AT = 32,
    PHASES_AT = 36,
    DATA_AT = 40,
    WINDOWS_AT = 48,
    MIXTURE_AT = 56,
    RESERVED_AT = 64,
    CHECKSUM_AT = 120
};

void tokmap_i_loader_encode_state(const tokmap_loader *l, uint64_t next_sample, uint8_t *state)
{
    const uint64_t of_windows[] = {l->windows, l->random_offset, l->shuffle, l->block_windows,
                                   l->group_blocks};
    uint64_t data = TOKMAP_I_HASH_START, windows = TOKMAP_I_HASH_START;
    for (uint32_t k = 0; k < l->n_sources; k++)
        data = tokmap_i_hash_add(data, l->sources[k].shuffle.id.source_id);
    for (size_t i = 0; i < sizeof of_windows / sizeof *of_windows; i++)
        windows = tokmap_i_hash_add(windows, of_windows[i]);
    memset(state, 0, TOKMAP_STATE_BYTES);
    memcpy(state, magic, sizeof magic);
    store_le32(state + VERSION_AT, ORDER_VERSION);
    store_le32(state + LENGTH_AT, l->length);
    store_le64(state + SEED_AT, l->seed);
    store_le64(state + SAMPLE_AT, next_sample);
    store_le32(state + SOURCES_AT, l->n_sources);
    store_le32(state + PHASES_AT, tokmap_i_mixture_n_phases(l->mixture));
    store_le64(state + DATA_AT, data);
    store_le64(state + WINDOWS_AT, windows);
    store_le64(state + MIXTURE_AT, tokmap_i_mixture_hash(l->mixture));
    store_le64(state + CHECKSUM_AT, tokmap_i_checksum(state, CHECKSUM_AT));
}

tokmap_status tokmap_loader_save(const tokmap_loader *l, uint8_t state[TOKMAP_STATE_BYTES],
                                 tokmap_error *err)
{
    const tokmap_status status = state ? tokmap_i_loader_enter(l, err) : FAIL_NULL(err);
    if (status)
        return status;
    tokmap_i_loader_encode_state(l, l->next_sample, state);
    return tokmap_i_loader_leave(l, TOKMAP_OK);
}

tokmap_status tokmap_loader_save_at(const tokmap_loader *l, uint64_t sample,
                                    uint8_t state[TOKMAP_STATE_BYTES], tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!l || !state)
        return FAIL_NULL(err);
    /* reads only what never changes after open */
    const tokmap_status status = tokmap_i_loader_check_sample(l, sample, err);
    if (!status)
        tokmap_i_loader_encode_state(l, sample, state);
    return status;
}

/* Checks everything that must be the same as where the state was saved. */
static tokmap_status check_same(const uint8_t *state, const uint8_t *own, tokmap_error *err)
{
    if (load_le32(state + SOURCES_AT) != load_le32(own + SOURCES_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: number of sources: saved with %" PRIu32 ", this loader has %" PRIu32,
                    load_le32(state + SOURCES_AT), load_le32(own + SOURCES_AT));
    if (load_le64(state + DATA_AT) != load_le64(own + DATA_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with other datasets, or with the same ones in another order");
    if (load_le32(state + LENGTH_AT) != load_le32(own + LENGTH_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with sequence length %" PRIu32 ", this loader has %" PRIu32,
                    load_le32(state + LENGTH_AT), load_le32(own + LENGTH_AT));
    if (load_le64(state + SEED_AT) != load_le64(own + SEED_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with seed %" PRIu64 ", this loader has %" PRIu64,
                    load_le64(state + SEED_AT), load_le64(own + SEED_AT));
    if (load_le64(state + WINDOWS_AT) != load_le64(own + WINDOWS_AT))
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with other windows, random_offset or shuffle");
    if (memcmp(state, own, SAMPLE_AT) != 0 ||
        memcmp(state + SOURCES_AT, own + SOURCES_AT, CHECKSUM_AT - SOURCES_AT) != 0)
        return FAIL(err, TOKMAP_ERR_MISMATCH,
                    "state: saved with other weights, phases or max_epochs");
    return TOKMAP_OK;
}

tokmap_status tokmap_i_loader_restore(tokmap_loader *l, const uint8_t *state, tokmap_error *err)
{
    uint8_t own[TOKMAP_STATE_BYTES];
    if (memcmp(state, magic, sizeof magic) != 0)
        return FAIL(err, TOKMAP_ERR_CORRUPT, "state: these bytes are not the state of a loader");
    if (load_le64(state + CHECKSUM_AT) != tokmap_i_checksum(state, CHECKSUM_AT))
        return FAIL(err, TOKMAP_ERR_CORRUPT, "state: damaged, its checksum is wrong");
    if (load_le32(state + VERSION_AT) != ORDER_VERSION)
        return FAIL(err, TOKMAP_ERR_VERSION,
                    "state: has order version %" PRIu32
                    ", but this library has version %d: use a newer one",
                    load_le32(state + VERSION_AT), ORDER_VERSION);
    if (!is_zero(state + RESERVED_AT, CHECKSUM_AT - RESERVED_AT))
        return FAIL(err, TOKMAP_ERR_VERSION,
                    "state: holds something that this library does not know: use a newer one");
    tokmap_i_loader_encode_state(l, l->next_sample, own);
    const tokmap_status status = check_same(state, own, err);
    return status ? status : tokmap_i_loader_go_to(l, load_le64(state + SAMPLE_AT), err);
}

tokmap_status tokmap_loader_restore(tokmap_loader *l, const uint8_t state[TOKMAP_STATE_BYTES],
                                    tokmap_error *err)
{
    const tokmap_status status = state ? tokmap_i_loader_enter(l, err) : FAIL_NULL(err);
    return status ? status : tokmap_i_loader_leave(l, tokmap_i_loader_restore(l, state, err));
}

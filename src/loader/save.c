/* SPDX-License-Identifier: Apache-2.0 */
/* save.c - saves and restores the state of a loader. */
#include "base/error.h"
#include "loader/loader.h"
#include "samples/state.h"

tokmap_status tokmap_loader_save(const tokmap_loader *l, uint8_t state[TOKMAP_STATE_BYTES],
                                 tokmap_error *err)
{
    const tokmap_status status = state ? tokmap_i_loader_enter(l, err) : FAIL_NULL(err);
    if (status)
        return status;
    tokmap_i_state_encode(&l->samples, l->next_sample, state);
    return tokmap_i_loader_leave(l, TOKMAP_OK);
}

tokmap_status tokmap_loader_save_at(const tokmap_loader *l, uint64_t sample,
                                    uint8_t state[TOKMAP_STATE_BYTES], tokmap_error *err)
{
    tokmap_i_error_clear(err);
    if (!l || !state)
        return FAIL_NULL(err);
    /* reads only what never changes after open */
    const tokmap_status status = tokmap_i_samples_check(&l->samples, sample, err);
    if (!status)
        tokmap_i_state_encode(&l->samples, tokmap_i_samples_after(&l->samples, sample, 0), state);
    return status;
}

tokmap_status tokmap_i_loader_restore(tokmap_loader *l, const uint8_t *state, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_state_check(&l->samples, state, err);
    return status ? status : tokmap_i_loader_go_to(l, tokmap_i_state_sample(state), err);
}

tokmap_status tokmap_loader_restore(tokmap_loader *l, const uint8_t state[TOKMAP_STATE_BYTES],
                                    tokmap_error *err)
{
    const tokmap_status status = state ? tokmap_i_loader_enter(l, err) : FAIL_NULL(err);
    return status ? status : tokmap_i_loader_leave(l, tokmap_i_loader_restore(l, state, err));
}

tokmap_status tokmap_loader_amend(tokmap_loader *l, const uint8_t state[TOKMAP_STATE_BYTES],
                                  const tokmap_loader_options *before, tokmap_error *err)
{
    tokmap_status status = state ? tokmap_i_loader_enter(l, err) : FAIL_NULL(err);
    if (status)
        return status;
    status = tokmap_i_state_check_amended(&l->samples, state, before, err);
    if (!status)
        status = tokmap_i_loader_go_to(l, tokmap_i_state_sample(state), err);
    return tokmap_i_loader_leave(l, status);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the state of a loader, in 128 bytes: docs/ORDER.md, section 8. */
#pragma once

#include "samples/samples.h"

/* Encodes the state before a sample. */
void tokmap_i_state_encode(const tokmap_i_samples *samples, uint64_t next_sample, uint8_t *state);
/* Returns TOKMAP_OK if a state was saved with the same samples. TOKMAP_ERR_CORRUPT,
 * TOKMAP_ERR_VERSION: it cannot be read. */
tokmap_status tokmap_i_state_check(const tokmap_i_samples *samples, const uint8_t *state,
                                   tokmap_error *err);
/* Likewise, for samples that may be other ones after the state: docs/ORDER.md, section 9. before:
 * the options of the loader that saved it; NULL: as far as they can be told from these samples. */
tokmap_status tokmap_i_state_check_amended(const tokmap_i_samples *samples, const uint8_t *state,
                                           const tokmap_loader_options *before, tokmap_error *err);
/* Returns the sample of a state that can be read. */
uint64_t tokmap_i_state_sample(const uint8_t *state);

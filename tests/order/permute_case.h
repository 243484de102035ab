/* SPDX-License-Identifier: Apache-2.0 */
/* permute_case.h - what the tests of the permutation share: keys, and numbers to try them with. */
#ifndef TOKMAP_PERMUTE_CASE_H
#define TOKMAP_PERMUTE_CASE_H

#include "order/order_key.h"
#include "order/permute.h"

uint64_t random_number(uint64_t *state);
uint64_t key_of(uint64_t seed, uint64_t epoch);
tokmap_i_permutation permutation(uint64_t n, uint64_t key);

#endif /* TOKMAP_PERMUTE_CASE_H */

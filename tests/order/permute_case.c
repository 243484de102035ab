/* SPDX-License-Identifier: Apache-2.0 */
#include "order/permute_case.h"

uint64_t random_number(uint64_t *state)
{
    *state += TOKMAP_I_GOLDEN;
    return tokmap_i_mix(*state);
}

uint64_t key_of(uint64_t seed, uint64_t epoch)
{
    const tokmap_i_order_id id = {seed, 0, 0};
    return tokmap_i_order_key(&id, TOKMAP_I_KEY_FULL, epoch, 0);
}

tokmap_i_permutation permutation(uint64_t n, uint64_t key)
{
    tokmap_i_permutation p;
    tokmap_i_permutation_init(&p, n, key);
    return p;
}

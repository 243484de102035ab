/* permute_case.h - what the tests of the permutation share: keys, and numbers to try them with. */
#ifndef TOKMAP_PERMUTE_CASE_H
#define TOKMAP_PERMUTE_CASE_H

#include "order/order_key.h"
#include "order/permute.h"

static uint64_t random_number(uint64_t *state)
{
    *state += TOKMAP_I_GOLDEN;
    return tokmap_i_mix(*state);
}

static uint64_t key_of(uint64_t seed, uint64_t epoch)
{
    const tokmap_i_order_id id = {seed, 0, 0};
    return tokmap_i_order_key(&id, TOKMAP_I_KEY_FULL, epoch, 0);
}

static tokmap_i_permutation permutation(uint64_t n, uint64_t key)
{
    tokmap_i_permutation p;
    tokmap_i_permutation_init(&p, n, key);
    return p;
}

#endif /* TOKMAP_PERMUTE_CASE_H */

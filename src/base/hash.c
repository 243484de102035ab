/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <xxhash.h>

#include "config.h"

/* The choice of AVX2 or AVX-512 that xxHash makes at run time, where the package has it: two to
 * three times as fast as the SSE2 of a portable build. xxHash promises the same results, and the
 * test vectors of the format check them. Weak, because a package's static library may lack it
 * although the shared one has it. */
#if HAVE_XXH_DISPATCH
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#pragma weak XXH3_64bits_dispatch
#pragma weak XXH3_128bits_dispatch
#pragma weak XXH3_64bits_update_dispatch
#define FASTEST(name) (name##_dispatch ? name##_dispatch : (name))
#else
#define FASTEST(name) (name)
#endif

uint64_t tokmap_i_checksum(const void *data, size_t n_bytes)
{
    return FASTEST(XXH3_64bits)(data, n_bytes);
}

void tokmap_i_id128(const void *data, size_t n_bytes, uint8_t out[16])
{
    XXH128_canonicalFromHash((XXH128_canonical_t *)out, FASTEST(XXH3_128bits)(data, n_bytes));
}

tokmap_i_hasher *tokmap_i_hasher_open(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state)
        XXH3_64bits_reset(state);
    return (tokmap_i_hasher *)state;
}

void tokmap_i_hasher_reset(tokmap_i_hasher *h)
{
    XXH3_64bits_reset((XXH3_state_t *)h);
}

void tokmap_i_hasher_add(tokmap_i_hasher *h, const void *data, size_t n_bytes)
{
    FASTEST(XXH3_64bits_update)((XXH3_state_t *)h, data, n_bytes);
}

uint64_t tokmap_i_hasher_get(const tokmap_i_hasher *h)
{
    return XXH3_64bits_digest((const XXH3_state_t *)h);
}

void tokmap_i_hasher_close(tokmap_i_hasher *h)
{
    XXH3_freeState((XXH3_state_t *)h);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle.c - docs/ORDER.md, section 4. */
#include "order/shuffle.h"

#include "base/base.h"

void tokmap_i_shuffle_init(tokmap_i_shuffle *s)
{
    s->epoch = s->group = s->rotation = UINT64_MAX;
}

static void make_windows(tokmap_i_shuffle *s, uint64_t n, uint64_t key)
{
    tokmap_i_permutation_init(&s->windows, n, key);
    s->n_ahead = s->n_in_order = 0;
    s->last = UINT64_MAX; /* 0 follows it */
}

/* Returns number x of `windows`. If x follows the last one, finds some more with it, and many more
 * if many have followed. */
static inline uint64_t permute_window(tokmap_i_shuffle *s, uint64_t x)
{
    const uint64_t n_left = s->windows.n - x;
    uint64_t i = x - s->ahead_first; /* of any number while n_ahead is 0 */
    s->n_in_order = x == s->last + 1 ? s->n_in_order + 1 : 0;
    s->last = x;
    if (i >= s->n_ahead) {
        if (s->n_in_order == 0 || n_left < TOKMAP_I_PERMUTE_SOME)
            return tokmap_i_permute(&s->windows, x);
        const bool many = s->n_in_order > TOKMAP_I_PERMUTE_SOME && n_left >= TOKMAP_I_PERMUTE_MANY;
        s->n_ahead = many ? TOKMAP_I_PERMUTE_MANY : TOKMAP_I_PERMUTE_SOME;
        tokmap_i_permute_many(&s->windows, x, s->n_ahead, s->ahead);
        s->ahead_first = x;
        i = 0;
    }
    return s->ahead[i];
}

/* Makes the permutations of an epoch. Any number may be an epoch, so only a rotation of UINT64_MAX
 * marks that none is cached. */
static inline void enter_epoch(tokmap_i_shuffle *s, uint64_t epoch)
{
    if (s->epoch == epoch && s->rotation != UINT64_MAX)
        return;
    s->epoch = epoch;
    s->group = UINT64_MAX;
    s->rotation = 0;
    if (s->mode == TOKMAP_SHUFFLE_FULL) {
        const uint64_t key = tokmap_i_order_key(&s->id, TOKMAP_I_KEY_FULL, epoch, 0);
        make_windows(s, s->n_windows, key);
    }
    if (s->mode != TOKMAP_SHUFFLE_BLOCK)
        return;
    const uint64_t n_whole = s->by_chunks ? s->n_chunks : s->n_windows / s->block_windows;
    const uint64_t random = tokmap_i_order_key(&s->id, TOKMAP_I_KEY_ROTATION, epoch, 0);
    s->rotation = s->by_chunks ? 0 : tokmap_i_scale(random, s->n_windows);
    s->blocks.n = 0;
    if (n_whole > 0)
        tokmap_i_permutation_init(&s->blocks, n_whole,
                                  tokmap_i_order_key(&s->id, TOKMAP_I_KEY_BLOCKS, epoch, 0));
}

static void enter_group(tokmap_i_shuffle *s, uint64_t group)
{
    const uint64_t most = s->block_windows * s->group_blocks;
    if (s->group == group)
        return;
    s->group = group;
    make_windows(s, MIN(most, s->n_windows - group * most),
                 tokmap_i_order_key(&s->id, TOKMAP_I_KEY_GROUP, s->epoch, group));
}

tokmap_i_block tokmap_i_shuffle_block(tokmap_i_shuffle *s, uint64_t epoch, uint64_t place)
{
    enter_epoch(s, epoch);
    const uint64_t block = place < s->blocks.n ? tokmap_i_permute(&s->blocks, place) : place;
    const uint64_t begin = block * s->block_windows, w = begin + s->rotation;
    return (tokmap_i_block){w < s->n_windows ? w : w - s->n_windows,
                            MIN(s->block_windows, s->n_windows - begin)};
}

uint64_t tokmap_i_shuffle_window(tokmap_i_shuffle *s, uint64_t epoch, uint64_t x)
{
    if (s->mode == TOKMAP_SHUFFLE_NONE)
        return x;
    enter_epoch(s, epoch);
    if (s->mode == TOKMAP_SHUFFLE_FULL)
        return permute_window(s, x);
    const uint64_t most = s->block_windows * s->group_blocks, group = x / most;
    enter_group(s, group);
    const uint64_t o = permute_window(s, x - group * most);
    const uint64_t place = o / s->block_windows;
    uint64_t block = group * s->group_blocks + place;
    if (block < s->blocks.n) /* the short last block stays last */
        block = tokmap_i_permute(&s->blocks, block);
    const uint64_t w = block * s->block_windows + (o - place * s->block_windows) + s->rotation;
    return w < s->n_windows ? w : w - s->n_windows;
}

uint64_t tokmap_i_shuffle_place(tokmap_i_shuffle *s, uint64_t epoch, uint64_t w)
{
    if (s->mode == TOKMAP_SHUFFLE_NONE)
        return w;
    enter_epoch(s, epoch);
    if (s->mode == TOKMAP_SHUFFLE_FULL)
        return tokmap_i_permute_back(&s->windows, w);
    const uint64_t in_order = w >= s->rotation ? w - s->rotation : w + s->n_windows - s->rotation;
    uint64_t block = in_order / s->block_windows;
    const uint64_t within = in_order - block * s->block_windows;
    if (block < s->blocks.n)
        block = tokmap_i_permute_back(&s->blocks, block);
    const uint64_t group = block / s->group_blocks, place = block - group * s->group_blocks;
    enter_group(s, group);
    return group * s->group_blocks * s->block_windows +
           tokmap_i_permute_back(&s->windows, place * s->block_windows + within);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* shuffle.h - finds the window of a source that is number x of an epoch: docs/ORDER.md, section 4.
 *
 * Closed form: any sample of any epoch in constant time. The permutations of the last epoch (and
 * group of blocks) are kept, so that samples in order need no new keys. Pure; each thread needs a
 * tokmap_i_shuffle of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "order/order_key.h"
#include "order/permute.h"
#include "tokmap_loader.h"

typedef struct tokmap_i_shuffle {
    tokmap_shuffle mode;
    tokmap_i_order_id id;
    uint64_t n_windows;                   /* 1 to 2^48 */
    uint64_t block_windows, group_blocks; /* with BLOCK; their product is at most 2^48 */
    uint64_t n_chunks;                    /* BLOCK with best fit: blocks that are permuted */
    bool by_chunks;                       /* with n_chunks, and the blocks begin at window 0 */

    uint64_t epoch, group, rotation; /* identify the permutations below; UINT64_MAX: none */
    tokmap_i_permutation windows;    /* FULL: of the epoch; BLOCK: of the group */
    tokmap_i_permutation blocks;     /* BLOCK: of the epoch */
    /* What `windows` gives for some numbers from ahead_first on, found together because numbers
     * were asked for in order; the last one that was asked for; and how many came before it in
     * order. */
    uint64_t ahead_first, ahead[TOKMAP_I_PERMUTE_MANY], last;
    uint32_t n_ahead, n_in_order;
} tokmap_i_shuffle;

/* Marks the permutations as unknown. The caller has set the fields above them. */
void tokmap_i_shuffle_init(tokmap_i_shuffle *s);
/* Returns the window at number x < n_windows of the epoch. */
uint64_t tokmap_i_shuffle_window(tokmap_i_shuffle *s, uint64_t epoch, uint64_t x);
/* Returns the x whose window is w < n_windows. */
uint64_t tokmap_i_shuffle_place(tokmap_i_shuffle *s, uint64_t epoch, uint64_t w);
/* The windows of the block at a position of the epoch, in order, with BLOCK. Window 0 follows the
 * last one. */
typedef struct tokmap_i_block {
    uint64_t first_window, n_windows;
} tokmap_i_block;
tokmap_i_block tokmap_i_shuffle_block(tokmap_i_shuffle *s, uint64_t epoch, uint64_t place);

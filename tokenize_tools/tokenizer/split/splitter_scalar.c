/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/splitter_scalar.h"

size_t split_range(const splitter *s, unsigned k, text_cursor *range, size_t stop, uint64_t *starts)
{
    const split_join join = s->joins[k];
    const split_stage *stage = s->stages[k];
    const expression *begins = stage->match && !stage->begins ? NULL : s->expressions[k];
    const expression *rest = stage->begins ? NULL : s->expressions[k];
    text_cursor v = *range;
    size_t i = range->begin, last = SIZE_MAX;
    v.n_bytes = i;
    split_set_bit(starts, i);
    for (;;) {
        if (begins && join != JOIN_KEPT && i < stop)
            i = expression_next(begins, range, i);
        if (i >= range->n_bytes)
            return range->n_bytes;
        if (i >= v.n_bytes) { /* the piece that it is in */
            v = *range;
            if (range->piece_end <= i)
                range->piece_end =
                    k == 0 ? range->n_bytes : split_next_start(starts, i + 1, range->n_bytes);
            v.n_bytes = range->piece_end;
            last = SIZE_MAX;
        }
        size_t end = stage->match ? stage->match(&v, i) : 0;
        if (end == 0 && rest)
            end = expression_match(rest, &v, i);
        if (end >= i && join != JOIN_PREVIOUS)
            split_set_bit(starts, i);
        if (end > i && i == last && join == JOIN_MATCHES)
            split_clear_bit(starts, i);
        /* What v remembers would be searched for again by the next call. */
        if (i >= stop && i >= v.run_end && i >= v.vain_to && (starts[i / 64] >> i % 64 & 1) != 0)
            return i;
        if (end > i && end < v.n_bytes && join != JOIN_NEXT)
            split_set_bit(starts, end);
        last = end > i ? end : last;
        const size_t next = end > i ? end : i + char_at(&v, i).n_bytes;
        for (; join == (end > i ? JOIN_REMOVED : JOIN_KEPT) && i < next; i++)
            split_set_bit(range->removed, i);
        i = next;
    }
}

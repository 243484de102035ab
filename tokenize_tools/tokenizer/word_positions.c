#include "word_positions.h"

#define ENOUGH 256

/* Writes more than there are, eight at a time, so that few branches depend on the text. */
size_t word_positions(const uint64_t *bitmap, size_t *word, size_t n_words, uint32_t *positions,
                      size_t n)
{
    size_t at = *word;
    for (; at < n_words && n < ENOUGH; at++) {
        uint64_t bits = bitmap[at];
        const uint32_t base = (uint32_t)(at * 64);
        const size_t end = n + (size_t)__builtin_popcountll(bits);
        while (n < end) {
            for (size_t i = 0; i < 8; i++) {
                positions[n + i] = base + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
                bits &= bits - 1;
            }
            n += 8;
        }
        n = end;
    }
    *word = at;
    return n;
}

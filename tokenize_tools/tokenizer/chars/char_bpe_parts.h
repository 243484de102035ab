/* SPDX-License-Identifier: Apache-2.0 */
/* char_bpe_parts.h - what char_bpe.c (encoding) and char_bpe_build.c share. */
#ifndef TOKMAP_CHAR_BPE_PARTS_H
#define TOKMAP_CHAR_BPE_PARTS_H

#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/words/double_array.h"

#define NO_SYMBOL UINT32_MAX
#define CHAR_PAGE 256
#define LAST_CHARACTER 0x110000
#define MAX_USER_FIRSTS 4

/* Symbols are ids. Above the ids are symbols of characters that have no token, but with which
 * tokens begin or end. A symbol that is `odd` is not its own id. */
struct char_bpe {
    char_words words;
    merge_table *merges;
    uint32_t n_ids, n_symbols;

    /* By character; at the end of a word by character + LAST_CHARACTER, if there is a suffix. */
    uint16_t page_of[2 * LAST_CHARACTER / CHAR_PAGE]; /* 0: no symbols */
    uint32_t last_offset;                             /* LAST_CHARACTER, or 0: no suffix */
    uint32_t (*pages)[CHAR_PAGE];
    size_t n_pages, pages_capacity;

    uint8_t *odd; /* a bit for each symbol */
    struct odd_output {
        uint32_t symbol, first, n; /* in odd_ids */
    } * odd_outputs;               /* by symbol, ascending */
    size_t n_odd;
    id_buffer odd_ids;

    double_array user;                    /* user-defined pieces, if any */
    uint8_t user_firsts[MAX_USER_FIRSTS]; /* their first bytes; `words` handles the others */
    unsigned n_user_firsts;
    double_array whole; /* texts that are one token without merging, if any */
    size_t longest_whole;

    bool sentencepiece, spaces_are_marks, byte_fallback;
    bool fuse_before;        /* a run of unknown characters becomes one symbol */
    bool fuse_after;         /* a run of unknown ids becomes one */
    size_t symbols_per_byte; /* at most */
    uint32_t unknown_id;
    uint32_t byte_ids[256];
};

static inline uint32_t char_bpe_symbol(const char_bpe *b, uint32_t c)
{
    return b->pages[b->page_of[c / CHAR_PAGE]][c % CHAR_PAGE];
}

static inline bool char_bpe_is_odd(const char_bpe *b, uint32_t symbol)
{
    return b->odd[symbol / 8] >> symbol % 8 & 1;
}

#endif /* TOKMAP_CHAR_BPE_PARTS_H */

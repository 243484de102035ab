/* text_cut.h - places at which a text may be cut without changing its words.
 *
 * Whatever came before and whatever follows, every pattern of splitter.h but SPLIT_NONE starts a
 * word there, and the words on both sides are the same when they stand alone. */
#ifndef TOKMAP_TEXT_CUT_H
#define TOKMAP_TEXT_CUT_H

#include <stddef.h>
#include <stdint.h>

enum {
    CUT_AT_SPACE = 1,   /* before the blank of "a b": letter or digit, blank, letter, all ASCII */
    CUT_AT_NEWLINE = 2, /* after the newline of "a\nb": letter or digit, newline, letter */
    CUT_AT_WIDE = 8,    /* the same two for letters of all scripts */
    CUT_AT_STOP = 4,    /* before an ideographic stop or comma between two CJK characters */
    CUT_AT_DIGIT = 16,  /* before the digit of "a1", ASCII; there is one in any base64 */
    CUT_ANYWHERE = 31
};

/* The largest such place in a text, of the kinds that are allowed; 0: none. */
size_t text_cut(const uint8_t *text, size_t n_bytes, unsigned allowed);

#endif /* TOKMAP_TEXT_CUT_H */

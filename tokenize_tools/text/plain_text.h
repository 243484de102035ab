/* plain_text.h - what a terminal shows unchanged, and what it would interpret.
 *
 * Not plain are control characters (U+0000 to U+001F, U+007F to U+009F), those that turn the
 * direction of the text around them (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069),
 * those that end a line (U+2028, U+2029), and bytes that are not UTF-8: some terminals take 0x9B
 * for ESC [. Pure. */
#ifndef TOKMAP_PLAIN_TEXT_H
#define TOKMAP_PLAIN_TEXT_H

#include <stddef.h>

/* The length of the UTF-8 character at the beginning of n_bytes > 0; 0 when it is malformed or not
 * plain. */
size_t plain_text_length(const char *s, size_t n_bytes);
/* How many bytes at the end, 0 to 3, begin a character that more bytes would complete. */
size_t plain_text_unfinished(const char *s, size_t n_bytes);

/* What stands for a byte that is not plain, or not part of such a character: \x1b. */
#define PLAIN_TEXT_ESCAPE "\\x%02x"
#define PLAIN_TEXT_ESCAPE_BYTES 4

#endif /* TOKMAP_PLAIN_TEXT_H */

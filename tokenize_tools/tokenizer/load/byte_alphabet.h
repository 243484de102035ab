/* byte_alphabet.h - the printable characters by which GPT-2's vocabulary, and every byte-level one
 * since, writes bytes: 21 to 7E, A1 to AC and AE to FF are themselves, the others follow from
 * U+0100 on in their order. */
#ifndef TOKMAP_BYTE_ALPHABET_H
#define TOKMAP_BYTE_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

/* Text is UTF-8. Writes at most n_bytes bytes; SIZE_MAX: a character is not of the alphabet. */
size_t byte_alphabet_decode(const char *text, size_t n_bytes, uint8_t *out);

#endif /* TOKMAP_BYTE_ALPHABET_H */

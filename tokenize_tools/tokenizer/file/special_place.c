/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/file/special_place.h"

#include <stdio.h>
#include <string.h>

#define MAX_SHOWN ((size_t)30)
_Static_assert(SPECIAL_NAME_BYTES >= 4 * MAX_SHOWN + sizeof "...", "each byte may need four");

static void set_name(special_place *place, const uint8_t *token, size_t n_bytes)
{
    char *to = place->name;
    size_t n = n_bytes < MAX_SHOWN ? n_bytes : MAX_SHOWN;
    while (n > 0 && n < n_bytes && (token[n] & 0xC0) == 0x80)
        n--;
    for (size_t i = 0; i < n; i++) {
        if (token[i] < ' ' || token[i] == '\\' || token[i] == 0x7F)
            to += sprintf(to, "\\x%02x", token[i]);
        else
            *to++ = (char)token[i];
    }
    strcpy(to, n < n_bytes ? "..." : "");
}

special_place special_place_of(const encoder *e, const uint8_t *text, size_t n_bytes)
{
    const special_match match = encoder_refused_special(e, text, n_bytes);
    special_place place = {.at = match.at};
    set_name(&place, match.bytes, match.n_bytes);
    return place;
}

special_place special_place_find(const tokenizer *t, const uint8_t *text, size_t n_bytes)
{
    special_place place = {.at = 0};
    const encoder_options options = {.cache_bytes = 1, .specials = SPECIALS_ERROR};
    encoder *e = encoder_new(t, &options);
    id_buffer ids = {0};
    if (e && encoder_encode(e, text, n_bytes, &ids) == TOKENIZE_SPECIAL)
        place = special_place_of(e, text, n_bytes);
    encoder_free(e);
    id_buffer_free(&ids);
    return place;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/file/special_place.h"

#include <stdio.h>
#include <string.h>

#define MAX_SHOWN ((size_t)30)
_Static_assert(SPECIAL_NAME_BYTES >= 4 * MAX_SHOWN + sizeof "...", "each byte may need four");

typedef struct search {
    encoder *e;
    const uint8_t *text;
    id_buffer ids;
} search;

static bool has_special(search *s, size_t from, size_t to)
{
    s->ids.n = 0;
    return encoder_encode(s->e, s->text + from, to - from, TEXT_FIRST, &s->ids) == TOKENIZE_SPECIAL;
}

/* The start of a character near the middle of low and high, or `low` if there is none between. */
static size_t middle_character(const search *s, size_t low, size_t high)
{
    size_t at = low + (high - low) / 2;
    while (at > low && (s->text[at] & 0xC0) == 0x80)
        at--;
    for (size_t next = at + 1; at == low && next < high; next++)
        at = (s->text[next] & 0xC0) == 0x80 ? low : next;
    return at;
}

/* Where the special token begins or ends. The shortest beginning of the text that contains one ends
 * where the token does, and the shortest end of that begins where it begins. */
static size_t find_edge(search *s, size_t end, bool begins)
{
    size_t low = 0, high = end;
    for (size_t at; (at = middle_character(s, low, high)) > low;) {
        if (has_special(s, begins ? at : 0, begins ? end : at) == begins)
            low = at;
        else
            high = at;
    }
    return begins ? low : high;
}

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

special_place special_place_find(const tokenizer *t, const uint8_t *text, size_t n_bytes)
{
    special_place place = {.at = 0};
    const encoder_options options = {.cache_bytes = 1, .specials = SPECIALS_ERROR};
    search s = {.e = encoder_new(t, &options), .text = text};
    if (s.e && has_special(&s, 0, n_bytes)) {
        const size_t end = find_edge(&s, n_bytes, false);
        place.at = find_edge(&s, end, true);
        set_name(&place, text + place.at, end - place.at);
    }
    encoder_free(s.e);
    id_buffer_free(&s.ids);
    return place;
}

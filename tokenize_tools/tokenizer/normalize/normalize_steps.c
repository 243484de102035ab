/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/normalize_steps.h"

#include <string.h>

#include "tokenizer/unicode/grapheme.h"
#include "text/utf8.h"

/* ---- Replace ---- */

static const uint8_t *find_text(const uint8_t *at, const uint8_t *end, const model_text *what)
{
    while ((size_t)(end - at) >= what->n_bytes) {
        at = memchr(at, (uint8_t)what->s[0], (size_t)(end - at) - what->n_bytes + 1);
        if (!at || memcmp(at, what->s, what->n_bytes) == 0)
            return at;
        at++;
    }
    return NULL;
}

/* The end of the run of `what` that begins here. */
static const uint8_t *run_end(const uint8_t *at, const uint8_t *end, const model_text *what)
{
    while ((size_t)(end - at) >= what->n_bytes && memcmp(at, what->s, what->n_bytes) == 0)
        at += what->n_bytes;
    return at;
}

bool step_replace(text_span text, const model_text *from, const model_text *to, text_buffer *out)
{
    const uint8_t *at = text.bytes, *end = at + text.n_bytes, *match;
    while ((match = find_text(at, end, from)) != NULL) {
        if (!text_buffer_append(out, at, (size_t)(match - at)) ||
            !text_buffer_append(out, to->s, to->n_bytes))
            return false;
        at = match + from->n_bytes;
    }
    return text_buffer_append(out, at, (size_t)(end - at));
}

bool step_replace_runs(text_span text, const model_text *from, const model_text *to,
                       text_buffer *out)
{
    const uint8_t *at = text.bytes, *end = at + text.n_bytes, *match;
    while ((match = find_text(at, end, from)) != NULL) {
        const uint8_t *after = run_end(match, end, from);
        const bool replace = after > match + from->n_bytes;
        if (!text_buffer_append(out, at, (size_t)((replace ? match : after) - at)) ||
            (replace && !text_buffer_append(out, to->s, to->n_bytes)))
            return false;
        at = after;
    }
    return text_buffer_append(out, at, (size_t)(end - at));
}

/* ---- White space ---- */

static size_t blank_at(text_span text, size_t at)
{
    uint32_t c;
    const size_t n = utf8_decode(text.bytes + at, text.n_bytes - at, &c);
    return n > 0 && unicode_class_of(c) == CLASS_SPACE ? n : 0;
}

/* The end of the white space that begins here. */
static size_t blanks_end(text_span text, size_t at)
{
    for (size_t n; at < text.n_bytes && (n = blank_at(text, at)) > 0;)
        at += n;
    return at;
}

bool step_replace_blanks(text_span text, bool long_only, const model_text *to, text_buffer *out)
{
    size_t start = 0;
    for (size_t at = 0; at < text.n_bytes;) {
        const uint8_t c = text.bytes[at];
        const size_t n = blank_at(text, at);
        const size_t end = n > 0 ? blanks_end(text, at + n) : at;
        if (n == 0 || (long_only && end == at + n && c != '\n' && c != '\r' && c != '\t')) {
            at += n > 0 ? n : 1;
            continue;
        }
        if (!text_buffer_append(out, text.bytes + start, at - start) ||
            !text_buffer_append(out, to->s, to->n_bytes))
            return false;
        start = at = end;
    }
    return text_buffer_append(out, text.bytes + start, text.n_bytes - start);
}

/* ---- Precompiled ---- */

static bool append_mapped(const charsmap *map, text_span part, text_buffer *out)
{
    replacement r = {part.bytes, part.n_bytes};
    charsmap_shortest(map, part.bytes, part.n_bytes, &r);
    return text_buffer_append(out, r.bytes, r.n_bytes);
}

static bool append_characters(const charsmap *map, text_span text, text_buffer *out)
{
    for (size_t i = 0; i < text.n_bytes;) {
        uint32_t c;
        const size_t n = utf8_decode(text.bytes + i, text.n_bytes - i, &c);
        const text_span character = {text.bytes + i, n > 0 ? n : 1};
        if (!append_mapped(map, character, out))
            return false;
        i += character.n_bytes;
    }
    return true;
}

/* The length of a beginning that stays unchanged: ASCII characters before ASCII characters. */
static size_t plain_prefix(const charsmap *map, text_span text)
{
    size_t n = 0;
    while (n < text.n_bytes && text.bytes[n] < 0x80 && text.bytes[n] != '\r' &&
           map->plain[text.bytes[n]])
        n++;
    return n > 0 && n < text.n_bytes && text.bytes[n] >= 0x80 ? n - 1 : n;
}

bool step_charsmap(text_span text, const charsmap *map, text_buffer *out)
{
    const size_t longest_cluster = 5;
    while (text.n_bytes > 0) {
        const size_t n_plain = plain_prefix(map, text);
        if (!text_buffer_append(out, text.bytes, n_plain))
            return false;
        text.bytes += n_plain;
        text.n_bytes -= n_plain;
        if (text.n_bytes == 0)
            break;
        const text_span cluster = {text.bytes, grapheme_length(text.bytes, text.n_bytes)};
        const bool whole = cluster.n_bytes <= longest_cluster;
        replacement r;
        const bool mapped = whole && charsmap_shortest(map, cluster.bytes, cluster.n_bytes, &r);
        if (!(mapped ? text_buffer_append(out, r.bytes, r.n_bytes)
                     : append_characters(map, cluster, out)))
            return false;
        text.bytes += cluster.n_bytes;
        text.n_bytes -= cluster.n_bytes;
    }
    return true;
}

/* ---- NFC ---- */

bool step_nfc(text_span *text, nfc_scratch *scratch, text_buffer *out)
{
    const size_t stable = nfc_stable_prefix(text->bytes, text->n_bytes);
    const size_t n_rest = text->n_bytes - stable;
    size_t written = 0;
    if (n_rest == 0)
        return true;
    if (!text_buffer_reserve(out, stable + n_rest * NFC_GROWTH))
        return false;
    memcpy(out->bytes, text->bytes, stable);
    if (!nfc_normalize(scratch, text->bytes + stable, n_rest, out->bytes + stable, &written))
        return false;
    out->n_bytes = stable + written;
    *text = text_buffer_span(out);
    return true;
}

/* ---- Strip ---- */

text_span step_strip(text_span text, bool left, bool right)
{
    for (size_t n; left && text.n_bytes > 0 && (n = blank_at(text, 0)) > 0;) {
        text.bytes += n;
        text.n_bytes -= n;
    }
    while (right && text.n_bytes > 0) {
        size_t last = text.n_bytes - 1;
        while (last > 0 && (text.bytes[last] & 0xC0) == 0x80)
            last--;
        if (blank_at(text, last) == 0)
            break;
        text.n_bytes = last;
    }
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/token_ranges.h"

#include "base/le.h"
#include "tokenizer/split/splitter.h"

/* ---- Rules ---- */

/* match_around notices that NFC or a Replace has changed a text, unless one Replace makes it
 * longer and another one shorter: so a Replace must make it shorter. A blank and U+2581 are the
 * same here. */
static bool read_step(range_rules *r, const model *m, const normalize_step *s)
{
    r->searches &= s->kind == NORMALIZE_NFC;
    switch (s->kind) {
    case NORMALIZE_NFC:
        return true;
    case NORMALIZE_PREPEND:
        r->prefix = PREPEND_ALWAYS;
        return true;
    case NORMALIZE_REPLACE:
        if (!model_step_marks_blanks(s))
            return s->to.n_bytes < s->from.n_bytes && s->from.s[0] != ' ';
        r->marks = true;
        return true;
    case NORMALIZE_SENTENCEPIECE:
        r->marks = m->escape_spaces;
        r->prefix = m->dummy_prefix ? PREPEND_FIRST : PREPEND_NEVER;
        return m->charsmap.n_bytes == 0 && !m->collapse_spaces && !m->whitespace_as_suffix;
    default:
        return false;
    }
}

const char *token_ranges_rules(const model *m, range_rules *r)
{
    bool removes = split_drops_blanks(m->split);
    *r = (range_rules){.searches = true, .unknown_id = m->unknown_id};
    if (m->kind == MODEL_WORDPIECE || m->kind == MODEL_WORDLEVEL || m->word_suffix.n_bytes > 0)
        return "its tokens are not written as in the text";
    if (m->kind != MODEL_BYTE_BPE && !m->byte_fallback)
        return "characters without a token become the unknown token";
    for (size_t i = 0; i < m->n_steps; i++)
        if (!read_step(r, m, &m->steps[i]))
            return "its normalizer changes the text";
    for (size_t i = 0; i < m->n_own; i++)
        removes |= m->own[i].join == JOIN_REMOVED || m->own[i].join == JOIN_KEPT;
    if (removes || m->n_later > 0 ||
        (m->metaspace && m->split != SPLIT_NONE && m->prepend != PREPEND_NEVER))
        return "its pre_tokenizer changes the text";
    r->marks |= m->metaspace;
    if (r->prefix == PREPEND_NEVER && (m->prefix_space || m->metaspace)) {
        r->prefix = m->prefix_space ? PREPEND_ALWAYS : m->prepend;
        r->not_twice = r->prefix != PREPEND_NEVER;
    }
    for (size_t i = 0; i < m->n_added && !r->searches; i++) {
        const added_token *a = &m->added[i];
        if (a->normalized && (a->lstrip || a->rstrip || r->not_twice))
            return "blanks beside its added tokens cannot be found";
    }
    return NULL;
}

/* ---- One token after another ---- */

typedef struct token_cursor {
    const range_rules *r;
    const encoded_text *e;
    byte_range *ranges;
    size_t n; /* ids so far */
    size_t lost;
} token_cursor;

/* Text between added tokens. */
typedef struct part {
    size_t at, end;
    bool first;
} part;

/* Returns the length of the blank or U+2581 that begins here, or 0. */
static size_t blank_length(const range_rules *r, const uint8_t *s, size_t n_bytes)
{
    const bool blank = n_bytes > 0 && *s == ' ';
    return blank ? 1 : r->marks && model_begins_with_mark(s, n_bytes) ? MODEL_MARK_BYTES : 0;
}

/* The length of the token at the beginning of the text, or SIZE_MAX: it is not there. A prefix of
 * the token is not in the text. */
static size_t match_token(const range_rules *r, const model_token *t, const uint8_t *text,
                          size_t n_bytes, bool prefix)
{
    const uint8_t *token = r->bytes + t->offset, *end = token + t->n_bytes;
    size_t at = 0, n = prefix ? blank_length(r, token, t->n_bytes) : 0;
    if (token == end || (prefix && n == 0))
        return SIZE_MAX;
    for (token += n; token < end; at += n) {
        const bool is_mark = r->marks && model_begins_with_mark(token, (size_t)(end - token));
        n = is_mark ? blank_length(r, text + at, n_bytes - at) : at < n_bytes && text[at] == *token;
        if (n == 0)
            return SIZE_MAX;
        token += is_mark ? MODEL_MARK_BYTES : 1;
    }
    return at;
}

/* Most tokens have no more than 8 bytes, perhaps after one U+2581 for a blank: these are compared
 * at once. */
__attribute__((always_inline)) static inline bool match_tokens_of(token_cursor *w, part p,
                                                                  bool marks)
{
    const range_rules r = *w->r; /* a copy: the ranges that are written could overlap it */
    const uint8_t *const text = w->e->text;
    const uint32_t *ids = w->e->ids;
    const size_t n_ids = w->e->n_ids, end = p.end;
    bool prefix = p.at < end && r.prefix != PREPEND_NEVER &&
                  (r.prefix == PREPEND_ALWAYS || p.first) &&
                  !(r.not_twice && blank_length(w->r, text + p.at, end - p.at) > 0);
    byte_range *ranges = w->ranges;
    size_t at = p.at, n = w->n;
    for (size_t next; at < end && n < n_ids && ids[n] != r.unknown_id; at = next) {
        const model_token *t = &r.tokens[ids[n]];
        const uint8_t *token = r.bytes + t->offset, *from = text + at;
        size_t n_rest = t->n_bytes;
        if (marks && *from == ' ' && model_begins_with_mark(token, n_rest)) {
            token += MODEL_MARK_BYTES;
            n_rest -= MODEL_MARK_BYTES;
            from++;
        }
        next = (size_t)(from - text) + n_rest;
        if (n_rest - 1 >= 8 || next > end || prefix ||
            (le_get64(token) ^ le_get64(from)) << (64 - 8 * n_rest) != 0) {
            const size_t length = match_token(w->r, t, text + at, end - at, prefix);
            if (length == SIZE_MAX)
                break;
            next = at + length;
            prefix = false;
        }
        ranges[n++] = (byte_range){at, next};
    }
    w->n = n;
    w->lost = at;
    return at == end;
}

static bool match_tokens(token_cursor *w, part p)
{
    return w->r->marks ? match_tokens_of(w, p, true) : match_tokens_of(w, p, false);
}

/* As the encoder does: around the added tokens of this level, and then of the next. */
static bool match_around(token_cursor *w, size_t level, part p)
{
    const encoded_text *e = w->e;
    const size_t first = p.at, end = p.end;
    added_match m = {0};
    if (level == 2)
        return match_tokens(w, p);
    const added_tokens *added = w->r->added[level];
    for (size_t at = 0; added && added_tokens_next(added, e->text + first, end - first, at, &m);) {
        at = m.next;
        if (m.special && !e->take_specials && !e->drop_specials)
            continue;
        m.taken = m.end;
        p.end = w->lost = first + m.start;
        /* A token of blanks that the one before has taken would be in both. */
        if (p.end < p.at || !match_around(w, level + 1, p))
            return false;
        p = (part){.at = first + m.end};
        if (m.special && e->drop_specials)
            continue;
        if (w->n == e->n_ids || e->ids[w->n] != m.id)
            return false;
        w->ranges[w->n++] = (byte_range){first + m.start, p.at};
    }
    p.end = end;
    return match_around(w, level + 1, p);
}

bool token_ranges_find(const range_rules *r, const encoded_text *e, byte_range *ranges,
                       size_t *lost)
{
    token_cursor w = {.r = r, .e = e, .ranges = ranges};
    const bool found = match_around(&w, 0, (part){0, e->n_bytes, true});
    *lost = w.lost;
    return found && w.n == e->n_ids;
}

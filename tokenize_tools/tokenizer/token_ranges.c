/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/token_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/split/splitter.h"

static const uint8_t mark[3] = {0xE2, 0x96, 0x81}; /* U+2581 */

typedef struct spelling {
    uint32_t offset, n_bytes; /* 0 bytes: text never becomes this id */
    uint32_t other;           /* another spelling of the same id, or 0 */
} spelling;

struct token_ranges {
    spelling *spellings; /* by id, then the others */
    uint32_t n_tokens;
    uint8_t *bytes; /* SPELLING_PADDING more are readable */
    bool marks;     /* a blank in a spelling is a blank or U+2581 in the text */
    bool searches;
    /* A blank before the text between added tokens, that is not in the text. */
    prepend_scheme prefix;
    bool not_twice; /* but not before another blank */
};

#define SPELLING_PADDING 8

/* ---- What can be found ---- */

static bool is_blank_or_mark(const model_text *text)
{
    return model_text_is(text, " ") || model_text_is(text, "\xE2\x96\x81");
}

/* Only NFC may change the text; ids of such a text do not spell it. */
static const char *read_steps(token_ranges *r, const model *m)
{
    r->searches = true;
    for (size_t i = 0; i < m->n_steps; i++) {
        const normalize_step *s = &m->steps[i];
        const bool sentencepiece = s->kind == NORMALIZE_SENTENCEPIECE;
        if (s->kind == NORMALIZE_NFC)
            continue;
        r->searches = false;
        r->marks |= s->kind == NORMALIZE_REPLACE || (sentencepiece && m->escape_spaces);
        if (sentencepiece && m->dummy_prefix)
            r->prefix = PREPEND_FIRST;
        else if (s->kind == NORMALIZE_PREPEND)
            r->prefix = PREPEND_ALWAYS;
        if (sentencepiece ? m->charsmap.n_bytes > 0 || m->collapse_spaces
            : s->kind == NORMALIZE_REPLACE
                ? !model_text_is(&s->from, " ") || !model_text_is(&s->to, "\xE2\x96\x81")
                : s->kind != NORMALIZE_PREPEND || !is_blank_or_mark(&s->to))
            return "its normalizer changes the text";
    }
    return NULL;
}

static const char *read_model(token_ranges *r, const model *m, const model *normalized)
{
    const char *why = read_steps(r, m);
    bool removes = split_drops_blanks(m->split), strips = false;
    for (size_t i = 0; i < m->n_own; i++)
        removes |= m->own[i].join == JOIN_REMOVED || m->own[i].join == JOIN_KEPT;
    for (size_t i = 0; i < normalized->n_added; i++)
        strips |= normalized->added[i].lstrip || normalized->added[i].rstrip;
    if (r->prefix == PREPEND_NEVER && (m->prefix_space || m->metaspace)) {
        r->prefix = m->prefix_space ? PREPEND_ALWAYS : m->prepend;
        r->not_twice = true;
        strips |= r->prefix != PREPEND_NEVER && normalized->n_added > 0;
    }
    r->marks |= m->metaspace;
    if (why)
        return why;
    if (m->kind == MODEL_WORDPIECE || m->kind == MODEL_WORDLEVEL || m->word_suffix.n_bytes > 0 ||
        m->subword_prefix.n_bytes > 0 || m->whitespace_as_suffix)
        return "its tokens are not written as in the text";
    if (m->kind != MODEL_BYTE_BPE && !m->byte_fallback)
        return "characters without a token become the unknown token";
    if (removes)
        return "its pre_tokenizer removes characters";
    if (m->n_later > 0 || (m->metaspace && m->split != SPLIT_NONE && m->prepend != PREPEND_NEVER))
        return "its pre_tokenizer changes the text";
    return strips && !r->searches ? "its normalizer changes the text around added tokens" : NULL;
}

/* ---- New ---- */

/* With a blank for each U+2581, if it stands for one. */
static spelling add_spelling(token_ranges *r, size_t *n_bytes, const void *text, size_t n)
{
    const spelling s = {.offset = (uint32_t)*n_bytes};
    const uint8_t *from = text, *end = from + n;
    while (from < end) {
        const bool blank = r->marks && end - from >= 3 && memcmp(from, mark, 3) == 0;
        r->bytes[(*n_bytes)++] = blank ? ' ' : *from;
        from += blank ? 3 : 1;
    }
    return (spelling){s.offset, (uint32_t)(*n_bytes - s.offset), 0};
}

static bool add_spellings(token_ranges *r, const model *m, const model *normalized)
{
    size_t n_bytes = m->n_bytes, n_others = r->searches ? 0 : normalized->n_added;
    for (size_t i = 0; i < n_others; i++)
        n_bytes += normalized->added[i].content.n_bytes;
    r->n_tokens = (uint32_t)m->n_tokens;
    r->spellings = calloc(m->n_tokens + n_others + 1, sizeof *r->spellings);
    r->bytes = calloc(n_bytes + SPELLING_PADDING, 1);
    if (!r->spellings || !r->bytes || n_bytes > UINT32_MAX)
        return false;
    n_bytes = 0;
    for (uint32_t id = 0; id < r->n_tokens; id++) {
        const token_kind kind = (token_kind)m->tokens[id].kind;
        if ((kind == TOKEN_NORMAL || kind == TOKEN_USER_DEFINED || kind == TOKEN_BYTE) &&
            id != m->unknown_id)
            r->spellings[id] =
                add_spelling(r, &n_bytes, model_token_bytes(m, id), m->tokens[id].n_bytes);
    }
    for (size_t i = 0; i < n_others; i++) {
        const added_token *a = &normalized->added[i];
        const uint32_t other = r->n_tokens + (uint32_t)i;
        r->spellings[other] = add_spelling(r, &n_bytes, a->content.s, a->content.n_bytes);
        r->spellings[other].other = r->spellings[a->id].other;
        r->spellings[a->id].other = other;
    }
    return true;
}

token_ranges *token_ranges_new(const model *m, const model *normalized, const char **why)
{
    token_ranges *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    *why = read_model(r, m, normalized);
    if (*why || add_spellings(r, m, normalized))
        return r;
    token_ranges_free(r);
    return NULL;
}

void token_ranges_free(token_ranges *r)
{
    if (!r)
        return;
    free(r->spellings);
    free(r->bytes);
    free(r);
}

bool token_ranges_search(const token_ranges *r)
{
    return r->searches;
}

/* ---- The walk ---- */

typedef struct walk {
    const token_ranges *r;
    const added_tokens *added[2];
    const encoded_text *e;
    byte_range *ranges;
    size_t n;    /* ids so far */
    size_t lost; /* where a token is not the text */
} walk;

/* Text between added tokens. */
typedef struct walk_part {
    size_t at, end;
    bool first, continues;
} walk_part;

static bool lose(walk *w, size_t at)
{
    w->lost = at;
    return false;
}

/* The length of the blank or U+2581 that begins here, or 0. */
static size_t blank_at(const walk *w, size_t at, size_t end)
{
    if (at < end && w->e->text[at] == ' ')
        return 1;
    return w->r->marks && end - at >= 3 && memcmp(w->e->text + at, mark, 3) == 0 ? 3 : 0;
}

/* Where the spelling ends in the text; SIZE_MAX: it is not there. */
static size_t end_of_spelling(const walk *w, const spelling *s, walk_part p, bool prefix)
{
    const uint8_t *bytes = w->r->bytes + s->offset;
    size_t at = p.at, i = 0;
    if (prefix && s->n_bytes > 0 && bytes[0] == ' ')
        i = 1;
    else if (prefix || s->n_bytes == 0)
        return SIZE_MAX;
    for (size_t n; i < s->n_bytes; i++, at += n) {
        n = bytes[i] == ' ' ? blank_at(w, at, p.end) : at < p.end && w->e->text[at] == bytes[i];
        if (n == 0)
            return SIZE_MAX;
    }
    return at;
}

/* The end of the token in the text, if exactly one spelling is there. */
static size_t end_of_token(const walk *w, uint32_t id, walk_part p, bool prefix)
{
    const spelling *all = w->r->spellings;
    size_t end = id < w->r->n_tokens ? end_of_spelling(w, &all[id], p, prefix) : SIZE_MAX;
    for (uint32_t other = id < w->r->n_tokens ? all[id].other : 0; other;
         other = all[other].other) {
        const size_t again = end_of_spelling(w, &all[other], p, prefix);
        if (end != SIZE_MAX && again != SIZE_MAX && again != end)
            return SIZE_MAX;
        end = again != SIZE_MAX ? again : end;
    }
    return end;
}

static uint64_t load_8(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Short tokens, which most are, are compared at once. */
static bool walk_tokens(walk *w, walk_part p)
{
    const token_ranges *r = w->r;
    const encoded_text *e = w->e;
    bool prefix = p.at < p.end && !p.continues &&
                  (r->prefix == PREPEND_ALWAYS || (r->prefix == PREPEND_FIRST && p.first)) &&
                  !(r->not_twice && blank_at(w, p.at, p.end) > 0);
    for (size_t end; p.at < p.end; p.at = end) {
        if (w->n == e->n_ids)
            return lose(w, p.at);
        const uint32_t id = e->ids[w->n];
        const spelling s = id < r->n_tokens ? r->spellings[id] : (spelling){0};
        end = p.at + s.n_bytes;
        if (prefix || s.n_bytes - 1 >= 8 || s.other || end > p.end ||
            (load_8(r->bytes + s.offset) ^ load_8(e->text + p.at)) << (64 - 8 * s.n_bytes) != 0) {
            end = end_of_token(w, id, p, prefix);
            if (end == SIZE_MAX)
                return lose(w, p.at);
        }
        prefix = false;
        w->ranges[w->n++] = (byte_range){p.at, end};
    }
    return true;
}

/* As the encoder does: around the added tokens of this level, and then of the next. */
static bool walk_around(walk *w, size_t level, walk_part p)
{
    if (level == 2 || p.at == p.end)
        return walk_tokens(w, p);
    const encoded_text *e = w->e;
    const size_t first = p.at, end = p.end;
    added_match m = {0};
    for (size_t at = 0; w->added[level] &&
                        added_tokens_next(w->added[level], e->text + first, end - first, at, &m);) {
        at = m.next;
        if (m.special && !e->take_specials && !e->drop_specials)
            continue;
        m.taken = m.end;
        p.end = first + m.start > p.at ? first + m.start : p.at;
        if (!walk_around(w, level + 1, p))
            return false;
        if (!m.special || !e->drop_specials) {
            if (w->n == e->n_ids || e->ids[w->n] != m.id)
                return lose(w, p.end);
            w->ranges[w->n++] = (byte_range){p.end, first + m.end};
        }
        p = (walk_part){.at = first + m.end};
    }
    p.end = end;
    return walk_around(w, level + 1, p);
}

bool token_ranges_find(const token_ranges *r, const added_tokens *const added[2],
                       const encoded_text *e, byte_range *ranges, size_t *lost)
{
    walk w = {.r = r, .added = {added[0], added[1]}, .e = e, .ranges = ranges, .lost = e->n_bytes};
    const walk_part all = {0, e->n_bytes, e->begins, !e->begins};
    const bool found = walk_around(&w, 0, all) && w.n == e->n_ids;
    *lost = w.lost;
    return found;
}

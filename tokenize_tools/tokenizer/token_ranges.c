/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/token_ranges.h"

#include <string.h>

#include "tokenizer/split/splitter.h"

static const uint8_t mark[3] = {0xE2, 0x96, 0x81}; /* U+2581 */

/* ---- Rules ---- */

/* The walk finds texts that NFC or a Replace changes. To it, a blank and U+2581 are the same. */
static bool read_step(range_rules *r, const model *m, const normalize_step *s)
{
    switch (s->kind) {
    case NORMALIZE_NFC:
        return true;
    case NORMALIZE_REPLACE:
        if (model_text_is(&s->from, " ") && model_text_is(&s->to, "\xE2\x96\x81"))
            r->marks = true;
        else if (s->from.s[0] == ' ' || (uint8_t)s->from.s[0] == mark[0])
            return false;
        break;
    case NORMALIZE_PREPEND:
        r->prefix = PREPEND_ALWAYS;
        break;
    case NORMALIZE_SENTENCEPIECE:
        r->marks = m->escape_spaces;
        r->prefix = m->dummy_prefix ? PREPEND_FIRST : PREPEND_NEVER;
        if (m->charsmap.n_bytes == 0 && !m->collapse_spaces && !m->whitespace_as_suffix)
            break;
        return false;
    default:
        return false;
    }
    r->searches = false;
    return true;
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
        r->not_twice = true;
    }
    return NULL;
}

/* ---- The walk ---- */

typedef struct walk {
    const range_rules *r;
    const encoded_text *e;
    byte_range *ranges;
    size_t n; /* ids so far */
    size_t lost;
} walk;

/* Text between added tokens. */
typedef struct walk_part {
    size_t at, end;
    bool first, continues;
} walk_part;

static bool begins_with_mark(const uint8_t *s, size_t n_bytes)
{
    return n_bytes >= sizeof mark && memcmp(s, mark, sizeof mark) == 0;
}

/* The length of the blank or U+2581 that begins here, or 0. */
static size_t blank_length(const range_rules *r, const uint8_t *s, size_t n_bytes)
{
    return n_bytes > 0 && *s == ' '                   ? 1
           : r->marks && begins_with_mark(s, n_bytes) ? sizeof mark
                                                      : 0;
}

static void take_range(walk *w, size_t begin, size_t end)
{
    w->ranges[w->n++] = (byte_range){begin, end};
}

static bool lose(walk *w, size_t at)
{
    w->lost = at;
    return false;
}

/* Takes the next token, which has to be the text at p->at. A prefix of it is not in the text. */
static bool take_token(walk *w, walk_part *p, bool prefix)
{
    const range_rules *r = w->r;
    if (w->n == w->e->n_ids || w->e->ids[w->n] == r->unknown_id)
        return lose(w, p->at);
    const model_token *t = &r->tokens[w->e->ids[w->n]];
    const uint8_t *text = w->e->text, *token = r->bytes + t->offset, *end = token + t->n_bytes;
    size_t at = p->at, n = prefix ? blank_length(r, token, t->n_bytes) : 0;
    if (token == end || (prefix && n == 0))
        return lose(w, p->at);
    for (token += n; token < end; at += n) {
        const bool is_mark = r->marks && begins_with_mark(token, (size_t)(end - token));
        n = is_mark ? blank_length(r, text + at, p->end - at) : at < p->end && text[at] == *token;
        if (n == 0)
            return lose(w, p->at);
        token += is_mark ? sizeof mark : 1;
    }
    take_range(w, p->at, at);
    p->at = at;
    return true;
}

static uint64_t load_8(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* The same for the tokens up to the next that is long or different, at once: most have no more than
 * 8 bytes, perhaps after one U+2581 for a blank. */
__attribute__((always_inline)) static inline void take_short(walk *w, walk_part *p, bool marks)
{
    const model_token *tokens = w->r->tokens;
    const uint8_t *bytes = w->r->bytes, *text = w->e->text;
    const uint32_t *ids = w->e->ids, unknown_id = w->r->unknown_id;
    byte_range *ranges = w->ranges;
    const size_t n_ids = w->e->n_ids, part_end = p->end;
    size_t at = p->at, n = w->n;
    for (size_t end; at < part_end && n < n_ids && ids[n] != unknown_id; at = end) {
        const model_token *t = &tokens[ids[n]];
        const uint8_t *token = bytes + t->offset;
        size_t n_bytes = t->n_bytes, from = at;
        if (marks && text[at] == ' ' && begins_with_mark(token, n_bytes)) {
            token += sizeof mark;
            n_bytes -= sizeof mark;
            from++;
        }
        end = from + n_bytes;
        if (n_bytes - 1 >= 8 || end > part_end ||
            (load_8(token) ^ load_8(text + from)) << (64 - 8 * n_bytes) != 0)
            break;
        ranges[n++] = (byte_range){at, end};
    }
    w->n = n;
    p->at = at;
}

static bool walk_tokens(walk *w, walk_part p)
{
    const range_rules *r = w->r;
    const bool prefix = p.at < p.end && !p.continues && r->prefix != PREPEND_NEVER &&
                        (r->prefix == PREPEND_ALWAYS || p.first) &&
                        !(r->not_twice && blank_length(r, w->e->text + p.at, p.end - p.at) > 0);
    bool taken = !prefix || take_token(w, &p, true);
    while (taken && p.at < p.end) {
        if (r->marks)
            take_short(w, &p, true);
        else
            take_short(w, &p, false);
        taken = p.at == p.end || take_token(w, &p, false);
    }
    return taken;
}

/* As the encoder does: around the added tokens of this level, and then of the next. */
static bool walk_around(walk *w, size_t level, walk_part p)
{
    const encoded_text *e = w->e;
    const size_t first = p.at, end = p.end;
    added_match m = {0};
    if (level == 2)
        return walk_tokens(w, p);
    for (size_t at = 0; w->r->added[level] && added_tokens_next(w->r->added[level], e->text + first,
                                                                end - first, at, &m);) {
        at = m.next;
        if (m.special && !e->take_specials && !e->drop_specials)
            continue;
        m.taken = m.end;
        p.end = first + m.start;
        if (p.end < p.at) /* a token of blanks that the one before has taken: both have them */
            return lose(w, p.end);
        if (!walk_around(w, level + 1, p))
            return false;
        p = (walk_part){.at = first + m.end};
        if (m.special && e->drop_specials)
            continue;
        if (w->n == e->n_ids || e->ids[w->n] != m.id)
            return lose(w, first + m.start);
        take_range(w, first + m.start, p.at);
    }
    p.end = end;
    return walk_around(w, level + 1, p);
}

bool token_ranges_find(const range_rules *r, const encoded_text *e, byte_range *ranges,
                       size_t *lost)
{
    walk w = {.r = r, .e = e, .ranges = ranges, .lost = e->n_bytes};
    const bool found = walk_around(&w, 0, (walk_part){0, e->n_bytes, e->begins, !e->begins});
    *lost = w.lost;
    return found && w.n == e->n_ids;
}

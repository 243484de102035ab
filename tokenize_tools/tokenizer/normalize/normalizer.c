/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/normalize/normalizer.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/normalize/step_list.h"
#include "tokenizer/split/splitter.h"
#include "tokenizer/split/text_cut.h"
#include "tokenizer/unicode/grapheme.h"
#include "tokenizer/unicode/unicode.h"
#include "text/utf8.h"

static const uint8_t mark[3] = {0xE2, 0x96, 0x81}; /* U+2581 */

struct normalizer {
    bool sentencepiece, identity;
    normal_form form;
    /* sentencepiece */
    charsmap map;
    double_array user; /* user-defined pieces, which stay unchanged */
    bool dummy, collapse, suffix;
    bool fast[256]; /* unchanged before ASCII, and not the start of a user-defined piece */
    bool blank_is_fast;
    /* tokenizer.json */
    step_list list;
};

/* ---- sentencepiece: new ---- */

static bool load_user_pieces(normalizer *n, const model *m, failure *err)
{
    double_array_key *keys = malloc(m->n_tokens * sizeof *keys + 1);
    size_t n_keys = 0;
    if (!keys)
        return fail_memory(err);
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const model_token *t = &m->tokens[id];
        if (t->kind != TOKEN_USER_DEFINED || t->n_bytes == 0)
            continue;
        keys[n_keys++] = (double_array_key){model_token_bytes(m, id), t->n_bytes, id};
        n->fast[model_token_bytes(m, id)[0]] = false;
    }
    n->user.max_keys = SENTENCEPIECE_USER_MATCHES;
    qsort(keys, n_keys, sizeof *keys, double_array_compare);
    const bool built = n_keys == 0 || double_array_build(&n->user, keys, n_keys);
    free(keys);
    return built || fail_memory(err);
}

static bool load_sentencepiece_rules(normalizer *n, const model *m, failure *err)
{
    n->sentencepiece = true;
    n->dummy = m->dummy_prefix && !m->whitespace_as_suffix;
    n->suffix = m->dummy_prefix && m->whitespace_as_suffix;
    n->collapse = m->collapse_spaces;
    n->form.spaces_are_marks = m->escape_spaces;
    if (m->charsmap.n_bytes > 0 && !charsmap_load(&n->map, &m->charsmap, err))
        return false;
    for (unsigned i = 0; i < 128; i++)
        n->fast[i] = n->map.rules.n_units == 0 || n->map.plain[i];
    if (!load_user_pieces(n, m, err))
        return false;
    n->blank_is_fast = n->fast[' '];
    n->fast[' '] &= !n->collapse;
    n->identity = !n->collapse && !n->suffix && n->map.rules.n_units == 0;
    if (n->identity) {
        n->form.prefix_first = n->dummy;
        n->form.blank_prefix = true;
        n->dummy = false;
    }
    return true;
}

/* ---- sentencepiece: run ---- */

/* *r: the replacement of the beginning of the text. Returns the length of the beginning. */
static size_t normalize_prefix(const normalizer *n, text_span text, replacement *r)
{
    static const uint8_t bad[3] = {0xEF, 0xBF, 0xBD}; /* U+FFFD */
    uint32_t value, c;
    size_t length = 0;
    if (n->user.n_units > 0)
        length = double_array_longest(&n->user, double_array_root(&n->user), text.bytes,
                                      text.n_bytes, &value);
    if (length == 0 && n->map.rules.n_units > 0) {
        length = charsmap_longest(&n->map, text.bytes, text.n_bytes, r);
        if (length > 0)
            return length;
    }
    if (length == 0)
        length = utf8_decode(text.bytes, text.n_bytes, &c);
    *r = (replacement){text.bytes, length};
    if (length == 0) {
        *r = (replacement){bad, sizeof bad};
        length = 1;
    }
    return length;
}

static text_span without_leading_blanks(const normalizer *n, text_span text)
{
    while (text.n_bytes > 0) {
        replacement r;
        const size_t length = normalize_prefix(n, text, &r);
        if (r.n_bytes != 1 || r.bytes[0] != ' ')
            break;
        text.bytes += length;
        text.n_bytes -= length;
    }
    return text;
}

/* The length of a beginning that can be copied: characters that stay unchanged, with single blanks
 * between. */
static size_t fast_prefix(const normalizer *n, text_span text, bool *after_blank)
{
    const bool before = *after_blank;
    size_t i = 0;
    for (; i < text.n_bytes; i++) {
        const uint8_t c = text.bytes[i];
        if (n->fast[c])
            *after_blank = false;
        else if (c == ' ' && n->blank_is_fast && !*after_blank && i + 1 < text.n_bytes &&
                 text.bytes[i + 1] < 0x80)
            *after_blank = n->collapse;
        else
            break;
    }
    if (i == 0 || i == text.n_bytes || text.bytes[i] < 0x80)
        return i;
    /* A rule may begin with the last one and continue with a character that is not ASCII. */
    *after_blank = i > 1 ? n->collapse && text.bytes[i - 2] == ' ' : before;
    return i - 1;
}

/* After a blank, further ones are left out. */
static bool append_all(const normalizer *n, text_span text, bool after_blank, text_buffer *out)
{
    while (text.n_bytes > 0) {
        size_t length = fast_prefix(n, text, &after_blank);
        replacement r = {text.bytes, length};
        if (length == 0) {
            length = normalize_prefix(n, text, &r);
            for (; after_blank && r.n_bytes > 0 && r.bytes[0] == ' '; r.n_bytes--)
                r.bytes++;
            if (r.n_bytes > 0)
                after_blank = n->collapse && r.bytes[r.n_bytes - 1] == ' ';
        }
        if (!text_buffer_append(out, r.bytes, r.n_bytes))
            return false;
        text.bytes += length;
        text.n_bytes -= length;
    }
    return true;
}

static void strip_blanks(const normalizer *n, text_buffer *out)
{
    for (;;) {
        const uint8_t *end = out->bytes + out->n_bytes;
        if (out->n_bytes > 0 && end[-1] == ' ')
            out->n_bytes--;
        else if (n->form.spaces_are_marks && out->n_bytes >= 3 && memcmp(end - 3, mark, 3) == 0)
            out->n_bytes -= 3;
        else
            break;
    }
}

static bool normalize_sentencepiece(const normalizer *n, unsigned flags, text_span text,
                                    text_buffer *out)
{
    const bool goes_on = (flags & NORMALIZE_CONTINUES) != 0;
    if (n->collapse && !goes_on)
        text = without_leading_blanks(n, text);
    if (text.n_bytes == 0)
        return true;
    if (n->dummy && (flags & NORMALIZE_FIRST) && !text_buffer_append(out, " ", 1))
        return false;
    if (!append_all(n, text, n->collapse && !goes_on, out))
        return false;
    if (n->collapse)
        strip_blanks(n, out);
    return !(n->suffix && (flags & NORMALIZE_FIRST)) || text_buffer_append(out, " ", 1);
}

/* ---- tokenizer.json ---- */

/* The last steps may be left to the reader of the text: blanks to U+2581, and one U+2581 before the
 * text. Returns how many steps remain here. */
static size_t leave_to_reader(normalizer *n, const model *m, bool all_steps)
{
    bool replaced = m->metaspace && !split_drops_blanks(m->split), prefixed = false;
    size_t n_steps = m->n_steps;
    for (; n_steps > 0 && !all_steps; n_steps--) {
        const normalize_step *s = &m->steps[n_steps - 1];
        if (s->kind == NORMALIZE_PREPEND && model_text_is(&s->to, "\xE2\x96\x81") && !prefixed)
            prefixed = true;
        else if (s->kind == NORMALIZE_REPLACE && model_text_is(&s->from, " ") &&
                 model_text_is(&s->to, "\xE2\x96\x81"))
            replaced = true;
        else
            break;
    }
    n->form.spaces_are_marks = n->form.blank_prefix = replaced;
    n->form.prefix_all = prefixed;
    if (m->metaspace && m->split == SPLIT_NONE && !prefixed) {
        n->form.prefix_all = m->prepend == PREPEND_ALWAYS;
        n->form.prefix_first = m->prepend == PREPEND_FIRST;
        n->form.not_twice = true;
    }
    return n_steps;
}

/* ---- Cuts: whether the steps handle two neighbours in a text independently ---- */

#define N NORMALIZER_CUT_CHARACTERS

/* Replaces a character by the result of the rules for it alone. false: that is not exactly one
 * character. */
static bool cut_map(const charsmap *map, uint32_t *character)
{
    uint8_t bytes[4];
    const size_t length = utf8_encode(*character, bytes);
    replacement r;
    if (map->rules.n_units == 0 || charsmap_longest(map, bytes, length, &r) == 0)
        return true;
    return r.n_bytes > 0 && utf8_decode(r.bytes, r.n_bytes, character) == r.n_bytes;
}

static bool occurs_in(const model_text *text, uint32_t character)
{
    const uint8_t *bytes = (const uint8_t *)text->s;
    for (size_t at = 0, length; at < text->n_bytes; at += length) {
        uint32_t c = bytes[at];
        length = c < 0x80 ? 1 : utf8_decode(bytes + at, text->n_bytes - at, &c);
        if (length == 0 || c == character)
            return true;
    }
    return false;
}

/* Whether the result for around[i] is known: it is unchanged, or replaced alone. */
static bool replace_one(const normalize_step *step, uint32_t *around, size_t i)
{
    uint32_t from, to;
    if (!occurs_in(&step->from, around[i]))
        return true;
    if (!model_text_is_character(&step->from, &from))
        return false;
    if (step->kind == NORMALIZE_REPLACE_RUNS) /* one is not a run */
        return i == 2 && around[1] != from && around[3] != from;
    if (!model_text_is_character(&step->to, &to))
        return false;
    around[i] = to;
    return true;
}

/* Whether there is a cluster boundary between any two of them, whatever is before them. */
static bool are_clusters(const uint32_t *around)
{
    bool alone = true;
    for (size_t i = 0; i < N && alone; i++)
        alone = grapheme_is_alone(around[i]);
    if (alone)
        return true;
    uint8_t text[(N + 1) * 4];
    size_t lengths[N], n_bytes = utf8_encode(around[0], text);
    for (size_t i = 0; i < N; i++)
        n_bytes += lengths[i] = utf8_encode(around[i], text + n_bytes);
    /* Two equal characters, to find those that join with the ones before. */
    if (grapheme_length(text, 2 * lengths[0]) != lengths[0])
        return false;
    const uint8_t *at = text + lengths[0], *end = text + n_bytes;
    for (size_t i = 0; i < N; i++) {
        if (grapheme_length(at, (size_t)(end - at)) != lengths[i])
            return false;
        at += lengths[i];
    }
    return true;
}

static bool is_normal(uint32_t character)
{
    uint8_t bytes[4];
    const size_t length = utf8_encode(character, bytes);
    return unicode_class_of(character) != CLASS_MARK && nfc_stable_prefix(bytes, length) == length;
}

/* The results for the outer characters are not known, because their neighbours are not. */
static bool map_each(const normalize_step *step, const charsmap *map, uint32_t *around)
{
    for (size_t i = 1; i + 1 < N; i++)
        if (step->kind == NORMALIZE_NFC ? !is_normal(around[i]) : !cut_map(map, &around[i]))
            return false;
    return true;
}

static bool is_blank(uint32_t character)
{
    return unicode_class_of(character) == CLASS_SPACE;
}

/* Only the two characters beside the cut matter, and whether a run goes on across it. */
static bool replace_blanks(const normalize_step *step, uint32_t *around)
{
    if (is_blank(around[1]) || (is_blank(around[2]) && is_blank(around[3])))
        return false;
    if (is_blank(around[2]) && step->kind == NORMALIZE_REPLACE_BLANKS)
        return model_text_is_character(&step->to, &around[2]);
    return around[2] != '\n' && around[2] != '\r' && around[2] != '\t';
}

/* normalizer_cuts for the steps of a tokenizer.json. */
static bool cut_steps(const step_list *list, const uint32_t *around, uint32_t beside[2])
{
    uint32_t now[N];
    bool mapped = false;
    memcpy(now, around, sizeof now);
    for (size_t i = 0; i < list->n_steps; i++) {
        const normalize_step *step = &list->steps[i].step;
        const char_map *map = list->steps[i].map;
        if (map) {
            for (size_t k = 0; k < N; k++)
                if (mapped || !char_map_one(map, now[k], &now[k]))
                    return false;
            continue;
        }
        switch (step->kind) {
        case NORMALIZE_PREPEND:
            break;
        case NORMALIZE_STRIP:
            if (is_blank(now[1]))
                return false;
            break;
        case NORMALIZE_REPLACE:
        case NORMALIZE_REPLACE_RUNS:
            for (size_t k = 0; k < N; k++)
                if (!replace_one(step, now, k))
                    return false;
            break;
        case NORMALIZE_REPLACE_BLANKS:
        case NORMALIZE_REPLACE_LONG_BLANKS:
            if (!replace_blanks(step, now))
                return false;
            break;
        default:
            if (mapped || !are_clusters(now) || !map_each(step, &list->charsmap, now))
                return false;
            mapped = true;
        }
    }
    beside[0] = now[1];
    beside[1] = now[2];
    return true;
}

/* ---- All ---- */

normalizer *normalizer_new(const model *m, bool all_steps, failure *err)
{
    normalizer *n = calloc(1, sizeof *n);
    bool loaded = false;
    if (!n) {
        fail_memory(err);
    } else if (m->n_steps == 1 && m->steps[0].kind == NORMALIZE_SENTENCEPIECE) {
        loaded = load_sentencepiece_rules(n, m, err);
    } else {
        const size_t n_steps = leave_to_reader(n, m, all_steps);
        n->identity = n_steps == 0;
        loaded = step_list_load(&n->list, m, n_steps, err);
    }
    if (loaded)
        return n;
    normalizer_free(n);
    return NULL;
}

void normalizer_free(normalizer *n)
{
    if (!n)
        return;
    charsmap_free(&n->map);
    double_array_free(&n->user);
    step_list_free(&n->list);
    free(n);
}

normal_form normalizer_form(const normalizer *n)
{
    return n->form;
}

void normalizer_add_pairs(const normalizer *n, char_pairs *pairs)
{
    charsmap_add_pairs(n->sentencepiece ? &n->map : &n->list.charsmap, pairs);
}

bool normalizer_cuts(const normalizer *n, const char_pairs *pairs, const uint32_t *around,
                     uint32_t beside[2])
{
    beside[0] = around[1];
    beside[1] = around[2];
    if (n->identity)
        return true;
    if (!n->sentencepiece)
        return cut_steps(&n->list, around, beside);
    /* A rule that includes one of these characters ends before the next one. Text in a user-defined
     * piece is not replaced. */
    for (size_t i = 1; i < 4; i++)
        if (char_pairs_has(pairs, CHAR_ANY, around[i]))
            return false;
    if (n->suffix || !cut_map(&n->map, &beside[0]) || !cut_map(&n->map, &beside[1]))
        return false;
    return n->user.n_units == 0 || (beside[0] == around[1] && beside[1] == around[2]);
}

/* Characters farther away only forbid cuts. */
uint32_t normalizer_neutral(const normalizer *n, const char_pairs *pairs)
{
    uint32_t beside[2];
    for (uint32_t c = 'a'; c <= 'z'; c++) {
        const uint32_t around[NORMALIZER_CUT_CHARACTERS] = {c, c, c, c, c};
        if (normalizer_cuts(n, pairs, around, beside))
            return c;
    }
    return CHAR_ANY;
}

bool normalize_text(const normalizer *n, normalize_scratch *s, unsigned flags, text_span *span)
{
    if (n->identity)
        return true;
    if (!n->sentencepiece)
        return step_list_run(&n->list, s, (flags & NORMALIZE_CONTINUES) != 0, span);
    s->texts[0].n_bytes = 0;
    if (!normalize_sentencepiece(n, flags, *span, &s->texts[0]))
        return false;
    *span = text_buffer_span(&s->texts[0]);
    return true;
}

static bool normalize_content(const normalizer *n, model_text *content)
{
    normalize_scratch scratch = {0};
    text_buffer padded = {0};
    bool done = text_buffer_append(&padded, content->s, content->n_bytes);
    text_span span = text_buffer_span(&padded);
    done = done && normalize_text(n, &scratch, 0, &span) &&
           model_text_set(content, span.bytes, span.n_bytes);
    text_buffer_free(&padded);
    normalize_scratch_free(&scratch);
    return done;
}

bool normalizer_add_tokens(const normalizer *n, const model *m, model *added, failure *err)
{
    for (size_t i = 0; i < m->n_added; i++) {
        if (!m->added[i].normalized)
            continue;
        if (!model_add_added(added, &m->added[i], err))
            return false;
        model_text *content = &added->added[added->n_added - 1].content;
        if (n && !normalize_content(n, content))
            return fail_memory(err);
        if (content->n_bytes == 0)
            return model_fail(err, 0, "an added token is empty when normalized");
    }
    return true;
}

void normalize_scratch_free(normalize_scratch *s)
{
    text_buffer_free(&s->texts[0]);
    text_buffer_free(&s->texts[1]);
    nfc_scratch_free(&s->nfc);
}

/* ---- Words of a pattern ---- */

/* Whether no match has a character that is beside a cut. */
static bool is_beside_no_cut(const model_text *from)
{
    for (size_t i = 0; i < from->n_bytes; i++) {
        const uint8_t c = (uint8_t)from->s[i];
        if (c <= ' ' || (uint8_t)((c | 0x20) - 'a') < 26 || (uint8_t)(c - '0') < 10)
            return false;
    }
    return true;
}

/* What the step leaves of the places of text_cut.h. Letters there begin and end with a letter or
 * its marks in all forms; a newline may become a blank, and ideographs may get blanks. */
static unsigned cuts_of_step(const normalize_step *step, bool drops_blanks)
{
    const unsigned ascii = CUT_AT_SPACE | CUT_AT_NEWLINE | CUT_AT_DIGIT;
    const unsigned no_newline = CUT_ANYWHERE & ~(unsigned)CUT_AT_NEWLINE;
    switch (step->kind) {
    case NORMALIZE_NFC:
    case NORMALIZE_NFD:
    case NORMALIZE_NFKC:
    case NORMALIZE_NFKD:
    case NORMALIZE_STRIP_ACCENTS:
    case NORMALIZE_LOWERCASE:
    case NORMALIZE_PREPEND:
        return CUT_ANYWHERE;
    case NORMALIZE_NMT:
        return drops_blanks ? CUT_ANYWHERE : no_newline;
    case NORMALIZE_BERT:
        return drops_blanks ? CUT_ANYWHERE : CUT_AT_SPACE | CUT_AT_DIGIT | CUT_AT_SIGN;
    case NORMALIZE_STRIP: /* no part of the text ends with a blank */
        return step->right ? no_newline : CUT_ANYWHERE;
    case NORMALIZE_REPLACE:
        return is_beside_no_cut(&step->from) ? ascii : 0;
    case NORMALIZE_REPLACE_RUNS: /* the blank of a cut is a single one */
        return model_text_is(&step->from, " ") ? ascii : 0;
    case NORMALIZE_REPLACE_BLANKS:
    case NORMALIZE_REPLACE_LONG_BLANKS:
        return model_text_is(&step->to, " ") ? CUT_AT_SPACE | CUT_AT_DIGIT : 0;
    default:
        return 0;
    }
}

unsigned normalizer_text_cuts(const model *m)
{
    unsigned cuts = split_cuts(m->split, m->own);
    for (size_t i = 0; i < m->n_steps; i++)
        cuts &= cuts_of_step(&m->steps[i], m->split != SPLIT_NONE && split_drops_blanks(m->split));
    return cuts;
}

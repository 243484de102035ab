/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/chars/char_engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "tokenizer/chars/char_bpe.h"
#include "tokenizer/chars/char_words.h"
#include "tokenizer/chars/unigram.h"
#include "tokenizer/split/found_words.h"
#include "tokenizer/unicode/unicode.h"
#include "tokenizer/words/word_cache.h"
#include "base/array.h"
#include "base/utf8.h"

/* Which stretches of text are sentences, which are encoded independently. */
typedef enum sentence_kind {
    WHOLE_TEXT,    /* the whole text is one sentence */
    BETWEEN_MARKS, /* a sentence begins at each U+2581 */
    PIECES         /* of the splits; one may also begin at each U+2581 */
} sentence_kind;

/* Where the part after a cut may begin. */
typedef enum cut_place {
    CUT_NOWHERE,
    CUT_BEFORE_BLANKS, /* white space of the normalized text */
    CUT_BEFORE_MARKS,  /* U+2581 in the normalized text, or a blank for it */
    CUT_BEFORE_ANY
} cut_place;

typedef struct char_cuts { /* starts as {0}, which finds no cut */
    char_pairs pairs;
    cut_place place;
    /* How many of the two characters beside a cut must have tokens: 1 if a run of unknown
     * characters becomes one id, 2 if it vanishes and the text around it merges. */
    unsigned n_known;
    /* Bits by the characters before and after: where ASCII may be cut at all. Most text is ASCII
     * that may not, and checking a place takes a hundred times as long as skipping it. */
    uint64_t ascii[128][2];
} char_cuts;

struct char_engine {
    normalizer *normalizer;
    normal_form form;
    char_bpe *bpe; /* or */
    unigram *pieces;
    char_words words;
    sentence_kind sentences;
    splitter *split; /* PIECES: */
    bool prefix_words, splits_at_marks;
    bool pieces_are_words; /* the splitter finds the words of a text */
    added_tokens *added;   /* in normalized text, or NULL */
    bool blanks_only;      /* to find `added`, all U+2581 in the text become blanks */
    char_cuts cuts;
};

struct char_scratch {
    const char_engine *e;
    normalize_scratch normalizing;
    text_buffer prefixed, word; /* word: the whole text, if blanks_only */
    found_words pieces;
    uint64_t *starts;
    size_t starts_capacity;
    merge_scratch merging;
    word_cache *cache;
    unigram_scratch *search;
};

/* ---- Cuts: between two characters that are neighbours in no token, where the normalizer handles
 * each of them alone. Most texts in any script have such a place every few words. ---- */

static void add_tokens(char_cuts *c, const model *m)
{
    char name[8];
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const uint8_t *bytes = model_token_bytes(m, id);
        if (m->tokens[id].kind == TOKEN_CONTROL && m->rule != MERGE_LISTED)
            continue; /* never in a text, unless it is an added token */
        if (m->tokens[id].kind == TOKEN_BYTE && m->tokens[id].n_bytes == 1) {
            if (m->kind != MODEL_UNIGRAM) /* in Unigram the text of its name matches */
                continue;
            snprintf(name, sizeof name, "<0x%02X>", *bytes);
            char_pairs_add_text(&c->pairs, (const uint8_t *)name, 6);
        } else {
            char_pairs_add_text(&c->pairs, bytes, m->tokens[id].n_bytes);
        }
    }
}

/* Whether merges use ids whose text does not occur in the input: bytes, or the unknown token. */
static bool merges_more_than_text(const model *m)
{
    for (size_t i = 0; i < m->n_merges; i++) {
        const uint32_t ids[2] = {m->merges[i].left, m->merges[i].right};
        for (size_t k = 0; k < 2; k++)
            if (ids[k] == m->unknown_id || m->tokens[ids[k]].kind != TOKEN_NORMAL)
                return true;
    }
    return false;
}

static void add_beginning(char_cuts *c, const uint8_t *bytes, size_t n_bytes)
{
    uint32_t first;
    if (n_bytes > 0 && utf8_decode(bytes, n_bytes, &first) > 0)
        char_pairs_add(&c->pairs, CHAR_ANY, first);
}

static void add_end(char_cuts *c, const uint8_t *bytes, size_t n_bytes)
{
    uint32_t last;
    if (utf8_decode_last(bytes, n_bytes, &last) > 0)
        char_pairs_add(&c->pairs, last, CHAR_ANY);
}

/* The text of the unknown token joins with unknown characters beside it into one id. */
static void add_unknown(char_cuts *c, const model *m)
{
    if (m->unknown_id >= m->n_tokens)
        return;
    const uint8_t *bytes = model_token_bytes(m, m->unknown_id);
    const size_t n_bytes = m->tokens[m->unknown_id].n_bytes;
    add_end(c, bytes, n_bytes);
    add_beginning(c, bytes, n_bytes);
}

/* Forbids cuts inside an added token and at its end: the text after it is a new stretch, which may
 * get a prefix; it does not continue the one before. */
static void add_added_token(char_cuts *c, const added_token *token)
{
    const uint8_t *bytes = (const uint8_t *)token->content.s;
    const size_t n_bytes = token->content.n_bytes;
    char_pairs_add_text(&c->pairs, bytes, n_bytes);
    add_end(c, bytes, n_bytes);
    if (token->single_word) /* the character before it matters */
        add_beginning(c, bytes, n_bytes);
}

#define N_AROUND NORMALIZER_CUT_CHARACTERS
#define BYTES_AFTER ((N_AROUND - 2) * (size_t)4) /* a place, that decide on it */

static bool is_known(const char_engine *e, uint32_t character)
{
    return e->bpe ? char_bpe_knows(e->bpe, character) : unigram_knows(e->pieces, character);
}

static bool is_place(const char_engine *e, uint32_t after)
{
    switch (e->cuts.place) {
    case CUT_BEFORE_BLANKS:
        return unicode_class_of(after) == CLASS_SPACE;
    case CUT_BEFORE_MARKS:
        return after == CHAR_WORDS_MARK || (after == ' ' && e->form.spaces_are_marks);
    default:
        return e->cuts.place == CUT_BEFORE_ANY;
    }
}

/* Whether the text may be cut between around[1] and around[2]. Blanks before a cut would look like
 * the end of the text. */
static bool cuts_here(const char_engine *e, const uint32_t around[N_AROUND])
{
    const char_cuts *c = &e->cuts;
    uint32_t beside[2];
    if (char_pairs_has(&c->pairs, around[1], around[2]) ||
        !normalizer_cuts(e->normalizer, &c->pairs, around, beside))
        return false;
    return is_place(e, beside[1]) && !char_pairs_has(&c->pairs, beside[0], beside[1]) &&
           beside[0] != CHAR_WORDS_MARK && unicode_class_of(beside[0]) != CLASS_SPACE &&
           (c->n_known == 0 ||
            (unsigned)is_known(e, beside[0]) + (unsigned)is_known(e, beside[1]) >= c->n_known);
}

/* When everything else is set. */
static void mark_ascii(char_engine *e)
{
    const uint32_t letter = normalizer_neutral(e->normalizer, &e->cuts.pairs);
    for (uint32_t left = 0; left < 128; left++)
        for (uint32_t right = 0; right < 128; right++) {
            const uint32_t around[N_AROUND] = {letter, left, right, letter, letter};
            const bool cuts = letter == CHAR_ANY || cuts_here(e, around);
            e->cuts.ascii[left][right / 64] |= (uint64_t)cuts << right % 64;
        }
}

/* The characters around a place; two of them are before it. */
static bool read_around(const uint8_t *text, size_t n_bytes, size_t place, uint32_t *around)
{
    for (size_t i = 2, end = place, length; i-- > 0; end -= length) {
        length = utf8_decode_last(text, end, &around[i]);
        if (length == 0)
            return false;
    }
    for (size_t i = 2, at = place, length; i < N_AROUND; i++, at += length) {
        length = at < n_bytes ? utf8_decode(text + at, n_bytes - at, &around[i]) : 0;
        if (length == 0)
            return false;
    }
    bool has_nul = false;
    for (size_t i = 0; i < N_AROUND; i++)
        has_nul |= around[i] == 0;
    return !has_nul;
}

size_t char_engine_cut(const char_engine *e, const uint8_t *text, size_t n_searched, size_t n_bytes)
{
    const char_cuts *c = &e->cuts;
    uint32_t around[N_AROUND];
    const size_t last = n_searched < BYTES_AFTER ? 0 : n_searched - BYTES_AFTER;
    if (c->place == CUT_NOWHERE || c->pairs.all)
        return 0;
    for (size_t at = n_bytes < 2 ? 0 : n_bytes - 1; at > last; at--) {
        const uint8_t left = text[at - 1], right = text[at];
        const bool ascii = (left | right) < 0x80, inside = (right & 0xC0) == 0x80;
        if (ascii ? (c->ascii[left][right / 64] >> right % 64 & 1) == 0 : inside)
            continue;
        if (read_around(text, n_bytes, at, around) && cuts_here(e, around))
            return at;
    }
    return 0;
}

/* Whether no word has a blank, and the words on both sides of one do not depend on each other: the
 * first stage drops them. */
static bool first_drops_blanks(const model *m)
{
    return split_drops_blanks(m->split & 0xFF);
}

/* The same of U+2581. */
static bool is_at_punctuation(const model *m)
{
    return m->split == STAGE_EACH_PUNCTUATION && m->metaspace_split;
}

static cut_place place_of_cuts(const char_engine *e, const model *m)
{
    const bool needs_sentences = e->pieces || m->whole_word_first;
    if (m->rule == MERGE_NONE && m->whole_word_first && char_bpe_must_know(e->bpe) > 0)
        return CUT_NOWHERE; /* the words on both sides may be unknown, and become one id */
    switch (e->sentences) {
    case PIECES:
        if (first_drops_blanks(m))
            return CUT_BEFORE_BLANKS;
        return is_at_punctuation(m) ? CUT_BEFORE_MARKS : CUT_NOWHERE;
    case BETWEEN_MARKS:
        return needs_sentences ? CUT_BEFORE_MARKS : CUT_BEFORE_ANY;
    default:
        return m->whole_word_first ? CUT_NOWHERE : CUT_BEFORE_ANY;
    }
}

static bool load_cuts(char_engine *e, const model *m, failure *err)
{
    char_cuts *c = &e->cuts;
    c->place = place_of_cuts(e, m);
    if (c->place == CUT_BEFORE_ANY) /* else unknown characters are separate in any case */
        c->n_known = e->bpe ? char_bpe_must_know(e->bpe) : unigram_must_know(e->pieces);
    add_tokens(c, m);
    add_unknown(c, m);
    for (size_t i = 0; i < m->n_added; i++)
        add_added_token(c, &m->added[i]);
    normalizer_add_pairs(e->normalizer, &c->pairs);
    c->pairs.all |= merges_more_than_text(m);
    mark_ascii(e);
    return !c->pairs.no_memory || fail_memory(err);
}

/* ---- New ---- */

/* Appends the text with a blank for each U+2581. */
static bool append_blanked(text_span text, text_buffer *out)
{
    return normalize_replace(text, model_view(MODEL_MARK, MODEL_MARK_BYTES), model_view(" ", 1),
                             false, out);
}

static bool blank_content(model_text *content)
{
    text_buffer blanked = {0};
    const text_span text = {(const uint8_t *)content->s, content->n_bytes};
    bool done = append_blanked(text, &blanked);
    const text_span span = text_buffer_span(&blanked);
    done = done && model_text_set(content, span.bytes, span.n_bytes);
    text_buffer_free(&blanked);
    return done;
}

/* Those that are searched for in normalized text. */
static bool load_added(char_engine *e, const model *normalized, failure *err)
{
    model added;
    bool loaded = true;
    model_init(&added);
    for (size_t i = 0; loaded && i < normalized->n_added; i++) {
        loaded = model_add_added(&added, &normalized->added[i], err);
        if (loaded && e->blanks_only)
            loaded = blank_content(&added.added[i].content) || fail_memory(err);
        if (loaded)
            add_added_token(&e->cuts, &added.added[i]);
    }
    if (loaded && added.n_added > 0)
        loaded = (e->added = added_tokens_new(&added, true, err)) != NULL;
    model_free(&added);
    return loaded;
}

/* Whether the text may be searched with blanks in place of U+2581: if the normalizer replaces all
 * blanks by U+2581, and blanks mean nothing to the tokens that are searched for. */
static bool may_be_blanked(const model *m)
{
    bool replaced = false;
    for (size_t i = 0; i < m->n_steps; i++)
        replaced |= model_step_marks_blanks(&m->steps[i]);
    for (size_t i = 0; i < m->n_added; i++)
        replaced &= !(m->added[i].normalized && (m->added[i].lstrip || m->added[i].rstrip));
    return replaced && !m->metaspace && m->split == SPLIT_NONE;
}

static bool load_normalizer(char_engine *e, const model *m, bool has_tokens, failure *err)
{
    bool all_steps =
        (m->split != SPLIT_NONE && !is_at_punctuation(m)) || (has_tokens && !may_be_blanked(m));
    e->normalizer = normalizer_new(m, all_steps, err);
    if (e->normalizer && has_tokens && !all_steps) {
        e->blanks_only = normalizer_form(e->normalizer).spaces_are_marks;
        all_steps = !e->blanks_only; /* the blanks are replaced, but not by the last step */
        if (all_steps) {
            normalizer_free(e->normalizer);
            e->normalizer = normalizer_new(m, true, err);
        }
    }
    if (!e->normalizer)
        return false;
    e->form = normalizer_form(e->normalizer);
    return true;
}

static void choose_words(char_engine *e, const model *m)
{
    e->words = e->bpe ? *char_bpe_words(e->bpe) : *unigram_char_words(e->pieces);
    if (m->split != SPLIT_NONE) {
        e->sentences = PIECES;
        e->prefix_words = m->metaspace && m->prepend == PREPEND_ALWAYS;
        e->splits_at_marks = m->metaspace && m->metaspace_split;
        e->pieces_are_words = m->split == STAGE_WHITESPACE_SPLIT;
        char_words_init(&e->words, e->form.spaces_are_marks);
        if (first_drops_blanks(m) || is_at_punctuation(m))
            char_words_join_all_but_blanks(&e->words);
        else
            char_words_join_all(&e->words);
    } else if (m->rule == MERGE_NONE && m->whole_word_first) {
        e->sentences = BETWEEN_MARKS;
    } else if (m->metaspace && m->metaspace_split) {
        e->sentences = BETWEEN_MARKS;
        if (e->pieces) {
            char_words_init(&e->words, e->form.spaces_are_marks);
            char_words_join_all_but_blanks(&e->words);
        }
    }
}

static bool load_engine(char_engine *e, const model *m, const model *normalized, failure *err)
{
    if (m->n_tokens > WORD_CACHE_MAX_ID)
        return model_fail(err, 0, "more than %u tokens", WORD_CACHE_MAX_ID);
    if (!load_normalizer(e, m, normalized->n_added > 0, err))
        return false;
    if (m->kind == MODEL_CHAR_BPE)
        e->bpe = char_bpe_new(m, e->form.spaces_are_marks, err);
    else
        e->pieces = unigram_new(m, e->form.spaces_are_marks, err);
    if ((!e->bpe && !e->pieces) || !load_added(e, normalized, err))
        return false;
    if (m->split != SPLIT_NONE && !(e->split = splitter_new(m->split, m->own)))
        return fail_memory(err);
    choose_words(e, m);
    return load_cuts(e, m, err);
}

char_engine *char_engine_new(const model *m, const model *normalized, failure *err)
{
    char_engine *e = calloc(1, sizeof *e);
    if (!e)
        fail_memory(err);
    else if (load_engine(e, m, normalized, err))
        return e;
    char_engine_free(e);
    return NULL;
}

void char_engine_free(char_engine *e)
{
    if (!e)
        return;
    normalizer_free(e->normalizer);
    char_bpe_free(e->bpe);
    unigram_free(e->pieces);
    splitter_free(e->split);
    added_tokens_free(e->added);
    char_pairs_free(&e->cuts.pairs);
    free(e);
}

bool char_engine_in_order(const char_engine *e)
{
    return e->pieces && e->sentences == WHOLE_TEXT; /* sums continue across cuts */
}

const added_tokens *char_engine_added(const char_engine *e)
{
    return e->added;
}

bool char_engine_prefixes(const char_engine *e)
{
    return e->form.prefix_all || e->form.prefix_first || e->prefix_words;
}

/* ---- Words ---- */

/* A text whose ids do not depend on its neighbours. */
static bool encode_sentence(char_scratch *s, text_span text, id_buffer *out)
{
    const char_engine *e = s->e;
    if (text.n_bytes == 0)
        return true;
    if (e->bpe)
        return char_bpe_encode(e->bpe, &s->merging, text.bytes, text.n_bytes, out);
    unigram_begin(s->search);
    return unigram_word(s->search, text.bytes, text.n_bytes, out) &&
           unigram_end(s->search, text.bytes + text.n_bytes, out);
}

static size_t mark_at(const char_engine *e, text_span text, size_t at)
{
    if (text.bytes[at] == ' ' && e->form.spaces_are_marks)
        return 1;
    return model_begins_with_mark(text.bytes + at, text.n_bytes - at) ? MODEL_MARK_BYTES : 0;
}

static bool encode_between_marks(char_scratch *s, text_span text, id_buffer *out)
{
    const size_t first = out->n;
    size_t start = 0;
    for (size_t at = 0; at < text.n_bytes; at++) {
        if (mark_at(s->e, text, at) == 0)
            continue;
        if (!encode_sentence(s, (text_span){text.bytes + start, at - start}, out))
            return false;
        start = at;
    }
    if (!encode_sentence(s, (text_span){text.bytes + start, text.n_bytes - start}, out))
        return false;
    if (s->e->bpe)
        char_bpe_fuse_unknown(s->e->bpe, first, out);
    return true;
}

/* A text that gets a prefix of its own. */
static bool encode_piece(char_scratch *s, text_span text, id_buffer *out)
{
    const char_engine *e = s->e;
    if (text.n_bytes == 0)
        return true;
    if (e->prefix_words && mark_at(e, text, 0) == 0 &&
        !text_buffer_prefix(&s->word, MODEL_MARK, MODEL_MARK_BYTES, &text))
        return false;
    return e->splits_at_marks ? encode_between_marks(s, text, out) : encode_sentence(s, text, out);
}

/* A piece as the splitter leaves it. */
static bool encode_split(char_scratch *s, text_span text, id_buffer *out)
{
    const size_t n = splitter_dropped_blanks(s->e->split, text.bytes, text.n_bytes);
    return encode_piece(s, (text_span){text.bytes + n, text.n_bytes - n}, out);
}

static bool encode_pieces(char_scratch *s, text_span text, id_buffer *out)
{
    const char_engine *e = s->e;
    const found_words *w = &s->pieces;
    if (!found_words_find(&s->pieces, e->split, text.bytes, text.n_bytes))
        return false;
    for (size_t at = 0, end; at < w->n_bytes; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!encode_split(s, (text_span){w->text + at, end - at}, out))
            return false;
    }
    return true;
}

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    char_scratch *s = context;
    const text_span text = {word, n_bytes};
    switch (s->e->sentences) {
    case PIECES:
        return s->e->pieces_are_words ? encode_split(s, text, out) : encode_pieces(s, text, out);
    case BETWEEN_MARKS:
        return encode_between_marks(s, text, out);
    default:
        return encode_sentence(s, text, out);
    }
}

/* ---- Texts: a chunk of words at a time ---- */

#define CHUNK_BYTES ((size_t)48 << 10)
#define MAX_CACHED_BYTES ((size_t)1 << 31)

static bool split_chunk(char_scratch *s, text_span text, size_t n_bytes)
{
    const size_t n_blocks = n_bytes / 64 + 1;
    if (!array_reserve(&s->starts, &s->starts_capacity, n_blocks, sizeof *s->starts))
        return false;
    const size_t sizes[2] = {n_bytes, text.n_bytes};
    if (s->e->pieces_are_words) {
        splitter_words(s->e->split, SIMD_BEST, text.bytes, n_bytes, s->starts);
        return true;
    }
    char_words_split(&s->e->words, SIMD_BEST, text.bytes, sizes, s->starts);
    if (s->e->bpe)
        char_bpe_join_user_pieces(s->e->bpe, text.bytes, sizes, s->starts);
    return true;
}

/* The start of the last word of the chunk, whose end is not known: it is cleared in the bitmap. 0:
 * no other word is before it. */
static size_t take_last_word(char_scratch *s, size_t n_bytes)
{
    size_t block = (n_bytes - 1) / 64;
    while (block > 0 && s->starts[block] == 0)
        block--;
    if (s->starts[block] == 0)
        return 0;
    const unsigned bit = 63 - (unsigned)__builtin_clzll(s->starts[block]);
    s->starts[block] &= ~((uint64_t)1 << bit);
    return block * 64 + bit;
}

static bool encode_words(char_scratch *s, text_span text, id_buffer *out)
{
    size_t size = CHUNK_BYTES;
    while (text.n_bytes > 0) {
        size_t n = text.n_bytes < size ? text.n_bytes : size;
        if (!split_chunk(s, text, n))
            return false;
        if (n < text.n_bytes && (n = take_last_word(s, n)) == 0) {
            size *= 2;
            continue;
        }
        const bool cached = n < MAX_CACHED_BYTES;
        bool encoded;
        if (char_engine_in_order(s->e))
            encoded = cached ? unigram_words(s->search, text.bytes, n, s->starts, out)
                             : unigram_word(s->search, text.bytes, n, out);
        else
            encoded = cached ? word_cache_encode(s->cache, text.bytes, n, s->starts, out)
                             : encode_word(s, text.bytes, n, out);
        if (!encoded)
            return false;
        text.bytes += n;
        text.n_bytes -= n;
        size = CHUNK_BYTES;
    }
    return true;
}

/* Puts the prefix, if there is one, before the text. */
static bool add_prefix(char_scratch *s, stretch *t)
{
    const normal_form *form = &s->e->form;
    const bool prefix = form->prefix_all || (form->prefix_first && t->n_first > 0);
    if (!prefix || (t->flags & NORMALIZE_CONTINUES) != 0 || t->text.n_bytes == 0 ||
        (form->not_twice && mark_at(s->e, t->text, 0) > 0))
        return true;
    return text_buffer_prefix(&s->prefixed, form->blank_prefix ? " " : MODEL_MARK,
                              form->blank_prefix ? 1 : MODEL_MARK_BYTES, &t->text);
}

bool char_scratch_encode(char_scratch *s, stretch t, id_buffer *out)
{
    if (!s->e->blanks_only && !add_prefix(s, &t))
        return false;
    if (!char_engine_in_order(s->e))
        return encode_words(s, t.text, out);
    if ((t.flags & NORMALIZE_CONTINUES) == 0)
        unigram_begin(s->search);
    return encode_words(s, t.text, out) &&
           unigram_end(s->search, t.text.bytes + t.text.n_bytes, out);
}

/* With blanks_only, the prefix has to be there before the blanks. */
bool char_scratch_normalize(char_scratch *s, stretch *t)
{
    if (!normalize_text(s->e->normalizer, &s->normalizing, t->flags, &t->text))
        return false;
    t->n_first = s->normalizing.n_first;
    if (!s->e->blanks_only)
        return true;
    s->word.n_bytes = 0;
    if (!add_prefix(s, t) || !append_blanked(t->text, &s->word))
        return false;
    t->text = text_buffer_span(&s->word);
    return true;
}

bool char_scratch_too_long(const char_scratch *s)
{
    return normalize_too_long(&s->normalizing);
}

/* ---- Scratch ---- */

char_scratch *char_scratch_new(const char_engine *e, size_t cache_bytes)
{
    char_scratch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->e = e;
    if (e->pieces)
        s->search = unigram_scratch_new(e->pieces, char_engine_in_order(e) ? cache_bytes : 0);
    if (!char_engine_in_order(e))
        s->cache = word_cache_new(cache_bytes, (word_source){encode_word, s});
    if ((!char_engine_in_order(e) && !s->cache) || (e->pieces && !s->search)) {
        char_scratch_free(s);
        return NULL;
    }
    return s;
}

void char_scratch_free(char_scratch *s)
{
    if (!s)
        return;
    normalize_scratch_free(&s->normalizing);
    text_buffer_free(&s->prefixed);
    text_buffer_free(&s->word);
    found_words_free(&s->pieces);
    free(s->starts);
    merge_scratch_free(&s->merging);
    word_cache_free(s->cache);
    unigram_scratch_free(s->search);
    free(s);
}

unigram_state *char_scratch_state(char_scratch *s)
{
    return unigram_scratch_state(s->search);
}

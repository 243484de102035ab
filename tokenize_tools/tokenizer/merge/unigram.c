/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/merge/unigram.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "tokenizer/model/double_array.h"
#include "tokenizer/merge/word_cache.h"

/* sentencepiece keeps sums small: beyond this limit it subtracts them from all open scores. */
#define RESET_ABOVE 100000.0
#define UNKNOWN_PENALTY 10.0

/* For parts whose ids are cached: sentencepiece adds floats. Its sums stay below 2^17, so each
 * addition is wrong by at most 2^-8; the others are doubles below 2^31, wrong by at most 2^-23. */
#define MAX_FIXED_BYTES 256
#define MAX_FIXED_SCORE 2000.0 /* of a part, positive or negative */
#define MAX_DOUBLE_SCORE 2e9
#define FLOAT_ERROR 0x1p-8
#define DOUBLE_ERROR 0x1p-22

struct unigram {
    char_words words;
    double_array trie;
    double *scores;                /* by id */
    bool single;                   /* sentencepiece: floats */
    double unknown_score, largest; /* largest: absolute value of all scores */
    uint32_t n_ids, unknown_id;
    bool byte_fallback;
    uint32_t byte_ids[256];
    size_t longest; /* piece or character, in bytes */
};

/* Adding two floats as doubles and rounding to float gives the same result as adding floats. */
static inline double sum_of(bool single, double a, double b)
{
    return single ? (double)(float)(a + b) : a + b;
}

/* A piece on a path; of length 0: there is no path yet. */
typedef struct step {
    uint32_t id; /* MODEL_NO_ID: a character that is not a piece */
    uint32_t length;
} step;

struct unigram_workspace {
    const unigram *u;
    double *scores; /* of the latest places, by their low bits */
    size_t mask;
    step *steps; /* the last one to each place of the window */
    size_t capacity;
    unigram_state state;
    word_cache *cache; /* or NULL */
    id_buffer found;
};

/* ---- New: the pieces ---- */

/* 1 << TOKEN_... */
static unsigned matched_kinds(const unigram *u)
{
    return u->single ? 1u << TOKEN_NORMAL | 1u << TOKEN_USER_DEFINED
                     : ~(1u << TOKEN_ABSENT | 1u << TOKEN_CONTROL);
}

/* Whether the token is searched for in texts. */
static bool is_matched(const unigram *u, const model *m, uint32_t id)
{
    return m->tokens[id].n_bytes > 0 && (matched_kinds(u) >> m->tokens[id].kind & 1) != 0;
}

static double score_of(const unigram *u, const model *m, uint32_t id)
{
    const model_token *t = &m->tokens[id];
    if (!u->single)
        return t->score;
    /* sentencepiece's bonus: a tenth for each byte but the first. */
    return t->kind == TOKEN_USER_DEFINED ? (float)(0.1 * ((int)t->n_bytes - 1)) : (float)t->score;
}

static bool load_scores(unigram *u, const model *m, failure *err)
{
    double lowest = u->single ? FLT_MAX : INFINITY;
    u->scores = malloc(m->n_tokens * sizeof *u->scores + 1);
    if (!u->scores)
        return fail_memory(err);
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const model_token *t = &m->tokens[id];
        const double score = u->scores[id] = score_of(u, m, id);
        const bool matched = is_matched(u, m, id);
        if ((t->kind == TOKEN_NORMAL || (!u->single && matched)) && score < lowest)
            lowest = score;
        if (matched && fabs(score) > u->largest)
            u->largest = fabs(score);
    }
    u->unknown_score = u->single ? (float)(lowest - UNKNOWN_PENALTY) : lowest - UNKNOWN_PENALTY;
    if (fabs(u->unknown_score) > u->largest)
        u->largest = fabs(u->unknown_score);
    return true;
}

static bool load_trie(unigram *u, const model *m, failure *err)
{
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        model_byte_name name;
        const model_text text = model_token_text(m, id, &name);
        if (!is_matched(u, m, id))
            continue;
        if (text.n_bytes > u->longest)
            u->longest = text.n_bytes;
        char_words_join_piece(&u->words, (const uint8_t *)text.s, text.n_bytes);
    }
    if (!double_array_of_tokens(&u->trie, m, matched_kinds(u), err))
        return false;
    return u->trie.n_units > 0 || double_array_build(&u->trie, NULL, 0) || fail_memory(err);
}

unigram *unigram_new(const model *m, bool spaces_are_marks, failure *err)
{
    unigram *u = calloc(1, sizeof *u);
    if (!u) {
        fail_memory(err);
        return NULL;
    }
    u->single = m->n_steps == 1 && m->steps[0].kind == NORMALIZE_SENTENCEPIECE;
    u->n_ids = (uint32_t)m->n_tokens;
    u->longest = 4;
    u->trie.spaces_are_marks = spaces_are_marks;
    char_words_init(&u->words, spaces_are_marks);
    u->byte_fallback = m->byte_fallback;
    u->unknown_id = m->unknown_id;
    model_byte_ids(m, u->byte_ids);
    if (load_scores(u, m, err) && load_trie(u, m, err))
        return u;
    unigram_free(u);
    return NULL;
}

void unigram_free(unigram *u)
{
    if (!u)
        return;
    double_array_free(&u->trie);
    free(u->scores);
    free(u);
}

const char_words *unigram_char_words(const unigram *u)
{
    return &u->words;
}

/* ---- From the pieces of a window to ids ---- */

static bool append_bytes(const unigram *u, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    if (!id_buffer_reserve(out, n_bytes * MODEL_MARK_BYTES))
        return false;
    for (size_t i = 0; i < n_bytes; i++) {
        const bool is_mark = text[i] == ' ' && u->trie.spaces_are_marks;
        const uint8_t *bytes = is_mark ? (const uint8_t *)MODEL_MARK : text + i;
        for (size_t k = 0; k < (is_mark ? MODEL_MARK_BYTES : 1); k++)
            out->ids[out->n++] = u->byte_ids[bytes[k]];
    }
    return true;
}

/* Returns the token with exactly this text. */
static uint32_t find_piece(const unigram *u, const uint8_t *text, size_t n_bytes)
{
    uint32_t id;
    return double_array_find(&u->trie, text, n_bytes, &id) ? id : MODEL_NO_ID;
}

/* HuggingFace looks up a whole run of unknown characters before it uses its bytes. */
static bool end_run(const unigram *u, unigram_state *state, const uint8_t *end, id_buffer *out)
{
    const uint8_t *run = state->unknown;
    state->unknown = NULL;
    if (!run || u->single)
        return true;
    const size_t n_bytes = (size_t)(end - run);
    const uint32_t id = n_bytes <= u->longest ? find_piece(u, run, n_bytes) : MODEL_NO_ID;
    if (id == MODEL_NO_ID && u->byte_fallback)
        return append_bytes(u, run, n_bytes, out);
    return id_buffer_append(out, id == MODEL_NO_ID ? u->unknown_id : id);
}

static bool append_piece(const unigram *u, unigram_state *state, const uint8_t *text, step piece,
                         id_buffer *out)
{
    if (piece.id != MODEL_NO_ID && piece.id != u->unknown_id)
        return (!state->unknown || end_run(u, state, text, out)) && id_buffer_append(out, piece.id);
    if (u->single && u->byte_fallback)
        return append_bytes(u, text, piece.length, out);
    if (state->unknown)
        return true;
    state->unknown = text;
    return !u->single || id_buffer_append(out, u->unknown_id);
}

/* Turns the steps to places into those from places, and appends the ids. */
static bool append_window(unigram_workspace *s, unigram_state *state, const uint8_t *text,
                          size_t n_bytes, id_buffer *out)
{
    step next = n_bytes > 0 ? s->steps[n_bytes] : (step){0};
    for (size_t at = n_bytes; at > 0;) {
        at -= next.length;
        const step here = s->steps[at];
        s->steps[at] = next;
        next = here;
    }
    for (size_t at = 0; at < n_bytes; at += s->steps[at].length)
        if (!append_piece(s->u, state, text + at, s->steps[at], out))
            return false;
    return true;
}

/* ---- The search ---- */

/* Places are offsets from the start of the part; the window is the text whose ids were not appended
 * yet. */
typedef struct search {
    unigram_workspace *s;
    const uint8_t *text;
    size_t n_bytes;
    size_t window;   /* its start */
    size_t frontier; /* the last place where a piece ends */
    size_t cleared;  /* the last place that has a step, even if it is none */
} search;

#define GIVE_OUT_AFTER 512 /* bytes of a window */

/* Makes steps to all places that a piece may reach. */
static inline bool clear_places(search *w, size_t from)
{
    unigram_workspace *s = w->s;
    const size_t left = w->n_bytes - from, most = s->mask + 1;
    const size_t last = from + (left < most ? left : most);
    if (last == w->cleared || w->cleared - from >= s->u->longest)
        return true;
    if (!array_reserve(&s->steps, &s->capacity, last - w->window + 1, sizeof *s->steps))
        return false;
    memset(&s->steps[w->cleared - w->window + 1], 0, (last - w->cleared) * sizeof *s->steps);
    w->cleared = last;
    return true;
}

static size_t length_of_character(uint8_t first)
{
    return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* A piece leads from `from` with this score. Of equal scores the first one stays. */
static inline void try_piece(search *w, size_t from, step piece, double score)
{
    unigram_workspace *s = w->s;
    const size_t to = from + piece.length;
    step *best = &s->steps[to - w->window];
    double *best_score = &s->scores[to & s->mask];
    if (best->length == 0 || score > *best_score) {
        *best = piece;
        *best_score = score;
    }
}

static void take_off(search *w, size_t from, double offset)
{
    for (size_t i = from; i <= w->frontier; i++) {
        double *score = &w->s->scores[i & w->s->mask];
        if (i == from || w->s->steps[i - w->window].length != 0)
            *score = sum_of(true, *score, -offset);
    }
}

/* Tries all pieces that begin at one character. Returns its length. */
static inline size_t try_pieces(search *w, size_t from, bool single)
{
    const unigram *u = w->s->u;
    const double before = w->s->scores[from & w->s->mask];
    const size_t left = w->n_bytes - from;
    const size_t character = length_of_character(w->text[from]);
    const size_t one = character < left ? character : left;
    uint32_t state = double_array_root(&u->trie), longest = 0;
    bool has_one = false, has_value;
    for (size_t i = 0;
         i < left && double_array_follow(&u->trie, &state, w->text[from + i], &has_value); i++) {
        if (!has_value)
            continue;
        longest = (uint32_t)i + 1;
        has_one |= longest == one;
        const uint32_t id = double_array_value(&u->trie, state);
        try_piece(w, from, (step){id, longest}, sum_of(single, u->scores[id], before));
    }
    if (!has_one)
        try_piece(w, from, (step){MODEL_NO_ID, (uint32_t)one},
                  sum_of(single, u->unknown_score, before));
    if (longest < one)
        longest = (uint32_t)one;
    if (w->frontier < from + longest)
        w->frontier = from + longest;
    return one;
}

static inline bool encode_search(search *w, unigram_state *state, bool single, id_buffer *out)
{
    unigram_workspace *s = w->s;
    s->scores[0] = state->score;
    for (size_t at = 0; at < w->n_bytes;) {
        if (at == w->frontier && at - w->window >= GIVE_OUT_AFTER) {
            if (!append_window(s, state, w->text + w->window, at - w->window, out))
                return false;
            w->window = w->cleared = at;
        }
        if (!clear_places(w, at))
            return false;
        const double here = s->scores[at & s->mask];
        if (single && fabs(here) > RESET_ABOVE)
            take_off(w, at, here);
        at += try_pieces(w, at, single);
    }
    state->score = s->scores[w->n_bytes & s->mask];
    return append_window(s, state, w->text + w->window, w->n_bytes - w->window, out);
}

bool unigram_word(unigram_workspace *s, const uint8_t *text, size_t n_bytes, id_buffer *out)
{
    search w = {.s = s, .text = text, .n_bytes = n_bytes};
    return s->u->single ? encode_search(&w, &s->state, true, out)
                        : encode_search(&w, &s->state, false, out);
}

/* ---- Parts whose ids never depend on the text before ---- */

static double usual_limit(const unigram *u)
{
    return u->single ? RESET_ABOVE - MAX_FIXED_SCORE : MAX_DOUBLE_SCORE;
}

/* The best path to a place, and the best of the other paths. */
typedef struct place {
    double score, other;
    step last;
} place;

static inline void try_place(place *to, step piece, double score)
{
    if (to->last.length == 0 || score > to->score) {
        to->other = to->last.length == 0 ? -INFINITY : to->score;
        to->score = score;
        to->last = piece;
    } else if (score > to->other) {
        to->other = score;
    }
}

static void try_places(const unigram *u, const uint8_t *text, size_t left, place *here)
{
    const size_t character = length_of_character(text[0]);
    const size_t one = character < left ? character : left;
    uint32_t state = double_array_root(&u->trie);
    bool has_one = false, has_value;
    for (size_t i = 0; i < left && double_array_follow(&u->trie, &state, text[i], &has_value);
         i++) {
        if (!has_value)
            continue;
        const uint32_t id = double_array_value(&u->trie, state);
        has_one |= i + 1 == one;
        try_place(&here[i + 1], (step){id, (uint32_t)i + 1}, here->score + u->scores[id]);
    }
    if (!has_one)
        try_place(&here[one], (step){MODEL_NO_ID, (uint32_t)one}, here->score + u->unknown_score);
}

/* A sum of n scores, after any state, is off by at most n errors: if the best path leads by more
 * than two such sums at each of its places, it always wins there. */
static bool is_clear(const unigram *u, const place *places, size_t n_bytes)
{
    const double error = u->single ? FLOAT_ERROR : DOUBLE_ERROR;
    for (size_t at = n_bytes; at > 0; at -= places[at].last.length) {
        const double lead = places[at].score - places[at].other;
        const uint32_t id = places[at].last.id;
        if (id == MODEL_NO_ID || id == u->unknown_id || !(lead > 2 * error * (double)(at + 1)))
            return false;
    }
    return true;
}

/* Appends the ids of a part if they are the same after any state whose score, without its sign, is
 * less than usual_limit. *fixed: they are. false: out of memory. */
static bool encode_fixed(unigram_workspace *s, const uint8_t *text, size_t n_bytes, bool *fixed,
                         id_buffer *out)
{
    const unigram *u = s->u;
    place places[MAX_FIXED_BYTES + 1];
    size_t n_ids = 0;
    *fixed = false;
    if (n_bytes == 0 || n_bytes > MAX_FIXED_BYTES ||
        (double)n_bytes * u->largest >= MAX_FIXED_SCORE)
        return true;
    memset(places, 0, (n_bytes + 1) * sizeof *places);
    for (size_t at = 0; at < n_bytes; at += length_of_character(text[at]))
        try_places(u, text + at, n_bytes - at, &places[at]);
    if (!is_clear(u, places, n_bytes))
        return true;
    for (size_t at = n_bytes; at > 0; at -= places[at].last.length)
        n_ids++;
    if (!id_buffer_reserve(out, n_ids))
        return false;
    *fixed = true;
    out->n += n_ids;
    uint32_t *to = out->ids + out->n;
    for (size_t at = n_bytes; at > 0; at -= places[at].last.length)
        *--to = places[at].last.id;
    return true;
}

/* ---- Sentences: with a cache of words ----
 *
 * The cache gives the ids of a word, with the first one marked, or OPEN for a word whose ids depend
 * on the text before it. So the ids of many words come at once; then their scores are added up, one
 * addition for each id, and the open words are encoded in their places. */

#define WORD_BEGINS ((uint32_t)1 << 20)
#define OPEN (WORD_BEGINS - 1)

static bool encode_word(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    unigram_workspace *s = context;
    const size_t first = out->n;
    bool fixed;
    if (!encode_fixed(s, word, n_bytes, &fixed, out))
        return false;
    if (!fixed)
        return id_buffer_append(out, WORD_BEGINS | OPEN);
    out->ids[first] |= WORD_BEGINS;
    return true;
}

unigram_workspace *unigram_workspace_new(const unigram *u, size_t cache_bytes)
{
    unigram_workspace *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->u = u;
    s->mask = MAX_FIXED_BYTES * 2 - 1;
    while (s->mask <= u->longest)
        s->mask = s->mask * 2 + 1;
    s->scores = malloc((s->mask + 1) * sizeof *s->scores);
    const bool cached =
        cache_bytes > 0 && u->n_ids <= OPEN; /* else ids leave no bit for the mark */
    if (cached)
        s->cache = word_cache_new(cache_bytes, (word_source){encode_word, s}, SIMD_BEST);
    if (!s->scores || (cached && !s->cache)) {
        unigram_workspace_free(s);
        return NULL;
    }
    return s;
}

void unigram_workspace_free(unigram_workspace *s)
{
    if (!s)
        return;
    free(s->scores);
    free(s->steps);
    word_cache_free(s->cache);
    id_buffer_free(&s->found);
    free(s);
}

void unigram_workspace_free_large(unigram_workspace *s)
{
    array_free_large(&s->steps, &s->capacity, sizeof *s->steps);
    id_buffer_free_large(&s->found);
}

unigram_state *unigram_workspace_state(unigram_workspace *s)
{
    return &s->state;
}

void unigram_begin(unigram_workspace *s)
{
    s->state = (unigram_state){0};
}

bool unigram_end(unigram_workspace *s, const uint8_t *end, id_buffer *out)
{
    return s->u->single || end_run(s->u, &s->state, end, out);
}

/* ---- Many words ---- */

/* Finds the words of a bitmap by increasing numbers. */
typedef struct word_finder {
    const uint64_t *starts;
    size_t n_bytes;
    size_t block;  /* the next one */
    uint64_t bits; /* of the block before it, from word number `next` on */
    size_t next;
} word_finder;

static size_t start_of(word_finder *f, size_t number)
{
    const size_t n_blocks = (f->n_bytes + 63) / 64;
    while (f->bits == 0 || f->next < number) {
        if (f->bits != 0) {
            f->bits &= f->bits - 1;
            f->next++;
        } else if (f->block == n_blocks) {
            return f->n_bytes;
        } else {
            f->bits = f->starts[f->block++];
        }
    }
    return (f->block - 1) * 64 + (size_t)__builtin_ctzll(f->bits);
}

static bool encode_open(unigram_workspace *s, word_finder *f, const uint8_t *text, size_t number,
                        id_buffer *out)
{
    const size_t start = start_of(f, number);
    const size_t end = start_of(f, number + 1);
    return unigram_word(s, text + start, end - start, out);
}

/* Ids of consecutive words, and the number of the next word. */
typedef struct found_ids {
    const uint32_t *at, *end;
    size_t word;
} found_ids;

/* Appends ids of words up to the first open one, or until the score is not usual. There is room for
 * them. */
static inline void append_usual(unigram_workspace *s, found_ids *found, bool single, id_buffer *out)
{
    const double *scores = s->u->scores, limit = usual_limit(s->u);
    double score = s->state.score;
    float sum = (float)score; /* of floats, as sum_of, without converting what waits for it */
    uint32_t *to = out->ids + out->n;
    for (; found->at < found->end; found->at++) {
        const uint32_t begins = *found->at / WORD_BEGINS, id = *found->at & OPEN;
        if (begins & ((id == OPEN) | !(fabs(single ? (double)sum : score) < limit)))
            break;
        found->word += begins;
        if (single)
            sum += (float)scores[id];
        else
            score += scores[id];
        *to++ = id;
    }
    s->state.score = single ? (double)sum : score;
    out->n = (size_t)(to - out->ids);
}

/* Ends a run of unknown characters if the next word has none. */
static bool end_unknown(unigram_workspace *s, word_finder *f, const uint8_t *text,
                        const found_ids *found, id_buffer *out)
{
    const bool usual = fabs(s->state.score) < usual_limit(s->u);
    if (!s->state.unknown || !usual || *found->at == (WORD_BEGINS | OPEN))
        return true;
    return end_run(s->u, &s->state, text + start_of(f, found->word), out);
}

static bool append_found(unigram_workspace *s, word_finder *f, const uint8_t *text, id_buffer *out)
{
    found_ids found = {s->found.ids, s->found.ids + s->found.n, 0};
    while (found.at < found.end) {
        if (!end_unknown(s, f, text, &found, out) ||
            !id_buffer_reserve(out, (size_t)(found.end - found.at)))
            return false;
        if (s->u->single)
            append_usual(s, &found, true, out);
        else
            append_usual(s, &found, false, out);
        if (found.at == found.end)
            break;
        if (!encode_open(s, f, text, found.word++, out))
            return false;
        do
            found.at++;
        while (found.at < found.end && *found.at < WORD_BEGINS);
    }
    return true;
}

bool unigram_words(unigram_workspace *s, const uint8_t *text, size_t n_bytes,
                   const uint64_t *starts, id_buffer *out)
{
    word_finder f = {.starts = starts, .n_bytes = n_bytes};
    s->found.n = 0;
    if (!s->cache)
        return unigram_word(s, text, n_bytes, out);
    return word_cache_encode(s->cache, text, n_bytes, starts, &s->found) &&
           append_found(s, &f, text, out);
}

/* pattern_cl100k.c - cl100k and its relatives: a family is a row of data.
 *
 * cl100k        cl100k, Llama 3, OLMo 2, Phi-4
 * nanochat      with one or two digits
 * qwen2         with single digits: Qwen 2 to 3
 * qwen35        with single digits and marks as letters: Qwen 3.5
 * seed          with single digits and no newlines after other characters: Seed-Coder
 * k2_horizon    with marks and joiners as letters: K2-Horizon
 * jais2         blanks in powers of two: Jais 2
 * cl100k_08     tiktoken's expression since 0.8, as Oniguruma reads it
 * cl100k_tiktoken  the same, as tiktoken reads it
 * o200k         words by case: o200k, harmony, Llama 4
 * tekken        o200k without contractions and with single digits: Mistral
 * kimi          o200k with runs of Chinese characters: Kimi K2 */
#include "tokenizer/split/pattern.h"
#include "tokenizer/split/splitter_scalar.h"
#include "tokenizer/split/splitter_vector.h"
#include "tokenizer/split/text_cut.h"

/* ---- The definition ---- */

typedef struct family {
    unsigned letters; /* what words are made of, after [^\r\n\p{L}\p{N}]? */
    unsigned others;  /* what runs of other characters are made of */
    bool joiners;     /* U+200C and U+200D are letters too */
    bool han;         /* \p{Han} is no letter; [\p{Han}]+ comes first */
    bool cased;       /* a word ends where lower case is followed by upper case */
    bool contraction_first, contraction_last;
    bool no_tail;  /* nothing, or else ... */
    bool slashes;  /* [\r\n/]*, or else [\r\n]* after other characters */
    bool trailing; /* blanks at the end are one word, with their newlines */
    bool powers;   /* blanks before a word in groups of 512, 256 ... 1 */
    int n_digits;  /* of a group; 0: any number */
} family;

static const family cl100k = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 3};
static const family cl100k_any_digits = {LETTERS, OTHERS, .contraction_first = true};
static const family nanochat = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 2};
static const family qwen2 = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 1};
static const family qwen35 = {LETTERS | MARKS, OTHERS & ~MARKS, .contraction_first = true,
                              .n_digits = 1};
static const family seed = {LETTERS, OTHERS, .contraction_first = true, .no_tail = true,
                            .n_digits = 1};
static const family k2_horizon = {LETTERS | MARKS, OTHERS, .joiners = true,
                                  .contraction_first = true, .n_digits = 3};
static const family jais2 = {LETTERS, OTHERS, .contraction_first = true, .powers = true,
                             .n_digits = 3};
static const family cl100k_08 = {LETTERS, OTHERS, .contraction_first = true, .trailing = true};
static const family cl100k_tiktoken = {LETTERS, OTHERS, .contraction_first = true, .trailing = true,
                                       .n_digits = 3};
static const family o200k = {LETTERS | MARKS,          OTHERS,          .cased = true,
                             .contraction_last = true, .slashes = true, .n_digits = 3};
static const family o200k_each_digit = {LETTERS | MARKS,          OTHERS,          .cased = true,
                                        .contraction_last = true, .slashes = true, .n_digits = 1};
static const family tekken = {LETTERS | MARKS, OTHERS, .cased = true, .slashes = true,
                              .n_digits = 1};
static const family kimi = {LETTERS | MARKS,          OTHERS,       .han = true, .cased = true,
                            .contraction_last = true, .n_digits = 3};

static bool is_joiner(uint32_t code_point)
{
    return code_point == 0x200C || code_point == 0x200D;
}

/* \p{Han} of Unicode 16. */
static bool is_han(uint32_t code_point)
{
    static const uint32_t ranges[][2] = {
        {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
        {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
        {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
        {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
        {0x30000, 0x3134A}, {0x31350, 0x323AF}};
    if (code_point >= 0x4E00 && code_point <= 0x9FFF)
        return true;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges && ranges[i][0] <= code_point; i++) {
        if (code_point <= ranges[i][1])
            return code_point != UINT32_MAX;
    }
    return false;
}

static bool is_letter_of(const family *f, character c, unsigned classes)
{
    return (is_of(c, classes) && !(f->han && is_han(c.code_point))) ||
           (f->joiners && is_joiner(c.code_point));
}

static size_t skip_letters(const view *v, const family *f, size_t i, unsigned classes)
{
    if (!f->han && !f->joiners)
        return skip_classes(v, i, classes);
    for (character c = char_at(v, i); is_letter_of(f, c, classes); c = char_at(v, i))
        i += c.n_bytes;
    return i;
}

/* [U]*[L]+ or, where that fails, [U]+[L]*. U and L are upper and lower case; caseless letters and
 * marks are in both. If no lower case letter follows the run of U, then [L]+ can only match a
 * caseless letter at its end: the word ends after the last one of the run. If there is none, the
 * second alternative takes the whole run. */
static size_t cased_end(const view *v, const family *f, size_t i)
{
    size_t after_caseless = i, start = i;
    character c = char_at(v, i);
    for (; is_letter_of(f, c, UPPER | CASELESS); c = char_at(v, i)) {
        i += c.n_bytes;
        if (is_of(c, CASELESS))
            after_caseless = i;
    }
    if (is_of(c, LOWER))
        return skip_letters(v, f, i, LOWER | CASELESS);
    return after_caseless > start ? after_caseless : i;
}

static size_t letters_end(const view *v, const family *f, size_t i)
{
    size_t end = f->cased ? cased_end(v, f, i) : skip_letters(v, f, i, f->letters);
    return f->contraction_last ? end + contraction_at(v, end, true) : end;
}

static size_t others_end(const view *v, const family *f, size_t i)
{
    const size_t end = skip_classes(v, i, f->others);
    return f->no_tail ? end : skip_newlines(v, end, f->slashes);
}

/* \s{512}(?!\S)|\s{256}(?!\S)|... of n blanks: the largest that leaves one for the word. */
static size_t power_of_blanks(size_t n, bool at_end)
{
    size_t size = 512;
    while (size > 1 && (size > n || (size == n && !at_end)))
        size /= 2;
    return size;
}

static size_t powers_end(view *v, size_t i)
{
    size_t n = 0, end = i;
    if (i >= v->no_newline_before) { /* else a long run would be searched again for each group */
        end = blanks_end(v, i, true);
        if (is_newline(char_at(v, end - 1)))
            return end;
        v->no_newline_before = end;
    }
    character c = char_at(v, i);
    for (end = i; n <= 512 && is_of(c, BLANKS); c = char_at(v, end), n++)
        end += c.n_bytes;
    for (n = power_of_blanks(n, end == v->n_bytes); n > 0; n--)
        i += char_at(v, i).n_bytes;
    return i;
}

static size_t family_blanks_end(view *v, const family *f, size_t i)
{
    if (f->trailing && skip_classes(v, i, BLANKS) == v->n_bytes)
        return v->n_bytes;
    return f->powers ? powers_end(v, i) : blanks_end(v, i, true);
}

static size_t family_end(view *v, const family *f, size_t i)
{
    character c = char_at(v, i);
    if (f->han && is_han(c.code_point)) {
        for (; is_han(c.code_point); c = char_at(v, i))
            i += c.n_bytes;
        return i;
    }
    if (f->contraction_first && c.code_point == '\'') {
        size_t contraction = contraction_at(v, i, true);
        if (contraction > 0)
            return i + contraction;
    }
    if (is_letter_of(f, c, f->letters))
        return letters_end(v, f, i);
    if (is_of(c, NUMBERS))
        return digits_end(v, i, f->n_digits);
    character next = char_at(v, i + c.n_bytes);
    if (!is_newline(c) && is_letter_of(f, next, f->letters))
        return letters_end(v, f, i + c.n_bytes);
    if (is_of(c, f->others) || (c.code_point == ' ' && is_of(next, f->others)))
        return others_end(v, f, i + c.n_bytes);
    return family_blanks_end(v, f, i);
}

/* ---- The same by masks ---- */

/* A single character that is not a letter, number or newline joins the letters after it if a word
 * starts at it. That is the first of a run of others, or any blank. Returns where words of others
 * start. */
SPLITTER_INLINE uint64_t other_words(carry *c, const block *b, uint64_t other, uint64_t *absorbed,
                                     const pieces *p)
{
    uint64_t before = next_to(other | b->space, c->other | c->space) & ~p->begin;
    uint64_t first = other & b->lead & ~before;
    uint64_t first_bytes = all_bytes(first, c->other_first, b);
    uint64_t absorbing = first_bytes | (b->blank & ~b->newline);
    *absorbed = next_to(absorbing, c->absorbed) & ~p->begin;
    c->other = other;
    c->other_first = first_bytes;
    c->absorbed = absorbing;
    c->space = b->space;
    return first;
}

SPLITTER_INLINE uint64_t number_words(carry *c, const block *b, int n_digits, const pieces *p)
{
    uint64_t starts = b->number & b->lead;
    if (n_digits != 1)
        starts = digit_groups(c, b, starts & (~next_to(b->number, c->number) | p->begin),
                              (unsigned)n_digits);
    c->number = b->number;
    return starts;
}

/* Whether the text ends with blanks, in one of the two blocks. */
SPLITTER_INLINE bool ends_with_blank(const block *b, const block *next)
{
    if (next->exists == ~(uint64_t)0)
        return false;
    return next->exists ? next->blank & (next->exists ^ next->exists >> 1)
                        : b->blank & (b->exists ^ b->exists >> 1);
}

/* Groups of blanks before a word, for blanks that start a word: 512, 256 ... 1. Shorter runs than
 * three are split as without. */
SPLITTER_INLINE uint64_t powers(carry *c, const block *b, const block *next, uint64_t starts)
{
    uint64_t blank = b->blank & ~b->newline, blank_after = next->blank & ~next->newline;
    uint64_t found = c->groups;
    c->groups = 0;
    uint64_t three = blank & ahead(blank, blank_after, 1) & ahead(blank, blank_after, 2);
    for (uint64_t left = starts & three; left != 0; left &= left - 1) {
        unsigned i = lowest(left), end = run_end(blank, blank_after, i);
        if (end == 128 || b->wide & b->blank || next->wide & next->blank) {
            c->undecided = true;
            break;
        }
        if (has_bit(b->newline, next->newline, end))
            continue;
        const bool at_end = !has_bit(b->exists, next->exists, end);
        while (i < end) {
            if (i < 64)
                found |= bit(i);
            else
                c->groups |= bit(i - 64);
            unsigned size = 64;
            while (size > 1 && (size > end - i || (size == end - i && !at_end)))
                size /= 2;
            i += size;
        }
    }
    return found;
}

SPLITTER_INLINE uint64_t cl100k_pieces(const family *f, carry *c, const block *b, const block *next,
                                       const pieces *p)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t other = visible & ~(b->letter | b->number), absorbed, joined, tail = 0;
    if (!f->no_tail)
        tail = through(next_to(other, c->other) | (c->tail >> 63), b->newline & ~p->begin);
    uint64_t starts = other_words(c, b, other, &absorbed, p);
    uint64_t apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    starts |= b->letter & ~(next_to(b->letter, c->letter) & ~p->begin) & ~absorbed;
    starts |= number_words(c, b, f->n_digits, p);
    uint64_t last =
        followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    uint64_t blanks = (last & ~b->newline) | blank_words(c, b, next, tail, p);
    if (f->powers)
        blanks |= powers(c, b, next, blanks);
    c->undecided |= f->trailing && ends_with_blank(b, next);
    starts |= blanks | first_contractions(c, b, apostrophes, true, &joined);
    c->letter = b->letter;
    /* `joined` is not used: the letters of contractions are in `absorbed`. */
    return (starts | p->begin) & b->lead;
}

SPLITTER_INLINE uint64_t cl100k_like(const family *f, carry *c, const block *b, const block *next)
{
    return cl100k_pieces(f, c, b, next, &(pieces){0});
}

/* Marks are letters, except inside a word of others. Such a word starts where a second other
 * character follows the first, or where the first follows a space; it continues through marks. */
SPLITTER_INLINE uint64_t marks_as_others(carry *c, const block *b, uint64_t other, uint64_t mark,
                                         const pieces *p)
{
    uint64_t marks_before = c->mark_as_other;
    c->mark_as_other = 0;
    if ((mark & ~p->begin & next_to(other, c->other | marks_before)) == 0)
        return 0;
    uint64_t second = other & b->lead & next_to(other | b->space, c->other | c->space) & ~p->begin;
    uint64_t going_on = ((c->other & ~c->other_first) | marks_before) >> 63;
    c->mark_as_other = mark & through(second | going_on, (other | mark) & ~p->begin);
    return c->mark_as_other;
}

/* Where [U]*[L]+ splits letters, with caseless letters in both sets: at an upper case letter after
 * a lower case one, with only caseless letters between them; and at a run of upper case letters
 * that ends the letters, if a caseless letter precedes it. */
SPLITTER_INLINE uint64_t cased_words(carry *c, const block *b, const block *next, uint64_t letter,
                                     const pieces *p)
{
    uint64_t caseless = letter & (b->caseless | b->mark);
    uint64_t lower = letter & ~(b->upper | caseless);
    uint64_t seeds = next_to(lower, c->lower_word);
    uint64_t lower_word = lower | through(seeds, caseless & ~p->begin);
    uint64_t starts = b->upper & next_to(lower_word, c->lower_word);
    uint64_t candidates = b->upper & b->lead & next_to(caseless, c->caseless) & ~starts & ~p->begin;
    uint64_t letter_after = next->letter | next->mark;
    for (; candidates != 0; candidates &= candidates - 1) {
        unsigned end = run_end(b->upper, next->upper, lowest(candidates));
        c->undecided |=
            end == 128 || (p->apart && end >= 64 && has_bit(0, next->caseless | next->mark, end));
        if (end < 128 && !has_bit(letter & ~p->begin, letter_after, end))
            starts |= candidates & -candidates;
    }
    c->lower_word = lower_word;
    c->caseless = caseless;
    return starts;
}

/* For each apostrophe after a word of letters. A word starts after the contraction. If an
 * apostrophe is next, it starts that word and is not part of a contraction. */
SPLITTER_INLINE uint64_t last_contractions(carry *c, const block *b, const block *next,
                                           uint64_t apostrophes, uint64_t *joined)
{
    uint64_t forced = c->forced;
    *joined = c->joined;
    c->forced = c->joined = 0;
    for (; apostrophes != 0; apostrophes &= apostrophes - 1) {
        unsigned i = lowest(apostrophes);
        unsigned n = (unsigned)split_contraction(b->bytes + i, 3, true);
        if (n == 0 || forced >> i & 1)
            continue;
        join(c, i, n, joined, &forced);
        /* The word after it starts with a caseless letter, but `lower_word` is still set. */
        c->undecided |= has_bit(b->caseless | b->mark, next->caseless | next->mark, i + n);
    }
    return forced;
}

SPLITTER_INLINE uint64_t o200k_pieces(const family *f, carry *c, const block *b, const block *next,
                                      const pieces *p)
{
    uint64_t visible = b->exists & ~b->blank, visible_after = next->exists & ~next->blank;
    uint64_t letters = b->letter, mark = b->mark, slash = f->slashes ? b->slash : 0, han = 0;
    if (f->joiners)
        mark |= found_bytes(&c->found, b, is_joiner);
    if (f->han) {
        uint64_t han_before = c->found;
        han = found_bytes(&c->found, b, is_han);
        c->undecided |= (han & ~b->letter) != 0;
        letters &= ~han;
        han &= ~next_to(han, han_before);
    }
    uint64_t other = visible & ~(b->letter | mark | b->number), absorbed, joined = 0;
    uint64_t marks = marks_as_others(c, b, other, mark, p);
    uint64_t letter = letters | (mark & ~marks);
    other |= marks;
    uint64_t tail = through((b->newline & next_to(other, c->other)) | (c->tail >> 63),
                            (b->newline | slash) & ~p->begin);
    c->undecided |= marks != 0 && (tail & slash) != 0;
    other &= ~tail;
    uint64_t starts = other_words(c, b, other, &absorbed, p);
    uint64_t first_apostrophes = starts & b->apostrophe & ahead(b->letter, next->letter, 1);
    uint64_t apostrophes = b->apostrophe & next_to(letter, c->letter) & ~p->begin;
    starts |= (letter & ~(next_to(letter, c->letter) & ~p->begin) & ~absorbed) | han;
    if (f->cased)
        starts |= cased_words(c, b, next, letter, p);
    starts |= f->n_digits == 0 ? p->numbers : number_words(c, b, f->n_digits, p);
    uint64_t last =
        followed_by(b->blank, visible & ~p->begin, visible_after & ~p->begin_after, b, next);
    starts |= (last & ~b->newline) | blank_words(c, b, next, tail, p);
    uint64_t forced = 0;
    if (f->contraction_last)
        forced = last_contractions(c, b, next, apostrophes, &joined);
    if (f->contraction_first) /* their letters are in `absorbed` */
        starts |= first_contractions(c, b, first_apostrophes, true, &joined), joined = 0;
    c->letter = letter;
    return ((starts & ~joined) | forced | p->begin) & b->lead;
}

SPLITTER_INLINE uint64_t o200k_like(const family *f, carry *c, const block *b, const block *next)
{
    return o200k_pieces(f, c, b, next, &(pieces){.apart = f->han});
}

#define WORDS(x, like)                                                                             \
    SPLITTER_INLINE uint64_t x##_words(carry *c, const block *b, const block *next)                \
    {                                                                                              \
        return like(&x, c, b, next);                                                               \
    }
WORDS(cl100k, cl100k_like)
WORDS(cl100k_any_digits, cl100k_like)
WORDS(cl100k_08, cl100k_like)
WORDS(cl100k_tiktoken, cl100k_like)
WORDS(nanochat, cl100k_like)
WORDS(qwen2, cl100k_like)
WORDS(qwen35, cl100k_like) /* WANT_MARKS_AS_LETTERS puts the marks among the letters */
WORDS(seed, cl100k_like)
WORDS(jais2, cl100k_like)
WORDS(k2_horizon, o200k_like)
WORDS(o200k, o200k_like)
WORDS(o200k_each_digit, o200k_like)
WORDS(tekken, o200k_like)
WORDS(kimi, o200k_like)

/* ---- After other splits ---- */

/* The edges of runs of a class. */
SPLITTER_INLINE uint64_t edges(uint64_t mask, uint64_t mask_before)
{
    return mask ^ next_to(mask, mask_before);
}

SPLITTER_INLINE uint64_t minicpm5_words(carry *c, const block *b, const block *next)
{
    uint64_t number_before = c->number;
    pieces p = {edges(b->number, number_before), next->number, 0, false};
    p.begin |= number_words(c, b, 3, &(pieces){0});
    p.begin &= b->lead;
    c->number = number_before;
    return cl100k_pieces(&cl100k_any_digits, c, b, next, &p);
}

SPLITTER_INLINE uint64_t ax_k2_words(carry *c, const block *b, const block *next)
{
    const pieces p = {edges(b->cjk, c->cjk) & b->lead, next->cjk, 0, false};
    c->cjk = b->cjk;
    return cl100k_pieces(&qwen2, c, b, next, &p);
}

/* Newlines that are \r?\n: all but a \r before something else. */
SPLITTER_INLINE uint64_t line_ends(const block *b)
{
    uint64_t found = b->newline;
    for (uint64_t left = b->newline; left != 0; left &= left - 1) {
        const uint8_t *at = b->bytes + lowest(left);
        if (at[0] == '\r' && at[1] != '\n')
            found &= ~(left & -left);
    }
    return found;
}

SPLITTER_INLINE uint64_t laguna_words(carry *c, const block *b, const block *next)
{
    const uint64_t ends = line_ends(b);
    const pieces p = {ends & ~next_to(ends, c->line_ends), next->newline ? line_ends(next) : 0, 0,
                      false};
    c->line_ends = ends;
    return cl100k_pieces(&qwen2, c, b, next, &p);
}

/* The character at byte i of two blocks. */
SPLITTER_INLINE character block_char(const block *b, const block *next, unsigned i)
{
    uint32_t code_point = UINT32_MAX;
    if (!has_bit(b->exists, next->exists, i) ||
        utf8_decode(i < 64 ? b->bytes + i : next->bytes + (i - 64), 4, &code_point) == 0)
        return (character){UINT32_MAX, CLASS_END, 1};
    return (character){code_point, class_of(code_point), 1};
}

/* A family whose digits are grouped here. */
static const family o200k_any_digits = {LETTERS | MARKS, OTHERS, .cased = true,
                                        .contraction_last = true, .slashes = true};

/* Runs of digits that no word character follows are grouped from their right, and are pieces. */
SPLITTER_INLINE uint64_t tiny_aya_words(carry *c, const block *b, const block *next)
{
    pieces p = {.numbers = c->groups};
    c->groups = 0;
    c->undecided |= (b->number & b->wide) != 0;
    uint64_t runs = b->number & ~next_to(b->number, c->number) & ~b->wide;
    for (; runs != 0; runs &= runs - 1) {
        unsigned i = lowest(runs), end = run_end(b->number, next->number, i);
        if (end == 128 || (next->number & next->wide) != 0) {
            c->undecided = true;
            break;
        }
        const bool from_right = !split_is_word(block_char(b, next, end));
        if (from_right)
            p.begin |= bit(i);
        p.numbers |= bit(i);
        i += from_right && (end - i) % 3 ? (end - i) % 3 : 3;
        for (; i < end; i += 3) {
            if (i < 64)
                p.numbers |= bit(i);
            else
                c->groups |= bit(i - 64);
        }
    }
    const unsigned first = lowest(~(next->wide & ~next->lead)); /* after a blank of the block */
    if (b->blank >> 63 && next->number >> first & 1) {
        const unsigned end = run_end(next->number, 0, first);
        c->undecided |= end >= 64 || (next->number & next->wide) != 0;
        if (end < 64 && !split_is_word(block_char(next, next, end)))
            p.begin_after = bit(first);
    }
    c->number = b->number;
    return o200k_pieces(&o200k_any_digits, c, b, next, &p);
}

/* The edges of runs of the same one of Youtu's classes. */
SPLITTER_INLINE uint64_t youtu_words(carry *c, const block *b, const block *next)
{
    uint64_t found[SPLIT_YOUTU_CLASSES + 1] = {0};
    pieces p = {.apart = true};
    for (uint64_t left = b->wide & b->lead; left != 0; left &= left - 1) {
        const unsigned i = lowest(left);
        uint32_t code_point = 0;
        utf8_decode(b->bytes + i, 4, &code_point);
        found[split_youtu_class(code_point)] |= bit(i);
    }
    for (int k = 1; k <= SPLIT_YOUTU_CLASSES; k++) {
        const uint64_t all = found[k] | through(next_to(found[k], c->youtu[k]), b->wide & ~b->lead);
        p.begin |= edges(all, c->youtu[k]) & b->lead;
        c->youtu[k] = all;
    }
    for (uint64_t left = next->wide & next->lead & 0xF; left != 0; left &= left - 1) {
        uint32_t code_point = 0;
        utf8_decode(next->bytes + lowest(left), 4, &code_point);
        p.begin_after |= split_youtu_class(code_point) ? left & -left : 0;
    }
    return o200k_pieces(&o200k_each_digit, c, b, next, &p);
}

SPLIT_WALKERS(youtu, WANT_CASE)
SPLIT_WALKERS(tiny_aya, WANT_CASE)
SPLIT_WALKERS(minicpm5, 0)
SPLIT_WALKERS(ax_k2, WANT_CJK)
SPLIT_WALKERS(laguna, 0)

SPLIT_WALKERS(cl100k, 0)
SPLIT_WALKERS(cl100k_any_digits, 0)
SPLIT_WALKERS(cl100k_08, 0)
SPLIT_WALKERS(cl100k_tiktoken, 0)
SPLIT_WALKERS(nanochat, 0)
SPLIT_WALKERS(qwen2, 0)
SPLIT_WALKERS(qwen35, WANT_MARKS_AS_LETTERS)
SPLIT_WALKERS(seed, 0)
SPLIT_WALKERS(jais2, 0)
SPLIT_WALKERS(k2_horizon, WANT_CASE)
SPLIT_WALKERS(o200k, WANT_CASE)
SPLIT_WALKERS(o200k_each_digit, WANT_CASE)
SPLIT_WALKERS(tekken, WANT_CASE)
SPLIT_WALKERS(kimi, WANT_CASE)

/* ---- The rows ---- */

/* - `'(?i:[sdmt]|ll|ve|re)` is `(?i:'s|'t|'re|'ve|'m|'ll|'d)`: both know U+017F as an s.
 *   `'[sS]|...` does not, so it is not known.
 * - Possessive forms are the same: what follows the run never starts with a character of the run,
 *   so backtracking cannot help. (`\p{N}{1,3}+` is not known: in Oniguruma it repeats the group.)
 * - `\s*[\r\n]` ends at the last newline of the blanks, as `\s*[\r\n]+` does. */
#define REGEX_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d) '(?i:[sdmt]|ll|ve|re)"
#define REGEX_LETTERS                                                                              \
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+ [^\\r\\n\\p{L}\\p{N}]?+\\p{L}+ [^\\r\\n\\p{L}\\p{N}]?+\\p{L}++"
#define REGEX_OTHERS                                                                               \
    "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]* \\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]* "                      \
    "\\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+"
#define REGEX_NEWLINES "\\s*[\\r\\n]+ \\s*[\\r\\n]"

#define REGEX_BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define REGEX_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define REGEX_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define REGEX_UPPER_BUT_HAN "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define REGEX_LOWER_BUT_HAN "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define REGEX_SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define REGEX_OTHERS_AND_SLASH "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

/* What the stages of this file share. */
#define FAMILY(x)                                                                                  \
    .name = #x, .everything = true, .cuts = CUT_ANYWHERE, .match = x##_match, SPLIT_VECTOR(x)

#define MATCH(x)                                                                                   \
    static size_t x##_match(view *v, size_t i)                                                     \
    {                                                                                              \
        return family_end(v, &x, i);                                                               \
    }

MATCH(cl100k)
const split_stage stage_cl100k = {FAMILY(cl100k),
                                  .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}",
                                                   REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(cl100k_any_digits)
const split_stage stage_cl100k_any_digits = {
    FAMILY(cl100k_any_digits), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}+",
                                                REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(cl100k_08)
const split_stage stage_cl100k_08 = {
    FAMILY(cl100k_08), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}+",
                                        REGEX_OTHERS, "\\s++$", REGEX_NEWLINES, REGEX_BLANKS}};

/* For files of ranks. */
MATCH(cl100k_tiktoken)
const split_stage stage_cl100k_tiktoken = {FAMILY(cl100k_tiktoken)};

MATCH(nanochat)
const split_stage stage_nanochat = {
    FAMILY(nanochat), .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,2}",
                                       REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(qwen2)
const split_stage stage_qwen2 = {FAMILY(qwen2),
                                 .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}",
                                                  REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(qwen35)
const split_stage stage_qwen35 = {
    FAMILY(qwen35),
    .alternatives = {REGEX_CONTRACTIONS, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+", "\\p{N}",
                     "\\x20?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(seed)
const split_stage stage_seed = {FAMILY(seed),
                                .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1}",
                                                 "\\x20?[^\\s\\p{L}\\p{N}\\r\\n]+", REGEX_NEWLINES,
                                                 REGEX_BLANKS}};

MATCH(k2_horizon)
const split_stage stage_k2_horizon = {
    FAMILY(k2_horizon),
    .alternatives = {REGEX_CONTRACTIONS,
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\u200C|\\u200D)+ "
                     "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\\x{200C}|\\x{200D})+",
                     "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(jais2)
const split_stage stage_jais2 = {
    FAMILY(jais2),
    .alternatives = {REGEX_CONTRACTIONS, REGEX_LETTERS, "\\p{N}{1,3}", REGEX_OTHERS, REGEX_NEWLINES,
                     "\\s{512}(?!\\S)", "\\s{256}(?!\\S)", "\\s{128}(?!\\S)", "\\s{64}(?!\\S)",
                     "\\s{32}(?!\\S)", "\\s{16}(?!\\S)", "\\s{8}(?!\\S)", "\\s{4}(?!\\S)",
                     "\\s{1,2}(?!\\S)", "\\s{1}"}};

MATCH(o200k)
const split_stage stage_o200k = {
    FAMILY(o200k),
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}{1,3}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(o200k_each_digit)
const split_stage stage_o200k_each_digit = {
    FAMILY(o200k_each_digit),
    .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+" REGEX_SUFFIX,
                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*" REGEX_SUFFIX, "\\p{N}",
                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(tekken)
const split_stage stage_tekken = {
    FAMILY(tekken), .alternatives = {REGEX_BEFORE REGEX_UPPER "*" REGEX_LOWER "+",
                                     REGEX_BEFORE REGEX_UPPER "+" REGEX_LOWER "*", "\\p{N}",
                                     REGEX_OTHERS_AND_SLASH, REGEX_NEWLINES, REGEX_BLANKS}};

MATCH(kimi)
const split_stage stage_kimi = {
    FAMILY(kimi),
    .alternatives = {
        "[\\p{Han}]+", REGEX_BEFORE REGEX_UPPER_BUT_HAN "*" REGEX_LOWER_BUT_HAN "+" REGEX_SUFFIX,
        REGEX_BEFORE REGEX_UPPER_BUT_HAN "+" REGEX_LOWER_BUT_HAN "*" REGEX_SUFFIX, "\\p{N}{1,3}",
        "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", REGEX_NEWLINES, REGEX_BLANKS}};

const split_list list_minicpm5 = {"minicpm5", SPLIT_MINICPM5, SPLIT_VECTOR(minicpm5)};
const split_list list_ax_k2 = {"ax_k2", SPLIT_AX_K2, SPLIT_VECTOR(ax_k2)};
const split_list list_laguna = {"laguna", SPLIT_LAGUNA, SPLIT_VECTOR(laguna)};
const split_list list_tiny_aya = {"tiny_aya", SPLIT_TINY_AYA, SPLIT_VECTOR(tiny_aya)};
const split_list list_youtu = {"youtu_llm", SPLIT_YOUTU, SPLIT_VECTOR(youtu)};

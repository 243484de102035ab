#include "tokenizer/split/splitter_scalar.h"

#include <string.h>

#include "tokenizer/unicode/unicode.h"
#include "text/utf8.h"

/* Sets of classes. CLASS_END is in none that a pattern names, so that every loop over a set stops
 * at the end of the text. */
enum {
    CLASS_END = 15,
    UPPER = 1 << CLASS_UPPER,
    LOWER = 1 << CLASS_LOWER,
    CASELESS = 1 << CLASS_LETTER | 1 << CLASS_MARK,
    LETTERS = UPPER | LOWER | 1 << CLASS_LETTER,
    MARKS = 1 << CLASS_MARK,
    NUMBERS = 1 << CLASS_NUMBER,
    BLANKS = 1 << CLASS_SPACE,
    VISIBLE = 1 << CLASS_PUNCTUATION | 1 << CLASS_SYMBOL,
    OTHERS = VISIBLE | MARKS | 1 << CLASS_OTHER /* [^\s\p{L}\p{N}] */
};

/* Patterns that split in sequence see only a piece of the text: what is not of the piece reads as
 * the end of the text. */
typedef enum piece {
    WHOLE_TEXT,
    ONLY_CJK,
    NO_CJK_NO_NUMBERS,
    NO_NUMERIC,
    ONLY_PUNCTUATION,
    NO_PUNCTUATION
} piece;

typedef struct view {
    const uint8_t *text;
    size_t n_bytes;
    piece piece;
} view;

typedef struct character {
    uint32_t code_point;
    uint8_t class;
    uint8_t n_bytes;
} character;

/* ---- Characters ---- */

static inline uint8_t class_of(uint32_t code_point)
{
    return unicode_class_pages[unicode_class_index[code_point >> 7]][code_point & 127];
}

static character decode(const view *v, size_t i)
{
    uint32_t code_point;
    size_t n_bytes = utf8_decode(v->text + i, v->n_bytes - i, &code_point);
    if (n_bytes == 0)
        return (character){UINT32_MAX, CLASS_OTHER, 1};
    return (character){code_point, class_of(code_point), (uint8_t)n_bytes};
}

static bool is_cjk(uint32_t code_point)
{
    return (code_point >= 0x3040 && code_point <= 0x30FF) ||
           (code_point >= 0x4E00 && code_point <= 0x9FA5);
}

static bool is_numeric(uint32_t code_point)
{
    if (code_point < 0x80)
        return code_point >= '0' && code_point <= '9';
    return code_point != UINT32_MAX && unicode_hf_numeric(code_point);
}

static bool is_punctuation(uint32_t code_point)
{
    if (code_point < 0x80)
        return VISIBLE >> class_of(code_point) & 1;
    return code_point != UINT32_MAX && unicode_hf_punctuation(code_point);
}

static bool is_in_piece(piece p, const character *c)
{
    switch (p) {
    case WHOLE_TEXT:
        break;
    case ONLY_CJK:
        return is_cjk(c->code_point);
    case NO_CJK_NO_NUMBERS:
        return !is_cjk(c->code_point) && c->class != CLASS_NUMBER;
    case NO_NUMERIC:
        return !is_numeric(c->code_point);
    case ONLY_PUNCTUATION:
        return is_punctuation(c->code_point);
    case NO_PUNCTUATION:
        return !is_punctuation(c->code_point);
    }
    return true;
}

static inline character char_at(const view *v, size_t i)
{
    const character end = {UINT32_MAX, CLASS_END, 0};
    if (i >= v->n_bytes)
        return end;
    uint8_t byte = v->text[i];
    character c = byte < 0x80 ? (character){byte, class_of(byte), 1} : decode(v, i);
    return v->piece == WHOLE_TEXT || is_in_piece(v->piece, &c) ? c : end;
}

static bool is_of(character c, unsigned classes)
{
    return classes >> c.class & 1;
}

static bool is_newline(character c)
{
    return c.code_point == '\n' || c.code_point == '\r';
}

static size_t skip(const view *v, size_t i, unsigned classes)
{
    if (v->piece == WHOLE_TEXT) { /* in a hurry */
        while (i < v->n_bytes && v->text[i] < 0x80 && classes >> class_of(v->text[i]) & 1)
            i++;
    }
    for (character c = char_at(v, i); is_of(c, classes); c = char_at(v, i))
        i += c.n_bytes;
    return i;
}

/* ---- What several patterns have ---- */

/* Its letters are in every piece that holds the apostrophe, save in one of punctuation. */
static size_t contraction_at(const view *v, size_t i, bool any_case)
{
    if (i >= v->n_bytes || v->text[i] != '\'' || v->piece == ONLY_PUNCTUATION)
        return 0;
    return split_contraction(v->text + i, v->n_bytes - i, any_case);
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ with with_newlines, else \s+(?!\S)|\s+: the run of blanks to its last
 * newline; or but for its last blank, which the next word may begin with; or all. */
static size_t blanks_end(const view *v, size_t start, bool with_newlines)
{
    size_t i = start, last = start, after_newline = start;
    character c = char_at(v, i);
    for (; is_of(c, BLANKS); c = char_at(v, i)) {
        last = i;
        i += c.n_bytes;
        if (is_newline(c))
            after_newline = i;
    }
    if (with_newlines && after_newline > start)
        return after_newline;
    return c.class == CLASS_END || last == start ? i : last;
}

static size_t skip_newlines(const view *v, size_t i, bool slashes_too)
{
    character c = char_at(v, i);
    for (; is_newline(c) || (slashes_too && c.code_point == '/'); c = char_at(v, i))
        i++;
    return i;
}

/* ---- GPT-2 ---- */

static size_t gpt2_end(const view *v, size_t i)
{
    static const unsigned runs[] = {LETTERS, NUMBERS, OTHERS};
    character c = char_at(v, i);
    size_t contraction = contraction_at(v, i, false);
    if (contraction > 0)
        return i + contraction;
    size_t body = i + (c.code_point == ' ');
    c = char_at(v, body);
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        if (is_of(c, runs[k]))
            return skip(v, body + c.n_bytes, runs[k]);
    }
    return blanks_end(v, i, false);
}

/* ---- The family of cl100k ---- */

typedef struct family {
    unsigned letters; /* what words are made of, after [^\r\n\p{L}\p{N}]? */
    unsigned others;  /* what runs of other characters are made of */
    bool cased;       /* a word ends where lower case is followed by upper case */
    bool contraction_first, contraction_last;
    bool slashes; /* [\r\n/]* after other characters, not [\r\n]* */
    int n_digits;
} family;

static const family families[SPLIT_N_PATTERNS] = {
    [SPLIT_CL100K] = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 3},
    [SPLIT_QWEN2] = {LETTERS, OTHERS, .contraction_first = true, .n_digits = 1},
    [SPLIT_QWEN35] = {LETTERS | MARKS, OTHERS & ~MARKS, .contraction_first = true, .n_digits = 1},
    [SPLIT_O200K] = {LETTERS | MARKS, OTHERS, true, .contraction_last = true, .slashes = true,
                     .n_digits = 3},
    [SPLIT_TEKKEN] = {LETTERS | MARKS, OTHERS, true, .slashes = true, .n_digits = 1},
};

/* [upper-ish]*[lower-ish]+ or, where that fails, [upper-ish]+[lower-ish]*; caseless letters and
 * marks are both. Without a lower case letter after the first run the first part gives back what
 * follows its last caseless letter; without any of these it fails, and the second takes the run. */
static size_t cased_end(const view *v, size_t i)
{
    size_t after_caseless = i, start = i;
    character c = char_at(v, i);
    for (; is_of(c, UPPER | CASELESS); c = char_at(v, i)) {
        i += c.n_bytes;
        if (is_of(c, CASELESS))
            after_caseless = i;
    }
    if (is_of(c, LOWER))
        return skip(v, i, LOWER | CASELESS);
    return after_caseless > start ? after_caseless : i;
}

static size_t letters_end(const view *v, const family *f, size_t i)
{
    size_t end = f->cased ? cased_end(v, i) : skip(v, i, f->letters);
    return f->contraction_last ? end + contraction_at(v, end, true) : end;
}

static size_t digits_end(const view *v, size_t i, int n_digits)
{
    character c = char_at(v, i);
    for (int k = 0; k < n_digits && is_of(c, NUMBERS); k++) {
        i += c.n_bytes;
        c = char_at(v, i);
    }
    return i;
}

static size_t family_end(const view *v, const family *f, size_t i)
{
    character c = char_at(v, i);
    if (f->contraction_first && c.code_point == '\'') {
        size_t contraction = contraction_at(v, i, true);
        if (contraction > 0)
            return i + contraction;
    }
    if (is_of(c, f->letters))
        return letters_end(v, f, i);
    if (is_of(c, NUMBERS))
        return digits_end(v, i, f->n_digits);
    character next = char_at(v, i + c.n_bytes);
    if (!is_newline(c) && is_of(next, f->letters))
        return letters_end(v, f, i + c.n_bytes);
    if (is_of(c, f->others) || (c.code_point == ' ' && is_of(next, f->others)))
        return skip_newlines(v, skip(v, i + c.n_bytes, f->others), f->slashes);
    return blanks_end(v, i, true);
}

/* ---- DeepSeek ---- */

static bool is_ascii_letter(character c)
{
    uint32_t lower = c.code_point | 0x20;
    return lower >= 'a' && lower <= 'z';
}

/* The last of three splits, in a piece of the others. Only CLASS_OTHER may be left over; what is
 * makes one word up to the next match. */
static size_t deepseek_piece_end(const view *v, size_t i)
{
    character c = char_at(v, i), next = char_at(v, i + c.n_bytes);
    if (is_of(c, VISIBLE) && c.code_point < 0x80 && is_ascii_letter(next)) {
        for (i++; is_ascii_letter(next); next = char_at(v, i))
            i++;
        return i;
    }
    if (is_of(c, LETTERS | MARKS))
        return skip(v, i, LETTERS | MARKS);
    if (is_of(c, 1 << CLASS_OTHER | BLANKS) && !is_newline(c) && is_of(next, LETTERS | MARKS))
        return skip(v, i + c.n_bytes, LETTERS | MARKS);
    if (is_of(c, VISIBLE) || (c.code_point == ' ' && is_of(next, VISIBLE)))
        return skip_newlines(v, skip(v, i + c.n_bytes, VISIBLE), false);
    if (is_of(c, BLANKS))
        return blanks_end(v, i, true);
    size_t last = i;
    for (; is_of(c, 1 << CLASS_OTHER); c = char_at(v, i)) {
        last = i;
        i += c.n_bytes;
    }
    return is_of(c, LETTERS | MARKS) ? last : i;
}

static size_t deepseek_end(view *v, size_t i)
{
    character c = char_at(v, i);
    if (is_of(c, NUMBERS))
        return digits_end(v, i, 3);
    v->piece = is_cjk(c.code_point) ? ONLY_CJK : NO_CJK_NO_NUMBERS;
    return deepseek_piece_end(v, i);
}

/* ---- Falcon and StarCoder ---- */

static size_t starcoder_end(view *v, size_t i)
{
    character c = char_at(v, i);
    if (is_numeric(c.code_point))
        return i + c.n_bytes;
    v->piece = NO_NUMERIC;
    return gpt2_end(v, i);
}

static size_t falcon_end(view *v, size_t i)
{
    v->piece = is_punctuation(char_at(v, i).code_point) ? ONLY_PUNCTUATION : NO_PUNCTUATION;
    return gpt2_end(v, i);
}

/* Falcon looks for digits after bytes have become characters, one each. Besides 0-9 the bytes of
 * U+00B2, B3, B9, BC, BD and BE become those, and they are numeric. */
static bool is_falcon_digit(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || byte == 0xB2 || byte == 0xB3 || byte == 0xB9 ||
           (byte >= 0xBC && byte <= 0xBE);
}

static bool are_ascii_digits(const uint8_t *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
    }
    return true;
}

static void set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

/* The last two passes, inside one word: runs of digits, and [0-9][0-9][0-9] in them. */
static void split_falcon_word(const view *v, size_t start, size_t end, uint64_t *starts)
{
    const uint8_t *text = v->text;
    size_t i = start;
    while (i < end) {
        set_bit(starts, i);
        bool digits = is_falcon_digit(text[i]);
        size_t matched = i; /* up to here the run is split */
        for (; i < end && is_falcon_digit(text[i]) == digits; i++) {
            if (i < matched || end - i < 3 || !are_ascii_digits(text + i, 3))
                continue;
            set_bit(starts, i);
            matched = i + 3;
            if (matched < end && is_falcon_digit(text[matched]))
                set_bit(starts, matched);
        }
    }
}

/* ---- All ---- */

static size_t word_end(split_pattern p, view *v, size_t start)
{
    switch (p) {
    case SPLIT_GPT2:
        return gpt2_end(v, start);
    case SPLIT_CL100K:
    case SPLIT_QWEN2:
    case SPLIT_QWEN35:
    case SPLIT_O200K:
    case SPLIT_TEKKEN:
        return family_end(v, &families[p], start);
    case SPLIT_DEEPSEEK3:
        return deepseek_end(v, start);
    case SPLIT_FALCON:
        return falcon_end(v, start);
    case SPLIT_STARCODER:
        return starcoder_end(v, start);
    case SPLIT_NONE:
    case SPLIT_N_PATTERNS:
        break;
    }
    return v->n_bytes;
}

size_t split_word_end(split_pattern p, const uint8_t *text, size_t n_bytes, size_t start)
{
    view v = {text, n_bytes, WHOLE_TEXT};
    return word_end(p, &v, start);
}

void split_words_scalar(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts)
{
    memset(starts, 0, (n_bytes / 64 + 1) * sizeof *starts);
    for (size_t i = 0; i < n_bytes;) {
        view v = {text, n_bytes, WHOLE_TEXT};
        size_t end = word_end(p, &v, i);
        if (p == SPLIT_FALCON)
            split_falcon_word(&v, i, end, starts);
        else
            set_bit(starts, i);
        i = end;
    }
}

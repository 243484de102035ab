/* SPDX-License-Identifier: Apache-2.0 */
/* The text becomes a tree (expression_parse.c), the sets of characters in it a few symbols
 * (make_symbols), the tree a program of threads (emit), and the program an automaton (make_states).
 * A state is a list of threads in the order of their preference. A thread waits for the next
 * character, which also decides its look-ahead; one that matches ends those after it. So a
 * transition says where the threads go, and whether there is a match before the character. */
#include "tokenizer/split/expression.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/array.h"
#include "tokenizer/split/expression_tree.h"
#include "tokenizer/split/text_cursor.h"
#include "tokenizer/unicode/hf_tables.h"

enum {
    MAX_SYMBOLS = 64,
    MAX_STEPS = 4096,
    MAX_STATES = 8192,
    MAX_CELLS = 1 << 18, /* states times symbols */
    N_BUCKETS = 1024,
    WIDE = 0xFF,   /* of a byte that alone is not a character */
    FAR_BYTES = 32 /* a search that goes further after its last match is remembered */
};

struct expression {
    unsigned n_shared;
    uint8_t of_byte[2][256]; /* the symbol of the character; [1]: in ByteLevel's alphabet */
    /* Bytes that a match may begin with: bit `byte >> 4 & 7` of [..][byte >> 7][byte & 15]. */
    uint8_t begins[2][2][16];
    uint8_t of_invalid;
    bool invalid_is_alone; /* no character has its symbol */
    uint16_t page_index[N_PAGES];
    uint8_t (*pages)[128]; /* symbols of code points */
    uint32_t start, n_cells;
    uint32_t *cells; /* [row + symbol]: the next row, times two, plus one if there is a match */
};

typedef enum step_kind {
    STEP_MATCH,
    STEP_SET,  /* takes a character of `symbols` */
    STEP_LOOK, /* goes on before one of `symbols` */
    STEP_FORK  /* next, or else other */
} step_kind;

typedef struct step {
    step_kind kind;
    uint16_t next, other;
    uint64_t symbols;
} step;

typedef struct compiler {
    tree tree;
    uint32_t n_symbols, n_steps, n_states, n_threads;
    uint64_t set_symbols[MAX_SETS], signatures[MAX_SYMBOLS]; /* bit k: it is in sets[k] */
    step steps[MAX_STEPS];
    uint32_t seen[MAX_STEPS], taken[MAX_STEPS], round;
    uint32_t buckets[N_BUCKETS], next_state[MAX_STATES], first_thread[MAX_STATES + 1];
    uint16_t *threads;
    size_t thread_capacity;
} compiler;

/* ---- Symbols: characters that are in the same sets ---- */

/* Which of 128 code points are in the set. Page N_PAGES is a byte that is not UTF-8. */
static void find_members(const compiler *c, uint32_t i, uint32_t page, uint64_t found[2])
{
    const node *n = &c->tree.nodes[i];
    uint64_t other[2];
    found[0] = found[1] = 0;
    if (n->kind >= UNION)
        find_members(c, n->a, page, found);
    if (n->kind == UNION || n->kind == BOTH)
        find_members(c, n->b, page, other);
    if (n->kind == TABLE && n->a == OF_HF && page < N_PAGES) {
        memcpy(found, &unicode_hf_pages[unicode_hf_index[page]][2 * n->b], 2 * sizeof *found);
    } else if (n->kind == TABLE && page < N_PAGES) {
        const uint8_t *classes = n->a == OF_WORD ? unicode_word_pages[unicode_word_index[page]]
                                                 : unicode_class_pages[unicode_class_index[page]];
        for (uint32_t k = 0; k < 128; k++)
            found[k / 64] |= (uint64_t)(n->b >> classes[k] & 1) << k % 64;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t first = page * 128 + k * 64;
        if (n->kind == RANGE && n->a < first + 64 && n->b >= first) {
            const uint32_t from = n->a > first ? n->a - first : 0;
            const uint32_t last = n->b - first < 63 ? n->b - first : 63;
            found[k] = (UINT64_MAX >> (63 - last)) & (UINT64_MAX << from);
        }
        if (n->kind == UNION)
            found[k] |= other[k];
        if (n->kind == BOTH)
            found[k] &= other[k];
        if (n->kind == NOT)
            found[k] = ~found[k];
    }
}

static uint8_t find_symbol(compiler *c, uint64_t signature)
{
    uint32_t k = 1;
    while (k < c->n_symbols && c->signatures[k] != signature)
        k++;
    if (k == MAX_SYMBOLS)
        return (uint8_t)tree_fail(&c->tree, "too many kinds of characters");
    c->n_symbols += k == c->n_symbols;
    c->signatures[k] = signature;
    return (uint8_t)k;
}

static void paint_page(compiler *c, uint32_t page, uint8_t symbols[128])
{
    uint64_t members[MAX_SETS][2], changes[2] = {1, 1}; /* where a set begins or ends */
    for (uint32_t k = 0; k < c->tree.n_sets; k++) {
        find_members(c, c->tree.sets[k], page, members[k]);
        for (uint32_t half = 0; half < 2; half++)
            changes[half] |= members[k][half] ^ members[k][half] << 1;
    }
    for (uint32_t i = 0; i < 128 && !c->tree.failed; i++) {
        uint64_t signature = 0;
        if (i > 0 && (changes[i / 64] >> i % 64 & 1) == 0) {
            symbols[i] = symbols[i - 1];
            continue;
        }
        for (uint32_t k = 0; k < c->tree.n_sets; k++)
            signature |= (members[k][i / 64] >> i % 64 & 1) << k;
        symbols[i] = find_symbol(c, signature);
    }
}

/* false: out of memory. */
static bool make_symbols(compiler *c, expression *x)
{
    uint32_t n = 0;
    uint8_t invalid[128];
    c->n_symbols = 1; /* 0 is the end of the text */
    for (uint32_t page = 0; page < N_PAGES && !c->tree.failed; page++) {
        if (page > 0 && !c->tree.page_is_cut[page] && !c->tree.page_is_cut[page - 1] &&
            unicode_class_index[page] == unicode_class_index[page - 1] &&
            unicode_word_index[page] == unicode_word_index[page - 1] &&
            unicode_hf_index[page] == unicode_hf_index[page - 1]) {
            x->page_index[page] = x->page_index[page - 1];
            continue;
        }
        if (!array_grow(&x->pages, n, sizeof *x->pages))
            return false;
        paint_page(c, page, x->pages[n]);
        x->page_index[page] = (uint16_t)n++;
    }
    const uint32_t n_valid = c->n_symbols;
    paint_page(c, N_PAGES, invalid);
    if (c->tree.failed)
        return true;
    x->of_invalid = invalid[0];
    x->invalid_is_alone = invalid[0] >= n_valid;
    for (uint32_t k = 0; k < c->tree.n_sets; k++) {
        for (uint32_t s = 1; s < c->n_symbols; s++)
            c->set_symbols[k] |= (c->signatures[s] >> k & 1) << s;
    }
    for (uint32_t b = 0; b < 256; b++) {
        const uint32_t stands_for = byte_char((uint8_t)b).code_point;
        x->of_byte[0][b] = b < 0x80 ? x->pages[0][b] : WIDE;
        x->of_byte[1][b] = x->pages[x->page_index[stands_for >> 7]][stands_for & 127];
    }
    return true;
}

/* ---- The program ---- */

static uint16_t add_step(compiler *c, step s)
{
    if (c->n_steps == MAX_STEPS)
        return (uint16_t)tree_fail(&c->tree, "too many repeats");
    c->steps[c->n_steps] = s;
    return (uint16_t)c->n_steps++;
}

/* Returns the symbols of is_one_character(). */
static uint64_t symbols_of(const compiler *c, uint32_t i)
{
    const node *n = &c->tree.nodes[i];
    if (n->kind == OR)
        return symbols_of(c, n->a) | symbols_of(c, n->b);
    if (n->kind == LOOK)
        return (uint64_t)n->end_too | symbols_of(c, n->a);
    return n->kind == SET ? c->set_symbols[n->a] : 0;
}

static uint16_t emit(compiler *c, uint32_t i, uint16_t next);

/* A possessive repeat ends only where no more can be taken. */
static uint16_t emit_repeat(compiler *c, const node *n, uint16_t next)
{
    uint16_t at = next, end = next;
    if (n->possessive)
        end = add_step(c, (step){STEP_LOOK, next, 0, ~c->set_symbols[c->tree.nodes[n->a].a]});
    const uint32_t n_forks = n->max == NO_LIMIT ? 1 : n->max - n->min;
    for (uint32_t k = 0; k < n_forks && !c->tree.failed; k++) {
        const uint16_t fork = add_step(c, (step){.kind = STEP_FORK});
        const uint16_t body = emit(c, n->a, n->max == NO_LIMIT ? fork : at);
        at = fork;
        c->steps[fork].next = n->lazy ? end : body;
        c->steps[fork].other = n->lazy ? body : end;
    }
    for (uint32_t k = 0; k < n->min && !c->tree.failed; k++)
        at = emit(c, n->a, at);
    return at;
}

/* Returns the step at which the node begins, if `next` follows it. */
static uint16_t emit(compiler *c, uint32_t i, uint16_t next)
{
    const node *n = &c->tree.nodes[i];
    if (c->tree.failed)
        return 0;
    switch (n->kind) {
    case SET:
        return add_step(c, (step){STEP_SET, next, 0, c->set_symbols[n->a]});
    case LOOK: {
        const uint64_t inner = (uint64_t)n->end_too | symbols_of(c, n->a);
        return add_step(c, (step){STEP_LOOK, next, 0, n->negated ? ~inner : inner});
    }
    case THEN:
        return emit(c, n->a, emit(c, n->b, next));
    case OR: {
        const uint16_t second = emit(c, n->b, next), first = emit(c, n->a, next);
        return add_step(c, (step){STEP_FORK, first, second, 0});
    }
    case REPEAT:
        return emit_repeat(c, n, next);
    default:
        return next;
    }
}

/* ---- The automaton ---- */

/* Follows a thread to what it does at the next character, whose symbol is the bit. true: it
 * matches. The threads after that character are added to those of state n_states. */
static bool follow(compiler *c, uint16_t at, uint64_t bit)
{
    const step *s = &c->steps[at];
    if (c->seen[at] == c->round)
        return false;
    c->seen[at] = c->round;
    switch (s->kind) {
    case STEP_FORK:
        return follow(c, s->next, bit) || follow(c, s->other, bit);
    case STEP_LOOK:
        return (s->symbols & bit) != 0 && follow(c, s->next, bit);
    case STEP_SET:
        if ((s->symbols & bit) != 0 && c->taken[s->next] != c->round) {
            c->taken[s->next] = c->round;
            c->threads[c->n_threads++] = s->next;
        }
        return false;
    default:
        return true;
    }
}

/* Returns the state with the threads from first_thread[n_states] on: an old one, or a new one. */
static uint32_t find_state(compiler *c)
{
    const uint32_t first = c->first_thread[c->n_states], n = c->n_threads - first;
    uint32_t hash = n;
    for (uint32_t k = 0; k < n; k++)
        hash = hash * 0x9E3779B1u + c->threads[first + k];
    uint32_t *bucket = &c->buckets[(hash ^ hash >> 15) % N_BUCKETS];
    for (uint32_t s = *bucket; s != 0; s = c->next_state[s - 1]) {
        const uint32_t *f = &c->first_thread[s - 1];
        if (f[1] - f[0] == n &&
            memcmp(c->threads + f[0], c->threads + first, n * sizeof *c->threads) == 0) {
            c->n_threads = first;
            return s - 1;
        }
    }
    c->next_state[c->n_states] = *bucket;
    *bucket = ++c->n_states;
    c->first_thread[c->n_states] = c->n_threads;
    return c->n_states - 1;
}

/* false: out of memory. State 0 has no threads. */
static bool make_states(compiler *c, expression *x, uint16_t begin)
{
    const uint32_t n_symbols = c->n_symbols, max_states = MAX_CELLS / n_symbols < MAX_STATES
                                                              ? MAX_CELLS / n_symbols
                                                              : MAX_STATES;
    for (uint32_t s = 0; s < 2 || s < c->n_states; s++) {
        const uint32_t needed = c->n_threads + (n_symbols + 1) * (c->n_steps + 1);
        if (!array_reserve(&c->threads, &c->thread_capacity, needed, sizeof *c->threads) ||
            !array_grow(&x->cells, s, n_symbols * sizeof *x->cells))
            return false;
        if (s < 2) {
            c->threads[0] = begin;
            c->n_threads = s;
            find_state(c);
        }
        for (uint32_t symbol = 0; symbol < n_symbols; symbol++) {
            const uint32_t *f = &c->first_thread[s];
            bool matched = false;
            c->round++;
            for (uint32_t k = f[0]; k < f[1] && !matched; k++)
                matched = follow(c, c->threads[k], (uint64_t)1 << symbol);
            if (c->n_states == max_states) {
                tree_fail(&c->tree, "the automaton has too many states");
                return true;
            }
            x->cells[s * n_symbols + symbol] = find_state(c) * n_symbols * 2 + matched;
        }
    }
    x->start = n_symbols;
    x->n_cells = c->n_states * n_symbols;
    return true;
}

/* ---- Time ---- */

enum {
    NEW,
    OPEN,
    DONE
};

/* match_far remembers a state that characters without a match keep, and where. Around any other
 * cycle, or if two states may keep the same characters, each match could be searched for to the end
 * of the text. `kept`: the symbols of states that were found to be kept. */
static bool find_cycles(const expression *x, uint32_t row, uint8_t *marks, uint64_t *kept)
{
    uint64_t own = 0;
    marks[row / x->start] = OPEN;
    for (uint32_t symbol = 1; symbol < x->start; symbol++) {
        const uint32_t cell = x->cells[row + symbol], next = cell >> 1;
        if (cell & 1 || next == 0)
            continue;
        if (next == row)
            own |= (uint64_t)1 << symbol;
        else if (marks[next / x->start] == OPEN ||
                 (marks[next / x->start] == NEW && !find_cycles(x, next, marks, kept)))
            return false;
    }
    marks[row / x->start] = DONE;
    const bool twice = (*kept & own) != 0;
    *kept |= own;
    return !twice;
}

/* false: out of memory. */
static bool check_time(compiler *c, const expression *x)
{
    uint64_t kept = 0;
    bool linear = true;
    uint8_t *marks = calloc(x->n_cells / x->start + 1, 1);
    for (uint32_t row = x->start; marks && linear && row < x->n_cells; row += x->start)
        linear = marks[row / x->start] != NEW || find_cycles(x, row, marks, &kept);
    free(marks);
    if (!linear)
        tree_fail(&c->tree, "searches that take long");
    return marks != NULL;
}

static void add_begin(expression *x, bool as_bytes, uint32_t byte)
{
    x->begins[as_bytes][byte >> 7][byte & 15] |= (uint8_t)(1 << (byte >> 4 & 7));
}

static void find_begins(expression *x)
{
    const uint32_t *begin = x->cells + x->start;
    for (uint32_t b = 0; b < 256; b++) {
        if (begin[b < 0x80 ? x->of_byte[0][b] : x->of_invalid] != 0)
            add_begin(x, false, b);
        if (begin[x->of_byte[1][b]] != 0)
            add_begin(x, true, b);
    }
    for (uint32_t c = 0x80; c < 0x110000; c++) {
        uint8_t utf8[4];
        if (begin[x->pages[x->page_index[c >> 7]][c & 127]] == 0)
            continue;
        utf8_encode(c, utf8);
        add_begin(x, false, utf8[0]);
        c |= 63; /* they begin with the same byte */
    }
}

static bool compile(compiler *c, expression *x)
{
    const uint32_t root = tree_parse(&c->tree);
    if (c->tree.failed || !make_symbols(c, x) || c->tree.failed)
        return false;
    const uint16_t match = add_step(c, (step){.kind = STEP_MATCH});
    const uint16_t begin = emit(c, root, match);
    if (c->tree.failed || !make_states(c, x, begin) || c->tree.failed)
        return false;
    find_begins(x);
    return check_time(c, x) && !c->tree.failed;
}

expression *expression_new(const char *text, size_t n_bytes, expression_dialect dialect,
                           expression_error *err)
{
    expression *x = calloc(1, sizeof *x);
    compiler *c = calloc(1, sizeof *c);
    err->why[0] = 0;
    bool ok = x && c;
    if (ok) {
        c->tree.text = text;
        c->tree.n_bytes = n_bytes;
        c->tree.dialect = dialect;
        c->tree.err = err;
        ok = compile(c, x);
        free(c->threads);
    }
    free(c);
    if (ok)
        return x;
    expression_free(x);
    return NULL;
}

expression *expression_share(expression *x)
{
    x->n_shared++;
    return x;
}

void expression_free(expression *x)
{
    if (!x || x->n_shared-- > 0)
        return;
    free(x->pages);
    free(x->cells);
    free(x);
}

/* ---- What it matches ---- */

/* Whether each way from the state `row` on comes to a match. The first state, again, has none at
 * the end of the text. */
static bool always_matches(const expression *x, uint32_t row, uint8_t *marks)
{
    marks[row / x->start] = DONE;
    for (uint32_t symbol = row == x->start; symbol < x->start; symbol++) {
        const uint32_t cell = x->cells[row + symbol], next = cell >> 1;
        if (cell & 1 || (symbol == x->of_invalid && x->invalid_is_alone))
            continue;
        if (next == 0 || next == x->start ||
            (marks[next / x->start] == NEW && !always_matches(x, next, marks)))
            return false;
    }
    return true;
}

int expression_matches_everywhere(const expression *x)
{
    uint8_t *marks = calloc(x->n_cells / x->start + 1, 1);
    const bool everywhere = marks && always_matches(x, x->start, marks);
    free(marks);
    return marks ? everywhere : -1;
}

/* ---- Matching ---- */

/* The symbol of the character at byte i < n_bytes. *next: where the one after it begins. */
static inline uint8_t read_symbol(const expression *x, const text_cursor *v, size_t i, size_t *next)
{
    const uint8_t symbol = x->of_byte[v->as_bytes][v->text[i]];
    uint32_t code_point;
    *next = i + 1;
    if (__builtin_expect(symbol != WIDE, 1))
        return symbol;
    const size_t n = utf8_decode(v->text + i, v->n_bytes - i, &code_point);
    if (n == 0)
        return x->of_invalid;
    *next = i + n;
    return x->pages[x->page_index[code_point >> 7]][code_point & 127];
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static size_t
next_avx2(const uint8_t begins[2][16], const uint8_t *text, size_t i, size_t n_bytes)
{
    const __m256i half = _mm256_set1_epi8(0x0F), top = _mm256_set1_epi8((char)0x80),
                  bits = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    const __m256i ascii = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)begins[0]));
    const __m256i wide = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)begins[1]));
    for (; i < n_bytes; i += 32) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(text + i));
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), half);
        /* A shuffle gives 0 for bytes of 0x80 and more. */
        const __m256i rows = _mm256_or_si256(_mm256_shuffle_epi8(ascii, v),
                                             _mm256_shuffle_epi8(wide, _mm256_xor_si256(v, top)));
        const __m256i wanted = _mm256_shuffle_epi8(bits, high);
        const __m256i found = _mm256_cmpeq_epi8(_mm256_and_si256(rows, wanted), wanted);
        const uint32_t mask = (uint32_t)_mm256_movemask_epi8(found);
        if (mask != 0)
            return i + (size_t)__builtin_ctz(mask);
    }
    return n_bytes;
}
#endif

size_t expression_next(const expression *x, const text_cursor *v, size_t i)
{
    const uint8_t(*begins)[16] = x->begins[v->as_bytes];
    for (; i < v->n_bytes; i++) {
        const uint8_t byte = v->text[i];
        if (begins[byte >> 7][byte & 15] >> (byte >> 4 & 7) & 1)
            return i;
#if defined(__x86_64__)
        if (v->vectors)
            return next_avx2(begins, v->text, i, v->n_bytes);
#endif
    }
    return i;
}

/* From the state `row` at byte i on. If characters without a match after them keep a state in
 * place, then no later attempt that reaches one of them in that state can match. */
static size_t match_far(const expression *x, text_cursor *v, size_t i, uint32_t row, size_t end)
{
    size_t since = i, from = 0, to = 0;
    uint32_t vain = 0;
    while (row != 0) {
        size_t next = i;
        if (row == v->vain_row && i >= v->vain_from && i <= v->vain_to)
            return end;
        const uint8_t symbol = i < v->n_bytes ? read_symbol(x, v, i, &next) : 0;
        const uint32_t cell = x->cells[row + symbol];
        if (cell & 1) {
            end = i;
            from = to = 0;
            since = next;
        }
        if (cell >> 1 != row) {
            if (i > since && i - since > to - from) {
                from = since;
                to = i;
                vain = row;
            }
            since = next;
        }
        row = cell >> 1;
        i = next;
    }
    if (to > from) {
        v->vain_row = vain;
        v->vain_from = from;
        v->vain_to = to;
    }
    return end;
}

size_t expression_match(const expression *x, text_cursor *v, size_t start)
{
    const size_t near = v->n_bytes - start > FAR_BYTES ? start + FAR_BYTES : v->n_bytes;
    const uint32_t *cells = x->cells;
    size_t end = 0, i = start;
    uint32_t row = x->start;
    while (i < near) {
        size_t next;
        const uint32_t cell = cells[row + read_symbol(x, v, i, &next)];
        if (cell & 1)
            end = i;
        if (cell <= 1)
            return end;
        row = cell >> 1;
        i = next;
    }
    if (i < v->n_bytes)
        return match_far(x, v, i, row, end);
    return cells[row] & 1 ? i : end;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "oracles/naive_splitter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tokenizer/split/pattern.h"
#include "tokenizer/unicode/unicode.h"

enum {
    NAIVE_MAX_NODES = 200,
    NAIVE_MAX_RANGES = 400,
    NAIVE_REPEAT = 1 << 30
};

typedef struct naive_char {
    uint32_t code_point; /* UINT32_MAX: a byte that is not UTF-8 */
    size_t offset;
    unicode_class class;
} naive_char;

typedef struct naive_set {
    unsigned classes; /* bit set of unicode_class */
    bool hf_number, hf_punctuation, word, han, but_han, decimal;
    uint32_t ranges[NAIVE_MAX_RANGES][2];
    int n_ranges;
    bool negated, fold;
} naive_set;

typedef enum naive_kind {
    NAIVE_SET,
    NAIVE_GROUP,
    NAIVE_AHEAD,
    NAIVE_NOT_AHEAD,
    NAIVE_WORD_EDGE, /* \b */
    NAIVE_LINE_END   /* $ */
} naive_kind;

/* Alternatives are rows of nodes linked by next, rows are linked by other at their first. */
typedef struct naive_node {
    naive_kind kind;
    naive_set set;
    int min, max;
    bool possessive;
    int row; /* of a group: the first alternative */
    int next, other;
} naive_node;

typedef struct naive_regex {
    naive_node nodes[NAIVE_MAX_NODES];
    int n_nodes;
    const char *at; /* while it is read */
    expression_dialect dialect;
} naive_regex;

/* ---- Properties that the classes do not tell ---- */

typedef uint32_t naive_range[2];

static const naive_range naive_han[] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF}};
static const naive_range naive_decimals[] = {
    {0x30, 0x39},       {0x660, 0x669},     {0x6F0, 0x6F9},     {0x7C0, 0x7C9},
    {0x966, 0x96F},     {0x9E6, 0x9EF},     {0xA66, 0xA6F},     {0xAE6, 0xAEF},
    {0xB66, 0xB6F},     {0xBE6, 0xBEF},     {0xC66, 0xC6F},     {0xCE6, 0xCEF},
    {0xD66, 0xD6F},     {0xDE6, 0xDEF},     {0xE50, 0xE59},     {0xED0, 0xED9},
    {0xF20, 0xF29},     {0x1040, 0x1049},   {0x1090, 0x1099},   {0x17E0, 0x17E9},
    {0x1810, 0x1819},   {0x1946, 0x194F},   {0x19D0, 0x19D9},   {0x1A80, 0x1A89},
    {0x1A90, 0x1A99},   {0x1B50, 0x1B59},   {0x1BB0, 0x1BB9},   {0x1C40, 0x1C49},
    {0x1C50, 0x1C59},   {0xA620, 0xA629},   {0xA8D0, 0xA8D9},   {0xA900, 0xA909},
    {0xA9D0, 0xA9D9},   {0xA9F0, 0xA9F9},   {0xAA50, 0xAA59},   {0xABF0, 0xABF9},
    {0xFF10, 0xFF19},   {0x104A0, 0x104A9}, {0x10D30, 0x10D39}, {0x10D40, 0x10D49},
    {0x11066, 0x1106F}, {0x110F0, 0x110F9}, {0x11136, 0x1113F}, {0x111D0, 0x111D9},
    {0x112F0, 0x112F9}, {0x11450, 0x11459}, {0x114D0, 0x114D9}, {0x11650, 0x11659},
    {0x116C0, 0x116C9}, {0x116D0, 0x116E3}, {0x11730, 0x11739}, {0x118E0, 0x118E9},
    {0x11950, 0x11959}, {0x11BF0, 0x11BF9}, {0x11C50, 0x11C59}, {0x11D50, 0x11D59},
    {0x11DA0, 0x11DA9}, {0x11F50, 0x11F59}, {0x16130, 0x16139}, {0x16A60, 0x16A69},
    {0x16AC0, 0x16AC9}, {0x16B50, 0x16B59}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9},
    {0x1D7CE, 0x1D7FF}, {0x1E140, 0x1E149}, {0x1E2F0, 0x1E2F9}, {0x1E4F0, 0x1E4F9},
    {0x1E5F1, 0x1E5FA}, {0x1E950, 0x1E959}, {0x1FBF0, 0x1FBF9}};
/* Oniguruma's \w, besides letters, marks and decimals. */
static const naive_range naive_word[] = {
    {0x5F, 0x5F},       {0xB2, 0xB3},       {0xB9, 0xB9},       {0xBC, 0xBE},
    {0x16EE, 0x16F0},   {0x203F, 0x2040},   {0x2054, 0x2054},   {0x2160, 0x2182},
    {0x2185, 0x2188},   {0x24B6, 0x24E9},   {0x3007, 0x3007},   {0x3021, 0x3029},
    {0x3038, 0x303A},   {0xA6E6, 0xA6EF},   {0xFE33, 0xFE34},   {0xFE4D, 0xFE4F},
    {0xFF3F, 0xFF3F},   {0x10140, 0x10174}, {0x10341, 0x10341}, {0x1034A, 0x1034A},
    {0x103D1, 0x103D5}, {0x12400, 0x1246E}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169},
    {0x1F170, 0x1F189}};

#define NAIVE_IS_IN(ranges, c) naive_is_in(ranges, sizeof(ranges) / sizeof *(ranges), c)
static bool naive_is_in(const naive_range *ranges, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    }
    return false;
}

/* ---- Reading ---- */

static uint32_t naive_code_point(const char **at)
{
    uint32_t c = 0;
    *at += utf8_decode((const uint8_t *)*at, strlen(*at), &c);
    return c;
}

static void naive_add_range(naive_set *set, uint32_t first, uint32_t last)
{
    if (set->n_ranges == NAIVE_MAX_RANGES)
        abort();
    set->ranges[set->n_ranges][0] = first;
    set->ranges[set->n_ranges++][1] = last;
}

static void naive_add_property(naive_set *set, const char *name)
{
    static const struct {
        const char *name;
        unsigned classes;
    } properties[] = {
        {"L}", 1 << CLASS_UPPER | 1 << CLASS_LOWER | 1 << CLASS_LETTER},
        {"Lu}", 1 << CLASS_UPPER}, /* the patterns name it only together with Lt */
        {"Lt}", 1 << CLASS_UPPER},
        {"Ll}", 1 << CLASS_LOWER},
        {"Lm}", 1 << CLASS_LETTER}, /* and this with Lo */
        {"Lo}", 1 << CLASS_LETTER},
        {"M}", 1 << CLASS_MARK},
        {"N}", 1 << CLASS_NUMBER},
        {"P}", 1 << CLASS_PUNCTUATION},
        {"S}", 1 << CLASS_SYMBOL},
    };
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        if (strncmp(name, properties[i].name, strlen(properties[i].name)) == 0)
            set->classes |= properties[i].classes;
    }
    set->han |= strncmp(name, "Han}", 4) == 0;
    set->hf_number |= strncmp(name, "HfNumber}", 9) == 0;
    set->hf_punctuation |= strncmp(name, "HfPunctuation}", 14) == 0;
}

/* One character or escape; a range if a dash follows and `ranges`. */
static void naive_read_one(naive_regex *r, naive_set *set, bool ranges)
{
    if (*r->at != '\\') {
        uint32_t first = naive_code_point(&r->at), last = first;
        if (ranges && r->at[0] == '-' && r->at[1] != ']') {
            r->at++;
            last = naive_code_point(&r->at);
        }
        naive_add_range(set, first, last);
        return;
    }
    char c = r->at[1];
    r->at += 2;
    if (c == 'p') {
        naive_add_property(set, r->at + 1);
        r->at = strchr(r->at, '}') + 1;
    } else if (c == 's' || c == 'S') {
        set->classes |= 1 << CLASS_SPACE;
        set->negated |= c == 'S';
    } else if (c == 'd') {
        set->decimal = true;
    } else if (c == 'w') {
        set->word = true;
    } else if (c == 'u' || c == 'x') {
        char digits[5] = {r->at[0], r->at[1]};
        if (c == 'u')
            memcpy(digits + 2, r->at + 2, 2);
        const uint32_t code_point = (uint32_t)strtoul(digits, NULL, 16);
        naive_add_range(set, code_point, code_point);
        r->at += strlen(digits);
    } else {
        uint32_t literal = c == 'r' ? '\r' : c == 'n' ? '\n' : (uint32_t)(uint8_t)c;
        naive_add_range(set, literal, literal);
    }
}

static void naive_read_inner(naive_regex *r, naive_set *set)
{
    for (r->at++; *r->at != ']';)
        naive_read_one(r, set, true);
    r->at++;
}

static void naive_read_class(naive_regex *r, naive_set *set)
{
    set->negated = r->at[1] == '^';
    r->at += set->negated ? 2 : 1;
    while (*r->at != ']') {
        static const char but_han[] = "&&[^\\p{Han}]";
        set->but_han |= strncmp(r->at, but_han, sizeof but_han - 1) == 0;
        if (set->but_han)
            r->at += sizeof but_han - 1;
        else if (*r->at == '[') /* as BLOOM's: a class within, as if its characters were here */
            naive_read_inner(r, set);
        else
            naive_read_one(r, set, true);
    }
    r->at++;
}

static void naive_read_quantifier(naive_regex *r, naive_node *node)
{
    const char c = *r->at;
    node->min = node->max = 1;
    if (c == '{') {
        node->min = node->max = (int)strtol(r->at + 1, (char **)&r->at, 10);
        if (*r->at == ',')
            node->max = (int)strtol(r->at + 1, (char **)&r->at, 10);
    } else if (c == '?' || c == '*' || c == '+') {
        node->min = c == '+';
        node->max = c == '?' ? 1 : NAIVE_REPEAT;
    } else {
        return;
    }
    r->at++;
    if (*r->at != '+')
        return;
    r->at++;
    if (c == '{' && r->dialect == EXPRESSION_RUBY) /* a repeat of the repeat */
        node->max = NAIVE_REPEAT;
    else
        node->possessive = true;
}

/* Alternatives up to a closing parenthesis or the end. Returns the first node of the first. */
static int naive_read_rows(naive_regex *r, bool fold)
{
    int first_row = -1, *row = &first_row;
    for (;;) {
        int *link = row;
        *row = -1;
        while (*r->at != 0 && *r->at != '|' && *r->at != ')') {
            if (r->n_nodes == NAIVE_MAX_NODES)
                abort();
            int index = r->n_nodes++;
            naive_node *node = &r->nodes[index];
            *node = (naive_node){.row = -1, .next = -1, .other = -1, .set.fold = fold};
            if (*r->at == '(') {
                const char kind = r->at[1] == '?' ? r->at[2] : 0;
                r->at += kind == 'i' ? 4 : kind ? 3 : 1;
                node->kind = kind == '!'   ? NAIVE_NOT_AHEAD
                             : kind == '=' ? NAIVE_AHEAD
                                           : NAIVE_GROUP;
                node->row = naive_read_rows(r, fold || kind == 'i');
                r->at++;
            } else if (*r->at == '$' || strncmp(r->at, "\\b", 2) == 0) {
                node->kind = *r->at == '$' ? NAIVE_LINE_END : NAIVE_WORD_EDGE;
                r->at += *r->at == '$' ? 1 : 2;
            } else if (*r->at == '[') {
                naive_read_class(r, &node->set);
            } else {
                naive_read_one(r, &node->set, false);
            }
            naive_read_quantifier(r, node);
            *link = index;
            link = &node->next;
        }
        if (*row < 0 || *r->at != '|')
            return first_row;
        r->at++;
        row = &r->nodes[*row].other;
    }
}

static void naive_read(naive_regex *r, const char *text, expression_dialect dialect)
{
    r->at = text;
    r->dialect = dialect;
    if (naive_read_rows(r, false) != 0 || *r->at != 0)
        abort();
}

/* ---- Matching ---- */

static uint32_t naive_fold(uint32_t c)
{
    return c == 0x17F ? 's' : c >= 'A' && c <= 'Z' ? c + 32 : c;
}

/* Rust's \w. */
static bool naive_is_word(uint32_t c)
{
    const uint8_t class = unicode_word_pages[unicode_word_index[c >> 7]][c & 127];
    return class == CLASS_LETTER || class == CLASS_MARK || class == CLASS_NUMBER;
}

static bool naive_set_has(const naive_set *set, const naive_char *c)
{
    bool known = c->code_point != UINT32_MAX;
    uint32_t code_point = set->fold && known ? naive_fold(c->code_point) : c->code_point;
    bool found = set->classes >> c->class & 1;
    for (int i = 0; i < set->n_ranges && !found; i++)
        found = code_point >= set->ranges[i][0] && code_point <= set->ranges[i][1];
    found |= known && set->decimal && NAIVE_IS_IN(naive_decimals, code_point);
    found |= known && set->han && NAIVE_IS_IN(naive_han, code_point);
    if (set->but_han && NAIVE_IS_IN(naive_han, code_point))
        return false;
    found |= known && set->hf_number && unicode_hf_is(HF_NUMBER, code_point);
    found |= known && set->hf_punctuation && unicode_hf_is(HF_PUNCTUATION, code_point);
    found |= known && set->word && naive_is_word(code_point);
    return found != set->negated;
}

/* The node to match after a group: the group again after n times, or what follows it. */
typedef struct naive_rest {
    int node, n;
    const struct naive_rest *after;
} naive_rest;

static const size_t naive_none = SIZE_MAX;

/* The characters [begin, end) of a text, without the text around them. */
typedef struct naive_text {
    const naive_char *chars;
    size_t begin, end;
} naive_text;

static size_t naive_match(const naive_regex *r, int index, naive_text t, size_t i,
                          const naive_rest *rest);

static size_t naive_match_set(const naive_regex *r, const naive_node *node, naive_text t, size_t i,
                              const naive_rest *rest)
{
    int n = 0;
    size_t end = naive_none;
    while (n < node->max && i < t.end && naive_set_has(&node->set, &t.chars[i])) {
        n++;
        i++;
    }
    for (const int least = node->possessive && n > node->min ? n : node->min; n >= least;
         n--, i--) {
        end = naive_match(r, node->next, t, i, rest);
        if (end != naive_none)
            break;
    }
    return end;
}

static bool naive_is_word_at(naive_text t, size_t i)
{
    if (i < t.begin || i >= t.end || t.chars[i].code_point == UINT32_MAX)
        return false;
    const unsigned classes =
        1 << CLASS_UPPER | 1 << CLASS_LOWER | 1 << CLASS_LETTER | 1 << CLASS_MARK;
    const uint32_t c = t.chars[i].code_point;
    return (classes >> t.chars[i].class & 1) || NAIVE_IS_IN(naive_decimals, c) ||
           NAIVE_IS_IN(naive_word, c);
}

/* A group that may be repeated: `n` times so far. */
static size_t naive_match_group(const naive_regex *r, int index, naive_text t, size_t i,
                                const naive_rest *rest, int n)
{
    const naive_node *node = &r->nodes[index];
    const naive_rest again = {index, n + 1, rest};
    size_t end = naive_none;
    for (int row = n < node->max ? node->row : -1; row >= 0 && end == naive_none;
         row = r->nodes[row].other)
        end = naive_match(r, row, t, i, &again);
    return end == naive_none && n >= node->min ? naive_match(r, node->next, t, i, rest) : end;
}

static bool naive_holds(const naive_regex *r, const naive_node *node, naive_text t, size_t i)
{
    if (node->kind == NAIVE_WORD_EDGE)
        return naive_is_word_at(t, i) != naive_is_word_at(t, i - 1);
    if (node->kind == NAIVE_LINE_END)
        return i == t.end || t.chars[i].code_point == '\n';
    size_t end = naive_none;
    for (int row = node->row; row >= 0 && end == naive_none; row = r->nodes[row].other)
        end = naive_match(r, row, t, i, NULL);
    return (end != naive_none) == (node->kind == NAIVE_AHEAD);
}

static size_t naive_match(const naive_regex *r, int index, naive_text t, size_t i,
                          const naive_rest *rest)
{
    if (index < 0 && rest)
        return naive_match_group(r, rest->node, t, i, rest->after, rest->n);
    if (index < 0)
        return i;
    const naive_node *node = &r->nodes[index];
    if (node->kind == NAIVE_SET)
        return naive_match_set(r, node, t, i, rest);
    if (node->kind == NAIVE_GROUP)
        return naive_match_group(r, index, t, i, rest, 0);
    return naive_holds(r, node, t, i) ? naive_match(r, node->next, t, i, rest) : naive_none;
}

static size_t naive_match_any(const naive_regex *r, naive_text t, size_t i)
{
    for (int row = 0; row >= 0; row = r->nodes[row].other) {
        size_t end = naive_match(r, row, t, i, NULL);
        if (end != naive_none)
            return end;
    }
    return naive_none;
}

void naive_set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

bool naive_has_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* Split(Regex(r), "isolated" or "merged_with_next") of every piece. */
static void naive_split(const naive_regex *r, const naive_char *chars, size_t n, bool merges_next,
                        uint64_t *starts)
{
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && !naive_has_bit(starts, chars[last].offset);)
            last++;
        naive_text piece = {chars, first, last};
        for (size_t i = first; i < last;) {
            size_t end = naive_match_any(r, piece, i);
            if (end != naive_none)
                naive_set_bit(starts, chars[i].offset);
            if (end != naive_none && end > i && end < n && !merges_next)
                naive_set_bit(starts, chars[end].offset);
            i = end != naive_none && end > i ? end : i + 1;
        }
    }
}

static size_t naive_decode(const uint8_t *text, size_t n_bytes, naive_char *chars)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; n++) {
        uint32_t c;
        size_t length = utf8_decode(text + i, n_bytes - i, &c);
        chars[n] =
            (naive_char){length ? c : UINT32_MAX, i, length ? unicode_class_of(c) : CLASS_OTHER};
        i += length ? length : 1;
    }
    return n;
}

/* GPT-2's characters for bytes, each as long as one byte. */
static void naive_bytes_to_chars(const uint8_t *text, size_t n_bytes, naive_char *chars)
{
    uint32_t named[256], next = 256;
    for (uint32_t b = 0; b < 256; b++) {
        bool itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        named[b] = itself ? b : next++;
    }
    for (size_t i = 0; i < n_bytes; i++)
        chars[i] = (naive_char){named[text[i]], i, unicode_class_of(named[text[i]])};
}

/* ---- Stages ---- */

/* The first spelling of each alternative. */
static const naive_regex *naive_regex_of(split_stage_id id)
{
    static naive_regex regexes[STAGE_N];
    const split_stage *stage = split_stages[id];
    char text[4096];
    size_t n = 0;
    if (regexes[id].n_nodes > 0)
        return &regexes[id];
    for (size_t i = 0; i < SPLIT_MAX_ALTERNATIVES && stage->alternatives[i]; i++)
        n += (size_t)sprintf(text + n, "%s%.*s", i ? "|" : "",
                             (int)strcspn(stage->alternatives[i], " "), stage->alternatives[i]);
    naive_read(&regexes[id], text, stage->dialect);
    return &regexes[id];
}

void naive_words(split_pattern p, const uint8_t *text, size_t n_bytes, uint64_t *starts)
{
    static naive_char chars[NAIVE_SPLIT_BYTES];
    size_t n = naive_decode(text, n_bytes, chars);
    memset(starts, 0, (n_bytes / 64 + 1) * sizeof *starts);
    if (n_bytes > 0)
        naive_set_bit(starts, 0);
    for (unsigned k = 0; split_stage_at(p, k); k++) {
        const split_stage *stage = split_stages[split_stage_at(p, k)];
        naive_split(naive_regex_of(split_stage_at(p, k)), chars, n, stage->join == JOIN_NEXT,
                    starts);
        if (stage == split_stages[STAGE_BYTE_LEVEL]) {
            naive_bytes_to_chars(text, n_bytes, chars);
            n = n_bytes;
        }
    }
}

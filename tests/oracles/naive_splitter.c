#include "oracles/naive_splitter.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"
#include "tokenizer/unicode/unicode.h"

enum {
    NAIVE_MAX_NODES = 160,
    NAIVE_MAX_RANGES = 40,
    NAIVE_REPEAT = 1 << 30
};

typedef struct naive_char {
    uint32_t code_point; /* UINT32_MAX: a byte that is not UTF-8 */
    size_t offset;
    unicode_class class;
} naive_char;

typedef struct naive_set {
    unsigned classes; /* bit set of unicode_class */
    bool hf_numeric, hf_punctuation, word;
    uint32_t ranges[NAIVE_MAX_RANGES][2];
    int n_ranges;
    bool negated, fold;
} naive_set;

typedef enum naive_kind {
    NAIVE_SET,
    NAIVE_GROUP,
    NAIVE_NOT_AHEAD
} naive_kind;

/* Alternatives are rows of nodes linked by next, rows are linked by other at their first. */
typedef struct naive_node {
    naive_kind kind;
    naive_set set;
    int min, max;
    int row; /* of a group: the first alternative */
    int next, other;
} naive_node;

typedef struct naive_regex {
    naive_node nodes[NAIVE_MAX_NODES];
    int n_nodes;
    const char *at; /* while it is read */
} naive_regex;

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
    set->hf_numeric |= strncmp(name, "HfNumeric}", 10) == 0;
    set->hf_punctuation |= strncmp(name, "HfPunctuation}", 14) == 0;
    set->word |= strncmp(name, "Word}", 5) == 0;
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
    } else {
        uint32_t literal = c == 'r' ? '\r' : c == 'n' ? '\n' : (uint32_t)(uint8_t)c;
        naive_add_range(set, literal, literal);
    }
}

static void naive_read_class(naive_regex *r, naive_set *set)
{
    set->negated = r->at[1] == '^';
    r->at += set->negated ? 2 : 1;
    while (*r->at != ']')
        naive_read_one(r, set, true);
    r->at++;
}

static void naive_read_quantifier(naive_regex *r, naive_node *node)
{
    static const struct {
        const char *text;
        int min, max;
    } quantifiers[] = {
        {"?", 0, 1}, {"*", 0, NAIVE_REPEAT}, {"+", 1, NAIVE_REPEAT}, {"{1,3}", 1, 3}};
    node->min = node->max = 1;
    for (size_t i = 0; i < sizeof quantifiers / sizeof *quantifiers; i++) {
        size_t n = strlen(quantifiers[i].text);
        if (strncmp(r->at, quantifiers[i].text, n) != 0)
            continue;
        node->min = quantifiers[i].min;
        node->max = quantifiers[i].max;
        r->at += n;
        return;
    }
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
            if (strncmp(r->at, "(?", 2) == 0) {
                bool ahead = r->at[2] == '!', folds = r->at[2] == 'i';
                r->at += ahead ? 3 : folds ? 4 : 3;
                node->kind = ahead ? NAIVE_NOT_AHEAD : NAIVE_GROUP;
                node->row = naive_read_rows(r, fold || folds);
                r->at++;
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

static void naive_read(naive_regex *r, const char *text)
{
    memset(r, 0, sizeof *r);
    r->at = text;
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
    return class == CLASS_LETTER || class == CLASS_MARK;
}

static bool naive_set_has(const naive_set *set, const naive_char *c)
{
    bool known = c->code_point != UINT32_MAX;
    uint32_t code_point = set->fold && known ? naive_fold(c->code_point) : c->code_point;
    bool found = set->classes >> c->class & 1;
    for (int i = 0; i < set->n_ranges && !found; i++)
        found = code_point >= set->ranges[i][0] && code_point <= set->ranges[i][1];
    found |= known && set->hf_numeric && unicode_hf_numeric(code_point);
    found |= known && set->hf_punctuation && unicode_hf_punctuation(code_point);
    found |= known && set->word && naive_is_word(code_point);
    return found != set->negated;
}

/* The node to match after a group. */
typedef struct naive_rest {
    int node;
    const struct naive_rest *after;
} naive_rest;

static const size_t naive_none = SIZE_MAX;

/* The characters [at, end) of a text, without the text around them. */
typedef struct naive_text {
    const naive_char *chars;
    size_t end;
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
    for (; n >= node->min; n--, i--) {
        end = naive_match(r, node->next, t, i, rest);
        if (end != naive_none)
            break;
    }
    return end;
}

static size_t naive_match(const naive_regex *r, int index, naive_text t, size_t i,
                          const naive_rest *rest)
{
    if (index < 0)
        return rest ? naive_match(r, rest->node, t, i, rest->after) : i;
    const naive_node *node = &r->nodes[index];
    if (node->kind == NAIVE_SET)
        return naive_match_set(r, node, t, i, rest);
    naive_rest next = {node->next, rest};
    for (int row = node->row; row >= 0; row = r->nodes[row].other) {
        bool ahead = node->kind == NAIVE_NOT_AHEAD;
        size_t end = naive_match(r, row, t, i, ahead ? NULL : &next);
        if (end != naive_none)
            return ahead ? naive_none : end;
    }
    return node->min == 0 || node->kind == NAIVE_NOT_AHEAD ? naive_match(r, node->next, t, i, rest)
                                                           : naive_none;
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

/* Split(Regex(r), "isolated") of every piece: begins[i] says that one begins at character i. */
static void naive_split(const naive_regex *r, const naive_char *chars, size_t n, bool *begins)
{
    for (size_t first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && !begins[last];)
            last++;
        naive_text piece = {chars, last};
        for (size_t i = first; i < last;) {
            size_t end = naive_match_any(r, piece, i);
            if (end == naive_none) {
                i++;
                continue;
            }
            begins[i] = true;
            if (end < n)
                begins[end] = true;
            i = end;
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

/* ---- The patterns ---- */

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LIKE_CL100K(letter, digits, other)                                                         \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?" letter "+|" digits "| ?" other "+[\\r\\n]*" BLANKS
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LIKE_O200K(contraction, digits)                                                            \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" contraction "|[^\\r\\n\\p{L}\\p{N}]?" UPPER       \
    "+" LOWER "*" contraction "|" digits "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS

const naive_pattern naive_patterns[] = {
    {SPLIT_GPT2, {GPT2}, {NULL}},
    {SPLIT_CL100K, {LIKE_CL100K("\\p{L}", "\\p{N}{1,3}", "[^\\s\\p{L}\\p{N}]")}, {NULL}},
    {SPLIT_QWEN2, {LIKE_CL100K("\\p{L}", "\\p{N}", "[^\\s\\p{L}\\p{N}]")}, {NULL}},
    {SPLIT_QWEN35, {LIKE_CL100K("[\\p{L}\\p{M}]", "\\p{N}", "[^\\s\\p{L}\\p{M}\\p{N}]")}, {NULL}},
    {SPLIT_O200K, {LIKE_O200K(CONTRACTION "?", "\\p{N}{1,3}")}, {NULL}},
    {SPLIT_TEKKEN, {LIKE_O200K("", "\\p{N}")}, {NULL}},
    {SPLIT_DEEPSEEK3,
     {"\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
      "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" BLANKS},
     {NULL}},
    {SPLIT_FALCON, {"\\p{HfPunctuation}+", GPT2}, {"\\p{HfNumeric}+", "[0-9][0-9][0-9]"}},
    {SPLIT_STARCODER, {"\\p{HfNumeric}", GPT2}, {NULL}},
    {SPLIT_WHITESPACE, {" ?\\p{Word}+| ?[^\\s\\p{Word}]+|\\s+(?!\\S)|\\s+"}, {NULL}},
    {SPLIT_WHITESPACE_SPLIT, {" ?\\S+|\\s+(?!\\S)|\\s+"}, {NULL}},
    {SPLIT_BERT, {" ?\\p{HfPunctuation}| ?[^\\s\\p{HfPunctuation}]+|\\s+(?!\\S)|\\s+"}, {NULL}},
};
enum {
    N_PATTERNS = sizeof naive_patterns / sizeof *naive_patterns
};
const int naive_n_patterns = N_PATTERNS;

void naive_set_bit(uint64_t *bits, size_t i)
{
    bits[i / 64] |= (uint64_t)1 << i % 64;
}

bool naive_has_bit(const uint64_t *bits, size_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static const naive_regex *naive_regexes(int pattern)
{
    static naive_regex regexes[N_PATTERNS][5];
    const naive_pattern *p = &naive_patterns[pattern];
    for (int k = 4; k >= 0 && regexes[pattern][0].n_nodes == 0; k--) {
        const char *text = k < 3 ? p->of_text[k] : p->of_bytes[k - 3];
        if (text)
            naive_read(&regexes[pattern][k], text);
    }
    return regexes[pattern];
}

void naive_words(int pattern, const uint8_t *text, size_t n_bytes, uint64_t *starts)
{
    static naive_char chars[NAIVE_MAX_BYTES];
    static bool begins[NAIVE_MAX_BYTES];
    const naive_regex *regexes = naive_regexes(pattern);
    size_t n = naive_decode(text, n_bytes, chars);
    memset(starts, 0, (n_bytes / 64 + 1) * sizeof *starts);
    memset(begins, 0, sizeof begins);
    begins[0] = true;
    for (int k = 0; k < 3 && regexes[k].n_nodes > 0; k++)
        naive_split(&regexes[k], chars, n, begins);
    for (size_t i = 0; i < n; i++) {
        if (begins[i])
            naive_set_bit(starts, chars[i].offset);
    }
    if (regexes[3].n_nodes == 0)
        return;
    naive_bytes_to_chars(text, n_bytes, chars);
    for (size_t i = 0; i < n_bytes; i++)
        begins[i] = naive_has_bit(starts, i);
    for (int k = 3; k < 5; k++)
        naive_split(&regexes[k], chars, n_bytes, begins);
    for (size_t i = 0; i < n_bytes; i++) {
        if (begins[i])
            naive_set_bit(starts, i);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/split/expression_tree.h"

#include <stdio.h>
#include <string.h>

#include "base/json_parts.h"
#include "tokenizer/split/text_cursor.h"

enum {
    MAX_DEPTH = 60
};

/* Returns NOTHING; the parser then is at the end. */
uint32_t tree_fail(tree *t, const char *what)
{
    if (!t->failed)
        snprintf(t->err->why, sizeof t->err->why, "%s at byte %zu", what, t->at);
    t->failed = true;
    t->at = t->n_bytes;
    return 0;
}

static uint32_t add(tree *t, node_kind kind, uint32_t a, uint32_t b)
{
    if (t->n_nodes == MAX_NODES)
        return tree_fail(t, "it is too long");
    t->nodes[t->n_nodes] = (node){.kind = (uint8_t)kind, .a = a, .b = b};
    return t->n_nodes++;
}

static uint32_t add_range(tree *t, uint32_t from, uint32_t to)
{
    if (from > to || to > 0x10FFFF)
        return tree_fail(t, "a range of no characters");
    t->page_is_cut[from >> 7] = t->page_is_cut[to >> 7] = true;
    return add(t, RANGE, from, to);
}

static uint32_t add_ranges(tree *t, const uint32_t (*ranges)[2], size_t n)
{
    uint32_t all = add_range(t, ranges[0][0], ranges[0][1]);
    for (size_t i = 1; i < n; i++)
        all = add(t, UNION, all, add_range(t, ranges[i][0], ranges[i][1]));
    return all;
}
#define ADD_RANGES(t, ranges) add_ranges(t, ranges, sizeof(ranges) / sizeof *(ranges))

/* An expression that is one character of a set. */
static uint32_t add_set(tree *t, uint32_t set)
{
    uint32_t k = 0;
    const node *n = &t->nodes[set];
    for (; k < t->n_sets; k++) {
        const node *other = &t->nodes[t->sets[k]];
        if (n->kind == RANGE && other->kind == RANGE && n->a == other->a && n->b == other->b)
            break;
    }
    if (k == MAX_SETS)
        return tree_fail(t, "too many sets of characters");
    t->n_sets += k == t->n_sets;
    t->sets[k] = set;
    return add(t, SET, k, 0);
}

/* With (?i), letters in their other case too: two that are not ASCII fold to ASCII. */
static uint32_t add_folded(tree *t, uint32_t from, uint32_t to)
{
    uint32_t all = add_range(t, from, to);
    if (t->any_case && to >= 0x80)
        return tree_fail(t, "a character that is not ASCII after (?i)");
    for (uint32_t lower = 'a'; t->any_case && lower <= 'z'; lower++) {
        const uint32_t upper = lower - 32, long_form = lower == 's' ? 0x17F : 0x212A;
        if ((lower < from || lower > to) && (upper < from || upper > to))
            continue;
        all = add(t, UNION, all, add_range(t, lower, lower));
        all = add(t, UNION, all, add_range(t, upper, upper));
        if (lower == 's' || lower == 'k')
            all = add(t, UNION, all, add_range(t, long_form, long_form));
    }
    return all;
}

/* ---- Characters and sets ---- */

static bool is_next(const tree *t, const char *text)
{
    const size_t n = strlen(text);
    return t->n_bytes - t->at >= n && memcmp(t->text + t->at, text, n) == 0;
}

static bool take(tree *t, const char *text)
{
    const bool found = is_next(t, text);
    t->at += found ? strlen(text) : 0;
    return found;
}

static uint32_t take_char(tree *t)
{
    uint32_t code_point = 0;
    size_t n = 0;
    if (t->at < t->n_bytes)
        n = utf8_decode((const uint8_t *)t->text + t->at, t->n_bytes - t->at, &code_point);
    if (n == 0)
        return tree_fail(t, t->at < t->n_bytes ? "a byte that is not UTF-8" : "an unexpected end");
    t->at += n;
    return code_point;
}

/* Takes min to max digits. */
static uint32_t take_hex(tree *t, int min, int max)
{
    uint32_t value = 0;
    int n = 0;
    for (; n < max && t->at < t->n_bytes; n++, t->at++) {
        const uint8_t digit = json_hex_digits[(uint8_t)t->text[t->at]];
        if (digit == 0)
            break;
        value = value * 16 + digit - 1;
    }
    return n < min ? tree_fail(t, "too few hexadecimal digits") : value;
}

static const uint32_t titlecase[][2] = {
    {0x1C5, 0x1C5},   {0x1C8, 0x1C8},   {0x1CB, 0x1CB},   {0x1F2, 0x1F2},   {0x1F88, 0x1F8F},
    {0x1F98, 0x1F9F}, {0x1FA8, 0x1FAF}, {0x1FBC, 0x1FBC}, {0x1FCC, 0x1FCC}, {0x1FFC, 0x1FFC}};

/* Oniguruma's \w has six numbers that Rust's lacks, but not in a class. */
static const uint32_t word_numbers[][2] = {{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}};

enum {
    DECIMALS = 1 << CLASS_NUMBER,
    WORDS = 1 << CLASS_LETTER | 1 << CLASS_MARK | 1 << CLASS_NUMBER
};

/* Our table of \w and \d is Rust's, of a later version than Oniguruma's: it has characters that are
 * unassigned in that of classes, and two joiners, which Oniguruma's lacks. */
static uint32_t add_word(tree *t, uint32_t classes)
{
    const uint32_t set = add(t, TABLE, OF_WORD, classes);
    if (t->dialect != EXPRESSION_RUBY)
        return set;
    return add(t, BOTH, set, add(t, TABLE, OF_CLASS, 0x1FF & ~(1 << CLASS_OTHER)));
}

static uint32_t parse_property(tree *t, bool in_class)
{
    static const struct {
        const char *name;
        uint32_t table, classes;
    } known[] = {{"{L}", OF_CLASS, LETTERS},
                 {"{Ll}", OF_CLASS, LOWER},
                 {"{M}", OF_CLASS, MARKS},
                 {"{N}", OF_CLASS, NUMBERS},
                 {"{P}", OF_CLASS, 1 << CLASS_PUNCTUATION},
                 {"{S}", OF_CLASS, 1 << CLASS_SYMBOL},
                 {"{Lm}", OF_CLASS, 1 << CLASS_LETTER},
                 {"{Lo}", OF_CLASS, 1 << CLASS_LETTER},
                 {"{HfNumber}", OF_HF, HF_NUMBER},
                 {"{HfPunctuation}", OF_HF, HF_PUNCTUATION}};
    const bool cased = is_next(t, "{Lu}") || is_next(t, "{Lt}") || is_next(t, "{Ll}");
    if (t->any_case && (cased || in_class)) /* Oniguruma folds marks such as U+0345 to letters */
        return tree_fail(t, "this property after (?i)");
    if (take(t, "{Han}"))
        return add_ranges(t, unicode_han, UNICODE_N_HAN);
    if (take(t, "{Lt}"))
        return ADD_RANGES(t, titlecase);
    if (take(t, "{Lu}")) {
        const uint32_t upper = add(t, TABLE, OF_CLASS, UPPER), title = ADD_RANGES(t, titlecase);
        const uint32_t not_title = add(t, NOT, title, 0);
        return add(t, BOTH, upper, not_title);
    }
    t->half_letters |= is_next(t, "{Lm}") ? 1 : is_next(t, "{Lo}") ? 2 : 0;
    if (take(t, "{Nd}"))
        return add_word(t, DECIMALS);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((known[i].table != OF_HF || t->dialect == EXPRESSION_OWN) && take(t, known[i].name))
            return add(t, TABLE, known[i].table, known[i].classes);
    }
    return tree_fail(t, "an unknown property");
}

/* After a backslash. Returns a set; or 0 with *code_point. */
static uint32_t parse_escape(tree *t, bool in_class, uint32_t *code_point)
{
    const bool ruby = t->dialect == EXPRESSION_RUBY;
    static const uint32_t hex[][2] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    const uint32_t letter = *code_point = take_char(t), other = letter | 32;
    uint32_t set = 0;
    if (other == 's')
        set = add(t, TABLE, OF_CLASS, BLANKS);
    else if (other == 'd')
        set = add_word(t, DECIMALS);
    else if (other == 'h' && ruby)
        set = ADD_RANGES(t, hex);
    else if (other == 'p' && (letter == 'p' || !is_next(t, "{L") || is_next(t, "{L}")))
        set = parse_property(t, in_class);
    else if (other == 'w') {
        set = add_word(t, WORDS);
        if (ruby && !in_class)
            set = add(t, UNION, set, ADD_RANGES(t, word_numbers));
    }
    if (set != 0)
        return letter == other ? set : add(t, NOT, set, 0);
    static const char letters[] = "ntrfvae", controls[] = "\n\t\r\f\v\a\x1B";
    const char *control = letter < 0x80 && letter ? strchr(letters, (int)letter) : NULL;
    if (control && (ruby || letter != 'e')) {
        *code_point = (uint8_t)controls[control - letters];
    } else if (letter == 'x' && take(t, "{")) {
        *code_point = take_hex(t, 1, 8);
        if (!take(t, "}"))
            return tree_fail(t, "an unexpected character in \\x{}");
    } else if (letter == 'x') {
        *code_point = take_hex(t, ruby ? 1 : 2, 2);
        if (ruby && *code_point >= 0x80)
            return tree_fail(t, "a byte that is not ASCII");
    } else if (letter == 'u') {
        *code_point = take_hex(t, 4, 4);
    } else if (letter >= 0x80 || unicode_class_of(letter) == CLASS_NUMBER ||
               (is_of((character){.class = unicode_class_of(letter)}, LETTERS))) {
        t->at--;
        return tree_fail(t,
                         letter > '0' && letter <= '9' ? "a back-reference" : "an unknown escape");
    }
    return 0;
}

static uint32_t parse_class(tree *t, bool nested);

/* Parses an item of a class: a set, or a range of characters. */
static uint32_t parse_item(tree *t)
{
    uint32_t ends[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        uint32_t set = 0;
        const bool nested = take(t, "[");
        if (nested)
            set = parse_class(t, true);
        else if (take(t, "\\"))
            set = parse_escape(t, true, &ends[k]);
        else
            ends[k] = take_char(t);
        const bool range = is_next(t, "-") && !is_next(t, "-]") &&
                           (t->dialect != EXPRESSION_RUBY || !is_next(t, "-&&"));
        if (set != 0 && (k == 1 || (range && !nested)))
            return tree_fail(t, "a range with a set");
        if (set != 0 || t->failed)
            return set;
        if (k == 0 && !range)
            ends[++k] = ends[0];
        else if (k == 0 && t->dialect != EXPRESSION_RUBY && is_next(t, "--"))
            return tree_fail(t, "an unknown kind of class");
        else if (k == 0)
            t->at++;
    }
    return add_folded(t, ends[0], ends[1]);
}

static uint32_t parse_members(tree *t)
{
    uint32_t set = 0;
    const unsigned outer = t->half_letters;
    t->half_letters = 0;
    while (!t->failed && !is_next(t, "]") && !is_next(t, "&&")) {
        if (is_next(t, "[:") ||
            (t->dialect != EXPRESSION_RUBY && (is_next(t, "--") || is_next(t, "~~"))))
            return tree_fail(t, "an unknown kind of class");
        const uint32_t item = parse_item(t);
        set = set ? add(t, UNION, set, item) : item;
    }
    if (t->half_letters == 1 || t->half_letters == 2)
        return tree_fail(t, "one of \\p{Lm} and \\p{Lo} alone");
    t->half_letters = outer;
    if (set == 0)
        return tree_fail(t, "an empty class");
    if (t->any_case && is_next(t, "&&")) /* Oniguruma folds the whole class, once */
        return tree_fail(t, "&& in a class after (?i)");
    return take(t, "&&") ? add(t, BOTH, set, parse_members(t)) : set;
}

/* After its bracket. */
static uint32_t parse_class(tree *t, bool nested)
{
    const bool negated = take(t, "^"), in_negated = t->in_negated;
    if (++t->depth > MAX_DEPTH)
        return tree_fail(t, "too many nested classes");
    if (nested && t->any_case)
        return tree_fail(t, "a nested class after (?i)");
    if (negated && in_negated) /* Oniguruma's have members that they should not */
        return tree_fail(t, "a negated class in another one");
    t->in_negated |= negated;
    const uint32_t set = parse_members(t);
    t->in_negated = in_negated;
    t->depth--;
    if (!take(t, "]"))
        return tree_fail(t, "an open class");
    return negated ? add(t, NOT, set, 0) : set;
}

/* ---- Expressions ---- */

static bool may_be_empty(const tree *t, uint32_t i)
{
    const node *n = &t->nodes[i];
    if (n->kind == THEN)
        return may_be_empty(t, n->a) && may_be_empty(t, n->b);
    if (n->kind == OR)
        return may_be_empty(t, n->a) || may_be_empty(t, n->b);
    return n->kind != SET && (n->kind != REPEAT || n->min == 0 || may_be_empty(t, n->a));
}

static uint32_t parse_alternatives(tree *t);

/* A set, the end of the text, or one of these. */
static bool is_one_character(const tree *t, uint32_t i)
{
    const node *n = &t->nodes[i];
    return n->kind == SET || (n->kind == LOOK && !n->negated) ||
           (n->kind == OR && is_one_character(t, n->a) && is_one_character(t, n->b));
}

/* `before`, then i for any case and s (in Ruby m) for a dot that is a newline too, then `after`. */
static bool take_flags(tree *t, const char *before, const char *after)
{
    const size_t at = t->at;
    bool any_case = false, dot_all = false, more = take(t, before);
    while (more) {
        const bool i = take(t, "i"), s = take(t, t->dialect == EXPRESSION_RUBY ? "m" : "s");
        any_case |= i;
        dot_all |= s;
        more = i || s;
    }
    if ((any_case || dot_all) && take(t, after)) {
        t->any_case |= any_case;
        t->dot_all |= dot_all;
        return true;
    }
    t->at = at;
    return false;
}

/* After its parenthesis. */
static uint32_t parse_group(tree *t)
{
    const bool any_case = t->any_case, dot_all = t->dot_all, keeps_flags = t->keeps_flags;
    const bool ahead = is_next(t, "?="), not_ahead = is_next(t, "?!");
    const bool ends_flags = take(t, "?:") || take_flags(t, "?", ":");
    if (ahead || not_ahead)
        t->at += 2;
    else if (is_next(t, "?") && !ends_flags)
        return tree_fail(t, "an unknown kind of group");
    t->keeps_flags = t->dialect == EXPRESSION_RUST && !ends_flags;
    if (++t->depth > MAX_DEPTH)
        return tree_fail(t, "too many nested groups");
    uint32_t inner = parse_alternatives(t);
    t->depth--;
    t->any_case = any_case;
    t->dot_all = dot_all;
    t->keeps_flags = keeps_flags;
    if (!take(t, ")"))
        return tree_fail(t, "an open group");
    if ((ahead || not_ahead) && !is_one_character(t, inner))
        return tree_fail(t, "a look-ahead of more than one character");
    if (ahead || not_ahead) {
        inner = add(t, LOOK, inner, 0);
        t->nodes[inner].negated = not_ahead;
    }
    return inner;
}

/* `$` and \z; Ruby's `$` and \Z are before a newline too. */
static uint32_t add_end(tree *t, bool before_newline)
{
    const uint32_t look =
        add(t, LOOK, before_newline ? add_set(t, add_range(t, '\n', '\n')) : 0, 0);
    t->nodes[look].end_too = true;
    return look;
}

static uint32_t parse_atom(tree *t)
{
    uint32_t code_point = 0, set = 0;
    const size_t at = t->at;
    if (take(t, "("))
        return parse_group(t);
    if (take(t, "$"))
        return add_end(t, t->dialect == EXPRESSION_RUBY);
    if (take(t, "\\z"))
        return add_end(t, false);
    if (take(t, "["))
        set = parse_class(t, false);
    else if (take(t, "."))
        set = t->dot_all ? add_range(t, 0, 0x10FFFF) : add(t, NOT, add_range(t, '\n', '\n'), 0);
    else if (take(t, "\\"))
        set = parse_escape(t, false, &code_point);
    else
        code_point = take_char(t);
    if (t->text[at] != '\\' && code_point > 0 && code_point < 0x80 &&
        strchr("*+?{^)", (int)code_point))
        return tree_fail(t, "an unexpected character");
    if (t->half_letters != 0)
        return tree_fail(t, "one of \\p{Lm} and \\p{Lo} alone");
    /* Oniguruma folds some pairs of letters into one character, such as \uFB06 for st. */
    const char letter =
        set == 0 && t->any_case && code_point < 0x80 ? (char)(code_point | 32) : ' ';
    if (t->dialect == EXPRESSION_RUBY && strchr("sf", t->letter) && strchr("sftil", letter))
        return tree_fail(t, "letters that fold into one after (?i)");
    t->letter = letter;
    return t->failed ? 0 : add_set(t, set ? set : add_folded(t, code_point, code_point));
}

static uint32_t take_number(tree *t, uint32_t if_none)
{
    uint32_t value = 0;
    const size_t begin = t->at;
    for (; t->at < t->n_bytes && t->text[t->at] >= '0' && t->text[t->at] <= '9'; t->at++)
        value = value < MAX_BOUND ? value * 10 + (uint32_t)(t->text[t->at] - '0') : value;
    return t->at == begin ? if_none : value;
}

/* false: there is none. */
static bool parse_bounds(tree *t, node *repeat)
{
    const bool ruby = t->dialect == EXPRESSION_RUBY;
    bool exact = false, interval = false;
    if (take(t, "*"))
        *repeat = (node){.min = 0, .max = NO_LIMIT};
    else if (take(t, "+"))
        *repeat = (node){.min = 1, .max = NO_LIMIT};
    else if (take(t, "?"))
        *repeat = (node){.min = 0, .max = 1};
    else if (take(t, "{")) {
        const uint32_t min = take_number(t, ruby && is_next(t, ",") ? 0 : NO_LIMIT);
        exact = !take(t, ",");
        const uint32_t max = exact ? min : take_number(t, NO_LIMIT);
        interval = true;
        *repeat = (node){.min = (uint16_t)min, .max = (uint16_t)max};
        if (!take(t, "}") || min > max || min >= MAX_BOUND ||
            (max >= MAX_BOUND && max != NO_LIMIT) || max == 0)
            tree_fail(t, "unknown bounds of a repeat");
    } else {
        return false;
    }
    if (!(ruby && interval && exact)) /* there {n}? is an optional group */
        repeat->lazy = take(t, "?");
    if (!(ruby && interval) && !repeat->lazy) /* there {n,m}+ is a repeat of the group */
        repeat->possessive = take(t, "+");
    return true;
}

static uint32_t parse_repeats(tree *t)
{
    uint32_t i = parse_atom(t);
    node repeat;
    for (int n = 0; !t->failed && parse_bounds(t, &repeat); n++) {
        const uint32_t inner = i;
        if (n > 0 && t->dialect != EXPRESSION_RUBY)
            return tree_fail(t, "a repeat of a repeat");
        if (may_be_empty(t, inner))
            return tree_fail(t, "a repeat of what may be nothing");
        if (repeat.possessive && t->nodes[inner].kind != SET)
            return tree_fail(t, "a possessive repeat of a group");
        i = add(t, REPEAT, inner, 0);
        repeat.kind = REPEAT;
        repeat.a = inner;
        t->nodes[i] = repeat;
    }
    return i;
}

static uint32_t parse_alternatives(tree *t)
{
    const bool any_case = t->any_case, dot_all = t->dot_all;
    uint32_t i = 0;
    if (take_flags(t, "(?", ")") && t->keeps_flags)
        return tree_fail(t, "flags that go on after this group; write (?i:...)");
    while (t->at < t->n_bytes && !is_next(t, "|") && !is_next(t, ")")) {
        const uint32_t next = parse_repeats(t);
        i = i ? add(t, THEN, i, next) : next;
    }
    if (take(t, "|")) {
        t->letter = ' ';
        if (++t->n_alternatives > MAX_ALTERNATIVES)
            return tree_fail(t, "too many alternatives");
        i = add(t, OR, i, parse_alternatives(t));
    }
    t->any_case = any_case;
    t->dot_all = dot_all;
    return i;
}

static uint32_t parse_text(tree *t)
{
    uint32_t i = 0;
    while (t->at < t->n_bytes) {
        const uint32_t code_point = take_char(t);
        const uint32_t next = add_set(t, add_range(t, code_point, code_point));
        i = i ? add(t, THEN, i, next) : next;
    }
    return i;
}

uint32_t tree_parse(tree *t)
{
    add(t, NOTHING, 0, 0);
    t->letter = ' ';
    const uint32_t root = t->dialect == EXPRESSION_TEXT ? parse_text(t) : parse_alternatives(t);
    if (!t->failed && t->at < t->n_bytes)
        tree_fail(t, "an unexpected character");
    if (!t->failed && may_be_empty(t, root))
        tree_fail(t, "it may match nothing, which ends");
    return root;
}

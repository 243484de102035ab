#include "tokenizer/split/known_regex.h"

#include <stdbool.h>
#include <string.h>

/* An expression is a list of alternatives, and what matters is their order and what each of them
 * matches. So each alternative has one or several spellings that match the same at every place,
 * separated by spaces that are not part of them: a space itself is written \x20 here.
 *
 * - `'(?i:[sdmt]|ll|ve|re)` is `(?i:'s|'t|'re|'ve|'m|'ll|'d)`: both know U+017F as an s.
 *   `'[sS]|...` does not, and is not known.
 * - Possessive forms: what follows the run never begins with a character of the run, so giving back
 *   would not help. (`\p{N}{1,3}+` is not known: for Oniguruma it is a repetition of groups.)
 * - `\s*[\r\n]` ends at the last newline of the blanks, as `\s*[\r\n]+` does.
 * - After `\s+(?!\S)` has failed a single blank is left, so `\s` is `\s+`. `\s++$` before it takes
 *   what `\s+(?!\S)` would take at the end of the text; where newlines have an alternative of
 *   their own (cl100k) it would change words, so it is known for GPT-2 only. */
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d) '(?i:[sdmt]|ll|ve|re)"
#define LETTERS                                                                                    \
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+ [^\\r\\n\\p{L}\\p{N}]?+\\p{L}+ [^\\r\\n\\p{L}\\p{N}]?+\\p{L}++"
#define OTHERS                                                                                     \
    "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n]* \\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]* "                      \
    "\\x20?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+"
#define NEWLINES "\\s*[\\r\\n]+ \\s*[\\r\\n]"
#define BLANKS "\\s+(?!\\S)|\\s+ \\s+(?!\\S)|\\s"

/* o200k and tekken: a word is upper case letters, then lower case ones; either may be missing. */
#define BEFORE "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define OTHERS_AND_SLASH "\\x20?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"

#define MAX_ALTERNATIVES 8

typedef struct expression {
    known_regex regex;
    const char *alternatives[MAX_ALTERNATIVES]; /* ended by NULL */
} expression;

static const expression expressions[] = {
    {REGEX_GPT2,
     {"'s|'t|'re|'ve|'m|'ll|'d '(?:[sdmt]|ll|ve|re)",
      "\\x20?\\p{L}+ \\x20?\\p{L}++ \\x20?[\\p{L}]+",
      "\\x20?\\p{N}+ \\x20?\\p{N}++ \\x20?[\\p{N}]+",
      "\\x20?[^\\s\\p{L}\\p{N}]+ \\x20?[^\\s\\p{L}\\p{N}]++", BLANKS " \\s++$|\\s+(?!\\S)|\\s"}},
    {REGEX_CL100K, {CONTRACTIONS, LETTERS, "\\p{N}{1,3}", OTHERS, NEWLINES, BLANKS}},
    {REGEX_QWEN2, {CONTRACTIONS, LETTERS, "\\p{N}", OTHERS, NEWLINES, BLANKS}},
    {REGEX_QWEN35,
     {CONTRACTIONS, "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+", "\\p{N}",
      "\\x20?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*", NEWLINES, BLANKS}},
    {REGEX_O200K,
     {BEFORE UPPER "*" LOWER "+" SUFFIX, BEFORE UPPER "+" LOWER "*" SUFFIX, "\\p{N}{1,3}",
      OTHERS_AND_SLASH, NEWLINES, BLANKS}},
    {REGEX_TEKKEN,
     {BEFORE UPPER "*" LOWER "+", BEFORE UPPER "+" LOWER "*", "\\p{N}", OTHERS_AND_SLASH, NEWLINES,
      BLANKS}},
    {REGEX_NUMBERS, {"\\p{N}{1,3}"}},
    {REGEX_CJK, {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"}},
    {REGEX_DEEPSEEK_WORDS,
     {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+",
      "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+", "\\x20?[\\p{P}\\p{S}]+[\\r\\n]*",
      "\\s*[\\r\\n]+", "\\s+(?!\\S)|\\s+"}},
    {REGEX_DIGITS, {"[0-9][0-9][0-9]"}},
};

/* Compares with what a file has, where a newline may stand for \n. The bytes of the text that the
 * spelling covers, or 0. */
static size_t match_spelling(const char *spelling, size_t n_spelling, const char *text,
                             size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_spelling; i++, n++) {
        const bool escape = spelling[i] == '\\' && i + 1 < n_spelling;
        if (n == n_bytes)
            return 0;
        if (escape && strncmp(spelling + i, "\\x20", 4) == 0 && text[n] == ' ')
            i += 3;
        else if (escape && ((spelling[i + 1] == 'r' && text[n] == '\r') ||
                            (spelling[i + 1] == 'n' && text[n] == '\n')))
            i++;
        else if (spelling[i] != text[n])
            return 0;
    }
    return n;
}

/* The bytes of the text that are the alternative, up to a bar or the end; 0: none. */
static size_t match_alternative(const char *spellings, const char *text, size_t n_bytes)
{
    while (*spellings) {
        const size_t n_spelling = strcspn(spellings, " ");
        const size_t n = match_spelling(spellings, n_spelling, text, n_bytes);
        if (n > 0 && (n == n_bytes || text[n] == '|'))
            return n;
        spellings += n_spelling;
        spellings += *spellings == ' ';
    }
    return 0;
}

static bool matches(const expression *e, const char *text, size_t n_bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < MAX_ALTERNATIVES && e->alternatives[i]; i++) {
        if (i > 0 && (at == n_bytes || text[at++] != '|'))
            return false;
        const size_t n = match_alternative(e->alternatives[i], text + at, n_bytes - at);
        if (n == 0)
            return false;
        at += n;
    }
    return at == n_bytes;
}

known_regex known_regex_find(const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        if (matches(&expressions[i], text, n_bytes))
            return expressions[i].regex;
    }
    return REGEX_UNKNOWN;
}

split_pattern known_regex_split(known_regex regex)
{
    switch (regex) {
    case REGEX_GPT2:
        return SPLIT_GPT2;
    case REGEX_CL100K:
        return SPLIT_CL100K;
    case REGEX_QWEN2:
        return SPLIT_QWEN2;
    case REGEX_QWEN35:
        return SPLIT_QWEN35;
    case REGEX_O200K:
        return SPLIT_O200K;
    case REGEX_TEKKEN:
        return SPLIT_TEKKEN;
    default:
        return SPLIT_N_PATTERNS;
    }
}

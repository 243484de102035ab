#include "report/write.h"

#include <math.h>
#include <string.h>

/* ---- Numbers ---- */

/* Digits of a whole number, in groups of three. */
static void group_digits(char *to, size_t n_to, double whole)
{
    char digits[40];
    const int n = snprintf(digits, sizeof digits, "%.0f", whole);
    const int first = digits[0] == '-';
    size_t used = 0;
    for (int i = 0; i < n && used + 2 < n_to; i++) {
        if (i > first && (n - i) % 3 == 0)
            to[used++] = ',';
        to[used++] = digits[i];
    }
    to[used] = 0;
}

report_number report_format(double value)
{
    report_number number;
    if (fabs(value) >= 999.5 && fabs(value) < 1e15)
        group_digits(number.s, sizeof number.s, value);
    else
        snprintf(number.s, sizeof number.s, "%.3g", value);
    return number;
}

report_number report_format_short(double value)
{
    static const char letters[] = "MGT";
    int i = 0;
    if (!(fabs(value) >= 999500) || fabs(value) >= 1e15)
        return report_format(value);
    for (value /= 1e6; fabs(value) >= 999.5 && i < 2; i++)
        value /= 1000;
    report_number number = report_format(value);
    const char letter[] = {' ', letters[i], 0};
    strncat(number.s, letter, sizeof number.s - strlen(number.s) - 1);
    return number;
}

report_number report_format_percent(double part)
{
    report_number number = report_format(100 * part);
    strncat(number.s, " %", sizeof number.s - strlen(number.s) - 1);
    return number;
}

report_number report_format_range(double min, double max)
{
    report_number range;
    snprintf(range.s, sizeof range.s, "%.28s .. %.28s", report_format(min).s, report_format(max).s);
    return range;
}

report_number report_format_tick(double value)
{
    static const char *const small[] = {
        "\xe2\x81\xb0", "\xc2\xb9",     "\xc2\xb2",     "\xc2\xb3",     "\xe2\x81\xb4",
        "\xe2\x81\xb5", "\xe2\x81\xb6", "\xe2\x81\xb7", "\xe2\x81\xb8", "\xe2\x81\xb9"};
    const int exponent = (int)lround(log10(value));
    const bool power = fabs(value / pow(10, exponent) - 1) < 1e-9;
    if (!power || (exponent >= -3 && exponent <= 4))
        return report_format(value);
    report_number number = {"10"};
    char digits[16];
    snprintf(digits, sizeof digits, "%d", exponent);
    for (const char *d = digits; *d; d++)
        strncat(number.s, *d == '-' ? "\xe2\x81\xbb" : small[*d - '0'],
                sizeof number.s - strlen(number.s) - 1);
    return number;
}

/* ---- Escapes ---- */

void report_put_html(FILE *out, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            putc(*s, out);
        }
    }
}

void report_put_markdown(FILE *out, const char *s)
{
    for (; *s; s++) {
        if (*s == '&')
            fputs("&amp;", out);
        else if (*s == '<')
            fputs("&lt;", out);
        else if (strchr("\\`*_[]|~$", *s))
            fprintf(out, "\\%c", *s);
        else
            putc(*s, out);
    }
}

/* ---- Fitting ---- */

static size_t character_bytes(const char *s, size_t n)
{
    size_t length = 1;
    while (length < n && ((unsigned char)s[length] & 0xc0) == 0x80)
        length++;
    return length;
}

/* In ems, those of a wide font: an estimate that is too small would let texts overlap. */
static double character_width(const char *s)
{
    if ((unsigned char)*s >= 0x80)
        return 1;
    if (strchr("ijlI|'.,:; ", *s))
        return 0.34;
    if (strchr("ftr()[]/\\-!\"`", *s))
        return 0.42;
    if (strchr("mwMW%@", *s))
        return 0.99;
    return strchr("ABCDEFGHJKLNOPQRSTUVXYZ=+<>#~^&", *s) ? 0.84 : 0.65;
}

double report_text_width(const char *s, size_t n_bytes, double font)
{
    double ems = 0;
    for (size_t i = 0; i < n_bytes; i += character_bytes(s + i, n_bytes - i))
        ems += character_width(s + i);
    return ems * font;
}

/* Bytes of s that fit; all of a word, unless the line has no other. */
static size_t fit(const char *s, double width, double font)
{
    const size_t n = strlen(s);
    size_t at = 0, words = 0;
    double used = 0;
    while (at < n) {
        const size_t length = character_bytes(s + at, n - at);
        used += report_text_width(s + at, length, font);
        if (used > width && at)
            break;
        if (s[at] == ' ')
            words = at;
        at += length;
    }
    return at == n || words == 0 || s[at] == ' ' ? at : words;
}

int report_wrap(const char *s, double width, double font, report_line lines[REPORT_MAX_LINES])
{
    int n_lines = 0;
    do {
        const bool last = n_lines == REPORT_MAX_LINES - 1;
        size_t n = fit(s, width, font);
        const bool cut = last && s[n] != 0;
        if (cut)
            n = fit(s, width - 2 * font, font);
        lines[n_lines++] = (report_line){s, n, cut};
        s += n;
        while (*s == ' ')
            s++;
    } while (*s && n_lines < REPORT_MAX_LINES);
    return n_lines;
}

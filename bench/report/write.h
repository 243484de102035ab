/* write.h - text of a report: escaped, numbers for people, lines that fit. */
#ifndef TOKMAP_REPORT_WRITE_H
#define TOKMAP_REPORT_WRITE_H

#include <stddef.h>
#include <stdio.h>

#include "report/data.h"

typedef struct report_number {
    char s[64];
} report_number;

/* Three digits, all of them from a thousand on: 0.00167, 31, 453, 92,884. */
report_number report_format(double value);
/* The same with a letter from a million on: "7.1 G". For drawings. */
report_number report_format_short(double value);
/* "66.8 %" */
report_number report_format_percent(double part);
/* "31 .. 34.5" */
report_number report_format_range(double min, double max);
/* A mark of an axis: 0.01, 5, 2,000, and powers of ten beyond as 10 with a small exponent. */
report_number report_format_tick(double value);

/* For text and for attribute values in quotes, in HTML and in XML. */
void report_put_html(FILE *out, const char *s);
/* For a cell of a table: what Markdown or HTML would take for itself is escaped. */
void report_put_markdown(FILE *out, const char *s);

/* ---- Fitting text into a drawing, where nothing can be measured ---- */

/* Pixels that the text needs at most in the usual fonts of one em = `font` pixels. */
double report_text_width(const char *s, size_t n_bytes, double font);

typedef struct report_line {
    const char *s;
    size_t n_bytes;
    bool cut; /* more would follow that has no place: show "..." */
} report_line;

enum {
    REPORT_MAX_LINES = 4
};

/* Breaks s at spaces into lines of at most `width` pixels; returns their number, at least 1. */
int report_wrap(const char *s, double width, double font, report_line lines[REPORT_MAX_LINES]);

#endif /* TOKMAP_REPORT_WRITE_H */

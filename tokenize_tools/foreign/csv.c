/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - the table beside an OLMo file, with one line for each document:
 * `start,end[,id,source,place]` in tokens, half open. Only the first two columns are read; the
 * others may be quoted and contain anything. */
#include "foreign/foreign.h"

#include <inttypes.h>

static bool refuse_line(const foreign_csv *csv, failure *err)
{
    return fail(err, "has a damaged .csv.gz: line %" PRIu64 " is not `start,end,...`",
                csv->line + 1);
}

static bool is_line_start(const foreign_csv *csv)
{
    return csv->column == 0 && !csv->has_digits;
}

static bool end_column(foreign_csv *csv, failure *err)
{
    if (csv->column < 2 && !csv->has_digits)
        return refuse_line(csv, err);
    csv->has_digits = false;
    csv->column += csv->column < 2;
    return true;
}

static bool end_line(foreign_csv *csv, const foreign_sink *sink, failure *err)
{
    const uint64_t begin = csv->range[0], end = csv->range[1];
    if (!is_line_start(csv)) {
        if (!end_column(csv, err))
            return false;
        if (csv->column < 2)
            return refuse_line(csv, err);
        if (begin != csv->end || end < begin || end > csv->n_tokens) {
            return fail(err,
                        "does not fit its .csv.gz: line %" PRIu64 " has the tokens %" PRIu64
                        " to %" PRIu64 ", after token %" PRIu64 " of %" PRIu64
                        "; lines must cover all tokens in order. Use --eod to ignore it",
                        csv->line + 1, begin, end, csv->end, csv->n_tokens);
        }
        csv->end = end;
        if (!sink->document(sink->user, end - begin))
            return false;
    }
    csv->range[0] = csv->range[1] = 0;
    csv->column = 0;
    csv->line++;
    return true;
}

static bool feed_digit(foreign_csv *csv, char c, failure *err)
{
    uint64_t *number = &csv->range[csv->column];
    if (c < '0' || c > '9' || __builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(c - '0'), number))
        return refuse_line(csv, err);
    csv->has_digits = true;
    return true;
}

static bool feed_char(foreign_csv *csv, char c, const foreign_sink *sink, failure *err)
{
    /* A doubled quote inside quotes leaves and enters them again, which has the same effect. */
    if (c == '"' && csv->column >= 2) {
        csv->in_quotes = !csv->in_quotes;
        return true;
    }
    if (csv->in_quotes)
        return true;
    if (c == '\n')
        return end_line(csv, sink, err);
    if (c == '\r')
        return true;
    if (c == ',')
        return end_column(csv, err);
    return csv->column >= 2 || feed_digit(csv, c, err);
}

bool foreign_csv_feed(foreign_csv *csv, const char *text, size_t n_bytes, const foreign_sink *sink,
                      failure *err)
{
    for (size_t i = 0; i < n_bytes; i++)
        if (!feed_char(csv, text[i], sink, err))
            return false;
    return true;
}

bool foreign_csv_end(foreign_csv *csv, const foreign_sink *sink, failure *err)
{
    if (csv->in_quotes)
        return refuse_line(csv, err);
    if (!is_line_start(csv) && !end_line(csv, sink, err))
        return false;
    if (csv->end != csv->n_tokens)
        return fail(err,
                    "does not fit its .csv.gz, which ends at token %" PRIu64 " of %" PRIu64
                    ". Use --eod to ignore it",
                    csv->end, csv->n_tokens);
    return true;
}

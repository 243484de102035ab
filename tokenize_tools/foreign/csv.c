/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - the table beside an OLMo file, with one row for each document:
 * `start,end[,id,source,place]` in tokens, half open. Only the first two columns are read; the
 * others may be quoted and contain anything. */
#include "foreign/foreign.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"

static bool refuse_row(const foreign_csv *csv, failure *err)
{
    return fail(err, "has a damaged .csv.gz: line %" PRIu64 " is not `start,end,...`",
                csv->n_rows + 1);
}

/* Returns what follows the column, from its comma on; NULL if the column is not a number. */
static const char *read_column(const char *at, const char *end, uint64_t *number)
{
    const char *comma = memchr(at, ',', (size_t)(end - at));
    comma = comma ? comma : end;
    return number_read_digits(at, (size_t)(comma - at), number) ? comma : NULL;
}

bool foreign_csv_line(foreign_csv *csv, const char *line, size_t n_bytes, const foreign_sink *sink,
                      failure *err)
{
    const char *at = line, *end = line + n_bytes;
    uint64_t first = 0, last = 0;
    if (n_bytes > 0 && end[-1] == '\r')
        end--;
    if (!csv->in_quotes && at < end) {
        at = read_column(at, end, &first);
        at = at && at < end ? read_column(at + 1, end, &last) : NULL;
        if (!at)
            return refuse_row(csv, err);
        if (first != csv->end || last < first || last > csv->n_tokens)
            return fail(err,
                        "does not fit its .csv.gz: line %" PRIu64 " has the tokens %" PRIu64
                        " to %" PRIu64 ", after token %" PRIu64 " of %" PRIu64
                        "; lines must cover all tokens in order. Use --eod to ignore it",
                        csv->n_rows + 1, first, last, csv->end, csv->n_tokens);
        csv->end = last;
        if (!sink->document(sink->user, last - first))
            return false;
    }
    /* A doubled quote inside quotes leaves and enters them again, which has the same effect. */
    for (; at < end; at++)
        csv->in_quotes ^= *at == '"';
    csv->n_rows += !csv->in_quotes;
    return true;
}

bool foreign_csv_end(const foreign_csv *csv, failure *err)
{
    if (csv->in_quotes)
        return refuse_row(csv, err);
    if (csv->end != csv->n_tokens)
        return fail(err,
                    "does not fit its .csv.gz, which ends at token %" PRIu64 " of %" PRIu64
                    ". Use --eod to ignore it",
                    csv->end, csv->n_tokens);
    return true;
}

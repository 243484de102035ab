/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/corpus_options.h"

#include <string.h>

bool corpus_options_part(const corpus_options *o, size_t n_names, size_t which, input_part *part)
{
    *part = (input_part){0};
    if (which == 0)
        part->begin = o->begin;
    part->has_end = o->has_end && which == n_names - 1;
    if (part->has_end)
        part->end = o->end;
    return part->has_end || part->begin.offset || part->begin.row;
}

bool corpus_options_want_row(const corpus_options *o)
{
    return o->fields &&
           field_list_find(o->fields, FIELD_ROW, strlen(FIELD_ROW)) < o->fields->n_fields;
}

static const char *wrong_part(const corpus_options *o, size_t n_names, size_t which)
{
    input_part part;
    const corpus_format format = o->formats ? o->formats[which] : CORPUS_AUTO;
    if (!corpus_options_part(o, n_names, which, &part))
        return NULL;
    if (part.has_end && (part.end.offset < part.begin.offset || part.end.row < part.begin.row))
        return "the part of an input ends before it begins";
    if (format == CORPUS_PARQUET)
        return NULL;
    if (format != CORPUS_LINES && format != CORPUS_JSON_LINES)
        return "an input of this format cannot be read in parts";
    return corpus_options_want_row(o) ? "the numbers of rows are not known in a part of a text file"
                                      : NULL;
}

const char *corpus_options_wrong(const corpus_options *o, size_t n_names)
{
    if (o->on_error == ON_ERROR_COLLECT && !o->collect)
        return "there is no collect function";
    if (o->separator && o->separator_bytes == 0)
        return "the separator is empty";
    const char *wrong = n_names ? wrong_part(o, n_names, 0) : NULL;
    return wrong || n_names < 2 ? wrong : wrong_part(o, n_names, n_names - 1);
}

corpus_options corpus_options_complete(const corpus_options *options)
{
    corpus_options o = *options;
    o.separator_bytes = o.separator ? o.separator_bytes : 0;
    o.batch_bytes = o.batch_bytes ? o.batch_bytes : (size_t)1024 * 1024;
    o.max_piece_bytes = o.max_piece_bytes ? o.max_piece_bytes : (size_t)16 * 1024 * 1024;
    /* One character must fit. */
    o.batch_bytes = o.batch_bytes < 4 ? 4 : o.batch_bytes;
    if (o.max_piece_bytes < o.batch_bytes)
        o.max_piece_bytes = o.batch_bytes;
    if (o.max_piece_bytes > SIZE_MAX / 8) /* so that sums with it do not overflow */
        o.max_piece_bytes = SIZE_MAX / 8;
    return o;
}

#include "corpus/corpus_part.h"

#include <stdio.h>
#include <string.h>

#include "system/files.h"

bool corpus_part_find(const corpus_options *o, size_t n_names, size_t which, input_part *part)
{
    *part = (input_part){0};
    if (which == 0)
        part->begin = o->begin;
    part->has_end = o->has_end && which == n_names - 1;
    if (part->has_end)
        part->end = o->end;
    return part->has_end || part->begin.offset || part->begin.row;
}

static const char *wrong_part(const corpus_options *o, size_t n_names, size_t which)
{
    input_part part;
    const corpus_format format = o->formats ? o->formats[which] : CORPUS_AUTO;
    const field_list *f = o->fields;
    if (!corpus_part_find(o, n_names, which, &part))
        return NULL;
    if (part.has_end && (part.end.offset < part.begin.offset || part.end.row < part.begin.row))
        return "the part of an input ends before it begins";
    if (format == CORPUS_PARQUET)
        return NULL;
    if (format != CORPUS_LINES && format != CORPUS_JSON_LINES)
        return "an input of this format cannot be read in parts";
    if (f && field_list_find(f, FIELD_ROW, strlen(FIELD_ROW)) < f->n_fields)
        return "the numbers of rows are not known in a part of a text file";
    return NULL;
}

const char *corpus_part_wrong(const corpus_options *o, size_t n_names)
{
    const char *wrong = n_names ? wrong_part(o, n_names, 0) : NULL;
    return wrong || n_names < 2 ? wrong : wrong_part(o, n_names, n_names - 1);
}

bool corpus_part_end(const char *name, corpus_end *end, corpus_error *err)
{
    file_facts facts;
    const int sys_errno = file_describe_input(name, &facts);
    if (sys_errno) {
        *err = (corpus_error){.sys_errno = sys_errno};
        snprintf(err->text, sizeof err->text, "%.200s: %s", name, strerror(sys_errno));
        return false;
    }
    end->stored_bytes = facts.n_bytes;
    end->checksum = 0; /* not known */
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/options.h"

#include <string.h>

bool reader_options_want_row(const reader_options *o)
{
    return o->fields &&
           field_list_find(o->fields, FIELD_ROW, strlen(FIELD_ROW)) < o->fields->n_fields;
}

reader_options reader_options_complete(const reader_options *options)
{
    reader_options o = *options;
    o.separator_bytes = o.separator ? o.separator_bytes : 0;
    o.max_document = o.max_document ? o.max_document : CORPUS_MAX_DOCUMENT;
    return o;
}

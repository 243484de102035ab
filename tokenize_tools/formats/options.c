/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/options.h"

#include <string.h>

bool corpus_options_want_row(const corpus_options *o)
{
    return o->fields &&
           field_list_find(o->fields, FIELD_ROW, strlen(FIELD_ROW)) < o->fields->n_fields;
}

corpus_options corpus_options_complete(const corpus_options *options)
{
    corpus_options o = *options;
    o.separator_bytes = o.separator ? o.separator_bytes : 0;
    o.batch_bytes = o.batch_bytes ? o.batch_bytes : (size_t)1024 * 1024;
    o.max_document = o.max_document ? o.max_document : CORPUS_MAX_DOCUMENT;
    return o;
}

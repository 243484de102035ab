/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/options.h"

#include <string.h>

const cli_word pack_formats[] = {
    {"auto", CORPUS_AUTO,
     "parquet and arrow by their first bytes; jsonl if the first line is a JSON object with the "
     "field, otherwise text; refuses files that look like neither (archives, images, JSON arrays, "
     "UTF-16, ...), text whose name says something else, and text beside records"},
    {"text", CORPUS_TEXT, "each file is one document"},
    {"lines", CORPUS_LINES, "each line is one document"},
    {"jsonl", CORPUS_JSON_LINES, "each line is a JSON object; one field of it is the document"},
    {"arrow", CORPUS_ARROW, "Arrow IPC: each row is a document; one column of it is the text"},
    {"parquet", CORPUS_PARQUET, "Parquet: each row is a document; one column of it is the text"},
    {NULL},
};
const cli_word pack_utf8_words[] = {
    {"replace", UTF8_REPLACE, "replace each invalid sequence with U+FFFD"},
    {"error", UTF8_ERROR, "treat the document as bad"},
    {"raw", UTF8_RAW, "keep them, for tokenizers that work on bytes"},
    {NULL},
};
const cli_word pack_on_error_words[] = {
    {"fail", ON_ERROR_FAIL, "stop the run"},
    {"skip", ON_ERROR_SKIP, "leave it out"},
    {"collect", ON_ERROR_COLLECT, "leave it out, and save it unchanged to a file"},
    {NULL},
};

void pack_split_prefix(char prefix[PATH_PREFIX_BYTES], const pack_options *options, size_t split)
{
    /* The length was checked when the options were parsed. */
    char *end = stpcpy(prefix, options->prefix);
    *end = '-';
    strcpy(end + 1, options->splits[split].name);
}

corpus_options pack_corpus_options(const pack_options *o)
{
    return (corpus_options){
        .format = o->format,
        .field = o->field,
        .separator = o->separator,
        .separator_bytes = o->separator_bytes,
        .utf8 = o->utf8,
        .utf8_given = o->utf8_given,
        .on_error = o->on_error,
        .fields = o->fields.n_fields ? &o->fields : NULL,
        .n_kept = o->n_kept,
        .where = o->where,
        .max_piece_bytes = o->memory / 8,
        .page_memory = o->memory / 4 * o->n_threads,
        .memory_option = o->memory,
    };
}

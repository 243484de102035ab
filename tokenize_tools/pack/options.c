#include "pack/options.h"

#include <string.h>

const char *const pack_formats[PACK_N_FORMATS] = {
    [CORPUS_AUTO] = "auto",
    [CORPUS_TEXT] = "text",
    [CORPUS_LINES] = "lines",
    [CORPUS_JSON_LINES] = "jsonl",
};
const char *const pack_utf8_words[PACK_N_UTF8_WORDS] = {
    [UTF8_REPLACE] = "replace",
    [UTF8_ERROR] = "error",
    [UTF8_RAW] = "raw",
};
const char *const pack_on_error_words[PACK_N_ON_ERROR_WORDS] = {
    [ON_ERROR_FAIL] = "fail",
    [ON_ERROR_SKIP] = "skip",
    [ON_ERROR_COLLECT] = "collect",
};

void pack_split_prefix(char prefix[PATH_PREFIX_BYTES], const pack_options *options, size_t split)
{
    /* The length was checked when the options were parsed. */
    char *end = stpcpy(prefix, options->prefix);
    *end = '-';
    strcpy(end + 1, options->splits[split].name);
}

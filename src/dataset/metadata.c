/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.c - what the library reads in the metadata: whether datasets have the same tokenizer,
 * and which ids a dataset had before it was redacted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/error.h"
#include "base/json_parts.h"
#include "base/json_text.h"
#include "dataset/dataset.h"

static bool is_same(json_text_span a, json_text_span b)
{
    return a.n_bytes == b.n_bytes && memcmp(a.text, b.text, a.n_bytes) == 0;
}

/* Returns the value of a key of an object; n_bytes is 0 if there is none. */
static json_text_span find_value(json_text_span object, const char *key)
{
    json_text_span value = {"", 0};
    json_text_find(object, key, &value);
    return value;
}

/* Finds nothing in metadata that is not a JSON object. */
static json_text_span find_in_metadata(const tokmap_dataset *ds, const char *key)
{
    json_text_span metadata;
    metadata.text = tokmap_dataset_metadata(ds, &metadata.n_bytes);
    return json_text_check_object(metadata, NULL) ? find_value(metadata, key)
                                                  : (json_text_span){"", 0};
}

/* Whether both are the same tokenizer. Tokenizers from files are compared by what decides their
 * ids, built-in ones by name. */
static bool is_same_tokenizer(json_text_span a, json_text_span b)
{
    static const char *const of_files[] = {"file_xxh3", "merges_xxh3", "specials_xxh3", "pattern"};
    if (find_value(a, of_files[0]).n_bytes == 0 && find_value(b, of_files[0]).n_bytes == 0)
        return is_same(a, b) || (find_value(a, "name").n_bytes > 0 &&
                                 is_same(find_value(a, "name"), find_value(b, "name")));
    for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
        if (!is_same(find_value(a, of_files[i]), find_value(b, of_files[i])))
            return false;
    return true;
}

/* Describes a tokenizer for people: its name, and the checksum of its file. */
static void describe(char *out, size_t n_bytes, json_text_span tokenizer)
{
    const json_text_span name = find_value(tokenizer, "name"),
                         file = find_value(tokenizer, "file_xxh3");
    const json_text_span shown = name.n_bytes ? name : tokenizer;
    snprintf(out, n_bytes, "%.*s%s%.*s", (int)MIN(shown.n_bytes, 80), shown.text,
             file.n_bytes ? ", file_xxh3 " : "", (int)MIN(file.n_bytes, 18), file.text);
}

tokmap_status tokmap_i_check_tokenizer(const tokmap_dataset **first, const tokmap_dataset *ds,
                                       const char *advice, tokmap_error *err)
{
    char of_first[128], of_ds[128];
    const json_text_span tokenizer = find_in_metadata(ds, "tokenizer");
    if (tokenizer.n_bytes == 0)
        return TOKMAP_OK;
    if (!*first)
        *first = ds;
    const json_text_span wanted = find_in_metadata(*first, "tokenizer");
    const uint64_t sizes[2] = {(*first)->header.vocab_size, ds->header.vocab_size};
    const bool same_size = sizes[0] == sizes[1] || sizes[0] == 0 || sizes[1] == 0;
    if (is_same_tokenizer(wanted, tokenizer) && same_size)
        return TOKMAP_OK;
    describe(of_first, sizeof of_first, wanted);
    describe(of_ds, sizeof of_ds, tokenizer);
    return FAIL(err, TOKMAP_ERR_MISMATCH,
                "%s: was made with another tokenizer than %s: %s with %" PRIu64
                " ids, not %s with %" PRIu64 "%s",
                ds->index_path, (*first)->index_path, of_ds, sizes[1], of_first, sizes[0], advice);
}

tokmap_status tokmap_dataset_check_tokenizers(tokmap_dataset *const *datasets, size_t n_datasets,
                                              tokmap_error *err)
{
    const tokmap_dataset *first = NULL;
    tokmap_status status = TOKMAP_OK;
    tokmap_i_error_clear(err);
    if (!datasets && n_datasets)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "datasets is NULL");
    for (size_t i = 0; i < n_datasets && !status; i++)
        status = datasets[i] ? tokmap_i_check_tokenizer(&first, datasets[i], "", err)
                             : FAIL(err, TOKMAP_ERR_ARGUMENT, "dataset %zu is NULL", i);
    return status;
}

/* ---- Redacted datasets ---- */

bool tokmap_i_id_of_hex(const char *hex, uint8_t id[16])
{
    for (int i = 0; i < 32; i++) {
        const uint8_t digit = json_hex_digits[(uint8_t)hex[i]]; /* + 1 */
        if (digit == 0 || (hex[i] >= 'A' && hex[i] <= 'F'))
            return false;
        id[i / 2] = (uint8_t)((i % 2 ? id[i / 2] << 4 : 0) | (digit - 1));
    }
    return true;
}

size_t tokmap_i_dataset_ids(const tokmap_dataset *ds, size_t n, uint8_t id[16])
{
    const json_text_span list = find_in_metadata(ds, "redacted_from");
    uint8_t found[16];
    size_t n_found = 0;
    memcpy(id, ds->header.dataset_id, 16);
    for (const char *p = list.text, *end = p + list.n_bytes; end - p > 33; p++)
        if (p[0] == '"' && p[33] == '"' && tokmap_i_id_of_hex(p + 1, found) && n_found++ == n)
            memcpy(id, found, 16);
    return n_found + 1;
}

bool tokmap_i_was_redacted_from(const tokmap_dataset *ds, const char *hex)
{
    const json_text_span list = find_in_metadata(ds, "redacted_from");
    for (const char *p = list.text, *end = p + list.n_bytes; end - p > 33; p++)
        if (p[0] == '"' && p[33] == '"' && memcmp(p + 1, hex, 32) == 0)
            return true;
    return false;
}

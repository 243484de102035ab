/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c - any bytes as JSON: no read outside; what is accepted stays JSON when printed. */
#include "fuzz/fuzz.h"
#include "base/json_reader.h"
#include "cli/json_out.h"

static bool is_json(json_text_span text)
{
    json_reader r;
    json_reader_init(&r, text.text, text.n_bytes);
    const bool ok = json_skip(&r) && json_end(&r);
    require(ok ? r.failure[0] == '\0' : r.failure[0] != '\0' && r.failure_at <= text.n_bytes);
    json_reader_free(&r);
    return ok;
}

/* As a string, or as JSON on one line. */
static json_text_span print(json_text_span text, bool string)
{
    char *printed = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&printed, &n_bytes);
    require(out != NULL);
    if (string)
        json_text_print_string(out, text.text, text.n_bytes);
    else
        json_text_print(out, text);
    require(fclose(out) == 0);
    return (json_text_span){printed, n_bytes};
}

/* What is printed is JSON, and is not changed when it is printed once more; it is shorter but for
 * characters that become escapes, none of them below 7F. */
static void print_and_check(json_text_span text, bool string)
{
    const json_text_span once = print(text, string), twice = print(once, false);
    bool ascii = true;
    for (size_t i = 0; i < text.n_bytes; i++)
        ascii &= (uint8_t)text.text[i] < 0x7f;
    require(is_json(once));
    require(twice.n_bytes == once.n_bytes && memcmp(twice.text, once.text, once.n_bytes) == 0);
    require(string || !ascii || once.n_bytes <= text.n_bytes);
    free((char *)once.text);
    free((char *)twice.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_text_span text = {(const char *)data, size}, value;
    failure err;
    if (is_json(text))
        print_and_check(text, false);
    if (!json_text_check_object(text, &err))
        require(err.place <= size && err.text[0]);
    else if (json_text_find(text, "tokenizer", &value)) {
        require(is_json(value));
        json_text_find(value, "name", &value);
    }
    print_and_check(text, true);
    return 0;
}

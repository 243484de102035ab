/* fuzz_json.c - any bytes as JSON: no read outside; what is accepted stays JSON when printed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "text/json_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* Prints by `string` or as compact JSON, and looks whether the result is what it should be. */
static void print_and_check(json_text_span text, bool string)
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
    json_text_span again = {printed, n_bytes};
    require(json_text_check(again, NULL));
    require(string || (json_text_same(text, again) && n_bytes <= text.n_bytes));
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_text_span text = {(const char *)data, size}, value;
    json_text_error err;
    if (json_text_check(text, &err))
        print_and_check(text, false);
    else
        require(err.offset <= size && err.reason != NULL);
    if (json_text_check_object(text, NULL) && json_text_find(text, "tokenizer", &value)) {
        require(json_text_check(value, NULL));
        json_text_find(value, "name", &value);
    }
    print_and_check(text, true);
    return 0;
}

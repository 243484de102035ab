/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json_fields.c - any bytes as a line, and the values of its fields: no access outside, and
 * for a line that is JSON the strings are those that are found as its text. */
#include "fuzz/fuzz.h"
#include "formats/json_line.h"

#define PADDING 64
#define ROW 3 /* of the fields below */

/* The text is a string where the value is one, and only there; @row is no key. */
static void compare(const char *name, const tokmap_value *v, const uint8_t *line, size_t n_bytes)
{
    json_paths *paths = json_paths_new(name, NULL);
    uint8_t *out = malloc(n_bytes + 1);
    json_line_result r;
    require(paths && out);
    const json_line_status status = json_line_text(paths, line, n_bytes, out, NULL, &r);
    require((v->type == TOKMAP_VALUE_STRING) == (status == JSON_LINE_OK));
    if (status == JSON_LINE_OK)
        require(v->text_bytes == r.n_bytes && memcmp(v->text, r.text, r.n_bytes) == 0);
    json_paths_free(paths);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    field_list l = {0};
    failure err;
    tokmap_value values[8];
    json_line_result r;
    require(field_list_parse(&l, "a,a.b,text,@row,b.a.b,a.a,b.\xef\xbf\xbd", &err));
    json_paths *paths = json_paths_new("a.text", &l);
    uint8_t *line = malloc(size + PADDING), *out = malloc(size + 1);
    require(paths && line && out);
    memcpy(line, data, size);
    memset(line + size, '"', PADDING);
    /* First a part of it: what is left of it must not matter. */
    json_line_text(paths, line, size / 2, out, values, &r);
    out[size] = 0xa5;
    const json_line_status status = json_line_text(paths, line, size, out, values, &r);
    require(out[size] == 0xa5);
    for (size_t i = 0; i < l.n_fields && status != JSON_LINE_MALFORMED; i++) {
        const tokmap_value *v = &values[i];
        require(v->type <= TOKMAP_VALUE_STRING);
        require(v->type >= TOKMAP_VALUE_FLOAT64 || (!v->text && !v->text_bytes));
        require(i != ROW || v->type == TOKMAP_VALUE_NULL);
        if (i != ROW && status != JSON_LINE_NO_OBJECT)
            compare(l.names[i], v, line, size);
    }
    json_paths_free(paths);
    field_list_free(&l);
    free(line);
    free(out);
    return 0;
}

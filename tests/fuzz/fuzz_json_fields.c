/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json_fields.c - any bytes as a line, and the values of its fields: no access outside, and
 * for a line that is JSON the strings are those of json_line.h. */
#include "fuzz/fuzz.h"
#include "corpus/json_fields.h"
#include "corpus/json_line.h"

#define PADDING 64
#define ROW 3 /* of the fields below */

/* json_line.h finds a string where the value is one, and only there; @row is no key. */
static void compare(const char *name, const tokmap_value *v, const uint8_t *line, size_t n_bytes)
{
    json_line_path *path = json_line_path_new(name);
    uint8_t *out = malloc(n_bytes + 1);
    const json_line_options options = {.path = path};
    json_line_result r;
    require(path && out);
    const json_line_status status = json_line_text(&options, line, n_bytes, out, &r);
    if (status != JSON_LINE_MALFORMED)
        require((v->type == TOKMAP_VALUE_STRING) == (status == JSON_LINE_OK));
    if (status == JSON_LINE_OK)
        require(v->text_bytes == r.n_bytes && memcmp(v->text, r.text, r.n_bytes) == 0);
    json_line_path_free(path);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    field_list l = {0};
    failure err;
    tokmap_value values[8];
    require(field_list_parse(&l, "a,a.b,text,@row,b.a.b,a.a,b.\xef\xbf\xbd", &err));
    json_fields *f = json_fields_new(&l);
    uint8_t *line = malloc(size + PADDING);
    require(f && line);
    memcpy(line, data, size);
    memset(line + size, '"', PADDING);
    /* First a part of it: what is left of it must not matter. */
    require(json_fields_read(f, line, size / 2, values));
    require(json_fields_read(f, line, size, values));
    for (size_t i = 0; i < l.n_fields; i++) {
        const tokmap_value *v = &values[i];
        require(v->type <= TOKMAP_VALUE_STRING);
        require(v->type >= TOKMAP_VALUE_FLOAT64 || (!v->text && !v->text_bytes));
        require(i != ROW || v->type == TOKMAP_VALUE_NULL);
        if (i != ROW)
            compare(l.names[i], v, line, size);
    }
    json_fields_free(f);
    field_list_free(&l);
    free(line);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "writer/value_types.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "base/error.h"
#include "base/real.h"
#include "format/format_limits.h"

enum {
    SHOWN_BYTES = 40 /* length of a string in a message */
};

static tokmap_status fail_sort(const tokmap_i_meta_state *c, const tokmap_i_value_place *at,
                               const tokmap_value *v, tokmap_error *err)
{
    char is[SHOWN_BYTES + 32];
    if (v->type == TOKMAP_VALUE_STRING)
        snprintf(is, sizeof is, "string '%.*s%s'", (int)MIN(v->text_bytes, SHOWN_BYTES), v->text,
                 v->text_bytes > SHOWN_BYTES ? "..." : "");
    else if (v->type == TOKMAP_VALUE_INT64)
        snprintf(is, sizeof is, "number %" PRId64, v->integer);
    else
        real_print(is, sizeof is, "number %.17g", v->real);
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: column '%s' is a %s in document %" PRIu64 ", but the %s in document %" PRIu64,
                at->path, at->column, c->type != TOKMAP_VALUE_STRING ? "number" : "string",
                c->first_document, is, at->document);
}

tokmap_status tokmap_i_meta_state_take(tokmap_i_meta_state *c, const tokmap_i_value_place *at,
                                       const tokmap_value *v, tokmap_error *err)
{
    const char *path = at->path, *name = at->column;
    const uint64_t document = at->document;
    const bool is_string = v->type == TOKMAP_VALUE_STRING;
    if ((uint32_t)v->type > TOKMAP_VALUE_STRING)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: column '%s', document %" PRIu64 ": there is no type %d", path, name,
                    document, (int)v->type);
    if (is_string && v->text_bytes > TOKMAP_I_MAX_META_STRING)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "%s: column '%s' has a string of %zu bytes in document %" PRIu64
                    "; the limit is 64 KiB",
                    path, name, v->text_bytes, document);
    if (is_string && !v->text && v->text_bytes > 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: column '%s', document %" PRIu64 ": text is NULL",
                    path, name, document);
    c->n_nulls += v->type == TOKMAP_VALUE_NULL;
    if (v->type == TOKMAP_VALUE_NULL)
        return TOKMAP_OK;
    if (c->type == TOKMAP_VALUE_NULL)
        c->first_document = document;
    else if ((c->type == TOKMAP_VALUE_STRING) != is_string)
        return fail_sort(c, at, v, err);
    if (v->type == TOKMAP_VALUE_FLOAT64 && c->type != TOKMAP_VALUE_FLOAT64)
        c->first_real = document;
    if (v->type == TOKMAP_VALUE_FLOAT64 || c->type == TOKMAP_VALUE_NULL)
        c->type = v->type;
    if (is_string)
        c->text_bytes += v->text_bytes;
    const bool is_integer = v->type == TOKMAP_VALUE_INT64;
    const double as_real = is_integer ? (double)v->integer : 0;
    if (is_integer && !c->has_inexact && (as_real >= 0x1p63 || (int64_t)as_real != v->integer)) {
        c->has_inexact = true;
        c->inexact = v->integer;
        c->inexact_document = document;
    }
    if (c->type != TOKMAP_VALUE_FLOAT64 || !c->has_inexact)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT,
                "%s: column '%s' is %" PRId64 " in document %" PRIu64
                ", which is not exact as a float64, and has a float64 in document %" PRIu64,
                path, name, c->inexact, c->inexact_document, c->first_real);
}

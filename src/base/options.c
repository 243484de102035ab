/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <string.h>

#include "base/base.h"
#include "base/error.h"

#define MAX_STRUCT_BYTES 4096 /* no struct is larger */

/* Reads struct_size, the first field. */
static size_t size_of(const void *caller)
{
    size_t n_bytes;
    memcpy(&n_bytes, caller, sizeof n_bytes);
    return n_bytes;
}

tokmap_status tokmap_i_check_struct(const void *dst, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err)
{
    if (!dst)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is NULL", kind->name);
    const size_t n_bytes = size_of(dst);
    if (n_bytes >= kind->least_bytes && n_bytes <= MAX_STRUCT_BYTES)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%.99s: struct_size is %zu: set it to its sizeof",
                kind->name, n_bytes);
}

tokmap_status tokmap_i_take_known(void *dst, const void *src, size_t n_bytes,
                                  const tokmap_i_struct_kind *kind, tokmap_error *err)
{
    memcpy(dst, src, MIN(n_bytes, kind->n_bytes));
    if (n_bytes <= kind->n_bytes ||
        is_zero((const uint8_t *)src + kind->n_bytes, n_bytes - kind->n_bytes))
        return TOKMAP_OK;
    return FAIL(
        err, TOKMAP_ERR_ARGUMENT,
        "%.99s: sets a field that this library (%s) does not know, because it is older than "
        "the header: update the library, or leave that field 0",
        kind->name, tokmap_version());
}

tokmap_status tokmap_i_take_options(void *dst, const void *src, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err)
{
    memset(dst, 0, kind->n_bytes);
    const tokmap_status status = tokmap_i_check_struct(src, kind, err);
    return status ? status : tokmap_i_take_known(dst, src, size_of(src), kind, err);
}

tokmap_status tokmap_i_give_struct(void *dst, const void *full, const tokmap_i_struct_kind *kind,
                                   tokmap_error *err)
{
    const tokmap_status status = tokmap_i_check_struct(dst, kind, err);
    if (status)
        return status;
    const size_t n_bytes = size_of(dst);
    memset(dst, 0, n_bytes);
    memcpy(dst, full, MIN(n_bytes, kind->n_bytes));
    memcpy(dst, &n_bytes, sizeof n_bytes);
    return TOKMAP_OK;
}

void tokmap_i_init_struct(void *out, size_t size, const void *full, size_t full_bytes)
{
    if (!out || size < sizeof size)
        return;
    memset(out, 0, size);
    if (full)
        memcpy(out, full, MIN(size, full_bytes));
    memcpy(out, &size, sizeof size);
}

void tokmap_struct_init(void *out, size_t size)
{
    tokmap_i_init_struct(out, size, NULL, 0);
}

tokmap_status tokmap_i_check_stride(uint32_t stride, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err)
{
    if (stride >= kind->least_bytes && stride <= MAX_STRUCT_BYTES)
        return TOKMAP_OK;
    return FAIL(
        err, TOKMAP_ERR_ARGUMENT,
        "stride of %s is %u: begin with the initializer of the options, or set it to sizeof(%s)",
        kind->name, (unsigned)stride, kind->name);
}

tokmap_status tokmap_i_check_flag(const char *name, int64_t value, tokmap_error *err)
{
    if (value == 0 || value == 1)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s is %lld: must be 0 or 1", name, (long long)value);
}

tokmap_status tokmap_i_take_ignore_index(int32_t has, int64_t *ignore_index, tokmap_error *err)
{
    if (!has && *ignore_index != 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "ignore_index is %lld, but has_ignore_index is 0",
                    (long long)*ignore_index);
    if (!has)
        *ignore_index = -100;
    return tokmap_i_check_flag("has_ignore_index", has, err);
}

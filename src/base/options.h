/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - copies and checks the structs of a caller, which may have been built against an older
 * or a newer header. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tokmap.h"

/* The size of a struct in the version in which this member was the last one. */
#define SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof((type *)0)->member)

typedef struct tokmap_i_struct_kind {
    const char *name;   /* of the struct */
    size_t n_bytes;     /* sizeof in this library */
    size_t least_bytes; /* the smallest that a caller can have */
} tokmap_i_struct_kind;

#define STRUCT_KIND(type, last)                                                                    \
    .name = #type, .n_bytes = sizeof(type), .least_bytes = SIZE_UP_TO(type, last)

/* Copies the options of a caller to dst; fields that the caller does not have become 0.
 * TOKMAP_ERR_ARGUMENT: src is NULL, its size makes no sense, or it sets a field that this library
 * does not know. */
tokmap_status tokmap_i_take_options(void *dst, const void *src, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err);
/* Copies one element, of n_bytes, of a caller's array whose stride was checked. Fields that the
 * caller does not have keep their value in dst. TOKMAP_ERR_ARGUMENT as for
 * tokmap_i_take_options. */
tokmap_status tokmap_i_take_known(void *dst, const void *src, size_t n_bytes,
                                  const tokmap_i_struct_kind *kind, tokmap_error *err);
/* For a struct of the caller that a call fills in: check_struct checks that its struct_size is set;
 * give_struct fills in the fields that both sides know, and sets the rest to 0. */
tokmap_status tokmap_i_check_struct(const void *dst, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err);
tokmap_status tokmap_i_give_struct(void *dst, const void *full, const tokmap_i_struct_kind *kind,
                                   tokmap_error *err);
/* Sets all `size` bytes of a caller's struct to 0, then those that it has of `full`, except
 * struct_size, which becomes `size`. `full` may be NULL. */
void tokmap_i_init_struct(void *out, size_t size, const void *full, size_t full_bytes);
tokmap_status tokmap_i_check_stride(uint32_t stride, const tokmap_i_struct_kind *kind,
                                    tokmap_error *err);
/* Returns TOKMAP_ERR_ARGUMENT unless the flag is 0 or 1. */
tokmap_status tokmap_i_check_flag(const char *name, int64_t value, tokmap_error *err);
/* Sets the value of labels that do not count to -100, unless `has` is set. */
tokmap_status tokmap_i_take_ignore_index(int32_t has, int64_t *ignore_index, tokmap_error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* object_store.h - a store whose objects are files: STORE and a path names one. It can be told to
 * be slow, to fail, and to answer as no store should. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "tokmap.h"

#define STORE "store:/"

typedef struct object_store {
    tokmap_byte_source source;
    /* What it does, changed while it is used: */
    _Atomic uint32_t delay_us;     /* of each call */
    atomic_int n_to_fail;          /* the next calls fail */
    atomic_bool stalls;            /* calls end only when they are cancelled */
    atomic_bool has_sizes;         /* says how large objects are */
    _Atomic(const char *) version; /* of all objects */
    atomic_bool cuts;              /* gives a byte less than was asked for */
    atomic_bool claims_more;       /* says it read more than was asked for */
    /* What was asked of it: */
    atomic_uint n_calls, n_reads, n_running, most_running, n_cancelled;
    _Atomic uint64_t n_bytes;
} object_store;

/* Makes one that works; all fields are as they should be. */
void object_store_open(object_store *s);
/* Opens a dataset of the store; a failure ends the test. */
tokmap_dataset *object_store_dataset(object_store *s, const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h - an exported tensor of a batch.
 *
 * The first two structs are those of DLPack 0.8, a published binary interface. */
#pragma once

#include "stage/stage.h"

typedef struct tokmap_i_dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dimensions;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} tokmap_i_dl_tensor;

typedef struct tokmap_i_managed_tensor {
    tokmap_i_dl_tensor tensor;
    void *context;
    void (*deleter)(struct tokmap_i_managed_tensor *self);
} tokmap_i_managed_tensor;

struct tokmap_i_tensor {
    tokmap_i_managed_tensor managed; /* must be first: the deleter gets its address */
    int64_t shape[2], strides[2];
    tokmap_stage *stage;
    tokmap_i_device_slot *slot;
    tokmap_i_stream stream; /* where it is used */
    tokmap_i_tensor *next;  /* in the list of late tensors */
};

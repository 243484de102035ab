/* staging_cuda_dlpack.c - outputs of a batch as DLPack tensors, which other libraries take over.
 *
 * The structs are those of DLPack 0.8, a published binary interface. A deleter runs in whatever
 * thread, without the interpreter of whoever made the tensor: it only locks, records an event and
 * frees. */
#include <inttypes.h>
#include <stdlib.h>

#include "base.h"
#include "staging_cuda.h"
#include "status.h"

enum {
    ON_HOST = 1,
    ON_DEVICE = 2,
    SIGNED = 0 /* whole numbers */
};

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t n_dimensions;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct managed_tensor {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct managed_tensor *self);
} managed_tensor;

typedef struct tensor {
    managed_tensor managed; /* first: the deleter is given its address */
    int64_t shape[2], strides[2];
    tokmap_cuda *stage;
    uint32_t slot;
} tensor;

/* With the mutex held: a slot without tensors is used again when what was queued before is over.
 * Not while the stream is captured, which an event would become part of: then later. */
static void give_back(tokmap_cuda *s, tokmap_i_device_slot *d)
{
    int capturing = 0;
    const int error = s->driver->is_capturing(d->stream, &capturing);
    d->is_back = error == TOKMAP_I_DRIVER_CAPTURE_IMPLICIT || (!error && capturing);
    if (d->is_back)
        return;
    if (s->driver->record(d->returned, d->stream) && s->driver->wait_stream(d->stream))
        d->is_back = true;
    else
        tokmap_i_stage_drop(s, d);
}

void tokmap_i_stage_take_back(tokmap_cuda *s)
{
    for (uint32_t i = 0; i < s->options.n_slots; i++)
        if (s->slots[i].is_back && s->slots[i].n_tensors == 0)
            give_back(s, &s->slots[i]);
}

/* In a forked child nothing of the device is there. */
static void delete_tensor(managed_tensor *self)
{
    tensor *t = (tensor *)self;
    tokmap_cuda *s = t->stage;
    tokmap_i_visit visit;
    if (tokmap_i_fork_mark_is_child(&s->fork_mark)) {
        free(t);
        return;
    }
    const bool in_context = tokmap_i_stage_enter(s, &visit) == 0;
    tokmap_i_mutex_lock(&s->mutex);
    tokmap_i_device_slot *d = &s->slots[t->slot];
    s->n_tensors--;
    if (--d->n_tensors == 0 && !s->closed)
        give_back(s, d);
    const bool is_last = s->closed && s->n_tensors == 0;
    if (in_context)
        tokmap_i_stage_leave(s, &visit);
    tokmap_i_mutex_unlock(&s->mutex); /* from here on another may free the stage */
    if (is_last)
        tokmap_i_stage_free(s);
    free(t);
}

static tensor *make(const tokmap_cuda *s, const tokmap_i_device_slot *d, int output)
{
    tensor *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    const bool flat = 1 << output == TOKMAP_CUDA_CU_SEQLENS;
    const uint32_t width = output == 0   ? s->options.input_bytes
                           : output == 1 ? s->options.label_bytes
                                         : 4;
    t->shape[0] = flat ? (int64_t)s->n_cu : (int64_t)s->shape.n_rows;
    t->shape[1] = (int64_t)s->shape.length;
    t->strides[0] = flat ? 1 : t->shape[1];
    t->strides[1] = 1;
    t->managed.tensor = (dl_tensor){.data = (void *)(uintptr_t)d->outputs[output],
                                    .device_type = s->options.device < 0 ? ON_HOST : ON_DEVICE,
                                    .device_id = MAX(s->options.device, 0),
                                    .n_dimensions = flat ? 1 : 2,
                                    .type_code = SIGNED,
                                    .type_bits = (uint8_t)(8 * width),
                                    .type_lanes = 1,
                                    .shape = t->shape,
                                    .strides = t->strides};
    t->managed.context = t;
    t->managed.deleter = delete_tensor;
    return t;
}

static int output_index(const tokmap_cuda *s, uint32_t output)
{
    for (int i = 0; i < TOKMAP_I_STAGE_OUTPUTS; i++)
        if (output == 1u << i && (s->options.outputs & output))
            return i;
    return -1;
}

tokmap_status tokmap_cuda_export(tokmap_cuda *s, const tokmap_cuda_batch *batch, uint32_t output,
                                 void **dl_managed_tensor, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    *dl_managed_tensor = NULL;
    if (tokmap_i_fork_mark_is_child(&s->fork_mark))
        return FAIL(err, TOKMAP_ERR_FORKED, "this stage belongs to the parent process");
    const int index = output_index(s, output);
    if (index < 0)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "export: 0x%" PRIx32 " is not one of the outputs of the stage", output);
    tokmap_i_mutex_lock(&s->mutex);
    tokmap_status status = TOKMAP_OK;
    tokmap_i_device_slot *d = tokmap_i_stage_find_lent(s, batch->id);
    tensor *t = d && d->held ? make(s, d, index) : NULL;
    if (!d || !d->held)
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "export: batch %" PRIu64 " is not held", batch->id);
    else if (!t)
        status = FAIL_MEMORY(err);
    if (t) {
        t->stage = s;
        t->slot = (uint32_t)(d - s->slots);
        d->n_tensors++;
        s->n_tensors++;
        *dl_managed_tensor = &t->managed;
    }
    tokmap_i_mutex_unlock(&s->mutex);
    return status;
}

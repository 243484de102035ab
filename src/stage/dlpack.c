/* SPDX-License-Identifier: Apache-2.0 */
/* dlpack.c - exports outputs of a batch as DLPack tensors, for other libraries.
 *
 * A deleter may run in any thread, at any time, and without a Python interpreter. It locks, records
 * an event and frees host memory; it does not wait for the device. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "stage/stage.h"
#include "stage/tensor.h"

enum {
    ON_HOST = 1,
    ON_DEVICE = 2,
    SIGNED = 0 /* DLPack: signed integers */
};

/* Deletes a tensor. A forked child has no device, so there it only frees the memory. */
static void delete_tensor(tokmap_i_managed_tensor *self)
{
    tokmap_i_tensor *t = (tokmap_i_tensor *)self;
    tokmap_stage *s = t->stage;
    int mode;
    if (tokmap_i_fork_mark_is_child(&s->fork_mark)) {
        free(t);
        return;
    }
    tokmap_i_mutex_lock(&s->mutex);
    s->n_tensors--;
    if (!s->closed) {
        tokmap_i_device_slot *d = t->slot;
        const bool in_context = tokmap_i_stage_enter(s, &mode) == 0;
        d->exported.n_tensors--;
        tokmap_i_tensor_return(s, t, in_context);
        t = NULL;
        tokmap_i_stage_drop_slot(s, d);
        if (in_context)
            tokmap_i_stage_leave(s, mode);
        tokmap_i_condition_signal(&s->work);
    }
    const bool is_last = s->closed && s->n_tensors == 0;
    tokmap_i_mutex_unlock(&s->mutex); /* from here on another thread may free the stage */
    if (is_last)
        tokmap_i_stage_free_later(s);
    free(t);
}

/* ---- Export ---- */

/* Exports an output. The mutex is held. */
static tokmap_status export_output(tokmap_stage *s, tokmap_i_device_slot *d,
                                   tokmap_stage_tensor *wanted, tokmap_error *err)
{
    int index = 0;
    while (index < TOKMAP_I_STAGE_OUTPUTS && wanted->output != 1u << index)
        index++;
    if (index == TOKMAP_I_STAGE_OUTPUTS || !(s->options.outputs & wanted->output))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "export: 0x%" PRIx32 " is not one of the outputs of the stage", wanted->output);
    const tokmap_status status = tokmap_i_stage_check(
        s, s->driver->stream_wait(wanted->stream, d->ready, 0), "waiting for an event", err);
    if (status)
        return status;
    tokmap_i_tensor *t = calloc(1, sizeof *t);
    if (!t)
        return FAIL_MEMORY(err);
    const bool flat = wanted->output == TOKMAP_STAGE_CU_SEQLENS;
    uint32_t width = 4;
    if (wanted->output == TOKMAP_STAGE_INPUTS)
        width = s->options.input_bytes;
    else if (wanted->output == TOKMAP_STAGE_LABELS)
        width = s->options.label_bytes;
    t->stage = s;
    t->slot = d;
    t->stream = wanted->stream;
    t->shape[0] = flat ? (int64_t)s->n_cu : (int64_t)s->shape.n_rows;
    t->shape[1] = (int64_t)s->shape.length;
    t->strides[0] = flat ? 1 : t->shape[1];
    t->strides[1] = 1;
    t->managed.tensor =
        (tokmap_i_dl_tensor){.data = (void *)(uintptr_t)d->outputs[index],
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
    d->exported.n_tensors++;
    s->n_tensors++;
    wanted->managed = &t->managed;
    return TOKMAP_OK;
}

tokmap_status tokmap_stage_export(tokmap_stage *s, const tokmap_stage_batch *batch,
                                  tokmap_stage_tensor *wanted, tokmap_error *err)
{
    int mode;
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_stage_tensor, managed)};
    tokmap_i_error_clear(err);
    tokmap_status status = tokmap_i_check_struct(wanted, &kind, err);
    if (status)
        return status;
    wanted->managed = NULL;
    status = tokmap_i_stage_begin_call(s, batch, wanted->stream, &mode, err);
    if (status)
        return status;
    tokmap_i_device_slot *d = tokmap_i_stage_find_used(s, batch->id);
    if (d && d->held)
        status = export_output(s, d, wanted, err);
    else
        status = FAIL(err, TOKMAP_ERR_ARGUMENT, "export: batch %" PRIu64 " is not held", batch->id);
    tokmap_i_mutex_unlock(&s->mutex);
    tokmap_i_stage_leave(s, mode);
    return status;
}

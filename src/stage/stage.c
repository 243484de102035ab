/* SPDX-License-Identifier: Apache-2.0 */
/* stage.c - the calls of an open stage: next, wait, release, fill, seek, info. */
#include "stage/stage.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/options.h"
#include "samples/state.h"

static tokmap_status check_fork(const tokmap_stage *s, tokmap_error *err)
{
    if (!s)
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "the stage is NULL");
    if (!tokmap_i_fork_mark_is_child(&s->fork_mark))
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_FORKED,
                "this stage belongs to the parent process: open another in a process of its own");
}

/* ---- Next and fill ---- */

static tokmap_status check_stream(const tokmap_stage *s, tokmap_i_stream stream, tokmap_error *err)
{
    enum {
        PER_THREAD = 2 /* CU_STREAM_PER_THREAD */
    };
    int capturing = 0;
    if ((uintptr_t)stream == PER_THREAD)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "the stream is CU_STREAM_PER_THREAD, which is a different one in each thread: "
                    "use a stream that all threads share");
    const int error = s->driver->is_capturing(stream, &capturing);
    if (error && error != TOKMAP_I_DRIVER_CAPTURE_IMPLICIT)
        return tokmap_i_stage_check(s, error, "checking the stream", err);
    if (error || capturing)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "the stream is being captured: call tokmap_stage_fill outside of the graph, "
                    "before it is launched");
    return TOKMAP_OK;
}

/* Does one piece of the stage thread's work; returns false if there is none. The mutex is held. */
static bool work_once(tokmap_stage *s)
{
    if (tokmap_i_stage_queue_one(s))
        return true;
    if (s->has_thread || !tokmap_i_stage_can_fill(s))
        return false;
    tokmap_i_stage_fill_one(s);
    return true;
}

/* Waits until the next batch is queued or has failed. */
static tokmap_status wait_for_batch(tokmap_stage *s, tokmap_error *err)
{
    uint64_t begin = 0;
    if (s->stop_was_returned) { /* the caller asks again, so try again */
        tokmap_i_error_clear(&s->stop);
        s->stop_was_returned = false;
        tokmap_i_condition_signal(&s->work);
    }
    while (s->n_handed == s->n_queued && !s->lost.status &&
           (s->n_queued < s->n_filled || !s->stop.status)) {
        if (begin == 0)
            begin = tokmap_i_now_ns();
        if (!work_once(s) && !s->lost.status) /* the device may have been lost in work_once */
            tokmap_i_condition_wait(&s->news, &s->mutex);
    }
    if (begin) {
        s->n_waits++;
        s->waited_ns += tokmap_i_now_ns() - begin;
    }
    if (s->n_handed < s->n_queued)
        return TOKMAP_OK;
    tokmap_error *what = s->lost.status ? &s->lost : &s->stop;
    const tokmap_status status = what->status;
    if (err)
        *err = *what;
    s->stop_was_returned = what == &s->stop;
    return status;
}

static const tokmap_i_struct_kind batch_kind = {STRUCT_KIND(tokmap_stage_batch, id)};

static tokmap_status take_pointers(const tokmap_stage *s, const tokmap_stage_batch *batch,
                                   tokmap_i_address *outputs, tokmap_error *err)
{
    const struct {
        const char *name;
        const void *pointer;
        uint32_t width;
    } all[TOKMAP_I_STAGE_OUTPUTS] = {{"inputs", batch->inputs, s->options.input_bytes},
                                     {"labels", batch->labels, s->options.label_bytes},
                                     {"position_ids", batch->position_ids, 4},
                                     {"document_ids", batch->document_ids, 4},
                                     {"cu_seqlens", batch->cu_seqlens, 4}};
    for (int i = 0; i < TOKMAP_I_STAGE_OUTPUTS; i++) {
        outputs[i] = (uintptr_t)all[i].pointer;
        if (outputs[i] && !(s->options.outputs & 1u << i))
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "fill: %s is not one of the outputs of the stage",
                        all[i].name);
        if (outputs[i] % all[i].width != 0)
            return FAIL(err, TOKMAP_ERR_ARGUMENT, "fill: %s is not aligned to %" PRIu32 " bytes",
                        all[i].name, all[i].width);
    }
    return TOKMAP_OK;
}

/* Expands the first queued batch in the stream: to the caller's memory, or in its slot, which is
 * handed out. */
static tokmap_status hand_out(tokmap_stage *s, tokmap_stage_batch *batch, tokmap_i_stream stream,
                              const tokmap_i_address *memory, tokmap_error *err)
{
    uint32_t n_held = 0;
    tokmap_i_tensor_return_late(s);
    for (uint32_t i = 0; i < s->options.n_slots; i++)
        n_held += s->slots[i].state == TOKMAP_I_DEVICE_OUT;
    if (n_held + 1 >= s->options.n_slots)
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "n_slots is %" PRIu32 ", and %" PRIu32
                    " of the batches are held: release one, or set n_slots to at least %" PRIu32,
                    s->options.n_slots, n_held, n_held + 2);
    tokmap_status status = wait_for_batch(s, err);
    if (status)
        return status;
    tokmap_i_device_slot *d = &s->slots[s->order[s->n_handed % s->options.n_slots]];
    const tokmap_i_address *outputs = memory ? memory : d->outputs;
    status = tokmap_i_stage_expand(s, d, stream, outputs, err);
    if (status)
        return status;
    s->n_late += d->is_late;
    d->state = TOKMAP_I_DEVICE_OUT;
    d->id = ++s->n_batches;
    d->held = !memory;
    s->n_handed++;
    s->next_sample = tokmap_i_samples_after(&s->loader->samples, d->step_sample, s->step_samples);
    const tokmap_stage_batch full = {.inputs = (void *)(uintptr_t)outputs[0],
                                     .labels = (void *)(uintptr_t)outputs[1],
                                     .position_ids = (void *)(uintptr_t)outputs[2],
                                     .document_ids = (void *)(uintptr_t)outputs[3],
                                     .cu_seqlens = (void *)(uintptr_t)outputs[4],
                                     .n_rows = s->shape.n_rows,
                                     .sequence_length = s->shape.length,
                                     .n_documents = d->n_documents,
                                     .max_seqlen = d->longest,
                                     .first_sample = d->first_sample,
                                     .step_sample = d->step_sample,
                                     .id = d->id};
    tokmap_i_give_struct(batch, &full, &batch_kind, NULL); /* batch was checked at the beginning */
    tokmap_i_stage_drop_slot(s, d);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_stage_begin_call(tokmap_stage *s, const tokmap_stage_batch *batch,
                                        tokmap_i_stream stream, int *mode, tokmap_error *err)
{
    tokmap_i_error_clear(err);
    tokmap_status status = check_fork(s, err);
    if (!status)
        status = tokmap_i_check_struct(batch, &batch_kind, err);
    if (!status)
        status =
            tokmap_i_stage_check(s, tokmap_i_stage_enter(s, mode), "entering the context", err);
    if (status)
        return status;
    status = check_stream(s, stream, err);
    if (status)
        tokmap_i_stage_leave(s, *mode);
    else
        tokmap_i_mutex_lock(&s->mutex);
    return status;
}

static tokmap_status take_batch(tokmap_stage *s, tokmap_stage_batch *batch, bool fills,
                                tokmap_i_stream stream, tokmap_error *err)
{
    tokmap_i_address memory[TOKMAP_I_STAGE_OUTPUTS];
    int mode;
    const uint64_t begin_ns = tokmap_i_now_ns();
    tokmap_status status = tokmap_i_stage_begin_call(s, batch, stream, &mode, err);
    if (status)
        return status;
    if (fills)
        status = take_pointers(s, batch, memory, err);
    if (!status)
        status = hand_out(s, batch, stream, fills ? memory : NULL, err);
    tokmap_i_latency_add(&s->waits, tokmap_i_now_ns() - begin_ns);
    /* Without a thread, the next batch is prepared now, while the device works on this one. */
    while (!s->has_thread && !s->stop.status && s->n_handed == s->n_queued && work_once(s))
        continue;
    tokmap_i_mutex_unlock(&s->mutex);
    tokmap_i_condition_signal(&s->work);
    tokmap_i_stage_leave(s, mode);
    tokmap_i_stage_send_notes(s);
    return status;
}

tokmap_status tokmap_stage_next(tokmap_stage *s, tokmap_stage_batch *batch, void *stream,
                                tokmap_error *err)
{
    return take_batch(s, batch, false, stream, err);
}

tokmap_status tokmap_stage_fill(tokmap_stage *s, tokmap_stage_batch *batch, void *stream,
                                tokmap_error *err)
{
    return take_batch(s, batch, true, stream, err);
}

tokmap_status tokmap_stage_wait(tokmap_stage *s, const tokmap_stage_batch *batch, void *stream,
                                tokmap_error *err)
{
    int mode;
    tokmap_status status = tokmap_i_stage_begin_call(s, batch, stream, &mode, err);
    if (status)
        return status;
    const tokmap_i_device_slot *d = tokmap_i_stage_find_used(s, batch->id);
    status = d ? tokmap_i_stage_check(s, s->driver->stream_wait(stream, d->ready, 0),
                                      "waiting for an event", err)
               : FAIL(err, TOKMAP_ERR_ARGUMENT, "batch %" PRIu64 " is not held", batch->id);
    tokmap_i_mutex_unlock(&s->mutex);
    tokmap_i_stage_leave(s, mode);
    return status;
}

/* ---- Release ---- */

tokmap_i_device_slot *tokmap_i_stage_find_used(tokmap_stage *s, uint64_t id)
{
    for (uint32_t i = 0; i < s->options.n_slots; i++)
        if (s->slots[i].state == TOKMAP_I_DEVICE_OUT && s->slots[i].id == id)
            return &s->slots[i];
    return NULL;
}

tokmap_status tokmap_stage_release(tokmap_stage *s, const tokmap_stage_batch *batch, void *stream,
                                   tokmap_error *err)
{
    int mode;
    tokmap_status status = tokmap_i_stage_begin_call(s, batch, stream, &mode, err);
    if (status)
        return status;
    tokmap_i_device_slot *d = tokmap_i_stage_find_used(s, batch->id);
    if (!d || !d->held)
        status =
            FAIL(err, TOKMAP_ERR_ARGUMENT,
                 "batch %" PRIu64 " is not held: already released, or of another stage", batch->id);
    else
        status = tokmap_i_stage_check(s, s->driver->record(d->released, stream),
                                      "recording an event", err);
    if (!status) {
        d->held = false;
        tokmap_i_stage_drop_slot(s, d);
    }
    /* The thread may be busy reading, so queue the batch that waits for this slot here. */
    while (s->filling && !s->paused && tokmap_i_stage_queue_one(s))
        continue;
    tokmap_i_condition_signal(&s->work);
    tokmap_i_mutex_unlock(&s->mutex);
    tokmap_i_stage_leave(s, mode);
    tokmap_i_stage_send_notes(s);
    return status;
}

/* ---- Position ---- */

tokmap_status tokmap_stage_save(const tokmap_stage *s, uint8_t state[TOKMAP_STATE_BYTES],
                                tokmap_error *err)
{
    tokmap_i_error_clear(err);
    const tokmap_status status = state ? check_fork(s, err) : FAIL_NULL(err);
    if (!status)
        tokmap_i_state_encode(&s->loader->samples, s->next_sample, state);
    return status;
}

uint64_t tokmap_stage_position(const tokmap_stage *s)
{
    return s ? s->next_sample : 0;
}

static tokmap_status move_to(tokmap_stage *s, const uint8_t *state, uint64_t sample,
                             tokmap_error *err)
{
    tokmap_i_error_clear(err);
    tokmap_status status = check_fork(s, err);
    if (status)
        return status;
    tokmap_i_mutex_lock(&s->mutex);
    s->paused = true;
    while (s->filling || s->queueing)
        tokmap_i_condition_wait(&s->news, &s->mutex);
    status = state ? tokmap_i_loader_restore(s->loader, state, err)
                   : tokmap_i_loader_go_to(s->loader, sample, err);
    if (!status) { /* drop what is prepared, because other steps come next */
        for (uint32_t i = 0; i < s->options.n_slots; i++)
            if (s->slots[i].state == TOKMAP_I_DEVICE_READY)
                s->slots[i].state = TOKMAP_I_DEVICE_FREE;
        for (uint32_t i = 0; i < s->options.n_host_slots; i++)
            if (s->host[i].state == TOKMAP_I_HOST_FILLED)
                s->host[i].state = TOKMAP_I_HOST_FREE;
        s->n_filled = s->n_queued = s->n_handed = 0;
        tokmap_i_error_clear(&s->stop);
        s->stop_was_returned = false;
        s->next_sample = tokmap_loader_position(s->loader);
    }
    s->paused = false;
    tokmap_i_condition_signal(&s->work);
    tokmap_i_mutex_unlock(&s->mutex);
    return status;
}

tokmap_status tokmap_stage_restore(tokmap_stage *s, const uint8_t state[TOKMAP_STATE_BYTES],
                                   tokmap_error *err)
{
    return state ? move_to(s, state, 0, err) : FAIL_NULL(err);
}

tokmap_status tokmap_stage_seek(tokmap_stage *s, uint64_t sample, tokmap_error *err)
{
    return move_to(s, NULL, sample, err);
}

/* ---- Info ---- */

tokmap_status tokmap_stage_get_info(const tokmap_stage *stage, tokmap_stage_info *info)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_stage_info, device)};
    tokmap_stage *s = (tokmap_stage *)(uintptr_t)stage; /* to lock its mutex */
    const tokmap_status status = check_fork(s, NULL);
    if (status)
        return status;
    tokmap_i_mutex_lock(&s->mutex);
    const tokmap_stage_info full = {.device = s->options.device,
                                    .pinned = s->pinned,
                                    .n_slots = s->options.n_slots,
                                    .n_host_slots = s->options.n_host_slots,
                                    .n_rows = s->shape.n_rows,
                                    .sequence_length = s->shape.length,
                                    .max_boundaries = s->options.max_boundaries,
                                    .device_bytes = s->device_bytes,
                                    .host_bytes = s->host_bytes,
                                    .n_batches = s->n_batches,
                                    .n_tokens = s->n_batches * s->shape.n_rows * s->shape.length,
                                    .bytes_moved = s->bytes_moved,
                                    .n_waits = s->n_waits,
                                    .waited_ns = s->waited_ns,
                                    .wait_p50_ns = tokmap_i_latency_percentile(&s->waits, 500),
                                    .wait_p99_ns = tokmap_i_latency_percentile(&s->waits, 990),
                                    .wait_p999_ns = tokmap_i_latency_percentile(&s->waits, 999),
                                    .wait_max_ns = s->waits.max_ns,
                                    .n_late = s->n_late};
    tokmap_i_mutex_unlock(&s->mutex);
    return tokmap_i_give_struct(info, &full, &kind, NULL);
}

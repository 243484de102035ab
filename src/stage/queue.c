/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - the calls of the driver for each batch. */
#include <stdio.h>

#include "base/error.h"
#include "stage/stage.h"

/* ---- Contexts and errors ---- */

int tokmap_i_stage_enter(const tokmap_stage *s, int *mode)
{
    void *context;
    int error = s->driver->push_context(s->context);
    if (error)
        return error;
    /* Relaxed: our calls must be allowed while another thread captures a graph. */
    *mode = TOKMAP_I_CAPTURE_RELAXED;
    error = s->driver->exchange_capture_mode(mode);
    if (error)
        s->driver->pop_context(&context);
    return error;
}

void tokmap_i_stage_leave(const tokmap_stage *s, int mode)
{
    void *context;
    s->driver->exchange_capture_mode(&mode);
    s->driver->pop_context(&context);
}

tokmap_status tokmap_i_stage_check(const tokmap_stage *s, int error, const char *what,
                                   tokmap_error *err)
{
    const char *name = NULL, *text = NULL;
    if (!error)
        return TOKMAP_OK;
    if (s->driver->get_error_name(error, &name) || !name)
        name = "unknown error";
    if (s->driver->get_error_text(error, &text) || !text)
        text = "";
    return FAIL(err, TOKMAP_ERR_DEVICE, "device %d: %s: error %d, %s: %s", s->options.device, what,
                error, name, text);
}

void tokmap_i_stage_note(tokmap_stage *s, const char *why, const char *what)
{
    if (s->options.log && s->n_notes < TOKMAP_I_STAGE_NOTES)
        snprintf(s->notes[s->n_notes++], sizeof s->notes[0], "%s; %s", why, what);
}

void tokmap_i_stage_send_notes(tokmap_stage *s)
{
    tokmap_i_mutex_lock(&s->mutex);
    while (!s->sending && s->n_sent < s->n_notes) {
        const char *text = s->notes[s->n_sent++]; /* a note never changes */
        s->sending = true;
        tokmap_i_mutex_unlock(&s->mutex);
        s->options.log(s->options.context, text);
        tokmap_i_mutex_lock(&s->mutex);
        s->sending = false;
    }
    tokmap_i_mutex_unlock(&s->mutex);
}

/* ---- Failures ---- */

static const char waiting[] = "waiting for an event", recording[] = "recording an event";

void tokmap_i_stage_lose(tokmap_stage *s, const tokmap_error *why)
{
    s->lost = *why;
    tokmap_i_stage_note(s, s->lost.text, "the stage has stopped");
}

static int launch_expand(const tokmap_stage *s, const tokmap_i_device_slot *d,
                         const tokmap_i_address *outputs, tokmap_i_stream stream)
{
    tokmap_i_expand_job job = d->job;
    void *parameters[] = {&job};
    job.image = d->raw;
    job.inputs = outputs[0];
    job.labels = outputs[1];
    job.position_ids = outputs[2];
    job.document_ids = outputs[3];
    job.cu_seqlens = outputs[4];
    return s->driver->launch(s->function, job.n_rows * job.n_tiles, 1, 1, TOKMAP_I_BLOCK_THREADS, 1,
                             1, 0, stream, parameters, NULL);
}

tokmap_status tokmap_i_stage_start_kernel(tokmap_stage *s, tokmap_error *err)
{
    static const tokmap_i_address none[TOKMAP_I_STAGE_OUTPUTS];
    tokmap_i_device_slot *d = &s->slots[0];
    d->job = (tokmap_i_expand_job){.n_rows = 1, .length = 1, .n_tiles = 1};
    /* zeros: a row without tokens */
    tokmap_status status = tokmap_i_stage_check(
        s, s->driver->copy_to_device(d->raw, s->host_memory, sizeof(tokmap_i_image_row), s->stream),
        "copying to the device", err);
    if (!status)
        status = tokmap_i_stage_check(s, launch_expand(s, d, none, s->stream),
                                      "starting the kernel", err);
    return status ? status
                  : tokmap_i_stage_check(s, s->driver->wait_stream(s->stream), "running the kernel",
                                         err);
}

/* ---- Batches ---- */

/* Queues the copy, after the kernel that reads the slot's previous batch. */
static tokmap_status queue_batch(const tokmap_stage *s, const tokmap_i_host_slot *h,
                                 tokmap_i_device_slot *d, tokmap_error *err)
{
    const tokmap_i_driver *driver = s->driver;
    d->job = tokmap_i_image_job(&h->image, &s->shape);
    d->job.ignore = s->options.ignore_index;
    d->job.input_bytes = s->options.input_bytes;
    d->job.label_bytes = s->options.label_bytes;
    d->job.pad_id = s->options.pad_id;
    d->job.row_positions = (s->options.outputs & TOKMAP_STAGE_ROW_POSITIONS) != 0;
    d->job.n_cu = s->n_cu;
    d->n_documents = h->image.n_boundaries;
    d->longest = h->image.longest;
    d->first_sample = h->first_sample;
    d->step_sample = h->step_sample;
    tokmap_status status =
        tokmap_i_stage_check(s, driver->stream_wait(s->stream, d->ready, 0), waiting, err);
    if (!status)
        status = tokmap_i_stage_check(
            s, driver->copy_to_device(d->raw, h->image.memory, h->image.n_bytes, s->stream),
            "copying a batch", err);
    if (!status)
        status = tokmap_i_stage_check(s, driver->record(h->read, s->stream), recording, err);
    return status ? status
                  : tokmap_i_stage_check(s, driver->record(d->ready, s->stream), recording, err);
}

bool tokmap_i_stage_queue_one(tokmap_stage *s)
{
    tokmap_i_host_slot *h = &s->host[s->n_queued % s->options.n_host_slots];
    /* Take the slot that has been free the longest, because the work of its last user is the
     * likeliest to have finished. */
    tokmap_i_device_slot *d = NULL;
    for (tokmap_i_device_slot *at = s->slots; at < s->slots + s->options.n_slots; at++)
        if (at->state == TOKMAP_I_DEVICE_FREE && (!d || at->freed < d->freed))
            d = at;
    tokmap_error why;
    if (s->lost.status || s->queueing || s->n_queued == s->n_filled || !d)
        return false;
    d->state = TOKMAP_I_DEVICE_TAKEN;
    s->queueing = true;
    tokmap_i_mutex_unlock(&s->mutex);
    const tokmap_status status = queue_batch(s, h, d, &why);
    tokmap_i_mutex_lock(&s->mutex);
    s->queueing = false;
    if (status && !s->lost.status)
        tokmap_i_stage_lose(s, &why);
    if (s->lost.status) { /* lost, possibly by another thread meanwhile: drop the batch */
        d->state = TOKMAP_I_DEVICE_FREE;
    } else {
        s->bytes_moved += h->image.n_bytes;
        h->state = TOKMAP_I_HOST_QUEUED;
        d->state = TOKMAP_I_DEVICE_READY;
        s->order[s->n_queued % s->options.n_slots] = (uint8_t)(d - s->slots);
        s->n_queued++;
    }
    tokmap_i_condition_signal(&s->news);
    return true;
}

tokmap_status tokmap_i_stage_expand(tokmap_stage *s, tokmap_i_device_slot *d,
                                    tokmap_i_stream stream, const tokmap_i_address *outputs,
                                    tokmap_error *err)
{
    const tokmap_i_driver *driver = s->driver;
    const bool to_slot = outputs == d->outputs; /* so it runs after the slot's previous users */
    tokmap_error why;
    tokmap_i_mutex_unlock(&s->mutex); /* no other thread hands out batches */
    const int state = driver->query(d->ready);
    d->is_late = state == TOKMAP_I_DRIVER_NOT_READY;
    tokmap_status status =
        tokmap_i_stage_check(s, d->is_late ? 0 : state, "querying an event", &why);
    if (!status)
        status = tokmap_i_stage_check(s, driver->stream_wait(stream, d->ready, 0), waiting, &why);
    if (!status && to_slot)
        status =
            tokmap_i_stage_check(s, driver->stream_wait(stream, d->released, 0), waiting, &why);
    if (!status && to_slot)
        status = tokmap_i_stage_check(s, driver->stream_wait(stream, d->exported.returned, 0),
                                      waiting, &why);
    if (!status)
        status = tokmap_i_stage_check(s, launch_expand(s, d, outputs, stream),
                                      "starting the kernel", &why);
    bool is_lost = false;
    if (!status && driver->record(d->ready, stream)) { /* makes the host wait for the kernel */
        status = tokmap_i_stage_check(s, driver->wait_stream(stream), "waiting for a stream", &why);
        is_lost = status != TOKMAP_OK;
    }
    tokmap_i_mutex_lock(&s->mutex);
    if (is_lost) /* the slot is never filled again, and the batch can be requested again */
        tokmap_i_stage_lose(s, &why);
    if (status && err)
        *err = why;
    return status;
}

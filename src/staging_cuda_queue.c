/* staging_cuda_queue.c - what a stage asks of the driver for each batch, and what it does when the
 * driver refuses.
 *
 * Queueing is repeated from its start in a simpler way when a call of it fails: what an earlier
 * attempt put into the stage's stream comes before the new one and is written over by it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base.h"
#include "staging_cuda.h"
#include "status.h"

/* ---- Contexts and errors ---- */

int tokmap_i_stage_enter(const tokmap_cuda *s, tokmap_i_visit *v)
{
    const int error = s->driver->push_context(s->context);
    if (error)
        return error;
    /* Calls that could break a capture in another thread are no fault of ours. */
    v->capture_mode = TOKMAP_I_CAPTURE_RELAXED;
    const int mode_error = s->driver->exchange_capture_mode(&v->capture_mode);
    void *context;
    if (mode_error)
        s->driver->pop_context(&context);
    return mode_error;
}

void tokmap_i_stage_leave(const tokmap_cuda *s, const tokmap_i_visit *v)
{
    void *context;
    int mode = v->capture_mode;
    s->driver->exchange_capture_mode(&mode);
    s->driver->pop_context(&context);
}

tokmap_status tokmap_i_stage_fail(const tokmap_cuda *s, int error, const char *what,
                                  tokmap_error *err)
{
    const char *name = NULL, *text = NULL;
    if (s->driver->get_error_name(error, &name) || !name)
        name = "unknown error";
    if (s->driver->get_error_text(error, &text) || !text)
        text = "";
    return FAIL(err, TOKMAP_ERR_DEVICE, "device %d: %s: error %d, %s: %s", s->options.device, what,
                error, name, text);
}

void tokmap_i_stage_note(tokmap_cuda *s, const char *format, ...)
{
    va_list args;
    if (!s->options.log || s->n_notes == TOKMAP_I_STAGE_NOTES)
        return;
    char *text = s->notes[s->n_notes++];
    va_start(args, format);
    if (vsnprintf(text, sizeof s->notes[0], format, args) < 0)
        text[0] = 0;
    va_end(args);
}

void tokmap_i_stage_tell(tokmap_cuda *s)
{
    for (;;) {
        const char *text = NULL;
        tokmap_i_mutex_lock(&s->mutex);
        if (s->n_told < s->n_notes)
            text = s->notes[s->n_told++];
        tokmap_i_mutex_unlock(&s->mutex);
        if (!text)
            return;
        s->options.log(s->options.log_context, text); /* a note does not change any more */
    }
}

/* ---- Attempts ---- */

/* A call that failed, for the message. */
typedef struct attempt {
    int error;
    const char *what;
} attempt;

static bool failed(attempt *a, int error, const char *what)
{
    if (error)
        *a = (attempt){error, what};
    return error != 0;
}

static void lose(tokmap_cuda *s, const attempt *a)
{
    tokmap_i_stage_fail(s, a->error, a->what, &s->lost);
    tokmap_i_stage_note(s, "%s; the stage has stopped", s->lost.text);
}

/* Waits for all that reads host memory: what the attempt queued in its stream, and batches. */
static int wait_for_readers(const tokmap_cuda *s, tokmap_i_stream stream)
{
    int error = s->driver->wait_stream(stream);
    for (uint32_t i = 0; i < s->options.n_host_slots && !error; i++)
        if (s->host[i].state == TOKMAP_I_HOST_QUEUED)
            error = s->driver->wait_event(s->host[i].read);
    return error;
}

/* Memory that is not pinned is copied too, by way of the driver's own buffer. */
static void unpin(tokmap_cuda *s)
{
    s->driver->unregister_host(s->host_memory);
    s->pinned = false;
}

/* Takes the next simpler way; false: there is none left. What the attempt queued in the stream may
 * still read the host slot, which is written anew or is not pinned soon. */
static bool demote(tokmap_cuda *s, const attempt *a, tokmap_i_stream stream)
{
    const char *next = "batches are copied instead";
    tokmap_error why;
    const int error = wait_for_readers(s, stream);
    if (error) {
        lose(s, &(attempt){error, "waiting for a stream"});
        return false;
    }
    tokmap_i_stage_fail(s, a->error, a->what, &why);
    if (s->direct) {
        s->direct = false;
        if (s->pull)
            next = "the device reads pinned memory instead of the map";
    } else if (s->pull) {
        s->pull = false;
    } else if (s->pinned) {
        unpin(s);
        next = "batches are copied from memory that is not pinned";
    } else {
        return false;
    }
    tokmap_i_stage_note(s, "%s; %s", why.text, next);
    return true;
}

static int expand(const tokmap_cuda *s, tokmap_i_device_slot *d, tokmap_i_address image,
                  const tokmap_i_address *outputs, tokmap_i_stream stream)
{
    tokmap_i_expand_job job = d->job;
    void *parameters[] = {&job};
    job.image = image;
    job.inputs = outputs[0];
    job.labels = outputs[1];
    job.position_ids = outputs[2];
    job.document_ids = outputs[3];
    job.cu_seqlens = outputs[4];
    return s->driver->launch(s->function, job.n_rows * job.n_tiles, 1, 1, TOKMAP_I_BLOCK_THREADS, 1,
                             1, 0, stream, parameters, NULL);
}

/* The slot may be written once those who had it before are done with it. */
static int wait_for_users(const tokmap_cuda *s, const tokmap_i_device_slot *d,
                          tokmap_i_stream stream)
{
    const int error = s->driver->stream_wait(stream, d->released, 0);
    return error ? error : s->driver->stream_wait(stream, d->returned, 0);
}

/* Rows that lie in the map come into the image, now that the device will not read them there. */
static void bring_in(const tokmap_cuda *s, tokmap_i_host_slot *h)
{
    if (s->n_registered > 0 && !s->direct)
        tokmap_i_image_bring_in(&h->image, &s->shape, tokmap_i_stage_row_on_host, s);
}

/* The image to the device, or the outputs right out of the host slot: all that reads the host slot,
 * and the event that says so. */
static bool read_host(tokmap_cuda *s, tokmap_i_device_slot *d, tokmap_i_stream stream,
                      const tokmap_i_address *outputs, attempt *a)
{
    tokmap_i_host_slot *h = &s->host[d->host];
    bring_in(s, h);
    const bool copy = !s->pull;
    const int error =
        copy ? s->driver->copy_to_device(d->raw, h->image.memory, h->image.n_bytes, stream)
             : expand(s, d, h->address, outputs, stream);
    return !failed(a, error, copy ? "copying a batch" : "starting the kernel") &&
           !failed(a, s->driver->record(h->read, stream), "recording an event");
}

/* The host slot is read by what stands in the stream now. */
static void let_go_of_host(tokmap_cuda *s, tokmap_i_device_slot *d)
{
    tokmap_i_host_slot *h = &s->host[d->host];
    s->bytes_moved += h->image.n_bytes + h->bytes_elsewhere;
    h->state = TOKMAP_I_HOST_QUEUED;
    d->host = TOKMAP_I_NO_SLOT;
}

/* Outputs in a stream, from wherever the image is. */
static bool make_outputs(tokmap_cuda *s, tokmap_i_device_slot *d, tokmap_i_stream stream,
                         const tokmap_i_address *outputs, attempt *a)
{
    if (d->host != TOKMAP_I_NO_SLOT) {
        const bool pulled = s->pull;
        if (failed(a, wait_for_users(s, d, stream), "waiting for an event") ||
            !read_host(s, d, stream, outputs, a))
            return false;
        if (pulled)
            return true;
    }
    return !failed(a, expand(s, d, d->raw, outputs, stream), "starting the kernel");
}

/* One attempt. What is expanded in next needs nothing now, unless it is copied. */
static bool queue(tokmap_cuda *s, tokmap_i_device_slot *d, attempt *a)
{
    if (s->options.expand_in_next) {
        if (s->pull)
            return true;
        if (failed(a, wait_for_users(s, d, s->stream), "waiting for an event") ||
            !read_host(s, d, s->stream, d->outputs, a))
            return false;
    } else if (!make_outputs(s, d, s->stream, d->outputs, a)) {
        return false;
    }
    return !failed(a, s->driver->record(d->ready, s->stream), "recording an event");
}

/* ---- Batches ---- */

/* The one that has been free the longest: what its last user queued is the likeliest to be over. */
static tokmap_i_device_slot *free_slot(tokmap_cuda *s)
{
    tokmap_i_device_slot *first = NULL;
    for (uint32_t i = 0; i < s->options.n_slots; i++) {
        tokmap_i_device_slot *d = &s->slots[i];
        if (d->state == TOKMAP_I_DEVICE_FREE && (!first || d->freed < first->freed))
            first = d;
    }
    return first;
}

static void describe(tokmap_cuda *s, tokmap_i_device_slot *d, uint32_t host)
{
    const tokmap_i_host_slot *h = &s->host[host];
    d->host = host;
    d->expanded = false;
    d->job = tokmap_i_image_job(&h->image, &s->shape);
    d->job.ignore = s->options.ignore_index;
    d->job.input_bytes = s->options.input_bytes;
    d->job.label_bytes = s->options.label_bytes;
    d->job.pad_id = s->options.pad_id;
    d->job.row_positions = (s->options.outputs & TOKMAP_CUDA_ROW_POSITIONS) != 0;
    d->job.n_cu = s->n_cu;
    d->n_documents = h->image.n_borders;
    d->longest = h->image.longest;
    d->first_sample = h->first_sample;
    d->step_sample = h->step_sample;
}

bool tokmap_i_stage_queue_one(tokmap_cuda *s)
{
    const uint32_t host = (uint32_t)(s->n_queued % s->options.n_host_slots);
    tokmap_i_device_slot *d = free_slot(s);
    attempt a;
    if (s->lost.status || s->n_queued == s->n_filled || !d)
        return false;
    for (;;) {
        describe(s, d, host); /* anew: an attempt may have let go of it */
        if (queue(s, d, &a))
            break;
        if (!demote(s, &a, s->stream)) {
            if (!s->lost.status)
                lose(s, &a);
            return false;
        }
    }
    if (!s->options.expand_in_next || !s->pull)
        let_go_of_host(s, d);
    d->expanded = !s->options.expand_in_next;
    d->state = TOKMAP_I_DEVICE_READY;
    s->order[s->n_queued % s->options.n_slots] = (uint8_t)(d - s->slots);
    s->n_queued++;
    return true;
}

/* Outputs that were made ahead, to where the caller wants them. */
static int copy_outputs(const tokmap_cuda *s, const tokmap_i_device_slot *d, tokmap_i_stream stream,
                        const tokmap_i_address *outputs)
{
    const size_t n = (size_t)s->shape.n_rows * s->shape.length;
    const size_t n_bytes[TOKMAP_I_STAGE_OUTPUTS] = {
        n * s->options.input_bytes, n * s->options.label_bytes, n * 4, n * 4, (size_t)s->n_cu * 4};
    int error = 0;
    for (int i = 0; i < TOKMAP_I_STAGE_OUTPUTS && !error; i++)
        if (outputs[i])
            error = s->driver->copy_on_device(outputs[i], d->outputs[i], n_bytes[i], stream);
    return error;
}

/* One attempt. */
static bool hand_over(tokmap_cuda *s, tokmap_i_device_slot *d, tokmap_i_stream stream,
                      const tokmap_i_address *outputs, attempt *a)
{
    const bool in_raw = d->host == TOKMAP_I_NO_SLOT;
    if (in_raw) {
        const int state = s->driver->query(d->ready);
        if (state == TOKMAP_I_DRIVER_NOT_READY)
            s->n_late++;
        else if (failed(a, state, "asking for an event"))
            return false;
        if (failed(a, s->driver->stream_wait(stream, d->ready, 0), "waiting for an event"))
            return false;
    } else {
        s->n_late++; /* nothing of it was done ahead */
    }
    if (!d->expanded) /* then it is ready when this is over */
        return make_outputs(s, d, stream, outputs ? outputs : d->outputs, a) &&
               !failed(a, s->driver->record(d->ready, stream), "recording an event");
    return !outputs || !failed(a, copy_outputs(s, d, stream, outputs), "copying a batch");
}

/* A stream of another device or context, or none: a simpler way of transfer is no help. */
static bool is_about_streams(int error)
{
    return error == TOKMAP_I_DRIVER_INVALID_CONTEXT || error == TOKMAP_I_DRIVER_INVALID_HANDLE ||
           error == TOKMAP_I_DRIVER_CONTEXT_DESTROYED;
}

tokmap_status tokmap_i_stage_hand_over(tokmap_cuda *s, tokmap_i_device_slot *d,
                                       tokmap_i_stream stream, const tokmap_i_address *outputs,
                                       tokmap_error *err)
{
    attempt a;
    const uint64_t n_late = s->n_late;
    /* The caller's stream may be at fault, so this is not the end of the stage. */
    while (!hand_over(s, d, stream, outputs, &a)) {
        s->n_late = n_late;
        if (d->host == TOKMAP_I_NO_SLOT || is_about_streams(a.error) || !demote(s, &a, stream))
            return tokmap_i_stage_fail(s, a.error, a.what, err);
    }
    if (d->host != TOKMAP_I_NO_SLOT)
        let_go_of_host(s, d);
    return TOKMAP_OK;
}

/* staging_cuda_fill.c - from the loader into host slots, and the thread that does it. */
#include <inttypes.h>

#include "base.h"
#include "staging_cuda.h"
#include "status.h"

enum {
    PART_BYTES = 64 << 10 /* that a copier takes at a time, at least */
};

/* ---- One slot ---- */

typedef struct copying {
    const tokmap_i_image *image;
    const tokmap_row *rows;
    uint32_t n_rows, rows_per_part;
} copying;

static void copy_part(void *context, uint32_t part)
{
    const copying *c = context;
    const uint32_t first = part * c->rows_per_part;
    tokmap_i_image_copy(c->image, c->rows, first, MIN(c->n_rows, first + c->rows_per_part));
}

static void copy_rows(const tokmap_cuda *s, const tokmap_i_image *image)
{
    const uint64_t row_bytes = (s->shape.length + 1ull) * s->shape.token_bytes;
    copying c = {.image = image, .rows = s->rows, .n_rows = s->shape.n_rows};
    if (!s->crew) {
        tokmap_i_image_copy(image, s->rows, 0, c.n_rows);
        return;
    }
    const uint64_t n = MIN(div_up(PART_BYTES, row_bytes), c.n_rows);
    c.rows_per_part = (uint32_t)n;
    tokmap_i_crew_run(s->crew, copy_part, &c, (uint32_t)div_up(c.n_rows, n));
}

static tokmap_status write_image(tokmap_cuda *s, tokmap_i_host_slot *h, tokmap_error *err)
{
    if (!tokmap_i_image_begin(&h->image, &s->shape, s->rows))
        return FAIL(err, TOKMAP_ERR_ARGUMENT,
                    "sample %" PRIu64 " and those after it have %" PRIu32
                    " documents: more than max_documents, %" PRIu32,
                    h->first_sample, h->image.n_borders, s->shape.max_borders);
    copy_rows(s, &h->image);
    return TOKMAP_OK;
}

/* What `edit` has made of the rows goes to the device, so it must still fit there. */
static tokmap_status edit_rows(tokmap_cuda *s, const tokmap_batch *batch, tokmap_error *err)
{
    memcpy(s->rows, batch->rows, batch->n_rows * sizeof *s->rows);
    if (!s->options.edit)
        return TOKMAP_OK;
    s->options.edit(s->options.edit_context, s->rows, batch);
    for (uint32_t r = 0; r < batch->n_rows; r++) {
        const tokmap_row *was = &batch->rows[r];
        tokmap_row *is = &s->rows[r];
        if (!is->tokens || is->n_tokens < 2 || is->n_tokens > was->n_tokens ||
            is->token_bytes != was->token_bytes || is->n_documents > was->n_documents ||
            (s->shape.has_documents && is->n_documents == 0))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "edit: row %" PRIu32 " has grown, or has no tokens or documents any more",
                        r);
        /* Documents that began behind its new end. */
        while (is->n_documents > 1 &&
               is->cu_seqlens[is->n_documents - 1] >= (int32_t)is->n_tokens - 1)
            is->n_documents--;
        is->longest_document = MIN(is->longest_document, is->n_tokens - 1);
    }
    return TOKMAP_OK;
}

/* The next batch of the loader into a slot that is the caller's. After an error the loader stands
 * where it stood. */
static tokmap_status fill(tokmap_cuda *s, tokmap_i_host_slot *h, tokmap_error *err)
{
    tokmap_batch batch = {.struct_size = sizeof batch};
    tokmap_status status = tokmap_loader_next(s->loader, &batch, err);
    if (status)
        return status;
    h->first_sample = batch.first_sample;
    h->step_sample = batch.step_sample;
    status = edit_rows(s, &batch, err);
    if (!status)
        status = write_image(s, h, err);
    if (status)
        tokmap_loader_seek(s->loader, batch.step_sample, NULL);
    return status;
}

bool tokmap_i_stage_can_fill(const tokmap_cuda *s)
{
    const tokmap_i_host_slot *h = &s->host[s->n_filled % s->options.n_host_slots];
    return !s->filling && !s->stop.status && !s->lost.status && h->state != TOKMAP_I_HOST_FILLED;
}

void tokmap_i_stage_fill_one(tokmap_cuda *s)
{
    tokmap_i_host_slot *h = &s->host[s->n_filled % s->options.n_host_slots];
    const bool queued = h->state == TOKMAP_I_HOST_QUEUED;
    tokmap_error err = {0};
    s->filling = true;
    tokmap_i_mutex_unlock(&s->mutex);
    const int error = queued ? s->driver->wait_event(h->read) : 0;
    if (error)
        tokmap_i_stage_fail(s, error, "waiting for a copy", &err);
    else
        fill(s, h, &err);
    tokmap_i_mutex_lock(&s->mutex);
    s->filling = false;
    if (error) {
        s->lost = err;
        tokmap_i_stage_note(s, "%s; the stage has stopped", err.text);
    } else if (err.status) {
        h->state = TOKMAP_I_HOST_FREE;
        s->stop = err;
    } else {
        h->state = TOKMAP_I_HOST_FILLED;
        s->n_filled++;
    }
}

/* ---- The thread ---- */

void *tokmap_i_stage_live(void *stage)
{
    tokmap_cuda *s = stage;
    tokmap_i_visit visit;
    const int error = tokmap_i_stage_enter(s, &visit);
    tokmap_i_mutex_lock(&s->mutex);
    if (error) {
        tokmap_i_stage_fail(s, error, "entering the context in a thread", &s->lost);
        tokmap_i_stage_note(s, "%s; the stage has stopped", s->lost.text);
    }
    while (!s->quitting) {
        if (!s->paused && tokmap_i_stage_queue_one(s)) {
            /* the next one at once */
        } else if (!s->paused && tokmap_i_stage_can_fill(s)) {
            tokmap_i_stage_fill_one(s);
        } else {
            tokmap_i_condition_signal(&s->news);
            tokmap_i_condition_wait(&s->work, &s->mutex);
        }
        tokmap_i_condition_signal(&s->news);
        if (s->n_told < s->n_notes) {
            tokmap_i_mutex_unlock(&s->mutex);
            tokmap_i_stage_tell(s);
            tokmap_i_mutex_lock(&s->mutex);
        }
    }
    tokmap_i_mutex_unlock(&s->mutex);
    if (!error)
        tokmap_i_stage_leave(s, &visit);
    return NULL;
}

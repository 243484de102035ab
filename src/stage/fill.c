/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c - fills host slots from the loader, and the thread of the stage. */
#include <inttypes.h>

#include "base/base.h"
#include "base/error.h"
#include "base/options.h"
#include "stage/stage.h"

/* ---- One slot ---- */

/* Copies tokens that the loader took from `first_token` of the dataset on. Tokens in a map are read
 * with pread: an access to a map whose file was shortened raises SIGBUS, which the caller cannot
 * handle in a thread of the library. */
static tokmap_status copy_tokens(const tokmap_dataset *ds, uint64_t first_token, const void *tokens,
                                 uint32_t n_tokens, uint8_t *to, tokmap_error *err)
{
    if (tokens == tokmap_i_mapped_tokens(ds, first_token, n_tokens)) {
        const tokmap_i_token_piece piece = tokmap_i_first_piece(ds, first_token, n_tokens);
        return tokmap_i_token_piece_read(ds, &piece, to, err);
    }
    memcpy(to, tokens, (size_t)n_tokens * ds->header.token_bytes);
    return TOKMAP_OK;
}

static void pad(const tokmap_stage *s, const tokmap_row *row, uint8_t *to, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        memcpy(to + i * row->token_bytes, &s->options.pad_id, row->token_bytes);
}

/* Copies the pieces of a row. labels: the labels of a slice, or NULL. */
static tokmap_status copy_pieces(const tokmap_stage *s, const tokmap_dataset *ds,
                                 const tokmap_row *row, uint8_t *to, uint8_t *labels,
                                 tokmap_error *err)
{
    const size_t width = row->token_bytes;
    tokmap_status status = TOKMAP_OK;
    size_t n_filled = 0;
    for (size_t k = 0; k < row->n_pieces && !status; k++) {
        const tokmap_piece *p = &row->pieces[k];
        pad(s, row, to, n_filled, p->place);
        status =
            copy_tokens(ds, p->first_token, p->tokens, p->n_tokens, to + p->place * width, err);
        if (labels && !status) /* the last label is where the next piece begins */
            memcpy(labels + p->place * width, to + (p->place + 1) * width,
                   (p->n_tokens - 1) * width);
        n_filled = p->place + (labels ? p->n_inputs : p->n_tokens);
    }
    pad(s, row, to, n_filled, row->n_tokens);
    return status;
}

/* Copies the rows to the image, or without an image to the memory for `edit`. */
static tokmap_status copy_rows(tokmap_stage *s, const tokmap_row *rows, const tokmap_i_image *image,
                               tokmap_error *err)
{
    const size_t row_bytes = (s->shape.length + (size_t)1) * s->shape.token_bytes;
    tokmap_status status = TOKMAP_OK;
    for (uint32_t r = 0; r < s->shape.n_rows && !status; r++) {
        const tokmap_i_source *source = &s->loader->samples.sources[s->rows[r].source];
        const tokmap_dataset *ds = source->windows.datasets[s->rows[r].dataset];
        const tokmap_row *row = &rows[r];
        uint8_t *to = image ? tokmap_i_image_tokens(image, r) : s->tokens + r * row_bytes;
        uint8_t *labels = s->shape.n_slices > 1 ? tokmap_i_image_labels(image, &s->shape, r) : NULL;
        status = row->tokens
                     ? copy_tokens(ds, s->rows[r].first_token, row->tokens, row->n_tokens, to, err)
                     : copy_pieces(s, ds, row, to, labels, err);
    }
    return status;
}

/* Whether an edited row still fits into its slot on the device. */
static bool is_sound(const tokmap_stage *s, const tokmap_row *was, tokmap_row *is)
{
    if (!is->tokens || is->n_tokens < 2 || is->n_tokens > was->n_tokens ||
        is->token_bytes != was->token_bytes || is->n_documents > was->n_documents ||
        (s->shape.has_documents && is->n_documents == 0))
        return false;
    /* Drop documents that begin after its new end. */
    while (is->n_documents > 1 && is->cu_seqlens[is->n_documents - 1] >= (int32_t)is->n_tokens - 1)
        is->n_documents--;
    is->longest_document = MIN(is->longest_document, is->n_tokens - 1);
    return true;
}

/* Lets the caller read rows in memory, and replace them. */
static tokmap_status edit_rows(tokmap_stage *s, const tokmap_batch *loaded, tokmap_row *edited,
                               tokmap_error *err)
{
    const size_t row_bytes = (s->shape.length + (size_t)1) * s->shape.token_bytes;
    const uint32_t stride = s->loader->samples.o.row_stride, n_rows = loaded->n_rows;
    uint8_t *copies = s->edit_copies + (size_t)n_rows * stride; /* after the unedited rows */
    tokmap_status status = copy_rows(s, s->rows, NULL, err);
    if (status)
        return status;
    for (uint32_t r = 0; r < n_rows; r++) {
        s->rows[r].tokens = s->tokens + r * row_bytes;
        s->rows[r].pieces = NULL;
        s->rows[r].n_pieces = 0;
    }
    memcpy(edited, s->rows, n_rows * sizeof *edited);
    tokmap_i_copy_rows(s->edit_copies, stride, s->rows, n_rows);
    tokmap_i_copy_rows(copies, stride, s->rows, n_rows);
    tokmap_batch batch = *loaded;
    batch.rows = (const tokmap_row *)(void *)s->edit_copies;
    batch.row_stride = stride;
    s->options.edit(s->options.context, (tokmap_row *)(void *)copies, &batch);
    for (uint32_t r = 0; r < n_rows && !status; r++) {
        status = tokmap_i_take_known(&edited[r], copies + (size_t)r * stride, stride,
                                     &tokmap_i_row_kind, err);
        if (!status && !is_sound(s, &s->rows[r], &edited[r]))
            status = FAIL_REASON(
                err, TOKMAP_ERR_ARGUMENT, TOKMAP_REASON_EDIT,
                "edit: row %" PRIu32 " has grown, or has no tokens or documents left", r);
    }
    return status;
}

/* Fills a slot, which no other thread uses, with the next batch of the loader. After an error the
 * loader's position is unchanged. */
static tokmap_status fill_slot(tokmap_stage *s, tokmap_i_host_slot *h, tokmap_error *err)
{
    tokmap_batch batch = {.struct_size = sizeof batch};
    tokmap_status status = tokmap_i_loader_next(s->loader, &batch, err);
    if (status)
        return status;
    h->first_sample = batch.first_sample;
    h->step_sample = batch.step_sample;
    memcpy(s->rows, batch.rows, batch.n_rows * sizeof *s->rows);
    tokmap_row *rows = s->rows;
    if (s->options.edit) {
        rows += batch.n_rows;
        status = edit_rows(s, &batch, rows, err);
    }
    if (!status && !tokmap_i_image_begin(&h->image, &s->shape, rows))
        status = FAIL(err, TOKMAP_ERR_ARGUMENT,
                      "the batch from sample %" PRIu64 " has %" PRIu32
                      " documents, more than max_boundaries (%" PRIu32 "): set it higher",
                      h->first_sample, h->image.n_boundaries, s->shape.max_boundaries);
    if (!status)
        status = copy_rows(s, rows, &h->image, err);
    if (status)
        tokmap_i_loader_go_to(s->loader, batch.step_sample, NULL);
    return status;
}

bool tokmap_i_stage_can_fill(const tokmap_stage *s)
{
    const tokmap_i_host_slot *h = &s->host[s->n_filled % s->options.n_host_slots];
    return !s->filling && !s->stop.status && !s->lost.status && h->state != TOKMAP_I_HOST_FILLED;
}

void tokmap_i_stage_fill_one(tokmap_stage *s)
{
    tokmap_i_host_slot *h = &s->host[s->n_filled % s->options.n_host_slots];
    const bool queued = h->state == TOKMAP_I_HOST_QUEUED;
    tokmap_error err = {0};
    s->filling = true;
    tokmap_i_mutex_unlock(&s->mutex);
    const int error = queued ? s->driver->wait_event(h->read) : 0;
    if (tokmap_i_stage_check(s, error, "waiting for a copy", &err) == TOKMAP_OK)
        fill_slot(s, h, &err);
    tokmap_i_mutex_lock(&s->mutex);
    s->filling = false;
    if (error) {
        tokmap_i_stage_lose(s, &err);
    } else if (err.status) {
        h->state = TOKMAP_I_HOST_FREE;
        s->stop = err;
    } else {
        h->state = TOKMAP_I_HOST_FILLED;
        s->n_filled++;
    }
}

/* ---- The thread ---- */

void *tokmap_i_stage_run_thread(void *stage)
{
    tokmap_stage *s = stage;
    int mode;
    tokmap_error why;
    tokmap_i_thread_name("tokmap-stage");
    const tokmap_status entered = tokmap_i_stage_check(s, tokmap_i_stage_enter(s, &mode),
                                                       "entering the context in a thread", &why);
    tokmap_i_mutex_lock(&s->mutex);
    if (entered)
        tokmap_i_stage_lose(s, &why);
    while (!s->quitting) {
        if (!s->paused && tokmap_i_stage_queue_one(s)) {
            /* look for the next batch */
        } else if (!s->paused && tokmap_i_stage_can_fill(s)) {
            tokmap_i_stage_fill_one(s);
        } else {
            tokmap_i_condition_signal(&s->news);
            tokmap_i_condition_wait(&s->work, &s->mutex);
        }
        tokmap_i_condition_signal(&s->news);
        if (s->n_sent < s->n_notes) {
            tokmap_i_mutex_unlock(&s->mutex);
            tokmap_i_stage_send_notes(s);
            tokmap_i_mutex_lock(&s->mutex);
        }
    }
    tokmap_i_mutex_unlock(&s->mutex);
    if (!entered)
        tokmap_i_stage_leave(s, mode);
    return NULL;
}

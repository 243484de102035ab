/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c - gives a slot back when its tensors are deleted. */
#include "stage/tensor.h"

#include <stdlib.h>

void tokmap_i_stage_drop_slot(tokmap_stage *s, tokmap_i_device_slot *d)
{
    if (d->held || d->exported.n_tensors > 0 || d->exported.late)
        return;
    d->state = TOKMAP_I_DEVICE_FREE;
    d->freed = ++s->n_freed;
}

/* Records the event. The stream waits for it first, so that it still follows the work of tensors
 * that were returned before, in whatever streams. */
static bool record_return(const tokmap_stage *s, const tokmap_i_tensor *t)
{
    tokmap_i_event returned = t->slot->exported.returned;
    int capturing = 0;
    return !s->driver->is_capturing(t->stream, &capturing) && !capturing &&
           !s->driver->stream_wait(t->stream, returned, 0) &&
           !s->driver->record(returned, t->stream);
}

void tokmap_i_tensor_return(const tokmap_stage *s, tokmap_i_tensor *t, bool in_context)
{
    tokmap_i_export *use = &t->slot->exported;
    if (in_context && record_return(s, t)) {
        free(t);
        return;
    }
    t->next = use->late;
    use->late = t;
}

void tokmap_i_tensor_return_late(tokmap_stage *s)
{
    for (uint32_t i = 0; i < s->options.n_slots; i++) {
        tokmap_i_device_slot *d = &s->slots[i];
        tokmap_i_tensor *t = d->exported.late;
        const bool had_late = t != NULL;
        d->exported.late = NULL;
        while (t) {
            tokmap_i_tensor *next = t->next;
            tokmap_i_tensor_return(s, t, true);
            t = next;
        }
        if (had_late)
            tokmap_i_stage_drop_slot(s, d);
    }
}

void tokmap_i_tensor_free_late(tokmap_stage *s)
{
    for (uint32_t i = 0; i < TOKMAP_I_STAGE_MAX_SLOTS; i++) {
        tokmap_i_tensor *t = s->slots[i].exported.late;
        s->slots[i].exported.late = NULL;
        while (t) {
            tokmap_i_tensor *next = t->next;
            free(t);
            t = next;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* stage.h - an open stage, for the other files of the library.
 *
 * A batch goes through a host slot and a device slot:
 *
 *   host slot     FREE --fill--> FILLED --queue--> QUEUED --event `read`--> FREE
 *   device slot   FREE --queue--> READY --next--> OUT --release, last tensor--> FREE
 *
 * fill copies the rows into pinned memory. queue puts the copy into the stage's stream, after the
 * kernel that reads the slot's previous one. next puts the kernel into the caller's stream, after
 * the work of the caller's streams that uses the slot's outputs. On the host, only the thread that
 * fills waits for an event: the stage's thread, if there is one. After a failure the caller waits
 * too.
 *
 * Batches are counted from 0 at open, seek and restore. The mutex guards everything below it. Calls
 * of the driver that may be slow are made without it: a slot then belongs to the one thread that
 * fills it, queues it or hands it out. */
#pragma once

#include "loader/latency.h"
#include "loader/loader.h"
#include "stage/driver.h"
#include "stage/slot_image.h"
#include "system/platform_thread.h"
#include "tokmap_stage.h"

enum {
    TOKMAP_I_STAGE_MAX_SLOTS = 64,
    TOKMAP_I_STAGE_OUTPUTS = 5, /* in the order of their flags */
    TOKMAP_I_STAGE_NOTES = 4    /* for unpinned memory, and for the end */
};

typedef enum tokmap_i_host_state {
    TOKMAP_I_HOST_FREE,
    TOKMAP_I_HOST_FILLED,
    TOKMAP_I_HOST_QUEUED
} tokmap_i_host_state;

typedef enum tokmap_i_device_state {
    TOKMAP_I_DEVICE_FREE,
    TOKMAP_I_DEVICE_TAKEN, /* by the thread that queues */
    TOKMAP_I_DEVICE_READY,
    TOKMAP_I_DEVICE_OUT
} tokmap_i_device_state;

typedef struct tokmap_i_host_slot {
    tokmap_i_host_state state;
    tokmap_i_image image;
    tokmap_i_event read; /* QUEUED: the slot may be written again after this event */
    uint64_t first_sample, step_sample;
} tokmap_i_host_slot;

typedef struct tokmap_i_tensor tokmap_i_tensor;

/* The tensors of a batch. */
typedef struct tokmap_i_export {
    tokmap_i_event returned; /* follows the work that was in their streams when they were deleted */
    uint32_t n_tensors;      /* tensors that are not deleted */
    tokmap_i_tensor *late;   /* deleted tensors whose work `returned` does not follow yet */
} tokmap_i_export;

typedef struct tokmap_i_device_slot {
    tokmap_i_device_state state;
    tokmap_i_address raw; /* a copy of the image */
    tokmap_i_address outputs[TOKMAP_I_STAGE_OUTPUTS];
    tokmap_i_event ready;    /* follows the copy; from next or fill on, the kernel */
    tokmap_i_event released; /* follows the work that the caller queued before release */
    tokmap_i_export exported;
    tokmap_i_expand_job job;
    uint32_t n_documents, longest;
    uint64_t first_sample, step_sample;
    uint64_t id;    /* count of batches that were handed out */
    bool held;      /* by the caller */
    bool is_late;   /* was not ready when it was handed out */
    uint64_t freed; /* when it became free: a count of such events */
} tokmap_i_device_slot;

struct tokmap_stage {
    tokmap_i_fork_mark fork_mark;
    tokmap_stage_options options; /* with the defaults filled in */
    tokmap_loader *loader;
    tokmap_row *rows;     /* rows of a batch; with `edit`, first as read, then as edited */
    uint8_t *tokens;      /* the tokens of these rows, for `edit`; or NULL */
    uint8_t *edit_copies; /* copies of `rows` and `tokens` for `edit`, at the loader's stride */
    tokmap_i_image_shape shape;
    uint32_t n_cu; /* entries of cu_seqlens */
    uint64_t image_bytes;

    const tokmap_i_driver *driver;
    int device;
    /* Close frees those of these and of the events that are not NULL: the host device has none. */
    void *context, *module, *function;
    tokmap_i_stream stream;
    uint8_t *host_memory;
    uint64_t host_bytes, device_bytes;
    bool pinned, has_thread;
    tokmap_i_thread thread;

    tokmap_i_mutex mutex;
    tokmap_i_condition work, news; /* the stage's thread waits for work; the caller for news */
    bool quitting, paused, filling, queueing;
    tokmap_i_host_slot host[TOKMAP_I_STAGE_MAX_SLOTS];
    tokmap_i_device_slot slots[TOKMAP_I_STAGE_MAX_SLOTS];
    uint8_t order[TOKMAP_I_STAGE_MAX_SLOTS]; /* device slot of batch n, at n % n_slots */
    uint64_t n_filled, n_queued, n_handed;   /* batches */
    uint64_t next_sample;                    /* of the next batch to hand out */
    uint64_t step_samples;                   /* samples of all ranks in a step */
    tokmap_error stop;      /* the error that is returned in place of batch n_filled */
    bool stop_was_returned; /* it has been returned to the caller */
    tokmap_error lost;      /* set when the device has stopped working */
    uint32_t n_tensors;     /* tensors of all slots */
    bool closed;            /* closed, but tensors remain */
    tokmap_stage *next_unfreed;
    /* Lines for `log`, which is called without the mutex: it may wait for a thread that needs the
     * mutex. sending: a thread is calling it. */
    char notes[TOKMAP_I_STAGE_NOTES][600];
    uint32_t n_notes, n_sent;
    bool sending;

    uint64_t n_freed, n_batches, bytes_moved, n_waits, waited_ns, n_late;
    tokmap_i_latency waits;
};

/* ---- open.c ---- */

/* Does the work of tokmap_stage_open. driver: for tests; NULL is the driver of the machine. */
tokmap_status tokmap_i_stage_open(tokmap_stage **out, const tokmap_stage_options *options,
                                  const tokmap_i_driver *driver, tokmap_error *err);

/* Marks a closed stage without tensors: the next open or close in this process frees it. */
void tokmap_i_stage_free_later(tokmap_stage *s);

/* ---- stage.c ---- */

/* Begins a call with a stream. Unless it fails, the stage's context is current in the thread
 * afterwards, and the mutex is held. */
tokmap_status tokmap_i_stage_begin_call(tokmap_stage *s, const tokmap_stage_batch *batch,
                                        tokmap_i_stream stream, int *mode, tokmap_error *err);
/* Returns the slot of a batch that the caller or tensors still use, or NULL. The mutex is held. */
tokmap_i_device_slot *tokmap_i_stage_find_used(tokmap_stage *s, uint64_t id);

/* ---- tensor.c ---- */

/* Frees the slot if nobody uses it any longer and all its events are recorded. The mutex is
 * held. */
void tokmap_i_stage_drop_slot(tokmap_stage *s, tokmap_i_device_slot *d);

/* Makes the event `returned` of the slot follow the work in the stream of a deleted tensor, and
 * frees the tensor. If that is not possible now, the tensor becomes a late one: while its stream is
 * captured, the event would become part of the graph, and the driver may fail. The mutex is
 * held. */
void tokmap_i_tensor_return(const tokmap_stage *s, tokmap_i_tensor *t, bool in_context);
/* Returns the late tensors for which it is possible now. The mutex is held and the context is
 * current. */
void tokmap_i_tensor_return_late(tokmap_stage *s);
/* Frees the late tensors that are left. The mutex is held, except in a forked child. */
void tokmap_i_tensor_free_late(tokmap_stage *s);

/* ---- queue.c: calls of the driver ---- */

/* Makes the context current in this thread, and allows calls during a graph capture; leave restores
 * the caller's context and mode of capture. */
int tokmap_i_stage_enter(const tokmap_stage *s, int *mode);
void tokmap_i_stage_leave(const tokmap_stage *s, int mode);

/* Launches the kernel once, without outputs, and waits for it: the driver may load it only when it
 * is launched first, and then wait for all work of the device. */
tokmap_status tokmap_i_stage_start_kernel(tokmap_stage *s, tokmap_error *err);
/* Queues the next batch, or loses the device. The mutex must be held; it is released meanwhile,
 * because a copy or a launch may be slow. False: there is nothing to queue, no free slot, or
 * another thread is queueing; then the mutex was not released. */
bool tokmap_i_stage_queue_one(tokmap_stage *s);
/* Queues the kernel for a queued batch in the stream, to the slot's outputs or others. The mutex
 * must be held; it is released meanwhile. After an error the call may be repeated. */
tokmap_status tokmap_i_stage_expand(tokmap_stage *s, tokmap_i_device_slot *d,
                                    tokmap_i_stream stream, const tokmap_i_address *outputs,
                                    tokmap_error *err);
/* Checks the result of a call of the driver; fills in err with the driver's text for an error. */
tokmap_status tokmap_i_stage_check(const tokmap_stage *s, int error, const char *what,
                                   tokmap_error *err);
/* Marks the device as no longer working. The mutex is held. */
void tokmap_i_stage_lose(tokmap_stage *s, const tokmap_error *why);
/* Adds a line for `log`, "why; what". The mutex is held. */
void tokmap_i_stage_note(tokmap_stage *s, const char *why, const char *what);
/* Passes new lines to `log`, one after another. If another thread is doing that, it passes these
 * lines too. The mutex is not held. */
void tokmap_i_stage_send_notes(tokmap_stage *s);

/* ---- fill.c: rows into host slots ---- */

/* Whether there is a free host slot. The mutex is held. */
bool tokmap_i_stage_can_fill(const tokmap_stage *s);
/* Fills the next host slot. The mutex must be held; it is released meanwhile. */
void tokmap_i_stage_fill_one(tokmap_stage *s);
/* Runs the stage's thread. */
void *tokmap_i_stage_run_thread(void *stage);

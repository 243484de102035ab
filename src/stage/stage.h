/* stage.h - an open stage, for the files of the library that work on one.
 *
 * A batch goes through a host slot and a device slot:
 *
 *   host slot     FREE --fill--> FILLED --queue--> QUEUED --event `read`--> FREE
 *   device slot   FREE --queue--> READY --next--> LENT --release, last tensor--> FREE
 *
 * fill copies the rows into pinned memory; queue puts copy and kernel into the stage's stream,
 * behind what the caller's streams did with the device slot before. On the host an event is waited
 * for by who fills, which is the stage's thread unless the caller wanted none, and after a failure.
 *
 * Batches are counted from 0 at open, seek and restore. The mutex guards everything below it. Calls
 * of the driver that may take their time are made without it: slots are then in the hands of who
 * fills or queues them, or who hands them out, of whom there is one each. */
#ifndef TOKMAP_I_STAGE_H
#define TOKMAP_I_STAGE_H

#include "stage/crew.h"
#include "stage/driver.h"
#include "loader/latency.h"
#include "loader/loader.h"
#include "system/platform_thread.h"
#include "stage/slot_image.h"
#include "tokmap_stage.h"

enum {
    TOKMAP_I_STAGE_MAX_SLOTS = 64,
    TOKMAP_I_STAGE_OUTPUTS = 5, /* in the order of their flags */
    TOKMAP_I_STAGE_STREAMS = 4, /* in which the tensors of a batch are used */
    TOKMAP_I_STAGE_NOTES = 4    /* memory that cannot be pinned, and the end */
};

typedef enum tokmap_i_host_state {
    TOKMAP_I_HOST_FREE,
    TOKMAP_I_HOST_FILLED,
    TOKMAP_I_HOST_QUEUED
} tokmap_i_host_state;

typedef enum tokmap_i_device_state {
    TOKMAP_I_DEVICE_FREE,
    TOKMAP_I_DEVICE_TAKEN, /* by who queues */
    TOKMAP_I_DEVICE_READY,
    TOKMAP_I_DEVICE_LENT
} tokmap_i_device_state;

typedef struct tokmap_i_host_slot {
    tokmap_i_host_state state;
    tokmap_i_image image;
    tokmap_i_event read; /* QUEUED: over when the slot may be written again */
    uint64_t first_sample, step_sample;
} tokmap_i_host_slot;

/* A stream in which tensors of a batch are used. */
typedef struct tokmap_i_export {
    tokmap_i_stream stream;
    tokmap_i_event returned; /* what it was given before its last tensor was deleted */
    uint32_t n_tensors;
    bool is_back; /* that one is deleted, and the stream not asked yet */
} tokmap_i_export;

typedef struct tokmap_i_device_slot {
    tokmap_i_device_state state;
    tokmap_i_address raw; /* a copy of the image */
    tokmap_i_address outputs[TOKMAP_I_STAGE_OUTPUTS];
    tokmap_i_event ready;    /* what the stage's stream does for it is over */
    tokmap_i_event released; /* and what the caller queued before release */
    tokmap_i_export exports[TOKMAP_I_STAGE_STREAMS];
    uint32_t n_exports; /* since the slot was queued */
    tokmap_i_expand_job job;
    uint32_t n_documents, longest;
    uint64_t first_sample, step_sample;
    uint64_t id;
    bool held;      /* by the caller */
    bool is_late;   /* it was still on its way when it was handed out */
    uint64_t freed; /* when, in the order of such moments */
} tokmap_i_device_slot;

struct tokmap_stage {
    tokmap_i_fork_mark fork_mark;
    tokmap_stage_options options; /* with the defaults filled in */
    tokmap_loader *loader;
    tokmap_row *rows; /* of a batch; with `edit`, as they were and as they are then */
    uint8_t *tokens;  /* of these, for `edit`; or NULL */
    uint8_t *lent;    /* what `edit` gets: copies of both, row_stride of the loader apart */
    tokmap_i_image_shape shape;
    uint32_t n_cu; /* entries of cu_seqlens */
    uint64_t image_bytes;

    const tokmap_i_driver *driver;
    int device;
    void *context, *module, *function;
    tokmap_i_stream stream;
    uint8_t *host_memory;
    uint64_t host_bytes, device_bytes;
    tokmap_i_crew *crew;                                           /* NULL: one copier */
    bool context_is_ours, entered, stream_is_ours, module_is_ours; /* what close gives back, */
    uint32_t n_host_events, n_slot_events;                         /* and so many of these */
    bool pinned, has_thread;
    tokmap_i_thread thread;

    tokmap_i_mutex mutex;
    tokmap_i_condition work, news; /* for the stage's thread; for the caller */
    bool quitting, paused, filling, queueing;
    tokmap_i_host_slot host[TOKMAP_I_STAGE_MAX_SLOTS];
    tokmap_i_device_slot slots[TOKMAP_I_STAGE_MAX_SLOTS];
    uint8_t order[TOKMAP_I_STAGE_MAX_SLOTS]; /* device slot of batch n, at n % n_slots */
    uint64_t n_filled, n_queued, n_handed;   /* batches */
    uint64_t next_sample;                    /* of the first batch that was not handed out */
    uint64_t step_samples;                   /* of all ranks */
    tokmap_error stop;                       /* what came in place of batch n_filled, */
    bool stop_was_told;                      /* and the caller knows */
    tokmap_error lost;                       /* the device will not work any more */
    uint32_t n_tensors;                      /* of all slots */
    bool closed;                             /* but for these */
    char notes[TOKMAP_I_STAGE_NOTES][600];   /* for `log`, which may wait for whoever waits for the
                                              mutex: it is called without it */
    uint32_t n_notes, n_told;

    uint64_t n_freed, last_id, n_batches, n_tokens, bytes_moved, n_waits, ns_waited, n_late;
    tokmap_i_latency waits;
};

/* The driver's calls of this thread go to the device, and no capture of a graph minds them; leave
 * puts back what the caller had. */
typedef struct tokmap_i_visit {
    int capture_mode;
} tokmap_i_visit;

/* ---- open.c ---- */

/* tokmap_stage_open; driver: the one to use for devices, or NULL for that of the machine. */
tokmap_status tokmap_i_stage_open(tokmap_stage **out, const tokmap_stage_options *options,
                                  const tokmap_i_driver *driver, tokmap_error *err);

/* Gives back everything; no tensor is left. */
void tokmap_i_stage_free(tokmap_stage *s);

/* ---- stage.c ---- */

/* What all calls with a stream begin with; afterwards the thread is in the stage's context. */
tokmap_status tokmap_i_stage_begin_call(tokmap_stage *s, const tokmap_stage_batch *batch,
                                        tokmap_i_stream stream, tokmap_i_visit *visit,
                                        tokmap_error *err);
/* With the mutex held: the slot of a batch that the caller or tensors have, or NULL. */
tokmap_i_device_slot *tokmap_i_stage_find_lent(tokmap_stage *s, uint64_t id);
/* With the mutex held: the slot is free if nobody has it any more, and all streams were asked. */
void tokmap_i_stage_drop(tokmap_stage *s, tokmap_i_device_slot *d);

/* ---- dlpack.c ---- */

/* With the mutex held and in the context: slots whose last tensor was deleted at a bad moment. */
void tokmap_i_stage_take_back(tokmap_stage *s);

/* ---- queue.c: what the driver is asked for ---- */

int tokmap_i_stage_enter(const tokmap_stage *s, tokmap_i_visit *v);
void tokmap_i_stage_leave(const tokmap_stage *s, const tokmap_i_visit *v);

/* Queues the next batch, or loses the device. The mutex is held at the call and at its end, but not
 * between: a copy or a launch may take its time. False: there is nothing to queue, no slot for it,
 * or somebody else is at it; then the mutex was held all the time. */
bool tokmap_i_stage_queue_one(tokmap_stage *s);
/* Without the mutex: lets the stream wait for the slot. `outputs`: makes them once more, at these
 * addresses; or NULL. */
tokmap_status tokmap_i_stage_hand_over(tokmap_stage *s, tokmap_i_device_slot *d,
                                       tokmap_i_stream stream, const tokmap_i_address *outputs,
                                       tokmap_error *err);
/* What the driver says of an error. */
tokmap_status tokmap_i_stage_fail(const tokmap_stage *s, int error, const char *what,
                                  tokmap_error *err);
/* With the mutex held: a line for `log`. */
void tokmap_i_stage_note(tokmap_stage *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Without it: `log` gets the lines that it has not had yet. */
void tokmap_i_stage_tell(tokmap_stage *s);

/* ---- fill.c: rows into host slots ---- */

/* With the mutex held. */
bool tokmap_i_stage_can_fill(const tokmap_stage *s);
/* Fills the next host slot; the mutex is held at the call and at its end, and not between. */
void tokmap_i_stage_fill_one(tokmap_stage *s);
/* What the stage's thread does. */
void *tokmap_i_stage_live(void *stage);

#endif /* TOKMAP_I_STAGE_H */

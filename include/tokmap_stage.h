/* SPDX-License-Identifier: Apache-2.0 */
/* tokmap_stage.h - copies the batches of a loader to a GPU, before the step that needs them.
 *
 * Example: trains for a number of steps in one stream.
 *
 *     int train(tokmap_loader *loader, void *stream, int n_steps,
 *               void (*step)(const tokmap_stage_batch *batch, void *stream))
 *     {
 *         tokmap_stage_options options = TOKMAP_INIT(tokmap_stage_options);
 *         options.loader = loader;
 *         tokmap_stage_batch batch = TOKMAP_INIT(tokmap_stage_batch);
 *         tokmap_stage *stage;
 *         int status = tokmap_stage_open(&stage, &options, NULL);
 *         for (; n_steps > 0 && !status; n_steps--)
 *             if (!(status = tokmap_stage_next(stage, &batch, stream, NULL))) {
 *                 step(&batch, stream);
 *                 status = tokmap_stage_release(stage, &batch, stream, NULL);
 *             }
 *         tokmap_stage_close(stage);
 *         return status;
 *     }
 *
 * EXPERIMENTAL: the tests of this code pass on one GPU, but no long training has used it yet.
 * Calls, structs and options of this header may change in any release. The order of batches and
 * the states are those of the loader, and do not change.
 *
 * The rules in tokmap.h and tokmap_loader.h hold here too.
 *
 * Loader    While a stage is open, only it uses the loader, and the loader and its datasets must
 *           stay open. A loader has one stage at a time. After close, the loader continues after
 *           the last batch that next or fill returned.
 * Transfer  Tokens cross the bus once, at their stored width; for slices of rows, their labels and
 *           ids are copied too. A thread of the stage fills pinned memory and queues the transfers,
 *           some steps in advance. A kernel in the caller's stream makes inputs, labels, position
 *           ids, document ids and document boundaries from them.
 * Streams   A stream is a CUstream or cudaStream_t of the device's primary context. NULL is the
 *           legacy default stream. CU_STREAM_PER_THREAD is not allowed, since it means another
 *           stream in each thread. next makes the caller's stream wait for the transfer, and
 *           release makes the slot's next batch wait for the caller's stream, both on the GPU, by
 *           events. The host waits only if next asks for a batch that has not been queued yet, or
 *           after the driver failed. If other streams use the batch, join them to the one given to
 *           release. A stream must exist until its batches are released and their tensors are
 *           deleted. A stream that is being captured is refused: call tokmap_stage_fill before the
 *           graph is launched, with the addresses that the graph reads.
 * Memory    Open allocates everything. The pointers of a batch are device addresses, valid from
 *           next to release. Batches may be held over several steps and released in any order; at
 *           most n_slots - 1 may be held at a time.
 * Driver    libcuda.so.1 is loaded when a stage is opened. The library links nothing of CUDA and is
 *           the same with and without a GPU. If something is missing, open returns
 *           TOKMAP_ERR_DEVICE and err says what. TOKMAP_STAGE_HOST always works.
 * Threads   A stage is used by one thread at a time, but release, wait and export may be called in
 *           any thread. `log` and `edit` may be called in threads of the stage, and must not use
 *           it. Each device needs its own stage and loader. Calls do not change the current context
 *           of the caller's thread.
 * fork      In a child process, a stage of the parent returns TOKMAP_ERR_FORKED. close does not
 *           affect the parent.
 * Errors    An error of the loader is returned in place of the step to which it belongs, after all
 *           earlier batches; next may be called again. Tokens and document boundaries are read
 *           without the maps: a shortened file is TOKMAP_ERR_IO and raises no signal. If host
 *           memory cannot be pinned, the stage reports this once to `log` and continues, more
 *           slowly. If the driver fails to queue a transfer, next returns TOKMAP_ERR_DEVICE from
 *           then on; save still works. If it fails to start the kernel, next may be called
 *           again. */
#ifndef TOKMAP_STAGE_H
#define TOKMAP_STAGE_H

#include "tokmap_loader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ---- */

typedef struct tokmap_stage tokmap_stage;

/* The device that always exists: the processor and ordinary memory. Streams are ignored. */
#define TOKMAP_STAGE_HOST (-1)

/* The outputs of a batch. Combine with |. */
enum {
    TOKMAP_STAGE_INPUTS = 1,
    TOKMAP_STAGE_LABELS = 2,        /* ignore_index where loss_mask is 0 or the row is shorter */
    TOKMAP_STAGE_POSITION_IDS = 4,  /* from 0 in each document */
    TOKMAP_STAGE_DOCUMENT_IDS = 8,  /* from 0 in each row */
    TOKMAP_STAGE_CU_SEQLENS = 16,   /* starts of documents in the batch, rows one after another */
    TOKMAP_STAGE_ROW_POSITIONS = 32 /* with POSITION_IDS: from 0 in each row; not for slices */
};

typedef struct tokmap_stage_options {
    size_t struct_size; /* sizeof(tokmap_stage_options) */
    /* Opened with TOKMAP_ROW_DOCUMENTS if an output needs documents; for slices, with the row part
     * of that output. */
    tokmap_loader *loader;
    int32_t device;           /* number of the device in the driver, from 0; or TOKMAP_STAGE_HOST */
    uint32_t n_slots;         /* batches in device memory, 2 to 64; 0: 4 */
    uint32_t n_host_slots;    /* batches in pinned memory, 1 to 64; 0: what fits 64 MiB, 2 to 8 */
    uint32_t outputs;         /* TOKMAP_STAGE_...; 0: INPUTS and LABELS */
    uint32_t input_bytes;     /* 4: int32, 8: int64; 0: 4. All ids must fit */
    uint32_t label_bytes;     /* 4: int32, 8: int64; 0: 8. All ids must fit */
    int64_t ignore_index;     /* value of labels that do not count */
    int32_t has_ignore_index; /* 0: ignore_index must be 0, and -100 is used */
    uint32_t pad_id;          /* the value of inputs that a shorter row lacks */
    /* Documents in all rows of a batch; cu_seqlens has one more entry. 0: enough for any batch. If
     * outputs need documents, every slot reserves 4 bytes for each: with the default and tokens of
     * 2 bytes, a slot is three times as large as its tokens. Only what is used is transferred. */
    uint32_t max_boundaries;
    int32_t no_thread; /* 1: no thread; next does all the work */
    void *context;     /* passed to the functions below */
    /* Receives a line of text, at most a few times, in any thread, but never in two at the same
     * time. May be NULL. */
    void (*log)(void *context, const char *text);
    /* May change the rows of a batch before they are transferred: point `tokens` and `loss_mask`
     * to other memory, which must stay valid until the next call of edit, and lower n_tokens and
     * n_documents. batch->rows are the rows as they were. Called once for each batch, in order,
     * in a thread of the stage; again for the same batch after an error, seek or restore. May be
     * NULL. */
    void (*edit)(void *context, tokmap_row *rows, const tokmap_batch *batch);
} tokmap_stage_options;

/* A batch on the device. Pointers are device addresses, NULL for what is not among the outputs. All
 * except cu_seqlens have n_rows times sequence_length numbers. */
typedef struct tokmap_stage_batch {
    size_t struct_size;    /* sizeof(tokmap_stage_batch), set by the caller */
    void *inputs;          /* int32 or int64: input_bytes */
    void *labels;          /* int32 or int64: label_bytes */
    int32_t *position_ids; /* see TOKMAP_STAGE_POSITION_IDS */
    int32_t *document_ids; /* see TOKMAP_STAGE_DOCUMENT_IDS */
    int32_t *cu_seqlens;   /* max_boundaries + 1; from n_documents on, the number of all inputs */
    uint32_t n_rows;
    uint32_t sequence_length;
    uint32_t n_documents; /* in cu_seqlens; the padding of a row counts as one */
    /* inputs of the longest document; may be too high for rows that edit shortened */
    uint32_t max_seqlen;
    uint64_t first_sample; /* as in tokmap_batch */
    uint64_t step_sample;  /* as in tokmap_batch */
    uint64_t id;           /* identifies the batch for wait, release and export */
} tokmap_stage_batch;

/* ---- Open and close ---- */

/* Counts the devices. TOKMAP_ERR_DEVICE: there are none, or there is no driver; err says which. */
TOKMAP_API tokmap_status tokmap_stage_count_devices(uint32_t *n_devices, tokmap_error *err);

/* Opens a stage. TOKMAP_ERR_ARGUMENT: err says which option is wrong. TOKMAP_ERR_DEVICE: see
 * Driver. */
TOKMAP_API tokmap_status tokmap_stage_open(tokmap_stage **out, const tokmap_stage_options *options,
                                           tokmap_error *err);
/* Waits until the device has done the queued work of the stage. Exported tensors stay valid. When
 * the last of them has been deleted, the next open or close of a stage in the process frees device
 * memory; tokmap_stage_close(NULL) does only that. */
TOKMAP_API void tokmap_stage_close(tokmap_stage *s);

/* ---- Use ---- */

/* Returns the batch of the next step, for `stream`. TOKMAP_END as in tokmap_loader_next.
 * TOKMAP_ERR_ARGUMENT: n_slots - 1 batches are held; or the step has more documents than
 * max_boundaries, which remains an error until a seek skips the step. */
TOKMAP_API tokmap_status tokmap_stage_next(tokmap_stage *s, tokmap_stage_batch *batch, void *stream,
                                           tokmap_error *err);
/* Makes another stream wait for a batch that is held. */
TOKMAP_API tokmap_status tokmap_stage_wait(tokmap_stage *s, const tokmap_stage_batch *batch,
                                           void *stream, tokmap_error *err);
/* Returns the batch to the stage. Work that is queued in the stream later must not use it. */
TOKMAP_API tokmap_status tokmap_stage_release(tokmap_stage *s, const tokmap_stage_batch *batch,
                                              void *stream, tokmap_error *err);
/* The same as tokmap_stage_next followed by tokmap_stage_release, but writes to the caller's device
 * memory, for example to the fixed addresses of a graph. One kernel in the stream does it. Set the
 * pointers in *batch to that memory; outputs that are NULL are left out, and others must be among
 * the outputs of the stage. The other fields of *batch are filled in. */
TOKMAP_API tokmap_status tokmap_stage_fill(tokmap_stage *s, tokmap_stage_batch *batch, void *stream,
                                           tokmap_error *err);

typedef struct tokmap_stage_tensor {
    size_t struct_size; /* sizeof(tokmap_stage_tensor), set by the caller */
    uint32_t output;    /* set by the caller: TOKMAP_STAGE_INPUTS, ... */
    void *stream;       /* set by the caller: where the tensor is used */
    void *managed;      /* filled in: a DLManagedTensor of DLPack 0.8 */
} tokmap_stage_tensor;

/* Exports an output of a batch that is held as a DLPack tensor; its stream waits for the batch.
 * The tensor's deleter may be called in any thread, also after close, and never waits for the
 * device. The batch is free again when it is released and all its tensors are deleted; its slot is
 * written again only after the work that was in the stream of each tensor when it was deleted.
 * Tensors of a batch may be for several streams: then the stream of a tensor that is deleted also
 * waits for the work before the deletions of the others, on the GPU. */
TOKMAP_API tokmap_status tokmap_stage_export(tokmap_stage *s, const tokmap_stage_batch *batch,
                                             tokmap_stage_tensor *tensor, tokmap_error *err);

/* ---- State: as for the loader; batches that next and fill returned count ---- */

TOKMAP_API tokmap_status tokmap_stage_save(const tokmap_stage *s, uint8_t state[TOKMAP_STATE_BYTES],
                                           tokmap_error *err);
/* Restores the loader. Batches that are held stay valid. */
TOKMAP_API tokmap_status tokmap_stage_restore(tokmap_stage *s,
                                              const uint8_t state[TOKMAP_STATE_BYTES],
                                              tokmap_error *err);
/* Moves the loader to a sample. Batches that are held stay valid. */
TOKMAP_API tokmap_status tokmap_stage_seek(tokmap_stage *s, uint64_t sample, tokmap_error *err);
TOKMAP_API uint64_t tokmap_stage_position(const tokmap_stage *s);

/* ---- Info ---- */

typedef struct tokmap_stage_info {
    size_t struct_size;       /* sizeof(tokmap_stage_info), set by the caller */
    int32_t device;           /* as in the options */
    int32_t pinned;           /* 0: host memory could not be pinned */
    uint32_t n_slots;         /* batches in device memory */
    uint32_t n_host_slots;    /* batches in pinned memory */
    uint32_t n_rows;          /* of every batch */
    uint32_t sequence_length; /* of every batch */
    uint32_t max_boundaries;  /* of every batch */
    uint64_t device_bytes;    /* device memory, allocated at open */
    uint64_t host_bytes;      /* pinned memory, allocated at open */
    uint64_t n_batches;       /* returned by next and fill */
    uint64_t n_tokens;        /* inputs of these batches */
    uint64_t bytes_moved;     /* across the bus */
    uint64_t n_waits;         /* times that the host waited in next or fill */
    uint64_t waited_ns;       /* time that the host waited */
    uint64_t wait_p50_ns;     /* percentile of all calls of next and fill, waiting or not */
    uint64_t wait_p99_ns;     /* likewise */
    uint64_t wait_p999_ns;    /* likewise */
    uint64_t wait_max_ns;     /* the longest call */
    uint64_t n_late;          /* batches whose transfer had not ended when next returned them */
} tokmap_stage_info;

TOKMAP_API tokmap_status tokmap_stage_get_info(const tokmap_stage *s, tokmap_stage_info *info);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_STAGE_H */

/* tokmap_stage.h - the batches of a loader in the memory of a GPU, there before the step that needs
 * them.
 *
 * Use       Open a loader (tokmap_loader.h), tokmap_stage_open a stage on it. For each step:
 *           tokmap_stage_next with the stream that the step runs in, start work on the batch in
 *           that stream, tokmap_stage_release with the stream that used the batch last. Save with
 *           tokmap_stage_save. The loader and its datasets stay open, and the loader is the
 *           stage's alone, until the stage is closed; then the loader stands behind the last
 *           batch that was handed out. A loader has one stage at a time.
 * Transfer  Tokens cross the bus once, as wide as they are stored. Inputs, labels, position ids,
 *           document ids and borders of documents are made from them on the GPU. A thread of the
 *           stage's fills pinned memory and queues the transfers, some steps ahead.
 * Streams   next lets the caller's stream wait for the batch, release lets the stage wait for the
 *           caller's stream: on the GPU, by events. The host waits only when a batch has not been
 *           queued yet when next asks for it, and when the driver has failed. A stream is a
 *           CUstream or cudaStream_t of the device's primary context, NULL the (legacy) default
 *           stream, but not CU_STREAM_PER_THREAD, which is another one in each thread. A stream
 *           lives until its batches are released and their tensors deleted. Work in other streams
 *           than the one given to release must have been joined to it. A stream that
 *           is being captured is refused: call tokmap_stage_fill before a graph is launched, with
 *           the addresses that the graph reads.
 * Memory    Everything is taken at open, nothing later. Pointers of a batch are addresses of the
 *           device, good from next to release. A batch may be held over any number of steps, and
 *           batches be released in any order: at most n_slots - 1 at a time.
 * Driver    Found when a stage is opened (libcuda.so.1); nothing is linked, no header of the
 *           toolkit is needed, and the library is the same with and without a GPU. Without one,
 *           open is TOKMAP_ERR_DEVICE and says what is missing. TOKMAP_STAGE_HOST is a device that
 *           is always there: the same stage, with batches in ordinary memory.
 * Threads   A stage belongs to one thread at a time, but release, wait and export may be called in
 *           any. `log` and `edit` are called in threads of the stage's, too, and must not use it.
 *           Each device of a process has its own stage and loader. The context that is current in
 *           the caller's thread stays so.
 * fork      A child gets TOKMAP_ERR_FORKED from every call that has a status; close leaves the
 *           parent's stage alone.
 * Errors    As in tokmap_loader.h; an error of reading comes with the step that needs the rows, and
 *           next may be called again. Tokens and document borders are read from the files and not
 *           through their maps: a file that was cut is TOKMAP_ERR_IO and raises no signal. When
 *           host memory cannot be pinned, the stage says so once by `log` and copies out of memory
 *           that is not pinned, which is slower. When the driver refuses to queue a batch, next is
 *           TOKMAP_ERR_DEVICE for good; save still works. */
#ifndef TOKMAP_STAGE_H
#define TOKMAP_STAGE_H

#include "tokmap_loader.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tokmap_stage tokmap_stage;

/* A device that is always there: the processor, with ordinary memory. Streams are ignored. */
#define TOKMAP_STAGE_HOST (-1)

/* What a batch holds. */
enum {
    TOKMAP_STAGE_INPUTS = 1,
    TOKMAP_STAGE_LABELS = 2,        /* those that a loss mask (TOKMAP_ROW_LOSS_MASK) leaves out, and
                                      those of rows that are shorter, are ignore_index */
    TOKMAP_STAGE_POSITION_IDS = 4,  /* from 0 in each document */
    TOKMAP_STAGE_DOCUMENT_IDS = 8,  /* from 0 in each row */
    TOKMAP_STAGE_CU_SEQLENS = 16,   /* where documents begin in the batch, rows one after another */
    TOKMAP_STAGE_ROW_POSITIONS = 32 /* position ids from 0 in each row instead */
};

typedef struct tokmap_stage_options { /* zero it; 0 means the default, where there is one */
    size_t struct_size;               /* sizeof(tokmap_stage_options) */
    tokmap_loader *loader;            /* with row_parts DOCUMENTS where outputs tell of documents */
    int32_t device;                   /* as the driver counts, from 0; or TOKMAP_STAGE_HOST */
    uint32_t n_slots;                 /* batches in device memory, 2 to 64; default 4 */
    uint32_t n_host_slots; /* filled ahead in pinned memory, 1 to 64; default 8 or 64 MiB,
                                        whichever is less, and at least 2 */
    uint32_t outputs;      /* TOKMAP_STAGE_...; default INPUTS and LABELS */
    uint32_t input_bytes;  /* 4 or 8: int32 or int64; default 4; ids must fit */
    uint32_t label_bytes;  /* likewise; default 8 */
    int64_t ignore_index;
    int32_t has_ignore_index; /* 0: leave ignore_index 0, and labels become -100 */
    uint32_t pad_id;          /* inputs that a shorter row lacks */
    uint32_t max_documents;   /* of a batch; cu_seqlens has one more entry. Default: enough
                                        for any batch. Where outputs tell of documents, each slot of
                                        either kind reserves 4 bytes for each: by default a slot for
                                        16-bit ids is three times as large as their tokens. What a
                                        batch does not use of it is not copied */
    int32_t no_thread;        /* 1: next does all the work */
    uint32_t n_copiers;       /* threads that fill pinned memory, 1 to 16; default 1 */
    void *context;            /* passed to the calls below */
    /* One line; a few times at most, in any thread. */
    void (*log)(void *context, const char *text);
    /* May point rows to other tokens and another loss_mask before they are staged (fill in the
     * middle, masks of one's own); neither n_tokens nor n_documents may grow. What it points to
     * lives until the next call of edit. Called in order, once for each batch, in a thread of the
     * stage's; again for the same batch after an error, seek or restore. */
    void (*edit)(void *context, tokmap_row *rows, const tokmap_batch *batch);
} tokmap_stage_options;

typedef struct tokmap_stage_batch {
    size_t struct_size; /* sizeof(tokmap_stage_batch), set by the caller */
    /* Addresses of the device; NULL where `outputs` does not ask for it. n_rows times
     * sequence_length each: */
    void *inputs, *labels; /* int32 or int64 */
    int32_t *position_ids, *document_ids;
    int32_t *cu_seqlens; /* max_documents + 1; from n_documents on n_rows * sequence_length */
    uint32_t n_rows, sequence_length;
    uint32_t n_documents;               /* of cu_seqlens; what a short row lacks is one, too */
    uint32_t max_seqlen;                /* the longest of these, on the host; of rows that
                                           `edit` has cut perhaps less than this */
    uint64_t first_sample, step_sample; /* as in tokmap_batch */
    uint64_t id;                        /* the stage's, for release */
} tokmap_stage_batch;

/* How many devices the driver has. TOKMAP_ERR_DEVICE: none, or no driver; err says which. */
TOKMAP_API tokmap_status tokmap_stage_count_devices(uint32_t *n_devices, tokmap_error *err);

/* TOKMAP_ERR_ARGUMENT: an option breaks a rule, err says which. */
TOKMAP_API tokmap_status tokmap_stage_open(tokmap_stage **out, const tokmap_stage_options *options,
                                           tokmap_error *err);
/* Waits until the device has done what was queued for the stage. Tensors that were exported stay
 * good. */
TOKMAP_API void tokmap_stage_close(tokmap_stage *s);

/* The next step. TOKMAP_END and errors of the loader come in their place, after all batches before
 * them. TOKMAP_ERR_ARGUMENT: too many batches are held; or the step has more documents than
 * max_documents, which stays so until the stage is opened with more, or a seek skips the step. */
TOKMAP_API tokmap_status tokmap_stage_next(tokmap_stage *s, tokmap_stage_batch *batch, void *stream,
                                           tokmap_error *err);
/* Lets another stream wait for a batch that is held, too. */
TOKMAP_API tokmap_status tokmap_stage_wait(tokmap_stage *s, const tokmap_stage_batch *batch,
                                           void *stream, tokmap_error *err);
/* Nothing that is queued in the stream later uses the batch. */
TOKMAP_API tokmap_status tokmap_stage_release(tokmap_stage *s, const tokmap_stage_batch *batch,
                                              void *stream, tokmap_error *err);
/* next into memory of the caller's, and released at once: sets of addresses that stay the same, as
 * graphs need them. One kernel in the stream writes them. Pointers in *batch that are NULL are left
 * out; those that are set must be among `outputs`. The rest of *batch is filled in. */
TOKMAP_API tokmap_status tokmap_stage_fill(tokmap_stage *s, tokmap_stage_batch *batch, void *stream,
                                           tokmap_error *err);

/* As their namesakes of the loader: what was handed out counts. Batches that are held stay good. */
TOKMAP_API tokmap_status tokmap_stage_save(const tokmap_stage *s, uint8_t state[TOKMAP_STATE_BYTES],
                                           tokmap_error *err);
TOKMAP_API tokmap_status tokmap_stage_restore(tokmap_stage *s,
                                              const uint8_t state[TOKMAP_STATE_BYTES],
                                              tokmap_error *err);
TOKMAP_API tokmap_status tokmap_stage_seek(tokmap_stage *s, uint64_t sample, tokmap_error *err);
TOKMAP_API uint64_t tokmap_stage_position(const tokmap_stage *s);

typedef struct tokmap_stage_tensor {
    size_t struct_size; /* sizeof(tokmap_stage_tensor), set by the caller, as are the next two */
    uint32_t output;    /* TOKMAP_STAGE_INPUTS, ... */
    void *stream;       /* in which it is used; any that next could be given */
    void *managed;      /* written by export: a DLManagedTensor of DLPack 0.8 */
} tokmap_stage_tensor;

/* One output of a batch that is held as a DLPack tensor, for which its stream waits. Its deleter
 * may be called in any thread, also after close. The batch is free when it has been released and
 * all of its tensors are deleted; the stage then waits for what each of their streams was given
 * until its last tensor was deleted. The tensors of a batch may be used in up to four streams. */
TOKMAP_API tokmap_status tokmap_stage_export(tokmap_stage *s, const tokmap_stage_batch *batch,
                                             tokmap_stage_tensor *tensor, tokmap_error *err);

typedef struct tokmap_stage_info {
    size_t struct_size; /* sizeof(tokmap_stage_info), set by the caller */
    int32_t device;
    int32_t pinned; /* 0: host memory could not be pinned */
    uint32_t n_slots, n_host_slots;
    uint32_t n_rows, sequence_length, max_documents; /* of every batch */
    uint64_t device_bytes, host_bytes;               /* taken at open */
    uint64_t n_batches, n_tokens;                    /* handed out; inputs */
    uint64_t bytes_moved;                            /* across the bus */
    uint64_t n_waits, ns_waited;                     /* of the host, in next, */
    uint64_t wait_p50_ns, wait_p99_ns, wait_p999_ns,
        wait_max_ns; /* of whole calls of next and fill,
                                                                     waiting or not */
    /* Batches that were still on their way when they were handed out: the caller's stream waits for
     * them. The others overlapped. */
    uint64_t n_late;
} tokmap_stage_info;
TOKMAP_API tokmap_status tokmap_stage_get_info(const tokmap_stage *s, tokmap_stage_info *info);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_STAGE_H */

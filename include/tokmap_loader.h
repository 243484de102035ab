/* tokmap_loader.h - serve sequences from token datasets: shuffled, mixed, resumable, not copied.
 *
 * Use       Open datasets (tokmap.h), put them into sources, tokmap_loader_open. Then, for each
 *           training step: tokmap_loader_next, and read the rows, or tokmap_batch_gather them into
 *           a buffer. tokmap_loader_save with each checkpoint; tokmap_loader_restore after a
 *           restart. The datasets are the caller's and must stay open until the loader is closed.
 * Order     Sample number g holds the same tokens whatever the number of ranks, the batch size, the
 *           look-ahead or the way of reading: docs/ORDER.md. All ranks open the same sources with
 *           the same options but for `rank`; the rows of a step are handed out rank by rank, and
 *           each window of a source comes once an epoch. Ranks, rows, look-ahead and the way of
 *           reading may be others after a restore.
 * Rows      A row is sequence_length + 1 tokens at their stored width: the inputs, and one more, so
 *           that the labels are the same row from its second token on. It points into the map
 *           or, with DIRECT and READ, to where it was read to; where a random offset joins the end
 *           of a dataset to its beginning, to a copy. Rows, and all that a batch points to, live
 *           until the next call of next, seek, restore, set_batch or close.
 * Reading   Hot data is not read at all. Else one helper thread, which the loader starts and ends,
 *           brings in the rows of the next steps, since the order is known; see tokmap_io. It
 *           never writes, locks or leaves anything: read-only media and any number of readers
 *           will do.
 * Threads   A loader is used by one thread at a time; threads may take turns. A call while another
 *           thread is in one is TOKMAP_ERR_ARGUMENT as a rule: that is a help in finding the
 *           mistake and no lock, as two calls that begin in the same nanoseconds may both go on.
 *           close, position and get_info cannot say so.
 *           Several loaders may share datasets; one that is closed, or reads in another way, undoes
 *           the advice that the others gave to the page cache.
 * fork      A child that uses its parent's loader gets TOKMAP_ERR_FORKED from every call that
 *           has a status; close leaves the parent's alone. Its datasets it may use.
 * Errors    As in tokmap.h. What cannot be read is TOKMAP_ERR_IO of the step that needs it, with
 *           file and offset; a damaged document index, where row_parts or windows within documents
 *           need it, is TOKMAP_ERR_CORRUPT. After an error of next, the loader stands where it
 *           stood: next may be called again, save works.
 *           SIGBUS is raised in the caller's threads only. Accessing a row in a map raises it when
 *           the token file was cut meanwhile (POPULATE), or cannot be read (MAP); the rest of a
 *           page that was cut in its middle reads as zeros. Looking documents up (row_parts,
 *           windows within documents) raises it when the index file was cut or cannot be read: in
 *           open, and with MAP, unless a stage has taken the loader, in next and locate. Other
 *           loaders read the index without its map. */
#ifndef TOKMAP_LOADER_H
#define TOKMAP_LOADER_H

#include "tokmap.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tokmap_loader tokmap_loader;

typedef enum tokmap_shuffle {
    TOKMAP_SHUFFLE_FULL = 0, /* all windows of an epoch in random order */
    TOKMAP_SHUFFLE_NONE = 1,
    TOKMAP_SHUFFLE_BLOCK = 2 /* random blocks, mixed in groups: a stretch of steps reads in few
                                places, for cold data and network file systems */
} tokmap_shuffle;

typedef enum tokmap_windows {
    TOKMAP_WINDOWS_CONCAT = 0,         /* the tokens one after another, cut into equal windows */
    TOKMAP_WINDOWS_WITHIN_DOCUMENT = 1 /* no window crosses a document border; the last one of a
                                          document is shorter. Open reads the document index. */
} tokmap_windows;

/* How bytes arrive. The environment variable TOKMAP_IO (auto, map, direct, populate, read) goes
 * before the option. Where DIRECT does not work, POPULATE is taken. All but MAP need a thread:
 * where none can be started, open is TOKMAP_ERR_IO. */
typedef enum tokmap_io {
    TOKMAP_IO_AUTO = 0, /* MAP when the data are in memory at open; DIRECT when they are larger than
                           the memory that is available, unless blocks are read whole; else
                           POPULATE */
    TOKMAP_IO_MAP = 1,  /* pointers into the map, no thread */
    TOKMAP_IO_DIRECT = 2,   /* io_uring and O_DIRECT into a ring of the loader's; takes 4 to 16 KiB
                               of memory more than its tokens for each row that is read ahead */
    TOKMAP_IO_POPULATE = 3, /* pages of the map are brought in and checked up to 8 steps before they
                               are lent;
                               with TOKMAP_SHUFFLE_BLOCK and up to 8 ranks the blocks of the next
                               group are read whole, so that the page cache needs room for two */
    TOKMAP_IO_READ = 4      /* pread into the ring */
} tokmap_io;

/* One or more datasets that are one corpus; of one token width. */
typedef struct tokmap_loader_source {
    const tokmap_dataset *const *datasets; /* in order, which matters */
    uint32_t n_datasets;                   /* 1 to 65,535 */
    int32_t masked;                        /* 1: its labels do not count (loss_mask is 0) */
    double weight;       /* share of all samples, beside the weights of the others: thirds and
                            decimals of five digits exactly, others to a thousandth or better or to
                            1 of 2^20 samples (tokmap_loader_get_source says it). A weight above 0
                            that is less than 1 of 2^20 samples is refused */
    uint64_t max_epochs; /* the stream ends when it would be read once more; 0: no limit */
} tokmap_loader_source;

/* Other weights from a sample on. */
typedef struct tokmap_loader_phase {
    uint64_t first_sample; /* above 0, rising, below 2^62 */
    const double *weights; /* one for each source; 0: none of its samples */
} tokmap_loader_phase;

/* What rows say beside their tokens; or them together. */
enum {
    TOKMAP_ROW_DOCUMENTS = 1,    /* cu_seqlens, n_documents, longest_document */
    TOKMAP_ROW_POSITION_IDS = 2, /* position_ids */
    TOKMAP_ROW_DOCUMENT_IDS = 4, /* document_ids */
    TOKMAP_ROW_LOSS_MASK = 8     /* loss_mask */
};

typedef struct tokmap_loader_options { /* zero it; 0 means the default, where there is one */
    size_t struct_size;                /* sizeof(tokmap_loader_options) */
    const tokmap_loader_source *sources;
    uint32_t n_sources;                /* 1 to 65,535 */
    uint32_t source_stride;            /* sizeof(tokmap_loader_source) */
    const tokmap_loader_phase *phases; /* after the first one, which has the sources' weights */
    uint32_t n_phases;                 /* up to 65,534 */
    uint32_t phase_stride;             /* sizeof(tokmap_loader_phase), where there are phases */
    uint32_t row_stride;               /* sizeof(tokmap_row) */
    uint32_t sequence_length;          /* inputs of a row, 1 to 2^24 */
    uint32_t batch_rows;               /* of this rank in a step, 1 to 2^24 */
    uint32_t rank, n_ranks;            /* up to 2^24 ranks; n_ranks 0: one */
    uint32_t row_parts;                /* TOKMAP_ROW_... */
    uint64_t seed;
    tokmap_shuffle shuffle;
    tokmap_windows windows;
    uint64_t block_windows; /* of TOKMAP_SHUFFLE_BLOCK; default: as many as 1 MiB holds */
    uint64_t group_blocks;  /* likewise; default 64 */
    int32_t random_offset;  /* 1: window borders are others in every epoch; not within documents */
    tokmap_io io;
    uint32_t look_ahead; /* steps, up to 1024 and 2^26 rows; default: as many as hold 256
                            rows, 2 to 64 */
    int32_t drop_behind; /* 1: what was handed out leaves the page cache (POPULATE, READ) */
} tokmap_loader_options;

typedef struct tokmap_row {
    const void *tokens;   /* n_tokens, little-endian, token_bytes each */
    uint32_t n_tokens;    /* sequence_length + 1; within documents 2 to that */
    uint32_t token_bytes; /* 2 or 4 */
    uint32_t source;
    uint32_t dataset;       /* in its source */
    uint64_t epoch, window; /* of its source: no two samples of an epoch have the same */
    uint64_t first_token;   /* in its dataset */
    /* What row_parts asked for; else NULL and 0: */
    const int32_t *cu_seqlens; /* where documents start in the inputs: n_documents + 1 positions,
                                  the first 0, the last n_tokens - 1 */
    uint32_t n_documents, longest_document;
    const int32_t *position_ids, *document_ids; /* for each of sequence_length inputs */
    const uint8_t *loss_mask;                   /* likewise: 0 or 1 */
} tokmap_row;

typedef struct tokmap_batch {
    size_t struct_size; /* sizeof(tokmap_batch), set by the caller */
    const tokmap_row *rows;
    uint32_t n_rows;     /* batch_rows */
    uint32_t row_stride; /* bytes from one row to the next, as the loader was opened with */
    uint32_t sequence_length;
    uint32_t token_bytes;  /* the widest of all sources */
    uint32_t largest_id;   /* of all sources, as their indexes say */
    uint64_t first_sample; /* of row 0; the rows are samples one after another */
    uint64_t step_sample;  /* of the step: row 0 of rank 0 */
} tokmap_batch;

/* TOKMAP_ERR_ARGUMENT: an option breaks a rule, err says which. TOKMAP_ERR_MISMATCH: datasets that
 * do not go together, or a source without a single window. TOKMAP_ERR_CORRUPT: a damaged document
 * index, with windows within documents. TOKMAP_ERR_IO: no thread to read ahead. */
TOKMAP_API tokmap_status tokmap_loader_open(tokmap_loader **out,
                                            const tokmap_loader_options *options,
                                            tokmap_error *err);
TOKMAP_API void tokmap_loader_close(tokmap_loader *l);

/* This rank's rows of the next step. TOKMAP_END: a source with max_epochs has no window left within
 * the step (of any rank); err says which. */
TOKMAP_API tokmap_status tokmap_loader_next(tokmap_loader *l, tokmap_batch *batch,
                                            tokmap_error *err);
/* Lets the next step begin at a sample, up to the end or 2^62. */
TOKMAP_API tokmap_status tokmap_loader_seek(tokmap_loader *l, uint64_t sample, tokmap_error *err);
/* The first sample of the next step: seek with it, or keep it beside a checkpoint. */
TOKMAP_API uint64_t tokmap_loader_position(const tokmap_loader *l);
/* Another number of rows from the next step on, and of ranks, and another place among them. After
 * an error (TOKMAP_ERR_IO as of open) the loader is as it was. */
TOKMAP_API tokmap_status tokmap_loader_set_batch(tokmap_loader *l, uint32_t rank, uint32_t n_ranks,
                                                 uint32_t batch_rows, tokmap_error *err);

enum {
    TOKMAP_STATE_BYTES = 128
};

/* Position and all that the order depends on; the same on every rank. Batches that were handed out
 * count, whatever was read ahead. */
TOKMAP_API tokmap_status tokmap_loader_save(const tokmap_loader *l,
                                            uint8_t state[TOKMAP_STATE_BYTES], tokmap_error *err);
/* Goes on where the state was saved. TOKMAP_ERR_MISMATCH when it was saved with other data, another
 * sequence length, seed, shuffle or mixture; TOKMAP_ERR_CORRUPT when it is damaged;
 * TOKMAP_ERR_VERSION when it is of an order that this library does not know; TOKMAP_ERR_ARGUMENT
 * when it is beyond the end of this loader's samples. */
TOKMAP_API tokmap_status tokmap_loader_restore(tokmap_loader *l,
                                               const uint8_t state[TOKMAP_STATE_BYTES],
                                               tokmap_error *err);

/* Where a sample comes from, without reading it. TOKMAP_ERR_CORRUPT: a damaged document index. */
typedef struct tokmap_sample {
    size_t struct_size; /* sizeof(tokmap_sample), set by the caller */
    uint32_t source, dataset;
    uint64_t epoch, window, first_token;
    uint32_t n_tokens;
} tokmap_sample;
TOKMAP_API tokmap_status tokmap_loader_locate(tokmap_loader *l, uint64_t sample, tokmap_sample *out,
                                              tokmap_error *err);

typedef struct tokmap_loader_info {
    size_t struct_size; /* sizeof(tokmap_loader_info), set by the caller */
    uint64_t n_sources;
    uint64_t n_samples;          /* until a source with max_epochs ends it; UINT64_MAX: endless */
    uint64_t resident_bytes;     /* memory of the loader, tables of mixtures included, without the
                                    maps */
    tokmap_io io;                /* the way that was taken */
    uint32_t look_ahead;         /* steps; 0: nothing is read ahead */
    uint64_t bytes_read;         /* asked of the system, with DIRECT and READ */
    uint64_t n_waits, ns_waited; /* steps that were not there yet, and the time that was waited */
    uint64_t wait_p50_ns, wait_p99_ns, wait_p999_ns, wait_max_ns; /* over all steps */
} tokmap_loader_info;
TOKMAP_API tokmap_status tokmap_loader_get_info(const tokmap_loader *l, tokmap_loader_info *info);

typedef struct tokmap_loader_source_info {
    size_t struct_size;
    uint64_t n_windows;        /* in an epoch */
    uint64_t quota, period;    /* it gives `quota` of each `period` samples, in the first phase */
    uint64_t n_samples_before; /* of it, before the position of the loader */
} tokmap_loader_source_info;
TOKMAP_API tokmap_status tokmap_loader_get_source(const tokmap_loader *l, size_t source,
                                                  tokmap_loader_source_info *info);

/* ---- Copies ---- */

typedef enum tokmap_gather_format {
    TOKMAP_GATHER_TOKENS = 0, /* rows of sequence_length + 1 tokens, token_bytes of the batch wide,
                                 in `inputs`; labels is NULL */
    TOKMAP_GATHER_I32 = 1,    /* inputs and labels apart, sequence_length in a row; one of them
                                 may be NULL; ids up to 2^31 - 1 */
    TOKMAP_GATHER_I64 = 2
} tokmap_gather_format;

typedef struct tokmap_gather_options { /* zero it */
    size_t struct_size;
    tokmap_gather_format format;
    int32_t mask_labels; /* 1: labels that a row's loss_mask leaves out become ignore_index */
    int64_t ignore_index;
    int32_t has_ignore_index; /* 0: leave ignore_index 0, and labels become -100 */
    uint32_t pad_id;          /* what a row that is shorter is filled up with; its labels there are
                        ignore_index in any case */
    void *inputs, *labels;    /* aligned to what they hold */
} tokmap_gather_options;

/* Copies the rows of a batch, with the widest instructions of the machine. TOKMAP_ERR_ARGUMENT: an
 * option breaks a rule; or largest_id, pad_id or ignore_index does not fit the format. */
TOKMAP_API tokmap_status tokmap_batch_gather(const tokmap_batch *batch,
                                             const tokmap_gather_options *options,
                                             tokmap_error *err);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_LOADER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* tokmap_loader.h - reads sequences of tokens for training: shuffled, mixed, resumable, not copied.
 *
 * Example: one epoch of a dataset. Returns TOKMAP_END after the last step.
 *
 *     int train(tokmap_dataset *ds, void (*step)(const tokmap_row *rows, uint32_t n_rows))
 *     {
 *         tokmap_dataset *const datasets[] = {ds};
 *         tokmap_loader_source source = {.datasets = datasets, .n_datasets = 1};
 *         source.max_epochs = 1;
 *         tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT;
 *         options.sources = &source;
 *         options.n_sources = 1;
 *         options.sequence_length = 2048;
 *         options.batch_rows = 8;
 *         tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
 *         tokmap_loader *loader;
 *         int status = tokmap_loader_open(&loader, &options, NULL);
 *         while (!status && !(status = tokmap_loader_next(loader, &batch, NULL)))
 *             step(batch.rows, batch.n_rows);
 *         tokmap_loader_close(loader);
 *         return status;
 *     }
 *
 * The rules in tokmap.h hold here too.
 *
 * Words     A window is a run of neighbouring tokens of a source. A sample is a number in the order
 *           of training; it stands for a window. A row is the tokens of one sample: sequence_length
 *           inputs and one more token, so that the labels are the same row from its second token
 *           on. A row of several documents, or a slice of a row, consists of pieces, and
 *           tokmap_batch_gather puts it together. A batch is the rows of one step for one rank.
 *           docs/ORDER.md defines the order.
 * Order     The tokens of a sample do not depend on the number of ranks, the batch size, the
 *           look-ahead or the way of reading. All of these may change after a restore. All ranks
 *           open the same sources with the same options, except `rank`. The rows of a step go to
 *           rank 0 first, then to rank 1, and so on. Each window of a source comes once in an
 *           epoch, unless its sample is skipped or the source has a list of windows.
 * Memory    The datasets belong to the caller, and must stay open until the loader is closed. An
 *           array of a list of documents or of windows that has 64 MiB or more also belongs to the
 *           caller, and must stay as it is until then. The other arrays in the options are copied
 *           by open. Rows and everything that a batch points to are valid until the next call of
 *           next, seek, restore, set_batch or close. Rows and pieces point into the maps of the
 *           datasets; with DIRECT, READ and COPY, into the loader's memory. A row that is not in
 *           one map is a copy: a row that joins the end of a dataset to its beginning
 *           (random_offset), a row of documents that are not next to each other (views, lists of
 *           documents), and in a joined dataset a row that crosses token files or is in a file
 *           without a map.
 * Reading   If the data are not in memory, a thread of the loader reads the rows of the next steps
 *           in advance: see tokmap_io. It changes no file and locks nothing, so read-only media and
 *           any number of readers work.
 *           With TOKMAP_IO_MAP nothing is read in advance: the thread of the caller that touches a
 *           row first waits for the disk in a page fault, which the library cannot see. n_waits and
 *           waited_ns of tokmap_loader_info count such a wait only in a tokmap_batch_gather that is
 *           given the loader.
 * Threads   A loader is used by one thread at a time; threads may take turns. A call while another
 *           thread is in a call returns TOKMAP_ERR_ARGUMENT and changes nothing. The rows of a
 *           batch are not guarded: threads that share a loader need a lock from next until they
 *           have used or copied them. close, position and get_info do not check; save_at may run
 *           during other calls. Several loaders may use the same datasets. When one of them is
 *           closed, or reads in another way, the hints that the others gave to the page cache are
 *           lost.
 * fork      In a child process, a loader of the parent returns TOKMAP_ERR_FORKED. close frees the
 *           child's memory and does not affect the parent.
 * Errors    If data cannot be read, next returns TOKMAP_ERR_IO for the step that needs them; err
 *           names the file and the offset. A joined dataset opens its token files when they are
 *           needed, so only then next reports that a file is missing, or has another size than the
 *           index states (TOKMAP_ERR_CORRUPT). After an error the position is unchanged: next may
 *           be called again, and save works.
 * SIGBUS    Only threads of the caller can receive it, except because of a list (below). With AUTO
 *           and POPULATE, next compares the rows with the sizes of their token files, at most a
 *           millisecond old, and returns TOKMAP_ERR_IO if a file was shortened. Accessing a row in
 *           a map raises SIGBUS if its file was shortened after that, if it cannot be read (MAP),
 *           or if it was shortened and io is MAP by name or a joined dataset has more than 256
 *           token files. If a file now ends inside a page, the rest of that page reads as zeros.
 *           Looking up documents, for row_parts, windows within documents or lists of documents,
 *           raises it if the index was shortened or cannot be read: in open, and with MAP also in
 *           next and locate, unless a stage uses the loader. So does reading the metadata: in open,
 *           for tokenizers and order_of, and in restore, if the state was saved with other data.
 *           All other lookups read the index, and rows files, without a map. An array of a list
 *           that has 64 MiB or more is read where the caller has it, also by threads of the
 *           library; in the map of a file that was shortened, this raises it. A smaller one is read
 *           only in open. */
#ifndef TOKMAP_LOADER_H
#define TOKMAP_LOADER_H

#include "tokmap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types: options ---- */

typedef struct tokmap_loader tokmap_loader;
typedef struct tokmap_view tokmap_view;

typedef enum tokmap_shuffle {
    TOKMAP_SHUFFLE_FULL = 0, /* all windows of an epoch in random order */
    TOKMAP_SHUFFLE_NONE = 1, /* in the order of the data */
    /* Random blocks of windows, shuffled within groups of blocks: neighbouring steps read from few
     * places, for cold data and network file systems. */
    TOKMAP_SHUFFLE_BLOCK = 2
} tokmap_shuffle;

typedef enum tokmap_windows {
    /* The tokens one after another, cut into windows of equal length. The tokens after the last
     * whole window are left out; with random_offset, other tokens in each epoch. */
    TOKMAP_WINDOWS_CONCAT = 0,
    /* No window crosses a document boundary; the last one of a document is shorter. Open reads the
     * document index. */
    TOKMAP_WINDOWS_WITHIN_DOCUMENT = 1,
    /* Rows of several documents, almost without padding: docs/ORDER.md, section 11. Every token,
     * except the first of each document, is a label once in an epoch. A row consists of pieces,
     * which gather puts together; a label is always in the same piece as its input. A rows file
     * (tokmap_rows_write) lists what is in the rows; up to 10^7 documents need none. */
    TOKMAP_WINDOWS_BEST_FIT = 2
} tokmap_windows;

/* What happens to documents that are longer than a row, with TOKMAP_WINDOWS_BEST_FIT. */
typedef enum tokmap_whole_documents {
    TOKMAP_WHOLE_SPLIT = 0,   /* they are cut into pieces */
    TOKMAP_WHOLE_DROP = 1,    /* they are left out */
    TOKMAP_WHOLE_TRUNCATE = 2 /* the rest of them is left out */
} tokmap_whole_documents;

/* The inputs of a row that a rank of context parallelism gets. */
typedef enum tokmap_cp_mode {
    TOKMAP_CP_CONTIGUOUS = 0, /* part number cp_rank of cp_size equal parts */
    /* Parts number cp_rank and 2 * cp_size - 1 - cp_rank of 2 * cp_size equal parts: with causal
     * attention, all ranks have the same work. */
    TOKMAP_CP_ZIGZAG = 1,
    /* The same as TOKMAP_CP_ZIGZAG, but within each document with the padding after it. Only with
     * TOKMAP_WINDOWS_BEST_FIT and an align that is a multiple of 2 * cp_size. */
    TOKMAP_CP_DOCUMENTS = 2
} tokmap_cp_mode;

/* The way in which tokens are read. The environment variable TOKMAP_IO (auto, map, direct,
 * populate, read, copy) overrides the option. Every way except MAP and COPY needs a thread. */
typedef enum tokmap_io {
    /* The way is MAP if the data are in memory at open; DIRECT if they are larger than the
     * available memory, unless POPULATE reads whole blocks; else POPULATE. Where the file system
     * cannot say what is in memory (FUSE, overlayfs, squashfs, network file systems), the data
     * count as not in memory, so AUTO never chooses MAP there, and a lost mount causes
     * TOKMAP_ERR_IO and not SIGBUS. A second thread reads all data once, in order, in pieces of 16
     * MiB, if POPULATE was chosen, the data fit into memory, whole blocks are not read, there are
     * at most 8 ranks, and next had to wait for the device. */
    TOKMAP_IO_AUTO = 0,
    TOKMAP_IO_MAP = 1, /* use the map; nothing is read in advance */
    /* io_uring and O_DIRECT into memory of the loader: for each row read in advance, its tokens and
     * 4 to 16 KiB more. Where this does not work, with TOKMAP_WINDOWS_BEST_FIT, with lists of
     * documents, and with more than 256 token files in joined datasets, POPULATE is used. */
    TOKMAP_IO_DIRECT = 2,
    /* Bring pages of the map into memory and check them, up to 8 steps before they are needed. With
     * TOKMAP_SHUFFLE_BLOCK and up to 8 ranks, without lists of documents, read the blocks of the
     * next group whole, if memory has room for two groups of each source. With more than 1,024
     * token files in a joined dataset, READ is used. */
    TOKMAP_IO_POPULATE = 3,
    TOKMAP_IO_READ = 4, /* pread into memory of the loader; blocks as with POPULATE */
    /* Copy each row when next is called, by one read; nothing is read in advance, and no thread is
     * started. For samples in an order that the loader does not know. */
    TOKMAP_IO_COPY = 5,
    /* Not to be asked for: what a loader has in tokmap_loader_info if one of its datasets is in a
     * store (tokmap_dataset_open_from). Another way, also of TOKMAP_IO, is TOKMAP_ERR_ARGUMENT
     * then. Up to 16 threads call the source, with the rows of a step or of several. Without
     * look_ahead, as many steps are read ahead as the caller takes in two seconds, or in twice the
     * time that 999 of 1,000 steps need to arrive; at most 256 MiB, 4,096 rows and 1,024 steps. */
    TOKMAP_IO_STORE = 6
} tokmap_io;

/* An order of the documents of a dataset, from whose tokens windows are cut: docs/ORDER.md,
 * section 3. The numbers are little-endian. */
typedef struct tokmap_document_list {
    const void *documents; /* n_documents numbers of document_bytes; below 2^48 of them */
    uint64_t n_documents;  /* 0: there is no list, and the dataset is used as it is */
    /* Where the n_windows windows begin, such as the sample_index of Megatron: for each two numbers
     * of start_bytes, a place in `documents` and a token of that document. The first window begins
     * with the first token, whatever is here. NULL: open finds the starts, which takes a lookup for
     * each document and 16 bytes for each window. Given starts only spare this work. next and
     * locate compare the starts that they use with the documents: TOKMAP_ERR_MISMATCH if the
     * windows do not follow each other. */
    const void *starts;
    uint64_t n_windows;      /* 0 without starts */
    uint32_t document_bytes; /* 4 or 8 */
    uint32_t start_bytes;    /* 4 or 8; 0 without starts */
    int32_t keeps_rest;      /* 1: the tokens after the last whole window are a shorter one */
    int32_t reserved;
} tokmap_document_list;

/* One corpus of a mixture. */
typedef struct tokmap_loader_source {
    /* -- Which datasets, and how much of them -- */

    /* All of the same token width; their order matters. A dataset twice, the same view of it twice,
     * a dataset and a view of it or, without a window_list, the same list of it twice are
     * TOKMAP_ERR_ARGUMENT. Other views and lists of a dataset may have documents in common; ranges
     * of documents may not. */
    tokmap_dataset *const *datasets;
    uint32_t n_datasets; /* 1 to 65,535 */
    int32_t masked;      /* 1: loss_mask is 0 for all of its labels */
    /* The share of the samples, relative to the weights of the other sources. A single source may
     * have weight 0. Multiples of 0.00001 and thirds are met exactly; others to a thousandth, or to
     * 1 of 2^20 samples: see tokmap_loader_get_source. A weight above 0 that is less than 1 of 2^20
     * samples is an error. */
    double weight;
    uint64_t max_epochs; /* the loader ends before the epoch after these; 0: no limit */

    /* -- Files and ids that are not the usual ones -- */

    /* With TOKMAP_WINDOWS_BEST_FIT: the rows file of each dataset. NULL, here or for a dataset: the
     * rows file beside the dataset, if there is one. */
    const char *const *rows_files;
    /* For each dataset that was redacted: an id that it had before, in 32 hex digits. The dataset
     * then has the order and the states of that id. NULL, here or for a dataset: its own id.
     * docs/ORDER.md, section 1. */
    const char *const *order_of;

    /* -- Which documents, and which windows of them -- */

    /* For each dataset two numbers: only its documents from the first number up to the second,
     * which is left out, are used. The second may be UINT64_MAX: up to the last document. 0 and
     * UINT64_MAX, or NULL: the whole dataset. Any other part has no rows file. docs/ORDER.md,
     * section 3. */
    const uint64_t *documents;
    /* For each dataset the view of its documents that are used, in `documents` if that is given
     * too. NULL, here or for a dataset: all documents. The views must stay open as long as the
     * loader. docs/ORDER.md, section 3. */
    tokmap_view *const *views;
    /* For each dataset the order in which its documents are used. NULL: none has one. Only with
     * TOKMAP_WINDOWS_CONCAT; not with random_offset, nor for a dataset that has `documents` or a
     * view. docs/ORDER.md, section 3. */
    const tokmap_document_list *document_lists;
    /* The windows of the source in the order of its samples, in any epoch, whatever `shuffle` is:
     * n_window_list numbers of window_list_bytes, little-endian. NULL: there is no list. Not with
     * TOKMAP_SHUFFLE_BLOCK. docs/ORDER.md, section 4. */
    const void *window_list;
    uint64_t n_window_list;     /* 1 to 2^48; 0 without a list */
    uint32_t window_list_bytes; /* 4 or 8; 0 without a list */

    /* -- Lanes, and labels that count -- */

    /* A bit for each lane of the options, from the lowest on: 1: the datasets of this source do not
     * have it, and its rows get zeros. */
    uint32_t lacks_lanes;
    /* 256 bytes, for each role 1 if the labels of tokens in spans of this role count. The first
     * three and the last are 0. Names of roles are in the metadata: docs/FORMAT.md, section 3.9.
     * NULL: the roles from TOKMAP_SPAN_COUNTED on count. */
    const uint8_t *train_roles;
} tokmap_loader_source;

/* New weights of the sources, from first_sample on. */
typedef struct tokmap_loader_phase {
    uint64_t first_sample; /* above 0, below 2^62, and above first_sample of the previous phase */
    const double *weights; /* one for each source; 0: none of its samples */
} tokmap_loader_phase;

/* Samples that are left out. The loader passes over them, and counts them as used. */
typedef struct tokmap_loader_skip {
    uint64_t first_sample; /* not below end_sample of the previous skip */
    uint64_t end_sample; /* the first sample that is not left out; at most the number of samples */
} tokmap_loader_skip;

/* The parts of a row beside its tokens. Combine with |. */
enum {
    TOKMAP_ROW_DOCUMENTS = 1,    /* cu_seqlens, n_documents, longest_document */
    TOKMAP_ROW_POSITION_IDS = 2, /* position_ids */
    TOKMAP_ROW_DOCUMENT_IDS = 4, /* document_ids */
    TOKMAP_ROW_LOSS_MASK = 8,    /* loss_mask */
    TOKMAP_ROW_SPAN_MASK = 24    /* loss_mask, in which labels that begin a document count */
};

typedef struct tokmap_loader_options {
    size_t struct_size; /* sizeof(tokmap_loader_options) */

    /* -- What is read -- */

    const tokmap_loader_source *sources;
    uint32_t n_sources;       /* 1 to 65,535 */
    uint32_t source_stride;   /* sizeof(tokmap_loader_source) */
    uint32_t sequence_length; /* 1 to 2^24 */
    uint32_t batch_rows;      /* rows of this rank in a step, 1 to 2^24 */

    /* -- Order: which samples there are, and in which steps -- */

    uint64_t seed;
    tokmap_shuffle shuffle;
    tokmap_windows windows;
    /* windows of a block of TOKMAP_SHUFFLE_BLOCK; 0: as many as fit into 1 MiB */
    uint64_t block_windows;
    uint64_t group_blocks; /* blocks of a group of TOKMAP_SHUFFLE_BLOCK; 0: 64 */
    int32_t random_offset; /* 1: window boundaries differ between epochs; only with CONCAT */
    /* 1: weights are shares of tokens that are labels, not of samples. With any windows, but
     * without lists. */
    int32_t weigh_tokens;
    /* The phases after the first one. The first starts at sample 0, with the weights in sources. */
    const tokmap_loader_phase *phases;
    uint32_t n_phases;     /* up to 65,534 */
    uint32_t phase_stride; /* sizeof(tokmap_loader_phase), if there are phases */
    const tokmap_loader_skip *skips;
    uint32_t n_skips;
    uint32_t skip_stride; /* sizeof(tokmap_loader_skip), if there are skips */

    /* -- Rows: what a row has -- */

    uint32_t row_stride; /* sizeof(tokmap_row), for the rows of batches */
    /* TOKMAP_ROW_... If a dataset has spans whose labels do not count, LOSS_MASK or SPAN_MASK is
     * required, else TOKMAP_ERR_MISMATCH. */
    uint32_t row_parts;
    /* With TOKMAP_WINDOWS_BEST_FIT, these three: */
    uint32_t align; /* pieces begin at multiples of this; it divides sequence_length; 0: 1 */
    uint32_t max_documents; /* pieces in a row; 0: any number */
    tokmap_whole_documents whole_documents;
    /* A row whose tokens are in several places of a dataset, because of a view or a list of
     * documents, or because it wraps around: 0: its tokens are copied together. 1: unless the
     * loader has read them into its own memory, it has no tokens, and a piece for each place; this
     * saves a copy for callers that gather. Needs a row_stride with n_pieces, does not work with
     * cp_size, and a stage ignores it. */
    int32_t view_pieces;

    /* -- Ranks: which rows, and which part of them, this process gets -- */

    uint32_t rank;    /* below n_ranks */
    uint32_t n_ranks; /* up to 2^24; 0 means 1 */
    /* Slices of rows, for context parallelism: rows have sequence_length / cp_size inputs, and
     * consist of pieces; their cu_seqlens describe the whole row. The order is the same. */
    uint32_t cp_rank;
    uint32_t cp_size; /* 0 means 1 */
    tokmap_cp_mode cp_mode;

    /* -- Reading: on which no order and no state depends -- */

    tokmap_io io;
    /* Steps, up to 1,024 and 2^26 rows. 0: 256 rows, but 2 to 64 steps. This is doubled when next
     * had to wait for the device, as long as steps come faster, up to 4,096 rows and 64 MiB of
     * tokens. */
    uint32_t look_ahead;
    int32_t drop_behind; /* 1: drop used rows from the page cache (POPULATE, READ) */
    /* 0: all datasets that name a tokenizer must name the same one; see
     * tokmap_dataset_check_tokenizers. 1: they may differ. */
    int32_t mixed_tokenizers;
    /* 1: of datasets in a store, read the whole MiB blocks that a row has bytes of, and compare
     * them with their checksums: TOKMAP_ERR_CORRUPT if one differs. Else rows are not compared.
     * Without a dataset in a store, TOKMAP_ERR_ARGUMENT. */
    int32_t verify_blocks;

    /* -- Lanes -- */

    /* Names of lanes, which are read ahead together with the rows, for tokmap_loader_gather_lane.
     * Each dataset has them, unless its source lacks them, with the same type, count and goes_with.
     * A stage does not take them. */
    const char *const *lanes;
    uint64_t n_lanes; /* at most 16 */
} tokmap_loader_options;

/* ---- Types: batches ---- */

/* A piece of a row: with TOKMAP_WINDOWS_BEST_FIT, tokens of a document; in a slice, and with
 * view_pieces, neighbouring tokens of one document or of several. */
typedef struct tokmap_piece {
    const void *tokens; /* in a row of a batch; else NULL */
    /* its number in the dataset, with TOKMAP_WINDOWS_BEST_FIT; else 0, and
     * tokmap_dataset_find_document says it */
    uint64_t document;
    uint64_t first_token; /* in the dataset */
    uint32_t n_tokens;
    uint32_t place; /* position of its first token in the row */
    /* how many of its first tokens are inputs; all its tokens except the first are labels */
    uint32_t n_inputs;
    /* 1: the label of its last token is the first token of the next piece (view_pieces) */
    uint32_t continues;
} tokmap_piece;

typedef struct tokmap_row {
    const void *tokens;   /* little-endian, token_bytes each; NULL if it consists of pieces */
    uint32_t n_tokens;    /* sequence_length + 1; if rows may be shorter, 2 up to that */
    uint32_t token_bytes; /* 2 or 4 */
    uint32_t source;      /* its number in the options */
    uint32_t dataset;     /* its number in the source */
    uint64_t epoch;       /* of the source, from 0 */
    uint64_t window;      /* number of the window in the source; each comes once in an epoch */
    uint64_t first_token; /* in the dataset */
    /* The next six fields are NULL or 0, unless row_parts asks for them. Their last three arrays
     * have sequence_length elements each; for the rows of a batch they form one array. */
    /* n_documents + 1: the first input of each document, then the number of inputs */
    const int32_t *cu_seqlens;
    uint32_t n_documents;        /* in the row, counting parts of documents */
    uint32_t longest_document;   /* number of inputs */
    const int32_t *position_ids; /* for each input: its position in its document */
    const int32_t *document_ids; /* for each input: the number of its document in the row */
    const uint8_t *loss_mask;    /* for each input: 1 if its label counts, else 0 */
    uint64_t sample;             /* the number of its sample */
    const tokmap_piece *pieces;  /* if `tokens` is NULL; else NULL */
    size_t n_pieces;
} tokmap_row;

/* tokmap_loader_options options = TOKMAP_LOADER_OPTIONS_INIT; sets struct_size and all strides. */
#ifdef __cplusplus
static inline tokmap_loader_options tokmap_init_loader_options()
{
    tokmap_loader_options options = TOKMAP_INIT(tokmap_loader_options);
    options.source_stride = sizeof(tokmap_loader_source);
    options.phase_stride = sizeof(tokmap_loader_phase);
    options.skip_stride = sizeof(tokmap_loader_skip);
    options.row_stride = sizeof(tokmap_row);
    return options;
}
#define TOKMAP_LOADER_OPTIONS_INIT tokmap_init_loader_options()
#else
#define TOKMAP_LOADER_OPTIONS_INIT                                                                 \
    {                                                                                              \
        .struct_size = sizeof(tokmap_loader_options),                                              \
        .source_stride = sizeof(tokmap_loader_source),                                             \
        .phase_stride = sizeof(tokmap_loader_phase), .skip_stride = sizeof(tokmap_loader_skip),    \
        .row_stride = sizeof(tokmap_row)                                                           \
    }
#endif
/* Does what TOKMAP_LOADER_OPTIONS_INIT does, for languages without macros, to `size` bytes; see
 * tokmap_struct_init. The strides are the sizes in the linked library: a caller whose own structs
 * are older and smaller sets them itself. */
TOKMAP_API void tokmap_loader_options_init(tokmap_loader_options *out, size_t size);

typedef struct tokmap_batch {
    size_t struct_size; /* sizeof(tokmap_batch), set by the caller */
    const tokmap_row *rows;
    uint32_t n_rows;          /* batch_rows */
    uint32_t row_stride;      /* as in the options */
    uint32_t sequence_length; /* inputs of a row: as in the options, divided by cp_size */
    uint32_t token_bytes;     /* of the widest source */
    uint32_t largest_id;      /* in all sources, according to their indexes */
    uint64_t first_sample; /* sample of rows[0]; the other rows follow, without skipped samples */
    uint64_t step_sample;  /* the first sample of the step, which belongs to rank 0 */
} tokmap_batch;

/* ---- Open and close ---- */

/* Opens a loader. TOKMAP_ERR_ARGUMENT: err says which option is wrong. TOKMAP_ERR_MISMATCH: the
 * datasets of a source do not fit together, tokenizers differ, order_of is not an id that the
 * dataset has had, a source has no window, documents are in two ranges, or document boundaries are
 * needed (row_parts, windows within documents, ranges of documents) but not known, or a lane is of
 * other tokens or not the same in all datasets.
 * TOKMAP_ERR_CORRUPT: a document index is damaged (windows within documents, ranges of documents).
 * TOKMAP_ERR_IO: no thread could be started, or a file could not be read. */
TOKMAP_API tokmap_status tokmap_loader_open(tokmap_loader **out,
                                            const tokmap_loader_options *options,
                                            tokmap_error *err);
TOKMAP_API void tokmap_loader_close(tokmap_loader *l);

/* ---- Use ---- */

/* Returns the rows of this rank for the next step. TOKMAP_END: a source with max_epochs does not
 * have enough windows left for the whole step, of all ranks; err says which source. The samples
 * from tokmap_loader_position up to n_samples of tokmap_loader_info are left then, and come if
 * set_batch makes the step smaller.
 * TOKMAP_ERR_CORRUPT: a document index is damaged (row_parts, windows within documents), or a token
 * file of a joined dataset has the wrong size. */
TOKMAP_API tokmap_status tokmap_loader_next(tokmap_loader *l, tokmap_batch *batch,
                                            tokmap_error *err);

/* Waits until the rows of the next step are there, or an error or the end, so that next would not
 * wait; at most timeout_ns, where 0 only asks. TOKMAP_NOT_READY: the time is up. The last batch
 * stays valid. For programs that do something else meanwhile, such as handling signals. Returns
 * TOKMAP_OK at once with MAP and COPY. next may wait nevertheless when it increases the
 * look-ahead. */
TOKMAP_API tokmap_status tokmap_loader_wait(tokmap_loader *l, uint64_t timeout_ns,
                                            tokmap_error *err);

/* Changes rank, n_ranks (0 means 1) and batch_rows from the next step on. After an error, such as
 * TOKMAP_ERR_IO because no thread could be started, nothing has changed. */
TOKMAP_API tokmap_status tokmap_loader_set_batch(tokmap_loader *l, uint32_t rank, uint32_t n_ranks,
                                                 uint32_t batch_rows, tokmap_error *err);

/* Makes next write the parts of rows into these arrays of batch_rows * sequence_length elements, so
 * that they need not be copied out of the memory of the loader; NULL: into that memory, as at the
 * beginning and after set_batch has changed batch_rows. The arrays must stay valid until others are
 * set or the loader is closed. TOKMAP_ERR_ARGUMENT: row_parts does not ask for one of them, or
 * cp_size is above 1. */
TOKMAP_API tokmap_status tokmap_loader_set_parts(tokmap_loader *l, int32_t *position_ids,
                                                 int32_t *document_ids, uint8_t *loss_mask,
                                                 tokmap_error *err);

typedef enum tokmap_gather_format {
    TOKMAP_GATHER_NONE = 0,   /* not set: TOKMAP_ERR_ARGUMENT */
    TOKMAP_GATHER_TOKENS = 1, /* whole rows as token_bytes of the batch, in `inputs` alone */
    TOKMAP_GATHER_I32 = 2,    /* inputs and labels as int32; ids up to 2^31 - 1 */
    TOKMAP_GATHER_I64 = 3,    /* inputs and labels as int64 */
    /* Whole rows in `inputs` alone: inputs are all columns except the last, labels all except the
     * first. They take half the bytes of I32 and I64, but neither is contiguous. */
    TOKMAP_GATHER_ROWS_I32 = 4, /* ids up to 2^31 - 1 */
    TOKMAP_GATHER_ROWS_I64 = 5
} tokmap_gather_format;

typedef struct tokmap_gather_options {
    size_t struct_size;          /* sizeof(tokmap_gather_options) */
    tokmap_gather_format format; /* must be set */
    int32_t mask_labels;         /* 1: labels with a loss_mask of 0 become ignore_index */
    int64_t ignore_index;        /* also the value of labels after the end of a shorter row */
    int32_t has_ignore_index;    /* 0: ignore_index must be 0, and -100 is used */
    uint32_t pad_id;             /* the value of inputs after the end of a shorter row */
    void *inputs;                /* aligned to its element size; may be NULL with I32 and I64 */
    void *labels; /* aligned to its element size; may be NULL; must be NULL with whole rows */
    /* NULL, or the loader of the batch, open and used by no other thread: with TOKMAP_IO_MAP, a
     * gather that takes more than 20 microseconds and a nanosecond for each byte that it writes is
     * taken to have waited for the disk, and its time is added to the waits in
     * tokmap_loader_info. */
    tokmap_loader *loader;
} tokmap_gather_options;

/* Copies the rows of a batch, one after another: sequence_length numbers each, or one more for
 * whole rows (TOKENS, ROWS_I32, ROWS_I64); with TOKMAP_WINDOWS_BEST_FIT only loss_mask says which
 * of their tokens are labels. TOKMAP_ERR_ARGUMENT: an option is wrong; or largest_id, pad_id or
 * ignore_index does not fit the format. */
TOKMAP_API tokmap_status tokmap_batch_gather(const tokmap_batch *batch,
                                             const tokmap_gather_options *options,
                                             tokmap_error *err);

/* Copies the numbers of a lane that go with the rows of the last batch, one row after another: for
 * each input, in the order of the columns of the gathered inputs, lane->count numbers. goes_with
 * decides which: column i has those of label i, or of input i. Where a row has no such label or
 * input, such as after the end of a shorter row, and where the source lacks the lane, they are 0;
 * the loss mask of rows is not looked at. values: n_rows * the sequence_length of the batch *
 * token_bytes of tokmap_lane_info bytes. TOKMAP_ERR_ARGUMENT: there is no such lane, or no batch
 * since the loader was opened, restored or moved. TOKMAP_ERR_MISMATCH: a file has values of other
 * tokens. */
TOKMAP_API tokmap_status tokmap_loader_gather_lane(tokmap_loader *l, uint32_t lane, void *values,
                                                   tokmap_error *err);
/* Describes lane number `lane` of the options, as the first dataset has it that does. */
TOKMAP_API tokmap_status tokmap_loader_get_lane(const tokmap_loader *l, uint32_t lane,
                                                tokmap_lane_info *info);

/* Lists the documents of all rows for attention that takes sequences of different lengths: the
 * first input of each document, counted through all rows, then the number of inputs. What a shorter
 * row lacks counts as a document. sequence_length: of the options, also with cp_size. cu_seqlens:
 * room for n_rows * sequence_length + 1 numbers, or NULL to only count them. longest: NULL, or set
 * to the number of inputs of the longest document. Returns how many numbers there are; 0 if the
 * rows were made without TOKMAP_ROW_DOCUMENTS, or have more than 2^31 - 1 inputs. */
TOKMAP_API size_t tokmap_batch_cu_seqlens(const tokmap_batch *batch, uint32_t sequence_length,
                                          int32_t *cu_seqlens, uint32_t *longest);

/* ---- State ---- */

enum {
    TOKMAP_STATE_BYTES = 128
};

/* Saves the position and everything on which the order depends; the result is the same on every
 * rank. A step counts once next has returned it, not when it is read in advance. */
TOKMAP_API tokmap_status tokmap_loader_save(const tokmap_loader *l,
                                            uint8_t state[TOKMAP_STATE_BYTES], tokmap_error *err);
/* Saves the state that tokmap_loader_save would save after a seek to this sample. Any thread may
 * call it at any time before close, also during another call. TOKMAP_ERR_ARGUMENT: the sample is
 * after the last one. */
TOKMAP_API tokmap_status tokmap_loader_save_at(const tokmap_loader *l, uint64_t sample,
                                               uint8_t state[TOKMAP_STATE_BYTES],
                                               tokmap_error *err);
/* Continues at the position that was saved. TOKMAP_ERR_MISMATCH: the state was saved with other
 * data, or with another sequence length, seed, shuffle, kind of windows or mixture; if it was saved
 * before the data were redacted, err says which order_of is missing.
 * TOKMAP_ERR_CORRUPT: it is damaged. TOKMAP_ERR_VERSION: this library does not know its version of
 * the order. TOKMAP_ERR_ARGUMENT: its position is after the last sample of this loader. */
TOKMAP_API tokmap_status tokmap_loader_restore(tokmap_loader *l,
                                               const uint8_t state[TOKMAP_STATE_BYTES],
                                               tokmap_error *err);
/* Continues at the position that was saved with other options. From there on, the mixture may be a
 * different one: docs/ORDER.md, section 9. `before` are the options of the loader that saved it.
 * Only its weights, max_epochs, phases and skips are used; datasets may be NULL. If it is NULL,
 * that loader had the phases of this loader that begin before the position, the same max_epochs,
 * and either the same skips after the position or none. Both must have the same phases before the
 * position, and the sources of the old loader must be the first sources of this loader; sources
 * that are added have weight 0 before the position. To change weights at sample 1,000, add a phase
 * that begins there. With TOKMAP_SHUFFLE_BLOCK, a wider source needs the old block_windows.
 * TOKMAP_ERR_MISMATCH: err says what differs. Other errors: see tokmap_loader_restore. */
TOKMAP_API tokmap_status tokmap_loader_amend(tokmap_loader *l,
                                             const uint8_t state[TOKMAP_STATE_BYTES],
                                             const tokmap_loader_options *before,
                                             tokmap_error *err);
/* Makes the next step start at this sample, or after the samples that are skipped there.
 * TOKMAP_ERR_ARGUMENT: it is after the last sample. */
TOKMAP_API tokmap_status tokmap_loader_seek(tokmap_loader *l, uint64_t sample, tokmap_error *err);
/* Returns the first sample of the next step. */
TOKMAP_API uint64_t tokmap_loader_position(const tokmap_loader *l);

/* ---- Info ---- */

typedef struct tokmap_loader_info {
    size_t struct_size;      /* sizeof(tokmap_loader_info), set by the caller */
    uint32_t n_sources;      /* as in the options */
    int32_t direct_failed;   /* 1: DIRECT was asked for or chosen, and cannot be used: io_reason */
    uint64_t n_samples;      /* samples until a source with max_epochs ends; UINT64_MAX: no end */
    uint64_t resident_bytes; /* memory of the loader, without maps */
    tokmap_io io;            /* the way that is used, never AUTO */
    uint32_t look_ahead;     /* steps; 0: nothing is read in advance */
    uint64_t bytes_read;     /* requested from the system (DIRECT, READ) */
    /* steps that were not ready when next was called; MAP: see tokmap_gather_options */
    uint64_t n_waits;
    uint64_t waited_ns;    /* time that next, or with MAP a gather, waited for them */
    uint64_t wait_p50_ns;  /* percentile of the waits of all steps */
    uint64_t wait_p99_ns;  /* likewise */
    uint64_t wait_p999_ns; /* likewise */
    uint64_t wait_max_ns;  /* the longest wait */
    const char *io_reason; /* why this way is used; valid until the loader is closed */
} tokmap_loader_info;

TOKMAP_API tokmap_status tokmap_loader_get_info(const tokmap_loader *l, tokmap_loader_info *info);

typedef struct tokmap_loader_source_info {
    size_t struct_size; /* sizeof(tokmap_loader_source_info), set by the caller */
    uint64_t n_windows; /* in an epoch: the length of the list of windows, if there is one */
    uint64_t quota;     /* samples of the source in each `period` samples, in the first phase */
    uint64_t period;    /* the same for all sources */
    uint64_t n_samples_before; /* samples of the source before the position of the loader */
} tokmap_loader_source_info;

/* Describes a source. TOKMAP_ERR_ARGUMENT: there is no source of this number. */
TOKMAP_API tokmap_status tokmap_loader_get_source(const tokmap_loader *l, size_t source,
                                                  tokmap_loader_source_info *info);

/* Sets sources[i] to the number of the source of sample first_sample + i, skipped or not. Any
 * thread may call it at any time before close, also during another call. TOKMAP_ERR_ARGUMENT: one
 * is after the last sample. */
TOKMAP_API tokmap_status tokmap_loader_sources_of(const tokmap_loader *l, uint64_t first_sample,
                                                  size_t n_samples, uint32_t *sources,
                                                  tokmap_error *err);

/* Counts the samples of each source before a sample, skipped or not, in counts[0 .. n_sources). Any
 * thread may call it at any time before close, also during another call and while a stage uses the
 * loader. TOKMAP_ERR_ARGUMENT: the sample is after the last one. */
TOKMAP_API tokmap_status tokmap_loader_count_samples(const tokmap_loader *l, uint64_t sample,
                                                     uint64_t *counts, tokmap_error *err);

typedef struct tokmap_sample {
    size_t struct_size;   /* sizeof(tokmap_sample), set by the caller */
    uint32_t source;      /* its number in the options */
    uint32_t dataset;     /* its number in the source */
    uint64_t epoch;       /* of the source, from 0 */
    uint64_t window;      /* of the source */
    uint64_t first_token; /* in the dataset */
    uint32_t n_tokens;    /* of the row */
    /* Where the tokens are in the dataset, in the order of the row: with TOKMAP_WINDOWS_BEST_FIT a
     * piece of each document; else one piece, or several if a view leaves out tokens between them,
     * if a list has documents in another order, or if the row wraps around. Valid until the next
     * call for this loader. */
    const tokmap_piece *pieces;
    size_t n_pieces; /* at least 1 */
} tokmap_sample;

/* Finds where a sample comes from, without reading its tokens. TOKMAP_ERR_ARGUMENT: there is no
 * such sample. TOKMAP_ERR_CORRUPT: a document index is damaged. */
TOKMAP_API tokmap_status tokmap_loader_locate(tokmap_loader *l, uint64_t sample, tokmap_sample *out,
                                              tokmap_error *err);

/* ---- Views ---- */

/* A view is a set of documents of a dataset: docs/FORMAT.md, section 15. A loader serves them as if
 * there were no other documents. Its order depends on the set, not on how it was described. A view
 * does not change after open; any number of threads may use it. */
typedef struct tokmap_view_options {
    size_t struct_size;  /* sizeof(tokmap_view_options) */
    const char *where;   /* documents for which this expression holds: tokmap_dataset_select */
    const uint8_t *keep; /* or: for each document 1 if the view has it, else 0 */
    uint64_t n_keep;     /* bytes of keep: the number of documents */
    const char *path;    /* open: or a view file. write: the file; NULL, with `where` only:
                       * P.HHHHHHHHHHHHHHHH.tmw, which open finds by the same expression */
    void *context;       /* for the function below */
    /* While a view is made: bytes that are compared with their checksums, and documents, together.
     * If a column is replaced meanwhile, it counts from 0 again. NULL: none. */
    tokmap_on_progress *on_progress;
} tokmap_view_options;

typedef struct tokmap_view_info {
    size_t struct_size;   /* sizeof(tokmap_view_info), set by the caller */
    uint64_t n_documents; /* of the view */
    uint64_t n_tokens;
    uint64_t n_runs;   /* longest runs of consecutive documents */
    uint64_t set_hash; /* identifies the set of documents */
    uint64_t n_bytes;  /* of the file */
    const char
        *path; /* of the file, valid until close; NULL: the view is in memory, or was written */
} tokmap_view_info;

/* Opens a view; the dataset must stay open until it is closed. A view of an expression is opened
 * from its file, if there is one, or made in memory, for datasets of up to 10^7 documents. If a
 * late column is replaced meanwhile, the call begins again. TOKMAP_ERR_MISMATCH: the file is of
 * other documents; or there are more documents, and err names the command that writes the file.
 * TOKMAP_ERR_LOCKED: a column is replaced all the time. The other errors are those of
 * tokmap_dataset_select. */
TOKMAP_API tokmap_status tokmap_view_open(tokmap_view **out, const tokmap_dataset *ds,
                                          const tokmap_view_options *options, tokmap_error *err);
TOKMAP_API void tokmap_view_close(tokmap_view *view);
TOKMAP_API tokmap_status tokmap_view_get_info(const tokmap_view *view, tokmap_view_info *info);
/* Copies the numbers of n_documents documents of a view in their order, from its document `first`
 * on. TOKMAP_ERR_ARGUMENT: it has fewer documents. TOKMAP_ERR_CORRUPT: it is damaged. */
TOKMAP_API tokmap_status tokmap_view_documents(const tokmap_view *view, uint64_t first,
                                               uint64_t n_documents, uint64_t *documents,
                                               tokmap_error *err);
/* Reads and checks every byte of a view, and compares its tokens with the documents. on_progress
 * counts documents of the view, and may be NULL. TOKMAP_ERR_CORRUPT: the view is damaged. */
TOKMAP_API tokmap_status tokmap_view_verify(const tokmap_view *view,
                                            tokmap_on_progress *on_progress, void *context,
                                            tokmap_error *err);
/* Writes a view file, complete or not at all, in place of an older one. First it compares the
 * boundaries of documents, and the columns of the expression, with their checksums. If a late
 * column is replaced meanwhile, the call begins again. info may be NULL. TOKMAP_ERR_EXISTS: path
 * leads to something else than a view. TOKMAP_ERR_LOCKED: another process is writing it, or a
 * column is replaced all the time. The other errors are those of tokmap_dataset_select. */
TOKMAP_API tokmap_status tokmap_view_write(const tokmap_dataset *ds,
                                           const tokmap_view_options *options,
                                           tokmap_view_info *info, tokmap_error *err);

/* ---- Rows files ---- */

typedef struct tokmap_rows_options {
    size_t struct_size;       /* sizeof(tokmap_rows_options) */
    uint32_t sequence_length; /* this and the next three fields as in the options of the loader */
    uint32_t align;
    uint32_t max_documents;
    tokmap_whole_documents whole_documents;
    const char *path;                /* NULL: beside the dataset, where the loader finds it */
    void *context;                   /* for the function below */
    tokmap_on_progress *on_progress; /* in documents; or NULL */
    const tokmap_view *view;         /* of the dataset: only its documents are packed. NULL: all */
} tokmap_rows_options;

typedef struct tokmap_rows_info {
    size_t struct_size; /* sizeof(tokmap_rows_info), set by the caller */
    uint64_t n_rows;
    uint64_t n_pieces; /* documents, or parts of them */
    /* in all rows; the other n_rows * sequence_length - n_labels labels are masked */
    uint64_t n_labels;
    uint64_t n_bytes; /* of the file */
} tokmap_rows_info;

/* Packs the documents of a dataset into rows for TOKMAP_WINDOWS_BEST_FIT, and writes them to a rows
 * file: docs/FORMAT.md, section 13. It replaces a rows file of that name once it is complete. info
 * may be NULL. TOKMAP_ERR_MISMATCH: the document boundaries are not known. TOKMAP_ERR_CORRUPT: the
 * document index is damaged. TOKMAP_ERR_LOCKED: another process writes this file.
 * TOKMAP_ERR_EXISTS: a file of that name is not a rows file. */
TOKMAP_API tokmap_status tokmap_rows_write(const tokmap_dataset *ds,
                                           const tokmap_rows_options *options,
                                           tokmap_rows_info *info, tokmap_error *err);

/* ---- Look back ---- */

typedef struct tokmap_loader_search {
    size_t struct_size; /* sizeof(tokmap_loader_search), set by the caller */
    uint32_t source;    /* its number in the options */
    uint32_t dataset;   /* its number in the source */
    uint64_t epoch;     /* of the source */
    uint64_t first_token;
    uint64_t n_tokens;
    uint64_t *samples; /* filled in, unordered; has room for max_samples */
    uint64_t max_samples;
    uint64_t n_found; /* set; if it is above max_samples, `samples` has only max_samples of them */
} tokmap_loader_search;

/* The inverse of locate: finds the samples of an epoch whose rows have one of these tokens of a
 * dataset; with TOKMAP_WINDOWS_BEST_FIT once for each document. Skipped samples are included. Lists
 * of documents and of windows are read from beginning to end. TOKMAP_ERR_ARGUMENT: there are no
 * such tokens. */
TOKMAP_API tokmap_status tokmap_loader_find(tokmap_loader *l, tokmap_loader_search *search,
                                            tokmap_error *err);

typedef struct tokmap_loader_labels {
    size_t struct_size; /* sizeof(tokmap_loader_labels) */
    uint32_t source;    /* its number in the options */
    uint32_t dataset;   /* its number in the source */
    uint64_t first_document;
    uint64_t n_documents;
    uint64_t end_sample; /* at most the number of samples */
    uint64_t *labels;    /* filled in, one for each document */
} tokmap_loader_labels;

/* Counts the labels that the samples before end_sample have had in each of these documents: how
 * often a token was a label, whether masked or not, except for tokens in spans whose labels do not
 * count. Skipped samples do not count. Reads document boundaries and spans, and no tokens.
 * TOKMAP_ERR_ARGUMENT: there are no such documents, they are not known, or the source has a list of
 * documents or of windows. */
TOKMAP_API tokmap_status tokmap_loader_count_labels(tokmap_loader *l,
                                                    const tokmap_loader_labels *options,
                                                    tokmap_error *err);

/* ---- Megatron's blends ---- */

/* Sets sources[0 .. n) to the source of each sample of a blend, as the helpers of Megatron-core
 * choose it: the one with the largest weights[k] * max(i, 1) - (the samples that it already has) at
 * sample i, and of several the first. Megatron's weights are divided by their sum beforehand.
 * limits: how many samples each source has at most; a source that has them is not chosen again.
 * NULL: there are no limits. is_fused: 1 computes this with one rounding, as helpers that were
 * compiled for aarch64 do, and 0 with two, as those for x86-64 do; the orders differ. Sample i of
 * the blend is the next sample of its source. TOKMAP_ERR_ARGUMENT: n_sources is not 1 to 32,766, a
 * weight is not finite or not above 0, or the limits leave less than n samples. */
TOKMAP_API tokmap_status tokmap_blend_by_error(const double *weights, const uint64_t *limits,
                                               uint32_t n_sources, int32_t is_fused, uint64_t n,
                                               uint16_t *sources, tokmap_error *err);

/* ---- The ledger of a run: docs/FORMAT.md, section 12 ---- */

/* The contents of a ledger line beside the description of the loader. Text may be NULL: then it is
 * empty in the line. */
typedef struct tokmap_ledger_entry {
    size_t struct_size; /* sizeof(tokmap_ledger_entry) */
    const char *event;  /* such as "opened" */
    const char *time;   /* such as "2026-11-23T14:05:59Z" */
    const char *host;   /* name of the machine */
    const char *folder; /* the folder to which relative paths of datasets refer */
    const char *after;  /* the previous line; NULL: this is the first one */
    /* the sample at which the run begins, or continues with this loader, or ends; if samples are
     * skipped there, the line also states where the run continues after them */
    uint64_t sample;
    uint64_t micro_batches; /* steps of the loader in one step of the optimizer; 0: not known */
} tokmap_ledger_entry;

/* Writes the line into memory with room for *n_bytes, and a NUL after it, but no line feed; sets
 * *n_bytes to its length. Any thread may call it during next. TOKMAP_ERR_ARGUMENT: the sample is
 * after the last one, `after` is not such a line, or there is no room: then *n_bytes is its
 * length, so call again with room for one byte more. */
TOKMAP_API tokmap_status tokmap_loader_ledger_line(const tokmap_loader *l,
                                                   const tokmap_ledger_entry *entry, char *line,
                                                   size_t *n_bytes, tokmap_error *err);
/* Checks that a line of n_bytes, without its line feed, is unchanged, and was written after the
 * line `after`; NULL: as the first line. TOKMAP_ERR_CORRUPT: it is not; err says why.
 * TOKMAP_ERR_VERSION: it has a newer format. */
TOKMAP_API tokmap_status tokmap_ledger_check(const char *line, size_t n_bytes, const char *after,
                                             tokmap_error *err);

#ifdef __cplusplus
}
#endif
#endif /* TOKMAP_LOADER_H */

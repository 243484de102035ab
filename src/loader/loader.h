/* loader.h - an open loader, for the files of the library that work on one. */
#ifndef TOKMAP_LOADER_PRIVATE_H
#define TOKMAP_LOADER_PRIVATE_H

#include <stdatomic.h>

#include "loader/block_ahead.h"
#include "loader/fetch.h"
#include "system/platform.h"
#include "loader/row_parts.h"
#include "loader/sampler.h"
#include "base/status.h"
#include "tokmap_loader.h"

#define TOKMAP_I_MAX_SAMPLE ((uint64_t)1 << 62)

/* What the thread that reads ahead knows; it does not change after open. */
typedef struct tokmap_i_read_plan {
    tokmap_i_sampler sampler;        /* of that thread */
    const tokmap_dataset **datasets; /* of all sources */
    uint32_t *first_dataset;         /* of each source, among these */
    uint32_t n_datasets;
    uint64_t end;               /* samples */
    tokmap_i_block_ahead ahead; /* where blocks are read whole */
} tokmap_i_read_plan;

struct tokmap_loader {
    tokmap_i_fork_mark fork_mark;
    atomic_uintptr_t inside; /* on the stack of the thread that is in a call; 0: none is */
    uint32_t length;         /* inputs of a row */
    uint64_t seed;
    tokmap_shuffle shuffle;
    tokmap_windows windows;
    bool random_offset;
    uint64_t block_windows, group_blocks; /* 0 unless shuffled by blocks */

    tokmap_i_loader_source *sources;
    uint32_t n_sources, token_bytes; /* the widest */
    uint32_t largest_id;             /* of all */
    tokmap_i_mixture *mixture;
    tokmap_i_sampler sampler; /* of the caller's thread */
    uint32_t *quotas;         /* of the first phase, */
    uint64_t period;          /* and their sum */
    uint64_t end;             /* samples; UINT64_MAX: endless */
    uint32_t end_source;      /* which ends it */

    uint32_t rank, n_ranks, batch_rows;
    uint64_t next_sample;   /* of the next step: row 0 of rank 0 */
    tokmap_io io;           /* the way that was taken */
    uint32_t look_ahead;    /* steps, as asked for, */
    uint32_t n_steps_ahead; /* and as they are */
    bool drop_behind;
    tokmap_i_fetch *fetch; /* NULL with TOKMAP_IO_MAP */
    tokmap_i_read_plan plan;
    tokmap_row *rows;
    uint32_t row_stride; /* of the rows that are lent */
    uint8_t *lent;       /* copies of the rows, that far apart; NULL: the rows themselves are */
    uint8_t *joined;     /* a place for each row that joins the end of a dataset to its beginning */
    tokmap_i_row_parts parts;
    atomic_bool is_staged; /* a stage takes its batches */
};

/* A caller's row may be shorter than ours, or longer. */
extern const tokmap_i_struct_kind tokmap_i_row_kind;
/* Copies rows into memory that holds them `stride` bytes apart; what is longer is 0. */
void tokmap_i_lend_rows(uint8_t *to, uint32_t stride, const tokmap_row *rows, uint32_t n_rows);

tokmap_status tokmap_i_loader_check_fork(const tokmap_loader *l, tokmap_error *err);
/* Before a call that changes nothing: TOKMAP_ERR_FORKED, or TOKMAP_ERR_ARGUMENT while another
 * thread is in a call, or a stage takes the batches. */
tokmap_status tokmap_i_loader_look(const tokmap_loader *l, tokmap_error *err);
/* Around every other call that has a status. `mark` is a local variable of that call. Plain loads
 * and stores: two threads that enter in the same moment are both let in, and who leaves is told. */
tokmap_status tokmap_i_loader_enter(tokmap_loader *l, const uint8_t *mark, tokmap_error *err);
tokmap_status tokmap_i_loader_leave(tokmap_loader *l, const uint8_t *mark, tokmap_status status,
                                    tokmap_error *err);
/* What tokmap_loader_next, _restore and _seek do: for them, and for the stage that has the loader
 * to itself. The rows of this next are ours: sizeof(tokmap_row) bytes apart. */
tokmap_status tokmap_i_loader_next(tokmap_loader *l, tokmap_batch *batch, tokmap_error *err);
tokmap_status tokmap_i_loader_restore(tokmap_loader *l, const uint8_t *state, tokmap_error *err);
tokmap_status tokmap_i_loader_go_to(tokmap_loader *l, uint64_t sample, tokmap_error *err);
/* The state of a loader that stands at a sample; reads nothing that changes after open. */
void tokmap_i_loader_encode_state(const tokmap_loader *l, uint64_t next_sample, uint8_t *state);
/* From now on documents are looked up without the map: a file that was cut must be an error, and no
 * signal in a thread that is not the caller's. */
tokmap_status tokmap_i_loader_leave_index_map(tokmap_loader *l, tokmap_error *err);
/* Chooses the way of reading and begins. */
tokmap_status tokmap_i_loader_open_io(tokmap_loader *l, tokmap_io wanted, tokmap_error *err);
/* A fetch for batch_rows rows a step, where one is needed, in place of none. */
tokmap_status tokmap_i_loader_open_fetch(tokmap_loader *l, tokmap_error *err);
/* What was read ahead is for other steps than those that come: other samples or ranks. */
void tokmap_i_loader_restart_fetch(tokmap_loader *l);
void tokmap_i_loader_close_fetch(tokmap_loader *l);
void tokmap_i_loader_close_io(tokmap_loader *l);

#endif /* TOKMAP_LOADER_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* loader.h - an open loader, for the other files of the library. */
#pragma once

#include <stdatomic.h>

#include "base/error.h"
#include "base/options.h"
#include "loader/block_ahead.h"
#include "loader/fetch.h"
#include "loader/fetch_pages.h"
#include "loader/lanes.h"
#include "loader/latency.h"
#include "loader/row_parts.h"
#include "samples/samples.h"
#include "loader/slice.h"
#include "loader/sweep.h"
#include "system/platform.h"
#include "tokmap_loader.h"

enum {
    /* with more ranks, each machine would mostly read blocks that its own ranks do not use */
    TOKMAP_I_MOST_RANKS = 8
};

/* The data of the read-ahead thread; it does not change after open. */
typedef struct tokmap_i_read_plan {
    tokmap_i_sampler sampler; /* of that thread */
    const tokmap_i_skips *skips;
    uint64_t end; /* number of samples that are not skipped */
    const tokmap_i_lanes *lanes;
    tokmap_i_block_ahead ahead; /* if whole blocks are read */
} tokmap_i_read_plan;

/* The user of a loader: a thread during a call, or a stage. */
enum {
    TOKMAP_I_LOADER_FREE,
    TOKMAP_I_LOADER_IN_CALL,
    TOKMAP_I_LOADER_STAGED
};

struct tokmap_loader {
    tokmap_i_fork_mark fork_mark;
    atomic_int user; /* TOKMAP_I_LOADER_... */
    tokmap_i_samples samples;
    tokmap_i_sampler sampler; /* of the caller's thread */
    tokmap_i_lanes lanes;

    uint32_t rank, n_ranks, batch_rows;
    uint64_t next_sample;  /* of the next step: row 0 of rank 0 */
    uint64_t clear_end;    /* steps that end by this sample meet neither a skip nor the end */
    tokmap_io io;          /* the way that was chosen */
    char io_reason[160];   /* why it was chosen */
    tokmap_i_fetch *fetch; /* NULL with TOKMAP_IO_MAP and COPY */
    bool has_batch;        /* next has returned a batch, which is still the last one: */
    const tokmap_i_fetch_row *fetched; /* its rows; NULL without fetch */
    /* With lanes and without fetch: where its rows are, and their pieces, one row after another. */
    tokmap_sample *located;
    tokmap_i_fetch_pieces located_pieces;
    /* Without fetch: gathers that waited, and the durations of all gathers. */
    uint64_t n_waits, waited_ns;
    tokmap_i_latency waits;
    tokmap_i_read_plan plan;
    bool chose_map;        /* AUTO chose MAP */
    bool direct_failed;    /* DIRECT cannot be used; io_reason says why */
    bool reads_blocks;     /* whole, with block shuffle */
    bool may_sweep;        /* chosen by AUTO, and the data fit into memory */
    tokmap_i_sweep *sweep; /* NULL until the reader has had to wait */
    tokmap_row *rows;
    tokmap_i_known_sizes sizes;   /* where rows in maps are checked */
    uint64_t sizes_ns;            /* since when these sizes are known */
    bool keeps_pieces;            /* a batch needs the pieces of its rows */
    tokmap_i_fetch_pieces pieces; /* of the rows, if it does */
    tokmap_i_fetch_pieces slices; /* what is left of them in slices */
    /* copies of the rows, o.row_stride apart; NULL: the rows themselves are handed out */
    uint8_t *row_copies;
    uint8_t *joined; /* for each row, room for tokens that are not in one piece of memory */
    tokmap_i_row_parts parts;
    tokmap_i_slice slice;
};

/* The kind of tokmap_row, which may be shorter or longer in the caller's version. */
extern const tokmap_i_struct_kind tokmap_i_row_kind;
/* Copies rows to the caller's stride. Bytes after our row are 0. */
void tokmap_i_copy_rows(uint8_t *to, uint32_t stride, const tokmap_row *rows, uint32_t n_rows);

tokmap_status tokmap_i_loader_check_fork(const tokmap_loader *l, tokmap_error *err);
/* Enclose each call that uses what changes after open. Enter fails with TOKMAP_ERR_FORKED, or with
 * TOKMAP_ERR_ARGUMENT if another thread is in a call or a stage uses the loader. Leave returns
 * `status`. */
tokmap_status tokmap_i_loader_enter(const tokmap_loader *l, tokmap_error *err);
tokmap_status tokmap_i_loader_leave(const tokmap_loader *l, tokmap_status status);
/* Do the work of tokmap_loader_next, _restore and _seek, also for the stage that uses the loader.
 * This next returns rows sizeof(tokmap_row) bytes apart. */
tokmap_status tokmap_i_loader_next(tokmap_loader *l, tokmap_batch *batch, tokmap_error *err);
tokmap_status tokmap_i_loader_restore(tokmap_loader *l, const uint8_t *state, tokmap_error *err);
tokmap_status tokmap_i_loader_go_to(tokmap_loader *l, uint64_t sample, tokmap_error *err);
/* Returns TOKMAP_ERR_IO if a file of a dataset, or of a lane, has become too short for its tokens
 * of a sample, where rows in maps are checked. */
tokmap_status tokmap_i_loader_check_sizes(tokmap_loader *l, const tokmap_dataset *ds,
                                          const tokmap_sample *at, tokmap_error *err);
/* Adds the time of a gather to the waits in the loader's info, if copying n_bytes alone does not
 * explain it. Nothing else is measured, because a process does not learn that a page fault read the
 * disk. */
void tokmap_i_loader_add_wait(tokmap_loader *l, uint64_t ns, uint64_t n_bytes);
/* Makes later lookups of documents read the index without its map, so that a shortened file is an
 * error, and not a signal in a thread of the library. */
tokmap_status tokmap_i_loader_leave_index_map(tokmap_loader *l, tokmap_error *err);
/* Chooses the way of reading, before open_io. */
tokmap_status tokmap_i_loader_choose_io(tokmap_loader *l, tokmap_error *err);
/* Starts reading in the way that choose_io chose. */
tokmap_status tokmap_i_loader_open_io(tokmap_loader *l, tokmap_error *err);
/* Opens a fetch for batch_rows rows per step, if one is needed. There must be none. */
tokmap_status tokmap_i_loader_open_fetch(tokmap_loader *l, tokmap_error *err);
/* Restarts the fetch after the next step has changed: other samples or ranks. */
void tokmap_i_loader_restart_fetch(tokmap_loader *l);
/* Speeds up reading after the reader had to wait: also reads all data in order, or rows further
 * ahead. */
void tokmap_i_loader_speed_up_reading(tokmap_loader *l);
void tokmap_i_loader_close_fetch(tokmap_loader *l);
void tokmap_i_loader_close_io(tokmap_loader *l);

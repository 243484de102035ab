/* work.h - the work itself: takes the jobs of the pipeline one by one into the outputs, with
 * checkpoints on the way, until the inputs end, a limit is reached, or something stops it. */
#ifndef TOKMAP_PACK_WORK_H
#define TOKMAP_PACK_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "pack/bad_file.h"
#include "pack/documents.h"
#include "pack/plan.h"
#include "pack/progress.h"
#include "pack/resume.h"

/* The first part is set by the caller; the work keeps its own state in the rest. */
typedef struct pack_work {
    const pack_plan_parts *parts;
    const pack_plan *plan;
    pack_outputs *outputs; /* open */
    bool resumable;
    const pack_resume *from;
    pack_bad_file *bad_file; /* open, or NULL */

    pack_documents *documents;
    pack_progress progress;
    corpus_place place;      /* behind the last job that was taken */
    uint64_t encoded_tokens; /* that the encoders made of the text that was taken */
    pack_bad_mark bad_mark;  /* of the bad file, there */
    bool limited;            /* a limit ended it */
    bool consistent;         /* the outputs are where `place` and the documents' position are */
    bool warned_once;
    uint64_t checkpoint_ns, next_checkpoint_ns; /* the pause; when, since the beginning */
} pack_work;

/* From here on SIGINT, SIGTERM and SIGHUP end the work cleanly. */
void pack_work_catch_signals(void);
/* Takes up what from->note says; false: out of memory. */
bool pack_work_begin(pack_work *w);
int pack_work_run(pack_work *w, pack_error *err);
/* Whether what was read and what was written add up; if not, CLI_DATASET. */
int pack_work_check_balance(const pack_work *w, pack_error *err);
/* Whether a run could go on from where this one is. */
bool pack_work_may_checkpoint(const pack_work *w);
int pack_work_checkpoint(pack_work *w, bool finishing, pack_error *err);
pack_counts pack_work_counts(const pack_work *w);
void pack_work_end(pack_work *w);

#endif /* TOKMAP_PACK_WORK_H */

/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/job.h"

#include <stdlib.h>

#include "base/array.h"

/* end: of the document, in batch.ends. */
static bool encode_document(pack_marks *marks, encoder *e, pack_job *job, pack_text text,
                            size_t end)
{
    switch (pack_marks_encode(marks, e, text, &job->ids)) {
    case TOKENIZE_OK:
        return true;
    case TOKENIZE_SPECIAL:
    case TOKENIZE_TOO_LONG:
        if (!array_grow(&job->specials, job->n_specials, sizeof *job->specials))
            return false;
        job->specials[job->n_specials++] = end;
        return true;
    case TOKENIZE_NO_MEMORY:
        break;
    }
    return false;
}

bool pack_job_encode(pack_job *job, pack_marks *marks, encoder *e)
{
    const corpus_batch *b = &job->batch;
    job->ids.n = 0;
    job->n_specials = 0;
    uint64_t seen_before = encoder_specials_seen(e);
    if (!array_reserve(&job->ends, &job->ends_capacity, b->n_ends, sizeof *job->ends))
        return false;
    size_t begin = 0, n_ranges = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        const pack_text text = {.bytes = b->text + begin,
                                .n_bytes = b->ends[i].at - begin,
                                .ranges = b->ranges ? b->ranges + n_ranges : NULL,
                                .n_ranges = b->ends[i].n_ranges};
        if (!b->ends[i].input && !encode_document(marks, e, job, text, i))
            return false;
        begin = b->ends[i].at;
        n_ranges += text.n_ranges;
        job->ends[i] = (pack_end){job->ids.n, encoder_specials_seen(e) - seen_before};
    }
    job->specials_seen = encoder_specials_seen(e) - seen_before;
    return true;
}

void pack_job_free(pack_job *job)
{
    corpus_batch_free(&job->batch);
    id_buffer_free(&job->ids);
    free(job->ends);
    free(job->specials);
    free(job->reports.text);
    free(job->reports.items);
    free(job->reports.moments);
}

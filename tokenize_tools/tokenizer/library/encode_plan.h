/* SPDX-License-Identifier: Apache-2.0 */
/* encode_plan.h - cuts the texts of a call into jobs of about equal size: many short texts, or a
 * part of a long one. Pure. */
#ifndef TOKMAP_ENCODE_PLAN_H
#define TOKMAP_ENCODE_PLAN_H

#include "tokenizer/tokenizer.h"
#include "tokmap_tokenizer.h"

/* Small enough that text and ids stay in the cache, and large enough that threads take a job only
 * every millisecond. */
#define JOB_BYTES ((size_t)128 << 10)
#define JOB_TEXTS 4096

typedef struct text_list {
    const uint8_t *first;
    uint32_t stride;
    uint64_t n;
} text_list;
tokmap_text text_list_get(const text_list *texts, uint64_t index);

/* Bytes of text number `first`, or n_ended whole texts from there on. */
typedef struct encode_job {
    uint64_t first;
    uint64_t n_ended; /* texts that end in this job: 0 for a part that is not the last */
    size_t from, to;  /* of a part; 0 for whole texts */
    bool done;        /* then it has n_ids */
    size_t n_ids, first_id;
} encode_job;

typedef struct encode_plan { /* starts as {0} */
    encode_job *jobs;
    size_t n, capacity;
    size_t n_bytes; /* of all texts */
} encode_plan;

/* false: out of memory. Jobs are in the order of the texts. */
bool encode_plan_make(encode_plan *plan, const text_list *texts, const tokenizer *t);
void encode_plan_free(encode_plan *plan);

/* The length of the first part of a text that may be encoded by itself: about JOB_BYTES, more if
 * there is no safe cut. */
size_t encode_part_bytes(const tokenizer *t, const uint8_t *text, size_t n_bytes);

#endif /* TOKMAP_ENCODE_PLAN_H */

/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/spill.h"

#include <errno.h>
#include <stdlib.h>

#include <xxhash.h>

#include "base/array.h"
#include "base/base.h"
#include "system/files.h"
#include "system/platform.h"
#include "system/platform_thread.h"

/* The file is sparse: a slot takes the space of the largest job that it had. */
#define SLOT_BYTES ((uint64_t)16 << 20)

struct pack_spill {
    int fd;
    uint64_t most;
    tokmap_i_mutex lock;
    uint64_t n_bytes;     /* what the slots take */
    uint64_t written;     /* in all */
    uint32_t *slot_bytes; /* of each slot, what it takes */
    uint32_t n_slots;
    uint32_t *free_slots; /* as many as slots; the last one that was freed is used first: its
                             pages are in memory */
    uint32_t n_free;
    bool failed; /* to write */
};

pack_spill *pack_spill_open(const char *beside, uint64_t most_bytes)
{
    pack_spill *s = calloc(1, sizeof *s);
    if (s && most_bytes > 0 && file_open_unnamed(beside, &s->fd) == 0) {
        tokmap_i_mutex_init(&s->lock);
        s->most = MIN(file_free_bytes(s->fd) / 8, most_bytes);
        return s;
    }
    free(s);
    return NULL;
}

/* ---- What a job holds ---- */

enum {
    N_PARTS = 5
};

typedef struct job_part {
    void *bytes;
    size_t n_bytes;
} job_part;

static uint64_t list_parts(const pack_job *job, job_part parts[N_PARTS])
{
    const corpus_batch *b = &job->batch;
    uint64_t n_bytes = 0;
    parts[0] = (job_part){job->tokens, job->n_tokens * job->token_bytes};
    parts[1] = (job_part){b->ends, b->n_ends * sizeof *b->ends};
    parts[2] = (job_part){job->ends, b->n_ends * sizeof *job->ends};
    parts[3] = (job_part){job->lengths, b->n_ends * sizeof *job->lengths};
    parts[4] = (job_part){b->values, b->values_bytes};
    for (size_t i = 0; i < N_PARTS; i++)
        n_bytes += parts[i].n_bytes;
    return n_bytes;
}

static void drop(void *array, size_t *capacity)
{
    array_elements *elements = array;
    free(*elements);
    *elements = NULL;
    *capacity = 0;
}

static void drop_parts(pack_job *job)
{
    corpus_batch *b = &job->batch;
    drop(&job->tokens, &job->tokens_capacity);
    drop(&b->ends, &b->ends_capacity);
    drop(&job->ends, &job->ends_capacity);
    drop(&job->lengths, &job->lengths_capacity);
    drop(&b->values, &b->values_capacity);
    drop(&b->ranges, &b->ranges_capacity); /* only encoders need them */
}

static bool make_parts(pack_job *job)
{
    corpus_batch *b = &job->batch;
    return array_reserve(&job->tokens, &job->tokens_capacity, job->n_tokens * job->token_bytes,
                         1) &&
           array_reserve(&b->ends, &b->ends_capacity, b->n_ends, sizeof *b->ends) &&
           array_reserve(&job->ends, &job->ends_capacity, b->n_ends, sizeof *job->ends) &&
           array_reserve(&job->lengths, &job->lengths_capacity, b->n_ends, sizeof *job->lengths) &&
           array_reserve(&b->values, &b->values_capacity, b->values_bytes, 1);
}

static uint64_t hash_parts(const job_part parts[N_PARTS])
{
    uint64_t hash = 0;
    for (size_t i = 0; i < N_PARTS; i++)
        if (parts[i].n_bytes > 0)
            hash = XXH3_64bits_withSeed(parts[i].bytes, parts[i].n_bytes, hash);
    return hash;
}

/* ---- Slots ---- */

static bool add_slot(pack_spill *s)
{
    if (!array_grow(&s->slot_bytes, s->n_slots, sizeof *s->slot_bytes) ||
        !array_grow(&s->free_slots, s->n_slots, sizeof *s->free_slots))
        return false;
    s->slot_bytes[s->n_slots] = 0;
    s->free_slots[s->n_free++] = s->n_slots++;
    return true;
}

/* Takes a slot for so many bytes. False: there is no room. Call with the lock held. */
static bool take_slot(pack_spill *s, uint64_t n_bytes, uint32_t *slot)
{
    if (s->failed || n_bytes > SLOT_BYTES || (s->n_free == 0 && !add_slot(s)))
        return false;
    *slot = s->free_slots[s->n_free - 1];
    const uint64_t grown = n_bytes - MIN(n_bytes, s->slot_bytes[*slot]);
    if (s->n_bytes + grown > s->most)
        return false;
    s->n_free--;
    s->n_bytes += grown;
    s->slot_bytes[*slot] += (uint32_t)grown;
    return true;
}

static void give_slot_back(pack_spill *s, uint32_t slot)
{
    tokmap_i_mutex_lock(&s->lock);
    s->free_slots[s->n_free++] = slot;
    tokmap_i_mutex_unlock(&s->lock);
}

/* ---- Jobs ---- */

static int write_parts(const pack_spill *s, uint64_t at, const job_part parts[N_PARTS])
{
    int error = 0;
    for (size_t i = 0; i < N_PARTS && !error; i++) {
        if (parts[i].n_bytes > 0)
            error = tokmap_i_file_write(s->fd, parts[i].bytes, parts[i].n_bytes, at);
        at += parts[i].n_bytes;
    }
    return error;
}

static int read_parts(const pack_spill *s, uint64_t at, const job_part parts[N_PARTS])
{
    int error = 0;
    for (size_t i = 0, n_read; i < N_PARTS && !error; i++) {
        error = tokmap_i_file_read(s->fd, parts[i].bytes, parts[i].n_bytes, at, &n_read);
        if (!error && n_read < parts[i].n_bytes)
            error = EBADMSG;
        at += parts[i].n_bytes;
    }
    return error;
}

bool pack_spill_put(pack_spill *s, pack_job *job)
{
    job_part parts[N_PARTS];
    uint32_t slot;
    const uint64_t n_bytes = list_parts(job, parts);
    tokmap_i_mutex_lock(&s->lock);
    const bool taken = take_slot(s, n_bytes, &slot);
    tokmap_i_mutex_unlock(&s->lock);
    if (!taken)
        return false;
    const int error = write_parts(s, slot * SLOT_BYTES, parts);
    if (error) {
        tokmap_i_mutex_lock(&s->lock);
        s->failed = true;
        tokmap_i_mutex_unlock(&s->lock);
        give_slot_back(s, slot);
        return false;
    }
    tokmap_i_mutex_lock(&s->lock);
    s->written += n_bytes;
    tokmap_i_mutex_unlock(&s->lock);
    job->spilled = (pack_spilled){true, slot, hash_parts(parts)};
    drop_parts(job);
    return true;
}

int pack_spill_get(pack_spill *s, pack_job *job)
{
    job_part parts[N_PARTS];
    if (!make_parts(job))
        return ENOMEM;
    list_parts(job, parts);
    int error = read_parts(s, job->spilled.slot * SLOT_BYTES, parts);
    if (!error && hash_parts(parts) != job->spilled.hash)
        error = EBADMSG;
    give_slot_back(s, job->spilled.slot);
    job->spilled.is = false;
    return error;
}

uint64_t pack_spill_written(pack_spill *s)
{
    tokmap_i_mutex_lock(&s->lock);
    const uint64_t n_bytes = s->written;
    tokmap_i_mutex_unlock(&s->lock);
    return n_bytes;
}

void pack_spill_close(pack_spill *s)
{
    if (!s)
        return;
    tokmap_i_file_close(s->fd);
    tokmap_i_mutex_free(&s->lock);
    free(s->slot_bytes);
    free(s->free_slots);
    free(s);
}

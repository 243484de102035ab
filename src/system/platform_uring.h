/* SPDX-License-Identifier: Apache-2.0 */
/* platform_uring.h - many reads at once, with the system calls of io_uring.
 *
 * Put reads, submit them, and take their results, which come in any order. One thread at a time. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_uring_sqe;
struct io_uring_cqe;

typedef struct tokmap_i_uring {
    int fd;         /* -1: not open */
    uint32_t n_put; /* put and not submitted yet */
    uint32_t sq_mask, cq_mask;
    size_t ring_bytes, entries_bytes;
    void *ring;
    struct io_uring_sqe *entries;
    uint32_t *sq_places; /* the entry at each place of the queue */
    _Atomic uint32_t *sq_tail, *cq_head, *cq_tail;
    const struct io_uring_cqe *results;
} tokmap_i_uring;

typedef struct tokmap_i_uring_read {
    int fd;
    uint32_t n_bytes;
    uint64_t offset;
    void *dst;
    uint64_t id;
} tokmap_i_uring_read;

/* Opens a ring for n_reads at a time, a power of two. Fails if io_uring is missing or forbidden, or
 * when out of memory. */
int tokmap_i_uring_open(tokmap_i_uring *u, uint32_t n_reads);
/* Closes the ring. No read may be in flight. In a forked child it does not affect the parent's
 * ring. */
void tokmap_i_uring_close(tokmap_i_uring *u);

/* Adds a read. At most n_reads may be added and not taken yet. */
void tokmap_i_uring_put(tokmap_i_uring *u, const tokmap_i_uring_read *read);
/* Removes the last read that was put and is not submitted; returns false if there is none. */
bool tokmap_i_uring_take_back(tokmap_i_uring *u, uint64_t *id);
/* Submits the reads that were put; with `wait`, returns when there is a result to take. */
int tokmap_i_uring_submit(tokmap_i_uring *u, bool wait);
/* Takes a result: bytes read, or a negative errno value. Returns false if there is none yet. */
bool tokmap_i_uring_take(tokmap_i_uring *u, uint64_t *id, int32_t *result);

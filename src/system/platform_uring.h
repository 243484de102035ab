/* platform_uring.h - many reads at once: io_uring by its system calls.
 *
 * Put reads, submit them, take what is done, in whatever order it is. One thread at a time. */
#ifndef TOKMAP_PLATFORM_URING_H
#define TOKMAP_PLATFORM_URING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct io_uring_sqe;
struct io_uring_cqe;

typedef struct tokmap_i_uring {
    int fd;         /* -1: not open */
    uint32_t n_put; /* and not submitted yet */
    uint32_t sq_mask, cq_mask;
    size_t ring_bytes, entries_bytes;
    void *ring;
    struct io_uring_sqe *entries;
    uint32_t *sq_places; /* which entry stands at which place of the queue */
    _Atomic uint32_t *sq_head, *sq_tail, *cq_head, *cq_tail;
    const struct io_uring_cqe *results;
} tokmap_i_uring;

typedef struct tokmap_i_uring_read {
    int fd;
    uint32_t n_bytes;
    uint64_t offset;
    void *dst;
    uint64_t id;
} tokmap_i_uring_read;

/* For n_reads at a time, a power of two. An error: not known here, forbidden, or no memory. */
int tokmap_i_uring_open(tokmap_i_uring *u, uint32_t n_reads);
/* Nothing may be under way. In a forked child: leaves the parent's alone. */
void tokmap_i_uring_close(tokmap_i_uring *u);

/* Not more than n_reads may be put and not taken yet. */
void tokmap_i_uring_put(tokmap_i_uring *u, const tokmap_i_uring_read *read);
/* Takes back the read that was put last and is not submitted; false: there is none. */
bool tokmap_i_uring_take_back(tokmap_i_uring *u, uint64_t *id);
/* Hands over what was put; `wait`: until there is something to take. */
int tokmap_i_uring_submit(tokmap_i_uring *u, bool wait);
/* What is done: bytes read, or a negative errno value. False: nothing is. */
bool tokmap_i_uring_take(tokmap_i_uring *u, uint64_t *id, int32_t *result);

#endif /* TOKMAP_PLATFORM_URING_H */

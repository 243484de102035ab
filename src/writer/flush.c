/* SPDX-License-Identifier: Apache-2.0 */
/* flush.c - the steps of tokens from the buffer of a writer to the disk: they are hashed,
 * written and made durable.
 *
 * With options.n_threads, threads do so with whole buffers. Up to N_PIECES of them are on their
 * way; the writer takes over what the threads have found in the order of the tokens. What is not a
 * whole buffer waits for all threads, and is flushed by the caller. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "system/platform.h"
#include "system/platform_thread.h"
#include "writer/writer.h"

enum {
    N_PIECES = TOKMAP_I_MAX_FLUSH_THREADS + 1,
    PIECE_BLOCKS = TOKMAP_I_WRITE_BYTES / TOKMAP_I_BLOCK_BYTES
};

/* The result of hashing tokens. */
typedef struct hashes {
    uint64_t checksums[PIECE_BLOCKS + 1]; /* of the blocks that end in them */
    size_t n_blocks;
    tokmap_i_content_hash content;
} hashes;

/* A buffer, and what its thread has found. */
typedef struct piece {
    uint8_t *tokens; /* TOKMAP_I_WRITE_BYTES; NULL: not used yet */
    uint64_t offset; /* in the token file */
    hashes found;
    int error; /* of writing */
    bool is_done;
} piece;

struct tokmap_i_flush {
    tokmap_i_mutex mutex;
    tokmap_i_condition given, done;
    int fd;
    uint32_t token_bytes;
    bool stop;
    bool is_direct;         /* past the page cache; never while only the writer uses the file */
    bool cannot_direct;     /* the file system has refused it */
    piece pieces[N_PIECES]; /* number n is in [n % N_PIECES]; the writer fills the next one */
    uint64_t n_given;       /* by the writer */
    uint64_t n_taken;       /* by threads */
    uint64_t n_retired;     /* what was found is taken over by the writer */
    size_t n_threads;
    tokmap_i_thread threads[TOKMAP_I_MAX_FLUSH_THREADS];
};

/* ---- Hashing ---- */

/* `hasher` and `hashed` are the writer's: of the block that the tokens continue. For tokens that
 * begin and end with a block neither is used. n_bytes: at most TOKMAP_I_WRITE_BYTES. */
static void hash_tokens(hashes *h, tokmap_i_hasher *hasher, size_t *hashed, const uint8_t *tokens,
                        size_t n_bytes, uint32_t token_bytes)
{
    *h = (hashes){0};
    for (size_t at = 0, n; at < n_bytes; at += n) {
        n = MIN(n_bytes - at, TOKMAP_I_BLOCK_BYTES - *hashed);
        const bool is_whole = n == TOKMAP_I_BLOCK_BYTES;
        if (is_whole)
            h->checksums[h->n_blocks++] = tokmap_i_checksum(tokens + at, n);
        else
            tokmap_i_hasher_add(hasher, tokens + at, n);
        tokmap_i_content_hash_add_tokens(&h->content, tokens + at, n / token_bytes, token_bytes);
        *hashed = is_whole ? 0 : *hashed + n;
        if (*hashed < TOKMAP_I_BLOCK_BYTES)
            continue;
        h->checksums[h->n_blocks++] = tokmap_i_hasher_get(hasher);
        tokmap_i_hasher_reset(hasher);
        *hashed = 0;
    }
}

static tokmap_status take_hashes(tokmap_writer *w, const hashes *h, tokmap_error *err)
{
    tokmap_status status = TOKMAP_OK;
    tokmap_i_content_hash_join(&w->header.tokens_hash, &h->content);
    for (size_t i = 0; !status && i < h->n_blocks; i++)
        status = tokmap_i_index_writer_block(w->index, h->checksums[i], err);
    return status;
}

tokmap_status tokmap_i_writer_hash(tokmap_writer *w, const void *data, size_t n_bytes,
                                   tokmap_error *err)
{
    hashes found;
    hash_tokens(&found, w->hasher, &w->hashed, data, n_bytes, w->header.token_bytes);
    return take_hashes(w, &found, err);
}

/* ---- Threads ---- */

/* Call with the lock held. */
static int set_direct(tokmap_i_flush *f, bool is_direct)
{
    const int error = tokmap_i_file_set_direct(f->fd, is_direct);
    f->is_direct = !error ? is_direct : f->is_direct;
    f->cannot_direct |= is_direct && error;
    return is_direct ? 0 : error;
}

static int write_piece(tokmap_i_flush *f, const piece *p)
{
    int error = tokmap_i_file_write(f->fd, p->tokens, TOKMAP_I_WRITE_BYTES, p->offset);
    if (error != EINVAL)
        return error;
    tokmap_i_mutex_lock(&f->mutex); /* blocks of this file system are larger */
    f->cannot_direct = true;
    error = set_direct(f, false);
    tokmap_i_mutex_unlock(&f->mutex);
    return error ? error : tokmap_i_file_write(f->fd, p->tokens, TOKMAP_I_WRITE_BYTES, p->offset);
}

static void *run_thread(void *context)
{
    tokmap_i_flush *f = context;
    tokmap_i_thread_name("tokmap-flush");
    tokmap_i_mutex_lock(&f->mutex);
    while (!f->stop) {
        if (f->n_taken == f->n_given) {
            tokmap_i_condition_wait(&f->given, &f->mutex);
            continue;
        }
        piece *p = &f->pieces[f->n_taken++ % N_PIECES];
        tokmap_i_mutex_unlock(&f->mutex);
        size_t hashed = 0;
        hash_tokens(&p->found, NULL, &hashed, p->tokens, TOKMAP_I_WRITE_BYTES, f->token_bytes);
        p->error = write_piece(f, p);
        tokmap_i_mutex_lock(&f->mutex);
        p->is_done = true;
        tokmap_i_condition_signal(&f->done);
    }
    tokmap_i_mutex_unlock(&f->mutex);
    return NULL;
}

/* Starts as many threads as the system allows. Without any, w->flush stays NULL. */
static void start_threads(tokmap_writer *w)
{
    tokmap_i_flush *f = calloc(1, sizeof *f);
    const uint32_t n_wanted = w->options.n_threads;
    w->options.n_threads = 0; /* if that fails, it is not tried again */
    if (!f)
        return;
    tokmap_i_mutex_init(&f->mutex);
    tokmap_i_condition_init(&f->given);
    tokmap_i_condition_init(&f->done);
    f->fd = w->token_fd;
    f->token_bytes = w->header.token_bytes;
    while (f->n_threads < n_wanted &&
           tokmap_i_thread_start(&f->threads[f->n_threads], run_thread, f) == 0)
        f->n_threads++;
    w->flush = f;
    if (f->n_threads == 0)
        tokmap_i_writer_end_threads(w);
    else
        f->pieces[0].tokens = w->buffer;
}

void tokmap_i_writer_end_threads(tokmap_writer *w)
{
    tokmap_i_flush *f = w->flush;
    if (!f)
        return;
    const bool is_child = tokmap_i_fork_mark_is_child(&w->fork_mark); /* a child has no threads */
    if (!is_child) {
        tokmap_i_mutex_lock(&f->mutex);
        f->stop = true;
        tokmap_i_condition_broadcast(&f->given);
        tokmap_i_mutex_unlock(&f->mutex);
    }
    for (size_t i = 0; !is_child && i < f->n_threads; i++)
        tokmap_i_thread_join(f->threads[i]);
    if (!is_child) {
        tokmap_i_condition_free(&f->given);
        tokmap_i_condition_free(&f->done);
        tokmap_i_mutex_free(&f->mutex);
    }
    for (size_t i = 0; i < N_PIECES; i++)
        if (f->pieces[i].tokens != w->buffer)
            free(f->pieces[i].tokens);
    free(f);
    w->flush = NULL;
}

/* Takes over all pieces that are done, in order, and waits until at most n_left are on their way.
 */
static tokmap_status retire(tokmap_writer *w, uint64_t n_left, tokmap_error *err)
{
    tokmap_i_flush *f = w->flush;
    tokmap_status status = TOKMAP_OK;
    while (!status && f->n_retired < f->n_given) {
        piece *p = &f->pieces[f->n_retired % N_PIECES];
        tokmap_i_mutex_lock(&f->mutex);
        while (!p->is_done && f->n_given - f->n_retired > n_left)
            tokmap_i_condition_wait(&f->done, &f->mutex);
        const bool is_done = p->is_done;
        p->is_done = false;
        tokmap_i_mutex_unlock(&f->mutex);
        if (!is_done)
            break;
        f->n_retired++;
        status = CHECK_IO_AT(err, p->error, p->offset, "%s: cannot write", w->names.token_partial);
        if (!status)
            status = take_hashes(w, &p->found, err);
    }
    return status;
}

/* Gives the buffer to a thread, and takes another one. */
static tokmap_status give(tokmap_writer *w, tokmap_error *err)
{
    tokmap_i_flush *f = w->flush;
    piece *p = &f->pieces[f->n_given % N_PIECES];
    p->offset = w->n_tokens * w->header.token_bytes - w->buffer_used;
    tokmap_i_mutex_lock(&f->mutex);
    if (!f->is_direct && !f->cannot_direct)
        set_direct(f, true);
    f->n_given++;
    tokmap_i_condition_signal(&f->given);
    tokmap_i_mutex_unlock(&f->mutex);
    w->buffer_used = 0;
    const tokmap_status status = retire(w, N_PIECES - 1, err);
    uint8_t **next = &f->pieces[f->n_given % N_PIECES].tokens;
    if (!*next)
        *next = aligned_alloc(TOKMAP_I_DIRECT_BYTES, TOKMAP_I_WRITE_BYTES);
    w->buffer = *next ? *next : w->buffer;
    return status || *next ? status : FAIL_MEMORY(err);
}

/* Waits until everything that threads were given is written. */
static tokmap_status wait_for_threads(tokmap_writer *w, tokmap_error *err)
{
    tokmap_i_flush *f = w->flush;
    tokmap_status status = f ? retire(w, 0, err) : TOKMAP_OK;
    if (status || !f || !f->is_direct)
        return status;
    return CHECK_IO(err, set_direct(f, false), "%s: cannot write", w->names.token_partial);
}

/* ---- The buffer ---- */

tokmap_status tokmap_i_writer_flush(tokmap_writer *w, tokmap_error *err)
{
    tokmap_status status = wait_for_threads(w, err);
    const uint64_t offset = w->n_tokens * w->header.token_bytes - w->buffer_used;
    const size_t n_bytes = w->buffer_used;
    w->buffer_used = 0;
    if (!status)
        status = tokmap_i_writer_hash(w, w->buffer, n_bytes, err);
    if (status)
        return status;
    return CHECK_IO_AT(err, tokmap_i_file_write_direct(w->token_fd, w->buffer, n_bytes, offset),
                       offset, "%s: cannot write", w->names.token_partial);
}

tokmap_status tokmap_i_writer_pass_on(tokmap_writer *w, tokmap_error *err)
{
    const bool is_whole = w->buffer_used == TOKMAP_I_WRITE_BYTES;
    if (is_whole && !w->flush && w->options.n_threads > 0)
        start_threads(w);
    return is_whole && w->flush ? give(w, err) : tokmap_i_writer_flush(w, err);
}

tokmap_status tokmap_i_writer_sync(const tokmap_writer *w, tokmap_error *err)
{
    return CHECK_IO(err, tokmap_i_file_sync(w->token_fd), "%s: cannot write to the disk",
                    w->names.token_partial);
}

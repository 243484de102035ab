/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_ring.c - see fetch_ring.h.
 *
 * A direct read begins and ends at multiples of the alignment that the disk requires, so a row
 * starts a little after the beginning of its place. A short read is continued where it stopped; if
 * that is not possible, the file has ended. No two direct reads share a page of memory: if the
 * process forks during a read and we write to the page, copy-on-write may give us another page than
 * the one being read into. */
#include "loader/fetch_ring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/error.h"
#include "loader/fetch_pages.h"
#include "system/platform_memory.h"
#include "system/platform_thread.h"
#include "system/platform_uring.h"

enum {
    MAX_READS = 128, /* in flight: enough for a fast disk, and for a slow disk to sort */
    MAX_TRIES = 1000,
    NAP_NS = 1000000, /* between tries when the system asks to try again: 1 s in all */
    TRIAL_TOKENS = 1024,
    MOST_GROUPS = 32,
    MOST_ROW_BYTES = 1 << 30, /* of a direct read */
    CACHE_LINE = 64
};

typedef struct direct_file {
    int fd; /* -1: not open */
    uint32_t alignment;
    const tokmap_i_token_file *file;
} direct_file;

/* A row that is being read. */
typedef struct row_read {
    uint32_t file;    /* the file of its first token, index in `files` */
    uint64_t begin;   /* offset in the file at which the reads begin */
    uint32_t skip;    /* bytes from there to the row */
    uint32_t n_bytes; /* of the row, as far as it is in that file */
    uint32_t n_done;  /* bytes read so far, from `begin` */
    uint32_t n_tries;
    tokmap_i_token_range rest; /* the part of its first piece that is not in that file */
    const tokmap_sample *at;   /* its other pieces */
} row_read;

struct tokmap_i_ring {
    tokmap_i_fetch_options o;
    void *memory;
    uint8_t *places;
    uint64_t memory_bytes, slot_bytes;
    uint32_t group_rows; /* rows of a group in a slot */
    struct {
        uint64_t at, place_bytes; /* of its first place in a slot, and of each */
    } groups[MOST_GROUPS];
    /* Only for direct reads: */
    direct_file *files;   /* of all datasets, in order */
    uint32_t *first_file; /* of each dataset, and then the number of all */
    tokmap_i_uring uring;
    row_read *reads;   /* one for each place */
    uint32_t *waiting; /* places whose reads have not started, a ring buffer too */
    uint64_t n_places, first_waiting, n_waiting, n_in_flight;
    _Atomic uint64_t bytes_read;
};

void *tokmap_i_ring_place(const tokmap_i_ring *r, uint32_t slot, uint32_t row)
{
    const uint32_t group = row / r->group_rows;
    return r->places + slot * r->slot_bytes + r->groups[group].at +
           row % r->group_rows * r->groups[group].place_bytes;
}

/* Returns the place of that number: slot * max_rows + row. */
static uint8_t *place_of(const tokmap_i_ring *r, uint32_t place)
{
    return tokmap_i_ring_place(r, place / r->o.max_rows, place % r->o.max_rows);
}

uint64_t tokmap_i_ring_bytes(const tokmap_i_ring *r)
{
    const uint64_t read_bytes = sizeof *r->reads + sizeof *r->waiting;
    const uint64_t n_files = r->first_file ? r->first_file[r->o.n_datasets] : 0;
    return sizeof *r + r->memory_bytes + n_files * (sizeof *r->files + sizeof *r->first_file) +
           (r->reads ? r->n_places * read_bytes : 0);
}

uint64_t tokmap_i_ring_bytes_read(const tokmap_i_ring *r)
{
    return atomic_load_explicit(&r->bytes_read, memory_order_relaxed);
}

uint64_t tokmap_i_ring_n_started(const tokmap_i_ring *r)
{
    return r->n_waiting + r->n_in_flight;
}

/* ---- The queue ---- */

static void put_back(tokmap_i_ring *r, uint32_t place)
{
    r->waiting[(r->first_waiting + r->n_waiting++) % r->n_places] = place;
}

void tokmap_i_ring_start(tokmap_i_ring *r, uint32_t slot, uint32_t row,
                         const tokmap_i_fetch_row *tokens)
{
    const tokmap_dataset *ds = r->o.datasets[tokens->dataset];
    const uint32_t place = slot * r->o.max_rows + row;
    tokmap_i_token_range rest = {ds, tokens->at.first_token, tokens->at.pieces->n_tokens};
    const tokmap_i_token_piece p = tokmap_i_range_next_piece(&rest);
    const uint32_t file = r->first_file[tokens->dataset] + (uint32_t)(p.file - ds->files);
    const uint64_t begin = p.first_byte & ~(uint64_t)(r->files[file].alignment - 1);
    r->reads[place] = (row_read){.file = file,
                                 .begin = begin,
                                 .skip = (uint32_t)(p.first_byte - begin),
                                 .n_bytes = (uint32_t)p.n_bytes,
                                 .rest = rest,
                                 .at = &tokens->at};
    put_back(r, place);
}

/* ---- Results ---- */

/* Reads what is not in the file of the first token. */
static tokmap_status read_rest(const row_read *read, uint8_t *tokens, tokmap_error *err)
{
    const tokmap_dataset *ds = read->rest.dataset;
    tokmap_status status = tokmap_i_pages_read(read->rest, tokens + read->n_bytes, err);
    for (size_t k = 1; k < read->at->n_pieces && !status; k++) {
        const tokmap_piece *p = &read->at->pieces[k];
        status = tokmap_i_pages_read((tokmap_i_token_range){ds, p->first_token, p->n_tokens},
                                     tokens + (size_t)p->place * ds->header.token_bytes, err);
    }
    return status;
}

/* Handles the result of a read. Returns true if the row is done or has failed; false if it waits
 * for another read. */
static bool end_read(tokmap_i_ring *r, uint32_t place, int32_t result, tokmap_i_ring_result *out,
                     tokmap_error *err)
{
    row_read *read = &r->reads[place];
    const uint32_t alignment = r->files[read->file].alignment;
    const uint32_t before = read->n_done, wanted = read->skip + read->n_bytes;
    r->n_in_flight--;
    *out = (tokmap_i_ring_result){.slot = place / r->o.max_rows, .row = place % r->o.max_rows};
    const bool ask_again =
        result == -EAGAIN || result == -EINTR || result == -ENOMEM || result == -EBUSY;
    if (ask_again && ++read->n_tries < MAX_TRIES) {
        if (r->n_in_flight == 0) /* no other read will free resources */
            tokmap_i_sleep_ns(NAP_NS);
        put_back(r, place);
        return false;
    }
    if (result > 0) {
        atomic_fetch_add_explicit(&r->bytes_read, (uint64_t)result, memory_order_relaxed);
        read->n_done += (uint32_t)result;
    }
    if (result > 0 && read->n_done < wanted) {
        const uint32_t whole = read->n_done & ~(alignment - 1);
        if (whole > before) {
            read->n_done = whole;
            put_back(r, place);
            return false;
        }
    }
    uint8_t *tokens = place_of(r, place) + read->skip;
    out->tokens = tokens;
    /* The part that is not in the file of the first token is read through the page cache. Such rows
     * are rare, or the files are small. */
    const direct_file *file = &r->files[read->file];
    if (read->n_done >= wanted)
        out->status = read_rest(read, tokens, err);
    else
        out->status = tokmap_i_fail_read(
            (tokmap_i_named_file){file->fd, file->file->path}, result < 0 ? -result : 0,
            read->begin + (result < 0 ? MAX(read->n_done, read->skip) : read->n_done), err);
    return true;
}

/* Puts reads into the queue of the kernel and submits them. A read that the kernel does not accept
 * is handled like a failed read. */
static bool submit_reads(tokmap_i_ring *r, bool wait, tokmap_i_ring_result *out, tokmap_error *err)
{
    uint64_t id;
    while (r->n_waiting > 0 && r->n_in_flight < MAX_READS) {
        const uint32_t place = r->waiting[r->first_waiting++ % r->n_places];
        const row_read *read = &r->reads[place];
        const direct_file *file = &r->files[read->file];
        const uint64_t n_bytes = round_up((uint64_t)read->skip + read->n_bytes, file->alignment);
        const tokmap_i_uring_read put = {file->fd, (uint32_t)(n_bytes - read->n_done),
                                         read->begin + read->n_done,
                                         place_of(r, place) + read->n_done, place};
        tokmap_i_uring_put(&r->uring, &put);
        r->n_waiting--;
        r->n_in_flight++;
    }
    if (r->uring.n_put == 0 && !wait)
        return false;
    const int error = tokmap_i_uring_submit(&r->uring, wait);
    if (error && tokmap_i_uring_take_back(&r->uring, &id))
        return end_read(r, (uint32_t)id, -error, out, err);
    if (error) /* reads in flight will complete anyway */
        tokmap_i_sleep_ns(NAP_NS);
    return false;
}

bool tokmap_i_ring_take(tokmap_i_ring *r, bool wait, tokmap_i_ring_result *out, tokmap_error *err)
{
    uint64_t id;
    int32_t result;
    bool submitted = false;
    while (tokmap_i_ring_n_started(r) > 0) {
        if (tokmap_i_uring_take(&r->uring, &id, &result)) {
            if (end_read(r, (uint32_t)id, result, out, err))
                return true;
            continue;
        }
        if (submitted && !wait)
            return false;
        if (submit_reads(r, wait, out, err))
            return true;
        submitted = true;
    }
    return false;
}

void tokmap_i_ring_drain(tokmap_i_ring *r)
{
    uint64_t id;
    int32_t result;
    r->n_waiting = 0;
    while (tokmap_i_uring_take_back(&r->uring, &id))
        r->n_in_flight--;
    while (r->n_in_flight > 0) {
        if (tokmap_i_uring_take(&r->uring, &id, &result))
            r->n_in_flight--;
        else if (tokmap_i_uring_submit(&r->uring, true))
            tokmap_i_sleep_ns(NAP_NS);
    }
}

/* ---- Open and close ---- */

/* Opens the files. This comes first, because the size of a place depends on their alignment. */
static tokmap_status open_files(tokmap_i_ring *r, tokmap_error *err)
{
    r->first_file = calloc(r->o.n_datasets + 1ull, sizeof *r->first_file);
    if (!r->first_file)
        return FAIL_MEMORY(err);
    uint64_t n_segments = 0;
    for (uint32_t d = 0; d < r->o.n_datasets; d++) {
        const tokmap_dataset *ds = r->o.datasets[d];
        n_segments += ds->is_joined ? ds->n_files : 0;
        if (n_segments > TOKMAP_I_MOST_FDS)
            return FAIL(err, TOKMAP_ERR_UNSUPPORTED,
                        "%s: %" PRIu64
                        " token files in joined datasets; at most %d can be read past the "
                        "page cache",
                        ds->index_path, n_segments, TOKMAP_I_MOST_FDS);
        r->first_file[d + 1] = r->first_file[d] + (uint32_t)ds->n_files;
    }
    r->files = calloc(r->first_file[r->o.n_datasets] + 1ull, sizeof *r->files);
    if (!r->files)
        return FAIL_MEMORY(err);
    for (uint32_t i = 0; i < r->first_file[r->o.n_datasets]; i++)
        r->files[i] = (direct_file){.fd = -1, .alignment = 1};
    for (uint32_t d = 0; d < r->o.n_datasets; d++) {
        const tokmap_dataset *ds = r->o.datasets[d];
        for (uint32_t k = 0; k < ds->n_files && ds->header.n_tokens > 0; k++) {
            direct_file *out = &r->files[r->first_file[d] + k];
            tokmap_i_named_file opened;
            int error = 0;
            out->file = &ds->files[k];
            const tokmap_status status =
                tokmap_i_token_file_borrow(ds, &ds->files[k], &opened, err);
            if (!status) {
                error = tokmap_i_file_open_direct(opened.fd, &out->fd, &out->alignment);
                tokmap_i_token_file_give_back(&ds->files[k], &opened);
            }
            if (status || error)
                return FAIL_CAUSE(err, TOKMAP_ERR_UNSUPPORTED, error, 0,
                                  "%s: cannot be read past the page cache", ds->files[k].path);
        }
    }
    return TOKMAP_OK;
}

/* Returns the bytes of a token in the widest dataset of a group. */
static uint32_t widest_of(const tokmap_i_ring *r, uint32_t group, uint32_t n_groups)
{
    const uint32_t n = r->o.n_datasets / n_groups;
    uint32_t token_bytes = 0;
    for (uint32_t d = group * n; d < (group + 1) * n; d++)
        token_bytes = MAX(token_bytes, r->o.datasets[d]->header.token_bytes);
    return token_bytes;
}

static tokmap_status take_places(tokmap_i_ring *r, tokmap_error *err)
{
    const uint64_t n_places = (r->o.n_steps + 1ull) * r->o.max_rows;
    const uint32_t page = tokmap_i_page_bytes(), n_groups = MAX(r->o.n_groups, 1);
    uint32_t alignment = 1;
    for (uint32_t i = 0; r->files && i < r->first_file[r->o.n_datasets]; i++)
        alignment = MAX(alignment, r->files[i].alignment);
    r->n_places = n_places;
    r->group_rows = r->o.max_rows / n_groups;
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint64_t row_bytes = (uint64_t)r->o.max_tokens * widest_of(r, g, n_groups);
        if (r->files && row_bytes > MOST_ROW_BYTES)
            return FAIL(err, TOKMAP_ERR_UNSUPPORTED, "a row has %" PRIu64 " bytes", row_bytes);
        r->groups[g].at = r->slot_bytes;
        r->groups[g].place_bytes =
            r->files ? round_up(row_bytes + 2ull * alignment, MAX(page, alignment))
                     : round_up(row_bytes, CACHE_LINE);
        r->slot_bytes += r->group_rows * r->groups[g].place_bytes;
    }
    r->memory_bytes = r->slot_bytes * (r->o.n_steps + 1ull) + (alignment > page ? alignment : 0);
    if (r->memory_bytes > tokmap_i_memory_available())
        return FAIL(err, TOKMAP_ERR_MEMORY,
                    "out of memory: reading %" PRIu64 " rows ahead takes %" PRIu64
                    " bytes: lower look_ahead, or use POPULATE",
                    n_places, r->memory_bytes);
    if (tokmap_i_memory_take((size_t)r->memory_bytes, &r->memory))
        return FAIL_MEMORY(err);
    r->places = (uint8_t *)r->memory + (-(uintptr_t)r->memory & (alignment - 1));
    return TOKMAP_OK;
}

/* Tries one read of each file, because a file system may accept the flag and refuse the reads. */
static tokmap_status try_files(tokmap_i_ring *r, tokmap_error *err)
{
    bool any = false;
    uint64_t device = 0;
    for (uint32_t i = 0, d = 0; i < r->first_file[r->o.n_datasets]; i++) {
        tokmap_i_file_stat stat;
        while (r->first_file[d + 1] <= i)
            d++;
        if (r->files[i].fd < 0 || tokmap_i_file_stat_fd(r->files[i].fd, &stat) != 0 ||
            (any && stat.device == device))
            continue;
        any = true;
        device = stat.device;
        const tokmap_i_token_file *file = r->files[i].file;
        const uint64_t n_tokens = MIN(MIN(TRIAL_TOKENS, r->o.max_tokens), file->n_tokens);
        const tokmap_piece piece = {.first_token = file->first_token,
                                    .n_tokens = (uint32_t)n_tokens};
        const tokmap_i_fetch_row row = {.at = {.n_tokens = piece.n_tokens,
                                               .first_token = piece.first_token,
                                               .pieces = &piece,
                                               .n_pieces = 1},
                                        .dataset = d};
        tokmap_i_ring_result result = {0};
        tokmap_error cause;
        tokmap_i_ring_start(r, 0, 0, &row);
        if (tokmap_i_ring_take(r, true, &result, &cause) && result.status)
            return FAIL_CAUSE(err, TOKMAP_ERR_UNSUPPORTED, cause.sys_errno, cause.file_offset,
                              "%s: cannot be read by io_uring past the page cache", file->path);
    }
    atomic_store_explicit(&r->bytes_read, 0, memory_order_relaxed);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_ring_open(tokmap_i_ring **out, const tokmap_i_fetch_options *o,
                                 tokmap_error *err)
{
    *out = NULL;
    tokmap_i_ring *r = calloc(1, sizeof *r);
    if (!r)
        return FAIL_MEMORY(err);
    r->o = *o;
    r->uring.fd = -1;
    const bool direct = o->io == TOKMAP_IO_DIRECT;
    tokmap_status status = direct ? open_files(r, err) : TOKMAP_OK;
    if (!status)
        status = take_places(r, err);
    if (!status && direct) {
        r->reads = calloc(r->n_places, sizeof *r->reads);
        r->waiting = calloc(r->n_places, sizeof *r->waiting);
        const int error = r->reads && r->waiting ? tokmap_i_uring_open(&r->uring, MAX_READS) : 0;
        if (!r->reads || !r->waiting)
            status = FAIL_MEMORY(err);
        else if (error)
            status = FAIL_CAUSE(err, TOKMAP_ERR_UNSUPPORTED, error, 0, "io_uring cannot be used");
        else
            status = try_files(r, err);
    }
    if (status)
        tokmap_i_ring_close(r);
    else
        *out = r;
    return status;
}

void tokmap_i_ring_close(tokmap_i_ring *r)
{
    if (!r)
        return;
    tokmap_i_uring_close(&r->uring);
    for (uint32_t i = 0; r->files && i < r->first_file[r->o.n_datasets]; i++)
        tokmap_i_file_close(r->files[i].fd);
    tokmap_i_memory_give_back(r->memory, (size_t)r->memory_bytes);
    free(r->files);
    free(r->first_file);
    free(r->reads);
    free(r->waiting);
    free(r);
}

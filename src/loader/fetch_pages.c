#include "loader/fetch_pages.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/status.h"

enum {
    SCRATCH_BYTES = 16 << 10
};

typedef struct byte_range {
    uint64_t first, end; /* offsets in the token file */
} byte_range;

uint32_t tokmap_i_pages_split(tokmap_i_token_range r, tokmap_i_token_range ranges[2])
{
    const uint64_t n = MIN(r.n_tokens, r.dataset->header.n_tokens - r.first_token);
    ranges[0] = (tokmap_i_token_range){r.dataset, r.first_token, n};
    ranges[1] = (tokmap_i_token_range){r.dataset, 0, r.n_tokens - n};
    return ranges[1].n_tokens > 0 ? 2 : 1;
}

static tokmap_i_token_piece piece_of(tokmap_i_token_range r)
{
    return tokmap_i_first_piece(r.dataset, r.first_token, r.n_tokens);
}

/* The pages that hold any byte of the piece. The end may be after the end of the file, on its last
 * page. */
static byte_range pages_of(const tokmap_i_token_piece *p)
{
    const uint64_t page = tokmap_i_page_bytes();
    return (byte_range){p->first_byte / page * page, round_up(p->first_byte + p->n_bytes, page)};
}

/* Of a file that is mapped. */
static const uint8_t *map_of(const tokmap_i_token_file *file)
{
    return atomic_load_explicit(&file->map, memory_order_acquire);
}

static int fd_of(const tokmap_i_token_file *file)
{
    return atomic_load_explicit(&file->fd, memory_order_acquire);
}

void tokmap_i_pages_expect(const tokmap_dataset *ds, bool mapped, bool random)
{
    const tokmap_i_token_file *file = ds->files;
    if (mapped)
        tokmap_i_map_expect_random(map_of(file), tokmap_i_token_file_bytes(ds, file), random);
    else
        tokmap_i_file_expect_random(fd_of(file), random);
}

void tokmap_i_pages_will_need(tokmap_i_token_range r)
{
    const tokmap_i_token_piece p = piece_of(r);
    tokmap_i_file_will_need(fd_of(p.file), p.first_byte, p.n_bytes);
}

/* Reads the range and discards it. This brings the pages into the page cache, though not into the
 * map, and finds the byte that cannot be read. */
static tokmap_status read_through(const tokmap_dataset *ds, const tokmap_i_token_piece *whole,
                                  tokmap_error *err)
{
    uint8_t scratch[SCRATCH_BYTES];
    tokmap_i_token_piece p = *whole;
    tokmap_status status = TOKMAP_OK;
    for (uint64_t n_left = whole->n_bytes; !status && n_left > 0; n_left -= p.n_bytes) {
        p.n_bytes = MIN(n_left, sizeof scratch);
        status = tokmap_i_token_piece_read(ds, &p, scratch, err);
        p.first_byte += p.n_bytes;
    }
    return status;
}

/* If a file was shortened within a page, that page can still be mapped, with zeros after the
 * end. */
tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, uint64_t *file_bytes, tokmap_error *err)
{
    const tokmap_i_token_piece p = piece_of(r);
    tokmap_i_file_stat stat = {.n_bytes = *file_bytes};
    const int error = *file_bytes ? 0 : tokmap_i_file_stat_fd(fd_of(p.file), &stat);
    *file_bytes = stat.n_bytes;
    if (error)
        return FAIL_IO_AT(err, error, p.first_byte, "%s: cannot get its size", p.file->path);
    if (stat.n_bytes < p.first_byte + p.n_bytes)
        return FAIL_IO_AT(err, 0, stat.n_bytes,
                          "%s: the file ends at byte %" PRIu64 "; it was shortened while in use",
                          p.file->path, stat.n_bytes);
    return TOKMAP_OK;
}

/* Tries again after a populate that failed without saying why or where. TOKMAP_OK: the second try
 * worked, or the system cannot populate at all, and the range is in the page cache. */
static tokmap_status bring_again(tokmap_i_token_range r, tokmap_error *err)
{
    const tokmap_i_token_piece p = piece_of(r);
    const byte_range pages = pages_of(&p);
    uint64_t file_bytes = 0;
    tokmap_status status = tokmap_i_pages_check(r, &file_bytes, err);
    if (!status)
        status = read_through(r.dataset, &p, err);
    if (status)
        return status;
    const int error =
        tokmap_i_map_populate(map_of(p.file) + pages.first, (size_t)(pages.end - pages.first));
    if (error && !tokmap_i_map_never_populates(error))
        return FAIL_IO_AT(err, error, p.first_byte, "%s: cannot be mapped at byte %" PRIu64,
                          p.file->path, p.first_byte);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_pages_bring(tokmap_i_token_range r, const void **tokens, tokmap_error *err)
{
    const tokmap_i_token_piece p = piece_of(r);
    const byte_range pages = pages_of(&p);
    const uint8_t *map = map_of(p.file);
    tokmap_status status = TOKMAP_OK;
    if (tokmap_i_map_populate(map + pages.first, (size_t)(pages.end - pages.first)))
        status = bring_again(r, err);
    *tokens = status ? NULL : map + p.first_byte;
    return status;
}

void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped)
{
    const tokmap_i_token_piece p = piece_of(r);
    const byte_range pages = pages_of(&p);
    const size_t n_bytes = (size_t)(pages.end - pages.first);
    if (mapped) /* first, because mapped pages stay in the cache */
        tokmap_i_map_forget(map_of(p.file) + pages.first, n_bytes);
    tokmap_i_file_forget(fd_of(p.file), pages.first, n_bytes);
}

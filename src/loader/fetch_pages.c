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

static byte_range bytes_of(tokmap_i_token_range r)
{
    const tokmap_i_header *h = &r.dataset->header;
    const uint64_t first = h->token_offset + r.first_token * h->token_bytes;
    return (byte_range){first, first + r.n_tokens * h->token_bytes};
}

/* The pages that hold any byte of the range. The end may be after the end of the file, on its last
 * page. */
static byte_range pages_of(byte_range b)
{
    const uint64_t page = tokmap_i_page_bytes();
    return (byte_range){b.first / page * page, round_up(b.end, page)};
}

void tokmap_i_pages_expect(const tokmap_dataset *ds, bool mapped, bool random)
{
    if (mapped)
        tokmap_i_map_expect_random(ds->token_map, ds->token_file_bytes, random);
    else
        tokmap_i_file_expect_random(ds->token_fd, random);
}

void tokmap_i_pages_will_need(tokmap_i_token_range r)
{
    const byte_range b = bytes_of(r);
    tokmap_i_file_will_need(r.dataset->token_fd, b.first, b.end - b.first);
}

/* Reads the range and discards it. This brings the pages into the page cache, though not into the
 * map, and finds the byte that cannot be read. */
static tokmap_status read_through(const tokmap_dataset *ds, byte_range b, tokmap_error *err)
{
    uint8_t scratch[SCRATCH_BYTES];
    const tokmap_i_named_file file = {ds->token_fd, ds->token_path};
    tokmap_status status = TOKMAP_OK;
    while (!status && b.first < b.end) {
        const size_t n = (size_t)MIN(b.end - b.first, sizeof scratch);
        status = tokmap_i_read_exactly(file, b.first, n, scratch, err);
        b.first += n;
    }
    return status;
}

/* If a file was shortened within a page, that page can still be mapped, with zeros after the
 * end. */
tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, uint64_t *file_bytes, tokmap_error *err)
{
    const tokmap_dataset *ds = r.dataset;
    const byte_range b = bytes_of(r);
    tokmap_i_file_stat stat = {.n_bytes = *file_bytes};
    const int error = *file_bytes ? 0 : tokmap_i_file_stat_fd(ds->token_fd, &stat);
    *file_bytes = stat.n_bytes;
    if (error)
        return FAIL_IO_AT(err, error, b.first, "%s: cannot get its size", ds->token_path);
    if (stat.n_bytes < b.end)
        return FAIL_IO_AT(err, 0, stat.n_bytes,
                          "%s: the file ends at byte %" PRIu64 "; it was shortened while in use",
                          ds->token_path, stat.n_bytes);
    return TOKMAP_OK;
}

/* Tries again after a populate that failed without saying why or where. TOKMAP_OK: the second try
 * worked, or the system cannot populate at all, and the range is in the page cache. */
static tokmap_status bring_again(tokmap_i_token_range r, tokmap_error *err)
{
    const tokmap_dataset *ds = r.dataset;
    const byte_range b = bytes_of(r), pages = pages_of(b);
    uint64_t file_bytes = 0;
    tokmap_status status = tokmap_i_pages_check(r, &file_bytes, err);
    if (!status)
        status = read_through(ds, b, err);
    if (status)
        return status;
    const int error =
        tokmap_i_map_populate(ds->token_map + pages.first, (size_t)(pages.end - pages.first));
    if (error && !tokmap_i_map_never_populates(error))
        return FAIL_IO_AT(err, error, b.first, "%s: cannot be mapped at byte %" PRIu64,
                          ds->token_path, b.first);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_pages_bring(tokmap_i_token_range r, const void **tokens, tokmap_error *err)
{
    const tokmap_dataset *ds = r.dataset;
    const byte_range b = bytes_of(r), pages = pages_of(b);
    tokmap_status status = TOKMAP_OK;
    if (tokmap_i_map_populate(ds->token_map + pages.first, (size_t)(pages.end - pages.first)))
        status = bring_again(r, err);
    *tokens = status ? NULL : ds->token_map + b.first;
    return status;
}

void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped)
{
    const tokmap_dataset *ds = r.dataset;
    const byte_range pages = pages_of(bytes_of(r));
    const size_t n_bytes = (size_t)(pages.end - pages.first);
    if (mapped) /* first, because mapped pages stay in the cache */
        tokmap_i_map_forget(ds->token_map + pages.first, n_bytes);
    tokmap_i_file_forget(ds->token_fd, pages.first, n_bytes);
}

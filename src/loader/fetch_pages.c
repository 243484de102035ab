/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/fetch_pages.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/error.h"

enum {
    SCRATCH_BYTES = 16 << 10
};

tokmap_i_token_piece tokmap_i_range_next_piece(tokmap_i_token_range *r)
{
    const tokmap_i_token_piece p = tokmap_i_first_piece(r->dataset, r->first_token, r->n_tokens);
    r->n_tokens -= p.n_tokens;
    r->first_token += p.n_tokens;
    return p;
}

typedef struct byte_range {
    uint64_t first, n_bytes;
} byte_range;

/* Returns the pages that hold any byte of the piece. The end may be after the end of the file, on
 * its last page. */
static byte_range pages_of(const tokmap_i_token_piece *p)
{
    const uint64_t page = tokmap_i_page_bytes(), first = p->first_byte / page * page;
    return (byte_range){first, round_up(p->first_byte + p->n_bytes, page) - first};
}

void tokmap_i_pages_will_need(tokmap_i_token_range r)
{
    tokmap_i_named_file file;
    while (r.n_tokens > 0) {
        const tokmap_i_token_piece p = tokmap_i_range_next_piece(&r);
        if (tokmap_i_token_file_borrow(r.dataset, p.file, &file, NULL))
            continue;
        tokmap_i_file_will_need(file.fd, p.first_byte, p.n_bytes);
        tokmap_i_token_file_give_back(p.file, &file);
    }
}

tokmap_status tokmap_i_pages_read(tokmap_i_token_range r, void *to, tokmap_error *err)
{
    uint8_t *at = to;
    tokmap_status status = TOKMAP_OK;
    while (r.n_tokens > 0 && !status) {
        const tokmap_i_token_piece p = tokmap_i_range_next_piece(&r);
        status = tokmap_i_token_piece_read(r.dataset, &p, at, err);
        at += p.n_bytes;
    }
    return status;
}

/* ---- The map ---- */

/* If a file was shortened within a page, that page can still be mapped, with zeros after the end,
 * so only the size shows it. */
static tokmap_status get_size(const tokmap_dataset *ds, const tokmap_i_token_piece *p,
                              bool asks_server, uint64_t *n_bytes, tokmap_error *err)
{
    tokmap_i_named_file file;
    tokmap_i_file_stat stat = {0};
    const tokmap_status status = tokmap_i_token_file_borrow(ds, p->file, &file, err);
    if (status)
        return status;
    const int error = asks_server ? tokmap_i_file_stat_fd(file.fd, &stat)
                                  : tokmap_i_file_known_size(file.fd, &stat.n_bytes);
    tokmap_i_token_file_give_back(p->file, &file);
    *n_bytes = stat.n_bytes;
    return error ? FAIL_IO_AT(err, error, p->first_byte, "%s: cannot get its size", p->file->path)
                 : TOKMAP_OK;
}

tokmap_status tokmap_i_pages_check(tokmap_i_token_range r, bool asks_server,
                                   tokmap_i_known_sizes *known, tokmap_error *err)
{
    const tokmap_i_token_piece p = tokmap_i_range_next_piece(&r);
    tokmap_i_known_size *k = tokmap_i_known_size_of(known, p.file);
    if (k->file != p.file) {
        uint64_t n_bytes = UINT64_MAX;
        if (asks_server || r.dataset->n_files <= TOKMAP_I_MOST_FDS) {
            const tokmap_status status = get_size(r.dataset, &p, asks_server, &n_bytes, err);
            if (status)
                return status;
        }
        *k = (tokmap_i_known_size){p.file, n_bytes};
    }
    if (k->n_bytes < p.first_byte + p.n_bytes)
        return FAIL_IO_AT(err, 0, k->n_bytes,
                          "%s: the file ends at byte %" PRIu64 "; it was shortened while in use",
                          p.file->path, k->n_bytes);
    return TOKMAP_OK;
}

/* Tries again after a populate that failed without saying why or where. The piece is read and
 * discarded: this brings the pages into the page cache, though not into the map, and finds the byte
 * that cannot be read. TOKMAP_OK: the second try worked, or the system cannot populate at all, and
 * the piece is in the page cache. */
static tokmap_status fault_in_again(const tokmap_dataset *ds, const tokmap_i_token_piece *p,
                                    const uint8_t *map, tokmap_error *err)
{
    uint8_t scratch[SCRATCH_BYTES];
    const uint64_t end = p->first_byte + p->n_bytes;
    const byte_range pages = pages_of(p);
    tokmap_i_token_piece part = *p;
    tokmap_i_known_sizes known = {0};
    tokmap_status status = tokmap_i_pages_check(
        (tokmap_i_token_range){ds, p->first_token, p->n_tokens}, true, &known, err);
    for (; part.first_byte < end && !status; part.first_byte += part.n_bytes) {
        part.n_bytes = MIN(end - part.first_byte, sizeof scratch);
        status = tokmap_i_token_piece_read(ds, &part, scratch, err);
    }
    if (status)
        return status;
    const int error = tokmap_i_map_populate(map + pages.first, (size_t)pages.n_bytes);
    if (error && !tokmap_i_map_never_populates(error))
        return FAIL_IO_AT(err, error, p->first_byte, "%s: cannot be mapped at byte %" PRIu64,
                          p->file->path, p->first_byte);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_pages_fault_in(tokmap_i_token_range r, const void **tokens,
                                      tokmap_error *err)
{
    const tokmap_dataset *ds = r.dataset;
    const tokmap_i_token_piece p = tokmap_i_range_next_piece(&r);
    const uint8_t *map = NULL;
    *tokens = NULL;
    tokmap_status status =
        r.n_tokens > 0 ? TOKMAP_IN_PIECES : tokmap_i_token_file_map(ds, p.file, &map, err);
    if (status)
        return status == TOKMAP_IN_PIECES ? TOKMAP_OK : status;
    const byte_range pages = pages_of(&p);
    if (tokmap_i_map_populate(map + pages.first, (size_t)pages.n_bytes))
        status = fault_in_again(ds, &p, map, err);
    *tokens = status ? NULL : map + p.first_byte;
    return status;
}

const void *tokmap_i_pages_in_map(tokmap_i_token_range r)
{
    const tokmap_i_token_piece p = tokmap_i_range_next_piece(&r);
    const uint8_t *map = r.n_tokens > 0 ? NULL : atomic_load(&p.file->map);
    return map ? map + p.first_byte : NULL;
}

void tokmap_i_pages_forget(tokmap_i_token_range r, bool mapped)
{
    tokmap_i_named_file file;
    while (r.n_tokens > 0) {
        const tokmap_i_token_piece p = tokmap_i_range_next_piece(&r);
        const byte_range pages = pages_of(&p);
        const uint8_t *map = mapped ? atomic_load(&p.file->map) : NULL;
        if (map) /* first, because mapped pages stay in the cache */
            tokmap_i_map_forget(map + pages.first, (size_t)pages.n_bytes);
        if (tokmap_i_token_file_borrow(r.dataset, p.file, &file, NULL))
            continue;
        tokmap_i_file_forget(file.fd, pages.first, pages.n_bytes);
        tokmap_i_token_file_give_back(p.file, &file);
    }
}

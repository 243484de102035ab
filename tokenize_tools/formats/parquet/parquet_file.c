/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/parquet_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "system/files.h"
#include "system/platform.h"
#include "base/array.h"
#include "base/le.h"

#define SCAN_BYTES ((size_t)8 * 1024)
#define FIRST_OF_FOOTER 0x15 /* the field of the version */

/* ---- The file ---- */

/* The bytes must be there: the size of the file was checked. */
static bool read_at(const parquet_file *f, uint64_t offset, uint8_t *to, size_t n_bytes,
                    failure *err)
{
    size_t n_read;
    const int sys_errno = tokmap_i_file_read(f->fd, to, n_bytes, offset, &n_read);
    if (sys_errno)
        return fail_system(err, sys_errno, "byte %" PRIu64 ": cannot read", offset + n_read);
    return n_read == n_bytes || fail_changed(err, "has changed: it has become shorter");
}

/* "PAR1" twice, after the size of a footer that begins as footers do. */
static bool is_seam(const parquet_file *f, const uint8_t *at, uint64_t offset)
{
    uint8_t first = 0;
    size_t n_read;
    const uint64_t footer_bytes = le_get32(at - 4);
    if (memcmp(at, "PAR1PAR1", 8) != 0 || footer_bytes > offset - 4)
        return false;
    return tokmap_i_file_read(f->fd, &first, 1, offset - 4 - footer_bytes, &n_read) == 0 &&
           n_read == 1 && first == FIRST_OF_FOOTER;
}

#define OVERLAP 11 /* the size of a footer, and "PAR1" twice, less one byte */

/* If files were joined by cat, the offsets in the last footer are those in the last file, and mean
 * pages of the first one. Indexes may stand between the pages and the footer. */
static bool check_joined(const parquet_file *f, failure *err)
{
    uint8_t bytes[SCAN_BYTES + OVERLAP];
    uint64_t at = parquet_footer_pages_end(&f->footer);
    while (at < f->data_end) {
        const uint64_t n_left = f->data_end - at;
        const size_t n = n_left < sizeof bytes ? (size_t)n_left : sizeof bytes;
        if (!read_at(f, at, bytes, n, err))
            return false;
        for (size_t i = 4; i + 8 <= n; i++) {
            if (bytes[i] == 'P' && is_seam(f, bytes + i, at + i))
                return fail(err,
                            "byte %" PRIu64 ": another Parquet file begins here; files joined by "
                            "cat cannot be read, so pack each of them",
                            at + i + 4);
        }
        at += n > SCAN_BYTES ? SCAN_BYTES : n;
    }
    return true;
}

/* The footer and its size count as one piece for the checksum. */
static bool read_footer(parquet_file *f, failure *err)
{
    uint8_t head[PARQUET_HEAD_BYTES] = {0}, tail[PARQUET_TAIL_BYTES] = {0};
    uint32_t footer_bytes;
    if (f->n_bytes >= sizeof head && !read_at(f, 0, head, sizeof head, err))
        return false;
    if (f->n_bytes >= sizeof head + sizeof tail &&
        !read_at(f, f->n_bytes - sizeof tail, tail, sizeof tail, err))
        return false;
    if (!parquet_find_footer(head, tail, f->n_bytes, &footer_bytes, err))
        return false;
    f->data_end = f->n_bytes - sizeof tail - footer_bytes;
    f->footer_bytes = malloc(footer_bytes + sizeof tail);
    if (!f->footer_bytes)
        return fail_system(err, ENOMEM, "its footer");
    if (!read_at(f, f->data_end, f->footer_bytes, footer_bytes + sizeof tail, err))
        return false;
    f->footer_checksum =
        XXH3_64bits_withSeed(f->footer_bytes, footer_bytes + sizeof tail, f->data_end);
    if (!parquet_footer_read(&f->footer, f->footer_bytes, footer_bytes, f->data_end, err))
        return fail_at(err, "%.200s: byte %" PRIu64 ": ", f->name, f->data_end);
    return check_joined(f, err);
}

bool parquet_file_open(parquet_file *f, const char *name, int fd, failure *err)
{
    file_facts facts;
    *f = (parquet_file){.name = name, .fd = fd};
    if (strcmp(name, "-") == 0)
        return fail(err, "Parquet cannot be read from stdin: copy it to a file");
    const int sys_errno = file_describe_open(fd, &facts);
    if (sys_errno)
        return fail_system(err, sys_errno, "cannot read");
    f->version = input_version_of(&facts);
    f->n_bytes = facts.n_bytes;
    if (!f->version.known)
        return fail(err, "Parquet can be read only from a regular file: copy it to one");
    return read_footer(f, err);
}

void parquet_file_close(parquet_file *f)
{
    parquet_footer_free(&f->footer);
    free(f->footer_bytes);
}

/* ---- Places ---- */

bool parquet_page_is_dictionary(const parquet_page_place *at)
{
    return at->header.type == PARQUET_PAGE_DICTIONARY;
}

uint64_t parquet_page_end(const parquet_page_place *at)
{
    return at->offset + at->header.header_bytes + at->header.stored_bytes;
}

uint64_t parquet_page_use(const parquet_page_place *at)
{
    const parquet_page_header *h = &at->header;
    uint64_t use = (uint64_t)h->header_bytes + h->stored_bytes + h->plain_bytes;
    if (parquet_page_is_dictionary(at))
        use += (uint64_t)h->n_values * sizeof(uint32_t);
    else if (h->encoding == PARQUET_ENCODING_DELTA_BYTES)
        use += h->plain_bytes; /* the current value may be as long as the page */
    return use;
}

static void describe_page(const parquet_page_place *at, char *text, size_t n_bytes)
{
    if (parquet_page_is_dictionary(at))
        snprintf(text, n_bytes, "row group %zu, dictionary page, byte %" PRIu64, at->group,
                 at->offset);
    else
        snprintf(text, n_bytes, "row group %zu, page %" PRIu32 ", byte %" PRIu64, at->group,
                 at->page, at->offset);
}

bool parquet_page_fail(const parquet_page_place *at, const char *why, failure *err)
{
    char place[100], column[120];
    describe_page(at, place, sizeof place);
    parquet_path(&at->file->footer, at->column, column, sizeof column);
    if (why == parquet_no_memory)
        return fail_system(err, ENOMEM, "%s: column %s", place, column);
    return fail(err, "%s: column %s: %s", place, column, why);
}

void parquet_row_describe(const parquet_page_place *at, uint64_t row, char *text, size_t n_bytes)
{
    char place[100];
    describe_page(at, place, sizeof place);
    snprintf(text, n_bytes, "%.150s: row %" PRIu64 " (%s)", at->file->name, row, place);
}

/* ---- Scanning ---- */

void parquet_scan_begin(parquet_scan *s, const parquet_file *f, const parquet_element *column,
                        parquet_rows rows)
{
    *s = (parquet_scan){.next = {.file = f, .column = column}, .rows = rows};
}

void parquet_scan_free(parquet_scan *s)
{
    free(s->bytes);
}

/* Reads the file from the next header on. */
static bool fill_scan(parquet_scan *s, size_t n_bytes, failure *err)
{
    const parquet_file *f = s->next.file;
    if (!array_reserve(&s->bytes, &s->capacity, n_bytes, 1))
        return fail_system(err, ENOMEM, "the header of a page");
    if (n_bytes > f->data_end - s->offset)
        n_bytes = (size_t)(f->data_end - s->offset);
    s->begin = s->offset;
    s->n_bytes = n_bytes;
    return read_at(f, s->offset, s->bytes, n_bytes, err);
}

/* Most headers are short, but one may have the smallest and largest value of its page. */
static bool read_header(parquet_scan *s, failure *err)
{
    parquet_page_header *h = &s->next.header;
    const uint64_t data_end = s->next.file->data_end;
    /* If pages are large, not much more than the header, which is usually as long as the one
     * before. */
    const size_t room = (size_t)h->header_bytes * 2 + 256;
    size_t wanted = h->stored_bytes > SCAN_BYTES && room < SCAN_BYTES ? room : SCAN_BYTES;
    *h = (parquet_page_header){.type = PARQUET_PAGE_DATA};
    if (s->offset >= s->end)
        return parquet_page_fail(&s->next, "there are fewer pages than rows", err);
    const bool inside = s->offset >= s->begin && s->offset < s->begin + s->n_bytes;
    if (!inside && !fill_scan(s, wanted, err))
        return false;
    for (;;) {
        const size_t from = (size_t)(s->offset - s->begin);
        bool is_short;
        const char *why =
            parquet_page_header_read(h, s->bytes + from, s->n_bytes - from, &is_short);
        if (!why)
            return true;
        wanted *= from == 0 ? 4 : 1;
        if (!is_short || s->begin + s->n_bytes == data_end || wanted > PARQUET_MAX_HEADER_BYTES)
            return parquet_page_fail(&s->next, why, err);
        if (!fill_scan(s, wanted, err))
            return false;
    }
}

parquet_rows parquet_values_of_group(const parquet_footer *f, const parquet_element *column,
                                     size_t group)
{
    const parquet_row_group *g = &f->groups[group];
    const parquet_chunk *c = parquet_chunk_of(f, group, column);
    if (column->max_repetition == 0)
        return (parquet_rows){g->first_row, g->first_row + g->n_rows};
    return (parquet_rows){c->first_value, c->first_value + c->n_values};
}

static bool begin_group(parquet_scan *s, failure *err)
{
    parquet_page_place *next = &s->next;
    const parquet_footer *footer = &next->file->footer;
    const parquet_chunk *chunk = parquet_chunk_of(footer, next->group, next->column);
    const parquet_rows values = parquet_values_of_group(footer, next->column, next->group);
    const char *refused = parquet_codec_refused(chunk->codec);
    char text[240];
    *next = (parquet_page_place){.file = next->file,
                                 .column = next->column,
                                 .group = next->group,
                                 .offset = chunk->offset,
                                 .first_row = values.begin};
    s->offset = chunk->offset;
    const uint64_t most = next->file->data_end - chunk->offset;
    s->end = chunk->offset + (chunk->stored_bytes < most ? chunk->stored_bytes : most);
    s->rows_left = values.end - values.begin;
    if (chunk->encrypted)
        return parquet_page_fail(next, "encrypted columns cannot be read", err);
    if (chunk->external)
        return parquet_page_fail(next, "its pages are in another file, which cannot be read", err);
    if (chunk->n_values != s->rows_left)
        return parquet_page_fail(next, "it has not as many values as there are rows", err);
    snprintf(text, sizeof text, "%s cannot be read: %s", parquet_codec_name(chunk->codec),
             refused ? refused : "");
    return !refused || parquet_page_fail(next, text, err);
}

static const char *check_page(const parquet_scan *s)
{
    const parquet_page_header *h = &s->next.header;
    if (parquet_page_end(&s->next) > s->end)
        return "it goes beyond the end of its column chunk";
    if (h->type == PARQUET_PAGE_DICTIONARY && (s->next.page > 0 || s->next.dictionary_use > 0))
        return "it is a second dictionary page, or not the first page";
    if (h->type != PARQUET_PAGE_DICTIONARY && h->n_values > s->rows_left)
        return "it has more values than there are rows";
    return NULL;
}

/* Moves behind the page in s->next. */
static void pass_page(parquet_scan *s)
{
    parquet_page_place *next = &s->next;
    s->offset = parquet_page_end(next);
    if (next->header.type == PARQUET_PAGE_DICTIONARY) {
        next->dictionary_use = parquet_page_use(next);
        /* Old versions of parquet-mr do not count this header in the size of the chunk. */
        const uint64_t more = next->header.header_bytes, most = next->file->data_end - s->end;
        s->end += more < most ? more : most;
    }
    if (next->header.type != PARQUET_PAGE_DATA && next->header.type != PARQUET_PAGE_DATA_V2)
        return;
    next->end_before = s->offset;
    next->first_row += next->header.n_values;
    next->page++;
    s->rows_left -= next->header.n_values;
    if (s->rows_left == 0)
        next->group++;
}

static bool is_skipped(const parquet_scan *s)
{
    const parquet_page_header *h = &s->next.header;
    return h->type == PARQUET_PAGE_INDEX ||
           (h->type != PARQUET_PAGE_DICTIONARY &&
            (h->n_values == 0 || s->next.first_row + h->n_values <= s->rows.begin));
}

/* Goes to the next row group that has rows that are wanted. */
static bool find_group(parquet_scan *s)
{
    const parquet_footer *footer = &s->next.file->footer;
    for (; s->next.group < footer->n_groups; s->next.group++) {
        const parquet_rows values = parquet_values_of_group(footer, s->next.column, s->next.group);
        if (values.begin >= s->rows.end)
            return false;
        if (values.end > values.begin && values.end > s->rows.begin)
            return true;
    }
    return false;
}

int parquet_scan_next(parquet_scan *s, parquet_page_place *place, failure *err)
{
    for (;;) {
        const bool begins = s->rows_left == 0;
        if (begins ? !find_group(s) : s->next.first_row >= s->rows.end)
            return 0;
        if (begins && !begin_group(s, err))
            return -1;
        s->next.offset = s->offset;
        if (!read_header(s, err))
            return -1;
        const char *wrong = check_page(s);
        if (wrong && !parquet_page_fail(&s->next, wrong, err))
            return -1;
        *place = s->next;
        const bool skipped = is_skipped(s);
        pass_page(s);
        if (!skipped)
            return 1;
    }
}

/* Leaves the row groups whose column chunk ends before the byte. */
static void pass_groups(parquet_scan *s, uint64_t offset)
{
    if (s->rows_left > 0 && s->end <= offset) {
        s->rows_left = 0;
        s->next.group++;
    }
    while (s->rows_left == 0 && find_group(s)) {
        const parquet_chunk *chunk =
            parquet_chunk_of(&s->next.file->footer, s->next.group, s->next.column);
        if (chunk->offset + chunk->stored_bytes > offset)
            return;
        s->next.group++;
    }
}

int parquet_scan_find(parquet_scan *s, uint64_t offset, parquet_page_place *place, failure *err)
{
    for (;;) {
        pass_groups(s, offset);
        const int result = parquet_scan_next(s, place, err);
        if (result <= 0 || (!parquet_page_is_dictionary(place) && place->offset >= offset))
            return result;
    }
}

/* ---- Reading ---- */

void parquet_page_reader_free(parquet_page_reader *r)
{
    parquet_codec_free(&r->codec);
    free(r->stored);
}

void parquet_page_free(parquet_page *page)
{
    free(page->memory);
    *page = (parquet_page){0};
}

static bool check_crc(const parquet_page_place *at, const uint8_t *stored, failure *err)
{
    char why[100];
    if (!at->header.has_crc)
        return true;
    const uint32_t crc = parquet_crc32(stored, at->header.stored_bytes);
    snprintf(why, sizeof why, "damaged page: its CRC-32 is %08" PRIx32 ", and should be %08" PRIx32,
             crc, at->header.crc);
    return crc == at->header.crc || parquet_page_fail(at, why, err);
}

static bool decompress(parquet_page *page, const parquet_page_place *at, parquet_page_reader *r,
                       const uint8_t *stored, failure *err)
{
    const parquet_page_header *h = &at->header;
    const size_t levels = h->repetition_bytes + h->definition_bytes;
    const uint8_t codec = parquet_chunk_of(&at->file->footer, at->group, at->column)->codec;
    const decoder_buffers b = {stored + levels, h->stored_bytes - levels, page->memory + levels,
                               h->plain_bytes - levels};
    char text[160];
    memcpy(page->memory, stored, levels);
    page->bytes = page->memory;
    const char *why = parquet_decompress(&r->codec, codec, b);
    snprintf(text, sizeof text, "damaged page: %s", why ? why : "");
    return !why || parquet_page_fail(at, why == parquet_no_memory ? why : text, err);
}

bool parquet_page_read(parquet_page *page, const parquet_page_place *at, parquet_page_reader *r,
                       failure *err)
{
    const parquet_page_header *h = &at->header;
    const size_t n_bytes = (size_t)h->header_bytes + h->stored_bytes;
    const bool plain =
        parquet_chunk_of(&at->file->footer, at->group, at->column)->codec == 0 || !h->is_compressed;
    if (!plain && n_bytes > r->capacity) {
        free(r->stored);
        r->stored = malloc(n_bytes);
        r->capacity = r->stored ? n_bytes : 0;
    }
    /* What is not compressed becomes the page's own. */
    page->memory = malloc(plain ? n_bytes : (size_t)h->plain_bytes + 1);
    uint8_t *stored = plain ? page->memory : r->stored;
    if (!stored || !page->memory)
        return fail_system(err, ENOMEM, "a page of %zu bytes", n_bytes);
    if (!read_at(at->file, at->offset, stored, n_bytes, err))
        return false;
    page->checksum = XXH3_64bits_withSeed(stored, n_bytes, at->offset);
    stored += h->header_bytes;
    if (!check_crc(at, stored, err))
        return false;
    page->bytes = stored;
    if (plain)
        return h->stored_bytes == h->plain_bytes ||
               parquet_page_fail(at, "its two sizes differ, but it is not compressed", err);
    return decompress(page, at, r, stored, err);
}

bool parquet_page_checksum(const parquet_page_place *at, uint64_t *checksum, failure *err)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return fail_system(err, ENOMEM, "the checksum of a page");
    XXH3_64bits_reset_withSeed(state, at->offset);
    const int sys_errno =
        file_hash(at->file->fd, at->offset, parquet_page_end(at) - at->offset, state);
    *checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return !sys_errno || fail_system(err, sys_errno, "byte %" PRIu64 ": cannot read", at->offset);
}

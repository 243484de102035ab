/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/le.h"
#include "base/options.h"
#include "base/real.h"
#include "system/platform_thread.h"

enum {
    HEAD_BYTES = 64 << 10,         /* read first, of the index and of other objects */
    SECTION_BYTES = 64 << 20,      /* the most that open reads of a section */
    SECTION_HEAD_BYTES = 64 << 10, /* what open reads of a larger one */
    RANGE_BYTES = 8 << 20          /* the most that is read as one range */
};

static const uint64_t MOST_BYTES = UINT64_C(1) << 30; /* of an object in memory */

_Static_assert(TOKMAP_I_HEADER_BYTES + TOKMAP_I_MAX_SECTIONS * TOKMAP_I_SECTION_ENTRY_BYTES <=
                   HEAD_BYTES,
               "the head has no section table");
_Static_assert(TOKMAP_I_META_DIRECTORY_BYTES + 0 <= SECTION_HEAD_BYTES + 0,
               "the head has no directory");

struct tokmap_i_store {
    tokmap_byte_source source;
    uint64_t n_files;
    _Atomic(char *) *versions; /* of each token file; NULL: not read yet */
    /* The index: */
    uint8_t *index; /* its file in memory, to be written */
    uint64_t index_bytes;
    char version[TOKMAP_VERSION_BYTES];
    uint64_t loaded[TOKMAP_I_MAX_SECTIONS]; /* bytes of each section that were read at open */
    atomic_bool is_whole;                   /* all sections are in memory, except checksums */
    tokmap_i_mutex mutex;                   /* of the call that reads the others */
};

tokmap_status tokmap_i_fail_in_store(const char *path, tokmap_error *err)
{
    return FAIL(err, TOKMAP_ERR_UNSUPPORTED,
                "%s: is in a store, and this needs the files of the dataset on a disk: copy them, "
                "the index last",
                path);
}

/* ---- Open and close ---- */

tokmap_status tokmap_i_store_expect_files(tokmap_i_store *s, uint64_t n_files, tokmap_error *err)
{
    s->versions = calloc((size_t)n_files + 1, sizeof *s->versions);
    s->n_files = s->versions ? n_files : 0;
    return s->versions ? TOKMAP_OK : FAIL_MEMORY(err);
}

tokmap_status tokmap_i_store_open(tokmap_i_store **out, const tokmap_byte_source *source,
                                  tokmap_error *err)
{
    static const tokmap_i_struct_kind kind = {STRUCT_KIND(tokmap_byte_source, index_path)};
    tokmap_i_store *s = *out = calloc(1, sizeof *s);
    if (!s)
        return FAIL_MEMORY(err);
    tokmap_i_mutex_init(&s->mutex);
    const tokmap_status status = tokmap_i_take_options(&s->source, source, &kind, err);
    if (status || s->source.read)
        return status;
    return FAIL(err, TOKMAP_ERR_ARGUMENT, "tokmap_byte_source: read is NULL");
}

tokmap_status tokmap_i_store_open_again(tokmap_i_store **out, const tokmap_i_store *of,
                                        uint64_t n_files, tokmap_error *err)
{
    const tokmap_status status = tokmap_i_store_open(out, &of->source, err);
    return status ? status : tokmap_i_store_expect_files(*out, n_files, err);
}

void tokmap_i_store_close(tokmap_i_store *s)
{
    if (!s)
        return;
    for (uint64_t i = 0; i < s->n_files; i++)
        free(atomic_load(&s->versions[i]));
    free((void *)s->versions);
    tokmap_i_unmap(s->index, s->index_bytes);
    tokmap_i_mutex_free(&s->mutex);
    free(s);
}

bool tokmap_i_store_same(const tokmap_i_store *a, const tokmap_i_store *b)
{
    return a && b && a->source.read == b->source.read && a->source.context == b->source.context;
}

void tokmap_i_store_cancel(const tokmap_i_store *s, const tokmap_byte_read *reads)
{
    if (s->source.cancel)
        s->source.cancel(s->source.context, reads);
}

/* ---- Reads ---- */

/* Calls the source, and checks what it says of its answers: all bytes are there, or the object
 * ends. */
static tokmap_status call_source(const tokmap_i_store *s, tokmap_byte_read *reads, size_t n,
                                 tokmap_error *err)
{
    tokmap_error last = {0};
    const tokmap_status status =
        n > 0 ? s->source.read(s->source.context, reads, n, &last) : TOKMAP_OK;
    if (status > 0) /* no error has such a number, and the caller would take it for the end */
        return FAIL(err, TOKMAP_ERR_ARGUMENT, "%s: its store says %d, which is no error",
                    reads->name, (int)status);
    if (status) {
        FAIL_AT(err, status, last.file_offset, "%.*s", (int)sizeof last.text - 1,
                *last.text ? last.text : "a read of a store failed, and it does not say why");
        if (err)
            err->sys_errno = last.sys_errno;
        return status;
    }
    for (size_t i = 0; i < n; i++)
        if (reads[i].n_read > reads[i].n_bytes ||
            !memchr(reads[i].version, 0, TOKMAP_VERSION_BYTES))
            return FAIL(err, TOKMAP_ERR_ARGUMENT,
                        "%s: its store says that it read more than was asked for, or gives a "
                        "version of more than %d bytes",
                        reads[i].name, TOKMAP_VERSION_BYTES - 1);
    return TOKMAP_OK;
}

/* Fails unless the range was read to its end. */
static tokmap_status check_end(const tokmap_byte_read *r, tokmap_error *err)
{
    if (r->n_read == r->n_bytes)
        return TOKMAP_OK;
    const uint64_t end = r->offset + r->n_read;
    return FAIL_IO_AT(err, 0, end,
                      "%s: the object ends at byte %" PRIu64
                      "; it was shortened or changed while in use",
                      r->name, end);
}

/* Reads an object from the end of its head to `end`, in parts. */
static tokmap_status read_parts(const tokmap_i_store *s, const tokmap_byte_read *head, uint64_t end,
                                uint8_t *to, tokmap_error *err)
{
    const size_t n = (size_t)div_up(end - head->n_read, RANGE_BYTES);
    tokmap_byte_read *reads = calloc(n + 1, sizeof *reads);
    char(*versions)[TOKMAP_VERSION_BYTES] = malloc((n + 1) * sizeof *versions);
    tokmap_status status = reads && versions ? TOKMAP_OK : FAIL_MEMORY(err);
    for (size_t i = 0; i < n && !status; i++) {
        const uint64_t begin = head->n_read + (uint64_t)i * RANGE_BYTES;
        strcpy(versions[i], head->version);
        reads[i] = (tokmap_byte_read){.name = head->name,
                                      .version = versions[i],
                                      .offset = begin,
                                      .n_bytes = (size_t)MIN(end - begin, RANGE_BYTES),
                                      .dst = to + begin};
    }
    if (!status)
        status = call_source(s, reads, n, err);
    for (size_t i = 0; i < n && !status; i++)
        status = check_end(&reads[i], err);
    free(versions);
    free(reads);
    return status;
}

/* Keeps the version of a token file, if it is the first one. */
static tokmap_status keep_version(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                  const char *version, tokmap_error *err)
{
    _Atomic(char *) *kept = &ds->store->versions[file - ds->files];
    char *known = NULL, *mine = strdup(version);
    if (!mine)
        return FAIL_MEMORY(err);
    if (atomic_compare_exchange_strong(kept, &known, mine))
        return TOKMAP_OK;
    free(mine); /* another thread was first */
    if (strcmp(known, version) == 0)
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: the object was replaced since it was first read",
                file->path);
}

/* Checks a file whose first range was read. */
static tokmap_status check_first(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                 const tokmap_byte_read *r, tokmap_error *err)
{
    tokmap_i_beside head = {.fd = -1};
    const tokmap_i_file_stat stat = {.n_bytes = r->object_bytes};
    tokmap_status status = TOKMAP_OK;
    if (ds->check_file) {
        status = tokmap_i_store_open_object(ds->store, file->path, HEAD_BYTES, &head, err);
        if (!status)
            status = ds->check_file(ds, file, head.fd, err);
        tokmap_i_file_close(head.fd);
    } else if (r->object_bytes != UINT64_MAX) {
        status = tokmap_i_token_file_check(ds, file, &stat, err);
    }
    return status ? status : keep_version(ds, file, r->version, err);
}

static tokmap_status check_file(const tokmap_dataset *ds, const tokmap_i_token_file *file,
                                const tokmap_byte_read *r, tokmap_error *err)
{
    return atomic_load(&ds->store->versions[file - ds->files])
               ? keep_version(ds, file, r->version, err)
               : check_first(ds, file, r, err);
}

static bool add_read(tokmap_i_store_batch *b, const struct tokmap_i_store_part *part,
                     const tokmap_byte_read *read)
{
    if (!array_reserve(&b->reads, &b->capacity, b->n + 1, sizeof *b->reads) ||
        !array_reserve(&b->versions, &b->version_capacity, b->n + 1, sizeof *b->versions) ||
        !array_reserve(&b->parts, &b->part_capacity, b->n + 1, sizeof *b->parts))
        return false;
    b->reads[b->n] = *read;
    b->parts[b->n++] = *part;
    return true;
}

bool tokmap_i_store_add(tokmap_i_store_batch *b, const tokmap_dataset *ds,
                        const tokmap_i_token_piece *piece, void *to)
{
    return add_read(b, &(struct tokmap_i_store_part){ds, piece->file},
                    &(tokmap_byte_read){.name = piece->file->path,
                                        .offset = piece->first_byte,
                                        .n_bytes = (size_t)piece->n_bytes,
                                        .dst = to});
}

bool tokmap_i_store_add_index(tokmap_i_store_batch *b, const tokmap_dataset *ds, uint64_t offset,
                              size_t n_bytes, void *to)
{
    if (ds->store->source.index_path) {
        memcpy(to, ds->index_map + offset, n_bytes);
        return true;
    }
    return add_read(b, &(struct tokmap_i_store_part){ds, NULL},
                    &(tokmap_byte_read){
                        .name = ds->index_path, .offset = offset, .n_bytes = n_bytes, .dst = to});
}

/* Sets the version that the object of a range must have. */
static void set_version(tokmap_i_store_batch *b, size_t i)
{
    const struct tokmap_i_store_part *p = &b->parts[i];
    const tokmap_i_store *s = p->ds->store;
    const char *known = p->file ? atomic_load(&s->versions[p->file - p->ds->files]) : s->version;
    b->reads[i].version = b->versions[i];
    b->reads[i].n_read = 0;
    b->reads[i].object_bytes = UINT64_MAX;
    strcpy(b->versions[i], known ? known : "");
}

tokmap_status tokmap_i_store_read(tokmap_i_store_batch *b, tokmap_error *err)
{
    for (size_t i = 0; i < b->n; i++)
        set_version(b, i);
    tokmap_status status =
        b->n > 0 ? call_source(b->parts[0].ds->store, b->reads, b->n, err) : TOKMAP_OK;
    for (size_t i = 0; i < b->n && !status; i++) {
        if (b->parts[i].file)
            status = check_file(b->parts[i].ds, b->parts[i].file, &b->reads[i], err);
        if (!status)
            status = check_end(&b->reads[i], err);
    }
    return status;
}

void tokmap_i_store_free(tokmap_i_store_batch *b)
{
    free(b->reads);
    free(b->versions);
    free(b->parts);
    *b = (tokmap_i_store_batch){0};
}

/* ---- Objects in memory ---- */

static tokmap_status fail_large(const char *path, const char *what, uint64_t n_bytes,
                                tokmap_error *err)
{
    char size[32];
    real_print(size, sizeof size, "%.1f", (double)n_bytes / (double)MOST_BYTES);
    return FAIL(err, TOKMAP_ERR_UNSUPPORTED,
                "%s: this needs %s in memory, %s GiB, and at most 1 GiB is read from a store: copy "
                "this file to a disk, and give its path too",
                path, what, size);
}

/* Reads the beginning of an object, HEAD_BYTES of it. Finds its size, and version. */
static tokmap_status read_head(const tokmap_i_store *s, const char *path, uint8_t *head,
                               tokmap_byte_read *r, tokmap_error *err)
{
    *r = (tokmap_byte_read){.name = path,
                            .version = r->version,
                            .n_bytes = HEAD_BYTES,
                            .dst = head,
                            .object_bytes = UINT64_MAX};
    *r->version = 0;
    const tokmap_status status = call_source(s, r, 1, err);
    if (status)
        return status;
    if (r->n_read < HEAD_BYTES && r->object_bytes == UINT64_MAX)
        r->object_bytes = r->n_read;
    if (r->object_bytes == UINT64_MAX)
        return FAIL(err, TOKMAP_ERR_UNSUPPORTED,
                    "%s: its store does not say how large it is, and this must be known", path);
    return r->n_read == MIN(r->object_bytes, HEAD_BYTES) ? TOKMAP_OK : check_end(r, err);
}

/* Makes the file in memory of an object whose head was read. */
static tokmap_status make_file(const tokmap_byte_read *r, int *fd, uint8_t **map, tokmap_error *err)
{
    const int error = tokmap_i_memory_file(r->object_bytes, fd, (void **)map);
    if (error)
        return FAIL_IO(err, error, "%s: no file in memory of %" PRIu64 " bytes", r->name,
                       r->object_bytes);
    memcpy(*map, r->dst, r->n_read);
    return TOKMAP_OK;
}

tokmap_status tokmap_i_store_open_object(const tokmap_i_store *s, const char *path,
                                         uint64_t n_bytes, tokmap_i_beside *out, tokmap_error *err)
{
    tokmap_byte_read r = {.version = out->version};
    uint8_t *map = NULL, *head = malloc(HEAD_BYTES);
    out->fd = -1;
    tokmap_status status = head ? read_head(s, path, head, &r, err) : FAIL_MEMORY(err);
    const uint64_t end = n_bytes > 0 ? MIN(n_bytes, r.object_bytes) : r.object_bytes;
    if (!status && end > MOST_BYTES)
        status = fail_large(path, "the whole object", end, err);
    if (!status)
        status = make_file(&r, &out->fd, &map, err);
    if (!status && end > r.n_read)
        status = read_parts(s, &r, end, map, err);
    out->stat = (tokmap_i_file_stat){.n_bytes = r.object_bytes};
    tokmap_i_unmap(map, map ? r.object_bytes : 0);
    free(head);
    if (status) {
        tokmap_i_file_close(out->fd);
        out->fd = -1;
    }
    return status;
}

tokmap_status tokmap_i_open_beside(const tokmap_dataset *ds, const char *path, uint64_t n_bytes,
                                   tokmap_i_beside *out, tokmap_error *err)
{
    const size_t folder_bytes = (size_t)(name_in_path(ds->index_path) - ds->index_path);
    const bool is_beside = folder_bytes > 0 ? strncmp(path, ds->index_path, folder_bytes) == 0
                                            : strchr(path, '/') == NULL;
    *out = (tokmap_i_beside){.fd = -1};
    if (ds->store && is_beside)
        return tokmap_i_store_open_object(ds->store, path, n_bytes, out, err);
    return tokmap_i_open_file(path, &out->fd, &out->stat, err);
}

/* ---- The index ---- */

/* Recognizes the dataset if it is opened again, as device and inode do. Two stores may have
 * datasets of one name. */
static void set_identity(tokmap_dataset *ds)
{
    ds->index_stat.device = UINT64_MAX;
    ds->index_stat.inode =
        tokmap_i_checksum(ds->index_path, strlen(ds->index_path)) ^ le_get64(ds->header.dataset_id);
}

/* Whether the store has this index too, and not that of other tokens. It need not have one. */
static tokmap_status compare_index(const tokmap_dataset *ds, int fd, tokmap_error *err)
{
    uint8_t here[TOKMAP_I_HEADER_BYTES], there[TOKMAP_I_HEADER_BYTES];
    char version[TOKMAP_VERSION_BYTES] = "";
    size_t n_read = 0;
    tokmap_byte_read r = {.name = ds->index_path,
                          .version = version,
                          .n_bytes = sizeof there,
                          .dst = there,
                          .object_bytes = UINT64_MAX};
    tokmap_error last = {0};
    const tokmap_status status = call_source(ds->store, &r, 1, &last);
    if (status && last.sys_errno == ENOENT)
        return TOKMAP_OK;
    if (status && err)
        *err = last;
    if (status || tokmap_i_file_read(fd, here, sizeof here, 0, &n_read))
        return status; /* read_header says what is wrong with the file */
    if (n_read < sizeof here || (r.n_read == n_read && memcmp(here, there, n_read) == 0))
        return TOKMAP_OK;
    return FAIL(err, TOKMAP_ERR_MISMATCH, "%s: is not a copy of %s: copy it again",
                ds->store->source.index_path, ds->index_path);
}

static tokmap_status open_local_index(tokmap_dataset *ds, int *fd, tokmap_error *err)
{
    tokmap_i_file_stat stat;
    const tokmap_status status = tokmap_i_open_file(ds->store->source.index_path, fd, &stat, err);
    ds->index_stat.n_bytes = status ? 0 : stat.n_bytes;
    return status ? status : compare_index(ds, *fd, err);
}

tokmap_status tokmap_i_store_begin_index(tokmap_dataset *ds, int *fd, tokmap_error *err)
{
    tokmap_i_store *s = ds->store;
    if (s->source.index_path)
        return open_local_index(ds, fd, err);
    tokmap_byte_read r = {.version = s->version};
    uint8_t *head = malloc(HEAD_BYTES);
    *fd = -1;
    tokmap_status status = head ? read_head(s, ds->index_path, head, &r, err) : FAIL_MEMORY(err);
    if (!status)
        status = make_file(&r, fd, &s->index, err);
    free(head);
    s->index_bytes = s->index ? r.object_bytes : 0;
    ds->index_stat.n_bytes = r.object_bytes;
    return status;
}

/* What open reads of a section, with the bytes before it: from `begin` on. */
typedef struct section_part {
    uint64_t begin, n_bytes;
} section_part;

static section_part part_of(const tokmap_dataset *ds, uint32_t i, uint64_t *loaded)
{
    const tokmap_i_section *sections = ds->header.sections, *section = &sections[i];
    const uint64_t begin = i > 0 ? sections[i - 1].offset + sections[i - 1].n_bytes
                                 : TOKMAP_I_HEADER_BYTES + (uint64_t)ds->header.n_sections *
                                                               TOKMAP_I_SECTION_ENTRY_BYTES;
    const bool is_whole =
        section->kind == TOKMAP_I_SEGMENTS ||
        (section->kind != TOKMAP_I_CHECKSUMS && section->n_bytes <= SECTION_BYTES);
    *loaded = is_whole ? section->n_bytes : MIN(section->n_bytes, SECTION_HEAD_BYTES);
    return (section_part){begin, section->offset + *loaded - begin};
}

static tokmap_status check_section(const tokmap_dataset *ds, const tokmap_i_section *section,
                                   tokmap_error *err)
{
    const uint8_t *bytes = ds->store->index + section->offset;
    if (tokmap_i_checksum(bytes, (size_t)section->n_bytes) == section->checksum)
        return TOKMAP_OK;
    return FAIL_AT(err, TOKMAP_ERR_CORRUPT, section->offset,
                   "%s: damaged: the %s section (%" PRIu64 " bytes from byte %" PRIu64
                   ") does not match its checksum",
                   ds->index_path, tokmap_i_section_name(section->kind), section->n_bytes,
                   section->offset);
}

/* Adds a range of the index, in parts, without what the head had. */
static bool add_index(tokmap_i_store_batch *b, const tokmap_dataset *ds, uint64_t begin,
                      uint64_t end)
{
    bool is_added = true;
    for (uint64_t n, at = MAX(begin, HEAD_BYTES); at < end && is_added; at += n) {
        n = MIN(end - at, RANGE_BYTES);
        is_added = tokmap_i_store_add_index(b, ds, at, (size_t)n, ds->store->index + at);
    }
    return is_added;
}

tokmap_status tokmap_i_store_read_sections(tokmap_dataset *ds, tokmap_error *err)
{
    tokmap_i_store *s = ds->store;
    const tokmap_i_header *h = &ds->header;
    tokmap_i_store_batch b = {0};
    bool is_added = true, is_whole = true;
    set_identity(ds);
    const bool is_flat = !tokmap_i_section_find(h, TOKMAP_I_SEGMENTS);
    const bool is_local = s->source.index_path != NULL;
    for (uint32_t i = 0; i < h->n_sections && is_added && !is_local; i++) {
        const section_part p = part_of(ds, i, &s->loaded[i]);
        is_added = add_index(&b, ds, p.begin, p.begin + p.n_bytes);
        is_whole &=
            s->loaded[i] == h->sections[i].n_bytes || h->sections[i].kind == TOKMAP_I_CHECKSUMS;
    }
    tokmap_status status = is_added ? TOKMAP_OK : FAIL_MEMORY(err);
    if (!status && is_flat)
        status = tokmap_i_store_expect_files(s, 1, err);
    if (!status && is_flat &&
        !tokmap_i_store_add(&b, ds, &(tokmap_i_token_piece){.file = ds->files}, NULL))
        status = FAIL_MEMORY(err);
    if (!status)
        status = tokmap_i_store_read(&b, err);
    tokmap_i_store_free(&b);
    for (uint32_t i = 0; i < h->n_sections && !status && !is_local; i++)
        if (s->loaded[i] == h->sections[i].n_bytes)
            status = check_section(ds, &h->sections[i], err);
    atomic_store(&s->is_whole, is_whole);
    return status;
}

bool tokmap_i_store_has_index(const tokmap_dataset *ds)
{
    return atomic_load(&ds->store->is_whole);
}

/* Reads the sections that are not in memory, except checksums, with the lock. */
static tokmap_status read_rest(const tokmap_dataset *ds, tokmap_error *err)
{
    const tokmap_i_store *s = ds->store;
    const tokmap_i_header *h = &ds->header;
    tokmap_i_store_batch b = {0};
    uint64_t n_bytes = 0;
    bool is_added = true;
    for (uint32_t i = 0; i < h->n_sections; i++)
        if (h->sections[i].kind != TOKMAP_I_CHECKSUMS)
            n_bytes += h->sections[i].n_bytes - s->loaded[i];
    if (n_bytes > MOST_BYTES)
        return fail_large(ds->index_path, "the whole index", n_bytes, err);
    for (uint32_t i = 0; i < h->n_sections && is_added; i++) {
        const tokmap_i_section *section = &h->sections[i];
        if (section->kind != TOKMAP_I_CHECKSUMS)
            is_added = add_index(&b, ds, section->offset + s->loaded[i],
                                 section->offset + section->n_bytes);
    }
    tokmap_status status = is_added ? tokmap_i_store_read(&b, err) : FAIL_MEMORY(err);
    tokmap_i_store_free(&b);
    for (uint32_t i = 0; i < h->n_sections && !status; i++)
        if (s->loaded[i] < h->sections[i].n_bytes && h->sections[i].kind != TOKMAP_I_CHECKSUMS)
            status = check_section(ds, &h->sections[i], err);
    return status;
}

tokmap_status tokmap_i_store_need_index(const tokmap_dataset *ds, tokmap_error *err)
{
    tokmap_i_store *s = ds->store;
    if (atomic_load(&s->is_whole))
        return TOKMAP_OK;
    tokmap_i_mutex_lock(&s->mutex);
    const tokmap_status status = atomic_load(&s->is_whole) ? TOKMAP_OK : read_rest(ds, err);
    if (!status)
        atomic_store(&s->is_whole, true);
    tokmap_i_mutex_unlock(&s->mutex);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/object_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "support/check.h"
#include "system/platform_thread.h"

static tokmap_status fail(tokmap_error *err, tokmap_status status, int error, const char *name,
                          const char *what)
{
    *err = (tokmap_error){.status = status, .sys_errno = error};
    snprintf(err->text, sizeof err->text, "%.300s: %s", name, what);
    return status;
}

static tokmap_status read_one(object_store *s, tokmap_byte_read *r, tokmap_error *err)
{
    const char *version = atomic_load(&s->version);
    const int fd = open(r->name + strlen(STORE), O_RDONLY);
    struct stat stat;
    if (strncmp(r->name, STORE, strlen(STORE)) != 0 || fd < 0 || fstat(fd, &stat)) {
        close(fd);
        return fail(err, TOKMAP_ERR_IO, ENOENT, r->name, "no such object");
    }
    const bool differs = *r->version && strcmp(r->version, version) != 0;
    strcpy(r->version, version);
    size_t n_bytes = r->n_bytes;
    if (atomic_load(&s->cuts) && n_bytes > 0 && r->offset + n_bytes <= (uint64_t)stat.st_size)
        n_bytes--;
    const ssize_t n = n_bytes > 0 ? pread(fd, r->dst, n_bytes, (off_t)r->offset) : 0;
    close(fd);
    r->n_read = n < 0 ? 0 : (size_t)n;
    r->n_read += atomic_load(&s->claims_more) ? r->n_bytes + 1 : 0;
    r->object_bytes = atomic_load(&s->has_sizes) ? (uint64_t)stat.st_size : UINT64_MAX;
    atomic_fetch_add(&s->n_bytes, r->n_read);
    if (differs)
        return fail(err, TOKMAP_ERR_MISMATCH, 0, r->name, "the object was replaced");
    return n < 0 ? fail(err, TOKMAP_ERR_IO, errno, r->name, "cannot be read") : TOKMAP_OK;
}

static bool counts_down(atomic_int *n)
{
    if (atomic_load(n) <= 0)
        return false;
    return atomic_fetch_sub(n, 1) > 0;
}

static tokmap_status read_all(void *context, tokmap_byte_read *reads, size_t n, tokmap_error *err)
{
    object_store *s = context;
    const unsigned n_running = 1 + atomic_fetch_add(&s->n_running, 1);
    const unsigned cancelled_before = atomic_load(&s->n_cancelled);
    if (n_running > atomic_load(&s->most_running))
        atomic_store(&s->most_running, n_running);
    atomic_fetch_add(&s->n_calls, 1);
    atomic_fetch_add(&s->n_reads, (unsigned)n);
    tokmap_i_sleep_ns(1000ull * atomic_load(&s->delay_us));
    while (atomic_load(&s->stalls) && atomic_load(&s->n_cancelled) == cancelled_before)
        tokmap_i_sleep_ns(1000000);
    tokmap_status status = TOKMAP_OK;
    if (atomic_load(&s->n_cancelled) > cancelled_before && atomic_load(&s->stalls))
        status = fail(err, TOKMAP_ERR_IO, ECANCELED, reads->name, "cancelled");
    else if (counts_down(&s->n_to_fail))
        status = fail(err, TOKMAP_ERR_IO, EIO, reads->name, "the store is out of order");
    for (size_t i = 0; i < n && !status; i++)
        status = read_one(s, &reads[i], err);
    atomic_fetch_sub(&s->n_running, 1);
    return status;
}

static void cancel(void *context, const tokmap_byte_read *reads)
{
    object_store *s = context;
    (void)reads;
    atomic_fetch_add(&s->n_cancelled, 1);
}

void object_store_open(object_store *s)
{
    *s = (object_store){.source = {.struct_size = sizeof s->source,
                                   .context = s,
                                   .read = read_all,
                                   .cancel = cancel},
                        .has_sizes = true,
                        .version = "1"};
}

tokmap_dataset *object_store_dataset(object_store *s, const char *path)
{
    char name[700];
    tokmap_dataset *ds;
    tokmap_error err;
    snprintf(name, sizeof name, STORE "%s", path);
    CHECK_OK(tokmap_dataset_open_from(&ds, name, &s->source, &err), err);
    return ds;
}

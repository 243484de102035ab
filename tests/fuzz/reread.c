/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/reread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_PLACES 64

typedef struct bytes {
    uint8_t *bytes;
    size_t n, capacity;
} bytes;

typedef struct outcome {
    int result;
    bytes text, ends, values; /* ends: of documents, in the text */
    corpus_place places[MAX_PLACES], last;
    size_t places_at[MAX_PLACES][3]; /* how much of the three there was */
    size_t n_places;
} outcome;

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void add(bytes *b, const void *data, size_t n)
{
    if (b->n + n > b->capacity) {
        b->capacity = (b->n + n) * 2;
        b->bytes = realloc(b->bytes, b->capacity);
        require(b->bytes != NULL);
    }
    if (n > 0)
        memcpy(b->bytes + b->n, data, n);
    b->n += n;
}

static void free_outcome(outcome *o)
{
    free(o->text.bytes);
    free(o->ends.bytes);
    free(o->values.bytes);
}

static void report(void *context, const char *text)
{
    (void)context;
    require(*text && !strchr(text, '\n'));
}

static void collect(void *context, const uint8_t *data, size_t n_bytes, bool last)
{
    (void)context;
    (void)last;
    if (n_bytes)
        (void)*(volatile const uint8_t *)(data + n_bytes - 1);
}

static void add_batch(outcome *o, const corpus_batch *b)
{
    for (size_t i = 0; i < b->n_ends; i++) {
        const size_t end = o->text.n + b->ends[i].at;
        if (!b->ends[i].input)
            add(&o->ends, &end, sizeof end);
    }
    add(&o->text, b->text, b->n_bytes);
    add(&o->values, b->values, b->values_bytes);
    o->last = b->after;
    if (o->n_places < MAX_PLACES) {
        size_t *at = o->places_at[o->n_places];
        o->places[o->n_places++] = b->after;
        at[0] = o->text.n;
        at[1] = o->ends.n;
        at[2] = o->values.n;
    }
}

/* from: what was read before `place`. */
static outcome read_all(const char *name, const corpus_options *options, const outcome *from,
                        size_t place)
{
    outcome o = {0};
    corpus_batch b = {0};
    failure err;
    if (from) {
        add(&o.text, from->text.bytes, from->places_at[place][0]);
        add(&o.ends, from->ends.bytes, from->places_at[place][1]);
        add(&o.values, from->values.bytes, from->places_at[place][2]);
    }
    corpus *c = corpus_open(&name, 1, options, from ? &from->places[place] : NULL, &err);
    require(c != NULL);
    while ((o.result = corpus_read(c, &b, &err)) > 0)
        add_batch(&o, &b);
    require(o.result == 0 || (*err.text && !strchr(err.text, '\n')));
    require(!from || err.status != FAILURE_CHANGED || o.result == 0);
    corpus_close(c);
    corpus_batch_free(&b);
    return o;
}

static void require_same(const bytes *a, const bytes *b)
{
    require(a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0));
}

static void require_equal(const outcome *a, const outcome *b)
{
    require(a->result == b->result);
    require_same(&a->text, &b->text);
    require_same(&a->ends, &b->ends);
    require_same(&a->values, &b->values);
    require(memcmp(&a->last.counts, &b->last.counts, sizeof a->last.counts) == 0);
}

void reread_input(const uint8_t choice[REREAD_BYTES], const uint8_t *data, size_t size)
{
    static const size_t sizes[] = {4, 9, 50, 300, 2000, 1 << 15, 1 << 17, 1 << 20};
    static field_list fields;
    static where *kept;
    failure field_err;
    if (!fields.n_fields) {
        require(field_list_parse(&fields, "id,score,@row", &field_err));
        kept = where_compile("not id == 3 and not name == \"x\"", &fields, &field_err);
        require(kept != NULL);
    }
    corpus_options o = {
        .format = (corpus_format)(choice[0] % 4),
        .utf8 = (corpus_utf8)((choice[0] >> 2) % 3),
        .on_error = (corpus_on_error)((choice[0] >> 4) % 3),
        .separator = choice[1] & 1 ? "--" : NULL,
        .separator_bytes = choice[1] & 1 ? 2 : 0,
        .read_ahead = choice[1] > 250,
        .fields = choice[1] & 2 ? &fields : NULL,
        .n_kept = choice[1] & 2 ? 3 : 0,
        .where = (choice[1] & 6) == 6 ? kept : NULL,
        .field = choice[1] & 8 ? "s.text" : NULL,
        .page_memory = (size_t)1 << 22,
        .collect = collect,
        .report = report,
    };
    char name[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    outcome whole = read_all(name, &o, NULL, 0);
    o.batch_bytes = sizes[choice[2] & 7];
    o.max_piece_bytes = sizes[choice[2] >> 4 & 7];
    o.read_bytes = choice[3] ? choice[3] : 4096;
    outcome small = read_all(name, &o, NULL, 0);
    /* Records of JSON that have fields are refused by their size. */
    if (whole.result == 0 && small.result == 0 && !o.fields)
        require_equal(&whole, &small);
    if (small.result == 0 && small.n_places > 0) {
        outcome rest = read_all(name, &o, &small, choice[3] % small.n_places);
        require(rest.result == 0);
        if (rest.n_places > 0)
            require_equal(&small, &rest);
        free_outcome(&rest);
    }
    free_outcome(&whole);
    free_outcome(&small);
    close(fd);
}

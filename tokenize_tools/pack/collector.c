/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/collector.h"

#include <stdlib.h>
#include <string.h>

size_t pack_collector_safe_cut(void *context, const uint8_t *text, size_t n_searched,
                               size_t n_bytes)
{
    const pack_collector *c = context;
    return tokenizer_safe_cut(c->tokenizer, text, n_searched, n_bytes);
}

void pack_collector_collect(void *context, const uint8_t *data, size_t n_bytes, bool last)
{
    pack_collector *c = context;
    pack_bad_file_write(c->bad_file, data, n_bytes);
    if (last)
        pack_bad_file_write(c->bad_file, "\n", 1);
}

/* Makes room for n more elements after n_used. */
static void *grow_array(void *array, size_t n_used, size_t n, size_t *capacity, size_t element)
{
    if (n_used + n <= *capacity)
        return array;
    void *grown = realloc(array, 2 * (n_used + n) * element);
    if (grown)
        *capacity = 2 * (n_used + n);
    return grown;
}

void pack_collector_report(void *context, const char *text)
{
    pack_collector *c = context;
    size_t n = strlen(text);
    char *lines = grow_array(c->lines, c->lines_bytes, n + 1, &c->lines_capacity, 1);
    c->no_memory = c->no_memory || !lines;
    if (!lines)
        return;
    c->lines = lines;
    memcpy(lines + c->lines_bytes, text, n + 1);
    lines[c->lines_bytes + n] = '\n';
    c->lines_bytes += n + 1;
}

static pack_bad_mark mark_of(const pack_collector *c)
{
    return c->bad_file ? pack_bad_file_mark(c->bad_file) : (pack_bad_mark){0};
}

void pack_collector_ended(void *context, const corpus_counts *counts)
{
    pack_collector *c = context;
    pack_moment *moments =
        grow_array(c->moments, c->n_moments, 1, &c->moments_capacity, sizeof *c->moments);
    c->no_memory = c->no_memory || !moments;
    if (!moments)
        return;
    c->moments = moments;
    moments[c->n_moments++] = (pack_moment){*counts, mark_of(c), c->lines_bytes};
}

static pack_record *with_room(pack_job *job, size_t n_bytes)
{
    pack_record *record = job->record;
    if (record && record->capacity >= n_bytes)
        return record;
    free(record);
    job->record = record = malloc(sizeof *record + n_bytes);
    if (record)
        *record = (pack_record){.capacity = n_bytes};
    return record;
}

void pack_collector_after_read(void *context, pack_job *job)
{
    pack_collector *c = context;
    size_t moments_bytes = c->n_moments * sizeof *c->moments;
    if (c->bad_file)
        pack_bad_file_flush(c->bad_file);
    pack_record *record = with_room(job, moments_bytes + c->lines_bytes);
    if (!record || c->no_memory) {
        free(record);
        job->record = NULL;
        return;
    }
    record->bad_file = mark_of(c);
    record->bad_file_errno = c->bad_file ? c->bad_file->sys_errno : 0;
    record->moments = (pack_moment *)(record + 1);
    record->lines = (char *)(record->moments + c->n_moments);
    record->n_bytes = c->lines_bytes;
    if (moments_bytes)
        memcpy(record->moments, c->moments, moments_bytes);
    if (c->lines_bytes)
        memcpy(record->lines, c->lines, c->lines_bytes);
    c->lines_bytes = c->n_moments = 0;
}

void pack_collector_free(pack_collector *c)
{
    free(c->lines);
    free(c->moments);
    free(c);
}

#include "pack/collector.h"

#include <stdlib.h>
#include <string.h>

size_t pack_collector_safe_cut(void *context, const uint8_t *text, size_t n_bytes)
{
    const pack_collector *c = context;
    return tokenizer_safe_cut(c->tokenizer, text, n_bytes);
}

void pack_collector_collect(void *context, const uint8_t *data, size_t n_bytes, bool last)
{
    pack_collector *c = context;
    pack_bad_file_write(c->bad_file, data, n_bytes);
    if (last)
        pack_bad_file_write(c->bad_file, "\n", 1);
}

/* Room for n more elements behind n_used. */
static void *grow(void *array, size_t n_used, size_t n, size_t *capacity, size_t element)
{
    if (n_used + n <= *capacity)
        return array;
    void *grown = realloc(array, 2 * (n_used + n) * element);
    if (grown)
        *capacity = 2 * (n_used + n);
    return grown;
}

void pack_collector_told(void *context, const char *text)
{
    pack_collector *c = context;
    size_t n = strlen(text);
    char *told = grow(c->told, c->n_told, n + 1, &c->told_capacity, 1);
    c->no_memory = c->no_memory || !told;
    if (!told)
        return;
    c->told = told;
    memcpy(told + c->n_told, text, n + 1);
    told[c->n_told + n] = '\n';
    c->n_told += n + 1;
}

static pack_bad_mark mark_of(const pack_collector *c)
{
    return c->bad_file ? pack_bad_file_mark(c->bad_file) : (pack_bad_mark){0};
}

void pack_collector_ended(void *context, const corpus_counts *counts)
{
    pack_collector *c = context;
    pack_moment *moments =
        grow(c->moments, c->n_moments, 1, &c->moments_capacity, sizeof *c->moments);
    c->no_memory = c->no_memory || !moments;
    if (!moments)
        return;
    c->moments = moments;
    moments[c->n_moments++] = (pack_moment){*counts, mark_of(c), c->n_told};
}

static pack_told *with_room(pack_job *job, size_t n_bytes)
{
    pack_told *told = job->told;
    if (told && told->capacity >= n_bytes)
        return told;
    free(told);
    job->told = told = malloc(sizeof *told + n_bytes);
    if (told)
        *told = (pack_told){.capacity = n_bytes};
    return told;
}

void pack_collector_after_read(void *context, pack_job *job)
{
    pack_collector *c = context;
    size_t moments_bytes = c->n_moments * sizeof *c->moments;
    if (c->bad_file)
        pack_bad_file_flush(c->bad_file);
    pack_told *told = with_room(job, moments_bytes + c->n_told);
    if (!told || c->no_memory) {
        free(told);
        job->told = NULL;
        return;
    }
    told->bad_file = mark_of(c);
    told->bad_file_errno = c->bad_file ? c->bad_file->sys_errno : 0;
    told->moments = (pack_moment *)(told + 1);
    told->lines = (char *)(told->moments + c->n_moments);
    told->n_bytes = c->n_told;
    if (moments_bytes)
        memcpy(told->moments, c->moments, moments_bytes);
    if (c->n_told)
        memcpy(told->lines, c->told, c->n_told);
    c->n_told = c->n_moments = 0;
}

void pack_collector_free(pack_collector *c)
{
    free(c->told);
    free(c->moments);
    free(c);
}

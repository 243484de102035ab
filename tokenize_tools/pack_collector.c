#include "pack_collector.h"

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

/* A line for which there is no memory is not printed; its document is counted all the same. */
void pack_collector_told(void *context, const char *text)
{
    pack_collector *c = context;
    size_t n = strlen(text);
    if (c->n_told + n + 1 > c->told_capacity) {
        size_t capacity = 2 * (c->n_told + n + 1);
        char *told = realloc(c->told, capacity);
        if (!told)
            return;
        c->told = told;
        c->told_capacity = capacity;
    }
    memcpy(c->told + c->n_told, text, n);
    c->n_told += n;
    c->told[c->n_told++] = '\n';
}

static pack_told *with_room(pack_job *job, size_t n_bytes)
{
    pack_told *told = job->told;
    if (told && told->capacity >= n_bytes)
        return told;
    told = malloc(sizeof *told + n_bytes);
    if (told) {
        told->capacity = n_bytes;
        free(job->told);
        job->told = told;
    }
    return job->told;
}

void pack_collector_after_read(void *context, pack_job *job)
{
    pack_collector *c = context;
    if (c->bad_file)
        pack_bad_file_flush(c->bad_file);
    pack_told *told = with_room(job, c->n_told);
    if (!told)
        return;
    told->bad_file_bytes = c->bad_file ? c->bad_file->n_bytes : 0;
    told->bad_file_errno = c->bad_file ? c->bad_file->sys_errno : 0;
    told->n_bytes = c->n_told <= told->capacity ? c->n_told : 0;
    memcpy(told->lines, c->told ? c->told : "", told->n_bytes);
    c->n_told = 0;
}

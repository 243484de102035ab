#include "corpus/reader.h"

#include <stdlib.h>

#include "corpus/reader_kind.h"
#include "corpus/text_reader.h"

reader *reader_open(const input_source *source, const corpus_options *options, int stop_fd,
                    corpus_error *err)
{
    window w;
    reader *r = NULL;
    if (window_open(&w, source, options, stop_fd, err))
        r = text_reader_open(options, &w, err);
    if (!r)
        window_close(&w);
    return r;
}

void reader_close(reader *r)
{
    if (!r)
        return;
    r->kind->close(r);
    window_close(&r->window);
    free(r);
}

reader_result reader_next(reader *r, reader_text *text, corpus_error *err)
{
    *text = (reader_text){0};
    return r->kind->next(r, text, err);
}

void reader_keep(reader *r, size_t n_bytes)
{
    r->kind->keep(r, n_bytes);
}

bool reader_skip(reader *r, reader_raw *raw, corpus_error *err)
{
    return r->kind->skip(r, raw, err);
}

int reader_seek(reader *r, reader_place to, uint64_t max_bytes, corpus_error *err)
{
    return r->kind->seek(r, to, max_bytes, err);
}

reader_place reader_where(const reader *r)
{
    return r->kind->where(r);
}

void reader_describe(const reader *r, reader_place place, uint64_t offset, char *text,
                     size_t text_bytes)
{
    r->kind->describe(r, place, offset, text, text_bytes);
}

uint64_t reader_n_begun(const reader *r)
{
    return r->kind->n_begun ? r->kind->n_begun(r) : 0;
}

void reader_want(reader *r, uint64_t n)
{
    r->kind->want(r, n);
}

corpus_format reader_format(const reader *r)
{
    return r->format;
}

input_prefix reader_stored(const reader *r)
{
    return r->kind->stored(r);
}

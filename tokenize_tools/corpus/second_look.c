/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/second_look.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/assembler.h"
#include "corpus/window.h"
#include "system/files.h"

struct second_look {
    input_source source;
    corpus_options options;
    int stop_fd;
    reader *reader; /* NULL: not opened yet */
    assembler assembler;
    corpus_batch batch;
    window window; /* for collecting; {0}: not opened yet */
};

bool second_look_possible(const char *name)
{
    return strcmp(name, "-") != 0 && file_is_regular(name);
}

second_look *second_look_new(const input_source *source, const corpus_options *options,
                             corpus_format format, int stop_fd)
{
    second_look *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->source = *source;
    s->options = *options;
    s->options.format = format;
    s->options.read_ahead = false;
    s->options.on_error = ON_ERROR_SKIP; /* what its reader passes over need not be collected */
    s->stop_fd = stop_fd;
    s->assembler.options = &s->options;
    return s;
}

void second_look_free(second_look *s)
{
    if (!s)
        return;
    reader_close(s->reader);
    assembler_free(&s->assembler);
    corpus_batch_free(&s->batch);
    window_close(&s->window);
    free(s);
}

static void set_bad(second_look_report *report, const char *reason, uint64_t offset)
{
    report->good = false;
    report->bad_offset = offset;
    snprintf(report->reason, sizeof report->reason, "%s", reason);
}

/* Adds the text to an assembler, as in the first look; its batches are dropped. */
static bool add_text(second_look *s, reader_text *text, second_look_report *report, failure *err)
{
    assembler *a = &s->assembler;
    for (;;) {
        add_result result = assembler_add(a, text);
        if (result == ADD_NO_MEMORY || (result == ADD_FULL && !assembler_next_batch(a, &s->batch)))
            return fail_memory(err);
        if (result == ADD_BAD)
            set_bad(report, a->reason,
                    text->offset + (s->options.format == CORPUS_JSON_LINES ? 0 : a->bad_at));
        if (result == ADD_DONE || result == ADD_BAD)
            return true;
    }
}

static bool begin_document(second_look *s, failure *err)
{
    s->assembler.n_carry = 0;
    if (!assembler_next_batch(&s->assembler, &s->batch))
        return fail_memory(err);
    assembler_begin_document(&s->assembler);
    s->assembler.may_cut = true;
    return true;
}

bool second_look_check_whole(second_look *s, const reader_text *whole, second_look_report *report,
                             failure *err)
{
    reader_text text = *whole;
    *report = (second_look_report){.good = true};
    return begin_document(s, err) && add_text(s, &text, report, err);
}

bool second_look_check(second_look *s, reader_place place, second_look_report *report, failure *err)
{
    reader_text text = {0};
    reader_raw raw;
    *report = (second_look_report){.good = true};
    if (!s->reader)
        s->reader = reader_open(&s->source, &s->options, s->stop_fd, err);
    if (!s->reader || reader_seek(s->reader, place, UINT64_MAX, err) < 0 || !begin_document(s, err))
        return false;
    while (!text.last) {
        reader_result result = reader_next(s->reader, &text, err);
        if (result == READER_FAILED)
            return false;
        if (result == READER_END)
            return fail_changed(err, "byte %" PRIu64 ": has changed: it now ends here",
                                place.offset);
        if (result == READER_BAD) {
            set_bad(report, text.reason, text.bad_offset);
            break;
        }
        if (text.drop) { /* errors in the text before do not count */
            report->good = true;
            if (!begin_document(s, err))
                return false;
        }
        if (report->good && !add_text(s, &text, report, err))
            return false;
        if (report->good && !text.last)
            reader_keep(s->reader, text.n_bytes);
    }
    report->n_begun = text.n_begun;
    return reader_skip(s->reader, &raw, err);
}

/* ---- Collecting ---- */

bool second_look_collect(second_look *s, uint64_t begin_at, uint64_t end_at, failure *err)
{
    window *w = &s->window;
    if (!w->stream && !window_open(w, &s->source, &s->options, s->stop_fd, err))
        return false;
    while (w->offset < end_at) {
        if (window_size(w) == 0 && !window_fill(w, err))
            return false;
        if (window_size(w) == 0)
            return fail_changed(err, "byte %" PRIu64 ": has changed: it now ends here", w->offset);
        bool inside = w->offset >= begin_at;
        uint64_t n_bytes = (inside ? end_at : begin_at) - w->offset;
        n_bytes = n_bytes < window_size(w) ? n_bytes : window_size(w);
        if (inside)
            s->options.collect(s->options.context, window_text(w), (size_t)n_bytes, false);
        window_consume(w, (size_t)n_bytes);
    }
    s->options.collect(s->options.context, window_text(w), 0, true);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/segments.h"

#include <stdlib.h>

#include "base/base.h"

/* A segment of several files has at most so many, and so many bytes. */
#define MOST_FILES 64
#define MOST_BYTES ((uint64_t)1 << 20)
#define LEAST_READ_AHEAD ((uint64_t)4 << 20)
/* A part is large enough that opening the file again, with its footer, costs little. */
#define PART_BYTES ((uint64_t)32 << 20)

static corpus_format format_of(const pack_inputs *inputs, size_t i)
{
    return inputs->formats ? inputs->formats[i] : inputs->found ? inputs->found[i] : CORPUS_AUTO;
}

static bool is_arrow(const pack_inputs *inputs, size_t i)
{
    return format_of(inputs, i) == CORPUS_ARROW;
}

static pack_segment segment_at(const pack_inputs *inputs, size_t first)
{
    pack_segment s = {.first = first, .in_turn = is_arrow(inputs, first)};
    uint64_t n_bytes = 0;
    size_t i = first;
    do { /* a pipe is a segment, because it may wait for long */
        n_bytes += inputs->versions[i].known ? inputs->versions[i].n_bytes : MOST_BYTES;
        i++;
    } while (i < inputs->n && inputs->versions[first].known && i - first < MOST_FILES &&
             is_arrow(inputs, i) == s.in_turn && inputs->versions[i].known &&
             n_bytes + inputs->versions[i].n_bytes <= MOST_BYTES);
    s.n = i - first;
    return s;
}

/* A large file of Parquet, and not a part of one. */
bool pack_divider_may_cut(const pack_divider *d, const pack_segment *s)
{
    const pack_inputs *inputs = d->inputs;
    const bool is_part = (s->first == 0 && (inputs->begin.offset > 0 || inputs->begin.row > 0)) ||
                         (s->first + s->n == inputs->n && d->options->has_end);
    return s->n == 1 && !is_part && format_of(inputs, s->first) == CORPUS_PARQUET &&
           inputs->versions[s->first].known &&
           inputs->versions[s->first].n_bytes >= 2 * d->part_bytes;
}

pack_divider pack_divider_begin(const pack_inputs *inputs, const corpus_options *options,
                                const corpus_place *from)
{
    const char *asked = getenv("TOKMAP_TEST_PART"); /* bytes of a part */
    pack_divider d = {.inputs = inputs, .options = options, .part_bytes = PART_BYTES};
    if (asked)
        d.part_bytes = MAX(strtoull(asked, NULL, 10), 1);
    if (from) {
        d.next_input = (size_t)MIN(from->input, inputs->n);
        d.read_bytes = from->stored.n_bytes;
    }
    return d;
}

bool pack_divider_is_over(const pack_divider *d)
{
    return d->next_input == d->inputs->n;
}

pack_segment pack_divider_look(const pack_divider *d)
{
    pack_segment s = segment_at(d->inputs, d->next_input);
    s.begin = d->begin;
    return s;
}

/* What is wrong with the file is found again where it is read. */
void pack_divider_cut(pack_divider *d, pack_segment *s)
{
    failure ignored;
    if (!d->cutter)
        d->cutter = corpus_cutter_open(d->inputs->names[s->first], &d->inputs->versions[s->first],
                                       &d->options->reader, &ignored);
    const uint64_t from = MAX(s->begin.offset, d->read_bytes);
    s->has_next =
        d->cutter && corpus_cutter_next(d->cutter, from + d->part_bytes, &s->end, &ignored) > 0;
}

void pack_divider_take(pack_divider *d, const pack_segment *s)
{
    d->begin = s->end;
    d->read_bytes = 0;
    if (s->has_next)
        return;
    pack_divider_end(d);
    d->next_input += s->n;
}

void pack_divider_end(pack_divider *d)
{
    corpus_cutter_close(d->cutter);
    d->cutter = NULL;
}

/* Whether the inputs are too small for a thread that reads ahead. */
static bool is_small(const pack_segment *s, const pack_inputs *inputs)
{
    const input_version *v = &inputs->versions[s->first];
    return s->n > 1 || (v->known && v->n_bytes < LEAST_READ_AHEAD);
}

corpus_options pack_segment_options(const pack_segment *s, const pack_inputs *inputs,
                                    const corpus_options *all)
{
    static const corpus_format parquet[] = {CORPUS_PARQUET};
    corpus_options o = *all;
    o.versions += s->first;
    o.formats = o.formats ? o.formats + s->first : NULL;
    o.reader.window.read_ahead &= !is_small(s, inputs);
    if (s->first > 0)
        o.begin = (corpus_cut){0};
    if (s->first + s->n < inputs->n) {
        o.end = (corpus_cut){0};
        o.has_end = false;
    }
    if (s->has_next || pack_segment_continues(s)) {
        o.begin = s->begin;
        o.end = s->end;
        o.has_end = s->has_next;
        o.joined = true;
        o.formats = parquet;
    }
    return o;
}

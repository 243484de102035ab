/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/segments.h"

/* A segment of several files has at most so many, and so many bytes. */
#define MOST_FILES 64
#define MOST_BYTES ((uint64_t)1 << 20)
#define LEAST_READ_AHEAD ((uint64_t)4 << 20)

static bool has_pages(const pack_inputs *inputs, size_t i)
{
    return (inputs->formats && corpus_format_has_pages(inputs->formats[i])) ||
           (inputs->in_pages && inputs->in_pages[i]);
}

pack_segment pack_segment_at(const pack_inputs *inputs, size_t first)
{
    pack_segment s = {.first = first};
    uint64_t n_bytes = 0;
    size_t i = first;
    do { /* a pipe is a segment, because it may wait for long */
        n_bytes += inputs->versions[i].known ? inputs->versions[i].n_bytes : MOST_BYTES;
        s.in_turn |= has_pages(inputs, i);
        i++;
    } while (i < inputs->n && inputs->versions[first].known && i - first < MOST_FILES &&
             has_pages(inputs, i) == s.in_turn && inputs->versions[i].known &&
             n_bytes + inputs->versions[i].n_bytes <= MOST_BYTES);
    s.n = i - first;
    return s;
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
    return o;
}

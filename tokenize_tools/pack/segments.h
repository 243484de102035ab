/* SPDX-License-Identifier: Apache-2.0 */
/* segments.h - how the inputs of tokmap pack are divided among readers. */
#pragma once

#include "corpus/cutter.h"
#include "request/inputs.h"

/* What one reader reads: inputs that follow each other, or a part of a file of Parquet. */
typedef struct pack_segment {
    size_t first, n;
    bool in_turn;          /* reading it takes all memory for inputs: not before the segments
                              before it */
    corpus_cut begin, end; /* of a part; {0}: where the file begins, or ends */
    bool has_next;         /* another part of the file follows */
} pack_segment;

/* Whether a part of a file was read before it, by another segment. */
static inline bool pack_segment_continues(const pack_segment *s)
{
    return s->begin.offset > 0;
}

/* Divides the inputs, in order. */
typedef struct pack_divider {
    const pack_inputs *inputs;
    const corpus_options *options; /* to read all inputs with */
    uint64_t part_bytes;           /* usual size of a part */
    size_t next_input;             /* the first one that no segment has all of */
    corpus_cut begin;              /* up to which segments have it */
    uint64_t read_bytes;           /* of it, by an earlier run */
    corpus_cutter *cutter;         /* of that input, while parts of it are found */
} pack_divider;

/* Begins with the input, of which so many bytes were read before. */
pack_divider pack_divider_begin(const pack_inputs *inputs, const corpus_options *options,
                                const corpus_place *from);
bool pack_divider_is_over(const pack_divider *d);
/* The next segment, and of a file that may be cut all that is left of it. */
pack_segment pack_divider_look(const pack_divider *d);
/* Whether the segment, which is the next one, may be cut. */
bool pack_divider_may_cut(const pack_divider *d, const pack_segment *s);
/* Ends the segment where the next part begins, if there is one. It reads in the file, and may be
 * called while others look. */
void pack_divider_cut(pack_divider *d, pack_segment *s);
/* Takes the segment, which is the next one. */
void pack_divider_take(pack_divider *d, const pack_segment *s);
void pack_divider_end(pack_divider *d);

/* The options to read the segment with, from those for all inputs. */
corpus_options pack_segment_options(const pack_segment *s, const pack_inputs *inputs,
                                    const corpus_options *all);

/* SPDX-License-Identifier: Apache-2.0 */
/* segments.h - how the inputs of tokmap pack are divided among readers. */
#pragma once

#include "request/inputs.h"

/* What one reader reads: inputs that follow each other. */
typedef struct pack_segment {
    size_t first, n;
    bool in_turn; /* reading it takes all memory for inputs: not before the segments before it */
} pack_segment;

/* The segment that begins with this input: it alone, or a few small files. */
pack_segment pack_segment_at(const pack_inputs *inputs, size_t first);
/* The options to read it with, from those for all inputs. */
corpus_options pack_segment_options(const pack_segment *s, const pack_inputs *inputs,
                                    const corpus_options *all);

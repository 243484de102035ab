/* SPDX-License-Identifier: Apache-2.0 */
/* arrow_body.h - takes the plain bytes of buffers out of an Arrow message, in the order in which
 * they are in the input; for arrow_reader.c. */
#ifndef TOKMAP_ARROW_BODY_H
#define TOKMAP_ARROW_BODY_H

#include "arrow/schema.h"
#include "corpus/window.h"

typedef struct arrow_body {
    window *window;
    uint64_t begin; /* offset of the body in the input */
    bool is_compressed;
    void *zstd;      /* the state of the decompressor; NULL: none yet */
    bool in_frame;   /* it has begun a frame */
    bool is_plain;   /* the current buffer is not compressed */
    uint64_t end;    /* of the stored bytes of the current buffer, in the input */
    uint64_t n_left; /* plain bytes of it that were not taken */
} arrow_body;

/* Begins a buffer: *n_bytes are its plain bytes. It must not be before the one before it. */
bool arrow_body_begin(arrow_body *b, const arrow_extent *buffer, uint64_t *n_bytes, failure *err);
/* Takes n_bytes plain bytes, at most those that are left. dst may be NULL. */
bool arrow_body_take(arrow_body *b, uint8_t *dst, uint64_t n_bytes, failure *err);
void arrow_body_close(arrow_body *b);

/* Takes n_bytes of the input; dst may be NULL. The end of the input is an error. */
bool arrow_take(window *w, void *dst, uint64_t n_bytes, failure *err);

#endif /* TOKMAP_ARROW_BODY_H */

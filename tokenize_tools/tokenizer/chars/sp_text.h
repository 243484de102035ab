/* sp_text.h - a text buffer that grows. */
#ifndef TOKMAP_SP_TEXT_H
#define TOKMAP_SP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sp_text { /* starts as {0} */
    uint8_t *bytes;
    size_t n_bytes, capacity;
} sp_text;

/* A read-only text; TEXT_PADDING more bytes after it are readable. */
typedef struct sp_span {
    const uint8_t *bytes;
    size_t n_bytes;
} sp_span;

/* Makes room for n_more bytes and TEXT_PADDING after them; false: out of memory. */
bool sp_text_reserve(sp_text *t, size_t n_more);
bool sp_text_append(sp_text *t, const void *bytes, size_t n_bytes);
/* The text written so far, followed by zeroed padding. */
sp_span sp_text_span(sp_text *t);
void sp_text_free(sp_text *t);

#endif /* TOKMAP_SP_TEXT_H */

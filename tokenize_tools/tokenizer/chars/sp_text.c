#include "tokenizer/chars/sp_text.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/split/splitter.h"

bool sp_text_reserve(sp_text *t, size_t n_more)
{
    if (n_more <= t->capacity && t->n_bytes + TEXT_PADDING <= t->capacity - n_more)
        return true;
    if (n_more > SIZE_MAX / 4 || t->n_bytes > SIZE_MAX / 4)
        return false;
    const size_t capacity = t->n_bytes + t->n_bytes / 2 + n_more + TEXT_PADDING;
    uint8_t *bytes = realloc(t->bytes, capacity);
    if (!bytes)
        return false;
    t->bytes = bytes;
    t->capacity = capacity;
    return true;
}

bool sp_text_append(sp_text *t, const void *bytes, size_t n_bytes)
{
    if (!sp_text_reserve(t, n_bytes))
        return false;
    if (n_bytes > 0)
        memcpy(t->bytes + t->n_bytes, bytes, n_bytes);
    t->n_bytes += n_bytes;
    return true;
}

sp_span sp_text_span(sp_text *t)
{
    static const uint8_t nothing[TEXT_PADDING];
    if (t->capacity == 0)
        return (sp_span){nothing, 0};
    memset(t->bytes + t->n_bytes, 0, TEXT_PADDING);
    return (sp_span){t->bytes, t->n_bytes};
}

void sp_text_free(sp_text *t)
{
    free(t->bytes);
    *t = (sp_text){0};
}

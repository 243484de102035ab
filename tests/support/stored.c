/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stored.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"
#if HAVE_ZLIB
#include <zlib.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#endif

bool stored_add(stored *s, stored_form form, const uint8_t *plain, size_t n)
{
    size_t room = n + n / 100 + 1024;
    s->bytes = realloc(s->bytes, s->n_bytes + room);
    uint8_t *to = s->bytes + s->n_bytes;
    if (form == STORED_PLAIN) {
        if (n)
            memcpy(to, plain, n);
        s->n_bytes += n;
        return true;
    }
#if HAVE_ZLIB
    if (form == STORED_GZIP) {
        z_stream z = {0};
        deflateInit2(&z, 1 + (int)(n % 9), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
        z.next_in = (Bytef *)(uintptr_t)plain;
        z.avail_in = (uInt)n;
        z.next_out = to;
        z.avail_out = (uInt)room;
        deflate(&z, Z_FINISH);
        s->n_bytes += z.total_out;
        deflateEnd(&z);
        return true;
    }
#endif
#if HAVE_ZSTD
    if (form == STORED_ZSTD) {
        ZSTD_CCtx *z = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(z, ZSTD_c_compressionLevel, 1 + (int)(n % 5));
        ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
        s->n_bytes += ZSTD_compress2(z, to, room, plain, n);
        ZSTD_freeCCtx(z);
        return true;
    }
#endif
    free(s->bytes);
    *s = (stored){0};
    return false;
}

stored stored_make(stored_form form, const uint8_t *plain, size_t n, size_t n_parts)
{
    stored s = {0};
    for (size_t i = 0; i < n_parts; i++) {
        size_t from = n * i / n_parts, to = n * (i + 1) / n_parts;
        if (form == STORED_ZSTD && i > 0 && i + 1 == n_parts) {
            static const uint8_t skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
            stored_add(&s, STORED_PLAIN, skippable, sizeof skippable);
        }
        if (!stored_add(&s, form, plain + from, to - from))
            break;
    }
    return s;
}

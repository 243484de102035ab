/* data_page.c - the datasets of the experiments: random tokens in documents of 1 to 3,000 of them,
 * so that rows begin and documents end anywhere. */
#include "gpubench.h"

#include <stdio.h>
#include <stdlib.h>

#include "tokmap_writer.h"

enum {
    MAX_DOCUMENT = 3000,
    WIDE_VOCABULARY = 200000
};
#define SMALL_BYTES (64 * MIB)
#define USUAL_SHARE 0.7 /* of the time, for the large one; what it has by then is enough */

static void make_tokens(uint32_t *tokens, uint32_t n, uint32_t vocabulary, uint64_t *seed)
{
    for (uint32_t i = 0; i < n; i += 4) {
        const uint64_t r = random_next(seed);
        for (uint32_t k = 0; k < 4 && i + k < n; k++) {
            const uint32_t sixteen = (uint32_t)(r >> 16 * k) & 0xFFFF;
            tokens[i + k] = vocabulary > 65536 ? (sixteen * 37 + k) % vocabulary : sixteen;
        }
    }
}

static bool write_documents(tokmap_writer *w, uint64_t n_bytes, uint32_t vocabulary, double until)
{
    static uint32_t tokens[MAX_DOCUMENT];
    tokmap_error err = {0};
    uint64_t seed = vocabulary, written = 0;
    bool ok = true;
    while (ok && written < n_bytes && (seconds_left() > until || written < 256 * MIB)) {
        const uint32_t n = 1 + (uint32_t)(random_next(&seed) % MAX_DOCUMENT);
        make_tokens(tokens, n, vocabulary, &seed);
        ok = fine_status(tokmap_writer_append(w, tokens, n, &err), &err) &&
             fine_status(tokmap_writer_end_document(w, &err), &err);
        written += (vocabulary > 65536 ? 4 : 2) * (uint64_t)n;
    }
    return ok;
}

static bool write_dataset(const char *prefix, uint64_t n_bytes, uint32_t vocabulary, double until)
{
    const tokmap_writer_options how = {
        .struct_size = sizeof how, .vocab_size = vocabulary, .eod_id = TOKMAP_NO_ID, .replace = 1};
    tokmap_writer *w;
    tokmap_error err = {0};
    if (!fine_status(tokmap_writer_open(&w, prefix, &how, &err), &err))
        return false;
    const bool ok = write_documents(w, n_bytes, vocabulary, until) &&
                    fine_status(tokmap_writer_finish(w, &err), &err);
    tokmap_writer_close(w);
    return ok;
}

int data_page(const options *o)
{
    const double until = o->seconds * (1 - USUAL_SHARE);
    const uint64_t small = o->n_bytes < SMALL_BYTES ? o->n_bytes : SMALL_BYTES;
    return write_dataset(o->wide, small, WIDE_VOCABULARY, 0) &&
                   write_dataset(o->small, small, 65536, 0) &&
                   write_dataset(o->large, o->n_bytes, 65536, until)
               ? 0
               : STATUS_FAILED;
}

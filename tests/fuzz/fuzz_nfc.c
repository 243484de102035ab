/* fuzz_nfc.c - any text: NFC equals the result of the naive implementation, normalizing again
 * changes nothing, the engines agree on the stable prefix, and the text may be cut there.
 *
 * The first byte decides: if even, the rest is the text; if odd, each two bytes are a code point of
 * the decompositions, so that most of the text changes. */
#include "oracles/unicode_naive.h"

#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The bubble sort bears no more. */
enum {
    MAX_BYTES = 2000
};

static size_t text_of(const uint8_t *data, size_t n_bytes, uint8_t *text)
{
    size_t n = 0;
    if (n_bytes > 0 && data[0] % 2 == 0) {
        memcpy(text, data + 1, n_bytes - 1);
        return n_bytes - 1;
    }
    for (size_t i = 1; i + 1 < n_bytes; i += 2) {
        const uint32_t choice = data[i] | (uint32_t)data[i + 1] << 8;
        const nfc_decomposition *d = nfc_decompositions + choice / 4 % NFC_N_DECOMPOSITIONS;
        const uint32_t c[] = {d->code_point, d->first, d->second, choice >> 9};
        n += utf8_encode(c[choice % 4], text + n);
    }
    return n;
}

static void check(const uint8_t *text, size_t n_bytes)
{
    nfc_scratch scratch = {0};
    uint8_t *out = malloc(n_bytes * NFC_GROWTH + 1), *wanted = malloc(n_bytes * NFC_GROWTH + 1);
    uint8_t *again = malloc(n_bytes * NFC_GROWTH * NFC_GROWTH + 1);
    size_t n_out, n_again;
    const size_t n_wanted = naive_nfc(text, n_bytes, wanted);
    require(nfc_normalize(&scratch, text, n_bytes, out, &n_out));
    require(n_out == n_wanted && memcmp(out, wanted, n_out) == 0);
    require(nfc_normalize(&scratch, out, n_out, again, &n_again));
    require(n_again == n_out && memcmp(out, again, n_out) == 0);

    const size_t prefix = nfc_stable_prefix_by(SIMD_SCALAR, text, n_bytes);
    require(prefix <= n_bytes && (prefix < n_bytes || n_out == n_bytes));
    require(memcmp(out, text, prefix) == 0);
    for (simd_level e = SIMD_BEST; e <= SIMD_AVX512; e++) {
        if (simd_works(e))
            require(nfc_stable_prefix_by(e, text, n_bytes) == prefix);
    }
    require(nfc_normalize(&scratch, text + prefix, n_bytes - prefix, again, &n_again));
    require(n_again == n_out - prefix && memcmp(again, out + prefix, n_again) == 0);
    nfc_scratch_free(&scratch);
    free(out);
    free(wanted);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes > MAX_BYTES)
        return 0;
    uint8_t *room = malloc(n_bytes * 2 + 4);
    const size_t n = text_of(data, n_bytes, room);
    uint8_t *text = exact_copy(room, n);
    check(text, n);
    free(room);
    free(text);
    return 0;
}

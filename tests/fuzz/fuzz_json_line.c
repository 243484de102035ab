/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json_line.c - any bytes as a line of JSON: every engine, whole and in pieces, says what the
 * naive reader says. Byte 0 chooses the path, byte 1 the size of the pieces. */
#include "fuzz/fuzz.h"
#include "oracles/json_oracle.h"

#define PADDING 64

static void check_text(const oracle_result *expected, json_line_status status,
                       const json_line_result *r, const uint8_t *text, size_t n_bytes)
{
    require(status == expected->status);
    require((status == JSON_LINE_OK) == (r->reason == NULL));
    if (status == JSON_LINE_MALFORMED)
        require(r->error_offset == expected->error_offset);
    if (status == JSON_LINE_OK)
        require(n_bytes == expected->n_bytes && memcmp(text, expected->text, n_bytes) == 0 &&
                r->lone_surrogates == expected->lone_surrogates);
}

static void check_whole(const json_line_options *options, const uint8_t *line, size_t n_bytes,
                        const oracle_result *expected)
{
    uint8_t *padded = malloc(n_bytes + PADDING), *out = malloc(n_bytes + 1);
    json_line_result r;
    require(padded && out);
    memcpy(padded, line, n_bytes);
    memset(padded + n_bytes, '"', PADDING);
    out[n_bytes] = 0xa5;
    json_line_status status = json_line_text(options, padded, n_bytes, out, NULL, &r);
    require(out[n_bytes] == 0xa5);
    check_text(expected, status, &r, r.text, r.n_bytes);
    free(padded);
    free(out);
}

static void check_pieces(const json_line_options *options, const uint8_t *line, size_t n_bytes,
                         size_t piece_bytes, const oracle_result *expected)
{
    json_line_scanner *s = json_line_scanner_new(options);
    uint8_t *text = malloc(n_bytes + 1);
    uint8_t *piece = malloc(piece_bytes + PADDING), *out = malloc(piece_bytes + JSON_LINE_ROOM);
    size_t n_text = 0;
    json_line_result r;
    require(s && text && piece && out);
    memset(piece, 0, piece_bytes + PADDING);
    json_line_begin(s);
    for (size_t at = 0; at < n_bytes;) {
        size_t n = piece_bytes < n_bytes - at ? piece_bytes : n_bytes - at;
        memcpy(piece, line + at, n);
        json_line_fed fed = json_line_feed(s, piece, n, out);
        require(fed.n_bytes == n || fed.begins || fed.malformed);
        require(n_text + fed.text_bytes <= n_bytes);
        memcpy(text + n_text, out, fed.text_bytes);
        n_text = fed.begins ? 0 : n_text + fed.text_bytes;
        at = fed.malformed ? n_bytes : at + fed.n_bytes;
    }
    json_line_status status = json_line_end(s, &r);
    check_text(expected, status, &r, text, n_text);
    json_line_scanner_free(s);
    free(text);
    free(piece);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const parts[] = {"text", "a", "b"};
    static const simd_level levels[] = {SIMD_SCALAR, SIMD_AVX2};
    if (size < 2)
        return 0;
    bool deep = data[0] & 1;
    size_t piece_bytes = 1 + data[1] % 100;
    const uint8_t *line = data + 2;
    size_t n_bytes = size - 2;
    oracle_result expected = oracle_read(deep ? parts + 1 : parts, deep ? 2 : 1, line, n_bytes);
    json_paths *paths = json_paths_new(deep ? "a.b" : "text", NULL);
    require(paths != NULL);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        json_line_options options = {.paths = paths, .level = levels[i]};
        if (!simd_works(levels[i]))
            continue;
        check_whole(&options, line, n_bytes, &expected);
        check_pieces(&options, line, n_bytes, piece_bytes, &expected);
    }
    json_paths_free(paths);
    free(expected.text);
    return 0;
}

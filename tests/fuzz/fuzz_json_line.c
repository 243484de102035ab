/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json_line.c - any bytes as a line of JSON: every engine says what the naive reader says, and
 * where a list is wanted, the same lines are malformed. Byte 0 chooses the path; byte 1 is not
 * used. */
#include "fuzz/fuzz.h"
#include "oracles/json_oracle.h"

static void take(oracle_result got, const oracle_result *expected)
{
    require(oracle_agrees(expected, &got));
    free(got.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const parts[] = {"text", "a", "b"};
    static const simd_level levels[] = {SIMD_SCALAR, SIMD_AVX2};
    if (size < 2)
        return 0;
    bool deep = data[0] & 1;
    const uint8_t *line = data + 2;
    size_t n_bytes = size - 2;
    oracle_result expected = oracle_read(deep ? parts + 1 : parts, deep ? 2 : 1, line, n_bytes);
    json_paths *paths = json_paths_new(deep ? "a.b" : "text", NULL);
    paths->strict = true; /* as the oracle */
    require(paths != NULL);
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        paths->level = levels[i];
        if (simd_works(levels[i]))
            take(scan_line(paths, line, n_bytes, 0), &expected);
    }
    paths->lists = true;
    const oracle_result list = scan_line(paths, line, n_bytes, 0);
    require((list.status == JSON_LINE_MALFORMED) == (expected.status == JSON_LINE_MALFORMED));
    require(list.status != JSON_LINE_OK || (list.n_bytes >= 2 && list.text[0] == '['));
    free(list.text);
    json_paths_free(paths);
    free(expected.text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_json_line - the results of json_line.h for given bytes, for tests in Python.
 *
 * `tool_json_line PATH ENGINE`: stdin is lines, each after its length in 4 bytes;
 * stdout is, for each, its status, the number of lone surrogates and the text after its length,
 * 1, 4 and 4 little-endian bytes. ENGINE is scalar or avx2. Status 77: no such
 * engine here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracles/json_oracle.h"
#include "support/pipes.h"

static int read_json(json_paths *paths)
{
    for (size_t n_bytes; get_length(&n_bytes);) {
        uint8_t *line = get_bytes(n_bytes, 1, 0);
        oracle_result r = scan_line(paths, line, n_bytes, 0);
        putchar((int)r.status);
        put_number(r.lone_surrogates, 4);
        put_bytes(r.text, r.n_bytes);
        free(line);
        free(r.text);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const engines[] = {"scalar", "avx2"};
    if (argc != 3) {
        fprintf(stderr, "usage: tool_json_line PATH ENGINE\n");
        return 2;
    }
    json_paths *paths = json_paths_new(argv[1], NULL);
    for (int i = 0; i < 2; i++) {
        if (strcmp(argv[2], engines[i]) == 0)
            paths->level = (simd_level)(SIMD_SCALAR + i);
    }
    int status = simd_works(paths->level) ? read_json(paths) : 77;
    json_paths_free(paths);
    return fflush(stdout) == 0 ? status : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/segments_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "text/json_text.h"

void segments_print_table(const tokmap_dataset *ds, uint64_t n_segments)
{
    if (n_segments)
        printf("\n%25s %15s  %s\n", "tokens", "first byte", "token file");
    for (uint64_t i = 0; i < n_segments; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        char tokens[64];
        tokmap_dataset_get_segment(ds, i, &s);
        snprintf(tokens, sizeof tokens, "%" PRIu64 ":%" PRIu64, s.first_token,
                 s.first_token + s.n_tokens);
        printf("%25s %15" PRIu64 "  ", tokens, s.token_offset);
        cli_print_plain(stdout, s.path, s.path_bytes);
        putchar('\n');
    }
}

void segments_print_json(const tokmap_dataset *ds, uint64_t n_segments)
{
    putchar('[');
    for (uint64_t i = 0; i < n_segments; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &s);
        fputs(i ? ", {\"token_file\": " : "{\"token_file\": ", stdout);
        json_text_print_string(stdout, s.path, s.path_bytes);
        printf(", \"first_token\": %" PRIu64 ", \"n_tokens\": %" PRIu64
               ", \"token_offset\": %" PRIu64 "}",
               s.first_token, s.n_tokens, s.token_offset);
    }
    putchar(']');
}

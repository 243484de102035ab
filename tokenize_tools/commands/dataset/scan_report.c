/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/dataset/scan_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/base.h"
#include "cli/cli.h"

enum {
    AROUND = 60 /* tokens that are shown before and after a match, at most */
};

bool scan_matches_add(scan_matches *m, const scan_match *match)
{
    size_t at = m->n;
    while (at > 0 && (m->list[at - 1].n_tokens < match->n_tokens ||
                      (m->list[at - 1].n_tokens == match->n_tokens &&
                       m->list[at - 1].document > match->document)))
        at--;
    if (at == SCAN_MOST_MATCHES)
        return true;
    if (!array_reserve(&m->list, &m->room, m->n + 1, sizeof *m->list))
        return false;
    m->n = MIN(m->n + 1, SCAN_MOST_MATCHES);
    memmove(m->list + at + 1, m->list + at, (m->n - at - 1) * sizeof *m->list);
    m->list[at] = *match;
    return true;
}

void scan_matches_free(scan_matches *m)
{
    free(m->list);
    *m = (scan_matches){0};
}

/* Prints the text of tokens of a document, from `first` until `end`. */
static int print_text(scan_texts *t, uint64_t document, const char *key, uint64_t first,
                      uint64_t end, json_out *out)
{
    const tokmap_dataset_info info = cli_dataset_info(t->ds);
    const uint64_t n = end - first;
    const void *tokens;
    size_t n_tokens, bad = SIZE_MAX;
    model_text text = {0};
    tokmap_error err;
    if (document_tokens_get(&t->tokens, document, &tokens, &n_tokens, &err) != TOKMAP_OK)
        return cli_fail(&err);
    t->ids.n = 0;
    if (!id_buffer_reserve(&t->ids, n))
        return cli_no_memory();
    for (uint64_t i = first; i < end; i++)
        t->ids.ids[t->ids.n++] =
            info.token_bytes == 2 ? ((const uint16_t *)tokens)[i] : ((const uint32_t *)tokens)[i];
    if (end == n_tokens && n > 0 && t->ids.ids[n - 1] == info.eod_id)
        t->ids.n--;
    if (!tokenizer_decode(t->tokenizer, t->ids.ids, t->ids.n, &text, &bad))
        return bad == SIZE_MAX ? cli_no_memory()
                               : cli_error(CLI_DATASET,
                                           "%s: document %" PRIu64 " has the id %" PRIu32
                                           ", which is not an id of the tokenizer",
                                           cli_tokens_name(&info), document, t->ids.ids[bad]);
    if (out) {
        json_out_text(out, key, text.s, text.n_bytes);
    } else {
        printf("    %-6s ", key);
        json_text_print_string(stdout, text.s, text.n_bytes);
        putchar('\n');
    }
    free(text.s);
    return CLI_OK;
}

static int print_match(scan_texts *t, const scan_match *m, json_out *out)
{
    const uint64_t end = m->at + m->n_tokens;
    const void *tokens;
    size_t n_tokens;
    tokmap_error err;
    if (document_tokens_get(&t->tokens, m->document, &tokens, &n_tokens, &err) != TOKMAP_OK)
        return cli_fail(&err);
    if (out) {
        json_out_begin(out, NULL, '{');
        json_out_number(out, "document", m->document);
        json_out_number(out, "token", m->at);
        json_out_number(out, "n_tokens", m->n_tokens);
    } else
        printf("  document %" PRIu64 ", %" PRIu64 " tokens from token %" PRIu64 " on\n",
               m->document, m->n_tokens, m->at);
    int code = print_text(t, m->document, "before", m->at - MIN(m->at, AROUND), m->at, out);
    if (code == CLI_OK)
        code = print_text(t, m->document, "match", m->at, end, out);
    if (code == CLI_OK)
        code = print_text(t, m->document, "after", end, MIN(end + AROUND, n_tokens), out);
    if (out)
        json_out_end(out, '}');
    return code;
}

int scan_texts_print(scan_texts *t, const scan_matches *m, json_out *out)
{
    int code = CLI_OK;
    if (out)
        json_out_begin(out, "matches", '[');
    for (size_t i = 0; i < m->n && code == CLI_OK; i++)
        code = print_match(t, &m->list[i], out);
    if (out)
        json_out_end(out, ']');
    return code;
}

void scan_texts_free(scan_texts *t)
{
    document_tokens_free(&t->tokens);
    id_buffer_free(&t->ids);
}

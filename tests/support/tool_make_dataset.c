/* SPDX-License-Identifier: Apache-2.0 */
/* tool_make_dataset - writes a dataset from a description on stdin; oracles/ref_shapes.py makes
 * the descriptions and repeats what they stand for. A line is a verb and its arguments:
 *
 *     write VOCAB EOD PREFIX           first line; EOD may be "none"
 *     adopt BYTES OFFSET N_TOKENS VOCAB EOD TOKEN_FILE      or this one: an index for a token file
 *     metadata JSON
 *     ids ID...                        append these ids to the document at hand
 *     tokens N                         append N generated ids
 *     end                              end the document
 *     documents N LENGTH               N documents of generated ids (adopt: of the tokens there)
 *     varied N M                       N documents, document i of (i * i + i / 7) % M generated ids
 *     input INPUT_BYTES CHECKSUM xNAME_IN_HEX
 *
 * The generated id of token i is the upper half of i * 0x9E3779B97F4A7C15, modulo VOCAB. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "tokmap_writer.h"

typedef struct maker {
    tokmap_writer *writer;
    uint64_t vocab_size;
    uint64_t n_tokens;
    int adopting;
    tokmap_error err;
} maker;

/* Not a divisor of anything in the format, so that calls end at odd places. */
enum {
    CHUNK_TOKENS = 10007
};

static uint64_t next_number(char **at)
{
    return strtoull(*at, at, 10);
}

static uint32_t next_eod(char **at)
{
    if (strncmp(*at, " none", 5) == 0) {
        *at += 5;
        return TOKMAP_NO_ID;
    }
    return (uint32_t)next_number(at);
}

static tokmap_status do_write(maker *m, char *arguments)
{
    tokmap_writer_options options = {.struct_size = sizeof options};
    m->vocab_size = options.vocab_size = next_number(&arguments);
    options.eod_id = next_eod(&arguments);
    options.has_eod = options.eod_id != TOKMAP_NO_ID;
    return tokmap_writer_open(&m->writer, arguments + 1, &options, &m->err);
}

static tokmap_status do_adopt(maker *m, char *arguments)
{
    tokmap_adopt_options options = {.struct_size = sizeof options};
    options.token_bytes = (uint32_t)next_number(&arguments);
    options.token_offset = next_number(&arguments);
    options.n_tokens = next_number(&arguments);
    options.vocab_size = next_number(&arguments);
    options.eod_id = next_eod(&arguments);
    options.has_eod = options.eod_id != TOKMAP_NO_ID;
    m->adopting = 1;
    tokmap_status status = tokmap_writer_adopt(&m->writer, arguments + 1, &options, &m->err);
    while (status == TOKMAP_OK) {
        const void *tokens;
        size_t n_tokens;
        status = tokmap_writer_scan(m->writer, &tokens, &n_tokens, &m->err);
    }
    return status == TOKMAP_END ? TOKMAP_OK : status;
}

static tokmap_status do_metadata(maker *m, char *arguments)
{
    const char *json = arguments + 1;
    return tokmap_writer_set_metadata(m->writer, json, strlen(json), &m->err);
}

static tokmap_status do_ids(maker *m, char *arguments)
{
    while (*arguments != '\0') {
        uint32_t id = (uint32_t)next_number(&arguments);
        tokmap_status status = tokmap_writer_append(m->writer, &id, 1, &m->err);
        if (status != TOKMAP_OK)
            return status;
        m->n_tokens++;
    }
    return TOKMAP_OK;
}

static tokmap_status append_generated(maker *m, uint64_t n)
{
    static uint32_t ids[CHUNK_TOKENS];
    while (n > 0) {
        size_t n_now = n < CHUNK_TOKENS ? (size_t)n : CHUNK_TOKENS;
        for (size_t i = 0; i < n_now; i++) {
            uint64_t mixed = (m->n_tokens + i) * UINT64_C(0x9E3779B97F4A7C15);
            ids[i] = (uint32_t)((mixed >> 32) % m->vocab_size);
        }
        tokmap_status status = tokmap_writer_append(m->writer, ids, n_now, &m->err);
        if (status != TOKMAP_OK)
            return status;
        m->n_tokens += n_now;
        n -= n_now;
    }
    return TOKMAP_OK;
}

static tokmap_status do_tokens(maker *m, char *arguments)
{
    return append_generated(m, next_number(&arguments));
}

static tokmap_status do_end(maker *m, char *arguments)
{
    (void)arguments;
    return tokmap_writer_end_document(m->writer, &m->err);
}

static tokmap_status add_document(maker *m, uint64_t n_tokens)
{
    if (m->adopting)
        return tokmap_writer_add_document(m->writer, n_tokens, &m->err);
    tokmap_status status = append_generated(m, n_tokens);
    return status != TOKMAP_OK ? status : tokmap_writer_end_document(m->writer, &m->err);
}

/* N documents of M tokens, or of up to M. */
static tokmap_status add_documents(maker *m, char *arguments, int varied)
{
    const uint64_t n = next_number(&arguments), most = next_number(&arguments);
    tokmap_status status = TOKMAP_OK;
    for (uint64_t i = 0; i < n && status == TOKMAP_OK; i++)
        status = add_document(m, varied ? (i * i + i / 7) % most : most);
    return status;
}

static tokmap_status do_documents(maker *m, char *arguments)
{
    return add_documents(m, arguments, 0);
}

static tokmap_status do_varied(maker *m, char *arguments)
{
    return add_documents(m, arguments, 1);
}

static tokmap_status do_input(maker *m, char *arguments)
{
    uint64_t input_bytes = next_number(&arguments);
    uint64_t input_checksum = next_number(&arguments);
    char name[4097];
    size_t n = 0;
    unsigned byte;
    for (arguments += 2; n < sizeof name - 1 && sscanf(arguments, "%2x", &byte) == 1;
         arguments += 2)
        name[n++] = (char)byte;
    name[n] = '\0';
    return tokmap_writer_end_input(m->writer, name, input_bytes, input_checksum, &m->err);
}

static const struct {
    const char *verb;
    tokmap_status (*act)(maker *m, char *arguments);
} VERBS[] = {
    {"write", do_write},   {"adopt", do_adopt}, {"metadata", do_metadata},   {"ids", do_ids},
    {"tokens", do_tokens}, {"end", do_end},     {"documents", do_documents}, {"varied", do_varied},
    {"input", do_input},
};
enum {
    N_VERBS = sizeof VERBS / sizeof *VERBS
};

/* Arguments are handed on with the blank before them. */
static tokmap_status do_line(maker *m, char *line)
{
    size_t verb_bytes = strcspn(line, " ");
    for (size_t i = 0; i < N_VERBS; i++) {
        if (strlen(VERBS[i].verb) == verb_bytes && strncmp(line, VERBS[i].verb, verb_bytes) == 0)
            return VERBS[i].act(m, line + verb_bytes);
    }
    snprintf(m->err.text, sizeof m->err.text, "no verb: %.80s", line);
    return TOKMAP_ERR_ARGUMENT;
}

int main(void)
{
    maker m = {0};
    char *line = NULL;
    size_t line_capacity = 0;
    tokmap_status status = TOKMAP_OK;
    ssize_t n_read;
    while (status == TOKMAP_OK && (n_read = getline(&line, &line_capacity, stdin)) > 0) {
        if (line[n_read - 1] == '\n')
            line[n_read - 1] = '\0';
        status = do_line(&m, line);
    }
    if (status == TOKMAP_OK)
        status = tokmap_writer_finish(m.writer, &m.err);
    tokmap_writer_close(m.writer);
    free(line);
    if (status != TOKMAP_OK)
        fprintf(stderr, "tool_make_dataset: status %d: %s\n", (int)status, m.err.text);
    return status == TOKMAP_OK ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/random_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint32_t random_input_below(uint64_t *random, uint32_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*random >> 32) * n >> 32);
}

void input_bytes_add(input_bytes *b, const void *bytes, size_t n)
{
    if (b->n_bytes + n >= b->capacity) {
        b->capacity = (b->n_bytes + n) * 2 + 64;
        b->bytes = realloc(b->bytes, b->capacity);
    }
    if (n > 0)
        memcpy(b->bytes + b->n_bytes, bytes, n);
    b->n_bytes += n;
}

void input_bytes_add_text(input_bytes *b, const char *text)
{
    input_bytes_add(b, text, strlen(text));
}

#define ADD_ONE_OF(b, list)                                                                        \
    input_bytes_add_text(                                                                          \
        b, (list)[random_input_below(random, (uint32_t)(sizeof(list) / sizeof *(list)))])

static void add_words(uint64_t *random, input_bytes *b, const char *const *words, size_t n_words,
                      uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        input_bytes_add_text(b, words[random_input_below(random, (uint32_t)n_words)]);
}

/* The number of words of a document: mostly few. */
static uint32_t random_length(uint64_t *random)
{
    static const uint32_t limits[] = {1, 3, 8, 8, 30, 30, 100, 400};
    return random_input_below(random, limits[random_input_below(random, 8)]);
}

static void make_text(uint64_t *random, input_bytes *b, bool lines)
{
    static const char *const words[] = {"a",
                                        " ",
                                        "word",
                                        " and",
                                        "\xc3\xa4",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\x80",
                                        "\xc3",
                                        "\xe2\x82",
                                        "\xf0\x9f\x98",
                                        "\xed\xa0\x80",
                                        "\xff",
                                        "\xc0\xaf",
                                        "\r",
                                        "long-long-long-word",
                                        "\x01",
                                        "{\"",
                                        "--",
                                        "|",
                                        " ",
                                        " x"};
    static const char *const clean[] = {"word", " and", " the", "\xc3\xa4", "\xe2\x82\xac ", " "};
    for (uint32_t n = random_input_below(random, 12); n > 0; n--) {
        if (random_input_below(random, 3))
            add_words(random, b, clean, sizeof clean / sizeof *clean, random_length(random));
        else
            add_words(random, b, words, sizeof words / sizeof *words, random_length(random));
        if (random_input_below(random, 20) == 0)
            input_bytes_add(b, "\0", 1);
        if (n > 1 || random_input_below(random, 2))
            input_bytes_add_text(b, lines ? "\n" : random_input_below(random, 2) ? "--|" : "\n");
    }
}

static void make_json_line(uint64_t *random, input_bytes *b)
{
    static const char *const words[] = {
        "a",    " word",    "\\n",  "\\u00e4", "\\ud83d\\ude00", "\\ud83d", "\\ude00", "\xc3\xa4",
        "\xff", "\xe2\x82", "\\\"", " ",       " longer-word",   "\\u0000"};
    static const char *const before[] = {"{\"text\":\"",
                                         "{\"id\": 1, \"text\" : \"",
                                         "  {\"text\":\"",
                                         "\t\t\r                      {\"text\":\"",
                                         "{\"a\":{\"text\":\"no\"},\"text\":\"",
                                         "{\"text\":1,\"text\":\""};
    static const char *const after[] = {"\"}",
                                        "\"}",
                                        "\"}\r",
                                        "\",\"x\":[1,2,{\"text\":0}]} ",
                                        "\", \"text\": \"again and again\"}",
                                        "\",\"text\":null}",
                                        "\"",
                                        "\"}}",
                                        "\"}, ",
                                        ""};
    static const char *const wrong[] = {"",
                                        "  \t\r",
                                        "nonsense",
                                        "[]",
                                        "{}",
                                        "{\"text\":[]}",
                                        "{\"text\":null}",
                                        "{\"text\":null,\"a\":\"longer than a piece may be\"}",
                                        "\"text\"",
                                        "{\"text\":\"a\tb\"}",
                                        "{\"text\":\"\\x\"}",
                                        "{\"text\":\"a\",}"};
    if (random_input_below(random, 6) == 0) {
        ADD_ONE_OF(b, wrong);
        return;
    }
    bool clean = random_input_below(random, 2);
    ADD_ONE_OF(b, before);
    add_words(random, b, words, clean ? 4 : sizeof words / sizeof *words, random_length(random));
    input_bytes_add_text(
        b, after[random_input_below(
               random, random_input_below(random, 3) ? 4 : sizeof after / sizeof *after)]);
}

/* Rows of CSV or TSV, good and bad. */
static void make_table(uint64_t *random, input_bytes *b, bool tabs)
{
    static const char *const headers[] = {"text,id",         "id,text",     "\"text\",a.b",
                                          "a.b,text,id,",    "text",        "id,\"a,b\",text,n",
                                          "a.b,text\r",      "id;text",     "text,\"x",
                                          "text,\"\"\"\"\"", "te\"xt,text", "id"};
    static const char *const clean[] = {"word", " and ", "1", "x", "", "\xc3\xa4", "0.5", "-"};
    static const char *const words[] = {"word", "\"\"", "\"", "\r", "\r\n", "\n",
                                        ",",    "\t",   ";",  "x",  "\xff", "long long word"};
    const size_t begin = b->n_bytes;
    input_bytes_add_text(
        b, headers[random_input_below(random, random_input_below(random, 3) ? 6 : 12)]);
    for (uint32_t n = random_input_below(random, 12); n > 0; n--) {
        input_bytes_add_text(b, random_input_below(random, 4) ? "\n" : "\r\n");
        for (uint32_t k = random_input_below(random, 6) ? 2 : random_input_below(random, 5); k > 0;
             k--) {
            const bool quoted = random_input_below(random, 2);
            const bool is_clean = random_input_below(random, 8);
            input_bytes_add_text(b, quoted ? "\"" : "");
            add_words(random, b, is_clean ? clean : words, is_clean ? 8 : 12,
                      random_input_below(random, 5));
            if (quoted && is_clean)
                add_words(random, b, (const char *const[]){"\"\"", ",\n", "\r\n", "\""},
                          random_input_below(random, 20) ? 3 : 4, random_input_below(random, 3));
            input_bytes_add_text(b, quoted && random_input_below(random, 40) ? "\"" : "");
            input_bytes_add_text(b, k > 1 ? "," : "");
        }
    }
    for (size_t i = begin; tabs && i < b->n_bytes; i++)
        b->bytes[i] = b->bytes[i] == ',' ? '\t' : b->bytes[i];
    input_bytes_add_text(b, random_input_below(random, 2) ? "\n" : "");
}

input_bytes random_input(uint64_t *random, corpus_format format)
{
    input_bytes b = {0};
    input_bytes_add(&b, "", 0);
    if (random_input_below(random, 12) == 0)
        return b;
    if (random_input_below(random, 8) == 0)
        input_bytes_add_text(&b, "\xef\xbb\xbf");
    if (format == CORPUS_AUTO)
        format = random_input_below(random, 2) ? CORPUS_JSON_LINES : CORPUS_TEXT;
    if (format == CORPUS_CSV || format == CORPUS_TSV) {
        make_table(random, &b, format == CORPUS_TSV);
        return b;
    }
    if (format != CORPUS_JSON_LINES) {
        make_text(random, &b, format == CORPUS_LINES);
        return b;
    }
    for (uint32_t n = random_input_below(random, 12); n > 0; n--) {
        make_json_line(random, &b);
        if (n > 1 || random_input_below(random, 2))
            input_bytes_add_text(&b, random_input_below(random, 10) ? "\n" : "\n\n \n");
    }
    return b;
}

corpus_options random_corpus_options(uint64_t *random)
{
    static const size_t batches[] = {4, 5, 16, 64, 1000, 1 << 16};
    static const size_t longest[] = {4, 20, 33, 100, 1000, 1 << 16};
    static const size_t reads[] = {1, 2, 3, 7, 64, 4096};
    corpus_options o = {
        .reader.utf8 = (corpus_utf8)random_input_below(random, 3),
        .reader.on_error = (corpus_on_error)random_input_below(random, 2),
        .batch_bytes = batches[random_input_below(random, 6)],
        .reader.max_document = longest[random_input_below(random, 6)],
        .reader.window.read_bytes = reads[random_input_below(random, 6)],
        .reader.window.read_ahead = random_input_below(random, 8) == 0,
    };
    return o;
}

int input_file(char name[64], const void *bytes, size_t n_bytes)
{
    const int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, n_bytes) != (ssize_t)n_bytes)
        abort();
    snprintf(name, 64, "/proc/self/fd/%d", fd);
    return fd;
}

uint64_t bytes_read_so_far(void)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    if (f && fscanf(f, "rchar: %llu", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* tool_parts.c - inputs that are cut and read in parts, for test_parts.py and
 * test_json_line.py.
 *
 * `all FORMAT FIELD META SEED FILE...`: compares the whole with its parts, cut where SEED says.
 * stdout is the documents of the parts, each after its length in 4 little-endian bytes; stderr is
 * how many parts there were, and how many of them begin in a file. FORMAT is auto or text. META is
 * field names, or -.
 * `one FIELD FROM TO FILE`: reads the part between the first places at or after FROM and TO
 * bytes, TO 0 is the end, and prints the two places, its records, and how many bytes were read.
 * Status 3: the message is on stderr. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/cutter.h"
#include "support/part_reading.h"
#include "support/pipes.h"

static int complain(const char *why)
{
    fprintf(stderr, "%s\n", why);
    return 3;
}

/* ---- all ---- */

static void put_documents(const part_reading *all)
{
    const uint64_t *ends = (const uint64_t *)(const void *)all->ends.bytes;
    uint64_t at = 0;
    for (size_t i = 0; i < all->ends.n_bytes / sizeof *ends; i++) {
        put_bytes(all->text.bytes + at, ends[i] - at);
        at = ends[i];
    }
}

static int compare_all(char **args, size_t n_names)
{
    part_reading all;
    field_list fields = {0};
    failure err;
    uint64_t random = strtoull(args[3], NULL, 10);
    corpus_options o = {
        .reader.format = strcmp(args[0], "text") == 0 ? CORPUS_TEXT : CORPUS_AUTO,
        .reader.field = args[1],
        .batch_bytes = (size_t)64 << random_input_below(&random, 10),
        .reader.page_memory = random_input_below(&random, 2) ? 0 : (uint64_t)1 << 20,
        .reader.window.read_ahead = random_input_below(&random, 2),
    };
    if (strcmp(args[2], "-") != 0) {
        if (!field_list_parse(&fields, args[2], &err))
            return complain(err.text);
        o.reader.fields = &fields;
        o.reader.n_kept = fields.n_fields;
    }
    const char *why =
        part_reading_compare(&all, (const char *const *)(args + 4), n_names, &o, &random);
    if (why || all.result < 0)
        return complain(why ? why : all.err.text);
    put_documents(&all);
    fprintf(stderr, "%zu %zu\n", all.n_parts, all.n_cut);
    part_reading_free(&all);
    field_list_free(&fields);
    return 0;
}

/* ---- one ---- */

static bool find_place(const char *name, const corpus_options *o, uint64_t at_least,
                       corpus_cut *cut, failure *err)
{
    *cut = (corpus_cut){0};
    if (at_least == 0)
        return true;
    corpus_cutter *c = corpus_cutter_open(name, NULL, &o->reader, err);
    const int result = c ? corpus_cutter_next(c, at_least, cut, err) : -1;
    corpus_cutter_close(c);
    return result >= 0;
}

static int read_one(char **args)
{
    const char *name = args[3];
    const corpus_format formats[] = {CORPUS_PARQUET};
    corpus_options o = {.reader.field = args[0], .reader.page_memory = (uint64_t)256 << 20};
    failure err;
    corpus_batch b = {0};
    corpus_cut begin, end;
    int result = 1;
    if (!find_place(name, &o, strtoull(args[1], NULL, 10), &begin, &err) ||
        !find_place(name, &o, strtoull(args[2], NULL, 10), &end, &err))
        return complain(err.text);
    o.formats = formats;
    o.begin = begin;
    o.end = end;
    o.has_end = end.row > 0;
    const uint64_t before = bytes_read_so_far();
    corpus *c = corpus_open(&name, 1, &o, NULL, &err);
    while (c && result > 0)
        result = corpus_read(c, &b, &err);
    if (!c || result < 0)
        return complain(err.text);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
           begin.offset, begin.row, end.offset, end.row, b.after.counts.records,
           bytes_read_so_far() - before);
    corpus_close(c);
    corpus_batch_free(&b);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 6 && strcmp(argv[1], "all") == 0)
        return compare_all(argv + 2, (size_t)argc - 6);
    if (argc == 6 && strcmp(argv[1], "one") == 0)
        return read_one(argv + 2);
    return complain("usage: tool_parts all FORMAT FIELD META SEED FILE... | "
                    "tool_parts one FIELD FROM TO FILE");
}

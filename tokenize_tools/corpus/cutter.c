/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/cutter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "corpus/open_input.h"
#include "formats/parquet/parquet_reader.h"
#include "system/files.h"
#include "system/platform.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

struct corpus_cutter {
    const char *name;
    reader_options options;
    reader *reader;
    corpus_cutter_info info;
    corpus_cut last;  /* the place that was found last, else the start */
    uint64_t n_bytes; /* of text that can be cut */
    uint8_t block[BLOCK_BYTES];
};

static bool describe_input(corpus_cutter *c, failure *err)
{
    reader_summary summary;
    if (reader_seek(c->reader, (reader_place){0}, 0, err) < 0) /* decides the format */
        return false;
    reader_summarize(c->reader, &summary);
    c->info.format = reader_format(c->reader);
    c->info.is_archive = reader_is_archive(c->reader);
    c->info.is_array = summary.is_array;
    c->info.can_be_cut = c->info.format == CORPUS_PARQUET;
    snprintf(c->info.codec, sizeof c->info.codec, "%s", summary.codec);
    /* Whether the input can be cut at newlines. */
    const corpus_format format = c->info.format;
    if ((format != CORPUS_LINES && format != CORPUS_JSON_LINES) || c->info.is_archive ||
        c->info.is_array || *c->info.codec || reader_options_want_row(&c->options))
        return true;
    c->info.can_be_cut = input_is_plain_file(reader_input(c->reader), &c->n_bytes);
    return true;
}

corpus_cutter *corpus_cutter_open(const char *name, const input_version *version,
                                  const reader_options *options, failure *err)
{
    const input_source source = {.path = name, .version = version};
    corpus_cutter *c = calloc(1, sizeof *c);
    if (!c) {
        fail_system(err, ENOMEM, "%.200s", name);
        return NULL;
    }
    c->name = name;
    c->options = reader_options_complete(options);
    c->options.window.read_ahead = false;
    c->reader = reader_open(&source, &c->options, -1, err);
    if (c->reader && describe_input(c, err))
        return c;
    corpus_cutter_close(c);
    return NULL;
}

void corpus_cutter_close(corpus_cutter *c)
{
    if (!c)
        return;
    reader_close(c->reader);
    free(c);
}

corpus_cutter_info corpus_cutter_describe(const corpus_cutter *c)
{
    return c->info;
}

/* The first line that begins at or after a byte; the end of the file does not count. */
static int find_line(corpus_cutter *c, uint64_t at_least, corpus_cut *cut, failure *err)
{
    for (uint64_t at = at_least - 1; at < c->n_bytes;) {
        size_t n_read;
        const int sys_errno =
            input_read_at(reader_input(c->reader), c->block, BLOCK_BYTES, at, &n_read);
        if (sys_errno) {
            fail_system(err, sys_errno, "cannot read");
            return -1;
        }
        if (n_read == 0)
            break;
        const uint8_t *newline = memchr(c->block, '\n', n_read);
        if (newline) {
            cut->offset = at + (uint64_t)(newline - c->block) + 1;
            return cut->offset < c->n_bytes;
        }
        at += n_read;
    }
    return 0;
}

int corpus_cutter_next(corpus_cutter *c, uint64_t at_least, corpus_cut *cut, failure *err)
{
    corpus_cut found = {0};
    int result = 0;
    if (at_least <= c->last.offset)
        at_least = c->last.offset + 1;
    if (c->info.format == CORPUS_PARQUET)
        result = parquet_reader_next_cut(c->reader, at_least, &found, err);
    else if (c->info.can_be_cut)
        result = find_line(c, at_least, &found, err);
    if (result > 0)
        *cut = c->last = found;
    if (result < 0)
        fail_in_file(err, c->name);
    return result;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/open_input.h"

#include <errno.h>
#include <string.h>

#include "formats/arrow/arrow_reader.h"
#include "formats/parquet/parquet_reader.h"
#include "formats/tar_header.h"
#include "formats/wrong_file.h"
#include "system/input_file.h"

/* Chooses the format by the first bytes, then by the name. */
static const reader_kind *choose_kind(const reader_options *options, const window *w)
{
    const uint8_t *head = window_text(w);
    const size_t n_bytes = window_size(w);
    if (w->part) /* the middle of a file does not tell what the file is */
        return &text_reader_kind;
    if (options->format == CORPUS_ARROW ||
        (options->format == CORPUS_AUTO && arrow_is_magic(head, n_bytes)))
        return &arrow_reader_kind;
    if (options->format == CORPUS_CSV || options->format == CORPUS_TSV)
        return &csv_reader_kind;
    /* Tar is recognized whatever the format is: it holds files of that format. */
    if (n_bytes >= TAR_BLOCK_BYTES && tar_is_header(head))
        return &tar_reader_kind;
    const bool is_table =
        options->format == CORPUS_AUTO && wrong_name_table(w->name) != CORPUS_AUTO;
    return is_table ? &csv_reader_kind : &text_reader_kind;
}

reader *reader_open(const input_source *source, const reader_options *options, int stop_fd,
                    failure *err)
{
    const bool is_auto = options->format == CORPUS_AUTO && strcmp(source->path, "-") != 0;
    int sys_errno = 0;
    reader begin = {.options = options,
                    .source = source,
                    .stop_fd = stop_fd,
                    .window = {.name = source->path},
                    .fd = input_open_file(source, err)};
    if (begin.fd < 0)
        return NULL;
    if (options->format == CORPUS_PARQUET || (is_auto && parquet_is_magic(begin.fd, &sys_errno))) {
        begin.kind = &parquet_reader_kind;
    } else if (sys_errno) {
        fail_system(err, sys_errno, "cannot read");
    } else {
        input *in = input_open_at(source, begin.fd, stop_fd, err);
        begin.fd = -1;
        if (window_open(&begin.window, source, in, &options->window, err) &&
            window_reach(&begin.window, TAR_BLOCK_BYTES, err))
            begin.kind = choose_kind(options, &begin.window);
    }
    if (begin.kind == &arrow_reader_kind && source->reserve &&
        !source->reserve(source->reserve_context, options->page_memory)) {
        fail_system(err, ECANCELED, "cannot read");
        begin.kind = NULL;
    }
    reader *r = begin.kind ? reader_new(&begin, err) : NULL;
    if (!r) {
        window_close(&begin.window);
        input_file_close(begin.fd);
        fail_in_file(err, source->path);
    }
    return r;
}

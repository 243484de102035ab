/* SPDX-License-Identifier: Apache-2.0 */
#include "corpus/open_input.h"

#include "formats/arrow/arrow_reader.h"
#include "formats/parquet/parquet_reader.h"
#include "formats/tar_header.h"

/* Chooses the format by the first bytes. */
static const reader_kind *choose_kind(const reader_options *options, const window *w)
{
    const uint8_t *head = window_text(w);
    const size_t n_bytes = window_size(w);
    if (w->part) /* the middle of a file does not tell what the file is */
        return &text_reader_kind;
    if (options->format == CORPUS_ARROW ||
        (options->format == CORPUS_AUTO && arrow_is_magic(head, n_bytes)))
        return &arrow_reader_kind;
    /* Tar is recognized whatever the format is: it holds files of that format. */
    return n_bytes >= TAR_BLOCK_BYTES && tar_is_header(head) ? &tar_reader_kind : &text_reader_kind;
}

reader *reader_open(const input_source *source, const reader_options *options, int stop_fd,
                    failure *err)
{
    int sys_errno;
    const bool parquet = parquet_reader_chooses(source, options, &sys_errno);
    reader begin = {
        .options = options, .source = source, .stop_fd = stop_fd, .window = {.name = source->path}};
    if (sys_errno)
        fail_system(err, sys_errno, "cannot read");
    else if (parquet)
        begin.kind = &parquet_reader_kind;
    else if (window_open(&begin.window, source, &options->window, stop_fd, err) &&
             window_reach(&begin.window, TAR_BLOCK_BYTES, err))
        begin.kind = choose_kind(options, &begin.window);
    reader *r = begin.kind ? reader_new(&begin, err) : NULL;
    if (!r) {
        window_close(&begin.window);
        fail_at(err, "%.200s: ", source->path);
    }
    return r;
}

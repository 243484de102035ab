/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/look.h"

#include "cli/cli.h"
#include "system/process.h"

/* Usually enough to recognize a file; a longer record is read as a whole. */
#define READ_BYTES ((size_t)16 * 1024)

static int look_at(const pack_parts *parts, size_t which, pack_seen *seen)
{
    corpus_options options = pack_corpus_options(parts->options);
    const input_source source = {.path = parts->inputs->names[which],
                                 .version = &parts->inputs->versions[which]};
    corpus_error err;
    reader_text text;
    options.read_bytes = READ_BYTES;
    *seen = (pack_seen){.format = options.format, .summary.n_records = READER_UNKNOWN};
    if (!source.version->known)
        return CLI_OK;
    reader *r = reader_open(&source, &options, -1, &err);
    if (!r || reader_next(r, &text, &err) == READER_FAILED) {
        reader_close(r);
        return cli_input_failed(err.sys_errno, err.text);
    }
    seen->format = reader_format(r);
    reader_summarize(r, &seen->summary);
    reader_close(r);
    return CLI_OK;
}

int pack_look(const pack_parts *parts, pack_seen *seen)
{
    int code = CLI_OK;
    for (size_t i = 0; i < parts->inputs->n && code == CLI_OK; i++) {
        pack_seen one;
        code = process_is_interrupted() ? cli_error(CLI_AGAIN, "interrupted")
                                        : look_at(parts, i, seen ? &seen[i] : &one);
    }
    return code;
}

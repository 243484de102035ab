/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/look.h"

#include "cli/cli.h"

/* Usually enough to recognize a file; a longer record is read as a whole. */
#define READ_BYTES ((size_t)16 * 1024)

typedef struct look_context {
    const pack_parts *parts;
    pack_seen *seen; /* of each input, or NULL */
} look_context;

static int look_at(void *context, size_t which)
{
    const look_context *look = context;
    const pack_parts *parts = look->parts;
    pack_seen one, *seen = look->seen ? &look->seen[which] : &one;
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
    return pack_inputs_each(parts->inputs, look_at, &(look_context){parts, seen});
}
